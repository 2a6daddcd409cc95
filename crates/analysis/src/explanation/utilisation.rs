//! How busy processor, bus, controllers, links and drives were.

use super::intervals::Intervals;
use super::{is_of_drive, is_of_processor, parts};
use diskperf_timeline::trace::{Counted, TracedProcess};
use diskperf_timeline::{Nanoseconds, Stage, Trace};
use serde::Serialize;

/// Busy time as shares of the elapsed time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Utilisation {
    /// The processor, for whomever it worked.
    pub processor: f64,
    /// Of the elapsed time, the processor in handlers of interrupts; a real
    /// system does not tell.
    pub handlers: Option<f64>,
    /// The bus; nor this.
    pub bus: Option<f64>,
    /// Each controller's channel, or its own processor.
    pub controllers: Vec<ControllerUse>,
    /// Each drive: its arm, its waiting for sectors, its transfers.
    pub drives: Vec<f64>,
    /// Of each drive that has one, the link to the host, as far as it is not hidden behind the
    /// media transfer of the same request; 0 of others, and none where no drive has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<f64>,
    /// Of the elapsed time, the processor and a drive at once.
    pub processor_and_drive: Option<f64>,
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
        let mut found = Self {
            handlers: Some(0.0),
            bus: Some(0.0),
            ..Self::default()
        };
        let first = trace.busy.iter().find(|busy| busy.at == from);
        let last = trace.busy.iter().rfind(|busy| busy.at == until);
        if let (Some(first), Some(last)) = (first, last) {
            let share =
                |before: Nanoseconds, after: Nanoseconds| after.since(before).0 as f64 / elapsed;
            found.processor = share(first.processor, last.processor);
            found.handlers = Some(share(first.handlers, last.handlers));
            found.bus = Some(share(first.bus, last.bus));
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
        if trace.drives.iter().any(|drive| drive.has_link) {
            let link = |drive| match trace.drives[drive as usize].has_link {
                true => parts::on_link(trace, drive, from, until) as f64 / elapsed,
                false => 0.0,
            };
            found.links = (0..trace.drives.len() as u32).map(link).collect();
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
        found.processor_and_drive = Some(both as f64 / elapsed);
        found
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
