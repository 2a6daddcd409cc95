//! Contents of a block trace as tables, strips of bars, JSON and CSV.

use super::csv::{CsvField, format_number, format_records};
use super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use super::json::render_pretty;
use crate::statistics::shape::render_strip;
use crate::trace::TraceReport;
use diskperf_blocktrace::own::TracePart;
use diskperf_blocktrace::summary::{
    ArrivalSummary, OperationSummary, Quantiles, Resolution, ReuseSummary, TraceSummary,
};
use diskperf_blocktrace::{DEVICES_MAX, Form, Notices};
use diskperf_timeline::escape_unprintable_line;
use diskperf_timeline::units::format_size;

pub(super) fn build_blocks(trace: &TraceReport) -> Vec<DocumentBlock> {
    let of = &trace.summary;
    let mut all = vec![DocumentBlock::Heading(format!(
        "{}: {} of {}{}",
        trace.files.join(", "),
        count_requests(of.totals.requests),
        trace.format_name,
        trace
            .part_name
            .as_ref()
            .map_or(String::new(), |part| format!(", {part}"))
    ))];
    let about = describe_trace(trace);
    if !about.is_empty() {
        all.push(DocumentBlock::List(vec![about]));
    }
    if of.totals.requests == 0 && trace.notices.line_counts.request_lines > 0 {
        all.push(DocumentBlock::List(vec![format!(
            "the whole trace has {}",
            count_requests(trace.notices.line_counts.request_lines)
        )]));
    }
    if of.totals.requests == 0 {
        return all;
    }
    all.extend([
        DocumentBlock::List(vec![format!(
            "{} in {}{}: {} requests/s, {} MB/s",
            format_size(of.totals.bytes),
            format_duration(of.span_ns as f64),
            describe_devices(of),
            format_rate(of.totals.requests as f64, 0, of),
            format_rate(of.totals.bytes as f64 / 1e6, 2, of)
        )]),
        DocumentBlock::Grid(build_operation_grid(&of.operations)),
        DocumentBlock::List(describe_ranges(of)),
    ]);
    let times = describe_times(of);
    if !times.is_empty() {
        all.push(DocumentBlock::List(times));
    }
    if of.totals.requests > 1 {
        all.push(DocumentBlock::List(build_strips(of)));
    }
    match &of.reuse {
        Some(found) if found.footprint_blocks > 0.0 => {
            all.push(DocumentBlock::Grid(build_miss_ratio_grid(found)));
            all.push(DocumentBlock::List(vec![describe_reuse(found)]));
        }
        Some(_) => {}
        None => all.push(DocumentBlock::List(vec![REUSE_OMITTED.to_owned()])),
    }
    if of.devices.len() > 1 {
        all.push(DocumentBlock::Grid(build_device_grid(of)));
    }
    if !trace.parts.is_empty() {
        all.push(DocumentBlock::Grid(build_part_grid(&trace.parts)));
    }
    let notices = list_notices(trace);
    if !notices.is_empty() {
        all.push(DocumentBlock::List(notices));
    }
    all
}

fn count_requests(count: u64) -> String {
    match count {
        1 => "1 request".to_owned(),
        count => format!("{count} requests"),
    }
}

fn describe_devices(summary: &TraceSummary) -> String {
    match summary.devices.as_slice() {
        [one] => format!(" on {}", one.device),
        all if all.len() >= DEVICES_MAX => format!(" on {} devices or more", all.len()),
        several => format!(" on {} devices", several.len()),
    }
}

/// Formats a rate per second with this many decimals; a dash where the trace covers no time. The
/// covered time includes the resolution of the last timestamp.
fn format_rate(amount: f64, decimals: usize, of: &TraceSummary) -> String {
    let coarse_ns = of.resolution.map_or(0, |of| of.resolution_ns);
    match of.span_ns {
        0 => "-".to_owned(),
        span_ns => {
            let covered_ns = span_ns.saturating_add(coarse_ns);
            format!("{:.decimals$}", amount * 1e9 / covered_ns as f64)
        }
    }
}

/// Formats a quantile in its unit; a dash where values are too few for it.
fn format_quantile(quantile: Option<f64>, unit: fn(f64) -> String) -> String {
    quantile.map_or("-".to_owned(), unit)
}

fn format_duration(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.3} µs", ns / 1e3),
        ns if ns < 1e9 => format!("{:.3} ms", ns / 1e6),
        ns if ns < 3600e9 => format!("{:.3} s", ns / 1e9),
        ns => format!("{:.2} h", ns / 3600e9),
    }
}

fn format_percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn build_operation_grid(all: &[OperationSummary]) -> Grid {
    let sum: u64 = all.iter().map(|of| of.totals.requests).sum();
    let bytes: u64 = all.iter().map(|of| of.totals.bytes).sum();
    let column = |of: &dyn Fn(&OperationSummary) -> String| all.iter().map(of).collect();
    let response = |of: &OperationSummary, pick: fn(&Quantiles) -> Option<f64>| {
        of.response_ns.as_ref().map_or(String::new(), |ns| {
            format_quantile(pick(ns), format_duration)
        })
    };
    Grid {
        key_column: Column::left_aligned("operation", column(&|of| of.operation.to_owned())),
        groups: vec![
            ColumnGroup::new(
                "",
                vec![
                    Column::right_aligned("requests", column(&|of| of.totals.requests.to_string())),
                    Column::right_aligned(
                        "share",
                        column(&|of| format_percent(of.totals.requests as f64 / sum.max(1) as f64)),
                    ),
                    Column::right_aligned("bytes", column(&|of| format_size(of.totals.bytes))),
                    Column::right_aligned(
                        "share of bytes",
                        column(&|of| format_percent(of.totals.bytes as f64 / bytes.max(1) as f64)),
                    ),
                ],
            ),
            ColumnGroup::new(
                "response",
                vec![
                    Column::right_aligned("mean", column(&|of| response(of, |ns| Some(ns.mean)))),
                    Column::right_aligned("p50", column(&|of| response(of, |ns| Some(ns.p50)))),
                    Column::right_aligned("p99", column(&|of| response(of, |ns| ns.p99))),
                    Column::right_aligned("p99.9", column(&|of| response(of, |ns| ns.p999))),
                    Column::right_aligned(
                        "max",
                        column(&|of| response(of, |ns| Some(ns.value_max))),
                    ),
                ],
            ),
        ],
    }
}

/// Describes the accessed ranges of a trace: sizes, positions and sequentiality.
fn describe_ranges(summary: &TraceSummary) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(sizes) = &summary.size_bytes {
        let common: Vec<String> = summary
            .sizes
            .iter()
            .map(|one| format!("{} {}", format_size(one.bytes), format_percent(one.share)))
            .collect();
        lines.push(format!(
            "sizes: mean {}, p99 {}; commonest {}",
            format_size(sizes.mean as u64),
            format_quantile(sizes.p99, |bytes| format_size(bytes as u64)),
            common.join(", ")
        ));
        lines.push(format!(
            "aligned to 4096 bytes {}, to 512 {}; addresses up to {}",
            format_percent(summary.aligned_4096_share),
            format_percent(summary.aligned_512_share),
            format_size(summary.end_bytes_max)
        ));
        let locality = &summary.locality;
        lines.push(format!(
            "sequential: {} begin where the last one ended (runs of {:.1}), {} go on in one of 32 streams, {} begin within 128 KiB",
            format_percent(locality.strictly_sequential_share),
            locality.run_length_mean,
            format_percent(locality.stream_sequential_share),
            format_percent(locality.near_previous_share)
        ));
    }
    if summary.failed_requests > 0 {
        lines.push(format!(
            "{} ended with an error",
            count_requests(summary.failed_requests)
        ));
    }
    lines
}

fn describe_times(summary: &TraceSummary) -> Vec<String> {
    let mut lines = Vec::new();
    match &summary.resolution {
        Some(resolution) => lines.push(describe_resolution(resolution)),
        None => lines.extend(summary.arrivals.as_ref().map(describe_gaps)),
    }
    lines.extend(summary.arrivals.as_ref().and_then(describe_dispersion));
    lines.extend(summary.depth.as_ref().map(|depth| {
        format!(
            "in flight: {:.2} on average, {} at most",
            depth.mean, depth.depth_max
        )
    }));
    lines.extend(summary.think_ns.as_ref().map(|think| {
        format!(
            "pauses between requests: mean {}, p50 {}, p99 {}",
            format_duration(think.mean),
            format_duration(think.p50),
            format_quantile(think.p99, format_duration)
        )
    }));
    lines
}

/// Describes timestamps that are too coarse for the gaps between requests.
fn describe_resolution(resolution: &Resolution) -> String {
    format!(
        "times are in steps of {}: {} of the requests have that of the one before, so shorter times are unknown",
        format_duration(resolution.resolution_ns as f64),
        format_percent(resolution.shared_times_share)
    )
}

fn describe_gaps(arrival_summary: &ArrivalSummary) -> String {
    let mut line = format!(
        "gaps: mean {}, p50 {}, p99 {}; coefficient of variation {:.2} (a clock 0, Poisson 1)",
        format_duration(arrival_summary.gaps_ns.mean),
        format_duration(arrival_summary.gaps_ns.p50),
        format_quantile(arrival_summary.gaps_ns.p99, format_duration),
        arrival_summary.coefficient_of_variation
    );
    if let (Some(peak), Some(idle)) = (
        arrival_summary.peak_over_mean,
        arrival_summary.idle_seconds_share,
    ) {
        line += &format!(
            "; busiest second {peak:.1} times the mean, {} of the seconds idle",
            format_percent(idle)
        );
    }
    line
}

fn describe_dispersion(arrival_summary: &ArrivalSummary) -> Option<String> {
    let window = |ms: u64| match ms {
        ms if ms < 1000 => format!("{ms} ms"),
        ms => format!("{} s", ms / 1000),
    };
    let all: Vec<String> = arrival_summary
        .dispersion
        .iter()
        .map(|one| format!("{} {:.2}", window(one.window_ms), one.index))
        .collect();
    (!all.is_empty()).then(|| {
        format!(
            "bursts: variance over mean of the requests in {} (Poisson 1 in all)",
            all.join(", ")
        )
    })
}

/// Draws requests, bytes and queue depth over time as strips of bars.
fn build_strips(summary: &TraceSummary) -> Vec<String> {
    let intervals = || summary.series.intervals_until(summary.span_ns).iter();
    let each = format_duration(summary.series.interval_ns as f64);
    let requests: Vec<f64> = intervals()
        .map(|one| (one.read_requests + one.write_requests + one.other_requests) as f64)
        .collect();
    let bytes: Vec<f64> = intervals().map(|one| one.bytes as f64).collect();
    let mut lines = vec![
        format!("requests, each {each} {}", render_strip(&requests)),
        format!(
            "bytes    {} {}",
            " ".repeat(each.len() + 5),
            render_strip(&bytes)
        ),
    ];
    if summary.depth.is_some() {
        let depth: Vec<f64> = intervals().map(|one| one.depth).collect();
        lines.push(format!(
            "depth    {} {}",
            " ".repeat(each.len() + 5),
            render_strip(&depth)
        ));
    }
    lines
}

/// Tabulates the cache misses by cache size, with a bar.
fn build_miss_ratio_grid(of: &ReuseSummary) -> Grid {
    const BAR_WIDTH: f64 = 40.0;
    const ROW_COUNT_MAX: usize = 12;
    let points = &of.miss_ratios;
    let octaves: Vec<_> = points
        .iter()
        .filter(|point| point.cache_bytes.is_power_of_two() || Some(*point) == points.last())
        .collect();
    let octaves = &octaves[octaves.len().saturating_sub(ROW_COUNT_MAX)..];
    Grid {
        key_column: Column::right_aligned(
            "LRU cache",
            octaves
                .iter()
                .map(|of| format_size(of.cache_bytes))
                .collect(),
        ),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                Column::right_aligned(
                    "misses",
                    octaves.iter().map(|of| format_percent(of.share)).collect(),
                ),
                Column::left_aligned(
                    "",
                    octaves
                        .iter()
                        .map(|of| "█".repeat((of.share * BAR_WIDTH).round() as usize))
                        .collect(),
                ),
            ],
        )],
    }
}

/// Remark in place of footprint and miss ratios, where they were not computed.
const REUSE_OMITTED: &str = "footprint and reuse of blocks: left out, as requests are longer than 4 MiB on average and 16 GiB in all";

fn describe_reuse(reuse: &ReuseSummary) -> String {
    let size = |blocks: f64| format_size((blocks * reuse.block_bytes as f64) as u64);
    let sampled = match reuse.sampled_share < 1.0 {
        true => format!(
            "; from {} of the blocks (SHARDS)",
            format_percent(reuse.sampled_share)
        ),
        false => String::new(),
    };
    format!(
        "footprint {}: {} read, {} written, {} both; the hottest hundredth of the blocks has {} of the uses{sampled}",
        size(reuse.footprint_blocks),
        size(reuse.read_blocks),
        size(reuse.written_blocks),
        size(reuse.read_and_written_blocks),
        format_percent(reuse.hottest_percent_share)
    )
}

fn build_device_grid(summary: &TraceSummary) -> Grid {
    const DEVICE_COUNT_MAX: usize = 10;
    let listed = &summary.devices[..summary.devices.len().min(DEVICE_COUNT_MAX)];
    let column = |text: &dyn Fn(usize) -> String| (0..listed.len()).map(text).collect();
    Grid {
        key_column: Column::left_aligned("device", column(&|at| listed[at].device.clone())),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                Column::right_aligned(
                    "requests",
                    column(&|at| listed[at].totals.requests.to_string()),
                ),
                Column::right_aligned("bytes", column(&|at| format_size(listed[at].totals.bytes))),
            ],
        )],
    }
}

/// Describes the trace's own metadata, without the parts meant for programs.
fn describe_trace(trace: &TraceReport) -> String {
    let said = trace
        .metadata
        .iter()
        .filter(|one| !one.name.contains("JSON"));
    let said: Vec<String> = said
        .map(|one| {
            format!(
                "{} {}",
                escape_unprintable_line(&one.name),
                escape_unprintable_line(&one.value)
            )
        })
        .collect();
    said.join(", ")
}

fn build_part_grid(parts: &[TracePart]) -> Grid {
    const PART_COUNT_MAX: usize = 20;
    let listed = &parts[..parts.len().min(PART_COUNT_MAX)];
    let seconds = |ns: u64| format!("{:.6}", ns as f64 / 1e9);
    let column = |text: &dyn Fn(&TracePart) -> String| listed.iter().map(text).collect();
    let numbers = (1..=listed.len()).map(|number| number.to_string());
    let title = match parts.len() > PART_COUNT_MAX {
        true => format!("the first {PART_COUNT_MAX} of {} parts", parts.len()),
        false => String::new(),
    };
    Grid {
        key_column: Column::right_aligned("part", numbers.collect()),
        groups: vec![ColumnGroup::new(
            title,
            vec![
                Column::left_aligned_folded(
                    "of",
                    column(&|part| escape_unprintable_line(&part.name).into_owned()),
                    60,
                ),
                Column::right_aligned("from s", column(&|part| seconds(part.start_ns))),
                Column::right_aligned(
                    "to s",
                    column(&|part| part.end_ns.map_or("-".to_owned(), seconds)),
                ),
                Column::right_aligned("requests", column(&|part| part.request_count.to_string())),
                Column::left_aligned(
                    "counts",
                    column(&|part| if part.is_counted { "yes" } else { "no" }.to_owned()),
                ),
            ],
        )],
    }
}

fn format_line_count(count: u64) -> String {
    match count {
        1 => "1 line".to_owned(),
        count => format!("{count} lines"),
    }
}

/// Describes the lines of a trace file, unless each is a request.
fn describe_notices(notices: &Notices) -> Option<String> {
    let lines = &notices.line_counts;
    let is_plain = notices.dropped_lines.is_empty()
        && lines.update_lines == 0
        && notices.unmatched_completions == 0;
    (!is_plain && lines.line_count > 0).then(|| {
        format!(
            "{} read: {} begin a request, {} say more of one, {} are headings, comments or empty",
            format_line_count(lines.line_count),
            lines.request_lines,
            lines.update_lines,
            lines.other_lines
        )
    })
}

fn list_notices(trace: &TraceReport) -> Vec<String> {
    let of = &trace.notices;
    let mut lines: Vec<String> = describe_notices(of).into_iter().collect();
    let dropped = of.dropped_lines.iter().map(|(why, count)| {
        match trace.format_name == Form::Diskperf.name() {
            true => format!("{count} {why}"),
            false => format!("left out: {} of {why}", format_line_count(*count)),
        }
    });
    lines.extend(dropped);
    if of.out_of_order_requests > 0 {
        lines.push(format!(
            "{}, by {} at most",
            match of.out_of_order_requests {
                1 => "1 request comes before the one that precedes it".to_owned(),
                count => format!(
                    "{} come before the one that precedes them",
                    count_requests(count)
                ),
            },
            format_duration(of.time_regression_ns_max as f64)
        ));
    }
    if of.unfinished_requests > 0 {
        lines.push(format!(
            "{} without a completion",
            count_requests(of.unfinished_requests)
        ));
    }
    if of.unmatched_completions > 0 {
        lines.push(format!(
            "{} completions without an issue",
            of.unmatched_completions
        ));
    }
    if of.is_truncated {
        lines.push("the trace is cut off, and was read as far as it goes".to_owned());
    }
    lines
}

pub(super) fn render_json(trace: &TraceReport) -> String {
    render_pretty(trace)
}

/// Formats the miss ratios as CSV, one line for each cache size.
pub(super) fn render_csv(trace: &TraceReport) -> String {
    let reuse = trace.summary.reuse.iter();
    let points = reuse.flat_map(|reuse| &reuse.miss_ratios);
    let records: Vec<Vec<CsvField>> = points
        .map(|point| {
            vec![
                ("cache_bytes", point.cache_bytes.to_string()),
                ("miss_share", format_number(point.share)),
            ]
        })
        .collect();
    format_records(&records)
}
