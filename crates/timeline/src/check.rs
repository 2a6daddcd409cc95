//! Plausibility checks on the figures of a stored run.
//!
//! Runs come from files and stores that anybody may have written. Figures that pass can be added,
//! compared and drawn without an overflow: no figure exceeds 2^60 when summed over its run, so a
//! few such sums may be added in turn. The checks accept every value that a worker can measure.

mod load;
mod replay;

use crate::FlashTraffic;
use crate::experiment::Workload;
use crate::repetition::{ControllerCache, DeviceTraffic, MediaCache, Repetition, WorkerMeasure};
use crate::run::{ProgramResult, Run};
use crate::units::CALENDAR_END_UNIX_MS;
use std::collections::BTreeMap;

/// Error for a figure that no measurement can produce.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field_path} {problem}")]
pub struct ImpossibleValue {
    /// Path of the impossible figure within the run:
    /// `results[2].repetitions[1].workers[0].elapsed`.
    pub field_path: String,
    /// Description of why the figure is impossible.
    pub problem: String,
}

impl ImpossibleValue {
    fn new(path: impl Into<String>, wrong: impl Into<String>) -> Self {
        Self {
            field_path: path.into(),
            problem: wrong.into(),
        }
    }

    /// Prefixes the path with the name of the containing object.
    pub fn within_field(mut self, outer: &str) -> Self {
        self.field_path = format!("{outer}.{}", self.field_path);
        self
    }
}

/// Maximum length of a run id in characters. Ids that diskperf assigns have ten digits.
pub const RUN_ID_LENGTH_MAX: usize = 64;

/// Maximum drive count that a run may claim; no machine runs a program on more drives at the same
/// time.
const DRIVES_MAX: u32 = 1 << 16;

/// Upper bound of a latency bucket. The recorder counts calls longer than 2^50 ns in the bucket of
/// 2^50 ns.
const LATENCY_NS_MAX: u64 = 1 << 51;

impl Run {
    /// Checks that every figure of the run is possible, alone and together with the others.
    ///
    /// # Errors
    ///
    /// The first impossible figure, with its path in the document.
    pub fn check_run(&self) -> Result<(), ImpossibleValue> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if self.run_id.is_empty()
            || self.run_id.len() > RUN_ID_LENGTH_MAX
            || !self.run_id.bytes().all(is_digit)
        {
            return Err(ImpossibleValue::new(
                "id",
                format!(
                    "is `{}`: an id has lower-case hexadecimal digits",
                    self.run_id.escape_debug()
                ),
            ));
        }
        if self.started_unix_ms >= CALENDAR_END_UNIX_MS {
            return Err(ImpossibleValue::new(
                "started_unix_ms",
                format!(
                    "is {}: the last year of the calendar is 9999",
                    self.started_unix_ms
                ),
            ));
        }
        require_not_negative(
            "environment.load_average",
            Some(self.environment.load_average),
        )?;
        let overhead = self.overhead.as_ref();
        require_not_negative(
            "overhead.null_call_ns",
            overhead.map(|overhead| overhead.null_call_ns),
        )?;
        require_not_negative(
            "overhead.timing_ns",
            overhead.map(|overhead| overhead.timing_ns),
        )?;
        for place in &self.environment.places {
            for device in &place.devices {
                let named = |field| format!("environment.places.devices.health.{field}");
                let health = &device.health;
                // Below the freezing point of water there are some.
                let above_zero_k = health.temperature_c.map(|celsius| celsius + 273.15);
                require_not_negative(&named("temperature_c"), above_zero_k)?;
                require_not_negative(&named("wear_percent"), health.wear_percent)?;
            }
        }
        let interleaved = self.interleaved.as_ref();
        require_not_negative(
            "interleaved.min_effect",
            interleaved.and_then(|arm| arm.effect_min),
        )?;
        if let Some(Workload::Replay(of)) = self.experiment.as_ref().map(|kept| &kept.workload) {
            replay::check_replay(of)
                .map_err(|wrong| wrong.within_field("experiment.workload.replay"))?;
        }
        let mut sums = CheckedSums::default();
        for (number, result) in self.results.iter().enumerate() {
            check_result(result, &mut sums)
                .map_err(|wrong| wrong.within_field(&format!("results[{number}]")))?;
        }
        Ok(())
    }
}

/// Rejects rates, shares and times outside 0 to 1e15.
fn require_not_negative(path: &str, value: Option<f64>) -> Result<(), ImpossibleValue> {
    match value {
        Some(value) if !(0.0..=1e15).contains(&value) => Err(ImpossibleValue::new(
            path,
            format!("is {value:e}, not from 0 to 1e15"),
        )),
        _ => Ok(()),
    }
}

/// Maximum sum of one figure over a run: 2^60, that is 36 years in nanoseconds or one exbibyte.
const SUM_MAX: u64 = 1 << 60;

/// Sum of each figure over a run so far, by figure name.
#[derive(Default)]
struct CheckedSums(BTreeMap<&'static str, u64>);

impl CheckedSums {
    fn add_checked(&mut self, name: &'static str, value: u64) -> Result<(), ImpossibleValue> {
        let sum = self.0.entry(name).or_default();
        match sum.checked_add(value).filter(|sum| *sum <= SUM_MAX) {
            Some(more) => {
                *sum = more;
                Ok(())
            }
            None => Err(ImpossibleValue::new(
                name,
                format!("is {value}: its sum over the run exceeds 2^60"),
            )),
        }
    }
}

fn check_result(result: &ProgramResult, sums: &mut CheckedSums) -> Result<(), ImpossibleValue> {
    if !(1..=DRIVES_MAX).contains(&result.drive_count) {
        return Err(ImpossibleValue::new(
            "drives",
            format!("is {}, not from 1 to {DRIVES_MAX}", result.drive_count),
        ));
    }
    let protocol = &result.protocol;
    if protocol.repetition_count == 0 || protocol.discarded_count >= protocol.repetition_count {
        return Err(ImpossibleValue::new(
            "protocol.discarded",
            format!(
                "is {} of {} repetitions: at least one must count",
                protocol.discarded_count, protocol.repetition_count
            ),
        ));
    }
    require_not_negative("protocol.stop_below_share", protocol.stop_below_share)?;
    if protocol.steady_rule.is_some_and(|rule| !rule.is_valid()) {
        return Err(ImpossibleValue::new(
            "protocol.steady",
            "is not a valid rule: a window has 2 to 1000 rounds, and shares are above 0 up to 1"
                .to_owned(),
        ));
    }
    for (number, repetition) in result.repetitions.iter().enumerate() {
        check_repetition(repetition, result.drive_count, sums)
            .map_err(|wrong| wrong.within_field(&format!("repetitions[{number}]")))?;
    }
    Ok(())
}

fn check_repetition(
    repetition: &Repetition,
    drives: u32,
    sums: &mut CheckedSums,
) -> Result<(), ImpossibleValue> {
    if repetition.workers.is_empty() {
        return Err(ImpossibleValue::new(
            "workers",
            "is empty: at least one worker ran",
        ));
    }
    for (number, worker) in repetition.workers.iter().enumerate() {
        check_worker(worker, drives, sums)
            .map_err(|wrong| wrong.within_field(&format!("workers[{number}]")))?;
    }
    if let Some(found) = &repetition.residency {
        sums.add_checked("residency.file_bytes", found.file_bytes)?;
        for (path, bytes) in [
            ("residency.before_bytes", found.resident_before_bytes),
            ("residency.after_bytes", found.resident_after_bytes),
        ] {
            require_at_most(path, bytes, ("residency.file_bytes", found.file_bytes))?;
        }
    }
    for (number, device) in repetition.devices.iter().enumerate() {
        check_device(device, sums)
            .map_err(|wrong| wrong.within_field(&format!("devices[{number}]")))?;
    }
    for (number, cache) in repetition.controller_caches.iter().enumerate() {
        check_cache(cache, sums)
            .map_err(|wrong| wrong.within_field(&format!("controller_caches[{number}]")))?;
    }
    for (number, cache) in repetition.media_caches.iter().enumerate() {
        check_media_cache(cache, sums)
            .map_err(|wrong| wrong.within_field(&format!("media_caches[{number}]")))?;
    }
    for (number, flash) in repetition.flash_traffic.iter().enumerate() {
        check_flash(flash, sums)
            .map_err(|wrong| wrong.within_field(&format!("flash[{number}]")))?;
    }
    for (number, one) in repetition.interference.iter().enumerate() {
        require_not_negative("share", one.disturbed_share())
            .map_err(|wrong| wrong.within_field(&format!("interference[{number}]")))?;
    }
    Ok(())
}

fn require_at_most(
    path: &str,
    value: u64,
    (whole, most): (&str, u64),
) -> Result<(), ImpossibleValue> {
    match value <= most {
        true => Ok(()),
        false => Err(ImpossibleValue::new(
            path,
            format!("is {value}, but {whole} is only {most}"),
        )),
    }
}

fn check_worker(
    worker: &WorkerMeasure,
    drives: u32,
    sums: &mut CheckedSums,
) -> Result<(), ImpossibleValue> {
    if worker.drive_index >= drives {
        return Err(ImpossibleValue::new(
            "drive",
            format!(
                "is {}, but the result has {drives} drives, numbered from 0",
                worker.drive_index
            ),
        ));
    }
    let durable = worker.durable_time.unwrap_or(worker.elapsed_time);
    for (name, value) in [
        ("started", worker.start_time.0),
        ("elapsed", worker.elapsed_time.0),
        ("durable", durable.0),
        ("cpu", worker.cpu_time.0),
        ("user", worker.user_cpu_time.0),
        ("system", worker.system_cpu_time.0),
        ("cpu_wait", worker.cpu_wait_time.unwrap_or_default().0),
        ("payload_bytes", worker.payload_bytes),
        ("read_bytes", worker.read_bytes),
        ("written_bytes", worker.written_bytes),
        ("calls", worker.call_count),
        ("metadata_calls", worker.metadata_call_count),
        ("voluntary_switches", worker.voluntary_switch_count),
        ("involuntary_switches", worker.involuntary_switch_count),
        ("minor_faults", worker.minor_fault_count),
        ("major_faults", worker.major_fault_count),
        (
            "storage_read_bytes",
            worker.storage_read_bytes.unwrap_or_default(),
        ),
    ] {
        sums.add_checked(name, value)?;
    }
    if worker.elapsed_time.0 == 0 && (worker.payload_bytes > 0 || worker.call_count > 0) {
        return Err(ImpossibleValue::new(
            "elapsed",
            format!(
                "is 0, but {} bytes moved in {} calls",
                worker.payload_bytes, worker.call_count
            ),
        ));
    }
    if durable < worker.elapsed_time {
        return Err(ImpossibleValue::new(
            "durable",
            format!(
                "is {} ns, less than elapsed, {} ns",
                durable.0, worker.elapsed_time.0
            ),
        ));
    }
    check_latencies(worker, sums)?;
    if let Some(verified) = &worker.verified_blocks {
        load::check_verified(verified, sums)?;
    }
    if let Some(measure) = &worker.load_measure {
        load::check_load(measure, sums).map_err(|wrong| wrong.within_field("load"))?;
    }
    check_ledger(worker)
}

fn check_latencies(worker: &WorkerMeasure, sums: &mut CheckedSums) -> Result<(), ImpossibleValue> {
    let mut timed = 0;
    for (name, latencies) in [
        ("read_latency", &worker.read_latency),
        ("write_latency", &worker.write_latency),
    ] {
        for (latency_ns, count) in latencies.buckets() {
            require_at_most(name, *latency_ns, ("the maximum", LATENCY_NS_MAX))?;
            sums.add_checked(name, *count)?;
        }
        timed += latencies.latency_count();
    }
    match timed <= worker.call_count {
        true => Ok(()),
        false => Err(ImpossibleValue::new(
            "calls",
            format!("is {}, but {timed} calls were timed", worker.call_count),
        )),
    }
}

fn check_ledger(worker: &WorkerMeasure) -> Result<(), ImpossibleValue> {
    let ledger = &worker.ledger;
    if ledger.is_empty() {
        return Ok(());
    }
    let mut total: u64 = 0;
    for (number, entry) in ledger.entries().iter().enumerate() {
        let path = || format!("ledger[{number}]");
        let before = &ledger.entries()[..number];
        if before.iter().any(|other| other.stage == entry.stage) {
            return Err(ImpossibleValue::new(
                path(),
                format!("repeats the stage {}", entry.stage.name()),
            ));
        }
        total = total.checked_add(entry.duration.0).ok_or_else(|| {
            ImpossibleValue::new(
                path(),
                format!("is {} ns: the sum overflows", entry.duration.0),
            )
        })?;
    }
    match total == worker.elapsed_time.0 {
        true => Ok(()),
        false => Err(ImpossibleValue::new(
            "ledger",
            format!(
                "sums to {total} ns, but elapsed is {} ns",
                worker.elapsed_time.0
            ),
        )),
    }
}

fn check_device(device: &DeviceTraffic, sums: &mut CheckedSums) -> Result<(), ImpossibleValue> {
    sums.add_checked("read_bytes", device.read_bytes)?;
    sums.add_checked("written_bytes", device.written_bytes)?;
    sums.add_checked("busy_ms", device.busy_ms)
}

fn check_cache(cache: &ControllerCache, sums: &mut CheckedSums) -> Result<(), ImpossibleValue> {
    sums.add_checked("reads", cache.read_count)?;
    sums.add_checked("sectors", cache.read_sectors)?;
    require_at_most("hits", cache.hit_count, ("reads", cache.read_count))?;
    require_at_most(
        "sectors_held",
        cache.cached_read_sectors,
        ("sectors", cache.read_sectors),
    )
}

fn check_media_cache(cache: &MediaCache, sums: &mut CheckedSums) -> Result<(), ImpossibleValue> {
    sums.add_checked("cached_bytes", cache.cached_bytes)?;
    sums.add_checked("streamed_bytes", cache.streamed_bytes)?;
    sums.add_checked("cleaned_bytes", cache.cleaned_bytes)?;
    sums.add_checked("past_cache_bytes", cache.direct_write_bytes)?;
    sums.add_checked("bands_cleaned", cache.cleaned_band_count)?;
    sums.add_checked("cleaning", cache.cleaning_time.0)?;
    let room = ("room_bytes", cache.capacity_bytes);
    require_at_most("used_bytes", cache.used_bytes, room)?;
    require_at_most(
        "extents",
        cache.extent_count,
        ("most_extents", cache.extent_count_max),
    )
}

fn check_flash(flash: &FlashTraffic, sums: &mut CheckedSums) -> Result<(), ImpossibleValue> {
    // All of them together are a figure, too.
    for (path, count) in [
        ("host_units", flash.host_units),
        ("collection_units", flash.collection_units),
        ("folding_units", flash.folding_units),
        ("levelling_units", flash.wear_levelling_units),
        ("map_units", flash.map_units),
        ("padding_units", flash.padding_units),
        ("erases", flash.erase_count),
        ("suspensions", flash.suspension_count),
        ("past_cache_units", flash.past_cache_units),
        ("unwritten_read_units", flash.unwritten_read_units),
    ] {
        sums.add_checked(path, count)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
