//! Load of a block trace: parts of constant rate, of a second each or longer.

use super::load::{DATA_BYTES_MAX, LOADED_BYTES_MAX, LoadBuilder, LoadedRequest, VolumeLoad};
use diskperf_device::volume::charge::ChargeRules;

const NS_PER_S: u64 = 1_000_000_000;
/// Parts of all repetitions together at most: a week has one for each second.
const PARTS_MAX: u64 = 1 << 20;

/// Divides the requests of a trace into parts of constant rate.
#[derive(Debug)]
pub struct TraceLoadBuilder {
    builder: LoadBuilder,
    /// Duration of all repetitions in nanoseconds; later requests are left out.
    total_ns: u64,
    part_ns: u64,
    part_start_ns: u64,
    /// Time of the newest request in nanoseconds.
    issued_ns: u64,
}

impl TraceLoadBuilder {
    /// Creates a builder of the load of a trace that repeats until `total_ns`.
    pub fn new(name: &str, rules: &[ChargeRules], total_ns: u64) -> Self {
        let mut builder = LoadBuilder::new(name, rules);
        let part_s = total_ns.div_ceil(NS_PER_S).div_ceil(PARTS_MAX).max(1);
        if part_s > 1 {
            builder.add_note(format!(
                "the trace is taken in parts of {part_s} s, for so long a time: shorter bursts are averaged"
            ));
        }
        Self {
            builder,
            total_ns,
            part_ns: part_s * NS_PER_S,
            part_start_ns: 0,
            issued_ns: 0,
        }
    }

    /// Advances to the time of a request. A part includes a request at its end, and a gap is one
    /// part.
    pub fn advance(&mut self, issued_ns: u64) {
        self.issued_ns = self.issued_ns.max(issued_ns);
        let now_ns = issued_ns.min(self.total_ns);
        if now_ns <= self.part_start_ns + self.part_ns {
            return;
        }
        self.builder.end_part_of_trace(self.part_ns);
        self.part_start_ns += self.part_ns;
        let gap_ns = (now_ns - self.part_start_ns - 1) / self.part_ns * self.part_ns;
        if gap_ns > 0 {
            self.builder.end_part_of_trace(gap_ns);
            self.part_start_ns += gap_ns;
        }
    }

    /// Adds a request at the time that was advanced to.
    ///
    /// # Errors
    ///
    /// A request that is larger than 1 GiB, or that ends behind the end of all volumes.
    pub fn add_request(&mut self, request: LoadedRequest) -> Result<(), String> {
        if request.bytes > LOADED_BYTES_MAX {
            return Err(format!(
                "a request of {} bytes; volumes are calculated for requests of up to 1 GiB",
                request.bytes
            ));
        }
        let end_byte = request.start_byte.saturating_add(request.bytes);
        if end_byte > DATA_BYTES_MAX {
            return Err(format!(
                "a request at byte {}; no volume has more than an exbibyte",
                request.start_byte
            ));
        }
        self.builder.extend_data(end_byte);
        if self.issued_ns < self.total_ns {
            self.builder.add_request(request);
        }
        Ok(())
    }

    /// Returns the load. It ends with its last request. A rest of less than half a part belongs to
    /// the part before it.
    ///
    /// # Errors
    ///
    /// A trace whose requests were all issued at the same time.
    pub fn finish(mut self) -> Result<VolumeLoad, String> {
        let rest_ns = self.issued_ns.min(self.total_ns) - self.part_start_ns;
        if rest_ns == 0 {
            return Err(
                "all requests were issued at the same time, so that they have no rate; record more than one, with their times"
                    .to_owned(),
            );
        }
        match rest_ns < self.part_ns / 2 {
            true => self.builder.end_short_part(rest_ns, self.part_ns),
            false => self.builder.end_part_of_trace(rest_ns),
        }
        Ok(self.builder.finish())
    }
}
