//! Set of sectors, as disjoint ranges.

use diskperf_sim::RandomStream;
use std::collections::BTreeMap;
use std::ops::Range;

/// Set of sectors, as disjoint ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SectorSet {
    /// End of each range, by its start.
    ranges: BTreeMap<u64, u64>,
}

impl SectorSet {
    /// Places runs of sectors at random in a range. Runs may overlap.
    pub(super) fn place(
        range: &Range<u64>,
        count: u64,
        run_sectors: u64,
        draws: &mut RandomStream,
    ) -> Self {
        let mut set = Self::default();
        let run_sectors = run_sectors.min(range.end - range.start);
        let starts = range.end - range.start - run_sectors + 1;
        for _ in 0..count {
            let start = range.start + draws.draw_below(starts);
            set.insert(start..start + run_sectors);
        }
        set
    }

    pub(super) fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        self.remove(&range);
        self.ranges.insert(range.start, range.end);
    }

    /// Removes a range, and returns the number of sectors that were in the set.
    pub(super) fn remove(&mut self, range: &Range<u64>) -> u64 {
        let mut removed = 0;
        while let Some(found) = self.first_overlap(range) {
            self.ranges.remove(&found.start);
            if found.start < range.start {
                self.ranges.insert(found.start, range.start);
            }
            if found.end > range.end {
                self.ranges.insert(range.end, found.end);
            }
            removed += found.end.min(range.end) - found.start.max(range.start);
        }
        removed
    }

    pub(super) fn overlaps(&self, range: &Range<u64>) -> bool {
        self.first_overlap(range).is_some()
    }

    fn first_overlap(&self, range: &Range<u64>) -> Option<Range<u64>> {
        if range.is_empty() {
            return None;
        }
        let (start, end) = self.ranges.range(..range.end).next_back()?;
        (*end > range.start).then_some(*start..*end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskperf_sim::RandomStreams;
    use std::collections::BTreeSet;

    #[test]
    fn a_set_of_ranges_is_a_set_of_sectors() {
        let mut draws = RandomStreams::new(3).named_stream("ranges");
        for _ in 0..200 {
            let (mut set, mut expected) = (SectorSet::default(), BTreeSet::new());
            for _ in 0..12 {
                let start = draws.draw_below(40);
                let range = start..start + draws.draw_below(12);
                if draws.draw_with_probability(0.5) {
                    set.insert(range.clone());
                    expected.extend(range);
                } else {
                    let removed = set.remove(&range);
                    let before = expected.len();
                    expected.retain(|sector| !range.contains(sector));
                    assert_eq!(removed as usize, before - expected.len());
                }
                let found: Vec<_> = (0..60).filter(|at| set.overlaps(&(*at..at + 1))).collect();
                assert_eq!(found, expected.iter().copied().collect::<Vec<_>>());
            }
        }
    }
}
