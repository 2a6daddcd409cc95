//! Renaming of files and directories by the Minix file server, rename(2), as in its `link.c`.

use super::blocks::ServerCall;
use super::inodes::DriveInode;
use super::layout::MinixInodeKind;
use super::names::{LINK_COUNT_MAX, MinixPathEnd, is_self_or_parent};
use crate::errno::{Errno, Result};

impl ServerCall<'_> {
    pub(super) async fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (old_parent, old) = self.resolve_parent(from).await?;
        let renamed = match old {
            None => Err(Errno::DeviceBusy),
            Some(old) => self.rename_to(&old, to).await,
        };
        self.put_inode(old_parent).await?;
        renamed
    }

    async fn rename_to(&self, old: &MinixPathEnd, to: &str) -> Result<()> {
        let node = self.look_up_name(old.parent, &old.name).await?;
        // Both directories are looked at before it matters that the old name
        // is not there.
        let renamed = match (self.resolve_parent(to).await, node) {
            (Err(errno), _) => Err(errno),
            (Ok((new_parent, new)), node) => {
                let renamed = match (new, node) {
                    (_, None) => Err(Errno::NoSuchEntry),
                    (None, Some(_)) => Err(Errno::DeviceBusy),
                    (Some(new), Some(node)) => self.rename_node(node, old, &new).await,
                };
                self.put_inode(new_parent).await?;
                renamed
            }
        };
        if let Some(node) = node {
            self.put_inode(node).await?;
        }
        renamed
    }

    async fn rename_node(
        &self,
        node: DriveInode,
        old: &MinixPathEnd,
        new: &MinixPathEnd,
    ) -> Result<()> {
        if old.parent.0 != new.parent.0 {
            return Err(Errno::CrossDevice);
        }
        if is_self_or_parent(&old.name) || is_self_or_parent(&new.name) {
            return Err(Errno::InvalidArgument);
        }
        let directory = self.inode_kind(node) == MinixInodeKind::Directory;
        if directory && self.is_directory_below(new.parent, node).await? {
            return Err(Errno::InvalidArgument);
        }
        if let Some(replaced) = self.look_up_name(new.parent, &new.name).await? {
            let removed = self.replace_name((node, replaced), new).await;
            self.put_inode(replaced).await?;
            if !removed? {
                return Ok(());
            }
        } else if directory
            && old.parent != new.parent
            && self.with_inode(new.parent, |inode| inode.link_count) >= LINK_COUNT_MAX
        {
            return Err(Errno::TooManyLinks);
        }
        self.move_name(node, old, new).await
    }

    /// Removes the file or empty directory that has the new name. Returns `false` if both names
    /// refer to the same inode.
    async fn replace_name(
        &self,
        (node, replaced): (DriveInode, DriveInode),
        new: &MinixPathEnd,
    ) -> Result<bool> {
        if replaced == node {
            return Ok(false);
        }
        match (self.inode_kind(node), self.inode_kind(replaced)) {
            (MinixInodeKind::Directory, MinixInodeKind::File) => Err(Errno::NotDirectory),
            (MinixInodeKind::File, MinixInodeKind::Directory) => Err(Errno::IsDirectory),
            (MinixInodeKind::Directory, MinixInodeKind::Directory) => {
                self.remove_dir(new, replaced).await.map(|()| true)
            }
            (MinixInodeKind::File, MinixInodeKind::File) => {
                self.unlink_file(new, replaced).await.map(|()| true)
            }
        }
    }

    async fn move_name(
        &self,
        node: DriveInode,
        old: &MinixPathEnd,
        new: &MinixPathEnd,
    ) -> Result<()> {
        // In one directory the old entry goes first: its place is then the
        // new one's, and nothing can fail.
        if old.parent == new.parent {
            self.erase_entry(old.parent, &old.name).await?;
            return self.enter_name(new.parent, &new.name, node.1).await;
        }
        self.enter_name(new.parent, &new.name, node.1).await?;
        self.erase_entry(old.parent, &old.name).await?;
        if self.inode_kind(node) == MinixInodeKind::Directory {
            self.set_parent_entry(node, new.parent).await?;
            self.with_inode_mut(old.parent, |inode| inode.link_count -= 1);
            self.with_inode_mut(new.parent, |inode| inode.link_count += 1);
        }
        Ok(())
    }
}
