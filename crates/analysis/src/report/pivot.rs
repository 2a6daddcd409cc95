//! Pivot tables, whose columns are a parameter: `seqread` by layer, `copy` by block size. Also the
//! table with the parts of a read call's time.

use super::document::{Block, Column, Grid, Group};
use super::figures;
use super::view::{Row, View};
use crate::cache::CacheVerdict;
use crate::layers::{self, CallPart, Decomposition, Estimate, Layer, decompose};
use diskperf_timeline::ProgramResult;
use diskperf_timeline::units::format_size;

/// Mark of a part of a call's time that is not significantly above 0.
const NOT_DISTINGUISHED_MARK: &str = "~";

const CALL_BYTES: &str = "call_bytes";

struct Pivot {
    program: &'static str,
    /// Parameter that the rows of the pivot table show, and its heading.
    row: (&'static str, &'static str),
    column: &'static str,
}

const PIVOTS: [Pivot; 2] = [
    Pivot {
        program: layers::PROGRAM,
        row: (CALL_BYTES, "per call"),
        column: "layer",
    },
    Pivot {
        program: "copy",
        row: ("destination", "copy to"),
        column: CALL_BYTES,
    },
];

impl Pivot {
    fn applies_to(&self, result: &ProgramResult) -> bool {
        let tells = |name: &str| result.distinguishing.iter().any(|one| one == name);
        result.program == self.program && tells(self.row.0) && tells(self.column)
    }

    fn value<'r>(&self, row: &'r Row, parameter: &str) -> &'r str {
        row.result
            .parameters
            .get(parameter)
            .map_or("", String::as_str)
    }

    /// Tests whether a result belongs to a cell of the table, by its row and column.
    fn is_at(&self, row: &Row, key: &str, column: &str) -> bool {
        self.value(row, self.row.0) == key && self.value(row, self.column) == column
    }

    fn grid(&self, rows: &[&Row]) -> Grid {
        let values = |parameter: &str| {
            let mut values: Vec<&str> = Vec::new();
            for row in rows {
                let value = self.value(row, parameter);
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            values
        };
        let keys = values(self.row.0);
        let group = |column: &&str| {
            let cell = |key: &&str| {
                rows.iter()
                    .find(|row| self.is_at(row, key, column))
                    .map(|row| figures::cell(row))
                    .unwrap_or_default()
            };
            let cells = keys.iter().map(cell).collect();
            Group::new(
                "",
                vec![Column::pairs(&format_parameter(self.column, column), cells)],
            )
        };
        let shown_keys: Vec<String> = keys
            .iter()
            .map(|key| format_parameter(self.row.0, key))
            .collect();
        Grid {
            key: match self.row.0 {
                CALL_BYTES => Column::figures(self.row.1, shown_keys),
                _ => Column::words(self.row.1, shown_keys),
            },
            groups: values(self.column).iter().map(group).collect(),
        }
    }
}

/// Formats a parameter's value for a table: sizes in bytes or KiB.
fn format_parameter(parameter: &str, value: &str) -> String {
    match value.parse() {
        Ok(bytes) if parameter == CALL_BYTES => format_size(bytes),
        _ => value.to_owned(),
    }
}

/// Tests whether a result is shown in a pivot table, rather than in the general table.
pub(super) fn is_pivoted(result: &ProgramResult) -> bool {
    PIVOTS.iter().any(|pivot| pivot.applies_to(result))
}

/// Builds the pivot tables of one run, with the run's name where there are several runs.
pub(super) fn blocks(view: &View, named: bool) -> Vec<Block> {
    let mut blocks = Vec::new();
    for pivot in &PIVOTS {
        let rows: Vec<&Row> = view
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
        for (filesystem, rows) in sections(pivot, rows) {
            let place = filesystem.map_or_else(String::new, |name| format!(", {name}"));
            blocks.push(Block::Section(format!(
                "{}{name}{place}: KB/s (CPU)",
                pivot.program
            )));
            blocks.push(Block::Grid(pivot.grid(&rows)));
            if pivot.program == layers::PROGRAM {
                blocks.extend(decomposition(&rows));
            }
        }
    }
    blocks
}

/// Returns all rows of a pivot table together, or divided by file system where one cell would
/// contain several.
fn sections<'r>(pivot: &Pivot, rows: Vec<&'r Row<'r>>) -> Vec<(Option<&'r str>, Vec<&'r Row<'r>>)> {
    let place = |row: &Row| {
        (
            pivot.value(row, pivot.row.0).to_owned(),
            pivot.value(row, pivot.column).to_owned(),
        )
    };
    let mut places: Vec<_> = rows.iter().map(|row| place(row)).collect();
    places.sort_unstable();
    places.dedup();
    if places.len() == rows.len() {
        return vec![(None, rows)];
    }
    let mut found: Vec<(Option<&str>, Vec<&Row>)> = Vec::new();
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
fn decomposition(rows: &[&Row]) -> Vec<Block> {
    let results: Vec<&ProgramResult> = rows.iter().map(|row| row.result).collect();
    let found = decompose(&results);
    let describe_omitted = describe_omitted(rows);
    let layers = shown_layers(&found);
    if layers.is_empty() {
        let said = (!describe_omitted.is_empty()).then_some(Block::List(describe_omitted));
        return said.into_iter().collect();
    }
    let mut sizes: Vec<u64> = found.iter().map(|one| one.call_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let of_layer = |layer: Option<Layer>| -> Vec<Option<&Decomposition>> {
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
    let call = part_column(CallPart::Call, &of_layer(None));
    let mut groups = vec![Group::new("", vec![call])];
    for layer in &layers {
        groups.push(Group::new(
            layer_title(*layer),
            layer_columns(&of_layer(Some(*layer))),
        ));
    }
    let key = sizes.iter().map(|size| format_size(*size)).collect();
    vec![
        Block::Section("Where the time of one call goes, in µs:".to_owned()),
        Block::Grid(Grid {
            key: Column::figures("per call", key),
            groups,
        }),
        Block::List([meanings(&layers, &found), describe_omitted].concat()),
    ]
}

/// Selects the layers of `seqread` that have columns. `cached` is a part of `dropped`, and is shown
/// there if every call size has a `dropped` result.
fn shown_layers(found: &[Decomposition]) -> Vec<Layer> {
    let has_dropped = |call_bytes| {
        let is_it = |one: &Decomposition| one.layer == Layer::Dropped;
        found
            .iter()
            .any(|one| is_it(one) && one.call_bytes == call_bytes)
    };
    let mut layers: Vec<Layer> = found
        .iter()
        .filter(|one| one.layer != Layer::Cached || !has_dropped(one.call_bytes))
        .map(|one| one.layer)
        .collect();
    layers.dedup();
    layers
}

/// Describes the results left out because their bytes came from the wrong source: a line per layer
/// and fault, with the call sizes where not all are affected.
fn describe_omitted(rows: &[&Row]) -> Vec<String> {
    let mut found: Vec<(Layer, CacheVerdict, Vec<String>)> = Vec::new();
    for row in rows.iter().filter(|row| row.summary.cache.is_fault()) {
        let Some(layer) = Layer::from_result(row.result) else {
            continue;
        };
        let size = row.result.parameters.get(CALL_BYTES);
        let size = size.map_or_else(String::new, |size| format_parameter(CALL_BYTES, size));
        let fault = row.summary.cache;
        match found
            .iter_mut()
            .find(|one| (one.0, one.1) == (layer, fault))
        {
            Some((_, _, sizes)) => sizes.push(size),
            None => found.push((layer, fault, vec![size])),
        }
    }
    let line = |(layer, fault, sizes): (Layer, CacheVerdict, Vec<String>)| {
        let of_layer = |row: &&&Row| Layer::from_result(row.result) == Some(layer);
        let all = rows.iter().filter(of_layer).count();
        let which = if sizes.len() == all {
            String::new()
        } else {
            format!(" by {}", sizes.join(", "))
        };
        let (name, why) = (layer_title(layer), fault.meaning());
        format!("{name}{which} is not divided: {why}")
    };
    found.into_iter().map(line).collect()
}

fn layer_title(layer: Layer) -> &'static str {
    match layer {
        Layer::Null => "/dev/null",
        Layer::BlockNull => "/dev/bnull",
        Layer::Zero => "/dev/zero",
        Layer::Cached => "file, cached",
        Layer::Dropped => "file, not cached",
        Layer::Direct => "file, O_DIRECT",
        Layer::Device => "device",
        Layer::DeviceDirect => "device, O_DIRECT",
    }
}

/// Builds the columns of a layer: one per part of the call time that any cell has, and the total.
/// The bare call has a column of its own before all layers.
fn layer_columns(cells: &[Option<&Decomposition>]) -> Vec<Column> {
    let mut parts: Vec<CallPart> = cells
        .iter()
        .flatten()
        .flat_map(|one| one.parts.iter().map(|estimate| estimate.part))
        .filter(|part| *part != CallPart::Call)
        .collect();
    parts.sort_unstable();
    parts.dedup();
    let total = |one: &Decomposition| figures::microseconds(one.total_ns, None).0;
    let totals = cells
        .iter()
        .map(|one| one.map_or_else(String::new, total))
        .collect();
    let mut columns: Vec<Column> = parts.iter().map(|part| part_column(*part, cells)).collect();
    columns.push(Column::figures("total", totals));
    columns
}

fn part_column(part: CallPart, cells: &[Option<&Decomposition>]) -> Column {
    let cell = |one: &Option<&Decomposition>| {
        one.and_then(|one| one.parts.iter().find(|estimate| estimate.part == part))
            .map_or_else(Default::default, format_estimate)
    };
    Column::pairs(heading(part), cells.iter().map(cell).collect())
}

fn heading(part: CallPart) -> &'static str {
    match part {
        CallPart::Call => "bare\ncall",
        CallPart::Clear => "clear",
        CallPart::LookUpAndCopy => "look-up,\ncopy",
        CallPart::MissHandling => "miss\nhandling",
        CallPart::KernelPath => "kernel",
        CallPart::DeviceWait => "device\nwait",
    }
}

fn format_estimate(estimate: &Estimate) -> (String, String) {
    let mark = if estimate.told_apart {
        ""
    } else {
        NOT_DISTINGUISHED_MARK
    };
    let (us, noise) = figures::microseconds(estimate.ns, estimate.half_width_ns);
    (us, noise + mark)
}

/// Describes the parts of the call time for these layers, and the marks.
fn meanings(layers: &[Layer], found: &[Decomposition]) -> Vec<String> {
    let has = |layer: Layer| layers.contains(&layer);
    let parts = || found.iter().flat_map(|one| &one.parts);
    let has_part = |part: CallPart| parts().any(|estimate| estimate.part == part);
    let lines = [
        (
            true,
            "bare call: a read of /dev/null, with its timing; every total includes it",
        ),
        (
            has(Layer::Zero),
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
            parts().any(|part| !part.told_apart),
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
