//! Joint least-squares fit of all angles and the period, with trimming of outliers.

use super::scan::{Reference, mean_direction};
use super::{Angles, FittedAngles, Skews, Stretches, angle_parameter, wrapped};
use crate::Parameter;
use crate::linear::{NormalEquations, Solution};

const FIT_ROUNDS: usize = 12;
/// Residuals above this number of standard deviations are trimmed.
const TRIM_DEVIATIONS: f64 = 3.0;
/// Largest residual angle of a request that counts in the fit, in revolutions.
const RESIDUAL_REV_MAX: f64 = 0.15;
/// Number of standard errors within which a zone's origin counts as equal to that of the other
/// zones.
const SHARED_ORIGIN_DEVIATIONS: f64 = 3.0;

struct Unknowns {
    zones: usize,
    one_origin: bool,
    has_ranges: bool,
    has_skews: bool,
    stretches: usize,
}

impl Unknowns {
    const FREQUENCY: usize = 0;
    const TRACK: usize = 1;
    const CYLINDER: usize = 2;
    const ORIGINS: usize = 3;

    fn count(&self) -> usize {
        self.stretch(self.stretches)
    }

    /// Returns the index of the turn of a segment; the first segment has none.
    fn stretch(&self, index: usize) -> usize {
        Self::ORIGINS + 2 * self.zones.max(1) + index - 1
    }

    fn range_step(&self, zone: usize) -> usize {
        Self::ORIGINS + self.zones.max(1) + zone
    }

    fn origin(&self, zone: usize) -> usize {
        if self.one_origin {
            Self::ORIGINS
        } else {
            Self::ORIGINS + zone
        }
    }

    /// Returns the derivatives of the model's angle minus the platter's angle with respect to each
    /// unknown.
    fn row(&self, reference: &Reference, state: &State) -> Vec<(usize, f64)> {
        let mut row = vec![
            // The frequency in parts of itself.
            (Self::FREQUENCY, -reference.completion_us / state.period_us),
        ];
        match state.stretches.index_at(reference.completion_us) {
            0 => (),
            later => row.push((self.stretch(later), 1.0)),
        }
        match reference.place.in_zone.filter(|_| self.has_skews) {
            Some(at) => {
                row.push((Self::TRACK, at.track_in_range.into()));
                row.push((Self::CYLINDER, at.cylinder_in_zone.into()));
                row.push((self.origin(at.zone_index), 1.0));
                if self.has_ranges {
                    row.push((self.range_step(at.zone_index), at.range_index.into()));
                }
            }
            None => row.push((Self::ORIGINS, 1.0)),
        }
        row
    }
}

struct State {
    period_us: f64,
    crossing_us: f64,
    angles: Angles,
    constant: f64,
    stretches: Stretches,
}

impl State {
    fn residual(&self, reference: &Reference) -> f64 {
        let platter = reference.first_block_rev(self.period_us, self.crossing_us);
        let turned = self.stretches.turned_at(reference.completion_us);
        wrapped(platter - self.angles.angle_of(&reference.place) - self.constant - turned)
    }

    fn add(&mut self, unknowns: &Unknowns, solved: &[f64]) {
        self.period_us /= 1.0 + solved[Unknowns::FREQUENCY];
        let later = 1..unknowns.stretches;
        self.stretches
            .turn(later.map(|index| solved[unknowns.stretch(index)]));
        match &mut self.angles {
            Angles::FromFile => self.constant += solved[Unknowns::ORIGINS],
            Angles::Fitted(skews) => {
                skews.track += solved[Unknowns::TRACK];
                skews.cylinder += solved[Unknowns::CYLINDER];
                for zone in 0..unknowns.zones {
                    skews.origins[zone] += solved[unknowns.origin(zone)];
                    skews.range_steps[zone] += solved[unknowns.range_step(zone)];
                }
            }
        }
    }
}

/// Refines approximate angles and the period. Angles from the drive's files stay fixed and only the
/// period changes.
pub(super) fn refine(
    references: &[Reference],
    angles: &Angles,
    stretches: Stretches,
    (period_us, crossing_us): (f64, f64),
) -> FittedAngles {
    let turned = references.iter().map(|reference| {
        reference.first_block_rev(period_us, crossing_us)
            - angles.angle_of(&reference.place)
            - stretches.turned_at(reference.completion_us)
    });
    let constant = match angles {
        Angles::FromFile => mean_direction(turned).map_or(0.0, |mean| mean.0),
        Angles::Fitted(_) => 0.0,
    };
    let zones = match angles {
        Angles::FromFile => 0,
        Angles::Fitted(skews) => skews.origins.len(),
    };
    let mut unknowns = Unknowns {
        zones,
        one_origin: false,
        has_skews: zones > 0,
        stretches: stretches.count(),
        has_ranges: references
            .iter()
            .any(|r| r.place.in_zone.is_some_and(|at| at.range_index > 0)),
    };
    let start = || State {
        period_us,
        crossing_us,
        angles: angles.clone(),
        constant,
        stretches: stretches.clone(),
    };
    let mut state = start();
    let (mut solution, mut deviation) = solve(references, &unknowns, &mut state);
    if let Some(origin) = shared_origin(&unknowns, &state, &solution, deviation) {
        unknowns.one_origin = true;
        if let Angles::Fitted(skews) = &mut state.angles {
            skews.origins.fill(origin);
        }
        (solution, deviation) = solve(references, &unknowns, &mut state);
    }
    let left = references.iter().map(|reference| state.residual(reference));
    let r = mean_direction(left).map_or(0.0, |mean| mean.1);
    let parameters = to_parameters(&unknowns, &state, &solution, deviation);
    FittedAngles {
        angles: state.angles,
        period_us: state.period_us,
        parameters,
        r,
        stretches: state.stretches,
    }
}

/// Solves in rounds; returns the solution and the standard deviation of the residuals.
fn solve(references: &[Reference], unknowns: &Unknowns, state: &mut State) -> (Solution, f64) {
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
            let residual = state.residual(reference);
            if residual.abs() <= limit {
                normal.add(&unknowns.row(reference, state), residual, 1.0);
                (squares, count) = (squares + residual * residual, count + 1);
            }
        }
        let solution = normal.solve();
        state.add(unknowns, &solution.values);
        let deviation = (squares / count.max(1) as f64).sqrt();
        limit = (TRIM_DEVIATIONS * deviation).clamp(0.01, RESIDUAL_REV_MAX);
        last = (solution, deviation);
    }
    last
}

/// Returns the common origin of all zones, if the individual origins agree within their errors.
fn shared_origin(
    unknowns: &Unknowns,
    state: &State,
    solution: &Solution,
    deviation: f64,
) -> Option<f64> {
    let Angles::Fitted(Skews { origins, .. }) = &state.angles else {
        return None;
    };
    let (mean, _) = mean_direction(origins.iter().copied())?;
    let near = |zone: usize| {
        let error = deviation * solution.variances[unknowns.origin(zone)].sqrt();
        wrapped(origins[zone] - mean).abs() <= SHARED_ORIGIN_DEVIATIONS * error + 0.01
    };
    (0..origins.len()).all(near).then_some(mean)
}

fn to_parameters(
    unknowns: &Unknowns,
    state: &State,
    solution: &Solution,
    deviation: f64,
) -> Vec<Parameter> {
    let error = |unknown: usize| deviation * solution.variances[unknown].sqrt();
    let mut all = vec![Parameter::around(
        "spindle.period_us",
        state.period_us,
        state.period_us * error(Unknowns::FREQUENCY),
    )];
    let Angles::Fitted(skews) = &state.angles else {
        return all;
    };
    let mut angle = |name: String, value: f64, unknown: usize| {
        all.push(angle_parameter(name, value, error(unknown)));
    };
    angle(
        "angles.track_skew_rev".to_owned(),
        skews.track,
        Unknowns::TRACK,
    );
    angle(
        "angles.cylinder_skew_rev".to_owned(),
        skews.cylinder,
        Unknowns::CYLINDER,
    );
    // The first origin is the time's, which a closed loop does not need.
    let own_origins = if unknowns.one_origin {
        0
    } else {
        unknowns.zones
    };
    for zone in 1..own_origins {
        let origin = skews.origins[zone] - skews.origins[0];
        angle(
            format!("angles.zone_{zone}.origin_rev"),
            origin,
            unknowns.origin(zone),
        );
    }
    for zone in (0..unknowns.zones).filter(|_| unknowns.has_ranges) {
        angle(
            format!("angles.zone_{zone}.range_step_rev"),
            skews.range_steps[zone],
            unknowns.range_step(zone),
        );
    }
    all
}
