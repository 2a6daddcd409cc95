//! Small line diagrams drawn with characters on a terminal.

const CHART_LINES: usize = 10;

/// Draws a curve that rises to the right, with one column for each point.
pub(crate) fn draw_curve(points: &[(u32, f64)], x_unit: &str, y_unit: &str) -> String {
    let top = points.iter().map(|(_, y)| *y).fold(0.0, f64::max);
    let longest = points.iter().map(|(x, _)| *x).max().unwrap_or(0);
    let height = |y: f64| {
        if top > 0.0 {
            (y / top * (CHART_LINES - 1) as f64).round() as usize
        } else {
            0
        }
    };
    let label = |line: usize| match line {
        _ if line == CHART_LINES - 1 => format!("{top:.1} {y_unit}"),
        0 => format!("0 {y_unit}"),
        _ => String::new(),
    };
    let margin = (0..CHART_LINES)
        .map(|line| label(line).len())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for line in (0..CHART_LINES).rev() {
        let dot = |(_, y): &(u32, f64)| if height(*y) == line { '*' } else { ' ' };
        let dots: String = points.iter().map(dot).collect();
        text += &format!("  {:>margin$} |{}\n", label(line), dots.trim_end());
    }
    text += &format!("  {:margin$} +{}\n", "", "-".repeat(points.len()));
    let end = format!("{longest} {x_unit}");
    let room = points.len().saturating_sub(1 + end.len());
    text + &format!("  {:margin$}  0{}{end}\n", "", " ".repeat(room))
}

#[cfg(test)]
mod tests {
    use super::draw_curve;

    #[test]
    fn a_curve_has_a_column_for_each_point() {
        let points: Vec<(u32, f64)> = (0..40).map(|x| (x * 10, f64::from(x))).collect();
        let drawn = draw_curve(&points, "cylinders", "ms");
        assert_eq!(drawn.matches('*').count(), 40, "{drawn}");
        assert!(drawn.contains("39.0 ms |"), "{drawn}");
        assert!(drawn.trim_end().ends_with("390 cylinders"), "{drawn}");
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert!(draw_curve(&[], "cylinders", "ms").contains("0 cylinders"));
        assert!(draw_curve(&[(0, 0.0)], "cylinders", "ms").contains('*'));
    }
}
