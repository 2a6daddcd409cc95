//! Worker on real storage. Each call of a program is one system call on the worker's own thread.

use super::clock::{CallClock, monotonic_now};
use super::names::{HostPorts, PortPath};
use super::null::NullFile;
use super::page_cache::{self, DirectSupport};
use super::rendezvous::HostRendezvous;
use super::ring::{EngineNote, HostRing, RingRequestRecorder};
use super::usage::{CpuWaitFile, HelperThreads, HelperUsage, ProcIoFile, ThreadUsage};
use crate::ring::record::LoadRecorder;
use crate::{
    CallKind, Errno, Error, File, OpenOptions, Result, SeekOrigin, WorkerProgress, WriteData,
};
use diskperf_timeline::{LatencyRecorder, Nanoseconds, WorkerMeasure};
use rustix::fs::{FallocateFlags, Mode, OFlags, SeekFrom};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// State that a worker shares with the runner and the other workers.
pub struct WorkerControl {
    /// End of the run by the user. Once the runner has set it, every call fails with
    /// [`Error::Interrupted`].
    pub stop_requested: Arc<AtomicBool>,
    /// Failure of another worker of the repetition. Once it is set, the repetition is worthless and
    /// every call fails with [`Error::OtherWorkerFailed`].
    pub is_abandoned: Arc<AtomicBool>,
    /// Progress of the worker, for display.
    pub progress: Arc<WorkerProgress>,
    /// Meeting point of all workers of the run.
    pub rendezvous: Arc<HostRendezvous>,
    /// Whether each read and write is timed.
    pub times_calls: bool,
    /// Clock that times single calls.
    pub call_clock: CallClock,
}

impl WorkerControl {
    /// Returns the shared state of a worker that runs alone, without a runner or other workers.
    pub fn for_single_worker(time_calls: bool, clock: CallClock) -> Self {
        Self {
            stop_requested: Arc::default(),
            is_abandoned: Arc::default(),
            progress: Arc::default(),
            rendezvous: Arc::new(HostRendezvous::new(1)),
            times_calls: time_calls,
            call_clock: clock,
        }
    }

    /// Checks that neither the user nor a failed worker has ended the repetition.
    #[inline]
    pub(super) fn check_stop_requested(&self) -> Result<()> {
        if self.stop_requested.load(Ordering::Relaxed) {
            Err(Error::Interrupted)
        } else if self.is_abandoned.load(Ordering::Relaxed) {
            Err(Error::OtherWorkerFailed)
        } else {
            Ok(())
        }
    }
}

/// Worker on real storage, with its open files and its measure.
pub struct HostWorker {
    /// Ring of the worker, if it has one. It is dropped before the files, because it ends their
    /// requests in flight.
    pub(super) open_ring: Option<Box<HostRing>>,
    /// Log of the ring's requests, if they are recorded.
    pub(super) ring_record: Option<RingRequestRecorder>,
    /// Measure of the ring's requests; it outlives the ring.
    pub(super) load_recorder: Option<Box<LoadRecorder>>,
    pub(super) engine_note: Option<EngineNote>,
    pub(super) ports: HostPorts,
    pub(super) worker_control: WorkerControl,
    pub(super) open_files: Vec<Option<HostOpenFile>>,
    /// Files that were written and closed in the timed part, to be synced at its end.
    unsynced_closed_files: Vec<HostOpenFile>,
    /// Whether more files were written and closed than `closed` holds.
    has_unsynced_closed_files: bool,
    storage_account: Option<ProcIoFile>,
    cpu_wait: Option<CpuWaitFile>,
    read_latency: LatencyRecorder,
    write_latency: LatencyRecorder,
    pub(super) worker_measure: WorkerMeasure,
    /// Whether the timed part has started and not ended.
    pub(super) is_measuring: bool,
    pub(super) measure_start: MeasureStart,
    /// CPU time of helpers that ended in the timed part.
    pub(super) ended_helper_usage: HelperUsage,
    /// Measure of a timed part that ended before the program.
    pub(super) ended_measure: Option<Box<WorkerMeasure>>,
}

pub(super) struct HostOpenFile {
    pub(super) file_descriptor: OwnedFd,
    pub(super) path: String,
    /// State of a null drive; `None` for other files.
    pub(super) null_file: Option<NullFile>,
    /// Whether the file stores written data, unlike a pipe or `/dev/null`.
    pub(super) stores_data: bool,
    is_in_directory: bool,
    /// Whether the file was written since the timed part started.
    pub(super) is_dirty: bool,
}

/// Clock and counter readings at the start of the timed part.
#[derive(Default)]
pub(super) struct MeasureStart {
    pub(super) run_origin: Nanoseconds,
    pub(super) start_time: Nanoseconds,
    start_usage: ThreadUsage,
    /// Usage of the helpers, for a worker with a ring.
    pub(super) helper_threads: HelperThreads,
    storage_read_bytes: Option<u64>,
    cpu_wait: Option<Nanoseconds>,
}

/// Maximum number of closed files that stay open for a sync; far below the limit of a process.
const CLOSED_FILES_MAX: usize = 128;

/// Maximum time for a sleeping worker to notice the end of the run.
const SLEEP_SLICE: Nanoseconds = Nanoseconds::from_millis(20);

impl HostWorker {
    /// Creates the worker of the calling thread, whose CPU time it measures.
    pub fn new(ports: HostPorts, control: WorkerControl) -> Self {
        Self {
            open_ring: None,
            ring_record: None,
            load_recorder: None,
            ended_measure: None,
            engine_note: None,
            ports,
            worker_control: control,
            open_files: Vec::new(),
            unsynced_closed_files: Vec::new(),
            has_unsynced_closed_files: false,
            storage_account: ProcIoFile::of_current_thread(),
            cpu_wait: CpuWaitFile::of_current_thread(),
            read_latency: LatencyRecorder::default(),
            write_latency: LatencyRecorder::default(),
            worker_measure: WorkerMeasure::default(),
            is_measuring: false,
            measure_start: MeasureStart::default(),
            ended_helper_usage: HelperUsage::default(),
        }
    }

    pub(super) fn check_stop(&self) -> Result<()> {
        self.worker_control.check_stop_requested()
    }

    pub(crate) fn open(&mut self, path: &str, options: OpenOptions) -> Result<File> {
        self.check_stop()?;
        let failed = |errno: Errno| Error::call_failed(CallKind::Open, path, errno);
        let flags = open_flags(options).ok_or(failed(Errno::Invalid))?;
        let mode = Mode::from_raw_mode(0o666);
        let name = self.ports.resolve_port_path(path).map_err(failed)?;
        let descriptor = match &name {
            PortPath::DirectoryPath(directory, name) => {
                rustix::fs::openat(directory, *name, flags, mode).map_err(Errno::from)
            }
            PortPath::DrivePath(port) => port.open_drive(flags),
            PortPath::Device(path) => {
                rustix::fs::open(*path, flags - OFlags::CREATE - OFlags::TRUNC, mode)
                    .map_err(Errno::from)
            }
        }
        .map_err(failed)?;
        let null = match &name {
            PortPath::DrivePath(port) => port.null_file(),
            PortPath::DirectoryPath(..) | PortPath::Device(_) => None,
        };
        // Some file systems take the flag and use their cache all the same.
        let direct = (options.direct && null.is_none())
            .then(|| page_cache::direct_io_support(descriptor.as_fd()));
        if let Some(Ok(DirectSupport::DirectUnsupported { .. })) = direct {
            return Err(failed(Errno::NotDirect));
        }
        let stores_data = !matches!(name, PortPath::Device(_)) && null.is_none();
        if stores_data {
            let told = self.ports.read_ahead.advise_kernel(descriptor.as_fd());
            told.map_err(failed)?;
        }
        let is_in_directory = matches!(name, PortPath::DirectoryPath(..));
        self.worker_measure.metadata_call_count += u64::from(flags.contains(OFlags::CREATE));
        let path = path.to_owned();
        Ok(self.insert_open_file(HostOpenFile {
            file_descriptor: descriptor,
            path,
            null_file: null,
            stores_data,
            is_in_directory,
            is_dirty: false,
        }))
    }

    /// Stores an open file under the lowest free descriptor, as open(2) does.
    fn insert_open_file(&mut self, open: HostOpenFile) -> File {
        let free = self
            .open_files
            .iter()
            .position(Option::is_none)
            .unwrap_or_else(|| {
                self.open_files.push(None);
                self.open_files.len() - 1
            });
        self.open_files[free] = Some(open);
        File(free)
    }

    #[inline]
    pub(crate) fn read(&mut self, file: File, buffer: &mut [u8]) -> Result<usize> {
        let open = open_file(&self.worker_control, &self.open_files, file, CallKind::Read)?;
        let (latency, result) = time_call(&self.worker_control, || match &open.null_file {
            None => rustix::io::read(&open.file_descriptor, &mut *buffer),
            Some(null) => Ok(null.advance_offset(buffer.len())),
        });
        let count =
            result.map_err(|errno| Error::call_failed(CallKind::Read, &open.path, errno))?;
        if let Some(latency) = latency {
            self.read_latency.record_latency(latency);
        }
        self.worker_measure.call_count += 1;
        self.worker_measure.read_bytes += count as u64;
        self.publish_progress_now_and_then();
        Ok(count)
    }

    #[inline]
    pub(crate) fn write(&mut self, file: File, data: WriteData<'_>) -> Result<usize> {
        let open = open_file(
            &self.worker_control,
            &self.open_files,
            file,
            CallKind::Write,
        )?;
        let (latency, result) = time_call(&self.worker_control, || match &open.null_file {
            None => rustix::io::write(&open.file_descriptor, &data),
            Some(null) => Ok(null.advance_offset(data.len())),
        });
        let count =
            result.map_err(|errno| Error::call_failed(CallKind::Write, &open.path, errno))?;
        if let Some(latency) = latency {
            self.write_latency.record_latency(latency);
        }
        if let Some(Some(open)) = self.open_files.get_mut(file.0) {
            open.is_dirty = open.stores_data && self.is_measuring;
        }
        self.worker_measure.call_count += 1;
        self.worker_measure.written_bytes += count as u64;
        self.publish_progress_now_and_then();
        Ok(count)
    }

    #[inline]
    fn publish_progress_now_and_then(&self) {
        publish_progress_now_and_then(&self.worker_control, &self.worker_measure);
    }

    fn publish_progress(&self) {
        publish_progress(&self.worker_control, &self.worker_measure);
    }

    pub(crate) fn lseek(&mut self, file: File, offset: i64, whence: SeekOrigin) -> Result<u64> {
        let open = open_file(
            &self.worker_control,
            &self.open_files,
            file,
            CallKind::Lseek,
        )?;
        let failed = |errno: Errno| Error::call_failed(CallKind::Lseek, &open.path, errno);
        let from = match whence {
            SeekOrigin::FileStart => {
                SeekFrom::Start(u64::try_from(offset).map_err(|_| failed(Errno::Invalid))?)
            }
            SeekOrigin::CurrentPosition => SeekFrom::Current(offset),
            SeekOrigin::FileEnd => SeekFrom::End(offset),
        };
        match &open.null_file {
            None => {
                rustix::fs::seek(&open.file_descriptor, from).map_err(|errno| failed(errno.into()))
            }
            Some(null) => null.seek_to(from).map_err(failed),
        }
    }

    pub(crate) fn ftruncate(&mut self, file: File, length: u64) -> Result<()> {
        self.call_with_errno(file, CallKind::Ftruncate, |descriptor| {
            rustix::fs::ftruncate(descriptor, length)
        })
    }

    pub(crate) fn allocate(&mut self, file: File, range: Range<u64>, grows: bool) -> Result<()> {
        let flags = match grows {
            true => FallocateFlags::empty(),
            false => FallocateFlags::KEEP_SIZE,
        };
        self.call_with_errno(file, CallKind::Fallocate, |descriptor| {
            rustix::fs::fallocate(descriptor, flags, range.start, range.end - range.start)
        })
    }

    pub(crate) fn punch_hole(&mut self, file: File, range: Range<u64>) -> Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        self.call_with_errno(file, CallKind::Fallocate, |descriptor| {
            rustix::fs::fallocate(descriptor, flags, range.start, range.end - range.start)
        })
    }

    pub(crate) fn fsync(&mut self, file: File) -> Result<()> {
        self.worker_measure.metadata_call_count += 1;
        self.sync_file(file, CallKind::Fsync, |descriptor| {
            rustix::fs::fsync(descriptor)
        })
    }

    pub(crate) fn fdatasync(&mut self, file: File) -> Result<()> {
        self.worker_measure.metadata_call_count += 1;
        self.sync_file(file, CallKind::Fdatasync, |descriptor| {
            rustix::fs::fdatasync(descriptor)
        })
    }

    /// Syncs a file with the given system call. A null drive needs no sync.
    fn sync_file(
        &self,
        file: File,
        call: CallKind,
        sync: impl FnOnce(BorrowedFd<'_>) -> rustix::io::Result<()>,
    ) -> Result<()> {
        match open_file(&self.worker_control, &self.open_files, file, call)?.null_file {
            None => self.call_with_errno(file, call, sync),
            Some(_) => Ok(()),
        }
    }

    /// Closes a file for the program. If it was written in the timed part, its descriptor stays
    /// open for the sync at the end, which reports the errors of close(2) too. Beyond a number of
    /// such files, their whole file systems are synced instead.
    pub(crate) fn close(&mut self, file: File) -> Result<()> {
        let slot = self.open_files.get_mut(file.0).and_then(Option::take);
        let mut open = slot.ok_or_else(|| not_open_error(CallKind::Close, file))?;
        let writes = self
            .open_ring
            .as_mut()
            .is_some_and(|ring| ring.mark_closed(file));
        open.is_dirty |= writes && open.stores_data && self.is_measuring;
        if open.is_dirty && self.unsynced_closed_files.len() < CLOSED_FILES_MAX {
            self.unsynced_closed_files.push(open);
        } else if open.is_dirty {
            self.has_unsynced_closed_files = true;
        }
        Ok(())
    }

    pub(crate) fn file_length(&mut self, file: File) -> Result<u64> {
        match &open_file(
            &self.worker_control,
            &self.open_files,
            file,
            CallKind::FileLength,
        )?
        .null_file
        {
            None => self.call_with_errno(file, CallKind::FileLength, descriptor_length),
            Some(null) => Ok(null.length_bytes()),
        }
    }

    /// Makes a call that only files in the worker's directories support.
    pub(super) fn call_on_file(
        &self,
        call: CallKind,
        file: File,
        act: impl FnOnce(BorrowedFd<'_>) -> rustix::io::Result<()>,
    ) -> Result<()> {
        let open = open_file(&self.worker_control, &self.open_files, file, call)?;
        if !open.is_in_directory {
            return Err(Error::call_failed(call, &open.path, Errno::Access));
        }
        self.call_with_errno(file, call, act)
    }

    /// Makes a call on an open file, without timing or counting it.
    fn call_with_errno<T>(
        &self,
        file: File,
        call: CallKind,
        act: impl FnOnce(BorrowedFd<'_>) -> rustix::io::Result<T>,
    ) -> Result<T> {
        let open = open_file(&self.worker_control, &self.open_files, file, call)?;
        act(open.file_descriptor.as_fd())
            .map_err(|errno| Error::call_failed(call, &open.path, errno))
    }
}

impl HostWorker {
    pub(crate) fn now(&self) -> Nanoseconds {
        monotonic_now()
    }

    pub(crate) fn sleep_until(&mut self, time: Nanoseconds) -> Result<()> {
        loop {
            self.check_stop()?;
            let left = time.since(monotonic_now());
            if left == Nanoseconds::ZERO {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_nanos(left.min(SLEEP_SLICE).0));
        }
    }

    #[inline]
    pub(crate) fn consume_cpu_time(&mut self, span: Nanoseconds) -> Result<()> {
        let clock = &self.worker_control.call_clock;
        let begin = clock.read_ticks();
        while clock.time_between(begin, clock.read_ticks()) < span {
            self.check_stop()?;
            std::hint::spin_loop();
        }
        Ok(())
    }

    pub(crate) fn barrier(&mut self) -> Result<Nanoseconds> {
        self.worker_control
            .rendezvous
            .wait_for_all_workers(&self.worker_control.stop_requested)
    }

    pub(crate) fn notice_count(&self) -> u64 {
        self.worker_control.rendezvous.notice_count()
    }

    pub(crate) fn give_notice(&self) {
        self.worker_control.rendezvous.give_notice();
    }

    pub(crate) fn await_notice(&mut self, seen: u64, until: Option<Nanoseconds>) -> Result<()> {
        let control = &self.worker_control;
        let goes_on = || control.check_stop_requested();
        control.rendezvous.await_notice((seen, until), goes_on)
    }

    pub(crate) fn open_pipe_end(&mut self, number: usize) -> Result<File> {
        let end = self.ports.pipe_ends.get_mut(number).and_then(Option::take);
        let path = format!("pipe end {number}");
        let descriptor =
            end.ok_or_else(|| Error::call_failed(CallKind::Pipe, &path, Errno::BadFile))?;
        Ok(self.insert_open_file(HostOpenFile {
            file_descriptor: descriptor,
            path,
            null_file: None,
            stores_data: false,
            is_in_directory: false,
            is_dirty: false,
        }))
    }
}

impl HostWorker {
    pub(crate) fn start_measuring(&mut self, origin: Nanoseconds) -> Result<()> {
        self.check_stop()?;
        self.worker_measure = WorkerMeasure::default();
        self.read_latency.clear();
        self.write_latency.clear();
        self.unsynced_closed_files.clear();
        self.has_unsynced_closed_files = false;
        for open in self.open_files.iter_mut().flatten() {
            open.is_dirty = false;
        }
        self.publish_progress();
        self.worker_control.progress.start_timed_part();
        self.restart_load();
        self.is_measuring = true;
        self.measure_start = MeasureStart {
            run_origin: origin,
            helper_threads: self.helper_threads(),
            storage_read_bytes: self
                .storage_account
                .as_ref()
                .and_then(ProcIoFile::storage_read_bytes),
            cpu_wait: self.cpu_wait.as_ref().and_then(CpuWaitFile::read_wait_time),
            // The CPU clock is read within the elapsed time, so that no share
            // of it comes out above one.
            start_time: monotonic_now(),
            start_usage: self.thread_usage()?,
        };
        Ok(())
    }

    pub(crate) fn end_timed_part(&mut self) -> Result<()> {
        self.ended_measure = Some(Box::new(self.finish_measuring()?));
        Ok(())
    }

    pub(crate) fn finish_measuring(&mut self) -> Result<WorkerMeasure> {
        if let Some(measure) = self.ended_measure.take() {
            return Ok(*measure);
        }
        let usage = self.thread_usage()?;
        let ended = monotonic_now();
        let helpers = self.helper_usage_since_start();
        let cpu_wait = self.cpu_wait.as_ref().and_then(CpuWaitFile::read_wait_time);
        let storage = self
            .storage_account
            .as_ref()
            .and_then(ProcIoFile::storage_read_bytes);
        self.is_measuring = false;
        let MeasureStart {
            run_origin: origin,
            start_time: time,
            start_usage: before,
            storage_read_bytes,
            cpu_wait: waited_before,
            ..
        } = self.measure_start;
        let mut measure = std::mem::take(&mut self.worker_measure);
        measure.load_measure = self.take_load(ended);
        measure.read_latency = self.read_latency.to_histogram();
        measure.write_latency = self.write_latency.to_histogram();
        measure.start_time = time.since(origin);
        measure.elapsed_time = ended.since(time);
        measure.cpu_time = usage.cpu_time.since(before.cpu_time) + helpers.cpu_time;
        measure.user_cpu_time = usage.user_time.since(before.user_time) + helpers.user_time;
        measure.system_cpu_time = usage.system_time.since(before.system_time) + helpers.system_time;
        measure.voluntary_switch_count =
            usage.voluntary_switch_count - before.voluntary_switch_count;
        measure.involuntary_switch_count =
            usage.involuntary_switch_count - before.involuntary_switch_count;
        measure.minor_fault_count = usage.minor_fault_count - before.minor_fault_count;
        measure.major_fault_count = usage.major_fault_count - before.major_fault_count;
        measure.storage_read_bytes = storage
            .zip(storage_read_bytes)
            .map(|(after, before)| after - before + helpers.storage_read_bytes);
        // It is read just outside the elapsed time, where a short one may wait for longer
        // than it is.
        measure.cpu_wait_time = cpu_wait
            .zip(waited_before)
            .map(|(after, before)| after.since(before).min(measure.elapsed_time));
        let mut wrote = false;
        let open = self
            .open_files
            .iter_mut()
            .flatten()
            .filter(|open| open.is_dirty);
        for open in open.chain(&mut self.unsynced_closed_files) {
            rustix::fs::fsync(&open.file_descriptor)
                .map_err(|errno| Error::call_failed(CallKind::Fsync, &open.path, errno))?;
            open.is_dirty = false;
            wrote = true;
        }
        if std::mem::take(&mut self.has_unsynced_closed_files) {
            for directory in &self.ports.directories {
                rustix::fs::syncfs(directory).map_err(|errno| {
                    Error::call_failed(CallKind::Fsync, "the file system", errno)
                })?;
            }
        }
        measure.durable_time = wrote.then(|| monotonic_now().since(time));
        self.unsynced_closed_files.clear();
        Ok(measure)
    }

    fn thread_usage(&self) -> Result<ThreadUsage> {
        ThreadUsage::of_current_thread()
            .map_err(|errno| Error::call_failed(CallKind::ResourceUsage, "this thread", errno))
    }

    pub(crate) fn abandon_run(&self) {
        self.worker_control
            .is_abandoned
            .store(true, Ordering::Relaxed);
        self.worker_control.rendezvous.break_barrier();
    }

    pub(crate) fn close_all(&mut self) {
        self.open_ring = None;
        self.open_files.clear();
        self.unsynced_closed_files.clear();
    }
}

impl HostWorker {
    pub(crate) fn drop_cached_pages(&mut self, path: &str) -> Result<()> {
        let failed = |errno: Errno| Error::call_failed(CallKind::DropCachedPages, path, errno);
        self.with_file_opened_aside(path, CallKind::DropCachedPages, |descriptor| {
            page_cache::drop_pages(descriptor).map_err(|error| failed(error.into()))
        })
    }

    pub(crate) fn drop_clean_pages(&mut self, path: &str) -> Result<()> {
        let failed = |errno: Errno| Error::call_failed(CallKind::DropCachedPages, path, errno);
        self.with_file_opened_aside(path, CallKind::DropCachedPages, |descriptor| {
            page_cache::drop_clean_pages(descriptor).map_err(|error| failed(error.into()))
        })
    }

    pub(crate) fn resident_bytes(&mut self, path: &str, length: u64) -> Result<Option<u64>> {
        self.with_file_opened_aside(path, CallKind::CacheResidency, |descriptor| {
            Ok(page_cache::resident_bytes(descriptor, length))
        })
    }

    pub(crate) fn drop_all_caches(&mut self) -> Result<()> {
        page_cache::drop_all_caches().map_err(|error| {
            Error::call_failed(
                CallKind::DropCachedPages,
                page_cache::DROP_CACHES_PATH,
                error.source,
            )
        })
    }

    /// Runs `act` on a file that it opens for reading, in addition to the program's open files.
    fn with_file_opened_aside<T>(
        &mut self,
        path: &str,
        call: CallKind,
        act: impl FnOnce(BorrowedFd<'_>) -> Result<T>,
    ) -> Result<T> {
        let file = self.open(path, OpenOptions::READ)?;
        let open = open_file(&self.worker_control, &self.open_files, file, call)?;
        let result = act(open.file_descriptor.as_fd());
        self.close(file)?;
        result
    }
}

/// Publishes the progress every 64 calls. Another core reads it, so that publishing in every call
/// would add a few nanoseconds to each.
#[inline]
pub(super) fn publish_progress_now_and_then(control: &WorkerControl, measure: &WorkerMeasure) {
    if measure.call_count.is_multiple_of(64) {
        publish_progress(control, measure);
    }
}

fn publish_progress(control: &WorkerControl, measure: &WorkerMeasure) {
    let moved = measure.read_bytes + measure.written_bytes;
    control.progress.set_moved_bytes(moved);
}

/// Returns the open file of a descriptor, unless the run has ended.
#[inline]
fn open_file<'a>(
    control: &WorkerControl,
    files: &'a [Option<HostOpenFile>],
    file: File,
    call: CallKind,
) -> Result<&'a HostOpenFile> {
    control.check_stop_requested()?;
    match files.get(file.0) {
        Some(Some(open)) => Ok(open),
        _ => Err(not_open_error(call, file)),
    }
}

#[cold]
fn not_open_error(call: CallKind, file: File) -> Error {
    Error::call_failed(call, format!("file {}", file.0), Errno::BadFile)
}

/// Makes a system call, and repeats it if a signal interrupts it. Returns the result, and the
/// duration if calls are timed.
#[inline]
fn time_call<T>(
    control: &WorkerControl,
    mut call: impl FnMut() -> rustix::io::Result<T>,
) -> (Option<Nanoseconds>, rustix::io::Result<T>) {
    let begin = control.times_calls.then(|| control.call_clock.read_ticks());
    let result = loop {
        match call() {
            Err(rustix::io::Errno::INTR) if control.check_stop_requested().is_ok() => {}
            result => break result,
        }
    };
    (
        begin.map(|begin| {
            control
                .call_clock
                .time_between(begin, control.call_clock.read_ticks())
        }),
        result,
    )
}

/// Converts to the flags of open(2); `None` for a file opened neither for reading nor for writing.
fn open_flags(options: OpenOptions) -> Option<OFlags> {
    let access = match (options.read, options.write) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        (true, false) => OFlags::RDONLY,
        (false, false) => return None,
    };
    let mut flags = access | OFlags::CLOEXEC;
    flags.set(OFlags::CREATE, options.create);
    flags.set(OFlags::EXCL, options.create_exclusive);
    flags.set(OFlags::TRUNC, options.truncate);
    flags.set(OFlags::DIRECT, options.direct);
    flags.set(OFlags::DSYNC, options.dsync);
    if options.sync {
        flags |= OFlags::SYNC;
    }
    Some(flags)
}

/// Returns the length of a file or block device in bytes. fstat does not give that of a block
/// device, so lseek finds its end.
pub(super) fn descriptor_length(descriptor: BorrowedFd<'_>) -> rustix::io::Result<u64> {
    let status = rustix::fs::fstat(descriptor)?;
    if !rustix::fs::FileType::from_raw_mode(status.st_mode).is_block_device() {
        return Ok(status.st_size as u64);
    }
    let here = rustix::fs::seek(descriptor, SeekFrom::Current(0))?;
    let end = rustix::fs::seek(descriptor, SeekFrom::End(0))?;
    rustix::fs::seek(descriptor, SeekFrom::Start(here))?;
    Ok(end)
}
