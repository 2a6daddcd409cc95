//! Sets of disjoint time intervals, with their union and intersection.

/// Disjoint intervals in ascending order, each with its start and end in nanoseconds.
pub(super) struct Intervals(Vec<(u64, u64)>);

impl Intervals {
    /// Creates a set of disjoint intervals from any intervals, joining those that meet.
    pub(super) fn from_spans(spans: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut spans: Vec<_> = spans.into_iter().collect();
        spans.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (from, until) in spans {
            match joined.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(until),
                _ => joined.push((from, until)),
            }
        }
        Self(joined)
    }

    /// Returns the union of several sets of intervals.
    pub(super) fn union<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        Self::from_spans(all.flat_map(|one| one.0.iter().copied()))
    }

    /// Returns the total length of the set's intervals.
    pub(super) fn total(&self) -> u64 {
        self.0.iter().map(|(from, until)| until - from).sum()
    }

    /// Returns the total time that two sets of intervals share.
    pub(super) fn overlap(&self, other: &Self) -> u64 {
        let (mut mine, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut both = 0;
        while let (Some(one), Some(two)) = (mine.peek(), theirs.peek()) {
            both += one.1.min(two.1).saturating_sub(one.0.max(two.0));
            if one.1 < two.1 {
                mine.next();
            } else {
                theirs.next();
            }
        }
        both
    }
}

#[cfg(test)]
mod tests {
    use super::Intervals;

    #[test]
    fn spans_join_and_overlap() {
        let one = Intervals::from_spans([(5, 7), (0, 3), (2, 4), (7, 9)]);
        assert_eq!(one.total(), 8);
        let other = Intervals::from_spans([(1, 6), (8, 20)]);
        assert_eq!(one.overlap(&other), 3 + 1 + 1);
        assert_eq!(Intervals::union([one, other].iter()).total(), 20);
    }
}
