//! Names: finding, making, removing and changing them.

use super::errno::{Errno, Result};
use super::ffs::{FileSystem, InodeKind, InodeNumber, NAME_MAX_BYTES, NameError};
use super::inode_io::When;
use super::process::{Context, Process};
use super::{Kernel, Vnode};
use diskperf_timeline::Stage;
use std::rc::Rc;

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A file or a directory of a file system.
    Node(Vnode),
    /// `/dev/null`.
    Null,
    /// `/dev/zero`.
    Zero,
}

/// The directory that a path's last name is in, that name, and what it is
/// there.
struct Last<'a> {
    parent: Vnode,
    name: &'a str,
    node: Option<Vnode>,
}

/// The error of a name that cannot be made.
pub(crate) fn errno_of_name(error: NameError) -> Errno {
    match error {
        NameError::Empty => Errno::NoEntry,
        NameError::TooLong => Errno::NameTooLong,
        NameError::Character => Errno::Invalid,
        NameError::Exists => Errno::Exists,
    }
}

/// Links that an inode may have, as on every system of the time.
const MOST_LINKS: u32 = 32_767;

impl Kernel {
    /// What a path leads to.
    pub(crate) async fn find(&self, process: &Rc<Process>, path: &str) -> Result<Found> {
        match path {
            "/dev/null" => return Ok(Found::Null),
            "/dev/zero" => return Ok(Found::Zero),
            _ => {}
        }
        let (root, rest) = self.mount_of(path)?;
        if names(rest).next().is_none() {
            return Ok(Found::Node(root));
        }
        let last = self.find_last(process, path).await?;
        last.node.map(Found::Node).ok_or(Errno::NoEntry)
    }

    /// The root of the file system that a path is on, and the rest of it.
    fn mount_of<'a>(&self, path: &'a str) -> Result<(Vnode, &'a str)> {
        let rest = path.strip_prefix("/mnt").ok_or(Errno::NoEntry)?;
        let end = rest.find('/').unwrap_or(rest.len());
        let drive: u32 = rest[..end].parse().map_err(|_| Errno::NoEntry)?;
        if drive as usize >= self.mounts.borrow().len() {
            return Err(Errno::NoEntry);
        }
        let root = Vnode {
            drive,
            inode: FileSystem::ROOT,
        };
        Ok((root, &rest[end..]))
    }

    /// Walks to the directory of a path's last name (namei).
    async fn find_last<'a>(&self, process: &Rc<Process>, path: &'a str) -> Result<Last<'a>> {
        let (root, rest) = self.mount_of(path)?;
        let mut parent = root;
        let mut names = names(rest).peekable();
        loop {
            let name = names.next().ok_or(Errno::Busy)?;
            if self.kind(parent) != InodeKind::Directory {
                return Err(Errno::NotDirectory);
            }
            if name.len() > NAME_MAX_BYTES {
                return Err(Errno::NameTooLong);
            }
            let node = self.look_up(process, parent, name).await;
            if names.peek().is_none() {
                if path.ends_with('/') && node.is_some_and(|node| self.kind(node) == InodeKind::File) {
                    return Err(Errno::NotDirectory);
                }
                return Ok(Last { parent, name, node });
            }
            parent = node.ok_or(Errno::NoEntry)?;
        }
    }

    async fn look_up(&self, process: &Rc<Process>, parent: Vnode, name: &str) -> Option<Vnode> {
        self.spend(
            Context::Process(process),
            Stage::SystemCall,
            self.costs.name_lookup,
        )
        .await;
        let (place, size) = self.fs(parent.drive, |fs| {
            (
                fs.directory_lookup(parent.inode, name),
                fs.size_bytes(parent.inode),
            )
        });
        let to = place.map_or(size, |place| place.offset_bytes);
        self.scan_directory(process, parent, to).await;
        // Somebody may have changed the directory while this process slept.
        let place = self.fs(parent.drive, |fs| fs.directory_lookup(parent.inode, name));
        place.map(|place| Vnode {
            drive: parent.drive,
            inode: place.inode,
        })
    }

    pub(crate) fn kind(&self, node: Vnode) -> InodeKind {
        self.fs(node.drive, |fs| fs.kind(node.inode))
    }

    fn links(&self, node: Vnode) -> u32 {
        self.fs(node.drive, |fs| fs.links(node.inode))
    }

    async fn set_links(&self, process: &Rc<Process>, node: Vnode, links: u32) {
        self.change(node.drive, |fs| fs.set_links(node.inode, links));
        self.write_inode_block(process, node, When::Now).await;
    }

    /// Makes an empty file, or finds the one that is there; whether it was
    /// made.
    pub(crate) async fn create(
        &self,
        process: &Rc<Process>,
        path: &str,
        exclusive: bool,
    ) -> Result<(Found, bool)> {
        if matches!(path, "/dev/null" | "/dev/zero") {
            return self.find(process, path).await.map(|found| (found, false));
        }
        let last = match self.find_last(process, path).await {
            // The root of a file system is there, and is a directory.
            Err(Errno::Busy) => return Err(Errno::IsDirectory),
            last => last?,
        };
        if let Some(node) = last.node {
            return if exclusive {
                Err(Errno::Exists)
            } else {
                Ok((Found::Node(node), false))
            };
        }
        if path.ends_with('/') {
            return Err(Errno::IsDirectory);
        }
        self.lock(process, last.parent).await;
        let made = self.make_file(process, &last).await;
        self.unlock(last.parent);
        made.map(|node| (Found::Node(node), true))
    }

    async fn make_file(&self, process: &Rc<Process>, last: &Last<'_>) -> Result<Vnode> {
        let parent = (last.parent, last.name);
        let node = self
            .make_inode(process, last.parent, InodeKind::File)
            .await?;
        if let Err(errno) = self.enter_name(process, parent, node.inode).await {
            self.change(node.drive, |fs| fs.set_links(node.inode, 0));
            self.drop_inode(process, node).await;
            return Err(errno);
        }
        self.drop_inode(process, node).await;
        Ok(node)
    }

    /// unlink(2).
    pub(crate) async fn unlink(&self, process: &Rc<Process>, path: &str) -> Result<()> {
        let last = match self.find_last(process, path).await {
            Err(Errno::Busy) => return Err(Errno::IsDirectory),
            last => last?,
        };
        let node = last.node.ok_or(Errno::NoEntry)?;
        if self.kind(node) == InodeKind::Directory {
            return Err(Errno::IsDirectory);
        }
        self.lock(process, last.parent).await;
        self.take_inode(process, node).await;
        self.remove_name(process, (last.parent, last.name)).await;
        self.unlock(last.parent);
        let links = self.links(node) - 1;
        self.change(node.drive, |fs| fs.set_links(node.inode, links));
        self.in_core(node, |core| core.modified = true);
        self.drop_inode(process, node).await;
        Ok(())
    }

    /// mkdir(2).
    pub(crate) async fn mkdir(&self, process: &Rc<Process>, path: &str) -> Result<()> {
        let last = match self.find_last(process, path).await {
            Err(Errno::Busy) => return Err(Errno::Exists),
            last => last?,
        };
        if last.node.is_some() {
            return Err(Errno::Exists);
        }
        if self.links(last.parent) >= MOST_LINKS {
            return Err(Errno::TooManyLinks);
        }
        self.lock(process, last.parent).await;
        let made = self.make_directory(process, &last).await;
        self.unlock(last.parent);
        made
    }

    async fn make_directory(&self, process: &Rc<Process>, last: &Last<'_>) -> Result<()> {
        let parent = last.parent;
        let node = self
            .make_inode(process, parent, InodeKind::Directory)
            .await?;
        let chunk = super::ffs::DIRECTORY_CHUNK_BYTES;
        let mapped = self.map_for_writing(process, node, (0, chunk)).await;
        let entered = match mapped {
            Ok(_) => {
                self.change(node.drive, |fs| {
                    fs.directory_init(node.inode, parent.inode);
                    fs.set_links(node.inode, 2);
                });
                self.write_directory(process, node, 0).await;
                self.set_links(process, parent, self.links(parent) + 1).await;
                let entered = self.enter_name(process, (parent, last.name), node.inode).await;
                if entered.is_err() {
                    self.set_links(process, parent, self.links(parent) - 1).await;
                }
                entered
            }
            Err(errno) => Err(errno),
        };
        if entered.is_err() {
            self.change(node.drive, |fs| fs.set_links(node.inode, 0));
        }
        self.in_core(node, |core| core.modified = true);
        self.drop_inode(process, node).await;
        entered
    }

    /// rmdir(2).
    pub(crate) async fn rmdir(&self, process: &Rc<Process>, path: &str) -> Result<()> {
        match path.trim_end_matches('/').rsplit('/').next() {
            Some(".") => return Err(Errno::Invalid),
            Some("..") => return Err(Errno::NotEmpty),
            _ => {}
        }
        let last = self.find_last(process, path).await?;
        let node = last.node.ok_or(Errno::NoEntry)?;
        if self.kind(node) != InodeKind::Directory {
            return Err(Errno::NotDirectory);
        }
        if !self.fs(node.drive, |fs| fs.directory_is_empty(node.inode)) {
            return Err(Errno::NotEmpty);
        }
        self.lock(process, last.parent).await;
        self.take_inode(process, node).await;
        self.remove_name(process, (last.parent, last.name)).await;
        self.set_links(process, last.parent, self.links(last.parent) - 1).await;
        self.unlock(last.parent);
        self.change(node.drive, |fs| fs.set_links(node.inode, 0));
        self.drop_inode(process, node).await;
        Ok(())
    }

    /// rename(2).
    pub(crate) async fn rename(&self, process: &Rc<Process>, from: &str, to: &str) -> Result<()> {
        let source = self.find_last(process, from).await?;
        let node = source.node.ok_or(Errno::NoEntry)?;
        let target = self.find_last(process, to).await?;
        if source.parent.drive != target.parent.drive {
            return Err(Errno::CrossDevice);
        }
        if target.node == Some(node) {
            return Ok(());
        }
        let directory = self.kind(node) == InodeKind::Directory;
        if to.ends_with('/') && !directory {
            return Err(Errno::NotDirectory);
        }
        self.check_rename(node, directory, &target)?;
        self.take_inode(process, node).await;
        self.take_inode(process, target.parent).await;
        let renamed = self.move_name(process, (node, directory), &source, &target).await;
        self.drop_inode(process, target.parent).await;
        self.drop_inode(process, node).await;
        renamed
    }

    fn check_rename(&self, node: Vnode, directory: bool, target: &Last<'_>) -> Result<()> {
        if directory {
            let ancestry = self.fs(node.drive, |fs| fs.directory_ancestry(target.parent.inode));
            if ancestry.contains(&node.inode) {
                return Err(Errno::Invalid);
            }
        }
        let Some(old) = target.node else {
            return Ok(());
        };
        match (directory, self.kind(old) == InodeKind::Directory) {
            (true, false) => Err(Errno::NotDirectory),
            (false, true) => Err(Errno::IsDirectory),
            (true, true) if !self.fs(old.drive, |fs| fs.directory_is_empty(old.inode)) => {
                Err(Errno::NotEmpty)
            }
            _ => Ok(()),
        }
    }

    async fn move_name(
        &self,
        process: &Rc<Process>,
        (node, directory): (Vnode, bool),
        source: &Last<'_>,
        target: &Last<'_>,
    ) -> Result<()> {
        match target.node {
            Some(old) => self.replace_name(process, node, old, target).await,
            None => {
                let place = (target.parent, target.name);
                self.enter_name(process, place, node.inode).await?;
                if directory {
                    self.set_links(process, target.parent, self.links(target.parent) + 1).await;
                }
            }
        }
        self.remove_name(process, (source.parent, source.name)).await;
        if directory {
            self.set_links(process, source.parent, self.links(source.parent) - 1).await;
            self.change(node.drive, |fs| {
                fs.directory_replace(node.inode, "..", target.parent.inode)
            });
            self.write_directory(process, node, 0).await;
        }
        Ok(())
    }

    /// The name of `old` becomes the name of `node`. Where both are
    /// directories the parent keeps its link: `..` of the one that goes is
    /// replaced by `..` of the one that comes.
    async fn replace_name(&self, process: &Rc<Process>, node: Vnode, old: Vnode, target: &Last<'_>) {
        let directory = self.kind(old) == InodeKind::Directory;
        self.take_inode(process, old).await;
        let place = self.change(node.drive, |fs| {
            fs.directory_replace(target.parent.inode, target.name, node.inode)
        });
        let place = place.expect("the name was looked up");
        self.write_directory(process, target.parent, place.offset_bytes).await;
        let links = if directory { 0 } else { self.links(old) - 1 };
        self.change(old.drive, |fs| fs.set_links(old.inode, links));
        self.in_core(old, |core| core.modified = true);
        self.drop_inode(process, old).await;
    }

    /// The number of an inode of a mount, for looking at it from outside.
    pub(crate) fn root(drive: u32) -> (u32, InodeNumber) {
        (drive, FileSystem::ROOT)
    }
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty())
}
