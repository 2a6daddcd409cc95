//! Response surface as text: bars along one parameter, a heat table of two, and for more the lines
//! through the best point.

use super::format_figure;
use crate::report::document::{Column, ColumnGroup, DocumentBlock, Grid};
use crate::tuning::{GridPoint, TunedParameter, TuningResult};
use std::collections::BTreeSet;

const BAR_WIDTH: usize = 32;

/// Maximum number of printed values of one parameter of the search.
const ROW_COUNT_MAX: usize = 40;

/// Maximum number of heat table columns with figures. Wider tables show only shades.
const FIGURE_COLUMNS_MAX: usize = 10;

const HEAT_MAP_COLUMNS_MAX: usize = 64;

/// Block characters for bars that end within a column, from one eighth of it to a whole one.
const BAR_EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
const SHADE_GLYPHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

const IMPOSSIBLE_MARK: &str = "-";
const UNTRIED_MARK: &str = "·";

pub(super) fn build_blocks(tuned: &TuningResult, best: &GridPoint) -> Vec<DocumentBlock> {
    match tuned.parameters.len() {
        1 => build_parameter_lines(tuned, best, 0),
        2 => build_heat_map(tuned, best),
        keys => {
            let mut blocks = vec![DocumentBlock::Section(format!(
                "The lines through the {}, {}:",
                tuned.label_of_best(best),
                tuned.describe_settings(best)
            ))];
            blocks.extend((0..keys).flat_map(|key| build_parameter_lines(tuned, best, key)));
            blocks
        }
    }
}

/// Tabulates the search along one parameter, with the others as at the best point.
fn build_parameter_lines(tuned: &TuningResult, best: &GridPoint, key: usize) -> Vec<DocumentBlock> {
    let at = |place: usize| {
        let mut places = best.clone();
        places[key] = place;
        places
    };
    let of = &tuned.parameters[key];
    let label = tuned.label_of_best(best);
    let tried = (0..of.values.len()).filter(|place| tuned.points.contains_key(&at(*place)));
    let mut tried: Vec<usize> = tried.collect();
    let all_tried = tried.len();
    // Of what is impossible in a row, the first.
    let impossible = |place: &usize| tuned.goal_value(&at(*place)).is_none();
    tried.dedup_by(|next, first| impossible(next) && impossible(first));
    let shown = select_rows(&tried, ROW_COUNT_MAX, &[best[key]], of.today_value_index);
    let value_max = shown
        .iter()
        .filter_map(|place| tuned.goal_value(&at(*place)))
        .fold(f64::MIN_POSITIVE, f64::max);
    let called = shown
        .iter()
        .map(|place| describe_point(tuned, &at(*place)))
        .collect();
    let mut values = Vec::new();
    let (mut figures, mut bars, mut marks) = (Vec::new(), Vec::new(), Vec::new());
    for place in &shown {
        let value = tuned.goal_value(&at(*place));
        values.push(of.values[*place].clone());
        figures.push(value.map_or(IMPOSSIBLE_MARK.to_owned(), format_figure));
        bars.push(value.map_or(String::new(), |value| render_bar(value / value_max)));
        marks.push(format_marked_value(of, *place, (best[key], label)));
    }
    let mut blocks = vec![DocumentBlock::Grid(Grid {
        key_column: Column::right_aligned(&of.path, values),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                Column::right_aligned(tuned.goal.unit(), figures),
                Column::left_aligned("", marks),
                Column::left_aligned("against today", called),
                Column::left_aligned(" ", bars),
            ],
        )],
    })];
    blocks.extend(describe_omitted(
        &of.path,
        shown.len(),
        all_tried,
        of.values.len(),
    ));
    blocks
}

/// Describes the verdict of a point's repetitions, where there are any.
fn describe_point(tuned: &TuningResult, places: &GridPoint) -> String {
    let samples = tuned.samples.as_ref();
    let judged = samples.and_then(|samples| samples.compare_with_today(places));
    judged.map_or(String::new(), |judged| judged.verdict.label().to_owned())
}

/// Returns the label of the best point, `today`, or both.
fn format_marked_value(key: &TunedParameter, place: usize, (best, label): (usize, &str)) -> String {
    let today = key.today_value_index == Some(place);
    match (place == best, today) {
        (true, true) => format!("{label}, today"),
        (true, false) => label.to_owned(),
        (false, true) => "today".to_owned(),
        (false, false) => String::new(),
    }
}

fn describe_omitted(
    path: &str,
    shown: usize,
    tried: usize,
    values: usize,
) -> Option<DocumentBlock> {
    if shown == values {
        return None;
    }
    Some(DocumentBlock::Text(format!(
        "{path}: {shown} of {values} values shown{}; --format csv has all",
        match tried < values {
            true => format!(", {tried} tried here"),
            false => String::new(),
        }
    )))
}

fn render_bar(share: f64) -> String {
    let eighths = (share * (BAR_WIDTH * 8) as f64).round() as usize;
    let mut text = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        text.push(BAR_EIGHTHS[eighths % 8 - 1]);
    }
    text
}

/// Thins out a list of indices evenly to about a maximum length. Some of them are kept together
/// with their neighbours.
fn select_rows(
    places: &[usize],
    value_max: usize,
    kept: &[usize],
    today: Option<usize>,
) -> Vec<usize> {
    if places.len() <= value_max {
        return places.to_vec();
    }
    let apart = places.len().div_ceil(value_max);
    let near =
        |place: usize| kept.iter().any(|kept| kept.abs_diff(place) <= 1) || today == Some(place);
    let places = places.iter().copied().enumerate();
    let chosen = places.filter(|(number, place)| number % apart == 0 || near(*place));
    chosen.map(|(_, place)| place).collect()
}

/// Heat table of a search over two parameters.
struct HeatMap<'t> {
    tuned: &'t TuningResult,
    best: &'t GridPoint,
    /// Value indices of the first parameter, for the rows of the heat table.
    row_values: Vec<usize>,
    column_values: Vec<usize>,
    /// Smallest value of the goal among all points, for the scale of the shades.
    value_min: f64,
    value_max: f64,
}

/// Formats the heat table, with the first parameter downwards and the second across.
fn build_heat_map(tuned: &TuningResult, best: &GridPoint) -> Vec<DocumentBlock> {
    let (down, across) = (&tuned.parameters[0], &tuned.parameters[1]);
    let used = |key: usize| {
        let used: BTreeSet<usize> = tuned.points.keys().map(|places| places[key]).collect();
        used.into_iter().collect::<Vec<usize>>()
    };
    let (used_down, used_across) = (used(0), used(1));
    let values = || {
        tuned
            .points
            .keys()
            .filter_map(|places| tuned.goal_value(places))
    };
    let heat = HeatMap {
        tuned,
        best,
        row_values: select_rows(
            &used_down,
            ROW_COUNT_MAX,
            &[best[0]],
            down.today_value_index,
        ),
        column_values: select_rows(
            &used_across,
            HEAT_MAP_COLUMNS_MAX,
            &[best[1]],
            across.today_value_index,
        ),
        value_min: values().fold(f64::INFINITY, f64::min),
        value_max: values().fold(f64::NEG_INFINITY, f64::max),
    };
    let (rows, columns) = (heat.row_values.len(), heat.column_values.len());
    let mut blocks = vec![
        DocumentBlock::Grid(heat.build_grid()),
        DocumentBlock::Text(heat.format_legend()),
    ];
    blocks.extend(describe_omitted(
        &down.path,
        rows,
        used_down.len(),
        down.values.len(),
    ));
    blocks.extend(describe_omitted(
        &across.path,
        columns,
        used_across.len(),
        across.values.len(),
    ));
    blocks
}

impl HeatMap<'_> {
    fn build_grid(&self) -> Grid {
        let (down, across) = (&self.tuned.parameters[0], &self.tuned.parameters[1]);
        let column = |place: usize| -> Vec<String> {
            self.row_values
                .iter()
                .map(|row| self.format_cell(*row, place))
                .collect()
        };
        let group = if self.has_figures() {
            let of = |place: &usize| {
                Column::right_aligned(&format_value_name(across, *place), column(*place))
            };
            ColumnGroup::new(&across.path, self.column_values.iter().map(of).collect())
        } else {
            let cells: Vec<Vec<String>> = self
                .column_values
                .iter()
                .map(|place| column(*place))
                .collect();
            let row = |row: usize| cells.iter().map(|column| column[row].as_str()).collect();
            let (first, last) = (
                self.column_values[0],
                self.column_values[self.column_values.len() - 1],
            );
            let heading = format!(
                "{} = {} to {}, from left to right",
                across.path, across.values[first], across.values[last]
            );
            let rows = (0..self.row_values.len()).map(row).collect();
            ColumnGroup::new("", vec![Column::left_aligned(&heading, rows)])
        };
        let names = self
            .row_values
            .iter()
            .map(|row| format_value_name(down, *row))
            .collect();
        Grid {
            key_column: Column::right_aligned(&down.path, names),
            groups: vec![group],
        }
    }

    fn has_figures(&self) -> bool {
        self.column_values.len() <= FIGURE_COLUMNS_MAX
    }

    fn format_cell(&self, row: usize, column: usize) -> String {
        let places = vec![row, column];
        if !self.tuned.points.contains_key(&places) {
            return UNTRIED_MARK.to_owned();
        }
        let best = places == *self.best;
        match self.tuned.goal_value(&places) {
            None => IMPOSSIBLE_MARK.to_owned(),
            Some(value) if self.has_figures() => {
                let mark = if best { "*" } else { "" };
                format!(
                    "{mark}{} {}",
                    format_figure(value),
                    self.choose_shade(value)
                )
            }
            Some(_) if best => "*".to_owned(),
            Some(value) => self.choose_shade(value).to_string(),
        }
    }

    fn choose_shade(&self, value: f64) -> char {
        let last = SHADE_GLYPHS.len() - 1;
        let share = match self.value_max > self.value_min {
            true => (value - self.value_min) / (self.value_max - self.value_min),
            false => 1.0,
        };
        SHADE_GLYPHS[((share * last as f64).round() as usize).min(last)]
    }

    fn format_legend(&self) -> String {
        let keys = &self.tuned.parameters;
        let all = keys[0].values.len() * keys[1].values.len();
        format!(
            "{}: ▁ is {}, █ is {}, * the {}{}",
            self.tuned.goal.quantity(),
            format_figure(self.value_min),
            format_figure(self.value_max),
            self.tuned.label_of_best(self.best),
            match self.tuned.points.len() < all {
                true => ", · not tried",
                false => "",
            }
        )
    }
}

/// Formats a value of a parameter, with `today` at the target's own.
fn format_value_name(key: &TunedParameter, place: usize) -> String {
    match key.today_value_index == Some(place) {
        true => format!("{} today", key.values[place]),
        false => key.values[place].clone(),
    }
}
