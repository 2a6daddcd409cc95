//! Where the time of one read call goes, from `seqread` over several layers.
//!
//! Each layer does what the one below it does and something more, so that
//! differences of mean times per call are times of parts. What may be derived:
//!
//! | part | from | what it is |
//! |---|---|---|
//! | [`CallPart::Call`] | `null` | entry into the kernel and back, the way to the driver, the timing and the program's loop; `/dev/null` returns no byte |
//! | [`CallPart::Clear`] | `zero` - `null` | filling the buffer. `/dev/zero` clears memory and reads none, so this is *not* the copy; it is a floor under it |
//! | [`CallPart::LookUpAndCopy`] | `cached` - `null` | finding the pages in the cache and copying them out. The two happen in turn, page by page, and no layer separates them |
//! | [`CallPart::MissHandling`] | CPU of `dropped` - CPU of `cached` | what a miss costs the CPU: page allocation, read-ahead, file system map, block layer, driver |
//! | [`CallPart::KernelPath`] | CPU of the layer - CPU of `null` | the same for a layer that no cached layer stands below: all that the kernel does beyond the bare call |
//! | [`CallPart::DeviceWait`] | elapsed - CPU, less the same of the layer below | waiting for the device. Read-ahead hides part of the device's time behind the CPU's, so this is what is left to wait for, not the device's service time |
//!
//! Means are used and not medians because means add: the parts of a row sum to
//! its total. Interrupts are charged to whoever runs when they come, so on a
//! busy machine some of the driver's work is missing from the CPU parts and
//! shows as waiting. A part is *told apart* from nothing if the 95 % interval
//! of its difference (Welch's t, widened for drift) lies above zero; one that
//! is not keeps its value, which may be negative, and is marked as such.

use crate::cache::CacheVerdict;
use crate::statistics::student::{mean_interval, welch_interval};
use crate::statistics::{CONFIDENCE, drift, mean};
use crate::summary::{cpu_per_call_ns, elapsed_per_call_ns};
use diskperf_timeline::{ProgramResult, Repetition};
use serde::{Serialize, Serializer};

/// The program whose results are decomposed.
pub const PROGRAM: &str = "seqread";

/// What `seqread` reads, and through what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// `/dev/null`.
    Null,
    /// `/dev/bnull`, a block device of length 0.
    BlockNull,
    /// `/dev/zero`.
    Zero,
    /// A file in the page cache.
    Cached,
    /// A cached file after its pages were dropped.
    Dropped,
    /// A file with O_DIRECT.
    Direct,
    /// A block device through the page cache.
    Device,
    /// A block device with O_DIRECT.
    DeviceDirect,
}

impl Layer {
    const ALL: [Self; 8] = [
        Self::Null,
        Self::BlockNull,
        Self::Zero,
        Self::Cached,
        Self::Dropped,
        Self::Direct,
        Self::Device,
        Self::DeviceDirect,
    ];

    /// Its name as a parameter.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::BlockNull => "bnull",
            Self::Zero => "zero",
            Self::Cached => "cached",
            Self::Dropped => "dropped",
            Self::Direct => "direct",
            Self::Device => "device",
            Self::DeviceDirect => "device_direct",
        }
    }

    /// The layer of a result; `None` if the program is not `seqread`.
    pub fn of(result: &ProgramResult) -> Option<Self> {
        let name = result.parameters.get("layer")?;
        let layer = Self::ALL.into_iter().find(|layer| layer.name() == name)?;
        (result.program == PROGRAM).then_some(layer)
    }

    /// Whether its bytes lie on storage at all.
    pub fn has_storage(self) -> bool {
        !matches!(self, Self::Null | Self::BlockNull | Self::Zero)
    }
}

impl Serialize for Layer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A part of a call's time; the module says what each is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallPart {
    /// The bare call.
    Call,
    /// Filling the buffer with zeros.
    Clear,
    /// Page cache look-up and copy.
    LookUpAndCopy,
    /// What a cache miss costs the CPU.
    MissHandling,
    /// All CPU beyond the bare call.
    KernelPath,
    /// Waiting for the device.
    DeviceWait,
}

/// How long a part takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The part.
    pub part: CallPart,
    /// Mean nanoseconds per call; negative where the noise exceeds the part.
    pub ns: f64,
    /// Half the width of its 95 % interval; absent of single repetitions.
    pub half_width_ns: Option<f64>,
    /// Whether it is told apart from nothing. A positive part of single
    /// repetitions, whose noise is not known, is taken at its word.
    pub told_apart: bool,
}

impl Estimate {
    fn new(part: CallPart, ns: f64, half_width_ns: Option<f64>) -> Self {
        Self {
            part,
            ns,
            half_width_ns,
            told_apart: ns > half_width_ns.unwrap_or(0.0),
        }
    }

    /// The mean of one sample. `None` of no values.
    fn of(part: CallPart, sample: &[f64]) -> Option<Self> {
        let half_width = mean_interval(sample, CONFIDENCE)
            .map(|(center, _, high)| (high - center) * drift::widening(&[sample]));
        Some(Self::new(part, mean(sample)?, half_width))
    }

    /// The difference of two means. `None` if either has no values.
    fn difference(part: CallPart, upper: &[f64], lower: &[f64]) -> Option<Self> {
        let half_width = welch_interval(lower, upper, CONFIDENCE)
            .map(|(center, _, high)| (high - center) * drift::widening(&[lower, upper]));
        Some(Self::new(part, mean(upper)? - mean(lower)?, half_width))
    }
}

/// One layer at one call size, taken apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decomposition {
    /// The layer.
    pub layer: Layer,
    /// Bytes that a call asks for.
    pub call_bytes: u64,
    /// The file system or device, as in the result.
    pub filesystem: String,
    /// Mean nanoseconds per call, which the parts sum to.
    pub total_ns: f64,
    /// The parts, in the order of [`CallPart`].
    pub parts: Vec<Estimate>,
}

/// Takes apart every `seqread` result that has a `null` result of the same
/// call size beside it, ordered by layer and call size.
///
/// One whose bytes came from elsewhere than its layer says (see
/// [`CacheVerdict::is_fault`]) is left out, and is no part of another one
/// either: its time is not that of its layer.
pub fn decompose(results: &[&ProgramResult]) -> Vec<Decomposition> {
    let samples: Vec<Sample> = results
        .iter()
        .filter(|one| !CacheVerdict::of(one).is_fault())
        .filter_map(|one| Sample::of(one))
        .collect();
    let mut found: Vec<_> = samples
        .iter()
        .filter_map(|sample| sample.decompose(&samples))
        .collect();
    found.sort_by_key(|one| (one.layer, one.call_bytes));
    found
}

/// Nanoseconds per call of every kept repetition of one result.
struct Sample<'a> {
    layer: Layer,
    call_bytes: u64,
    filesystem: &'a str,
    elapsed: Vec<f64>,
    cpu: Vec<f64>,
    /// Elapsed less CPU.
    waiting: Vec<f64>,
}

impl<'a> Sample<'a> {
    fn of(result: &'a ProgramResult) -> Option<Self> {
        let per_call = |figure: fn(&Repetition) -> Option<f64>| -> Vec<f64> {
            result.kept().filter_map(figure).collect()
        };
        let elapsed = per_call(elapsed_per_call_ns);
        let cpu = per_call(cpu_per_call_ns);
        let waiting = elapsed
            .iter()
            .zip(&cpu)
            .map(|(all, cpu)| all - cpu)
            .collect();
        Some(Self {
            layer: Layer::of(result)?,
            call_bytes: result.parameters.get("call_bytes")?.parse().ok()?,
            filesystem: &result.filesystem,
            elapsed,
            cpu,
            waiting,
        })
    }

    /// The sample of another layer at the same call size, on the same file
    /// system if there are several.
    fn beside<'s>(&self, samples: &'s [Self], layer: Layer) -> Option<&'s Self> {
        samples
            .iter()
            .filter(|other| other.layer == layer && other.call_bytes == self.call_bytes)
            .max_by_key(|other| other.filesystem == self.filesystem)
    }

    fn decompose(&self, samples: &[Self]) -> Option<Decomposition> {
        let null = self.beside(samples, Layer::Null)?;
        let mut parts = vec![Estimate::of(CallPart::Call, &null.elapsed)?];
        let cached = self.beside(samples, Layer::Cached);
        let mut part = |part: CallPart, upper: &[f64], lower: &[f64]| {
            parts.push(Estimate::difference(part, upper, lower)?);
            Some(())
        };
        match (self.layer, cached) {
            (Layer::Null, _) => return None,
            (Layer::BlockNull, _) => part(CallPart::LookUpAndCopy, &self.elapsed, &null.elapsed)?,
            (Layer::Zero, _) => part(CallPart::Clear, &self.elapsed, &null.elapsed)?,
            (Layer::Cached, _) => part(CallPart::LookUpAndCopy, &self.elapsed, &null.elapsed)?,
            (Layer::Dropped, Some(cached)) => {
                part(CallPart::LookUpAndCopy, &cached.elapsed, &null.elapsed)?;
                part(CallPart::MissHandling, &self.cpu, &cached.cpu)?;
                part(CallPart::DeviceWait, &self.waiting, &cached.waiting)?;
            }
            (Layer::Dropped | Layer::Direct | Layer::Device | Layer::DeviceDirect, _) => {
                part(CallPart::KernelPath, &self.cpu, &null.cpu)?;
                part(CallPart::DeviceWait, &self.waiting, &null.waiting)?;
            }
        }
        Some(Decomposition {
            layer: self.layer,
            call_bytes: self.call_bytes,
            filesystem: self.filesystem.to_owned(),
            total_ns: mean(&self.elapsed)?,
            parts,
        })
    }
}

#[cfg(test)]
mod tests;
