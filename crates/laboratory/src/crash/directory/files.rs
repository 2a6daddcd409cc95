//! The recorded directory and the file of marks, for the kernel.

use super::super::disks::lock;
use super::super::filesystem::marks_in;
use crate::LaboratoryError;
use diskperf_crash::directory::{
    DirectoryError, DirectoryRecording, EntryName, Node, NodeId, RenameTarget,
};
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Duration for which the kernel may keep attributes and names: it makes every change itself.
const VALID: Duration = Duration::from_secs(1);

/// Space of the file system, in bytes. All that is ever written is kept in memory.
pub(super) const SPACE_BYTES: u64 = 4 << 30;
const BLOCK_BYTES: u64 = 4096;

/// Flag of an open file whose writes are durable when they return.
const O_DSYNC: i32 = 0o10000;

const MARKS_NODE: u64 = 2;

/// Node of the recorded directory.
pub(super) const ROOT_OF_FILES: NodeId = NodeId(3);
/// Name of the file that takes marks.
pub(super) const MARKS_NAME: &str = "marks";
/// Name of the recorded directory.
pub(super) const FILES_NAME: &str = "files";

/// File system with the recorded directory and the file of marks.
pub(super) struct RecordedFiles {
    recording: Arc<Mutex<Option<DirectoryRecording>>>,
    user: u32,
    group: u32,
}

fn errno(error: DirectoryError) -> Errno {
    match error {
        DirectoryError::NotFound => Errno::ENOENT,
        DirectoryError::Exists => Errno::EEXIST,
        DirectoryError::NotEmpty => Errno::ENOTEMPTY,
        DirectoryError::NotADirectory => Errno::ENOTDIR,
        DirectoryError::NotAFile => Errno::EINVAL,
        DirectoryError::NoSpace => Errno::ENOSPC,
    }
}

fn entry(parent: INodeNo, name: &OsStr) -> EntryName {
    EntryName {
        directory: NodeId(parent.0),
        name: name.to_owned(),
    }
}

/// Type of a node with its size, permissions and number of names.
struct NodeAttributes {
    kind: FileType,
    size: u64,
    mode: u32,
    names: u32,
}

/// Name in the listing of a directory.
struct ListedName {
    node: u64,
    kind: FileType,
    name: OsString,
}

impl ListedName {
    fn new(node: u64, kind: FileType, name: &OsStr) -> Self {
        let name = name.to_owned();
        Self { node, kind, name }
    }
}

impl RecordedFiles {
    pub(super) fn new(
        recording: Arc<Mutex<Option<DirectoryRecording>>>,
        directory: &Path,
    ) -> Result<Self, LaboratoryError> {
        let metadata = std::fs::metadata(directory).map_err(LaboratoryError::work)?;
        Ok(Self {
            recording,
            user: metadata.uid(),
            group: metadata.gid(),
        })
    }

    /// Runs an operation of the recording, which ends with the workload.
    fn apply<T>(
        &self,
        act: impl FnOnce(&mut DirectoryRecording) -> Result<T, DirectoryError>,
    ) -> Result<T, Errno> {
        match lock(&self.recording).as_mut() {
            Some(recording) => act(recording).map_err(errno),
            None => Err(Errno::EIO),
        }
    }

    fn node_attributes(&self, number: INodeNo) -> Result<NodeAttributes, Errno> {
        let fixed = |kind, mode| NodeAttributes {
            kind,
            size: 0,
            mode,
            names: 1,
        };
        match number.0 {
            1 => return Ok(fixed(FileType::Directory, 0o700)),
            MARKS_NODE => return Ok(fixed(FileType::RegularFile, 0o600)),
            _ => {}
        }
        self.apply(|recording| {
            let node = NodeId(number.0);
            let (kind, size, mode) = match recording.node(node) {
                Some(Node::File { size, mode, .. }) => (FileType::RegularFile, *size, *mode),
                Some(Node::Directory { mode, .. }) => (FileType::Directory, 0, *mode),
                Some(Node::Link(target)) => {
                    let length = target.as_os_str().len() as u64;
                    (FileType::Symlink, length, 0o777)
                }
                None => return Err(DirectoryError::NotFound),
            };
            let names = match kind {
                FileType::Directory => 2,
                _ => recording.link_count(node),
            };
            Ok(NodeAttributes {
                kind,
                size,
                mode,
                names,
            })
        })
    }

    fn attributes(&self, number: INodeNo) -> Result<FileAttr, Errno> {
        let node = self.node_attributes(number)?;
        Ok(FileAttr {
            ino: number,
            size: node.size,
            blocks: node.size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: node.kind,
            perm: node.mode as u16,
            nlink: node.names,
            uid: self.user,
            gid: self.group,
            rdev: 0,
            blksize: BLOCK_BYTES as u32,
            flags: 0,
        })
    }

    /// Refuses new names beside the recorded directory.
    fn require_recorded(parent: INodeNo) -> Result<(), Errno> {
        match parent == INodeNo::ROOT {
            true => Err(Errno::EPERM),
            false => Ok(()),
        }
    }

    fn remove_entry(&self, parent: INodeNo, name: &OsStr) -> Result<(), Errno> {
        Self::require_recorded(parent)?;
        self.apply(|recording| recording.remove(entry(parent, name)))
    }

    fn create_node(&self, parent: INodeNo, name: &OsStr, node: Node) -> Result<FileAttr, Errno> {
        Self::require_recorded(parent)?;
        let node = self.apply(|recording| recording.create(entry(parent, name), node))?;
        self.attributes(INodeNo(node.0))
    }

    fn look_up(&self, parent: INodeNo, name: &OsStr) -> Result<FileAttr, Errno> {
        let number = match parent == INodeNo::ROOT {
            true if name == MARKS_NAME => MARKS_NODE,
            true if name == FILES_NAME => ROOT_OF_FILES.0,
            true => return Err(Errno::ENOENT),
            false => {
                let parent = NodeId(parent.0);
                self.apply(|recording| recording.look_up(parent, name))?.0
            }
        };
        self.attributes(INodeNo(number))
    }

    fn change_size(&self, number: INodeNo, size: u64) -> Result<(), Errno> {
        match number.0 {
            // A shell truncates the file of marks with `>`.
            MARKS_NODE => Ok(()),
            number => self.apply(|recording| recording.truncate(NodeId(number), size)),
        }
    }

    fn listing(&self, number: INodeNo) -> Result<Vec<ListedName>, Errno> {
        if number == INodeNo::ROOT {
            let marks = ListedName::new(MARKS_NODE, FileType::RegularFile, MARKS_NAME.as_ref());
            let files = ListedName::new(ROOT_OF_FILES.0, FileType::Directory, FILES_NAME.as_ref());
            return Ok(vec![marks, files]);
        }
        self.apply(|recording| {
            let Some(Node::Directory { names, .. }) = recording.node(NodeId(number.0)) else {
                return Err(DirectoryError::NotADirectory);
            };
            let listed = names.iter().map(|(name, node)| {
                let kind = match recording.node(*node) {
                    Some(Node::Directory { .. }) => FileType::Directory,
                    Some(Node::Link(_)) => FileType::Symlink,
                    Some(Node::File { .. }) | None => FileType::RegularFile,
                };
                ListedName::new(node.0, kind, name)
            });
            Ok(listed.collect())
        })
    }
}

fn new_file(mode: u32) -> Node {
    Node::File {
        size: 0,
        pages: BTreeMap::new(),
        mode: mode & 0o7777,
    }
}

fn reply_entry(reply: ReplyEntry, result: Result<FileAttr, Errno>) {
    match result {
        Ok(attributes) => reply.entry(&VALID, &attributes, Generation(0)),
        Err(error) => reply.error(error),
    }
}

fn reply_empty(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for RecordedFiles {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        reply_entry(reply, self.look_up(parent, name));
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(number) {
            Ok(attributes) => reply.attr(&VALID, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        _user: Option<u32>,
        _group: Option<u32>,
        size: Option<u64>,
        _accessed: Option<TimeOrNow>,
        _modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        _: Option<FileHandle>,
        _created: Option<SystemTime>,
        _checked: Option<SystemTime>,
        _saved: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let changed = size.map_or(Ok(()), |size| self.change_size(number, size));
        let changed = changed.and_then(|()| match mode {
            Some(mode) => self.apply(|recording| {
                recording.set_mode(NodeId(number.0), mode & 0o7777);
                Ok(())
            }),
            None => Ok(()),
        });
        match changed.and_then(|()| self.attributes(number)) {
            Ok(attributes) => reply.attr(&VALID, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        let target = self.apply(|recording| match recording.node(NodeId(number.0)) {
            Some(Node::Link(target)) => Ok(target.clone()),
            _ => Err(DirectoryError::NotAFile),
        });
        match target {
            Ok(target) => reply.data(target.as_os_str().as_bytes()),
            Err(error) => reply.error(error),
        }
    }

    fn mknod(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _device: u32,
        reply: ReplyEntry,
    ) {
        /// Bits of a mode with the type of a file, and those of a regular file.
        const TYPE: u32 = 0o170_000;
        const REGULAR: u32 = 0o100_000;
        match mode & TYPE {
            0 | REGULAR => reply_entry(reply, self.create_node(parent, name, new_file(mode))),
            _ => reply.error(Errno::EPERM),
        }
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        match self.create_node(parent, name, new_file(mode)) {
            Ok(attributes) => {
                let flags = FopenFlags::empty();
                reply.created(&VALID, &attributes, Generation(0), FileHandle(0), flags);
            }
            Err(error) => reply.error(error),
        }
    }

    fn mkdir(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let node = Node::Directory {
            names: BTreeMap::new(),
            mode: mode & 0o7777,
        };
        reply_entry(reply, self.create_node(parent, name, node));
    }

    fn symlink(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let node = Node::Link(target.to_owned());
        reply_entry(reply, self.create_node(parent, name, node));
    }

    fn link(&self, _: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let linked = Self::require_recorded(parent).and_then(|()| {
            self.apply(|recording| recording.link(NodeId(number.0), entry(parent, name)))?;
            self.attributes(number)
        });
        reply_entry(reply, linked);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply_empty(reply, self.remove_entry(parent, name));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply_empty(reply, self.remove_entry(parent, name));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let target = match flags {
            flags if flags.is_empty() => RenameTarget::Replace,
            RenameFlags::RENAME_NOREPLACE => RenameTarget::Keep,
            _ => return reply.error(Errno::EINVAL),
        };
        let recorded =
            Self::require_recorded(parent).and_then(|()| Self::require_recorded(new_parent));
        let renamed = recorded.and_then(|()| {
            let (old, new) = (entry(parent, name), entry(new_parent, new_name));
            self.apply(|recording| recording.rename(old, new, target))
        });
        reply_empty(reply, renamed);
    }

    fn open(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // A mark is recorded before its write returns.
        let flags = match number.0 {
            MARKS_NODE => FopenFlags::FOPEN_DIRECT_IO,
            _ => FopenFlags::FOPEN_KEEP_CACHE,
        };
        reply.opened(FileHandle(0), flags);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let node = NodeId(number.0);
        let data = match number.0 {
            MARKS_NODE => Ok(Vec::new()),
            _ => self.apply(|recording| recording.read(node, offset, u64::from(size))),
        };
        match data {
            Ok(data) => reply.data(&data),
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = match number.0 {
            MARKS_NODE => marks_in(data).and_then(|marks| {
                self.apply(|recording| {
                    marks.iter().for_each(|mark| recording.mark(mark));
                    Ok(())
                })
            }),
            number => {
                let is_durable = flags.0 & O_DSYNC != 0;
                self.apply(|recording| recording.write(NodeId(number), offset, data, is_durable))
            }
        };
        match written {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error),
        }
    }

    fn fsync(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        _only_data: bool,
        reply: ReplyEmpty,
    ) {
        if number.0 == MARKS_NODE {
            return reply.ok();
        }
        match self.apply(|recording| Ok(recording.sync(NodeId(number.0)))) {
            Ok(true) => reply.ok(),
            Ok(false) => reply.error(Errno::EIO),
            Err(error) => reply.error(error),
        }
    }

    fn fsyncdir(
        &self,
        request: &Request,
        number: INodeNo,
        handle: FileHandle,
        only_data: bool,
        reply: ReplyEmpty,
    ) {
        self.fsync(request, number, handle, only_data, reply);
    }

    fn fallocate(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        /// Mode of fallocate(2) that leaves the size.
        const KEEP_SIZE: i32 = 1;
        let end = offset.saturating_add(length);
        let node = NodeId(number.0);
        let allocated = match mode {
            KEEP_SIZE => Ok(()),
            0 => self.apply(|recording| match recording.node(node) {
                Some(Node::File { size, .. }) if *size < end => recording.truncate(node, end),
                _ => Ok(()),
            }),
            // Programs write the zeroes themselves then.
            _ => Err(Errno::EOPNOTSUPP),
        };
        reply_empty(reply, allocated);
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let listed = match self.listing(number) {
            Ok(listed) => listed,
            Err(error) => return reply.error(error),
        };
        let dots =
            [".", ".."].map(|name| ListedName::new(number.0, FileType::Directory, name.as_ref()));
        let all = dots.into_iter().chain(listed).zip(1..);
        for (listed, next) in all.skip(offset as usize) {
            if reply.add(INodeNo(listed.node), next, listed.kind, listed.name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let free_bytes = match self.apply(|recording| Ok(recording.free_bytes())) {
            Ok(free_bytes) => free_bytes,
            Err(error) => return reply.error(error),
        };
        let (blocks, free) = (SPACE_BYTES / BLOCK_BYTES, free_bytes / BLOCK_BYTES);
        let (files, block_bytes) = (1 << 20, BLOCK_BYTES as u32);
        reply.statfs(
            blocks,
            free,
            free,
            files,
            files,
            block_bytes,
            255,
            block_bytes,
        );
    }
}
