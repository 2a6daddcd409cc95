//! Files of a ring, by their numbers in the program.

use super::super::null;
use super::super::worker::{HostOpenFile, descriptor_length};
use crate::{CallKind, Errno, Error, File, IoOperation, Result, Submission};
use rustix::fs::FileType;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Files that a ring was opened for. The ring has its own descriptors, so that requests in flight
/// continue when the program closes a file.
pub(super) struct RingFiles {
    files: Vec<RingFile>,
    /// Index in `named` by the program's file number.
    index_by_file: Vec<Option<u32>>,
}

pub(super) struct RingFile {
    /// Index of the file in the ring, by which it is registered with the kernel.
    pub(super) ring_index: u32,
    file: File,
    descriptor: OwnedFd,
    path: String,
    pub(super) is_block_device: bool,
    /// Length of a null drive in bytes; `None` for other files.
    null_drive_bytes: Option<u64>,
    is_closed: AtomicBool,
}

impl RingFiles {
    pub(in super::super) fn new(files: &[File], open: &[Option<HostOpenFile>]) -> Result<Self> {
        let mut ring = Self {
            files: Vec::with_capacity(files.len()),
            index_by_file: vec![None; open.len()],
        };
        for &file in files {
            let failed =
                |errno| Error::call_failed(CallKind::RingSetup, format!("file {}", file.0), errno);
            let Some(Some(open)) = open.get(file.0) else {
                return Err(failed(Errno::BadFile));
            };
            if ring.index_by_file[file.0].is_some() {
                continue;
            }
            let descriptor = open.file_descriptor.try_clone();
            let descriptor = descriptor.map_err(|error| failed(error.into()))?;
            let status = rustix::fs::fstat(&descriptor).map_err(|errno| failed(errno.into()))?;
            let index = ring.files.len() as u32;
            ring.index_by_file[file.0] = Some(index);
            ring.files.push(RingFile {
                ring_index: index,
                file,
                descriptor,
                path: open.path.clone(),
                is_block_device: FileType::from_raw_mode(status.st_mode).is_block_device(),
                null_drive_bytes: open.null_file.as_ref().map(|null| null.length_bytes()),
                is_closed: AtomicBool::new(false),
            });
        }
        Ok(ring)
    }

    /// Reports whether all files are null drives. A ring of null drives and other files is an
    /// error.
    pub(super) fn are_null_drives(&self) -> Result<bool> {
        let nulls = self
            .files
            .iter()
            .filter(|file| file.null_drive_bytes.is_some())
            .count();
        if nulls > 0 && nulls < self.files.len() {
            let what = "of both files and null drives";
            return Err(Error::call_failed(
                CallKind::RingSetup,
                what,
                Errno::Invalid,
            ));
        }
        Ok(nulls > 0)
    }

    /// Returns the ring's file with the program's number; `None` if the program has closed it.
    #[inline]
    pub(super) fn find_open(&self, file: File) -> Option<&RingFile> {
        let file = self.find_open_or_closed(file)?;
        (!file.is_closed.load(Ordering::Relaxed)).then_some(file)
    }

    /// Returns the ring's file with the program's number, even if the program has closed it.
    #[inline]
    pub(super) fn find_open_or_closed(&self, file: File) -> Option<&RingFile> {
        let index = self.index_by_file.get(file.0).copied().flatten()?;
        Some(&self.files[index as usize])
    }

    /// Returns all files of the ring in order of their indexes.
    pub(super) fn iter_files(&self) -> impl Iterator<Item = &RingFile> {
        self.files.iter()
    }

    pub(super) fn contains_file(&self, file: File) -> bool {
        self.find_open(file).is_some()
    }

    pub(super) fn mark_closed(&self, file: File) {
        if let Some(file) = self.find_open(file) {
            file.is_closed.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn raw_descriptors(&self) -> Vec<RawFd> {
        let raw = |file: &RingFile| file.descriptor.as_raw_fd();
        self.files.iter().map(raw).collect()
    }

    /// Returns each file's number with its real path, or the program's name for it if there is
    /// none.
    pub(super) fn real_paths(&self) -> impl Iterator<Item = (File, String)> {
        self.files.iter().map(|named| {
            let link = format!("/proc/self/fd/{}", named.descriptor.as_raw_fd());
            let real = std::fs::read_link(link)
                .ok()
                .filter(|_| named.null_drive_bytes.is_none());
            let name = real.map_or_else(|| named.path.clone(), |path| path.display().to_string());
            (named.file, name)
        })
    }

    /// Returns the name by which the program opened a file, with the real path in parentheses.
    pub(super) fn path(&self, file: File) -> String {
        let Some(file) = self.files.iter().find(|named| named.file == file) else {
            return format!("file {}", file.0);
        };
        let link = format!("/proc/self/fd/{}", file.descriptor.as_raw_fd());
        match std::fs::read_link(link) {
            Ok(path) => format!("{} ({})", file.path, path.display()),
            Err(_) => file.path.clone(),
        }
    }
}

impl RingFile {
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Returns the name by which the program opened the file.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the length of the file or block device in bytes.
    pub(super) fn length_bytes(&self) -> rustix::io::Result<u64> {
        descriptor_length(self.descriptor())
    }

    /// Returns the bytes that a request moves to or from a null drive.
    #[inline]
    pub(super) fn null_drive_result(&self, submission: &Submission) -> i32 {
        match (submission.operation, self.null_drive_bytes) {
            (IoOperation::Read | IoOperation::Write, Some(length)) => {
                null::transferable_bytes(length, submission.offset_bytes, submission.bytes as usize)
                    as i32
            }
            _ => 0,
        }
    }
}
