//! Look-up, creation and removal of names by the Minix file server (`eat_path`, `search_dir`,
//! `mkdir`, `unlink`).

use super::blocks::{Contents, Work};
use super::cache::{BlockKey, BufferId};
use super::inodes::Node;
use super::layout::{BLOCK_BYTES, ENTRY_BYTES, Kind, NAME_BYTES, ROOT, put_word, word};
use super::read_write::Cached;
use crate::errno::{Errno, Result};

/// Position of a directory entry in its block, with the entry's inode number. The block is in use.
struct Entry {
    id: BufferId,
    at: usize,
    inode: u32,
}

/// Last name of a path, and its parent directory, which is in use.
pub(super) struct Last {
    pub(super) parent: Node,
    pub(super) name: [u8; NAME_BYTES],
}

/// Kind of directory entry to search for (`search_dir`).
#[derive(Clone, Copy)]
enum Wanted<'a> {
    /// Entry with this name.
    Name(&'a [u8; NAME_BYTES]),
    /// Free entry, which has no inode.
    Free,
    /// Any entry except `.` and `..`.
    Other,
}

/// Maximum link count of a Minix inode. The count is a byte; the limit leaves some room.
pub(super) const MOST_LINKS: u8 = 127;

/// Converts a name to its form in a directory entry. Silently truncates a longer name.
fn cut(name: &str) -> [u8; NAME_BYTES] {
    let mut bytes = [0; NAME_BYTES];
    let length = name.len().min(NAME_BYTES);
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    bytes
}

/// Splits a path into its drive and its names. Trailing and repeated slashes have no meaning.
fn parts(path: &str) -> Result<(u32, Vec<&str>)> {
    let rest = path.strip_prefix("/mnt").ok_or(Errno::NoEntry)?;
    let (drive, names) = rest.split_once('/').unwrap_or((rest, ""));
    let drive = drive.parse().map_err(|_| Errno::NoEntry)?;
    Ok((
        drive,
        names.split('/').filter(|name| !name.is_empty()).collect(),
    ))
}

pub(super) fn is_self_or_parent(name: &[u8; NAME_BYTES]) -> bool {
    *name == cut(".") || *name == cut("..")
}

impl Work<'_> {
    /// Walks a path to the parent directory of its last name. Returns the directory, in use, and
    /// the name; `None` if the path is the root of a drive.
    pub(super) async fn last_dir(&self, path: &str) -> Result<(Node, Option<Last>)> {
        let (drive, names) = parts(path)?;
        if !self.server(|server| (drive as usize) < server.volumes.len()) {
            return Err(Errno::NoEntry);
        }
        let mut at = (drive, ROOT);
        self.get_inode(at).await?;
        let Some((last, before)) = names.split_last() else {
            return Ok((at, None));
        };
        for name in before {
            let next = self.advance(at, &cut(name)).await;
            self.put_inode(at).await?;
            at = next?.ok_or(Errno::NoEntry)?;
        }
        if self.kind(at) != Kind::Directory {
            self.put_inode(at).await?;
            return Err(Errno::NotDirectory);
        }
        let name = cut(last);
        Ok((at, Some(Last { parent: at, name })))
    }

    /// Looks up a path and returns its inode, in use until it is put back.
    pub(super) async fn eat_path(&self, path: &str) -> Result<Node> {
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
        directory: Node,
        name: &[u8; NAME_BYTES],
    ) -> Result<Option<Node>> {
        if self.kind(directory) != Kind::Directory {
            return Err(Errno::NotDirectory);
        }
        let Some(entry) = self.search(directory, Wanted::Name(name)).await? else {
            return Ok(None);
        };
        self.put(entry.id);
        let node = (directory.0, entry.inode);
        self.get_inode(node).await?;
        Ok(Some(node))
    }

    /// Finds the first matching entry of a directory. The entry's block is in use.
    async fn search(&self, directory: Node, wanted: Wanted<'_>) -> Result<Option<Entry>> {
        let size = self.inode(directory, |inode| inode.size);
        for block in 0..size.div_ceil(BLOCK_BYTES as u64) as u32 {
            let key = self.directory_block(directory, block).await?;
            let id = self.get(key, Contents::Wanted).await?;
            let data = self.data(id);
            let end = (size - u64::from(block) * BLOCK_BYTES as u64).min(BLOCK_BYTES as u64);
            let fits = |entry: &[u8]| {
                let inode = word(entry, 0);
                match wanted {
                    Wanted::Free => inode == 0,
                    Wanted::Name(name) => inode != 0 && entry[2..] == *name,
                    Wanted::Other => {
                        inode != 0 && entry[2..] != cut(".") && entry[2..] != cut("..")
                    }
                }
            };
            let data = data.borrow();
            let place = data[..end as usize].chunks(ENTRY_BYTES).position(fits);
            if let Some(place) = place {
                let at = place * ENTRY_BYTES;
                let inode = u32::from(word(&data, at));
                return Ok(Some(Entry { id, at, inode }));
            }
            self.put(id);
        }
        Ok(None)
    }

    async fn directory_block(&self, directory: Node, block: u32) -> Result<BlockKey> {
        let found = self.read_map(directory, block).await?;
        Ok(BlockKey {
            drive: Some(directory.0),
            block: found.expect("a directory has no holes"),
        })
    }

    /// Adds a name to a directory, and extends the directory if no entry is free.
    pub(super) async fn enter(
        &self,
        directory: Node,
        name: &[u8; NAME_BYTES],
        inode: u32,
    ) -> Result<()> {
        let (id, at) = match self.search(directory, Wanted::Free).await? {
            Some(entry) => (entry.id, entry.at),
            None => self.lengthen(directory).await?,
        };
        {
            let data = self.data(id);
            let mut data = data.borrow_mut();
            put_word(&mut data, at, inode as u16);
            data[at + 2..at + ENTRY_BYTES].copy_from_slice(name);
        }
        self.soil(id);
        self.put(id);
        Ok(())
    }

    /// Extends a directory by one entry. Returns the block, in use, and the entry's offset in it.
    async fn lengthen(&self, directory: Node) -> Result<(BufferId, usize)> {
        let size = self.inode(directory, |inode| inode.size);
        let block = (size / BLOCK_BYTES as u64) as u32;
        let at = (size % BLOCK_BYTES as u64) as usize;
        let id = if at == 0 {
            self.new_block(Cached::Node(directory), block).await?
        } else {
            let key = self.directory_block(directory, block).await?;
            self.get(key, Contents::Wanted).await?
        };
        self.change_inode(directory, |inode| inode.size += ENTRY_BYTES as u64);
        Ok((id, at))
    }

    /// Removes a name from a directory. Panics if the directory does not hold the name.
    pub(super) async fn erase(&self, directory: Node, name: &[u8; NAME_BYTES]) -> Result<()> {
        let entry = self.search(directory, Wanted::Name(name)).await?;
        let entry = entry.expect("a name that is removed was found");
        put_word(&mut self.data(entry.id).borrow_mut(), entry.at, 0);
        self.soil(entry.id);
        self.put(entry.id);
        Ok(())
    }

    /// Allocates an inode and adds its name to the parent directory. The name must not exist. The
    /// inode is in use until it is put back.
    pub(super) async fn make_node(&self, last: &Last, kind: Kind) -> Result<Node> {
        let node = self.allocate_inode(last.parent.0, kind).await?;
        let made = self.fill_node(last, node).await;
        if made.is_err() {
            self.change_inode(node, |inode| inode.links = 0);
            self.put_inode(node).await?;
        }
        made.map(|()| node)
    }

    async fn fill_node(&self, last: &Last, node: Node) -> Result<()> {
        if self.kind(node) == Kind::Directory {
            self.enter(node, &cut("."), node.1).await?;
            self.enter(node, &cut(".."), last.parent.1).await?;
        }
        self.enter(last.parent, &last.name, node.1).await?;
        let directory = self.kind(node) == Kind::Directory;
        self.change_inode(node, |inode| inode.links = 1 + u8::from(directory));
        if directory {
            self.change_inode(last.parent, |inode| inode.links += 1);
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

    async fn mkdir_in(&self, last: &Last) -> Result<()> {
        if let Some(known) = self.advance(last.parent, &last.name).await? {
            self.put_inode(known).await?;
            return Err(Errno::Exists);
        }
        if self.inode(last.parent, |inode| inode.links) >= MOST_LINKS {
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

    async fn unlink_in(&self, last: &Last, directory: bool) -> Result<()> {
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
        self.change_inode(node, |_| ());
        self.put_inode(node).await
    }

    /// Returns the length of a file in bytes by its path, stat(2).
    pub(super) async fn stat(&self, path: &str) -> Result<u64> {
        let node = self.eat_path(path).await?;
        let length = self.inode(node, |inode| inode.size);
        self.put_inode(node).await?;
        Ok(length)
    }

    /// Removes a name of a file and lowers the link count. Fails with `NotPermitted` for a
    /// directory.
    pub(super) async fn unlink_file(&self, last: &Last, node: Node) -> Result<()> {
        if self.kind(node) == Kind::Directory {
            // Only the super-user may.
            return Err(Errno::NotPermitted);
        }
        self.erase(last.parent, &last.name).await?;
        self.change_inode(node, |inode| inode.links -= 1);
        Ok(())
    }

    /// Removes an empty directory. Fails with `NotEmpty` if the directory has entries.
    pub(super) async fn remove_dir(&self, last: &Last, node: Node) -> Result<()> {
        if self.kind(node) != Kind::Directory {
            return Err(Errno::NotDirectory);
        }
        if is_self_or_parent(&last.name) {
            return Err(Errno::Invalid);
        }
        if let Some(entry) = self.search(node, Wanted::Other).await? {
            self.put(entry.id);
            return Err(Errno::NotEmpty);
        }
        self.erase(last.parent, &last.name).await?;
        // Its own `.`, its name, and its `..` in the directory above.
        self.change_inode(node, |inode| inode.links = 0);
        self.change_inode(last.parent, |inode| inode.links -= 1);
        Ok(())
    }

    /// Makes the `..` of a directory refer to another parent.
    pub(super) async fn set_parent(&self, directory: Node, parent: Node) -> Result<()> {
        self.erase(directory, &cut("..")).await?;
        self.enter(directory, &cut(".."), parent.1).await
    }

    /// Reports whether a directory is below another directory, or is the same.
    pub(super) async fn is_below(&self, below: Node, above: Node) -> Result<bool> {
        let mut at = below;
        self.get_inode(at).await?;
        loop {
            if at == above || at.1 == ROOT {
                self.put_inode(at).await?;
                return Ok(at == above);
            }
            let parent = self.advance(at, &cut("..")).await;
            self.put_inode(at).await?;
            at = parent?.expect("a directory names the one above it");
        }
    }
}
