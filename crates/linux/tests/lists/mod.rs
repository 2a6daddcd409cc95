//! Lists of requests that two kernels made of sixty sequences, and the comparison of a stack's
//! lists with them. `tests/data/README.md` describes the files.

use std::collections::BTreeMap;

use diskperf_linux::block::{Bio, DeviceLimits, DeviceQueue};
use diskperf_linux::effect::Effects;
use diskperf_linux::operation::FileOperation;
use diskperf_linux::request_list::{CoreEntry, core_form, describe_bios, first_difference};
use diskperf_linux::sequence::{Sequence, SequenceError, read_sequences};
use diskperf_linux::stack::{FileSystemOptions, Stack, StackError};
use diskperf_linux::version::{Host, KernelVersion};
use serde::Deserialize;

/// Sequences from this one on are the hold-out, which nobody develops on.
pub(crate) const HOLD_OUT_FIRST: &str = "d045";

/// Lists of one sequence, as a kernel made them.
#[derive(Debug, Deserialize)]
pub(crate) struct ObservedLists {
    /// Bios of each operation.
    pub(crate) bio: Vec<Vec<String>>,
    /// Requests of each operation in the order of issue (6.18 only).
    #[serde(default)]
    pub(crate) req: Vec<Vec<String>>,
    /// Bios of closing and unmounting.
    pub(crate) umount: Vec<String>,
    /// Bios of the second run, by operation, where it differed.
    #[serde(default)]
    pub(crate) second: BTreeMap<String, Vec<String>>,
}

/// Machine and device on which the lists of a kernel version were recorded.
pub(crate) fn recorded_on(version: KernelVersion) -> (Host, DeviceLimits) {
    let limits = DeviceLimits::loop_device(512 << 20);
    match version {
        KernelVersion::V6_18 => (
            Host {
                version,
                ticks_per_second: 250,
                processors: 2,
            },
            // A loop device over a rotational one: twice max_sectors_kb.
            DeviceLimits {
                read_ahead_kib: 2560,
                ..limits
            },
        ),
        _ => (
            Host {
                version,
                ticks_per_second: 100,
                processors: 1,
            },
            DeviceLimits {
                has_fua: true,
                is_rotational: true,
                completes_at_submit: true,
                ..limits
            },
        ),
    }
}

/// Sequences of the hold-out, or those before it, and the lists of one version. A sequence whose
/// file system has options that are not modelled is an error; those of the other one are left out.
pub(crate) fn read_lists(
    file_system: &str,
    version: KernelVersion,
    is_hold_out: bool,
) -> (
    Vec<Result<Sequence, SequenceError>>,
    BTreeMap<String, ObservedLists>,
) {
    let sequences: Vec<serde_json::Value> =
        serde_json::from_str(include_str!("../data/sequences.json")).expect("it is JSON");
    let other = if file_system == "ext4" { "xfs" } else { "ext4" };
    let sequences = sequences
        .into_iter()
        .filter(|sequence| (sequence["id"].as_str() >= Some(HOLD_OUT_FIRST)) == is_hold_out)
        .map(|mut sequence| {
            sequence[other] = serde_json::json!({"mkopts": [], "mntopts": ""});
            let text = serde_json::Value::Array(vec![sequence]).to_string();
            Ok(read_sequences(&text)?.remove(0))
        })
        .collect();
    let lists = match version {
        KernelVersion::V6_18 => include_str!("../data/lists-6.18.json"),
        _ => include_str!("../data/lists-6.1.json"),
    };
    (
        sequences,
        serde_json::from_str(lists).expect("lists are readable"),
    )
}

/// Lists that a stack made of a sequence.
#[derive(Debug)]
pub(crate) struct ModelledLists {
    /// Bios of each operation.
    pub(crate) operations: Vec<Vec<String>>,
    /// Requests of each operation that carry data or flush.
    pub(crate) requests: Vec<Vec<String>>,
    /// Bios of closing and unmounting.
    pub(crate) umount: Vec<String>,
}

/// Runs a sequence as the recordings were made.
pub(crate) fn run_sequence(
    version: KernelVersion,
    options: FileSystemOptions,
    sequence: &Sequence,
) -> Result<ModelledLists, StackError> {
    let (host, limits) = recorded_on(version);
    let mut stack = Stack::new(host, limits, options)?;
    for operation in &sequence.setup {
        stack.run(operation)?;
    }
    stack.run(&FileOperation::SyncFileSystem)?;
    stack.sleep(100_000_000)?;
    let gap_ns = if version == KernelVersion::V6_18 {
        20_000_000
    } else {
        30_000_000
    };
    let mut operations = Vec::new();
    let mut requests = Vec::new();
    for operation in &sequence.operations {
        let gap = stack.sleep(gap_ns)?;
        if let (Some(last), false) = (operations.last_mut(), gap.steps().is_empty()) {
            Vec::extend(last, describe_effects(&stack, &gap));
        }
        let effects = stack.run(operation)?;
        operations.push(describe_effects(&stack, &effects));
        requests.push(describe_requests(&stack, &effects));
    }
    let closing = stack.close_all()?;
    let mut umount = describe_effects(&stack, &closing);
    if version == KernelVersion::V6_18 {
        let gap = stack.sleep(gap_ns)?;
        umount.extend(describe_effects(&stack, &gap));
    }
    let effects = stack.unmount()?;
    umount.extend(describe_effects(&stack, &effects));
    Ok(ModelledLists {
        operations,
        requests,
        umount,
    })
}

/// Describes bios as the recorders did. That of 6.1 (dm-log-writes) saw each flush before a bio as
/// an entry of its own, so pieces on its sides are not joined.
pub(crate) fn describe_effects(stack: &Stack, effects: &Effects) -> Vec<String> {
    let bios: Vec<&Bio> = effects.bios().collect();
    let joins_flushes = !stack.limits().has_fua;
    let parts = bios.chunk_by(|_, next| joins_flushes || !next.flags.preflush);
    parts
        .flat_map(|part| describe_bios(part.iter().copied(), |file| stack.label(file)))
        .collect()
}

/// Cuts a list behind its first commit block: what follows is a race on ext4.
pub(crate) fn cut_at_commit(list: &[CoreEntry]) -> &[CoreEntry] {
    let is_commit = |entry: &CoreEntry| matches!(entry, CoreEntry::Journal { fua: true, .. });
    let end = list
        .iter()
        .position(is_commit)
        .map_or(list.len(), |index| index + 1);
    &list[..end]
}

/// Returns the first difference of a sequence: the operation, and what differs there.
pub(crate) fn first_difference_of(
    sequence: &Sequence,
    observed: &ObservedLists,
    modelled: &ModelledLists,
    has_ext4_races: bool,
) -> Option<String> {
    for (index, operation) in sequence.operations.iter().enumerate() {
        if has_ext4_races && *operation == FileOperation::Trim {
            continue;
        }
        let is_cut = has_ext4_races && *operation == FileOperation::SyncFileSystem;
        let second = observed.second.get(&index.to_string());
        let lists = [Some(&observed.bio[index]), second];
        if let Some(difference) = differs(&lists, &modelled.operations[index], is_cut) {
            return Some(format!("operation {index}, {operation:?}: {difference}"));
        }
    }
    None
}

/// Returns the first difference of the lists of unmounting.
pub(crate) fn unmount_difference(
    observed: &ObservedLists,
    modelled: &ModelledLists,
    has_ext4_races: bool,
) -> Option<String> {
    let lists = [Some(&observed.umount), observed.second.get("umount")];
    differs(&lists, &modelled.umount, has_ext4_races)
}

/// Compares with each of the observed lists. `None` if one is equal, else the difference from the
/// first.
fn differs(observed: &[Option<&Vec<String>>], made: &[String], is_cut: bool) -> Option<String> {
    let cut = |list: Vec<CoreEntry>| {
        if is_cut {
            cut_at_commit(&list).to_vec()
        } else {
            list
        }
    };
    let made_core = cut(core_form(made).expect("the stack's lists are well formed"));
    let mut difference = None;
    for list in observed.iter().flatten() {
        let expected = cut(core_form(list).expect("observed lists are well formed"));
        let found = first_difference(&expected, &made_core)?;
        difference.get_or_insert(format!("{found} (observed {list:?}, made {made:?})"));
    }
    difference
}

/// Describes the requests that the device got, each by itself.
fn describe_requests(stack: &Stack, effects: &Effects) -> Vec<String> {
    let requests = DeviceQueue::requests(stack.limits(), effects.steps());
    let single = |request| describe_bios([request], |file| stack.label(file));
    requests.iter().flat_map(single).collect()
}
