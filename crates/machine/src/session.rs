//! A process on a modelled computer, whatever its kernel, or a program on a rig.

use crate::calls::{Account, From, How};
use crate::errno::{Errno, Result};
use crate::kernel::costs::Work;
use crate::kernel::ffs::FileSystem;
use crate::kernel::list::each_kernel;
use crate::kernel::pipe::PipeEnd;
use crate::rendezvous::Rendezvous;
use crate::rig::RigSession;
use crate::ring::{RingCompletion, RingRequest, RingSize};
use crate::software::Kernel;
use crate::written::Written;
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::RefCell;
use std::rc::Rc;

/// The outcome of calls by name where drives have no files.
const NO_FILES: Result<()> = Err(Errno::NoEntry);

macro_rules! sessions {
    ({} $($(#[$doc:meta])* $Kernel:ident($running:ty, $described:ty, $session:ty);)*) => {
        /// A process, with the system calls that it may make.
        pub enum Session {
            $($(#[$doc])* $Kernel($session),)*
            /// On drives by themselves.
            Rig(RigSession),
        }

        impl Session {
            /// A new process, in the task that asks; returns when it has the
            /// processor.
            pub async fn begin(
                kernel: &Kernel,
                number: usize,
                pipe_ends: Vec<PipeEnd>,
                meeting: &Rc<Rendezvous>,
            ) -> Self {
                match kernel {
                    $(Kernel::$Kernel(kernel) => {
                        let session = <$session>::begin(kernel, number, pipe_ends, meeting);
                        Self::$Kernel(session.await)
                    })*
                    Kernel::Rig(rig) => Self::Rig(RigSession::begin(rig, number, meeting)),
                }
            }
        }
    };
}
each_kernel! { sessions! {} }

/// Hands a call to whichever kernel this is; of a rig, to the expression behind it.
macro_rules! on_each {
    ($self:ident, $session:ident => $call:expr, $rig:pat => $on_rig:expr) => {
        each_kernel! { on_each! { $self, $session => $call, $rig => $on_rig } }
    };
    ($self:ident, $session:ident => $call:expr) => {
        on_each!($self, $session => $call, $session => $call)
    };
    (
        { $self:ident, $session:ident => $call:expr, $rig:pat => $on_rig:expr }
        $($(#[$doc:meta])* $Kernel:ident($running:ty, $described:ty, $own:ty);)*
    ) => {
        match $self {
            $(Session::$Kernel($session) => $call,)*
            Session::Rig($rig) => $on_rig,
        }
    };
}

impl Session {
    /// The process ends, with all its files closed.
    pub async fn end(self) {
        on_each!(self, session => session.end().await);
    }

    /// The present moment.
    pub fn now(&self) -> Time {
        on_each!(self, session => session.now())
    }

    /// Starts the account of where the process's time goes.
    pub fn open_account(&self) {
        on_each!(self, session => session.open_account());
    }

    /// The account since then.
    pub fn account(&self) -> Account {
        on_each!(self, session => session.account())
    }
}

/// Files.
impl Session {
    /// open(2); the number of the file.
    pub async fn open(&mut self, path: &str, how: How) -> Result<usize> {
        on_each!(self, session => session.open(path, how).await, session => session.open(path, how))
    }

    /// read(2).
    #[inline]
    pub async fn read(&mut self, number: usize, into: &mut [u8]) -> Result<usize> {
        on_each!(self, session => session.read(number, into).await)
    }

    /// write(2).
    #[inline]
    pub async fn write(&mut self, number: usize, data: impl Into<Written<'_>>) -> Result<usize> {
        let data = data.into();
        on_each!(self, session => session.write(number, data).await)
    }

    /// lseek(2).
    pub async fn lseek(&mut self, number: usize, offset: i64, from: From) -> Result<u64> {
        on_each!(self, session => session.lseek(number, offset, from).await, session => session.lseek(number, offset, from))
    }

    /// ftruncate(2).
    pub async fn ftruncate(&mut self, number: usize, bytes: u64) -> Result<()> {
        on_each!(self, session => session.ftruncate(number, bytes).await, session => session.change_open(number))
    }

    /// fsync(2).
    pub async fn fsync(&mut self, number: usize) -> Result<()> {
        on_each!(self, session => session.fsync(number).await)
    }

    /// close(2).
    pub async fn close(&mut self, number: usize) -> Result<()> {
        on_each!(self, session => session.close(number).await, session => session.close(number))
    }

    /// Closes everything.
    pub async fn close_all(&mut self) {
        on_each!(self, session => session.close_all().await, session => session.close_all());
    }

    /// fstat(2): the length of a file.
    pub async fn length(&mut self, number: usize) -> Result<u64> {
        on_each!(self, session => session.length(number).await, session => session.length(number))
    }
}

/// Several requests under way, which no kernel of the day had: made of what each kernel has.
impl Session {
    /// Makes a ring for these open files.
    ///
    /// # Errors
    ///
    /// [`crate::Errno::Busy`] where there is one, [`crate::Errno::Invalid`] for one without
    /// slots, [`crate::Errno::BadFile`] for a file that is not open.
    pub async fn open_ring(&mut self, size: RingSize, files: &[usize]) -> Result<()> {
        on_each!(self, session => session.open_ring(size, files).await, session => session.open_ring(size, files))
    }

    /// Hands requests to the kernel, in order.
    ///
    /// # Errors
    ///
    /// [`crate::Errno::Invalid`] without a ring.
    ///
    /// # Panics
    ///
    /// If a slot is under way, or out of range.
    pub async fn submit(&mut self, requests: &[RingRequest]) -> Result<()> {
        on_each!(self, session => session.submit(requests).await, session => session.submit(requests))
    }

    /// Waits until so many requests are complete, at most until a moment, and takes all
    /// that are. Without a moment, no more are waited for than there are.
    ///
    /// # Errors
    ///
    /// [`crate::Errno::Invalid`] without a ring.
    pub async fn reap(
        &mut self,
        at_least: usize,
        until: Option<Time>,
        completions: &mut Vec<RingCompletion>,
    ) -> Result<()> {
        on_each!(self, session => session.reap(at_least, until, completions).await)
    }

    /// The contents of a slot's buffer, of a ring that is open: what a request of the slot
    /// writes, or has read. Where they are empty, nobody asks for them: what is read goes
    /// nowhere, and what is written is always the same.
    pub fn ring_contents(&self, slot: u32) -> Option<&RefCell<Vec<u8>>> {
        on_each!(self, session => session.ring_contents(slot))
    }

    /// Requests that are not complete.
    pub fn under_way(&self) -> usize {
        on_each!(self, session => session.under_way())
    }

    /// Waits for what is under way, and does without the ring from then on.
    pub async fn close_ring(&mut self) {
        on_each!(self, session => session.close_ring().await);
    }
}

/// Names.
impl Session {
    /// chown(2), chmod(2) and utimes(2).
    pub async fn change_attributes(&mut self, path: &str) -> Result<()> {
        on_each!(self, session => session.change_attributes(path).await, _ => NO_FILES)
    }

    /// fchown(2) and fchmod(2).
    pub async fn change_open_attributes(&mut self, number: usize) -> Result<()> {
        on_each!(self, session => session.change_open_attributes(number).await, session => session.change_open(number))
    }

    /// stat(2): the length of what is in a file system.
    pub async fn stat(&mut self, path: &str) -> Result<u64> {
        on_each!(self, session => session.stat(path).await, _ => Err(Errno::NoEntry))
    }

    /// unlink(2).
    pub async fn unlink(&mut self, path: &str) -> Result<()> {
        on_each!(self, session => session.unlink(path).await, _ => NO_FILES)
    }

    /// mkdir(2).
    pub async fn mkdir(&mut self, path: &str) -> Result<()> {
        on_each!(self, session => session.mkdir(path).await, _ => NO_FILES)
    }

    /// rmdir(2).
    pub async fn rmdir(&mut self, path: &str) -> Result<()> {
        on_each!(self, session => session.rmdir(path).await, _ => NO_FILES)
    }

    /// rename(2).
    pub async fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        on_each!(self, session => session.rename(from, to).await, _ => NO_FILES)
    }
}

/// Time, and the others.
impl Session {
    /// Sleeps until a moment.
    pub async fn sleep_until(&mut self, at: Time) {
        on_each!(self, session => session.sleep_until(at).await, session => session.pass_until(at, Stage::Think).await);
    }

    /// Uses the processor in user mode for this long.
    pub async fn compute(&mut self, span: Time) {
        on_each!(self, session => session.compute(span).await, session => {
            let until = session.now() + span;
            session.pass_until(until, Stage::User).await;
        });
    }

    /// Waits for the other workers; none if one of them failed.
    pub async fn barrier(&mut self) -> Option<Time> {
        on_each!(self, session => session.barrier().await)
    }

    /// Notices that workers gave each other so far.
    pub fn notices(&self) -> u64 {
        on_each!(self, session => session.notices())
    }

    /// Wakes the workers that wait for a notice.
    pub fn give_notice(&self) {
        on_each!(self, session => session.give_notice());
    }

    /// Waits until workers gave more notices than `seen`, at most until a moment.
    pub async fn await_notice(&mut self, seen: u64, until: Option<Time>) {
        on_each!(self, session => session.await_notice(seen, until).await);
    }

    /// The others need not wait for this one.
    pub fn give_up_meeting(&self) {
        on_each!(self, session => session.give_up_meeting());
    }

    /// Takes an end of a pipe.
    pub async fn pipe_end(&mut self, number: usize) -> Result<usize> {
        on_each!(self, session => session.pipe_end(number).await, _ => Err(Errno::BadFile))
    }
}

/// The cache, from outside: not system calls, and outside all that is timed.
impl Session {
    /// Writes a file's blocks out and forgets them.
    pub async fn drop_cached(&mut self, path: &str) -> Result<()> {
        on_each!(self, session => session.drop_cached(path).await, session => session.resident_bytes(path).map(|_| ()))
    }

    /// Writes everything out and forgets it.
    pub async fn drop_all_caches(&mut self) {
        on_each!(self, session => session.drop_all_caches().await, _ => ());
    }

    /// How much of the first `length` bytes of a file is in the cache.
    pub async fn resident_bytes(&mut self, path: &str, length: u64) -> Result<u64> {
        on_each!(self, session => session.resident_bytes(path, length).await, session => session.resident_bytes(path))
    }

    /// Writes out what is still to be written, for the time by which it is.
    pub async fn flush(&mut self, drive: u32) {
        on_each!(self, session => session.flush(drive).await, _ => ());
    }

    /// How many drives have file systems.
    pub fn volumes(&self) -> usize {
        on_each!(self, session => session.volumes(), _ => 0)
    }

    /// Whether there is this drive, mounted or not.
    pub fn has_volume(&self, drive: u32) -> bool {
        on_each!(self, session => session.has_volume(drive))
    }

    /// The layout of a volume's fast file system at this moment; none where it
    /// has none.
    pub fn file_system(&self, volume: u32) -> Option<FileSystem> {
        match self {
            Self::Unix(session) => session.file_system(volume),
            _ => None,
        }
    }

    /// The time that this machine takes for work of a program.
    #[must_use]
    pub fn time_of(&self, work: Work) -> Time {
        on_each!(self, session => session.time_of(work), _ => Time::ZERO)
    }

    /// Whether drives, and `/dev/bnull`, are block devices too: whether they
    /// can be read through the cache.
    pub fn has_block_devices(&self) -> bool {
        matches!(self, Self::Minix(_))
    }
}
