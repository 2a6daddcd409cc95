//! Tails of requests made by hand: 2000 reads of 50 us, of which some waited.

use super::*;
use diskperf_timeline::trace::{TracedProcess, TracedRequest};
use diskperf_timeline::{DieBusy, Span};

const READS: u64 = 2000;
const ERASE: Stage = Stage::DieWait(DieBusy::Erase);
const READ: Stage = Stage::DieWait(DieBusy::Read);

/// Reads one after the other, 1 ms apart; each waits in these stages first, in us.
fn reads(waits: impl Fn(u64) -> Vec<(Stage, u64)>) -> Trace {
    let request = |number: u64| {
        let issued = Nanoseconds(number * 1_000_000);
        let mut until = issued;
        let parts = waits(number).into_iter().chain([(Stage::FlashRead, 50)]);
        let span = |(stage, us): (Stage, u64)| {
            until = Nanoseconds(until.0 + us * 1000);
            Span {
                stage,
                stage_end: until,
            }
        };
        TracedRequest {
            drive_index: 0,
            sector: number,
            sector_count: 1,
            is_fua: false,
            purpose: RequestPurpose::Read,
            media_position: Some(Position::Flash { channel: 0, die: 0 }),
            issued_at: issued,
            spans: parts.filter(|(_, us)| *us > 0).map(span).collect(),
            buffer_uses: Vec::new(),
        }
    };
    let span = Span {
        stage: Stage::User,
        stage_end: Nanoseconds(READS * 1_000_000),
    };
    Trace {
        requests: (0..READS).map(request).collect(),
        processes: vec![TracedProcess {
            process_number: 1,
            account_start: Nanoseconds(0),
            spans: vec![span],
            processor_work: Vec::new(),
        }],
        ..Trace::default()
    }
}

/// One in a hundred waits 100 us for an erase; of the other fast ones one in fifty for a read,
/// for 10. Without erases, this is left.
fn with_erases(erase_us: u64) -> Trace {
    reads(move |number| match (number % 100, number % 50) {
        (99, _) => vec![(READ, 20), (ERASE, erase_us)],
        (_, 7) => vec![(READ, 10)],
        _ => Vec::new(),
    })
}

fn only(trace: &Trace) -> LatencyTail {
    let mut found = find_tails(trace);
    assert_eq!(found.len(), 1, "reads alone");
    found.remove(0)
}

#[test]
fn excess_time_of_the_slowest_requests_is_their_cause() {
    let tail = only(&with_erases(100));
    assert_eq!((tail.request_count, tail.slowest_count), (2000, 20));
    let us = |us: u64| Nanoseconds(us * 1000);
    // 60 and 170 us.
    assert_eq!((tail.p50, tail.p99, tail.p999), (us(50), us(60), us(170)));
    assert_eq!(tail.time_above_p99, us(20 * 110));
    let stages: Vec<Stage> = tail.causes.iter().map(|cause| cause.stage).collect();
    assert_eq!(stages, [ERASE, READ]);
    let [erase, read] = &tail.causes[..] else {
        unreachable!("there are two")
    };
    assert_eq!(
        (erase.mean_of_slowest_ns, erase.mean_ns),
        (100_000.0, 1000.0)
    );
    assert_eq!(
        (erase.time_above_usual, read.time_above_usual),
        (us(20 * 100), us(20 * 20))
    );
    let sum: u64 = tail
        .slow_example
        .stage_times
        .iter()
        .map(|(_, ns)| ns.0)
        .sum();
    assert_eq!(sum, tail.slow_example.response_time.0);
}

#[test]
fn a_rerun_removes_what_it_has_less_above_the_same_p99() {
    let mut tail = only(&with_erases(100));
    let of = |stage, trace: &Trace| build_rerun(&tail, (stage, true), trace).expect("a rerun");
    let without_erases = of(ERASE, &with_erases(0));
    // What is left took 70 us: 10 above p99.
    assert_eq!(tail.removed_ns(&without_erases), 20 * 100_000);
    assert_eq!(without_erases.main_stage_left, Some(READ));
    assert_eq!(without_erases.p999, Nanoseconds(70_000));
    let twice_as_long = of(READ, &with_erases(200));
    assert_eq!(tail.removed_ns(&twice_as_long), -20 * 100_000);
    tail.attach_reruns(&[twice_as_long, without_erases]);
    assert_eq!(tail.causes[0].stage, ERASE);
    assert_eq!(tail.causes[0].rerun, Some(without_erases));
}

#[test]
fn a_cause_without_a_rerun_is_ranked_by_what_was_spent_more_in_it() {
    let mut tail = only(&with_erases(100));
    let reads = build_rerun(&tail, (READ, true), &with_erases(90)).expect("a rerun");
    // That of erases failed: they are first all the same.
    tail.attach_reruns(&[reads]);
    assert_eq!(tail.causes[0].stage, ERASE);
    assert_eq!(tail.causes[0].rerun, None);
}

#[test]
fn a_program_that_ran_again_counts_for_as_many_requests() {
    let tail = only(&with_erases(100));
    let mut twice = with_erases(100);
    let more = twice.requests.clone();
    twice.requests.extend(more);
    let again = build_rerun(&tail, (ERASE, false), &twice).expect("a rerun");
    assert_eq!((again.request_count, tail.removed_ns(&again)), (4000, 0));
}

#[test]
fn equal_response_times_have_no_tail() {
    assert_eq!(find_tails(&reads(|_| Vec::new())), []);
    // Nine are too few.
    assert_eq!(
        find_tails(&reads(|number| vec![(ERASE, u64::from(number < 9))])),
        []
    );
    assert_eq!(
        find_tails(&reads(|number| vec![(ERASE, u64::from(number < 10))])).len(),
        1
    );
}
