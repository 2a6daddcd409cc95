//! Random loads against a plain model, which keeps a log of all that happened and works out
//! from the rules' own words what each sector may have. These fail when a flush covers too
//! much or too little, when force unit access keeps older data, or when a power cut leaves
//! what it must not, or cannot leave what it may.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const SECTORS: u64 = 8;
const DISCARD: Operation = Operation::Discard;
const FLUSH: Operation = Operation::Flush;
const FUA: Operation = Operation::Write { fua: true };
const WRITE: Operation = Operation::Write { fua: false };

#[derive(Clone, Debug)]
enum Step {
    Submit(Operation, Range<u64>),
    /// One of those in flight.
    Complete(usize),
    /// Writes survive where this has a bit for their number and sector.
    Cut(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let operation = prop_oneof![
        2 => Just(Operation::Read),
        8 => Just(WRITE),
        2 => Just(FUA),
        3 => Just(FLUSH),
        1 => Just(DISCARD),
        1 => Just(Operation::WriteZeroes),
    ];
    let range = (0..SECTORS, 1..4_u64).prop_map(|(at, count)| at..(at + count).min(SECTORS));
    let step = prop_oneof![
        10 => (operation, range).prop_map(|(operation, range)| Step::Submit(operation, range)),
        9 => any::<usize>().prop_map(Step::Complete),
        1 => any::<u64>().prop_map(Step::Cut),
    ];
    prop::collection::vec(step, 1..120)
}

/// A request of the log, with the moments of its submission and completion.
#[derive(Clone, Debug)]
struct Logged {
    operation: Operation,
    sectors: Range<u64>,
    /// What it writes; none of discards.
    value: Option<u64>,
    submitted: usize,
    completed: Option<usize>,
}

impl Logged {
    fn changes(&self, sector: u64) -> bool {
        !matches!(self.operation, Operation::Read | Operation::Flush)
            && self.sectors.contains(&sector)
    }
}

/// Writes of a sector that completed, in that order.
fn completed(log: &[Logged], sector: u64) -> Vec<&Logged> {
    let mut writes: Vec<&Logged> = log.iter().filter(|of| of.changes(sector)).collect();
    writes.retain(|of| of.completed.is_some());
    writes.sort_by_key(|of| of.completed);
    writes
}

/// The last of the completed writes of a sector that is durable, by its place; none if only
/// what was there at first is.
fn durable(log: &[Logged], sector: u64, cache: WriteCache) -> Option<usize> {
    let writes = completed(log, sector);
    writes.iter().rposition(|write| {
        let is_covered = log.iter().any(|flush| {
            flush.operation == FLUSH
                && flush.completed.is_some()
                && Some(flush.submitted) > write.completed
        });
        cache == WriteCache::Durable || write.operation == FUA || is_covered
    })
}

/// What a sector may have after a power cut.
fn possible(
    log: &[Logged],
    (first, sector): (Option<u64>, u64),
    cache: WriteCache,
) -> BTreeSet<Option<u64>> {
    let writes = completed(log, sector);
    let floor = durable(log, sector, cache);
    let mut may: BTreeSet<Option<u64>> = writes[floor.unwrap_or(0).min(writes.len())..]
        .iter()
        .map(|of| of.value)
        .collect();
    if floor.is_none() {
        may.insert(first);
    }
    let in_flight = log.iter().filter(|of| of.completed.is_none());
    may.extend(in_flight.filter(|of| of.changes(sector)).map(|of| of.value));
    may
}

struct Load {
    contents: Contents<u64>,
    cache: WriteCache,
    log: Vec<Logged>,
    /// Contents of each sector when the log begins.
    first: Vec<Option<u64>>,
    moment: usize,
    writes: u64,
}

impl Load {
    fn new(cache: WriteCache) -> Self {
        Self {
            contents: Contents::new(cache),
            cache,
            log: Vec::new(),
            first: vec![None; SECTORS as usize],
            moment: 0,
            writes: 0,
        }
    }

    fn step(&mut self, step: Step) {
        self.moment += 1;
        match step {
            Step::Submit(operation, sectors) => {
                self.writes += 1;
                let id = RequestId::first_of_slot(self.log.len() as u32);
                let value = self.writes;
                self.contents
                    .submit(id, operation, sectors.clone(), |_| value);
                self.log.push(Logged {
                    operation,
                    sectors,
                    value: matches!(operation, Operation::Write { .. }).then_some(value),
                    submitted: self.moment,
                    completed: None,
                });
            }
            Step::Complete(which) => {
                let in_flight: Vec<usize> = (0..self.log.len())
                    .filter(|place| self.log[*place].completed.is_none())
                    .collect();
                if !in_flight.is_empty() {
                    let place = in_flight[which % in_flight.len()];
                    self.log[place].completed = Some(self.moment);
                    self.contents
                        .complete(RequestId::first_of_slot(place as u32));
                }
            }
            Step::Cut(bits) => self.cut(bits),
        }
        self.check();
    }

    /// What is written, durable and possible is what the log says.
    fn check(&self) {
        for sector in 0..SECTORS {
            let first = self.first[sector as usize];
            let writes = completed(&self.log, sector);
            let newest = writes.last().map_or(first, |of| of.value);
            assert_eq!(self.contents.read(sector).copied(), newest);
            let place = durable(&self.log, sector, self.cache);
            let value = place.map_or(first, |place| writes[place].value);
            assert_eq!(self.contents.durable(sector).copied(), value);
            let may: BTreeSet<Option<u64>> = self
                .contents
                .possible(sector)
                .map(Option::<&u64>::copied)
                .collect();
            assert_eq!(may, possible(&self.log, (first, sector), self.cache));
        }
        let numbers: Vec<u64> = self.contents.volatile().map(|of| of.number).collect();
        assert!(numbers.is_sorted());
        let volatile = |sector| !self.contents.is_durable(sector);
        assert_eq!(numbers.is_empty(), !(0..SECTORS).any(volatile));
    }

    fn cut(&mut self, bits: u64) {
        let survives = |write: &Write, sector: u64| {
            let bit = (write.number * SECTORS + sector).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
            bits >> bit & 1 == 1
        };
        let before = self.contents.clone();
        let lost = self.contents.power_cut(survives);
        for sector in 0..SECTORS {
            let has = self.contents.read(sector).copied();
            let may = possible(&self.log, (self.first[sector as usize], sector), self.cache);
            assert!(may.contains(&has), "sector {sector} has {has:?} of {may:?}");
            assert!(self.contents.is_durable(sector));
            self.first[sector as usize] = has;
        }
        let was = |sector: u64| before.read(sector) == self.contents.read(sector);
        if lost.is_empty() && before.requests_in_flight.is_empty() {
            assert!((0..SECTORS).all(was), "nothing was lost");
        }
        for write in &lost {
            assert!(before.volatile().any(|of| of == *write), "{write:?}");
        }
        assert_eq!(self.contents.volatile().count(), 0);
        self.log.clear();
    }
}

proptest! {
    #[test]
    fn a_load_and_its_power_cuts_keep_the_rules(steps in steps(), protected in any::<bool>()) {
        let cache = if protected { WriteCache::Durable } else { WriteCache::Volatile };
        let mut load = Load::new(cache);
        steps.into_iter().for_each(|step| load.step(step));
    }

    /// All that survives is what was there, nothing is what is durable, and a prefix of the
    /// order of completion is what a cache leaves that destages in order.
    #[test]
    fn power_cuts_leave_prefixes_of_the_order(steps in steps(), share in 0.0..1.0) {
        let mut load = Load::new(WriteCache::Volatile);
        steps.into_iter().for_each(|step| load.step(step));
        let before = &load.contents;
        let after = |survives: &dyn Fn(&Write, u64) -> bool| {
            let mut contents = before.clone();
            let lost = contents.power_cut(survives);
            (contents, lost)
        };
        let numbers: Vec<u64> = before.volatile().map(|of| of.number).collect();
        let last = numbers.get((share * numbers.len() as f64) as usize).copied().unwrap_or(0);
        let (all, none_lost) = after(&|write, _| write.number > 0);
        let (least, _) = after(&|_, _| false);
        let (prefix, lost) = after(&|write, _| (1..=last).contains(&write.number));
        prop_assert!(none_lost.is_empty());
        prop_assert!(lost.iter().all(|of| of.number > last));
        for sector in 0..SECTORS {
            prop_assert_eq!(all.read(sector), before.read(sector));
            prop_assert_eq!(least.read(sector), before.durable(sector));
            let versions = before.sectors.get(&sector);
            let expected = versions.and_then(|of| {
                let upto = of.volatile.iter().rfind(|(number, _)| *number <= last);
                upto.map_or(of.durable.as_ref(), |(_, value)| value.as_ref())
            });
            prop_assert_eq!(prefix.read(sector), expected);
        }
    }
}

/// The rules one by one: what is submitted and completed, in order, and what a sector may
/// have then.
#[test]
fn what_a_power_cut_may_leave() {
    use Step::{Complete, Submit};
    let submit = |operation| Submit(operation, 0..1);
    // Completions name a place among those in flight; writes are numbered from 1.
    struct Case(&'static str, Vec<Step>, &'static [Option<u64>]);
    let cases = [
        Case(
            "a write in the cache",
            vec![submit(WRITE), Complete(0)],
            &[None, Some(1)],
        ),
        Case("in flight", vec![submit(FUA)], &[None, Some(1)]),
        Case("forced", vec![submit(FUA), Complete(0)], &[Some(1)]),
        Case(
            "flushed",
            vec![submit(WRITE), Complete(0), submit(FLUSH), Complete(0)],
            &[Some(1)],
        ),
        Case(
            "not complete when the flush was submitted",
            vec![submit(WRITE), submit(FLUSH), Complete(0), Complete(0)],
            &[None, Some(1)],
        ),
        Case(
            "a discard may come back",
            vec![submit(FUA), Complete(0), submit(DISCARD), Complete(0)],
            &[None, Some(1)],
        ),
    ];
    for Case(name, steps, expected) in cases {
        let mut load = Load::new(WriteCache::Volatile);
        steps.into_iter().for_each(|step| load.step(step));
        let found: BTreeSet<Option<u64>> = load
            .contents
            .possible(0)
            .map(Option::<&u64>::copied)
            .collect();
        assert_eq!(found, expected.iter().copied().collect(), "{name}");
    }
}
