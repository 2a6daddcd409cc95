//! Cliffs of a search in sentences and as a table.

use super::{format_figure, format_loss, percent};
use crate::report::document::{Block, Column, Grid, Group};
use crate::tuning::{CLIFF_STEP_RATIO_MAX, Cliff, Places, Standing, Tuned, distance};

const ROWS_MAX: usize = 12;

/// Describes whether the best and today's settings are on a cliff, and how far the nearest cliff
/// is.
pub(super) fn advice(tuned: &Tuned, best: &Places, cliffs: &[Cliff]) -> Vec<String> {
    let mut advice = Vec::new();
    let is_unproven = tuned.standing(best) == Standing::Unproven;
    match worst_cliff(cliffs, |cliff| cliff.top == *best) {
        // Nobody is to go there.
        _ if is_unproven => {}
        Some(cliff) => advice.push(format!(
            "ON A CLIFF: {}; {}",
            describe_fall(tuned, cliff),
            describe_safe_point(tuned, best)
        )),
        None => advice.extend(describe_nearest_cliff(tuned, best, cliffs)),
    }
    let is_told = |cliff: &Cliff| cliff.top == *best && !is_unproven;
    let of_today = |cliff: &Cliff| !is_told(cliff) && tuned.is_today(&cliff.top);
    let of_today = worst_cliff(cliffs, of_today);
    advice.extend(
        of_today.map(|cliff| format!("TODAY IS ON A CLIFF: {}", describe_fall(tuned, cliff))),
    );
    let wide = tuned.find_wide_steps();
    let at_hand = |step: &Cliff| is_told(step) || tuned.is_today(&step.top);
    advice.extend(worst_cliff(&wide, at_hand).map(|step| {
        format!(
            "{}, with nothing tried between: values between tell whether that is a cliff or a slope",
            describe_fall(tuned, step)
        )
    }));
    advice
}

fn worst_cliff(cliffs: &[Cliff], figure_of: impl Fn(&Cliff) -> bool) -> Option<&Cliff> {
    let cliffs = cliffs.iter().filter(|cliff| figure_of(cliff));
    cliffs.min_by(|left, right| left.gain.total_cmp(&right.gain))
}

/// Describes a cliff: `drive.interleave from 3 to 2 loses 77.6 %`.
fn describe_fall(tuned: &Tuned, cliff: &Cliff) -> String {
    let key = &tuned.keys[cliff.key];
    format!(
        "{} from {} to {} loses {}",
        key.path,
        key.values[cliff.top[cliff.key]],
        key.values[cliff.bottom[cliff.key]],
        format_loss(cliff.gain)
    )
}

/// Describes the safe settings to choose in place of a best point on a cliff.
fn describe_safe_point(tuned: &Tuned, best: &Places) -> String {
    let Some(safe) = tuned.safe() else {
        return "no safe settings were tried: all stand on a cliff too, or cost more than half of the fall"
            .to_owned();
    };
    let cost = tuned.value(best).zip(tuned.value(safe));
    let cost = cost.map_or(0.0, |(best, safe)| tuned.goal.gain(best, safe));
    let beside = |places: &Places| {
        tuned
            .worst_beside(places)
            .map_or(String::new(), format_figure)
    };
    format!(
        "safe is {}, which costs {}; one step off it gives {} {}, not {}",
        tuned.settings(safe),
        format_loss(cost),
        beside(safe),
        tuned.goal.unit(),
        beside(best)
    )
}

fn describe_nearest_cliff(tuned: &Tuned, best: &Places, cliffs: &[Cliff]) -> Option<String> {
    let nearest = cliffs
        .iter()
        .min_by_key(|cliff| distance(&cliff.top, best))?;
    let steps = match distance(&nearest.top, best) {
        1 => "1 step".to_owned(),
        steps => format!("{steps} steps"),
    };
    Some(format!(
        "the best settings stand on no cliff; the nearest is {steps} away: {}",
        describe_fall(tuned, nearest)
    ))
}

/// Tabulates all cliffs, and the equally deep falls between values far apart.
pub(super) fn blocks(tuned: &Tuned, best: &Places, cliffs: &[Cliff]) -> Vec<Block> {
    let mut blocks = cliff_list(tuned, best, ("Cliffs:", "cliffs"), cliffs);
    let title = format!(
        "Steps by more than a factor of {CLIFF_STEP_RATIO_MAX}, with nothing tried between:"
    );
    blocks.extend(cliff_list(
        tuned,
        best,
        (&title, "such steps"),
        &tuned.find_wide_steps(),
    ));
    blocks
}

/// Tabulates cliffs or wide steps; only the deepest ones if there are many.
fn cliff_list(
    tuned: &Tuned,
    best: &Places,
    (title, kind): (&str, &str),
    cliffs: &[Cliff],
) -> Vec<Block> {
    if cliffs.is_empty() {
        return Vec::new();
    }
    let mut shown: Vec<&Cliff> = cliffs.iter().collect();
    if cliffs.len() > ROWS_MAX {
        shown.sort_by(|left, right| left.gain.total_cmp(&right.gain));
        shown.truncate(ROWS_MAX);
    }
    let mut blocks = vec![
        Block::Section(title.to_owned()),
        Block::Grid(grid(tuned, best, &shown)),
    ];
    if shown.len() < cliffs.len() {
        blocks.push(Block::Text(format!(
            "the {} deepest of {} {kind}; --format json has all",
            shown.len(),
            cliffs.len()
        )));
    }
    blocks
}

fn grid(tuned: &Tuned, best: &Places, cliffs: &[&Cliff]) -> Grid {
    let column = |of: &dyn Fn(&Cliff) -> String| cliffs.iter().map(|cliff| of(cliff)).collect();
    let value =
        |cliff: &Cliff, places: &Places| tuned.keys[cliff.key].values[places[cliff.key]].clone();
    let measured = |places: &Places| tuned.value(places).map_or(String::new(), format_figure);
    let unit = tuned.goal.unit();
    Grid {
        key: Column::words("", column(&|cliff| tuned.keys[cliff.key].path.clone())),
        groups: vec![Group::new(
            "",
            vec![
                Column::figures("from", column(&|cliff| value(cliff, &cliff.top))),
                Column::figures("to", column(&|cliff| value(cliff, &cliff.bottom))),
                Column::figures(
                    &format!("from {unit}"),
                    column(&|cliff| measured(&cliff.top)),
                ),
                Column::figures(
                    &format!("to {unit}"),
                    column(&|cliff| measured(&cliff.bottom)),
                ),
                Column::figures("gain", column(&|cliff| percent(cliff.gain))),
                Column::figures("expected", column(&|cliff| percent(cliff.expected))),
                Column::words(
                    "with",
                    column(&|cliff| tuned.describe_other_settings(cliff)),
                ),
                Column::words(" ", column(&|cliff| edge_of(tuned, best, cliff).to_owned())),
            ],
        )],
    }
}

/// Describes the settings at the edge of a cliff: the best ones, today's, or both.
fn edge_of(tuned: &Tuned, best: &Places, cliff: &Cliff) -> &'static str {
    match (cliff.top == *best, tuned.is_today(&cliff.top)) {
        (true, true) => "best, today",
        (true, false) => tuned.standing(best).label(),
        (false, true) => "today",
        (false, false) => "",
    }
}
