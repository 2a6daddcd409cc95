//! Where the time of a run on real storage went.

use crate::support::machine::{LoopDevice, Needs, can_run, instances_of};
use crate::support::{MOUNTS, SmallDisk, User, mount_tmpfs, words};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;

/// The stages that real storage has.
const STAGES: [&str; 21] = [
    "user",
    "system_call",
    "copy",
    "clear",
    "cache_lookup",
    "cpu_wait",
    "driver_queue",
    "device",
    "unattributed",
    "completion",
    "think",
    "cgroup_throttle",
    "tag_wait",
    "plug_wait",
    "flush_wait",
    "flush",
    "work_queue_wait",
    "hand_over",
    "other_task",
    "dirty_throttle",
    "reclaim",
];

/// The ledger of a program; it sums to the elapsed time.
fn ledger(program: &Value) -> BTreeMap<String, u64> {
    let lines = program["ledger"].as_array().expect("a ledger");
    let line = |line: &Value| {
        let stage = line["stage"].as_str().expect("a stage").to_owned();
        (stage, line["ns"].as_u64().expect("ns"))
    };
    let ledger: BTreeMap<_, _> = lines.iter().map(line).collect();
    let sum: u64 = ledger.values().sum();
    assert_eq!(Some(sum), program["elapsed_ns"].as_u64(), "{program}");
    for stage in ledger.keys() {
        assert!(STAGES.contains(&stage.as_str()), "{stage}");
    }
    ledger
}

/// Where events are shown, they agree with the kernel's accounting of the same threads.
fn agrees_with_accounting(program: &Value) {
    let elapsed = program["elapsed_ns"].as_u64().expect("ns") as f64;
    let by_accounting = program["accounted_cpu_ns"].as_u64().expect("ns") as f64 / elapsed;
    // The ledger has it undivided where there are too few ticks to divide it by.
    let by_events = program["utilisation"]["processor"]
        .as_f64()
        .expect("a share");
    assert!(
        (by_accounting - by_events).abs() < 0.05 + 1e-6,
        "{by_events} by the events: {program}"
    );
}

fn explained(user: &User, line: &str) -> Value {
    let line = format!("explain {line} --format json");
    user.run(&words(&line)).expect(0, &[]).json()
}

fn notes(found: &Value) -> String {
    found["notes"].to_string()
}

#[test]
fn a_stored_run_is_explained_by_what_was_stored() {
    let user = User::new();
    let run = "run read_8192 --size 8M --runs 3 --on ./target";
    user.run(&words(&format!("{run} --label mine")))
        .expect(0, &[]);
    let found = explained(&user, "mine");
    let program = &found["programs"][0];
    assert_eq!(program["program"], "read_8192");
    assert_eq!(program["drives"], 1);
    ledger(program);
    let used = &program["utilisation"];
    assert!(used["processor"].as_f64().expect("a share") > 0.0);
    assert_eq!(used["bus"], Value::Null);
    let verdict = program["verdict"].as_str().expect("a text");
    assert!(
        verdict.contains("Each of 1024 calls of 8 KiB takes"),
        "{verdict}"
    );
    assert!(notes(&found).contains("block-layer events"), "{found}");
    let heading = format!("Explained: read_8192 on {} (run ", user.target().display());
    user.run(&words("explain mine"))
        .expect(0, &[])
        .shows(&[&heading, "the program's time"]);
    let csv = user.run(&words("explain mine --format csv")).expect(0, &[]);
    assert!(
        csv.stdout
            .starts_with("program,filesystem,drives,kind,name,cause,ns,share,gain\r\n")
    );
    user.run(&words("explain mine --format markdown"))
        .expect(0, &[])
        .shows(&["## Explained"]);
    user.run(&words("explain mine --perfetto trace"))
        .expect(2, &["--perfetto", "no events of"]);
    assert!(!user.file("trace").exists());
    user.run(&words("explain mine --size 1M"))
        .expect(2, &["its stored data", "--size"]);
    user.run(&words("explain mine --change driver.search_lead_sectors=2"))
        .expect(2, &["--change takes one modelled system"]);
    user.run(&words("explain ./target --drives 2"))
        .expect(2, &["--drives applies to modelled systems"]);
    user.run(&words("explain ./no/such/place"))
        .expect(2, &["no/such/place"]);
}

/// Of how many programs of `layer=null` and of the layers above it the parts are told.
fn layers_told(found: &Value) -> (usize, usize) {
    let (mut null, mut told) = (0, 0);
    for program in found["programs"].as_array().expect("programs") {
        let name = program["program"].as_str().expect("a name");
        let ledger = ledger(program);
        let own = |layer: &str| name.starts_with(&format!("seqread layer={layer} "));
        if own("null") {
            assert_eq!(ledger.keys().collect::<Vec<_>>(), ["system_call"]);
            null += 1;
        }
        let part = [
            ("zero", "clear"),
            ("cached", "copy"),
            ("dropped", "cache_lookup"),
        ]
        .into_iter()
        .find(|(layer, _)| own(layer));
        told += usize::from(part.is_some_and(|(_, stage)| ledger.contains_key(stage)));
    }
    (null, told)
}

#[test]
fn layers_of_seqread_are_stages() {
    let user = User::new();
    // On a machine that does other things as well, noise may hide a part; not always.
    let measured = (0..5).map(|_| {
        user.run(&words("run seqread89 --size 8M --runs 5 --on ./target"))
            .expect(0, &[]);
        explained(&user, "last")
    });
    let mut last = Value::Null;
    for found in measured {
        last = found;
        if layers_told(&last).1 > 3 {
            break;
        }
    }
    let (null, told) = layers_told(&last);
    assert!(null > 3 && told > 3, "{null} {told} {last}");
    assert!(notes(&last).contains("parts from the layers"), "{last}");
}

#[test]
fn two_runs_differ_by_stages_and_what_differs_is_listed() {
    let user = User::new();
    for (label, more) in [("one", "--size 2M"), ("two", "--size 1M --seed 7")] {
        let line = format!("run read_8192 --runs 3 --on ./target --label {label} {more}");
        user.run(&words(&line)).expect(0, &[]);
    }
    let found = explained(&user, "one two");
    let program = &found["programs"][0];
    let stages = program["stages"].as_array().expect("stages");
    let more = stages
        .iter()
        .map(|one| one["difference_ns"].as_i64().expect("ns"));
    assert_eq!(Some(more.sum::<i64>()), program["difference_ns"].as_i64());
    let unlike = found["unlike"].to_string();
    assert!(unlike.contains("seeds differ: 1983, 7"), "{unlike}");
    assert!(unlike.contains("sizes differ: 2 MiB, 1 MiB"), "{unlike}");
    assert!(
        notes(&found).contains("scaled to the bytes of A"),
        "{found}"
    );
    assert_eq!(program["parts"], Value::Array(Vec::new()));
    user.run(&words("explain one two"))
        .expect(0, &[])
        .shows(&["What differs in plan and environment"]);
    // Beside a model, stage by stage.
    let beside = explained(&user, "one vax780-sc780-eagle --suite read_8192 --size 2M");
    let stages = beside["programs"][0]["stages"].to_string();
    assert!(stages.contains("rotational_latency"), "{stages}");
    assert!(notes(&beside).contains("modelled"), "{beside}");
    user.run(&words(
        "run write_8192 --size 1M --runs 2 --on ./target --label other",
    ))
    .expect(0, &[]);
    user.run(&words("explain one other"))
        .expect(2, &["different programs", "read_8192", "write_8192"]);
}

#[test]
fn where_there_are_no_events_it_says_why() {
    let user = User::new();
    crate::support::open_to_all(&user.home());
    crate::support::open_to_all(&user.target());
    let line = "explain ./target --suite write_8192 --size 1M --runs 2 --format json";
    let found = user.run_as_nobody(&words(line)).expect(0, &[]).json();
    ledger(&found["programs"][0]);
    assert!(notes(&found).contains("need root"), "{found}");
    assert_eq!(user.stored().len(), 0, "what is watched is not kept");
    if !can_run("where_there_are_no_events_it_says_why (tmpfs)", MOUNTS) {
        return;
    }
    let _memory = mount_tmpfs(&user.target(), "size=32m");
    let found = explained(&user, "./target --suite read_8192 --size 1M --runs 2");
    ledger(&found["programs"][0]);
    assert!(
        notes(&found).contains("no block device is underneath"),
        "{found}"
    );
}

const EVENTS: &[Needs] = &[
    Needs::BlockEvents,
    Needs::LoopDevices,
    Needs::Tool("mkfs.ext4"),
];

/// What the requests of one kind come to.
fn operation<'f>(program: &'f Value, name: &str) -> &'f Value {
    let device = &program["devices"][0];
    assert!(
        device["device"]
            .as_str()
            .expect("a name")
            .starts_with("loop"),
        "{program}"
    );
    let all = device["operations"].as_array().expect("operations");
    let found = all.iter().find(|one| one["operation"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {program}"))
}

#[test]
fn events_of_a_device_are_requests_and_stages() {
    if !can_run("events_of_a_device_are_requests_and_stages", EVENTS) {
        return;
    }
    let user = User::new();
    let _disk = SmallDisk::mounted_on(&user.target(), user.scratch(), 64);
    let line = "./target --suite read_8192 --size 4M --runs 3";
    let found = explained(&user, &format!("{line} --direct"));
    let program = &found["programs"][0];
    let stages = ledger(program);
    // The loop device's worker reads its file, from memory or from the disk.
    let served = ["device", "other_task"].map(|stage| stages.get(stage).copied().unwrap_or(0));
    assert!(served.iter().sum::<u64>() > 0, "{program}");
    agrees_with_accounting(program);
    // One call of O_DIRECT is one request, and waits for it.
    let read = operation(program, "read");
    assert_eq!(
        (&read["requests"], &read["bytes"]),
        (&512.into(), &(4 << 20).into())
    );
    assert_eq!(read["bytes_each"]["median"], 8192);
    // The file system's journal may write beside it.
    let device = &program["devices"][0];
    let operations = device["operations"].as_array().expect("operations");
    let alone = operations.iter().all(|one| one["operation"] == "read");
    assert!(device["at_device_most"] == 1 || !alone, "{program}");
    assert!(read["device_ns"]["median"].as_u64() > Some(0), "{read}");
    assert!(read["device_ns"]["p99"].as_u64() <= read["device_ns"]["max"].as_u64());
    let all = program["requests"][0]["requests"].as_u64();
    assert!(all == Some(512) || !alone, "{program}");
    assert_eq!(program["requests"][0]["revolution_ns"], Value::Null);
    let device = program["utilisation"]["drives"][0]
        .as_f64()
        .expect("a share");
    assert!(device > 0.0 && device <= 1.0, "{program}");
    let verdict = program["verdict"].as_str().expect("a text");
    assert!(
        verdict.contains("A read request of 8 KiB (512 of them) waits"),
        "{verdict}"
    );

    // Through the cache, the kernel reads ahead in larger pieces.
    let found = explained(&user, line);
    let program = &found["programs"][0];
    ledger(program);
    let ahead = operation(program, "read_ahead");
    assert!(ahead["requests"].as_u64() < Some(512), "{ahead}");
    assert!(
        ahead["bytes_each"]["median"].as_u64() > Some(8192),
        "{ahead}"
    );
    let csv = user
        .run(&words(&format!("explain {line} --format csv")))
        .expect(0, &[]);
    assert!(csv.stdout.contains("read ahead: device,median"), "{csv:?}");
    assert_eq!(user.stored().len(), 0, "what is watched is not kept");
}

/// Sum of the nanoseconds of a list, which each of its members has.
fn sum_ns<'v>(members: impl IntoIterator<Item = &'v Value>) -> u64 {
    let members = members.into_iter();
    members.map(|one| one["ns"].as_u64().expect("ns")).sum()
}

/// Explains log_append with what is given, and returns the program and the syncs of it. All
/// operations sum to what they took, and each timeline has no gap.
fn explain_syncs(user: &User, settings: &str) -> Option<(Value, Value)> {
    let line = format!("./target --suite log_append --size 1M --runs 2 {settings}");
    let found = explained(user, &line);
    if !notes(&found).contains("eBPF programs on") {
        eprintln!("SKIPPED: {}", notes(&found));
        return None;
    }
    let program = found["programs"][0].clone();
    ledger(&program);
    let operations = program["operations"].as_array().expect("operations");
    for operation in operations {
        let parts = operation["parts"].as_array().expect("parts");
        assert_eq!(
            Some(sum_ns(parts)),
            operation["total_ns"].as_u64(),
            "{operation}"
        );
        for timeline in ["typical", "slowest"] {
            let links = operation[timeline]["links"].as_array().expect("links");
            let mut at = 0;
            for link in links {
                assert_eq!(link["at_ns"].as_u64(), Some(at), "{operation}");
                at += link["ns"].as_u64().expect("ns");
            }
            assert_eq!(operation[timeline]["duration_ns"].as_u64(), Some(at));
        }
    }
    let syncs = operations
        .iter()
        .find(|one| one["operation"] == "fdatasync");
    let syncs = syncs
        .unwrap_or_else(|| panic!("no syncs in {program}"))
        .clone();
    Some((program, syncs))
}

/// Share of the syncs' time with this purpose.
fn share_of_purpose(syncs: &Value, purpose: &str) -> f64 {
    let parts = syncs["parts"].as_array().expect("parts");
    let own = parts.iter().filter(|part| part["purpose"] == purpose);
    sum_ns(own) as f64 / syncs["total_ns"].as_u64().expect("ns") as f64
}

/// A sync of appended records waits for the journal, which writes a commit block. One of records
/// that are overwritten does not, which is the control.
#[test]
fn an_fsync_is_followed_through_the_journal() {
    if !can_run("an_fsync_is_followed_through_the_journal", EVENTS) {
        return;
    }
    let user = User::new();
    let _disk = SmallDisk::journalling(&user.target(), user.scratch(), 96);
    let threads = "--set program.engine=threads --set program.area_bytes=2M";
    let Some((program, appended)) = explain_syncs(&user, threads) else {
        return;
    };
    assert_eq!(appended["count"], 256, "{appended}");
    assert!(
        share_of_purpose(&appended, "commit_block") > 0.2,
        "{appended}"
    );
    let links = appended["typical"]["links"].as_array().expect("links");
    let is_journal = |link: &Value| {
        link["task"]
            .as_str()
            .is_some_and(|task| task.starts_with("jbd2/"))
    };
    assert!(links.iter().any(is_journal), "{appended}");
    let verdict = program["verdict"].as_str().expect("a text");
    assert!(
        verdict.starts_with("256 calls of fdatasync take "),
        "{verdict}"
    );
    let overwriting = format!("{threads} --set program.preallocated=yes");
    let Some((_, overwritten)) = explain_syncs(&user, &overwriting) else {
        return;
    };
    assert!(
        share_of_purpose(&overwritten, "commit_block") < 0.1,
        "{overwritten}"
    );
    assert!(
        share_of_purpose(&overwritten, "flush") > 0.1,
        "{overwritten}"
    );
}

/// The buffer of tracefs goes with its owner, or when somebody looks for what was left.
#[test]
fn nothing_of_ours_stays_in_tracefs() {
    if !can_run("nothing_of_ours_stays_in_tracefs", EVENTS) {
        return;
    }
    let user = User::new();
    let disk = LoopDevice::blank(user.scratch(), 32);
    let mut process = user.start(&words(&format!("record {} -o t", disk.text())));
    let number = process.pid().as_raw_nonzero().get();
    process.wait_until(|| !instances_of(number).is_empty());
    process.signal(Signal::KILL);
    let outcome = process.finish();
    assert_eq!(outcome.code, None, "{outcome:?}");
    assert_eq!(instances_of(number).len(), 1, "nobody could remove it");
    user.run(&words("clean --on ./target"))
        .expect(0, &[])
        .shows(&[&format!(
            "removed /sys/kernel/tracing/instances/diskperf-{number}-"
        )]);
    assert_eq!(instances_of(number), [""; 0]);
}
