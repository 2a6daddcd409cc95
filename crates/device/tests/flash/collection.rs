//! Collection beside the host: what is amplified, and who waits.

use super::*;
use diskperf_ftl::analytic;
use diskperf_spans::Stage;

/// A drive of eight dies at its steady state, with a tenth of it spare.
fn steady(depth: u32) -> FlashSpecification {
    let mut specification = toy();
    let geometry = &mut specification.geometry;
    (geometry.channel_count, geometry.dies_per_channel) = (4, 2);
    (geometry.planes_per_die, geometry.pages_per_word_line) = (2, 3);
    (geometry.word_lines_per_block, geometry.blocks_per_plane) = (32, 160);
    specification.times.read_time_by_page = vec![us(45.0); 3];
    specification.has_cache_program = true;
    specification.has_cache_read = true;
    specification.allows_reads_during_data_in = true;
    specification.suspension = suspending(16);
    specification.buffer = buffered(96, true);
    specification.journal.changes_per_page = 1 << 20;
    let units = 8 * 6 * 32;
    let layer = &mut specification.translation;
    (layer.soft_free_superblocks, layer.hard_free_superblocks) = (6, 3);
    // No spare are free superblocks, one fewer than the soft threshold; the two open ones,
    // half full in the mean; and of the victim what was copied, half of it in the mean.
    let closed = 160.0 - (f64::from(layer.soft_free_superblocks) - 1.0) - 1.0 - 0.5;
    layer.logical_units = (closed * f64::from(units) * 0.9) as u32;
    (layer.precondition, layer.filled_share) = (PreconditionState::Random, layer.logical_units);
    layer.dies_erasing_max = 8;
    specification.interface.queue_depth = depth;
    specification
}

struct Found {
    amplification: f64,
    longest: Time,
    reads: u32,
}

/// Random writes, and a share of reads, in a closed loop.
fn closed_loop(specification: &FlashSpecification, reads: f64, writes: u32) -> Found {
    let mut host = new_host(specification);
    let mut draws = RandomStreams::new(SEED).named_stream("load");
    let sectors = host.flash().sectors();
    let mut ask = |host: &mut Drive| {
        let operation = if draws.draw_with_probability(reads) {
            READ
        } else {
            WRITE
        };
        host.ask(operation, draws.draw_below(sectors), 1);
    };
    for _ in 0..specification.interface.queue_depth {
        ask(&mut host);
    }
    let (mut longest, mut asked, mut read) = (Time::ZERO, 0, 0);
    // Free superblocks come to what pacing leaves of them first.
    let mut settled = *host.flash().traffic();
    while asked < writes {
        let done = host.wait();
        let latency = done.latency();
        if done.operation == WRITE {
            if latency > longest {
                longest = latency;
            }
            asked += 1;
            if asked == writes / 5 {
                settled = *host.flash().traffic();
            }
        } else {
            read += 1;
        }
        assert!(host.flash().translation_layer().free_superblocks() > 0);
        ask(&mut host);
    }
    host.flash()
        .translation_layer()
        .check_invariants()
        .expect("sound");
    Found {
        amplification: host
            .flash()
            .traffic()
            .traffic_since(&settled)
            .write_amplification(),
        longest,
        reads: read,
    }
}

/// What is amplified hangs on the spare alone: not on reads, depth or time.
#[test]
fn amplification_is_the_layers_whatever_the_load() {
    let superblock = 8 * 6 * 32;
    let expected = analytic::greedy_write_amplification(0.1, superblock);
    println!("{expected:.3} expected, seed {SEED}");
    for (depth, reads) in [(1, 0.0), (32, 0.0), (32, 0.7)] {
        let specification = steady(depth);
        let found = closed_loop(&specification, reads, 150_000);
        println!(
            "depth {depth}, {} reads: {:.3}, longest write {}",
            found.reads, found.amplification, found.longest
        );
        let by = found.amplification / expected - 1.0;
        assert!(by.abs() < 0.03, "{by:+.3} at depth {depth}, {reads} reads");
    }
}

/// With pacing no write waits for the collection of half a superblock.
#[test]
fn paced_writes_wait_for_a_few_programs() {
    let specification = steady(4);
    let found = closed_loop(&specification, 0.0, 50_000);
    let valid = 0.8 * f64::from(8u32 * 6 * 32);
    let whole_us = valid / 6.0 / 8.0 * (500.0 + 3.0 * 45.0) + 3000.0;
    println!("longest {}, a superblock {whole_us:.0} us", found.longest);
    assert!(found.longest < us(whole_us / 2.0));
}

/// What is written in order is programmed once.
#[test]
fn writing_in_order_amplifies_nothing() {
    let mut specification = steady(8);
    specification.translation.precondition = PreconditionState::Fresh;
    let mut host = new_host(&specification);
    let sectors = host.flash().sectors() / 48 * 48;
    for _ in 0..3 {
        for sector in (0..sectors).step_by(48) {
            host.ask(WRITE, sector, 48);
            if host.under_way() == 8 {
                host.wait();
            }
        }
    }
    while host.under_way() > 0 {
        let done = host.wait();
        let held = |span: &diskperf_spans::Span| span.stage == Stage::Collection;
        assert!(!done.spans().iter().any(held), "{:?}", done);
    }
    let traffic = host.flash().traffic();
    println!("{traffic:?}");
    assert_eq!((traffic.collection_units, traffic.padding_units), (0, 0));
    assert!(traffic.erase_count > 0);
}
