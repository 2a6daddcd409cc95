//! Result of recording a disk as text lines, JSON and CSV.

use super::csv::{format_records, number};
use super::document::Block;
use super::json::pretty;
use crate::recorded::Observed;
use diskperf_timeline::units::format_size;

pub(super) fn blocks(recorded: &Observed) -> Vec<Block> {
    let elapsed_s = recorded.elapsed_s.max(1e-9);
    let mut lines = vec![
        format!(
            "{} reads, {} writes, {} others; {}: {:.0} requests/s, {:.2} MB/s",
            recorded.reads,
            recorded.writes,
            recorded.others,
            format_size(recorded.bytes),
            recorded.requests as f64 / elapsed_s,
            recorded.bytes as f64 / elapsed_s / 1e6
        ),
        format!(
            "{} of them completed; events lost: {}",
            recorded.completed, recorded.lost_events
        ),
        format!(
            "recording took {:.3} s of processor time, {:.2} % of one processor",
            recorded.cpu_s,
            100.0 * recorded.cpu_share
        ),
    ];
    if recorded.is_interrupted {
        lines.push("it was ended by a signal".to_owned());
    }
    lines.extend(recorded.notes.iter().cloned());
    vec![
        Block::Heading(format!(
            "{} requests of {} in {:.1} s",
            recorded.requests,
            recorded.devices.join(" and "),
            recorded.elapsed_s
        )),
        Block::List(lines),
    ]
}

pub(super) fn json(recorded: &Observed) -> String {
    pretty(recorded)
}

pub(super) fn csv(recorded: &Observed) -> String {
    let count = |count: u64| count.to_string();
    format_records(&[vec![
        ("devices", recorded.devices.join(" ")),
        ("elapsed_s", number(recorded.elapsed_s)),
        ("requests", count(recorded.requests)),
        ("reads", count(recorded.reads)),
        ("writes", count(recorded.writes)),
        ("others", count(recorded.others)),
        ("completed", count(recorded.completed)),
        ("bytes", count(recorded.bytes)),
        ("lost_events", count(recorded.lost_events)),
        ("cpu_s", number(recorded.cpu_s)),
        ("cpu_share", number(recorded.cpu_share)),
    ]])
}
