//! Conversion of structured reports to HTML.

use super::escape;
use crate::report::document::{Column, DocumentBlock, Grid};

/// Length of a word in characters above which it gets places to wrap.
const WRAP_WORD_LENGTH_MIN: usize = 48;

pub(super) fn render_blocks(blocks: &[DocumentBlock]) -> String {
    blocks.iter().map(render_block).collect()
}

fn render_block(block: &DocumentBlock) -> String {
    match block {
        DocumentBlock::Heading(title) => format!("<h2>{}</h2>\n", escape::escape_text(title)),
        DocumentBlock::Section(title) => format!("<h3>{}</h3>\n", escape::escape_text(title)),
        DocumentBlock::Text(paragraph) => format!("<p>{}</p>\n", escape::escape_text(paragraph)),
        DocumentBlock::List(remarks) => render_list(remarks),
        DocumentBlock::Grid(grid) => render_table(grid),
    }
}

pub(super) fn render_list(remarks: &[String]) -> String {
    let items = remarks.iter();
    let items: String = items
        .map(|one| format!("<li>{}</li>\n", escape::escape_text(one)))
        .collect();
    match items.is_empty() {
        true => String::new(),
        false => format!("<ul>\n{items}</ul>\n"),
    }
}

/// Formats a table as HTML that scrolls on its own where it is too wide for the page.
fn render_table(grid: &Grid) -> String {
    let columns: Vec<&Column> = std::iter::once(&grid.key_column)
        .chain(grid.groups.iter().flat_map(|group| &group.columns))
        .collect();
    let head = |column: &&Column| {
        let class = if column.is_right_aligned {
            " class=\"n\""
        } else {
            ""
        };
        format!(
            "<th scope=\"col\"{class}>{}</th>",
            escape::escape_text(&column.heading)
        )
    };
    let heads: String = columns.iter().map(head).collect();
    let mut body = String::new();
    for row in 0..grid.key_column.cells.len() {
        let (key, others) = columns.split_first().expect("the key is the first");
        body += &format!(
            "<tr><th scope=\"row\">{}</th>",
            escape::escape_text(&key.cells[row])
        );
        others.iter().for_each(|column| body += &cell(column, row));
        body += "</tr>\n";
    }
    format!(
        "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead>{}<tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n",
        render_group_headings(grid)
    )
}

fn cell(column: &Column, row: usize) -> String {
    let text = &column.cells[row];
    let class = match (
        column.is_right_aligned,
        text.chars().count() > WRAP_WORD_LENGTH_MIN,
    ) {
        (true, _) => " class=\"n\"",
        (false, true) => " class=\"long\"",
        (false, false) => "",
    };
    format!("<td{class}>{}</td>", escape::escape_text(text))
}

fn render_group_headings(grid: &Grid) -> String {
    if grid.groups.iter().all(|group| group.title.is_empty()) {
        return String::new();
    }
    let group = |group: &crate::report::document::ColumnGroup| {
        format!(
            "<th scope=\"colgroup\" class=\"group\" colspan=\"{}\">{}</th>",
            group.columns.len(),
            escape::escape_text(&group.title)
        )
    };
    let wanted = grid.groups.iter().filter(|group| !group.columns.is_empty());
    let groups: String = wanted.map(group).collect();
    format!("<tr><th></th>{groups}</tr>")
}
