//! Size of the area that the suites of modern storage use.

use crate::model::computer::ModelComputer;
use diskperf_battery::{Medium, Suite, SuiteJob};
use diskperf_timeline::units::{MIB, format_size};
use diskperf_timeline::{Experiment, SizeChoice, Workload};

const AREA_SUITES: [&str; 2] = ["today26", "ssd26"];

/// Maximum area of a log program, in bytes.
pub const LOG_BYTES_MAX: u64 = 64 * MIB;

/// Maximum area on a modelled drive, in bytes, far above its kernel's cache.
const MODELLED_AREA_BYTES_MAX: u64 = 64 * MIB;

/// Duration of a repetition in virtual time, in ms. Real storage needs SNIA's minute; a model has
/// no disturbances.
const MODELLED_DURATION_MS: &str = "1000";

/// Gives the programs of a suite for modern storage an area that fits the modelled computer.
/// Returns the remarks for readers.
pub fn fit_to_computer(
    suite: &mut Suite,
    computer: &ModelComputer,
    experiment: &Experiment,
) -> Vec<String> {
    if !is_fitted(suite, experiment) {
        return Vec::new();
    }
    for job in suite.iter_jobs_mut() {
        if job.program.duration_max().is_some() {
            set_parameter(job, "duration_ms", MODELLED_DURATION_MS);
        }
    }
    let area_bytes = modelled_area_bytes(computer);
    for job in suite.iter_jobs_mut() {
        let bytes = match job.program.appends_log() {
            true => (area_bytes / 4).min(LOG_BYTES_MAX),
            false => area_bytes,
        };
        set_parameter(job, "area_bytes", &bytes.to_string());
    }
    let mut notes = vec![format!(
        "requests fall into {} of the drive",
        format_size(area_bytes)
    )];
    notes.extend(extend_streams_past_cache(suite, computer, experiment));
    if computer.medium() == Medium::Directory {
        notes.push(
            "its kernel cannot bypass its buffer cache, so all I/O goes through that cache"
                .to_owned(),
        );
    }
    notes
}

/// Multiple of the drive's cache that a stream transfers. With less, the cache keeps data from one
/// repetition to the next that should come from the medium.
pub const CACHE_SIZE_FACTOR: u64 = 4;

fn bytes_past_cache(cache_bytes: u64) -> u64 {
    CACHE_SIZE_FACTOR.saturating_mul(cache_bytes.next_multiple_of(MIB))
}

/// Makes the streams of a suite for modern storage transfer as much as on a drive with this cache,
/// whatever cache the drive has. Compared points then transfer equal amounts.
pub fn equalize_stream_sizes(suite: &mut Suite, experiment: &Experiment, cache_bytes: u64) {
    if cache_bytes == 0 || !is_fitted(suite, experiment) {
        return;
    }
    let streams = suite
        .iter_jobs_mut()
        .filter(|job| job.program.name() == "sequential" && job.area_pass_count.is_none());
    for job in streams {
        job.size_bytes =
            Some(bytes_past_cache(cache_bytes) / u64::from(job.program.worker_count()));
    }
}

/// Makes streams transfer several times the capacity of the drive's cache, unless the user sets a
/// size. Returns the remark for readers.
fn extend_streams_past_cache(
    suite: &mut Suite,
    computer: &ModelComputer,
    experiment: &Experiment,
) -> Option<String> {
    let cache_bytes = computer.specification.drives[0].cache_bytes();
    if cache_bytes == 0
        || experiment.size_choice != SizeChoice::AutomaticSize
        || !experiment.size_by_program.is_empty()
    {
        return None;
    }
    let streams = suite
        .iter_jobs_mut()
        .filter(|job| job.program.name() == "sequential" && job.own_size_bytes().is_none());
    let moved_bytes = bytes_past_cache(cache_bytes);
    let mut changed = 0;
    for job in streams {
        job.size_bytes = Some(moved_bytes / u64::from(job.program.worker_count()));
        changed += 1;
    }
    (changed > 0).then(|| {
        format!(
            "sequential moves {}, {CACHE_SIZE_FACTOR} times what the drive's cache of {} holds",
            format_size(moved_bytes),
            format_size(cache_bytes)
        )
    })
}

/// Makes programs that write to a flash drive transfer several times the capacity of its buffer,
/// unless the user sets a size. On real storage, a pilot finds such sizes. Returns the remark for
/// readers.
pub fn extend_writes_past_buffer(
    suite: &mut Suite,
    computer: &ModelComputer,
    experiment: &Experiment,
) -> Option<String> {
    let flash = computer.specification.drives[0].flash_specification()?;
    let is_kept = matches!(experiment.workload, Workload::Steps { .. });
    let sized = experiment.size_choice != SizeChoice::AutomaticSize
        || !experiment.size_by_program.is_empty();
    if is_kept || sized || flash.buffer_bytes() == 0 {
        return None;
    }
    let moved_bytes = bytes_past_cache(flash.buffer_bytes());
    let mut changed = false;
    for job in suite.iter_jobs_mut() {
        let program = &job.program;
        // A job file and a trace say themselves how much.
        let is_said = program.fio_job().is_some() || program.replay().is_some();
        let fills = program.keeps_requests_in_flight()
            && program.writes_target()
            && program.duration_max().is_none();
        if fills && !is_said && job.own_size_bytes().is_none() {
            job.size_bytes = Some(moved_bytes / u64::from(program.worker_count()));
            changed = true;
        }
    }
    changed.then(|| {
        format!(
            "programs that write move {}, {CACHE_SIZE_FACTOR} times what the drive's buffer of {} holds",
            format_size(moved_bytes),
            format_size(flash.buffer_bytes())
        )
    })
}

/// Returns the area on a modelled drive in bytes: the whole drive if it is a disk with firmware,
/// like a real one, otherwise a part of the drive.
fn modelled_area_bytes(computer: &ModelComputer) -> u64 {
    let room_bytes = computer.free_bytes(0);
    if computer.medium() == Medium::Device
        && computer.specification.drives[0]
            .disk_specification()
            .is_some()
    {
        return round_up_to_mib(room_bytes);
    }
    let mut area_bytes = MODELLED_AREA_BYTES_MAX;
    while area_bytes > MIB && area_bytes > room_bytes / 4 {
        area_bytes /= 2;
    }
    area_bytes
}

const ROUND_DURATION_MS: &str = "60000";

/// Sets rounds of a minute for programs that are repeated until they are steady, unless the user
/// sets a size. Storage changes over minutes. Returns the remark for readers.
pub fn fit_rounds(suite: &mut Suite, experiment: &Experiment) -> Option<String> {
    let sized = experiment.size_choice != SizeChoice::AutomaticSize
        || !experiment.size_by_program.is_empty();
    let is_kept = matches!(experiment.workload, Workload::Steps { .. });
    if experiment.steady_rule.is_none() || sized || is_kept {
        return None;
    }
    let mut given = false;
    for job in suite.iter_jobs_mut() {
        if job.program.duration_max().is_none() && job.area_pass_count.is_none() {
            given |= job
                .program
                .set_parameter("duration_ms", ROUND_DURATION_MS)
                .is_ok();
        }
    }
    given.then(|| "each round lasts 60 s; --set program.duration_ms=N changes it".to_owned())
}

/// Reports whether the area of a suite has to be fitted. It is kept if the run is a repetition of
/// another one.
pub fn is_fitted(suite: &Suite, experiment: &Experiment) -> bool {
    let is_kept = matches!(experiment.workload, Workload::Steps { .. });
    !is_kept && AREA_SUITES.contains(&suite.name.as_str())
}

/// Sets a parameter of a job in a suite for modern storage.
///
/// # Panics
///
/// Panics if the job's program has no such parameter.
pub fn set_parameter(job: &mut SuiteJob, name: &str, value: &str) {
    let taken = job.program.set_parameter(name, value);
    taken.expect("the programs of these suites have an area");
}

/// Rounds bytes down to whole mebibytes, unless there is less than one.
pub fn round_up_to_mib(bytes: u64) -> u64 {
    (bytes / MIB * MIB).max(bytes.min(MIB))
}
