//! Recorder of a worker's requests, for the host and the model, and the measure that it produces.

use super::{CommittedTransaction, IoOperation, NameCall, ReadWriteSpans};
use diskperf_timeline::load::{Engine, LoadMeasure, OperationMeasure, SeriesPoint};
use diskperf_timeline::{CapProbe, Histogram, LatencyRecorder, Nanoseconds, VerifiedBlocks};

/// Recorder of the latencies and counts of a worker's requests.
pub(crate) struct LoadRecorder {
    engine: Engine,
    queue_depth: u32,
    read_recorder: OperationRecorder,
    write_recorder: OperationRecorder,
    sync_recorder: OperationRecorder,
    discard_recorder: OperationRecorder,
    commit_recorder: OperationRecorder,
    /// Recorders for the calls of a program without a ring, in the order of [`NameCall`].
    calls: Option<Box<[NameCallRecorder; 5]>>,
    arrival_lag: LatencyRecorder,
    slot_wait_count: u64,
    in_flight_max: u64,
    unfinished_count: u64,
    ignored_error_count: u64,
    first_ignored_errno: u64,
    end_note: Option<String>,
    verified: Option<VerifiedBlocks>,
    cap_probe: Option<Box<CapProbe>>,
    time_series: TimeSeries,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct CompletedRequest {
    pub(crate) operation: IoOperation,
    /// Bytes that the request moved.
    pub(crate) bytes: u64,
    /// Response time, from the start (in open loop the intended start) until the completion was
    /// reaped.
    pub(crate) response_time: Nanoseconds,
    /// Submission time, from the start to the return of the submitting call.
    pub(crate) submit_call_time: Nanoseconds,
    /// Completion time, from the return of the submitting call until the completion was reaped.
    pub(crate) completion_time: Nanoseconds,
}

impl LoadRecorder {
    /// Returns a recorder with all memory allocated, so that recording allocates nothing, except
    /// when a long time series is shortened. An interval of zero records no time series.
    #[cfg(feature = "host")]
    pub(crate) fn new(engine: Engine, depth: u32, interval: Nanoseconds) -> Self {
        let mut series = TimeSeries::new(interval, LatencyRecorder::new_coarse());
        series.ended_intervals.reserve(INTERVALS_MAX);
        series.buckets.reserve(BUCKETS_MAX);
        Self::with_recorders(engine, depth, series, LatencyRecorder::default)
    }

    /// Returns a recorder that allocates memory only for the latencies that it meets: see
    /// [`LatencyRecorder::new_growing`].
    pub(crate) fn new_growing(engine: Engine, depth: u32, interval: Nanoseconds) -> Self {
        let series = TimeSeries::new(interval, LatencyRecorder::new_coarse_growing());
        Self::with_recorders(engine, depth, series, LatencyRecorder::new_growing)
    }

    /// Returns a recorder for a program without a ring, which counts its calls.
    pub(crate) fn new_for_name_calls(interval: Nanoseconds) -> Self {
        let recorder = Self::new_growing(Engine::Calls, 1, interval);
        Self {
            calls: Some(Box::new(std::array::from_fn(|_| {
                NameCallRecorder::default()
            }))),
            ..recorder
        }
    }

    /// Reports whether the recorder belongs to a program without a ring.
    #[cfg(feature = "host")]
    pub(crate) fn is_for_name_calls(&self) -> bool {
        self.calls.is_some()
    }

    fn with_recorders(
        engine: Engine,
        depth: u32,
        series: TimeSeries,
        recorder: fn() -> LatencyRecorder,
    ) -> Self {
        let operation = || OperationRecorder {
            bytes: 0,
            response_latency: recorder(),
            submit_latency: recorder(),
            completion_latency: recorder(),
            elapsed_span: Nanoseconds::ZERO,
        };
        Self {
            engine,
            queue_depth: depth,
            read_recorder: operation(),
            write_recorder: operation(),
            sync_recorder: operation(),
            discard_recorder: operation(),
            commit_recorder: operation(),
            calls: None,
            arrival_lag: recorder(),
            slot_wait_count: 0,
            in_flight_max: 0,
            unfinished_count: 0,
            ignored_error_count: 0,
            first_ignored_errno: 0,
            end_note: None,
            verified: None,
            cap_probe: None,
            time_series: series,
        }
    }

    /// Clears all records at the start of the timed part.
    pub(crate) fn restart_measurement(&mut self) {
        for operation in self.operation_recorders() {
            operation.clear();
        }
        for call in self.calls.iter_mut().flat_map(|calls| calls.iter_mut()) {
            *call = NameCallRecorder::default();
        }
        self.arrival_lag.clear();
        self.slot_wait_count = 0;
        self.in_flight_max = 0;
        self.unfinished_count = 0;
        self.ignored_error_count = 0;
        self.first_ignored_errno = 0;
        self.end_note = None;
        self.verified = None;
        self.cap_probe = None;
        self.time_series.restart_series();
    }

    /// Sets the current time, relative to the start of the timed part. Requests that are recorded
    /// next were reaped at this time.
    #[inline]
    pub(crate) fn advance_series(&mut self, since_start: Nanoseconds) {
        if since_start >= self.time_series.current_end {
            self.time_series.advance_to(since_start);
        }
    }

    /// Records the delay of a request after its intended start.
    #[inline]
    pub(crate) fn record_lag(&mut self, lag: Nanoseconds) {
        self.arrival_lag.record_latency(lag);
    }

    #[inline]
    pub(crate) fn record_completion(&mut self, request: CompletedRequest) {
        let recorder = self.recorder_for_operation(request.operation);
        recorder.bytes += request.bytes;
        recorder
            .response_latency
            .record_latency(request.response_time);
        recorder
            .submit_latency
            .record_latency(request.submit_call_time);
        recorder
            .completion_latency
            .record_latency(request.completion_time);
        self.time_series.count_request(request);
    }

    /// Records a request that had arrived and was incomplete at the end, with the time that it had
    /// waited. Its submission time is left out, since it may not have been issued.
    pub(crate) fn record_unfinished(&mut self, operation: IoOperation, waited: Nanoseconds) {
        self.recorder_for_operation(operation)
            .response_latency
            .record_latency(waited);
        self.unfinished_count += 1;
    }

    /// Records the number of requests that waited for a slot, and the maximum number in flight.
    pub(crate) fn record_slot_use(&mut self, slot_waits: u64, in_flight_max: u64) {
        self.slot_wait_count += slot_waits;
        self.in_flight_max = self.in_flight_max.max(in_flight_max);
    }

    /// Records a request that failed with an error that the program ignores.
    pub(crate) fn record_ignored_error(&mut self, errno: i32) {
        if self.ignored_error_count == 0 {
            self.first_ignored_errno = errno.unsigned_abs().into();
        }
        self.ignored_error_count += 1;
    }

    /// Records the durations of writes and reads that were made one kind after the other.
    pub(crate) fn record_read_write_spans(&mut self, spans: ReadWriteSpans) {
        self.read_recorder.elapsed_span = spans.read_span;
        self.write_recorder.elapsed_span = spans.write_span;
    }

    /// Records blocks that were read back and compared.
    pub(crate) fn count_verified(&mut self, verified: VerifiedBlocks) {
        match &mut self.verified {
            Some(all) => all.merge(&verified),
            None => self.verified = Some(verified),
        }
    }

    /// Records the note on how the program ended.
    pub(crate) fn set_end_note(&mut self, text: String) {
        self.end_note = Some(text);
    }

    /// Records the windows of a probe for a cap.
    pub(crate) fn record_cap_probe(&mut self, probe: CapProbe) {
        self.cap_probe = Some(Box::new(probe));
    }

    /// Switches the time series to commits, in place of single requests.
    pub(crate) fn report_commits_in_series(&mut self) {
        self.time_series.shows_commits = true;
    }

    /// Records a durable transaction of the program, at a time since the start of the timed part.
    pub(crate) fn record_commit(&mut self, commit: CommittedTransaction, since_start: Nanoseconds) {
        self.commit_recorder.bytes += commit.bytes;
        self.commit_recorder
            .response_latency
            .record_latency(commit.response_time);
        if let Some(lag) = commit.arrival_lag {
            self.arrival_lag.record_latency(lag);
        }
        self.advance_series(since_start);
        self.time_series.count_commit(commit.response_time);
    }

    /// Records a transaction that had arrived and had not started at the end, with the time that it
    /// had waited.
    pub(crate) fn record_unfinished_commit(&mut self, waited: Nanoseconds) {
        self.commit_recorder.response_latency.record_latency(waited);
        self.unfinished_count += 1;
    }

    /// Records a call of the program with its duration, by its end since the start of the timed
    /// part.
    pub(crate) fn record_call(
        &mut self,
        call: NameCall,
        bytes: u64,
        duration: Nanoseconds,
        since_start: Nanoseconds,
    ) {
        let Some(calls) = &mut self.calls else {
            return;
        };
        calls[call as usize].count_call(bytes, duration, since_start);
        self.advance_series(since_start);
        if call != NameCall::Sync {
            self.time_series.count_name_call(bytes, duration);
        }
    }

    /// Returns the measure of a timed part of this length, and restarts the recorder.
    pub(crate) fn take_measure(&mut self, elapsed: Nanoseconds) -> LoadMeasure {
        let lag = self.arrival_lag.to_histogram();
        let called = |call: NameCall| {
            let calls = self.calls.as_ref();
            calls.map_or_else(OperationMeasure::default, |calls| {
                calls[call as usize].to_measure()
            })
        };
        let mut sync = self.sync_recorder.to_measure();
        sync.merge(&called(NameCall::Sync));
        let measure = LoadMeasure {
            engine: self.engine,
            queue_depth: self.queue_depth,
            read: self.read_recorder.to_measure(),
            write: self.write_recorder.to_measure(),
            sync,
            discard: self.discard_recorder.to_measure(),
            commit: self.commit_recorder.to_measure(),
            create: called(NameCall::Create),
            stat: called(NameCall::Stat),
            rename: called(NameCall::Rename),
            unlink: called(NameCall::Unlink),
            arrival_lag: (lag.latency_count() > 0).then_some(lag),
            slot_wait_count: self.slot_wait_count,
            in_flight_max: self.in_flight_max,
            unfinished_count: self.unfinished_count,
            ignored_error_count: self.ignored_error_count,
            first_ignored_errno: self.first_ignored_errno,
            time_series: self.time_series.take_points(elapsed),
            series_interval: self.time_series.interval,
            engine_note: None,
            end_note: self.end_note.take(),
            verified_blocks: self.verified.take(),
            cap_probe: self.cap_probe.take(),
        };
        self.restart_measurement();
        measure
    }

    #[inline]
    fn recorder_for_operation(&mut self, operation: IoOperation) -> &mut OperationRecorder {
        match operation {
            IoOperation::Read => &mut self.read_recorder,
            IoOperation::Write => &mut self.write_recorder,
            IoOperation::Fsync | IoOperation::Fdatasync | IoOperation::SyncRange(_) => {
                &mut self.sync_recorder
            }
            IoOperation::DiscardRange => &mut self.discard_recorder,
        }
    }

    fn operation_recorders(&mut self) -> [&mut OperationRecorder; 5] {
        [
            &mut self.read_recorder,
            &mut self.write_recorder,
            &mut self.sync_recorder,
            &mut self.discard_recorder,
            &mut self.commit_recorder,
        ]
    }
}

struct OperationRecorder {
    bytes: u64,
    response_latency: LatencyRecorder,
    submit_latency: LatencyRecorder,
    completion_latency: LatencyRecorder,
    /// Duration of this operation alone, if the program makes one kind after the other; else 0.
    elapsed_span: Nanoseconds,
}

impl OperationRecorder {
    fn clear(&mut self) {
        self.bytes = 0;
        self.response_latency.clear();
        self.submit_latency.clear();
        self.completion_latency.clear();
        self.elapsed_span = Nanoseconds::ZERO;
    }

    fn to_measure(&self) -> OperationMeasure {
        OperationMeasure {
            bytes: self.bytes,
            response_times: self.response_latency.to_histogram(),
            submit_call_times: self.submit_latency.to_histogram(),
            completion_times: self.completion_latency.to_histogram(),
            elapsed_span: self.elapsed_span,
        }
    }
}

/// Recorder of one kind of call, with the time of the first and the last.
struct NameCallRecorder {
    bytes: u64,
    response_latency: LatencyRecorder,
    /// Start of the first call and end of the last.
    first_start_and_last_end: Option<(Nanoseconds, Nanoseconds)>,
}

impl Default for NameCallRecorder {
    fn default() -> Self {
        Self {
            bytes: 0,
            response_latency: LatencyRecorder::new_growing(),
            first_start_and_last_end: None,
        }
    }
}

impl NameCallRecorder {
    fn count_call(&mut self, bytes: u64, duration: Nanoseconds, ended: Nanoseconds) {
        self.bytes += bytes;
        self.response_latency.record_latency(duration);
        let began = Nanoseconds(ended.0.saturating_sub(duration.0));
        let first = self
            .first_start_and_last_end
            .map_or(began, |(first, _)| first);
        self.first_start_and_last_end = Some((first, ended));
    }

    fn to_measure(&self) -> OperationMeasure {
        let span = self
            .first_start_and_last_end
            .map(|(first, last)| last.since(first));
        OperationMeasure {
            bytes: self.bytes,
            response_times: self.response_latency.to_histogram(),
            elapsed_span: span.unwrap_or_default(),
            ..OperationMeasure::default()
        }
    }
}

/// Maximum number of intervals in a time series. Together with the limit of latency buckets it
/// suffices for some minutes at one-second intervals on the busiest drive, and takes some hundred
/// kilobytes in a store. Pages that are not written cost nothing.
const INTERVALS_MAX: usize = 1024;
const BUCKETS_MAX: usize = 1 << 17;

/// Time series: the current interval and the ended ones. When it is full, each pair of intervals is
/// merged into one of twice the length.
struct TimeSeries {
    /// Whether commits count in the series, in place of single requests.
    shows_commits: bool,
    requested_interval: Nanoseconds,
    interval: Nanoseconds,
    /// End of the current interval, since the start of the timed part.
    current_end: Nanoseconds,
    current_counts: IntervalCounts,
    interval_response: LatencyRecorder,
    /// Counts of the ended intervals of the time series, each with the end index of its part of
    /// `buckets`.
    ended_intervals: Vec<(IntervalCounts, usize)>,
    buckets: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, Default)]
struct IntervalCounts {
    read_count: u64,
    read_bytes: u64,
    write_count: u64,
    name_call_count: u64,
    commit_count: u64,
    written_bytes: u64,
}

impl std::ops::Add for IntervalCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            read_count: self.read_count + other.read_count,
            read_bytes: self.read_bytes + other.read_bytes,
            write_count: self.write_count + other.write_count,
            name_call_count: self.name_call_count + other.name_call_count,
            commit_count: self.commit_count + other.commit_count,
            written_bytes: self.written_bytes + other.written_bytes,
        }
    }
}

impl TimeSeries {
    fn new(interval: Nanoseconds, response: LatencyRecorder) -> Self {
        let mut series = Self {
            shows_commits: false,
            requested_interval: interval,
            interval,
            current_end: interval,
            current_counts: IntervalCounts::default(),
            interval_response: response,
            ended_intervals: Vec::new(),
            buckets: Vec::new(),
        };
        series.restart_series();
        series
    }

    fn restart_series(&mut self) {
        self.current_counts = IntervalCounts::default();
        self.interval_response.clear();
        self.ended_intervals.clear();
        self.buckets.clear();
        self.interval = self.requested_interval;
        self.current_end = match self.interval {
            Nanoseconds::ZERO => Nanoseconds(u64::MAX),
            interval => interval,
        };
    }

    #[inline]
    fn count_request(&mut self, request: CompletedRequest) {
        match request.operation {
            IoOperation::Read => {
                self.current_counts.read_count += 1;
                self.current_counts.read_bytes += request.bytes;
            }
            IoOperation::Write => {
                self.current_counts.write_count += 1;
                self.current_counts.written_bytes += request.bytes;
            }
            IoOperation::Fsync
            | IoOperation::Fdatasync
            | IoOperation::SyncRange(_)
            | IoOperation::DiscardRange => return,
        }
        if !self.shows_commits {
            self.interval_response.record_latency(request.response_time);
        }
    }

    fn count_commit(&mut self, response: Nanoseconds) {
        self.current_counts.commit_count += 1;
        if self.shows_commits {
            self.interval_response.record_latency(response);
        }
    }

    /// Counts a name operation, which may have written data.
    fn count_name_call(&mut self, bytes: u64, duration: Nanoseconds) {
        self.current_counts.name_call_count += 1;
        self.current_counts.written_bytes += bytes;
        self.interval_response.record_latency(duration);
    }

    #[cold]
    fn advance_to(&mut self, since_start: Nanoseconds) {
        while since_start >= self.current_end && self.interval > Nanoseconds::ZERO {
            self.end_current();
        }
    }

    fn end_current(&mut self) {
        self.interval_response.append_to(&mut self.buckets);
        self.interval_response.clear();
        let counts = std::mem::take(&mut self.current_counts);
        self.ended_intervals.push((counts, self.buckets.len()));
        self.current_end = self.current_end + self.interval;
        let is_full =
            self.ended_intervals.len() >= INTERVALS_MAX || self.buckets.len() >= BUCKETS_MAX;
        if is_full && self.ended_intervals.len().is_multiple_of(2) {
            self.merge_interval_pairs();
        }
    }

    /// Merges each pair of intervals into one of twice the length.
    fn merge_interval_pairs(&mut self) {
        let mut buckets = Vec::with_capacity(BUCKETS_MAX);
        let mut start = 0;
        for pair in 0..self.ended_intervals.len() / 2 {
            let ((first, _), (second, end)) = (
                self.ended_intervals[2 * pair],
                self.ended_intervals[2 * pair + 1],
            );
            let both = Histogram::from(self.buckets[start..end].to_vec());
            buckets.extend_from_slice(both.buckets());
            start = end;
            self.ended_intervals[pair] = (first + second, buckets.len());
        }
        self.ended_intervals
            .truncate(self.ended_intervals.len() / 2);
        self.buckets = buckets;
        // The interval that is on has just begun.
        self.current_end = self.current_end + self.interval;
        self.interval = self.interval + self.interval;
    }

    fn take_points(&mut self, elapsed: Nanoseconds) -> Vec<SeriesPoint> {
        if self.interval == Nanoseconds::ZERO {
            return Vec::new();
        }
        self.advance_to(elapsed);
        let rest = self.interval.since(self.current_end.since(elapsed));
        if rest > Nanoseconds::ZERO {
            self.end_current();
        }
        let mut start = 0;
        let point = |(counts, end): &(IntervalCounts, usize)| {
            let buckets = self.buckets[start..*end].to_vec();
            start = *end;
            SeriesPoint {
                read_count: counts.read_count,
                read_bytes: counts.read_bytes,
                write_count: counts.write_count,
                name_call_count: counts.name_call_count,
                commit_count: counts.commit_count,
                written_bytes: counts.written_bytes,
                response_times: Histogram::from(buckets),
            }
        };
        self.ended_intervals.iter().map(point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Nanoseconds = Nanoseconds(1000);

    fn both() -> [LoadRecorder; 2] {
        [
            LoadRecorder::new(Engine::Null, 4, INTERVAL),
            LoadRecorder::new_growing(Engine::Null, 4, INTERVAL),
        ]
    }

    fn done(operation: IoOperation, response_ns: u64) -> CompletedRequest {
        CompletedRequest {
            operation,
            bytes: 512,
            response_time: Nanoseconds(response_ns),
            submit_call_time: Nanoseconds(response_ns / 2),
            completion_time: Nanoseconds(response_ns - response_ns / 2),
        }
    }

    fn commit(response_ns: u64) -> CommittedTransaction {
        CommittedTransaction {
            bytes: 4096,
            response_time: Nanoseconds(response_ns),
            arrival_lag: None,
        }
    }

    #[test]
    fn the_course_of_a_program_that_commits_is_that_of_its_commits() {
        for mut recorder in both() {
            recorder.report_commits_in_series();
            for at in [100, 1100] {
                recorder.advance_series(Nanoseconds(at));
                recorder.record_completion(done(IoOperation::Write, 7));
                recorder.record_commit(commit(90), Nanoseconds(at + 90));
            }
            let late = CommittedTransaction {
                arrival_lag: Some(Nanoseconds(30)),
                ..commit(120)
            };
            recorder.record_commit(late, Nanoseconds(1900));
            recorder.record_unfinished_commit(Nanoseconds(500));
            let load = recorder.take_measure(Nanoseconds(2000));
            let course = load.time_series.iter();
            let course = course.map(|one| {
                (
                    one.write_count,
                    one.commit_count,
                    one.response_times.latency_min().0,
                )
            });
            assert_eq!(course.collect::<Vec<_>>(), [(1, 1, 90), (1, 2, 90)]);
            assert_eq!(load.awaited_request_count(), 4);
            assert_eq!(
                (
                    load.commit.response_times.latency_max().0,
                    load.unfinished_count
                ),
                (500, 1)
            );
            assert_eq!(load.arrival_lag.map(|lag| lag.latency_max().0), Some(30));
        }
    }

    #[test]
    fn what_completes_in_an_interval_counts_there() {
        for mut recorder in both() {
            // A stall from the second interval into the fourth.
            for (at, response) in [(0, 10), (999, 20), (1000, 30), (3500, 2510)] {
                recorder.advance_series(Nanoseconds(at));
                recorder.record_completion(done(IoOperation::Read, response));
                recorder.record_completion(done(IoOperation::Fsync, 77_777));
            }
            let load = recorder.take_measure(Nanoseconds(4200));
            let reads: Vec<u64> = load
                .time_series
                .iter()
                .map(|point| point.read_count)
                .collect();
            assert_eq!(reads, [2, 1, 0, 1, 0]);
            for point in &load.time_series {
                assert_eq!(point.response_times.latency_count(), point.read_count);
                assert_eq!(point.read_bytes, 512 * point.read_count);
            }
            assert_eq!(
                load.time_series[0].response_times.buckets(),
                [(10, 1), (20, 1)]
            );
            let longest = load.time_series[3].response_times.latency_max();
            assert!((2510..2530).contains(&longest.0), "{longest:?}");
            assert_eq!((load.read.request_count(), load.read.bytes), (4, 2048));
            assert_eq!(load.sync.request_count(), 4);
            assert_eq!(load.read.submit_call_times.latency_count(), 4);
            assert_eq!(load.series_interval, INTERVAL);
        }
    }

    #[test]
    fn an_end_at_the_end_of_an_interval_begins_no_other() {
        for mut recorder in both() {
            recorder.advance_series(Nanoseconds(1999));
            assert_eq!(
                recorder.take_measure(Nanoseconds(2000)).time_series.len(),
                2
            );
            assert_eq!(
                recorder.take_measure(Nanoseconds(2001)).time_series.len(),
                3
            );
            assert_eq!(
                recorder.take_measure(Nanoseconds::ZERO).time_series.len(),
                0
            );
        }
    }

    #[test]
    fn a_restart_forgets_everything() {
        for mut recorder in both() {
            let nothing = recorder.take_measure(Nanoseconds(500));
            recorder.advance_series(Nanoseconds(7_000));
            recorder.record_completion(done(IoOperation::Write, 40));
            recorder.record_lag(Nanoseconds(3));
            recorder.record_unfinished(IoOperation::Write, Nanoseconds(900));
            recorder.record_commit(commit(80), Nanoseconds(6));
            recorder.restart_measurement();
            assert_eq!(recorder.take_measure(Nanoseconds(500)), nothing);
            assert_eq!(nothing.arrival_lag, None);
        }
    }

    #[test]
    fn what_is_unfinished_is_among_the_responses() {
        for mut recorder in both() {
            recorder.record_lag(Nanoseconds(3));
            recorder.record_unfinished(IoOperation::Write, Nanoseconds(900));
            recorder.record_commit(commit(80), Nanoseconds(6));
            let load = recorder.take_measure(Nanoseconds(10));
            assert_eq!(load.unfinished_count, 1);
            assert_eq!(load.write.response_times.buckets(), [(900, 1)]);
            assert_eq!(
                (
                    load.write.bytes,
                    load.write.submit_call_times.latency_count()
                ),
                (0, 0)
            );
            assert_eq!((load.commit.bytes, load.commit.request_count()), (4096, 1));
            assert_eq!(load.arrival_lag.map(|lag| lag.latency_count()), Some(1));
        }
    }

    /// However long, a course is as large as one of some minutes, and loses nothing.
    #[test]
    fn a_long_course_has_longer_intervals() {
        const LONG: u64 = 10 * INTERVALS_MAX as u64 + 3;
        for mut recorder in both() {
            for number in 0..LONG {
                recorder.advance_series(Nanoseconds(number * INTERVAL.0));
                recorder.record_completion(done(IoOperation::Read, 10 + number % 7));
                recorder.record_completion(done(IoOperation::Write, 100));
            }
            let elapsed = Nanoseconds(LONG * INTERVAL.0);
            let load = recorder.take_measure(elapsed);
            assert_eq!(load.series_interval, Nanoseconds(16 * INTERVAL.0));
            assert_eq!(load.time_series.len() as u64, LONG.div_ceil(16));
            let (last, whole) = load.time_series.split_last().unwrap();
            for point in whole {
                let counts = (
                    point.read_count,
                    point.written_bytes,
                    point.response_times.latency_count(),
                );
                assert_eq!(counts, (16, 16 * 512, 32));
            }
            assert_eq!(
                (last.read_count, last.read_bytes),
                (LONG % 16, LONG % 16 * 512)
            );
            // The next one begins anew.
            recorder.record_completion(done(IoOperation::Read, 5));
            assert_eq!(
                recorder
                    .take_measure(Nanoseconds(3 * INTERVAL.0))
                    .time_series
                    .len(),
                3
            );
        }
    }

    /// Also of few intervals, in each of which many latencies are told apart.
    #[test]
    fn a_dense_course_has_longer_intervals() {
        let mut recorder = LoadRecorder::new_growing(Engine::Null, 4, INTERVAL);
        for number in 0..600 {
            recorder.advance_series(Nanoseconds(number * INTERVAL.0));
            for step in 0..1000 {
                recorder.record_completion(done(IoOperation::Read, 1000 + 7919 * step));
            }
        }
        let load = recorder.take_measure(Nanoseconds(600 * INTERVAL.0));
        assert!(
            load.series_interval > INTERVAL,
            "{:?}",
            load.series_interval
        );
        let buckets = load
            .time_series
            .iter()
            .map(|one| one.response_times.buckets().len());
        assert!(buckets.sum::<usize>() <= BUCKETS_MAX + 2 * 1000);
        assert!(
            load.time_series
                .iter()
                .all(|one| one.read_count.is_multiple_of(1000))
        );
        assert_eq!(
            load.time_series
                .iter()
                .map(|one| one.read_count)
                .sum::<u64>(),
            600_000
        );
    }

    #[test]
    fn calls_of_a_kind_span_from_the_first_to_the_last() {
        let mut recorder = LoadRecorder::new_for_name_calls(Nanoseconds(200));
        for _ in 0..2 {
            for (call, duration, now) in [
                (NameCall::Create, 10, 110),
                (NameCall::Sync, 40, 150),
                (NameCall::Create, 30, 200),
                (NameCall::Unlink, 5, 205),
                (NameCall::Sync, 45, 250),
            ] {
                recorder.record_call(call, 7, Nanoseconds(duration), Nanoseconds(now));
            }
            let load = recorder.take_measure(Nanoseconds(250));
            let spans = [
                load.create.elapsed_span,
                load.unlink.elapsed_span,
                load.sync.elapsed_span,
                load.stat.elapsed_span,
            ];
            assert_eq!(spans.map(|span| span.0), [100, 5, 140, 0]);
            assert_eq!((load.create.bytes, load.create.request_count()), (14, 2));
            assert_eq!(load.sync.response_times.buckets(), [(40, 1), (45, 1)]);
            // What is done to names is what counts, not what makes it durable.
            assert_eq!(load.awaited_request_count(), 3);
            assert!(load.stat.is_empty());
            let course = load.time_series.iter();
            let course = course.map(|one| (one.name_call_count, one.written_bytes));
            assert_eq!(course.collect::<Vec<_>>(), [(1, 7), (2, 14)]);
        }
    }

    #[test]
    fn no_interval_no_course() {
        let mut recorder = LoadRecorder::new(Engine::Null, 4, Nanoseconds::ZERO);
        recorder.advance_series(Nanoseconds(u64::MAX));
        recorder.record_completion(done(IoOperation::Read, 5));
        let load = recorder.take_measure(Nanoseconds(5_000));
        assert_eq!((load.time_series.len(), load.read.request_count()), (0, 1));
    }
}
