//! Search for the rotation period, and for corrections of the skews in the files.

use super::PhaseAssumptions;
use super::pairs::{AngleReferences, ReferencePair, ReferencePairs};
use super::phasor::Phasor;
use super::significance::{chance_mean_cosine, evidence_nats};

/// Half width of the scan, as a share of the nominal period. The period is expected within two per
/// cent.
const PEAK_WIDTH_REV: f64 = 0.021;
/// Initial distance of pairs as a share of the trace. A trace whose phase jumps several times still
/// has long segments without a jump.
const FIRST_GAP_SHARE_MAX: f64 = 1.0 / 8.0;
/// Maximum gap of the first pairs, in revolutions, because the number of scan steps grows with the
/// gap.
const FIRST_GAP_REV_MAX: f64 = 4096.0;
/// Maximum gap in revolutions, when the gap is doubled for lack of pairs.
const GAP_REV_MAX: f64 = 32_768.0;
/// Step of the first scan: rotation of the widest pair, in revolutions.
const SCAN_STEP_REV: f64 = 0.1;
/// Step of a skew correction: rotation of the widest pair, in revolutions.
const CORRECTION_STEP_REV: f64 = 0.4;
const CORRECTIONS_MAX: usize = 128;
/// Cylinder distances of pairs; a larger one is tried if the smaller ones yield too few pairs.
const CYLINDER_DISTANCES: [u32; 7] = [0, 1, 2, 4, 8, 16, 32];
const SUFFICIENT_PAIRS: usize = 2048;
const CLEAR_LOCK_NATS: f64 = 20.0;
const PAIRS_MAX: usize = 8192;
const PAIRS_MIN: usize = 64;
/// Number of transfer times that one refinement tries.
const TRANSFER_STEPS: usize = 64;
/// Share of the mean cosine that pairs with twice the gap must keep to be accepted.
const COSINE_SHARE_RETAINED: f64 = 0.96;
/// Number of parts in the jackknife estimate of the period's error.
const JACKKNIFE_PARTS: usize = 8;

/// Pairs after widening, with the motion that fits them.
struct WidenedPairs {
    pairs: ReferencePairs,
    motion: PlatterMotion,
    /// Longest time between the requests of a pair, in microseconds.
    gap_us: f64,
}

/// Highest sum of cosines over the skew corrections, in revolutions, that reach it.
#[derive(Clone, Copy)]
struct BestBin {
    cosine_sum: f64,
    track_skew: f64,
    cylinder_skew: f64,
}

impl BestBin {
    const NONE: Self = Self {
        cosine_sum: f64::NEG_INFINITY,
        track_skew: 0.0,
        cylinder_skew: 0.0,
    };
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct PlatterMotion {
    period_us: f64,
    transfer_us: f64,
    /// Track and cylinder skew of the drive minus those of the files, in revolutions.
    track_skew_change: f64,
    cylinder_skew_change: f64,
}

/// Rotation period that was found, with its significance.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeriodEstimate {
    pub(super) period_us: f64,
    pub(super) period_error_us: f64,
    pub(super) transfer_us: f64,
    pub(super) agreement: f64,
    pub(super) agreement_close: f64,
    pub(super) chance_agreement: f64,
    pub(super) chance_agreement_close: f64,
    /// Natural logarithm of an upper bound of the probability that noise reaches `r_close` in any
    /// trial of the search.
    pub(super) log_false_alarm_probability: f64,
    pub(super) reference_count: usize,
    pub(super) pair_count: usize,
}

/// Search for the period under one assumed position of the pauses.
pub(super) struct PeriodSearch<'r> {
    pub(super) references: &'r AngleReferences,
    pub(super) completions_us: &'r [f64],
    pub(super) assumptions: &'r PhaseAssumptions,
}

struct PeriodCandidate {
    pairs: ReferencePairs,
    gap_us_max: f64,
    cylinder_distance_max: u32,
    motion: PlatterMotion,
    trial_count: f64,
    evidence_nats: f64,
}

impl PeriodSearch<'_> {
    /// Finds the rotation period; `None` if there are too few pairs.
    pub(super) fn find_period(&self) -> Option<PeriodEstimate> {
        let (best, trials) = self.find_candidate()?;
        let close = best.pairs;
        let turning = self.refine_motion(&close.pairs, best.motion, best.gap_us_max);
        let r_close = mean_direction(&close.pairs, &turning);
        let WidenedPairs {
            pairs: wide,
            motion: turning,
            gap_us,
        } = self.widen_gap(&close, turning, best.gap_us_max, best.cylinder_distance_max);
        let r = mean_direction(&wide.pairs, &turning);
        Some(PeriodEstimate {
            period_us: turning.period_us,
            period_error_us: self.period_error_us(&wide.pairs, &turning, gap_us),
            transfer_us: turning.transfer_us,
            agreement: r.0.hypot(r.1),
            agreement_close: r_close.0,
            chance_agreement: chance_mean_cosine(wide.pairs.len(), wide.eigenvalue_max, trials),
            chance_agreement_close: chance_mean_cosine(
                close.pairs.len(),
                close.eigenvalue_max,
                trials,
            ),
            log_false_alarm_probability: trials.ln() - best.evidence_nats,
            reference_count: self.references.reference_count(),
            pair_count: wide.pairs.len(),
        })
    }

    /// Returns the best period from pairs on one cylinder if it is significant, otherwise from
    /// wider pairs, and the number of trials.
    fn find_candidate(&self) -> Option<(PeriodCandidate, f64)> {
        let gap_us = self.initial_gap_us()?;
        let mut best: Option<PeriodCandidate> = None;
        let mut trials = 0.0;
        for cylinders in CYLINDER_DISTANCES {
            let pairs = self.select_pairs(gap_us, cylinders);
            let count = pairs.pairs.len();
            if count < PAIRS_MIN {
                continue;
            }
            for transfer_us in [self.assumptions.transfer_us, 0.0] {
                let candidate = self.scan_candidate(pairs.clone(), gap_us, cylinders, transfer_us);
                trials += candidate.trial_count;
                if best
                    .as_ref()
                    .is_none_or(|best| candidate.evidence_nats > best.evidence_nats)
                {
                    best = Some(candidate);
                }
            }
            let is_enough =
                |best: &PeriodCandidate| best.evidence_nats - trials.ln() > CLEAR_LOCK_NATS;
            if count >= SUFFICIENT_PAIRS || best.as_ref().is_some_and(is_enough) {
                break;
            }
        }
        best.map(|best| (best, trials))
    }

    fn trace_span_us(&self) -> f64 {
        match (self.completions_us.first(), self.completions_us.last()) {
            (Some(first), Some(last)) => last - first,
            _ => 0.0,
        }
    }

    /// Returns the initial gap of pairs, a part of the trace that is enlarged if it has too few
    /// pairs.
    fn initial_gap_us(&self) -> Option<f64> {
        let nominal_us = self.assumptions.period_us;
        let span_us = self.trace_span_us();
        let mut gap_us = (FIRST_GAP_SHARE_MAX * span_us).min(FIRST_GAP_REV_MAX * nominal_us);
        let widest = CYLINDER_DISTANCES[CYLINDER_DISTANCES.len() - 1];
        while self.select_pairs(gap_us, widest).pairs.len() < PAIRS_MIN {
            if gap_us >= span_us || gap_us >= GAP_REV_MAX * nominal_us {
                return None;
            }
            gap_us *= 2.0;
        }
        Some(gap_us)
    }

    fn select_pairs(&self, gap_us: f64, cylinders: u32) -> ReferencePairs {
        self.references
            .select_pairs(self.completions_us, gap_us, cylinders, PAIRS_MAX)
    }

    fn scan_candidate(
        &self,
        pairs: ReferencePairs,
        gap_us: f64,
        cylinders: u32,
        transfer_us: f64,
    ) -> PeriodCandidate {
        let nominal_us = self.assumptions.period_us;
        // Frequencies in nominal ones.
        let (low, high) = (
            (1.0 + PEAK_WIDTH_REV).recip(),
            (1.0 - PEAK_WIDTH_REV).recip(),
        );
        let steps = ((high - low) * gap_us / nominal_us / SCAN_STEP_REV)
            .ceil()
            .max(2.0) as usize;
        let step = (high - low) / steps as f64;
        let corrections = SkewCorrections::new(&pairs.pairs);
        let mut terms: Vec<ScanTerm> = pairs
            .pairs
            .iter()
            .map(|pair| {
                let rev = pair.media_gap_us(transfer_us) / nominal_us;
                ScanTerm {
                    bin: corrections.bin_index(pair),
                    phasor: Phasor::from_revolutions(rev * low - pair.angle_difference),
                    phasor_step: Phasor::from_revolutions(rev * step),
                }
            })
            .collect();
        let (mut best, mut best_step) = (BestBin::NONE, 0);
        let mut sums = vec![Phasor::default(); corrections.bin_count()];
        for number in 0..=steps {
            sums.fill(Phasor::default());
            for term in &mut terms {
                sums[term.bin] = sums[term.bin].plus(term.phasor);
                term.phasor = term.phasor.times(term.phasor_step);
            }
            let bin = corrections.best_bin(&sums);
            if bin.cosine_sum > best.cosine_sum {
                (best, best_step) = (bin, number);
            }
        }
        PeriodCandidate {
            gap_us_max: gap_us,
            cylinder_distance_max: cylinders,
            motion: PlatterMotion {
                period_us: nominal_us / (low + step * best_step as f64),
                transfer_us,
                track_skew_change: best.track_skew,
                cylinder_skew_change: best.cylinder_skew,
            },
            trial_count: 2.0 * (steps + 1) as f64 * corrections.trial_count(),
            evidence_nats: evidence_nats(best.cosine_sum, pairs.pairs.len(), pairs.eigenvalue_max),
            pairs,
        }
    }

    /// Refines period, transfer time and skews to the best agreement of pairs.
    fn refine_motion(
        &self,
        pairs: &[ReferencePair],
        from: PlatterMotion,
        gap_us: f64,
    ) -> PlatterMotion {
        let mut turning = from;
        let mut width = SCAN_STEP_REV * self.assumptions.period_us / gap_us;
        let (mut track, mut cylinder) = (
            CORRECTION_STEP_REV / distance_max(pairs, |pair| pair.track_distance.unsigned_abs()),
            CORRECTION_STEP_REV / distance_max(pairs, |pair| pair.cylinder_distance),
        );
        for _ in 0..3 {
            turning.transfer_us = self.best_transfer_us(pairs, &turning);
            turning.period_us = best_period(pairs, &turning, width);
            turning.track_skew_change =
                best_value(turning.track_skew_change, track, 20, |track_skew| {
                    pairs_mean_cosine(
                        pairs,
                        &PlatterMotion {
                            track_skew_change: track_skew,
                            ..turning
                        },
                    )
                });
            turning.cylinder_skew_change = best_value(
                turning.cylinder_skew_change,
                cylinder,
                20,
                |cylinder_skew| {
                    pairs_mean_cosine(
                        pairs,
                        &PlatterMotion {
                            cylinder_skew_change: cylinder_skew,
                            ..turning
                        },
                    )
                },
            );
            (width, track, cylinder) = (width / 3.0, track / 3.0, cylinder / 3.0);
        }
        turning
    }

    /// Widens the gap of pairs as long as they still agree, because wider pairs determine the
    /// period more exactly.
    fn widen_gap(
        &self,
        close: &ReferencePairs,
        turning: PlatterMotion,
        gap_us: f64,
        cylinders: u32,
    ) -> WidenedPairs {
        let cosine_min = COSINE_SHARE_RETAINED * pairs_mean_cosine(&close.pairs, &turning);
        let mut widest = WidenedPairs {
            pairs: close.clone(),
            motion: turning,
            gap_us,
        };
        let span_us = self.trace_span_us();
        while widest.gap_us < span_us {
            let width = 0.2 * self.assumptions.period_us / widest.gap_us;
            let gap_us = (2.0 * widest.gap_us).min(span_us);
            let pairs = self.select_pairs(gap_us, cylinders);
            let mut motion = widest.motion;
            motion.period_us = best_period(&pairs.pairs, &motion, width);
            motion.period_us = best_period(&pairs.pairs, &motion, width / 20.0);
            if pairs_mean_cosine(&pairs.pairs, &motion) < cosine_min {
                break;
            }
            widest = WidenedPairs {
                pairs,
                motion,
                gap_us,
            };
        }
        widest
    }

    /// Returns the transfer time with the highest mean cosine. Pairs of unequal request lengths
    /// reveal it.
    fn best_transfer_us(&self, pairs: &[ReferencePair], turning: &PlatterMotion) -> f64 {
        let sector_us = self
            .assumptions
            .transfer_us
            .max(self.assumptions.period_us / 200.0);
        let score = |transfer_us: f64| {
            let transfer_us = transfer_us.max(0.0);
            pairs_mean_cosine(
                pairs,
                &PlatterMotion {
                    transfer_us,
                    ..*turning
                },
            )
        };
        let coarse = best_value(sector_us, sector_us, TRANSFER_STEPS, score);
        best_value(
            coarse,
            2.0 * sector_us / TRANSFER_STEPS as f64,
            TRANSFER_STEPS,
            score,
        )
        .max(0.0)
    }

    /// Returns the standard error of the period by a jackknife over parts of the drive.
    fn period_error_us(
        &self,
        pairs: &[ReferencePair],
        turning: &PlatterMotion,
        gap_us: f64,
    ) -> f64 {
        let width = 0.04 * self.assumptions.period_us / gap_us;
        let without = |part: usize| {
            let rest: Vec<ReferencePair> = pairs
                .iter()
                .filter(|pair| pair.jackknife_part % JACKKNIFE_PARTS != part)
                .copied()
                .collect();
            best_period(&rest, turning, width)
        };
        let periods: Vec<f64> = (0..JACKKNIFE_PARTS).map(without).collect();
        let mean = periods.iter().sum::<f64>() / JACKKNIFE_PARTS as f64;
        let squares: f64 = periods.iter().map(|period| (period - mean).powi(2)).sum();
        (squares * (JACKKNIFE_PARTS - 1) as f64 / JACKKNIFE_PARTS as f64).sqrt()
    }
}

/// Pair during a scan: its bin, its current direction and the rotation per step.
struct ScanTerm {
    bin: usize,
    phasor: Phasor,
    phasor_step: Phasor,
}

/// Corrections of track and cylinder skew that a scan combines with each period.
struct SkewCorrections {
    tracks_max: i32,
    cylinder_step_count: usize,
    track_skews: Vec<f64>,
    cylinder_skews: Vec<f64>,
    /// Rotation of each bin by each correction; the bins of a correction are contiguous.
    track_phasors: Vec<Phasor>,
    cylinder_phasors: Vec<Phasor>,
}

impl SkewCorrections {
    fn new(pairs: &[ReferencePair]) -> SkewCorrections {
        let tracks = pairs
            .iter()
            .map(|pair| pair.track_distance.unsigned_abs())
            .max();
        let cylinders = pairs.iter().map(|pair| pair.cylinder_distance).max();
        let (tracks_max, cylinders) = (tracks.unwrap_or(0), cylinders.unwrap_or(0));
        let (track_skews, cylinder_skews) = (skew_steps(tracks_max), skew_steps(cylinders));
        let turns = |skews: &[f64], bins: std::ops::RangeInclusive<i32>| {
            let of_skew = |skew: &f64| {
                let skew = *skew;
                bins.clone()
                    .map(move |bin| Phasor::from_revolutions(-f64::from(bin) * skew))
            };
            skews.iter().flat_map(of_skew).collect::<Vec<Phasor>>()
        };
        let tracks_max = tracks_max as i32;
        SkewCorrections {
            track_phasors: turns(&track_skews, -tracks_max..=tracks_max),
            cylinder_phasors: turns(&cylinder_skews, 0..=cylinders as i32),
            tracks_max,
            cylinder_step_count: cylinders as usize + 1,
            track_skews,
            cylinder_skews,
        }
    }

    fn track_count(&self) -> usize {
        2 * self.tracks_max as usize + 1
    }

    fn bin_count(&self) -> usize {
        self.track_count() * self.cylinder_step_count
    }

    fn trial_count(&self) -> f64 {
        (self.track_skews.len() * self.cylinder_skews.len()) as f64
    }

    fn bin_index(&self, pair: &ReferencePair) -> usize {
        pair.cylinder_distance as usize * self.track_count()
            + (pair.track_distance + self.tracks_max) as usize
    }

    /// Returns the highest sum of cosines, with the corrections of track and cylinder skew that
    /// reach it.
    fn best_bin(&self, sums: &[Phasor]) -> BestBin {
        let mut best = BestBin::NONE;
        let mut by_cylinder = vec![Phasor::default(); self.cylinder_step_count];
        for (track_skew, turns) in self
            .track_skews
            .iter()
            .zip(self.track_phasors.chunks(self.track_count()))
        {
            for (sum, bins) in by_cylinder.iter_mut().zip(sums.chunks(self.track_count())) {
                *sum = bins
                    .iter()
                    .zip(turns)
                    .fold(Phasor::default(), |sum, (bin, turn)| {
                        sum.plus(bin.times(*turn))
                    });
            }
            for (cylinder_skew, turns) in self
                .cylinder_skews
                .iter()
                .zip(self.cylinder_phasors.chunks(self.cylinder_step_count))
            {
                let sum: f64 = by_cylinder
                    .iter()
                    .zip(turns)
                    .map(|(sum, turn)| sum.real * turn.real - sum.imaginary * turn.imaginary)
                    .sum();
                if sum > best.cosine_sum {
                    best = BestBin {
                        cosine_sum: sum,
                        track_skew: *track_skew,
                        cylinder_skew: *cylinder_skew,
                    };
                }
            }
        }
        best
    }
}

/// Returns the corrections of a skew over a whole revolution; only 0 if no pair shows the skew.
fn skew_steps(widest: u32) -> Vec<f64> {
    let steps = match widest {
        0 => 1,
        _ => (f64::from(widest) / CORRECTION_STEP_REV).ceil().max(4.0) as usize,
    };
    let steps = steps.min(CORRECTIONS_MAX);
    (0..steps).map(|step| step as f64 / steps as f64).collect()
}

fn distance_max(pairs: &[ReferencePair], of: impl Fn(&ReferencePair) -> u32) -> f64 {
    f64::from(pairs.iter().map(of).max().unwrap_or(0).max(1))
}

/// Returns the mean cosine and sine of the residual angles of request pairs, after whole
/// revolutions and the angle between their blocks are removed.
fn mean_direction(pairs: &[ReferencePair], turning: &PlatterMotion) -> (f64, f64) {
    let mut sum = Phasor::default();
    for pair in pairs {
        let turns = pair.media_gap_us(turning.transfer_us) / turning.period_us
            - pair.angle_difference
            - f64::from(pair.track_distance) * turning.track_skew_change
            - f64::from(pair.cylinder_distance) * turning.cylinder_skew_change;
        sum = sum.plus(Phasor::from_revolutions(turns));
    }
    let count = pairs.len().max(1) as f64;
    (sum.real / count, sum.imaginary / count)
}

fn pairs_mean_cosine(pairs: &[ReferencePair], turning: &PlatterMotion) -> f64 {
    mean_direction(pairs, turning).0
}

/// Returns the rotation period with the highest agreement (mean cosine) of request pairs near a
/// given one. The width is a share of the period.
fn best_period(pairs: &[ReferencePair], turning: &PlatterMotion, width: f64) -> f64 {
    best_value(
        turning.period_us,
        width * turning.period_us,
        40,
        |period_us| {
            pairs_mean_cosine(
                pairs,
                &PlatterMotion {
                    period_us,
                    ..*turning
                },
            )
        },
    )
}

/// Finds the maximum of a score near a value: on a grid first, then between grid points by a
/// parabola.
fn best_value(around: f64, width: f64, steps: usize, score: impl Fn(f64) -> f64) -> f64 {
    let step = width / steps as f64;
    let at = |number: usize| around + (number as f64 - steps as f64) * step;
    let scores: Vec<f64> = (0..=2 * steps).map(|number| score(at(number))).collect();
    let highest = (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    let highest = highest.unwrap_or(steps);
    if highest == 0 || highest == 2 * steps {
        return at(highest);
    }
    // The vertex of the parabola through three scores.
    let (left, middle, right) = (scores[highest - 1], scores[highest], scores[highest + 1]);
    let bend = left - 2.0 * middle + right;
    match bend < 0.0 {
        true => at(highest) + 0.5 * step * (left - right) / bend,
        false => at(highest),
    }
}
