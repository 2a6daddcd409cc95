//! Where the kernel's two file systems part: what system calls ask of a file,
//! whichever of them it is on.

use super::errno::{Errno, Result};
use super::ffs::InodeKind;
use super::files::How;
use super::names::Found;
use super::process::Process;
use super::{BlockKey, Kernel, Vnode};
use crate::written::Written;
use std::rc::Rc;

/// The largest offset on the seventh edition: programs have 32 bits for it,
/// and a sign.
const V7_MOST_OFFSET: u64 = i32::MAX as u64;

/// Files.
impl Kernel {
    /// How many volumes have file systems.
    pub(crate) fn mounted(&self) -> usize {
        match &self.v7 {
            Some(v7) => v7.volumes(),
            None => self.mounts.borrow().len(),
        }
    }

    /// Bytes of a block of a volume.
    pub(super) fn block_bytes(&self, volume: u32) -> u64 {
        match &self.v7 {
            Some(_) => super::v7::BLOCK_BYTES as u64,
            None => self.fs(volume, |fs| u64::from(fs.superblock().block_bytes())),
        }
    }

    /// What a path leads to, opened so; a file is taken.
    pub(super) async fn open_path(
        &self,
        process: &Rc<Process>,
        path: &str,
        how: How,
    ) -> Result<Found> {
        if self.v7.is_none() {
            return self.open_on_ffs(process, path, how).await;
        }
        match self.device(path)? {
            Some(device) => Ok(device),
            None => self.v7_open(process, path, how).await.map(Found::Node),
        }
    }

    async fn open_on_ffs(&self, process: &Rc<Process>, path: &str, how: How) -> Result<Found> {
        let (found, made) = if how.create {
            self.create(process, path, how.exclusive).await?
        } else {
            (self.find(process, path).await?, false)
        };
        // A file that was made has been taken, and is empty.
        if let (Found::Node(node), false) = (found, made) {
            let directory = self.kind(node) == InodeKind::Directory;
            if directory && (how.write || how.create) {
                return Err(Errno::IsDirectory);
            }
            self.take_inode(process, node).await;
            if how.truncate && !directory {
                self.lock(process, node).await;
                self.truncate(process, node, 0).await;
                self.unlock(node);
            }
        }
        Ok(found)
    }

    /// A file that was opened is closed.
    pub(super) async fn close_node(&self, process: &Rc<Process>, node: Vnode) {
        match self.v7 {
            Some(_) => self.v7_put(process, node).await,
            None => self.drop_inode(process, node).await,
        }
    }

    /// Reads from an offset of an open file; how much there was.
    pub(super) async fn read_node(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        at: (u64, &mut [u8]),
    ) -> Result<usize> {
        if self.v7.is_none() && self.kind(node) == InodeKind::Directory {
            return Err(Errno::IsDirectory);
        }
        self.lock(process, node).await;
        let read = match self.v7 {
            Some(_) => self.v7_read(process, node, at).await,
            None => self.read_inode(process, node, at).await,
        };
        self.unlock(node);
        read
    }

    /// Writes at an offset of an open file; how much was written, and what the
    /// call says.
    pub(super) async fn write_node(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        at: (u64, Written<'_>),
    ) -> (usize, Result<usize>) {
        self.lock(process, node).await;
        let written = match self.v7 {
            Some(_) => {
                let (done, result) = self.v7_write(process, node, at).await;
                (done, result.map(|()| done))
            }
            None => {
                let written = self.write_inode(process, node, at).await;
                (written.unwrap_or(0), written)
            }
        };
        self.unlock(node);
        written
    }

    /// The length of an open file.
    pub(super) fn size_bytes(&self, node: Vnode) -> u64 {
        match self.v7 {
            Some(_) => self.v7_inode(node, |inode| u64::from(inode.size)),
            None => self.fs(node.volume, |fs| fs.size_bytes(node.inode)),
        }
    }

    /// The largest offset of a file.
    pub(super) fn most_offset(&self, volume: u32) -> u64 {
        match self.v7 {
            Some(_) => V7_MOST_OFFSET,
            None => self.fs(volume, |fs| fs.max_size_bytes()),
        }
    }

    /// Blocks of the first `length` bytes of a file that is taken, none where
    /// there is a hole.
    pub(super) fn blocks_of(&self, node: Vnode, length: u64) -> Vec<Option<BlockKey>> {
        if self.v7.is_some() {
            return self.v7_blocks(node, length);
        }
        let blocks = length.div_ceil(self.block_bytes(node.volume)) as u32;
        let key = |lbn| {
            let address = self.block_address(node, lbn);
            address.map(|address| self.key(node, address))
        };
        (0..blocks).map(key).collect()
    }
}

/// Names.
impl Kernel {
    /// What a path leads to; a file is there until it is left.
    pub(super) async fn reach(&self, process: &Rc<Process>, path: &str) -> Result<Found> {
        if self.v7.is_some() {
            return match self.device(path)? {
                Some(device) => Ok(device),
                None => self.v7_find(process, path).await.map(Found::Node),
            };
        }
        let found = self.find(process, path).await?;
        if let Found::Node(node) = found {
            self.pin(node);
        }
        Ok(found)
    }

    /// Ends [`Kernel::reach`].
    pub(super) async fn leave(&self, process: &Rc<Process>, node: Vnode) {
        match self.v7 {
            Some(_) => self.v7_put(process, node).await,
            None => self.unpin(process, node).await,
        }
    }

    pub(super) async fn unlink_path(&self, process: &Rc<Process>, path: &str) -> Result<()> {
        match self.v7 {
            Some(_) => self.v7_unlink(process, path).await,
            None => self.unlink(process, path).await,
        }
    }

    pub(super) async fn mkdir_path(&self, process: &Rc<Process>, path: &str) -> Result<()> {
        match self.v7 {
            Some(_) => self.v7_mkdir(process, path).await,
            None => self.mkdir(process, path).await,
        }
    }

    pub(super) async fn rmdir_path(&self, process: &Rc<Process>, path: &str) -> Result<()> {
        match self.v7 {
            Some(_) => self.v7_rmdir(process, path).await,
            None => self.rmdir(process, path).await,
        }
    }

    /// The seventh edition has no such call.
    pub(super) async fn rename_path(
        &self,
        process: &Rc<Process>,
        from: &str,
        to: &str,
    ) -> Result<()> {
        match self.v7 {
            Some(_) => Err(Errno::Invalid),
            None => self.rename(process, from, to).await,
        }
    }
}
