//! Searching for better settings of real storage.

use crate::support::{User, entries, words};
use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

const READ: &str = "tune ./target --suite read_8192 --size 1M --runs 4";

/// Every point as often as was asked for, and nothing left behind.
#[test]
fn call_sizes_are_measured_in_turn() {
    let user = User::new();
    let line = format!("{READ} --over program.call_bytes=512,8192 --over read_ahead=normal,random");
    let found = user
        .run(&words(&format!("{line} --format json")))
        .expect(0, &[])
        .json();
    let points = found["points"].as_array().unwrap();
    assert_eq!(points.len(), 4);
    for point in points {
        assert!(point["value"].as_f64().unwrap() > 0.0, "{point}");
        // Nothing is compared with itself, and four rounds tell nothing of the others.
        let is_today = point["settings"]["program.call_bytes"] == "8192"
            && point["settings"]["read_ahead"] == "normal";
        match is_today {
            true => assert!(point["against_today"].is_null(), "{point}"),
            false => assert_eq!(point["against_today"]["verdict"], "too_few_repetitions"),
        }
    }
    assert_eq!(found["today"]["settings"]["program.call_bytes"], "8192");
    assert_eq!(found["today"]["settings"]["read_ahead"], "normal");
    user.assert_nothing_left("a search");
    assert!(user.stored().is_empty(), "a search is no run");
    let said = "real storage: KB/s are those until all was durable";
    user.run(&words(&format!(
        "{READ} --over program.call_bytes=4096,8192"
    )))
    .expect(0, &[])
    .shows(&[said, "against today", "at most 1 %"]);
}

/// Identical files differ lastingly: a search that made them anew for each point would
/// compare places.
#[test]
fn all_points_share_their_files() {
    let user = User::new();
    let line = format!("{READ} --over program.call_bytes=512,8192");
    let mut search = user.start(&words(&line));
    // Each folder that is made has a name of its own.
    let mut seen = BTreeSet::new();
    while search.is_running() {
        seen.extend(entries(&user.target()));
        thread::sleep(Duration::from_millis(1));
    }
    search.finish().expect(0, &[]);
    assert_eq!(seen.len(), 1, "{seen:?}");
    user.assert_nothing_left(line);
}

#[test]
fn only_what_is_safe_is_varied() {
    let user = User::new();
    for (over, parts) in [
        (
            "program.layer=direct",
            vec!["only what is safe", "program.call_bytes"],
        ),
        ("filesystem.rotdelay_ms=1..2", vec!["only what is safe"]),
        ("drect=0,1", vec!["did you mean `direct`?"]),
        ("direct=0..2", vec!["`2` is neither 0 nor 1"]),
        ("read_ahead=far", vec!["none of normal, sequential, random"]),
        ("program.call_bytes=512..90000", vec!["exceed 256"]),
        (
            "device.read_ahead_kb=0,128",
            vec!["for all its users", "--change-device-settings"],
        ),
    ] {
        user.run(&words(&format!("{READ} --over {over}")))
            .expect(2, &parts);
    }
    user.run(&words(&format!("{READ} --drives 2 --over direct=0,1")))
        .expect(2, &["--drives applies to modelled systems"]);
    let outcome = user.run_as_nobody(&words(&format!(
        "{READ} --change-device-settings --over device.read_ahead_kb=0,128"
    )));
    if !rustix::process::geteuid().is_root() {
        outcome.expect(2, &["needs root"]);
    } else {
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
    }
    assert_eq!(entries(&user.target()), [""; 0]);
}
