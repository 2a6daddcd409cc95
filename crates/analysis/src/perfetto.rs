//! A trace as a file that Perfetto opens (<https://ui.perfetto.dev>): a group
//! of tracks for each program, one for the processor, one for each drive's arm,
//! platter and bus, and one for its requests, which are under way side by side.
//!
//! The bytes are those of `perfetto.protos.Trace`: packets of track events, the
//! tracks described before them. Times are those of the model, in nanoseconds.

mod lanes;
mod schema;

use diskperf_timeline::trace::{Purpose, TracedProcess, TracedRequest};
use diskperf_timeline::{Nanoseconds, Stage, Trace};
use lanes::Lanes;
use prost::Message;
use schema::{ChildOrdering, DebugAnnotation, EventType, TracePacket, TrackDescriptor, TrackEvent};

/// All packets are of one writer.
const SEQUENCE: u32 = 1;

/// The file of a trace; `title` says what ran on what.
pub fn perfetto(title: &str, trace: &Trace) -> Vec<u8> {
    let mut file = File::default();
    let root = file.track(title, None);
    for (number, process) in trace.processes.iter().enumerate() {
        file.program(root, number, process, trace);
    }
    file.processor(root, trace);
    for drive in 0..trace.drives.len() as u32 {
        let of_drive = |request: &&TracedRequest| request.drive == drive;
        if trace.requests.iter().any(|request| of_drive(&request)) {
            file.drive(root, drive, trace);
        }
    }
    schema::Trace {
        packet: file.packets,
    }
    .encode_to_vec()
}

/// What a request's span is the work of, besides waiting.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Arm,
    Platter,
    Bus,
}

impl Part {
    const ALL: [(Self, &'static str); 3] = [
        (Self::Arm, "arm"),
        (Self::Platter, "platter"),
        (Self::Bus, "bus"),
    ];

    fn of(stage: Stage) -> Option<Self> {
        match stage {
            Stage::Seek | Stage::Settle | Stage::WriteSettle | Stage::HeadSwitch => Some(Self::Arm),
            Stage::RotationalLatency | Stage::MissedRevolution(_) | Stage::MediaTransfer => {
                Some(Self::Platter)
            }
            Stage::BusTransfer => Some(Self::Bus),
            _ => None,
        }
    }
}

/// Whether a program has the processor in this stage.
fn is_processors(stage: Stage) -> bool {
    matches!(
        stage,
        Stage::User
            | Stage::SystemCall
            | Stage::Copy
            | Stage::Clear
            | Stage::Allocate
            | Stage::CacheLookup
            | Stage::Driver
            | Stage::Interrupt
            | Stage::MemoryContention
    )
}

/// The packets so far.
#[derive(Default)]
struct File {
    packets: Vec<TracePacket>,
    tracks: u64,
}

impl File {
    fn track(&mut self, name: &str, parent: Option<u64>) -> u64 {
        self.tracks += 1;
        self.packets.push(TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_descriptor: Some(TrackDescriptor {
                uuid: Some(self.tracks),
                name: Some(name.to_owned()),
                parent_uuid: parent,
                child_ordering: Some(ChildOrdering::Explicit.into()),
                sibling_order_rank: Some(self.tracks as i32),
            }),
            ..TracePacket::default()
        });
        self.tracks
    }

    fn event(&mut self, at: Nanoseconds, track: u64, kind: EventType, event: TrackEvent) {
        self.packets.push(TracePacket {
            timestamp: Some(at.0),
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_event: Some(TrackEvent {
                r#type: Some(kind.into()),
                track_uuid: Some(track),
                ..event
            }),
            ..TracePacket::default()
        });
    }

    fn begin(&mut self, at: Nanoseconds, track: u64, name: &str) {
        let event = TrackEvent {
            name: Some(name.to_owned()),
            ..TrackEvent::default()
        };
        self.event(at, track, EventType::SliceBegin, event);
    }

    fn end(&mut self, at: Nanoseconds, track: u64) {
        self.event(at, track, EventType::SliceEnd, TrackEvent::default());
    }

    fn slice(&mut self, (from, until): (Nanoseconds, Nanoseconds), track: u64, name: &str) {
        self.begin(from, track, name);
        self.end(until, track);
    }

    /// A program: its spans, and where it found what was read ahead for it.
    fn program(&mut self, root: u64, number: usize, process: &TracedProcess, trace: &Trace) {
        let track = self.track(&format!("program {}", number + 1), Some(root));
        for (stage, from, until) in process.parts() {
            self.slice((from, until), track, stage.name());
        }
        for (request, used, at) in read_ahead_uses(trace) {
            if used == process.number {
                let event = TrackEvent {
                    name: Some("uses what was read ahead".to_owned()),
                    terminating_flow_ids: vec![flow(request)],
                    ..TrackEvent::default()
                };
                self.event(at, track, EventType::Instant, event);
            }
        }
    }

    /// The processor: whose work it does, and that of handlers beside it.
    fn processor(&mut self, root: u64, trace: &Trace) {
        let group = self.track("processor", Some(root));
        let mut lanes = Lanes::default();
        for (number, process) in trace.processes.iter().enumerate() {
            for (from, until) in lanes::joined(process.parts(), is_processors) {
                lanes.add((from, until), format!("program {}", number + 1));
            }
        }
        self.lay(group, "programs", lanes);
        let mut lanes = Lanes::default();
        for work in &trace.handlers {
            lanes.add((work.from, work.until), work.stage.name());
        }
        self.lay(group, "interrupt handlers", lanes);
    }

    /// A drive: its parts, and its requests side by side.
    fn drive(&mut self, root: u64, drive: u32, trace: &Trace) {
        let group = self.track(&format!("drive {}", drive + 1), Some(root));
        let all = || {
            let requests = trace.requests.iter().enumerate();
            requests.filter(move |(_, request)| request.drive == drive)
        };
        for (part, name) in Part::ALL {
            let mut lanes = Lanes::default();
            for (_, request) in all() {
                for (stage, from, until) in request.parts() {
                    if Part::of(stage) == Some(part) {
                        lanes.add((from, until), stage.name());
                    }
                }
            }
            self.lay(group, name, lanes);
        }
        let mut lanes = Lanes::default();
        for (number, request) in all() {
            lanes.add((request.issued, request.completed()), (number, request));
        }
        self.requests(group, lanes);
    }

    /// Slices in as many tracks of one name as overlap.
    fn lay<N: AsRef<str>>(&mut self, group: u64, name: &str, lanes: Lanes<N>) {
        for lane in lanes.laid() {
            let track = self.track(name, Some(group));
            for slice in lane {
                self.slice(slice.span, track, slice.of.as_ref());
            }
        }
    }

    /// The same of requests, with their spans within them and what tells more.
    fn requests(&mut self, group: u64, lanes: Lanes<(usize, &TracedRequest)>) {
        for lane in lanes.laid() {
            let track = self.track("requests", Some(group));
            for slice in lane {
                let (number, request) = slice.of;
                let arrow = is_used_read_ahead(request).then(|| flow(number));
                let event = TrackEvent {
                    name: Some(title(request)),
                    debug_annotations: annotations(request),
                    flow_ids: arrow.into_iter().collect(),
                    ..TrackEvent::default()
                };
                self.event(slice.span.0, track, EventType::SliceBegin, event);
                for (stage, from, until) in request.parts() {
                    self.slice((from, until), track, stage.name());
                }
                self.end(slice.span.1, track);
            }
        }
    }
}

fn title(request: &TracedRequest) -> String {
    let what = match request.purpose {
        Purpose::Read => "read",
        Purpose::ReadAhead => "read ahead",
        Purpose::Write => "write",
        Purpose::WriteBehind => "write behind",
    };
    format!("{what}, {} sectors at {}", request.sectors, request.sector)
}

fn annotations(request: &TracedRequest) -> Vec<DebugAnnotation> {
    [
        ("sector", request.sector),
        ("sectors", u64::from(request.sectors)),
        ("cylinder", u64::from(request.cylinder)),
        ("head", u64::from(request.head)),
        ("slot", u64::from(request.slot)),
    ]
    .into_iter()
    .map(|(name, value)| DebugAnnotation {
        uint_value: Some(value),
        name: Some(name.to_owned()),
    })
    .collect()
}

fn is_used_read_ahead(request: &TracedRequest) -> bool {
    request.purpose == Purpose::ReadAhead && !request.uses.is_empty()
}

/// The number of the arrow that starts at a request; 0 is none.
fn flow(request: usize) -> u64 {
    request as u64 + 1
}

/// What was read ahead, by whom it was used first, and when.
fn read_ahead_uses(trace: &Trace) -> impl Iterator<Item = (usize, u32, Nanoseconds)> + '_ {
    let numbered = trace.requests.iter().enumerate();
    numbered
        .filter(|(_, request)| is_used_read_ahead(request))
        .map(|(number, request)| (number, request.uses[0].process, request.uses[0].at))
}

#[cfg(test)]
mod tests;
