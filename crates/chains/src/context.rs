//! Contexts in which processors report events: what runs beside the task.

use crate::event::{EventKind, SoftInterrupt};
use crate::identity::{CpuNumber, ThreadId};
use crate::requests::RequestIndex;
use std::collections::BTreeMap;

/// Origin of a wake-up, a bio or a queued work item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A task, with the work item that it ran.
    Thread {
        /// Number of the task.
        thread: ThreadId,
        /// Index of its work item in the history; `None` outside one.
        work: Option<usize>,
    },
    /// The completion of a request.
    Completion(RequestIndex),
    /// A timer that fired.
    Timer,
    /// Another interrupt, or a soft interrupt.
    Interrupt,
}

/// Bracket that is open on a processor: what runs there beside the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bracket {
    Interrupt,
    SoftInterrupt(SoftInterrupt),
    Timer,
    Completion(RequestIndex),
}

/// Open brackets of all processors.
#[derive(Debug, Default)]
pub(crate) struct CpuContexts {
    open_brackets: BTreeMap<CpuNumber, Vec<Bracket>>,
}

impl CpuContexts {
    /// Opens or closes the brackets of a processor by an event. Completions are opened by
    /// [`CpuContexts::open_completion`].
    pub(crate) fn process_event(&mut self, cpu: CpuNumber, kind: &EventKind) {
        let open = self.open_brackets.entry(cpu).or_default();
        match kind {
            EventKind::InterruptEntry => open.push(Bracket::Interrupt),
            EventKind::SoftInterruptEntry { vector } => open.push(Bracket::SoftInterrupt(*vector)),
            EventKind::TimerEntry => open.push(Bracket::Timer),
            EventKind::InterruptExit => close(open, |one| one == Bracket::Interrupt),
            EventKind::SoftInterruptExit { .. } => {
                close(open, |one| matches!(one, Bracket::SoftInterrupt(_)));
            }
            EventKind::TimerExit => close(open, |one| one == Bracket::Timer),
            // Exits may be missing. No interrupt lasts across a switch.
            EventKind::Switch { .. } => open.clear(),
            _ => {}
        }
    }

    /// Opens the bracket of a request's completion, in place of an earlier one that is still open.
    pub(crate) fn open_completion(&mut self, cpu: CpuNumber, request: RequestIndex) {
        let open = self.open_brackets.entry(cpu).or_default();
        if let Some(Bracket::Completion(_)) = open.last() {
            open.pop();
        }
        open.push(Bracket::Completion(request));
    }

    /// Closes the bracket of a completion whose bios have all ended.
    pub(crate) fn close_completion(&mut self, cpu: CpuNumber, request: Option<RequestIndex>) {
        let open = self.open_brackets.entry(cpu).or_default();
        if let Some(Bracket::Completion(last)) = open.last()
            && request.is_none_or(|request| request == *last)
        {
            open.pop();
        }
    }

    /// Returns what runs on a processor beside its task; `None` if the task itself runs.
    pub(crate) fn find_origin(&self, cpu: CpuNumber) -> Option<Origin> {
        let innermost = self.open_brackets.get(&cpu)?.last()?;
        Some(match innermost {
            Bracket::Completion(request) => Origin::Completion(*request),
            Bracket::Timer | Bracket::SoftInterrupt(SoftInterrupt::Timer) => Origin::Timer,
            Bracket::Interrupt | Bracket::SoftInterrupt(_) => Origin::Interrupt,
        })
    }
}

/// Closes the innermost bracket of a kind, with all that were opened inside it.
fn close(open: &mut Vec<Bracket>, is_kind: impl Fn(Bracket) -> bool) {
    if let Some(place) = open.iter().rposition(|one| is_kind(*one)) {
        open.truncate(place);
    }
}
