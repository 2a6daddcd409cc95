//! Accuracy card as tables, JSON and CSV.

use super::csv::{Field, format_records, optional};
use super::document::{Block, Column, Grid, Group};
use super::figures::decimals;
use super::json::pretty;
use crate::accuracy::{
    Bar, Card, Cell, FreeParameter, Parameters, Quantity, Statement, Summary, as_csh_prints,
};

/// Formats the accuracy card as a report.
pub(super) fn blocks(card: &Card) -> Vec<Block> {
    let (mut blocks, cells) = halves(card);
    blocks.extend(cells);
    blocks
}

/// Formats the summary of the whole card, and separately its tables and notes.
pub(super) fn halves(card: &Card) -> (Vec<Block>, Vec<Block>) {
    let mut blocks = vec![Block::Heading(format!(
        "Accuracy: {}",
        card.documents.join(", ")
    ))];
    blocks.push(Block::Text(describe_circumstances(card)));
    if !card.cells.is_empty() {
        blocks.push(Block::Section("How near".to_owned()));
        blocks.push(Block::Grid(summary(&card.summary)));
        blocks.push(Block::List(card.bars.iter().map(describe_bar).collect()));
    }
    (blocks, describe_cells(card))
}

/// Formats the tables of published numbers, with the notes, the claims of the documents and the
/// free parameters.
fn describe_cells(card: &Card) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (published, table) in tables(card) {
        let cells: Vec<&Cell> = card
            .cells
            .iter()
            .filter(|cell| cell.published == published && cell.table == table)
            .collect();
        blocks.push(Block::Section(format!("{published}, {table}")));
        blocks.push(Block::Grid(cell_grid(&cells)));
    }
    blocks.extend(notes(card));
    blocks.extend(statements(card));
    blocks.extend(parameters(card));
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

/// Formats the accuracy card as the page in the repository.
pub(super) fn page(card: &Card) -> Vec<Block> {
    let mut blocks = blocks(card);
    blocks.insert(1, Block::Text(INTRODUCTION.to_owned()));
    blocks
}

/// Describes the conditions that all figures of the card share.
fn describe_circumstances(card: &Card) -> String {
    let mut text = format!(
        "printed: as published; modelled: the same programs on the modelled system, seed {}; \
         error: modelled over printed less 1, \"in range\" within the rounding of a number printed \
         in whole seconds or as an approximation; for a CPU share, which csh prints without its \
         fraction, modelled less printed in points. Two drives: the mean over {} evenly spaced relative phases, the second drive slower by {} %, \
         with the least and the most.",
        card.seed,
        card.two_drives.phases,
        decimals(100.0 * card.two_drives.speed_difference_share)
    );
    let seeds = card.cells.iter().map(|cell| cell.seeds).max();
    if let Some(seeds @ 2..) = seeds {
        text += &format!(" One drive whose data are late at random: the mean over {seeds} seeds.");
    }
    if !card.settings.is_empty() {
        text += &format!(" With {}.", card.settings.join(", "));
    }
    text
}

fn tables(card: &Card) -> Vec<(&str, &str)> {
    let mut tables: Vec<(&str, &str)> = Vec::new();
    for cell in &card.cells {
        let table = (cell.published.as_str(), cell.table.as_str());
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    tables
}

fn describe_bar(bar: &Bar) -> String {
    let points = bar.name.contains("points");
    let limit = |within: f64| match (points, within) {
        (true, within) => format!("{within:.0} points"),
        (false, 0.0) => "the printed range".to_owned(),
        (false, within) => format!("{:.0} %", 100.0 * within),
    };
    let shares: Vec<String> = bar
        .shares
        .iter()
        .map(|share| {
            format!(
                "{} within {} ({:.0} asked)",
                share.cells,
                limit(share.within),
                (share.asked * bar.cells as f64 - 1e-9).ceil()
            )
        })
        .collect();
    let mut text = format!("{}: {} cells, {}", bar.name, bar.cells, shares.join(", "));
    if bar.unexplained > 0 {
        text += &format!(", {} marked unexplained", bar.unexplained);
    }
    if let Some(outer) = bar.limit {
        text += &match bar.beyond.len() {
            0 => format!(", all others within {}", limit(outer)),
            _ => format!(", beyond {}: {}", limit(outer), bar.beyond.join(" ")),
        };
    }
    text + if bar.met { ": met" } else { ": NOT MET" }
}

/// Tabulates the summary of the errors. CPU shares are apart, since their errors are in points.
fn summary(summaries: &[Summary]) -> Grid {
    let column = |of: &dyn Fn(&Summary) -> String| -> Vec<String> {
        let rows = summaries.iter().filter(|one| one.cells + one.cpu_cells > 0);
        rows.map(of).collect()
    };
    let share = |part: usize, all: usize| match all {
        0 => String::new(),
        _ => format!("{:.0} %", 100.0 * part as f64 / all as f64),
    };
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let points = |points: f64| format!("{points:.0} points");
    let rates = vec![
        Column::figures("cells", column(&|one| one.cells.to_string())),
        Column::figures(
            "median error",
            column(&|one| one.median_error.map_or_else(String::new, percent)),
        ),
        Column::figures(
            "within 10 %",
            column(&|one| share(one.within_tenth, one.cells)),
        ),
    ];
    let shares = vec![
        Column::figures("CPU shares", column(&|one| one.cpu_cells.to_string())),
        Column::figures(
            "median error",
            column(&|one| one.cpu_median_points.map_or_else(String::new, points)),
        ),
        Column::figures(
            "within 10 points",
            column(&|one| share(one.cpu_within_ten_points, one.cpu_cells)),
        ),
    ];
    Grid {
        key: Column::words("", column(&|one| one.name.to_owned())),
        groups: vec![Group::of("", rates), Group::of("", shares)],
    }
}

fn cell_grid(cells: &[&Cell]) -> Grid {
    let rows: Vec<(&Cell, Option<&Cell>)> = cells
        .iter()
        .filter(|cell| cell.quantity != Quantity::CpuPercent)
        .map(|cell| {
            let id = format!("{}#cpu", cell.id);
            let share = cells.iter().find(|other| other.id == id);
            (*cell, share.copied())
        })
        .collect();
    let column = |of: &dyn Fn(&Cell) -> String| -> Vec<String> {
        rows.iter().map(|(cell, _)| of(cell)).collect()
    };
    let share = |of: &dyn Fn(&Cell) -> String| -> Vec<String> {
        let of = |(_, share): &(&Cell, Option<&Cell>)| share.map_or_else(String::new, of);
        rows.iter().map(of).collect()
    };
    let words = Group::of(
        "",
        vec![
            Column::words(
                "fs",
                column(&|cell| cell.filesystem.clone().unwrap_or_default()),
            ),
            Column::words(
                "program",
                column(&|cell| cell.test.clone().unwrap_or_default()),
            ),
            Column::figures("drives", column(&|cell| cell.drives.to_string())),
            Column::figures("printed", column(&printed_value)),
            Column::figures("modelled", column(&modelled_value)),
            Column::words("", column(&|cell| cell.quantity.words().to_owned())),
            Column::figures("error", column(&error_value)),
            Column::figures("spread", column(&spread_of_seeds)),
            Column::figures("CPU %", share(&printed_value)),
            Column::figures("modelled ", share(&modelled_value)),
            Column::figures("points", share(&error_value)),
            Column::words("", column(&marks)),
        ],
    );
    let system = |cell: &Cell| cell.target.clone().unwrap_or_else(|| "none".to_owned());
    Grid {
        key: Column::words("system", column(&system)),
        groups: vec![words],
    }
}

fn figure(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::KbPerS => format!("{value:.0}"),
        Quantity::CpuPercent => format!("{:.0}", as_csh_prints(value)),
        Quantity::BlocksPerS | Quantity::Seconds | Quantity::Minutes => format!("{value:.1}"),
        Quantity::Ratio => format!("{value:.2}"),
    }
}

fn printed_value(cell: &Cell) -> String {
    match (cell.printed, cell.printed_low, cell.printed_high) {
        (Some(printed), ..) => figure(cell.quantity, printed),
        (None, Some(low), Some(high)) => format!("{low} to {high}"),
        (None, ..) => "n.m.".to_owned(),
    }
}

fn modelled_value(cell: &Cell) -> String {
    let value = cell.modelled;
    value.map_or_else(String::new, |value| figure(cell.quantity, value))
}

fn error_value(cell: &Cell) -> String {
    if cell
        .modelled
        .is_some_and(|modelled| cell.in_range(modelled))
    {
        return "in range".to_owned();
    }
    match (cell.error, cell.quantity) {
        (None, _) => String::new(),
        (Some(points), Quantity::CpuPercent) => format!("{points:+.0}"),
        // A zero is added so that none is printed with a minus.
        (Some(share), _) => format!("{:+.1}%", (1000.0 * share).round() / 10.0 + 0.0),
    }
}

fn spread_of_seeds(cell: &Cell) -> String {
    cell.spread.map_or_else(String::new, |spread| {
        let figure = |value| figure(cell.quantity, value);
        format!("{} to {}", figure(spread.low), figure(spread.high))
    })
}

fn marks(cell: &Cell) -> String {
    let mut marks = vec![match (cell.printed.or(cell.printed_low), cell.scored) {
        (None, _) => "not measured",
        (Some(_), true) => cell.role.words(),
        (Some(_), false) => "not scored",
    }];
    if cell.same_as.is_some() {
        marks.push("printed twice");
    }
    if cell.suspect {
        marks.push("suspect");
    }
    if cell.unexplained {
        marks.push("unexplained");
    }
    marks.join(", ")
}

fn notes(card: &Card) -> Vec<Block> {
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    let rates = card.cells.iter();
    for cell in rates.filter(|cell| cell.quantity != Quantity::CpuPercent && cell.same_as.is_none())
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
        Block::Section("Notes".to_owned()),
        Block::List(notes.into_iter().map(line).collect()),
    ]
}

fn statements(card: &Card) -> Vec<Block> {
    if card.statements.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::Section("Statements".to_owned())];
    for statement in &card.statements {
        blocks.push(Block::Text(format!(
            "{} {} {}",
            statement.statement,
            describe_verdict(statement),
            statement.conclusion
        )));
        let findings = statement.findings.iter();
        let line = findings
            .map(|found| format!("{}: {} {}", found.what, decimals(found.value), found.unit));
        blocks.push(Block::List(line.collect()));
    }
    blocks
}

fn describe_verdict(statement: &Statement) -> &'static str {
    match statement.holds {
        Some(true) => "(The models agree.)",
        Some(false) => "(The models do NOT agree.)",
        None => "(The models say how much.)",
    }
}

fn parameters(card: &Card) -> Vec<Block> {
    let list = &card.parameters.list;
    let column =
        |of: &dyn Fn(&FreeParameter) -> String| -> Vec<String> { list.iter().map(of).collect() };
    let Parameters {
        calibrated: all,
        fitted,
        by_hand,
        assumed,
        elsewhere,
        ..
    } = card.parameters;
    let title = format!(
        "Free parameters: {all}, {fitted} calibrated by a fit, {by_hand} by hand, {assumed} assumed"
    );
    let mut blocks = vec![Block::Section(title)];
    if elsewhere > 0 {
        blocks.push(Block::Text(format!(
            "Not among them: {elsewhere} that were calibrated on cells of other documents alone."
        )));
    }
    if list.is_empty() {
        return blocks;
    }
    blocks.push(Block::Grid(Grid {
        key: Column::words("parameter", column(&|one| one.path.clone())),
        groups: vec![Group::of(
            "",
            vec![
                Column::figures("value", column(&|one| one.value.clone())),
                Column::words("file", column(&|one| one.file.clone())),
                Column::figures(
                    "cells",
                    column(&|one| match one.cells.len() {
                        0 => String::new(),
                        cells => cells.to_string(),
                    }),
                ),
                Column::words("chosen", column(&|one| one.choice.word().to_owned())),
                Column::words("source", column(&|one| one.source.clone())),
            ],
        )],
    }));
    blocks
}

/// Formats the card as JSON by the `reproduce` contract.
pub(super) fn json(card: &Card) -> String {
    pretty(card)
}

/// Formats the card as CSV, one line for each published number.
pub(super) fn csv(card: &Card) -> String {
    let records: Vec<Vec<Field>> = card.cells.iter().map(csv_record).collect();
    format_records(&records)
}

fn csv_record(cell: &Cell) -> Vec<Field> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    vec![
        ("id", cell.id.clone()),
        ("published", cell.published.clone()),
        ("table", cell.table.clone()),
        ("target", text(&cell.target)),
        ("quantity", cell.quantity.name().to_owned()),
        ("printed", optional(cell.printed)),
        ("printed_low", optional(cell.printed_low)),
        ("printed_high", optional(cell.printed_high)),
        ("modelled", optional(cell.modelled)),
        ("error", optional(cell.error)),
        ("scored", cell.scored.to_string()),
        ("same_as", text(&cell.same_as)),
        ("role", cell.role.words().to_owned()),
        ("phases", cell.phases.to_string()),
        ("seeds", cell.seeds.to_string()),
        ("spread_low", optional(cell.spread.map(|spread| spread.low))),
        (
            "spread_high",
            optional(cell.spread.map(|spread| spread.high)),
        ),
        ("suspect", cell.suspect.to_string()),
        ("unexplained", cell.unexplained.to_string()),
        ("note", text(&cell.note)),
    ]
}
