//! How busy processor, bus, controllers, links and drives were.

use super::intervals::Intervals;
use super::{is_of_drive, is_of_processor, parts};
use diskperf_timeline::trace::{Counted, TracedBusy, TracedProcess};
use diskperf_timeline::{Nanoseconds, Stage, Trace};
use serde::Serialize;

/// Busy time as shares of the elapsed time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Utilisation {
    /// Share of the processor that was busy, for any program or the kernel. A rig has neither a
    /// processor nor a bus.
    pub processor: Option<f64>,
    /// Of the elapsed time, the processor in handlers of interrupts; a real
    /// system does not tell.
    pub handlers: Option<f64>,
    /// The bus; nor this.
    pub bus: Option<f64>,
    /// Each controller's channel, or its own processor.
    pub controllers: Vec<ControllerUse>,
    /// Each drive: its arm, its waiting for sectors, its transfers.
    pub drives: Vec<f64>,
    /// Of each drive that has one, the link to the host: of a disk, as far as it is not hidden
    /// behind the media transfer of the same request; of a flash drive, the busier way. 0 of
    /// others, and none where no drive has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<f64>,
    /// Further parts of drives that have a controller of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<DriveComponentUse>,
    /// Of each drive, the time in which a request waits for its media: without what the drive
    /// does of its own accord. Empty where it does nothing of its own accord.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub awaited: Vec<f64>,
    /// Of the elapsed time, the processor and a drive at once.
    pub processor_and_drive: Option<f64>,
}

/// Busy time of a part of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DriveComponentUse {
    /// The number of the drive, counted from 0.
    pub drive: u32,
    /// The part.
    pub part: DriveComponent,
    /// The share of the elapsed time.
    pub share: f64,
}

/// A part of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DriveComponent {
    /// The drive's own controller, which works on one command at a time.
    Controller,
    /// The channels between controller and dies, the mean of all.
    Channels,
    /// The dies, the mean of all.
    Dies,
}

/// How busy a controller was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ControllerUse {
    /// What of it.
    pub what: Counted,
    /// As a share of the elapsed time.
    pub share: f64,
}

impl Utilisation {
    /// Of what happened from one moment to another.
    pub(super) fn of(trace: &Trace, from: Nanoseconds, until: Nanoseconds) -> Self {
        let elapsed = until.since(from).0.max(1) as f64;
        let of_computer = |share| Some(share).filter(|_| !trace.is_of_rig);
        let mut found = Self {
            processor: of_computer(0.0),
            handlers: of_computer(0.0),
            bus: of_computer(0.0),
            ..Self::default()
        };
        let first = trace.busy.iter().find(|busy| busy.at == from);
        let last = trace.busy.iter().rfind(|busy| busy.at == until);
        if let (Some(first), Some(last)) = (first, last) {
            let share =
                |before: Nanoseconds, after: Nanoseconds| after.since(before).0 as f64 / elapsed;
            found.processor = of_computer(share(first.processor, last.processor));
            found.handlers = of_computer(share(first.handlers, last.handlers));
            found.bus = of_computer(share(first.bus, last.bus));
            let pairs = first.controllers.iter().zip(&last.controllers);
            let counted = trace.controllers.iter().zip(pairs);
            found.controllers = counted
                .filter_map(|(what, (before, after))| {
                    Some(ControllerUse {
                        what: (*what)?,
                        share: share(*before, *after),
                    })
                })
                .collect();
        }
        found.add_disk_parts(trace, (from, until));
        if let (Some(first), Some(last)) = (first, last) {
            found.add_flash_parts(trace.drives.len(), (first, last));
        }
        let at_work: Vec<Intervals> = (0..trace.drives.len() as u32)
            .map(|drive| at_drive(trace, drive, from, until))
            .collect();
        found.drives = at_work
            .iter()
            .map(|busy| busy.total() as f64 / elapsed)
            .collect();
        let any = Intervals::union(at_work.iter());
        let both = processor_at_work(trace, from, until).overlap(&any);
        found.processor_and_drive = of_computer(both as f64 / elapsed);
        found
    }

    /// Adds the links and controllers of disks, from the spans of their requests.
    fn add_disk_parts(&mut self, trace: &Trace, (from, until): (Nanoseconds, Nanoseconds)) {
        if !trace.drives.iter().any(|drive| drive.has_link) {
            return;
        }
        let elapsed = until.since(from).0.max(1) as f64;
        self.links = vec![0.0; trace.drives.len()];
        self.awaited = vec![0.0; trace.drives.len()];
        for (number, _) in trace.drives.iter().enumerate().filter(|one| one.1.has_link) {
            let drive = number as u32;
            let share_in = |which: fn(Stage) -> bool| {
                let spans = parts::of_requests(trace, drive, (from, until), which);
                Intervals::of(spans).total() as f64 / elapsed
            };
            self.links[number] = parts::on_link(trace, drive, from, until) as f64 / elapsed;
            self.awaited[number] = share_in(is_of_drive);
            self.parts.push(DriveComponentUse {
                drive,
                part: DriveComponent::Controller,
                share: share_in(|stage| stage == Stage::Command),
            });
        }
    }

    /// Adds the links, controllers, channels and dies of flash drives, from their counters.
    fn add_flash_parts(&mut self, drive_count: usize, (first, last): (&TracedBusy, &TracedBusy)) {
        let elapsed = last.at.since(first.at).0.max(1) as f64;
        for (before, after) in first.flash.iter().zip(&last.flash) {
            self.links.resize(drive_count, 0.0);
            let share =
                |before: Nanoseconds, after: Nanoseconds| after.since(before).0 as f64 / elapsed;
            let ways = before.link.iter().zip(&after.link);
            let ways = ways.map(|(before, after)| share(*before, *after));
            self.links[after.drive as usize] = ways.fold(0.0, f64::max);
            let parts = [
                (
                    DriveComponent::Controller,
                    before.controller,
                    after.controller,
                ),
                (DriveComponent::Channels, before.channels, after.channels),
                (DriveComponent::Dies, before.dies, after.dies),
            ];
            self.parts
                .extend(parts.map(|(part, from, until)| DriveComponentUse {
                    drive: after.drive,
                    part,
                    share: share(from, until),
                }));
        }
    }

    /// The share of a part of a drive; none where it is not counted.
    pub(super) fn part(&self, drive: u32, part: DriveComponent) -> Option<f64> {
        let mut parts = self.parts.iter();
        let found = parts.find(|one| one.drive == drive && one.part == part)?;
        Some(found.share)
    }
}

/// When requests are at the drive itself, or its arm works of its own accord.
pub(super) fn at_drive(
    trace: &Trace,
    drive: u32,
    from: Nanoseconds,
    until: Nanoseconds,
) -> Intervals {
    let of_requests = parts::of_requests(trace, drive, (from, until), is_of_drive);
    let of_arm = parts::arms(trace, drive, from, until).map(|(.., span)| span);
    Intervals::of(of_requests.chain(of_arm))
}

fn processor_at_work(trace: &Trace, from: Nanoseconds, until: Nanoseconds) -> Intervals {
    let of_programs = trace.processes.iter().flat_map(TracedProcess::parts);
    let of_handlers = trace
        .handlers
        .iter()
        .map(|work| (work.stage, work.from, work.until));
    let cut = |(stage, start, stop): (Stage, Nanoseconds, Nanoseconds)| {
        let (start, stop) = (start.max(from).0, stop.min(until).0);
        (is_of_processor(stage) && start < stop).then_some((start, stop))
    };
    Intervals::of(of_programs.chain(of_handlers).filter_map(cut))
}
