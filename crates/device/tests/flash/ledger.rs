//! Any load on any drive: every request ends, its time is accounted for, nothing is lost.

use super::*;
use diskperf_sim::RandomStream;
use diskperf_spans::{DieBusy, Stage};
use std::collections::BTreeMap;

const DRIVES: u64 = 150;
const REQUESTS: u32 = 400;

/// A drive of which most is drawn.
pub(super) fn drawn(draws: &mut RandomStream) -> FlashSpecification {
    let mut specification = toy();
    let geometry = &mut specification.geometry;
    geometry.channel_count = 1 + draws.draw_below(3) as u32;
    geometry.dies_per_channel = 1 + draws.draw_below(3) as u32;
    geometry.planes_per_die = 1 << draws.draw_below(3);
    geometry.pages_per_word_line = 1 + draws.draw_below(3) as u32;
    geometry.page_bytes = 4096 << draws.draw_below(2);
    geometry.word_lines_per_block = 6 + draws.draw_below(4) as u32;
    geometry.blocks_per_plane = 14 + draws.draw_below(6) as u32;
    geometry.page_spare_bytes = 512;
    let pages = geometry.pages_per_word_line as usize;
    specification.times.read_time_by_page = (0..pages)
        .map(|page| us(40.0 + 10.0 * page as f64))
        .collect();
    let mut flag = || draws.draw_with_probability(0.5);
    specification.has_independent_planes = flag();
    specification.has_cache_read = flag();
    specification.has_cache_program = flag();
    specification.allows_reads_during_data_in = flag();
    specification.suspension = flag().then(|| suspending(3)).flatten();
    let protected = flag();
    let program_units = specification.geometry.program_units();
    specification.buffer = match draws.draw_below(4) {
        0 => None,
        1 => buffered(program_units, protected),
        _ => buffered(4 * program_units, protected),
    };
    specification.retry_share = 0.1;
    specification.decode_time = us(3.0);
    specification.journal.changes_per_page = 1 + draws.draw_below(30) as u32;
    specification.interface.flush_order = match draws.draw_with_probability(0.5) {
        true => FlashFlushOrder::DrainsQueue,
        false => FlashFlushOrder::QueuesWrites,
    };
    let interface = &mut specification.interface;
    (interface.submission_time, interface.command_time) = (us(1.0), us(2.0));
    (
        interface.processing_time_per_unit,
        interface.completion_time,
    ) = (us(5.0), us(3.0));
    interface.queue_depth = 1 + draws.draw_below(32) as u32;
    interface.request_units_max = 1 + draws.draw_below(16) as u32;
    (
        interface.link.read_bytes_per_s,
        interface.link.write_bytes_per_s,
    ) = (1e9, 0.8e9);
    interface.link.is_full_duplex = draws.draw_with_probability(0.5);
    interface.link.command_overhead = us(2.9);
    let geometry = &specification.geometry;
    let superblock =
        geometry.die_count() * geometry.program_units() * geometry.word_lines_per_block;
    let layer = &mut specification.translation;
    layer.wear_threshold = draws.draw_with_probability(0.3).then_some(3);
    (layer.soft_free_superblocks, layer.hard_free_superblocks) = (4, 3);
    layer.dies_erasing_max = 1 + draws.draw_below(4) as u32;
    layer.logical_units = superblock * (geometry.blocks_per_plane - 9);
    layer.precondition = [
        PreconditionState::Fresh,
        PreconditionState::Sequential,
        PreconditionState::Random,
    ][draws.draw_below(3) as usize];
    layer.filled_share = layer.logical_units / (1 + draws.draw_below(2) as u32);
    specification
}

fn operation(draws: &mut RandomStream) -> Operation {
    match draws.draw_below(20) {
        0..=7 => READ,
        8..=16 => WRITE,
        17 => FUA,
        18 => Operation::Flush,
        _ => Operation::Discard,
    }
}

/// Requests at random times; where their time went, each summed up.
fn load(host: &mut Drive, draws: &mut RandomStream, stages: &mut BTreeMap<Stage, u64>) {
    let sectors = host.flash().sectors();
    let (mut asked, mut done) = (0, 0);
    while done < REQUESTS {
        if asked < REQUESTS && host.flash().can_accept_request() {
            let operation = operation(draws);
            let count = match operation {
                Operation::Flush => 0,
                _ => 1 + draws.draw_below(12).min(sectors - 1) as u32,
            };
            let sector = draws.draw_below(sectors - u64::from(count) + 1);
            host.ask(operation, sector, count);
            asked += 1;
        }
        let pause = us(draws.draw_below(200) as f64);
        let until = host.now() + pause;
        host.run_until(until);
        let is_stuck = !host.flash().can_accept_request() && host.flash().next_event().is_none();
        assert!(
            !is_stuck || host.flash().has_completed_requests(),
            "requests never end: {}",
            host.flash().describe_waiting()
        );
        if asked == REQUESTS && !host.flash().has_completed_requests() {
            assert!(host.step(), "{} requests never end", REQUESTS - done);
        }
        while let Some(request) = host.take_done() {
            for (stage, time) in request.stages() {
                *stages.entry(stage).or_default() += time.0;
            }
            done += 1;
        }
    }
}

#[test]
fn every_request_ends_and_nothing_is_lost() {
    let (mut stages, mut erases) = (BTreeMap::new(), 0);
    for drive in 0..DRIVES {
        let seed = SEED + drive;
        let mut draws = RandomStreams::new(seed).named_stream("drive");
        let specification = drawn(&mut draws);
        println!("seed {seed}");
        let mut host = new_host(&specification);
        load(&mut host, &mut draws, &mut stages);
        host.rest();
        let ftl = host.flash().translation_layer();
        ftl.check_invariants()
            .unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
        assert!(
            ftl.free_superblocks() > 0,
            "seed {seed}: a superblock is left"
        );
        let traffic = ftl.traffic();
        assert!(traffic.host_units > 0, "seed {seed}");
        erases += traffic.erase_count;
    }
    println!("{erases} erases, {stages:#?}");
    assert!(erases > DRIVES, "hardly anything was collected");
    let seen = |stage: Stage| stages.contains_key(&stage);
    for busy in DieBusy::ALL {
        assert!(seen(Stage::DieWait(busy)), "no read waited for {busy:?}");
    }
    for stage in [
        Stage::FlashRead,
        Stage::ReadRetry,
        Stage::ChannelWait,
        Stage::ChannelTransfer,
        Stage::Decode,
        Stage::BusWait,
        Stage::BusTransfer,
        Stage::CacheHit,
        Stage::BufferFull,
        Stage::FlashProgram,
        Stage::Destage,
        Stage::Journal,
        Stage::Command,
        Stage::ControllerQueue,
        Stage::Completion,
    ] {
        assert!(seen(stage), "no time in {stage:?}");
    }
}

/// The same load on the same drive is the same, to the nanosecond.
#[test]
fn a_load_repeats() {
    let run = || {
        let mut draws = RandomStreams::new(SEED).named_stream("drive");
        let specification = drawn(&mut draws);
        let mut host = new_host(&specification);
        let mut stages = BTreeMap::new();
        load(&mut host, &mut draws, &mut stages);
        (host.now(), stages, *host.flash().traffic())
    };
    assert_eq!(run(), run());
}
