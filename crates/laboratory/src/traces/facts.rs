//! Facts about a trace that a replay needs before it starts. One pass over the whole trace finds
//! them in constant memory.

use super::{Asked, Named, Opened};
use diskperf_blocktrace::transform::Round;
use diskperf_blocktrace::{Columns, DeviceIndex, Form, Operation, ReadOptions, Record, TimeUnit};
use diskperf_models::LaboratoryError;
use diskperf_timeline::{
    LatencyRecorder, Nanoseconds, TraceFacts, TraceFile, TraceOperation, TraceReading, TraceReplay,
};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// Adds the facts of its trace to a replay, and makes the paths of its files absolute.
///
/// # Errors
///
/// Returns an error if the trace cannot be read, holds no request, covers several devices, or
/// differs from the one that the replay was planned with.
pub(crate) fn planned(replay: &TraceReplay) -> Result<TraceReplay, LaboratoryError> {
    let files = super::files(&replay.files)?;
    let files = files.iter().map(|path| whole(path));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let reading = TraceReplay {
        files,
        ..replay.clone()
    };
    let held = facts(&reading)?;
    if let Some(kept) = &replay.trace_facts
        && !kept.is_same_trace(&held)
    {
        return Err(changed(kept, &held));
    }
    Ok(TraceReplay {
        trace_facts: Some(held),
        ..reading
    })
}

fn changed(kept: &TraceFacts, now: &TraceFacts) -> LaboratoryError {
    let pairs = kept.files.iter().zip(&now.files);
    let differs = pairs.filter(|(kept, now)| kept.sha256 != now.sha256);
    let files: Vec<String> = differs
        .map(|(kept, now)| {
            format!(
                "{} had {} bytes with the SHA-256 {:.16}..., and has {} with {:.16}...",
                kept.path.display(),
                kept.size_bytes,
                kept.sha256,
                now.size_bytes,
                now.sha256
            )
        })
        .collect();
    LaboratoryError::Request(format!(
        "the trace has changed since it was replayed: {}; put the old one back, or replay this one: `diskperf replay`",
        files.join("; ")
    ))
}

/// Returns the absolute path of a trace, which must be readable more than once.
fn whole(path: &Path) -> Result<PathBuf, LaboratoryError> {
    let refused = |reason: String| LaboratoryError::File {
        reason,
        path: path.to_owned(),
    };
    if path.as_os_str() == "-" {
        return Err(LaboratoryError::request(
            "a replay reads its trace several times, and standard input can be read once: give a file",
        ));
    }
    let found = path
        .canonicalize()
        .map_err(|error| refused(error.to_string()))?;
    diskperf_diagnostics::input::open(&found).map_err(|error| refused(error.to_string()))?;
    match found.is_file() {
        true => Ok(found),
        false => Err(refused(
            "is not a regular file, and a replay reads its trace several times".to_owned(),
        )),
    }
}

/// Returns the options for reading the trace of a replay.
pub(super) fn asked(replay: &TraceReplay) -> Result<Asked, LaboratoryError> {
    let TraceReading {
        form,
        column_names: columns,
        time_unit,
        allows_partial: partial,
        window_ns,
        device_name: device,
        round_to_bytes: _,
    } = &replay.trace_reading;
    Ok(Asked {
        files: replay.files.clone(),
        options: ReadOptions {
            form: parsed::<Form>(form)?,
            columns: parsed::<Columns>(columns)?,
            time_unit: parsed::<TimeUnit>(time_unit)?,
            partial: *partial,
        },
        window_ns: *window_ns,
        part: None,
        device: device.clone(),
        scale_to_bytes: None,
    })
}

fn parsed<T: FromStr<Err = String>>(text: &Option<String>) -> Result<Option<T>, LaboratoryError> {
    let text = text.as_deref().map(str::parse::<T>);
    text.transpose().map_err(LaboratoryError::Request)
}

/// Returns the rounding of reads and writes to whole sectors, if it is requested.
///
/// # Errors
///
/// Returns an error for a sector size that no device has.
pub(super) fn round(replay: &TraceReplay) -> Result<Option<Round>, LaboratoryError> {
    let Some(sector_bytes) = replay.trace_reading.round_to_bytes else {
        return Ok(None);
    };
    match Round::takes(sector_bytes) {
        true => Ok(Some(Round { sector_bytes })),
        false => Err(LaboratoryError::Request(format!(
            "--round-to-sectors={sector_bytes}: sectors have a power of two of bytes, from 512 to 65536"
        ))),
    }
}

#[derive(Clone)]
struct Hashed(Arc<Mutex<Hashing>>);

struct Hashing {
    path: PathBuf,
    file: File,
    hash: Sha256,
    bytes: u64,
}

impl Hashed {
    fn open(path: &Path) -> Result<Self, LaboratoryError> {
        let file = File::open(path).map_err(|error| LaboratoryError::File {
            reason: error.to_string(),
            path: path.to_owned(),
        })?;
        Ok(Self(Arc::new(Mutex::new(Hashing {
            path: path.to_owned(),
            file,
            hash: Sha256::new(),
            bytes: 0,
        }))))
    }

    fn named(&self) -> Named {
        let path = self.with(|of| of.path.display().to_string());
        (path, Box::new(self.clone()))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Hashing) -> T) -> T {
        act(&mut self.0.lock().expect("nobody fails while he reads"))
    }

    /// Finishes the hash with the bytes of the file that nobody has read, and returns the facts of
    /// the file.
    fn finish(mut self) -> Result<TraceFile, LaboratoryError> {
        let rest = std::io::copy(&mut self, &mut std::io::sink());
        let path = self.with(|of| of.path.clone());
        rest.map_err(|error| LaboratoryError::File {
            reason: error.to_string(),
            path: path.clone(),
        })?;
        Ok(self.with(|of| TraceFile {
            path,
            size_bytes: of.bytes,
            sha256: hexadecimal(&of.hash.clone().finalize()),
        }))
    }
}

impl Read for Hashed {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.with(|of| {
            let count = of.file.read(buffer)?;
            of.hash.update(&buffer[..count]);
            of.bytes += count as u64;
            Ok(count)
        })
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn facts(replay: &TraceReplay) -> Result<TraceFacts, LaboratoryError> {
    let asked = asked(replay)?;
    let files = asked.files.iter().map(|path| Hashed::open(path));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let mut opened = Opened::of(&asked, files.iter().map(Hashed::named).collect())?;
    let (mut found, round) = (Found::default(), round(replay)?);
    opened.each(&AtomicBool::new(false), |record, _| {
        let whole = round.map_or(*record, |round| round.apply(*record));
        found.facts.rounded_request_count += u64::from(whole != *record);
        found.add(&whole);
        Ok(())
    })?;
    let names = opened.reader.devices().to_vec();
    opened.require_requests().map_err(|why| {
        let files = asked.files.iter().map(|path| path.display().to_string());
        let files = files.collect::<Vec<_>>().join(", ");
        LaboratoryError::Request(format!("{files}: {why}"))
    })?;
    found.check(&asked, &names)?;
    let (form, notices) = (opened.reader.form(), opened.reader.notices());
    let files = files.into_iter().map(Hashed::finish);
    Ok(TraceFacts {
        files: files.collect::<Result<_, _>>()?,
        trace_format: form.name().to_owned(),
        out_of_order_count: notices.out_of_order,
        is_truncated: notices.is_cut,
        ..found.finish(form)
    })
}

#[derive(Default)]
struct Found {
    kinds: [Kind; 5],
    facts: TraceFacts,
    devices: BTreeSet<DeviceIndex>,
    begins_ns: Option<u64>,
    /// Bitwise OR of all offsets and lengths, from which the alignment follows.
    bits: u64,
    is_endless: bool,
}

struct Kind {
    requests: u64,
    bytes: u64,
    response: LatencyRecorder,
}

impl Default for Kind {
    fn default() -> Self {
        Self {
            requests: 0,
            bytes: 0,
            response: LatencyRecorder::new_growing(),
        }
    }
}

/// Maximum size of the address space, and of the data that the requests of a trace transfer: an
/// exbibyte.
const ADDRESSED_BYTES_MAX: u64 = 1 << 60;

pub(crate) use diskperf_models::plan::replay::LONGEST_NS;

/// Maximum alignment that matters, in bytes. Sectors are not longer.
const LONGEST_UNIT_BYTES: u64 = 65_536;

/// Maximum number of devices that a message names; more are only counted.
const DEVICES_LISTED: usize = 10;

impl Found {
    fn add(&mut self, record: &Record) {
        let kind = &mut self.kinds[place(record.operation)];
        kind.requests += 1;
        kind.bytes = kind.bytes.saturating_add(record.length_bytes);
        if let Some(response_ns) = record.response_ns() {
            kind.response.record_latency(Nanoseconds(response_ns));
            self.facts.completed_count += 1;
        }
        self.devices.insert(record.device);
        let begins_ns = *self.begins_ns.get_or_insert(record.issued_ns);
        let since_ns = record.issued_ns.saturating_sub(begins_ns);
        let facts = &mut self.facts;
        facts.duration_ns = facts.duration_ns.max(since_ns);
        facts.failed_count += u64::from(record.errno != 0);
        facts.fua_write_count += u64::from(record.fua && record.operation == Operation::Write);
        if record.operation == Operation::Flush {
            return;
        }
        facts.empty_request_count += u64::from(record.length_bytes == 0);
        match record.offset_bytes.checked_add(record.length_bytes) {
            Some(end) => facts.end_offset_bytes_max = facts.end_offset_bytes_max.max(end),
            None => self.is_endless = true,
        }
        match record.operation {
            Operation::Read | Operation::Write => {
                facts.transfer_bytes_max = facts.transfer_bytes_max.max(record.length_bytes);
                // What is of no bytes is left out, wherever it lies.
                if record.length_bytes > 0 {
                    self.bits |= record.offset_bytes | record.length_bytes;
                }
            }
            Operation::Discard => {
                let longest = facts.discard_bytes_max.max(record.length_bytes);
                facts.discard_bytes_max = longest;
            }
            Operation::Flush | Operation::WriteZeroes => {}
        }
    }

    fn check(&self, asked: &Asked, names: &[String]) -> Result<(), LaboratoryError> {
        let files = asked.files.iter().map(|path| path.display().to_string());
        let files = files.collect::<Vec<_>>().join(", ");
        let refused = |what: String| Err(LaboratoryError::Request(format!("{files}: {what}")));
        if self.devices.is_empty() {
            return refused(match (asked.window_ns, &asked.device) {
                (None, None) => "the trace has no request".to_owned(),
                _ => "this part of the trace has no request".to_owned(),
            });
        }
        let of = |operation| self.kinds[place(operation)].bytes;
        let has_bytes = [Operation::Read, Operation::Write, Operation::Discard]
            .into_iter()
            .any(|operation| of(operation) > 0);
        if !has_bytes {
            return refused(
                "none of its requests transfers data (they are empty, or flushes), so there is nothing to replay"
                    .to_owned(),
            );
        }
        if self.devices.len() > 1 {
            let named = self.devices.iter().map(|device| &*names[device.0 as usize]);
            let listed: Vec<&str> = named.take(DEVICES_LISTED).collect();
            let more = match self.devices.len() > DEVICES_LISTED {
                true => ", ...",
                false => "",
            };
            return refused(format!(
                "the trace has {} devices, each with addresses of its own, and a replay takes one: add --device NAME, of {}{more}",
                self.devices.len(),
                listed.join(", ")
            ));
        }
        let moved = self.kinds.iter().map(|kind| kind.bytes);
        let moved = moved.fold(0, u64::saturating_add);
        if self.is_endless
            || self.facts.end_offset_bytes_max > ADDRESSED_BYTES_MAX
            || moved > ADDRESSED_BYTES_MAX
        {
            return refused(
                "its addresses or lengths come to more than an exbibyte, which no storage has"
                    .to_owned(),
            );
        }
        if self.facts.duration_ns > LONGEST_NS {
            return refused(
                "the trace lasts for more than 36 years: a clock in it is wrong".to_owned(),
            );
        }
        Ok(())
    }

    fn finish(self, form: Form) -> TraceFacts {
        let kinds = self.kinds.map(|kind| TraceOperation {
            request_count: kind.requests,
            bytes: kind.bytes,
            response_times: kind.response.to_histogram(),
        });
        let [read, write, flush, discard, write_zeroes] = kinds;
        let longest = LONGEST_UNIT_BYTES.trailing_zeros();
        TraceFacts {
            read,
            write,
            flush,
            discard,
            write_zeroes,
            device_count: self.devices.len() as u64,
            // Without `wait` version 2 of fio's logs is an order alone.
            has_times: form != Form::FioIolog2 || self.facts.duration_ns > 0,
            unit_bytes: 1 << self.bits.trailing_zeros().min(longest),
            ..self.facts
        }
    }
}

fn place(of: Operation) -> usize {
    match of {
        Operation::Read => 0,
        Operation::Write => 1,
        Operation::Flush => 2,
        Operation::Discard => 3,
        Operation::WriteZeroes => 4,
    }
}
