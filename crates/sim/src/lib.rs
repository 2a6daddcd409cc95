//! Simulation engine: virtual time in whole nanoseconds, an event queue, single-threaded tasks,
//! processors that interrupts preempt, and named random streams. Ties in the event queue are broken
//! by insertion order, and a task that sleeps until a time resumes after the events of that time.
//! The engine knows nothing of storage.
//!
//! Software is async, hardware is a state machine. Code with a program counter runs as a task
//! ([`Simulation::spawn`]) and awaits. A component with a queue and a "what next?" is a plain struct that
//! the owner of the engine calls when its event is due ([`Simulation::run_to_end`] hands every event to one
//! function).
//!
//! Two design choices are deliberate. A task that waits leaves no waker behind: the engine knows
//! which task it polls, and a caller that wakes a task names it ([`Simulation::wake_task`]). And a wait that
//! nothing can disturb never reaches the queue: if no event comes first, time simply moves
//! ([`Simulation::try_advance`]).

mod processor;
mod queue;
mod random;
mod sim;
mod task;
mod time;

pub use processor::{CpuId, InterruptLevel, Processor, Processors, Usage, WorkCompletion};
pub use queue::TieBreak;
pub use random::{RandomStream, RandomStreams};
pub use sim::{Deadlock, Simulation, WaitingTask};
pub use task::TaskId;
pub use time::Time;

#[cfg(test)]
mod tests;
