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
use crate::units::PAST_CALENDAR_MS;
use std::collections::BTreeMap;

/// Error for a figure that no measurement can produce.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} {wrong}")]
pub struct Impossible {
    /// Path of the impossible figure within the run:
    /// `results[2].repetitions[1].workers[0].elapsed`.
    pub path: String,
    /// Description of why the figure is impossible.
    pub wrong: String,
}

impl Impossible {
    fn new(path: impl Into<String>, wrong: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            wrong: wrong.into(),
        }
    }

    /// Prefixes the path with the name of the containing object.
    pub fn within(mut self, outer: &str) -> Self {
        self.path = format!("{outer}.{}", self.path);
        self
    }
}

/// Maximum length of a run id in characters. Ids that diskperf assigns have ten digits.
pub const LONGEST_ID: usize = 64;

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
    pub fn check(&self) -> Result<(), Impossible> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if self.id.is_empty() || self.id.len() > LONGEST_ID || !self.id.bytes().all(is_digit) {
            return Err(Impossible::new(
                "id",
                format!(
                    "is `{}`: an id has lower-case hexadecimal digits",
                    self.id.escape_debug()
                ),
            ));
        }
        if self.started_unix_ms >= PAST_CALENDAR_MS {
            return Err(Impossible::new(
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
            interleaved.and_then(|arm| arm.min_effect),
        )?;
        if let Some(Workload::Replay(of)) = self.experiment.as_ref().map(|kept| &kept.workload) {
            replay::check(of).map_err(|wrong| wrong.within("experiment.workload.replay"))?;
        }
        let mut sums = Sums::default();
        for (number, result) in self.results.iter().enumerate() {
            check_result(result, &mut sums)
                .map_err(|wrong| wrong.within(&format!("results[{number}]")))?;
        }
        Ok(())
    }
}

/// Rejects rates, shares and times outside 0 to 1e15.
fn require_not_negative(path: &str, value: Option<f64>) -> Result<(), Impossible> {
    match value {
        Some(value) if !(0.0..=1e15).contains(&value) => Err(Impossible::new(
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
struct Sums(BTreeMap<&'static str, u64>);

impl Sums {
    fn add(&mut self, name: &'static str, value: u64) -> Result<(), Impossible> {
        let sum = self.0.entry(name).or_default();
        match sum.checked_add(value).filter(|sum| *sum <= SUM_MAX) {
            Some(more) => {
                *sum = more;
                Ok(())
            }
            None => Err(Impossible::new(
                name,
                format!("is {value}: its sum over the run exceeds 2^60"),
            )),
        }
    }
}

fn check_result(result: &ProgramResult, sums: &mut Sums) -> Result<(), Impossible> {
    if !(1..=DRIVES_MAX).contains(&result.drives) {
        return Err(Impossible::new(
            "drives",
            format!("is {}, not from 1 to {DRIVES_MAX}", result.drives),
        ));
    }
    let protocol = &result.protocol;
    if protocol.repetitions == 0 || protocol.discarded >= protocol.repetitions {
        return Err(Impossible::new(
            "protocol.discarded",
            format!(
                "is {} of {} repetitions: at least one must count",
                protocol.discarded, protocol.repetitions
            ),
        ));
    }
    require_not_negative("protocol.stop_below_share", protocol.stop_below_share)?;
    if protocol.steady.is_some_and(|rule| !rule.is_possible()) {
        return Err(Impossible::new(
            "protocol.steady",
            "is not a valid rule: a window has 2 to 1000 rounds, and shares are above 0 up to 1"
                .to_owned(),
        ));
    }
    for (number, repetition) in result.repetitions.iter().enumerate() {
        check_repetition(repetition, result.drives, sums)
            .map_err(|wrong| wrong.within(&format!("repetitions[{number}]")))?;
    }
    Ok(())
}

fn check_repetition(
    repetition: &Repetition,
    drives: u32,
    sums: &mut Sums,
) -> Result<(), Impossible> {
    if repetition.workers.is_empty() {
        return Err(Impossible::new(
            "workers",
            "is empty: at least one worker ran",
        ));
    }
    for (number, worker) in repetition.workers.iter().enumerate() {
        check_worker(worker, drives, sums)
            .map_err(|wrong| wrong.within(&format!("workers[{number}]")))?;
    }
    if let Some(found) = &repetition.residency {
        sums.add("residency.file_bytes", found.file_bytes)?;
        for (path, bytes) in [
            ("residency.before_bytes", found.before_bytes),
            ("residency.after_bytes", found.after_bytes),
        ] {
            require_at_most(path, bytes, ("residency.file_bytes", found.file_bytes))?;
        }
    }
    for (number, device) in repetition.devices.iter().enumerate() {
        check_device(device, sums).map_err(|wrong| wrong.within(&format!("devices[{number}]")))?;
    }
    for (number, cache) in repetition.controller_caches.iter().enumerate() {
        check_cache(cache, sums)
            .map_err(|wrong| wrong.within(&format!("controller_caches[{number}]")))?;
    }
    for (number, cache) in repetition.media_caches.iter().enumerate() {
        check_media_cache(cache, sums)
            .map_err(|wrong| wrong.within(&format!("media_caches[{number}]")))?;
    }
    for (number, flash) in repetition.flash.iter().enumerate() {
        check_flash(flash, sums).map_err(|wrong| wrong.within(&format!("flash[{number}]")))?;
    }
    for (number, one) in repetition.interference.iter().enumerate() {
        require_not_negative("share", one.share())
            .map_err(|wrong| wrong.within(&format!("interference[{number}]")))?;
    }
    Ok(())
}

fn require_at_most(path: &str, value: u64, (whole, most): (&str, u64)) -> Result<(), Impossible> {
    match value <= most {
        true => Ok(()),
        false => Err(Impossible::new(
            path,
            format!("is {value}, but {whole} is only {most}"),
        )),
    }
}

fn check_worker(worker: &WorkerMeasure, drives: u32, sums: &mut Sums) -> Result<(), Impossible> {
    if worker.drive >= drives {
        return Err(Impossible::new(
            "drive",
            format!(
                "is {}, but the result has {drives} drives, numbered from 0",
                worker.drive
            ),
        ));
    }
    let durable = worker.durable.unwrap_or(worker.elapsed);
    for (name, value) in [
        ("started", worker.started.0),
        ("elapsed", worker.elapsed.0),
        ("durable", durable.0),
        ("cpu", worker.cpu.0),
        ("user", worker.user.0),
        ("system", worker.system.0),
        ("cpu_wait", worker.cpu_wait.unwrap_or_default().0),
        ("payload_bytes", worker.payload_bytes),
        ("read_bytes", worker.read_bytes),
        ("written_bytes", worker.written_bytes),
        ("calls", worker.calls),
        ("metadata_calls", worker.metadata_calls),
        ("voluntary_switches", worker.voluntary_switches),
        ("involuntary_switches", worker.involuntary_switches),
        ("minor_faults", worker.minor_faults),
        ("major_faults", worker.major_faults),
        (
            "storage_read_bytes",
            worker.storage_read_bytes.unwrap_or_default(),
        ),
    ] {
        sums.add(name, value)?;
    }
    if worker.elapsed.0 == 0 && (worker.payload_bytes > 0 || worker.calls > 0) {
        return Err(Impossible::new(
            "elapsed",
            format!(
                "is 0, but {} bytes moved in {} calls",
                worker.payload_bytes, worker.calls
            ),
        ));
    }
    if durable < worker.elapsed {
        return Err(Impossible::new(
            "durable",
            format!(
                "is {} ns, less than elapsed, {} ns",
                durable.0, worker.elapsed.0
            ),
        ));
    }
    check_latencies(worker, sums)?;
    if let Some(verified) = &worker.verified {
        load::check_verified(verified, sums)?;
    }
    if let Some(measure) = &worker.load {
        load::check(measure, sums).map_err(|wrong| wrong.within("load"))?;
    }
    check_ledger(worker)
}

fn check_latencies(worker: &WorkerMeasure, sums: &mut Sums) -> Result<(), Impossible> {
    let mut timed = 0;
    for (name, latencies) in [
        ("read_latency", &worker.read_latency),
        ("write_latency", &worker.write_latency),
    ] {
        for (latency_ns, count) in latencies.buckets() {
            require_at_most(name, *latency_ns, ("the maximum", LATENCY_NS_MAX))?;
            sums.add(name, *count)?;
        }
        timed += latencies.count();
    }
    match timed <= worker.calls {
        true => Ok(()),
        false => Err(Impossible::new(
            "calls",
            format!("is {}, but {timed} calls were timed", worker.calls),
        )),
    }
}

fn check_ledger(worker: &WorkerMeasure) -> Result<(), Impossible> {
    let ledger = &worker.ledger;
    if ledger.is_empty() {
        return Ok(());
    }
    let mut total: u64 = 0;
    for (number, entry) in ledger.entries().iter().enumerate() {
        let path = || format!("ledger[{number}]");
        let before = &ledger.entries()[..number];
        if before.iter().any(|other| other.stage == entry.stage) {
            return Err(Impossible::new(
                path(),
                format!("repeats the stage {}", entry.stage.name()),
            ));
        }
        total = total.checked_add(entry.ns.0).ok_or_else(|| {
            Impossible::new(path(), format!("is {} ns: the sum overflows", entry.ns.0))
        })?;
    }
    match total == worker.elapsed.0 {
        true => Ok(()),
        false => Err(Impossible::new(
            "ledger",
            format!("sums to {total} ns, but elapsed is {} ns", worker.elapsed.0),
        )),
    }
}

fn check_device(device: &DeviceTraffic, sums: &mut Sums) -> Result<(), Impossible> {
    sums.add("read_bytes", device.read_bytes)?;
    sums.add("written_bytes", device.written_bytes)?;
    sums.add("busy_ms", device.busy_ms)
}

fn check_cache(cache: &ControllerCache, sums: &mut Sums) -> Result<(), Impossible> {
    sums.add("reads", cache.reads)?;
    sums.add("sectors", cache.sectors)?;
    require_at_most("hits", cache.hits, ("reads", cache.reads))?;
    require_at_most(
        "sectors_held",
        cache.sectors_held,
        ("sectors", cache.sectors),
    )
}

fn check_media_cache(cache: &MediaCache, sums: &mut Sums) -> Result<(), Impossible> {
    sums.add("cached_bytes", cache.cached_bytes)?;
    sums.add("streamed_bytes", cache.streamed_bytes)?;
    sums.add("cleaned_bytes", cache.cleaned_bytes)?;
    sums.add("past_cache_bytes", cache.past_cache_bytes)?;
    sums.add("bands_cleaned", cache.bands_cleaned)?;
    sums.add("cleaning", cache.cleaning.0)?;
    let room = ("room_bytes", cache.room_bytes);
    require_at_most("used_bytes", cache.used_bytes, room)?;
    require_at_most(
        "extents",
        cache.extents,
        ("most_extents", cache.most_extents),
    )
}

fn check_flash(flash: &FlashTraffic, sums: &mut Sums) -> Result<(), Impossible> {
    // All of them together are a figure, too.
    for (path, count) in [
        ("host_units", flash.host_units),
        ("collection_units", flash.collection_units),
        ("folding_units", flash.folding_units),
        ("levelling_units", flash.levelling_units),
        ("map_units", flash.map_units),
        ("padding_units", flash.padding_units),
        ("erases", flash.erases),
        ("suspensions", flash.suspensions),
        ("past_cache_units", flash.past_cache_units),
        ("unwritten_read_units", flash.unwritten_read_units),
    ] {
        sums.add(path, count)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
