//! Random reads over many dies, and reads behind programs, against the facts' tables and
//! formulas (facts 4.4 and 4.5).

use super::*;

/// Dies, and their utilisation at 2, 4, 8, ... 256 outstanding reads (facts 4.4,
/// simulated there, to +-.004).
const UTILISATION: [(u32, [f64; 8]); 5] = [
    (8, [0.235, 0.409, 0.619, 0.792, 0.894, 0.946, 0.969, 0.983]),
    (16, [0.121, 0.227, 0.395, 0.603, 0.778, 0.884, 0.939, 0.968]),
    (32, [0.062, 0.119, 0.223, 0.388, 0.593, 0.768, 0.877, 0.936]),
    (64, [0.031, 0.061, 0.118, 0.221, 0.386, 0.590, 0.766, 0.878]),
    (
        128,
        [0.016, 0.031, 0.061, 0.118, 0.220, 0.383, 0.588, 0.762],
    ),
];

/// The facts' bar.
const WITHIN: f64 = 0.01;

/// A drive of so many dies that was written in order, and only whose dies take time.
fn dies(count: u32) -> FlashSpecification {
    let mut specification = toy();
    specification.geometry.channel_count = count;
    specification.channel.bytes_per_s = f64::INFINITY;
    let layer = &mut specification.translation;
    layer.logical_units = count * 16 * 8;
    (layer.precondition, layer.filled_share) = (PreconditionState::Sequential, layer.logical_units);
    specification
}

/// The share of the time that dies read, with so many reads outstanding.
fn utilisation(specification: &FlashSpecification, depth: u32, reads: u32) -> f64 {
    let mut host = new_host(specification);
    let mut draws = RandomStreams::new(SEED).named_stream("sectors");
    let sectors = host.flash().sectors();
    let mut ask = |host: &mut Drive| host.ask(READ, draws.draw_below(sectors), 1);
    for _ in 0..depth {
        ask(&mut host);
    }
    let warm = reads / 10;
    let mut begun = Time::ZERO;
    for done in 0..reads + warm {
        if done == warm {
            begun = host.now();
        }
        host.wait();
        ask(&mut host);
    }
    let each = specification.times.read_time_by_page[0].0 as f64;
    let dies = f64::from(specification.geometry.die_count());
    f64::from(reads) * each / ((host.now() - begun).0 as f64 * dies)
}

#[test]
fn dies_at_depth_are_as_busy_as_the_table_says() {
    println!("seed {SEED}");
    let mut missed = Vec::new();
    for (count, expected) in UTILISATION {
        let specification = dies(count);
        for (depth, expected) in (1..).map(|power| 1 << power).zip(expected) {
            let found = utilisation(&specification, depth, 40_000);
            let line = format!("{count} dies at {depth}: {found:.4} for {expected}");
            println!("{line}");
            if (found - expected).abs() > WITHIN {
                missed.push(line);
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// More outstanding reads are never fewer of them in a second.
#[test]
fn depth_never_costs_reads() {
    let specification = dies(32);
    let depths = (0..9).map(|power| utilisation(&specification, 1 << power, 20_000));
    let found: Vec<f64> = depths.collect();
    println!("{found:.4?}, seed {SEED}");
    assert!(found.is_sorted());
}

/// A die that programs for a share of each period, and a read at some moment of it.
struct Behind {
    share: f64,
    stops: bool,
}

const PROGRAM_US: f64 = 5000.0;
const READ_US: f64 = 1.0;

impl Behind {
    /// How long reads waited, in microseconds, ascending.
    fn waits(&self, reads: u64) -> Vec<f64> {
        let mut specification = toy();
        specification.channel.bytes_per_s = f64::INFINITY;
        (
            specification.times.program_time,
            specification.times.read_time_by_page,
        ) = (us(PROGRAM_US), vec![us(READ_US)]);
        specification.suspension = self.stops.then(|| suspending(16)).flatten();
        specification.times.erase_time = Time::ZERO;
        let mut host = new_host(&specification);
        host.one(WRITE, 0, 1);
        host.rest();
        let mut draws = RandomStreams::new(SEED).named_stream("moments");
        let period = us(PROGRAM_US / self.share);
        let mut waits = Vec::new();
        for number in 0..reads {
            let begun = Time((number + 1) * 2 * period.0);
            host.run_until(begun);
            host.ask(WRITE, 1 + number % 2, 1);
            host.run_until(begun + Time(draws.draw_below(period.0)));
            let read = host.ask(READ, 0, 1);
            let asked = host.now();
            while host.wait().id != read {}
            waits.push((host.now() - asked).0 as f64 / 1000.0 - READ_US);
            host.rest();
            while host.take_done().is_some() {}
        }
        waits.sort_by(f64::total_cmp);
        waits
    }
}

fn at(waits: &[f64], percent: f64) -> f64 {
    waits[(waits.len() as f64 * percent / 100.0) as usize]
}

#[test]
fn reads_behind_programs_wait_as_the_formulas_say() {
    println!("seed {SEED}");
    for share in [0.02, 0.1, 0.5, 0.9] {
        let waits = Behind {
            share,
            stops: false,
        }
        .waits(400_000);
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        let expected = share * PROGRAM_US / 2.0;
        println!("{share}: mean {mean:.1} for {expected:.1}");
        assert!((mean / expected - 1.0).abs() < 0.03);
        for percent in [50.0, 99.0, 99.9] {
            let found = at(&waits, percent);
            let expected = PROGRAM_US * (1.0 - (1.0 - percent / 100.0) / share).max(0.0);
            println!("{share}: p{percent} {found:.1} for {expected:.1}");
            // Where half of the reads wait, the median is at the edge.
            let edge = 0.005 * PROGRAM_US;
            assert!(
                (found - expected).abs() <= 0.03 * expected + edge,
                "{found}"
            );
        }
    }
}

/// With suspension a read waits until the program stands still, or for its end if that is
/// sooner.
#[test]
fn reads_behind_programs_that_stop_wait_for_that() {
    println!("seed {SEED}");
    for (share, median) in [(0.1, 0.0), (0.9, 20.0)] {
        let waits = Behind { share, stops: true }.waits(50_000);
        for (percent, expected) in [(50.0, median), (99.0, 20.0), (99.9, 20.0)] {
            let found = at(&waits, percent);
            println!("{share}: p{percent} {found:.1} for {expected}");
            assert!((found - expected).abs() <= 0.03 * expected, "{found}");
        }
        assert!(waits.iter().all(|wait| *wait <= 20.0));
    }
}
