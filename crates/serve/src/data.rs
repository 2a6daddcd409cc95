//! Contents of a served drive.

mod file;
mod memory;

use crate::ServeError;
use file::FileData;
use memory::MemoryData;
use std::io;
use std::path::Path;

/// Part of a drive that either has data or reads as zeroes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Length of the extent, in bytes.
    pub bytes: u64,
    /// Whether nothing is stored for it: it reads as zeroes.
    pub is_hole: bool,
}

/// Contents of a served drive. Bytes that were never written are zero. Calls may come from
/// several threads; ranges must lie within the drive.
#[derive(Debug)]
pub struct Data {
    store: Store,
}

#[derive(Debug)]
enum Store {
    Memory(MemoryData),
    File(FileData),
}

impl Data {
    /// Returns contents that are kept in memory, which grows with what is written.
    pub fn in_memory() -> Self {
        Self {
            store: Store::Memory(MemoryData::default()),
        }
    }

    /// Opens a sparse file of the drive's size, which is created if it is missing. The file is
    /// locked against a second server.
    ///
    /// # Errors
    ///
    /// The file has another size, is no regular file, is served already, or cannot be opened.
    pub fn in_file(path: &Path, size_bytes: u64, is_read_only: bool) -> Result<Self, ServeError> {
        Ok(Self {
            store: Store::File(FileData::open(path, size_bytes, is_read_only)?),
        })
    }

    /// Opens a file of the drive's size that is not changed: what is written is kept in memory.
    /// The file is locked against a server that would change it.
    ///
    /// # Errors
    ///
    /// The file has another size, is no regular file, is written by a server, or cannot be opened.
    pub fn copy_on_write(path: &Path, size_bytes: u64) -> Result<Self, ServeError> {
        let base = FileData::open(path, size_bytes, true)?;
        Ok(Self {
            store: Store::Memory(MemoryData::new(Some(base))),
        })
    }

    /// Reads bytes from an offset.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        match &self.store {
            Store::Memory(memory) => memory.read(offset, bytes),
            Store::File(file) => file.read(offset, bytes),
        }
    }

    /// Writes bytes at an offset.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or there is no memory.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        match &self.store {
            Store::Memory(memory) => memory.write(offset, bytes),
            Store::File(file) => file.write(offset, bytes),
        }
    }

    /// Makes a range zero. Storage of the range is given back, unless
    /// it is in a file and `keep_allocated`.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or there is no memory.
    pub fn zero(&self, offset: u64, bytes: u64, keep_allocated: bool) -> io::Result<()> {
        match &self.store {
            Store::Memory(memory) => memory.zero(offset, bytes),
            Store::File(file) => file.zero(offset, bytes, keep_allocated),
        }
    }

    /// Returns the extents of a range, from its start, neighbours being of different kinds; at
    /// most `count_max`, so that the end of the range may be left out.
    ///
    /// # Errors
    ///
    /// The file's holes cannot be read.
    pub fn extents(&self, offset: u64, bytes: u64, count_max: usize) -> io::Result<Vec<Extent>> {
        match &self.store {
            Store::Memory(memory) => memory.extents(offset, bytes, count_max),
            Store::File(file) => file.extents(offset, bytes, count_max),
        }
    }

    /// Puts all that was written on the medium of the file, if there is one.
    ///
    /// # Errors
    ///
    /// The file cannot be synced.
    pub fn sync(&self) -> io::Result<()> {
        match &self.store {
            Store::Memory(_) => Ok(()),
            Store::File(file) => file.sync(),
        }
    }
}

/// Adds an extent to a list, as part of the last one if that is of the same kind. Returns
/// whether there was room.
fn push_extent(extents: &mut Vec<Extent>, extent: Extent, count_max: usize) -> bool {
    let count = extents.len();
    match extents.last_mut() {
        Some(last) if last.is_hole == extent.is_hole => last.bytes += extent.bytes,
        _ if count == count_max => return false,
        _ => extents.push(extent),
    }
    true
}

#[cfg(test)]
mod tests;
