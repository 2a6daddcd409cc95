//! The catalogue's drives against what documents print of them. This fails
//! when a number was copied wrongly, or a reader takes it for another.

use super::*;
use diskperf_machine::specification::DriveSpecification;

/// Name, media rate in KB/s and capacity in 512-byte sectors, as section 6 of
/// the facts prints rate and shape.
const DRIVES: [(&str, f64, u64); 10] = [
    ("eagle", 1584.0, 48 * 20 * 842),
    ("ra60", 1260.0, 42 * 4 * 2382),
    ("ra81", 1530.0, 51 * 14 * 1248),
    ("cdc9775", 960.0, 32 * 40 * 842),
    ("cdc9766", 960.0, 32 * 19 * 823),
    ("rm80", 930.0, 31 * 14 * 559),
    ("rp06", 660.0, 22 * 19 * 815),
    ("rp07", 1500.0, 50 * 32 * 630),
    ("capricorn", 960.0, 32 * 16 * 1024),
    ("ampex9300", 960.0, 32 * 19 * 815),
];

/// The drive on a system whose driver knows it.
fn entry(name: &str) -> DriveSpecification {
    let system = if name.starts_with("ra") { UDA50 } else { SC780 };
    specification(system, &[("drive", name)]).drives[0].clone()
}

#[test]
fn drives_hold_and_move_what_is_printed() {
    for (name, kb_per_s, sectors) in DRIVES {
        let drive = entry(name);
        let geometry = &drive
            .mechanism_specification()
            .expect("a disk")
            .mechanics
            .geometry;
        assert_eq!(geometry.sector_count(), sectors, "{name}");
        assert_eq!(geometry.capacity_bytes(), sectors * 512);
        // A track's data, each revolution.
        let mechanism = drive
            .mechanism_specification()
            .expect("a disk")
            .new_mechanism();
        let track = f64::from(geometry.sectors_per_track(0)) / 2.0;
        let rate = track / mechanism.spindle().revolution_time().as_seconds();
        assert!(
            (rate - kb_per_s).abs() < 1.0,
            "{name}: {rate} of {kb_per_s} KB/s"
        );
    }
}

/// Minimum, average and maximum of the seek times that are printed.
#[test]
fn arms_move_as_printed() {
    for (name, printed) in [
        ("eagle", [5.0, 18.0, 35.0]),
        ("ra81", [6.0, 28.0, 52.0]),
        ("rp06", [10.0, 30.0, 55.0]),
    ] {
        let drive = entry(name);
        let seek = &drive
            .mechanism_specification()
            .expect("a disk")
            .mechanics
            .seek_curve;
        let far = drive
            .mechanism_specification()
            .expect("a disk")
            .mechanics
            .geometry
            .cylinders()
            - 1;
        let modelled = [seek.time_over(1), seek.average_time(), seek.time_over(far)];
        for (one, other) in modelled.iter().zip(printed) {
            assert!(
                (one.as_millis() - other).abs() < 1e-5,
                "{name}: {modelled:?}"
            );
        }
    }
}

/// The facts: a revolution of the Eagle is 15.148 ms, a sector 0.3156 ms; of
/// the RA81 16.667 ms and, with its spare, a 52nd of that.
#[test]
fn sectors_take_as_long_as_printed() {
    let times = |name: &str| {
        let drive = entry(name);
        let mut drive = drive
            .mechanism_specification()
            .expect("a disk")
            .new_mechanism();
        let period = drive.spindle().revolution_time();
        let sector = drive
            .transfer_sectors(Time::ZERO, 0, 1, false)
            .media_transfer_time;
        (period.as_millis(), sector.as_millis())
    };
    let (period, sector) = times("eagle");
    assert!((period - 15.148).abs() < 0.0005 && (sector - 0.3156).abs() < 0.00005);
    let (period, sector) = times("ra81");
    assert!((period - 16.667).abs() < 0.0005 && (sector - 16.667 / 52.0).abs() < 0.00005);
}

/// A controller that commands mechanisms has no other drives, and a device's connection
/// no mechanisms.
#[test]
fn a_drive_hangs_on_what_can_serve_it() {
    for (system, drive, why) in [
        (SC780, "fixed", "drive 1 is not a bare mechanism"),
        ("vax780-fixed", "eagle", "drive 1 is a bare mechanism"),
    ] {
        let setting = [Setting::new("drive", drive)];
        let resolved = Catalogue::embedded().resolve(system, &setting);
        let read = MachineSpecification::read_machine(resolved.expect("names that there are"));
        let refused = read.expect_err("it has nothing to command").to_string();
        assert!(refused.contains(why), "{refused}");
    }
}

/// The partition of a drive with zones begins where its cylinder does, and has the tracks
/// that are there.
#[test]
fn a_partition_has_the_tracks_of_its_zone() {
    let zones = "[[0, 48], [100, 40]]";
    let settings = [
        ("drive.zones", zones),
        ("drive.partition_start_cylinder", "200"),
        ("drive.partition_sectors", "80000"),
        ("filesystem", "none"),
    ];
    let drive = &specification(SC780, &settings).drives[0];
    let (mechanism, cylinder) = drive.measured_mechanism().expect("a disk");
    let geometry = &mechanism.mechanics.geometry;
    let partition = &drive.partitions[0];
    assert_eq!(cylinder, 200);
    assert_eq!(partition.first_sector, 20 * (100 * 48 + 100 * 40));
    assert_eq!(partition.disk_label.sectors_per_track, 40);
    assert_eq!(geometry.sectors_per_track(cylinder), 40);
}
