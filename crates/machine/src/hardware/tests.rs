//! A drive alone. These fail when a sector of a transfer passes at another time
//! than a transfer that ends with it does.

use super::bench::*;

/// Over ends of tracks and cylinders.
#[test]
fn each_sector_passes_when_a_transfer_up_to_it_ends() {
    let now = Time(12_345_678);
    let (first, count) = (40_u64, 3 * SLOTS_PER_TRACK);
    let mut whole = bench_drive(0);
    whole.transfer_sectors(now, first, count, false);
    let pass = whole.sector_end_times();
    assert_eq!(pass.len(), count as usize);
    for done in 1..=count {
        let ends_at = now
            + bench_drive(0)
                .transfer_sectors(now, first, done, false)
                .total_time();
        assert_eq!(pass[done as usize - 1], ends_at, "after {done} sectors");
        let rest = whole.sector_end_times_after(done);
        assert_eq!(rest, pass[done as usize..]);
    }
}

#[test]
fn a_transfer_that_is_cut_short_has_moved_the_passed_sectors() {
    let now = Time(12_345_678);
    let bytes = |drive: &Mechanism| drive.busy_times().transferred_bytes;
    let mut whole = bench_drive(0);
    whole.transfer_sectors(now, 40, 3 * SLOTS_PER_TRACK, false);
    let pass = whole.sector_end_times();
    for done in [1, 7, 8, 9, 60, 3 * SLOTS_PER_TRACK as usize - 1] {
        let mut cut = bench_drive(0);
        cut.transfer_sectors(now, 40, 3 * SLOTS_PER_TRACK, false);
        cut.truncate_last_transfer(pass[done - 1]);
        assert_eq!(bytes(&cut), 512 * done as u64, "after {done} sectors");
    }
}
