//! What is written is read with Perfetto's own description of its format.

use super::*;
use diskperf_timeline::Span;
use diskperf_timeline::trace::{TracedDrive, TracedUse, TracedWork};
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use std::collections::{BTreeMap, BTreeSet};

fn span(stage: Stage, until: u64) -> Span {
    Span {
        stage,
        until: Nanoseconds(until),
    }
}

fn request(purpose: Purpose, issued: u64, spans: &[(Stage, u64)]) -> TracedRequest {
    TracedRequest {
        drive: 0,
        sector: 100,
        sectors: 16,
        purpose,
        cylinder: 1,
        head: 2,
        slot: 3,
        slots: 32,
        issued: Nanoseconds(issued),
        spans: spans
            .iter()
            .map(|(stage, until)| span(*stage, *until))
            .collect(),
        uses: Vec::new(),
    }
}

/// A read, and one ahead that overlaps it and is used later.
fn small() -> Trace {
    let mut ahead = request(
        Purpose::ReadAhead,
        20,
        &[(Stage::DriverQueue, 40), (Stage::MediaTransfer, 60)],
    );
    ahead.uses.push(TracedUse {
        process: 7,
        at: Nanoseconds(70),
    });
    Trace {
        drives: vec![TracedDrive {
            revolution_ns: 16e6,
            phase: 0.0,
            sector_bytes: 512,
        }],
        requests: vec![
            request(
                Purpose::Read,
                10,
                &[(Stage::Seek, 30), (Stage::MediaTransfer, 40)],
            ),
            ahead,
        ],
        processes: vec![diskperf_timeline::trace::TracedProcess {
            number: 7,
            opened: Nanoseconds(5),
            spans: vec![
                span(Stage::User, 10),
                span(Stage::Seek, 30),
                span(Stage::MediaTransfer, 40),
                span(Stage::Copy, 80),
            ],
        }],
        handlers: vec![TracedWork {
            stage: Stage::Driver,
            from: Nanoseconds(40),
            until: Nanoseconds(45),
        }],
        ..Trace::default()
    }
}

fn published() -> MessageDescriptor {
    let description = include_bytes!("../../tests/assets/perfetto_trace.descriptor");
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

#[test]
fn perfettos_description_reads_what_is_written() {
    let bytes = perfetto("write_8192 on a <modelled> system", &small());
    let decoded = DynamicMessage::decode(published(), &bytes[..]).expect("a trace of Perfetto's");
    assert!(is_known(&decoded), "every field is one of Perfetto's");
    let packets = decoded
        .get_field_by_name("packet")
        .expect("packets")
        .into_owned();
    let mut names = BTreeMap::new();
    // Open slices of each track, and the last time seen there.
    let mut open: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut begun, mut flows, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for packet in packets.as_list().expect("repeated") {
        let packet = packet.as_message().expect("a packet");
        assert_eq!(number(packet, "trusted_packet_sequence_id"), Some(1));
        if let Some(track) = message(packet, "track_descriptor") {
            let parent = number(&track, "parent_uuid");
            assert!(parent.is_none_or(|parent| names.contains_key(&parent)));
            let uuid = number(&track, "uuid").expect("a track has a number");
            names.insert(uuid, text(&track, "name").expect("a track has a name"));
            continue;
        }
        let event = message(packet, "track_event").expect("an event, or a track");
        let at = number(packet, "timestamp").expect("an event has a time");
        let track = number(&event, "track_uuid").expect("an event has a track");
        assert!(names.contains_key(&track), "a track is described first");
        match number(&event, "type").expect("an event is of some type") {
            1 => {
                assert!(last.insert(track, at).is_none_or(|before| before <= at));
                let name = text(&event, "name").expect("a slice has a name");
                begun.push(format!("{}: {name}", names[&track]));
                open.entry(track).or_default().push(name);
                flows.extend(numbers(&event, "flow_ids"));
            }
            2 => {
                assert!(last.insert(track, at).is_none_or(|before| before <= at));
                assert!(open.entry(track).or_default().pop().is_some());
            }
            3 => ends.extend(
                numbers(&event, "terminating_flow_ids")
                    .into_iter()
                    .map(|id| (id, at)),
            ),
            other => panic!("an event of type {other}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "every slice ends");
    assert_eq!(
        (flows, ends),
        (vec![2], vec![(2, 70)]),
        "one arrow, to its use"
    );
    assert_eq!(names[&1], "write_8192 on a <modelled> system");
    let both = names.values().filter(|name| *name == "requests").count();
    assert_eq!(both, 2, "requests that overlap lie side by side");
    let begun: BTreeSet<&str> = begun.iter().map(String::as_str).collect();
    for slice in [
        "program 1: copy",
        "programs: program 1",
        "interrupt handlers: driver",
        "arm: seek",
        "platter: media_transfer",
        "requests: read, 16 sectors at 100",
        "requests: read ahead, 16 sectors at 100",
        "requests: driver_queue",
    ] {
        assert!(begun.contains(slice), "{slice} of {begun:?}");
    }
}

#[test]
fn lanes_hold_what_does_not_overlap() {
    let mut lanes = Lanes::default();
    for (from, until) in [(0, 10), (5, 8), (8, 12), (10, 11)] {
        lanes.add((Nanoseconds(from), Nanoseconds(until)), from);
    }
    let laid: Vec<Vec<u64>> = lanes
        .laid()
        .into_iter()
        .map(|lane| lane.into_iter().map(|slice| slice.of).collect())
        .collect();
    assert_eq!(laid, [vec![0, 10], vec![5, 8]]);
}
