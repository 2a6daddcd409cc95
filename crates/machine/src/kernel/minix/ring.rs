//! Asynchronous ring of Minix. Each request is a message to a daemon of the program. The daemon
//! calls the file server for it and reports completion. The server handles one call at a time and
//! waits for the drive itself, so that other requests in flight wait for the server.

use super::super::process::ExecutionContext;
use super::super::ring::DaemonRequests;
use super::MinixKernel;
use super::cache::SharedBytes;
use super::call_account::CallAccount;
use super::message::FileServerCall;
use super::message::{Endpoint, MessageParty, Reply};
use super::session::MinixSession;
use crate::errno::{Errno, Result};
use crate::ring::{RingCompletion, RingOperation, RingRequest, RingSize};
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::RefCell;
use std::rc::Rc;

/// Asynchronous ring of a program under Minix.
pub(crate) struct MinixRing {
    requests: DaemonRequests,
    program_party: MessageParty,
    file_descriptors: Vec<usize>,
}

impl MinixSession {
    pub(crate) async fn open_ring(&mut self, size: RingSize, files: &[usize]) -> Result<()> {
        if self.ring.is_some() {
            return Err(Errno::DeviceBusy);
        }
        if size.queue_depth == 0 {
            return Err(Errno::InvalidArgument);
        }
        for file in files {
            self.file_length(*file).await?;
        }
        let ring = Rc::new(MinixRing {
            requests: DaemonRequests::new(&self.program_party.process, size),
            program_party: self.program_party.clone(),
            file_descriptors: files.to_vec(),
        });
        for slot in 0..size.queue_depth {
            let daemon = run_daemon(Rc::clone(&self.kernel), Rc::clone(&ring), slot);
            let name = format!(
                "daemon {slot} of process {}",
                self.program_party.process.pid
            );
            self.kernel.simulation.spawn(name, false, daemon);
        }
        self.kernel.wait_for_daemons(&ring.requests).await;
        self.ring = Some(ring);
        self.kernel
            .return_to_user_mode(&self.program_party.process)
            .await;
        Ok(())
    }

    pub(crate) async fn submit_requests(&mut self, requests: &[RingRequest]) -> Result<()> {
        let ring = self.ring.as_ref().ok_or(Errno::InvalidArgument)?;
        let (kernel, process) = (&self.kernel, &self.program_party.process);
        process.set_user_mode(false);
        for request in requests {
            let cost = kernel.config.message_time;
            kernel
                .spend_processor_time(
                    ExecutionContext::InProcess(process),
                    Stage::SystemCall,
                    cost,
                )
                .await;
            kernel.assign_request(&ring.requests, *request);
        }
        kernel.return_to_user_mode(process).await;
        Ok(())
    }

    pub(crate) async fn reap_completions(
        &mut self,
        at_least: usize,
        until: Option<Time>,
        completions: &mut Vec<RingCompletion>,
    ) -> Result<()> {
        let ring = self.ring.as_ref().ok_or(Errno::InvalidArgument)?;
        self.program_party.process.set_user_mode(false);
        self.kernel
            .wait_for_completions(&ring.requests, at_least, until)
            .await;
        ring.requests.take_completions(completions);
        self.kernel
            .return_to_user_mode(&self.program_party.process)
            .await;
        Ok(())
    }

    pub(crate) fn ring_contents(&self, slot: u32) -> Option<&RefCell<Vec<u8>>> {
        let ring = self.ring.as_ref()?;
        Some(ring.requests.contents_of_slot(slot))
    }

    pub(crate) fn in_flight_count(&self) -> usize {
        let ring = self.ring.as_ref();
        ring.map_or(0, |ring| ring.requests.in_flight_count())
    }

    pub(crate) async fn close_ring(&mut self) {
        let Some(ring) = self.ring.take() else { return };
        self.program_party.process.set_user_mode(false);
        self.kernel
            .wait_for_completions(&ring.requests, usize::MAX, None)
            .await;
        self.kernel.end_daemons(&ring.requests);
        self.kernel
            .return_to_user_mode(&self.program_party.process)
            .await;
    }
}

/// Performs the requests of a ring's slot, one after the other, until the ring closes.
async fn run_daemon(kernel: Rc<MinixKernel>, ring: Rc<MinixRing>, slot: u32) {
    let program = ring.program_party.process.pid;
    let me = MessageParty {
        endpoint: Endpoint::RingDaemon { program, slot },
        process: Rc::clone(ring.requests.daemon_of_slot(slot)),
    };
    me.process.set_user_mode(false);
    kernel.message_exchange.register(me.endpoint, &me.process);
    kernel.begin_process(&me.process).await;
    let account = CallAccount::for_program(&ring.program_party.process);
    let memory = SharedBytes::default();
    while let Some(request) = kernel.next_request(&ring.requests, slot).await {
        let result = kernel
            .execute_request(&me, &account, &memory, &ring, request)
            .await;
        let word = kernel.config.message_time;
        let context = ExecutionContext::InProcess(&me.process);
        kernel
            .spend_processor_time(context, Stage::SystemCall, word)
            .await;
        kernel.complete_request(&ring.requests, slot, result);
    }
    kernel.message_exchange.unregister(me.endpoint);
    kernel.end_process(&me.process);
}

impl MinixKernel {
    /// Performs a ring request in its daemon and returns the number of bytes moved.
    async fn execute_request(
        &self,
        me: &MessageParty,
        account: &CallAccount,
        memory: &SharedBytes,
        ring: &MinixRing,
        request: RingRequest,
    ) -> Result<usize> {
        let RingRequest {
            file_number: file,
            offset_bytes: offset,
            ..
        } = request;
        if !ring.file_descriptors.contains(&file) {
            return Err(Errno::BadFileDescriptor);
        }
        let at = Some(offset);
        let call = match request.operation {
            RingOperation::Read => {
                memory.borrow_mut().resize(request.bytes as usize, 0);
                let memory = Rc::clone(memory);
                FileServerCall::Read { file, at, memory }
            }
            RingOperation::Write => {
                let mut own = memory.borrow_mut();
                own.clear();
                let contents = ring.requests.contents_of_slot(request.slot).borrow();
                match contents.get(..request.bytes as usize) {
                    Some(contents) => own.extend_from_slice(contents),
                    None => own.extend_from_slice(&ring.requests.write_data_of(request)),
                }
                let memory = Rc::clone(memory);
                FileServerCall::Write { file, at, memory }
            }
            RingOperation::Fsync => FileServerCall::Sync,
            RingOperation::Discard => return Err(Errno::InvalidArgument),
        };
        self.billed_process
            .replace(Some(Rc::clone(&ring.program_party.process)));
        match self.call_server_as(me, account, call).await {
            Reply::ValueReply(result) => {
                let count = result? as usize;
                if request.operation == RingOperation::Read {
                    ring.requests
                        .store_read_data(request.slot, &memory.borrow()[..count]);
                }
                Ok(count)
            }
            Reply::PipeReply(_) => panic!("a pipe has no offsets"),
        }
    }
}
