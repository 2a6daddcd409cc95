//! Fit of constants for requests that do not wait for the platter, and for the mean service time.

use super::*;
use crate::affine::OutlierScale;

/// Request that does not wait for the platter.
struct UndelayedRequest {
    operation: ValidationOperation,
    before: PrecedingState,
    was_reading_ahead: bool,
    /// Number of blocks and service time in microseconds.
    point: (f64, f64),
}

impl FitState<'_> {
    /// Fits constants of media reads, buffer reads and writes so that the mean service times equal
    /// the measured ones.
    pub(super) fn fit_means(&mut self, kinds: [bool; 3]) {
        const CONSTANT_ROUNDS: usize = 4;
        let names = ["read_miss", "read_hit", "write"];
        let mut shifts_us = [0.0; 3];
        let mut errors_us = [0.0; 3];
        for _ in 0..CONSTANT_ROUNDS {
            let replayed = replay_requests(&self.disk, self.requests, self.input.think_position);
            let off = |kind: usize| {
                let own = self.requests.iter().zip(&replayed).filter(|(placed, one)| {
                    kind == match (placed.request.operation, one.cache_answer) {
                        (ValidationOperation::Write, _) => 2,
                        (_, AnswerSource::Media) => 0,
                        _ => 1,
                    }
                });
                let off = own.map(|(placed, one)| placed.request.service_us - one.service_us);
                mean(off)
            };
            let found = [0, 1, 2].map(off);
            for kind in (0..3).filter(|kind| kinds[*kind]) {
                let Some((by_us, error_us)) = found[kind] else {
                    continue;
                };
                let overheads = &mut self.disk.overheads;
                let after = match kind {
                    0 => &mut overheads.read_miss_ms,
                    1 => &mut overheads.read_hit_ms,
                    _ => &mut overheads.write_ms,
                };
                shift_overhead(after, by_us);
                shifts_us[kind] += by_us;
                errors_us[kind] = error_us;
            }
        }
        self.mean_parameters.clear();
        for kind in (0..3).filter(|kind| kinds[*kind] && errors_us[*kind] > 0.0) {
            let name = format!("mean.{}_us", names[kind]);
            let constant =
                FittedParameter::with_standard_error(name, shifts_us[kind], errors_us[kind]);
            self.mean_parameters.push(constant);
        }
    }

    /// Fits constants of requests that do not wait for the platter. Replays tell whether most of
    /// these waited for something else, and whether a read-ahead makes a difference.
    pub(super) fn fit_constants(&mut self) {
        let seen = self.undelayed_requests();
        let (disk, parameters) = (self.disk.clone(), self.parameters.clone());
        let mut fits = Vec::new();
        for scale in [affine::MEDIAN_SCALE, affine::QUARTER_SCALE] {
            for by_read_ahead in [true, false] {
                (self.disk, self.parameters) = (disk.clone(), parameters.clone());
                self.fit_constants_to(&seen, scale, by_read_ahead);
                fits.push(FitCandidate {
                    disk: self.disk.clone(),
                    parameters: std::mem::take(&mut self.parameters),
                });
            }
        }
        self.choose_fit(fits);
    }

    /// Returns the reads that the buffer answered and the writes that did not wait for the arm.
    fn undelayed_requests(&self) -> Vec<UndelayedRequest> {
        let is_write_through = self.is_write_through();
        let mut seen = Vec::new();
        let mut last: Option<ValidationRequest> = None;
        replay_each(
            &self.disk,
            self.requests,
            self.input.think_position,
            |placed, served| {
                let request = &placed.request;
                let is_undelayed = match request.operation {
                    ValidationOperation::Read => self.is_fast(placed),
                    // A write may wait until the one before it is on the medium.
                    ValidationOperation::Write => {
                        !is_write_through && !served.observation.was_arm_busy
                    }
                };
                if is_undelayed {
                    seen.push(UndelayedRequest {
                        operation: request.operation,
                        before: predecessor(last.as_ref(), request),
                        was_reading_ahead: served.observation.was_reading_ahead,
                        point: (f64::from(request.block_count), request.service_us),
                    });
                }
                last = Some(*request);
            },
        );
        seen
    }

    fn fit_constants_to(
        &mut self,
        seen: &[UndelayedRequest],
        scale: OutlierScale,
        by_read_ahead: bool,
    ) {
        let points = |operation: ValidationOperation| {
            let mut points: [Vec<(f64, f64)>; 4] = Default::default();
            for one in seen.iter().filter(|one| one.operation == operation) {
                let before = match by_read_ahead && one.was_reading_ahead {
                    true => PrecedingState::ReadingAhead,
                    false => one.before,
                };
                points[before as usize].push(one.point);
            }
            points
        };
        let hits = points(ValidationOperation::Read);
        if let Some(after) = self.fit_overheads("buffer", &hits, (self.link_block_us, scale)) {
            self.disk.overheads.read_hit_ms = after;
        }
        let writes = points(ValidationOperation::Write);
        let all: Vec<(f64, f64)> = writes.iter().flatten().copied().collect();
        let line = affine::fit_linear_cost(&all, self.link_block_us);
        let mut block_us = self.link_block_us;
        if let Some((line, errors)) =
            line.filter(|(line, errors)| errors[1] < SLOPE_ERROR_SHARE_MAX * line.block_us)
        {
            block_us = line.block_us;
            self.disk.link.write_bytes_per_s = Some(bytes_per_s(block_us));
            self.add_parameter("bus.write_block_us", block_us, errors[1]);
        }
        if let Some(after) = self.fit_overheads("early_write", &writes, (block_us, scale)) {
            self.disk.overheads.write_ms = after;
            self.disk.overheads.write_completion_ms = 0.0;
        }
    }

    /// Returns the constants for each preceding operation, given the time per block; absent with
    /// too few requests. Rare circumstances get the constant of all requests.
    fn fit_overheads(
        &mut self,
        kind: &str,
        points: &[Vec<(f64, f64)>; 4],
        (block_us, scale): (f64, OutlierScale),
    ) -> Option<OverheadByState> {
        let all: Vec<(f64, f64)> = points.iter().flatten().copied().collect();
        let (common_us, _) = affine::fit_constant(&all, block_us, scale)?;
        let prefix = format!("{kind}.");
        self.parameters.retain(|one| !one.name.starts_with(&prefix));
        let mut found = [None; 4];
        for (before, name) in PREDECESSOR_KEYS {
            let own = affine::fit_constant(&points[before as usize], block_us, scale);
            found[before as usize] = own.map(|own| rounded_ms(own.0.max(0.0)));
            if let Some((fixed_us, error_us)) = own {
                self.add_parameter(format!("{kind}.{name}.fixed_us"), fixed_us, error_us);
            }
        }
        let common_ms = rounded_ms(common_us.max(0.0));
        Some(OverheadByState {
            after_read_ms: found[PrecedingState::AfterRead as usize].unwrap_or(common_ms),
            after_write_ms: found[PrecedingState::AfterWrite as usize].unwrap_or(common_ms),
            sequential_ms: found[PrecedingState::Sequential as usize],
            reading_ahead_ms: found[PrecedingState::ReadingAhead as usize],
        })
    }
}

/// Returns the circumstance by which the modelled firmware selects its overhead without a read-ahead.
fn predecessor(last: Option<&ValidationRequest>, request: &ValidationRequest) -> PrecedingState {
    let follows = |last: &ValidationRequest| {
        last.operation == request.operation
            && last.first_block + u64::from(last.block_count) == request.first_block
    };
    match last {
        Some(last) if follows(last) => PrecedingState::Sequential,
        Some(last) if last.operation == ValidationOperation::Write => PrecedingState::AfterWrite,
        _ => PrecedingState::AfterRead,
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (mut sum, mut squares, mut count) = (0.0, 0.0, 0usize);
    for value in values {
        (sum, squares, count) = (sum + value, squares + value * value, count + 1);
    }
    let n = count as f64;
    let mean = sum / n;
    (count > 1).then(|| (mean, ((squares / n - mean * mean).max(0.0) / n).sqrt()))
}
