//! Events of a modelled computer.

use crate::controllers::PartEvent;
use diskperf_sim::{Completion, TaskId};

/// Event that the hardware of a computer schedules.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// Possible end of the current work of a processor.
    Processor(Completion),
    /// Next step of a controller.
    Part(PartEvent),
    /// Tick of the clock.
    Tick,
    /// Arrival of a character on a serial line, given by the number of the line.
    Character(u16),
    /// Wake-up time of a daemon.
    Daemon(TaskId),
}

impl From<Completion> for Event {
    fn from(completion: Completion) -> Self {
        Self::Processor(completion)
    }
}
