//! The files of a ring, by the program's numbers of them.

use super::super::null;
use super::super::worker::{OpenFile, length};
use crate::{Call, Errno, Error, File, Operation, Result, Submission};
use rustix::fs::FileType;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// The files that were named when the ring was opened. The ring has descriptors of its
/// own: what is under way goes on when the program closes a file.
pub(super) struct RingFiles {
    named: Vec<RingFile>,
    /// The place in `named` by the program's number.
    places: Vec<Option<u32>>,
}

/// One of them.
pub(super) struct RingFile {
    /// Its place, by which it is registered.
    pub(super) place: u32,
    file: File,
    descriptor: OwnedFd,
    path: String,
    pub(super) is_block_device: bool,
    /// The length of a drive that is not there.
    null_bytes: Option<u64>,
    /// Whether the program has closed it.
    forgotten: AtomicBool,
}

impl RingFiles {
    pub(in super::super) fn new(files: &[File], open: &[Option<OpenFile>]) -> Result<Self> {
        let mut ring = Self {
            named: Vec::with_capacity(files.len()),
            places: vec![None; open.len()],
        };
        for &file in files {
            let failed = |errno| Error::failed(Call::Ring, format!("file {}", file.0), errno);
            let Some(Some(open)) = open.get(file.0) else {
                return Err(failed(Errno::BadFile));
            };
            if ring.places[file.0].is_some() {
                continue;
            }
            let descriptor = open.descriptor.try_clone();
            let descriptor = descriptor.map_err(|error| failed(error.into()))?;
            let status = rustix::fs::fstat(&descriptor).map_err(|errno| failed(errno.into()))?;
            let place = ring.named.len() as u32;
            ring.places[file.0] = Some(place);
            ring.named.push(RingFile {
                place,
                file,
                descriptor,
                path: open.path.clone(),
                is_block_device: FileType::from_raw_mode(status.st_mode).is_block_device(),
                null_bytes: open.null.as_ref().map(|null| null.length_bytes()),
                forgotten: AtomicBool::new(false),
            });
        }
        Ok(ring)
    }

    /// Whether all are drives that are not there; there is no ring of both.
    pub(super) fn are_null(&self) -> Result<bool> {
        let nulls = self
            .named
            .iter()
            .filter(|file| file.null_bytes.is_some())
            .count();
        if nulls > 0 && nulls < self.named.len() {
            let what = "of files and of drives that are not there";
            return Err(Error::failed(Call::Ring, what, Errno::Invalid));
        }
        Ok(nulls > 0)
    }

    /// A file that the ring knows.
    #[inline]
    pub(super) fn of(&self, file: File) -> Option<&RingFile> {
        let file = self.even_forgotten(file)?;
        (!file.forgotten.load(Ordering::Relaxed)).then_some(file)
    }

    /// The same, or one that it knew when a request to it was submitted.
    #[inline]
    pub(super) fn even_forgotten(&self, file: File) -> Option<&RingFile> {
        let place = self.places.get(file.0).copied().flatten()?;
        Some(&self.named[place as usize])
    }

    /// All of them, by place.
    pub(super) fn all(&self) -> impl Iterator<Item = &RingFile> {
        self.named.iter()
    }

    pub(super) fn knows(&self, file: File) -> bool {
        self.of(file).is_some()
    }

    pub(super) fn forget(&self, file: File) {
        if let Some(file) = self.of(file) {
            file.forgotten.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        let raw = |file: &RingFile| file.descriptor.as_raw_fd();
        self.named.iter().map(raw).collect()
    }

    /// The paths of all.
    pub(super) fn names(&self) -> impl Iterator<Item = (File, String)> {
        self.named.iter().map(|named| {
            let link = format!("/proc/self/fd/{}", named.descriptor.as_raw_fd());
            let real = std::fs::read_link(link)
                .ok()
                .filter(|_| named.null_bytes.is_none());
            let name = real.map_or_else(|| named.path.clone(), |path| path.display().to_string());
            (named.file, name)
        })
    }

    /// The name by which the program opened it, and where that leads.
    pub(super) fn path(&self, file: File) -> String {
        let Some(file) = self.named.iter().find(|named| named.file == file) else {
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

    /// The name by which the program opened it.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The length of the file, or of the device.
    pub(super) fn length_bytes(&self) -> rustix::io::Result<u64> {
        length(self.descriptor())
    }

    /// How much a request moves to or from a drive that is not there.
    #[inline]
    pub(super) fn moved_at_once(&self, submission: &Submission) -> i32 {
        match (submission.operation, self.null_bytes) {
            (Operation::Read | Operation::Write, Some(length)) => {
                null::moved_at(length, submission.offset_bytes, submission.bytes as usize) as i32
            }
            _ => 0,
        }
    }
}
