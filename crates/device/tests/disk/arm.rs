//! What arms of the catalogue's disks do for no command: that commands which wait for it book
//! it, that the drive counts as busy meanwhile, and what it is worth to have it away.

use diskperf_catalogue::{Catalogue, Setting};
use diskperf_device::WhatIf;
use diskperf_device::disk::device::{Disk, DiskSpecification};
use diskperf_device::expected::disk::{build_drive, measure_random_ms};
use diskperf_device::{Completion, DeviceSpecification, Drive, Operation};
use diskperf_sim::{RandomStreams, Time};
use diskperf_spans::{ArmWork, Deadline, Stage, TracedArm};
use std::collections::BTreeSet;

const READ: Operation = Operation::Read;
const WRITE: Operation = Operation::Write { fua: false };
const MISSED: Stage = Stage::MissedRevolution(Deadline::ReadAhead);

fn disk(system: &str, settings: &[(&str, &str)]) -> DiskSpecification {
    let settings: Vec<Setting> = settings
        .iter()
        .map(|(key, value)| Setting::new(&format!("drive.{key}"), value))
        .collect();
    let resolved = Catalogue::embedded().resolve(system, &settings);
    let read = resolved
        .and_then(DeviceSpecification::from_rig)
        .expect("a disk");
    read.disk().expect("a disk").clone()
}

/// A drive of blocks of 4 KiB, whose requests are all taken, and all end.
trait Blocks {
    fn disk(&self) -> &Disk;
    fn blocks(&self) -> u64;
    fn ask(&mut self, operation: Operation, block: u64, blocks: u64);
    fn wait(&mut self) -> Completion;
    fn one(&mut self, operation: Operation, block: u64, blocks: u64) -> Completion {
        self.ask(operation, block, blocks);
        self.wait()
    }
}

impl Blocks for Drive {
    fn disk(&self) -> &Disk {
        self.device().disk().expect("a disk")
    }

    fn blocks(&self) -> u64 {
        self.device().sectors() * u64::from(self.device().sector_bytes()) / 4096
    }

    fn ask(&mut self, operation: Operation, block: u64, blocks: u64) {
        let sectors = u64::from(4096 / self.device().sector_bytes());
        let submitted = self.submit(operation, block * sectors, (blocks * sectors) as u32);
        submitted.unwrap_or_else(|refusal| panic!("{refusal}"));
    }

    fn wait(&mut self) -> Completion {
        let done = self.next_completion().expect("a request is under way");
        let booked: Time = done.stages().map(|(_, time)| time).sum();
        assert_eq!(booked, done.latency(), "all of it is booked");
        done
    }
}

/// What a command spent in a stage.
fn spent(request: &Completion, in_stage: Stage) -> u64 {
    request.time_in(in_stage).0
}

/// So many blocks of 4 KiB at random, several at a time, of which a share are written.
fn mixed(host: &mut Drive, (depth, count): (u64, u64), written: f64) -> Vec<Completion> {
    let mut draws = RandomStreams::new(5).named_stream("mixed");
    let blocks = host.blocks();
    let mut done = Vec::new();
    for number in 0..depth + count {
        if number >= depth {
            done.push(host.wait());
        }
        let operation = match (draws.draw_below(1000) as f64) < 1000.0 * written {
            true => WRITE,
            false => READ,
        };
        host.ask(operation, draws.draw_below(blocks), 1);
    }
    done
}

fn at_work(recorded: &[TracedArm], work: ArmWork) -> u64 {
    let of = recorded.iter().filter(|one| one.arm_work == work);
    of.map(|one| one.work_end().0 - one.work_start.0).sum()
}

/// Reads that wait behind others while the buffer is written have that as destage, to the
/// moment; and the arm, which has no rest, is busy.
#[test]
fn a_wait_for_the_buffer_is_a_destage() {
    let of = disk("bare-sata-7200", &[("write_cache_extents", "16")]);
    let mut host = build_drive(&of);
    host.record();
    let done = mixed(&mut host, (16, 2000), 0.3);
    let recorded = host.recorded_arm();
    let destaging = at_work(&recorded, ArmWork::Destage);
    let elapsed = host.now().0;
    assert!(destaging * 10 > elapsed, "{destaging} of {elapsed}");
    let is_read = |one: &&Completion| one.operation == READ;
    let waited: u64 = done
        .iter()
        .filter(is_read)
        .map(|one| spent(one, Stage::Destage))
        .sum();
    // About eleven of sixteen are reads, and wait all the time.
    assert!(waited > 5 * destaging, "{waited} for {destaging}");
    let busy = host.disk().busy_times();
    let busy = (busy.positioning_time + busy.rotational_latency_time + busy.transfer_time).0;
    assert!(
        busy * 100 > elapsed * 97 && busy <= elapsed + 20_000_000,
        "{busy} of {elapsed}"
    );
}

/// What is recorded of an arm is one thing after the other, and of the sectors written.
#[test]
fn an_arm_does_one_thing_at_a_time() {
    for system in ["bare-sata-7200", "bare-sas-10k", "bare-smr-5400"] {
        let settings: &[_] = match system {
            "bare-smr-5400" => &[
                ("media_cache_extents", "400"),
                ("write_cache_extents", "16"),
            ],
            _ => &[],
        };
        let of = disk(system, settings);
        let mut host = build_drive(&of);
        host.record();
        let mut draws = RandomStreams::new(9).named_stream("places");
        let blocks = host.blocks();
        let mut places: Vec<u64> = (0..600).map(|_| draws.draw_below(blocks)).collect();
        for place in &places {
            host.one(WRITE, *place, 1);
        }
        host.run_for(Time::from_millis(60_000));
        let recorded = host.recorded_arm();
        for pair in recorded.windows(2) {
            assert!(
                pair[0].work_end() <= pair[1].work_start,
                "{system}: {pair:?}"
            );
        }
        let destages = recorded
            .iter()
            .filter(|one| one.arm_work == ArmWork::Destage);
        let block = 4096 / host.disk().sector_bytes();
        let mut destaged: Vec<u64> = destages
            .filter(|one| one.sector_count == block)
            .map(|one| one.sector / u64::from(block))
            .collect();
        places.sort_unstable();
        places.dedup();
        destaged.sort_unstable();
        destaged.dedup();
        if of.write_cache.is_some() {
            assert_eq!(destaged, places, "{system}");
        }
        let cleans = at_work(&recorded, ArmWork::Cleaning) > 0;
        assert_eq!(cleans, system == "bare-smr-5400", "{system}");
    }
}

/// What a shingled disk's media cache takes is recorded where the media cache is, not where
/// its sectors are when hosts count them: writes at random are written side by side.
#[test]
fn a_destage_is_recorded_where_the_media_cache_is() {
    let of = disk("bare-smr-5400", &[("write_cache_extents", "16")]);
    let mut host = build_drive(&of);
    host.record();
    let mut draws = RandomStreams::new(11).named_stream("places");
    let blocks = host.blocks();
    for _ in 0..300 {
        host.one(WRITE, draws.draw_below(blocks), 1);
    }
    host.run_for(Time::from_millis(1_000));
    let recorded = host.recorded_arm();
    let destages = recorded
        .iter()
        .filter(|one| one.arm_work == ArmWork::Destage);
    let at: Vec<u32> = destages.map(|one| one.arm_position.cylinder).collect();
    assert!(at.len() > 100, "{}", at.len());
    let cylinders: BTreeSet<u32> = at.into_iter().collect();
    assert!(cylinders.len() <= 4, "{cylinders:?}");
}

/// A read alone does not wait in a queue: the arm reads ahead, or is on its way to do so.
#[test]
fn a_read_alone_waits_for_the_end_of_reading_on() {
    let least = [("read_ahead_least_bytes", "1048576")];
    for (settings, most_ns) in [(&least[..], u64::MAX), (&[], 2_000_000)] {
        let of = disk("bare-sata-7200", settings);
        let mut host = build_drive(&of);
        host.record();
        let done = mixed(&mut host, (1, 300), 0.0);
        let queue: u64 = done
            .iter()
            .map(|one| spent(one, Stage::ControllerQueue))
            .sum();
        assert_eq!(queue, 0);
        let waited = done.iter().map(|one| spent(one, Stage::MediaTransfer));
        let most = waited.max().expect("reads");
        assert!(most < most_ns, "{most}");
        let (ahead, busy) = (
            at_work(&host.recorded_arm(), ArmWork::ReadAhead),
            host.disk().busy_times(),
        );
        assert!(
            busy.transfer_time.0 >= ahead,
            "reading on keeps the arm busy"
        );
        assert_eq!(most > 3_000_000, most_ns == u64::MAX, "{most}");
    }
}

/// Sectors that nobody asks for keep the arm busy up to the limit, and no longer.
#[test]
fn reading_on_is_recorded_up_to_its_limit() {
    let of = disk("bare-sas-10k", &[]);
    let mut host = build_drive(&of);
    host.record();
    host.one(READ, 1000, 1);
    host.run_for(Time::from_millis(1000));
    let recorded = host.recorded_arm();
    let [only] = &recorded[..] else {
        panic!("{recorded:?}")
    };
    let limit = of.read_cache.read_ahead_sectors_max.expect("a limit");
    assert_eq!(only.arm_work, ArmWork::ReadAhead);
    assert_eq!(only.sector_count, limit * of.sectors_per_medium_sector);
    assert!(only.work_end().0 < 200_000_000);
    assert!(host.recorded_arm().is_empty(), "nothing twice");
}

/// What rests of the arm cost where it is on its track already.
const RESTS: [(&str, &str); 2] = [("same_track_ms", "0.4"), ("write_same_track_ms", "0.6")];

fn synced(what_if: WhatIf, settings: &[(&str, &str)]) -> (u64, u64) {
    let of = disk("bare-sata-7200", settings);
    let mut host = Drive::new(build_drive(&of).device().clone().with_what_if(what_if));
    let mut missed = 0;
    for block in 0..200 {
        host.one(WRITE, block, 1);
        host.ask(Operation::Flush, 0, 0);
        missed += spent(&host.wait(), MISSED);
    }
    (host.now().0, missed)
}

/// A log that is flushed record by record misses a revolution each time, which is named, and
/// gone where deadlines are met.
#[test]
fn an_appended_record_misses_its_revolution() {
    for settings in [&[][..], &RESTS] {
        let (took, missed) = synced(WhatIf::default(), settings);
        assert!(missed * 100 > took * 85, "{missed} of {took}");
        let met = WhatIf {
            meets_deadlines: true,
            ..WhatIf::default()
        };
        let (took_then, missed_then) = synced(met, settings);
        assert!(took_then * 8 < took, "{took_then} of {took}");
        assert!(missed_then * 10 < took_then, "{missed_then} of {took_then}");
    }
}

/// An arm that is everywhere, and platters that are turned to where they are wanted, cost
/// nothing of that, and the rest as before.
#[test]
fn costs_of_the_mechanism_are_taken_away() {
    for system in ["bare-sata-7200", "bare-sas-10k", "bare-smr-5400"] {
        let of = disk(system, &[]);
        let sums = |what_if: WhatIf| {
            let mut host = Drive::new(build_drive(&of).device().clone().with_what_if(what_if));
            let done = mixed(&mut host, (4, 500), 0.0);
            let sum = |stage| done.iter().map(|one| spent(one, stage)).sum::<u64>();
            let (seek, latency) = (sum(Stage::Seek), sum(Stage::RotationalLatency));
            (seek, latency, host.now().0, sum(Stage::HeadSwitch))
        };
        let (seek, latency, took, _) = sums(WhatIf::default());
        let no_seek = sums(WhatIf {
            no_seek: true,
            ..WhatIf::default()
        });
        let no_latency = sums(WhatIf {
            no_rotational_latency: true,
            ..WhatIf::default()
        });
        assert!(no_seek.0 == 0 && no_seek.1 > 0, "{system}: {no_seek:?}");
        // Nor does a head switch come up that a seek hid.
        assert!(no_seek.3 * 20 < seek, "{system}: {no_seek:?}, {seek}");
        assert!(
            no_latency.1 == 0 && no_latency.0 > 0,
            "{system}: {no_latency:?}"
        );
        let (without_seek, without_latency) = (no_seek.2, no_latency.2);
        assert!(
            without_seek + seek / 3 < took,
            "{system}: {without_seek}, {seek}, {took}"
        );
        assert!(
            without_latency + latency / 3 < took,
            "{system}: {without_latency}, {took}"
        );
    }
}

/// A segment that holds four megabytes ends what is read for it: more is refused by nobody,
/// and gains nothing.
#[test]
fn reading_on_ends_where_a_segment_is_full() {
    let mean = |bytes: &str| {
        let of = disk("bare-sata-7200", &[("read_ahead_bytes", bytes)]);
        measure_random_ms(&mut build_drive(&of), (READ, 3), 1, (10, 400))
    };
    let of = disk("bare-sata-7200", &[]);
    let held = u64::from(of.read_cache.segment_sectors) * 4096;
    assert_eq!(mean("999999999999"), mean(&held.to_string()));
}
