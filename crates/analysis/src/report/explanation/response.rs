//! Mean response time by stage, as a table and JSON.

use super::{Line, ledger_lines};
use crate::explanation::response::Response;
use crate::explanation::words::{percent, stage};
use crate::report::document::{Column, Grid, Group};
use serde::Serialize;

pub(super) fn grid(response: &Response) -> Grid {
    let entries = response.ledger.entries();
    let mut names: Vec<String> = entries.iter().map(|one| stage(one.stage)).collect();
    let figure = |ns: f64| format!("{:.3}", ns / 1e6);
    let all = entries.iter().map(|one| one.duration);
    let all: Vec<_> = all.chain([response.ledger.total_duration()]).collect();
    let mut each: Vec<String> = all.iter().map(|ns| figure(response.each(*ns))).collect();
    let mut shares: Vec<String> = all.iter().map(|ns| percent(response.share(*ns))).collect();
    // In open loop a response counts from the arrival.
    match response.before_issue_ns {
        None => names.push("response".to_owned()),
        Some(before) => {
            let sums = ["issue to completion", "arrival to issue", "response"];
            names.extend(sums.map(str::to_owned));
            each.extend([figure(before), figure(before + response.mean_ns())]);
            shares.extend([String::new(), String::new()]);
        }
    }
    Grid {
        key: Column::words(
            &format!("the mean of {} requests", response.requests),
            names,
        ),
        groups: vec![Group::new(
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
    pub(super) fn from_response(response: &Response) -> Self {
        Self {
            requests: response.requests,
            under_way_mean: response.under_way_mean,
            mean_ns: response.mean_ns(),
            before_issue_mean_ns: response.before_issue_ns,
            total_ns: response.ledger.total_duration().0,
            stages: ledger_lines(response.ledger.entries()),
        }
    }
}
