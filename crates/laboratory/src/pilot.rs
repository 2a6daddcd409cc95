//! Pilots: short runs that find the size at which a repetition lasts about half a second.

use crate::plan::{format_title, job_key};
use crate::repetition::HostRig;
use diskperf_battery::{SuiteJob, WorkerGroups};
use diskperf_models::LaboratoryError;
use diskperf_models::measured::JobTask;
use diskperf_models::rig::{ONE_REPETITION, RigWork, repeat_work};
use diskperf_models::{Observer, ObserverEvent};
use diskperf_timeline::{Nanoseconds, Repetition, SizeChoice, WorkerMeasure};
use std::collections::BTreeMap;

const REPETITION_TIME_MIN: Nanoseconds = Nanoseconds::from_millis(500);
/// Desired duration of a repetition in an A/B measurement. Many short repetitions tell more than
/// few long ones.
const BLOCK_REPETITION_TIME_MIN: Nanoseconds = Nanoseconds::from_millis(100);
/// Minimum duration of a pilot for extrapolation. A shorter pilot reflects the first calls more
/// than the rate.
const PILOT_TIME_MIN: Nanoseconds = Nanoseconds::from_millis(60);
const SIZE_GROWTH_MAX: u64 = 8;

/// Sizes of the jobs on a rig. One pilot finds the size of each group of jobs.
pub(crate) struct PilotSizes {
    repetition_time_min: Nanoseconds,
    /// Sizes in bytes that pilots have found, by group of jobs.
    size_by_group: BTreeMap<u32, u64>,
}

impl PilotSizes {
    /// Creates the sizes of jobs for an ordinary run.
    pub(crate) fn for_run() -> Self {
        Self {
            repetition_time_min: REPETITION_TIME_MIN,
            size_by_group: BTreeMap::new(),
        }
    }

    /// Creates the sizes of jobs for an A/B measurement.
    pub(crate) fn for_blocks() -> Self {
        Self {
            repetition_time_min: BLOCK_REPETITION_TIME_MIN,
            size_by_group: BTreeMap::new(),
        }
    }

    /// Returns the size of a job in bytes: the requested one, the program's own, or the one that a
    /// pilot finds.
    pub(crate) fn size_of_job(
        &mut self,
        rig: &HostRig<'_>,
        job: &SuiteJob,
        observer: &mut dyn Observer,
    ) -> Result<u64, LaboratoryError> {
        let plan = rig.plan;
        let call_bytes = job.program.call_bytes();
        if let Some(size_bytes) = job.own_size_bytes() {
            return Ok(size_bytes);
        }
        if let SizeChoice::SizeBytes(size_bytes) = plan.experiment.size_choice {
            return Ok(size_bytes);
        }
        if let Some(size_bytes) = plan.experiment.size_by_program.get(&job_key(job)) {
            return Ok(*size_bytes);
        }
        if let Some(usual_bytes) = job.program.default_size_bytes() {
            let mut size_bytes = usual_bytes;
            while size_bytes > call_bytes && job.program.file_bytes(size_bytes) > rig.pilot_bytes()
            {
                size_bytes /= 2;
            }
            return Ok(size_bytes.max(call_bytes));
        }
        if job.program.duration_max().is_some() {
            // Its time decides, and not its size.
            return Ok(plan.size_bytes_min(job));
        }
        let size_bytes = match self.size_by_group.get(&job.size_group) {
            Some(size_bytes) => *size_bytes,
            None => {
                let found = find_size((rig, job), self.repetition_time_min, observer)?;
                self.size_by_group.insert(job.size_group, found);
                found
            }
        };
        Ok(round_to_calls(size_bytes, call_bytes))
    }
}

/// Finds the size of a group of jobs by a pilot of the program in its middle.
fn find_size(
    (rig, job): (&HostRig<'_>, &SuiteJob),
    wanted: Nanoseconds,
    observer: &mut dyn Observer,
) -> Result<u64, LaboratoryError> {
    let plan = rig.plan;
    let jobs = plan.suite.iter_jobs();
    let group: Vec<&SuiteJob> = jobs
        .filter(|other| other.size_group == job.size_group)
        .collect();
    let program = &group[group.len() / 2].program;
    let call_bytes = program.call_bytes();
    let fits = |size_bytes| {
        let mut programs = group.iter().map(|job| &job.program);
        programs.all(|program| program.file_bytes(size_bytes) <= rig.pilot_bytes())
    };
    let (least_bytes, most_bytes) = program.default_size_bytes_range();
    let mut size_bytes = least_bytes;
    // A file of the user's may be smaller than that.
    while size_bytes > call_bytes && !fits(size_bytes) {
        size_bytes /= 2;
    }
    loop {
        observer.handle_event(ObserverEvent::PilotFinished { size_bytes });
        let task = JobTask {
            title: &format_title(job),
            program,
            cache_mode: job.program.cache_mode_for(plan.experiment.cache_mode),
            size_bytes: round_to_calls(size_bytes, call_bytes),
            drive_index: None,
            keeps_others_on_failure: false,
        };
        let tried = RigWork {
            job_tasks: vec![task],
            protocol: ONE_REPETITION,
            companion_work: WorkerGroups::default(),
        };
        let mut tries = [Vec::new()];
        let on = |_: &[Repetition], _: &mut dyn Observer| true;
        repeat_work(rig, &tried, &mut tries, observer, on)?;
        let elapsed = longest_elapsed(&tries[0][0]);
        let grown = size_bytes * SIZE_GROWTH_MAX;
        if elapsed < PILOT_TIME_MIN && grown <= most_bytes && fits(grown) {
            size_bytes = grown;
            continue;
        }
        let mut best = extrapolate_size((size_bytes, elapsed), wanted, (least_bytes, most_bytes));
        while best > call_bytes && !fits(best) {
            best /= 2;
        }
        return Ok(round_to_calls(best, call_bytes));
    }
}

/// Rounds bytes down to whole calls, to at least one.
pub(crate) fn round_to_calls(bytes: u64, call_bytes: u64) -> u64 {
    bytes.max(call_bytes) / call_bytes * call_bytes
}

/// Returns the time that the slowest worker needed until its data was durable. The start time of
/// the workers is left out, because the size has no influence on it.
fn longest_elapsed(repetition: &Repetition) -> Nanoseconds {
    let took = |worker: &WorkerMeasure| worker.durable_time.unwrap_or(worker.elapsed_time);
    repetition
        .workers
        .iter()
        .map(took)
        .max()
        .unwrap_or_default()
}

/// Returns the power of two within the limits that brings a repetition nearest to the desired
/// duration. Powers of two keep the sizes of two runs equal although their pilots differ.
fn extrapolate_size(
    (size_bytes, elapsed): (u64, Nanoseconds),
    wanted: Nanoseconds,
    (least_bytes, most_bytes): (u64, u64),
) -> u64 {
    let wanted = size_bytes as f64 * wanted.0 as f64 / elapsed.0.max(1) as f64;
    let mut best = least_bytes;
    while best * 2 <= most_bytes && (best as f64) * std::f64::consts::SQRT_2 < wanted {
        best *= 2;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskperf_timeline::units::{GIB, MIB};

    #[test]
    fn half_a_second_between_the_limits() {
        for (size_mib, elapsed_ms, expected_mib) in [
            (8, 500, 8),
            (8, 5000, 8),
            (8, 60, 64),
            (64, 100, 256),
            (512, 60, 1024),
            (64, 490, 64),
            (64, 360, 64),
        ] {
            let tried = (size_mib * MIB, Nanoseconds::from_millis(elapsed_ms));
            let size = extrapolate_size(tried, REPETITION_TIME_MIN, (8 * MIB, GIB));
            assert_eq!(
                size / MIB,
                expected_mib,
                "{size_mib} MiB in {elapsed_ms} ms"
            );
        }
    }
}
