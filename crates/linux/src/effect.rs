//! Effects of system calls, in order: bios to submit, plugs, and waits.

use crate::block::Bio;
use crate::version::Host;

/// Task that carries out a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// The task that made the system call.
    Caller,
    /// ext4's journal thread (jbd2).
    Journal,
    /// A flusher of the page cache.
    Flusher,
    /// A worker of the kernel: end of I/O, log, background.
    Worker,
}

/// Completion that a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// All bios that the call submitted so far.
    Submitted,
    /// Another task's steps up to here, and their bios.
    Task(Task),
}

/// One step of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The task gives a bio to the block layer.
    Submit(Bio),
    /// Bios collect in the task's plug from here.
    PlugStart,
    /// The task's plug goes to the device's queue.
    PlugFinish,
    /// The task sleeps until what it waits for is complete.
    Wait(Waits),
}

/// Step with the task that carries it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Task that carries it out.
    pub task: Task,
    /// Content of the step.
    pub effect: Effect,
}

/// Steps in order, and the task that the next ones belong to.
#[derive(Clone, Debug)]
pub struct Effects {
    steps: Vec<Step>,
    task: Task,
}

impl Default for Effects {
    fn default() -> Self {
        Self {
            steps: Vec::new(),
            task: Task::Caller,
        }
    }
}

impl Effects {
    /// Adds a bio that the current task submits.
    pub fn submit(&mut self, bio: Bio) {
        self.push(Effect::Submit(bio));
    }

    /// Adds an effect of the current task.
    pub fn push(&mut self, effect: Effect) {
        self.steps.push(Step {
            task: self.task,
            effect,
        });
    }

    /// Adds a wait for all that was submitted so far.
    pub fn wait(&mut self) {
        self.push(Effect::Wait(Waits::Submitted));
    }

    /// Makes `task` the one that later steps belong to, and returns the one before.
    pub fn switch(&mut self, task: Task) -> Task {
        std::mem::replace(&mut self.task, task)
    }

    /// Runs `steps` as `task`, in a plug.
    pub fn plugged(&mut self, steps: impl FnOnce(&mut Self)) {
        self.push(Effect::PlugStart);
        steps(self);
        self.push(Effect::PlugFinish);
    }

    /// Steps of all tasks so far, in order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Bios so far, in the order of submission.
    pub fn bios(&self) -> impl Iterator<Item = &Bio> {
        self.steps.iter().filter_map(|step| match &step.effect {
            Effect::Submit(bio) => Some(bio),
            _ => None,
        })
    }
}

/// Surroundings of a system call: the machine, the time, and where its effects go.
#[derive(Debug)]
pub struct CallContext<'a> {
    /// Machine on which the kernel runs.
    pub host: &'a Host,
    /// Time of the call, in nanoseconds since the file system was mounted.
    pub now_ns: u64,
    /// Steps that the call makes.
    pub effects: &'a mut Effects,
}
