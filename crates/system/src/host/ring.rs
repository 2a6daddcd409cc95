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

use super::clock::{Clock, SteadyClock, monotonic};
use crate::{Call, Completion, EngineChoice, Errno, Error, File, Operation, Result};
use crate::{RingOptions, Submission};
use buffers::Buffers;
use diskperf_timeline::{Engine as EngineName, Nanoseconds};
use files::RingFiles;
pub use log::RingLog;
pub(super) use log::RingRecord;
use mapped::MappedFiles;
use pool::ThreadPool;
use positioned::PositionedCalls;
use spliced::SplicePipe;
use std::sync::Arc;
use uring::Uring;

/// Maximum time for a wait to notice the end of the run.
const WAIT_SLICE: Nanoseconds = Nanoseconds::from_millis(50);

/// Time that closing a ring waits for a device before it prints a message.
const STUCK_NOTE_AFTER: Nanoseconds = Nanoseconds::from_millis(5_000);
const GIVE_UP_AFTER: Nanoseconds = Nanoseconds::from_millis(120_000);

/// Note why requests are not submitted to the kernel in the best way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineNote {
    /// Text of the note, for readers of the result.
    pub text: String,
}

/// Ring of slots for the requests in flight.
pub(super) struct Ring {
    /// Engine that submits the requests. It is dropped before the buffers, because it ends the
    /// requests that use them.
    engine: Engine,
    slots: Vec<Slot>,
    buffers: Arc<Buffers>,
    files: Arc<RingFiles>,
    clock: SteadyClock,
    in_flight: usize,
    /// Completed slots that were not reaped, each with the bytes moved or a negated error number.
    unreaped: Vec<(u32, i32)>,
    note: Option<EngineNote>,
    is_given_up: bool,
}

enum Engine {
    Uring(Box<Uring>),
    Pool(ThreadPool),
    /// Copies to and from memory-mapped files, made by the worker on submission.
    Mapped(MappedFiles),
    Spliced(SplicePipe),
    Worker(PositionedCalls),
    /// Null engine for null drives: a request completes on submission.
    Null,
}

/// Slot of a ring: a request in flight, or room for one.
struct Slot {
    submission: Submission,
    /// Start of the request; in open loop the intended start.
    start: Nanoseconds,
    submit: Nanoseconds,
    /// Time at which the call that submitted the request returned.
    submitted: Nanoseconds,
    in_flight: bool,
    /// Whether the buffer has the ring's own data, as opposed to the program's.
    has_own_data: bool,
}

impl Slot {
    fn new_idle(slot: u32) -> Self {
        Self {
            submission: Submission {
                operation: Operation::Read,
                file: File(0),
                offset_bytes: 0,
                bytes: 0,
                slot,
                intended: None,
            },
            start: Nanoseconds::ZERO,
            submit: Nanoseconds::ZERO,
            submitted: Nanoseconds::ZERO,
            in_flight: false,
            has_own_data: true,
        }
    }
}

/// Reaped request with its result and times.
#[derive(Clone, Copy)]
pub(super) struct ReapedRequest {
    pub(super) submission: Submission,
    pub(super) result: std::result::Result<u32, Errno>,
    pub(super) response: Nanoseconds,
    pub(super) submit: Nanoseconds,
    pub(super) completion: Nanoseconds,
}

impl ReapedRequest {
    fn completion(&self) -> Completion {
        Completion {
            slot: self.submission.slot,
            result: self.result,
            response: self.response,
        }
    }
}

impl Ring {
    fn new(options: RingOptions, files: RingFiles, clock: Clock) -> Result<Self> {
        check_options(&options)?;
        let files = Arc::new(files);
        let buffers = Buffers::new(&options).map_err(|errno| {
            let what = format!("{} buffers of {} B", options.depth, options.buffer_bytes);
            Error::failed(Call::Ring, what, errno)
        })?;
        let buffers = Arc::new(buffers);
        let (engine, note) = Engine::new(&options, &files, &buffers)?;
        Ok(Self {
            engine,
            slots: (0..options.depth).map(Slot::new_idle).collect(),
            buffers,
            files,
            clock: SteadyClock::new(clock),
            in_flight: 0,
            unreaped: Vec::with_capacity(2 * options.depth as usize),
            note,
            is_given_up: false,
        })
    }

    pub(super) fn engine_name(&self) -> EngineName {
        match &self.engine {
            Engine::Uring(uring) if uring.has_submission_thread() => EngineName::IoUringSqPoll,
            Engine::Uring(_) => EngineName::IoUring,
            Engine::Pool(_) => EngineName::Threads,
            Engine::Mapped(_) => EngineName::Mapped,
            Engine::Spliced(_) | Engine::Worker(_) => EngineName::Calls,
            Engine::Null => EngineName::Null,
        }
    }

    pub(super) fn note(&self) -> Option<&EngineNote> {
        self.note.as_ref()
    }

    pub(super) fn buffer(&mut self, slot: u32) -> &mut [u8] {
        let slot_state = &mut self.slots[slot as usize];
        assert!(!slot_state.in_flight, "slot {slot} is under way");
        slot_state.has_own_data = false;
        self.buffers.idle_buffer(slot)
    }

    /// Marks a file as closed by the program, and reports whether writes to it are in flight.
    pub(super) fn mark_closed(&mut self, file: File) -> bool {
        if !self.files.contains(file) {
            return false;
        }
        self.files.mark_closed(file);
        let is_write = |slot: &Slot| {
            slot.in_flight
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
    pub(super) fn submit(
        &mut self,
        submissions: &[Submission],
        mut late: impl FnMut(Nanoseconds),
    ) -> Result<()> {
        let begin = self.clock.now();
        for &submission in submissions {
            let slot = &mut self.slots[submission.slot as usize];
            assert!(!slot.in_flight, "slot {} is under way", submission.slot);
            slot.in_flight = true;
            slot.submission = submission;
            slot.start = submission.intended.unwrap_or(begin);
            if let Some(intended) = submission.intended {
                late(begin.since(intended));
            }
            if submission.operation == Operation::Write && slot.has_own_data {
                self.buffers.stamp_with_number(&submission);
            }
            self.in_flight += 1;
            self.pass_to_engine(submission);
        }
        self.flush()?;
        let submitted = match self.engine {
            // The call that submits a request is the request.
            Engine::Mapped(_) | Engine::Spliced(_) | Engine::Worker(_) => begin,
            Engine::Uring(_) | Engine::Pool(_) | Engine::Null => self.clock.now(),
        };
        let submit = submitted.since(begin);
        for submission in submissions {
            let slot = &mut self.slots[submission.slot as usize];
            (slot.submit, slot.submitted) = (submit, submitted);
        }
        Ok(())
    }

    /// Passes a request to the engine. A request that cannot be submitted completes immediately
    /// with an error.
    #[inline]
    fn pass_to_engine(&mut self, submission: Submission) {
        let Some(file) = self.files.find(submission.file) else {
            return self.complete_with_error(submission.slot, libc::EBADF);
        };
        let moves = matches!(submission.operation, Operation::Read | Operation::Write);
        if moves && submission.bytes > self.buffers.buffer_bytes() {
            return self.complete_with_error(submission.slot, libc::EINVAL);
        }
        match &mut self.engine {
            Engine::Null => {
                let moved = file.null_drive_result(&submission);
                self.unreaped.push((submission.slot, moved));
            }
            Engine::Uring(uring) => uring.push(&submission, file, &self.buffers),
            Engine::Pool(pool) => pool.push(submission),
            Engine::Mapped(mapped) => {
                let result = mapped.execute(&submission, file, &self.buffers);
                self.unreaped.push((submission.slot, kernel_result(result)));
            }
            Engine::Worker(calls) => {
                let result = calls.execute(&submission, file, &self.buffers);
                self.unreaped.push((submission.slot, kernel_result(result)));
            }
            Engine::Spliced(spliced) => {
                let result = spliced.execute(&submission, file, &self.buffers);
                self.unreaped.push((submission.slot, kernel_result(result)));
            }
        }
    }

    #[cold]
    fn complete_with_error(&mut self, slot: u32, errno: i32) {
        self.unreaped.push((slot, -errno));
    }

    #[inline]
    fn flush(&mut self) -> Result<()> {
        match &mut self.engine {
            Engine::Mapped(_) | Engine::Spliced(_) | Engine::Worker(_) | Engine::Null => {}
            Engine::Uring(uring) => uring.flush().map_err(ring_error)?,
            Engine::Pool(pool) => pool.flush(),
        }
        Ok(())
    }

    /// Reaps all completions without waiting, and returns the current time.
    #[inline]
    pub(super) fn reap_all(
        &mut self,
        mut each: impl FnMut(ReapedRequest, Nanoseconds),
    ) -> Result<Nanoseconds> {
        match &mut self.engine {
            Engine::Mapped(_) | Engine::Spliced(_) | Engine::Worker(_) | Engine::Null => {}
            Engine::Uring(uring) => uring.move_completions(&mut self.unreaped),
            Engine::Pool(pool) => pool.move_completions(&mut self.unreaped),
        }
        let now = self.clock.now_setting_early();
        let mut again = false;
        for (number, result) in self.unreaped.drain(..) {
            let slot = &mut self.slots[number as usize];
            // A signal is no end of a request, as it is none of a call.
            if result == -libc::EINTR
                && let Engine::Uring(uring) = &mut self.engine
                && let Some(file) = self.files.find(slot.submission.file)
            {
                uring.push(&slot.submission, file, &self.buffers);
                again = true;
                continue;
            }
            slot.in_flight = false;
            self.in_flight -= 1;
            let result = u32::try_from(result)
                .map_err(|_| rustix::io::Errno::from_raw_os_error(-result).into());
            let reaped = ReapedRequest {
                submission: slot.submission,
                result,
                response: now.since(slot.start),
                submit: slot.submit,
                completion: now.since(slot.submitted),
            };
            each(reaped, now);
        }
        if again {
            self.flush()?;
        }
        Ok(now)
    }

    /// Makes the engine report completions, if that takes a system call.
    pub(super) fn poll(&mut self) -> Result<()> {
        match &mut self.engine {
            Engine::Uring(uring) => uring.poll().map_err(ring_error),
            _ => Ok(()),
        }
    }

    /// Waits for `at_least` more completions, a limited slice of time, or the deadline, whichever
    /// comes first. The caller must have reaped everything complete.
    pub(super) fn wait(&mut self, at_least: usize, until: Option<Nanoseconds>) -> Result<()> {
        let left = until.map(|until| until.since(self.clock.now()));
        match &mut self.engine {
            Engine::Uring(uring) => uring.wait(at_least, left).map_err(ring_error),
            Engine::Pool(pool) => {
                pool.wait(left.map_or(WAIT_SLICE, |left| left.min(WAIT_SLICE)));
                Ok(())
            }
            Engine::Mapped(_) | Engine::Spliced(_) | Engine::Worker(_) | Engine::Null => {
                // Nothing is under way that could complete: there is a moment, or no wait.
                let left = left.map_or(Nanoseconds::ZERO, |left| left.min(WAIT_SLICE));
                std::thread::sleep(std::time::Duration::from_nanos(left.0));
                Ok(())
            }
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Returns the requests in flight with their start times.
    pub(super) fn in_flight_requests(&self) -> impl Iterator<Item = (&Submission, Nanoseconds)> {
        let in_flight = self.slots.iter().filter(|slot| slot.in_flight);
        in_flight.map(|slot| (&slot.submission, slot.start))
    }

    /// Cancels the requests in flight, as far as the engine can.
    fn cancel(&mut self) {
        match &mut self.engine {
            _ if self.in_flight == 0 => {}
            Engine::Mapped(_) | Engine::Spliced(_) | Engine::Worker(_) | Engine::Null => {}
            Engine::Uring(uring) => uring.cancel(),
            Engine::Pool(pool) => self.in_flight -= pool.cancel(),
        }
    }

    /// Stops waiting for requests in flight, which keep the resources that they need.
    pub(super) fn give_up(&mut self) {
        self.is_given_up = true;
        match &mut self.engine {
            Engine::Mapped(_) | Engine::Spliced(_) | Engine::Worker(_) | Engine::Null => {}
            Engine::Uring(uring) => uring.give_up(),
            Engine::Pool(pool) => pool.give_up(),
        }
    }

    /// Describes the number and files of the requests in flight, for messages.
    fn describe_in_flight(&self) -> String {
        let mut paths: Vec<String> = Vec::new();
        for (submission, _) in self.in_flight_requests() {
            let path = self.files.path(submission.file);
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        format!("{} requests to {}", self.in_flight, paths.join(", "))
    }
}

impl Engine {
    fn new(
        options: &RingOptions,
        files: &Arc<RingFiles>,
        buffers: &Arc<Buffers>,
    ) -> Result<(Self, Option<EngineNote>)> {
        if files.are_null()? {
            return Ok((Self::Null, None));
        }
        let pool = || ThreadPool::new(options, files, buffers).map(Self::Pool);
        match options.engine {
            EngineChoice::Threads => return Ok((pool()?, None)),
            EngineChoice::Mapped(how) => {
                return Ok((Self::Mapped(MappedFiles::new(files, how)?), None));
            }
            EngineChoice::Spliced => return Ok((Self::Spliced(SplicePipe::new()?), None)),
            EngineChoice::Worker => return Ok((Self::Worker(PositionedCalls::new(options)), None)),
            EngineChoice::Best | EngineChoice::IoUring | EngineChoice::SqPoll => {}
        }
        match Uring::new(options, files, buffers) {
            Ok(uring) => {
                let note = uring.note();
                Ok((Self::Uring(Box::new(uring)), note))
            }
            Err(refusal) if options.engine == EngineChoice::Best && refusal.is_system_wide() => {
                let text = format!("requests go through threads: {refusal}");
                Ok((pool()?, Some(EngineNote { text })))
            }
            Err(refusal) => Err(refusal.into_error()),
        }
    }
}

/// Cancels the requests in flight and waits for them, so that none writes into freed buffers.
impl Drop for Ring {
    fn drop(&mut self) {
        let begin = monotonic();
        let mut said = false;
        self.cancel();
        while self.in_flight > 0 && !self.is_given_up {
            // An engine that fails now posts nothing more.
            let reaped = self.reap_all(|_, _| {}).and_then(|_| match self.in_flight {
                0 => Ok(()),
                left => self.wait(left, Some(monotonic() + WAIT_SLICE)),
            });
            let waited = self.clock.now().since(begin);
            if waited > STUCK_NOTE_AFTER && !said {
                said = true;
                eprintln!("diskperf: waiting for {}", self.describe_in_flight());
            }
            if reaped.is_err() || waited > GIVE_UP_AFTER {
                self.give_up();
            }
        }
        if self.in_flight > 0 {
            // The kernel may still write into the buffers: they stay, for good.
            std::mem::forget(Arc::clone(&self.buffers));
        }
    }
}

/// Reports whether an operation leaves data that needs a sync.
pub(super) fn modifies_data(operation: Operation) -> bool {
    match operation {
        Operation::Write | Operation::Discard => true,
        Operation::Read | Operation::Fsync | Operation::Fdatasync | Operation::SyncRange(_) => {
            false
        }
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
    let refused = |what: String| Err(Error::failed(Call::Ring, what, Errno::Invalid));
    if options.depth == 0 {
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
    Error::failed(Call::Ring, "a ring", errno)
}
