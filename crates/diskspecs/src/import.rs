//! Import of DiskSim parameter files as typed drives.

use diskperf_diagnostics::{Errors, Problem, SourceSpan, Text};
use std::sync::Arc;

use crate::files::SpecificationFiles;
use crate::firmware::{self, Firmware};
use crate::keys::{self, IgnoredKey, ImportFindings, KeySpans};
use crate::model::{self, DriveModel};
use crate::run::{self, AttachedDrive, BlockKind, DataPath};
use crate::text::{self, ParameterBlock, ParameterDocument};

/// Drive as specified by its files.
#[derive(Clone, Debug, PartialEq)]
pub struct SpecifiedDrive {
    /// Name of the drive in the file.
    pub name: String,
    /// Geometry and mechanics of the drive.
    pub model: DriveModel,
    /// Electronics of the drive; `None` for a `.model` file alone.
    pub firmware: Option<Firmware>,
    /// Bus and controller between drive and host; `None` without a topology.
    pub data_path: Option<DataPath>,
}

impl SpecifiedDrive {
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
        let path = self.data_path.unwrap_or_default();
        let controller = path.controller.sector_transfer_ms * path.controller.delay_scale;
        drive.max(bus_ms(&path)).max(controller)
    }
}

/// Result of the import of a file.
#[derive(Clone, Debug)]
pub struct ImportedSpecification {
    /// Imported drives: those of the topology if there is one, otherwise all drives described.
    pub drives: Vec<SpecifiedDrive>,
    /// For each drive, the places of the values that define it.
    pub key_spans: Vec<KeySpans>,
    /// Warnings about values with an unexpected effect.
    pub warnings: Vec<Problem>,
    /// Keys of the file that have no effect.
    pub ignored_keys: Vec<IgnoredKey>,
}

/// Reads a `.parv`, `.diskspecs` or `.model` file with all files that it includes or refers to.
///
/// # Errors
///
/// Syntax errors; unknown, missing or meaningless keys; contradictory geometry; unreadable files.
/// Each error has its place.
pub fn import(name: &str, files: &SpecificationFiles) -> Result<ImportedSpecification, Errors> {
    let opened = files.read_file(name, "", text::SOURCE_BYTES_MAX);
    let (path, content) = opened.map_err(|why| {
        let text = Arc::new(Text::new(name.to_owned(), String::new()));
        let title = format!("cannot read `{}`", text::shorten_text(name));
        Problem::error(title).at(&SourceSpan::start(&text), why)
    })?;
    let document = text::parse(files, &path, content)?;
    let findings = ImportFindings::default();
    let found = parse_drives(&document, files, &findings);
    let (drives, places): (Vec<SpecifiedDrive>, Vec<KeySpans>) = found.into_iter().unzip();
    for place in &document.commented_keys {
        let key = text::shorten_text(place.as_str());
        findings.report_ignored_key(key, place, "it is in a comment");
    }
    let (mut warnings, without_effect) = findings.finish()?;
    warnings.extend(document.warnings);
    if drives.is_empty() {
        let title = format!("`{}` does not describe a drive", text::shorten_text(name));
        let help = "a drive needs a block `disksim_disk` or `dm_disk`";
        return Err(Problem::error(title).help(help).into());
    }
    Ok(ImportedSpecification {
        drives,
        key_spans: places,
        warnings,
        ignored_keys: without_effect,
    })
}

fn parse_drives(
    document: &ParameterDocument,
    files: &SpecificationFiles,
    findings: &ImportFindings,
) -> Vec<(SpecifiedDrive, KeySpans)> {
    let attached = run::find_attached_drives(document, findings);
    let described: Vec<(&ParameterBlock, Option<DataPath>)> =
        match document.topology_roots.is_empty() {
            false => {
                report_unattached(document, &attached, findings);
                let attached = attached.iter();
                attached
                    .map(|drive| (drive.block, Some(drive.data_path)))
                    .collect()
            }
            true => {
                let blocks = document.blocks.iter();
                let drives = blocks.filter(|block| is_drive_block(block));
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
fn report_unattached(
    document: &ParameterDocument,
    attached: &[AttachedDrive<'_>],
    findings: &ImportFindings,
) {
    for block in &document.blocks {
        let is_attached = attached.iter().any(|one| std::ptr::eq(one.block, block));
        if is_drive_block(block) && !is_attached {
            let why = "this drive is not in the topology";
            findings.report_ignored_key(block.title(), &block.kind, why);
        }
    }
}

fn is_drive_block(block: &ParameterBlock) -> bool {
    matches!(run::classify(block), BlockKind::Drive | BlockKind::Model)
}

fn parse_drive(
    block: &ParameterBlock,
    path: Option<DataPath>,
    files: &SpecificationFiles,
    findings: &ImportFindings,
) -> Option<SpecifiedDrive> {
    let name = block
        .name
        .as_ref()
        .map_or("", |name| name.as_str())
        .to_owned();
    let (firmware, model) = match run::classify(block) {
        BlockKind::Model => (None, Some(block)),
        _ => {
            let (firmware, model) = firmware::parse_firmware(block, findings);
            (Some(firmware), model)
        }
    };
    let Some(model) = model else {
        let problem = Problem::error(format!("{} has no model", block.title()));
        let problem = problem.at(&block.kind, "a drive needs a model");
        findings.report_error(
            problem.help("write `Model = source FILE.model` or `Model = dm_disk { .. }`"),
        );
        return None;
    };
    let model = model::parse_model(model, files, findings)?;
    keys::check_sector_limits(block, model.layout.block_count(), findings);
    Some(SpecifiedDrive {
        name,
        model,
        firmware,
        data_path: path,
    })
}
