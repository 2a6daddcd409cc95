//! Fit of head arrival times for requests that wait for the platter.

use super::*;

impl FitState<'_> {
    /// Fits the arrival times that make the requests that waited for the platter most likely.
    pub(super) fn fit_arrivals(&mut self) {
        let (reads, writes) = self.observed_arrivals();
        let read = arrival::fit(&reads, self.period_us());
        let write = match self.is_write_through() && !writes.is_empty() {
            true => Some(arrival::fit(&writes, self.period_us())),
            false => None,
        };
        let filed = (self.given.filed, self.given.mechanism);
        put_arrivals(&mut self.disk, filed, (&read, write.as_ref()));
        self.means.clear();
        self.parameters.extend(arrival_parameters("read", &read));
        if let Some(write) = &write {
            self.parameters.extend(arrival_parameters("write", write));
        }
    }

    /// Returns the reads and writes that waited for the platter, with the actuator position of the
    /// model.
    fn observed_arrivals(&self) -> (Vec<ObservedArrival>, Vec<ObservedArrival>) {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        let mut arm = self.given.mechanism.clone();
        let mut last: Option<Operation> = None;
        replay_each(
            &self.disk,
            self.placed,
            self.given.think,
            |placed, served| {
                let request = &placed.request;
                let after_write = last == Some(Operation::Write);
                last = Some(request.operation);
                let is_write = request.operation == Operation::Write;
                let Some(circumstances) = circumstances(&mut arm, placed, served, after_write)
                else {
                    return;
                };
                if is_write && self.is_write_through() {
                    let sectors =
                        f64::from(request.blocks) / f64::from(placed.first().sectors_per_track);
                    let platter_us = sectors * self.period_us() + self.write_end_us;
                    writes.push(ObservedArrival {
                        circumstances,
                        until_sector_us: request.service_us - platter_us,
                    });
                } else if !is_write && !self.is_fast(placed) {
                    reads.push(ObservedArrival {
                        circumstances,
                        until_sector_us: self.time_to_sector_us(placed),
                    });
                }
            },
        );
        (reads, writes)
    }
}

/// Returns the circumstances of a request's arrival, if the actuator moved only for that request
/// and without delay. `arm` has the files' seek times.
fn circumstances(
    arm: &mut Mechanism,
    placed: &Placed,
    served: &ServedRequest,
    after_write: bool,
) -> Option<SeekCircumstances> {
    let access = served.seen.access.filter(|access| access.is_single_run)?;
    if served.seen.was_arm_busy || served.seen.answer_source != AnswerSource::Media {
        return None;
    }
    let is_write = placed.request.operation == Operation::Write;
    let (cylinder, head) = access.start_position;
    arm.place_arm(cylinder, head);
    Some(SeekCircumstances {
        filed_us: us(arm.arm_move_time(&access.target, is_write)),
        distance_cylinders: cylinder.abs_diff(access.target.cylinder),
        is_inward: access.target.cylinder > cylinder,
        switches_head: access.target.head != head,
        after_write,
        is_reading_ahead: served.seen.was_reading_ahead,
        blocks: if is_write { placed.request.blocks } else { 0 },
    })
}

fn arrival_parameters(kind: &str, fitted: &FittedArrival) -> Vec<Parameter> {
    let all = TERM_NAMES
        .iter()
        .zip(fitted.arrival.weights_us)
        .zip(fitted.errors_us);
    let shown = all.filter(|(_, error)| *error > 0.0);
    shown
        .map(|((name, value), error)| {
            Parameter::around(format!("arrival.{kind}.{name}"), value, error)
        })
        .collect()
}
