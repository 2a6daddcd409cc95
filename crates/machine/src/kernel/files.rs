//! System calls of a UNIX process on files, names, time, workers and pipes.

use super::computer::Computer;
use super::costs::Work;
use super::file_io::What;
use super::names::Found;
use super::pipe::PipeEnd;
use super::process::{Context, Process};
use super::raw::Raw;
use super::ring::unix::Ring;
use super::{FileSystemView, Unix, Vnode};
use crate::calls::{Account, From, How};
use crate::errno::{Errno, Result};
use crate::rendezvous::Rendezvous;
use crate::written::Written;
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::rc::Rc;

/// UNIX process with its open files and pipe ends, through which a program makes system calls.
pub struct Session {
    pub(super) kernel: Rc<Unix>,
    pub(super) process: Rc<Process>,
    files: Vec<Option<OpenFile>>,
    pipe_ends: Vec<Option<PipeEnd>>,
    meeting: Rc<Rendezvous>,
    pub(super) ring: Option<Rc<Ring>>,
    ended: bool,
}

pub(super) struct OpenFile {
    pub(super) what: What,
    pub(super) read: bool,
    pub(super) write: bool,
    offset: u64,
}

impl Account {
    /// Returns the time account of a process up to now.
    pub(crate) fn of(kernel: &Computer, process: &Process) -> Self {
        let (ledger, user, system) = process.account(kernel.sim.now());
        kernel.trace_process(process);
        let tick = 1_000_000_000 / kernel.costs.clock_hz;
        Self {
            ledger,
            user: Time(user * tick),
            system: Time(system * tick),
            storage_read_bytes: process.storage_read(),
        }
    }
}

impl Session {
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
            meeting: Rc::clone(meeting),
            ring: None,
            ended: false,
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
        self.ended = true;
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
        Account::of(&self.kernel, &self.process)
    }

    pub(super) async fn enter(&self) {
        self.process.enter_mode(false);
        let context = Context::Process(&self.process);
        self.kernel
            .spend(context, Stage::SystemCall, self.kernel.costs.system_call)
            .await;
    }

    pub(super) async fn leave<T>(&self, result: Result<T>) -> Result<T> {
        self.kernel.back_to_user_mode(&self.process).await;
        result
    }

    pub(super) fn file(&mut self, number: usize) -> Result<&mut OpenFile> {
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
    pub(super) fn node_of(&mut self, number: usize) -> Result<Vnode> {
        match self.file(number)?.what {
            What::Node(node) => Ok(node),
            What::Null | What::Zero | What::Raw(_) | What::Pipe(_) => Err(Errno::Invalid),
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

impl Session {
    /// Opens a file, open(2), and returns its descriptor number.
    pub async fn open(&mut self, path: &str, how: How) -> Result<usize> {
        self.enter().await;
        let opened = self.open_found(path, how).await;
        self.leave(opened).await
    }

    async fn open_found(&mut self, path: &str, how: How) -> Result<usize> {
        let opened = self.kernel.open_path(&self.process, path, how).await?;
        let what = match opened {
            Found::Null => What::Null,
            Found::Zero => What::Zero,
            Found::Drive(drive) => What::Raw(Raw {
                dsync: how.dsync,
                ..Unix::through(drive)
            }),
            Found::Node(node) => What::Node(node),
        };
        Ok(self.install(OpenFile {
            what,
            read: how.read,
            write: how.write,
            offset: 0,
        }))
    }

    /// Reads from an open file at its offset, read(2), and returns the number of bytes read.
    #[inline]
    pub async fn read(&mut self, number: usize, into: &mut [u8]) -> Result<usize> {
        self.enter().await;
        let result = self.read_open(number, into).await;
        self.leave(result).await
    }

    async fn read_open(&mut self, number: usize, into: &mut [u8]) -> Result<usize> {
        let (file, kernel, process) = self.file_and_kernel(number)?;
        if !file.read {
            return Err(Errno::BadFile);
        }
        let context = Context::Process(process);
        kernel
            .spend(context, Stage::SystemCall, kernel.costs.read_write)
            .await;
        let at = (file.offset, into);
        let read = kernel.read_file(process, &file.what, at).await;
        file.offset += *read.as_ref().unwrap_or(&0) as u64;
        read
    }

    /// Writes to an open file at its offset, write(2), and returns the number of bytes written.
    #[inline]
    pub async fn write(&mut self, number: usize, data: Written<'_>) -> Result<usize> {
        self.enter().await;
        let result = self.write_open(number, data).await;
        self.leave(result).await
    }

    async fn write_open(&mut self, number: usize, data: Written<'_>) -> Result<usize> {
        let (file, kernel, process) = self.file_and_kernel(number)?;
        if !file.write {
            return Err(Errno::BadFile);
        }
        let context = Context::Process(process);
        kernel
            .spend(context, Stage::SystemCall, kernel.costs.read_write)
            .await;
        let at = (file.offset, data);
        let (moved, written) = kernel.write_file(process, &file.what, at).await;
        file.offset += moved as u64;
        written
    }

    /// Sets the offset of an open file, lseek(2), and returns the new offset. Fails with
    /// `IllegalSeek` for a pipe.
    pub async fn lseek(&mut self, number: usize, offset: i64, from: From) -> Result<u64> {
        self.enter().await;
        let moved = self.lseek_open(number, offset, from);
        self.leave(moved).await
    }

    fn lseek_open(&mut self, number: usize, offset: i64, from: From) -> Result<u64> {
        let kernel = Rc::clone(&self.kernel);
        let file = self.file(number)?;
        let base = match (from, &file.what) {
            (_, What::Pipe(_)) => return Err(Errno::IllegalSeek),
            // A device that is a stream has no place in it.
            (_, What::Null | What::Zero) => return Ok(0),
            (From::Start, What::Node(_) | What::Raw(_)) => 0,
            (From::Current, What::Node(_) | What::Raw(_)) => file.offset,
            (From::End, What::Raw(raw)) => kernel.volumes.partition(raw.volume).bytes(),
            (From::End, What::Node(node)) => kernel.size_bytes(*node),
        };
        let most = kernel.most_offset_of(&file.what);
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
        self.enter().await;
        let result = self.ftruncate_open(number, bytes).await;
        self.leave(result).await
    }

    async fn ftruncate_open(&mut self, number: usize, bytes: u64) -> Result<()> {
        let (kernel, process) = (Rc::clone(&self.kernel), Rc::clone(&self.process));
        let FileSystemView::Ffs(ffs) = kernel.file_system_view() else {
            // It has no such call: files are cut only where they are opened.
            return Err(Errno::Invalid);
        };
        let file = self.file(number)?;
        let What::Node(node) = file.what else {
            return Err(Errno::Invalid);
        };
        if !file.write || i64::try_from(bytes).is_err() {
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
        self.enter().await;
        let what = self.file(number).map(|file| file.what.clone());
        let result = match what {
            // It does not look.
            Err(_) if self.kernel.knows_only_sync() => {
                self.kernel.sync_all(&self.process).await;
                Ok(())
            }
            Ok(what) => self.kernel.sync_file(&self.process, &what).await,
            Err(errno) => Err(errno),
        };
        self.leave(result).await
    }

    /// Closes an open file, close(2).
    pub async fn close(&mut self, number: usize) -> Result<()> {
        self.enter().await;
        let taken = self.files.get_mut(number).and_then(Option::take);
        let result = match taken {
            Some(file) => {
                self.close_file(file).await;
                Ok(())
            }
            None => Err(Errno::BadFile),
        };
        self.leave(result).await
    }

    async fn close_file(&self, file: OpenFile) {
        match file.what {
            What::Node(node) => self.kernel.close_node(&self.process, node).await,
            What::Pipe(end) => self.kernel.close_pipe(&end),
            What::Null | What::Zero | What::Raw(_) => {}
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
        self.enter().await;
        let kernel = Rc::clone(&self.kernel);
        let length = self.file(number).map(|file| match file.what {
            What::Node(node) => kernel.size_bytes(node),
            What::Raw(raw) => kernel.volumes.partition(raw.volume).bytes(),
            What::Null | What::Zero | What::Pipe(_) => 0,
        });
        self.leave(length).await
    }
}

impl Session {
    /// Returns the length of a file in bytes by its path, stat(2).
    pub async fn stat(&mut self, path: &str) -> Result<u64> {
        self.enter().await;
        let length = self.kernel.stat_path(&self.process, path).await;
        self.leave(length).await
    }

    /// Removes a name of a file, unlink(2).
    pub async fn unlink(&mut self, path: &str) -> Result<()> {
        self.enter().await;
        let result = self.kernel.unlink_path(&self.process, path).await;
        self.leave(result).await
    }

    /// Makes a directory, mkdir(2).
    pub async fn mkdir(&mut self, path: &str) -> Result<()> {
        self.enter().await;
        let result = self.kernel.mkdir_path(&self.process, path).await;
        self.leave(result).await
    }

    /// Removes an empty directory, rmdir(2).
    pub async fn rmdir(&mut self, path: &str) -> Result<()> {
        self.enter().await;
        let result = self.kernel.rmdir_path(&self.process, path).await;
        self.leave(result).await
    }

    /// Renames a file or a directory, rename(2).
    pub async fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        self.enter().await;
        let result = self.kernel.rename_path(&self.process, from, to).await;
        self.leave(result).await
    }
}

impl Session {
    /// Sleeps until a point in virtual time. Returns immediately if that time is past.
    pub async fn sleep_until(&mut self, at: Time) {
        if at > self.now() {
            self.kernel.nap(&self.process, at).await;
        }
    }

    /// Uses the processor in user mode for a duration.
    pub async fn compute(&mut self, span: Time) {
        let context = Context::Process(&self.process);
        self.kernel.spend(context, Stage::User, span).await;
        self.kernel.back_to_user_mode(&self.process).await;
    }

    /// Returns the processor time that this machine needs for a piece of work of a user program.
    #[must_use]
    pub fn time_of(&self, work: Work) -> Time {
        self.kernel.time_of(work)
    }

    /// Waits until all workers have reached the barrier. Returns `None` if one of them has failed.
    pub async fn barrier(&mut self) -> Option<Time> {
        self.meeting.meet(&self.kernel.waiter(&self.process)).await
    }

    /// Returns the number of notices that workers have sent to each other.
    pub fn notices(&self) -> u64 {
        self.meeting.notices()
    }

    /// Sends a notice, which wakes all workers that wait for one.
    pub fn give_notice(&self) {
        self.meeting.give_notice(&self.kernel.waiter(&self.process));
    }

    /// Waits until workers have sent more than `seen` notices, at most until a deadline if one is
    /// given.
    pub async fn await_notice(&mut self, seen: u64, until: Option<Time>) {
        let wait = (seen, until);
        self.meeting
            .await_notice(&self.kernel.waiter(&self.process), wait)
            .await;
    }

    /// Releases the other workers from waiting for this worker at barriers.
    pub fn give_up_meeting(&self) {
        self.meeting.give_up(&self.kernel.waiter(&self.process));
    }

    /// Opens an end of a pipe that the process was started with, and returns its descriptor number.
    /// Fails with `BadFile` if the end was taken before.
    pub async fn pipe_end(&mut self, number: usize) -> Result<usize> {
        let end = self.pipe_ends.get_mut(number).and_then(Option::take);
        let end = end.ok_or(Errno::BadFile)?;
        let read = matches!(end, PipeEnd::Read(_));
        Ok(self.install(OpenFile {
            what: What::Pipe(end),
            read,
            write: !read,
            offset: 0,
        }))
    }
}
