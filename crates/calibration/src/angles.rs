//! Angles of the sectors on the platters. The skews in a drive's files are rounded to sectors, and
//! their zone origins often differ from those of the drive.

mod joint;
mod scan;
mod stretches;

use crate::parameter::FittedParameter;
use crate::places::BlockAddress;
use scan::ScanScope;
pub(crate) use scan::{PlatterReference, densest_direction};
pub(crate) use stretches::PhaseSegments;
use stretches::{PhaseSample, align_phases, phase_agreement};

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum AngleSource {
    /// Sector angles from the drive's files.
    #[default]
    FromFile,
    /// Fitted skews, each one angle for all zones.
    Fitted(FittedSkews),
}

/// Track and cylinder skews in revolutions, with zone origins.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FittedSkews {
    /// Skew from a track to the next track of its cylinder.
    pub track_skew: f64,
    /// Skew from the first track of a cylinder to that of the next cylinder.
    pub cylinder_skew: f64,
    /// Angle of the first sector of each zone.
    pub zone_origins: Vec<f64>,
    /// Additional angle from one spare range of cylinders to the next, for each zone.
    pub spare_range_steps: Vec<f64>,
}

impl AngleSource {
    /// Returns the angle of a block's place, in revolutions.
    pub(crate) fn block_angle(&self, place: &BlockAddress) -> f64 {
        match (self, place.in_zone) {
            (AngleSource::Fitted(skews), Some(at)) => {
                skews.zone_origins[at.zone_index]
                    + f64::from(at.track_in_range) * skews.track_skew
                    + f64::from(at.cylinder_in_zone) * skews.cylinder_skew
                    + f64::from(at.range_index) * skews.spare_range_steps[at.zone_index]
                    + at.angle_in_zone
            }
            _ => place.specified_angle,
        }
    }
}

/// Rotation period and sector angles that a trace reveals.
#[derive(Clone, Debug, Default)]
pub(crate) struct FittedAngles {
    pub(crate) angles: AngleSource,
    pub(crate) period_us: f64,
    pub(crate) crossing_us: f64,
    pub(crate) parameters: Vec<FittedParameter>,
    /// Agreement of all references (R) with the fitted angles; 1 if all agree.
    pub(crate) agreement: f64,
    pub(crate) phase_segments: PhaseSegments,
}

/// Name of the bus transfer time of a block.
pub(crate) const CROSSING_PARAMETER: &str = "bus.read_block_us";

/// Times by which a completion reveals the position of the platter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReferenceTiming {
    pub(crate) period_us: f64,
    /// Transfer time of a block on the bus, in microseconds.
    pub(crate) crossing_us: f64,
    /// Whether other requests show the transfer time. Otherwise the angles do.
    pub(crate) is_crossing_known: bool,
}

/// Finds the sector angles from requests that waited for the platter.
pub(crate) fn find_angles(
    references: &[PlatterReference],
    zones: usize,
    surfaces: u32,
    start: ReferenceTiming,
) -> FittedAngles {
    let filed = refine_period(references, AngleSource::FromFile, start);
    let skews = |found: &FittedAngles, gap_share: f64| {
        let on = ScanScope {
            zone_count: zones,
            surface_count: surfaces,
            gap_share_max: gap_share,
            initial_skews: (found.period_us, found.crossing_us),
        };
        scan::estimate_skews(references, &found.phase_segments, &on)
    };
    let unknown = FittedAngles {
        period_us: start.period_us,
        crossing_us: start.crossing_us,
        ..FittedAngles::default()
    };
    // Pairs close in time are on one stretch; with the stretches known, all may be paired.
    let close = skews(&unknown, PAIR_GAP_SHARE_MAX);
    let close = close.map(|skews| refine_period(references, AngleSource::Fitted(skews), start));
    let wide = skews(close.as_ref().unwrap_or(&unknown), 1.0);
    let wide = wide.map(|skews| refine_period(references, AngleSource::Fitted(skews), start));
    let fitted = [close, wide].into_iter().flatten();
    // The files' skews hold if they explain as much: they are not fitted.
    fitted.fold(filed, |best, found| {
        if found.agreement > best.agreement {
            found
        } else {
            best
        }
    })
}

/// Initial distance of pairs as a share of the trace, whose phase may jump several times.
const PAIR_GAP_SHARE_MAX: f64 = 1.0 / 8.0;
/// Rounds that alternate between trace segments of constant phase for a rotation period, and the
/// period for these segments.
const REFINEMENT_ROUNDS: usize = 6;
/// Number of periods tried on both sides of the first one, and their distance in revolutions over
/// the trace. A phase jump may look like a slower spindle, so the first period may be wrong by as
/// much as its pairs, an eighth of the trace apart, can hide.
const NEARBY_PERIODS: i32 = 32;
const PERIOD_STEP_REV: f64 = 0.1;
/// Minimum log likelihood gain of a phase jump, in nats.
const JUMP_NATS: f64 = 15.0;

/// Finds phase jumps, and refines angles and period.
fn refine_period(
    references: &[PlatterReference],
    angles: AngleSource,
    start: ReferenceTiming,
) -> FittedAngles {
    let first = (start.period_us, start.crossing_us);
    let mut timing = ReferenceTiming {
        period_us: most_likely_period_us(references, &angles, first),
        ..start
    };
    let mut stretches = None;
    let mut rounds = 0;
    loop {
        let (angles, aligned) =
            align_stretches(references, &angles, (timing.period_us, timing.crossing_us));
        let is_settled = stretches.as_ref() == Some(&aligned.count());
        stretches = Some(aligned.count());
        let found = joint::refine_angles(references, &angles, aligned, timing);
        rounds += 1;
        if is_settled || rounds == REFINEMENT_ROUNDS {
            return found;
        }
        (timing.period_us, timing.crossing_us) = (found.period_us, found.crossing_us);
    }
}

/// Returns the rotation period for which a few trace segments of constant phase agree best.
fn most_likely_period_us(
    references: &[PlatterReference],
    angles: &AngleSource,
    (period_us, crossing_us): (f64, f64),
) -> f64 {
    let (Some(first), Some(last)) = (references.first(), references.last()) else {
        return period_us;
    };
    let span_rev = ((last.completion_us - first.completion_us) / period_us).max(1.0);
    let zones = match angles {
        AngleSource::FromFile => 1,
        AngleSource::Fitted(skews) => skews.zone_origins.len(),
    };
    let tried = |step: i32| period_us * (1.0 + f64::from(step) * PERIOD_STEP_REV / span_rev);
    let unlikely = |step: &i32| {
        let samples = to_samples(references, angles, (tried(*step), crossing_us));
        let (r, jumps) = phase_agreement(&samples, zones);
        samples.len() as f64 * (1.0 - r).max(1e-4).ln() + JUMP_NATS * jumps as f64
    };
    // The first period is the first of those that are as likely.
    let steps = (0..=NEARBY_PERIODS).flat_map(|step| [step, -step]);
    let scored = steps.map(|step| (unlikely(&step), step));
    let best = scored.min_by(|a, b| a.0.total_cmp(&b.0));
    tried(best.map_or(0, |best| best.1))
}

fn to_samples(
    references: &[PlatterReference],
    angles: &AngleSource,
    (period_us, crossing_us): (f64, f64),
) -> Vec<PhaseSample> {
    let sample = |reference: &PlatterReference| PhaseSample {
        completion_us: reference.completion_us,
        zone: match angles {
            AngleSource::FromFile => 0,
            AngleSource::Fitted(_) => reference
                .block_address
                .in_zone
                .map_or(0, |at| at.zone_index),
        },
        phase: reference.first_block_rev(period_us, crossing_us)
            - angles.block_angle(&reference.block_address),
    };
    references.iter().map(sample).collect()
}

/// Returns the angles with zone origins, and the segments of the trace with constant phase.
fn align_stretches(
    references: &[PlatterReference],
    angles: &AngleSource,
    start: (f64, f64),
) -> (AngleSource, PhaseSegments) {
    let samples = to_samples(references, angles, start);
    match angles {
        AngleSource::FromFile => (
            AngleSource::FromFile,
            align_phases(&samples, 1).phase_segments,
        ),
        AngleSource::Fitted(skews) => {
            let mut skews = skews.clone();
            let aligned = align_phases(&samples, skews.zone_origins.len());
            let known = aligned.zone_origins.iter().flatten().next().copied();
            for (origin, found) in skews.zone_origins.iter_mut().zip(aligned.zone_origins) {
                *origin += found.or(known).unwrap_or(0.0);
            }
            (AngleSource::Fitted(skews), aligned.phase_segments)
        }
    }
}

/// Wraps an angle to within half a revolution of 0.
pub(crate) fn wrap_revolutions(turns: f64) -> f64 {
    turns - turns.round()
}

fn angle_parameter(name: String, value: f64, error: f64) -> FittedParameter {
    FittedParameter::with_standard_error(name, value.rem_euclid(1.0), error)
}
