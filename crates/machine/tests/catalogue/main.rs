//! What the machine reads of the catalogue, and what it says of mistakes.

mod any_text;

use diskperf_catalogue::{Catalogue, Setting};
use diskperf_machine::specification::{MachineSpecification, Software};

/// The text of an embedded file.
fn embedded_text(path: &str) -> String {
    let catalogue = Catalogue::embedded();
    let found = catalogue.file_texts().find(|(known, _)| *known == path);
    found.unwrap_or_else(|| panic!("no {path}")).1.to_owned()
}

#[test]
fn every_system_and_variant_is_a_specification() {
    let catalogue = Catalogue::embedded();
    let names = catalogue.system_names();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        let system = catalogue.resolve(&name, &[]).expect("a system");
        let (machine, parameters) = MachineSpecification::read_machine(system)
            .unwrap_or_else(|errors| panic!("{name}: {errors}"));
        assert!(!machine.drives.is_empty(), "{name}");
        // A computer has many parameters, a drive by itself its own.
        if matches!(machine.software, Software::Rig) {
            let is_of_drive = |path: &str| path.starts_with("drive.");
            assert!(!parameters.is_empty(), "{name}");
            for parameter in &parameters {
                assert!(is_of_drive(&parameter.path), "{name}: {}", parameter.path);
            }
        } else {
            assert!(parameters.len() > 30, "{name}");
        }
    }
}

#[test]
fn a_driver_of_a_drive_without_a_controller_of_its_own_is_refused() {
    let setting = Setting::parse("driver.2.component=hp-1984").expect("a setting");
    let system = Catalogue::embedded().resolve("vax780-sc780-eagle", &[setting]);
    let error = MachineSpecification::read_machine(system.expect("a system"))
        .expect_err("nothing reads it")
        .to_string();
    for part in ["takes nothing from its driver", "has no effect"] {
        assert!(error.contains(part), "no {part:?} in:\n{error}");
    }
}

#[test]
fn an_unknown_key_of_a_flash_drive_is_refused() {
    let embedded = Catalogue::embedded();
    let drives = embedded.file_texts().filter_map(|(path, text)| {
        let name = path.strip_prefix("drives/")?.strip_suffix(".toml")?;
        text.contains("kind = \"flash\"")
            .then_some((path, name, text))
    });
    let mut tried = 0;
    for (path, name, text) in drives {
        let content = format!("nothing_like_this = 1\n{text}");
        let catalogue = Catalogue::embedded().with_file(path, &content);
        let Ok(system) = catalogue.resolve(&format!("bare-{name}"), &[]) else {
            continue;
        };
        let error = MachineSpecification::read_machine(system).expect_err("an unknown key");
        assert_eq!(error.problems().len(), 1, "{error}");
        assert!(error.to_string().contains(".toml:1:1"), "{error}");
        tried += 1;
    }
    assert!(tried > 3, "{tried}");
}
