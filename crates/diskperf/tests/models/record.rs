//! What drives of models are asked for, as a block trace.

use crate::support::{User, words};
use serde_json::Value;

fn trace(user: &User, line: &str) -> Value {
    let line = format!("trace {line} --format json --quiet");
    user.run(&words(&line)).expect(0, &[]).json()
}

/// Requests that the programs of a run made, of all repetitions.
fn calls(run: &Value) -> u64 {
    let results = run["runs"][0]["results"].as_array().expect("results");
    let repetitions = results
        .iter()
        .flat_map(|one| one["repetitions"].as_array().expect("repetitions"));
    let workers = repetitions.flat_map(|one| one["workers"].as_array().expect("workers"));
    workers
        .map(|one| one["calls"].as_u64().expect("calls"))
        .sum()
}

/// Of a drive by itself, a request of a program is a request of the drive.
#[test]
fn a_recorded_run_has_every_request_of_its_timed_parts() {
    let user = User::new();
    let line = "run random --on bare-sata-7200 --direct --size 1M --set program.depth=8";
    let run = format!("{line} --runs 2 --record a.dptrace --format json");
    let run = user.run(&words(&run)).expect(0, &[]).json();
    let found = trace(&user, "a.dptrace");
    assert_eq!(found["form"], "diskperf");
    assert_eq!(found["summary"]["requests"].as_u64(), Some(calls(&run)));
    let parts = found["parts"].as_array().expect("parts");
    assert_eq!(parts.len(), 2);
    let of_parts = parts
        .iter()
        .map(|part| part["requests"].as_u64().expect("requests"));
    assert_eq!(of_parts.sum::<u64>(), calls(&run));
    let said = found["about"].to_string();
    for what in ["bare-sata-7200", "random", "1983"] {
        assert!(said.contains(what), "{what}: {said}");
    }
    // Every one has its completion.
    assert_eq!(found["notices"]["without_completion"], 0);
    let second = trace(&user, "a.dptrace --part 2");
    assert_eq!(second["summary"]["requests"], parts[1]["requests"]);
    let replay = "replay a.dptrace --on bare-sata-7200 --format json --part";
    let replayed = user.run(&words(&format!("{replay} 2")));
    let replayed = replayed.expect(0, &[]).json();
    let replayed = &replayed["runs"][0]["results"][0]["replay"]["trace_requests"];
    assert_eq!(*replayed, parts[1]["requests"]);
    for line in ["trace a.dptrace --part 3", &format!("{replay} 3")] {
        user.run(&words(line)).expect(2, &["the parts 1 to 2"]);
    }
    user.run(&words("trace a.dptrace"))
        .expect(0, &[])
        .shows(&["repetition 2", "seed 1983"]);
    // The same once more has the same bytes.
    let again = format!("{line} --runs 2 --record b.dptrace --quiet");
    user.run(&words(&again)).expect(0, &[]);
    let bytes = |name| std::fs::read(user.file(name)).expect("a trace");
    assert!(bytes("a.dptrace") == bytes("b.dptrace"));
    // And recording changes nothing of what is measured.
    let plain = format!("{line} --runs 2 --format json");
    let plain = user.run(&words(&plain)).expect(0, &[]).json();
    assert_eq!(
        plain["runs"][0]["results"][0]["repetitions"],
        run["runs"][0]["results"][0]["repetitions"]
    );
}

/// 4.2BSD and Minix: kernels of every kind.
#[test]
fn files_of_every_kernel_are_requests_of_their_drives() {
    for system in ["vax780-sc780-eagle", "atarist-supra"] {
        let user = User::new();
        let line = format!("run read_8192 --on {system} --size 256K --runs 1 --record t --quiet");
        user.run(&words(&line)).expect(0, &[]);
        let found = trace(&user, "t");
        assert_eq!(found["parts"].as_array().map(Vec::len), Some(1), "{system}");
        assert!(found["summary"]["requests"].as_u64() > Some(0), "{system}");
        let read = &found["summary"]["operations"][0];
        assert_eq!(read["operation"], "read", "{system}: {read}");
    }
}

#[test]
fn what_cannot_be_recorded_is_refused_before_it_runs() {
    let user = User::new();
    std::fs::write(user.file("mine"), "kept").expect("a file");
    let run = "run write_8192 --on vax780-sc780-eagle --size 64K --runs 1 --quiet";
    user.run(&words(&format!("{run} --record mine")))
        .expect(2, &["mine", "it exists", "--force"]);
    assert_eq!(
        std::fs::read_to_string(user.file("mine")).expect("a file"),
        "kept"
    );
    user.run(&words(&format!("{run} --record -")))
        .expect(2, &["standard output has the table"]);
    user.run(&words(&format!("{run} --force")))
        .expect(2, &["--record"]);
    user.run(&words(&format!("{run} --on ./target --record new")))
        .expect(2, &["--record takes one target"]);
    assert!(!user.file("new").exists());
    assert!(user.stored().is_empty(), "nothing was run");
    user.run(&words(&format!("{run} --record mine --force")))
        .expect(0, &[]);
    assert_eq!(trace(&user, "mine")["form"], "diskperf");
}
