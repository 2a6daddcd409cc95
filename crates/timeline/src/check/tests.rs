use crate::ledger::Ledger;
use crate::{
    CacheMode, ControllerCache, DeviceTraffic, FlashTraffic, Interference, LoadMeasure,
    MeasuredWorld, MediaCache, Nanoseconds, Overhead, ProgramResult, Protocol, Repetition,
    Residency, Run, RunState, SeriesPoint, Stage, SummaryStatistic, WorkerMeasure,
};

fn worker(drive: u32) -> WorkerMeasure {
    let mut table = [0; Stage::COUNT];
    table[Stage::Copy.index()] = 300;
    table[Stage::Seek.index()] = 700;
    WorkerMeasure {
        drive_index: drive,
        elapsed_time: Nanoseconds(1000),
        durable_time: Some(Nanoseconds(3000)),
        payload_bytes: 8192,
        written_bytes: 8192,
        call_count: 2,
        write_latency: [Nanoseconds(400), Nanoseconds(500)].into_iter().collect(),
        ledger: Ledger::from_table(&table),
        ..WorkerMeasure::default()
    }
}

/// One that passes, with all that is looked at.
fn possible() -> Run {
    let repetition = Repetition {
        workers: vec![worker(0), worker(1)],
        residency: Some(Residency {
            file_bytes: 100,
            resident_before_bytes: 0,
            resident_after_bytes: 100,
        }),
        devices: vec![DeviceTraffic {
            device_name: "vda".to_owned(),
            read_bytes: 1,
            written_bytes: 2,
            busy_ms: 3,
            ..DeviceTraffic::default()
        }],
        controller_caches: vec![ControllerCache {
            controller_index: 1,
            request_class: "raw".to_owned(),
            read_count: 4,
            hit_count: 4,
            read_sectors: 9,
            cached_read_sectors: 0,
        }],
        media_caches: vec![MediaCache {
            drive_index: 1,
            used_bytes: 4,
            capacity_bytes: 9,
            extent_count: 1,
            extent_count_max: 2,
            ..MediaCache::default()
        }],
        flash_traffic: vec![FlashTraffic {
            host_units: 5,
            collection_units: 6,
            ..FlashTraffic::default()
        }],
        interference: vec![Interference::ProcessStopped {
            stopped_us: 400,
            share: 0.4,
        }],
        ..Repetition::default()
    };
    let result = ProgramResult {
        program: "write_8192".to_owned(),
        parameters: [].into(),
        distinguishing: Vec::new(),
        table_row: 0,
        drive_count: 2,
        filesystem_type: "ext4/4096".to_owned(),
        size_bytes: u64::MAX,
        cache_mode: CacheMode::Cold,
        protocol: Protocol {
            repetition_count: 3,
            discarded_count: 1,
            statistic: SummaryStatistic::Median,
            stop_below_share: Some(0.02),
            steady_rule: None,
        },
        repetitions: vec![repetition.clone(), repetition],
        notes: Vec::new(),
    };
    Run {
        run_id: "3fa85f6457".to_owned(),
        program_version: "0.1.0".to_owned(),
        suite_name: "ffs83".to_owned(),
        target_label: ".".to_owned(),
        world: MeasuredWorld::Host,
        user_label: None,
        seed: u64::MAX,
        started_unix_ms: 0,
        command_line: Vec::new(),
        experiment: None,
        interleaved: None,
        cache_mode: CacheMode::Cold,
        drops_all_caches: false,
        state: RunState::Finished,
        environment: Default::default(),
        model_information: None,
        overhead: Some(Overhead::default()),
        results: vec![result.clone(), result],
        notes: Vec::new(),
    }
}

fn second(run: &mut Run) -> &mut Repetition {
    &mut run.results[1].repetitions[1]
}

/// A change that makes a run impossible, and what is said of it.
type Case = (fn(&mut Run), &'static str);

const OF_RUNS: &[Case] = &[
    (|run| run.run_id.clear(), "id is ``"),
    (|run| run.run_id = "../../etc".into(), "id is `../../etc`"),
    (|run| run.run_id = "\u{1b}[2J".into(), "id is `\\u{1b}[2J`"),
    (|run| run.run_id = "last".into(), "id is `last`"),
    (|run| run.run_id = "a".repeat(65), "id is `aaa"),
    (
        |run| run.started_unix_ms = 253_402_300_800_000,
        "started_unix_ms is 253402300800000: the last year",
    ),
    (
        |run| run.environment.load_average = -0.5,
        "environment.load_average is -5e-1",
    ),
    (
        |run| run.environment.load_average = f64::NAN,
        "environment.load_average is NaN",
    ),
    (
        |run| run.overhead.as_mut().unwrap().timing_ns = f64::INFINITY,
        "overhead.timing_ns is inf",
    ),
    (
        |run| run.results[1].drive_count = 0,
        "results[1].drives is 0",
    ),
    (
        |run| run.results[1].drive_count = u32::MAX,
        "results[1].drives is 4294967295",
    ),
    (
        |run| run.results[0].protocol.discarded_count = 3,
        "results[0].protocol.discarded is 3 of 3",
    ),
    (
        |run| run.results[0].protocol.stop_below_share = Some(-1.0),
        "results[0].protocol.stop_below_share is -1",
    ),
];

const OF_REPETITIONS: &[Case] = &[
    (
        |run| second(run).workers.clear(),
        "results[1].repetitions[1].workers is empty",
    ),
    (
        |run| {
            second(run)
                .residency
                .as_mut()
                .unwrap()
                .resident_before_bytes = 101
        },
        "results[1].repetitions[1].residency.before_bytes is 101",
    ),
    (
        |run| second(run).controller_caches[0].hit_count = 5,
        "results[1].repetitions[1].controller_caches[0].hits is 5, but reads is only 4",
    ),
    (
        |run| second(run).media_caches[0].used_bytes = 10,
        "results[1].repetitions[1].media_caches[0].used_bytes is 10, but room_bytes is only 9",
    ),
    (
        |run| second(run).media_caches[0].extent_count = 3,
        "results[1].repetitions[1].media_caches[0].extents is 3, but most_extents is only 2",
    ),
    (
        |run| second(run).flash_traffic[0].collection_units = u64::MAX,
        "results[1].repetitions[1].flash[0].collection_units is 18446744073709551615",
    ),
    (
        |run| {
            second(run).interference[0] = Interference::ProcessStopped {
                stopped_us: 1,
                share: f64::INFINITY,
            };
        },
        "results[1].repetitions[1].interference[0].share is inf",
    ),
    (
        |run| second(run).devices[0].busy_ms = u64::MAX,
        "results[1].repetitions[1].devices[0].busy_ms is 18446744073709551615",
    ),
    (
        |run| second(run).workers[1].drive_index = 2,
        "results[1].repetitions[1].workers[1].drive is 2",
    ),
    (
        |run| second(run).workers[1].drive_index = u32::MAX,
        "results[1].repetitions[1].workers[1].drive is 4294967295",
    ),
];

const OF_WORKERS: &[Case] = &[
    (
        |run| second(run).workers[1].elapsed_time = Nanoseconds(u64::MAX),
        "results[1].repetitions[1].workers[1].elapsed is 18446744073709551615: its sum over",
    ),
    (
        |run| second(run).workers[1].elapsed_time = Nanoseconds(0),
        "results[1].repetitions[1].workers[1].elapsed is 0",
    ),
    (
        |run| second(run).workers[1].durable_time = Some(Nanoseconds(999)),
        "results[1].repetitions[1].workers[1].durable is 999 ns, less than elapsed",
    ),
    (
        |run| {
            for result in &mut run.results {
                result.repetitions[0].workers[0].payload_bytes = (1 << 59) + 1;
            }
        },
        "results[1].repetitions[0].workers[0].payload_bytes is 576460752303423489: its sum over",
    ),
    (
        |run| second(run).workers[0].call_count = 1,
        "results[1].repetitions[1].workers[0].calls is 1, but 2 calls were timed",
    ),
    (
        |run| second(run).workers[0].write_latency = vec![(5, u64::MAX), (5, 7)].into(),
        "results[1].repetitions[1].workers[0].write_latency is 18446744073709551615",
    ),
    (
        |run| second(run).workers[0].write_latency = vec![(u64::MAX, 1)].into(),
        "results[1].repetitions[1].workers[0].write_latency is 18446744073709551615",
    ),
    (
        |run| second(run).workers[0].elapsed_time = Nanoseconds(999),
        "results[1].repetitions[1].workers[0].ledger sums to 1000 ns, but elapsed is 999 ns",
    ),
    (
        |run| {
            let twice = r#"[{"stage": "seek", "ns": 500}, {"stage": "seek", "ns": 500}]"#;
            second(run).workers[0].ledger = serde_json::from_str(twice).unwrap();
        },
        "results[1].repetitions[1].workers[0].ledger[1] repeats the stage seek",
    ),
    (
        |run| {
            let wrapping =
                r#"[{"stage": "seek", "ns": 18446744073709551615}, {"stage": "copy", "ns": 1001}]"#;
            second(run).workers[0].ledger = serde_json::from_str(wrapping).unwrap();
        },
        "results[1].repetitions[1].workers[0].ledger[1] is 1001 ns: the sum overflows",
    ),
];

const OF_LOADS: &[Case] = &[
    (
        |run| load(run).read.response_times = vec![(u64::MAX, 1)].into(),
        "results[1].repetitions[1].workers[0].load.read.response is 18446744073709551615",
    ),
    (
        |run| load(run).commit.bytes = u64::MAX,
        "results[1].repetitions[1].workers[0].load.commit.bytes is 18446744073709551615",
    ),
    (
        |run| load(run).arrival_lag = Some(vec![(5, u64::MAX)].into()),
        "results[1].repetitions[1].workers[0].load.lag is 18446744073709551615",
    ),
    (
        |run| load(run).series_interval = Nanoseconds(0),
        "results[1].repetitions[1].workers[0].load.interval is 0, but the series has 2 intervals",
    ),
    (
        |run| load(run).time_series[1].read_count = u64::MAX,
        "results[1].repetitions[1].workers[0].load.series[1].reads is 18446744073709551615",
    ),
];

fn load(run: &mut Run) -> &mut LoadMeasure {
    second(run).workers[0]
        .load_measure
        .get_or_insert_with(|| LoadMeasure {
            time_series: vec![SeriesPoint::default(); 2],
            series_interval: Nanoseconds(1_000_000_000),
            ..LoadMeasure::default()
        })
}

#[test]
fn impossible_figures_are_named() {
    let mut loaded = possible();
    load(&mut loaded);
    assert_eq!(loaded.check_run(), Ok(()));
    for (change, said) in OF_RUNS
        .iter()
        .chain(OF_REPETITIONS)
        .chain(OF_WORKERS)
        .chain(OF_LOADS)
    {
        let mut run = possible();
        change(&mut run);
        let error = run.check_run().expect_err(said).to_string();
        assert!(error.starts_with(said), "{error}\ninstead of {said}");
    }
}

/// What a killed or interrupted run leaves is a run too.
#[test]
fn a_run_that_did_not_get_far_is_possible() {
    let mut run = possible();
    run.state = RunState::Running;
    run.results[1].repetitions.clear();
    assert_eq!(run.check_run(), Ok(()));
    run.results.clear();
    run.overhead = None;
    assert_eq!(run.check_run(), Ok(()));
}
