//! Measures of a run that can be causes rather than consequences.

use super::disks::{AccessMeasures, BufferMeasures, CleaningMeasures, DiskMeasures, ServiceOrder};
use super::routines::RoutineDurations;
use super::samples::{DRIVER_STAGES, last_stage_end_ns, median};
use super::searches::SearchMeasures;
use crate::explanation::timed_window;
use diskperf_timeline::trace::{Position, RequestPurpose, TracedRequest};
use diskperf_timeline::{Stage, Trace};
use std::collections::{BTreeMap, BTreeSet};

/// Measures of one run that a diagnosis compares with those of another.
pub(super) struct TraceMeasures {
    /// Time from the first start of a program to the last end, in nanoseconds.
    pub(super) elapsed_ns: f64,
    /// Number of programs that ran concurrently.
    pub(super) program_count: f64,
    /// Number of drives that received requests.
    pub(super) drive_count: f64,
    /// Time that all programs booked to each stage in nanoseconds, by [`Stage::index`].
    program_stage_ns: [f64; Stage::COUNT],
    /// Durations of the processor's routines, with the delays by interrupts.
    pub(super) routine_durations: RoutineDurations,
    /// Idle time of the processor in nanoseconds.
    pub(super) idle_ns: f64,
    /// Durations in nanoseconds that requests spent in each stage, in ascending order.
    pub(super) durations_by_stage: BTreeMap<Stage, Vec<u64>>,
    /// Addresses of all requests, each as drive, first byte and length in bytes.
    pub(super) request_addresses: BTreeSet<(u32, u64, u64)>,
    /// Number of consecutive requests by the distance between their first bytes and the length of
    /// the later one.
    pub(super) request_steps: BTreeMap<(i64, u64), u64>,
    /// Maximum number of requests in flight during the run.
    pub(super) in_flight_max: u64,
    /// Maximum number of requests in flight that had left the driver.
    pub(super) in_flight_past_driver_max: u64,
    /// Maximum number of requests in flight that had left the controller's queue.
    pub(super) in_flight_at_drive_max: u64,
    request_stage_ns: [f64; Stage::COUNT],
    /// Bytes that all requests of the run moved.
    pub(super) transferred_bytes: f64,
    pub(super) request_count_by_purpose: BTreeMap<RequestPurpose, f64>,
    /// Median duration of each stage in the requests that have it, in nanoseconds.
    median_stage_ns: BTreeMap<Stage, f64>,
    pub(super) seek_ns_by_drive_and_distance: BTreeMap<(u32, u32), u64>,
    /// Position on the drive of the first sector of each request.
    pub(super) sector_positions: BTreeMap<(u32, u64), Position>,
    /// Searches for sectors, and the decisions for and against them.
    pub(super) search_measures: SearchMeasures,
    /// Whether any of the drives has firmware, a buffer and a link of its own.
    pub(super) has_firmware: bool,
    /// Measures of the disks that have firmware.
    pub(super) disk_measures: DiskMeasures,
}

impl TraceMeasures {
    pub(super) fn from_trace(trace: &Trace) -> Self {
        let (from, until) = timed_window(trace).unwrap_or_default();
        let requests: Vec<&TracedRequest> = trace
            .requests
            .iter()
            .filter(|one| one.completed_at() > from && one.issued_at < until)
            .collect();
        let mut numbers: Vec<u32> = requests.iter().map(|one| one.drive_index).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let asked = numbers.len();
        let mut measures = Self {
            elapsed_ns: until.since(from).0 as f64,
            program_count: trace.processes.len().max(1) as f64,
            drive_count: asked.max(1) as f64,
            program_stage_ns: [0.0; Stage::COUNT],
            routine_durations: RoutineDurations::from_trace(trace),
            idle_ns: processor_idle_ns(trace),
            durations_by_stage: BTreeMap::new(),
            request_addresses: requests
                .iter()
                .map(|one| {
                    let (first_byte, bytes) = request_byte_extent(trace, one);
                    (one.drive_index, first_byte, bytes)
                })
                .collect(),
            request_steps: BTreeMap::new(),
            in_flight_max: find_in_flight_max(
                requests.iter().map(|one| one.issued_at.0),
                &requests,
            ),
            in_flight_past_driver_max: find_in_flight_max(
                requests
                    .iter()
                    .map(|one| last_stage_end_ns(one, DRIVER_STAGES)),
                &requests,
            ),
            in_flight_at_drive_max: find_in_flight_max(
                requests
                    .iter()
                    .map(|one| last_stage_end_ns(one, QUEUE_STAGES)),
                &requests,
            ),
            request_stage_ns: [0.0; Stage::COUNT],
            transferred_bytes: 0.0,
            request_count_by_purpose: BTreeMap::new(),
            median_stage_ns: BTreeMap::new(),
            seek_ns_by_drive_and_distance: BTreeMap::new(),
            sector_positions: BTreeMap::new(),
            search_measures: SearchMeasures::from_trace(trace, &requests),
            has_firmware: trace.drives.iter().any(|drive| drive.has_bus_link),
            disk_measures: DiskMeasures::default(),
        };
        if measures.has_firmware {
            measures.disk_measures = DiskMeasures {
                accesses: AccessMeasures::from_trace(trace, &requests, (from, until)),
                buffers: BufferMeasures::from_trace(trace, &requests),
                service_order: ServiceOrder::from_trace(trace, &requests),
                cleaning: CleaningMeasures::from_trace(trace, &requests, (from, until)),
            };
            measures.seek_ns_by_drive_and_distance = std::mem::take(
                &mut measures
                    .disk_measures
                    .accesses
                    .seek_ns_by_drive_and_distance,
            );
        }
        for process in &trace.processes {
            for part in process.stage_intervals() {
                measures.program_stage_ns[part.stage.index()] += part.duration().0 as f64;
            }
        }
        for request in &requests {
            for part in request.stage_intervals() {
                let pieces = measures.durations_by_stage.entry(part.stage).or_default();
                pieces.push(part.duration().0);
            }
        }
        for pieces in measures.durations_by_stage.values_mut() {
            pieces.sort_unstable();
        }
        measures.measure_requests(trace, &requests);
        if !measures.has_firmware {
            measures.measure_arm_seeks(trace, &requests);
        }
        measures.measure_file_access(trace, &requests);
        measures
    }

    /// Counts the distances between the first bytes of consecutive requests.
    fn measure_file_access(&mut self, trace: &Trace, requests: &[&TracedRequest]) {
        for drive in 0..trace.drives.len() as u32 {
            let own = requests.iter().filter(|one| one.drive_index == drive);
            let mut order: Vec<&&TracedRequest> = own.collect();
            order.sort_by_key(|one| one.issued_at);
            for pair in order.windows(2) {
                let (before, (first_byte, bytes)) = (
                    request_byte_extent(trace, pair[0]),
                    request_byte_extent(trace, pair[1]),
                );
                let step = first_byte as i64 - before.0 as i64;
                *self.request_steps.entry((step, bytes)).or_default() += 1;
            }
        }
    }

    fn measure_requests(&mut self, trace: &Trace, requests: &[&TracedRequest]) {
        let mut spans: BTreeMap<Stage, Vec<f64>> = BTreeMap::new();
        for request in requests {
            let drive = &trace.drives[request.drive_index as usize];
            self.transferred_bytes +=
                f64::from(request.sector_count) * f64::from(drive.sector_bytes);
            *self
                .request_count_by_purpose
                .entry(request.purpose)
                .or_default() += 1.0;
            let at = (request.drive_index, request.sector);
            self.sector_positions
                .extend(request.media_position.map(|place| (at, place)));
            let mut own = [0_u64; Stage::COUNT];
            for part in request.stage_intervals() {
                own[part.stage.index()] += part.duration().0;
            }
            for (stage, ns) in Stage::ALL.into_iter().zip(own).filter(|(_, ns)| *ns > 0) {
                self.request_stage_ns[stage.index()] += ns as f64;
                spans.entry(stage).or_default().push(ns as f64);
            }
        }
        for (stage, mut all) in spans {
            if let Some(middle) = median(&mut all) {
                self.median_stage_ns.insert(stage, middle);
            }
        }
    }

    /// Measures the seek time over each distance between consecutive requests at one drive.
    fn measure_arm_seeks(&mut self, trace: &Trace, requests: &[&TracedRequest]) {
        for drive in 0..trace.drives.len() as u32 {
            let mut order: Vec<(u64, &TracedRequest)> = requests
                .iter()
                .filter(|one| one.drive_index == drive)
                .filter_map(|one| Some((media_transfer_end_ns(one)?, *one)))
                .collect();
            order.sort_by_key(|(end, _)| *end);
            for pair in order.windows(2) {
                let (before, after) = (pair[0].1, pair[1].1);
                let (Some(from), Some(to)) = (before.disk_position(), after.disk_position()) else {
                    continue;
                };
                let distance = from.cylinder.abs_diff(to.cylinder);
                let seek: u64 = after
                    .stage_intervals()
                    .filter(|interval| interval.stage == Stage::Seek)
                    .map(|interval| interval.duration().0)
                    .sum();
                if distance > 0 && seek > 0 {
                    let known = self
                        .seek_ns_by_drive_and_distance
                        .entry((drive, distance))
                        .or_insert(seek);
                    *known = seek.min(*known);
                }
            }
        }
    }

    pub(super) fn program_stage_ns(&self, stage: Stage) -> f64 {
        self.program_stage_ns[stage.index()]
    }

    pub(super) fn request_stage_ns(&self, stage: Stage) -> f64 {
        self.request_stage_ns[stage.index()]
    }

    /// Returns the median duration of a stage in the requests that have it, in nanoseconds.
    pub(super) fn median_stage_ns(&self, stage: Stage) -> Option<f64> {
        self.median_stage_ns.get(&stage).copied()
    }

    pub(super) fn request_count(&self) -> f64 {
        self.request_count_by_purpose.values().sum()
    }
}

/// Returns the idle time of the processor during the timed part of a trace, in nanoseconds.
/// Readings from before, as during a ramp, are left out.
fn processor_idle_ns(trace: &Trace) -> f64 {
    let opened = trace
        .processes
        .iter()
        .map(|process| process.account_start)
        .min();
    let first = trace
        .busy_samples
        .iter()
        .find(|busy| Some(busy.sample_time) >= opened);
    let (Some(first), Some(last)) = (first, trace.busy_samples.last()) else {
        return 0.0;
    };
    let busy = last.processor_busy.since(first.processor_busy).0 as f64;
    last.sample_time.since(first.sample_time).0 as f64 - busy
}

/// Stages of a request before the controller starts to serve it.
const QUEUE_STAGES: &[Stage] = &[Stage::Driver, Stage::DriverQueue, Stage::ControllerQueue];

/// Returns a request's first byte on its drive and its length in bytes.
fn request_byte_extent(trace: &Trace, request: &TracedRequest) -> (u64, u64) {
    let sector_bytes = u64::from(trace.drives[request.drive_index as usize].sector_bytes);
    (
        request.sector * sector_bytes,
        u64::from(request.sector_count) * sector_bytes,
    )
}

/// Returns the maximum number of requests in flight, each counted from its given start time to its
/// completion.
fn find_in_flight_max(from: impl Iterator<Item = u64>, requests: &[&TracedRequest]) -> u64 {
    let ends = requests.iter().map(|one| (one.completed_at().0, -1));
    let mut moments: Vec<(u64, i64)> = from.map(|at| (at, 1)).chain(ends).collect();
    moments.sort_unstable();
    let at_once = moments.iter().scan(0, |count, (_, change)| {
        *count += change;
        Some(*count)
    });
    at_once.max().unwrap_or(0) as u64
}

fn media_transfer_end_ns(request: &TracedRequest) -> Option<u64> {
    let media = request
        .stage_intervals()
        .filter(|interval| interval.stage == Stage::MediaTransfer);
    media.map(|interval| interval.end.0).last()
}
