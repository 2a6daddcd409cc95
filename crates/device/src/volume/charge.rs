//! Charges of requests: splitting of large requests, merging of adjacent ones, and the minimum
//! charge of random requests to hard-disk volumes.

use std::collections::VecDeque;

/// Rules by which a volume charges requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChargeRules {
    /// Maximum size of one charged operation, in bytes. Larger requests are split.
    pub operation_bytes: u64,
    /// Minimum charge of a request that continues no stream, in bytes; 0 without one.
    pub random_charge_bytes: u64,
    /// Number of sequential streams whose adjacent requests are merged; 0 if none are.
    pub merge_streams: u32,
}

/// Charge of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// Number of operations that the request is charged as; 0 if it was merged into an earlier one.
    pub operations: u64,
    /// Size that the request is charged as, in bytes.
    pub bytes: u64,
}

/// End of a sequential stream, and the fill level of its last operation.
#[derive(Clone, Copy, Debug)]
struct Stream {
    next_byte: u64,
    is_write: bool,
    operation_bytes: u64,
}

/// Request as its charge depends on it.
#[derive(Clone, Copy, Debug)]
pub struct ChargedRequest {
    /// Start of the request on the volume, in bytes.
    pub start_byte: u64,
    /// Size of the request in bytes.
    pub bytes: u64,
    /// Whether the request writes.
    pub is_write: bool,
}

/// Charges requests in the order in which they pass.
#[derive(Clone, Debug)]
pub struct Meter {
    rules: ChargeRules,
    streams: VecDeque<Stream>,
}

impl Meter {
    /// Creates a meter that has seen no request.
    pub fn new(rules: ChargeRules) -> Self {
        Self {
            rules,
            streams: VecDeque::new(),
        }
    }

    /// Returns the charge of a request if it passes next.
    pub fn charge(&self, request: ChargedRequest) -> Charge {
        let unit = self.rules.operation_bytes;
        match self.find_stream(request) {
            Some(index) => {
                let open = self.streams[index].operation_bytes;
                Charge {
                    operations: (open + request.bytes).div_ceil(unit) - open.div_ceil(unit),
                    bytes: request.bytes,
                }
            }
            None => {
                let bytes = request.bytes.max(self.rules.random_charge_bytes);
                Charge {
                    operations: bytes.div_ceil(unit),
                    bytes,
                }
            }
        }
    }

    /// Charges a request that passes, and remembers its end as that of a stream.
    pub fn pass(&mut self, request: ChargedRequest) -> Charge {
        let charge = self.charge(request);
        if self.rules.merge_streams == 0 {
            return charge;
        }
        let found = self.find_stream(request);
        let open = found.map_or(0, |index| {
            let stream = self.streams.remove(index).expect("it was found");
            stream.operation_bytes
        });
        if self.streams.len() == self.rules.merge_streams as usize {
            self.streams.pop_front();
        }
        let total = open + request.bytes;
        self.streams.push_back(Stream {
            next_byte: request.start_byte + request.bytes,
            is_write: request.is_write,
            operation_bytes: total
                - (total.div_ceil(self.rules.operation_bytes).max(1) - 1)
                    * self.rules.operation_bytes,
        });
        charge
    }

    fn find_stream(&self, request: ChargedRequest) -> Option<usize> {
        let continues = |stream: &Stream| {
            stream.next_byte == request.start_byte && stream.is_write == request.is_write
        };
        self.streams.iter().rposition(continues)
    }
}
