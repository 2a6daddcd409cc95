//! System calls that change the owner, mode or times of a file.
//!
//! All processes on these computers run as the super-user, and no call reads a mode or a time. The
//! kernel therefore records only that the inode has changed.

use super::files::UnixSession;
use super::inode_io::WriteTiming;
use super::names::ResolvedPath;
use super::process::Process;
use super::{FfsView, FileSystemView, Vnode};
use crate::errno::{Errno, Result};
use std::rc::Rc;

impl UnixSession {
    /// Changes the owner or mode of an open file: fchown(2) and fchmod(2). Fails with `Invalid` on
    /// the seventh edition, which has no such calls.
    pub async fn change_open_attributes(&mut self, number: usize) -> Result<()> {
        self.enter_kernel().await;
        let node = self.vnode_of_file(number);
        let result = match (self.kernel.file_system_view(), node) {
            // It has no such calls.
            (FileSystemView::SeventhEdition(_), _) => Err(Errno::InvalidArgument),
            (FileSystemView::FastFileSystem(ffs), Ok(node)) => {
                ffs.change_attributes(&self.process, node).await;
                Ok(())
            }
            (FileSystemView::FastFileSystem(_), Err(errno)) => Err(errno),
        };
        self.leave_kernel(result).await
    }

    /// Changes the owner, mode or times of a file by its path: chown(2), chmod(2) and utimes(2).
    /// Fails with `Invalid` for a device.
    pub async fn change_attributes(&mut self, path: &str) -> Result<()> {
        self.enter_kernel().await;
        let result = self.change_named_attributes(path).await;
        self.leave_kernel(result).await
    }

    async fn change_named_attributes(&self, path: &str) -> Result<()> {
        let (kernel, process) = (&self.kernel, &self.process);
        if kernel.find_device(path)?.is_some() {
            return Err(Errno::InvalidArgument);
        }
        let ffs = match kernel.file_system_view() {
            FileSystemView::SeventhEdition(v7) => return v7.change_attributes(process, path).await,
            FileSystemView::FastFileSystem(ffs) => ffs,
        };
        let ResolvedPath::FileNode(node) = ffs.resolve_path(process, path).await? else {
            return Err(Errno::InvalidArgument);
        };
        ffs.take_inode(process, node).await;
        ffs.change_attributes(process, node).await;
        ffs.drop_inode(process, node).await;
        Ok(())
    }
}

impl FfsView<'_> {
    /// Marks an inode as changed. Writes it before returning only if the kernel changes attributes
    /// synchronously. Otherwise the write follows when the last user drops the inode, or with the
    /// next round of update.
    async fn change_attributes(&self, process: &Rc<Process>, node: Vnode) {
        self.lock_inode(process, node).await;
        self.with_core_inode(node, |core| core.is_modified = true);
        if self.costs.writes_attributes_synchronously {
            self.write_inode_block(process, node, WriteTiming::Synchronous)
                .await;
        }
        self.unlock_inode(node);
    }
}
