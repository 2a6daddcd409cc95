//! System calls of benchmark programs, on real storage and on modelled computers: [`System`].
//!
//! A program is straight-line `async` code that calls `System`. It cannot
//! distinguish real storage from a modelled computer. On the host no future
//! ever pends: a call *is* the system call, made on the worker's own thread
//! ([`run_ready`] asserts it). On a model the worker is a task of the
//! simulation, and a call awaits virtual time.
//!
//! # Names
//!
//! A worker sees the name space that the shell scripts of 1983 saw:
//!
//! | name | meaning |
//! |---|---|
//! | `/mnt0/...`, `/mnt1/...` | the file system of drive 0, 1, ... |
//! | `/dev/drive0`, ... | drive 0, ... as a block device |
//! | `/dev/null`, `/dev/zero` | as everywhere; Minix has no `/dev/zero` |
//! | `/dev/bnull` | a block device of length 0, on the modelled Minix only |
//!
//! # What is not here
//!
//! A program never starts workers: the plan lists them, and the runner creates
//! each worker's `System`. Overlapped I/O has calls of its own
//! ([`System::submit_requests`], [`System::reap_requests`]) and is not hidden behind
//! [`System::read`], because the way of submission is part of the measurement.

/// Dispatches a call of a program to the host or the model, whose implementations may differ. The
/// call takes time, so that on a model it is awaited.
macro_rules! on_each_world {
    ($self:ident, $world:ident => $call:expr) => {
        match $self {
            #[cfg(feature = "host")]
            System::HostWorker($world) => SystemCall::new_finished($call),
            System::ModelWorker($world) => SystemCall::new_modelled($call),
        }
    };
}

/// Dispatches a call that takes no time to the host or the model.
macro_rules! at_once_on_each_world {
    ($self:ident, $world:ident => $call:expr) => {
        match $self {
            #[cfg(feature = "host")]
            System::HostWorker($world) => $call,
            System::ModelWorker($world) => $call,
        }
    };
}

mod buffer;
mod call;
mod error;
#[cfg(feature = "host")]
pub mod host;
mod layout;
pub mod model;
mod options;
mod ring;
mod worker_progress;

pub use buffer::Buffer;
pub use call::SystemCall;
pub use error::{CallFailure, CallKind, Errno, Error, Result};
pub use layout::{
    ByteExtent, FileSegment, FilesystemLayout, FsckPass, FsckRead, ImageGeometry, InodeLayout,
    LayoutError, TreeNode,
};
pub use options::{OpenOptions, SeekOrigin};
pub use ring::{
    CommittedTransaction, EngineChoice, IoCompletion, IoOperation, MapOptions, NameCall,
    RangeSteps, ReadWriteSpans, RingOptions, Submission,
};

/// Path of the kernel file that drops the whole page cache of a host.
pub const DROP_CACHES_PATH: &str = "/proc/sys/vm/drop_caches";

pub use worker_progress::{ReadBackProgress, WorkerProgress};

pub use diskperf_machine::{ProgramWork, WriteData};

use diskperf_timeline::{Nanoseconds, Residency, WorkerMeasure};
use std::future::Future;
use std::io::Write;
use std::ops::Range;
#[cfg(feature = "host")]
use std::path::Path;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Open file of one worker: an index into its table of descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct File(pub(crate) usize);

impl File {
    /// Returns a file that is not open, identified by a number: every call on it fails with EBADF.
    pub fn new_closed(number: u32) -> File {
        File(usize::MAX - number as usize)
    }

    /// Returns the number of a file that was [never open](Self::new_closed); `None` for other files.
    pub fn closed_number(self) -> Option<u32> {
        u32::try_from(usize::MAX - self.0).ok()
    }
}

/// System that a worker runs on, with the calls that a program may make.
pub enum System {
    /// Real storage on the host.
    #[cfg(feature = "host")]
    HostWorker(Box<host::HostWorker>),
    /// Process on a modelled computer.
    ModelWorker(Box<model::ModelWorker>),
}

/// Calls of a program on open files.
impl System {
    /// Opens a file, as open(2) does. A created file gets mode 0666, as with `creat` in 1983.
    pub fn open<'a>(&'a mut self, path: &'a str, how: OpenOptions) -> SystemCall<'a, Result<File>> {
        on_each_world!(self, world => world.open(path, how))
    }

    /// Reads from a file, as read(2) does, and returns the number of bytes read; 0 at the end of
    /// the file.
    #[inline]
    pub fn read<'a>(
        &'a mut self,
        file: File,
        buffer: &'a mut [u8],
    ) -> SystemCall<'a, Result<usize>> {
        on_each_world!(self, world => world.read(file, buffer))
    }

    /// Writes to a file, as write(2) does, and returns the number of bytes accepted, which may be
    /// fewer than given.
    #[inline]
    pub fn write<'a>(
        &'a mut self,
        file: File,
        data: impl Into<WriteData<'a>>,
    ) -> SystemCall<'a, Result<usize>> {
        self.write_data(file, data.into())
    }

    /// Writes data of any kind to a file. A model's call is compiled only once, in this crate.
    #[inline]
    fn write_data<'a>(
        &'a mut self,
        file: File,
        data: WriteData<'a>,
    ) -> SystemCall<'a, Result<usize>> {
        on_each_world!(self, world => world.write(file, data))
    }

    /// Returns a copy of data that a program writes repeatedly, which a modelled kernel recognises
    /// ([`WriteData::from_kept_buffer`]). `None` on real storage, which needs no copy.
    pub fn keep_data(&self, data: &[u8]) -> Option<Rc<[u8]>> {
        match self {
            #[cfg(feature = "host")]
            Self::HostWorker(_) => None,
            Self::ModelWorker(_) => Some(data.into()),
        }
    }

    /// Moves the offset of a file, as lseek(2) does, and returns the new offset from the start of
    /// the file.
    #[inline]
    pub fn lseek(
        &mut self,
        file: File,
        offset: i64,
        whence: SeekOrigin,
    ) -> SystemCall<'_, Result<u64>> {
        on_each_world!(self, world => world.lseek(file, offset, whence))
    }

    /// Sets the length of an open file, as ftruncate(2) does.
    pub fn ftruncate(&mut self, file: File, length: u64) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.ftruncate(file, length))
    }

    /// Allocates blocks for a range of a file, as fallocate(2) does. `grows` extends the file to
    /// the end of the range.
    pub fn allocate(
        &mut self,
        file: File,
        range: Range<u64>,
        grows: bool,
    ) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.allocate(file, range, grows))
    }

    /// Deallocates a range of a file, which then reads as zeroes, as fallocate(2) with
    /// FALLOC_FL_PUNCH_HOLE. The length stays the same.
    pub fn punch_hole(&mut self, file: File, range: Range<u64>) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.punch_hole(file, range))
    }

    /// Makes a file's data and metadata durable, as fsync(2) does.
    pub fn fsync(&mut self, file: File) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.fsync(file))
    }

    /// Makes a file's data durable, as fdatasync(2) does.
    pub fn fdatasync(&mut self, file: File) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.fdatasync(file))
    }

    /// Closes an open file, as close(2) does.
    pub fn close(&mut self, file: File) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.close(file))
    }

    /// Returns the length of an open file, or the size of a device, in bytes.
    pub fn file_length(&mut self, file: File) -> SystemCall<'_, Result<u64>> {
        on_each_world!(self, world => world.file_length(file))
    }
}

/// Calls of a program on names of files and directories.
impl System {
    /// Returns the length in bytes of the file with a name, from stat(2).
    pub fn stat<'a>(&'a mut self, path: &'a str) -> SystemCall<'a, Result<u64>> {
        on_each_world!(self, world => world.stat(path))
    }

    /// Removes a file by its name, as unlink(2) does.
    pub fn unlink<'a>(&'a mut self, path: &'a str) -> SystemCall<'a, Result<()>> {
        on_each_world!(self, world => world.unlink(path))
    }

    /// Creates a directory with mode 0777, as mkdir(2) does.
    pub fn mkdir<'a>(&'a mut self, path: &'a str) -> SystemCall<'a, Result<()>> {
        on_each_world!(self, world => world.mkdir(path))
    }

    /// Removes an empty directory, as rmdir(2) does.
    pub fn rmdir<'a>(&'a mut self, path: &'a str) -> SystemCall<'a, Result<()>> {
        on_each_world!(self, world => world.rmdir(path))
    }

    /// Renames a file or directory, as rename(2) does.
    pub fn rename<'a>(&'a mut self, from: &'a str, to: &'a str) -> SystemCall<'a, Result<()>> {
        on_each_world!(self, world => world.rename(from, to))
    }
}

/// Calls of a program on the owner, mode and times of files.
impl System {
    /// Sets the owner and group of an open file to their present values, as fchown(2) does.
    pub fn fchown(&mut self, file: File) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.fchown(file))
    }

    /// Sets the permissions of an open file to `mode`, such as 0644, as fchmod(2) does.
    pub fn fchmod(&mut self, file: File, mode: u32) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.fchmod(file, mode))
    }

    /// Sets the owner and group of a file to their present values, as chown(2) does.
    pub fn chown<'a>(&'a mut self, path: &'a str) -> SystemCall<'a, Result<()>> {
        on_each_world!(self, world => world.chown(path))
    }

    /// Sets the permissions of a file to `mode`, such as 0644, as chmod(2) does.
    pub fn chmod<'a>(&'a mut self, path: &'a str, mode: u32) -> SystemCall<'a, Result<()>> {
        on_each_world!(self, world => world.chmod(path, mode))
    }

    /// Sets the access and modification times of a file to the current time, as utimes(2) does.
    pub fn utimes<'a>(&'a mut self, path: &'a str) -> SystemCall<'a, Result<()>> {
        on_each_world!(self, world => world.utimes(path))
    }
}

/// Calls of a program for time, and for synchronization with other workers.
impl System {
    /// Returns the time since an arbitrary start that all workers of a run share.
    pub fn now(&self) -> Nanoseconds {
        at_once_on_each_world!(self, world => world.now())
    }

    /// Reports whether a worker that waits for a given time may be woken after it. On real storage
    /// it may, like any thread; in virtual time it never is.
    pub fn may_wake_late(&self) -> bool {
        match self {
            #[cfg(feature = "host")]
            Self::HostWorker(_) => true,
            Self::ModelWorker(_) => false,
        }
    }

    /// Sleeps until [`System::now`] has reached `time`.
    pub fn sleep_until(&mut self, time: Nanoseconds) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.sleep_until(time))
    }

    /// Uses the CPU in user mode for the given time.
    pub fn consume_cpu_time(&mut self, span: Nanoseconds) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.consume_cpu_time(span))
    }

    /// Waits until every worker of the run has called this, and returns the common release time.
    pub fn barrier(&mut self) -> SystemCall<'_, Result<Nanoseconds>> {
        on_each_world!(self, world => world.barrier())
    }

    /// Returns the number of notices that workers of the run have given each other so far.
    pub fn notice_count(&self) -> u64 {
        at_once_on_each_world!(self, world => world.notice_count())
    }

    /// Gives a notice, which wakes the workers that wait in [`System::await_notice`].
    pub fn give_notice(&self) {
        at_once_on_each_world!(self, world => world.give_notice())
    }

    /// Waits until workers have given more notices than `seen`, or until a deadline if there is
    /// one. A worker reads the [number of notices](System::notice_count) before it checks whether it has
    /// to wait, so that it misses none.
    pub fn await_notice(
        &mut self,
        seen: u64,
        until: Option<Nanoseconds>,
    ) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.await_notice(seen, until))
    }

    /// Returns the worker's end of a pipe of the plan, by its number in the worker's list of pipe
    /// ends. Each end can be taken once.
    pub fn open_pipe_end(&mut self, number: usize) -> SystemCall<'_, Result<File>> {
        on_each_world!(self, world => world.open_pipe_end(number))
    }
}

/// Calls of the runner before and after the timed part of a program.
impl System {
    /// Starts the timed part: counts, CPU time and histograms begin at zero. The worker's start is
    /// measured from `origin`.
    pub fn start_measuring(&mut self, origin: Nanoseconds) -> Result<()> {
        at_once_on_each_world!(self, world => world.start_measuring(origin))
    }

    /// Ends the timed part while the program continues. Later calls are not measured.
    /// [`System::finish_measuring`] returns the measure of the part that ended.
    pub fn end_timed_part(&mut self) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.end_timed_part())
    }

    /// Ends the timed part, syncs every file that was written in it, and returns the measure. The
    /// runner fills in the measure's drive and payload.
    pub fn finish_measuring(&mut self) -> SystemCall<'_, Result<WorkerMeasure>> {
        on_each_world!(self, world => world.finish_measuring())
    }

    /// Closes every file that the program left open, as the end of a process does.
    pub fn close_all(&mut self) -> SystemCall<'_, ()> {
        on_each_world!(self, world => world.close_all())
    }

    /// Ends the worker as a process ends, and closes all its files. On a model every worker must
    /// call it, because another process gets the processor only after this one has released it.
    pub fn end_session(self) -> SystemCall<'static, ()> {
        match self {
            #[cfg(feature = "host")]
            System::HostWorker(host) => {
                drop(host);
                SystemCall::new_finished(())
            }
            System::ModelWorker(model) => SystemCall::new_modelled(model.end_session()),
        }
    }

    /// Announces that this worker failed. Calls of other workers that wait for it fail with
    /// [`Error::OtherWorkerFailed`].
    pub fn abandon_run(&self) {
        at_once_on_each_world!(self, world => world.abandon_run())
    }

    /// Writes the file's dirty pages out and drops it from the page cache.
    pub fn drop_cached_pages<'a>(&'a mut self, path: &'a str) -> SystemCall<'a, Result<()>> {
        on_each_world!(self, world => world.drop_cached_pages(path))
    }

    /// Drops the clean pages of a file from the page cache (POSIX_FADV_DONTNEED), without waiting
    /// for writes. A modelled kernel writes dirty pages first.
    pub fn drop_clean_pages<'a>(&'a mut self, path: &'a str) -> SystemCall<'a, Result<()>> {
        on_each_world!(self, world => world.drop_clean_pages(path))
    }

    /// Returns how many of the first `length` bytes of a file are in the page cache; `None` if the
    /// system does not report it.
    pub fn resident_bytes<'a>(
        &'a mut self,
        path: &'a str,
        length: u64,
    ) -> SystemCall<'a, Result<Option<u64>>> {
        on_each_world!(self, world => world.resident_bytes(path, length))
    }

    /// Drops all caches of the whole machine.
    pub fn drop_all_caches(&mut self) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.drop_all_caches())
    }
}

/// Writes a complete file for a program's own records under an unused name. No file is replaced,
/// and no link is followed.
///
/// # Errors
///
/// Description of why the file cannot be written.
pub fn write_new_file(path: &str, bytes: &[u8]) -> std::result::Result<(), String> {
    #[cfg(feature = "host")]
    return host::log_file::write_new_file(Path::new(path), bytes);
    #[cfg(not(feature = "host"))]
    Err(format!(
        "{path}: cannot write {} bytes, since only Linux supports it",
        bytes.len()
    ))
}

/// Reads a small regular file of a program's own records, without following a link.
///
/// # Errors
///
/// Description of why the file cannot be read.
pub fn read_small_file(path: &str, bytes_max: u64) -> std::result::Result<Vec<u8>, String> {
    #[cfg(feature = "host")]
    return host::log_file::read_small_file(Path::new(path), bytes_max);
    #[cfg(not(feature = "host"))]
    Err(format!(
        "{path}: cannot read up to {bytes_max} bytes, since only Linux supports it"
    ))
}

/// Starts an empty log of a program under a user's name. An existing file is replaced if it begins
/// with `beginning`.
///
/// # Errors
///
/// Description of why the log cannot be written.
pub fn create_log_file(
    path: &str,
    beginning: &[u8],
) -> std::result::Result<Box<dyn Write + Send>, String> {
    #[cfg(feature = "host")]
    return host::log_file::begin_log_file(Path::new(path), beginning)
        .map(|file| Box::new(file) as Box<dyn Write + Send>);
    #[cfg(not(feature = "host"))]
    Err(format!(
        "{path}: cannot write a log ({beginning:?}), since only Linux supports it"
    ))
}

/// Completes a future that must not wait. On the host a call is a system call, so a program's
/// future is ready when it is first polled.
///
/// # Panics
///
/// If the future is pending, which means that it awaited something other than a `System`.
pub fn run_ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a future on the host pended; only calls of System may be awaited"),
    }
}

/// Returns the summed residency of several files; `None` if there are none.
pub fn sum_residency(parts: impl IntoIterator<Item = Residency>) -> Option<Residency> {
    parts.into_iter().reduce(|sum, part| Residency {
        file_bytes: sum.file_bytes + part.file_bytes,
        resident_before_bytes: sum.resident_before_bytes + part.resident_before_bytes,
        resident_after_bytes: sum.resident_after_bytes + part.resident_after_bytes,
    })
}
