//! What can be measured of a run that is a cause and not a consequence.

use crate::explanation::{is_of_processor, window};
use diskperf_timeline::trace::{Purpose, TracedRequest};
use diskperf_timeline::{Stage, Trace};
use std::collections::BTreeMap;

/// The measures of one run.
pub(super) struct Measures {
    /// From the first start of a program to the last end.
    pub(super) elapsed_ns: f64,
    /// Programs that ran at once.
    pub(super) programs: f64,
    /// Drives that were asked.
    pub(super) drives: f64,
    /// What all programs booked, by [`Stage::index`].
    booked: [f64; Stage::COUNT],
    /// How long each piece of work was, by who did it and what it was, in order.
    pub(super) pieces: BTreeMap<(Worker, Stage), Vec<u64>>,
    /// Where requests begin after each other, in the order of their issue: from
    /// the first sector of one to that of the next, with its length; how often.
    pub(super) steps: BTreeMap<(i64, u32), u64>,
    /// Of what the processor does while data moves, how much longer it takes.
    pub(super) contention: Option<f64>,
    /// See [`clock`].
    pub(super) clock: Option<(f64, f64)>,
    /// The most requests that were under way at once.
    pub(super) most_at_once: usize,
    /// What requests took, by stage.
    requested: [f64; Stage::COUNT],
    /// Bytes that requests moved.
    pub(super) bytes: f64,
    /// Requests, by purpose.
    pub(super) requests: BTreeMap<Purpose, f64>,
    /// What each stage took in the requests that have it: the middle one.
    usual: BTreeMap<Stage, f64>,
    /// Seek times by distance, for each drive: the shortest seen.
    pub(super) seeks: BTreeMap<(u32, u32), u64>,
    /// Where each sector that a request begins with lies: cylinder, head, slot
    /// and slots.
    pub(super) places: BTreeMap<(u32, u64), (u32, u32, u32, u32)>,
    /// How many slots ahead of its sector the search of a request ended: the
    /// middle one.
    pub(super) lead_slots: Option<f64>,
    /// The share of requests that searched.
    pub(super) searching: f64,
    /// From a slot's begin to the next one's, when all sectors of a request
    /// passed without gap: the middle one.
    pub(super) sector_ns: Option<f64>,
}

impl Measures {
    pub(super) fn of(trace: &Trace) -> Self {
        let (from, until) = window(trace).unwrap_or_default();
        let requests: Vec<&TracedRequest> = trace
            .requests
            .iter()
            .filter(|one| one.completed() > from && one.issued < until)
            .collect();
        let mut numbers: Vec<u32> = requests.iter().map(|one| one.drive).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let asked = numbers.len();
        let mut measures = Self {
            elapsed_ns: until.since(from).0 as f64,
            programs: trace.processes.len().max(1) as f64,
            drives: asked.max(1) as f64,
            booked: [0.0; Stage::COUNT],
            pieces: BTreeMap::new(),
            steps: BTreeMap::new(),
            contention: None,
            clock: None,
            most_at_once: 0,
            requested: [0.0; Stage::COUNT],
            bytes: 0.0,
            requests: BTreeMap::new(),
            usual: BTreeMap::new(),
            seeks: BTreeMap::new(),
            places: BTreeMap::new(),
            lead_slots: None,
            searching: 0.0,
            sector_ns: None,
        };
        for process in &trace.processes {
            for (stage, start, stop) in process.parts() {
                measures.booked[stage.index()] += (stop.0 - start.0) as f64;
                measures.piece(Worker::Program, stage, stop.0 - start.0);
            }
        }
        let handlers = trace.handlers.iter();
        for work in handlers.filter(|work| work.from >= from && work.until <= until) {
            measures.piece(Worker::Handler, work.stage, work.until.0 - work.from.0);
        }
        for request in &requests {
            for (stage, start, stop) in request.parts() {
                measures.piece(Worker::Hardware, stage, stop.0 - start.0);
            }
        }
        for pieces in measures.pieces.values_mut() {
            pieces.sort_unstable();
        }
        measures.look_at(trace, &requests);
        measures.follow_arms(trace, &requests);
        measures.follow_searches(trace, &requests);
        measures.follow_files(trace, &requests);
        measures.contention = contention(trace);
        measures.clock = clock(trace, &measures);
        measures.most_at_once = most_at_once(&requests);
        measures
    }

    fn piece(&mut self, worker: Worker, stage: Stage, ns: u64) {
        self.pieces.entry((worker, stage)).or_default().push(ns);
    }

    /// How far apart requests begin that were issued after each other.
    fn follow_files(&mut self, trace: &Trace, requests: &[&TracedRequest]) {
        for drive in 0..trace.drives.len() as u32 {
            let own = requests.iter().filter(|one| one.drive == drive);
            let mut order: Vec<&&TracedRequest> = own.collect();
            order.sort_by_key(|one| one.issued);
            for pair in order.windows(2) {
                let step = pair[1].sector as i64 - pair[0].sector as i64;
                *self.steps.entry((step, pair[1].sectors)).or_default() += 1;
            }
        }
    }

    fn look_at(&mut self, trace: &Trace, requests: &[&TracedRequest]) {
        let mut spans: BTreeMap<Stage, Vec<f64>> = BTreeMap::new();
        let mut passing = Vec::new();
        for request in requests {
            let drive = &trace.drives[request.drive as usize];
            self.bytes += f64::from(request.sectors) * f64::from(drive.sector_bytes);
            *self.requests.entry(request.purpose).or_default() += 1.0;
            let at = (request.drive, request.sector);
            let place = (request.cylinder, request.head, request.slot, request.slots);
            self.places.insert(at, place);
            let mut own = [0_u64; Stage::COUNT];
            for (stage, start, stop) in request.parts() {
                own[stage.index()] += stop.0 - start.0;
            }
            for (stage, ns) in Stage::ALL.into_iter().zip(own).filter(|(_, ns)| *ns > 0) {
                self.requested[stage.index()] += ns as f64;
                spans.entry(stage).or_default().push(ns as f64);
            }
            let media = own[Stage::MediaTransfer.index()] as f64;
            passing.push(media / f64::from(request.sectors.max(1)));
        }
        for (stage, mut all) in spans {
            if let Some(middle) = middle(&mut all) {
                self.usual.insert(stage, middle);
            }
        }
        self.sector_ns = middle(&mut passing);
    }

    /// What the arm took over each distance, between requests that followed
    /// each other at one drive.
    fn follow_arms(&mut self, trace: &Trace, requests: &[&TracedRequest]) {
        for drive in 0..trace.drives.len() as u32 {
            let mut order: Vec<(u64, &TracedRequest)> = requests
                .iter()
                .filter(|one| one.drive == drive)
                .filter_map(|one| Some((media_end(one)?, *one)))
                .collect();
            order.sort_by_key(|(end, _)| *end);
            for pair in order.windows(2) {
                let (before, after) = (pair[0].1, pair[1].1);
                let distance = before.cylinder.abs_diff(after.cylinder);
                let seek: u64 = after
                    .parts()
                    .filter(|(stage, ..)| *stage == Stage::Seek)
                    .map(|(_, start, stop)| stop.0 - start.0)
                    .sum();
                if distance > 0 && seek > 0 {
                    let known = self.seeks.entry((drive, distance)).or_insert(seek);
                    *known = seek.min(*known);
                }
            }
        }
    }

    /// How far ahead of its sector each search ended.
    fn follow_searches(&mut self, trace: &Trace, requests: &[&TracedRequest]) {
        let mut leads = Vec::new();
        for request in requests {
            let drive = &trace.drives[request.drive as usize];
            let parts: Vec<_> = request.parts().collect();
            let found = parts.windows(2).find_map(|pair| {
                let (wait, next) = (pair[0], pair[1]);
                let ended = is_wait(wait.0) && !is_wait(next.0) && next.0 != Stage::MediaTransfer;
                ended.then_some(wait.2)
            });
            if let Some(found) = found {
                let angle = drive.revolutions(found).rem_euclid(1.0);
                let slots = f64::from(request.slots);
                let ahead = (f64::from(request.slot) - angle * slots).rem_euclid(slots);
                leads.push(ahead.round() % slots);
            }
        }
        self.searching = leads.len() as f64 / requests.len().max(1) as f64;
        self.lead_slots = middle(&mut leads);
    }

    /// What all programs booked to a stage, for as many bytes as they had moved.
    pub(super) fn booked(&self, stage: Stage) -> f64 {
        self.booked[stage.index()]
    }

    /// What all requests spent in a stage.
    pub(super) fn requested(&self, stage: Stage) -> f64 {
        self.requested[stage.index()]
    }

    /// What a stage takes in the requests that have it.
    pub(super) fn usual(&self, stage: Stage) -> Option<f64> {
        self.usual.get(&stage).copied()
    }

    /// All requests.
    pub(super) fn count(&self) -> f64 {
        self.requests.values().sum()
    }
}

/// Who does a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Worker {
    /// A program, in its own code or in the kernel.
    Program,
    /// A handler of an interrupt.
    Handler,
    /// A request, wherever it was.
    Hardware,
}

/// Work shorter than this does not tell how much it was slowed.
const SLOWED_NS: u64 = 50_000;

/// What memory contention adds at most to what programs do: as data moves over
/// all of it. Nearly the most, for what came in between may have slowed more.
fn contention(trace: &Trace) -> Option<f64> {
    let mut shares = Vec::new();
    for process in &trace.processes {
        let parts: Vec<_> = process.parts().collect();
        for pair in parts.windows(2) {
            let (work, lost) = (pair[0], pair[1]);
            let ns = work.2.0 - work.1.0;
            if lost.0 == Stage::MemoryContention && is_of_processor(work.0) && ns > SLOWED_NS {
                shares.push((lost.2.0 - lost.1.0) as f64 / ns as f64);
            }
        }
    }
    shares.sort_by(f64::total_cmp);
    shares.get(shares.len() * 9 / 10).copied()
}

/// The clock: how long most interruptions of a program are, and how often it
/// comes in a second, from what the processor did for nobody.
fn clock(trace: &Trace, measures: &Measures) -> Option<(f64, f64)> {
    let pieces = measures.pieces.get(&(Worker::Program, Stage::Interrupt))?;
    let tick = most_frequent(pieces)? as f64;
    let (first, last) = (trace.busy.first()?, trace.busy.last()?);
    let busy = last.processor.since(first.processor).0 as f64;
    let handlers = last.handlers.since(first.handlers).0 as f64;
    let elapsed = last.at.since(first.at).0 as f64;
    let own: f64 = trace
        .handlers
        .iter()
        .filter(|work| work.from >= first.at && work.until <= last.at)
        .map(|work| (work.until.0 - work.from.0) as f64)
        .sum();
    (busy > 0.0 && elapsed > 0.0).then(|| (tick, (handlers - own).max(0.0) / tick / elapsed * 1e9))
}

/// The most frequent of lengths that are in order.
fn most_frequent(lengths: &[u64]) -> Option<u64> {
    let runs = lengths.chunk_by(|one, other| one == other);
    runs.max_by_key(|run| run.len()).map(|run| run[0])
}

/// The most requests that were under way at once.
fn most_at_once(requests: &[&TracedRequest]) -> usize {
    let mut ends: Vec<(u64, i64)> = Vec::new();
    for request in requests {
        ends.push((request.issued.0, 1));
        ends.push((request.completed().0, -1));
    }
    ends.sort_unstable();
    let at_once = ends.iter().scan(0, |count, (_, change)| {
        *count += change;
        Some(*count)
    });
    at_once.max().unwrap_or(0) as usize
}

fn is_wait(stage: Stage) -> bool {
    matches!(stage, Stage::RotationalLatency | Stage::MissedRevolution(_))
}

fn media_end(request: &TracedRequest) -> Option<u64> {
    let media = request
        .parts()
        .filter(|(stage, ..)| *stage == Stage::MediaTransfer);
    media.map(|(.., stop)| stop.0).last()
}

fn middle(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
