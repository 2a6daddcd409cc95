//! Trying every value of some parameters.

use crate::support::{User, words};

const SECTORS: &str = "tune track_read --on pcat-st251 --set program.call_bytes=512 --size 256K";

#[test]
fn the_best_interleave_and_the_cliff_beside_it() {
    let user = User::new();
    let line = format!("{SECTORS} --over drive.interleave=2..4");
    let shown = user.run(&words(&line)).expect(0, &[]);
    shown.shows(&[
        "KB/s over drive.interleave",
        "* best: drive.interleave=3",
        "drive.interleave from 3 to 2: -",
        "a cliff",
    ]);
    let json = user
        .run(&words(&format!("{line} --format json")))
        .expect(0, &[])
        .json();
    assert_eq!(json["best"], 1);
    let rates = json["kb_per_s"].as_array().unwrap();
    assert_eq!(rates.len(), 3);
    // Three slots for each sector of 17, 60 times a second.
    let third = rates[1].as_f64().unwrap();
    assert!((third / (60.0 * 8.5 / 3.0) - 1.0).abs() < 0.01, "{third}");
    assert!(user.stored().is_empty(), "a search is not kept");
}

#[test]
fn two_parameters_make_a_table_and_threads_change_nothing() {
    let user = User::new();
    let line = format!("{SECTORS} --over drive.interleave=3,4 --over drive.spindle_rpm=3000,3600");
    let one = user.run(&words(&format!("{line} --threads 1 --format csv")));
    let two = user.run(&words(&format!("{line} --threads 2 --format csv")));
    assert_eq!(one.stdout, two.stdout);
    assert_eq!(one.stdout.lines().count(), 5);
    user.run(&words(&line)).expect(0, &[]).shows(&[
        "drive.interleave and drive.spindle_rpm",
        "* best: drive.interleave=3, drive.spindle_rpm=3600",
    ]);
}

#[test]
fn a_search_that_makes_no_sense_says_why() {
    let user = User::new();
    for (over, parts) in [
        ("drive.interleave=6..1", vec!["empty"]),
        ("drive.interleave=1..x", vec!["whole numbers"]),
        ("drive.interleave", vec!["no values"]),
        ("drive.interleave=1,18", vec!["interleave"]),
        ("drive.nothing=1..2", vec!["drive.nothing"]),
        ("host.clock_hz=10000", vec!["clock_hz", "95 %"]),
    ] {
        let line = format!("{SECTORS} --over {over}");
        user.run(&words(&line)).expect(2, &parts);
    }
    user.run(&words(
        "tune nothing --on pcat-st251 --over drive.interleave=1..2",
    ))
    .expect(2, &["nothing"]);
    // A tree of files has no place on a drive by itself.
    user.run(&words(
        "tune populate --on pcat-st251 --set filesystem=none --over drive.interleave=1..2",
    ))
    .expect(2, &["files"]);
    // A gap is shorter than the cylinder.
    for key in ["gap_blocks", "cylinder_gap_sectors"] {
        user.run(&words(&format!(
            "tune read_8192 --on pcat-st251 --over filesystem.{key}=102"
        )))
        .expect(2, &[key, "0 to 101"]);
    }
    user.run(&words(
        "tune track_read --on vax780-sc780-eagle --over drive.interleave=1..2",
    ))
    .expect(2, &["filesystem=none"]);
}
