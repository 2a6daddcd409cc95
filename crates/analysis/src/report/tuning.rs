//! What trying every value found: tables, JSON, CSV.

use super::csv::{Field, number, written};
use super::document::{Block, Column, Grid, Group};
use super::json::pretty;
use crate::tuning::{CLIFF_SHARE, Step, Tuned};

/// The search as a report.
pub(super) fn blocks(tuned: &Tuned) -> Vec<Block> {
    let keys: Vec<&str> = tuned.keys.iter().map(|key| key.path.as_str()).collect();
    let heading = format!("{}: KB/s over {}", tuned.what, keys.join(" and "));
    let mut remarks = vec![best(tuned)];
    remarks.extend(tuned.steps().iter().map(step));
    vec![
        Block::Heading(heading),
        Block::Grid(grid(tuned)),
        Block::List(remarks),
    ]
}

/// The last key's values side by side, those of the others below each other.
fn grid(tuned: &Tuned) -> Grid {
    let (last, others) = tuned.keys.split_last().expect("a key was tried");
    let columns = last.values.len();
    let rows = tuned.kb_per_s.len() / columns;
    let name = |row: usize| {
        let places = tuned.places(row * columns);
        let values = others.iter().zip(&places);
        let words: Vec<&str> = values.map(|(key, place)| &*key.values[*place]).collect();
        words.join(" ")
    };
    let best = tuned.best();
    let cell = |row: usize, column: usize| {
        let place = row * columns + column;
        let mark = if place == best { "*" } else { "" };
        format!("{}{mark}", rate(tuned.kb_per_s[place]))
    };
    // A single key reads better downwards.
    if others.is_empty() {
        return Grid {
            key: Column::figures(&last.path, last.values.clone()),
            groups: vec![Group::of(
                "",
                vec![Column::figures(
                    "KB/s",
                    (0..columns).map(|column| cell(0, column)).collect(),
                )],
            )],
        };
    }
    let paths: Vec<&str> = others.iter().map(|key| key.path.as_str()).collect();
    let of_value = |(column, value): (usize, &String)| {
        Column::figures(value, (0..rows).map(|row| cell(row, column)).collect())
    };
    Grid {
        key: Column::figures(&paths.join(" "), (0..rows).map(name).collect()),
        groups: vec![Group::of(
            &last.path,
            last.values.iter().enumerate().map(of_value).collect(),
        )],
    }
}

fn best(tuned: &Tuned) -> String {
    let best = tuned.best();
    let values: Vec<String> = tuned
        .keys
        .iter()
        .zip(tuned.places(best))
        .map(|(key, place)| format!("{}={}", key.path, key.values[place]))
        .collect();
    format!(
        "* best: {}, {} KB/s",
        values.join(", "),
        rate(tuned.kb_per_s[best])
    )
}

fn step(step: &Step) -> String {
    let cliff = if step.change <= -CLIFF_SHARE {
        ": a cliff"
    } else {
        ""
    };
    format!(
        "{} from {} to {}: {:+.1} %{cliff}",
        step.path,
        step.from,
        step.to,
        100.0 * step.change
    )
}

fn rate(kb_per_s: f64) -> String {
    let digits = if kb_per_s < 100.0 { 1 } else { 0 };
    format!("{kb_per_s:.digits$}")
}

/// The `tune` contract: what was tried, and the best of it.
pub(super) fn json(tuned: &Tuned) -> String {
    #[derive(serde::Serialize)]
    struct Found<'t> {
        #[serde(flatten)]
        tuned: &'t Tuned,
        best: usize,
        steps: Vec<Step>,
    }
    pretty(&Found {
        tuned,
        best: tuned.best(),
        steps: tuned.steps(),
    })
}

/// One line for each combination.
pub(super) fn csv(tuned: &Tuned) -> String {
    let best = tuned.best();
    let record = |(place, rate): (usize, &f64)| -> Vec<Field> {
        let keys = tuned.keys.iter().zip(tuned.places(place));
        let mut record: Vec<Field> = Vec::new();
        let values: Vec<String> = keys
            .map(|(key, place)| format!("{}={}", key.path, key.values[place]))
            .collect();
        record.push(("settings", values.join(" ")));
        record.push(("kb_per_s", number(*rate)));
        record.push(("best", (place == best).to_string()));
        record
    };
    let records: Vec<Vec<Field>> = tuned.kb_per_s.iter().enumerate().map(record).collect();
    written(&records)
}
