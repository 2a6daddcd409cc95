//! Contents of a served drive in memory, alone or over a file that is not changed.

use super::file::FileData;
use super::{Extent, push_extent};
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Bytes that are allocated together. Random writes of 4 KiB take at most eight times their
/// size; a table of a drive of 8 TB that is full has 2^28 entries.
const CHUNK_BYTES: u64 = 32 * 1024;

/// Parts of the table that are locked on their own, so that connections rarely wait for each
/// other.
const SHARD_COUNT: usize = 64;

type Chunks = HashMap<u64, Chunk>;

/// Contents of a chunk that differs from what is below it.
#[derive(Debug)]
enum Chunk {
    /// Zeroes over data of the file.
    Zero,
    Bytes(Box<[u8]>),
}

/// Chunks that were written, by their numbers.
#[derive(Debug)]
pub(super) struct MemoryData {
    shards: Vec<RwLock<Chunks>>,
    /// File that has the other chunks; they are zero without one.
    base: Option<FileData>,
}

/// Part of a range that lies within one chunk.
struct Piece {
    chunk: u64,
    /// First byte within the chunk.
    within: usize,
    bytes: usize,
    /// First byte within the range.
    at: usize,
}

impl Default for MemoryData {
    fn default() -> Self {
        Self::new(None)
    }
}

fn pieces(offset: u64, bytes: u64) -> impl Iterator<Item = Piece> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at == bytes {
            return None;
        }
        let position = offset + at;
        let within = position % CHUNK_BYTES;
        let piece = Piece {
            chunk: position / CHUNK_BYTES,
            within: within as usize,
            bytes: (CHUNK_BYTES - within).min(bytes - at) as usize,
            at: at as usize,
        };
        at += piece.bytes as u64;
        Some(piece)
    })
}

impl MemoryData {
    /// Returns contents that are those of a file until they are written.
    pub(super) fn new(base: Option<FileData>) -> Self {
        let shards = (0..SHARD_COUNT).map(|_| RwLock::default());
        Self {
            shards: shards.collect(),
            base,
        }
    }

    fn read_shard(&self, chunk: u64) -> RwLockReadGuard<'_, Chunks> {
        let shard = &self.shards[chunk as usize % SHARD_COUNT];
        shard.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_shard(&self, chunk: u64) -> RwLockWriteGuard<'_, Chunks> {
        let shard = &self.shards[chunk as usize % SHARD_COUNT];
        shard.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        for piece in pieces(offset, bytes.len() as u64) {
            let into = &mut bytes[piece.at..piece.at + piece.bytes];
            match (self.read_shard(piece.chunk).get(&piece.chunk), &self.base) {
                (Some(Chunk::Bytes(chunk)), _) => {
                    into.copy_from_slice(&chunk[piece.within..piece.within + piece.bytes]);
                }
                (None, Some(base)) => base.read(piece.position(), into)?,
                (Some(Chunk::Zero), _) | (None, None) => into.fill(0),
            }
        }
        Ok(())
    }

    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        for piece in pieces(offset, bytes.len() as u64) {
            let from = &bytes[piece.at..piece.at + piece.bytes];
            let mut shard = self.write_shard(piece.chunk);
            self.change(&mut shard, &piece)?.copy_from_slice(from);
        }
        Ok(())
    }

    /// Returns the bytes of a piece for a change. Its chunk gets those of what is below it first.
    fn change<'s>(&self, shard: &'s mut Chunks, piece: &Piece) -> io::Result<&'s mut [u8]> {
        if !matches!(shard.get(&piece.chunk), Some(Chunk::Bytes(_))) {
            let no_memory = |_| io::Error::from(ErrorKind::OutOfMemory);
            shard.try_reserve(1).map_err(no_memory)?;
            let mut chunk = empty_chunk()?;
            if let (None, Some(base)) = (shard.get(&piece.chunk), &self.base) {
                let start = piece.chunk * CHUNK_BYTES;
                let bytes = base.size_bytes().saturating_sub(start).min(CHUNK_BYTES);
                base.read(start, &mut chunk[..bytes as usize])?;
            }
            shard.insert(piece.chunk, Chunk::Bytes(chunk));
        }
        match shard.get_mut(&piece.chunk) {
            Some(Chunk::Bytes(chunk)) => Ok(&mut chunk[piece.within..piece.within + piece.bytes]),
            _ => unreachable!("it is inserted above"),
        }
    }

    pub(super) fn zero(&self, offset: u64, bytes: u64) -> io::Result<()> {
        for piece in pieces(offset, bytes) {
            let mut shard = self.write_shard(piece.chunk);
            let is_zero_below = match &self.base {
                Some(base) => base.is_hole(piece.position(), piece.bytes as u64)?,
                None => true,
            };
            if piece.bytes as u64 == CHUNK_BYTES {
                if is_zero_below {
                    shard.remove(&piece.chunk);
                } else {
                    let no_memory = |_| io::Error::from(ErrorKind::OutOfMemory);
                    shard.try_reserve(1).map_err(no_memory)?;
                    shard.insert(piece.chunk, Chunk::Zero);
                }
                continue;
            }
            let is_zero = match shard.get(&piece.chunk) {
                Some(Chunk::Zero) => true,
                Some(Chunk::Bytes(_)) => false,
                None => is_zero_below,
            };
            if !is_zero {
                self.change(&mut shard, &piece)?.fill(0);
            }
        }
        Ok(())
    }

    pub(super) fn extents(
        &self,
        offset: u64,
        bytes: u64,
        count_max: usize,
    ) -> io::Result<Vec<Extent>> {
        let mut extents = Vec::new();
        for piece in pieces(offset, bytes) {
            let found = match (self.read_shard(piece.chunk).get(&piece.chunk), &self.base) {
                (None, Some(base)) => {
                    base.extents(piece.position(), piece.bytes as u64, usize::MAX)?
                }
                (chunk, _) => vec![Extent {
                    bytes: piece.bytes as u64,
                    is_hole: !matches!(chunk, Some(Chunk::Bytes(_))),
                }],
            };
            for extent in found {
                if !push_extent(&mut extents, extent, count_max) {
                    return Ok(extents);
                }
            }
        }
        Ok(extents)
    }
}

impl Piece {
    /// Returns the address of the first byte.
    fn position(&self) -> u64 {
        self.chunk * CHUNK_BYTES + self.within as u64
    }
}

fn empty_chunk() -> io::Result<Box<[u8]>> {
    let mut chunk = Vec::new();
    let reserved = chunk.try_reserve_exact(CHUNK_BYTES as usize);
    reserved.map_err(|_| io::Error::from(ErrorKind::OutOfMemory))?;
    chunk.resize(CHUNK_BYTES as usize, 0);
    Ok(chunk.into_boxed_slice())
}
