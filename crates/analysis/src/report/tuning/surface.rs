//! Response surface as text: bars along one parameter, a heat table of two, and for more the lines
//! through the best point.

use super::figure;
use crate::report::document::{Block, Column, Grid, Group};
use crate::tuning::{Key, Places, Tuned};
use std::collections::BTreeSet;

const BAR: usize = 32;

/// Maximum number of printed values of one parameter of the search.
const MOST_ROWS: usize = 40;

/// Maximum number of heat table columns with figures. Wider tables show only shades.
const MOST_FIGURES: usize = 10;

/// Maximum number of printed columns in a heat table.
const MOST_COLUMNS: usize = 64;

/// Block characters for bars that end within a column, from one eighth of it to a whole one.
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
const SHADES: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

const IMPOSSIBLE: &str = "-";
const UNTRIED: &str = "·";

pub(super) fn blocks(tuned: &Tuned, best: &Places) -> Vec<Block> {
    match tuned.keys.len() {
        1 => line(tuned, best, 0),
        2 => heat(tuned, best),
        keys => {
            let mut blocks = vec![Block::Section(format!(
                "The lines through the {}, {}:",
                tuned.standing(best).label(),
                tuned.settings(best)
            ))];
            blocks.extend((0..keys).flat_map(|key| line(tuned, best, key)));
            blocks
        }
    }
}

/// Tabulates the search along one parameter, with the others as at the best point.
fn line(tuned: &Tuned, best: &Places, key: usize) -> Vec<Block> {
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
    let shown = thinned(&tried, MOST_ROWS, &[best[key]], of.today_place);
    let most = shown
        .iter()
        .filter_map(|place| tuned.value(&at(*place)))
        .fold(f64::MIN_POSITIVE, f64::max);
    let called = shown
        .iter()
        .map(|place| words(tuned, &at(*place)))
        .collect();
    let mut values = Vec::new();
    let (mut figures, mut bars, mut marks) = (Vec::new(), Vec::new(), Vec::new());
    for place in &shown {
        let value = tuned.value(&at(*place));
        values.push(of.values[*place].clone());
        figures.push(value.map_or(IMPOSSIBLE.to_owned(), figure));
        bars.push(value.map_or(String::new(), |value| bar(value / most)));
        marks.push(marked(of, *place, (best[key], label)));
    }
    let mut blocks = vec![Block::Grid(Grid {
        key: Column::figures(&of.path, values),
        groups: vec![Group::of(
            "",
            vec![
                Column::figures(tuned.goal.unit(), figures),
                Column::words("", marks),
                Column::words("against today", called),
                Column::words(" ", bars),
            ],
        )],
    })];
    blocks.extend(left_out(&of.path, shown.len(), all_tried, of.values.len()));
    blocks
}

/// Describes the verdict of a point's repetitions, where there are any.
fn words(tuned: &Tuned, places: &Places) -> String {
    let samples = tuned.samples.as_ref();
    let judged = samples.and_then(|samples| samples.against_today(places));
    judged.map_or(String::new(), |judged| judged.verdict.words().to_owned())
}

/// Returns the label of the best point, `today`, or both.
fn marked(key: &Key, place: usize, (best, label): (usize, &str)) -> String {
    let today = key.today_place == Some(place);
    match (place == best, today) {
        (true, true) => format!("{label}, today"),
        (true, false) => label.to_owned(),
        (false, true) => "today".to_owned(),
        (false, false) => String::new(),
    }
}

fn left_out(path: &str, shown: usize, tried: usize, values: usize) -> Option<Block> {
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
    let eighths = (share * (BAR * 8) as f64).round() as usize;
    let mut text = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        text.push(EIGHTHS[eighths % 8 - 1]);
    }
    text
}

/// Thins out a list of indices evenly to about a maximum length. Some of them are kept together
/// with their neighbours.
fn thinned(places: &[usize], most: usize, kept: &[usize], today: Option<usize>) -> Vec<usize> {
    if places.len() <= most {
        return places.to_vec();
    }
    let apart = places.len().div_ceil(most);
    let near =
        |place: usize| kept.iter().any(|kept| kept.abs_diff(place) <= 1) || today == Some(place);
    let places = places.iter().copied().enumerate();
    let chosen = places.filter(|(number, place)| number % apart == 0 || near(*place));
    chosen.map(|(_, place)| place).collect()
}

/// Heat table of a search over two parameters.
struct Heat<'t> {
    tuned: &'t Tuned,
    best: &'t Places,
    /// Value indices of the first parameter, for the rows of the heat table.
    rows: Vec<usize>,
    columns: Vec<usize>,
    /// Smallest value of the goal among all points, for the scale of the shades.
    least: f64,
    most: f64,
}

/// Formats the heat table, with the first parameter downwards and the second across.
fn heat(tuned: &Tuned, best: &Places) -> Vec<Block> {
    let (down, across) = (&tuned.keys[0], &tuned.keys[1]);
    let used = |key: usize| {
        let used: BTreeSet<usize> = tuned.points.keys().map(|places| places[key]).collect();
        used.into_iter().collect::<Vec<usize>>()
    };
    let (used_down, used_across) = (used(0), used(1));
    let values = || tuned.points.keys().filter_map(|places| tuned.value(places));
    let heat = Heat {
        tuned,
        best,
        rows: thinned(&used_down, MOST_ROWS, &[best[0]], down.today_place),
        columns: thinned(&used_across, MOST_COLUMNS, &[best[1]], across.today_place),
        least: values().fold(f64::INFINITY, f64::min),
        most: values().fold(f64::NEG_INFINITY, f64::max),
    };
    let (rows, columns) = (heat.rows.len(), heat.columns.len());
    let mut blocks = vec![Block::Grid(heat.grid()), Block::Text(heat.legend())];
    blocks.extend(left_out(
        &down.path,
        rows,
        used_down.len(),
        down.values.len(),
    ));
    blocks.extend(left_out(
        &across.path,
        columns,
        used_across.len(),
        across.values.len(),
    ));
    blocks
}

impl Heat<'_> {
    fn grid(&self) -> Grid {
        let (down, across) = (&self.tuned.keys[0], &self.tuned.keys[1]);
        let column = |place: usize| -> Vec<String> {
            self.rows.iter().map(|row| self.cell(*row, place)).collect()
        };
        let group = if self.has_figures() {
            let of = |place: &usize| Column::figures(&named(across, *place), column(*place));
            Group::of(&across.path, self.columns.iter().map(of).collect())
        } else {
            let cells: Vec<Vec<String>> = self.columns.iter().map(|place| column(*place)).collect();
            let row = |row: usize| cells.iter().map(|column| column[row].as_str()).collect();
            let (first, last) = (self.columns[0], self.columns[self.columns.len() - 1]);
            let heading = format!(
                "{} = {} to {}, from left to right",
                across.path, across.values[first], across.values[last]
            );
            let rows = (0..self.rows.len()).map(row).collect();
            Group::of("", vec![Column::words(&heading, rows)])
        };
        let names = self.rows.iter().map(|row| named(down, *row)).collect();
        Grid {
            key: Column::figures(&down.path, names),
            groups: vec![group],
        }
    }

    /// Tests whether the heat table has room for figures beside the shades.
    fn has_figures(&self) -> bool {
        self.columns.len() <= MOST_FIGURES
    }

    fn cell(&self, row: usize, column: usize) -> String {
        let places = vec![row, column];
        if !self.tuned.points.contains_key(&places) {
            return UNTRIED.to_owned();
        }
        let best = places == *self.best;
        match self.tuned.value(&places) {
            None => IMPOSSIBLE.to_owned(),
            Some(value) if self.has_figures() => {
                let mark = if best { "*" } else { "" };
                format!("{mark}{} {}", figure(value), self.shade(value))
            }
            Some(_) if best => "*".to_owned(),
            Some(value) => self.shade(value).to_string(),
        }
    }

    fn shade(&self, value: f64) -> char {
        let last = SHADES.len() - 1;
        let share = match self.most > self.least {
            true => (value - self.least) / (self.most - self.least),
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
            figure(self.least),
            figure(self.most),
            self.tuned.standing(self.best).label(),
            match self.tuned.points.len() < all {
                true => ", · not tried",
                false => "",
            }
        )
    }
}

/// Formats a value of a parameter, with `today` at the target's own.
fn named(key: &Key, place: usize) -> String {
    match key.today_place == Some(place) {
        true => format!("{} today", key.values[place]),
        false => key.values[place].clone(),
    }
}
