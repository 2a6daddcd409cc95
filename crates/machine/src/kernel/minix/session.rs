//! System call interface of a Minix program, as its C library provides it.

use super::super::costs::ProgramWork;
use super::super::pipe::PipeEnd;
use super::super::process::{ExecutionContext, Process};
use super::MinixKernel;
use super::cache::SharedBytes;
use super::call_account::CallAccount;
use super::message::FileServerCall;
use super::message::{Endpoint, MessageBody, MessageParty, Reply};
use super::ring::MinixRing;
use crate::calls::{OpenFlags, ProcessAccount, SeekOrigin};
use crate::errno::{Errno, Result};
use crate::rendezvous::WorkerRendezvous;
use crate::written::WriteData;
use diskperf_sim::Time;
use diskperf_timeline::Stage;

use std::rc::Rc;

/// Process of a program under Minix, through which it makes system calls.
pub struct MinixSession {
    pub(super) kernel: Rc<MinixKernel>,
    pub(super) program_party: MessageParty,
    account: CallAccount,
    /// Buffer of the program. The system task copies into and out of it.
    transfer_buffer: SharedBytes,
    pipe_ends: Vec<Option<PipeEnd>>,
    rendezvous: Rc<WorkerRendezvous>,
    pub(super) ring: Option<Rc<MinixRing>>,
}

impl MinixSession {
    /// Returns the processor time that this machine needs for a piece of work of a user program.
    pub(crate) fn program_work_time(&self, work: ProgramWork) -> Time {
        self.kernel.program_work_time(work)
    }

    /// Starts a new process in the calling simulation task. Returns when the process has the
    /// processor.
    pub(crate) async fn begin_session(
        kernel: &Rc<MinixKernel>,
        number: usize,
        pipe_ends: Vec<PipeEnd>,
        meeting: &Rc<WorkerRendezvous>,
    ) -> Self {
        let me = MessageParty {
            endpoint: Endpoint::UserProgram(number),
            process: Process::new(number),
        };
        kernel.message_exchange.register(me.endpoint, &me.process);
        kernel.begin_process(&me.process).await;
        Self {
            kernel: Rc::clone(kernel),
            program_party: me,
            account: CallAccount::default(),
            transfer_buffer: SharedBytes::default(),
            pipe_ends: pipe_ends.into_iter().map(Some).collect(),
            rendezvous: Rc::clone(meeting),
            ring: None,
        }
    }

    /// Closes all files and pipe ends of the process and ends it.
    pub(crate) async fn end_session(mut self) {
        self.close_ring().await;
        self.close_all().await;
        for end in std::mem::take(&mut self.pipe_ends).into_iter().flatten() {
            self.kernel.close_pipe(&end);
        }
        let minix = &self.kernel;
        minix
            .message_exchange
            .unregister(self.program_party.endpoint);
        let own = |billed: &Rc<Process>| Rc::ptr_eq(billed, &self.program_party.process);
        minix
            .billed_process
            .borrow_mut()
            .take_if(|billed| own(billed));
        self.kernel.end_process(&self.program_party.process);
    }

    pub(crate) fn current_time(&self) -> Time {
        self.kernel.simulation.now()
    }

    pub(crate) fn open_account(&self) {
        self.program_party.process.open_account(self.current_time());
        self.kernel.trace_busy_times();
    }

    pub(crate) fn current_account(&self) -> ProcessAccount {
        ProcessAccount::from_process(&self.kernel, &self.program_party.process)
    }

    /// Makes a system call of the program: sends a message to the file server and waits for the
    /// reply.
    async fn call_server(&self, call: FileServerCall) -> Reply {
        let (kernel, process) = (&self.kernel, &self.program_party.process);
        process.set_user_mode(false);
        kernel.billed_process.replace(Some(Rc::clone(process)));
        let reply = kernel
            .call_server_as(&self.program_party, &self.account, call)
            .await;
        kernel.return_to_user_mode(process).await;
        reply
    }

    async fn call_for_value(&self, call: FileServerCall) -> Result<u64> {
        match self.call_server(call).await {
            Reply::ValueReply(result) => result,
            Reply::PipeReply(_) => panic!("only reads and writes reply with a pipe"),
        }
    }

    async fn call_for_success(&self, call: FileServerCall) -> Result<()> {
        self.call_for_value(call).await.map(|_| ())
    }
}

impl MinixKernel {
    /// Makes a system call for a program or a daemon, and books its time to the caller. `account` is
    /// the call's own time account.
    pub(super) async fn call_server_as(
        &self,
        me: &MessageParty,
        account: &CallAccount,
        call: FileServerCall,
    ) -> Reply {
        let process = &me.process;
        let cost = self.config.message_time;
        self.spend_processor_time(
            ExecutionContext::InProcess(process),
            Stage::SystemCall,
            cost,
        )
        .await;
        let from = self.simulation.now();
        account.begin_call(from);
        let body = MessageBody::FileServerCall(call);
        let answer = self
            .exchange_messages(me, Endpoint::FileServer, account, body)
            .await;
        account.book_spans(process, from, process.runnable_since());
        match answer {
            MessageBody::Reply(reply) => reply,
            _ => panic!("the file server answers with a reply"),
        }
    }
}

impl MinixSession {
    pub(crate) async fn open_path(&mut self, path: &str, how: OpenFlags) -> Result<usize> {
        let path = path.to_owned();
        let opened = self
            .call_for_value(FileServerCall::Open { path, how })
            .await?;
        Ok(opened as usize)
    }

    pub(crate) async fn read(&mut self, file: usize, into: &mut [u8]) -> Result<usize> {
        self.transfer_buffer.borrow_mut().resize(into.len(), 0);
        let memory = Rc::clone(&self.transfer_buffer);
        match self
            .call_server(FileServerCall::Read {
                file,
                at: None,
                memory,
            })
            .await
        {
            Reply::ValueReply(read) => {
                let count = read? as usize;
                into[..count].copy_from_slice(&self.transfer_buffer.borrow()[..count]);
                Ok(count)
            }
            Reply::PipeReply(PipeEnd::ReadEnd(pipe)) => {
                self.kernel
                    .read_pipe(&self.program_party.process, &pipe, into)
                    .await
            }
            Reply::PipeReply(PipeEnd::WriteEnd(_)) => Err(Errno::BadFileDescriptor),
        }
    }

    pub(crate) async fn write(&mut self, file: usize, data: WriteData<'_>) -> Result<usize> {
        {
            let mut memory = self.transfer_buffer.borrow_mut();
            memory.clear();
            memory.extend_from_slice(&data);
        }
        let memory = Rc::clone(&self.transfer_buffer);
        match self
            .call_server(FileServerCall::Write {
                file,
                at: None,
                memory,
            })
            .await
        {
            Reply::ValueReply(written) => written.map(|count| count as usize),
            Reply::PipeReply(PipeEnd::WriteEnd(pipe)) => {
                self.kernel
                    .write_pipe(&self.program_party.process, &pipe, data.as_bytes())
                    .await
            }
            Reply::PipeReply(PipeEnd::ReadEnd(_)) => Err(Errno::BadFileDescriptor),
        }
    }

    pub(crate) async fn lseek(
        &mut self,
        file: usize,
        offset: i64,
        from: SeekOrigin,
    ) -> Result<u64> {
        self.call_for_value(FileServerCall::Seek { file, offset, from })
            .await
    }

    /// Fails always, because Minix has no ftruncate(2). Files are truncated only when they are
    /// opened.
    pub(crate) async fn ftruncate(&mut self, _: usize, _: u64) -> Result<()> {
        self.call_for_success(FileServerCall::NoReply).await
    }

    /// Syncs all drives. fsync of the C library is sync(2), whatever the descriptor.
    pub(crate) async fn fsync(&mut self, _: usize) -> Result<()> {
        self.call_for_success(FileServerCall::Sync).await
    }

    pub(crate) async fn close(&mut self, file: usize) -> Result<()> {
        self.call_for_success(FileServerCall::Close { file }).await
    }

    pub(crate) async fn close_all(&mut self) {
        let closed = self.call_for_success(FileServerCall::CloseAll).await;
        closed.expect("an open file can be closed");
    }

    pub(crate) async fn file_length(&mut self, file: usize) -> Result<u64> {
        self.call_for_value(FileServerCall::FileLength { file })
            .await
    }
}

impl MinixSession {
    pub(crate) async fn stat(&mut self, path: &str) -> Result<u64> {
        let path = path.to_owned();
        self.call_for_value(FileServerCall::Stat { path }).await
    }

    pub(crate) async fn unlink(&mut self, path: &str) -> Result<()> {
        let path = path.to_owned();
        self.call_for_success(FileServerCall::Unlink { path }).await
    }

    /// Changes the mode, owner or times of a file: chmod(2), chown(2) and utime(2).
    pub(crate) async fn change_attributes(&mut self, path: &str) -> Result<()> {
        let path = path.to_owned();
        self.call_for_success(FileServerCall::ChangeAttributes { path })
            .await
    }

    /// Fails always, because Minix has no fchmod(2) and no fchown(2).
    pub(crate) async fn change_open_attributes(&mut self, _: usize) -> Result<()> {
        self.call_for_success(FileServerCall::NoReply).await
    }

    pub(crate) async fn mkdir(&mut self, path: &str) -> Result<()> {
        let path = path.to_owned();
        self.call_for_success(FileServerCall::Mkdir { path }).await
    }

    pub(crate) async fn rmdir(&mut self, path: &str) -> Result<()> {
        let path = path.to_owned();
        self.call_for_success(FileServerCall::Rmdir { path }).await
    }

    pub(crate) async fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (from.to_owned(), to.to_owned());
        self.call_for_success(FileServerCall::Rename { from, to })
            .await
    }
}

impl MinixSession {
    pub(crate) async fn sleep_until(&mut self, at: Time) {
        if at > self.current_time() {
            self.kernel
                .sleep_process_until(&self.program_party.process, at)
                .await;
        }
    }

    pub(crate) async fn consume_user_time(&mut self, span: Time) {
        let process = &self.program_party.process;
        let context = ExecutionContext::InProcess(process);
        self.kernel
            .spend_processor_time(context, Stage::User, span)
            .await;
        self.kernel.return_to_user_mode(process).await;
    }

    pub(crate) async fn barrier(&mut self) -> Option<Time> {
        self.rendezvous
            .attend_meeting(&self.kernel.process_waiter(&self.program_party.process))
            .await
    }

    pub(crate) fn notice_count(&self) -> u64 {
        self.rendezvous.notice_count()
    }

    pub(crate) fn give_notice(&self) {
        self.rendezvous
            .give_notice(&self.kernel.process_waiter(&self.program_party.process));
    }

    pub(crate) async fn await_notice(&mut self, seen: u64, until: Option<Time>) {
        let wait = (seen, until);
        self.rendezvous
            .await_notice(
                &self.kernel.process_waiter(&self.program_party.process),
                wait,
            )
            .await;
    }

    pub(crate) fn abandon_meeting(&self) {
        self.rendezvous
            .abandon_meeting(&self.kernel.process_waiter(&self.program_party.process));
    }

    pub(crate) async fn take_pipe_end(&mut self, number: usize) -> Result<usize> {
        let end = self.pipe_ends.get_mut(number).and_then(Option::take);
        let end = end.ok_or(Errno::BadFileDescriptor)?;
        let taken = self.call_for_value(FileServerCall::TakePipe(end)).await?;
        Ok(taken as usize)
    }
}

impl MinixSession {
    pub(crate) async fn drop_cached_blocks(&mut self, path: &str) -> Result<()> {
        let path = path.to_owned();
        self.call_for_success(FileServerCall::DropCachedBlocks { path })
            .await
    }

    pub(crate) async fn drop_all_caches(&mut self) {
        let dropped = self.call_for_success(FileServerCall::DropAllBlocks).await;
        dropped.expect("a cached block can be written");
    }

    pub(crate) async fn resident_bytes(&mut self, path: &str, length: u64) -> Result<u64> {
        let path = path.to_owned();
        self.call_for_value(FileServerCall::CachedBytes { path, length })
            .await
    }

    /// Writes all dirty blocks of the Minix cache to their drives.
    pub(crate) async fn flush_volume(&mut self, _volume: u32) {
        let synced = self.call_for_success(FileServerCall::Sync).await;
        synced.expect("a cached block can be written");
    }

    pub(crate) fn volume_count(&self) -> usize {
        let server = self.kernel.file_server_state.borrow();
        server.volumes.len()
    }

    pub(crate) fn has_volume(&self, drive: u32) -> bool {
        (drive as usize) < self.kernel.volumes.volume_count()
    }
}
