//! Fit of constants for requests that do not wait for the platter, and for the mean service time.

use super::*;

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

    /// Fits constants of requests that do not wait for the platter.
    pub(super) fn fit_constants(&mut self) {
        let mut hits: [Vec<(f64, f64)>; 4] = Default::default();
        let mut writes: [Vec<(f64, f64)>; 4] = Default::default();
        let is_write_through = self.is_write_through();
        let mut last: Option<ValidationRequest> = None;
        replay_each(
            &self.disk,
            self.requests,
            self.input.think_position,
            |placed, served| {
                let request = &placed.request;
                let point = (f64::from(request.block_count), request.service_us);
                let before = predecessor(last.as_ref(), request, served) as usize;
                match request.operation {
                    ValidationOperation::Read if self.is_fast(placed) => hits[before].push(point),
                    // A write may wait until the one before it is on the medium.
                    ValidationOperation::Write
                        if !is_write_through && !served.observation.was_arm_busy =>
                    {
                        writes[before].push(point);
                    }
                    _ => {}
                }
                last = Some(*request);
            },
        );
        if let Some(after) = self.fit_overheads("buffer", &hits, self.link_block_us) {
            self.disk.overheads.read_hit_ms = after;
        }
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
        if let Some(after) = self.fit_overheads("early_write", &writes, block_us) {
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
        block_us: f64,
    ) -> Option<OverheadByState> {
        let all: Vec<(f64, f64)> = points.iter().flatten().copied().collect();
        let (common_us, _) = affine::fit_constant(&all, block_us)?;
        let mut found = [None; 4];
        for (before, name) in PREDECESSOR_KEYS {
            let own = affine::fit_constant(&points[before as usize], block_us);
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

/// Returns the circumstance by which the modelled firmware selects its overhead.
fn predecessor(
    last: Option<&ValidationRequest>,
    request: &ValidationRequest,
    served: &ServedRequest,
) -> PrecedingState {
    let follows = |last: &ValidationRequest| {
        last.operation == request.operation
            && last.first_block + u64::from(last.block_count) == request.first_block
    };
    match last {
        _ if served.observation.was_reading_ahead => PrecedingState::ReadingAhead,
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
