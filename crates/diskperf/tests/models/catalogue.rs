//! Lists and entries of the catalogue.

use crate::support::User;

#[test]
fn every_kind_of_entry_is_listed_and_every_entry_shown() {
    let user = User::new();
    for (kind, known) in [
        ("systems", "vax780-sc780-eagle:initial-arbitration"),
        ("drives", "eagle"),
        ("controllers", "uda50"),
        ("buses", "sbi"),
        ("hosts", "vax750"),
        ("kernels", "4.2bsd"),
        ("drivers", "hp-1984"),
        ("filesystems", "8k"),
        ("published", "kridle-mckusick-1983"),
    ] {
        let list = user.run(&["list", kind, "--format", "json"]);
        let json = list.expect(0, &[]).json();
        let rows = json[kind].as_array().unwrap().clone();
        let names: Vec<String> = rows
            .iter()
            .map(|row| {
                let fields = row.as_object().unwrap();
                let name = fields.iter().find(|(key, _)| {
                    !["meaning", "cells", "scored", "modelled"].contains(&key.as_str())
                });
                name.unwrap().1.as_str().unwrap().to_owned()
            })
            .collect();
        assert!(names.iter().any(|name| name == known), "{kind}: {names:?}");
        if kind != "published" {
            // Nothing is printed of the 752, and so nothing is shown of it.
            for name in names.iter().filter(|name| *name != "xylogics752") {
                let shown = user.run(&["show", name]);
                shown.expect(0, &[]).shows(&[name, "allowed", "source"]);
            }
        }
    }
}

#[test]
fn a_suite_has_the_parameters_of_its_programs() {
    let user = User::new();
    let list = |name: &str| {
        let json = user.run(&["list", "parameters", name, "--format", "json"]);
        json.expect(0, &[]).json()["parameters"].clone()
    };
    let ffs83 = list("ffs83");
    assert_eq!(ffs83[0]["program"], "write_4096");
    assert_eq!(ffs83[0]["path"], "program.call_bytes");
    // A program that comes several times is listed once.
    let seqread = list("seqread89");
    let paths = seqread.as_array().unwrap().iter();
    let sizes: Vec<_> = paths
        .filter(|row| row["path"] == "program.call_bytes")
        .map(|row| row["value"].clone())
        .collect();
    assert_eq!(sizes, ["512, 1024, 2048, 8192, 16384"]);
}

#[test]
fn a_drive_is_drawn_with_what_follows_from_its_numbers() {
    let user = User::new();
    let shown = user.run(&["show", "eagle"]);
    shown.expect(0, &[]).shows(&[
        "capacity",
        "413.86 MB",
        "media rate",
        "1.62 MB/s",
        "35.0 ms |",
        "841 cylinders",
    ]);
    let json = user.run(&["show", "eagle", "--format", "json"]);
    let json = json.expect(0, &[]).json();
    assert_eq!(json["component"], "drive");
    assert_eq!(json["figures"][0]["value"], 413.859_84);
}

#[test]
fn parameters_have_value_unit_range_and_source() {
    let user = User::new();
    let words = [
        "list",
        "parameters",
        "vax780-sc780-eagle",
        "--set",
        "filesystem.rotdelay_ms=7",
        "--format",
        "json",
    ];
    let json = user.run(&words).expect(0, &[]).json();
    let rows = json["parameters"].as_array().unwrap();
    assert!(rows.len() > 50, "{}", rows.len());
    let row = |path: &str| rows.iter().find(|row| row["path"] == path).unwrap();
    assert_eq!(row("filesystem.rotdelay_ms")["value"], 7);
    assert_eq!(row("filesystem.rotdelay_ms")["source"], "--set");
    assert_eq!(row("drive.spindle_rpm")["unit"], "rpm");
    for row in rows {
        assert_ne!(row["source"], "", "{row}");
        assert_ne!(row["allowed"], "", "{row}");
    }
}

#[test]
fn a_controller_of_which_nothing_is_printed_is_refused() {
    let user = User::new();
    let shown = user.run(&["show", "xylogics752"]);
    shown.expect(2, &["no document", "xylogics752.toml"]);
    let set = "controller=xylogics752";
    let run = user.run(&["run", "copy", "--on", "sun3-xy451-eagle", "--set", set]);
    run.expect(2, &["no document", "would be a guess"]);
}
