//! Result of recording a disk as text lines, JSON and CSV.

use super::csv::{format_number, format_records};
use super::document::DocumentBlock;
use super::json::render_pretty;
use crate::recorded::RecordingSummary;
use diskperf_timeline::units::format_size;

pub(super) fn build_blocks(recorded: &RecordingSummary) -> Vec<DocumentBlock> {
    let elapsed_s = recorded.elapsed_s.max(1e-9);
    let mut lines = vec![
        format!(
            "{} reads, {} writes, {} others; {}: {:.0} requests/s, {:.2} MB/s",
            recorded.read_count,
            recorded.write_count,
            recorded.other_count,
            format_size(recorded.transferred_bytes),
            recorded.request_count as f64 / elapsed_s,
            recorded.transferred_bytes as f64 / elapsed_s / 1e6
        ),
        format!(
            "{} of them completed; events lost: {}",
            recorded.completed_count, recorded.lost_event_count
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
        DocumentBlock::Heading(format!(
            "{} requests of {} in {:.1} s",
            recorded.request_count,
            recorded.devices.join(" and "),
            recorded.elapsed_s
        )),
        DocumentBlock::List(lines),
    ]
}

pub(super) fn render_json(recorded: &RecordingSummary) -> String {
    render_pretty(recorded)
}

pub(super) fn render_csv(recorded: &RecordingSummary) -> String {
    let count = |count: u64| count.to_string();
    format_records(&[vec![
        ("devices", recorded.devices.join(" ")),
        ("elapsed_s", format_number(recorded.elapsed_s)),
        ("requests", count(recorded.request_count)),
        ("reads", count(recorded.read_count)),
        ("writes", count(recorded.write_count)),
        ("others", count(recorded.other_count)),
        ("completed", count(recorded.completed_count)),
        ("bytes", count(recorded.transferred_bytes)),
        ("lost_events", count(recorded.lost_event_count)),
        ("cpu_s", format_number(recorded.cpu_s)),
        ("cpu_share", format_number(recorded.cpu_share)),
    ]])
}
