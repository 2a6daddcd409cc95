//! Files, counts and offsets, against what fio's null engine logs and what fio writes.

use diskperf_fio::job::{ReadWriteMode, ZoneMode};
use diskperf_fio::offsets::{SequentialOffsets, StridedOffsets};
use diskperf_fio::plan::{self, IoCounts, PlannedFile};
use diskperf_fio::{Direction, JobDefinition};
use std::collections::BTreeMap;

use crate::{Fio, ours};

/// What fio's log of an I/O holds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Logged {
    direction: Direction,
    bytes: u64,
    offset: u64,
}

/// Each line is a job of its own; all but the size has fio's default.
const JOBS: &[&str] = &[
    "rw=read",
    "rw=write",
    "rw=trim",
    "rw=read:4k",
    "rw=read:8k",
    "rw=read:-8k",
    "rw=write:-4k",
    "rw=read:12k",
    "rw=read:64k",
    "rw=read:-4k",
    "rw=read:-12k",
    "rw=read:2k",
    "rw=read:60k",
    "rw=read:-64k",
    "rw=read:8k offset=8k",
    "rw=read:-8k offset=8k",
    "rw=read:-8k offset=8k filesize=128k",
    "rw=read:8k offset=8k filesize=64k size=32k",
    "rw=read:8k io_size=128k",
    "rw=read:8k loops=2",
    "rw=write:8k bs=8k",
    "rw=read:8k rw_sequencer=identical",
    "offset=16k",
    "offset=16k filesize=64k",
    "offset=16k filesize=64k size=48k",
    "offset=3k",
    "offset=25%",
    "offset=25% filesize=64k",
    "size=50% filesize=64k",
    "size=32k filesize=64k",
    "size=128k filesize=64k",
    "size=30k",
    "io_size=96k",
    "io_size=30k",
    "io_size=66k",
    "io_size=94k",
    "io_size=50%",
    "io_size=96k loops=2",
    "loops=2",
    "number_ios=3 loops=2",
    "number_ios=20 loops=2",
    "number_ios=20 io_size=128k",
    "number_ios=3 io_size=128k",
    "bs=6k",
    "bs=12k blockalign=4k",
    "nrfiles=3",
    "nrfiles=3 openfiles=1",
    "nrfiles=3 file_service_type=sequential",
    "filename=x:y",
    "filename=x:y:z filesize=8k",
    "nrfiles=2 filesize=8k size=12k",
    "nrfiles=2 filesize=8k io_size=64k",
    "nrfiles=2 filesize=30k offset=10k",
    "rw=rw",
    "rw=rw io_size=128k",
    "rw=randrw rwmixread=70",
    "rw=randread",
    "rw=randread size=1m",
    "rw=randread size=62k",
    "rw=randread io_size=66k",
    "rw=randread loops=2",
    "rw=randread norandommap size=62k",
    "rw=randread norandommap io_size=66k",
    "rw=randread:4",
    "rw=randread:4 io_size=70k",
    "rw=randread random_distribution=zipf:1.2 io_size=70k",
    "rw=randread random_distribution=zipf:1.2 loops=2",
    "rw=randread random_distribution=zipf:1.2 io_size=66k",
    "rw=randread:4 io_size=66k",
    "rw=randwrite norandommap io_size=66k",
    "rw=trimwrite",
    "rw=randtrimwrite",
    "rw=write verify=crc32c size=16k",
    "zonemode=strided zonesize=8k zoneskip=8k",
    "zonemode=strided zonesize=8k zonerange=16k zoneskip=4k",
    "zonemode=strided zonesize=12k zonerange=8k zoneskip=8k",
    "numjobs=2 offset_increment=16k",
    "numjobs=2 offset_increment=16k size=16k",
    "numjobs=2 offset_increment=25% filesize=64k",
];

/// All jobs in one file, each clone with a log of its own.
fn logs(fio: &Fio) -> (String, BTreeMap<(usize, u32), Vec<Logged>>) {
    let mut text =
        String::from("[global]\nioengine=null\nsize=64k\nlog_offset=1\nper_job_logs=1\n");
    for (number, job) in JOBS.iter().enumerate() {
        let options = job.replace(' ', "\n");
        text += &format!("[job{number}]\nwrite_bw_log=log{number}\n{options}\n");
    }
    let (output, went_well) = fio.run(&text, &[]);
    assert!(went_well, "{output}");
    let parsed = ours(&text).unwrap_or_else(|errors| panic!("{errors}"));
    let mut logs = BTreeMap::new();
    let mut worker = 0;
    for (number, job) in parsed.jobs.iter().enumerate() {
        for clone in 0..job.order.clone_count {
            worker += 1;
            let path = fio.path().join(format!("log{number}_bw.{worker}.log"));
            let log =
                std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
            logs.insert((number, clone), log.lines().map(logged).collect());
        }
    }
    (text, logs)
}

fn logged(line: &str) -> Logged {
    let fields: Vec<u64> = line
        .split(',')
        .map(|field| field.trim().parse().unwrap_or(0))
        .collect();
    Logged {
        direction: Direction::ALL[fields[2] as usize],
        bytes: fields[3],
        offset: fields[4],
    }
}

#[test]
fn every_job_does_fios_ios() {
    let Some(fio) = Fio::installed() else { return };
    let (text, logs) = logs(&fio);
    let parsed = ours(&text).expect("jobs");
    for ((number, clone), log) in &logs {
        let (job, what) = (&parsed.jobs[*number], JOBS[*number]);
        let files = plan::plan_files(job, *clone, &BTreeMap::new())
            .unwrap_or_else(|e| panic!("{what}: {e}"));
        counts(job, &files, log, what);
        regions(job, &files, log, what);
        offsets(job, &files, log, what);
    }
}

/// As many of each direction.
fn counts(job: &JobDefinition, files: &[PlannedFile], log: &[Logged], what: &str) {
    let theirs = |direction| log.iter().filter(|io| io.direction == direction).count() as u64;
    let ours = plan::predict_ios(job, files).expect("one size, no time");
    assert_eq!(ours.total(), log.len() as u64, "{what}: {files:?} {log:?}");
    if let IoCounts::Exact(each) = ours {
        for direction in Direction::ALL {
            assert_eq!(
                *each.get(direction),
                theirs(direction),
                "{what}: {direction:?}"
            );
        }
    }
}

/// All within the regions, and of the job's size.
fn regions(job: &JobDefinition, files: &[PlannedFile], log: &[Logged], what: &str) {
    for io in log {
        assert_eq!(
            io.bytes,
            *job.blocks.fixed_bytes.get(io.direction),
            "{what}"
        );
        let within = files.iter().any(|file| {
            let region = file.region;
            let end = region
                .file_bytes
                .min(region.offset_bytes + region.length_bytes);
            // A last block may begin in the region and end behind it, within the file.
            io.offset >= region.offset_bytes
                && io.offset < end
                && io.offset + io.bytes <= region.file_bytes
        });
        assert!(within, "{what}: {io:?} of {files:?}");
    }
    if job.has_random_map() && job.pattern.access == ReadWriteMode::RandomRead && log.len() == 256 {
        let mut offsets: Vec<u64> = log.iter().map(|io| io.offset).collect();
        offsets.sort_unstable();
        assert!(
            offsets
                .iter()
                .copied()
                .eq((0..256).map(|block| block * 4096)),
            "{what}"
        );
    }
}

/// The sequence of sequential offsets, pass after pass, in each direction.
fn offsets(job: &JobDefinition, files: &[PlannedFile], log: &[Logged], what: &str) {
    if job.pattern.access.is_random() || files.len() > 1 || job.verify != Default::default() {
        return;
    }
    // Where both go round, the one that is first at the end takes the other to the front.
    if job.pattern.access == ReadWriteMode::Mixed && job.target.io_size.is_some() {
        return;
    }
    for &direction in job.pattern.access.directions() {
        let theirs = log
            .iter()
            .filter(|io| io.direction == direction)
            .map(|io| io.offset);
        let theirs: Vec<u64> = theirs.collect();
        let (region, block) = (files[0].region, *job.blocks.fixed_bytes.get(direction));
        let skip = job.pattern.skip_bytes;
        let ours: Vec<u64> = match job.zones.mode {
            ZoneMode::Strided => {
                let strided = StridedOffsets::new(region, block, job.zones).expect("zones");
                strided.take(theirs.len()).collect()
            }
            ZoneMode::WritePointers => unreachable!("these are compared where they run"),
            ZoneMode::None => {
                // A pass goes on where the last one stopped, and from the front at the end.
                let pass = || SequentialOffsets::new(region, block, skip);
                let passes = std::iter::repeat_with(pass).flatten();
                passes.take(theirs.len()).collect()
            }
        };
        assert_eq!(ours, theirs, "{what}: {direction:?} of {region:?}");
    }
}

/// Names and sizes of the files that fio makes.
#[test]
fn files_are_fios() {
    let Some(fio) = Fio::installed() else { return };
    for folder in ["d1", "d2"] {
        std::fs::create_dir(fio.path().join(folder)).expect("a folder");
    }
    let text = "[global]\nsize=64k\nrw=write\n[a]\nnumjobs=2\nnrfiles=3\n[b]\nfilename=x:y\\:z\n\
        [c]\ndirectory=d1:d2\nnumjobs=3\n[d]\ndirectory=d1\nfilename=q\n[e]\nname=other\n\
        [f]\nfilename_format=F.$jobname.$jobnum.$filenum\n[g]\nfilename=one\nnrfiles=3\n\
        [h i]\noffset=8k\n[j]\nfilesize=12k\nnrfiles=2\n";
    let (output, went_well) = fio.run(text, &[]);
    assert!(went_well, "{output}");
    let mut ours_made = BTreeMap::new();
    for job in ours(text).unwrap_or_else(|errors| panic!("{errors}")).jobs {
        for clone in 0..job.order.clone_count {
            for file in plan::plan_files(&job, clone, &BTreeMap::new()).expect("files") {
                ours_made.insert(file.path, file.region.file_bytes);
            }
        }
    }
    let mut theirs = BTreeMap::new();
    for folder in ["", "d1/", "d2/"] {
        for entry in std::fs::read_dir(fio.path().join(folder)).expect("a folder") {
            let entry = entry.expect("a file");
            let name = format!("{folder}{}", entry.file_name().to_string_lossy());
            let metadata = entry.metadata().expect("a size");
            if metadata.is_file() && name != "job.fio" {
                theirs.insert(name, metadata.len());
            }
        }
    }
    assert_eq!(ours_made, theirs);
    assert_eq!(theirs["a.1.2"], 21845);
}

/// `groupid` of each job.
#[test]
fn groups_are_fios() {
    let Some(fio) = Fio::installed() else { return };
    let text = "[global]\nioengine=null\nsize=64k\n[a]\nstonewall\nnumjobs=2\n[b]\nstonewall\n\
        [c]\n[d]\nnew_group\n";
    let (output, _) = fio.run(text, &["--output-format=json"]);
    let start = output.find("{\n").expect("JSON");
    let json: serde_json::Value = serde_json::from_str(&output[start..]).expect("JSON");
    let theirs: Vec<u64> = json["jobs"]
        .as_array()
        .expect("jobs")
        .iter()
        .map(|job| job["groupid"].as_u64().expect("a group"))
        .collect();
    let jobs = ours(text).expect("jobs").jobs;
    let ours = jobs
        .iter()
        .flat_map(|job| vec![u64::from(job.group); job.order.clone_count as usize]);
    assert_eq!(ours.collect::<Vec<u64>>(), theirs);
    assert_eq!(theirs, [0, 0, 1, 1, 2]);
}
