//! Weeks of diurnal loads on gp2 of 100 GiB, phase by phase.

use super::*;

const REQUESTS: VolumeLimit = VolumeLimit::VolumeRequests;

/// Runs days of a busy and a quiet part, and returns the volume and, for each day, the backlog at
/// the end of the busy part, that of the quiet part, and the second of the day at which credits end.
fn days(busy: (u64, u64), quiet: (u64, u64)) -> (FluidVolume, Vec<(u128, u128, Option<u64>)>) {
    let of = volume("gp2", &[]).expect("gp2");
    let mut fluid = FluidVolume::new(&of);
    let mut found = Vec::new();
    for day in 0..7 {
        let start = day * 24 * HOUR;
        let mut ends = None;
        let mut watch = |phase: Phase| {
            let ended = phase.limit.is_some_and(|limit| limit.credits_ended);
            if ended && ends.is_none() {
                ends = Some((phase.start_ns - start) / SECOND);
            }
        };
        fluid.run(&open(&of, 16 * KIB, busy.1), busy.0 * HOUR, &mut watch);
        let evening = fluid.backlog() / NANOREQUESTS;
        fluid.run(&open(&of, 16 * KIB, quiet.1), quiet.0 * HOUR, &mut watch);
        found.push((evening, fluid.backlog() / NANOREQUESTS, ends));
    }
    (fluid, found)
}

#[test]
fn credits_end_each_day_and_are_full_each_morning() {
    let (fluid, found) = days((8, 500), (16, 100));
    for day in found {
        assert_eq!(day, (360_000, 0, Some(27_000)));
    }
    assert_eq!(fluid.credits(REQUESTS), fluid.credits_max(REQUESTS));
}

#[test]
fn the_backlog_of_an_evening_is_gone_when_the_night_has_caught_up() {
    let of = volume("gp2", &[]).expect("gp2");
    let mut fluid = FluidVolume::new(&of);
    let mut phases = Vec::new();
    fluid.run(&open(&of, 16 * KIB, 500), 8 * HOUR, |phase| {
        phases.push(phase)
    });
    fluid.run(&open(&of, 16 * KIB, 100), 16 * HOUR, |phase| {
        phases.push(phase)
    });
    let caught_up = phases
        .iter()
        .find(|phase| phase.backlog_start > 0 && phase.backlog_end == 0);
    assert_eq!(caught_up.expect("a phase").end_ns, 8 * HOUR + 1800 * SECOND);
}

#[test]
fn a_busier_day_ends_its_credits_earlier() {
    let (_, found) = days((8, 600), (16, 100));
    assert_eq!((found[0].0, found[0].2), (3_240_000, Some(18_000)));
}

#[test]
fn a_load_above_the_base_rate_grows_its_backlog_day_by_day() {
    let (_, found) = days((16, 500), (8, 100));
    for (day, (_, morning, _)) in found.iter().enumerate() {
        assert_eq!(*morning, 360_000 + 5_760_000 * day as u128, "day {day}");
    }
    assert_eq!(found[6].1, 34_920_000);
}

#[test]
fn a_job_split_into_halves_leaves_the_same_levels() {
    for (system, settings) in [
        ("gp2", &[][..]),
        ("st1", &[][..]),
        ("premium-ssd", &[("tier", "P4")][..]),
        ("gp3", &[("instance", "t4g.nano")][..]),
    ] {
        let of = volume(system, settings).expect("a volume");
        for bytes in [4 * KIB, 100 * KIB, MIB] {
            let load = closed(&of, bytes, 16, 700);
            for duration in [3 * HOUR, 3 * HOUR + 1234 * SECOND] {
                let (mut whole, mut halves) = (FluidVolume::new(&of), FluidVolume::new(&of));
                whole.run(&load, duration, |_| ());
                halves.run(&load, duration / 2, |_| ());
                halves.run(&load, duration - duration / 2, |_| ());
                for kind in VolumeLimit::ALL {
                    let tokens =
                        |of: &FluidVolume| of.credits(kind).map(|all| all / 1_000_000_000_000);
                    assert_eq!(tokens(&whole), tokens(&halves), "{system} {bytes}");
                }
            }
        }
    }
}
