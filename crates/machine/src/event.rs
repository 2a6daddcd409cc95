//! What happens in a modelled computer.

use crate::controllers::PartEvent;
use diskperf_sim::{Completion, TaskId};

/// Every event that hardware schedules for itself.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// The processor may have come to the end of something.
    Processor(Completion),
    /// A controller has something to do next.
    Part(PartEvent),
    /// The clock ticks.
    Tick,
    /// A character has come over a serial line, by number.
    Character(u16),
    /// A daemon's time has come.
    Daemon(TaskId),
}

impl From<Completion> for Event {
    fn from(completion: Completion) -> Self {
        Self::Processor(completion)
    }
}
