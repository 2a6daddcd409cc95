//! `diskperf record`: recording of the requests that a disk receives from all processes of this
//! machine.

use super::{RecordingDestination, TraceWriter, write_error};
use diskperf_analysis::recorded::RecordingSummary;
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
pub struct RecordRequest {
    /// Block device to record, or a path on one.
    pub target: PathBuf,
    /// Duration of the recording; `None` to record until the user ends it.
    pub duration: Option<Duration>,
}

/// A recording of disks that is ready to start.
pub struct ReadyRecording {
    request: RecordRequest,
    destination: RecordingDestination,
    block_stream: BlockRequestStream,
    device_names: Vec<String>,
    notes: Vec<String>,
}

impl ReadyRecording {
    /// Finds the disks behind the target and prepares to receive their events and to write the
    /// file. `force` allows an existing file to be replaced.
    ///
    /// # Errors
    ///
    /// Returns an error if the target is no disk and on none, if the user is not root, if the
    /// kernel provides no events, or if the file cannot be created.
    pub fn prepare(
        asked: RecordRequest,
        output: &Path,
        force: bool,
    ) -> Result<Self, LaboratoryError> {
        let place = RecordingDestination::open_anywhere(output, force)?;
        let (listened, mut notes) = list_listened_devices(&asked.target)?;
        let names = listened.iter().map(|(name, _)| name.clone()).collect();
        let disks: Vec<RecordedDisk> = listened.into_iter().map(|(_, one)| one).collect();
        notes.extend(describe_self_recording(output, &disks));
        let stream = BlockRequestStream::record_disks(&disks)
            .map_err(|error| stream_error(&asked.target, &error))?;
        Ok(Self {
            request: asked,
            destination: place,
            block_stream: stream,
            device_names: names,
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
        mut progress: impl FnMut(&RecordingSummary),
    ) -> Result<RecordingSummary, LaboratoryError> {
        let path = self.destination.path.clone();
        let mut stream = self.block_stream;
        let mut so_far = RecordingSummary {
            target: self.request.target.display().to_string(),
            devices: self.device_names.clone(),
            notes: self.notes,
            ..RecordingSummary::default()
        };
        let mut trace = self.destination.begin_trace()?;
        let began_cpu = process_cpu_time();
        let at = stream.begin_recording().map_err(LaboratoryError::work)?;
        let began = Instant::now();
        let write = |error| write_error(&path, &error);
        trace.write_head(&so_far, at).map_err(write)?;
        let mut events = Vec::new();
        let outcome = loop {
            let left = self
                .request
                .duration
                .map(|lasts| lasts.saturating_sub(began.elapsed()));
            so_far.is_interrupted = stop.load(Ordering::Relaxed);
            if so_far.is_interrupted || left.is_some_and(|left| left.is_zero()) {
                break stream.end_recording(&mut events);
            }
            std::thread::sleep(left.map_or(POLL_INTERVAL, |left| left.min(POLL_INTERVAL)));
            if let Err(error) = stream.poll_events(&mut events) {
                break Err(error);
            }
            trace.write_events(&events).map_err(write)?;
            so_far.count_events(&events);
            events.clear();
            so_far.elapsed_s = began.elapsed().as_secs_f64();
            progress(&so_far);
        };
        trace.write_events(&events).map_err(write)?;
        so_far.count_events(&events);
        so_far.elapsed_s = began.elapsed().as_secs_f64();
        let cpu = process_cpu_time().since(began_cpu);
        so_far.cpu_s = cpu.0 as f64 / 1e9;
        so_far.cpu_share = so_far.cpu_s / so_far.elapsed_s;
        let lost = so_far.describe_lost_events();
        so_far.notes.extend(lost);
        let outcome = outcome.and_then(|at| {
            stream.remove_instance()?;
            Ok(at)
        });
        match outcome {
            Ok(at) => {
                trace.write_tail(at).map_err(write)?;
                Ok(so_far)
            }
            Err(error) => {
                trace.flush().map_err(write)?;
                Err(LaboratoryError::Failure(format!(
                    "{error}; {} has what was recorded until then: `diskperf trace --partial` reads it",
                    path.display()
                )))
            }
        }
    }
}

impl TraceWriter {
    fn write_head(&mut self, of: &RecordingSummary, at: Nanoseconds) -> std::io::Result<()> {
        let by = concat!("diskperf ", env!("CARGO_PKG_VERSION"));
        self.write_metadata("recorded by", by)?;
        self.write_metadata("target", &of.target)?;
        self.add_devices(&of.devices)?;
        self.begin_part(at, &format!("requests to {}", of.devices.join(" and ")))?;
        self.flush()
    }

    fn write_tail(mut self, at: Nanoseconds) -> std::io::Result<()> {
        self.set_part_end(at);
        self.end_part(true)?;
        self.finish()
    }
}

type NamedListener = (String, RecordedDisk);

fn list_listened_devices(
    target: &Path,
) -> Result<(Vec<NamedListener>, Vec<String>), LaboratoryError> {
    let name = target.display();
    let status = target.metadata().map_err(|error| {
        LaboratoryError::Request(format!(
            "{name}: {error}; name a block device (`lsblk` lists them), or a path on one"
        ))
    })?;
    let whole = |disks: Vec<BlockDevice>| -> Vec<NamedListener> {
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
    let said = |found: &[NamedListener]| {
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
fn describe_self_recording(output: &Path, listened: &[RecordedDisk]) -> Option<String> {
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

fn stream_error(target: &Path, error: &BlockEventsError) -> LaboratoryError {
    LaboratoryError::Request(format!("{}: {error}", target.display()))
}
