//! Ring for several requests in flight, which are submitted to it and reaped from it.
//!
//! The ring owns one buffer, its *slot*, for each request that can be in flight. The slot's number
//! also identifies the request: a completion names the slot, whose buffer then belongs to the
//! program again. The ring times each request, and counts it in the worker's measure.

pub(crate) mod record;

use crate::error::Errno;
use crate::{File, ReadBackProgress, Result, System, SystemCall};
use diskperf_timeline::{CapProbe, Nanoseconds, VerifiedBlocks};

/// Options for opening a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingOptions {
    /// Maximum number of requests in flight, which is the number of slots.
    pub queue_depth: u32,
    /// Size of each slot's buffer in bytes; a multiple of 512. Buffers are page-aligned.
    pub buffer_bytes: u32,
    /// Seed of the buffers' random data, which is incompressible except for `compressible_percent`.
    pub seed: u64,
    /// Percentage of zeroes in every 4 KiB of the data.
    pub compressible_percent: u8,
    /// Choice of the mechanism that submits requests to the kernel.
    pub engine_choice: EngineChoice,
    /// Whether completions are polled for (IOPOLL), which only direct I/O on a device supports.
    pub polls_completions: bool,
    /// Whether the program fills and reads the buffers. On real storage they always hold the data;
    /// on a model only with this option.
    pub has_verifiable_contents: bool,
    /// Length of an interval of the time series.
    pub series_interval: Nanoseconds,
}

/// Choice of the mechanism that submits requests to the kernel of real storage. A modelled kernel
/// has only one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// Submission through io_uring or, if that is absent or forbidden, through threads.
    #[default]
    BestAvailable,
    /// Submission through io_uring; an error if it is unavailable.
    IoUring,
    /// Submission through io_uring with a kernel thread that polls the submission queue.
    SqPoll,
    /// Thread pool with preadv2 and pwritev2.
    Threads,
    /// Calls of preadv2 and pwritev2 by the worker itself, one request at a time. Submission
    /// returns when the request is complete.
    WorkerThread,
    /// Copies by the worker to and from memory-mapped files. A sync is msync(2) of the whole file.
    MappedFiles(MapOptions),
    /// Transfers by the worker with splice(2), through a pipe.
    SplicedFiles,
}

/// Options for memory-mapped files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapOptions {
    /// Whether the kernel gets advice of random access and does not read ahead. Otherwise the
    /// advice is sequential access.
    pub is_random: bool,
    /// Whether each request writes its pages to the file and drops them from the mapping.
    pub drops_pages: bool,
}

/// Operation of a request to a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoOperation {
    /// Read from the file into the slot's buffer.
    Read,
    /// Write of the slot's buffer to the file.
    Write,
    /// Sync with fsync(2); offset and length are ignored.
    Fsync,
    /// Sync with fdatasync(2); offset and length are ignored.
    Fdatasync,
    /// Sync with sync_file_range(2). It writes the data of the range, but not the metadata needed
    /// to find the data after a crash. A length of zero extends to the end of the file.
    SyncRange(RangeSteps),
    /// Discard of a range: a punched hole in a file, a discard command to a device.
    DiscardRange,
}

/// Steps of sync_file_range(2), in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeSteps {
    /// Whether to wait for writes of the range that are in flight.
    pub waits_before: bool,
    /// Whether to start writing dirty data of the range.
    pub starts_writeback: bool,
    /// Whether to wait for the writes of the range at the end.
    pub waits_after: bool,
}

/// Kind of call that a program times and counts itself, with one call in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameCall {
    /// File creation: the file is created, written and closed.
    Create,
    /// Call of stat(2) on a file name.
    Stat,
    /// Call of rename(2) on a file name.
    Rename,
    /// Call of unlink(2) on a file name.
    Unlink,
    /// Call of fsync(2) on a file or directory.
    Sync,
}

/// Transaction of a program that has become durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommittedTransaction {
    /// Bytes that the transaction made durable.
    pub bytes: u64,
    /// Time from the start of the transaction (in open loop its intended start) until it was
    /// durable.
    pub response_time: Nanoseconds,
    /// Delay of the transaction's start after its intended start, in open loop only.
    pub arrival_lag: Option<Nanoseconds>,
}

/// Durations of the read and write phases of a program that makes one kind of request after the
/// other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadWriteSpans {
    /// Duration of the program's read phase.
    pub read_span: Nanoseconds,
    /// Duration of the program's write phase.
    pub write_span: Nanoseconds,
}

/// Request for submission to a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Operation that the request performs.
    pub operation: IoOperation,
    /// File of the request, which must have been named when the ring was opened.
    pub file: File,
    /// Offset of the request in the file, in bytes.
    pub offset_bytes: u64,
    /// Length of the request in bytes; at most the size of the slot's buffer, except for a discard.
    pub bytes: u32,
    /// Slot of the request; it must be idle.
    pub slot: u32,
    /// Intended start of the request in open loop, from which its response time counts. `None` in
    /// closed loop.
    pub intended_start: Option<Nanoseconds>,
}

/// Completion of a request: its slot, result and response time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoCompletion {
    /// Slot of the completed request.
    pub slot: u32,
    /// Number of bytes moved, or the request's error. At the end of a file the number is lower than
    /// requested, or 0. A failed request does not affect others.
    pub byte_count_or_errno: std::result::Result<u32, Errno>,
    /// Response time, from the start of the request (in open loop its intended start) until the
    /// completion was reaped.
    pub response_time: Nanoseconds,
}

/// Calls of a program with several requests in flight. A worker has one ring at a time.
impl System {
    /// Opens a ring for these open files, and fills its buffers. On real storage that takes longer
    /// than many requests. If nothing was read or written yet, the timed part restarts when the
    /// first ring is open.
    ///
    /// # Errors
    ///
    /// The system has no such ring, or refuses its memory or its buffers.
    pub fn open_ring<'a>(
        &'a mut self,
        options: RingOptions,
        files: &'a [File],
    ) -> SystemCall<'a, Result<()>> {
        on_each_world!(self, world => world.open_ring(options, files))
    }

    /// Returns the buffer of an idle slot, with the data of a read or for the data of a write.
    /// `None` on a model unless the ring was opened with [`RingOptions::has_verifiable_contents`].
    ///
    /// A slot whose buffer was never requested is written with the ring's own data. No two writes
    /// of it have 4 KiB in common, so that storage cannot deduplicate them.
    ///
    /// # Panics
    ///
    /// If the slot is in flight, or out of range.
    #[inline]
    pub fn ring_buffer(&mut self, slot: u32) -> Option<&mut [u8]> {
        at_once_on_each_world!(self, world => world.ring_buffer(slot))
    }

    /// Submits requests to the kernel, in order, and returns when it has accepted them all.
    ///
    /// # Panics
    ///
    /// If a slot is in flight, or out of range.
    pub fn submit_requests<'a>(
        &'a mut self,
        submissions: &'a [Submission],
    ) -> SystemCall<'a, Result<()>> {
        on_each_world!(self, world => world.submit_requests(submissions))
    }

    /// Submits requests at a given time in the near future. On real storage the worker polls the
    /// clock until then.
    ///
    /// # Panics
    ///
    /// As [`System::submit_requests`].
    pub fn submit_requests_at<'a>(
        &'a mut self,
        moment: Nanoseconds,
        submissions: &'a [Submission],
    ) -> SystemCall<'a, Result<()>> {
        match self {
            #[cfg(feature = "host")]
            Self::HostWorker(host) => {
                SystemCall::new_finished(host.submit_requests_at(Some(moment), submissions))
            }
            Self::ModelWorker(model) => SystemCall::new_modelled(async move {
                model.sleep_until(moment).await?;
                model.submit_requests(submissions).await
            }),
        }
    }

    /// Waits for `at_least` completions, or until a deadline if there is one, and appends all
    /// completions to `completions`. Returns the current time. No more requests can complete than
    /// are in flight: without a deadline the call waits for these, with a deadline until then.
    ///
    /// # Errors
    ///
    /// The run has ended, or the ring itself fails. The error of a request is in its completion.
    pub fn reap_requests<'a>(
        &'a mut self,
        at_least: usize,
        until: Option<Nanoseconds>,
        completions: &'a mut Vec<IoCompletion>,
    ) -> SystemCall<'a, Result<Nanoseconds>> {
        on_each_world!(self, world => world.reap_requests(at_least, until, completions))
    }

    /// Records how the program ended, for readers of the result.
    pub fn set_end_note(&mut self, text: String) {
        at_once_on_each_world!(self, world => world.set_end_note(text))
    }

    /// Records the windows of a probe for a cap on the rate.
    pub fn record_cap_probe(&mut self, probe: CapProbe) {
        at_once_on_each_world!(self, world => world.record_cap_probe(probe))
    }

    /// Counts a request that failed with an error that the program ignores.
    pub fn count_ignored_error(&mut self, errno: Errno) {
        at_once_on_each_world!(self, world => world.count_ignored_error(errno))
    }

    /// Records the durations of the writes and reads of a program that makes one kind after the
    /// other.
    pub fn record_read_write_spans(&mut self, spans: ReadWriteSpans) {
        at_once_on_each_world!(self, world => world.record_read_write_spans(spans))
    }

    /// Publishes the progress of reading blocks back for verification.
    pub fn publish_read_back_progress(&self, progress: ReadBackProgress) {
        at_once_on_each_world!(self, world => world.publish_read_back_progress(progress))
    }

    /// Adds counts of blocks that were read back and compared to the measure.
    pub fn count_verified(&mut self, verified: VerifiedBlocks) {
        at_once_on_each_world!(self, world => world.count_verified(verified))
    }

    /// Records how a program with given issue times used the ring's slots: the number of requests
    /// that were late because no slot was free, and the maximum number in flight.
    pub fn record_slot_use(&mut self, slot_waits: u64, in_flight_max: u64) {
        at_once_on_each_world!(self, world => world.record_slot_use(slot_waits, in_flight_max))
    }

    /// Switches the time series to commits and their response times, in place of single requests.
    pub fn report_commits_in_series(&mut self) {
        at_once_on_each_world!(self, world => world.report_commits_in_series())
    }

    /// Counts a transaction of the program that is durable now.
    pub fn count_commit(&mut self, commit: CommittedTransaction) {
        at_once_on_each_world!(self, world => world.count_commit(commit))
    }

    /// Counts a transaction that had arrived at `intended`, but had not started when the program
    /// ended.
    pub fn count_uncommitted(&mut self, intended: Nanoseconds) {
        at_once_on_each_world!(self, world => world.count_uncommitted(intended))
    }

    /// Prepares a worker without a ring for [`System::count_name_call`], with a time series in intervals
    /// of this length.
    pub fn begin_name_call_series(&mut self, interval: Nanoseconds) {
        at_once_on_each_world!(self, world => world.begin_name_call_series(interval))
    }

    /// Counts a call of the program that ends now. It took `duration` and wrote `bytes`.
    pub fn count_name_call(&mut self, call: NameCall, bytes: u64, duration: Nanoseconds) {
        at_once_on_each_world!(self, world => world.count_name_call(call, bytes, duration))
    }

    /// Counts a read or write that ends now and consisted of several calls, for a worker [without a
    /// ring](Self::begin_name_call_series). It took `duration` and moved `bytes`.
    pub fn count_request(&mut self, operation: IoOperation, bytes: u64, duration: Nanoseconds) {
        at_once_on_each_world!(self, world => world.count_request(operation, bytes, duration))
    }

    /// Counts a request that had arrived, but was not even issued when the program ended, because
    /// all slots were in flight. It counts like an issued request that is incomplete
    /// ([`diskperf_timeline::LoadMeasure::unfinished_count`]).
    pub fn count_unissued(&mut self, operation: IoOperation, intended: Nanoseconds) {
        at_once_on_each_world!(self, world => world.count_unissued(operation, intended))
    }

    /// Restarts the measurement, as at the end of a ramp. Requests in flight count when they
    /// complete.
    pub fn restart_measuring(&mut self) -> Result<()> {
        at_once_on_each_world!(self, world => world.restart_measuring())
    }

    /// Waits for the requests in flight, and closes the ring. The end of a worker does the same, so
    /// that no request outlives it.
    pub fn close_ring(&mut self) -> SystemCall<'_, Result<()>> {
        on_each_world!(self, world => world.close_ring())
    }
}
