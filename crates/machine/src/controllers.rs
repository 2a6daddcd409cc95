//! Controllers of a computer: state machines between the bus and the drives. Each kind of
//! controller has its own numbering.

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
    /// Type of the events that the controller schedules.
    type Event: Copy + fmt::Debug;

    /// Handles an event that the controller scheduled.
    fn handle(&mut self, context: &Surroundings<'_>, parts: &mut Parts<'_>, event: Self::Event);

    /// Sets the task that the controller's interrupts wake.
    fn connect(&mut self, interrupt: TaskId);

    /// Reports whether the controller raises an interrupt for its driver.
    fn interrupts(&self, parts: &Parts<'_>) -> bool;

    /// Returns the controller's busy time so far, with the component that is counted (channel or
    /// processor). None if the controller does not count it.
    fn busy(&self, _now: Time) -> Option<(Counted, Time)> {
        None
    }

    /// Returns the statistics of the controller's cache. None without a cache that counts.
    fn cache_statistics(&self) -> Option<[CacheStatistics; 3]> {
        None
    }

    /// Number of events in rehearsals: simulations in which the controller tries out cache
    /// policies.
    fn rehearsed_events(&self) -> u64 {
        0
    }
}

impl<C: ControllerKind> Id<C> {
    /// Schedules an event of this controller at time `at`.
    #[inline]
    pub(crate) fn schedule(self, context: &Surroundings<'_>, at: Time, event: C::Event) {
        context.sim.schedule(at, Event::Part(C::event(self, event)));
    }
}

/// Kind of controller. A computer stores all controllers of a kind together.
pub trait ControllerKind: Controller {
    #[doc(hidden)]
    fn kind_controllers(controllers: &Controllers) -> &Vec<Self>;
    #[doc(hidden)]
    fn kind_controllers_mut(controllers: &mut Controllers) -> &mut Vec<Self>;
    #[doc(hidden)]
    fn controller_ref(id: Id<Self>) -> ControllerRef;
    /// Converts an event of a controller to the event type of the computer.
    fn event(id: Id<Self>, event: Self::Event) -> PartEvent;
}

impl Controllers {
    /// Adds a controller. `make` receives its number among the controllers of its kind, and its
    /// number among all controllers.
    pub(crate) fn add<C: ControllerKind>(&mut self, make: impl FnOnce(Id<C>, usize) -> C) -> Id<C> {
        let id = Id::of_place(C::kind_controllers(self).len());
        let controller = make(id, self.controller_refs.len());
        C::kind_controllers_mut(self).push(controller);
        self.controller_refs.push(C::controller_ref(id));
        id
    }

    /// Returns the number of a controller among all controllers of the computer.
    pub(crate) fn number<C: ControllerKind>(&self, id: Id<C>) -> usize {
        let is_same = |controller_ref: &ControllerRef| *controller_ref == C::controller_ref(id);
        let number = self.controller_refs.iter().position(is_same);
        number.expect("a controller that was added")
    }

    /// Returns the controller with this number among those of its kind.
    #[inline]
    pub(crate) fn get<C: ControllerKind>(&mut self, id: Id<C>) -> &mut C {
        &mut C::kind_controllers_mut(self)[id.place()]
    }
}

macro_rules! each_controller {
    ($($(#[$doc:meta])* $kind:literal is $Part:ident in $folder:ident;)*) => {
        /// Controllers of a computer.
        #[derive(Default)]
        pub struct Controllers {
            $($folder: Vec<crate::parts::$folder::$Part>,)*
            controller_refs: Vec<ControllerRef>,
        }

        /// Reference to a controller of any kind, by its number among those of its kind.
        #[doc(hidden)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ControllerRef {
            $($Part(Id<crate::parts::$folder::$Part>),)*
        }

        /// Event that a controller scheduled, with the controller it belongs to.
        #[derive(Clone, Copy, Debug)]
        pub enum PartEvent {
            $($(#[$doc])* $Part(Id<crate::parts::$folder::$Part>, <crate::parts::$folder::$Part as Controller>::Event),)*
        }

        $(impl ControllerKind for crate::parts::$folder::$Part {
            fn kind_controllers(controllers: &Controllers) -> &Vec<Self> {
                &controllers.$folder
            }

            #[inline]
            fn kind_controllers_mut(controllers: &mut Controllers) -> &mut Vec<Self> {
                &mut controllers.$folder
            }

            fn controller_ref(id: Id<Self>) -> ControllerRef {
                ControllerRef::$Part(id)
            }

            #[inline]
            fn event(id: Id<Self>, event: Self::Event) -> PartEvent {
                PartEvent::$Part(id, event)
            }
        })*

        impl Controllers {
            /// Passes an event to the controller that scheduled it.
            pub(crate) fn handle(
                &mut self,
                context: &Surroundings<'_>,
                parts: &mut Parts<'_>,
                event: PartEvent,
            ) {
                match event {
                    $(PartEvent::$Part(id, event) => self.get(id).handle(context, parts, event),)*
                }
            }

            /// Returns the busy time of each controller so far, in the order of their numbers.
            pub(crate) fn busy(&self, now: Time) -> Vec<Option<(Counted, Time)>> {
                let busy = |controller_ref: &ControllerRef| match controller_ref {
                    $(ControllerRef::$Part(id) => self.$folder[id.place()].busy(now),)*
                };
                self.controller_refs.iter().map(busy).collect()
            }

            /// Returns the cache statistics of each controller, in the order of their numbers.
            pub(crate) fn cache_statistics(&self) -> Vec<Option<[CacheStatistics; 3]>> {
                let caches = |controller_ref: &ControllerRef| match controller_ref {
                    $(ControllerRef::$Part(id) => {
                        self.$folder[id.place()].cache_statistics()
                    })*
                };
                self.controller_refs.iter().map(caches).collect()
            }

            /// Number of events in the rehearsals of all controllers, in which they try out cache
            /// policies.
            pub(crate) fn rehearsed_events(&self) -> u64 {
                let events = |controller_ref: &ControllerRef| match controller_ref {
                    $(ControllerRef::$Part(id) => {
                        self.$folder[id.place()].rehearsed_events()
                    })*
                };
                self.controller_refs.iter().map(events).sum()
            }
        }
    };
}

each_kind! { each_controller }
