//! Summary of a trace, computed in one pass and in memory that does not grow with the trace.

mod arrivals;
mod depth;
mod histogram;
mod locality;
mod reuse;
mod stack;
mod stamps;

pub use arrivals::{ArrivalSummary, Dispersion};
pub use depth::{ActivityInterval, ActivitySeries, DepthSummary};
pub use histogram::Quantiles;
pub use locality::LocalitySummary;
pub use reuse::{MissRatio, ReuseSummary};
pub use stamps::Resolution;

use crate::record::{DeviceIndex, TraceRecord, TracedOperation};
use arrivals::ArrivalStatistics;
use depth::DepthStatistics;
use histogram::Histogram;
use locality::LocalityStatistics;
use reuse::ReuseStatistics;
use serde::Serialize;
use stamps::IssueTimeStatistics;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a block, for footprints and reuse distances.
pub const REUSE_BLOCK_BYTES: u64 = 4096;
/// Maximum number of blocks that are sampled.
pub const SAMPLED_BLOCKS_MAX: usize = 1 << 16;
/// Maximum number of distinct request sizes that are counted exactly.
const SIZES_MAX: usize = 4096;
const LISTED_SIZES_MAX: usize = 8;
/// Minimum number of block uses that are followed, in addition to [`FOLLOWED_BLOCKS_PER_REQUEST`]: 16 GiB,
/// so that a short trace of long requests is covered.
const FOLLOWED_BLOCKS_MIN: u64 = 1 << 22;
/// Mean number of blocks per request that are followed: 4 MiB, the longest request of most devices.
/// A trace of longer requests would take time out of proportion to its length.
const FOLLOWED_BLOCKS_PER_REQUEST: u64 = 1024;

/// Accumulator of a trace summary.
#[derive(Debug)]
pub struct Summarizer {
    operations: BTreeMap<TracedOperation, RequestTotals>,
    devices: BTreeMap<u32, RequestTotals>,
    last_ns: u64,
    issue_times: IssueTimeStatistics,
    size_frequencies: BTreeMap<u64, u64>,
    size_histogram: Histogram,
    aligned: [u64; 2],
    transfer_count: u64,
    end_bytes_max: u64,
    failed_count: u64,
    arrival_statistics: ArrivalStatistics,
    depth_statistics: DepthStatistics,
    locality_statistics: LocalityStatistics,
    /// Reuse of blocks. `None` once the requests use more blocks than are followed.
    reuse_statistics: Option<ReuseStatistics>,
    response_histograms: BTreeMap<TracedOperation, Histogram>,
    think_time_histogram: Histogram,
}

impl Default for Summarizer {
    fn default() -> Self {
        Self::with_sampled_blocks(SAMPLED_BLOCKS_MAX)
    }
}

impl Summarizer {
    /// Creates an accumulator that samples reuse distances from at most `blocks` blocks.
    pub fn with_sampled_blocks(blocks: usize) -> Self {
        Self {
            operations: BTreeMap::new(),
            devices: BTreeMap::new(),
            last_ns: 0,
            issue_times: IssueTimeStatistics::default(),
            size_frequencies: BTreeMap::new(),
            size_histogram: Histogram::default(),
            aligned: [0; 2],
            transfer_count: 0,
            end_bytes_max: 0,
            failed_count: 0,
            arrival_statistics: ArrivalStatistics::default(),
            depth_statistics: DepthStatistics::new(),
            locality_statistics: LocalityStatistics::default(),
            reuse_statistics: Some(ReuseStatistics::new(blocks.max(1))),
            response_histograms: BTreeMap::new(),
            think_time_histogram: Histogram::default(),
        }
    }

    /// Adds the next request of the trace to the summary.
    pub fn add(&mut self, record: &TraceRecord) {
        let bytes = record.length_bytes;
        self.operations
            .entry(record.operation)
            .or_default()
            .add(bytes);
        self.devices.entry(record.device.0).or_default().add(bytes);
        self.last_ns = self.last_ns.max(record.issued_ns);
        self.issue_times.add(record.issued_ns);
        self.failed_count += u64::from(record.errno != 0);
        self.arrival_statistics.add(record.issued_ns);
        self.depth_statistics.add(record);
        if let Some(response) = record.response_ns() {
            self.response_histograms
                .entry(record.operation)
                .or_default()
                .add(response, 1.0);
        }
        if let Some(think) = record.think_ns {
            self.think_time_histogram.add(think, 1.0);
        }
        if matches!(
            record.operation,
            TracedOperation::Read | TracedOperation::Write
        ) {
            self.add_transfer(record);
        }
    }

    fn add_transfer(&mut self, record: &TraceRecord) {
        let (first, bytes) = (record.offset_bytes, record.length_bytes);
        self.transfer_count += 1;
        self.size_histogram.add(bytes, 1.0);
        if self.size_frequencies.len() < SIZES_MAX || self.size_frequencies.contains_key(&bytes) {
            *self.size_frequencies.entry(bytes).or_default() += 1;
        }
        for (count, unit) in self.aligned.iter_mut().zip([512, 4096]) {
            let is_aligned = first.is_multiple_of(unit) && bytes.is_multiple_of(unit);
            *count += u64::from(is_aligned);
        }
        let end = first.saturating_add(bytes);
        self.end_bytes_max = self.end_bytes_max.max(end);
        self.locality_statistics.add(&TraceRecord {
            length_bytes: end - first,
            ..*record
        });
        let is_write = record.operation == TracedOperation::Write;
        self.add_block_uses(
            record.device,
            first / REUSE_BLOCK_BYTES..end.div_ceil(REUSE_BLOCK_BYTES),
            is_write,
        );
    }

    fn add_block_uses(&mut self, device: DeviceIndex, blocks: Range<u64>, is_write: bool) {
        let Some(reuse) = &mut self.reuse_statistics else {
            return;
        };
        let allowed = FOLLOWED_BLOCKS_PER_REQUEST.saturating_mul(self.transfer_count);
        let touches = blocks.end.saturating_sub(blocks.start);
        if touches > (FOLLOWED_BLOCKS_MIN.saturating_add(allowed)).saturating_sub(reuse.use_count())
        {
            self.reuse_statistics = None;
            return;
        }
        // Devices have spaces of addresses of their own.
        let space = u64::from(device.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) & !((1 << 44) - 1);
        reuse.add_uses(space, blocks, is_write);
    }

    /// Returns the summary. `devices` holds the device names by device index.
    pub fn finish(self, devices: &[String]) -> TraceSummary {
        let mut requests = RequestTotals::default();
        for of in self.operations.values() {
            requests.requests += of.requests;
            requests.bytes += of.bytes;
        }
        let resolution = self.issue_times.finish();
        let coarse_ns = resolution.map_or(0, |of| of.resolution_ns);
        let (depth, series) = self.depth_statistics.finish(self.last_ns, coarse_ns);
        let named = |(number, moved): (&u32, &RequestTotals)| DeviceSummary {
            device: devices
                .get(*number as usize)
                .cloned()
                .unwrap_or_else(|| number.to_string()),
            totals: *moved,
        };
        let mut by_device: Vec<DeviceSummary> = self.devices.iter().map(named).collect();
        by_device.sort_by_key(|of| std::cmp::Reverse(of.totals.requests));
        let share = |count: u64| count as f64 / self.transfer_count.max(1) as f64;
        let mut sizes: Vec<(u64, u64)> = self
            .size_frequencies
            .iter()
            .map(|(k, v)| (*k, *v))
            .collect();
        let size_bytes = size_quantiles(&sizes, self.transfer_count);
        sizes.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        sizes.truncate(LISTED_SIZES_MAX);
        let quantiles = |counts: &Histogram| counts.quantiles();
        TraceSummary {
            totals: requests,
            span_ns: self.last_ns,
            resolution,
            operations: self
                .operations
                .iter()
                .map(|(operation, moved)| OperationSummary {
                    operation: operation.name(),
                    totals: *moved,
                    response_ns: self.response_histograms.get(operation).and_then(quantiles),
                })
                .collect(),
            failed_requests: self.failed_count,
            devices: by_device,
            sizes: sizes
                .into_iter()
                .map(|(bytes, count)| SizeShare {
                    bytes,
                    share: share(count),
                })
                .collect(),
            size_bytes: size_bytes.or_else(|| self.size_histogram.quantiles()),
            size_octaves: self.size_histogram.octave_counts(),
            aligned_512_share: share(self.aligned[0]),
            aligned_4096_share: share(self.aligned[1]),
            end_bytes_max: self.end_bytes_max,
            arrivals: self.arrival_statistics.finish(coarse_ns),
            depth,
            think_ns: self.think_time_histogram.quantiles(),
            locality: self.locality_statistics.finish(),
            reuse: self
                .reuse_statistics
                .map(|reuse| reuse.finish(REUSE_BLOCK_BYTES)),
            series,
        }
    }
}

/// Computes quantiles from sizes in ascending order with their counts. Returns `None` if the counts
/// do not cover all requests, because there are too many sizes.
fn size_quantiles(sizes: &[(u64, u64)], requests: u64) -> Option<Quantiles> {
    let counted: u64 = sizes.iter().map(|(_, count)| count).sum();
    let (most, _) = *sizes.last().filter(|_| counted == requests)?;
    let quantile = |share: f64| {
        let wanted = share * requests as f64;
        let mut below = 0;
        let mut reaches = sizes.iter().filter(|(_, count)| {
            below += count;
            below as f64 >= wanted
        });
        reaches.next().map_or(most, |(bytes, _)| *bytes) as f64
    };
    let told = |share: f64| {
        histogram::is_quantile_determined(share, requests as f64).then(|| quantile(share))
    };
    let sum: f64 = sizes
        .iter()
        .map(|(b, count)| *b as f64 * *count as f64)
        .sum();
    Some(Quantiles {
        mean: sum / requests as f64,
        p50: quantile(0.5),
        p90: told(0.9),
        p99: told(0.99),
        p999: told(0.999),
        value_max: most as f64,
    })
}

impl TracedOperation {
    /// Returns the name of the operation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
            Self::WriteZeroes => "write_zeroes",
        }
    }
}

/// Number of requests and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RequestTotals {
    /// Number of requests in the trace.
    pub requests: u64,
    /// Sum of the lengths of the requests, in bytes.
    pub bytes: u64,
}

impl RequestTotals {
    fn add(&mut self, bytes: u64) {
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Summary of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceSummary {
    /// Totals of all requests.
    #[serde(flatten)]
    pub totals: RequestTotals,
    /// Time from the first issue to the last, in nanoseconds.
    pub span_ns: u64,
    /// Resolution of the times, if it is so coarse that requests share times.
    pub resolution: Option<Resolution>,
    /// Summaries of the requests by operation.
    pub operations: Vec<OperationSummary>,
    /// Number of requests that completed with an error.
    #[serde(rename = "failed")]
    pub failed_requests: u64,
    /// Summaries of the requests by device, the busiest device first.
    pub devices: Vec<DeviceSummary>,
    /// Most frequent sizes of reads and writes.
    pub sizes: Vec<SizeShare>,
    /// Quantiles of the sizes of reads and writes, in bytes.
    pub size_bytes: Option<Quantiles>,
    /// Number of reads and writes by powers of two of their size.
    pub size_octaves: Vec<(u64, f64)>,
    /// Share of reads and writes that begin and end at multiples of 512 bytes.
    pub aligned_512_share: f64,
    /// Share of reads and writes that begin and end at multiples of 4096 bytes.
    pub aligned_4096_share: f64,
    /// End of the highest range that is read or written, in bytes.
    #[serde(rename = "highest_bytes")]
    pub end_bytes_max: u64,
    /// Statistics of the arrivals. `None` for fewer than two requests.
    pub arrivals: Option<ArrivalSummary>,
    /// Statistics of the queue depth. `None` if the trace has no completions.
    pub depth: Option<DepthSummary>,
    /// Quantiles of the pauses before requests in nanoseconds, if the trace has them.
    pub think_ns: Option<Quantiles>,
    /// Locality of reads and writes relative to the previous request.
    pub locality: LocalitySummary,
    /// Reuse of blocks. `None` if requests are too long for their blocks to be followed, on average
    /// above 4 MiB and together above 16 GiB.
    pub reuse: Option<ReuseSummary>,
    /// Time series of the whole trace.
    pub series: ActivitySeries,
}

/// Summary of the requests with one operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperationSummary {
    /// Name of the operation.
    pub operation: &'static str,
    /// Number of requests and their bytes.
    #[serde(flatten)]
    pub totals: RequestTotals,
    /// Quantiles of the response time in nanoseconds, if the trace has completions.
    pub response_ns: Option<Quantiles>,
}

/// Summary of the requests to one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceSummary {
    /// Name of the device.
    pub device: String,
    /// Number of requests and their bytes.
    #[serde(flatten)]
    pub totals: RequestTotals,
}

/// Share of the reads and writes with one request size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SizeShare {
    /// Request size in bytes.
    pub bytes: u64,
    /// Share of reads and writes with this size.
    pub share: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks that were followed, at each request, of requests of so many bytes.
    fn touches(requests: u64, length_bytes: u64) -> Vec<Option<u64>> {
        let mut summarizer = Summarizer::with_sampled_blocks(64);
        let mut after = |number: u64| {
            summarizer.add(&TraceRecord {
                offset_bytes: number * length_bytes % (1 << 60),
                length_bytes,
                ..TraceRecord::issued_at(number)
            });
            summarizer
                .reuse_statistics
                .as_ref()
                .map(ReuseStatistics::use_count)
        };
        (0..requests).map(&mut after).collect()
    }

    #[test]
    fn a_trace_touches_blocks_in_proportion_to_its_requests() {
        for (requests, length_bytes, is_followed) in [
            (300, 4096, true),
            (6000, 4 << 20, true),
            (4, 4 << 30, true),
            (16, 1 << 30, true),
            (17, 1 << 30, false),
            (300, 1 << 49, false),
            (2, 1 << 62, false),
        ] {
            let after = touches(requests, length_bytes);
            let last = after.last().expect("a request");
            assert_eq!(last.is_some(), is_followed, "{requests} of {length_bytes}");
            let wanted = requests * length_bytes.div_ceil(REUSE_BLOCK_BYTES);
            assert!(last.is_none_or(|uses| uses == wanted), "{last:?}");
            for (before, uses) in after.iter().enumerate() {
                let allowed =
                    FOLLOWED_BLOCKS_MIN + FOLLOWED_BLOCKS_PER_REQUEST * (before as u64 + 1);
                assert!(uses.is_none_or(|uses| uses <= allowed));
            }
        }
    }
}
