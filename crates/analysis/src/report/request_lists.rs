//! Bios of file operations, as a table, JSON and CSV.

use super::csv::{CsvField, format_records};
use super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use super::json::render_pretty;
use crate::request_lists::{OperationBios, RequestListReport, SequenceLists};

/// Returns the operations of a sequence, with unmounting as the last one.
fn list_operations(lists: &SequenceLists) -> Vec<OperationBios> {
    let unmount = OperationBios {
        call: "unmount".to_owned(),
        bios: lists.unmount.clone(),
    };
    lists.operations.iter().cloned().chain([unmount]).collect()
}

pub(super) fn build_blocks(report: &RequestListReport) -> Vec<DocumentBlock> {
    report.sequences.iter().flat_map(build_sequence).collect()
}

/// Builds the table of one sequence: a row for each operation, and one for each further bio.
fn build_sequence(lists: &SequenceLists) -> [DocumentBlock; 2] {
    let (mut numbers, mut calls, mut bios) = (Vec::new(), Vec::new(), Vec::new());
    for (index, operation) in list_operations(lists).into_iter().enumerate() {
        numbers.push(index.to_string());
        calls.push(operation.call);
        let further = operation.bios.len().saturating_sub(1);
        numbers.extend(vec![String::new(); further]);
        calls.extend(vec![String::new(); further]);
        match operation.bios.is_empty() {
            true => bios.push("-".to_owned()),
            false => bios.extend(operation.bios),
        }
    }
    [
        DocumentBlock::Heading(format!(
            "{} on {}, Linux {}",
            lists.sequence, lists.filesystem, lists.kernel
        )),
        DocumentBlock::Grid(Grid {
            key_column: Column::left_aligned("operation", numbers),
            groups: vec![ColumnGroup::new(
                "",
                vec![
                    Column::left_aligned("call", calls),
                    Column::left_aligned("bios", bios),
                ],
            )],
        }),
    ]
}

pub(super) fn render_json(report: &RequestListReport) -> String {
    render_pretty(report)
}

/// Formats the bios as CSV, one line for each.
pub(super) fn render_csv(report: &RequestListReport) -> String {
    let mut records: Vec<Vec<CsvField>> = Vec::new();
    for lists in &report.sequences {
        for (index, operation) in list_operations(lists).iter().enumerate() {
            records.extend(operation.bios.iter().map(|bio| {
                vec![
                    ("sequence", lists.sequence.clone()),
                    ("filesystem", lists.filesystem.clone()),
                    ("kernel", lists.kernel.clone()),
                    ("operation", index.to_string()),
                    ("call", operation.call.clone()),
                    ("bio", bio.clone()),
                ]
            }));
        }
    }
    format_records(&records)
}
