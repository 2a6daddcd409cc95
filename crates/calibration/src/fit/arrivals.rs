//! Fit of head arrival times for requests that wait for the platter.

use super::*;

/// Time by which the data of a write must be there before the arm, for a request that shows when
/// the arm arrives.
const DATA_MARGIN_US: f64 = 500.0;

impl FitState<'_> {
    /// Fits the arrival times that make the requests that waited for the platter most likely.
    /// Requests over several tracks and zero-latency accesses decide among those of writes.
    pub(super) fn fit_arrivals(&mut self) {
        let (reads, writes) = self.observed_arrivals();
        let read = arrival::fit_arrival(&reads, self.period_us());
        let write = match self.is_write_through() && !writes.is_empty() {
            true => Some(arrival::fit_arrival(&writes, self.period_us())),
            false => None,
        };
        let filed = (self.input.specified_disk, self.input.mechanism);
        let proposals = [
            read.clone(),
            read.with_specified_switches(),
            read.with_specified_seeks(),
        ];
        let proposals = proposals.map(|read| {
            let mut disk = self.disk.clone();
            propose_read_arrivals(&mut disk, filed, &read);
            disk
        });
        self.choose_disk(proposals.into());
        let mut proposals = vec![self.disk.clone()];
        if let Some(write) = &write {
            let mut own = self.disk.clone();
            propose_write_arrivals(&mut own, filed, write);
            let mut with_link = own.clone();
            // A bus carries what is written as fast as what is read.
            let is_link_specified = self.link_block_us > 0.0;
            with_link.link.write_bytes_per_s =
                is_link_specified.then(|| bytes_per_s(self.link_block_us));
            let mut common = self.disk.clone();
            common.link.write_bytes_per_s = with_link.link.write_bytes_per_s;
            propose_common_arrivals(&mut common, filed.0);
            proposals = vec![own, with_link, common];
        }
        self.mean_parameters.clear();
        self.parameters.extend(arrival_parameters("read", &read));
        if let Some(write) = &write {
            self.parameters.extend(arrival_parameters("write", write));
        }
        self.tune_best(proposals);
    }

    /// Chooses the rules and times that only a replay shows for each disk, and selects the one that
    /// then predicts the most requests.
    fn tune_best(&mut self, disks: Vec<DiskSpecification>) {
        let parameters = self.parameters.clone();
        let mut tuned = Vec::new();
        for disk in disks {
            (self.disk, self.parameters) = (disk, parameters.clone());
            self.choose_zero_latency();
            self.choose_switches();
            self.choose_overheads();
            tuned.push(FitCandidate {
                disk: self.disk.clone(),
                parameters: std::mem::take(&mut self.parameters),
            });
        }
        self.choose_fit(tuned);
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
                let sector_us =
                    self.period_us() / f64::from(placed.first_address().sectors_per_track);
                let Some(circumstances) = seek_circumstances(&mut arm, placed, served, after_write)
                else {
                    return;
                };
                let crossing_us = f64::from(request.block_count) * self.link_block_us;
                // A zero-latency write waits for its data rather than for the arm.
                let waits_for_data = self.disk.mechanism.zero_latency_writes
                    && crossing_us + DATA_MARGIN_US > circumstances.specified_us;
                if is_write && self.is_write_through() {
                    if waits_for_data {
                        return;
                    }
                    let platter_us = f64::from(request.block_count) * sector_us + self.write_end_us;
                    writes.push(ObservedArrival {
                        circumstances,
                        time_to_sector_us: request.service_us - platter_us,
                    });
                } else if !is_write && !self.is_fast(placed) {
                    // The blocks cross after the first one has passed, the last one after it has.
                    let others_us =
                        f64::from(request.block_count - 1) * sector_us.max(self.link_block_us);
                    let platter_us = sector_us + others_us + self.link_block_us;
                    reads.push(ObservedArrival {
                        circumstances,
                        time_to_sector_us: request.service_us - platter_us,
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
