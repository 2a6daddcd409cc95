//! Information other than requests in a trace of diskperf's format: on the trace itself, and on its
//! parts.

use serde::Serialize;

/// Information that a trace gives on itself, as a name and a value. For example, `target` is
/// `/dev/sda`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceFact {
    /// Name of the information.
    pub name: String,
    /// Value of the information.
    pub value: String,
}

/// Part of a trace, such as a repetition of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TracePart {
    /// Name that the recorder gave the part.
    pub name: String,
    /// Start of the part in nanoseconds from the trace's first request, or 0 if it began before.
    #[serde(rename = "began_ns")]
    pub start_ns: u64,
    /// End of the part, or `None` if the recorder did not see it.
    #[serde(rename = "ended_ns")]
    pub end_ns: Option<u64>,
    /// Whether the recorder's results include the part. A warm-up repetition is not included.
    #[serde(rename = "counts")]
    pub is_counted: bool,
    /// Number of requests that were issued in the part.
    #[serde(rename = "requests")]
    pub request_count: u64,
}

/// Maximum memory for information and parts in bytes, so that no trace exhausts the memory.
const INFORMATION_BYTES_MAX: usize = 32 << 20;

/// Information and parts read so far. Times are on the trace's own clock.
#[derive(Debug, Default)]
pub(crate) struct TraceInformation {
    pub(crate) facts: Vec<TraceFact>,
    parts: Vec<TracePart>,
    used_bytes: usize,
}

impl TraceInformation {
    /// Reserves memory for another entry of `bytes` bytes, and returns whether there was room.
    fn reserve_bytes(&mut self, bytes: usize) -> bool {
        self.used_bytes += bytes + size_of::<TracePart>();
        self.used_bytes <= INFORMATION_BYTES_MAX
    }

    /// Adds information on the trace, and returns whether there was room for it.
    pub(crate) fn add_fact(&mut self, name: &[u8], value: &[u8]) -> bool {
        let is_kept = self.reserve_bytes(name.len() + value.len());
        if is_kept {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (name, value) = (text(name), text(value));
            self.facts.push(TraceFact { name, value });
        }
        is_kept
    }

    /// Begins a part, and returns whether there was room for it.
    pub(crate) fn begin_part(&mut self, at_ns: u64, name: &[u8]) -> bool {
        if !self.reserve_bytes(name.len()) {
            return false;
        }
        self.parts.push(TracePart {
            name: String::from_utf8_lossy(name).into_owned(),
            start_ns: at_ns,
            end_ns: None,
            is_counted: true,
            request_count: 0,
        });
        true
    }

    pub(crate) fn end_part(&mut self, at_ns: u64, counts: bool) {
        if let Some(part) = self.latest_part() {
            part.end_ns = Some(at_ns);
            part.is_counted = counts;
        }
    }

    pub(crate) fn count_request(&mut self) {
        if let Some(part) = self.latest_part() {
            part.request_count += 1;
        }
    }

    fn latest_part(&mut self) -> Option<&mut TracePart> {
        match self.used_bytes <= INFORMATION_BYTES_MAX {
            true => self.parts.last_mut(),
            false => None,
        }
    }

    /// Returns the parts, with times from the trace's first request, at which the trace's clock
    /// showed `begins_ns`.
    pub(crate) fn relative_parts(&self, begins_ns: u64) -> Vec<TracePart> {
        let of = |part: &TracePart| TracePart {
            start_ns: part.start_ns.saturating_sub(begins_ns),
            end_ns: part.end_ns.map(|at| at.saturating_sub(begins_ns)),
            ..part.clone()
        };
        self.parts.iter().map(of).collect()
    }

    /// Returns the index of the part that contains a time, among the parts begun so far.
    pub(crate) fn find_part_at(&self, at_ns: u64) -> Option<usize> {
        let after = self.parts.partition_point(|part| part.start_ns <= at_ns);
        after.checked_sub(1)
    }
}
