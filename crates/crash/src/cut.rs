//! Power cuts: their instants, and the fates of the writes that are at risk.

use crate::{Entry, Log, RequestKind};
use diskperf_sim::{RandomStream, RandomStreams};
use std::collections::{BTreeMap, BTreeSet};

/// Outcome of a power cut for one write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// All units are on the medium.
    Kept,
    /// No unit is on the medium.
    Lost,
    /// Some units are on the medium: one value for each unit of the write.
    Torn(Box<[bool]>),
    /// The drive was writing the sector of the medium with this unit, and the sector is unreadable.
    /// Earlier units are on the medium, later ones are not.
    Unreadable {
        /// Unit of the drive.
        unit: u64,
    },
}

/// Power cut, with the fate of each write that is at risk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Number of log entries that happened before the cut.
    pub position: usize,
    /// Fates by request index. A write at risk without an entry is lost.
    pub fates: BTreeMap<usize, Fate>,
}

impl Cut {
    /// Creates a cut that loses every write at risk.
    pub fn losing_all(position: usize) -> Self {
        Self {
            position,
            fates: BTreeMap::new(),
        }
    }

    /// Returns the fate of a write that is at risk.
    pub fn fate(&self, request: usize) -> &Fate {
        self.fates.get(&request).unwrap_or(&Fate::Lost)
    }

    /// Reports whether a unit of a write at risk is on the medium.
    pub(crate) fn keeps(&self, log: &Log, request: usize, unit: u64) -> bool {
        match self.fate(request) {
            Fate::Kept => true,
            Fate::Lost => false,
            Fate::Torn(units) => {
                let at = unit - log.requests[request].units.start;
                units.get(at as usize).copied().unwrap_or(false)
            }
            Fate::Unreadable { unit: written } => unit < log.medium_sector(*written).start,
        }
    }

    /// Returns the units that are unreadable until they are written, in order.
    pub fn unreadable(&self, log: &Log) -> BTreeSet<u64> {
        let sectors = self.fates.values().filter_map(|fate| match fate {
            Fate::Unreadable { unit } => Some(log.medium_sector(*unit)),
            _ => None,
        });
        sectors.flatten().collect()
    }

    /// Returns the writes at risk that are lost or torn, in order of completion.
    pub fn lost(&self, log: &Log) -> Vec<usize> {
        let at_risk = log.at_risk(self.position).into_iter();
        at_risk
            .filter(|request| *self.fate(*request) != Fate::Kept)
            .collect()
    }
}

/// Choice of what a cut loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutPolicy {
    /// Every write at risk is lost.
    None,
    /// Every completed write is kept, and none in flight.
    All,
    /// The cache destaged in order of completion up to some write, which is torn.
    Likely,
    /// Every write of several units is torn, and every other write is kept.
    Torn,
    /// A sector that some write was writing is unreadable. Every other completed write is kept.
    Unreadable,
    /// Each write is kept, lost or torn at random, by a seed of its own.
    Random {
        /// Seed of the fates.
        seed: u64,
    },
    /// One cut of each other kind, and two random ones.
    Each,
}

impl CutPolicy {
    /// Returns the distinct cuts before an entry. `seed` decides where the policy has no seed.
    pub fn cuts(self, log: &Log, position: usize, seed: u64) -> Vec<Cut> {
        let at_risk = log.at_risk(position);
        let mut cuts: Vec<Cut> = Vec::new();
        let mut add = |fates: BTreeMap<usize, Fate>| {
            let cut = Cut { position, fates };
            if !cuts.contains(&cut) {
                cuts.push(cut);
            }
        };
        let is_each = self == Self::Each;
        if is_each || self == Self::None {
            add(BTreeMap::new());
        }
        if is_each || self == Self::All {
            add(all_completed(log, position, &at_risk));
        }
        if is_each || self == Self::Likely {
            add(likely(log, &at_risk, &mut stream(seed, position, "likely")));
        }
        if is_each || self == Self::Torn {
            add(all_torn(log, &at_risk, &mut stream(seed, position, "torn")));
        }
        match self {
            Self::Random { seed } => add(random(log, &at_risk, &mut stream(seed, position, "a"))),
            Self::Each => {
                for name in ["a", "b"] {
                    add(random(log, &at_risk, &mut stream(seed, position, name)));
                }
            }
            Self::Unreadable => {
                let mut stream = stream(seed, position, "unreadable");
                add(unreadable(log, position, &at_risk, &mut stream));
            }
            Self::None | Self::All | Self::Likely | Self::Torn => {}
        }
        cuts
    }
}

fn stream(seed: u64, position: usize, name: &str) -> RandomStream {
    RandomStreams::new(seed).named_stream(&format!("cut {position} {name}"))
}

fn torn(log: &Log, request: usize, stream: &mut RandomStream) -> Fate {
    if log.requests[request].is_long_zeroes() {
        return match stream.draw_with_probability(0.5) {
            true => Fate::Kept,
            false => Fate::Lost,
        };
    }
    let units = log.requests[request].units.clone();
    let kept: Box<[bool]> = units.map(|_| stream.draw_with_probability(0.5)).collect();
    match (kept.contains(&true), kept.contains(&false)) {
        (true, false) => Fate::Kept,
        (true, true) => Fate::Torn(kept),
        (false, _) => Fate::Lost,
    }
}

fn insert(fates: &mut BTreeMap<usize, Fate>, request: usize, fate: Fate) {
    // A lost write has no entry, so that equal cuts compare equal.
    if fate != Fate::Lost {
        fates.insert(request, fate);
    }
}

fn all_completed(log: &Log, position: usize, at_risk: &[usize]) -> BTreeMap<usize, Fate> {
    let completed = |request: &usize| log.requests[*request].is_completed_at(position);
    let kept = at_risk.iter().copied().filter(completed);
    kept.map(|request| (request, Fate::Kept)).collect()
}

fn unreadable(
    log: &Log,
    position: usize,
    at_risk: &[usize],
    stream: &mut RandomStream,
) -> BTreeMap<usize, Fate> {
    let mut fates = all_completed(log, position, at_risk);
    let is_write = |request: &&usize| log.requests[**request].kind == RequestKind::Write;
    let writes: Vec<usize> = at_risk.iter().filter(is_write).copied().collect();
    let chosen = stream.draw_below(writes.len().max(1) as u64) as usize;
    if let Some(&request) = writes.get(chosen) {
        let units = &log.requests[request].units;
        let unit = units.start + stream.draw_below((units.end - units.start).max(1));
        fates.insert(request, Fate::Unreadable { unit });
    }
    fates
}

fn likely(log: &Log, at_risk: &[usize], stream: &mut RandomStream) -> BTreeMap<usize, Fate> {
    let mut fates = BTreeMap::new();
    let kept = stream.draw_below(at_risk.len() as u64 + 1) as usize;
    for &request in &at_risk[..kept] {
        insert(&mut fates, request, Fate::Kept);
    }
    if let Some(&request) = at_risk.get(kept) {
        let fate = torn(log, request, stream);
        insert(&mut fates, request, fate);
    }
    fates
}

fn all_torn(log: &Log, at_risk: &[usize], stream: &mut RandomStream) -> BTreeMap<usize, Fate> {
    let mut fates = BTreeMap::new();
    for &request in at_risk {
        let units = log.requests[request].units.clone();
        let fate = match torn(log, request, stream) {
            torn @ Fate::Torn(_) => torn,
            _ if units.end - units.start < 2 => Fate::Kept,
            _ if log.requests[request].is_long_zeroes() => Fate::Kept,
            _ => Fate::Torn(units.clone().map(|at| at == units.start).collect()),
        };
        insert(&mut fates, request, fate);
    }
    fates
}

fn random(log: &Log, at_risk: &[usize], stream: &mut RandomStream) -> BTreeMap<usize, Fate> {
    let mut fates = BTreeMap::new();
    for &request in at_risk {
        let fate = match stream.draw_below(8) {
            0..=2 => Fate::Kept,
            3..=5 => Fate::Lost,
            _ => torn(log, request, stream),
        };
        insert(&mut fates, request, fate);
    }
    fates
}

/// Choice of the instants at which the power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instants {
    /// Before the completion of each flush and each write with force unit access, and at the end
    /// of the workload.
    Each,
    /// Those of [`Self::Each`], and after each mark.
    Marks,
    /// Number of instants: a sample of those of [`Self::Each`], or all of them and others between.
    Count(usize),
    /// Before each entry of the workload, and at its end.
    All,
}

impl Instants {
    /// Returns the instants in ascending order, as positions of cuts.
    pub fn positions(self, log: &Log, seed: u64) -> Vec<usize> {
        let all = log.begin..log.end + 1;
        let boundaries: BTreeSet<usize> = (log.begin..log.end)
            .filter(|&position| match log.entries[position] {
                Entry::Complete(index) => {
                    let request = &log.requests[index];
                    !request.is_change() || request.fua
                }
                _ => false,
            })
            .chain([log.end])
            .collect();
        let marks = log.marks.iter().map(|mark| mark.position + 1);
        let marks = marks.filter(|after| (log.begin..=log.end).contains(after));
        let mut stream = RandomStreams::new(seed).named_stream("instants");
        match self {
            Self::All => all.collect(),
            Self::Each => boundaries.into_iter().collect(),
            Self::Marks => {
                let both: BTreeSet<usize> = marks.chain(boundaries).collect();
                both.into_iter().collect()
            }
            Self::Count(count) if count < boundaries.len() => {
                let mut left: Vec<usize> = boundaries.into_iter().collect();
                while left.len() > count {
                    left.remove(stream.draw_below(left.len() as u64) as usize);
                }
                left
            }
            Self::Count(count) => {
                let mut chosen = boundaries;
                let mut others: Vec<usize> = all.filter(|at| !chosen.contains(at)).collect();
                while chosen.len() < count && !others.is_empty() {
                    let at = stream.draw_below(others.len() as u64) as usize;
                    chosen.insert(others.swap_remove(at));
                }
                chosen.into_iter().collect()
            }
        }
    }
}
