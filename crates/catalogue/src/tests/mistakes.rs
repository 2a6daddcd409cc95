//! What is said about mistakes: the file, the line and column, what is wrong,
//! and what is allowed.

use super::super::{Catalogue, Component, Errors, Setting};
use super::declarations;
use super::{drive_mistakes, embedded_text, every_entry, overlaid, parameters, write};

const SYSTEM: &str = "vax780-sc780-eagle";

/// The Eagle's file with one line replaced.
fn eagle_with(line: &str, replacement: &str) -> String {
    let text = embedded_text("drives/eagle.toml");
    assert!(text.contains(line), "{line}");
    text.replacen(line, replacement, 1)
}

fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "no {part:?} in:\n{message}");
    }
}

fn setting_says(arguments: &[&str], parts: &[&str]) {
    match parameters(SYSTEM, arguments) {
        Ok(_) => panic!("accepted: {arguments:?}"),
        Err(errors) => says(&errors.to_string(), parts),
    }
}

fn entry_mistakes(component: Component, name: &str, content: &str) -> Errors {
    let path = format!("{}/{name}.toml", component.folder_name());
    let (_folder, catalogue) = overlaid(&[(&path, content)]);
    let read = catalogue
        .expect("readable files")
        .component_entry(component, name)
        .and_then(|system| declarations::read_entry(system, component));
    read.expect_err("a mistake")
}

#[test]
fn a_value_out_of_range_is_shown_in_its_line() {
    let message = drive_mistakes(&eagle_with("heads = 20", "heads = 0"));
    says(
        &message,
        &[
            "error: `heads` is out of range: 0",
            "drives/eagle.toml:5:9",
            "5 | heads = 0",
        ],
    );
    says(
        &message,
        &["^ must be a whole number from 1 to 1000 tracks per cylinder"],
    );
    assert_eq!(message.matches("error:").count(), 1, "{message}");
}

#[test]
fn wrong_types_are_named() {
    let seek = "seek_average_ms = 18";
    for (written, parts) in [
        (
            "seek_average_ms = \"17 ms\"",
            ["cannot be text", "`seek_average_ms` is in ms"],
        ),
        (
            "seek_average_ms = true",
            ["cannot be a flag", "a number from 0 to 1000 ms"],
        ),
        (
            "seek_average_ms = [1, 2]",
            ["cannot be a list", "a number from 0 to 1000 ms"],
        ),
        (
            "seek_average_ms = 1983-07-27",
            ["cannot be a date", "a number from 0 to 1000 ms"],
        ),
        (
            "seek_average_ms = {a = 1}",
            ["cannot be a table", "a number from 0 to 1000 ms"],
        ),
        (
            "seek_average_ms = nan",
            ["out of range: nan", "a number from 0 to 1000 ms"],
        ),
        (
            "seek_average_ms = inf",
            ["out of range: inf", "a number from 0 to 1000 ms"],
        ),
        (
            "seek_average_ms = -1",
            ["out of range: -1", "a number from 0 to 1000 ms"],
        ),
        (
            "seek_average_ms = 1e999",
            ["out of range: 1e999", "a number from 0 to 1000 ms"],
        ),
    ] {
        says(&drive_mistakes(&eagle_with(seek, written)), &parts);
    }
    let cylinders = "cylinders = 842";
    for (written, part) in [
        ("cylinders = 842.0", "cannot be a number"),
        ("cylinders = -842", "out of range: -842"),
        (
            "cylinders = 99999999999999999999999999999999999999999999999",
            "out of range: 9999",
        ),
    ] {
        says(
            &drive_mistakes(&eagle_with(cylinders, written)),
            &[part, "eagle.toml:4:13"],
        );
    }
}

#[test]
fn a_wrong_unit_is_one_mistake_and_is_converted() {
    let message = drive_mistakes(&eagle_with(
        "seek_average_ms = 18",
        "seek_average_us = 18_000",
    ));
    says(
        &message,
        &[
            "unknown key `seek_average_us`",
            "this is given in ms: `seek_average_ms = 18`",
        ],
    );
    assert_eq!(message.matches("error:").count(), 1, "{message}");
    let message = drive_mistakes(&eagle_with("spindle_rpm = 3961", "spindle_hz = 66"));
    says(&message, &["this is given in rpm: `spindle_rpm`"]);
}

#[test]
fn a_misspelt_key_is_one_mistake_with_the_near_names() {
    let message = drive_mistakes(&eagle_with("cylinders = 842", "cylindres = 842"));
    says(
        &message,
        &[
            "unknown key `cylindres` of drive",
            "did you mean `cylinders`",
            ":4:1",
        ],
    );
    assert_eq!(message.matches("error:").count(), 1, "{message}");
    let message = drive_mistakes(&eagle_with("label_rpm_source", "label_rmp_source"));
    says(
        &message,
        &[
            "unknown key `label_rmp_source`",
            "no `label_rmp` stands beside it",
        ],
    );
}

#[test]
fn all_mistakes_come_out_at_once() {
    let content = eagle_with("heads = 20", "heads = 0")
        .replace("cylinders = 842", "cylinders = 'many'")
        .replace("driver_type = \"eagle\"", "driver_type = 3\nsurprise = 1");
    let message = drive_mistakes(&content);
    says(
        &message,
        &["`heads`", "`cylinders`", "`driver_type`", "`surprise`"],
    );
}

#[test]
fn an_impossible_geometry_points_at_the_value() {
    let message = drive_mistakes(&eagle_with("interleave = 1", "interleave = 49"));
    says(
        &message,
        &[
            "`interleave`: more than the sectors of a track",
            "must be from 1 to 48",
        ],
    );
    setting_says(
        &["driver.search_lead_sectors=48"],
        &["longer than a track", "--set:1:28", "must be from 0 to 47"],
    );
    setting_says(
        &["filesystem.rotdelay_ms=16"],
        &["longer than a revolution", "--set:1:24", "below 15 ms"],
    );
    // A stand-in for a refused value is no reason for a second message.
    let error = parameters(SYSTEM, &["drive.sectors_per_track=0"]).expect_err("no sectors");
    assert_eq!(error.problems().len(), 1, "{error}");
}

#[test]
fn a_file_that_is_not_toml_says_where() {
    let message = drive_mistakes("cylinders = \nheads = 3\n");
    says(&message, &["not a valid TOML file", "eagle.toml:1:"]);
    let message = drive_mistakes(&eagle_with("heads = 20", "heads = 20\nheads = 21"));
    says(&message, &["duplicate key", "eagle.toml:6:1"]);
    let message = drive_mistakes("");
    says(
        &message,
        &["drive `eagle` lacks `cylinders`", "eagle.toml:1:1"],
    );
}

#[test]
fn binary_garbage_and_foreign_folders_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    write(
        folder.path(),
        "drives/eagle.toml",
        &[0x66, 0xff, 0x00, 0xfe],
    );
    let error = Catalogue::embedded()
        .with_overlay(folder.path())
        .expect_err("bytes");
    says(&error.to_string(), &["eagle.toml", "offset 1 is not UTF-8"]);
    let (_folder, catalogue) = overlaid(&[("drivs/eagle.toml", "")]);
    let error = catalogue.expect_err("a misspelt folder").to_string();
    says(&error, &["no folder `drivs`", "`drives`"]);
    let error = Catalogue::embedded().with_overlay(&folder.path().join("none"));
    says(
        &error.expect_err("no folder").to_string(),
        &["cannot read the catalogue folder"],
    );
}

#[test]
fn extends_goes_one_level_deep() {
    let drive = Component::Drive;
    let error = entry_mistakes(drive, "mine", "extends = 'egale'\n").to_string();
    says(
        &error,
        &["no drive `egale`", "mine.toml:1:11", "did you mean `eagle`"],
    );
    let error = entry_mistakes(drive, "mine", "extends = 'mine'\n").to_string();
    says(&error, &["`mine` extends itself", "mine.toml:1:11"]);
    let error = entry_mistakes(drive, "mine", "extends = 'cdc9766'\n").to_string();
    says(
        &error,
        &[
            "`cdc9766` extends \"cdc9775\" in turn",
            "one level is allowed",
        ],
    );
    let error = entry_mistakes(drive, "mine", "extends = 3\n").to_string();
    says(&error, &["`extends` cannot be a whole number"]);
    for (path, content, part) in [
        ("systems/mine.toml", "extends = 'mine'\n", "extends itself"),
        (
            "systems/mine.toml",
            "extends = 'vax750-si9900-eagle'\n",
            "in turn",
        ),
        (
            "systems/mine.toml",
            "extends = 'vax780-sc780'\n",
            "no system `vax780-sc780`",
        ),
    ] {
        let (_folder, catalogue) = overlaid(&[(path, content)]);
        let error = declarations::read(&catalogue.expect("readable"), "mine", &[]);
        says(
            &error.expect_err("a mistake").to_string(),
            &[part, "mine.toml:1:11"],
        );
    }
}

#[test]
fn misspelt_systems_and_variants_get_the_near_names() {
    for (target, near) in [
        ("vax780-sc780-egale", "vax780-sc780-eagle"),
        (
            "vax780-sc780-eagle:initial-arbitraton",
            "vax780-sc780-eagle:initial-arbitration",
        ),
        ("vax780-uda50", "vax780-uda50-ra81"),
        ("qqqqqqqqqqqqqqq", "bare-nvme-qlc"),
        (
            "vax780-sc780-eagle/initial-arbitration",
            "vax780-sc780-eagle:initial-arbitration",
        ),
        ("", "bare-gp2"),
    ] {
        let error = parameters(target, &[]).expect_err("unknown").to_string();
        says(
            &error,
            &["the catalogue has no system", &format!("`{near}`")],
        );
    }
    let error = parameters("/nowhere/mine.toml", &[])
        .expect_err("no file")
        .to_string();
    says(&error, &["/nowhere/mine.toml: "]);
}

#[test]
fn a_system_file_s_own_mistakes_are_found() {
    let content = "drives = 9\nspeed = 3\n[components]\ndrvie = 'eagle'\ndrive = 'eagel'\n\
        host = 3\n[drvie]\nheads = 2\n[bus.sbi]\nbytes_per_s = 3\n";
    let (_folder, catalogue) = overlaid(&[("systems/mine.toml", content)]);
    let error = declarations::read(&catalogue.expect("readable"), "mine", &[]).expect_err("bad");
    let message = error.to_string();
    says(
        &message,
        &[
            "`drives` is out of range: 9",
            "from 1 to 8 drives",
            "mine.toml:1:10",
        ],
    );
    says(
        &message,
        &[
            "no component `drvie`",
            "did you mean `drive`",
            "mine.toml:4:1",
        ],
    );
    says(
        &message,
        &["no drive `eagel`", "did you mean `eagle`", "mine.toml:5:9"],
    );
    says(
        &message,
        &[
            "`host` cannot be a whole number",
            "the system names no kernel",
        ],
    );
    says(
        &message,
        &["a system has no `drvie`", "a system has no `speed`"],
    );
}

/// A file of a component, asked for as a system, is told as what it is in one line.
#[test]
fn a_component_is_no_system() {
    let (folder, catalogue) = overlaid(&[("drives/mine.toml", "heads = 2\nspindle_rpm = 7200\n")]);
    let path = folder.path().join("drives/mine.toml");
    let name = path.to_str().expect("of letters");
    let error = declarations::read(&catalogue.expect("readable"), name, &[]).expect_err("bad");
    let message = error.to_string();
    says(
        &message,
        &[
            "mine.toml is a drive, and no system",
            "diskperf show mine --catalogue",
        ],
    );
    assert!(!message.contains("a system has no"), "{message}");
}

#[test]
fn mistakes_of_settings_point_into_the_setting() {
    setting_says(
        &["drive.seek_avarage_ms=3"],
        &[
            "unknown key `seek_avarage_ms`",
            "--set:1:1",
            "did you mean `seek_average_ms`",
        ],
    );
    setting_says(
        &["drive.seek_average_ms=17 ms"],
        &["--set:1:23", "`seek_average_ms` is in ms"],
    );
    setting_says(
        &["drive.seek_average_us=17000"],
        &["`seek_average_ms = 17`"],
    );
    setting_says(&["dirve.heads=3"], &["a system has no `dirve`", "`drive`"]);
    setting_says(
        &["rotdelay_ms=7"],
        &[
            "a system has no `rotdelay_ms`",
            "did you mean `filesystem.rotdelay_ms`?",
        ],
    );
    setting_says(
        &["drive=capricron"],
        &["no drive `capricron`", "`capricorn`", "--set:1:7"],
    );
    setting_says(
        &["drive.9.heads=3"],
        &["no drive 9", "its drives are 1 to 2"],
    );
    setting_says(&["drive.01.heads=3"], &["no drive 01"]);
    setting_says(
        &["controller.2.command_ms=3"],
        &["drive 2 has no controller for itself", "has no effect"],
    );
    setting_says(
        &["drives=0"],
        &["`drives` is out of range", "from 1 to 8 drives"],
    );
    setting_says(&["drives=[1"], &["`drives` cannot be text"]);
    setting_says(
        &["driver.position_test=1985"],
        &["cannot be `1985`", "`1984`"],
    );
    setting_says(
        &["kernel.disksort=read-first"],
        &["did you mean `reads-first`?"],
    );
    setting_says(&["controller.separate_adaptors=yes"], &["true or false"]);
    setting_says(&["drive.heads.more=3"], &["`heads` cannot be a table"]);
    setting_says(
        &["drive.heads=3", "drive.heads.more=3"],
        &["as a value and as a table"],
    );
    setting_says(
        &["components=3"],
        &["`components` cannot be a whole number"],
    );
    setting_says(
        &["controller.credits=3"],
        &["unknown key `credits` of controller"],
    );
}

#[test]
fn values_of_types_that_were_not_selected_are_checked_too() {
    let error = parameters(SYSTEM, &["driver.type.rp07.search_lead_sectors=-1"]);
    says(
        &error.expect_err("negative").to_string(),
        &["`search_lead_sectors` is out of range"],
    );
    let error = parameters(SYSTEM, &["driver.type.rp07.serch_lead_sectors=1"]);
    says(
        &error.expect_err("misspelt").to_string(),
        &["unknown key `serch_lead_sectors`"],
    );
    let error = parameters(SYSTEM, &["driver.type.rp07=1"]);
    assert!(error.is_err());
}

#[test]
fn a_setting_of_what_nothing_reads_is_refused() {
    let catalogue = Catalogue::embedded();
    let setting = Setting::parse("bus.bytes_per_s=5").expect("a setting");
    let system = catalogue.resolve(SYSTEM, &[setting]).expect("a system");
    let error = system
        .finish()
        .expect_err("nobody read the bus")
        .to_string();
    says(&error, &["takes nothing from its bus", "--set:1:1"]);
}

#[test]
fn an_unknown_key_in_any_entry_is_refused() {
    let declared = [Component::Drive, Component::Driver, Component::Filesystem];
    for (component, name) in every_entry(&Catalogue::embedded()) {
        if !declared.contains(&component) {
            continue;
        }
        let path = format!("{}/{name}.toml", component.folder_name());
        let text = embedded_text(&path);
        // The keys of a flash drive and of a volume are the machine's to declare.
        if text.contains("kind = \"flash\"") || text.contains(" = \"volume") {
            continue;
        }
        let content = format!("nothing_like_this = 1\n{text}");
        let (_folder, catalogue) = overlaid(&[(&path, &content)]);
        let system = catalogue
            .expect("readable")
            .component_entry(component, &name)
            .expect("a file");
        let error = declarations::read_entry(system, component).expect_err("an unknown key");
        assert_eq!(error.problems().len(), 1, "{error}");
        assert!(error.to_string().contains(".toml:1:1"), "{error}");
    }
}

/// A system whose files name a drive and nothing else is a rig; what else is set of it is
/// refused at its place.
#[test]
fn a_drive_by_itself_has_no_other_components() {
    for (arguments, parts) in [
        (
            ["kernel=4.2bsd"],
            ["`bare-fixed` has no kernel", "systems with a kernel"],
        ),
        (
            ["host.speed=2"],
            ["`bare-fixed` has no host", "systems with a host"],
        ),
        (
            ["filesystem.kind=none"],
            ["`bare-fixed` has no filesystem", "1 | filesystem.kind=none"],
        ),
    ] {
        match parameters("bare-fixed", &arguments) {
            Ok(_) => panic!("accepted: {arguments:?}"),
            Err(errors) => says(&errors.to_string(), &parts),
        }
    }
    let named = "drives = 1\n[components]\ndrive = \"eagle\"\n";
    for (more, is_rig) in [("", true), ("bus = \"sbi\"\n", false), ("[host]\n", false)] {
        let text = format!("{named}{more}");
        let (_folder, catalogue) = overlaid(&[("systems/mine.toml", &text)]);
        let resolved = catalogue.expect("readable files").resolve("mine", &[]);
        match resolved {
            Ok(system) => assert!(is_rig && system.is_rig(), "{text}"),
            Err(errors) => {
                assert!(!is_rig, "{errors}");
                says(&errors.to_string(), &["the system names no kernel"]);
            }
        }
    }
}
