//! Ring of a worker on real storage: slots with their times and buffers, and an engine that submits
//! requests to the kernel.

mod buffers;
mod calls;
mod enter;
mod files;
mod log;
mod mapped;
mod pool;
mod positioned;
mod spliced;
mod sync_range;
mod uring;

use super::clock::{CallClock, MonotonicClock, monotonic_now};
use crate::{CallKind, EngineChoice, Errno, Error, File, IoCompletion, IoOperation, Result};
use crate::{RingOptions, Submission};
use buffers::RingBuffers;
use diskperf_timeline::{Engine as EngineName, Nanoseconds};
use files::RingFiles;
pub use log::RingRequestLog;
pub(super) use log::RingRequestRecorder;
use mapped::MappedFiles;
use pool::ThreadPool;
use positioned::PositionedCalls;
use spliced::SplicePipe;
use std::sync::Arc;
use uring::UringEngine;

/// Maximum time for a wait to notice the end of the run.
const WAIT_SLICE_MAX: Nanoseconds = Nanoseconds::from_millis(50);

/// Time that closing a ring waits for a device before it prints a message.
const STUCK_NOTE_DELAY: Nanoseconds = Nanoseconds::from_millis(5_000);
const ABANDON_DELAY: Nanoseconds = Nanoseconds::from_millis(120_000);

/// Note why requests are not submitted to the kernel in the best way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineNote {
    /// Text of the note, for readers of the result.
    pub message: String,
}

/// Ring of slots for the requests in flight.
pub(super) struct HostRing {
    /// Engine that submits the requests. It is dropped before the buffers, because it ends the
    /// requests that use them.
    ring_engine: RingEngine,
    slots: Vec<RingSlot>,
    buffers: Arc<RingBuffers>,
    ring_files: Arc<RingFiles>,
    clock: MonotonicClock,
    in_flight_count: usize,
    /// Completed slots that were not reaped, each with the bytes moved or a negated error number.
    unreaped_completions: Vec<(u32, i32)>,
    engine_note: Option<EngineNote>,
    is_abandoned: bool,
}

enum RingEngine {
    IoUring(Box<UringEngine>),
    ThreadPool(ThreadPool),
    /// Copies to and from memory-mapped files, made by the worker on submission.
    MappedFiles(MappedFiles),
    SplicePipe(SplicePipe),
    WorkerThread(PositionedCalls),
    /// Null engine for null drives: a request completes on submission.
    NullDrive,
}

/// Slot of a ring: a request in flight, or room for one.
struct RingSlot {
    submission: Submission,
    /// Start of the request; in open loop the intended start.
    response_start: Nanoseconds,
    submit_call_time: Nanoseconds,
    /// Time at which the call that submitted the request returned.
    submit_end: Nanoseconds,
    is_in_flight: bool,
    /// Whether the buffer has the ring's own data, as opposed to the program's.
    has_own_data: bool,
}

impl RingSlot {
    fn new_idle(slot: u32) -> Self {
        Self {
            submission: Submission {
                operation: IoOperation::Read,
                file: File(0),
                offset_bytes: 0,
                bytes: 0,
                slot,
                intended_start: None,
            },
            response_start: Nanoseconds::ZERO,
            submit_call_time: Nanoseconds::ZERO,
            submit_end: Nanoseconds::ZERO,
            is_in_flight: false,
            has_own_data: true,
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct ReapedRequest {
    pub(super) submission: Submission,
    pub(super) byte_count_or_errno: std::result::Result<u32, Errno>,
    pub(super) response_time: Nanoseconds,
    pub(super) submit_call_time: Nanoseconds,
    pub(super) completion_time: Nanoseconds,
}

impl ReapedRequest {
    fn to_completion(self) -> IoCompletion {
        IoCompletion {
            slot: self.submission.slot,
            byte_count_or_errno: self.byte_count_or_errno,
            response_time: self.response_time,
        }
    }
}

impl HostRing {
    fn new(options: RingOptions, files: RingFiles, clock: CallClock) -> Result<Self> {
        check_options(&options)?;
        let files = Arc::new(files);
        let buffers = RingBuffers::new(&options).map_err(|errno| {
            let what = format!(
                "{} buffers of {} B",
                options.queue_depth, options.buffer_bytes
            );
            Error::call_failed(CallKind::RingSetup, what, errno)
        })?;
        let buffers = Arc::new(buffers);
        let (engine, note) = RingEngine::new(&options, &files, &buffers)?;
        Ok(Self {
            ring_engine: engine,
            slots: (0..options.queue_depth).map(RingSlot::new_idle).collect(),
            buffers,
            ring_files: files,
            clock: MonotonicClock::new(clock),
            in_flight_count: 0,
            unreaped_completions: Vec::with_capacity(2 * options.queue_depth as usize),
            engine_note: note,
            is_abandoned: false,
        })
    }

    pub(super) fn engine_name(&self) -> EngineName {
        match &self.ring_engine {
            RingEngine::IoUring(uring) if uring.has_submission_thread() => {
                EngineName::IoUringSqPoll
            }
            RingEngine::IoUring(_) => EngineName::IoUring,
            RingEngine::ThreadPool(_) => EngineName::Threads,
            RingEngine::MappedFiles(_) => EngineName::Mapped,
            RingEngine::SplicePipe(_) | RingEngine::WorkerThread(_) => EngineName::Calls,
            RingEngine::NullDrive => EngineName::Null,
        }
    }

    pub(super) fn engine_note(&self) -> Option<&EngineNote> {
        self.engine_note.as_ref()
    }

    pub(super) fn buffer_of_slot(&mut self, slot: u32) -> &mut [u8] {
        let slot_state = &mut self.slots[slot as usize];
        assert!(!slot_state.is_in_flight, "slot {slot} is under way");
        slot_state.has_own_data = false;
        self.buffers.idle_buffer(slot)
    }

    /// Marks a file as closed by the program, and reports whether writes to it are in flight.
    pub(super) fn mark_closed(&mut self, file: File) -> bool {
        if !self.ring_files.contains_file(file) {
            return false;
        }
        self.ring_files.mark_closed(file);
        let is_write = |slot: &RingSlot| {
            slot.is_in_flight
                && slot.submission.file == file
                && modifies_data(slot.submission.operation)
        };
        self.slots.iter().any(is_write)
    }

    /// Polls the clock until the given time.
    #[inline]
    pub(super) fn spin_until(&mut self, time: Nanoseconds) {
        while self.clock.now() < time {}
    }

    /// Submits requests to the engine. `late` receives the lag of each request that has an intended
    /// start.
    #[inline]
    pub(super) fn submit_requests(
        &mut self,
        submissions: &[Submission],
        mut late: impl FnMut(Nanoseconds),
    ) -> Result<()> {
        let begin = self.clock.now();
        for &submission in submissions {
            let slot = &mut self.slots[submission.slot as usize];
            assert!(!slot.is_in_flight, "slot {} is under way", submission.slot);
            slot.is_in_flight = true;
            slot.submission = submission;
            slot.response_start = submission.intended_start.unwrap_or(begin);
            if let Some(intended) = submission.intended_start {
                late(begin.since(intended));
            }
            if submission.operation == IoOperation::Write && slot.has_own_data {
                self.buffers.stamp_write_data(&submission);
            }
            self.in_flight_count += 1;
            self.pass_to_engine(submission);
        }
        self.flush_to_engine()?;
        let submitted = match self.ring_engine {
            // The call that submits a request is the request.
            RingEngine::MappedFiles(_)
            | RingEngine::SplicePipe(_)
            | RingEngine::WorkerThread(_) => begin,
            RingEngine::IoUring(_) | RingEngine::ThreadPool(_) | RingEngine::NullDrive => {
                self.clock.now()
            }
        };
        let submit = submitted.since(begin);
        for submission in submissions {
            let slot = &mut self.slots[submission.slot as usize];
            (slot.submit_call_time, slot.submit_end) = (submit, submitted);
        }
        Ok(())
    }

    /// Passes a request to the engine. A request that cannot be submitted completes immediately
    /// with an error.
    #[inline]
    fn pass_to_engine(&mut self, submission: Submission) {
        let Some(file) = self.ring_files.find_open(submission.file) else {
            return self.complete_with_error(submission.slot, libc::EBADF);
        };
        let moves = matches!(submission.operation, IoOperation::Read | IoOperation::Write);
        if moves && submission.bytes > self.buffers.buffer_bytes() {
            return self.complete_with_error(submission.slot, libc::EINVAL);
        }
        match &mut self.ring_engine {
            RingEngine::NullDrive => {
                let moved = file.null_drive_result(&submission);
                self.unreaped_completions.push((submission.slot, moved));
            }
            RingEngine::IoUring(uring) => uring.push_request(&submission, file, &self.buffers),
            RingEngine::ThreadPool(pool) => pool.push_submission(submission),
            RingEngine::MappedFiles(mapped) => {
                let result = mapped.execute_request(&submission, file, &self.buffers);
                self.unreaped_completions
                    .push((submission.slot, kernel_result(result)));
            }
            RingEngine::WorkerThread(calls) => {
                let result = calls.execute_request(&submission, file, &self.buffers);
                self.unreaped_completions
                    .push((submission.slot, kernel_result(result)));
            }
            RingEngine::SplicePipe(spliced) => {
                let result = spliced.execute_request(&submission, file, &self.buffers);
                self.unreaped_completions
                    .push((submission.slot, kernel_result(result)));
            }
        }
    }

    #[cold]
    fn complete_with_error(&mut self, slot: u32, errno: i32) {
        self.unreaped_completions.push((slot, -errno));
    }

    #[inline]
    fn flush_to_engine(&mut self) -> Result<()> {
        match &mut self.ring_engine {
            RingEngine::MappedFiles(_)
            | RingEngine::SplicePipe(_)
            | RingEngine::WorkerThread(_)
            | RingEngine::NullDrive => {}
            RingEngine::IoUring(uring) => uring.flush_submissions().map_err(ring_error)?,
            RingEngine::ThreadPool(pool) => pool.flush_to_threads(),
        }
        Ok(())
    }

    /// Reaps all completions without waiting, and returns the current time.
    #[inline]
    pub(super) fn reap_all(
        &mut self,
        mut each: impl FnMut(ReapedRequest, Nanoseconds),
    ) -> Result<Nanoseconds> {
        match &mut self.ring_engine {
            RingEngine::MappedFiles(_)
            | RingEngine::SplicePipe(_)
            | RingEngine::WorkerThread(_)
            | RingEngine::NullDrive => {}
            RingEngine::IoUring(uring) => uring.move_completions(&mut self.unreaped_completions),
            RingEngine::ThreadPool(pool) => pool.move_completions(&mut self.unreaped_completions),
        }
        let now = self.clock.now_with_early_synchronization();
        let mut again = false;
        for (number, result) in self.unreaped_completions.drain(..) {
            let slot = &mut self.slots[number as usize];
            // A signal is no end of a request, as it is none of a call.
            if result == -libc::EINTR
                && let RingEngine::IoUring(uring) = &mut self.ring_engine
                && let Some(file) = self.ring_files.find_open(slot.submission.file)
            {
                uring.push_request(&slot.submission, file, &self.buffers);
                again = true;
                continue;
            }
            slot.is_in_flight = false;
            self.in_flight_count -= 1;
            let result = u32::try_from(result)
                .map_err(|_| rustix::io::Errno::from_raw_os_error(-result).into());
            let reaped = ReapedRequest {
                submission: slot.submission,
                byte_count_or_errno: result,
                response_time: now.since(slot.response_start),
                submit_call_time: slot.submit_call_time,
                completion_time: now.since(slot.submit_end),
            };
            each(reaped, now);
        }
        if again {
            self.flush_to_engine()?;
        }
        Ok(now)
    }

    /// Makes the engine report completions, if that takes a system call.
    pub(super) fn poll_completions(&mut self) -> Result<()> {
        match &mut self.ring_engine {
            RingEngine::IoUring(uring) => uring.poll_completions().map_err(ring_error),
            _ => Ok(()),
        }
    }

    /// Waits for `at_least` more completions, a limited slice of time, or the deadline, whichever
    /// comes first. The caller must have reaped everything complete.
    pub(super) fn wait_for_completions(
        &mut self,
        at_least: usize,
        until: Option<Nanoseconds>,
    ) -> Result<()> {
        let left = until.map(|until| until.since(self.clock.now()));
        match &mut self.ring_engine {
            RingEngine::IoUring(uring) => uring
                .wait_for_completions(at_least, left)
                .map_err(ring_error),
            RingEngine::ThreadPool(pool) => {
                pool.wait_for_completion(
                    left.map_or(WAIT_SLICE_MAX, |left| left.min(WAIT_SLICE_MAX)),
                );
                Ok(())
            }
            RingEngine::MappedFiles(_)
            | RingEngine::SplicePipe(_)
            | RingEngine::WorkerThread(_)
            | RingEngine::NullDrive => {
                // Nothing is under way that could complete: there is a moment, or no wait.
                let left = left.map_or(Nanoseconds::ZERO, |left| left.min(WAIT_SLICE_MAX));
                std::thread::sleep(std::time::Duration::from_nanos(left.0));
                Ok(())
            }
        }
    }

    pub(super) fn in_flight_count(&self) -> usize {
        self.in_flight_count
    }

    /// Returns the requests in flight with their start times.
    pub(super) fn in_flight_requests(&self) -> impl Iterator<Item = (&Submission, Nanoseconds)> {
        let in_flight = self.slots.iter().filter(|slot| slot.is_in_flight);
        in_flight.map(|slot| (&slot.submission, slot.response_start))
    }

    /// Cancels the requests in flight, as far as the engine can.
    fn cancel_requests(&mut self) {
        match &mut self.ring_engine {
            _ if self.in_flight_count == 0 => {}
            RingEngine::MappedFiles(_)
            | RingEngine::SplicePipe(_)
            | RingEngine::WorkerThread(_)
            | RingEngine::NullDrive => {}
            RingEngine::IoUring(uring) => uring.cancel_requests(),
            RingEngine::ThreadPool(pool) => self.in_flight_count -= pool.cancel_waiting(),
        }
    }

    /// Stops waiting for requests in flight, which keep the resources that they need.
    pub(super) fn abandon_requests(&mut self) {
        self.is_abandoned = true;
        match &mut self.ring_engine {
            RingEngine::MappedFiles(_)
            | RingEngine::SplicePipe(_)
            | RingEngine::WorkerThread(_)
            | RingEngine::NullDrive => {}
            RingEngine::IoUring(uring) => uring.abandon_requests(),
            RingEngine::ThreadPool(pool) => pool.abandon_threads(),
        }
    }

    /// Describes the number and files of the requests in flight, for messages.
    fn describe_in_flight(&self) -> String {
        let mut paths: Vec<String> = Vec::new();
        for (submission, _) in self.in_flight_requests() {
            let path = self.ring_files.path(submission.file);
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        format!("{} requests to {}", self.in_flight_count, paths.join(", "))
    }
}

impl RingEngine {
    fn new(
        options: &RingOptions,
        files: &Arc<RingFiles>,
        buffers: &Arc<RingBuffers>,
    ) -> Result<(Self, Option<EngineNote>)> {
        if files.are_null_drives()? {
            return Ok((Self::NullDrive, None));
        }
        let pool = || ThreadPool::new(options, files, buffers).map(Self::ThreadPool);
        match options.engine_choice {
            EngineChoice::Threads => return Ok((pool()?, None)),
            EngineChoice::MappedFiles(how) => {
                return Ok((Self::MappedFiles(MappedFiles::new(files, how)?), None));
            }
            EngineChoice::SplicedFiles => return Ok((Self::SplicePipe(SplicePipe::new()?), None)),
            EngineChoice::WorkerThread => {
                return Ok((Self::WorkerThread(PositionedCalls::new(options)), None));
            }
            EngineChoice::BestAvailable | EngineChoice::IoUring | EngineChoice::SqPoll => {}
        }
        match UringEngine::new(options, files, buffers) {
            Ok(uring) => {
                let note = uring.engine_note();
                Ok((Self::IoUring(Box::new(uring)), note))
            }
            Err(refusal)
                if options.engine_choice == EngineChoice::BestAvailable
                    && refusal.is_system_wide() =>
            {
                let text = format!("requests go through threads: {refusal}");
                Ok((pool()?, Some(EngineNote { message: text })))
            }
            Err(refusal) => Err(refusal.into_error()),
        }
    }
}

/// Cancels the requests in flight and waits for them, so that none writes into freed buffers.
impl Drop for HostRing {
    fn drop(&mut self) {
        let begin = monotonic_now();
        let mut said = false;
        self.cancel_requests();
        while self.in_flight_count > 0 && !self.is_abandoned {
            // An engine that fails now posts nothing more.
            let reaped = self
                .reap_all(|_, _| {})
                .and_then(|_| match self.in_flight_count {
                    0 => Ok(()),
                    left => self.wait_for_completions(left, Some(monotonic_now() + WAIT_SLICE_MAX)),
                });
            let waited = self.clock.now().since(begin);
            if waited > STUCK_NOTE_DELAY && !said {
                said = true;
                eprintln!("diskperf: waiting for {}", self.describe_in_flight());
            }
            if reaped.is_err() || waited > ABANDON_DELAY {
                self.abandon_requests();
            }
        }
        if self.in_flight_count > 0 {
            // The kernel may still write into the buffers: they stay, for good.
            std::mem::forget(Arc::clone(&self.buffers));
        }
    }
}

/// Reports whether an operation leaves data that needs a sync.
pub(super) fn modifies_data(operation: IoOperation) -> bool {
    match operation {
        IoOperation::Write | IoOperation::DiscardRange => true,
        IoOperation::Read
        | IoOperation::Fsync
        | IoOperation::Fdatasync
        | IoOperation::SyncRange(_) => false,
    }
}

/// Converts a result to the kernel's form: bytes, or a negated error number.
fn kernel_result(result: rustix::io::Result<usize>) -> i32 {
    match result {
        Ok(bytes) => bytes as i32,
        Err(errno) => -errno.raw_os_error(),
    }
}

fn check_options(options: &RingOptions) -> Result<()> {
    let refused = |what: String| {
        Err(Error::call_failed(
            CallKind::RingSetup,
            what,
            Errno::Invalid,
        ))
    };
    if options.queue_depth == 0 {
        return refused("of depth 0 (it must be at least 1)".to_owned());
    }
    if options.buffer_bytes == 0 || !options.buffer_bytes.is_multiple_of(512) {
        let bytes = options.buffer_bytes;
        return refused(format!(
            "of buffers of {bytes} B (they must be multiples of 512)"
        ));
    }
    if options.compressible_percent > 100 {
        let percent = options.compressible_percent;
        return refused(format!("of data compressible to {percent} %"));
    }
    Ok(())
}

#[cold]
fn ring_error(errno: rustix::io::Errno) -> Error {
    Error::call_failed(CallKind::RingSetup, "a ring", errno)
}
