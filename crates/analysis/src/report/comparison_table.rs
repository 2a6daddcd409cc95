//! Runs compared: one row per program, one group of columns per run.

use super::document::{Block, Column, Grid, Group};
use super::figures;
use crate::cache::CacheVerdict;
use crate::comparison::{Comparison, Pair, Quantity, RunName, Side, Verdict};
use crate::statistics::{Interval, Method};

/// What is written of an interval that says nothing.
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
        Block::Heading(format!("base: {}", introduced(base))),
        Block::List(
            others
                .iter()
                .map(|other| format!("other: {}", introduced(other)))
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
            blocks.push(Block::Grid(grid(&pairs)));
        }
    }
    blocks.push(Block::List(legend(comparison)));
    let warnings = warnings(comparison);
    if !warnings.is_empty() {
        blocks.push(Block::List(warnings));
    }
    blocks
}

fn introduced(run: &RunName) -> String {
    let label = run
        .label
        .as_ref()
        .map_or_else(String::new, |label| format!(" \"{label}\""));
    format!("{} on {}, run {}{label}", run.suite, run.measured, run.id)
}

/// The program, with what tells its rows apart where it stands several times.
/// The row of its durable speed follows that of its speed.
fn title(pair: &Pair, pairs: &[&Pair]) -> String {
    if pair.quantity == Quantity::DurableKbPerS {
        return "  durable".to_owned();
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
    title
}

fn grid(pairs: &[&Pair]) -> Grid {
    let column = |of: &dyn Fn(&Pair) -> String| pairs.iter().map(|pair| of(pair)).collect();
    let sides = |of: fn(&Pair) -> &Side| {
        let cell = |pair: &&Pair| {
            let side = of(pair);
            let cpu = match pair.quantity {
                Quantity::KbPerS => figures::cpu(side.cpu_percent),
                // The share is one of the time until the last call returned.
                Quantity::DurableKbPerS => String::new(),
            };
            (figures::speed(side.kb_per_s), cpu + side.cache.mark())
        };
        pairs.iter().map(cell).collect()
    };
    let ratio = |pair: &Pair| {
        pair.ratio
            .map_or_else(String::new, |ratio| format!("{ratio:.3}"))
    };
    Grid {
        key: Column::words("program", column(&|pair| title(pair, pairs))),
        groups: vec![Group::of(
            "",
            vec![
                Column::pairs("base\nKB/s (CPU)", sides(|pair| &pair.base)),
                Column::pairs("other\nKB/s (CPU)", sides(|pair| &pair.other)),
                Column::figures("ratio", column(&ratio)),
                Column::figures("95 %", column(&interval)),
                Column::words("verdict", column(&verdict)),
            ],
        )],
    }
}

fn interval(pair: &Pair) -> String {
    match (pair.interval, pair.ratio) {
        (Some(Interval { low, high, .. }), _) => {
            let digits = if high - low < 0.02 { 3 } else { 2 };
            format!("{low:.digits$}-{high:.digits$}")
        }
        (None, Some(_)) => UNKNOWN.to_owned(),
        (None, None) => String::new(),
    }
}

/// The verdict in words; one that is not sure says by how much.
fn verdict(pair: &Pair) -> String {
    let words = pair.verdict.words();
    match (pair.verdict, pair.interval, pair.ratio) {
        (Verdict::Unsure, Some(interval), Some(ratio)) => {
            format!("{words}: {}", figures::plus_minus(&interval, ratio))
        }
        _ => words.to_owned(),
    }
}

fn legend(comparison: &Comparison) -> Vec<String> {
    let pairs = &comparison.pairs;
    let mut lines = Vec::new();
    let mut methods: Vec<Method> = pairs
        .iter()
        .filter_map(|pair| Some(pair.interval?.method))
        .collect();
    methods.sort_unstable();
    methods.dedup();
    if !methods.is_empty() {
        let names: Vec<&str> = methods.iter().map(|method| method.name()).collect();
        lines.push(if methods == [Method::Exact] {
            "ratio: other over base, exact: both are modelled, in virtual time".to_owned()
        } else {
            format!(
                "ratio: other over base, from all kept repetitions; 95 %: its interval by {}",
                names.join(" or ")
            )
        });
    }
    let has = |verdict: Verdict| pairs.iter().any(|pair| pair.verdict == verdict);
    let remarks = [
        (
            pairs.iter().any(|pair| interval(pair) == UNKNOWN),
            "unknown: the repetitions are too few, or differ too much, for an interval",
        ),
        (
            pairs.iter().any(Pair::excluded_by_chance),
            "an interval that excludes 1 without a verdict: of several comparisons some do so by chance, and the verdicts hold for all of them together at 95 %",
        ),
        (
            has(Verdict::TooFewRepetitions),
            "too few repetitions to tell: fewer than four on either side show only large differences; use --runs 10",
        ),
        (
            has(Verdict::Unsure),
            "not sure: the ratio suggests a difference, but the intervals of all comparisons together exclude neither 10 % nor 0 %; use more repetitions or a quieter machine",
        ),
        (
            methods.contains(&Method::WelchLog) && !has(Verdict::TooFewRepetitions),
            "four repetitions or more on each side give narrower intervals: --runs 10",
        ),
    ];
    let occurring = remarks.into_iter().filter(|(occurs, _)| *occurs);
    lines.extend(occurring.map(|(_, text)| text.to_owned()));
    let sides = pairs.iter().flat_map(|pair| [&pair.base, &pair.other]);
    let mut verdicts: Vec<CacheVerdict> = sides.map(|side| side.cache).collect();
    verdicts.sort_unstable();
    verdicts.dedup();
    let marked = verdicts
        .into_iter()
        .rev()
        .filter(|verdict| !verdict.mark().is_empty());
    lines.extend(marked.map(|verdict| format!("{} {}", verdict.mark(), verdict.meaning())));
    lines
}

/// All warnings, each once with the programs that it is about.
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
        for pair in of_run().filter(|pair| pair.quantity == Quantity::KbPerS) {
            for warning in &pair.warnings {
                match found.iter_mut().find(|(text, _)| text == warning) {
                    Some((_, titles)) => titles.push(&pair.title),
                    None => found.push((warning, vec![&pair.title])),
                }
            }
        }
        let all = of_run()
            .filter(|pair| pair.quantity == Quantity::KbPerS)
            .count();
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
