//! Contents of one 4.2BSD directory: records in chunks of 512 bytes. No record crosses a chunk, so
//! that a single sector holds every change as a whole.

use super::inode::InodeNumber;
use std::collections::BTreeMap;
use std::fmt;

/// Size of a chunk of directory records in bytes (`DIRBLKSIZ`).
pub const DIRECTORY_CHUNK_BYTES: u32 = 512;
/// Longest name in a directory, in bytes (`MAXNAMLEN`).
pub const NAME_BYTES_MAX: usize = 255;

/// Bytes of a directory record before the name: inode, length of the record, length of the name.
const RECORD_HEADER_BYTES: u32 = 8;

/// Returns the bytes that a directory record needs for a name: header, name and terminating zero,
/// rounded up to a multiple of 4.
#[must_use]
pub fn record_bytes(name: &str) -> u32 {
    RECORD_HEADER_BYTES + (name.len() as u32 + 1).next_multiple_of(4)
}

/// Reason why a name cannot be added to a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameError {
    /// Empty name, which no directory entry can have.
    EmptyName,
    /// Name longer than [`NAME_BYTES_MAX`].
    NameTooLong,
    /// Name with a slash or a zero byte.
    InvalidCharacter,
    /// Name that the directory already has.
    NameExists,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyName => f.write_str("an empty name"),
            Self::NameTooLong => write!(f, "a name of more than {NAME_BYTES_MAX} bytes"),
            Self::InvalidCharacter => f.write_str("a name with a slash or a zero byte"),
            Self::NameExists => f.write_str("the name exists"),
        }
    }
}

impl std::error::Error for NameError {}

/// Position of a directory record, and the inode that its name refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryLocation {
    /// Inode that the name refers to.
    pub inode: InodeNumber,
    /// Offset of the record in the directory, in bytes. The directory block at this offset is the
    /// one to read or write.
    pub offset_bytes: u64,
}

/// Position in a directory at which a new name would be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntrySlot {
    /// Offset in the directory of the part of the chunk that is rewritten, in bytes. With `grows`,
    /// the old end of the directory.
    pub offset_bytes: u64,
    /// Whether a chunk is appended. Before the name is added, the directory must have blocks or
    /// fragments for [`DIRECTORY_CHUNK_BYTES`] more.
    pub grows_directory: bool,
}

/// Directory entry: a name and its inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryEntry<'a> {
    /// Name of the entry. `.` and `..` are entries too.
    pub name: &'a str,
    /// Inode that the entry refers to.
    pub inode: InodeNumber,
    /// Offset of the entry's record in the directory, in bytes.
    pub offset_bytes: u64,
}

#[derive(Debug, Clone)]
pub(super) struct DirectoryRecord {
    /// Inode number of the record; 0 for a vacant record. Only the first record of a chunk can be
    /// vacant.
    pub(super) inode: u32,
    /// Length of the directory record up to the next record, in bytes, including its free bytes.
    pub(super) record_bytes: u32,
    pub(super) name: Box<str>,
}

impl DirectoryRecord {
    fn new_vacant(record_bytes: u32) -> Self {
        Self {
            inode: 0,
            record_bytes,
            name: "".into(),
        }
    }

    /// Returns the bytes of the record that its own name does not need.
    fn free_bytes(&self) -> u32 {
        if self.inode == 0 {
            self.record_bytes
        } else {
            self.record_bytes - record_bytes(&self.name)
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct DirectoryChunk {
    pub(super) records: Vec<DirectoryRecord>,
    /// Sum of the records' free bytes, which lets a search skip a full chunk quickly.
    free_bytes: u32,
}

/// Records of a chunk whose free bytes together hold a new record.
struct RecordSpace {
    first_record: usize,
    last_record: usize,
    offset_bytes: u32,
}

impl DirectoryChunk {
    fn new(records: Vec<DirectoryRecord>) -> Self {
        let free_bytes = records.iter().map(DirectoryRecord::free_bytes).sum();
        Self {
            records,
            free_bytes,
        }
    }

    fn new_empty() -> Self {
        Self::new(vec![DirectoryRecord::new_vacant(DIRECTORY_CHUNK_BYTES)])
    }

    /// Finds the first record with enough free bytes of its own.
    fn find_single_space(&self, needed_bytes: u32) -> Option<RecordSpace> {
        let mut offset_bytes = 0;
        for (index, record) in self.records.iter().enumerate() {
            if record.free_bytes() >= needed_bytes {
                return Some(RecordSpace {
                    first_record: index,
                    last_record: index,
                    offset_bytes,
                });
            }
            offset_bytes += record.record_bytes;
        }
        None
    }

    /// Finds consecutive records that have enough free bytes after compaction, starting with the
    /// first record that has any.
    fn find_compacted_space(&self, needed_bytes: u32) -> Option<RecordSpace> {
        let mut offset_bytes = 0;
        let mut start: Option<(usize, u32)> = None;
        let mut free_bytes = 0;
        for (index, record) in self.records.iter().enumerate() {
            if record.free_bytes() > 0 {
                let (first, offset_bytes) = *start.get_or_insert((index, offset_bytes));
                free_bytes += record.free_bytes();
                if free_bytes >= needed_bytes {
                    return Some(RecordSpace {
                        first_record: first,
                        last_record: index,
                        offset_bytes,
                    });
                }
            }
            offset_bytes += record.record_bytes;
        }
        None
    }

    /// Compacts the records of a room and inserts a new record behind them, with all remaining free
    /// bytes. Returns the offset of the new record in the chunk.
    fn insert_record(&mut self, room: &RecordSpace, name: &str, inode: InodeNumber) -> u32 {
        let total: u32 = self.records[room.first_record..=room.last_record]
            .iter()
            .map(|r| r.record_bytes)
            .sum();
        let mut packed: Vec<DirectoryRecord> = self
            .records
            .drain(room.first_record..=room.last_record)
            .filter(|record| record.inode != 0)
            .collect();
        let mut used = 0;
        for record in &mut packed {
            record.record_bytes = record_bytes(&record.name);
            used += record.record_bytes;
        }
        packed.push(DirectoryRecord {
            inode: inode.0,
            record_bytes: total - used,
            name: name.into(),
        });
        self.records
            .splice(room.first_record..room.first_record, packed);
        self.free_bytes -= record_bytes(name);
        room.offset_bytes + used
    }

    fn find_record(&self, name: &str) -> Option<(usize, u32)> {
        let mut offset_bytes = 0;
        for (index, record) in self.records.iter().enumerate() {
            if record.inode != 0 && *record.name == *name {
                return Some((index, offset_bytes));
            }
            offset_bytes += record.record_bytes;
        }
        None
    }

    /// Removes a record and gives its bytes to the record before it. The first record of a chunk
    /// becomes vacant instead.
    fn remove_record(&mut self, index: usize) {
        self.free_bytes += record_bytes(&self.records[index].name);
        if index == 0 {
            self.records[0] = DirectoryRecord::new_vacant(self.records[0].record_bytes);
        } else {
            let removed = self.records.remove(index);
            self.records[index - 1].record_bytes += removed.record_bytes;
        }
    }
}

/// Contents of a directory, with an index of its names.
#[derive(Debug, Clone)]
pub(super) struct Directory {
    pub(super) chunks: Vec<DirectoryChunk>,
    /// Index from a name to the chunk that holds it.
    pub(super) chunk_by_name: BTreeMap<Box<str>, u32>,
}

/// Entry of a directory with the indices of its chunk and of its record in the chunk.
#[derive(Clone, Copy)]
struct IndexedEntry {
    chunk_index: usize,
    record_index: usize,
    location: EntryLocation,
}

impl Directory {
    /// Creates a directory that holds only `.` and `..`. `size_bytes` is a whole number of chunks.
    pub(super) fn new(inode: InodeNumber, parent: InodeNumber, size_bytes: u32) -> Self {
        let this = DirectoryRecord {
            inode: inode.0,
            record_bytes: record_bytes("."),
            name: ".".into(),
        };
        let up = DirectoryRecord {
            inode: parent.0,
            record_bytes: DIRECTORY_CHUNK_BYTES - this.record_bytes,
            name: "..".into(),
        };
        let mut chunks = vec![DirectoryChunk::new(vec![this, up])];
        chunks.resize_with(
            (size_bytes / DIRECTORY_CHUNK_BYTES) as usize,
            DirectoryChunk::new_empty,
        );
        let chunk_of = [(".".into(), 0), ("..".into(), 0)].into();
        Self {
            chunks,
            chunk_by_name: chunk_of,
        }
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.chunks.len() as u64 * u64::from(DIRECTORY_CHUNK_BYTES)
    }

    fn find_entry(&self, name: &str) -> Option<IndexedEntry> {
        let chunk = *self.chunk_by_name.get(name)? as usize;
        let (index, offset) = self.chunks[chunk]
            .find_record(name)
            .expect("the index refers to the chunk of the name");
        let inode = InodeNumber(self.chunks[chunk].records[index].inode);
        Some(IndexedEntry {
            chunk_index: chunk,
            record_index: index,
            location: EntryLocation {
                inode,
                offset_bytes: chunk_offset(chunk) + u64::from(offset),
            },
        })
    }

    pub(super) fn lookup_entry(&self, name: &str) -> Option<EntryLocation> {
        self.find_entry(name).map(|entry| entry.location)
    }

    /// Finds room for a record: the first record in any chunk with enough free bytes of its own, or
    /// else the first chunk with enough after compaction.
    fn find_space(&self, needed_bytes: u32) -> Option<(usize, RecordSpace)> {
        let roomy = |(_, chunk): &(usize, &DirectoryChunk)| chunk.free_bytes >= needed_bytes;
        let mut compacted = None;
        for (index, chunk) in self.chunks.iter().enumerate().filter(roomy) {
            if let Some(room) = chunk.find_single_space(needed_bytes) {
                return Some((index, room));
            }
            if compacted.is_none() {
                compacted = chunk
                    .find_compacted_space(needed_bytes)
                    .map(|room| (index, room));
            }
        }
        compacted
    }

    pub(super) fn find_slot(&self, name: &str) -> EntrySlot {
        match self.find_space(record_bytes(name)) {
            Some((chunk, room)) => EntrySlot {
                offset_bytes: chunk_offset(chunk) + u64::from(room.offset_bytes),
                grows_directory: false,
            },
            None => EntrySlot {
                offset_bytes: self.size_bytes(),
                grows_directory: true,
            },
        }
    }

    pub(super) fn add_entry(&mut self, name: &str, inode: InodeNumber) -> EntryLocation {
        let (chunk, room) = self.find_space(record_bytes(name)).unwrap_or_else(|| {
            self.chunks.push(DirectoryChunk::new_empty());
            (
                self.chunks.len() - 1,
                RecordSpace {
                    first_record: 0,
                    last_record: 0,
                    offset_bytes: 0,
                },
            )
        });
        let offset = self.chunks[chunk].insert_record(&room, name, inode);
        let known = self.chunk_by_name.insert(name.into(), chunk as u32);
        assert!(known.is_none(), "a name is added twice: {name}");
        EntryLocation {
            inode,
            offset_bytes: chunk_offset(chunk) + u64::from(offset),
        }
    }

    pub(super) fn remove_entry(&mut self, name: &str) -> Option<EntryLocation> {
        let entry = self.find_entry(name)?;
        self.chunks[entry.chunk_index].remove_record(entry.record_index);
        self.chunk_by_name.remove(name);
        Some(entry.location)
    }

    pub(super) fn replace_entry(
        &mut self,
        name: &str,
        inode: InodeNumber,
    ) -> Option<EntryLocation> {
        let entry = self.find_entry(name)?;
        self.chunks[entry.chunk_index].records[entry.record_index].inode = inode.0;
        Some(entry.location)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = DirectoryEntry<'_>> {
        self.chunks.iter().enumerate().flat_map(|(chunk, records)| {
            let mut next = chunk_offset(chunk);
            records.records.iter().filter_map(move |record| {
                let offset_bytes = next;
                next += u64::from(record.record_bytes);
                let inode = InodeNumber(record.inode);
                (inode.0 != 0).then_some(DirectoryEntry {
                    name: &record.name,
                    inode,
                    offset_bytes,
                })
            })
        })
    }

    /// Describes the first damage to the records or the name index; `None` if the directory is
    /// sound.
    pub(super) fn find_damage(&self) -> Option<&'static str> {
        for (index, chunk) in self.chunks.iter().enumerate() {
            let total: u32 = chunk.records.iter().map(|record| record.record_bytes).sum();
            if total != DIRECTORY_CHUNK_BYTES {
                return Some("the records of a chunk do not fill it");
            }
            let fits =
                |r: &DirectoryRecord| r.inode == 0 || record_bytes(&r.name) <= r.record_bytes;
            if !chunk.records.iter().all(fits) {
                return Some("a record is shorter than its name");
            }
            if chunk
                .records
                .iter()
                .map(DirectoryRecord::free_bytes)
                .sum::<u32>()
                != chunk.free_bytes
            {
                return Some("the free bytes of a chunk are miscounted");
            }
            let known =
                |r: &DirectoryRecord| self.chunk_by_name.get(&r.name) == Some(&(index as u32));
            if !chunk.records.iter().filter(|r| r.inode != 0).all(known) {
                return Some("a name is not in the index");
            }
        }
        (self.entries().count() != self.chunk_by_name.len())
            .then_some("the index and the records have different names")
    }
}

fn chunk_offset(chunk: usize) -> u64 {
    chunk as u64 * u64::from(DIRECTORY_CHUNK_BYTES)
}
