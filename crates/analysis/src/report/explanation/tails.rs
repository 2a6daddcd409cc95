//! Causes of the slowest requests, as sentences, a table and JSON.

use super::super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use super::{LedgerLineJson, split_stage_label};
use crate::explanation::tail::{
    LatencyTail, RequestDirection, SlowRequestExample, TailCause, TailCheck, TailRerun,
};
use crate::explanation::words::{
    describe_stage_cause, format_percent, format_time_ms, stage_label,
};
use diskperf_timeline::trace::Position;
use diskperf_timeline::{Nanoseconds, Stage};
use serde::Serialize;

/// Minimum share of the time above p99 at which a remaining cause is mentioned.
const MENTION_SHARE_MIN: f64 = 0.1;
/// Relative difference of two shares of removed time above which a check contradicts a cause.
const CHECK_DIFFERENCE_MAX: f64 = 0.33;
/// Minimum duration in nanoseconds at which a stage of the example request is mentioned.
const MENTION_NS_MIN: u64 = 1000;

pub(super) fn build_blocks(tails: &[LatencyTail]) -> Vec<DocumentBlock> {
    let of = |tail: &LatencyTail| {
        [
            DocumentBlock::Text(describe_tail(tail)),
            DocumentBlock::Grid(build_cause_grid(tail)),
        ]
    };
    tails.iter().flat_map(of).collect()
}

fn plural_of_direction(way: RequestDirection) -> &'static str {
    match way {
        RequestDirection::Read => "reads",
        RequestDirection::Write => "writes",
    }
}

fn format_us(ns: f64) -> String {
    format!("{:.1} µs", ns / 1000.0)
}

fn describe_tail(tail: &LatencyTail) -> String {
    let mut all = vec![format!(
        "The slowest {} of {} {} took more than {} (p99), in total {} above it (p50 {}, p99.9 {}).",
        tail.slowest_count,
        tail.request_count,
        plural_of_direction(tail.direction),
        format_us(tail.p99.0 as f64),
        format_time_ms(tail.time_above_p99.0 as f64),
        format_us(tail.p50.0 as f64),
        format_us(tail.p999.0 as f64),
    )];
    if let Some(first) = tail.causes.first() {
        all.push(format!(
            "{}: {}, {} each, where {} have {} on average.",
            match first.rerun {
                Some(rerun) if tail.removed_share(&rerun) < MENTION_SHARE_MIN =>
                    "No single cause explains much of it; most",
                _ => "Top cause",
            },
            stage_label(first.stage),
            format_us(first.mean_of_slowest_ns),
            plural_of_direction(tail.direction),
            format_us(first.mean_ns),
        ));
        all.extend(first.rerun.map(|rerun| describe_rerun(tail, &rerun)));
        let check = tail.rerun_check.zip(first.rerun);
        all.extend(check.map(|(check, rerun)| describe_check(&check, tail.removed_share(&rerun))));
    }
    all.push(describe_example(tail.direction, &tail.slow_example));
    all.join(" ")
}

/// Describes the slowest requests in a rerun without their first cause, with the main remaining
/// wait.
fn describe_rerun(tail: &LatencyTail, rerun: &TailRerun) -> String {
    let is_much = 1.0 - tail.removed_share(rerun) > MENTION_SHARE_MIN;
    let left = rerun.main_stage_left.filter(|_| is_much);
    let left = left.map_or_else(String::new, |left| {
        format!("; the slowest then wait most for {}", stage_label(left))
    });
    format!(
        "{} without it removes {} of the time above p99 ({}): p99 {}, p99.9 {}{left}.",
        match rerun.has_same_arrivals {
            true => "A rerun",
            false => "The program again",
        },
        format_time_ms(tail.removed_ns(rerun) as f64),
        format_percent(tail.removed_share(rerun)),
        format_us(rerun.p99.0 as f64),
        format_us(rerun.p999.0 as f64),
    )
}

/// Describes whether the cause of slow requests also holds under other random numbers.
fn describe_check(check: &TailCheck, stated: f64) -> String {
    let there = check.removed_share();
    let doubt = match (there - stated).abs() > CHECK_DIFFERENCE_MAX * stated.abs() {
        true => ": that share differs, so use a longer run",
        false => "",
    };
    format!(
        "With other random numbers (seed {}) it removes {}{doubt}.",
        check.seed,
        format_percent(there)
    )
}

/// Describes the stages of the request at p99.9.
fn describe_example(way: RequestDirection, example: &SlowRequestExample) -> String {
    let at = match example.disk_position {
        Some(Position::Flash { channel, die }) => format!(" of die {die} on channel {channel}"),
        Some(Position::Disk(_)) | None => String::new(),
    };
    // A long request comes by the same stage many times.
    let mut parts: Vec<(Stage, Nanoseconds)> = Vec::new();
    for (stage, ns) in &example.stage_times {
        match parts.iter_mut().find(|(other, _)| other == stage) {
            Some((_, sum)) => sum.0 += ns.0,
            None => parts.push((*stage, *ns)),
        }
    }
    parts.retain(|(_, ns)| ns.0 >= MENTION_NS_MIN);
    let told = parts.iter().map(|(stage, ns)| {
        format!(
            "{} {}",
            format_us(ns.0 as f64),
            describe_stage_cause(*stage)
        )
    });
    let name = match way {
        RequestDirection::Read => "read",
        RequestDirection::Write => "write",
    };
    let told: Vec<String> = told.collect();
    format!(
        "The {name} at p99.9{at} took {}: {}.",
        format_us(example.response_time.0 as f64),
        told.join(", ")
    )
}

fn build_cause_grid(tail: &LatencyTail) -> Grid {
    let column = |of: &dyn Fn(&TailCause) -> String| tail.causes.iter().map(of).collect();
    let figure = |ns: f64| format!("{:.1}", ns / 1000.0);
    let above = tail.time_above_p99.0.max(1) as f64;
    let removed = |one: &TailCause| match &one.rerun {
        Some(rerun) => format_percent(tail.removed_share(rerun)),
        None => String::new(),
    };
    Grid {
        key_column: Column::left_aligned(
            &format!("the slowest 1 % of {}", plural_of_direction(tail.direction)),
            column(&|one| stage_label(one.stage)),
        ),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                Column::right_aligned("µs", column(&|one| figure(one.mean_of_slowest_ns))),
                Column::right_aligned("mean of all", column(&|one| figure(one.mean_ns))),
                Column::right_aligned("more", column(&|one| figure(one.excess_ns()))),
                Column::right_aligned(
                    "spent above p99",
                    column(&|one| format_percent(one.time_above_usual.0 as f64 / above)),
                ),
                Column::right_aligned("removed without it", column(&removed)),
            ],
        )],
    }
}

/// Tail of slow requests in the `explain` contract.
#[derive(Serialize)]
pub(super) struct TailJson {
    requests_of: RequestDirection,
    requests: usize,
    p50_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
    slowest: usize,
    above_p99_ns: u64,
    causes: Vec<TailCauseJson>,
    example: SlowExampleJson,
    check: Option<TailCheckJson>,
}

#[derive(Serialize)]
struct TailCauseJson {
    stage: String,
    cause: Option<String>,
    usual_ns: f64,
    slowest_ns: f64,
    spent_above_p99_ns: u64,
    rerun: Option<TailRerunJson>,
}

#[derive(Serialize)]
struct SlowExampleJson {
    ns: u64,
    position: Option<Position>,
    parts: Vec<LedgerLineJson>,
}

#[derive(Serialize)]
struct TailRerunJson {
    same_moments: bool,
    p99_ns: u64,
    p999_ns: u64,
    removed_ns: i64,
}

#[derive(Serialize)]
struct TailCheckJson {
    seed: u64,
    above_p99_ns: u64,
    removed_ns: i64,
}

impl TailJson {
    pub(super) fn from_tail(tail: &LatencyTail) -> Self {
        let causes = tail.causes.iter().map(|one| {
            let (stage, cause) = split_stage_label(one.stage);
            TailCauseJson {
                stage,
                cause,
                usual_ns: one.mean_ns,
                slowest_ns: one.mean_of_slowest_ns,
                spent_above_p99_ns: one.time_above_usual.0,
                rerun: one.rerun.map(|rerun| TailRerunJson {
                    same_moments: rerun.has_same_arrivals,
                    p99_ns: rerun.p99.0,
                    p999_ns: rerun.p999.0,
                    removed_ns: tail.removed_ns(&rerun),
                }),
            }
        });
        let parts = tail.slow_example.stage_times.iter().map(|(stage, ns)| {
            let (stage, cause) = split_stage_label(*stage);
            let ns = ns.0;
            LedgerLineJson { stage, cause, ns }
        });
        let check = tail.rerun_check.map(|check| TailCheckJson {
            seed: check.seed,
            above_p99_ns: check.time_above_p99.0,
            removed_ns: check.removed_ns,
        });
        Self {
            requests_of: tail.direction,
            requests: tail.request_count,
            p50_ns: tail.p50.0,
            p99_ns: tail.p99.0,
            p999_ns: tail.p999.0,
            slowest: tail.slowest_count,
            above_p99_ns: tail.time_above_p99.0,
            causes: causes.collect(),
            example: SlowExampleJson {
                ns: tail.slow_example.response_time.0,
                position: tail.slow_example.disk_position,
                parts: parts.collect(),
            },
            check,
        }
    }
}
