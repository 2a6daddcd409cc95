//! Types of volumes in the catalogue, and their sizes.

use crate::error::LaboratoryError;
use diskperf_catalogue::{Catalogue, Component, Setting};
use diskperf_device::DeviceSpecification;
use diskperf_device::volume::VolumeSpecification;
use diskperf_device::volume::charge::ChargeRules;
use std::collections::BTreeMap;

/// Prefix of the systems that are a drive by itself.
const RIG_PREFIX: &str = "bare-";
/// Largest size of a volume whose entry has no upper bound, in GiB.
const SIZE_GIB_MAX: u64 = 65_536;

/// Type of a volume: a drive of the catalogue, with the settings that the user fixed.
#[derive(Clone, Debug)]
pub struct VolumeType<'a> {
    catalogue: &'a Catalogue,
    /// Name of the drive in the catalogue.
    pub name: String,
    /// Settings that hold for every size.
    fixed_settings: Vec<Setting>,
    /// Whether the user fixed the size, by GiB or by name.
    pub is_size_fixed: bool,
    /// Names of the sizes, for a type that is sold in named sizes.
    pub tiers: Vec<String>,
    /// Values of the numeric parameters, by key.
    parameters: BTreeMap<String, f64>,
}

/// Lists types of volumes: those that are named as `TYPE`, `TYPE:100GiB` or `TYPE:TIER`, or all of
/// the catalogue without names.
///
/// # Errors
///
/// A name that is no volume of the catalogue, or a setting or size that a named volume refuses.
pub fn list_volume_types<'a>(
    catalogue: &'a Catalogue,
    names: &[String],
    settings: &[Setting],
) -> Result<Vec<VolumeType<'a>>, LaboratoryError> {
    if !names.is_empty() {
        let named = |name: &String| VolumeType::from_name(catalogue, name, settings);
        return names.iter().map(named).collect();
    }
    let mut found = Vec::new();
    for system in catalogue.system_names() {
        let Some(name) = system.strip_prefix(RIG_PREFIX) else {
            continue;
        };
        if is_volume(catalogue, name) {
            found.push(VolumeType::new(catalogue, name, settings.to_vec())?);
        }
    }
    Ok(found)
}

fn is_volume(catalogue: &Catalogue, name: &str) -> bool {
    let Ok(entry) = catalogue.component_entry(Component::Drive, name) else {
        return false;
    };
    let mut reader = entry.reader(Component::Drive, Some(1));
    reader.optional_text("kind", "kind of drive").as_deref() == Some("volume")
}

impl<'a> VolumeType<'a> {
    fn from_name(
        catalogue: &'a Catalogue,
        text: &str,
        settings: &[Setting],
    ) -> Result<Self, LaboratoryError> {
        let (name, size) = match text.split_once(':') {
            Some((name, size)) => (name, Some(size)),
            None => (text, None),
        };
        let name = name.strip_prefix(RIG_PREFIX).unwrap_or(name);
        if !is_volume(catalogue, name) {
            let known = list_volume_types(catalogue, &[], &[])?;
            let known: Vec<String> = known.into_iter().map(|one| one.name).collect();
            return Err(LaboratoryError::Request(format!(
                "--volume {text}: the catalogue has no volume `{name}`; give one of {}",
                known.join(", ")
            )));
        }
        let mut settings = settings.to_vec();
        if let Some(size) = size {
            settings.push(match parse_gib(size) {
                Some(gib) => Setting::new("drive.size_gib", &gib.to_string()),
                None => Setting::new("drive.tier", size),
            });
        }
        let mut found = Self::new(catalogue, name, settings)?;
        found.is_size_fixed |= size.is_some();
        Ok(found)
    }

    fn new(
        catalogue: &'a Catalogue,
        name: &str,
        fixed_settings: Vec<Setting>,
    ) -> Result<Self, LaboratoryError> {
        let system = catalogue
            .resolve(&format!("{RIG_PREFIX}{name}"), &fixed_settings)
            .map_err(LaboratoryError::catalogue)?;
        let cases = system.reader(Component::Drive, Some(1));
        let tiers = cases.case_names("tiers").map(str::to_owned).collect();
        drop(cases);
        let mut found = Self {
            catalogue,
            name: name.to_owned(),
            is_size_fixed: fixed_settings
                .iter()
                .any(|setting| ["drive.size_gib", "drive.tier"].contains(&setting.path.as_str())),
            fixed_settings,
            tiers,
            parameters: BTreeMap::new(),
        };
        found.parameters = found.read_parameters()?;
        let sized = |tier: &String| {
            let of_tier = [Setting::new("drive.tier", tier)];
            found.specify(&of_tier).map(|one| one.sectors)
        };
        let mut by_size = Vec::new();
        for tier in &found.tiers {
            by_size.push((sized(tier)?, tier.clone()));
        }
        by_size.sort();
        found.tiers = by_size.into_iter().map(|(_, tier)| tier).collect();
        Ok(found)
    }

    fn read_parameters(&self) -> Result<BTreeMap<String, f64>, LaboratoryError> {
        let system = self
            .catalogue
            .resolve(&format!("{RIG_PREFIX}{}", self.name), &self.fixed_settings)
            .map_err(LaboratoryError::catalogue)?;
        let mut reader = system.reader(Component::Drive, Some(1));
        DeviceSpecification::read(&mut reader, "volume");
        reader.optional_text("kind", "kind of drive");
        reader.finish();
        let all = system.finish().map_err(LaboratoryError::catalogue)?;
        let number = |value: &str| value.replace('_', "").parse::<f64>().ok();
        let numbers = all.iter().filter_map(|one| {
            let key = one.path.strip_prefix("drive.")?;
            Some((key.to_owned(), number(&one.value)?))
        });
        Ok(numbers.collect())
    }

    /// Returns a numeric parameter of the entry; `None` without it.
    pub fn parameter(&self, key: &str) -> Option<f64> {
        self.parameters.get(key).copied()
    }

    /// Returns the specification of a volume of this type with settings.
    ///
    /// # Errors
    ///
    /// A size or a rate that the type does not have.
    pub fn specify(&self, settings: &[Setting]) -> Result<VolumeSpecification, LaboratoryError> {
        let all: Vec<Setting> = self
            .fixed_settings
            .iter()
            .chain(settings)
            .cloned()
            .collect();
        let resolved = self
            .catalogue
            .resolve(&format!("{RIG_PREFIX}{}", self.name), &all)
            .and_then(DeviceSpecification::from_rig)
            .map_err(LaboratoryError::catalogue)?;
        match resolved {
            DeviceSpecification::Volume(volume) => Ok(*volume),
            _ => unreachable!("the kind of the drive was read"),
        }
    }

    /// Returns the rules by which volumes of the type charge requests.
    ///
    /// # Errors
    ///
    /// A setting that the type refuses.
    pub fn charge_rules(&self) -> Result<ChargeRules, LaboratoryError> {
        Ok(self.specify(&[])?.charge_rules)
    }

    /// Returns the sizes that the type is sold in, in GiB, smallest and largest.
    pub fn size_range_gib(&self) -> std::ops::RangeInclusive<u64> {
        let bound = |key, other| self.parameter(key).map_or(other, |gib| gib as u64);
        bound("size_gib_min", 1)..=bound("size_gib_max", SIZE_GIB_MAX)
    }

    /// Returns the settings of the user, without the size in GiB.
    pub fn fixed_settings(&self) -> impl Iterator<Item = &Setting> {
        let settings = self.fixed_settings.iter();
        settings.filter(|one| one.path != "drive.size_gib")
    }
}

/// Parses `100GiB`, `100G`, `2TiB` or `2T` to GiB.
fn parse_gib(text: &str) -> Option<u64> {
    let end = text
        .find(|one: char| !one.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "gib" | "g" | "gb" | "" => 1,
        "tib" | "t" | "tb" => 1024,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}
