//! Several requests under way at once: submitted to a ring, and reaped from it.
//!
//! The ring owns one buffer for each request that can be under way, its *slot*. A slot's
//! number is also what tells requests apart: a completion names the slot, whose buffer is
//! the program's again. The ring times each request, and counts it in the worker's measure.

pub(crate) mod record;

use crate::error::Errno;
use crate::{File, ReadBackProgress, Result, System, SystemCall};
use diskperf_timeline::{Nanoseconds, Verified};

/// What a ring is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingOptions {
    /// Requests under way at once, at most: the number of slots.
    pub depth: u32,
    /// Bytes of each slot's buffer; a multiple of 512. Buffers are page-aligned.
    pub buffer_bytes: u32,
    /// The seed of the data in the buffers, which does not compress but for
    /// `compressible_percent`.
    pub seed: u64,
    /// Percent of the data, in every 4 KiB, that is zeroes.
    pub compressible_percent: u8,
    /// How requests are handed to the kernel.
    pub engine: EngineChoice,
    /// Whether completions are polled for (IOPOLL): direct I/O on a device that can alone.
    pub poll: bool,
    /// Whether the program fills and looks at the buffers. Those of real storage always hold
    /// what is read and written; those of a model only then.
    pub has_contents: bool,
    /// The length of an interval of the time series.
    pub interval: Nanoseconds,
}

/// How requests are to be handed to the kernel of real storage. A modelled kernel has one
/// way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// io_uring, and where that is absent or forbidden threads.
    #[default]
    Best,
    /// io_uring, or an error.
    IoUring,
    /// io_uring with a thread of the kernel that polls the submission queue.
    SqPoll,
    /// A pool of threads with preadv2 and pwritev2.
    Threads,
    /// The worker itself, with preadv2 and pwritev2: one request at a time, whose submission
    /// returns when it is complete.
    Worker,
    /// The worker copies to and from the files, which are mapped into its memory. A sync is
    /// msync(2) of the whole file.
    Mapped(MapOptions),
    /// The worker moves data by splice(2), through a pipe.
    Spliced,
}

/// Memory-mapped files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapOptions {
    /// Whether the kernel is told that access is random, and not sequential: it then reads
    /// nothing ahead.
    pub is_random: bool,
    /// Whether each request is written to the file and leaves the mapping.
    pub drops_pages: bool,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads into the slot's buffer.
    Read,
    /// Writes from the slot's buffer.
    Write,
    /// fsync(2): offset and length do not count.
    Fsync,
    /// fdatasync(2): offset and length do not count.
    Fdatasync,
    /// sync_file_range(2): writes data of the range, and nothing else that is needed to find
    /// it again after a crash. No length is a range to the end of the file.
    SyncRange(RangeSteps),
    /// Gives the range up: punches a hole into a file, discards of a device.
    Discard,
}

/// Steps of sync_file_range(2), in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeSteps {
    /// Waits for data of the range that is being written.
    pub wait_before: bool,
    /// Starts to write changed data of the range.
    pub write: bool,
    /// Waits for it.
    pub wait_after: bool,
}

/// A kind of call whose latency a program has counted by itself, with one under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameCall {
    /// A file is made, written and closed.
    Create,
    /// stat(2).
    Stat,
    /// rename(2).
    Rename,
    /// unlink(2).
    Unlink,
    /// fsync(2) of a file or of a directory.
    Sync,
}

/// A transaction of a program's own that is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Bytes that it made durable.
    pub bytes: u64,
    /// From its start (in open loop the intended one) until it was durable.
    pub response: Nanoseconds,
    /// In open loop: how late after its intended start it began.
    pub lag: Option<Nanoseconds>,
}

/// Time that each kind of request took in which a program makes one kind after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// Of reads.
    pub read: Nanoseconds,
    /// Of writes.
    pub write: Nanoseconds,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// What it does.
    pub operation: Operation,
    /// The file, which must have been named when the ring was opened.
    pub file: File,
    /// Where in the file.
    pub offset_bytes: u64,
    /// How much; at most the slot's buffer, but for a discard.
    pub bytes: u32,
    /// The slot; none of its requests may be under way.
    pub slot: u32,
    /// When it was to be issued, where arrivals do not wait (open loop): its response
    /// counts from then.
    pub intended: Option<Nanoseconds>,
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Which request: it had this slot.
    pub slot: u32,
    /// Bytes moved, which at the end of a file are fewer than asked for, or 0; what the
    /// request failed with. A failed request fails by itself.
    pub result: std::result::Result<u32, Errno>,
    /// From its start (in open loop the intended one) until its completion was taken.
    pub response: Nanoseconds,
}

/// Several requests under way at once. A worker has one ring at a time.
impl System {
    /// Opens a ring for these open files, and fills its buffers. On real storage that takes
    /// longer than many requests: a timed part in which nothing was read or written begins when
    /// its first ring is open.
    ///
    /// # Errors
    ///
    /// Where the system has no such ring, or refuses its memory or its buffers.
    pub fn open_ring<'a>(
        &'a mut self,
        options: RingOptions,
        files: &'a [File],
    ) -> SystemCall<'a, Result<()>> {
        on_each_world!(self, world => world.open_ring(options, files))
    }

    /// The buffer of a slot that is not under way: what a read left there, or what a write
    /// is to take. A model's ring has data only where it was opened with
    /// [`RingOptions::has_contents`]: else it is `None` there.
    ///
    /// A slot whose buffer was never asked for is written with the ring's own data, of
    /// which no two writes have 4 KiB in common: storage that finds copies finds none.
    ///
    /// # Panics
    ///
    /// If the slot is under way, or out of range.
    #[inline]
    pub fn ring_buffer(&mut self, slot: u32) -> Option<&mut [u8]> {
        at_once_on_each_world!(self, world => world.ring_buffer(slot))
    }

    /// Hands requests to the kernel, in order; returns when it has taken them all.
    ///
    /// # Panics
    ///
    /// If a slot is under way, or out of range.
    pub fn submit<'a>(&'a mut self, submissions: &'a [Submission]) -> SystemCall<'a, Result<()>> {
        on_each_world!(self, world => world.submit(submissions))
    }

    /// The same at a moment, which is near: on real storage nothing but the clock is looked
    /// at until then.
    ///
    /// # Panics
    ///
    /// As [`System::submit`].
    pub fn submit_at<'a>(
        &'a mut self,
        moment: Nanoseconds,
        submissions: &'a [Submission],
    ) -> SystemCall<'a, Result<()>> {
        match self {
            #[cfg(feature = "host")]
            Self::Host(host) => SystemCall::made(host.submit_at(Some(moment), submissions)),
            Self::Model(model) => SystemCall::modelled(async move {
                model.sleep_until(moment).await?;
                model.submit(submissions).await
            }),
        }
    }

    /// Waits until this many requests are complete, at most until a moment, and takes all
    /// that are: they are added to `completions`. Returns the present moment. No more can
    /// complete than are under way: without a moment it waits for these, with one until
    /// then.
    ///
    /// # Errors
    ///
    /// Only where the run has ended, or the ring itself fails: what a request failed with
    /// is in its completion.
    pub fn reap<'a>(
        &'a mut self,
        at_least: usize,
        until: Option<Nanoseconds>,
        completions: &'a mut Vec<Completion>,
    ) -> SystemCall<'a, Result<Nanoseconds>> {
        on_each_world!(self, world => world.reap(at_least, until, completions))
    }

    /// What whoever reads the result must know of how the program came to its end.
    pub fn say_of_end(&mut self, text: String) {
        at_once_on_each_world!(self, world => world.say_of_end(text))
    }

    /// Counts a request that failed with an error which the program passes over.
    pub fn count_error(&mut self, errno: Errno) {
        at_once_on_each_world!(self, world => world.count_error(errno))
    }

    /// Says that the program made its writes and its reads one kind after the other, and how
    /// long each took.
    pub fn count_spans(&mut self, spans: Spans) {
        at_once_on_each_world!(self, world => world.count_spans(spans))
    }

    /// Shows how many of the blocks that are read back to be verified have been.
    pub fn show_read_back(&self, progress: ReadBackProgress) {
        at_once_on_each_world!(self, world => world.show_read_back(progress))
    }

    /// Adds blocks that were read back and compared to the measure.
    pub fn count_verified(&mut self, verified: Verified) {
        at_once_on_each_world!(self, world => world.count_verified(verified))
    }

    /// Tells how a program that issues requests at given moments used the slots of its ring:
    /// how many were late because none was free, and how many were under way at the most.
    pub fn used_slots(&mut self, held_up: u64, deepest: u64) {
        at_once_on_each_world!(self, world => world.used_slots(held_up, deepest))
    }

    /// Has the course over time show commits and their responses from now on, and not those
    /// of single requests.
    pub fn judge_by_commits(&mut self) {
        at_once_on_each_world!(self, world => world.judge_by_commits())
    }

    /// Counts a transaction of the program's own, which is durable now.
    pub fn count_commit(&mut self, commit: Commit) {
        at_once_on_each_world!(self, world => world.count_commit(commit))
    }

    /// Counts a transaction that had arrived at `intended` and was not begun when the program
    /// ended.
    pub fn count_uncommitted(&mut self, intended: Nanoseconds) {
        at_once_on_each_world!(self, world => world.count_uncommitted(intended))
    }

    /// Has calls counted by [`System::count_call`] from now on, of a worker without a ring,
    /// with a course over time in intervals of this length.
    pub fn count_calls(&mut self, interval: Nanoseconds) {
        at_once_on_each_world!(self, world => world.count_calls(interval))
    }

    /// Counts a call of the program's own, from its start to its end, which is now: so
    /// many bytes were written in it, in `took` of that time.
    pub fn count_call(&mut self, call: NameCall, bytes: u64, took: Nanoseconds) {
        at_once_on_each_world!(self, world => world.count_call(call, bytes, took))
    }

    /// Counts a read or a write that was made by calls of the program's own, of a worker
    /// [without a ring](Self::count_calls): its bytes, and from its start to its end, which
    /// is now.
    pub fn count_request(&mut self, operation: Operation, bytes: u64, took: Nanoseconds) {
        at_once_on_each_world!(self, world => world.count_request(operation, bytes, took))
    }

    /// Counts a request that had arrived and was not even issued when the program ended,
    /// because its slots were all under way: it counts as those do that were issued and
    /// are not complete ([`diskperf_timeline::LoadMeasure::unfinished`]).
    pub fn count_unissued(&mut self, operation: Operation, intended: Nanoseconds) {
        at_once_on_each_world!(self, world => world.count_unissued(operation, intended))
    }

    /// Forgets what was measured so far, as at the end of a ramp: the timed part starts
    /// now. Requests under way count when they complete.
    pub fn restart_measuring(&mut self) -> Result<()> {
        at_once_on_each_world!(self, world => world.restart_measuring())
    }

    /// Waits for what is under way, and closes the ring. The end of a worker does the same:
    /// nothing is under way when it has ended.
    pub fn close_ring(&mut self) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.close_ring())
    }
}
