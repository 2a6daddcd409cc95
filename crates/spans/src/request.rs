//! Time record of one transfer request, from submission to completion.

use crate::{Nanoseconds, Stage};

/// Time record of one request: spans that cover its time without gaps.
#[derive(Clone, Debug, Default)]
pub struct RequestTimeline {
    issued_at: Nanoseconds,
    marked_until: Nanoseconds,
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
    #[cfg_attr(feature = "serde", serde(rename = "until"))]
    pub stage_end: Nanoseconds,
}

impl RequestTimeline {
    /// Resets the record to a request that is submitted now, without spans.
    pub fn begin_at(&mut self, now: Nanoseconds) {
        (self.issued_at, self.marked_until) = (now, now);
        self.spans.clear();
    }

    /// Submission time of the request.
    pub fn issued_at(&self) -> Nanoseconds {
        self.issued_at
    }

    /// End of the last span: the request's time is accounted for up to here.
    #[inline]
    pub fn marked_until(&self) -> Nanoseconds {
        self.marked_until
    }

    /// Accounts the time from the last mark to `until` to `stage`.
    ///
    /// # Panics
    ///
    /// If `until` is before the last mark, because spans do not overlap.
    #[inline]
    pub fn mark_stage(&mut self, stage: Stage, until: Nanoseconds) {
        let marked = self.marked_until;
        assert!(
            until >= marked,
            "a span of {stage:?} would end at {until:?}, before it starts at {marked:?}"
        );
        if until == marked {
            return;
        }
        self.marked_until = until;
        match self.spans.last_mut() {
            Some(last) if last.stage == stage => last.stage_end = until,
            _ => self.spans.push(Span {
                stage,
                stage_end: until,
            }),
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
    pub fn for_each_stage_between(
        &self,
        from: Nanoseconds,
        to: Nanoseconds,
        mut book: impl FnMut(Stage, u64),
    ) {
        assert!(
            from >= self.issued_at && to <= self.marked_until(),
            "[{from:?}, {to:?}] is not within the request's [{:?}, {:?}]",
            self.issued_at,
            self.marked_until()
        );
        let mut at = from;
        for span in &self.spans {
            if span.stage_end > at {
                let end = span.stage_end.min(to);
                book(span.stage, end.0 - at.0);
                at = end;
            }
            if at >= to {
                return;
            }
        }
    }
}

/// Period that a request, process or actuator spends in one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageInterval {
    /// Stage of the whole period.
    pub stage: Stage,
    /// Start of the period: the end of the stage before.
    pub start: Nanoseconds,
    /// End of the period: the start of the next stage.
    pub end: Nanoseconds,
}

impl StageInterval {
    /// Returns the length of the period.
    pub fn duration(&self) -> Nanoseconds {
        self.end.since(self.start)
    }
}

/// Returns each span with its start. The first span starts at `from`.
pub fn stage_intervals(
    from: Nanoseconds,
    spans: &[Span],
) -> impl Iterator<Item = StageInterval> + '_ {
    spans.iter().scan(from, |at, span| {
        let start = std::mem::replace(at, span.stage_end);
        Some(StageInterval {
            stage: span.stage,
            start,
            end: span.stage_end,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_tile_and_parts_of_them_add_up() {
        let mut request = RequestTimeline::default();
        request.begin_at(Nanoseconds(10));
        request.mark_stage(Stage::DriverQueue, Nanoseconds(15));
        request.mark_stage(Stage::Seek, Nanoseconds(15));
        request.mark_stage(Stage::RotationalLatency, Nanoseconds(25));
        request.mark_stage(Stage::MediaTransfer, Nanoseconds(30));
        let mut seen = Vec::new();
        request.for_each_stage_between(Nanoseconds(12), Nanoseconds(28), |stage, ns| {
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
        let mut request = RequestTimeline::default();
        request.begin_at(Nanoseconds(10));
        request.mark_stage(Stage::Seek, Nanoseconds(9));
    }
}
