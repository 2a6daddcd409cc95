//! What overrides what.

use super::super::{CalibrationMethod, Catalogue, Component, Setting, ValueOrigin};
use super::declarations;
use super::{overlaid, parameters, settings, value};

const SYSTEM: &str = "vax780-sc780-eagle";

#[test]
fn a_variant_overrides_its_system_which_overrides_its_components() {
    let base = parameters(SYSTEM, &[]).expect("a system");
    assert_eq!(value(&base, "driver.search_lead_sectors"), "7");
    assert_eq!(value(&base, "controller.attention"), "while-transferring");
    assert_eq!(value(&base, "filesystem.rotdelay_ms"), "4");
    assert_eq!(value(&base, "controller.data_late_per_sector"), "0");
    let early = parameters(
        &format!("{SYSTEM}:inadequate-lead-initial-arbitration"),
        &[],
    )
    .expect("a variant");
    assert_eq!(value(&early, "driver.search_lead_sectors"), "2");
    assert_eq!(value(&early, "driver.position_test"), "1981");
    assert_eq!(value(&early, "controller.attention"), "when-idle");
    assert_eq!(value(&early, "filesystem.rotdelay_ms"), "2");
    assert_eq!(value(&early, "controller.buffer_sectors"), "1");
    let middle = parameters(&format!("{SYSTEM}:initial-arbitration"), &[]).expect("a variant");
    assert_eq!(value(&middle, "driver.search_lead_sectors"), "7");
    assert_eq!(value(&middle, "filesystem.rotdelay_ms"), "4");
}

#[test]
fn a_system_may_extend_another() {
    let predicted = parameters("vax750-si9900-eagle", &[]).expect("a system");
    assert_eq!(value(&predicted, "host.speed"), "0.6");
    assert_eq!(value(&predicted, "filesystem.rotdelay_ms"), "2");
    let catalogue = Catalogue::embedded();
    let system = catalogue
        .resolve("vax750-si9900-eagle", &[])
        .expect("a system");
    assert_eq!(system.component_name(Component::Controller, None), "si9900");
    assert_eq!(system.component_name(Component::Host, None), "vax750");
}

#[test]
fn settings_are_strongest_and_the_last_one_counts() {
    let changed = [
        "drive.seek_average_ms=20",
        "drive.seek_average_ms=21.5",
        "host.speed=2",
    ];
    let changed = parameters(SYSTEM, &changed).expect("settings");
    let seek = changed
        .iter()
        .find(|parameter| parameter.path == "drive.seek_average_ms")
        .expect("the path");
    assert_eq!(seek.value, "21.5");
    assert_eq!(
        (seek.source.as_str(), seek.file.as_str()),
        ("--set", "--set")
    );
    assert_eq!(seek.unit, "ms");
    assert_eq!(seek.range, "0 to 1000");
    assert_eq!(value(&changed, "host.speed"), "2");
    let lead = parameters(SYSTEM, &["driver.search_lead_sectors=2"]).expect("a setting");
    assert_eq!(value(&lead, "driver.search_lead_sectors"), "2");
    for (path, written, bytes) in [
        ("filesystem.block_bytes", "4K", "4096"),
        ("filesystem.bytes_per_inode", "4KB", "4000"),
        ("host.memory_bytes", "8MiB", "8388608"),
        ("host.memory_bytes", "8388608", "8388608"),
    ] {
        let sized = parameters(SYSTEM, &[&format!("{path}={written}")]).expect("a size");
        assert_eq!(value(&sized, path), bytes);
    }
}

#[test]
fn a_block_size_and_its_file_system_mean_the_same() {
    for system in [
        "vax780-sc780-eagle",
        "vax780-si9900-eagle",
        "vax750-sc750-eagle",
    ] {
        let pick = |arguments: &[&str]| -> Vec<(String, String)> {
            parameters(system, arguments)
                .expect("a system")
                .into_iter()
                .map(|parameter| (parameter.path, parameter.value))
                .collect()
        };
        let named = pick(&["filesystem=4k"]);
        assert_eq!(named, pick(&["filesystem.block_bytes=4096"]));
        assert_ne!(named, pick(&[]));
    }
}

#[test]
fn one_drive_differs_from_the_others() {
    let changed = parameters(SYSTEM, &["drive.2.spindle_rpm=3950"]).expect("a setting");
    assert_eq!(value(&changed, "drive.1.spindle_rpm"), "3961");
    assert_eq!(value(&changed, "drive.2.spindle_rpm"), "3950");
    assert_eq!(value(&changed, "drive.cylinders"), "842");
    let all = parameters(
        SYSTEM,
        &["drive.2.spindle_rpm=3950", "drive.spindle_rpm=3000"],
    );
    let all = all.expect("the special one is stronger, whatever the order");
    assert_eq!(value(&all, "drive.1.spindle_rpm"), "3000");
    assert_eq!(value(&all, "drive.2.spindle_rpm"), "3950");
}

#[test]
fn another_entry_takes_a_component_s_place() {
    let catalogue = Catalogue::embedded();
    let names = |arguments: &[&str]| -> Vec<String> {
        let settings = settings(arguments);
        let system = catalogue
            .resolve("vax780-si9900-cdc9775", &settings)
            .expect("a system");
        (1..=system.drive_count())
            .map(|drive| {
                system
                    .component_name(Component::Drive, Some(drive))
                    .to_string()
            })
            .collect()
    };
    assert_eq!(
        names(&[]),
        ["cdc9775-rm05", "cdc9775-rm05", "cdc9766", "eagle"]
    );
    assert_eq!(names(&["drive=capricorn"]), ["capricorn"; 4]);
    assert_eq!(
        names(&["drive.2=capricorn", "drives=3"]),
        ["cdc9775-rm05", "capricorn", "cdc9766"]
    );
}

#[test]
fn fewer_drives_leave_what_the_system_says_of_the_others_unused() {
    let read = parameters("vax780-si9900-cdc9775", &["drives=1"]).expect("a setting");
    assert!(
        read.iter()
            .all(|parameter| !parameter.path.starts_with("drive.3."))
    );
    let error = parameters(SYSTEM, &["drive.3.spindle_rpm=3000"]).expect_err("there are two");
    assert!(
        error.to_string().contains("the system has no drive 3"),
        "{error}"
    );
    parameters(SYSTEM, &["drive.3.spindle_rpm=3000", "drives=3"]).expect("there are three");
}

#[test]
fn the_driver_s_numbers_follow_the_type_of_drive() {
    let mixed = parameters("vax780-si9900-cdc9775", &[]).expect("a system");
    assert_eq!(value(&mixed, "driver.type.rm05.search_lead_sectors"), "3");
    assert_eq!(value(&mixed, "driver.type.eagle.search_lead_sectors"), "7");
    assert!(
        mixed
            .iter()
            .any(|parameter| parameter.path == "driver.start_ms")
    );
    let path = "driver.type.eagle.search_lead_sectors=15";
    let changed = parameters("vax780-si9900-cdc9775", &[path]).expect("a setting");
    assert_eq!(value(&changed, "driver.type.rm05.search_lead_sectors"), "3");
    assert_eq!(
        value(&changed, "driver.type.eagle.search_lead_sectors"),
        "15"
    );
    let error = parameters(SYSTEM, &["drive=ra81"]).expect_err("the hp driver knows no RA81");
    assert!(
        error
            .to_string()
            .contains("driver `hp-1983-07` has no type `ra81`"),
        "{error}"
    );
}

#[test]
fn an_overlay_replaces_and_adds_entries() {
    let fast = "extends = 'eagle'\nspindle_rpm = 7200\nspindle_rpm_source = 'a wish'\n";
    let system = "extends = 'vax780-sc780-eagle:initial-arbitration'\n\
        [components]\ndrive = 'fast'\n[drive.2]\ncomponent = 'eagle'\n";
    let (folder, catalogue) =
        overlaid(&[("drives/fast.toml", fast), ("systems/mine.toml", system)]);
    let catalogue = catalogue.expect("readable files");
    assert!(catalogue.system_names().contains(&"mine".to_string()));
    let read = declarations::read(&catalogue, "mine", &[]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(value(&read, "drive.1.spindle_rpm"), "7200");
    assert_eq!(value(&read, "drive.2.spindle_rpm"), "3961");
    assert_eq!(value(&read, "controller.attention"), "when-idle");
    let speed = read
        .iter()
        .find(|parameter| parameter.path == "drive.1.spindle_rpm");
    let speed = speed.expect("the path");
    assert_eq!((speed.source.as_str(), speed.line), ("a wish", 2));
    assert!(speed.file.ends_with("fast.toml"), "{}", speed.file);
    // A file of the user's own, by its path.
    let path = folder.path().join("systems/mine.toml");
    let path = path.to_str().expect("a text path");
    let by_path = declarations::read(&catalogue, path, &[]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(value(&by_path, "drive.1.spindle_rpm"), "7200");
}

#[test]
fn a_run_keeps_every_text_that_took_part() {
    let catalogue = Catalogue::embedded();
    let system = catalogue
        .resolve("vax780-sc780-eagle:initial-arbitration", &[])
        .expect("a system");
    let names: Vec<&str> = system.file_texts().map(|(name, _)| name).collect();
    for name in [
        "catalogue/systems/vax780-sc780-eagle.toml",
        "catalogue/systems/vax780-sc780-eagle/initial-arbitration.toml",
        "catalogue/controllers/sc780.toml",
        "catalogue/controllers/sc780-initial-arbitration.toml",
        "catalogue/drives/eagle.toml",
    ] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
}

#[test]
fn a_source_says_where_a_value_comes_from() {
    let content = "extends = 'eagle'\nspindle_rpm = 3600\nsettle_ms = 1\n\
        settle_ms_source = 'calibrated on: some-set; a remark'\nwrite_settle_ms = 2\n\
        write_settle_ms_source = 'assumed: as good as any'\nsource = 'a data sheet'\n\
        track_skew_sectors = 1\ntrack_skew_sectors_source = 'fitted: to something'\n\
        cylinder_skew_sectors = 1\n\
        cylinder_skew_sectors_source = 'calibrated by hand on: some-set; a remark'\n";
    let (_folder, catalogue) = overlaid(&[("drives/mine.toml", content)]);
    let settings = settings(&["drive=mine", "drive.head_switch_ms=1"]);
    let read = declarations::read(&catalogue.expect("readable"), SYSTEM, &settings);
    let read = read.unwrap_or_else(|errors| panic!("{errors}"));
    let found = |path: &str| {
        let found = read.iter().find(|parameter| parameter.path == path);
        found.expect("the path")
    };
    assert_eq!(found("drive.spindle_rpm").source, "a data sheet");
    assert_eq!(found("drive.spindle_rpm").origin(), ValueOrigin::Documented);
    let chosen = |by| {
        let set = "some-set".to_string();
        ValueOrigin::Calibrated { set, by }
    };
    assert_eq!(
        found("drive.settle_ms").origin(),
        chosen(CalibrationMethod::AutomaticFit)
    );
    let by_hand = found("drive.cylinder_skew_sectors").origin();
    assert_eq!(by_hand, chosen(CalibrationMethod::ByHand));
    assert_eq!(
        found("drive.write_settle_ms").origin(),
        ValueOrigin::Assumed
    );
    assert_eq!(
        found("drive.track_skew_sectors").origin(),
        ValueOrigin::Assumed
    );
    assert_eq!(found("drive.head_switch_ms").source, "--set");
    // What it inherits keeps the source that it was inherited with.
    assert_eq!(
        found("drive.heads").source,
        "Kridle and McKusick 1983, drive table"
    );
}

#[test]
fn times_become_nanoseconds_by_one_rule() {
    let catalogue = Catalogue::embedded();
    for (text, nanoseconds) in [
        ("17", 17_000_000),
        ("0.3156", 315_600),
        ("0.0000005", 1),
        ("0.0000004", 0),
        ("1e1", 10_000_000),
    ] {
        let setting = Setting {
            path: "drive.settle_ms".to_string(),
            value_text: text.to_string(),
        };
        let system = catalogue.resolve(SYSTEM, &[setting]).expect("a system");
        let mut reader = system.reader(Component::Drive, Some(1));
        assert_eq!(
            reader.milliseconds("settle_ms", 0.0..=1000.0, "settle"),
            nanoseconds
        );
    }
}
