//! Runs after they are made: listed, shown, exported and compared, by id, by
//! prefix, as `last` and as a file.

use crate::support::{User, tree, words};
use serde_json::Value;
use std::fs;

const MEASURE: &str = "run write_8192 --on ./target --size 256K --runs 8 --format json";

/// Measures, and says the run's id.
fn measure(user: &User, options: &str) -> String {
    let line = format!("{MEASURE} {options}");
    let run = user.run(&words(&line)).expect(0, &[]).json();
    run["runs"][0]["id"].as_str().unwrap().to_owned()
}

/// The shortest beginning of an id that no other has.
fn prefix<'a>(id: &'a str, others: &[&str]) -> &'a str {
    (1..=id.len())
        .map(|length| &id[..length])
        .find(|prefix| !others.iter().any(|other| other.starts_with(prefix)))
        .unwrap()
}

fn shown(user: &User, name: &str) -> Value {
    user.run(&["show", name, "--format", "json"])
        .expect(0, &[])
        .json()
}

#[test]
fn a_name_of_a_command_with_a_model_beside_means_what_was_measured() {
    let user = User::new();
    let line =
        "run write_8192 --size 256K --runs 2 --on ./target --on vax780-sc780-eagle --label both";
    user.run(&words(line)).expect(0, &[]);
    for name in ["both", "last"] {
        assert_eq!(shown(&user, name)["runs"][0]["world"], "host", "{name}");
    }
    // A model that is run by itself is meant by itself.
    let line = "run write_8192 --size 256K --runs 2 --on vax780-sc780-eagle --label both";
    user.run(&words(line)).expect(0, &[]);
    for name in ["both", "last"] {
        assert_eq!(shown(&user, name)["runs"][0]["world"], "model", "{name}");
    }
}

#[test]
fn a_run_goes_by_many_names() {
    let user = User::new();
    let first = measure(&user, "--label before");
    let second = measure(&user, "--label after");
    let listed = user.run(&words("list runs --format json")).expect(0, &[]);
    let listed = &listed.json()["runs"];
    for (row, id, label) in [(0, &second, "after"), (1, &first, "before")] {
        assert_eq!(listed[row]["run"], **id);
        assert_eq!(listed[row]["label"], label);
        assert_eq!(listed[row]["state"], "finished");
        // More where the machine was disturbed.
        assert!(listed[row]["repetitions"].as_u64() >= Some(8));
        let run = &shown(&user, label)["runs"][0];
        assert_eq!(run["id"], **id);
        // One name for one thing, in a list and in the run itself.
        for key in ["id", "world", "started_unix_ms", "suite", "label"] {
            assert_eq!(listed[row][key], run[key], "{key}");
        }
        // Both are read anywhere: the path is absolute.
        let path = user.target().display().to_string();
        assert_eq!(listed[row]["target"], path.as_str());
        assert_eq!(run["target"], path.as_str());
    }
    user.run(&["export", &first, &second, "-o", "both.json"])
        .expect(0, &[]);
    user.run(&words("export last -o second.json"))
        .expect(0, &[]);

    let by_id = shown(&user, &second);
    for name in [
        "last",
        prefix(&second, &[&first]),
        "second.json",
        "./second.json",
    ] {
        assert_eq!(shown(&user, name), by_id, "{name}");
    }
    assert_eq!(shown(&user, &first)["runs"][0]["label"], "before");
    assert_eq!(
        shown(&user, "both.json")["runs"].as_array().unwrap().len(),
        2
    );
    for format in ["table", "csv", "markdown"] {
        let text = |name: &str| {
            let shown = user.run(&["show", name, "--format", format]).expect(0, &[]);
            shown.stdout
        };
        assert_eq!(text("last"), text("second.json"), "{format}");
    }
    // What a file is worth without the store.
    let elsewhere = User::new();
    fs::copy(user.file("both.json"), elsewhere.file("both.json")).unwrap();
    let compared = elsewhere.run(&words("compare both.json --format json"));
    let runs = &compared.expect(0, &[]).json()["comparison"]["runs"];
    assert_eq!(runs.as_array().unwrap().len(), 2);
    assert!(!elsewhere.store().exists());

    for (names, count) in [
        (vec![first.as_str(), second.as_str()], 2),
        (vec!["last", "second.json"], 2),
        (vec!["second.json", "last"], 2),
        (vec![prefix(&first, &[&second]), "both.json"], 3),
    ] {
        let words = [&["compare"][..], &names, &["--format", "json"]].concat();
        let comparison = user.run(&words).expect(0, &[]).json();
        let runs = comparison["comparison"]["runs"].as_array().unwrap();
        assert_eq!(runs.len(), count, "{names:?}");
    }
    user.run(&["compare", "last"])
        .expect(2, &["two runs or more", "diskperf list runs"]);
    user.run(&["show", "zzzz"]).expect(2, &["no run `zzzz`"]);
    user.run(&["show", ""]).expect(2, &["diskperf list runs"]);
}

#[test]
fn lists_are_of_what_is_asked() {
    let user = User::new();
    fs::create_dir(user.file("other")).unwrap();
    let run = "run write_8192 --size 64K --runs 2 --on";
    for (on, label) in [("./target", "x"), ("./other", "y"), ("./target", "z")] {
        user.run(&words(&format!("{run} {on} --label {label}")))
            .expect(0, &[]);
    }
    for (options, labels) in [
        ("--on target", vec!["z", "x"]),
        ("--on ./other/", vec!["y"]),
        ("--on ./target --limit 1", vec!["z"]),
        ("--suite write_8192 --since 1h", vec!["z", "y", "x"]),
        ("--suite read_8192", vec![]),
        ("--label y", vec!["y"]),
        ("--since 2000-01-01 --limit 2", vec!["z", "y"]),
    ] {
        let line = format!("list runs --format json {options}");
        let listed = user.run(&words(&line)).expect(0, &[]).json();
        let rows = listed["runs"].as_array().unwrap().iter();
        let found: Vec<_> = rows.map(|row| row["label"].as_str().unwrap()).collect();
        assert_eq!(found, labels, "{options}");
    }
    user.run(&words("list runs --since yesterday"))
        .expect(2, &["no moment of the past", "2h"]);
    user.run(&words("list systems --limit 3"))
        .expect(2, &["diskperf list runs"]);
}

#[test]
fn stored_runs_are_deleted_by_name() {
    let user = User::new();
    let first = measure(&user, "--label same");
    let second = measure(&user, "--label same");
    let third = measure(&user, "--label third");
    for (line, says) in [
        ("delete same".to_owned(), ["several runs", first.as_str()]),
        (
            "delete third 0123456789abc".to_owned(),
            ["no run", "0123456789abc"],
        ),
        (
            "delete ./target".to_owned(),
            ["the name of a file", "list runs"],
        ),
    ] {
        user.run(&words(&line)).expect(2, &says);
    }
    let rehearsed = user
        .run(&words("delete third last --dry-run"))
        .expect(0, &[]);
    assert!(
        rehearsed
            .stdout
            .contains(&format!("would remove run {third} (third)"))
    );
    assert_eq!(user.stored().len(), 3);
    let deleted = user
        .run(&["delete", &first, "third", &first])
        .expect(0, &[]);
    for id in [&first, &third] {
        assert!(
            deleted.stdout.contains(&format!("removed run {id}")),
            "{deleted:?}"
        );
    }
    let left: Vec<_> = user.stored().into_iter().map(|run| run.id).collect();
    assert_eq!(left, [second]);
}

/// A run that a kill ended looks like one under way.
#[test]
fn a_run_that_has_not_ended_is_deleted_on_demand_alone() {
    let user = User::new();
    let id = measure(&user, "");
    let store = rusqlite::Connection::open(user.store()).unwrap();
    let running =
        "UPDATE runs SET state = 'running', document = json_set(document, '$.state', 'running')";
    store.execute(running, []).unwrap();
    user.run(&["delete", &id])
        .expect(2, &["has not ended", "--killed"]);
    user.run(&["delete", "--killed", &id]).expect(0, &[]);
    assert_eq!(user.stored().len(), 0);
}

/// An exported run, `steady.json`, whose repetitions took even times, and others of it
/// with a factor on each.
fn with_even_times(user: &User, id: &str, factors: &[(&str, f64)]) {
    user.run(&["export", id, "-o", "measured.json"])
        .expect(0, &[]);
    let text = fs::read(user.file("measured.json")).unwrap();
    for (number, (name, factor)) in factors.iter().enumerate() {
        let mut file: Value = serde_json::from_slice(&text).unwrap();
        let repetitions = file["runs"][0]["results"][0]["repetitions"]
            .as_array_mut()
            .unwrap();
        for (place, repetition) in repetitions.iter_mut().enumerate() {
            let worker = &mut repetition["workers"][0];
            for (time, ns) in [("elapsed", 1e7), ("durable", 2e7)] {
                let even = ns * (1.0 + 0.002 * (place % 5) as f64);
                worker[time] = ((even * factor) as u64).into();
            }
        }
        file["runs"][0]["id"] = format!("012345678{number}").into();
        fs::write(user.file(name), file.to_string()).unwrap();
    }
}

#[test]
fn a_gate_has_five_exit_codes() {
    let user = User::new();
    let line = format!("{MEASURE} --runs 20").replace("--runs 8 ", "");
    let run = user.run(&words(&line)).expect(0, &[]).json();
    let id = run["runs"][0]["id"].as_str().unwrap();
    with_even_times(
        &user,
        id,
        &[
            ("steady.json", 1.0),
            ("alike.json", 1.01),
            ("slow.json", 2.0),
            ("fast.json", 0.5),
        ],
    );
    let other = MEASURE.replace("write_8192", "write_4096");
    user.run(&words(&format!("{other} --label other")))
        .expect(0, &[]);
    for (line, code, says) in [
        ("compare steady.json slow.json", 0, ""),
        (
            "compare steady.json slow.json --fail-over 5%",
            1,
            "slower by 50.0 %",
        ),
        (
            "compare steady.json slow.json --fail-over 5",
            1,
            "above the limit of 5.0 %",
        ),
        ("compare steady.json slow.json --fail-over 90%", 0, ""),
        ("compare steady.json fast.json --fail-over 5%", 0, ""),
        (
            "compare steady.json alike.json --fail-over 5%",
            3,
            "cannot tell",
        ),
        ("compare steady.json alike.json --fail-over 50%", 0, ""),
        ("compare steady.json steady.json --fail-over 5%", 0, ""),
        (
            "compare steady.json other --fail-over 5%",
            4,
            "no program in common",
        ),
        (
            "compare steady.json gone.json --fail-over 5%",
            2,
            "gone.json",
        ),
        (
            "compare steady.json slow.json --fail-over 0.05",
            2,
            "5.0000%",
        ),
    ] {
        user.run(&words(line)).expect(code, &[says]);
    }
    let gated = user.run(&words(
        "compare steady.json alike.json --fail-over 5% --format json",
    ));
    let gated = gated.expect(3, &[]).json();
    let gate = &gated["comparison"]["gate"];
    assert_eq!(gate["outcome"], "cannot_tell", "{gate}");
    assert_eq!(gate["exit_code"], 3, "{gate}");
    let summary = user.run(&words(
        "compare steady.json slow.json --fail-over 5% --format markdown",
    ));
    let summary = summary.expect(1, &[]);
    assert!(
        summary.stdout.contains("failed: something is slower"),
        "{summary:?}"
    );
}

#[test]
fn a_run_like_another_has_its_sizes_and_settings() {
    let user = User::new();
    fs::create_dir(user.file("other")).unwrap();
    let line = "run write_8192 --on ./target --size 192K --runs 3 --cache warm --set program.think_ns=1000 --label first";
    user.run(&words(line)).expect(0, &[]);
    let like = user.run(&words(
        "run --like first --on ./other --runs 4 --set program.call_bytes=4K --format json",
    ));
    let json = like.expect(0, &[]).json();
    let (run, result) = (&json["runs"][0], &json["runs"][0]["results"][0]);
    assert_eq!(run["target"], user.file("other").display().to_string());
    assert_eq!(run["label"], Value::Null);
    assert_eq!(result["size_bytes"], 192 << 10);
    assert_eq!(result["cache"], "warm");
    assert_eq!(result["parameters"]["think_ns"], "1000");
    assert_eq!(result["parameters"]["call_bytes"], "4096");
    assert!(result["repetitions"].as_array().unwrap().len() >= 4);
    for (line, says) in [
        ("run read_8192 --like first", "cannot be used with"),
        ("run --like nothing", "no run"),
    ] {
        user.run(&words(line)).expect(2, &[says]);
    }
}

/// A size that a pilot found counts for the run that is to be like it.
#[test]
fn a_run_like_another_needs_no_pilot() {
    let user = User::new();
    let run = "run read_8192 --on ./target --runs 2 --format json";
    let first = user.run(&words(run)).expect(0, &[]).json();
    let like = user.run(&words("run --like last --runs 2 --format json"));
    let like = like.expect(0, &[]).json();
    let size = |json: &Value| json["runs"][0]["results"][0]["size_bytes"].as_u64();
    assert_eq!(size(&like), size(&first));
}

#[test]
fn two_sizes_are_not_compared_in_silence() {
    let user = User::new();
    measure(&user, "");
    let line = MEASURE.replace("256K", "512K");
    user.run(&words(&line)).expect(0, &[]);
    let ids: Vec<_> = user.stored().into_iter().map(|run| run.id).collect();
    let compared = user.run(&["compare", &ids[1], &ids[0]]).expect(0, &[]);
    for size in ["256 KiB", "512 KiB"] {
        assert!(compared.stdout.contains(size), "{compared:?}");
    }
}

#[test]
fn two_runs_at_once_are_both_stored() {
    let user = User::new();
    fs::create_dir(user.file("other")).unwrap();
    let line = "run write_8192 --size 256K --runs 30 --on";
    let processes: Vec<_> = ["./target", "./other", "./target"]
        .into_iter()
        .map(|on| user.start(&[&words(line)[..], &[on]].concat()))
        .collect();
    for process in processes {
        process.finish().expect(0, &["stored as run"]);
    }
    user.assert_nothing_left("three runs");
    let stored = user.stored();
    assert_eq!(stored.len(), 3);
    for run in stored {
        assert!(run.repetition_count >= 30, "{run:?}");
        shown(&user, &run.id);
    }
}

/// `--store` is used wherever it stands, and nothing else is.
#[test]
fn a_store_of_ones_own() {
    let user = User::new();
    fs::create_dir(user.file("here")).unwrap();
    for line in [
        "--store here/mine.sqlite run write_8192 --on ./target --size 64K --runs 1",
        "run write_8192 --on ./target --size 64K --runs 1 --store here/mine.sqlite",
        "show last --store here/mine.sqlite",
        "clean --store here/mine.sqlite",
    ] {
        user.run(&words(line)).expect(0, &[]);
    }
    let list = "list runs --format json --store here/mine.sqlite";
    let listed = &user.run(&words(list)).expect(0, &[]).json()["runs"];
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert!(!user.file("data").exists());
}

#[test]
fn a_dry_run_writes_nothing() {
    let user = User::new();
    fs::create_dir(user.file("other")).unwrap();
    let before = tree(&user.home());
    for (options, says) in [
        (
            "",
            &[
                "today26 on ./target",
                "4 KiB random read, QD32",
                "a new folder of its own",
                "pilot",
                "time: about",
            ][..],
        ),
        (
            "ffs83 --size 8M",
            &["write_4096", "8 MiB", "written in all: at most"],
        ),
        (
            "vme87 --other ./other --size 1M",
            &["scan", "./other: a new folder"],
        ),
        ("--on ./other --together --size 1M", &["./target + ./other"]),
        (
            "ffs83 --fresh ext4 --size 1M",
            &["a fresh ext4 with blocks of 1024 bytes", "image file"],
        ),
        ("seqread89 --size 1M", &["layer=null", "layer=direct"]),
        // 64 MiB once, and 17 times 1 MiB, and 8 more if others disturb.
        (
            "random_mix --size 1M",
            &[
                "written in all: at most 89 MiB, of which 64 MiB are files made beforehand",
                "time: about 1 s at 100 MiB/s",
            ],
        ),
        (
            "random_mix --set program.area_bytes=256M --size 1M",
            &[
                "256 MiB are files made beforehand",
                "time: about 3 s at 100 MiB/s",
            ],
        ),
        // The size of a ring program is what it moves, and not where.
        (
            "random --size 1M",
            &["disturbed, 1 MiB, spread over 256 MiB\n"],
        ),
        (
            "sequential --size 2M --set program.area_bytes=16M",
            &["disturbed, 2 MiB, spread over 16 MiB\n"],
        ),
        (
            "write_8192 --size 1M",
            &[
                "up to 17 times and 8 more if disturbed",
                "written in all: at most 25 MiB\n",
            ],
        ),
    ] {
        let line = format!("run --dry-run --on ./target {options}");
        let mut words = words(&line);
        // WHAT stands before the options.
        if let Some(what) = words.get(4).filter(|what| !what.starts_with('-')).copied() {
            words.remove(4);
            words.insert(1, what);
        }
        let outcome = user.run(&words).expect(0, &[]);
        for part in says {
            assert!(outcome.stdout.contains(part), "`{part}`: {outcome:?}");
        }
        assert_eq!(tree(&user.home()), before, "{line}");
    }
}

/// Progress goes to a terminal only, and what is said beside the table to
/// standard error only.
#[test]
fn nothing_but_the_answer_is_on_standard_output() {
    let user = User::new();
    let loud = user.run(&words(MEASURE)).expect(0, &["stored as run"]);
    let quiet = user
        .run(&words(&format!("{MEASURE} --quiet")))
        .expect(0, &[]);
    assert_eq!(quiet.stderr, "");
    for outcome in [loud, quiet] {
        assert_eq!(outcome.json()["runs"].as_array().unwrap().len(), 1);
        assert!(!outcome.stderr.contains('\u{1b}'), "{outcome:?}");
    }
}
