//! Engine for memory-mapped files: a request is a copy that the worker makes.

use super::buffers::RingBuffers;
use super::files::{RingFile, RingFiles};
use crate::{CallKind, Error, IoOperation, MapOptions, Result, Submission};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, msync, munmap};
use std::os::fd::AsFd;
use std::ptr::NonNull;

/// Memory mappings of a ring's files, by file index.
pub(super) struct MappedFiles {
    mapped_files: Vec<MappedFile>,
    map_options: MapOptions,
    page_bytes: usize,
}

/// Mapping of a whole file. An empty file has no memory.
struct MappedFile {
    mapped_memory: Option<NonNull<u8>>,
    length_bytes: usize,
}

// SAFETY: the memory is this structure's alone, and belongs to no thread.
#[allow(unsafe_code)]
unsafe impl Send for MappedFile {}

impl MappedFiles {
    pub(super) fn new(files: &RingFiles, options: MapOptions) -> Result<Self> {
        let map = |file: &RingFile| {
            MappedFile::new(file, options).map_err(|errno| {
                Error::call_failed(CallKind::MapFile, file.path().to_owned(), errno)
            })
        };
        Ok(Self {
            mapped_files: files.iter_files().map(map).collect::<Result<_>>()?,
            map_options: options,
            page_bytes: rustix::param::page_size(),
        })
    }

    /// Executes a request and returns the bytes moved. At the end of the file these are fewer.
    pub(super) fn execute_request(
        &self,
        submission: &Submission,
        file: &RingFile,
        buffers: &RingBuffers,
    ) -> rustix::io::Result<usize> {
        let mapping = &self.mapped_files[file.ring_index as usize];
        let reads = match submission.operation {
            IoOperation::Read => true,
            IoOperation::Write => false,
            IoOperation::Fsync | IoOperation::Fdatasync | IoOperation::SyncRange(_) => {
                return mapping.sync_range(0, mapping.length_bytes).map(|()| 0);
            }
            IoOperation::DiscardRange => return Err(Errno::OPNOTSUPP),
        };
        let Ok(start) = usize::try_from(submission.offset_bytes) else {
            return Ok(0);
        };
        let left = mapping.length_bytes.saturating_sub(start);
        let bytes = left.min(submission.bytes as usize);
        if bytes == 0 {
            return Ok(0);
        }
        // From the start of the page that it begins in.
        let before = start % self.page_bytes;
        let (first, span) = (start - before, before + bytes);
        mapping.fault_in_pages((first, span), reads)?;
        let buffer = buffers.in_flight_buffer(submission.slot, bytes as u32);
        mapping.copy_data(start, buffer, reads);
        if self.map_options.drops_pages {
            mapping.sync_range(first, span)?;
            mapping.advise_kernel((first, span), Advice::LinuxDontNeed)?;
        }
        Ok(bytes)
    }
}

impl MappedFile {
    #[allow(unsafe_code)]
    fn new(file: &RingFile, options: MapOptions) -> rustix::io::Result<Self> {
        let bytes = usize::try_from(file.length_bytes()?).map_err(|_| Errno::FBIG)?;
        if bytes == 0 {
            let memory = None;
            return Ok(Self {
                mapped_memory: memory,
                length_bytes: bytes,
            });
        }
        let flags = rustix::fs::fcntl_getfl(file.descriptor())?;
        let access = match flags & OFlags::ACCMODE {
            OFlags::RDWR => ProtFlags::READ | ProtFlags::WRITE,
            _ => ProtFlags::READ,
        };
        let shared = MapFlags::SHARED;
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                access,
                shared,
                file.descriptor().as_fd(),
                0,
            )?
        };
        let memory = NonNull::new(start.cast());
        let mapping = Self {
            mapped_memory: memory,
            length_bytes: bytes,
        };
        let advice = match options.is_random {
            true => Advice::Random,
            false => Advice::Sequential,
        };
        mapping.advise_kernel((0, bytes), advice)?;
        Ok(mapping)
    }

    #[allow(unsafe_code)]
    fn address_at(&self, offset: usize) -> *mut u8 {
        assert!(
            offset < self.length_bytes,
            "byte {offset} of {}",
            self.length_bytes
        );
        let memory = self.mapped_memory.expect("a file with bytes is mapped");
        // SAFETY: the offset is within the mapping.
        unsafe { memory.as_ptr().add(offset) }
    }

    /// Makes the pages of a range present. Unreadable data or a lack of space is an error here,
    /// instead of a signal during the copy that follows.
    fn fault_in_pages(&self, range: (usize, usize), reads: bool) -> rustix::io::Result<()> {
        let advice = match reads {
            true => Advice::LinuxPopulateRead,
            false => Advice::LinuxPopulateWrite,
        };
        match self.advise_kernel(range, advice) {
            // Before Linux 5.14: the copy brings them.
            Err(Errno::INVAL) => Ok(()),
            // The kernel's word for a page that cannot be had.
            Err(Errno::FAULT) => Err(Errno::IO),
            result => result,
        }
    }

    /// Gives the kernel advice on a range that starts at a page.
    #[allow(unsafe_code)]
    fn advise_kernel(
        &self,
        (offset, bytes): (usize, usize),
        advice: Advice,
    ) -> rustix::io::Result<()> {
        let start = self.address_at(offset);
        assert!(bytes <= self.length_bytes - offset, "a range of the file");
        // SAFETY: the range is within the mapping of a file, which loses nothing by any of
        // the advice that is given here.
        unsafe { madvise(start.cast(), bytes, advice) }
    }

    /// Writes a range that starts at a page to storage, and waits for it.
    #[allow(unsafe_code)]
    fn sync_range(&self, offset: usize, bytes: usize) -> rustix::io::Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let start = self.address_at(offset);
        // SAFETY: the range is within the mapping.
        unsafe { msync(start.cast(), bytes, MsyncFlags::SYNC) }
    }

    #[allow(unsafe_code)]
    fn copy_data(&self, offset: usize, buffer: &mut [u8], reads: bool) {
        let place = self.address_at(offset);
        assert!(
            buffer.len() <= self.length_bytes - offset,
            "a range of the file"
        );
        let bytes = buffer.len();
        // SAFETY: both are as long as this, and the buffer is no part of the file's memory.
        // Others may change the file meanwhile: the copy is then of either state, and nobody
        // relies on it.
        unsafe {
            match reads {
                true => std::ptr::copy_nonoverlapping(place, buffer.as_mut_ptr(), bytes),
                false => std::ptr::copy_nonoverlapping(buffer.as_ptr(), place, bytes),
            }
        }
    }
}

impl Drop for MappedFile {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        if let Some(memory) = self.mapped_memory {
            // SAFETY: the mapping is this structure's, and nobody uses it any more.
            let _ = unsafe { munmap(memory.as_ptr().cast(), self.length_bytes) };
        }
    }
}
