//! Traces for Perfetto, read with its own description of its format.

use crate::support::machine::{Needs, can_run};
use crate::support::{MOUNTS, SmallDisk, User, words};
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const EAGLE: &str = "vax780-sc780-eagle";

fn published() -> MessageDescriptor {
    let description = include_bytes!("../assets/perfetto_trace.descriptor");
    let mut pool = DescriptorPool::new();
    pool.decode_file_descriptor_proto(&description[..])
        .expect("it is published");
    pool.get_message_by_name("perfetto.protos.Trace")
        .expect("it describes traces")
}

fn message(of: &DynamicMessage, field: &str) -> Option<DynamicMessage> {
    let value = of
        .has_field_by_name(field)
        .then(|| of.get_field_by_name(field))??;
    value.as_message().cloned()
}

fn number(of: &DynamicMessage, field: &str) -> Option<u64> {
    let value = of
        .has_field_by_name(field)
        .then(|| of.get_field_by_name(field))??;
    let whole = value.as_u64().or(value.as_u32().map(u64::from));
    whole.or(value.as_enum_number().map(|number| number as u64))
}

fn text(of: &DynamicMessage, field: &str) -> Option<String> {
    let value = of
        .has_field_by_name(field)
        .then(|| of.get_field_by_name(field))??;
    value.as_str().map(str::to_owned)
}

fn numbers(of: &DynamicMessage, field: &str) -> Vec<u64> {
    let value = of.get_field_by_name(field).expect("the field is described");
    let list = value.as_list().expect("it is repeated");
    list.iter()
        .map(|one| one.as_u64().expect("a number"))
        .collect()
}

/// Whether a message, and all within it, has only fields that are described.
fn is_known(of: &DynamicMessage) -> bool {
    of.unknown_fields().next().is_none()
        && of.fields().all(|(_, value)| match value {
            prost_reflect::Value::Message(inner) => is_known(inner),
            prost_reflect::Value::List(list) => {
                list.iter().all(|one| one.as_message().is_none_or(is_known))
            }
            _ => true,
        })
}

/// What is in a trace.
#[derive(Default)]
struct Seen {
    names: BTreeMap<u64, String>,
    /// Open slices of each track, and when something last happened there.
    open: BTreeMap<u64, u64>,
    last: BTreeMap<u64, u64>,
    /// When each arrow starts, and when it ends.
    starts: BTreeMap<u64, u64>,
    ends: Vec<(u64, u64)>,
    slices: usize,
}

impl Seen {
    fn packet(&mut self, packet: &DynamicMessage) {
        assert_eq!(number(packet, "trusted_packet_sequence_id"), Some(1));
        if let Some(track) = message(packet, "track_descriptor") {
            let parent = number(&track, "parent_uuid");
            assert!(parent.is_none_or(|parent| self.names.contains_key(&parent)));
            let uuid = number(&track, "uuid").expect("a track has a number");
            let name = text(&track, "name").expect("a track has a name");
            assert!(
                self.names.insert(uuid, name).is_none(),
                "one track, one number"
            );
            return;
        }
        let event = message(packet, "track_event").expect("an event, or a track");
        let at = number(packet, "timestamp").expect("an event has a time");
        let track = number(&event, "track_uuid").expect("an event has a track");
        assert!(
            self.names.contains_key(&track),
            "a track is described first"
        );
        let before = self.last.insert(track, at);
        assert!(before.is_none_or(|before| before <= at), "time goes on");
        let open = self.open.entry(track).or_default();
        match number(&event, "type") {
            Some(1) => {
                *open += 1;
                self.slices += 1;
                assert!(text(&event, "name").is_some_and(|name| !name.is_empty()));
                let flows = numbers(&event, "flow_ids");
                self.starts.extend(flows.into_iter().map(|flow| (flow, at)));
                let flows = numbers(&event, "terminating_flow_ids");
                self.ends.extend(flows.into_iter().map(|flow| (flow, at)));
            }
            Some(2) => *open = open.checked_sub(1).expect("what ends has begun"),
            other => panic!("an event of type {other:?}"),
        }
    }
}

#[test]
fn a_trace_is_one_of_perfettos() {
    let user = User::new();
    let line = [
        "explain",
        EAGLE,
        "--suite",
        "read_8192",
        "--no-counterfactuals",
    ];
    let written = [&line[..], &["--perfetto", "eagle.pftrace"]].concat();
    user.run(&written).expect(0, &[]);
    let seen = seen(&user.file("eagle.pftrace"));
    assert!(seen.slices > 10_000, "{} slices", seen.slices);
    // Each block of 8 MB is read ahead, but for a few, and used once.
    assert!(seen.ends.len() > 900, "{} arrows", seen.ends.len());
    for (flow, at) in &seen.ends {
        assert!(seen.starts[flow] < *at, "what is used has been asked for");
    }
    let names: BTreeSet<&str> = seen.names.values().map(String::as_str).collect();
    for track in [
        "processor",
        "handlers of interrupts",
        "channel",
        "bus",
        "drive 1, arm",
        "drive 1, platter",
        "drive 1, requests",
    ] {
        assert!(names.contains(track), "{track} of {names:?}");
    }
}

/// Of a flash drive: what kept each die.
#[test]
fn a_flash_drive_has_a_track_for_each_die() {
    let user = User::new();
    let line = "run random --direct --set program.depth=4 --size 256K --on bare-nvme-tlc \
                --set program.area_bytes=16M --set drive.past=random --perfetto dies.pftrace";
    user.run(&words(line)).expect(0, &[]);
    let seen = seen(&user.file("dies.pftrace"));
    let names: BTreeSet<&str> = seen.names.values().map(String::as_str).collect();
    let dies = names
        .iter()
        .filter(|name| name.starts_with("drive 1, channel "));
    assert!(dies.count() > 4, "{names:?}");
    assert!(names.contains("drive 1, requests"), "{names:?}");
}

/// A run with `--perfetto` writes the trace and is stored.
#[test]
fn a_run_writes_the_trace_that_explaining_it_does() {
    let user = User::new();
    let line = format!("run read_8192 --size 1M --on {EAGLE} --perfetto run.pftrace");
    user.run(&words(&line)).expect(0, &[]);
    assert_eq!(user.stored().len(), 1);
    user.run(&words(
        "explain last --no-counterfactuals --perfetto last.pftrace",
    ))
    .expect(0, &[]);
    let (of_run, of_last) = (
        seen(&user.file("run.pftrace")),
        seen(&user.file("last.pftrace")),
    );
    assert!(of_run.slices > 1000, "{} slices", of_run.slices);
    assert_eq!(of_run.last, of_last.last, "the same at the same times");
    user.run(&words(
        "run read_8192 --size 64K --on ./target --perfetto real.pftrace",
    ))
    .expect(2, &["--perfetto", "diskperf explain PATH"]);
    assert!(!user.file("real.pftrace").exists());
}

/// Of real storage: the program, and the requests of its device.
#[test]
fn a_trace_of_a_real_device_is_one_too() {
    let test = "a_trace_of_a_real_device_is_one_too";
    if !can_run(test, &[&[Needs::BlockEvents], MOUNTS].concat()) {
        return;
    }
    let user = User::new();
    let _disk = SmallDisk::mounted_on(&user.target(), user.scratch(), 64);
    user.run(&words(
        "explain ./target --suite read_8192 --size 2M --runs 2 --direct --perfetto real.pftrace",
    ))
    .expect(0, &[]);
    let seen = seen(&user.file("real.pftrace"));
    // 256 requests, each with its waiting and its time at the device.
    assert!(seen.slices >= 3 * 256, "{} slices", seen.slices);
    let names: BTreeSet<&str> = seen.names.values().map(String::as_str).collect();
    for track in ["processor", "program 1", "drive 1, requests"] {
        assert!(names.contains(track), "{track} of {names:?}");
    }
    assert!(!names.contains("drive 1, platter"), "{names:?}");
}

/// What is in a file, which is checked to be one of Perfetto's.
fn seen(path: &Path) -> Seen {
    let bytes = std::fs::read(path).expect("it was written");
    let decoded = DynamicMessage::decode(published(), &bytes[..]).expect("a trace of Perfetto's");
    assert!(is_known(&decoded), "every field is one of Perfetto's");
    let packets = decoded.get_field_by_name("packet").expect("packets");
    let mut seen = Seen::default();
    for packet in packets.as_list().expect("repeated") {
        seen.packet(packet.as_message().expect("a packet"));
    }
    assert!(
        seen.open.values().all(|open| *open == 0),
        "every slice ends"
    );
    seen
}

#[test]
fn a_trace_that_cannot_be_written_leaves_nothing() {
    let user = User::new();
    let before = crate::support::entries(&user.home());
    user.run(&[
        "explain",
        EAGLE,
        "--suite",
        "read_8192",
        "--perfetto",
        "nowhere/trace",
    ])
    .expect(2, &["nowhere/trace", "cannot be written"]);
    assert_eq!(crate::support::entries(&user.home()), before);
}
