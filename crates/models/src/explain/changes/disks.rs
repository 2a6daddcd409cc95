//! Changes of a disk with firmware, a buffer and a link.

use super::{ChangeKind, ModelChange, ModelValues, new_change};

const LINK_BYTES_PER_S_MAX: &str = "1000000000000";

/// Parameters of the firmware's time per command and completion, and of the link's time per
/// transfer.
const OVERHEAD_KEYS: [&str; 17] = [
    "read_hit_ms",
    "read_hit_after_write_ms",
    "read_hit_sequential_ms",
    "read_hit_reading_ahead_ms",
    "read_miss_ms",
    "read_miss_after_write_ms",
    "read_miss_sequential_ms",
    "read_miss_reading_ahead_ms",
    "write_ms",
    "write_after_write_ms",
    "write_sequential_ms",
    "write_reading_ahead_ms",
    "write_sector_ms",
    "read_completion_ms",
    "write_completion_ms",
    "link_overhead_ms",
    "link_reconnect_ms",
];

/// Returns the changes of a disk with firmware; empty for other drives.
pub(super) fn disk_changes(values: &ModelValues<'_>) -> Vec<ModelChange> {
    if values.text("drive.queue_policy").is_none() {
        return Vec::new();
    }
    let mut all: Vec<ModelChange> = cost_changes(values).into_iter().flatten().collect();
    all.extend(choice_changes(values).into_iter().flatten());
    all.extend(size_changes(values).into_iter().flatten());
    all
}

fn cost_changes(values: &ModelValues<'_>) -> [Option<ModelChange>; 3] {
    let links = ["drive.link_bytes_per_s", "drive.link_write_bytes_per_s"];
    [
        new_change(
            "link infinitely fast",
            ChangeKind::Removed,
            links.map(|link| values.set_parameter(link, LINK_BYTES_PER_S_MAX)),
        ),
        new_change(
            "link twice as fast",
            ChangeKind::Halved,
            links.map(|link| values.multiply(link, 2.0)),
        ),
        new_change(
            "no firmware overhead per command",
            ChangeKind::Removed,
            OVERHEAD_KEYS.map(|key| values.set_parameter(&format!("drive.{key}"), "0")),
        ),
    ]
}

fn choice_changes(values: &ModelValues<'_>) -> Vec<Option<ModelChange>> {
    let choice = |(key, text): (&str, &str)| {
        let path = format!("drive.{key}");
        let words = format!("{path}={text}");
        new_change(
            &words,
            ChangeKind::Other,
            [values.set_parameter(&path, text)],
        )
    };
    let plain = [
        ("queue_policy", "fcfs"),
        ("queue_policy", "look"),
        ("queue_policy", "sptf"),
        ("read_ahead", "none"),
        ("read_ahead", "limit"),
        ("read_ahead", "whole_track"),
        ("link_reads", "in_pieces"),
        ("link_reads", "reconnected"),
        ("keep_written", "true"),
        ("keep_written", "false"),
        ("write_cache", "true"),
    ];
    plain.into_iter().map(choice).collect()
}

/// Returns changes of the numbers of commands, segments and sectors by a factor, such as half or
/// double.
fn size_changes(values: &ModelValues<'_>) -> Vec<Option<ModelChange>> {
    let size = |(key, factor): (&str, f64)| {
        let path = format!("drive.{key}");
        let value = (values.parameter_number(&path)? * factor).round();
        let words = format!("{path}={value}");
        new_change(
            &words,
            ChangeKind::Other,
            [values.set_parameter(&path, &value.to_string())],
        )
    };
    let keys = [
        ("queue_depth", 0.5),
        ("queue_depth", 2.0),
        ("cache_segments", 2.0),
        ("read_ahead_bytes", 0.5),
        ("read_ahead_bytes", 2.0),
        ("read_ahead_least_bytes", 0.0),
        ("read_ahead_least_bytes", 2.0),
        ("write_cache_extents", 2.0),
        ("write_cache_bytes", 2.0),
        ("media_cache_bytes", 2.0),
        ("media_cache_extents", 2.0),
    ];
    keys.into_iter().map(size).collect()
}
