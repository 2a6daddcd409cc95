//! What the buffers of disks answer, take and hold.

use super::accesses::moves_arm;
use diskperf_timeline::trace::{ArmWork, Purpose, TracedRequest};
use diskperf_timeline::{Stage, Trace};
use std::collections::BTreeMap;

/// How many of some requests did something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Of {
    did: u64,
    all: u64,
}

impl Of {
    fn count(&mut self, did: bool) {
        self.all += 1;
        self.did += u64::from(did);
    }

    pub(in super::super) fn share(self) -> f64 {
        self.did as f64 / self.all.max(1) as f64
    }

    /// By how much the shares differ, if that is no chance.
    pub(super) fn differs_from(self, other: Self, deviations: f64) -> Option<f64> {
        if self.all.min(other.all) < super::FEWEST as u64 {
            return None;
        }
        let share = (self.did + other.did) as f64 / (self.all + other.all) as f64;
        let of_counts = 1.0 / self.all as f64 + 1.0 / other.all as f64;
        let deviation = (share * (1.0 - share) * of_counts).sqrt();
        let more = (self.share() - other.share()).abs();
        (more > deviations * deviation && more > 0.0).then_some(more)
    }
}

/// What they did.
#[derive(Default)]
pub(in super::super) struct Buffers {
    /// Reads, and those that needed no work of the arm for them.
    pub(super) reads: Of,
    /// Writes, and those that were done before they were on the medium.
    pub(super) writes: Of,
    /// Reads, and those whose sectors were all there when they came.
    pub(super) at_once: Of,
    /// Writes, and those that waited for room.
    pub(super) crowded: Of,
    /// Bytes that waited to be written, at most, of those that came within the elapsed time.
    pub(super) most_held: u64,
    /// Bytes that were written of them at once, at most.
    pub(super) most_destaged: u64,
    /// What the link takes for as many sectors, out of the buffer and into it: the shortest,
    /// since others may be on it.
    pub(super) crossings: BTreeMap<(bool, u32), u64>,
    /// What the firmware took for commands that the arm moved for, and for others, in order.
    commands: [Vec<u64>; 2],
}

impl Buffers {
    pub(in super::super) fn of(trace: &Trace, requests: &[&TracedRequest]) -> Self {
        let mut found = Self::default();
        let of_disks = |one: &&&TracedRequest| trace.drives[one.drive as usize].has_link;
        for one in requests.iter().filter(of_disks) {
            let moves = moves_arm(one);
            let has = |stage| one.spans.iter().any(|span| span.stage == stage);
            match one.purpose {
                Purpose::Read | Purpose::ReadAhead => {
                    found.reads.count(!moves);
                    found.at_once.count(has(Stage::CacheHit));
                }
                Purpose::Write | Purpose::WriteBehind => {
                    found.writes.count(!moves);
                    found.crowded.count(!moves && has(Stage::Destage));
                }
            }
            let writes = matches!(one.purpose, Purpose::Write | Purpose::WriteBehind);
            for (stage, from, until) in one.parts() {
                // Of other requests, data cross while sectors pass.
                if stage == Stage::CacheHit || (writes && !moves && stage == Stage::BusTransfer) {
                    let takes = until.0 - from.0;
                    let known = found
                        .crossings
                        .entry((writes, one.sectors))
                        .or_insert(takes);
                    *known = takes.min(*known);
                }
            }
            let command = one.parts().filter(|part| part.0 == Stage::Command);
            let took = command.map(|(_, from, until)| until.0 - from.0).sum();
            found.commands[usize::from(moves)].push(took);
        }
        found.hold(trace, requests);
        found
            .commands
            .iter_mut()
            .for_each(|all| all.sort_unstable());
        found
    }

    /// How much waits to be written: of what comes until it is on the medium, or until the
    /// end. What was there before is not seen, but after some turns of it hardly any is left.
    fn hold(&mut self, trace: &Trace, requests: &[&TracedRequest]) {
        let bytes = |drive: u32, sectors: u32| {
            u64::from(sectors) * u64::from(trace.drives[drive as usize].sector_bytes)
        };
        let mut written: BTreeMap<(u32, u64), (u64, u64)> = BTreeMap::new();
        for arm in trace.arms.iter().filter(|arm| arm.work == ArmWork::Destage) {
            self.most_destaged = self.most_destaged.max(bytes(arm.drive, arm.sectors));
            let end = arm.sector + u64::from(arm.sectors);
            written.insert((arm.drive, arm.sector), (end, arm.until().0));
        }
        let is_early = |one: &&&TracedRequest| {
            let has_buffer = trace.drives[one.drive as usize].has_link;
            has_buffer && one.purpose == Purpose::Write && !moves_arm(one)
        };
        // What is written again meanwhile waits once.
        let mut came: BTreeMap<(u32, u64), (u64, u64)> = BTreeMap::new();
        for one in requests.iter().filter(is_early) {
            let at = (one.drive, one.sector);
            let of = (one.completed().0, bytes(one.drive, one.sectors));
            came.entry(at).or_insert(of);
        }
        let mut moments: Vec<(u64, i64)> = Vec::new();
        for (at, (from, bytes)) in came {
            let below = written.range(..=at).next_back();
            let own = below.filter(|(of, (end, _))| of.0 == at.0 && at.1 < *end);
            let until = own
                .map(|(_, (_, until))| *until)
                .filter(|until| *until >= from);
            moments.push((from, bytes as i64));
            moments.extend(until.map(|until| (until, -(bytes as i64))));
        }
        moments.sort_unstable();
        let mut held = 0;
        for (_, more) in moments {
            held += more;
            self.most_held = self.most_held.max(held.max(0) as u64);
        }
    }

    /// What the firmware took for a command that the arm moved for, or for another.
    pub(super) fn commands(&self, moves: bool) -> &[u64] {
        &self.commands[usize::from(moves)]
    }
}
