//! The progress bar: on standard error, only on a terminal.

use diskperf_laboratory::{Event, Observer};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Shows a run's events.
pub(crate) struct Progress {
    bar: Option<Bar>,
    quiet: bool,
}

/// A bar, and the thread that moves it.
struct Bar {
    bar: ProgressBar,
    /// What each worker of the current repetition has moved.
    moved_bytes: Arc<Mutex<Vec<Arc<AtomicU64>>>>,
    done: Arc<AtomicBool>,
    mover: Option<JoinHandle<()>>,
}

/// How often the bar moves: often enough to look alive, too seldom to disturb
/// a measurement.
const PERIOD: Duration = Duration::from_millis(125);

impl Progress {
    /// With a bar where standard error is a terminal, unless told otherwise.
    pub(crate) fn new(quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(Bar::new);
        Self { bar, quiet }
    }

    fn note(&self, note: &str) {
        match &self.bar {
            Some(bar) => bar.bar.suspend(|| eprintln!("diskperf: {note}")),
            None if !self.quiet => eprintln!("diskperf: {note}"),
            None => {}
        }
    }
}

impl Observer for Progress {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Note(note) = event {
            self.note(note);
        }
        let Some(bar) = &self.bar else { return };
        match event {
            Event::StepStarted { title, number, of } => {
                bar.bar.set_prefix(format!("[{}/{of}] {title}", number + 1));
                bar.bar.set_message("making files");
            }
            Event::Pilot { .. } => bar.bar.set_message("finding the size"),
            Event::RepetitionStarted {
                number,
                of,
                total_bytes,
                moved_bytes,
            } => {
                if of > 1 {
                    bar.bar
                        .set_message(format!("repetition {} of {of}", number + 1));
                }
                bar.bar.reset();
                bar.bar.set_length(total_bytes);
                *bar.moved() = moved_bytes.to_vec();
            }
            Event::RepetitionFinished(_) => bar.moved().clear(),
            Event::RunStarted(_)
            | Event::StepFinished(_)
            | Event::RunFinished(_)
            | Event::Note(_) => {}
        }
    }
}

impl Bar {
    fn new() -> Self {
        let style =
            "{prefix}  {wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta} left, {msg}";
        let style = ProgressStyle::with_template(style).expect("the template is constant");
        let bar = ProgressBar::new(0).with_style(style);
        let moved_bytes = Arc::new(Mutex::new(Vec::<Arc<AtomicU64>>::new()));
        let done = Arc::new(AtomicBool::new(false));
        let mover = {
            let (bar, moved_bytes, done) =
                (bar.clone(), Arc::clone(&moved_bytes), Arc::clone(&done));
            std::thread::spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let workers = moved_bytes
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .clone();
                    if !workers.is_empty() {
                        bar.set_position(
                            workers
                                .iter()
                                .map(|worker| worker.load(Ordering::Relaxed))
                                .sum(),
                        );
                    }
                    std::thread::sleep(PERIOD);
                }
            })
        };
        Self {
            bar,
            moved_bytes,
            done,
            mover: Some(mover),
        }
    }

    fn moved(&self) -> std::sync::MutexGuard<'_, Vec<Arc<AtomicU64>>> {
        self.moved_bytes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(mover) = self.mover.take() {
            // A mover that panicked has only left the bar where it was.
            let _ = mover.join();
        }
        self.bar.finish_and_clear();
    }
}
