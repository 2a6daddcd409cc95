//! Worker on real storage. Each call of a program is one system call on the worker's own thread.

use super::clock::{Clock, monotonic};
use super::names::{PortPath, Ports};
use super::null::NullFile;
use super::page_cache::{self, DirectSupport};
use super::rendezvous::Rendezvous;
use super::ring::{EngineNote, Ring, RingRecord};
use super::usage::{CpuWait, HelperThreads, HelperUsage, StorageAccount, ThreadUsage};
use crate::ring::record::LoadRecorder;
use crate::{Call, Errno, Error, File, Open, Result, Whence, WorkerProgress, Written};
use diskperf_timeline::{LatencyRecorder, Nanoseconds, WorkerMeasure};
use rustix::fs::{FallocateFlags, Mode, OFlags, SeekFrom};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// State that a worker shares with the runner and the other workers.
pub struct Control {
    /// End of the run by the user. Once the runner has set it, every call fails with
    /// [`Error::Interrupted`].
    pub stop: Arc<AtomicBool>,
    /// Failure of another worker of the repetition. Once it is set, the repetition is worthless and
    /// every call fails with [`Error::PeerFailed`].
    pub abandoned: Arc<AtomicBool>,
    /// Progress of the worker, for display.
    pub progress: Arc<WorkerProgress>,
    /// Meeting point of all workers of the run.
    pub rendezvous: Arc<Rendezvous>,
    /// Whether each read and write is timed.
    pub time_calls: bool,
    /// Clock that times single calls.
    pub clock: Clock,
}

impl Control {
    /// Returns the shared state of a worker that runs alone, without a runner or other workers.
    pub fn alone(time_calls: bool, clock: Clock) -> Self {
        Self {
            stop: Arc::default(),
            abandoned: Arc::default(),
            progress: Arc::default(),
            rendezvous: Arc::new(Rendezvous::new(1)),
            time_calls,
            clock,
        }
    }

    /// Checks that neither the user nor a failed worker has ended the repetition.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            Err(Error::Interrupted)
        } else if self.abandoned.load(Ordering::Relaxed) {
            Err(Error::PeerFailed)
        } else {
            Ok(())
        }
    }
}

/// Worker on real storage, with its open files and its measure.
pub struct Host {
    /// Ring of the worker, if it has one. It is dropped before the files, because it ends their
    /// requests in flight.
    pub(super) ring: Option<Box<Ring>>,
    /// Log of the ring's requests, if they are recorded.
    pub(super) ring_record: Option<RingRecord>,
    /// Measure of the ring's requests; it outlives the ring.
    pub(super) load: Option<Box<LoadRecorder>>,
    pub(super) engine_note: Option<EngineNote>,
    pub(super) ports: Ports,
    pub(super) control: Control,
    pub(super) files: Vec<Option<OpenFile>>,
    /// Files that were written and closed in the timed part, to be synced at its end.
    closed_unsynced: Vec<OpenFile>,
    /// Whether more files were written and closed than `closed` holds.
    has_unsynced_closed_files: bool,
    storage_account: Option<StorageAccount>,
    cpu_wait: Option<CpuWait>,
    read_latency: LatencyRecorder,
    write_latency: LatencyRecorder,
    pub(super) measure: WorkerMeasure,
    /// Whether the timed part has started and not ended.
    pub(super) is_measuring: bool,
    pub(super) started: MeasureStart,
    /// CPU time of helpers that ended in the timed part.
    pub(super) ended_helpers: HelperUsage,
    /// Measure of a timed part that ended before the program.
    pub(super) ended_measure: Option<Box<WorkerMeasure>>,
}

pub(super) struct OpenFile {
    pub(super) descriptor: OwnedFd,
    pub(super) path: String,
    /// State of a null drive; `None` for other files.
    pub(super) null: Option<NullFile>,
    /// Whether the file stores written data, unlike a pipe or `/dev/null`.
    pub(super) stores_data: bool,
    is_in_directory: bool,
    /// Whether the file was written since the timed part started.
    pub(super) is_dirty: bool,
}

/// Clock and counter readings at the start of the timed part.
#[derive(Default)]
pub(super) struct MeasureStart {
    pub(super) origin: Nanoseconds,
    pub(super) time: Nanoseconds,
    usage: ThreadUsage,
    /// Usage of the helpers, for a worker with a ring.
    pub(super) helpers: HelperThreads,
    storage_read_bytes: Option<u64>,
    cpu_wait: Option<Nanoseconds>,
}

/// Maximum number of closed files that stay open for a sync; far below the limit of a process.
const CLOSED_FILES_MAX: usize = 128;

/// Maximum time for a sleeping worker to notice the end of the run.
const SLEEP_SLICE: Nanoseconds = Nanoseconds::from_millis(20);

impl Host {
    /// Creates the worker of the calling thread, whose CPU time it measures.
    pub fn new(ports: Ports, control: Control) -> Self {
        Self {
            ring: None,
            ring_record: None,
            load: None,
            ended_measure: None,
            engine_note: None,
            ports,
            control,
            files: Vec::new(),
            closed_unsynced: Vec::new(),
            has_unsynced_closed_files: false,
            storage_account: StorageAccount::of_current_thread(),
            cpu_wait: CpuWait::of_current_thread(),
            read_latency: LatencyRecorder::default(),
            write_latency: LatencyRecorder::default(),
            measure: WorkerMeasure::default(),
            is_measuring: false,
            started: MeasureStart::default(),
            ended_helpers: HelperUsage::default(),
        }
    }

    pub(super) fn check_stop(&self) -> Result<()> {
        self.control.check()
    }

    pub(crate) fn open(&mut self, path: &str, options: Open) -> Result<File> {
        self.check_stop()?;
        let failed = |errno: Errno| Error::failed(Call::Open, path, errno);
        let flags = open_flags(options).ok_or(failed(Errno::Invalid))?;
        let mode = Mode::from_raw_mode(0o666);
        let name = self.ports.resolve(path).map_err(failed)?;
        let descriptor = match &name {
            PortPath::InDirectory(directory, name) => {
                rustix::fs::openat(directory, *name, flags, mode).map_err(Errno::from)
            }
            PortPath::Drive(port) => port.open(flags),
            PortPath::Device(path) => {
                rustix::fs::open(*path, flags - OFlags::CREATE - OFlags::TRUNC, mode)
                    .map_err(Errno::from)
            }
        }
        .map_err(failed)?;
        let null = match &name {
            PortPath::Drive(port) => port.null_file(),
            PortPath::InDirectory(..) | PortPath::Device(_) => None,
        };
        // Some file systems take the flag and use their cache all the same.
        let direct =
            (options.direct && null.is_none()).then(|| page_cache::direct_io(descriptor.as_fd()));
        if let Some(Ok(DirectSupport::Unsupported { .. })) = direct {
            return Err(failed(Errno::NotDirect));
        }
        let stores_data = !matches!(name, PortPath::Device(_)) && null.is_none();
        if stores_data {
            let told = self.ports.read_ahead.advise(descriptor.as_fd());
            told.map_err(failed)?;
        }
        let is_in_directory = matches!(name, PortPath::InDirectory(..));
        self.measure.metadata_calls += u64::from(flags.contains(OFlags::CREATE));
        let path = path.to_owned();
        Ok(self.take_slot(OpenFile {
            descriptor,
            path,
            null,
            stores_data,
            is_in_directory,
            is_dirty: false,
        }))
    }

    /// Stores an open file under the lowest free descriptor, as open(2) does.
    fn take_slot(&mut self, open: OpenFile) -> File {
        let free = self
            .files
            .iter()
            .position(Option::is_none)
            .unwrap_or_else(|| {
                self.files.push(None);
                self.files.len() - 1
            });
        self.files[free] = Some(open);
        File(free)
    }

    #[inline]
    pub(crate) fn read(&mut self, file: File, buffer: &mut [u8]) -> Result<usize> {
        let open = open_file(&self.control, &self.files, file, Call::Read)?;
        let (latency, result) = time_call(&self.control, || match &open.null {
            None => rustix::io::read(&open.descriptor, &mut *buffer),
            Some(null) => Ok(null.advance(buffer.len())),
        });
        let count = result.map_err(|errno| Error::failed(Call::Read, &open.path, errno))?;
        if let Some(latency) = latency {
            self.read_latency.record(latency);
        }
        self.measure.calls += 1;
        self.measure.read_bytes += count as u64;
        self.publish_progress_now_and_then();
        Ok(count)
    }

    #[inline]
    pub(crate) fn write(&mut self, file: File, data: Written<'_>) -> Result<usize> {
        let open = open_file(&self.control, &self.files, file, Call::Write)?;
        let (latency, result) = time_call(&self.control, || match &open.null {
            None => rustix::io::write(&open.descriptor, &data),
            Some(null) => Ok(null.advance(data.len())),
        });
        let count = result.map_err(|errno| Error::failed(Call::Write, &open.path, errno))?;
        if let Some(latency) = latency {
            self.write_latency.record(latency);
        }
        if let Some(Some(open)) = self.files.get_mut(file.0) {
            open.is_dirty = open.stores_data && self.is_measuring;
        }
        self.measure.calls += 1;
        self.measure.written_bytes += count as u64;
        self.publish_progress_now_and_then();
        Ok(count)
    }

    #[inline]
    fn publish_progress_now_and_then(&self) {
        publish_progress_now_and_then(&self.control, &self.measure);
    }

    fn publish_progress(&self) {
        publish_progress(&self.control, &self.measure);
    }

    pub(crate) fn lseek(&mut self, file: File, offset: i64, whence: Whence) -> Result<u64> {
        let open = open_file(&self.control, &self.files, file, Call::Lseek)?;
        let failed = |errno: Errno| Error::failed(Call::Lseek, &open.path, errno);
        let from = match whence {
            Whence::Start => {
                SeekFrom::Start(u64::try_from(offset).map_err(|_| failed(Errno::Invalid))?)
            }
            Whence::Current => SeekFrom::Current(offset),
            Whence::End => SeekFrom::End(offset),
        };
        match &open.null {
            None => rustix::fs::seek(&open.descriptor, from).map_err(|errno| failed(errno.into())),
            Some(null) => null.seek(from).map_err(failed),
        }
    }

    pub(crate) fn ftruncate(&mut self, file: File, length: u64) -> Result<()> {
        self.call(file, Call::Ftruncate, |descriptor| {
            rustix::fs::ftruncate(descriptor, length)
        })
    }

    pub(crate) fn allocate(&mut self, file: File, range: Range<u64>, grows: bool) -> Result<()> {
        let flags = match grows {
            true => FallocateFlags::empty(),
            false => FallocateFlags::KEEP_SIZE,
        };
        self.call(file, Call::Fallocate, |descriptor| {
            rustix::fs::fallocate(descriptor, flags, range.start, range.end - range.start)
        })
    }

    pub(crate) fn punch_hole(&mut self, file: File, range: Range<u64>) -> Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        self.call(file, Call::Fallocate, |descriptor| {
            rustix::fs::fallocate(descriptor, flags, range.start, range.end - range.start)
        })
    }

    pub(crate) fn fsync(&mut self, file: File) -> Result<()> {
        self.measure.metadata_calls += 1;
        self.sync(file, Call::Fsync, |descriptor| {
            rustix::fs::fsync(descriptor)
        })
    }

    pub(crate) fn fdatasync(&mut self, file: File) -> Result<()> {
        self.measure.metadata_calls += 1;
        self.sync(file, Call::Fdatasync, |descriptor| {
            rustix::fs::fdatasync(descriptor)
        })
    }

    /// Syncs a file with the given system call. A null drive needs no sync.
    fn sync(
        &self,
        file: File,
        call: Call,
        sync: impl FnOnce(BorrowedFd<'_>) -> rustix::io::Result<()>,
    ) -> Result<()> {
        match open_file(&self.control, &self.files, file, call)?.null {
            None => self.call(file, call, sync),
            Some(_) => Ok(()),
        }
    }

    /// Closes a file for the program. If it was written in the timed part, its descriptor stays
    /// open for the sync at the end, which reports the errors of close(2) too. Beyond a number of
    /// such files, their whole file systems are synced instead.
    pub(crate) fn close(&mut self, file: File) -> Result<()> {
        let slot = self.files.get_mut(file.0).and_then(Option::take);
        let mut open = slot.ok_or_else(|| not_open(Call::Close, file))?;
        let writes = self
            .ring
            .as_mut()
            .is_some_and(|ring| ring.mark_closed(file));
        open.is_dirty |= writes && open.stores_data && self.is_measuring;
        if open.is_dirty && self.closed_unsynced.len() < CLOSED_FILES_MAX {
            self.closed_unsynced.push(open);
        } else if open.is_dirty {
            self.has_unsynced_closed_files = true;
        }
        Ok(())
    }

    pub(crate) fn length(&mut self, file: File) -> Result<u64> {
        match &open_file(&self.control, &self.files, file, Call::Length)?.null {
            None => self.call(file, Call::Length, length),
            Some(null) => Ok(null.length_bytes()),
        }
    }

    /// Makes a call that only files in the worker's directories support.
    pub(super) fn in_file(
        &self,
        call: Call,
        file: File,
        act: impl FnOnce(BorrowedFd<'_>) -> rustix::io::Result<()>,
    ) -> Result<()> {
        let open = open_file(&self.control, &self.files, file, call)?;
        if !open.is_in_directory {
            return Err(Error::failed(call, &open.path, Errno::Access));
        }
        self.call(file, call, act)
    }

    /// Makes a call on an open file, without timing or counting it.
    fn call<T>(
        &self,
        file: File,
        call: Call,
        act: impl FnOnce(BorrowedFd<'_>) -> rustix::io::Result<T>,
    ) -> Result<T> {
        let open = open_file(&self.control, &self.files, file, call)?;
        act(open.descriptor.as_fd()).map_err(|errno| Error::failed(call, &open.path, errno))
    }
}

impl Host {
    pub(crate) fn now(&self) -> Nanoseconds {
        monotonic()
    }

    pub(crate) fn sleep_until(&mut self, time: Nanoseconds) -> Result<()> {
        loop {
            self.check_stop()?;
            let left = time.since(monotonic());
            if left == Nanoseconds::ZERO {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_nanos(left.min(SLEEP_SLICE).0));
        }
    }

    #[inline]
    pub(crate) fn compute(&mut self, span: Nanoseconds) -> Result<()> {
        let clock = &self.control.clock;
        let begin = clock.ticks();
        while clock.span(begin, clock.ticks()) < span {
            self.check_stop()?;
            std::hint::spin_loop();
        }
        Ok(())
    }

    pub(crate) fn barrier(&mut self) -> Result<Nanoseconds> {
        self.control.rendezvous.wait(&self.control.stop)
    }

    pub(crate) fn notices(&self) -> u64 {
        self.control.rendezvous.notices()
    }

    pub(crate) fn give_notice(&self) {
        self.control.rendezvous.give_notice();
    }

    pub(crate) fn await_notice(&mut self, seen: u64, until: Option<Nanoseconds>) -> Result<()> {
        let control = &self.control;
        let goes_on = || control.check();
        control.rendezvous.await_notice((seen, until), goes_on)
    }

    pub(crate) fn pipe_end(&mut self, number: usize) -> Result<File> {
        let end = self.ports.pipe_ends.get_mut(number).and_then(Option::take);
        let path = format!("pipe end {number}");
        let descriptor = end.ok_or_else(|| Error::failed(Call::Pipe, &path, Errno::BadFile))?;
        Ok(self.take_slot(OpenFile {
            descriptor,
            path,
            null: None,
            stores_data: false,
            is_in_directory: false,
            is_dirty: false,
        }))
    }
}

impl Host {
    pub(crate) fn start_measuring(&mut self, origin: Nanoseconds) -> Result<()> {
        self.check_stop()?;
        self.measure = WorkerMeasure::default();
        self.read_latency.clear();
        self.write_latency.clear();
        self.closed_unsynced.clear();
        self.has_unsynced_closed_files = false;
        for open in self.files.iter_mut().flatten() {
            open.is_dirty = false;
        }
        self.publish_progress();
        self.control.progress.start_timed_part();
        self.restart_load();
        self.is_measuring = true;
        self.started = MeasureStart {
            origin,
            helpers: self.helpers(),
            storage_read_bytes: self
                .storage_account
                .as_ref()
                .and_then(StorageAccount::read_bytes),
            cpu_wait: self.cpu_wait.as_ref().and_then(CpuWait::read),
            // The CPU clock is read within the elapsed time, so that no share
            // of it comes out above one.
            time: monotonic(),
            usage: self.usage()?,
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
        let usage = self.usage()?;
        let ended = monotonic();
        let helpers = self.helpers_since_start();
        let cpu_wait = self.cpu_wait.as_ref().and_then(CpuWait::read);
        let storage = self
            .storage_account
            .as_ref()
            .and_then(StorageAccount::read_bytes);
        self.is_measuring = false;
        let MeasureStart {
            origin,
            time,
            usage: before,
            storage_read_bytes,
            cpu_wait: waited_before,
            ..
        } = self.started;
        let mut measure = std::mem::take(&mut self.measure);
        measure.load = self.take_load(ended);
        measure.read_latency = self.read_latency.histogram();
        measure.write_latency = self.write_latency.histogram();
        measure.started = time.since(origin);
        measure.elapsed = ended.since(time);
        measure.cpu = usage.cpu.since(before.cpu) + helpers.cpu;
        measure.user = usage.user.since(before.user) + helpers.user;
        measure.system = usage.system.since(before.system) + helpers.system;
        measure.voluntary_switches = usage.voluntary_switches - before.voluntary_switches;
        measure.involuntary_switches = usage.involuntary_switches - before.involuntary_switches;
        measure.minor_faults = usage.minor_faults - before.minor_faults;
        measure.major_faults = usage.major_faults - before.major_faults;
        measure.storage_read_bytes = storage
            .zip(storage_read_bytes)
            .map(|(after, before)| after - before + helpers.storage_read_bytes);
        // It is read just outside the elapsed time, where a short one may wait for longer
        // than it is.
        measure.cpu_wait = cpu_wait
            .zip(waited_before)
            .map(|(after, before)| after.since(before).min(measure.elapsed));
        let mut wrote = false;
        let open = self.files.iter_mut().flatten().filter(|open| open.is_dirty);
        for open in open.chain(&mut self.closed_unsynced) {
            rustix::fs::fsync(&open.descriptor)
                .map_err(|errno| Error::failed(Call::Fsync, &open.path, errno))?;
            open.is_dirty = false;
            wrote = true;
        }
        if std::mem::take(&mut self.has_unsynced_closed_files) {
            for directory in &self.ports.directories {
                rustix::fs::syncfs(directory)
                    .map_err(|errno| Error::failed(Call::Fsync, "the file system", errno))?;
            }
        }
        measure.durable = wrote.then(|| monotonic().since(time));
        self.closed_unsynced.clear();
        Ok(measure)
    }

    fn usage(&self) -> Result<ThreadUsage> {
        ThreadUsage::of_current_thread()
            .map_err(|errno| Error::failed(Call::Usage, "this thread", errno))
    }

    pub(crate) fn give_up(&self) {
        self.control.abandoned.store(true, Ordering::Relaxed);
        self.control.rendezvous.give_up();
    }

    pub(crate) fn close_all(&mut self) {
        self.ring = None;
        self.files.clear();
        self.closed_unsynced.clear();
    }
}

impl Host {
    pub(crate) fn drop_cached(&mut self, path: &str) -> Result<()> {
        let failed = |errno: Errno| Error::failed(Call::DropCached, path, errno);
        self.open_aside(path, Call::DropCached, |descriptor| {
            page_cache::drop_pages(descriptor).map_err(|error| failed(error.into()))
        })
    }

    pub(crate) fn drop_clean(&mut self, path: &str) -> Result<()> {
        let failed = |errno: Errno| Error::failed(Call::DropCached, path, errno);
        self.open_aside(path, Call::DropCached, |descriptor| {
            page_cache::drop_clean_pages(descriptor).map_err(|error| failed(error.into()))
        })
    }

    pub(crate) fn resident_bytes(&mut self, path: &str, length: u64) -> Result<Option<u64>> {
        self.open_aside(path, Call::Residency, |descriptor| {
            Ok(page_cache::resident_bytes(descriptor, length))
        })
    }

    pub(crate) fn drop_all_caches(&mut self) -> Result<()> {
        page_cache::drop_all_caches()
            .map_err(|error| Error::failed(Call::DropCached, page_cache::DROP_CACHES, error.source))
    }

    /// Runs `act` on a file that it opens for reading, in addition to the program's open files.
    fn open_aside<T>(
        &mut self,
        path: &str,
        call: Call,
        act: impl FnOnce(BorrowedFd<'_>) -> Result<T>,
    ) -> Result<T> {
        let file = self.open(path, Open::READ)?;
        let open = open_file(&self.control, &self.files, file, call)?;
        let result = act(open.descriptor.as_fd());
        self.close(file)?;
        result
    }
}

/// Publishes the progress every 64 calls. Another core reads it, so that publishing in every call
/// would add a few nanoseconds to each.
#[inline]
pub(super) fn publish_progress_now_and_then(control: &Control, measure: &WorkerMeasure) {
    if measure.calls.is_multiple_of(64) {
        publish_progress(control, measure);
    }
}

fn publish_progress(control: &Control, measure: &WorkerMeasure) {
    let moved = measure.read_bytes + measure.written_bytes;
    control.progress.set_moved_bytes(moved);
}

/// Returns the open file of a descriptor, unless the run has ended.
#[inline]
fn open_file<'a>(
    control: &Control,
    files: &'a [Option<OpenFile>],
    file: File,
    call: Call,
) -> Result<&'a OpenFile> {
    control.check()?;
    match files.get(file.0) {
        Some(Some(open)) => Ok(open),
        _ => Err(not_open(call, file)),
    }
}

#[cold]
fn not_open(call: Call, file: File) -> Error {
    Error::failed(call, format!("file {}", file.0), Errno::BadFile)
}

/// Makes a system call, and repeats it if a signal interrupts it. Returns the result, and the
/// duration if calls are timed.
#[inline]
fn time_call<T>(
    control: &Control,
    mut call: impl FnMut() -> rustix::io::Result<T>,
) -> (Option<Nanoseconds>, rustix::io::Result<T>) {
    let begin = control.time_calls.then(|| control.clock.ticks());
    let result = loop {
        match call() {
            Err(rustix::io::Errno::INTR) if control.check().is_ok() => {}
            result => break result,
        }
    };
    (
        begin.map(|begin| control.clock.span(begin, control.clock.ticks())),
        result,
    )
}

/// Converts to the flags of open(2); `None` for a file opened neither for reading nor for writing.
fn open_flags(options: Open) -> Option<OFlags> {
    let access = match (options.read, options.write) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        (true, false) => OFlags::RDONLY,
        (false, false) => return None,
    };
    let mut flags = access | OFlags::CLOEXEC;
    flags.set(OFlags::CREATE, options.create);
    flags.set(OFlags::EXCL, options.exclusive);
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
pub(super) fn length(descriptor: BorrowedFd<'_>) -> rustix::io::Result<u64> {
    let status = rustix::fs::fstat(descriptor)?;
    if !rustix::fs::FileType::from_raw_mode(status.st_mode).is_block_device() {
        return Ok(status.st_size as u64);
    }
    let here = rustix::fs::seek(descriptor, SeekFrom::Current(0))?;
    let end = rustix::fs::seek(descriptor, SeekFrom::End(0))?;
    rustix::fs::seek(descriptor, SeekFrom::Start(here))?;
    Ok(end)
}
