//! Repetitions in the order of running, where they do not lie about one level: two
//! modes, a drift or a shift, which a median alone would hide.

use super::chart::{Chart, ROWS, slug};
use super::throughput::OF_RUNS;
use crate::comparison::{Comparison, Pair, Quantity};
use crate::report::view::{Row, View};
use diskperf_timeline::Repetition;
use serde_json::{Value, json};

/// Repetitions of one thing.
struct Series<'a> {
    name: String,
    kb_per_s: Vec<f64>,
    /// What is to be said of it; empty of one level.
    words: String,
    colour: &'a str,
}

impl Series<'_> {
    fn rows(&self) -> impl Iterator<Item = Value> {
        let numbered = self.kb_per_s.iter().zip(1..);
        numbered.map(|(kb_per_s, number)| {
            json!({ "series": self.name, "repetition": number, "kb_per_s": kb_per_s })
        })
    }
}

/// One for each program of a run whose repetitions do not lie about one level.
pub(super) fn of_run(view: &View<'_>) -> Vec<Chart> {
    let shaped = |(_, row): &(usize, &Row<'_>)| !row.summary.shape.is_steady();
    let rows = view.rows.iter().enumerate().filter(shaped);
    let drawn = rows.map(|(number, row)| {
        let series = Series {
            name: super::titled(view, row),
            kb_per_s: row.result.kept().map(Repetition::kb_per_s).collect(),
            words: row.summary.shape.words(),
            colour: OF_RUNS[0],
        };
        let name = format!("repetitions-{}-{number}", slug(&view.run.id));
        let title = format!("{}: {}", series.name, series.words);
        chart(&name, title, &[series])
    });
    drawn.collect()
}

/// One for each compared pair of which either does not lie about one level.
pub(super) fn of_pairs(comparison: &Comparison) -> Vec<Chart> {
    let steady = |pair: &Pair| pair.base.shape.is_steady() && pair.other.shape.is_steady();
    let pairs = comparison.pairs.iter().enumerate();
    let drawn = pairs
        .filter(|(_, pair)| !steady(pair))
        .map(|(number, pair)| {
            let durable = match pair.quantity {
                Quantity::KbPerS => "",
                Quantity::DurableKbPerS => ", durable",
            };
            let sides = [("base", 0, &pair.base), ("other", pair.run, &pair.other)];
            let series = sides.map(|(role, run, side)| Series {
                name: format!("{role}: {}", comparison.run_name(run)),
                kb_per_s: side.repetitions_kb_per_s.clone(),
                words: side.shape.words(),
                colour: OF_RUNS[usize::from(role == "other")],
            });
            let said = series.iter().filter(|one| !one.words.is_empty());
            let said = said.map(|one| format!("{} {}", one.name, one.words));
            let said: Vec<String> = said.collect();
            let title = format!("{}{durable}: {}", pair.title, said.join("; "));
            chart(&format!("pair-{}-{number}", pair.run), title, &series)
        });
    drawn.collect()
}

fn chart(name: &str, title: String, all: &[Series<'_>]) -> Chart {
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
                "field": "kb_per_s", "type": "quantitative", "title": "KB/s",
                "axis": { "format": "~s", "tickCount": 4 },
            },
            "color": { "field": "series", "type": "nominal", "sort": null, "title": null,
                       "scale": { "domain": names, "range": colours } },
        },
        "layer": [
            { "mark": { "type": "line", "strokeWidth": 1 } },
            { "name": ROWS, "mark": { "type": "point", "filled": true, "size": 30, "opacity": 1,
                                      "tooltip": { "content": "data" } } },
        ],
    });
    let rows = all.iter().flat_map(Series::rows).collect();
    Chart::new(name, title, rows, view).caption(
        "The repetitions that count, in the order of running: one figure does not stand for them.",
    )
}
