//! Charts of repetitions in the order of running, where they are not steady: two modes, a drift or
//! a shift, which a median alone would hide.

use super::chart::{Chart, ROWS_DATASET, slugify};
use super::throughput::RUN_COLOURS;
use crate::comparison::{Comparison, Quantity, ResultPair};
use crate::report::view::{ResultRow, RunView};
use serde_json::{Value, json};

/// Figures of one program's repetitions, as a series of a chart.
struct RepetitionSeries<'a> {
    name: String,
    /// Figure of each repetition, in the unit of the judged quantity.
    figures: Vec<f64>,
    /// Remark on the repetitions; empty where they are steady.
    unit_text: String,
    colour: &'a str,
}

impl RepetitionSeries<'_> {
    fn build_rows(&self) -> impl Iterator<Item = Value> {
        let numbered = self.figures.iter().zip(1..);
        numbered.map(|(figure, number)| {
            json!({ "series": self.name, "repetition": number, "figure": figure })
        })
    }
}

/// Builds one chart for each program of a run whose repetitions are not steady.
pub(super) fn build_run_charts(view: &RunView<'_>) -> Vec<Chart> {
    let shaped = |(_, row): &(usize, &ResultRow<'_>)| !row.summary.shape.is_steady();
    let rows = view.rows.iter().enumerate().filter(shaped);
    let drawn = rows.filter_map(|(number, row)| {
        let mut kept = row.result.kept_repetitions();
        let quantity = kept.clone().next().map(Quantity::primary_quantity)?;
        let series = RepetitionSeries {
            name: super::format_chart_title(view, row),
            figures: kept
                .by_ref()
                .filter_map(|one| quantity.figure_of_repetition(one))
                .collect(),
            unit_text: row.summary.shape.label(),
            colour: RUN_COLOURS[0],
        };
        let name = format!("repetitions-{}-{number}", slugify(&view.run.run_id));
        let title = format!("{}: {}", series.name, series.unit_text);
        Some(build_chart(
            &name,
            (title, unit_of_quantity(quantity)),
            &[series],
        ))
    });
    drawn.collect()
}

pub(super) fn build_pair_charts(comparison: &Comparison) -> Vec<Chart> {
    let steady = |pair: &ResultPair| pair.base.shape.is_steady() && pair.other.shape.is_steady();
    let pairs = comparison.result_pairs.iter().enumerate();
    let drawn = pairs
        .filter(|(_, pair)| !steady(pair))
        .map(|(number, pair)| {
            let durable = match pair.quantity {
                Quantity::DurableKbPerS => ", durable",
                Quantity::KbPerS
                | Quantity::Iops
                | Quantity::ResponseP50Us
                | Quantity::ResponseP99Us => "",
            };
            let sides = [
                ("base", 0, &pair.base),
                ("other", pair.run_index, &pair.other),
            ];
            let series = sides.map(|(role, run, side)| RepetitionSeries {
                name: format!("{role}: {}", comparison.run_name(run)),
                figures: side.repetition_figures.clone(),
                unit_text: side.shape.label(),
                colour: RUN_COLOURS[usize::from(role == "other")],
            });
            let said = series.iter().filter(|one| !one.unit_text.is_empty());
            let said = said.map(|one| format!("{} {}", one.name, one.unit_text));
            let said: Vec<String> = said.collect();
            let title = format!("{}{durable}: {}", pair.title, said.join("; "));
            let name = format!("pair-{}-{number}", pair.run_index);
            build_chart(&name, (title, unit_of_quantity(pair.quantity)), &series)
        });
    drawn.collect()
}

/// Returns the axis title for a quantity.
fn unit_of_quantity(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::KbPerS | Quantity::DurableKbPerS => "KB/s",
        Quantity::Iops => "IOPS",
        Quantity::ResponseP50Us => "response p50, µs",
        Quantity::ResponseP99Us => "response p99, µs",
    }
}

fn build_chart(name: &str, (title, unit): (String, &str), all: &[RepetitionSeries<'_>]) -> Chart {
    let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    let colours: Vec<&str> = all.iter().map(|one| one.colour).collect();
    let view = json!({
        "height": 120,
        "encoding": {
            "x": {
                "field": "repetition", "type": "quantitative", "title": "repetition",
                "axis": { "tickMinStep": 1, "format": "d" },
            },
            "y": {
                "field": "figure", "type": "quantitative", "title": unit,
                "axis": { "format": "~s", "tickCount": 4 },
            },
            "color": { "field": "series", "type": "nominal", "sort": null, "title": null,
                       "scale": { "domain": names, "range": colours } },
        },
        "layer": [
            { "mark": { "type": "line", "strokeWidth": 1 } },
            { "name": ROWS_DATASET, "mark": { "type": "point", "filled": true, "size": 30, "opacity": 1,
                                      "tooltip": { "content": "data" } } },
        ],
    });
    let rows = all.iter().flat_map(RepetitionSeries::build_rows).collect();
    Chart::new(name, title, rows, view).with_caption(
        "Counted repetitions in running order. They have several levels, so a single figure does not represent them.",
    )
}
