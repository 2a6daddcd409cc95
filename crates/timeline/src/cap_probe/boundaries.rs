//! Boundaries between windows that count completions, so that a window of a cap holds whole batches.
//!
//! A cap may let the requests of 100 ms pass at once and then none. A window that ends within such a
//! batch, or a little before one, is wrong by a whole batch: 10 % in a second. Windows therefore
//! begin and end at completions that follow a long gap, if requests come in batches.

use super::{CompletedWork, ProbeWindow, ProbedLoad};
use crate::Nanoseconds;

/// Share of the time that the gaps between batches take at least. Gaps of a Poisson process that
/// take 70 % of the time are 33 % of its gaps.
const BATCH_GAP_TIME_SHARE_MIN: f64 = 0.7;

/// Share of all gaps that the gaps between batches are at most: a batch has four requests or more.
const BATCH_GAP_COUNT_SHARE_MAX: f64 = 0.25;

/// Points of a window between which its rate is estimated. Batches of 100 ms in a window of a second
/// have ten.
const POINTS_PER_WINDOW: u64 = 16;

/// Gaps of one power of two in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct GapClass {
    count: u64,
    total_ns: u64,
}

/// Recognises the completions at which a window may begin or end.
#[derive(Clone, Debug)]
pub struct WindowBoundaries {
    last_completion: Option<Nanoseconds>,
    gaps: [GapClass; 64],
    batch_gap_ns_min: Option<u64>,
}

impl Default for WindowBoundaries {
    fn default() -> Self {
        Self {
            last_completion: None,
            gaps: [GapClass::default(); 64],
            batch_gap_ns_min: None,
        }
    }
}

impl WindowBoundaries {
    /// Learns from the gaps so far whether requests come in batches, and forgets the gaps.
    pub fn learn_batches(&mut self) {
        let gaps = std::mem::replace(&mut self.gaps, [GapClass::default(); 64]);
        let (mut count, mut total_ns) = (0, 0);
        let all_count: u64 = gaps.iter().map(|class| class.count).sum();
        let all_ns: u64 = gaps.iter().map(|class| class.total_ns).sum();
        let long = (0..64).rev().find(|class: &usize| {
            count += gaps[*class].count;
            total_ns += gaps[*class].total_ns;
            total_ns as f64 >= BATCH_GAP_TIME_SHARE_MIN * all_ns as f64
        });
        let is_batched = count as f64 <= BATCH_GAP_COUNT_SHARE_MAX * all_count as f64;
        self.batch_gap_ns_min = long.filter(|_| is_batched).map(|class| 1 << class);
    }

    /// Counts a completion, and returns the gap before it if a window may begin or end there. The
    /// times must not descend.
    fn accept(&mut self, at: Nanoseconds) -> CompletionGap {
        let gap_ns = self.last_completion.map_or(0, |last| at.since(last).0);
        self.last_completion = Some(at);
        if gap_ns == 0 {
            // Completions that were reaped together cannot be told apart.
            self.gaps[0].count += 1;
            return CompletionGap::None;
        }
        let class = &mut self.gaps[gap_ns.ilog2() as usize];
        class.count += 1;
        class.total_ns += gap_ns;
        match self.batch_gap_ns_min {
            Some(least) if gap_ns < least => CompletionGap::WithinBatch,
            _ => CompletionGap::Boundary,
        }
    }
}

/// Kind of the gap before a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompletionGap {
    /// The completion came together with the one before it.
    None,
    /// The gap lies within a batch.
    WithinBatch,
    /// A window may begin or end here.
    Boundary,
}

/// State of the window that is counted next.
#[derive(Clone, Copy, Debug)]
enum CountedWindow {
    /// The window begins at the first boundary after this number of completions, which were in
    /// flight when the load changed.
    Settling {
        old_requests: u64,
        since: Nanoseconds,
    },
    /// The window has begun.
    Counting(ProbeWindow),
}

/// Counts the completions of a load in windows.
#[derive(Clone, Debug)]
pub struct WindowCounter {
    boundaries: WindowBoundaries,
    window_length: Nanoseconds,
    load_start: Nanoseconds,
    total: CompletedWork,
    load: ProbedLoad,
    state: CountedWindow,
    /// Counts at boundaries within the window.
    points: Vec<CountPoint>,
}

/// Requests of a window that completed before a boundary.
#[derive(Clone, Copy, Debug)]
struct CountPoint {
    at: Nanoseconds,
    requests: u64,
}

impl WindowCounter {
    /// Creates the counter of a load that starts at a time with empty windows. The first window
    /// begins after [`Self::change_load`].
    pub fn new(load_start: Nanoseconds, window_length: Nanoseconds) -> Self {
        Self {
            boundaries: WindowBoundaries::default(),
            window_length,
            load_start,
            total: CompletedWork::default(),
            load: ProbedLoad::Base,
            state: CountedWindow::Settling {
                old_requests: u64::MAX,
                since: load_start,
            },
            points: Vec::new(),
        }
    }

    /// Changes the load of the next window, which begins when the requests that are in flight have
    /// completed.
    pub fn change_load(&mut self, load: ProbedLoad, in_flight: usize, now: Nanoseconds) {
        self.boundaries.learn_batches();
        self.load = load;
        self.state = CountedWindow::Settling {
            old_requests: in_flight as u64,
            since: now,
        };
    }

    /// Counts a completed request, and returns the window that ended before it. The times of
    /// completions must not descend.
    pub fn count_completion(&mut self, at: Nanoseconds, bytes: u64) -> Option<ProbeWindow> {
        let gap = self.boundaries.accept(at);
        let patience = Nanoseconds(self.window_length.0 / 4);
        let is_boundary = |waiting: Nanoseconds| match gap {
            CompletionGap::None => false,
            CompletionGap::Boundary => true,
            CompletionGap::WithinBatch => waiting >= patience,
        };
        let mut ended = None;
        match &mut self.state {
            CountedWindow::Settling {
                old_requests: 0,
                since,
            } => {
                if is_boundary(at.since(*since)) {
                    self.state = CountedWindow::Counting(self.new_window(at, bytes));
                    self.points = vec![CountPoint { at, requests: 0 }];
                }
            }
            CountedWindow::Settling {
                old_requests,
                since,
            } => {
                *old_requests -= 1;
                *since = at;
            }
            CountedWindow::Counting(window) => {
                let requests = window.work.requests;
                let duration = at.since(self.load_start).since(window.start);
                let last = self.points.last().map_or(at, |last| last.at);
                let is_far = at.since(last).0 >= self.window_length.0 / POINTS_PER_WINDOW;
                if gap == CompletionGap::Boundary && is_far {
                    self.points.push(CountPoint { at, requests });
                }
                if duration >= self.window_length && is_boundary(duration.since(self.window_length))
                {
                    let mean = requests as f64 / duration.seconds();
                    ended = Some(ProbeWindow {
                        duration,
                        requests_per_s: estimate_rate(&self.points).unwrap_or(mean),
                        ..*window
                    });
                } else {
                    window.work.count_request(bytes);
                }
            }
        }
        self.total.count_request(bytes);
        ended
    }

    fn new_window(&self, at: Nanoseconds, bytes: u64) -> ProbeWindow {
        let mut work = CompletedWork::default();
        work.count_request(bytes);
        ProbeWindow {
            load: self.load,
            start: at.since(self.load_start),
            duration: Nanoseconds::ZERO,
            requests_per_s: 0.0,
            work,
            work_before: self.total,
        }
    }
}

/// Returns the rate between the points of a window: the median of the slopes of pairs that are at
/// least half of the window apart (Theil and Sen). A point that is late, because its first request
/// took long or the counter was not awake, then does not decide. `None` for fewer than four points.
fn estimate_rate(points: &[CountPoint]) -> Option<f64> {
    let (first, last) = (points.first()?, points.last()?);
    let apart = Nanoseconds(last.at.since(first.at).0 / 2);
    let mut slopes: Vec<f64> = Vec::new();
    for (number, from) in points.iter().enumerate() {
        let far = points[number..]
            .iter()
            .filter(|to| to.at.since(from.at) >= apart);
        slopes.extend(
            far.filter(|to| to.at > from.at)
                .map(|to| (to.requests - from.requests) as f64 / to.at.since(from.at).seconds()),
        );
    }
    slopes.sort_by(f64::total_cmp);
    let middle = slopes.len() / 2;
    (points.len() >= 4).then(|| 0.5 * (slopes[middle] + slopes[(slopes.len() - 1) / 2]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts completions at the given times in microseconds, in windows of a second.
    fn count_windows(times_us: impl Iterator<Item = u64>) -> Vec<ProbeWindow> {
        let mut counter = WindowCounter::new(Nanoseconds::ZERO, Nanoseconds(1_000_000_000));
        let mut windows = Vec::new();
        let mut is_first = true;
        for time_us in times_us {
            let at = Nanoseconds(time_us * 1000);
            if is_first && time_us > 500_000 {
                is_first = false;
                counter.change_load(ProbedLoad::Base, 3, at);
            }
            if let Some(window) = counter.count_completion(at, 4096) {
                windows.push(window);
                counter.change_load(ProbedLoad::Base, 3, at);
            }
        }
        windows
    }

    fn rates(windows: &[ProbeWindow]) -> Vec<f64> {
        windows.iter().map(|one| one.requests_per_s).collect()
    }

    #[test]
    fn a_window_of_evenly_spaced_completions_has_their_exact_rate() {
        let windows = count_windows((0..70).map(|number| number * 70_000));
        assert_eq!(windows.len(), 3);
        for rate in rates(&windows) {
            assert!((rate - 1e6 / 70_000.0).abs() < 1e-9, "{rate}");
        }
        let first = windows[0];
        assert_eq!(first.work_before.requests * 70, first.start.0 / 1_000_000);
    }

    #[test]
    fn windows_hold_whole_batches() {
        // Batches of 37 at intervals of 100 ms; some begin up to 16 ms late.
        let late = |batch: u64| [0, 0, 16_000, 0, 9000][(batch * 7919 % 5) as usize];
        let batches = (0..130).flat_map(|batch| {
            (0..37).map(move |number| batch * 100_000 + late(batch) + number * 300)
        });
        let windows = count_windows(batches);
        assert!(windows.len() > 7, "{}", windows.len());
        for window in &windows {
            assert_eq!(window.work.requests % 37, 0, "{window:?}");
        }
        for rate in rates(&windows) {
            assert!((rate - 370.0).abs() < 370.0 * 0.002, "{rate}");
        }
    }

    #[test]
    fn completions_that_were_reaped_together_are_in_one_window() {
        let windows = count_windows((0..40_000).map(|number| number / 8 * 1000));
        assert!(windows.iter().all(|one| one.work.requests % 8 == 0));
    }
}
