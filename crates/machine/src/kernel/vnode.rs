//! Dispatch of file operations to the file system of the running kernel, 4.2BSD or the seventh
//! edition.

use super::ffs::InodeKind;
use super::names::ResolvedPath;
use super::process::Process;
use super::{BlockKey, FfsView, FileSystemView, FileSystems, UnixKernel, Vnode};
use crate::calls::OpenFlags;
use crate::errno::{Errno, Result};
use crate::written::WriteData;
use std::rc::Rc;

/// Largest file offset on the seventh edition, where programs have a signed 32-bit offset.
const V7_FILE_OFFSET_MAX: u64 = i32::MAX as u64;

impl UnixKernel {
    /// Returns the number of volumes with a mounted file system.
    pub(crate) fn mounted_count(&self) -> usize {
        match &self.file_systems {
            FileSystems::SeventhEdition(v7) => v7.volume_count(),
            FileSystems::FastFileSystem(mounts) => mounts.borrow().len(),
        }
    }

    /// Returns the block size of a volume's file system in bytes.
    pub(super) fn block_bytes(&self, volume: u32) -> u64 {
        match self.file_system_view() {
            FileSystemView::SeventhEdition(_) => super::v7::BLOCK_BYTES as u64,
            FileSystemView::FastFileSystem(ffs) => {
                ffs.with_file_system(volume, |fs| u64::from(fs.superblock().block_bytes()))
            }
        }
    }

    /// Opens the object that a path names. An inode stays in core until `close_node`.
    pub(super) async fn open_path(
        &self,
        process: &Rc<Process>,
        path: &str,
        how: OpenFlags,
    ) -> Result<ResolvedPath> {
        match self.file_system_view() {
            FileSystemView::FastFileSystem(ffs) => ffs.open_resolved(process, path, how).await,
            FileSystemView::SeventhEdition(v7) => match self.find_device(path)? {
                Some(device) => Ok(device),
                None => v7
                    .open_path(process, path, how)
                    .await
                    .map(ResolvedPath::FileNode),
            },
        }
    }

    /// Releases the inode of a file that was opened.
    pub(super) async fn close_node(&self, process: &Rc<Process>, node: Vnode) {
        match self.file_system_view() {
            FileSystemView::SeventhEdition(v7) => v7.put_inode(process, node).await,
            FileSystemView::FastFileSystem(ffs) => ffs.drop_inode(process, node).await,
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
        if let FileSystemView::FastFileSystem(ffs) = &on
            && ffs.inode_kind(node) == InodeKind::Directory
        {
            return Err(Errno::IsDirectory);
        }
        self.lock_inode(process, node).await;
        let read = match &on {
            FileSystemView::SeventhEdition(v7) => v7.read_file_data(process, node, at).await,
            FileSystemView::FastFileSystem(ffs) => ffs.read_inode(process, node, at).await,
        };
        self.unlock_inode(node);
        read
    }

    /// Writes to an open file at an offset. Returns the number of bytes written, and the result of
    /// the system call.
    pub(super) async fn write_node(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        at: (u64, WriteData<'_>),
    ) -> (usize, Result<usize>) {
        self.lock_inode(process, node).await;
        let written = match self.file_system_view() {
            FileSystemView::SeventhEdition(v7) => {
                let (done, result) = v7.write_file_data(process, node, at).await;
                (done, result.map(|()| done))
            }
            FileSystemView::FastFileSystem(ffs) => {
                let written = ffs.write_inode(process, node, at).await;
                (written.unwrap_or(0), written)
            }
        };
        self.unlock_inode(node);
        written
    }

    /// Returns the length of an open file in bytes.
    pub(super) fn size_bytes(&self, node: Vnode) -> u64 {
        match self.file_system_view() {
            FileSystemView::SeventhEdition(v7) => {
                v7.with_inode(node, |inode| u64::from(inode.size_bytes))
            }
            FileSystemView::FastFileSystem(ffs) => {
                ffs.with_file_system(node.volume, |fs| fs.size_bytes(node.inode))
            }
        }
    }

    /// Returns the largest offset that a file on a volume can have, in bytes.
    pub(super) fn file_offset_max(&self, volume: u32) -> u64 {
        match self.file_system_view() {
            FileSystemView::SeventhEdition(_) => V7_FILE_OFFSET_MAX,
            FileSystemView::FastFileSystem(ffs) => {
                ffs.with_file_system(volume, |fs| fs.file_size_bytes_max())
            }
        }
    }

    /// Returns the cache keys of the blocks of a file's first `length` bytes, with `None` for a
    /// hole. The file must be in core.
    pub(super) fn cached_keys_of_file(&self, node: Vnode, length: u64) -> Vec<Option<BlockKey>> {
        let ffs = match self.file_system_view() {
            FileSystemView::SeventhEdition(v7) => return v7.block_keys(node, length),
            FileSystemView::FastFileSystem(ffs) => ffs,
        };
        let blocks = length.div_ceil(self.block_bytes(node.volume)) as u32;
        let key = |lbn| {
            let address = ffs.block_address(node, lbn);
            address.map(|address| ffs.block_key(node, address))
        };
        (0..blocks).map(key).collect()
    }
}

impl UnixKernel {
    /// Looks up a path and keeps a file that it names in core, until the caller calls `release_node`.
    pub(super) async fn resolve_and_pin(
        &self,
        process: &Rc<Process>,
        path: &str,
    ) -> Result<ResolvedPath> {
        match (self.file_system_view(), self.find_device(path)?) {
            (_, Some(device)) => Ok(device),
            (FileSystemView::SeventhEdition(v7), None) => v7
                .resolve_path(process, path)
                .await
                .map(ResolvedPath::FileNode),
            (FileSystemView::FastFileSystem(ffs), None) => {
                let found = ffs.resolve_path(process, path).await?;
                if let ResolvedPath::FileNode(node) = found {
                    ffs.pin_inode(node);
                }
                Ok(found)
            }
        }
    }

    /// Releases an inode that [`UnixKernel::resolve_and_pin`] has kept in core.
    pub(super) async fn release_node(&self, process: &Rc<Process>, node: Vnode) {
        match self.file_system_view() {
            FileSystemView::SeventhEdition(v7) => v7.put_inode(process, node).await,
            FileSystemView::FastFileSystem(ffs) => ffs.unpin_inode(process, node).await,
        }
    }

    /// Returns the length of the file that a path names. Reads the inode (`iget`) and releases it
    /// again.
    pub(super) async fn stat_path(&self, process: &Rc<Process>, path: &str) -> Result<u64> {
        let node = match (self.file_system_view(), self.find_device(path)?) {
            (_, Some(_)) => return Err(Errno::InvalidArgument),
            (FileSystemView::SeventhEdition(v7), None) => v7.resolve_path(process, path).await?,
            (FileSystemView::FastFileSystem(ffs), None) => match ffs
                .resolve_path(process, path)
                .await?
            {
                ResolvedPath::FileNode(node) => {
                    ffs.take_inode(process, node).await;
                    node
                }
                ResolvedPath::NullDevice | ResolvedPath::ZeroDevice | ResolvedPath::RawDrive(_) => {
                    return Err(Errno::InvalidArgument);
                }
            },
        };
        let length = self.size_bytes(node);
        self.close_node(process, node).await;
        Ok(length)
    }

    pub(super) async fn unlink_path(&self, process: &Rc<Process>, path: &str) -> Result<()> {
        match self.file_system_view() {
            FileSystemView::SeventhEdition(v7) => v7.unlink(process, path).await,
            FileSystemView::FastFileSystem(ffs) => ffs.unlink(process, path).await,
        }
    }

    pub(super) async fn mkdir_path(&self, process: &Rc<Process>, path: &str) -> Result<()> {
        match self.file_system_view() {
            FileSystemView::SeventhEdition(v7) => v7.mkdir(process, path).await,
            FileSystemView::FastFileSystem(ffs) => ffs.mkdir(process, path).await,
        }
    }

    pub(super) async fn rmdir_path(&self, process: &Rc<Process>, path: &str) -> Result<()> {
        match self.file_system_view() {
            FileSystemView::SeventhEdition(v7) => v7.rmdir(process, path).await,
            FileSystemView::FastFileSystem(ffs) => ffs.rmdir(process, path).await,
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
            FileSystemView::SeventhEdition(_) => Err(Errno::InvalidArgument),
            FileSystemView::FastFileSystem(ffs) => ffs.rename_path(process, from, to).await,
        }
    }
}

impl FfsView<'_> {
    /// Opens a file, open(2), creating or truncating it if requested.
    async fn open_resolved(
        &self,
        process: &Rc<Process>,
        path: &str,
        how: OpenFlags,
    ) -> Result<ResolvedPath> {
        let (found, made) = if how.create {
            self.create_file(process, path, how.create_exclusive)
                .await?
        } else {
            (self.resolve_path(process, path).await?, false)
        };
        // A file that was made has been taken, and is empty.
        if let (ResolvedPath::FileNode(node), false) = (found, made) {
            let directory = self.inode_kind(node) == InodeKind::Directory;
            if directory && (how.write || how.create) {
                return Err(Errno::IsDirectory);
            }
            self.take_inode(process, node).await;
            if how.truncate && !directory {
                self.lock_inode(process, node).await;
                self.truncate_inode(process, node, 0).await;
                self.unlock_inode(node);
            }
        }
        Ok(found)
    }
}
