//! Worker on a modelled computer: it is a process there, and a call takes virtual time.

mod attributes;
mod layout;
mod measuring;
mod ring;

use crate::{Call, Errno, Error, File, Open, Result, Whence, WorkerProgress};
use diskperf_machine::Kernel;
use diskperf_machine::{From as Origin, How, PipeEnd, Rendezvous, Session, Time, Written};
use diskperf_timeline::Nanoseconds;
use measuring::TimedPartRecorder;
use ring::Ring;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Resources that a worker on a model receives.
pub struct ModelPorts {
    /// Process number, unique on the modelled computer.
    pub number: usize,
    /// Pipe ends of the worker; taken by [`crate::System::pipe_end`].
    pub pipe_ends: Vec<PipeEnd>,
    /// Meeting point of all workers of the run.
    pub meeting: Rc<Rendezvous>,
    /// Whether the virtual time of each read and write is recorded.
    pub time_calls: bool,
    /// End of the run by the user. Once it is set, every call fails with [`Error::Interrupted`].
    pub stop: Arc<AtomicBool>,
    /// Progress of the worker, for display.
    pub progress: Arc<WorkerProgress>,
}

/// Worker on a modelled computer, with its open files and its measure.
pub struct Model {
    session: Session,
    meeting: Rc<Rendezvous>,
    stop: Arc<AtomicBool>,
    files: Vec<Option<OpenFile>>,
    measuring: TimedPartRecorder,
    ring: Option<Ring>,
}

struct OpenFile {
    path: String,
    /// Drive that holds the file; `None` for a pipe or `/dev/null`.
    drive: Option<u32>,
}

impl Model {
    /// Creates the worker of the calling task as a process of the modelled computer. Returns when
    /// the process gets the processor.
    pub async fn begin(kernel: &Kernel, ports: ModelPorts) -> Self {
        let ModelPorts {
            number,
            pipe_ends,
            meeting,
            time_calls,
            stop,
            progress,
        } = ports;
        let session = Session::begin(kernel, number, pipe_ends, &meeting).await;
        let measuring = TimedPartRecorder::new(session.volumes(), time_calls, progress);
        Self {
            session,
            meeting,
            stop,
            files: Vec::new(),
            measuring,
            ring: None,
        }
    }

    pub(crate) async fn end(self) {
        self.session.end().await;
    }

    pub(crate) fn give_up(&self) {
        self.session.give_up_meeting();
    }

    /// Checks that neither the user nor a failed worker has ended the repetition.
    #[inline]
    fn check(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            Err(Error::Interrupted)
        } else if self.meeting.is_broken() {
            Err(Error::PeerFailed)
        } else {
            Ok(())
        }
    }

    fn insert_file(&mut self, number: usize, file: OpenFile) -> File {
        if self.files.len() <= number {
            self.files.resize_with(number + 1, || None);
        }
        self.files[number] = Some(file);
        File(number)
    }

    #[cold]
    fn failed(&self, call: Call, file: File, errno: impl Into<Errno>) -> Error {
        match self.files.get(file.0) {
            Some(Some(open)) => Error::failed(call, &open.path, errno),
            _ => Error::failed(call, format!("file {}", file.0), errno),
        }
    }
}

impl Model {
    pub(crate) async fn open(&mut self, path: &str, options: Open) -> Result<File> {
        self.check()?;
        let failed = |errno: Errno| Error::failed(Call::Open, path, errno);
        if !options.read && !options.write {
            return Err(failed(Errno::Invalid));
        }
        let name = self.resolve(path).map_err(failed)?;
        // These kernels have no way past the buffer cache but a drive by
        // itself, and most have no other way to that.
        let drive = matches!(name, PathTarget::Drive(_));
        let both_ways = drive && self.session.has_block_devices();
        if options.direct != drive && !both_ways {
            return Err(failed(Errno::NotDirect));
        }
        // A drive by itself can be told to have each write on its medium.
        let dsync = options.dsync || options.sync;
        if dsync && (!drive || both_ways) {
            return Err(failed(Errno::NotSynchronous));
        }
        let options = How {
            read: options.read,
            write: options.write,
            create: options.create,
            exclusive: options.exclusive,
            truncate: options.truncate,
            direct: options.direct,
            dsync,
        };
        let opened = self.session.open(path, options).await;
        let number = opened.map_err(|errno| failed(errno.into()))?;
        let drive = match name {
            PathTarget::OnDrive(drive) => Some(drive),
            PathTarget::Device | PathTarget::BlockNull | PathTarget::Drive(_) => None,
        };
        let path = path.to_owned();
        Ok(self.insert_file(number, OpenFile { path, drive }))
    }

    #[inline]
    pub(crate) async fn read(&mut self, file: File, buffer: &mut [u8]) -> Result<usize> {
        self.check()?;
        let begin = self.session.now();
        let read = self.session.read(file.0, buffer).await;
        let count = read.map_err(|errno| self.failed(Call::Read, file, errno))?;
        self.measuring.count_read(count, self.session.now() - begin);
        Ok(count)
    }

    #[inline]
    pub(crate) async fn write(&mut self, file: File, data: Written<'_>) -> Result<usize> {
        self.check()?;
        let begin = self.session.now();
        let written = self.session.write(file.0, data).await;
        let count = written.map_err(|errno| self.failed(Call::Write, file, errno))?;
        let drive = match self.files.get(file.0) {
            Some(Some(open)) => open.drive,
            _ => None,
        };
        let duration = self.session.now() - begin;
        self.measuring.count_write(drive, count, duration);
        Ok(count)
    }

    pub(crate) async fn lseek(&mut self, file: File, offset: i64, whence: Whence) -> Result<u64> {
        self.check()?;
        let from = match whence {
            Whence::Start => Origin::Start,
            Whence::Current => Origin::Current,
            Whence::End => Origin::End,
        };
        let moved = self.session.lseek(file.0, offset, from).await;
        moved.map_err(|errno| self.failed(Call::Lseek, file, errno))
    }

    pub(crate) async fn ftruncate(&mut self, file: File, length: u64) -> Result<()> {
        self.check()?;
        let result = self.session.ftruncate(file.0, length).await;
        result.map_err(|errno| self.failed(Call::Ftruncate, file, errno))
    }

    /// Fails, because the modelled kernels have no fallocate(2).
    pub(crate) async fn allocate(&mut self, file: File, _: Range<u64>, _: bool) -> Result<()> {
        self.check()?;
        Err(self.failed(Call::Fallocate, file, Errno::Invalid))
    }

    /// Fails, because the modelled kernels cannot punch holes into files.
    pub(crate) async fn punch_hole(&mut self, file: File, _: Range<u64>) -> Result<()> {
        self.check()?;
        Err(self.failed(Call::Fallocate, file, Errno::Invalid))
    }

    pub(crate) async fn fsync(&mut self, file: File) -> Result<()> {
        self.check()?;
        let result = self.session.fsync(file.0).await;
        result.map_err(|errno| self.failed(Call::Fsync, file, errno))
    }

    /// Syncs a file with fsync(2), since the modelled kernels have no fdatasync(2).
    pub(crate) async fn fdatasync(&mut self, file: File) -> Result<()> {
        self.fsync(file).await
    }

    /// Closes a file. As on the host, this works even when the run has ended.
    pub(crate) async fn close(&mut self, file: File) -> Result<()> {
        let closed = self.session.close(file.0).await;
        closed.map_err(|errno| self.failed(Call::Close, file, errno))?;
        self.files[file.0] = None;
        Ok(())
    }

    pub(crate) async fn length(&mut self, file: File) -> Result<u64> {
        self.check()?;
        let length = self.session.length(file.0).await;
        length.map_err(|errno| self.failed(Call::Length, file, errno))
    }

    pub(crate) async fn close_all(&mut self) {
        self.session.close_ring().await;
        self.ring = None;
        self.session.close_all().await;
        self.files.clear();
    }
}

impl Model {
    pub(crate) async fn stat(&mut self, path: &str) -> Result<u64> {
        self.check_name(Call::Stat, path)?;
        let length = self.session.stat(path).await;
        length.map_err(|errno| Error::failed(Call::Stat, path, errno))
    }

    pub(crate) async fn unlink(&mut self, path: &str) -> Result<()> {
        self.check_name(Call::Unlink, path)?;
        let result = self.session.unlink(path).await;
        result.map_err(|errno| Error::failed(Call::Unlink, path, errno))
    }

    pub(crate) async fn mkdir(&mut self, path: &str) -> Result<()> {
        self.check_name(Call::Mkdir, path)?;
        let result = self.session.mkdir(path).await;
        result.map_err(|errno| Error::failed(Call::Mkdir, path, errno))
    }

    pub(crate) async fn rmdir(&mut self, path: &str) -> Result<()> {
        self.check_name(Call::Rmdir, path)?;
        let result = self.session.rmdir(path).await;
        result.map_err(|errno| Error::failed(Call::Rmdir, path, errno))
    }

    pub(crate) async fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        self.check_name(Call::Rename, to)?;
        self.check_name(Call::Rename, from)?;
        let result = self.session.rename(from, to).await;
        result.map_err(|errno| Error::failed(Call::Rename, from, errno))
    }

    /// Returns the target of a name. A drive or block device must exist.
    fn resolve(&self, path: &str) -> std::result::Result<PathTarget, Errno> {
        match parse_path(path)? {
            PathTarget::Drive(drive) if !self.session.has_volume(drive) => Err(Errno::NoEntry),
            PathTarget::BlockNull if !self.session.has_block_devices() => Err(Errno::NoEntry),
            name => Ok(name),
        }
    }

    /// Checks that a name may be changed because it lies in one of the file systems.
    fn check_name(&self, call: Call, path: &str) -> Result<()> {
        self.check()?;
        match self.resolve(path) {
            Ok(PathTarget::OnDrive(_)) => Ok(()),
            Ok(PathTarget::Device | PathTarget::BlockNull | PathTarget::Drive(_)) => {
                Err(Error::failed(call, path, Errno::Access))
            }
            Err(errno) => Err(Error::failed(call, path, errno)),
        }
    }
}

impl Model {
    pub(crate) fn now(&self) -> Nanoseconds {
        nanoseconds(self.session.now())
    }

    pub(crate) async fn sleep_until(&mut self, time: Nanoseconds) -> Result<()> {
        self.check()?;
        self.session.sleep_until(Time(time.0)).await;
        self.check()
    }

    #[inline]
    pub(crate) async fn compute(&mut self, span: Nanoseconds) -> Result<()> {
        self.check()?;
        self.session.compute(Time(span.0)).await;
        Ok(())
    }

    pub(crate) async fn barrier(&mut self) -> Result<Nanoseconds> {
        self.check()?;
        match self.session.barrier().await {
            Some(released) => Ok(nanoseconds(released)),
            None => Err(self.check().err().unwrap_or(Error::PeerFailed)),
        }
    }

    pub(crate) fn notices(&self) -> u64 {
        self.session.notices()
    }

    pub(crate) fn give_notice(&self) {
        self.session.give_notice();
    }

    pub(crate) async fn await_notice(
        &mut self,
        seen: u64,
        until: Option<Nanoseconds>,
    ) -> Result<()> {
        self.check()?;
        let until = until.map(|until| Time(until.0));
        self.session.await_notice(seen, until).await;
        self.check()
    }

    pub(crate) async fn pipe_end(&mut self, number: usize) -> Result<File> {
        let path = format!("pipe end {number}");
        match self.session.pipe_end(number).await {
            Ok(file) => Ok(self.insert_file(file, OpenFile { path, drive: None })),
            Err(errno) => Err(Error::failed(Call::Pipe, path, errno)),
        }
    }
}

impl Model {
    pub(crate) async fn drop_cached(&mut self, path: &str) -> Result<()> {
        self.check()?;
        let dropped = self.session.drop_cached(path).await;
        dropped.map_err(|errno| Error::failed(Call::DropCached, path, errno))
    }

    pub(crate) async fn drop_clean(&mut self, path: &str) -> Result<()> {
        self.drop_cached(path).await
    }

    pub(crate) async fn resident_bytes(&mut self, path: &str, length: u64) -> Result<Option<u64>> {
        self.check()?;
        let resident = self.session.resident_bytes(path, length).await;
        let resident = resident.map_err(|errno| Error::failed(Call::Residency, path, errno))?;
        Ok(Some(resident))
    }

    pub(crate) async fn drop_all_caches(&mut self) -> Result<()> {
        self.check()?;
        self.session.drop_all_caches().await;
        Ok(())
    }
}

/// Target of a name, as far as the name alone determines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathTarget {
    /// Name on the file system of this drive, if there is one.
    OnDrive(u32),
    /// Device file `/dev/null` or `/dev/zero`.
    Device,
    /// Block device `/dev/bnull` without data, which only some systems have.
    BlockNull,
    Drive(u32),
}

/// Parses a name, and refuses names that no worker may use on any system. The crate's documentation
/// describes the name space.
fn parse_path(path: &str) -> std::result::Result<PathTarget, Errno> {
    if let "/dev/null" | "/dev/zero" = path {
        return Ok(PathTarget::Device);
    }
    if path == "/dev/bnull" {
        return Ok(PathTarget::BlockNull);
    }
    if let Some(number) = path.strip_prefix("/dev/drive") {
        return number
            .parse()
            .map(PathTarget::Drive)
            .map_err(|_| Errno::NoEntry);
    }
    let rest = path.strip_prefix("/mnt").ok_or(Errno::NoEntry)?;
    let (drive, name) = rest.split_once('/').unwrap_or((rest, ""));
    if name.split('/').any(|part| part == "..") {
        return Err(Errno::Access);
    }
    drive
        .parse()
        .map(PathTarget::OnDrive)
        .map_err(|_| Errno::NoEntry)
}

fn nanoseconds(time: Time) -> Nanoseconds {
    Nanoseconds(time.0)
}
