//! Reads of unwritten data on a modelled flash drive, which answers them with zeroes and without
//! its dies.

use super::cliff::FLASH_UNIT_BYTES;
use diskperf_timeline::{FlashTraffic, Repetition};

/// Returns the share (0 to 1) of the read bytes that were never written. `None` where all of them
/// were, nothing is read, or the drive is no modelled flash drive.
pub fn unwritten_share<'a>(repetitions: impl IntoIterator<Item = &'a Repetition>) -> Option<f64> {
    let (mut unwritten_bytes, mut read_bytes) = (0, 0);
    for one in repetitions {
        let units = |of: &FlashTraffic| of.unwritten_read_units;
        unwritten_bytes += one.flash_traffic.iter().map(units).sum::<u64>() * FLASH_UNIT_BYTES;
        read_bytes += one.sum_over_workers(|worker| worker.read_bytes);
    }
    let is_some = unwritten_bytes > 0 && read_bytes > 0;
    is_some.then(|| (unwritten_bytes as f64 / read_bytes as f64).min(1.0))
}
