//! Scheduler states of the recorded threads.
//!
//! The kernel's accounting of a thread does not begin and end at its switch events. The scheduler
//! reads its clock, looks for the next thread, maybe on other processors, and only then reports the
//! switch (kernel/sched/core.c, `__schedule`). With short waits that is a tenth of the time and
//! more. `sched_stat_runtime` reports the accounted time and its end, so here a thread has a
//! processor while it is charged for it. Scheduler classes without that event are followed by their
//! switches.

use super::lines::CpuCharge;
use diskperf_timeline::Nanoseconds;
use diskperf_timeline::block::{SchedulingState, ThreadSwitch};
use std::collections::BTreeMap;

/// Scheduler switches of all recorded threads so far.
#[derive(Debug, Default)]
pub(super) struct ThreadSwitches {
    thread_switches: Vec<ThreadSwitch>,
    state_by_thread: BTreeMap<u32, ThreadState>,
}

#[derive(Debug, Default)]
struct ThreadState {
    latest_switch_index: Option<usize>,
    /// End of the time that the thread was charged for, since it last got a processor.
    cpu_charged_until: Option<Nanoseconds>,
}

impl ThreadSwitches {
    /// Adds a thread switch that the scheduler reported.
    pub(super) fn add_switch(&mut self, mut switch: ThreadSwitch) {
        let thread = self.state_by_thread.entry(switch.thread_id).or_default();
        let before = thread
            .latest_switch_index
            .map(|place| self.thread_switches[place]);
        match switch.new_state {
            // It is woken before it sleeps.
            SchedulingState::Woken
                if before.is_some_and(|one| one.new_state == SchedulingState::Running) =>
            {
                return;
            }
            SchedulingState::Woken => {}
            SchedulingState::Running => {
                // Known already from what it was charged.
                if before.is_some_and(|one| one.new_state == SchedulingState::Running) {
                    return;
                }
                thread.cpu_charged_until = None;
            }
            SchedulingState::Preempted | SchedulingState::Waiting => {
                let charged = thread.cpu_charged_until.take();
                switch.switch_time =
                    charged.map_or(switch.switch_time, |until| until.min(switch.switch_time));
            }
        }
        thread.latest_switch_index = Some(self.thread_switches.len());
        self.thread_switches.push(switch);
    }

    /// Adjusts the switches of a thread to the processor time that it was charged for.
    pub(super) fn add_cpu_charge(&mut self, charge: &CpuCharge) {
        let CpuCharge {
            time: at,
            thread_id: thread,
            cpu_time: charged,
        } = *charge;
        let known = self.state_by_thread.entry(thread).or_default();
        let is_first = known.cpu_charged_until.replace(at).is_none();
        let from = Nanoseconds(at.0.saturating_sub(charged.0));
        let Some(latest) = known.latest_switch_index else {
            // It had its processor when recording began.
            return;
        };
        let switch = &mut self.thread_switches[latest];
        match switch.new_state {
            SchedulingState::Running if is_first => {
                let earliest = previous_switch_time(&self.thread_switches, latest);
                self.thread_switches[latest].switch_time = from.max(earliest).min(at);
            }
            SchedulingState::Running => {}
            // The event of its getting the processor is missing, as it sometimes is
            // where a processor leaves its idle loop.
            SchedulingState::Preempted | SchedulingState::Waiting | SchedulingState::Woken => {
                let at = from.max(switch.switch_time);
                known.latest_switch_index = Some(self.thread_switches.len());
                let to = SchedulingState::Running;
                self.thread_switches.push(ThreadSwitch {
                    switch_time: at,
                    thread_id: thread,
                    new_state: to,
                });
            }
        }
    }

    /// Returns the switches of all threads in order of time.
    pub(super) fn into_switches(mut self) -> Vec<ThreadSwitch> {
        self.thread_switches
            .sort_by_key(|switch| switch.switch_time);
        self.thread_switches
    }
}

/// Returns the time of the same thread's switch before the one at index `place`; zero if there is
/// none.
fn previous_switch_time(switches: &[ThreadSwitch], place: usize) -> Nanoseconds {
    let thread = switches[place].thread_id;
    let mut before = switches[..place].iter().rev();
    let own = before.find(|switch| switch.thread_id == thread);
    own.map_or(Nanoseconds::ZERO, |switch| switch.switch_time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use SchedulingState::{Preempted, Running, Waiting, Woken};

    enum Event {
        Switch(u64, SchedulingState),
        Charged(u64, u64),
    }
    use Event::{Charged, Switch as Switched};

    fn list_scheduling_states(events: &[Event]) -> Vec<(u64, SchedulingState)> {
        let mut threads = ThreadSwitches::default();
        for event in events {
            match *event {
                Switched(at, to) => threads.add_switch(ThreadSwitch {
                    switch_time: Nanoseconds(at),
                    thread_id: 7,
                    new_state: to,
                }),
                Charged(at, time) => threads.add_cpu_charge(&CpuCharge {
                    time: Nanoseconds(at),
                    thread_id: 7,
                    cpu_time: Nanoseconds(time),
                }),
            }
        }
        let all = threads.into_switches();
        all.iter()
            .map(|switch| (switch.switch_time.0, switch.new_state))
            .collect()
    }

    #[test]
    fn a_thread_has_a_processor_while_it_is_charged() {
        let found = list_scheduling_states(&[
            // It has one as recording begins.
            Charged(90, 50),
            Switched(94, Waiting),
            Switched(150, Woken),
            Switched(160, Running),
            Charged(200, 42),
            Charged(240, 40),
            Switched(243, Preempted),
            Switched(300, Running),
            Charged(350, 55),
            Switched(351, Waiting),
        ]);
        let expected = [
            (90, Waiting),
            (150, Woken),
            (158, Running),
            (240, Preempted),
            (295, Running),
            (350, Waiting),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_missing_event_is_known_by_the_charge() {
        let found = list_scheduling_states(&[
            Switched(100, Waiting),
            Switched(150, Woken),
            Charged(200, 30),
            // Late, and known by now.
            Switched(201, Running),
            Switched(210, Waiting),
        ]);
        let expected = [(100, Waiting), (150, Woken), (170, Running), (200, Waiting)];
        assert_eq!(found, expected);
    }

    #[test]
    fn no_charge_begins_before_the_wait_ends() {
        let found = list_scheduling_states(&[
            Switched(100, Waiting),
            Switched(150, Woken),
            Switched(160, Running),
            Charged(180, 90),
            // Woken while it runs: it goes on.
            Switched(190, Woken),
            Switched(200, Waiting),
        ]);
        assert_eq!(found[2], (150, Running));
        assert_eq!(found[3..], [(180, Waiting)]);
    }

    #[test]
    fn without_charges_the_switches_count() {
        let events = [
            (100, Waiting),
            (150, Woken),
            (160, Running),
            (190, Preempted),
        ];
        let switches = events.map(|(at, to)| Switched(at, to));
        assert_eq!(list_scheduling_states(&switches), events);
    }
}
