use super::*;
use crate::fixtures::load::{Load, READS};
use crate::fixtures::{Noise, read, write};
use diskperf_timeline::Histogram;
use diskperf_timeline::units::MIB;

fn repetition(load: Load) -> Repetition {
    load.repetition(&mut Noise::new(24))
}

fn of_both(base: &Repetition, other: &Repetition, past_cache: bool) -> Vec<Quantity> {
    let [base, other] = [base, other].map(std::iter::once);
    Quantity::of_both(base, other, past_cache)
}

#[test]
fn a_fixed_number_of_bytes_is_judged_by_its_time() {
    let (read, write) = (read(MIB, 123.0, 9.0), write(MIB, 456.0, 9.0));
    assert_eq!(of_both(&read, &read, true), [Quantity::KbPerS]);
    let durable = [Quantity::KbPerS, Quantity::DurableKbPerS];
    assert_eq!(of_both(&write, &write, true), durable);
    assert_eq!(of_both(&write, &read, true), [Quantity::KbPerS]);
    for one in [read, write] {
        assert_eq!(judged_s(&one), one.elapsed_time().seconds());
        assert_eq!(Quantity::KbPerS.speed(&one), Some(one.kb_per_s()));
    }
}

#[test]
fn a_closed_loop_is_judged_by_its_rate_whatever_its_duration() {
    let slow = repetition(READS);
    let fast = repetition(Load {
        iops: 2.0 * READS.iops,
        ..READS
    });
    assert_eq!(slow.elapsed_time(), fast.elapsed_time());
    assert_eq!(judged_s(&slow), 2.0 * judged_s(&fast));
    assert_eq!(of_both(&slow, &fast, true), [Quantity::Iops]);
    let writes = repetition(Load {
        write_share: 100,
        ..READS
    });
    let durable = [Quantity::Iops, Quantity::DurableKbPerS];
    assert_eq!(of_both(&writes, &writes, false), durable);
    assert_eq!(of_both(&writes, &writes, true), [Quantity::Iops]);
}

#[test]
fn an_open_loop_is_judged_by_its_responses() {
    let open = |response_us| {
        repetition(Load {
            open_loop: true,
            response_us,
            ..READS
        })
    };
    let (fast, slow) = (open(100.0), open(200.0));
    let both = [Quantity::ResponseP50Us, Quantity::ResponseP99Us];
    assert_eq!(of_both(&fast, &slow, true), both);
    assert_eq!(of_both(&fast, &repetition(READS), true), [Quantity::Iops]);
    let ratio = judged_s(&slow) / judged_s(&fast);
    assert!((ratio - 2.0).abs() < 0.01, "{ratio}");
    for quantity in both {
        let [fast, slow] = [&fast, &slow].map(|one| quantity.speed(one).unwrap());
        assert!(fast > slow);
    }
    let few = repetition(Load {
        iops: 20.0,
        open_loop: true,
        ..READS
    });
    assert_eq!(of_both(&few, &few, true), [Quantity::ResponseP50Us]);
}

/// A client of a log waits for the sync as well as for the write.
#[test]
fn a_program_that_commits_is_judged_by_its_commits() {
    let mut log = repetition(Load {
        write_share: 100,
        writes_per_sync: 1,
        ..READS
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
    assert_eq!(Quantity::Iops.figure(&log), Some(per_s));
    let open = Quantity::ResponseP50Us.figure(&log);
    assert_eq!(open, Some(commits.percentile(50.0).0 as f64 / 1e3));
}
