//! Logarithmic time axes with round numbers at their ends and lines. By default a chart of close
//! values would have no number at its axis at all.

use serde_json::{Value, json};

/// Maximum number of lines of a chart. Beyond it only powers of ten are drawn.
const GRID_LINE_COUNT_MAX: usize = 7;

/// Returns the logarithmic y axis for the field `ms` of these rows of data.
pub(super) fn build_millisecond_axis(rows: &[Value]) -> Value {
    let values = rows.iter().filter_map(|row| row["ms"].as_f64());
    let lines = choose_grid_lines(values);
    json!({
        "field": "ms", "type": "quantitative", "title": "milliseconds",
        "scale": { "type": "log", "nice": false, "domain": [lines.axis_min, lines.axis_max] },
        "axis": { "labelExpr": "format(datum.value, '~f')", "values": lines.line_values },
    })
}

/// Ends of a logarithmic axis, and the numbers along it.
struct GridLines {
    axis_min: f64,
    axis_max: f64,
    line_values: Vec<f64>,
}

/// Computes the ends and numbers of a logarithmic axis for some values, of which only those above
/// zero count. An axis has at least two numbers.
fn choose_grid_lines(values: impl Iterator<Item = f64>) -> GridLines {
    let (mut least, mut most) = (f64::MAX, 0.0_f64);
    for value in values.filter(|value| *value > 0.0) {
        (least, most) = (least.min(value), most.max(value));
    }
    if most == 0.0 {
        (least, most) = (1.0, 1.0);
    }
    // Each is the number that its text is.
    let steps: Vec<f64> = (-9..=9)
        .flat_map(|power| [1, 2, 5].map(|step| format!("{step}e{power}")))
        .filter_map(|text| text.parse().ok())
        .collect();
    let last = steps.len() - 1;
    let below = steps.iter().rposition(|step| *step <= least).unwrap_or(0);
    let above = steps.iter().position(|step| *step >= most).unwrap_or(last);
    let above = above.max(below + 1).min(last);
    let between = &steps[below..=above];
    let is_power = |step: &&f64| format!("{step:e}").starts_with('1');
    GridLines {
        axis_min: between[0],
        axis_max: between[between.len() - 1],
        line_values: match between.len() > GRID_LINE_COUNT_MAX {
            true => between.iter().filter(is_power).copied().collect(),
            false => between.to_vec(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_two_numbers_at_least_and_not_many() {
        for (values, low, high, between) in [
            (&[0.0145, 0.0145][..], 0.01, 0.02, &[0.01, 0.02][..]),
            (&[2.4, 13.8], 2.0, 20.0, &[2.0, 5.0, 10.0, 20.0]),
            (&[1.0], 1.0, 2.0, &[1.0, 2.0]),
            (&[0.0, 3.0], 2.0, 5.0, &[2.0, 5.0]),
            (&[], 1.0, 2.0, &[1.0, 2.0]),
            (&[0.03, 104.0], 0.02, 200.0, &[0.1, 1.0, 10.0, 100.0]),
        ] {
            let found = choose_grid_lines(values.iter().copied());
            assert_eq!((found.axis_min, found.axis_max), (low, high), "{values:?}");
            assert_eq!(found.line_values, between, "{values:?}");
        }
    }
}
