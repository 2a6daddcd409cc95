//! Facts about a trace that a replay needs before it starts. One pass over the whole trace finds
//! them in constant memory.

use super::{NamedReader, OpenTrace, TraceRequest};
use diskperf_blocktrace::transform::SectorRounding;
use diskperf_blocktrace::{
    CsvColumns, DeviceIndex, Form, ReadOptions, TimeUnit, TraceRecord, TracedOperation,
};
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
pub(crate) fn plan_replay(replay: &TraceReplay) -> Result<TraceReplay, LaboratoryError> {
    let files = super::list_files(&replay.files)?;
    let files = files.iter().map(|path| to_absolute_path(path));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let reading = TraceReplay {
        files,
        ..replay.clone()
    };
    let held = read_facts(&reading)?;
    if let Some(kept) = &replay.trace_facts
        && !kept.is_same_trace(&held)
    {
        return Err(changed_error(kept, &held));
    }
    Ok(TraceReplay {
        trace_facts: Some(held),
        ..reading
    })
}

fn changed_error(kept: &TraceFacts, now: &TraceFacts) -> LaboratoryError {
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
fn to_absolute_path(path: &Path) -> Result<PathBuf, LaboratoryError> {
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

pub(super) fn build_request(replay: &TraceReplay) -> Result<TraceRequest, LaboratoryError> {
    let TraceReading {
        form,
        column_names: columns,
        time_unit,
        allows_partial: partial,
        window_ns,
        part_index,
        device_name: device,
        round_to_bytes: _,
    } = &replay.trace_reading;
    Ok(TraceRequest {
        files: replay.files.clone(),
        read_options: ReadOptions {
            form: parse_option::<Form>(form)?,
            columns: parse_option::<CsvColumns>(columns)?,
            time_unit: parse_option::<TimeUnit>(time_unit)?,
            is_partial_allowed: *partial,
        },
        window_ns: *window_ns,
        part_index: part_index.map(|part| part as usize),
        device_name: device.clone(),
        scale_to_bytes: None,
    })
}

fn parse_option<T: FromStr<Err = String>>(
    text: &Option<String>,
) -> Result<Option<T>, LaboratoryError> {
    let text = text.as_deref().map(str::parse::<T>);
    text.transpose().map_err(LaboratoryError::Request)
}

/// Returns the rounding of reads and writes to whole sectors, if it is requested.
///
/// # Errors
///
/// Returns an error for a sector size that no device has.
pub(super) fn parse_round(replay: &TraceReplay) -> Result<Option<SectorRounding>, LaboratoryError> {
    let Some(sector_bytes) = replay.trace_reading.round_to_bytes else {
        return Ok(None);
    };
    match SectorRounding::is_sector_size(sector_bytes) {
        true => Ok(Some(SectorRounding { sector_bytes })),
        false => Err(LaboratoryError::Request(format!(
            "--round-to-sectors={sector_bytes}: sectors have a power of two of bytes, from 512 to 65536"
        ))),
    }
}

#[derive(Clone)]
struct HashedFile(Arc<Mutex<FileHashing>>);

struct FileHashing {
    path: PathBuf,
    file: File,
    hash: Sha256,
    bytes: u64,
}

impl HashedFile {
    fn open_hashed(path: &Path) -> Result<Self, LaboratoryError> {
        let file = File::open(path).map_err(|error| LaboratoryError::File {
            reason: error.to_string(),
            path: path.to_owned(),
        })?;
        Ok(Self(Arc::new(Mutex::new(FileHashing {
            path: path.to_owned(),
            file,
            hash: Sha256::new(),
            bytes: 0,
        }))))
    }

    fn to_named(&self) -> NamedReader {
        let path = self.with_hashing(|of| of.path.display().to_string());
        (path, Box::new(self.clone()))
    }

    fn with_hashing<T>(&self, act: impl FnOnce(&mut FileHashing) -> T) -> T {
        act(&mut self.0.lock().expect("nobody fails while he reads"))
    }

    /// Finishes the hash with the bytes of the file that nobody has read, and returns the facts of
    /// the file.
    fn finish(mut self) -> Result<TraceFile, LaboratoryError> {
        let rest = std::io::copy(&mut self, &mut std::io::sink());
        let path = self.with_hashing(|of| of.path.clone());
        rest.map_err(|error| LaboratoryError::File {
            reason: error.to_string(),
            path: path.clone(),
        })?;
        Ok(self.with_hashing(|of| TraceFile {
            path,
            size_bytes: of.bytes,
            sha256: format_hexadecimal(&of.hash.clone().finalize()),
        }))
    }
}

impl Read for HashedFile {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.with_hashing(|of| {
            let count = of.file.read(buffer)?;
            of.hash.update(&buffer[..count]);
            of.bytes += count as u64;
            Ok(count)
        })
    }
}

fn format_hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read_facts(replay: &TraceReplay) -> Result<TraceFacts, LaboratoryError> {
    let asked = build_request(replay)?;
    let files = asked.files.iter().map(|path| HashedFile::open_hashed(path));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let mut opened =
        OpenTrace::from_files(&asked, files.iter().map(HashedFile::to_named).collect())?;
    let (mut found, round) = (FactsBuilder::default(), parse_round(replay)?);
    opened.for_each_request(&AtomicBool::new(false), |record, _| {
        let whole = round.map_or(*record, |round| round.apply(*record));
        found.facts.rounded_request_count += u64::from(whole != *record);
        found.add_record(&whole);
        Ok(())
    })?;
    let names = opened.reader.devices().to_vec();
    opened.require_requests().map_err(|why| {
        let files = asked.files.iter().map(|path| path.display().to_string());
        let files = files.collect::<Vec<_>>().join(", ");
        LaboratoryError::Request(format!("{files}: {why}"))
    })?;
    found.check_facts(&asked, &names)?;
    let (form, notices) = (opened.reader.form(), opened.reader.notices());
    let files = files.into_iter().map(HashedFile::finish);
    Ok(TraceFacts {
        files: files.collect::<Result<_, _>>()?,
        trace_format: form.name().to_owned(),
        out_of_order_count: notices.out_of_order_requests,
        is_truncated: notices.is_truncated,
        ..found.finish(form)
    })
}

#[derive(Default)]
struct FactsBuilder {
    kinds: [OperationFacts; 5],
    facts: TraceFacts,
    devices: BTreeSet<DeviceIndex>,
    start_ns: Option<u64>,
    /// Bitwise OR of all offsets and lengths, from which the alignment follows.
    alignment_bits: u64,
    is_endless: bool,
}

struct OperationFacts {
    request_count: u64,
    bytes: u64,
    response_times: LatencyRecorder,
}

impl Default for OperationFacts {
    fn default() -> Self {
        Self {
            request_count: 0,
            bytes: 0,
            response_times: LatencyRecorder::new_growing(),
        }
    }
}

/// Maximum size of the address space, and of the data that the requests of a trace transfer: an
/// exbibyte.
const ADDRESSED_BYTES_MAX: u64 = 1 << 60;

pub(crate) use diskperf_models::plan::replay::DURATION_NS_MAX;

/// Maximum alignment that matters, in bytes. Sectors are not longer.
const UNIT_BYTES_MAX: u64 = 65_536;

/// Maximum number of devices that a message names; more are only counted.
const DEVICES_LISTED_MAX: usize = 10;

impl FactsBuilder {
    fn add_record(&mut self, record: &TraceRecord) {
        let kind = &mut self.kinds[operation_index(record.operation)];
        kind.request_count += 1;
        kind.bytes = kind.bytes.saturating_add(record.length_bytes);
        if let Some(response_ns) = record.response_ns() {
            kind.response_times.record_latency(Nanoseconds(response_ns));
            self.facts.completed_count += 1;
        }
        self.devices.insert(record.device);
        let begins_ns = *self.start_ns.get_or_insert(record.issued_ns);
        let since_ns = record.issued_ns.saturating_sub(begins_ns);
        let facts = &mut self.facts;
        facts.duration_ns = facts.duration_ns.max(since_ns);
        facts.failed_count += u64::from(record.errno != 0);
        facts.fua_write_count +=
            u64::from(record.fua && record.operation == TracedOperation::Write);
        if record.operation == TracedOperation::Flush {
            return;
        }
        facts.empty_request_count += u64::from(record.length_bytes == 0);
        match record.offset_bytes.checked_add(record.length_bytes) {
            Some(end) => facts.end_offset_bytes_max = facts.end_offset_bytes_max.max(end),
            None => self.is_endless = true,
        }
        match record.operation {
            TracedOperation::Read | TracedOperation::Write => {
                facts.transfer_bytes_max = facts.transfer_bytes_max.max(record.length_bytes);
                // What is of no bytes is left out, wherever it lies.
                if record.length_bytes > 0 {
                    self.alignment_bits |= record.offset_bytes | record.length_bytes;
                }
            }
            TracedOperation::Discard => {
                let longest = facts.discard_bytes_max.max(record.length_bytes);
                facts.discard_bytes_max = longest;
            }
            TracedOperation::Flush | TracedOperation::WriteZeroes => {}
        }
    }

    fn check_facts(&self, asked: &TraceRequest, names: &[String]) -> Result<(), LaboratoryError> {
        let files = asked.files.iter().map(|path| path.display().to_string());
        let files = files.collect::<Vec<_>>().join(", ");
        let refused = |what: String| Err(LaboratoryError::Request(format!("{files}: {what}")));
        if self.devices.is_empty() {
            return refused(
                match (asked.window_ns, asked.part_index, &asked.device_name) {
                    (None, None, None) => "the trace has no request".to_owned(),
                    _ => "this part of the trace has no request".to_owned(),
                },
            );
        }
        let of = |operation| self.kinds[operation_index(operation)].bytes;
        let has_bytes = [
            TracedOperation::Read,
            TracedOperation::Write,
            TracedOperation::Discard,
        ]
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
            let listed: Vec<&str> = named.take(DEVICES_LISTED_MAX).collect();
            let more = match self.devices.len() > DEVICES_LISTED_MAX {
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
        if self.facts.duration_ns > DURATION_NS_MAX {
            return refused(
                "the trace lasts for more than 36 years: a clock in it is wrong".to_owned(),
            );
        }
        Ok(())
    }

    fn finish(self, form: Form) -> TraceFacts {
        let kinds = self.kinds.map(|kind| TraceOperation {
            request_count: kind.request_count,
            bytes: kind.bytes,
            response_times: kind.response_times.to_histogram(),
        });
        let [read, write, flush, discard, write_zeroes] = kinds;
        let longest = UNIT_BYTES_MAX.trailing_zeros();
        TraceFacts {
            read,
            write,
            flush,
            discard,
            write_zeroes,
            device_count: self.devices.len() as u64,
            // Without `wait` version 2 of fio's logs is an order alone.
            has_times: form != Form::FioIolog2 || self.facts.duration_ns > 0,
            unit_bytes: 1 << self.alignment_bits.trailing_zeros().min(longest),
            ..self.facts
        }
    }
}

fn operation_index(of: TracedOperation) -> usize {
    match of {
        TracedOperation::Read => 0,
        TracedOperation::Write => 1,
        TracedOperation::Flush => 2,
        TracedOperation::Discard => 3,
        TracedOperation::WriteZeroes => 4,
    }
}
