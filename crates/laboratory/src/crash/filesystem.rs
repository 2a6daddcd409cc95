//! Files of the modelled drive, its marks and the media under check, for the kernel.

use super::disks::{Disks, PendingRequest};
use super::reply::PendingReply;
use diskperf_crash::{ReadError, RequestKind as Recorded};
use diskperf_serve::{RequestKind, ServedRequest};
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Duration for which the kernel may keep attributes: they never change.
const VALID: Duration = Duration::from_secs(3600);

/// Requests that the kernel sends at the same time; its own limit of 12 caps the queue depth.
const BACKGROUND_MAX: u16 = 256;
const WRITE_BYTES_MAX: u32 = 1 << 20;

/// Longest line of a mark, in bytes.
const MARK_BYTES_MAX: usize = 4096;

const MARKS_NODE: u64 = 2;
const DRIVE_NODE: u64 = 3;
const SLOT_NODE_MIN: u64 = 4;

/// Name of the file that takes marks.
pub(super) const MARKS_NAME: &str = "marks";
/// Name of the modelled drive's file.
pub(super) const DRIVE_NAME: &str = "drive";

/// Returns the name of a slot's file.
pub(super) fn slot_name(slot: usize) -> String {
    format!("medium-{slot}")
}

/// File that a request is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Node {
    Root,
    Marks,
    Drive,
    Slot(usize),
}

/// File system with one directory.
pub(super) struct DiskFiles {
    disks: Arc<Disks>,
}

impl DiskFiles {
    pub(super) fn new(disks: Arc<Disks>) -> Self {
        Self { disks }
    }

    fn node(&self, number: INodeNo) -> Option<Node> {
        match number.0 {
            1 => Some(Node::Root),
            MARKS_NODE => Some(Node::Marks),
            DRIVE_NODE => Some(Node::Drive),
            number => {
                let slot = number.checked_sub(SLOT_NODE_MIN)? as usize;
                (slot < self.disks.slot_count()).then_some(Node::Slot(slot))
            }
        }
    }

    fn attributes(&self, number: INodeNo) -> Option<FileAttr> {
        let size = match self.node(number)? {
            Node::Root | Node::Marks => 0,
            Node::Drive | Node::Slot(_) => self.disks.size_bytes,
        };
        let is_root = number == INodeNo::ROOT;
        let (kind, perm) = match is_root {
            true => (FileType::Directory, 0o700),
            false => (FileType::RegularFile, 0o600),
        };
        Some(FileAttr {
            ino: number,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: self.disks.unit_bytes,
            flags: 0,
        })
    }

    /// Records the lines that a workload writes to the file of marks.
    fn mark(&self, data: &[u8]) -> Result<(), Errno> {
        for name in marks_in(data)? {
            self.disks.with_recording(|recording| recording.mark(name));
        }
        Ok(())
    }

    fn change_drive(
        &self,
        kind: RequestKind,
        offset: u64,
        bytes: u64,
        data: &[u8],
        reply: PendingReply,
    ) {
        let recorded = self.disks.with_recording(|recording| match kind {
            RequestKind::Flush => Ok(Some(recording.submit_flush())),
            RequestKind::Write => recording.submit_write(offset, data, false).map(Some),
            RequestKind::Trim => {
                let submitted = recording.submit_zeroes(Recorded::Trim, offset, bytes, false);
                submitted.map(Some)
            }
            RequestKind::WriteZeroes => {
                let kind = Recorded::WriteZeroes;
                recording
                    .submit_zeroes(kind, offset, bytes, false)
                    .map(Some)
            }
            RequestKind::Read | RequestKind::Cache => Ok(None),
        });
        let recorded = match recorded {
            Some(Ok(recorded)) => recorded,
            Some(Err(_)) => return reply.fail(Errno::EINVAL),
            None => return reply.fail(Errno::EIO),
        };
        let request = ServedRequest {
            kind,
            offset,
            bytes,
            fua: false,
        };
        self.disks
            .submit(request, PendingRequest { recorded, reply });
    }
}

/// Returns the marks in lines that a workload writes to the file of marks.
pub(super) fn marks_in(data: &[u8]) -> Result<Vec<&str>, Errno> {
    let text = std::str::from_utf8(data).map_err(|_| Errno::EINVAL)?;
    if data.len() > MARK_BYTES_MAX {
        return Err(Errno::EINVAL);
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let names = lines.map(|line| line.strip_prefix("durable ").map(str::trim));
    names.collect::<Option<_>>().ok_or(Errno::EINVAL)
}

impl Filesystem for DiskFiles {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Smaller limits of the kernel's cost time alone.
        let _ = config.set_max_write(WRITE_BYTES_MAX);
        let _ = config.set_max_background(BACKGROUND_MAX);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let slots = (0..self.disks.slot_count() as u64).map(|slot| SLOT_NODE_MIN + slot);
        let number = match name.to_str() {
            _ if parent != INodeNo::ROOT => None,
            Some(MARKS_NAME) => Some(MARKS_NODE),
            Some(DRIVE_NAME) => Some(DRIVE_NODE),
            Some(name) => {
                let mut named = slots
                    .enumerate()
                    .filter(|(slot, _)| slot_name(*slot) == name);
                named.next().map(|(_, number)| number)
            }
            None => None,
        };
        match number.and_then(|number| self.attributes(INodeNo(number))) {
            Some(attributes) => reply.entry(&VALID, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(number) {
            Some(attributes) => reply.attr(&VALID, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        _mode: Option<u32>,
        _user: Option<u32>,
        _group: Option<u32>,
        _size_bytes: Option<u64>,
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
        // A shell truncates the file of marks with `>`; nothing else has anything to change.
        match self.attributes(number) {
            Some(attributes) => reply.attr(&VALID, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
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
        let left = self.disks.size_bytes.saturating_sub(offset);
        let bytes = u64::from(size).min(left) as u32;
        match self.node(number) {
            Some(Node::Drive) => {
                let reply = PendingReply::Read {
                    reply,
                    offset,
                    bytes,
                };
                self.change_drive(RequestKind::Read, offset, u64::from(bytes), &[], reply);
            }
            Some(Node::Slot(slot)) => {
                let mut buffer = vec![0; bytes as usize];
                let read = self
                    .disks
                    .with_medium(slot, |medium| medium.read(offset, &mut buffer));
                match read {
                    // An empty slot reads as zeroes, for whoever looks for signatures.
                    None | Some(Ok(())) => reply.data(&buffer),
                    Some(Err(ReadError::Unreadable(_))) => reply.error(Errno::EIO),
                    Some(Err(ReadError::OutOfRange(_))) => reply.error(Errno::EINVAL),
                }
            }
            Some(Node::Marks) => reply.data(&[]),
            _ => reply.error(Errno::EISDIR),
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
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let bytes = data.len() as u32;
        match self.node(number) {
            Some(Node::Drive) => {
                let reply = PendingReply::Write { reply, bytes };
                self.change_drive(RequestKind::Write, offset, u64::from(bytes), data, reply);
            }
            Some(Node::Slot(slot)) => {
                match self
                    .disks
                    .with_medium(slot, |medium| medium.write(offset, data))
                {
                    Some(Ok(())) => reply.written(bytes),
                    Some(Err(_)) => reply.error(Errno::EINVAL),
                    None => reply.error(Errno::EIO),
                }
            }
            Some(Node::Marks) => match self.mark(data) {
                Ok(()) => reply.written(bytes),
                Err(error) => reply.error(error),
            },
            _ => reply.error(Errno::EISDIR),
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
        match self.node(number) {
            Some(Node::Drive) => {
                self.change_drive(RequestKind::Flush, 0, 0, &[], PendingReply::Empty(reply));
            }
            _ => reply.ok(),
        }
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
        /// Modes of fallocate(2) that make a range zero.
        const PUNCH_HOLE: i32 = 2;
        const ZERO_RANGE: i32 = 16;
        if mode & (PUNCH_HOLE | ZERO_RANGE) == 0 {
            return reply.error(Errno::EOPNOTSUPP);
        }
        match self.node(number) {
            Some(Node::Drive) => {
                let kind = match mode & PUNCH_HOLE {
                    0 => RequestKind::WriteZeroes,
                    _ => RequestKind::Trim,
                };
                self.change_drive(kind, offset, length, &[], PendingReply::Empty(reply));
            }
            Some(Node::Slot(slot)) => {
                match self
                    .disks
                    .with_medium(slot, |medium| medium.zero(offset, length))
                {
                    Some(Ok(())) => reply.ok(),
                    Some(Err(_)) => reply.error(Errno::EINVAL),
                    None => reply.error(Errno::EIO),
                }
            }
            _ => reply.error(Errno::EOPNOTSUPP),
        }
    }
}
