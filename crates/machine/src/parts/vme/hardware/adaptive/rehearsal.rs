//! Rehearsal of the last commands with other policies: a controller and a drive like the real ones
//! execute the commands again in their own simulation.

use super::super::{Caching, Policy, Vme, VmeConfig};
use super::choice::HalfTimes;
use super::script::Script;
use crate::hardware::bare::BareController;
use crate::hardware::bus::Bus;
use crate::hardware::mechanism::Mechanism;
use diskperf_device::{RequestId, Requests, moment};
use diskperf_sim::{Streams, Time};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

struct RehearsalBench {
    bare: BareController<Vme>,
    script: Rc<Script>,
    requests: Vec<RequestId>,
    /// Number of conditions that each command still waits for.
    pending_conditions: RefCell<Vec<u8>>,
    /// Start of the measured time of a rehearsal, after the commands that only fill the cache.
    measured_from: Cell<Time>,
    half_time: Cell<Time>,
}

/// Hardware and parameters for the rehearsals of one search.
pub(in super::super) struct Rehearsal<'a> {
    pub(in super::super) config: &'a VmeConfig,
    pub(in super::super) drive: &'a Mechanism,
    pub(in super::super) bus: &'a Bus,
    /// Number of events in the rehearsals' simulations so far.
    pub(in super::super) events: Cell<u64>,
    /// Times of the commands with policies that were already rehearsed. Searches often reach the
    /// same policies again.
    pub(in super::super) measured: RefCell<BTreeMap<Vec<Policy>, HalfTimes>>,
}

impl Rehearsal<'_> {
    /// Returns the time of the commands with a policy for each.
    pub(super) fn measure(&self, script: &Rc<Script>, policies: Vec<Policy>) -> HalfTimes {
        if let Some(halves) = self.measured.borrow().get(&policies) {
            return *halves;
        }
        let bench = self.build_bench(script, policies.clone());
        let halves = bench.run();
        self.events.set(self.events.get() + bench.bare.sim.events());
        self.measured.borrow_mut().insert(policies, halves);
        halves
    }

    fn build_bench(&self, script: &Rc<Script>, policies: Vec<Policy>) -> Rc<RehearsalBench> {
        let caching = Caching::Rehearsed {
            capacity_sectors: self.config.caching.capacity_sectors(),
            policies,
        };
        let config = VmeConfig {
            caching,
            ..self.config.clone()
        };
        let vme = |id, drives| Vme::new(id, config, drives, Streams::new(0));
        let drives = vec![self.drive.idle_copy()];
        let mut requests = Requests::default();
        let of_script = script.requests.iter().cloned();
        let ids = of_script.map(|request| requests.issue(request)).collect();
        Rc::new(RehearsalBench {
            bare: BareController::new(drives, vme, self.bus.idle_copy(), requests),
            requests: ids,
            script: Rc::clone(script),
            pending_conditions: RefCell::new(script.condition_counts.clone()),
            measured_from: Cell::new(Time::ZERO),
            half_time: Cell::new(Time::ZERO),
        })
    }
}

impl RehearsalBench {
    fn run(self: &Rc<Self>) -> HalfTimes {
        self.bare.run(Rc::clone(self).run_host());
        let half_time = self.half_time.get();
        [
            half_time - self.measured_from.get(),
            self.bare.sim.now() - half_time,
        ]
    }

    /// Submits the commands of the script in their order of dependence, and reaps their
    /// completions.
    async fn run_host(self: Rc<Self>) {
        let free = |number: &usize| self.script.condition_counts[*number] == 0;
        for number in (0..self.script.requests.len()).filter(free) {
            self.schedule_submission(number);
        }
        let mut ended_at = 0;
        while ended_at < self.script.requests.len() {
            let done = self.bare.ask(|vme, _, _| vme.take_done());
            let Some(done) = done else {
                self.bare.sim.wait("the controller").await;
                continue;
            };
            ended_at += 1;
            let now = self.bare.sim.now();
            if ended_at == self.script.warmup_count {
                self.measured_from.set(now);
            }
            if ended_at == (self.script.warmup_count + self.script.requests.len()) / 2 {
                self.half_time.set(now);
            }
            self.count_down_conditions(&self.script.after_end[done.slot()]);
        }
    }

    /// Counts down the conditions of the given script commands, and schedules those that wait for
    /// nothing more.
    fn count_down_conditions(self: &Rc<Self>, numbers: &[usize]) {
        for number in numbers {
            let waits = &mut self.pending_conditions.borrow_mut()[*number];
            *waits -= 1;
            if *waits == 0 {
                self.schedule_submission(*number);
            }
        }
    }

    /// Schedules the submission of a command after its delay in the script.
    fn schedule_submission(self: &Rc<Self>, number: usize) {
        let bench = Rc::clone(self);
        let at = self.bare.sim.now() + self.script.delays[number];
        self.bare.sim.spawn(String::new(), true, async move {
            bench.bare.sim.sleep_until(at).await;
            bench.submit(number);
            bench.count_down_conditions(&bench.script.after_arrival[number]);
        });
    }

    fn submit(&self, number: usize) {
        let id = self.requests[number];
        self.bare.ask(|vme, context, parts| {
            parts.requests[id].spans.issue(moment(context.now()));
            vme.command(context, parts, id);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::RecordedCommand;
    use super::*;
    use crate::hardware::bench::drive;
    use diskperf_device::Request;

    /// Returns the commands of two sequential readers and one random reader, recorded during a
    /// rehearsal.
    fn record_commands(rehearsal: &Rehearsal<'_>, policy: Policy) -> Vec<RecordedCommand> {
        let starts = [0_u64, 4000, 7000];
        let of = |number: u64| RecordedCommand {
            request: Request {
                sector: starts[number as usize % 3]
                    + (number / 3) * [8, 16, 173][number as usize % 3] % 2000,
                sectors: 8 + 8 * (number % 2) as u32,
                ..Request::default()
            },
            sequence: number % 3,
            arrived_at: Time::from_millis(30 * number),
            ended_at: Some(Time::from_millis(30 * number + 20)),
        };
        let first: Vec<RecordedCommand> = (0..90).map(of).collect();
        let script = Rc::new(Script::new(first.iter(), 0));
        let bench = rehearsal.build_bench(&script, vec![policy; 90]);
        bench.run();
        let hardware = bench.bare.hardware.borrow();
        let came = bench.requests.iter().zip(first).map(|(id, one)| {
            let spans = &hardware.requests[*id].spans;
            RecordedCommand {
                arrived_at: Time(spans.issued().0),
                ended_at: Some(Time(spans.marked().0)),
                ..one
            }
        });
        let mut came: Vec<RecordedCommand> = came.collect();
        came.sort_by_key(|one| one.arrived_at);
        came
    }

    /// A rehearsal with the recorded policy takes the recorded time.
    #[test]
    fn a_rehearsal_of_recorded_commands_takes_the_recorded_time() {
        let config = VmeConfig {
            command_delay: Time::from_millis(1),
            move_time_per_sector: Time(300_000),
            ..VmeConfig::with_unpublished_costs()
        };
        let rehearsal = Rehearsal {
            config: &config,
            drive: &drive(0),
            bus: &Bus::new(1_000_000_000, 0.0),
            events: Cell::new(0),
            measured: RefCell::default(),
        };
        for (bits, ahead) in [("0", 0), ("SEA|CRD|XHD|XCY", 30), ("SEA|SRD|XHD", 100)] {
            let policy = Policy::parse(bits, ahead).expect("bits");
            let seen = record_commands(&rehearsal, policy);
            let ends_at = seen.iter().filter_map(|one| one.ended_at);
            let measure = ends_at.max().expect("all ended") - seen[0].arrived_at;
            let script = Rc::new(Script::new(seen.iter(), 0));
            let [first, second] = rehearsal.measure(&script, vec![policy; 90]);
            let off = (first + second).0 as f64 / measure.0 as f64 - 1.0;
            assert!(off.abs() < 0.02, "{bits} {ahead}: {off:+.3} of {measure}");
        }
    }
}
