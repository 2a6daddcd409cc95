//! Reader of `.parv` files: the bus and the controller between drive and host.

use diskperf_diagnostics::{Problem, SourceSpan};

use crate::keys::{ImportFindings, KeyReader, report_ignored_block};
use crate::table::{
    CONSTANT_TIMES, DISKSIM_OUTPUT, LOAD_FROM_TRACE, ONE_REQUEST_AT_A_TIME, SEPARATE_CACHE,
    SINGLE_DRIVE,
};
use crate::text::{
    ParameterBlock, ParameterDocument, ParameterValue, TopologyComponent, ValueKind, shorten_text,
};

/// Bus of a drive as in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BusTiming {
    /// Arbitration time in milliseconds (`Arbitration time`).
    pub arbitration_ms: f64,
    /// Transfer time of one read sector in milliseconds (`Read block transfer time`).
    pub read_block_ms: f64,
    /// Transfer time of one written sector in milliseconds (`Write block transfer time`).
    pub write_block_ms: f64,
}

/// Controller between the drive's bus and the host.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ControllerTiming {
    /// Factor for all delays (`Scale for delays`).
    pub delay_scale: f64,
    /// Transfer time of one sector in milliseconds (`Bulk sector transfer time`).
    pub sector_transfer_ms: f64,
}

/// Bus and controller between a drive and the host.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DataPath {
    /// Innermost bus, to which the drive is attached.
    pub bus: BusTiming,
    /// Innermost controller, to which the drive's bus is attached.
    pub controller: ControllerTiming,
}

/// Drive of the topology: the block that describes it, and its path to the host.
pub(crate) struct AttachedDrive<'d> {
    pub(crate) block: &'d ParameterBlock,
    pub(crate) data_path: DataPath,
}

/// Treatment of a type of block in the file.
pub(crate) enum BlockKind {
    Drive,
    Model,
    Bus,
    Controller,
    /// Block for DiskSim's output or workload, which has no effect here; the text is the reason.
    Ignored(&'static str),
    /// Block of DiskSim's SSD extension.
    FlashDrive,
    Unknown,
}

pub(crate) fn classify(block: &ParameterBlock) -> BlockKind {
    match block.kind.as_str() {
        "disksim_disk" => BlockKind::Drive,
        "dm_disk" => BlockKind::Model,
        "disksim_bus" => BlockKind::Bus,
        "disksim_ctlr" => BlockKind::Controller,
        "disksim_iodriver" | "disksim_ioqueue" => BlockKind::Ignored(ONE_REQUEST_AT_A_TIME),
        "disksim_global" | "disksim_stats" => BlockKind::Ignored(DISKSIM_OUTPUT),
        "disksim_synthio" | "disksim_synthgen" | "disksim_pf" | "disksim_iosim" => {
            BlockKind::Ignored(LOAD_FROM_TRACE)
        }
        "disksim_logorg" | "disksim_syncset" => BlockKind::Ignored(SINGLE_DRIVE),
        "disksim_simpledisk" => BlockKind::Ignored(CONSTANT_TIMES),
        "disksim_cachemem" | "disksim_cachedev" => BlockKind::Ignored(SEPARATE_CACHE),
        kind if kind.starts_with("ssdmodel") => BlockKind::FlashDrive,
        _ => BlockKind::Unknown,
    }
}

/// Reads the blocks that are not drives, and finds the drives of the topology.
pub(crate) fn find_attached_drives<'d>(
    document: &'d ParameterDocument,
    findings: &ImportFindings,
) -> Vec<AttachedDrive<'d>> {
    for block in &document.blocks {
        match classify(block) {
            BlockKind::Drive | BlockKind::Model => {}
            BlockKind::Bus => drop(parse_bus(block, findings)),
            BlockKind::Controller => drop(parse_controller(block, findings)),
            BlockKind::Ignored(why) => report_ignored_block(block, why, findings),
            BlockKind::FlashDrive => {
                let kind = shorten_text(block.kind.as_str());
                let title =
                    format!("`{kind}` belongs to DiskSim's SSD extension, and is not a disk");
                let problem = Problem::error(title).at(&block.kind, "a flash drive");
                findings.report_error(problem.help(
                    "describe the drive in a catalogue file: `diskperf show bare-nvme-tlc` has the keys (dies, planes, pages, times), and --set changes them for one run",
                ));
            }
            BlockKind::Unknown => {
                let kind = shorten_text(block.kind.as_str());
                let problem = Problem::error(format!("`{kind}` is not known"));
                findings.report_error(problem.at(&block.kind, "diskperf cannot import this drive"));
            }
        }
    }
    let mut attached = Vec::new();
    for component in &document.topology_roots {
        let path = DataPath::default();
        collect_drives(component, document, path, findings, &mut attached);
    }
    attached
}

fn collect_drives<'d>(
    component: &TopologyComponent,
    document: &'d ParameterDocument,
    mut path: DataPath,
    findings: &ImportFindings,
    attached: &mut Vec<AttachedDrive<'d>>,
) {
    let Some(block) = find_block(&component.name, document) else {
        let name = shorten_text(component.name.as_str());
        let problem = Problem::error(format!("`{name}` has no description"));
        let problem = problem.at(&component.name, "a component of the topology");
        let help = format!("write `instantiate [ {name} ] as NAME` with the name of its block");
        return findings.report_error(problem.help(help));
    };
    let (says, is) = (component.kind.as_str(), block.kind.as_str());
    if says != is {
        let title = format!(
            "`{}` has a different type",
            shorten_text(component.name.as_str())
        );
        let label = format!("its block is a `{}`", shorten_text(is));
        return findings.report_error(Problem::error(title).at(&component.kind, label));
    }
    // Their keys were checked where they stand.
    let silent = ImportFindings::default();
    match classify(block) {
        BlockKind::Bus => path.bus = parse_bus(block, &silent),
        BlockKind::Controller => path.controller = parse_controller(block, &silent),
        BlockKind::Drive => {
            let is_known = |known: &AttachedDrive<'_>| std::ptr::eq(known.block, block);
            if !attached.iter().any(is_known) {
                attached.push(AttachedDrive {
                    block,
                    data_path: path,
                });
            }
        }
        _ => {}
    }
    for part in &component.attached_components {
        collect_drives(part, document, path, findings, attached);
    }
}

fn find_block<'d>(
    name: &SourceSpan,
    document: &'d ParameterDocument,
) -> Option<&'d ParameterBlock> {
    let has_name = |value: &ParameterValue| match &value.kind {
        ValueKind::Range(last) => {
            is_in_name_range(name.as_str(), value.span.as_str(), last.as_str())
        }
        _ => value.span.as_str() == name.as_str(),
    };
    let instances = document.instances.iter();
    let mut named = instances.filter(|instances| instances.names.iter().any(has_name));
    let wanted = named
        .next()
        .map_or(name, |instances| &instances.block_name)
        .as_str();
    let mut blocks = document.blocks.iter();
    blocks.find(|block| {
        block
            .name
            .as_ref()
            .is_some_and(|own| own.as_str() == wanted)
    })
}

/// Tests whether a name such as `disk2` is in the range `disk0 .. disk3`.
fn is_in_name_range(name: &str, first: &str, last: &str) -> bool {
    let split = |name: &str| {
        let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = name[letters.len()..].parse::<u64>().ok();
        number.map(|number| (letters.to_owned(), number))
    };
    match (split(name), split(first), split(last)) {
        (Some(name), Some(first), Some(last)) => {
            name.0 == first.0 && first.0 == last.0 && (first.1..=last.1).contains(&name.1)
        }
        _ => false,
    }
}

fn parse_bus(block: &ParameterBlock, findings: &ImportFindings) -> BusTiming {
    let keys = KeyReader::new(block, findings);
    BusTiming {
        arbitration_ms: keys.read_ms("Arbitration time"),
        read_block_ms: keys.read_ms("Read block transfer time"),
        write_block_ms: keys.read_ms("Write block transfer time"),
    }
}

fn parse_controller(block: &ParameterBlock, findings: &ImportFindings) -> ControllerTiming {
    let keys = KeyReader::new(block, findings);
    if let Some(entry) = keys.find("type")
        && matches!(entry.value.kind, ValueKind::Integer(3))
    {
        let warning = Problem::warning("the controller's cache is not modelled");
        let label = "every request goes to the drive";
        findings.report_warning(warning.at(&entry.value.span, label));
    }
    for (key, why) in [
        ("Scheduler", ONE_REQUEST_AT_A_TIME),
        ("Cache", SEPARATE_CACHE),
    ] {
        if let Some(entry) = keys.find(key)
            && let ValueKind::Block(block) = &entry.value.kind
        {
            report_ignored_block(block, why, findings);
        }
    }
    ControllerTiming {
        delay_scale: keys.read_ms("Scale for delays"),
        sector_transfer_ms: keys.read_ms("Bulk sector transfer time"),
    }
}
