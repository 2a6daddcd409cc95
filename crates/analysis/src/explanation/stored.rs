//! Account of a program on real storage without recorded events: from each worker's counters, and
//! for `seqread` from its layers.
//!
//! A worker's processor time and its waits for a processor are known to the nanosecond. Its other
//! waits are not, and remain unattributed unless layers divide them. A layer does the work of the
//! one below and something more, so that differences are parts (see [`crate::layers`]).
//!
//! These are means: with layers the ledger is that of the mean repetition, otherwise that of the
//! median one.

use super::processor::{CpuTimeDivision, build_ledger_entries};
use super::{DeviceAccount, TimeAccount, Utilisation};
use crate::layers::{CallPart, CostEstimate, Decomposition, ReadLayer};
use crate::summary::load::find_median_repetition;
use diskperf_timeline::{Ledger, Nanoseconds, ProgramResult, Repetition, Stage, WorkerMeasure};

/// Creates the account of a result; `None` where no repetition counts. `layers` are those of its
/// run.
pub fn build_account(result: &ProgramResult, layers: &[Decomposition]) -> Option<TimeAccount> {
    let repetition = median_repetition(result)?;
    let mut account = account_from_counters(repetition, CpuTimeDivision::from_result(result));
    if let Some(parts) = find_layers_of_result(result, layers) {
        let calls = repetition.sum_over_workers(|worker| worker.call_count);
        (account.elapsed, account.ledger) = build_ledger_from_layers(parts, calls);
    } else if ReadLayer::from_result(result) == Some(ReadLayer::Null) {
        // The lowest layer is one part, the call.
        let mut table = [0; Stage::COUNT];
        table[Stage::SystemCall.index()] = account.elapsed.0;
        account.ledger = Ledger::from_table(&table);
    }
    Some(account)
}

/// Finds the layers that belong to a result among those of its run.
pub fn find_layers_of_result<'l>(
    result: &ProgramResult,
    layers: &'l [Decomposition],
) -> Option<&'l Decomposition> {
    let call_bytes = result.parameters.get("call_bytes")?;
    layers.iter().find(|one| {
        Some(one.layer) == ReadLayer::from_result(result)
            && *call_bytes == one.call_bytes.to_string()
            && one.filesystem == result.filesystem_type
    })
}

/// Returns the median repetition among those that count.
pub fn median_repetition(result: &ProgramResult) -> Option<&Repetition> {
    let kept: Vec<&Repetition> = result.kept_repetitions().collect();
    find_median_repetition(&kept)
}

/// Returns the worker that ended last, whose time the ledger covers.
pub(super) fn last_worker_to_end(repetition: &Repetition) -> Option<&WorkerMeasure> {
    let ended = |worker: &&WorkerMeasure| worker.start_time + worker.elapsed_time;
    repetition.workers.iter().max_by_key(ended)
}

fn account_from_counters(
    repetition: &Repetition,
    division: Option<CpuTimeDivision>,
) -> TimeAccount {
    let elapsed = repetition.elapsed_time();
    let mut table = [0; Stage::COUNT];
    let mut left = elapsed.0;
    if let Some(worker) = last_worker_to_end(repetition) {
        let own = worker.elapsed_time.0.min(left);
        let processor = worker.cpu_time.0.min(own);
        let waiting = worker
            .cpu_wait_time
            .unwrap_or_default()
            .0
            .min(own - processor);
        let ready = [(Stage::CpuWait, Nanoseconds(waiting))];
        for (stage, ns) in build_ledger_entries(division, Nanoseconds(processor))
            .into_iter()
            .chain(ready)
        {
            table[stage.index()] += ns.0;
            left -= ns.0;
        }
    }
    table[Stage::Unattributed.index()] += left;
    TimeAccount {
        elapsed,
        ledger: Ledger::from_table(&table),
        program_ledgers: Vec::new(),
        missed_deadlines: Vec::new(),
        utilisation: measure_utilisation(repetition),
        drive_accounts: Vec::new(),
        device_accounts: account_devices(repetition),
        response_account: None,
        buffer_hits: None,
    }
}

/// Minimum duration for which a device's busy time is reported. The kernel counts it in steps of a
/// few milliseconds.
const BUSY_TIME_MIN: Nanoseconds = Nanoseconds::from_millis(40);

/// Returns the time for which the devices' counters ran, until all data were durable; `None` where
/// it is too short.
fn device_busy_time(repetition: &Repetition) -> Option<Nanoseconds> {
    let span = repetition.durable_time().unwrap_or_default();
    let span = span.max(repetition.elapsed_time());
    (span >= BUSY_TIME_MIN).then_some(span)
}

fn measure_utilisation(repetition: &Repetition) -> Utilisation {
    let elapsed = repetition.elapsed_time().0.max(1) as f64;
    let span = device_busy_time(repetition);
    let busy = repetition.devices.iter().filter_map(|device| {
        let span_ms = span?.0 as f64 / 1e6;
        Some((device.busy_ms as f64 / span_ms).min(1.0))
    });
    Utilisation {
        processor_share: Some(
            repetition.sum_over_workers(|worker| worker.cpu_time.0) as f64 / elapsed,
        ),
        drive_shares: busy.collect(),
        ..Utilisation::default()
    }
}

fn account_devices(repetition: &Repetition) -> Vec<DeviceAccount> {
    let known = device_busy_time(repetition).map(|_| &repetition.devices);
    let name = |device: &diskperf_timeline::DeviceTraffic| DeviceAccount {
        device_name: device.device_name.clone(),
        in_queue_mean: None,
        at_device_mean: None,
        at_device_max: None,
        operation_accounts: Vec::new(),
    };
    known.into_iter().flatten().map(name).collect()
}

pub(super) fn stage_of_estimate(part: &CostEstimate) -> Stage {
    if !part.is_distinguished {
        return Stage::Unattributed;
    }
    match part.part {
        // What the kernel does beyond the bare call, where no layer divides it,
        // is of the call.
        CallPart::SystemCall | CallPart::KernelPath => Stage::SystemCall,
        CallPart::ClearBuffer => Stage::Clear,
        CallPart::LookUpAndCopy => Stage::Copy,
        CallPart::MissHandling => Stage::CacheLookup,
        CallPart::DeviceWait => Stage::Device,
    }
}

/// Returns the elapsed time and the ledger of a number of calls with the mean parts of a layer.
fn build_ledger_from_layers(layers: &Decomposition, calls: u64) -> (Nanoseconds, Ledger) {
    let ns = |per_call: f64| (per_call * calls as f64).round() as i64;
    let elapsed = ns(layers.total_ns);
    let mut table = [0_i64; Stage::COUNT];
    for part in &layers.cost_estimates {
        table[stage_of_estimate(part).index()] += ns(part.mean_ns);
    }
    // What is not told apart from nothing may come out below it, by noise; then
    // it is nothing, and the largest part has taken up that noise.
    table[Stage::Unattributed.index()] = table[Stage::Unattributed.index()].max(0);
    let sum: i64 = table.iter().sum();
    let largest = (0..Stage::COUNT).max_by_key(|place| table[*place]);
    if let Some(largest) = largest {
        table[largest] += elapsed - sum;
    }
    let ledger = Ledger::from_table(&table.map(|ns| ns.max(0) as u64));
    (ledger.total_duration(), ledger)
}

/// Describes to the reader the parts that the layers give, or why they give none.
pub fn describe_source(result: &ProgramResult, layers: &[Decomposition]) -> Option<String> {
    let own = ReadLayer::from_result(result)?;
    let told = layers.iter().any(|one| one.layer == own);
    Some(match (told, own) {
        (true, _) => {
            "seqread: mean parts from the layers: copy is the lookup and the copy of cached pages together; cache lookup is the processor time of a miss; device is the remaining wait".to_owned()
        }
        (false, ReadLayer::Null) => {
            "seqread layer=null is the bare call, which all other layers include".to_owned()
        }
        (false, _) => {
            "seqread: the layers separate the parts only if the run has layer=null with the same call size: `diskperf run seqread89`".to_owned()
        }
    })
}

#[cfg(test)]
mod tests;
