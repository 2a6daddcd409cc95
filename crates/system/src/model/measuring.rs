//! Measures of a worker on a modelled computer: counts and times of its timed part.

use super::{Model, nanoseconds};
use crate::ring::record::{CompletedRequest, LoadRecorder};
use crate::{Operation, Result, WorkerProgress};
use diskperf_machine::Time;
use diskperf_timeline::{LatencyRecorder, Nanoseconds, Stage, WorkerMeasure};
use std::sync::Arc;

/// Counts and times of a worker's timed part.
pub(super) struct TimedPartRecorder {
    pub(super) progress: Arc<WorkerProgress>,
    /// Whether the timed part has started and not ended.
    is_running: bool,
    /// Drives that were written to since the timed part started.
    written_drives: Vec<bool>,
    calls: u64,
    read_bytes: u64,
    written_bytes: u64,
    latencies: Option<Box<Latencies>>,
    /// Measure of the ring's requests, if the worker has a ring.
    pub(super) load: Option<LoadRecorder>,
    /// Measure of a timed part that ended before the program.
    pub(super) ended_measure: Option<Box<WorkerMeasure>>,
    /// Time from which the worker's start is measured.
    origin: Nanoseconds,
    started: Time,
}

struct Latencies {
    read: LatencyRecorder,
    write: LatencyRecorder,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            read: LatencyRecorder::growing(),
            write: LatencyRecorder::growing(),
        }
    }
}

impl TimedPartRecorder {
    pub(super) fn new(drives: usize, time_calls: bool, progress: Arc<WorkerProgress>) -> Self {
        Self {
            progress,
            is_running: false,
            written_drives: vec![false; drives],
            calls: 0,
            read_bytes: 0,
            written_bytes: 0,
            latencies: time_calls.then(Box::default),
            load: None,
            ended_measure: None,
            origin: Nanoseconds::ZERO,
            started: Time::ZERO,
        }
    }

    fn start(&mut self, origin: Nanoseconds, now: Time) {
        self.is_running = true;
        self.written_drives.fill(false);
        self.calls = 0;
        self.read_bytes = 0;
        self.written_bytes = 0;
        if let Some(latencies) = &mut self.latencies {
            latencies.read.clear();
            latencies.write.clear();
        }
        if let Some(load) = &mut self.load {
            load.restart();
        }
        self.origin = origin;
        self.started = now;
        self.show_progress();
    }

    #[inline]
    pub(super) fn count_read(&mut self, bytes: usize, duration: Time) {
        self.read_bytes += bytes as u64;
        if let Some(latencies) = &mut self.latencies {
            latencies.read.record(nanoseconds(duration));
        }
        self.count_call();
    }

    #[inline]
    pub(super) fn count_write(&mut self, drive: Option<u32>, bytes: usize, duration: Time) {
        self.written_bytes += bytes as u64;
        self.mark_written(drive);
        if let Some(latencies) = &mut self.latencies {
            latencies.write.record(nanoseconds(duration));
        }
        self.count_call();
    }

    /// Records that a drive is about to be written.
    #[inline]
    pub(super) fn mark_written(&mut self, drive: Option<u32>) {
        if let (true, Some(drive)) = (self.is_running, drive) {
            self.written_drives[drive as usize] = true;
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.is_running
    }

    /// Returns the time from which the worker's start is measured.
    pub(super) fn origin(&self) -> Nanoseconds {
        self.origin
    }

    /// Sets the current time, at which the requests counted next were reaped.
    pub(super) fn advance(&mut self, now: Nanoseconds) {
        let since_start = now.since(self.started());
        if let (true, Some(load)) = (self.is_running, &mut self.load) {
            load.advance(since_start);
        }
    }

    /// Returns the start of the worker's timed part.
    pub(super) fn started(&self) -> Nanoseconds {
        nanoseconds(self.started)
    }

    /// Counts a request of the worker's ring that succeeded.
    pub(super) fn count_request(&mut self, done: CompletedRequest) {
        match done.operation {
            Operation::Read => self.read_bytes += done.bytes,
            Operation::Write => self.written_bytes += done.bytes,
            Operation::Fsync
            | Operation::Fdatasync
            | Operation::SyncRange(_)
            | Operation::Discard => {}
        }
        if let Some(load) = &mut self.load {
            load.record_completion(done);
        }
        if matches!(done.operation, Operation::Read | Operation::Write) {
            self.count_call();
        }
    }

    /// Counts a call, and publishes the progress every 64 calls. Another core reads the progress,
    /// so that publishing in every call would cost more than the rest of the counting.
    #[inline]
    fn count_call(&mut self) {
        self.calls += 1;
        if self.calls.is_multiple_of(64) {
            self.show_progress();
        }
    }

    fn show_progress(&self) {
        let moved = self.read_bytes + self.written_bytes;
        self.progress.set_moved_bytes(moved);
    }
}

impl Model {
    pub(crate) fn start_measuring(&mut self, origin: Nanoseconds) -> Result<()> {
        self.check()?;
        self.session.open_account();
        self.measuring.start(origin, self.session.now());
        self.measuring.progress.start_timed_part();
        Ok(())
    }

    pub(crate) async fn end_timed_part(&mut self) -> Result<()> {
        let measure = self.finish_measuring().await?;
        self.measuring.ended_measure = Some(Box::new(measure));
        Ok(())
    }

    pub(crate) async fn finish_measuring(&mut self) -> Result<WorkerMeasure> {
        if let Some(measure) = self.measuring.ended_measure.take() {
            return Ok(*measure);
        }
        self.check()?;
        let account = self.session.account();
        let ended = self.session.now();
        self.count_unfinished(nanoseconds(ended));
        let counts = &mut self.measuring;
        counts.is_running = false;
        let started = counts.started;
        let mut measure = WorkerMeasure {
            started: nanoseconds(started).since(counts.origin),
            elapsed: nanoseconds(ended - started),
            cpu: nanoseconds(account.user + account.system),
            user: nanoseconds(account.user),
            system: nanoseconds(account.system),
            cpu_wait: Some(account.ledger.stage(Stage::CpuWait)),
            read_bytes: counts.read_bytes,
            written_bytes: counts.written_bytes,
            calls: counts.calls,
            storage_read_bytes: Some(account.storage_read_bytes),
            ledger: account.ledger,
            ..WorkerMeasure::default()
        };
        if let Some(latencies) = &counts.latencies {
            measure.read_latency = latencies.read.histogram();
            measure.write_latency = latencies.write.histogram();
        }
        if let Some(load) = &mut counts.load {
            measure.load = Some(load.take_measure(measure.elapsed));
        }
        self.drain_ring().await?;
        let mut wrote = false;
        for drive in 0..self.measuring.written_drives.len() {
            if std::mem::take(&mut self.measuring.written_drives[drive]) {
                self.session.flush(drive as u32).await;
                wrote = true;
            }
        }
        measure.durable = wrote.then(|| nanoseconds(self.session.now() - started));
        Ok(measure)
    }
}
