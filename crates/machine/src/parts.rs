//! Parts: the components between the bus and the drives. Each part is a folder with its description
//! in the catalogue (`specification`), its state machine (`hardware`) and its software (`driver`).
//!
//! A part is one line in the list of `each_kind`. Controllers of a kind are stored together, under
//! numbers that carry their kind ([`ComponentId`]): an event cannot reach a controller of another kind, and
//! a driver cannot access one.

pub mod acsi;
pub mod direct;
pub(crate) mod list;
pub mod massbus;
pub mod uda50;
pub mod up;
pub mod vme;
pub mod wd1003;

use crate::controllers::{ControllerKind, Controllers};
use crate::driver::{Driver, DriverHost, QueueOrder};
use crate::hardware::drives::{Drives, MechanismIds};
use crate::id::ComponentId;
use crate::kernel::driver::{self, DriverKernel};
use crate::specification::drive::DriveSpecification;
use diskperf_catalogue::{Component, Reader, ResolvedSystem};
use diskperf_device::Device;
use diskperf_device::RequestId;
use diskperf_device::WhatIf;
use diskperf_sim::RandomStreams;
use diskperf_sim::Time;
use list::each_kind;
use std::rc::Rc;
use vme::MaintenanceCommands;

/// Part (controller with its driver), and the drives that are attached to it.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// Controller between bus and drives, with its driver.
    pub controller_part: ControllerSpecification,
    /// Attached drives, as indices into
    /// [`MachineSpecification::drives`](crate::specification::MachineSpecification::drives).
    pub drive_indices: Vec<usize>,
}

/// Description of a part (controller with its driver) in the catalogue.
pub(crate) trait PartSpecification: Sized {
    /// Driver type of the part's controllers.
    type Driver: Driver;

    /// Reads the parameters of the controller and of its driver from the catalogue.
    fn read_specification(controller: &mut Reader<'_>, driver: &DriverSource<'_>) -> Self;

    /// Creates the part's controllers and their driver.
    fn attach_part(&self, builder: &mut PartBuilder<'_>) -> Self::Driver;

    /// Whether the part's controllers command bare mechanisms. Otherwise they command devices.
    const COMMANDS_MECHANISMS: bool = true;

    /// Reports whether data may be late at times, which costs a revolution.
    fn may_lose_data(&self) -> bool {
        false
    }

    /// Returns the part's procedure for format and verify, if known.
    fn maintenance(&self) -> Option<MaintenanceCommands> {
        None
    }
}

/// Source of a driver's parameters in the catalogue.
pub(crate) struct DriverSource<'a> {
    pub(crate) system: &'a ResolvedSystem,
    /// Number of the drive that has a driver for itself, counted from 1. None for the driver shared
    /// by all drives.
    pub(crate) dedicated_drive: Option<u32>,
    /// Descriptions of all drives of the system.
    pub(crate) drives: &'a [DriveSpecification],
    pub(crate) attached_drives: &'a [usize],
    /// Speed of the processor, relative to the machine for which costs are given.
    pub(crate) speed: f64,
}

impl DriverSource<'_> {
    /// Returns a reader of the driver's table in the catalogue.
    pub(crate) fn reader(&self) -> Reader<'_> {
        self.system.reader(Component::Driver, self.dedicated_drive)
    }
}

/// Environment in which a part's controllers and driver are created.
pub(crate) struct PartBuilder<'a> {
    controllers: &'a mut Controllers,
    all_drives: &'a Drives,
    /// Drives that are attached to the part, by their numbers.
    pub(crate) drive_indices: &'a [usize],
    pub(crate) drive_count: usize,
    /// Request order for drivers that sort their queues.
    pub(crate) queue_order: QueueOrder,
    pub(crate) streams: RandomStreams,
    pub(crate) what_if: WhatIf,
}

impl PartBuilder<'_> {
    /// Adds a controller. `make` receives its number among the controllers of its kind, and its
    /// number among all controllers, which names its random streams.
    pub(crate) fn add_controller<C: ControllerKind>(
        &mut self,
        make: impl FnOnce(ComponentId<C>, usize) -> C,
    ) -> ComponentId<C> {
        self.controllers.add_controller(make)
    }

    /// Returns the mechanisms among the given drives, for the controller that they are attached to.
    pub(crate) fn mechanisms(&self, drives: &[usize]) -> MechanismIds {
        self.all_drives.mechanisms_among(drives)
    }

    /// Returns the devices attached to the part, each with its drive number.
    pub(crate) fn devices(&self) -> Vec<(usize, ComponentId<Device>)> {
        self.all_drives.devices_among(self.drive_indices)
    }
}

macro_rules! each_part {
    ($($(#[$doc:meta])* $kind:literal is $Part:ident in $folder:ident as $Described:ident;)*) => {
        /// Kind of part: the controller type between the bus and the drives.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum PartKind {
            $($(#[$doc])* $Part,)*
            /// Controller for which no document publishes any figure.
            UnpublishedController,
        }

        impl PartKind {
            pub(crate) fn read_kind(controller: &mut Reader<'_>) -> Self {
                let kind_names = [$(($kind, Self::$Part),)* ("unpublished", Self::UnpublishedController)];
                controller.choice("kind", &kind_names, "kind of controller, which selects its driver")
            }

            /// Reports whether the controllers of this kind of part command bare mechanisms.
            pub(crate) fn commands_mechanisms(self) -> bool {
                match self {
                    $(Self::$Part => <$folder::$Described as PartSpecification>::COMMANDS_MECHANISMS,)*
                    Self::UnpublishedController => true,
                }
            }
        }

        /// Part as described in the catalogue: a controller with its driver.
        #[derive(Clone, Debug)]
        pub enum ControllerSpecification {
            $($(#[$doc])* $Part($folder::$Described),)*
        }

        impl ControllerSpecification {
            /// Reads the parameters of a part of this kind and of its driver from the catalogue.
            pub(crate) fn read_specification(
                kind: PartKind,
                controller: &mut Reader<'_>,
                driver: &DriverSource<'_>,
            ) -> Self {
                match kind {
                    $(PartKind::$Part => Self::$Part(PartSpecification::read_specification(controller, driver)),)*
                    PartKind::UnpublishedController => {
                        Self::Vme(vme::VmeSpecification::with_unpublished_costs(controller, driver))
                    }
                }
            }

            fn attach_part(&self, builder: &mut PartBuilder<'_>) -> PartDriver {
                match self {
                    $(Self::$Part(part) => PartDriver::$Part(Rc::new(part.attach_part(builder))),)*
                }
            }

            /// Reports whether data may be late at times, which costs a revolution.
            pub(crate) fn may_lose_data(&self) -> bool {
                match self {
                    $(Self::$Part(part) => part.may_lose_data(),)*
                }
            }

            /// Returns the part's procedure for format and verify, if known.
            pub(crate) fn maintenance(&self) -> Option<MaintenanceCommands> {
                match self {
                    $(Self::$Part(part) => part.maintenance(),)*
                }
            }
        }

        /// Driver of any kind of controller.
        pub(crate) enum PartDriver {
            $($(#[$doc])* $Part(Rc<<$folder::$Described as PartSpecification>::Driver>),)*
        }

        impl PartDriver {
            /// Processor time of queueing a request; see [`Driver::queueing_cost`].
            pub(crate) fn queueing_cost(&self, drive: usize) -> Option<Time> {
                match self {
                    $(Self::$Part(driver) => driver.queueing_cost(drive),)*
                }
            }

            /// Minimum size of a read, in bytes; see [`Driver::read_bytes_min`].
            pub(crate) fn read_bytes_min(&self) -> u32 {
                match self {
                    $(Self::$Part(driver) => driver.read_bytes_min(),)*
                }
            }

            /// Accepts a request from the kernel; see [`Driver::accept_request`].
            pub(crate) async fn accept_request(&self, host: &impl DriverHost, id: RequestId) {
                match self {
                    $(Self::$Part(driver) => driver.accept_request(host, id).await,)*
                }
            }

            /// Starts the driver's interrupt handlers.
            pub(crate) fn start_driver(&self, kernel: &Rc<impl DriverKernel>) {
                match self {
                    $(Self::$Part(driver) => driver::start_driver(driver, kernel),)*
                }
            }
        }
    };
}

fn buffer_sectors(controller: &mut Reader<'_>) -> u32 {
    controller.integer(
        "buffer_sectors",
        1..=1_000_000,
        "sectors in the controller's buffer",
    ) as u32
}

each_kind! { each_part }

/// Drivers of a computer.
pub(crate) struct Drivers {
    drivers: Vec<PartDriver>,
    drive_drivers: Vec<usize>,
}

impl Drivers {
    pub(crate) fn driver_of_drive(&self, drive: usize) -> &PartDriver {
        &self.drivers[self.drive_drivers[drive]]
    }

    /// Starts the interrupt handlers of all drivers.
    pub(crate) fn start_drivers(&self, kernel: &Rc<impl DriverKernel>) {
        for driver in &self.drivers {
            driver.start_driver(kernel);
        }
    }
}

/// Creates the controllers of a computer, numbered consecutively over all attachments, and the
/// driver of each attachment.
pub(crate) fn attach_parts(
    attachments: &[Attachment],
    drives: &Drives,
    order: QueueOrder,
    streams: RandomStreams,
    what_if: WhatIf,
) -> (Controllers, Drivers) {
    let mut controllers = Controllers::default();
    let drive_count = attachments.iter().map(|one| one.drive_indices.len()).sum();
    let attach = |attachment: &Attachment| {
        attachment.controller_part.attach_part(&mut PartBuilder {
            controllers: &mut controllers,
            all_drives: drives,
            drive_indices: &attachment.drive_indices,
            drive_count,
            queue_order: order,
            streams,
            what_if,
        })
    };
    let of = |drive: usize| {
        let mut all = attachments.iter();
        let place = all.position(|one| one.drive_indices.contains(&drive));
        place.expect("every drive hangs on some controller")
    };
    let drivers = Drivers {
        drivers: attachments.iter().map(attach).collect(),
        drive_drivers: (0..drive_count).map(of).collect(),
    };
    (controllers, drivers)
}
