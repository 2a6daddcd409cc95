//! Look-up, creation and removal of names in a seventh edition file system (`namei`).
//!
//! A process that looks up the last name of a path keeps the parent directory locked until it has
//! finished with the name. It locks no other directory before it releases this one.

use super::super::Vnode;
use super::super::ffs::{InodeKind, InodeNumber};
use super::super::process::{ExecutionContext, Process};
use super::V7View;
use super::layout::{
    BLOCK_BYTES, DIRECTORY_ENTRY_BYTES, NAME_BYTES_MAX, encode_entry, read_u16, truncate_name,
};
use crate::calls::OpenFlags;
use crate::errno::{Errno, Result};
use crate::written::WriteData;
use diskperf_timeline::Stage;
use std::rc::Rc;

/// Maximum link count of a seventh edition inode: the largest `short` of the 80286.
const LINK_COUNT_MAX: u16 = i16::MAX as u16;

/// Last name of a path with the result of its look-up, and its parent directory, in use and locked.
struct V7PathEnd {
    parent: Vnode,
    name: [u8; NAME_BYTES_MAX],
    lookup: NameLookup,
}

/// Result of a name look-up in a directory.
#[derive(Clone, Copy)]
struct NameLookup {
    /// Inode that the name refers to, and the byte offset of the entry; `None` if the name does not
    /// exist.
    entry: Option<(InodeNumber, u64)>,
    /// Byte offset of the first free entry, possibly the end of the directory.
    free_offset: u64,
}

enum V7EntryWanted<'a> {
    NamedEntry(&'a [u8]),
    /// Any entry except `.` and `..`.
    AnyExceptDots,
}

impl V7View<'_> {
    /// Looks up a path and returns its inode, in use until it is put back.
    pub(crate) async fn resolve_path(&self, process: &Rc<Process>, path: &str) -> Result<Vnode> {
        let (root, rest) = self.split_mount_point(path)?;
        let mut at = root;
        self.take_inode(process, at).await;
        for name in path_names(rest) {
            at = self.step_into(process, at, name).await?;
        }
        Ok(at)
    }

    /// Looks up a name in a directory in use and returns its inode, in use until it is put back.
    /// Releases the directory.
    async fn step_into(&self, process: &Rc<Process>, from: Vnode, name: &str) -> Result<Vnode> {
        let name = truncate_name(name);
        let found = self.look_up_in_directory(process, from, &name).await;
        let to = match found {
            Ok(found) => match found.entry {
                Some((inode, _)) => {
                    let node = Vnode {
                        volume: from.volume,
                        inode,
                    };
                    // While the directory is locked: it still has the name.
                    self.take_inode(process, node).await;
                    Ok(node)
                }
                None => Err(Errno::NoSuchEntry),
            },
            Err(errno) => Err(errno),
        };
        self.unlock_inode(from);
        self.put_inode(process, from).await;
        to
    }

    /// Locks a directory in use and looks up a name in it.
    async fn look_up_in_directory(
        &self,
        process: &Rc<Process>,
        directory: Vnode,
        name: &[u8; NAME_BYTES_MAX],
    ) -> Result<NameLookup> {
        self.lock_inode(process, directory).await;
        if self.inode_kind(directory) != Some(InodeKind::Directory) {
            return Err(Errno::NotDirectory);
        }
        // Somebody may have removed it.
        if self.with_inode(directory, |inode| inode.link_count) == 0 {
            return Err(Errno::NoSuchEntry);
        }
        let context = ExecutionContext::InProcess(process);
        self.spend_processor_time(context, Stage::SystemCall, self.costs.name_lookup_time)
            .await;
        self.search_directory(process, directory, &V7EntryWanted::NamedEntry(name))
            .await
    }

    async fn search_directory(
        &self,
        process: &Rc<Process>,
        directory: Vnode,
        wanted: &V7EntryWanted<'_>,
    ) -> Result<NameLookup> {
        let size = self.with_inode(directory, |inode| u64::from(inode.size_bytes));
        let mut free = size;
        for lbn in 0..size.div_ceil(BLOCK_BYTES as u64) {
            let mapped = self.map_for_reading(process, directory, lbn as u32).await?;
            let block = mapped.block.expect("a directory has no holes").0;
            let id = self.read_block(process, directory.volume, block).await;
            let base = lbn * BLOCK_BYTES as u64;
            let end = (size - base).min(BLOCK_BYTES as u64) as usize;
            let entry = self.with_block(id, |bytes| {
                bytes[..end]
                    .chunks(DIRECTORY_ENTRY_BYTES)
                    .enumerate()
                    .find_map(|(place, bytes)| {
                        let (inode, at) = (
                            read_u16(bytes, 0),
                            base + (place * DIRECTORY_ENTRY_BYTES) as u64,
                        );
                        if inode == 0 {
                            free = free.min(at);
                            return None;
                        }
                        let same = match wanted {
                            V7EntryWanted::NamedEntry(name) => bytes[2..] == **name,
                            V7EntryWanted::AnyExceptDots => {
                                bytes[2..] != truncate_name(".")
                                    && bytes[2..] != truncate_name("..")
                            }
                        };
                        same.then_some((InodeNumber(u32::from(inode)), at))
                    })
            });
            self.brelse(process, id).await;
            if entry.is_some() {
                return Ok(NameLookup {
                    entry,
                    free_offset: free,
                });
            }
        }
        Ok(NameLookup {
            entry: None,
            free_offset: free,
        })
    }

    /// Walks a path to the parent directory of its last name, and looks the name up. Returns `None`
    /// for the root itself.
    async fn resolve_parent(&self, process: &Rc<Process>, path: &str) -> Result<Option<V7PathEnd>> {
        let (root, rest) = self.split_mount_point(path)?;
        let mut names = path_names(rest).peekable();
        let mut parent = root;
        self.take_inode(process, parent).await;
        while let Some(name) = names.next() {
            if names.peek().is_some() {
                parent = self.step_into(process, parent, name).await?;
                continue;
            }
            let name = truncate_name(name);
            match self.look_up_in_directory(process, parent, &name).await {
                Ok(found) => {
                    return Ok(Some(V7PathEnd {
                        parent,
                        name,
                        lookup: found,
                    }));
                }
                Err(errno) => {
                    self.unlock_inode(parent);
                    self.put_inode(process, parent).await;
                    return Err(errno);
                }
            }
        }
        self.put_inode(process, parent).await;
        Ok(None)
    }

    async fn release_path_end(&self, process: &Rc<Process>, last: &V7PathEnd) {
        self.unlock_inode(last.parent);
        self.put_inode(process, last.parent).await;
    }

    /// Opens a file, open(2) and creat(2). Returns its inode, in use until it is put back.
    pub(crate) async fn open_path(
        &self,
        process: &Rc<Process>,
        path: &str,
        how: OpenFlags,
    ) -> Result<Vnode> {
        let node = if how.create {
            match self.resolve_parent(process, path).await? {
                None if how.create_exclusive => return Err(Errno::AlreadyExists),
                None => self.resolve_path(process, path).await?,
                Some(last) => {
                    let opened = self.create_file(process, &last, how.create_exclusive).await;
                    self.release_path_end(process, &last).await;
                    opened?
                }
            }
        } else {
            self.resolve_path(process, path).await?
        };
        let directory = self.inode_kind(node) == Some(InodeKind::Directory);
        if directory && how.write {
            self.put_inode(process, node).await;
            return Err(Errno::IsDirectory);
        }
        if how.truncate && !directory {
            self.lock_inode(process, node).await;
            self.truncate_inode(process, node).await;
            self.unlock_inode(node);
        }
        Ok(node)
    }

    /// Returns the inode of a path's last name, and creates a file if the name does not exist.
    async fn create_file(
        &self,
        process: &Rc<Process>,
        last: &V7PathEnd,
        exclusive: bool,
    ) -> Result<Vnode> {
        if let Some((inode, _)) = last.lookup.entry {
            if exclusive {
                return Err(Errno::AlreadyExists);
            }
            let node = Vnode {
                volume: last.parent.volume,
                inode,
            };
            self.take_inode(process, node).await;
            return Ok(node);
        }
        let volume = last.parent.volume;
        let node = self
            .make_inode(process, volume, InodeKind::RegularFile)
            .await?;
        self.with_inode_mut(node, |inode| inode.link_count = 1);
        // A name must not point at an inode that is not there yet.
        self.write_inode(process, node).await;
        self.enter_or_drop(process, last, node).await?;
        Ok(node)
    }

    /// Adds the name of a new inode to its parent directory. Frees the inode if that fails.
    async fn enter_or_drop(
        &self,
        process: &Rc<Process>,
        last: &V7PathEnd,
        node: Vnode,
    ) -> Result<()> {
        let bytes = encode_entry(node.inode.0, &last.name);
        let at = (last.lookup.free_offset, WriteData::from(&bytes));
        let (_, entered) = self.write_file_data(process, last.parent, at).await;
        if entered.is_err() {
            self.with_inode_mut(node, |inode| inode.link_count = 0);
            self.put_inode(process, node).await;
        }
        entered
    }

    async fn erase_entry(&self, process: &Rc<Process>, last: &V7PathEnd, at: u64) -> Result<()> {
        let bytes = encode_entry(0, &last.name);
        let at = (at, WriteData::from(&bytes));
        self.write_file_data(process, last.parent, at).await.1
    }

    /// Makes a directory, as mkdir(1) does with mknod(2) and link(2).
    pub(crate) async fn mkdir(&self, process: &Rc<Process>, path: &str) -> Result<()> {
        let last = self.resolve_parent(process, path).await?;
        let last = last.ok_or(Errno::AlreadyExists)?;
        let made = self.mkdir_in(process, &last).await;
        self.release_path_end(process, &last).await;
        made
    }

    async fn mkdir_in(&self, process: &Rc<Process>, last: &V7PathEnd) -> Result<()> {
        if last.lookup.entry.is_some() {
            return Err(Errno::AlreadyExists);
        }
        let parent = last.parent;
        if self.with_inode(parent, |inode| inode.link_count) >= LINK_COUNT_MAX {
            return Err(Errno::TooManyLinks);
        }
        let node = self
            .make_inode(process, parent.volume, InodeKind::Directory)
            .await?;
        let dots = [
            encode_entry(node.inode.0, &truncate_name(".")),
            encode_entry(parent.inode.0, &truncate_name("..")),
        ];
        let (_, filled) = self
            .write_file_data(process, node, (0, WriteData::from(dots.as_flattened())))
            .await;
        if let Err(errno) = filled {
            self.put_inode(process, node).await;
            return Err(errno);
        }
        self.with_inode_mut(node, |inode| inode.link_count = 2);
        self.write_inode(process, node).await;
        self.enter_or_drop(process, last, node).await?;
        self.with_inode_mut(parent, |inode| inode.link_count += 1);
        self.put_inode(process, node).await;
        Ok(())
    }

    /// Removes a name of a file, unlink(2).
    pub(crate) async fn unlink(&self, process: &Rc<Process>, path: &str) -> Result<()> {
        self.remove_path(process, path, InodeKind::RegularFile)
            .await
    }

    /// Removes an empty directory, as rmdir(1) does with unlink(2).
    pub(crate) async fn rmdir(&self, process: &Rc<Process>, path: &str) -> Result<()> {
        if matches!(path_names(path).last(), Some("." | "..")) {
            return Err(Errno::InvalidArgument);
        }
        self.remove_path(process, path, InodeKind::Directory).await
    }

    async fn remove_path(&self, process: &Rc<Process>, path: &str, kind: InodeKind) -> Result<()> {
        // The root of a file system is mounted.
        let last = self.resolve_parent(process, path).await?;
        let last = last.ok_or(Errno::DeviceBusy)?;
        let removed = match last.lookup.entry {
            None => Err(Errno::NoSuchEntry),
            // Itself or the one above is a directory, and may not be locked
            // from here.
            Some(_) if last.name == truncate_name(".") || last.name == truncate_name("..") => {
                Err(Errno::NotPermitted)
            }
            Some((inode, at)) => {
                let node = Vnode {
                    volume: last.parent.volume,
                    inode,
                };
                self.take_inode(process, node).await;
                self.lock_inode(process, node).await;
                let removed = match kind {
                    InodeKind::RegularFile => self.unlink_in(process, &last, (node, at)).await,
                    InodeKind::Directory => self.rmdir_in(process, &last, (node, at)).await,
                };
                self.unlock_inode(node);
                self.put_inode(process, node).await;
                removed
            }
        };
        self.release_path_end(process, &last).await;
        removed
    }

    async fn unlink_in(
        &self,
        process: &Rc<Process>,
        last: &V7PathEnd,
        (node, at): (Vnode, u64),
    ) -> Result<()> {
        if self.inode_kind(node) == Some(InodeKind::Directory) {
            // Only the super-user may.
            return Err(Errno::NotPermitted);
        }
        self.erase_entry(process, last, at).await?;
        self.with_inode_mut(node, |inode| inode.link_count -= 1);
        Ok(())
    }

    async fn rmdir_in(
        &self,
        process: &Rc<Process>,
        last: &V7PathEnd,
        (node, at): (Vnode, u64),
    ) -> Result<()> {
        if self.inode_kind(node) != Some(InodeKind::Directory) {
            return Err(Errno::NotDirectory);
        }
        let inside = self
            .search_directory(process, node, &V7EntryWanted::AnyExceptDots)
            .await?;
        if inside.entry.is_some() {
            return Err(Errno::NotEmpty);
        }
        self.erase_entry(process, last, at).await?;
        // Its own `.`, its name, and its `..` in the directory above.
        self.with_inode_mut(node, |inode| inode.link_count = 0);
        self.with_inode_mut(last.parent, |inode| inode.link_count -= 1);
        Ok(())
    }

    /// Changes the mode, owner or times of a file: chmod(2), chown(2) or utime(2). No call reads
    /// these attributes, so that only the inode is marked for writing.
    pub(crate) async fn change_attributes(&self, process: &Rc<Process>, path: &str) -> Result<()> {
        let node = self.resolve_path(process, path).await?;
        self.with_inode_mut(node, |_| ());
        self.put_inode(process, node).await;
        Ok(())
    }
}

fn path_names(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty())
}
