//! What the kernel asks for, passed on to the folder.

use crate::nodes::{Nodes, attributes, path};
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::{Advice, fadvise, fallocate, fstatvfs, mkdirat, open, openat, renameat_with};
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT,
    Uid, chmodat, chownat, unlinkat, utimensat,
};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::{DirEntryExt, FileExt};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long the kernel may rely on an attribute: nothing else changes the folder.
const VALID: Duration = Duration::from_secs(1);

/// Of the memory of a transfer past the page cache.
const ALIGNMENT: usize = 4096;

/// What the kernel keeps of files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cache {
    /// Pages of this file system; none of the folder's.
    Kept,
    /// Nothing: each call is a request.
    None,
}

/// What is done to reads, writes and syncs besides what the folder does.
pub(crate) trait Treatment: Send + Sync + 'static {
    /// Before the folder is asked; an error is the answer in its place.
    fn before(&self, _: Operation) -> io::Result<()> {
        Ok(())
    }

    /// After that, of a request of so many bytes that began then.
    fn after(&self, _begin: Instant, _bytes: usize) {}
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Read,
    Write,
    Sync,
}

/// A folder, with a treatment.
pub(crate) struct Treated<T> {
    nodes: Nodes,
    cache: Cache,
    treatment: T,
    open: Mutex<HashMap<u64, Arc<File>>>,
    next: AtomicU64,
}

impl<T: Treatment> Treated<T> {
    /// Of a folder.
    pub(crate) fn new(folder: &str, cache: Cache, treatment: T) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            nodes: Nodes::new(open(folder, flags, Mode::empty())?),
            cache,
            treatment,
            open: Mutex::default(),
            next: AtomicU64::new(1),
        })
    }

    fn file(&self, handle: FileHandle) -> io::Result<Arc<File>> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(open
            .get(&handle.0)
            .cloned()
            .ok_or(rustix::io::Errno::BADF)?)
    }

    /// Keeps an open file for the kernel.
    fn opened(&self, file: File) -> io::Result<(FileHandle, FopenFlags)> {
        if self.cache == Cache::Kept {
            // No more is read than what is asked for, since none of it is kept.
            fadvise(&file, 0, None, Advice::Random)?;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(number, Arc::new(file));
        let flags = match self.cache {
            Cache::Kept => FopenFlags::FOPEN_KEEP_CACHE,
            Cache::None => FopenFlags::FOPEN_DIRECT_IO,
        };
        Ok((FileHandle(number), flags))
    }

    fn attributes(&self, number: INodeNo) -> io::Result<FileAttr> {
        let attributes = attributes(&*self.nodes.place(number)?)?;
        // The root has a number of its own.
        Ok(FileAttr {
            ino: number,
            ..attributes
        })
    }

    fn created(
        &self,
        (parent, name): (INodeNo, &OsStr),
        mode: u32,
        flags: i32,
    ) -> io::Result<(FileAttr, FileHandle, FopenFlags)> {
        let flags = OFlags::from_bits_retain(flags as u32) | OFlags::CREATE | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode);
        let file = openat(&self.nodes.place(parent)?, name, flags, mode)?;
        let attributes = self.nodes.entry(parent, name)?;
        let (handle, flags) = self.opened(file.into())?;
        Ok((attributes, handle, flags))
    }

    fn open_at(&self, number: INodeNo, flags: i32) -> io::Result<(FileHandle, FopenFlags)> {
        let flags = OFlags::from_bits_retain(flags as u32) | OFlags::CLOEXEC;
        let file = open(path(&self.nodes.place(number)?), flags, Mode::empty())?;
        self.opened(file.into())
    }

    fn entries(&self, number: INodeNo) -> io::Result<Vec<(INodeNo, FileType, OsString)>> {
        let place = path(&self.nodes.place(number)?);
        let here = [".", ".."].map(|name| (number, FileType::Directory, name.into()));
        let mut entries = Vec::from(here);
        for entry in std::fs::read_dir(place)? {
            let entry = entry?;
            let kind = FileType::from_std(entry.file_type()?).unwrap_or(FileType::RegularFile);
            entries.push((INodeNo(entry.ino()), kind, entry.file_name()));
        }
        Ok(entries)
    }

    /// Fills the buffer as far as the file goes.
    fn fill(&self, handle: FileHandle, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let file = self.file(handle)?;
        let mut done = 0;
        while done < buffer.len() {
            match file.read_at(&mut buffer[done..], offset + done as u64)? {
                0 => break,
                read => done += read,
            }
        }
        if self.cache == Cache::Kept {
            let length = NonZeroU64::new(buffer.len() as u64);
            fadvise(&*file, offset, length, Advice::DontNeed)?;
        }
        Ok(done)
    }

    fn change(&self, number: INodeNo, change: &Change) -> io::Result<FileAttr> {
        let place = self.nodes.place(number)?;
        if let Some(mode) = change.mode {
            let mode = Mode::from_raw_mode(mode);
            chmodat(CWD, path(&place), mode, AtFlags::empty())?;
        }
        if change.user.is_some() || change.group.is_some() {
            let (user, group) = (
                change.user.map(Uid::from_raw),
                change.group.map(Gid::from_raw),
            );
            chownat(&*place, "", user, group, AtFlags::EMPTY_PATH)?;
        }
        if let Some(bytes) = change.size_bytes {
            let file = OpenOptions::new().write(true).open(path(&place))?;
            file.set_len(bytes)?;
        }
        if change.accessed.is_some() || change.modified.is_some() {
            let times = Timestamps {
                last_access: timespec(change.accessed),
                last_modification: timespec(change.modified),
            };
            utimensat(CWD, path(&place), &times, AtFlags::empty())?;
        }
        self.attributes(number)
    }
}

/// What is to be changed of a file.
struct Change {
    mode: Option<u32>,
    user: Option<u32>,
    group: Option<u32>,
    size_bytes: Option<u64>,
    accessed: Option<TimeOrNow>,
    modified: Option<TimeOrNow>,
}

fn timespec(time: Option<TimeOrNow>) -> Timespec {
    let (tv_sec, tv_nsec) = match time {
        None => (0, UTIME_OMIT),
        Some(TimeOrNow::Now) => (0, UTIME_NOW),
        Some(TimeOrNow::SpecificTime(time)) => {
            let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
            (since.as_secs() as i64, since.subsec_nanos().into())
        }
    };
    Timespec { tv_sec, tv_nsec }
}

/// Replies with what a block gives, or with its error.
macro_rules! answer {
    ($reply:ident, $result:expr, $found:pat => $answer:expr) => {
        match $result {
            Ok($found) => $answer,
            Err(error) => $reply.error(Errno::from(io::Error::from(error))),
        }
    };
}

impl<T: Treatment> Filesystem for Treated<T> {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let entry = self.nodes.entry(parent, name);
        answer!(reply, entry, entry => reply.entry(&VALID, &entry, Generation(0)));
    }

    fn forget(&self, _: &Request, number: INodeNo, lookups: u64) {
        self.nodes.forget(number, lookups);
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        answer!(reply, self.attributes(number), found => reply.attr(&VALID, &found));
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
        size_bytes: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        _: Option<FileHandle>,
        _created: Option<SystemTime>,
        _checked: Option<SystemTime>,
        _saved: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let change = Change {
            mode,
            user,
            group,
            size_bytes,
            accessed,
            modified,
        };
        answer!(reply, self.change(number, &change), found => reply.attr(&VALID, &found));
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
        let made = self.nodes.place(parent).and_then(|place| {
            mkdirat(&*place, name, Mode::from_raw_mode(mode))?;
            self.nodes.entry(parent, name)
        });
        answer!(reply, made, entry => reply.entry(&VALID, &entry, Generation(0)));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let place = self.nodes.place(parent);
        let gone = place.and_then(|place| Ok(unlinkat(&*place, name, AtFlags::empty())?));
        answer!(reply, gone, () => reply.ok());
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let place = self.nodes.place(parent);
        let gone = place.and_then(|place| Ok(unlinkat(&*place, name, AtFlags::REMOVEDIR)?));
        answer!(reply, gone, () => reply.ok());
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
        let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
        let renamed = self.nodes.place(parent).and_then(|from| {
            let to = self.nodes.place(new_parent)?;
            Ok(renameat_with(&*from, name, &*to, new_name, flags)?)
        });
        answer!(reply, renamed, () => reply.ok());
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let created = self.created((parent, name), mode, flags);
        answer!(reply, created, (entry, handle, flags) => {
            reply.created(&VALID, &entry, Generation(0), handle, flags);
        });
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        answer!(reply, self.open_at(number, flags.0), (handle, flags) => {
            reply.opened(handle, flags);
        });
    }

    fn release(
        &self,
        _: &Request,
        _number: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(&handle.0);
        reply.ok();
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn read(
        &self,
        _: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let begin = Instant::now();
        let mut memory = vec![0; size as usize + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        let buffer = &mut memory[start..start + size as usize];
        let ready = self.treatment.before(Operation::Read);
        let filled = ready.and_then(|()| self.fill(handle, offset, buffer));
        self.treatment.after(begin, size as usize);
        answer!(reply, filled, bytes => reply.data(&buffer[..bytes]));
    }

    fn write(
        &self,
        _: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let begin = Instant::now();
        // The kernel's pages are aligned as a file without page cache needs; these are not.
        let mut memory = vec![0; data.len() + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        let aligned = &mut memory[start..start + data.len()];
        aligned.copy_from_slice(data);
        let ready = self.treatment.before(Operation::Write);
        let file = ready.and_then(|()| self.file(handle));
        let written = file.and_then(|file| file.write_all_at(aligned, offset));
        self.treatment.after(begin, data.len());
        answer!(reply, written, () => reply.written(data.len() as u32));
    }

    fn fsync(
        &self,
        _: &Request,
        _number: INodeNo,
        handle: FileHandle,
        only_data: bool,
        reply: ReplyEmpty,
    ) {
        let begin = Instant::now();
        let ready = self.treatment.before(Operation::Sync);
        let file = ready.and_then(|()| self.file(handle));
        let synced = file.and_then(|file| match only_data {
            true => file.sync_data(),
            false => file.sync_all(),
        });
        self.treatment.after(begin, 0);
        answer!(reply, synced, () => reply.ok());
    }

    fn fallocate(
        &self,
        _: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let mode = FallocateFlags::from_bits_retain(mode as u32);
        let file = self.file(handle);
        let allocated = file.and_then(|file| Ok(fallocate(&*file, mode, offset, length)?));
        answer!(reply, allocated, () => reply.ok());
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        answer!(reply, self.entries(number), entries => {
            for (at, (number, kind, name)) in entries.into_iter().enumerate().skip(offset as usize) {
                if reply.add(number, at as u64 + 1, kind, name) {
                    break;
                }
            }
            reply.ok();
        });
    }

    fn fsyncdir(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        _only_data: bool,
        reply: ReplyEmpty,
    ) {
        let place = self.nodes.place(number);
        let synced = place.and_then(|place| File::open(path(&place))?.sync_all());
        answer!(reply, synced, () => reply.ok());
    }

    fn statfs(&self, _: &Request, number: INodeNo, reply: ReplyStatfs) {
        let place = self.nodes.place(number);
        let found = place.and_then(|place| Ok(fstatvfs(&*place)?));
        answer!(reply, found, of => reply.statfs(
            of.f_blocks,
            of.f_bfree,
            of.f_bavail,
            of.f_files,
            of.f_ffree,
            of.f_bsize as u32,
            of.f_namemax as u32,
            of.f_frsize as u32,
        ));
    }
}
