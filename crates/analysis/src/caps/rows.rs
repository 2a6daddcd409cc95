//! Rows of a run at a cap that a probe of the same run recognised.

use super::{Cap, CapObservations, CapVerdict, CappedUnit, KNOWN_LIMIT_TOLERANCE, recognise_cap};
use crate::statistics::median;
use diskperf_timeline::{CapProbe, MeasuredWorld, ProgramResult, Repetition, Run, WorkerMeasure};

/// Cap at which a row of a run was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct RowCap {
    /// Cap of the storage of the row.
    pub cap: Cap,
    /// Rate of the row in the unit of the cap, per second.
    pub row_per_s: f64,
}

/// Judges the probe of a result; `None` for a program that does not probe.
pub fn recognise_result(run: &Run, result: &ProgramResult) -> Option<CapVerdict> {
    let (probe, worker) = result.kept_repetitions().find_map(find_probe)?;
    let elapsed_s = worker.elapsed_time.seconds();
    let share = worker.cpu_time.seconds() / elapsed_s;
    let is_known = run.world == MeasuredWorld::Host && elapsed_s > 0.0;
    Some(recognise_cap(CapObservations {
        probe,
        processor_share: is_known.then_some(share),
        known_limits: &run.environment.known_limits,
    }))
}

/// Tests whether a result is that of a probe, whose rates at several loads mean nothing together.
pub fn is_probe(result: &ProgramResult) -> bool {
    let mut kept = result.kept_repetitions();
    kept.any(|one| find_probe(one).is_some())
}

fn find_probe(repetition: &Repetition) -> Option<(&CapProbe, &WorkerMeasure)> {
    let mut workers = repetition.workers.iter();
    workers.find_map(|worker| {
        let load = worker.load_measure.as_ref()?;
        Some((load.cap_probe.as_deref()?, worker))
    })
}

/// Finds the cap at which a result was measured: one that a probe of the same run recognised on the
/// same file system for the same operations. `None` if the result's rate is below it.
pub fn find_row_cap(run: &Run, result: &ProgramResult) -> Option<RowCap> {
    if is_probe(result) {
        return None;
    }
    let writes = write_share(result)?;
    let mut probes = run.results.iter().filter(|probe| {
        probe.filesystem_type == result.filesystem_type
            && probe.drive_count == result.drive_count
            && write_share(probe) == Some(writes)
    });
    probes.find_map(|probe| {
        let CapVerdict::Capped(cap) = recognise_result(run, probe)? else {
            return None;
        };
        let row_per_s = rate_of_result(result, cap.unit)?;
        let is_reached = row_per_s >= cap.per_s * (1.0 - KNOWN_LIMIT_TOLERANCE);
        is_reached.then_some(RowCap {
            cap: *cap,
            row_per_s,
        })
    })
}

/// Returns the share of writes among the reads and writes of a result; `None` without any.
fn write_share(result: &ProgramResult) -> Option<f64> {
    let loads = || {
        result
            .kept_repetitions()
            .flat_map(Repetition::load_measures)
    };
    let all: u64 = loads().map(|load| load.read_write_count()).sum();
    let writes: u64 = loads().map(|load| load.write.request_count()).sum();
    // Shares that were drawn differ a little.
    (all > 0).then(|| (100.0 * writes as f64 / all as f64).round() / 100.0)
}

fn rate_of_result(result: &ProgramResult, unit: CappedUnit) -> Option<f64> {
    let rates: Vec<f64> = result
        .kept_repetitions()
        .filter_map(|one| match unit {
            CappedUnit::Requests => one.iops(),
            CappedUnit::Bytes => Some(one.kb_per_s() * 1024.0),
        })
        .collect();
    median(&rates)
}
