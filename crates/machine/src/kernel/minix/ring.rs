//! Asynchronous ring of Minix. Each request is a message to a daemon of the program. The daemon
//! calls the file server for it and reports completion. The server handles one call at a time and
//! waits for the drive itself, so that other requests in flight wait for the server.

use super::super::process::Context;
use super::super::ring::DaemonRequests;
use super::Minix;
use super::cache::SharedBytes;
use super::call_account::CallAccount;
use super::message::Call;
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
    program: MessageParty,
    files: Vec<usize>,
}

impl MinixSession {
    pub(crate) async fn open_ring(&mut self, size: RingSize, files: &[usize]) -> Result<()> {
        if self.ring.is_some() {
            return Err(Errno::Busy);
        }
        if size.depth == 0 {
            return Err(Errno::Invalid);
        }
        for file in files {
            self.length(*file).await?;
        }
        let ring = Rc::new(MinixRing {
            requests: DaemonRequests::new(&self.program_party.process, size),
            program: self.program_party.clone(),
            files: files.to_vec(),
        });
        for slot in 0..size.depth {
            let daemon = daemon(Rc::clone(&self.kernel), Rc::clone(&ring), slot);
            let name = format!(
                "daemon {slot} of process {}",
                self.program_party.process.pid
            );
            self.kernel.sim.spawn(name, false, daemon);
        }
        self.kernel.await_daemons(&ring.requests).await;
        self.ring = Some(ring);
        self.kernel
            .return_to_user_mode(&self.program_party.process)
            .await;
        Ok(())
    }

    pub(crate) async fn submit(&mut self, requests: &[RingRequest]) -> Result<()> {
        let ring = self.ring.as_ref().ok_or(Errno::Invalid)?;
        let (kernel, process) = (&self.kernel, &self.program_party.process);
        process.enter_mode(false);
        for request in requests {
            let cost = kernel.config.message;
            kernel
                .spend(Context::Process(process), Stage::SystemCall, cost)
                .await;
            kernel.hand_over(&ring.requests, *request);
        }
        kernel.return_to_user_mode(process).await;
        Ok(())
    }

    pub(crate) async fn reap(
        &mut self,
        at_least: usize,
        until: Option<Time>,
        completions: &mut Vec<RingCompletion>,
    ) -> Result<()> {
        let ring = self.ring.as_ref().ok_or(Errno::Invalid)?;
        self.program_party.process.enter_mode(false);
        self.kernel
            .await_completions(&ring.requests, at_least, until)
            .await;
        ring.requests.take_completions(completions);
        self.kernel
            .return_to_user_mode(&self.program_party.process)
            .await;
        Ok(())
    }

    pub(crate) fn ring_contents(&self, slot: u32) -> Option<&RefCell<Vec<u8>>> {
        let ring = self.ring.as_ref()?;
        Some(ring.requests.contents(slot))
    }

    pub(crate) fn in_flight_count(&self) -> usize {
        let ring = self.ring.as_ref();
        ring.map_or(0, |ring| ring.requests.in_flight_count())
    }

    pub(crate) async fn close_ring(&mut self) {
        let Some(ring) = self.ring.take() else { return };
        self.program_party.process.enter_mode(false);
        self.kernel
            .await_completions(&ring.requests, usize::MAX, None)
            .await;
        self.kernel.end_daemons(&ring.requests);
        self.kernel
            .return_to_user_mode(&self.program_party.process)
            .await;
    }
}

/// Performs the requests of a ring's slot, one after the other, until the ring closes.
async fn daemon(kernel: Rc<Minix>, ring: Rc<MinixRing>, slot: u32) {
    let program = ring.program.process.pid;
    let me = MessageParty {
        endpoint: Endpoint::Daemon { program, slot },
        process: Rc::clone(ring.requests.daemon(slot)),
    };
    me.process.enter_mode(false);
    kernel.exchange.register(me.endpoint, &me.process);
    kernel.begin(&me.process).await;
    let account = CallAccount::for_program(&ring.program.process);
    let memory = SharedBytes::default();
    while let Some(request) = kernel.next_request(&ring.requests, slot).await {
        let own = (&me, &account, &memory);
        let result = kernel.execute_request(own, &ring, request).await;
        let word = kernel.config.message;
        let context = Context::Process(&me.process);
        kernel.spend(context, Stage::SystemCall, word).await;
        kernel.complete(&ring.requests, slot, result);
    }
    kernel.exchange.unregister(me.endpoint);
    kernel.end(&me.process);
}

impl Minix {
    /// Performs a ring request in its daemon and returns the number of bytes moved.
    async fn execute_request(
        &self,
        (me, account, memory): (&MessageParty, &CallAccount, &SharedBytes),
        ring: &MinixRing,
        request: RingRequest,
    ) -> Result<usize> {
        let RingRequest { file, offset, .. } = request;
        if !ring.files.contains(&file) {
            return Err(Errno::BadFile);
        }
        let at = Some(offset);
        let call = match request.operation {
            RingOperation::Read => {
                memory.borrow_mut().resize(request.bytes as usize, 0);
                let memory = Rc::clone(memory);
                Call::Read { file, at, memory }
            }
            RingOperation::Write => {
                let mut own = memory.borrow_mut();
                own.clear();
                let contents = ring.requests.contents(request.slot).borrow();
                match contents.get(..request.bytes as usize) {
                    Some(contents) => own.extend_from_slice(contents),
                    None => own.extend_from_slice(&ring.requests.data(request)),
                }
                let memory = Rc::clone(memory);
                Call::Write { file, at, memory }
            }
            RingOperation::Fsync => Call::Sync,
            RingOperation::Discard => return Err(Errno::Invalid),
        };
        self.billed_process
            .replace(Some(Rc::clone(&ring.program.process)));
        match self.call(me, account, call).await {
            Reply::Value(result) => {
                let count = result? as usize;
                if request.operation == RingOperation::Read {
                    ring.requests
                        .keep_read(request.slot, &memory.borrow()[..count]);
                }
                Ok(count)
            }
            Reply::Pipe(_) => panic!("a pipe has no offsets"),
        }
    }
}
