//! Limits on the rate of a target that are known without a measurement: those of control groups, and
//! those of a cloud volume whose type and size the user gave.

use crate::target::StorageTarget;
use diskperf_models::LaboratoryError;
use diskperf_models::model::load_catalogue;
use diskperf_models::volume::list_volume_limits;
use diskperf_system::host::group_limits::{GroupLimit, LimitedRate, list_group_limits};
use diskperf_timeline::{Experiment, KnownLimit};

/// Lists the limits of the cloud volume that an experiment names; empty if it names none.
///
/// # Errors
///
/// The volume is not in the catalogue.
pub(crate) fn list_limits_of_volume(
    experiment: &Experiment,
) -> Result<Vec<KnownLimit>, LaboratoryError> {
    let Some(volume) = &experiment.volume else {
        return Ok(Vec::new());
    };
    let catalogue = load_catalogue(experiment.catalogue_path.as_deref())?;
    list_volume_limits(&catalogue, volume)
}

/// Lists the limits that the control groups of this process set on the disks of targets.
pub(crate) fn list_limits_of_groups(targets: &[StorageTarget]) -> Vec<KnownLimit> {
    let devices = targets.iter().flat_map(|target| &target.location.devices);
    devices
        .flat_map(|device| list_group_limits(&device.name))
        .map(|limit| known_limit(&limit))
        .collect()
}

/// Slices in which the kernel counts a limit, per second. It grants whole requests in a slice.
const SLICES_PER_S: u64 = 10;

fn known_limit(limit: &GroupLimit) -> KnownLimit {
    let covers_reads = matches!(
        limit.rate,
        LimitedRate::ReadRequests | LimitedRate::ReadBytes
    );
    let counts_bytes = matches!(limit.rate, LimitedRate::ReadBytes | LimitedRate::WriteBytes);
    let granted = match counts_bytes {
        true => limit.per_s,
        false => (limit.per_s / SLICES_PER_S).max(1) * SLICES_PER_S,
    };
    KnownLimit {
        owner: format!("the own control group ({})", limit.file.display()),
        counts_bytes,
        covers_reads,
        covers_writes: !covers_reads,
        per_s: granted as f64,
        base_per_s: None,
        credits: None,
    }
}
