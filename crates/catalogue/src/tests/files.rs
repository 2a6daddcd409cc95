//! What must hold of every file of the embedded catalogue.

use super::super::value::{self, Table, ValueContent};
use super::super::{Catalogue, Component, ValueOrigin, embedded};
use super::declarations;
use super::{every_entry, parameters};
use diskperf_diagnostics::Text;
use std::collections::BTreeSet;
use std::sync::Arc;

#[test]
fn every_entry_reads_and_gives_source_unit_and_file_for_every_number() {
    let catalogue = Catalogue::embedded();
    let published = catalogue.published_values().expect("published numbers");
    let sets: BTreeSet<&str> = published.set_names().collect();
    let entries = every_entry(&catalogue);
    assert!(entries.len() >= 30, "{entries:?}");
    for (component, name) in entries {
        assert!(
            catalogue
                .description(component, &name)
                .is_some_and(|text| text.len() > 20)
        );
        let system = catalogue.component_entry(component, &name).expect("a file");
        let parameters =
            declarations::read_entry(system, component).unwrap_or_else(|errors| panic!("{errors}"));
        for parameter in parameters {
            let shown = format!("{name}: {parameter:?}");
            assert!(!parameter.doc.is_empty(), "{shown}");
            assert!(parameter.file.starts_with("catalogue/"), "{shown}");
            let number = parameter.value.parse::<f64>().is_ok();
            let unitless = [
                "finish_spread",
                "speed",
                "position_test",
                "disksort",
                "commands",
            ];
            let key = parameter.path.rsplit('.').next().expect("a key");
            if number && !unitless.contains(&key) {
                assert!(!parameter.unit.is_empty(), "{shown}");
            }
            assert!(parameter.source.len() > 7, "{shown}");
            if let ValueOrigin::Calibrated { set, .. } = parameter.origin() {
                assert!(sets.contains(set.as_str()), "no such set: {shown}");
            }
        }
    }
}

#[test]
fn every_number_of_every_file_has_a_source() {
    let mut numbers = 0;
    for (path, content) in embedded::EMBEDDED_FILES {
        if path.starts_with("published/") {
            continue;
        }
        let text = Arc::new(Text::new(path.to_string(), content.to_string()));
        let table = value::parse(&text).unwrap_or_else(|_| panic!("{path} is not TOML"));
        numbers += check_sources(path, &table, None);
    }
    assert!(numbers > 300, "{numbers}");
}

fn check_sources(path: &str, table: &Table, outer: Option<&str>) -> usize {
    let source = table.text("source").or(outer);
    let mut numbers = 0;
    for (key, entry) in &table.entries {
        match &entry.value.value_content {
            ValueContent::Table(inner) => numbers += check_sources(path, inner, source),
            ValueContent::Integer(_) | ValueContent::Float(_) => {
                let own = table.text(&format!("{key}_source"));
                assert!(own.or(source).is_some(), "{path}: {key} has no source");
                numbers += 1;
            }
            _ => {}
        }
    }
    numbers
}

#[test]
fn every_system_and_variant_reads() {
    let catalogue = Catalogue::embedded();
    let names = catalogue.system_names();
    for name in [
        "atarist-supra",
        "atarist-supra:driver-read-ahead",
        "vax750-sc750-eagle",
        "vax750-si9900-eagle",
        "vax750-uda50-ra81",
        "vax780-sc780-eagle",
        "vax780-sc780-eagle:inadequate-lead-initial-arbitration",
        "vax780-sc780-eagle:initial-arbitration",
        "vax780-si9900-cdc9775",
        "vax780-si9900-eagle",
        "vax780-uda50-ra81",
    ] {
        assert!(
            names.iter().any(|known| known == name),
            "{name} in {names:?}"
        );
    }
    for name in names {
        let parameters = parameters(&name, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        assert!(parameters.len() > 5, "{name}");
        assert!(catalogue.system_description(&name).is_some());
    }
}

#[test]
fn every_published_target_of_seeds_000_and_003_is_a_system() {
    let catalogue = Catalogue::embedded();
    let names = catalogue.system_names();
    let published = catalogue.published_values().expect("published numbers");
    let mut tested = 0;
    for cell in published.cells.iter().filter(|cell| cell.is_scored) {
        if !cell.values_file.starts_with("000") && !cell.values_file.starts_with("003") {
            continue;
        }
        let target = cell.full_target().expect("a scored cell has a target");
        assert!(names.contains(&target), "{target}");
        tested += 1;
    }
    assert!(tested > 150, "{tested}");
}

#[test]
fn the_free_parameters_are_few_and_each_acts_on_several_cells() {
    let catalogue = Catalogue::embedded();
    let published = catalogue.published_values().expect("published numbers");
    let mut free = BTreeSet::new();
    for name in catalogue.system_names() {
        for parameter in parameters(&name, &[]).expect("a system") {
            if let ValueOrigin::Calibrated { set, .. } = parameter.origin() {
                let cells = published
                    .calibration_set(&set)
                    .unwrap_or_else(|e| panic!("{e}"));
                assert!(cells.len() >= 3, "{set}: {cells:?}");
                free.insert((parameter.file, parameter.line));
            }
        }
    }
    assert!(!free.is_empty());
}

#[test]
fn a_routine_of_the_hp_driver_costs_the_same_at_every_date() {
    let costs = |name: &str| -> Vec<(String, String)> {
        let system = Catalogue::embedded()
            .component_entry(Component::Driver, name)
            .expect("a driver");
        let read = declarations::read_entry(system, Component::Driver).expect("a driver");
        read.into_iter()
            .filter(|parameter| ["ms", "us"].contains(&parameter.unit))
            .map(|parameter| (parameter.path, parameter.value))
            .collect()
    };
    let known = costs("hp-1983-07");
    assert!(known.len() >= 3, "{known:?}");
    for name in ["hp-1983-05", "hp-1984", "hp-1987"] {
        assert_eq!(costs(name), known, "{name}");
    }
}

#[test]
fn printed_facts_follow_from_the_geometry() {
    let catalogue = Catalogue::embedded();
    for (name, megabytes, media_kb_per_s, half_revolution_us) in [
        // Kridle and McKusick 1983's drive table prints the capacities in whole MB.
        ("eagle", Some((404, 20_000)), 1584, 7574),
        ("ra81", Some((456, 1_000_000)), 1530, 8333),
        ("cdc9775", None, 960, 8333),
        ("cdc9766", None, 960, 8333),
        ("cdc9775-rm05", None, 960, 8333),
        ("rm80", None, 930, 8333),
        ("rp06", None, 660, 8333),
        ("rp07", None, 1500, 8333),
        ("capricorn", None, 960, 8333),
        ("ra60", None, 1260, 8333),
        ("fujitsu2344", None, 2010, 8333),
        ("st251", None, 510, 8333),
        ("supra20", None, 524, 10_966),
    ] {
        let system = catalogue
            .component_entry(Component::Drive, name)
            .expect("a drive");
        let mut reader = system.reader(Component::Drive, Some(1));
        let drive = declarations::drive(&system, 1, &mut reader);
        reader.finish();
        system.finish().unwrap_or_else(|errors| panic!("{errors}"));
        let track_bytes = drive.sectors_per_track * drive.sector_bytes;
        let bytes = drive.cylinders * drive.heads * track_bytes;
        if let Some((printed, slack)) = megabytes {
            // The Eagle's 413.7 million bytes are printed as 404: 404 thousand
            // KB, that is. The RA81's 456.2 million bytes are printed as 456.
            let thousand_kb = bytes.abs_diff(printed * 1000 * 1024) <= slack * 1024;
            let million = bytes.abs_diff(printed * 1_000_000) <= slack;
            assert!(thousand_kb || million, "{name}: {bytes}");
        }
        let media = track_bytes as f64 * drive.spindle_rpm / 60.0 / 1024.0;
        assert!(
            (media - f64::from(media_kb_per_s)).abs() < 1.0,
            "{name}: {media}"
        );
        let half = (30e6 / drive.spindle_rpm) as u64;
        assert!(half.abs_diff(half_revolution_us) <= 1, "{name}: {half}");
        let [minimum, average, maximum] = drive.seek_ns;
        assert!(minimum < average && average < maximum, "{name}");
    }
}

#[test]
fn what_was_chosen_by_hand_in_view_of_cells_names_them() {
    for (path, content) in embedded::EMBEDDED_FILES {
        for line in content.lines().filter(|line| !line.starts_with('#')) {
            let assumed = line.contains("\"assumed:");
            let by_cells = line.contains("by hand") || line.contains("the cells of");
            assert!(!(assumed && by_cells), "{path}: {line}");
        }
    }
}
