//! Slipped sectors, which the numbering of logical blocks skips, as ascending runs.

/// Slipped sectors of a zone, as ascending runs.
#[derive(Clone, Debug, Default)]
pub(super) struct SlipList(Vec<SlipRun>);

#[derive(Clone, Copy, Debug)]
struct SlipRun {
    first_sector: u64,
    sector_count: u64,
    /// Number of slipped sectors before this run.
    slipped_before: u64,
}

impl SlipRun {
    fn end(self) -> u64 {
        self.first_sector + self.sector_count
    }
}

impl SlipList {
    /// Creates the list from ascending pairs of first sector and count. Adjacent pairs merge,
    /// except across a multiple of `unit`.
    pub(super) fn new(runs: impl IntoIterator<Item = (u64, u64)>, unit: u64) -> Self {
        let mut slips: Vec<SlipRun> = Vec::new();
        let mut before = 0;
        for (first, count) in runs {
            match slips.last_mut() {
                Some(last) if last.end() == first && !first.is_multiple_of(unit) => {
                    last.sector_count += count;
                }
                _ => slips.push(SlipRun {
                    first_sector: first,
                    sector_count: count,
                    slipped_before: before,
                }),
            }
            before += count;
        }
        Self(slips)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn first_sectors(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|slip| slip.first_sector)
    }

    fn runs_within(&self, (from, end): (u64, u64)) -> &[SlipRun] {
        let first = self.0.partition_point(|slip| slip.first_sector < from);
        let last = self.0.partition_point(|slip| slip.first_sector < end);
        &self.0[first..last]
    }

    /// Counts the slipped sectors of the runs that begin in a range. Such runs count in full.
    pub(super) fn slipped_count(&self, range: (u64, u64)) -> u64 {
        match self.runs_within(range) {
            [] => 0,
            [first, .., last] => last.slipped_before + last.sector_count - first.slipped_before,
            [only] => only.sector_count,
        }
    }

    /// Returns the sector with a given rank among the usable (not slipped) sectors of a range, and
    /// the next slipped sector of the range behind it.
    pub(super) fn position_of_rank(&self, range: (u64, u64), rank: u64) -> (u64, Option<u64>) {
        let slips = self.runs_within(range);
        let base = slips.first().map_or(0, |slip| slip.slipped_before);
        let passed = slips.partition_point(|slip| {
            slip.first_sector - range.0 <= rank + (slip.slipped_before - base)
        });
        let next = slips.get(passed).map(|slip| slip.first_sector);
        (
            range.0 + rank + sectors_skipped(&slips[..passed], base),
            next,
        )
    }

    /// Returns the rank of a sector among the usable (not slipped) sectors of a range; `None` for a
    /// slipped sector.
    pub(super) fn rank_of_sector(&self, range: (u64, u64), sector: u64) -> Option<u64> {
        let slips = self.runs_within(range);
        let base = slips.first().map_or(0, |slip| slip.slipped_before);
        let passed = &slips[..slips.partition_point(|slip| slip.first_sector <= sector)];
        let slipped = passed.last().is_some_and(|slip| sector < slip.end());
        (!slipped).then(|| sector - range.0 - sectors_skipped(passed, base))
    }
}

/// Counts the sectors in these runs. `base` slipped sectors lie before the first run.
fn sectors_skipped(passed: &[SlipRun], base: u64) -> u64 {
    passed
        .last()
        .map_or(0, |slip| slip.slipped_before + slip.sector_count - base)
}
