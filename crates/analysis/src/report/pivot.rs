//! Pivot tables, whose columns are a parameter: `seqread` by layer, `copy` by block size. Also the
//! table with the parts of a read call's time.

use super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use super::figures;
use super::view::{ResultRow, RunView};
use crate::cache::CacheVerdict;
use crate::layers::{self, CallPart, CostEstimate, Decomposition, ReadLayer, decompose};
use diskperf_timeline::ProgramResult;
use diskperf_timeline::units::format_size;

/// Mark of a part of a call's time that is not significantly above 0.
const NOT_DISTINGUISHED_MARK: &str = "~";

const CALL_BYTES_PARAMETER: &str = "call_bytes";

struct PivotTable {
    program: &'static str,
    row_parameter: (&'static str, &'static str),
    column_parameter: &'static str,
}

const PIVOT_TABLES: [PivotTable; 2] = [
    PivotTable {
        program: layers::SEQREAD_PROGRAM,
        row_parameter: (CALL_BYTES_PARAMETER, "per call"),
        column_parameter: "layer",
    },
    PivotTable {
        program: "copy",
        row_parameter: ("destination", "copy to"),
        column_parameter: CALL_BYTES_PARAMETER,
    },
];

impl PivotTable {
    fn applies_to(&self, result: &ProgramResult) -> bool {
        let tells = |name: &str| result.distinguishing.iter().any(|one| one == name);
        result.program == self.program
            && tells(self.row_parameter.0)
            && tells(self.column_parameter)
    }

    fn parameter_value<'r>(&self, row: &'r ResultRow, parameter: &str) -> &'r str {
        row.result
            .parameters
            .get(parameter)
            .map_or("", String::as_str)
    }

    fn is_in_cell(&self, row: &ResultRow, key: &str, column: &str) -> bool {
        self.parameter_value(row, self.row_parameter.0) == key
            && self.parameter_value(row, self.column_parameter) == column
    }

    fn build_grid(&self, rows: &[&ResultRow]) -> Grid {
        let values = |parameter: &str| {
            let mut values: Vec<&str> = Vec::new();
            for row in rows {
                let value = self.parameter_value(row, parameter);
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            values
        };
        let keys = values(self.row_parameter.0);
        let group = |column: &&str| {
            let cell = |key: &&str| {
                rows.iter()
                    .find(|row| self.is_in_cell(row, key, column))
                    .map(|row| figures::format_cell(row))
                    .unwrap_or_default()
            };
            let cells = keys.iter().map(cell).collect();
            ColumnGroup::new(
                "",
                vec![Column::right_aligned_pairs(
                    &format_parameter(self.column_parameter, column),
                    cells,
                )],
            )
        };
        let shown_keys: Vec<String> = keys
            .iter()
            .map(|key| format_parameter(self.row_parameter.0, key))
            .collect();
        Grid {
            key_column: match self.row_parameter.0 {
                CALL_BYTES_PARAMETER => Column::right_aligned(self.row_parameter.1, shown_keys),
                _ => Column::left_aligned(self.row_parameter.1, shown_keys),
            },
            groups: values(self.column_parameter).iter().map(group).collect(),
        }
    }
}

/// Formats a parameter's value for a table: sizes in bytes or KiB.
fn format_parameter(parameter: &str, value: &str) -> String {
    match value.parse() {
        Ok(bytes) if parameter == CALL_BYTES_PARAMETER => format_size(bytes),
        _ => value.to_owned(),
    }
}

/// Tests whether a result is shown in a pivot table, rather than in the general table.
pub(super) fn is_pivoted(result: &ProgramResult) -> bool {
    PIVOT_TABLES.iter().any(|pivot| pivot.applies_to(result))
}

/// Builds the pivot tables of one run, with the run's name where there are several runs.
pub(super) fn build_blocks(view: &RunView, named: bool) -> Vec<DocumentBlock> {
    let mut blocks = Vec::new();
    for pivot in &PIVOT_TABLES {
        let rows: Vec<&ResultRow> = view
            .rows
            .iter()
            .filter(|row| pivot.applies_to(row.result))
            .collect();
        if rows.is_empty() {
            continue;
        }
        let name = if named {
            format!(" on {}", view.name)
        } else {
            String::new()
        };
        for (filesystem, rows) in split_sections(pivot, rows) {
            let place = filesystem.map_or_else(String::new, |name| format!(", {name}"));
            blocks.push(DocumentBlock::Section(format!(
                "{}{name}{place}: KB/s (CPU)",
                pivot.program
            )));
            blocks.push(DocumentBlock::Grid(pivot.build_grid(&rows)));
            if pivot.program == layers::SEQREAD_PROGRAM {
                blocks.extend(build_decomposition(&rows));
            }
        }
    }
    blocks
}

/// Returns all rows of a pivot table together, or divided by file system where one cell would
/// contain several.
fn split_sections<'r>(
    pivot: &PivotTable,
    rows: Vec<&'r ResultRow<'r>>,
) -> Vec<(Option<&'r str>, Vec<&'r ResultRow<'r>>)> {
    let place = |row: &ResultRow| {
        (
            pivot.parameter_value(row, pivot.row_parameter.0).to_owned(),
            pivot
                .parameter_value(row, pivot.column_parameter)
                .to_owned(),
        )
    };
    let mut places: Vec<_> = rows.iter().map(|row| place(row)).collect();
    places.sort_unstable();
    places.dedup();
    if places.len() == rows.len() {
        return vec![(None, rows)];
    }
    let mut found: Vec<(Option<&str>, Vec<&ResultRow>)> = Vec::new();
    for row in rows {
        let name = Some(row.result.filesystem_type.as_str());
        match found.iter_mut().find(|(other, _)| *other == name) {
            Some((_, rows)) => rows.push(row),
            None => found.push((name, vec![row])),
        }
    }
    found
}

/// Tabulates the parts of a call's time: one row per call size, the bare call once, then one group
/// per layer.
fn build_decomposition(rows: &[&ResultRow]) -> Vec<DocumentBlock> {
    let results: Vec<&ProgramResult> = rows.iter().map(|row| row.result).collect();
    let found = decompose(&results);
    let describe_omitted = describe_omitted(rows);
    let layers = list_shown_layers(&found);
    if layers.is_empty() {
        let said = (!describe_omitted.is_empty()).then_some(DocumentBlock::List(describe_omitted));
        return said.into_iter().collect();
    }
    let mut sizes: Vec<u64> = found.iter().map(|one| one.call_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let of_layer = |layer: Option<ReadLayer>| -> Vec<Option<&Decomposition>> {
        let is_it = |one: &Decomposition| layer.is_none_or(|layer| one.layer == layer);
        sizes
            .iter()
            .map(|size| {
                found
                    .iter()
                    .find(|one| one.call_bytes == *size && is_it(one))
            })
            .collect()
    };
    let call = build_part_column(CallPart::SystemCall, &of_layer(None));
    let mut groups = vec![ColumnGroup::new("", vec![call])];
    for layer in &layers {
        groups.push(ColumnGroup::new(
            title_of_layer(*layer),
            build_layer_columns(&of_layer(Some(*layer))),
        ));
    }
    let key = sizes.iter().map(|size| format_size(*size)).collect();
    vec![
        DocumentBlock::Section("Where the time of one call goes, in µs:".to_owned()),
        DocumentBlock::Grid(Grid {
            key_column: Column::right_aligned("per call", key),
            groups,
        }),
        DocumentBlock::List([list_layer_meanings(&layers, &found), describe_omitted].concat()),
    ]
}

/// Selects the layers of `seqread` that have columns. `cached` is a part of `dropped`, and is shown
/// there if every call size has a `dropped` result.
fn list_shown_layers(found: &[Decomposition]) -> Vec<ReadLayer> {
    let has_dropped = |call_bytes| {
        let is_it = |one: &Decomposition| one.layer == ReadLayer::DroppedCache;
        found
            .iter()
            .any(|one| is_it(one) && one.call_bytes == call_bytes)
    };
    let mut layers: Vec<ReadLayer> = found
        .iter()
        .filter(|one| one.layer != ReadLayer::CachedFile || !has_dropped(one.call_bytes))
        .map(|one| one.layer)
        .collect();
    layers.dedup();
    layers
}

/// Describes the results left out because their bytes came from the wrong source: a line per layer
/// and fault, with the call sizes where not all are affected.
fn describe_omitted(rows: &[&ResultRow]) -> Vec<String> {
    let mut found: Vec<(ReadLayer, CacheVerdict, Vec<String>)> = Vec::new();
    for row in rows.iter().filter(|row| row.summary.cache.is_fault()) {
        let Some(layer) = ReadLayer::from_result(row.result) else {
            continue;
        };
        let size = row.result.parameters.get(CALL_BYTES_PARAMETER);
        let size = size.map_or_else(String::new, |size| {
            format_parameter(CALL_BYTES_PARAMETER, size)
        });
        let fault = row.summary.cache;
        match found
            .iter_mut()
            .find(|one| (one.0, one.1) == (layer, fault))
        {
            Some((_, _, sizes)) => sizes.push(size),
            None => found.push((layer, fault, vec![size])),
        }
    }
    let line = |(layer, fault, sizes): (ReadLayer, CacheVerdict, Vec<String>)| {
        let of_layer = |row: &&&ResultRow| ReadLayer::from_result(row.result) == Some(layer);
        let all = rows.iter().filter(of_layer).count();
        let which = if sizes.len() == all {
            String::new()
        } else {
            format!(" by {}", sizes.join(", "))
        };
        let (name, why) = (title_of_layer(layer), fault.meaning());
        format!("{name}{which} is not divided: {why}")
    };
    found.into_iter().map(line).collect()
}

fn title_of_layer(layer: ReadLayer) -> &'static str {
    match layer {
        ReadLayer::Null => "/dev/null",
        ReadLayer::BlockNull => "/dev/bnull",
        ReadLayer::ZeroDevice => "/dev/zero",
        ReadLayer::CachedFile => "file, cached",
        ReadLayer::DroppedCache => "file, not cached",
        ReadLayer::DirectFile => "file, O_DIRECT",
        ReadLayer::BlockDevice => "device",
        ReadLayer::DirectDevice => "device, O_DIRECT",
    }
}

/// Builds the columns of a layer: one per part of the call time that any cell has, and the total.
/// The bare call has a column of its own before all layers.
fn build_layer_columns(cells: &[Option<&Decomposition>]) -> Vec<Column> {
    let mut parts: Vec<CallPart> = cells
        .iter()
        .flatten()
        .flat_map(|one| one.cost_estimates.iter().map(|estimate| estimate.part))
        .filter(|part| *part != CallPart::SystemCall)
        .collect();
    parts.sort_unstable();
    parts.dedup();
    let total = |one: &Decomposition| figures::format_microseconds(one.total_ns, None).0;
    let totals = cells
        .iter()
        .map(|one| one.map_or_else(String::new, total))
        .collect();
    let mut columns: Vec<Column> = parts
        .iter()
        .map(|part| build_part_column(*part, cells))
        .collect();
    columns.push(Column::right_aligned("total", totals));
    columns
}

fn build_part_column(part: CallPart, cells: &[Option<&Decomposition>]) -> Column {
    let cell = |one: &Option<&Decomposition>| {
        one.and_then(|one| {
            one.cost_estimates
                .iter()
                .find(|estimate| estimate.part == part)
        })
        .map_or_else(Default::default, format_estimate)
    };
    Column::right_aligned_pairs(heading_of_part(part), cells.iter().map(cell).collect())
}

fn heading_of_part(part: CallPart) -> &'static str {
    match part {
        CallPart::SystemCall => "bare\ncall",
        CallPart::ClearBuffer => "clear",
        CallPart::LookUpAndCopy => "look-up,\ncopy",
        CallPart::MissHandling => "miss\nhandling",
        CallPart::KernelPath => "kernel",
        CallPart::DeviceWait => "device\nwait",
    }
}

fn format_estimate(estimate: &CostEstimate) -> (String, String) {
    let mark = if estimate.is_distinguished {
        ""
    } else {
        NOT_DISTINGUISHED_MARK
    };
    let (us, noise) = figures::format_microseconds(estimate.mean_ns, estimate.half_width_ns);
    (us, noise + mark)
}

/// Describes the parts of the call time for these layers, and the marks.
fn list_layer_meanings(layers: &[ReadLayer], found: &[Decomposition]) -> Vec<String> {
    let has = |layer: ReadLayer| layers.contains(&layer);
    let parts = || found.iter().flat_map(|one| &one.cost_estimates);
    let has_part = |part: CallPart| parts().any(|estimate| estimate.part == part);
    let lines = [
        (
            true,
            "bare call: a read of /dev/null, with its timing; every total includes it",
        ),
        (
            has(ReadLayer::ZeroDevice),
            "clear: filling the buffer with zeros, which reads no memory: a lower bound of the copy",
        ),
        (
            has_part(CallPart::LookUpAndCopy),
            "look-up, copy: of pages in the page cache, from the cached file",
        ),
        (
            has_part(CallPart::MissHandling),
            "miss handling: CPU time beyond that of the cached file",
        ),
        (
            has_part(CallPart::KernelPath),
            "kernel: CPU time beyond that of the bare call",
        ),
        (
            has_part(CallPart::DeviceWait),
            "device wait: elapsed time without CPU; the device time that read-ahead hides is not included",
        ),
        (
            parts().any(|part| !part.is_distinguished),
            "~ not significant: within the noise, or negative because the two layers differ by more than this part",
        ),
        (
            parts().all(|part| part.half_width_ns.is_none()),
            "single repetitions: the noise is unknown",
        ),
    ];
    lines
        .into_iter()
        .filter(|(occurs, _)| *occurs)
        .map(|(_, line)| line.to_owned())
        .collect()
}
