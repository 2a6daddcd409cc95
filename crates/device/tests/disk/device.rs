//! The whole disk against what follows from its parts. These fail when time is booked
//! twice or to nobody, when a command is lost or done twice, when the buffer answers for
//! what it has not, when the link and the platter do not overlap as they should, and when
//! a flush ends before all is on the medium.

use super::cache::segments;
use super::{PERIOD_7200_NS, assert_close, one_zone, plain};
use diskperf_device::disk::cache::{
    ReadAheadScope, ReadCacheSpecification, WriteCacheSpecification,
};
use diskperf_device::disk::device::{Disk, DiskSpecification, FlushOrder};
use diskperf_device::disk::link::{DiskLinkSpecification, ReadDelivery};
use diskperf_device::disk::overheads::{OverheadByState, OverheadSpecification};
use diskperf_device::disk::queue::{QueuePolicy, QueueSpecification};
use diskperf_device::disk::spindle::RotationAngle;
use diskperf_device::{Operation, Request, RequestId, Requests, moment};
use diskperf_sim::{RandomStreams, Time};
use diskperf_spans::{Deadline, Stage};
use std::collections::BTreeMap;

pub(super) const READ: Operation = Operation::Read;
pub(super) const WRITE: Operation = Operation::Write { fua: false };
pub(super) const FUA: Operation = Operation::Write { fua: true };

const SECTORS: u32 = 1000;

/// 1000 sectors of 512 bytes on each of 400 tracks, 0.1 ms for each command, a link of
/// 100 MB/s, four segments.
pub(super) fn specification() -> DiskSpecification {
    DiskSpecification {
        mechanism: plain(one_zone((200, 2, SECTORS))),
        sector_bytes: 512,
        sectors_per_medium_sector: 1,
        queue_depth: 32,
        queue: QueueSpecification {
            order: QueuePolicy::Sptf,
            ..QueueSpecification::default()
        },
        overheads: OverheadSpecification {
            read_hit_ms: OverheadByState::same_after_both(0.1),
            read_miss_ms: OverheadByState::same_after_both(0.1),
            write_ms: OverheadByState::same_after_both(0.1),
            ..OverheadSpecification::default()
        },
        link: DiskLinkSpecification {
            bytes_per_s: 100e6,
            write_bytes_per_s: None,
            overhead_ms: 0.0,
            reconnect_ms: 0.0,
            disconnects_for_writes: false,
            read_delivery: ReadDelivery::WhileReading,
        },
        read_cache: ReadCacheSpecification {
            read_ahead_sectors_max: Some(1000),
            ..segments(4, 2000)
        },
        write_cache: None,
        flush_order: FlushOrder::DrainsQueue,
        shingled: None,
    }
}

pub(super) fn write_cache() -> WriteCacheSpecification {
    WriteCacheSpecification {
        sectors_max: 16_384,
        extents_max: 256,
        high_water_share: 0.8,
        destage_idle_ms: 0.0,
        destage_sectors_max: 1000,
        serves_reads: true,
        accepts_appends_only: false,
        holds_destaged_extent: false,
        repeats_overhead_after_wait: false,
    }
}

/// A disk and its host.
pub(super) struct Bench {
    disk: Disk,
    requests: Requests,
    now: Time,
}

/// A command that is done.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) sector: u64,
    at: Time,
    pub(super) took: Time,
    stages: BTreeMap<&'static str, u64>,
}

impl Done {
    pub(super) fn stage(&self, stage: Stage) -> u64 {
        self.stages.get(stage.name()).copied().unwrap_or(0)
    }
}

impl Bench {
    pub(super) fn new(specification: &DiskSpecification) -> Self {
        let disk =
            Disk::new(specification, RotationAngle::from_revolutions(0.3)).expect("a sound disk");
        Self {
            disk,
            requests: Requests::default(),
            now: Time::ZERO,
        }
    }

    pub(super) fn ask(&mut self, operation: Operation, sector: u64, sectors: u32) -> RequestId {
        let mut request = Request {
            operation,
            sector,
            sectors,
            ..Request::default()
        };
        request.spans.begin_at(moment(self.now));
        let id = self.requests.issue(request);
        self.disk.accept_request(self.now, &mut self.requests, id);
        id
    }

    /// Waits for the next command that is done; where its time went adds up.
    pub(super) fn wait(&mut self) -> Done {
        let was_done = self.disk.has_completed_requests();
        while !self.disk.has_completed_requests() {
            let next = self.disk.next_event().expect("a command is under way");
            assert!(next >= self.now, "an event of the past");
            self.now = next;
            self.disk.advance(next, &mut self.requests);
        }
        let id = self.disk.take_completed_request().expect("one is done");
        let request = self.requests.take_request(id);
        let ended = Time(request.spans.marked_until().0);
        assert!(
            ended == self.now || (was_done && ended < self.now),
            "{:?}",
            request.spans
        );
        let mut stages = BTreeMap::new();
        let (from, to) = (request.spans.issued_at(), request.spans.marked_until());
        request.spans.for_each_stage_between(from, to, |stage, ns| {
            *stages.entry(stage.name()).or_default() += ns
        });
        Done {
            sector: request.sector,
            at: ended,
            took: Time(to.0 - from.0),
            stages,
        }
    }

    pub(super) fn one(&mut self, operation: Operation, sector: u64, sectors: u32) -> Done {
        self.ask(operation, sector, sectors);
        self.wait()
    }

    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// How long the arm has had something to do.
    pub(super) fn busy_ns(&self) -> u64 {
        let busy = self.disk.busy_times();
        (busy.positioning_time + busy.rotational_latency_time + busy.transfer_time).0
    }

    /// Lets time pass.
    pub(super) fn pause(&mut self, time: Time) {
        let until = self.now + time;
        while let Some(next) = self.disk.next_event().filter(|next| *next <= until) {
            self.now = next;
            self.disk.advance(next, &mut self.requests);
        }
        self.now = until;
    }
}

/// Case 26: overhead + n bus, whatever the arm does.
#[test]
fn a_hit_is_overhead_and_link() {
    let mut on = Bench::new(&specification());
    on.one(READ, 5000, 8);
    on.pause(Time::from_millis(40));
    for sectors in [8, 100] {
        let hit = on.one(READ, 5000, sectors);
        assert_eq!(hit.took, Time(100_000 + 5120 * u64::from(sectors)));
        assert_eq!(hit.stage(Stage::CacheHit), 5120 * u64::from(sectors));
    }
    on.ask(READ, 300_000, 8);
    on.pause(Time::from_millis(1));
    on.ask(READ, 5000, 8);
    let first = on.wait();
    assert_eq!((first.sector, first.took), (5000, Time(100_000 + 5120 * 8)));
    assert!(on.wait().stage(Stage::Seek) == 2_000_000);
}

/// Case 30: latency + n T/spt + a sector's bus on a fast one, latency + T/spt + n bus on a
/// slow one.
#[test]
fn speeds_are_matched() {
    for (bytes_per_s, sector_bus_ns) in [(100e6, 5120), (20e6, 25_600)] {
        let mut of = specification();
        of.link.bytes_per_s = bytes_per_s;
        let read = Bench::new(&of).one(READ, 100, 100);
        let each = PERIOD_7200_NS / f64::from(SECTORS);
        let latency = read.stage(Stage::RotationalLatency) as f64 + 100_000.0;
        let expected = match sector_bus_ns < each as u64 {
            true => latency + 100.0 * each + sector_bus_ns as f64,
            false => latency + each + 100.0 * sector_bus_ns as f64,
        };
        assert!(
            (read.took.0 as f64 - expected).abs() < 3.0,
            "{:?}",
            read.stages
        );
    }
}

/// Case 27: max(n media incl. skew, overhead + n bus + g) for each of n sectors.
#[test]
fn a_stream_goes_at_the_rate_of_media_or_host() {
    for (think_ns, sectors) in [(0, 100), (50_000, 100), (2_000_000, 100), (0, 4)] {
        let mut of = specification();
        of.mechanism.layout.zones[0].track_skew_rev = 0.25;
        of.mechanism.layout.zones[0].cylinder_skew_rev = 0.25;
        let mut on = Bench::new(&of);
        let calls = 60_000 / sectors;
        let mut begun = Time::ZERO;
        for call in 0..calls {
            let done = on.one(READ, u64::from(call * sectors), sectors);
            if call == calls / 4 {
                begun = done.at;
            }
            on.pause(Time(think_ns));
        }
        let each = (on.now - begun).0 as f64 / f64::from(calls - calls / 4 - 1);
        let media = PERIOD_7200_NS * 1.25 * f64::from(sectors) / f64::from(SECTORS);
        let host = (100_000 + 5120 * u64::from(sectors) + think_ns) as f64;
        assert_close(each, media.max(host), 0.03);
    }
}

/// Case 28: as many streams as segments are all hits, and one more has none.
#[test]
fn a_stream_more_than_segments_has_no_hits() {
    for (streams, hits) in [(3, true), (4, true), (5, false)] {
        let mut on = Bench::new(&specification());
        let mut missed = 0;
        for round in 0..40 {
            for stream in 0..streams {
                let read = on.one(READ, stream * 50_000 + round * 20, 20);
                let seeks = read.stage(Stage::Seek) + read.stage(Stage::RotationalLatency) > 0;
                missed += u64::from(seeks && round >= 2);
                // Long enough for a few rounds of each stream to be read ahead.
                on.pause(Time::from_millis(5));
            }
        }
        let most = 38 * streams;
        let fits = match hits {
            true => missed * 8 < most,
            false => missed * 10 > most * 9,
        };
        assert!(fits, "{missed} of {most} with {streams} streams");
    }
}

/// Case 29: overhead + bus until the buffer is full, then the rate of the medium.
#[test]
fn a_burst_of_writes_fills_the_buffer_first() {
    let mut of = specification();
    of.write_cache = Some(write_cache());
    let mut on = Bench::new(&of);
    let mut took = Vec::new();
    for call in 0..600 {
        took.push(on.one(WRITE, call * 200, 200).took.0);
    }
    let fast = 100_000 + 200 * 5120;
    assert!(
        took[..10].iter().all(|one| *one == fast),
        "{:?}",
        &took[..10]
    );
    let mut of_many = specification();
    of_many.write_cache = Some(WriteCacheSpecification {
        extents_max: 8,
        ..write_cache()
    });
    let mut on = Bench::new(&of_many);
    let mut draws = RandomStreams::new(3).named_stream("places");
    let places: Vec<u64> = (0..200).map(|_| draws.draw_below(399_000)).collect();
    let slow: Vec<Done> = places
        .iter()
        .map(|place| on.one(WRITE, *place, 8))
        .collect();
    assert!(
        slow[..8]
            .iter()
            .all(|one| one.took == Time(100_000 + 8 * 5120))
    );
    let late = &slow[100..];
    let mean = late.iter().map(|one| one.took.0).sum::<u64>() / late.len() as u64;
    assert!((3_000_000..7_000_000).contains(&mean), "{mean}");
    assert!(late.iter().any(|one| one.stage(Stage::Destage) > 1_000_000));
}

/// Case 18: an unaligned write of 512e takes exactly a revolution more.
#[test]
fn an_unaligned_write_takes_a_revolution_more() {
    let mut of = specification();
    of.sectors_per_medium_sector = 8;
    let took = |sector, sectors| Bench::new(&of).one(WRITE, sector, sectors);
    let (whole, part) = (took(800, 16), took(801, 15));
    let more = part.took - whole.took;
    let missed = part.stage(Stage::MissedRevolution(Deadline::PartOfSector));
    assert_eq!(
        whole.stage(Stage::MissedRevolution(Deadline::PartOfSector)),
        0
    );
    // The link carries a sector less.
    let link = whole.stage(Stage::BusTransfer) - part.stage(Stage::BusTransfer);
    assert!(
        (more.0 + link).abs_diff(PERIOD_7200_NS as u64) <= 6_000,
        "{more}"
    );
    assert!(missed.abs_diff(PERIOD_7200_NS as u64) <= 2, "{missed}");
}

#[test]
fn what_follows_too_late_misses_a_revolution() {
    let mut on = Bench::new(&specification());
    on.one(WRITE, 0, 8);
    let late = on.one(WRITE, 8, 8);
    let missed = late.stage(Stage::MissedRevolution(Deadline::ReadAhead));
    assert!(missed > 8_000_000, "{:?}", late.stages);
}

/// All that was acknowledged is on the medium when a flush ends, and each extent takes a
/// revolution and a seek at the most.
#[test]
fn a_flush_ends_when_all_is_on_the_medium() {
    for order in [FlushOrder::DrainsQueue, FlushOrder::QueuesWrites] {
        let mut of = specification();
        of.flush_order = order;
        of.write_cache = Some(WriteCacheSpecification {
            destage_idle_ms: 1000.0,
            ..write_cache()
        });
        let mut draws = RandomStreams::new(7).named_stream("places");
        let mut last = 0;
        for count in [0_u64, 1, 8, 64] {
            let mut on = Bench::new(&of);
            for _ in 0..count {
                on.one(WRITE, draws.draw_below(399_000), 8);
            }
            assert!(
                on.disk.busy_times().transfer_time == Time::ZERO,
                "nothing is written before"
            );
            let flush = on.one(Operation::Flush, 0, 0);
            let written = on.disk.busy_times().transfer_time.0 as f64;
            let each = PERIOD_7200_NS * 8.0 / f64::from(SECTORS);
            assert!((written - each * count as f64).abs() <= 2.0 * count as f64);
            assert_eq!(flush.stage(Stage::Command), 100_000);
            assert_eq!(flush.took.0, 100_000 + flush.stage(Stage::Destage));
            assert!(flush.took.0 >= last, "more takes longer");
            let most = count * (PERIOD_7200_NS as u64 * 11 / 10 + 2_000_000) + 100_000;
            assert!(flush.took.0 <= most, "{count}: {}", flush.took);
            last = flush.took.0;
            assert!(on.disk.next_event().is_none(), "nothing is left");
        }
    }
}

/// Commands that come behind a draining flush wait for it; beside one that queues they go on.
#[test]
fn a_flush_drains_or_queues() {
    for (order, first) in [
        (FlushOrder::DrainsQueue, 0),
        (FlushOrder::QueuesWrites, 5000),
    ] {
        let mut of = specification();
        of.flush_order = order;
        of.write_cache = Some(WriteCacheSpecification {
            destage_idle_ms: 1000.0,
            ..write_cache()
        });
        let mut on = Bench::new(&of);
        on.one(READ, 5000, 8);
        on.pause(Time::from_millis(50));
        on.one(WRITE, 300_000, 8);
        on.ask(Operation::Flush, 0, 0);
        on.ask(READ, 5000, 8);
        assert_eq!(on.wait().sector, first, "{order:?}");
        on.wait();
    }
}

/// What is forced to the medium is there when it is done, and the buffer's older contents
/// of it are never written over it.
#[test]
fn forced_writes_replace_what_waits() {
    let mut of = specification();
    of.write_cache = Some(WriteCacheSpecification {
        destage_idle_ms: 1000.0,
        ..write_cache()
    });
    let mut on = Bench::new(&of);
    on.one(WRITE, 1000, 16);
    let forced = on.one(FUA, 1000, 16);
    assert!(forced.stage(Stage::RotationalLatency) > 0);
    let before = on.disk.busy_times().transfer_time;
    assert!(on.one(Operation::Flush, 0, 0).took == Time(100_000));
    assert_eq!(on.disk.busy_times().transfer_time, before);
    assert!(
        on.one(READ, 1000, 16).stage(Stage::CacheHit) == 0,
        "it is not kept"
    );
}

/// At random, at several depths, with everything there is: each command is done once, all
/// adds up, and the same seed gives the same moments.
#[test]
fn any_load_is_done_once_and_the_same_again() {
    for seed in 1..=24_u64 {
        println!("seed {seed}");
        let run = || {
            let mut draws = RandomStreams::new(seed).named_stream("load");
            let mut of = specification();
            of.sectors_per_medium_sector = 1 + 7 * (seed as u32 % 2);
            of.queue_depth = 1 + draws.draw_below(40) as u32;
            of.read_cache = ReadCacheSpecification {
                segments: draws.draw_below(6) as u32,
                segment_sectors: 50 + draws.draw_below(3000) as u32,
                read_ahead_scope: [
                    ReadAheadScope::Limit,
                    ReadAheadScope::TrackEnd,
                    ReadAheadScope::NextTrackEnd,
                ][draws.draw_below(3) as usize],
                read_ahead_sectors_min: draws.draw_below(2) as u32 * 40,
                keeps_passing_sectors: draws.draw_below(2) == 1,
                ..segments(1, 1)
            };
            of.flush_order =
                [FlushOrder::DrainsQueue, FlushOrder::QueuesWrites][draws.draw_below(2) as usize];
            of.write_cache = (draws.draw_below(4) > 0).then(|| WriteCacheSpecification {
                sectors_max: 100 + draws.draw_below(5000),
                extents_max: 1 + draws.draw_below(40) as u32,
                destage_idle_ms: draws.draw_below(3) as f64,
                ..write_cache()
            });
            let mut on = Bench::new(&of);
            let (mut asked, mut done, mut moments) = (0, 0, Vec::new());
            let mut at = 0;
            while done < 1500 {
                while asked < 1500 && on.disk.can_accept_request() && draws.draw_below(8) > 0 {
                    at = match draws.draw_below(3) {
                        0 => draws.draw_below(390_000),
                        _ => (at + draws.draw_below(60)) % 390_000,
                    };
                    let operation = [READ, READ, WRITE, WRITE, FUA, Operation::Flush]
                        [draws.draw_below(6) as usize];
                    let sectors = match operation {
                        Operation::Flush => 0,
                        _ => 1 + draws.draw_below(200) as u32,
                    };
                    on.ask(operation, at, sectors);
                    asked += 1;
                }
                if asked > done {
                    moments.push((on.wait().sector, on.now));
                    done += 1;
                    on.pause(Time(draws.draw_below(3_000_000)));
                }
            }
            assert_eq!(on.requests.under_way(), 0);
            let busy = on.disk.busy_times();
            assert!(
                busy.positioning_time + busy.rotational_latency_time + busy.transfer_time
                    <= on.now + Time::from_millis(200)
            );
            moments
        };
        assert_eq!(run(), run());
    }
}
