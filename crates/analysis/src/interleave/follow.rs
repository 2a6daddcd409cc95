//! Simulation of one sector after another, with interrupts at their actual times.
//!
//! Bass calculates one service and the interrupts that may occur in it. Two effects go beyond a
//! window at a random time. An interrupt that is in service when the sector ends delays the disk's
//! interrupt. And a missed sector returns a revolution later, so that the previous sector
//! determines the phase between clocks and disk: with one tick per revolution, either every
//! following sector is hit or none.
//!
//! The sectors are therefore followed in time, from a number of initial phases of drive and
//! interrupts. Nothing is random: the initial phases are the points of a lattice.

use std::collections::VecDeque;

/// Tolerance for rounding in the comparison of two times: a nanosecond, in ms.
pub(super) const TIME_ROUNDING_MS: f64 = 1e-6;
/// Number of initial phases that the simulation starts from.
pub(super) const START_PHASE_COUNT: u32 = 32;
/// Number of sectors that are followed from each initial phase.
pub(super) const SECTORS_SIMULATED: u32 = 400;
/// Sectors at the beginning that do not count, since drive and interrupts meet there in phases that
/// never occur later.
const WARM_UP_SECTORS: u32 = 16;
/// Number of sectors that count for each initial phase.
pub(super) const SECTORS_COUNTED: f64 = (SECTORS_SIMULATED - WARM_UP_SECTORS) as f64;
/// Number of points of the lattice that gives the initial phases, a prime.
const LATTICE_POINTS: u64 = 16_381;
/// Generator of the lattice: its powers are the steps of the coordinates.
const LATTICE_GENERATOR: u64 = 9_979;

/// Source of processor interrupts at equal intervals, such as a clock or a serial line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct InterruptSource {
    /// Time from one interrupt to the next, in ms.
    pub(super) period_ms: f64,
    /// Processor time of each interrupt in ms.
    pub(super) cost_ms: f64,
    /// Coordinate of the lattice that gives the source's phase. No two sources share one.
    pub(super) lattice_dimension: u32,
    /// Whether the interrupt waits while the driver starts a transfer, with interrupts of the
    /// disk's level and below held off.
    pub(super) waits_for_program: bool,
}

/// Geometry of a track that is read with some interleave factor.
#[derive(Clone, Debug)]
pub(super) struct SectorSequence {
    /// Distances in slots from the start of each sector of a track to the start of the next.
    pub(super) sector_spacings: Vec<u32>,
    /// Time in which a sector passes the head, in ms.
    pub(super) sector_ms: f64,
    /// Time until a missed sector returns: one revolution, in ms.
    pub(super) revolution_ms: f64,
}

/// Mean delay of sectors in the simulation: missed share, lost revolutions and service time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lateness {
    /// Share of sectors (0 to 1) that pass before they are requested.
    pub(super) missed_share: f64,
    pub(super) lost_revolutions: f64,
    /// Mean time from a sector's end until its service is done, in ms, without waits for the
    /// previous service.
    pub(super) service_ms: f64,
}

/// Durations of the processor's work from a sector's end until the next request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ProcessorTask {
    /// Duration of the processor's whole work on a sector, in ms.
    pub(super) service_ms: f64,
    /// Duration of the last part in ms, in which the driver starts the next transfer.
    pub(super) start_ms: f64,
}

/// Processor that serves sectors while interrupts come.
pub(super) struct ProcessorLoad {
    sector_service: ProcessorTask,
    interrupt_sources: Vec<InterruptSource>,
    /// Number of outstanding requests: the next sector's, or as many as the controller holds.
    outstanding_reads: usize,
    /// Whether the calculation averages two consecutive service times.
    uses_averages: bool,
}

impl ProcessorLoad {
    /// Creates a processor with this service time per sector, if nothing interrupts it.
    pub(super) fn new(
        service: ProcessorTask,
        sources: Vec<InterruptSource>,
        (depth, averages): (usize, bool),
    ) -> Self {
        Self {
            sector_service: service,
            interrupt_sources: sources,
            outstanding_reads: depth,
            uses_averages: averages,
        }
    }

    /// Simulates the sectors of a track and returns their mean lateness.
    pub(super) fn simulate_all_phases(&self, course: &SectorSequence) -> Lateness {
        let mut sum = Lateness {
            missed_share: 0.0,
            lost_revolutions: 0.0,
            service_ms: 0.0,
        };
        // Without interrupts every start is the same.
        let starts = if self.interrupt_sources.is_empty() {
            1
        } else {
            START_PHASE_COUNT
        };
        for start in 0..starts {
            let one = self.simulate_from_phase(course, start);
            sum.missed_share += one.missed_share;
            sum.lost_revolutions += one.lost_revolutions;
            sum.service_ms += one.service_ms;
        }
        let share = |value: f64| value / f64::from(starts);
        Lateness {
            missed_share: share(sum.missed_share),
            lost_revolutions: share(sum.lost_revolutions),
            service_ms: share(sum.service_ms),
        }
    }

    fn simulate_from_phase(&self, course: &SectorSequence, start: u32) -> Lateness {
        let mut interrupts = InterruptQueue::new(&self.interrupt_sources, start);
        // When each of the last services was done, which is when the request
        // `depth` sectors on was made.
        let mut done: VecDeque<f64> = VecDeque::from(vec![0.0; self.outstanding_reads]);
        // How late the service before was, or how early.
        let mut earlier_ms = 0.0;
        let (mut ended_ms, mut missed, mut lost, mut served_ms) = (0.0, 0_u32, 0.0, 0.0);
        for sector in 0..SECTORS_SIMULATED {
            let before_ms = *done.back().expect("a service before this one");
            let begins_ms = before_ms.max(ended_ms);
            let ends_ms = interrupts.finish_time_ms(begins_ms, self.sector_service);
            done.push_back(ends_ms);
            done.pop_front();
            let asked_ms = *done.front().expect("as many as stand at a time");
            let place = sector as usize % course.sector_spacings.len();
            let spacing_ms = f64::from(course.sector_spacings[place]) * course.sector_ms;
            let comes_ms = ended_ms + spacing_ms - course.sector_ms;
            let own_ms = asked_ms - comes_ms - TIME_ROUNDING_MS;
            let late_ms = if self.uses_averages && own_ms + earlier_ms <= 0.0 {
                0.0
            } else {
                own_ms
            };
            earlier_ms = own_ms;
            let revolutions = (late_ms.max(0.0) / course.revolution_ms).ceil();
            ended_ms += spacing_ms + revolutions * course.revolution_ms;
            if sector >= WARM_UP_SECTORS {
                missed += u32::from(revolutions > 0.0);
                lost += revolutions;
                served_ms += ends_ms - begins_ms;
            }
        }
        Lateness {
            missed_share: f64::from(missed) / SECTORS_COUNTED,
            lost_revolutions: lost / SECTORS_COUNTED,
            service_ms: served_ms / SECTORS_COUNTED,
        }
    }
}

/// State of the pending interrupts of a simulated processor.
struct InterruptQueue<'s> {
    sources: &'s [InterruptSource],
    /// Time of the next interrupt of each source, in ms.
    next_interrupt_ms: Vec<f64>,
    /// Time until which the processor handles the interrupts that have come, in ms.
    busy_until_ms: f64,
}

impl<'s> InterruptQueue<'s> {
    fn new(sources: &'s [InterruptSource], start: u32) -> Self {
        let phase = |source: &InterruptSource| {
            let step = (0..source.lattice_dimension)
                .fold(1, |power, _| power * LATTICE_GENERATOR % LATTICE_POINTS);
            let point = u64::from(start) * (LATTICE_POINTS / u64::from(START_PHASE_COUNT));
            let place = point * step % LATTICE_POINTS;
            (place as f64 + 0.5) / LATTICE_POINTS as f64 * source.period_ms
        };
        Self {
            sources,
            next_interrupt_ms: sources.iter().map(phase).collect(),
            busy_until_ms: 0.0,
        }
    }

    /// Returns the time at which the processor's work on a sector ends, with interrupts served
    /// first. Interrupts that are held off during the transfer start come after it, when the next
    /// sector has been requested.
    fn finish_time_ms(&mut self, begins_ms: f64, work: ProcessorTask) -> f64 {
        while let Some((source, at_ms)) = self.next_interrupt_before(begins_ms, |_| true) {
            self.busy_until_ms = self.busy_until_ms.max(at_ms);
            self.serve_interrupt(source);
        }
        self.busy_until_ms = begins_ms.max(self.busy_until_ms) + work.service_ms - work.start_ms;
        self.serve_interrupts_until_idle(|_| true);
        self.busy_until_ms += work.start_ms;
        self.serve_interrupts_until_idle(|source| !source.waits_for_program);
        self.busy_until_ms
    }

    /// Serves all interrupts that come before the processor's work ends. Each of them delays that
    /// end; the order does not matter for the total.
    fn serve_interrupts_until_idle(&mut self, counts: impl Fn(&InterruptSource) -> bool) {
        loop {
            let until_ms = self.busy_until_ms - TIME_ROUNDING_MS;
            let before_ms = self.busy_until_ms;
            for (source, next_ms) in self.sources.iter().zip(&mut self.next_interrupt_ms) {
                if *next_ms < until_ms && counts(source) {
                    let come = ((until_ms - *next_ms) / source.period_ms).ceil();
                    self.busy_until_ms += come * source.cost_ms;
                    *next_ms += come * source.period_ms;
                }
            }
            if self.busy_until_ms == before_ms {
                return;
            }
        }
    }

    fn serve_interrupt(&mut self, source: usize) {
        self.busy_until_ms += self.sources[source].cost_ms;
        self.next_interrupt_ms[source] += self.sources[source].period_ms;
    }

    fn next_interrupt_before(
        &self,
        until_ms: f64,
        counts: impl Fn(&InterruptSource) -> bool,
    ) -> Option<(usize, f64)> {
        let first = self
            .next_interrupt_ms
            .iter()
            .copied()
            .enumerate()
            .filter(|(source, _)| counts(&self.sources[*source]))
            .min_by(|one, other| one.1.total_cmp(&other.1))?;
        (first.1 < until_ms).then_some(first)
    }
}
