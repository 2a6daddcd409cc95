//! Progress on standard error: a bar on a terminal, otherwise an occasional line.

mod lines;

use crate::output::print_message;
use diskperf_laboratory::{Event, Observer, ReadBackProgress, WorkerProgress};
use diskperf_timeline::units::{KIB, format_size};
use diskperf_timeline::{Repetition, escape_unprintable_line};
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use lines::{Lines, Ticker};
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Progress display of a run, driven by the run's events.
pub(crate) struct Progress {
    bar: Option<Bar>,
    quiet: bool,
    /// Whether the final output goes to the same terminal as the progress display.
    shows_end: bool,
    /// Current run, to which progress notes refer.
    run: Option<CurrentRun>,
}

struct CurrentRun {
    target: String,
    notes: Vec<String>,
}

/// Progress bar with its updating thread; prints lines if there is no terminal.
struct Bar {
    bar: ProgressBar,
    far: Arc<Mutex<RunProgress>>,
    /// Throughput of the last repetition, as text.
    rate: String,
    /// Thread that updates the bar or prints lines until it is dropped.
    ticker: Option<Ticker>,
}

/// Progress of a program over all its repetitions, in bytes transferred, or in nanoseconds for
/// repetitions of fixed duration.
#[derive(Default)]
struct RunProgress {
    /// Name of the current phase, as the bar shows it.
    message: String,
    /// Amount done in the completed repetitions.
    before: u64,
    /// Expected amount of each repetition. Repetitions that copy trees transfer more.
    each: u64,
    all: u64,
    /// Start of the current repetition, for repetitions of fixed duration.
    since: Option<Instant>,
    workers: Vec<Arc<WorkerProgress>>,
}

#[derive(Debug, PartialEq, Eq)]
struct ShownProgress {
    message: String,
    position: u64,
    length: u64,
    /// Whether the remaining time can be estimated from the elapsed time.
    shows_remaining_time: bool,
}

impl RunProgress {
    /// Returns the current phase. Files are created before the timed part.
    fn phase(&self) -> String {
        let begins = self.since.is_some() || !self.workers.is_empty();
        match begins && !self.workers.iter().any(|one| one.is_in_timed_part()) {
            true => MAKING_FILES.to_owned(),
            false => self.message.clone(),
        }
    }

    /// Returns the progress of the current repetition, or of the verification read that follows it.
    /// Blocks read for verification do not count as part of a repetition.
    fn shown(&self) -> ShownProgress {
        match self.read_back() {
            Some(progress) => ShownProgress {
                message: "reading back what was written".to_owned(),
                position: progress.verified_blocks,
                length: progress.blocks_to_verify,
                shows_remaining_time: false,
            },
            None => ShownProgress {
                message: self.phase(),
                position: self.before + self.current_amount().min(self.each),
                length: self.all.max(1),
                shows_remaining_time: true,
            },
        }
    }

    fn current_amount(&self) -> u64 {
        match self.since {
            Some(begin) => begin.elapsed().as_nanos() as u64,
            None => self.workers.iter().map(|one| one.moved_bytes()).sum(),
        }
    }

    /// Returns the progress of the verification read, if no worker does anything else.
    fn read_back(&self) -> Option<ReadBackProgress> {
        let workers = self.workers.iter().map(|one| one.read_back_progress());
        let mut all = ReadBackProgress::default();
        let mut others = 0;
        for one in workers {
            others += usize::from(one.blocks_to_verify == 0);
            all.verified_blocks += one.verified_blocks;
            all.blocks_to_verify += one.blocks_to_verify;
        }
        let is_alone = others == 0 || self.current_amount() >= self.each;
        (is_alone && all.verified_blocks < all.blocks_to_verify).then_some(all)
    }
}

const MAKING_FILES: &str = "making files";

/// Interval between updates of the bar: short enough to look alive, and long enough not to disturb
/// a measurement.
const PERIOD: Duration = Duration::from_millis(125);

const BAR_WITH_TIME_LEFT: &str = "{prefix}  {wide_bar} {msg}{left}";
const BAR_WITHOUT_TIME_LEFT: &str = "{prefix}  {wide_bar} {msg}";

impl Progress {
    /// Creates a bar if standard error is a terminal, otherwise line output, unless `quiet`. `stop`
    /// is set when the user ends the run.
    pub(crate) fn new(quiet: bool, stop: &Arc<AtomicBool>) -> Self {
        let bar = (!quiet).then(|| match std::io::stderr().is_terminal() {
            true => Bar::on_terminal(Arc::clone(stop)),
            false => Bar::in_lines(),
        });
        Self {
            bar,
            quiet,
            shows_end: std::io::stdout().is_terminal(),
            run: None,
        }
    }

    /// Prints a note about a run and its target, unless it appears below the results on the same
    /// terminal.
    fn note(&self, note: &str) {
        match &self.run {
            Some(about) if self.shows_end && about.notes.iter().any(|one| one == note) => {}
            Some(about) => self.print_message(&format!("{}: {note}", about.target)),
            None => self.print_message(note),
        }
    }

    fn print_message(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.bar.suspend(|| print_message(text)),
            None => print_message(text),
        }
    }
}

impl Observer for Progress {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::RunStarted(run) => {
                self.run = Some(CurrentRun {
                    target: run.measured_description(),
                    notes: run.notes.clone(),
                });
            }
            Event::Note(note) if !self.quiet => self.note(note),
            Event::Warning(warning) => self.print_message(warning),
            _ => {}
        }
        let Some(bar) = &mut self.bar else { return };
        match event {
            Event::StepStarted { title, number, of } => {
                bar.start(format!(
                    "[{}/{of}] {}",
                    number + 1,
                    escape_unprintable_line(title)
                ));
            }
            Event::Pilot { .. } => bar.far().message = "finding the size".to_owned(),
            Event::RepetitionStarted {
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
                let mut far = bar.far();
                *far = RunProgress {
                    message: std::mem::take(&mut far.message),
                    before: u64::from(number) * each,
                    each,
                    all: u64::from(of) * each,
                    since: lasts.map(|_| Instant::now()),
                    workers: workers.to_vec(),
                };
            }
            Event::RepetitionFinished(made) => {
                let kb_per_s: f64 = made.iter().map(Repetition::kb_per_s).sum();
                let bytes_per_s = kb_per_s * KIB as f64;
                bar.rate = format!("{}/s, ", format_size(bytes_per_s as u64));
            }
            Event::BlockFinished {
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
                bar.bar.set_style(style("{prefix}"));
                bar.bar.set_prefix(format!("{far}, {left:#} left"));
            }
            Event::SettingTried(setting) => {
                let what = format!("without --set {setting}");
                bar.start(escape_unprintable_line(&what).into_owned());
                bar.print_message("does it do the same?");
            }
            Event::RunStarted(_)
            | Event::BlockLayer(_)
            | Event::Recorded(_)
            | Event::StepFinished(_)
            | Event::RunFinished(_)
            | Event::Note(_)
            | Event::Warning(_) => {}
        }
    }
}

impl Bar {
    fn on_terminal(stop: Arc<AtomicBool>) -> Self {
        let bar = ProgressBar::new(1).with_style(style(BAR_WITH_TIME_LEFT));
        let mut shows_remaining_time = true;
        Self::spawn(bar, PERIOD, move |bar, mut shown| {
            if shown.shows_remaining_time != shows_remaining_time {
                shows_remaining_time = shown.shows_remaining_time;
                bar.set_style(style(match shows_remaining_time {
                    true => BAR_WITH_TIME_LEFT,
                    false => BAR_WITHOUT_TIME_LEFT,
                }));
            }
            if stop.load(Ordering::Relaxed) {
                bar.set_style(style("{prefix}  {msg}"));
                shown.message = "interrupted: removing its files".to_owned();
            }
            if bar.message() != shown.message {
                bar.set_message(shown.message);
            }
            bar.set_length(shown.length);
            bar.set_position(shown.position);
        })
    }

    fn in_lines() -> Self {
        let mut lines = Lines::from_now();
        Self::spawn(ProgressBar::hidden(), lines::PERIOD, move |bar, shown| {
            lines.print(|| shown.line(&bar.prefix()));
        })
    }

    fn spawn(
        bar: ProgressBar,
        period: Duration,
        mut moves: impl FnMut(&ProgressBar, ShownProgress) + Send + 'static,
    ) -> Self {
        let far = Arc::new(Mutex::new(RunProgress::default()));
        let (moved, done) = (bar.clone(), Arc::clone(&far));
        let ticker = Ticker::new(period, move || {
            let shown = lock_state(&done).shown();
            moves(&moved, shown);
        });
        Self {
            bar,
            far,
            rate: String::new(),
            ticker,
        }
    }

    fn start(&mut self, title: String) {
        *self.far() = RunProgress::default();
        self.rate.clear();
        self.bar.set_prefix(title);
        self.bar.reset();
        self.print_message(MAKING_FILES);
    }

    fn print_message(&self, what: &str) {
        self.far().message = format!("{}{what}", self.rate);
    }

    fn far(&self) -> MutexGuard<'_, RunProgress> {
        lock_state(&self.far)
    }
}

fn style(template: &str) -> ProgressStyle {
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

impl Drop for Bar {
    fn drop(&mut self) {
        drop(self.ticker.take());
        self.bar.finish_and_clear();
    }
}

impl ShownProgress {
    /// Formats the bar's contents as a line of text under the title.
    fn line(&self, title: &str) -> String {
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
pub(crate) struct MachinesProgress {
    bar: Option<ProgressBar>,
    far: Arc<MachineCounts>,
    /// Thread that prints lines until it is dropped.
    ticker: Option<Ticker>,
}

/// Numbers of completed and known machine runs; 0 before the first completion.
#[derive(Default)]
struct MachineCounts {
    done: AtomicUsize,
    of: AtomicUsize,
}

impl MachinesProgress {
    /// Creates a bar if standard error is a terminal, otherwise line output, unless `quiet`.
    pub(crate) fn new(quiet: bool) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let bar = (!quiet && is_terminal).then(|| {
            ProgressBar::new(1).with_style(style("{pos} of {len}  {wide_bar}{left}  {msg}"))
        });
        let far: Arc<MachineCounts> = Arc::default();
        let (counted, mut lines) = (Arc::clone(&far), Lines::from_now());
        let tick = move || lines.print(|| counted.line());
        let ticker = (!quiet && !is_terminal).then(|| Ticker::new(lines::PERIOD, tick));
        Self {
            bar,
            far,
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
    pub(crate) fn show(&self, done: usize, of: usize) {
        self.far.done.store(done, Ordering::Relaxed);
        self.far.of.store(of, Ordering::Relaxed);
        if let Some(bar) = &self.bar {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        }
    }
}

impl MachineCounts {
    fn line(&self) -> String {
        match self.of.load(Ordering::Relaxed) {
            0 => "the first run of a machine goes on".to_owned(),
            of => format!(
                "{} of {of} runs of machines",
                self.done.load(Ordering::Relaxed)
            ),
        }
    }
}

impl Drop for MachinesProgress {
    fn drop(&mut self) {
        drop(self.ticker.take());
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Progress display for reading files, on a terminal only.
pub(crate) struct BytesProgress {
    bar: Option<(ProgressBar, Arc<AtomicBool>, JoinHandle<()>)>,
}

impl BytesProgress {
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
                std::thread::sleep(PERIOD);
            }
        });
        let bar = Some((bar, done, mover));
        Self { bar }
    }
}

impl Drop for BytesProgress {
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
pub(crate) struct TimeProgress {
    bar: Option<ProgressBar>,
}

impl TimeProgress {
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

    /// Updates the number of requests so far and of lost events.
    pub(crate) fn show(&self, requests: u64, lost: u64) {
        let Some(bar) = &self.bar else { return };
        let elapsed = bar.elapsed();
        bar.set_position(elapsed.as_millis() as u64);
        let lost = match lost {
            0 => String::new(),
            lost => format!(", {lost} events lost"),
        };
        let s = elapsed.as_secs();
        bar.set_message(format!("{s} s, {requests} requests{lost}; Ctrl-C ends it"));
    }
}

impl Drop for TimeProgress {
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
            (vec![Arc::default()], MAKING_FILES, 100, 300),
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
                message: "run".to_owned(),
                before: 100,
                each: 100,
                all: 300,
                since: None,
                workers,
            };
            let shown = ShownProgress {
                message: message.to_owned(),
                position,
                length,
                shows_remaining_time: message != READING,
            };
            assert_eq!(done.shown(), shown);
        }
    }
}
