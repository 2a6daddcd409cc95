//! The flash drives of the catalogue against what their data sheets, and the facts' check
//! model, lead one to expect (facts 5).

use diskperf_catalogue::{Catalogue, Component, DataSheetExpectation, Figure, Setting};
use diskperf_device::DeviceSpecification;
use diskperf_device::expected::flash::{LOAD_SEED, run_experiment};
use diskperf_device::flash::specification::FlashSpecification;

/// The drive with other values of its keys, as the command line gives them.
pub(super) fn set(drive: &str, settings: &[Setting]) -> FlashSpecification {
    let resolved = Catalogue::embedded().resolve(&format!("bare-{drive}"), settings);
    let read = resolved.and_then(DeviceSpecification::from_rig);
    let read = read.unwrap_or_else(|error| panic!("{drive}: {error}"));
    read.flash().expect("a flash drive").clone()
}

/// How far the drive is off, as a share, and that in words.
fn off_share(drive: &str, expected: &DataSheetExpectation) -> (f64, String) {
    let Figure::Flash(figure) = expected.figure else {
        panic!("{drive}: {:?} is of a disk", expected.figure);
    };
    let specification = set(drive, &expected.drive_settings());
    let found = run_experiment(&specification, figure.into(), expected.depth).figure_value(figure);
    let by = found / expected.expected_value - 1.0;
    let line = format!(
        "{drive} {figure:?} at {}: {found:.2} for {:.2}, {:+.1} %: {}",
        expected.depth,
        expected.expected_value,
        by * 100.0,
        expected.source
    );
    (by, line)
}

fn is_flash(drive: &str) -> bool {
    let system = format!("bare-{drive}");
    let read = Catalogue::embedded()
        .resolve(&system, &[])
        .and_then(DeviceSpecification::from_rig);
    read.is_ok_and(|read| read.flash().is_some())
}

fn drives() -> Vec<String> {
    let catalogue = Catalogue::embedded();
    let drives = catalogue.expected_drives();
    drives.into_iter().filter(|drive| is_flash(drive)).collect()
}

#[test]
fn each_figure_has_a_name_of_its_own() {
    let mut names: Vec<&str> = Figure::iter_all().map(Figure::name).collect();
    names.sort_unstable();
    for pair in names.windows(2) {
        assert_ne!(pair[0], pair[1]);
    }
}

/// Nothing is expected of a drive that the catalogue does not have.
#[test]
fn expectations_are_of_drives_of_the_catalogue() {
    let catalogue = Catalogue::embedded();
    let known = catalogue.component_names(Component::Drive);
    for drive in catalogue.expected_drives() {
        assert!(known.contains(&drive), "{drive}");
    }
    assert!(drives().len() >= 5, "{:?}", drives());
}

#[test]
fn drives_do_what_is_expected_of_them() {
    println!("seed {LOAD_SEED}");
    let catalogue = Catalogue::embedded();
    let mut missed = Vec::new();
    for drive in drives() {
        let of = catalogue.data_sheet_expectations(&drive);
        for expected in of.unwrap_or_else(|errors| panic!("{errors}")).figures {
            let (by, line) = off_share(&drive, &expected);
            println!("{line}");
            if by.abs() > expected.tolerance_share {
                missed.push(line);
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
