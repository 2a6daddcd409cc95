//! Worker on a modelled computer: it is a process there, and a call takes virtual time.

mod attributes;
mod layout;
mod measuring;
mod ring;

use crate::{CallKind, Errno, Error, File, OpenOptions, Result, SeekOrigin, WorkerProgress};
use diskperf_machine::Kernel;
use diskperf_machine::{
    OpenFlags, PipeEnd, SeekOrigin as Origin, Session, Time, WorkerRendezvous, WriteData,
};
use diskperf_timeline::Nanoseconds;
use measuring::TimedPartRecorder;
use ring::ModelRing;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Resources that a worker on a model receives.
pub struct ModelPorts {
    /// Process number, unique on the modelled computer.
    pub process_number: usize,
    /// Pipe ends of the worker; taken by [`crate::System::open_pipe_end`].
    pub pipe_ends: Vec<PipeEnd>,
    /// Meeting point of all workers of the run.
    pub rendezvous: Rc<WorkerRendezvous>,
    /// Whether the virtual time of each read and write is recorded.
    pub times_calls: bool,
    /// End of the run by the user. Once it is set, every call fails with [`Error::Interrupted`].
    pub stop_requested: Arc<AtomicBool>,
    /// Progress of the worker, for display.
    pub progress: Arc<WorkerProgress>,
}

/// Worker on a modelled computer, with its open files and its measure.
pub struct ModelWorker {
    session: Session,
    rendezvous: Rc<WorkerRendezvous>,
    stop_requested: Arc<AtomicBool>,
    open_files: Vec<Option<ModelOpenFile>>,
    measurement: TimedPartRecorder,
    open_ring: Option<ModelRing>,
}

struct ModelOpenFile {
    path: String,
    /// Drive that holds the file; `None` for a pipe or `/dev/null`.
    drive_number: Option<u32>,
}

impl ModelWorker {
    /// Creates the worker of the calling task as a process of the modelled computer. Returns when
    /// the process gets the processor.
    pub async fn begin_session(kernel: &Kernel, ports: ModelPorts) -> Self {
        let ModelPorts {
            process_number: number,
            pipe_ends,
            rendezvous: meeting,
            times_calls: time_calls,
            stop_requested: stop,
            progress,
        } = ports;
        let session = Session::begin_session(kernel, number, pipe_ends, &meeting).await;
        let measuring = TimedPartRecorder::new(session.volume_count(), time_calls, progress);
        Self {
            session,
            rendezvous: meeting,
            stop_requested: stop,
            open_files: Vec::new(),
            measurement: measuring,
            open_ring: None,
        }
    }

    pub(crate) async fn end_session(self) {
        self.session.end_session().await;
    }

    pub(crate) fn abandon_run(&self) {
        self.session.abandon_meeting();
    }

    /// Checks that neither the user nor a failed worker has ended the repetition.
    #[inline]
    fn check_stop_requested(&self) -> Result<()> {
        if self.stop_requested.load(Ordering::Relaxed) {
            Err(Error::Interrupted)
        } else if self.rendezvous.is_broken() {
            Err(Error::OtherWorkerFailed)
        } else {
            Ok(())
        }
    }

    fn insert_file(&mut self, number: usize, file: ModelOpenFile) -> File {
        if self.open_files.len() <= number {
            self.open_files.resize_with(number + 1, || None);
        }
        self.open_files[number] = Some(file);
        File(number)
    }

    #[cold]
    fn call_failed(&self, call: CallKind, file: File, errno: impl Into<Errno>) -> Error {
        match self.open_files.get(file.0) {
            Some(Some(open)) => Error::call_failed(call, &open.path, errno),
            _ => Error::call_failed(call, format!("file {}", file.0), errno),
        }
    }
}

impl ModelWorker {
    pub(crate) async fn open(&mut self, path: &str, options: OpenOptions) -> Result<File> {
        self.check_stop_requested()?;
        let failed = |errno: Errno| Error::call_failed(CallKind::Open, path, errno);
        if !options.read && !options.write {
            return Err(failed(Errno::Invalid));
        }
        let name = self.resolve(path).map_err(failed)?;
        // These kernels have no way past the buffer cache but a drive by
        // itself, and most have no other way to that.
        let drive = matches!(name, PathTarget::RawDrive(_));
        let both_ways = drive && self.session.has_block_devices();
        if options.direct != drive && !both_ways {
            return Err(failed(Errno::NotDirect));
        }
        // A drive by itself can be told to have each write on its medium.
        let dsync = options.dsync || options.sync;
        if dsync && (!drive || both_ways) {
            return Err(failed(Errno::NotSynchronous));
        }
        let options = OpenFlags {
            read: options.read,
            write: options.write,
            create: options.create,
            create_exclusive: options.create_exclusive,
            truncate: options.truncate,
            direct_io: options.direct,
            dsync,
        };
        let opened = self.session.open_path(path, options).await;
        let number = opened.map_err(|errno| failed(errno.into()))?;
        let drive = match name {
            PathTarget::FileOnDrive(drive) => Some(drive),
            PathTarget::NullOrZeroDevice | PathTarget::BlockNull | PathTarget::RawDrive(_) => None,
        };
        let path = path.to_owned();
        Ok(self.insert_file(
            number,
            ModelOpenFile {
                path,
                drive_number: drive,
            },
        ))
    }

    #[inline]
    pub(crate) async fn read(&mut self, file: File, buffer: &mut [u8]) -> Result<usize> {
        self.check_stop_requested()?;
        let begin = self.session.current_time();
        let read = self.session.read(file.0, buffer).await;
        let count = read.map_err(|errno| self.call_failed(CallKind::Read, file, errno))?;
        self.measurement
            .count_read(count, self.session.current_time() - begin);
        Ok(count)
    }

    #[inline]
    pub(crate) async fn write(&mut self, file: File, data: WriteData<'_>) -> Result<usize> {
        self.check_stop_requested()?;
        let begin = self.session.current_time();
        let written = self.session.write(file.0, data).await;
        let count = written.map_err(|errno| self.call_failed(CallKind::Write, file, errno))?;
        let drive = match self.open_files.get(file.0) {
            Some(Some(open)) => open.drive_number,
            _ => None,
        };
        let duration = self.session.current_time() - begin;
        self.measurement.count_write(drive, count, duration);
        Ok(count)
    }

    pub(crate) async fn lseek(
        &mut self,
        file: File,
        offset: i64,
        whence: SeekOrigin,
    ) -> Result<u64> {
        self.check_stop_requested()?;
        let from = match whence {
            SeekOrigin::FileStart => Origin::FileStart,
            SeekOrigin::CurrentPosition => Origin::CurrentPosition,
            SeekOrigin::FileEnd => Origin::FileEnd,
        };
        let moved = self.session.lseek(file.0, offset, from).await;
        moved.map_err(|errno| self.call_failed(CallKind::Lseek, file, errno))
    }

    pub(crate) async fn ftruncate(&mut self, file: File, length: u64) -> Result<()> {
        self.check_stop_requested()?;
        let result = self.session.ftruncate(file.0, length).await;
        result.map_err(|errno| self.call_failed(CallKind::Ftruncate, file, errno))
    }

    /// Fails, because the modelled kernels have no fallocate(2).
    pub(crate) async fn allocate(&mut self, file: File, _: Range<u64>, _: bool) -> Result<()> {
        self.check_stop_requested()?;
        Err(self.call_failed(CallKind::Fallocate, file, Errno::Invalid))
    }

    /// Fails, because the modelled kernels cannot punch holes into files.
    pub(crate) async fn punch_hole(&mut self, file: File, _: Range<u64>) -> Result<()> {
        self.check_stop_requested()?;
        Err(self.call_failed(CallKind::Fallocate, file, Errno::Invalid))
    }

    pub(crate) async fn fsync(&mut self, file: File) -> Result<()> {
        self.check_stop_requested()?;
        let result = self.session.fsync(file.0).await;
        result.map_err(|errno| self.call_failed(CallKind::Fsync, file, errno))
    }

    /// Syncs a file with fsync(2), since the modelled kernels have no fdatasync(2).
    pub(crate) async fn fdatasync(&mut self, file: File) -> Result<()> {
        self.fsync(file).await
    }

    /// Closes a file. As on the host, this works even when the run has ended.
    pub(crate) async fn close(&mut self, file: File) -> Result<()> {
        let closed = self.session.close(file.0).await;
        closed.map_err(|errno| self.call_failed(CallKind::Close, file, errno))?;
        self.open_files[file.0] = None;
        Ok(())
    }

    pub(crate) async fn file_length(&mut self, file: File) -> Result<u64> {
        self.check_stop_requested()?;
        let length = self.session.file_length(file.0).await;
        length.map_err(|errno| self.call_failed(CallKind::FileLength, file, errno))
    }

    pub(crate) async fn close_all(&mut self) {
        self.session.close_ring().await;
        self.open_ring = None;
        self.session.close_all().await;
        self.open_files.clear();
    }
}

impl ModelWorker {
    pub(crate) async fn stat(&mut self, path: &str) -> Result<u64> {
        self.check_name(CallKind::Stat, path)?;
        let length = self.session.stat(path).await;
        length.map_err(|errno| Error::call_failed(CallKind::Stat, path, errno))
    }

    pub(crate) async fn unlink(&mut self, path: &str) -> Result<()> {
        self.check_name(CallKind::Unlink, path)?;
        let result = self.session.unlink(path).await;
        result.map_err(|errno| Error::call_failed(CallKind::Unlink, path, errno))
    }

    pub(crate) async fn mkdir(&mut self, path: &str) -> Result<()> {
        self.check_name(CallKind::Mkdir, path)?;
        let result = self.session.mkdir(path).await;
        result.map_err(|errno| Error::call_failed(CallKind::Mkdir, path, errno))
    }

    pub(crate) async fn rmdir(&mut self, path: &str) -> Result<()> {
        self.check_name(CallKind::Rmdir, path)?;
        let result = self.session.rmdir(path).await;
        result.map_err(|errno| Error::call_failed(CallKind::Rmdir, path, errno))
    }

    pub(crate) async fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        self.check_name(CallKind::Rename, to)?;
        self.check_name(CallKind::Rename, from)?;
        let result = self.session.rename(from, to).await;
        result.map_err(|errno| Error::call_failed(CallKind::Rename, from, errno))
    }

    /// Returns the target of a name. A drive or block device must exist.
    fn resolve(&self, path: &str) -> std::result::Result<PathTarget, Errno> {
        match parse_path(path)? {
            PathTarget::RawDrive(drive) if !self.session.has_volume(drive) => Err(Errno::NoEntry),
            PathTarget::BlockNull if !self.session.has_block_devices() => Err(Errno::NoEntry),
            name => Ok(name),
        }
    }

    /// Checks that a name may be changed because it lies in one of the file systems.
    fn check_name(&self, call: CallKind, path: &str) -> Result<()> {
        self.check_stop_requested()?;
        match self.resolve(path) {
            Ok(PathTarget::FileOnDrive(_)) => Ok(()),
            Ok(PathTarget::NullOrZeroDevice | PathTarget::BlockNull | PathTarget::RawDrive(_)) => {
                Err(Error::call_failed(call, path, Errno::Access))
            }
            Err(errno) => Err(Error::call_failed(call, path, errno)),
        }
    }
}

impl ModelWorker {
    pub(crate) fn now(&self) -> Nanoseconds {
        to_nanoseconds(self.session.current_time())
    }

    pub(crate) async fn sleep_until(&mut self, time: Nanoseconds) -> Result<()> {
        self.check_stop_requested()?;
        self.session.sleep_until(Time(time.0)).await;
        self.check_stop_requested()
    }

    #[inline]
    pub(crate) async fn consume_cpu_time(&mut self, span: Nanoseconds) -> Result<()> {
        self.check_stop_requested()?;
        self.session.consume_user_time(Time(span.0)).await;
        Ok(())
    }

    pub(crate) async fn barrier(&mut self) -> Result<Nanoseconds> {
        self.check_stop_requested()?;
        match self.session.barrier().await {
            Some(released) => Ok(to_nanoseconds(released)),
            None => Err(self
                .check_stop_requested()
                .err()
                .unwrap_or(Error::OtherWorkerFailed)),
        }
    }

    pub(crate) fn notice_count(&self) -> u64 {
        self.session.notice_count()
    }

    pub(crate) fn give_notice(&self) {
        self.session.give_notice();
    }

    pub(crate) async fn await_notice(
        &mut self,
        seen: u64,
        until: Option<Nanoseconds>,
    ) -> Result<()> {
        self.check_stop_requested()?;
        let until = until.map(|until| Time(until.0));
        self.session.await_notice(seen, until).await;
        self.check_stop_requested()
    }

    pub(crate) async fn open_pipe_end(&mut self, number: usize) -> Result<File> {
        let path = format!("pipe end {number}");
        match self.session.take_pipe_end(number).await {
            Ok(file) => Ok(self.insert_file(
                file,
                ModelOpenFile {
                    path,
                    drive_number: None,
                },
            )),
            Err(errno) => Err(Error::call_failed(CallKind::Pipe, path, errno)),
        }
    }
}

impl ModelWorker {
    pub(crate) async fn drop_cached_pages(&mut self, path: &str) -> Result<()> {
        self.check_stop_requested()?;
        let dropped = self.session.drop_cached_blocks(path).await;
        dropped.map_err(|errno| Error::call_failed(CallKind::DropCachedPages, path, errno))
    }

    pub(crate) async fn drop_clean_pages(&mut self, path: &str) -> Result<()> {
        self.drop_cached_pages(path).await
    }

    pub(crate) async fn resident_bytes(&mut self, path: &str, length: u64) -> Result<Option<u64>> {
        self.check_stop_requested()?;
        let resident = self.session.resident_bytes(path, length).await;
        let resident =
            resident.map_err(|errno| Error::call_failed(CallKind::CacheResidency, path, errno))?;
        Ok(Some(resident))
    }

    pub(crate) async fn drop_all_caches(&mut self) -> Result<()> {
        self.check_stop_requested()?;
        self.session.drop_all_caches().await;
        Ok(())
    }
}

/// Target of a name, as far as the name alone determines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathTarget {
    /// Name on the file system of this drive, if there is one.
    FileOnDrive(u32),
    /// Device file `/dev/null` or `/dev/zero`.
    NullOrZeroDevice,
    /// Block device `/dev/bnull` without data, which only some systems have.
    BlockNull,
    RawDrive(u32),
}

/// Parses a name, and refuses names that no worker may use on any system. The crate's documentation
/// describes the name space.
fn parse_path(path: &str) -> std::result::Result<PathTarget, Errno> {
    if let "/dev/null" | "/dev/zero" = path {
        return Ok(PathTarget::NullOrZeroDevice);
    }
    if path == "/dev/bnull" {
        return Ok(PathTarget::BlockNull);
    }
    if let Some(number) = path.strip_prefix("/dev/drive") {
        return number
            .parse()
            .map(PathTarget::RawDrive)
            .map_err(|_| Errno::NoEntry);
    }
    let rest = path.strip_prefix("/mnt").ok_or(Errno::NoEntry)?;
    let (drive, name) = rest.split_once('/').unwrap_or((rest, ""));
    if name.split('/').any(|part| part == "..") {
        return Err(Errno::Access);
    }
    drive
        .parse()
        .map(PathTarget::FileOnDrive)
        .map_err(|_| Errno::NoEntry)
}

fn to_nanoseconds(time: Time) -> Nanoseconds {
    Nanoseconds(time.0)
}
