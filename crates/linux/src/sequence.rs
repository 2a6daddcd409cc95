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

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawOptions {
    mkopts: Vec<String>,
    mntopts: String,
}

#[derive(Deserialize)]
struct RawSequence {
    id: String,
    #[serde(default)]
    profile: String,
    #[serde(default)]
    setup: Vec<Value>,
    seq: Vec<Value>,
    #[serde(default)]
    ext4: RawOptions,
    #[serde(default)]
    xfs: RawOptions,
}

/// Form of each call: its name, then its arguments.
const CALL_FORMS: [&[&str]; 17] = [
    &["open", "descriptor", "path", "[flags]"],
    &["close", "descriptor"],
    &["pwrite", "descriptor", "offset", "length"],
    &["pread", "descriptor", "offset", "length"],
    &["fsync", "descriptor"],
    &["fdatasync", "descriptor"],
    &["fsyncdir", "path"],
    &["syncfs"],
    &["rename", "old path", "new path"],
    &["unlink", "path"],
    &["mkdir", "path"],
    &["fallocate", "descriptor", "mode", "offset", "length"],
    &["ftruncate", "descriptor", "size"],
    &["sfr", "descriptor", "offset", "length", "[flags]"],
    &["fadvise", "descriptor", "advice", "offset", "length"],
    &["fstrim"],
    &["sleep", "seconds"],
];

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
                    remedy: expected_form(value),
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

/// Describes the form of an operation with the name that a value has.
fn expected_form(value: &Value) -> String {
    let name = value.get(0).and_then(Value::as_str);
    match CALL_FORMS.iter().find(|form| name == Some(form[0])) {
        Some(form) => {
            let arguments: String = form[1..].iter().map(|part| format!(", {part}")).collect();
            format!("its form is [\"{}\"{arguments}]", form[0])
        }
        None => {
            let names: Vec<&str> = CALL_FORMS.iter().map(|form| form[0]).collect();
            format!(
                "an operation is an array of a name and its arguments; the names are {}",
                names.join(", ")
            )
        }
    }
}

/// Reads one operation: an array of its name and arguments. `None` if it has another form.
#[must_use]
pub fn read_operation(value: &Value) -> Option<FileOperation> {
    let call = Call(value.as_array()?);
    let form = CALL_FORMS
        .iter()
        .find(|form| call.name() == Some(form[0]))?;
    if call.0.len() != form.len() {
        return None;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with one sequence whose operations are `calls`.
    fn file(calls: &str) -> String {
        format!(r#"[{{"id": "one", "seq": [{calls}]}}]"#)
    }

    #[test]
    fn a_sequence_needs_a_name_and_operations_alone() {
        let sequences = read_sequences(&file(r#"["open", "d", "f", ["creat"]], ["syncfs"]"#));
        assert_eq!(sequences.expect("the form is valid")[0].operations.len(), 2);
    }

    #[test]
    fn a_wrong_operation_is_named_with_the_form_of_its_call() {
        for (call, expected) in [
            (
                r#"["pwrite", "d", 0]"#,
                r#"["pwrite", descriptor, offset, length]"#,
            ),
            (r#"["fsync", "d", 5]"#, r#"["fsync", descriptor]"#),
            (
                r#"["open", "d", "f", ["append"]]"#,
                r#"["open", descriptor, path, [flags]]"#,
            ),
            (r#"["write", "d", 0, 1]"#, "the names are open, close"),
            ("5", "an array of a name"),
        ] {
            let error = read_sequences(&file(call)).expect_err(call).to_string();
            assert!(error.contains(expected), "{call}: {error}");
        }
    }

    #[test]
    fn each_form_is_that_of_a_call_that_is_read() {
        let calls = r#"["open","d","f",[]],["close","d"],["pwrite","d",0,1],["pread","d",0,1],["fsync","d"],
            ["fdatasync","d"],["fsyncdir","."],["syncfs"],["rename","a","b"],["unlink","a"],["mkdir","a"],
            ["fallocate","d","",0,1],["ftruncate","d",0],["sfr","d",0,1,["write"]],
            ["fadvise","d","dontneed",0,1],["fstrim"],["sleep",0.5]"#;
        let sequences = read_sequences(&file(calls)).expect("each call is read");
        assert_eq!(sequences[0].operations.len(), CALL_FORMS.len());
    }
}
