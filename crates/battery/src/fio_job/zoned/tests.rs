//! I/Os within zones beside those of fio on a file of 128 KiB with zones of 16 KiB.

use super::super::stream::{IoStream, NextIo};
use super::super::tests::installed::is_fio_installed;
use crate::company::{EarlierSteps, WorkerGroups};
use diskperf_fio::{Direction, JobEnvironment, JobFile, plan};
use std::collections::BTreeMap;
use std::process::Command;

const SEED: u64 = 1983;
const FILE_BYTES: u64 = 128 << 10;
const ZONE_BYTES: u64 = 16 << 10;

/// Likeness of two lists of I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alike {
    /// I/Os are the same, in the same order.
    Order,
    /// As many of each direction.
    Counts,
    /// As many in all.
    Total,
}

use Alike::{Counts, Order, Total};

/// Sections, parted by `|`, that come one after the other.
const CASES: &[(Alike, &str)] = &[
    (Order, "rw=write"),
    (Order, "rw=read"),
    (Order, "rw=read read_beyond_wp=1"),
    (Order, "rw=read read_beyond_wp=1 size=60k offset=4k"),
    (Order, "rw=write size=60k"),
    (Order, "rw=write offset=4k size=64k"),
    (Order, "rw=write size=50%"),
    (Order, "rw=write io_size=256k size=64k"),
    (Order, "rw=write loops=2"),
    (Order, "rw=write zonecapacity=12k size=64k"),
    (Order, "rw=write zonecapacity=12k size=64k io_size=192k"),
    (Order, "rw=write:4k size=64k"),
    (Order, "rw=write bs=6k size=64k"),
    (Order, "rw=write zoneskip=16k"),
    (Order, "rw=write zoneskip=16k io_size=64k"),
    (Order, "rw=read read_beyond_wp=1 zoneskip=16k"),
    (Order, "rw=write zonerange=32k size=64k"),
    (Order, "rw=write zonesize=20k size=100k"),
    (Order, "rw=write max_open_zones=1"),
    (Order, "rw=write number_ios=5"),
    (Order, "rw=trim bs=16k"),
    (Order, "rw=trimwrite bs=16k size=64k"),
    (Order, "rw=trimwrite bs=16k,4k,16k size=64k"),
    (Order, "rw=write size=64k|rw=read"),
    (Order, "rw=write size=64k|rw=write"),
    (Order, "rw=write size=64k|rw=trim bs=16k size=32k|rw=read"),
    (Order, "rw=write size=64k|rw=read zoneskip=16k"),
    (
        Counts,
        "rw=write bs=3k zonesize=15k size=64k|rw=read bs=4k zonesize=15k",
    ),
    (Counts, "rw=write size=64k|rw=randread"),
    (Counts, "rw=write size=64k|rw=randtrim bs=16k"),
    (Counts, "rw=write size=64k|rw=randtrimwrite bs=16k,4k,16k"),
    (Counts, "rw=write size=64k|rw=randread offset=8k size=64k"),
    (Counts, "rw=randread read_beyond_wp=1 offset=8k size=64k"),
    (Order, "rw=write size=4z io_size=6z"),
    (Order, "rw=write size=2z offset=1z"),
    (Order, "rw=write size=4z size=32k"),
    (Order, "rw=write zoneskip=1z"),
    (
        Order,
        "rw=write zonemode=strided size=4z zonerange=32k zoneskip=2z",
    ),
    (Order, "rw=write zonemode=none zonesize=0 size=4z"),
    (Counts, "rw=randwrite"),
    (Counts, "rw=randwrite size=64k io_size=256k"),
    (Counts, "rw=randwrite zonecapacity=12k size=64k"),
    (Counts, "rw=randwrite max_open_zones=2"),
    (
        Counts,
        "rw=randwrite max_open_zones=1 norandommap io_size=512k",
    ),
    (Counts, "rw=randwrite max_open_zones=3 job_max_open_zones=2"),
    (Counts, "rw=randwrite bs=12k size=64k max_open_zones=1"),
    (Counts, "rw=randwrite bs=512 size=64k max_open_zones=2"),
    (
        Counts,
        "rw=randwrite zone_reset_threshold=0.5 zone_reset_frequency=0.5 io_size=256k",
    ),
    (Counts, "rw=randwrite zone_reset_frequency=1 io_size=256k"),
    (Counts, "rw=randread read_beyond_wp=1"),
    (Counts, "rw=randtrim bs=16k"),
    (Counts, "rw=randtrimwrite bs=4k,4k,16k"),
    (Counts, "rw=write nrfiles=1 verify=crc32c do_verify=0"),
    (Counts, "rw=randwrite verify=crc32c do_verify=0"),
    (Total, "rw=rw size=64k rwmixread=10 number_ios=2"),
    (Total, "rw=randrw"),
    (Total, "rw=randrw norandommap io_size=1m rwmixread=70"),
    (Total, "rw=randrw read_beyond_wp=1"),
    (Total, "rw=rw read_beyond_wp=1"),
];

/// Direction, offset and length, as a log of fio has them.
type Logged = (Direction, u64, u64);

fn job_file(case: &str) -> String {
    let mut text =
        String::from("[global]\nfilename=f\nioengine=psync\nbs=4k\nzonemode=zbd\nzonesize=16k\n");
    for (number, section) in case.split('|').enumerate() {
        let options = section.replace(' ', "\n");
        text += &format!("[s{number}]\nstonewall\nwrite_iolog=log{number}\n{options}\n");
    }
    text
}

fn theirs(case: &str) -> Vec<Logged> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = std::fs::File::create(folder.path().join("f")).expect("a file");
    file.set_len(FILE_BYTES).expect("its length");
    std::fs::write(folder.path().join("job.fio"), job_file(case)).expect("a job file");
    let output = Command::new("fio")
        .arg("job.fio")
        .current_dir(folder.path())
        .output()
        .expect("fio");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{case}: {said}");
    let logs =
        (0..case.split('|').count()).map(|number| folder.path().join(format!("log{number}")));
    let lines: Vec<String> = logs
        .flat_map(|log| {
            let log = std::fs::read_to_string(&log).unwrap_or_default();
            log.lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    let logged = lines.iter().filter_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let direction = match *words.get(2)? {
            "read" => Direction::Read,
            "write" => Direction::Write,
            "trim" => Direction::Trim,
            _ => return None,
        };
        Some((direction, words[3].parse().ok()?, words[4].parse().ok()?))
    });
    logged.collect()
}

fn ours(case: &str) -> Vec<Logged> {
    let parsed = JobFile::parse("job.fio", &job_file(case), &JobEnvironment::default());
    let parsed = parsed.unwrap_or_else(|errors| panic!("{case}: {errors}"));
    let existing = BTreeMap::from([("f".to_owned(), plan::FileSize::Fixed(FILE_BYTES))]);
    let mut earlier = EarlierSteps::default();
    let mut ios = Vec::new();
    for job in &parsed.jobs {
        let files = plan::plan_files(job, 0, &existing).unwrap_or_else(|e| panic!("{case}: {e}"));
        let companies = WorkerGroups::after_steps(earlier.clone());
        let mut stream = IoStream::new(job, &files, (&companies.add_worker(0), SEED));
        loop {
            let direction = stream.draw_direction();
            match stream.next_io(direction) {
                NextIo::Io(io) => ios.push((io.direction, io.offset_bytes, io.bytes.into())),
                NextIo::PassEnd if stream.begin_pass() => {}
                NextIo::PassEnd => break,
            }
        }
        earlier.zone_tables = companies.zone_tables();
    }
    ios
}

fn counts(ios: &[Logged]) -> [usize; 3] {
    Direction::ALL.map(|of| {
        ios.iter()
            .filter(|(direction, ..)| *direction == of)
            .count()
    })
}

#[test]
fn zones_are_written_and_read_as_fio_does() {
    if !is_fio_installed() {
        return;
    }
    let mut wrong = Vec::new();
    for (alike, case) in CASES {
        let (theirs, ours) = (theirs(case), ours(case));
        let is_alike = match alike {
            Order => theirs == ours,
            Counts => counts(&theirs) == counts(&ours),
            Total => theirs.len() == ours.len(),
        };
        if !is_alike {
            let [their_counts, our_counts] = [&theirs, &ours].map(|ios| counts(ios));
            wrong.push(format!(
                "seed {SEED}, {case}: fio {their_counts:?} {theirs:?}\n  and here {our_counts:?} {ours:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every write begins where the last one to its zone ended, or at the start of the zone.
#[test]
fn writes_of_a_zone_follow_each_other() {
    let mut checked = 0;
    let limited = CASES.iter().filter(|(_, case)| !case.contains("zonesize="));
    for (_, case) in limited {
        let mut ends: BTreeMap<u64, u64> = BTreeMap::new();
        for (direction, offset_bytes, bytes) in ours(case) {
            if direction != Direction::Write {
                continue;
            }
            let zone = offset_bytes / ZONE_BYTES;
            let end_bytes = ends.insert(zone, offset_bytes + bytes);
            let is_next = end_bytes == Some(offset_bytes) || offset_bytes % ZONE_BYTES == 0;
            assert!(is_next, "seed {SEED}, {case}: a write at {offset_bytes}");
            assert!(offset_bytes + bytes <= (zone + 1) * ZONE_BYTES, "{case}");
            checked += 1;
        }
    }
    assert!(checked > 500, "{checked} writes");
}

/// Zones that are open at once stay within the limit.
#[test]
fn no_more_zones_are_open_than_allowed() {
    for open_max in 1..=4 {
        let case = format!("rw=randwrite norandommap io_size=1m max_open_zones={open_max}");
        let mut filled: BTreeMap<u64, u64> = BTreeMap::new();
        for (_, offset_bytes, bytes) in ours(&case) {
            let end_bytes = offset_bytes % ZONE_BYTES + bytes;
            filled.insert(offset_bytes / ZONE_BYTES, end_bytes);
            let open = filled.values().filter(|end| **end < ZONE_BYTES).count();
            assert!(open <= open_max, "seed {SEED}, {case}: {open} are open");
        }
        assert_eq!(filled.len() as u64, FILE_BYTES / ZONE_BYTES, "{case}");
    }
}
