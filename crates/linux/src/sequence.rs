//! Sequences of file operations in their JSON form.

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use crate::ext4::Ext4Options;
use crate::operation::{
    ByteRange, FallocateMode, FileAdvice, FileOperation, OpenOptions, SyncRangeFlags,
};
use crate::xfs::XfsOptions;

/// Reason why a sequence cannot be read.
#[derive(Debug, Error)]
pub enum SequenceError {
    /// The text is no JSON of the form.
    #[error("sequences: {0}")]
    Json(#[from] serde_json::Error),
    /// An operation has another form than its name says.
    #[error("sequence {sequence}: {operation} is no operation: {remedy}")]
    Operation {
        /// Sequence that holds it.
        sequence: String,
        /// Text of the operation.
        operation: String,
        /// Form that is expected.
        remedy: String,
    },
    /// An option of mkfs or mount is not modelled.
    #[error("sequence {sequence}: {source}")]
    Options {
        /// Sequence that holds it.
        sequence: String,
        /// Option, and those that are modelled.
        source: UnsupportedOption,
    },
}

/// Option of mkfs or mount that is not modelled.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{program} option `{option}` is not modelled; {remedy}")]
pub struct UnsupportedOption {
    /// Program that would take the option: `mke2fs`, `mkfs.xfs`, `mount`.
    pub program: &'static str,
    /// Text of the option.
    pub option: String,
    /// Options that are modelled.
    pub remedy: &'static str,
}

/// Sequence of operations with the options of each file system that it is run on.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Name of the sequence.
    pub id: String,
    /// Use that the drawing leaned to.
    pub profile: String,
    /// Operations before the file system is synced; their requests are not listed.
    pub setup: Vec<FileOperation>,
    /// Operations whose requests are listed.
    pub operations: Vec<FileOperation>,
    /// Options of mke2fs and mount.
    pub ext4: Ext4Options,
    /// Options of mkfs.xfs and mount.
    pub xfs: XfsOptions,
}

#[derive(Deserialize)]
struct RawOptions {
    mkopts: Vec<String>,
    mntopts: String,
}

#[derive(Deserialize)]
struct RawSequence {
    id: String,
    profile: String,
    setup: Vec<Value>,
    seq: Vec<Value>,
    ext4: RawOptions,
    xfs: RawOptions,
}

/// Reads an array of sequences.
///
/// # Errors
/// If the text is not of the form, or names an operation or option that is not modelled.
pub fn read_sequences(text: &str) -> Result<Vec<Sequence>, SequenceError> {
    let raw: Vec<RawSequence> = serde_json::from_str(text)?;
    raw.into_iter().map(read_sequence).collect()
}

fn read_sequence(raw: RawSequence) -> Result<Sequence, SequenceError> {
    let options = |source| SequenceError::Options {
        sequence: raw.id.clone(),
        source,
    };
    let ext4 = Ext4Options::parse(&raw.ext4.mkopts, &raw.ext4.mntopts).map_err(options)?;
    let options = |source| SequenceError::Options {
        sequence: raw.id.clone(),
        source,
    };
    let xfs = XfsOptions::parse(&raw.xfs.mkopts, &raw.xfs.mntopts).map_err(options)?;
    let read_all = |values: &[Value]| {
        values
            .iter()
            .map(|value| {
                read_operation(value).ok_or_else(|| SequenceError::Operation {
                    sequence: raw.id.clone(),
                    operation: value.to_string(),
                    remedy:
                        "an array of a name and its arguments, as README.md of the sequences lists"
                            .to_owned(),
                })
            })
            .collect::<Result<Vec<_>, _>>()
    };
    let setup = read_all(&raw.setup)?;
    let operations = read_all(&raw.seq)?;
    Ok(Sequence {
        id: raw.id.clone(),
        profile: raw.profile.clone(),
        setup,
        operations,
        ext4,
        xfs,
    })
}

/// Reads one operation: an array of its name and arguments. `None` if it has another form.
#[must_use]
pub fn read_operation(value: &Value) -> Option<FileOperation> {
    let call = Call(value.as_array()?);
    read_name_call(&call).or_else(|| read_data_call(&call))
}

/// Name of an operation, and its arguments.
struct Call<'a>(&'a [Value]);

impl<'a> Call<'a> {
    fn name(&self) -> Option<&'a str> {
        self.0.first()?.as_str()
    }

    fn text(&self, index: usize) -> Option<String> {
        Some(self.0.get(index)?.as_str()?.to_owned())
    }

    fn number(&self, index: usize) -> Option<u64> {
        self.0.get(index)?.as_u64()
    }

    fn range(&self, index: usize) -> Option<ByteRange> {
        Some(ByteRange {
            offset: self.number(index)?,
            length: self.number(index + 1)?,
        })
    }

    fn words(&self, index: usize) -> Option<Vec<&'a str>> {
        self.0
            .get(index)?
            .as_array()?
            .iter()
            .map(Value::as_str)
            .collect()
    }
}

/// Reads an operation on names, descriptors, or the whole file system.
fn read_name_call(call: &Call<'_>) -> Option<FileOperation> {
    Some(match call.name()? {
        "open" => FileOperation::Open {
            descriptor: call.text(1)?,
            path: call.text(2)?,
            options: read_open_options(&call.words(3)?)?,
        },
        "close" => FileOperation::Close {
            descriptor: call.text(1)?,
        },
        "fsyncdir" => FileOperation::SyncDirectory {
            path: call.text(1)?,
        },
        "syncfs" => FileOperation::SyncFileSystem,
        "rename" => FileOperation::Rename {
            from: call.text(1)?,
            to: call.text(2)?,
        },
        "unlink" => FileOperation::Unlink {
            path: call.text(1)?,
        },
        "mkdir" => FileOperation::MakeDirectory {
            path: call.text(1)?,
        },
        "fstrim" => FileOperation::Trim,
        "sleep" => {
            let seconds = call.0.get(1)?.as_f64()?;
            FileOperation::Sleep {
                duration_ns: (seconds * 1e9).round() as u64,
            }
        }
        _ => return None,
    })
}

/// Reads an operation on the data of an open file.
fn read_data_call(call: &Call<'_>) -> Option<FileOperation> {
    let name = call.name()?;
    let descriptor = call.text(1)?;
    Some(match name {
        "pwrite" => FileOperation::Write {
            descriptor,
            range: call.range(2)?,
        },
        "pread" => FileOperation::Read {
            descriptor,
            range: call.range(2)?,
        },
        "fsync" => FileOperation::Sync {
            descriptor,
            data_only: false,
        },
        "fdatasync" => FileOperation::Sync {
            descriptor,
            data_only: true,
        },
        "fallocate" => FileOperation::Fallocate {
            descriptor,
            mode: read_mode(&call.text(2)?)?,
            range: call.range(3)?,
        },
        "ftruncate" => FileOperation::Truncate {
            descriptor,
            size: call.number(2)?,
        },
        "sfr" => FileOperation::SyncRange {
            descriptor,
            range: call.range(2)?,
            flags: read_range_flags(&call.words(4)?)?,
        },
        "fadvise" => FileOperation::Advise {
            descriptor,
            advice: read_advice(&call.text(2)?)?,
            range: call.range(3)?,
        },
        _ => return None,
    })
}

fn read_open_options(words: &[&str]) -> Option<OpenOptions> {
    let mut options = OpenOptions::default();
    for word in words {
        match *word {
            "creat" => options.create = true,
            "trunc" => options.truncate = true,
            "direct" => options.direct = true,
            "dsync" => options.data_sync = true,
            "sync" => options.sync = true,
            "rdonly" => options.read_only = true,
            _ => return None,
        }
    }
    Some(options)
}

fn read_mode(word: &str) -> Option<FallocateMode> {
    Some(match word {
        "" => FallocateMode::Extend,
        "keep" => FallocateMode::KeepSize,
        "punch" => FallocateMode::PunchHole,
        "zero" => FallocateMode::ZeroRange,
        _ => return None,
    })
}

fn read_range_flags(words: &[&str]) -> Option<SyncRangeFlags> {
    let mut flags = SyncRangeFlags::default();
    for word in words {
        match *word {
            "before" => flags.wait_before = true,
            "write" => flags.write = true,
            "after" => flags.wait_after = true,
            _ => return None,
        }
    }
    Some(flags)
}

fn read_advice(word: &str) -> Option<FileAdvice> {
    Some(match word {
        "normal" => FileAdvice::Normal,
        "sequential" => FileAdvice::Sequential,
        "random" => FileAdvice::Random,
        "willneed" => FileAdvice::WillNeed,
        "dontneed" => FileAdvice::DontNeed,
        _ => return None,
    })
}
