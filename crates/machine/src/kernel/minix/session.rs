//! System call interface of a Minix program, as its C library provides it.

use super::super::costs::Work;
use super::super::pipe::PipeEnd;
use super::super::process::{Context, Process};
use super::Minix;
use super::cache::SharedBytes;
use super::call_account::CallAccount;
use super::message::Call;
use super::message::{Endpoint, MessageBody, MessageParty, Reply};
use super::ring::MinixRing;
use crate::calls::{Account, From, How};
use crate::errno::{Errno, Result};
use crate::rendezvous::Rendezvous;
use crate::written::Written;
use diskperf_sim::Time;
use diskperf_timeline::Stage;

use std::rc::Rc;

/// Process of a program under Minix, through which it makes system calls.
pub struct MinixSession {
    pub(super) kernel: Rc<Minix>,
    pub(super) program_party: MessageParty,
    account: CallAccount,
    /// Buffer of the program. The system task copies into and out of it.
    memory: SharedBytes,
    pipe_ends: Vec<Option<PipeEnd>>,
    rendezvous: Rc<Rendezvous>,
    pub(super) ring: Option<Rc<MinixRing>>,
}

impl MinixSession {
    /// Returns the processor time that this machine needs for a piece of work of a user program.
    pub(crate) fn time_of(&self, work: Work) -> Time {
        self.kernel.time_of(work)
    }

    /// Starts a new process in the calling simulation task. Returns when the process has the
    /// processor.
    pub(crate) async fn begin(
        kernel: &Rc<Minix>,
        number: usize,
        pipe_ends: Vec<PipeEnd>,
        meeting: &Rc<Rendezvous>,
    ) -> Self {
        let me = MessageParty {
            endpoint: Endpoint::Program(number),
            process: Process::new(number),
        };
        kernel.exchange.register(me.endpoint, &me.process);
        kernel.begin(&me.process).await;
        Self {
            kernel: Rc::clone(kernel),
            program_party: me,
            account: CallAccount::default(),
            memory: SharedBytes::default(),
            pipe_ends: pipe_ends.into_iter().map(Some).collect(),
            rendezvous: Rc::clone(meeting),
            ring: None,
        }
    }

    /// Closes all files and pipe ends of the process and ends it.
    pub(crate) async fn end(mut self) {
        self.close_ring().await;
        self.close_all().await;
        for end in std::mem::take(&mut self.pipe_ends).into_iter().flatten() {
            self.kernel.close_pipe(&end);
        }
        let minix = &self.kernel;
        minix.exchange.unregister(self.program_party.endpoint);
        let own = |billed: &Rc<Process>| Rc::ptr_eq(billed, &self.program_party.process);
        minix
            .billed_process
            .borrow_mut()
            .take_if(|billed| own(billed));
        self.kernel.end(&self.program_party.process);
    }

    pub(crate) fn now(&self) -> Time {
        self.kernel.sim.now()
    }

    pub(crate) fn open_account(&self) {
        self.program_party.process.open_account(self.now());
        self.kernel.trace_busy();
    }

    pub(crate) fn account(&self) -> Account {
        Account::from_process(&self.kernel, &self.program_party.process)
    }

    /// Makes a system call of the program: sends a message to the file server and waits for the
    /// reply.
    async fn call(&self, call: Call) -> Reply {
        let (kernel, process) = (&self.kernel, &self.program_party.process);
        process.enter_mode(false);
        kernel.billed_process.replace(Some(Rc::clone(process)));
        let reply = kernel.call(&self.program_party, &self.account, call).await;
        kernel.return_to_user_mode(process).await;
        reply
    }

    async fn call_for_value(&self, call: Call) -> Result<u64> {
        match self.call(call).await {
            Reply::Value(result) => result,
            Reply::Pipe(_) => panic!("only reads and writes reply with a pipe"),
        }
    }

    async fn call_for_success(&self, call: Call) -> Result<()> {
        self.call_for_value(call).await.map(|_| ())
    }
}

impl Minix {
    /// Makes a system call for a program or a daemon, and books its time to the caller. `account` is
    /// the call's own time account.
    pub(super) async fn call(&self, me: &MessageParty, account: &CallAccount, call: Call) -> Reply {
        let process = &me.process;
        let cost = self.config.message;
        self.spend(Context::Process(process), Stage::SystemCall, cost)
            .await;
        let from = self.sim.now();
        account.begin(from);
        let body = MessageBody::Call(call);
        let answer = self
            .exchange_messages(me, Endpoint::FileServer, account, body)
            .await;
        account.book(process, from, process.runnable_at());
        match answer {
            MessageBody::Reply(reply) => reply,
            _ => panic!("the file server answers with a reply"),
        }
    }
}

impl MinixSession {
    pub(crate) async fn open(&mut self, path: &str, how: How) -> Result<usize> {
        let path = path.to_owned();
        let opened = self.call_for_value(Call::Open { path, how }).await?;
        Ok(opened as usize)
    }

    pub(crate) async fn read(&mut self, file: usize, into: &mut [u8]) -> Result<usize> {
        self.memory.borrow_mut().resize(into.len(), 0);
        let memory = Rc::clone(&self.memory);
        match self
            .call(Call::Read {
                file,
                at: None,
                memory,
            })
            .await
        {
            Reply::Value(read) => {
                let count = read? as usize;
                into[..count].copy_from_slice(&self.memory.borrow()[..count]);
                Ok(count)
            }
            Reply::Pipe(PipeEnd::Read(pipe)) => {
                self.kernel
                    .read_pipe(&self.program_party.process, &pipe, into)
                    .await
            }
            Reply::Pipe(PipeEnd::Write(_)) => Err(Errno::BadFile),
        }
    }

    pub(crate) async fn write(&mut self, file: usize, data: Written<'_>) -> Result<usize> {
        {
            let mut memory = self.memory.borrow_mut();
            memory.clear();
            memory.extend_from_slice(&data);
        }
        let memory = Rc::clone(&self.memory);
        match self
            .call(Call::Write {
                file,
                at: None,
                memory,
            })
            .await
        {
            Reply::Value(written) => written.map(|count| count as usize),
            Reply::Pipe(PipeEnd::Write(pipe)) => {
                self.kernel
                    .write_pipe(&self.program_party.process, &pipe, data.bytes())
                    .await
            }
            Reply::Pipe(PipeEnd::Read(_)) => Err(Errno::BadFile),
        }
    }

    pub(crate) async fn lseek(&mut self, file: usize, offset: i64, from: From) -> Result<u64> {
        self.call_for_value(Call::Seek { file, offset, from }).await
    }

    /// Fails always, because Minix has no ftruncate(2). Files are truncated only when they are
    /// opened.
    pub(crate) async fn ftruncate(&mut self, _: usize, _: u64) -> Result<()> {
        self.call_for_success(Call::None).await
    }

    /// Syncs all drives. fsync of the C library is sync(2), whatever the descriptor.
    pub(crate) async fn fsync(&mut self, _: usize) -> Result<()> {
        self.call_for_success(Call::Sync).await
    }

    pub(crate) async fn close(&mut self, file: usize) -> Result<()> {
        self.call_for_success(Call::Close { file }).await
    }

    pub(crate) async fn close_all(&mut self) {
        let closed = self.call_for_success(Call::CloseAll).await;
        closed.expect("an open file can be closed");
    }

    pub(crate) async fn length(&mut self, file: usize) -> Result<u64> {
        self.call_for_value(Call::Length { file }).await
    }
}

impl MinixSession {
    pub(crate) async fn stat(&mut self, path: &str) -> Result<u64> {
        let path = path.to_owned();
        self.call_for_value(Call::Stat { path }).await
    }

    pub(crate) async fn unlink(&mut self, path: &str) -> Result<()> {
        let path = path.to_owned();
        self.call_for_success(Call::Unlink { path }).await
    }

    /// Changes the mode, owner or times of a file: chmod(2), chown(2) and utime(2).
    pub(crate) async fn change_attributes(&mut self, path: &str) -> Result<()> {
        let path = path.to_owned();
        self.call_for_success(Call::ChangeAttributes { path }).await
    }

    /// Fails always, because Minix has no fchmod(2) and no fchown(2).
    pub(crate) async fn change_open_attributes(&mut self, _: usize) -> Result<()> {
        self.call_for_success(Call::None).await
    }

    pub(crate) async fn mkdir(&mut self, path: &str) -> Result<()> {
        let path = path.to_owned();
        self.call_for_success(Call::Mkdir { path }).await
    }

    pub(crate) async fn rmdir(&mut self, path: &str) -> Result<()> {
        let path = path.to_owned();
        self.call_for_success(Call::Rmdir { path }).await
    }

    pub(crate) async fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (from.to_owned(), to.to_owned());
        self.call_for_success(Call::Rename { from, to }).await
    }
}

impl MinixSession {
    pub(crate) async fn sleep_until(&mut self, at: Time) {
        if at > self.now() {
            self.kernel
                .sleep_until(&self.program_party.process, at)
                .await;
        }
    }

    pub(crate) async fn compute(&mut self, span: Time) {
        let process = &self.program_party.process;
        let context = Context::Process(process);
        self.kernel.spend(context, Stage::User, span).await;
        self.kernel.return_to_user_mode(process).await;
    }

    pub(crate) async fn barrier(&mut self) -> Option<Time> {
        self.rendezvous
            .meet(&self.kernel.waiter(&self.program_party.process))
            .await
    }

    pub(crate) fn notices(&self) -> u64 {
        self.rendezvous.notices()
    }

    pub(crate) fn give_notice(&self) {
        self.rendezvous
            .give_notice(&self.kernel.waiter(&self.program_party.process));
    }

    pub(crate) async fn await_notice(&mut self, seen: u64, until: Option<Time>) {
        let wait = (seen, until);
        self.rendezvous
            .await_notice(&self.kernel.waiter(&self.program_party.process), wait)
            .await;
    }

    pub(crate) fn give_up_meeting(&self) {
        self.rendezvous
            .give_up(&self.kernel.waiter(&self.program_party.process));
    }

    pub(crate) async fn pipe_end(&mut self, number: usize) -> Result<usize> {
        let end = self.pipe_ends.get_mut(number).and_then(Option::take);
        let end = end.ok_or(Errno::BadFile)?;
        let taken = self.call_for_value(Call::TakePipe(end)).await?;
        Ok(taken as usize)
    }
}

impl MinixSession {
    pub(crate) async fn drop_cached(&mut self, path: &str) -> Result<()> {
        let path = path.to_owned();
        self.call_for_success(Call::DropCached { path }).await
    }

    pub(crate) async fn drop_all_caches(&mut self) {
        let dropped = self.call_for_success(Call::DropAll).await;
        dropped.expect("a cached block can be written");
    }

    pub(crate) async fn resident_bytes(&mut self, path: &str, length: u64) -> Result<u64> {
        let path = path.to_owned();
        self.call_for_value(Call::Resident { path, length }).await
    }

    /// Writes all dirty blocks of the Minix cache to their drives.
    pub(crate) async fn flush(&mut self, _volume: u32) {
        let synced = self.call_for_success(Call::Sync).await;
        synced.expect("a cached block can be written");
    }

    pub(crate) fn volumes(&self) -> usize {
        let server = self.kernel.server.borrow();
        server.volumes.len()
    }

    pub(crate) fn has_volume(&self, drive: u32) -> bool {
        (drive as usize) < self.kernel.volumes.count()
    }
}
