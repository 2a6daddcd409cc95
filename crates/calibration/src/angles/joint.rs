//! Joint least-squares fit of all angles and the period, with trimming of outliers.

use super::scan::{PlatterReference, mean_direction};
use super::{
    AngleSource, CROSSING_PARAMETER, FittedAngles, FittedSkews, PhaseSegments, ReferenceTiming,
    angle_parameter, wrap_revolutions,
};
use crate::FittedParameter;
use crate::linear::{NormalEquations, Solution};

const FIT_ROUNDS: usize = 12;
/// Residuals above this number of standard deviations are trimmed.
const TRIM_DEVIATIONS: f64 = 3.0;
/// Largest residual angle of a request that counts in the fit, in revolutions.
const RESIDUAL_REV_MAX: f64 = 0.15;
/// Number of standard errors within which a zone's origin counts as equal to that of the other
/// zones.
const SHARED_ORIGIN_DEVIATIONS: f64 = 3.0;

struct UnknownLayout {
    zone_count: usize,
    is_origin_shared: bool,
    has_ranges: bool,
    has_skews: bool,
    segment_count: usize,
    has_crossing: bool,
}

impl UnknownLayout {
    const FREQUENCY_INDEX: usize = 0;
    const TRACK_SKEW_INDEX: usize = 1;
    const CYLINDER_SKEW_INDEX: usize = 2;
    /// Bus transfer of a block, in revolutions.
    const CROSSING_INDEX: usize = 3;
    const FIRST_ORIGIN_INDEX: usize = 4;

    fn count(&self) -> usize {
        self.segment_index(self.segment_count)
    }

    /// Returns the index of the turn of a segment; the first segment has none.
    fn segment_index(&self, index: usize) -> usize {
        Self::FIRST_ORIGIN_INDEX + 2 * self.zone_count.max(1) + index - 1
    }

    fn range_step_index(&self, zone: usize) -> usize {
        Self::FIRST_ORIGIN_INDEX + self.zone_count.max(1) + zone
    }

    fn origin_index(&self, zone: usize) -> usize {
        if self.is_origin_shared {
            Self::FIRST_ORIGIN_INDEX
        } else {
            Self::FIRST_ORIGIN_INDEX + zone
        }
    }

    /// Returns the derivatives of the model's angle minus the platter's angle with respect to each
    /// unknown.
    fn derivative_row(
        &self,
        reference: &PlatterReference,
        state: &JointFitState,
    ) -> Vec<(usize, f64)> {
        let mut row = vec![
            // The frequency in parts of itself.
            (
                Self::FREQUENCY_INDEX,
                -reference.completion_us / state.period_us,
            ),
        ];
        let blocks = reference.crossing_blocks(state.period_us, state.crossing_us);
        if self.has_crossing && blocks > 0.0 {
            row.push((Self::CROSSING_INDEX, blocks));
        }
        match state
            .phase_segments
            .segment_index_at(reference.completion_us)
        {
            0 => (),
            later => row.push((self.segment_index(later), 1.0)),
        }
        match reference.block_address.in_zone.filter(|_| self.has_skews) {
            Some(at) => {
                row.push((Self::TRACK_SKEW_INDEX, at.track_in_range.into()));
                row.push((Self::CYLINDER_SKEW_INDEX, at.cylinder_in_zone.into()));
                row.push((self.origin_index(at.zone_index), 1.0));
                if self.has_ranges {
                    row.push((self.range_step_index(at.zone_index), at.range_index.into()));
                }
            }
            None => row.push((Self::FIRST_ORIGIN_INDEX, 1.0)),
        }
        row
    }
}

struct JointFitState {
    period_us: f64,
    crossing_us: f64,
    angles: AngleSource,
    constant_angle: f64,
    phase_segments: PhaseSegments,
}

impl JointFitState {
    fn residual_revolutions(&self, reference: &PlatterReference) -> f64 {
        let platter = reference.first_block_rev(self.period_us, self.crossing_us);
        let turned = self.phase_segments.phase_shift_at(reference.completion_us);
        wrap_revolutions(
            platter
                - self.angles.block_angle(&reference.block_address)
                - self.constant_angle
                - turned,
        )
    }

    fn apply_solution(&mut self, unknowns: &UnknownLayout, solved: &[f64]) {
        self.period_us /= 1.0 + solved[UnknownLayout::FREQUENCY_INDEX];
        self.crossing_us += solved[UnknownLayout::CROSSING_INDEX] * self.period_us;
        let later = 1..unknowns.segment_count;
        self.phase_segments
            .add_phase_shifts(later.map(|index| solved[unknowns.segment_index(index)]));
        match &mut self.angles {
            AngleSource::FromFile => {
                self.constant_angle += solved[UnknownLayout::FIRST_ORIGIN_INDEX]
            }
            AngleSource::Fitted(skews) => {
                skews.track_skew += solved[UnknownLayout::TRACK_SKEW_INDEX];
                skews.cylinder_skew += solved[UnknownLayout::CYLINDER_SKEW_INDEX];
                for zone in 0..unknowns.zone_count {
                    skews.zone_origins[zone] += solved[unknowns.origin_index(zone)];
                    skews.spare_range_steps[zone] += solved[unknowns.range_step_index(zone)];
                }
            }
        }
    }
}

/// Refines approximate angles, the period and, unless it is known, the bus transfer of a block.
/// Angles from the drive's files stay fixed.
pub(super) fn refine_angles(
    references: &[PlatterReference],
    angles: &AngleSource,
    stretches: PhaseSegments,
    timing: ReferenceTiming,
) -> FittedAngles {
    let (period_us, crossing_us) = (timing.period_us, timing.crossing_us);
    let turned = references.iter().map(|reference| {
        reference.first_block_rev(period_us, crossing_us)
            - angles.block_angle(&reference.block_address)
            - stretches.phase_shift_at(reference.completion_us)
    });
    let constant = match angles {
        AngleSource::FromFile => mean_direction(turned).map_or(0.0, |mean| mean.0),
        AngleSource::Fitted(_) => 0.0,
    };
    let zones = match angles {
        AngleSource::FromFile => 0,
        AngleSource::Fitted(skews) => skews.zone_origins.len(),
    };
    let mut unknowns = UnknownLayout {
        zone_count: zones,
        is_origin_shared: false,
        has_skews: zones > 0,
        segment_count: stretches.count(),
        has_crossing: !timing.is_crossing_known,
        has_ranges: references
            .iter()
            .any(|r| r.block_address.in_zone.is_some_and(|at| at.range_index > 0)),
    };
    let start = || JointFitState {
        period_us,
        crossing_us,
        angles: angles.clone(),
        constant_angle: constant,
        phase_segments: stretches.clone(),
    };
    let mut state = start();
    let (mut solution, mut deviation) = solve_step(references, &unknowns, &mut state);
    if let Some(origin) = find_shared_origin(&unknowns, &state, &solution, deviation) {
        unknowns.is_origin_shared = true;
        if let AngleSource::Fitted(skews) = &mut state.angles {
            skews.zone_origins.fill(origin);
        }
        (solution, deviation) = solve_step(references, &unknowns, &mut state);
    }
    let left = references
        .iter()
        .map(|reference| state.residual_revolutions(reference));
    let r = mean_direction(left).map_or(0.0, |mean| mean.1);
    let parameters = to_parameters(&unknowns, &state, &solution, deviation);
    FittedAngles {
        angles: state.angles,
        period_us: state.period_us,
        crossing_us: state.crossing_us,
        parameters,
        agreement: r,
        phase_segments: state.phase_segments,
    }
}

/// Solves in rounds; returns the solution and the standard deviation of the residuals.
fn solve_step(
    references: &[PlatterReference],
    unknowns: &UnknownLayout,
    state: &mut JointFitState,
) -> (Solution, f64) {
    let mut limit = RESIDUAL_REV_MAX;
    let mut last = (
        Solution {
            values: vec![],
            variances: vec![0.0; unknowns.count()],
        },
        0.0,
    );
    for _ in 0..FIT_ROUNDS {
        let mut normal = NormalEquations::new(unknowns.count());
        let (mut squares, mut count) = (0.0, 0usize);
        for reference in references {
            let residual = state.residual_revolutions(reference);
            if residual.abs() <= limit {
                normal.add(&unknowns.derivative_row(reference, state), residual, 1.0);
                (squares, count) = (squares + residual * residual, count + 1);
            }
        }
        let solution = normal.solve();
        state.apply_solution(unknowns, &solution.values);
        let deviation = (squares / count.max(1) as f64).sqrt();
        limit = (TRIM_DEVIATIONS * deviation).clamp(0.01, RESIDUAL_REV_MAX);
        last = (solution, deviation);
    }
    last
}

/// Returns the common origin of all zones, if the individual origins agree within their errors.
fn find_shared_origin(
    unknowns: &UnknownLayout,
    state: &JointFitState,
    solution: &Solution,
    deviation: f64,
) -> Option<f64> {
    let AngleSource::Fitted(FittedSkews {
        zone_origins: origins,
        ..
    }) = &state.angles
    else {
        return None;
    };
    let (mean, _) = mean_direction(origins.iter().copied())?;
    let near = |zone: usize| {
        let error = deviation * solution.variances[unknowns.origin_index(zone)].sqrt();
        wrap_revolutions(origins[zone] - mean).abs() <= SHARED_ORIGIN_DEVIATIONS * error + 0.01
    };
    (0..origins.len()).all(near).then_some(mean)
}

fn to_parameters(
    unknowns: &UnknownLayout,
    state: &JointFitState,
    solution: &Solution,
    deviation: f64,
) -> Vec<FittedParameter> {
    let error = |unknown: usize| deviation * solution.variances[unknown].sqrt();
    let mut all = vec![FittedParameter::with_standard_error(
        "spindle.period_us",
        state.period_us,
        state.period_us * error(UnknownLayout::FREQUENCY_INDEX),
    )];
    let crossing_error = error(UnknownLayout::CROSSING_INDEX);
    if crossing_error > 0.0 {
        all.push(FittedParameter::with_standard_error(
            CROSSING_PARAMETER,
            state.crossing_us,
            state.period_us * crossing_error,
        ));
    }
    let AngleSource::Fitted(skews) = &state.angles else {
        return all;
    };
    let mut angle = |name: String, value: f64, unknown: usize| {
        all.push(angle_parameter(name, value, error(unknown)));
    };
    angle(
        "angles.track_skew_rev".to_owned(),
        skews.track_skew,
        UnknownLayout::TRACK_SKEW_INDEX,
    );
    angle(
        "angles.cylinder_skew_rev".to_owned(),
        skews.cylinder_skew,
        UnknownLayout::CYLINDER_SKEW_INDEX,
    );
    // The first origin is the time's, which a closed loop does not need.
    let own_origins = if unknowns.is_origin_shared {
        0
    } else {
        unknowns.zone_count
    };
    for zone in 1..own_origins {
        let origin = skews.zone_origins[zone] - skews.zone_origins[0];
        angle(
            format!("angles.zone_{zone}.origin_rev"),
            origin,
            unknowns.origin_index(zone),
        );
    }
    for zone in (0..unknowns.zone_count).filter(|_| unknowns.has_ranges) {
        angle(
            format!("angles.zone_{zone}.range_step_rev"),
            skews.spare_range_steps[zone],
            unknowns.range_step_index(zone),
        );
    }
    all
}
