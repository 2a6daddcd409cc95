//! The expectations of the facts that a few requests show, to the nanosecond.

use super::*;
use diskperf_spans::Stage;

/// A toy with `sectors` written one by one, and at rest.
fn written(specification: &FlashSpecification, sectors: u64) -> Drive {
    let mut host = new_host(specification);
    for sector in 0..sectors {
        host.one(WRITE, sector, 1);
    }
    host.rest();
    host
}

/// A toy whose program holds a whole word line of all planes, written by whole programs.
fn written_by(specification: &FlashSpecification, (programs, sectors): (u64, u32)) -> Drive {
    let mut host = new_host(specification);
    for program in 0..programs {
        host.one(WRITE, program * u64::from(sectors), sectors);
    }
    host.rest();
    host
}

#[track_caller]
fn assert_ends(found: &[f64], expected: &[f64]) {
    let near = |(one, other): (&f64, &f64)| (one - other).abs() < 1e-6;
    let same = found.len() == expected.len() && found.iter().zip(expected).all(near);
    assert!(same, "{found:?} is not {expected:?}");
}

/// Memory of the host's for the map costs each read, and no write.
#[test]
fn a_look_up_in_the_hosts_memory_is_before_each_read() {
    let mut specification = toy();
    specification.map_lookup_time = us(1.5);
    let mut host = written(&specification, 1);
    let read = host.one(READ, 0, 1);
    let looked_up = read.time_in(Stage::MapMiss);
    assert_eq!((looked_up, read.latency()), (Time(1500), Time(55_596)));
    assert_ends(&ends_of(&mut host, &[(0.0, WRITE, 1, 1)]), &[504.096]);
}

#[test]
fn one_request_takes_its_array_and_the_channel() {
    let mut host = written(&toy(), 1);
    assert_ends(&ends_of(&mut host, &[(0.0, READ, 0, 1)]), &[54.096]);
    assert_ends(&ends_of(&mut host, &[(0.0, WRITE, 1, 1)]), &[504.096]);
}

#[test]
fn reads_of_a_die_wait_for_each_other() {
    let mut specification = toy();
    let script = [(0.0, READ, 0, 1), (0.0, READ, 1, 1)];
    let ends = ends_of(&mut written(&specification, 2), &script);
    assert_ends(&ends, &[54.096, 108.192]);
    specification.has_cache_read = true;
    let ends = ends_of(&mut written(&specification, 2), &script);
    assert_ends(&ends, &[54.096, 104.096]);
}

#[test]
fn dies_share_a_channel() {
    let mut specification = toy();
    let script = [(0.0, READ, 0, 1), (0.0, READ, 1, 1)];
    specification.geometry.dies_per_channel = 2;
    let ends = ends_of(&mut written(&specification, 2), &script);
    assert_ends(&ends, &[54.096, 58.192]);
    specification.geometry.dies_per_channel = 1;
    specification.geometry.channel_count = 2;
    let ends = ends_of(&mut written(&specification, 2), &script);
    assert_ends(&ends, &[54.096, 54.096]);
}

#[test]
fn planes_sense_the_same_page_together() {
    let mut specification = toy();
    specification.geometry.planes_per_die = 2;
    let same = [(0.0, READ, 0, 1), (0.0, READ, 1, 1)];
    let other = [(0.0, READ, 0, 1), (0.0, READ, 3, 1)];
    let mut host = written_by(&specification, (2, 2));
    // One command, so that both are there when the die begins.
    assert_ends(&ends_of(&mut host, &[(0.0, READ, 0, 2)]), &[58.192]);
    assert_ends(&ends_of(&mut host, &other), &[54.096, 108.192]);
    specification.has_independent_planes = true;
    let mut host = written_by(&specification, (2, 2));
    assert_ends(&ends_of(&mut host, &same), &[54.096, 58.192]);
    assert_ends(&ends_of(&mut host, &other), &[54.096, 58.192]);
}

#[test]
fn programs_share_channels_and_dies() {
    let mut specification = toy();
    let script = [(0.0, WRITE, 0, 1), (0.0, WRITE, 1, 1)];
    let ends = |of: &FlashSpecification| ends_of(&mut new_host(of), &script);
    assert_ends(&ends(&specification), &[504.096, 1008.192]);
    specification.has_cache_program = true;
    assert_ends(&ends(&specification), &[504.096, 1004.096]);
    specification.has_cache_program = false;
    specification.geometry.dies_per_channel = 2;
    assert_ends(&ends(&specification), &[504.096, 508.192]);
    specification.geometry.dies_per_channel = 1;
    specification.geometry.planes_per_die = 2;
    let ends = ends_of(&mut new_host(&specification), &[(0.0, WRITE, 0, 2)]);
    assert_ends(&ends, &[508.192]);
}

#[test]
fn a_word_line_is_programmed_at_once_and_the_buffer_serves_it_until_then() {
    let mut specification = toy();
    specification.geometry.pages_per_word_line = 3;
    specification.times.read_time_by_page = [40.0, 50.0, 60.0].map(us).to_vec();
    let mut host = new_host(&specification);
    let script = [(0.0, WRITE, 0, 3), (100.0, READ, 1, 1)];
    assert_ends(&ends_of(&mut host, &script), &[512.288, 100.0]);
    // Each page has its own time, and keeps it.
    for _ in 0..2 {
        for (sector, end) in [44.096, 54.096, 64.096].into_iter().enumerate() {
            assert_ends(
                &ends_of(&mut host, &[(0.0, READ, sector as u64, 1)]),
                &[end],
            );
        }
    }
}

/// A write that goes on from 0, and reads at these times: when each read is done, and the
/// write.
fn behind_a_program(specification: &FlashSpecification, reads: &[f64]) -> (Vec<f64>, f64, u64) {
    let mut host = written(specification, 2);
    let mut script = vec![(0.0, WRITE, 2, 1)];
    script.extend(
        reads
            .iter()
            .enumerate()
            .map(|(number, at)| (*at, READ, number as u64, 1)),
    );
    let ends = ends_of(&mut host, &script);
    (ends[1..].to_vec(), ends[0], host.flash().suspension_count())
}

#[test]
fn a_read_behind_a_program_waits_for_its_end() {
    let (reads, _, _) = behind_a_program(&toy(), &[100.0]);
    assert_ends(&reads, &[558.192]);
}

#[test]
fn a_program_stops_for_reads_and_goes_on() {
    let mut specification = toy();
    specification.suspension = suspending(16);
    let check = |reads: &[f64], expected: (&[f64], f64, u64)| {
        let (found, program, suspensions) = behind_a_program(&specification, reads);
        assert_ends(&found, expected.0);
        assert_ends(&[program], &[expected.1]);
        assert_eq!(suspensions, expected.2);
    };
    check(&[100.0], (&[174.096], 563.192, 1));
    check(&[100.0, 130.0], (&[174.096, 228.192], 617.288, 1));
    // What is left is shorter than stopping.
    check(&[490.0], (&[558.192], 504.096, 0));
    // Its data are still on the channel.
    check(&[2.0], (&[558.192], 504.096, 0));
    specification.suspension = suspending(1);
    let (reads, ..) = behind_a_program(&specification, &[100.0, 200.0]);
    assert_ends(&reads, &[174.096, 563.192 + 54.096]);
}

#[test]
fn a_die_may_sense_while_the_data_of_a_program_come() {
    let mut specification = toy();
    specification.allows_reads_during_data_in = true;
    specification.suspension = suspending(16);
    let (reads, program, _) = behind_a_program(&specification, &[2.0]);
    assert_ends(&reads, &[56.096]);
    assert_ends(&[program], &[556.096]);
    // A die that stops no program goes on with it.
    specification.suspension = suspending(0);
    let (reads, program, _) = behind_a_program(&specification, &[2.0]);
    assert_ends(&reads, &[558.192]);
    assert_ends(&[program], &[504.096]);
}

/// A toy whose die has just begun to erase: sectors 1 and 2 were overwritten until few
/// superblocks were free.
fn erasing(specification: &FlashSpecification) -> Drive {
    let mut host = written(specification, 1);
    for number in 0.. {
        host.one(WRITE, 1 + number % 2, 1);
        if host.flash().translation_layer().wants_collection() {
            break;
        }
    }
    assert_eq!(host.flash().translation_layer().traffic().erase_count, 0);
    host
}

fn erased_after(host: &mut Drive) -> f64 {
    let begun = host.now();
    while host.flash().translation_layer().traffic().erase_count == 0 {
        assert!(host.step(), "the erase ends");
    }
    (host.now() - begun).0 as f64 / 1000.0
}

#[test]
fn an_erase_stops_for_reads_and_loses_nothing() {
    let mut specification = toy();
    assert_ends(&[erased_after(&mut erasing(&specification))], &[3000.0]);
    let read = [(1000.0, READ, 0, 1)];
    assert_ends(&ends_of(&mut erasing(&specification), &read), &[3054.096]);
    specification.suspension = suspending(16);
    let mut host = erasing(&specification);
    assert_ends(&ends_of(&mut host, &read), &[1074.096]);
    assert_ends(&[1074.096 + erased_after(&mut host)], &[3059.096]);
}

/// A toy of four pages a unit's worth: 16 KiB pages.
#[test]
fn units_of_a_page_are_sensed_once() {
    let mut specification = toy();
    specification.geometry.page_bytes = 16_384;
    let mut host = written_by(&specification, (1, 4));
    assert_ends(
        &ends_of(&mut host, &[(0.0, READ, 0, 4)]),
        &[50.0 + 4.0 * 4.096],
    );
}

#[test]
fn what_was_never_written_touches_no_die() {
    let mut host = new_host(&toy());
    assert_ends(&ends_of(&mut host, &[(0.0, READ, 7, 1)]), &[0.0]);
    host.one(WRITE, 7, 1);
    host.rest();
    assert_ends(&ends_of(&mut host, &[(0.0, READ, 7, 1)]), &[54.096]);
    host.one(Operation::Discard, 7, 1);
    assert_ends(&ends_of(&mut host, &[(0.0, READ, 7, 1)]), &[0.0]);
}

#[test]
fn a_buffer_without_protection_is_programmed_and_journalled_by_a_flush() {
    let mut specification = toy();
    specification.buffer = buffered(16, false);
    specification.geometry.planes_per_die = 4;
    let mut host = new_host(&specification);
    assert!(host.flash().has_volatile_cache());
    // In the buffer, with nothing to do but wait.
    assert_ends(&ends_of(&mut host, &[(0.0, WRITE, 0, 1)]), &[0.0]);
    assert_eq!(host.flash().traffic().host_units, 0);
    // Four pages of data, padded, and four of the journal.
    let program = 4.0 * 4.096 + 500.0;
    assert_ends(
        &ends_of(&mut host, &[(0.0, Operation::Flush, 0, 0)]),
        &[2.0 * program],
    );
    let traffic = *host.flash().traffic();
    assert_eq!(
        (traffic.host_units, traffic.map_units, traffic.padding_units),
        (1, 1, 6)
    );
    // The second has nothing to do.
    assert_ends(
        &ends_of(&mut host, &[(0.0, Operation::Flush, 0, 0)]),
        &[0.0],
    );
}

/// Nothing is mapped in a drive that writes in place: its flush needs no journal.
#[test]
fn a_flush_of_a_drive_that_writes_in_place_ends_with_its_buffer() {
    let mut specification = toy();
    specification.writes_in_place = true;
    specification.buffer = buffered(16, false);
    let mut host = new_host(&specification);
    for sector in 0..3 {
        host.one(WRITE, sector, 1);
    }
    let flush = host.one(Operation::Flush, 0, 0);
    let journal = |span: &diskperf_spans::Span| span.stage == diskperf_spans::Stage::Journal;
    assert!(!flush.spans().iter().any(journal), "{flush:?}");
    assert!(host.now() >= us(500.0), "the programs end before");
    host.rest();
    assert_eq!(host.under_way(), 0);
}

#[test]
fn a_flush_covers_what_was_written_before_it() {
    let mut specification = toy();
    specification.buffer = buffered(16, false);
    let mut host = new_host(&specification);
    let script = [
        (0.0, WRITE, 0, 2),
        (1.0, Operation::Flush, 0, 0),
        (1200.0, WRITE, 3, 1),
    ];
    let ends = ends_of(&mut host, &script);
    // Two programs, and a journal; the write behind it waits for nothing.
    assert_ends(&ends, &[0.0, 3.0 * 504.096, 1200.0]);
}

#[test]
fn a_protected_buffer_makes_a_flush_a_command() {
    let mut specification = toy();
    specification.buffer = buffered(16, true);
    let mut host = new_host(&specification);
    assert!(!host.flash().has_volatile_cache());
    let script = [
        (0.0, WRITE, 0, 4),
        (0.0, Operation::Flush, 0, 0),
        (0.0, FUA, 9, 1),
    ];
    assert_ends(&ends_of(&mut host, &script), &[0.0, 0.0, 0.0]);
}

#[test]
fn a_forced_write_is_durable_when_it_is_done() {
    let mut specification = toy();
    specification.buffer = buffered(16, false);
    specification.geometry.planes_per_die = 2;
    let mut host = new_host(&specification);
    let ends = ends_of(&mut host, &[(0.0, FUA, 5, 1)]);
    // Its own program, and the journal's.
    assert_ends(&ends, &[2.0 * 508.192]);
    assert_eq!(host.flash().traffic().host_units, 1);
}

#[test]
fn sata_flushes_alone_and_nvme_among_others() {
    let mut specification = toy();
    specification.buffer = buffered(16, false);
    specification.geometry.dies_per_channel = 2;
    let script = [
        (0.0, WRITE, 1, 1),
        (1.0, Operation::Flush, 0, 0),
        (2.0, READ, 60, 1),
    ];
    let ends = |of: &FlashSpecification| {
        let mut host = new_host(of);
        host.one(WRITE, 60, 1);
        host.one(Operation::Flush, 0, 0);
        host.rest();
        ends_of(&mut host, &script)
    };
    let nvme = ends(&specification);
    specification.interface.flush_order = FlashFlushOrder::DrainsQueue;
    let sata = ends(&specification);
    assert!(nvme[2] < nvme[1], "{nvme:?}");
    assert!(sata[2] > sata[1], "{sata:?}");
    assert_eq!(nvme[1], sata[1]);
}

#[test]
fn overwrites_of_what_waits_are_one_program() {
    let mut specification = toy();
    specification.buffer = buffered(64, false);
    specification.geometry.planes_per_die = 8;
    let mut host = new_host(&specification);
    for number in 0..70 {
        host.one(WRITE, number % 7, 1);
    }
    assert_eq!(host.flash().traffic().host_units, 0);
    host.one(Operation::Flush, 0, 0);
    assert_eq!(host.flash().traffic().host_units, 7);
}

/// A buffer of 64 MiB that 2000 MB/s come to and 500 go from is full after 44.7 ms.
#[test]
fn a_buffer_fills_by_what_comes_less_what_goes() {
    let mut specification = toy();
    // A die programs 64 KiB in as long as 500 MB/s take, and takes its data meanwhile.
    specification.geometry.page_bytes = 65_536;
    (
        specification.geometry.word_lines_per_block,
        specification.translation.logical_units,
    ) = (1024, 100_000);
    specification.has_cache_program = true;
    specification.channel.bytes_per_s = f64::INFINITY;
    specification.times.program_time = us(65_536.0 / 500.0);
    specification.buffer = buffered(16_384, false);
    specification.interface.link.write_bytes_per_s = 2e9;
    let mut host = new_host(&specification);
    let (mut sector, mut waited) = (0, None);
    host.ask(WRITE, 0, 16);
    while waited.is_none() {
        host.ask(WRITE, sector + 16, 16);
        sector += 16;
        let done = host.wait();
        let full = |span: &diskperf_spans::Span| span.stage == Stage::BufferFull;
        waited = done
            .spans()
            .iter()
            .find(|span| full(span))
            .map(|_| host.now());
    }
    let (first_ms, accepted) = (host.now().as_millis(), sector as f64 * 4096.0 / 1e6);
    println!("full after {first_ms:.2} ms, {accepted:.1} MB accepted");
    assert!((first_ms / 44.74 - 1.0).abs() < 0.01);
    assert!((accepted / 89.48 - 1.0).abs() < 0.01);
}

/// All times twice as long, and all latencies are.
#[test]
fn time_scales() {
    let doubled = |time: &mut Time| time.0 *= 2;
    let mut specification = toy();
    specification.suspension = suspending(3);
    specification.has_cache_read = true;
    let reads = [100.0, 130.0, 180.0, 300.0, 310.0];
    let (once, program, _) = behind_a_program(&specification, &reads);
    specification
        .times
        .read_time_by_page
        .iter_mut()
        .for_each(doubled);
    doubled(&mut specification.times.program_time);
    let rule = specification.suspension.as_mut().expect("it stops");
    for time in [
        &mut rule.program_suspend_time,
        &mut rule.erase_suspend_time,
        &mut rule.resume_time,
    ] {
        doubled(time);
    }
    specification.channel.bytes_per_s /= 2.0;
    let (twice, program_twice, _) = behind_a_program(&specification, &reads.map(|read| 2.0 * read));
    assert_ends(
        &twice,
        &once.iter().map(|end| 2.0 * end).collect::<Vec<_>>(),
    );
    assert_ends(&[program_twice], &[2.0 * program]);
}

/// 128 KiB reads over four lanes of the third generation, and reads beside writes.
#[test]
fn the_link_carries_what_its_lanes_do_each_way() {
    let mut specification = toy();
    let link = &mut specification.interface.link;
    (link.read_bytes_per_s, link.write_bytes_per_s) = (3.6e9, 3.6e9);
    specification.buffer = buffered(1 << 20, true);
    let mut host = new_host(&specification);
    let mut moved = [0.0; 2];
    for operation in [READ, WRITE].into_iter().cycle().take(16) {
        host.ask(operation, 0, 32);
    }
    for _ in 0..4000 {
        let done = host.wait();
        moved[usize::from(done.operation == WRITE)] += 131_072.0;
        host.ask(done.operation, 0, 32);
    }
    let rates = moved.map(|bytes| bytes / host.now().as_seconds() / 1e9);
    println!("{rates:?} GB/s");
    for rate in rates {
        assert!((rate / 3.6 - 1.0).abs() < 0.01, "{rate}");
    }
}
