//! Contents of a served drive in memory.

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

type Chunks = HashMap<u64, Box<[u8]>>;

/// Chunks that were written, by their numbers.
#[derive(Debug)]
pub(super) struct MemoryData {
    shards: Vec<RwLock<Chunks>>,
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
        let shards = (0..SHARD_COUNT).map(|_| RwLock::default());
        Self {
            shards: shards.collect(),
        }
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
    fn read_shard(&self, chunk: u64) -> RwLockReadGuard<'_, Chunks> {
        let shard = &self.shards[chunk as usize % SHARD_COUNT];
        shard.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_shard(&self, chunk: u64) -> RwLockWriteGuard<'_, Chunks> {
        let shard = &self.shards[chunk as usize % SHARD_COUNT];
        shard.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) {
        for piece in pieces(offset, bytes.len() as u64) {
            let into = &mut bytes[piece.at..piece.at + piece.bytes];
            match self.read_shard(piece.chunk).get(&piece.chunk) {
                Some(chunk) => {
                    into.copy_from_slice(&chunk[piece.within..piece.within + piece.bytes]);
                }
                None => into.fill(0),
            }
        }
    }

    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        for piece in pieces(offset, bytes.len() as u64) {
            let from = &bytes[piece.at..piece.at + piece.bytes];
            let mut shard = self.write_shard(piece.chunk);
            if !shard.contains_key(&piece.chunk) {
                let no_memory = |_| io::Error::from(ErrorKind::OutOfMemory);
                shard.try_reserve(1).map_err(no_memory)?;
                shard.insert(piece.chunk, empty_chunk()?);
            }
            let chunk = shard.get_mut(&piece.chunk).expect("it is inserted above");
            chunk[piece.within..piece.within + piece.bytes].copy_from_slice(from);
        }
        Ok(())
    }

    pub(super) fn zero(&self, offset: u64, bytes: u64) {
        for piece in pieces(offset, bytes) {
            let mut shard = self.write_shard(piece.chunk);
            if piece.bytes as u64 == CHUNK_BYTES {
                shard.remove(&piece.chunk);
            } else if let Some(chunk) = shard.get_mut(&piece.chunk) {
                chunk[piece.within..piece.within + piece.bytes].fill(0);
            }
        }
    }

    pub(super) fn extents(&self, offset: u64, bytes: u64, count_max: usize) -> Vec<Extent> {
        let mut extents = Vec::new();
        for piece in pieces(offset, bytes) {
            let extent = Extent {
                bytes: piece.bytes as u64,
                is_hole: !self.read_shard(piece.chunk).contains_key(&piece.chunk),
            };
            if !push_extent(&mut extents, extent, count_max) {
                break;
            }
        }
        extents
    }
}

fn empty_chunk() -> io::Result<Box<[u8]>> {
    let mut chunk = Vec::new();
    let reserved = chunk.try_reserve_exact(CHUNK_BYTES as usize);
    reserved.map_err(|_| io::Error::from(ErrorKind::OutOfMemory))?;
    chunk.resize(CHUNK_BYTES as usize, 0);
    Ok(chunk.into_boxed_slice())
}
