//! Result of a tuning search as tables, JSON and CSV.

mod cliffs;
mod data;
mod surface;

pub(super) use data::{render_csv, render_json};

use super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use super::unwritten;
use crate::comparison::Judgement;
use crate::tuning::{
    BestStanding, CLIFF_LOSS_SHARE_MIN, GridPoint, P99_CALLS_MIN, ParameterCliff, SearchKind,
    SeedSpread, TuningGoal, TuningResult,
};
use crate::tuning::{ParameterStep, RangeEndValue, ValueRange};
use diskperf_timeline::units::format_size;

pub(super) fn build_blocks(tuned: &TuningResult) -> Vec<DocumentBlock> {
    let Some(best) = tuned.best_point() else {
        return vec![
            DocumentBlock::Heading(format_heading(tuned)),
            DocumentBlock::List(list_remarks(tuned)),
        ];
    };
    let mut blocks = vec![
        DocumentBlock::Heading(format_heading(tuned)),
        DocumentBlock::Grid(build_answer_grid(tuned, best)),
    ];
    let cliffs = tuned.find_cliffs();
    let verdict = describe_verdict(tuned, best, &cliffs);
    if !verdict.is_empty() {
        blocks.push(DocumentBlock::List(verdict));
    }
    blocks.extend(surface::build_blocks(tuned, best));
    let steps = tuned.list_steps(best);
    if !steps.is_empty() {
        let label = tuned.label_of_best(best);
        blocks.push(DocumentBlock::Section(format!(
            "One step from the {label}:"
        )));
        blocks.push(DocumentBlock::Grid(build_step_grid(&steps)));
    }
    blocks.extend(cliffs::build_blocks(tuned, best, &cliffs));
    blocks.push(DocumentBlock::List(list_remarks(tuned)));
    blocks
}

pub(super) fn format_heading(tuned: &TuningResult) -> String {
    let keys: Vec<&str> = tuned
        .parameters
        .iter()
        .map(|key| key.path.as_str())
        .collect();
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

fn format_percent(gain: f64) -> String {
    let percent = 100.0 * gain;
    // A minus before nothing says nothing.
    let percent = if percent.abs() < 0.05 { 0.0 } else { percent };
    format!("{percent:+.1} %")
}

/// Tabulates the best, the safe and today's settings, with their figures and gains.
fn build_answer_grid(tuned: &TuningResult, best: &GridPoint) -> Grid {
    let spread = tuned.seed_spread.as_ref();
    let own: Vec<String> = tuned
        .parameters
        .iter()
        .map(|key| {
            format!(
                "{}={}",
                key.path,
                key.today_value.as_deref().unwrap_or("unset")
            )
        })
        .collect();
    let row = |name, places: &GridPoint, gain_over_seeds| AnswerRow {
        name,
        settings: tuned.describe_settings(places),
        value: tuned.goal_value(places),
        unwritten_share: tuned.unwritten_share(places),
        gain_over_today: tuned
            .gain_over_today(places)
            .filter(|_| !tuned.is_today(places)),
        gain_over_seeds,
    };
    let standing = tuned.standing_of_best(best);
    let mut rows = Vec::new();
    if standing != BestStanding::Unproven || tuned.is_leading(best) {
        rows.push(row(
            standing.label(),
            best,
            spread.map(|spread| &spread.best_values),
        ));
    }
    let safe = tuned
        .safe_point()
        .filter(|_| standing != BestStanding::Unproven);
    if let Some(safe) = safe {
        rows.push(row("safe", safe, spread.map(|spread| &spread.safe_values)));
    }
    rows.push(AnswerRow {
        name: "today",
        settings: own.join(", "),
        value: tuned.today_value(),
        unwritten_share: tuned.today_unwritten_share(),
        gain_over_today: None,
        gain_over_seeds: spread.map(|spread| &spread.today_values),
    });
    let extent = |gain_over_seeds: Option<&Vec<f64>>| {
        gain_over_seeds
            .and_then(|gain_over_seeds| ValueRange::from_values(gain_over_seeds))
            .map_or(String::new(), format_range)
    };
    let column = |of: &dyn Fn(&AnswerRow<'_>) -> String| rows.iter().map(of).collect();
    let gain_over_seeds = spread.map_or(String::new(), |spread| match spread.phase_count {
        1 => describe_seed_count(spread),
        phases => format!("{} x {phases} phases", describe_seed_count(spread)),
    });
    Grid {
        key_column: Column::left_aligned("", column(&|row| row.name.to_owned())),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                Column::left_aligned("settings", column(&|row| row.settings.clone())),
                Column::right_aligned(
                    tuned.goal.quantity(),
                    column(&|row| {
                        let value = row.value.map_or(String::new(), format_figure);
                        value + unwritten::mark_of_share(row.unwritten_share)
                    }),
                ),
                Column::right_aligned(
                    "gain",
                    column(&|row| row.gain_over_today.map_or(String::new(), format_percent)),
                ),
                Column::right_aligned(&gain_over_seeds, column(&|row| extent(row.gain_over_seeds))),
            ],
        )],
    }
}

/// Settings of one point of the search, with their figures.
struct AnswerRow<'a> {
    name: &'static str,
    settings: String,
    value: Option<f64>,
    unwritten_share: Option<f64>,
    gain_over_today: Option<f64>,
    /// Values of the goal with the settings, for each seed and spindle phase.
    gain_over_seeds: Option<&'a Vec<f64>>,
}

fn format_range(extent: ValueRange) -> String {
    let (least, most) = (format_figure(extent.min), format_figure(extent.max));
    match least == most {
        true => least,
        false => format!("{least} to {most}"),
    }
}

fn describe_verdict(
    tuned: &TuningResult,
    best: &GridPoint,
    cliffs: &[ParameterCliff],
) -> Vec<String> {
    let mut verdict = Vec::new();
    let standing = tuned.standing_of_best(best);
    match (&tuned.samples, &tuned.seed_spread, standing) {
        (Some(_), _, BestStanding::Unproven) if !tuned.is_leading(best) => {
            verdict.push(KEEP_TODAY_ADVICE.to_owned());
        }
        (Some(samples), ..) => verdict.push(match samples.compare_with_today(best) {
            Some(judged) => compare_with_today(judged, standing),
            None => "none of the tried settings is better than today's".to_owned(),
        }),
        (None, _, BestStanding::AsGoodAsToday) => {
            verdict.push("today's settings are as good as the best".to_owned());
        }
        (None, spread, _) => {
            let spread = spread.as_ref();
            verdict.extend(spread.and_then(|spread| describe_seeds(tuned.goal, spread, standing)));
        }
    }
    verdict.extend(cliffs::list_advice(tuned, best, cliffs));
    if standing == BestStanding::Unproven {
        return verdict;
    }
    for RangeEndValue { path, value } in tuned.parameters_at_range_end() {
        verdict.push(format!(
            "{path}={value} is at the end of the range: a better value may lie beyond"
        ));
    }
    verdict
}

const KEEP_TODAY_ADVICE: &str = "nothing is shown to be better than today's settings: keep them";

/// Describes the gain of the best settings over the target's current ones, by the repetitions.
fn compare_with_today(judged: Judgement, standing: BestStanding) -> String {
    let interval = judged.interval.map_or(String::new(), |interval| {
        format!(
            " (99 %: {} to {})",
            format_percent(interval.min - 1.0),
            format_percent(interval.max - 1.0)
        )
    });
    let advice = match standing {
        BestStanding::Better | BestStanding::AsGoodAsToday => {
            "the best settings are better than today's"
        }
        BestStanding::Unproven => KEEP_TODAY_ADVICE,
    };
    let gain = judged
        .ratio
        .map_or(String::new(), |ratio| format_percent(ratio - 1.0));
    format!("{}: {gain}{interval}; {advice}", judged.verdict.label())
}

fn format_loss(gain: f64) -> String {
    let lost = if gain > -0.0005 { 0.0 } else { -100.0 * gain };
    format!("{lost:.1} %")
}

fn describe_seeds(goal: TuningGoal, spread: &SeedSpread, standing: BestStanding) -> Option<String> {
    let gains = spread.gains(goal);
    let extent = ValueRange::from_values(&gains)?;
    let faster = gains.iter().filter(|gain| **gain > 0.0).count();
    let (least, most) = (format_percent(extent.min), format_percent(extent.max));
    let range = match least == most {
        true => String::new(),
        false => format!(" ({least} to {most})"),
    };
    let phases = match spread.phase_count {
        1 => String::new(),
        phases => format!(" and {phases} spindle phases of each"),
    };
    let advice = match standing {
        BestStanding::Better | BestStanding::AsGoodAsToday => String::new(),
        BestStanding::Unproven => format!("; {KEEP_TODAY_ADVICE}"),
    };
    Some(format!(
        "over {}{phases}, the {} settings gain {}{range} over today's and are better in {faster} of {} pairs{advice}",
        describe_seed_count(spread),
        standing.label(),
        format_percent(extent.median),
        gains.len()
    ))
}

fn describe_seed_count(spread: &SeedSpread) -> String {
    match spread.seed_count {
        1 => "1 seed".to_owned(),
        seeds => format!("{seeds} seeds"),
    }
}

fn build_step_grid(steps: &[ParameterStep]) -> Grid {
    let column = |of: &dyn Fn(&ParameterStep) -> String| steps.iter().map(of).collect();
    let remark = |step: &ParameterStep| match (step.gain, step.is_cliff) {
        (None, _) => "impossible",
        (_, true) => "a cliff",
        _ => "",
    };
    Grid {
        key_column: Column::left_aligned("", column(&|step| step.path.clone())),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                Column::right_aligned("from", column(&|step| step.from_value.clone())),
                Column::right_aligned("to", column(&|step| step.to_value.clone())),
                Column::right_aligned(
                    "gain",
                    column(&|step| step.gain.map_or(String::new(), format_percent)),
                ),
                Column::left_aligned(" ", column(&|step| remark(step).to_owned())),
            ],
        )],
    }
}

/// Describes how the search was made, with all further remarks.
fn list_remarks(tuned: &TuningResult) -> Vec<String> {
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
    if tuned.method.from_store_count > 0 {
        remarks.push(format!(
            "{} of {} points from the store; --fresh runs them again",
            tuned.method.from_store_count, tuned.method.tried_count
        ));
    }
    let idle = tuned.parameters_without_effect();
    if !idle.is_empty() {
        remarks.push(format!("{} had no effect", idle.join(" and ")));
    }
    remarks.extend(describe_impossible(tuned));
    remarks.push(format!(
        "a cliff is a step that loses {:.0} % or more beyond what the steps around it lead one to expect{}",
        100.0 * CLIFF_LOSS_SHARE_MIN,
        describe_uncertainty(tuned)
    ));
    let points = tuned.points.keys();
    let unwritten = points.map(|places| tuned.unwritten_share(places));
    remarks.extend(unwritten::format_legend(
        unwritten.chain([tuned.today_unwritten_share()]),
    ));
    let doubtful = tuned.uncertain_parameter_count();
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
fn describe_uncertainty(tuned: &TuningResult) -> String {
    let (repetitions, discarded) = tuned.method.repetition_range;
    let counted = repetitions.saturating_sub(discarded);
    if tuned.samples.is_some() {
        return ", and of which visits in the same rounds show that it is no chance".to_owned();
    }
    match tuned.goal {
        TuningGoal::Latency => {
            let fall = tuned.cliff_loss_range().map(|range| {
                let least = format_loss(-range.loss_share_min);
                let most = format_loss(-range.loss_share_max);
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
        TuningGoal::Throughput if counted > 1 => {
            ", and beyond what repetitions differ by".to_owned()
        }
        TuningGoal::Throughput => "; what chance does to one repetition is not known".to_owned(),
        TuningGoal::Cpu => "; what chance does to the processor time is not known".to_owned(),
    }
}

fn describe_search(tuned: &TuningResult) -> String {
    let method = &tuned.method;
    let mut sizes: Vec<String> = method.size_bytes.iter().copied().map(format_size).collect();
    sizes.dedup();
    let (repetitions, discarded) = method.repetition_range;
    let how = match method.kind {
        SearchKind::Exhaustive => {
            format!("all {} combinations were tried", method.combination_count)
        }
        SearchKind::Descent { screened, starts } => {
            let screening = match screened {
                0 => String::new(),
                runs => format!(
                    ", the next from successive halving ({runs} more runs at a quarter and half of the size)"
                ),
            };
            let around = match method.neighbour_count {
                0 => String::new(),
                around => format!(", {around} of them afterwards for the cliff"),
            };
            format!(
                "coordinate descent from {starts} starts, the first from today's settings{screening}: {} of {} combinations were tried{around}; the budget was {}",
                method.tried_count, method.combination_count, method.run_budget
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

fn describe_impossible(tuned: &TuningResult) -> Option<String> {
    let mut points = tuned.points.iter();
    let (places, why) = points.find_map(|(places, outcome)| match outcome {
        crate::tuning::PointOutcome::Impossible(why) => Some((places, why)),
        crate::tuning::PointOutcome::Measured(_) => None,
    })?;
    Some(format!(
        "impossible (-): {} of the {} tried; the first is {}: {why}",
        tuned.method.impossible_count,
        tuned.method.tried_count,
        tuned.describe_settings(places)
    ))
}

#[cfg(test)]
mod tests;
