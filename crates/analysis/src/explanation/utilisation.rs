//! Utilisation of processor, bus, controllers, links and drives.

use super::intervals::TimeIntervals;
use super::parts::ArmInterval;
use super::{is_drive_stage, is_processor_stage, parts};
use diskperf_timeline::trace::{CountedBusy, TracedBusy, TracedProcess, TracedWork};
use diskperf_timeline::{Nanoseconds, Stage, StageInterval, Trace};
use serde::Serialize;

/// Utilisation of the parts of a computer, as shares (0 to 1) of the elapsed time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Utilisation {
    /// Busy share of the processor, for any program or the kernel; absent for a rig, which has no
    /// processor.
    #[serde(rename = "processor")]
    pub processor_share: Option<f64>,
    /// Share of the elapsed time that the processor spent in interrupt handlers; absent for a real
    /// system, which does not report it.
    #[serde(rename = "handlers")]
    pub handler_share: Option<f64>,
    /// Busy share of the bus; absent for a rig, which has none, and for a real system.
    #[serde(rename = "bus")]
    pub bus_share: Option<f64>,
    /// Busy share of each controller's channel, or of its own processor.
    #[serde(rename = "controllers")]
    pub controller_shares: Vec<ControllerShare>,
    /// Busy share of each drive: arm movement, rotational waits and transfers.
    #[serde(rename = "drives")]
    pub drive_shares: Vec<f64>,
    /// Busy share of each drive's link to the host. For a disk, time during the media transfer of
    /// the same request does not count. For a flash drive, the busier direction counts. 0 for a
    /// drive without a link; empty where no drive has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "links")]
    pub link_shares: Vec<f64>,
    /// Busy shares of the controllers, channels and dies of drives that have a controller of their
    /// own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "parts")]
    pub component_shares: Vec<DriveComponentShare>,
    /// Share of the elapsed time in which requests wait for each drive's media, without background
    /// work. Empty where the drives do no background work.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "awaited")]
    pub awaited_shares: Vec<f64>,
    /// Share of the elapsed time in which the processor and a drive are busy together.
    #[serde(rename = "processor_and_drive")]
    pub processor_and_drive_share: Option<f64>,
}

/// Busy share of one part of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DriveComponentShare {
    /// Index of the drive, counted from 0.
    #[serde(rename = "drive")]
    pub drive_index: u32,
    /// Part of the drive that the busy share belongs to.
    #[serde(rename = "part")]
    pub component: DriveComponent,
    /// Busy share of the part of the drive (0 to 1), of the elapsed time.
    #[serde(rename = "share")]
    pub busy_share: f64,
}

/// Part of a drive that has a controller of its own: controller, channels or dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DriveComponent {
    /// Controller of the drive, which works on one command at a time.
    Controller,
    /// Channels between the drive's controller and its dies, the mean of all.
    Channels,
    /// Dies of the drive, the mean of all.
    Dies,
}

/// Busy share of a controller's channel or processor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ControllerShare {
    /// Resource of the controller whose busy time is counted.
    #[serde(rename = "what")]
    pub resource: CountedBusy,
    /// Busy share of the controller (0 to 1), of the elapsed time.
    #[serde(rename = "share")]
    pub busy_share: f64,
}

impl Utilisation {
    /// Measures the busy shares between two times of a trace.
    pub(super) fn from_trace(trace: &Trace, from: Nanoseconds, until: Nanoseconds) -> Self {
        let elapsed = until.since(from).0.max(1) as f64;
        let of_computer = |share| Some(share).filter(|_| !trace.is_on_rig);
        let mut found = Self {
            processor_share: of_computer(0.0),
            handler_share: of_computer(0.0),
            bus_share: of_computer(0.0),
            ..Self::default()
        };
        let first = trace
            .busy_samples
            .iter()
            .find(|busy| busy.sample_time == from);
        let last = trace
            .busy_samples
            .iter()
            .rfind(|busy| busy.sample_time == until);
        if let (Some(first), Some(last)) = (first, last) {
            let share =
                |before: Nanoseconds, after: Nanoseconds| after.since(before).0 as f64 / elapsed;
            found.processor_share = of_computer(share(first.processor_busy, last.processor_busy));
            found.handler_share = of_computer(share(first.handlers_busy, last.handlers_busy));
            found.bus_share = of_computer(share(first.bus_busy, last.bus_busy));
            let pairs = first.controllers_busy.iter().zip(&last.controllers_busy);
            let counted = trace.controller_kinds.iter().zip(pairs);
            found.controller_shares = counted
                .filter_map(|(what, (before, after))| {
                    Some(ControllerShare {
                        resource: (*what)?,
                        busy_share: share(*before, *after),
                    })
                })
                .collect();
        }
        found.add_disk_parts(trace, (from, until));
        if let (Some(first), Some(last)) = (first, last) {
            found.add_flash_parts(trace.drives.len(), (first, last));
        }
        let at_work: Vec<TimeIntervals> = (0..trace.drives.len() as u32)
            .map(|drive| list_drive_intervals(trace, drive, from, until))
            .collect();
        found.drive_shares = at_work
            .iter()
            .map(|busy| busy.total_ns() as f64 / elapsed)
            .collect();
        let any = TimeIntervals::union_of(at_work.iter());
        let both = list_processor_intervals(trace, from, until).overlap_ns(&any);
        found.processor_and_drive_share = of_computer(both as f64 / elapsed);
        found
    }

    fn add_disk_parts(&mut self, trace: &Trace, (from, until): (Nanoseconds, Nanoseconds)) {
        if !trace.drives.iter().any(|drive| drive.has_bus_link) {
            return;
        }
        let elapsed = until.since(from).0.max(1) as f64;
        self.link_shares = vec![0.0; trace.drives.len()];
        self.awaited_shares = vec![0.0; trace.drives.len()];
        for (number, _) in trace
            .drives
            .iter()
            .enumerate()
            .filter(|one| one.1.has_bus_link)
        {
            let drive = number as u32;
            let share_in = |which: fn(Stage) -> bool| {
                let spans = parts::list_request_spans(trace, drive, (from, until), which);
                TimeIntervals::from_spans(spans).total_ns() as f64 / elapsed
            };
            self.link_shares[number] =
                parts::measure_link_busy_ns(trace, drive, from, until) as f64 / elapsed;
            self.awaited_shares[number] = share_in(is_drive_stage);
            self.component_shares.push(DriveComponentShare {
                drive_index: drive,
                component: DriveComponent::Controller,
                busy_share: share_in(|stage| stage == Stage::Command),
            });
        }
    }

    fn add_flash_parts(&mut self, drive_count: usize, (first, last): (&TracedBusy, &TracedBusy)) {
        let elapsed = last.sample_time.since(first.sample_time).0.max(1) as f64;
        for (before, after) in first.flash_busy.iter().zip(&last.flash_busy) {
            self.link_shares.resize(drive_count, 0.0);
            let share =
                |before: Nanoseconds, after: Nanoseconds| after.since(before).0 as f64 / elapsed;
            let ways = before.link.iter().zip(&after.link);
            let ways = ways.map(|(before, after)| share(*before, *after));
            self.link_shares[after.drive_index as usize] = ways.fold(0.0, f64::max);
            let parts = [
                (
                    DriveComponent::Controller,
                    before.controller_busy,
                    after.controller_busy,
                ),
                (
                    DriveComponent::Channels,
                    before.channels_busy,
                    after.channels_busy,
                ),
                (DriveComponent::Dies, before.dies_busy, after.dies_busy),
            ];
            self.component_shares
                .extend(parts.map(|(part, from, until)| DriveComponentShare {
                    drive_index: after.drive_index,
                    component: part,
                    busy_share: share(from, until),
                }));
        }
    }

    /// Returns the busy share of a part of a drive; `None` where it is not counted.
    pub(super) fn component_share(&self, drive: u32, part: DriveComponent) -> Option<f64> {
        let mut parts = self.component_shares.iter();
        let found = parts.find(|one| one.drive_index == drive && one.component == part)?;
        Some(found.busy_share)
    }
}

/// Returns the intervals in which requests are at the drive itself, or its arm does background
/// work.
pub(super) fn list_drive_intervals(
    trace: &Trace,
    drive: u32,
    from: Nanoseconds,
    until: Nanoseconds,
) -> TimeIntervals {
    let of_requests = parts::list_request_spans(trace, drive, (from, until), is_drive_stage);
    let of_arm = parts::list_arm_work(trace, drive, from, until).map(ArmInterval::span_ns);
    TimeIntervals::from_spans(of_requests.chain(of_arm))
}

fn list_processor_intervals(trace: &Trace, from: Nanoseconds, until: Nanoseconds) -> TimeIntervals {
    let of_programs = trace
        .processes
        .iter()
        .flat_map(TracedProcess::stage_intervals);
    let of_handlers = trace.handler_work.iter().map(TracedWork::stage_interval);
    let cut = |interval: StageInterval| {
        let (start, end) = (interval.start.max(from).0, interval.end.min(until).0);
        (is_processor_stage(interval.stage) && start < end).then_some((start, end))
    };
    TimeIntervals::from_spans(of_programs.chain(of_handlers).filter_map(cut))
}
