//! Disk drivers: from a buffer to a command, and from an interrupt back.

mod disksort;
mod hd;
mod hp;
mod uda;
mod vme;

pub use disksort::QueueOrder;
pub use hd::HdConfig;
pub use hp::{HpConfig, PositionTest, SearchLead};
pub use uda::UdaConfig;
pub use vme::{ScanFrom, VmeDriverConfig};

pub(crate) use hd::Hd;
pub(crate) use hp::Hp;
pub(crate) use uda::Uda;
pub(crate) use vme::VmeDriver;

use super::Kernel;
use super::buffers::BufferId;
use super::minix::DiskTaskConfig;
use super::process::Context;
use crate::hardware::{Request, RequestId, moment};
use diskperf_timeline::Stage;

/// The drivers that there are.
pub(crate) enum Driver {
    /// MASSBUS disks.
    Hp(Hp),
    /// The UDA50.
    Uda(Uda),
    /// Disks of a PC-AT.
    Hd(Hd),
    /// Controllers for the VMEbus.
    Vme(VmeDriver),
    /// Minix's disk task, which takes messages, not buffers.
    DiskTask(DiskTaskConfig),
}

/// Who is told of the completion of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Who waits for a buffer of the cache.
    Buffer(BufferId),
    /// Who moves data of this volume past the cache.
    Raw(u32),
}

impl Kernel {
    /// A request of somebody's, who gives it to its driver next.
    pub(super) fn issue(&self, request: Request, owner: Owner) -> RequestId {
        let id = self.hardware.borrow_mut().requests.issue(request);
        let mut owners = self.owners.borrow_mut();
        if owners.len() <= id.place() {
            owners.resize(id.place() + 1, owner);
        }
        owners[id.place()] = owner;
        id
    }

    /// A driver has seen a request's end: the request is over, and its owner is
    /// told.
    fn completed(&self, id: RequestId) {
        let owner = self.owners.borrow()[id.place()];
        let mut request = self.hardware.borrow_mut().requests.take(id);
        request.mark(Stage::Completion, moment(self.sim.now()));
        match owner {
            Owner::Buffer(buffer) => self.biodone(buffer, request),
            Owner::Raw(volume) => self.raw_done(volume, request),
        }
    }

    /// Counts a request that is over, of a buffer if it is one's, for which
    /// somebody waited or nobody.
    pub(super) fn count_request(&self, of: Option<BufferId>, request: &Request, awaited: bool) {
        self.statistics.borrow_mut().count(request);
        let drive = &self.hardware.borrow().drives[request.device];
        self.trace_request(of, request, drive, awaited);
    }

    /// Takes a request; returns when it is queued or on its way.
    pub(crate) async fn strategy(&self, context: Context<'_>, id: RequestId) {
        let drive = self.hardware.borrow().requests[id].device;
        match &self.drivers[self.driver_of[drive]] {
            Driver::Hp(hp) => self.hp_strategy(hp, context, id).await,
            Driver::Uda(uda) => self.uda_strategy(uda, context, id).await,
            Driver::Hd(hd) => self.hd_strategy(hd, context, id).await,
            Driver::Vme(vme) => self.vme_strategy(vme, context, id).await,
            Driver::DiskTask(_) => panic!("Minix has no strategy routine"),
        }
    }

    /// What has passed of a request's time since its last mark went to `stage`.
    fn mark(&self, id: RequestId, stage: Stage) {
        let now = moment(self.sim.now());
        self.hardware.borrow_mut().requests[id].mark(stage, now);
    }
}
