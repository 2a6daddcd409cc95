//! Events of the block layer while they happen, for a recording: taken from the kernel's
//! buffers every now and then, page by page, and told in the order of time.

use super::instance::{Instance, Tracefs};
use super::pages::{Field, PageLayout};
use super::pairs::{Letters, Pairs, Step, Stepped};
use super::{BUFFER_KIB, BlockEventsError, buffer_kib};
use crate::host::clock::monotonic;
use crate::host::device::BlockDevice;
use diskperf_timeline::{DeviceEvent, DeviceStep, Nanoseconds};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// A disk, or a part of one, whose requests are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listened {
    /// The disk, which has a request queue.
    pub disk: BlockDevice,
    /// Of a part, its first sector on the disk and how many it has, of 512 bytes: only
    /// requests that begin there are told, by their places in it.
    pub sectors: Option<(u64, u64)>,
}

/// The events that are listened to.
const EVENTS: [(&str, Step); 3] = [
    ("block/block_rq_issue", Step::Issued),
    ("block/block_rq_requeue", Step::Requeued),
    ("block/block_rq_complete", Step::Completed),
];

/// An event is told when it is so old: until then another processor may still write down
/// an earlier one.
const SETTLED: Duration = Duration::from_millis(50);

/// How often [`BlockStream::poll`] is to be called: buffers have room for ten times as
/// much at a million requests a second.
pub const POLL_EVERY: Duration = Duration::from_millis(100);

/// How often the kernel is asked what it lost.
const LOSSES_EVERY: Nanoseconds = Nanoseconds::from_millis(1000);

/// Requests of some disks, told while they happen.
#[derive(Debug)]
pub struct BlockStream {
    instance: Instance,
    listened: Vec<Range>,
    layout: PageLayout,
    events: Events,
    /// A buffer of each processor.
    buffers: Vec<OwnedFd>,
    page: Vec<u8>,
    /// What is not settled.
    held: Vec<Stepped>,
    pairs: Pairs,
    /// What of the lost events was told, and when the kernel was asked.
    lost: (u64, Nanoseconds),
    /// The latest time that was told.
    told: Nanoseconds,
}

impl BlockStream {
    /// Makes ready to listen to these.
    ///
    /// # Errors
    /// Not root, none, one without a request queue, or a kernel that does not tell.
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
        for name in tracefs.abandoned() {
            let _ = tracefs.remove(&name);
        }
        let instance = tracefs.make_instance()?;
        let header = instance.read_text("events/header_page")?;
        let layout = PageLayout::parse(&header)
            .ok_or_else(|| instance.unreadable("events/header_page", &header))?;
        let events = Events::read(&instance)?;
        let mut stream = Self {
            page: vec![0; layout.page_bytes()],
            instance,
            listened: listened.iter().map(Range::of).collect(),
            layout,
            events,
            buffers: Vec::new(),
            held: Vec::new(),
            pairs: Pairs::default(),
            lost: (0, Nanoseconds::ZERO),
            told: Nanoseconds::ZERO,
        };
        stream.choose()?;
        stream.buffers = stream.instance.raw_buffers()?;
        Ok(stream)
    }

    /// Chooses what is recorded; nothing is yet.
    fn choose(&self) -> Result<(), BlockEventsError> {
        let instance = &self.instance;
        instance.write("tracing_on", "0")?;
        instance.write("trace_clock", "mono")?;
        // What is there stays, and what has no room is lost and counted.
        instance.write("options/overwrite", "0")?;
        instance.write("buffer_size_kb", &buffer_kib().to_string())?;
        let dev = |one: &Range| format!("dev == {}", one.dev);
        let devices: Vec<String> = self.listened.iter().map(dev).collect();
        for (event, _) in EVENTS {
            instance.enable(event, &devices.join(" || "))?;
        }
        Ok(())
    }

    /// Forgets all, and listens from now on.
    ///
    /// # Errors
    /// Those of tracefs.
    pub fn begin(&mut self) -> Result<Nanoseconds, BlockEventsError> {
        self.held.clear();
        self.pairs.forget();
        self.instance.write("trace", "")?;
        self.lost = (self.instance.lost_events()?, monotonic());
        let now = monotonic();
        self.instance.write("tracing_on", "1")?;
        Ok(now)
    }

    /// Tells what happened since, but for what is not settled.
    ///
    /// # Errors
    /// Those of tracefs, and what is not of its form.
    pub fn poll(&mut self, events: &mut Vec<DeviceEvent>) -> Result<(), BlockEventsError> {
        let now = monotonic();
        let settled = Nanoseconds(now.0.saturating_sub(SETTLED.as_nanos() as u64));
        self.drain()?;
        self.tell(settled, events);
        if now.since(self.lost.1) >= LOSSES_EVERY {
            self.tell_losses(now, events)?;
        }
        Ok(())
    }

    /// Stops listening, and tells all that is left.
    ///
    /// # Errors
    /// As [`Self::poll`].
    pub fn end(&mut self, events: &mut Vec<DeviceEvent>) -> Result<Nanoseconds, BlockEventsError> {
        self.instance.write("tracing_on", "0")?;
        let now = monotonic();
        self.drain()?;
        self.tell(Nanoseconds(u64::MAX), events);
        self.tell_losses(now, events)?;
        Ok(now)
    }

    /// Removes the buffers. A drop does that too, and says nothing.
    ///
    /// # Errors
    /// They stay, and `diskperf clean` finds them.
    pub fn close(mut self) -> Result<(), BlockEventsError> {
        self.buffers.clear();
        self.instance.remove()
    }

    /// Takes all that is in the buffers.
    fn drain(&mut self) -> Result<(), BlockEventsError> {
        let Self {
            instance,
            listened,
            layout,
            events,
            buffers,
            page,
            held,
            ..
        } = self;
        // No more than there was room for: a processor may write as fast as this reads.
        let most = 1024 * BUFFER_KIB / page.len();
        for buffer in buffers {
            for _ in 0..most {
                let bytes = match rustix::io::read(&*buffer, &mut page[..]) {
                    Ok(0) | Err(Errno::AGAIN) => break,
                    Ok(bytes) => bytes,
                    Err(Errno::INTR) => continue,
                    Err(error) => return Err(instance.failed("per_cpu", error.into())),
                };
                let told = layout.each(&page[..bytes], |at, data| {
                    held.extend(events.parse(Nanoseconds(at), data, listened));
                });
                told.map_err(|why| {
                    let why = io::Error::new(io::ErrorKind::InvalidData, why);
                    instance.failed("per_cpu", why)
                })?;
            }
        }
        Ok(())
    }

    /// Tells what happened until a moment, in the order of time.
    fn tell(&mut self, until: Nanoseconds, events: &mut Vec<DeviceEvent>) {
        self.held.sort_by_key(|event| event.at);
        let settled = self.held.partition_point(|event| event.at <= until);
        for mut event in self.held.drain(..settled) {
            // One that was written down too late is told late.
            event.at = event.at.max(self.told);
            self.told = event.at;
            events.extend(self.pairs.event(&event));
        }
    }

    fn tell_losses(
        &mut self,
        now: Nanoseconds,
        events: &mut Vec<DeviceEvent>,
    ) -> Result<(), BlockEventsError> {
        let lost = self.instance.lost_events()?;
        let more = lost.saturating_sub(self.lost.0);
        self.lost = (lost, now);
        if more > 0 {
            let at = self.told;
            let step = DeviceStep::Lost(more);
            events.push(DeviceEvent { at, step });
            // Whose completion was among them would take that of the next request there.
            self.pairs.forget();
        }
        Ok(())
    }
}

/// What is listened to, as the kernel has it.
#[derive(Clone, Copy, Debug)]
struct Range {
    /// The disk's number: 20 bits for the minor one.
    dev: u64,
    sectors: Option<(u64, u64)>,
}

impl Range {
    fn of(one: &Listened) -> Self {
        let number = one.disk.number();
        Self {
            dev: u64::from(number.major) << 20 | u64::from(number.minor),
            sectors: one.sectors,
        }
    }
}

/// Parses a page, after the descriptions of pages and of the three kinds of events, and
/// pairs what is in it: for whoever tries what bytes do.
///
/// # Errors
///
/// What is no description or no page, in words.
#[doc(hidden)]
pub fn paged(
    [pages, events @ ..]: [&str; 4],
    page: &[u8],
) -> Result<Vec<DeviceEvent>, &'static str> {
    let layout = PageLayout::parse(pages).ok_or("no description of pages")?;
    let mut kinds = Events::default();
    for (text, (_, step)) in events.iter().zip(EVENTS) {
        kinds.add(step, text).ok_or("no description of an event")?;
    }
    let ranges = [None, Some((1 << 20, 1 << 20))].map(|sectors| Range {
        dev: 254 << 20,
        sectors,
    });
    let (mut found, mut pairs) = (Vec::new(), Pairs::default());
    layout.each(page, |at, data| {
        let event = kinds.parse(Nanoseconds(at), data, &ranges);
        found.extend(event.and_then(|event| pairs.event(&event)));
    })?;
    Ok(found)
}

/// How the events are laid out.
#[derive(Debug, Default)]
struct Events {
    /// The number of an event's kind, which all begin with.
    kind: Option<Field>,
    kinds: BTreeMap<u64, Kind>,
}

#[derive(Debug)]
struct Kind {
    step: Step,
    dev: Field,
    sector: Field,
    sectors: Field,
    letters: Field,
    /// Of a completion.
    error: Option<Field>,
}

impl Events {
    fn read(instance: &Instance) -> Result<Self, BlockEventsError> {
        let mut events = Self::default();
        for (event, step) in EVENTS {
            let file = format!("events/{event}/format");
            let text = instance.read_text(&file)?;
            let added = events.add(step, &text);
            added.ok_or_else(|| instance.unreadable(&file, &text))?;
        }
        Ok(events)
    }

    /// Adds a kind by its description.
    fn add(&mut self, step: Step, text: &str) -> Option<()> {
        let (number, kind) = Kind::parse(step, text)?;
        self.kind = Some(Field::named("common_type", text)?);
        self.kinds.insert(number, kind);
        Some(())
    }

    /// What an event says of a disk that is listened to.
    fn parse(&self, at: Nanoseconds, data: &[u8], ranges: &[Range]) -> Option<Stepped> {
        let kind = self.kinds.get(&self.kind?.number(data)?)?;
        let dev = kind.dev.number(data)?;
        let letters = Letters::parse(kind.letters.of(data)?)?;
        let (sector, sectors) = (kind.sector.number(data)?, kind.sectors.number(data)?);
        let moves = sectors > 0;
        let (device, sector) = (0..).zip(ranges).find_map(|(place, one)| {
            let here = one.dev == dev;
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
        let error = kind.error.and_then(|error| error.number(data));
        Some(Stepped {
            at,
            step: kind.step,
            device,
            letters,
            sector,
            sectors,
            // Negative, of four bytes.
            errno: error.map_or(0, |error| (error as u32 as i32).unsigned_abs() as u16),
        })
    }
}

impl Kind {
    /// From the description of an event, with its number.
    fn parse(step: Step, text: &str) -> Option<(u64, Self)> {
        let number = text.lines().find_map(|line| line.strip_prefix("ID: "));
        let field = |name| Field::named(name, text);
        let error = match step {
            // `errors` before Linux 4.14.
            Step::Completed => Some(field("error").or_else(|| field("errors"))?),
            Step::Issued | Step::Requeued => None,
        };
        let kind = Self {
            step,
            dev: field("dev")?,
            sector: field("sector")?,
            sectors: field("nr_sector")?,
            letters: field("rwbs")?,
            error,
        };
        Some((number?.trim().parse().ok()?, kind))
    }
}

/// A buffer of a processor's, not to be waited for.
pub(super) fn open_raw(path: &std::path::Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}
