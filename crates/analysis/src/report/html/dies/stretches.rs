//! Main activity of each die in equal slices of time.

use diskperf_timeline::trace::TracedDie;
use diskperf_timeline::{DieBusy, Nanoseconds};

/// Number of time slices into which a picture of dies is divided.
pub(super) const STRETCHES: usize = 160;

/// Number of steps in which a picture shows the busy share of a die.
pub(super) const STEPS: u32 = 4;

/// Consecutive time slices of one die with the same main activity and busy share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stretch {
    pub(super) die: u32,
    pub(super) by: DieBusy,
    /// Busy share of the die over all activities, in steps.
    pub(super) step: u32,
    /// First time slice of the sequence.
    pub(super) first: usize,
    /// Time slice after the end of the sequence.
    pub(super) last: usize,
}

/// Divides a time range into slices for each die, and joins neighbouring slices that are equal.
pub(super) fn of<'k>(
    kept: impl Iterator<Item = &'k TracedDie>,
    (from, until): (Nanoseconds, Nanoseconds),
    dies: u32,
) -> Vec<Stretch> {
    let length = (until.since(from).0 as f64 / STRETCHES as f64).max(1.0);
    let mut busy = vec![[0.0; DieBusy::ALL.len()]; STRETCHES * dies as usize];
    for one in kept {
        let place = |at: Nanoseconds| (at.since(from).0 as f64 / length).min(STRETCHES as f64);
        let (mut at, end) = (place(one.from), place(one.until));
        while at < end {
            let stretch = (at as usize).min(STRETCHES - 1);
            let next = end.min((stretch + 1) as f64);
            busy[one.die as usize * STRETCHES + stretch][one.by as usize] += next - at;
            at = next;
            if stretch == STRETCHES - 1 {
                break;
            }
        }
    }
    let mut stretches: Vec<Stretch> = Vec::new();
    for (place, busy) in busy.iter().enumerate() {
        let share: f64 = busy.iter().sum();
        let step = (share * f64::from(STEPS)).round().min(f64::from(STEPS)) as u32;
        let most = DieBusy::ALL.into_iter();
        let most = most.max_by(|a, b| busy[*a as usize].total_cmp(&busy[*b as usize]));
        let Some(by) = most.filter(|_| step > 0) else {
            continue;
        };
        let (die, first) = ((place / STRETCHES) as u32, place % STRETCHES);
        match stretches.last_mut() {
            Some(before)
                if (before.die, before.by, before.step, before.last) == (die, by, step, first) =>
            {
                before.last += 1;
            }
            _ => stretches.push(Stretch {
                die,
                by,
                step,
                first,
                last: first + 1,
            }),
        }
    }
    stretches
}
