//! A power cut at every event of random workloads on random drives: what was flushed or
//! forced survives, with a protected buffer all that was acknowledged, and the drive goes on
//! (facts, flash drives, expectation 42).

use super::ledger::drawn;
use super::*;
use diskperf_device::RequestId;
use diskperf_sim::RandomStream;

/// Of each, a workload on a drive that is drawn.
const WORKLOADS: u64 = 1000;
/// The tests that share them, to run side by side.
const PARTS: u64 = 4;
const REQUESTS: u32 = 60;

/// What a sector may be found with: a version, or nothing.
type Content = Option<u64>;

/// A request that is not done.
#[derive(Clone)]
struct Asked {
    operation: Operation,
    sectors: std::ops::Range<u64>,
    /// Of a flush: of each sector what was acknowledged last when it was asked for.
    floors: Vec<usize>,
}

/// The host, and what it may rely on.
#[derive(Clone)]
struct Client {
    host: Drive,
    protected: bool,
    asked: Vec<(RequestId, Asked)>,
    /// Of each sector what was acknowledged, in order; what may come back is what there is
    /// from `floors` on.
    acknowledged: Vec<Vec<Content>>,
    floors: Vec<usize>,
}

impl Client {
    fn new(specification: &FlashSpecification, seed: u64) -> Self {
        let host = new_drive(specification, seed);
        let sectors = 0..host.flash().sectors();
        let acknowledged: Vec<_> = sectors
            .map(|sector| vec![host.flash().version_of_sector(sector)])
            .collect();
        Self {
            host,
            protected: specification.buffer.is_some_and(|of| of.is_power_protected),
            asked: Vec::new(),
            floors: vec![0; acknowledged.len()],
            acknowledged,
        }
    }

    /// Asks for something that does not overlap what is under way.
    fn ask(&mut self, draws: &mut RandomStream) {
        if !self.host.flash().can_accept_request() {
            return;
        }
        let operation = match draws.draw_below(20) {
            0..=3 => READ,
            4..=11 => WRITE,
            12..=13 => FUA,
            14..=16 => Operation::Flush,
            _ => Operation::Discard,
        };
        let all = self.acknowledged.len() as u64;
        let count = match operation {
            Operation::Flush => 0,
            _ => 1 + draws.draw_below(12).min(all - 1),
        };
        // Few sectors are written again and again.
        let first = draws.draw_below(all - count + 1) >> draws.draw_below(3);
        let sectors = first..first + count;
        let overlaps =
            |of: &Asked| of.sectors.start < sectors.end && sectors.start < of.sectors.end;
        if self.asked.iter().any(|(_, of)| overlaps(of)) {
            return;
        }
        let floors = match operation {
            Operation::Flush => self.acknowledged.iter().map(|of| of.len() - 1).collect(),
            _ => Vec::new(),
        };
        let id = self.host.ask(operation, first, count as u32);
        let asked = Asked {
            operation,
            sectors,
            floors,
        };
        self.asked.push((id, asked));
    }

    /// Takes what is done.
    fn acknowledge(&mut self) {
        while let Some(Completion { id, .. }) = self.host.take_done() {
            let place = self.asked.iter().position(|(of, _)| *of == id);
            let (_, asked) = self.asked.remove(place.expect("it was asked for"));
            for (floor, flushed) in self.floors.iter_mut().zip(asked.floors) {
                *floor = (*floor).max(flushed);
            }
            if matches!(asked.operation, READ | Operation::Flush) {
                continue;
            }
            for sector in asked.sectors {
                let content = self.host.flash().version_of_sector(sector);
                let is_trim = asked.operation == Operation::Discard;
                assert_eq!(content.is_none(), is_trim, "sector {sector}");
                let acknowledged = &mut self.acknowledged[sector as usize];
                acknowledged.push(content);
                let is_forced = asked.operation == FUA;
                if self.protected || is_forced {
                    self.floors[sector as usize] = acknowledged.len() - 1;
                }
            }
        }
    }

    /// The power fails; what every sector has then is what it may have.
    fn cut(&mut self) -> Result<u64, String> {
        self.host.power_cut();
        let flash = self.host.flash();
        flash
            .translation_layer()
            .check_invariants()
            .map_err(|broken| broken.to_string())?;
        let mut back = 0;
        for sector in 0..flash.sectors() {
            let is = flash.version_of_sector(sector);
            let of = &mut self.acknowledged[sector as usize];
            let floor = &mut self.floors[sector as usize];
            let under_way = self.asked.iter().any(|(_, asked)| {
                let may = match asked.operation {
                    Operation::Discard => is.is_none(),
                    Operation::Write { .. } => {
                        let newest = of.iter().flatten().max();
                        is.is_some_and(|is| is != u64::MAX && Some(&is) > newest)
                    }
                    _ => false,
                };
                may && asked.sectors.contains(&sector)
            });
            if !of[*floor..].contains(&is) && !under_way {
                let may_be = &of[*floor..];
                return Err(format!("sector {sector} has {is:?}, may have {may_be:?}"));
            }
            back += u64::from(of.last() != Some(&is) && !under_way);
            (*of, *floor) = (vec![is], 0);
        }
        self.asked.clear();
        Ok(back)
    }
}

/// What a workload saw.
#[derive(Default)]
struct Seen {
    cuts: u64,
    /// Sectors with older data than was acknowledged, on drives that are not protected.
    back: u64,
    erases: u64,
}

fn workload(seed: u64, seen: &mut Seen) {
    let mut draws = RandomStreams::new(seed).named_stream("power cuts");
    let mut specification = drawn(&mut draws);
    specification.translation.models_power_cuts = true;
    // Small, and full: few writes make it collect.
    specification.geometry.word_lines_per_block = 2 + draws.draw_below(2) as u32;
    let units = specification.superblock_units();
    specification.translation.logical_units =
        units * (specification.geometry.blocks_per_plane - 10);
    specification.translation.filled_share = specification.translation.logical_units;
    let mut client = Client::new(&specification, seed);
    let fail = |why: String| panic!("seed {seed}: {why}");
    let mut asked = 0;
    while asked < REQUESTS || !client.asked.is_empty() {
        if asked < REQUESTS && draws.draw_with_probability(0.4) {
            client.ask(&mut draws);
            asked += 1;
        }
        if !client.host.step() {
            // What is left waits for nothing that comes.
            assert!(
                client.asked.is_empty(),
                "seed {seed}: requests never end: {}",
                client.host.flash().describe_waiting()
            );
            let pause = us(draws.draw_below(200) as f64);
            client.host.run_for(pause);
        }
        client.acknowledge();
        let mut other = client.clone();
        seen.back += other.cut().unwrap_or_else(fail);
        seen.cuts += 1;
        // Now and then it really happens, and the drive goes on with what is left.
        if draws.draw_below(150) == 0 {
            client.cut().unwrap_or_else(fail);
        }
    }
    client.host.rest();
    client.acknowledge();
    client.cut().unwrap_or_else(fail);
    seen.erases += client.host.flash().traffic().erase_count;
}

fn part(number: u64) {
    let mut seen = Seen::default();
    for seed in (0..WORKLOADS).filter(|seed| seed % PARTS == number) {
        workload(SEED + seed, &mut seen);
    }
    let Seen { cuts, back, erases } = seen;
    println!("{cuts} power cuts, {back} sectors went back, {erases} erases, seeds from {SEED}");
    assert!(cuts > 50 * WORKLOADS / PARTS, "hardly an event");
    assert!(back > 100, "nothing is lost: no buffer is volatile");
    assert!(erases > WORKLOADS / PARTS, "hardly anything was collected");
}

#[test]
fn what_is_durable_survives_a_cut_at_every_event_a() {
    part(0);
}

#[test]
fn what_is_durable_survives_a_cut_at_every_event_b() {
    part(1);
}

#[test]
fn what_is_durable_survives_a_cut_at_every_event_c() {
    part(2);
}

#[test]
fn what_is_durable_survives_a_cut_at_every_event_d() {
    part(3);
}

/// A protected drive has all; another one only what a flush was for.
#[test]
fn a_flush_is_what_makes_a_write_durable() {
    for (protected, flushed) in [(false, false), (false, true), (true, false)] {
        let mut specification = toy();
        specification.buffer = buffered(8, protected);
        specification.translation.models_power_cuts = true;
        let mut host = new_host(&specification);
        host.one(WRITE, 3, 1);
        let written = host.flash().version_of_sector(3);
        assert_eq!(written, Some(1));
        if flushed {
            host.one(Operation::Flush, 0, 0);
        }
        let recovery = host.power_cut();
        let survives = protected || flushed;
        assert_eq!(
            host.flash().version_of_sector(3),
            written.filter(|_| survives)
        );
        assert!(recovery.expect("a flash drive").ready_at >= host.now());
        // It goes on.
        host.one(WRITE, 3, 1);
        host.one(Operation::Flush, 0, 0);
        host.power_cut();
        assert_eq!(host.flash().version_of_sector(3), Some(2));
    }
}

#[test]
fn a_drive_written_in_place_has_no_power_cuts() {
    let mut specification = toy();
    specification.writes_in_place = true;
    specification.translation.models_power_cuts = true;
    let error = specification.validate().expect_err("it is refused");
    assert!(error.to_string().contains("in place"), "{error}");
}
