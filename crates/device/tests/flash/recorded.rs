//! What a drive records of itself.

use super::*;
use diskperf_device::flash::recorder::{INTERVAL_COUNT_MAX, LEVEL_SAMPLE_COUNT_MAX};
use diskperf_spans::DieBusy;
use diskperf_spans::DieBusyPeriod;

fn spans(kept: &[DieBusyPeriod]) -> Vec<(DieBusy, bool, u64, u64)> {
    let us = |ns: u64| ns / 1000;
    kept.iter()
        .map(|one| {
            (
                one.busy_with,
                one.is_suspended,
                us(one.busy_start.0),
                us(one.busy_end.0),
            )
        })
        .collect()
}

/// A program of 500 that a read stops after 100: it comes to stand still for 20, stands while
/// the page is sensed and crosses (4.096), and goes on with what is left and 5 for resuming.
#[test]
fn a_read_behind_a_program_is_seen_with_what_stands() {
    let mut specification = toy();
    specification.suspension = suspending(3);
    specification.buffer = buffered(8, true);
    let mut host = new_host(&specification);
    ends_of(&mut host, &[(0.0, WRITE, 0, 1)]);
    host.rest();
    host.record();
    let begun = host.now();
    let ends = ends_of(&mut host, &[(0.0, WRITE, 1, 1), (104.096, READ, 0, 1)]);
    assert!(ends[1] < 200.0, "{ends:?}");
    host.rest();
    let seen = host.recorded_flash().expect("it records");
    let kept: Vec<DieBusyPeriod> = seen.recorded_periods;
    let by: Vec<(DieBusy, bool)> = kept
        .iter()
        .map(|one| (one.busy_with, one.is_suspended))
        .collect();
    assert_eq!(
        by,
        [
            (DieBusy::Program, false),
            (DieBusy::Suspension, false),
            (DieBusy::Read, true),
            (DieBusy::Channel, true),
            (DieBusy::Program, false),
        ],
        "{:?} from {begun:?}",
        spans(&kept)
    );
    for pair in kept.windows(2) {
        assert_eq!(pair[0].busy_end, pair[1].busy_start, "without gap");
    }
    assert!(
        host.recorded_flash()
            .expect("anew")
            .recorded_periods
            .is_empty()
    );
}

/// What is recorded of each die is what its counters have, and does not overlap.
#[test]
fn intervals_of_a_die_follow_each_other() {
    let mut specification = toy();
    specification.geometry.channel_count = 2;
    specification.geometry.dies_per_channel = 2;
    specification.translation.logical_units = 256;
    specification.translation.precondition = PreconditionState::Random;
    specification.translation.filled_share = 256;
    specification.suspension = suspending(2);
    specification.buffer = buffered(8, true);
    let mut host = new_host(&specification);
    host.record();
    let before = host.flash().die_busy_times();
    let mut draws = RandomStreams::new(SEED).named_stream("recorded");
    for _ in 0..2000 {
        let operation = if draws.draw_with_probability(0.5) {
            READ
        } else {
            WRITE
        };
        while !host.flash().can_accept_request() {
            assert!(host.step());
        }
        host.ask(operation, draws.draw_below(256), 1);
        host.run_for(us(draws.draw_below(400) as f64));
        while host.take_done().is_some() {}
    }
    host.rest();
    let seen = host.recorded_flash().expect("it records");
    assert_eq!((seen.omitted_period_count, seen.complete_since.0), (0, 0));
    let after = host.flash().die_busy_times();
    for by in DieBusy::ALL {
        let of = seen
            .recorded_periods
            .iter()
            .filter(|one| one.busy_with == by);
        let sum: u64 = of.map(|one| one.busy_end.0 - one.busy_start.0).sum();
        let counted = (after[by as usize] - before[by as usize]).0;
        // What stands and nothing else is seen, and counted nowhere.
        let extra = if by == DieBusy::Suspension {
            u64::MAX
        } else {
            0
        };
        assert!(
            sum >= counted && sum - counted <= extra,
            "{by:?}: {sum}, {counted}"
        );
    }
    for die in 0..4 {
        let own: Vec<&DieBusyPeriod> = seen
            .recorded_periods
            .iter()
            .filter(|one| one.die_index == die)
            .collect();
        assert!(
            own.windows(2)
                .all(|pair| pair[0].busy_end <= pair[1].busy_start)
        );
        assert!(own.iter().all(|one| one.busy_start < one.busy_end));
    }
    let (first, last) = (
        seen.level_samples[0],
        seen.level_samples[seen.level_samples.len() - 1],
    );
    assert!(
        seen.level_samples
            .windows(2)
            .all(|pair| pair[0].sample_time <= pair[1].sample_time)
    );
    let amplification = last.write_amplification_since(&first).expect("it wrote");
    assert!(amplification > 1.0, "{amplification}");
    assert!(seen.level_samples.iter().all(|one| one.buffer_units <= 8));
    assert!(seen.level_samples.iter().any(|one| one.buffer_units > 0));
    assert_eq!(last.cache_free_units, None);
}

/// However long it lasts, memory is bounded, and what is left out is said.
#[test]
fn a_long_time_leaves_out_its_beginning() {
    let mut host = new_host(&toy());
    host.record();
    ends_of(&mut host, &[(0.0, WRITE, 0, 1)]);
    // Each senses, and has its data cross the channel.
    let reads = INTERVAL_COUNT_MAX / 2 + 50;
    for _ in 0..reads {
        host.ask(READ, 0, 1);
        host.run_for(us(100.0));
        assert!(host.take_done().is_some());
    }
    let seen = host.recorded_flash().expect("it records");
    assert_eq!(seen.recorded_periods.len(), INTERVAL_COUNT_MAX);
    // The data of the program come first, in an interval with it.
    assert_eq!(seen.omitted_period_count, 101);
    assert!(seen.recorded_periods[0].busy_start >= seen.complete_since);
    assert!(
        (LEVEL_SAMPLE_COUNT_MAX / 2..=LEVEL_SAMPLE_COUNT_MAX + 1)
            .contains(&seen.level_samples.len())
    );
    let gaps = seen
        .level_samples
        .windows(2)
        .map(|pair| pair[1].sample_time.0 - pair[0].sample_time.0);
    let longest = gaps.max().unwrap_or(0);
    let all = host.now().0;
    assert!(longest < all / 200, "{longest} of {all}");
}

#[test]
fn nothing_is_recorded_unless_asked_for() {
    let mut host = new_host(&toy());
    ends_of(&mut host, &[(0.0, WRITE, 0, 1)]);
    assert_eq!(host.recorded_flash(), None);
}
