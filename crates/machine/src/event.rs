//! Events of a modelled computer.

use crate::controllers::ControllerPartEvent;
use diskperf_sim::{TaskId, WorkCompletion};

/// Event that the hardware of a computer schedules.
#[derive(Clone, Copy, Debug)]
pub enum MachineEvent {
    /// Possible end of the current work of a processor.
    ProcessorCompletion(WorkCompletion),
    /// Next step of a controller.
    ControllerPart(ControllerPartEvent),
    /// Tick of the clock.
    ClockTick,
    /// Arrival of a character on a serial line, given by the number of the line.
    SerialCharacter(u16),
    /// Wake-up time of a daemon.
    DaemonWakeUp(TaskId),
}

impl From<WorkCompletion> for MachineEvent {
    fn from(completion: WorkCompletion) -> Self {
        Self::ProcessorCompletion(completion)
    }
}
