//! Process on a modelled computer with any kernel, or program on a rig (drives without a computer).

use crate::calls::{OpenFlags, ProcessAccount, SeekOrigin};
use crate::errno::{Errno, Result};
use crate::kernel::costs::ProgramWork;
use crate::kernel::ffs::FastFileSystem;
use crate::kernel::list::each_kernel;
use crate::kernel::pipe::PipeEnd;
use crate::rendezvous::WorkerRendezvous;
use crate::rig::RigSession;
use crate::ring::{RingCompletion, RingRequest, RingSize};
use crate::software::Kernel;
use crate::written::WriteData;
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::RefCell;
use std::rc::Rc;

/// Result of calls with a path on a rig (drives without a computer), which has no files.
const NO_FILE_SYSTEM: Result<()> = Err(Errno::NoSuchEntry);

macro_rules! sessions {
    ({} $($(#[$doc:meta])* $Kernel:ident($running:ty, $described:ty, $session:ty);)*) => {
        /// Process on a computer or program on a rig (drives without a computer), with the system
        /// calls that it may make.
        pub enum Session {
            $($(#[$doc])* $Kernel($session),)*
            /// Program on a rig (drives without a computer).
            Rig(RigSession),
        }

        impl Session {
            /// Begins a process in the current task. Returns when the process has the processor.
            pub async fn begin_session(
                kernel: &Kernel,
                number: usize,
                pipe_ends: Vec<PipeEnd>,
                meeting: &Rc<WorkerRendezvous>,
            ) -> Self {
                match kernel {
                    $(Kernel::$Kernel(kernel) => {
                        let session = <$session>::begin_session(kernel, number, pipe_ends, meeting);
                        Self::$Kernel(session.await)
                    })*
                    Kernel::Rig(rig) => Self::Rig(RigSession::begin_session(rig, number, meeting)),
                }
            }
        }
    };
}
each_kernel! { sessions! {} }

/// Dispatches a call to the kernel of the session, or to the given expression for a program on a
/// rig.
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
    /// Ends the process and closes its files.
    pub async fn end_session(self) {
        on_each!(self, session => session.end_session().await);
    }

    /// Current virtual time of the session's machine.
    pub fn current_time(&self) -> Time {
        on_each!(self, session => session.current_time())
    }

    /// Opens the time account of the process.
    pub fn open_account(&self) {
        on_each!(self, session => session.open_account());
    }

    /// Returns the time account of the process since it was opened.
    pub fn current_account(&self) -> ProcessAccount {
        on_each!(self, session => session.current_account())
    }
}

impl Session {
    /// Opens a file, as open(2). Returns the number of the file.
    pub async fn open_path(&mut self, path: &str, how: OpenFlags) -> Result<usize> {
        on_each!(self, session => session.open_path(path, how).await, session => session.open_path(path, how))
    }

    /// Reads from a file, as read(2).
    #[inline]
    pub async fn read(&mut self, number: usize, into: &mut [u8]) -> Result<usize> {
        on_each!(self, session => session.read(number, into).await)
    }

    /// Writes to a file, as write(2).
    #[inline]
    pub async fn write(&mut self, number: usize, data: impl Into<WriteData<'_>>) -> Result<usize> {
        let data = data.into();
        on_each!(self, session => session.write(number, data).await)
    }

    /// Moves the offset of an open file, as lseek(2).
    pub async fn lseek(&mut self, number: usize, offset: i64, from: SeekOrigin) -> Result<u64> {
        on_each!(self, session => session.lseek(number, offset, from).await, session => session.lseek(number, offset, from))
    }

    /// Changes the length of an open file, as ftruncate(2).
    pub async fn ftruncate(&mut self, number: usize, bytes: u64) -> Result<()> {
        on_each!(self, session => session.ftruncate(number, bytes).await, session => session.refuse_change(number))
    }

    /// Makes the data of an open file durable, as fsync(2).
    pub async fn fsync(&mut self, number: usize) -> Result<()> {
        on_each!(self, session => session.fsync(number).await)
    }

    /// Closes a file, as close(2).
    pub async fn close(&mut self, number: usize) -> Result<()> {
        on_each!(self, session => session.close(number).await, session => session.close(number))
    }

    /// Closes all files of the process.
    pub async fn close_all(&mut self) {
        on_each!(self, session => session.close_all().await, session => session.close_all());
    }

    /// Returns the length of an open file, as fstat(2).
    pub async fn file_length(&mut self, number: usize) -> Result<u64> {
        on_each!(self, session => session.file_length(number).await, session => session.device_length(number))
    }
}

/// Calls for several requests in flight. No kernel of the time had such calls; they are built from
/// the means of each kernel.
impl Session {
    /// Opens a ring for the given open files.
    ///
    /// # Errors
    ///
    /// [`crate::Errno::DeviceBusy`] if the process has a ring, [`crate::Errno::InvalidArgument`] for a ring
    /// without slots, [`crate::Errno::BadFileDescriptor`] for a file that is not open.
    pub async fn open_ring(&mut self, size: RingSize, files: &[usize]) -> Result<()> {
        on_each!(self, session => session.open_ring(size, files).await, session => session.open_ring(size, files))
    }

    /// Submits requests to the kernel, in order.
    ///
    /// # Errors
    ///
    /// [`crate::Errno::InvalidArgument`] without a ring.
    ///
    /// # Panics
    ///
    /// If a slot is in flight or out of range.
    pub async fn submit_requests(&mut self, requests: &[RingRequest]) -> Result<()> {
        on_each!(self, session => session.submit_requests(requests).await, session => session.submit_requests(requests))
    }

    /// Waits until `at_least` requests are complete, at most until a deadline, and reaps all
    /// completions. Without a deadline, the wait is for no more completions than there are
    /// requests.
    ///
    /// # Errors
    ///
    /// [`crate::Errno::InvalidArgument`] without a ring.
    pub async fn reap_completions(
        &mut self,
        at_least: usize,
        until: Option<Time>,
        completions: &mut Vec<RingCompletion>,
    ) -> Result<()> {
        on_each!(self, session => session.reap_completions(at_least, until, completions).await)
    }

    /// Contents of a slot's buffer, for writes or as read. Empty contents mean that read data are
    /// dropped and written data are constant. None without an open ring.
    pub fn ring_contents(&self, slot: u32) -> Option<&RefCell<Vec<u8>>> {
        on_each!(self, session => session.ring_contents(slot))
    }

    /// Number of requests of the session's ring that are in flight.
    pub fn in_flight_count(&self) -> usize {
        on_each!(self, session => session.in_flight_count())
    }

    /// Waits for the requests in flight, and closes the ring.
    pub async fn close_ring(&mut self) {
        on_each!(self, session => session.close_ring().await);
    }
}

impl Session {
    /// Changes the attributes of a file, as chown(2), chmod(2) and utimes(2).
    pub async fn change_attributes(&mut self, path: &str) -> Result<()> {
        on_each!(self, session => session.change_attributes(path).await, _ => NO_FILE_SYSTEM)
    }

    /// Changes the attributes of an open file, as fchown(2) and fchmod(2).
    pub async fn change_open_attributes(&mut self, number: usize) -> Result<()> {
        on_each!(self, session => session.change_open_attributes(number).await, session => session.refuse_change(number))
    }

    /// Returns the length of a file by its path, as stat(2).
    pub async fn stat(&mut self, path: &str) -> Result<u64> {
        on_each!(self, session => session.stat(path).await, _ => Err(Errno::NoSuchEntry))
    }

    /// Removes a file, as unlink(2).
    pub async fn unlink(&mut self, path: &str) -> Result<()> {
        on_each!(self, session => session.unlink(path).await, _ => NO_FILE_SYSTEM)
    }

    /// Creates a directory, as mkdir(2).
    pub async fn mkdir(&mut self, path: &str) -> Result<()> {
        on_each!(self, session => session.mkdir(path).await, _ => NO_FILE_SYSTEM)
    }

    /// Removes an empty directory, as rmdir(2).
    pub async fn rmdir(&mut self, path: &str) -> Result<()> {
        on_each!(self, session => session.rmdir(path).await, _ => NO_FILE_SYSTEM)
    }

    /// Renames a file, as rename(2).
    pub async fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        on_each!(self, session => session.rename(from, to).await, _ => NO_FILE_SYSTEM)
    }
}

impl Session {
    /// Sleeps until a given time.
    pub async fn sleep_until(&mut self, at: Time) {
        on_each!(self, session => session.sleep_until(at).await, session => session.wait_until(at, Stage::Think).await);
    }

    /// Uses the processor in user mode for the given duration.
    pub async fn consume_user_time(&mut self, span: Time) {
        on_each!(self, session => session.consume_user_time(span).await, session => {
            let until = session.current_time() + span;
            session.wait_until(until, Stage::User).await;
        });
    }

    /// Waits for all other workers. Returns the time of the last arrival, or None if a worker has
    /// failed.
    pub async fn barrier(&mut self) -> Option<Time> {
        on_each!(self, session => session.barrier().await)
    }

    /// Number of notices that workers have given each other so far.
    pub fn notice_count(&self) -> u64 {
        on_each!(self, session => session.notice_count())
    }

    /// Gives a notice: wakes the workers that wait for one.
    pub fn give_notice(&self) {
        on_each!(self, session => session.give_notice());
    }

    /// Waits until workers have given more than `seen` notices, at most until a deadline.
    pub async fn await_notice(&mut self, seen: u64, until: Option<Time>) {
        on_each!(self, session => session.await_notice(seen, until).await);
    }

    /// Announces that this worker will never come to a barrier, so that the others need not wait.
    pub fn abandon_meeting(&self) {
        on_each!(self, session => session.abandon_meeting());
    }

    /// Opens an end of a prepared pipe and returns its file number. Each end can be opened once.
    pub async fn take_pipe_end(&mut self, number: usize) -> Result<usize> {
        on_each!(self, session => session.take_pipe_end(number).await, _ => Err(Errno::BadFileDescriptor))
    }
}

/// Access to the buffer cache from outside of the process. These are not system calls, and they are
/// not part of the timed phase.
impl Session {
    /// Writes dirty blocks of a file, and drops all of its blocks from the cache.
    pub async fn drop_cached_blocks(&mut self, path: &str) -> Result<()> {
        on_each!(self, session => session.drop_cached_blocks(path).await, session => session.resident_bytes(path).map(|_| ()))
    }

    /// Writes all dirty blocks, and drops all blocks from the cache.
    pub async fn drop_all_caches(&mut self) {
        on_each!(self, session => session.drop_all_caches().await, _ => ());
    }

    /// Returns how many of the first `length` bytes of a file are in the cache.
    pub async fn resident_bytes(&mut self, path: &str, length: u64) -> Result<u64> {
        on_each!(self, session => session.resident_bytes(path, length).await, session => session.resident_bytes(path))
    }

    /// Writes all dirty blocks, so that a measurement can include the time of these writes.
    pub async fn flush_volume(&mut self, drive: u32) {
        on_each!(self, session => session.flush_volume(drive).await, _ => ());
    }

    /// Number of drives with file systems.
    pub fn volume_count(&self) -> usize {
        on_each!(self, session => session.volume_count(), _ => 0)
    }

    /// Reports whether a volume with the given number exists, mounted or not.
    pub fn has_volume(&self, drive: u32) -> bool {
        on_each!(self, session => session.has_volume(drive))
    }

    /// Returns the current layout of a volume's fast file system. None if the volume has none.
    pub fn file_system(&self, volume: u32) -> Option<FastFileSystem> {
        match self {
            Self::Unix(session) => session.file_system(volume),
            _ => None,
        }
    }

    /// Returns the processor time that the given work takes on this machine. Zero on a rig.
    #[must_use]
    pub fn program_work_time(&self, work: ProgramWork) -> Time {
        on_each!(self, session => session.program_work_time(work), _ => Time::ZERO)
    }

    /// Reports whether drives, and `/dev/bnull`, are also block devices, which programs can read
    /// through the cache.
    pub fn has_block_devices(&self) -> bool {
        matches!(self, Self::Minix(_))
    }
}
