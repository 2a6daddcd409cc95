//! Runs until steady, on real storage and on a model, and the suite that needs them; the
//! program whose operations are on names.

use crate::support::machine::fill;
use crate::support::{User, words};
use serde_json::Value;

fn results(runs: &Value) -> &Vec<Value> {
    runs["runs"][0]["results"].as_array().unwrap()
}

fn json(user: &User, line: &str) -> Value {
    user.run(&words(&format!("{line} --format json")))
        .expect(0, &[])
        .json()
}

/// Virtual time is steady from the first round; what came before the window does not count.
#[test]
fn a_model_is_steady_after_as_many_rounds_as_a_window_has() {
    let user = User::new();
    let line = "run random --on bare-fixed --direct --size 1M --until-steady";
    let runs = json(&user, line);
    let [result] = &results(&runs)[..] else {
        panic!("one program: {runs}")
    };
    assert_eq!(result["steady"]["attained"], true, "{result}");
    assert_eq!(
        (&result["steady"]["rounds"], &result["kept"]),
        (&5.into(), &5.into())
    );
    let at_s = result["steady"]["at_s"].as_f64().unwrap();
    let round_s = result["elapsed_s"].as_f64().unwrap();
    assert!(
        (at_s - 5.0 * round_s).abs() < 1e-3 * at_s,
        "{at_s} and {round_s}"
    );
    let id = runs["runs"][0]["id"].as_str().unwrap();
    let shown = user.run(&["show", id]).expect(0, &[]);
    let said = ": steady after 5 rounds";
    assert!(shown.stdout.contains(said), "{shown:?}");
}

#[test]
fn rounds_of_real_storage_end_at_the_window_or_at_the_bound() {
    let user = User::new();
    let line = "run random --on ./target --size 1M --set program.area_bytes=1M --runs 3";
    // Whatever two rounds differ by, and what no two do.
    for (rule, rounds) in [("2,100%,100%", None), ("2,0.0000001%,0.0000001%", Some(3))] {
        let runs = json(&user, &format!("{line} --until-steady={rule}"));
        let result = &results(&runs)[0];
        let steady = &result["steady"];
        assert_eq!(result["kept"], 2, "{result}");
        match rounds {
            Some(rounds) => {
                assert_eq!(
                    (&steady["attained"], &steady["rounds"]),
                    (&false.into(), &rounds.into())
                );
                assert!(steady["at_s"].is_null(), "{steady}");
            }
            None => assert_eq!(steady["attained"], true, "{steady}"),
        }
        // Made again, a run is repeated by the same rule.
        let id = runs["runs"][0]["id"].as_str().unwrap();
        let kept = user.run(&["show", id]).expect(0, &[]);
        assert!(kept.stdout.contains("steady"), "{kept:?}");
    }
}

#[test]
fn a_rule_that_is_none_is_refused() {
    let user = User::new();
    for rule in ["1", "5,20,10", "5,0%,10%", "five"] {
        let option = format!("--until-steady={rule}");
        let refused = user.run(&["run", "random", "--on", "./target", &option]);
        refused.expect(2, &["ROUNDS,EXCURSION,SLOPE"]);
    }
    assert_eq!(user.stored().len(), 0);
}

/// Two passes over the area, rounds, and then what is measured.
#[test]
fn ssd26_brings_its_target_to_a_state_and_measures() {
    let user = User::new();
    let line = "run ssd26 --on ./target --size 2M --set program.duration_ms=20 --runs 2";
    let dry = user
        .run(&words(&format!("{line} --dry-run")))
        .expect(0, &[]);
    for said in ["once, 4 MiB", "written in all: at most", "time: about"] {
        assert!(dry.stdout.contains(said), "{said}: {dry:?}");
    }
    let runs = json(&user, line);
    let results = results(&runs);
    assert_eq!(results.len(), 11);
    let bytes = |result: &Value| result["repetitions"][0]["workers"][0]["written_bytes"].as_u64();
    assert_eq!(bytes(&results[0]), Some(4 << 20), "{}", results[0]);
    assert_eq!(results[0]["repetitions"].as_array().unwrap().len(), 1);
    for (number, result) in results.iter().enumerate() {
        assert_eq!(result.get("steady").is_some(), number == 1, "{result}");
        assert!(result["iops"].as_f64().unwrap() > 0.0, "{result}");
    }
    user.assert_nothing_left("ssd26");
}

#[test]
fn ssd26_overwrites_nothing_of_the_user() {
    let user = User::new();
    let file = user.file("precious");
    fill(&file, 1, 7);
    let before = std::fs::read(&file).unwrap();
    let refused = user.run(&["run", "ssd26", "--on", "./precious"]);
    refused.expect(
        2,
        &[
            "ssd26 writes all of its target several times",
            "name a directory",
        ],
    );
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn metadata_has_each_kind_of_operation_in_the_table_and_in_json() {
    let user = User::new();
    let line = "run metadata --on ./target --runs 2 --set program.files=40 --set program.directories=3 --set program.workers=2";
    let runs = json(&user, line);
    let result = &results(&runs)[0];
    assert_eq!(result["size_bytes"], 40 * 4096);
    // Two workers: each operation on each file, a sync of each
    // file, and one of its directory for each name that was made, changed or removed.
    let kept = result["kept"].as_u64().unwrap();
    let count = |name: &str| result["latency"][name]["response"]["count"].as_u64();
    for name in ["create", "stat", "rename", "unlink"] {
        assert_eq!(count(name), Some(80 * kept), "{result}");
        assert!(
            result["latency"][name]["iops"].as_f64().unwrap() > 0.0,
            "{result}"
        );
    }
    assert_eq!(count("sync"), Some(4 * 80 * kept), "{result}");
    let table = user.run(&words(line)).expect(0, &[]).stdout;
    for name in ["create", "stat", "rename", "unlink", "sync"] {
        let line = table
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        assert!(line.is_some(), "{name}: {table}");
    }
    user.assert_nothing_left("metadata");
    let csv = |line: &str| {
        let text = user.run(&words(line)).expect(0, &[]).stdout;
        let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
        let headings: Vec<String> = lines.next().expect("headings").collect();
        let column = move |name: &str| headings.iter().position(|one| one == name).expect(name);
        (
            column,
            lines.map(Iterator::collect).collect::<Vec<Vec<String>>>(),
        )
    };
    let (column, rows) = csv("show last --format csv");
    for kind in ["create", "stat", "rename", "unlink", "sync"] {
        let figure = |name: &str| rows[0][column(&format!("{kind}_{name}"))].parse::<f64>();
        assert!(
            figure("iops").unwrap() > 0.0 && figure("max_us").unwrap() > 0.0,
            "{kind}"
        );
    }
    // 40 files of two workers, four kinds of operations on each.
    let (column, rows) = csv("show last --series --format csv");
    let rates = rows
        .iter()
        .map(|row| row[column("iops")].parse::<f64>().unwrap());
    assert!(
        rates.sum::<f64>() > 0.0 && rows[0][column("at_s")] == "0",
        "{rows:?}"
    );
}

/// What the kernel of the day did not have is said, or refused with what to do instead.
#[test]
fn metadata_on_kernels_of_the_day() {
    let user = User::new();
    let minix = user.run(&words(
        "run metadata --on atarist-supra --set program.files=30 --runs 2",
    ));
    let minix = minix.expect(0, &[]);
    assert!(minix.stdout.contains("Minix has no fsync(2)"), "{minix:?}");
    let bsd = user.run(&words(
        "run metadata --on vax780-sc780-eagle --set program.files=30 --runs 2",
    ));
    let bsd = bsd.expect(0, &[]);
    assert!(!bsd.stdout.contains("fsync(2)"), "{bsd:?}");
    let xenix =
        "run metadata --on pcat-st251 --set filesystem=xenix --set program.files=30 --runs 2";
    user.run(&words(xenix)).expect(
        2,
        &[
            "Xenix has no rename(2)",
            "program.phases=create+stat+unlink",
        ],
    );
    let without = format!("{xenix} --set program.phases=create+stat+unlink");
    let xenix = user.run(&words(&without)).expect(0, &[]);
    assert!(xenix.stdout.contains("Xenix has no fsync(2)"), "{xenix:?}");
}
