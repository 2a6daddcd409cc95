//! Search for the smallest volume of each type that carries a load.

use super::load::VolumeLoad;
use super::types::VolumeType;
use super::week::carry;
use crate::error::LaboratoryError;
use diskperf_analysis::volume::{VolumeFigures, VolumeReport, VolumeVerdict};
use diskperf_catalogue::Setting;
use std::sync::atomic::{AtomicBool, Ordering};

/// Search over types of volumes.
#[derive(Debug)]
pub struct VolumeSearch<'a> {
    /// Types of volumes that are given the load.
    pub types: &'a [VolumeType<'a>],
    /// Load that repeats until `total_ns`.
    pub load: &'a VolumeLoad,
    /// Duration of all repetitions in nanoseconds.
    pub total_ns: u64,
    /// Smallest size in GiB that the user accepts.
    pub size_gib_min: u64,
    /// Flag that is set when the user ends the calculation.
    pub stop: &'a AtomicBool,
}

/// Volume of a type with a size and rates.
struct Candidate {
    settings: Vec<Setting>,
    figures: VolumeFigures,
}

impl Candidate {
    fn carries(&self) -> bool {
        self.figures.verdict == VolumeVerdict::Carries
    }
}

/// Calculates the figures of the smallest volume of each type that carries the load, or of the
/// largest one if none does. A closed loop has no rate to carry: of each type it is given the
/// smallest volume that holds the data.
///
/// # Errors
///
/// A type that has no size for the data, if it is the only one, or the end by the user.
pub fn report_volumes(search: &VolumeSearch<'_>) -> Result<VolumeReport, LaboratoryError> {
    let mut volumes = Vec::new();
    for of_type in search.types {
        let Some(found) = search.find(of_type)? else {
            continue;
        };
        let mut figures = found.figures;
        figures.volume.clone_from(&of_type.name);
        figures.is_smallest = !of_type.is_size_fixed && figures.verdict == VolumeVerdict::Carries;
        let is_size = |setting: &&Setting| setting.path == "drive.size_gib";
        let own = of_type.fixed_settings();
        let settings = own.chain(found.settings.iter().filter(|one| !is_size(one)));
        figures.settings = settings.map(|one| one.to_string()).collect();
        volumes.push(figures);
    }
    if volumes.is_empty() {
        return Err(LaboratoryError::Request(format!(
            "no volume has {} GiB, which the load needs; give a smaller --size, or another --volume",
            search.size_gib_min()
        )));
    }
    let order = |one: &VolumeFigures| match one.verdict {
        VolumeVerdict::Carries | VolumeVerdict::Steady => 0,
        VolumeVerdict::FallsBehind | VolumeVerdict::Slows => 1,
        VolumeVerdict::Fails => 2,
    };
    if search.load.is_open() {
        volumes.sort_by_key(order);
    }
    Ok(VolumeReport {
        load: search.load.describe(search.total_ns),
        volumes,
    })
}

impl VolumeSearch<'_> {
    fn size_gib_min(&self) -> u64 {
        self.size_gib_min.max(self.load.size_gib_min())
    }

    /// Returns the smallest volume that carries the load, or the largest; `None` if none is large
    /// enough for the data.
    fn find(&self, of_type: &VolumeType<'_>) -> Result<Option<Candidate>, LaboratoryError> {
        if of_type.is_size_fixed {
            let found = self.evaluate(of_type, Vec::new())?;
            let (size_gib, needed_gib) = (found.figures.size_gib, self.size_gib_min());
            if size_gib < needed_gib {
                return Err(LaboratoryError::Request(format!(
                    "{} has {size_gib} GiB, and the data of {} take {needed_gib} GiB; give a larger size",
                    of_type.name,
                    self.load.name()
                )));
            }
            return Ok(Some(found));
        }
        if !of_type.tiers.is_empty() {
            return self.find_tier(of_type);
        }
        let range = of_type.size_range_gib();
        let low = self.size_gib_min().max(*range.start());
        if low > *range.end() {
            return Ok(None);
        }
        if of_type.parameter("iops_limit").is_some() {
            return self.find_provisioned(of_type, low).map(Some);
        }
        let at = |gib: u64| self.evaluate(of_type, vec![size_setting(gib)]);
        self.find_smallest(low, *range.end(), at).map(Some)
    }

    fn evaluate(
        &self,
        of_type: &VolumeType<'_>,
        settings: Vec<Setting>,
    ) -> Result<Candidate, LaboratoryError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(LaboratoryError::Interrupted);
        }
        let volume = of_type.specify(&settings)?;
        let figures = carry(&volume, self.load, self.total_ns);
        Ok(Candidate { settings, figures })
    }

    /// Returns the candidate at the smallest of these numbers that carries the load, or at the
    /// largest number.
    fn find_smallest(
        &self,
        mut low: u64,
        high: u64,
        at: impl Fn(u64) -> Result<Candidate, LaboratoryError>,
    ) -> Result<Candidate, LaboratoryError> {
        let smallest = at(low)?;
        if smallest.carries() || !self.load.is_open() || low == high {
            return Ok(smallest);
        }
        let mut best = at(high)?;
        if !best.carries() {
            return Ok(best);
        }
        let mut carries = high;
        while carries - low > 1 {
            let middle = low + (carries - low) / 2;
            let found = at(middle)?;
            match found.carries() {
                true => (carries, best) = (middle, found),
                false => low = middle,
            }
        }
        Ok(best)
    }

    fn find_tier(&self, of_type: &VolumeType<'_>) -> Result<Option<Candidate>, LaboratoryError> {
        let mut last = None;
        for tier in &of_type.tiers {
            let found = self.evaluate(of_type, vec![Setting::new("drive.tier", tier)])?;
            if found.figures.size_gib < self.size_gib_min() {
                continue;
            }
            let is_enough = found.carries() || !self.load.is_open();
            last = Some(found);
            if is_enough {
                break;
            }
        }
        Ok(last)
    }

    /// Returns the candidate with the fewest provisioned requests per second, and of these with
    /// the fewest bytes per second, that carries the load.
    fn find_provisioned(
        &self,
        of_type: &VolumeType<'_>,
        size_gib: u64,
    ) -> Result<Candidate, LaboratoryError> {
        let number = |key: &str| of_type.parameter(key);
        let per_gib = number("iops_limit_per_gib").unwrap_or(f64::INFINITY);
        let included = number("iops_included").unwrap_or(0.0);
        let limit = number("iops_limit").expect("a type that is provisioned") as u64;
        let size = |iops: u64| {
            let needed = if iops as f64 <= included {
                0.0
            } else {
                iops as f64 / per_gib
            };
            size_gib.max(needed.ceil() as u64)
        };
        let bytes_max = |iops: u64| {
            let most = number("bytes_per_s_limit")?;
            let by_iops =
                number("bytes_per_s_limit_per_iops").map_or(most, |per| per * iops as f64);
            let free = number("bytes_per_s_included").unwrap_or(0.0);
            Some(most.min(by_iops).max(free) as u64)
        };
        let provision = |iops: u64, bytes: Option<u64>| {
            let mut settings = vec![size_setting(size(iops))];
            settings.push(Setting::new("drive.iops", &iops.to_string()));
            settings
                .extend(bytes.map(|bytes| Setting::new("drive.bytes_per_s", &bytes.to_string())));
            self.evaluate(of_type, settings)
        };
        let least = match self.load.is_open() {
            true => number("iops_included").or(number("iops")),
            false => number("iops"),
        };
        let least = least.unwrap_or(100.0) as u64;
        let with_most_bytes = |iops| provision(iops, bytes_max(iops));
        let best = self.find_smallest(least, limit, with_most_bytes)?;
        let iops = best.settings[1].value_text.parse().unwrap_or(least);
        let Some(most) = bytes_max(iops) else {
            return Ok(best);
        };
        // Bytes are provisioned in MB/s or MiB/s; whole MB/s are near either.
        const MB: u64 = 1_000_000;
        let free = number("bytes_per_s")
            .map_or(most, |bytes| bytes as u64)
            .min(most);
        if provision(iops, Some(free))?.carries() || !self.load.is_open() {
            return provision(iops, Some(free));
        }
        let rounded = |mb: u64| provision(iops, Some((mb * MB).clamp(free, most)));
        self.find_smallest(free / MB, most.div_ceil(MB), rounded)
    }
}

fn size_setting(gib: u64) -> Setting {
    Setting::new("drive.size_gib", &gib.to_string())
}
