//! An account of a trace made by hand.

use super::{TimeAccount, verdict::write_verdict};
use diskperf_timeline::trace::{
    ArmWork, CountedBusy, DiskPosition, Position, RequestPurpose, TracedArm, TracedBusy,
    TracedDrive, TracedProcess, TracedRequest, TracedWork,
};
use diskperf_timeline::{Deadline, DieBusy, Nanoseconds, Span, Stage, Trace};

const MS: u64 = 1_000_000;

fn at(ms: u64) -> Nanoseconds {
    Nanoseconds(ms * MS)
}

fn spans(ends: &[(Stage, u64)]) -> Vec<Span> {
    let span = |(stage, until): &(Stage, u64)| Span {
        stage: *stage,
        stage_end: at(*until),
    };
    ends.iter().map(span).collect()
}

fn process(number: u32, opened: u64, ends: &[(Stage, u64)]) -> TracedProcess {
    TracedProcess {
        process_number: number,
        account_start: at(opened),
        spans: spans(ends),
        processor_work: Vec::new(),
    }
}

/// A drive of 10 ms a revolution; one request that misses its sector by 3 ms.
fn trace(processes: Vec<TracedProcess>) -> Trace {
    let missed = Stage::MissedRevolution(Deadline::Search);
    Trace {
        is_on_rig: false,
        drives: vec![TracedDrive {
            revolution_ns: 10e6,
            rotational_phase: 0.0,
            sector_bytes: 512,
            has_bus_link: false,
        }],
        requests: vec![TracedRequest {
            drive_index: 0,
            sector: 0,
            sector_count: 16,
            is_fua: false,
            purpose: RequestPurpose::Read,
            media_position: Some(Position::Disk(DiskPosition {
                cylinder: 0,
                head: 0,
                slot: 0,
                slots: 32,
            })),
            issued_at: at(10),
            spans: spans(&[
                (Stage::Driver, 12),
                (missed, 19),
                (Stage::MediaTransfer, 24),
            ]),
            buffer_uses: Vec::new(),
        }],
        processes,
        handler_work: vec![TracedWork {
            stage: Stage::Interrupt,
            work_start: at(15),
            work_end: at(16),
            own_time: at(1),
            slowdown_time: at(0),
        }],
        controller_kinds: vec![Some(CountedBusy::Channel)],
        busy_samples: [(0, 0, 0), (40, 29, 10)]
            .map(|(moment, processor, channel)| TracedBusy {
                sample_time: at(moment),
                processor_busy: at(processor),
                handlers_busy: at(processor / 29),
                bus_busy: at(0),
                controllers_busy: vec![at(channel)],
                flash_busy: Vec::new(),
            })
            .to_vec(),
        clock_ticks: Vec::new(),
        flash_traces: Vec::new(),
        arm_traces: Vec::new(),
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
    let account = TimeAccount::from_trace(&trace(vec![process(1, 0, &ends)])).expect("a program");
    assert_eq!(account.elapsed, at(40));
    assert_eq!(account.ledger.total_duration(), at(40));
    assert_eq!(account.ledger.stage_duration(Stage::Copy), at(16));
    assert!(account.program_ledgers.is_empty());
    let found = &account.missed_deadlines[0];
    assert_eq!((found.missed_count, found.lost_ns), (1, 7 * MS));
    assert_eq!(found.late_median_ns, Some(3 * MS));
    let used = &account.utilisation;
    assert_eq!(used.processor_share, Some(29.0 / 40.0));
    assert_eq!(used.controller_shares[0].busy_share, 0.25);
    assert_eq!(used.drive_shares, [12.0 / 40.0]);
    // The handler alone worked while the drive did.
    assert_eq!(used.processor_and_drive_share, Some(1.0 / 40.0));
    assert_eq!(account.drive_accounts[0].idle_time, at(28));
    let words = write_verdict(&account).join(" ");
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
fn the_ledger_follows_the_last_running_program() {
    let one = process(1, 0, &[(Stage::User, 20), (Stage::Copy, 30)]);
    let two = process(2, 25, &[(Stage::Seek, 35), (Stage::Copy, 40)]);
    let account = TimeAccount::from_trace(&trace(vec![one, two])).expect("programs");
    assert_eq!(account.elapsed, at(40));
    let booked = |stage| account.ledger.stage_duration(stage);
    assert_eq!(booked(Stage::User), at(20));
    assert_eq!(booked(Stage::Copy), at(5 + 5));
    assert_eq!(booked(Stage::Seek), at(10));
    assert_eq!(account.program_ledgers.len(), 2);
    assert_eq!(account.program_ledgers[1].ledger.total_duration(), at(15));
}

#[test]
fn without_a_program_there_is_no_account() {
    assert_eq!(TimeAccount::from_trace(&trace(Vec::new())), None);
}

/// A disk of 10 ms a revolution that is written to: two writes wait for the 20 ms that its arm
/// destages, it reads ahead for 5 ms more, and its link carries data for `link_ms`.
fn with_arm(link_ms: u64) -> Trace {
    let write = |issued: u64, ends: &[(Stage, u64)]| TracedRequest {
        issued_at: at(issued),
        spans: spans(ends),
        ..trace(Vec::new()).requests[0].clone()
    };
    let arm = |work, from, ends: &[(Stage, u64)]| TracedArm {
        drive_index: 0,
        arm_work: work,
        sector: 0,
        sector_count: 16,
        arm_position: DiskPosition::default(),
        work_start: at(from),
        spans: spans(ends),
    };
    let mut found = trace(vec![process(1, 0, &[(Stage::Destage, 40)])]);
    found.drives[0].has_bus_link = true;
    found.handler_work.clear();
    let crosses = (Stage::BusTransfer, link_ms);
    found.requests = vec![
        write(0, &[crosses]),
        write(0, &[(Stage::Destage, 20)]),
        write(0, &[(Stage::Destage, 20)]),
    ];
    let destage = [(Stage::Seek, 5), (Stage::RotationalLatency, 10)];
    let passes = [(Stage::MediaTransfer, 20)];
    found.arm_traces = vec![
        arm(ArmWork::Destage, 0, &[&destage[..], &passes[..]].concat()),
        arm(ArmWork::ReadAhead, 30, &[(Stage::MediaTransfer, 35)]),
    ];
    found
}

#[test]
fn a_shared_wait_counts_once() {
    let account = TimeAccount::from_trace(&with_arm(2)).expect("a program");
    let drive = &account.drive_accounts[0];
    assert_eq!(drive.time_parts.destage_time, at(20));
    assert_eq!(drive.time_parts.read_ahead_time, at(5));
    assert_eq!(drive.time_parts.gap_passing_time, at(15));
    assert_eq!(drive.idle_time, at(15));
    assert_eq!(account.utilisation.drive_shares, [25.0 / 40.0]);
    assert_eq!(account.utilisation.link_shares, [2.0 / 40.0]);
    let words = write_verdict(&account).join(" ");
    let each = "0.67 destaging from the drive's buffer, 0.17 reading ahead, 0.50 the drive idle";
    assert!(words.contains(each), "{words}");
}

#[test]
fn a_link_that_is_never_idle_is_named() {
    let account = TimeAccount::from_trace(&with_arm(40)).expect("a program");
    let words = write_verdict(&account).join(" ");
    let bus = "Bottleneck: the link of drive 1, busy 100 % of the time";
    assert!(words.contains(bus), "{words}");
}

/// Two reads at a time: the second waits 20 ms in the queue of the drive while the first is
/// served. The program's own time has none of that in it; the requests' has.
fn two_at_a_time() -> Trace {
    let read = |issued: u64, ends: &[(Stage, u64)]| TracedRequest {
        issued_at: at(issued),
        spans: spans(ends),
        ..trace(Vec::new()).requests[0].clone()
    };
    let served = [(Stage::Seek, 10), (Stage::RotationalLatency, 20)];
    let behind = [
        (Stage::ControllerQueue, 20),
        (Stage::Seek, 24),
        (Stage::RotationalLatency, 40),
    ];
    let own = [&served[..], &behind[1..]].concat();
    let mut found = trace(vec![process(1, 0, &own)]);
    found.requests = vec![read(0, &served), read(0, &behind)];
    found
}

#[test]
fn stages_sum_to_the_response_time() {
    let account = TimeAccount::from_trace(&two_at_a_time()).expect("a program");
    assert_eq!(account.ledger.stage_duration(Stage::ControllerQueue), at(0));
    let response = account
        .response_account
        .as_ref()
        .expect("two were under way");
    assert_eq!(response.request_count, 2);
    assert_eq!(response.ledger.total_duration(), at(60));
    assert_eq!(
        response.ledger.stage_duration(Stage::ControllerQueue),
        at(20)
    );
    assert_eq!(response.ledger.stage_duration(Stage::Seek), at(14));
    assert_eq!(response.mean_ns(), 30e6);
    assert_eq!(response.in_flight_mean, 1.5);
    let words = write_verdict(&account).join(" ");
    let each = "With 1.5 requests in flight on average, a request takes 30.0 ms: 10.0 ms (33 %) in queues behind others; then 13.0 ms rotational latency, 7.00 ms seek.";
    assert!(words.contains(each), "{words}");
}

#[test]
fn a_queue_that_dominates_is_the_cause() {
    let mut found = two_at_a_time();
    let third = TracedRequest {
        spans: spans(&[(Stage::ControllerQueue, 40)]),
        ..found.requests[1].clone()
    };
    found.requests.extend([third.clone(), third]);
    let words = write_verdict(&TimeAccount::from_trace(&found).expect("a program")).join(" ");
    let each = "Queueing dominates the response time: with 3.5 in flight on average, a request takes 35.0 ms, 25.0 ms of it (71 %)";
    assert!(words.contains(each), "{words}");
}

/// One at a time, the program's account says all of it; what nobody waits for is no request
/// of anybody.
#[test]
fn requests_one_at_a_time_have_no_account_of_their_own() {
    let mut found = two_at_a_time();
    found.requests[0].purpose = RequestPurpose::WriteBehind;
    assert_eq!(
        TimeAccount::from_trace(&found)
            .expect("a program")
            .response_account,
        None
    );
    let mut found = two_at_a_time();
    found.requests[1].issued_at = at(20);
    found.requests[1].spans.remove(0);
    assert_eq!(
        TimeAccount::from_trace(&found)
            .expect("a program")
            .response_account,
        None
    );
}

/// A read that one stage lasts a nanosecond for.
fn read(sector: u64, from: u64, stage: Stage) -> TracedRequest {
    TracedRequest {
        sector,
        issued_at: at(from),
        spans: spans(&[(stage, from + 1)]),
        ..trace(Vec::new()).requests[0].clone()
    }
}

/// Of four reads the buffer answers two: one of what the arm read on to, one from before.
#[test]
fn reads_of_the_buffer_are_counted_by_where_they_come_from() {
    let mut found = with_arm(2);
    found.requests = vec![
        read(0, 0, Stage::MediaTransfer),
        read(1000, 2, Stage::CacheHit),
        read(500, 4, Stage::MediaTransfer),
        read(700, 6, Stage::CacheHit),
    ];
    found.arm_traces[1].work_start = at(1);
    found.arm_traces[1].spans = spans(&[(Stage::MediaTransfer, 2)]);
    found.arm_traces[1].sector = 992;
    found.arm_traces[1].sector_count = 64;
    let account = TimeAccount::from_trace(&found).expect("a program");
    let buffered = account.buffer_hits.expect("a disk was read");
    assert_eq!(
        (
            buffered.read_count,
            buffered.buffer_hit_count,
            buffered.read_ahead_hit_count
        ),
        (4, 2, 1)
    );
    let words = write_verdict(&account).join(" ");
    let told = "The drive's cache answers 2 of 4 reads (50 %) at the rate of its link, 1 from read-ahead and 1 from data cached earlier.";
    assert!(words.contains(told), "{words}");
}

/// What the arm read on to after a read was answered had no part in that; and a piece within
/// a longer one hides it not.
#[test]
fn later_read_ahead_serves_no_earlier_read() {
    let mut found = with_arm(2);
    found.requests = vec![
        read(1000, 2, Stage::CacheHit),
        read(1040, 30, Stage::CacheHit),
    ];
    let ahead = |sector, sectors, from: u64| {
        let mut arm = found.arm_traces[1].clone();
        (arm.sector, arm.sector_count, arm.work_start) = (sector, sectors, at(from));
        arm.spans = spans(&[(Stage::MediaTransfer, from + 1)]);
        arm
    };
    found.arm_traces = vec![ahead(992, 64, 10), ahead(996, 4, 11)];
    let buffered = TimeAccount::from_trace(&found)
        .expect("a program")
        .buffer_hits;
    let buffered = buffered.expect("a disk was read");
    assert_eq!(
        (buffered.buffer_hit_count, buffered.read_ahead_hit_count),
        (2, 1)
    );
}

/// Flushes are no requests of the mean, dies that are at work for others are a queue, and
/// where nobody waits no sum of nothing is told.
#[test]
fn queue_stages_and_waiting_requests() {
    let mut found = two_at_a_time();
    let flush = TracedRequest {
        sector_count: 0,
        purpose: RequestPurpose::Write,
        ..found.requests[1].clone()
    };
    found.requests.push(flush);
    let of = |found: &Trace| TimeAccount::from_trace(found).expect("a program");
    assert_eq!(of(&found).response_account.expect("two").request_count, 2);
    found.requests[1].spans = spans(&[(Stage::DieWait(DieBusy::Read), 20), (Stage::FlashRead, 40)]);
    let words = write_verdict(&of(&found)).join(" ");
    assert!(
        words.contains("10.0 ms (33 %) in queues behind others"),
        "{words}"
    );
    found.requests[1].spans = spans(&[(Stage::Seek, 20), (Stage::RotationalLatency, 40)]);
    let words = write_verdict(&of(&found)).join(" ");
    assert!(
        words.contains("a request takes 30.0 ms: 15.0 ms"),
        "{words}"
    );
    assert!(!words.contains("in queues"), "{words}");
}
