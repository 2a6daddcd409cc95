//! Computer without an operating system: a controller with its drives, and a script that commands
//! them.

use super::bus::Bus;
use super::drives::{Drives, MechanismIds};
use super::mechanism::Mechanism;
use super::{Hardware, HardwareParts, SimulationContext};
use crate::controllers::{ControllerKind, Controllers};
use crate::event::MachineEvent;
use crate::id::ComponentId;
use diskperf_device::Requests;
use diskperf_sim::{Processors, Simulation, TieBreak};
use std::cell::RefCell;
use std::future::Future;

/// Hardware with a single controller, in its own simulation.
pub(crate) struct BareController<C> {
    pub(crate) sim: Simulation<MachineEvent>,
    pub(crate) processors: Processors,
    pub(crate) hardware: RefCell<Hardware>,
    controller: ComponentId<C>,
}

impl<C: ControllerKind> BareController<C> {
    /// Returns hardware with a single controller, its drives, and the requests that the script will
    /// submit.
    pub(crate) fn new(
        drives: Vec<Mechanism>,
        controller: impl FnOnce((ComponentId<C>, usize), MechanismIds) -> C,
        bus: Bus,
        requests: Requests,
    ) -> Self {
        let numbers: Vec<usize> = (0..drives.len()).collect();
        let drives: Drives = drives.into_iter().collect();
        let on_it = drives.mechanisms_among(&numbers);
        let mut controllers = Controllers::default();
        let controller = controllers.add_controller(|id, number| controller((id, number), on_it));
        Self {
            sim: Simulation::new(TieBreak::InsertionOrder),
            processors: Processors::new(1),
            hardware: RefCell::new(Hardware {
                drives,
                controllers,
                bus,
                submitted_requests: requests,
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
    pub(crate) fn run_script(&self, script: impl Future<Output = ()> + 'static) {
        let task = self.sim.spawn("script", true, script);
        self.with_controller_parts(|controller, _, _| controller.connect_interrupt(task));
        let handle = |event| match event {
            MachineEvent::ProcessorCompletion(completion) => {
                self.processors.complete_work(&self.sim, completion)
            }
            MachineEvent::ControllerPart(event) => {
                let mut hardware = self.hardware.borrow_mut();
                hardware.handle_event(&self.simulation_context(), event);
            }
            MachineEvent::ClockTick
            | MachineEvent::SerialCharacter(_)
            | MachineEvent::DaemonWakeUp(_) => panic!("there is no kernel"),
        };
        self.sim.run_to_end(handle).expect("the script ends");
        self.sim.drop_all();
    }

    pub(crate) fn simulation_context(&self) -> SimulationContext<'_> {
        SimulationContext {
            sim: &self.sim,
            processors: &self.processors,
        }
    }

    /// Passes the controller to a function that reads its state or commands it, and returns the
    /// function's result.
    pub(crate) fn with_controller_parts<T>(
        &self,
        ask: impl FnOnce(&mut C, &SimulationContext<'_>, &mut HardwareParts<'_>) -> T,
    ) -> T {
        let mut hardware = self.hardware.borrow_mut();
        let (controller, mut parts) = hardware.controller_with_parts(self.controller);
        ask(controller, &self.simulation_context(), &mut parts)
    }
}
