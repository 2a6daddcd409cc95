//! Memory task, system task and update daemon of Minix.

use super::Minix;
use super::errand::Errand;
use super::message::Call;
use super::message::{Accepts, Body, Device, Endpoint, Party};
use crate::errno::Errno;
use crate::event::Event;
use crate::kernel::process::Process;
use diskperf_timeline::Stage;
use std::rc::Rc;

impl Minix {
    /// Runs the memory task, which serves the null device as `/dev/null` and as a block device. It
    /// never ends.
    pub(super) async fn memory_task(self: Rc<Self>) {
        let me = self.party(Endpoint::Memory);
        self.begin(&me.process).await;
        loop {
            let message = self.receive(&me, Accepts::Any).await;
            let Body::Device(request) = message.body else {
                panic!("the memory task is asked for its devices")
            };
            let cost = self.config.task;
            self.work((&me.process, &message.errand), Stage::Driver, cost)
                .await;
            assert!(request.device == Device::Null, "the device is in memory");
            // What is read is at its end at once; what is written is taken.
            let taken: usize = request
                .pieces
                .iter()
                .map(|piece| piece.borrow().len())
                .sum();
            let moved = Ok(if request.write { taken } else { 0 });
            self.send(&me, message.from, &message.errand, Body::Moved(moved))
                .await;
        }
    }

    /// Runs the system task, which alone may copy from one process to another. It never ends.
    pub(super) async fn system_task(self: Rc<Self>) {
        let me = self.party(Endpoint::System);
        self.begin(&me.process).await;
        loop {
            let message = self.receive(&me, Accepts::Any).await;
            let Body::Copy(bytes) = message.body else {
                panic!("the system task is asked to copy")
            };
            let own = (&*me.process, &message.errand);
            self.work(own, Stage::SystemCall, self.config.task).await;
            self.work(own, Stage::Copy, self.costs.copy_time(bytes))
                .await;
            self.send(&me, message.from, &message.errand, Body::Copied)
                .await;
        }
    }

    /// Runs the daemon `/etc/update`, which calls sync(2) at a fixed interval and never ends.
    pub(super) async fn update(self: Rc<Self>) {
        let me = Party {
            endpoint: Endpoint::Program(usize::MAX),
            process: Process::new(usize::MAX - super::OWN.len()),
        };
        self.exchange.register(me.endpoint, &me.process);
        self.begin(&me.process).await;
        loop {
            let next = self.sim.now() + self.costs.update_interval;
            self.release_processor(&me.process);
            self.sim
                .sleep_in_background_until(next, Event::Daemon)
                .await;
            self.regain(&me.process).await;
            let errand = Errand::at(self.sim.now());
            let body = Body::Call(Call::Sync);
            let Body::Reply(_) = self.sendrec(&me, Endpoint::FileServer, &errand, body).await
            else {
                panic!("the file server answers with a reply")
            };
        }
    }
}

/// Error of a system call that Minix does not have (`no_sys`).
pub(super) const NO_SUCH_CALL: Errno = Errno::Invalid;
