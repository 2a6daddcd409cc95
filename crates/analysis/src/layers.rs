//! Parts of the time of one read call, from `seqread` over several layers.
//!
//! Each layer does the work of the one below it and something more, so that differences of mean
//! times per call are times of parts. These parts follow:
//!
//! | part | from | what it is |
//! |---|---|---|
//! | [`CallPart::SystemCall`] | `null` | entry into the kernel and back, the way to the driver, the timing and the program's loop; `/dev/null` returns no byte |
//! | [`CallPart::ClearBuffer`] | `zero` - `null` | filling the buffer. `/dev/zero` clears memory and reads none, so this is *not* the copy; it is a floor under it |
//! | [`CallPart::LookUpAndCopy`] | `cached` - `null` | finding the pages in the cache and copying them out. The two happen in turn, page by page, and no layer separates them |
//! | [`CallPart::MissHandling`] | CPU of `dropped` - CPU of `cached` | what a miss costs the CPU: page allocation, read-ahead, file system map, block layer, driver |
//! | [`CallPart::KernelPath`] | CPU of the layer - CPU of `null` | the same for a layer that no cached layer stands below: all that the kernel does beyond the bare call |
//! | [`CallPart::DeviceWait`] | elapsed - CPU, less the same of the layer below | waiting for the device. Read-ahead hides part of the device's time behind the CPU's, so this is what is left to wait for, not the device's service time |
//!
//! The parts use means and not medians because means add: the parts of a row sum to its total.
//! The kernel charges an interrupt to the process that runs when it comes, so on a busy machine
//! some of the driver's work is missing from the CPU parts and shows as waiting. A part is
//! significant if the 95 % interval of its difference (Welch's t, widened for drift) lies above
//! zero. An insignificant part keeps its value, which may be negative, and is marked as such.

use crate::cache::CacheVerdict;
use crate::statistics::student::{mean_interval, welch_interval};
use crate::statistics::{CONFIDENCE_LEVEL, drift, mean};
use crate::summary::{cpu_per_call_ns, elapsed_per_call_ns};
use diskperf_timeline::{ProgramResult, Repetition};
use serde::{Serialize, Serializer};

/// Name of the program whose results are decomposed.
pub const SEQREAD_PROGRAM: &str = "seqread";

/// Source that `seqread` reads from, with the layers of the system in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadLayer {
    /// Reads from the null device `/dev/null`.
    Null,
    /// Reads from the block device `/dev/bnull`, of length 0.
    BlockNull,
    /// Reads from the zero device `/dev/zero`.
    ZeroDevice,
    /// Reads of a file in the page cache.
    CachedFile,
    /// Reads of a cached file after its pages were dropped.
    DroppedCache,
    /// Reads of a file with O_DIRECT.
    DirectFile,
    /// Reads of a block device through the page cache.
    BlockDevice,
    /// Reads of a block device with O_DIRECT.
    DirectDevice,
}

impl ReadLayer {
    const ALL: [Self; 8] = [
        Self::Null,
        Self::BlockNull,
        Self::ZeroDevice,
        Self::CachedFile,
        Self::DroppedCache,
        Self::DirectFile,
        Self::BlockDevice,
        Self::DirectDevice,
    ];

    /// Returns the name of the layer as a `seqread` parameter.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::BlockNull => "bnull",
            Self::ZeroDevice => "zero",
            Self::CachedFile => "cached",
            Self::DroppedCache => "dropped",
            Self::DirectFile => "direct",
            Self::BlockDevice => "device",
            Self::DirectDevice => "device_direct",
        }
    }

    /// Returns the layer of a result; `None` if the program is not `seqread`.
    pub fn from_result(result: &ProgramResult) -> Option<Self> {
        let name = result.parameters.get("layer")?;
        let layer = Self::ALL.into_iter().find(|layer| layer.name() == name)?;
        (result.program == SEQREAD_PROGRAM).then_some(layer)
    }

    /// Tests whether the layer reads from storage at all.
    pub fn has_storage(self) -> bool {
        !matches!(self, Self::Null | Self::BlockNull | Self::ZeroDevice)
    }
}

impl Serialize for ReadLayer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Part of a call's time. The module comment explains each part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallPart {
    /// Time of the bare system call.
    #[serde(rename = "call")]
    SystemCall,
    /// Time to fill the buffer with zeros.
    #[serde(rename = "clear")]
    ClearBuffer,
    /// Time to look up pages in the page cache and copy them.
    LookUpAndCopy,
    /// CPU time that a page cache miss adds to a call.
    MissHandling,
    /// CPU time that a call spends in the kernel beyond the bare call.
    KernelPath,
    /// Time that a call waits for the device.
    DeviceWait,
}

/// Estimated time of one part of a call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CostEstimate {
    /// Part of the call whose time is estimated.
    pub part: CallPart,
    /// Mean time per call in nanoseconds; negative where the noise exceeds the part.
    #[serde(rename = "ns")]
    pub mean_ns: f64,
    /// Half the width of the part's 95 % interval in nanoseconds; absent for single repetitions.
    pub half_width_ns: Option<f64>,
    /// Whether the part is significantly above 0. A positive part of single repetitions, whose
    /// noise is unknown, counts as significant.
    #[serde(rename = "told_apart")]
    pub is_distinguished: bool,
}

impl CostEstimate {
    fn new(part: CallPart, ns: f64, half_width_ns: Option<f64>) -> Self {
        Self {
            part,
            mean_ns: ns,
            half_width_ns,
            is_distinguished: ns > half_width_ns.unwrap_or(0.0),
        }
    }

    /// Estimates a part from the mean of one sample; `None` without values.
    fn from_sample(part: CallPart, sample: &[f64]) -> Option<Self> {
        let half_width = mean_interval(sample, CONFIDENCE_LEVEL)
            .map(|interval| (interval.high - interval.center) * drift::widening_factor(&[sample]));
        Some(Self::new(part, mean(sample)?, half_width))
    }

    /// Estimates a part from the difference of two means; `None` if either sample has no values.
    fn from_difference(part: CallPart, upper: &[f64], lower: &[f64]) -> Option<Self> {
        let half_width = welch_interval(lower, upper, CONFIDENCE_LEVEL).map(|interval| {
            (interval.high - interval.center) * drift::widening_factor(&[lower, upper])
        });
        Some(Self::new(part, mean(upper)? - mean(lower)?, half_width))
    }
}

/// Decomposition of one layer's call time, at one call size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decomposition {
    /// Layer of `seqread` that is decomposed.
    pub layer: ReadLayer,
    /// Bytes that each read call requests.
    pub call_bytes: u64,
    /// File system or device, as in the result.
    pub filesystem: String,
    /// Mean time per call of the layer in nanoseconds, to which the parts sum.
    pub total_ns: f64,
    /// Parts of the call time, in the order of [`CallPart`].
    #[serde(rename = "parts")]
    pub cost_estimates: Vec<CostEstimate>,
}

/// Decomposes every `seqread` result that has a `null` result of the same call size beside it,
/// ordered by layer and call size.
///
/// A result whose bytes came from elsewhere than its layer says (see [`CacheVerdict::is_fault`]) is
/// left out, and is not used to decompose another one: its time is not that of its layer.
pub fn decompose(results: &[&ProgramResult]) -> Vec<Decomposition> {
    let samples: Vec<LayerSample> = results
        .iter()
        .filter(|one| !CacheVerdict::from_result(one).is_fault())
        .filter_map(|one| LayerSample::from_result(one))
        .collect();
    let mut found: Vec<_> = samples
        .iter()
        .filter_map(|sample| sample.decompose_sample(&samples))
        .collect();
    found.sort_by_key(|one| (one.layer, one.call_bytes));
    found
}

/// Times per call in nanoseconds for every kept repetition of one result.
struct LayerSample<'a> {
    layer: ReadLayer,
    call_bytes: u64,
    filesystem: &'a str,
    elapsed_ns_per_call: Vec<f64>,
    cpu_ns_per_call: Vec<f64>,
    /// Elapsed time less CPU time, per call in nanoseconds.
    waiting_ns_per_call: Vec<f64>,
}

impl<'a> LayerSample<'a> {
    fn from_result(result: &'a ProgramResult) -> Option<Self> {
        let per_call = |figure: fn(&Repetition) -> Option<f64>| -> Vec<f64> {
            result.kept_repetitions().filter_map(figure).collect()
        };
        let elapsed = per_call(elapsed_per_call_ns);
        let cpu = per_call(cpu_per_call_ns);
        let waiting = elapsed
            .iter()
            .zip(&cpu)
            .map(|(all, cpu)| all - cpu)
            .collect();
        Some(Self {
            layer: ReadLayer::from_result(result)?,
            call_bytes: result.parameters.get("call_bytes")?.parse().ok()?,
            filesystem: &result.filesystem_type,
            elapsed_ns_per_call: elapsed,
            cpu_ns_per_call: cpu,
            waiting_ns_per_call: waiting,
        })
    }

    /// Returns the sample of another layer at the same call size, on the same file system if there
    /// are several.
    fn find_matching_sample<'s>(&self, samples: &'s [Self], layer: ReadLayer) -> Option<&'s Self> {
        samples
            .iter()
            .filter(|other| other.layer == layer && other.call_bytes == self.call_bytes)
            .max_by_key(|other| other.filesystem == self.filesystem)
    }

    fn decompose_sample(&self, samples: &[Self]) -> Option<Decomposition> {
        let null = self.find_matching_sample(samples, ReadLayer::Null)?;
        let mut parts = vec![CostEstimate::from_sample(
            CallPart::SystemCall,
            &null.elapsed_ns_per_call,
        )?];
        let cached = self.find_matching_sample(samples, ReadLayer::CachedFile);
        let mut part = |part: CallPart, upper: &[f64], lower: &[f64]| {
            parts.push(CostEstimate::from_difference(part, upper, lower)?);
            Some(())
        };
        match (self.layer, cached) {
            (ReadLayer::Null, _) => return None,
            (ReadLayer::BlockNull, _) => part(
                CallPart::LookUpAndCopy,
                &self.elapsed_ns_per_call,
                &null.elapsed_ns_per_call,
            )?,
            (ReadLayer::ZeroDevice, _) => part(
                CallPart::ClearBuffer,
                &self.elapsed_ns_per_call,
                &null.elapsed_ns_per_call,
            )?,
            (ReadLayer::CachedFile, _) => part(
                CallPart::LookUpAndCopy,
                &self.elapsed_ns_per_call,
                &null.elapsed_ns_per_call,
            )?,
            (ReadLayer::DroppedCache, Some(cached)) => {
                part(
                    CallPart::LookUpAndCopy,
                    &cached.elapsed_ns_per_call,
                    &null.elapsed_ns_per_call,
                )?;
                part(
                    CallPart::MissHandling,
                    &self.cpu_ns_per_call,
                    &cached.cpu_ns_per_call,
                )?;
                part(
                    CallPart::DeviceWait,
                    &self.waiting_ns_per_call,
                    &cached.waiting_ns_per_call,
                )?;
            }
            (
                ReadLayer::DroppedCache
                | ReadLayer::DirectFile
                | ReadLayer::BlockDevice
                | ReadLayer::DirectDevice,
                _,
            ) => {
                part(
                    CallPart::KernelPath,
                    &self.cpu_ns_per_call,
                    &null.cpu_ns_per_call,
                )?;
                part(
                    CallPart::DeviceWait,
                    &self.waiting_ns_per_call,
                    &null.waiting_ns_per_call,
                )?;
            }
        }
        Some(Decomposition {
            layer: self.layer,
            call_bytes: self.call_bytes,
            filesystem: self.filesystem.to_owned(),
            total_ns: mean(&self.elapsed_ns_per_call)?,
            cost_estimates: parts,
        })
    }
}

#[cfg(test)]
mod tests;
