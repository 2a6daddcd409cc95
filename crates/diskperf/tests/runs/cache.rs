//! Cold is cold, warm is warm, and what was not as it was asked for is marked.

use crate::support::machine::{can_run, retry};
use crate::support::{MOUNTS, User, words};
use serde_json::Value;

const SIZE: u64 = 4 << 20;

/// The only result of a run of `read_8192` on `on`.
fn read(user: &User, on: &str, options: &str) -> Value {
    let line = format!("run read_8192 --on {on} --size 4M --format json {options}");
    let run = user.run(&words(&line)).expect(0, &[]).json();
    run["runs"][0]["results"][0].clone()
}

/// Whether the directory's files are in memory anyhow, so that nothing there
/// can be cold.
fn is_memory(user: &User) -> bool {
    let result = read(user, "./target", "--runs 1");
    let filesystem = result["filesystem"].as_str().unwrap();
    let memory = ["tmpfs", "ramfs", "overlay"];
    memory.iter().any(|kind| filesystem.starts_with(kind))
}

fn bytes(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no number of bytes"))
}

#[test]
fn cold_warm_and_direct_are_what_they_say() {
    let user = User::new();
    if is_memory(&user) {
        eprintln!(
            "SKIPPED cold_warm_and_direct_are_what_they_say: the build directory is in memory"
        );
        return;
    }
    for (options, cache, before, after, stored) in [
        ("--runs 3", "cold", 0, SIZE, SIZE),
        ("--runs 3 --cache cold", "cold", 0, SIZE, SIZE),
        ("--runs 3 --cache warm", "warm", SIZE, SIZE, 0),
        ("--runs 3 --direct", "direct", 0, 0, SIZE),
    ] {
        // Whoever drops the caches of the whole machine meanwhile is in the
        // way of a warm run.
        retry(|| {
            let result = read(&user, "./target", options);
            assert_eq!(result["cache"], cache, "{options}");
            let repetitions = result["repetitions"].as_array().unwrap();
            let as_asked = repetitions.iter().all(|repetition| {
                let residency = &repetition["residency"];
                let from_storage = &repetition["workers"][0]["storage_read_bytes"];
                repetition["cache_verdict"] == "as_asked"
                    && bytes(&residency["file_bytes"]) == SIZE
                    && bytes(&residency["before_bytes"]) == before
                    && bytes(&residency["after_bytes"]) == after
                    && bytes(from_storage) == stored
            });
            let all = result["cache_verdict"] == "as_asked" && as_asked;
            all.then_some(())
                .ok_or_else(|| format!("{options}: {result}"))
        });
    }
}

/// Threads of the worker and of the kernel read for it.
#[test]
fn what_each_engine_reads_is_its_worker_s() {
    let user = User::new();
    if is_memory(&user) {
        eprintln!(
            "SKIPPED what_each_engine_reads_is_its_worker_s: the build directory is in memory"
        );
        return;
    }
    let engines = [
        "psync",
        "pvsync2",
        "posixaio",
        "libaio",
        "io_uring",
        "io_uring\nsqthread_poll=1",
        "mmap",
        "splice",
    ];
    for (engine, direct) in engines
        .into_iter()
        .flat_map(|engine| [(engine, 0), (engine, 1)])
        .filter(|job| !matches!(job, ("mmap" | "splice", 1)))
    {
        let job = format!(
            "[reads]\nioengine={engine}\ndirect={direct}\niodepth=4\nrw=read\nbs=64k\nsize=4m\n"
        );
        std::fs::write(user.file("job.fio"), &job).unwrap();
        // What other tests read meanwhile is theirs: the interference of a run is not asserted.
        retry(|| {
            let line = "run job.fio --on ./target --runs 1 --format json";
            let run = user.run(&words(line)).expect(0, &[]).json();
            let result = &run["runs"][0]["results"][0];
            let worker = &result["repetitions"][0]["workers"][0];
            let read_bytes = bytes(&worker["storage_read_bytes"]);
            let is_own = (SIZE..2 * SIZE).contains(&read_bytes);
            let is_as_asked = result["cache_verdict"] == "as_asked";
            let wrong = || format!("{job}: {read_bytes} bytes: {result}");
            (is_own && is_as_asked).then_some(()).ok_or_else(wrong)
        });
    }
}

/// A file system of memory has nothing cold to read.
#[test]
fn a_cold_read_of_memory_is_marked() {
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("SKIPPED a_cold_read_of_memory_is_marked: there is no /dev/shm");
        return;
    };
    let user = User::new();
    let on = memory.path().to_str().unwrap();
    let result = read(&user, on, "--runs 2");
    assert_eq!(result["cache_verdict"], "cold_but_cached");
    let line = format!("run read_8192 --on {on} --size 1M --runs 2");
    let table = user.run(&words(&line)).expect(0, &[]).stdout;
    assert!(table.contains("meant to be cold"), "{table}");
    let warm = read(&user, on, "--runs 2 --cache warm");
    assert_eq!(warm["cache_verdict"], "as_asked");
}

/// Root may drop the caches of the whole machine, and is told so.
#[test]
fn dropping_all_caches_is_said() {
    if !can_run("dropping_all_caches_is_said", MOUNTS) {
        return;
    }
    let user = User::new();
    let line = "run read_8192 --on ./target --size 1M --runs 1 --drop-caches";
    let table = user.run(&words(line)).expect(0, &[]).stdout;
    assert!(table.contains("the whole machine's caches"), "{table}");
    let shown = user.run(&words("show last --format json")).expect(0, &[]);
    assert_eq!(shown.json()["runs"][0]["dropped_all_caches"], true);
}
