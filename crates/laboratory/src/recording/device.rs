//! `diskperf record`: recording of the requests that a disk receives from all processes of this
//! machine.

use super::{Place, Trace, failed};
use diskperf_analysis::recorded::Observed;
use diskperf_models::LaboratoryError;
use diskperf_system::host::block_events::{
    BlockEventsError, BlockRequestStream, POLL_INTERVAL, RecordedDisk,
};
use diskperf_system::host::device::BlockDevice;
use diskperf_system::host::process_cpu_time;
use diskperf_timeline::{Nanoseconds, escape_unprintable_line};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Request for a recording of a disk.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Block device to record, or a path on one.
    pub target: PathBuf,
    /// Duration of the recording; `None` to record until the user ends it.
    pub lasts: Option<Duration>,
}

/// A recording of disks that is ready to start.
pub struct Ready {
    asked: Asked,
    place: Place,
    stream: BlockRequestStream,
    names: Vec<String>,
    notes: Vec<String>,
}

impl Ready {
    /// Finds the disks behind the target and prepares to receive their events and to write the
    /// file. `force` allows an existing file to be replaced.
    ///
    /// # Errors
    ///
    /// Returns an error if the target is no disk and on none, if the user is not root, if the
    /// kernel provides no events, or if the file cannot be created.
    pub fn new(asked: Asked, output: &Path, force: bool) -> Result<Self, LaboratoryError> {
        let place = Place::open_anywhere(output, force)?;
        let (listened, mut notes) = listened(&asked.target)?;
        let names = listened.iter().map(|(name, _)| name.clone()).collect();
        let disks: Vec<RecordedDisk> = listened.into_iter().map(|(_, one)| one).collect();
        notes.extend(on_itself(output, &disks));
        let stream = BlockRequestStream::record_disks(&disks)
            .map_err(|error| refused(&asked.target, &error))?;
        Ok(Self {
            asked,
            place,
            stream,
            names,
            notes,
        })
    }

    /// Records until the time is over or `stop` is set, and reports the progress now and then.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written or the kernel's events end. Requests recorded
    /// up to then are in the file.
    pub fn record(
        self,
        stop: &AtomicBool,
        mut progress: impl FnMut(&Observed),
    ) -> Result<Observed, LaboratoryError> {
        let path = self.place.path.clone();
        let mut stream = self.stream;
        let mut so_far = Observed {
            target: self.asked.target.display().to_string(),
            devices: self.names.clone(),
            notes: self.notes,
            ..Observed::default()
        };
        let mut trace = self.place.begin()?;
        let began_cpu = process_cpu_time();
        let at = stream.begin_recording().map_err(LaboratoryError::work)?;
        let began = Instant::now();
        let write = |error| failed(&path, &error);
        trace.head(&so_far, at).map_err(write)?;
        let mut events = Vec::new();
        let outcome = loop {
            let left = self
                .asked
                .lasts
                .map(|lasts| lasts.saturating_sub(began.elapsed()));
            so_far.is_interrupted = stop.load(Ordering::Relaxed);
            if so_far.is_interrupted || left.is_some_and(|left| left.is_zero()) {
                break stream.end_recording(&mut events);
            }
            std::thread::sleep(left.map_or(POLL_INTERVAL, |left| left.min(POLL_INTERVAL)));
            if let Err(error) = stream.poll_events(&mut events) {
                break Err(error);
            }
            trace.tell(&events).map_err(write)?;
            so_far.count(&events);
            events.clear();
            so_far.elapsed_s = began.elapsed().as_secs_f64();
            progress(&so_far);
        };
        trace.tell(&events).map_err(write)?;
        so_far.count(&events);
        so_far.elapsed_s = began.elapsed().as_secs_f64();
        let cpu = process_cpu_time().since(began_cpu);
        so_far.cpu_s = cpu.0 as f64 / 1e9;
        so_far.cpu_share = so_far.cpu_s / so_far.elapsed_s;
        let lost = so_far.lost_note();
        so_far.notes.extend(lost);
        let outcome = outcome.and_then(|at| {
            stream.remove_instance()?;
            Ok(at)
        });
        match outcome {
            Ok(at) => {
                trace.tail(at).map_err(write)?;
                Ok(so_far)
            }
            Err(error) => {
                trace.flush().map_err(write)?;
                Err(LaboratoryError::Work(format!(
                    "{error}; {} has what was recorded until then: `diskperf trace --partial` reads it",
                    path.display()
                )))
            }
        }
    }
}

impl Trace {
    fn head(&mut self, of: &Observed, at: Nanoseconds) -> std::io::Result<()> {
        let by = concat!("diskperf ", env!("CARGO_PKG_VERSION"));
        self.about("recorded by", by)?;
        self.about("target", &of.target)?;
        self.devices(&of.devices)?;
        self.begins(at, &format!("requests to {}", of.devices.join(" and ")))?;
        self.flush()
    }

    fn tail(mut self, at: Nanoseconds) -> std::io::Result<()> {
        self.ends(at);
        self.ended(true)?;
        self.finish()
    }
}

type Named = (String, RecordedDisk);

fn listened(target: &Path) -> Result<(Vec<Named>, Vec<String>), LaboratoryError> {
    let name = target.display();
    let status = target.metadata().map_err(|error| {
        LaboratoryError::Request(format!(
            "{name}: {error}; name a block device (`lsblk` lists them), or a path on one"
        ))
    })?;
    let whole = |disks: Vec<BlockDevice>| -> Vec<Named> {
        let of = |disk: BlockDevice| {
            let sectors = None;
            (
                disk.name().to_owned(),
                RecordedDisk {
                    disk,
                    partition_sectors: sectors,
                },
            )
        };
        disks.into_iter().map(of).collect()
    };
    let said = |found: &[Named]| {
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        format!(
            "{name} is on {}: all requests to {} are recorded",
            names.join(" and "),
            if names.len() == 1 { "it" } else { "them" }
        )
    };
    if !status.file_type().is_block_device() {
        let disks = BlockDevice::request_queues_under(target).map_err(LaboratoryError::request)?;
        let found = whole(disks);
        if found.is_empty() {
            return Err(LaboratoryError::Request(format!(
                "{name} is on no block device: its file system is in memory, on a network, or made of others"
            )));
        }
        let note = said(&found);
        return Ok((found, vec![note]));
    }
    let device = BlockDevice::from_path(target).map_err(LaboratoryError::request)?;
    let disk = device.whole_disk().map_err(LaboratoryError::request)?;
    if disk != device
        && let Some(first) = device.first_sector()
        && has_queue(&disk)
    {
        let sectors = Some((first, device.size_bytes() / 512));
        let name = device.name().to_owned();
        return Ok((
            vec![(
                name,
                RecordedDisk {
                    disk,
                    partition_sectors: sectors,
                },
            )],
            Vec::new(),
        ));
    }
    if has_queue(&device) {
        return Ok((whole(vec![device]), Vec::new()));
    }
    // A device that is made of others: requests are theirs.
    let found = whole(
        device
            .request_queues_of_device()
            .map_err(LaboratoryError::request)?,
    );
    let note = format!(
        "{} has no request queue of its own; {}",
        device.name(),
        said(&found)
    );
    Ok((found, vec![note]))
}

fn has_queue(disk: &BlockDevice) -> bool {
    disk.sysfs_path().join("mq").exists()
}

/// Returns a warning if the recording is written to a disk that it records.
fn on_itself(output: &Path, listened: &[RecordedDisk]) -> Option<String> {
    let folder = match output.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let below = BlockDevice::request_queues_under(folder).unwrap_or_default();
    let same = listened.iter().find(|one| below.contains(&one.disk))?;
    Some(format!(
        "the trace is written to {}, the recorded device: it contains its own writes",
        escape_unprintable_line(same.disk.name())
    ))
}

fn refused(target: &Path, error: &BlockEventsError) -> LaboratoryError {
    LaboratoryError::Request(format!("{}: {error}", target.display()))
}
