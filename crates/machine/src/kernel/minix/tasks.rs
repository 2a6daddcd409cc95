//! Memory task, system task and update daemon of Minix.

use super::MinixKernel;
use super::call_account::CallAccount;
use super::message::FileServerCall;
use super::message::{AcceptedSenders, Endpoint, MessageBody, MessageParty, MinixDevice};
use crate::errno::Errno;
use crate::event::MachineEvent;
use crate::kernel::process::Process;
use diskperf_timeline::Stage;
use std::rc::Rc;

impl MinixKernel {
    /// Runs the memory task, which serves the null device as `/dev/null` and as a block device. It
    /// never ends.
    pub(super) async fn run_memory_task(self: Rc<Self>) {
        let me = self.find_party(Endpoint::MemoryTask);
        self.begin_process(&me.process).await;
        loop {
            let message = self.receive_message(&me, AcceptedSenders::AnySender).await;
            let MessageBody::DeviceRequest(request) = message.body else {
                panic!("the memory task serves only memory devices")
            };
            let cost = self.config.disk_task_time;
            self.spend_on_call((&me.process, &message.account), Stage::Driver, cost)
                .await;
            assert!(
                request.device == MinixDevice::NullDevice,
                "the device is in memory"
            );
            // What is read is at its end at once; what is written is taken.
            let taken: usize = request
                .buffers
                .iter()
                .map(|piece| piece.borrow().len())
                .sum();
            let moved = Ok(if request.is_write { taken } else { 0 });
            self.send_message(
                &me,
                message.sender,
                &message.account,
                MessageBody::DeviceReply(moved),
            )
            .await;
        }
    }

    /// Runs the system task, which alone may copy from one process to another. It never ends.
    pub(super) async fn run_system_task(self: Rc<Self>) {
        let me = self.find_party(Endpoint::SystemTask);
        self.begin_process(&me.process).await;
        loop {
            let message = self.receive_message(&me, AcceptedSenders::AnySender).await;
            let MessageBody::CopyRequest(bytes) = message.body else {
                panic!("the system task serves only copies")
            };
            let own = (&*me.process, &message.account);
            self.spend_on_call(own, Stage::SystemCall, self.config.disk_task_time)
                .await;
            self.spend_on_call(own, Stage::Copy, self.costs.copy_time(bytes))
                .await;
            self.send_message(
                &me,
                message.sender,
                &message.account,
                MessageBody::CopyReply,
            )
            .await;
        }
    }

    /// Runs the daemon `/etc/update`, which calls sync(2) at a fixed interval and never ends.
    pub(super) async fn run_update_daemon(self: Rc<Self>) {
        let me = MessageParty {
            endpoint: Endpoint::UserProgram(usize::MAX),
            process: Process::new(usize::MAX - super::KERNEL_ENDPOINTS.len()),
        };
        self.message_exchange.register(me.endpoint, &me.process);
        self.begin_process(&me.process).await;
        loop {
            let next = self.simulation.now() + self.costs.update_interval;
            self.release_processor(&me.process);
            self.simulation
                .sleep_in_background_until(next, MachineEvent::DaemonWakeUp)
                .await;
            self.regain_processor(&me.process).await;
            let account = CallAccount::new_at(self.simulation.now());
            let body = MessageBody::FileServerCall(FileServerCall::Sync);
            let MessageBody::Reply(_) = self
                .send_and_receive(&me, Endpoint::FileServer, &account, body)
                .await
            else {
                panic!("the file server answers with a reply")
            };
        }
    }
}

/// Error of a system call that Minix does not have (`no_sys`).
pub(super) const NO_SUCH_CALL_ERRNO: Errno = Errno::InvalidArgument;
