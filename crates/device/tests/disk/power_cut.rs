//! What a power cut may take: writes that the buffer took and nobody flushed; never what was
//! flushed, or written with force unit access (expectation 31 of the facts). These fail when
//! a flush ends too soon, when the buffer holds on to what was forced past it, or when
//! destaging puts back what is on the medium.

use diskperf_catalogue::{Catalogue, Setting};
use diskperf_device::DeviceSpecification;
use diskperf_device::disk::device::Disk;
use diskperf_device::disk::spindle::RotationAngle;
use diskperf_device::{Operation, Request, RequestId, Requests, moment};
use diskperf_sim::{RandomStream, RandomStreams, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Commands of a load, and the sectors that they are of.
const COMMANDS: u32 = 300;
const SECTORS: u64 = 4000;

/// A disk under a random load, and what its host was promised.
struct Load {
    disk: Disk,
    requests: Requests,
    draws: RandomStream,
    now: Time,
    /// Sectors that a power cut must leave, with what was last written to them.
    durable: BTreeSet<u64>,
    /// Sectors whose last write is complete.
    written: BTreeSet<u64>,
    /// What a flush under way has to put on the medium.
    flushes: BTreeMap<usize, BTreeSet<u64>>,
    /// Sectors of commands under way: a host that asks for a sector twice at once is promised
    /// no order.
    under_way: BTreeMap<usize, (u64, u64)>,
    /// Moments at which a cut would have taken a completed write.
    losses: u32,
}

impl Load {
    fn new(drive: &str, settings: &[(&str, &str)], seed: u64) -> Self {
        let settings: Vec<Setting> = settings
            .iter()
            .map(|(path, text)| Setting::new(path, text))
            .collect();
        let system = Catalogue::embedded().resolve(&format!("bare-{drive}"), &settings);
        let read = DeviceSpecification::from_rig(system.expect("a system")).expect("a system");
        let disk = read.disk().expect("a disk");
        Self {
            disk: Disk::new(disk, RotationAngle::ZERO).expect("a sound disk"),
            requests: Requests::default(),
            draws: RandomStreams::new(seed).named_stream("load"),
            now: Time::ZERO,
            durable: BTreeSet::new(),
            written: BTreeSet::new(),
            flushes: BTreeMap::new(),
            under_way: BTreeMap::new(),
            losses: 0,
        }
    }

    fn ask(&mut self) {
        let (first, sectors) = loop {
            let first = self.draws.draw_below(SECTORS);
            let sectors = 1 + self.draws.draw_below(16) as u32;
            let end = first + u64::from(sectors);
            let is_free = |other: &(u64, u64)| other.1 <= first || end <= other.0;
            if self.under_way.values().all(is_free) {
                break (first, sectors);
            }
        };
        let (operation, sectors) = match self.draws.draw_below(10) {
            0 => (Operation::Flush, 0),
            1 | 2 => (Operation::Write { fua: true }, sectors),
            3 => (Operation::Read, sectors),
            _ => (Operation::Write { fua: false }, sectors),
        };
        let mut request = Request {
            operation,
            sector: first,
            sectors,
            ..Request::default()
        };
        request.spans.begin_at(moment(self.now));
        if let Operation::Write { .. } = operation {
            let range = first..request.end();
            for sector in range {
                self.durable.remove(&sector);
                self.written.remove(&sector);
                for promised in self.flushes.values_mut() {
                    promised.remove(&sector);
                }
            }
        }
        let range = (request.sector, request.end());
        let id = self.requests.issue(request);
        self.under_way.insert(id.slot(), range);
        if operation == Operation::Flush {
            self.flushes.insert(id.slot(), self.written.clone());
        }
        self.disk.accept_request(self.now, &mut self.requests, id);
    }

    fn take(&mut self, id: RequestId) {
        let request = self.requests.take_request(id);
        self.under_way.remove(&id.slot());
        let range = request.sector..request.end();
        match request.operation {
            Operation::Write { fua } => {
                self.written.extend(range.clone());
                if fua {
                    self.durable.extend(range);
                }
            }
            Operation::Flush => {
                let promised = self.flushes.remove(&id.slot()).expect("it was issued");
                self.durable.extend(promised);
            }
            _ => {}
        }
    }

    /// The power could be cut now.
    fn check(&mut self) {
        let mut takes_some = false;
        for extent in self.disk.extents_not_durable() {
            let broken = self
                .durable
                .range(extent.first_sector..extent.end_sector)
                .next();
            assert_eq!(broken, None, "a promised sector at {} is lost", self.now);
            takes_some |= self
                .written
                .range(extent.first_sector..extent.end_sector)
                .next()
                .is_some();
        }
        self.losses += u32::from(takes_some);
    }

    fn run(&mut self, depth: usize) {
        let mut under_way = 0;
        let mut issued = 0;
        while issued < COMMANDS || under_way > 0 {
            while issued < COMMANDS && under_way < depth && self.disk.can_accept_request() {
                self.ask();
                (issued, under_way) = (issued + 1, under_way + 1);
            }
            if let Some(next) = self.disk.next_event() {
                self.now = next;
                self.disk.advance(next, &mut self.requests);
            }
            while let Some(id) = self.disk.take_completed_request() {
                self.take(id);
                under_way -= 1;
            }
            self.check();
        }
    }
}

#[test]
fn a_power_cut_takes_nothing_that_was_promised() {
    for seed in 0..20 {
        println!("seed {seed}");
        for (drive, settings) in [
            ("sata-7200", &[][..]),
            ("sata-consumer", &[]),
            ("smr-5400", &[("drive.media_cache_extents", "40")]),
            ("sata-7200", &[("drive.write_cache_bytes", "65536")]),
        ] {
            for depth in [1, 2, 8] {
                println!("{drive} {settings:?} depth {depth}");
                let mut load = Load::new(drive, settings, seed);
                load.run(depth);
                assert!(load.losses > 0, "{drive}: nothing was ever at risk");
            }
        }
    }
}

#[test]
fn a_disk_without_a_write_cache_has_nothing_to_lose() {
    for depth in [1, 4] {
        let mut load = Load::new("sas-10k", &[], 1);
        load.run(depth);
        assert_eq!(load.losses, 0);
    }
}
