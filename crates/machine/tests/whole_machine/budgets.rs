//! What a machine may take, and what it says when it took more. Nothing is timed.

use super::*;
use diskperf_machine::{ExceededLimit, RunBudget, RunEndReason};

/// A machine that one process works on for some seconds of its time.
fn ended_by(
    specification: &MachineSpecification,
    budget: RunBudget,
    trace: bool,
) -> (Time, Result<(), RunEndReason>) {
    let circumstances = RunConditions {
        budget,
        records_trace: trace,
        ..RunConditions::default()
    };
    let machine = Machine::build(specification, circumstances);
    start(&machine, 0, async |session: &mut Session| {
        make(session, "/mnt0/file", 100).await
    });
    let outcome = machine.run_to_end();
    (machine.current_time(), outcome)
}

#[test]
fn events_beyond_the_budget_end_a_run_at_the_same_moment_each_time() {
    let specification = specification(SC780, &[]);
    let budget = RunBudget {
        event_count_max: 500,
        ..RunBudget::UNLIMITED
    };
    let (at, outcome) = ended_by(&specification, budget, false);
    let Err(RunEndReason::LimitExceeded(exceeded)) = outcome.clone() else {
        panic!("{outcome:?}")
    };
    let ExceededLimit::Events { events, time, .. } = exceeded else {
        panic!("{exceeded}")
    };
    assert!((501..1000).contains(&events), "{events}");
    assert_eq!(time, at, "the machine had done nothing before");
    let text = exceeded.to_string();
    assert!(
        text.contains("--no-budget") && text.contains("events"),
        "{text}"
    );
    assert_eq!(ended_by(&specification, budget, false), (at, outcome));
}

/// Repetitions, and machines one after the other, have one budget.
#[test]
fn one_budget_holds_for_all_runs_of_all_machines_of_a_command() {
    let specification = specification(SC780, &[]);
    let run = |machine: &Machine, number: usize| {
        start(machine, 0, async move |session: &mut Session| {
            make(session, &format!("/mnt0/file{number}"), 100).await
        });
        machine.run_to_end()
    };
    let unlimited = Machine::build(&specification, RunConditions::default());
    run(&unlimited, 0).expect("the usual budget is enough");
    // Enough for two runs, and not for a third.
    let budget = RunBudget {
        event_count_max: 5 * unlimited.event_count() / 2,
        ..RunBudget::UNLIMITED
    };
    let circumstances = RunConditions {
        budget,
        ..RunConditions::default()
    };
    let machine = Machine::build(&specification, circumstances);
    let outcomes = [0, 1, 2].map(|number| run(&machine, number).is_ok());
    assert_eq!(outcomes, [true, true, false]);
    let mut events_before = 0;
    let outcomes = [0, 1, 2].map(|_| {
        let machine = Machine::build(
            &specification,
            RunConditions {
                earlier_event_count: events_before,
                ..circumstances
            },
        );
        let outcome = run(&machine, 0);
        assert!(machine.event_count() > events_before);
        events_before = machine.event_count();
        outcome.is_ok()
    });
    assert_eq!(outcomes, [true, true, false]);
}

/// The kernel's time is what passes, and the message says so.
#[test]
fn virtual_time_beyond_the_budget_is_told_with_what_took_it() {
    let slow = specification(SC780, &[("kernel.system_call_ms", "5000")]);
    let budget = RunBudget {
        virtual_time_max: Time::from_millis(60_000),
        ..RunBudget::UNLIMITED
    };
    let (at, outcome) = ended_by(&slow, budget, false);
    let Err(RunEndReason::LimitExceeded(exceeded)) = outcome else {
        panic!("{outcome:?}")
    };
    let tick = Time(1_000_000_000 / 100);
    assert_eq!(
        at,
        budget.virtual_time_max + tick,
        "the first tick after it"
    );
    let text = exceeded.to_string();
    assert!(
        text.contains("60.0 seconds") && text.contains("system_call (the kernel's times"),
        "{text}"
    );
}

/// What is recorded is memory, and is counted while it grows.
#[test]
fn memory_of_a_record_ends_a_run() {
    let specification = specification(SC780, &[]);
    let built = specification.memory_requirement(1).total_bytes();
    let budget = RunBudget {
        memory_bytes_max: built + 100_000,
        ..RunBudget::UNLIMITED
    };
    let (_, unrecorded) = ended_by(&specification, budget, false);
    assert_eq!(unrecorded, Ok(()));
    let (_, outcome) = ended_by(&specification, budget, true);
    let Err(RunEndReason::LimitExceeded(ExceededLimit::Memory { bytes, recorded })) = outcome
    else {
        panic!("{outcome:?}")
    };
    // A vector grows to at most twice its length at a time.
    assert!(bytes > budget.memory_bytes_max && bytes < budget.memory_bytes_max + 300_000);
    assert!(recorded > 100_000);
}

#[test]
fn what_a_machine_is_built_with_is_known_before() {
    let case = |system: &str, settings: &[(&str, &str)]| {
        let memory = specification(system, settings).memory_requirement(1);
        memory
            .require_within_budget(RunBudget::DEFAULT)
            .map_err(|exceeded| {
                assert!(exceeded.is_known_before_run());
                exceeded.to_string()
            })
    };
    assert_eq!(case(SC780, &[]), Ok(()));
    let large = [
        ("drive.cylinders", "1000000"),
        ("drive.heads", "16"),
        ("drive.sectors_per_track", "255"),
        ("drive.partition_sectors", "2147483647"),
        ("filesystem.cylinders_per_group", "8"),
    ];
    let refused = case(SC780, &large).expect_err("a file system of a tebibyte");
    assert!(
        refused.contains("drive.partition_sectors") && refused.contains("--no-budget"),
        "{refused}"
    );
    // Of a drive by itself, nothing is kept before it is written.
    let by_itself = [&large[..], &[("filesystem", "none")]].concat();
    assert_eq!(case(SC780, &by_itself), Ok(()));
    let cached = [("kernel.cache_blocks", "1000000")];
    assert_eq!(case("atarist-supra", &cached), Ok(()));
    // Who sets something has less, however much is asked of it.
    let memory = specification("atarist-supra", &cached).memory_requirement(1);
    let refused = memory.require_within_budget(RunBudget::with_settings(u64::MAX));
    let refused = refused.expect_err("a cache of a gibibyte").to_string();
    assert!(refused.contains("kernel.cache_blocks"), "{refused}");
}

/// A budget that is not reached is not seen.
#[test]
fn results_do_not_hang_on_the_budget() {
    let specification = specification(SC780, &[]);
    let of = |budget| ended_by(&specification, budget, true);
    assert_eq!(of(RunBudget::DEFAULT), of(RunBudget::UNLIMITED));
}

/// No time of a drive is too long for what is asserted of all drives: the last
/// transfer of one that turns once a second may go on for longer than that.
#[test]
fn a_slow_drive_may_be_at_its_last_transfer_when_a_run_ends() {
    const SLOW: [&[(&str, &str)]; 4] = [
        &[("drive.spindle_rpm", "60")],
        &[("drive.head_switch_ms", "1000")],
        &[
            ("drive.settle_ms", "1000"),
            ("drive.write_settle_ms", "1000"),
        ],
        &[
            ("drive.seek_minimum_ms", "4000"),
            ("drive.seek_average_ms", "4000"),
            ("drive.seek_maximum_ms", "4000"),
        ],
    ];
    for settings in SLOW {
        for system in [SC780, UDA50, "sun3-rimfire-2344", "sun3-cheetah-2344"] {
            let machine = machine(&specification(system, settings));
            run(&machine, async |session| {
                // Written behind, and read ahead.
                let file = session
                    .open_path("/mnt0/file", CREATE)
                    .await
                    .expect("a file");
                for _ in 0..4 {
                    assert_eq!(session.write(file, &[7; BLOCK]).await, Ok(BLOCK));
                }
                session.close(file).await.expect("it is open");
            });
            run(&machine, async |session| {
                read(session, "/mnt0/file").await;
            });
        }
    }
}
