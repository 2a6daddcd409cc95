//! Directories, several of them at once, and block devices.

use crate::support::machine::{LoopDevice, can_run, checksum, fill};
use crate::support::{MOUNTS, User, entries, words};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn several_targets_one_after_the_other() {
    let user = User::new();
    fs::create_dir(user.file("other")).unwrap();
    let line = "run ffs83 --on ./target --on ./other --size 256K --runs 2 --format json";
    let runs = user.run(&words(line)).expect(0, &[]).json();
    let runs = runs["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for (run, target) in runs.iter().zip(["./target", "./other"]) {
        let path = user.home().join(target.trim_start_matches("./"));
        assert_eq!(run["target"], path.display().to_string());
        assert_eq!(run["results"][0]["drives"], 1);
    }
    assert_eq!(user.stored().len(), 2);
    user.assert_nothing_left("two runs");
    assert_eq!(entries(&user.file("other")), [""; 0]);
}

/// A label names all runs of a command: what tells them apart is their target.
#[test]
fn targets_of_one_label_are_named_by_their_paths() {
    let user = User::new();
    fs::create_dir(user.file("other")).unwrap();
    let line = "run read_8192 --on ./target --on ./other --size 64K --runs 1 --label both";
    let shown = user.run(&words(line)).expect(0, &[]);
    let heading = |line: &&str| !line.contains(", run ") && !line.starts_with("stored");
    for (run, target) in user.stored().iter().zip(["other", "target"]) {
        let named = shown.stdout.lines().filter(heading);
        let named: Vec<&str> = named.filter(|line| line.contains(&run.id)).collect();
        assert!(named.is_empty(), "{}", shown.stdout);
        let path = user.file(target).display().to_string();
        assert!(shown.has(&path), "{}", shown.stdout);
        // What is said beside the table says of which run it is.
        let note = format!("{path}: --runs 1 keeps");
        assert!(shown.stderr.contains(&note), "{}", shown.stderr);
    }
}

/// The directory that the user is in is another one tomorrow.
#[test]
fn whatever_names_a_run_has_the_path_that_was_measured() {
    let user = User::new();
    user.run(&words("run read_8192 --size 64K --runs 1 --quiet --on ."))
        .expect(0, &[]);
    let path = user.home().display().to_string();
    for line in ["list runs --format json", "show last --format json"] {
        let json = user.run(&words(line)).expect(0, &[]).json();
        assert_eq!(json["runs"][0]["target"], path.as_str(), "{line}");
    }
    for line in ["show last --format csv", "show last", "list runs"] {
        user.run(&words(line)).expect(0, &[]).shows(&[&path]);
    }
}

/// A program that runs alone has as many repetitions as a comparison of two runs needs, however
/// alike they are.
#[test]
fn two_runs_of_a_program_can_be_compared_as_they_are() {
    let user = User::new();
    for label in ["before", "after"] {
        let line = format!("run read_8192 --on ./target --size 64K --cache warm --label {label}");
        user.run(&words(&line)).expect(0, &[]);
    }
    let compared = user.run(&words("compare before after --format json"));
    let pair = compared.expect(0, &[]).json()["comparison"]["pairs"][0].clone();
    for side in ["base", "other"] {
        assert!(pair[side]["kept"].as_u64() >= Some(16), "{pair}");
    }
    let table = user.run(&words("compare before after")).expect(0, &[]);
    assert!(!table.has("too few"), "{}", table.stdout);
}

/// The sum over the drives, each over its own time.
fn sum_of_drives(repetition: &Value) -> f64 {
    let workers = repetition["workers"].as_array().unwrap();
    workers
        .iter()
        .map(|worker| {
            let payload = worker["payload_bytes"].as_f64().unwrap();
            payload / 1024.0 / worker["elapsed_s"].as_f64().unwrap()
        })
        .sum()
}

#[test]
fn several_targets_together_add_up() {
    let user = User::new();
    fs::create_dir(user.file("other")).unwrap();
    let line = "run ffs83 --on ./target --on ./other --together --size 1M --runs 3 --format json";
    let runs = user.run(&words(line)).expect(0, &[]).json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1);
    let run = &runs["runs"][0];
    let paths = ["target", "other"].map(|name| user.file(name).display().to_string());
    assert_eq!(run["target"], paths.join(" + "));
    for result in run["results"].as_array().unwrap() {
        assert_eq!(result["drives"], 2);
        let parts = result["targets"].as_array().unwrap();
        let names: Vec<_> = parts.iter().map(|part| part["target"].clone()).collect();
        assert_eq!(names, ["./target", "./other"]);
        let fastest = result["repetitions"].as_array().unwrap().iter().skip(1);
        let fastest = fastest.map(sum_of_drives).fold(0.0, f64::max);
        for part in parts {
            let speed = part["kb_per_s"].as_f64().unwrap();
            assert!(0.0 < speed && speed < fastest, "{part} of {fastest}");
        }
        assert_eq!(result["size_bytes"], 1 << 20);
        for repetition in result["repetitions"].as_array().unwrap() {
            let drives: Vec<_> = repetition["workers"]
                .as_array()
                .unwrap()
                .iter()
                .map(|worker| worker["drive"].as_u64().unwrap())
                .collect();
            assert_eq!(drives, [0, 1]);
            let (said, sum) = (
                repetition["kb_per_s"].as_f64().unwrap(),
                sum_of_drives(repetition),
            );
            assert!((said / sum - 1.0).abs() < 1e-6, "{said} is not {sum}");
        }
    }
    let shown = user.run(&words("show last")).expect(0, &[]);
    for row in [
        "read_8192, ./target",
        "read_8192, ./other",
        "read_8192, sum",
    ] {
        assert!(shown.stdout.contains(row), "{shown:?}");
    }
    user.assert_nothing_left("together");
    assert_eq!(entries(&user.file("other")), [""; 0]);
}

/// A system of the catalogue wins over a directory of its name.
#[test]
fn a_path_needs_no_slash() {
    let user = User::new();
    let run = |on: &str| {
        let line = format!("run write_8192 --on {on} --size 64K --runs 2 --format json");
        let runs = user.run(&words(&line)).expect(0, &[]).json();
        (
            runs["runs"][0]["world"].clone(),
            runs["runs"][0]["target"].clone(),
        )
    };
    let path = user.target().display().to_string();
    assert_eq!(run("target"), ("host".into(), path.into()));
    let system = "vax780-sc780-eagle";
    fs::create_dir(user.file(system)).unwrap();
    assert_eq!(run(system).0, "model");
    assert_eq!(run(&format!("./{system}")).0, "host");
}

/// A directory by another name, and one that is full of other things.
#[test]
fn a_target_keeps_what_is_in_it() {
    let user = User::new();
    fs::write(user.target().join("bigfile"), "mine").unwrap();
    symlink(user.target(), user.file("link")).unwrap();
    for on in ["./link", "./target/.", "./target/../target"] {
        user.run(&["run", "ffs83", "--size", "64K", "--runs", "2", "--on", on])
            .expect(0, &[]);
        assert_eq!(entries(&user.target()), ["bigfile"], "{on}");
    }
    assert_eq!(fs::read(user.target().join("bigfile")).unwrap(), b"mine");
    // The current directory is the default.
    let mut here = user.command(&words("run write_8192 --size 64K --runs 1"));
    assert!(
        here.current_dir(user.target())
            .output()
            .unwrap()
            .status
            .success()
    );
    assert_eq!(entries(&user.target()), ["bigfile"]);
}

#[test]
fn a_device_is_only_read() {
    if !can_run("a_device_is_only_read", MOUNTS) {
        return;
    }
    let user = User::new();
    let image = user.file("image");
    fill(&image, 16, 0x5a);
    let device = LoopDevice::over(&image, &[]);
    let before = checksum(&device.path);
    let on = device.text();
    symlink(&device.path, user.file("link")).unwrap();
    for target in [on.as_str(), "./link"] {
        let words = [
            &words("run seqread89 --size 1M --runs 2 --format json --on")[..],
            &[target],
        ]
        .concat();
        let run = &user.run(&words).expect(0, &[]).json()["runs"][0];
        let mut layers: Vec<_> = run["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|result| result["parameters"]["layer"].as_str().unwrap())
            .collect();
        layers.dedup();
        assert_eq!(layers, ["null", "zero", "device", "device_direct"]);
    }
    // Suites go on without the programs that write.
    for (what, programs) in [("today26", 3), ("ffs83", 1), ("vme87", 8)] {
        let words = [
            &words("run --size 1M --runs 1 --format json --suite")[..],
            &[what, "--on", &on],
        ]
        .concat();
        let run = user
            .run(&words)
            .expect(0, &["left out", &format!("--destroy-data-on {on}")]);
        let results = run.json()["runs"][0]["results"].as_array().unwrap().len();
        assert_eq!(results, programs, "{what}");
    }
    assert_eq!(checksum(&device.path), before);
}

/// Every program that writes, on a device that was given up.
#[test]
fn a_device_that_is_given_up_is_written() {
    if !can_run("a_device_that_is_given_up_is_written", MOUNTS) {
        return;
    }
    let user = User::new();
    let device = LoopDevice::blank(user.scratch(), 16);
    let on = device.text();
    for what in [
        "ffs83",
        "write_4096 --direct",
        "copy --set program.destination=same",
        "random_mix --set program.area_bytes=1M",
    ] {
        let line = format!("run {what} --size 1M --runs 2 --format json --on {on}");
        let destroy = format!("{line} --destroy-data-on {on}");
        let run = user.run(&words(&destroy)).expect(0, &[]).json();
        for result in run["runs"][0]["results"].as_array().unwrap() {
            assert_eq!(result["size_bytes"], 1 << 20, "{what}");
            assert_eq!(result["filesystem"], device.name(), "{what}");
        }
    }
}

/// From a device to a file of another file system, and from memory: a device
/// keeps its pages only while somebody has it open.
#[test]
fn a_device_is_copied_from_and_kept_warm() {
    if !can_run("a_device_is_copied_from_and_kept_warm", MOUNTS) {
        return;
    }
    let user = User::new();
    let image = user.file("image");
    fill(&image, 16, 0x5a);
    let device = LoopDevice::over(&image, &[]);
    let on = device.text();
    fs::create_dir(user.file("other")).unwrap();
    let copy = "run copy --set program.destination=other --other ./other --size 1M --runs 1 --on";
    user.run(&[&words(copy)[..], &[&on]].concat())
        .expect(0, &[]);
    assert_eq!(entries(&user.file("other")), [""; 0]);

    let warm = "run read_8192 --cache warm --size 1M --runs 2 --format json --on";
    let run = user
        .run(&[&words(warm)[..], &[&on]].concat())
        .expect(0, &[])
        .json();
    for repetition in run["runs"][0]["results"][0]["repetitions"]
        .as_array()
        .unwrap()
    {
        assert_eq!(
            repetition["residency"]["before_bytes"],
            1 << 20,
            "{repetition}"
        );
    }
}

#[test]
fn a_file_is_only_read() {
    let user = User::new();
    let file = user.file("mine");
    fill(&file, 1, 0x5a);
    let before = checksum(&file);
    let line = "run --on ./mine --size 1M --runs 1 --format json";
    let run = &user.run(&words(line)).expect(0, &[]).json()["runs"][0];
    assert_eq!(run["suite"], "today26");
    assert_eq!(run["results"].as_array().unwrap().len(), 3);
    for program in ["write_8192", "rewrite_8192", "random_mix"] {
        let line = format!("run {program} --on ./mine --size 1M");
        user.run(&words(&line))
            .expect(2, &["./mine is a file of yours", "give a directory"]);
    }
    let line = "run random_mix --set program.write_share=0 --set program.area_bytes=1M --on ./mine --size 1M";
    user.run(&words(line)).expect(0, &[]);
    assert_eq!(checksum(&file), before);
}
