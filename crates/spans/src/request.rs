//! Time record of one transfer request, from submission to completion.

use crate::{Nanoseconds, Stage};

/// Time record of one request: spans that cover its time without gaps.
#[derive(Clone, Debug, Default)]
pub struct Request {
    issued: Nanoseconds,
    marked: Nanoseconds,
    spans: Vec<Span>,
}

/// Part of a request's time that is spent in one stage. The span starts at the end of the previous
/// span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Span {
    /// Stage in which the request spent the time of this span.
    pub stage: Stage,
    /// End of the span.
    pub until: Nanoseconds,
}

impl Request {
    /// Resets the record to a request that is submitted now, without spans.
    pub fn issue(&mut self, now: Nanoseconds) {
        (self.issued, self.marked) = (now, now);
        self.spans.clear();
    }

    /// Submission time of the request.
    pub fn issued(&self) -> Nanoseconds {
        self.issued
    }

    /// End of the last span: the request's time is accounted for up to here.
    #[inline]
    pub fn marked(&self) -> Nanoseconds {
        self.marked
    }

    /// Accounts the time from the last mark to `until` to `stage`.
    ///
    /// # Panics
    ///
    /// If `until` is before the last mark, because spans do not overlap.
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

    /// Spans of the request in order of time. They cover the time from submission to the last mark.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Calls `book` with each stage and its share of the time `[from, to]`.
    ///
    /// # Panics
    ///
    /// If a part of `[from, to]` is not covered by spans.
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

/// Returns each span with its start, as stage, start and end. The first span starts at `from`.
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
