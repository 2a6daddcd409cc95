//! Measures of a worker on a modelled computer: counts and times of its timed part.

use super::{ModelWorker, to_nanoseconds};
use crate::ring::record::{CompletedRequest, LoadRecorder};
use crate::{IoOperation, Result, WorkerProgress};
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
    call_count: u64,
    read_bytes: u64,
    written_bytes: u64,
    call_latencies: Option<Box<CallLatencies>>,
    /// Measure of the ring's requests, if the worker has a ring.
    pub(super) load_recorder: Option<LoadRecorder>,
    /// Measure of a timed part that ended before the program.
    pub(super) ended_measure: Option<Box<WorkerMeasure>>,
    /// Time from which the worker's start is measured.
    run_origin: Nanoseconds,
    start_time: Time,
}

struct CallLatencies {
    read_latency: LatencyRecorder,
    write_latency: LatencyRecorder,
}

impl Default for CallLatencies {
    fn default() -> Self {
        Self {
            read_latency: LatencyRecorder::new_growing(),
            write_latency: LatencyRecorder::new_growing(),
        }
    }
}

impl TimedPartRecorder {
    pub(super) fn new(drives: usize, time_calls: bool, progress: Arc<WorkerProgress>) -> Self {
        Self {
            progress,
            is_running: false,
            written_drives: vec![false; drives],
            call_count: 0,
            read_bytes: 0,
            written_bytes: 0,
            call_latencies: time_calls.then(Box::default),
            load_recorder: None,
            ended_measure: None,
            run_origin: Nanoseconds::ZERO,
            start_time: Time::ZERO,
        }
    }

    fn start_timed_part(&mut self, origin: Nanoseconds, now: Time) {
        self.is_running = true;
        self.written_drives.fill(false);
        self.call_count = 0;
        self.read_bytes = 0;
        self.written_bytes = 0;
        if let Some(latencies) = &mut self.call_latencies {
            latencies.read_latency.clear();
            latencies.write_latency.clear();
        }
        if let Some(load) = &mut self.load_recorder {
            load.restart_measurement();
        }
        self.run_origin = origin;
        self.start_time = now;
        self.publish_progress();
    }

    #[inline]
    pub(super) fn count_read(&mut self, bytes: usize, duration: Time) {
        self.read_bytes += bytes as u64;
        if let Some(latencies) = &mut self.call_latencies {
            latencies
                .read_latency
                .record_latency(to_nanoseconds(duration));
        }
        self.count_call();
    }

    #[inline]
    pub(super) fn count_write(&mut self, drive: Option<u32>, bytes: usize, duration: Time) {
        self.written_bytes += bytes as u64;
        self.mark_written(drive);
        if let Some(latencies) = &mut self.call_latencies {
            latencies
                .write_latency
                .record_latency(to_nanoseconds(duration));
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
    pub(super) fn run_origin(&self) -> Nanoseconds {
        self.run_origin
    }

    /// Sets the current time, at which the requests counted next were reaped.
    pub(super) fn advance_series(&mut self, now: Nanoseconds) {
        let since_start = now.since(self.start_time());
        if let (true, Some(load)) = (self.is_running, &mut self.load_recorder) {
            load.advance_series(since_start);
        }
    }

    /// Returns the start of the worker's timed part.
    pub(super) fn start_time(&self) -> Nanoseconds {
        to_nanoseconds(self.start_time)
    }

    /// Counts a request of the worker's ring that succeeded.
    pub(super) fn count_request(&mut self, done: CompletedRequest) {
        match done.operation {
            IoOperation::Read => self.read_bytes += done.bytes,
            IoOperation::Write => self.written_bytes += done.bytes,
            IoOperation::Fsync
            | IoOperation::Fdatasync
            | IoOperation::SyncRange(_)
            | IoOperation::DiscardRange => {}
        }
        if let Some(load) = &mut self.load_recorder {
            load.record_completion(done);
        }
        if matches!(done.operation, IoOperation::Read | IoOperation::Write) {
            self.count_call();
        }
    }

    /// Counts a call, and publishes the progress every 64 calls. Another core reads the progress,
    /// so that publishing in every call would cost more than the rest of the counting.
    #[inline]
    fn count_call(&mut self) {
        self.call_count += 1;
        if self.call_count.is_multiple_of(64) {
            self.publish_progress();
        }
    }

    fn publish_progress(&self) {
        let moved = self.read_bytes + self.written_bytes;
        self.progress.set_moved_bytes(moved);
    }
}

impl ModelWorker {
    pub(crate) fn start_measuring(&mut self, origin: Nanoseconds) -> Result<()> {
        self.check_stop_requested()?;
        self.session.open_account();
        self.measurement
            .start_timed_part(origin, self.session.current_time());
        self.measurement.progress.start_timed_part();
        Ok(())
    }

    pub(crate) async fn end_timed_part(&mut self) -> Result<()> {
        let measure = self.finish_measuring().await?;
        self.measurement.ended_measure = Some(Box::new(measure));
        Ok(())
    }

    pub(crate) async fn finish_measuring(&mut self) -> Result<WorkerMeasure> {
        if let Some(measure) = self.measurement.ended_measure.take() {
            return Ok(*measure);
        }
        self.check_stop_requested()?;
        let account = self.session.current_account();
        let ended = self.session.current_time();
        self.count_unfinished(to_nanoseconds(ended));
        let counts = &mut self.measurement;
        counts.is_running = false;
        let started = counts.start_time;
        let mut measure = WorkerMeasure {
            start_time: to_nanoseconds(started).since(counts.run_origin),
            elapsed_time: to_nanoseconds(ended - started),
            cpu_time: to_nanoseconds(account.user_cpu_time + account.system_cpu_time),
            user_cpu_time: to_nanoseconds(account.user_cpu_time),
            system_cpu_time: to_nanoseconds(account.system_cpu_time),
            cpu_wait_time: Some(account.ledger.stage_duration(Stage::CpuWait)),
            read_bytes: counts.read_bytes,
            written_bytes: counts.written_bytes,
            call_count: counts.call_count,
            storage_read_bytes: Some(account.storage_read_bytes),
            ledger: account.ledger,
            ..WorkerMeasure::default()
        };
        if let Some(latencies) = &counts.call_latencies {
            measure.read_latency = latencies.read_latency.to_histogram();
            measure.write_latency = latencies.write_latency.to_histogram();
        }
        if let Some(load) = &mut counts.load_recorder {
            measure.load_measure = Some(load.take_measure(measure.elapsed_time));
        }
        self.drain_ring().await?;
        let mut wrote = false;
        for drive in 0..self.measurement.written_drives.len() {
            if std::mem::take(&mut self.measurement.written_drives[drive]) {
                self.session.flush_volume(drive as u32).await;
                wrote = true;
            }
        }
        measure.durable_time = wrote.then(|| to_nanoseconds(self.session.current_time() - started));
        Ok(measure)
    }
}
