//! Mean response time by stage, as a table and JSON.

use super::{LedgerLineJson, ledger_json};
use crate::explanation::response::ResponseAccount;
use crate::explanation::words::{format_percent, stage_label};
use crate::report::document::{Column, ColumnGroup, Grid};
use serde::Serialize;

pub(super) fn build_grid(response: &ResponseAccount) -> Grid {
    let entries = response.ledger.entries();
    let mut names: Vec<String> = entries.iter().map(|one| stage_label(one.stage)).collect();
    let figure = |ns: f64| format!("{:.3}", ns / 1e6);
    let all = entries.iter().map(|one| one.duration);
    let all: Vec<_> = all.chain([response.ledger.total_duration()]).collect();
    let mut each: Vec<String> = all
        .iter()
        .map(|ns| figure(response.mean_of_total(*ns)))
        .collect();
    let mut shares: Vec<String> = all
        .iter()
        .map(|ns| format_percent(response.share_of_response(*ns)))
        .collect();
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
        key_column: Column::left_aligned(
            &format!("the mean of {} requests", response.request_count),
            names,
        ),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                Column::right_aligned("ms", each),
                Column::right_aligned("share", shares),
            ],
        )],
    }
}

/// Response times in the `explain` contract. They are sums over all requests in whole nanoseconds,
/// so that the stages sum to the total.
#[derive(Serialize)]
pub(super) struct ResponseJson {
    requests: u64,
    #[serde(rename = "under_way_mean")]
    in_flight_mean: f64,
    mean_ns: f64,
    /// Mean time from a request's arrival to its issue in nanoseconds, in open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    before_issue_mean_ns: Option<f64>,
    total_ns: u64,
    stages: Vec<LedgerLineJson>,
}

impl ResponseJson {
    pub(super) fn from_response(response: &ResponseAccount) -> Self {
        Self {
            requests: response.request_count,
            in_flight_mean: response.in_flight_mean,
            mean_ns: response.mean_ns(),
            before_issue_mean_ns: response.before_issue_ns,
            total_ns: response.ledger.total_duration().0,
            stages: ledger_json(response.ledger.entries()),
        }
    }
}
