//! Measures of the buffers of disks: the requests that they serve and the bytes that they hold.

use super::accesses::moves_arm;
use diskperf_timeline::trace::{ArmWork, RequestPurpose, TracedRequest};
use diskperf_timeline::{Stage, Trace};
use std::collections::BTreeMap;

/// Share of requests with some property, as two counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct RequestShare {
    matching_count: u64,
    total_count: u64,
}

impl RequestShare {
    fn count_request(&mut self, matching: bool) {
        self.total_count += 1;
        self.matching_count += u64::from(matching);
    }

    pub(in super::super) fn share(self) -> f64 {
        self.matching_count as f64 / self.total_count.max(1) as f64
    }

    /// Returns the difference of two shares of requests, unless chance explains it or a sample is
    /// too small.
    pub(super) fn difference_if_significant(self, other: Self, deviations: f64) -> Option<f64> {
        if self.total_count.min(other.total_count) < super::SAMPLE_COUNT_MIN as u64 {
            return None;
        }
        let share = (self.matching_count + other.matching_count) as f64
            / (self.total_count + other.total_count) as f64;
        let of_counts = 1.0 / self.total_count as f64 + 1.0 / other.total_count as f64;
        let deviation = (share * (1.0 - share) * of_counts).sqrt();
        let more = (self.share() - other.share()).abs();
        (more > deviations * deviation && more > 0.0).then_some(more)
    }
}

/// Kind of a command, as far as the firmware distinguishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CommandClass {
    pub(super) is_write: bool,
    pub(super) needs_arm: bool,
}

#[derive(Default)]
pub(in super::super) struct BufferMeasures {
    /// Share of reads that needed no access of the arm.
    pub(super) buffered_reads: RequestShare,
    /// Share of writes that completed before they were on the medium.
    pub(super) buffered_writes: RequestShare,
    /// Share of reads whose sectors were all in the buffer on arrival.
    pub(super) full_hits: RequestShare,
    /// Share of writes that waited for buffer space.
    pub(super) writes_awaiting_buffer: RequestShare,
    /// Maximum number of bytes that waited for destaging, among those that arrived within the
    /// elapsed time.
    pub(super) held_bytes_max: u64,
    /// Maximum number of bytes that one access destaged.
    pub(super) destaged_bytes_max: u64,
    /// Shortest link transfer in nanoseconds by direction and number of sectors. The shortest
    /// counts, since other transfers may occupy the link.
    pub(super) link_transfer_ns: BTreeMap<(bool, u32), u64>,
    /// Firmware durations of commands in nanoseconds by kind, in ascending order.
    command_ns_by_class: BTreeMap<CommandClass, Vec<u64>>,
    /// Shortest time in nanoseconds from the end of the transfer to the interrupt of the host, for
    /// writes and for reads. The shortest counts, since the processor may have other work.
    interrupt_delay_ns: BTreeMap<bool, u64>,
}

impl BufferMeasures {
    pub(in super::super) fn from_trace(trace: &Trace, requests: &[&TracedRequest]) -> Self {
        let mut found = Self::default();
        // A flush moves nothing.
        let of_disks = |one: &&&TracedRequest| {
            one.sector_count > 0 && trace.drives[one.drive_index as usize].has_bus_link
        };
        for one in requests.iter().filter(of_disks) {
            let needs_arm = moves_arm(one);
            let has = |stage| one.spans.iter().any(|span| span.stage == stage);
            match one.purpose {
                RequestPurpose::Read | RequestPurpose::ReadAhead => {
                    found.buffered_reads.count_request(!needs_arm);
                    found.full_hits.count_request(has(Stage::CacheHit));
                }
                RequestPurpose::Write | RequestPurpose::WriteBehind => {
                    found.buffered_writes.count_request(!needs_arm);
                    found
                        .writes_awaiting_buffer
                        .count_request(!needs_arm && has(Stage::Destage));
                }
            }
            let writes = matches!(
                one.purpose,
                RequestPurpose::Write | RequestPurpose::WriteBehind
            );
            for part in one.stage_intervals() {
                // Of other requests, data cross while sectors pass.
                if part.stage == Stage::CacheHit
                    || (writes && !needs_arm && part.stage == Stage::BusTransfer)
                {
                    let takes = part.duration().0;
                    let known = found
                        .link_transfer_ns
                        .entry((writes, one.sector_count))
                        .or_insert(takes);
                    *known = takes.min(*known);
                }
            }
            let command = one
                .stage_intervals()
                .filter(|part| part.stage == Stage::Command);
            let took = command.map(|interval| interval.duration().0).sum();
            let kind = CommandClass {
                is_write: writes,
                needs_arm,
            };
            found
                .command_ns_by_class
                .entry(kind)
                .or_default()
                .push(took);
            let took = interrupt_delay_ns(trace, one);
            let known = found.interrupt_delay_ns.entry(writes).or_insert(took);
            *known = took.min(*known);
        }
        found.measure_buffered_bytes(trace, requests);
        let commands = found.command_ns_by_class.values_mut();
        commands.for_each(|all| all.sort_unstable());
        found
    }

    /// Measures the bytes that wait for destaging, from arrival until they are on the medium or
    /// until the end. Bytes from before the trace are not visible, but few remain after several
    /// fillings of the buffer.
    fn measure_buffered_bytes(&mut self, trace: &Trace, requests: &[&TracedRequest]) {
        let bytes = |drive: u32, sectors: u32| {
            u64::from(sectors) * u64::from(trace.drives[drive as usize].sector_bytes)
        };
        let mut written: BTreeMap<(u32, u64), (u64, u64)> = BTreeMap::new();
        for arm in trace
            .arm_traces
            .iter()
            .filter(|arm| arm.arm_work == ArmWork::Destage)
        {
            self.destaged_bytes_max = self
                .destaged_bytes_max
                .max(bytes(arm.drive_index, arm.sector_count));
            let end = arm.sector + u64::from(arm.sector_count);
            written.insert((arm.drive_index, arm.sector), (end, arm.work_end().0));
        }
        let is_early = |one: &&&TracedRequest| {
            let has_buffer = trace.drives[one.drive_index as usize].has_bus_link;
            has_buffer
                && one.sector_count > 0
                && one.purpose == RequestPurpose::Write
                && !moves_arm(one)
        };
        // What is written again meanwhile waits once.
        let mut came: BTreeMap<(u32, u64), (u64, u64)> = BTreeMap::new();
        for one in requests.iter().filter(is_early) {
            let at = (one.drive_index, one.sector);
            let of = (
                one.completed_at().0,
                bytes(one.drive_index, one.sector_count),
            );
            came.entry(at).or_insert(of);
        }
        let mut moments: Vec<(u64, i64)> = Vec::new();
        for (at, (from, bytes)) in came {
            let below = written.range(..=at).next_back();
            let own = below.filter(|(of, (end, _))| of.0 == at.0 && at.1 < *end);
            let until = own
                .map(|(_, (_, until))| *until)
                .filter(|until| *until >= from);
            moments.push((from, bytes as i64));
            moments.extend(until.map(|until| (until, -(bytes as i64))));
        }
        moments.sort_unstable();
        let mut held = 0;
        for (_, more) in moments {
            held += more;
            self.held_bytes_max = self.held_bytes_max.max(held.max(0) as u64);
        }
    }

    /// Returns the firmware durations of the commands of a kind in nanoseconds, in ascending order.
    pub(super) fn command_durations_ns(&self, kind: CommandClass) -> &[u64] {
        self.command_ns_by_class
            .get(&kind)
            .map_or(&[], Vec::as_slice)
    }

    /// Returns the firmware's time to report a write or a read to the host, in nanoseconds.
    pub(super) fn interrupt_delay_ns(&self, writes: bool) -> Option<u64> {
        self.interrupt_delay_ns.get(&writes).copied()
    }
}

/// Maximum number of handler runs that are searched for the interrupt of a completed request.
const HANDLER_RUNS_SEARCHED_MAX: usize = 16;

/// Returns the time from the end of a request's transfer to the drive's interrupt, in nanoseconds.
/// The handler's time afterwards belongs to the kernel, although it is part of the same stage.
fn interrupt_delay_ns(trace: &Trace, request: &TracedRequest) -> u64 {
    let mut ends = request
        .stage_intervals()
        .filter(|interval| interval.stage == Stage::Completion);
    let Some(first) = ends.next() else {
        return 0;
    };
    let until = ends.last().unwrap_or(first).end;
    let ended = trace
        .handler_work
        .partition_point(|work| work.work_end <= until);
    let mut before = trace.handler_work[..ended]
        .iter()
        .rev()
        .take(HANDLER_RUNS_SEARCHED_MAX);
    let interrupt = before.find(|work| work.stage == Stage::Interrupt);
    let begins = interrupt.map_or(until, |work| work.work_start);
    begins
        .0
        .checked_sub(first.start.0)
        .unwrap_or(until.0 - first.start.0)
}
