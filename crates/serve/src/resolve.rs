//! The drive that a user names.

use crate::ServeError;
use diskperf_catalogue::{Catalogue, Component};
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
/// [`ServeError::Catalogue`] where the name, the entry or a setting is wrong, or where it names
/// a whole computer.
pub fn resolve_drive(
    catalogue: &Catalogue,
    name: &str,
    settings: &[Setting],
) -> Result<DeviceSpecification, ServeError> {
    let (catalogue, name) = bare_system(catalogue, name);
    let system = catalogue.resolve(&name, settings).map_err(refused)?;
    if system.has_component(Component::Kernel) {
        return Err(ServeError::Request(format!(
            "`{name}` is a whole computer, and serve takes one drive: `diskperf list drives` shows what there is"
        )));
    }
    DeviceSpecification::from_rig(system).map_err(refused)
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
        for name in ["vax780-sc780-eagle", "eagle", "sas-10", "./absent.toml"] {
            let error = resolve_drive(&catalogue, name, &[]).expect_err(name);
            let base = name.trim_start_matches("./");
            assert!(error.to_string().contains(base), "{name}: {error}");
        }
    }
}
