//! One directory: records in chunks of 512 bytes that no record crosses, so
//! that a single sector holds every change whole.

use super::inode::InodeNumber;
use std::collections::BTreeMap;
use std::fmt;

/// Bytes of a chunk of directory records (DIRBLKSIZ).
pub const DIRECTORY_CHUNK_BYTES: u32 = 512;
/// The longest name (MAXNAMLEN).
pub const NAME_MAX_BYTES: usize = 255;

/// Bytes of a record before the name: inode, length of record, length of name.
const RECORD_HEADER_BYTES: u32 = 8;

/// Bytes that a name's record needs: header, name and its terminating zero,
/// made a multiple of 4.
#[must_use]
pub fn record_bytes(name: &str) -> u32 {
    RECORD_HEADER_BYTES + (name.len() as u32 + 1).next_multiple_of(4)
}

/// Why a name cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameError {
    /// No name at all.
    Empty,
    /// Longer than [`NAME_MAX_BYTES`].
    TooLong,
    /// With a slash or a zero byte.
    Character,
    /// It is there already.
    Exists,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("an empty name"),
            Self::TooLong => write!(f, "a name of more than {NAME_MAX_BYTES} bytes"),
            Self::Character => f.write_str("a name with a slash or a zero byte"),
            Self::Exists => f.write_str("the name exists"),
        }
    }
}

impl std::error::Error for NameError {}

/// Where a name's record is, and what it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryPlace {
    /// The inode of the name.
    pub inode: InodeNumber,
    /// Offset of the record in the directory, in bytes. The directory's block
    /// that holds it is the one to read or write.
    pub offset_bytes: u64,
}

/// Where a new name would go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntrySlot {
    /// Offset in the directory of the chunk's part that is rewritten, in
    /// bytes; with `grows` the old end of the directory.
    pub offset_bytes: u64,
    /// A chunk is appended: before the name is added the directory must have
    /// blocks or fragments for [`DIRECTORY_CHUNK_BYTES`] more.
    pub grows: bool,
}

/// A name in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryEntry<'a> {
    /// The name, `.` and `..` among them.
    pub name: &'a str,
    /// What it names.
    pub inode: InodeNumber,
    /// Offset of the record in the directory, in bytes.
    pub offset_bytes: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Record {
    /// 0: the record is vacant (only the first of a chunk can be).
    pub(super) inode: u32,
    /// Bytes to the next record.
    pub(super) record_bytes: u32,
    pub(super) name: Box<str>,
}

impl Record {
    fn vacant(record_bytes: u32) -> Self {
        Self {
            inode: 0,
            record_bytes,
            name: "".into(),
        }
    }

    /// Bytes of the record that its own name does not need.
    fn free_bytes(&self) -> u32 {
        if self.inode == 0 {
            self.record_bytes
        } else {
            self.record_bytes - record_bytes(&self.name)
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Chunk {
    pub(super) records: Vec<Record>,
    /// The sum over the records, so that a full chunk is passed over quickly.
    free_bytes: u32,
}

/// Records of a chunk that together hold a new one.
struct Room {
    first: usize,
    last: usize,
    offset_bytes: u32,
}

impl Chunk {
    fn new(records: Vec<Record>) -> Self {
        let free_bytes = records.iter().map(Record::free_bytes).sum();
        Self {
            records,
            free_bytes,
        }
    }

    fn empty() -> Self {
        Self::new(vec![Record::vacant(DIRECTORY_CHUNK_BYTES)])
    }

    /// The first record with enough room of its own.
    fn single_room(&self, needed_bytes: u32) -> Option<Room> {
        let mut offset_bytes = 0;
        for (index, record) in self.records.iter().enumerate() {
            if record.free_bytes() >= needed_bytes {
                return Some(Room {
                    first: index,
                    last: index,
                    offset_bytes,
                });
            }
            offset_bytes += record.record_bytes;
        }
        None
    }

    /// The records, from the first with any room, that have enough of it once
    /// they are pushed together.
    fn compacted_room(&self, needed_bytes: u32) -> Option<Room> {
        let mut offset_bytes = 0;
        let mut start: Option<(usize, u32)> = None;
        let mut free_bytes = 0;
        for (index, record) in self.records.iter().enumerate() {
            if record.free_bytes() > 0 {
                let (first, offset_bytes) = *start.get_or_insert((index, offset_bytes));
                free_bytes += record.free_bytes();
                if free_bytes >= needed_bytes {
                    return Some(Room {
                        first,
                        last: index,
                        offset_bytes,
                    });
                }
            }
            offset_bytes += record.record_bytes;
        }
        None
    }

    /// Pushes the records of a room together and puts the new one behind them,
    /// with all the room that is left. Returns its offset in the chunk.
    fn insert(&mut self, room: &Room, name: &str, inode: InodeNumber) -> u32 {
        let total: u32 = self.records[room.first..=room.last]
            .iter()
            .map(|r| r.record_bytes)
            .sum();
        let mut packed: Vec<Record> = self
            .records
            .drain(room.first..=room.last)
            .filter(|record| record.inode != 0)
            .collect();
        let mut used = 0;
        for record in &mut packed {
            record.record_bytes = record_bytes(&record.name);
            used += record.record_bytes;
        }
        packed.push(Record {
            inode: inode.0,
            record_bytes: total - used,
            name: name.into(),
        });
        self.records.splice(room.first..room.first, packed);
        self.free_bytes -= record_bytes(name);
        room.offset_bytes + used
    }

    /// Index and offset of a name's record.
    fn find(&self, name: &str) -> Option<(usize, u32)> {
        let mut offset_bytes = 0;
        for (index, record) in self.records.iter().enumerate() {
            if record.inode != 0 && *record.name == *name {
                return Some((index, offset_bytes));
            }
            offset_bytes += record.record_bytes;
        }
        None
    }

    /// A removed record's bytes go to the record before it; the first record
    /// of a chunk becomes vacant.
    fn remove(&mut self, index: usize) {
        self.free_bytes += record_bytes(&self.records[index].name);
        if index == 0 {
            self.records[0] = Record::vacant(self.records[0].record_bytes);
        } else {
            let removed = self.records.remove(index);
            self.records[index - 1].record_bytes += removed.record_bytes;
        }
    }
}

/// The contents of a directory.
#[derive(Debug, Clone)]
pub(super) struct Directory {
    pub(super) chunks: Vec<Chunk>,
    /// Which chunk a name is in.
    pub(super) chunk_of: BTreeMap<Box<str>, u32>,
}

impl Directory {
    /// A directory with `.` and `..`, of a whole number of chunks.
    pub(super) fn new(inode: InodeNumber, parent: InodeNumber, size_bytes: u32) -> Self {
        let this = Record {
            inode: inode.0,
            record_bytes: record_bytes("."),
            name: ".".into(),
        };
        let up = Record {
            inode: parent.0,
            record_bytes: DIRECTORY_CHUNK_BYTES - this.record_bytes,
            name: "..".into(),
        };
        let mut chunks = vec![Chunk::new(vec![this, up])];
        chunks.resize_with((size_bytes / DIRECTORY_CHUNK_BYTES) as usize, Chunk::empty);
        let chunk_of = [(".".into(), 0), ("..".into(), 0)].into();
        Self { chunks, chunk_of }
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.chunks.len() as u64 * u64::from(DIRECTORY_CHUNK_BYTES)
    }

    fn find(&self, name: &str) -> Option<(usize, usize, EntryPlace)> {
        let chunk = *self.chunk_of.get(name)? as usize;
        let (index, offset) = self.chunks[chunk]
            .find(name)
            .expect("the index names the chunk");
        let inode = InodeNumber(self.chunks[chunk].records[index].inode);
        Some((
            chunk,
            index,
            EntryPlace {
                inode,
                offset_bytes: chunk_offset(chunk) + u64::from(offset),
            },
        ))
    }

    pub(super) fn lookup(&self, name: &str) -> Option<EntryPlace> {
        self.find(name).map(|(_, _, place)| place)
    }

    /// The first record with room of its own in any chunk; else the first
    /// chunk with room once compacted; else none.
    fn room(&self, needed_bytes: u32) -> Option<(usize, Room)> {
        let roomy = |(_, chunk): &(usize, &Chunk)| chunk.free_bytes >= needed_bytes;
        let mut compacted = None;
        for (index, chunk) in self.chunks.iter().enumerate().filter(roomy) {
            if let Some(room) = chunk.single_room(needed_bytes) {
                return Some((index, room));
            }
            if compacted.is_none() {
                compacted = chunk.compacted_room(needed_bytes).map(|room| (index, room));
            }
        }
        compacted
    }

    pub(super) fn slot(&self, name: &str) -> EntrySlot {
        match self.room(record_bytes(name)) {
            Some((chunk, room)) => EntrySlot {
                offset_bytes: chunk_offset(chunk) + u64::from(room.offset_bytes),
                grows: false,
            },
            None => EntrySlot {
                offset_bytes: self.size_bytes(),
                grows: true,
            },
        }
    }

    pub(super) fn add(&mut self, name: &str, inode: InodeNumber) -> EntryPlace {
        let (chunk, room) = self.room(record_bytes(name)).unwrap_or_else(|| {
            self.chunks.push(Chunk::empty());
            (
                self.chunks.len() - 1,
                Room {
                    first: 0,
                    last: 0,
                    offset_bytes: 0,
                },
            )
        });
        let offset = self.chunks[chunk].insert(&room, name, inode);
        let known = self.chunk_of.insert(name.into(), chunk as u32);
        assert!(known.is_none(), "a name is added twice: {name}");
        EntryPlace {
            inode,
            offset_bytes: chunk_offset(chunk) + u64::from(offset),
        }
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<EntryPlace> {
        let (chunk, index, place) = self.find(name)?;
        self.chunks[chunk].remove(index);
        self.chunk_of.remove(name);
        Some(place)
    }

    pub(super) fn replace(&mut self, name: &str, inode: InodeNumber) -> Option<EntryPlace> {
        let (chunk, index, place) = self.find(name)?;
        self.chunks[chunk].records[index].inode = inode.0;
        Some(place)
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

    /// What is wrong with the records themselves, if anything.
    pub(super) fn damage(&self) -> Option<&'static str> {
        for (index, chunk) in self.chunks.iter().enumerate() {
            let total: u32 = chunk.records.iter().map(|record| record.record_bytes).sum();
            if total != DIRECTORY_CHUNK_BYTES {
                return Some("the records of a chunk do not fill it");
            }
            let fits = |r: &Record| r.inode == 0 || record_bytes(&r.name) <= r.record_bytes;
            if !chunk.records.iter().all(fits) {
                return Some("a record is shorter than its name");
            }
            if chunk.records.iter().map(Record::free_bytes).sum::<u32>() != chunk.free_bytes {
                return Some("the free bytes of a chunk are miscounted");
            }
            let known = |r: &Record| self.chunk_of.get(&r.name) == Some(&(index as u32));
            if !chunk.records.iter().filter(|r| r.inode != 0).all(known) {
                return Some("a name is not in the index");
            }
        }
        (self.entries().count() != self.chunk_of.len()).then_some("the index has other names")
    }
}

fn chunk_offset(chunk: usize) -> u64 {
    chunk as u64 * u64::from(DIRECTORY_CHUNK_BYTES)
}
