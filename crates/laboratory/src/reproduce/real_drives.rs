//! Calibration and replay of the real drives in a directory, from their files and traces.

use diskperf_analysis::real_drives::{
    BufferReadCounts, DiskOperation, DriveOutcome, FittedParameter, MispredictedRequest, PhaseStep,
    RealDrive, RealDrives, RemainingError, ReplayResult, ReplayScore, ResponseQuantiles,
    SpindlePhase, ThinkTimeReference,
};
use diskperf_calibration::{
    self as calibration, Calibration, FitOptions, RemainingErrors, calibrate,
};
use diskperf_diskspecs::phase::ThinkPosition as Pauses;
use diskperf_diskspecs::{Errors, Problem, SpecificationFiles, SpecifiedDrive, import, trace};
use diskperf_models::LaboratoryError;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Calibrates each drive of a directory on the first half of its trace and replays the trace.
/// `shown` receives the number of drives done and their total.
///
/// # Errors
///
/// Returns an error if the directory cannot be read or has no trace, or if the user ends the
/// calibration. Faults in the files of one drive appear in its row.
pub fn reproduce(
    data: &Path,
    stop: &AtomicBool,
    shown: &dyn Fn(usize, usize),
) -> Result<RealDrives, LaboratoryError> {
    let names = list_drive_names(data)?;
    let of = names.len();
    let mut drives = Vec::new();
    for name in names {
        shown(drives.len(), of);
        if stop.load(Ordering::Relaxed) {
            return Err(LaboratoryError::Interrupted);
        }
        drives.push(reproduce_drive(data, name));
    }
    shown(of, of);
    Ok(RealDrives { drives })
}

fn list_drive_names(data: &Path) -> Result<Vec<String>, LaboratoryError> {
    let refused = |error: std::io::Error| {
        LaboratoryError::Request(format!("--data {}: {error}", data.display()))
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(data).map_err(refused)? {
        let path = entry.map_err(refused)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "trace")
            && let Some(name) = path.file_stem().and_then(|name| name.to_str())
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    match names.is_empty() {
        true => Err(LaboratoryError::Request(format!(
            "--data {}: it has no traces; a drive is NAME.trace with NAME.diskspecs",
            data.display()
        ))),
        false => Ok(names),
    }
}

fn reproduce_drive(data: &Path, name: String) -> RealDrive {
    match calibrate_drive(data, &name) {
        Ok(found) => RealDrive {
            name,
            outcome: DriveOutcome::Replayed(Box::new(build_replay(&found))),
            parameters: Some(found.file),
        },
        Err(error) => RealDrive {
            name,
            parameters: None,
            outcome: DriveOutcome::Refused { error },
        },
    }
}

struct CalibratedDrive {
    file: String,
    requests: Vec<trace::ValidationRequest>,
    calibration: Calibration,
}

const PROBLEMS_SHOWN_MAX: usize = 3;

/// Lists the faults of a file on one line, each with its place. A row of a table has no room for
/// excerpts.
fn format_briefly(errors: &Errors) -> String {
    let told = |problem: &Problem| {
        let what = problem.brief();
        match problem.span() {
            Some(place) => format!("{place}: {what}"),
            None => what,
        }
    };
    let problems = errors.problems();
    let mut all: Vec<String> = problems.iter().take(PROBLEMS_SHOWN_MAX).map(told).collect();
    if let Some(more) = problems.len().checked_sub(PROBLEMS_SHOWN_MAX + 1) {
        all.push(format!("and {} more", more + 1));
    }
    all.join("; ")
}

fn calibrate_drive(data: &Path, name: &str) -> Result<CalibratedDrive, String> {
    let (file, drive) = import_drive(data, name)?;
    let trace_name = format!("{name}.trace");
    let content = std::fs::read_to_string(data.join(&trace_name))
        .map_err(|error| format!("{trace_name}: {error}"))?;
    let requests = trace::parse(&trace_name, &content).map_err(|errors| format_briefly(&errors))?;
    let found = calibrate(&drive, &requests, FitOptions::default());
    let found = found.map_err(|error| format!("{trace_name}: {error}"))?;
    Ok(CalibratedDrive {
        file,
        requests,
        calibration: found,
    })
}

/// Imports a drive from its run file (`.parv`), which has the bus, if it exists and is valid;
/// otherwise from its own file (`.diskspecs`).
fn import_drive(data: &Path, name: &str) -> Result<(String, SpecifiedDrive), String> {
    let read = |file: &str| {
        let search = vec![data.to_owned()];
        let found = import(file, &SpecificationFiles::FileSystem { search })
            .map_err(|errors| format_briefly(&errors))?;
        let drives = found.drives.len();
        let mut all = found.drives.into_iter();
        match (all.next(), drives) {
            (Some(drive), 1) => Ok(drive),
            (_, drives) => Err(format!(
                "{file}: it has {drives} drives, where one is wanted"
            )),
        }
    };
    let run = format!("{name}.parv");
    if data.join(&run).is_file()
        && let Ok(drive) = read(&run)
    {
        return Ok((run, drive));
    }
    let own = format!("{name}.diskspecs");
    read(&own).map(|drive| (own, drive))
}

fn build_replay(of: &CalibratedDrive) -> ReplayResult {
    let found = &of.calibration;
    ReplayResult {
        request_count: found.request_count,
        scored_request_count: found.fitted_score.request_count,
        replay_score: build_score(&found.fitted_score),
        spindle_phase: build_phase(found),
        fitted_parameters: found
            .parameters
            .iter()
            .map(build_fitted_parameter)
            .collect(),
        unfitted_score: build_score(&found.specified_score),
        measured_quantiles: build_quantiles(found.fitted_score.measured_ms),
        buffer_reads: BufferReadCounts {
            measured_count: found.buffer_read_counts.0,
            modelled_count: found.buffer_read_counts.1,
        },
        remaining_errors: list_remaining_errors(&found.remaining_errors),
        worst_requests: list_mispredicted_requests(of),
    }
}

pub(crate) fn build_phase(found: &Calibration) -> SpindlePhase {
    let period = found
        .parameters
        .iter()
        .find(|one| one.name == "spindle.period_us");
    let nominal_us = found.nominal_period_us;
    let period_us = period.map_or(nominal_us, |period| period.value);
    let shows = found.phase.and_then(|phase| phase.think_position);
    SpindlePhase {
        resultant_length: found.agreement,
        period_us,
        period_uncertainty_ppm: (period_us / nominal_us - 1.0) * 1e6,
        think_time_reference: match shows {
            Some(Pauses::BeforeRequest) => ThinkTimeReference::BeforeSubmission,
            Some(Pauses::AfterRequest) => ThinkTimeReference::AfterCompletion,
            None => ThinkTimeReference::Undetermined,
        },
        false_alarm_probability: found
            .phase
            .map_or(1.0, |phase| phase.false_alarm_probability),
        phase_steps: found
            .phase_steps
            .iter()
            .map(|step| PhaseStep {
                request_index: step.request_index,
                phase_change_rev: step.phase_shift_rev,
            })
            .collect(),
    }
}

fn build_score(score: &calibration::Score) -> ReplayScore {
    ReplayScore {
        mean_ms: score.mean_ms,
        demerit_ms: score.demerit_ms,
        demerit_percent: score.demerit_percent(),
        bias_ms: score.bias_ms,
        rms_per_request_ms: score.request_rms_ms,
        within_half_ms_percent: score.within_half_ms_percent,
        modelled_quantiles: build_quantiles(score.modelled_ms),
    }
}

fn build_quantiles([p50_ms, p90_ms, p99_ms]: [f64; 3]) -> ResponseQuantiles {
    ResponseQuantiles {
        p50_ms,
        p90_ms,
        p99_ms,
    }
}

fn build_fitted_parameter(parameter: &calibration::FittedParameter) -> FittedParameter {
    FittedParameter {
        name: parameter.name.clone(),
        value: parameter.value,
        interval_min: parameter.interval.low,
        interval_max: parameter.interval.high,
    }
}

fn list_remaining_errors(remains: &RemainingErrors) -> Vec<RemainingError> {
    let one = |of: &calibration::CauseTotal| {
        let own = remains
            .mispredicted
            .iter()
            .filter(|off| off.cause == of.cause);
        let mut off_ms: Vec<f64> = own
            .filter_map(|off| off.arrival_error_us)
            .map(|off_us| off_us.abs() / 1e3)
            .collect();
        off_ms.sort_by(f64::total_cmp);
        // The least that so many do not exceed.
        let within = |percent: usize| {
            let last = (off_ms.len() * percent).div_ceil(100);
            last.checked_sub(1).map(|last| off_ms[last])
        };
        RemainingError {
            cause: of.cause.description().to_owned(),
            is_revolution: of.cause.is_revolution(),
            request_count: of.request_count,
            drive_slower_count: of.drive_slower_count,
            squared_error_percent: of.squared_error_percent,
            arrival_error_p50_ms: within(50),
            arrival_error_p90_ms: within(90),
        }
    };
    remains.cause_totals.iter().map(one).collect()
}

fn list_mispredicted_requests(of: &CalibratedDrive) -> Vec<MispredictedRequest> {
    let one = |off: &calibration::MispredictedRequest| {
        let request = &of.requests[off.request_index - 1];
        MispredictedRequest {
            request_index: off.request_index,
            operation: match request.operation {
                trace::ValidationOperation::Read => DiskOperation::Read,
                trace::ValidationOperation::Write => DiskOperation::Write,
            },
            first_block: request.first_block,
            block_count: request.block_count,
            measured_ms: request.service_us / 1e3,
            modelled_ms: (request.service_us + off.error_us) / 1e3,
            cause: off.cause.description().to_owned(),
            arrival_error_ms: off.arrival_error_us.map(|off_us| off_us / 1e3),
        }
    };
    of.calibration
        .remaining_errors
        .mispredicted
        .iter()
        .map(one)
        .collect()
}
