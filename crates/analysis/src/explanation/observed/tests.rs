//! Accounts of events made by hand.

use super::{build_account, build_trace, find_cpu_share_disagreement};
use crate::explanation::{TimeAccount, ValueQuantiles};
use diskperf_timeline::block::{
    BlockOperation, BlockRequest, SchedulingState, ThreadSwitch, TimedPart,
};
use diskperf_timeline::{BlockTrace, Nanoseconds, Repetition, Stage, WorkerMeasure};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

fn request(operation: BlockOperation, [queued, issued, completed]: [u64; 3]) -> BlockRequest {
    BlockRequest {
        device_index: 0,
        operation,
        sector: 8,
        bytes: 4096,
        queued_at: Nanoseconds(queued),
        issued_at: Nanoseconds(issued),
        completed_at: Nanoseconds(completed),
    }
}

fn switch(at: u64, to: SchedulingState) -> ThreadSwitch {
    ThreadSwitch {
        switch_time: Nanoseconds(at),
        thread_id: 17,
        new_state: to,
    }
}

fn block(requests: Vec<BlockRequest>, switches: Vec<ThreadSwitch>) -> BlockTrace {
    BlockTrace {
        devices: vec!["vda".to_owned()],
        requests,
        timed_parts: vec![TimedPart {
            thread_id: 17,
            started_at: Nanoseconds(100),
            ended_at: Nanoseconds(1100),
        }],
        thread_switches: switches,
        lost_event_count: 0,
    }
}

fn booked(account: &TimeAccount) -> Vec<(Stage, u64)> {
    let entries = account.ledger.entries().iter();
    entries
        .map(|entry| (entry.stage, entry.duration.0))
        .collect()
}

/// A worker that reads once: every rule, one after the other.
#[test]
fn each_instant_is_booked_once() {
    use SchedulingState::{Preempted, Running, Waiting, Woken};
    let found = block(
        vec![request(BlockOperation::Read, [150, 300, 700])],
        vec![
            // Before it began, and another thread: nobody's.
            switch(50, Waiting),
            ThreadSwitch {
                thread_id: 18,
                ..switch(120, Waiting)
            },
            switch(200, Waiting),
            switch(750, Woken),
            switch(800, Running),
            switch(900, Preempted),
            switch(950, Running),
            // Woken in the middle of running.
            switch(1000, Woken),
        ],
    );
    let account = build_account(&found).unwrap();
    assert_eq!(
        booked(&account),
        [
            (Stage::SystemCall, 100 + 100 + 150),
            (Stage::CpuWait, 50 + 50),
            (Stage::DriverQueue, 100),
            (Stage::Device, 400),
            (Stage::Unattributed, 50),
        ]
    );
    assert_eq!(account.elapsed, Nanoseconds(1000));
    assert_eq!(account.utilisation.processor_share, Some(0.35));
    assert_eq!(account.utilisation.drive_shares, [0.4]);
    assert_eq!(account.utilisation.processor_and_drive_share, Some(0.0));
    assert_eq!(
        (
            account.utilisation.bus_share,
            account.utilisation.handler_share
        ),
        (None, None)
    );
    let device = &account.device_accounts[0];
    assert_eq!(device.in_queue_mean, Some(0.15));
    assert_eq!(device.at_device_mean, Some(0.4));
    assert_eq!(device.at_device_max, Some(1));
    let [read] = &device.operation_accounts[..] else {
        panic!("{device:?}")
    };
    let all = |value| ValueQuantiles {
        median: value,
        p99: value,
        max: value,
    };
    assert_eq!((read.request_count, read.total_bytes), (1, 4096));
    assert_eq!((read.queue_ns, read.device_ns), (all(150), all(400)));
}

#[test]
fn a_device_that_works_while_the_program_does_shows_in_the_utilisation_alone() {
    let found = block(
        vec![request(BlockOperation::ReadAhead, [0, 50, 600])],
        Vec::new(),
    );
    let account = build_account(&found).unwrap();
    assert_eq!(
        account.ledger.stage_duration(Stage::SystemCall),
        Nanoseconds(1000)
    );
    assert_eq!(account.utilisation.drive_shares, [0.5]);
    assert_eq!(account.utilisation.processor_and_drive_share, Some(0.5));
    assert_eq!(account.device_accounts[0].in_queue_mean, Some(0.0));
}

#[test]
fn a_trace_with_lost_events_has_no_account() {
    let mut found = block(Vec::new(), Vec::new());
    assert!(build_account(&found).is_some());
    found.lost_event_count = 1;
    assert_eq!(build_account(&found), None);
}

/// Whatever the events, the parts are the whole.
#[test]
fn the_ledger_sums_to_the_elapsed_time() {
    let seed = 20_261_121;
    eprintln!("seed {seed}");
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut below = |limit: u64| random.next_u64() % limit;
    for _ in 0..300 {
        let mut requests = Vec::new();
        for _ in 0..below(20) {
            let queued = below(1300);
            let issued = queued + below(200);
            requests.push(request(
                BlockOperation::Write,
                [queued, issued, issued + below(300)],
            ));
        }
        requests.sort_by_key(|one| one.completed_at);
        let kinds = [
            SchedulingState::Running,
            SchedulingState::Preempted,
            SchedulingState::Waiting,
            SchedulingState::Woken,
        ];
        let mut switches = Vec::new();
        for _ in 0..below(20) {
            switches.push(switch(below(1300), kinds[below(4) as usize]));
        }
        switches.sort_by_key(|switch| switch.switch_time);
        let found = block(requests, switches);
        let account = build_account(&found).unwrap();
        assert_eq!(
            account.ledger.total_duration(),
            Nanoseconds(1000),
            "{found:?}"
        );
        assert_eq!(
            build_trace(&found).processes[0].account_end(),
            Nanoseconds(1100)
        );
        assert!(account.utilisation.drive_shares[0] <= 1.0);
        let mean = account.device_accounts[0].at_device_mean.unwrap();
        assert!(
            mean + 1e-9 >= account.utilisation.drive_shares[0],
            "{found:?}"
        );
    }
}

#[test]
fn events_and_accounting_have_to_agree() {
    // Half of the time on a processor.
    let found = block(
        Vec::new(),
        vec![
            switch(600, SchedulingState::Waiting),
            switch(1090, SchedulingState::Woken),
        ],
    );
    for (cpu_ns, apart) in [
        (500, false),
        (460, false),
        (540, false),
        (400, true),
        (990, true),
    ] {
        let repetition = Repetition {
            workers: vec![WorkerMeasure {
                elapsed_time: Nanoseconds(1000),
                cpu_time: Nanoseconds(cpu_ns),
                ..WorkerMeasure::default()
            }],
            ..Repetition::default()
        };
        let disagreement = find_cpu_share_disagreement(&found, &repetition);
        assert_eq!(disagreement.is_some(), apart, "{cpu_ns}: {disagreement:?}");
        if let Some(found) = disagreement {
            assert_eq!(
                (found.cpu_share_from_events, found.cpu_share_from_accounting),
                (0.5, cpu_ns as f64 / 1000.0)
            );
        }
    }
}

/// The kernel does not record that the thread got a processor at 410.
#[test]
fn a_thread_that_leaves_a_processor_had_one() {
    use SchedulingState::{Running, Waiting, Woken};
    let found = block(
        Vec::new(),
        vec![
            switch(200, Waiting),
            switch(400, Woken),
            switch(450, Woken),
            switch(700, Waiting),
            switch(800, Woken),
            switch(850, Running),
        ],
    );
    let account = build_account(&found).unwrap();
    assert_eq!(
        booked(&account),
        [
            (Stage::SystemCall, 100 + 300 + 250),
            (Stage::CpuWait, 50),
            (Stage::Unattributed, 200 + 100),
        ]
    );
}
