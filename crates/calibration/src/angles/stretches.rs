//! Segments of a trace with constant rotational phase, which jumps where lines were dropped.
//!
//! Each zone has an unknown origin and each segment an unknown turn. The sums of directions by zone
//! and by window of the trace are, apart from noise, a product of the two, so the leading singular
//! vectors of that matrix contain both. Dynamic programming on the directions without the zone
//! origins then finds the jumps.

use super::wrap_revolutions;
use crate::phase_step::PhaseStep;
use diskperf_diskspecs::phase::Phasor;
use std::f64::consts::TAU;

/// Segments of a trace with constant phase, and the turn of each relative to the first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PhaseSegments {
    later_segments: Vec<PhaseSegment>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct PhaseSegment {
    /// Completion time of the first request of the segment, in microseconds.
    start_us: f64,
    /// Phase shift of the trace segment relative to the first one, in revolutions.
    phase_shift: f64,
}

impl PhaseSegments {
    /// Returns the number of trace segments with constant rotational phase.
    pub(crate) fn count(&self) -> usize {
        self.later_segments.len() + 1
    }

    pub(super) fn segment_index_at(&self, completion_us: f64) -> usize {
        self.later_segments
            .partition_point(|stretch| stretch.start_us <= completion_us)
    }

    /// Returns the turn of a completion's segment relative to the first one, in revolutions.
    pub(crate) fn phase_shift_at(&self, completion_us: f64) -> f64 {
        match self.segment_index_at(completion_us).checked_sub(1) {
            Some(later_stretches) => self.later_segments[later_stretches].phase_shift,
            None => 0.0,
        }
    }

    /// Adds angles to the turns of all trace segments except the first.
    pub(super) fn add_phase_shifts(&mut self, turns: impl Iterator<Item = f64>) {
        for (stretch, turns) in self.later_segments.iter_mut().zip(turns) {
            stretch.phase_shift += turns;
        }
    }

    /// Returns the phase jumps between segments, each with the first request after it.
    pub(crate) fn phase_steps(&self, completions_us: &[f64]) -> Vec<PhaseStep> {
        let mut before = 0.0;
        let mut steps = Vec::with_capacity(self.later_segments.len());
        for stretch in &self.later_segments {
            let index = completions_us.partition_point(|&at| at < stretch.start_us);
            steps.push(PhaseStep {
                request_index: index + 1,
                phase_shift_rev: wrap_revolutions(before - stretch.phase_shift),
            });
            before = stretch.phase_shift;
        }
        steps
    }
}

/// Reference whose angle is known except for its zone's origin and its segment's turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhaseSample {
    pub(super) completion_us: f64,
    pub(super) zone: usize,
    /// Platter angle minus the sector's angle without the zone origin.
    pub(super) phase: f64,
}

/// Zone origins and segment turns after alignment.
pub(super) struct PhaseAlignment {
    /// Origin of each zone, in revolutions; `None` for a zone without samples.
    pub(super) zone_origins: Vec<Option<f64>>,
    pub(super) phase_segments: PhaseSegments,
}

/// Samples of a window, within which the phase is initially assumed constant.
const WINDOW_SAMPLES: usize = 40;
/// Rounds of the power iteration, which alternates between zones and windows.
const ALIGNMENT_ROUNDS: usize = 20;
/// Rounds that alternate between finding jumps and origins.
const JUMP_ROUNDS: usize = 4;
const SEGMENT_SAMPLES_MIN: usize = 24;
/// Minimum gain of a phase jump, in samples that it brings into agreement. Chance agreement of
/// outliers is smaller.
const JUMP_GAIN_MIN: f64 = 3.0;
/// Maximum number of sample blocks in the first search for jumps, which considers only block ends.
const BLOCKS_MAX: usize = 1500;
const COARSE_BLOCKS_MAX: usize = 400;
/// Number of samples on both sides that must show a jump; a drifting spindle does not jump.
const JUMP_SIDE_SAMPLES: usize = 60;
/// Smallest jump that counts, in revolutions, and in standard errors of the directions on its
/// sides.
const JUMP_MIN: f64 = 0.02;
const JUMP_DEVIATIONS_MIN: f64 = 5.0;

/// Finds the segments of samples, which are in the order of completion.
pub(super) fn align_phases(samples: &[PhaseSample], zones: usize) -> PhaseAlignment {
    let directions: Vec<Phasor> = samples
        .iter()
        .map(|sample| Phasor::from_revolutions(sample.phase))
        .collect();
    let mut origins = synchronise_zones(samples, &directions, zones);
    let mut starts = Vec::new();
    for _ in 0..JUMP_ROUNDS {
        let left: Vec<Phasor> = samples
            .iter()
            .zip(&directions)
            .map(|(sample, direction)| direction.times_conjugate(origins[sample.zone]))
            .collect();
        let found = find_jumps(&left);
        let turns = segment_phases(&left, &found);
        let mut sums = vec![Phasor::default(); zones];
        let mut stretch = 0;
        for (index, (sample, direction)) in samples.iter().zip(&directions).enumerate() {
            stretch += usize::from(found.get(stretch) == Some(&index));
            sums[sample.zone] = sums[sample.zone].plus(direction.times_conjugate(turns[stretch]));
        }
        origins = sums.into_iter().map(to_unit).collect();
        let is_settled = found == starts;
        starts = found;
        if is_settled {
            break;
        }
    }
    let left: Vec<Phasor> = samples
        .iter()
        .zip(&directions)
        .map(|(sample, direction)| direction.times_conjugate(origins[sample.zone]))
        .collect();
    let turns = segment_phases(&left, &starts);
    let later_stretches = starts
        .iter()
        .zip(&turns[1..])
        .map(|(start, turn)| PhaseSegment {
            start_us: samples[*start].completion_us,
            phase_shift: turn.times_conjugate(turns[0]).to_revolutions(),
        });
    let is_seen = |zone: &usize| samples.iter().any(|sample| sample.zone == *zone);
    PhaseAlignment {
        zone_origins: (0..zones)
            .map(|zone| is_seen(&zone).then(|| origins[zone].times(turns[0]).to_revolutions()))
            .collect(),
        phase_segments: PhaseSegments {
            later_segments: later_stretches.collect(),
        },
    }
}

/// Returns the agreement (R) of the samples within the fewest segments that explain them, and the
/// number of jumps. Jumps are placed at block ends, which is exact enough to compare periods.
pub(super) fn phase_agreement(samples: &[PhaseSample], zones: usize) -> (f64, usize) {
    let directions: Vec<Phasor> = samples
        .iter()
        .map(|sample| Phasor::from_revolutions(sample.phase))
        .collect();
    let origins = synchronise_zones(samples, &directions, zones);
    let left: Vec<Phasor> = samples
        .iter()
        .zip(&directions)
        .map(|(sample, direction)| direction.times_conjugate(origins[sample.zone]))
        .collect();
    let sums = running_sums(&left);
    let starts = coarse_jumps(&sums, COARSE_BLOCKS_MAX);
    let ends = starts.iter().copied().chain([left.len()]);
    let mut from = 0;
    let mut length = 0.0;
    for end in ends {
        length += sums[end].minus(sums[from]).magnitude();
        from = end;
    }
    (length / left.len().max(1) as f64, starts.len())
}

/// Returns the directions of the zone origins, from samples in windows that may each have a turn.
fn synchronise_zones(samples: &[PhaseSample], directions: &[Phasor], zones: usize) -> Vec<Phasor> {
    let windows = samples.len().div_ceil(WINDOW_SAMPLES).max(1);
    let mut sums = vec![Phasor::default(); zones * windows];
    for (index, (sample, direction)) in samples.iter().zip(directions).enumerate() {
        let sum = &mut sums[sample.zone * windows + index / WINDOW_SAMPLES];
        *sum = sum.plus(*direction);
    }
    let by_zone = |turns: &[Phasor]| -> Vec<Phasor> {
        let row = |row: &[Phasor]| {
            row.iter()
                .zip(turns)
                .map(|(sum, turn)| sum.times_conjugate(*turn))
                .sum()
        };
        sums.chunks(windows).map(row).collect()
    };
    let by_window = |origins: &[Phasor]| -> Vec<Phasor> {
        let column = |window: usize| {
            let zones = origins.iter().enumerate();
            zones
                .map(|(zone, origin)| sums[zone * windows + window].times_conjugate(*origin))
                .sum()
        };
        (0..windows).map(column).collect()
    };
    let weight = |zone: &usize| -> f64 {
        let row = &sums[zone * windows..(zone + 1) * windows];
        row.iter().map(|sum| sum.magnitude()).sum()
    };
    let Some(first) = (0..zones).max_by(|a, b| weight(a).total_cmp(&weight(b))) else {
        return Vec::new();
    };
    let mut turns = sums[first * windows..(first + 1) * windows].to_vec();
    let mut origins = by_zone(&turns);
    for round in 0..2 * ALIGNMENT_ROUNDS {
        // The leading singular vectors, then the directions that agree best.
        let scaled = |all: Vec<Phasor>| match round < ALIGNMENT_ROUNDS {
            true => normalise_all(all),
            false => all.into_iter().map(to_unit).collect(),
        };
        turns = scaled(by_window(&origins));
        origins = scaled(by_zone(&turns));
    }
    origins.into_iter().map(to_unit).collect()
}

fn normalise_all(all: Vec<Phasor>) -> Vec<Phasor> {
    let square: f64 = all.iter().map(|one| one.magnitude().powi(2)).sum();
    let share = Phasor {
        real: square.sqrt().max(f64::MIN_POSITIVE).recip(),
        imaginary: 0.0,
    };
    all.into_iter().map(|one| one.times(share)).collect()
}

fn to_unit(vector: Phasor) -> Phasor {
    Phasor::from_revolutions(vector.to_revolutions())
}

/// Finds the phase jumps, as the index of the first sample of each trace segment except the first.
fn find_jumps(left: &[Phasor]) -> Vec<usize> {
    let sums = running_sums(left);
    let mut starts = coarse_jumps(&sums, BLOCKS_MAX);
    refine_jump_positions(&mut starts, &sums, left.len().div_ceil(BLOCKS_MAX).max(1));
    drop_drift_jumps(starts, left)
}

/// Finds jumps at the ends of a limited number of sample blocks.
fn coarse_jumps(sums: &[Phasor], blocks_max: usize) -> Vec<usize> {
    let count = sums.len() - 1;
    let block = count.div_ceil(blocks_max).max(1);
    let ends: Vec<usize> = (0..=count / block).map(|end| end * block).collect();
    let ends = match ends.last() {
        Some(&last) if last < count => [ends, vec![count]].concat(),
        _ => ends,
    };
    let mut best: Vec<(f64, usize)> = vec![(0.0, 0)];
    for (number, &end) in ends.iter().enumerate().skip(1) {
        let with_last = |from: usize| {
            let length = sums[end].minus(sums[ends[from]]).magnitude();
            (best[from].0 + length - JUMP_GAIN_MIN, from)
        };
        let candidates = (0..number)
            .filter(|&from| {
                let is_all = from == 0 && end == count;
                is_all || end - ends[from] >= SEGMENT_SAMPLES_MIN
            })
            .map(with_last);
        let last = candidates.max_by(|a, b| a.0.total_cmp(&b.0));
        best.push(last.unwrap_or((f64::NEG_INFINITY, 0)));
    }
    let mut starts = Vec::new();
    let mut at = best.len() - 1;
    while at > 0 {
        at = best[at].1;
        if at > 0 {
            starts.push(ends[at]);
        }
    }
    starts.reverse();
    starts
}

fn running_sums(left: &[Phasor]) -> Vec<Phasor> {
    let mut sums = vec![Phasor::default()];
    for direction in left {
        sums.push(sums[sums.len() - 1].plus(*direction));
    }
    sums
}

/// Moves jumps from block ends to the first samples that show them.
fn refine_jump_positions(starts: &mut [usize], sums: &[Phasor], block: usize) {
    for index in 0..starts.len() {
        let before = index.checked_sub(1).map_or(0, |before| starts[before]);
        let after = starts.get(index + 1).copied().unwrap_or(sums.len() - 1);
        let range = starts[index].saturating_sub(block).max(before + 1)
            ..=(starts[index] + block).min(after.saturating_sub(1));
        let length = |at: usize| {
            sums[at].minus(sums[before]).magnitude() + sums[after].minus(sums[at]).magnitude()
        };
        let best = range.max_by(|&a, &b| length(a).total_cmp(&length(b)));
        starts[index] = best.unwrap_or(starts[index]);
    }
}

/// Keeps only jumps that the samples on both sides show.
fn drop_drift_jumps(starts: Vec<usize>, left: &[Phasor]) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    for (number, &start) in starts.iter().enumerate() {
        let before = kept.last().copied().unwrap_or(0);
        let after = starts.get(number + 1).copied().unwrap_or(left.len());
        let sides = [
            &left[start.saturating_sub(JUMP_SIDE_SAMPLES).max(before)..start],
            &left[start..(start + JUMP_SIDE_SAMPLES).min(after)],
        ];
        let sums = sides.map(|side| side.iter().copied().sum::<Phasor>());
        let variance = |side: usize| {
            let count = sides[side].len().max(1) as f64;
            let r = (sums[side].magnitude() / count).clamp(1e-3, 1.0 - 1e-3);
            -2.0 * r.ln() / TAU.powi(2) / count
        };
        let error = (variance(0) + variance(1)).sqrt();
        let jump = sums[1].times_conjugate(sums[0]).to_revolutions().abs();
        if jump >= JUMP_MIN && jump >= JUMP_DEVIATIONS_MIN * error {
            kept.push(start);
        }
    }
    kept
}

fn segment_phases(left: &[Phasor], starts: &[usize]) -> Vec<Phasor> {
    let ends = starts.iter().copied().chain([left.len()]);
    let mut from = 0;
    let turn = |to: usize| {
        let sum: Phasor = left[from..to].iter().copied().sum();
        from = to;
        to_unit(sum)
    };
    ends.map(turn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    /// Zones, samples, where the phase jumps, and the share of samples at any angle.
    const CASES: [(usize, usize, &[usize], f64); 7] = [
        (1, 400, &[], 0.0),
        (3, 2000, &[1000], 0.05),
        (60, 2000, &[300, 900, 1400], 0.05),
        (
            60,
            4000,
            &[200, 400, 700, 1500, 2200, 2600, 3300, 3800],
            0.1,
        ),
        (8, 9000, &[4000, 4100], 0.05),
        (12, 3000, &[], 0.3),
        (5, 60, &[30], 0.0),
    ];

    #[test]
    fn jumps_are_found_where_they_are_and_nowhere_else() {
        println!("seeds 0 to 9");
        for seed in 0..10 {
            for (zones, count, jumps, outliers) in CASES {
                let mut random = Pcg64Mcg::seed_from_u64(seed);
                let mut share = || f64::from(random.next_u32()) / 2_f64.powi(32);
                let origins: Vec<f64> = (0..zones).map(|_| share()).collect();
                let mut turn = 0.0;
                let mut turns = vec![0.0];
                for _ in jumps {
                    turn += 0.12 + 0.76 * share();
                    turns.push(turn);
                }
                let samples: Vec<PhaseSample> = (0..count)
                    .map(|index| {
                        let zone = (share() * zones as f64) as usize;
                        let stretch = jumps.partition_point(|&jump| jump <= index);
                        let noise = match share() < outliers {
                            true => share(),
                            false => 0.03 * (share() + share() - 1.0),
                        };
                        // A spindle that wanders by a tenth of a revolution.
                        let wander = 0.05 * (TAU * index as f64 / 4000.0).sin();
                        PhaseSample {
                            completion_us: 1e4 * index as f64,
                            zone,
                            phase: origins[zone] + turns[stretch] + noise + wander,
                        }
                    })
                    .collect();
                let found = align_phases(&samples, zones).phase_segments;
                let case = format!("seed {seed}, {zones} zones, {count} samples");
                let starts: Vec<f64> = found
                    .later_segments
                    .iter()
                    .map(|one| one.start_us / 1e4)
                    .collect();
                assert_eq!(
                    starts.len(),
                    jumps.len(),
                    "{case}: {starts:?} of {jumps:?}, {turns:?}"
                );
                for (stretch, (start, jump)) in starts.iter().zip(jumps).enumerate() {
                    // An outlier may stand at the jump.
                    assert!((start - *jump as f64).abs() <= 4.0, "{case}: {starts:?}");
                    let off = wrap_revolutions(
                        found.later_segments[stretch].phase_shift - turns[stretch + 1],
                    );
                    assert!(off.abs() < 0.1, "{case}: {off}");
                }
            }
        }
    }
}
