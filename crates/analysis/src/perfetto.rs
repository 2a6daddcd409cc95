//! Export of traces to Perfetto (ui.perfetto.dev): tracks of slices, in the protocol buffers of its
//! `perfetto_trace.proto`.
//!
//! Each program has a group of tracks: its processes, the processor, interrupt handlers, the
//! channel, the bus, each drive's arm and platter, or dies, and the requests with their stages. A
//! flow leads from a request to the program or request that used its data.

mod schema;

use crate::explanation::words::{format_bytes, stage_label};
use crate::explanation::{is_processor_stage, timed_window};
use diskperf_timeline::trace::{Position, RequestPurpose, TracedFlash, TracedRequest, TracedWork};
use diskperf_timeline::{DieBusy, Nanoseconds, Stage, Trace};
use prost::Message;
use schema::{
    DebugAnnotation, EventType, ProcessDescriptor, TracePacket, TrackDescriptor, TrackEvent,
};
use std::collections::BTreeMap;

struct TrackSlice {
    start: Nanoseconds,
    end: Nanoseconds,
    name: String,
    flow_ids: (Option<u64>, Option<u64>),
    nested_slices: Vec<TrackSlice>,
    annotations: Vec<(&'static str, u64)>,
}

impl TrackSlice {
    fn new(name: String, from: Nanoseconds, until: Nanoseconds) -> Self {
        Self {
            start: from,
            end: until,
            name,
            flow_ids: (None, None),
            nested_slices: Vec::new(),
            annotations: Vec::new(),
        }
    }
}

/// Encodes the traces of these programs, each under its name, as a Perfetto file.
pub fn encode_trace(programs: &[(String, &Trace)]) -> Vec<u8> {
    let mut file = PacketWriter::default();
    for (name, trace) in programs {
        file.add_program(name, trace);
    }
    schema::PerfettoTrace {
        packets: file.packets,
    }
    .encode_to_vec()
}

const PACKET_SEQUENCE_ID: u32 = 1;
/// Flag `SEQ_INCREMENTAL_STATE_CLEARED`: no state from before the first packet counts.
const STATE_CLEARED_FLAG: u32 = 1;

#[derive(Default)]
struct PacketWriter {
    packets: Vec<TracePacket>,
    /// Last id given to a track or to a group of tracks.
    track_count: u64,
    flow_count: u64,
    /// Last id given to a group, which the format represents as a process.
    groups: u64,
}

impl PacketWriter {
    fn add_program(&mut self, name: &str, trace: &Trace) {
        let (from, until) = timed_window(trace).unwrap_or_default();
        self.groups += 1;
        let group = self.add_track(None, name, Some(self.groups));
        let first_flow = self.flow_count + 1;
        let within =
            |request: &&TracedRequest| request.completed_at() > from && request.issued_at < until;
        let requests: Vec<&TracedRequest> = trace.requests.iter().filter(within).collect();
        self.flow_count += requests.len() as u64;
        self.add_process_tracks(group, trace, &requests, first_flow);
        let busy = build_processor_slices(trace);
        self.add_lane_tracks(group, "processor", busy);
        let handlers = trace.handler_work.iter();
        let in_time = handlers.filter(|work| work.work_start >= from && work.work_end <= until);
        let slices = in_time
            .map(|work| TrackSlice::new(stage_label(work.stage), work.work_start, work.work_end));
        self.add_lane_tracks(group, "handlers of interrupts", slices.collect());
        self.add_lane_tracks(
            group,
            "channel",
            requests
                .iter()
                .filter_map(|one| build_channel_slice(one))
                .collect(),
        );
        let bus = |stage| {
            matches!(
                stage,
                Stage::MediaTransfer | Stage::BusTransfer | Stage::CacheHit
            )
        };
        self.add_lane_tracks(group, "bus", build_stage_slices(&requests, None, bus));
        for flash in &trace.flash_traces {
            self.add_die_tracks(group, flash, (from, until));
        }
        for drive in 0..trace.drives.len() as u32 {
            let number = drive + 1;
            let arm = build_stage_slices(&requests, Some(drive), is_arm_stage);
            self.add_lane_tracks(group, &format!("drive {number}, arm"), arm);
            let platter = build_stage_slices(&requests, Some(drive), is_platter_stage);
            self.add_lane_tracks(group, &format!("drive {number}, platter"), platter);
            let numbered = requests.iter().enumerate();
            let own = numbered.filter(|(_, request)| request.drive_index == drive);
            let slices =
                own.map(|(place, one)| build_request_slice(one, trace, first_flow + place as u64));
            self.add_lane_tracks(
                group,
                &format!("drive {number}, requests"),
                slices.collect(),
            );
        }
    }

    /// Writes the tracks of a flash drive's dies, channel by channel, with their activities.
    fn add_die_tracks(
        &mut self,
        group: u64,
        flash: &TracedFlash,
        (from, until): (Nanoseconds, Nanoseconds),
    ) {
        let mut of_dies: BTreeMap<(u32, u32), Vec<TrackSlice>> = BTreeMap::new();
        for one in &flash.recorded_periods {
            if one.busy_start >= from && one.busy_end <= until {
                let by = match one.busy_with {
                    DieBusy::Read => "read",
                    DieBusy::Program => "program",
                    DieBusy::Erase => "erase",
                    DieBusy::Collection => "collection",
                    DieBusy::Suspension => "suspension",
                    DieBusy::Channel => "channel",
                };
                let slices = of_dies
                    .entry(flash.die_coordinates(one.die_index))
                    .or_default();
                slices.push(TrackSlice::new(by.to_owned(), one.busy_start, one.busy_end));
            }
        }
        let drive = flash.drive_index.saturating_add(1);
        for ((channel, die), slices) in of_dies {
            let name = format!("drive {drive}, channel {channel}, die {die}");
            self.add_lane_tracks(group, &name, slices);
        }
    }

    fn add_process_tracks(
        &mut self,
        group: u64,
        trace: &Trace,
        requests: &[&TracedRequest],
        first_flow: u64,
    ) {
        for process in &trace.processes {
            let name = format!("program {}", process.process_number);
            let parts = process.stage_intervals();
            let slices =
                parts.map(|part| TrackSlice::new(stage_label(part.stage), part.start, part.end));
            self.add_lane_tracks(group, &name, slices.collect());
            let mut uses = Vec::new();
            for (place, request) in requests.iter().enumerate() {
                let own = request
                    .buffer_uses
                    .iter()
                    .filter(|one| one.process_number == process.process_number);
                uses.extend(own.map(|one| TrackSlice {
                    flow_ids: (None, Some(first_flow + place as u64)),
                    ..TrackSlice::new(
                        format!("has {}", format_request_title(request, trace)),
                        one.use_time,
                        one.use_time,
                    )
                }));
            }
            self.add_lane_tracks(group, &format!("{name}, has its data"), uses);
        }
    }

    fn add_lane_tracks(&mut self, group: u64, name: &str, mut slices: Vec<TrackSlice>) {
        slices.sort_by_key(|slice| (slice.start, std::cmp::Reverse(slice.end)));
        let mut lanes: Vec<(u64, Nanoseconds)> = Vec::new();
        for slice in slices {
            let free = lanes.iter().position(|(_, until)| *until <= slice.start);
            let lane = free.unwrap_or_else(|| {
                lanes.push((self.add_track(Some(group), name, None), Nanoseconds::ZERO));
                lanes.len() - 1
            });
            lanes[lane].1 = slice.end;
            self.add_slice(lanes[lane].0, &slice);
        }
    }

    fn add_track(&mut self, parent: Option<u64>, name: &str, group: Option<u64>) -> u64 {
        self.track_count += 1;
        let uuid = self.track_count;
        let process = group.map(|number| ProcessDescriptor {
            pid: Some(number as i32),
            process_name: Some(name.to_owned()),
        });
        self.packets.push(TracePacket {
            trusted_packet_sequence_id: Some(PACKET_SEQUENCE_ID),
            sequence_flags: (uuid == 1).then_some(STATE_CLEARED_FLAG),
            track_descriptor: Some(TrackDescriptor {
                uuid: Some(uuid),
                name: Some(name.to_owned()),
                parent_uuid: parent,
                process,
            }),
            ..TracePacket::default()
        });
        uuid
    }

    fn add_slice(&mut self, track: u64, slice: &TrackSlice) {
        let begin = TrackEvent {
            categories: vec!["disk".to_owned()],
            name: Some(slice.name.clone()),
            flow_ids: slice.flow_ids.0.into_iter().collect(),
            terminating_flow_ids: slice.flow_ids.1.into_iter().collect(),
            debug_annotations: slice.annotations.iter().map(build_annotation).collect(),
            ..TrackEvent::default()
        };
        self.add_event(track, EventType::SliceBegin, slice.start, begin);
        for inner in &slice.nested_slices {
            self.add_slice(track, inner);
        }
        let end = TrackEvent::default();
        self.add_event(track, EventType::SliceEnd, slice.end, end);
    }

    fn add_event(&mut self, track: u64, kind: EventType, at: Nanoseconds, event: TrackEvent) {
        self.packets.push(TracePacket {
            timestamp: Some(at.0),
            trusted_packet_sequence_id: Some(PACKET_SEQUENCE_ID),
            track_event: Some(TrackEvent {
                r#type: Some(kind.into()),
                track_uuid: Some(track),
                ..event
            }),
            ..TracePacket::default()
        });
    }
}

fn build_annotation((name, value): &(&'static str, u64)) -> DebugAnnotation {
    DebugAnnotation {
        uint_value: Some(*value),
        name: Some((*name).to_owned()),
    }
}

fn build_processor_slices(trace: &Trace) -> Vec<TrackSlice> {
    let of_programs = trace
        .processes
        .iter()
        .flat_map(|process| process.stage_intervals());
    let (from, until) = timed_window(trace).unwrap_or_default();
    let of_handlers = trace.handler_work.iter().map(TracedWork::stage_interval);
    let mut spans: Vec<(Nanoseconds, Nanoseconds)> = of_programs
        .chain(of_handlers)
        .filter(|interval| is_processor_stage(interval.stage))
        .map(|interval| (interval.start.max(from), interval.end.min(until)))
        .filter(|(start, stop)| start < stop)
        .collect();
    spans.sort_unstable();
    let mut joined: Vec<TrackSlice> = Vec::new();
    for (start, stop) in spans {
        match joined.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(stop),
            _ => joined.push(TrackSlice::new("busy".to_owned(), start, stop)),
        }
    }
    joined
}

fn is_arm_stage(stage: Stage) -> bool {
    matches!(
        stage,
        Stage::Seek | Stage::Settle | Stage::WriteSettle | Stage::HeadSwitch
    )
}

fn is_platter_stage(stage: Stage) -> bool {
    matches!(
        stage,
        Stage::RotationalLatency | Stage::MissedRevolution(_) | Stage::MediaTransfer
    )
}

fn build_stage_slices(
    requests: &[&TracedRequest],
    drive: Option<u32>,
    which: impl Fn(Stage) -> bool,
) -> Vec<TrackSlice> {
    let own = requests
        .iter()
        .filter(|one| drive.is_none_or(|drive| one.drive_index == drive));
    own.flat_map(|request| request.stage_intervals())
        .filter(|interval| which(interval.stage))
        .map(|part| TrackSlice::new(stage_label(part.stage), part.start, part.end))
        .collect()
}

/// Returns the slice of a request on the channel, from the command that starts a transfer to its
/// last sector.
fn build_channel_slice(request: &TracedRequest) -> Option<TrackSlice> {
    let parts: Vec<_> = request.stage_intervals().collect();
    let last = parts
        .iter()
        .rposition(|interval| interval.stage == Stage::MediaTransfer)?;
    let at_drive =
        |stage: Stage| is_arm_stage(stage) || is_platter_stage(stage) || stage == Stage::Command;
    let before = parts[..last]
        .iter()
        .rposition(|interval| !at_drive(interval.stage));
    let first = before.map_or(0, |place| place + 1);
    Some(TrackSlice::new(
        format!("drive {}", request.drive_index + 1),
        parts[first].start,
        parts[last].end,
    ))
}

fn format_request_title(request: &TracedRequest, trace: &Trace) -> String {
    let what = match request.purpose {
        RequestPurpose::Read => "read",
        RequestPurpose::ReadAhead => "read ahead",
        RequestPurpose::Write => "write",
        RequestPurpose::WriteBehind => "write behind",
    };
    let sector_bytes = u64::from(trace.drives[request.drive_index as usize].sector_bytes);
    let size = format_bytes(u64::from(request.sector_count) * sector_bytes);
    format!("{what} {size} at sector {}", request.sector)
}

fn build_request_slice(request: &TracedRequest, trace: &Trace, flow: u64) -> TrackSlice {
    let parts = request.stage_intervals();
    TrackSlice {
        flow_ids: ((!request.buffer_uses.is_empty()).then_some(flow), None),
        nested_slices: parts
            .map(|part| TrackSlice::new(stage_label(part.stage), part.start, part.end))
            .collect(),
        annotations: list_request_annotations(request),
        ..TrackSlice::new(
            format_request_title(request, trace),
            request.issued_at,
            request.completed_at(),
        )
    }
}

/// Returns the annotations with a request's position. For a real device only the sectors are known.
fn list_request_annotations(request: &TracedRequest) -> Vec<(&'static str, u64)> {
    let mut told = vec![
        ("sector", request.sector),
        ("sectors", u64::from(request.sector_count)),
    ];
    match request.media_position {
        Some(Position::Disk(on)) => told.extend([
            ("cylinder", u64::from(on.cylinder)),
            ("head", u64::from(on.head)),
            ("slot", u64::from(on.slot)),
        ]),
        Some(Position::Flash { channel, die }) => {
            told.extend([("channel", u64::from(channel)), ("die", u64::from(die))]);
        }
        None => {}
    }
    told
}
