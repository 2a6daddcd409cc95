//! Accounts of stored repetitions.

use super::{account, note};
use crate::explanation::processor;
use crate::explanation::verdict::{own_requests_first, storage_verdict};
use crate::explanation::{DeviceAccount, OperationAccount, Spread};
use crate::fixtures::{read, result, seqread, write};
use crate::layers::decompose;
use diskperf_timeline::block::Operation;
use diskperf_timeline::units::MIB;
use diskperf_timeline::{DeviceTraffic, Nanoseconds, Stage};

/// 64 MiB at 64 MiB/s: a second, of which 30 % are the processor's.
fn second() -> diskperf_timeline::Repetition {
    read(64 * MIB, 65_536.0, 30.0)
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
    let read = result("read_8192", 0, vec![repetition]);
    let found = account(&read, &[]).unwrap();
    let stage = |stage| found.ledger.stage_duration(stage).0 / 1_000_000;
    assert_eq!(found.elapsed, Nanoseconds(1_000_000_000));
    assert_eq!(found.ledger.total_duration(), found.elapsed);
    assert_eq!((stage(Stage::User), stage(Stage::SystemCall)), (30, 270));
    assert_eq!(
        (stage(Stage::CpuWait), stage(Stage::Unattributed)),
        (50, 650)
    );
    assert_eq!(stage(Stage::Device), 0);
    assert_eq!(found.utilisation.drives, [0.6]);
    let said = storage_verdict(&found, &read.repetitions[0]).join(" ");
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
    let short = result("read_8192", 0, vec![read(MIB, 65_536.0, 30.0)]);
    let found = account(&short, &[]).unwrap();
    assert_eq!(
        found.ledger.stage_duration(Stage::Unattributed),
        found.elapsed
    );
    assert!((found.utilisation.processor.unwrap_or_default() - 0.3).abs() < 0.001);
    assert!(found.devices.is_empty(), "counters are too coarse for this");
    let verdict = storage_verdict(&found, &short.repetitions[0]).join(" ");
    assert!(
        verdict.contains("85.4 µs unattributed, 36.6 µs on the processor"),
        "{verdict}"
    );
    let said = processor::note(&short).unwrap();
    assert!(
        said.contains("read_8192") && said.contains("--size"),
        "{said}"
    );
    assert_eq!(
        processor::note(&result("read_8192", 0, vec![second()])),
        None
    );
}

#[test]
fn a_discarded_repetition_is_not_explained() {
    let mut all = vec![second()];
    all[0].is_discarded = true;
    assert_eq!(account(&result("read_8192", 0, all), &[]), None);
}

#[test]
fn layers_tell_the_call_the_copy_the_cache_and_the_device() {
    let layers = [
        seqread("null", 512, 0, &[(100, 100), (102, 102)]),
        seqread("cached", 512, 1, &[(300, 300), (304, 304)]),
        seqread("dropped", 512, 2, &[(1000, 500), (1008, 504)]),
    ];
    let parts = decompose(&layers.iter().collect::<Vec<_>>());
    let found = account(&layers[2], &parts).unwrap();
    let null = account(&layers[0], &parts).unwrap();
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
    assert!(note(&layers[2], &parts).unwrap().contains("copy is"));
    assert!(note(&layers[2], &[]).unwrap().contains("seqread89"));
}

/// Where the noise exceeds a part, it is not told apart, and all still sums.
#[test]
fn a_part_below_its_noise_is_not_attributed() {
    let layers = [
        seqread("null", 512, 0, &[(100, 100), (102, 102)]),
        seqread("cached", 512, 1, &[(900, 300), (100, 100), (1400, 900)]),
    ];
    let parts = decompose(&layers.iter().collect::<Vec<_>>());
    let found = account(&layers[1], &parts).unwrap();
    assert_eq!(found.ledger.stage_duration(Stage::Copy), Nanoseconds(0));
    assert!(found.ledger.stage_duration(Stage::Unattributed) > Nanoseconds(0));
    assert_eq!(found.ledger.total_duration(), found.elapsed);
    // A layer that is faster than the one below it by chance.
    let faster = [
        seqread("null", 512, 0, &[(500, 500), (502, 502)]),
        seqread("cached", 512, 1, &[(300, 300), (304, 304)]),
    ];
    let parts = decompose(&faster.iter().collect::<Vec<_>>());
    let found = account(&faster[1], &parts).unwrap();
    assert_eq!(found.elapsed, Nanoseconds(302 * 4096));
    assert_eq!(found.ledger.total_duration(), found.elapsed);
}

/// Read-ahead of other processes takes the device longer, and comes second.
#[test]
fn requests_that_the_program_may_have_caused_come_first() {
    let spread = |median| Spread {
        median,
        p99: median,
        max: median,
    };
    let requests = |operation, requests| OperationAccount {
        operation,
        requests,
        bytes: 4096 * requests,
        bytes_each: spread(4096),
        queue_ns: spread(1000),
        device_ns: spread(1_000_000),
    };
    let wrote = result("write_8192", 0, vec![write(64 * MIB, 65_536.0, 99.0)]);
    let had_read = result("read_8192", 0, vec![read(64 * MIB, 65_536.0, 99.0)]);
    for (of, own) in [(wrote, Operation::Write), (had_read, Operation::ReadAhead)] {
        let mut found = account(&of, &[]).unwrap();
        found.devices = vec![DeviceAccount {
            device: "vda".to_owned(),
            in_queue_mean: None,
            at_device_mean: Some(1.0),
            at_device_most: None,
            operations: vec![
                requests(Operation::ReadAhead, 900),
                requests(Operation::Write, 901),
                requests(Operation::Other, 5000),
            ],
        }];
        own_requests_first(&mut found, &of.repetitions[0]);
        assert_eq!(found.devices[0].operations[0].operation, own);
        let said = storage_verdict(&found, &of.repetitions[0]).join(" ");
        assert!(
            said.contains(&format!("A {} request", own.name())),
            "{said}"
        );
    }
}

#[test]
fn the_verdict_on_writes_includes_the_final_sync() {
    let wrote = result("write_8192", 0, vec![write(64 * MIB, 65_536.0, 99.0)]);
    let found = account(&wrote, &[]).unwrap();
    let said = storage_verdict(&found, &wrote.repetitions[0]).join(" ");
    assert!(
        said.contains("Bottleneck: the processor, busy 99 %"),
        "{said}"
    );
    assert!(
        said.contains("2.00 s more until all data was durable"),
        "{said}"
    );
}
