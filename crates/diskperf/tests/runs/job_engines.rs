//! Engines, logs and appended files of fio's job files, on a directory and on models.

use crate::support::{User, entries, words};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;

/// The rows of the one run that was printed: program, reads and writes.
fn rows(run: &Value) -> Vec<(String, [u64; 2])> {
    let results = run["runs"][0]["results"].as_array().expect("results");
    let row = |result: &Value| {
        let count = |name: &str| {
            let path = format!("/latency/{name}/response/count");
            result.pointer(&path).and_then(Value::as_u64).unwrap_or(0)
        };
        let name = result["program"].as_str().expect("a name");
        (name.to_owned(), [count("read"), count("write")])
    };
    results.iter().map(row).collect()
}

/// The reads and writes of each section.
fn counts(user: &User, job: &str, on: &str) -> Vec<[u64; 2]> {
    fs::write(user.file("job.fio"), job).unwrap();
    let line = format!("run job.fio --on {on} --format json");
    let run = user.run(&words(&line)).expect(0, &[]).json();
    rows(&run).into_iter().map(|(_, counts)| counts).collect()
}

const NAMES: &str = "[global]\nfilesize=4k\nnrfiles=6\n\
                     [create]\nioengine=filecreate\nrw=write\n\
                     [stat]\nstonewall\nioengine=filestat\nrw=read\n\
                     [delete]\nstonewall\nioengine=filedelete\nrw=write\n";

#[test]
fn calls_on_names_are_ios_on_a_directory_and_on_a_model() {
    let user = User::new();
    for on in ["./target", "vax780-sc780-eagle"] {
        let found = counts(&user, NAMES, on);
        assert_eq!(found, [[0, 6], [6, 0], [0, 6]], "{on}");
    }
    assert_eq!(entries(&user.target()), [""; 0]);
    // The files of the first section are those of the others.
    let shared = NAMES.replace("nrfiles=6", "nrfiles=6\nfilename_format=x.$filenum");
    assert_eq!(counts(&user, &shared, "./target"), [[0, 6], [6, 0], [0, 6]]);
    let cut = "[x]\nioengine=ftruncate\nrw=write\nsize=64k\n";
    assert_eq!(counts(&user, cut, "vax780-sc780-eagle"), [[0, 16]]);
}

#[test]
fn what_is_appended_is_behind_what_the_sections_above_wrote() {
    let user = User::new();
    let job = "[global]\nfilename=x\nrw=write\nsize=64k\n[a]\n\
               [b]\nstonewall\nfile_append=1\nwrite_iolog=b.log\n\
               [c]\nstonewall\nfile_append=1\nbs=32k\nwrite_iolog=c.log\n";
    assert_eq!(counts(&user, job, "./target"), [[0, 16], [0, 16], [0, 2]]);
    for (log, first) in [
        ("b.log", "write 65536 4096"),
        ("c.log", "write 131072 32768"),
    ] {
        let text = fs::read_to_string(user.file(log)).unwrap();
        let found = text.lines().find(|line| line.contains(" write "));
        let found = found.expect("a write");
        assert!(found.ends_with(&format!("x {first}")), "{found}");
    }
}

#[test]
fn a_log_replaces_a_log_and_no_other_file_and_is_repeated() {
    let user = User::new();
    let write = "[a]\nrw=randwrite\nsize=64k\nfsync=8\nwrite_iolog=a.log\n";
    fs::write(user.file("a.log"), "mine").unwrap();
    fs::write(user.file("job.fio"), write).unwrap();
    let refused = user.run(&words("run job.fio --on ./target"));
    refused.expect(1, &["a.log exists and is not such a log"]);
    assert_eq!(fs::read(user.file("a.log")).unwrap(), b"mine");
    fs::remove_file(user.file("a.log")).unwrap();
    for _ in 0..2 {
        assert_eq!(counts(&user, write, "./target"), [[0, 16]]);
    }
    let read = "[again]\nread_iolog=a.log\nreplay_no_stall=1\n";
    for on in ["./target", "null", "vax780-sc780-eagle"] {
        assert_eq!(counts(&user, read, on), [[0, 16]], "{on}");
    }
    for (log, says) in [
        ("gone", "gone cannot be repeated"),
        ("job.fio", "job.fio cannot be"),
    ] {
        fs::write(user.file("job.fio"), format!("[x]\nread_iolog={log}\n")).unwrap();
        let refused = user.run(&words("run job.fio --on ./target"));
        refused.expect(2, &["job.fio:2:12", says]);
    }
}

/// Rates of four clones that read one file of a modelled drive: reads in the time of the last.
fn locked_reads(user: &User, lock: &str) -> Vec<f64> {
    let job = format!(
        "[a]\nfilename=x\nsize=1m\nbs=4k\nrw=randread\nnumjobs=4\ntime_based\nruntime=10ms\nlockfile={lock}\n"
    );
    fs::write(user.file("job.fio"), job).unwrap();
    let run = user.run(&words("run job.fio --on bare-nvme-tlc --format fio-json"));
    let run = run.expect(0, &[]).json();
    let jobs = run["jobs"].as_array().expect("jobs").iter();
    jobs.map(|job| job["read"]["total_ios"].as_f64().expect("a count"))
        .collect()
}

#[test]
fn an_exclusive_lock_leaves_one_io_in_flight_and_a_shared_one_all_reads() {
    let user = User::new();
    let reads = ["none", "readwrite", "exclusive"].map(|lock| locked_reads(&user, lock));
    let of_clones = &reads[2];
    let least = of_clones.iter().copied().fold(f64::INFINITY, f64::min);
    let most = of_clones.iter().copied().fold(0.0, f64::max);
    assert!(least > 0.9 * most, "each clone has its turn: {of_clones:?}");
    let [none, shared, alone] = reads.each_ref().map(|reads| reads.iter().sum::<f64>());
    assert!((shared / none - 1.0).abs() < 0.01, "{shared} of {none}");
    let share = none / alone;
    assert!((3.8..4.5).contains(&share), "{alone} of {none}");
}

#[test]
fn a_job_of_the_processor_ends_with_the_io_beside_it() {
    let user = User::new();
    let job = "[burn]\nioengine=cpuio\ncpuload=20\ncpuchunks=1000\nexit_on_io_done=1\n\
               [disk]\nrw=write\nsize=64k\n";
    for on in ["./target", "vax780-sc780-eagle", "bare-nvme-tlc", "null"] {
        assert_eq!(counts(&user, job, on), [[0, 0], [0, 16]], "{on}");
    }
    for (options, says) in [
        ("cpuload=9\n", "add `runtime=`"),
        ("cpuload=9\nexit_on_io_done=1\n", "add `runtime=`"),
        ("runtime=1\n", "add `cpuload=`"),
        (
            "cpuload=9\nruntime=1\n[b]\ncpuload=9\nioengine=psync\nsize=4k\n",
            "it belongs to cpuio",
        ),
    ] {
        fs::write(
            user.file("job.fio"),
            format!("[x]\nioengine=cpuio\n{options}"),
        )
        .unwrap();
        let refused = user.run(&words("run job.fio --on ./target"));
        refused.expect(2, &["job.fio:", says]);
    }
}

#[test]
fn what_fills_a_modelled_drive_or_disk_ends_where_it_is_full() {
    let user = User::new();
    let job = "[a]\nrw=write\nbs=1m\nfill_device=1\nnumber_ios=9\n";
    for on in ["vax780-sc780-eagle", "bare-nvme-tlc", "null"] {
        assert_eq!(counts(&user, job, on), [[0, 9]], "{on}");
    }
}

/// Blocks that are trimmed among the writes are zeroes when they are read back.
#[test]
fn a_share_of_verified_blocks_is_trimmed() {
    let user = User::new();
    let job = |options: &str| {
        let job = format!("[a]\nrw=randwrite\nbs=4k\nsize=1m\ntrim_percentage=50\n{options}\n");
        fs::write(user.file("job.fio"), job).unwrap();
        let run = user.run(&words("run job.fio --on ./target --format fio-json"));
        let run = run.expect(0, &[]).json();
        ["read", "write", "trim"].map(|way| run["jobs"][0][way]["total_ios"].as_u64().unwrap_or(0))
    };
    let [reads, writes, trims] = job("verify=crc32c\ntrim_backlog=32");
    assert_eq!([reads, writes], [256, 256]);
    assert!((90..=166).contains(&trims), "{trims} of 256");
    assert_eq!(job("verify=crc32c"), [256, 256, 0]);
    assert_eq!(job("trim_backlog=32"), [0, 256, 0]);
    fs::write(
        user.file("job.fio"),
        "[a]\nrw=write\nsize=1m\nverify=md5\ntrim_percentage=9\ntrim_backlog=9\n",
    )
    .unwrap();
    let refused = user.run(&words("run job.fio --on bare-nvme-tlc"));
    refused.expect(2, &["job.fio:5:17", "no modelled kernel has discards"]);
}

/// A clone that begins behind the end of a device does nothing, as with fio.
#[test]
fn clones_behind_the_end_of_a_drive_do_nothing() {
    let user = User::new();
    let job = "[a]\nrw=read\nfilename=/dev/x\nsize=64k\nnumjobs=3\noffset_increment=600g\n";
    assert_eq!(counts(&user, job, "bare-nvme-tlc"), [[32, 0]]);
    assert_eq!(counts(&user, job, "null"), [[48, 0]]);
}

/// Files are made for the sections below, and nothing else is done.
#[test]
fn a_section_that_only_creates_does_no_io() {
    let user = User::new();
    let job = "[global]\nfilename=x\nrw=read\nsize=64k\n[make]\ncreate_only=1\n[read]\nstonewall\n";
    for on in ["./target", "vax780-sc780-eagle"] {
        assert_eq!(counts(&user, job, on), [[0, 0], [16, 0]], "{on}");
    }
}

#[test]
fn a_job_that_may_make_no_files_runs_on_a_device() {
    let user = User::new();
    let job = "[a]\nrw=read\nsize=64k\nallow_file_create=0\n";
    assert_eq!(counts(&user, job, "bare-nvme-tlc"), [[16, 0]]);
    let refused = user.run(&words("run job.fio --on ./target"));
    refused.expect(2, &["job.fio:4:19", "name a device"]);
}

/// A log is of one section, and of one that repeats none.
#[test]
fn a_log_that_is_repeated_or_written_by_two_is_refused_or_left() {
    let user = User::new();
    let log = "fio version 3 iolog\n0 f add\n0 f open\n0 f read 0 4096\n9 f close\n";
    fs::write(user.file("own.log"), log).unwrap();
    symlink("own.log", user.file("link.log")).unwrap();
    let both = "[a]\nread_iolog=own.log\nwrite_iolog=";
    for (on, written) in [
        ("./target", "own.log"),
        ("vax780-sc780-eagle", "link.log"),
        ("null", "other.log"),
    ] {
        let job = format!("{both}{written}\n");
        assert_eq!(counts(&user, &job, on), [[1, 0]], "{on}");
        assert_eq!(fs::read_to_string(user.file("own.log")).unwrap(), log);
    }
    assert!(!user.file("other.log").exists());
    let job = "rw=read\nsize=64k\n";
    for (text, says) in [
        (
            format!("[global]\nwrite_iolog=x\n{job}[a]\n[b]\nstonewall\n"),
            "[a] writes it too",
        ),
        (
            format!("[global]\n{job}[a]\nnumjobs=2\nwrite_iolog=x\n[b]\nwrite_iolog=./x.1\n"),
            "[a] writes it too",
        ),
        (
            format!("[a]\nwrite_iolog=link.log\n{job}[b]\nstonewall\nread_iolog=own.log\n"),
            "[b] repeats it",
        ),
    ] {
        fs::write(user.file("job.fio"), &text).unwrap();
        for on in ["./target", "vax780-sc780-eagle"] {
            user.run(&words(&format!("run job.fio --on {on}")))
                .expect(2, &["would be lost", says, "name a log for each section"]);
        }
        assert_eq!(fs::read_to_string(user.file("own.log")).unwrap(), log);
    }
}

/// No time of a log comes to more than a clock holds.
#[test]
fn a_log_with_times_that_no_run_reaches_is_refused() {
    let user = User::new();
    for (at_us, options, is_run) in [
        ("18446744073709551", "", false),
        ("18446744073709551615", "", false),
        ("2000000000000000", "", false),
        ("100000000000000", "replay_time_scale=1\n", false),
        ("18446744073709551", "replay_no_stall=1\n", true),
        ("1000", "replay_time_scale=1\n", true),
    ] {
        let log = format!("fio version 3 iolog\n0 f add\n0 f open\n{at_us} f read 0 4096\n");
        fs::write(user.file("own.log"), log).unwrap();
        let job = format!("[a]\nread_iolog=own.log\n{options}");
        fs::write(user.file("job.fio"), job).unwrap();
        for on in ["null", "vax780-sc780-eagle"] {
            let run = user.run(&words(&format!("run job.fio --on {on}")));
            match is_run {
                true => run.expect(0, &["1 I/Os of the log"]),
                false => run.expect(2, &["own.log cannot be repeated"]),
            };
        }
    }
}

/// Engines whose I/Os go to a server and commands beside a job: a model leaves out what lies
/// between and says so, and storage refuses the job with the remedy.
#[test]
fn a_model_takes_the_load_of_engines_that_storage_refuses() {
    let user = User::new();
    for (options, note, remedy) in [
        (
            "ioengine=rbd\npool=p\nclientname=c\niodepth=4\n",
            "the cluster and its network are not modelled",
            "--on bare-nvme-tlc",
        ),
        (
            "ioengine=gfapi\nvolume=v\nbrick=b\n",
            "the server and its network are not modelled",
            "--on bare-nvme-tlc",
        ),
    ] {
        let job = format!("[x]\nrw=randread\nsize=64k\nfilename=f\n{options}");
        assert_eq!(counts(&user, &job, "bare-nvme-tlc"), [[16, 0]], "{options}");
        let modelled = user.run(&words("run job.fio --on bare-nvme-tlc --dry-run"));
        let shown = &modelled.expect(0, &[]).stdout;
        assert!(shown.contains(note), "{options}: {shown}");
        let stored = user.run(&words("run job.fio --on ./target"));
        stored.expect(2, &["job.fio:5:", remedy]);
    }
    let job = "[x]\nioengine=windowsaio\nrw=randread\nsize=64k\niodepth=4\n";
    assert_eq!(counts(&user, job, "./target"), [[16, 0]]);
}

/// Commands beside a job run nowhere, and a note names each and says what to do.
#[test]
fn the_commands_of_a_job_file_are_named_and_not_run() {
    let user = User::new();
    for (on, why) in [
        ("./target", "run it yourself where the result depends on it"),
        (
            "bare-nvme-tlc",
            "a modelled drive is no part of this system",
        ),
    ] {
        for key in ["exec_prerun", "exec_postrun"] {
            let job = format!("[x]\nrw=randread\nsize=64k\n{key}=touch gone > all\n");
            assert_eq!(counts(&user, &job, on), [[16, 0]], "{key} on {on}");
            let line = format!("run job.fio --on {on} --dry-run");
            let note = format!("[x]: {key}: the command `touch gone > all` is not run: ");
            let outcome = user.run(&words(&line));
            let plan = &outcome.expect(0, &[]).stdout;
            assert!(plan.contains(&note) && plan.contains(why), "{plan}");
            assert_eq!(plan.matches("is not run").count(), 1, "{plan}");
        }
    }
    let made = ["gone", "all", "x.prerun.txt", "x.postrun.txt"];
    assert!(made.iter().all(|name| !user.file(name).exists()));
}

/// Every file and device of a job file is an area of a drive by itself: clones and sections
/// that write at the same time find what each of them wrote.
#[test]
fn files_and_devices_of_a_job_file_are_areas_of_a_drive() {
    let user = User::new();
    let verified = "bs=4k\nverify=crc32c\nioengine=libaio\niodepth=4\n";
    for (job, expected, note) in [
        (
            "[a]\nrw=randwrite\nsize=256k\nnumjobs=3\n",
            &[[192, 192]][..],
            "3 files and devices, and each is an area of the target (a.0.0: 256 KiB from byte 0; a.1.0: 256 KiB from byte 1048576; a.2.0: 256 KiB from byte 2097152)",
        ),
        (
            "[a]\nrw=write\nsize=256k\nnrfiles=4\n",
            &[[64, 64]],
            "4 files and devices",
        ),
        (
            "[a]\nrw=randwrite\nfilename=/dev/a:/dev/b\nnumber_ios=64\n[b]\nrw=randwrite\nfilename=/dev/c\nnumber_ios=32\n",
            &[[64, 64], [32, 32]],
            "3 files and devices, and each is an area of the target (/dev/a: 310.5 GiB from byte 0; /dev/b: 310.5 GiB from byte 333356990464; /dev/c: 310.5 GiB from byte 666713980928)",
        ),
        // Backwards, in zones, with gaps: the arithmetic is that of the file.
        (
            "[a]\nrw=write:-8k\nsize=128k\nio_size=64k\nnumjobs=2\n",
            &[[32, 32]],
            "2 files and devices",
        ),
        (
            "[a]\nrw=write\nzonemode=strided\nzonesize=16k\nzoneskip=16k\nsize=128k\nnumjobs=2\n",
            // Half of the file is left out, and the rest written twice.
            &[[32, 64]],
            "2 files and devices",
        ),
    ] {
        let job = format!("[global]\n{verified}{job}");
        assert_eq!(counts(&user, &job, "bare-nvme-tlc"), expected, "{job}");
        let line = "run job.fio --on bare-nvme-tlc --dry-run";
        let outcome = user.run(&words(line));
        let plan = &outcome.expect(0, &[]).stdout;
        assert!(plan.contains(note), "{plan}");
    }
}
