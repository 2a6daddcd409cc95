//! Slipped sectors, which the numbering of logical blocks skips, as ascending runs.

/// Slipped sectors of a zone, as ascending runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Slips(Vec<Slip>);

#[derive(Clone, Copy, Debug)]
struct Slip {
    first: u64,
    count: u64,
    /// Number of slipped sectors before this run.
    before: u64,
}

impl Slip {
    fn end(self) -> u64 {
        self.first + self.count
    }
}

impl Slips {
    /// Creates the list from ascending pairs of first sector and count. Adjacent pairs merge,
    /// except across a multiple of `unit`.
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

    /// Iterates over the first sector of each run.
    pub(super) fn firsts(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|slip| slip.first)
    }

    fn within(&self, (from, end): (u64, u64)) -> &[Slip] {
        let first = self.0.partition_point(|slip| slip.first < from);
        let last = self.0.partition_point(|slip| slip.first < end);
        &self.0[first..last]
    }

    /// Counts the slipped sectors of the runs that begin in a range. Such runs count in full.
    pub(super) fn count(&self, range: (u64, u64)) -> u64 {
        match self.within(range) {
            [] => 0,
            [first, .., last] => last.before + last.count - first.before,
            [only] => only.count,
        }
    }

    /// Returns the sector with a given rank among the usable (not slipped) sectors of a range, and
    /// the next slipped sector of the range behind it.
    pub(super) fn place(&self, range: (u64, u64), rank: u64) -> (u64, Option<u64>) {
        let slips = self.within(range);
        let base = slips.first().map_or(0, |slip| slip.before);
        let passed =
            slips.partition_point(|slip| slip.first - range.0 <= rank + (slip.before - base));
        let next = slips.get(passed).map(|slip| slip.first);
        (range.0 + rank + skipped(&slips[..passed], base), next)
    }

    /// Returns the rank of a sector among the usable (not slipped) sectors of a range; `None` for a
    /// slipped sector.
    pub(super) fn rank(&self, range: (u64, u64), sector: u64) -> Option<u64> {
        let slips = self.within(range);
        let base = slips.first().map_or(0, |slip| slip.before);
        let passed = &slips[..slips.partition_point(|slip| slip.first <= sector)];
        let slipped = passed.last().is_some_and(|slip| sector < slip.end());
        (!slipped).then(|| sector - range.0 - skipped(passed, base))
    }
}

/// Counts the sectors in these runs. `base` slipped sectors lie before the first run.
fn skipped(passed: &[Slip], base: u64) -> u64 {
    passed
        .last()
        .map_or(0, |slip| slip.before + slip.count - base)
}
