//! File server of Minix, which handles one system call after the other.

use super::super::pipe::PipeEnd;
use super::Minix;
use super::blocks::Work;
use super::cache::Memory;
use super::descriptors::{Descriptor, Descriptors, What};
use super::layout::Kind;
use super::message::{Accepts, Body, Call, Device, Endpoint, Reply};
use super::read_write::{Cached, device_of};
use crate::calls::{From, How};
use crate::errno::{Errno, Result};
use diskperf_timeline::Stage;
use std::rc::Rc;

/// Largest file position under Minix, where programs have a signed 32-bit offset.
pub(super) const MOST_POSITION: u64 = i32::MAX as u64;

impl Minix {
    /// Runs the file server, which receives system calls, performs them and replies. It never ends.
    pub(super) async fn file_server(self: Rc<Self>) {
        let me = self.party(Endpoint::FileServer);
        self.begin(&me.process).await;
        loop {
            let message = self.receive(&me, Accepts::Any).await;
            let (
                Body::Call(call),
                Endpoint::Program(caller)
                | Endpoint::Daemon {
                    program: caller, ..
                },
            ) = (message.body, message.from)
            else {
                panic!("the file server is called by programs")
            };
            let work = Work {
                kernel: &self,
                me: &me,
                errand: &message.errand,
            };
            work.spend(Stage::SystemCall, self.config.call).await;
            let reply = work.serve(caller, call).await;
            let reply = Body::Reply(reply);
            self.send(&me, message.from, &message.errand, reply).await;
        }
    }
}

impl Work<'_> {
    async fn serve(&self, caller: usize, call: Call) -> Reply {
        let done = match call {
            Call::Read { file, at, memory } => {
                return self.read((caller, file), at, &memory).await;
            }
            Call::Write { file, at, memory } => {
                return self.write((caller, file), at, &memory).await;
            }
            Call::Open { path, how } => self.open(caller, &path, how).await,
            Call::Seek { file, offset, from } => self.seek(caller, file, (offset, from)),
            Call::Length { file } => self.length(caller, file),
            Call::Close { file } => self.close(caller, file).await,
            Call::CloseAll => self.close_all(caller).await,
            Call::TakePipe(end) => Ok(self.take_pipe(caller, end)),
            Call::Stat { path } => self.stat(&path).await,
            Call::Unlink { path } => self.unlink(&path, false).await.map(|()| 0),
            Call::Rmdir { path } => self.unlink(&path, true).await.map(|()| 0),
            Call::Mkdir { path } => self.mkdir(&path).await.map(|()| 0),
            Call::Rename { from, to } => self.rename(&from, &to).await.map(|()| 0),
            Call::ChangeAttributes { path } => self.change_attributes(&path).await.map(|()| 0),
            Call::Sync => self.sync_all().await,
            Call::None => Err(super::tasks::NO_SUCH_CALL),
            Call::DropCached { path } => self.drop_path(&path).await,
            Call::DropAll => self.drop_all().await,
            Call::Resident { path, length } => self.resident_path(&path, length).await,
        };
        Reply::Done(done)
    }

    fn descriptors<T>(&self, caller: usize, using: impl FnOnce(&mut Descriptors) -> T) -> T {
        self.server(|server| using(server.descriptors.entry(caller).or_default()))
    }

    fn descriptor(&self, caller: usize, file: usize) -> Result<Descriptor> {
        self.descriptors(caller, |all| all.get(file).cloned())
    }

    fn move_to(&self, caller: usize, file: usize, position: u64) {
        self.descriptors(caller, |all| {
            if let Ok(descriptor) = all.get(file) {
                descriptor.position = position;
            }
        });
    }

    /// Returns the device that a path in `/dev` names; `None` for any other path. `direct` selects
    /// the character device of a drive.
    fn device_named(&self, path: &str, direct: bool) -> Result<Option<What>> {
        if let Some(number) = path.strip_prefix("/dev/drive") {
            let drive: u32 = number.parse().map_err(|_| Errno::NoEntry)?;
            if drive as usize >= self.kernel.volumes.count() {
                return Err(Errno::NoEntry);
            }
            return Ok(Some(if direct {
                What::Character(Device::Drive(drive))
            } else {
                What::Block(Some(drive))
            }));
        }
        Ok(match path {
            "/dev/null" => Some(What::Character(Device::Null)),
            "/dev/bnull" => Some(What::Block(None)),
            _ => None,
        })
    }

    async fn open(&self, caller: usize, path: &str, how: How) -> Result<u64> {
        let what = match self.device_named(path, how.direct)? {
            Some(device) => device,
            None => What::Node(self.open_node(path, how).await?),
        };
        let descriptor = Descriptor {
            what,
            read: how.read,
            write: how.write,
            position: 0,
        };
        Ok(self.descriptors(caller, |all| all.install(descriptor)) as u64)
    }

    async fn open_node(&self, path: &str, how: How) -> Result<super::inodes::Node> {
        let (parent, last) = self.last_dir(path).await?;
        let Some(last) = last else {
            // The root, which is in use as its own parent.
            let refused = self.open_known(parent, how).await.err();
            if let Some(errno) = refused {
                self.put_inode(parent).await?;
                return Err(errno);
            }
            return Ok(parent);
        };
        let found = self.advance(parent, &last.name).await;
        let opened = match found {
            Err(errno) => Err(errno),
            Ok(None) if how.create => self.make_node(&last, Kind::File).await,
            Ok(None) => Err(Errno::NoEntry),
            Ok(Some(node)) => match self.open_known(node, how).await {
                Ok(()) => Ok(node),
                Err(errno) => {
                    self.put_inode(node).await?;
                    Err(errno)
                }
            },
        };
        self.put_inode(parent).await?;
        opened
    }

    /// Tests whether an existing inode may be opened in this mode, and empties a file that is to be
    /// truncated.
    async fn open_known(&self, node: super::inodes::Node, how: How) -> Result<()> {
        if how.create && how.exclusive {
            return Err(Errno::Exists);
        }
        if self.is_directory(node) {
            return if how.write {
                Err(Errno::IsDirectory)
            } else {
                Ok(())
            };
        }
        if how.truncate {
            self.truncate(node).await?;
        }
        Ok(())
    }

    async fn read(
        &self,
        (caller, file): (usize, usize),
        at: Option<u64>,
        memory: &Memory,
    ) -> Reply {
        let open = match self.descriptor(caller, file) {
            Ok(open) if open.read => open,
            Ok(_) => return Reply::Done(Err(Errno::BadFile)),
            Err(errno) => return Reply::Done(Err(errno)),
        };
        let position = match place(at, &open) {
            Ok(position) => position,
            Err(errno) => return Reply::Done(Err(errno)),
        };
        let from = (position, memory);
        let read = match &open.what {
            What::Pipe(end) => return Reply::Pipe(end.clone()),
            What::Character(device) => self.character(*device, from, false).await,
            What::Node(node) => self.read_cached(Cached::Node(*node), from).await,
            What::Block(drive) => self.read_cached(Cached::Block(*drive), from).await,
        };
        if let (Ok(count), None) = (read, at) {
            self.move_to(caller, file, position + count as u64);
        }
        Reply::Done(read.map(|count| count as u64))
    }

    async fn write(
        &self,
        (caller, file): (usize, usize),
        at: Option<u64>,
        memory: &Memory,
    ) -> Reply {
        let open = match self.descriptor(caller, file) {
            Ok(open) if open.write => open,
            Ok(_) => return Reply::Done(Err(Errno::BadFile)),
            Err(errno) => return Reply::Done(Err(errno)),
        };
        let position = match place(at, &open) {
            Ok(position) => position,
            Err(errno) => return Reply::Done(Err(errno)),
        };
        let to = (position, memory);
        let nothing = memory.borrow().is_empty();
        if let (Some(cached), false) = (open.what.cached(), nothing) {
            if let (Cached::Block(_), Err(errno)) = (cached, self.may_write(device_of(cached))) {
                return Reply::Done(Err(errno));
            }
            let (end, written) = self.write_cached(cached, to).await;
            if at.is_none() {
                self.move_to(caller, file, end);
            }
            return Reply::Done(written.map(|count| count as u64));
        }
        let written = match &open.what {
            What::Pipe(end) => return Reply::Pipe(end.clone()),
            What::Node(_) | What::Block(_) => Ok(0),
            What::Character(device) => self.write_character(*device, to).await,
        };
        if let (Ok(count), None) = (written, at) {
            self.move_to(caller, file, position + count as u64);
        }
        Reply::Done(written.map(|count| count as u64))
    }

    async fn write_character(&self, device: Device, at: (u64, &Memory)) -> Result<usize> {
        self.may_write(device)?;
        let wanted = at.1.borrow().len();
        match self.character(device, at, true).await {
            Ok(0) if wanted > 0 => Err(Errno::NoSpace),
            written => written,
        }
    }

    /// Tests whether a device may be written. Fails with `Busy` for a drive with a mounted file
    /// system.
    fn may_write(&self, device: Device) -> Result<()> {
        let mounted = |drive: u32| self.server(|server| (drive as usize) < server.volumes.len());
        match device {
            Device::Drive(drive) if mounted(drive) => Err(Errno::Busy),
            Device::Drive(_) | Device::Null => Ok(()),
        }
    }

    fn seek(&self, caller: usize, file: usize, (offset, from): (i64, From)) -> Result<u64> {
        let open = self.descriptor(caller, file)?;
        if matches!(open.what, What::Pipe(_)) {
            return Err(Errno::IllegalSeek);
        }
        let base = match from {
            From::Start => 0,
            From::Current => open.position,
            From::End => self.size(&open.what),
        };
        let to = i128::from(base) + i128::from(offset);
        if to < 0 || to > i128::from(MOST_POSITION) {
            return Err(Errno::Invalid);
        }
        self.move_to(caller, file, to as u64);
        Ok(to as u64)
    }

    fn size(&self, what: &What) -> u64 {
        match what {
            What::Node(node) => self.inode(*node, |inode| inode.size),
            What::Block(Some(drive)) | What::Character(Device::Drive(drive)) => {
                self.kernel.volumes.partition(*drive).bytes()
            }
            What::Block(None) | What::Character(Device::Null) | What::Pipe(_) => 0,
        }
    }

    fn length(&self, caller: usize, file: usize) -> Result<u64> {
        let open = self.descriptor(caller, file)?;
        Ok(self.size(&open.what))
    }

    async fn close(&self, caller: usize, file: usize) -> Result<u64> {
        let closed = self.descriptors(caller, |all| all.take(file))?;
        self.release(closed).await?;
        Ok(0)
    }

    async fn close_all(&self, caller: usize) -> Result<u64> {
        let all = self.server(|server| server.descriptors.remove(&caller));
        for closed in all.unwrap_or_default().take_all() {
            self.release(closed).await?;
        }
        Ok(0)
    }

    async fn release(&self, closed: Descriptor) -> Result<()> {
        match closed.what {
            What::Node(node) => self.put_inode(node).await,
            What::Pipe(end) => {
                self.kernel.close_pipe(&end);
                Ok(())
            }
            What::Block(_) | What::Character(_) => Ok(()),
        }
    }

    fn take_pipe(&self, caller: usize, end: PipeEnd) -> u64 {
        let read = matches!(end, PipeEnd::Read(_));
        let descriptor = Descriptor {
            what: What::Pipe(end),
            read,
            write: !read,
            position: 0,
        };
        self.descriptors(caller, |all| all.install(descriptor)) as u64
    }

    async fn sync_all(&self) -> Result<u64> {
        for drive in 0..self.kernel.volumes.count() {
            self.sync(drive as u32).await?;
        }
        Ok(0)
    }
}

/// Returns the position at which a call reads or writes: an explicit offset, or else the position
/// of the open file.
fn place(at: Option<u64>, open: &Descriptor) -> Result<u64> {
    match (at, &open.what) {
        (None, _) => Ok(open.position),
        (Some(_), What::Pipe(_)) => Err(Errno::IllegalSeek),
        (Some(at), _) if at > MOST_POSITION => Err(Errno::Invalid),
        (Some(at), _) => Ok(at),
    }
}

impl Work<'_> {
    /// Looks up a path for an operation on the cache. An inode is in use until `leave_path`.
    async fn cached_path(&self, path: &str) -> Result<Option<Cached>> {
        match self.device_named(path, false)? {
            Some(device) => Ok(device.cached()),
            None => Ok(Some(Cached::Node(self.eat_path(path).await?))),
        }
    }

    async fn leave_path(&self, path: Option<Cached>) -> Result<()> {
        match path {
            Some(Cached::Node(node)) => self.put_inode(node).await,
            Some(Cached::Block(_)) | None => Ok(()),
        }
    }

    async fn drop_path(&self, path: &str) -> Result<u64> {
        let cached = self.cached_path(path).await?.ok_or(Errno::Invalid)?;
        let dropped = self.drop_cached(cached).await;
        self.leave_path(Some(cached)).await?;
        dropped.map(|()| 0)
    }

    async fn drop_all(&self) -> Result<u64> {
        self.sync_all().await?;
        self.server(|server| server.cache.forget_clean());
        Ok(0)
    }

    async fn resident_path(&self, path: &str, length: u64) -> Result<u64> {
        let cached = self.cached_path(path).await?.ok_or(Errno::Invalid)?;
        let resident = self.resident(cached, length).await;
        self.leave_path(Some(cached)).await?;
        resident
    }
}
