//! Parts: what hangs between the bus and the drives, each a folder that holds what the
//! catalogue says of it (`specification`), the state machine (`hardware`), and the
//! software that commands it (`driver`).
//!
//! A part is one line in the list of `each_kind`. Controllers of a kind are kept together,
//! under numbers that carry their kind ([`Id`]): an event cannot reach a controller of
//! another kind, and a driver has no way to one.

pub mod acsi;
pub mod direct;
pub(crate) mod list;
pub mod massbus;
pub mod uda50;
pub mod up;
pub mod vme;
pub mod wd1003;

use crate::controllers::{Controllers, Kind};
use crate::driver::{Driver, DriverHost, QueueOrder};
use crate::hardware::drives::{Drives, Mechanisms};
use crate::id::Id;
use crate::kernel::driver::{self, DriverKernel};
use crate::specification::drive::DriveSpecification;
use diskperf_catalogue::{Component, Reader, System};
use diskperf_device::Device;
use diskperf_device::RequestId;
use diskperf_device::WhatIf;
use diskperf_sim::Streams;
use diskperf_sim::Time;
use list::each_kind;
use std::rc::Rc;
use vme::Maintenance;

/// A part, and the drives that hang on it.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// The controller and its driver.
    pub part: Part,
    /// The drives, by their places in [`Specification::drives`](crate::specification::Specification::drives).
    pub drives: Vec<usize>,
}

/// A part, as the catalogue describes it.
pub(crate) trait Described: Sized {
    /// What commands it.
    type Driver: Driver;

    /// Reads the controller, and of `driver` what its driver costs.
    fn read(controller: &mut Reader<'_>, driver: &DriverReading<'_>) -> Self;

    /// Makes the controllers, and their driver.
    fn attach(&self, to: &mut Attaching<'_>) -> Self::Driver;

    /// Whether its controllers command bare mechanisms; else, devices hang on them.
    const COMMANDS_MECHANISMS: bool = true;

    /// Whether data come late at times.
    fn loses_data(&self) -> bool {
        false
    }

    /// How it formats and verifies, if that is known.
    fn maintenance(&self) -> Option<Maintenance> {
        None
    }
}

/// Where the driver of a part is described.
pub(crate) struct DriverReading<'a> {
    pub(crate) system: &'a System,
    /// The drive, counted from one, whose own it is.
    pub(crate) own: Option<u32>,
    /// All drives, and the places of those that hang on the part.
    pub(crate) drives: &'a [DriveSpecification],
    pub(crate) of: &'a [usize],
    /// Of the processor.
    pub(crate) speed: f64,
}

impl DriverReading<'_> {
    /// A reader of the driver's table.
    pub(crate) fn reader(&self) -> Reader<'_> {
        self.system.reader(Component::Driver, self.own)
    }
}

/// What a part is made with.
pub(crate) struct Attaching<'a> {
    controllers: &'a mut Controllers,
    all: &'a Drives,
    /// The drives that hang on it, and how many the computer has.
    pub(crate) drives: &'a [usize],
    pub(crate) drive_count: usize,
    /// How a driver that orders its queue does it.
    pub(crate) order: QueueOrder,
    pub(crate) streams: Streams,
    pub(crate) what_if: WhatIf,
}

impl Attaching<'_> {
    /// Adds a controller, which is told its number among those of its kind and its
    /// number among all, by which its random streams are named.
    pub(crate) fn add<C: Kind>(&mut self, make: impl FnOnce(Id<C>, usize) -> C) -> Id<C> {
        self.controllers.add(make)
    }

    /// The mechanisms among these drives, for the controller that they hang on.
    pub(crate) fn mechanisms(&self, drives: &[usize]) -> Mechanisms {
        self.all.mechanisms_among(drives)
    }

    /// The devices that hang on it, each with its number as a drive.
    pub(crate) fn devices(&self) -> Vec<(usize, Id<Device>)> {
        self.all.devices_among(self.drives)
    }
}

macro_rules! each_part {
    ($($(#[$doc:meta])* $kind:literal is $Part:ident in $folder:ident;)*) => {
        /// The kinds of parts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum PartKind {
            $($(#[$doc])* $Part,)*
            /// One of which no document prints a number.
            Unpublished,
        }

        impl PartKind {
            pub(crate) fn read(controller: &mut Reader<'_>) -> Self {
                let kinds = [$(($kind, Self::$Part),)* ("unpublished", Self::Unpublished)];
                controller.choice("kind", &kinds, "what it is to the software")
            }

            /// Whether its controllers command bare mechanisms.
            pub(crate) fn commands_mechanisms(self) -> bool {
                match self {
                    $(Self::$Part => <$folder::Specification as Described>::COMMANDS_MECHANISMS,)*
                    Self::Unpublished => true,
                }
            }
        }

        /// A part, as the catalogue describes it: controller and driver.
        #[derive(Clone, Debug)]
        pub enum Part {
            $($(#[$doc])* $Part($folder::Specification),)*
        }

        impl Part {
            /// Reads a part of this kind, and of `driver` what its driver costs.
            pub(crate) fn read(
                kind: PartKind,
                controller: &mut Reader<'_>,
                driver: &DriverReading<'_>,
            ) -> Self {
                match kind {
                    $(PartKind::$Part => Self::$Part(Described::read(controller, driver)),)*
                    PartKind::Unpublished => {
                        Self::Vme(vme::Specification::unpublished(controller, driver))
                    }
                }
            }

            /// Makes the controllers, and their driver.
            fn attach(&self, to: &mut Attaching<'_>) -> PartDriver {
                match self {
                    $(Self::$Part(part) => PartDriver::$Part(Rc::new(part.attach(to))),)*
                }
            }

            /// Whether data come late at times.
            pub(crate) fn loses_data(&self) -> bool {
                match self {
                    $(Self::$Part(part) => part.loses_data(),)*
                }
            }

            /// How it formats and verifies, if that is known.
            pub(crate) fn maintenance(&self) -> Option<Maintenance> {
                match self {
                    $(Self::$Part(part) => part.maintenance(),)*
                }
            }
        }

        /// A driver, of one of the kinds that there are.
        pub(crate) enum PartDriver {
            $($(#[$doc])* $Part(Rc<<$folder::Specification as Described>::Driver>),)*
        }

        impl PartDriver {
            /// See [`Driver::queueing`].
            pub(crate) fn queueing(&self, drive: usize) -> Option<Time> {
                match self {
                    $(Self::$Part(driver) => driver.queueing(drive),)*
                }
            }

            /// See [`Driver::read_ahead_bytes`].
            pub(crate) fn read_ahead_bytes(&self) -> u32 {
                match self {
                    $(Self::$Part(driver) => driver.read_ahead_bytes(),)*
                }
            }

            /// See [`Driver::take`].
            pub(crate) async fn take(&self, host: &impl DriverHost, id: RequestId) {
                match self {
                    $(Self::$Part(driver) => driver.take(host, id).await,)*
                }
            }

            /// Starts the handlers of its interrupts.
            pub(crate) fn start(&self, kernel: &Rc<impl DriverKernel>) {
                match self {
                    $(Self::$Part(driver) => driver::start(driver, kernel),)*
                }
            }
        }
    };
}

/// Sectors that a controller buffers.
fn buffer_sectors(controller: &mut Reader<'_>) -> u32 {
    controller.integer("buffer_sectors", 1..=1_000_000, "sectors that it buffers") as u32
}

each_kind! { each_part }

/// The drivers of a computer.
pub(crate) struct Drivers {
    all: Vec<PartDriver>,
    /// Place of each drive's driver.
    of: Vec<usize>,
}

impl Drivers {
    /// The driver of a drive.
    pub(crate) fn get(&self, drive: usize) -> &PartDriver {
        &self.all[self.of[drive]]
    }

    /// Starts the handlers of all interrupts.
    pub(crate) fn start(&self, kernel: &Rc<impl DriverKernel>) {
        for driver in &self.all {
            driver.start(kernel);
        }
    }
}

/// The controllers of a computer, numbered on from one attachment to the next, and the
/// driver of each attachment.
pub(crate) fn attach(
    (attachments, drives): (&[Attachment], &Drives),
    (order, streams, what_if): (QueueOrder, Streams, WhatIf),
) -> (Controllers, Drivers) {
    let mut controllers = Controllers::default();
    let drive_count = attachments.iter().map(|one| one.drives.len()).sum();
    let attach = |attachment: &Attachment| {
        attachment.part.attach(&mut Attaching {
            controllers: &mut controllers,
            all: drives,
            drives: &attachment.drives,
            drive_count,
            order,
            streams,
            what_if,
        })
    };
    let of = |drive: usize| {
        let mut all = attachments.iter();
        let place = all.position(|one| one.drives.contains(&drive));
        place.expect("every drive hangs on some controller")
    };
    let drivers = Drivers {
        all: attachments.iter().map(attach).collect(),
        of: (0..drive_count).map(of).collect(),
    };
    (controllers, drivers)
}
