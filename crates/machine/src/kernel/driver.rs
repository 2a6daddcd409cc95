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
use crate::hardware::moment;
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

impl Kernel {
    /// Takes a buffer to be transferred; returns when it is queued or on its
    /// way.
    pub(crate) async fn strategy(&self, context: Context<'_>, id: BufferId) {
        let drive = self.hardware.borrow_mut().transfer(id.transfer()).drive;
        match &self.drivers[self.driver_of[drive]] {
            Driver::Hp(hp) => self.hp_strategy(hp, context, id).await,
            Driver::Uda(uda) => self.uda_strategy(uda, context, id).await,
            Driver::Hd(hd) => self.hd_strategy(hd, context, id).await,
            Driver::Vme(vme) => self.vme_strategy(vme, context, id).await,
            Driver::DiskTask(_) => panic!("Minix has no strategy routine"),
        }
    }

    /// What has passed of a request's time since its last mark went to `stage`.
    fn mark(&self, id: BufferId, stage: Stage) {
        let now = moment(self.sim.now());
        self.hardware
            .borrow_mut()
            .transfer(id.transfer())
            .request
            .mark(stage, now);
    }
}
