//! Progress on standard error: a bar on a terminal, otherwise an occasional line.

mod lines;

use crate::output::print_message;
use diskperf_laboratory::{Observer, ObserverEvent, ReadBackProgress, WorkerProgress};
use diskperf_timeline::units::{KIB, format_size};
use diskperf_timeline::{Repetition, escape_unprintable_line};
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use lines::{LineSchedule, Ticker};
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Progress display of a run, driven by the run's events.
pub(crate) struct RunDisplay {
    run_bar: Option<RunBar>,
    is_quiet: bool,
    /// Whether the final output goes to the same terminal as the progress display.
    shares_terminal: bool,
    /// Current run, to which progress notes refer.
    current_run: Option<CurrentRun>,
}

struct CurrentRun {
    target: String,
    notes: Vec<String>,
}

/// Progress bar with its updating thread; prints lines if there is no terminal.
struct RunBar {
    progress_bar: ProgressBar,
    run_progress: Arc<Mutex<RunProgress>>,
    /// Throughput of the last repetition, as text.
    last_rate: String,
    /// Thread that updates the bar or prints lines until it is dropped.
    ticker: Option<Ticker>,
}

/// Progress of a program over all its repetitions, in bytes transferred, or in nanoseconds for
/// repetitions of fixed duration.
#[derive(Default)]
struct RunProgress {
    /// Name of the current phase, as the bar shows it.
    phase_name: String,
    completed_amount: u64,
    /// Expected amount of each repetition. Repetitions that copy trees transfer more.
    repetition_amount: u64,
    total_amount: u64,
    /// Start of the current repetition, for repetitions of fixed duration.
    repetition_start: Option<Instant>,
    workers: Vec<Arc<WorkerProgress>>,
}

#[derive(Debug, PartialEq, Eq)]
struct BarState {
    message: String,
    position: u64,
    length: u64,
    /// Whether the remaining time can be estimated from the elapsed time.
    shows_remaining_time: bool,
}

impl RunProgress {
    /// Returns the current phase. Files are created before the timed part.
    fn current_phase(&self) -> String {
        let begins = self.repetition_start.is_some() || !self.workers.is_empty();
        match begins && !self.workers.iter().any(|one| one.is_in_timed_part()) {
            true => MAKING_FILES_PHASE.to_owned(),
            false => self.phase_name.clone(),
        }
    }

    /// Returns the progress of the current repetition, or of the verification read that follows it.
    /// Blocks read for verification do not count as part of a repetition.
    fn bar_state(&self) -> BarState {
        match self.read_back_progress() {
            Some(progress) => BarState {
                message: "reading back what was written".to_owned(),
                position: progress.verified_blocks,
                length: progress.blocks_to_verify,
                shows_remaining_time: false,
            },
            None => BarState {
                message: self.current_phase(),
                position: self.completed_amount + self.current_amount().min(self.repetition_amount),
                length: self.total_amount.max(1),
                shows_remaining_time: true,
            },
        }
    }

    fn current_amount(&self) -> u64 {
        match self.repetition_start {
            Some(begin) => begin.elapsed().as_nanos() as u64,
            None => self.workers.iter().map(|one| one.moved_bytes()).sum(),
        }
    }

    /// Returns the progress of the verification read, if no worker does anything else.
    fn read_back_progress(&self) -> Option<ReadBackProgress> {
        let workers = self.workers.iter().map(|one| one.read_back_progress());
        let mut all = ReadBackProgress::default();
        let mut others = 0;
        for one in workers {
            others += usize::from(one.blocks_to_verify == 0);
            all.verified_blocks += one.verified_blocks;
            all.blocks_to_verify += one.blocks_to_verify;
        }
        let is_alone = others == 0 || self.current_amount() >= self.repetition_amount;
        (is_alone && all.verified_blocks < all.blocks_to_verify).then_some(all)
    }
}

const MAKING_FILES_PHASE: &str = "making files";

/// Interval between updates of the bar: short enough to look alive, and long enough not to disturb
/// a measurement.
const UPDATE_INTERVAL: Duration = Duration::from_millis(125);

const BAR_WITH_TIME_LEFT: &str = "{prefix}  {wide_bar} {msg}{left}";
const BAR_WITHOUT_TIME_LEFT: &str = "{prefix}  {wide_bar} {msg}";

impl RunDisplay {
    /// Creates a bar if standard error is a terminal, otherwise line output, unless `quiet`. `stop`
    /// is set when the user ends the run.
    pub(crate) fn new(quiet: bool, stop: &Arc<AtomicBool>) -> Self {
        let bar = (!quiet).then(|| match std::io::stderr().is_terminal() {
            true => RunBar::on_terminal(Arc::clone(stop)),
            false => RunBar::in_text_lines(),
        });
        Self {
            run_bar: bar,
            is_quiet: quiet,
            shares_terminal: std::io::stdout().is_terminal(),
            current_run: None,
        }
    }

    /// Prints a note about a run and its target, unless it appears below the results on the same
    /// terminal.
    fn add_note(&self, note: &str) {
        match &self.current_run {
            Some(about) if self.shares_terminal && about.notes.iter().any(|one| one == note) => {}
            Some(about) => self.print_message(&format!("{}: {note}", about.target)),
            None => self.print_message(note),
        }
    }

    fn print_message(&self, text: &str) {
        match &self.run_bar {
            Some(bar) => bar.progress_bar.suspend(|| print_message(text)),
            None => print_message(text),
        }
    }
}

impl Observer for RunDisplay {
    fn handle_event(&mut self, event: ObserverEvent<'_>) {
        match event {
            ObserverEvent::RunStarted(run) => {
                self.current_run = Some(CurrentRun {
                    target: run.measured_description(),
                    notes: run.notes.clone(),
                });
            }
            ObserverEvent::Note(note) if !self.is_quiet => self.add_note(note),
            ObserverEvent::Warning(warning) => self.print_message(warning),
            _ => {}
        }
        let Some(bar) = &mut self.run_bar else { return };
        match event {
            ObserverEvent::StepStarted { title, number, of } => {
                bar.start(format!(
                    "[{}/{of}] {}",
                    number + 1,
                    escape_unprintable_line(title)
                ));
            }
            ObserverEvent::PilotFinished { .. } => {
                bar.lock_progress().phase_name = "finding the size".to_owned()
            }
            ObserverEvent::RepetitionStarted {
                number,
                of,
                total_bytes,
                lasts,
                workers,
            } => {
                bar.print_message(&match of {
                    1 => "measuring".to_owned(),
                    of => format!("run {} of {of}", number + 1),
                });
                let each = lasts.map_or(total_bytes, |lasts| lasts.0);
                let mut far = bar.lock_progress();
                *far = RunProgress {
                    phase_name: std::mem::take(&mut far.phase_name),
                    completed_amount: u64::from(number) * each,
                    repetition_amount: each,
                    total_amount: u64::from(of) * each,
                    repetition_start: lasts.map(|_| Instant::now()),
                    workers: workers.to_vec(),
                };
            }
            ObserverEvent::RepetitionFinished(made) => {
                let kb_per_s: f64 = made.iter().map(Repetition::kb_per_s).sum();
                let bytes_per_s = kb_per_s * KIB as f64;
                bar.last_rate = format!("{}/s, ", format_size(bytes_per_s as u64));
            }
            ObserverEvent::BlockFinished {
                title,
                blocks,
                ratio,
                interval,
                left,
            } => {
                let mut far = format!("A/B {}: block {blocks}", escape_unprintable_line(title));
                if let Some(ratio) = ratio {
                    far += &format!(", so far B/A {ratio:.2}");
                }
                if let Some((low, high)) = interval {
                    far += &format!(" [{low:.2}, {high:.2}]");
                }
                let left = HumanDuration(left);
                bar.progress_bar.set_style(bar_style("{prefix}: {msg}"));
                bar.progress_bar.set_prefix(format!("{far}, {left:#} left"));
                bar.last_rate.clear();
                bar.print_message(&format!("measuring block {}", blocks + 1));
            }
            ObserverEvent::SettingTried(setting) => {
                let what = format!("without --set {setting}");
                bar.start(escape_unprintable_line(&what).into_owned());
                bar.print_message("does it do the same?");
            }
            ObserverEvent::RunStarted(_)
            | ObserverEvent::BlockTraceRecorded(_)
            | ObserverEvent::KernelEventsRecorded { .. }
            | ObserverEvent::RequestsRecorded(_)
            | ObserverEvent::StepFinished(_)
            | ObserverEvent::RunFinished(_)
            | ObserverEvent::Note(_)
            | ObserverEvent::Warning(_) => {}
        }
    }
}

impl RunBar {
    fn on_terminal(stop: Arc<AtomicBool>) -> Self {
        let bar = ProgressBar::new(1).with_style(bar_style(BAR_WITH_TIME_LEFT));
        let mut shows_remaining_time = true;
        Self::spawn(bar, UPDATE_INTERVAL, move |bar, mut shown| {
            if shown.shows_remaining_time != shows_remaining_time {
                shows_remaining_time = shown.shows_remaining_time;
                bar.set_style(bar_style(match shows_remaining_time {
                    true => BAR_WITH_TIME_LEFT,
                    false => BAR_WITHOUT_TIME_LEFT,
                }));
            }
            if stop.load(Ordering::Relaxed) {
                bar.set_style(bar_style("{prefix}  {msg}"));
                shown.message = "interrupted: removing its files".to_owned();
            }
            if bar.message() != shown.message {
                bar.set_message(shown.message);
            }
            bar.set_length(shown.length);
            bar.set_position(shown.position);
        })
    }

    fn in_text_lines() -> Self {
        let mut lines = LineSchedule::from_now();
        Self::spawn(
            ProgressBar::hidden(),
            lines::CHECK_INTERVAL,
            move |bar, shown| {
                lines.print_if_due(|| shown.format_line(&bar.prefix()));
            },
        )
    }

    fn spawn(
        bar: ProgressBar,
        period: Duration,
        mut moves: impl FnMut(&ProgressBar, BarState) + Send + 'static,
    ) -> Self {
        let far = Arc::new(Mutex::new(RunProgress::default()));
        let (moved, done) = (bar.clone(), Arc::clone(&far));
        let ticker = Ticker::new(period, move || {
            let shown = lock_state(&done).bar_state();
            moves(&moved, shown);
        });
        Self {
            progress_bar: bar,
            run_progress: far,
            last_rate: String::new(),
            ticker,
        }
    }

    fn start(&mut self, title: String) {
        *self.lock_progress() = RunProgress::default();
        self.last_rate.clear();
        self.progress_bar.set_prefix(title);
        self.progress_bar.reset();
        self.print_message(MAKING_FILES_PHASE);
    }

    fn print_message(&self, what: &str) {
        self.lock_progress().phase_name = format!("{}{what}", self.last_rate);
    }

    fn lock_progress(&self) -> MutexGuard<'_, RunProgress> {
        lock_state(&self.run_progress)
    }
}

fn bar_style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .expect("the template is constant")
        .with_key("left", write_time_left)
}

/// Writes the remaining time extrapolated from the elapsed time, or nothing if too little is known.
fn write_time_left(state: &ProgressState, to: &mut dyn Write) {
    const SHARE_FOR_ESTIMATE: f32 = 0.02;
    let share = state.fraction();
    if (SHARE_FOR_ESTIMATE..1.0).contains(&share) {
        let left = state.elapsed().mul_f32(1.0 / share - 1.0);
        // A bar has nobody to report an error to.
        let _ = write!(to, ", {:#} left", HumanDuration(left));
    }
}

/// Locks the progress data even after a panic of another thread, because every update leaves the
/// data consistent.
fn lock_state(far: &Mutex<RunProgress>) -> MutexGuard<'_, RunProgress> {
    far.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for RunBar {
    fn drop(&mut self) {
        drop(self.ticker.take());
        self.progress_bar.finish_and_clear();
    }
}

impl BarState {
    /// Formats the bar's contents as a line of text under the title.
    fn format_line(&self, title: &str) -> String {
        let far = match self.length {
            0 | 1 => String::new(),
            length => format!(", {} %", 100 * self.position.min(length) / length),
        };
        match title {
            "" => format!("{}{far}", self.message),
            title => format!("{title}: {}{far}", self.message),
        }
    }
}

/// Progress display of simulated machine runs: a bar on a terminal, otherwise lines.
pub(crate) struct ModelRunDisplay {
    bar: Option<ProgressBar>,
    counts: Arc<ModelRunCounts>,
    /// Thread that prints lines until it is dropped.
    ticker: Option<Ticker>,
}

/// Numbers of completed and known machine runs; 0 before the first completion.
#[derive(Default)]
struct ModelRunCounts {
    done_count: AtomicUsize,
    total_count: AtomicUsize,
}

impl ModelRunDisplay {
    /// Creates a bar if standard error is a terminal, otherwise line output, unless `quiet`.
    pub(crate) fn new(quiet: bool) -> Self {
        Self::with_hint(quiet, "")
    }

    /// Creates a display that also names what makes the work shorter.
    pub(crate) fn with_hint(quiet: bool, hint: &'static str) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let bar = (!quiet && is_terminal).then(|| {
            ProgressBar::new(1)
                .with_style(bar_style("{pos} of {len}  {wide_bar}{left}  {msg}"))
                .with_message(hint)
        });
        let far: Arc<ModelRunCounts> = Arc::default();
        let (counted, mut lines) = (Arc::clone(&far), LineSchedule::from_now());
        let tick = move || lines.print_if_due(|| counted.format_line(hint));
        let ticker = (!quiet && !is_terminal).then(|| Ticker::new(lines::CHECK_INTERVAL, tick));
        Self {
            bar,
            counts: far,
            ticker: ticker.flatten(),
        }
    }

    /// Prints a message without disturbing the bar.
    pub(crate) fn print_message(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| print_message(text)),
            None => print_message(text),
        }
    }

    /// Updates the number of completed machine runs and their total.
    pub(crate) fn update(&self, done: usize, of: usize) {
        self.counts.done_count.store(done, Ordering::Relaxed);
        self.counts.total_count.store(of, Ordering::Relaxed);
        if let Some(bar) = &self.bar {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        }
    }
}

impl ModelRunCounts {
    fn format_line(&self, hint: &str) -> String {
        let counts = match self.total_count.load(Ordering::Relaxed) {
            0 => "the first model runs".to_owned(),
            of => format!(
                "{} of {of} model runs so far",
                self.done_count.load(Ordering::Relaxed)
            ),
        };
        match hint {
            "" => counts,
            hint => format!("{counts}; {hint}"),
        }
    }
}

impl Drop for ModelRunDisplay {
    fn drop(&mut self) {
        drop(self.ticker.take());
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Progress display for reading files, on a terminal only.
pub(crate) struct BytesDisplay {
    bar: Option<(ProgressBar, Arc<AtomicBool>, JoinHandle<()>)>,
}

impl BytesDisplay {
    /// Creates the display for `all` bytes; `far` holds the number of bytes read so far.
    pub(crate) fn new(quiet: bool, all: u64, far: Arc<AtomicU64>) -> Self {
        if quiet || !std::io::stderr().is_terminal() {
            return Self { bar: None };
        }
        let style = "{bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
        let style = ProgressStyle::with_template(style).expect("a template");
        let bar = ProgressBar::new(all).with_style(style);
        let done = Arc::new(AtomicBool::new(false));
        let (moved, ended) = (bar.clone(), Arc::clone(&done));
        let mover = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                moved.set_position(far.load(Ordering::Relaxed));
                std::thread::sleep(UPDATE_INTERVAL);
            }
        });
        let bar = Some((bar, done, mover));
        Self { bar }
    }
}

impl Drop for BytesDisplay {
    fn drop(&mut self) {
        if let Some((bar, done, mover)) = self.bar.take() {
            done.store(true, Ordering::Relaxed);
            // It has nothing to say.
            let _ = mover.join();
            bar.finish_and_clear();
        }
    }
}

/// Progress display of a recording, with elapsed time and results, on a terminal only.
pub(crate) struct TimeDisplay {
    bar: Option<ProgressBar>,
}

impl TimeDisplay {
    /// Creates the display for an activity of fixed duration, or for one that lasts until the user
    /// ends it.
    pub(crate) fn new(quiet: bool, lasts: Option<Duration>) -> Self {
        if quiet || !std::io::stderr().is_terminal() {
            return Self { bar: None };
        }
        let template = match lasts {
            Some(_) => "{bar:30} {msg}",
            None => "{spinner} {msg}",
        };
        let style = ProgressStyle::with_template(template).expect("a template");
        let all_ms = lasts.map_or(0, |lasts| lasts.as_millis() as u64);
        let bar = Some(ProgressBar::new(all_ms).with_style(style));
        Self { bar }
    }

    /// Whether there is a terminal to show progress on.
    pub(crate) fn is_shown(&self) -> bool {
        self.bar.is_some()
    }

    /// Updates the number of requests so far and of lost events.
    pub(crate) fn update(&self, requests: u64, lost: u64) {
        let lost = match lost {
            0 => String::new(),
            lost => format!(", {lost} events lost"),
        };
        self.show_message(&format!("{requests} requests{lost}; Ctrl-C ends it"));
    }

    /// Updates the elapsed time, and the message after it.
    pub(crate) fn show_message(&self, message: &str) {
        let Some(bar) = &self.bar else { return };
        let elapsed = bar.elapsed();
        bar.set_position(elapsed.as_millis() as u64);
        bar.set_message(format!("{} s, {message}", elapsed.as_secs()));
    }
}

impl Drop for TimeDisplay {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Progress display of cuts that are checked, on a terminal.
pub(crate) struct CountProgress {
    bar: Option<ProgressBar>,
}

impl CountProgress {
    /// Creates the display, which is empty until the first check.
    pub(crate) fn new(quiet: bool) -> Self {
        let is_shown = !quiet && std::io::stderr().is_terminal();
        let style = ProgressStyle::with_template("{bar:30} {msg}").expect("a template");
        Self {
            bar: is_shown.then(|| ProgressBar::new(0).with_style(style)),
        }
    }

    /// Updates the numbers of cuts.
    pub(crate) fn show(&self, checked_count: usize, cut_count: usize, failure_count: usize) {
        let Some(bar) = &self.bar else { return };
        bar.set_length(cut_count as u64);
        bar.set_position(checked_count as u64);
        bar.set_message(format!(
            "{checked_count} of {cut_count} cuts checked, {failure_count} failed"
        ));
    }
}

impl Drop for CountProgress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READING: &str = "reading back what was written";

    fn worker(moved_bytes: u64, blocks: u64, blocks_total: u64) -> Arc<WorkerProgress> {
        let progress = WorkerProgress::default();
        progress.start_timed_part();
        progress.set_moved_bytes(moved_bytes);
        progress.set_read_back_progress(ReadBackProgress {
            verified_blocks: blocks,
            blocks_to_verify: blocks_total,
        });
        Arc::new(progress)
    }

    /// Workers, and the message, position and length that are shown of a second repetition of
    /// three that moves 100 bytes.
    #[test]
    fn a_read_back_is_shown_when_nobody_does_anything_else() {
        for (workers, message, position, length) in [
            (vec![Arc::default()], MAKING_FILES_PHASE, 100, 300),
            (vec![Arc::default(), worker(0, 0, 0)], "run", 100, 300),
            (vec![worker(40, 0, 0)], "run", 140, 300),
            (vec![worker(100, 0, 0)], "run", 200, 300),
            (vec![worker(100, 0, 8)], READING, 0, 8),
            (vec![worker(100, 3, 8)], READING, 3, 8),
            // What is read back may count as moved, too.
            (vec![worker(180, 3, 8)], READING, 3, 8),
            (vec![worker(100, 8, 8)], "run", 200, 300),
            // One still writes.
            (vec![worker(50, 3, 8), worker(20, 0, 0)], "run", 170, 300),
            (vec![worker(50, 3, 8), worker(50, 0, 0)], READING, 3, 8),
            (vec![worker(40, 3, 8), worker(40, 1, 9)], READING, 4, 17),
        ] {
            let done = RunProgress {
                phase_name: "run".to_owned(),
                completed_amount: 100,
                repetition_amount: 100,
                total_amount: 300,
                repetition_start: None,
                workers,
            };
            let shown = BarState {
                message: message.to_owned(),
                position,
                length,
                shows_remaining_time: message != READING,
            };
            assert_eq!(done.bar_state(), shown);
        }
    }
}
