//! Traces for Perfetto (ui.perfetto.dev): tracks of slices, in the protocol
//! buffers of its `perfetto_trace.proto`.
//!
//! Of each program that was run there is a group of tracks: the programs'
//! processes, the processor, handlers of interrupts, the channel, the bus, each
//! drive's arm and platter, and the requests with what they went through. A flow
//! leads from a request to whoever used what it brought.

mod message;

use crate::explanation::words::{bytes, stage};
use crate::explanation::{is_of_processor, window};
use diskperf_timeline::trace::{Purpose, TracedRequest};
use diskperf_timeline::{Nanoseconds, Stage, Trace};
use message::Message;

/// Something with a begin and an end, and what happened in it.
struct Slice {
    from: Nanoseconds,
    until: Nanoseconds,
    name: String,
    /// The number of a flow that leads away from it, and of one that ends there.
    flows: (Option<u64>, Option<u64>),
    within: Vec<Slice>,
}

impl Slice {
    fn of(name: String, from: Nanoseconds, until: Nanoseconds) -> Self {
        Self {
            from,
            until,
            name,
            flows: (None, None),
            within: Vec::new(),
        }
    }
}

/// The file for these programs, each by its name.
pub fn perfetto(programs: &[(String, &Trace)]) -> Vec<u8> {
    let mut file = Writer::default();
    for (name, trace) in programs {
        file.program(name, trace);
    }
    file.out
}

/// All packets come from one writer.
const SEQUENCE: u64 = 1;
/// `SEQ_INCREMENTAL_STATE_CLEARED`: nothing before the first packet counts.
const CLEARED: u64 = 1;

#[derive(Default)]
struct Writer {
    out: Vec<u8>,
    /// Numbers of tracks and of groups of them.
    tracks: u64,
    flows: u64,
    /// Groups, which the format has as processes.
    groups: u64,
}

/// The numbers of the format's types of events.
#[derive(Clone, Copy)]
enum Kind {
    Begin = 1,
    End = 2,
}

impl Writer {
    fn program(&mut self, name: &str, trace: &Trace) {
        let (from, until) = window(trace).unwrap_or_default();
        self.groups += 1;
        let group = self.track(None, name, Some(self.groups));
        let first_flow = self.flows + 1;
        let within =
            |request: &&TracedRequest| request.completed() > from && request.issued < until;
        let requests: Vec<&TracedRequest> = trace.requests.iter().filter(within).collect();
        self.flows += requests.len() as u64;
        self.processes(group, trace, &requests, first_flow);
        let busy = processor(trace);
        self.lanes(group, "processor", busy);
        let handlers = trace.handlers.iter();
        let in_time = handlers.filter(|work| work.from >= from && work.until <= until);
        let slices = in_time.map(|work| Slice::of(stage(work.stage), work.from, work.until));
        self.lanes(group, "handlers of interrupts", slices.collect());
        self.lanes(
            group,
            "channel",
            requests.iter().filter_map(|one| channel(one)).collect(),
        );
        let bus = |stage| {
            matches!(
                stage,
                Stage::MediaTransfer | Stage::BusTransfer | Stage::CacheHit
            )
        };
        self.lanes(group, "bus", stages(&requests, None, bus));
        for drive in 0..trace.drives.len() as u32 {
            let number = drive + 1;
            let arm = stages(&requests, Some(drive), is_of_arm);
            self.lanes(group, &format!("drive {number}, arm"), arm);
            let platter = stages(&requests, Some(drive), is_of_platter);
            self.lanes(group, &format!("drive {number}, platter"), platter);
            let numbered = requests.iter().enumerate();
            let own = numbered.filter(|(_, request)| request.drive == drive);
            let slices = own.map(|(place, one)| whole(one, trace, first_flow + place as u64));
            self.lanes(
                group,
                &format!("drive {number}, requests"),
                slices.collect(),
            );
        }
    }

    fn processes(
        &mut self,
        group: u64,
        trace: &Trace,
        requests: &[&TracedRequest],
        first_flow: u64,
    ) {
        for process in &trace.processes {
            let name = format!("program {}", process.number);
            let parts = process.parts();
            let slices = parts.map(|(what, from, until)| Slice::of(stage(what), from, until));
            self.lanes(group, &name, slices.collect());
            let mut uses = Vec::new();
            for (place, request) in requests.iter().enumerate() {
                let own = request
                    .uses
                    .iter()
                    .filter(|one| one.process == process.number);
                uses.extend(own.map(|one| Slice {
                    flows: (None, Some(first_flow + place as u64)),
                    ..Slice::of(format!("has {}", title(request, trace)), one.at, one.at)
                }));
            }
            self.lanes(group, &format!("{name}, has its data"), uses);
        }
    }

    /// A track, and more of the same name where slices overlap.
    fn lanes(&mut self, group: u64, name: &str, mut slices: Vec<Slice>) {
        slices.sort_by_key(|slice| (slice.from, std::cmp::Reverse(slice.until)));
        let mut lanes: Vec<(u64, Nanoseconds)> = Vec::new();
        for slice in slices {
            let free = lanes.iter().position(|(_, until)| *until <= slice.from);
            let lane = free.unwrap_or_else(|| {
                lanes.push((self.track(Some(group), name, None), Nanoseconds::ZERO));
                lanes.len() - 1
            });
            lanes[lane].1 = slice.until;
            self.slice(lanes[lane].0, &slice);
        }
    }

    fn track(&mut self, parent: Option<u64>, name: &str, group: Option<u64>) -> u64 {
        self.tracks += 1;
        let uuid = self.tracks;
        let mut track = Message::default();
        track.number(1, uuid);
        track.text(2, name);
        if let Some(number) = group {
            let mut process = Message::default();
            process.number(1, number);
            process.text(6, name);
            track.message(3, &process);
        }
        if let Some(parent) = parent {
            track.number(5, parent);
        }
        let mut packet = Message::default();
        packet.number(10, SEQUENCE);
        if uuid == 1 {
            packet.number(13, CLEARED);
        }
        packet.message(60, &track);
        self.packet(&packet);
        uuid
    }

    fn slice(&mut self, track: u64, slice: &Slice) {
        self.event(track, Kind::Begin, slice.from, Some(slice));
        for inner in &slice.within {
            self.slice(track, inner);
        }
        self.event(track, Kind::End, slice.until, None);
    }

    fn event(&mut self, track: u64, kind: Kind, at: Nanoseconds, of: Option<&Slice>) {
        let mut event = Message::default();
        event.number(9, kind as u64);
        event.number(11, track);
        if let Some(slice) = of {
            event.text(22, "disk");
            event.text(23, &slice.name);
            if let Some(flow) = slice.flows.0 {
                event.fixed(47, flow);
            }
            if let Some(flow) = slice.flows.1 {
                event.fixed(48, flow);
            }
        }
        let mut packet = Message::default();
        packet.number(8, at.0);
        packet.number(10, SEQUENCE);
        packet.message(11, &event);
        self.packet(&packet);
    }

    fn packet(&mut self, packet: &Message) {
        let mut file = Message::default();
        file.message(1, packet);
        self.out.extend(file.bytes());
    }
}

/// When the processor worked, whoever for.
fn processor(trace: &Trace) -> Vec<Slice> {
    let of_programs = trace.processes.iter().flat_map(|process| process.parts());
    let (from, until) = window(trace).unwrap_or_default();
    let of_handlers = trace
        .handlers
        .iter()
        .map(|work| (work.stage, work.from, work.until));
    let mut spans: Vec<(Nanoseconds, Nanoseconds)> = of_programs
        .chain(of_handlers)
        .filter(|(stage, ..)| is_of_processor(*stage))
        .map(|(_, start, stop)| (start.max(from), stop.min(until)))
        .filter(|(start, stop)| start < stop)
        .collect();
    spans.sort_unstable();
    let mut joined: Vec<Slice> = Vec::new();
    for (start, stop) in spans {
        match joined.last_mut() {
            Some(last) if start <= last.until => last.until = last.until.max(stop),
            _ => joined.push(Slice::of("busy".to_owned(), start, stop)),
        }
    }
    joined
}

fn is_of_arm(stage: Stage) -> bool {
    matches!(
        stage,
        Stage::Seek | Stage::Settle | Stage::WriteSettle | Stage::HeadSwitch
    )
}

fn is_of_platter(stage: Stage) -> bool {
    matches!(
        stage,
        Stage::RotationalLatency | Stage::MissedRevolution(_) | Stage::MediaTransfer
    )
}

/// What requests spent in some stages.
fn stages(
    requests: &[&TracedRequest],
    drive: Option<u32>,
    which: impl Fn(Stage) -> bool,
) -> Vec<Slice> {
    let own = requests
        .iter()
        .filter(|one| drive.is_none_or(|drive| one.drive == drive));
    own.flat_map(|request| request.parts())
        .filter(|(stage, ..)| which(*stage))
        .map(|(what, from, until)| Slice::of(stage(what), from, until))
        .collect()
}

/// From the command that sets a transfer off to its last sector.
fn channel(request: &TracedRequest) -> Option<Slice> {
    let parts: Vec<_> = request.parts().collect();
    let last = parts
        .iter()
        .rposition(|(stage, ..)| *stage == Stage::MediaTransfer)?;
    let at_drive =
        |stage: Stage| is_of_arm(stage) || is_of_platter(stage) || stage == Stage::Command;
    let before = parts[..last]
        .iter()
        .rposition(|(stage, ..)| !at_drive(*stage));
    let first = before.map_or(0, |place| place + 1);
    Some(Slice::of(
        format!("drive {}", request.drive + 1),
        parts[first].1,
        parts[last].2,
    ))
}

fn title(request: &TracedRequest, trace: &Trace) -> String {
    let what = match request.purpose {
        Purpose::Read => "read",
        Purpose::ReadAhead => "read ahead",
        Purpose::Write => "write",
        Purpose::WriteBehind => "write behind",
    };
    let sector_bytes = u64::from(trace.drives[request.drive as usize].sector_bytes);
    let size = bytes(u64::from(request.sectors) * sector_bytes);
    format!("{what} {size} at sector {}", request.sector)
}

/// A request with what it went through.
fn whole(request: &TracedRequest, trace: &Trace, flow: u64) -> Slice {
    let parts = request.parts();
    Slice {
        flows: ((!request.uses.is_empty()).then_some(flow), None),
        within: parts
            .map(|(what, from, until)| Slice::of(stage(what), from, until))
            .collect(),
        ..Slice::of(title(request, trace), request.issued, request.completed())
    }
}
