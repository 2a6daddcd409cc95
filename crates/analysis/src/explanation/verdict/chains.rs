//! Verdict on a program whose operations were followed through all that they waited for.

use super::super::TimeAccount;
use super::super::chains::{OperationBreakdown, OperationPart};
use super::super::words::{describe_part, format_percent};
use super::storage::{describe_durable_time, describe_requests};
use diskperf_chains::Purpose;
use diskperf_timeline::units::format_nanoseconds;
use diskperf_timeline::{Nanoseconds, Repetition, Stage};

/// Minimum share of an operation's time at which a part of it is mentioned.
const PART_SHARE_MIN: f64 = 0.1;
/// Maximum number of parts that the verdict mentions.
const PART_COUNT_MAX: usize = 3;
/// Minimum share of an operation's time at which a cause has a remedy worth its words.
const CAUSE_SHARE_MIN: f64 = 0.25;
/// Operations between two syncs in the estimate of what grouping would save.
const GROUPED_OPERATIONS: u64 = 8;

/// Describes the kind of operation that takes most of the time, its largest parts, and what would
/// help.
pub fn write_chain_verdict(
    account: &TimeAccount,
    breakdowns: &[OperationBreakdown],
    repetition: &Repetition,
) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(main) = breakdowns.first() {
        let worked = Nanoseconds(repetition.sum_over_workers(|worker| worker.elapsed_time.0));
        sentences.push(describe_main(account.elapsed.max(worked), main));
        sentences.extend(describe_remedy(main));
    }
    sentences.extend(describe_requests(account, repetition));
    sentences.extend(describe_unattributed(account));
    sentences.extend(describe_durable_time(repetition));
    sentences
}

/// Describes the operations and their share of the time of all workers.
fn describe_main(worked: Nanoseconds, main: &OperationBreakdown) -> String {
    let share = main.total.0 as f64 / worked.0.max(1) as f64;
    let parts = main
        .parts
        .iter()
        .take(PART_COUNT_MAX)
        .filter(|part| part.total.0 as f64 / main.total.0.max(1) as f64 >= PART_SHARE_MIN);
    let parts: Vec<String> = parts
        .map(|part| {
            let each = Nanoseconds(part.total.0 / main.operation_count.max(1));
            let share = part.total.0 as f64 / main.total.0.max(1) as f64;
            format!(
                "{} {} ({})",
                format_nanoseconds(each),
                describe_part(part),
                format_percent(share)
            )
        })
        .collect();
    let whole = match share {
        // Requests of a ring overlap, so that together they may take longer than the program.
        share if share > 1.0 => String::new(),
        share => format!(", {} of the program's time", format_percent(share)),
    };
    let list = match parts.as_slice() {
        [] => "no part of it stands out".to_owned(),
        parts => parts.join(", "),
    };
    format!(
        "{} {} take {} each on average{whole}: {list}.",
        main.operation_count,
        plural(main.operation),
        format_nanoseconds(main.mean()),
    )
}

fn plural(operation: &str) -> String {
    match operation {
        "names" => "calls on names".to_owned(),
        "other" => "other calls on files".to_owned(),
        operation => match operation.strip_prefix("ring ") {
            Some(operation) => format!("{operation} requests of the ring"),
            None => format!("calls of {operation}"),
        },
    }
}

/// Cause of an operation's time that has a remedy.
struct Cause {
    selects: fn(&OperationPart) -> bool,
    /// Describes the cause, given its time in a mean operation, and what would help.
    describe: fn(Nanoseconds) -> String,
}

fn is_commit(part: &OperationPart) -> bool {
    let is_of_commit = matches!(
        part.purpose,
        Purpose::Commit | Purpose::LogBlocks | Purpose::CommitBlock
    );
    is_of_commit && part.stage != Stage::CpuWait
}

fn is_flush(part: &OperationPart) -> bool {
    part.purpose == Purpose::Flush || matches!(part.stage, Stage::Flush | Stage::FlushWait)
}

/// Causes, the more specific ones first.
const CAUSES: [Cause; 8] = [
    Cause {
        selects: |part| part.stage == Stage::CgroupThrottle,
        describe: |each| {
            format!(
                "The limit of the program's cgroup on I/O holds each operation back for {}; raise io.max (blkio.throttle.*).",
                format_nanoseconds(each)
            )
        },
    },
    Cause {
        selects: |part| part.purpose == Purpose::EarlierCommit,
        describe: |each| {
            format!(
                "Each waits {} until the journal has committed an earlier transaction, which holds data of other calls or programs; fewer syncs at a time, or a file system of its own, would avoid that.",
                format_nanoseconds(each)
            )
        },
    },
    Cause {
        selects: |part| part.stage == Stage::TagWait,
        describe: |each| {
            format!(
                "Each waits {} for a free request of the block layer; raise queue/nr_requests of the disk, unless its write-back limit (queue/wbt_lat_usec) or the cgroup's io.cost or io.latency holds requests back.",
                format_nanoseconds(each)
            )
        },
    },
    Cause {
        selects: |part| part.stage == Stage::DirtyThrottle,
        describe: |each| {
            format!(
                "The kernel slows the writer down by {} each, since too many pages are dirty; write less, or faster storage is needed.",
                format_nanoseconds(each)
            )
        },
    },
    Cause {
        selects: |part| part.stage == Stage::Reclaim,
        describe: |each| {
            format!(
                "Each spends {} on freeing memory first; raise the limit of the memory cgroup, or use less memory.",
                format_nanoseconds(each)
            )
        },
    },
    Cause {
        selects: is_commit,
        describe: |each| {
            format!(
                "The journal's commit takes {} of each; overwriting blocks that are already allocated and fdatasync need no commit, and would save up to that (an estimate from these chains).",
                format_nanoseconds(each)
            )
        },
    },
    Cause {
        selects: is_flush,
        describe: |each| {
            let saved = Nanoseconds(each.0 / GROUPED_OPERATIONS * (GROUPED_OPERATIONS - 1));
            format!(
                "Flushes of the device take {} of each; one sync for {GROUPED_OPERATIONS} operations would save {} an operation (an estimate from these chains).",
                format_nanoseconds(each),
                format_nanoseconds(saved)
            )
        },
    },
    Cause {
        selects: |part| part.stage == Stage::CpuWait,
        describe: |each| {
            format!(
                "For {} of each a task was ready and had no processor: other tasks, the program's own among them, had it, or it woke from idling first.",
                format_nanoseconds(each)
            )
        },
    },
];

/// Describes the cause with the largest share that has a remedy.
fn describe_remedy(main: &OperationBreakdown) -> Option<String> {
    let shares = CAUSES
        .iter()
        .map(|cause| (main.share(cause.selects), cause));
    let large = shares.filter(|(share, _)| *share >= CAUSE_SHARE_MIN);
    // Of equal shares the first, which is the more specific one.
    let (share, cause) = large.reduce(|best, one| if one.0 > best.0 { one } else { best })?;
    let each = Nanoseconds((share * main.mean().0 as f64).round() as u64);
    Some((cause.describe)(each))
}

fn describe_unattributed(account: &TimeAccount) -> Option<String> {
    let unknown = account.ledger.stage_duration(Stage::Unattributed);
    let share = unknown.0 as f64 / account.elapsed.0.max(1) as f64;
    (share >= super::MENTION_SHARE_MIN).then(|| {
        format!(
            "For {} of the time the events do not show what the program waited for.",
            format_percent(share)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explanation::ValueQuantiles;
    use crate::explanation::chains::OperationTimeline;

    /// Eight calls of 30 ns each.
    fn breakdown() -> OperationBreakdown {
        let timeline = OperationTimeline {
            duration: Nanoseconds(30),
            links: Vec::new(),
        };
        OperationBreakdown {
            operation: "fsync",
            operation_count: 8,
            incomplete_count: 0,
            total: Nanoseconds(240),
            duration_ns: ValueQuantiles::from_values(&[30; 8]).expect("values"),
            parts: Vec::new(),
            typical: timeline.clone(),
            slowest: timeline,
        }
    }

    #[test]
    fn the_share_of_calls_is_of_the_time_of_all_workers() {
        let of_workers = |worked| describe_main(Nanoseconds(worked), &breakdown());
        assert!(of_workers(480).contains("50 % of the program's time"));
        let of_ring = of_workers(100);
        assert!(!of_ring.contains('%'), "{of_ring}");
    }
}
