//! System calls of a UNIX process on files, names, time, workers and pipes.

use super::computer::Computer;
use super::costs::ProgramWork;
use super::file_io::FileTarget;
use super::names::ResolvedPath;
use super::pipe::PipeEnd;
use super::process::{ExecutionContext, Process};
use super::raw::OpenRawDevice;
use super::ring::unix::UnixRing;
use super::{FileSystemView, UnixKernel, Vnode};
use crate::calls::{OpenFlags, ProcessAccount, SeekOrigin};
use crate::errno::{Errno, Result};
use crate::rendezvous::WorkerRendezvous;
use crate::written::WriteData;
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::rc::Rc;

/// UNIX process with its open files and pipe ends, through which a program makes system calls.
pub struct UnixSession {
    pub(super) kernel: Rc<UnixKernel>,
    pub(super) process: Rc<Process>,
    open_files: Vec<Option<OpenFile>>,
    pipe_ends: Vec<Option<PipeEnd>>,
    rendezvous: Rc<WorkerRendezvous>,
    pub(super) ring: Option<Rc<UnixRing>>,
    has_ended: bool,
}

pub(super) struct OpenFile {
    pub(super) target: FileTarget,
    pub(super) can_read: bool,
    pub(super) can_write: bool,
    file_offset: u64,
}

/// Open file with the kernel and the process that use it.
struct FileAccess<'a> {
    file: &'a mut OpenFile,
    kernel: &'a Rc<UnixKernel>,
    process: &'a Rc<Process>,
}

impl ProcessAccount {
    pub(crate) fn from_process(kernel: &Computer, process: &Process) -> Self {
        let account = process.account_until(kernel.simulation.now());
        kernel.trace_process(process);
        let tick = 1_000_000_000 / kernel.costs.clock_hz;
        Self {
            ledger: account.ledger,
            user_cpu_time: Time(account.user_tick_count * tick),
            system_cpu_time: Time(account.system_tick_count * tick),
            storage_read_bytes: process.storage_read_bytes(),
        }
    }
}

impl UnixSession {
    /// Starts a new process in the calling simulation task. Returns when the process has the
    /// processor.
    pub async fn begin_session(
        kernel: &Rc<UnixKernel>,
        number: usize,
        pipe_ends: Vec<PipeEnd>,
        meeting: &Rc<WorkerRendezvous>,
    ) -> Self {
        let process = Process::new(number);
        kernel.begin_process(&process).await;
        Self {
            kernel: Rc::clone(kernel),
            process,
            open_files: Vec::new(),
            pipe_ends: pipe_ends.into_iter().map(Some).collect(),
            rendezvous: Rc::clone(meeting),
            ring: None,
            has_ended: false,
        }
    }

    /// Closes all files and pipe ends of the process and ends it.
    pub async fn end_session(mut self) {
        self.close_ring().await;
        self.close_all().await;
        for end in std::mem::take(&mut self.pipe_ends).into_iter().flatten() {
            self.kernel.close_pipe(&end);
        }
        self.kernel.end_process(&self.process);
        self.has_ended = true;
    }

    /// Returns the current virtual time.
    pub fn current_time(&self) -> Time {
        self.kernel.simulation.now()
    }

    /// Opens the account of the time that the process spends in each stage.
    pub fn open_account(&self) {
        self.process.open_account(self.current_time());
        self.kernel.trace_busy_times();
    }

    /// Returns the time account of the process since `open_account`.
    pub fn current_account(&self) -> ProcessAccount {
        ProcessAccount::from_process(&self.kernel, &self.process)
    }

    pub(super) async fn enter_kernel(&self) {
        self.process.set_user_mode(false);
        let context = ExecutionContext::InProcess(&self.process);
        self.kernel
            .spend_processor_time(
                context,
                Stage::SystemCall,
                self.kernel.costs.system_call_time,
            )
            .await;
    }

    pub(super) async fn leave_kernel<T>(&self, result: Result<T>) -> Result<T> {
        self.kernel.return_to_user_mode(&self.process).await;
        result
    }

    pub(super) fn open_file(&mut self, number: usize) -> Result<&mut OpenFile> {
        self.file_access(number).map(|access| access.file)
    }

    /// Returns an open file with the kernel and the process that use it. Fails with `BadFile` for
    /// an unused number.
    fn file_access(&mut self, number: usize) -> Result<FileAccess<'_>> {
        let slot = self.open_files.get_mut(number).and_then(Option::as_mut);
        let file = slot.ok_or(Errno::BadFileDescriptor)?;
        Ok(FileAccess {
            file,
            kernel: &self.kernel,
            process: &self.process,
        })
    }

    /// Returns the inode of an open file. Fails with `Invalid` for a device or a pipe.
    pub(super) fn vnode_of_file(&mut self, number: usize) -> Result<Vnode> {
        match self.open_file(number)?.target {
            FileTarget::File(node) => Ok(node),
            FileTarget::NullDevice
            | FileTarget::ZeroDevice
            | FileTarget::RawDisk(_)
            | FileTarget::PipeEnd(_) => Err(Errno::InvalidArgument),
        }
    }

    fn install_file(&mut self, file: OpenFile) -> usize {
        match self.open_files.iter().position(Option::is_none) {
            Some(place) => {
                self.open_files[place] = Some(file);
                place
            }
            None => {
                self.open_files.push(Some(file));
                self.open_files.len() - 1
            }
        }
    }
}

impl UnixSession {
    /// Opens a file, open(2), and returns its descriptor number.
    pub async fn open_path(&mut self, path: &str, how: OpenFlags) -> Result<usize> {
        self.enter_kernel().await;
        let opened = self.open_resolved_path(path, how).await;
        self.leave_kernel(opened).await
    }

    async fn open_resolved_path(&mut self, path: &str, how: OpenFlags) -> Result<usize> {
        let opened = self.kernel.open_path(&self.process, path, how).await?;
        let what = match opened {
            ResolvedPath::NullDevice => FileTarget::NullDevice,
            ResolvedPath::ZeroDevice => FileTarget::ZeroDevice,
            ResolvedPath::RawDrive(drive) => FileTarget::RawDisk(OpenRawDevice {
                is_dsync: how.dsync,
                ..UnixKernel::volume_header(drive)
            }),
            ResolvedPath::FileNode(node) => FileTarget::File(node),
        };
        Ok(self.install_file(OpenFile {
            target: what,
            can_read: how.read,
            can_write: how.write,
            file_offset: 0,
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
        let FileAccess {
            file,
            kernel,
            process,
        } = self.file_access(number)?;
        if !file.can_read {
            return Err(Errno::BadFileDescriptor);
        }
        let context = ExecutionContext::InProcess(process);
        kernel
            .spend_processor_time(context, Stage::SystemCall, kernel.costs.read_write_time)
            .await;
        let at = (file.file_offset, into);
        let read = kernel.read_file(process, &file.target, at).await;
        file.file_offset += *read.as_ref().unwrap_or(&0) as u64;
        read
    }

    /// Writes to an open file at its offset, write(2), and returns the number of bytes written.
    #[inline]
    pub async fn write(&mut self, number: usize, data: WriteData<'_>) -> Result<usize> {
        self.enter_kernel().await;
        let result = self.write_open_file(number, data).await;
        self.leave_kernel(result).await
    }

    async fn write_open_file(&mut self, number: usize, data: WriteData<'_>) -> Result<usize> {
        let FileAccess {
            file,
            kernel,
            process,
        } = self.file_access(number)?;
        if !file.can_write {
            return Err(Errno::BadFileDescriptor);
        }
        let context = ExecutionContext::InProcess(process);
        kernel
            .spend_processor_time(context, Stage::SystemCall, kernel.costs.read_write_time)
            .await;
        let at = (file.file_offset, data);
        let (moved, written) = kernel.write_file(process, &file.target, at).await;
        file.file_offset += moved as u64;
        written
    }

    /// Sets the offset of an open file, lseek(2), and returns the new offset. Fails with
    /// `IllegalSeek` for a pipe.
    pub async fn lseek(&mut self, number: usize, offset: i64, from: SeekOrigin) -> Result<u64> {
        self.enter_kernel().await;
        let moved = self.seek_open_file(number, offset, from);
        self.leave_kernel(moved).await
    }

    fn seek_open_file(&mut self, number: usize, offset: i64, from: SeekOrigin) -> Result<u64> {
        let kernel = Rc::clone(&self.kernel);
        let file = self.open_file(number)?;
        let base = match (from, &file.target) {
            (_, FileTarget::PipeEnd(_)) => return Err(Errno::IllegalSeek),
            // A device that is a stream has no place in it.
            (_, FileTarget::NullDevice | FileTarget::ZeroDevice) => return Ok(0),
            (SeekOrigin::FileStart, FileTarget::File(_) | FileTarget::RawDisk(_)) => 0,
            (SeekOrigin::CurrentPosition, FileTarget::File(_) | FileTarget::RawDisk(_)) => {
                file.file_offset
            }
            (SeekOrigin::FileEnd, FileTarget::RawDisk(raw)) => {
                kernel.volumes.partition(raw.volume).size_bytes()
            }
            (SeekOrigin::FileEnd, FileTarget::File(node)) => kernel.size_bytes(*node),
        };
        let most = kernel.target_offset_max(&file.target);
        let to = i128::from(base) + i128::from(offset);
        if to < 0 || to > i128::from(most) {
            return Err(Errno::InvalidArgument);
        }
        file.file_offset = to as u64;
        Ok(file.file_offset)
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
        let FileSystemView::FastFileSystem(ffs) = kernel.file_system_view() else {
            // It has no such call: files are cut only where they are opened.
            return Err(Errno::InvalidArgument);
        };
        let file = self.open_file(number)?;
        let FileTarget::File(node) = file.target else {
            return Err(Errno::InvalidArgument);
        };
        if !file.can_write || i64::try_from(bytes).is_err() {
            return Err(Errno::InvalidArgument);
        }
        if bytes > ffs.with_file_system(node.volume, |fs| fs.file_size_bytes_max()) {
            return Err(Errno::FileTooLarge);
        }
        kernel.lock_inode(&process, node).await;
        let result = ffs.resize_file(&process, node, bytes).await;
        kernel.unlock_inode(node);
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
        let taken = self.open_files.get_mut(number).and_then(Option::take);
        let result = match taken {
            Some(file) => {
                self.close_file(file).await;
                Ok(())
            }
            None => Err(Errno::BadFileDescriptor),
        };
        self.leave_kernel(result).await
    }

    async fn close_file(&self, file: OpenFile) {
        match file.target {
            FileTarget::File(node) => self.kernel.close_node(&self.process, node).await,
            FileTarget::PipeEnd(end) => self.kernel.close_pipe(&end),
            FileTarget::NullDevice | FileTarget::ZeroDevice | FileTarget::RawDisk(_) => {}
        }
    }

    /// Closes all open files of the process.
    pub async fn close_all(&mut self) {
        for file in std::mem::take(&mut self.open_files).into_iter().flatten() {
            self.close_file(file).await;
        }
    }

    /// Returns the length of an open file in bytes, fstat(2). A raw drive has the length of its
    /// partition; other devices and pipes have 0.
    pub async fn file_length(&mut self, number: usize) -> Result<u64> {
        self.enter_kernel().await;
        let kernel = Rc::clone(&self.kernel);
        let length = self.open_file(number).map(|file| match file.target {
            FileTarget::File(node) => kernel.size_bytes(node),
            FileTarget::RawDisk(raw) => kernel.volumes.partition(raw.volume).size_bytes(),
            FileTarget::NullDevice | FileTarget::ZeroDevice | FileTarget::PipeEnd(_) => 0,
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
        if at > self.current_time() {
            self.kernel.sleep_process_until(&self.process, at).await;
        }
    }

    /// Uses the processor in user mode for a duration.
    pub async fn consume_user_time(&mut self, span: Time) {
        let context = ExecutionContext::InProcess(&self.process);
        self.kernel
            .spend_processor_time(context, Stage::User, span)
            .await;
        self.kernel.return_to_user_mode(&self.process).await;
    }

    /// Returns the processor time that this machine needs for a piece of work of a user program.
    #[must_use]
    pub fn program_work_time(&self, work: ProgramWork) -> Time {
        self.kernel.program_work_time(work)
    }

    /// Waits until all workers have reached the barrier. Returns `None` if one of them has failed.
    pub async fn barrier(&mut self) -> Option<Time> {
        self.rendezvous
            .attend_meeting(&self.kernel.process_waiter(&self.process))
            .await
    }

    /// Returns the number of notices that workers have sent to each other.
    pub fn notice_count(&self) -> u64 {
        self.rendezvous.notice_count()
    }

    /// Sends a notice, which wakes all workers that wait for one.
    pub fn give_notice(&self) {
        self.rendezvous
            .give_notice(&self.kernel.process_waiter(&self.process));
    }

    /// Waits until workers have sent more than `seen` notices, at most until a deadline if one is
    /// given.
    pub async fn await_notice(&mut self, seen: u64, until: Option<Time>) {
        let wait = (seen, until);
        self.rendezvous
            .await_notice(&self.kernel.process_waiter(&self.process), wait)
            .await;
    }

    /// Releases the other workers from waiting for this worker at barriers.
    pub fn abandon_meeting(&self) {
        self.rendezvous
            .abandon_meeting(&self.kernel.process_waiter(&self.process));
    }

    /// Opens an end of a pipe that the process was started with, and returns its descriptor number.
    /// Fails with `BadFile` if the end was taken before.
    pub async fn take_pipe_end(&mut self, number: usize) -> Result<usize> {
        let end = self.pipe_ends.get_mut(number).and_then(Option::take);
        let end = end.ok_or(Errno::BadFileDescriptor)?;
        let read = matches!(end, PipeEnd::ReadEnd(_));
        Ok(self.install_file(OpenFile {
            target: FileTarget::PipeEnd(end),
            can_read: read,
            can_write: !read,
            file_offset: 0,
        }))
    }
}
