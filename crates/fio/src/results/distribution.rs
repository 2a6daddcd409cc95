//! Distributions of queue depth and latency in the bins of fio's report.

use super::json::JsonNode;

/// Labels of the queue-depth bins, with the lowest depth of each bin.
const DEPTH_BINS: [(&str, u32); 7] = [
    ("1", 0),
    ("2", 2),
    ("4", 4),
    ("8", 8),
    ("16", 16),
    ("32", 32),
    (">=64", 64),
];

/// Labels of the batch-size bins, with the highest batch size of each bin.
const BATCH_BINS: [(&str, u32); 7] = [
    ("0", 0),
    ("4", 4),
    ("8", 8),
    ("16", 16),
    ("32", 32),
    ("64", 64),
    (">=64", u32::MAX),
];

/// Upper bounds of the latency bins, in ns, us or ms; the bound is not part of the bin.
const LATENCY_LIMITS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// Returns `iodepth_level`: shares of queue depths relative to the number of I/Os. Syncs can raise
/// the sum above 100 %.
pub(super) fn depth_shares(counts: &[(u32, u64)], ios: u64) -> JsonNode {
    let bin = |depth: u32| DEPTH_BINS.iter().rposition(|(_, from)| depth >= *from);
    bin_shares(&DEPTH_BINS, counts, ios, bin)
}

/// Returns `iodepth_submit` or `iodepth_complete`: shares of batch sizes relative to the number of
/// batches.
pub(super) fn batch_shares(counts: &[(u32, u64)]) -> JsonNode {
    let all = counts.iter().map(|(_, count)| count).sum();
    let bin = |batch: u32| BATCH_BINS.iter().position(|(_, most)| batch <= *most);
    bin_shares(&BATCH_BINS, counts, all, bin)
}

fn bin_shares(
    labels: &[(&str, u32); 7],
    counts: &[(u32, u64)],
    all: u64,
    bin: impl Fn(u32) -> Option<usize>,
) -> JsonNode {
    let mut bins = [0; 7];
    for &(value, count) in counts {
        bins[bin(value).unwrap_or(0)] += count;
    }
    let labelled = labels.iter().zip(bins);
    // fio shows that there is something.
    let share = |((label, _), count): (&(&str, u32), u64)| {
        (
            (*label).to_owned(),
            JsonNode::Float(percent_of(count, all, 0.1)),
        )
    };
    JsonNode::Object(labelled.map(share).collect())
}

fn percent_of(count: u64, all: u64, least: f64) -> f64 {
    match (count, all) {
        (0, _) | (_, 0) => 0.0,
        _ => (count as f64 / all as f64 * 100.0).max(least),
    }
}

/// Returns `latency_ns`, `latency_us` and `latency_ms` for completion latencies in ns.
pub(super) fn latency_shares(counts: &[(u64, u64)], ios: u64) -> [(&'static str, JsonNode); 3] {
    let mut bins = [[0u64; 12]; 3];
    for &(value, count) in counts {
        let (unit, value) = match value {
            0..1_000 => (0, value),
            1_000..1_000_000 => (1, value / 1_000),
            _ => (2, value / 1_000_000),
        };
        let bin = LATENCY_LIMITS
            .iter()
            .chain([&2000])
            .position(|&below| value < below);
        bins[unit][bin.unwrap_or(11)] += count;
    }
    let labels = LATENCY_LIMITS.iter().map(u64::to_string);
    let labels: Vec<String> = labels
        .chain(["2000".to_owned(), ">=2000".to_owned()])
        .collect();
    let node = |unit: usize, labelled: usize| {
        let shares = labels.iter().zip(bins[unit]).take(labelled);
        let share = |(label, count): (&String, u64)| {
            (label.clone(), JsonNode::Float(percent_of(count, ios, 0.01)))
        };
        JsonNode::Object(shares.map(share).collect())
    };
    [
        ("latency_ns", node(0, 10)),
        ("latency_us", node(1, 10)),
        ("latency_ms", node(2, 12)),
    ]
}
