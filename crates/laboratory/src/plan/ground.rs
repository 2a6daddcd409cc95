//! Targets on real storage in the form that job files and replays use.

use crate::target::Target;
use diskperf_battery::{Medium, Suite};
use diskperf_models::LaboratoryError;
use diskperf_models::plan::{job_file, replay};
use diskperf_system::host::device::BlockDevice;
use diskperf_timeline::{CacheMode, TraceReplay};

/// Describes the targets for the jobs of a job file.
pub(super) fn of_job_file(targets: &[Target]) -> job_file::Ground {
    let of = |is_directory: bool| {
        let targets = targets.iter();
        targets.filter(move |target| (target.medium == Medium::Directory) == is_directory)
    };
    job_file::Ground {
        room_bytes: of(false).map(Target::room_bytes).min(),
        free_bytes: of(true).map(Target::room_bytes).min(),
        is_real: true,
        is_file: targets.iter().any(|target| target.medium == Medium::File),
        is_zoned: targets
            .iter()
            .filter_map(|target| target.device.as_ref())
            .any(BlockDevice::is_zoned),
        direct: None,
        has_ftruncate: true,
    }
}

/// Plans a replay on these targets as a suite of one step. Returns it with the remarks for readers.
pub(super) fn replayed(
    of: &TraceReplay,
    targets: &[Target],
    wanted: CacheMode,
) -> Result<(Suite, Vec<String>), LaboratoryError> {
    let shortest = targets.iter().min_by_key(|target| target.room_bytes());
    let room = shortest.map(|target| (target.room_bytes(), target.name()));
    let scaled_bytes = targets.iter().map(Target::pilot_bytes).min().unwrap_or(0);
    let obstacle = |unit_bytes: u64| {
        let mut targets = targets.iter();
        targets.find_map(|target| target.direct_obstacle(unit_bytes))
    };
    let directories = targets
        .iter()
        .filter(|target| target.medium == Medium::Directory);
    let kind = (targets[0].medium, directories.map(Target::name).collect());
    let ground = replay::Ground::on_storage(kind, (room, scaled_bytes), &obstacle);
    replay::suite(of, (&ground, &crate::files::HostFiles), wanted)
}
