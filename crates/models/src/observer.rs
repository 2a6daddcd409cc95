//! Events of a run, for displays of progress.

use core::time::Duration;
use diskperf_chains::event::KernelRecording;
use diskperf_system::WorkerProgress;
use diskperf_timeline::block::TimedPart;
use diskperf_timeline::{
    BlockTrace, DeviceEvent, Nanoseconds, ProgramResult, Repetition, Run, Setting,
};
use std::sync::Arc;

/// An event of a run that is reported to its observer.
pub enum ObserverEvent<'a> {
    /// Start of a run.
    RunStarted(&'a Run),
    /// A step started: a program, or several that run at the same time.
    StepStarted {
        /// Title of the step, such as `seqread layer=direct call_bytes=512`. It names all programs
        /// that run at the same time.
        title: &'a str,
        /// Index of the step in the run, from 0.
        number: usize,
        /// Number of steps in the run.
        of: usize,
    },
    /// A pilot run started, which finds the size of a program.
    PilotFinished {
        /// Size that the pilot tries, in bytes.
        size_bytes: u64,
    },
    /// Start of a repetition.
    RepetitionStarted {
        /// Index of the repetition, from 0, including discarded ones.
        number: u32,
        /// Maximum number of repetitions, as far as is known now.
        of: u32,
        /// Bytes that all workers together will transfer.
        total_bytes: u64,
        /// Duration of the repetition, if it has a fixed duration instead of a fixed amount.
        lasts: Option<Nanoseconds>,
        /// Progress of each worker. The workers keep it current.
        workers: &'a [Arc<WorkerProgress>],
    },
    /// Events of the block layer in the repetition that is about to end.
    BlockTraceRecorded(BlockTrace),
    /// Events of the kernel in the repetition that is about to end, of which chains are made.
    KernelEventsRecorded {
        /// Events with the names of tasks, devices and functions.
        recording: KernelRecording,
        /// Timed part of each worker.
        timed_parts: Vec<TimedPart>,
        /// Kernel names of the disks that receive the programs' requests.
        device_names: Vec<String>,
    },
    /// Requests that the storage received, if they are recorded.
    RequestsRecorded(RecordedEvent<'a>),
    /// A repetition ended, for each program that ran at the same time.
    RepetitionFinished(&'a [Repetition]),
    /// A block of an A/B measurement ended.
    BlockFinished {
        /// Title of the program whose block ended.
        title: &'a str,
        /// Number of the program's blocks so far.
        blocks: u32,
        /// Ratio of the rate of B to that of A.
        ratio: Option<f64>,
        /// Confidence interval of the ratio, lower end first; `None` while there are too few
        /// blocks.
        interval: Option<(f64, f64)>,
        /// Time that the measurement may still take.
        left: Duration,
    },
    /// A program ended, and its result is complete.
    StepFinished(&'a ProgramResult),
    /// All programs ran on a modelled system. Now they run without one of its settings, as long as
    /// their results are the same.
    SettingTried(&'a Setting),
    /// Remark that the user should know now, such as an omitted program.
    Note(&'a str),
    /// Warning about a fault that the user must know now, while the run continues.
    Warning(&'a str),
    /// A run ended, completed or failed.
    RunFinished(&'a Run),
}

/// An event in the recording of requests to storage. Requests outside of timed parts are included,
/// because they may have been issued in an earlier one.
pub enum RecordedEvent<'a> {
    /// Start of a new source of requests, whose devices share one clock; or the reason why none can
    /// be recorded.
    SourceOpened(Result<&'a EventSource, &'a str>),
    /// Current names of the source's devices, all distinct: the earlier ones, followed by new ones.
    DevicesNamed(&'a [String]),
    /// Start of a timed part, at this time of the source's clock.
    RecordingStarted(Nanoseconds),
    /// Requests that were issued or completed.
    RequestEvents(&'a [DeviceEvent]),
    /// End of the timed part, at this time of the source's clock.
    RecordingEnded(Nanoseconds),
}

/// Source of recorded requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSource {
    /// Names of the devices, all distinct, by index.
    pub devices: Vec<String>,
    /// Description of the requests, for readers of the trace.
    pub description: String,
}

/// Receiver of a run's events.
pub trait Observer {
    /// Receives an event of the run.
    fn handle_event(&mut self, event: ObserverEvent<'_>);
}

/// Observer that ignores all events.
pub struct SilentObserver;

impl Observer for SilentObserver {
    fn handle_event(&mut self, _event: ObserverEvent<'_>) {}
}
