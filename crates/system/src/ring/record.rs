//! Recorder of a worker's requests, for the host and the model, and the measure that it produces.

use super::{Commit, NameCall, Operation, Spans};
use diskperf_timeline::load::{Engine, LoadMeasure, OperationMeasure, SeriesPoint};
use diskperf_timeline::{Histogram, LatencyRecorder, Nanoseconds, Verified};

/// Recorder of the latencies and counts of a worker's requests.
pub(crate) struct LoadRecorder {
    engine: Engine,
    depth: u32,
    read: OperationRecorder,
    write: OperationRecorder,
    sync: OperationRecorder,
    discard: OperationRecorder,
    commit: OperationRecorder,
    /// Recorders for the calls of a program without a ring, in the order of [`NameCall`].
    calls: Option<Box<[CallRecorder; 5]>>,
    lag: LatencyRecorder,
    slot_waits: u64,
    in_flight_max: u64,
    unfinished: u64,
    errors: u64,
    first_error: u64,
    end_note: Option<String>,
    verified: Option<Verified>,
    series: Series,
}

/// Request that completed successfully.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompletedRequest {
    pub(crate) operation: Operation,
    /// Bytes that the request moved.
    pub(crate) bytes: u64,
    /// Response time, from the start (in open loop the intended start) until the completion was
    /// reaped.
    pub(crate) response: Nanoseconds,
    /// Submission time, from the start to the return of the submitting call.
    pub(crate) submit: Nanoseconds,
    /// Completion time, from the return of the submitting call until the completion was reaped.
    pub(crate) completion: Nanoseconds,
}

impl LoadRecorder {
    /// Returns a recorder with all memory allocated, so that recording allocates nothing, except
    /// when a long time series is shortened. An interval of zero records no time series.
    #[cfg(feature = "host")]
    pub(crate) fn new(engine: Engine, depth: u32, interval: Nanoseconds) -> Self {
        let mut series = Series::new(interval, LatencyRecorder::coarse());
        series.ended_intervals.reserve(INTERVALS_MAX);
        series.buckets.reserve(BUCKETS_MAX);
        Self::with_recorders(engine, depth, series, LatencyRecorder::default)
    }

    /// Returns a recorder that allocates memory only for the latencies that it meets: see
    /// [`LatencyRecorder::growing`].
    pub(crate) fn growing(engine: Engine, depth: u32, interval: Nanoseconds) -> Self {
        let series = Series::new(interval, LatencyRecorder::coarse_growing());
        Self::with_recorders(engine, depth, series, LatencyRecorder::growing)
    }

    /// Returns a recorder for a program without a ring, which counts its calls.
    pub(crate) fn for_calls(interval: Nanoseconds) -> Self {
        let recorder = Self::growing(Engine::Calls, 1, interval);
        Self {
            calls: Some(Box::new(std::array::from_fn(|_| CallRecorder::default()))),
            ..recorder
        }
    }

    /// Reports whether the recorder belongs to a program without a ring.
    #[cfg(feature = "host")]
    pub(crate) fn is_for_calls(&self) -> bool {
        self.calls.is_some()
    }

    fn with_recorders(
        engine: Engine,
        depth: u32,
        series: Series,
        recorder: fn() -> LatencyRecorder,
    ) -> Self {
        let operation = || OperationRecorder {
            bytes: 0,
            response: recorder(),
            submit: recorder(),
            completion: recorder(),
            span: Nanoseconds::ZERO,
        };
        Self {
            engine,
            depth,
            read: operation(),
            write: operation(),
            sync: operation(),
            discard: operation(),
            commit: operation(),
            calls: None,
            lag: recorder(),
            slot_waits: 0,
            in_flight_max: 0,
            unfinished: 0,
            errors: 0,
            first_error: 0,
            end_note: None,
            verified: None,
            series,
        }
    }

    /// Clears all records at the start of the timed part.
    pub(crate) fn restart(&mut self) {
        for operation in self.operations() {
            operation.clear();
        }
        for call in self.calls.iter_mut().flat_map(|calls| calls.iter_mut()) {
            *call = CallRecorder::default();
        }
        self.lag.clear();
        self.slot_waits = 0;
        self.in_flight_max = 0;
        self.unfinished = 0;
        self.errors = 0;
        self.first_error = 0;
        self.end_note = None;
        self.verified = None;
        self.series.restart();
    }

    /// Sets the current time, relative to the start of the timed part. Requests that are recorded
    /// next were reaped at this time.
    #[inline]
    pub(crate) fn advance(&mut self, since_start: Nanoseconds) {
        if since_start >= self.series.current_end {
            self.series.advance(since_start);
        }
    }

    /// Records the delay of a request after its intended start.
    #[inline]
    pub(crate) fn record_lag(&mut self, lag: Nanoseconds) {
        self.lag.record(lag);
    }

    /// Records a request that completed successfully.
    #[inline]
    pub(crate) fn record_completion(&mut self, request: CompletedRequest) {
        let recorder = self.recorder_of(request.operation);
        recorder.bytes += request.bytes;
        recorder.response.record(request.response);
        recorder.submit.record(request.submit);
        recorder.completion.record(request.completion);
        self.series.count(request);
    }

    /// Records a request that had arrived and was incomplete at the end, with the time that it had
    /// waited. Its submission time is left out, since it may not have been issued.
    pub(crate) fn record_unfinished(&mut self, operation: Operation, waited: Nanoseconds) {
        self.recorder_of(operation).response.record(waited);
        self.unfinished += 1;
    }

    /// Records the number of requests that waited for a slot, and the maximum number in flight.
    pub(crate) fn used_slots(&mut self, slot_waits: u64, in_flight_max: u64) {
        self.slot_waits += slot_waits;
        self.in_flight_max = self.in_flight_max.max(in_flight_max);
    }

    /// Records a request that failed with an error that the program ignores.
    pub(crate) fn record_ignored_error(&mut self, errno: i32) {
        if self.errors == 0 {
            self.first_error = errno.unsigned_abs().into();
        }
        self.errors += 1;
    }

    /// Records the durations of writes and reads that were made one kind after the other.
    pub(crate) fn count_spans(&mut self, spans: Spans) {
        self.read.span = spans.read;
        self.write.span = spans.write;
    }

    /// Records blocks that were read back and compared.
    pub(crate) fn count_verified(&mut self, verified: Verified) {
        match &mut self.verified {
            Some(all) => all.merge(&verified),
            None => self.verified = Some(verified),
        }
    }

    /// Records the note on how the program ended.
    pub(crate) fn say_of_end(&mut self, text: String) {
        self.end_note = Some(text);
    }

    /// Switches the time series to commits, in place of single requests.
    pub(crate) fn judge_by_commits(&mut self) {
        self.series.shows_commits = true;
    }

    /// Records a durable transaction of the program, at a time since the start of the timed part.
    pub(crate) fn record_commit(&mut self, commit: Commit, since_start: Nanoseconds) {
        self.commit.bytes += commit.bytes;
        self.commit.response.record(commit.response);
        if let Some(lag) = commit.lag {
            self.lag.record(lag);
        }
        self.advance(since_start);
        self.series.count_commit(commit.response);
    }

    /// Records a transaction that had arrived and had not started at the end, with the time that it
    /// had waited.
    pub(crate) fn record_unfinished_commit(&mut self, waited: Nanoseconds) {
        self.commit.response.record(waited);
        self.unfinished += 1;
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
        calls[call as usize].count(bytes, duration, since_start);
        self.advance(since_start);
        if call != NameCall::Sync {
            self.series.count_name_call(bytes, duration);
        }
    }

    /// Returns the measure of a timed part of this length, and restarts the recorder.
    pub(crate) fn take_measure(&mut self, elapsed: Nanoseconds) -> LoadMeasure {
        let lag = self.lag.histogram();
        let called = |call: NameCall| {
            let calls = self.calls.as_ref();
            calls.map_or_else(OperationMeasure::default, |calls| {
                calls[call as usize].measure()
            })
        };
        let mut sync = self.sync.measure();
        sync.merge(&called(NameCall::Sync));
        let measure = LoadMeasure {
            engine: self.engine,
            depth: self.depth,
            read: self.read.measure(),
            write: self.write.measure(),
            sync,
            discard: self.discard.measure(),
            commit: self.commit.measure(),
            create: called(NameCall::Create),
            stat: called(NameCall::Stat),
            rename: called(NameCall::Rename),
            unlink: called(NameCall::Unlink),
            lag: (lag.count() > 0).then_some(lag),
            held_up: self.slot_waits,
            deepest: self.in_flight_max,
            unfinished: self.unfinished,
            errors: self.errors,
            first_error: self.first_error,
            series: self.series.take_points(elapsed),
            interval: self.series.interval,
            engine_note: None,
            end_note: self.end_note.take(),
            verified: self.verified.take(),
        };
        self.restart();
        measure
    }

    #[inline]
    fn recorder_of(&mut self, operation: Operation) -> &mut OperationRecorder {
        match operation {
            Operation::Read => &mut self.read,
            Operation::Write => &mut self.write,
            Operation::Fsync | Operation::Fdatasync | Operation::SyncRange(_) => &mut self.sync,
            Operation::Discard => &mut self.discard,
        }
    }

    fn operations(&mut self) -> [&mut OperationRecorder; 5] {
        [
            &mut self.read,
            &mut self.write,
            &mut self.sync,
            &mut self.discard,
            &mut self.commit,
        ]
    }
}

struct OperationRecorder {
    bytes: u64,
    response: LatencyRecorder,
    submit: LatencyRecorder,
    completion: LatencyRecorder,
    /// Duration of this operation alone, if the program makes one kind after the other; else 0.
    span: Nanoseconds,
}

impl OperationRecorder {
    fn clear(&mut self) {
        self.bytes = 0;
        self.response.clear();
        self.submit.clear();
        self.completion.clear();
        self.span = Nanoseconds::ZERO;
    }

    fn measure(&self) -> OperationMeasure {
        OperationMeasure {
            bytes: self.bytes,
            response: self.response.histogram(),
            submit: self.submit.histogram(),
            completion: self.completion.histogram(),
            span: self.span,
        }
    }
}

/// Recorder of one kind of call, with the time of the first and the last.
struct CallRecorder {
    bytes: u64,
    response: LatencyRecorder,
    /// Start of the first call and end of the last.
    span: Option<(Nanoseconds, Nanoseconds)>,
}

impl Default for CallRecorder {
    fn default() -> Self {
        Self {
            bytes: 0,
            response: LatencyRecorder::growing(),
            span: None,
        }
    }
}

impl CallRecorder {
    fn count(&mut self, bytes: u64, duration: Nanoseconds, ended: Nanoseconds) {
        self.bytes += bytes;
        self.response.record(duration);
        let began = Nanoseconds(ended.0.saturating_sub(duration.0));
        let first = self.span.map_or(began, |(first, _)| first);
        self.span = Some((first, ended));
    }

    fn measure(&self) -> OperationMeasure {
        let span = self.span.map(|(first, last)| last.since(first));
        OperationMeasure {
            bytes: self.bytes,
            response: self.response.histogram(),
            span: span.unwrap_or_default(),
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
struct Series {
    /// Whether commits count in the series, in place of single requests.
    shows_commits: bool,
    /// Length of an interval that was requested for the time series.
    requested_interval: Nanoseconds,
    interval: Nanoseconds,
    /// End of the current interval, since the start of the timed part.
    current_end: Nanoseconds,
    current_counts: IntervalCounts,
    response: LatencyRecorder,
    /// Counts of the ended intervals of the time series, each with the end index of its part of
    /// `buckets`.
    ended_intervals: Vec<(IntervalCounts, usize)>,
    buckets: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, Default)]
struct IntervalCounts {
    reads: u64,
    read_bytes: u64,
    writes: u64,
    name_calls: u64,
    commits: u64,
    written_bytes: u64,
}

impl std::ops::Add for IntervalCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            read_bytes: self.read_bytes + other.read_bytes,
            writes: self.writes + other.writes,
            name_calls: self.name_calls + other.name_calls,
            commits: self.commits + other.commits,
            written_bytes: self.written_bytes + other.written_bytes,
        }
    }
}

impl Series {
    fn new(interval: Nanoseconds, response: LatencyRecorder) -> Self {
        let mut series = Self {
            shows_commits: false,
            requested_interval: interval,
            interval,
            current_end: interval,
            current_counts: IntervalCounts::default(),
            response,
            ended_intervals: Vec::new(),
            buckets: Vec::new(),
        };
        series.restart();
        series
    }

    fn restart(&mut self) {
        self.current_counts = IntervalCounts::default();
        self.response.clear();
        self.ended_intervals.clear();
        self.buckets.clear();
        self.interval = self.requested_interval;
        self.current_end = match self.interval {
            Nanoseconds::ZERO => Nanoseconds(u64::MAX),
            interval => interval,
        };
    }

    #[inline]
    fn count(&mut self, request: CompletedRequest) {
        match request.operation {
            Operation::Read => {
                self.current_counts.reads += 1;
                self.current_counts.read_bytes += request.bytes;
            }
            Operation::Write => {
                self.current_counts.writes += 1;
                self.current_counts.written_bytes += request.bytes;
            }
            Operation::Fsync
            | Operation::Fdatasync
            | Operation::SyncRange(_)
            | Operation::Discard => return,
        }
        if !self.shows_commits {
            self.response.record(request.response);
        }
    }

    fn count_commit(&mut self, response: Nanoseconds) {
        self.current_counts.commits += 1;
        if self.shows_commits {
            self.response.record(response);
        }
    }

    /// Counts a name operation, which may have written data.
    fn count_name_call(&mut self, bytes: u64, duration: Nanoseconds) {
        self.current_counts.name_calls += 1;
        self.current_counts.written_bytes += bytes;
        self.response.record(duration);
    }

    #[cold]
    fn advance(&mut self, since_start: Nanoseconds) {
        while since_start >= self.current_end && self.interval > Nanoseconds::ZERO {
            self.end_current();
        }
    }

    fn end_current(&mut self) {
        self.response.append_to(&mut self.buckets);
        self.response.clear();
        let counts = std::mem::take(&mut self.current_counts);
        self.ended_intervals.push((counts, self.buckets.len()));
        self.current_end = self.current_end + self.interval;
        let is_full =
            self.ended_intervals.len() >= INTERVALS_MAX || self.buckets.len() >= BUCKETS_MAX;
        if is_full && self.ended_intervals.len().is_multiple_of(2) {
            self.merge_pairs();
        }
    }

    /// Merges each pair of intervals into one of twice the length.
    fn merge_pairs(&mut self) {
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
        self.advance(elapsed);
        let rest = self.interval.since(self.current_end.since(elapsed));
        if rest > Nanoseconds::ZERO {
            self.end_current();
        }
        let mut start = 0;
        let point = |(counts, end): &(IntervalCounts, usize)| {
            let buckets = self.buckets[start..*end].to_vec();
            start = *end;
            SeriesPoint {
                reads: counts.reads,
                read_bytes: counts.read_bytes,
                writes: counts.writes,
                name_calls: counts.name_calls,
                commits: counts.commits,
                written_bytes: counts.written_bytes,
                response: Histogram::from(buckets),
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
            LoadRecorder::growing(Engine::Null, 4, INTERVAL),
        ]
    }

    fn done(operation: Operation, response_ns: u64) -> CompletedRequest {
        CompletedRequest {
            operation,
            bytes: 512,
            response: Nanoseconds(response_ns),
            submit: Nanoseconds(response_ns / 2),
            completion: Nanoseconds(response_ns - response_ns / 2),
        }
    }

    fn commit(response_ns: u64) -> Commit {
        Commit {
            bytes: 4096,
            response: Nanoseconds(response_ns),
            lag: None,
        }
    }

    #[test]
    fn the_course_of_a_program_that_commits_is_that_of_its_commits() {
        for mut recorder in both() {
            recorder.judge_by_commits();
            for at in [100, 1100] {
                recorder.advance(Nanoseconds(at));
                recorder.record_completion(done(Operation::Write, 7));
                recorder.record_commit(commit(90), Nanoseconds(at + 90));
            }
            let late = Commit {
                lag: Some(Nanoseconds(30)),
                ..commit(120)
            };
            recorder.record_commit(late, Nanoseconds(1900));
            recorder.record_unfinished_commit(Nanoseconds(500));
            let load = recorder.take_measure(Nanoseconds(2000));
            let course = load.series.iter();
            let course = course.map(|one| (one.writes, one.commits, one.response.min().0));
            assert_eq!(course.collect::<Vec<_>>(), [(1, 1, 90), (1, 2, 90)]);
            assert_eq!(load.count(), 4);
            assert_eq!((load.commit.response.max().0, load.unfinished), (500, 1));
            assert_eq!(load.lag.map(|lag| lag.max().0), Some(30));
        }
    }

    #[test]
    fn what_completes_in_an_interval_counts_there() {
        for mut recorder in both() {
            // A stall from the second interval into the fourth.
            for (at, response) in [(0, 10), (999, 20), (1000, 30), (3500, 2510)] {
                recorder.advance(Nanoseconds(at));
                recorder.record_completion(done(Operation::Read, response));
                recorder.record_completion(done(Operation::Fsync, 77_777));
            }
            let load = recorder.take_measure(Nanoseconds(4200));
            let reads: Vec<u64> = load.series.iter().map(|point| point.reads).collect();
            assert_eq!(reads, [2, 1, 0, 1, 0]);
            for point in &load.series {
                assert_eq!(point.response.count(), point.reads);
                assert_eq!(point.read_bytes, 512 * point.reads);
            }
            assert_eq!(load.series[0].response.buckets(), [(10, 1), (20, 1)]);
            let longest = load.series[3].response.max();
            assert!((2510..2530).contains(&longest.0), "{longest:?}");
            assert_eq!((load.read.count(), load.read.bytes), (4, 2048));
            assert_eq!(load.sync.count(), 4);
            assert_eq!(load.read.submit.count(), 4);
            assert_eq!(load.interval, INTERVAL);
        }
    }

    #[test]
    fn an_end_at_the_end_of_an_interval_begins_no_other() {
        for mut recorder in both() {
            recorder.advance(Nanoseconds(1999));
            assert_eq!(recorder.take_measure(Nanoseconds(2000)).series.len(), 2);
            assert_eq!(recorder.take_measure(Nanoseconds(2001)).series.len(), 3);
            assert_eq!(recorder.take_measure(Nanoseconds::ZERO).series.len(), 0);
        }
    }

    #[test]
    fn a_restart_forgets_everything() {
        for mut recorder in both() {
            let nothing = recorder.take_measure(Nanoseconds(500));
            recorder.advance(Nanoseconds(7_000));
            recorder.record_completion(done(Operation::Write, 40));
            recorder.record_lag(Nanoseconds(3));
            recorder.record_unfinished(Operation::Write, Nanoseconds(900));
            recorder.record_commit(commit(80), Nanoseconds(6));
            recorder.restart();
            assert_eq!(recorder.take_measure(Nanoseconds(500)), nothing);
            assert_eq!(nothing.lag, None);
        }
    }

    #[test]
    fn what_is_unfinished_is_among_the_responses() {
        for mut recorder in both() {
            recorder.record_lag(Nanoseconds(3));
            recorder.record_unfinished(Operation::Write, Nanoseconds(900));
            recorder.record_commit(commit(80), Nanoseconds(6));
            let load = recorder.take_measure(Nanoseconds(10));
            assert_eq!(load.unfinished, 1);
            assert_eq!(load.write.response.buckets(), [(900, 1)]);
            assert_eq!((load.write.bytes, load.write.submit.count()), (0, 0));
            assert_eq!((load.commit.bytes, load.commit.count()), (4096, 1));
            assert_eq!(load.lag.map(|lag| lag.count()), Some(1));
        }
    }

    /// However long, a course is as large as one of some minutes, and loses nothing.
    #[test]
    fn a_long_course_has_longer_intervals() {
        const LONG: u64 = 10 * INTERVALS_MAX as u64 + 3;
        for mut recorder in both() {
            for number in 0..LONG {
                recorder.advance(Nanoseconds(number * INTERVAL.0));
                recorder.record_completion(done(Operation::Read, 10 + number % 7));
                recorder.record_completion(done(Operation::Write, 100));
            }
            let elapsed = Nanoseconds(LONG * INTERVAL.0);
            let load = recorder.take_measure(elapsed);
            assert_eq!(load.interval, Nanoseconds(16 * INTERVAL.0));
            assert_eq!(load.series.len() as u64, LONG.div_ceil(16));
            let (last, whole) = load.series.split_last().unwrap();
            for point in whole {
                let counts = (point.reads, point.written_bytes, point.response.count());
                assert_eq!(counts, (16, 16 * 512, 32));
            }
            assert_eq!((last.reads, last.read_bytes), (LONG % 16, LONG % 16 * 512));
            // The next one begins anew.
            recorder.record_completion(done(Operation::Read, 5));
            assert_eq!(
                recorder
                    .take_measure(Nanoseconds(3 * INTERVAL.0))
                    .series
                    .len(),
                3
            );
        }
    }

    /// Also of few intervals, in each of which many latencies are told apart.
    #[test]
    fn a_dense_course_has_longer_intervals() {
        let mut recorder = LoadRecorder::growing(Engine::Null, 4, INTERVAL);
        for number in 0..600 {
            recorder.advance(Nanoseconds(number * INTERVAL.0));
            for step in 0..1000 {
                recorder.record_completion(done(Operation::Read, 1000 + 7919 * step));
            }
        }
        let load = recorder.take_measure(Nanoseconds(600 * INTERVAL.0));
        assert!(load.interval > INTERVAL, "{:?}", load.interval);
        let buckets = load.series.iter().map(|one| one.response.buckets().len());
        assert!(buckets.sum::<usize>() <= BUCKETS_MAX + 2 * 1000);
        assert!(load.series.iter().all(|one| one.reads.is_multiple_of(1000)));
        assert_eq!(
            load.series.iter().map(|one| one.reads).sum::<u64>(),
            600_000
        );
    }

    #[test]
    fn calls_of_a_kind_span_from_the_first_to_the_last() {
        let mut recorder = LoadRecorder::for_calls(Nanoseconds(200));
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
                load.create.span,
                load.unlink.span,
                load.sync.span,
                load.stat.span,
            ];
            assert_eq!(spans.map(|span| span.0), [100, 5, 140, 0]);
            assert_eq!((load.create.bytes, load.create.count()), (14, 2));
            assert_eq!(load.sync.response.buckets(), [(40, 1), (45, 1)]);
            // What is done to names is what counts, not what makes it durable.
            assert_eq!(load.count(), 3);
            assert!(load.stat.is_empty());
            let course = load.series.iter();
            let course = course.map(|one| (one.name_calls, one.written_bytes));
            assert_eq!(course.collect::<Vec<_>>(), [(1, 7), (2, 14)]);
        }
    }

    #[test]
    fn no_interval_no_course() {
        let mut recorder = LoadRecorder::new(Engine::Null, 4, Nanoseconds::ZERO);
        recorder.advance(Nanoseconds(u64::MAX));
        recorder.record_completion(done(Operation::Read, 5));
        let load = recorder.take_measure(Nanoseconds(5_000));
        assert_eq!((load.series.len(), load.read.count()), (0, 1));
    }
}
