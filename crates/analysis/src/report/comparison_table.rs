//! Runs compared: one row per program, one group of columns per run.

use super::document::{Block, Column, Grid, Group};
use super::figures;
use crate::cache::CacheVerdict;
use crate::comparison::{Comparison, Pair, Quantity, RunName, Side};
use crate::statistics::Method;

pub(super) fn blocks(comparison: &Comparison) -> Vec<Block> {
    let Some((base, others)) = comparison.runs.split_first() else {
        return vec![Block::Text("There is no run to compare.".to_owned())];
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
            blocks.push(Block::Section(format!("{}:", name(comparison, run))));
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
    format!("{} on {}, run {}{label}", run.suite, run.target, run.id)
}

/// Label or target, with the id where that is not unique.
fn name(comparison: &Comparison, run: usize) -> String {
    let of = |run: &RunName| run.label.clone().unwrap_or_else(|| run.target.clone());
    let wanted = &comparison.runs[run];
    let same = comparison
        .runs
        .iter()
        .filter(|other| of(other) == of(wanted))
        .count();
    if same == 1 {
        of(wanted)
    } else {
        format!("{} [{}]", of(wanted), wanted.id)
    }
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
            .map_or_else(String::new, |one| format!("{:.3}", one.point))
    };
    let interval = |pair: &Pair| {
        pair.ratio.map_or_else(String::new, |one| {
            let (low, high) = (one.interval.low, one.interval.high);
            let digits = if high - low < 0.02 { 3 } else { 2 };
            format!("{low:.digits$}-{high:.digits$}")
        })
    };
    let verdict = |pair: &Pair| pair.verdict.words().to_owned();
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

fn legend(comparison: &Comparison) -> Vec<String> {
    let pairs = &comparison.pairs;
    let mut lines = Vec::new();
    let mut methods: Vec<Method> = pairs
        .iter()
        .filter_map(|pair| Some(pair.ratio?.interval.method))
        .collect();
    methods.sort_unstable();
    methods.dedup();
    if !methods.is_empty() {
        let names: Vec<&str> = methods.iter().map(|method| method.name()).collect();
        lines.push(format!(
            "ratio: other over base, from all kept repetitions; 95 %: its interval by {}",
            names.join(" or ")
        ));
    }
    if methods.contains(&Method::WelchLog) {
        lines.push(
            "four repetitions or more on each side give narrower intervals: --runs 10".to_owned(),
        );
    }
    let rows = pairs.len() - comparison.undecided();
    if pairs.iter().any(Pair::excluded_by_chance) {
        lines.push(format!(
            "an interval that excludes 1 beside \"no difference seen\": of {rows} comparisons some \
             do by chance, and the verdicts hold for all of them together at 95 %"
        ));
    }
    if comparison.undecided() > 0 {
        lines.push(
            "too few repetitions: a verdict takes two or more on each side, a good one ten: \
             --runs 10"
                .to_owned(),
        );
    }
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
                name(comparison, warning.run),
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
            format!("{}: ", name(comparison, run))
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
            name(comparison, one.run),
            name(comparison, one.missing_in)
        ));
    }
    lines
}
