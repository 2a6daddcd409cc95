//! Load on one volume, repeated for a time.

use super::load::{LoadPart, PartArrivals, VolumeLoad};
use super::response::{EvenWaits, ResponseTimes};
use diskperf_analysis::explanation::words::rate_limit_label;
use diskperf_analysis::volume::{VolumeFigures, VolumePhase, VolumeVerdict};
use diskperf_device::volume::VolumeSpecification;
use diskperf_device::volume::fluid::{FluidLoad, FluidVolume, NANOREQUESTS, Phase, PhaseLimit};
use diskperf_timeline::VolumeLimit;
use std::collections::BTreeMap;

/// Phases that are listed.
const PHASES_MAX: usize = 100;
/// Wait for a limit from which a volume falls behind, in nanoseconds.
const WAIT_BEHIND_NS: f64 = 1e9;
/// Time from which a volume's first rate is taken, in nanoseconds: what volumes save over a second
/// is gone.
const START_NS: u64 = 30_000_000_000;
/// Growth of a backlog that rounding cannot explain, in nanorequests for each second.
const GROWTH_PER_S_MIN: u128 = 1000;
/// Repetitions of a load of one part that are calculated at most; they differ in nothing.
const REPETITIONS_MAX: u64 = 1 << 12;
const GIB: u64 = 1 << 30;

/// Counts over all phases of a load on a volume.
struct Week {
    phases: Vec<Phase>,
    phases_left_out: usize,
    responses: ResponseTimes,
    credits_end_ns: Option<u64>,
    credits_ended_ns: u64,
    limited_ns: BTreeMap<VolumeLimit, u64>,
    iops_start: Option<f64>,
    iops_end: f64,
    /// Whether no request waited at some time of the current repetition.
    has_caught_up: bool,
    /// Number of repetitions for which the current one stands.
    weight: u64,
}

/// End of a whole repetition.
struct RepetitionEnd {
    at_ns: u64,
    backlog: u128,
    /// Whether the volume does not catch up with the load.
    is_behind_for_good: bool,
}

impl RepetitionEnd {
    /// Returns the end of the current repetition. A backlog that grows from one repetition to the
    /// next and never is empty is not caught up with. After the first one, the wait decides.
    fn new(before: Option<&Self>, fluid: &FluidVolume, has_caught_up: bool) -> Self {
        let (at_ns, backlog) = (fluid.now_ns(), fluid.backlog());
        let is_behind_for_good = match before {
            None => fluid.oldest_wait_ns() as f64 > WAIT_BEHIND_NS,
            Some(before) => {
                let duration_s = u128::from((at_ns - before.at_ns).div_ceil(1_000_000_000));
                let grown = backlog.saturating_sub(before.backlog);
                !has_caught_up && grown > GROWTH_PER_S_MIN * duration_s
            }
        };
        Self {
            at_ns,
            backlog,
            is_behind_for_good,
        }
    }
}

/// Calculates the figures of a volume under a load that repeats until `total_ns`. The caller fills
/// in the name and the settings.
pub(super) fn carry(
    volume: &VolumeSpecification,
    load: &VolumeLoad,
    total_ns: u64,
) -> VolumeFigures {
    let mut fluid = FluidVolume::new(volume);
    let mut week = Week {
        phases: Vec::new(),
        phases_left_out: 0,
        responses: ResponseTimes::new(),
        credits_end_ns: None,
        credits_ended_ns: 0,
        limited_ns: BTreeMap::new(),
        iops_start: None,
        iops_end: 0.0,
        has_caught_up: false,
        weight: 1,
    };
    let mut last_levels = None;
    let mut last_end: Option<RepetitionEnd> = None;
    // At a constant rate, many repetitions are as one.
    let joined = match load.parts.len() {
        1 => (total_ns / load.duration_ns() / REPETITIONS_MAX).max(1),
        _ => 1,
    };
    while fluid.now_ns() < total_ns {
        let levels = fluid.idle_levels();
        let is_cycle = levels.is_some() && levels == last_levels && fluid.now_ns() >= START_NS;
        last_levels = levels;
        let left = (total_ns - fluid.now_ns()) / load.duration_ns();
        // Phases that are listed may join those of the next repetition.
        week.weight = match is_cycle && joined == 1 && week.phases_left_out > 0 {
            true => left.max(1),
            false => 1,
        };
        for part in &load.parts {
            let duration_ns = (part.duration_ns * joined).min(total_ns - fluid.now_ns());
            let service_ns = service_ns(volume, part);
            let of_part = FluidLoad {
                arrivals: VolumeLoad::arrivals(part, service_ns),
                charges: load.charges(part, volume.charge_rules),
            };
            fluid.run(&of_part, duration_ns, |phase| {
                week.add(&phase, part, service_ns)
            });
        }
        if week.weight > 1 {
            fluid.skip_repetitions((week.weight - 1) * load.duration_ns());
        }
        if fluid.now_ns().is_multiple_of(load.duration_ns()) || last_end.is_none() {
            let end = RepetitionEnd::new(last_end.as_ref(), &fluid, week.has_caught_up);
            last_end = Some(end);
        }
        week.has_caught_up = false;
    }
    let is_behind = last_end.is_some_and(|end| end.is_behind_for_good);
    week.describe(volume, &fluid, load.is_open(), is_behind)
}

fn service_ns(volume: &VolumeSpecification, part: &LoadPart) -> u64 {
    let share = part.read_share();
    let mean = |service: &diskperf_device::volume::ServiceQuantiles| service.mean().0 as f64;
    let mixed = mean(&volume.read_service) * share + mean(&volume.write_service) * (1.0 - share);
    (mixed as u64).max(1)
}

impl Week {
    fn add(&mut self, phase: &Phase, part: &LoadPart, service_ns: u64) {
        let iops = phase.nanorequests_per_s as f64 / NANOREQUESTS as f64;
        if self.iops_start.is_none() || phase.start_ns < START_NS {
            self.iops_start = Some(iops);
        }
        self.iops_end = iops;
        self.has_caught_up |= phase.backlog_end == 0;
        if let Some(limit) = phase.limit {
            let duration_ns = self.weight * phase.duration_ns();
            *self.limited_ns.entry(limit.kind).or_default() += duration_ns;
            if limit.credits_ended {
                self.credits_end_ns.get_or_insert(phase.start_ns);
                self.credits_ended_ns += duration_ns;
            }
        }
        let served = self.weight as f64 * phase.served() as f64 / NANOREQUESTS as f64;
        let waits = match part.arrivals {
            // Of the requests in flight, those that are not in service wait.
            PartArrivals::Closed(depth) if phase.limit.is_some() => {
                let wait_ns = f64::from(depth) * 1e9 / iops - service_ns as f64;
                EvenWaits {
                    start_ns: wait_ns,
                    end_ns: wait_ns,
                }
            }
            _ => EvenWaits {
                start_ns: phase.wait_start_ns as f64,
                end_ns: phase.wait_end_ns as f64,
            },
        };
        self.responses.add(served, part.read_share(), waits);
        self.list_phase(*phase);
    }

    /// Lists a phase, or extends the one before if its rate and the direction of its backlog are the
    /// same.
    fn list_phase(&mut self, phase: Phase) {
        let key = |phase: &Phase| {
            let backlog = phase.backlog_end.cmp(&phase.backlog_start);
            (phase.nanorequests_per_s, phase.limit, backlog)
        };
        let count = self.phases.len();
        match self.phases.last_mut() {
            Some(last) if self.phases_left_out == 0 && key(last) == key(&phase) => {
                last.end_ns = phase.end_ns;
                last.backlog_end = phase.backlog_end;
            }
            _ if count < PHASES_MAX => self.phases.push(phase),
            _ => self.phases_left_out += self.weight as usize,
        }
    }

    fn describe(
        self,
        volume: &VolumeSpecification,
        fluid: &FluidVolume,
        is_open: bool,
        is_behind_for_good: bool,
    ) -> VolumeFigures {
        let iops_start = self.iops_start.unwrap_or(0.0);
        let verdict = match is_open {
            true if is_behind_for_good => VolumeVerdict::Fails,
            true if self.responses.wait_max_ns() > WAIT_BEHIND_NS => VolumeVerdict::FallsBehind,
            true => VolumeVerdict::Carries,
            false if self.iops_end < 0.99 * iops_start => VolumeVerdict::Slows,
            false => VolumeVerdict::Steady,
        };
        let quantile_ms = |share| {
            let (reads, writes) = (&volume.read_service, &volume.write_service);
            self.responses.quantile_ns(share, reads, writes) / 1e6
        };
        let longest = self.limited_ns.iter().max_by_key(|(_, ns)| **ns);
        VolumeFigures {
            volume: String::new(),
            size_gib: (volume.sectors * u64::from(volume.sector_bytes)).div_ceil(GIB),
            settings: Vec::new(),
            is_smallest: false,
            verdict,
            p50_ms: quantile_ms(0.5),
            p99_ms: quantile_ms(0.99),
            wait_max_s: self.responses.wait_max_ns() / 1e9,
            credits_end_s: self.credits_end_ns.map(|ns| ns as f64 / 1e9),
            credits_ended_share: self.credits_ended_ns as f64 / fluid.now_ns().max(1) as f64,
            credits_left_share: credits_left_share(fluid),
            backlog_end: fluid.backlog() as f64 / NANOREQUESTS as f64,
            iops_start,
            iops_end: self.iops_end,
            limit: longest.map(|(kind, _)| rate_limit_label(*kind).to_owned()),
            phases: self.phases.iter().map(describe_phase).collect(),
            phases_left_out: self.phases_left_out,
        }
    }
}

fn credits_left_share(fluid: &FluidVolume) -> Option<f64> {
    let share = |kind| {
        let most = fluid.credits_max(kind).filter(|most| *most > 0)?;
        Some(fluid.credits(kind)? as f64 / most as f64)
    };
    VolumeLimit::ALL
        .into_iter()
        .filter_map(share)
        .min_by(f64::total_cmp)
}

fn describe_phase(phase: &Phase) -> VolumePhase {
    let requests = |nano: u128| nano as f64 / NANOREQUESTS as f64;
    let ended = |limit: PhaseLimit| limit.credits_ended;
    VolumePhase {
        start_s: phase.start_ns as f64 / 1e9,
        end_s: phase.end_ns as f64 / 1e9,
        iops: requests(phase.nanorequests_per_s),
        backlog_end: requests(phase.backlog_end),
        limit: phase
            .limit
            .map(|limit| rate_limit_label(limit.kind).to_owned()),
        credits_ended: phase.limit.is_some_and(ended),
    }
}
