//! Reader of `.parv` files: the bus and the controller between drive and host.

use diskperf_diagnostics::{Problem, SourceSpan};

use crate::keys::{Findings, Keys, note_block_without_effect};
use crate::table::{
    CONSTANT_TIMES, DISKSIM_OUTPUT, LOAD_FROM_TRACE, ONE_REQUEST_AT_A_TIME, SEPARATE_CACHE,
    SINGLE_DRIVE,
};
use crate::text::{Block, Component, Document, Value, ValueKind, excerpt};

/// Bus of a drive as in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bus {
    /// Arbitration time in milliseconds (`Arbitration time`).
    pub arbitration_ms: f64,
    /// Transfer time of one read sector in milliseconds (`Read block transfer time`).
    pub read_block_ms: f64,
    /// Transfer time of one written sector in milliseconds (`Write block transfer time`).
    pub write_block_ms: f64,
}

/// Controller between the drive's bus and the host.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Controller {
    /// Factor for all delays (`Scale for delays`).
    pub delay_scale: f64,
    /// Transfer time of one sector in milliseconds (`Bulk sector transfer time`).
    pub sector_transfer_ms: f64,
}

/// Bus and controller between a drive and the host.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DataPath {
    /// Innermost bus, to which the drive is attached.
    pub bus: Bus,
    /// Innermost controller, to which the drive's bus is attached.
    pub controller: Controller,
}

/// Drive of the topology: the block that describes it, and its path to the host.
pub(crate) struct Attached<'d> {
    pub(crate) block: &'d Block,
    pub(crate) path: DataPath,
}

/// Treatment of a type of block in the file.
pub(crate) enum BlockKind {
    Drive,
    Model,
    Bus,
    Controller,
    /// Block for DiskSim's output or workload, which has no effect here; the text is the reason.
    WithoutEffect(&'static str),
    /// Block of DiskSim's SSD extension.
    Flash,
    Unknown,
}

pub(crate) fn classify(block: &Block) -> BlockKind {
    match block.kind.as_str() {
        "disksim_disk" => BlockKind::Drive,
        "dm_disk" => BlockKind::Model,
        "disksim_bus" => BlockKind::Bus,
        "disksim_ctlr" => BlockKind::Controller,
        "disksim_iodriver" | "disksim_ioqueue" => BlockKind::WithoutEffect(ONE_REQUEST_AT_A_TIME),
        "disksim_global" | "disksim_stats" => BlockKind::WithoutEffect(DISKSIM_OUTPUT),
        "disksim_synthio" | "disksim_synthgen" | "disksim_pf" | "disksim_iosim" => {
            BlockKind::WithoutEffect(LOAD_FROM_TRACE)
        }
        "disksim_logorg" | "disksim_syncset" => BlockKind::WithoutEffect(SINGLE_DRIVE),
        "disksim_simpledisk" => BlockKind::WithoutEffect(CONSTANT_TIMES),
        "disksim_cachemem" | "disksim_cachedev" => BlockKind::WithoutEffect(SEPARATE_CACHE),
        kind if kind.starts_with("ssdmodel") => BlockKind::Flash,
        _ => BlockKind::Unknown,
    }
}

/// Reads the blocks that are not drives, and finds the drives of the topology.
pub(crate) fn read<'d>(document: &'d Document, findings: &Findings) -> Vec<Attached<'d>> {
    for block in &document.blocks {
        match classify(block) {
            BlockKind::Drive | BlockKind::Model => {}
            BlockKind::Bus => drop(parse_bus(block, findings)),
            BlockKind::Controller => drop(parse_controller(block, findings)),
            BlockKind::WithoutEffect(why) => note_block_without_effect(block, why, findings),
            BlockKind::Flash => {
                let kind = excerpt(block.kind.as_str());
                let title =
                    format!("`{kind}` belongs to DiskSim's SSD extension, and is not a disk");
                let problem = Problem::error(title).at(&block.kind, "a flash drive");
                findings.error(problem.help(
                    "describe the drive in a catalogue file: `diskperf show bare-nvme-tlc` has the keys (dies, planes, pages, times), and --set changes them for one run",
                ));
            }
            BlockKind::Unknown => {
                let kind = excerpt(block.kind.as_str());
                let problem = Problem::error(format!("`{kind}` is not known"));
                findings.error(problem.at(&block.kind, "diskperf cannot import this drive"));
            }
        }
    }
    let mut attached = Vec::new();
    for component in &document.topology {
        let path = DataPath::default();
        collect_drives(component, document, path, findings, &mut attached);
    }
    attached
}

fn collect_drives<'d>(
    component: &Component,
    document: &'d Document,
    mut path: DataPath,
    findings: &Findings,
    attached: &mut Vec<Attached<'d>>,
) {
    let Some(block) = find_block(&component.name, document) else {
        let name = excerpt(component.name.as_str());
        let problem = Problem::error(format!("`{name}` has no description"));
        let problem = problem.at(&component.name, "a component of the topology");
        let help = format!("write `instantiate [ {name} ] as NAME` with the name of its block");
        return findings.error(problem.help(help));
    };
    let (says, is) = (component.kind.as_str(), block.kind.as_str());
    if says != is {
        let title = format!(
            "`{}` has a different type",
            excerpt(component.name.as_str())
        );
        let label = format!("its block is a `{}`", excerpt(is));
        return findings.error(Problem::error(title).at(&component.kind, label));
    }
    // Their keys were checked where they stand.
    let silent = Findings::default();
    match classify(block) {
        BlockKind::Bus => path.bus = parse_bus(block, &silent),
        BlockKind::Controller => path.controller = parse_controller(block, &silent),
        BlockKind::Drive => {
            let is_known = |known: &Attached<'_>| std::ptr::eq(known.block, block);
            if !attached.iter().any(is_known) {
                attached.push(Attached { block, path });
            }
        }
        _ => {}
    }
    for part in &component.parts {
        collect_drives(part, document, path, findings, attached);
    }
}

fn find_block<'d>(name: &SourceSpan, document: &'d Document) -> Option<&'d Block> {
    let has_name = |value: &Value| match &value.kind {
        ValueKind::Range(last) => is_between(name.as_str(), value.place.as_str(), last.as_str()),
        _ => value.place.as_str() == name.as_str(),
    };
    let instances = document.instances.iter();
    let mut named = instances.filter(|instances| instances.names.iter().any(has_name));
    let wanted = named
        .next()
        .map_or(name, |instances| &instances.of)
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
fn is_between(name: &str, first: &str, last: &str) -> bool {
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

fn parse_bus(block: &Block, findings: &Findings) -> Bus {
    let keys = Keys::new(block, findings);
    Bus {
        arbitration_ms: keys.milliseconds("Arbitration time"),
        read_block_ms: keys.milliseconds("Read block transfer time"),
        write_block_ms: keys.milliseconds("Write block transfer time"),
    }
}

fn parse_controller(block: &Block, findings: &Findings) -> Controller {
    let keys = Keys::new(block, findings);
    if let Some(entry) = keys.find("type")
        && matches!(entry.value.kind, ValueKind::Integer(3))
    {
        let warning = Problem::warning("the controller's cache is not modelled");
        let label = "every request goes to the drive";
        findings.warning(warning.at(&entry.value.place, label));
    }
    for (key, why) in [
        ("Scheduler", ONE_REQUEST_AT_A_TIME),
        ("Cache", SEPARATE_CACHE),
    ] {
        if let Some(entry) = keys.find(key)
            && let ValueKind::Block(block) = &entry.value.kind
        {
            note_block_without_effect(block, why, findings);
        }
    }
    Controller {
        delay_scale: keys.milliseconds("Scale for delays"),
        sector_transfer_ms: keys.milliseconds("Bulk sector transfer time"),
    }
}
