//! Fit of the block transfer time, the sector angles and the head times.

use super::*;
use crate::proposal::BLOCK_BYTES;

/// Number of head switch and settling times that are tried.
const SWITCH_STEPS: u32 = 30;
const SWITCH_STEP_MS: f64 = 0.1;
/// Number of overheads that are tried on both sides of the current one.
const OVERHEAD_STEPS: i32 = 10;
const OVERHEAD_STEP_US: f64 = 100.0;
/// Rates that the link of a disk may have, in bytes per second.
const LINK_BYTES_PER_S_RANGE: (f64, f64) = (1e3, 1e12);

impl FitState<'_> {
    /// Fits the transfer time of a block on the bus: from the length of buffer reads, else from the
    /// length of early-completed writes. Without either, the angles of media reads show it.
    pub(super) fn fit_link_transfer(&mut self) {
        let slope = |operation: ValidationOperation, limit_us: f64| {
            let is_fast = |placed: &&LocatedRequest| {
                placed.request.operation == operation && self.time_to_sector_us(placed) < limit_us
            };
            let point = |placed: &LocatedRequest| {
                (
                    f64::from(placed.request.block_count),
                    placed.request.service_us,
                )
            };
            let fast: Vec<(f64, f64)> = self.requests.iter().filter(is_fast).map(point).collect();
            let line = affine::fit_linear_cost(&fast, self.link_block_us);
            line.filter(|(line, errors)| errors[1] < SLOPE_ERROR_SHARE_MAX * line.block_us)
        };
        // A bus carries what is written as fast as what is read, unless reads tell otherwise.
        let by_writes = || {
            slope(
                ValidationOperation::Write,
                self.find_buffer_limit_us(ValidationOperation::Write),
            )
        };
        let found = slope(ValidationOperation::Read, self.fast_request_us_max).or_else(by_writes);
        self.parameters
            .retain(|one| one.name != angles::CROSSING_PARAMETER);
        self.is_link_known = found.is_some();
        let Some((line, errors)) = found else {
            return;
        };
        self.set_link_transfer(line.block_us);
        self.add_parameter(angles::CROSSING_PARAMETER, line.block_us, errors[1]);
    }

    fn set_link_transfer(&mut self, block_us: f64) {
        self.link_block_us = block_us;
        self.disk.link.bytes_per_s = bytes_per_s(block_us);
        if !self.is_write_through() {
            self.disk.link.write_bytes_per_s = Some(bytes_per_s(block_us));
        }
    }

    pub(super) fn find_angles(&mut self) {
        if self.input.phase.is_none() {
            return;
        }
        let completions_us = self.completions_us();
        let half_us = self.period_us() / 2.0;
        let references = |operation: ValidationOperation| {
            let waited = |(placed, _): &(&LocatedRequest, &f64)| {
                placed.request.operation == operation
                    && placed.track_pieces.len() == 1
                    && self.time_to_sector_us(placed) > half_us
            };
            let reference = |(placed, completion_us): (&LocatedRequest, &f64)| PlatterReference {
                block_address: *placed.first_address(),
                completion_us: *completion_us,
                host_blocks: placed.request.block_count.into(),
            };
            let all = self.requests.iter().zip(&completions_us);
            all.filter(waited)
                .map(reference)
                .collect::<Vec<PlatterReference>>()
        };
        let layout = &self.input.specified_disk.mechanism.layout;
        let (zones, surfaces) = (layout.zones.len(), layout.surface_count);
        let reads = references(ValidationOperation::Read);
        let start = ReferenceTiming {
            period_us: self.period_us(),
            crossing_us: self.link_block_us,
            is_crossing_known: self.is_link_known,
        };
        let found = angles::find_angles(&reads, zones, surfaces, start);
        let writes = references(ValidationOperation::Write);
        self.agreement = found.agreement;
        self.phase_segments = found.phase_segments;
        self.disk.mechanism.period_ns = found.period_us * 1e3;
        propose_angles(&mut self.disk, &found.angles);
        if !self.is_link_known {
            // A bus that is faster than the platter does not show: it is that of the files.
            let is_seen = |one: &FittedParameter| one.name == angles::CROSSING_PARAMETER;
            match found.parameters.iter().any(is_seen) {
                true => self.set_link_transfer(found.crossing_us),
                false => self.link_block_us = self.input.link_block_us,
            }
        }
        self.parameters.extend(found.parameters);
        if self.is_write_through() {
            self.find_write_end(&found.angles, &reads, &writes);
        }
    }

    /// Determines the time from last sector to completion of a write beyond that of a read: the
    /// difference of their directions. A zero-latency access ends at another sector than the last.
    fn find_write_end(
        &mut self,
        angles: &AngleSource,
        reads: &[PlatterReference],
        writes: &[PlatterReference],
    ) {
        let (period_us, crossing_us) = (self.period_us(), self.link_block_us);
        let begun = reads.iter().map(|read| {
            read.first_block_rev(period_us, crossing_us)
                - angles.block_angle(&read.block_address)
                - self.phase_segments.phase_shift_at(read.completion_us)
        });
        let ended = writes.iter().map(|write| {
            let others =
                (write.host_blocks - 1.0) / f64::from(write.block_address.sectors_per_track);
            write.completion_us / period_us
                - angles.block_angle(&write.block_address)
                - others
                - self.phase_segments.phase_shift_at(write.completion_us)
        });
        let (Some(read), Some(write)) = (densest_direction(begun), densest_direction(ended)) else {
            return;
        };
        let later_us = wrap_revolutions(write.0 - read.0) * period_us;
        let error_us = (-2.0 * write.1.ln()).max(0.0).sqrt() / std::f64::consts::TAU * period_us
            / (writes.len() as f64).sqrt();
        self.write_end_us = later_us;
        self.disk.overheads.write_completion_ms = rounded_ms(later_us.max(0.0));
        self.add_parameter("bus.write_end_us", later_us, error_us);
    }

    /// Returns the service time that separates buffer reads from reads that waited for the platter,
    /// in microseconds: the middle of the widest gap below half a revolution.
    pub(super) fn find_buffer_limit_us(&self, operation: ValidationOperation) -> f64 {
        const HISTOGRAM_BINS: usize = 200;
        let half_us = self.period_us() / 2.0;
        let mut bins = [0usize; HISTOGRAM_BINS];
        for placed in self
            .requests
            .iter()
            .filter(|placed| placed.request.operation == operation)
        {
            let bin = (self.time_to_sector_us(placed) / half_us * HISTOGRAM_BINS as f64).max(0.0)
                as usize;
            if let Some(count) = bins.get_mut(bin) {
                *count += 1;
            }
        }
        const PEAK_BINS: usize = 6;
        const PEAK_TO_GAP_MIN: usize = 8;
        let within = |from: usize| bins[from..from + PEAK_BINS].iter().sum::<usize>();
        // Reads that wait for the platter come evenly over a revolution. A peak is at least half as
        // high as these, and a gap behind it parts it from them. There may be several kinds of hits:
        // the last peak counts.
        let reads = self
            .requests
            .iter()
            .filter(|placed| placed.request.operation == operation);
        let evenly = reads.count() * PEAK_BINS / (2 * HISTOGRAM_BINS);
        let mut gap = usize::MAX;
        let peak = (0..HISTOGRAM_BINS - PEAK_BINS).rfind(|&from| {
            gap = gap.min(within(from));
            2 * within(from) > evenly && within(from) >= PEAK_TO_GAP_MIN * gap.max(1)
        });
        let behind = peak.unwrap_or(HISTOGRAM_BINS)..HISTOGRAM_BINS - PEAK_BINS;
        let emptiest = behind.min_by_key(|&from| within(from));
        match emptiest {
            Some(from) if 5 * within(from) <= evenly => {
                (from + PEAK_BINS / 2) as f64 / HISTOGRAM_BINS as f64 * half_us
            }
            _ => 0.0,
        }
    }

    /// Determines whether reads and writes can start at any sector of their track, if more requests
    /// support this than the setting of the files.
    pub(super) fn choose_zero_latency(&mut self) {
        let variants = [(false, false), (true, false), (false, true), (true, true)];
        let variants = variants.map(|(reads, writes)| {
            let mut other = self.disk.clone();
            other.mechanism.zero_latency_reads = reads;
            other.mechanism.zero_latency_writes = writes;
            other
        });
        self.choose_disk(variants.into());
        let mechanism = &self.disk.mechanism;
        let chosen = [
            ("zero_latency.reads", mechanism.zero_latency_reads),
            ("zero_latency.writes", mechanism.zero_latency_writes),
        ];
        self.parameters
            .retain(|one| !one.name.starts_with("zero_latency."));
        for (name, value) in chosen {
            self.add_chosen_parameter(name, value);
        }
    }

    /// Determines the transfer time of a block on a bus that is faster than the platter, from
    /// zero-latency accesses: sectors that a read passed early cross last, and a write waits for
    /// all of its sectors. Files without a bus stay without one.
    pub(super) fn choose_link_transfer(&mut self) {
        const STEPS: std::ops::RangeInclusive<u32> = 10..=30;
        const STEPS_PER_UNIT: f64 = 20.0;
        if self.link_block_us <= 0.0 {
            return;
        }
        let is_seen = |one: &FittedParameter| one.name == angles::CROSSING_PARAMETER;
        let is_link_seen = self.is_link_known || self.parameters.iter().any(is_seen);
        let block_us = |rate: f64| BLOCK_BYTES * 1e6 / rate;
        let with_share = |rate: f64, share: f64| {
            let (low, high) = LINK_BYTES_PER_S_RANGE;
            (rate / share).round().clamp(low, high)
        };
        let shares = || STEPS.map(|step| f64::from(step) / STEPS_PER_UNIT);
        if !is_link_seen {
            // With a wrong rate of the files, zero-latency reads may not show either.
            let disks = shares().map(|share| {
                let mut disk = self.disk.clone();
                disk.mechanism.zero_latency_reads = true;
                disk.link.bytes_per_s = with_share(disk.link.bytes_per_s, share);
                disk
            });
            self.choose_setting(disks.collect(), angles::CROSSING_PARAMETER, |disk| {
                block_us(disk.link.bytes_per_s)
            });
            self.set_link_transfer(block_us(self.disk.link.bytes_per_s));
            self.choose_zero_latency();
        }
        let written = |disk: &DiskSpecification| {
            let link = &disk.link;
            link.write_bytes_per_s.unwrap_or(link.bytes_per_s)
        };
        if self.disk.mechanism.zero_latency_writes && self.is_write_through() {
            let disks = shares().map(|share| {
                let mut disk = self.disk.clone();
                disk.link.write_bytes_per_s = Some(with_share(written(&disk), share));
                disk
            });
            self.choose_setting(disks.collect(), "bus.write_block_us", |disk| {
                block_us(written(disk))
            });
        }
    }

    /// Determines the overheads of requests that wait for the platter: a zero-latency access shows
    /// them by its end, and any other by the sectors that it misses. Those after a write and after
    /// a read are shifted together, and then each alone.
    pub(super) fn choose_overheads(&mut self) {
        type Overhead = fn(&mut DiskSpecification) -> &mut OverheadByState;
        let read: (&str, Overhead) = ("read_miss", |disk| &mut disk.overheads.read_miss_ms);
        let write: (&str, Overhead) = ("write", |disk| &mut disk.overheads.write_ms);
        let kinds = match self.is_write_through() {
            true => vec![read, write],
            false => vec![read],
        };
        for (name, overhead) in kinds {
            for (state, is_shifted) in [
                ("", [true, true]),
                ("_after_write", [false, true]),
                ("_after_read", [true, false]),
            ] {
                let shifted = |step: i32| {
                    let mut disk = self.disk.clone();
                    let before = *overhead(&mut disk);
                    shift_overhead(overhead(&mut disk), f64::from(step) * OVERHEAD_STEP_US);
                    if !is_shifted[0] {
                        overhead(&mut disk).after_read_ms = before.after_read_ms;
                    }
                    if !is_shifted[1] {
                        overhead(&mut disk).after_write_ms = before.after_write_ms;
                    }
                    disk
                };
                let disks = (-OVERHEAD_STEPS..=OVERHEAD_STEPS).map(shifted).collect();
                let name = format!("overhead.{name}{state}_ms");
                self.choose_setting(disks, &name, |disk| {
                    let of = *overhead(&mut disk.clone());
                    match is_shifted[0] {
                        true => of.after_read_ms,
                        false => of.after_write_ms,
                    }
                });
            }
        }
    }

    /// Determines the head switch time and the write settling time from requests that span tracks:
    /// they either catch the next track's first sector or miss it by a revolution. Each is stepped
    /// alone; then settling against the overhead of writes, because a write on one track shows only
    /// their sum; then both against each other, because a write that switches heads does. Seek
    /// times of writes including settling stay unchanged where they are fitted.
    pub(super) fn choose_switches(&mut self) {
        let steps = || (0..=SWITCH_STEPS).map(|step| f64::from(step) * SWITCH_STEP_MS);
        let head = |disk: &DiskSpecification| disk.mechanism.head_switch_ms;
        let settle = |disk: &DiskSpecification| disk.mechanism.write_settle_ms;
        let current = self.disk.clone();
        let heads = steps().map(|head_switch_ms| {
            let mut disk = current.clone();
            disk.mechanism.head_switch_ms = head_switch_ms;
            disk
        });
        self.choose_setting(heads.collect(), "switch.head_ms", head);
        let current = self.disk.clone();
        let settles = steps().map(|settle_ms| with_settle(&current, settle_ms));
        self.choose_setting(settles.collect(), "switch.write_settle_ms", settle);
        if self.is_write_through() {
            let current = self.disk.clone();
            let settles = steps().map(|settle_ms| {
                let mut disk = with_settle(&current, settle_ms);
                let more_ms = settle_ms - settle(&current);
                shift_overhead(&mut disk.overheads.write_ms, -more_ms * 1e3);
                disk
            });
            self.choose_setting(settles.collect(), "switch.write_settle_ms", settle);
        }
        let current = self.disk.clone();
        let sum_ms = head(&current) + settle(&current);
        let both = steps().take_while(|settle_ms| *settle_ms <= sum_ms);
        let both = both.map(|settle_ms| {
            let mut disk = with_settle(&current, settle_ms);
            disk.mechanism.head_switch_ms = rounded_ms((sum_ms - settle_ms) * 1e3);
            disk
        });
        self.choose_setting(both.collect(), "switch.write_settle_ms", settle);
    }
}

/// Returns a disk with another settling time of writes, and with the same seek times of writes
/// where these are given.
fn with_settle(disk: &DiskSpecification, settle_ms: f64) -> DiskSpecification {
    let mut disk = disk.clone();
    let more_ms = settle_ms - disk.mechanism.write_settle_ms;
    disk.mechanism.write_settle_ms = settle_ms;
    if let Some(SeekSpecification::Table { points }) = &mut disk.mechanism.write_seek {
        for (_, time_ms) in points {
            *time_ms = rounded_ms((*time_ms - more_ms).max(0.0) * 1e3);
        }
    }
    disk
}
