//! What the mean request spent its time in: a table, JSON.

use super::{Line, lines};
use crate::explanation::response::Response;
use crate::explanation::words::{percent, stage};
use crate::report::document::{Column, Grid, Group};
use serde::Serialize;

pub(super) fn grid(of: &Response) -> Grid {
    let entries = of.ledger.entries();
    let mut names: Vec<String> = entries.iter().map(|one| stage(one.stage)).collect();
    names.push("response".to_owned());
    let all: Vec<_> = (entries.iter().map(|one| one.ns))
        .chain([of.ledger.total()])
        .collect();
    let figure = |ns: f64| format!("{:.3}", ns / 1e6);
    Grid {
        key: Column::words(&format!("the mean of {} requests", of.requests), names),
        groups: vec![Group::of(
            "",
            vec![
                Column::figures("ms", all.iter().map(|ns| figure(of.each(*ns))).collect()),
                Column::figures(
                    "share",
                    all.iter().map(|ns| percent(of.share(*ns))).collect(),
                ),
            ],
        )],
    }
}

/// The same, as the `explain` contract has it: what all requests took together, in whole
/// nanoseconds, so that the stages sum to it.
#[derive(Serialize)]
pub(super) struct ResponseLine {
    requests: u64,
    under_way_mean: f64,
    mean_ns: f64,
    total_ns: u64,
    stages: Vec<Line>,
}

impl ResponseLine {
    pub(super) fn of(of: &Response) -> Self {
        Self {
            requests: of.requests,
            under_way_mean: of.under_way_mean,
            mean_ns: of.mean_ns(),
            total_ns: of.ledger.total().0,
            stages: lines(of.ledger.entries()),
        }
    }
}
