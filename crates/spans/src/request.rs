//! A request for a transfer, from the moment it is issued until it completes.

use crate::{Nanoseconds, Stage};

/// One request, tiled by its spans.
#[derive(Clone, Debug, Default)]
pub struct Request {
    issued: Nanoseconds,
    /// Where the last span ends.
    marked: Nanoseconds,
    spans: Vec<Span>,
}

/// A part of a request's time; it starts where the one before it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Span {
    /// What the time went to.
    pub stage: Stage,
    /// Where it ends.
    pub until: Nanoseconds,
}

impl Request {
    /// Starts over as a request that is issued now.
    pub fn issue(&mut self, now: Nanoseconds) {
        (self.issued, self.marked) = (now, now);
        self.spans.clear();
    }

    /// When it was issued.
    pub fn issued(&self) -> Nanoseconds {
        self.issued
    }

    /// Up to where its time is accounted for.
    #[inline]
    pub fn marked(&self) -> Nanoseconds {
        self.marked
    }

    /// What has passed since the last mark went to `stage`.
    ///
    /// # Panics
    ///
    /// When `until` is before the last mark: spans tile, they do not overlap.
    #[inline]
    pub fn mark(&mut self, stage: Stage, until: Nanoseconds) {
        let marked = self.marked;
        assert!(
            until >= marked,
            "a span of {stage:?} would end at {until:?}, before it starts at {marked:?}"
        );
        if until == marked {
            return;
        }
        self.marked = until;
        match self.spans.last_mut() {
            Some(last) if last.stage == stage => last.until = until,
            _ => self.spans.push(Span { stage, until }),
        }
    }

    /// Its spans in order; together they are [issued, marked].
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Calls `book` with each stage and how much of `[from, to]` went to it.
    ///
    /// # Panics
    ///
    /// When a part of `[from, to]` is not accounted for.
    pub fn between(&self, from: Nanoseconds, to: Nanoseconds, mut book: impl FnMut(Stage, u64)) {
        assert!(
            from >= self.issued && to <= self.marked(),
            "[{from:?}, {to:?}] is not within the request's [{:?}, {:?}]",
            self.issued,
            self.marked()
        );
        let mut at = from;
        for span in &self.spans {
            if span.until > at {
                let end = span.until.min(to);
                book(span.stage, end.0 - at.0);
                at = end;
            }
            if at >= to {
                return;
            }
        }
    }
}

/// Spans that begin at `from`, each with its start: stage, from, until.
pub fn with_starts(
    from: Nanoseconds,
    spans: &[Span],
) -> impl Iterator<Item = (Stage, Nanoseconds, Nanoseconds)> + '_ {
    spans.iter().scan(from, |at, span| {
        let from = std::mem::replace(at, span.until);
        Some((span.stage, from, span.until))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_tile_and_parts_of_them_add_up() {
        let mut request = Request::default();
        request.issue(Nanoseconds(10));
        request.mark(Stage::DriverQueue, Nanoseconds(15));
        request.mark(Stage::Seek, Nanoseconds(15));
        request.mark(Stage::RotationalLatency, Nanoseconds(25));
        request.mark(Stage::MediaTransfer, Nanoseconds(30));
        let mut seen = Vec::new();
        request.between(Nanoseconds(12), Nanoseconds(28), |stage, ns| {
            seen.push((stage, ns));
        });
        assert_eq!(
            seen,
            [
                (Stage::DriverQueue, 3),
                (Stage::RotationalLatency, 10),
                (Stage::MediaTransfer, 3)
            ]
        );
    }

    #[test]
    #[should_panic(expected = "before it starts")]
    fn spans_do_not_overlap() {
        let mut request = Request::default();
        request.issue(Nanoseconds(10));
        request.mark(Stage::Seek, Nanoseconds(9));
    }
}
