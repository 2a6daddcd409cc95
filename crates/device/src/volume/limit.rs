//! Rate limit with a base rate, and a burst rate for as long as credits last.

use super::bucket::{BucketSize, PICOTOKENS, TokenBucket};
use super::charge::Charge;
use diskperf_spans::VolumeLimit;

/// Rates of reads and of writes, in thousandths of a token per second. A token is an operation or a
/// byte. Reads and writes share a limit; where their rates differ, so do their costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectionRates {
    /// Rate of a load that only reads.
    pub read_milli: u64,
    /// Rate of a load that only writes.
    pub write_milli: u64,
}

impl DirectionRates {
    /// Returns equal rates of reads and writes.
    pub fn equal(milli: u64) -> Self {
        Self {
            read_milli: milli,
            write_milli: milli,
        }
    }

    fn faster(self) -> u64 {
        self.read_milli.max(self.write_milli)
    }
}

/// Burst above the base rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Rate while credits last, in thousandths of a token per second.
    pub rate_milli: u64,
    /// Maximum credits, in tokens.
    pub credits: u64,
    /// Credits at time zero, in tokens.
    pub credits_at_start: u64,
}

/// Specification of a rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitSpecification {
    /// Owner of the limit, and what it counts.
    pub kind: VolumeLimit,
    /// Rates that hold without credits.
    pub base: DirectionRates,
    /// Burst above the base rates; `None` if there is none.
    pub burst: Option<Burst>,
}

/// Enforcement of the highest rate of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacing {
    /// Length of the windows in which a limit counts, in nanoseconds: the tokens of a window arrive
    /// at its start. With 0, the limit spaces requests evenly.
    pub window_ns: u64,
    /// Time for which a limit of the volume keeps unused tokens of its highest rate, in nanoseconds.
    pub slack_ns: u64,
}

/// Token bucket of a limit, and how requests are charged for it.
#[derive(Clone, Debug)]
pub struct LimitBucket {
    /// Limit that the bucket enforces.
    pub kind: VolumeLimit,
    /// Whether the bucket holds the credits of a burst; if not, it enforces the highest rate.
    pub holds_credits: bool,
    /// Level of the bucket.
    pub bucket: TokenBucket,
    base: DirectionRates,
}

impl LimitBucket {
    /// Returns the cost of a request in picotokens. A read of a limit that serves reads at half the
    /// rate of writes costs twice as much as a write. What cannot be counted costs the maximum.
    pub fn cost(&self, charge: Charge, is_write: bool) -> u128 {
        let tokens = match self.kind.is_of_bytes() {
            true => charge.bytes,
            false => charge.operations,
        };
        let own = match is_write {
            true => self.base.write_milli,
            false => self.base.read_milli,
        };
        let of_token = PICOTOKENS * u128::from(self.base.faster()) / u128::from(own);
        u128::from(tokens).saturating_mul(of_token)
    }
}

impl LimitSpecification {
    /// Returns the buckets that enforce the limit: one for the highest rate, and one for the
    /// credits of a burst.
    ///
    /// # Panics
    ///
    /// When a rate is 0.
    pub fn buckets(&self, pacing: Pacing) -> Vec<LimitBucket> {
        let bucket = |holds_credits, size, level| LimitBucket {
            kind: self.kind,
            holds_credits,
            bucket: TokenBucket::new(size, level),
            base: self.base,
        };
        let base = self.base.faster();
        let peak = self.burst.map_or(base, |burst| burst.rate_milli);
        let is_of_volume = matches!(
            self.kind,
            VolumeLimit::VolumeRequests | VolumeLimit::VolumeBytes
        );
        let slack_ns = if is_of_volume { pacing.slack_ns } else { 0 };
        let kept_ns = slack_ns.max(pacing.window_ns);
        let pacer = BucketSize {
            rate_milli: peak,
            capacity: u128::from(peak) * u128::from(kept_ns),
            window_ns: pacing.window_ns.max(1),
        };
        let mut buckets = vec![bucket(false, pacer, pacer.capacity)];
        if let Some(burst) = self.burst {
            let size = BucketSize {
                capacity: u128::from(burst.credits) * PICOTOKENS,
                ..BucketSize::pacer(base)
            };
            let level = u128::from(burst.credits_at_start) * PICOTOKENS;
            buckets.push(bucket(true, size, level));
        }
        buckets
    }
}
