//! Memory task, system task and update daemon of Minix.

use super::Minix;
use super::call_account::CallAccount;
use super::message::Call;
use super::message::{AcceptedSenders, Endpoint, MessageBody, MessageParty, MinixDevice};
use crate::errno::Errno;
use crate::event::Event;
use crate::kernel::process::Process;
use diskperf_timeline::Stage;
use std::rc::Rc;

impl Minix {
    /// Runs the memory task, which serves the null device as `/dev/null` and as a block device. It
    /// never ends.
    pub(super) async fn memory_task(self: Rc<Self>) {
        let me = self.find_party(Endpoint::Memory);
        self.begin(&me.process).await;
        loop {
            let message = self.receive(&me, AcceptedSenders::Any).await;
            let MessageBody::Device(request) = message.body else {
                panic!("the memory task serves only memory devices")
            };
            let cost = self.config.task;
            self.spend_on_call((&me.process, &message.account), Stage::Driver, cost)
                .await;
            assert!(
                request.device == MinixDevice::Null,
                "the device is in memory"
            );
            // What is read is at its end at once; what is written is taken.
            let taken: usize = request
                .buffers
                .iter()
                .map(|piece| piece.borrow().len())
                .sum();
            let moved = Ok(if request.write { taken } else { 0 });
            self.send(
                &me,
                message.from,
                &message.account,
                MessageBody::Transferred(moved),
            )
            .await;
        }
    }

    /// Runs the system task, which alone may copy from one process to another. It never ends.
    pub(super) async fn system_task(self: Rc<Self>) {
        let me = self.find_party(Endpoint::System);
        self.begin(&me.process).await;
        loop {
            let message = self.receive(&me, AcceptedSenders::Any).await;
            let MessageBody::Copy(bytes) = message.body else {
                panic!("the system task serves only copies")
            };
            let own = (&*me.process, &message.account);
            self.spend_on_call(own, Stage::SystemCall, self.config.task)
                .await;
            self.spend_on_call(own, Stage::Copy, self.costs.copy_time(bytes))
                .await;
            self.send(&me, message.from, &message.account, MessageBody::Copied)
                .await;
        }
    }

    /// Runs the daemon `/etc/update`, which calls sync(2) at a fixed interval and never ends.
    pub(super) async fn update(self: Rc<Self>) {
        let me = MessageParty {
            endpoint: Endpoint::Program(usize::MAX),
            process: Process::new(usize::MAX - super::KERNEL_ENDPOINTS.len()),
        };
        self.exchange.register(me.endpoint, &me.process);
        self.begin(&me.process).await;
        loop {
            let next = self.sim.now() + self.costs.update_interval;
            self.release_processor(&me.process);
            self.sim
                .sleep_in_background_until(next, Event::Daemon)
                .await;
            self.regain_processor(&me.process).await;
            let account = CallAccount::starting_at(self.sim.now());
            let body = MessageBody::Call(Call::Sync);
            let MessageBody::Reply(_) = self
                .sendrec(&me, Endpoint::FileServer, &account, body)
                .await
            else {
                panic!("the file server answers with a reply")
            };
        }
    }
}

/// Error of a system call that Minix does not have (`no_sys`).
pub(super) const NO_SUCH_CALL: Errno = Errno::Invalid;
