//! Response surface as text: bars along one parameter, a heat table of two, and for more the lines
//! through the best point.

use super::format_figure;
use crate::report::document::{Block, Column, Grid, Group};
use crate::tuning::{Key, Places, Tuned};
use std::collections::BTreeSet;

const BAR_WIDTH: usize = 32;

/// Maximum number of printed values of one parameter of the search.
const ROWS_MAX: usize = 40;

/// Maximum number of heat table columns with figures. Wider tables show only shades.
const FIGURES_MAX: usize = 10;

/// Maximum number of printed columns in a heat table.
const COLUMNS_MAX: usize = 64;

/// Block characters for bars that end within a column, from one eighth of it to a whole one.
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
const SHADES: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

const IMPOSSIBLE_MARK: &str = "-";
const UNTRIED_MARK: &str = "·";

pub(super) fn blocks(tuned: &Tuned, best: &Places) -> Vec<Block> {
    match tuned.keys.len() {
        1 => parameter_lines(tuned, best, 0),
        2 => heat_map(tuned, best),
        keys => {
            let mut blocks = vec![Block::Section(format!(
                "The lines through the {}, {}:",
                tuned.standing(best).label(),
                tuned.settings(best)
            ))];
            blocks.extend((0..keys).flat_map(|key| parameter_lines(tuned, best, key)));
            blocks
        }
    }
}

/// Tabulates the search along one parameter, with the others as at the best point.
fn parameter_lines(tuned: &Tuned, best: &Places, key: usize) -> Vec<Block> {
    let at = |place: usize| {
        let mut places = best.clone();
        places[key] = place;
        places
    };
    let of = &tuned.keys[key];
    let label = tuned.standing(best).label();
    let tried = (0..of.values.len()).filter(|place| tuned.points.contains_key(&at(*place)));
    let mut tried: Vec<usize> = tried.collect();
    let all_tried = tried.len();
    // Of what is impossible in a row, the first.
    let impossible = |place: &usize| tuned.value(&at(*place)).is_none();
    tried.dedup_by(|next, first| impossible(next) && impossible(first));
    let shown = thin_out(&tried, ROWS_MAX, &[best[key]], of.today_place);
    let value_max = shown
        .iter()
        .filter_map(|place| tuned.value(&at(*place)))
        .fold(f64::MIN_POSITIVE, f64::max);
    let called = shown
        .iter()
        .map(|place| describe_place(tuned, &at(*place)))
        .collect();
    let mut values = Vec::new();
    let (mut figures, mut bars, mut marks) = (Vec::new(), Vec::new(), Vec::new());
    for place in &shown {
        let value = tuned.value(&at(*place));
        values.push(of.values[*place].clone());
        figures.push(value.map_or(IMPOSSIBLE_MARK.to_owned(), format_figure));
        bars.push(value.map_or(String::new(), |value| bar(value / value_max)));
        marks.push(mark_value(of, *place, (best[key], label)));
    }
    let mut blocks = vec![Block::Grid(Grid {
        key: Column::figures(&of.path, values),
        groups: vec![Group::new(
            "",
            vec![
                Column::figures(tuned.goal.unit(), figures),
                Column::words("", marks),
                Column::words("against today", called),
                Column::words(" ", bars),
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
fn describe_place(tuned: &Tuned, places: &Places) -> String {
    let samples = tuned.samples.as_ref();
    let judged = samples.and_then(|samples| samples.against_today(places));
    judged.map_or(String::new(), |judged| judged.verdict.words().to_owned())
}

/// Returns the label of the best point, `today`, or both.
fn mark_value(key: &Key, place: usize, (best, label): (usize, &str)) -> String {
    let today = key.today_place == Some(place);
    match (place == best, today) {
        (true, true) => format!("{label}, today"),
        (true, false) => label.to_owned(),
        (false, true) => "today".to_owned(),
        (false, false) => String::new(),
    }
}

fn describe_omitted(path: &str, shown: usize, tried: usize, values: usize) -> Option<Block> {
    if shown == values {
        return None;
    }
    Some(Block::Text(format!(
        "{path}: {shown} of {values} values shown{}; --format csv has all",
        match tried < values {
            true => format!(", {tried} tried here"),
            false => String::new(),
        }
    )))
}

fn bar(share: f64) -> String {
    let eighths = (share * (BAR_WIDTH * 8) as f64).round() as usize;
    let mut text = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        text.push(EIGHTHS[eighths % 8 - 1]);
    }
    text
}

/// Thins out a list of indices evenly to about a maximum length. Some of them are kept together
/// with their neighbours.
fn thin_out(
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
    tuned: &'t Tuned,
    best: &'t Places,
    /// Value indices of the first parameter, for the rows of the heat table.
    rows: Vec<usize>,
    columns: Vec<usize>,
    /// Smallest value of the goal among all points, for the scale of the shades.
    value_min: f64,
    value_max: f64,
}

/// Formats the heat table, with the first parameter downwards and the second across.
fn heat_map(tuned: &Tuned, best: &Places) -> Vec<Block> {
    let (down, across) = (&tuned.keys[0], &tuned.keys[1]);
    let used = |key: usize| {
        let used: BTreeSet<usize> = tuned.points.keys().map(|places| places[key]).collect();
        used.into_iter().collect::<Vec<usize>>()
    };
    let (used_down, used_across) = (used(0), used(1));
    let values = || tuned.points.keys().filter_map(|places| tuned.value(places));
    let heat = HeatMap {
        tuned,
        best,
        rows: thin_out(&used_down, ROWS_MAX, &[best[0]], down.today_place),
        columns: thin_out(&used_across, COLUMNS_MAX, &[best[1]], across.today_place),
        value_min: values().fold(f64::INFINITY, f64::min),
        value_max: values().fold(f64::NEG_INFINITY, f64::max),
    };
    let (rows, columns) = (heat.rows.len(), heat.columns.len());
    let mut blocks = vec![Block::Grid(heat.grid()), Block::Text(heat.legend())];
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
    fn grid(&self) -> Grid {
        let (down, across) = (&self.tuned.keys[0], &self.tuned.keys[1]);
        let column = |place: usize| -> Vec<String> {
            self.rows.iter().map(|row| self.cell(*row, place)).collect()
        };
        let group = if self.has_figures() {
            let of = |place: &usize| Column::figures(&name_value(across, *place), column(*place));
            Group::new(&across.path, self.columns.iter().map(of).collect())
        } else {
            let cells: Vec<Vec<String>> = self.columns.iter().map(|place| column(*place)).collect();
            let row = |row: usize| cells.iter().map(|column| column[row].as_str()).collect();
            let (first, last) = (self.columns[0], self.columns[self.columns.len() - 1]);
            let heading = format!(
                "{} = {} to {}, from left to right",
                across.path, across.values[first], across.values[last]
            );
            let rows = (0..self.rows.len()).map(row).collect();
            Group::new("", vec![Column::words(&heading, rows)])
        };
        let names = self.rows.iter().map(|row| name_value(down, *row)).collect();
        Grid {
            key: Column::figures(&down.path, names),
            groups: vec![group],
        }
    }

    /// Tests whether the heat table has room for figures beside the shades.
    fn has_figures(&self) -> bool {
        self.columns.len() <= FIGURES_MAX
    }

    fn cell(&self, row: usize, column: usize) -> String {
        let places = vec![row, column];
        if !self.tuned.points.contains_key(&places) {
            return UNTRIED_MARK.to_owned();
        }
        let best = places == *self.best;
        match self.tuned.value(&places) {
            None => IMPOSSIBLE_MARK.to_owned(),
            Some(value) if self.has_figures() => {
                let mark = if best { "*" } else { "" };
                format!("{mark}{} {}", format_figure(value), self.shade(value))
            }
            Some(_) if best => "*".to_owned(),
            Some(value) => self.shade(value).to_string(),
        }
    }

    fn shade(&self, value: f64) -> char {
        let last = SHADES.len() - 1;
        let share = match self.value_max > self.value_min {
            true => (value - self.value_min) / (self.value_max - self.value_min),
            false => 1.0,
        };
        SHADES[((share * last as f64).round() as usize).min(last)]
    }

    fn legend(&self) -> String {
        let keys = &self.tuned.keys;
        let all = keys[0].values.len() * keys[1].values.len();
        format!(
            "{}: ▁ is {}, █ is {}, * the {}{}",
            self.tuned.goal.quantity(),
            format_figure(self.value_min),
            format_figure(self.value_max),
            self.tuned.standing(self.best).label(),
            match self.tuned.points.len() < all {
                true => ", · not tried",
                false => "",
            }
        )
    }
}

/// Formats a value of a parameter, with `today` at the target's own.
fn name_value(key: &Key, place: usize) -> String {
    match key.today_place == Some(place) {
        true => format!("{} today", key.values[place]),
        false => key.values[place].clone(),
    }
}
