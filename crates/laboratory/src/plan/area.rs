//! Size of the area on real storage that the suites of modern storage use.

use crate::target::StorageTarget;
use diskperf_battery::{Medium, Suite};
use diskperf_models::plan::area::{LOG_BYTES_MAX, is_fitted, round_up_to_mib, set_parameter};
use diskperf_timeline::units::{GIB, MIB, format_size};
use diskperf_timeline::{Device, Experiment, SizeChoice};

/// Maximum area on a file system, in bytes. It is more than four times the cache of any drive or
/// controller, and even a slow device fills it within a minute.
const AREA_BYTES_MAX: u64 = 4 * GIB;
const ADDRESS_BYTES_MAX: u64 = 1 << 60;
/// Size in bytes below which the cache of a drive or controller may hold a good part of the area.
const SMALL_AREA_BYTES: u64 = GIB;
/// Gives the programs of a suite for modern storage an area that fits the targets, before the
/// user's settings apply. Returns the remarks for readers.
pub(super) fn fit_area(
    suite: &mut Suite,
    (targets, experiment): (&[StorageTarget], &Experiment),
) -> Vec<String> {
    if !is_fitted(suite, experiment) {
        return Vec::new();
    }
    let areas = targets
        .iter()
        .map(|target| choose_area_bytes(target, experiment));
    let area_bytes = areas.min().unwrap_or(0);
    let log_bytes = (area_bytes / 4).clamp(MIB, LOG_BYTES_MAX);
    for job in suite.iter_jobs_mut() {
        let bytes = match job.program.appends_log() {
            true => log_bytes,
            false => area_bytes.max(job.program.call_bytes()),
        };
        set_parameter(job, "area_bytes", &bytes.to_string());
    }
    let mut notes = Vec::new();
    if area_bytes < SMALL_AREA_BYTES {
        notes.push(format!(
            "requests cover {}, part of which a cache of the drive or its controller may hold; --set program.area_bytes=N changes it",
            format_size(area_bytes)
        ));
    }
    notes.extend(targets.iter().filter_map(describe_hidden_cache));
    notes
}

/// Returns the area on a target in whole mebibytes: the requested size, or a share of the available
/// space.
fn choose_area_bytes(target: &StorageTarget, experiment: &Experiment) -> u64 {
    let there_bytes = match (target.medium, &experiment.fresh_filesystem) {
        (Medium::Device | Medium::File, _) => target.free_bytes(),
        // Half of the image's space is for others' files.
        (Medium::Directory, Some(_)) => target.pilot_bytes().min(GIB) / 4,
        (Medium::Directory, None) => target.pilot_bytes().min(AREA_BYTES_MAX),
    };
    let bytes = match experiment.size_choice {
        SizeChoice::SizeBytes(bytes) if target.medium == Medium::Directory => bytes,
        SizeChoice::SizeBytes(_) | SizeChoice::AutomaticSize => there_bytes,
    };
    // For a size that no disk has there is no room, which is said where that is looked at.
    round_up_to_mib(bytes).min(ADDRESS_BYTES_MAX)
}

/// Returns a note if a device has a cache below it that this host cannot drop.
fn describe_hidden_cache(target: &StorageTarget) -> Option<String> {
    let device = target
        .location
        .devices
        .iter()
        .find(|device| is_virtual(device))?;
    Some(format!(
        "{} is a virtual disk: its host may serve reads from memory and report writes early",
        device.name
    ))
}

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
