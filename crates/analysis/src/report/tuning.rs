//! Result of a tuning search as tables, JSON and CSV.

mod cliffs;
mod data;
mod surface;

pub(super) use data::{csv, json};

use super::document::{Block, Column, Grid, Group};
use super::unwritten;
use crate::comparison::Judgement;
use crate::tuning::{
    CLIFF_SHARE, Cliff, Goal, P99_CALLS_MIN, Places, Searched, Spread, Standing, Tuned,
};
use crate::tuning::{Extent, Step};
use diskperf_timeline::units::format_size;

/// Formats the result of a tuning search as a report.
pub(super) fn blocks(tuned: &Tuned) -> Vec<Block> {
    let Some(best) = tuned.best() else {
        return vec![Block::Heading(heading(tuned)), Block::List(remarks(tuned))];
    };
    let mut blocks = vec![
        Block::Heading(heading(tuned)),
        Block::Grid(answer(tuned, best)),
    ];
    let cliffs = tuned.cliffs();
    let verdict = describe_verdict(tuned, best, &cliffs);
    if !verdict.is_empty() {
        blocks.push(Block::List(verdict));
    }
    blocks.extend(surface::blocks(tuned, best));
    let steps = tuned.steps(best);
    if !steps.is_empty() {
        let label = tuned.standing(best).label();
        blocks.push(Block::Section(format!("One step from the {label}:")));
        blocks.push(Block::Grid(steps_grid(&steps)));
    }
    blocks.extend(cliffs::blocks(tuned, best, &cliffs));
    blocks.push(Block::List(remarks(tuned)));
    blocks
}

pub(super) fn heading(tuned: &Tuned) -> String {
    let keys: Vec<&str> = tuned.keys.iter().map(|key| key.path.as_str()).collect();
    format!(
        "{} on {}: best {} over {}",
        tuned.suite,
        tuned.target,
        tuned.goal.name(),
        keys.join(" and ")
    )
}

/// Formats a figure of the search with its significant digits.
fn format_figure(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.3}"),
    }
}

fn percent(gain: f64) -> String {
    let percent = 100.0 * gain;
    // A minus before nothing says nothing.
    let percent = if percent.abs() < 0.05 { 0.0 } else { percent };
    format!("{percent:+.1} %")
}

/// Tabulates the best, the safe and today's settings, with their figures and gains.
fn answer(tuned: &Tuned, best: &Places) -> Grid {
    let spread = tuned.spread.as_ref();
    let own: Vec<String> = tuned
        .keys
        .iter()
        .map(|key| format!("{}={}", key.path, key.today.as_deref().unwrap_or("unset")))
        .collect();
    let row = |name, places: &Places, gain_over_seeds| AnswerRow {
        name,
        settings: tuned.settings(places),
        value: tuned.value(places),
        unwritten: tuned.unwritten_share(places),
        gain: tuned
            .gain_over_today(places)
            .filter(|_| !tuned.is_today(places)),
        gain_over_seeds,
    };
    let standing = tuned.standing(best);
    let mut rows = vec![row(
        standing.label(),
        best,
        spread.map(|spread| &spread.best),
    )];
    let safe = tuned.safe().filter(|_| standing != Standing::Unproven);
    if let Some(safe) = safe {
        rows.push(row("safe", safe, spread.map(|spread| &spread.safe)));
    }
    rows.push(AnswerRow {
        name: "today",
        settings: own.join(", "),
        value: tuned.today_value(),
        unwritten: tuned.today_unwritten_share(),
        gain: None,
        gain_over_seeds: spread.map(|spread| &spread.today),
    });
    let extent = |gain_over_seeds: Option<&Vec<f64>>| {
        gain_over_seeds
            .and_then(|gain_over_seeds| Extent::from_values(gain_over_seeds))
            .map_or(String::new(), range)
    };
    let column = |of: &dyn Fn(&AnswerRow<'_>) -> String| rows.iter().map(of).collect();
    let gain_over_seeds = spread.map_or(String::new(), |spread| match spread.phases {
        1 => seeds(spread),
        phases => format!("{} x {phases} phases", seeds(spread)),
    });
    Grid {
        key: Column::words("", column(&|row| row.name.to_owned())),
        groups: vec![Group::new(
            "",
            vec![
                Column::words("settings", column(&|row| row.settings.clone())),
                Column::figures(
                    tuned.goal.quantity(),
                    column(&|row| {
                        let value = row.value.map_or(String::new(), format_figure);
                        value + unwritten::mark(row.unwritten)
                    }),
                ),
                Column::figures(
                    "gain",
                    column(&|row| row.gain.map_or(String::new(), percent)),
                ),
                Column::figures(&gain_over_seeds, column(&|row| extent(row.gain_over_seeds))),
            ],
        )],
    }
}

/// Settings of one point of the search, with their figures.
struct AnswerRow<'a> {
    name: &'static str,
    settings: String,
    value: Option<f64>,
    unwritten: Option<f64>,
    /// Gain of the settings over today's, as a share.
    gain: Option<f64>,
    /// Values of the goal with the settings, for each seed and spindle phase.
    gain_over_seeds: Option<&'a Vec<f64>>,
}

fn range(extent: Extent) -> String {
    let (least, most) = (format_figure(extent.least), format_figure(extent.most));
    match least == most {
        true => least,
        false => format!("{least} to {most}"),
    }
}

fn describe_verdict(tuned: &Tuned, best: &Places, cliffs: &[Cliff]) -> Vec<String> {
    let mut verdict = Vec::new();
    let standing = tuned.standing(best);
    match (&tuned.samples, &tuned.spread, standing) {
        (Some(samples), ..) => verdict.push(match samples.against_today(best) {
            Some(judged) => compare_with_today(judged, standing),
            None => "none of the tried settings is better than today's".to_owned(),
        }),
        (None, _, Standing::AsGood) => {
            verdict.push("today's settings are as good as the best".to_owned());
        }
        (None, spread, _) => {
            let spread = spread.as_ref();
            verdict.extend(spread.and_then(|spread| describe_seeds(tuned.goal, spread, standing)));
        }
    }
    verdict.extend(cliffs::advice(tuned, best, cliffs));
    if standing == Standing::Unproven {
        return verdict;
    }
    for (path, value) in tuned.parameters_at_range_end() {
        verdict.push(format!(
            "{path}={value} is at the end of the range: a better value may lie beyond"
        ));
    }
    verdict
}

const KEEP: &str = "nothing is shown to be better than today's settings: keep them";

/// Describes the gain of the best settings over the target's current ones, by the repetitions.
fn compare_with_today(judged: Judgement, standing: Standing) -> String {
    let interval = judged.interval.map_or(String::new(), |interval| {
        format!(
            " (99 %: {} to {})",
            percent(interval.low - 1.0),
            percent(interval.high - 1.0)
        )
    });
    let advice = match standing {
        Standing::Better | Standing::AsGood => "the best settings are better than today's",
        Standing::Unproven => KEEP,
    };
    let gain = judged
        .ratio
        .map_or(String::new(), |ratio| percent(ratio - 1.0));
    format!("{}: {gain}{interval}; {advice}", judged.verdict.words())
}

fn format_loss(gain: f64) -> String {
    let lost = if gain > -0.0005 { 0.0 } else { -100.0 * gain };
    format!("{lost:.1} %")
}

fn describe_seeds(goal: Goal, spread: &Spread, standing: Standing) -> Option<String> {
    let gains = spread.gains(goal);
    let extent = Extent::from_values(&gains)?;
    let faster = gains.iter().filter(|gain| **gain > 0.0).count();
    let (least, most) = (percent(extent.least), percent(extent.most));
    let range = match least == most {
        true => String::new(),
        false => format!(" ({least} to {most})"),
    };
    let phases = match spread.phases {
        1 => String::new(),
        phases => format!(" and {phases} spindle phases of each"),
    };
    let advice = match standing {
        Standing::Better | Standing::AsGood => String::new(),
        Standing::Unproven => format!("; {KEEP}"),
    };
    Some(format!(
        "over {}{phases}, the {} settings gain {}{range} over today's and are better in {faster} of {} pairs{advice}",
        seeds(spread),
        standing.label(),
        percent(extent.median),
        gains.len()
    ))
}

fn seeds(spread: &Spread) -> String {
    match spread.seeds {
        1 => "1 seed".to_owned(),
        seeds => format!("{seeds} seeds"),
    }
}

fn steps_grid(steps: &[Step]) -> Grid {
    let column = |of: &dyn Fn(&Step) -> String| steps.iter().map(of).collect();
    let remark = |step: &Step| match (step.gain, step.cliff) {
        (None, _) => "impossible",
        (_, true) => "a cliff",
        _ => "",
    };
    Grid {
        key: Column::words("", column(&|step| step.path.clone())),
        groups: vec![Group::new(
            "",
            vec![
                Column::figures("from", column(&|step| step.from.clone())),
                Column::figures("to", column(&|step| step.to.clone())),
                Column::figures(
                    "gain",
                    column(&|step| step.gain.map_or(String::new(), percent)),
                ),
                Column::words(" ", column(&|step| remark(step).to_owned())),
            ],
        )],
    }
}

/// Describes how the search was made, with all further remarks.
fn remarks(tuned: &Tuned) -> Vec<String> {
    let mut remarks = vec![describe_search(tuned)];
    if tuned.programs.len() > 1 {
        remarks.push(format!(
            "{} is the geometric mean over {} programs: {}",
            tuned.goal.quantity(),
            tuned.programs.len(),
            tuned.programs.join(", ")
        ));
    }
    if tuned.samples.is_some() {
        remarks.push(
            "gains and losses are of visits in the same round, so that what changes meanwhile meets both; figures are of all visits, and their quotients differ from them"
                .to_owned(),
        );
    }
    if tuned.method.from_store > 0 {
        remarks.push(format!(
            "{} of {} points from the store; --fresh runs them again",
            tuned.method.from_store, tuned.method.tried
        ));
    }
    let idle = tuned.parameters_without_effect();
    if !idle.is_empty() {
        remarks.push(format!("{} had no effect", idle.join(" and ")));
    }
    remarks.extend(describe_impossible(tuned));
    remarks.push(format!(
        "a cliff is a step that loses {:.0} % or more beyond what the steps around it lead one to expect{}",
        100.0 * CLIFF_SHARE,
        describe_uncertainty(tuned)
    ));
    let points = tuned.points.keys();
    let unwritten = points.map(|places| tuned.unwritten_share(places));
    remarks.extend(unwritten::legend(
        unwritten.chain([tuned.today_unwritten_share()]),
    ));
    let doubtful = tuned.doubtful();
    if doubtful > 0 {
        remarks.push(format!(
            "no cliff is named down from {doubtful} of {} points: their p99 is of fewer than {P99_CALLS_MIN} calls in a repetition, too few to tell a cliff from chance; use a larger --size",
            tuned.points.len()
        ));
    }
    remarks.extend(tuned.notes.iter().cloned());
    remarks
}

/// Describes the known random variation that a cliff must exceed.
fn describe_uncertainty(tuned: &Tuned) -> String {
    let (repetitions, discarded) = tuned.method.repetitions;
    let counted = repetitions.saturating_sub(discarded);
    if tuned.samples.is_some() {
        return ", and of which visits in the same rounds show that it is no chance".to_owned();
    }
    match tuned.goal {
        Goal::Latency => {
            let fall = tuned.cliff_loss_range().map(|(least, most)| {
                let (least, most) = (format_loss(-least), format_loss(-most));
                match least == most {
                    true => format!(": {least} with the calls of this search"),
                    false => format!(": {least} to {most} with the calls of this search"),
                }
            });
            format!(
                ", and beyond what chance does to a p99 of as many calls (99.9 %){}",
                fall.unwrap_or_default()
            )
        }
        Goal::Throughput if counted > 1 => ", and beyond what repetitions differ by".to_owned(),
        Goal::Throughput => "; what chance does to one repetition is not known".to_owned(),
        Goal::Cpu => "; what chance does to the processor time is not known".to_owned(),
    }
}

fn describe_search(tuned: &Tuned) -> String {
    let method = &tuned.method;
    let mut sizes: Vec<String> = method.size_bytes.iter().copied().map(format_size).collect();
    sizes.dedup();
    let (repetitions, discarded) = method.repetitions;
    let how = match method.search {
        Searched::Exhaustive => format!("all {} combinations were tried", method.combinations),
        Searched::Descent { screened, starts } => {
            let screening = match screened {
                0 => String::new(),
                runs => format!(
                    ", the next from successive halving ({runs} more runs at a quarter and half of the size)"
                ),
            };
            let around = match method.around {
                0 => String::new(),
                around => format!(", {around} of them afterwards for the cliff"),
            };
            format!(
                "coordinate descent from {starts} starts, the first from today's settings{screening}: {} of {} combinations were tried{around}; the budget was {}",
                method.tried, method.combinations, method.budget
            )
        }
    };
    if repetitions == 1 {
        return format!("{how}; each program ran once with {}", sizes.join(", "));
    }
    format!(
        "{how}; each program ran {repetitions} times with {}, and the first {} not count",
        sizes.join(", "),
        match discarded {
            1 => "does".to_owned(),
            more => format!("{more} do"),
        }
    )
}

fn describe_impossible(tuned: &Tuned) -> Option<String> {
    let mut points = tuned.points.iter();
    let (places, why) = points.find_map(|(places, outcome)| match outcome {
        crate::tuning::Outcome::Impossible(why) => Some((places, why)),
        crate::tuning::Outcome::Ran(_) => None,
    })?;
    Some(format!(
        "impossible (-): {} of the {} tried; the first is {}: {why}",
        tuned.method.impossible,
        tuned.method.tried,
        tuned.settings(places)
    ))
}

#[cfg(test)]
mod tests;
