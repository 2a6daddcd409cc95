//! Rehearsal of the last commands with other policies: a controller and a drive like the real ones
//! execute the commands again in their own simulation.

use super::super::{CachePolicy, CachingScheme, Vme, VmeConfig};
use super::choice::HalfTimes;
use super::script::RehearsalScript;
use crate::hardware::bare::BareController;
use crate::hardware::bus::Bus;
use crate::hardware::mechanism::Mechanism;
use diskperf_device::{RequestId, Requests, moment};
use diskperf_sim::{RandomStreams, Time};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

struct RehearsalBench {
    bare_controller: BareController<Vme>,
    script: Rc<RehearsalScript>,
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
    pub(in super::super) event_count: Cell<u64>,
    /// Times of the commands with policies that were already rehearsed. Searches often reach the
    /// same policies again.
    pub(in super::super) measured_times: RefCell<BTreeMap<Vec<CachePolicy>, HalfTimes>>,
}

impl Rehearsal<'_> {
    pub(super) fn measure_policies(
        &self,
        script: &Rc<RehearsalScript>,
        policies: Vec<CachePolicy>,
    ) -> HalfTimes {
        if let Some(halves) = self.measured_times.borrow().get(&policies) {
            return *halves;
        }
        let bench = self.build_bench(script, policies.clone());
        let halves = bench.run_script();
        self.event_count
            .set(self.event_count.get() + bench.bare_controller.sim.event_count());
        self.measured_times.borrow_mut().insert(policies, halves);
        halves
    }

    fn build_bench(
        &self,
        script: &Rc<RehearsalScript>,
        policies: Vec<CachePolicy>,
    ) -> Rc<RehearsalBench> {
        let caching = CachingScheme::RehearsedPolicies {
            capacity_sectors: self.config.caching.capacity_sectors(),
            policies,
        };
        let config = VmeConfig {
            caching,
            ..self.config.clone()
        };
        let vme = |id, drives| Vme::new(id, config, drives, RandomStreams::new(0));
        let drives = vec![self.drive.clone_idle()];
        let mut requests = Requests::default();
        let of_script = script.requests.iter().cloned();
        let ids = of_script.map(|request| requests.issue(request)).collect();
        Rc::new(RehearsalBench {
            bare_controller: BareController::new(drives, vme, self.bus.clone_idle(), requests),
            requests: ids,
            script: Rc::clone(script),
            pending_conditions: RefCell::new(script.trigger_counts.clone()),
            measured_from: Cell::new(Time::ZERO),
            half_time: Cell::new(Time::ZERO),
        })
    }
}

impl RehearsalBench {
    fn run_script(self: &Rc<Self>) -> HalfTimes {
        self.bare_controller.run_script(Rc::clone(self).run_host());
        let half_time = self.half_time.get();
        [
            half_time - self.measured_from.get(),
            self.bare_controller.sim.now() - half_time,
        ]
    }

    /// Submits the commands of the script in their order of dependence, and reaps their
    /// completions.
    async fn run_host(self: Rc<Self>) {
        let free = |number: &usize| self.script.trigger_counts[*number] == 0;
        for number in (0..self.script.requests.len()).filter(free) {
            self.schedule_submission(number);
        }
        let mut ended_at = 0;
        while ended_at < self.script.requests.len() {
            let done = self
                .bare_controller
                .with_controller_parts(|vme, _, _| vme.take_completion());
            let Some(done) = done else {
                self.bare_controller
                    .sim
                    .wait_for_wake_up("the controller")
                    .await;
                continue;
            };
            ended_at += 1;
            let now = self.bare_controller.sim.now();
            if ended_at == self.script.warmup_count {
                self.measured_from.set(now);
            }
            if ended_at == (self.script.warmup_count + self.script.requests.len()) / 2 {
                self.half_time.set(now);
            }
            self.count_down_conditions(&self.script.triggered_by_completion[done.slot()]);
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
        let at = self.bare_controller.sim.now() + self.script.submission_delays[number];
        self.bare_controller
            .sim
            .spawn(String::new(), true, async move {
                bench.bare_controller.sim.sleep_until(at).await;
                bench.submit_request(number);
                bench.count_down_conditions(&bench.script.triggered_by_arrival[number]);
            });
    }

    fn submit_request(&self, number: usize) {
        let id = self.requests[number];
        self.bare_controller
            .with_controller_parts(|vme, context, parts| {
                parts.submitted_requests[id]
                    .spans
                    .begin_at(moment(context.now()));
                vme.accept_command(context, parts, id);
            });
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::RecordedCommand;
    use super::*;
    use crate::hardware::bench::bench_drive;
    use diskperf_device::Request;

    /// Returns the commands of two sequential readers and one random reader, recorded during a
    /// rehearsal.
    fn record_commands(rehearsal: &Rehearsal<'_>, policy: CachePolicy) -> Vec<RecordedCommand> {
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
        let script = Rc::new(RehearsalScript::new(first.iter(), 0));
        let bench = rehearsal.build_bench(&script, vec![policy; 90]);
        bench.run_script();
        let hardware = bench.bare_controller.hardware.borrow();
        let came = bench.requests.iter().zip(first).map(|(id, one)| {
            let spans = &hardware.submitted_requests[*id].spans;
            RecordedCommand {
                arrived_at: Time(spans.issued_at().0),
                ended_at: Some(Time(spans.marked_until().0)),
                ..one
            }
        });
        let mut came: Vec<RecordedCommand> = came.collect();
        came.sort_by_key(|one| one.arrived_at);
        came
    }

    #[test]
    fn a_rehearsal_of_recorded_commands_takes_the_recorded_time() {
        let config = VmeConfig {
            command_delay: Time::from_millis(1),
            move_time_per_sector: Time(300_000),
            ..VmeConfig::with_unpublished_costs()
        };
        let rehearsal = Rehearsal {
            config: &config,
            drive: &bench_drive(0),
            bus: &Bus::new(1_000_000_000, 0.0),
            event_count: Cell::new(0),
            measured_times: RefCell::default(),
        };
        for (bits, ahead) in [("0", 0), ("SEA|CRD|XHD|XCY", 30), ("SEA|SRD|XHD", 100)] {
            let policy = CachePolicy::parse_policy(bits, ahead).expect("bits");
            let seen = record_commands(&rehearsal, policy);
            let ends_at = seen.iter().filter_map(|one| one.ended_at);
            let measure = ends_at.max().expect("all ended") - seen[0].arrived_at;
            let script = Rc::new(RehearsalScript::new(seen.iter(), 0));
            let [first, second] = rehearsal.measure_policies(&script, vec![policy; 90]);
            let off = (first + second).0 as f64 / measure.0 as f64 - 1.0;
            assert!(off.abs() < 0.02, "{bits} {ahead}: {off:+.3} of {measure}");
        }
    }
}
