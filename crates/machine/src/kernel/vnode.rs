//! Dispatch of file operations to the file system of the running kernel, 4.2BSD or the seventh
//! edition.

use super::ffs::InodeKind;
use super::names::ResolvedPath;
use super::process::Process;
use super::{BlockKey, FfsView, FileSystemView, FileSystems, Unix, Vnode};
use crate::calls::How;
use crate::errno::{Errno, Result};
use crate::written::Written;
use std::rc::Rc;

/// Largest file offset on the seventh edition, where programs have a signed 32-bit offset.
const V7_MOST_OFFSET: u64 = i32::MAX as u64;

impl Unix {
    /// Returns the number of volumes with a mounted file system.
    pub(crate) fn mounted_count(&self) -> usize {
        match &self.file_systems {
            FileSystems::V7(v7) => v7.volumes(),
            FileSystems::Ffs(mounts) => mounts.borrow().len(),
        }
    }

    /// Returns the block size of a volume's file system in bytes.
    pub(super) fn block_bytes(&self, volume: u32) -> u64 {
        match self.file_system_view() {
            FileSystemView::V7(_) => super::v7::BLOCK_BYTES as u64,
            FileSystemView::Ffs(ffs) => {
                ffs.with_fs(volume, |fs| u64::from(fs.superblock().block_bytes()))
            }
        }
    }

    /// Opens the object that a path names. An inode stays in core until `close_node`.
    pub(super) async fn open_path(
        &self,
        process: &Rc<Process>,
        path: &str,
        how: How,
    ) -> Result<ResolvedPath> {
        match self.file_system_view() {
            FileSystemView::Ffs(ffs) => ffs.open_resolved(process, path, how).await,
            FileSystemView::V7(v7) => match self.find_device(path)? {
                Some(device) => Ok(device),
                None => v7.open(process, path, how).await.map(ResolvedPath::Node),
            },
        }
    }

    /// Releases the inode of a file that was opened.
    pub(super) async fn close_node(&self, process: &Rc<Process>, node: Vnode) {
        match self.file_system_view() {
            FileSystemView::V7(v7) => v7.put_inode(process, node).await,
            FileSystemView::Ffs(ffs) => ffs.drop_inode(process, node).await,
        }
    }

    /// Reads from an open file at an offset and returns the number of bytes read.
    pub(super) async fn read_node(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        at: (u64, &mut [u8]),
    ) -> Result<usize> {
        let on = self.file_system_view();
        if let FileSystemView::Ffs(ffs) = &on
            && ffs.kind(node) == InodeKind::Directory
        {
            return Err(Errno::IsDirectory);
        }
        self.lock(process, node).await;
        let read = match &on {
            FileSystemView::V7(v7) => v7.read(process, node, at).await,
            FileSystemView::Ffs(ffs) => ffs.read_inode(process, node, at).await,
        };
        self.unlock(node);
        read
    }

    /// Writes to an open file at an offset. Returns the number of bytes written, and the result of
    /// the system call.
    pub(super) async fn write_node(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        at: (u64, Written<'_>),
    ) -> (usize, Result<usize>) {
        self.lock(process, node).await;
        let written = match self.file_system_view() {
            FileSystemView::V7(v7) => {
                let (done, result) = v7.write(process, node, at).await;
                (done, result.map(|()| done))
            }
            FileSystemView::Ffs(ffs) => {
                let written = ffs.write_inode(process, node, at).await;
                (written.unwrap_or(0), written)
            }
        };
        self.unlock(node);
        written
    }

    /// Returns the length of an open file in bytes.
    pub(super) fn size_bytes(&self, node: Vnode) -> u64 {
        match self.file_system_view() {
            FileSystemView::V7(v7) => v7.with_inode(node, |inode| u64::from(inode.size_bytes)),
            FileSystemView::Ffs(ffs) => ffs.with_fs(node.volume, |fs| fs.size_bytes(node.inode)),
        }
    }

    /// Returns the largest offset that a file on a volume can have, in bytes.
    pub(super) fn file_offset_max(&self, volume: u32) -> u64 {
        match self.file_system_view() {
            FileSystemView::V7(_) => V7_MOST_OFFSET,
            FileSystemView::Ffs(ffs) => ffs.with_fs(volume, |fs| fs.max_size_bytes()),
        }
    }

    /// Returns the cache keys of the blocks of a file's first `length` bytes, with `None` for a
    /// hole. The file must be in core.
    pub(super) fn cached_keys_of_file(&self, node: Vnode, length: u64) -> Vec<Option<BlockKey>> {
        let ffs = match self.file_system_view() {
            FileSystemView::V7(v7) => return v7.blocks(node, length),
            FileSystemView::Ffs(ffs) => ffs,
        };
        let blocks = length.div_ceil(self.block_bytes(node.volume)) as u32;
        let key = |lbn| {
            let address = ffs.block_address(node, lbn);
            address.map(|address| ffs.block_key(node, address))
        };
        (0..blocks).map(key).collect()
    }
}

impl Unix {
    /// Looks up a path and keeps a file that it names in core, until the caller calls `release_node`.
    pub(super) async fn resolve_and_pin(
        &self,
        process: &Rc<Process>,
        path: &str,
    ) -> Result<ResolvedPath> {
        match (self.file_system_view(), self.find_device(path)?) {
            (_, Some(device)) => Ok(device),
            (FileSystemView::V7(v7), None) => {
                v7.resolve_path(process, path).await.map(ResolvedPath::Node)
            }
            (FileSystemView::Ffs(ffs), None) => {
                let found = ffs.resolve_path(process, path).await?;
                if let ResolvedPath::Node(node) = found {
                    ffs.pin(node);
                }
                Ok(found)
            }
        }
    }

    /// Releases an inode that [`Unix::resolve_and_pin`] has kept in core.
    pub(super) async fn release_node(&self, process: &Rc<Process>, node: Vnode) {
        match self.file_system_view() {
            FileSystemView::V7(v7) => v7.put_inode(process, node).await,
            FileSystemView::Ffs(ffs) => ffs.unpin(process, node).await,
        }
    }

    /// Returns the length of the file that a path names. Reads the inode (`iget`) and releases it
    /// again.
    pub(super) async fn stat_path(&self, process: &Rc<Process>, path: &str) -> Result<u64> {
        let node = match (self.file_system_view(), self.find_device(path)?) {
            (_, Some(_)) => return Err(Errno::Invalid),
            (FileSystemView::V7(v7), None) => v7.resolve_path(process, path).await?,
            (FileSystemView::Ffs(ffs), None) => match ffs.resolve_path(process, path).await? {
                ResolvedPath::Node(node) => {
                    ffs.take_inode(process, node).await;
                    node
                }
                ResolvedPath::Null | ResolvedPath::Zero | ResolvedPath::Drive(_) => {
                    return Err(Errno::Invalid);
                }
            },
        };
        let length = self.size_bytes(node);
        self.close_node(process, node).await;
        Ok(length)
    }

    pub(super) async fn unlink_path(&self, process: &Rc<Process>, path: &str) -> Result<()> {
        match self.file_system_view() {
            FileSystemView::V7(v7) => v7.unlink(process, path).await,
            FileSystemView::Ffs(ffs) => ffs.unlink(process, path).await,
        }
    }

    pub(super) async fn mkdir_path(&self, process: &Rc<Process>, path: &str) -> Result<()> {
        match self.file_system_view() {
            FileSystemView::V7(v7) => v7.mkdir(process, path).await,
            FileSystemView::Ffs(ffs) => ffs.mkdir(process, path).await,
        }
    }

    pub(super) async fn rmdir_path(&self, process: &Rc<Process>, path: &str) -> Result<()> {
        match self.file_system_view() {
            FileSystemView::V7(v7) => v7.rmdir(process, path).await,
            FileSystemView::Ffs(ffs) => ffs.rmdir(process, path).await,
        }
    }

    /// Renames a file or directory. Fails with `Invalid` on the seventh edition, which has no such
    /// call.
    pub(super) async fn rename_path(
        &self,
        process: &Rc<Process>,
        from: &str,
        to: &str,
    ) -> Result<()> {
        match self.file_system_view() {
            FileSystemView::V7(_) => Err(Errno::Invalid),
            FileSystemView::Ffs(ffs) => ffs.rename(process, from, to).await,
        }
    }
}

impl FfsView<'_> {
    /// Opens a file, open(2), creating or truncating it if requested.
    async fn open_resolved(
        &self,
        process: &Rc<Process>,
        path: &str,
        how: How,
    ) -> Result<ResolvedPath> {
        let (found, made) = if how.create {
            self.create(process, path, how.exclusive).await?
        } else {
            (self.resolve_path(process, path).await?, false)
        };
        // A file that was made has been taken, and is empty.
        if let (ResolvedPath::Node(node), false) = (found, made) {
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
}
