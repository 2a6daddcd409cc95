//! Contents of a block trace as tables, strips of bars, JSON and CSV.

use super::csv::{Field, format_records, number};
use super::document::{Block, Column, Grid, Group};
use super::json::pretty;
use crate::statistics::shape::strip;
use crate::trace::Trace;
use diskperf_blocktrace::own::Part;
use diskperf_blocktrace::summary::{
    ArrivalSummary, OperationSummary, Quantiles, Resolution, ReuseSummary, Summary,
};
use diskperf_blocktrace::{DEVICES_MAX, Form, Notices};
use diskperf_timeline::escape_unprintable_line;
use diskperf_timeline::units::format_size;

pub(super) fn blocks(trace: &Trace) -> Vec<Block> {
    let of = &trace.summary;
    let mut all = vec![Block::Heading(format!(
        "{}: {} of {}{}",
        trace.files.join(", "),
        count_requests(of.all.requests),
        trace.form,
        trace
            .part
            .as_ref()
            .map_or(String::new(), |part| format!(", {part}"))
    ))];
    let about = describe_trace(trace);
    if !about.is_empty() {
        all.push(Block::List(vec![about]));
    }
    if of.all.requests == 0 && trace.notices.lines.requests > 0 {
        all.push(Block::List(vec![format!(
            "the whole trace has {}",
            count_requests(trace.notices.lines.requests)
        )]));
    }
    if of.all.requests == 0 {
        return all;
    }
    all.extend([
        Block::List(vec![format!(
            "{} in {}{}: {} requests/s, {} MB/s",
            format_size(of.all.bytes),
            format_duration(of.span_ns as f64),
            devices(of),
            rate(of.all.requests as f64, 0, of),
            rate(of.all.bytes as f64 / 1e6, 2, of)
        )]),
        Block::Grid(operations(&of.operations)),
        Block::List(describe_ranges(of)),
    ]);
    let times = describe_times(of);
    if !times.is_empty() {
        all.push(Block::List(times));
    }
    if of.all.requests > 1 {
        all.push(Block::List(strips(of)));
    }
    match &of.reuse {
        Some(found) if found.footprint_blocks > 0.0 => {
            all.push(Block::Grid(miss_ratio_grid(found)));
            all.push(Block::List(vec![reuse(found)]));
        }
        Some(_) => {}
        None => all.push(Block::List(vec![REUSE_OMITTED.to_owned()])),
    }
    if of.devices.len() > 1 {
        all.push(Block::Grid(device_grid(of)));
    }
    if !trace.parts.is_empty() {
        all.push(Block::Grid(parts(&trace.parts)));
    }
    let notices = notices(trace);
    if !notices.is_empty() {
        all.push(Block::List(notices));
    }
    all
}

fn count_requests(count: u64) -> String {
    match count {
        1 => "1 request".to_owned(),
        count => format!("{count} requests"),
    }
}

fn devices(summary: &Summary) -> String {
    match summary.devices.as_slice() {
        [one] => format!(" on {}", one.device),
        all if all.len() >= DEVICES_MAX => format!(" on {} devices or more", all.len()),
        several => format!(" on {} devices", several.len()),
    }
}

/// Formats a rate per second with this many decimals; a dash where the trace covers no time. The
/// covered time includes the resolution of the last timestamp.
fn rate(amount: f64, decimals: usize, of: &Summary) -> String {
    let coarse_ns = of.resolution.map_or(0, |of| of.ns);
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

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn operations(all: &[OperationSummary]) -> Grid {
    let sum: u64 = all.iter().map(|of| of.moved.requests).sum();
    let bytes: u64 = all.iter().map(|of| of.moved.bytes).sum();
    let column = |of: &dyn Fn(&OperationSummary) -> String| all.iter().map(of).collect();
    let response = |of: &OperationSummary, pick: fn(&Quantiles) -> Option<f64>| {
        of.response_ns.as_ref().map_or(String::new(), |ns| {
            format_quantile(pick(ns), format_duration)
        })
    };
    Grid {
        key: Column::words("operation", column(&|of| of.operation.to_owned())),
        groups: vec![
            Group::new(
                "",
                vec![
                    Column::figures("requests", column(&|of| of.moved.requests.to_string())),
                    Column::figures(
                        "share",
                        column(&|of| percent(of.moved.requests as f64 / sum.max(1) as f64)),
                    ),
                    Column::figures("bytes", column(&|of| format_size(of.moved.bytes))),
                    Column::figures(
                        "share of bytes",
                        column(&|of| percent(of.moved.bytes as f64 / bytes.max(1) as f64)),
                    ),
                ],
            ),
            Group::new(
                "response",
                vec![
                    Column::figures("mean", column(&|of| response(of, |ns| Some(ns.mean)))),
                    Column::figures("p50", column(&|of| response(of, |ns| Some(ns.p50)))),
                    Column::figures("p99", column(&|of| response(of, |ns| ns.p99))),
                    Column::figures("p99.9", column(&|of| response(of, |ns| ns.p999))),
                    Column::figures("max", column(&|of| response(of, |ns| Some(ns.most)))),
                ],
            ),
        ],
    }
}

/// Describes the accessed ranges of a trace: sizes, positions and sequentiality.
fn describe_ranges(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(sizes) = &summary.size_bytes {
        let common: Vec<String> = summary
            .sizes
            .iter()
            .map(|one| format!("{} {}", format_size(one.bytes), percent(one.share)))
            .collect();
        lines.push(format!(
            "sizes: mean {}, p99 {}; commonest {}",
            format_size(sizes.mean as u64),
            format_quantile(sizes.p99, |bytes| format_size(bytes as u64)),
            common.join(", ")
        ));
        lines.push(format!(
            "aligned to 4096 bytes {}, to 512 {}; addresses up to {}",
            percent(summary.aligned_4096_share),
            percent(summary.aligned_512_share),
            format_size(summary.highest_bytes)
        ));
        let locality = &summary.locality;
        lines.push(format!(
            "sequential: {} begin where the last one ended (runs of {:.1}), {} go on in one of 32 streams, {} begin within 128 KiB",
            percent(locality.strict_share),
            locality.run_requests,
            percent(locality.stream_share),
            percent(locality.near_share)
        ));
    }
    if summary.failed > 0 {
        lines.push(format!(
            "{} ended with an error",
            count_requests(summary.failed)
        ));
    }
    lines
}

fn describe_times(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    match &summary.resolution {
        Some(resolution) => lines.push(describe_resolution(resolution)),
        None => lines.extend(summary.arrivals.as_ref().map(describe_gaps)),
    }
    lines.extend(summary.arrivals.as_ref().and_then(describe_dispersion));
    lines.extend(summary.depth.as_ref().map(|depth| {
        format!(
            "in flight: {:.2} on average, {} at most",
            depth.mean, depth.most
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
        format_duration(resolution.ns as f64),
        percent(resolution.shared_share)
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
            percent(idle)
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
fn strips(summary: &Summary) -> Vec<String> {
    let intervals = || summary.series.filled(summary.span_ns).iter();
    let each = format_duration(summary.series.interval_ns as f64);
    let requests: Vec<f64> = intervals()
        .map(|one| (one.reads + one.writes + one.others) as f64)
        .collect();
    let bytes: Vec<f64> = intervals().map(|one| one.bytes as f64).collect();
    let mut lines = vec![
        format!("requests, each {each} {}", strip(&requests)),
        format!("bytes    {} {}", " ".repeat(each.len() + 5), strip(&bytes)),
    ];
    if summary.depth.is_some() {
        let depth: Vec<f64> = intervals().map(|one| one.depth).collect();
        lines.push(format!(
            "depth    {} {}",
            " ".repeat(each.len() + 5),
            strip(&depth)
        ));
    }
    lines
}

/// Tabulates the cache misses by cache size, with a bar.
fn miss_ratio_grid(of: &ReuseSummary) -> Grid {
    const BAR: f64 = 40.0;
    const ROWS_MAX: usize = 12;
    let points = &of.miss_ratios;
    let octaves: Vec<_> = points
        .iter()
        .filter(|point| point.cache_bytes.is_power_of_two() || Some(*point) == points.last())
        .collect();
    let octaves = &octaves[octaves.len().saturating_sub(ROWS_MAX)..];
    Grid {
        key: Column::figures(
            "LRU cache",
            octaves
                .iter()
                .map(|of| format_size(of.cache_bytes))
                .collect(),
        ),
        groups: vec![Group::new(
            "",
            vec![
                Column::figures(
                    "misses",
                    octaves.iter().map(|of| percent(of.share)).collect(),
                ),
                Column::words(
                    "",
                    octaves
                        .iter()
                        .map(|of| "█".repeat((of.share * BAR).round() as usize))
                        .collect(),
                ),
            ],
        )],
    }
}

/// Remark in place of footprint and miss ratios, where they were not computed.
const REUSE_OMITTED: &str = "footprint and reuse of blocks: left out, as requests are longer than 4 MiB on average and 16 GiB in all";

fn reuse(reuse: &ReuseSummary) -> String {
    let size = |blocks: f64| format_size((blocks * reuse.block_bytes as f64) as u64);
    let sampled = match reuse.sampled_share < 1.0 {
        true => format!(
            "; from {} of the blocks (SHARDS)",
            percent(reuse.sampled_share)
        ),
        false => String::new(),
    };
    format!(
        "footprint {}: {} read, {} written, {} both; the hottest hundredth of the blocks has {} of the uses{sampled}",
        size(reuse.footprint_blocks),
        size(reuse.read_blocks),
        size(reuse.written_blocks),
        size(reuse.both_blocks),
        percent(reuse.hottest_percent_share)
    )
}

fn device_grid(summary: &Summary) -> Grid {
    const LISTED: usize = 10;
    let listed = &summary.devices[..summary.devices.len().min(LISTED)];
    let column = |text: &dyn Fn(usize) -> String| (0..listed.len()).map(text).collect();
    Grid {
        key: Column::words("device", column(&|at| listed[at].device.clone())),
        groups: vec![Group::new(
            "",
            vec![
                Column::figures(
                    "requests",
                    column(&|at| listed[at].moved.requests.to_string()),
                ),
                Column::figures("bytes", column(&|at| format_size(listed[at].moved.bytes))),
            ],
        )],
    }
}

/// Describes the trace's own metadata, without the parts meant for programs.
fn describe_trace(trace: &Trace) -> String {
    let said = trace.about.iter().filter(|one| !one.name.contains("JSON"));
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

fn parts(parts: &[Part]) -> Grid {
    const LISTED: usize = 20;
    let listed = &parts[..parts.len().min(LISTED)];
    let seconds = |ns: u64| format!("{:.6}", ns as f64 / 1e9);
    let column = |text: &dyn Fn(&Part) -> String| listed.iter().map(text).collect();
    let numbers = (1..=listed.len()).map(|number| number.to_string());
    let title = match parts.len() > LISTED {
        true => format!("the first {LISTED} of {} parts", parts.len()),
        false => String::new(),
    };
    Grid {
        key: Column::figures("part", numbers.collect()),
        groups: vec![Group::new(
            title,
            vec![
                Column::folded(
                    "of",
                    column(&|part| escape_unprintable_line(&part.name).into_owned()),
                    60,
                ),
                Column::figures("from s", column(&|part| seconds(part.began_ns))),
                Column::figures(
                    "to s",
                    column(&|part| part.ended_ns.map_or("-".to_owned(), seconds)),
                ),
                Column::figures("requests", column(&|part| part.requests.to_string())),
                Column::words(
                    "counts",
                    column(&|part| if part.counts { "yes" } else { "no" }.to_owned()),
                ),
            ],
        )],
    }
}

fn counted_lines(count: u64) -> String {
    match count {
        1 => "1 line".to_owned(),
        count => format!("{count} lines"),
    }
}

/// Describes the lines of a trace file, unless each is a request.
fn describe_notices(notices: &Notices) -> Option<String> {
    let lines = &notices.lines;
    let is_plain = notices.dropped.is_empty() && lines.more == 0 && notices.without_issue == 0;
    (!is_plain && lines.read > 0).then(|| {
        format!(
            "{} read: {} begin a request, {} say more of one, {} are headings, comments or empty",
            counted_lines(lines.read),
            lines.requests,
            lines.more,
            lines.asides
        )
    })
}

fn notices(trace: &Trace) -> Vec<String> {
    let of = &trace.notices;
    let mut lines: Vec<String> = describe_notices(of).into_iter().collect();
    let dropped = of
        .dropped
        .iter()
        .map(|(why, count)| match trace.form == Form::Diskperf.name() {
            true => format!("{count} {why}"),
            false => format!("left out: {} of {why}", counted_lines(*count)),
        });
    lines.extend(dropped);
    if of.out_of_order > 0 {
        lines.push(format!(
            "{}, by {} at most",
            match of.out_of_order {
                1 => "1 request comes before the one that precedes it".to_owned(),
                count => format!(
                    "{} come before the one that precedes them",
                    count_requests(count)
                ),
            },
            format_duration(of.farthest_back_ns as f64)
        ));
    }
    if of.without_completion > 0 {
        lines.push(format!(
            "{} without a completion",
            count_requests(of.without_completion)
        ));
    }
    if of.without_issue > 0 {
        lines.push(format!("{} completions without an issue", of.without_issue));
    }
    if of.is_cut {
        lines.push("the trace is cut off, and was read as far as it goes".to_owned());
    }
    lines
}

pub(super) fn json(trace: &Trace) -> String {
    pretty(trace)
}

/// Formats the miss ratios as CSV, one line for each cache size.
pub(super) fn csv(trace: &Trace) -> String {
    let reuse = trace.summary.reuse.iter();
    let points = reuse.flat_map(|reuse| &reuse.miss_ratios);
    let records: Vec<Vec<Field>> = points
        .map(|point| {
            vec![
                ("cache_bytes", point.cache_bytes.to_string()),
                ("miss_share", number(point.share)),
            ]
        })
        .collect();
    format_records(&records)
}
