//! Volumes under a load, as tables and CSV.

use super::csv::{CsvField, format_number, format_optional, format_records};
use super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use crate::volume::{LoadFigures, VolumeFigures, VolumePhase, VolumeReport, VolumeVerdict};
use diskperf_timeline::Nanoseconds;
use diskperf_timeline::units::{format_nanoseconds, format_size};

/// Phases of a single volume that are printed.
const PHASES_PRINTED_MAX: usize = 24;

pub(super) fn build_blocks(report: &VolumeReport) -> Vec<DocumentBlock> {
    let mut blocks = vec![
        DocumentBlock::Heading(describe_load(&report.load)),
        DocumentBlock::Grid(build_grid(report)),
    ];
    if let [only] = &report.volumes[..] {
        blocks.push(DocumentBlock::Grid(build_phases(only)));
    }
    blocks.push(DocumentBlock::List(list_remarks(report)));
    blocks
}

fn describe_load(load: &LoadFigures) -> String {
    let bytes = format_size(load.bytes_mean.round() as u64);
    let arrivals = match (load.iops_mean, load.iops_max, load.depth) {
        (Some(mean), Some(max), _) => format!(
            "{} requests/s on average, {} at most",
            format_count(mean),
            format_count(max)
        ),
        (.., depth) => format!("{} requests in flight", depth.unwrap_or(0)),
    };
    let repeated = match load.total_s > load.duration_s {
        true => format!(", {} repeated", format_duration(load.duration_s)),
        false => String::new(),
    };
    format!(
        "{} for {}{repeated}: {arrivals}, of {bytes}, {:.0} % reads",
        load.name,
        format_duration(load.total_s),
        load.read_share * 100.0
    )
}

/// Formats a duration as `45 s`, `12.5 min`, `7.5 h` or `7 d`.
fn format_duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        short if short < 1.0 => return format_milliseconds(seconds * 1000.0),
        short if short < 120.0 => (seconds, "s"),
        middle if middle < 7200.0 => (seconds / 60.0, "min"),
        middle if middle <= 48.0 * 3600.0 => (seconds / 3600.0, "h"),
        _ => (seconds / 86_400.0, "d"),
    };
    let text = format!("{value:.1}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

fn format_milliseconds(ms: f64) -> String {
    format_nanoseconds(Nanoseconds((ms * 1e6) as u64))
}

fn format_response(ms: f64) -> String {
    match ms {
        long if long >= 10_000.0 => format_duration(ms / 1000.0),
        _ => format_milliseconds(ms),
    }
}

fn format_count(count: f64) -> String {
    match count {
        large if large >= 9999.5 => format!("{:.0}k", large / 1000.0),
        large if large >= 100.0 => format!("{large:.0}"),
        small => {
            let text = format!("{small:.1}");
            text.strip_suffix(".0").unwrap_or(&text).to_owned()
        }
    }
}

fn format_backlog(requests: f64) -> String {
    match requests {
        none if none < 1.0 => "-".to_owned(),
        many if many >= 1e6 => format!("{:.2} million", many / 1e6),
        some => format!("{some:.0}"),
    }
}

fn verdict_label(verdict: VolumeVerdict) -> &'static str {
    match verdict {
        VolumeVerdict::Carries => "carried",
        VolumeVerdict::FallsBehind => "falls behind",
        VolumeVerdict::Fails => "not carried",
        VolumeVerdict::Steady => "steady",
        VolumeVerdict::Slows => "slows down",
    }
}

/// Formats what is provisioned of a volume, and the user's settings: `3000 IOPS, 125 MB/s`.
fn describe_settings(volume: &VolumeFigures) -> String {
    let provisioned = volume
        .settings
        .iter()
        .map(|setting| match setting.split_once('=') {
            Some(("drive.iops", iops)) => format!("{iops} IOPS"),
            Some(("drive.bytes_per_s", bytes)) => {
                let mb = bytes.replace('_', "").parse().unwrap_or(0.0) / 1e6;
                format!("{mb:.0} MB/s")
            }
            Some(("drive.tier", tier)) => tier.to_owned(),
            _ => setting.strip_prefix("drive.").unwrap_or(setting).to_owned(),
        });
    provisioned.collect::<Vec<_>>().join(", ")
}

fn build_grid(report: &VolumeReport) -> Grid {
    let volumes = &report.volumes;
    // A column in which no volume has a figure is left out.
    let right = |heading: &str, cell: &dyn Fn(&VolumeFigures) -> String| {
        let mut cells: Vec<String> = volumes.iter().map(cell).collect();
        if cells.iter().all(|cell| cell == "-") {
            cells.iter_mut().for_each(String::clear);
        }
        Column::right_aligned(heading, cells)
    };
    let is_open = report.load.is_open;
    let left = |heading: &str, cell: &dyn Fn(&VolumeFigures) -> String| {
        Column::left_aligned(heading, volumes.iter().map(cell).collect())
    };
    let mut columns = vec![
        left("with", &describe_settings),
        left("load", &|of| verdict_label(of.verdict).to_owned()),
    ];
    if !is_open {
        columns.push(right("IOPS", &|of| format_count(of.iops_start)));
        columns.push(right("at the end", &|of| format_count(of.iops_end)));
    }
    columns.push(right("p50", &|of| format_response(of.p50_ms)));
    columns.push(right("p99", &|of| format_response(of.p99_ms)));
    columns.push(right("credits end", &|of| {
        of.credits_end_s.map_or("-".to_owned(), format_duration)
    }));
    columns.push(right("credits left", &|of| {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        of.credits_left_share.map_or("-".to_owned(), percent)
    }));
    if is_open {
        columns.push(right("max wait", &|of| match of.wait_max_s {
            short if short < 1e-3 => "-".to_owned(),
            long => format_duration(long),
        }));
        columns.push(right("left over", &|of| format_backlog(of.backlog_end)));
    }
    Grid {
        key_column: Column::left_aligned(
            "volume",
            volumes
                .iter()
                .map(|of| format!("{} {} GiB", of.volume, of.size_gib))
                .collect(),
        ),
        groups: vec![ColumnGroup::new("", columns)],
    }
}

/// Tabulates the phases of a single volume.
fn build_phases(volume: &VolumeFigures) -> Grid {
    let phases = &volume.phases[..volume.phases.len().min(PHASES_PRINTED_MAX)];
    let right = |heading: &str, cell: &dyn Fn(&VolumePhase) -> String| {
        Column::right_aligned(heading, phases.iter().map(cell).collect())
    };
    let limit = |of: &VolumePhase| match (&of.limit, of.credits_ended) {
        (Some(limit), true) => format!("{limit}, without credits"),
        (Some(limit), false) => limit.clone(),
        (None, _) => "the load".to_owned(),
    };
    Grid {
        key_column: Column::right_aligned(
            "from",
            phases
                .iter()
                .map(|of| format_duration(of.start_s))
                .collect(),
        ),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                right("until", &|of| format_duration(of.end_s)),
                right("requests/s", &|of| format_count(of.iops)),
                right("backlog", &|of| format_backlog(of.backlog_end)),
                Column::left_aligned("limited by", phases.iter().map(limit).collect()),
            ],
        )],
    }
}

fn list_remarks(report: &VolumeReport) -> Vec<String> {
    let mut remarks = Vec::new();
    let volumes = &report.volumes;
    if report.load.is_open {
        remarks.push(
            "carried: no request waits for a limit for more than 1 s; falls behind: some do, and each repetition catches up; not carried: the backlog grows from one repetition to the next"
                .to_owned(),
        );
    } else {
        remarks.push(
            "a fixed number of requests in flight takes what a volume gives; give the jobs a rate (rate_iops) to ask which volume is enough"
                .to_owned(),
        );
    }
    if volumes.iter().any(|of| of.is_smallest) {
        remarks.push(
            "of each type, the smallest volume that carries the load, or the largest; --volume TYPE:SIZE asks about one"
                .to_owned(),
        );
    }
    if report.load.size_gib_min > 1 {
        remarks.push(format!("the data take {} GiB", report.load.size_gib_min));
    }
    if let [only] = &volumes[..] {
        let left_out = only.phases_left_out + only.phases.len().saturating_sub(PHASES_PRINTED_MAX);
        if left_out > 0 {
            remarks.push(format!("{left_out} more phases are not listed"));
        }
    }
    remarks.extend(report.load.notes.iter().cloned());
    remarks.push(
        "only limits and service times: a volume that is slow without a limit is not foreseen"
            .to_owned(),
    );
    remarks
}

/// Formats one line for each volume.
pub(super) fn render_csv(report: &VolumeReport) -> String {
    let verdict = |of: &VolumeFigures| {
        let name = serde_json::to_value(of.verdict).expect("a name");
        name.as_str().unwrap_or_default().to_owned()
    };
    let record = |of: &VolumeFigures| -> Vec<CsvField> {
        vec![
            ("volume", of.volume.clone()),
            ("size_gib", of.size_gib.to_string()),
            ("settings", of.settings.join(" ")),
            ("verdict", verdict(of)),
            ("p50_ms", format_number(of.p50_ms)),
            ("p99_ms", format_number(of.p99_ms)),
            ("wait_max_s", format_number(of.wait_max_s)),
            ("credits_end_s", format_optional(of.credits_end_s)),
            ("credits_left_share", format_optional(of.credits_left_share)),
            ("backlog_end", format_number(of.backlog_end)),
            ("iops_start", format_number(of.iops_start)),
            ("iops_end", format_number(of.iops_end)),
            ("limit", of.limit.clone().unwrap_or_default()),
        ]
    };
    let records: Vec<Vec<CsvField>> = report.volumes.iter().map(record).collect();
    format_records(&records)
}
