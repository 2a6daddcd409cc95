//! An account of a trace made by hand.

use super::{Account, verdict::verdict};
use diskperf_timeline::trace::{
    Counted, DiskPosition, Position, Purpose, TracedBusy, TracedDrive, TracedProcess,
    TracedRequest, TracedWork,
};
use diskperf_timeline::{Deadline, Nanoseconds, Span, Stage, Trace};

const MS: u64 = 1_000_000;

fn at(ms: u64) -> Nanoseconds {
    Nanoseconds(ms * MS)
}

fn spans(ends: &[(Stage, u64)]) -> Vec<Span> {
    let span = |(stage, until): &(Stage, u64)| Span {
        stage: *stage,
        until: at(*until),
    };
    ends.iter().map(span).collect()
}

fn process(number: u32, opened: u64, ends: &[(Stage, u64)]) -> TracedProcess {
    TracedProcess {
        number,
        opened: at(opened),
        spans: spans(ends),
        work: Vec::new(),
    }
}

/// A drive of 10 ms a revolution; one request that misses its sector by 3 ms.
fn trace(processes: Vec<TracedProcess>) -> Trace {
    let missed = Stage::MissedRevolution(Deadline::Search);
    Trace {
        drives: vec![TracedDrive {
            revolution_ns: 10e6,
            phase: 0.0,
            sector_bytes: 512,
        }],
        requests: vec![TracedRequest {
            drive: 0,
            sector: 0,
            sectors: 16,
            purpose: Purpose::Read,
            position: Some(Position::Disk(DiskPosition {
                cylinder: 0,
                head: 0,
                slot: 0,
                slots: 32,
            })),
            issued: at(10),
            spans: spans(&[
                (Stage::Driver, 12),
                (missed, 19),
                (Stage::MediaTransfer, 24),
            ]),
            uses: Vec::new(),
        }],
        processes,
        handlers: vec![TracedWork {
            stage: Stage::Interrupt,
            from: at(15),
            until: at(16),
            own: at(1),
            slowed: at(0),
        }],
        controllers: vec![Some(Counted::Channel)],
        busy: [(0, 0, 0), (40, 29, 10)]
            .map(|(moment, processor, channel)| TracedBusy {
                at: at(moment),
                processor: at(processor),
                handlers: at(processor / 29),
                bus: at(0),
                controllers: vec![at(channel)],
            })
            .to_vec(),
        ticks: Vec::new(),
        flash: Vec::new(),
    }
}

#[test]
fn a_program_by_itself_is_its_ledger() {
    let missed = Stage::MissedRevolution(Deadline::Search);
    let ends = [
        (Stage::User, 10),
        (Stage::Driver, 12),
        (missed, 19),
        (Stage::MediaTransfer, 24),
        (Stage::Copy, 40),
    ];
    let account = Account::of(&trace(vec![process(1, 0, &ends)])).expect("a program");
    assert_eq!(account.elapsed, at(40));
    assert_eq!(account.ledger.total(), at(40));
    assert_eq!(account.ledger.stage(Stage::Copy), at(16));
    assert!(account.programs.is_empty());
    let found = &account.missed[0];
    assert_eq!((found.count, found.ns), (1, 7 * MS));
    assert_eq!(found.late_median_ns, Some(3 * MS));
    let used = &account.utilisation;
    assert_eq!(used.processor, 29.0 / 40.0);
    assert_eq!(used.controllers[0].share, 0.25);
    assert_eq!(used.drives, [12.0 / 40.0]);
    // The handler alone worked while the drive did.
    assert_eq!(used.processor_and_drive, Some(1.0 / 40.0));
    assert_eq!(account.drives[0].idle, at(28));
    let words = verdict(&account).join(" ");
    assert!(
        words.contains("No component is busy all the time"),
        "{words}"
    );
    assert!(
        words.contains("search command is issued 3.00 ms after its deadline"),
        "{words}"
    );
}

#[test]
fn of_several_programs_the_last_to_end_counts_and_then_the_one_before() {
    let one = process(1, 0, &[(Stage::User, 20), (Stage::Copy, 30)]);
    let two = process(2, 25, &[(Stage::Seek, 35), (Stage::Copy, 40)]);
    let account = Account::of(&trace(vec![one, two])).expect("programs");
    assert_eq!(account.elapsed, at(40));
    let booked = |stage| account.ledger.stage(stage);
    assert_eq!(booked(Stage::User), at(20));
    assert_eq!(booked(Stage::Copy), at(5 + 5));
    assert_eq!(booked(Stage::Seek), at(10));
    assert_eq!(account.programs.len(), 2);
    assert_eq!(account.programs[1].ledger.total(), at(15));
}

#[test]
fn without_a_program_there_is_no_account() {
    assert_eq!(Account::of(&trace(Vec::new())), None);
}
