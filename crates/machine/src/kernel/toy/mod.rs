//! A toy kernel: raw drives, one request of a process at a time, and the driver for `direct`.

mod session;
#[cfg(test)]
mod tests;

use super::computer::Computer;
use super::costs::Costs;
use super::driver::{DriverKernel, Host};
use super::process::{Context, Process};
use crate::driver::DriverHost;
use crate::parts::{Attachment, Drivers, PartKind};
use crate::software::{Kernel, RunningKernel};
use crate::specification::kernel::KernelHost;
use crate::specification::{
    ComputerSpecification, DescribedKernel, DriveSpecification, Layout, ReadKernel, Specification,
    UnixSpecification, Volume, read_volumes,
};
use diskperf_catalogue::{Component, Reader, System};
use diskperf_device::{Operation, Request, RequestId, moment};
use diskperf_sim::Time;
use diskperf_timeline::Stage;
pub(crate) use session::ToySession;
use std::cell::RefCell;
use std::ops::{Deref, Range};
use std::rc::Rc;

/// The toy kernel, as the catalogue describes it.
#[derive(Clone, Debug)]
pub struct ToySpecification {
    computer: ComputerSpecification,
    attachments: Vec<Attachment>,
}

impl ReadKernel for ToySpecification {
    const KINDS: &[&str] = &["toy"];
    const NO_DRIVER: &str = "the toy kernel has a driver for devices alone";
    type Own = <UnixSpecification as ReadKernel>::Own;

    fn has_driver(part: PartKind) -> bool {
        part == PartKind::Direct
    }

    /// Its routines cost what those of 4.2BSD cost.
    fn read(kind: &str, reader: &mut Reader<'_>, host: &KernelHost) -> (Costs, Self::Own) {
        UnixSpecification::read(kind, reader, host)
    }

    fn attach(
        _: Self::Own,
        (computer, attachments): (ComputerSpecification, Vec<Attachment>),
        (system, drives): (&System, &[DriveSpecification]),
    ) -> (Self, Vec<Volume>) {
        let mut reader = system.reader(Component::Filesystem, None);
        reader.choice("kind", &[("none", ())], "which file system, if any");
        reader.finish();
        let toy = Self {
            computer,
            attachments,
        };
        (toy, read_volumes(system, drives, false))
    }
}

impl DescribedKernel for ToySpecification {
    fn computer(&self) -> &ComputerSpecification {
        &self.computer
    }

    fn attachments(&self) -> &[Attachment] {
        &self.attachments
    }

    fn layout(&self, _: &Volume) -> Option<Layout> {
        None
    }

    fn cache_memory(&self) -> (&'static str, u64) {
        ("host.memory_bytes", 0)
    }

    fn build(
        &self,
        _: &Specification,
        _: &[Volume],
        (computer, drivers): (Computer, Drivers),
    ) -> Kernel {
        Kernel::Toy(Rc::new(Toy {
            computer,
            drivers,
            waiting: RefCell::default(),
        }))
    }
}

/// The toy kernel, on its computer.
pub struct Toy {
    computer: Computer,
    drivers: Drivers,
    /// Requests in flight with the processes that wait for them; then completed requests.
    waiting: RefCell<Vec<(RequestId, Rc<Process>, Option<Request>)>>,
}

impl Deref for Toy {
    type Target = Computer;

    fn deref(&self) -> &Computer {
        &self.computer
    }
}

impl DriverKernel for Toy {
    fn interrupt_cost(&self) -> Time {
        self.costs.interrupt
    }

    fn completed(&self, id: RequestId) {
        let request = self.take_completed(id);
        self.count_request(None, &request, true);
        let mut waiting = self.waiting.borrow_mut();
        let entry = waiting.iter_mut().find(|(other, ..)| *other == id);
        let (_, process, completed) = entry.expect("a process waits for each request");
        *completed = Some(request);
        self.wake(process);
    }
}

impl RunningKernel for Toy {
    fn start(self: Rc<Self>) {
        self.drivers.start(&self);
    }

    fn check(&self, _: u32) -> Result<u32, Vec<String>> {
        Ok(0)
    }

    fn ring_note(&self) -> &'static str {
        "the toy kernel serves requests of a ring one after the other"
    }
}

impl Toy {
    /// Moves bytes of a volume for a process that waits.
    async fn transfer(
        &self,
        process: &Rc<Process>,
        (volume, operation, range): (u32, Operation, Range<u64>),
    ) {
        let partition = self.volumes.partition(volume);
        let sector_bytes = u64::from(partition.sector_bytes);
        let mut request = Request {
            operation,
            device: partition.drive,
            sector: partition.first_sector + range.start / sector_bytes,
            sectors: ((range.end - range.start) / sector_bytes) as u32,
            ..Request::default()
        };
        request.spans.issue(moment(self.sim.now()));
        if operation == Operation::Read {
            process.count_storage_read((range.end - range.start) as u32);
        }
        let id = self.hardware.borrow_mut().requests.issue(request);
        self.record_issue(id, true);
        let own = (id, Rc::clone(process), None);
        self.waiting.borrow_mut().push(own);
        let context = Context::Process(process);
        let host = Host {
            kernel: self,
            context,
        };
        let level = self.cpus.processors[context.cpu()].mask(&self.sim, super::process::BIO);
        let driver = self.drivers.get(partition.drive);
        if let Some(cost) = driver.queueing(partition.drive) {
            host.spend(Stage::Driver, cost).await;
        }
        host.mark(id, Stage::Driver);
        driver.take(&host, id).await;
        self.unmask(context, level).await;
        let from = self.sim.now();
        let completed = || {
            let mut waiting = self.waiting.borrow_mut();
            let done = |(other, _, request): &(RequestId, _, Option<Request>)| {
                *other == id && request.is_some()
            };
            let place = waiting.iter().position(done)?;
            waiting.swap_remove(place).2
        };
        if let Some(request) = completed() {
            drop(request);
            return;
        }
        self.park(process, "a request").await;
        let request = completed().expect("the process was woken for its request");
        process.book_request(&request.spans, from, process.runnable_at());
    }
}
