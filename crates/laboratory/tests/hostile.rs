//! Documents that anybody may have written: whatever passes the check can be
//! shown, compared, explained, reported and exported, and tells a terminal nothing.

use diskperf_analysis::comparison::compare;
use diskperf_analysis::report::{self, ReportFormat, html};
use diskperf_catalogue::Catalogue;
use diskperf_laboratory::explain::storage::{compare_explanations, explain_run};
use diskperf_laboratory::report::build_reports;
use diskperf_laboratory::runs;
use diskperf_timeline::printable::is_terminal_instruction;
use diskperf_timeline::units::CALENDAR_END_UNIX_MS;
use diskperf_timeline::{
    CacheMode, ComparisonVariant, ControllerCache, Device, DeviceTraffic, Environment, Filesystem,
    FlashTraffic, Histogram, Interference, InterleavedBlock, InterleavedRun, Ledger, LoadMeasure,
    MeasuredWorld, MediaCache, Nanoseconds, OperationMeasure, Overhead, ProgramResult, Protocol,
    Repetition, Residency, Run, RunState, SeriesPoint, Stage, SummaryStatistic, TargetDescription,
    WorkerMeasure,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Figures at which arithmetic goes wrong. A run of these tests has twelve workers
/// at most, so that no sum exceeds what is possible.
fn figure() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => prop::sample::select(vec![0, 1, 2, 511, 8192, 1 << 20, 1 << 40, 1 << 56]),
        1 => 0..1_u64 << 56,
    ]
}

/// Any number at all, of what is never summed.
fn anything() -> impl Strategy<Value = u64> {
    prop_oneof![
        prop::sample::select(vec![0, 1, 1 << 40, (1 << 63) - 1, 1 << 63, u64::MAX]),
        any::<u64>(),
    ]
}

/// Text that somebody wrote who wants to be taken for something else.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "",
            "write_8192",
            "\u{1b}[2J\u{1b}]0;owned\u{7}",
            "\u{9b}31mred\u{9d}x",
            "fast\u{202e}wols",
            "a\r\n\u{8}\u{7f}b\tc",
            "=cmd|' /C calc'!A0",
            "+1\n@x",
            "a|b</script><!--",
            "last",
            "/etc/passwd",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ]
}

fn latencies() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let bucket = (
        prop::sample::select(vec![0, 1, 1000, 1 << 50, 1 << 51]),
        1..3_u64,
    );
    prop::collection::vec(bucket, 0..3)
}

prop_compose! {
    fn load()(
        read in latencies(),
        sync in latencies(),
        lag in prop::option::of(latencies()),
        points in prop::collection::vec(latencies(), 0..3),
        bytes in figure(),
        interval in figure(),
    ) -> LoadMeasure {
        let operation = |response: Vec<(u64, u64)>| OperationMeasure {
            bytes,
            submit_call_times: response.clone().into(),
            completion_times: response.clone().into(),
            response_times: response.into(),
            ..OperationMeasure::default()
        };
        let point = |response: Vec<(u64, u64)>| SeriesPoint {
            read_count: bytes,
            read_bytes: bytes,
            response_times: response.into(),
            ..SeriesPoint::default()
        };
        LoadMeasure {
            read: operation(read),
            sync: operation(sync),
            arrival_lag: lag.map(Histogram::from),
            time_series: points.into_iter().map(point).collect(),
            series_interval: Nanoseconds(interval.max(1)),
            ..LoadMeasure::default()
        }
    }
}

prop_compose! {
    fn worker()(
        drive in 0..2_u32,
        figures in prop::collection::vec(figure(), 14),
        durable in prop::option::of(figure()),
        stored in prop::option::of(figure()),
        cpu_wait in prop::option::of(figure()),
        read in latencies(),
        write in latencies(),
        modelled in any::<bool>(),
        load in prop::option::of(load()),
    ) -> WorkerMeasure {
        let elapsed = figures[1].max(1);
        let mut table = [0; Stage::COUNT];
        if modelled {
            table[Stage::Seek.index()] = elapsed / 3;
            table[Stage::Copy.index()] = elapsed - elapsed / 3;
        }
        WorkerMeasure {
            drive_index: drive,
            start_time: Nanoseconds(figures[0]),
            elapsed_time: Nanoseconds(elapsed),
            durable_time: durable.map(|more| Nanoseconds(elapsed.max(more))),
            cpu_time: Nanoseconds(figures[2]),
            user_cpu_time: Nanoseconds(figures[3]),
            system_cpu_time: Nanoseconds(figures[4]),
            cpu_wait_time: cpu_wait.map(Nanoseconds),
            payload_bytes: figures[5],
            read_bytes: figures[6],
            written_bytes: figures[7],
            call_count: figures[8].max(12),
            metadata_call_count: figures[13],
            voluntary_switch_count: figures[9],
            involuntary_switch_count: figures[10],
            minor_fault_count: figures[11],
            major_fault_count: figures[12],
            storage_read_bytes: stored,
            read_latency: read.into(),
            write_latency: write.into(),
            ledger: Ledger::from_table(&table),
            load_measure: load,
            worker_failure: None,
            verified_blocks: None,
        }
    }
}

prop_compose! {
    fn repetition()(
        discarded in any::<bool>(),
        workers in prop::collection::vec(worker(), 1..3),
        whole in figure(),
        residency in any::<bool>(),
        name in text(),
    ) -> Repetition {
        Repetition {
            is_discarded: discarded,
            workers,
            residency: residency.then_some(Residency {
                file_bytes: whole,
                resident_before_bytes: whole / 2,
                resident_after_bytes: whole,
            }),
            devices: vec![DeviceTraffic {
                device_name: name.clone(),
                read_bytes: whole,
                written_bytes: 0,
                busy_ms: whole,
                ..DeviceTraffic::default()
            }],
            controller_caches: vec![ControllerCache {
                controller_index: u32::MAX,
                request_class: name.clone(),
                read_count: whole,
                hit_count: whole,
                read_sectors: whole,
                cached_read_sectors: 0,
            }],
            media_caches: vec![MediaCache {
                drive_index: u32::MAX,
                used_bytes: whole,
                capacity_bytes: whole,
                extent_count: whole,
                extent_count_max: whole,
                cached_bytes: whole,
                streamed_bytes: 0,
                cleaned_bytes: whole,
                direct_write_bytes: whole,
                cleaned_band_count: whole,
                cleaning_time: Nanoseconds(whole),
            }],
            flash_traffic: vec![FlashTraffic {
                drive_index: u32::MAX,
                host_units: 1,
                collection_units: whole,
                erase_count: whole,
                ..FlashTraffic::default()
            }],
            interleaved_block: Some(InterleavedBlock {
                block_number: u32::MAX,
                is_second_run: false,
                is_after_verdict: true,
            }),
            interference: vec![
                Interference::ForeignIo {
                    device: name.clone(),
                    read_bytes: u64::MAX,
                    written_bytes: u64::MAX,
                },
                Interference::SettingChanged {
                    device: name.clone(),
                    setting: name.clone(),
                    was: name.clone(),
                    is: name,
                },
                Interference::ProcessorWait {
                    waited_us: u64::MAX,
                    share: 1e15,
                    preempted: u64::MAX,
                },
            ],
        }
    }
}

prop_compose! {
    fn result()(
        program in prop_oneof![Just("seqread".to_owned()), text()],
        layer in prop::sample::select(vec!["null", "zero", "cached", "dropped", "direct", "moon"]),
        call_bytes in prop_oneof![Just("512".to_owned()), Just(u64::MAX.to_string()), text()],
        row in prop::sample::select(vec![0, 1, u32::MAX]),
        size_bytes in anything(),
        name in text(),
        minimum in any::<bool>(),
        repetitions in prop::collection::vec(repetition(), 0..3),
    ) -> ProgramResult {
        ProgramResult {
            program,
            parameters: BTreeMap::from([
                ("layer".to_owned(), layer.to_owned()),
                ("call_bytes".to_owned(), call_bytes),
                (name.clone(), name.clone()),
            ]),
            distinguishing: vec!["layer".to_owned(), name.clone()],
            table_row: row,
            drive_count: 2,
            filesystem_type: name.clone(),
            size_bytes,
            cache_mode: CacheMode::Warm,
            protocol: Protocol {
                repetition_count: u32::MAX,
                discarded_count: 1,
                statistic: if minimum { SummaryStatistic::Minimum } else { SummaryStatistic::Median },
                stop_below_share: Some(1e15),
                steady_rule: None,
            },
            repetitions,
            notes: vec![name],
        }
    }
}

fn environment(name: &str, size: u64) -> Environment {
    Environment {
        kernel_version: name.to_owned(),
        cpu_model: name.to_owned(),
        cpu_count: u32::MAX,
        memory_bytes: size,
        load_average: 1e15,
        call_clock: name.to_owned(),
        places: vec![TargetDescription {
            path: name.to_owned(),
            filesystem: Some(Filesystem {
                filesystem_type: name.to_owned(),
                total_bytes: size,
                available_bytes: size,
                block_bytes: size,
                ..Filesystem::default()
            }),
            devices: vec![Device {
                name: name.to_owned(),
                model: Some(name.to_owned()),
                size_bytes: size,
                read_ahead_kib: Some(size),
                ..Device::default()
            }],
        }],
        known_limits: Vec::new(),
    }
}

prop_compose! {
    fn run()(
        names in prop::collection::vec(text(), 5),
        started_unix_ms in prop_oneof![Just(CALENDAR_END_UNIX_MS - 1), 0..CALENDAR_END_UNIX_MS],
        seed in anything(),
        world in prop::sample::select(vec![MeasuredWorld::Host, MeasuredWorld::Model]),
        failed in any::<bool>(),
        ns in prop::sample::select(vec![0.0, 1e15, 5e-324]),
        results in prop::collection::vec(result(), 0..4),
    ) -> Run {
        Run {
            run_id: "3fa85f6457".to_owned(),
            program_version: names[0].clone(),
            suite_name: names[1].clone(),
            target_label: names[2].clone(),
            world,
            user_label: Some(names[3].clone()),
            seed,
            started_unix_ms,
            command_line: names.clone(),
            experiment: None,
            interleaved: Some(InterleavedRun {
                partner_run_id: names[2].clone(),
                variant: ComparisonVariant::A,
                seed,
                targets_differ: true,
                effect_min: Some(0.05),
                ordered_after: None,
            }),
            cache_mode: CacheMode::Cold,
            drops_all_caches: false,
            state: if failed { RunState::Failed(names[4].clone()) } else { RunState::Finished },
            environment: environment(&names[4], seed),
            model_information: None,
            overhead: Some(Overhead { null_call_ns: ns, timing_ns: ns }),
            results,
            notes: names,
        }
    }
}

/// Asserts that no character is an instruction but the ends of lines.
fn assert_text(what: &str, text: &str) {
    let lines = text.replace("\r\n", "\n");
    let found = lines
        .chars()
        .find(|c| *c != '\n' && is_terminal_instruction(*c));
    assert_eq!(found, None, "{what}: {text:?}");
}

const FORMATS: [ReportFormat; 4] = [
    ReportFormat::Table,
    ReportFormat::Json,
    ReportFormat::Csv,
    ReportFormat::Markdown,
];

fn show_all(runs: &[Run]) {
    let compared = compare(runs);
    for format in FORMATS {
        assert_text("runs", &report::render_runs(runs, format, 80));
        assert_text(
            "comparison",
            &report::render_comparison(&compared, format, 80),
        );
    }
    for run in runs {
        assert_text("details", &report::render_details(run, 80));
    }
    let page = html::render_page(&build_reports(&Catalogue::embedded(), runs.to_vec()).unwrap());
    assert!(!page.contains(['\u{1b}', '\u{9b}', '\u{202e}']));
    let told: Vec<_> = runs.iter().map(|run| explain_run(run.clone())).collect();
    for told in told.iter().flatten() {
        for format in FORMATS {
            assert_text(
                "explanation",
                &report::render_explanation(&told.explanation, format, 80),
            );
        }
    }
    if let [Ok(a), Ok(b)] = &told[..]
        && let Ok(found) = compare_explanations(a, b)
    {
        for format in FORMATS {
            assert_text(
                "differences",
                &report::render_differences(&found, format, 80),
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_passes_the_check_can_be_shown(a in run(), b in run()) {
        prop_assert_eq!(a.check_run(), Ok(()));
        prop_assert_eq!(b.check_run(), Ok(()));
        let both = [a, b];
        show_all(&both);
        let folder = std::env::temp_dir();
        let file = folder.join(format!("diskperf-hostile-{}.json", std::process::id()));
        let text = runs::render_export(&both).unwrap();
        assert_text("export", &text);
        std::fs::write(&file, text).unwrap();
        let read = runs::load_runs(None, file.to_str().unwrap());
        std::fs::remove_file(&file).unwrap();
        prop_assert_eq!(&read.unwrap()[..], &both[..]);
    }
}
