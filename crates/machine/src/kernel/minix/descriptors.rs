//! File descriptors of the processes under Minix.

use super::super::pipe::PipeEnd;
use super::inodes::DriveInode;
use super::message::MinixDevice;
use super::read_write::CachedSource;
use crate::errno::{Errno, Result};

/// Object that a Minix file descriptor refers to.
#[derive(Clone)]
pub(super) enum DescriptorTarget {
    /// File or directory, by its inode.
    Node(DriveInode),
    /// Block device: a drive's partition, or the null device (`None`), which has no data.
    Block(Option<u32>),
    /// Character device: a drive or the null device, accessed past the cache.
    Character(MinixDevice),
    /// Read or write end of a pipe.
    Pipe(PipeEnd),
}

impl DescriptorTarget {
    /// Returns the object if its reads and writes go through the cache, as those of files and block
    /// devices do.
    pub(super) fn as_cached_source(&self) -> Option<CachedSource> {
        match self {
            Self::Node(node) => Some(CachedSource::Node(*node)),
            Self::Block(drive) => Some(CachedSource::Block(*drive)),
            Self::Character(_) | Self::Pipe(_) => None,
        }
    }
}

/// Open file of a process under Minix.
#[derive(Clone)]
pub(super) struct Descriptor {
    pub(super) target: DescriptorTarget,
    pub(super) can_read: bool,
    pub(super) can_write: bool,
    pub(super) position: u64,
}

/// File descriptors of one process, by number.
#[derive(Default)]
pub(super) struct Descriptors(Vec<Option<Descriptor>>);

impl Descriptors {
    pub(super) fn get(&mut self, number: usize) -> Result<&mut Descriptor> {
        let slot = self.0.get_mut(number).and_then(Option::as_mut);
        slot.ok_or(Errno::BadFile)
    }

    /// Stores an open file under the lowest free descriptor number, and returns the number.
    pub(super) fn install(&mut self, descriptor: Descriptor) -> usize {
        match self.0.iter().position(Option::is_none) {
            Some(number) => {
                self.0[number] = Some(descriptor);
                number
            }
            None => {
                self.0.push(Some(descriptor));
                self.0.len() - 1
            }
        }
    }

    pub(super) fn take(&mut self, number: usize) -> Result<Descriptor> {
        let taken = self.0.get_mut(number).and_then(Option::take);
        taken.ok_or(Errno::BadFile)
    }

    pub(super) fn take_all(&mut self) -> Vec<Descriptor> {
        std::mem::take(&mut self.0).into_iter().flatten().collect()
    }
}
