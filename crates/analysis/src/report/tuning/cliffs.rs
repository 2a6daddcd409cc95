//! Cliffs of a search in sentences and as a table.

use super::{format_figure, format_loss, format_percent};
use crate::report::document::{Column, ColumnGroup, DocumentBlock, Grid};
use crate::tuning::{
    BestStanding, CLIFF_STEP_RATIO_MAX, GridPoint, ParameterCliff, TuningResult, step_distance,
};

const ROW_COUNT_MAX: usize = 12;

/// Describes whether the best and today's settings are on a cliff, and how far the nearest cliff
/// is.
pub(super) fn list_advice(
    tuned: &TuningResult,
    best: &GridPoint,
    cliffs: &[ParameterCliff],
) -> Vec<String> {
    let mut advice = Vec::new();
    let is_unproven = tuned.standing_of_best(best) == BestStanding::Unproven;
    match find_worst_cliff(cliffs, |cliff| cliff.top_point == *best) {
        // Nobody is to go there.
        _ if is_unproven => {}
        Some(cliff) => advice.push(format!(
            "ON A CLIFF: {}; {}",
            describe_fall(tuned, cliff),
            describe_safe_point(tuned, best)
        )),
        None => advice.extend(describe_nearest_cliff(tuned, best, cliffs)),
    }
    let is_told = |cliff: &ParameterCliff| cliff.top_point == *best && !is_unproven;
    let of_today = |cliff: &ParameterCliff| !is_told(cliff) && tuned.is_today(&cliff.top_point);
    let of_today = find_worst_cliff(cliffs, of_today);
    advice.extend(
        of_today.map(|cliff| format!("TODAY IS ON A CLIFF: {}", describe_fall(tuned, cliff))),
    );
    let wide = tuned.find_wide_steps();
    let at_hand = |step: &ParameterCliff| is_told(step) || tuned.is_today(&step.top_point);
    advice.extend(find_worst_cliff(&wide, at_hand).map(|step| {
        format!(
            "{}, with nothing tried between: values between tell whether that is a cliff or a slope",
            describe_fall(tuned, step)
        )
    }));
    advice
}

fn find_worst_cliff(
    cliffs: &[ParameterCliff],
    figure_of: impl Fn(&ParameterCliff) -> bool,
) -> Option<&ParameterCliff> {
    let cliffs = cliffs.iter().filter(|cliff| figure_of(cliff));
    cliffs.min_by(|left, right| left.gain.total_cmp(&right.gain))
}

/// Describes a cliff: `drive.interleave from 3 to 2 loses 77.6 %`.
fn describe_fall(tuned: &TuningResult, cliff: &ParameterCliff) -> String {
    let key = &tuned.parameters[cliff.parameter_index];
    format!(
        "{} from {} to {} loses {}",
        key.path,
        key.values[cliff.top_point[cliff.parameter_index]],
        key.values[cliff.bottom_point[cliff.parameter_index]],
        format_loss(cliff.gain)
    )
}

fn describe_safe_point(tuned: &TuningResult, best: &GridPoint) -> String {
    let Some(safe) = tuned.safe_point() else {
        return "no safe settings were tried: all stand on a cliff too, or cost more than half of the fall"
            .to_owned();
    };
    let cost = tuned.goal_value(best).zip(tuned.goal_value(safe));
    let cost = cost.map_or(0.0, |(best, safe)| tuned.goal.gain(best, safe));
    let beside = |places: &GridPoint| {
        tuned
            .worst_neighbour_gain(places)
            .map_or(String::new(), format_figure)
    };
    format!(
        "safe is {}, which costs {}; one step off it gives {} {}, not {}",
        tuned.describe_settings(safe),
        format_loss(cost),
        beside(safe),
        tuned.goal.unit(),
        beside(best)
    )
}

fn describe_nearest_cliff(
    tuned: &TuningResult,
    best: &GridPoint,
    cliffs: &[ParameterCliff],
) -> Option<String> {
    let nearest = cliffs
        .iter()
        .min_by_key(|cliff| step_distance(&cliff.top_point, best))?;
    let steps = match step_distance(&nearest.top_point, best) {
        1 => "1 step".to_owned(),
        steps => format!("{steps} steps"),
    };
    Some(format!(
        "the best settings stand on no cliff; the nearest is {steps} away: {}",
        describe_fall(tuned, nearest)
    ))
}

/// Tabulates all cliffs, and the equally deep falls between values far apart.
pub(super) fn build_blocks(
    tuned: &TuningResult,
    best: &GridPoint,
    cliffs: &[ParameterCliff],
) -> Vec<DocumentBlock> {
    let mut blocks = build_cliff_list(tuned, best, ("Cliffs:", "cliffs"), cliffs);
    let title = format!(
        "Steps by more than a factor of {CLIFF_STEP_RATIO_MAX}, with nothing tried between:"
    );
    blocks.extend(build_cliff_list(
        tuned,
        best,
        (&title, "such steps"),
        &tuned.find_wide_steps(),
    ));
    blocks
}

/// Tabulates cliffs or wide steps; only the deepest ones if there are many.
fn build_cliff_list(
    tuned: &TuningResult,
    best: &GridPoint,
    (title, kind): (&str, &str),
    cliffs: &[ParameterCliff],
) -> Vec<DocumentBlock> {
    if cliffs.is_empty() {
        return Vec::new();
    }
    let mut shown: Vec<&ParameterCliff> = cliffs.iter().collect();
    if cliffs.len() > ROW_COUNT_MAX {
        shown.sort_by(|left, right| left.gain.total_cmp(&right.gain));
        shown.truncate(ROW_COUNT_MAX);
    }
    let mut blocks = vec![
        DocumentBlock::Section(title.to_owned()),
        DocumentBlock::Grid(build_grid(tuned, best, &shown)),
    ];
    if shown.len() < cliffs.len() {
        blocks.push(DocumentBlock::Text(format!(
            "the {} deepest of {} {kind}; --format json has all",
            shown.len(),
            cliffs.len()
        )));
    }
    blocks
}

fn build_grid(tuned: &TuningResult, best: &GridPoint, cliffs: &[&ParameterCliff]) -> Grid {
    let column =
        |of: &dyn Fn(&ParameterCliff) -> String| cliffs.iter().map(|cliff| of(cliff)).collect();
    let value = |cliff: &ParameterCliff, places: &GridPoint| {
        tuned.parameters[cliff.parameter_index].values[places[cliff.parameter_index]].clone()
    };
    let measured = |places: &GridPoint| {
        tuned
            .goal_value(places)
            .map_or(String::new(), format_figure)
    };
    let unit = tuned.goal.unit();
    Grid {
        key_column: Column::left_aligned(
            "",
            column(&|cliff| tuned.parameters[cliff.parameter_index].path.clone()),
        ),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                Column::right_aligned("from", column(&|cliff| value(cliff, &cliff.top_point))),
                Column::right_aligned("to", column(&|cliff| value(cliff, &cliff.bottom_point))),
                Column::right_aligned(
                    &format!("from {unit}"),
                    column(&|cliff| measured(&cliff.top_point)),
                ),
                Column::right_aligned(
                    &format!("to {unit}"),
                    column(&|cliff| measured(&cliff.bottom_point)),
                ),
                Column::right_aligned("gain", column(&|cliff| format_percent(cliff.gain))),
                Column::right_aligned(
                    "expected",
                    column(&|cliff| format_percent(cliff.expected_gain)),
                ),
                Column::left_aligned(
                    "with",
                    column(&|cliff| tuned.describe_other_settings(cliff)),
                ),
                Column::left_aligned(
                    " ",
                    column(&|cliff| describe_edge(tuned, best, cliff).to_owned()),
                ),
            ],
        )],
    }
}

/// Describes the settings at the edge of a cliff: the best ones, today's, or both.
fn describe_edge(tuned: &TuningResult, best: &GridPoint, cliff: &ParameterCliff) -> &'static str {
    match (cliff.top_point == *best, tuned.is_today(&cliff.top_point)) {
        (true, true) => "best, today",
        (true, false) => tuned.label_of_best(best),
        (false, true) => "today",
        (false, false) => "",
    }
}
