//! The controllers of a computer: state machines between the bus and the drives, each kind
//! under numbers of its own.

use crate::event::Event;
use crate::hardware::cache::CacheStatistics;
use crate::hardware::{Parts, Surroundings};
use crate::id::Id;
use crate::parts::list::each_kind;
use diskperf_sim::{TaskId, Time};
use diskperf_timeline::trace::Counted;
use std::fmt;

/// State machine of a controller: requests and events in, interrupts out.
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

impl<C: Kind> Id<C> {
    /// Has this controller's event come up at a moment.
    #[inline]
    pub(crate) fn schedule(self, around: &Surroundings<'_>, at: Time, event: C::Event) {
        around.sim.schedule(at, Event::Part(C::event(self, event)));
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
    /// Adds a controller; `make` is told its number among those of its kind and its number among all.
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
            $($folder: Vec<crate::parts::$folder::$Part>,)*
            numbered: Vec<Numbered>,
        }

        /// One of all controllers.
        #[doc(hidden)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Numbered {
            $($Part(Id<crate::parts::$folder::$Part>),)*
        }

        /// What a controller schedules for itself.
        #[derive(Clone, Copy, Debug)]
        pub enum PartEvent {
            $($(#[$doc])* $Part(Id<crate::parts::$folder::$Part>, <crate::parts::$folder::$Part as Controller>::Event),)*
        }

        $(impl Kind for crate::parts::$folder::$Part {
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
    };
}

each_kind! { each_controller }
