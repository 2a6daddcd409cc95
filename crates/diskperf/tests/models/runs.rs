//! Runs on modelled computers.

use crate::support::User;
use serde_json::Value;

const VAX: &str = "vax780-sc780-eagle";

fn results(run: &Value) -> &Vec<Value> {
    run["results"].as_array().expect("a run has results")
}

#[test]
fn the_suite_runs_on_both_of_the_papers_file_systems() {
    let user = User::new();
    let outcome = user.run(&["run", "ffs83", "--on", VAX, "--format", "json"]);
    let json = outcome.expect(0, &["stored as run"]).json();
    let run = &json["runs"][0];
    assert_eq!(run["world"], "model");
    assert_eq!(run["target"], VAX);
    assert_eq!(run["seed"], 1983);
    assert!(
        run["model"]["model_version"]
            .as_str()
            .unwrap()
            .contains('+')
    );
    assert!(!run["model"]["catalogue"].as_array().unwrap().is_empty());
    assert_eq!(results(run).len(), 8);
    for result in results(run) {
        assert_eq!(result["size_bytes"], 8 << 20);
        assert_eq!(result["drives"], 1);
        assert_eq!(result["repetitions"].as_array().unwrap().len(), 3);
        let kb_per_s = result["kb_per_s"].as_f64().unwrap();
        assert!((100.0..2000.0).contains(&kb_per_s), "{result}");
        assert_eq!(result["interval"]["low"], result["kb_per_s"]);
        assert_eq!(result["interval"]["high"], result["kb_per_s"]);
        let wrote = result["program"] != "read_8192";
        assert_eq!(result["durable_kb_per_s"].is_f64(), wrote, "{result}");
        for repetition in result["repetitions"].as_array().unwrap() {
            for worker in repetition["workers"].as_array().unwrap() {
                let entries = worker["ledger"].as_array().unwrap();
                let sum: u64 = entries.iter().map(|one| one["ns"].as_u64().unwrap()).sum();
                let elapsed_s = worker["elapsed_s"].as_f64().unwrap();
                assert_eq!(sum, (elapsed_s * 1e9).round() as u64);
            }
        }
    }
    let filesystems: Vec<&Value> = results(run).iter().map(|one| &one["filesystem"]).collect();
    assert_eq!(filesystems[0], "ffs/8192");
    assert_eq!(filesystems[7], "ffs/4096");
    let row = user.run(&["show", "last", "--format", "markdown"]);
    row.expect(0, &[]).shows(&["read\\_8192", "%)"]);
    user.assert_nothing_left("after a modelled run");
}

#[test]
fn the_same_plan_gives_the_same_results() {
    let user = User::new();
    let run = |seed: &str| {
        let words = [
            "run",
            "random_mix",
            "--on",
            VAX,
            "--drives",
            "2",
            "--seed",
            seed,
            "--runs",
            "2",
            "--format",
            "json",
        ];
        let json = user.run(&words).expect(0, &[]).json();
        let run = json["runs"][0].clone();
        (
            run["results"].to_string(),
            run["model"]["fingerprint"].clone(),
        )
    };
    let first = run("7");
    assert!(first == run("7"), "the same seed");
    let other = run("8");
    assert!(first.0 != other.0 && first.1 != other.1, "another seed");
}

#[test]
fn here_and_a_drive_of_today_stand_in_one_table_by_default() {
    let user = User::new();
    let outcome = user.run(&["run", "--size", "8M"]);
    let outcome = outcome.expect(0, &[]);
    let lines = outcome.stdout.lines();
    let rows = lines.filter(|line| line.starts_with("  bare-nvme-tlc "));
    // Each program of the suite but the log, which is a file.
    assert_eq!(rows.count(), 7, "{}", outcome.stdout);
    let told = "left out: 4 KiB log append";
    assert!(outcome.stdout.contains(told), "{}", outcome.stdout);
    assert_eq!(
        outcome.stdout.matches("IOPS   95 %").count(),
        1,
        "{}",
        outcome.stdout
    );
    assert_eq!(user.stored().len(), 2);
}

/// Without a target, settings say which computer is meant.
#[test]
fn settings_choose_the_model() {
    let user = User::new();
    let model_of = |setting: &str| {
        let outcome = user.run(&["run", "--dry-run", "--set", setting]);
        let outcome = outcome.expect(0, &[]);
        let first = outcome.stdout.lines().next().map(str::to_owned);
        first.unwrap_or_default()
    };
    assert_eq!(
        model_of("drive.spare_share=0.2"),
        "today26 on bare-nvme-tlc"
    );
    let whole = "ffs83 on vax780-sc780-eagle";
    assert_eq!(model_of("filesystem.rotdelay_ms=5"), whole);
}

#[test]
fn a_bare_name_is_that_of_the_only_parameter_that_has_it() {
    let user = User::new();
    for (line, shown) in [
        ("run random --on bare-nvme-tlc --set depth=4", "QD4"),
        // What runs there where nobody says what.
        ("run --on bare-nvme-tlc --set depth=4", "read, QD4"),
        ("run random --on ./target --set depth=4", "QD4"),
        ("ab depth=1 depth=4 random --on ./target", "QD4"),
        (
            "ab depth=1 depth=4 random --on bare-nvme-tlc --set past=random",
            "QD4",
        ),
    ] {
        let words: Vec<&str> = line.split(' ').chain(["--dry-run"]).collect();
        user.run(&words).expect(0, &[]).shows(&[shown]);
    }
    // The drive's own is another than the file system's and the programs'.
    let figure = |settings: &str| {
        let line = format!("run read_8192 --on {VAX} --set {settings} --format json");
        let words: Vec<&str> = line.split(' ').collect();
        let run = user.run(&words).expect(0, &[]).json();
        run["runs"][0]["results"][0]["kb_per_s"].as_f64().unwrap()
    };
    let bare = figure("rotdelay_ms=7");
    assert_eq!(bare, figure("filesystem.rotdelay_ms=7"));
    assert_ne!(bare, figure("rotdelay_ms=4"));
    let line = "tune bare-nvme-tlc --suite random --size 1M --seeds 0 --over depth=1,4";
    let words: Vec<&str> = line.split(' ').collect();
    let found = user.run(&words).expect(0, &[]);
    found.shows(&["program.depth=4"]);
}

#[test]
fn a_setting_without_effect_is_told_and_one_with_effect_is_not() {
    let user = User::new();
    let run = |setting: &str| {
        let words = [
            "run",
            "read_8192",
            "--on",
            VAX,
            "--runs",
            "1",
            "--set",
            setting,
        ];
        user.run(&words).expect(0, &[]).stderr
    };
    let idle = run("kernel.update_interval_s=30");
    assert!(idle.contains("had no effect"), "{idle}");
    let felt = run("drive.spindle_rpm=1800");
    assert!(!felt.contains("had no effect"), "{felt}");
}

/// Half of the budget is spent when the run ends, and without the setting it takes as much.
#[test]
fn an_effect_that_the_budget_cannot_show_is_unknown() {
    let line = "run scan --on sun3-rimfire-2344:adaptive --set filesystem.2.blocks_per_section=2";
    let words: Vec<&str> = line.split(' ').collect();
    let notes = User::new().run(&words).expect(0, &[]).stderr;
    assert!(notes.contains("an effect is not known"), "{notes}");
}

#[test]
fn modelled_figures_are_compared_exactly() {
    let user = User::new();
    let run = |label: &str, setting: &str| {
        let words = [
            "run", "ffs83", "--on", VAX, "--label", label, "--set", setting,
        ];
        user.run(&words).expect(0, &[]);
    };
    run("before", "filesystem.rotdelay_ms=4");
    run("again", "filesystem.rotdelay_ms=4");
    run("slower", "drive.spindle_rpm=1800");
    let same = user.run(&["compare", "before", "again", "--fail-over", "1%"]);
    let same = same.expect(0, &[]).shows(&["no difference"]);
    assert!(!same.stdout.contains("too few"), "{}", same.stdout);
    user.run(&["compare", "before", "slower", "--fail-over", "1%"])
        .expect(1, &["slower"])
        .shows(&["settings differ"]);
    user.run(&["show", "slower"])
        .expect(0, &[])
        .shows(&[" with drive.spindle_rpm=1800, run "]);
}

#[test]
fn a_system_of_the_users_own_runs_and_other_suites_do() {
    let user = User::new();
    let text = format!("extends = \"{VAX}\"\ndescription = \"Mine.\"\n[host]\nspeed = 2\n");
    std::fs::write(user.file("mine.toml"), text).unwrap();
    let outcome = user.run(&["run", "ffs83", "--on", "mine.toml", "--format", "json"]);
    let json = outcome.expect(0, &[]).json();
    assert_eq!(json["runs"][0]["target"], "mine.toml");
    for what in ["vme87", "seqread89"] {
        let words = ["run", what, "--on", VAX, "--runs", "1", "--size", "1M"];
        user.run(&words).expect(0, &[]).shows(&[what]);
    }
    user.run(&["run", "ffs83", "--on", VAX, "--dry-run"])
        .expect(0, &[])
        .shows(&["a modelled computer", "2 drives"]);
    user.run(&["show", "mine.toml"])
        .expect(0, &[])
        .shows(&["Mine.", "host.speed"]);
}
