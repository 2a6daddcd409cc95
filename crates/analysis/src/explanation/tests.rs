//! An account of a trace made by hand.

use super::{Account, verdict::verdict};
use diskperf_timeline::trace::{
    ArmWork, Counted, DiskPosition, Position, Purpose, TracedArm, TracedBusy, TracedDrive,
    TracedProcess, TracedRequest, TracedWork,
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
            has_link: false,
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
        arms: Vec::new(),
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

/// A disk of 10 ms a revolution that is written to: two writes wait for the 20 ms that its arm
/// destages, it reads ahead for 5 ms more, and its link carries data for `link_ms`.
fn with_arm(link_ms: u64) -> Trace {
    let write = |issued: u64, ends: &[(Stage, u64)]| TracedRequest {
        issued: at(issued),
        spans: spans(ends),
        ..trace(Vec::new()).requests[0].clone()
    };
    let arm = |work, from, ends: &[(Stage, u64)]| TracedArm {
        drive: 0,
        work,
        sector: 0,
        sectors: 16,
        position: DiskPosition::default(),
        from: at(from),
        spans: spans(ends),
    };
    let mut found = trace(vec![process(1, 0, &[(Stage::Destage, 40)])]);
    found.drives[0].has_link = true;
    found.handlers.clear();
    let crosses = (Stage::BusTransfer, link_ms);
    found.requests = vec![
        write(0, &[crosses]),
        write(0, &[(Stage::Destage, 20)]),
        write(0, &[(Stage::Destage, 20)]),
    ];
    let destage = [(Stage::Seek, 5), (Stage::RotationalLatency, 10)];
    let passes = [(Stage::MediaTransfer, 20)];
    found.arms = vec![
        arm(ArmWork::Destage, 0, &[&destage[..], &passes[..]].concat()),
        arm(ArmWork::ReadAhead, 30, &[(Stage::MediaTransfer, 35)]),
    ];
    found
}

#[test]
fn what_several_wait_for_is_done_once() {
    let account = Account::of(&with_arm(2)).expect("a program");
    let drive = &account.drives[0];
    assert_eq!(drive.parts.destaging, at(20));
    assert_eq!(drive.parts.reading_ahead, at(5));
    assert_eq!(drive.parts.passing, at(15));
    assert_eq!(drive.idle, at(15));
    assert_eq!(account.utilisation.drives, [25.0 / 40.0]);
    assert_eq!(account.utilisation.links, [2.0 / 40.0]);
    let words = verdict(&account).join(" ");
    let each = "0.67 writing from the drive's buffer, 0.17 reading ahead, 0.50 the drive idle";
    assert!(words.contains(each), "{words}");
}

#[test]
fn a_link_that_is_never_idle_is_named() {
    let account = Account::of(&with_arm(40)).expect("a program");
    let words = verdict(&account).join(" ");
    let bus = "Bottleneck: the bus between host and drive 1, busy 100 % of the time";
    assert!(words.contains(bus), "{words}");
}
