//! File server of Minix, which handles one system call after the other.

use super::super::pipe::PipeEnd;
use super::Minix;
use super::blocks::ServerCall;
use super::cache::SharedBytes;
use super::descriptors::{Descriptor, DescriptorTarget, Descriptors};
use super::layout::Kind;
use super::message::{AcceptedSenders, Call, Endpoint, MessageBody, MinixDevice, Reply};
use super::read_write::{CachedSource, device_of_source};
use crate::calls::{From, How};
use crate::errno::{Errno, Result};
use diskperf_timeline::Stage;
use std::rc::Rc;

/// Largest file position under Minix, where programs have a signed 32-bit offset.
pub(super) const POSITION_MAX: u64 = i32::MAX as u64;

impl Minix {
    /// Runs the file server, which receives system calls, performs them and replies. It never ends.
    pub(super) async fn file_server(self: Rc<Self>) {
        let me = self.find_party(Endpoint::FileServer);
        self.begin(&me.process).await;
        loop {
            let message = self.receive(&me, AcceptedSenders::Any).await;
            let (
                MessageBody::Call(call),
                Endpoint::Program(caller)
                | Endpoint::Daemon {
                    program: caller, ..
                },
            ) = (message.body, message.from)
            else {
                panic!("the file server is called by programs")
            };
            let work = ServerCall {
                kernel: &self,
                server_party: &me,
                account: &message.account,
            };
            work.spend(Stage::SystemCall, self.config.call).await;
            let reply = work.serve(caller, call).await;
            let reply = MessageBody::Reply(reply);
            self.send(&me, message.from, &message.account, reply).await;
        }
    }
}

impl ServerCall<'_> {
    async fn serve(&self, caller: usize, call: Call) -> Reply {
        let done = match call {
            Call::Read { file, at, memory } => {
                return self.read((caller, file), at, &memory).await;
            }
            Call::Write { file, at, memory } => {
                return self.write((caller, file), at, &memory).await;
            }
            Call::Open { path, how } => self.open_path(caller, &path, how).await,
            Call::Seek { file, offset, from } => self.seek(caller, file, (offset, from)),
            Call::Length { file } => self.length(caller, file),
            Call::Close { file } => self.close(caller, file).await,
            Call::CloseAll => self.close_all(caller).await,
            Call::TakePipe(end) => Ok(self.take_pipe_end(caller, end)),
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
        Reply::Value(done)
    }

    fn descriptors<T>(&self, caller: usize, using: impl FnOnce(&mut Descriptors) -> T) -> T {
        self.with_server(|server| using(server.descriptors.entry(caller).or_default()))
    }

    fn descriptor(&self, caller: usize, file: usize) -> Result<Descriptor> {
        self.descriptors(caller, |all| all.get(file).cloned())
    }

    fn set_position(&self, caller: usize, file: usize, position: u64) {
        self.descriptors(caller, |all| {
            if let Ok(descriptor) = all.get(file) {
                descriptor.position = position;
            }
        });
    }

    /// Returns the device that a path in `/dev` names; `None` for any other path. `direct` selects
    /// the character device of a drive.
    fn find_device(&self, path: &str, direct: bool) -> Result<Option<DescriptorTarget>> {
        if let Some(number) = path.strip_prefix("/dev/drive") {
            let drive: u32 = number.parse().map_err(|_| Errno::NoEntry)?;
            if drive as usize >= self.kernel.volumes.count() {
                return Err(Errno::NoEntry);
            }
            return Ok(Some(if direct {
                DescriptorTarget::Character(MinixDevice::Drive(drive))
            } else {
                DescriptorTarget::Block(Some(drive))
            }));
        }
        Ok(match path {
            "/dev/null" => Some(DescriptorTarget::Character(MinixDevice::Null)),
            "/dev/bnull" => Some(DescriptorTarget::Block(None)),
            _ => None,
        })
    }

    async fn open_path(&self, caller: usize, path: &str, how: How) -> Result<u64> {
        let what = match self.find_device(path, how.direct)? {
            Some(device) => device,
            None => DescriptorTarget::Node(self.open_node(path, how).await?),
        };
        let descriptor = Descriptor {
            target: what,
            can_read: how.read,
            can_write: how.write,
            position: 0,
        };
        Ok(self.descriptors(caller, |all| all.install(descriptor)) as u64)
    }

    async fn open_node(&self, path: &str, how: How) -> Result<super::inodes::DriveInode> {
        let (parent, last) = self.last_dir(path).await?;
        let Some(last) = last else {
            // The root, which is in use as its own parent.
            let refused = self.open_existing_node(parent, how).await.err();
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
            Ok(Some(node)) => match self.open_existing_node(node, how).await {
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
    async fn open_existing_node(&self, node: super::inodes::DriveInode, how: How) -> Result<()> {
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
        memory: &SharedBytes,
    ) -> Reply {
        let open = match self.descriptor(caller, file) {
            Ok(open) if open.can_read => open,
            Ok(_) => return Reply::Value(Err(Errno::BadFile)),
            Err(errno) => return Reply::Value(Err(errno)),
        };
        let position = match transfer_position(at, &open) {
            Ok(position) => position,
            Err(errno) => return Reply::Value(Err(errno)),
        };
        let from = (position, memory);
        let read = match &open.target {
            DescriptorTarget::Pipe(end) => return Reply::Pipe(end.clone()),
            DescriptorTarget::Character(device) => {
                self.transfer_character(*device, from, false).await
            }
            DescriptorTarget::Node(node) => self.read_cached(CachedSource::Node(*node), from).await,
            DescriptorTarget::Block(drive) => {
                self.read_cached(CachedSource::Block(*drive), from).await
            }
        };
        if let (Ok(count), None) = (read, at) {
            self.set_position(caller, file, position + count as u64);
        }
        Reply::Value(read.map(|count| count as u64))
    }

    async fn write(
        &self,
        (caller, file): (usize, usize),
        at: Option<u64>,
        memory: &SharedBytes,
    ) -> Reply {
        let open = match self.descriptor(caller, file) {
            Ok(open) if open.can_write => open,
            Ok(_) => return Reply::Value(Err(Errno::BadFile)),
            Err(errno) => return Reply::Value(Err(errno)),
        };
        let position = match transfer_position(at, &open) {
            Ok(position) => position,
            Err(errno) => return Reply::Value(Err(errno)),
        };
        let to = (position, memory);
        let nothing = memory.borrow().is_empty();
        if let (Some(cached), false) = (open.target.as_cached_source(), nothing) {
            if let (CachedSource::Block(_), Err(errno)) =
                (cached, self.check_writable(device_of_source(cached)))
            {
                return Reply::Value(Err(errno));
            }
            let (end, written) = self.write_cached(cached, to).await;
            if at.is_none() {
                self.set_position(caller, file, end);
            }
            return Reply::Value(written.map(|count| count as u64));
        }
        let written = match &open.target {
            DescriptorTarget::Pipe(end) => return Reply::Pipe(end.clone()),
            DescriptorTarget::Node(_) | DescriptorTarget::Block(_) => Ok(0),
            DescriptorTarget::Character(device) => self.write_character(*device, to).await,
        };
        if let (Ok(count), None) = (written, at) {
            self.set_position(caller, file, position + count as u64);
        }
        Reply::Value(written.map(|count| count as u64))
    }

    async fn write_character(&self, device: MinixDevice, at: (u64, &SharedBytes)) -> Result<usize> {
        self.check_writable(device)?;
        let wanted = at.1.borrow().len();
        match self.transfer_character(device, at, true).await {
            Ok(0) if wanted > 0 => Err(Errno::NoSpace),
            written => written,
        }
    }

    /// Tests whether a device may be written. Fails with `Busy` for a drive with a mounted file
    /// system.
    fn check_writable(&self, device: MinixDevice) -> Result<()> {
        let mounted =
            |drive: u32| self.with_server(|server| (drive as usize) < server.volumes.len());
        match device {
            MinixDevice::Drive(drive) if mounted(drive) => Err(Errno::Busy),
            MinixDevice::Drive(_) | MinixDevice::Null => Ok(()),
        }
    }

    fn seek(&self, caller: usize, file: usize, (offset, from): (i64, From)) -> Result<u64> {
        let open = self.descriptor(caller, file)?;
        if matches!(open.target, DescriptorTarget::Pipe(_)) {
            return Err(Errno::IllegalSeek);
        }
        let base = match from {
            From::Start => 0,
            From::Current => open.position,
            From::End => self.target_bytes(&open.target),
        };
        let to = i128::from(base) + i128::from(offset);
        if to < 0 || to > i128::from(POSITION_MAX) {
            return Err(Errno::Invalid);
        }
        self.set_position(caller, file, to as u64);
        Ok(to as u64)
    }

    fn target_bytes(&self, what: &DescriptorTarget) -> u64 {
        match what {
            DescriptorTarget::Node(node) => self.with_inode(*node, |inode| inode.size_bytes),
            DescriptorTarget::Block(Some(drive))
            | DescriptorTarget::Character(MinixDevice::Drive(drive)) => {
                self.kernel.volumes.partition(*drive).bytes()
            }
            DescriptorTarget::Block(None)
            | DescriptorTarget::Character(MinixDevice::Null)
            | DescriptorTarget::Pipe(_) => 0,
        }
    }

    fn length(&self, caller: usize, file: usize) -> Result<u64> {
        let open = self.descriptor(caller, file)?;
        Ok(self.target_bytes(&open.target))
    }

    async fn close(&self, caller: usize, file: usize) -> Result<u64> {
        let closed = self.descriptors(caller, |all| all.take(file))?;
        self.release(closed).await?;
        Ok(0)
    }

    async fn close_all(&self, caller: usize) -> Result<u64> {
        let all = self.with_server(|server| server.descriptors.remove(&caller));
        for closed in all.unwrap_or_default().take_all() {
            self.release(closed).await?;
        }
        Ok(0)
    }

    async fn release(&self, closed: Descriptor) -> Result<()> {
        match closed.target {
            DescriptorTarget::Node(node) => self.put_inode(node).await,
            DescriptorTarget::Pipe(end) => {
                self.kernel.close_pipe(&end);
                Ok(())
            }
            DescriptorTarget::Block(_) | DescriptorTarget::Character(_) => Ok(()),
        }
    }

    fn take_pipe_end(&self, caller: usize, end: PipeEnd) -> u64 {
        let read = matches!(end, PipeEnd::Read(_));
        let descriptor = Descriptor {
            target: DescriptorTarget::Pipe(end),
            can_read: read,
            can_write: !read,
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
fn transfer_position(at: Option<u64>, open: &Descriptor) -> Result<u64> {
    match (at, &open.target) {
        (None, _) => Ok(open.position),
        (Some(_), DescriptorTarget::Pipe(_)) => Err(Errno::IllegalSeek),
        (Some(at), _) if at > POSITION_MAX => Err(Errno::Invalid),
        (Some(at), _) => Ok(at),
    }
}

impl ServerCall<'_> {
    /// Looks up a path for an operation on the cache. An inode is in use until `leave_path`.
    async fn cached_path(&self, path: &str) -> Result<Option<CachedSource>> {
        match self.find_device(path, false)? {
            Some(device) => Ok(device.as_cached_source()),
            None => Ok(Some(CachedSource::Node(self.eat_path(path).await?))),
        }
    }

    async fn leave_path(&self, path: Option<CachedSource>) -> Result<()> {
        match path {
            Some(CachedSource::Node(node)) => self.put_inode(node).await,
            Some(CachedSource::Block(_)) | None => Ok(()),
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
        self.with_server(|server| server.cache.discard_clean());
        Ok(0)
    }

    async fn resident_path(&self, path: &str, length: u64) -> Result<u64> {
        let cached = self.cached_path(path).await?.ok_or(Errno::Invalid)?;
        let resident = self.resident_bytes(cached, length).await;
        self.leave_path(Some(cached)).await?;
        resident
    }
}
