//! fio's latency histogram: exact bins below 128 ns, then 64 bins per octave.

/// Number of histogram bins.
pub const BIN_COUNT: usize = 1856;

const BIN_BITS: u32 = 6;

/// Returns the histogram bin of a value in ns. The last bin also holds all larger values.
pub fn bin_index(value_ns: u64) -> usize {
    let top = value_ns.checked_ilog2().unwrap_or(0);
    if top <= BIN_BITS {
        return value_ns as usize;
    }
    let dropped = top - BIN_BITS;
    let base = u64::from(dropped + 1) << BIN_BITS;
    let offset = (value_ns >> dropped) & ((1 << BIN_BITS) - 1);
    BIN_COUNT.min((base + offset) as usize + 1) - 1
}

/// Returns the value that fio prints for a histogram bin: its middle, in ns.
///
/// # Panics
///
/// If the bin does not exist.
pub fn bin_value_ns(bin: usize) -> u64 {
    assert!(bin < BIN_COUNT, "bin {bin} of {BIN_COUNT}");
    let bin = bin as u64;
    if bin < 2 << BIN_BITS {
        return bin;
    }
    let dropped = (bin >> BIN_BITS) - 1;
    let base = 1 << (dropped + u64::from(BIN_BITS));
    let place = bin & ((1 << BIN_BITS) - 1);
    base + (((2 * place + 1) << dropped) >> 1)
}

/// Sums value counts by histogram bin. Returns the nonempty bins in ascending order.
pub fn bin_counts(counts: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut bins = std::collections::BTreeMap::new();
    for &(value, count) in counts.iter().filter(|(_, count)| *count > 0) {
        *bins.entry(bin_index(value)).or_insert(0) += count;
    }
    bins.into_iter()
        .map(|(bin, count)| (bin_value_ns(bin), count))
        .collect()
}

/// Computes percentiles by fio's rule: the first histogram bin at which the required number of
/// values is reached. A percentile is the middle of a bin, so it may exceed the largest value.
pub fn percentiles(bins: &[(u64, u64)], percents: &[f64]) -> Vec<(f64, u64)> {
    let all: u64 = bins.iter().map(|(_, count)| count).sum();
    let of = |percent: f64| {
        let wanted = percent / 100.0 * all as f64;
        let mut sum = 0;
        let mut reached = bins.iter().filter(|(_, count)| {
            sum += count;
            sum as f64 >= wanted
        });
        let last = bins.last();
        reached.next().or(last).map_or(0, |(value, _)| *value)
    };
    percents
        .iter()
        .map(|&percent| (percent, of(percent)))
        .collect()
}
