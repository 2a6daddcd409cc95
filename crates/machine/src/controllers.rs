//! Controllers of a computer: state machines between the bus and the drives. Each kind of
//! controller has its own numbering.

use crate::event::MachineEvent;
use crate::hardware::cache::CacheStatistics;
use crate::hardware::{HardwareParts, SimulationContext};
use crate::id::ComponentId;
use crate::parts::list::each_kind;
use diskperf_sim::{TaskId, Time};
use diskperf_timeline::trace::CountedBusy;
use std::fmt;

/// State machine of a controller: requests and events in, interrupts out.
pub trait Controller: Sized {
    /// Type of the events that the controller schedules.
    type ControllerEvent: Copy + fmt::Debug;

    /// Handles an event that the controller scheduled.
    fn handle(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        event: Self::ControllerEvent,
    );

    /// Sets the task that the controller's interrupts wake.
    fn connect_interrupt(&mut self, interrupt: TaskId);

    /// Reports whether the controller raises an interrupt for its driver.
    fn has_pending_interrupt(&self, parts: &HardwareParts<'_>) -> bool;

    /// Returns the controller's busy time so far, with the component that is counted (channel or
    /// processor). None if the controller does not count it.
    fn busy_time(&self, _now: Time) -> Option<(CountedBusy, Time)> {
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

impl<C: ControllerKind> ComponentId<C> {
    /// Schedules an event of this controller at time `at`.
    #[inline]
    pub(crate) fn schedule_event(
        self,
        context: &SimulationContext<'_>,
        at: Time,
        event: C::ControllerEvent,
    ) {
        context.sim.schedule(
            at,
            MachineEvent::ControllerPart(C::to_part_event(self, event)),
        );
    }
}

/// Kind of controller. A computer stores all controllers of a kind together.
pub trait ControllerKind: Controller {
    #[doc(hidden)]
    fn kind_controllers(controllers: &Controllers) -> &Vec<Self>;
    #[doc(hidden)]
    fn kind_controllers_mut(controllers: &mut Controllers) -> &mut Vec<Self>;
    #[doc(hidden)]
    fn controller_ref(id: ComponentId<Self>) -> AnyControllerId;
    /// Converts an event of a controller to the event type of the computer.
    fn to_part_event(id: ComponentId<Self>, event: Self::ControllerEvent) -> ControllerPartEvent;
}

impl Controllers {
    /// Adds a controller. `make` receives its number among the controllers of its kind, and its
    /// number among all controllers.
    pub(crate) fn add_controller<C: ControllerKind>(
        &mut self,
        make: impl FnOnce(ComponentId<C>, usize) -> C,
    ) -> ComponentId<C> {
        let id = ComponentId::from_index(C::kind_controllers(self).len());
        let controller = make(id, self.controller_refs.len());
        C::kind_controllers_mut(self).push(controller);
        self.controller_refs.push(C::controller_ref(id));
        id
    }

    /// Returns the number of a controller among all controllers of the computer.
    pub(crate) fn controller_index<C: ControllerKind>(&self, id: ComponentId<C>) -> usize {
        let is_same = |controller_ref: &AnyControllerId| *controller_ref == C::controller_ref(id);
        let number = self.controller_refs.iter().position(is_same);
        number.expect("a controller that was added")
    }

    /// Returns the controller with this number among those of its kind.
    #[inline]
    pub(crate) fn controller_mut<C: ControllerKind>(&mut self, id: ComponentId<C>) -> &mut C {
        &mut C::kind_controllers_mut(self)[id.index()]
    }
}

macro_rules! each_controller {
    ($($(#[$doc:meta])* $kind:literal is $Part:ident in $folder:ident as $Described:ident;)*) => {
        /// Controllers of a computer.
        #[derive(Default)]
        pub struct Controllers {
            $($folder: Vec<crate::parts::$folder::$Part>,)*
            controller_refs: Vec<AnyControllerId>,
        }

        /// Reference to a controller of any kind, by its number among those of its kind.
        #[doc(hidden)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum AnyControllerId {
            $($Part(ComponentId<crate::parts::$folder::$Part>),)*
        }

        /// Event that a controller scheduled, with the controller it belongs to.
        #[derive(Clone, Copy, Debug)]
        pub enum ControllerPartEvent {
            $($(#[$doc])* $Part(ComponentId<crate::parts::$folder::$Part>, <crate::parts::$folder::$Part as Controller>::ControllerEvent),)*
        }

        $(impl ControllerKind for crate::parts::$folder::$Part {
            fn kind_controllers(controllers: &Controllers) -> &Vec<Self> {
                &controllers.$folder
            }

            #[inline]
            fn kind_controllers_mut(controllers: &mut Controllers) -> &mut Vec<Self> {
                &mut controllers.$folder
            }

            fn controller_ref(id: ComponentId<Self>) -> AnyControllerId {
                AnyControllerId::$Part(id)
            }

            #[inline]
            fn to_part_event(id: ComponentId<Self>, event: Self::ControllerEvent) -> ControllerPartEvent {
                ControllerPartEvent::$Part(id, event)
            }
        })*

        impl Controllers {
            /// Passes an event to the controller that scheduled it.
            pub(crate) fn handle(
                &mut self,
                context: &SimulationContext<'_>,
                parts: &mut HardwareParts<'_>,
                event: ControllerPartEvent,
            ) {
                match event {
                    $(ControllerPartEvent::$Part(id, event) => self.controller_mut(id).handle(context, parts, event),)*
                }
            }

            /// Returns the busy time of each controller so far, in the order of their numbers.
            pub(crate) fn busy_times(&self, now: Time) -> Vec<Option<(CountedBusy, Time)>> {
                let busy = |controller_ref: &AnyControllerId| match controller_ref {
                    $(AnyControllerId::$Part(id) => self.$folder[id.index()].busy_time(now),)*
                };
                self.controller_refs.iter().map(busy).collect()
            }

            /// Returns the cache statistics of each controller, in the order of their numbers.
            pub(crate) fn cache_statistics(&self) -> Vec<Option<[CacheStatistics; 3]>> {
                let caches = |controller_ref: &AnyControllerId| match controller_ref {
                    $(AnyControllerId::$Part(id) => {
                        self.$folder[id.index()].cache_statistics()
                    })*
                };
                self.controller_refs.iter().map(caches).collect()
            }

            /// Number of events in the rehearsals of all controllers, in which they try out cache
            /// policies.
            pub(crate) fn rehearsed_events(&self) -> u64 {
                let events = |controller_ref: &AnyControllerId| match controller_ref {
                    $(AnyControllerId::$Part(id) => {
                        self.$folder[id.index()].rehearsed_events()
                    })*
                };
                self.controller_refs.iter().map(events).sum()
            }
        }
    };
}

each_kind! { each_controller }
