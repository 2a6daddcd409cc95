//! Computer without an operating system: a controller with its drives, and a script that commands
//! them.

use super::bus::Bus;
use super::drives::{Drives, Mechanisms};
use super::mechanism::Mechanism;
use super::{Hardware, Parts, Surroundings};
use crate::controllers::{ControllerKind, Controllers};
use crate::event::Event;
use crate::id::Id;
use diskperf_device::Requests;
use diskperf_sim::{Processors, Sim, TieBreak};
use std::cell::RefCell;
use std::future::Future;

/// Hardware with a single controller, in its own simulation.
pub(crate) struct BareController<C> {
    pub(crate) sim: Sim<Event>,
    pub(crate) processors: Processors,
    pub(crate) hardware: RefCell<Hardware>,
    controller: Id<C>,
}

impl<C: ControllerKind> BareController<C> {
    /// Returns hardware with a single controller, its drives, and the requests that the script will
    /// submit.
    pub(crate) fn new(
        drives: Vec<Mechanism>,
        controller: impl FnOnce((Id<C>, usize), Mechanisms) -> C,
        bus: Bus,
        requests: Requests,
    ) -> Self {
        let numbers: Vec<usize> = (0..drives.len()).collect();
        let drives: Drives = drives.into_iter().collect();
        let on_it = drives.mechanisms_among(&numbers);
        let mut controllers = Controllers::default();
        let controller = controllers.add(|id, number| controller((id, number), on_it));
        Self {
            sim: Sim::new(TieBreak::Insertion),
            processors: Processors::new(1),
            hardware: RefCell::new(Hardware {
                drives,
                controllers,
                bus,
                requests,
            }),
            controller,
        }
    }

    /// Runs a script that the controller's interrupts wake, and all tasks that it starts, to their
    /// end.
    ///
    /// # Panics
    ///
    /// If one of the tasks waits forever.
    pub(crate) fn run(&self, script: impl Future<Output = ()> + 'static) {
        let task = self.sim.spawn("script", true, script);
        self.ask(|controller, _, _| controller.connect(task));
        let handle = |event| match event {
            Event::Processor(completion) => self.processors.complete(&self.sim, completion),
            Event::Part(event) => {
                let mut hardware = self.hardware.borrow_mut();
                hardware.handle(&self.context(), event);
            }
            Event::Tick | Event::Character(_) | Event::Daemon(_) => panic!("there is no kernel"),
        };
        self.sim.run(handle).expect("the script ends");
        self.sim.clear();
    }

    pub(crate) fn context(&self) -> Surroundings<'_> {
        Surroundings {
            sim: &self.sim,
            processors: &self.processors,
        }
    }

    /// Passes the controller to a function that reads its state or commands it, and returns the
    /// function's result.
    pub(crate) fn ask<T>(
        &self,
        ask: impl FnOnce(&mut C, &Surroundings<'_>, &mut Parts<'_>) -> T,
    ) -> T {
        let mut hardware = self.hardware.borrow_mut();
        let (controller, mut parts) = hardware.controller(self.controller);
        ask(controller, &self.context(), &mut parts)
    }
}
