//! Token bucket in integers: a rate, a size, and a level that never drifts.

/// Picotokens (10^-12 tokens), the unit of levels and costs. A rate in thousandths of a token per
/// second adds a whole number of them in each nanosecond.
pub const PICOTOKENS: u128 = 1_000_000_000_000;

/// Size and refill of a token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketSize {
    /// Refill rate in thousandths of a token per second. At least 1.
    pub rate_milli: u64,
    /// Maximum level in picotokens. A bucket of size 0 paces: each request waits until the one
    /// before it is paid for.
    pub capacity: u128,
    /// Length of the windows at whose starts the tokens of a window arrive together, in
    /// nanoseconds. With 1, tokens arrive continuously.
    pub window_ns: u64,
}

impl BucketSize {
    /// Returns the size of a bucket that paces requests at a rate.
    pub fn pacer(rate_milli: u64) -> Self {
        Self {
            rate_milli,
            capacity: 0,
            window_ns: 1,
        }
    }

    /// Returns the tokens that arrive in a time, in picotokens.
    pub fn refill(&self, duration_ns: u64) -> u128 {
        u128::from(self.rate_milli) * u128::from(duration_ns)
    }
}

/// Returns a number of picotokens as a level. What no level can hold becomes the largest.
fn to_level(picotokens: u128) -> i128 {
    i128::try_from(picotokens).unwrap_or(i128::MAX)
}

/// Level of a debt that was too large to count, and is never paid off.
const ENDLESS_DEBT: i128 = i128::MIN;

/// Token bucket with its level. A request passes when the level covers its cost or the bucket is
/// full, and may leave a debt that later requests wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    size: BucketSize,
    level: i128,
    refilled_at_ns: u64,
}

impl TokenBucket {
    /// Creates a bucket at time zero with a level in picotokens.
    ///
    /// # Panics
    ///
    /// When the rate is 0, because the bucket would never refill.
    pub fn new(size: BucketSize, level: u128) -> Self {
        assert!(size.rate_milli > 0, "a bucket without refill");
        Self {
            size,
            level: to_level(level.min(size.capacity)),
            refilled_at_ns: 0,
        }
    }

    /// Returns the size of the bucket.
    pub fn size(&self) -> BucketSize {
        self.size
    }

    /// Returns the level at a time in picotokens; negative while a debt is open.
    pub fn level_at(&self, now_ns: u64) -> i128 {
        let mut later = self.clone();
        later.refill_until(now_ns);
        later.level.min(to_level(self.size.capacity))
    }

    /// Adds the tokens that arrive until `now_ns`. The bucket holds the tokens of a nanosecond above
    /// its size, so that waits rounded up to nanoseconds lose none.
    pub fn refill_until(&mut self, now_ns: u64) {
        let until = now_ns - now_ns % self.size.window_ns;
        if until <= self.refilled_at_ns {
            return;
        }
        let added = to_level(self.size.refill(until - self.refilled_at_ns));
        let most = to_level(self.size.capacity.saturating_add(self.size.refill(1)));
        if self.level != ENDLESS_DEBT {
            self.level = self.level.saturating_add(added).min(most);
        }
        self.refilled_at_ns = until;
    }

    /// Returns the earliest time from `now_ns` on at which a request of this cost passes; `u64::MAX`
    /// if that is later than time can be counted.
    pub fn ready_at(&self, now_ns: u64, cost: u128) -> u64 {
        let mut later = self.clone();
        later.refill_until(now_ns);
        let needed = to_level(cost.min(self.size.capacity));
        let missing = needed.saturating_sub(later.level);
        if missing <= 0 {
            return now_ns;
        }
        if missing == i128::MAX {
            return u64::MAX;
        }
        let window_tokens = self.size.refill(self.size.window_ns);
        let windows = (missing as u128).div_ceil(window_tokens);
        let wait_ns = windows.saturating_mul(u128::from(self.size.window_ns));
        let ready_ns = wait_ns.saturating_add(u128::from(later.refilled_at_ns));
        u64::try_from(ready_ns).unwrap_or(u64::MAX)
    }

    /// Takes the cost of a request that passes at `now_ns`.
    pub fn take(&mut self, now_ns: u64, cost: u128) {
        self.refill_until(now_ns);
        self.level = match i128::try_from(cost) {
            Ok(cost) => self.level.saturating_sub(cost),
            Err(_) => ENDLESS_DEBT,
        };
    }
}
