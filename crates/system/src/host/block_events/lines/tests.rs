//! Lines as kernels print them.

use super::*;

const THREADS: &str = "dpio-4711";

fn block(line: &str) -> BlockEvent {
    match parse_line(line.as_bytes(), THREADS) {
        Ok(Some(TraceLine::BlockLayerEvent(event))) => event,
        other => panic!("{line}: {other:?}"),
    }
}

fn switched(line: &str) -> Vec<ThreadSwitch> {
    match parse_line(line.as_bytes(), THREADS) {
        Ok(Some(TraceLine::ThreadSwitches(all))) => all.into_iter().flatten().collect(),
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn events_of_devices_are_read_whoever_is_running() {
    // Linux 6.18; a name with blanks, and one with all sixteen columns' worth.
    let queued = "              dd-22659   [001] ..... 69938.039176: block_bio_queue: 254,0 RS 319348736 + 2048 [dd]";
    let expected = BlockEvent {
        time: Nanoseconds(69_938_039_176_000),
        step: BioStep::BioQueued,
        device: DeviceNumber {
            major: 254,
            minor: 0,
        },
        operation: BlockOperation::Read,
        sector: 319_348_736,
        sector_count: 2048,
    };
    assert_eq!(block(queued), expected);
    let issued = "    kworker/1:0H-28710   [001] ..... 69938.040599: block_rq_issue: 254,0 RS 8192 () 319350768 + 16 be,0,4 [kworker/1:0H]";
    assert_eq!(
        block(issued),
        BlockEvent {
            time: Nanoseconds(69_938_040_599_000),
            step: BioStep::RequestIssued,
            sector: 319_350_768,
            sector_count: 16,
            ..expected
        }
    );
    // Linux 5.10 has no priority there.
    let older = "      opt cgu.01-22638   [001] .Ns.. 69938.041876: block_rq_complete: 254,0 RA () 319350784 + 2032 [0]";
    assert_eq!(
        block(older),
        BlockEvent {
            time: Nanoseconds(69_938_041_876_000),
            step: BioStep::RequestCompleted,
            operation: BlockOperation::ReadAhead,
            sector: 319_350_784,
            sector_count: 2032,
            ..expected
        }
    );
    let requeued = "    a [x] 1.2: b-22659   [001] ..... 69938.039851: block_rq_requeue: 254,0 W () 319350768 + 16 be,0,4 [0]";
    let requeued = block(requeued);
    assert_eq!(
        (requeued.step, requeued.operation),
        (BioStep::RequestRequeued, BlockOperation::Write)
    );
}

#[test]
fn what_moves_no_data_is_nowhere() {
    let line = "           cargo-21478   [001] ..s.. 69938.052138: block_rq_complete: 254,0 FF () 18446744073709551615 + 0 none,0,0 [0]";
    let event = block(line);
    assert_eq!(
        (event.operation, event.sector, event.sector_count),
        (BlockOperation::Flush, 0, 0)
    );
}

#[test]
fn letters_stand_for_operations() {
    for (letters, expected) in [
        ("R", BlockOperation::Read),
        ("RM", BlockOperation::Read),
        ("RA", BlockOperation::ReadAhead),
        ("RAM", BlockOperation::ReadAhead),
        ("W", BlockOperation::Write),
        ("WSM", BlockOperation::Write),
        ("FWFS", BlockOperation::Write),
        ("FF", BlockOperation::Flush),
        ("F", BlockOperation::Flush),
        ("DS", BlockOperation::Discard),
        ("N", BlockOperation::Other),
        ("", BlockOperation::Other),
    ] {
        assert_eq!(parse_operation(letters), expected, "{letters}");
    }
}

#[test]
fn our_threads_are_followed_and_no_others() {
    let gone = "       dpio-4711-4713    [001] d..2. 5.000381: sched_switch: prev_comm=dpio-4711 prev_pid=4713 prev_prio=120 prev_state=D ==> next_comm=opt cgu.01 next_pid=22638 next_prio=120";
    let at = Nanoseconds(5_000_381_000);
    let switch = |thread, to| ThreadSwitch {
        switch_time: at,
        thread_id: thread,
        new_state: to,
    };
    assert_eq!(switched(gone), [switch(4713, SchedulingState::Waiting)]);
    let preempted = gone.replace("prev_state=D", "prev_state=R+");
    assert_eq!(
        switched(&preempted),
        [switch(4713, SchedulingState::Preempted)]
    );
    let both = gone.replace("opt cgu.01 next_pid=22638", "dpio-4711 next_pid=4714");
    assert_eq!(
        switched(&both),
        [
            switch(4713, SchedulingState::Waiting),
            switch(4714, SchedulingState::Running)
        ]
    );
    let woken = "      opt cgu.01-22638   [001] d.s2. 5.000381: sched_waking: comm=dpio-4711 pid=4713 prio=120 target_cpu=001";
    assert_eq!(switched(woken), [switch(4713, SchedulingState::Woken)]);
    assert_eq!(switched(&woken.replace("dpio-4711", "dpio-47")), []);
}

#[test]
fn charges_are_of_our_threads() {
    let line = "       dpio-4711-4713    [001] d..2. 7021.519545: sched_stat_runtime: comm=dpio-4711 pid=4713 runtime=6580 [ns]";
    let expected = CpuCharge {
        time: Nanoseconds(7_021_519_545_000),
        thread_id: 4713,
        cpu_time: Nanoseconds(6580),
    };
    // Linux 5.10 says the virtual time too.
    for line in [line.to_owned(), format!("{line} vruntime=17 [ns]")] {
        let read = parse_line(line.as_bytes(), THREADS).unwrap();
        assert_eq!(read, Some(TraceLine::CpuCharge(expected)));
    }
    assert_eq!(parse_line(line.as_bytes(), "dpio-47").unwrap(), None);
}

#[test]
fn remarks_are_passed_over_and_what_is_not_understood_is_an_error() {
    for remark in ["", "# tracer: nop", "#"] {
        assert_eq!(parse_line(remark.as_bytes(), THREADS).unwrap(), None);
    }
    let other = "              dd-22659   [001] ..... 69938.039180: block_split: 254,0 RS 319348736 / 319350768 [dd]";
    assert_eq!(parse_line(other.as_bytes(), THREADS).unwrap(), None);
    for broken in [
        "CPU:0 [LOST 17 EVENTS]",
        "              dd-22659   [001] ..... 69938.039: block_bio_queue: 254,0 RS 319348736 + 2048 [dd]",
        "              dd-22659   [001] ..... 69938.039176: block_bio_queue: 254,0 RS + 2048 [dd]",
        "              dd-22659   [001] ..... 69938.039176: block_rq_issue: 254,0 RS 8192 () x + 16 [dd]",
        "short",
    ] {
        let error = parse_line(broken.as_bytes(), THREADS)
            .unwrap_err()
            .to_string();
        assert!(error.contains(broken), "{error}");
    }
}
