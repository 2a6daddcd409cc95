//! Lists of requests as text, their core form, and the first difference of two.

use std::fmt;

use crate::block::{Bio, BioContent, BioFlags, BioOperation, MetadataKind, SECTOR_BYTES};

/// Returns bios as strings, touching pieces of one kind joined.
pub fn describe_bios<'a, 'l>(
    bios: impl IntoIterator<Item = &'a Bio>,
    label: impl Fn(crate::block::FileId) -> &'l str,
) -> Vec<String> {
    let mut joined: Vec<Bio> = Vec::new();
    for bio in bios {
        match joined.last_mut() {
            Some(last) if touches(last, bio) => last.sectors += bio.sectors,
            _ => joined.push(*bio),
        }
    }
    joined.iter().map(|bio| describe(bio, &label)).collect()
}

/// Whether `next` continues `last` in the file or journal, with the same operation and flags.
fn touches(last: &Bio, next: &Bio) -> bool {
    let is_adjacent = match (last.content, next.content) {
        (
            BioContent::Data { file, offset },
            BioContent::Data {
                file: other,
                offset: next,
            },
        ) => file == other && offset + last.bytes() == next,
        (BioContent::Journal, BioContent::Journal) => last.end_sector() == next.sector,
        _ => false,
    };
    is_adjacent && last.operation == next.operation && last.flags == next.flags
}

fn describe<'l>(bio: &Bio, label: &impl Fn(crate::block::FileId) -> &'l str) -> String {
    let kib = KibLength(bio.bytes());
    let flags = describe_flags(bio.flags);
    let text = match (bio.operation, bio.content) {
        (BioOperation::Flush, _) => return "F".to_owned(),
        (BioOperation::Discard, _) => {
            return format!("Z {}+{kib}", KibLength(bio.sector * SECTOR_BYTES));
        }
        (operation, BioContent::Data { file, offset }) => {
            let verb = match operation {
                BioOperation::Read => "R",
                BioOperation::WriteZeroes => "N",
                _ => "W",
            };
            format!("{verb} {} {}+{kib} {flags}", label(file), KibLength(offset))
        }
        (_, BioContent::Journal) => format!("J {kib} {flags}"),
        (operation, BioContent::Metadata(kind)) => {
            let verb = if operation == BioOperation::Read {
                "MR"
            } else {
                "M"
            };
            format!("{verb} {} {kib} {flags}", kind_name(kind))
        }
        (_, BioContent::None) => format!("? {kib} {flags}"),
    };
    text.trim_end().to_owned()
}

/// Length in KiB, with a fraction only where it is not whole.
struct KibLength(u64);

impl fmt::Display for KibLength {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(1024) {
            write!(formatter, "{}", self.0 / 1024)
        } else {
            write!(formatter, "{:.1}", self.0 as f64 / 1024.0)
        }
    }
}

fn describe_flags(flags: BioFlags) -> String {
    let letters = [
        (flags.preflush, 'p'),
        (flags.fua, 'f'),
        (flags.sync, 's'),
        (flags.metadata, 'm'),
        (flags.read_ahead, 'a'),
    ];
    letters
        .iter()
        .filter(|(is_set, _)| *is_set)
        .map(|(_, letter)| *letter)
        .collect()
}

fn kind_name(kind: MetadataKind) -> &'static str {
    match kind {
        MetadataKind::Superblock => "sb",
        MetadataKind::GroupDescriptors => "gdt",
        MetadataKind::BlockBitmap => "bbm",
        MetadataKind::InodeBitmap => "ibm",
        MetadataKind::InodeTable => "itab",
        MetadataKind::JournalSuperblock => "jsb",
        MetadataKind::Directory => "dir",
        MetadataKind::ExtentTree => "?",
        MetadataKind::FreeSpaceHeader => "agf",
        MetadataKind::InodeHeader => "agi",
        MetadataKind::FreeList => "agfl",
        MetadataKind::FreeSpaceByBlock => "bnobt",
        MetadataKind::FreeSpaceByCount => "cntbt",
        MetadataKind::InodeTree => "inobt",
        MetadataKind::FreeInodeTree => "finobt",
        MetadataKind::InodeCluster => "ino",
    }
}

/// Entry of a list in core form: what is compared between kernels and devices.
#[derive(Clone, Debug, PartialEq)]
pub enum CoreEntry {
    /// Data of a file, in KiB.
    Data {
        /// Name of the file.
        name: String,
        /// Offset in the file.
        offset_kib: f64,
        /// Length of the joined pieces.
        length_kib: f64,
        /// Whether it has FUA.
        fua: bool,
    },
    /// Journal or log, in KiB.
    Journal {
        /// Length of the joined pieces.
        length_kib: f64,
        /// Whether it has FUA.
        fua: bool,
    },
    /// Flush of the write cache.
    Flush,
    /// Discard, in KiB of the device.
    Discard {
        /// Offset on the device.
        offset_kib: f64,
        /// Length of the run.
        length_kib: f64,
    },
}

impl fmt::Display for CoreEntry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fua_mark = |fua: bool| if fua { " f" } else { "" };
        match self {
            Self::Data {
                name,
                offset_kib,
                length_kib,
                fua,
            } => {
                write!(
                    formatter,
                    "W {name} {offset_kib}+{length_kib}{}",
                    fua_mark(*fua)
                )
            }
            Self::Journal { length_kib, fua } => {
                write!(formatter, "J {length_kib}{}", fua_mark(*fua))
            }
            Self::Flush => formatter.write_str("F"),
            Self::Discard {
                offset_kib,
                length_kib,
            } => {
                write!(formatter, "Z {offset_kib}+{length_kib}")
            }
        }
    }
}

/// Returns the core form of a list: without reads, metadata in place and the flags s, m and a;
/// preflushes as flushes of their own; touching pieces joined.
///
/// # Errors
/// The first string that is no entry of a list.
pub fn core_form<S: AsRef<str>>(list: &[S]) -> Result<Vec<CoreEntry>, String> {
    let mut core: Vec<CoreEntry> = Vec::new();
    for text in list.iter().map(AsRef::as_ref) {
        let words: Vec<&str> = text.split(' ').collect();
        let (verb, flags) = (words[0], words.last().filter(|_| words.len() > 2).copied());
        let has = |letter: char| flags.is_some_and(|flags| flags.contains(letter));
        let malformed = || format!("`{text}` is no entry of a list of requests");
        let entry = match (verb, words.len()) {
            ("R" | "MR", _) => continue,
            ("F", 1) => Some(CoreEntry::Flush),
            ("M", _) => None,
            ("J", 2..) => {
                let length_kib = words[1].parse().map_err(|_| malformed())?;
                Some(CoreEntry::Journal {
                    length_kib,
                    fua: has('f'),
                })
            }
            ("W" | "N", 3..) => {
                let (offset_kib, length_kib) = read_span(words[2]).ok_or_else(malformed)?;
                let fua = words.len() > 3 && has('f');
                Some(CoreEntry::Data {
                    name: words[1].to_owned(),
                    offset_kib,
                    length_kib,
                    fua,
                })
            }
            ("Z", 2..) => {
                let (offset_kib, length_kib) = read_span(words[1]).ok_or_else(malformed)?;
                Some(CoreEntry::Discard {
                    offset_kib,
                    length_kib,
                })
            }
            _ => return Err(malformed()),
        };
        if words.len() > 2 && verb != "Z" && has('p') {
            core.push(CoreEntry::Flush);
        }
        if let Some(entry) = entry {
            push_joined(&mut core, entry);
        }
    }
    Ok(core)
}

fn read_span(text: &str) -> Option<(f64, f64)> {
    let (offset, length) = text.split_once('+')?;
    Some((offset.parse().ok()?, length.parse().ok()?))
}

/// Adds an entry, or joins it with the last one if both are one piece.
fn push_joined(core: &mut Vec<CoreEntry>, entry: CoreEntry) {
    match (core.last_mut(), &entry) {
        (
            Some(CoreEntry::Data {
                name,
                offset_kib,
                length_kib,
                fua,
            }),
            CoreEntry::Data {
                name: next_name,
                offset_kib: next,
                length_kib: more,
                fua: next_fua,
            },
        ) if name == next_name && fua == next_fua && *offset_kib + *length_kib == *next => {
            *length_kib += more;
        }
        (
            Some(CoreEntry::Journal { length_kib, fua }),
            CoreEntry::Journal {
                length_kib: more,
                fua: next_fua,
            },
        ) if fua == next_fua => *length_kib += more,
        _ => core.push(entry),
    }
}

/// First difference of two lists in core form.
#[derive(Clone, Debug, PartialEq)]
pub struct ListDifference {
    /// Index of the first entry that differs.
    pub index: usize,
    /// Entry of the first list, if it goes so far.
    pub expected: Option<CoreEntry>,
    /// Entry of the second list, if it goes so far.
    pub actual: Option<CoreEntry>,
}

impl fmt::Display for ListDifference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |entry: &Option<CoreEntry>| {
            entry
                .as_ref()
                .map_or_else(|| "nothing".to_owned(), ToString::to_string)
        };
        write!(
            formatter,
            "entry {}: {} expected, {} made",
            self.index,
            name(&self.expected),
            name(&self.actual)
        )
    }
}

/// Compares two lists in core form. `None`: they are equal.
#[must_use]
pub fn first_difference(expected: &[CoreEntry], actual: &[CoreEntry]) -> Option<ListDifference> {
    let length = expected.len().max(actual.len());
    (0..length)
        .find(|index| expected.get(*index) != actual.get(*index))
        .map(|index| ListDifference {
            index,
            expected: expected.get(index).cloned(),
            actual: actual.get(index).cloned(),
        })
}
