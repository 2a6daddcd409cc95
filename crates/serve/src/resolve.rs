//! The drive that a user names.

use crate::ServeError;
use diskperf_catalogue::{
    Catalogue, Component, ResolvedSystem, find_similar_names, format_choices, format_list,
};
use diskperf_device::DeviceSpecification;
use diskperf_timeline::Setting;

/// Prefix of the systems that consist of one drive.
const BARE: &str = "bare-";

/// Returns the specification of the drive that a name stands for: `sas-10k` or `bare-sas-10k`
/// of the catalogue, a variant such as `bare-nvme-tlc:NAME`, or `FILE.toml` with a system that
/// consists of one drive.
///
/// # Errors
///
/// [`ServeError::Request`] where the name is unknown, or names a whole computer or a disk mechanism
/// that needs a controller. [`ServeError::Catalogue`] where the entry or a setting is wrong.
pub fn resolve_drive(
    catalogue: &Catalogue,
    name: &str,
    settings: &[Setting],
) -> Result<DeviceSpecification, ServeError> {
    let (catalogue, system_name) = bare_system(catalogue, name);
    let is_known = || catalogue.system_names().contains(&system_name);
    if !system_name.ends_with(".toml") && !is_known() {
        return Err(unknown_drive(&catalogue, name));
    }
    let system = catalogue.resolve(&system_name, settings).map_err(refused)?;
    if system.has_component(Component::Kernel) {
        return Err(ServeError::Request(format!(
            "`{name}` is a whole computer, and one drive is needed here: `diskperf list drives` shows what there is"
        )));
    }
    if is_mechanism(&system) {
        let drives = list_complete_drives(&catalogue);
        return Err(ServeError::Request(format!(
            "`{name}` is the drive of an old controller: it has no interface of its own and cannot be served; the kinds drive, flash, volume and fixed can: {}",
            format_list(drives.iter().map(String::as_str))
        )));
    }
    DeviceSpecification::from_rig(system).map_err(refused)
}

/// Reports whether the drive is a disk mechanism, which needs a controller.
fn is_mechanism(system: &ResolvedSystem) -> bool {
    let mut reader = system.reader(Component::Drive, Some(1));
    let kind = reader.optional_text("kind", "disk, drive, flash, volume or fixed");
    kind.is_none_or(|kind| kind == "disk")
}

/// Returns the names of all drives with an interface of their own.
fn list_complete_drives(catalogue: &Catalogue) -> Vec<String> {
    let mut drives = catalogue.component_names(Component::Drive);
    drives.retain(|drive| {
        let (catalogue, name) = bare_system(catalogue, drive);
        let system = catalogue.resolve(&name, &[]);
        system.is_ok_and(|system| !is_mechanism(&system))
    });
    drives
}

/// Returns the error for a name that is neither a drive nor a system, with similar names of drives.
fn unknown_drive(catalogue: &Catalogue, name: &str) -> ServeError {
    let drives = list_complete_drives(catalogue);
    let systems = catalogue.system_names();
    let bare = systems.iter().filter(|system| system.starts_with(BARE));
    // Variants are named after the system or after its drive.
    let variants = bare.clone().map(|system| &system[BARE.len()..]);
    let drive_names = drives.iter().map(String::as_str);
    let known = drive_names.clone().chain(variants);
    let similar = match name.starts_with(BARE) {
        true => find_similar_names(name, bare.map(String::as_str)),
        false => find_similar_names(name, known),
    };
    let remedy = match similar.is_empty() {
        true => format!("there is {}", format_list(drive_names)),
        false => format_choices(similar.into_iter()),
    };
    ServeError::Request(format!("the catalogue has no drive `{name}`; {remedy}"))
}

fn refused(errors: diskperf_catalogue::Errors) -> ServeError {
    ServeError::Catalogue(Box::new(errors))
}

/// Returns the name of the system that consists of the named drive, and a catalogue that has
/// it. Names of systems and files stay as they are.
fn bare_system(catalogue: &Catalogue, name: &str) -> (Catalogue, String) {
    let drives = catalogue.component_names(Component::Drive);
    let base = name.split(':').next().unwrap_or(name);
    if !drives.iter().any(|drive| drive == base) {
        return (catalogue.clone(), name.to_owned());
    }
    let bare = format!("{BARE}{base}");
    if catalogue.system_names().contains(&bare) {
        return (catalogue.clone(), format!("{BARE}{name}"));
    }
    let text = format!(
        "description = \"The drive {base} and nothing else.\"\nsource = \"a rig: the drive's own sources\"\ndrives = 1\n\n[components]\ndrive = \"{base}\"\n"
    );
    let catalogue = catalogue.clone();
    (
        catalogue.with_file(&format!("systems/{bare}.toml"), &text),
        format!("{BARE}{name}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sectors(name: &str, settings: &[Setting]) -> u64 {
        let specification = resolve_drive(&Catalogue::embedded(), name, settings);
        let specification = specification.unwrap_or_else(|error| panic!("{name}: {error}"));
        specification.sectors().expect("a drive with sectors")
    }

    #[test]
    fn a_drive_is_named_by_itself_or_as_a_system() {
        assert_eq!(sectors("fixed", &[]), 524_288);
        assert_eq!(sectors("bare-fixed", &[]), 524_288);
        assert_eq!(sectors("sas-10k", &[]), sectors("bare-sas-10k", &[]));
    }

    #[test]
    fn settings_change_the_drive() {
        let setting = Setting::new("drive.sectors", "4096");
        assert_eq!(sectors("fixed", &[setting]), 4_096);
    }

    #[test]
    fn what_is_no_drive_is_refused_by_name() {
        let catalogue = Catalogue::embedded();
        let kinds = "the kinds drive, flash, volume and fixed can: `fixed`, `gp2`";
        for (name, expected) in [
            ("vax780-sc780-eagle", "is a whole computer"),
            ("eagle", "is the drive of an old controller"),
            ("ra81", kinds),
            ("sas10k", "no drive `sas10k`; did you mean `sas-10k`?"),
            ("SAS-10K", "did you mean `sas-10k`?"),
            ("bare-sas10k", "did you mean `bare-sas-10k`?"),
            ("nvme-tlc:hmb46", "did you mean `nvme-tlc:hmb64`?"),
            ("zzzz", "there is `fixed`, `gp2`"),
            ("./absent.toml", "absent.toml"),
        ] {
            let error = resolve_drive(&catalogue, name, &[]).expect_err(name);
            let error = error.to_string();
            let base = name.trim_start_matches("./");
            assert!(error.contains(base), "{name}: {error}");
            assert!(error.contains(expected), "{name}: {error}");
            assert!(!error.contains("vax750"), "{name}: {error}");
        }
    }
}
