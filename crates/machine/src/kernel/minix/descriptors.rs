//! File descriptors of the processes under Minix.

use super::super::pipe::PipeEnd;
use super::inodes::DriveInode;
use super::message::MinixDevice;
use super::read_write::CachedBlocksSource;
use crate::errno::{Errno, Result};

/// Object that a Minix file descriptor refers to.
#[derive(Clone)]
pub(super) enum DescriptorTarget {
    /// File or directory, by its inode.
    OpenInode(DriveInode),
    /// Block device: a drive's partition, or the null device (`None`), which has no data.
    BlockDevice(Option<u32>),
    /// Character device: a drive or the null device, accessed past the cache.
    CharacterDevice(MinixDevice),
    /// Read or write end of a pipe.
    PipeEnd(PipeEnd),
}

impl DescriptorTarget {
    /// Returns the object if its reads and writes go through the cache, as those of files and block
    /// devices do.
    pub(super) fn as_cached_source(&self) -> Option<CachedBlocksSource> {
        match self {
            Self::OpenInode(node) => Some(CachedBlocksSource::FileInode(*node)),
            Self::BlockDevice(drive) => Some(CachedBlocksSource::BlockDevice(*drive)),
            Self::CharacterDevice(_) | Self::PipeEnd(_) => None,
        }
    }
}

/// Open file of a process under Minix.
#[derive(Clone)]
pub(super) struct Descriptor {
    pub(super) target: DescriptorTarget,
    pub(super) can_read: bool,
    pub(super) can_write: bool,
    pub(super) file_position: u64,
}

/// File descriptors of one process, by number.
#[derive(Default)]
pub(super) struct DescriptorTable(Vec<Option<Descriptor>>);

impl DescriptorTable {
    pub(super) fn descriptor_mut(&mut self, number: usize) -> Result<&mut Descriptor> {
        let slot = self.0.get_mut(number).and_then(Option::as_mut);
        slot.ok_or(Errno::BadFileDescriptor)
    }

    /// Stores an open file under the lowest free descriptor number, and returns the number.
    pub(super) fn install_descriptor(&mut self, descriptor: Descriptor) -> usize {
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

    pub(super) fn take_descriptor(&mut self, number: usize) -> Result<Descriptor> {
        let taken = self.0.get_mut(number).and_then(Option::take);
        taken.ok_or(Errno::BadFileDescriptor)
    }

    pub(super) fn take_all(&mut self) -> Vec<Descriptor> {
        std::mem::take(&mut self.0).into_iter().flatten().collect()
    }
}
