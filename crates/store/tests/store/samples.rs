//! Runs to store, and a source of random numbers that a seed repeats.

use diskperf_timeline::{
    Arm, Block, CacheMode, ControllerCache, Device, DeviceTraffic, Engine, Environment, Experiment,
    Filesystem, FlashTraffic, Histogram, Interference, Interleaved, Ledger, LoadMeasure,
    MediaCache, Nanoseconds, OperationMeasure, Overhead, Place, ProgramResult, Protocol,
    Repetition, Residency, Run, RunState, SeriesPoint, Setting, Statistic, SteadyRule, Verified,
    WorkerFailure, WorkerMeasure, World,
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
        id: id.to_owned(),
        version: "0.1.0".to_owned(),
        suite: "ffs83".to_owned(),
        target: "/var/tmp + /mnt/données \"two\"\n".to_owned(),
        world: World::Host,
        label: None,
        seed: u64::MAX,
        started_unix_ms,
        command_line: vec!["diskperf".to_owned(), "run".to_owned(), String::new()],
        experiment: Some(Experiment {
            targets: vec!["/var/tmp".into(), "/mnt/données \"two\"\n".into()],
            settings: vec![Setting::new("program.call_bytes", "512")],
            seed: u64::MAX,
            ..Experiment::default()
        }),
        interleaved: Some(Interleaved {
            partner: "0123456789".to_owned(),
            arm: Arm::B,
            seed: u64::MAX,
            places_differ: true,
            min_effect: Some(0.05),
            before: None,
        }),
        cache: CacheMode::Cold,
        dropped_all_caches: false,
        state: RunState::Running,
        environment: Environment::default(),
        model: None,
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
        row: 3,
        drives: 2,
        filesystem: "ext4/4096".to_owned(),
        size_bytes: 1 << 30,
        cache: CacheMode::Warm,
        protocol: Protocol {
            repetitions: 10,
            discarded: 1,
            statistic: Statistic::Median,
            stop_below_share: Some(0.1 + 0.2),
            steady: Some(SteadyRule::SNIA),
        },
        repetitions,
        notes: vec!["the generator was the limit".to_owned()],
    }
}

/// A repetition of two workers with full histograms.
pub(crate) fn repetition(random: &mut Random) -> Repetition {
    let workers = (0..2).map(|drive| worker(drive, random)).collect();
    Repetition {
        discarded: random.below(2) == 0,
        workers,
        residency: Some(Residency {
            file_bytes: 1 << 30,
            before_bytes: 0,
            after_bytes: random.below(1 << 30),
        }),
        devices: vec![DeviceTraffic {
            device: "vda".to_owned(),
            read_bytes: random.below(1 << 40),
            written_bytes: random.below(1 << 40),
            busy_ms: random.below(1000),
            ..DeviceTraffic::default()
        }],
        controller_caches: vec![ControllerCache {
            controller: 1,
            class: "raw".to_owned(),
            reads: 1 << 40,
            hits: random.below(1 << 40),
            sectors: 1 << 40,
            sectors_held: random.below(1 << 40),
        }],
        media_caches: vec![MediaCache {
            drive: 1,
            used_bytes: random.below(1 << 30),
            room_bytes: 1 << 30,
            extents: random.below(1 << 20),
            most_extents: 1 << 20,
            cached_bytes: random.below(1 << 40),
            streamed_bytes: random.below(1 << 40),
            cleaned_bytes: random.below(1 << 40),
            past_cache_bytes: random.below(1 << 40),
            bands_cleaned: random.below(1 << 20),
            cleaning: Nanoseconds(random.below(1 << 40)),
        }],
        flash: vec![FlashTraffic {
            drive: 1,
            host_units: random.below(1 << 40),
            collection_units: random.below(1 << 40),
            folding_units: 1,
            levelling_units: 2,
            map_units: 3,
            padding_units: 4,
            erases: 5,
            suspensions: 6,
            past_cache_units: 7,
            unwritten_read_units: 8,
        }],
        block: Some(Block {
            number: u32::MAX,
            second: true,
            after_verdict: true,
        }),
        interference: vec![Interference::OtherIo {
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
        drive,
        started: Nanoseconds(random.below(1_000_000)),
        elapsed: Nanoseconds(1 + random.below(1 << 40)),
        durable: Some(Nanoseconds((1 << 40) + random.below(1 << 40))),
        cpu: Nanoseconds(random.below(1 << 40)),
        cpu_wait: Some(Nanoseconds(random.below(1 << 30))),
        user: Nanoseconds(random.below(1 << 39)),
        system: Nanoseconds(random.below(1 << 39)),
        payload_bytes: 1 << 30,
        read_bytes: 0,
        written_bytes: 1 << 30,
        calls: 1 << 17,
        metadata_calls: 1,
        voluntary_switches: random.below(1 << 20),
        involuntary_switches: 2,
        minor_faults: 3,
        major_faults: 4,
        storage_read_bytes: None,
        read_latency,
        write_latency,
        ledger: Ledger::default(),
        load: Some(load(random)),
        failure: Some(WorkerFailure {
            errno: 28,
            message: "write a: no space left on device (ENOSPC)".to_owned(),
        }),
        verified: Some(Verified {
            kind: "crc32c".to_owned(),
            written_bytes: 1 << 30,
            blocks: 1 << 17,
            bytes: 1 << 30,
            ..Verified::default()
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
        response: latencies(500),
        submit: latencies(500),
        completion: latencies(500),
        span: Nanoseconds(bytes >> 10),
    };
    LoadMeasure {
        engine: Engine::Threads,
        depth: 32,
        read: operation(1 << 40),
        commit: operation(0),
        unlink: operation(1 << 20),
        lag: Some(latencies(500)),
        unfinished: 3,
        series: (0..3)
            .map(|reads| SeriesPoint {
                reads,
                read_bytes: reads << 12,
                response: latencies(reads),
                ..SeriesPoint::default()
            })
            .collect(),
        interval: Nanoseconds(1_000_000_000),
        ..LoadMeasure::default()
    }
}

/// A repetition that tells itself from others by its payload, and is small.
pub(crate) fn numbered_repetition(payload_bytes: u64) -> Repetition {
    Repetition {
        workers: vec![WorkerMeasure {
            elapsed: Nanoseconds::from_millis(500),
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
        label: Some("before the new firmware".to_owned()),
        dropped_all_caches: true,
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
        kernel: "Linux 6.1.0".to_owned(),
        cpu_model: "Z80 @ 4.00MHz".to_owned(),
        cpus: 2,
        memory_bytes: 1 << 36,
        load_average: 0.07,
        call_clock: "tsc".to_owned(),
        places: vec![Place {
            path: "/var/tmp".to_owned(),
            filesystem: Some(Filesystem {
                kind: "ext4".to_owned(),
                mount_options: "rw,relatime".to_owned(),
                block_bytes: 4096,
                ..Filesystem::default()
            }),
            devices: vec![Device {
                name: "vda".to_owned(),
                rotational: Some(false),
                ..Device::default()
            }],
        }],
    }
}
