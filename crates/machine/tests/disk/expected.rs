//! The disks of the catalogue against what their data sheets and queueing theory lead one
//! to expect (facts, disk drives, 3.4, 4.1 and 7). Nothing in the catalogue was chosen to
//! meet a value here.

use diskperf_machine::catalogue::{Catalogue, Setting};
use diskperf_machine::hardware::disk::device::{Disk, DiskSpecification};
use diskperf_machine::hardware::disk::layout::Place;
use diskperf_machine::hardware::disk::queue::Policy;
use diskperf_machine::hardware::disk::spindle::Turn;
use diskperf_machine::hardware::{Operation, Request, RequestId, Requests, moment};
use diskperf_machine::specification::Specification;
use diskperf_sim::{Stream, Streams, Time};
use serde::Deserialize;

const SEED: u64 = 17;
const WRITE: Operation = Operation::Write { fua: false };
const BYTES: u64 = 4096;

/// What is expected of a drive: a file of `catalogue/expected`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expectations {
    drive: String,
    value: Vec<Expected>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    what: What,
    #[serde(default = "one")]
    depth: u64,
    expected: f64,
    tolerance_share: f64,
    source: String,
}

fn one() -> u64 {
    1
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum What {
    /// 4 KiB at random, the mean time between completions.
    RandomReadMs,
    /// Reads of a mebibyte, one behind the other, at the outside.
    SequentialReadOuterMbPerS,
    /// The same inside.
    SequentialReadInnerMbPerS,
    /// The same of writes, in the steady state.
    SequentialWriteMbPerS,
    /// 4 KiB behind the last ones, each followed by a flush.
    AppendedSyncMs,
    /// 4 KiB anywhere, each followed by a flush.
    RandomSyncMs,
    /// 4 KiB written at random after idle: the first hundred, each.
    WriteAfterIdleMs,
    /// 4 KiB written at random when the map of the media cache is full.
    WriteMapFullMs,
}

use What::*;

fn expectations() -> Vec<Expectations> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../catalogue/expected");
    let entries = std::fs::read_dir(folder).expect("the catalogue");
    let mut all: Vec<Expectations> = entries
        .map(|entry| {
            let path = entry.expect("a file").path();
            let text = std::fs::read_to_string(&path).expect("text");
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        })
        .collect();
    all.sort_by(|one, other| one.drive.cmp(&other.drive));
    all
}

fn specification(drive: &str) -> DiskSpecification {
    set(drive, &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// The drive with other values of these keys, as the command line gives them.
fn set(drive: &str, settings: &[(&str, &str)]) -> Result<DiskSpecification, String> {
    let settings: Vec<Setting> = settings
        .iter()
        .map(|(key, value)| Setting::new(&format!("drive.{key}"), value))
        .collect();
    let resolved = Catalogue::embedded().resolve(&format!("bare-{drive}"), &settings);
    let read = resolved.and_then(Specification::read);
    let (read, _) = read.map_err(|error| error.to_string())?;
    Ok(read.drives[0].disk().expect("a disk").clone())
}

/// A disk in a closed loop.
struct Host {
    disk: Disk,
    requests: Requests,
    now: Time,
    /// Sectors of 4 KiB.
    sectors: u64,
}

impl Host {
    fn new(specification: &DiskSpecification) -> Self {
        let disk = Disk::new(specification, Turn::of_revolutions(0.4)).expect("a disk");
        Self {
            sectors: BYTES / u64::from(disk.sector_bytes()),
            disk,
            requests: Requests::default(),
            now: Time::ZERO,
        }
    }

    /// Blocks of 4 KiB.
    fn blocks(&self) -> u64 {
        self.disk.sectors() / self.sectors
    }

    fn ask(&mut self, operation: Operation, block: u64, blocks: u64) -> RequestId {
        let mut request = Request {
            operation,
            sector: block * self.sectors,
            sectors: (blocks * self.sectors) as u32,
            ..Request::default()
        };
        request.spans.issue(moment(self.now));
        let id = self.requests.issue(request);
        self.disk.take(self.now, &mut self.requests, id);
        id
    }

    fn wait(&mut self) {
        while !self.disk.has_done() {
            self.now = self.disk.next_event().expect("a command is under way");
            self.disk.advance(self.now, &mut self.requests);
        }
        let id = self.disk.take_done().expect("one is done");
        self.requests.take(id);
    }

    fn one(&mut self, operation: Operation, block: u64, blocks: u64) {
        self.ask(operation, block, blocks);
        self.wait();
    }

    fn pause(&mut self, time: Time) {
        let until = self.now + time;
        while let Some(next) = self.disk.next_event().filter(|next| *next <= until) {
            self.disk.advance(next, &mut self.requests);
        }
        self.now = until;
    }

    /// Mean time between completions of 4 KiB at random, in ms, once `before` are done.
    fn random_ms(&mut self, operation: Operation, depth: u64, (before, count): (u64, u64)) -> f64 {
        let mut draws = Streams::new(SEED).stream("blocks");
        let blocks = self.blocks();
        for _ in 0..depth {
            self.ask(operation, draws.below(blocks), 1);
        }
        let mut begun = self.now;
        for done in 0..before + count {
            if done == before {
                begun = self.now;
            }
            self.wait();
            self.ask(operation, draws.below(blocks), 1);
        }
        (self.now - begun).millis() / count as f64
    }
}

fn found(specification: &DiskSpecification, (what, depth): (What, u64)) -> f64 {
    let mut host = Host::new(specification);
    let mut draws = Streams::new(SEED).stream("synced");
    let blocks = host.blocks();
    let mebibytes = 400;
    match what {
        RandomReadMs => host.random_ms(Operation::Read, depth, (500, 8000)),
        SequentialReadOuterMbPerS | SequentialReadInnerMbPerS => {
            let first = match what {
                SequentialReadInnerMbPerS => blocks - 256 * (mebibytes + 1),
                _ => 0,
            };
            host.one(Operation::Read, first, 256);
            let begun = host.now;
            for call in 1..=mebibytes {
                host.one(Operation::Read, first + 256 * call, 256);
            }
            mebibytes as f64 * 1.048_576 / (host.now - begun).seconds()
        }
        SequentialWriteMbPerS => {
            let write = |host: &mut Host, calls: std::ops::Range<u64>| {
                calls.for_each(|call| host.one(WRITE, 256 * call, 256));
                host.now
            };
            let begun = write(&mut host, 0..mebibytes);
            let ended = write(&mut host, mebibytes..3 * mebibytes);
            2.0 * mebibytes as f64 * 1.048_576 / (ended - begun).seconds()
        }
        AppendedSyncMs | RandomSyncMs => {
            let count = 3000;
            for number in 0..count {
                let block = match what {
                    AppendedSyncMs => number,
                    _ => draws.below(blocks),
                };
                host.one(WRITE, block, 1);
                host.one(Operation::Flush, 0, 0);
            }
            host.now.millis() / count as f64
        }
        WriteMapFullMs => {
            let bands = specification.shingled.expect("a disk with a media cache");
            // The map, what the buffer takes, and one by one.
            let before = u64::from(bands.map_extents) + 2000;
            host.random_ms(WRITE, 32, (before, 200))
        }
        WriteAfterIdleMs => {
            host.random_ms(Operation::Read, 1, (1, 10));
            host.wait();
            host.pause(Time::from_millis(1000));
            let begun = host.now;
            for _ in 0..100 {
                host.one(WRITE, draws.below(blocks), 1);
            }
            (host.now - begun).millis() / 100.0
        }
    }
}

#[test]
fn drives_do_what_is_expected_of_them() {
    println!("seed {SEED}");
    let all = expectations();
    assert!(all.len() >= 4, "{} drives", all.len());
    let mut missed = Vec::new();
    for of in &all {
        for expected in &of.value {
            let mut specification = specification(&of.drive);
            if expected.depth > 1 {
                // Waiting is without limit in theory.
                specification.queue.age_limit_ms = None;
            }
            let found = found(&specification, (expected.what, expected.depth));
            let by = found / expected.expected - 1.0;
            let line = format!(
                "{} {:?} at {}: {found:.4} for {:.4}, {:+.1} %: {}",
                of.drive,
                expected.what,
                expected.depth,
                expected.expected,
                by * 100.0,
                expected.source
            );
            println!("{line}");
            if by.abs() > expected.tolerance_share {
                missed.push(line);
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// A(q): the mean over the arm's place of the time until the first of q fresh requests
/// begins to pass. A queue that keeps those it left behind is up to a tenth worse.
fn bound_ms(of: &DiskSpecification, depth: i32, draws: &mut Stream) -> f64 {
    let disk = Disk::new(of, Turn::ZERO).expect("a disk");
    let mechanism = disk.mechanism();
    let layout = mechanism.layout();
    let mut place = || layout.locate(draws.below(layout.sectors()));
    let targets: Vec<Place> = (0..1500).map(|_| place()).collect();
    let period = mechanism.spindle().period().millis();
    let (arms, step) = (300, 0.04);
    let mut sum = 0.0;
    for _ in 0..arms {
        let arm = place();
        let seeks: Vec<f64> = targets
            .iter()
            .map(|target| {
                let seek = mechanism
                    .seek()
                    .time(target.cylinder.abs_diff(arm.cylinder));
                match target.head == arm.head {
                    true => seek.millis(),
                    false => seek.millis().max(of.mechanism.head_switch_ms),
                }
            })
            .collect();
        let mut at = step / 2.0;
        loop {
            let passed = |seek: &f64| ((at - seek) / period).clamp(0.0, 1.0);
            let share: f64 = seeks.iter().map(passed).sum::<f64>() / seeks.len() as f64;
            let later = (1.0 - share).powi(depth);
            if later < 1e-6 {
                break;
            }
            sum += later * step;
            at += step;
        }
    }
    sum / f64::from(arms)
}

/// Random reads at each depth lie between the bound and a seventh above that of one command
/// less: when the arm is given the next one, the host does not know yet that the last is
/// done.
#[test]
fn depth_is_worth_what_theory_says() {
    println!("seed {SEED}");
    for drive in ["sata-7200", "sata-consumer", "sas-10k"] {
        // Waiting is without limit in theory.
        let mut of = specification(drive);
        of.queue.age_limit_ms = None;
        let mut draws = Streams::new(SEED).stream("bound");
        for depth in [2, 4, 8, 16, 32] {
            let found = Host::new(&of).random_ms(Operation::Read, depth as u64, (500, 6000));
            let mut bound = |depth| bound_ms(&of, depth, &mut draws);
            let (least, most) = (bound(depth), 1.14 * bound(depth - 1));
            println!("{drive} at {depth}: {found:.3} ms, from {least:.3} to {most:.3}");
            assert!(
                (least * 0.99..most).contains(&found),
                "{drive} at {depth}: {found}"
            );
        }
    }
}

/// Writes that the buffer takes are ordered among hundreds, whatever the host's depth.
#[test]
fn written_at_random_goes_faster_than_read() {
    println!("seed {SEED}");
    for drive in ["sata-7200", "sata-consumer"] {
        let of = specification(drive);
        let extents = of.write_cache.as_ref().expect("on").most_extents;
        let mut draws = Streams::new(SEED).stream("bound");
        let written = Host::new(&of).random_ms(WRITE, 1, (5000, 5000));
        let read = Host::new(&of).random_ms(Operation::Read, 32, (500, 3000));
        let bound = bound_ms(&of, extents as i32, &mut draws);
        let settle = of.mechanism.write_settle_ms;
        println!("{drive}: written {written:.3} ms, read at 32 {read:.3}, bound {bound:.3}");
        assert!(written < read && written > bound);
        assert!(written < (bound + settle) * 1.25, "{written} of {bound}");
    }
}

#[test]
fn each_policy_has_its_own_number_and_no_other() {
    let of = |settings: &[(&str, &str)]| set("sas-10k", settings).map(|of| of.queue.policy);
    let v_scan = ("queue_policy", "v_scan");
    let aged = ("queue_policy", "aged_sptf");
    let (share, weight) = (("v_scan_share", "0.2"), ("aged_sptf_ms_per_s", "6"));
    assert_eq!(of(&[v_scan, share]), Ok(Policy::VScan { share: 0.2 }));
    assert_eq!(of(&[aged, weight]), Ok(Policy::AgedSptf { ms_per_s: 6.0 }));
    for (settings, message) in [
        (&[v_scan][..], "this policy needs `v_scan_share`"),
        (&[aged], "this policy needs `aged_sptf_ms_per_s`"),
        (&[share], "only `queue_policy=\"v_scan\"` has it"),
        (
            &[aged, weight, share],
            "only `queue_policy=\"v_scan\"` has it",
        ),
        (
            &[v_scan, share, weight],
            "only `queue_policy=\"aged_sptf\"` has it",
        ),
        (&[v_scan, ("v_scan_share", "1.1")], "v_scan_share"),
    ] {
        let refused = of(settings).expect_err("no policy");
        assert!(refused.contains(message), "{settings:?}: {refused}");
    }
}

/// Deep queues: SPTF, then SPTF that looks at the age, then the arm's way alone.
#[test]
fn policies_of_the_catalogue_are_in_the_order_of_theory() {
    println!("seed {SEED}");
    let mean = |settings: &[(&str, &str)]| {
        let of = set("sas-10k", settings).unwrap_or_else(|error| panic!("{error}"));
        Host::new(&of).random_ms(Operation::Read, 32, (500, 6000))
    };
    let of = |name| mean(&[("queue_policy", name)]);
    let aged = mean(&[("queue_policy", "aged_sptf"), ("aged_sptf_ms_per_s", "20")]);
    let v_scan = mean(&[("queue_policy", "v_scan"), ("v_scan_share", "0.2")]);
    let (sptf, sstf, fcfs) = (of("sptf"), of("sstf"), of("fcfs"));
    println!("sptf {sptf:.3} aged {aged:.3} v_scan {v_scan:.3} sstf {sstf:.3} fcfs {fcfs:.3} ms");
    assert!(sptf < aged && aged < fcfs);
    assert!(sptf < v_scan && v_scan < 0.8 * fcfs);
    // Facts, 3.4: at depth 32 the two are within a hundredth of each other.
    assert!((v_scan / sstf - 1.0).abs() < 0.03, "{v_scan} {sstf}");
}
