//! A power cut at every event of random workloads keeps what must be kept: what was
//! flushed, or with power-loss protection what was acknowledged; and the drive goes on.

use diskperf_ftl::{
    CollectionStep, DataSeparation, DieAllocation, Features, Ftl, Geometry, JournalWrite,
    Placement, SlcCache, Specification, UnitCopy, VictimPolicy, Writer,
};
use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

const SEED: u64 = 27;
const WORKLOADS: u64 = 1000;
const EVENTS: u32 = 400;
const LOGICAL: u32 = 64;
const JOURNAL_PAGES: u32 = 4;

fn specification(seed: u64) -> Specification {
    let policies = [
        VictimPolicy::Greedy,
        VictimPolicy::OldestFirst,
        VictimPolicy::RandomChoices(2),
        VictimPolicy::CostBenefit,
    ];
    Specification {
        geometry: Geometry {
            superblock_count: 18,
            die_count: 2,
            units_per_program: 3,
            rows_per_superblock: 2,
        },
        logical_units: LOGICAL,
        policy: policies[(seed % 4) as usize],
        separation: if seed & 4 == 0 {
            DataSeparation::MovedApart
        } else {
            DataSeparation::Mixed
        },
        stream_count: 1,
        soft_free_superblocks: 5,
        hard_free_superblocks: 3,
        wear_threshold_erases: (seed & 8 == 0).then_some(4),
        seed,
    }
}

fn features(seed: u64) -> Features {
    Features {
        system_units: JOURNAL_PAGES,
        allocation: if seed & 16 == 0 {
            DieAllocation::RoundRobin
        } else {
            DieAllocation::PreferredDie
        },
        slc_cache: (seed & 32 == 0).then_some(SlcCache {
            bits_per_cell: 3,
            fixed_superblocks: 1,
            dynamic_superblocks: 2,
        }),
        parity_stripe_programs: None,
        tracks_power_cuts: true,
        anonymous_precondition: false,
    }
}

/// What a flush waits for.
#[derive(Clone)]
struct Flush {
    /// For each logical unit, its newest version when the flush was submitted.
    floors: Vec<usize>,
    /// Programs before it, once all that was begun is padded.
    programs: Option<Vec<Placement>>,
    journal: Option<(JournalWrite, Placement)>,
}

/// A device with a volatile buffer. A version is 0 when the unit is unmapped.
#[derive(Clone)]
struct Device {
    ftl: Ftl,
    /// The version at each physical unit, and whether it has been programmed.
    contents: Vec<u64>,
    programmed: Vec<bool>,
    /// Every version that each logical unit may have, the oldest that may be is first.
    versions: Vec<Vec<u64>>,
    version: u64,
    /// Full program units of the host that are being programmed.
    programs: Vec<Placement>,
    copies: Vec<UnitCopy>,
    moves: Vec<(UnitCopy, Placement)>,
    flush: Option<Flush>,
    pages: u32,
}

impl Device {
    fn new(seed: u64) -> Self {
        Self {
            ftl: Ftl::with_features(specification(seed), features(seed)).unwrap(),
            contents: vec![0; 18 * 12],
            programmed: vec![false; 18 * 12],
            versions: vec![vec![0]; LOGICAL as usize],
            version: 0,
            programs: Vec::new(),
            copies: Vec::new(),
            moves: Vec::new(),
            flush: None,
            pages: 0,
        }
    }

    fn event(&mut self, random: &mut Pcg64Mcg) {
        match random.next_u64() % 16 {
            0..=6 => self.write(random),
            7 => self.trim(random),
            8..=10 => self.program(random),
            11..=14 => self.collect(random),
            _ => self.flush(),
        }
    }

    fn write(&mut self, random: &mut Pcg64Mcg) {
        let logical = (random.next_u64() % u64::from(LOGICAL)) as u32;
        self.ftl.prefer_die((random.next_u64() % 2) as u32);
        let Ok(placement) = self.ftl.write(logical, 0) else {
            // Whoever waits for an erase lets go of what it holds.
            self.pad();
            return;
        };
        self.version += 1;
        self.contents[placement.physical as usize] = self.version;
        self.versions[logical as usize].push(self.version);
        self.programs
            .extend(placement.completes_program.then_some(placement));
    }

    fn trim(&mut self, random: &mut Pcg64Mcg) {
        let logical = (random.next_u64() % u64::from(LOGICAL)) as u32;
        if self.ftl.trim(logical) {
            self.versions[logical as usize].push(0);
        }
    }

    fn pad(&mut self) {
        for writer in [Writer::Host(0), Writer::SlcCache, Writer::LayerOwn] {
            self.programs.extend(self.ftl.pad_program_of_writer(writer));
        }
    }

    /// Dies finish in any order.
    fn program(&mut self, random: &mut Pcg64Mcg) {
        if !self.programs.is_empty() {
            let index = random.next_u64() as usize % self.programs.len();
            let done = self.programs.swap_remove(index);
            self.programmed(done);
            let before = self
                .flush
                .as_mut()
                .and_then(|flush| flush.programs.as_mut());
            before
                .into_iter()
                .for_each(|it| it.retain(|it| *it != done));
        }
    }

    fn programmed(&mut self, done: Placement) {
        let units = if self.ftl.is_slc_superblock(done.superblock) {
            1
        } else {
            3
        };
        let first = (done.physical / units * units) as usize;
        self.programmed[first..first + units as usize].fill(true);
        self.ftl.complete_program(done);
    }

    fn collect(&mut self, random: &mut Pcg64Mcg) {
        if !self.copies.is_empty() {
            let copy = self.copies.remove(0);
            if let Some(placement) = self.ftl.place_copy(copy) {
                self.contents[placement.physical as usize] =
                    self.contents[copy.source_physical as usize];
                self.moves.push((copy, placement));
                // The program unit may hold what the host wrote, too.
                self.programs
                    .extend(placement.completes_program.then_some(placement));
            }
        } else if !self.moves.is_empty() {
            let index = random.next_u64() as usize % self.moves.len();
            let (copy, placement) = self.moves.swap_remove(index);
            self.programmed[placement.physical as usize] = true;
            self.ftl.complete_copy(copy, placement);
        } else {
            self.advance(random);
        }
    }

    fn advance(&mut self, random: &mut Pcg64Mcg) {
        match self.ftl.next_collection_step() {
            CollectionStep::Idle if self.ftl.wants_collection() => {
                let _ = self.ftl.begin_collection();
            }
            CollectionStep::Idle => drop(self.ftl.begin_folding()),
            CollectionStep::CopyUnits => {
                let most = 1 + (random.next_u64() % 8) as u32;
                self.ftl.next_copies(most, &mut self.copies);
            }
            CollectionStep::AwaitPrograms => {
                self.pad();
                self.flush();
            }
            CollectionStep::EraseVictim(superblock) => {
                let first = superblock as usize * 12;
                self.contents[first..first + 12].fill(0);
                self.programmed[first..first + 12].fill(false);
                self.ftl.complete_erase();
            }
        }
    }

    /// One step of a flush: pad, wait for programs, write a journal, wait for it.
    fn flush(&mut self) {
        let Some(flush) = &mut self.flush else {
            let floors = self.versions.iter().map(|it| it.len() - 1).collect();
            self.flush = Some(Flush {
                floors,
                programs: None,
                journal: None,
            });
            return;
        };
        let Some(programs) = &flush.programs else {
            self.pad();
            if !self.ftl.has_partial_program(Writer::Host(0)) {
                let programs = self.programs.clone();
                self.flush.as_mut().expect("it is under way").programs = Some(programs);
            }
            return;
        };
        if !programs.is_empty() {
            return;
        }
        let Some((journal, page)) = flush.journal else {
            let journal = self.ftl.begin_journal();
            self.pages += 1;
            if let Ok(page) = self.ftl.write_system(self.pages % JOURNAL_PAGES) {
                let page = self
                    .ftl
                    .pad_program_of_writer(Writer::LayerOwn)
                    .unwrap_or(page);
                flush.journal = Some((journal, page));
            }
            return;
        };
        self.programmed(page);
        self.ftl.complete_journal(journal);
        let floors = self.flush.take().expect("it is under way").floors;
        for (versions, floor) in self.versions.iter_mut().zip(floors) {
            versions.drain(..floor);
        }
    }

    /// Cuts the power; every unit must then have a version that it may have.
    fn cut(&mut self, protection: bool) -> Result<(), String> {
        let before: Vec<u64> = (0..LOGICAL)
            .map(|logical| self.version_of(logical))
            .collect();
        for (version, programmed) in self.contents.iter_mut().zip(&self.programmed) {
            if !programmed && !protection {
                *version = u64::MAX;
            }
        }
        let recovered = self.ftl.recover_from_power_cut(protection);
        self.ftl
            .check_invariants()
            .map_err(|broken| broken.to_string())?;
        let mut different = 0;
        for (logical, &was) in (0..).zip(&before) {
            let is = self.version_of(logical);
            different += u64::from(is != was);
            let newest = self.versions[logical as usize].last() == Some(&is);
            let allowed = newest || !protection && self.versions[logical as usize].contains(&is);
            if !allowed {
                let may_be = &self.versions[logical as usize];
                return Err(format!(
                    "unit {logical} at {:?} has version {is}, may have {may_be:?}, protection {protection}",
                    self.ftl.read(logical)
                ));
            }
            self.versions[logical as usize] = vec![is];
        }
        let counted = recovered.lost_writes + recovered.lost_trims;
        // A journal page may be lost too.
        if counted < different || counted > different + u64::from(JOURNAL_PAGES) {
            return Err(format!("{different} units changed, {recovered:?}"));
        }
        self.programmed.fill(false);
        for (programmed, version) in self.programmed.iter_mut().zip(&self.contents) {
            *programmed = *version != u64::MAX;
        }
        self.programs.clear();
        self.copies.clear();
        self.moves.clear();
        self.flush = None;
        Ok(())
    }

    fn version_of(&self, logical: u32) -> u64 {
        let physical = self.ftl.read(logical);
        physical.map_or(0, |physical| self.contents[physical as usize])
    }
}

#[test]
pub(crate) fn a_power_cut_at_every_event_keeps_what_must_be_kept() {
    let (mut lost, mut erases) = (0, 0);
    for workload in 0..WORKLOADS {
        let seed = SEED + workload;
        let mut device = Device::new(seed);
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let fail = |event: u32, why: String| panic!("seed {seed}, event {event}: {why}");
        for event in 0..EVENTS {
            device.event(&mut random);
            for protection in [false, true] {
                let mut other = device.clone();
                other.cut(protection).unwrap_or_else(|why| fail(event, why));
            }
            // Now and then it really happens, and the drive goes on with what is left.
            if random.next_u64() % 70 == 0 {
                let before = device.version;
                device.cut(false).unwrap_or_else(|why| fail(event, why));
                let is = (0..LOGICAL).map(|it| device.version_of(it)).max();
                lost += u64::from(is < Some(before));
            }
        }
        erases += device.ftl.traffic().erase_count;
    }
    println!("{lost} cuts lost the newest version, {erases} erases, seed {SEED}");
    assert!(lost > 100, "cuts lose nothing: the buffer is not volatile");
    assert!(erases > WORKLOADS, "nothing was collected");
}

#[test]
fn a_flush_twice_has_nothing_to_journal() {
    let mut device = Device::new(SEED);
    let mut random = Pcg64Mcg::seed_from_u64(SEED);
    for _ in 0..20 {
        device.write(&mut random);
    }
    assert!(device.ftl.unjournalled_unit_count() > 0);
    device.flush();
    device.flush();
    while !device.programs.is_empty() {
        device.program(&mut random);
    }
    device.flush();
    device.flush();
    assert!(device.flush.is_none());
    // The journal's own page is the change that is left.
    assert_eq!(device.ftl.unjournalled_unit_count(), 1);
}

/// A scan takes open superblocks x program units, not the drive.
#[test]
pub(crate) fn a_scan_looks_at_what_open_superblocks_have() {
    let mut device = Device::new(SEED);
    let mut random = Pcg64Mcg::seed_from_u64(SEED);
    for _ in 0..EVENTS {
        device.event(&mut random);
    }
    let scanned = device.ftl.recover_from_power_cut(false).scanned_units;
    println!("{scanned} program units scanned, seed {SEED}");
    // Host, collection, wear levelling, the layer's own, the cache: 4 programs each.
    assert!(
        (1..=5 * 4).contains(&scanned),
        "{scanned} program units scanned"
    );
    assert_eq!(device.ftl.unjournalled_unit_count(), 0);
}
