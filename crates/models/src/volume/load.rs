//! Load of a volume: parts of constant rate, and what their requests are charged.

use diskperf_analysis::volume::LoadFigures;
use diskperf_device::volume::charge::{ChargeRules, ChargedRequest, Meter};
use diskperf_device::volume::fluid::{ChargeTotal, FluidArrivals, NANOREQUESTS};

const NS_PER_S: u64 = 1_000_000_000;
const GIB: u64 = 1 << 30;
/// Longest request of a load, in bytes.
pub(super) const LOADED_BYTES_MAX: u64 = GIB;
/// Size of the data of a load at most, in bytes: above all volumes.
pub(super) const DATA_BYTES_MAX: u64 = 1 << 60;

/// Load that repeats: parts of constant rate.
#[derive(Clone, Debug)]
pub struct VolumeLoad {
    /// Parts of one repetition.
    pub(super) parts: Vec<LoadPart>,
    /// Rules for which charges were added up; each part has a total for each of them.
    rules: Vec<ChargeRules>,
    /// Job file or trace, as the user named it.
    name: String,
    /// First byte behind the data, in bytes.
    data_bytes: u64,
    notes: Vec<String>,
}

/// Arrivals of a part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PartArrivals {
    /// Requests in flight of a closed loop.
    Closed(u32),
    /// Requests per second, in nanorequests.
    Open(u128),
}

/// Time in which requests of one kind arrive.
#[derive(Clone, Debug)]
pub(super) struct LoadPart {
    pub(super) duration_ns: u64,
    pub(super) arrivals: PartArrivals,
    /// Charges by each of the rules of the load.
    charges: Vec<ChargeTotal>,
    /// Sum of the sizes of the charged requests.
    bytes: u64,
    reads: u64,
    requests: u64,
}

impl LoadPart {
    /// Returns the share of reads among the requests.
    pub(super) fn read_share(&self) -> f64 {
        self.reads as f64 / self.requests.max(1) as f64
    }
}

/// Request of a load.
#[derive(Clone, Copy, Debug)]
pub struct LoadedRequest {
    /// Start of the request on the volume, in bytes.
    pub start_byte: u64,
    /// Size of the request in bytes.
    pub bytes: u64,
    /// Whether the request writes.
    pub is_write: bool,
}

impl From<LoadedRequest> for ChargedRequest {
    fn from(request: LoadedRequest) -> Self {
        Self {
            start_byte: request.start_byte,
            bytes: request.bytes,
            is_write: request.is_write,
        }
    }
}

/// Charges a load's requests by all rules at once, part by part.
#[derive(Debug)]
pub(super) struct LoadBuilder {
    meters: Vec<Meter>,
    load: VolumeLoad,
    open_part: Option<LoadPart>,
}

impl LoadBuilder {
    /// Creates a builder of a load for volumes with these rules.
    pub(super) fn new(name: &str, rules: &[ChargeRules]) -> Self {
        let mut distinct: Vec<ChargeRules> = Vec::new();
        for rule in rules {
            if !distinct.contains(rule) {
                distinct.push(*rule);
            }
        }
        Self {
            meters: distinct.iter().map(|rules| Meter::new(*rules)).collect(),
            load: VolumeLoad {
                parts: Vec::new(),
                rules: distinct,
                name: name.to_owned(),
                data_bytes: 0,
                notes: Vec::new(),
            },
            open_part: None,
        }
    }

    /// Adds a sentence about what the calculation leaves out.
    pub(super) fn add_note(&mut self, note: String) {
        if !self.load.notes.contains(&note) {
            self.load.notes.push(note);
        }
    }

    /// Counts data of the load that ends at this byte.
    pub(super) fn extend_data(&mut self, end_byte: u64) {
        self.load.data_bytes = self.load.data_bytes.max(end_byte);
    }

    /// Passes a request that is not counted, after which another one may be adjacent.
    pub(super) fn skip_request(&mut self, request: LoadedRequest) {
        for meter in &mut self.meters {
            meter.pass(request.into());
        }
    }

    /// Adds a request to the current part.
    pub(super) fn add_request(&mut self, request: LoadedRequest) {
        let rule_count = self.load.rules.len();
        let part = self.open_part.get_or_insert_with(|| LoadPart {
            duration_ns: 0,
            arrivals: PartArrivals::Open(0),
            charges: vec![ChargeTotal::default(); rule_count],
            bytes: 0,
            reads: 0,
            requests: 0,
        });
        for (meter, total) in self.meters.iter_mut().zip(&mut part.charges) {
            total.add(meter.pass(request.into()), request.is_write);
        }
        part.bytes += request.bytes;
        part.reads += u64::from(!request.is_write);
        part.requests += 1;
    }

    /// Ends the current part.
    pub(super) fn end_part(&mut self, arrivals: PartArrivals, duration_ns: u64) {
        let rule_count = self.load.rules.len();
        let mut part = self.open_part.take().unwrap_or_else(|| LoadPart {
            duration_ns,
            arrivals,
            // A part without requests is charged nothing.
            charges: vec![ChargeTotal::default(); rule_count],
            bytes: 0,
            reads: 0,
            requests: 0,
        });
        (part.arrivals, part.duration_ns) = (arrivals, duration_ns);
        self.load.parts.push(part);
    }

    /// Ends the current part, whose requests arrived during it.
    pub(super) fn end_part_of_trace(&mut self, duration_ns: u64) {
        let requests = self.open_part.as_ref().map_or(0, |part| part.requests);
        self.end_part(open_arrivals(requests, duration_ns), duration_ns);
    }

    /// Ends the last part of a trace, whose requests arrived during less than `part_ns`: it is
    /// lengthened by the part before it.
    pub(super) fn end_short_part(&mut self, duration_ns: u64, part_ns: u64) {
        let before = match self.load.parts.last_mut() {
            None => return self.end_part_of_trace(duration_ns),
            Some(gap) if gap.requests == 0 => {
                gap.duration_ns -= part_ns - duration_ns;
                return self.end_part_of_trace(part_ns);
            }
            Some(before) => before,
        };
        before.duration_ns += duration_ns;
        if let Some(part) = self.open_part.take() {
            before.bytes += part.bytes;
            before.reads += part.reads;
            before.requests += part.requests;
            for (total, added) in before.charges.iter_mut().zip(&part.charges) {
                total.add_total(added);
            }
        }
        before.arrivals = open_arrivals(before.requests, before.duration_ns);
    }

    /// Returns the load, whose last part was ended.
    pub(super) fn finish(self) -> VolumeLoad {
        self.load
    }
}

fn open_arrivals(requests: u64, duration_ns: u64) -> PartArrivals {
    let rate = u128::from(requests) * NANOREQUESTS * u128::from(NS_PER_S);
    PartArrivals::Open(rate / u128::from(duration_ns.max(1)))
}

impl VolumeLoad {
    /// Returns the name of the job file or the trace.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the duration of one repetition in nanoseconds.
    pub(super) fn duration_ns(&self) -> u64 {
        let durations = self.parts.iter().map(|part| part.duration_ns);
        durations.fold(0, u64::saturating_add)
    }

    /// Returns the charges of a part by these rules.
    ///
    /// # Panics
    ///
    /// When the load was built for other rules.
    pub(super) fn charges(&self, part: &LoadPart, rules: ChargeRules) -> ChargeTotal {
        let index = self.rules.iter().position(|known| *known == rules);
        part.charges[index.expect("rules of the load")]
    }

    /// Returns the arrivals of a part on a volume with this service time.
    pub(super) fn arrivals(part: &LoadPart, service_ns: u64) -> FluidArrivals {
        match part.arrivals {
            PartArrivals::Closed(depth) => FluidArrivals::Closed { depth, service_ns },
            PartArrivals::Open(nanorequests_per_s) => FluidArrivals::Open { nanorequests_per_s },
        }
    }

    /// Reports whether requests arrive at a rate of their own.
    pub(super) fn is_open(&self) -> bool {
        let mut parts = self.parts.iter();
        parts.all(|part| matches!(part.arrivals, PartArrivals::Open(_)))
    }

    /// Returns the smallest size of a volume that holds the data, in GiB.
    pub(super) fn size_gib_min(&self) -> u64 {
        self.data_bytes.div_ceil(GIB).max(1)
    }

    /// Describes the load, repeated until `total_ns`.
    pub(super) fn describe(&self, total_ns: u64) -> LoadFigures {
        let seconds = |ns: u64| ns as f64 / NS_PER_S as f64;
        let (mut arrived, mut iops_max, mut depth) = (0.0, 0.0_f64, 0);
        let (mut requests, mut bytes, mut reads) = (0.0, 0.0, 0.0);
        for part in &self.parts {
            let weight = match part.arrivals {
                PartArrivals::Open(rate) => {
                    let rate = rate as f64 / NANOREQUESTS as f64;
                    iops_max = iops_max.max(rate);
                    arrived += rate * seconds(part.duration_ns);
                    rate * seconds(part.duration_ns)
                }
                PartArrivals::Closed(of_part) => {
                    depth = depth.max(of_part);
                    f64::from(of_part) * seconds(part.duration_ns)
                }
            };
            let counted = part.requests.max(1) as f64;
            requests += weight;
            bytes += weight * part.bytes as f64 / counted;
            reads += weight * part.read_share();
        }
        let is_open = self.is_open();
        LoadFigures {
            name: self.name.clone(),
            is_open,
            duration_s: seconds(self.duration_ns()),
            total_s: seconds(total_ns),
            iops_mean: is_open.then(|| arrived / seconds(self.duration_ns().max(1))),
            iops_max: is_open.then_some(iops_max),
            depth: (!is_open).then_some(depth),
            bytes_mean: bytes / f64::max(requests, f64::MIN_POSITIVE),
            read_share: reads / f64::max(requests, f64::MIN_POSITIVE),
            size_gib_min: self.size_gib_min(),
            notes: self.notes.clone(),
        }
    }
}
