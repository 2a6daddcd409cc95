//! Caps on the rate of storage: those of cloud volumes, of their instances and of control groups, told
//! from slow devices by the windows of a probe.
//!
//! A cap gives the same rate at twice the depth. It gives the same rate of requests at twice the size,
//! or the same rate of bytes. Its rate is regular: a window differs from the next by less than chance
//! makes the completions of a device differ. Where a single request at a low rate is answered sooner
//! than the rate allows, the storage could do more, and the limit is surely not that of a slow device.

mod burst;
mod description;
mod evidence;
mod rows;

pub use description::{describe_caps, describe_row, describe_side};
pub use rows::{RowCap, find_row_cap, is_probe, recognise_result};

use crate::statistics::{ConfidenceInterval, median, median_interval};
use burst::BurstStep;
use diskperf_timeline::{CapProbe, KnownLimit, ProbeWindow, ProbedLoad};
use evidence::{ConstantRatio, Regularity};
use serde::Serialize;

/// Shortest time of all windows from which a cap is recognised, in seconds. Volumes give up to twice
/// their rate in the first second, and 15 % more in the first 20 s.
pub const WINDOWS_S_MIN: f64 = 30.0;

/// Share of a processor that a load generator may use: with more, it could not submit three times
/// the rate.
pub const GENERATOR_SHARE_MAX: f64 = 1.0 / 3.0;

/// Share by which a measured rate may differ from a known limit that explains it.
pub const KNOWN_LIMIT_TOLERANCE: f64 = 0.03;

/// Unit that a cap counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CappedUnit {
    /// Requests, whatever their size.
    Requests,
    /// Bytes, in requests of any size.
    Bytes,
}

impl CappedUnit {
    /// Returns the rate of a window in this unit per second.
    fn rate(self, window: &ProbeWindow) -> f64 {
        match self {
            Self::Requests => window.requests_per_s,
            Self::Bytes => window.requests_per_s * window.mean_bytes(),
        }
    }
}

/// Cap that a probe recognised.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cap {
    /// Unit that the cap counts.
    pub unit: CappedUnit,
    /// Rate of the cap in its unit per second; after the end of a burst, the base rate.
    pub per_s: f64,
    /// 95 % interval of the rate.
    pub interval: Option<ConfidenceInterval>,
    /// Whether a known limit has the rate, or single requests are answered faster than the rate allows,
    /// which excludes a slow device with one server. If not, the storage only behaves as if it had a
    /// limit.
    pub is_certain: bool,
    /// Median response time of single requests at a tenth of the rate, in microseconds.
    pub unloaded_us: Option<f64>,
    /// Burst that ended during the probe; `None` if none did.
    pub ended_burst: Option<EndedBurst>,
    /// Burst that has not ended as far as is known.
    pub outlook: CapOutlook,
    /// Known limit with this rate; `None` if no known limit has it.
    pub owner: Option<KnownLimit>,
}

/// Burst that ended during a probe.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EndedBurst {
    /// Rate before the end, in the unit of the cap per second.
    pub burst_per_s: f64,
    /// Time of the end in seconds from the start of the load.
    pub end_s: f64,
    /// Credits that were used until then, in the unit of the cap.
    pub credits: f64,
}

/// Knowledge about a burst that may stand behind a cap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "outlook", rename_all = "snake_case")]
pub enum CapOutlook {
    /// The owner of the cap has a formula: full credits last for a time, and then a base rate holds.
    Burst {
        /// Time in seconds for which full credits last at the rate of the cap.
        full_credits_s: f64,
        /// Rate after the credits have ended, in the unit of the cap per second.
        base_per_s: f64,
    },
    /// The formula of the owner has no credits, or the burst has ended.
    Steady,
    /// No formula is known. The time at the rate of the cap excludes small buckets only.
    Excluded {
        /// Base rate for which the bucket is calculated: a tenth of the rate of the cap.
        base_per_s: f64,
        /// Buckets of fewer credits are excluded, in the unit of the cap.
        credits_min: f64,
    },
}

/// Verdict on a probe.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum CapVerdict {
    /// The storage has a cap, or behaves as if it had one.
    Capped(Box<Cap>),
    /// No cap was recognised.
    NotCapped {
        /// Reason why no cap was recognised.
        #[serde(flatten)]
        reason: NoCapReason,
    },
}

/// Reason why no cap was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum NoCapReason {
    /// The windows are too short or too few.
    TooShort {
        /// Time of all windows in seconds.
        windows_s: f64,
    },
    /// The load generator uses too much of a processor to submit three times the rate.
    GeneratorBound {
        /// Share of a processor that the load generator used.
        processor_share: f64,
    },
    /// Twice the depth gives another rate.
    DepthMatters {
        /// Rate at twice the depth divided by the rate at the probed depth.
        ratio: f64,
    },
    /// Twice the size changes the rates of requests and of bytes.
    SizeMatters {
        /// Rate of requests at twice the size divided by that at the probed size.
        ratio: f64,
    },
    /// Windows of the same load differ as those of a device do.
    Irregular {
        /// Share of the windows within 1 % of their median.
        share_near_median: f64,
        /// Variance of the counts divided by their mean; 1 for completions that are independent of
        /// each other.
        dispersion: f64,
    },
    /// The ratios vary so much that neither a cap nor a difference shows.
    Noisy,
}

/// Observations on which the verdict rests.
#[derive(Clone, Copy, Debug)]
pub struct CapObservations<'a> {
    /// Windows of the probe.
    pub probe: &'a CapProbe,
    /// Share of a processor that the load generator used; `None` on a model.
    pub processor_share: Option<f64>,
    /// Limits that are known without a measurement.
    pub known_limits: &'a [KnownLimit],
}

/// Judges the observations of a probe.
pub fn recognise_cap(observed: CapObservations<'_>) -> CapVerdict {
    match judge_probe(observed) {
        Ok(cap) => CapVerdict::Capped(Box::new(cap)),
        Err(reason) => CapVerdict::NotCapped { reason },
    }
}

fn judge_probe(observed: CapObservations<'_>) -> Result<Cap, NoCapReason> {
    let CapObservations {
        probe,
        processor_share,
        known_limits,
    } = observed;
    let windows = &probe.windows;
    let windows_s: f64 = windows.iter().map(|one| one.duration.seconds()).sum();
    if windows_s < WINDOWS_S_MIN {
        return Err(NoCapReason::TooShort { windows_s });
    }
    if let Some(processor_share) = processor_share.filter(|share| *share > GENERATOR_SHARE_MAX) {
        return Err(NoCapReason::GeneratorBound { processor_share });
    }
    check_depth(windows)?;
    let unit = find_unit(windows)?;
    let step = BurstStep::find(windows, unit);
    let (before, after) = windows.split_at(step.map_or(0, |step| step.first_after));
    for part in [before, after].iter().filter(|part| !part.is_empty()) {
        Regularity::measure(part, unit).require()?;
    }
    let rates: Vec<f64> = after.iter().map(|one| unit.rate(one)).collect();
    let per_s = median(&rates).ok_or(NoCapReason::TooShort { windows_s })?;
    let ended_burst = step.map(|step| step.describe_end(windows, unit, per_s));
    let owner = find_owner(known_limits, probe.write_share, (unit, per_s));
    let unloaded = probe.unloaded.latency_count() > 0;
    let unloaded_s = unloaded.then(|| probe.unloaded.percentile(50.0).seconds());
    let requests_per_s = match unit {
        CappedUnit::Requests => per_s,
        CappedUnit::Bytes => per_s / probe.block_bytes as f64,
    };
    Ok(Cap {
        unit,
        per_s,
        interval: median_interval(&rates),
        is_certain: owner.is_some() || unloaded_s.is_some_and(|time| time * requests_per_s < 1.0),
        unloaded_us: unloaded_s.map(|time| time * 1e6),
        ended_burst,
        outlook: foresee_burst(windows, (unit, per_s), (owner.as_ref(), step.is_some())),
        owner,
    })
}

fn check_depth(windows: &[ProbeWindow]) -> Result<(), NoCapReason> {
    match ConstantRatio::judge(windows, ProbedLoad::DoubleDepth, CappedUnit::Requests) {
        ConstantRatio::Same => Ok(()),
        ConstantRatio::Other(ratio) => Err(NoCapReason::DepthMatters { ratio }),
        ConstantRatio::Unknown => Err(NoCapReason::Noisy),
    }
}

/// Returns the unit whose rate is the same at twice the size.
fn find_unit(windows: &[ProbeWindow]) -> Result<CappedUnit, NoCapReason> {
    let judge = |unit| ConstantRatio::judge(windows, ProbedLoad::DoubleSize, unit);
    match (judge(CappedUnit::Requests), judge(CappedUnit::Bytes)) {
        (ConstantRatio::Same, _) => Ok(CappedUnit::Requests),
        (_, ConstantRatio::Same) => Ok(CappedUnit::Bytes),
        (ConstantRatio::Other(ratio), ConstantRatio::Other(_)) => {
            Err(NoCapReason::SizeMatters { ratio })
        }
        _ => Err(NoCapReason::Noisy),
    }
}

/// Finds the known limit with a rate, if one of the same unit and direction has it.
fn find_owner(
    known_limits: &[KnownLimit],
    write_share: f64,
    (unit, per_s): (CappedUnit, f64),
) -> Option<KnownLimit> {
    let is_near = |rate: f64| (per_s / rate - 1.0).abs() <= KNOWN_LIMIT_TOLERANCE;
    let mut known = known_limits.iter();
    let owner = known.find(|limit| {
        limit.counts_bytes == (unit == CappedUnit::Bytes)
            && (limit.covers_reads || write_share == 1.0)
            && (limit.covers_writes || write_share == 0.0)
            && (is_near(limit.per_s) || limit.base_per_s.is_some_and(is_near))
    });
    owner.cloned()
}

fn foresee_burst(
    windows: &[ProbeWindow],
    (unit, per_s): (CappedUnit, f64),
    (owner, has_ended): (Option<&KnownLimit>, bool),
) -> CapOutlook {
    if has_ended {
        return CapOutlook::Steady;
    }
    if let Some(owner) = owner {
        return match (owner.base_per_s, owner.credits) {
            (Some(base_per_s), Some(credits))
                if per_s > base_per_s * (1.0 + KNOWN_LIMIT_TOLERANCE) =>
            {
                CapOutlook::Burst {
                    full_credits_s: credits / (per_s - base_per_s),
                    base_per_s,
                }
            }
            _ => CapOutlook::Steady,
        };
    }
    let base_per_s = per_s / 10.0;
    let last = windows.last().map(|last| {
        let served = match unit {
            CappedUnit::Requests => last.work_before.requests + last.work.requests,
            CappedUnit::Bytes => last.work_before.bytes + last.work.bytes,
        };
        served as f64 - base_per_s * (last.start + last.duration).seconds()
    });
    CapOutlook::Excluded {
        base_per_s,
        credits_min: last.unwrap_or(0.0).max(0.0),
    }
}

#[cfg(test)]
pub(crate) mod tests;
