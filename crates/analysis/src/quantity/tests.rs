use super::*;
use crate::fixtures::load::{LoadFixture, READ_LOAD};
use crate::fixtures::{RandomNoise, read_repetition, write_repetition};
use diskperf_timeline::Histogram;
use diskperf_timeline::units::MIB;

fn repetition(load: LoadFixture) -> Repetition {
    load.build_repetition(&mut RandomNoise::new(24))
}

fn of_both(base: &Repetition, other: &Repetition, past_cache: bool) -> Vec<Quantity> {
    let [base, other] = [base, other].map(std::iter::once);
    Quantity::common_quantities(base, other, past_cache)
}

#[test]
fn a_fixed_number_of_bytes_is_judged_by_its_time() {
    let (read, write) = (
        read_repetition(MIB, 123.0, 9.0),
        write_repetition(MIB, 456.0, 9.0),
    );
    assert_eq!(of_both(&read, &read, true), [Quantity::KbPerS]);
    let durable = [Quantity::KbPerS, Quantity::DurableKbPerS];
    assert_eq!(of_both(&write, &write, true), durable);
    assert_eq!(of_both(&write, &read, true), [Quantity::KbPerS]);
    for one in [read, write] {
        assert_eq!(judged_duration_s(&one), one.elapsed_time().seconds());
        assert_eq!(
            Quantity::KbPerS.speed_of_repetition(&one),
            Some(one.kb_per_s())
        );
    }
}

#[test]
fn a_closed_loop_is_judged_by_its_rate_whatever_its_duration() {
    let slow = repetition(READ_LOAD);
    let fast = repetition(LoadFixture {
        iops: 2.0 * READ_LOAD.iops,
        ..READ_LOAD
    });
    assert_eq!(slow.elapsed_time(), fast.elapsed_time());
    assert_eq!(judged_duration_s(&slow), 2.0 * judged_duration_s(&fast));
    assert_eq!(of_both(&slow, &fast, true), [Quantity::Iops]);
    let writes = repetition(LoadFixture {
        write_percent: 100,
        ..READ_LOAD
    });
    let durable = [Quantity::Iops, Quantity::DurableKbPerS];
    assert_eq!(of_both(&writes, &writes, false), durable);
    assert_eq!(of_both(&writes, &writes, true), [Quantity::Iops]);
}

#[test]
fn an_open_loop_is_judged_by_its_responses() {
    let open = |response_us| {
        repetition(LoadFixture {
            is_open_loop: true,
            response_us,
            ..READ_LOAD
        })
    };
    let (fast, slow) = (open(100.0), open(200.0));
    let both = [Quantity::ResponseP50Us, Quantity::ResponseP99Us];
    assert_eq!(of_both(&fast, &slow, true), both);
    assert_eq!(
        of_both(&fast, &repetition(READ_LOAD), true),
        [Quantity::Iops]
    );
    let ratio = judged_duration_s(&slow) / judged_duration_s(&fast);
    assert!((ratio - 2.0).abs() < 0.01, "{ratio}");
    for quantity in both {
        let [fast, slow] = [&fast, &slow].map(|one| quantity.speed_of_repetition(one).unwrap());
        assert!(fast > slow);
    }
    let few = repetition(LoadFixture {
        iops: 20.0,
        is_open_loop: true,
        ..READ_LOAD
    });
    assert_eq!(of_both(&few, &few, true), [Quantity::ResponseP50Us]);
}

/// A client of a log waits for the sync as well as for the write.
#[test]
fn a_program_that_commits_is_judged_by_its_commits() {
    let mut log = repetition(LoadFixture {
        write_percent: 100,
        writes_per_sync: 1,
        ..READ_LOAD
    });
    let commits: Histogram = vec![(114_000, 900), (900_000, 100)].into();
    for load in log
        .workers
        .iter_mut()
        .filter_map(|one| one.load_measure.as_mut())
    {
        assert!(load.write.request_count() > 0 && load.sync.request_count() > 0);
        load.commit.response_times = commits.clone();
    }
    assert_eq!(log.response_times(), commits);
    let per_s = commits.latency_count() as f64 / log.elapsed_time().seconds();
    assert_eq!(Quantity::Iops.figure_of_repetition(&log), Some(per_s));
    let open = Quantity::ResponseP50Us.figure_of_repetition(&log);
    assert_eq!(open, Some(commits.percentile(50.0).0 as f64 / 1e3));
}
