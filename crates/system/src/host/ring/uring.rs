//! Engine with io_uring: a submission queue and a completion queue shared with the kernel.

mod setup;

pub(super) use setup::SetupRefusal;

use super::buffers::RingBuffers;
use super::enter::{GET_EVENTS, RingHandle, WAIT_FOR_ROOM, WAKE_SUBMISSION_THREAD};
use super::files::{RingFile, RingFiles};
use super::sync_range;
use super::{EngineNote, WAIT_SLICE_MAX};
use crate::{IoOperation, RingOptions, Submission};
use diskperf_timeline::Nanoseconds;
use io_uring::types::{CancelBuilder, Fixed, FsyncFlags, Timespec};
use io_uring::{IoUring, opcode, squeue};
use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd};

/// User data that marks the completion of the heartbeat timeout, which belongs to no slot.
const HEARTBEAT_USER_DATA: u64 = u64::MAX;
const CANCELLATION_USER_DATA: u64 = u64::MAX - 1;

/// Code of `BLOCK_URING_CMD_DISCARD`, `_IO(0x12, 0)` (Linux 6.12).
const DISCARD_COMMAND: u32 = 0x12 << 8;

/// Time before a deadline at which a wait stops sleeping and polls, because threads wake up late.
const SPIN_TIME_MAX: Nanoseconds = Nanoseconds(50_000);

/// Maximum number of consecutive attempts to submit while the kernel lacks memory.
const FLUSH_ATTEMPTS_MAX: usize = 10_000;

/// Submission and completion queues of an io_uring, with its features.
pub(super) struct UringEngine {
    io_uring: IoUring,
    ring_handle: RingHandle,
    /// Whether a kernel thread polls the submission queue.
    has_submission_thread: bool,
    /// Whether the kernel polls the device for completions (IOPOLL).
    is_completion_polled: bool,
    has_registered_buffers: bool,
    /// Timeout request that ends a wait for a single completion after a time slice. A timed wait
    /// would cost a kernel timer each.
    heartbeat_timeout: Box<Timespec>,
    is_heartbeat_in_flight: bool,
    engine_note: Option<EngineNote>,
    /// Whether the ring was given up while the kernel still has requests.
    is_abandoned: bool,
}

impl UringEngine {
    pub(super) fn new(
        options: &RingOptions,
        files: &RingFiles,
        buffers: &RingBuffers,
    ) -> Result<Self, SetupRefusal> {
        let ring = setup::create_ring(options)?;
        let registered = ring.submitter().register_files(&files.raw_descriptors());
        registered.map_err(|error| SetupRefusal::from_registration(&error))?;
        let note = setup::register_buffers(&ring, options, buffers).err();
        let handle = RingHandle::new(ring_descriptor(&ring));
        // A filter of system calls may know one of the three and not the others.
        if let Err(errno) = handle.enter_ring(0, 0, 0) {
            handle.unregister_ring(ring_descriptor(&ring));
            return Err(SetupRefusal::from_enter(errno));
        }
        Ok(Self {
            ring_handle: handle,
            has_submission_thread: ring.params().is_setup_sqpoll(),
            is_completion_polled: options.polls_completions,
            has_registered_buffers: note.is_none(),
            heartbeat_timeout: Box::new(Timespec::new().nsec(WAIT_SLICE_MAX.0 as u32)),
            is_heartbeat_in_flight: false,
            engine_note: note,
            is_abandoned: false,
            io_uring: ring,
        })
    }

    pub(super) fn has_submission_thread(&self) -> bool {
        self.has_submission_thread
    }

    pub(super) fn engine_note(&self) -> Option<EngineNote> {
        self.engine_note.clone()
    }

    /// Queues a request that [`Self::flush_submissions`] will submit.
    #[inline]
    pub(super) fn push_request(
        &mut self,
        submission: &Submission,
        file: &RingFile,
        buffers: &RingBuffers,
    ) {
        let entry = build_entry(
            submission,
            file,
            buffers.buffer_address(submission.slot),
            self.has_registered_buffers,
        );
        self.push_entry(&entry.user_data(u64::from(submission.slot)))
            .expect("the queue has room for every slot");
    }

    #[inline]
    #[allow(unsafe_code)]
    fn push_entry(&mut self, entry: &squeue::Entry) -> Result<(), squeue::PushError> {
        // SAFETY: a request reads and writes its slot's buffer alone, which outlives it:
        // the ring that owns both waits for what is under way, or leaks the buffers.
        // What else an entry points to is this structure's own and read when it is
        // submitted.
        unsafe { self.io_uring.submission().push(entry) }
    }

    /// Submits the queued requests, in one system call if the kernel accepts all.
    #[inline]
    pub(super) fn flush_submissions(&mut self) -> Result<(), Errno> {
        if self.has_submission_thread {
            return self.wake_submission_thread();
        }
        for _ in 0..FLUSH_ATTEMPTS_MAX {
            let queued = self.io_uring.submission().len() as u32;
            if queued == 0 {
                return Ok(());
            }
            match self.ring_handle.enter_ring(queued, 0, GET_EVENTS) {
                Ok(taken) if taken == queued => return Ok(()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::BUSY) => std::thread::yield_now(),
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::AGAIN)
    }

    fn wake_submission_thread(&mut self) -> Result<(), Errno> {
        if !self.io_uring.submission().need_wakeup() {
            return Ok(());
        }
        match self.ring_handle.enter_ring(0, 0, WAKE_SUBMISSION_THREAD) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Moves the completions to `ready`, without a system call.
    #[inline]
    pub(super) fn move_completions(&mut self, ready: &mut Vec<(u32, i32)>) {
        for entry in self.io_uring.completion() {
            match entry.user_data() {
                HEARTBEAT_USER_DATA => self.is_heartbeat_in_flight = false,
                CANCELLATION_USER_DATA => {}
                slot => ready.push((slot as u32, entry.result())),
            }
        }
    }

    /// Makes the kernel post completions, including those that it left for this thread to process.
    pub(super) fn poll_completions(&mut self) -> Result<(), Errno> {
        let owes = self.is_completion_polled || {
            let queue = self.io_uring.submission();
            queue.taskrun() || queue.cq_overflow()
        };
        if owes {
            self.enter_kernel(0, None)
        } else {
            Ok(())
        }
    }

    /// Waits for `completions_min` completions, a time slice, or `left`, whichever ends first.
    pub(super) fn wait_for_completions(
        &mut self,
        completions_min: usize,
        left: Option<Nanoseconds>,
    ) -> Result<(), Errno> {
        let completions_min = completions_min as u32;
        match left {
            // The kernel polls until there are so many, unless others want the processor.
            None if self.is_completion_polled => self.enter_kernel(completions_min, None),
            Some(_) if self.is_completion_polled => self.enter_kernel(0, None),
            // A heartbeat is a completion: it ends a wait for one.
            None if completions_min == 1 && !self.has_submission_thread => {
                self.submit_heartbeat();
                self.enter_kernel(1, None)
            }
            None => self.enter_kernel(completions_min, Some(WAIT_SLICE_MAX)),
            Some(left) if left > SPIN_TIME_MAX => {
                let sleep = Nanoseconds(left.0 - SPIN_TIME_MAX.0).min(WAIT_SLICE_MAX);
                self.enter_kernel(completions_min, Some(sleep))
            }
            Some(_) => {
                std::hint::spin_loop();
                self.poll_completions()
            }
        }
    }

    fn submit_heartbeat(&mut self) {
        if !self.is_heartbeat_in_flight {
            let timeout = opcode::Timeout::new(&raw const *self.heartbeat_timeout).build();
            // A queue that is full has what is to be waited for.
            self.is_heartbeat_in_flight = self
                .push_entry(&timeout.user_data(HEARTBEAT_USER_DATA))
                .is_ok();
        }
    }

    fn enter_kernel(
        &mut self,
        completions_min: u32,
        time_max: Option<Nanoseconds>,
    ) -> Result<(), Errno> {
        let (queued, flags) = match self.has_submission_thread {
            false => (self.io_uring.submission().len() as u32, GET_EVENTS),
            true if self.io_uring.submission().need_wakeup() => {
                (0, GET_EVENTS | WAKE_SUBMISSION_THREAD)
            }
            true => (0, GET_EVENTS),
        };
        let entered = match time_max {
            None => self.ring_handle.enter_ring(queued, completions_min, flags),
            Some(time_max) => {
                self.ring_handle
                    .enter_ring_with_timeout(queued, completions_min, flags, time_max.0)
            }
        };
        match entered {
            Ok(_) | Err(Errno::TIME | Errno::INTR | Errno::AGAIN | Errno::BUSY) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Cancels all requests in flight. Requests that a device already has continue.
    pub(super) fn cancel_requests(&mut self) {
        let all = opcode::AsyncCancel2::new(CancelBuilder::any()).build();
        let _ = self.flush_submissions();
        if self.has_submission_thread {
            let _ = self
                .ring_handle
                .enter_ring(0, 0, WAIT_FOR_ROOM | WAKE_SUBMISSION_THREAD);
        }
        // Where it is refused, as by an old kernel, all complete by themselves.
        let _ = self.push_entry(&all.user_data(CANCELLATION_USER_DATA));
        let _ = self.flush_submissions();
    }

    /// Gives up the requests in flight. The kernel keeps the resources that they need.
    pub(super) fn abandon_requests(&mut self) {
        self.is_abandoned = true;
    }
}

/// Unregisters the ring's files. The kernel would release them only some time after the ring is
/// closed, and a file system cannot be unmounted before.
impl Drop for UringEngine {
    fn drop(&mut self) {
        self.ring_handle
            .unregister_ring(ring_descriptor(&self.io_uring));
        if !self.is_abandoned {
            let submitter = self.io_uring.submitter();
            // What is not registered needs no end.
            let _ = submitter.unregister_buffers();
            let _ = submitter.unregister_files();
        }
    }
}

#[allow(unsafe_code)]
fn ring_descriptor(ring: &IoUring) -> BorrowedFd<'_> {
    // SAFETY: the descriptor is the ring's, which is borrowed for as long.
    unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) }
}

/// Builds the submission queue entry of a request.
#[inline]
fn build_entry(
    submission: &Submission,
    file: &RingFile,
    buffer: *mut u8,
    is_registered: bool,
) -> squeue::Entry {
    let &Submission {
        operation,
        offset_bytes,
        bytes,
        slot,
        ..
    } = submission;
    let place = Fixed(file.ring_index);
    let number = slot as u16;
    match operation {
        IoOperation::Read if is_registered => opcode::ReadFixed::new(place, buffer, bytes, number)
            .offset(offset_bytes)
            .build(),
        IoOperation::Read => opcode::Read::new(place, buffer, bytes)
            .offset(offset_bytes)
            .build(),
        IoOperation::Write if is_registered => {
            opcode::WriteFixed::new(place, buffer, bytes, number)
                .offset(offset_bytes)
                .build()
        }
        IoOperation::Write => opcode::Write::new(place, buffer, bytes)
            .offset(offset_bytes)
            .build(),
        IoOperation::Fsync => opcode::Fsync::new(place).build(),
        IoOperation::Fdatasync => opcode::Fsync::new(place)
            .flags(FsyncFlags::DATASYNC)
            .build(),
        IoOperation::SyncRange(steps) => opcode::SyncFileRange::new(place, bytes)
            .offset(offset_bytes)
            .flags(sync_range::to_sync_range_flags(steps))
            .build(),
        IoOperation::DiscardRange => build_discard(file, offset_bytes, bytes),
    }
}

/// Builds a discard: a punched hole for a file, a discard command for a device. Before Linux 6.12
/// the command fails with EOPNOTSUPP.
fn build_discard(file: &RingFile, offset_bytes: u64, bytes: u32) -> squeue::Entry {
    let place = Fixed(file.ring_index);
    if file.is_block_device {
        let mut length = [0; 16];
        length[..8].copy_from_slice(&u64::from(bytes).to_ne_bytes());
        return opcode::UringCmd16::new(place, DISCARD_COMMAND)
            .addr(Some(offset_bytes))
            .cmd(length)
            .build();
    }
    opcode::Fallocate::new(place, u64::from(bytes))
        .offset(offset_bytes)
        .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
        .build()
}
