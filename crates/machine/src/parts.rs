//! Parts: what hangs between the bus and the drives, each a folder that holds what the
//! catalogue says of it (`specification`), the state machine (`hardware`), and the
//! software that commands it (`driver`).
//!
//! A part is one line in `each_part`'s list. Controllers of a kind are kept together,
//! under numbers that carry their kind ([`Id`]): an event cannot reach a controller of
//! another kind, and a driver has no way to one.

pub mod acsi;
pub mod direct;
pub mod massbus;
pub mod uda50;
pub mod up;
pub mod vme;
pub mod wd1003;

use crate::event::Event;
use crate::hardware::cache::CacheStatistics;
use crate::hardware::drives::{Drives, Mechanisms};
use crate::hardware::{Parts, RequestId, Surroundings};
use crate::kernel::Unix;
use crate::kernel::driver::{Driver, QueueOrder};
use crate::kernel::process::Context;
use crate::specification::{Attachment, DriveSpecification};
use diskperf_catalogue::{Component, Reader, System};
use diskperf_device::Device;
use diskperf_device::WhatIf;
use diskperf_sim::{Streams, TaskId, Time};
use diskperf_timeline::trace::Counted;
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;
use vme::Maintenance;

/// A controller: a plain state machine.
pub trait Controller: Sized {
    /// What it schedules for itself.
    type Event: Copy + fmt::Debug;

    /// One of its events has come up.
    fn handle(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, event: Self::Event);

    /// The task that its interrupts wake.
    fn connect(&mut self, interrupt: TaskId);

    /// Whether it has something to tell its driver.
    fn interrupts(&self, parts: &Parts<'_>) -> bool;

    /// For how long it was busy up to now, and what of it, if that is counted.
    fn busy(&self, _now: Time) -> Option<(Counted, Time)> {
        None
    }

    /// What its cache did, if it has one that counts.
    fn cache_statistics(&self) -> Option<[CacheStatistics; 3]> {
        None
    }

    /// Events of simulations of its own, in which it tries something out.
    fn rehearsed_events(&self) -> u64 {
        0
    }
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

/// The number of a controller, or of a drive, among those of its kind.
pub struct Id<C> {
    place: u8,
    kind: PhantomData<fn() -> C>,
}

impl<C> Id<C> {
    pub(crate) fn of_place(place: usize) -> Self {
        Self {
            place: u8::try_from(place).expect("fewer than 256 of a kind"),
            kind: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn place(self) -> usize {
        usize::from(self.place)
    }
}

impl<C: Kind> Id<C> {
    /// Has this controller's event come up at a moment.
    #[inline]
    pub(crate) fn schedule(self, around: &Surroundings<'_>, at: Time, event: C::Event) {
        around.sim.schedule(at, Event::Part(C::event(self, event)));
    }
}

impl<C> Clone for Id<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Id<C> {}

impl<C> PartialEq for Id<C> {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

impl<C> Eq for Id<C> {}

impl<C> fmt::Debug for Id<C> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.fmt(formatter)
    }
}

/// A kind of controllers, of which a computer keeps all together.
pub trait Kind: Controller {
    #[doc(hidden)]
    fn all(controllers: &Controllers) -> &Vec<Self>;
    #[doc(hidden)]
    fn all_mut(controllers: &mut Controllers) -> &mut Vec<Self>;
    #[doc(hidden)]
    fn numbered(id: Id<Self>) -> Numbered;
    /// An event of one of them.
    fn event(id: Id<Self>, event: Self::Event) -> PartEvent;
}

impl Controllers {
    /// Adds a controller; see [`Attaching::add`].
    pub(crate) fn add<C: Kind>(&mut self, make: impl FnOnce(Id<C>, usize) -> C) -> Id<C> {
        let id = Id::of_place(C::all(self).len());
        let controller = make(id, self.numbered.len());
        C::all_mut(self).push(controller);
        self.numbered.push(C::numbered(id));
        id
    }

    /// Its number among all.
    pub(crate) fn number<C: Kind>(&self, id: Id<C>) -> usize {
        let is_it = |numbered: &Numbered| *numbered == C::numbered(id);
        let number = self.numbered.iter().position(is_it);
        number.expect("a controller that was added")
    }

    /// The controller of this number among those of its kind.
    #[inline]
    pub(crate) fn get<C: Kind>(&mut self, id: Id<C>) -> &mut C {
        &mut C::all_mut(self)[id.place()]
    }
}

macro_rules! each_controller {
    ($($(#[$doc:meta])* $kind:literal is $Part:ident in $folder:ident;)*) => {
        /// The controllers of a computer.
        #[derive(Default)]
        pub struct Controllers {
            $($folder: Vec<$folder::$Part>,)*
            numbered: Vec<Numbered>,
        }

        /// One of all controllers.
        #[doc(hidden)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Numbered {
            $($Part(Id<$folder::$Part>),)*
        }

        /// What a controller schedules for itself.
        #[derive(Clone, Copy, Debug)]
        pub enum PartEvent {
            $($(#[$doc])* $Part(Id<$folder::$Part>, <$folder::$Part as Controller>::Event),)*
        }

        $(impl Kind for $folder::$Part {
            fn all(controllers: &Controllers) -> &Vec<Self> {
                &controllers.$folder
            }

            #[inline]
            fn all_mut(controllers: &mut Controllers) -> &mut Vec<Self> {
                &mut controllers.$folder
            }

            fn numbered(id: Id<Self>) -> Numbered {
                Numbered::$Part(id)
            }

            #[inline]
            fn event(id: Id<Self>, event: Self::Event) -> PartEvent {
                PartEvent::$Part(id, event)
            }
        })*

        impl Controllers {
            /// An event of one of them has come up.
            pub(crate) fn handle(
                &mut self,
                around: &Surroundings<'_>,
                parts: &mut Parts<'_>,
                event: PartEvent,
            ) {
                match event {
                    $(PartEvent::$Part(id, event) => self.get(id).handle(around, parts, event),)*
                }
            }

            /// For how long each was busy up to now, in the order of their numbers.
            pub(crate) fn busy(&self, now: Time) -> Vec<Option<(Counted, Time)>> {
                let busy = |numbered: &Numbered| match numbered {
                    $(Numbered::$Part(id) => self.$folder[id.place()].busy(now),)*
                };
                self.numbered.iter().map(busy).collect()
            }

            /// What the cache of each did.
            pub(crate) fn cache_statistics(&self) -> Vec<Option<[CacheStatistics; 3]>> {
                let caches = |numbered: &Numbered| match numbered {
                    $(Numbered::$Part(id) => {
                        self.$folder[id.place()].cache_statistics()
                    })*
                };
                self.numbered.iter().map(caches).collect()
            }

            /// Events of simulations of their own.
            pub(crate) fn rehearsed_events(&self) -> u64 {
                let events = |numbered: &Numbered| match numbered {
                    $(Numbered::$Part(id) => {
                        self.$folder[id.place()].rehearsed_events()
                    })*
                };
                self.numbered.iter().map(events).sum()
            }
        }

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
}

macro_rules! each_part {
    (
        unix { $($(#[$doc:meta])* $kind:literal is $Part:ident in $folder:ident;)* }
        minix { $($(#[$of_minix:meta])* $task:literal is $Disk:ident in $disk:ident;)* }
    ) => {
        each_controller! {
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

// The kind in the catalogue, the controller, and the folder; by whose drivers there are.
each_part! {
    unix {
        /// A MASSBUS adaptor, or what looks like one, with the hp driver.
        "massbus" is Massbus in massbus;
        /// DEC's UDA50, with the uda driver.
        "uda50" is Uda50 in uda50;
        /// An SMD controller on a UNIBUS, with the up driver.
        "up" is Up in up;
        /// A controller of the PC-AT's kind, with the hd driver.
        "wd1003" is Wd1003 in wd1003;
        /// A controller for the VMEbus, with a driver like Sun's.
        "vme" is Vme in vme;
        /// Nothing: a driver gives a device all that it takes.
        "direct" is Direct in direct;
    }
    minix {
        /// A disk on the DMA port of an Atari ST, with Minix's disk task.
        "acsi" is Acsi in acsi;
    }
}

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
