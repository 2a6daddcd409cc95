//! What a trace of diskperf's own form says beside its requests: of itself, and which parts
//! it has.

use serde::Serialize;

/// Something that a trace says of itself: `target` is `/dev/sda`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct About {
    /// Of what it is.
    pub name: String,
    /// What is said of that.
    pub value: String,
}

/// A part of a trace, as a repetition of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// What its recorder calls it.
    pub name: String,
    /// When it began, in nanoseconds from the trace's first request; 0 of what began before.
    pub began_ns: u64,
    /// When it ended; `None` where its recorder did not see that.
    pub ended_ns: Option<u64>,
    /// Whether it counts for what its recorder measured: a repetition that warms up does not.
    pub counts: bool,
    /// Requests that were issued in it.
    pub requests: u64,
}

/// The most bytes that are kept of all that is said, so that no trace takes all memory.
const MOST_BYTES: usize = 32 << 20;

/// What was said so far. Times are on the trace's own clock.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) about: Vec<About>,
    parts: Vec<Part>,
    bytes: usize,
}

impl Said {
    /// Whether there is room for one more of so many bytes, which is taken then.
    fn has_room(&mut self, bytes: usize) -> bool {
        self.bytes += bytes + size_of::<Part>();
        self.bytes <= MOST_BYTES
    }

    /// Something is said; whether it is kept.
    pub(crate) fn say(&mut self, name: &[u8], value: &[u8]) -> bool {
        let is_kept = self.has_room(name.len() + value.len());
        if is_kept {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (name, value) = (text(name), text(value));
            self.about.push(About { name, value });
        }
        is_kept
    }

    /// A part begins; whether it is kept.
    pub(crate) fn begin(&mut self, at_ns: u64, name: &[u8]) -> bool {
        if !self.has_room(name.len()) {
            return false;
        }
        self.parts.push(Part {
            name: String::from_utf8_lossy(name).into_owned(),
            began_ns: at_ns,
            ended_ns: None,
            counts: true,
            requests: 0,
        });
        true
    }

    pub(crate) fn end(&mut self, at_ns: u64, counts: bool) {
        if let Some(part) = self.latest() {
            part.ended_ns = Some(at_ns);
            part.counts = counts;
        }
    }

    /// A request of the latest part.
    pub(crate) fn request(&mut self) {
        if let Some(part) = self.latest() {
            part.requests += 1;
        }
    }

    fn latest(&mut self) -> Option<&mut Part> {
        match self.bytes <= MOST_BYTES {
            true => self.parts.last_mut(),
            false => None,
        }
    }

    /// The parts, on a clock that was at `begins_ns` at the trace's first request.
    pub(crate) fn parts(&self, begins_ns: u64) -> Vec<Part> {
        let of = |part: &Part| Part {
            began_ns: part.began_ns.saturating_sub(begins_ns),
            ended_ns: part.ended_ns.map(|at| at.saturating_sub(begins_ns)),
            ..part.clone()
        };
        self.parts.iter().map(of).collect()
    }

    /// The number of the part that a moment is in, from 0, of those that began by now.
    pub(crate) fn part_at(&self, at_ns: u64) -> Option<usize> {
        let after = self.parts.partition_point(|part| part.began_ns <= at_ns);
        after.checked_sub(1)
    }
}
