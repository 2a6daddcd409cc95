//! Look-up, creation, removal and locking of names in a 4.2BSD file system.
//!
//! A directory may change while a process sleeps. A process that changes names therefore holds
//! their directories (`FfsView::lock_nodes`) and looks the names up again before it acts.

use super::ffs::{FastFileSystem, InodeKind, NAME_BYTES_MAX, NameError};
use super::inode_io::WriteTiming;
use super::process::{ExecutionContext, Process};
use super::{FfsView, UnixKernel, Vnode};
use crate::errno::{Errno, Result};
use diskperf_timeline::Stage;
use std::rc::Rc;

/// Object that a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolvedPath {
    /// File or directory of a file system.
    FileNode(Vnode),
    /// Device that discards writes, `/dev/null`.
    NullDevice,
    /// Device that reads as zeroes, `/dev/zero`.
    ZeroDevice,
    /// Raw drive with its index, such as `/dev/drive0`.
    RawDrive(u32),
}

/// Last component of a path: its parent directory, its name, and the inode that the name had at
/// look-up.
pub(super) struct UnixPathEnd<'a> {
    pub(super) parent: Vnode,
    pub(super) name: &'a str,
    pub(super) node: Option<Vnode>,
}

/// Returns the error number for a name that cannot be added to a directory.
pub(crate) fn errno_of_name_error(error: NameError) -> Errno {
    match error {
        NameError::EmptyName => Errno::NoSuchEntry,
        NameError::NameTooLong => Errno::NameTooLong,
        NameError::InvalidCharacter => Errno::InvalidArgument,
        NameError::NameExists => Errno::AlreadyExists,
    }
}

/// Maximum link count of an inode, as on every UNIX system of the time.
const LINK_COUNT_MAX: u32 = 32_767;

impl UnixKernel {
    /// Returns the device that a path names, or `None` if the path is not a device's. Fails with
    /// `NoEntry` for a drive that does not exist.
    pub(super) fn find_device(&self, path: &str) -> Result<Option<ResolvedPath>> {
        match path {
            "/dev/null" => return Ok(Some(ResolvedPath::NullDevice)),
            "/dev/zero" => return Ok(Some(ResolvedPath::ZeroDevice)),
            _ => {}
        }
        let Some(number) = path.strip_prefix("/dev/drive") else {
            return Ok(None);
        };
        let volume: u32 = number.parse().map_err(|_| Errno::NoSuchEntry)?;
        let known = (volume as usize) < self.volumes.volume_count();
        let drive = known.then_some(ResolvedPath::RawDrive(volume));
        drive.ok_or(Errno::NoSuchEntry).map(Some)
    }

    /// Splits a path into the root directory of its file system and the rest of the path. Fails
    /// with `NoEntry` if the volume is not mounted.
    pub(super) fn split_mount_point<'a>(&self, path: &'a str) -> Result<(Vnode, &'a str)> {
        let rest = path.strip_prefix("/mnt").ok_or(Errno::NoSuchEntry)?;
        let end = rest.find('/').unwrap_or(rest.len());
        let volume: u32 = rest[..end].parse().map_err(|_| Errno::NoSuchEntry)?;
        if volume as usize >= self.mounted_count() {
            return Err(Errno::NoSuchEntry);
        }
        Ok((root_vnode(volume), &rest[end..]))
    }
}

impl FfsView<'_> {
    /// Looks up a path and returns its object. Another process may remove the object as soon as
    /// this process sleeps.
    pub(crate) async fn resolve_path(
        &self,
        process: &Rc<Process>,
        path: &str,
    ) -> Result<ResolvedPath> {
        if let Some(device) = self.find_device(path)? {
            return Ok(device);
        }
        let (root, rest) = self.split_mount_point(path)?;
        if path_names(rest).next().is_none() {
            return Ok(ResolvedPath::FileNode(root));
        }
        let last = self.resolve_parent(process, path).await?;
        last.node
            .map(ResolvedPath::FileNode)
            .ok_or(Errno::NoSuchEntry)
    }

    /// Walks a path to the parent directory of its last name (`namei`).
    pub(super) async fn resolve_parent<'a>(
        &self,
        process: &Rc<Process>,
        path: &'a str,
    ) -> Result<UnixPathEnd<'a>> {
        let (root, rest) = self.split_mount_point(path)?;
        let mut parent = root;
        let mut names = path_names(rest).peekable();
        loop {
            let name = names.next().ok_or(Errno::DeviceBusy)?;
            if self.inode_kind(parent) != InodeKind::Directory {
                return Err(Errno::NotDirectory);
            }
            if name.len() > NAME_BYTES_MAX {
                return Err(Errno::NameTooLong);
            }
            let node = self.look_up_in_directory(process, parent, name).await?;
            if names.peek().is_none() {
                let file = node.is_some_and(|node| self.inode_kind(node) == InodeKind::RegularFile);
                if path.ends_with('/') && file {
                    return Err(Errno::NotDirectory);
                }
                return Ok(UnixPathEnd { parent, name, node });
            }
            parent = node.ok_or(Errno::NoSuchEntry)?;
        }
    }

    async fn look_up_in_directory(
        &self,
        process: &Rc<Process>,
        parent: Vnode,
        name: &str,
    ) -> Result<Option<Vnode>> {
        self.pin_inode(parent);
        self.spend_processor_time(
            ExecutionContext::InProcess(process),
            Stage::SystemCall,
            self.costs.name_lookup_time,
        )
        .await;
        let (place, size) = self.with_file_system(parent.volume, |fs| {
            (
                fs.lookup_entry(parent.inode, name),
                fs.size_bytes(parent.inode),
            )
        });
        let to = place.map_or(size, |place| place.offset_bytes);
        self.scan_directory(process, parent, to).await;
        // Somebody may have changed the directory while this process slept.
        let node = self.lookup_name(parent, name);
        self.unpin_inode(process, parent).await;
        node
    }

    /// Returns the inode that a name in a directory refers to now, without any delay. Fails with
    /// `NoEntry` if the directory itself was removed.
    pub(super) fn lookup_name(&self, parent: Vnode, name: &str) -> Result<Option<Vnode>> {
        if self.link_count(parent) == 0 {
            return Err(Errno::NoSuchEntry);
        }
        let place = self.with_file_system(parent.volume, |fs| fs.lookup_entry(parent.inode, name));
        Ok(place.map(|place| Vnode {
            volume: parent.volume,
            inode: place.inode,
        }))
    }

    pub(crate) fn inode_kind(&self, node: Vnode) -> InodeKind {
        self.with_file_system(node.volume, |fs| fs.inode_kind(node.inode))
    }

    pub(super) fn link_count(&self, node: Vnode) -> u32 {
        self.with_file_system(node.volume, |fs| fs.link_count(node.inode))
    }

    pub(super) async fn set_link_count(&self, process: &Rc<Process>, node: Vnode, links: u32) {
        self.with_file_system_mut(node.volume, |fs| fs.set_link_count(node.inode, links));
        self.write_inode_block(process, node, WriteTiming::Synchronous)
            .await;
    }
}

impl FfsView<'_> {
    /// Locks directories against other processes. Every process locks several directories in the
    /// same order, so that no two wait for each other.
    pub(super) async fn lock_nodes(
        &self,
        process: &Rc<Process>,
        mut nodes: Vec<Vnode>,
    ) -> Vec<Vnode> {
        nodes.sort_unstable_by_key(|node| (node.volume, node.inode));
        nodes.dedup();
        for node in &nodes {
            self.pin_inode(*node);
        }
        for node in &nodes {
            self.lock_inode(process, *node).await;
        }
        nodes
    }

    pub(super) async fn unlock_nodes(&self, process: &Rc<Process>, held: Vec<Vnode>) {
        for node in &held {
            self.unlock_inode(*node);
        }
        for node in held {
            self.unpin_inode(process, node).await;
        }
    }
}

impl FfsView<'_> {
    /// Creates an empty file, or finds the existing one. The flag is `true` for a new file, which
    /// the caller then holds as after [`FfsView::take_inode`].
    pub(crate) async fn create_file(
        &self,
        process: &Rc<Process>,
        path: &str,
        exclusive: bool,
    ) -> Result<(ResolvedPath, bool)> {
        if matches!(path, "/dev/null" | "/dev/zero") {
            return self
                .resolve_path(process, path)
                .await
                .map(|found| (found, false));
        }
        loop {
            let last = match self.resolve_parent(process, path).await {
                // The root of a file system is there, and is a directory.
                Err(Errno::DeviceBusy) => return Err(Errno::IsDirectory),
                last => last?,
            };
            match last.node {
                Some(_) if exclusive => return Err(Errno::AlreadyExists),
                Some(node) => return Ok((ResolvedPath::FileNode(node), false)),
                None if path.ends_with('/') => return Err(Errno::IsDirectory),
                None => {}
            }
            let held = self.lock_nodes(process, vec![last.parent]).await;
            let made = match self.lookup_name(last.parent, last.name) {
                Ok(None) => Some(self.make_file(process, &last).await),
                // Somebody else made it.
                Ok(Some(_)) => None,
                Err(errno) => Some(Err(errno)),
            };
            self.unlock_nodes(process, held).await;
            if let Some(made) = made {
                return made.map(|node| (ResolvedPath::FileNode(node), true));
            }
        }
    }

    async fn make_file(&self, process: &Rc<Process>, last: &UnixPathEnd<'_>) -> Result<Vnode> {
        let parent = (last.parent, last.name);
        let node = self
            .make_inode(process, last.parent, InodeKind::RegularFile)
            .await?;
        if let Err(errno) = self.enter_name(process, parent, node.inode).await {
            self.with_file_system_mut(node.volume, |fs| fs.set_link_count(node.inode, 0));
            self.drop_inode(process, node).await;
            return Err(errno);
        }
        Ok(node)
    }

    /// Makes a directory, mkdir(2).
    pub(crate) async fn mkdir(&self, process: &Rc<Process>, path: &str) -> Result<()> {
        let last = match self.resolve_parent(process, path).await {
            Err(Errno::DeviceBusy) => return Err(Errno::AlreadyExists),
            last => last?,
        };
        if last.node.is_some() {
            return Err(Errno::AlreadyExists);
        }
        let held = self.lock_nodes(process, vec![last.parent]).await;
        let made = match self.lookup_name(last.parent, last.name) {
            Ok(None) if self.link_count(last.parent) >= LINK_COUNT_MAX => Err(Errno::TooManyLinks),
            Ok(None) => self.make_directory(process, &last).await,
            Ok(Some(_)) => Err(Errno::AlreadyExists),
            Err(errno) => Err(errno),
        };
        self.unlock_nodes(process, held).await;
        made
    }

    async fn make_directory(&self, process: &Rc<Process>, last: &UnixPathEnd<'_>) -> Result<()> {
        let parent = last.parent;
        let node = self
            .make_inode(process, parent, InodeKind::Directory)
            .await?;
        let chunk = super::ffs::DIRECTORY_CHUNK_BYTES;
        let mapped = self.map_for_writing(process, node, (0, chunk)).await;
        let entered = match mapped {
            Ok(_) => {
                self.with_file_system_mut(node.volume, |fs| {
                    fs.init_directory(node.inode, parent.inode);
                    fs.set_link_count(node.inode, 2);
                });
                self.write_directory(process, node, 0).await;
                self.set_link_count(process, parent, self.link_count(parent) + 1)
                    .await;
                let entered = self
                    .enter_name(process, (parent, last.name), node.inode)
                    .await;
                if entered.is_err() {
                    self.set_link_count(process, parent, self.link_count(parent) - 1)
                        .await;
                }
                entered
            }
            Err(errno) => Err(errno),
        };
        if entered.is_err() {
            self.with_file_system_mut(node.volume, |fs| fs.set_link_count(node.inode, 0));
        }
        self.with_core_inode(node, |core| core.is_modified = true);
        self.drop_inode(process, node).await;
        entered
    }
}

impl FfsView<'_> {
    /// Removes a name of a file, unlink(2). Fails with `IsDirectory` for a directory.
    pub(crate) async fn unlink(&self, process: &Rc<Process>, path: &str) -> Result<()> {
        let last = match self.resolve_parent(process, path).await {
            Err(Errno::DeviceBusy) => return Err(Errno::IsDirectory),
            last => last?,
        };
        if last.node.is_none() {
            return Err(Errno::NoSuchEntry);
        }
        let held = self.lock_nodes(process, vec![last.parent]).await;
        let unlinked = self.unlink_locked(process, &last).await;
        self.unlock_nodes(process, held).await;
        unlinked
    }

    async fn unlink_locked(&self, process: &Rc<Process>, last: &UnixPathEnd<'_>) -> Result<()> {
        let node = self
            .lookup_name(last.parent, last.name)?
            .ok_or(Errno::NoSuchEntry)?;
        if self.inode_kind(node) == InodeKind::Directory {
            return Err(Errno::IsDirectory);
        }
        self.take_inode(process, node).await;
        self.remove_name(process, (last.parent, last.name)).await;
        let links = self.link_count(node) - 1;
        self.with_file_system_mut(node.volume, |fs| fs.set_link_count(node.inode, links));
        self.with_core_inode(node, |core| core.is_modified = true);
        self.drop_inode(process, node).await;
        Ok(())
    }

    /// Removes an empty directory, rmdir(2).
    pub(crate) async fn rmdir(&self, process: &Rc<Process>, path: &str) -> Result<()> {
        match path_names(path).last() {
            Some(".") => return Err(Errno::InvalidArgument),
            Some("..") => return Err(Errno::NotEmpty),
            _ => {}
        }
        loop {
            let last = self.resolve_parent(process, path).await?;
            let node = last.node.ok_or(Errno::NoSuchEntry)?;
            if self.inode_kind(node) != InodeKind::Directory {
                return Err(Errno::NotDirectory);
            }
            let held = self.lock_nodes(process, vec![last.parent, node]).await;
            let removed = match self.lookup_name(last.parent, last.name) {
                Ok(now) if now != Some(node) => None,
                Ok(_) => Some(self.rmdir_locked(process, &last, node).await),
                Err(errno) => Some(Err(errno)),
            };
            self.unlock_nodes(process, held).await;
            if let Some(removed) = removed {
                return removed;
            }
        }
    }

    async fn rmdir_locked(
        &self,
        process: &Rc<Process>,
        last: &UnixPathEnd<'_>,
        node: Vnode,
    ) -> Result<()> {
        if !self.with_file_system(node.volume, |fs| fs.directory_is_empty(node.inode)) {
            return Err(Errno::NotEmpty);
        }
        self.take_inode(process, node).await;
        self.remove_name(process, (last.parent, last.name)).await;
        self.set_link_count(process, last.parent, self.link_count(last.parent) - 1)
            .await;
        self.with_file_system_mut(node.volume, |fs| fs.set_link_count(node.inode, 0));
        self.drop_inode(process, node).await;
        Ok(())
    }
}

/// Returns the root directory of a volume's file system.
pub(super) fn root_vnode(volume: u32) -> Vnode {
    Vnode {
        volume,
        inode: FastFileSystem::ROOT_INODE,
    }
}

/// Splits a path into its non-empty components.
pub(super) fn path_names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty())
}
