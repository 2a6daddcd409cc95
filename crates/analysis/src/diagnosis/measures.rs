//! What can be measured of a run that is a cause and not a consequence.

use crate::explanation::window;
use diskperf_timeline::trace::{Purpose, TracedRequest};
use diskperf_timeline::{Stage, Trace};
use std::collections::BTreeMap;

/// The measures of one run.
pub(super) struct Measures {
    /// From the first start of a program to the last end.
    pub(super) elapsed_ns: f64,
    /// What all programs booked, by [`Stage::index`].
    booked: [f64; Stage::COUNT],
    /// What handlers took, by stage: how often, and for how long.
    handled: BTreeMap<Stage, (f64, f64)>,
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
    /// Sectors of each request that began there, in the order of completion.
    pub(super) sizes: BTreeMap<(u32, u64), u32>,
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
        let mut measures = Self {
            elapsed_ns: until.since(from).0 as f64,
            booked: [0.0; Stage::COUNT],
            handled: BTreeMap::new(),
            requested: [0.0; Stage::COUNT],
            bytes: 0.0,
            requests: BTreeMap::new(),
            usual: BTreeMap::new(),
            seeks: BTreeMap::new(),
            places: BTreeMap::new(),
            sizes: BTreeMap::new(),
            lead_slots: None,
            searching: 0.0,
            sector_ns: None,
        };
        for process in &trace.processes {
            for (stage, start, stop) in process.parts() {
                measures.booked[stage.index()] += (stop.0 - start.0) as f64;
            }
        }
        let handlers = trace.handlers.iter();
        for work in handlers.filter(|work| work.from >= from && work.until <= until) {
            let (count, ns) = measures.handled.entry(work.stage).or_default();
            *count += 1.0;
            *ns += (work.until.0 - work.from.0) as f64;
        }
        measures.look_at(trace, &requests);
        measures.follow_arms(trace, &requests);
        measures.follow_searches(trace, &requests);
        measures
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
            self.sizes.insert(at, request.sectors);
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

    /// What handlers take in a stage each time.
    pub(super) fn handled(&self, stage: Stage) -> Option<f64> {
        let (count, ns) = self.handled.get(&stage)?;
        Some(ns / count)
    }

    /// All requests.
    pub(super) fn count(&self) -> f64 {
        self.requests.values().sum()
    }
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
