//! Runs to store, and a source of random numbers that a seed repeats.

use diskperf_timeline::{
    CacheMode, ComparisonVariant, ControllerCache, Device, DeviceTraffic, Engine, Environment,
    Experiment, Filesystem, FlashTraffic, Histogram, Interference, InterleavedBlock,
    InterleavedRun, Ledger, LoadMeasure, MeasuredWorld, MediaCache, Nanoseconds, OperationMeasure,
    Overhead, ProgramResult, Protocol, Repetition, Residency, Run, RunState, SeriesPoint, Setting,
    SteadyRule, SummaryStatistic, TargetDescription, VerifiedBlocks, WorkerFailure, WorkerMeasure,
};
use std::time::{SystemTime, UNIX_EPOCH};

/// xorshift64*.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// A new seed at each call, printed for the day that it matters.
    pub(crate) fn seeded_by_time(test: &str) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let seed = now.expect("the clock is past 1970").as_nanos() as u64 | 1;
        eprintln!("{test}: seed {seed}");
        Self::new(seed)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % bound
    }
}

/// A run with nothing measured yet.
pub(crate) fn empty_run(id: &str, started_unix_ms: u64) -> Run {
    Run {
        run_id: id.to_owned(),
        program_version: "0.1.0".to_owned(),
        suite_name: "ffs83".to_owned(),
        target_label: "/var/tmp + /mnt/données \"two\"\n".to_owned(),
        world: MeasuredWorld::Host,
        user_label: None,
        seed: u64::MAX,
        started_unix_ms,
        command_line: vec!["diskperf".to_owned(), "run".to_owned(), String::new()],
        experiment: Some(Experiment {
            targets: vec!["/var/tmp".into(), "/mnt/données \"two\"\n".into()],
            settings: vec![Setting::new("program.call_bytes", "512")],
            seed: u64::MAX,
            ..Experiment::default()
        }),
        interleaved: Some(InterleavedRun {
            partner_run_id: "0123456789".to_owned(),
            variant: ComparisonVariant::B,
            seed: u64::MAX,
            targets_differ: true,
            effect_min: Some(0.05),
            ordered_after: None,
        }),
        cache_mode: CacheMode::Cold,
        drops_all_caches: false,
        state: RunState::Running,
        environment: Environment::default(),
        model_information: None,
        overhead: None,
        results: Vec::new(),
        notes: Vec::new(),
    }
}

/// A result of a program that wrote.
pub(crate) fn result(program: &str, repetitions: Vec<Repetition>) -> ProgramResult {
    ProgramResult {
        program: program.to_owned(),
        parameters: [("call_bytes", "8192"), ("layer", "direct")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        distinguishing: vec!["layer".to_owned()],
        table_row: 3,
        drive_count: 2,
        filesystem_type: "ext4/4096".to_owned(),
        size_bytes: 1 << 30,
        cache_mode: CacheMode::Warm,
        protocol: Protocol {
            repetition_count: 10,
            discarded_count: 1,
            statistic: SummaryStatistic::Median,
            stop_below_share: Some(0.1 + 0.2),
            steady_rule: Some(SteadyRule::SNIA_RULE),
        },
        repetitions,
        notes: vec!["the generator was the limit".to_owned()],
    }
}

/// A repetition of two workers with full histograms.
pub(crate) fn repetition(random: &mut Random) -> Repetition {
    let workers = (0..2).map(|drive| worker(drive, random)).collect();
    Repetition {
        is_discarded: random.below(2) == 0,
        workers,
        residency: Some(Residency {
            file_bytes: 1 << 30,
            resident_before_bytes: 0,
            resident_after_bytes: random.below(1 << 30),
        }),
        devices: vec![DeviceTraffic {
            device_name: "vda".to_owned(),
            read_bytes: random.below(1 << 40),
            written_bytes: random.below(1 << 40),
            busy_ms: random.below(1000),
            ..DeviceTraffic::default()
        }],
        controller_caches: vec![ControllerCache {
            controller_index: 1,
            request_class: "raw".to_owned(),
            read_count: 1 << 40,
            hit_count: random.below(1 << 40),
            read_sectors: 1 << 40,
            cached_read_sectors: random.below(1 << 40),
        }],
        media_caches: vec![MediaCache {
            drive_index: 1,
            used_bytes: random.below(1 << 30),
            capacity_bytes: 1 << 30,
            extent_count: random.below(1 << 20),
            extent_count_max: 1 << 20,
            cached_bytes: random.below(1 << 40),
            streamed_bytes: random.below(1 << 40),
            cleaned_bytes: random.below(1 << 40),
            direct_write_bytes: random.below(1 << 40),
            cleaned_band_count: random.below(1 << 20),
            cleaning_time: Nanoseconds(random.below(1 << 40)),
        }],
        flash_traffic: vec![FlashTraffic {
            drive_index: 1,
            host_units: random.below(1 << 40),
            collection_units: random.below(1 << 40),
            folding_units: 1,
            wear_levelling_units: 2,
            map_units: 3,
            padding_units: 4,
            erase_count: 5,
            suspension_count: 6,
            past_cache_units: 7,
            unwritten_read_units: 8,
        }],
        interleaved_block: Some(InterleavedBlock {
            block_number: u32::MAX,
            is_second_run: true,
            is_after_verdict: true,
        }),
        interference: vec![Interference::ForeignIo {
            device: "vda".to_owned(),
            read_bytes: 0,
            written_bytes: random.below(1 << 40),
        }],
    }
}

fn worker(drive: u32, random: &mut Random) -> WorkerMeasure {
    let mut latency = || {
        let latency = |_| {
            let scale = random.below(46);
            Nanoseconds(random.below(1 << (scale + 1)))
        };
        (0..500).map(latency).collect::<Histogram>()
    };
    let (read_latency, write_latency) = (latency(), latency());
    WorkerMeasure {
        drive_index: drive,
        start_time: Nanoseconds(random.below(1_000_000)),
        elapsed_time: Nanoseconds(1 + random.below(1 << 40)),
        durable_time: Some(Nanoseconds((1 << 40) + random.below(1 << 40))),
        cpu_time: Nanoseconds(random.below(1 << 40)),
        cpu_wait_time: Some(Nanoseconds(random.below(1 << 30))),
        user_cpu_time: Nanoseconds(random.below(1 << 39)),
        system_cpu_time: Nanoseconds(random.below(1 << 39)),
        payload_bytes: 1 << 30,
        read_bytes: 0,
        written_bytes: 1 << 30,
        call_count: 1 << 17,
        metadata_call_count: 1,
        voluntary_switch_count: random.below(1 << 20),
        involuntary_switch_count: 2,
        minor_fault_count: 3,
        major_fault_count: 4,
        storage_read_bytes: None,
        read_latency,
        write_latency,
        ledger: Ledger::default(),
        load_measure: Some(load(random)),
        worker_failure: Some(WorkerFailure {
            errno: 28,
            message: "write a: no space left on device (ENOSPC)".to_owned(),
        }),
        verified_blocks: Some(VerifiedBlocks {
            verification_kind: "crc32c".to_owned(),
            written_bytes: 1 << 30,
            block_count: 1 << 17,
            verified_bytes: 1 << 30,
            ..VerifiedBlocks::default()
        }),
    }
}

/// Several requests under way, for three intervals.
fn load(random: &mut Random) -> LoadMeasure {
    let mut latencies = |count: u64| {
        let each = |_| Nanoseconds(random.below(1 << 30));
        (0..count).map(each).collect::<Histogram>()
    };
    let mut operation = |bytes| OperationMeasure {
        bytes,
        response_times: latencies(500),
        submit_call_times: latencies(500),
        completion_times: latencies(500),
        elapsed_span: Nanoseconds(bytes >> 10),
    };
    LoadMeasure {
        engine: Engine::Threads,
        queue_depth: 32,
        read: operation(1 << 40),
        commit: operation(0),
        unlink: operation(1 << 20),
        arrival_lag: Some(latencies(500)),
        unfinished_count: 3,
        time_series: (0..3)
            .map(|reads| SeriesPoint {
                read_count: reads,
                read_bytes: reads << 12,
                response_times: latencies(reads),
                ..SeriesPoint::default()
            })
            .collect(),
        series_interval: Nanoseconds(1_000_000_000),
        ..LoadMeasure::default()
    }
}

/// A repetition that tells itself from others by its payload, and is small.
pub(crate) fn numbered_repetition(payload_bytes: u64) -> Repetition {
    Repetition {
        workers: vec![WorkerMeasure {
            elapsed_time: Nanoseconds::from_millis(500),
            payload_bytes,
            ..WorkerMeasure::default()
        }],
        ..Repetition::default()
    }
}

/// A run with everything that a run can have.
pub(crate) fn full_run(id: &str, started_unix_ms: u64, seed: u64) -> Run {
    let mut random = Random::new(seed);
    let results = ["write_8192", "seqread", "copy"]
        .iter()
        .zip([3, 1, 0])
        .map(|(program, repetitions)| {
            let repetitions = (0..repetitions).map(|_| repetition(&mut random));
            result(program, repetitions.collect())
        })
        .collect();
    Run {
        user_label: Some("before the new firmware".to_owned()),
        drops_all_caches: true,
        state: RunState::Finished,
        environment: environment(),
        overhead: Some(Overhead {
            null_call_ns: 1.0 / 3.0 * 1e3,
            timing_ns: 5e-324,
        }),
        results,
        notes: vec!["load was high".to_owned()],
        ..empty_run(id, started_unix_ms)
    }
}

fn environment() -> Environment {
    Environment {
        kernel_version: "Linux 6.1.0".to_owned(),
        cpu_model: "Z80 @ 4.00MHz".to_owned(),
        cpu_count: 2,
        memory_bytes: 1 << 36,
        load_average: 0.07,
        call_clock: "tsc".to_owned(),
        places: vec![TargetDescription {
            path: "/var/tmp".to_owned(),
            filesystem: Some(Filesystem {
                filesystem_type: "ext4".to_owned(),
                mount_options: "rw,relatime".to_owned(),
                block_bytes: 4096,
                ..Filesystem::default()
            }),
            devices: vec![Device {
                name: "vda".to_owned(),
                is_rotational: Some(false),
                ..Device::default()
            }],
        }],
        known_limits: Vec::new(),
    }
}
