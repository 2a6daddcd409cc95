//! Structured report of headings, paragraphs, lists and tables, independent of its output as plain
//! text or Markdown.

use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, Width,
};
use diskperf_timeline::{escape_unprintable, escape_unprintable_line};
use std::borrow::Cow;

/// Number of blanks between two columns of a table. Groups of columns have further ones between
/// them.
const COLUMN_GAP_WIDTH: usize = 2;
const GROUP_GAP_WIDTH: usize = 2;

/// One piece of a report: heading, section, paragraph, list or table.
pub(super) enum DocumentBlock {
    Heading(String),
    /// Heading with the title of a section of the report.
    Section(String),
    /// Paragraph of running text.
    Text(String),
    /// List of remarks, one per line.
    List(Vec<String>),
    /// Table with a key column and groups of columns.
    Grid(Grid),
}

/// Table with a key column, and groups of columns under a title each. A table too wide for the
/// terminal is split between groups, with the key repeated.
pub(super) struct Grid {
    pub(super) key_column: Column,
    pub(super) groups: Vec<ColumnGroup>,
}

/// Group of table columns that belong together, under one title.
pub(super) struct ColumnGroup {
    /// Title of the group of columns; empty where the table has no other group.
    pub(super) title: String,
    pub(super) columns: Vec<Column>,
}

/// Column of a table with all its cells.
pub(super) struct Column {
    pub(super) heading: String,
    pub(super) is_right_aligned: bool,
    pub(super) cells: Vec<String>,
}

impl Column {
    /// Creates a column of words, each cell on one line.
    pub(super) fn left_aligned(heading: &str, mut cells: Vec<String>) -> Self {
        for cell in &mut cells {
            if let Cow::Owned(line) = escape_unprintable_line(cell) {
                *cell = line;
            }
        }
        Self {
            heading: heading.to_owned(),
            is_right_aligned: false,
            cells,
        }
    }

    /// Creates a column of words in which text longer than `columns` continues in a line below,
    /// broken between two words.
    pub(super) fn left_aligned_folded(heading: &str, cells: Vec<String>, columns: usize) -> Self {
        let mut column = Self::left_aligned(heading, cells);
        for cell in &mut column.cells {
            *cell = fold_text(cell, columns);
        }
        column
    }

    /// Creates a table column of figures.
    pub(super) fn right_aligned(heading: &str, cells: Vec<String>) -> Self {
        Self {
            heading: heading.to_owned(),
            is_right_aligned: true,
            cells,
        }
    }

    /// Creates a column of two figures in each cell, `490 (69%)`, both aligned.
    pub(super) fn right_aligned_pairs(heading: &str, cells: Vec<(String, String)>) -> Self {
        let widest = cells
            .iter()
            .map(|(_, second)| display_width(second))
            .max()
            .unwrap_or(0);
        let cell = |(first, second): (String, String)| {
            if first.is_empty() {
                return String::new();
            }
            let padding = " ".repeat(widest - display_width(&second));
            let gap = if widest > 0 { " " } else { "" };
            format!("{first}{gap}{second}{padding}")
        };
        Self::right_aligned(heading, cells.into_iter().map(cell).collect())
    }

    fn is_empty(&self) -> bool {
        self.cells.iter().all(String::is_empty)
    }

    fn width(&self) -> usize {
        let heading = self.heading.lines().map(display_width);
        let cells = self
            .cells
            .iter()
            .flat_map(|cell| cell.lines())
            .map(display_width);
        heading.chain(cells).max().unwrap_or(0)
    }

    fn word_width(&self) -> usize {
        let cells = self.cells.iter().flat_map(|cell| cell.split_whitespace());
        let words = self.heading.split_whitespace().chain(cells);
        words.map(display_width).max().unwrap_or(0)
    }
}

impl ColumnGroup {
    /// Creates a group of columns, without those that are empty in every row.
    pub(super) fn new(title: impl Into<String>, columns: Vec<Column>) -> Self {
        Self {
            title: escape_unprintable_line(&title.into()).into_owned(),
            columns: columns.into_iter().filter(|one| !one.is_empty()).collect(),
        }
    }

    fn width(&self) -> usize {
        self.columns
            .iter()
            .map(|column| column.width() + COLUMN_GAP_WIDTH)
            .sum()
    }
}

/// Folds a text into lines of this many columns, the lines after the first indented.
fn fold_text(text: &str, columns: usize) -> String {
    let content = text.trim_start();
    let indent = " ".repeat(display_width(text) - display_width(content));
    let mut lines = vec![indent.clone()];
    for (number, word) in content.split(' ').enumerate() {
        let last = lines.len() - 1;
        if number > 0 && display_width(&lines[last]) + 1 + display_width(word) > columns {
            lines.push(format!("{indent}  {word}"));
            continue;
        }
        if number > 0 {
            lines[last].push(' ');
        }
        lines[last] += word;
    }
    lines.join("\n")
}

/// Returns the columns that a text takes on a terminal. All printed characters are of single width.
fn display_width(text: &str) -> usize {
    text.chars().count()
}

pub(super) fn render_text(blocks: &[DocumentBlock], terminal: u16) -> String {
    let columns = usize::from(terminal.max(20));
    let mut out = String::new();
    let mut previous: Option<&DocumentBlock> = None;
    for block in blocks {
        let follows_title = matches!(
            previous,
            Some(DocumentBlock::Heading(_) | DocumentBlock::Section(_))
        );
        if previous.is_some() && !follows_title {
            out.push('\n');
        }
        match block {
            DocumentBlock::Heading(title) | DocumentBlock::Section(title) => {
                out += &wrap_paragraph(title, columns, "")
            }
            DocumentBlock::Text(paragraph) => out += &wrap_paragraph(paragraph, columns, ""),
            DocumentBlock::List(remarks) => {
                remarks
                    .iter()
                    .for_each(|remark| out += &wrap_paragraph(remark, columns, "  "));
            }
            DocumentBlock::Grid(grid) => out += &grid.render_text(columns),
        }
        previous = Some(block);
    }
    escape_unprintable(&out).into_owned()
}

/// Splits a strip of bars into parts that fit on a line each. Other words stay whole, since a user
/// who copies a path needs all of it.
fn split_word(word: &str, columns: usize) -> Vec<&str> {
    let is_strip = word
        .chars()
        .all(|character| ('▁'..='█').contains(&character));
    if !is_strip || display_width(word) <= columns {
        return vec![word];
    }
    let starts = word.char_indices().step_by(columns).map(|(at, _)| at);
    let ends = starts.clone().skip(1).chain([word.len()]);
    starts.zip(ends).map(|(from, to)| &word[from..to]).collect()
}

fn wrap_paragraph(paragraph: &str, columns: usize, indent: &str) -> String {
    let mut out = String::new();
    let mut line = String::new();
    let words = paragraph.split_whitespace();
    for word in words.flat_map(|word| split_word(word, columns - indent.len())) {
        if !line.trim().is_empty() && display_width(&line) + 1 + display_width(word) > columns {
            out += line.trim_end();
            out.push('\n');
            line = indent.to_owned();
        } else if !line.trim().is_empty() {
            line.push(' ');
        }
        line += word;
    }
    out += &line;
    out.push('\n');
    out
}

impl Grid {
    fn render_text(&self, columns: usize) -> String {
        let mut out = String::new();
        for (index, groups) in self.pack_groups(columns).into_iter().enumerate() {
            if index > 0 {
                out.push('\n');
            }
            out += &self.render_table(groups, columns);
        }
        out
    }

    fn group_gap(&self) -> usize {
        let titled = self.groups.iter().any(|group| !group.title.is_empty());
        if titled { GROUP_GAP_WIDTH } else { 0 }
    }

    /// Divides the groups of a table into sequences that fit beside the key column.
    fn pack_groups(&self, columns: usize) -> Vec<&[ColumnGroup]> {
        let mut packed = Vec::new();
        let mut start = 0;
        let mut used = self.key_column.width();
        for (index, group) in self.groups.iter().enumerate() {
            let wanted = group.width() + if index > start { self.group_gap() } else { 0 };
            if index > start && used + wanted > columns {
                packed.push(&self.groups[start..index]);
                start = index;
                used = self.key_column.width();
            }
            used += wanted;
        }
        packed.push(&self.groups[start..]);
        packed
    }

    fn render_table(&self, groups: &[ColumnGroup], columns: usize) -> String {
        let wanted: usize = groups.iter().map(ColumnGroup::width).sum::<usize>()
            + self.key_column.width()
            + self.group_gap() * groups.len().saturating_sub(1);
        let fits = wanted <= columns;
        let mut table = Table::new();
        table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─')));
        if fits {
            table.set_content_arrangement(ContentArrangement::Disabled);
        } else {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(columns as u16);
        }
        let all: Vec<&Column> = std::iter::once(&self.key_column)
            .chain(groups.iter().flat_map(|group| &group.columns))
            .collect();
        let cell = |column: &Column, text: &str| {
            let alignment = if column.is_right_aligned {
                CellAlignment::Right
            } else {
                CellAlignment::Left
            };
            Cell::new(text).set_alignment(alignment)
        };
        table.set_header(all.iter().map(|column| cell(column, &column.heading)));
        for row in 0..self.key_column.cells.len() {
            table.add_row(all.iter().map(|column| cell(column, &column.cells[row])));
        }
        let mut starts_group = vec![false; all.len()];
        let mut next = 1;
        for (index, group) in groups.iter().enumerate() {
            if let Some(starts) = starts_group.get_mut(next) {
                *starts = index > 0;
            }
            next += group.columns.len();
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            let left = if index == 0 { 0 } else { COLUMN_GAP_WIDTH };
            let extra = if starts_group[index] {
                self.group_gap()
            } else {
                0
            };
            column.set_padding(((left + extra) as u16, 0));
            if !fits {
                // Cells are broken between words alone, as long as there is room.
                let least = all[index].word_width() + left + extra;
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least as u16)));
            }
        }
        self.render_group_titles(groups, fits.then_some(columns)) + &table.trim_fmt() + "\n"
    }

    /// Formats the line of group titles of a table, each at the start of its group. Where the table
    /// was squeezed and its columns are unknown, the titles share a line of their own.
    fn render_group_titles(&self, groups: &[ColumnGroup], columns: Option<usize>) -> String {
        if groups.iter().all(|group| group.title.is_empty()) {
            return String::new();
        }
        let Some(columns) = columns else {
            let titles: Vec<&str> = groups.iter().map(|group| group.title.as_str()).collect();
            return titles.join(", ") + ":\n";
        };
        let mut line = " ".repeat(self.key_column.width() + COLUMN_GAP_WIDTH);
        for (index, group) in groups.iter().enumerate() {
            let room = group.width() - COLUMN_GAP_WIDTH.min(group.width());
            // Nothing is right of the last one.
            let most = match index + 1 == groups.len() {
                true => room.max(columns.saturating_sub(display_width(&line))),
                false => room,
            };
            let title = truncate_text(&group.title, most);
            let padding =
                (room + COLUMN_GAP_WIDTH + self.group_gap()).saturating_sub(display_width(&title));
            line += &title;
            line += &" ".repeat(padding);
        }
        line.trim_end().to_owned() + "\n"
    }

    fn render_markdown(&self) -> String {
        let mut headings = vec![escape_markdown(&self.key_column.heading)];
        let mut columns = vec![&self.key_column];
        for group in &self.groups {
            for (index, column) in group.columns.iter().enumerate() {
                let title = if index == 0 { group.title.as_str() } else { "" };
                let gap = if title.is_empty() { "" } else { "<br>" };
                headings.push(format!(
                    "{}{gap}{}",
                    escape_markdown(title),
                    escape_markdown(&column.heading)
                ));
                columns.push(column);
            }
        }
        let rule = columns.iter().map(|column| {
            if column.is_right_aligned {
                "---:"
            } else {
                "---"
            }
        });
        let mut out =
            render_markdown_row(headings.iter().map(String::as_str)) + &render_markdown_row(rule);
        for index in 0..self.key_column.cells.len() {
            let cells: Vec<String> = columns
                .iter()
                .map(|column| escape_markdown(column.cells[index].trim()))
                .collect();
            out += &render_markdown_row(cells.iter().map(String::as_str));
        }
        out
    }
}

/// Shortens a text from the left, since the end of a path says the most.
fn truncate_text(text: &str, columns: usize) -> String {
    let length = display_width(text);
    if length <= columns {
        return text.to_owned();
    }
    let tail: String = text.chars().skip(length + 1 - columns.max(1)).collect();
    format!("…{tail}")
}

fn render_markdown_row<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let cells: Vec<&str> = cells.collect();
    format!("| {} |\n", cells.join(" | "))
}

pub(super) fn escape_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let lines = text.replace("\r\n", "\n");
    for character in escape_unprintable(&lines).chars() {
        match character {
            '\n' => out.push(' '),
            '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '\\' => {
                out.push('\\');
                out.push(character);
            }
            _ => out.push(character),
        }
    }
    out
}

/// Formats the report as GitHub-flavoured Markdown text.
pub(super) fn render_markdown(blocks: &[DocumentBlock]) -> String {
    let mut out = String::new();
    for block in blocks {
        if !out.is_empty() {
            out.push('\n');
        }
        match block {
            DocumentBlock::Heading(title) => out += &format!("## {}\n", escape_markdown(title)),
            DocumentBlock::Section(title) => out += &format!("### {}\n", escape_markdown(title)),
            DocumentBlock::Text(paragraph) => out += &format!("{}\n", escape_markdown(paragraph)),
            DocumentBlock::List(remarks) => {
                remarks
                    .iter()
                    .for_each(|one| out += &format!("- {}\n", escape_markdown(one)));
            }
            DocumentBlock::Grid(grid) => out += &grid.render_markdown(),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_squeezed_table_breaks_no_word() {
        let words = |text: &str| vec![text.to_owned(); 2];
        let grid = Grid {
            key_column: Column::left_aligned("system", words("vax780-si9900-cdc9775")),
            groups: vec![ColumnGroup::new(
                "",
                vec![
                    Column::left_aligned("program", words("sequential read, rotdelay 4 ms")),
                    Column::left_aligned("blocks", words("4K/1K frag")),
                    Column::right_aligned("modelled", words("1.7 to 2 blocks/s")),
                    Column::left_aligned("use", words("calibration, not scored")),
                ],
            )],
        };
        let all = "vax780-si9900-cdc9775 sequential read, rotdelay 4K/1K frag 1.7 blocks/s calibration, scored modelled program";
        for columns in [78, 80, 90, 100, 120] {
            let drawn = grid.render_text(columns);
            for word in all.split(' ') {
                assert!(drawn.contains(word), "{word} in {columns}:\n{drawn}");
            }
        }
    }
}
