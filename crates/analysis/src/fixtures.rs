//! Runs with invented figures, for tests of the analysis.

pub(crate) mod load;

use diskperf_timeline::units::{KIB, MIB};
use diskperf_timeline::{
    CacheMode, Device, Environment, Filesystem, MeasuredWorld, Nanoseconds, Overhead,
    ProgramResult, Protocol, Repetition, Residency, Run, RunState, SummaryStatistic,
    TargetDescription, WorkerMeasure,
};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Creates a repetition that read `size_bytes` from storage at this speed.
pub(crate) fn read_repetition(size_bytes: u64, kb_per_s: f64, cpu_percent: f64) -> Repetition {
    let elapsed_ns = size_bytes as f64 / KIB as f64 / kb_per_s * 1e9;
    let cpu_ns = elapsed_ns * cpu_percent / 100.0;
    let calls = size_bytes / 8192;
    let mut worker = WorkerMeasure {
        elapsed_time: Nanoseconds(elapsed_ns as u64),
        cpu_time: Nanoseconds((cpu_ns * 0.1) as u64 + (cpu_ns * 0.9) as u64),
        user_cpu_time: Nanoseconds((cpu_ns * 0.1) as u64),
        system_cpu_time: Nanoseconds((cpu_ns * 0.9) as u64),
        payload_bytes: size_bytes,
        read_bytes: size_bytes,
        call_count: calls,
        voluntary_switch_count: 12,
        involuntary_switch_count: 3,
        minor_fault_count: 2,
        storage_read_bytes: Some(size_bytes),
        ..WorkerMeasure::default()
    };
    // Every 16th call waits for read-ahead.
    let latency = |call: u64| {
        let share = if call.is_multiple_of(16) { 8.0 } else { 0.5 };
        Nanoseconds((elapsed_ns / calls as f64 * share) as u64)
    };
    worker.read_latency = (0..calls).map(latency).collect();
    Repetition {
        workers: vec![worker],
        residency: Some(Residency {
            file_bytes: size_bytes,
            resident_before_bytes: 0,
            resident_after_bytes: size_bytes,
        }),
        ..Repetition::default()
    }
}

/// Creates a repetition that wrote, and took three times as long until it was synced.
pub(crate) fn write_repetition(size_bytes: u64, kb_per_s: f64, cpu_percent: f64) -> Repetition {
    let mut repetition = read_repetition(size_bytes, kb_per_s, cpu_percent);
    let worker = &mut repetition.workers[0];
    worker.durable_time = Some(Nanoseconds(3 * worker.elapsed_time.0));
    worker.written_bytes = std::mem::take(&mut worker.read_bytes);
    worker.storage_read_bytes = Some(0);
    std::mem::swap(&mut worker.read_latency, &mut worker.write_latency);
    repetition.residency = None;
    repetition
}

pub(crate) fn build_result(program: &str, row: u32, repetitions: Vec<Repetition>) -> ProgramResult {
    ProgramResult {
        program: program.to_owned(),
        parameters: [("block_bytes".to_owned(), "8192".to_owned())].into(),
        distinguishing: Vec::new(),
        table_row: row,
        drive_count: 1,
        filesystem_type: "ext4/4096".to_owned(),
        size_bytes: 8 * MIB,
        cache_mode: CacheMode::Cold,
        protocol: Protocol {
            repetition_count: repetitions.len() as u32,
            discarded_count: 0,
            statistic: SummaryStatistic::Median,
            stop_below_share: None,
            steady_rule: None,
        },
        repetitions,
        notes: Vec::new(),
    }
}

/// Creates a `seqread` result from (nanoseconds, nanoseconds of CPU) per call.
pub(crate) fn build_seqread_result(
    layer: &str,
    call_bytes: u64,
    row: u32,
    per_call: &[(u64, u64)],
) -> ProgramResult {
    let calls = 2 * MIB / call_bytes;
    let repetitions = per_call
        .iter()
        .map(|(elapsed, cpu)| Repetition {
            workers: vec![WorkerMeasure {
                elapsed_time: Nanoseconds(elapsed * calls),
                cpu_time: Nanoseconds(cpu * calls),
                system_cpu_time: Nanoseconds(cpu * calls),
                payload_bytes: 2 * MIB,
                read_bytes: if layer == "null" { 0 } else { 2 * MIB },
                storage_read_bytes: Some(match layer {
                    "null" | "zero" | "cached" => 0,
                    _ => 2 * MIB,
                }),
                call_count: calls,
                ..WorkerMeasure::default()
            }],
            ..Repetition::default()
        })
        .collect();
    let mut result = build_result("seqread", row, repetitions);
    result.size_bytes = 2 * MIB;
    result.parameters = [
        ("layer".to_owned(), layer.to_owned()),
        ("call_bytes".to_owned(), call_bytes.to_string()),
    ]
    .into();
    result.distinguishing = vec!["layer".to_owned(), "call_bytes".to_owned()];
    result.cache_mode = match layer {
        "cached" => CacheMode::Warm,
        "direct" | "device_direct" => CacheMode::Direct,
        _ => CacheMode::Cold,
    };
    result
}

pub(crate) fn build_run(id: &str, suite: &str, target: &str, results: Vec<ProgramResult>) -> Run {
    Run {
        run_id: id.to_owned(),
        program_version: "0.1.0".to_owned(),
        suite_name: suite.to_owned(),
        target_label: target.to_owned(),
        world: MeasuredWorld::Host,
        user_label: None,
        seed: 1,
        started_unix_ms: 1_795_222_800_000,
        command_line: vec![
            "diskperf".into(),
            "run".into(),
            suite.into(),
            "--on".into(),
            target.into(),
        ],
        experiment: None,
        interleaved: None,
        cache_mode: CacheMode::Cold,
        drops_all_caches: false,
        state: RunState::Finished,
        environment: build_environment(target),
        model_information: None,
        overhead: Some(Overhead {
            null_call_ns: 95.0,
            timing_ns: 22.0,
        }),
        results,
        notes: Vec::new(),
    }
}

fn build_environment(target: &str) -> Environment {
    Environment {
        kernel_version: "Linux 6.1.0".to_owned(),
        cpu_model: "Xeon E-2288G".to_owned(),
        cpu_count: 2,
        memory_bytes: 8 << 30,
        load_average: 0.42,
        call_clock: "tsc".to_owned(),
        places: vec![TargetDescription {
            path: target.to_owned(),
            filesystem: Some(Filesystem {
                filesystem_type: "ext4".to_owned(),
                mount_source: "/dev/vda1".to_owned(),
                mount_point: "/var".to_owned(),
                mount_options: "rw,relatime".to_owned(),
                block_bytes: 4096,
                total_bytes: 100 << 30,
                available_bytes: 40 << 30,
            }),
            devices: vec![Device {
                name: "vda".to_owned(),
                model: Some("QEMU HARDDISK".to_owned()),
                size_bytes: 128 << 30,
                is_rotational: Some(true),
                io_scheduler: Some("mq-deadline".to_owned()),
                read_ahead_kib: Some(128),
                write_cache_mode: Some("write back".to_owned()),
                ..Device::default()
            }],
        }],
        known_limits: Vec::new(),
    }
}

/// Creates a run of the 1983 battery with the figures of the first column of the paper's table for
/// the VAX 11/750. The repetitions of a program differ slightly.
pub(crate) fn build_ffs83_run(id: &str, target: &str) -> Run {
    let around = |make: fn(u64, f64, f64) -> Repetition, kb: f64, cpu: f64| {
        let mut repetitions: Vec<_> = [0.8, 0.99, 1.01]
            .iter()
            .map(|factor| make(8 * MIB, kb * factor, cpu))
            .collect();
        repetitions[0].is_discarded = true;
        repetitions
    };
    let mut results = vec![
        build_result("write_4096", 1, around(write_repetition, 380.0, 99.0)),
        build_result("write_8192", 2, around(write_repetition, 470.0, 99.0)),
        build_result("read_8192", 0, around(read_repetition, 490.0, 69.0)),
        build_result("rewrite_8192", 3, around(write_repetition, 650.0, 99.0)),
    ];
    for result in &mut results {
        result.protocol.discarded_count = 1;
    }
    build_run(id, "ffs83", target, results)
}

/// Creates a run with the layers of Kirkendall 1989 on a fast machine: (ns, ns of CPU) per call.
pub(crate) fn build_seqread89_run(id: &str, target: &str) -> Run {
    let mut results = Vec::new();
    for (layer, base, per_kib, cpu_share) in [
        ("null", 90.0, 0.0, 1.0),
        ("zero", 100.0, 12.0, 1.0),
        ("cached", 160.0, 55.0, 1.0),
        ("dropped", 190.0, 620.0, 0.35),
        ("direct", 60_000.0, 450.0, 0.08),
    ] {
        for call_bytes in [512_u64, 1024, 2048, 8192, 16384] {
            let ns = base + per_kib * call_bytes as f64 / 1024.0;
            let per_call: Vec<(u64, u64)> = [1.01, 0.99, 1.0]
                .iter()
                .map(|factor| ((ns * factor) as u64, (ns * factor * cpu_share) as u64))
                .collect();
            results.push(build_seqread_result(
                layer,
                call_bytes,
                results.len() as u32,
                &per_call,
            ));
        }
    }
    build_run(id, "seqread89", target, results)
}

/// Deterministic random numbers for Monte-Carlo tests.
pub(crate) struct RandomNoise(Pcg64Mcg);

impl RandomNoise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    pub(crate) fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.uniform()).ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Draws `n` speeds of a shared machine: a run is as fast as the machine was that minute,
    /// within 1 %, and each repetition is disturbed with the run's own probability, by a tenth of
    /// its speed on average.
    pub(crate) fn disturbed_values(&mut self, n: usize, undisturbed: f64) -> Vec<f64> {
        let run = undisturbed * (0.01 * self.normal()).exp();
        let probability = 0.8 * self.uniform();
        let mut next = || {
            let disturbed = self.uniform() < probability;
            let lost = if disturbed {
                -0.1 * (1.0 - self.uniform()).ln()
            } else {
                0.0
            };
            run * (0.003 * self.normal() - lost).exp()
        };
        (0..n).map(|_| next()).collect()
    }
}
