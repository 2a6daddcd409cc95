//! Result of recording a disk as text lines, JSON and CSV.

use super::csv::{format_records, number};
use super::document::Block;
use super::json::pretty;
use crate::recorded::Observed;
use diskperf_timeline::units::format_size;

pub(super) fn blocks(found: &Observed) -> Vec<Block> {
    let elapsed_s = found.elapsed_s.max(1e-9);
    let mut lines = vec![
        format!(
            "{} reads, {} writes, {} others; {}: {:.0} requests/s, {:.2} MB/s",
            found.reads,
            found.writes,
            found.others,
            format_size(found.bytes),
            found.requests as f64 / elapsed_s,
            found.bytes as f64 / elapsed_s / 1e6
        ),
        format!(
            "{} of them completed; events lost: {}",
            found.completed, found.lost_events
        ),
        format!(
            "recording took {:.3} s of processor time, {:.2} % of one processor",
            found.cpu_s,
            100.0 * found.cpu_share
        ),
    ];
    if found.is_interrupted {
        lines.push("it was ended by a signal".to_owned());
    }
    lines.extend(found.notes.iter().cloned());
    vec![
        Block::Heading(format!(
            "{} requests of {} in {:.1} s",
            found.requests,
            found.devices.join(" and "),
            found.elapsed_s
        )),
        Block::List(lines),
    ]
}

pub(super) fn json(found: &Observed) -> String {
    pretty(found)
}

pub(super) fn csv(found: &Observed) -> String {
    let count = |count: u64| count.to_string();
    format_records(&[vec![
        ("devices", found.devices.join(" ")),
        ("elapsed_s", number(found.elapsed_s)),
        ("requests", count(found.requests)),
        ("reads", count(found.reads)),
        ("writes", count(found.writes)),
        ("others", count(found.others)),
        ("completed", count(found.completed)),
        ("bytes", count(found.bytes)),
        ("lost_events", count(found.lost_events)),
        ("cpu_s", number(found.cpu_s)),
        ("cpu_share", number(found.cpu_share)),
    ]])
}
