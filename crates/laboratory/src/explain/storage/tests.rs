//! Which repetition is explained, and what is said of the others.

use super::{
    ChainAccount, RepetitionEvents, describe_disagreement, describe_lost_events,
    find_watched_repetition,
};
use diskperf_chains::event::KernelRecording;
use diskperf_timeline::block::TimedPart;
use diskperf_timeline::{
    BlockTrace, CacheMode, Nanoseconds, ProgramResult, Protocol, Repetition, SummaryStatistic,
    WorkerMeasure,
};
use std::collections::BTreeMap;

/// A result of repetitions that took so many milliseconds, the first of them
/// discarded.
fn result(elapsed_ms: &[u64]) -> ProgramResult {
    let repetition = |(number, ms): (usize, &u64)| Repetition {
        is_discarded: number == 0,
        workers: vec![WorkerMeasure {
            elapsed_time: Nanoseconds::from_millis(*ms),
            // No event says that it left the processor.
            cpu_time: Nanoseconds::from_millis(*ms),
            ..WorkerMeasure::default()
        }],
        ..Repetition::default()
    };
    ProgramResult {
        program: "read_8192".to_owned(),
        parameters: BTreeMap::new(),
        distinguishing: Vec::new(),
        table_row: 0,
        drive_count: 1,
        filesystem_type: String::new(),
        size_bytes: 8192,
        cache_mode: CacheMode::Cold,
        protocol: Protocol {
            repetition_count: elapsed_ms.len() as u32,
            discarded_count: 1,
            statistic: SummaryStatistic::Median,
            stop_below_share: None,
            steady_rule: None,
        },
        repetitions: elapsed_ms.iter().enumerate().map(repetition).collect(),
        notes: Vec::new(),
    }
}

fn trace(elapsed_ms: u64, lost_events: u64) -> Option<RepetitionEvents> {
    Some(RepetitionEvents::Block(BlockTrace {
        timed_parts: vec![TimedPart {
            thread_id: 1,
            started_at: Nanoseconds(5),
            ended_at: Nanoseconds(5) + Nanoseconds::from_millis(elapsed_ms),
        }],
        lost_event_count: lost_events,
        ..BlockTrace::default()
    }))
}

/// Chains of a repetition on one worker that does nothing but run.
fn chains(elapsed_ms: u64, lost_events: u64) -> Option<RepetitionEvents> {
    let recording = KernelRecording {
        lost_event_count: lost_events,
        ..KernelRecording::default()
    };
    let part = TimedPart {
        thread_id: 1,
        started_at: Nanoseconds(5),
        ended_at: Nanoseconds(5) + Nanoseconds::from_millis(elapsed_ms),
    };
    let account = ChainAccount::from_recording(&recording, vec![part], Vec::new());
    account.map(|account| RepetitionEvents::Chains(Box::new(account)))
}

/// A repetition with losses is explained only where there is none without: what is missing in it is
/// unattributed.
#[test]
fn of_repetitions_with_chains_the_median_of_those_with_the_fewest_losses_is_explained() {
    let result = result(&[1, 10, 20, 30]);
    let explained = |events: &[Option<RepetitionEvents>]| {
        let found = find_watched_repetition(&result, events, &[]);
        found.map(|watched| watched.account.elapsed.0 / 1_000_000)
    };
    let mut events = vec![chains(1, 0), chains(10, 0), chains(20, 3), chains(30, 0)];
    assert_eq!(explained(&events), Some(10));
    let said = describe_lost_events(&result, &events).unwrap();
    assert!(said.contains("1 of 3 repetitions lost 3 events") && said.contains("unattributed"));
    events[1] = chains(10, 4);
    events[3] = chains(30, 5);
    assert_eq!(explained(&events), Some(20));
}

#[test]
fn a_repetition_that_lost_events_is_told_and_not_explained() {
    let result = result(&[1, 10, 20, 30]);
    let mut traces = vec![trace(1, 9), trace(10, 0), trace(20, 3), trace(30, 0)];
    let elapsed = |traces: &[Option<RepetitionEvents>]| {
        let found = find_watched_repetition(&result, traces, &[]);
        found.map(|watched| {
            let elapsed = watched.account.elapsed;
            assert_eq!(elapsed, watched.repetition.elapsed_time());
            elapsed.0 / 1_000_000
        })
    };
    assert_eq!(
        elapsed(&traces),
        Some(10),
        "the middle one of two is the first"
    );
    let said = describe_lost_events(&result, &traces).unwrap();
    assert!(
        said.contains("1 of 3 repetitions lost 3 events") && said.contains("--size"),
        "{said}"
    );
    traces[2] = trace(20, 0);
    assert_eq!(elapsed(&traces), Some(20));
    assert_eq!(
        describe_lost_events(&result, &traces),
        None,
        "the discarded one is nobody's"
    );
    for (kept, elapsed_ms) in traces[1..].iter_mut().zip([10, 20, 30]) {
        *kept = trace(elapsed_ms, 1);
    }
    assert_eq!(elapsed(&traces), None);
    assert_eq!(elapsed(&[]), None, "nobody listened");
}

#[test]
fn a_repetition_whose_events_are_contradicted_is_told_and_not_explained() {
    let mut result = result(&[1, 10, 20, 30]);
    let traces = vec![trace(1, 0), trace(10, 0), trace(20, 0), trace(30, 0)];
    let elapsed = |result: &ProgramResult| {
        let found = find_watched_repetition(result, &traces, &[]);
        found.map(|watched| watched.account.elapsed.0 / 1_000_000)
    };
    assert_eq!(
        (elapsed(&result), describe_disagreement(&result, &traces)),
        (Some(20), None)
    );
    let mut contradict = |number: usize, cpu_ms| {
        let worker = &mut result.repetitions[number].workers[0];
        worker.cpu_time = Nanoseconds::from_millis(cpu_ms);
        (
            elapsed(&result),
            describe_disagreement(&result, &traces).unwrap(),
        )
    };
    let (middle, said) = contradict(2, 2);
    assert_eq!(middle, Some(10));
    assert!(said.contains("not sure: in 1 of 3 repetitions"), "{said}");
    assert!(
        said.contains("100 % of the time on a processor, by the accounting 10 %"),
        "{said}"
    );
    contradict(1, 0);
    let (none, said) = contradict(3, 1);
    assert_eq!(none, None);
    assert!(said.contains("the ledger is from counters"), "{said}");
}
