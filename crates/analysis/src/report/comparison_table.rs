//! Table of compared runs: one row per program, one group of columns per run.

mod loads;

use super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use super::figures;
use super::unwritten;
use crate::cache::CacheVerdict;
use crate::comparison::{
    BlockCounts, Comparison, ComparisonBasis, PairSide, Quantity, ResultPair, RunName,
    UndecidedReason,
};
use crate::statistics::ConfidenceInterval;
use crate::statistics::shape::render_strip;

const UNKNOWN_VALUE: &str = "unknown";

pub(super) fn build_blocks(comparison: &Comparison) -> Vec<DocumentBlock> {
    let Some((base, others)) = comparison.runs.split_first() else {
        return vec![DocumentBlock::Text(
            "There are no runs to compare.".to_owned(),
        )];
    };
    if others.is_empty() {
        return vec![DocumentBlock::Text(format!(
            "There is only one run, {}: name a second one to compare it with.",
            base.id
        ))];
    }
    let mut blocks = vec![
        DocumentBlock::Heading(format!("base: {}", describe_run(base))),
        DocumentBlock::List(
            others
                .iter()
                .map(|other| format!("other: {}", describe_run(other)))
                .collect(),
        ),
    ];
    for (index, _) in others.iter().enumerate() {
        let run = index + 1;
        let pairs: Vec<&ResultPair> = comparison
            .result_pairs
            .iter()
            .filter(|pair| pair.run_index == run)
            .collect();
        if others.len() > 1 {
            blocks.push(DocumentBlock::Section(format!(
                "{}:",
                comparison.run_name(run)
            )));
        }
        if pairs.is_empty() {
            blocks.push(DocumentBlock::Text(
                "The two runs have no program in common.".to_owned(),
            ));
        } else {
            blocks.extend(build_grids(&pairs).into_iter().map(DocumentBlock::Grid));
        }
    }
    blocks.push(DocumentBlock::List(list_legend(comparison)));
    let shapes = describe_shapes(comparison);
    if !shapes.is_empty() {
        blocks.push(DocumentBlock::List(shapes));
    }
    let warnings = list_warnings(comparison);
    if !warnings.is_empty() {
        blocks.push(DocumentBlock::List(warnings));
    }
    if let Some(gated) = &comparison.gate_result {
        let reasons = gated.failures.iter().map(|failure| failure.to_string());
        blocks.push(DocumentBlock::Section(gated.describe()));
        blocks.push(DocumentBlock::List(reasons.collect()));
    }
    blocks
}

fn describe_run(run: &RunName) -> String {
    let label = run
        .label
        .as_ref()
        .map_or_else(String::new, |label| format!(" \"{label}\""));
    let differs = match run.differences.is_empty() {
        true => String::new(),
        false => format!(" ({})", run.differences.join(", ")),
    };
    format!(
        "{} on {}{differs}, run {}{label}",
        run.suite, run.measured_target, run.id
    )
}

/// Returns the title of a row: the program, with the facts that distinguish it from other rows of
/// the program. The row of the durable speed follows that of the speed.
fn format_title(pair: &ResultPair, pairs: &[&ResultPair]) -> String {
    match pair.quantity {
        Quantity::KbPerS | Quantity::Iops | Quantity::ResponseP50Us => {}
        Quantity::DurableKbPerS => return "  durable".to_owned(),
        Quantity::ResponseP99Us => return "  p99".to_owned(),
    }
    let mut title = pair.title.clone();
    let twins: Vec<&&ResultPair> = pairs
        .iter()
        .filter(|other| other.title == pair.title && other.quantity == pair.quantity)
        .collect();
    if twins
        .iter()
        .any(|other| other.base.filesystem != pair.base.filesystem)
    {
        title += &format!(", {}", pair.base.filesystem);
    }
    if twins
        .iter()
        .any(|other| other.base.drive_count != pair.base.drive_count)
    {
        title += &format!(", {} drives", pair.base.drive_count);
    }
    if pair.quantity == Quantity::ResponseP50Us {
        title += ", p50";
    }
    title
}

/// Builds one table of programs with one call after the other, and one of programs with several
/// requests in flight, where there are any.
fn build_grids(pairs: &[&ResultPair]) -> Vec<Grid> {
    let rows = pairs.chunk_by(|_, next| !next.quantity.is_primary());
    let (calls, loads): (Vec<&[&ResultPair]>, Vec<&[&ResultPair]>) =
        rows.partition(|rows| rows[0].quantity == Quantity::KbPerS);
    let (calls, loads) = (calls.concat(), loads.concat());
    let mut grids = Vec::new();
    if !calls.is_empty() {
        grids.push(build_grid(&calls));
    }
    if !loads.is_empty() {
        grids.push(loads::build_grid(&loads));
    }
    grids
}

fn build_grid(pairs: &[&ResultPair]) -> Grid {
    let column = |of: &dyn Fn(&ResultPair) -> String| pairs.iter().map(|pair| of(pair)).collect();
    let sides = |of: fn(&ResultPair) -> &PairSide| {
        let cell = |pair: &&ResultPair| {
            let side = of(pair);
            // The share is one of the time until the last call returned.
            let cpu = match pair.quantity.is_primary() {
                true => figures::format_cpu_percent(side.cpu_percent),
                false => String::new(),
            };
            (
                figures::format_kb_per_s(side.figure),
                cpu + &format_marks(side),
            )
        };
        pairs.iter().map(cell).collect()
    };
    Grid {
        key_column: Column::left_aligned("program", column(&|pair| format_title(pair, pairs))),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                Column::right_aligned_pairs("base\nKB/s (CPU)", sides(|pair| &pair.base)),
                Column::right_aligned_pairs("other\nKB/s (CPU)", sides(|pair| &pair.other)),
                Column::right_aligned("ratio", column(&format_ratio)),
                Column::right_aligned("99 %", column(&format_interval)),
                Column::left_aligned("verdict", column(&ResultPair::describe_verdict)),
            ],
        )],
    }
}

fn format_marks(side: &PairSide) -> String {
    let unwritten = unwritten::mark_of_share(side.unwritten_share);
    format!("{}{unwritten}", side.cache.table_mark())
}

fn format_ratio(pair: &ResultPair) -> String {
    let ratio = pair.judgement.ratio;
    ratio.map_or_else(String::new, |ratio| format!("{ratio:.3}"))
}

/// Formats the interval of the ratio, with the ends rounded outwards so that they enclose the ratio
/// in print.
fn format_interval(pair: &ResultPair) -> String {
    match (pair.judgement.interval, pair.judgement.ratio) {
        (
            Some(ConfidenceInterval {
                min: low,
                max: high,
                ..
            }),
            _,
        ) => {
            let digits = if high - low < 0.02 { 3 } else { 2 };
            let (low, high) = (
                format_interval_end(low, digits, f64::floor),
                format_interval_end(high, digits, f64::ceil),
            );
            format!("{low}-{high}")
        }
        (None, Some(_)) => UNKNOWN_VALUE.to_owned(),
        (None, None) => String::new(),
    }
}

/// Formats one end of an interval, with enough digits to differ from 1 where the interval excludes
/// 1.
fn format_interval_end(end: f64, digits: usize, rounded: fn(f64) -> f64) -> String {
    let at = |digits: usize| {
        let unit = 10_f64.powi(digits as i32);
        (digits, rounded(end * unit) / unit)
    };
    let (digits, shown) = (digits..12)
        .map(at)
        .find(|(_, shown)| *shown != 1.0 || end == 1.0)
        .unwrap_or(at(digits));
    format!("{shown:.digits$}")
}

fn list_legend(comparison: &Comparison) -> Vec<String> {
    let pairs = &comparison.result_pairs;
    let mut lines = Vec::new();
    let mut bases: Vec<ComparisonBasis> = pairs
        .iter()
        .filter(|pair| pair.judgement.ratio.is_some())
        .map(|pair| pair.basis)
        .collect();
    bases.sort_unstable();
    bases.dedup();
    lines.extend(bases.iter().map(|basis| describe_basis(*basis).to_owned()));
    lines.extend(loads::list_legend(pairs));
    lines.extend(describe_blocks_run(comparison));
    let separate = || {
        pairs
            .iter()
            .filter(|pair| pair.basis == ComparisonBasis::Medians)
    };
    let doubts = |doubt: UndecidedReason| {
        separate().any(|pair| pair.judgement.undecided_reason == Some(doubt))
    };
    let remarks = [
        (
            pairs
                .iter()
                .any(|pair| format_interval(pair) == UNKNOWN_VALUE),
            "unknown: the repetitions are too few for an interval",
        ),
        (
            doubts(UndecidedReason::TooFewRepetitions),
            "too few repetitions: separate runs need 16 that count on each side for a verdict; use --runs 20",
        ),
        (
            doubts(UndecidedReason::BaseDisturbed) || doubts(UndecidedReason::OtherDisturbed),
            "disturbed: the median lies 10 % or more above the fastest repetition, so that most repetitions waited for something else",
        ),
        (
            doubts(UndecidedReason::FastestQuartersDisagree),
            "medians and fastest disagree: by 10 % or more, so that one of the runs was disturbed and it is not known which",
        ),
        (
            doubts(UndecidedReason::Bimodal),
            "two modes: which of them a run was in more often decides the medians",
        ),
        (
            pairs.iter().any(may_overstate_size),
            "fewer than 5 blocks ran after a verdict: its ratio may overstate the difference, as the blocks ended where it was found; give `diskperf ab` more --budget or --blocks",
        ),
        (
            separate().any(|pair| pair.describe_verdict().starts_with("not sure below")),
            "not sure below N: neither is faster than the other by more than N; less cannot be told from how runs of one thing differ",
        ),
        (
            separate().any(|pair| !pair.judgement.verdict.shows_difference()),
            "`diskperf ab` measures both in turn, so that what disturbs meets both, and tells differences of a few percent",
        ),
    ];
    let occurring = remarks.into_iter().filter(|(occurs, _)| *occurs);
    lines.extend(occurring.map(|(_, text)| text.to_owned()));
    let sides = pairs.iter().flat_map(|pair| [&pair.base, &pair.other]);
    let mut verdicts: Vec<CacheVerdict> = sides.clone().map(|side| side.cache).collect();
    verdicts.sort_unstable();
    verdicts.dedup();
    let marked = verdicts
        .into_iter()
        .rev()
        .filter(|verdict| !verdict.table_mark().is_empty());
    lines.extend(marked.map(|verdict| format!("{} {}", verdict.table_mark(), verdict.meaning())));
    lines.extend(unwritten::format_legend(
        sides.map(|side| side.unwritten_share),
    ));
    lines
}

/// Tests whether the ratio may overstate the difference, since its blocks ended because they
/// differed.
fn may_overstate_size(pair: &ResultPair) -> bool {
    let counted = pair
        .block_counts
        .filter(|_| pair.judgement.verdict.shows_difference());
    counted.is_some_and(|blocks| !blocks.has_unbiased_size())
}

/// Describes the number of blocks that an A/B measurement had for each program.
fn describe_blocks_run(comparison: &Comparison) -> Option<String> {
    let interleaved = comparison
        .result_pairs
        .iter()
        .filter(|pair| pair.basis == ComparisonBasis::MedianBlock && pair.quantity.is_primary());
    let counted: Vec<String> = interleaved
        .map(|pair| {
            let title = &pair.title;
            match pair.block_counts.unwrap_or_default() {
                BlockCounts {
                    total_count: total,
                    after_verdict_count: 0,
                } => format!("{total} {title}"),
                BlockCounts {
                    total_count: total,
                    after_verdict_count: after_verdict,
                } => format!("{total} {title} ({after_verdict} of them after the verdict)"),
            }
        })
        .collect();
    (!counted.is_empty()).then(|| format!("blocks: {}", counted.join(", ")))
}

fn describe_basis(basis: ComparisonBasis) -> &'static str {
    match basis {
        ComparisonBasis::Medians => {
            "ratio: other over base, of the medians; 99 %: its interval, for all rows together, by how far quarters of the runs, and earlier runs, differ"
        }
        ComparisonBasis::MedianBlock => {
            "ratio: other over base in the median block, as the two figures, of the blocks after the verdict if there are 5; 99 %: its interval, for all rows together and of all blocks, which holds however long they went on"
        }
        ComparisonBasis::ExactFigures => {
            "ratio: other over base, exact: both are modelled, in virtual time"
        }
        ComparisonBasis::SameModelledRun => {
            "ratio: of a run with itself: nothing was measured twice"
        }
    }
}

/// Lists the repetitions that are not steady, as strips of bars.
fn describe_shapes(comparison: &Comparison) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, pair) in comparison.result_pairs.iter().enumerate() {
        let sides = [(0, &pair.base), (pair.run_index, &pair.other)];
        for (run, side) in sides
            .into_iter()
            .filter(|(_, side)| !side.shape.is_steady())
        {
            // The base is in one pair with each other run.
            let earlier = comparison.result_pairs[..number].iter();
            let mut twins = earlier.filter(|one| one.title == pair.title);
            if run == 0
                && twins.any(|one| one.quantity == pair.quantity && one.run_index != pair.run_index)
            {
                continue;
            }
            let quantity = match pair.quantity {
                Quantity::KbPerS | Quantity::Iops => "",
                Quantity::DurableKbPerS => ", durable",
                Quantity::ResponseP50Us => ", p50",
                Quantity::ResponseP99Us => ", p99",
            };
            let of = |figure: &f64| pair.quantity.invert_time(*figure);
            let speeds: Vec<f64> = side.repetition_figures.iter().map(of).collect();
            lines.push(format!(
                "{}{quantity}, {}: {} {}",
                pair.title,
                comparison.run_name(run),
                side.shape.label(),
                render_strip(&speeds)
            ));
        }
    }
    lines
}

fn list_warnings(comparison: &Comparison) -> Vec<String> {
    let several = comparison.runs.len() > 2;
    let mut lines: Vec<String> = comparison
        .warnings
        .iter()
        .map(|warning| {
            format!(
                "warning: {}: {}",
                comparison.run_name(warning.run_index),
                warning.message
            )
        })
        .collect();
    for run in 1..comparison.runs.len() {
        let of_run = || {
            comparison
                .result_pairs
                .iter()
                .filter(move |pair| pair.run_index == run)
        };
        let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
        for pair in of_run().filter(|pair| pair.quantity.is_primary()) {
            for warning in &pair.warnings {
                match found.iter_mut().find(|(text, _)| text == warning) {
                    Some((_, titles)) => titles.push(&pair.title),
                    None => found.push((warning, vec![&pair.title])),
                }
            }
        }
        let all = of_run().filter(|pair| pair.quantity.is_primary()).count();
        let place = if several {
            format!("{}: ", comparison.run_name(run))
        } else {
            String::new()
        };
        for (text, titles) in found {
            let about = if titles.len() == all {
                "all programs".to_owned()
            } else {
                titles.join(", ")
            };
            lines.push(format!("warning: {place}{about}: {text}"));
        }
    }
    for one in &comparison.unpaired_results {
        lines.push(format!(
            "not compared: {} ({}) is only in {}, not in {}",
            one.title,
            one.filesystem,
            comparison.run_name(one.run_index),
            comparison.run_name(one.run_index_without)
        ));
    }
    lines
}
