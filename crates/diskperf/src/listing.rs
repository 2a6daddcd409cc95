//! Tables of named items with columns.

use crate::arguments::OutputFormat;
use comfy_table::{ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle};
use diskperf_analysis::report::{escape_csv_field, escape_markdown_cell};
use diskperf_store::{DamagedRun, RunHeading};
use diskperf_timeline::units::format_utc;
use diskperf_timeline::{RunState, escape_unprintable, escape_unprintable_line};
use serde_json::{Map, Value, json};

/// Maximum ratio of a table's width to the available width for a column layout. A wider table shows
/// the cells of a row below each other.
const TABLE_WIDTH_RATIO_MAX: usize = 2;

/// Maximum number of lines of a cell; some values are tables of hundreds of rows.
const CELL_LINES_MAX: usize = 8;
/// Column whose cells may have several lines: values that are tables of numbers.
const WRAPPED_COLUMN: &str = "value";

/// Returns the target of a stored run independent of the user's working directory: absolute paths,
/// or a modelled system.
fn target_name(run: &RunHeading) -> String {
    match run.target_paths.is_empty() {
        true => run.target.clone(),
        false => run.target_paths.join(" + "),
    }
}

/// Table with a heading and rows of text.
#[derive(Default)]
pub(crate) struct Listing {
    pub(crate) name: &'static str,
    pub(crate) heading: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
    /// Additional JSON fields of each row; empty if no row has any.
    pub(crate) json_fields: Vec<Map<String, Value>>,
}

impl Listing {
    pub(crate) fn from_names(
        name: &'static str,
        kind: &'static str,
        names: &[(&str, &str)],
    ) -> Self {
        let row = |(name, meaning): &(&str, &str)| vec![(*name).to_owned(), (*meaning).to_owned()];
        Self {
            name,
            heading: vec![kind, "meaning"],
            rows: names.iter().map(row).collect(),
            ..Self::default()
        }
    }

    /// Creates a list of stored runs, followed by damaged rows of the store.
    pub(crate) fn from_runs(runs: &[RunHeading], damaged: &[DamagedRun]) -> Self {
        let none = |run: &DamagedRun| {
            let mut cells = vec![String::new(); 7];
            cells[0].clone_from(&run.id);
            cells[5] = format!("damaged: {}", run.problem);
            cells
        };
        let row = |run: &RunHeading| {
            vec![
                run.id.clone(),
                format_utc(run.started_unix_ms),
                run.suite.clone(),
                target_name(run),
                run.label.clone().unwrap_or_default(),
                state_name(&run.state).to_owned(),
                run.repetition_count.to_string(),
            ]
        };
        // By the names that a run itself has in JSON.
        let fields = |run: &RunHeading| {
            to_fields(json!({
                "id": run.id,
                "world": run.world,
                "started_unix_ms": run.started_unix_ms,
            }))
        };
        Self {
            name: "runs",
            heading: vec![
                "run",
                "started (UTC)",
                "suite",
                "target",
                "label",
                "state",
                "repetitions",
            ],
            rows: runs
                .iter()
                .map(row)
                .chain(damaged.iter().map(none))
                .collect(),
            json_fields: runs
                .iter()
                .map(fields)
                .chain(damaged.iter().map(|run| to_fields(json!({ "id": run.id }))))
                .collect(),
        }
    }

    pub(crate) fn render(&self, format: OutputFormat, width: u16) -> String {
        match format {
            OutputFormat::Table => self.render_table(width),
            OutputFormat::Json => Self::render_json(&[self]),
            OutputFormat::Csv => self.render_delimited(|cells| {
                let fields = cells.iter().map(|cell| escape_csv_field(cell));
                fields.collect::<Vec<_>>().join(",")
            }),
            OutputFormat::Markdown => self.render_markdown(),
        }
    }

    fn render_table(&self, width: u16) -> String {
        let mut table = Table::new();
        table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─')));
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width);
        if self.table_width() > usize::from(width) * TABLE_WIDTH_RATIO_MAX {
            table.set_header([self.heading[0], &self.heading[1..].join(", ")]);
            table.add_rows(self.rows.iter().map(|row| self.stack_pairs(row)));
        } else {
            table.set_header(self.heading.clone());
            table.add_rows(self.rows.iter().map(|row| self.to_cells(row)));
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        // A name in two pieces cannot be copied.
        if let Some(names) = table.column_mut(0) {
            names.set_constraint(ColumnConstraint::ContentWidth);
        }
        table.trim_fmt()
    }

    fn to_cells(&self, row: &[String]) -> Vec<String> {
        let cell = |(heading, cell): (&&str, &String)| match *heading == WRAPPED_COLUMN {
            true => to_lines(cell),
            false => to_one_line(cell),
        };
        self.heading.iter().zip(row).map(cell).collect()
    }

    /// Returns the width of the table with each column as wide as its widest line.
    fn table_width(&self) -> usize {
        let mut widest = vec![0; self.heading.len()];
        for row in &self.rows {
            for (widest, cell) in widest.iter_mut().zip(self.to_cells(row)) {
                let lines = cell.lines().map(|line| line.chars().count());
                *widest = lines.fold(*widest, usize::max);
            }
        }
        widest.iter().sum()
    }

    /// Returns the first cell of a row, and its other cells below each other.
    fn stack_pairs(&self, row: &[String]) -> [String; 2] {
        let cells = self.to_cells(row);
        let others = self.heading.iter().zip(&cells).skip(1);
        let lines = others
            .filter(|(_, cell)| !cell.is_empty())
            .map(|(name, cell)| format!("{name}: {cell}"));
        [cells[0].clone(), lines.collect::<Vec<_>>().join("\n")]
    }

    /// Returns a JSON object with each list under its name; numbers become JSON numbers.
    pub(crate) fn render_json(listings: &[&Self]) -> String {
        let cell = |text: &String| {
            text.parse::<u64>()
                .map_or_else(|_| json!(text), |n| json!(n))
        };
        let list = |listing: &Self| {
            let row = |(index, row): (usize, &Vec<String>)| {
                let cells = listing.heading.iter().zip(row);
                // An id of ten digits is a name all the same.
                let value = |name: &str, text| {
                    if name == "run" {
                        json!(text)
                    } else {
                        cell(text)
                    }
                };
                let cells = cells.map(|(name, text)| ((*name).to_owned(), value(name, text)));
                let fields = listing.json_fields.get(index).cloned().unwrap_or_default();
                Value::Object(cells.chain(fields).collect())
            };
            Value::Array(listing.rows.iter().enumerate().map(row).collect())
        };
        let lists = listings
            .iter()
            .map(|listing| (listing.name.to_owned(), list(listing)));
        Value::Object(lists.collect()).to_string()
    }

    fn render_markdown(&self) -> String {
        let rule = vec!["---".to_owned(); self.heading.len()];
        let heading: Vec<_> = self.heading.iter().map(|name| (*name).to_owned()).collect();
        let rows = [heading, rule].into_iter().chain(self.rows.iter().cloned());
        let line = |cells: Vec<String>| {
            let cells: Vec<_> = cells
                .iter()
                .map(|cell| escape_markdown_cell(cell))
                .collect();
            format!("| {} |", cells.join(" | "))
        };
        rows.map(line).collect::<Vec<_>>().join("\n")
    }

    fn render_delimited(&self, line: impl Fn(&[String]) -> String) -> String {
        let heading: Vec<_> = self.heading.iter().map(|name| (*name).to_owned()).collect();
        let rows = std::iter::once(&heading).chain(&self.rows);
        rows.map(|row| line(row)).collect::<Vec<_>>().join("\n")
    }
}

fn to_fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn to_one_line(cell: &str) -> String {
    escape_unprintable_line(cell).into_owned()
}

/// Formats the first lines of a cell.
fn to_lines(cell: &str) -> String {
    let all = escape_unprintable(cell);
    let count = all.lines().count();
    let mut shown: Vec<&str> = all.lines().take(CELL_LINES_MAX).collect();
    let more = format!(
        "... {} more lines; --format json has all",
        count - shown.len()
    );
    if count > shown.len() {
        shown.push(&more);
    }
    shown.join("\n")
}

fn state_name(state: &RunState) -> &'static str {
    match state {
        RunState::Running => "running or killed",
        RunState::Finished => "finished",
        RunState::Interrupted => "interrupted",
        RunState::Failed(_) => "failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_below_each_other_where_columns_would_be_too_narrow() {
        let list = Listing {
            name: "parameters",
            heading: vec!["path", "value", "source"],
            rows: vec![vec!["host.speed".into(), "1".into(), "word ".repeat(40)]],
            ..Listing::default()
        };
        let narrow = list.render(OutputFormat::Table, 60);
        assert!(narrow.contains("path        value, source"), "{narrow}");
        assert!(narrow.contains("host.speed  value: 1"), "{narrow}");
        assert!(narrow.contains("            source: word"), "{narrow}");
        assert!(
            narrow.lines().all(|line| line.chars().count() <= 60),
            "{narrow}"
        );
        let wide = list.render(OutputFormat::Table, 150);
        assert!(wide.contains("path        value  source"), "{wide}");
    }

    #[test]
    fn a_table_of_numbers_has_its_own_lines() {
        let rows: Vec<String> = (0..20).map(|row| format!("  [{row}, 1.5],")).collect();
        let list = Listing {
            name: "parameters",
            heading: vec!["path", "value", "source"],
            rows: vec![vec![
                "drive.seek_table".into(),
                format!("[\n{}\n]", rows.join("\n")),
                "two\nlines".into(),
            ]],
            ..Listing::default()
        };
        let wide = list.render(OutputFormat::Table, 150);
        assert!(!wide.contains("[0, 1.5],\\u000a"), "{wide}");
        let row = wide.lines().find(|line| line.contains("[1, 1.5],"));
        assert!(row.is_some_and(|row| !row.contains("[0, 1.5],")), "{wide}");
        assert!(wide.contains("... 14 more lines"), "{wide}");
        // A value has lines; what people wrote beside it has one.
        assert!(wide.contains("two\\u000alines"), "{wide}");
    }
}
