//! What is said of fio where a job file becomes programs, beside what fio does.

use crate::Fio;
use crate::sentences::{literals, matches, total};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What fio did with a job.
struct Outcome {
    output: String,
    went_well: bool,
    /// Actions of its iolog, with the files: `write x.0.0`.
    actions: Vec<String>,
}

impl Outcome {
    fn fails_with(&self, words: &str) -> bool {
        !self.went_well && self.output.contains(words)
    }

    fn report(&self) -> Value {
        let from = self.output.find("\n{").map_or(0, |at| at + 1);
        let until = self.output.rfind('}').map_or(0, |at| at + 1);
        serde_json::from_str(self.output.get(from..until).unwrap_or("")).unwrap_or_default()
    }

    /// A figure of the first job, by its path.
    fn figure(&self, path: &str) -> f64 {
        let report = self.report();
        let figure = report.pointer(&format!("/jobs/0/{path}"));
        figure.and_then(Value::as_f64).unwrap_or(f64::NAN)
    }

    /// I/Os of all directions, where it ended well.
    fn ios(&self) -> Option<u64> {
        total(&self.output).filter(|_| self.went_well)
    }

    /// Whether I/Os in flight one at a time took no longer together than the job: they do
    /// not count from when they were due.
    fn counts_from_issue(&self) -> bool {
        let latency_ns = self.figure("write/lat_ns/mean") * self.figure("write/total_ios");
        let lasted_ns = self.figure("write/runtime") * 1e6;
        self.went_well && latency_ns > 0.0 && latency_ns <= lasted_ns + 1e6
    }
}

/// The sentence, the options of a job of 64 KiB, and what fio does with it.
type Case = (&'static str, &'static str, fn(&Outcome) -> bool);

const CASES: &[Case] = &[
    (
        "the file stays {room_bytes} bytes long, where fio would make it longer",
        "ioengine=psync filename=short rw=write size=128k",
        |fio| fio.ios() == Some(32),
    ),
    (
        "a trim frees blocks of its file; fio trims devices alone, and ends at the first trim of a file",
        "ioengine=psync rw=trim",
        |fio| {
            fio.fails_with("Inappropriate ioctl for device")
                && fio.output.contains("\"total_ios\" : 1,")
        },
    ),
    (
        "fio 3.33 ends with a failed assertion at the first trim",
        "ioengine=psync rw=write verify=crc32c trim_percentage=100 trim_backlog=2",
        |fio| fio.output.contains("fio_ro_check: Assertion"),
    ),
    (
        "no block is trimmed: as in fio, trim_percentage is of writes that are verified, with a trim_backlog",
        "ioengine=null rw=write trim_percentage=100 trim_backlog=2",
        |fio| fio.ios() == Some(16) && fio.figure("trim/total_ios") == 0.0,
    ),
    (
        "each zone is written in order: write pointers begin at the start of each zone, as those of fio on a file or a device without zones; fio 3.33 wants the file to be there before",
        "ioengine=psync rw=write zonemode=zbd zonesize=16k",
        |fio| !fio.went_well && fio.output.contains("smaller than zone size"),
    ),
    (
        "a trim discards its zone, where fio 3.33 moves the write pointer alone on a file or a device without zones",
        // Data that is there stays there.
        "ioengine=psync filename=short rw=trim bs=16k zonemode=zbd zonesize=16k [y] stonewall filename=short size=64k rw=read bs=4k verify=pattern verify_pattern=0x61",
        |fio| fio.ios() == Some(4 + 16),
    ),
    (
        "no sync is issued: fio issues none between trims and their writes",
        "ioengine=null rw=trimwrite fsync=1 write_iolog=log",
        |fio| fio.ios() == Some(32) && fio.actions.iter().all(|action| !action.contains("sync")),
    ),
    (
        "each write follows its trim at once; fio trims a block of each file first",
        "ioengine=null rw=trimwrite nrfiles=2 write_iolog=log",
        |fio| fio.actions[..3] == ["trim x.0.0", "trim x.0.1", "write x.0.0"],
    ),
    (
        "a sync is issued once when it is due; fio 3.33 with {name} issues it again for each I/O that ends before it",
        "ioengine=posixaio rw=write iodepth=8 fsync=4",
        |fio| fio.went_well && fio.figure("sync/total_ios") > 4.0,
    ),
    (
        "I/Os of a rate come by the clock, as many as iodepth at once; latency counts from when they were to be issued, where fio counts from when it issued them",
        "ioengine=psync sync=1 rw=write rate_iops=100000",
        Outcome::counts_from_issue,
    ),
    (
        "at the log's times; latency counts from these, where fio counts from when it issued an I/O",
        "ioengine=psync sync=1 read_iolog=writes",
        Outcome::counts_from_issue,
    ),
    (
        "write_iolog does not count: read_iolog overrides it, as in fio 3.33",
        "ioengine=psync read_iolog=writes write_iolog=log",
        |fio| fio.went_well && fio.actions.is_empty(),
    ),
    (
        "--verify: the jobs of a file say what they do; write verify=crc32c into the file, or another of fio's kinds",
        "ioengine=psync rw=write verify=crc32c",
        |fio| fio.figure("read/total_ios") == 16.0,
    ),
    (
        "a window of one sample is steady at once: the job ends at its first one, as fio's does",
        "ioengine=null rw=randread norandommap time_based runtime=20 ss=iops:1% ss_dur=1",
        |fio| fio.went_well && fio.figure("read/runtime") < 10_000.0,
    ),
    (
        "lockfile changes nothing: an engine that queues holds the lock while it submits alone, as fio's does",
        "ioengine=libaio direct=1 rw=write iodepth=8 lockfile=exclusive",
        // With the lock until completion, the second I/O in flight would wait for ever.
        |fio| fio.ios() == Some(16),
    ),
    (
        "this engine has no call that trims a file, and fio's fails",
        "ioengine=mmap rw=trim",
        |fio| fio.fails_with("func=trim"),
    ),
    (
        "this engine has no call that trims a file, and fio's fails",
        "ioengine=splice rw=trim",
        |fio| fio.fails_with("Input/output error"),
    ),
    (
        "the engine has writes alone: fio's fails with EINVAL",
        "ioengine=ftruncate rw=read",
        |fio| fio.fails_with("err=22"),
    ),
    (
        "there is no data to sync, and fio's does nothing",
        "ioengine=filecreate rw=write bs=64k fsync=1",
        |fio| fio.ios() == Some(1),
    ),
    (
        "the engine has no syncs: fio's fails with EINVAL",
        "ioengine=falloc rw=write fsync=1",
        |fio| fio.fails_with("err=22"),
    ),
    (
        "a file that was deleted cannot be deleted again: fio's fails",
        "ioengine=filedelete rw=write bs=64k loops=2",
        |fio| fio.fails_with("func=delete"),
    ),
    (
        "fio cannot read a log in which a name has a blank",
        "ioengine=null read_iolog=blank",
        |fio| fio.fails_with("bad iolog file action: b"),
    ),
    (
        "fio counts {most} I/Os for one call on a name",
        "ioengine=filecreate rw=write",
        |fio| fio.ios() == Some(16),
    ),
    (
        "cpuio does no I/O: it uses the processor in a loop for cpuchunks, where fio sorts an array",
        "ioengine=cpuio cpuload=100 cpuchunks=1000 runtime=1 cpumode=qsort",
        // Of loops of a millisecond there would be hundreds.
        |fio| fio.went_well && fio.ios() < Some(100),
    ),
    (
        "left out: {} trims of the log, as fio 3.33 leaves them out",
        "ioengine=null read_iolog=trims",
        |fio| fio.ios() == Some(2) && fio.figure("trim/total_ios") == 0.0,
    ),
    (
        "replay_skip changes nothing: fio too obeys it for traces of blktrace, and not for an iolog",
        "ioengine=null read_iolog=trims replay_skip=write",
        |fio| fio.ios() == Some(2) && fio.figure("write/total_ios") == 1.0,
    ),
    (
        "fio would make it",
        "ioengine=psync rw=write filename=new/file",
        |fio| fio.ios() == Some(16),
    ),
    (
        "fio drops the job",
        "ioengine=psync rw=write directory=nowhere",
        |fio| fio.fails_with("is not a directory"),
    ),
];

/// Sentences with a test of their own, and words that say nothing of what fio does.
const ELSEWHERE: &[&str] = &[
    "and what is drawn too: fio 3.33 gives up at the first I/O beyond it",
    "the device ends at byte",
    "ends at byte {end_bytes} of its area",
    "fio version ",
    "no iolog of fio",
    "an iolog of fio",
    "iolog that fio or diskperf wrote",
    "fio job file",
];

fn carry_out(fio: &Fio, options: &str) -> Outcome {
    let text = format!("[x]\nsize=64k\n{}\n", options.replace(' ', "\n"));
    let (output, went_well) = fio.run(&text, &["--output-format=json"]);
    let log = std::fs::read_to_string(fio.path().join("log")).unwrap_or_default();
    let actions = log.lines().skip(1).filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (name, action) = (words.next()?, words.next()?);
        words.next().map(|_| format!("{action} {name}"))
    });
    Outcome {
        output,
        went_well,
        actions: actions.collect(),
    }
}

/// Files that the cases use.
fn lay_out(fio: &Fio) {
    let writes: String = (0..16)
        .map(|at| format!("w write {} 4096\n", at * 4096))
        .collect();
    for (name, text) in [
        ("short", "a".repeat(64 << 10)),
        ("blank", "fio version 2 iolog\na b add\na b open\na b read 0 4096\n".to_owned()),
        ("writes", format!("fio version 2 iolog\nw add\nw open\n{writes}w close\n")),
        (
            "trims",
            "fio version 2 iolog\nx add\nx open\nx read 0 4096\nx write 4096 4096\nx trim 0 4096\nx close\n".to_owned(),
        ),
    ] {
        std::fs::write(fio.path().join(name), text).expect("a file");
    }
}

#[test]
fn what_programs_say_of_fio_is_so() {
    for (sentence, options, holds) in CASES {
        let Some(fio) = Fio::installed() else { return };
        lay_out(&fio);
        let outcome = carry_out(&fio, options);
        assert!(holds(&outcome), "{sentence}: {options}: {}", outcome.output);
    }
}

/// The block device of a file, where this user may make one.
struct LoopDevice(String);

impl LoopDevice {
    fn attach(file: &Path) -> Option<Self> {
        let output = Command::new("losetup")
            .args(["-f", "--show"])
            .arg(file)
            .output()
            .ok()?;
        let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(Self(path))
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).status();
    }
}

/// Jobs that reach beyond the end of a device of 1 MiB, and the I/Os that fio does.
#[test]
fn what_is_said_of_the_end_of_a_device_is_so() {
    let Some(fio) = Fio::installed() else { return };
    let file = fio.path().join("device");
    std::fs::write(&file, vec![0; 1 << 20]).expect("a file");
    let Some(device) = LoopDevice::attach(&file) else {
        eprintln!("SKIPPED: no loop device for what is said of the end of a device");
        return;
    };
    for (options, ios) in [
        // Nothing beyond the end.
        ("rw=read offset=768k size=512k", Some(64)),
        // Random I/O ends with the first one beyond it.
        ("rw=randread offset=768k size=512k", None),
        // A clone that begins beyond it does nothing, but not without a size.
        ("rw=read size=64k numjobs=3 offset_increment=512k", Some(32)),
    ] {
        let options = format!("ioengine=psync filename={} {options}", device.0);
        let outcome = carry_out(&fio, &options);
        match ios {
            Some(_) => assert_eq!(outcome.ios(), ios, "{options}"),
            None => assert!(outcome.ios() < Some(64), "{options}"),
        }
    }
    let options = format!(
        "ioengine=psync filename={} rw=read numjobs=3 offset_increment=768k",
        device.0
    );
    let text = format!("[x]\n{}\n", options.replace(' ', "\n"));
    let (output, went_well) = fio.run(&text, &[]);
    assert!(!went_well && output.contains("valid offset"), "{output}");
}

/// Shares of sizes that are not 100 percent together.
#[test]
fn shares_of_a_split_are_those_that_fio_issues() {
    let Some(fio) = Fio::installed() else { return };
    for split in [
        "4k/50:8k/30:16k/20:64k/10",
        "4k/20:8k/30",
        "4k/30:8k/20",
        "8k/60:4k/60",
        "4k/10:8k/10:16k/10",
        "4k/0:8k/50",
    ] {
        let options = format!(
            "ioengine=null\nrw=randread\nnorandommap\nsize=48m\nbssplit={split}\nwrite_iolog=log"
        );
        let text = format!("[x]\n{options}\n");
        let job = crate::ours(&text).expect(split).jobs.remove(0);
        let (output, went_well) = fio.run(&text, &[]);
        assert!(went_well, "{output}");
        let log = std::fs::read_to_string(fio.path().join("log")).expect("a log");
        std::fs::remove_file(fio.path().join("log")).expect("a log");
        let mut counts: BTreeMap<u64, f64> = BTreeMap::new();
        let reads = log.lines().filter(|line| line.contains(" read "));
        for line in reads {
            let bytes = line.rsplit(' ').next().and_then(|bytes| bytes.parse().ok());
            *counts.entry(bytes.expect("a length")).or_default() += 1.0;
        }
        let all: f64 = counts.values().sum();
        let parts = job.blocks.weighted_sizes.read.expect("a split");
        for part in parts.iter() {
            let share = 100.0 * counts.get(&part.bytes).copied().unwrap_or(0.0) / all;
            assert!(
                (share - f64::from(part.percent)).abs() < 4.0,
                "{split}: {} bytes: {share} of {}",
                part.bytes,
                part.percent
            );
        }
    }
}

/// Sources in which a job file becomes programs.
fn sources() -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    [
        "battery/src/fio_job.rs",
        "battery/src/fio_job",
        "laboratory/src/job_file.rs",
        "models/src/job_file.rs",
        "models/src/plan/job_file.rs",
        "models/src/plan/job_file",
        "models/src/plan/workload.rs",
    ]
    .map(|path| crates.join(path))
    .to_vec()
}

#[test]
fn every_sentence_of_programs_about_fio_has_its_case() {
    let mut sources = sources();
    let mut missing = Vec::new();
    while let Some(path) = sources.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).expect("a folder");
            sources.extend(entries.map(|entry| entry.expect("a file").path()));
            continue;
        }
        let source = std::fs::read_to_string(&path).expect("a source");
        let is_tested = path.ends_with("tests.rs");
        for literal in literals(&source).into_iter().filter(|_| !is_tested) {
            let is_of_fio = literal.contains("fio ") || literal.contains("fio's");
            let is_elsewhere = ELSEWHERE.iter().any(|words| literal.contains(words));
            let is_case = CASES
                .iter()
                .any(|(sentence, ..)| matches(&literal, sentence) || literal.contains(sentence));
            if is_of_fio && !is_elsewhere && !is_case {
                missing.push(literal);
            }
        }
    }
    assert!(missing.is_empty(), "no case of {missing:#?}");
}
