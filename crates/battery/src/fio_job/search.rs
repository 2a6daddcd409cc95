//! Search for the greatest queue depth at which the latency stays within `latency_target`, in the
//! way of fio.

use diskperf_fio::JobDefinition;
use diskperf_fio::job::LatencyTarget;
use diskperf_timeline::Nanoseconds;
use diskperf_timeline::units::format_nanoseconds;

#[derive(Clone, Debug)]
pub(super) struct DepthSearch {
    latency_target: LatencyTarget,
    /// Maximum queue depth to try (`iodepth`).
    depth_max: u32,
    current_depth: u32,
    /// Greatest depth found within the latency target. `depth_above_target` is the lowest depth that exceeded it.
    depth_within_target: u32,
    depth_above_target: u32,
    /// Consecutive windows in which the depth could not rise.
    stable_windows: u32,
    /// Start of the current window. `window_io_count` and `late_io_count` count the I/Os since then.
    window_start: Nanoseconds,
    window_io_count: u64,
    late_io_count: u64,
    /// Whether the depth was found and a last window measures it.
    is_last_window: bool,
    /// Share of I/Os within the latency target in the last whole window, in percent.
    share_within_percent: f64,
}

/// Step of the queue depth search that follows a completion or the end of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchStep {
    /// Continuation of the current measurement window.
    ContinueWindow,
    /// Start of the next measurement window.
    NextWindow,
    /// Start of the next measurement window once nothing is in flight.
    NextWindowOnceIdle,
    /// Start of the last measurement window once nothing is in flight. All earlier measurements are
    /// discarded.
    LastWindow,
    /// End of the search: the queue depth was found and measured.
    SearchDone,
    /// Failure of the search: queue depth 1 exceeds the latency target although all I/Os must be
    /// within it.
    SearchFailed,
}

impl DepthSearch {
    /// Creates the search of a job, or returns `None` if the job has no `latency_target`.
    pub(super) fn from_job(
        job: &JobDefinition,
        depth_max: u32,
        start: Nanoseconds,
    ) -> Option<Self> {
        (job.latency.target_us > 0).then_some(Self {
            latency_target: job.latency,
            depth_max,
            current_depth: 1,
            depth_within_target: 1,
            depth_above_target: depth_max,
            stable_windows: 0,
            window_start: start,
            window_io_count: 0,
            late_io_count: 0,
            is_last_window: false,
            share_within_percent: 0.0,
        })
    }

    pub(super) fn current_depth(&self) -> u32 {
        self.current_depth
    }

    /// Returns the end of the current measurement window.
    pub(super) fn window_end(&self) -> Nanoseconds {
        self.window_start + Nanoseconds(self.latency_target.window_us.saturating_mul(1000))
    }

    /// Begins a measurement window of the queue depth search.
    pub(super) fn begin_window(&mut self, now: Nanoseconds) {
        (self.window_start, self.window_io_count, self.late_io_count) = (now, 0, 0);
    }

    /// Counts a completed I/O. If all I/Os must be within the latency target, one that exceeds it
    /// ends the window.
    pub(super) fn count_completed(&mut self, response: Nanoseconds) -> SearchStep {
        self.window_io_count += 1;
        if response.0 <= self.latency_target.target_us.saturating_mul(1000) {
            return SearchStep::ContinueWindow;
        }
        self.late_io_count += 1;
        match self.latency_target.percentile >= 100.0 {
            true if self.current_depth == 1 => SearchStep::SearchFailed,
            true => self.lower_depth(),
            false => SearchStep::ContinueWindow,
        }
    }

    /// Evaluates the measurement window if it has ended. A window without completions continues.
    pub(super) fn evaluate_window(&mut self, now: Nanoseconds) -> SearchStep {
        if now < self.window_end() || self.window_io_count == 0 {
            return SearchStep::ContinueWindow;
        }
        self.share_within_percent = 100.0 * (self.window_io_count - self.late_io_count) as f64
            / self.window_io_count as f64;
        match self.share_within_percent >= self.latency_target.percentile {
            true => self.raise_depth(),
            false => self.lower_depth(),
        }
    }

    fn raise_depth(&mut self) -> SearchStep {
        let before = self.current_depth;
        self.depth_within_target = before;
        if before + 1 == self.depth_above_target {
            self.stable_windows += 1;
            if self.stable_windows >= 3 {
                self.depth_above_target += 1;
                self.stable_windows = 0;
            }
        }
        // It doubles until a depth is not within the target.
        self.current_depth = match self.depth_above_target == self.depth_max {
            true => before.saturating_mul(2),
            false => (before + self.depth_above_target) / 2,
        };
        self.current_depth = self.current_depth.min(self.depth_max);
        match (
            self.current_depth == before,
            self.latency_target.keep_running,
        ) {
            (true, false) if self.is_last_window => SearchStep::SearchDone,
            (true, false) => {
                self.is_last_window = true;
                SearchStep::LastWindow
            }
            _ => SearchStep::NextWindow,
        }
    }

    fn lower_depth(&mut self) -> SearchStep {
        if self.current_depth == 1 {
            return SearchStep::NextWindow;
        }
        self.depth_above_target = self.current_depth;
        if self.current_depth == self.depth_within_target {
            self.depth_within_target -= 1;
        }
        self.current_depth = self.current_depth.midpoint(self.depth_within_target).max(1);
        self.stable_windows = 0;
        SearchStep::NextWindowOnceIdle
    }

    pub(super) fn describe_outcome(&self) -> String {
        let target = format_nanoseconds(Nanoseconds(
            self.latency_target.target_us.saturating_mul(1000),
        ));
        let (depth, share) = (self.current_depth, self.share_within_percent);
        match self.is_last_window || self.latency_target.keep_running {
            true => format!(
                "latency_target={target}: queue depth {depth}, at which {share:.2} % of the I/Os \
                 of the last window were within the target"
            ),
            false => format!(
                "latency_target={target}: the job ended before a queue depth was found; the last \
                 one tried was {depth}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::installed::is_fio_installed;
    use super::*;
    use diskperf_fio::{JobEnvironment, JobFile};
    use std::process::Command;

    fn search(options: &str, depth_max: u32) -> DepthSearch {
        let text = format!("[job]\nsize=1m\n{}\n", options.replace(' ', "\n"));
        let parsed = JobFile::parse("job.fio", &text, &JobEnvironment::default());
        let parsed = parsed.unwrap_or_else(|errors| panic!("{errors}"));
        DepthSearch::from_job(&parsed.jobs[0], depth_max, Nanoseconds::ZERO)
            .expect("it is asked for")
    }

    /// Reads through a busy queue: some windows are within the target and some are not.
    #[test]
    fn the_search_takes_the_steps_of_fio() {
        if !is_fio_installed() {
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        for (target_us, percentile) in [(1_000_000, 99.0), (200, 90.0), (100, 70.0), (20, 50.0)] {
            let output = Command::new("fio")
                .args([
                    "--debug=rate",
                    "--name=job",
                    "--size=4m",
                    "--ioengine=io_uring",
                ])
                .args([
                    "--rw=randread",
                    "--iodepth=32",
                    "--time_based",
                    "--runtime=1",
                ])
                .arg(format!("--latency_target={target_us}"))
                .arg(format!("--latency_percentile={percentile}"))
                .arg("--latency_window=20000")
                .current_dir(folder.path())
                .output()
                .expect("fio");
            let said = String::from_utf8_lossy(&output.stdout);
            let options = format!(
                "latency_target={target_us} latency_percentile={percentile} latency_window=20000"
            );
            follow(&mut search(&options, 32), &said);
        }
    }

    /// Gives the search the share of each of fio's windows, and asks it for fio's next step.
    fn follow(search: &mut DepthSearch, said: &str) {
        let after = |line: &'_ str, key: &str| {
            line.split_once(key)
                .map(|(_, after)| after.trim().to_owned())
        };
        let (mut now, mut windows) = (Nanoseconds::ZERO, 0);
        let mut step = SearchStep::ContinueWindow;
        for line in said.lines() {
            if let Some(share) = after(line, "Success rate: ") {
                let share: f64 = share
                    .split('%')
                    .next()
                    .expect("a share")
                    .parse()
                    .expect("a number");
                now = search.window_end();
                // In hundredths of a percent, as fio prints it.
                (search.window_io_count, search.late_io_count) =
                    (10_000, 10_000 - (100.0 * share).round() as u64);
                step = search.evaluate_window(now);
                search.begin_window(now);
                windows += 1;
            } else if let Some(depths) =
                after(line, "Ramped up: ").or_else(|| after(line, "Ramped down: "))
            {
                let ours = format!(
                    "{} {} {}",
                    search.depth_within_target, search.current_depth, search.depth_above_target
                );
                assert_eq!(ours, depths, "window {windows} at {now:?} of\n{said}");
            } else if line.contains("Quiesce and final run") {
                assert_eq!(step, SearchStep::LastWindow, "{said}");
            } else if line.contains("We are done") {
                assert_eq!(step, SearchStep::SearchDone, "{said}");
            }
        }
        assert!(windows > 0, "{said}");
    }

    #[test]
    fn one_late_io_lowers_the_depth_where_none_may_be_late() {
        let mut search = search("latency_target=100us latency_window=1ms", 8);
        let (early, late) = (Nanoseconds(50_000), Nanoseconds(200_000));
        for expected in [2, 4] {
            assert_eq!(search.count_completed(early), SearchStep::ContinueWindow);
            assert_eq!(
                search.evaluate_window(search.window_end()),
                SearchStep::NextWindow
            );
            assert_eq!(search.current_depth(), expected);
            search.begin_window(search.window_end());
        }
        assert_eq!(search.count_completed(late), SearchStep::NextWindowOnceIdle);
        assert_eq!(search.current_depth(), 3);
        search.current_depth = 1;
        assert_eq!(search.count_completed(late), SearchStep::SearchFailed);
    }
}
