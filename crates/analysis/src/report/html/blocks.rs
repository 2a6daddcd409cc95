//! Conversion of structured reports to HTML.

use super::escape;
use crate::report::document::{Block, Column, Grid};

/// Length of a word in characters above which it gets places to wrap.
const WRAP_WORD_LENGTH_MIN: usize = 48;

pub(super) fn html(blocks: &[Block]) -> String {
    blocks.iter().map(block).collect()
}

fn block(block: &Block) -> String {
    match block {
        Block::Heading(title) => format!("<h2>{}</h2>\n", escape::text(title)),
        Block::Section(title) => format!("<h3>{}</h3>\n", escape::text(title)),
        Block::Text(paragraph) => format!("<p>{}</p>\n", escape::text(paragraph)),
        Block::List(remarks) => list(remarks),
        Block::Grid(grid) => table(grid),
    }
}

pub(super) fn list(remarks: &[String]) -> String {
    let items = remarks.iter();
    let items: String = items
        .map(|one| format!("<li>{}</li>\n", escape::text(one)))
        .collect();
    match items.is_empty() {
        true => String::new(),
        false => format!("<ul>\n{items}</ul>\n"),
    }
}

/// Formats a table as HTML that scrolls on its own where it is too wide for the page.
fn table(grid: &Grid) -> String {
    let columns: Vec<&Column> = std::iter::once(&grid.key)
        .chain(grid.groups.iter().flat_map(|group| &group.columns))
        .collect();
    let head = |column: &&Column| {
        let class = if column.right { " class=\"n\"" } else { "" };
        format!(
            "<th scope=\"col\"{class}>{}</th>",
            escape::text(&column.heading)
        )
    };
    let heads: String = columns.iter().map(head).collect();
    let mut body = String::new();
    for row in 0..grid.key.cells.len() {
        let (key, others) = columns.split_first().expect("the key is the first");
        body += &format!(
            "<tr><th scope=\"row\">{}</th>",
            escape::text(&key.cells[row])
        );
        others.iter().for_each(|column| body += &cell(column, row));
        body += "</tr>\n";
    }
    format!(
        "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead>{}<tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n",
        groups(grid)
    )
}

fn cell(column: &Column, row: usize) -> String {
    let text = &column.cells[row];
    let class = match (column.right, text.chars().count() > WRAP_WORD_LENGTH_MIN) {
        (true, _) => " class=\"n\"",
        (false, true) => " class=\"long\"",
        (false, false) => "",
    };
    format!("<td{class}>{}</td>", escape::text(text))
}

fn groups(grid: &Grid) -> String {
    if grid.groups.iter().all(|group| group.title.is_empty()) {
        return String::new();
    }
    let group = |group: &crate::report::document::Group| {
        format!(
            "<th scope=\"colgroup\" class=\"group\" colspan=\"{}\">{}</th>",
            group.columns.len(),
            escape::text(&group.title)
        )
    };
    let wanted = grid.groups.iter().filter(|group| !group.columns.is_empty());
    let groups: String = wanted.map(group).collect();
    format!("<tr><th></th>{groups}</tr>")
}
