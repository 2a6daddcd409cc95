//! System calls of a UNIX process on files, names, time, workers and pipes.

use super::computer::Computer;
use super::costs::Work;
use super::file_io::FileTarget;
use super::names::ResolvedPath;
use super::pipe::PipeEnd;
use super::process::{Context, Process};
use super::raw::RawDevice;
use super::ring::unix::UnixRing;
use super::{FileSystemView, Unix, Vnode};
use crate::calls::{Account, From, How};
use crate::errno::{Errno, Result};
use crate::rendezvous::Rendezvous;
use crate::written::Written;
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::rc::Rc;

/// UNIX process with its open files and pipe ends, through which a program makes system calls.
pub struct UnixSession {
    pub(super) kernel: Rc<Unix>,
    pub(super) process: Rc<Process>,
    files: Vec<Option<OpenFile>>,
    pipe_ends: Vec<Option<PipeEnd>>,
    rendezvous: Rc<Rendezvous>,
    pub(super) ring: Option<Rc<UnixRing>>,
    has_ended: bool,
}

pub(super) struct OpenFile {
    pub(super) target: FileTarget,
    pub(super) can_read: bool,
    pub(super) can_write: bool,
    offset: u64,
}

impl Account {
    /// Returns the time account of a process up to now.
    pub(crate) fn from_process(kernel: &Computer, process: &Process) -> Self {
        let (ledger, user, system) = process.account(kernel.sim.now());
        kernel.trace_process(process);
        let tick = 1_000_000_000 / kernel.costs.clock_hz;
        Self {
            ledger,
            user: Time(user * tick),
            system: Time(system * tick),
            storage_read_bytes: process.storage_read_bytes(),
        }
    }
}

impl UnixSession {
    /// Starts a new process in the calling simulation task. Returns when the process has the
    /// processor.
    pub async fn begin(
        kernel: &Rc<Unix>,
        number: usize,
        pipe_ends: Vec<PipeEnd>,
        meeting: &Rc<Rendezvous>,
    ) -> Self {
        let process = Process::new(number);
        kernel.begin(&process).await;
        Self {
            kernel: Rc::clone(kernel),
            process,
            files: Vec::new(),
            pipe_ends: pipe_ends.into_iter().map(Some).collect(),
            rendezvous: Rc::clone(meeting),
            ring: None,
            has_ended: false,
        }
    }

    /// Closes all files and pipe ends of the process and ends it.
    pub async fn end(mut self) {
        self.close_ring().await;
        self.close_all().await;
        for end in std::mem::take(&mut self.pipe_ends).into_iter().flatten() {
            self.kernel.close_pipe(&end);
        }
        self.kernel.end(&self.process);
        self.has_ended = true;
    }

    /// Returns the current virtual time.
    pub fn now(&self) -> Time {
        self.kernel.sim.now()
    }

    /// Opens the account of the time that the process spends in each stage.
    pub fn open_account(&self) {
        self.process.open_account(self.now());
        self.kernel.trace_busy();
    }

    /// Returns the time account of the process since `open_account`.
    pub fn account(&self) -> Account {
        Account::from_process(&self.kernel, &self.process)
    }

    pub(super) async fn enter_kernel(&self) {
        self.process.enter_mode(false);
        let context = Context::Process(&self.process);
        self.kernel
            .spend(context, Stage::SystemCall, self.kernel.costs.system_call)
            .await;
    }

    pub(super) async fn leave_kernel<T>(&self, result: Result<T>) -> Result<T> {
        self.kernel.return_to_user_mode(&self.process).await;
        result
    }

    pub(super) fn open_file(&mut self, number: usize) -> Result<&mut OpenFile> {
        self.file_and_kernel(number).map(|(file, ..)| file)
    }

    /// Returns an open file with the kernel and the process that use it. Fails with `BadFile` for
    /// an unused number.
    fn file_and_kernel(
        &mut self,
        number: usize,
    ) -> Result<(&mut OpenFile, &Rc<Unix>, &Rc<Process>)> {
        let slot = self.files.get_mut(number).and_then(Option::as_mut);
        let file = slot.ok_or(Errno::BadFile)?;
        Ok((file, &self.kernel, &self.process))
    }

    /// Returns the inode of an open file. Fails with `Invalid` for a device or a pipe.
    pub(super) fn vnode_of_file(&mut self, number: usize) -> Result<Vnode> {
        match self.open_file(number)?.target {
            FileTarget::Node(node) => Ok(node),
            FileTarget::Null | FileTarget::Zero | FileTarget::Raw(_) | FileTarget::Pipe(_) => {
                Err(Errno::Invalid)
            }
        }
    }

    fn install(&mut self, file: OpenFile) -> usize {
        match self.files.iter().position(Option::is_none) {
            Some(place) => {
                self.files[place] = Some(file);
                place
            }
            None => {
                self.files.push(Some(file));
                self.files.len() - 1
            }
        }
    }
}

impl UnixSession {
    /// Opens a file, open(2), and returns its descriptor number.
    pub async fn open(&mut self, path: &str, how: How) -> Result<usize> {
        self.enter_kernel().await;
        let opened = self.open_resolved_path(path, how).await;
        self.leave_kernel(opened).await
    }

    async fn open_resolved_path(&mut self, path: &str, how: How) -> Result<usize> {
        let opened = self.kernel.open_path(&self.process, path, how).await?;
        let what = match opened {
            ResolvedPath::Null => FileTarget::Null,
            ResolvedPath::Zero => FileTarget::Zero,
            ResolvedPath::Drive(drive) => FileTarget::Raw(RawDevice {
                dsync: how.dsync,
                ..Unix::volume_header(drive)
            }),
            ResolvedPath::Node(node) => FileTarget::Node(node),
        };
        Ok(self.install(OpenFile {
            target: what,
            can_read: how.read,
            can_write: how.write,
            offset: 0,
        }))
    }

    /// Reads from an open file at its offset, read(2), and returns the number of bytes read.
    #[inline]
    pub async fn read(&mut self, number: usize, into: &mut [u8]) -> Result<usize> {
        self.enter_kernel().await;
        let result = self.read_open_file(number, into).await;
        self.leave_kernel(result).await
    }

    async fn read_open_file(&mut self, number: usize, into: &mut [u8]) -> Result<usize> {
        let (file, kernel, process) = self.file_and_kernel(number)?;
        if !file.can_read {
            return Err(Errno::BadFile);
        }
        let context = Context::Process(process);
        kernel
            .spend(context, Stage::SystemCall, kernel.costs.read_write)
            .await;
        let at = (file.offset, into);
        let read = kernel.read_file(process, &file.target, at).await;
        file.offset += *read.as_ref().unwrap_or(&0) as u64;
        read
    }

    /// Writes to an open file at its offset, write(2), and returns the number of bytes written.
    #[inline]
    pub async fn write(&mut self, number: usize, data: Written<'_>) -> Result<usize> {
        self.enter_kernel().await;
        let result = self.write_open_file(number, data).await;
        self.leave_kernel(result).await
    }

    async fn write_open_file(&mut self, number: usize, data: Written<'_>) -> Result<usize> {
        let (file, kernel, process) = self.file_and_kernel(number)?;
        if !file.can_write {
            return Err(Errno::BadFile);
        }
        let context = Context::Process(process);
        kernel
            .spend(context, Stage::SystemCall, kernel.costs.read_write)
            .await;
        let at = (file.offset, data);
        let (moved, written) = kernel.write_file(process, &file.target, at).await;
        file.offset += moved as u64;
        written
    }

    /// Sets the offset of an open file, lseek(2), and returns the new offset. Fails with
    /// `IllegalSeek` for a pipe.
    pub async fn lseek(&mut self, number: usize, offset: i64, from: From) -> Result<u64> {
        self.enter_kernel().await;
        let moved = self.seek_open_file(number, offset, from);
        self.leave_kernel(moved).await
    }

    fn seek_open_file(&mut self, number: usize, offset: i64, from: From) -> Result<u64> {
        let kernel = Rc::clone(&self.kernel);
        let file = self.open_file(number)?;
        let base = match (from, &file.target) {
            (_, FileTarget::Pipe(_)) => return Err(Errno::IllegalSeek),
            // A device that is a stream has no place in it.
            (_, FileTarget::Null | FileTarget::Zero) => return Ok(0),
            (From::Start, FileTarget::Node(_) | FileTarget::Raw(_)) => 0,
            (From::Current, FileTarget::Node(_) | FileTarget::Raw(_)) => file.offset,
            (From::End, FileTarget::Raw(raw)) => kernel.volumes.partition(raw.volume).bytes(),
            (From::End, FileTarget::Node(node)) => kernel.size_bytes(*node),
        };
        let most = kernel.target_offset_max(&file.target);
        let to = i128::from(base) + i128::from(offset);
        if to < 0 || to > i128::from(most) {
            return Err(Errno::Invalid);
        }
        file.offset = to as u64;
        Ok(file.offset)
    }

    /// Sets the length of an open file, ftruncate(2). Fails with `Invalid` on the seventh edition,
    /// which has no such call.
    pub async fn ftruncate(&mut self, number: usize, bytes: u64) -> Result<()> {
        self.enter_kernel().await;
        let result = self.truncate_open_file(number, bytes).await;
        self.leave_kernel(result).await
    }

    async fn truncate_open_file(&mut self, number: usize, bytes: u64) -> Result<()> {
        let (kernel, process) = (Rc::clone(&self.kernel), Rc::clone(&self.process));
        let FileSystemView::Ffs(ffs) = kernel.file_system_view() else {
            // It has no such call: files are cut only where they are opened.
            return Err(Errno::Invalid);
        };
        let file = self.open_file(number)?;
        let FileTarget::Node(node) = file.target else {
            return Err(Errno::Invalid);
        };
        if !file.can_write || i64::try_from(bytes).is_err() {
            return Err(Errno::Invalid);
        }
        if bytes > ffs.with_fs(node.volume, |fs| fs.max_size_bytes()) {
            return Err(Errno::FileTooLarge);
        }
        kernel.lock(&process, node).await;
        let result = ffs.resize(&process, node, bytes).await;
        kernel.unlock(node);
        result
    }

    /// Syncs an open file to its drive, fsync(2).
    pub async fn fsync(&mut self, number: usize) -> Result<()> {
        self.enter_kernel().await;
        let what = self.open_file(number).map(|file| file.target.clone());
        let result = match what {
            // It does not look.
            Err(_) if self.kernel.supports_only_sync() => {
                self.kernel.sync_all(&self.process).await;
                Ok(())
            }
            Ok(what) => self.kernel.sync_file(&self.process, &what).await,
            Err(errno) => Err(errno),
        };
        self.leave_kernel(result).await
    }

    /// Closes an open file, close(2).
    pub async fn close(&mut self, number: usize) -> Result<()> {
        self.enter_kernel().await;
        let taken = self.files.get_mut(number).and_then(Option::take);
        let result = match taken {
            Some(file) => {
                self.close_file(file).await;
                Ok(())
            }
            None => Err(Errno::BadFile),
        };
        self.leave_kernel(result).await
    }

    async fn close_file(&self, file: OpenFile) {
        match file.target {
            FileTarget::Node(node) => self.kernel.close_node(&self.process, node).await,
            FileTarget::Pipe(end) => self.kernel.close_pipe(&end),
            FileTarget::Null | FileTarget::Zero | FileTarget::Raw(_) => {}
        }
    }

    /// Closes all open files of the process.
    pub async fn close_all(&mut self) {
        for file in std::mem::take(&mut self.files).into_iter().flatten() {
            self.close_file(file).await;
        }
    }

    /// Returns the length of an open file in bytes, fstat(2). A raw drive has the length of its
    /// partition; other devices and pipes have 0.
    pub async fn length(&mut self, number: usize) -> Result<u64> {
        self.enter_kernel().await;
        let kernel = Rc::clone(&self.kernel);
        let length = self.open_file(number).map(|file| match file.target {
            FileTarget::Node(node) => kernel.size_bytes(node),
            FileTarget::Raw(raw) => kernel.volumes.partition(raw.volume).bytes(),
            FileTarget::Null | FileTarget::Zero | FileTarget::Pipe(_) => 0,
        });
        self.leave_kernel(length).await
    }
}

impl UnixSession {
    /// Returns the length of a file in bytes by its path, stat(2).
    pub async fn stat(&mut self, path: &str) -> Result<u64> {
        self.enter_kernel().await;
        let length = self.kernel.stat_path(&self.process, path).await;
        self.leave_kernel(length).await
    }

    /// Removes a name of a file, unlink(2).
    pub async fn unlink(&mut self, path: &str) -> Result<()> {
        self.enter_kernel().await;
        let result = self.kernel.unlink_path(&self.process, path).await;
        self.leave_kernel(result).await
    }

    /// Makes a directory, mkdir(2).
    pub async fn mkdir(&mut self, path: &str) -> Result<()> {
        self.enter_kernel().await;
        let result = self.kernel.mkdir_path(&self.process, path).await;
        self.leave_kernel(result).await
    }

    /// Removes an empty directory, rmdir(2).
    pub async fn rmdir(&mut self, path: &str) -> Result<()> {
        self.enter_kernel().await;
        let result = self.kernel.rmdir_path(&self.process, path).await;
        self.leave_kernel(result).await
    }

    /// Renames a file or a directory, rename(2).
    pub async fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        self.enter_kernel().await;
        let result = self.kernel.rename_path(&self.process, from, to).await;
        self.leave_kernel(result).await
    }
}

impl UnixSession {
    /// Sleeps until a point in virtual time. Returns immediately if that time is past.
    pub async fn sleep_until(&mut self, at: Time) {
        if at > self.now() {
            self.kernel.sleep_until(&self.process, at).await;
        }
    }

    /// Uses the processor in user mode for a duration.
    pub async fn compute(&mut self, span: Time) {
        let context = Context::Process(&self.process);
        self.kernel.spend(context, Stage::User, span).await;
        self.kernel.return_to_user_mode(&self.process).await;
    }

    /// Returns the processor time that this machine needs for a piece of work of a user program.
    #[must_use]
    pub fn time_of(&self, work: Work) -> Time {
        self.kernel.time_of(work)
    }

    /// Waits until all workers have reached the barrier. Returns `None` if one of them has failed.
    pub async fn barrier(&mut self) -> Option<Time> {
        self.rendezvous
            .meet(&self.kernel.waiter(&self.process))
            .await
    }

    /// Returns the number of notices that workers have sent to each other.
    pub fn notices(&self) -> u64 {
        self.rendezvous.notices()
    }

    /// Sends a notice, which wakes all workers that wait for one.
    pub fn give_notice(&self) {
        self.rendezvous
            .give_notice(&self.kernel.waiter(&self.process));
    }

    /// Waits until workers have sent more than `seen` notices, at most until a deadline if one is
    /// given.
    pub async fn await_notice(&mut self, seen: u64, until: Option<Time>) {
        let wait = (seen, until);
        self.rendezvous
            .await_notice(&self.kernel.waiter(&self.process), wait)
            .await;
    }

    /// Releases the other workers from waiting for this worker at barriers.
    pub fn give_up_meeting(&self) {
        self.rendezvous.give_up(&self.kernel.waiter(&self.process));
    }

    /// Opens an end of a pipe that the process was started with, and returns its descriptor number.
    /// Fails with `BadFile` if the end was taken before.
    pub async fn pipe_end(&mut self, number: usize) -> Result<usize> {
        let end = self.pipe_ends.get_mut(number).and_then(Option::take);
        let end = end.ok_or(Errno::BadFile)?;
        let read = matches!(end, PipeEnd::Read(_));
        Ok(self.install(OpenFile {
            target: FileTarget::Pipe(end),
            can_read: read,
            can_write: !read,
            offset: 0,
        }))
    }
}
