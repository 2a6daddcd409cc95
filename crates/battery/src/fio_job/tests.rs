//! The I/Os of a clone beside those that fio logs for the same section: as many, as
//! large, in the same places. Where fio is not installed, they say loudly that they are
//! skipped.

#[path = "../../../fio/tests/installed/mod.rs"]
pub(super) mod installed;

use super::stream::{FileIo, IoStream, NextIo};
use crate::company::WorkerGroupMember;
use diskperf_fio::{Direction, JobEnvironment, JobFile, plan};
use diskperf_system::IoOperation;
use installed::is_fio_installed;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const SEED: u64 = 1983;

/// What of an I/O a log has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Logged {
    direction: Direction,
    offset_bytes: u64,
    bytes: u64,
}

/// How alike two lists of I/Os are to be.
#[derive(Clone, Copy, Debug)]
enum Alike {
    /// The same I/Os in the same order.
    InOrder,
    /// The same I/Os.
    AsASet,
    /// As many I/Os of the same size, some of which are reads.
    InNumber,
    /// Of the same distribution of places.
    InPlaces,
    /// As far from the end of the last I/O, in distribution.
    InSteps,
    /// The same share of I/Os to the most popular place, to the next, and so on.
    InPopularity,
    /// Of the same distribution of sizes.
    InSizes,
}

use Alike::{AsASet, InNumber, InOrder, InPlaces, InPopularity, InSizes, InSteps};

/// A section each, of 64 KiB unless it says otherwise.
const CASES: &[(Alike, &str)] = &[
    (InOrder, "rw=read"),
    (InOrder, "rw=write"),
    (InOrder, "rw=trim"),
    (InOrder, "rw=read size=30k"),
    (InOrder, "rw=read bs=6k"),
    (InOrder, "rw=write bs=,8k"),
    (InOrder, "rw=write:8k bs=8k"),
    (InOrder, "rw=read:4k"),
    (InOrder, "rw=read:8k"),
    (InOrder, "rw=read:-8k"),
    (InOrder, "rw=read:12k io_size=128k"),
    (InOrder, "rw=read:8k rw_sequencer=identical"),
    (InOrder, "rw=read offset=16k filesize=64k"),
    (InOrder, "rw=read offset=25% filesize=64k"),
    (InOrder, "rw=read size=50% filesize=64k"),
    (InOrder, "rw=read io_size=94k"),
    (InOrder, "rw=read io_size=96k loops=2"),
    (InOrder, "rw=read loops=3"),
    (InOrder, "rw=read number_ios=3 loops=2"),
    (InOrder, "rw=read number_ios=20 io_size=128k"),
    (InOrder, "rw=write bs=12k blockalign=4k"),
    (InOrder, "rw=read nrfiles=3"),
    (InOrder, "rw=read nrfiles=3 openfiles=1"),
    (InOrder, "rw=read nrfiles=6 openfiles=2 size=96k"),
    (
        InOrder,
        "rw=read nrfiles=3 file_service_type=roundrobin:3 size=96k",
    ),
    (InOrder, "rw=write nrfiles=3 file_service_type=sequential"),
    (InOrder, "rw=read nrfiles=2 filesize=8k io_size=64k"),
    (InOrder, "rw=read nrfiles=2 filesize=30k offset=10k"),
    (InOrder, "rw=read filename=x:y:z filesize=8k"),
    (InOrder, "rw=trimwrite"),
    (InOrder, "rw=read zonemode=strided zonesize=8k zoneskip=8k"),
    (
        InOrder,
        "rw=read zonemode=strided zonesize=8k zonerange=16k zoneskip=4k",
    ),
    (
        InOrder,
        "rw=read zonemode=strided zonesize=12k zonerange=8k zoneskip=8k",
    ),
    (InOrder, "rw=read numjobs=2 offset_increment=16k size=16k"),
    (AsASet, "rw=randread"),
    (AsASet, "rw=randwrite size=62k"),
    (AsASet, "rw=randread loops=2"),
    (AsASet, "rw=randread random_generator=lfsr size=1m"),
    (AsASet, "rw=randread nrfiles=3 file_service_type=random"),
    (AsASet, "rw=randtrimwrite"),
    (
        AsASet,
        "rw=randread zonemode=strided zonesize=8k zoneskip=8k",
    ),
    (InNumber, "rw=rw size=4m"),
    (InNumber, "rw=randrw size=4m rwmixread=70"),
    (
        InNumber,
        "rw=randrw size=1m rwmixwrite=10 io_size=4m norandommap",
    ),
    (InNumber, "rw=randread io_size=66k"),
    (InNumber, "rw=randread:4 io_size=70k"),
    (InNumber, "rw=randread norandommap io_size=66k"),
    (InNumber, "rw=randread random_distribution=zipf:1.2 loops=2"),
    (InPlaces, "rw=randread norandommap size=64m"),
    (InSteps, "rw=randread:4 size=64m"),
    (InSteps, "rw=randread:4 rw_sequencer=identical size=64m"),
    (
        InSteps,
        "rw=randread percentage_random=30 size=64m norandommap",
    ),
    (InPlaces, "rw=randread size=64m number_ios=8192"),
    (InPlaces, "rw=randread bs=8k blockalign=4k size=64m"),
    (
        InPlaces,
        "rw=randread random_distribution=zoned:60/10:30/20:10/70 size=64m",
    ),
    (
        InPlaces,
        "rw=randread random_distribution=zoned_abs:60/10m:30/20m:10/34m size=64m",
    ),
    (
        InPopularity,
        "rw=randread random_distribution=zipf:1.2 size=16m io_size=64m",
    ),
    (
        InPopularity,
        "rw=randread random_distribution=zipf:0.8 size=16m io_size=64m",
    ),
    (
        InPopularity,
        "rw=randread random_distribution=pareto:0.2 size=16m io_size=64m",
    ),
    (
        InPopularity,
        "rw=randread random_distribution=normal:10 size=16m io_size=64m",
    ),
    (
        InPopularity,
        "rw=randread random_distribution=normal:50 size=16m io_size=64m",
    ),
    (InSizes, "rw=write bsrange=4k-16k size=64m"),
    (InSizes, "rw=randread bsrange=4k-64k size=64m norandommap"),
    (InSizes, "rw=randread bsrange=3k-8k size=16m norandommap"),
    (InSizes, "rw=write bsrange=1k-8k bs_unaligned=1 size=16m"),
    (
        InSizes,
        "rw=randread bssplit=4k/50:8k/30:64k/20 size=64m norandommap",
    ),
    // Blocks of which a part was taken shrink.
    (InSizes, "rw=randread bssplit=4k/50:8k/50 size=64m"),
    (InSizes, "rw=randrw bs=4k,16k size=64m norandommap"),
    (
        InSizes,
        "rw=randrw bs=8k,16k bs_is_seq_rand=1 size=16m norandommap",
    ),
    // A step of their own takes the map away, the size of the blocks does not.
    (InNumber, "rw=randwrite ba=512 bs=8k size=1m"),
    (InNumber, "rw=randread ba=512 size=1m"),
    (InNumber, "rw=randread ba=512 size=1m loops=2"),
    (InNumber, "rw=randread ba=16k size=1m"),
    (InNumber, "rw=randread ba=4k,8k,4k size=1m"),
    (AsASet, "rw=randread ba=4k size=1m"),
    (InNumber, "rw=randread ba=4k size=1m io_size=2m loops=2"),
    (
        InNumber,
        "rw=randread ba=4k bs=8k size=1m io_size=2m loops=2",
    ),
    (
        InNumber,
        "rw=randread ba=4k bs=8k size=1m io_size=2m loops=3",
    ),
    // The largest block of any direction decides whether another pass follows.
    (InOrder, "rw=read bs=4k,4k,1m size=1m io_size=2500k"),
    (InOrder, "rw=read bs=4k,64k size=1m io_size=1540k"),
    // What decides is `do_verify`, whether or not data are verified.
    (InOrder, "rw=read do_verify=0 io_size=256k"),
    (InOrder, "rw=write do_verify=0 io_size=256k number_ios=40"),
    (InOrder, "rw=read do_verify=0 io_size=256k nrfiles=2"),
    (InOrder, "rw=read do_verify=0 io_size=2m filesize=256k"),
    (
        InOrder,
        "rw=read do_verify=0 io_size=256k zonemode=strided zonesize=8k zoneskip=8k",
    ),
    (InNumber, "rw=randread do_verify=0 io_size=256k norandommap"),
    (InOrder, "rw=write do_verify=0 io_size=256k loops=2"),
    (
        InNumber,
        "rw=randread norandommap do_verify=0 io_size=256k loops=3",
    ),
    // A pass ends where the files end, or behind the larger of `size` and `io_size`.
    (InNumber, "rw=randread filesize=256k io_size=96k loops=2"),
    (InNumber, "rw=randwrite filesize=256k io_size=96k loops=2"),
    (InNumber, "rw=read filesize=256k io_size=96k loops=2"),
    (InOrder, "rw=write filesize=256k io_size=300k"),
    (InOrder, "rw=trimwrite io_size=128k"),
    (InOrder, "rw=trimwrite io_size=200k"),
];

fn job_file() -> String {
    let global = "[global]\nioengine=null\nsize=64k\nlog_offset=1\nper_job_logs=1\n";
    let sections = CASES.iter().enumerate().map(|(number, (_, case))| {
        let options = case.replace(' ', "\n");
        format!("[job{number}]\nwrite_bw_log=log{number}\n{options}\n")
    });
    global.to_owned() + &sections.collect::<String>()
}

/// What fio does for each case and clone; nothing where there is no fio.
fn logs(folder: &Path) -> Option<BTreeMap<(usize, u32), Vec<Logged>>> {
    if !is_fio_installed() {
        return None;
    }
    std::fs::write(folder.join("job.fio"), job_file()).expect("a job file");
    let output = Command::new("fio")
        .arg("job.fio")
        .current_dir(folder)
        .env("LC_ALL", "C")
        .output()
        .expect("fio");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let mut logs = BTreeMap::new();
    let mut worker = 0;
    for (number, job) in jobs().jobs.iter().enumerate() {
        for clone in 0..job.order.clone_count {
            worker += 1;
            let path = folder.join(format!("log{number}_bw.{worker}.log"));
            let log = std::fs::read_to_string(&path);
            let log = log.unwrap_or_else(|error| panic!("{path:?}: {error}"));
            logs.insert((number, clone), log.lines().map(logged).collect());
        }
    }
    Some(logs)
}

fn jobs() -> JobFile {
    let parsed = JobFile::parse("job.fio", &job_file(), &JobEnvironment::default());
    parsed.unwrap_or_else(|errors| panic!("{errors}"))
}

fn logged(line: &str) -> Logged {
    let fields = line.split(',').map(|field| field.trim().parse());
    let fields: Vec<u64> = fields.map(|field| field.unwrap_or(0)).collect();
    Logged {
        direction: Direction::ALL[fields[2] as usize],
        offset_bytes: fields[4],
        bytes: fields[3],
    }
}

/// What is done here for a clone of a case.
fn streamed(job: &diskperf_fio::JobDefinition, clone: u32) -> Vec<Logged> {
    super::support::check_support(job).unwrap_or_else(|errors| panic!("{errors}"));
    let files = plan::plan_files(job, clone, &BTreeMap::new());
    let files = files.unwrap_or_else(|problem| panic!("{problem}"));
    let mut stream = IoStream::new(
        job,
        &files,
        (&WorkerGroupMember::default(), SEED + u64::from(clone)),
    );
    let mut ios = Vec::new();
    loop {
        let direction = stream.draw_direction();
        match stream.next_io(direction) {
            NextIo::Io(io) => ios.push(logged_of(io)),
            NextIo::PassEnd if stream.begin_pass() => {}
            NextIo::PassEnd => return ios,
        }
    }
}

fn logged_of(io: FileIo) -> Logged {
    Logged {
        direction: io.direction,
        offset_bytes: io.offset_bytes,
        bytes: io.bytes.into(),
    }
}

/// Sections with syncs, of 64 KiB.
const SYNCED: &[&str] = &[
    "rw=write fsync=3",
    "rw=write fsync=3 nrfiles=4",
    "rw=write fdatasync=2 nrfiles=3 file_service_type=roundrobin:2",
    "rw=write fsync=5 nrfiles=3 file_service_type=sequential",
    "rw=write fsync=4 fdatasync=6 loops=2",
    "rw=write fsync=1 nrfiles=2 io_size=96k",
    "rw=trimwrite fsync=3",
    "rw=write sync_file_range=write:4",
    "rw=write sync_file_range=wait_before,write,wait_after:3 nrfiles=2",
    "rw=write sync_file_range=write:4 fsync=8",
    "rw=write sync_file_range=write:2 fdatasync=4 fsync=8 nrfiles=3",
];

/// What is done in order: `w job.0.0` for a write, `s job.0.0` for an fsync.
fn synced(options: &str) -> Vec<String> {
    let text = format!(
        "[job]\nioengine=null\nsize=64k\n{}\n",
        options.replace(' ', "\n")
    );
    let parsed = JobFile::parse("job.fio", &text, &JobEnvironment::default());
    let parsed = parsed.unwrap_or_else(|errors| panic!("{errors}"));
    let job = &parsed.jobs[0];
    let files = plan::plan_files(job, 0, &BTreeMap::new());
    let files = files.unwrap_or_else(|problem| panic!("{problem}"));
    let mut stream = IoStream::new(job, &files, (&WorkerGroupMember::default(), SEED));
    let mut done = Vec::new();
    loop {
        if let Some(due) = stream.due_sync() {
            let letter = match due.operation {
                IoOperation::Fsync => 's',
                IoOperation::SyncRange(_) => 'r',
                _ => 'd',
            };
            done.push(format!("{letter} {}", files[due.file_index].path));
            continue;
        }
        let direction = stream.draw_direction();
        match stream.next_io(direction) {
            NextIo::Io(io) => {
                let letter = match io.direction {
                    Direction::Read => 'r',
                    Direction::Write => 'w',
                    Direction::Trim => 't',
                };
                done.push(format!("{letter} {}", files[io.file_index].path));
            }
            NextIo::PassEnd if stream.begin_pass() => {}
            NextIo::PassEnd => return done,
        }
    }
}

#[test]
fn syncs_come_where_fio_has_them_and_are_of_the_same_files() {
    if !is_fio_installed() {
        return;
    }
    for options in SYNCED {
        let folder = tempfile::tempdir().expect("a folder");
        let arguments = options.split(' ').map(|option| format!("--{option}"));
        let output = Command::new("fio")
            .args(["--name=job", "--ioengine=null", "--size=64k", "--debug=io"])
            .args(arguments)
            .current_dir(folder.path())
            .env("LC_ALL", "C")
            .output()
            .expect("fio");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{options}: {said}");
        let queued = said.lines().filter(|line| line.contains(" queue: io_u "));
        let theirs: Vec<String> = queued.map(queued_io).collect();
        assert_eq!(synced(options), theirs, "{options}");
    }
}

/// `... queue: io_u 0x7f12: off=0x0,len=0x1000,ddir=1,file=job.0.0` as [`synced`] has it.
fn queued_io(line: &str) -> String {
    let value = |key: &str| {
        let (_, after) = line.split_once(key).unwrap_or_else(|| panic!("{line}"));
        after.split(',').next().unwrap_or("").trim().to_owned()
    };
    let letters = ['r', 'w', 't', 's', 'd', 'r'];
    let number: usize = value("ddir=").parse().expect("a number");
    format!("{} {}", letters[number], value("file="))
}

#[test]
fn each_section_does_the_ios_that_fio_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(logs) = logs(folder.path()) else {
        return;
    };
    let parsed = jobs();
    let mut wrong = Vec::new();
    for ((number, clone), theirs) in logs {
        let (alike, case) = CASES[number];
        let ours = streamed(&parsed.jobs[number], clone);
        if let Err(how) = compare(alike, ours, theirs) {
            wrong.push(format!("seed {SEED}, {case}, clone {clone}: {how}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn compare(alike: Alike, mut ours: Vec<Logged>, mut theirs: Vec<Logged>) -> Result<(), String> {
    match alike {
        InOrder => same(&ours, &theirs),
        AsASet => {
            ours.sort_unstable();
            theirs.sort_unstable();
            same(&ours, &theirs)
        }
        InNumber => {
            number(&ours, &theirs)?;
            reads(&ours, &theirs)
        }
        InPlaces => {
            number(&ours, &theirs)?;
            let places = |ios: &[Logged]| ios.iter().map(|io| io.offset_bytes).collect();
            kolmogorov_smirnov(places(&ours), places(&theirs))
        }
        InSteps => {
            number(&ours, &theirs)?;
            kolmogorov_smirnov(steps(&ours), steps(&theirs))
        }
        InPopularity => {
            number(&ours, &theirs)?;
            kolmogorov_smirnov(ranks(&ours), ranks(&theirs))
        }
        InSizes => {
            reads(&ours, &theirs)?;
            let sizes = |ios: &[Logged]| ios.iter().map(|io| io.bytes).collect();
            kolmogorov_smirnov(sizes(&ours), sizes(&theirs))
        }
    }
}

/// Blocks whose size differs by direction, of which a map is kept: chance ends these jobs,
/// so that many seeds of each are compared. `randseed` is one of them.
const ENDED_BY_CHANCE: &[&str] = &[
    "rw=randwrite bs=4k,8k size=1m",
    "rw=randwrite bs=4k,16k size=2m",
    "rw=randread bs=8k,4k size=1m",
    "rw=randread bs=16k,4k size=1m",
    "rw=randread bs=8k,8k,4k size=1m",
    "rw=randrw bs=4k,16k rwmixwrite=30 size=4m",
    "rw=randrw bs=16k,4k size=2m",
    "rw=randwrite bs=4k,8k size=1m nrfiles=2",
    "rw=randwrite bsrange=4k-4k,8k-32k size=4m",
];

/// Seeds of each.
const SEEDS: u64 = 48;

/// Runs fio on a case with many seeds, and returns the I/Os of each.
fn logs_of_seeds(case: &str) -> Vec<Vec<Logged>> {
    let folder = tempfile::tempdir().expect("a folder");
    let options = case.replace(' ', "\n");
    let sections = (0..SEEDS)
        .map(|seed| format!("[job{seed}]\nrandseed={seed}\nwrite_bw_log=log{seed}\n{options}\n"));
    let global = "[global]\nioengine=null\nlog_offset=1\nper_job_logs=0\n";
    let text = global.to_owned() + &sections.collect::<String>();
    std::fs::write(folder.path().join("job.fio"), text).expect("a job file");
    let output = Command::new("timeout")
        .args(["-k", "1", "60", "fio", "job.fio"])
        .current_dir(folder.path())
        .env("LC_ALL", "C")
        .output()
        .expect("fio");
    assert!(output.status.success(), "{case}: {output:?}");
    let log = |seed| {
        let path = folder.path().join(format!("log{seed}_bw.log"));
        let log = std::fs::read_to_string(path).expect("a log");
        log.lines().map(logged).collect()
    };
    (0..SEEDS).map(log).collect()
}

#[test]
fn a_map_of_blocks_that_differ_by_direction_ends_jobs_as_early_as_in_fio() {
    if !is_fio_installed() {
        return;
    }
    for case in ENDED_BY_CHANCE {
        let theirs = logs_of_seeds(case);
        let text = format!("[job]\nioengine=null\n{}\n", case.replace(' ', "\n"));
        let parsed = JobFile::parse("job.fio", &text, &JobEnvironment::default());
        let job = parsed.unwrap_or_else(|errors| panic!("{errors}")).jobs[0].clone();
        let ours: Vec<_> = (0..SEEDS).map(|seed| streamed(&job, seed as u32)).collect();
        let counts = |all: &[Vec<Logged>]| all.iter().map(|ios| ios.len() as u64).collect();
        let sizes = |all: &[Vec<Logged>]| {
            let writes = all.iter().flatten();
            let writes = writes.filter(|io| io.direction == Direction::Write);
            writes.map(|io| io.bytes).collect::<Vec<u64>>()
        };
        for (what, ours, theirs) in [
            ("I/Os", counts(&ours), counts(&theirs)),
            ("sizes of writes", sizes(&ours), sizes(&theirs)),
        ] {
            if ours.is_empty() && theirs.is_empty() {
                continue;
            }
            kolmogorov_smirnov(ours, theirs)
                .unwrap_or_else(|error| panic!("seed {SEED}, {case}: {what}: {error}"));
        }
    }
}

fn same(ours: &[Logged], theirs: &[Logged]) -> Result<(), String> {
    let brief = |ios: &[Logged]| {
        let first = ios.iter().take(40);
        let first = first.map(|io| format!("{:?} {}/{}", io.direction, io.offset_bytes, io.bytes));
        format!("{}: {}", ios.len(), first.collect::<Vec<_>>().join(", "))
    };
    match ours == theirs {
        true => Ok(()),
        false => Err(format!("\n  {}\n  {}", brief(ours), brief(theirs))),
    }
}

fn number(ours: &[Logged], theirs: &[Logged]) -> Result<(), String> {
    let bytes = |ios: &[Logged]| ios.iter().map(|io| io.bytes).sum::<u64>();
    let counted = |ios: &[Logged]| (ios.len(), bytes(ios));
    match counted(ours) == counted(theirs) {
        true => Ok(()),
        false => Err(format!("{:?} and {:?}", counted(ours), counted(theirs))),
    }
}

/// Shares of reads, to five standard deviations of their difference.
fn reads(ours: &[Logged], theirs: &[Logged]) -> Result<(), String> {
    let share = |ios: &[Logged]| {
        let reads = ios.iter().filter(|io| io.direction == Direction::Read);
        reads.count() as f64 / ios.len() as f64
    };
    let (one, other) = (share(ours), share(theirs));
    let variance = |share: f64, ios: &[Logged]| share * (1.0 - share) / ios.len() as f64;
    let room = 5.0 * (variance(one, ours) + variance(other, theirs)).sqrt();
    match (one - other).abs() <= room {
        true => Ok(()),
        false => Err(format!("{one} and {other} are reads")),
    }
}

/// How far each I/O begins from the end of the last one.
fn steps(ios: &[Logged]) -> Vec<u64> {
    let step = |pair: &[Logged]| {
        let end_bytes = pair[0].offset_bytes + pair[0].bytes;
        end_bytes.abs_diff(pair[1].offset_bytes)
    };
    ios.windows(2).map(step).collect()
}

/// The rank of each I/O's place: 0 of the place that most I/Os go to.
fn ranks(ios: &[Logged]) -> Vec<u64> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for io in ios {
        *counts.entry(io.offset_bytes).or_default() += 1;
    }
    let mut counts: Vec<u64> = counts.into_values().collect();
    counts.sort_unstable_by(|left, right| right.cmp(left));
    let ranked = counts.into_iter().enumerate();
    let ranked = ranked.flat_map(|(rank, count)| vec![rank as u64; count as usize]);
    ranked.collect()
}

/// Whether two samples may be of one distribution, with an error in a thousand at most.
fn kolmogorov_smirnov(mut ours: Vec<u64>, mut theirs: Vec<u64>) -> Result<(), String> {
    ours.sort_unstable();
    theirs.sort_unstable();
    let share = |sample: &[u64], upto: u64| {
        sample.partition_point(|value| *value <= upto) as f64 / sample.len() as f64
    };
    let apart = |value: &u64| (share(&ours, *value) - share(&theirs, *value)).abs();
    let most = ours.iter().chain(&theirs).map(apart).fold(0.0, f64::max);
    let (one, other) = (ours.len() as f64, theirs.len() as f64);
    let critical = 1.95 * ((one + other) / (one * other)).sqrt();
    match most <= critical {
        true => Ok(()),
        false => Err(format!(
            "{most:.4} apart, more than {critical:.4}, of {one} and {other}"
        )),
    }
}

/// All I/Os of a job on a file that is there, of so many bytes.
fn on_existing(options: &str, bytes: u64) -> [u64; 3] {
    let text = format!("[job]\nfilename=f\n{}\n", options.replace(' ', "\n"));
    let parsed = JobFile::parse("job.fio", &text, &JobEnvironment::default());
    let parsed = parsed.unwrap_or_else(|errors| panic!("{errors}"));
    let job = &parsed.jobs[0];
    let files = plan::plan_files(
        job,
        0,
        &[("f".to_owned(), plan::FileSize::Fixed(bytes))].into(),
    );
    let files = files.unwrap_or_else(|problem| panic!("{options}: {problem}"));
    let planned = plan::predict_ios(job, &files).map(|ios| ios.total());
    let mut stream = IoStream::new(job, &files, (&WorkerGroupMember::default(), SEED));
    let mut ios = [0; 3];
    loop {
        let direction = stream.draw_direction();
        match stream.next_io(direction) {
            NextIo::Io(io) => {
                let end = io.offset_bytes + u64::from(io.bytes);
                assert!(end <= bytes, "{options}: {io:?}");
                ios[io.direction as usize] += 1;
            }
            NextIo::PassEnd if stream.begin_pass() => {}
            NextIo::PassEnd => break,
        }
    }
    let total = ios.iter().sum::<u64>();
    assert!(
        planned.is_none_or(|planned| planned == total),
        "{options}: {planned:?}, {ios:?}"
    );
    ios
}

/// Of a device that is shorter than `size`: what fio 3.33 did on a loop device of 8 MiB.
#[test]
fn nothing_is_done_beyond_the_end_of_a_device() {
    for (options, ios) in [
        ("rw=read", [128, 0, 0]),
        ("rw=read offset=4m", [64, 0, 0]),
        ("rw=read io_size=32m", [512, 0, 0]),
        ("rw=write", [0, 128, 0]),
        ("rw=write loops=2", [0, 256, 0]),
        ("rw=read bs=3m", [2, 0, 0]),
        ("rw=read filesize=16m", [128, 0, 0]),
        ("rw=read filesize=12m-16m", [128, 0, 0]),
        ("rw=randread", [128, 0, 0]),
        ("rw=randread norandommap", [256, 0, 0]),
        ("rw=randread io_size=32m", [512, 0, 0]),
        ("rw=randread random_distribution=zipf:1.2", [256, 0, 0]),
        ("rw=randread:4", [256, 0, 0]),
        ("rw=read:64k", [256, 0, 0]),
        ("rw=read:-64k", [256, 0, 0]),
        (
            "rw=read zonemode=strided zonesize=64k zoneskip=64k",
            [256, 0, 0],
        ),
        ("rw=trimwrite", [0, 128, 128]),
        ("rw=trim", [0, 0, 128]),
        ("rw=randtrim", [0, 0, 128]),
        ("rw=read size=200%", [128, 0, 0]),
        ("rw=read size=50%", [64, 0, 0]),
    ] {
        let options = match options.contains(" size=") {
            true => format!("bs=64k {options}"),
            false => format!("size=16m bs=64k {options}"),
        };
        let options = match options.matches("bs=").count() {
            2 => options.replace("bs=64k ", ""),
            _ => options,
        };
        assert_eq!(on_existing(&options, 8 << 20), ios, "{options}");
    }
}

/// Of a file that is longer than `size`, beside fio itself.
#[test]
fn zones_go_round_at_the_end_of_the_file() {
    if !is_fio_installed() {
        return;
    }
    const BYTES: u64 = 16 << 20;
    const ZONES: &str = "zonemode=strided zonesize=256k zoneskip=768k";
    let folder = tempfile::tempdir().expect("a folder");
    for options in [
        format!("rw=read size=4m {ZONES}"),
        format!("rw=read size=4m offset=2m {ZONES}"),
        format!("rw=randread size=4m {ZONES}"),
        format!("rw=write size=4m io_size=8m {ZONES}"),
        format!("rw=read size=4m loops=2 {ZONES}"),
        format!("rw=read size=15m offset=3m {ZONES}"),
        format!("rw=read:4k size=4m {ZONES}"),
        format!("rw=read bs=64k size=5m {ZONES}"),
        "rw=randread norandommap size=16m random_distribution=zoned_abs:30/4m:70/4m".to_owned(),
        "rw=read offset=50% size=4m".to_owned(),
        "rw=read offset=0%".to_owned(),
        "rw=read size=0%".to_owned(),
    ] {
        let file = std::fs::File::create(folder.path().join("f")).expect("a file");
        file.set_len(BYTES).expect("a length");
        let output = Command::new("fio")
            .args(["--name=job", "--filename=f", "--output-format=json"])
            .args(options.split(' ').map(|option| format!("--{option}")))
            .current_dir(folder.path())
            .output()
            .expect("fio");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let report = &text[text
            .find('{')
            .unwrap_or_else(|| panic!("{options}: {text}"))..];
        let total = |way: &str| {
            let of_way = report.split(&format!("\"{way}\" : {{")).nth(1).expect(way);
            let count = of_way.split("\"total_ios\" : ").nth(1).expect("a count");
            let digits: String = count.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u64>().expect("a number")
        };
        let theirs = ["read", "write", "trim"].map(total);
        assert_eq!(on_existing(&options, BYTES), theirs, "{options}");
    }
}

/// What is refused, and the same with what the message advises.
const ADVISED: &[(&str, &str)] = &[
    (
        "ioengine=libaio direct=1 iodepth=5000",
        "ioengine=libaio direct=1 iodepth=4096",
    ),
    (
        "ioengine=libaio direct=1 bs=1g iodepth=8 size=1g",
        "ioengine=libaio direct=1 bs=1g iodepth=4 size=1g",
    ),
    ("bs=2147483648 size=4g", "bs=1g size=4g"),
    ("rw=read create_on_open=1", "rw=read"),
    ("allow_file_create=0", ""),
    ("rw=read unlink_each_loop=1", "rw=read"),
    (
        "rw=randread random_distribution=zipf:1.2:0.5",
        "rw=randread random_distribution=zipf:1.2",
    ),
    ("thinktime=9 rate_ignore_thinktime=1", "thinktime=9"),
    ("rw=trimwrite rate=1m", "rw=trimwrite"),
    ("rw=trimwrite rate_iops=9", "rw=trimwrite"),
    ("flow=8", "rate=1m"),
    ("ss=iops:1% ss_dur=1", "ss=iops:1% ss_dur=2"),
    ("ioengine=mmap", "ioengine=psync"),
    ("ioengine=mmap", "ioengine=io_uring"),
    ("rw=write verify=crc32c", "rw=write"),
    ("rw=write sync_file_range=write:8", "rw=write fdatasync=8"),
    (
        "thinktime=9 thinktime_iotime=1",
        "thinktime=9 thinktime_blocks=8",
    ),
    ("latency_target=9", "iodepth=9"),
    ("ss=iops:1% ss_dur=5 group_reporting", "ss=iops:1% ss_dur=5"),
    ("continue_on_error=io", ""),
    ("exitall", "runtime=1"),
];

#[test]
fn what_a_refusal_advises_is_taken() {
    let checked = |options: &str| {
        let size = if options.contains(" size=") {
            ""
        } else {
            "size=1m\n"
        };
        let text = format!("[job]\n{size}{}\n", options.replace(' ', "\n"));
        let parsed = JobFile::parse("job.fio", &text, &JobEnvironment::default());
        let file = parsed.unwrap_or_else(|errors| panic!("{options}: {errors}"));
        super::support::check_support(&file.jobs[0])
    };
    let mut refusals = String::new();
    for (refused, advised) in ADVISED {
        if let Err(errors) = checked(refused) {
            refusals += &errors.render(false);
            let taken = checked(advised);
            assert!(taken.is_ok(), "{refused}, as advised {advised}: {taken:?}");
        }
    }
    // Every refusal has its case.
    let source = include_str!("support.rs");
    let helps = source.split(".refuse(").skip(1).filter_map(|call| {
        let arguments = call.split(')').next()?;
        arguments.split('"').nth(1)
    });
    for key in helps {
        let is_there = ADVISED
            .iter()
            .any(|(refused, _)| refused.contains(key.trim_end_matches("_duration")))
            || key == "steadystate"
            || key == "steadystate_duration";
        assert!(
            is_there,
            "no case of the refusal of {key}; there are {refusals}"
        );
    }
}
