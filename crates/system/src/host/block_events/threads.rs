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
use diskperf_timeline::block::{Scheduled, Switch};
use std::collections::BTreeMap;

/// Scheduler switches of all recorded threads so far.
#[derive(Debug, Default)]
pub(super) struct ThreadSwitches {
    switches: Vec<Switch>,
    threads: BTreeMap<u32, ThreadState>,
}

#[derive(Debug, Default)]
struct ThreadState {
    /// Index of the thread's latest switch among all switches.
    latest_switch: Option<usize>,
    /// End of the time that the thread was charged for, since it last got a processor.
    charged_until: Option<Nanoseconds>,
}

impl ThreadSwitches {
    /// Adds a thread switch that the scheduler reported.
    pub(super) fn add_switch(&mut self, mut switch: Switch) {
        let thread = self.threads.entry(switch.thread).or_default();
        let before = thread.latest_switch.map(|place| self.switches[place]);
        match switch.to {
            // It is woken before it sleeps.
            Scheduled::Woken if before.is_some_and(|one| one.to == Scheduled::Running) => return,
            Scheduled::Woken => {}
            Scheduled::Running => {
                // Known already from what it was charged.
                if before.is_some_and(|one| one.to == Scheduled::Running) {
                    return;
                }
                thread.charged_until = None;
            }
            Scheduled::Preempted | Scheduled::Waiting => {
                let charged = thread.charged_until.take();
                switch.at = charged.map_or(switch.at, |until| until.min(switch.at));
            }
        }
        thread.latest_switch = Some(self.switches.len());
        self.switches.push(switch);
    }

    /// Adjusts the switches of a thread to the processor time that it was charged for.
    pub(super) fn add_cpu_charge(&mut self, charge: &CpuCharge) {
        let CpuCharge {
            at,
            thread,
            charged,
        } = *charge;
        let known = self.threads.entry(thread).or_default();
        let is_first = known.charged_until.replace(at).is_none();
        let from = Nanoseconds(at.0.saturating_sub(charged.0));
        let Some(latest) = known.latest_switch else {
            // It had its processor when recording began.
            return;
        };
        let switch = &mut self.switches[latest];
        match switch.to {
            Scheduled::Running if is_first => {
                let earliest = previous_switch_time(&self.switches, latest);
                self.switches[latest].at = from.max(earliest).min(at);
            }
            Scheduled::Running => {}
            // The event of its getting the processor is missing, as it sometimes is
            // where a processor leaves its idle loop.
            Scheduled::Preempted | Scheduled::Waiting | Scheduled::Woken => {
                let at = from.max(switch.at);
                known.latest_switch = Some(self.switches.len());
                let to = Scheduled::Running;
                self.switches.push(Switch { at, thread, to });
            }
        }
    }

    /// Returns the switches of all threads in order of time.
    pub(super) fn into_switches(mut self) -> Vec<Switch> {
        self.switches.sort_by_key(|switch| switch.at);
        self.switches
    }
}

/// Returns the time of the same thread's switch before the one at index `place`; zero if there is
/// none.
fn previous_switch_time(switches: &[Switch], place: usize) -> Nanoseconds {
    let thread = switches[place].thread;
    let mut before = switches[..place].iter().rev();
    let own = before.find(|switch| switch.thread == thread);
    own.map_or(Nanoseconds::ZERO, |switch| switch.at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Scheduled::{Preempted, Running, Waiting, Woken};

    enum Event {
        Switch(u64, Scheduled),
        Charged(u64, u64),
    }
    use Event::{Charged, Switch as Switched};

    fn told(events: &[Event]) -> Vec<(u64, Scheduled)> {
        let mut threads = ThreadSwitches::default();
        for event in events {
            match *event {
                Switched(at, to) => threads.add_switch(Switch {
                    at: Nanoseconds(at),
                    thread: 7,
                    to,
                }),
                Charged(at, time) => threads.add_cpu_charge(&CpuCharge {
                    at: Nanoseconds(at),
                    thread: 7,
                    charged: Nanoseconds(time),
                }),
            }
        }
        let all = threads.into_switches();
        all.iter().map(|switch| (switch.at.0, switch.to)).collect()
    }

    #[test]
    fn a_thread_has_a_processor_while_it_is_charged() {
        let found = told(&[
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
        let found = told(&[
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
        let found = told(&[
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
        assert_eq!(told(&switches), events);
    }
}
