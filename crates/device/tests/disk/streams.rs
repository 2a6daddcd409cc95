//! Streams of reads with several requests under way, alone and beside random ones.

use diskperf_catalogue::{Catalogue, Setting};
use diskperf_device::DeviceSpecification;
use diskperf_device::disk::device::{Disk, DiskSpecification};
use diskperf_device::disk::spindle::RotationAngle;
use diskperf_device::{Request, RequestId, Requests, moment};
use diskperf_sim::{RandomStream, RandomStreams, Time};
use std::collections::BTreeMap;

const SEED: u64 = 11;

fn disk(name: &str, settings: &[(&str, &str)]) -> DiskSpecification {
    let settings: Vec<Setting> = settings
        .iter()
        .map(|(key, value)| Setting::new(&format!("drive.{key}"), value))
        .collect();
    let resolved = Catalogue::embedded().resolve(&format!("bare-{name}"), &settings);
    let read = resolved
        .and_then(DeviceSpecification::from_rig)
        .expect("a disk");
    read.disk().expect("a disk").clone()
}

/// What is asked for, with so many under way.
enum Load {
    Sequential { next: u64, sectors: u32 },
    Random { draws: RandomStream },
}

/// A host that keeps loads under way on a disk.
struct Host {
    disk: Disk,
    requests: Requests,
    now: Time,
    of: BTreeMap<usize, (usize, Time)>,
}

#[derive(Default)]
struct Seen {
    sectors: u64,
    requests: u64,
    longest: Time,
}

impl Host {
    fn new(of: &DiskSpecification) -> Self {
        Self {
            disk: Disk::new(of, RotationAngle::ZERO).expect("a disk"),
            requests: Requests::default(),
            now: Time::ZERO,
            of: BTreeMap::new(),
        }
    }

    fn ask(&mut self, number: usize, load: &mut Load) {
        let (sector, sectors) = match load {
            Load::Sequential { next, sectors } => {
                *next += u64::from(*sectors);
                (*next - u64::from(*sectors), *sectors)
            }
            Load::Random { draws } => (draws.draw_below(self.disk.sectors()), 1),
        };
        let mut request = Request {
            sector,
            sectors,
            ..Request::default()
        };
        request.spans.begin_at(moment(self.now));
        let id: RequestId = self.requests.issue(request);
        self.of.insert(id.slot(), (number, self.now));
        self.disk.accept_request(self.now, &mut self.requests, id);
    }

    fn run(&mut self, loads: &mut [(u32, Load)], time: Time) -> Vec<Seen> {
        let mut seen: Vec<Seen> = loads.iter().map(|_| Seen::default()).collect();
        for (number, (depth, load)) in loads.iter_mut().enumerate() {
            for _ in 0..*depth {
                self.ask(number, load);
            }
        }
        while self.now < time {
            while !self.disk.has_completed_requests() {
                self.now = self.disk.next_event().expect("a command is under way");
                self.disk.advance(self.now, &mut self.requests);
            }
            let id = self.disk.take_completed_request().expect("one is done");
            let (number, issued) = self.of.remove(&id.slot()).expect("asked for");
            let request = self.requests.take_request(id);
            let seen = &mut seen[number];
            seen.sectors += u64::from(request.sectors);
            seen.requests += 1;
            seen.longest = seen.longest.max(self.now - issued);
            self.ask(number, &mut loads[number].1);
        }
        seen
    }
}

const MEBIBYTE: u64 = 1 << 20;

/// A stream at a depth, and so many random reads of a sector beside it, for ten seconds.
fn streamed(of: &DiskSpecification, (depth, block): (u32, u64), random: u32) -> Vec<Seen> {
    let sequential = Load::Sequential {
        next: 0,
        sectors: (block / u64::from(of.sector_bytes)) as u32,
    };
    let beside = Load::Random {
        draws: RandomStreams::new(SEED).named_stream("places"),
    };
    let mut loads = [(depth, sequential), (random, beside)];
    Host::new(of).run(&mut loads, Time::from_millis(10_000))
}

/// With more requests under way a stream is as fast, never faster than its sectors pass, and
/// none of its requests is left behind until it is overdue.
#[test]
fn a_deeper_stream_is_as_fast_and_leaves_nothing_behind() {
    for name in ["sata-7200", "sata-consumer", "sas-10k", "smr-5400"] {
        let of = disk(name, &[]);
        let zone = &of.mechanism.layout.zones[0];
        let track = f64::from(zone.sectors_per_track * of.sectors_per_medium_sector);
        let rate = |seen: &Seen| seen.sectors as f64 / 10e9;
        let most = track / (of.mechanism.period_ns * (1.0 + zone.track_skew_rev));
        for block in [65_536, MEBIBYTE] {
            let alone = rate(&streamed(&of, (1, block), 0)[0]);
            for depth in [2, 8, of.queue_depth.min(32)] {
                let seen = &streamed(&of, (depth, block), 0)[0];
                let turns = seen.longest.0 as f64 / of.mechanism.period_ns;
                let passing = f64::from(depth) * block as f64
                    / f64::from(of.sector_bytes)
                    / (most * of.mechanism.period_ns);
                println!(
                    "{name} {block} at {depth}: {:.3} of {:.3}, longest {turns:.1} turns, {passing:.1} pass",
                    rate(seen) / most,
                    alone / most
                );
                assert!(
                    rate(seen) < 1.01 * most && rate(seen) > 0.99 * alone,
                    "{name}"
                );
                assert!(turns < 1.5 * passing + 4.0, "{name}: {turns} turns");
            }
        }
    }
}

/// Random reads beside a stream have their share, and the stream its own.
#[test]
fn a_stream_and_random_reads_share_the_arm() {
    for name in ["sata-7200", "sas-10k"] {
        let of = disk(name, &[]);
        for random in [1, 8, 24] {
            let seen = streamed(&of, (8, MEBIBYTE), random);
            let bytes = seen[0].sectors * u64::from(of.sector_bytes);
            println!(
                "{name} beside {random}: {:.1} MB/s, longest {} ms; {} random, longest {} ms",
                bytes as f64 / 10e6,
                seen[0].longest.as_millis(),
                seen[1].requests,
                seen[1].longest.as_millis()
            );
            let limit_ms = of.queue.age_limit_ms.expect("a limit");
            for one in &seen {
                assert!(one.requests > 0);
                // Overdue ones wait for those that are overdue before them.
                assert!(
                    one.longest.as_millis() < 2.0 * limit_ms,
                    "{name} beside {random}"
                );
            }
        }
    }
}
