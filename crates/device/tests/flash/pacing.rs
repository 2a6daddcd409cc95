//! How long a write waits at most while a drive collects.

use super::*;
use diskperf_catalogue::Setting;
use diskperf_device::expected::flash::divide_capacity;

/// How much smaller than the catalogue's its superblocks are: all shares stay.
const PARTS: u32 = 2;

fn small(drive: &str) -> FlashSpecification {
    let whole = expected::set(drive, &[Setting::new("drive.past", "random")]);
    FlashSpecification {
        slc_cache: None,
        ..divide_capacity(&whole, PARTS)
    }
}

/// What collecting a superblock takes a drive that does nothing else, at least: programs of
/// what is valid in a victim at an amplification of 4, and erases.
fn collection(of: &FlashSpecification) -> Time {
    let geometry = &of.geometry;
    let programs = f64::from(geometry.word_lines_per_block) * 0.75;
    let rounds = geometry
        .die_count()
        .div_ceil(of.translation.dies_erasing_max);
    let erases = Time(of.times.erase_time.0 * u64::from(rounds));
    Time((programs * of.times.program_time.0 as f64) as u64) + erases
}

/// Facts 7, 45: with pacing, less than a tenth of a superblock's collection.
#[test]
fn no_write_waits_for_a_tenth_of_a_collection() {
    for (drive, reads) in [("nvme-tlc", 0.3), ("nvme-tlc-plp", 0.0), ("sata-tlc", 0.3)] {
        let specification = small(drive);
        let mut host = new_host(&specification);
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
        (0..32).for_each(|_| ask(&mut host));
        let (mut longest, mut collected) = (Time::ZERO, 0);
        while collected < 2 {
            let done = host.wait();
            let took = done.latency();
            if done.operation == WRITE && took > longest {
                longest = took;
            }
            collected = host.flash().traffic().erase_count;
            ask(&mut host);
        }
        let whole = collection(&specification);
        println!("{drive}: longest {longest}, a collection {whole}, seed {SEED}");
        assert!(longest < Time(whole.0 / 10), "{drive}");
    }
}
