//! File server of Minix, which handles one system call after the other.

use super::super::pipe::PipeEnd;
use super::MinixKernel;
use super::blocks::ServerCall;
use super::cache::SharedBytes;
use super::descriptors::{Descriptor, DescriptorTable, DescriptorTarget};
use super::layout::MinixInodeKind;
use super::message::{AcceptedSenders, Endpoint, FileServerCall, MessageBody, MinixDevice, Reply};
use super::read_write::{CachedBlocksSource, device_of_source};
use crate::calls::{OpenFlags, SeekOrigin};
use crate::errno::{Errno, Result};
use diskperf_timeline::Stage;
use std::rc::Rc;

/// Largest file position under Minix, where programs have a signed 32-bit offset.
pub(super) const FILE_POSITION_MAX: u64 = i32::MAX as u64;

impl MinixKernel {
    /// Runs the file server, which receives system calls, performs them and replies. It never ends.
    pub(super) async fn run_file_server(self: Rc<Self>) {
        let me = self.find_party(Endpoint::FileServer);
        self.begin_process(&me.process).await;
        loop {
            let message = self.receive_message(&me, AcceptedSenders::AnySender).await;
            let (
                MessageBody::FileServerCall(call),
                Endpoint::UserProgram(caller)
                | Endpoint::RingDaemon {
                    program: caller, ..
                },
            ) = (message.body, message.sender)
            else {
                panic!("the file server is called by programs")
            };
            let work = ServerCall {
                kernel: &self,
                server_party: &me,
                account: &message.account,
            };
            work.spend_processor_time(Stage::SystemCall, self.config.call_time)
                .await;
            let reply = work.serve_call(caller, call).await;
            let reply = MessageBody::Reply(reply);
            self.send_message(&me, message.sender, &message.account, reply)
                .await;
        }
    }
}

impl ServerCall<'_> {
    async fn serve_call(&self, caller: usize, call: FileServerCall) -> Reply {
        let done = match call {
            FileServerCall::Read { file, at, memory } => {
                return self.read_file((caller, file), at, &memory).await;
            }
            FileServerCall::Write { file, at, memory } => {
                return self.write_file((caller, file), at, &memory).await;
            }
            FileServerCall::Open { path, how } => self.open_path(caller, &path, how).await,
            FileServerCall::Seek { file, offset, from } => {
                self.seek_file(caller, file, (offset, from))
            }
            FileServerCall::FileLength { file } => self.file_length(caller, file),
            FileServerCall::Close { file } => self.close_file(caller, file).await,
            FileServerCall::CloseAll => self.close_all_files(caller).await,
            FileServerCall::TakePipe(end) => Ok(self.take_pipe_end(caller, end)),
            FileServerCall::Stat { path } => self.stat(&path).await,
            FileServerCall::Unlink { path } => self.unlink(&path, false).await.map(|()| 0),
            FileServerCall::Rmdir { path } => self.unlink(&path, true).await.map(|()| 0),
            FileServerCall::Mkdir { path } => self.mkdir(&path).await.map(|()| 0),
            FileServerCall::Rename { from, to } => self.rename(&from, &to).await.map(|()| 0),
            FileServerCall::ChangeAttributes { path } => {
                self.change_attributes(&path).await.map(|()| 0)
            }
            FileServerCall::Sync => self.sync_all().await,
            FileServerCall::NoReply => Err(super::tasks::NO_SUCH_CALL_ERRNO),
            FileServerCall::DropCachedBlocks { path } => self.drop_cached_path(&path).await,
            FileServerCall::DropAllBlocks => self.drop_all_cached().await,
            FileServerCall::CachedBytes { path, length } => {
                self.cached_bytes_of_path(&path, length).await
            }
        };
        Reply::ValueReply(done)
    }

    fn with_descriptors<T>(
        &self,
        caller: usize,
        using: impl FnOnce(&mut DescriptorTable) -> T,
    ) -> T {
        self.with_server(|server| using(server.descriptors.entry(caller).or_default()))
    }

    fn copy_descriptor(&self, caller: usize, file: usize) -> Result<Descriptor> {
        self.with_descriptors(caller, |all| all.descriptor_mut(file).cloned())
    }

    fn set_position(&self, caller: usize, file: usize, position: u64) {
        self.with_descriptors(caller, |all| {
            if let Ok(descriptor) = all.descriptor_mut(file) {
                descriptor.file_position = position;
            }
        });
    }

    /// Returns the device that a path in `/dev` names; `None` for any other path. `direct` selects
    /// the character device of a drive.
    fn find_device(&self, path: &str, direct: bool) -> Result<Option<DescriptorTarget>> {
        if let Some(number) = path.strip_prefix("/dev/drive") {
            let drive: u32 = number.parse().map_err(|_| Errno::NoSuchEntry)?;
            if drive as usize >= self.kernel.volumes.volume_count() {
                return Err(Errno::NoSuchEntry);
            }
            return Ok(Some(if direct {
                DescriptorTarget::CharacterDevice(MinixDevice::DriveDevice(drive))
            } else {
                DescriptorTarget::BlockDevice(Some(drive))
            }));
        }
        Ok(match path {
            "/dev/null" => Some(DescriptorTarget::CharacterDevice(MinixDevice::NullDevice)),
            "/dev/bnull" => Some(DescriptorTarget::BlockDevice(None)),
            _ => None,
        })
    }

    async fn open_path(&self, caller: usize, path: &str, how: OpenFlags) -> Result<u64> {
        let what = match self.find_device(path, how.direct_io)? {
            Some(device) => device,
            None => DescriptorTarget::OpenInode(self.open_node(path, how).await?),
        };
        let descriptor = Descriptor {
            target: what,
            can_read: how.read,
            can_write: how.write,
            file_position: 0,
        };
        Ok(self.with_descriptors(caller, |all| all.install_descriptor(descriptor)) as u64)
    }

    async fn open_node(&self, path: &str, how: OpenFlags) -> Result<super::inodes::DriveInode> {
        let (parent, last) = self.resolve_parent(path).await?;
        let Some(last) = last else {
            // The root, which is in use as its own parent.
            let refused = self.open_existing_node(parent, how).await.err();
            if let Some(errno) = refused {
                self.put_inode(parent).await?;
                return Err(errno);
            }
            return Ok(parent);
        };
        let found = self.look_up_name(parent, &last.name).await;
        let opened = match found {
            Err(errno) => Err(errno),
            Ok(None) if how.create => self.make_node(&last, MinixInodeKind::File).await,
            Ok(None) => Err(Errno::NoSuchEntry),
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
    async fn open_existing_node(
        &self,
        node: super::inodes::DriveInode,
        how: OpenFlags,
    ) -> Result<()> {
        if how.create && how.create_exclusive {
            return Err(Errno::AlreadyExists);
        }
        if self.is_directory(node) {
            return if how.write {
                Err(Errno::IsDirectory)
            } else {
                Ok(())
            };
        }
        if how.truncate {
            self.truncate_inode(node).await?;
        }
        Ok(())
    }

    async fn read_file(
        &self,
        (caller, file): (usize, usize),
        at: Option<u64>,
        memory: &SharedBytes,
    ) -> Reply {
        let open = match self.copy_descriptor(caller, file) {
            Ok(open) if open.can_read => open,
            Ok(_) => return Reply::ValueReply(Err(Errno::BadFileDescriptor)),
            Err(errno) => return Reply::ValueReply(Err(errno)),
        };
        let position = match transfer_position(at, &open) {
            Ok(position) => position,
            Err(errno) => return Reply::ValueReply(Err(errno)),
        };
        let from = (position, memory);
        let read = match &open.target {
            DescriptorTarget::PipeEnd(end) => return Reply::PipeReply(end.clone()),
            DescriptorTarget::CharacterDevice(device) => {
                self.transfer_character(*device, from, false).await
            }
            DescriptorTarget::OpenInode(node) => {
                self.read_cached(CachedBlocksSource::FileInode(*node), from)
                    .await
            }
            DescriptorTarget::BlockDevice(drive) => {
                self.read_cached(CachedBlocksSource::BlockDevice(*drive), from)
                    .await
            }
        };
        if let (Ok(count), None) = (read, at) {
            self.set_position(caller, file, position + count as u64);
        }
        Reply::ValueReply(read.map(|count| count as u64))
    }

    async fn write_file(
        &self,
        (caller, file): (usize, usize),
        at: Option<u64>,
        memory: &SharedBytes,
    ) -> Reply {
        let open = match self.copy_descriptor(caller, file) {
            Ok(open) if open.can_write => open,
            Ok(_) => return Reply::ValueReply(Err(Errno::BadFileDescriptor)),
            Err(errno) => return Reply::ValueReply(Err(errno)),
        };
        let position = match transfer_position(at, &open) {
            Ok(position) => position,
            Err(errno) => return Reply::ValueReply(Err(errno)),
        };
        let to = (position, memory);
        let nothing = memory.borrow().is_empty();
        if let (Some(cached), false) = (open.target.as_cached_source(), nothing) {
            if let (CachedBlocksSource::BlockDevice(_), Err(errno)) =
                (cached, self.check_writable(device_of_source(cached)))
            {
                return Reply::ValueReply(Err(errno));
            }
            let (end, written) = self.write_cached(cached, to).await;
            if at.is_none() {
                self.set_position(caller, file, end);
            }
            return Reply::ValueReply(written.map(|count| count as u64));
        }
        let written = match &open.target {
            DescriptorTarget::PipeEnd(end) => return Reply::PipeReply(end.clone()),
            DescriptorTarget::OpenInode(_) | DescriptorTarget::BlockDevice(_) => Ok(0),
            DescriptorTarget::CharacterDevice(device) => self.write_character(*device, to).await,
        };
        if let (Ok(count), None) = (written, at) {
            self.set_position(caller, file, position + count as u64);
        }
        Reply::ValueReply(written.map(|count| count as u64))
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
            MinixDevice::DriveDevice(drive) if mounted(drive) => Err(Errno::DeviceBusy),
            MinixDevice::DriveDevice(_) | MinixDevice::NullDevice => Ok(()),
        }
    }

    fn seek_file(
        &self,
        caller: usize,
        file: usize,
        (offset, from): (i64, SeekOrigin),
    ) -> Result<u64> {
        let open = self.copy_descriptor(caller, file)?;
        if matches!(open.target, DescriptorTarget::PipeEnd(_)) {
            return Err(Errno::IllegalSeek);
        }
        let base = match from {
            SeekOrigin::FileStart => 0,
            SeekOrigin::CurrentPosition => open.file_position,
            SeekOrigin::FileEnd => self.target_bytes(&open.target),
        };
        let to = i128::from(base) + i128::from(offset);
        if to < 0 || to > i128::from(FILE_POSITION_MAX) {
            return Err(Errno::InvalidArgument);
        }
        self.set_position(caller, file, to as u64);
        Ok(to as u64)
    }

    fn target_bytes(&self, what: &DescriptorTarget) -> u64 {
        match what {
            DescriptorTarget::OpenInode(node) => self.with_inode(*node, |inode| inode.size_bytes),
            DescriptorTarget::BlockDevice(Some(drive))
            | DescriptorTarget::CharacterDevice(MinixDevice::DriveDevice(drive)) => {
                self.kernel.volumes.partition(*drive).size_bytes()
            }
            DescriptorTarget::BlockDevice(None)
            | DescriptorTarget::CharacterDevice(MinixDevice::NullDevice)
            | DescriptorTarget::PipeEnd(_) => 0,
        }
    }

    fn file_length(&self, caller: usize, file: usize) -> Result<u64> {
        let open = self.copy_descriptor(caller, file)?;
        Ok(self.target_bytes(&open.target))
    }

    async fn close_file(&self, caller: usize, file: usize) -> Result<u64> {
        let closed = self.with_descriptors(caller, |all| all.take_descriptor(file))?;
        self.release_descriptor(closed).await?;
        Ok(0)
    }

    async fn close_all_files(&self, caller: usize) -> Result<u64> {
        let all = self.with_server(|server| server.descriptors.remove(&caller));
        for closed in all.unwrap_or_default().take_all() {
            self.release_descriptor(closed).await?;
        }
        Ok(0)
    }

    async fn release_descriptor(&self, closed: Descriptor) -> Result<()> {
        match closed.target {
            DescriptorTarget::OpenInode(node) => self.put_inode(node).await,
            DescriptorTarget::PipeEnd(end) => {
                self.kernel.close_pipe(&end);
                Ok(())
            }
            DescriptorTarget::BlockDevice(_) | DescriptorTarget::CharacterDevice(_) => Ok(()),
        }
    }

    fn take_pipe_end(&self, caller: usize, end: PipeEnd) -> u64 {
        let read = matches!(end, PipeEnd::ReadEnd(_));
        let descriptor = Descriptor {
            target: DescriptorTarget::PipeEnd(end),
            can_read: read,
            can_write: !read,
            file_position: 0,
        };
        self.with_descriptors(caller, |all| all.install_descriptor(descriptor)) as u64
    }

    async fn sync_all(&self) -> Result<u64> {
        for drive in 0..self.kernel.volumes.volume_count() {
            self.sync_drive(drive as u32).await?;
        }
        Ok(0)
    }
}

/// Returns the position at which a call reads or writes: an explicit offset, or else the position
/// of the open file.
fn transfer_position(at: Option<u64>, open: &Descriptor) -> Result<u64> {
    match (at, &open.target) {
        (None, _) => Ok(open.file_position),
        (Some(_), DescriptorTarget::PipeEnd(_)) => Err(Errno::IllegalSeek),
        (Some(at), _) if at > FILE_POSITION_MAX => Err(Errno::InvalidArgument),
        (Some(at), _) => Ok(at),
    }
}

impl ServerCall<'_> {
    /// Looks up a path for an operation on the cache. An inode is in use until `release_path`.
    async fn resolve_cached_path(&self, path: &str) -> Result<Option<CachedBlocksSource>> {
        match self.find_device(path, false)? {
            Some(device) => Ok(device.as_cached_source()),
            None => Ok(Some(CachedBlocksSource::FileInode(
                self.resolve_path(path).await?,
            ))),
        }
    }

    async fn release_path(&self, path: Option<CachedBlocksSource>) -> Result<()> {
        match path {
            Some(CachedBlocksSource::FileInode(node)) => self.put_inode(node).await,
            Some(CachedBlocksSource::BlockDevice(_)) | None => Ok(()),
        }
    }

    async fn drop_cached_path(&self, path: &str) -> Result<u64> {
        let cached = self
            .resolve_cached_path(path)
            .await?
            .ok_or(Errno::InvalidArgument)?;
        let dropped = self.drop_cached_blocks(cached).await;
        self.release_path(Some(cached)).await?;
        dropped.map(|()| 0)
    }

    async fn drop_all_cached(&self) -> Result<u64> {
        self.sync_all().await?;
        self.with_server(|server| server.cache.discard_clean_blocks());
        Ok(0)
    }

    async fn cached_bytes_of_path(&self, path: &str, length: u64) -> Result<u64> {
        let cached = self
            .resolve_cached_path(path)
            .await?
            .ok_or(Errno::InvalidArgument)?;
        let resident = self.resident_bytes(cached, length).await;
        self.release_path(Some(cached)).await?;
        resident
    }
}
