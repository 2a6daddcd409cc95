//! What a program may call, on both worlds: [`System`].
//!
//! A program is straight-line `async` code against `System` and cannot tell
//! whether it runs on real storage or on a modelled computer. On the host no
//! future ever pends: a call *is* the system call, made on the worker's own
//! thread ([`run_ready`] asserts it). On a model the worker is a task of the
//! simulation, and a call awaits virtual time.
//!
//! # Names
//!
//! A worker sees the name space that the shell scripts of 1983 saw:
//!
//! | name | what it is |
//! |---|---|
//! | `/mnt0/...`, `/mnt1/...` | the file system of drive 0, 1, ... |
//! | `/dev/drive0`, ... | that drive itself, as a block device |
//! | `/dev/null`, `/dev/zero` | as everywhere; Minix has no `/dev/zero` |
//! | `/dev/bnull` | a block device of length 0, on the modelled Minix only |
//!
//! # What is not here
//!
//! A program never spawns: the plan lists the workers and the runner makes
//! each worker's `System`. Overlapped I/O is a family of calls of its own
//! ([`System::submit`], [`System::reap`]) beside [`System::read`], because how software
//! submits is part of what is measured; it is not hidden behind `read`.

/// Hands a call to whichever world this is; a call that differs between the
/// worlds differs in there. A call of a program takes time: on a model it is
/// awaited.
macro_rules! on_each_world {
    ($self:ident, $world:ident => $call:expr) => {
        match $self {
            #[cfg(feature = "host")]
            System::Host($world) => SystemCall::made($call),
            System::Model($world) => SystemCall::modelled($call),
        }
    };
}

/// Dispatches a call that takes no time in either world.
macro_rules! at_once_on_each_world {
    ($self:ident, $world:ident => $call:expr) => {
        match $self {
            #[cfg(feature = "host")]
            System::Host($world) => $call,
            System::Model($world) => $call,
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
pub use error::{Call, Errno, Error, Failure, Result};
pub use layout::{
    Extent, FileSegment, FsckPass, FsckRead, LaidOut, Layout, LayoutError, Node, Shape,
};
pub use options::{Open, Whence};
pub use ring::{
    Commit, Completion, EngineChoice, MapOptions, NameCall, Operation, RangeSteps, RingOptions,
    Spans, Submission,
};

/// The file that drops the whole page cache of a host.
pub const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

pub use worker_progress::{ReadBackProgress, WorkerProgress};

pub use diskperf_machine::{Work, Written};

use diskperf_timeline::{Nanoseconds, Residency, WorkerMeasure};
use std::future::Future;
use std::io::Write;
use std::ops::Range;
#[cfg(feature = "host")]
use std::path::Path;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// An open file of one worker: an index into its table of descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct File(pub(crate) usize);

impl File {
    /// A file that is not open, told from others by a number: every call on it fails with
    /// EBADF.
    pub fn closed(number: u32) -> File {
        File(usize::MAX - number as usize)
    }

    /// The number of a file that was [never open](Self::closed).
    pub fn closed_number(self) -> Option<u32> {
        u32::try_from(usize::MAX - self.0).ok()
    }
}

/// One worker's view of the computer that it runs on.
pub enum System {
    /// Real storage.
    #[cfg(feature = "host")]
    Host(Box<host::Host>),
    /// A process on a modelled computer.
    Model(Box<model::Model>),
}

/// Files.
impl System {
    /// open(2). A file that is created gets mode 0666, as `creat` did in 1983.
    pub fn open<'a>(&'a mut self, path: &'a str, how: Open) -> SystemCall<'a, Result<File>> {
        on_each_world!(self, world => world.open(path, how))
    }

    /// read(2): how many bytes were read, 0 at the end of the file.
    #[inline]
    pub fn read<'a>(
        &'a mut self,
        file: File,
        buffer: &'a mut [u8],
    ) -> SystemCall<'a, Result<usize>> {
        on_each_world!(self, world => world.read(file, buffer))
    }

    /// write(2): how many bytes were taken, which may be fewer than given.
    #[inline]
    pub fn write<'a>(
        &'a mut self,
        file: File,
        data: impl Into<Written<'a>>,
    ) -> SystemCall<'a, Result<usize>> {
        self.write_data(file, data.into())
    }

    /// The same for every kind of data: a model's call is compiled in this crate once.
    #[inline]
    fn write_data<'a>(
        &'a mut self,
        file: File,
        data: Written<'a>,
    ) -> SystemCall<'a, Result<usize>> {
        on_each_world!(self, world => world.write(file, data))
    }

    /// A copy of what a program writes again and again, which a modelled kernel knows
    /// when it sees it again ([`Written::kept`]). A real one takes it from where it is,
    /// and needs none.
    pub fn keeping(&self, data: &[u8]) -> Option<Rc<[u8]>> {
        match self {
            #[cfg(feature = "host")]
            Self::Host(_) => None,
            Self::Model(_) => Some(data.into()),
        }
    }

    /// lseek(2): the new offset from the start of the file.
    #[inline]
    pub fn lseek(
        &mut self,
        file: File,
        offset: i64,
        whence: Whence,
    ) -> SystemCall<'_, Result<u64>> {
        on_each_world!(self, world => world.lseek(file, offset, whence))
    }

    /// ftruncate(2).
    pub fn ftruncate(&mut self, file: File, length: u64) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.ftruncate(file, length))
    }

    /// fallocate(2): the file has blocks for a range of its bytes; `grows` says whether it
    /// then reaches to the end of the range.
    pub fn allocate(
        &mut self,
        file: File,
        range: Range<u64>,
        grows: bool,
    ) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.allocate(file, range, grows))
    }

    /// fallocate(2) with FALLOC_FL_PUNCH_HOLE: the file has no blocks for a range, which
    /// reads as zeroes. It stays as long as it is.
    pub fn punch_hole(&mut self, file: File, range: Range<u64>) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.punch_hole(file, range))
    }

    /// fsync(2).
    pub fn fsync(&mut self, file: File) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.fsync(file))
    }

    /// fdatasync(2).
    pub fn fdatasync(&mut self, file: File) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.fdatasync(file))
    }

    /// close(2).
    pub fn close(&mut self, file: File) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.close(file))
    }

    /// The length of an open file in bytes; of a device, its size.
    pub fn length(&mut self, file: File) -> SystemCall<'_, Result<u64>> {
        on_each_world!(self, world => world.length(file))
    }
}

/// Names.
impl System {
    /// stat(2): the length in bytes of what a name leads to.
    pub fn stat<'a>(&'a mut self, path: &'a str) -> SystemCall<'a, Result<u64>> {
        on_each_world!(self, world => world.stat(path))
    }

    /// unlink(2).
    pub fn unlink<'a>(&'a mut self, path: &'a str) -> SystemCall<'a, Result<()>> {
        on_each_world!(self, world => world.unlink(path))
    }

    /// mkdir(2), with mode 0777.
    pub fn mkdir<'a>(&'a mut self, path: &'a str) -> SystemCall<'a, Result<()>> {
        on_each_world!(self, world => world.mkdir(path))
    }

    /// rmdir(2).
    pub fn rmdir<'a>(&'a mut self, path: &'a str) -> SystemCall<'a, Result<()>> {
        on_each_world!(self, world => world.rmdir(path))
    }

    /// rename(2).
    pub fn rename<'a>(&'a mut self, from: &'a str, to: &'a str) -> SystemCall<'a, Result<()>> {
        on_each_world!(self, world => world.rename(from, to))
    }
}

/// Owner, mode and times, of what is in one of the file systems.
impl System {
    /// fchown(2), to the owner and group that the file has.
    pub fn fchown(&mut self, file: File) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.fchown(file))
    }

    /// fchmod(2): `mode` are the permissions, 0644 and the like.
    pub fn fchmod(&mut self, file: File, mode: u32) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.fchmod(file, mode))
    }

    /// chown(2), to the owner and group that the file has.
    pub fn chown<'a>(&'a mut self, path: &'a str) -> SystemCall<'a, Result<()>> {
        on_each_world!(self, world => world.chown(path))
    }

    /// chmod(2): `mode` are the permissions, 0644 and the like.
    pub fn chmod<'a>(&'a mut self, path: &'a str, mode: u32) -> SystemCall<'a, Result<()>> {
        on_each_world!(self, world => world.chmod(path, mode))
    }

    /// utimes(2): the file was read and changed now.
    pub fn utimes<'a>(&'a mut self, path: &'a str) -> SystemCall<'a, Result<()>> {
        on_each_world!(self, world => world.utimes(path))
    }
}

/// Time, and the other workers.
impl System {
    /// Time since an arbitrary moment that all workers of a run share.
    pub fn now(&self) -> Nanoseconds {
        at_once_on_each_world!(self, world => world.now())
    }

    /// Whether a worker that waits for a moment may be woken after it: on real storage, as
    /// any thread; in virtual time never.
    pub fn wakes_late(&self) -> bool {
        match self {
            #[cfg(feature = "host")]
            Self::Host(_) => true,
            Self::Model(_) => false,
        }
    }

    /// Sleeps until [`System::now`] has reached `time`.
    pub fn sleep_until(&mut self, time: Nanoseconds) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.sleep_until(time))
    }

    /// Uses the CPU in user mode for this long.
    pub fn compute(&mut self, span: Nanoseconds) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.compute(span))
    }

    /// Waits until every worker of the run has come here; returns the one
    /// moment at which all were released.
    pub fn barrier(&mut self) -> SystemCall<'_, Result<Nanoseconds>> {
        on_each_world!(self, world => world.barrier())
    }

    /// Notices that workers of the run gave each other so far.
    pub fn notices(&self) -> u64 {
        at_once_on_each_world!(self, world => world.notices())
    }

    /// Wakes the workers that wait in [`System::await_notice`].
    pub fn give_notice(&self) {
        at_once_on_each_world!(self, world => world.give_notice())
    }

    /// Waits until workers gave more notices than `seen`, at most until a moment. A worker
    /// takes the [number of notices](System::notices) before it looks whether it has to wait:
    /// it then misses none.
    pub fn await_notice(
        &mut self,
        seen: u64,
        until: Option<Nanoseconds>,
    ) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.await_notice(seen, until))
    }

    /// The worker's end of a pipe that the plan laid, by its number in the
    /// worker's list of pipe ends. Each end can be taken once.
    pub fn pipe_end(&mut self, number: usize) -> SystemCall<'_, Result<File>> {
        on_each_world!(self, world => world.pipe_end(number))
    }
}

/// What the runner does around the timed part.
impl System {
    /// Starts the timed part: counts, CPU time and histograms begin at zero.
    /// `origin` is the moment that the worker's start is given from.
    pub fn start_measuring(&mut self, origin: Nanoseconds) -> Result<()> {
        at_once_on_each_world!(self, world => world.start_measuring(origin))
    }

    /// Ends the timed part while the program goes on: what it does from now on is not measured.
    /// [`System::finish_measuring`] returns the measure as it is then.
    pub fn end_timed_part(&mut self) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.end_timed_part())
    }

    /// Ends the timed part, then syncs every file that was written since it
    /// started. The measure's drive and payload are left for the runner.
    pub fn finish_measuring(&mut self) -> SystemCall<'_, Result<WorkerMeasure>> {
        on_each_world!(self, world => world.finish_measuring())
    }

    /// Closes every file that the program left open, as the end of a process
    /// does.
    pub fn close_all(&mut self) -> SystemCall<'_, ()> {
        on_each_world!(self, world => world.close_all())
    }

    /// Ends the worker as a process ends, with all its files closed. On a model
    /// every worker must come to this: another process gets the processor only
    /// when this one has given it back.
    pub fn end(self) -> SystemCall<'static, ()> {
        match self {
            #[cfg(feature = "host")]
            System::Host(host) => {
                drop(host);
                SystemCall::made(())
            }
            System::Model(model) => SystemCall::modelled(model.end()),
        }
    }

    /// Says that this worker failed: what the others wait for will not come,
    /// and their calls fail with [`Error::PeerFailed`].
    pub fn give_up(&self) {
        at_once_on_each_world!(self, world => world.give_up())
    }

    /// Writes the file's dirty pages out and drops it from the page cache.
    pub fn drop_cached<'a>(&'a mut self, path: &'a str) -> SystemCall<'a, Result<()>> {
        on_each_world!(self, world => world.drop_cached(path))
    }

    /// Drops from the page cache what is not changed of a file (POSIX_FADV_DONTNEED), and
    /// waits for nothing to be written; a modelled kernel writes what is changed.
    pub fn drop_clean<'a>(&'a mut self, path: &'a str) -> SystemCall<'a, Result<()>> {
        on_each_world!(self, world => world.drop_clean(path))
    }

    /// How much of the first `length` bytes of a file is in the page cache;
    /// `None` where the system cannot tell.
    pub fn resident_bytes<'a>(
        &'a mut self,
        path: &'a str,
        length: u64,
    ) -> SystemCall<'a, Result<Option<u64>>> {
        on_each_world!(self, world => world.resident_bytes(path, length))
    }

    /// Drops every cache of the whole machine.
    pub fn drop_all_caches(&mut self) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.drop_all_caches())
    }
}

/// Writes a file beside what a program measures, whole, under a name that nothing has: no file
/// is replaced, and no link is followed.
///
/// # Errors
///
/// Why it cannot be written, in words.
pub fn write_new_file(path: &str, bytes: &[u8]) -> std::result::Result<(), String> {
    #[cfg(feature = "host")]
    return host::log_file::write_new(Path::new(path), bytes);
    #[cfg(not(feature = "host"))]
    Err(format!(
        "{path}: {} bytes are written on Linux alone",
        bytes.len()
    ))
}

/// Reads a small regular file that a program left beside what it measured, not through a link.
///
/// # Errors
///
/// Why it cannot be read, in words.
pub fn read_small_file(path: &str, bytes_max: u64) -> std::result::Result<Vec<u8>, String> {
    #[cfg(feature = "host")]
    return host::log_file::read_small(Path::new(path), bytes_max);
    #[cfg(not(feature = "host"))]
    Err(format!("{path}: {bytes_max} bytes are read on Linux alone"))
}

/// Begins a log that a program writes beside what it measures, empty, under a name of the
/// user's: a file that is there is replaced if it begins with these bytes.
///
/// # Errors
///
/// Why it cannot be written, in words.
pub fn begin_log(
    path: &str,
    beginning: &[u8],
) -> std::result::Result<Box<dyn Write + Send>, String> {
    #[cfg(feature = "host")]
    return host::log_file::begin(Path::new(path), beginning)
        .map(|file| Box::new(file) as Box<dyn Write + Send>);
    #[cfg(not(feature = "host"))]
    Err(format!(
        "{path}: logs are written on Linux alone, {beginning:?}"
    ))
}

/// Completes a future that must not wait: on the host a call is the system
/// call, so a program's future is ready when it is first polled.
///
/// # Panics
///
/// When the future pends, which would mean that something other than a
/// `System` was awaited.
pub fn run_ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a future on the host pended; only calls of System may be awaited"),
    }
}

/// Residency of several files, added up.
pub fn sum_residency(parts: impl IntoIterator<Item = Residency>) -> Option<Residency> {
    parts.into_iter().reduce(|sum, part| Residency {
        file_bytes: sum.file_bytes + part.file_bytes,
        before_bytes: sum.before_bytes + part.before_bytes,
        after_bytes: sum.after_bytes + part.after_bytes,
    })
}
