//! fio's bins of latencies: exact below 128 ns, then 64 to an octave.

/// How many bins there are.
pub const BINS: usize = 1856;

/// Bins to an octave, as a power of two.
const BITS: u32 = 6;

/// The bin of a value in ns. What is beyond the last bin is in it.
pub fn bin(value_ns: u64) -> usize {
    let top = value_ns.checked_ilog2().unwrap_or(0);
    if top <= BITS {
        return value_ns as usize;
    }
    let dropped = top - BITS;
    let base = u64::from(dropped + 1) << BITS;
    let offset = (value_ns >> dropped) & ((1 << BITS) - 1);
    BINS.min((base + offset) as usize + 1) - 1
}

/// What fio prints for a bin, in ns: its middle.
///
/// # Panics
///
/// If there is no such bin.
pub fn value_ns(bin: usize) -> u64 {
    assert!(bin < BINS, "bin {bin} of {BINS}");
    let bin = bin as u64;
    if bin < 2 << BITS {
        return bin;
    }
    let dropped = (bin >> BITS) - 1;
    let base = 1 << (dropped + u64::from(BITS));
    let place = bin & ((1 << BITS) - 1);
    base + (((2 * place + 1) << dropped) >> 1)
}

/// Values and how often each was seen, as counts of bins: those that have any, ascending.
pub fn binned(counts: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut bins = std::collections::BTreeMap::new();
    for &(value, count) in counts.iter().filter(|(_, count)| *count > 0) {
        *bins.entry(bin(value)).or_insert(0) += count;
    }
    bins.into_iter()
        .map(|(bin, count)| (value_ns(bin), count))
        .collect()
}

/// Percentiles by fio's rule: the first bin with which as many are reached. It may exceed
/// the largest value, which need not be in the middle of its bin.
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
