//! Live stream of block-layer events for a recording. It reads the kernel's buffers periodically,
//! page by page, and returns the events in order of time.

use super::instance::{Instance, Tracefs};
use super::pages::{Field, PageLayout};
use super::pairs::{RequestEvent, RequestMatcher, RequestStep, RwbsFlags};
use super::{BlockEventsError, PROCESSOR_BUFFER_KIB_MAX, processor_buffer_kib};
use crate::host::clock::monotonic;
use crate::host::device::BlockDevice;
use diskperf_timeline::{DeviceEvent, DeviceStep, Nanoseconds};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Disk or partition whose requests are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listened {
    /// Disk with the request queue that serves the recorded requests.
    pub disk: BlockDevice,
    /// Partition on the disk, as first sector and number of sectors of 512 bytes. Only requests
    /// that start in it are recorded, at offsets relative to its start. `None` records the whole
    /// disk.
    pub sectors: Option<(u64, u64)>,
}

const RECORDED_EVENTS: [(&str, RequestStep); 3] = [
    ("block/block_rq_issue", RequestStep::Issued),
    ("block/block_rq_requeue", RequestStep::Requeued),
    ("block/block_rq_complete", RequestStep::Completed),
];

/// Age at which an event is passed on. Until then another processor may still record an earlier
/// event.
const REORDER_DELAY: Duration = Duration::from_millis(50);

/// Interval between calls of [`BlockStream::poll`]. The buffers have room for ten times as much at
/// a million requests a second.
pub const POLL_EVERY: Duration = Duration::from_millis(100);

const LOSS_CHECK_INTERVAL: Nanoseconds = Nanoseconds::from_millis(1000);

/// Stream of the requests of some disks, available while the disks work.
#[derive(Debug)]
pub struct BlockStream {
    instance: Instance,
    ranges: Vec<RecordedRange>,
    layout: PageLayout,
    events: EventFormats,
    buffers: Vec<OwnedFd>,
    page: Vec<u8>,
    /// Events that are too recent to be passed on in order.
    pending: Vec<RequestEvent>,
    matcher: RequestMatcher,
    /// Number of lost events that were reported.
    losses_reported: u64,
    losses_checked_at: Nanoseconds,
    /// Time of the latest event that was passed on.
    latest_reported: Nanoseconds,
}

impl BlockStream {
    /// Prepares a stream of these disks' requests.
    ///
    /// # Errors
    ///
    /// The user is not root, `listened` is empty, a disk has no request queue, or the kernel offers
    /// no events.
    pub fn of(listened: &[Listened]) -> Result<Self, BlockEventsError> {
        if !crate::host::is_root() {
            return Err(BlockEventsError::NotRoot);
        }
        if listened.is_empty() {
            return Err(BlockEventsError::NoDevice);
        }
        for one in listened {
            if !one.disk.sysfs().join("mq").exists() {
                return Err(BlockEventsError::NoQueue(one.disk.name().to_owned()));
            }
        }
        let tracefs = Tracefs::open().map_err(BlockEventsError::NoTracefs)?;
        for name in tracefs.abandoned_names() {
            let _ = tracefs.remove(&name);
        }
        let instance = tracefs.make_instance()?;
        let header = instance.read_text("events/header_page")?;
        let layout = PageLayout::parse(&header)
            .ok_or_else(|| instance.format_error("events/header_page", &header))?;
        let events = EventFormats::read(&instance)?;
        let mut stream = Self {
            page: vec![0; layout.page_bytes()],
            instance,
            ranges: listened.iter().map(RecordedRange::from_listened).collect(),
            layout,
            events,
            buffers: Vec::new(),
            pending: Vec::new(),
            matcher: RequestMatcher::default(),
            losses_reported: 0,
            losses_checked_at: Nanoseconds::ZERO,
            latest_reported: Nanoseconds::ZERO,
        };
        stream.select_events()?;
        stream.buffers = stream.instance.raw_buffers()?;
        Ok(stream)
    }

    /// Selects the events to record. Recording itself stays off.
    fn select_events(&self) -> Result<(), BlockEventsError> {
        let instance = &self.instance;
        instance.write("tracing_on", "0")?;
        instance.write("trace_clock", "mono")?;
        // What is there stays, and what has no room is lost and counted.
        instance.write("options/overwrite", "0")?;
        instance.write("buffer_size_kb", &processor_buffer_kib().to_string())?;
        let dev = |one: &RecordedRange| format!("dev == {}", one.kernel_device);
        let devices: Vec<String> = self.ranges.iter().map(dev).collect();
        for (event, _) in RECORDED_EVENTS {
            instance.enable(event, &devices.join(" || "))?;
        }
        Ok(())
    }

    /// Discards earlier events, starts recording and returns the start time.
    ///
    /// # Errors
    ///
    /// Errors of tracefs.
    pub fn begin(&mut self) -> Result<Nanoseconds, BlockEventsError> {
        self.pending.clear();
        self.matcher.forget_in_flight();
        self.instance.write("trace", "")?;
        self.losses_reported = self.instance.lost_events()?;
        self.losses_checked_at = monotonic();
        let now = monotonic();
        self.instance.write("tracing_on", "1")?;
        Ok(now)
    }

    /// Appends the events since the last call, except those that are too recent.
    ///
    /// # Errors
    ///
    /// Errors of tracefs, and a malformed page.
    pub fn poll(&mut self, events: &mut Vec<DeviceEvent>) -> Result<(), BlockEventsError> {
        let now = monotonic();
        let settled = Nanoseconds(now.0.saturating_sub(REORDER_DELAY.as_nanos() as u64));
        self.read_buffers()?;
        self.report_until(settled, events);
        if now.since(self.losses_checked_at) >= LOSS_CHECK_INTERVAL {
            self.report_losses(now, events)?;
        }
        Ok(())
    }

    /// Stops recording, appends all remaining events and returns the end time.
    ///
    /// # Errors
    ///
    /// As [`Self::poll`].
    pub fn end(&mut self, events: &mut Vec<DeviceEvent>) -> Result<Nanoseconds, BlockEventsError> {
        self.instance.write("tracing_on", "0")?;
        let now = monotonic();
        self.read_buffers()?;
        self.report_until(Nanoseconds(u64::MAX), events);
        self.report_losses(now, events)?;
        Ok(now)
    }

    /// Removes the event buffers. Dropping the stream removes them too, without reporting errors.
    ///
    /// # Errors
    ///
    /// The buffers cannot be removed; `diskperf clean` finds them later.
    pub fn close(mut self) -> Result<(), BlockEventsError> {
        self.buffers.clear();
        self.instance.remove()
    }

    /// Moves all events from the kernel's buffers to `pending`.
    fn read_buffers(&mut self) -> Result<(), BlockEventsError> {
        let Self {
            instance,
            ranges,
            layout,
            events,
            buffers,
            page,
            pending,
            ..
        } = self;
        // No more than there was room for: a processor may write as fast as this reads.
        let most = 1024 * PROCESSOR_BUFFER_KIB_MAX / page.len();
        for buffer in buffers {
            for _ in 0..most {
                let bytes = match rustix::io::read(&*buffer, &mut page[..]) {
                    Ok(0) | Err(Errno::AGAIN) => break,
                    Ok(bytes) => bytes,
                    Err(Errno::INTR) => continue,
                    Err(error) => return Err(instance.tracefs_error("per_cpu", error.into())),
                };
                let parsed = layout.for_each_event(&page[..bytes], |at, data| {
                    pending.extend(events.parse(Nanoseconds(at), data, ranges));
                });
                parsed.map_err(|why| {
                    let why = io::Error::new(io::ErrorKind::InvalidData, why);
                    instance.tracefs_error("per_cpu", why)
                })?;
            }
        }
        Ok(())
    }

    /// Passes on the events up to the given time, in order of time.
    fn report_until(&mut self, until: Nanoseconds, events: &mut Vec<DeviceEvent>) {
        self.pending.sort_by_key(|event| event.at);
        let settled = self.pending.partition_point(|event| event.at <= until);
        for mut event in self.pending.drain(..settled) {
            // One that was written down too late is told late.
            event.at = event.at.max(self.latest_reported);
            self.latest_reported = event.at;
            events.extend(self.matcher.process(&event));
        }
    }

    fn report_losses(
        &mut self,
        now: Nanoseconds,
        events: &mut Vec<DeviceEvent>,
    ) -> Result<(), BlockEventsError> {
        let lost = self.instance.lost_events()?;
        let more = lost.saturating_sub(self.losses_reported);
        (self.losses_reported, self.losses_checked_at) = (lost, now);
        if more > 0 {
            let at = self.latest_reported;
            let step = DeviceStep::Lost(more);
            events.push(DeviceEvent { at, step });
            // Whose completion was among them would take that of the next request there.
            self.matcher.forget_in_flight();
        }
        Ok(())
    }
}

/// Recorded disk or partition in the kernel's terms.
#[derive(Clone, Copy, Debug)]
struct RecordedRange {
    /// Device number of the disk in the kernel's internal form, with 20 bits for the minor number.
    kernel_device: u64,
    sectors: Option<(u64, u64)>,
}

impl RecordedRange {
    fn from_listened(one: &Listened) -> Self {
        let number = one.disk.number();
        Self {
            kernel_device: u64::from(number.major) << 20 | u64::from(number.minor),
            sectors: one.sectors,
        }
    }
}

/// Parses a page with the given descriptions of pages and of the three kinds of events, and pairs
/// its events. For tests and fuzzing of the parser.
///
/// # Errors
///
/// Description of the defect, if a description or the page is malformed.
#[doc(hidden)]
pub fn paged(
    [pages, events @ ..]: [&str; 4],
    page: &[u8],
) -> Result<Vec<DeviceEvent>, &'static str> {
    let layout = PageLayout::parse(pages).ok_or("the description of pages is missing")?;
    let mut kinds = EventFormats::default();
    for (text, (_, step)) in events.iter().zip(RECORDED_EVENTS) {
        kinds
            .add_format(step, text)
            .ok_or("the description of an event is missing")?;
    }
    let ranges = [None, Some((1 << 20, 1 << 20))].map(|sectors| RecordedRange {
        kernel_device: 254 << 20,
        sectors,
    });
    let (mut found, mut matcher) = (Vec::new(), RequestMatcher::default());
    layout.for_each_event(page, |at, data| {
        let event = kinds.parse(Nanoseconds(at), data, &ranges);
        found.extend(event.and_then(|event| matcher.process(&event)));
    })?;
    Ok(found)
}

/// Binary layouts of the kinds of events that the stream records.
#[derive(Debug, Default)]
struct EventFormats {
    /// Field with the kind's number, at the start of every event.
    kind_field: Option<Field>,
    formats: BTreeMap<u64, EventFormat>,
}

#[derive(Debug)]
struct EventFormat {
    step: RequestStep,
    dev: Field,
    sector: Field,
    sectors: Field,
    rwbs: Field,
    /// Field with the error number, in completion events only.
    error: Option<Field>,
}

impl EventFormats {
    fn read(instance: &Instance) -> Result<Self, BlockEventsError> {
        let mut events = Self::default();
        for (event, step) in RECORDED_EVENTS {
            let file = format!("events/{event}/format");
            let text = instance.read_text(&file)?;
            let added = events.add_format(step, &text);
            added.ok_or_else(|| instance.format_error(&file, &text))?;
        }
        Ok(events)
    }

    fn add_format(&mut self, step: RequestStep, text: &str) -> Option<()> {
        let (number, kind) = EventFormat::parse(step, text)?;
        self.kind_field = Some(Field::find("common_type", text)?);
        self.formats.insert(number, kind);
        Some(())
    }

    /// Parses an event of a recorded disk; `None` for other disks and kinds.
    fn parse(
        &self,
        at: Nanoseconds,
        data: &[u8],
        ranges: &[RecordedRange],
    ) -> Option<RequestEvent> {
        let kind = self.formats.get(&self.kind_field?.read_number(data)?)?;
        let dev = kind.dev.read_number(data)?;
        let rwbs = RwbsFlags::parse(kind.rwbs.slice(data)?)?;
        let (sector, sectors) = (
            kind.sector.read_number(data)?,
            kind.sectors.read_number(data)?,
        );
        let moves = sectors > 0;
        let (device, sector) = (0..).zip(ranges).find_map(|(place, one)| {
            let here = one.kernel_device == dev;
            let from = match one.sectors {
                // What moves no data is nowhere, and of the whole disk.
                Some((first, count)) if moves => {
                    let from = sector.checked_sub(first)?;
                    (from < count).then_some(from)?
                }
                _ => sector,
            };
            here.then_some((place, from))
        })?;
        if moves {
            // No device has a byte that 64 bits cannot number.
            sector.checked_add(sectors)?.checked_mul(512)?;
        }
        let error = kind.error.and_then(|error| error.read_number(data));
        Some(RequestEvent {
            at,
            step: kind.step,
            device,
            rwbs,
            sector,
            sectors,
            // Negative, of four bytes.
            errno: error.map_or(0, |error| (error as u32 as i32).unsigned_abs() as u16),
        })
    }
}

impl EventFormat {
    /// Parses the layout of an event from its description, and returns it with the kind's number.
    fn parse(step: RequestStep, text: &str) -> Option<(u64, Self)> {
        let number = text.lines().find_map(|line| line.strip_prefix("ID: "));
        let field = |name| Field::find(name, text);
        let error = match step {
            // `errors` before Linux 4.14.
            RequestStep::Completed => Some(field("error").or_else(|| field("errors"))?),
            RequestStep::Issued | RequestStep::Requeued => None,
        };
        let kind = Self {
            step,
            dev: field("dev")?,
            sector: field("sector")?,
            sectors: field("nr_sector")?,
            rwbs: field("rwbs")?,
            error,
        };
        Some((number?.trim().parse().ok()?, kind))
    }
}

/// Opens a processor's raw event buffer for reading without blocking.
pub(super) fn open_raw_buffer(path: &std::path::Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}
