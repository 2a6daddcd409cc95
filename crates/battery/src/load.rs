//! Common parts of the programs that keep several requests in flight: their parameters and the
//! source of their requests.

pub(crate) mod area;
pub(crate) mod arrivals;
pub(crate) mod distribution;
pub(crate) mod generator;
pub(crate) mod pace;
pub(crate) mod permutation;
pub(crate) mod source;

use crate::blocks::ensure_file;
use crate::parameter::{ParameterField, ParameterValue, choices};
use crate::pattern::ProgramProperties;
use crate::program::ProgramError;
use crate::ring::slots::Slots;
use crate::verify::{Verifier, verify_field};
use crate::worker::{Medium, Worker};
use arrivals::{ArrivalSchedule, Spacing};
use diskperf_system::{
    CallKind, EngineChoice, Errno, Error, File, IoOperation, OpenOptions, RingOptions, System,
};
use diskperf_timeline::units::{GIB, MIB};
use diskperf_timeline::{CacheMode, Nanoseconds};

choices! {
    /// Yes-or-no value of a parameter.
    YesNo {
        /// Value `no` of a yes-or-no parameter.
        No = "no",
        /// Value `yes` of a yes-or-no parameter.
        Yes = "yes",
    }
}

choices! {
    /// Choice of whether a file is opened with O_DIRECT.
    DirectIo {
        /// O_DIRECT if the file system supports it and the run does not ask for the page cache. A
        /// plan resolves this value to yes or no.
        Auto = "auto",
        /// O_DIRECT always, whatever state of the page cache the run asks for.
        Yes = "yes",
        /// No O_DIRECT of the program's own; the run's cache mode decides.
        No = "no",
    }
}

choices! {
    /// Interface through which requests are submitted to the kernel.
    Engine {
        /// io_uring, or threads if io_uring is absent or forbidden.
        Best = "best",
        /// io_uring. Its absence is an error.
        IoUring = "io_uring",
        /// io_uring with a kernel thread that polls the submission queue.
        SqPoll = "sqpoll",
        /// Pool of threads that call preadv2 and pwritev2.
        Threads = "threads",
    }
}

choices! {
    /// System call that makes writes durable.
    SyncCall {
        /// fdatasync(2), which makes the data durable and the metadata needed to read it back.
        Fdatasync = "fdatasync",
        /// fsync(2), which makes the data and all metadata of the file durable.
        Fsync = "fsync",
    }
}

impl SyncCall {
    pub(crate) fn sync_operation(self) -> IoOperation {
        match self {
            Self::Fdatasync => IoOperation::Fdatasync,
            Self::Fsync => IoOperation::Fsync,
        }
    }
}

/// Help text of `rate_iops` for programs in which commits arrive by the clock.
pub(crate) const COMMIT_RATE_MEANING: &str = "commits per second that arrive at each worker, even if \
earlier commits are not durable yet; 0: the next commit starts when one is durable";

/// Name of the file that these load programs share.
pub(crate) const LOAD_FILE_NAME: &str = "load";

/// Parameters that all programs with several requests in flight have.
#[derive(Clone, Debug)]
pub(crate) struct LoadOptions {
    /// Queue depth of each worker. 0 selects the default of [`LoadOptions::slot_count`].
    pub(crate) queue_depth: u64,
    /// Maximum number of requests per submission. 0 means a quarter of the queue depth.
    pub(crate) batch_size: u64,
    /// Workers on each drive. Each worker has its own thread and its own ring.
    pub(crate) workers: u64,
    /// Size of the area that requests address, in bytes.
    pub(crate) area_bytes: u64,
    /// Requests that arrive per second and worker. 0 means a closed loop, in which each completion
    /// permits a new request.
    pub(crate) offered_rate_iops: u64,
    pub(crate) arrival_spacing: Spacing,
    pub(crate) duration_ms: u64,
    pub(crate) ramp_ms: u64,
    pub(crate) direct_io: DirectIo,
    pub(crate) engine: Engine,
    pub(crate) polls_completions: YesNo,
    pub(crate) compressible_share: f64,
    pub(crate) series_interval_ms: u64,
    /// Whether written data is read back and compared.
    pub(crate) verify_writes: YesNo,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            queue_depth: 0,
            batch_size: 0,
            workers: 1,
            area_bytes: 256 * MIB,
            offered_rate_iops: 0,
            arrival_spacing: Spacing::Constant,
            duration_ms: 0,
            ramp_ms: 0,
            direct_io: DirectIo::Auto,
            engine: Engine::Best,
            polls_completions: YesNo::No,
            compressible_share: 0.0,
            series_interval_ms: 1000,
            verify_writes: YesNo::No,
        }
    }
}

const QUEUE_DEPTH_MAX: u64 = 4096;
/// Maximum memory of the buffers of one worker, in bytes.
const RING_BUFFERS_BYTES_MAX: u64 = 4 * GIB;
/// Default number of slots of an open loop. The memory of their buffers limits it further
/// (`OPEN_LOOP_BUFFERS_BYTES_MAX`). A burst of arrivals or a stall of the storage must fill all
/// slots before a request waits for one.
const OPEN_LOOP_SLOTS_MAX: u64 = 1024;
const OPEN_LOOP_BUFFERS_BYTES_MAX: u64 = GIB;
const MS_PER_DAY: u64 = 86_400_000;

/// Returns the default number of slots of an open loop for requests of at most `call_bytes`.
pub fn open_loop_slots(call_bytes: u64) -> u64 {
    (OPEN_LOOP_BUFFERS_BYTES_MAX / call_bytes.max(1)).clamp(1, OPEN_LOOP_SLOTS_MAX)
}

impl LoadOptions {
    /// Returns the load parameters as editable fields.
    pub(crate) fn fields(&mut self) -> Vec<ParameterField<'_>> {
        vec![
            new_field(
                "depth",
                "queue depth per worker; 0: 1, or with a request rate 1024, limited to 1 GiB of \
                 buffers",
                ParameterValue::Count(&mut self.queue_depth, 0, QUEUE_DEPTH_MAX),
            ),
            new_field(
                "batch",
                "maximum requests per submission, and a quarter of it for the first; 0: a quarter \
                 of the queue depth",
                ParameterValue::Count(&mut self.batch_size, 0, QUEUE_DEPTH_MAX),
            ),
            new_field(
                "workers",
                "workers per drive, one thread each",
                ParameterValue::Count(&mut self.workers, 1, 1024),
            ),
            new_field(
                "area_bytes",
                "size of the area that requests address",
                ParameterValue::ByteCount(&mut self.area_bytes, 4096, 1 << 60),
            ),
            new_field(
                "rate_iops",
                "requests per second that arrive at each worker, independent of completions (open \
                 loop); 0: the next request starts when one completes",
                ParameterValue::Count(&mut self.offered_rate_iops, 0, 1_000_000_000),
            ),
            new_field(
                "arrivals",
                "spacing of the arrivals",
                ParameterValue::NamedChoice(&mut self.arrival_spacing),
            ),
            new_field(
                "duration_ms",
                "duration of a repetition in milliseconds; 0: until the size is moved",
                ParameterValue::Count(&mut self.duration_ms, 0, MS_PER_DAY),
            ),
            new_field(
                "ramp_ms",
                "ramp before the measurement, whose requests do not count",
                ParameterValue::Count(&mut self.ramp_ms, 0, MS_PER_DAY),
            ),
            new_field(
                "direct",
                "use of O_DIRECT; auto: if the file system supports it and the run requests no \
                 page cache state",
                ParameterValue::NamedChoice(&mut self.direct_io),
            ),
            new_field(
                "engine",
                "interface through which requests reach the kernel, on real storage",
                ParameterValue::NamedChoice(&mut self.engine),
            ),
            new_field(
                "poll",
                "poll the device for completions (IOPOLL)",
                ParameterValue::NamedChoice(&mut self.polls_completions),
            ),
            new_field(
                "compressible_share",
                "share of zeroes in every 4096 bytes of written data",
                ParameterValue::Share(&mut self.compressible_share),
            ),
            new_field(
                "interval_ms",
                "interval of the samples over time",
                ParameterValue::Count(&mut self.series_interval_ms, 10, MS_PER_DAY),
            ),
            verify_field(&mut self.verify_writes),
        ]
    }

    /// Returns the properties of a program with these load parameters and calls of at most
    /// `call_bytes`.
    pub(crate) fn program_properties(&self, call_bytes: u64, writes: bool) -> ProgramProperties {
        ProgramProperties {
            accepts_any_size: true,
            keeps_requests_in_flight: true,
            writes_target: writes,
            worker_count: self.workers as u32,
            cache_mode: (self.direct_io == DirectIo::Yes).then_some(CacheMode::Direct),
            duration_max: self.run_duration(),
            drain_time_max: self.drain_time_max(),
            offered_bytes_per_s: self.offered_bytes_per_s(call_bytes),
            size_bytes_range: self.size_bytes_range(call_bytes, writes),
            // The ring has the buffers.
            buffer_call_count: 1,
            ..ProgramProperties::new_for_reads(call_bytes)
        }
    }

    /// Returns the minimum and maximum size of a repetition in bytes. The minimum gives each slot a
    /// few requests, which take long on a disk. The maximum does not wear a flash drive out.
    fn size_bytes_range(&self, call_bytes: u64, writes: bool) -> (u64, u64) {
        let in_flight = match self.offered_rate_iops {
            0 => self.slot_count(call_bytes),
            // Slots that wait for arrivals say nothing of how much is to be moved.
            _ => self.queue_depth.max(1),
        };
        let least_bytes = call_bytes * (4 * in_flight).max(16);
        let most_bytes = if writes { 256 * MIB } else { GIB };
        (least_bytes, most_bytes.max(least_bytes))
    }

    /// Returns the number of slots of a ring for requests of at most `call_bytes`.
    pub(crate) fn slot_count(&self, call_bytes: u64) -> u64 {
        match (self.queue_depth, self.offered_rate_iops) {
            (0, 0) => 1,
            (0, _) => open_loop_slots(call_bytes),
            (depth, _) => depth,
        }
    }

    /// Creates the slots of a ring for requests of at most `call_bytes`, all of them free.
    pub(crate) fn new_slots(&self, call_bytes: u64) -> Slots {
        let depth = self.slot_count(call_bytes);
        // A device begins with the first of many while the others are still prepared.
        let batch = match self.batch_size {
            0 => depth.div_ceil(4),
            batch => batch,
        };
        Slots::with_submission_size(depth, batch)
    }

    /// Returns the arrivals of an open loop from `start` on, or `None` for a closed loop.
    pub(crate) fn new_arrival_schedule(
        &self,
        start: Nanoseconds,
        worker: &Worker,
    ) -> Option<ArrivalSchedule> {
        (self.offered_rate_iops > 0).then(|| {
            ArrivalSchedule::new(
                self.offered_rate_iops,
                self.arrival_spacing,
                (start, worker.random_seed),
            )
        })
    }

    /// Returns the duration of a repetition including the ramp, or `None` if its size ends it.
    fn run_duration(&self) -> Option<Nanoseconds> {
        (self.duration_ms > 0).then(|| Nanoseconds::from_millis(self.ramp_ms + self.duration_ms))
    }

    /// Returns the bytes that arrive per second in an open loop if each request moves `bytes`, or
    /// `None` for a closed loop.
    pub(crate) fn offered_bytes_per_s(&self, bytes: u64) -> Option<u64> {
        (self.offered_rate_iops > 0).then(|| self.offered_rate_iops.saturating_mul(bytes))
    }

    /// Returns the maximum time after [`LoadOptions::run_duration`] in which requests that had arrived are still
    /// served.
    fn drain_time_max(&self) -> Nanoseconds {
        match self.offered_rate_iops {
            0 => Nanoseconds::ZERO,
            _ => self.run_duration().unwrap_or_default(),
        }
    }

    /// Returns the reason why the load parameters do not fit together for calls of at most
    /// `call_bytes`, or `None` if they do.
    pub(crate) fn validation_error(&self, call_bytes: u64) -> Option<String> {
        if call_bytes > self.area_bytes {
            return Some(format!(
                "a request of {call_bytes} bytes exceeds area_bytes={}; give a larger area_bytes \
                 or a smaller request",
                self.area_bytes
            ));
        }
        let depth = self.slot_count(call_bytes);
        if depth * call_bytes > RING_BUFFERS_BYTES_MAX {
            return Some(format!(
                "{depth} requests of {call_bytes} bytes need more than 4 GiB of buffers; give a smaller depth or block_bytes"
            ));
        }
        (self.ramp_ms > 0 && self.duration_ms == 0)
            .then(|| "ramp_ms needs a measured duration: give duration_ms too".to_owned())
    }

    /// Creates the area's file with `bytes` bytes. The first worker creates it for all.
    pub(crate) async fn prepare_file(
        &self,
        (system, worker): (&mut System, &Worker),
        bytes: u64,
    ) -> Result<(), ProgramError> {
        match worker.worker_index {
            0 => ensure_file(system, worker, &worker.file_path(LOAD_FILE_NAME), bytes).await,
            _ => Ok(()),
        }
    }

    /// Opens the area's file, and returns it with the number of bytes that exist, at most `bytes`.
    pub(crate) async fn open_file(
        &self,
        (system, worker): (&mut System, &Worker),
        how: OpenOptions,
        bytes: u64,
    ) -> Result<(File, u64), ProgramError> {
        let file = system
            .open(
                &worker.file_path(LOAD_FILE_NAME),
                how.with_direct(worker.direct_io),
            )
            .await?;
        let there_bytes = match worker.medium {
            Medium::Directory => bytes,
            Medium::Device | Medium::File => match system.file_length(file).await? {
                0 => return Err(detached_target_error(&worker.file_path(LOAD_FILE_NAME)).into()),
                there_bytes => bytes.min(there_bytes),
            },
        };
        Ok((file, there_bytes))
    }

    /// Creates the verifier of a worker, or returns `None` if verification is off.
    pub(crate) fn new_verifier(&self, system: &System, worker: &Worker) -> Option<Verifier> {
        (self.verify_writes == YesNo::Yes).then(|| Verifier::for_program(system, worker))
    }

    /// Opens a ring for files, with buffers for requests of at most `call_bytes`.
    pub(crate) async fn open_ring(
        &self,
        (system, worker): (&mut System, &Worker),
        files: &[File],
        call_bytes: u64,
    ) -> Result<(), ProgramError> {
        let options = RingOptions {
            queue_depth: self.slot_count(call_bytes) as u32,
            buffer_bytes: call_bytes.next_multiple_of(512) as u32,
            seed: worker.random_seed,
            compressible_percent: (self.compressible_share * 100.0).round() as u8,
            engine_choice: match self.engine {
                Engine::Best => EngineChoice::BestAvailable,
                Engine::IoUring => EngineChoice::IoUring,
                Engine::SqPoll => EngineChoice::SqPoll,
                Engine::Threads => EngineChoice::Threads,
            },
            polls_completions: self.polls_completions == YesNo::Yes,
            has_verifiable_contents: self.verify_writes == YesNo::Yes,
            series_interval: Nanoseconds::from_millis(self.series_interval_ms),
        };
        Ok(system.open_ring(options, files).await?)
    }
}

/// Returns the error for an open device that reports length 0, because it was detached.
fn detached_target_error(path: &str) -> Error {
    Error::call_failed(CallKind::FileLength, path, Errno::NoDeviceOrAddress)
}

pub(crate) fn new_field<'a>(
    name: &'static str,
    meaning: &'static str,
    value: ParameterValue<'a>,
) -> ParameterField<'a> {
    ParameterField {
        name,
        description: meaning,
        value,
    }
}

/// Read or write that a request generator produces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoadRequest {
    pub(crate) is_write: bool,
    pub(crate) offset_bytes: u64,
    pub(crate) bytes: u32,
}

/// Policy by which a program makes its writes durable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Durability {
    /// Number of writes after which a sync follows. 0 means no syncs.
    writes_per_sync: u64,
    sync_call: SyncCall,
    opens_with_dsync: YesNo,
}

impl Default for Durability {
    fn default() -> Self {
        Self {
            writes_per_sync: 0,
            sync_call: SyncCall::Fdatasync,
            opens_with_dsync: YesNo::No,
        }
    }
}

impl Durability {
    pub(crate) fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        vec![
            new_field(
                "sync_every",
                "writes per sync; 0: no syncs",
                ParameterValue::Count(&mut self.writes_per_sync, 0, u64::MAX),
            ),
            new_field(
                "sync_call",
                "system call of the sync",
                ParameterValue::NamedChoice(&mut self.sync_call),
            ),
            new_field(
                "dsync",
                "use of O_DSYNC, with which each write is durable when it completes",
                ParameterValue::NamedChoice(&mut self.opens_with_dsync),
            ),
        ]
    }

    /// Returns the open mode of a file that the program writes.
    pub(crate) fn open_options(&self) -> OpenOptions {
        OpenOptions::READ_WRITE.with_dsync(self.opens_with_dsync == YesNo::Yes)
    }
}

/// Time span in which a worker issues requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IssueSpan {
    issue_start: Nanoseconds,
    /// End of the ramp, or `None` after it or without one.
    ramp_end: Option<Nanoseconds>,
    /// Last time at which a request may be issued, or may arrive in an open loop. `None` if the
    /// size ends the repetition.
    issue_end: Option<Nanoseconds>,
}

impl IssueSpan {
    pub(crate) fn new(load: &LoadOptions, start: Nanoseconds) -> Self {
        let after = |milliseconds| start + Nanoseconds::from_millis(milliseconds);
        Self {
            issue_start: start,
            ramp_end: (load.ramp_ms > 0).then(|| after(load.ramp_ms)),
            issue_end: (load.duration_ms > 0).then(|| after(load.ramp_ms + load.duration_ms)),
        }
    }

    /// Ends the ramp once its time has come, and discards the measurements until then.
    #[inline]
    pub(crate) fn end_ramp(
        &mut self,
        now: Nanoseconds,
        system: &mut System,
    ) -> Result<(), ProgramError> {
        if self.ramp_end.is_some_and(|end| now >= end) {
            self.ramp_end = None;
            system.restart_measuring()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_loop_has_slots_for_a_stall_and_buffers_of_a_gib_at_most() {
        let open = |depth| LoadOptions {
            queue_depth: depth,
            offered_rate_iops: 2000,
            ..LoadOptions::default()
        };
        for (call_bytes, slots) in [
            (512, 1024),
            (4096, 1024),
            (MIB, 1024),
            (4 * MIB, 256),
            (2 * GIB, 1),
        ] {
            assert_eq!(open(0).slot_count(call_bytes), slots, "{call_bytes}");
            assert_eq!(open(7).slot_count(call_bytes), 7, "{call_bytes}");
            assert_eq!(
                LoadOptions::default().slot_count(call_bytes),
                1,
                "{call_bytes}"
            );
        }
    }
}
