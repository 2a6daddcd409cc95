//! Fit of head arrival times for requests that wait for the platter.

use super::*;

impl FitState<'_> {
    /// Fits the arrival times that make the requests that waited for the platter most likely.
    pub(super) fn fit_arrivals(&mut self) {
        let (reads, writes) = self.observed_arrivals();
        let read = arrival::fit_arrival(&reads, self.period_us());
        let write = match self.is_write_through() && !writes.is_empty() {
            true => Some(arrival::fit_arrival(&writes, self.period_us())),
            false => None,
        };
        let filed = (self.input.specified_disk, self.input.mechanism);
        propose_arrivals(&mut self.disk, filed, (&read, write.as_ref()));
        self.mean_parameters.clear();
        self.parameters.extend(arrival_parameters("read", &read));
        if let Some(write) = &write {
            self.parameters.extend(arrival_parameters("write", write));
        }
    }

    /// Returns the reads and writes that waited for the platter, with the actuator position of the
    /// model.
    fn observed_arrivals(&self) -> (Vec<ObservedArrival>, Vec<ObservedArrival>) {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        let mut arm = self.input.mechanism.clone();
        let mut last: Option<ValidationOperation> = None;
        replay_each(
            &self.disk,
            self.requests,
            self.input.think_position,
            |placed, served| {
                let request = &placed.request;
                let after_write = last == Some(ValidationOperation::Write);
                last = Some(request.operation);
                let is_write = request.operation == ValidationOperation::Write;
                let Some(circumstances) = seek_circumstances(&mut arm, placed, served, after_write)
                else {
                    return;
                };
                if is_write && self.is_write_through() {
                    let sectors = f64::from(request.block_count)
                        / f64::from(placed.first_address().sectors_per_track);
                    let platter_us = sectors * self.period_us() + self.write_end_us;
                    writes.push(ObservedArrival {
                        circumstances,
                        time_to_sector_us: request.service_us - platter_us,
                    });
                } else if !is_write && !self.is_fast(placed) {
                    reads.push(ObservedArrival {
                        circumstances,
                        time_to_sector_us: self.time_to_sector_us(placed),
                    });
                }
            },
        );
        (reads, writes)
    }
}

/// Returns the circumstances of a request's arrival, if the actuator moved only for that request
/// and without delay. `arm` has the files' seek times.
fn seek_circumstances(
    arm: &mut Mechanism,
    placed: &LocatedRequest,
    served: &ServedRequest,
    after_write: bool,
) -> Option<SeekCircumstances> {
    let access = served
        .observation
        .access
        .filter(|access| access.is_single_run)?;
    if served.observation.was_arm_busy || served.observation.answer_source != AnswerSource::Media {
        return None;
    }
    let is_write = placed.request.operation == ValidationOperation::Write;
    let (cylinder, head) = access.start_position;
    arm.place_arm(cylinder, head);
    Some(SeekCircumstances {
        specified_us: us_from_time(arm.arm_move_time(&access.target, is_write)),
        distance_cylinders: cylinder.abs_diff(access.target.cylinder),
        is_inward: access.target.cylinder > cylinder,
        switches_head: access.target.head != head,
        follows_write: after_write,
        is_reading_ahead: served.observation.was_reading_ahead,
        block_count: if is_write {
            placed.request.block_count
        } else {
            0
        },
    })
}

fn arrival_parameters(kind: &str, fitted: &FittedArrival) -> Vec<FittedParameter> {
    let all = TERM_NAMES
        .iter()
        .zip(fitted.correction.weights_us)
        .zip(fitted.errors_us);
    let shown = all.filter(|(_, error)| *error > 0.0);
    shown
        .map(|((name, value), error)| {
            FittedParameter::with_standard_error(format!("arrival.{kind}.{name}"), value, error)
        })
        .collect()
}
