//! A process's system calls.

use super::computer::Computer;
use super::costs::Work;
use super::file_io::What;
use super::names::Found;
use super::pipe::PipeEnd;
use super::process::{Context, Process};
use super::raw::Raw;
use super::ring::unix::Ring;
use super::{On, Unix, Vnode};
use crate::calls::{Account, From, How};
use crate::errno::{Errno, Result};
use crate::rendezvous::Rendezvous;
use crate::written::Written;
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::rc::Rc;

/// A process and what it has open.
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
    /// That of a process.
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
    /// A new process, in the task that asks; returns when it has the
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

    /// The process ends, with all its files closed.
    pub async fn end(mut self) {
        self.close_ring().await;
        self.close_all().await;
        for end in std::mem::take(&mut self.pipe_ends).into_iter().flatten() {
            self.kernel.close_pipe(&end);
        }
        self.kernel.end(&self.process);
        self.ended = true;
    }

    /// The present moment.
    pub fn now(&self) -> Time {
        self.kernel.sim.now()
    }

    /// Starts the account of where the process's time goes.
    pub fn open_account(&self) {
        self.process.open_account(self.now());
        self.kernel.trace_busy();
    }

    /// The account since then.
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

    /// An open file, and who does something with it for whom.
    fn file_and_kernel(
        &mut self,
        number: usize,
    ) -> Result<(&mut OpenFile, &Rc<Unix>, &Rc<Process>)> {
        let slot = self.files.get_mut(number).and_then(Option::as_mut);
        let file = slot.ok_or(Errno::BadFile)?;
        Ok((file, &self.kernel, &self.process))
    }

    /// The inode of an open file.
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

/// Files.
impl Session {
    /// open(2); the number of the file.
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

    /// read(2).
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

    /// write(2).
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

    /// lseek(2).
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

    /// ftruncate(2).
    pub async fn ftruncate(&mut self, number: usize, bytes: u64) -> Result<()> {
        self.enter().await;
        let result = self.ftruncate_open(number, bytes).await;
        self.leave(result).await
    }

    async fn ftruncate_open(&mut self, number: usize, bytes: u64) -> Result<()> {
        let (kernel, process) = (Rc::clone(&self.kernel), Rc::clone(&self.process));
        let On::Ffs(ffs) = kernel.on() else {
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
        if bytes > ffs.fs(node.volume, |fs| fs.max_size_bytes()) {
            return Err(Errno::FileTooLarge);
        }
        kernel.lock(&process, node).await;
        let result = ffs.resize(&process, node, bytes).await;
        kernel.unlock(node);
        result
    }

    /// fsync(2).
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

    /// close(2).
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

    /// Closes everything.
    pub async fn close_all(&mut self) {
        for file in std::mem::take(&mut self.files).into_iter().flatten() {
            self.close_file(file).await;
        }
    }

    /// fstat(2): the length of a file.
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

/// Names.
impl Session {
    /// stat(2): the length of what is in a file system.
    pub async fn stat(&mut self, path: &str) -> Result<u64> {
        self.enter().await;
        let length = self.kernel.stat_path(&self.process, path).await;
        self.leave(length).await
    }

    /// unlink(2).
    pub async fn unlink(&mut self, path: &str) -> Result<()> {
        self.enter().await;
        let result = self.kernel.unlink_path(&self.process, path).await;
        self.leave(result).await
    }

    /// mkdir(2).
    pub async fn mkdir(&mut self, path: &str) -> Result<()> {
        self.enter().await;
        let result = self.kernel.mkdir_path(&self.process, path).await;
        self.leave(result).await
    }

    /// rmdir(2).
    pub async fn rmdir(&mut self, path: &str) -> Result<()> {
        self.enter().await;
        let result = self.kernel.rmdir_path(&self.process, path).await;
        self.leave(result).await
    }

    /// rename(2).
    pub async fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        self.enter().await;
        let result = self.kernel.rename_path(&self.process, from, to).await;
        self.leave(result).await
    }
}

/// Time, and the others.
impl Session {
    /// Sleeps until a moment.
    pub async fn sleep_until(&mut self, at: Time) {
        if at > self.now() {
            self.kernel.nap(&self.process, at).await;
        }
    }

    /// Uses the processor in user mode for this long.
    pub async fn compute(&mut self, span: Time) {
        let context = Context::Process(&self.process);
        self.kernel.spend(context, Stage::User, span).await;
        self.kernel.back_to_user_mode(&self.process).await;
    }

    /// The time that this machine takes for work of a program.
    #[must_use]
    pub fn time_of(&self, work: Work) -> Time {
        self.kernel.time_of(work)
    }

    /// Waits for the other workers; none if one of them failed.
    pub async fn barrier(&mut self) -> Option<Time> {
        self.meeting.meet(&self.kernel.waiter(&self.process)).await
    }

    /// Notices that workers gave each other.
    pub fn notices(&self) -> u64 {
        self.meeting.notices()
    }

    /// Wakes the workers that wait for a notice.
    pub fn give_notice(&self) {
        self.meeting.give_notice(&self.kernel.waiter(&self.process));
    }

    /// Waits for more notices than `seen`, at most until a moment.
    pub async fn await_notice(&mut self, seen: u64, until: Option<Time>) {
        let wait = (seen, until);
        self.meeting
            .await_notice(&self.kernel.waiter(&self.process), wait)
            .await;
    }

    /// The others need not wait for this one.
    pub fn give_up_meeting(&self) {
        self.meeting.give_up(&self.kernel.waiter(&self.process));
    }

    /// Takes an end of a pipe.
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
