//! Accuracy card as tables, JSON and CSV.

use super::csv::{CsvField, format_optional, format_records};
use super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use super::figures::format_by_magnitude;
use super::json::render_pretty;
use crate::accuracy::{
    AccuracyBar, AccuracyCard, AccuracyCell, AccuracySummary, CellQuantity, FreeParameter,
    FreeParameters, PublishedStatement, round_as_csh_prints,
};

pub(super) fn build_blocks(card: &AccuracyCard) -> Vec<DocumentBlock> {
    let (mut blocks, cells) = split_page(card);
    blocks.extend(cells);
    blocks
}

/// Formats the summary of the whole card, and separately its tables and notes.
pub(super) fn split_page(card: &AccuracyCard) -> (Vec<DocumentBlock>, Vec<DocumentBlock>) {
    let mut blocks = vec![DocumentBlock::Heading(format!(
        "Accuracy: {}",
        card.documents.join(", ")
    ))];
    blocks.push(DocumentBlock::Text(describe_circumstances(card)));
    if !card.cells.is_empty() {
        blocks.push(DocumentBlock::Section("How near".to_owned()));
        blocks.push(DocumentBlock::Grid(build_summary_grid(&card.summary)));
        blocks.push(DocumentBlock::List(
            card.accuracy_bars.iter().map(describe_bar).collect(),
        ));
    }
    (blocks, describe_cells(card))
}

/// Formats the tables of published numbers, with the notes, the claims of the documents and the
/// free parameters.
fn describe_cells(card: &AccuracyCard) -> Vec<DocumentBlock> {
    let mut blocks = Vec::new();
    for (published, table) in list_tables(card) {
        let cells: Vec<&AccuracyCell> = card
            .cells
            .iter()
            .filter(|cell| cell.published == published && cell.table_title == table)
            .collect();
        blocks.push(DocumentBlock::Section(format!("{published}, {table}")));
        blocks.push(DocumentBlock::Grid(build_cell_grid(&cells)));
    }
    blocks.extend(build_notes(card));
    blocks.extend(build_statements(card));
    blocks.extend(build_parameters(card));
    blocks
}

const INTRODUCTION: &str = "This page compares every number that the documents print with the \
modelled one: the same programs, run on the modelled computer with the protocol of the document. \
diskperf reproduce --format markdown prints this page; a test fails when it is stale. Real drives are \
scored against their traces by diskperf reproduce real-drives. A cell counts \
if it is scored, and once if two tables print the same measurement. calibration: a free parameter of \
its system was chosen with it; prediction: none was. not scored: the document suspects its hardware, \
or gives it as context; not measured: the document prints n.m., and the model predicts. A parameter \
is free if its source is not a document, a source file, or arithmetic on these.";

pub(super) fn build_page(card: &AccuracyCard) -> Vec<DocumentBlock> {
    let mut blocks = build_blocks(card);
    blocks.insert(1, DocumentBlock::Text(INTRODUCTION.to_owned()));
    blocks
}

/// Describes the conditions that all figures of the card share.
fn describe_circumstances(card: &AccuracyCard) -> String {
    let mut text = format!(
        "printed: as published; modelled: the same programs on the modelled system, seed {}; \
         error: modelled over printed less 1, \"in range\" within the rounding of a number printed \
         in whole seconds or as an approximation; for a CPU share, which csh prints without its \
         fraction, modelled less printed in points. Two drives: the mean over {} evenly spaced relative phases, the second drive slower by {} %, \
         with the least and the most.",
        card.seed,
        card.two_drives.phase_count,
        format_by_magnitude(100.0 * card.two_drives.speed_difference_share)
    );
    let seeds = card.cells.iter().map(|cell| cell.seed_count).max();
    if let Some(seeds @ 2..) = seeds {
        text += &format!(" One drive whose data are late at random: the mean over {seeds} seeds.");
    }
    if !card.settings.is_empty() {
        text += &format!(" With {}.", card.settings.join(", "));
    }
    text
}

fn list_tables(card: &AccuracyCard) -> Vec<(&str, &str)> {
    let mut tables: Vec<(&str, &str)> = Vec::new();
    for cell in &card.cells {
        let table = (cell.published.as_str(), cell.table_title.as_str());
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    tables
}

fn describe_bar(bar: &AccuracyBar) -> String {
    let points = bar.name.contains("points");
    let limit = |within: f64| match (points, within) {
        (true, within) => format!("{within:.0} points"),
        (false, 0.0) => "the printed range".to_owned(),
        (false, within) => format!("{:.0} %", 100.0 * within),
    };
    let shares: Vec<String> = bar
        .error_shares
        .iter()
        .map(|share| {
            format!(
                "{} within {} ({:.0} asked)",
                share.cell_count,
                limit(share.error_max),
                (share.share_required * bar.cell_count as f64 - 1e-9).ceil()
            )
        })
        .collect();
    let mut text = format!(
        "{}: {} cells, {}",
        bar.name,
        bar.cell_count,
        shares.join(", ")
    );
    if bar.unexplained_count > 0 {
        text += &format!(", {} marked unexplained", bar.unexplained_count);
    }
    if let Some(outer) = bar.error_limit {
        text += &match bar.cells_beyond_limit.len() {
            0 => format!(", all others within {}", limit(outer)),
            _ => format!(
                ", beyond {}: {}",
                limit(outer),
                bar.cells_beyond_limit.join(" ")
            ),
        };
    }
    text + if bar.is_met { ": met" } else { ": NOT MET" }
}

/// Tabulates the summary of the errors. CPU shares are apart, since their errors are in points.
fn build_summary_grid(summaries: &[AccuracySummary]) -> Grid {
    let column = |of: &dyn Fn(&AccuracySummary) -> String| -> Vec<String> {
        let rows = summaries
            .iter()
            .filter(|one| one.cell_count + one.cpu_cell_count > 0);
        rows.map(of).collect()
    };
    let share = |part: usize, all: usize| match all {
        0 => String::new(),
        _ => format!("{:.0} %", 100.0 * part as f64 / all as f64),
    };
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let points = |points: f64| format!("{points:.0} points");
    let rates = vec![
        Column::right_aligned("cells", column(&|one| one.cell_count.to_string())),
        Column::right_aligned(
            "median error",
            column(&|one| one.median_error.map_or_else(String::new, percent)),
        ),
        Column::right_aligned(
            "within 10 %",
            column(&|one| share(one.within_tenth_count, one.cell_count)),
        ),
    ];
    let shares = vec![
        Column::right_aligned("CPU shares", column(&|one| one.cpu_cell_count.to_string())),
        Column::right_aligned(
            "median error",
            column(&|one| one.cpu_median_error_points.map_or_else(String::new, points)),
        ),
        Column::right_aligned(
            "within 10 points",
            column(&|one| share(one.cpu_within_ten_points_count, one.cpu_cell_count)),
        ),
    ];
    Grid {
        key_column: Column::left_aligned("", column(&|one| one.name.to_owned())),
        groups: vec![ColumnGroup::new("", rates), ColumnGroup::new("", shares)],
    }
}

fn build_cell_grid(cells: &[&AccuracyCell]) -> Grid {
    let rows: Vec<(&AccuracyCell, Option<&AccuracyCell>)> = cells
        .iter()
        .filter(|cell| cell.quantity != CellQuantity::CpuPercent)
        .map(|cell| {
            let id = format!("{}#cpu", cell.id);
            let share = cells.iter().find(|other| other.id == id);
            (*cell, share.copied())
        })
        .collect();
    let column = |of: &dyn Fn(&AccuracyCell) -> String| -> Vec<String> {
        rows.iter().map(|(cell, _)| of(cell)).collect()
    };
    let share = |of: &dyn Fn(&AccuracyCell) -> String| -> Vec<String> {
        let of = |(_, share): &(&AccuracyCell, Option<&AccuracyCell>)| {
            share.map_or_else(String::new, of)
        };
        rows.iter().map(of).collect()
    };
    let words = ColumnGroup::new(
        "",
        vec![
            Column::left_aligned(
                "fs",
                column(&|cell| cell.filesystem.clone().unwrap_or_default()),
            ),
            Column::left_aligned(
                "program",
                column(&|cell| cell.test.clone().unwrap_or_default()),
            ),
            Column::right_aligned("drives", column(&|cell| cell.drives.to_string())),
            Column::right_aligned("printed", column(&format_printed_value)),
            Column::right_aligned("modelled", column(&format_modelled_value)),
            Column::left_aligned("", column(&|cell| cell.quantity.label().to_owned())),
            Column::right_aligned("error", column(&format_error)),
            Column::right_aligned("spread", column(&format_seed_range)),
            Column::right_aligned("CPU %", share(&format_printed_value)),
            Column::right_aligned("modelled ", share(&format_modelled_value)),
            Column::right_aligned("points", share(&format_error)),
            Column::left_aligned("", column(&format_marks)),
        ],
    );
    let system = |cell: &AccuracyCell| cell.target.clone().unwrap_or_else(|| "none".to_owned());
    Grid {
        key_column: Column::left_aligned("system", column(&system)),
        groups: vec![words],
    }
}

fn format_figure(quantity: CellQuantity, value: f64) -> String {
    match quantity {
        CellQuantity::KbPerS => format!("{value:.0}"),
        CellQuantity::CpuPercent => format!("{:.0}", round_as_csh_prints(value)),
        CellQuantity::BlocksPerS | CellQuantity::Seconds | CellQuantity::Minutes => {
            format!("{value:.1}")
        }
        CellQuantity::Ratio => format!("{value:.2}"),
    }
}

fn format_printed_value(cell: &AccuracyCell) -> String {
    match (cell.printed_value, cell.printed_min, cell.printed_max) {
        (Some(printed), ..) => format_figure(cell.quantity, printed),
        (None, Some(low), Some(high)) => format!("{low} to {high}"),
        (None, ..) => "n.m.".to_owned(),
    }
}

fn format_modelled_value(cell: &AccuracyCell) -> String {
    let value = cell.modelled_value;
    value.map_or_else(String::new, |value| format_figure(cell.quantity, value))
}

fn format_error(cell: &AccuracyCell) -> String {
    if cell
        .modelled_value
        .is_some_and(|modelled| cell.is_in_printed_range(modelled))
    {
        return "in range".to_owned();
    }
    match (cell.error, cell.quantity) {
        (None, _) => String::new(),
        (Some(points), CellQuantity::CpuPercent) => format!("{points:+.0}"),
        // A zero is added so that none is printed with a minus.
        (Some(share), _) => format!("{:+.1}%", (1000.0 * share).round() / 10.0 + 0.0),
    }
}

fn format_seed_range(cell: &AccuracyCell) -> String {
    cell.seed_range.map_or_else(String::new, |spread| {
        let figure = |value| format_figure(cell.quantity, value);
        format!("{} to {}", figure(spread.min), figure(spread.max))
    })
}

fn format_marks(cell: &AccuracyCell) -> String {
    let mut marks = vec![
        match (cell.printed_value.or(cell.printed_min), cell.is_scored) {
            (None, _) => "not measured",
            (Some(_), true) => cell.role.label(),
            (Some(_), false) => "not scored",
        },
    ];
    if cell.same_as_cell.is_some() {
        marks.push("printed twice");
    }
    if cell.is_suspect {
        marks.push("suspect");
    }
    if cell.is_unexplained {
        marks.push("unexplained");
    }
    marks.join(", ")
}

fn build_notes(card: &AccuracyCard) -> Vec<DocumentBlock> {
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    let rates = card.cells.iter();
    for cell in rates
        .filter(|cell| cell.quantity != CellQuantity::CpuPercent && cell.same_as_cell.is_none())
    {
        let Some(note) = cell.note.as_deref() else {
            continue;
        };
        match notes.iter_mut().find(|(known, _)| *known == note) {
            Some((_, ids)) => ids.push(&cell.id),
            None => notes.push((note, vec![&cell.id])),
        }
    }
    if notes.is_empty() {
        return Vec::new();
    }
    let line = |(note, ids): (&str, Vec<&str>)| format!("{}: {note}", ids.join(", "));
    vec![
        DocumentBlock::Section("Notes".to_owned()),
        DocumentBlock::List(notes.into_iter().map(line).collect()),
    ]
}

fn build_statements(card: &AccuracyCard) -> Vec<DocumentBlock> {
    if card.statements.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![DocumentBlock::Section("Statements".to_owned())];
    for statement in &card.statements {
        blocks.push(DocumentBlock::Text(format!(
            "{} {} {}",
            statement.statement,
            describe_verdict(statement),
            statement.conclusion
        )));
        let findings = statement.findings.iter();
        let line = findings.map(|found| {
            format!(
                "{}: {} {}",
                found.subject,
                format_by_magnitude(found.value),
                found.unit
            )
        });
        blocks.push(DocumentBlock::List(line.collect()));
    }
    blocks
}

fn describe_verdict(statement: &PublishedStatement) -> &'static str {
    match statement.is_confirmed {
        Some(true) => "(The models agree.)",
        Some(false) => "(The models do NOT agree.)",
        None => "(The models say how much.)",
    }
}

fn build_parameters(card: &AccuracyCard) -> Vec<DocumentBlock> {
    let list = &card.parameters.list;
    let column =
        |of: &dyn Fn(&FreeParameter) -> String| -> Vec<String> { list.iter().map(of).collect() };
    let FreeParameters {
        calibrated_count: all,
        fitted_count: fitted,
        set_by_hand_count: by_hand,
        assumed_count: assumed,
        other_documents_count: elsewhere,
        ..
    } = card.parameters;
    let title = format!(
        "Free parameters: {all}, {fitted} calibrated by a fit, {by_hand} by hand, {assumed} assumed"
    );
    let mut blocks = vec![DocumentBlock::Section(title)];
    if elsewhere > 0 {
        blocks.push(DocumentBlock::Text(format!(
            "Not among them: {elsewhere} that were calibrated on cells of other documents alone."
        )));
    }
    if list.is_empty() {
        return blocks;
    }
    blocks.push(DocumentBlock::Grid(Grid {
        key_column: Column::left_aligned("parameter", column(&|one| one.path.clone())),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                Column::right_aligned("value", column(&|one| one.value.clone())),
                Column::left_aligned("file", column(&|one| one.file.clone())),
                Column::right_aligned(
                    "cells",
                    column(&|one| match one.cells.len() {
                        0 => String::new(),
                        cells => cells.to_string(),
                    }),
                ),
                Column::left_aligned("chosen", column(&|one| one.origin.word().to_owned())),
                Column::left_aligned("source", column(&|one| one.source_document.clone())),
            ],
        )],
    }));
    blocks
}

/// Formats the card as JSON by the `reproduce` contract.
pub(super) fn render_json(card: &AccuracyCard) -> String {
    render_pretty(card)
}

pub(super) fn render_csv(card: &AccuracyCard) -> String {
    let records: Vec<Vec<CsvField>> = card.cells.iter().map(build_csv_record).collect();
    format_records(&records)
}

fn build_csv_record(cell: &AccuracyCell) -> Vec<CsvField> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    vec![
        ("id", cell.id.clone()),
        ("published", cell.published.clone()),
        ("table", cell.table_title.clone()),
        ("target", text(&cell.target)),
        ("quantity", cell.quantity.name().to_owned()),
        ("printed", format_optional(cell.printed_value)),
        ("printed_low", format_optional(cell.printed_min)),
        ("printed_high", format_optional(cell.printed_max)),
        ("modelled", format_optional(cell.modelled_value)),
        ("error", format_optional(cell.error)),
        ("scored", cell.is_scored.to_string()),
        ("same_as", text(&cell.same_as_cell)),
        ("role", cell.role.label().to_owned()),
        ("phases", cell.phase_count.to_string()),
        ("seeds", cell.seed_count.to_string()),
        (
            "spread_low",
            format_optional(cell.seed_range.map(|spread| spread.min)),
        ),
        (
            "spread_high",
            format_optional(cell.seed_range.map(|spread| spread.max)),
        ),
        ("suspect", cell.is_suspect.to_string()),
        ("unexplained", cell.is_unexplained.to_string()),
        ("note", text(&cell.note)),
    ]
}
