//! Look-up, creation and removal of names by the Minix file server (`eat_path`, `search_dir`,
//! `mkdir`, `unlink`).

use super::blocks::{ContentsNeeded, ServerCall};
use super::cache::{CacheBufferId, DriveBlockKey};
use super::inodes::DriveInode;
use super::layout::{
    BLOCK_BYTES, DIRECTORY_ENTRY_BYTES, MinixInodeKind, NAME_BYTES_MAX, ROOT_INODE, read_u16,
    write_u16,
};
use super::read_write::CachedBlocksSource;
use crate::errno::{Errno, Result};

/// Position of a directory entry in its block, with the entry's inode number. The block is in use.
struct DirectoryEntryLocation {
    buffer_id: CacheBufferId,
    offset: usize,
    inode_number: u32,
}

/// Last name of a path, and its parent directory, which is in use.
pub(super) struct MinixPathEnd {
    pub(super) parent: DriveInode,
    pub(super) name: [u8; NAME_BYTES_MAX],
}

/// Kind of directory entry to search for (`search_dir`).
#[derive(Clone, Copy)]
enum DirectoryEntryWanted<'a> {
    NamedEntry(&'a [u8; NAME_BYTES_MAX]),
    /// Free entry, which has no inode.
    FreeEntry,
    /// Any entry except `.` and `..`.
    AnyExceptDots,
}

/// Maximum link count of a Minix inode. The count is a byte; the limit leaves some room.
pub(super) const LINK_COUNT_MAX: u8 = 127;

/// Converts a name to its form in a directory entry. Silently truncates a longer name.
fn truncate_name(name: &str) -> [u8; NAME_BYTES_MAX] {
    let mut bytes = [0; NAME_BYTES_MAX];
    let length = name.len().min(NAME_BYTES_MAX);
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    bytes
}

/// Splits a path into its drive and its names. Trailing and repeated slashes have no meaning.
fn split_path(path: &str) -> Result<(u32, Vec<&str>)> {
    let rest = path.strip_prefix("/mnt").ok_or(Errno::NoSuchEntry)?;
    let (drive, names) = rest.split_once('/').unwrap_or((rest, ""));
    let drive = drive.parse().map_err(|_| Errno::NoSuchEntry)?;
    Ok((
        drive,
        names.split('/').filter(|name| !name.is_empty()).collect(),
    ))
}

pub(super) fn is_self_or_parent(name: &[u8; NAME_BYTES_MAX]) -> bool {
    *name == truncate_name(".") || *name == truncate_name("..")
}

impl ServerCall<'_> {
    /// Walks a path to the parent directory of its last name. Returns the directory, in use, and
    /// the name; `None` if the path is the root of a drive.
    pub(super) async fn resolve_parent(
        &self,
        path: &str,
    ) -> Result<(DriveInode, Option<MinixPathEnd>)> {
        let (drive, names) = split_path(path)?;
        if !self.with_server(|server| (drive as usize) < server.volumes.len()) {
            return Err(Errno::NoSuchEntry);
        }
        let mut at = (drive, ROOT_INODE);
        self.get_inode(at).await?;
        let Some((last, before)) = names.split_last() else {
            return Ok((at, None));
        };
        for name in before {
            let next = self.look_up_name(at, &truncate_name(name)).await;
            self.put_inode(at).await?;
            at = next?.ok_or(Errno::NoSuchEntry)?;
        }
        if self.inode_kind(at) != MinixInodeKind::Directory {
            self.put_inode(at).await?;
            return Err(Errno::NotDirectory);
        }
        let name = truncate_name(last);
        Ok((at, Some(MinixPathEnd { parent: at, name })))
    }

    /// Looks up a path and returns its inode, in use until it is put back.
    pub(super) async fn resolve_path(&self, path: &str) -> Result<DriveInode> {
        let (parent, last) = self.resolve_parent(path).await?;
        let Some(last) = last else {
            return Ok(parent);
        };
        let found = self.look_up_name(parent, &last.name).await;
        self.put_inode(parent).await?;
        found?.ok_or(Errno::NoSuchEntry)
    }

    /// Looks up a name in a directory and returns its inode, in use until it is put back.
    pub(super) async fn look_up_name(
        &self,
        directory: DriveInode,
        name: &[u8; NAME_BYTES_MAX],
    ) -> Result<Option<DriveInode>> {
        if self.inode_kind(directory) != MinixInodeKind::Directory {
            return Err(Errno::NotDirectory);
        }
        let Some(entry) = self
            .search_directory(directory, DirectoryEntryWanted::NamedEntry(name))
            .await?
        else {
            return Ok(None);
        };
        self.put_block(entry.buffer_id);
        let node = (directory.0, entry.inode_number);
        self.get_inode(node).await?;
        Ok(Some(node))
    }

    /// Finds the first matching entry of a directory. The entry's block is in use.
    async fn search_directory(
        &self,
        directory: DriveInode,
        wanted: DirectoryEntryWanted<'_>,
    ) -> Result<Option<DirectoryEntryLocation>> {
        let size = self.with_inode(directory, |inode| inode.size_bytes);
        for block in 0..size.div_ceil(BLOCK_BYTES as u64) as u32 {
            let key = self.directory_block(directory, block).await?;
            let id = self.get_block(key, ContentsNeeded::CurrentContents).await?;
            let data = self.block_data(id);
            let end = (size - u64::from(block) * BLOCK_BYTES as u64).min(BLOCK_BYTES as u64);
            let fits = |entry: &[u8]| {
                let inode = read_u16(entry, 0);
                match wanted {
                    DirectoryEntryWanted::FreeEntry => inode == 0,
                    DirectoryEntryWanted::NamedEntry(name) => inode != 0 && entry[2..] == *name,
                    DirectoryEntryWanted::AnyExceptDots => {
                        inode != 0
                            && entry[2..] != truncate_name(".")
                            && entry[2..] != truncate_name("..")
                    }
                }
            };
            let data = data.borrow();
            let place = data[..end as usize]
                .chunks(DIRECTORY_ENTRY_BYTES)
                .position(fits);
            if let Some(place) = place {
                let at = place * DIRECTORY_ENTRY_BYTES;
                let inode = u32::from(read_u16(&data, at));
                return Ok(Some(DirectoryEntryLocation {
                    buffer_id: id,
                    offset: at,
                    inode_number: inode,
                }));
            }
            self.put_block(id);
        }
        Ok(None)
    }

    async fn directory_block(&self, directory: DriveInode, block: u32) -> Result<DriveBlockKey> {
        let found = self.map_for_reading(directory, block).await?;
        Ok(DriveBlockKey {
            drive: Some(directory.0),
            block: found.expect("a directory has no holes"),
        })
    }

    /// Adds a name to a directory, and extends the directory if no entry is free.
    pub(super) async fn enter_name(
        &self,
        directory: DriveInode,
        name: &[u8; NAME_BYTES_MAX],
        inode: u32,
    ) -> Result<()> {
        let (id, at) = match self
            .search_directory(directory, DirectoryEntryWanted::FreeEntry)
            .await?
        {
            Some(entry) => (entry.buffer_id, entry.offset),
            None => self.extend_directory(directory).await?,
        };
        {
            let data = self.block_data(id);
            let mut data = data.borrow_mut();
            write_u16(&mut data, at, inode as u16);
            data[at + 2..at + DIRECTORY_ENTRY_BYTES].copy_from_slice(name);
        }
        self.mark_dirty(id);
        self.put_block(id);
        Ok(())
    }

    /// Extends a directory by one entry. Returns the block, in use, and the entry's offset in it.
    async fn extend_directory(&self, directory: DriveInode) -> Result<(CacheBufferId, usize)> {
        let size = self.with_inode(directory, |inode| inode.size_bytes);
        let block = (size / BLOCK_BYTES as u64) as u32;
        let at = (size % BLOCK_BYTES as u64) as usize;
        let id = if at == 0 {
            self.new_file_block(CachedBlocksSource::FileInode(directory), block)
                .await?
        } else {
            let key = self.directory_block(directory, block).await?;
            self.get_block(key, ContentsNeeded::CurrentContents).await?
        };
        self.with_inode_mut(directory, |inode| {
            inode.size_bytes += DIRECTORY_ENTRY_BYTES as u64
        });
        Ok((id, at))
    }

    /// Removes a name from a directory. Panics if the directory does not hold the name.
    pub(super) async fn erase_entry(
        &self,
        directory: DriveInode,
        name: &[u8; NAME_BYTES_MAX],
    ) -> Result<()> {
        let entry = self
            .search_directory(directory, DirectoryEntryWanted::NamedEntry(name))
            .await?;
        let entry = entry.expect("a name that is removed was found");
        write_u16(
            &mut self.block_data(entry.buffer_id).borrow_mut(),
            entry.offset,
            0,
        );
        self.mark_dirty(entry.buffer_id);
        self.put_block(entry.buffer_id);
        Ok(())
    }

    /// Allocates an inode and adds its name to the parent directory. The name must not exist. The
    /// inode is in use until it is put back.
    pub(super) async fn make_node(
        &self,
        last: &MinixPathEnd,
        kind: MinixInodeKind,
    ) -> Result<DriveInode> {
        let node = self.allocate_inode(last.parent.0, kind).await?;
        let made = self.fill_node(last, node).await;
        if made.is_err() {
            self.with_inode_mut(node, |inode| inode.link_count = 0);
            self.put_inode(node).await?;
        }
        made.map(|()| node)
    }

    async fn fill_node(&self, last: &MinixPathEnd, node: DriveInode) -> Result<()> {
        if self.inode_kind(node) == MinixInodeKind::Directory {
            self.enter_name(node, &truncate_name("."), node.1).await?;
            self.enter_name(node, &truncate_name(".."), last.parent.1)
                .await?;
        }
        self.enter_name(last.parent, &last.name, node.1).await?;
        let directory = self.inode_kind(node) == MinixInodeKind::Directory;
        self.with_inode_mut(node, |inode| inode.link_count = 1 + u8::from(directory));
        if directory {
            self.with_inode_mut(last.parent, |inode| inode.link_count += 1);
        }
        Ok(())
    }

    /// Makes a directory, mkdir(2).
    pub(super) async fn mkdir(&self, path: &str) -> Result<()> {
        let (parent, last) = self.resolve_parent(path).await?;
        let made = match &last {
            None => Err(Errno::AlreadyExists),
            Some(last) => self.mkdir_in(last).await,
        };
        self.put_inode(parent).await?;
        made
    }

    async fn mkdir_in(&self, last: &MinixPathEnd) -> Result<()> {
        if let Some(known) = self.look_up_name(last.parent, &last.name).await? {
            self.put_inode(known).await?;
            return Err(Errno::AlreadyExists);
        }
        if self.with_inode(last.parent, |inode| inode.link_count) >= LINK_COUNT_MAX {
            return Err(Errno::TooManyLinks);
        }
        let node = self.make_node(last, MinixInodeKind::Directory).await?;
        self.put_inode(node).await
    }

    /// Removes a file's name, unlink(2), or an empty directory, rmdir(2).
    pub(super) async fn unlink(&self, path: &str, directory: bool) -> Result<()> {
        let (parent, last) = self.resolve_parent(path).await?;
        let removed = match &last {
            // The root of a file system is mounted.
            None => Err(Errno::DeviceBusy),
            Some(last) => self.unlink_in(last, directory).await,
        };
        self.put_inode(parent).await?;
        removed
    }

    async fn unlink_in(&self, last: &MinixPathEnd, directory: bool) -> Result<()> {
        let found = self.look_up_name(last.parent, &last.name).await?;
        let node = found.ok_or(Errno::NoSuchEntry)?;
        let removed = if directory {
            self.remove_dir(last, node).await
        } else {
            self.unlink_file(last, node).await
        };
        self.put_inode(node).await?;
        removed
    }

    /// Changes the mode, owner or times of a file: chmod(2), chown(2) or utime(2). No call reads
    /// these attributes, so that only the inode is marked for writing.
    pub(super) async fn change_attributes(&self, path: &str) -> Result<()> {
        let node = self.resolve_path(path).await?;
        self.with_inode_mut(node, |_| ());
        self.put_inode(node).await
    }

    /// Returns the length of a file in bytes by its path, stat(2).
    pub(super) async fn stat(&self, path: &str) -> Result<u64> {
        let node = self.resolve_path(path).await?;
        let length = self.with_inode(node, |inode| inode.size_bytes);
        self.put_inode(node).await?;
        Ok(length)
    }

    /// Removes a name of a file and lowers the link count. Fails with `NotPermitted` for a
    /// directory.
    pub(super) async fn unlink_file(&self, last: &MinixPathEnd, node: DriveInode) -> Result<()> {
        if self.inode_kind(node) == MinixInodeKind::Directory {
            // Only the super-user may.
            return Err(Errno::NotPermitted);
        }
        self.erase_entry(last.parent, &last.name).await?;
        self.with_inode_mut(node, |inode| inode.link_count -= 1);
        Ok(())
    }

    /// Removes an empty directory. Fails with `NotEmpty` if the directory has entries.
    pub(super) async fn remove_dir(&self, last: &MinixPathEnd, node: DriveInode) -> Result<()> {
        if self.inode_kind(node) != MinixInodeKind::Directory {
            return Err(Errno::NotDirectory);
        }
        if is_self_or_parent(&last.name) {
            return Err(Errno::InvalidArgument);
        }
        if let Some(entry) = self
            .search_directory(node, DirectoryEntryWanted::AnyExceptDots)
            .await?
        {
            self.put_block(entry.buffer_id);
            return Err(Errno::NotEmpty);
        }
        self.erase_entry(last.parent, &last.name).await?;
        // Its own `.`, its name, and its `..` in the directory above.
        self.with_inode_mut(node, |inode| inode.link_count = 0);
        self.with_inode_mut(last.parent, |inode| inode.link_count -= 1);
        Ok(())
    }

    /// Makes the `..` of a directory refer to another parent.
    pub(super) async fn set_parent_entry(
        &self,
        directory: DriveInode,
        parent: DriveInode,
    ) -> Result<()> {
        self.erase_entry(directory, &truncate_name("..")).await?;
        self.enter_name(directory, &truncate_name(".."), parent.1)
            .await
    }

    /// Reports whether a directory is below another directory, or is the same.
    pub(super) async fn is_directory_below(
        &self,
        below: DriveInode,
        above: DriveInode,
    ) -> Result<bool> {
        let mut at = below;
        self.get_inode(at).await?;
        loop {
            if at == above || at.1 == ROOT_INODE {
                self.put_inode(at).await?;
                return Ok(at == above);
            }
            let parent = self.look_up_name(at, &truncate_name("..")).await;
            self.put_inode(at).await?;
            at = parent?.expect("a directory has an entry for its parent");
        }
    }
}
