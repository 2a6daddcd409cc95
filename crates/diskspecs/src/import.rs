//! Import of DiskSim parameter files as typed drives.

use diskperf_diagnostics::{Errors, Problem, SourceSpan, Text};
use std::sync::Arc;

use crate::files::Files;
use crate::firmware::{self, Firmware};
use crate::keys::{self, Findings, KeyPlaces, WithoutEffect};
use crate::model::{self, Model};
use crate::run::{self, Attached, BlockKind, DataPath};
use crate::text::{self, Block, Document};

/// Drive as specified by its files.
#[derive(Clone, Debug, PartialEq)]
pub struct Drive {
    /// Name of the drive in the file.
    pub name: String,
    /// Geometry and mechanics of the drive.
    pub model: Model,
    /// Electronics of the drive; `None` for a `.model` file alone.
    pub firmware: Option<Firmware>,
    /// Bus and controller between drive and host; `None` without a topology.
    pub path: Option<DataPath>,
}

impl Drive {
    /// Returns the transfer time of a sector from the drive to the host in milliseconds: the
    /// slowest of drive, bus and controller.
    pub fn read_sector_ms(&self) -> f64 {
        self.sector_ms(|path| path.bus.read_block_ms)
    }

    /// Returns the transfer time of a sector from the host to the drive in milliseconds: the
    /// slowest of drive, bus and controller.
    pub fn write_sector_ms(&self) -> f64 {
        self.sector_ms(|path| path.bus.write_block_ms)
    }

    fn sector_ms(&self, bus_ms: impl Fn(&DataPath) -> f64) -> f64 {
        let drive = self
            .firmware
            .map_or(0.0, |firmware| firmware.sector_transfer_ms);
        let path = self.path.unwrap_or_default();
        let controller = path.controller.sector_transfer_ms * path.controller.delay_scale;
        drive.max(bus_ms(&path)).max(controller)
    }
}

/// Result of the import of a file.
#[derive(Clone, Debug)]
pub struct Import {
    /// Imported drives: those of the topology if there is one, otherwise all drives described.
    pub drives: Vec<Drive>,
    /// For each drive, the places of the values that define it.
    pub places: Vec<KeyPlaces>,
    /// Warnings about values with an unexpected effect.
    pub warnings: Vec<Problem>,
    /// Keys of the file that have no effect.
    pub without_effect: Vec<WithoutEffect>,
}

/// Reads a `.parv`, `.diskspecs` or `.model` file with all files that it includes or refers to.
///
/// # Errors
///
/// Syntax errors; unknown, missing or meaningless keys; contradictory geometry; unreadable files.
/// Each error has its place.
pub fn import(name: &str, files: &Files) -> Result<Import, Errors> {
    let opened = files.open(name, "", text::SOURCE_BYTES_MAX);
    let (path, content) = opened.map_err(|why| {
        let text = Arc::new(Text::new(name.to_owned(), String::new()));
        let title = format!("cannot read `{}`", text::excerpt(name));
        Problem::error(title).at(&SourceSpan::start(&text), why)
    })?;
    let document = text::parse(files, &path, content)?;
    let findings = Findings::default();
    let found = parse_drives(&document, files, &findings);
    let (drives, places): (Vec<Drive>, Vec<KeyPlaces>) = found.into_iter().unzip();
    for place in &document.commented {
        let key = text::excerpt(place.as_str());
        findings.without_effect(key, place, "it is in a comment");
    }
    let (mut warnings, without_effect) = findings.finish()?;
    warnings.extend(document.warnings);
    if drives.is_empty() {
        let title = format!("`{}` does not describe a drive", text::excerpt(name));
        let help = "a drive needs a block `disksim_disk` or `dm_disk`";
        return Err(Problem::error(title).help(help).into());
    }
    Ok(Import {
        drives,
        places,
        warnings,
        without_effect,
    })
}

fn parse_drives(
    document: &Document,
    files: &Files,
    findings: &Findings,
) -> Vec<(Drive, KeyPlaces)> {
    let attached = run::read(document, findings);
    let described: Vec<(&Block, Option<DataPath>)> = match document.topology.is_empty() {
        false => {
            report_unattached(document, &attached, findings);
            let attached = attached.iter();
            attached
                .map(|drive| (drive.block, Some(drive.path)))
                .collect()
        }
        true => {
            let blocks = document.blocks.iter();
            let drives = blocks.filter(|block| is_drive(block));
            drives.map(|block| (block, None)).collect()
        }
    };
    // Those of the topology are no drive's.
    findings.take_used_keys();
    let drives = described.into_iter();
    drives
        .filter_map(|(block, path)| {
            let drive = parse_drive(block, path, files, findings);
            let places = findings.take_used_keys();
            Some((drive?, places))
        })
        .collect()
}

/// Lists the drives that are missing from the topology as without effect.
fn report_unattached(document: &Document, attached: &[Attached<'_>], findings: &Findings) {
    for block in &document.blocks {
        let is_attached = attached.iter().any(|one| std::ptr::eq(one.block, block));
        if is_drive(block) && !is_attached {
            let why = "this drive is not in the topology";
            findings.without_effect(block.title(), &block.kind, why);
        }
    }
}

fn is_drive(block: &Block) -> bool {
    matches!(run::classify(block), BlockKind::Drive | BlockKind::Model)
}

fn parse_drive(
    block: &Block,
    path: Option<DataPath>,
    files: &Files,
    findings: &Findings,
) -> Option<Drive> {
    let name = block
        .name
        .as_ref()
        .map_or("", |name| name.as_str())
        .to_owned();
    let (firmware, model) = match run::classify(block) {
        BlockKind::Model => (None, Some(block)),
        _ => {
            let (firmware, model) = firmware::read(block, findings);
            (Some(firmware), model)
        }
    };
    let Some(model) = model else {
        let problem = Problem::error(format!("{} has no model", block.title()));
        let problem = problem.at(&block.kind, "a drive needs a model");
        findings
            .error(problem.help("write `Model = source FILE.model` or `Model = dm_disk { .. }`"));
        return None;
    };
    let model = model::read(model, files, findings)?;
    keys::check_limits(block, model.layout.blocks(), findings);
    Some(Drive {
        name,
        model,
        firmware,
        path,
    })
}
