//! JSON with every figure, under the contract's names. New fields may be added, but names never
//! change.

use super::replay::ReplayJson;
use super::targets::{TargetPart, split_by_target};
use super::view::{ResultRow, RunView};
use crate::cache::{CacheVerdict, device_share};
use crate::caps::{Cap, CapVerdict, find_row_cap, recognise_result};
use crate::comparison::{
    BlockCounts, Comparison, ComparisonBasis, GateOutcome, PairSide, Quantity, ResultPair, RunName,
    UndecidedReason, Verdict,
};
use crate::layers::{Decomposition, decompose};
use crate::statistics::ConfidenceInterval;
use crate::statistics::shape::SeriesShape;
use crate::summary::cliff::CacheCliff;
use crate::summary::load::{LoadSummary, SeriesFigures, build_series, mb_per_s};
use crate::summary::{LatencyPercentiles, SteadySummary};
use diskperf_timeline::{
    CacheMode, ControllerCache, DeviceTraffic, Environment, Experiment, FlashTraffic, Interference,
    InterleavedBlock, InterleavedRun, Ledger, MeasuredWorld, MediaCache, ModelInformation,
    Nanoseconds, Overhead, ProgramResult, Protocol, Repetition, Residency, Run, RunState,
    VerifiedBlocks, WorkerFailure, WorkerMeasure, escape_unprintable,
};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
struct Runs<'a> {
    runs: Vec<RunJson<'a>>,
}

#[derive(Serialize)]
struct RunJson<'a> {
    id: &'a str,
    suite: &'a str,
    target: String,
    world: MeasuredWorld,
    label: Option<&'a str>,
    seed: u64,
    version: &'a str,
    started_unix_ms: u64,
    command_line: &'a [String],
    experiment: Option<&'a Experiment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interleaved: Option<&'a InterleavedRun>,
    cache: CacheMode,
    dropped_all_caches: bool,
    #[serde(flatten)]
    state: &'a RunState,
    notes: &'a [String],
    environment: &'a Environment,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<ModelJson<'a>>,
    overhead: Option<Overhead>,
    results: Vec<ResultJson<'a>>,
    decomposition: Vec<Decomposition>,
}

/// Facts about a modelled run. The catalogue's text stays in the store and travels by export; this
/// object has the names of its files.
#[derive(Serialize)]
struct ModelJson<'a> {
    model_version: &'a str,
    fingerprint: &'a str,
    settings: &'a [String],
    configured_drives: u32,
    phase: u32,
    catalogue: Vec<&'a str>,
}

#[derive(Serialize)]
struct ResultJson<'a> {
    program: &'a str,
    title: &'a str,
    parameters: &'a BTreeMap<String, String>,
    row: u32,
    drives: u32,
    filesystem: &'a str,
    size_bytes: u64,
    protocol: Protocol,
    #[serde(rename = "kept")]
    kept_count: usize,
    kb_per_s: f64,
    durable_kb_per_s: Option<f64>,
    cpu_percent: f64,
    elapsed_s: f64,
    durable_elapsed_s: Option<f64>,
    cpu_s: f64,
    user_s: f64,
    system_s: f64,
    interval: Option<ConfidenceInterval>,
    durable_interval: Option<ConfidenceInterval>,
    calls: f64,
    mean_call_ns: Option<f64>,
    voluntary_switches: f64,
    involuntary_switches: f64,
    minor_faults: f64,
    major_faults: f64,
    read_latency: Option<LatencyPercentiles>,
    write_latency: Option<LatencyPercentiles>,
    cache: CacheMode,
    cache_verdict: CacheVerdict,
    device_share: Option<f64>,
    generator_share: Option<f64>,
    /// Figures of a program with several requests in flight.
    #[serde(flatten)]
    load: Option<&'a LoadSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<&'a VerifiedBlocks>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'a WorkerFailure>,
    /// Trace, pace and fidelity of a replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<ReplayJson<'a>>,
    /// Cache cliff of a modelled drive whose write cache filled up.
    #[serde(skip_serializing_if = "Option::is_none")]
    cliff: Option<CacheCliff>,
    /// Share of the bytes read that a modelled flash drive never wrote and answered without its
    /// dies.
    #[serde(skip_serializing_if = "Option::is_none")]
    unwritten_share: Option<f64>,
    /// Result of the test for steadiness, for a program that was repeated until it was steady.
    #[serde(skip_serializing_if = "Option::is_none")]
    steady: Option<SteadySummary>,
    /// Write amplification of a modelled flash drive; of several drives together.
    #[serde(skip_serializing_if = "Option::is_none")]
    write_amplification: Option<f64>,
    /// Verdict of a program that probes for a cap on the rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    cap: Option<CapVerdict>,
    /// Cap at which the result was measured, as a probe of the same run recognised it.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_cap: Option<Cap>,
    #[serde(flatten)]
    shape: SeriesShape,
    notes: &'a [String],
    /// Figures of the single targets, where several ran concurrently.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    targets: Vec<TargetJson<'a>>,
    repetitions: Vec<RepetitionJson<'a>>,
}

#[derive(Serialize)]
struct TargetJson<'a> {
    target: &'a str,
    kb_per_s: f64,
    durable_kb_per_s: Option<f64>,
    cpu_percent: f64,
    elapsed_s: f64,
    durable_elapsed_s: Option<f64>,
}

impl<'a> From<TargetPart<'a>> for TargetJson<'a> {
    fn from(part: TargetPart<'a>) -> Self {
        let TargetPart { target, summary } = part;
        Self {
            target,
            kb_per_s: summary.kb_per_s,
            durable_kb_per_s: summary.durable_kb_per_s,
            cpu_percent: summary.cpu_percent,
            elapsed_s: summary.elapsed_s,
            durable_elapsed_s: summary.durable_elapsed_s,
        }
    }
}

#[derive(Serialize)]
struct RepetitionJson<'a> {
    discarded: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<InterleavedBlock>,
    kb_per_s: f64,
    durable_kb_per_s: Option<f64>,
    cpu_percent: f64,
    elapsed_s: f64,
    durable_elapsed_s: Option<f64>,
    #[serde(flatten)]
    load: Option<LoadJson>,
    device_share: Option<f64>,
    cache_verdict: CacheVerdict,
    residency: Option<Residency>,
    devices: &'a [DeviceTraffic],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    controller_caches: &'a [ControllerCache],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    media_caches: &'a [MediaCache],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    flash: &'a [FlashTraffic],
    interference: &'a [Interference],
    workers: Vec<WorkerJson<'a>>,
}

/// Figures of one repetition of a program with several requests in flight.
#[derive(Serialize)]
struct LoadJson {
    iops: Option<f64>,
    mb_per_s: f64,
    response_p50_us: Option<f64>,
    response_p99_us: Option<f64>,
    series: Vec<SeriesFigures>,
}

impl LoadJson {
    fn from_repetition(repetition: &Repetition) -> Option<Self> {
        repetition.load_measures().next()?;
        Some(Self {
            iops: repetition.iops(),
            mb_per_s: mb_per_s(repetition),
            response_p50_us: Quantity::ResponseP50Us.figure_of_repetition(repetition),
            response_p99_us: Quantity::ResponseP99Us.figure_of_repetition(repetition),
            series: build_series(repetition),
        })
    }
}

/// Counts of a worker. Its latency histograms stay in the store and travel by export; this object
/// has their percentiles.
#[derive(Serialize)]
struct WorkerJson<'a> {
    drive: u32,
    started_s: f64,
    elapsed_s: f64,
    durable_elapsed_s: Option<f64>,
    cpu_s: f64,
    user_s: f64,
    system_s: f64,
    payload_bytes: u64,
    read_bytes: u64,
    written_bytes: u64,
    calls: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
    minor_faults: u64,
    major_faults: u64,
    storage_read_bytes: Option<u64>,
    read_latency: Option<LatencyPercentiles>,
    write_latency: Option<LatencyPercentiles>,
    /// Elapsed time of the worker by stage, in a modelled run.
    #[serde(skip_serializing_if = "Ledger::is_empty")]
    ledger: Ledger,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'a WorkerFailure>,
}

/// Formats runs as JSON by the `run` contract.
pub(super) fn render_runs(views: &[RunView]) -> String {
    render_pretty(&Runs {
        runs: views.iter().map(run_json).collect(),
    })
}

fn run_json<'a>(view: &'a RunView) -> RunJson<'a> {
    let run = view.run;
    let results: Vec<&ProgramResult> = run.results.iter().collect();
    RunJson {
        id: &run.run_id,
        suite: &run.suite_name,
        target: run.target_paths(),
        world: run.world,
        label: run.user_label.as_deref(),
        seed: run.seed,
        version: &run.program_version,
        started_unix_ms: run.started_unix_ms,
        command_line: &run.command_line,
        experiment: run.experiment.as_ref(),
        interleaved: run.interleaved.as_ref(),
        cache: run.cache_mode,
        dropped_all_caches: run.drops_all_caches,
        state: &run.state,
        notes: &run.notes,
        environment: &run.environment,
        model: run.model_information.as_ref().map(model_json),
        overhead: run.overhead,
        results: view.rows.iter().map(|row| result_json(run, row)).collect(),
        decomposition: decompose(&results),
    }
}

fn model_json(model: &ModelInformation) -> ModelJson<'_> {
    ModelJson {
        model_version: &model.model_version,
        fingerprint: &model.fingerprint,
        settings: &model.settings,
        configured_drives: model.configured_drives,
        phase: model.drive_phase,
        catalogue: model.catalogue.keys().map(String::as_str).collect(),
    }
}

fn result_json<'a>(run: &'a Run, row: &'a ResultRow) -> ResultJson<'a> {
    let (result, summary) = (row.result, &row.summary);
    let repetition = |one| repetition_json(one, result.cache_mode);
    ResultJson {
        program: &result.program,
        title: &row.title,
        parameters: &result.parameters,
        row: result.table_row,
        drives: result.drive_count,
        filesystem: &result.filesystem_type,
        size_bytes: result.size_bytes,
        protocol: result.protocol,
        kept_count: summary.kept_count,
        kb_per_s: summary.kb_per_s,
        durable_kb_per_s: summary.durable_kb_per_s,
        cpu_percent: summary.cpu_percent,
        elapsed_s: summary.elapsed_s,
        durable_elapsed_s: summary.durable_elapsed_s,
        cpu_s: summary.cpu_s,
        user_s: summary.user_s,
        system_s: summary.system_s,
        interval: summary.speed_interval,
        durable_interval: summary.durable_interval,
        calls: summary.call_count,
        mean_call_ns: summary.mean_call_ns,
        voluntary_switches: summary.voluntary_switches,
        involuntary_switches: summary.involuntary_switches,
        minor_faults: summary.minor_faults,
        major_faults: summary.major_faults,
        read_latency: summary.read_latency,
        write_latency: summary.write_latency,
        cache: result.cache_mode,
        cache_verdict: summary.cache,
        device_share: summary.device_share,
        generator_share: row.generator_share,
        load: summary.load.as_ref(),
        verified: summary.verified.as_ref(),
        failure: result.first_failure(),
        replay: ReplayJson::from_result(run, result),
        steady: summary.steady,
        cliff: summary.cache_cliff,
        unwritten_share: summary.unwritten_share,
        write_amplification: write_amplification_of_result(result),
        cap: recognise_result(run, result),
        at_cap: find_row_cap(run, result).map(|found| found.cap),
        shape: summary.shape,
        notes: &result.notes,
        targets: split_by_target(run, result)
            .into_iter()
            .map(Into::into)
            .collect(),
        repetitions: result.repetitions.iter().map(repetition).collect(),
    }
}

fn write_amplification_of_result(result: &ProgramResult) -> Option<f64> {
    let together = |one: FlashTraffic| FlashTraffic {
        drive_index: 0,
        ..one
    };
    let all: Vec<FlashTraffic> = result.flash().into_iter().map(together).collect();
    FlashTraffic::sum(&all).first()?.write_amplification()
}

fn repetition_json(repetition: &Repetition, mode: CacheMode) -> RepetitionJson<'_> {
    RepetitionJson {
        discarded: repetition.is_discarded,
        block: repetition.interleaved_block,
        kb_per_s: repetition.kb_per_s(),
        durable_kb_per_s: repetition.durable_kb_per_s(),
        cpu_percent: repetition.cpu_percent(),
        elapsed_s: repetition.elapsed_time().seconds(),
        durable_elapsed_s: repetition.durable_time().map(Nanoseconds::seconds),
        load: LoadJson::from_repetition(repetition),
        device_share: device_share(repetition),
        cache_verdict: CacheVerdict::from_repetition(repetition, mode),
        residency: repetition.residency,
        devices: &repetition.devices,
        controller_caches: &repetition.controller_caches,
        media_caches: &repetition.media_caches,
        flash: &repetition.flash_traffic,
        interference: &repetition.interference,
        workers: repetition.workers.iter().map(worker_json).collect(),
    }
}

fn worker_json(worker_measure: &WorkerMeasure) -> WorkerJson<'_> {
    WorkerJson {
        drive: worker_measure.drive_index,
        started_s: worker_measure.start_time.seconds(),
        elapsed_s: worker_measure.elapsed_time.seconds(),
        durable_elapsed_s: worker_measure.durable_time.map(Nanoseconds::seconds),
        cpu_s: worker_measure.cpu_time.seconds(),
        user_s: worker_measure.user_cpu_time.seconds(),
        system_s: worker_measure.system_cpu_time.seconds(),
        payload_bytes: worker_measure.payload_bytes,
        read_bytes: worker_measure.read_bytes,
        written_bytes: worker_measure.written_bytes,
        calls: worker_measure.call_count,
        voluntary_switches: worker_measure.voluntary_switch_count,
        involuntary_switches: worker_measure.involuntary_switch_count,
        minor_faults: worker_measure.minor_fault_count,
        major_faults: worker_measure.major_fault_count,
        storage_read_bytes: worker_measure.storage_read_bytes,
        read_latency: LatencyPercentiles::from_histogram(&worker_measure.read_latency),
        write_latency: LatencyPercentiles::from_histogram(&worker_measure.write_latency),
        ledger: worker_measure.ledger.clone(),
        failure: worker_measure.worker_failure.as_ref(),
    }
}

#[derive(Serialize)]
struct ComparisonJson<'a> {
    /// Runs of the comparison, the base first.
    runs: &'a [RunName],
    pairs: Vec<PairJson<'a>>,
    unpaired: Vec<UnpairedJson<'a>>,
    warnings: Vec<WarningJson<'a>>,
    undecided: usize,
    worst_slowdown: Option<SlowdownJson<'a>>,
    /// Result of the slow-down limit; only where one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<GateJson>,
}

#[derive(Serialize)]
struct GateJson {
    limit: f64,
    outcome: GateOutcome,
    exit_code: u8,
    reasons: Vec<String>,
}

#[derive(Serialize)]
struct PairJson<'a> {
    run: &'a str,
    program: &'a str,
    title: &'a str,
    quantity: Quantity,
    base: &'a PairSide,
    other: &'a PairSide,
    statistic: ComparisonBasis,
    ratio: Option<f64>,
    interval: Option<ConfidenceInterval>,
    excluded_above: Option<f64>,
    verdict: Verdict,
    doubt: Option<UndecidedReason>,
    verdict_text: String,
    /// Number of blocks; only for the arms of an A/B measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<BlockCounts>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct UnpairedJson<'a> {
    run: &'a str,
    missing_in: &'a str,
    program: &'a str,
    title: &'a str,
    filesystem: &'a str,
}

#[derive(Serialize)]
struct WarningJson<'a> {
    run: &'a str,
    text: &'a str,
}

#[derive(Serialize)]
struct SlowdownJson<'a> {
    run: &'a str,
    program: &'a str,
    title: &'a str,
    quantity: Quantity,
    slowdown: f64,
}

pub(super) fn render_comparison(comparison: &Comparison) -> String {
    let id = |run: usize| comparison.runs[run].id.as_str();
    let worst = comparison.worst_slowdown().and_then(|worst| {
        Some(SlowdownJson {
            run: id(worst.run_index),
            program: &worst.program_key,
            title: &worst.title,
            quantity: worst.quantity,
            slowdown: worst.slowdown()?,
        })
    });
    let unpaired = comparison.unpaired_results.iter().map(|one| UnpairedJson {
        run: id(one.run_index),
        missing_in: id(one.run_index_without),
        program: &one.key,
        title: &one.title,
        filesystem: &one.filesystem,
    });
    let warnings = comparison.warnings.iter().map(|one| WarningJson {
        run: id(one.run_index),
        text: &one.message,
    });
    let pairs = comparison
        .result_pairs
        .iter()
        .map(|one| pair_json(id(one.run_index), one));
    render_pretty(&BTreeMap::from([(
        "comparison",
        ComparisonJson {
            runs: &comparison.runs,
            pairs: pairs.collect(),
            unpaired: unpaired.collect(),
            warnings: warnings.collect(),
            undecided: comparison.undecided_count(),
            worst_slowdown: worst,
            gate: comparison.gate_result.as_ref().map(|gated| GateJson {
                limit: gated.limit,
                outcome: gated.outcome,
                exit_code: gated.outcome.exit_code(),
                reasons: gated.failures.iter().map(ToString::to_string).collect(),
            }),
        },
    )]))
}

fn pair_json<'a>(run: &'a str, pair: &'a ResultPair) -> PairJson<'a> {
    PairJson {
        run,
        program: &pair.program_key,
        title: &pair.title,
        quantity: pair.quantity,
        base: &pair.base,
        other: &pair.other,
        statistic: pair.basis,
        ratio: pair.judgement.ratio,
        interval: pair.judgement.interval,
        excluded_above: pair.judgement.slowdown_excluded_above(),
        verdict: pair.judgement.verdict,
        doubt: pair.judgement.undecided_reason,
        verdict_text: pair.describe_verdict(),
        blocks: pair.block_counts,
        warnings: &pair.warnings,
    }
}

pub(super) fn render_pretty(value: &impl Serialize) -> String {
    // Nothing here can fail to serialise: all keys are text, and no writer is
    // involved.
    let text = serde_json::to_string_pretty(value).expect("plain data serialises") + "\n";
    escape_unprintable(&text).into_owned()
}
