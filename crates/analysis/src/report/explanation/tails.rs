//! Causes of the slowest requests, as sentences, a table and JSON.

use super::super::document::{Block, Column, Grid, Group};
use super::{Line, name_stage};
use crate::explanation::tail::{Example, Tail, TailCause, TailCheck, TailRerun, Way};
use crate::explanation::words::{cause, milliseconds, percent, stage};
use diskperf_timeline::trace::Position;
use diskperf_timeline::{Nanoseconds, Stage};
use serde::Serialize;

/// Minimum share of the time above p99 at which a remaining cause is mentioned.
const MENTION_SHARE_MIN: f64 = 0.1;
/// Relative difference of two shares of removed time above which a check contradicts a cause.
const CHECK_DIFFERENCE_MAX: f64 = 0.33;
/// Minimum duration in nanoseconds at which a stage of the example request is mentioned.
const MENTION_NS_MIN: u64 = 1000;

pub(super) fn blocks(tails: &[Tail]) -> Vec<Block> {
    let of = |tail: &Tail| {
        [
            Block::Text(describe_tail(tail)),
            Block::Grid(cause_grid(tail)),
        ]
    };
    tails.iter().flat_map(of).collect()
}

fn plural_of_direction(way: Way) -> &'static str {
    match way {
        Way::Read => "reads",
        Way::Write => "writes",
    }
}

fn us(ns: f64) -> String {
    format!("{:.1} µs", ns / 1000.0)
}

fn describe_tail(tail: &Tail) -> String {
    let mut all = vec![format!(
        "The slowest {} of {} {} took more than {} (p99), in total {} above it (p50 {}, p99.9 {}).",
        tail.slowest,
        tail.requests,
        plural_of_direction(tail.way),
        us(tail.p99.0 as f64),
        milliseconds(tail.above.0 as f64),
        us(tail.p50.0 as f64),
        us(tail.p999.0 as f64),
    )];
    if let Some(first) = tail.causes.first() {
        all.push(format!(
            "{}: {}, {} each, where {} have {} on average.",
            match first.rerun {
                Some(rerun) if tail.removed_share(&rerun) < MENTION_SHARE_MIN =>
                    "No single cause explains much of it; most",
                _ => "Top cause",
            },
            stage(first.stage),
            us(first.slowest_ns),
            plural_of_direction(tail.way),
            us(first.usual_ns),
        ));
        all.extend(first.rerun.map(|rerun| describe_rerun(tail, &rerun)));
        let check = tail.check.zip(first.rerun);
        all.extend(check.map(|(check, rerun)| describe_check(&check, tail.removed_share(&rerun))));
    }
    all.push(describe_example(tail.way, &tail.example));
    all.join(" ")
}

/// Describes the slowest requests in a rerun without their first cause, with the main remaining
/// wait.
fn describe_rerun(tail: &Tail, rerun: &TailRerun) -> String {
    let is_much = 1.0 - tail.removed_share(rerun) > MENTION_SHARE_MIN;
    let left = rerun.left.filter(|_| is_much);
    let left = left.map_or_else(String::new, |left| {
        format!("; the slowest then wait most for {}", stage(left))
    });
    format!(
        "{} without it removes {} of the time above p99 ({}): p99 {}, p99.9 {}{left}.",
        match rerun.same_moments {
            true => "A rerun",
            false => "The program again",
        },
        milliseconds(tail.removed(rerun) as f64),
        percent(tail.removed_share(rerun)),
        us(rerun.p99.0 as f64),
        us(rerun.p999.0 as f64),
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
        percent(there)
    )
}

/// Describes the stages of the request at p99.9.
fn describe_example(way: Way, example: &Example) -> String {
    let at = match example.position {
        Some(Position::Flash { channel, die }) => format!(" of die {die} on channel {channel}"),
        Some(Position::Disk(_)) | None => String::new(),
    };
    // A long request comes by the same stage many times.
    let mut parts: Vec<(Stage, Nanoseconds)> = Vec::new();
    for (stage, ns) in &example.parts {
        match parts.iter_mut().find(|(other, _)| other == stage) {
            Some((_, sum)) => sum.0 += ns.0,
            None => parts.push((*stage, *ns)),
        }
    }
    parts.retain(|(_, ns)| ns.0 >= MENTION_NS_MIN);
    let told = parts
        .iter()
        .map(|(stage, ns)| format!("{} {}", us(ns.0 as f64), cause(*stage)));
    let name = match way {
        Way::Read => "read",
        Way::Write => "write",
    };
    let told: Vec<String> = told.collect();
    format!(
        "The {name} at p99.9{at} took {}: {}.",
        us(example.took.0 as f64),
        told.join(", ")
    )
}

fn cause_grid(tail: &Tail) -> Grid {
    let column = |of: &dyn Fn(&TailCause) -> String| tail.causes.iter().map(of).collect();
    let figure = |ns: f64| format!("{:.1}", ns / 1000.0);
    let above = tail.above.0.max(1) as f64;
    let removed = |one: &TailCause| match &one.rerun {
        Some(rerun) => percent(tail.removed_share(rerun)),
        None => String::new(),
    };
    Grid {
        key: Column::words(
            &format!("the slowest 1 % of {}", plural_of_direction(tail.way)),
            column(&|one| stage(one.stage)),
        ),
        groups: vec![Group::of(
            "",
            vec![
                Column::figures("µs", column(&|one| figure(one.slowest_ns))),
                Column::figures("mean of all", column(&|one| figure(one.usual_ns))),
                Column::figures("more", column(&|one| figure(one.excess_ns()))),
                Column::figures(
                    "spent above p99",
                    column(&|one| percent(one.spent_above.0 as f64 / above)),
                ),
                Column::figures("removed without it", column(&removed)),
            ],
        )],
    }
}

/// Tail of slow requests in the `explain` contract.
#[derive(Serialize)]
pub(super) struct TailLine {
    requests_of: Way,
    requests: usize,
    p50_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
    slowest: usize,
    above_p99_ns: u64,
    causes: Vec<CauseLine>,
    example: ExampleLine,
    check: Option<CheckLine>,
}

#[derive(Serialize)]
struct CauseLine {
    stage: String,
    cause: Option<String>,
    usual_ns: f64,
    slowest_ns: f64,
    spent_above_p99_ns: u64,
    rerun: Option<RerunLine>,
}

#[derive(Serialize)]
struct ExampleLine {
    ns: u64,
    position: Option<Position>,
    parts: Vec<Line>,
}

#[derive(Serialize)]
struct RerunLine {
    same_moments: bool,
    p99_ns: u64,
    p999_ns: u64,
    removed_ns: i64,
}

#[derive(Serialize)]
struct CheckLine {
    seed: u64,
    above_p99_ns: u64,
    removed_ns: i64,
}

impl TailLine {
    pub(super) fn of(tail: &Tail) -> Self {
        let causes = tail.causes.iter().map(|one| {
            let (stage, cause) = name_stage(one.stage);
            CauseLine {
                stage,
                cause,
                usual_ns: one.usual_ns,
                slowest_ns: one.slowest_ns,
                spent_above_p99_ns: one.spent_above.0,
                rerun: one.rerun.map(|rerun| RerunLine {
                    same_moments: rerun.same_moments,
                    p99_ns: rerun.p99.0,
                    p999_ns: rerun.p999.0,
                    removed_ns: tail.removed(&rerun),
                }),
            }
        });
        let parts = tail.example.parts.iter().map(|(stage, ns)| {
            let (stage, cause) = name_stage(*stage);
            let ns = ns.0;
            Line { stage, cause, ns }
        });
        let check = tail.check.map(|check| CheckLine {
            seed: check.seed,
            above_p99_ns: check.above.0,
            removed_ns: check.removed,
        });
        Self {
            requests_of: tail.way,
            requests: tail.requests,
            p50_ns: tail.p50.0,
            p99_ns: tail.p99.0,
            p999_ns: tail.p999.0,
            slowest: tail.slowest,
            above_p99_ns: tail.above.0,
            causes: causes.collect(),
            example: ExampleLine {
                ns: tail.example.took.0,
                position: tail.example.position,
                parts: parts.collect(),
            },
            check,
        }
    }
}
