//! Random histories with a known truth: a small simulator of tasks, requests, work items and
//! wake-ups writes the events, and the chain that they must give.

mod support;

use diskperf_chains::History;
use diskperf_chains::event::{EventKind, KernelRecording};
use diskperf_chains::identity::FunctionAddress;
use std::fmt::Write;
use support::{Scenario, format_link, list_chains};

const HISTORY_COUNT: u64 = 400;
const OPERATION_COUNT: u64 = 12;

/// Random numbers by a linear congruence, whose high bits are used.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Simulator that writes events as it goes, one thing after the other.
struct Simulator {
    random: Random,
    now: u64,
    text: String,
    /// Links of the operation that runs: stage and purpose, task, and duration.
    truth: Vec<(String, u32, u64)>,
    next_address: u64,
    /// Tasks that may be waited for, and their depth.
    next_thread: u32,
}

impl Simulator {
    fn from_seed(seed: u64) -> Self {
        Self {
            random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            now: 1_000,
            text: "function 900 some_work_fn\n".to_owned(),
            truth: Vec::new(),
            next_address: 100,
            next_thread: 1_000,
        }
    }

    fn event(&mut self, cpu: u32, thread: u32, kind: &str) {
        writeln!(self.text, "{} {cpu} {thread} {kind}", self.now).expect("a text");
    }

    /// Lets time pass in a stage.
    fn pass(&mut self, link: &str, thread: u32) {
        let ns = 1 + self.random.below(5_000);
        self.now += ns;
        self.decoy();
        self.book(link, thread, ns);
    }

    fn book(&mut self, link: &str, thread: u32, ns: u64) {
        match self.truth.last_mut() {
            Some((last, of, sum)) if last == link && *of == thread => *sum += ns,
            _ => self.truth.push((link.to_owned(), thread, ns)),
        }
    }

    fn address(&mut self) -> u64 {
        self.next_address += 1;
        self.next_address
    }

    /// Writes what others do on a third processor, which must change nothing.
    fn decoy(&mut self) {
        let (request, bio) = (self.address(), self.address());
        let sector = 1_000_000 + 8 * request;
        match self.random.below(4) {
            0 => {
                self.event(2, 77, &format!("bio_queue {bio} 254:16 {sector} 4096 W"));
                self.event(2, 77, &format!("getrq {bio} 254:16 {sector} 4096"));
                let body = format!("{request} {bio} 254:16 {sector} 4096 W");
                self.event(2, 77, &format!("issue {body}"));
                self.event(2, 77, &format!("complete 4096 {body}"));
                self.event(2, 77, "wake 78");
                self.event(2, 77, &format!("done {request}"));
            }
            1 => self.event(2, 77, "wake 78"),
            _ => {}
        }
    }

    /// Runs a task, and lets it lose the processor now and then.
    fn run(&mut self, thread: u32, cpu: u32, work: &str, purpose: &str) {
        self.pass(&format!("{work} {purpose}"), thread);
        if self.random.below(3) == 0 {
            self.event(cpu, thread, "switch R 77");
            self.pass(&format!("cpu_wait {purpose}"), thread);
            self.event(cpu, 77, &format!("switch R {thread}"));
            self.pass(&format!("{work} {purpose}"), thread);
        }
    }

    /// Makes a task wait for something random, which may wait in its turn.
    fn wait(&mut self, thread: u32, cpu: u32, purpose: &str, depth: u32) {
        let kinds = if depth < 3 { 4 } else { 2 };
        match self.random.below(kinds) {
            0 => self.wait_for_request(thread, cpu),
            1 => {
                self.event(cpu, thread, "switch S 0");
                self.pass(&format!("think {purpose}"), thread);
                self.event(cpu, 0, "timer");
                self.event(cpu, 0, &format!("wake {thread}"));
                self.event(cpu, 0, "timer_end");
            }
            2 => self.wait_for_task(thread, cpu, depth),
            _ => self.wait_for_work(thread, cpu, depth),
        }
        self.pass(&format!("cpu_wait {purpose}"), thread);
        self.event(cpu, 0, &format!("switch R {thread}"));
    }

    fn wait_for_request(&mut self, thread: u32, cpu: u32) {
        let (request, bio) = (self.address(), self.address());
        let is_read = self.random.below(2) == 0;
        let (letter, purpose) = if is_read {
            ("R", "read")
        } else {
            ("W", "data_write")
        };
        let extent = format!("254:0 {} 4096", 8 * request);
        let body = format!("{request} {bio} {extent} {letter}");
        self.event(cpu, thread, &format!("bio_queue {bio} {extent} {letter}"));
        self.event(cpu, thread, "switch D 0");
        // Another processor takes the bio from here, as a kernel with a busy queue does.
        for (event, stage) in [
            (format!("getrq {bio} {extent}"), "tag_wait"),
            (format!("insert {body}"), "plug_wait"),
            (format!("issue {body}"), "driver_queue"),
            (format!("complete 4096 {body}"), "device"),
        ] {
            self.pass(&format!("{stage} {purpose}"), thread);
            self.event(3, 0, &event);
        }
        self.pass(&format!("completion {purpose}"), thread);
        self.event(3, 0, &format!("wake {thread}"));
        self.event(3, 0, &format!("done {request}"));
    }

    fn wait_for_task(&mut self, thread: u32, cpu: u32, depth: u32) {
        let other = self.next_thread;
        self.next_thread += 1;
        let own = 10 + depth;
        self.event(own, 0, &format!("switch R {other}"));
        self.event(cpu, thread, "switch D 0");
        self.run(other, own, "other_task", "other_task");
        self.wait(other, own, "other_task", depth + 1);
        self.run(other, own, "other_task", "other_task");
        self.event(own, other, &format!("wake {thread}"));
        self.event(own, other, "switch S 0");
    }

    fn wait_for_work(&mut self, thread: u32, cpu: u32, depth: u32) {
        let (worker, work) = (self.next_thread, self.address());
        self.next_thread += 1;
        let own = 10 + depth;
        self.event(cpu, thread, &format!("queue_work {work} 900"));
        self.event(cpu, thread, "switch D 0");
        self.pass("work_queue_wait kernel_worker", thread);
        self.event(own, 0, &format!("switch R {worker}"));
        self.event(own, worker, &format!("start_work {work} 900"));
        self.run(worker, own, "other_task", "kernel_worker");
        self.wait(worker, own, "kernel_worker", depth + 1);
        self.run(worker, own, "other_task", "kernel_worker");
        self.event(own, worker, &format!("wake {thread}"));
        self.event(own, worker, &format!("end_work {work}"));
        self.event(own, worker, "switch S 0");
    }

    fn operation(&mut self, number: u64) {
        self.truth.clear();
        self.event(0, 100, &format!("begin {number}"));
        self.run(100, 0, "system_call", "call");
        for _ in 0..self.random.below(3) {
            self.wait(100, 0, "call", 0);
            self.run(100, 0, "system_call", "call");
        }
        self.event(0, 100, &format!("end {number}"));
        let links = self.truth.iter();
        let links: Vec<String> = links
            .map(|(link, thread, ns)| format!("{link} {thread} {ns}"))
            .collect();
        writeln!(self.text, "expect operation {number}: {}", links.join("; ")).expect("a text");
        self.now += self.random.below(1_000);
    }
}

fn simulate(seed: u64) -> Scenario {
    let mut simulator = Simulator::from_seed(seed);
    for number in 0..OPERATION_COUNT {
        simulator.operation(number);
    }
    Scenario::parse(&simulator.text)
}

#[test]
fn the_chain_of_every_simulated_operation_is_the_truth() {
    for seed in 0..HISTORY_COUNT {
        let scenario = simulate(seed);
        let chains = list_chains(&scenario.recording);
        assert_eq!(chains.len() as u64, OPERATION_COUNT, "seed {seed}");
        for ((what, expected), (_, chain)) in scenario.expected.iter().zip(&chains) {
            let links: Vec<String> = chain.links().iter().map(format_link).collect();
            assert_eq!(&links, expected, "seed {seed}: {what}");
            assert!(!chain.is_incomplete, "seed {seed}: {what}");
        }
    }
}

/// Wake-ups and switches are left out without being counted. The chains that lack them say so, or
/// they are those of the truth.
#[test]
fn a_chain_that_lacks_events_is_marked() {
    let (mut changed_count, mut marked_count) = (0, 0);
    for seed in 0..HISTORY_COUNT {
        let scenario = simulate(seed);
        let mut random = Random(seed | 1);
        let kept = scenario.recording.events.iter().filter(|event| {
            let is_wake_up = matches!(
                event.kind,
                EventKind::Waking { .. } | EventKind::Switch { .. }
            );
            !is_wake_up || random.below(50) != 0
        });
        let recording = KernelRecording {
            events: kept.copied().collect(),
            functions: [(FunctionAddress(900), "some_work_fn".to_owned())].into(),
            ..KernelRecording::default()
        };
        for ((_, expected), (_, chain)) in scenario.expected.iter().zip(list_chains(&recording)) {
            let links: Vec<String> = chain.links().iter().map(format_link).collect();
            changed_count += usize::from(&links != expected);
            marked_count += usize::from(&links != expected && chain.is_incomplete);
        }
    }
    assert!(
        changed_count > 100,
        "only {changed_count} chains lack an event"
    );
    // A lost preemption leaves no trace: the task seems to run on.
    assert!(
        marked_count * 10 >= changed_count * 9,
        "{marked_count} of {changed_count} are marked"
    );
}

/// Requests of a ring on few addresses, with workers that take them, switches and wake-ups.
fn simulate_ring(seed: u64) -> Scenario {
    let mut simulator = Simulator::from_seed(seed);
    for number in 0..30 {
        let (request, worker) = (
            1 + simulator.random.below(3),
            300 + simulator.random.below(2),
        );
        let worker = worker as u32;
        let mut step = |cpu, thread, kind: &str| {
            simulator.now += 1 + simulator.random.below(50);
            simulator.event(cpu, thread, kind);
        };
        step(0, 100, &format!("ring_submit {request} {number}"));
        if goes_to_worker(number) {
            step(0, 100, &format!("ring_async {request}"));
            step(1, 0, &format!("switch R {worker}"));
            step(
                1,
                worker,
                &format!("ring_worker {}", request * (number % 2)),
            );
            step(
                1,
                worker,
                &format!("bio_queue 11 254:0 {} 4096 W", 8 * number),
            );
            step(1, worker, "wake 100");
            step(1, worker, &format!("ring_complete {request}"));
            step(1, worker, "switch S 0");
        } else {
            step(
                0,
                100,
                &format!("bio_queue 12 254:0 {} 8192 W", 16 * number),
            );
            step(0, 100, &format!("split 13 254:0 {} 4096", 16 * number));
            step(0, 100, "switch S 0");
            step(0, 0, "wake 100");
            step(0, 0, "switch R 100");
            step(0, 100, &format!("ring_complete {request}"));
        }
    }
    Scenario::parse(&simulator.text)
}

/// Two of three requests go to a worker.
fn goes_to_worker(number: u64) -> bool {
    !number.is_multiple_of(3)
}

#[test]
fn chains_of_a_ring_sum_to_its_requests_whatever_events_are_lost() {
    let (mut chain_count, mut lost_count) = (0, 0);
    for seed in 0..HISTORY_COUNT {
        let mut recording = simulate_ring(seed).recording;
        let mut random = Random(seed | 1);
        let before = recording.events.len();
        recording.events.retain(|_| random.below(4) != 0);
        lost_count += before - recording.events.len();
        let history = History::from_recording(&recording);
        for request in history.ring_requests() {
            let Some(completed_at) = request.completed_at else {
                continue;
            };
            let chain = history.explain_ring_request(request);
            let chain = chain.expect("a request that completed has a chain");
            let length = completed_at.since(request.submitted_at);
            assert_eq!(chain.duration(), length, "seed {seed}: {request:?}");
            chain_count += 1;
        }
    }
    assert!(chain_count > 1_000, "only {chain_count} chains");
    assert!(lost_count > 1_000, "only {lost_count} lost events");
}
