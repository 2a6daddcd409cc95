//! Rehearsal of the last commands with other policies: a controller and a drive like the real ones
//! execute the commands again in their own simulation.

use super::super::{Caching, Policy, Vme, VmeConfig};
use super::choice::Halves;
use super::script::Script;
use crate::hardware::bare::Bare;
use crate::hardware::bus::Bus;
use crate::hardware::mechanism::Mechanism;
use diskperf_device::{RequestId, Requests, moment};
use diskperf_sim::{Streams, Time};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

struct Bench {
    bare: Bare<Vme>,
    script: Rc<Script>,
    requests: Vec<RequestId>,
    /// Number of conditions that each command still waits for.
    waits: RefCell<Vec<u8>>,
    /// Start of the measured time of a rehearsal, after the commands that only fill the cache.
    since: Cell<Time>,
    half: Cell<Time>,
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
    pub(in super::super) known: RefCell<BTreeMap<Vec<Policy>, Halves>>,
}

impl Rehearsal<'_> {
    /// Returns the time of the commands with a policy for each.
    pub(super) fn took(&self, script: &Rc<Script>, policies: Vec<Policy>) -> Halves {
        if let Some(halves) = self.known.borrow().get(&policies) {
            return *halves;
        }
        let bench = self.bench(script, policies.clone());
        let halves = bench.run();
        self.events.set(self.events.get() + bench.bare.sim.events());
        self.known.borrow_mut().insert(policies, halves);
        halves
    }

    fn bench(&self, script: &Rc<Script>, policies: Vec<Policy>) -> Rc<Bench> {
        let caching = Caching::Rehearsed {
            capacity_sectors: self.config.caching.capacity_sectors(),
            policies,
        };
        let config = VmeConfig {
            caching,
            ..self.config.clone()
        };
        let vme = |id, drives| Vme::new(id, config, drives, Streams::new(0));
        let drives = vec![self.drive.at_rest()];
        let mut requests = Requests::default();
        let of_script = script.requests.iter().cloned();
        let ids = of_script.map(|request| requests.issue(request)).collect();
        Rc::new(Bench {
            bare: Bare::new(drives, vme, self.bus.idle(), requests),
            requests: ids,
            script: Rc::clone(script),
            waits: RefCell::new(script.waits.clone()),
            since: Cell::new(Time::ZERO),
            half: Cell::new(Time::ZERO),
        })
    }
}

impl Bench {
    fn run(self: &Rc<Self>) -> Halves {
        self.bare.run(Rc::clone(self).host());
        let half = self.half.get();
        [half - self.since.get(), self.bare.sim.now() - half]
    }

    /// Submits the commands of the script in their order of dependence, and reaps their
    /// completions.
    async fn host(self: Rc<Self>) {
        let free = |number: &usize| self.script.waits[*number] == 0;
        for number in (0..self.script.requests.len()).filter(free) {
            self.give_later(number);
        }
        let mut ended = 0;
        while ended < self.script.requests.len() {
            let done = self.bare.ask(|vme, _, _| vme.take_done());
            let Some(done) = done else {
                self.bare.sim.wait("the controller").await;
                continue;
            };
            ended += 1;
            let now = self.bare.sim.now();
            if ended == self.script.warm {
                self.since.set(now);
            }
            if ended == (self.script.warm + self.script.requests.len()) / 2 {
                self.half.set(now);
            }
            self.waited(&self.script.after_end[done.place()]);
        }
    }

    /// Counts down the conditions of the given script commands, and schedules those that wait for
    /// nothing more.
    fn waited(self: &Rc<Self>, numbers: &[usize]) {
        for number in numbers {
            let waits = &mut self.waits.borrow_mut()[*number];
            *waits -= 1;
            if *waits == 0 {
                self.give_later(*number);
            }
        }
    }

    /// Schedules the submission of a command after its delay in the script.
    fn give_later(self: &Rc<Self>, number: usize) {
        let bench = Rc::clone(self);
        let at = self.bare.sim.now() + self.script.gaps[number];
        self.bare.sim.spawn(String::new(), true, async move {
            bench.bare.sim.sleep_until(at).await;
            bench.give(number);
            bench.waited(&bench.script.after_coming[number]);
        });
    }

    fn give(&self, number: usize) {
        let id = self.requests[number];
        self.bare.ask(|vme, around, parts| {
            parts.requests[id].spans.issue(moment(around.now()));
            vme.command(around, parts, id);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::Seen;
    use super::*;
    use crate::hardware::bench::drive;
    use diskperf_device::Request;

    /// Two readers in sequence and one here and there, as they came and ended when a
    /// script of theirs was carried out.
    fn seen(rehearsal: &Rehearsal<'_>, policy: Policy) -> Vec<Seen> {
        let starts = [0_u64, 4000, 7000];
        let of = |number: u64| Seen {
            request: Request {
                sector: starts[number as usize % 3]
                    + (number / 3) * [8, 16, 173][number as usize % 3] % 2000,
                sectors: 8 + 8 * (number % 2) as u32,
                ..Request::default()
            },
            sequence: number % 3,
            arrived: Time::from_millis(30 * number),
            ended: Some(Time::from_millis(30 * number + 20)),
        };
        let first: Vec<Seen> = (0..90).map(of).collect();
        let script = Rc::new(Script::new(first.iter(), 0));
        let bench = rehearsal.bench(&script, vec![policy; 90]);
        bench.run();
        let hardware = bench.bare.hardware.borrow();
        let came = bench.requests.iter().zip(first).map(|(id, one)| {
            let spans = &hardware.requests[*id].spans;
            Seen {
                arrived: Time(spans.issued().0),
                ended: Some(Time(spans.marked().0)),
                ..one
            }
        });
        let mut came: Vec<Seen> = came.collect();
        came.sort_by_key(|one| one.arrived);
        came
    }

    /// What is carried out again as it was takes as long as it did.
    #[test]
    fn a_rehearsal_of_what_was_takes_what_it_took() {
        let config = VmeConfig {
            command: Time::from_millis(1),
            move_per_sector: Time(300_000),
            ..VmeConfig::unknown()
        };
        let rehearsal = Rehearsal {
            config: &config,
            drive: &drive(0),
            bus: &Bus::new(1_000_000_000, 0.0),
            events: Cell::new(0),
            known: RefCell::default(),
        };
        for (bits, ahead) in [("0", 0), ("SEA|CRD|XHD|XCY", 30), ("SEA|SRD|XHD", 100)] {
            let policy = Policy::parse(bits, ahead).expect("bits");
            let seen = seen(&rehearsal, policy);
            let ends = seen.iter().filter_map(|one| one.ended);
            let took = ends.max().expect("all ended") - seen[0].arrived;
            let script = Rc::new(Script::new(seen.iter(), 0));
            let [first, second] = rehearsal.took(&script, vec![policy; 90]);
            let off = (first + second).0 as f64 / took.0 as f64 - 1.0;
            assert!(off.abs() < 0.02, "{bits} {ahead}: {off:+.3} of {took}");
        }
    }
}
