//! Slices that overlap, laid side by side in as few tracks as that takes.

use diskperf_timeline::{Nanoseconds, Stage};

/// One slice.
pub(super) struct Slice<T> {
    /// From when until when.
    pub(super) span: (Nanoseconds, Nanoseconds),
    /// What it is of.
    pub(super) of: T,
}

/// Slices in any order.
pub(super) struct Lanes<T> {
    slices: Vec<Slice<T>>,
}

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        Self { slices: Vec::new() }
    }
}

impl<T> Lanes<T> {
    /// One more.
    pub(super) fn add(&mut self, span: (Nanoseconds, Nanoseconds), of: T) {
        self.slices.push(Slice { span, of });
    }

    /// The lanes, each with slices that follow each other.
    pub(super) fn laid(mut self) -> Vec<Vec<Slice<T>>> {
        self.slices.sort_by_key(|slice| slice.span);
        let mut lanes: Vec<Vec<Slice<T>>> = Vec::new();
        for slice in self.slices {
            let free = lanes.iter_mut().find(|lane| {
                let last = lane.last().expect("a lane has a slice");
                last.span.1 <= slice.span.0
            });
            match free {
                Some(lane) => lane.push(slice),
                None => lanes.push(vec![slice]),
            }
        }
        lanes
    }
}

/// The spans of some stages, those that follow each other joined.
pub(super) fn joined(
    parts: impl Iterator<Item = (Stage, Nanoseconds, Nanoseconds)>,
    counts: fn(Stage) -> bool,
) -> Vec<(Nanoseconds, Nanoseconds)> {
    let mut spans: Vec<(Nanoseconds, Nanoseconds)> = Vec::new();
    for (_, from, until) in parts.filter(|(stage, ..)| counts(*stage)) {
        match spans.last_mut() {
            Some(last) if last.1 == from => last.1 = until,
            _ => spans.push((from, until)),
        }
    }
    spans
}
