//! Fineness of the times of a trace.

use serde::Serialize;

/// Coarsest step of times that is not worth a word: most requests take longer.
const COARSE_NS: u64 = 1_000_000;

/// Times of issue, and how often one comes again.
#[derive(Clone, Debug, Default)]
pub(super) struct Stamps {
    last_ns: Option<u64>,
    /// The greatest common divisor of all times.
    unit_ns: u64,
    requests: u64,
    shared: u64,
}

impl Stamps {
    #[inline]
    pub(super) fn add(&mut self, at_ns: u64) {
        self.requests += 1;
        self.shared += u64::from(self.last_ns.replace(at_ns) == Some(at_ns));
        if self.unit_ns == 0 || !at_ns.is_multiple_of(self.unit_ns) {
            self.unit_ns = greatest_common_divisor(self.unit_ns, at_ns);
        }
    }

    /// The coarseness, of times of a millisecond and more that several requests share.
    pub(super) fn finish(&self) -> Option<Resolution> {
        (self.shared > 0 && self.unit_ns >= COARSE_NS).then_some(Resolution {
            ns: self.unit_ns,
            shared_share: self.shared as f64 / self.requests as f64,
        })
    }
}

fn greatest_common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// Coarseness of a trace's times: all are multiples of it, and several requests have the
/// same. Nothing finer can be told of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Resolution {
    /// The unit of the times, in nanoseconds.
    pub ns: u64,
    /// Share of the requests whose time is that of the one before.
    pub shared_share: f64,
}
