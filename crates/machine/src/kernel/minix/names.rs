//! Look-up, creation and removal of names by the Minix file server (`eat_path`, `search_dir`,
//! `mkdir`, `unlink`).

use super::blocks::{ContentsNeeded, ServerCall};
use super::cache::{BlockKey, BufferId};
use super::inodes::DriveInode;
use super::layout::{BLOCK_BYTES, ENTRY_BYTES, Kind, NAME_BYTES, ROOT_INODE, read_u16, write_u16};
use super::read_write::CachedSource;
use crate::errno::{Errno, Result};

/// Position of a directory entry in its block, with the entry's inode number. The block is in use.
struct FoundEntry {
    id: BufferId,
    offset: usize,
    inode: u32,
}

/// Last name of a path, and its parent directory, which is in use.
pub(super) struct PathEnd {
    pub(super) parent: DriveInode,
    pub(super) name: [u8; NAME_BYTES],
}

/// Kind of directory entry to search for (`search_dir`).
#[derive(Clone, Copy)]
enum EntryWanted<'a> {
    /// Entry with this name.
    Named(&'a [u8; NAME_BYTES]),
    /// Free entry, which has no inode.
    Free,
    /// Any entry except `.` and `..`.
    AnyExceptDots,
}

/// Maximum link count of a Minix inode. The count is a byte; the limit leaves some room.
pub(super) const LINKS_MAX: u8 = 127;

/// Converts a name to its form in a directory entry. Silently truncates a longer name.
fn truncate_name(name: &str) -> [u8; NAME_BYTES] {
    let mut bytes = [0; NAME_BYTES];
    let length = name.len().min(NAME_BYTES);
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    bytes
}

/// Splits a path into its drive and its names. Trailing and repeated slashes have no meaning.
fn split_path(path: &str) -> Result<(u32, Vec<&str>)> {
    let rest = path.strip_prefix("/mnt").ok_or(Errno::NoEntry)?;
    let (drive, names) = rest.split_once('/').unwrap_or((rest, ""));
    let drive = drive.parse().map_err(|_| Errno::NoEntry)?;
    Ok((
        drive,
        names.split('/').filter(|name| !name.is_empty()).collect(),
    ))
}

pub(super) fn is_self_or_parent(name: &[u8; NAME_BYTES]) -> bool {
    *name == truncate_name(".") || *name == truncate_name("..")
}

impl ServerCall<'_> {
    /// Walks a path to the parent directory of its last name. Returns the directory, in use, and
    /// the name; `None` if the path is the root of a drive.
    pub(super) async fn last_dir(&self, path: &str) -> Result<(DriveInode, Option<PathEnd>)> {
        let (drive, names) = split_path(path)?;
        if !self.with_server(|server| (drive as usize) < server.volumes.len()) {
            return Err(Errno::NoEntry);
        }
        let mut at = (drive, ROOT_INODE);
        self.get_inode(at).await?;
        let Some((last, before)) = names.split_last() else {
            return Ok((at, None));
        };
        for name in before {
            let next = self.advance(at, &truncate_name(name)).await;
            self.put_inode(at).await?;
            at = next?.ok_or(Errno::NoEntry)?;
        }
        if self.kind(at) != Kind::Directory {
            self.put_inode(at).await?;
            return Err(Errno::NotDirectory);
        }
        let name = truncate_name(last);
        Ok((at, Some(PathEnd { parent: at, name })))
    }

    /// Looks up a path and returns its inode, in use until it is put back.
    pub(super) async fn eat_path(&self, path: &str) -> Result<DriveInode> {
        let (parent, last) = self.last_dir(path).await?;
        let Some(last) = last else {
            return Ok(parent);
        };
        let found = self.advance(parent, &last.name).await;
        self.put_inode(parent).await?;
        found?.ok_or(Errno::NoEntry)
    }

    /// Looks up a name in a directory and returns its inode, in use until it is put back.
    pub(super) async fn advance(
        &self,
        directory: DriveInode,
        name: &[u8; NAME_BYTES],
    ) -> Result<Option<DriveInode>> {
        if self.kind(directory) != Kind::Directory {
            return Err(Errno::NotDirectory);
        }
        let Some(entry) = self
            .search_directory(directory, EntryWanted::Named(name))
            .await?
        else {
            return Ok(None);
        };
        self.put_block(entry.id);
        let node = (directory.0, entry.inode);
        self.get_inode(node).await?;
        Ok(Some(node))
    }

    /// Finds the first matching entry of a directory. The entry's block is in use.
    async fn search_directory(
        &self,
        directory: DriveInode,
        wanted: EntryWanted<'_>,
    ) -> Result<Option<FoundEntry>> {
        let size = self.with_inode(directory, |inode| inode.size_bytes);
        for block in 0..size.div_ceil(BLOCK_BYTES as u64) as u32 {
            let key = self.directory_block(directory, block).await?;
            let id = self.get_block(key, ContentsNeeded::Current).await?;
            let data = self.block_data(id);
            let end = (size - u64::from(block) * BLOCK_BYTES as u64).min(BLOCK_BYTES as u64);
            let fits = |entry: &[u8]| {
                let inode = read_u16(entry, 0);
                match wanted {
                    EntryWanted::Free => inode == 0,
                    EntryWanted::Named(name) => inode != 0 && entry[2..] == *name,
                    EntryWanted::AnyExceptDots => {
                        inode != 0
                            && entry[2..] != truncate_name(".")
                            && entry[2..] != truncate_name("..")
                    }
                }
            };
            let data = data.borrow();
            let place = data[..end as usize].chunks(ENTRY_BYTES).position(fits);
            if let Some(place) = place {
                let at = place * ENTRY_BYTES;
                let inode = u32::from(read_u16(&data, at));
                return Ok(Some(FoundEntry {
                    id,
                    offset: at,
                    inode,
                }));
            }
            self.put_block(id);
        }
        Ok(None)
    }

    async fn directory_block(&self, directory: DriveInode, block: u32) -> Result<BlockKey> {
        let found = self.read_map(directory, block).await?;
        Ok(BlockKey {
            drive: Some(directory.0),
            block: found.expect("a directory has no holes"),
        })
    }

    /// Adds a name to a directory, and extends the directory if no entry is free.
    pub(super) async fn enter_name(
        &self,
        directory: DriveInode,
        name: &[u8; NAME_BYTES],
        inode: u32,
    ) -> Result<()> {
        let (id, at) = match self.search_directory(directory, EntryWanted::Free).await? {
            Some(entry) => (entry.id, entry.offset),
            None => self.extend_directory(directory).await?,
        };
        {
            let data = self.block_data(id);
            let mut data = data.borrow_mut();
            write_u16(&mut data, at, inode as u16);
            data[at + 2..at + ENTRY_BYTES].copy_from_slice(name);
        }
        self.mark_dirty(id);
        self.put_block(id);
        Ok(())
    }

    /// Extends a directory by one entry. Returns the block, in use, and the entry's offset in it.
    async fn extend_directory(&self, directory: DriveInode) -> Result<(BufferId, usize)> {
        let size = self.with_inode(directory, |inode| inode.size_bytes);
        let block = (size / BLOCK_BYTES as u64) as u32;
        let at = (size % BLOCK_BYTES as u64) as usize;
        let id = if at == 0 {
            self.new_block(CachedSource::Node(directory), block).await?
        } else {
            let key = self.directory_block(directory, block).await?;
            self.get_block(key, ContentsNeeded::Current).await?
        };
        self.with_inode_mut(directory, |inode| inode.size_bytes += ENTRY_BYTES as u64);
        Ok((id, at))
    }

    /// Removes a name from a directory. Panics if the directory does not hold the name.
    pub(super) async fn erase_entry(
        &self,
        directory: DriveInode,
        name: &[u8; NAME_BYTES],
    ) -> Result<()> {
        let entry = self
            .search_directory(directory, EntryWanted::Named(name))
            .await?;
        let entry = entry.expect("a name that is removed was found");
        write_u16(&mut self.block_data(entry.id).borrow_mut(), entry.offset, 0);
        self.mark_dirty(entry.id);
        self.put_block(entry.id);
        Ok(())
    }

    /// Allocates an inode and adds its name to the parent directory. The name must not exist. The
    /// inode is in use until it is put back.
    pub(super) async fn make_node(&self, last: &PathEnd, kind: Kind) -> Result<DriveInode> {
        let node = self.allocate_inode(last.parent.0, kind).await?;
        let made = self.fill_node(last, node).await;
        if made.is_err() {
            self.with_inode_mut(node, |inode| inode.link_count = 0);
            self.put_inode(node).await?;
        }
        made.map(|()| node)
    }

    async fn fill_node(&self, last: &PathEnd, node: DriveInode) -> Result<()> {
        if self.kind(node) == Kind::Directory {
            self.enter_name(node, &truncate_name("."), node.1).await?;
            self.enter_name(node, &truncate_name(".."), last.parent.1)
                .await?;
        }
        self.enter_name(last.parent, &last.name, node.1).await?;
        let directory = self.kind(node) == Kind::Directory;
        self.with_inode_mut(node, |inode| inode.link_count = 1 + u8::from(directory));
        if directory {
            self.with_inode_mut(last.parent, |inode| inode.link_count += 1);
        }
        Ok(())
    }

    /// Makes a directory, mkdir(2).
    pub(super) async fn mkdir(&self, path: &str) -> Result<()> {
        let (parent, last) = self.last_dir(path).await?;
        let made = match &last {
            None => Err(Errno::Exists),
            Some(last) => self.mkdir_in(last).await,
        };
        self.put_inode(parent).await?;
        made
    }

    async fn mkdir_in(&self, last: &PathEnd) -> Result<()> {
        if let Some(known) = self.advance(last.parent, &last.name).await? {
            self.put_inode(known).await?;
            return Err(Errno::Exists);
        }
        if self.with_inode(last.parent, |inode| inode.link_count) >= LINKS_MAX {
            return Err(Errno::TooManyLinks);
        }
        let node = self.make_node(last, Kind::Directory).await?;
        self.put_inode(node).await
    }

    /// Removes a file's name, unlink(2), or an empty directory, rmdir(2).
    pub(super) async fn unlink(&self, path: &str, directory: bool) -> Result<()> {
        let (parent, last) = self.last_dir(path).await?;
        let removed = match &last {
            // The root of a file system is mounted.
            None => Err(Errno::Busy),
            Some(last) => self.unlink_in(last, directory).await,
        };
        self.put_inode(parent).await?;
        removed
    }

    async fn unlink_in(&self, last: &PathEnd, directory: bool) -> Result<()> {
        let found = self.advance(last.parent, &last.name).await?;
        let node = found.ok_or(Errno::NoEntry)?;
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
        let node = self.eat_path(path).await?;
        self.with_inode_mut(node, |_| ());
        self.put_inode(node).await
    }

    /// Returns the length of a file in bytes by its path, stat(2).
    pub(super) async fn stat(&self, path: &str) -> Result<u64> {
        let node = self.eat_path(path).await?;
        let length = self.with_inode(node, |inode| inode.size_bytes);
        self.put_inode(node).await?;
        Ok(length)
    }

    /// Removes a name of a file and lowers the link count. Fails with `NotPermitted` for a
    /// directory.
    pub(super) async fn unlink_file(&self, last: &PathEnd, node: DriveInode) -> Result<()> {
        if self.kind(node) == Kind::Directory {
            // Only the super-user may.
            return Err(Errno::NotPermitted);
        }
        self.erase_entry(last.parent, &last.name).await?;
        self.with_inode_mut(node, |inode| inode.link_count -= 1);
        Ok(())
    }

    /// Removes an empty directory. Fails with `NotEmpty` if the directory has entries.
    pub(super) async fn remove_dir(&self, last: &PathEnd, node: DriveInode) -> Result<()> {
        if self.kind(node) != Kind::Directory {
            return Err(Errno::NotDirectory);
        }
        if is_self_or_parent(&last.name) {
            return Err(Errno::Invalid);
        }
        if let Some(entry) = self
            .search_directory(node, EntryWanted::AnyExceptDots)
            .await?
        {
            self.put_block(entry.id);
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
    pub(super) async fn is_below(&self, below: DriveInode, above: DriveInode) -> Result<bool> {
        let mut at = below;
        self.get_inode(at).await?;
        loop {
            if at == above || at.1 == ROOT_INODE {
                self.put_inode(at).await?;
                return Ok(at == above);
            }
            let parent = self.advance(at, &truncate_name("..")).await;
            self.put_inode(at).await?;
            at = parent?.expect("a directory has an entry for its parent");
        }
    }
}
