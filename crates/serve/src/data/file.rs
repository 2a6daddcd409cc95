//! Contents in a sparse file.

use super::{Extent, push_extent};
use crate::ServeError;
use rustix::fs::{FallocateFlags, FlockOperation, OFlags, SeekFrom, fallocate, flock, seek};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Zeroes that are written at once where a file system cannot make a range zero by itself.
static ZEROES: [u8; 64 * 1024] = [0; 64 * 1024];

/// A file that is as long as the drive, and locked.
#[derive(Debug)]
pub(super) struct FileData {
    file: File,
    size_bytes: u64,
}

impl FileData {
    pub(super) fn open(
        path: &Path,
        size_bytes: u64,
        is_read_only: bool,
    ) -> Result<Self, ServeError> {
        let refused = |what: String| ServeError::Request(format!("{}: {what}", path.display()));
        // Without waiting, where it is a FIFO.
        let opened = OpenOptions::new()
            .read(true)
            .write(!is_read_only)
            .create(!is_read_only)
            .truncate(false)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(path);
        let file = opened.map_err(|error| {
            let remedy = match error.kind() {
                io::ErrorKind::NotFound if is_read_only => {
                    "; omit --read-only, and the file is created"
                }
                io::ErrorKind::PermissionDenied if !is_read_only => {
                    "; name another file with --data, or omit --write"
                }
                _ => "; name another file with --data",
            };
            refused(format!("cannot be opened: {error}{remedy}"))
        })?;
        let metadata = file
            .metadata()
            .map_err(|error| refused(error.to_string()))?;
        if !metadata.is_file() {
            return Err(refused(
                "is no regular file: name one with --data, or none".to_owned(),
            ));
        }
        lock(&file, is_read_only).map_err(&refused)?;
        match file.metadata().map(|metadata| metadata.len()) {
            Ok(length) if length == size_bytes => {}
            Ok(0) if !is_read_only => {
                let set = file.set_len(size_bytes);
                set.map_err(|error| {
                    refused(format!(
                        "cannot be made {size_bytes} bytes long: {error}; give a smaller --size"
                    ))
                })?;
            }
            Ok(0) => {
                return Err(refused(
                    "is empty: make it a drive with --write, or name another file".to_owned(),
                ));
            }
            Ok(length) => {
                return Err(refused(format!(
                    "has {length} bytes, and the served drive {size_bytes}: give --size {length}, or name another file"
                )));
            }
            Err(error) => return Err(refused(error.to_string())),
        }
        Ok(Self { file, size_bytes })
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Whether nothing is stored for a range.
    pub(super) fn is_hole(&self, offset: u64, bytes: u64) -> io::Result<bool> {
        match seek(&self.file, SeekFrom::Data(offset)) {
            Ok(data) => Ok(data >= offset + bytes),
            // No data up to the end of the file.
            Err(Errno::NXIO) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }

    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    pub(super) fn zero(&self, offset: u64, bytes: u64, keep_allocated: bool) -> io::Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let flags = match keep_allocated {
            true => FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE,
            false => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
        };
        match fallocate(&self.file, flags, offset, bytes) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.write_zeroes(offset, bytes),
            Err(error) => Err(error.into()),
        }
    }

    fn write_zeroes(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let mut at = 0;
        while at < bytes {
            let length = (bytes - at).min(ZEROES.len() as u64);
            self.write(offset + at, &ZEROES[..length as usize])?;
            at += length;
        }
        Ok(())
    }

    pub(super) fn extents(
        &self,
        offset: u64,
        bytes: u64,
        count_max: usize,
    ) -> io::Result<Vec<Extent>> {
        let end = offset + bytes;
        let mut extents = Vec::new();
        let mut at = offset;
        while at < end {
            let data = match seek(&self.file, SeekFrom::Data(at)) {
                Ok(data) => data.min(end),
                // No data up to the end of the file.
                Err(Errno::NXIO) => end,
                Err(error) => return Err(error.into()),
            };
            let (next, is_hole) = match data > at {
                true => (data, true),
                false => (seek(&self.file, SeekFrom::Hole(at))?.min(end), false),
            };
            let extent = Extent {
                bytes: next - at,
                is_hole,
            };
            if next <= at || !push_extent(&mut extents, extent, count_max) {
                break;
            }
            at = next;
        }
        Ok(extents)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

/// Locks a file against servers that change it, or against all others if this one does. Returns
/// the reason why it cannot.
fn lock(file: &File, is_read_only: bool) -> Result<(), String> {
    // Several servers may read a file that none of them changes.
    let lock = match is_read_only {
        true => FlockOperation::NonBlockingLockShared,
        false => FlockOperation::NonBlockingLockExclusive,
    };
    match flock(file, lock) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => {
            Err("is served by another process: name another file, or end that one".to_owned())
        }
        Err(error) => Err(format!("cannot be locked: {error}")),
    }
}
