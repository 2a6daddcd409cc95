//! Bios that a modelled Linux makes of the sequences of file operations in a file.

use diskperf_analysis::request_lists::{OperationBios, RequestListReport, SequenceLists};
use diskperf_linux::block::DeviceLimits;
use diskperf_linux::effect::Effects;
use diskperf_linux::operation::FileOperation;
use diskperf_linux::request_list::describe_bios;
use diskperf_linux::sequence::{Sequence, read_sequences};
use diskperf_linux::stack::{FileSystemOptions, Stack, StackError};
use diskperf_models::LaboratoryError;
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

pub use diskperf_linux::version::{Host, KernelVersion};

/// Maximum size of a file of sequences, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Size of the device: the one that the file systems' layouts are verified for.
const DEVICE_BYTES: u64 = 512 << 20;

/// Pause between the setup and the first operation.
const SETUP_PAUSE_NS: u64 = 100_000_000;

/// Pause before each operation and before unmounting, so that each operation has a time stamp of
/// its own.
const PAUSE_NS: u64 = 20_000_000;

/// File system that sequences run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceFileSystem {
    /// ext4, with a journal unless its options say otherwise.
    Ext4,
    /// XFS, with a log inside.
    Xfs,
}

impl SequenceFileSystem {
    fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    fn options(self, sequence: &Sequence) -> FileSystemOptions {
        match self {
            Self::Ext4 => FileSystemOptions::Ext4(sequence.ext4),
            Self::Xfs => FileSystemOptions::Xfs(sequence.xfs),
        }
    }
}

/// Request for the bios of the sequences in a file.
#[derive(Clone, Debug)]
pub struct RequestListRequest<'a> {
    /// File with an array of sequences.
    pub path: &'a Path,
    /// File systems to run each sequence on.
    pub file_systems: &'a [SequenceFileSystem],
    /// Machine that runs the kernel.
    pub host: Host,
    /// Read-ahead of the device, in KiB.
    pub read_ahead_kib: u32,
    /// Whether the device supports writes with FUA.
    pub has_fua: bool,
}

/// Text of a sequence's operations, for messages and tables.
#[derive(Deserialize)]
struct SequenceText {
    #[serde(default)]
    setup: Vec<Value>,
    seq: Vec<Value>,
}

/// Calculates the bios of the sequences in a file.
///
/// # Errors
///
/// Returns an error if the file cannot be read, holds no sequences, or names an operation or option
/// that is not modelled.
pub fn calculate_request_lists(
    request: &RequestListRequest<'_>,
) -> Result<RequestListReport, LaboratoryError> {
    let text = read_file(request.path)?;
    let sequences = read_sequences(&text).map_err(|error| file_error(request.path, &error))?;
    let texts: Vec<SequenceText> =
        serde_json::from_str(&text).map_err(|error| file_error(request.path, &error))?;
    let mut lists = Vec::new();
    for (sequence, text) in sequences.iter().zip(&texts) {
        for file_system in request.file_systems {
            let run = SequenceRun {
                request,
                sequence,
                text,
                file_system: *file_system,
            };
            lists.push(run.list_bios()?);
        }
    }
    Ok(RequestListReport { sequences: lists })
}

fn file_error(path: &Path, reason: &impl ToString) -> LaboratoryError {
    LaboratoryError::File {
        path: PathBuf::from(path),
        reason: reason.to_string(),
    }
}

fn read_file(path: &Path) -> Result<String, LaboratoryError> {
    let file = diskperf_diagnostics::input::open(path).map_err(|error| file_error(path, &error))?;
    let bytes = diskperf_diagnostics::input::read_short(file, FILE_BYTES_MAX);
    let bytes = bytes.map_err(|error| file_error(path, &error))?;
    let reason = "a file of sequences has up to 64 MiB; give fewer at a time";
    let bytes = bytes.ok_or_else(|| file_error(path, &reason))?;
    let reason = "is no text; give a JSON array of sequences";
    String::from_utf8(bytes).map_err(|_| file_error(path, &reason))
}

/// One sequence on one file system.
struct SequenceRun<'a> {
    request: &'a RequestListRequest<'a>,
    sequence: &'a Sequence,
    text: &'a SequenceText,
    file_system: SequenceFileSystem,
}

impl SequenceRun<'_> {
    /// Runs the sequence on a fresh file system.
    fn list_bios(&self) -> Result<SequenceLists, LaboratoryError> {
        let mut stack = self.prepare()?;
        let mut operations: Vec<OperationBios> = Vec::new();
        for (index, operation) in self.sequence.operations.iter().enumerate() {
            let call = describe_call(&self.text.seq[index]);
            let place = || format!("operation {index} ({call})");
            let paused = self.complete(stack.sleep(PAUSE_NS), &place)?;
            if let Some(last) = operations.last_mut() {
                last.bios.extend(describe(&stack, &paused));
            }
            let effects = self.complete(stack.run(operation), &place)?;
            let bios = describe(&stack, &effects);
            operations.push(OperationBios { call, bios });
        }
        Ok(SequenceLists {
            sequence: self.sequence.id.clone(),
            profile: self.sequence.profile.clone(),
            filesystem: self.file_system.name().to_owned(),
            kernel: self.request.host.version.name().to_owned(),
            operations,
            unmount: self.unmount(&mut stack)?,
        })
    }

    /// Makes and mounts the file system, runs the setup and syncs it.
    fn prepare(&self) -> Result<Stack, LaboratoryError> {
        let limits = DeviceLimits {
            read_ahead_kib: self.request.read_ahead_kib,
            has_fua: self.request.has_fua,
            ..DeviceLimits::loop_device(DEVICE_BYTES)
        };
        let options = self.file_system.options(self.sequence);
        let made = Stack::new(self.request.host, limits, options);
        let mut stack = self.complete(made, &|| "making the file system".to_owned())?;
        for (operation, text) in self.sequence.setup.iter().zip(&self.text.setup) {
            let place = || format!("setup ({})", describe_call(text));
            self.complete(stack.run(operation), &place)?;
        }
        let place = || "setup".to_owned();
        self.complete(stack.run(&FileOperation::SyncFileSystem), &place)?;
        self.complete(stack.sleep(SETUP_PAUSE_NS), &place)?;
        Ok(stack)
    }

    fn unmount(&self, stack: &mut Stack) -> Result<Vec<String>, LaboratoryError> {
        let place = || "unmounting".to_owned();
        let mut bios = Vec::new();
        let closed = self.complete(stack.close_all(), &place)?;
        bios.extend(describe(stack, &closed));
        let paused = self.complete(stack.sleep(PAUSE_NS), &place)?;
        bios.extend(describe(stack, &paused));
        let unmounted = self.complete(stack.unmount(), &place)?;
        bios.extend(describe(stack, &unmounted));
        Ok(bios)
    }

    /// Names the file, the sequence and the operation in an error.
    fn complete<T>(
        &self,
        result: Result<T, StackError>,
        place: &dyn Fn() -> String,
    ) -> Result<T, LaboratoryError> {
        result.map_err(|error| {
            let reason = format!(
                "sequence {}, {}, on {}: {error}",
                self.sequence.id,
                place(),
                self.file_system.name()
            );
            file_error(self.request.path, &reason)
        })
    }
}

fn describe(stack: &Stack, effects: &Effects) -> Vec<String> {
    describe_bios(effects.bios(), |file| stack.label(file))
}

/// Returns an operation as text: its name and arguments with spaces between.
fn describe_call(operation: &Value) -> String {
    let word = |value: &Value| match value {
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            words.join("|")
        }
        other => other.to_string(),
    };
    let words = operation.as_array().into_iter().flatten().map(word);
    words.collect::<Vec<_>>().join(" ").trim_end().to_owned()
}
