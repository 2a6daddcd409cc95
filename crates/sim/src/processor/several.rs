//! Set of processors of a multiprocessor computer.

use super::{Processor, WorkCompletion};
use crate::sim::Simulation;
use crate::time::Time;
use std::cell::RefCell;
use std::ops::Index;
use std::rc::Rc;

/// Number of a processor in its computer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuId(u32);

/// Processors of a computer; at least one.
pub struct Processors {
    /// First processor, stored apart because most computers have only one.
    first_processor: Processor,
    other_processors: Vec<Processor>,
}

impl Processors {
    /// Returns `count` idle processors.
    ///
    /// # Panics
    ///
    /// If `count` is 0.
    pub fn new(count: u32) -> Self {
        assert!(count > 0, "a computer without a processor");
        let ends = (count > 1).then(|| Rc::new(WorkEnds::new(count)));
        let processor = |id| Processor::new(CpuId(id), ends.clone());
        Self {
            first_processor: processor(0),
            other_processors: (1..count).map(processor).collect(),
        }
    }

    /// Returns the numbers of all processors in order.
    pub fn cpu_ids(&self) -> impl Iterator<Item = CpuId> + use<> {
        (0..=self.other_processors.len() as u32).map(CpuId)
    }

    /// Returns all processors in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Processor> {
        std::iter::once(&self.first_processor).chain(&self.other_processors)
    }

    /// Reports whether a process has any of the processors.
    pub fn has_process(&self) -> bool {
        self.iter()
            .any(|processor| processor.running_process().is_some())
    }

    /// Changes the speed of all processors to `thousandths` of full speed; they share a memory.
    ///
    /// # Panics
    ///
    /// If `thousandths` is 0, or above full speed.
    pub fn set_rate<E: From<WorkCompletion>>(&self, sim: &Simulation<E>, thousandths: u64) {
        for processor in self.iter() {
            processor.set_rate(sim, thousandths);
        }
    }

    /// Completes the innermost work of the processor that the event names.
    pub fn complete_work<E: From<WorkCompletion>>(
        &self,
        sim: &Simulation<E>,
        WorkCompletion(id): WorkCompletion,
    ) {
        self[id].complete_work(sim);
    }

    /// Returns [`Processor::busy_times`], summed over all processors.
    pub fn busy_times<E>(&self, sim: &Simulation<E>) -> (Time, Time) {
        let each = self.iter().map(|processor| processor.busy_times(sim));
        each.fold((Time::ZERO, Time::ZERO), |(busy, handling), one| {
            (busy + one.0, handling + one.1)
        })
    }
}

impl Index<CpuId> for Processors {
    type Output = Processor;

    #[inline]
    fn index(&self, CpuId(id): CpuId) -> &Processor {
        match id.checked_sub(1) {
            None => &self.first_processor,
            Some(place) => &self.other_processors[place as usize],
        }
    }
}

/// End of the innermost work of each processor, by processor number.
pub(super) struct WorkEnds(RefCell<Vec<Option<Time>>>);

impl WorkEnds {
    fn new(count: u32) -> Self {
        Self(RefCell::new(vec![None; count as usize]))
    }

    pub(super) fn set_end(&self, CpuId(id): CpuId, end: Option<Time>) {
        self.0.borrow_mut()[id as usize] = end;
    }

    /// Returns the earliest end of work and its processor. A tie goes to the lowest processor
    /// number.
    pub(super) fn first_end(&self) -> Option<(Time, CpuId)> {
        let ends = self.0.borrow();
        let numbered = (0..).map(CpuId).zip(&*ends);
        numbered.filter_map(|(id, end)| Some(((*end)?, id))).min()
    }
}
