//! Main activity of each die in equal slices of time.

use diskperf_timeline::trace::DieBusyPeriod;
use diskperf_timeline::{DieBusy, Nanoseconds};

/// Number of time slices into which a picture of dies is divided.
pub(super) const SLICES_PER_DIE: usize = 160;

/// Number of steps in which a picture shows the busy share of a die.
pub(super) const BUSY_LEVEL_COUNT: u32 = 4;

/// Consecutive time slices of one die with the same main activity and busy share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DieSlice {
    pub(super) die: u32,
    pub(super) activity: DieBusy,
    pub(super) busy_level: u32,
    pub(super) first_slice: usize,
    /// Time slice after the end of the sequence.
    pub(super) last_slice: usize,
}

/// Divides a time range into slices for each die, and joins neighbouring slices that are equal.
pub(super) fn slice_die_activities<'k>(
    kept: impl Iterator<Item = &'k DieBusyPeriod>,
    (from, until): (Nanoseconds, Nanoseconds),
    dies: u32,
) -> Vec<DieSlice> {
    let length = (until.since(from).0 as f64 / SLICES_PER_DIE as f64).max(1.0);
    let mut busy = vec![[0.0; DieBusy::ALL.len()]; SLICES_PER_DIE * dies as usize];
    for one in kept {
        let place = |at: Nanoseconds| (at.since(from).0 as f64 / length).min(SLICES_PER_DIE as f64);
        let (mut at, end) = (place(one.busy_start), place(one.busy_end));
        while at < end {
            let stretch = (at as usize).min(SLICES_PER_DIE - 1);
            let next = end.min((stretch + 1) as f64);
            busy[one.die_index as usize * SLICES_PER_DIE + stretch][one.busy_with as usize] +=
                next - at;
            at = next;
            if stretch == SLICES_PER_DIE - 1 {
                break;
            }
        }
    }
    let mut stretches: Vec<DieSlice> = Vec::new();
    for (place, busy) in busy.iter().enumerate() {
        let share: f64 = busy.iter().sum();
        let step = (share * f64::from(BUSY_LEVEL_COUNT))
            .round()
            .min(f64::from(BUSY_LEVEL_COUNT)) as u32;
        let most = DieBusy::ALL.into_iter();
        let most = most.max_by(|a, b| busy[*a as usize].total_cmp(&busy[*b as usize]));
        let Some(by) = most.filter(|_| step > 0) else {
            continue;
        };
        let (die, first) = ((place / SLICES_PER_DIE) as u32, place % SLICES_PER_DIE);
        match stretches.last_mut() {
            Some(before)
                if (
                    before.die,
                    before.activity,
                    before.busy_level,
                    before.last_slice,
                ) == (die, by, step, first) =>
            {
                before.last_slice += 1;
            }
            _ => stretches.push(DieSlice {
                die,
                activity: by,
                busy_level: step,
                first_slice: first,
                last_slice: first + 1,
            }),
        }
    }
    stretches
}
