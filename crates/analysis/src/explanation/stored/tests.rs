//! Accounts of stored repetitions.

use super::{build_account, describe_source};
use crate::explanation::processor;
use crate::explanation::verdict::{sort_own_requests_first, write_storage_verdict};
use crate::explanation::{DeviceAccount, OperationAccount, ValueQuantiles};
use crate::fixtures::{build_result, build_seqread_result, read_repetition, write_repetition};
use crate::layers::decompose;
use diskperf_timeline::block::BlockOperation;
use diskperf_timeline::units::MIB;
use diskperf_timeline::{DeviceTraffic, Nanoseconds, Stage};

/// 64 MiB at 64 MiB/s: a second, of which 30 % are the processor's.
fn second() -> diskperf_timeline::Repetition {
    read_repetition(64 * MIB, 65_536.0, 30.0)
}

#[test]
fn counters_tell_of_the_processor_and_the_rest_is_not_attributed() {
    let mut repetition = second();
    repetition.workers[0].cpu_wait_time = Some(Nanoseconds::from_millis(50));
    repetition.devices.push(DeviceTraffic {
        device_name: "vda".to_owned(),
        read_bytes: 64 * MIB,
        written_bytes: 0,
        busy_ms: 600,
        ..DeviceTraffic::default()
    });
    let read = build_result("read_8192", 0, vec![repetition]);
    let found = build_account(&read, &[]).unwrap();
    let stage = |stage| found.ledger.stage_duration(stage).0 / 1_000_000;
    assert_eq!(found.elapsed, Nanoseconds(1_000_000_000));
    assert_eq!(found.ledger.total_duration(), found.elapsed);
    assert_eq!((stage(Stage::User), stage(Stage::SystemCall)), (30, 270));
    assert_eq!(
        (stage(Stage::CpuWait), stage(Stage::Unattributed)),
        (50, 650)
    );
    assert_eq!(stage(Stage::Device), 0);
    assert_eq!(found.utilisation.drive_shares, [0.6]);
    let said = write_storage_verdict(&found, &read.repetitions[0]).join(" ");
    for part in [
        "vda 60 %, the processor 30 %",
        "Each of 8192 calls of 8 KiB takes 122 µs on average: 79.3 µs unattributed, 33.0 µs system call",
        "For 65 % of the time the program waits for something that was not recorded",
    ] {
        assert!(said.contains(part), "`{part}` is not in: {said}");
    }
}

#[test]
fn ticks_that_are_too_few_divide_nothing() {
    let short = build_result("read_8192", 0, vec![read_repetition(MIB, 65_536.0, 30.0)]);
    let found = build_account(&short, &[]).unwrap();
    assert_eq!(
        found.ledger.stage_duration(Stage::Unattributed),
        found.elapsed
    );
    assert!((found.utilisation.processor_share.unwrap_or_default() - 0.3).abs() < 0.001);
    assert!(
        found.device_accounts.is_empty(),
        "counters are too coarse for this"
    );
    let verdict = write_storage_verdict(&found, &short.repetitions[0]).join(" ");
    assert!(
        verdict.contains("85.4 µs unattributed, 36.6 µs on the processor"),
        "{verdict}"
    );
    let said = processor::describe_cpu_division(&short).unwrap();
    assert!(
        said.contains("read_8192") && said.contains("--size"),
        "{said}"
    );
    assert_eq!(
        processor::describe_cpu_division(&build_result("read_8192", 0, vec![second()])),
        None
    );
}

#[test]
fn a_discarded_repetition_is_not_explained() {
    let mut all = vec![second()];
    all[0].is_discarded = true;
    assert_eq!(build_account(&build_result("read_8192", 0, all), &[]), None);
}

#[test]
fn layers_tell_the_call_the_copy_the_cache_and_the_device() {
    let layers = [
        build_seqread_result("null", 512, 0, &[(100, 100), (102, 102)]),
        build_seqread_result("cached", 512, 1, &[(300, 300), (304, 304)]),
        build_seqread_result("dropped", 512, 2, &[(1000, 500), (1008, 504)]),
    ];
    let parts = decompose(&layers.iter().collect::<Vec<_>>());
    let found = build_account(&layers[2], &parts).unwrap();
    let null = build_account(&layers[0], &parts).unwrap();
    assert_eq!(null.ledger.stage_duration(Stage::SystemCall), null.elapsed);
    let calls = 4096;
    let each = |stage| found.ledger.stage_duration(stage).0 as f64 / f64::from(calls);
    for (stage, expected) in [
        (Stage::SystemCall, 101.0),
        (Stage::Copy, 201.0),
        (Stage::CacheLookup, 200.0),
        (Stage::Device, 502.0),
        (Stage::Unattributed, 0.0),
    ] {
        assert!((each(stage) - expected).abs() < 0.01, "{stage:?} {found:?}");
    }
    assert_eq!(found.elapsed, Nanoseconds(1004 * 4096));
    assert_eq!(found.ledger.total_duration(), found.elapsed);
    assert!(
        describe_source(&layers[2], &parts)
            .unwrap()
            .contains("copy is")
    );
    assert!(
        describe_source(&layers[2], &[])
            .unwrap()
            .contains("seqread89")
    );
}

/// Where the noise exceeds a part, it is not told apart, and all still sums.
#[test]
fn a_part_below_its_noise_is_not_attributed() {
    let layers = [
        build_seqread_result("null", 512, 0, &[(100, 100), (102, 102)]),
        build_seqread_result("cached", 512, 1, &[(900, 300), (100, 100), (1400, 900)]),
    ];
    let parts = decompose(&layers.iter().collect::<Vec<_>>());
    let found = build_account(&layers[1], &parts).unwrap();
    assert_eq!(found.ledger.stage_duration(Stage::Copy), Nanoseconds(0));
    assert!(found.ledger.stage_duration(Stage::Unattributed) > Nanoseconds(0));
    assert_eq!(found.ledger.total_duration(), found.elapsed);
    // A layer that is faster than the one below it by chance.
    let faster = [
        build_seqread_result("null", 512, 0, &[(500, 500), (502, 502)]),
        build_seqread_result("cached", 512, 1, &[(300, 300), (304, 304)]),
    ];
    let parts = decompose(&faster.iter().collect::<Vec<_>>());
    let found = build_account(&faster[1], &parts).unwrap();
    assert_eq!(found.elapsed, Nanoseconds(302 * 4096));
    assert_eq!(found.ledger.total_duration(), found.elapsed);
}

/// Read-ahead of other processes takes the device longer, and comes second.
#[test]
fn requests_that_the_program_may_have_caused_come_first() {
    let spread = |median| ValueQuantiles {
        median,
        p99: median,
        max: median,
    };
    let requests = |operation, requests| OperationAccount {
        operation,
        request_count: requests,
        total_bytes: 4096 * requests,
        request_bytes: spread(4096),
        queue_ns: spread(1000),
        device_ns: spread(1_000_000),
    };
    let wrote = build_result(
        "write_8192",
        0,
        vec![write_repetition(64 * MIB, 65_536.0, 99.0)],
    );
    let had_read = build_result(
        "read_8192",
        0,
        vec![read_repetition(64 * MIB, 65_536.0, 99.0)],
    );
    for (of, own) in [
        (wrote, BlockOperation::Write),
        (had_read, BlockOperation::ReadAhead),
    ] {
        let mut found = build_account(&of, &[]).unwrap();
        found.device_accounts = vec![DeviceAccount {
            device_name: "vda".to_owned(),
            in_queue_mean: None,
            at_device_mean: Some(1.0),
            at_device_max: None,
            operation_accounts: vec![
                requests(BlockOperation::ReadAhead, 900),
                requests(BlockOperation::Write, 901),
                requests(BlockOperation::Other, 5000),
            ],
        }];
        sort_own_requests_first(&mut found, &of.repetitions[0]);
        assert_eq!(
            found.device_accounts[0].operation_accounts[0].operation,
            own
        );
        let said = write_storage_verdict(&found, &of.repetitions[0]).join(" ");
        assert!(
            said.contains(&format!("A {} request", own.name())),
            "{said}"
        );
    }
}

#[test]
fn the_verdict_on_writes_includes_the_final_sync() {
    let wrote = build_result(
        "write_8192",
        0,
        vec![write_repetition(64 * MIB, 65_536.0, 99.0)],
    );
    let found = build_account(&wrote, &[]).unwrap();
    let said = write_storage_verdict(&found, &wrote.repetitions[0]).join(" ");
    assert!(
        said.contains("Bottleneck: the processor, busy 99 %"),
        "{said}"
    );
    assert!(
        said.contains("2.00 s more until all data was durable"),
        "{said}"
    );
}
