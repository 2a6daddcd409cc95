//! How large an area the suites of today's storage work on, and whether they can go past
//! the page cache.

use crate::model::computer::Computer;
use crate::target::Target;
use diskperf_battery::{Job, Medium, Suite};
use diskperf_timeline::units::{GIB, MIB, format_size};
use diskperf_timeline::{Device, Experiment, SizeChoice, Workload};

/// The suites whose programs share an area of one size.
const SUITES: [&str; 2] = ["today26", "ssd26"];

/// The most that an area takes of a file system: more than four times the cache of any
/// drive or controller, and made in a minute by a slow one.
const LARGEST_BYTES: u64 = 4 * GIB;
/// The longest area that programs take.
const LONGEST_BYTES: u64 = 1 << 60;
/// Below this a drive's or a controller's cache may hold a good part of it.
const SMALL_BYTES: u64 = GIB;
/// The most that a log takes.
const LOG_BYTES: u64 = 64 * MIB;

/// Gives the programs of a suite of today's storage an area that fits the targets, before
/// the user's settings are made; what a reader must know.
pub(super) fn fit(
    suite: &mut Suite,
    (targets, experiment): (&[Target], &Experiment),
) -> Vec<String> {
    if !is_fitted(suite, experiment) {
        return Vec::new();
    }
    let areas = targets.iter().map(|target| area_bytes(target, experiment));
    let area_bytes = areas.min().unwrap_or(0);
    let log_bytes = (area_bytes / 4).clamp(MIB, LOG_BYTES);
    for job in suite.jobs_mut() {
        let bytes = match job.program.is_log() {
            true => log_bytes,
            false => area_bytes.max(job.program.call_bytes()),
        };
        set(job, "area_bytes", &bytes.to_string());
    }
    let mut notes = Vec::new();
    if area_bytes < SMALL_BYTES {
        notes.push(format!(
            "requests fall into {}, of which a cache of the drive or its controller may hold a part; --set program.area_bytes=N changes it",
            format_size(area_bytes)
        ));
    }
    notes.extend(targets.iter().filter_map(hidden_cache));
    notes
}

/// The most that an area takes of a modelled drive: far more than its kernel caches.
const LARGEST_MODELLED_BYTES: u64 = 64 * MIB;

/// How long a repetition lasts in virtual time, where real storage takes SNIA's minute:
/// nothing disturbs it there.
const MODELLED_MS: &str = "1000";

/// The same on a modelled computer.
pub(super) fn fit_computer(
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
pub(super) const TIMES_CACHE: u64 = 4;

/// What a stream moves of a drive with such a cache.
fn past(cache_bytes: u64) -> u64 {
    TIMES_CACHE.saturating_mul(cache_bytes.next_multiple_of(MIB))
}

/// Has the streams of a suite of today's storage move as much as of a drive with such a
/// cache, whatever the one at hand has: what is compared moves as much.
pub(super) fn stream_alike(suite: &mut Suite, experiment: &Experiment, cache_bytes: u64) {
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
pub(super) fn write_past_buffer(
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
pub(super) fn fit_rounds(suite: &mut Suite, experiment: &Experiment) -> Option<String> {
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
fn is_fitted(suite: &Suite, experiment: &Experiment) -> bool {
    let is_kept = matches!(experiment.workload, Workload::Steps { .. });
    !is_kept && SUITES.contains(&suite.name.as_str())
}

fn set(job: &mut Job, name: &str, value: &str) {
    let taken = job.program.set(name, value);
    taken.expect("the programs of these suites have an area");
}

/// The area on a target, in whole mebibytes: what was asked for, or a share of what there
/// is.
fn area_bytes(target: &Target, experiment: &Experiment) -> u64 {
    let there_bytes = match (target.medium, &experiment.fresh) {
        (Medium::Device | Medium::File, _) => target.room_bytes(),
        // Half of the image's space is for others' files.
        (Medium::Directory, Some(_)) => target.pilot_bytes().min(GIB) / 4,
        (Medium::Directory, None) => target.pilot_bytes().min(LARGEST_BYTES),
    };
    let bytes = match experiment.size {
        SizeChoice::Bytes(bytes) if target.medium == Medium::Directory => bytes,
        SizeChoice::Bytes(_) | SizeChoice::Auto => there_bytes,
    };
    // For a size that no disk has there is no room, which is said where that is looked at.
    whole_mib(bytes).min(LONGEST_BYTES)
}

/// In whole mebibytes, if it is one at least.
fn whole_mib(bytes: u64) -> u64 {
    (bytes / MIB * MIB).max(bytes.min(MIB))
}

/// That a device has a cache below it which nobody here can drop.
fn hidden_cache(target: &Target) -> Option<String> {
    let device = target
        .place
        .devices
        .iter()
        .find(|device| is_virtual(device))?;
    Some(format!(
        "{} is a virtual disk: its host may serve reads from memory and report writes early",
        device.name
    ))
}

/// Whether a device is a hypervisor's or a network's.
fn is_virtual(device: &Device) -> bool {
    let by_name = ["vd", "xvd", "nbd", "rbd"];
    let by_model = [
        "QEMU",
        "VMware",
        "Virtual",
        "VBOX",
        "Amazon Elastic",
        "Google",
    ];
    let model = device.model.as_deref().unwrap_or_default();
    by_name.iter().any(|name| device.name.starts_with(name))
        || by_model.iter().any(|name| model.contains(name))
}
