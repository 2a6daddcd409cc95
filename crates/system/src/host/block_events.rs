//! Recording of block-layer and scheduler events during timed parts, through tracefs (the kernel's
//! documentation, trace/ftrace.rst).
//!
//! The events go to a tracefs *instance*, a buffer of this process alone. The recording disturbs no
//! other user of tracefs and mounts nothing where others could see it. The instance disappears with
//! its owner. An instance that a killed owner left is recognised by its name; the next recording or
//! `diskperf clean` removes it.
//!
//! The kernel prints whole microseconds, of the clock that also times the workers. It counts lost
//! events, so a complete trace is distinguishable from an incomplete one.

mod instance;
mod lines;
mod pages;
mod pairs;
mod requests;
mod stream;
mod threads;

#[doc(hidden)]
pub use stream::parse_pages;
pub use stream::{BlockRequestStream, POLL_INTERVAL, RecordedDisk};

use super::device::{BlockDevice, DeviceNumber};
use diskperf_timeline::BlockTrace;
use diskperf_timeline::block::{BlockRequest, ThreadSwitch, TimedPart};
use instance::{DEFAULT_INSTANCES_PATH, Tracefs, TracefsInstance};
use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reason why the events of a device cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum BlockEventsError {
    /// Missing privilege: only root may record events.
    #[error("block-layer events need root: use sudo")]
    NotRoot,
    /// No block device underneath: the file system is in memory, on a network, or stacked on
    /// others.
    #[error("no block device is underneath")]
    NoBlockDevice,
    /// Device without a request queue: the processor completes its requests immediately.
    #[error("{0} has no request queue")]
    NoRequestQueue(String),
    /// Tracefs is unavailable: not compiled in, or locked down.
    #[error("this kernel has no usable tracefs: {0}")]
    NoTracefs(io::Error),
    /// Tracefs file that is missing or rejects a value.
    #[error("tracefs file {file}: {source}")]
    TracefsAccess {
        /// Path or name of the tracefs file.
        file: String,
        /// Error that the operating system returned.
        source: io::Error,
    },
}

/// Block-layer events to record: arrival of a bio, issue to the driver, requeue, and completion.
const DEVICE_EVENTS: [&str; 4] = [
    "block/block_bio_queue",
    "block/block_rq_issue",
    "block/block_rq_requeue",
    "block/block_rq_complete",
];

/// Maximum size of the event buffers of all processors together, in KiB.
const TOTAL_BUFFER_KIB_MAX: usize = 256 << 10;
/// Maximum size of the event buffer of one processor, in KiB; room for some 400,000 events.
const PROCESSOR_BUFFER_KIB_MAX: usize = 32 << 10;

fn processor_buffer_kib() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (TOTAL_BUFFER_KIB_MAX / processors).clamp(1 << 10, PROCESSOR_BUFFER_KIB_MAX)
}

/// Recorder of the events of some disks and of the workers that request it.
#[derive(Debug)]
pub struct BlockEventRecorder {
    tracefs_instance: TracefsInstance,
    /// Disk index by device number, for the disks and their partitions. A bio carries the
    /// partition's number before it reaches the queue.
    device_indices: BTreeMap<DeviceNumber, u32>,
    device_names: Vec<String>,
    /// Common name of the workers' threads, which the event filters match.
    thread_name: String,
}

impl BlockEventRecorder {
    /// Prepares a recording of these disks' events.
    ///
    /// # Errors
    ///
    /// The user is not root, there are no disks, or the kernel offers no events.
    pub fn record_disks(disks: &[BlockDevice]) -> Result<Self, BlockEventsError> {
        if !super::is_root() {
            return Err(BlockEventsError::NotRoot);
        }
        if disks.is_empty() {
            return Err(BlockEventsError::NoBlockDevice);
        }
        let mut numbers = BTreeMap::new();
        for (place, disk) in disks.iter().enumerate() {
            if !disk.sysfs_path().join("mq").exists() {
                return Err(BlockEventsError::NoRequestQueue(disk.name().to_owned()));
            }
            let partitions = disk.list_partitions().unwrap_or_default();
            for device in partitions.iter().chain([disk]) {
                numbers.insert(device.device_number(), place as u32);
            }
        }
        let tracefs = Tracefs::open_tracefs().map_err(BlockEventsError::NoTracefs)?;
        for name in tracefs.abandoned_names() {
            let _ = tracefs.remove_instance(&name);
        }
        let events = Self {
            tracefs_instance: tracefs.make_instance()?,
            device_indices: numbers,
            device_names: disks.iter().map(|disk| disk.name().to_owned()).collect(),
            // At most 15 letters, of which a number takes 7.
            thread_name: format!("dpio-{}", std::process::id()),
        };
        events.enable_events()?;
        Ok(events)
    }

    /// Selects the events to record. Recording itself stays off.
    fn enable_events(&self) -> Result<(), BlockEventsError> {
        let instance = &self.tracefs_instance;
        instance.write_file("tracing_on", "0")?;
        instance.write_file("trace_clock", "mono")?;
        instance.write_file("buffer_size_kb", &processor_buffer_kib().to_string())?;
        let dev = |number: &DeviceNumber| {
            // The kernel's own number has 20 bits for the minor one.
            format!("dev == {}", (number.major << 20) | number.minor)
        };
        let devices: Vec<String> = self.device_indices.keys().map(dev).collect();
        for event in DEVICE_EVENTS {
            instance.enable_event(event, &devices.join(" || "))?;
        }
        let name = &self.thread_name;
        let switched = format!("prev_comm == \"{name}\" || next_comm == \"{name}\"");
        instance.enable_event("sched/sched_switch", &switched)?;
        let of_ours = format!("comm == \"{name}\"");
        instance.enable_event("sched/sched_waking", &of_ours)?;
        instance.enable_event("sched/sched_stat_runtime", &of_ours)
    }

    /// Removes the event buffer. Dropping the recorder removes it too, without reporting errors.
    ///
    /// # Errors
    ///
    /// The buffer cannot be removed; `diskperf clean` finds it later.
    pub fn remove_instance(self) -> Result<(), BlockEventsError> {
        self.tracefs_instance.remove_instance()
    }

    /// Returns the names of the recorded disks.
    pub fn device_names(&self) -> &[String] {
        &self.device_names
    }

    /// Includes the scheduler events of the calling thread in the recording, and returns the
    /// thread's id.
    ///
    /// # Errors
    ///
    /// The kernel refuses to rename the thread.
    pub fn register_this_thread(&self) -> io::Result<u32> {
        let name = CString::new(self.thread_name.clone()).map_err(io::Error::other)?;
        rustix::thread::set_name(&name)?;
        Ok(super::current_thread())
    }

    /// Discards earlier events and starts recording.
    ///
    /// # Errors
    ///
    /// Errors of tracefs.
    pub fn begin_recording(&self) -> Result<(), BlockEventsError> {
        self.tracefs_instance.write_file("trace", "")?;
        self.tracefs_instance.write_file("tracing_on", "1")
    }

    /// Ends the recording and returns its block trace, with the given timed parts of the workers.
    ///
    /// # Errors
    ///
    /// Errors of tracefs, and a malformed event line.
    pub fn end_recording(&self, workers: Vec<TimedPart>) -> Result<BlockTrace, BlockEventsError> {
        self.tracefs_instance.write_file("tracing_on", "0")?;
        let lost_events = self.tracefs_instance.lost_event_count()?;
        let text = match lost_events {
            0 => self.tracefs_instance.read_file("trace")?,
            _ => Vec::new(),
        };
        let told = parse_recorded_events(&text, &self.device_indices, &self.thread_name);
        let (requests, switches) = told.map_err(|error| BlockEventsError::TracefsAccess {
            file: "trace".to_owned(),
            source: error,
        })?;
        Ok(BlockTrace {
            devices: self.device_names.clone(),
            requests,
            timed_parts: workers,
            thread_switches: switches,
            lost_event_count: lost_events,
        })
    }
}

/// Extracts requests and thread switches from the text of a trace, for the given devices and the
/// threads with the given name.
///
/// # Errors
///
/// A line is malformed.
#[doc(hidden)]
pub fn parse_recorded_events(
    text: &[u8],
    numbers: &BTreeMap<DeviceNumber, u32>,
    threads: &str,
) -> io::Result<(Vec<BlockRequest>, Vec<ThreadSwitch>)> {
    let mut thread_switches = threads::ThreadSwitches::default();
    let mut requests = requests::RequestTracker::default();
    for line in text.split(|byte| *byte == b'\n') {
        match lines::parse_line(line, threads)? {
            None => {}
            Some(lines::TraceLine::ThreadSwitches(all)) => {
                all.into_iter()
                    .flatten()
                    .for_each(|one| thread_switches.add_switch(one));
            }
            Some(lines::TraceLine::CpuCharge(charge)) => thread_switches.add_cpu_charge(&charge),
            Some(lines::TraceLine::BlockLayerEvent(event)) => {
                if let Some(place) = numbers.get(&event.device) {
                    requests.process_event(*place, &event);
                }
            }
        }
    }
    Ok((requests.into_completed(), thread_switches.into_switches()))
}

/// Tracefs instance whose owner no longer runs.
pub struct AbandonedInstance {
    tracefs: Arc<Tracefs>,
    instance_name: OsString,
}

impl AbandonedInstance {
    /// Returns the usual path of the instance, where tracefs is mounted in the usual place.
    pub fn path(&self) -> PathBuf {
        Path::new(DEFAULT_INSTANCES_PATH).join(&self.instance_name)
    }

    /// Removes the abandoned instance.
    ///
    /// # Errors
    ///
    /// The instance is in use.
    pub fn remove(self) -> io::Result<()> {
        self.tracefs.remove_instance(&self.instance_name)
    }
}

/// Returns the instances whose owners no longer run; none without tracefs or without permission to
/// list it.
pub fn find_abandoned_instances() -> Vec<AbandonedInstance> {
    if !super::is_root() {
        return Vec::new();
    }
    let Ok(tracefs) = Tracefs::open_tracefs() else {
        return Vec::new();
    };
    let tracefs = Arc::new(tracefs);
    let names = tracefs.abandoned_names().into_iter();
    names
        .map(|name| AbandonedInstance {
            tracefs: Arc::clone(&tracefs),
            instance_name: name,
        })
        .collect()
}
