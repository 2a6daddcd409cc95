//! Searching for better settings of real storage.

use crate::support::machine::can_run;
use crate::support::{MOUNTS, User, entries, words};

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
        let verdict = point["against_today"]["verdict"].as_str().unwrap();
        assert!(
            ["faster", "slower", "unsure", "no_difference_seen"].contains(&verdict),
            "{point}"
        );
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
    .shows(&[said, "against today", "95 %"]);
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
        ("program.call_bytes=512..90000", vec!["more than 256"]),
        (
            "device.read_ahead_kb=0,128",
            vec!["for all who use it", "--change-device-settings"],
        ),
    ] {
        user.run(&words(&format!("{READ} --over {over}")))
            .expect(2, &parts);
    }
    user.run(&words(&format!("{READ} --drives 2 --over direct=0,1")))
        .expect(2, &["--drives is of modelled systems"]);
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

/// A loop device has a queue of its own, that is nobody else's.
mod device {
    use super::*;
    use crate::support::machine::LoopDevice;
    use rustix::process::Signal;
    use std::path::PathBuf;

    fn setting(device: &LoopDevice) -> PathBuf {
        PathBuf::from("/sys/block")
            .join(device.name())
            .join("queue/read_ahead_kb")
    }

    fn value(device: &LoopDevice) -> String {
        let text = std::fs::read_to_string(setting(device)).unwrap();
        text.trim().to_owned()
    }

    #[test]
    fn its_settings_are_put_back_at_the_end_on_an_error_and_after_a_signal() {
        let test = "its_settings_are_put_back_at_the_end_on_an_error_and_after_a_signal";
        if !can_run(test, MOUNTS) {
            return;
        }
        let user = User::new();
        let device = LoopDevice::blank(user.scratch(), 32);
        let before = value(&device);
        let path = device.text();
        let line = |runs: u32| {
            format!(
                "tune {path} --suite read_8192 --size 1M --runs {runs} --change-device-settings --over device.read_ahead_kb=4,64"
            )
        };
        let found = user
            .run(&words(&format!("{} --format json", line(3))))
            .expect(0, &[])
            .json();
        assert_eq!(
            found["today"]["settings"]["device.read_ahead_kb"],
            before.as_str()
        );
        assert_eq!(value(&device), before);
        // An error: the device is too small.
        let error = line(3).replace("1M", "1G");
        assert_ne!(user.run(&words(&error)).code, Some(0));
        assert_eq!(value(&device), before);
        // A signal.
        let long = line(1000);
        let mut process = user.start(&words(&long));
        process.wait_until(|| value(&device) != before);
        process.signal(Signal::INT);
        process.finish().expect(130, &["interrupted"]);
        assert_eq!(value(&device), before);
        // A kill: what is left, `clean` puts back; not while it runs.
        let mut process = user.start(&words(&long));
        process.wait_until(|| value(&device) != before);
        user.run(&["clean"])
            .expect(0, &[])
            .shows(&["nothing to remove"]);
        process.signal(Signal::KILL);
        process.finish();
        // It may be killed between two points, where all is as it was.
        let cleaned = user.run(&["clean"]).expect(0, &[]);
        assert!(cleaned.stdout.contains("put back"), "{cleaned:?}");
        assert_eq!(value(&device), before);
        user.run(&["clean"])
            .expect(0, &[])
            .shows(&["nothing to remove"]);
    }
}
