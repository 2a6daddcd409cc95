//! How large an area the suites of today's storage work on.

use crate::model::computer::Computer;
use diskperf_battery::{Job, Medium, Suite};
use diskperf_timeline::units::{MIB, format_size};
use diskperf_timeline::{Experiment, SizeChoice, Workload};

/// The suites whose programs share an area of one size.
const SUITES: [&str; 2] = ["today26", "ssd26"];

/// The most that a log takes.
pub const LOG_BYTES: u64 = 64 * MIB;

/// The most that an area takes of a modelled drive: far more than its kernel caches.
const LARGEST_MODELLED_BYTES: u64 = 64 * MIB;

/// How long a repetition lasts in virtual time, where real storage takes SNIA's minute:
/// nothing disturbs it there.
const MODELLED_MS: &str = "1000";

/// The same on a modelled computer.
pub fn fit_computer(
    suite: &mut Suite,
    computer: &Computer,
    experiment: &Experiment,
) -> Vec<String> {
    if !is_fitted(suite, experiment) {
        return Vec::new();
    }
    for job in suite.jobs_mut() {
        if job.program.lasts().is_some() {
            set(job, "duration_ms", MODELLED_MS);
        }
    }
    let area_bytes = modelled_area_bytes(computer);
    for job in suite.jobs_mut() {
        let bytes = match job.program.is_log() {
            true => (area_bytes / 4).min(LOG_BYTES),
            false => area_bytes,
        };
        set(job, "area_bytes", &bytes.to_string());
    }
    let mut notes = vec![format!(
        "requests fall into {} of the drive",
        format_size(area_bytes)
    )];
    notes.extend(stream_past_cache(suite, computer, experiment));
    if computer.medium() == Medium::Directory {
        notes
            .push("its kernel cannot bypass its buffer cache, so all goes through that".to_owned());
    }
    notes
}

/// How many times the drive's cache a stream moves: else the cache holds from one
/// repetition to the next what the medium is to give.
pub const TIMES_CACHE: u64 = 4;

/// What a stream moves of a drive with such a cache.
fn past(cache_bytes: u64) -> u64 {
    TIMES_CACHE.saturating_mul(cache_bytes.next_multiple_of(MIB))
}

/// Has the streams of a suite of today's storage move as much as of a drive with such a
/// cache, whatever the one at hand has: what is compared moves as much.
pub fn stream_alike(suite: &mut Suite, experiment: &Experiment, cache_bytes: u64) {
    if cache_bytes == 0 || !is_fitted(suite, experiment) {
        return;
    }
    let streams = suite
        .jobs_mut()
        .filter(|job| job.program.name() == "sequential" && job.area_times.is_none());
    for job in streams {
        job.size_bytes = Some(past(cache_bytes) / u64::from(job.program.workers()));
    }
}

/// Has streams move several times what the drive's cache holds, where nobody says how much
/// they are to move; what a reader must know.
fn stream_past_cache(
    suite: &mut Suite,
    computer: &Computer,
    experiment: &Experiment,
) -> Option<String> {
    let cache_bytes = computer.specification.drives[0].cache_bytes();
    if cache_bytes == 0 || experiment.size != SizeChoice::Auto || !experiment.sizes.is_empty() {
        return None;
    }
    let streams = suite
        .jobs_mut()
        .filter(|job| job.program.name() == "sequential" && job.own_bytes().is_none());
    let moved_bytes = past(cache_bytes);
    let mut changed = 0;
    for job in streams {
        job.size_bytes = Some(moved_bytes / u64::from(job.program.workers()));
        changed += 1;
    }
    (changed > 0).then(|| {
        format!(
            "sequential moves {}, {TIMES_CACHE} times what the drive's cache of {} holds",
            format_size(moved_bytes),
            format_size(cache_bytes)
        )
    })
}

/// Has programs that write a flash drive move several times what its buffer holds, where
/// nobody says how much they are to move: on real storage a pilot finds such sizes. Returns
/// what a reader must know.
pub fn write_past_buffer(
    suite: &mut Suite,
    computer: &Computer,
    experiment: &Experiment,
) -> Option<String> {
    let flash = computer.specification.drives[0].flash()?;
    let is_kept = matches!(experiment.workload, Workload::Steps { .. });
    let sized = experiment.size != SizeChoice::Auto || !experiment.sizes.is_empty();
    if is_kept || sized || flash.buffer_bytes() == 0 {
        return None;
    }
    let moved_bytes = past(flash.buffer_bytes());
    let mut changed = false;
    for job in suite.jobs_mut() {
        let program = &job.program;
        // A job file and a trace say themselves how much.
        let is_said = program.fio_job().is_some() || program.replay().is_some();
        let fills = program.keeps_requests() && program.writes() && program.lasts().is_none();
        if fills && !is_said && job.own_bytes().is_none() {
            job.size_bytes = Some(moved_bytes / u64::from(program.workers()));
            changed = true;
        }
    }
    changed.then(|| {
        format!(
            "programs that write move {}, {TIMES_CACHE} times what the drive's buffer of {} holds",
            format_size(moved_bytes),
            format_size(flash.buffer_bytes())
        )
    })
}

/// All of a drive with a buffer of its own, as of a real one; else a part of the drive.
fn modelled_area_bytes(computer: &Computer) -> u64 {
    let room_bytes = computer.room_bytes(0);
    if computer.medium() == Medium::Device && computer.specification.drives[0].disk().is_some() {
        return whole_mib(room_bytes);
    }
    let mut area_bytes = LARGEST_MODELLED_BYTES;
    while area_bytes > MIB && area_bytes > room_bytes / 4 {
        area_bytes /= 2;
    }
    area_bytes
}

/// The round of SNIA's test.
const ROUND_MS: &str = "60000";

/// Gives programs that are repeated until they are steady rounds of a minute, where nobody
/// says how much they are to move: storage changes over minutes. What a reader must know.
pub fn fit_rounds(suite: &mut Suite, experiment: &Experiment) -> Option<String> {
    let sized = experiment.size != SizeChoice::Auto || !experiment.sizes.is_empty();
    let is_kept = matches!(experiment.workload, Workload::Steps { .. });
    if experiment.until_steady.is_none() || sized || is_kept {
        return None;
    }
    let mut given = false;
    for job in suite.jobs_mut() {
        if job.program.lasts().is_none() && job.area_times.is_none() {
            given |= job.program.set("duration_ms", ROUND_MS).is_ok();
        }
    }
    given.then(|| "each round lasts 60 s; --set program.duration_ms=N changes it".to_owned())
}

/// Whether a suite's area is to be fitted: not that of a run that is made again.
pub fn is_fitted(suite: &Suite, experiment: &Experiment) -> bool {
    let is_kept = matches!(experiment.workload, Workload::Steps { .. });
    !is_kept && SUITES.contains(&suite.name.as_str())
}

/// Gives a job of these suites a value of a parameter that it has.
///
/// # Panics
///
/// When its program has no such parameter.
pub fn set(job: &mut Job, name: &str, value: &str) {
    let taken = job.program.set(name, value);
    taken.expect("the programs of these suites have an area");
}

/// In whole mebibytes, if it is one at least.
pub fn whole_mib(bytes: u64) -> u64 {
    (bytes / MIB * MIB).max(bytes.min(MIB))
}
