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
use crate::hardware::drives::{Drives, Mechanisms};
use crate::id::Id;
use crate::kernel::Unix;
use crate::kernel::driver::{Driver, QueueOrder};
use crate::kernel::process::Context;
use crate::specification::drive::DriveSpecification;
use diskperf_catalogue::{Component, Reader, System};
use diskperf_device::Device;
use diskperf_device::RequestId;
use diskperf_device::WhatIf;
use diskperf_sim::Streams;
use list::each_kind;
use std::rc::Rc;
use vme::Maintenance;

/// A part, and the drives that hang on it.
#[derive(Clone, Debug)]
pub struct Attachment<P> {
    /// The controller and its driver.
    pub part: P,
    /// The drives, by their places in [`Specification::drives`](crate::specification::Specification::drives).
    pub drives: Vec<usize>,
}

/// A part, as the catalogue describes it.
pub(crate) trait Described: Sized {
    /// What commands it.
    type Driver;

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
    (kinds $($(#[$doc:meta])* $kind:literal is $Part:ident in $folder:ident;)*) => {
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
    };
    (
        unix { $($(#[$doc:meta])* $kind:literal is $Part:ident in $folder:ident;)* }
        minix { $($(#[$of_minix:meta])* $task:literal is $Disk:ident in $disk:ident;)* }
    ) => {
        each_part! {
            kinds
            $($(#[$doc])* $kind is $Part in $folder;)*
            $($(#[$of_minix])* $task is $Disk in $disk;)*
        }

        /// A part that UNIX has a driver for, as the catalogue describes it: controller
        /// and driver.
        #[derive(Clone, Debug)]
        pub enum UnixPart {
            $($(#[$doc])* $Part($folder::Specification),)*
        }

        impl UnixPart {
            /// Reads a part of this kind, and of `driver` what its driver costs; none
            /// that UNIX has no driver for.
            pub(crate) fn read(
                kind: PartKind,
                controller: &mut Reader<'_>,
                driver: &DriverReading<'_>,
            ) -> Option<Self> {
                Some(match kind {
                    $(PartKind::$Part => Self::$Part(Described::read(controller, driver)),)*
                    PartKind::Unpublished => {
                        Self::Vme(vme::Specification::unpublished(controller, driver))
                    }
                    $(PartKind::$Disk => return None,)*
                })
            }

            /// Makes the controllers, and their driver.
            pub(crate) fn attach(&self, to: &mut Attaching<'_>) -> UnixDriver {
                match self {
                    $(Self::$Part(part) => UnixDriver::$Part(Rc::new(part.attach(to))),)*
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

        /// A driver of UNIX's, of one of the kinds that there are.
        pub(crate) enum UnixDriver {
            $($(#[$doc])* $Part(Rc<<$folder::Specification as Described>::Driver>),)*
        }

        impl UnixDriver {
            /// Takes a request; returns when it is queued or on its way.
            pub(crate) async fn strategy(&self, kernel: &Unix, context: Context<'_>, id: RequestId) {
                match self {
                    $(Self::$Part(driver) => driver.strategy(kernel, context, id).await,)*
                }
            }

            /// Starts what serves its interrupts.
            pub(crate) fn start(&self, kernel: &Rc<Unix>) {
                match self {
                    $(Self::$Part(driver) => Rc::clone(driver).start(kernel),)*
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

/// The controllers of a computer, numbered on from one attachment to the next, and the
/// driver of each attachment, as `attach` makes them.
pub(crate) fn attach<P, D>(
    (attachments, drives): (&[Attachment<P>], &Drives),
    (order, streams, what_if): (QueueOrder, Streams, WhatIf),
    attach: impl Fn(&P, &mut Attaching<'_>) -> D,
) -> (Controllers, Vec<D>) {
    let mut controllers = Controllers::default();
    let drive_count = attachments.iter().map(|one| one.drives.len()).sum();
    let attach = |attachment: &Attachment<P>| {
        let to = &mut Attaching {
            controllers: &mut controllers,
            all: drives,
            drives: &attachment.drives,
            drive_count,
            order,
            streams,
            what_if,
        };
        attach(&attachment.part, to)
    };
    let drivers = attachments.iter().map(attach).collect();
    (controllers, drivers)
}
