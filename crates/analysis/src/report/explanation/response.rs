//! Mean response time by stage, as a table and JSON.

use super::{Line, ledger_lines};
use crate::explanation::response::Response;
use crate::explanation::words::{percent, stage};
use crate::report::document::{Column, Grid, Group};
use serde::Serialize;

pub(super) fn grid(of: &Response) -> Grid {
    let entries = of.ledger.entries();
    let mut names: Vec<String> = entries.iter().map(|one| stage(one.stage)).collect();
    let figure = |ns: f64| format!("{:.3}", ns / 1e6);
    let all = entries.iter().map(|one| one.ns);
    let all: Vec<_> = all.chain([of.ledger.total()]).collect();
    let mut each: Vec<String> = all.iter().map(|ns| figure(of.each(*ns))).collect();
    let mut shares: Vec<String> = all.iter().map(|ns| percent(of.share(*ns))).collect();
    // In open loop a response counts from the arrival.
    match of.before_issue_ns {
        None => names.push("response".to_owned()),
        Some(before) => {
            let sums = ["issue to completion", "arrival to issue", "response"];
            names.extend(sums.map(str::to_owned));
            each.extend([figure(before), figure(before + of.mean_ns())]);
            shares.extend([String::new(), String::new()]);
        }
    }
    Grid {
        key: Column::words(&format!("the mean of {} requests", of.requests), names),
        groups: vec![Group::of(
            "",
            vec![
                Column::figures("ms", each),
                Column::figures("share", shares),
            ],
        )],
    }
}

/// Response times in the `explain` contract. They are sums over all requests in whole nanoseconds,
/// so that the stages sum to the total.
#[derive(Serialize)]
pub(super) struct ResponseLine {
    requests: u64,
    under_way_mean: f64,
    mean_ns: f64,
    /// Mean time from a request's arrival to its issue in nanoseconds, in open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    before_issue_mean_ns: Option<f64>,
    total_ns: u64,
    stages: Vec<Line>,
}

impl ResponseLine {
    pub(super) fn of(of: &Response) -> Self {
        Self {
            requests: of.requests,
            under_way_mean: of.under_way_mean,
            mean_ns: of.mean_ns(),
            before_issue_mean_ns: of.before_issue_ns,
            total_ns: of.ledger.total().0,
            stages: ledger_lines(of.ledger.entries()),
        }
    }
}
