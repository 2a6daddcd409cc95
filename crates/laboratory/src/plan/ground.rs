//! Targets on real storage in the form that job files and replays use.

use crate::target::StorageTarget;
use diskperf_battery::{Medium, Suite};
use diskperf_models::LaboratoryError;
use diskperf_models::plan::{job_file, replay};
use diskperf_system::host::device::BlockDevice;
use diskperf_timeline::{CacheMode, TraceReplay};

pub(super) fn job_file_ground(targets: &[StorageTarget]) -> job_file::JobStorage {
    let of = |is_directory: bool| {
        let targets = targets.iter();
        targets.filter(move |target| (target.medium == Medium::Directory) == is_directory)
    };
    job_file::JobStorage {
        capacity_bytes: of(false).map(StorageTarget::free_bytes).min(),
        free_bytes: of(true).map(StorageTarget::free_bytes).min(),
        is_host: true,
        is_file: targets.iter().any(|target| target.medium == Medium::File),
        is_zoned: targets
            .iter()
            .filter_map(|target| target.device.as_ref())
            .any(BlockDevice::is_zoned),
        has_direct_io: None,
        has_ftruncate: true,
    }
}

/// Plans a replay on these targets as a suite of one step. Returns it with the remarks for readers.
pub(super) fn replay_ground(
    of: &TraceReplay,
    targets: &[StorageTarget],
    wanted: CacheMode,
) -> Result<(Suite, Vec<String>), LaboratoryError> {
    let shortest = targets.iter().min_by_key(|target| target.free_bytes());
    let room = shortest.map(|target| (target.free_bytes(), target.name()));
    let scaled_bytes = targets
        .iter()
        .map(StorageTarget::pilot_bytes)
        .min()
        .unwrap_or(0);
    let obstacle = |unit_bytes: u64| {
        let mut targets = targets.iter();
        targets.find_map(|target| target.find_direct_obstacle(unit_bytes))
    };
    let directories = targets
        .iter()
        .filter(|target| target.medium == Medium::Directory);
    let kind = (
        targets[0].medium,
        directories.map(StorageTarget::name).collect(),
    );
    let ground = replay::ReplayStorage::for_host(kind, (room, scaled_bytes), &obstacle);
    replay::build_suite(of, (&ground, &crate::files::HostFiles), wanted)
}
