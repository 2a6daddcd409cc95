//! Limits of a cloud volume of a known type and size, for probes that find its rates.

use super::types::list_volume_types;
use crate::error::LaboratoryError;
use diskperf_catalogue::Catalogue;
use diskperf_device::volume::limit::LimitSpecification;
use diskperf_timeline::{KnownLimit, VolumeLimit};

/// Lists the limits of a volume that is named as `TYPE`, `TYPE:100GiB` or `TYPE:TIER`.
///
/// # Errors
///
/// A name that is no volume of the catalogue, or a size that the type refuses.
pub fn list_volume_limits(
    catalogue: &Catalogue,
    volume: &str,
) -> Result<Vec<KnownLimit>, LaboratoryError> {
    let types = list_volume_types(catalogue, &[volume.to_owned()], &[])?;
    let mut limits = Vec::new();
    for one in &types {
        for limit in one.specify(&[])?.limits {
            limits.extend(known_limits(volume, &limit));
        }
    }
    Ok(limits)
}

/// Returns the limit for all requests, or where reads and writes have other rates, one for either.
fn known_limits(volume: &str, limit: &LimitSpecification) -> Vec<KnownLimit> {
    let owner = match limit.kind {
        VolumeLimit::VolumeRequests => "requests/s of the volume",
        VolumeLimit::VolumeBytes => "bytes/s of the volume",
        VolumeLimit::InstanceRequests => "requests/s of the instance",
        VolumeLimit::InstanceBytes => "bytes/s of the instance",
    };
    let known = |base_milli: u64, covers_reads, covers_writes| {
        let peak_milli = limit.burst.map_or(base_milli, |burst| burst.rate_milli);
        KnownLimit {
            owner: format!("{volume}: {owner}"),
            counts_bytes: limit.kind.is_of_bytes(),
            covers_reads,
            covers_writes,
            per_s: peak_milli as f64 / 1000.0,
            base_per_s: limit.burst.map(|_| base_milli as f64 / 1000.0),
            credits: limit.burst.map(|burst| burst.credits as f64),
        }
    };
    let (read, write) = (limit.base.read_milli, limit.base.write_milli);
    match read == write {
        true => vec![known(read, true, true)],
        false => vec![known(read, true, false), known(write, false, true)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_a_volume_have_its_formula() {
        let limits = list_volume_limits(&Catalogue::embedded(), "gp2:100GiB").expect("limits");
        let requests = limits.iter().find(|limit| !limit.counts_bytes);
        let requests = requests.expect("a limit on requests");
        assert_eq!(
            (requests.per_s, requests.base_per_s, requests.credits),
            (3000.0, Some(300.0), Some(5.4e6))
        );
        let standard = list_volume_limits(&Catalogue::embedded(), "pd-standard:250GiB");
        let reads: Vec<f64> = standard
            .expect("limits")
            .iter()
            .filter(|limit| !limit.counts_bytes && limit.covers_reads)
            .map(|limit| limit.per_s)
            .collect();
        assert_eq!(reads, [187.5]);
    }
}
