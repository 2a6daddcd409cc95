//! The suite of today's storage on every system of the catalogue: it runs, or says why not.

use crate::support::{User, words};
use serde_json::Value;

/// Step that is left out on a system without a modelled file system, and the reason.
const LEFT_OUT: (&str, &str) = ("4 KiB log append", "no file system");

fn has_no_filesystem(system: &str) -> bool {
    system.starts_with("bare-") || system.ends_with(":raw-ab")
}

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
        let left_out = has_no_filesystem(&system);
        assert_eq!(
            results.len() + usize::from(left_out),
            8,
            "{system}: {notes}"
        );
        if left_out {
            let (program, why) = LEFT_OUT;
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

/// What is read again in each repetition and fits into the drive's cache comes from there,
/// faster than any sector passes: run and explain say so. Past it, they do not.
#[test]
fn what_the_cache_of_the_drive_answers_is_said() {
    let user = User::new();
    let small = "random --set program.block_bytes=512K --size 16M";
    let mb_per_s = |line: &str| {
        let run = user.run(&words(line)).expect(0, &[]).json()["runs"][0].clone();
        let rate = run["results"][0]["mb_per_s"].as_f64();
        (rate.expect("has moved bytes"), run["notes"].to_string())
    };
    let run = "--on bare-sata-7200 --quiet --format json";
    let (rate, notes) = mb_per_s(&format!("run {small} {run}"));
    let said = "reads the same 16 MiB more than once, and the drive's cache holds 128 MiB";
    assert!(rate > 300.0 && notes.contains(said), "{rate}: {notes}");
    user.run(&words(&format!(
        "explain bare-sata-7200 --no-counterfactuals --suite {small}"
    )))
    .expect(0, &[])
    .shows(&[
        "The drive's cache answers 32 of 32 reads (100 %) at the rate of its link",
        "the media do not limit their rate",
        said,
    ]);
    let large = "random --set program.block_bytes=512K --set program.area_bytes=1G --size 64M";
    // At random each miss takes a whole segment, and there are few.
    let random = format!("run random --set program.area_bytes=64M --size 4M {run}");
    let (_, notes) = mb_per_s(&random);
    assert!(!notes.contains("drive's cache"), "{notes}");
    let (rate, notes) = mb_per_s(&format!("run {large} {run}"));
    assert!(rate < 250.0 && !notes.contains("cache"), "{rate}: {notes}");
    // A range within one segment is read ahead, whatever the order.
    let near = format!("run random --set program.area_bytes=512K --size 8M {run}");
    let (rate, notes) = mb_per_s(&near);
    assert!(
        rate > 100.0 && notes.contains("reads the same 512 KiB"),
        "{rate}: {notes}"
    );
}

/// The same of job files: a range that is read more than once, and none that is read once.
#[test]
fn what_the_cache_answers_a_job_file_is_said() {
    let user = User::new();
    let notes = |options: &str| {
        let text = format!(
            "[r]\nrw=randread\nbs=4k\ndirect=1\nioengine=io_uring\nfilename=/dev/drive0\n{options}\n"
        );
        std::fs::write(user.file("r.fio"), text).expect("a job file");
        let run = "run r.fio --on bare-sata-7200 --quiet --format json";
        let run = user.run(&words(run)).expect(0, &[]).json();
        run["runs"][0]["notes"].to_string()
    };
    let said = "r reads the same 512 KiB more than once, and the drive's cache holds 128 MiB";
    for again in [
        "size=512k\nio_size=4m",
        "size=512k\nloops=4",
        "size=512k\nruntime=1\ntime_based",
    ] {
        let notes = notes(again);
        assert!(
            notes.contains(said) && notes.contains("a larger size="),
            "{again}: {notes}"
        );
    }
    for once in [
        "size=512k",
        "size=64m\nloops=2",
        "rw=randwrite\nsize=512k\nloops=4",
    ] {
        let notes = notes(once);
        assert!(!notes.contains("drive's cache"), "{once}: {notes}");
    }
}

/// A stream that goes round in an area little larger than the cache has some reads from there.
#[test]
fn a_stream_that_comes_again_is_partly_cached() {
    let user = User::new();
    let notes = |area: &str| {
        let run = "run sequential --direct --on bare-sata-7200 --runs 1 --quiet --format json";
        let line = format!("{run} --size 1G --set program.area_bytes={area}");
        let run = user.run(&words(&line)).expect(0, &[]).json();
        run["runs"][0]["notes"].to_string()
    };
    let said = notes("256M");
    for part in [
        "reads the same 256 MiB more than once",
        "some reads may come from it",
        "a larger program.area_bytes shows the medium",
    ] {
        assert!(said.contains(part), "{said}");
    }
    for once in ["512M", "1G"] {
        let said = notes(once);
        assert!(!said.contains("more than once"), "{said}");
    }
}

/// As of a real block device: a share of it, and all of it where no size is given.
#[test]
fn a_job_has_the_size_of_the_drive() {
    let user = User::new();
    let mut bytes = Vec::new();
    for size in ["size=50%\n", "size=100%\noffset=50%\n", ""] {
        let job = format!(
            "[x]\nrw=randread\nbs=4k\nnumber_ios=300\nnorandommap\nfilename=/dev/drive0\n{size}"
        );
        std::fs::write(user.file("x.fio"), job).expect("a job file");
        let plan = "run x.fio --on bare-sata-7200 --dry-run";
        user.run(&words(plan)).expect(0, &[]).shows(&["300 I/Os"]);
        let run = user.run(&words(
            "run x.fio --on bare-sata-7200 --quiet --format json",
        ));
        let run = run.expect(0, &[]).json()["runs"][0].clone();
        let response = &run["results"][0]["latency"]["read"]["response"];
        assert_eq!(response["count"], 300);
        bytes.push(response["mean_us"].as_f64().expect("a mean"));
    }
    // Of many files that are not there no size is known; how long a job lasts, its plan says.
    for (options, code, says) in [
        ("nrfiles=3\nnumber_ios=10", 2, "a missing file has no size"),
        ("filename=/dev/drive0\nruntime=10\ntime_based", 0, ""),
    ] {
        let job = format!("[x]\nrw=randread\nbs=4k\n{options}\n");
        std::fs::write(user.file("y.fio"), job).expect("a job file");
        let system = if code == 2 {
            "vax780-sc780-eagle"
        } else {
            "bare-sata-7200"
        };
        let planned = user.run(&words(&format!("run y.fio --on {system} --dry-run")));
        let planned = planned.expect(code, &[says]);
        assert_eq!(
            code == 0,
            planned.has("0 calls at most and 10 s of modelled time")
        );
    }
    // The arm goes over half of the disk, and over all of it.
    assert!(bytes[0] < bytes[2] && bytes[1] < bytes[2], "{bytes:?}");
}

/// A drive by itself has no page cache before it that a program could go through.
#[test]
fn a_ring_program_by_name_runs_on_a_drive_by_itself() {
    let user = User::new();
    let line = "random --set program.depth=32 --set program.area_bytes=7T --size 8M";
    let explain = format!("explain bare-sata-7200 --no-counterfactuals --suite {line}");
    let shown = user.run(&words(&explain)).expect(0, &[]);
    let shown = shown.shows(&[
        "Queueing dominates the response time: with",
        "the mean of 2048 requests",
        "controller queue",
        "response",
    ]);
    let direct = user
        .run(&words(&format!("{explain} --direct")))
        .expect(0, &[]);
    assert_eq!(shown.stdout, direct.stdout);
    let found = user.run(&words(&format!("{explain} --format json")));
    let found = found.expect(0, &[]).json()["programs"][0]["response"].clone();
    let ns = |of: &Value| of.as_u64().expect("ns");
    let stages = found["stages"].as_array().expect("stages").iter();
    let sum: u64 = stages.map(|line| ns(&line["ns"])).sum();
    assert_eq!(sum, ns(&found["total_ns"]));
    // What the program itself timed, each from its start until it was taken.
    let run = format!("run {line} --on bare-sata-7200 --quiet --format json");
    let run = user.run(&words(&run)).expect(0, &[]).json()["runs"][0].clone();
    let timed = run["results"][0]["latency"]["read"]["response"]["mean_us"].as_f64();
    let mean = found["mean_ns"].as_f64().expect("ns") / 1000.0;
    let apart = mean / timed.expect("us") - 1.0;
    assert!(apart.abs() < 0.05, "{mean} us and {timed:?} us");
}

/// Without `--size`, streams move several times what the drive's cache holds: what is made
/// of the stored run moves as much.
#[test]
fn a_run_whose_sizes_fit_the_drive_is_made_again() {
    let user = User::new();
    let line = "run today26 --on bare-sata-7200 --label usual --runs 1 --quiet --format json";
    let run = user.run(&words(line)).expect(0, &[]).json()["runs"][0].clone();
    let size = |run: &Value| run["results"][0]["size_bytes"].clone();
    assert_eq!(size(&run), 1u64 << 30, "{run}");
    user.run(&words("explain usual")).expect(0, &[]).shows(&[
        "Explained: today26 on bare-sata-7200",
        "1 MiB sequential read, QD8",
    ]);
    let again = user.run(&words("run --like usual --quiet --format json"));
    let again = again.expect(0, &[]).json()["runs"][0].clone();
    assert_eq!(size(&again), size(&run));
    assert_eq!(again["results"][0]["iops"], run["results"][0]["iops"]);
}

/// With O_DSYNC a disk with a write cache completes a write when it is on the medium: the
/// next of a stream comes a revolution of 8.33 ms later. A kernel without the flag says so.
#[test]
fn a_write_with_o_dsync_waits_for_the_medium() {
    let user = User::new();
    let line = |target: &str| {
        format!(
            "run sequential --set program.write_share=1 --set program.dsync=yes --set program.block_bytes=4K --size 1M --runs 1 --quiet --format json --on {target}"
        )
    };
    let run = user.run(&words(&(line("bare-sata-7200") + " --direct")));
    let run = run.expect(0, &[]).json()["runs"][0].clone();
    let p50_us = run["results"][0]["response"]["p50_us"].as_f64();
    let p50_us = p50_us.expect("a median");
    assert!((8_300.0..8_500.0).contains(&p50_us), "{p50_us} us");
    user.run(&words(&line("vax780-uda50-ra81")))
        .expect(1, &["no O_DSYNC", "program.sync_every=1"]);
}

#[test]
fn a_job_file_with_sync_waits_for_the_medium() {
    let user = User::new();
    let text = "[job]\nrw=write\nbs=4k\nsync=dsync\ndirect=1\nsize=256k\n";
    let file = user.file("sync.fio");
    std::fs::write(&file, text).expect("a job file");
    let line = format!(
        "run {} --on bare-sata-7200 --quiet --format json",
        file.display()
    );
    let run = user.run(&words(&line)).expect(0, &[]).json()["runs"][0].clone();
    let p50_us = run["results"][0]["response"]["p50_us"].as_f64();
    assert!(p50_us.expect("a median") > 8_300.0, "{run}");
    assert!(!run["notes"].to_string().contains("sync=none"), "{run}");
}

/// Each modelled disk, with two seeds, twice: the same bytes of each seed, and others of the
/// other one, so that the comparison can fail.
#[test]
fn a_seed_gives_the_same_bytes_again_on_every_disk() {
    let user = User::new();
    for disk in ["sata-7200", "sata-consumer", "sas-10k", "smr-5400"] {
        let results = |seed: u64| {
            let line = format!(
                "run today26 --on bare-{disk} --size 1M --runs 1 --seed {seed} --quiet --format json"
            );
            let run = user.run(&words(&line)).expect(0, &[]).json()["runs"][0].clone();
            assert_eq!(run["seed"], seed, "{disk}");
            run["results"].to_string()
        };
        let [one, other] = [7, 1983].map(|seed| {
            let first = results(seed);
            let again = results(seed);
            assert!(first == again, "{disk}, seed {seed}:\n{first}\n{again}");
            first
        });
        assert!(one != other, "{disk}: seeds 7 and 1983 give the same");
    }
}

/// Who names a program and no area is told how small a part of the disk it reaches; and of a
/// shingled disk, that its media cache has taken all. Neither is said where it is not so.
#[test]
fn a_disk_that_is_hardly_reached_is_said() {
    let user = User::new();
    let notes = |line: &str| {
        let run = user.run(&words(&format!("run {line} --quiet --format json")));
        run.expect(0, &[]).json()["runs"][0]["notes"].to_string()
    };
    let (reach, cache) = ("between which the arm hardly moves", "media cache");
    let short = notes("random --on bare-smr-5400 --size 1M --set program.write_share=0.5");
    assert!(short.contains(reach) && short.contains(cache), "{short}");
    let line = "random --on bare-sata-7200 --size 1M --set program.area_bytes=7TB";
    let whole = notes(line);
    assert!(!whole.contains(reach) && !whole.contains(cache), "{whole}");
    let reads = notes("random --on bare-smr-5400 --size 1M");
    assert!(!reads.contains(cache), "{reads}");
    let few = "random --on bare-smr-5400 --size 1M --set program.write_share=1 --set drive.media_cache_extents=100";
    let full = notes(few);
    assert!(!full.contains(cache), "{full}");
}
