//! Reader of the layout `dm_layout_g4`: nested patterns as lists of numbers.

use diskperf_diagnostics::{Problem, SourceSpan};

use crate::keys::{ImportFindings, KeyReader, to_number, to_unsigned};
use crate::layout::{IndexEntry, IndexedContent, IndexedLayout, RemappedBlocks, TrackRange};
use crate::text::{ParameterBlock, ParameterValue, ValueKind};

pub(super) fn parse_indexed_layout(
    block: &ParameterBlock,
    findings: &ImportFindings,
) -> Option<IndexedLayout> {
    let keys = KeyReader::new(block, findings);
    let tracks = keys.read_list("TP").map(|(_, values)| parse_tracks(values));
    let indices = keys
        .read_list("IDX")
        .map(|(_, values)| parse_indices(values));
    let list = |key: &str| {
        keys.read_optional_list(key)
            .map_or(&[][..], |(_, values)| values)
    };
    let slips = parse_groups::<2>(
        list("Slips"),
        "pairs: a block, and the number of blocks to skip",
    );
    let what = "sixes: block, blocks, cylinder, head, sector, sectors on the track";
    let remaps = parse_groups::<6>(list("Remaps"), what);
    let read = || {
        let (tracks, slips, remaps) = (tracks?, slips, remaps);
        let (indices, places) = match indices? {
            Ok(read) => read,
            Err(problem) => return Some(Err(problem)),
        };
        let layout = tracks.and_then(|tracks| {
            let slips = slips?.iter().map(|&[at, count]| (at, count)).collect();
            let remaps: Option<Vec<RemappedBlocks>> = remaps?.iter().map(parse_remap).collect();
            let large =
                || Problem::error("a number in a remap is too large").at(&block.kind, "in here");
            let layout = IndexedLayout::new(tracks, indices, slips, remaps.ok_or_else(large)?);
            layout.map_err(|(at, why)| {
                let place = at.map(|(index, entry)| &places[index][entry]);
                Problem::error("the layout is invalid").at(place.unwrap_or(&block.kind), why)
            })
        });
        Some(layout)
    };
    match read()? {
        Ok(layout) => Some(layout),
        Err(problem) => {
            findings.report_error(problem);
            None
        }
    }
}

fn parse_tracks(values: &[ParameterValue]) -> Result<Vec<TrackRange>, Problem> {
    let triples = parse_groups::<3>(
        values,
        "triples: first sector, last sector, sectors on the track",
    )?;
    let parts = triples.into_iter().map(|numbers| {
        let [low, high, sectors_per_track] = numbers.map(u32::try_from);
        Some(TrackRange {
            first_cylinder: low.ok()?,
            last_cylinder: high.ok()?,
            sectors_per_track: sectors_per_track.ok()?,
        })
    });
    let parts: Option<Vec<TrackRange>> = parts.collect();
    parts.ok_or_else(|| {
        let problem = Problem::error("a track of `TP` is too long");
        match values.first() {
            Some(first) => problem.at(&first.span, "in this list"),
            None => problem,
        }
    })
}

fn parse_remap(numbers: &[u64; 6]) -> Option<RemappedBlocks> {
    let small = |at: usize| u32::try_from(numbers[at]).ok();
    Some(RemappedBlocks {
        first_block: numbers[0],
        block_count: numbers[1],
        cylinder: small(2)?,
        head: small(3)?,
        sector: small(4)?,
        sectors_per_track: small(5)?,
    })
}

/// Flattens lists that may or may not be grouped by inner lists.
fn flatten_lists(values: &[ParameterValue]) -> Vec<&ParameterValue> {
    let mut open: Vec<&ParameterValue> = values.iter().rev().collect();
    let mut flat = Vec::new();
    while let Some(value) = open.pop() {
        match &value.kind {
            ValueKind::List(inner) => open.extend(inner.iter().rev()),
            _ => flat.push(value),
        }
    }
    flat
}

fn parse_groups<const N: usize>(
    values: &[ParameterValue],
    what: &str,
) -> Result<Vec<[u64; N]>, Problem> {
    let flat = flatten_lists(values);
    let mut groups = Vec::new();
    for group in flat.chunks(N) {
        let wrong = |value: &ParameterValue| {
            let title = format!("{} is not valid here", value.describe());
            Problem::error(title).at(&value.span, format!("expected {what}"))
        };
        let mut numbers = [0; N];
        if group.len() < N {
            return Err(wrong(group[0]));
        }
        for (number, value) in numbers.iter_mut().zip(group) {
            *number = to_unsigned(value).ok_or_else(|| wrong(value))?;
        }
        groups.push(numbers);
    }
    Ok(groups)
}

type SpannedIndices = (Vec<Vec<IndexEntry>>, Vec<Vec<SourceSpan>>);

fn parse_indices(values: &[ParameterValue]) -> Result<SpannedIndices, Problem> {
    let (mut indices, mut places) = (Vec::new(), Vec::new());
    for value in values {
        let ValueKind::List(values) = &value.kind else {
            let title = format!("{} is not an index", value.describe());
            return Err(Problem::error(title).at(&value.span, "expected a list of entries"));
        };
        let mut fields = IndexFieldReader {
            values: flatten_lists(values).into_iter(),
            last_span: &value.span,
        };
        // A list without entries is refused at the list itself.
        let (mut entries, mut own) = (Vec::new(), Vec::new());
        while let Some(first) = fields.values.as_slice().first() {
            own.push(first.span.clone());
            entries.push(fields.next_entry()?);
        }
        if own.is_empty() {
            own.push(value.span.clone());
        }
        indices.push(entries);
        places.push(own);
    }
    Ok((indices, places))
}

struct IndexFieldReader<'v> {
    values: std::vec::IntoIter<&'v ParameterValue>,
    last_span: &'v SourceSpan,
}

impl<'v> IndexFieldReader<'v> {
    fn next_value(&mut self, what: &str) -> Result<&'v ParameterValue, Problem> {
        let value = self.values.next().ok_or_else(|| {
            let problem = Problem::error("an index entry is incomplete");
            problem.at(self.last_span, format!("expected {what} after this"))
        })?;
        self.last_span = &value.span;
        Ok(value)
    }

    fn next_number(&mut self, what: &str) -> Result<f64, Problem> {
        let value = self.next_value(what)?;
        let number = to_number(value).filter(|number| number.abs() <= 9e15);
        number.ok_or_else(|| {
            let title = format!("{} is not valid here", value.describe());
            Problem::error(title).at(&value.span, format!("expected {what}"))
        })
    }

    fn next_integer(&mut self, what: &str) -> Result<i64, Problem> {
        let number = self.next_number(what)?;
        match number.fract() == 0.0 {
            true => Ok(number as i64),
            false => Err(Problem::error(format!("{number} is not whole"))
                .at(self.last_span, format!("expected {what}"))),
        }
    }

    fn next_count(&mut self, what: &str) -> Result<u64, Problem> {
        let number = self.next_integer(what)?;
        u64::try_from(number).map_err(|_| {
            let title = format!("{number} is below 0");
            Problem::error(title).at(self.last_span, format!("expected {what}"))
        })
    }

    fn next_entry(&mut self) -> Result<IndexEntry, Problem> {
        let first_block = self.next_count("the first block")?;
        let cylinder = self.next_integer("the first cylinder")?;
        let offset = self.next_number("the offset in revolutions")?;
        let blocks = self.next_count("the blocks of a repetition")?;
        let cylinder_step = self.next_integer("the cylinders of a repetition")?;
        let angle_step = self.next_number("the angle of a repetition, in revolutions")?;
        let run_length_blocks = self.next_count("the blocks of the run")?;
        // A run of which these are negative goes back towards cylinder 0 (serpentine).
        let run_cylinders = self.next_integer("the cylinders of the run")?;
        let cylinder_step = match run_cylinders < 0 {
            true => -cylinder_step.abs(),
            false => cylinder_step,
        };
        let kind = self.next_value("`TRACK` or `IDX`")?;
        let child = self.next_count("the number of a part")? as usize;
        let part = match kind.span.as_str() {
            "TRACK" => {
                let head = self.next_count("the head of a track")?;
                let head = u32::try_from(head).map_err(|_| {
                    Problem::error(format!("there is no head {head}")).at(self.last_span, "here")
                })?;
                IndexedContent::Track { part: child, head }
            }
            "IDX" => IndexedContent::NestedIndex(child),
            _ => {
                let title = format!("{} is no part", kind.describe());
                let label = "expected `TRACK` or `IDX`";
                return Err(Problem::error(title).at(&kind.span, label));
            }
        };
        Ok(IndexEntry {
            first_block,
            cylinder,
            start_angle: offset,
            block_count: blocks,
            cylinder_step,
            angle_step,
            run_length_blocks,
            content: part,
        })
    }
}
