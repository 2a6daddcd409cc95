//! Sets of disjoint time intervals, with their union and intersection.

/// Disjoint intervals in ascending order, each with its start and end in nanoseconds.
pub(super) struct TimeIntervals(Vec<(u64, u64)>);

impl TimeIntervals {
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

    pub(super) fn union_of<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        Self::from_spans(all.flat_map(|one| one.0.iter().copied()))
    }

    pub(super) fn total_ns(&self) -> u64 {
        self.0.iter().map(|(from, until)| until - from).sum()
    }

    pub(super) fn overlap_ns(&self, other: &Self) -> u64 {
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
    use super::TimeIntervals;

    #[test]
    fn spans_join_and_overlap() {
        let one = TimeIntervals::from_spans([(5, 7), (0, 3), (2, 4), (7, 9)]);
        assert_eq!(one.total_ns(), 8);
        let other = TimeIntervals::from_spans([(1, 6), (8, 20)]);
        assert_eq!(one.overlap_ns(&other), 3 + 1 + 1);
        assert_eq!(TimeIntervals::union_of([one, other].iter()).total_ns(), 20);
    }
}
