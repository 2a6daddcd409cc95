//! Live stream of block-layer events for a recording. It reads the kernel's buffers periodically,
//! page by page, and returns the events in order of time.

use super::instance::{Tracefs, TracefsInstance};
use super::pages::{RecordField, RingBufferPageLayout};
use super::pairs::{RequestEvent, RequestMatcher, RequestStep, RwbsFlags};
use super::{BlockEventsError, PROCESSOR_BUFFER_KIB_MAX, processor_buffer_kib};
use crate::host::clock::monotonic_now;
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
pub struct RecordedDisk {
    /// Disk with the request queue that serves the recorded requests.
    pub disk: BlockDevice,
    /// Partition on the disk, as first sector and number of sectors of 512 bytes. Only requests
    /// that start in it are recorded, at offsets relative to its start. `None` records the whole
    /// disk.
    pub partition_sectors: Option<(u64, u64)>,
}

const RECORDED_EVENT_NAMES: [(&str, RequestStep); 3] = [
    ("block/block_rq_issue", RequestStep::Issued),
    ("block/block_rq_requeue", RequestStep::Requeued),
    ("block/block_rq_complete", RequestStep::Completed),
];

/// Age at which an event is passed on. Until then another processor may still record an earlier
/// event.
const REORDER_DELAY: Duration = Duration::from_millis(50);

/// Interval between calls of [`BlockRequestStream::poll_events`]. The buffers have room for ten times as much at
/// a million requests a second.
pub const POLL_INTERVAL: Duration = Duration::from_millis(100);

const LOSS_CHECK_INTERVAL: Nanoseconds = Nanoseconds::from_millis(1000);

/// Stream of the requests of some disks, available while the disks work.
#[derive(Debug)]
pub struct BlockRequestStream {
    tracefs_instance: TracefsInstance,
    recorded_ranges: Vec<RecordedRange>,
    page_layout: RingBufferPageLayout,
    event_formats: EventFormats,
    ring_buffers: Vec<OwnedFd>,
    page_buffer: Vec<u8>,
    /// Events that are too recent to be passed on in order.
    pending_events: Vec<RequestEvent>,
    request_matcher: RequestMatcher,
    /// Number of lost events that were reported.
    reported_loss_count: u64,
    last_loss_check: Nanoseconds,
    /// Time of the latest event that was passed on.
    latest_reported_time: Nanoseconds,
}

impl BlockRequestStream {
    /// Prepares a stream of these disks' requests.
    ///
    /// # Errors
    ///
    /// The user is not root, `listened` is empty, a disk has no request queue, or the kernel offers
    /// no events.
    pub fn record_disks(listened: &[RecordedDisk]) -> Result<Self, BlockEventsError> {
        if !crate::host::is_root() {
            return Err(BlockEventsError::NotRoot);
        }
        if listened.is_empty() {
            return Err(BlockEventsError::NoBlockDevice);
        }
        for one in listened {
            if !one.disk.sysfs_path().join("mq").exists() {
                return Err(BlockEventsError::NoRequestQueue(one.disk.name().to_owned()));
            }
        }
        let tracefs = Tracefs::open_tracefs().map_err(BlockEventsError::NoTracefs)?;
        for name in tracefs.abandoned_names() {
            let _ = tracefs.remove_instance(&name);
        }
        let instance = tracefs.make_instance()?;
        let header = instance.read_text_file("events/header_page")?;
        let layout = RingBufferPageLayout::parse_layout(&header)
            .ok_or_else(|| instance.format_error("events/header_page", &header))?;
        let events = EventFormats::read_formats(&instance)?;
        let mut stream = Self {
            page_buffer: vec![0; layout.page_size_bytes()],
            tracefs_instance: instance,
            recorded_ranges: listened
                .iter()
                .map(RecordedRange::from_recorded_disk)
                .collect(),
            page_layout: layout,
            event_formats: events,
            ring_buffers: Vec::new(),
            pending_events: Vec::new(),
            request_matcher: RequestMatcher::default(),
            reported_loss_count: 0,
            last_loss_check: Nanoseconds::ZERO,
            latest_reported_time: Nanoseconds::ZERO,
        };
        stream.enable_events()?;
        stream.ring_buffers = stream.tracefs_instance.open_raw_buffers()?;
        Ok(stream)
    }

    /// Selects the events to record. Recording itself stays off.
    fn enable_events(&self) -> Result<(), BlockEventsError> {
        let instance = &self.tracefs_instance;
        instance.write_file("tracing_on", "0")?;
        instance.write_file("trace_clock", "mono")?;
        // What is there stays, and what has no room is lost and counted.
        instance.write_file("options/overwrite", "0")?;
        instance.write_file("buffer_size_kb", &processor_buffer_kib().to_string())?;
        let dev = |one: &RecordedRange| format!("dev == {}", one.kernel_device_number);
        let devices: Vec<String> = self.recorded_ranges.iter().map(dev).collect();
        for (event, _) in RECORDED_EVENT_NAMES {
            instance.enable_event(event, &devices.join(" || "))?;
        }
        Ok(())
    }

    /// Discards earlier events, starts recording and returns the start time.
    ///
    /// # Errors
    ///
    /// Errors of tracefs.
    pub fn begin_recording(&mut self) -> Result<Nanoseconds, BlockEventsError> {
        self.pending_events.clear();
        self.request_matcher.discard_in_flight();
        self.tracefs_instance.write_file("trace", "")?;
        self.reported_loss_count = self.tracefs_instance.lost_event_count()?;
        self.last_loss_check = monotonic_now();
        let now = monotonic_now();
        self.tracefs_instance.write_file("tracing_on", "1")?;
        Ok(now)
    }

    /// Appends the events since the last call, except those that are too recent.
    ///
    /// # Errors
    ///
    /// Errors of tracefs, and a malformed page.
    pub fn poll_events(&mut self, events: &mut Vec<DeviceEvent>) -> Result<(), BlockEventsError> {
        let now = monotonic_now();
        let settled = Nanoseconds(now.0.saturating_sub(REORDER_DELAY.as_nanos() as u64));
        self.read_buffers()?;
        self.report_until(settled, events);
        if now.since(self.last_loss_check) >= LOSS_CHECK_INTERVAL {
            self.report_losses(now, events)?;
        }
        Ok(())
    }

    /// Stops recording, appends all remaining events and returns the end time.
    ///
    /// # Errors
    ///
    /// As [`Self::poll_events`].
    pub fn end_recording(
        &mut self,
        events: &mut Vec<DeviceEvent>,
    ) -> Result<Nanoseconds, BlockEventsError> {
        self.tracefs_instance.write_file("tracing_on", "0")?;
        let now = monotonic_now();
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
    pub fn remove_instance(mut self) -> Result<(), BlockEventsError> {
        self.ring_buffers.clear();
        self.tracefs_instance.remove_instance()
    }

    /// Moves all events from the kernel's buffers to `pending`.
    fn read_buffers(&mut self) -> Result<(), BlockEventsError> {
        let Self {
            tracefs_instance: instance,
            recorded_ranges: ranges,
            page_layout: layout,
            event_formats: events,
            ring_buffers: buffers,
            page_buffer: page,
            pending_events: pending,
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
                    pending.extend(events.parse_event(Nanoseconds(at), data, ranges));
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
        self.pending_events.sort_by_key(|event| event.time);
        let settled = self
            .pending_events
            .partition_point(|event| event.time <= until);
        for mut event in self.pending_events.drain(..settled) {
            // One that was written down too late is told late.
            event.time = event.time.max(self.latest_reported_time);
            self.latest_reported_time = event.time;
            events.extend(self.request_matcher.process_event(&event));
        }
    }

    fn report_losses(
        &mut self,
        now: Nanoseconds,
        events: &mut Vec<DeviceEvent>,
    ) -> Result<(), BlockEventsError> {
        let lost = self.tracefs_instance.lost_event_count()?;
        let more = lost.saturating_sub(self.reported_loss_count);
        (self.reported_loss_count, self.last_loss_check) = (lost, now);
        if more > 0 {
            let at = self.latest_reported_time;
            let step = DeviceStep::EventsLost(more);
            events.push(DeviceEvent {
                event_time: at,
                event_step: step,
            });
            // Whose completion was among them would take that of the next request there.
            self.request_matcher.discard_in_flight();
        }
        Ok(())
    }
}

/// Recorded disk or partition in the kernel's terms.
#[derive(Clone, Copy, Debug)]
struct RecordedRange {
    /// Device number of the disk in the kernel's internal form, with 20 bits for the minor number.
    kernel_device_number: u64,
    partition_sectors: Option<(u64, u64)>,
}

impl RecordedRange {
    fn from_recorded_disk(one: &RecordedDisk) -> Self {
        let number = one.disk.device_number();
        Self {
            kernel_device_number: u64::from(number.major) << 20 | u64::from(number.minor),
            partition_sectors: one.partition_sectors,
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
pub fn parse_pages(
    [pages, events @ ..]: [&str; 4],
    page: &[u8],
) -> Result<Vec<DeviceEvent>, &'static str> {
    let layout =
        RingBufferPageLayout::parse_layout(pages).ok_or("the description of pages is missing")?;
    let mut kinds = EventFormats::default();
    for (text, (_, step)) in events.iter().zip(RECORDED_EVENT_NAMES) {
        kinds
            .add_format(step, text)
            .ok_or("the description of an event is missing")?;
    }
    let ranges = [None, Some((1 << 20, 1 << 20))].map(|sectors| RecordedRange {
        kernel_device_number: 254 << 20,
        partition_sectors: sectors,
    });
    let (mut found, mut matcher) = (Vec::new(), RequestMatcher::default());
    layout.for_each_event(page, |at, data| {
        let event = kinds.parse_event(Nanoseconds(at), data, &ranges);
        found.extend(event.and_then(|event| matcher.process_event(&event)));
    })?;
    Ok(found)
}

/// Binary layouts of the kinds of events that the stream records.
#[derive(Debug, Default)]
struct EventFormats {
    /// Field with the kind's number, at the start of every event.
    kind_field: Option<RecordField>,
    formats_by_kind: BTreeMap<u64, EventFormat>,
}

#[derive(Debug)]
struct EventFormat {
    request_step: RequestStep,
    device_field: RecordField,
    sector_field: RecordField,
    sectors_field: RecordField,
    rwbs_field: RecordField,
    /// Field with the error number, in completion events only.
    error_field: Option<RecordField>,
}

impl EventFormats {
    fn read_formats(instance: &TracefsInstance) -> Result<Self, BlockEventsError> {
        let mut events = Self::default();
        for (event, step) in RECORDED_EVENT_NAMES {
            let file = format!("events/{event}/format");
            let text = instance.read_text_file(&file)?;
            let added = events.add_format(step, &text);
            added.ok_or_else(|| instance.format_error(&file, &text))?;
        }
        Ok(events)
    }

    fn add_format(&mut self, step: RequestStep, text: &str) -> Option<()> {
        let (number, kind) = EventFormat::parse_format(step, text)?;
        self.kind_field = Some(RecordField::parse_field("common_type", text)?);
        self.formats_by_kind.insert(number, kind);
        Some(())
    }

    /// Parses an event of a recorded disk; `None` for other disks and kinds.
    fn parse_event(
        &self,
        at: Nanoseconds,
        data: &[u8],
        ranges: &[RecordedRange],
    ) -> Option<RequestEvent> {
        let kind = self
            .formats_by_kind
            .get(&self.kind_field?.read_unsigned(data)?)?;
        let dev = kind.device_field.read_unsigned(data)?;
        let rwbs = RwbsFlags::parse_letters(kind.rwbs_field.bytes_of_field(data)?)?;
        let (sector, sectors) = (
            kind.sector_field.read_unsigned(data)?,
            kind.sectors_field.read_unsigned(data)?,
        );
        let moves = sectors > 0;
        let (device, sector) = (0..).zip(ranges).find_map(|(place, one)| {
            let here = one.kernel_device_number == dev;
            let from = match one.partition_sectors {
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
        let error = kind.error_field.and_then(|error| error.read_unsigned(data));
        Some(RequestEvent {
            time: at,
            request_step: kind.request_step,
            device_index: device,
            rwbs_flags: rwbs,
            sector,
            sector_count: sectors,
            // Negative, of four bytes.
            errno: error.map_or(0, |error| (error as u32 as i32).unsigned_abs() as u16),
        })
    }
}

impl EventFormat {
    /// Parses the layout of an event from its description, and returns it with the kind's number.
    fn parse_format(step: RequestStep, text: &str) -> Option<(u64, Self)> {
        let number = text.lines().find_map(|line| line.strip_prefix("ID: "));
        let field = |name| RecordField::parse_field(name, text);
        let error = match step {
            // `errors` before Linux 4.14.
            RequestStep::Completed => Some(field("error").or_else(|| field("errors"))?),
            RequestStep::Issued | RequestStep::Requeued => None,
        };
        let kind = Self {
            request_step: step,
            device_field: field("dev")?,
            sector_field: field("sector")?,
            sectors_field: field("nr_sector")?,
            rwbs_field: field("rwbs")?,
            error_field: error,
        };
        Some((number?.trim().parse().ok()?, kind))
    }
}

/// Opens a processor's raw event buffer for reading without blocking.
pub(super) fn open_raw_buffer(path: &std::path::Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}
