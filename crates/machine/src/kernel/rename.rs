//! Renaming of files and directories in a 4.2BSD file system, rename(2).

use super::ffs::InodeKind;
use super::names::{UnixPathEnd, path_names, root_vnode};
use super::process::Process;
use super::{FfsView, Vnode};
use crate::errno::{Errno, Result};
use std::rc::Rc;

/// Resolved rename: the inode, and its old and new place.
struct RenameOperation<'a> {
    node: Vnode,
    is_directory: bool,
    source: UnixPathEnd<'a>,
    target: UnixPathEnd<'a>,
}

impl FfsView<'_> {
    /// Renames a file or directory, rename(2). Looks both names up again if another process has
    /// changed them meanwhile.
    pub(crate) async fn rename_path(
        &self,
        process: &Rc<Process>,
        from: &str,
        to: &str,
    ) -> Result<()> {
        for path in [from, to] {
            if matches!(path_names(path).last(), Some("." | "..")) {
                return Err(Errno::DeviceBusy);
            }
        }
        loop {
            let source = self.resolve_parent(process, from).await?;
            self.pin_inode(source.parent);
            let target = self.resolve_parent(process, to).await;
            let held = match &target {
                Ok(target) => {
                    self.lock_nodes(process, nodes_to_lock(&source, target))
                        .await
                }
                Err(_) => Vec::new(),
            };
            self.unpin_inode(process, source.parent).await;
            let target = target?;
            let renamed = self.rename_locked(process, source, target, to).await;
            self.unlock_nodes(process, held).await;
            if let Some(renamed) = renamed.transpose() {
                return renamed;
            }
        }
    }

    /// Renames while the directories are locked. Returns `None` if the names have changed since
    /// their look-up, so that the caller must start again.
    async fn rename_locked(
        &self,
        process: &Rc<Process>,
        source: UnixPathEnd<'_>,
        target: UnixPathEnd<'_>,
        to: &str,
    ) -> Result<Option<()>> {
        if source.parent.volume != target.parent.volume {
            return Err(Errno::CrossDevice);
        }
        let now = self.lookup_name(source.parent, source.name)?;
        if now != source.node || self.lookup_name(target.parent, target.name)? != target.node {
            return Ok(None);
        }
        let node = now.ok_or(Errno::NoSuchEntry)?;
        let directory = self.inode_kind(node) == InodeKind::Directory;
        if to.ends_with('/') && !directory {
            return Err(Errno::NotDirectory);
        }
        if target.node == Some(node) {
            return Ok(Some(()));
        }
        let change = RenameOperation {
            node,
            is_directory: directory,
            source,
            target,
        };
        self.check_rename(&change)?;
        self.take_inode(process, node).await;
        let moved = self.move_name(process, &change).await;
        self.drop_inode(process, node).await;
        moved.map(Some)
    }

    fn check_rename(&self, change: &RenameOperation<'_>) -> Result<()> {
        let ancestry = |of: Vnode| self.with_file_system(of.volume, |fs| fs.ancestors(of.inode));
        if change.is_directory && ancestry(change.target.parent).contains(&change.node.inode) {
            return Err(Errno::InvalidArgument);
        }
        let Some(old) = change.target.node else {
            return Ok(());
        };
        if ancestry(change.source.parent).contains(&old.inode) {
            return Err(Errno::NotEmpty);
        }
        match (
            change.is_directory,
            self.inode_kind(old) == InodeKind::Directory,
        ) {
            (true, false) => Err(Errno::NotDirectory),
            (false, true) => Err(Errno::IsDirectory),
            (true, true)
                if !self.with_file_system(old.volume, |fs| fs.directory_is_empty(old.inode)) =>
            {
                Err(Errno::NotEmpty)
            }
            _ => Ok(()),
        }
    }

    async fn move_name(&self, process: &Rc<Process>, change: &RenameOperation<'_>) -> Result<()> {
        let RenameOperation {
            node,
            is_directory: directory,
            source,
            target,
        } = change;
        match target.node {
            Some(old) => self.replace_name(process, *node, old, target).await,
            None => {
                let place = (target.parent, target.name);
                self.enter_name(process, place, node.inode).await?;
                if *directory {
                    let links = self.link_count(target.parent) + 1;
                    self.set_link_count(process, target.parent, links).await;
                }
            }
        }
        self.remove_name(process, (source.parent, source.name))
            .await;
        if *directory {
            let links = self.link_count(source.parent) - 1;
            self.set_link_count(process, source.parent, links).await;
            self.with_file_system_mut(node.volume, |fs| {
                fs.replace_entry(node.inode, "..", target.parent.inode)
            });
            self.write_directory(process, *node, 0).await;
        }
        Ok(())
    }

    /// Makes the directory entry of `old` refer to `node`. If both are directories, the link count
    /// of the parent stays: the `..` of the new directory replaces the `..` of the old one.
    async fn replace_name(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        old: Vnode,
        target: &UnixPathEnd<'_>,
    ) {
        let directory = self.inode_kind(old) == InodeKind::Directory;
        self.take_inode(process, old).await;
        let place = self.with_file_system_mut(node.volume, |fs| {
            fs.replace_entry(target.parent.inode, target.name, node.inode)
        });
        let place = place.expect("the name was looked up");
        self.write_directory(process, target.parent, place.offset_bytes)
            .await;
        let links = if directory {
            0
        } else {
            self.link_count(old) - 1
        };
        self.with_file_system_mut(old.volume, |fs| fs.set_link_count(old.inode, links));
        self.with_core_inode(old, |core| core.is_modified = true);
        self.drop_inode(process, old).await;
    }
}

/// Returns the inodes that a rename must lock: both parent directories, and the file or directory
/// that it replaces. A move between directories also locks the root, so that no two moves put
/// directories into each other.
fn nodes_to_lock(source: &UnixPathEnd<'_>, target: &UnixPathEnd<'_>) -> Vec<Vnode> {
    let mut parties = vec![source.parent, target.parent];
    if source.parent != target.parent {
        parties.extend([
            root_vnode(source.parent.volume),
            root_vnode(target.parent.volume),
        ]);
    }
    if let Some(old) = target.node {
        parties.push(old);
    }
    parties
}
