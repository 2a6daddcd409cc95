//! The suite of today's storage on every system of the catalogue: it runs, or says why not.

use crate::support::{User, words};
use serde_json::Value;

/// Systems on which a step is left out, with the step and the reason.
const LEFT_OUT: [(&str, &str, &str); 16] = [
    ("bare-fixed", "log_append", "no file system"),
    ("bare-sas-10k", "log_append", "no file system"),
    ("bare-sata-7200", "log_append", "no file system"),
    ("bare-sata-consumer", "log_append", "no file system"),
    ("bare-smr-5400", "log_append", "no file system"),
    ("bare-nvme-lowlatency", "log_append", "no file system"),
    ("bare-nvme-qlc", "log_append", "no file system"),
    ("bare-nvme-tlc", "log_append", "no file system"),
    ("bare-nvme-tlc-plp", "log_append", "no file system"),
    ("bare-nvme-tlc-plp:no-plp", "log_append", "no file system"),
    ("bare-nvme-tlc-plp:spare28", "log_append", "no file system"),
    ("bare-nvme-tlc:hmb64", "log_append", "no file system"),
    ("bare-nvme-zclass", "log_append", "no file system"),
    ("bare-sata-tlc", "log_append", "no file system"),
    ("sun3-cheetah-2344:raw-ab", "log_append", "no file system"),
    ("sun3-rimfire-2344:raw-ab", "log_append", "no file system"),
];

fn names_of_systems(user: &User) -> Vec<String> {
    let list = user
        .run(&words("list systems --format json"))
        .expect(0, &[]);
    let list = list.json();
    let systems = list["systems"].as_array().expect("there are systems");
    let name = |one: &Value| one["system"].as_str().expect("with names").to_owned();
    systems.iter().map(name).collect()
}

#[test]
fn today26_runs_on_every_system_or_says_why_not() {
    let user = User::new();
    let systems = names_of_systems(&user);
    assert!(systems.len() >= 20, "{systems:?}");
    for system in systems {
        let line = format!("run today26 --on {system} --size 1M --runs 1 --quiet --format json");
        let run = user.run(&words(&line)).expect(0, &[]).json()["runs"][0].clone();
        let results = run["results"].as_array().expect("a run has results");
        let notes = run["notes"].to_string();
        let left_out: Vec<_> = LEFT_OUT
            .iter()
            .filter(|(name, ..)| *name == system)
            .collect();
        assert_eq!(results.len() + left_out.len(), 8, "{system}: {notes}");
        for (_, program, why) in left_out {
            let said = format!("left out: {program}");
            assert!(
                notes.contains(&said) && notes.contains(why),
                "{system}: {notes}"
            );
        }
        for result in results {
            let iops = result["iops"].as_f64().expect("of requests under way");
            let p50_us = &result["response"]["p50_us"];
            // Of a mebibyte there are too few to tell.
            let tells = result["program"] == "sequential" || p50_us.as_f64() > Some(0.0);
            assert!(iops > 0.0 && tells, "{system}: {result}");
            assert_eq!(result["engine"], serde_json::json!(["model"]), "{system}");
            for worker in result["repetitions"][0]["workers"].as_array().unwrap() {
                let ledger = worker["ledger"].as_array().expect("a model has a ledger");
                let sum: u64 = ledger.iter().map(|one| one["ns"].as_u64().unwrap()).sum();
                let elapsed_s = worker["elapsed_s"].as_f64().unwrap();
                assert_eq!(sum, (elapsed_s * 1e9).round() as u64, "{system}");
            }
        }
    }
}

/// A stream that fits in the drive's cache tells how fast the link is.
#[test]
fn a_stream_is_as_fast_as_the_medium_and_no_faster() {
    let user = User::new();
    let line = "run today26 --on bare-sata-7200 --runs 2 --quiet --format json";
    let run = user.run(&words(line)).expect(0, &[]).json()["runs"][0].clone();
    let notes = run["notes"].to_string();
    assert!(
        notes.contains("4 times what the drive's cache of"),
        "{notes}"
    );
    // Data sheet: at most 249 MB/s from the medium.
    let streams = run["results"].as_array().expect("a run has results");
    let streams = streams.iter().filter(|one| one["program"] == "sequential");
    let mb_per_s: Vec<f64> = streams
        .map(|one| one["mb_per_s"].as_f64().expect("has moved bytes"))
        .collect();
    assert_eq!(mb_per_s.len(), 2);
    assert!(
        mb_per_s.iter().all(|rate| (150.0..300.0).contains(rate)),
        "{mb_per_s:?}"
    );
}
