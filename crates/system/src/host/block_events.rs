//! What the kernel's block layer and scheduler do during timed parts, event by
//! event, by way of tracefs (the kernel's documentation, trace/ftrace.rst).
//!
//! The events go to a buffer of this process's own, an *instance* of tracefs:
//! nothing that anybody else records is touched, and nothing is mounted where
//! others could see it. It goes when its owner does; what a killed owner left
//! is recognised by its name, and removed by the next one and by
//! `diskperf clean`.
//!
//! The kernel prints whole microseconds, of the clock that also times the
//! workers. Events that it could not keep are counted, and a trace that has
//! lost any is told from one that has not.

mod instance;
mod lines;
mod pages;
mod pairs;
mod requests;
mod stream;
mod threads;

#[doc(hidden)]
pub use stream::paged;
pub use stream::{BlockStream, Listened, POLL_EVERY};

use super::device::{BlockDevice, DeviceNumber};
use diskperf_timeline::BlockTrace;
use diskperf_timeline::block::{BlockRequest, Switch, TimedPart};
use instance::{Instance, Tracefs, USUAL_PLACE};
use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why the events of a device cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum BlockEventsError {
    /// Only root may.
    #[error("block-layer events need root: use sudo")]
    NotRoot,
    /// The file system is in memory, on a network, or made of others.
    #[error("no block device is underneath")]
    NoDevice,
    /// What comes to the device is done at once, by the processor.
    #[error("{0} has no request queue")]
    NoQueue(String),
    /// Not compiled in, or locked down.
    #[error("this kernel has no tracefs to be used: {0}")]
    NoTracefs(io::Error),
    /// A file of tracefs is missing, or does not take what is written.
    #[error("{file} of tracefs: {source}")]
    Tracefs {
        /// Which.
        file: String,
        /// Why.
        source: io::Error,
    },
}

/// Events of the block layer: what comes to it, what goes to the driver, what
/// comes back to its queue, and what is done.
const OF_DEVICES: [&str; 4] = [
    "block/block_bio_queue",
    "block/block_rq_issue",
    "block/block_rq_requeue",
    "block/block_rq_complete",
];

/// All processors' buffers together take no more than this.
const BUFFERS_KIB: usize = 256 << 10;
/// And each of them no more than this, which is some 400,000 events.
const BUFFER_KIB: usize = 32 << 10;

/// What each of them takes.
fn buffer_kib() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (BUFFERS_KIB / processors).clamp(1 << 10, BUFFER_KIB)
}

/// Listens to some devices, and to the workers that ask for it.
#[derive(Debug)]
pub struct BlockEvents {
    instance: Instance,
    /// The places of the disks, and of what else their requests may be known
    /// by before they reach the queue: their partitions.
    numbers: BTreeMap<DeviceNumber, u32>,
    devices: Vec<String>,
    /// What the workers' threads are called.
    threads: String,
}

impl BlockEvents {
    /// Makes ready to listen to these disks.
    ///
    /// # Errors
    /// Not root, no disks, or a kernel that does not tell.
    pub fn of(disks: &[BlockDevice]) -> Result<Self, BlockEventsError> {
        if !super::is_root() {
            return Err(BlockEventsError::NotRoot);
        }
        if disks.is_empty() {
            return Err(BlockEventsError::NoDevice);
        }
        let mut numbers = BTreeMap::new();
        for (place, disk) in disks.iter().enumerate() {
            if !disk.sysfs().join("mq").exists() {
                return Err(BlockEventsError::NoQueue(disk.name().to_owned()));
            }
            let partitions = disk.partitions().unwrap_or_default();
            for device in partitions.iter().chain([disk]) {
                numbers.insert(device.number(), place as u32);
            }
        }
        let tracefs = Tracefs::open().map_err(BlockEventsError::NoTracefs)?;
        for name in tracefs.abandoned() {
            let _ = tracefs.remove(&name);
        }
        let events = Self {
            instance: tracefs.make_instance()?,
            numbers,
            devices: disks.iter().map(|disk| disk.name().to_owned()).collect(),
            // At most 15 letters, of which a number takes 7.
            threads: format!("dpio-{}", std::process::id()),
        };
        events.choose()?;
        Ok(events)
    }

    /// Chooses what is recorded; nothing is yet.
    fn choose(&self) -> Result<(), BlockEventsError> {
        let instance = &self.instance;
        instance.write("tracing_on", "0")?;
        instance.write("trace_clock", "mono")?;
        instance.write("buffer_size_kb", &buffer_kib().to_string())?;
        let dev = |number: &DeviceNumber| {
            // The kernel's own number has 20 bits for the minor one.
            format!("dev == {}", (number.major << 20) | number.minor)
        };
        let devices: Vec<String> = self.numbers.keys().map(dev).collect();
        for event in OF_DEVICES {
            instance.enable(event, &devices.join(" || "))?;
        }
        let name = &self.threads;
        let switched = format!("prev_comm == \"{name}\" || next_comm == \"{name}\"");
        instance.enable("sched/sched_switch", &switched)?;
        let of_ours = format!("comm == \"{name}\"");
        instance.enable("sched/sched_waking", &of_ours)?;
        instance.enable("sched/sched_stat_runtime", &of_ours)
    }

    /// Removes the buffer. A drop does that too, and says nothing.
    ///
    /// # Errors
    /// It stays, and `diskperf clean` finds it.
    pub fn close(self) -> Result<(), BlockEventsError> {
        self.instance.remove()
    }

    /// The disks' names.
    pub fn devices(&self) -> &[String] {
        &self.devices
    }

    /// Has what the scheduler does with the calling thread recorded; returns
    /// the thread's number.
    ///
    /// # Errors
    /// The kernel does not let it have another name.
    pub fn watch_this_thread(&self) -> io::Result<u32> {
        let name = CString::new(self.threads.clone()).map_err(io::Error::other)?;
        rustix::thread::set_name(&name)?;
        Ok(rustix::thread::gettid().as_raw_nonzero().get() as u32)
    }

    /// Forgets all, and records from now on.
    ///
    /// # Errors
    /// Those of tracefs.
    pub fn begin(&self) -> Result<(), BlockEventsError> {
        self.instance.write("trace", "")?;
        self.instance.write("tracing_on", "1")
    }

    /// Ends recording; what happened since it began, in the timed parts of
    /// these workers.
    ///
    /// # Errors
    /// Those of tracefs, and a line that is not of its form.
    pub fn end(&self, workers: Vec<TimedPart>) -> Result<BlockTrace, BlockEventsError> {
        self.instance.write("tracing_on", "0")?;
        let lost_events = self.instance.lost_events()?;
        let text = match lost_events {
            0 => self.instance.read("trace")?,
            _ => Vec::new(),
        };
        let told = told(&text, &self.numbers, &self.threads);
        let (requests, switches) = told.map_err(|error| BlockEventsError::Tracefs {
            file: "trace".to_owned(),
            source: error,
        })?;
        Ok(BlockTrace {
            devices: self.devices.clone(),
            requests,
            workers,
            switches,
            lost_events,
        })
    }
}

/// What the lines of a trace tell of these devices and of threads of that name.
///
/// # Errors
/// A line that is not of its form.
#[doc(hidden)]
pub fn told(
    text: &[u8],
    numbers: &BTreeMap<DeviceNumber, u32>,
    threads: &str,
) -> io::Result<(Vec<BlockRequest>, Vec<Switch>)> {
    let mut of_threads = threads::Threads::default();
    let mut requests = requests::Requests::default();
    for line in text.split(|byte| *byte == b'\n') {
        match lines::parse(line, threads)? {
            None => {}
            Some(lines::Line::Switches(all)) => {
                all.into_iter()
                    .flatten()
                    .for_each(|one| of_threads.switch(one));
            }
            Some(lines::Line::Accounted(accounted)) => of_threads.accounted(&accounted),
            Some(lines::Line::Block(event)) => {
                if let Some(place) = numbers.get(&event.device) {
                    requests.event(*place, &event);
                }
            }
        }
    }
    Ok((requests.completed(), of_threads.into_switches()))
}

/// An instance of an owner that runs no more.
pub struct AbandonedInstance {
    tracefs: Arc<Tracefs>,
    name: OsString,
}

impl AbandonedInstance {
    /// Where it is, where tracefs is mounted as usual.
    pub fn path(&self) -> PathBuf {
        Path::new(USUAL_PLACE).join(&self.name)
    }

    /// Removes it.
    ///
    /// # Errors
    /// It is in use.
    pub fn remove(self) -> io::Result<()> {
        self.tracefs.remove(&self.name)
    }
}

/// The instances of owners that run no more; none where there is no tracefs, or
/// no right to look.
pub fn abandoned() -> Vec<AbandonedInstance> {
    if !super::is_root() {
        return Vec::new();
    }
    let Ok(tracefs) = Tracefs::open() else {
        return Vec::new();
    };
    let tracefs = Arc::new(tracefs);
    let names = tracefs.abandoned().into_iter();
    names
        .map(|name| AbandonedInstance {
            tracefs: Arc::clone(&tracefs),
            name,
        })
        .collect()
}
