//! Table of compared runs: one row per program, one group of columns per run.

mod loads;

use super::document::{Block, Column, Grid, Group};
use super::figures;
use super::unwritten;
use crate::cache::CacheVerdict;
use crate::comparison::{Basis, BlockCounts, Comparison, Doubt, Pair, Quantity, RunName, Side};
use crate::statistics::Interval;
use crate::statistics::shape::strip;

const UNKNOWN: &str = "unknown";

pub(super) fn blocks(comparison: &Comparison) -> Vec<Block> {
    let Some((base, others)) = comparison.runs.split_first() else {
        return vec![Block::Text("There are no runs to compare.".to_owned())];
    };
    if others.is_empty() {
        return vec![Block::Text(format!(
            "There is only one run, {}: name a second one to compare it with.",
            base.id
        ))];
    }
    let mut blocks = vec![
        Block::Heading(format!("base: {}", introduce_run(base))),
        Block::List(
            others
                .iter()
                .map(|other| format!("other: {}", introduce_run(other)))
                .collect(),
        ),
    ];
    for (index, _) in others.iter().enumerate() {
        let run = index + 1;
        let pairs: Vec<&Pair> = comparison
            .pairs
            .iter()
            .filter(|pair| pair.run == run)
            .collect();
        if others.len() > 1 {
            blocks.push(Block::Section(format!("{}:", comparison.run_name(run))));
        }
        if pairs.is_empty() {
            blocks.push(Block::Text(
                "The two runs have no program in common.".to_owned(),
            ));
        } else {
            blocks.extend(grids(&pairs).into_iter().map(Block::Grid));
        }
    }
    blocks.push(Block::List(legend(comparison)));
    let shapes = describe_shapes(comparison);
    if !shapes.is_empty() {
        blocks.push(Block::List(shapes));
    }
    let warnings = warnings(comparison);
    if !warnings.is_empty() {
        blocks.push(Block::List(warnings));
    }
    if let Some(gated) = &comparison.gated {
        let reasons = gated.failures.iter().map(|failure| failure.to_string());
        blocks.push(Block::Section(gated.describe()));
        blocks.push(Block::List(reasons.collect()));
    }
    blocks
}

fn introduce_run(run: &RunName) -> String {
    let label = run
        .label
        .as_ref()
        .map_or_else(String::new, |label| format!(" \"{label}\""));
    let differs = match run.differs.is_empty() {
        true => String::new(),
        false => format!(" ({})", run.differs.join(", ")),
    };
    format!(
        "{} on {}{differs}, run {}{label}",
        run.suite, run.measured, run.id
    )
}

/// Returns the title of a row: the program, with the facts that distinguish it from other rows of
/// the program. The row of the durable speed follows that of the speed.
fn title(pair: &Pair, pairs: &[&Pair]) -> String {
    match pair.quantity {
        Quantity::KbPerS | Quantity::Iops | Quantity::ResponseP50Us => {}
        Quantity::DurableKbPerS => return "  durable".to_owned(),
        Quantity::ResponseP99Us => return "  p99".to_owned(),
    }
    let mut title = pair.title.clone();
    let twins: Vec<&&Pair> = pairs
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
        .any(|other| other.base.drives != pair.base.drives)
    {
        title += &format!(", {} drives", pair.base.drives);
    }
    if pair.quantity == Quantity::ResponseP50Us {
        title += ", p50";
    }
    title
}

/// Builds one table of programs with one call after the other, and one of programs with several
/// requests in flight, where there are any.
fn grids(pairs: &[&Pair]) -> Vec<Grid> {
    let rows = pairs.chunk_by(|_, next| !next.quantity.is_primary());
    let (calls, loads): (Vec<&[&Pair]>, Vec<&[&Pair]>) =
        rows.partition(|rows| rows[0].quantity == Quantity::KbPerS);
    let (calls, loads) = (calls.concat(), loads.concat());
    let mut grids = Vec::new();
    if !calls.is_empty() {
        grids.push(grid(&calls));
    }
    if !loads.is_empty() {
        grids.push(loads::grid(&loads));
    }
    grids
}

fn grid(pairs: &[&Pair]) -> Grid {
    let column = |of: &dyn Fn(&Pair) -> String| pairs.iter().map(|pair| of(pair)).collect();
    let sides = |of: fn(&Pair) -> &Side| {
        let cell = |pair: &&Pair| {
            let side = of(pair);
            // The share is one of the time until the last call returned.
            let cpu = match pair.quantity.is_primary() {
                true => figures::cpu(side.cpu_percent),
                false => String::new(),
            };
            (figures::speed(side.figure), cpu + &marks(side))
        };
        pairs.iter().map(cell).collect()
    };
    Grid {
        key: Column::words("program", column(&|pair| title(pair, pairs))),
        groups: vec![Group::of(
            "",
            vec![
                Column::pairs("base\nKB/s (CPU)", sides(|pair| &pair.base)),
                Column::pairs("other\nKB/s (CPU)", sides(|pair| &pair.other)),
                Column::figures("ratio", column(&ratio)),
                Column::figures("99 %", column(&interval)),
                Column::words("verdict", column(&Pair::verdict)),
            ],
        )],
    }
}

fn marks(side: &Side) -> String {
    let unwritten = unwritten::mark(side.unwritten_share);
    format!("{}{unwritten}", side.cache.mark())
}

fn ratio(pair: &Pair) -> String {
    let ratio = pair.judgement.ratio;
    ratio.map_or_else(String::new, |ratio| format!("{ratio:.3}"))
}

/// Formats the interval of the ratio, with the ends rounded outwards so that they enclose the ratio
/// in print.
fn interval(pair: &Pair) -> String {
    match (pair.judgement.interval, pair.judgement.ratio) {
        (Some(Interval { low, high, .. }), _) => {
            let digits = if high - low < 0.02 { 3 } else { 2 };
            let (low, high) = (
                interval_end(low, digits, f64::floor),
                interval_end(high, digits, f64::ceil),
            );
            format!("{low}-{high}")
        }
        (None, Some(_)) => UNKNOWN.to_owned(),
        (None, None) => String::new(),
    }
}

/// Formats one end of an interval, with enough digits to differ from 1 where the interval excludes
/// 1.
fn interval_end(end: f64, digits: usize, rounded: fn(f64) -> f64) -> String {
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

fn legend(comparison: &Comparison) -> Vec<String> {
    let pairs = &comparison.pairs;
    let mut lines = Vec::new();
    let mut bases: Vec<Basis> = pairs
        .iter()
        .filter(|pair| pair.judgement.ratio.is_some())
        .map(|pair| pair.basis)
        .collect();
    bases.sort_unstable();
    bases.dedup();
    lines.extend(bases.iter().map(|basis| basis_meaning(*basis).to_owned()));
    lines.extend(loads::legend(pairs));
    lines.extend(count_blocks_run(comparison));
    let separate = || pairs.iter().filter(|pair| pair.basis == Basis::Medians);
    let doubts = |doubt: Doubt| separate().any(|pair| pair.judgement.doubt == Some(doubt));
    let remarks = [
        (
            pairs.iter().any(|pair| interval(pair) == UNKNOWN),
            "unknown: the repetitions are too few for an interval",
        ),
        (
            doubts(Doubt::TooFew),
            "too few repetitions: separate runs need 16 that count on each side for a verdict; use --runs 20",
        ),
        (
            doubts(Doubt::BaseDisturbed) || doubts(Doubt::OtherDisturbed),
            "disturbed: the median lies 10 % or more above the fastest repetition, so that most repetitions waited for something else",
        ),
        (
            doubts(Doubt::FastestDisagree),
            "medians and fastest disagree: by 10 % or more, so that one of the runs was disturbed and it is not known which",
        ),
        (
            doubts(Doubt::TwoModes),
            "two modes: which of them a run was in more often decides the medians",
        ),
        (
            pairs.iter().any(may_overstate_size),
            "fewer than 5 blocks ran after a verdict: its ratio may overstate the difference, as the blocks ended where it was found; give `diskperf ab` more --budget or --blocks",
        ),
        (
            separate().any(|pair| pair.verdict().starts_with("not sure below")),
            "not sure below N: neither is faster than the other by more than N; less cannot be told from how runs of one thing differ",
        ),
        (
            separate().any(|pair| !pair.judgement.verdict.is_difference()),
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
        .filter(|verdict| !verdict.mark().is_empty());
    lines.extend(marked.map(|verdict| format!("{} {}", verdict.mark(), verdict.meaning())));
    lines.extend(unwritten::legend(sides.map(|side| side.unwritten_share)));
    lines
}

/// Tests whether the ratio may overstate the difference, since its blocks ended because they
/// differed.
fn may_overstate_size(pair: &Pair) -> bool {
    let counted = pair
        .blocks
        .filter(|_| pair.judgement.verdict.is_difference());
    counted.is_some_and(|blocks| !blocks.has_unbiased_size())
}

/// Describes the number of blocks that an A/B measurement had for each program.
fn count_blocks_run(comparison: &Comparison) -> Option<String> {
    let interleaved = comparison
        .pairs
        .iter()
        .filter(|pair| pair.basis == Basis::MedianBlock && pair.quantity.is_primary());
    let counted: Vec<String> = interleaved
        .map(|pair| {
            let title = &pair.title;
            match pair.blocks.unwrap_or_default() {
                BlockCounts {
                    total,
                    after_verdict: 0,
                } => format!("{total} {title}"),
                BlockCounts {
                    total,
                    after_verdict,
                } => format!("{total} {title} ({after_verdict} of them after the verdict)"),
            }
        })
        .collect();
    (!counted.is_empty()).then(|| format!("blocks: {}", counted.join(", ")))
}

/// Describes the ratio and its interval for one basis of comparison.
fn basis_meaning(basis: Basis) -> &'static str {
    match basis {
        Basis::Medians => {
            "ratio: other over base, of the medians; 99 %: its interval, for all rows together, by how far quarters of the runs, and earlier runs, differ"
        }
        Basis::MedianBlock => {
            "ratio: other over base in the median block, as the two figures, of the blocks after the verdict if there are 5; 99 %: its interval, for all rows together and of all blocks, which holds however long they went on"
        }
        Basis::Exact => "ratio: other over base, exact: both are modelled, in virtual time",
        Basis::SameRun => "ratio: of a run with itself: nothing was measured twice",
    }
}

/// Lists the repetitions that are not steady, as strips of bars.
fn describe_shapes(comparison: &Comparison) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, pair) in comparison.pairs.iter().enumerate() {
        let sides = [(0, &pair.base), (pair.run, &pair.other)];
        for (run, side) in sides
            .into_iter()
            .filter(|(_, side)| !side.shape.is_steady())
        {
            // The base is in one pair with each other run.
            let earlier = comparison.pairs[..number].iter();
            let mut twins = earlier.filter(|one| one.title == pair.title);
            if run == 0 && twins.any(|one| one.quantity == pair.quantity && one.run != pair.run) {
                continue;
            }
            let quantity = match pair.quantity {
                Quantity::KbPerS | Quantity::Iops => "",
                Quantity::DurableKbPerS => ", durable",
                Quantity::ResponseP50Us => ", p50",
                Quantity::ResponseP99Us => ", p99",
            };
            let of = |figure: &f64| pair.quantity.invert_time(*figure);
            let speeds: Vec<f64> = side.repetitions.iter().map(of).collect();
            lines.push(format!(
                "{}{quantity}, {}: {} {}",
                pair.title,
                comparison.run_name(run),
                side.shape.words(),
                strip(&speeds)
            ));
        }
    }
    lines
}

fn warnings(comparison: &Comparison) -> Vec<String> {
    let several = comparison.runs.len() > 2;
    let mut lines: Vec<String> = comparison
        .warnings
        .iter()
        .map(|warning| {
            format!(
                "warning: {}: {}",
                comparison.run_name(warning.run),
                warning.text
            )
        })
        .collect();
    for run in 1..comparison.runs.len() {
        let of_run = || comparison.pairs.iter().filter(move |pair| pair.run == run);
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
    for one in &comparison.unpaired {
        lines.push(format!(
            "not compared: {} ({}) is only in {}, not in {}",
            one.title,
            one.filesystem,
            comparison.run_name(one.run),
            comparison.run_name(one.missing_in)
        ));
    }
    lines
}
