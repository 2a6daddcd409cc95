//! What is passed over: slipped sectors, as ascending runs.

/// Slipped sectors.
#[derive(Clone, Debug, Default)]
pub(super) struct Slips(Vec<Slip>);

/// Neighbouring slipped sectors.
#[derive(Clone, Copy, Debug)]
struct Slip {
    first: u64,
    count: u64,
    /// Slipped sectors before it.
    before: u64,
}

impl Slip {
    fn end(self) -> u64 {
        self.first + self.count
    }
}

impl Slips {
    /// From ascending runs of first and count. What reaches over a multiple of `unit` is
    /// cut there.
    pub(super) fn new(runs: impl IntoIterator<Item = (u64, u64)>, unit: u64) -> Self {
        let mut slips: Vec<Slip> = Vec::new();
        let mut before = 0;
        for (first, count) in runs {
            match slips.last_mut() {
                Some(last) if last.end() == first && !first.is_multiple_of(unit) => {
                    last.count += count;
                }
                _ => slips.push(Slip {
                    first,
                    count,
                    before,
                }),
            }
            before += count;
        }
        Self(slips)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first sector of each run.
    pub(super) fn firsts(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|slip| slip.first)
    }

    fn within(&self, (from, end): (u64, u64)) -> &[Slip] {
        let first = self.0.partition_point(|slip| slip.first < from);
        let last = self.0.partition_point(|slip| slip.first < end);
        &self.0[first..last]
    }

    /// Slipped sectors from `from` on, before `end`; runs count whole.
    pub(super) fn count(&self, range: (u64, u64)) -> u64 {
        match self.within(range) {
            [] => 0,
            [first, .., last] => last.before + last.count - first.before,
            [only] => only.count,
        }
    }

    /// The sector of this rank among those of a range that are not slipped, and the next
    /// slipped one of the range behind it.
    pub(super) fn place(&self, range: (u64, u64), rank: u64) -> (u64, Option<u64>) {
        let slips = self.within(range);
        let base = slips.first().map_or(0, |slip| slip.before);
        let passed =
            slips.partition_point(|slip| slip.first - range.0 <= rank + (slip.before - base));
        let next = slips.get(passed).map(|slip| slip.first);
        (range.0 + rank + skipped(&slips[..passed], base), next)
    }

    /// The rank of a sector among those of a range that are not slipped, if it is one.
    pub(super) fn rank(&self, range: (u64, u64), sector: u64) -> Option<u64> {
        let slips = self.within(range);
        let base = slips.first().map_or(0, |slip| slip.before);
        let passed = &slips[..slips.partition_point(|slip| slip.first <= sector)];
        let slipped = passed.last().is_some_and(|slip| sector < slip.end());
        (!slipped).then(|| sector - range.0 - skipped(passed, base))
    }
}

/// Sectors in these runs, the first of which has `base` before it.
fn skipped(passed: &[Slip], base: u64) -> u64 {
    passed
        .last()
        .map_or(0, |slip| slip.before + slip.count - base)
}
