//! What happens during a run, for whoever shows progress.

use core::time::Duration;
use diskperf_system::WorkerProgress;
use diskperf_timeline::{
    BlockTrace, DeviceEvent, Nanoseconds, ProgramResult, Repetition, Run, Setting,
};
use std::sync::Arc;

/// Something that happened.
pub enum Event<'a> {
    /// A run began.
    RunStarted(&'a Run),
    /// A step began: its title, its number from 0, and of how many.
    StepStarted {
        /// `seqread layer=direct call_bytes=512`; of programs that run at the same time,
        /// all.
        title: &'a str,
        /// Its number among the run's, from 0.
        number: usize,
        /// How many there are.
        of: usize,
    },
    /// A program is being run to find its size.
    Pilot {
        /// The size that is tried.
        size_bytes: u64,
    },
    /// A repetition began.
    RepetitionStarted {
        /// Its number, from 0, the discarded ones included.
        number: u32,
        /// How many there will be at most, as far as is known now.
        of: u32,
        /// Bytes that all workers will move.
        total_bytes: u64,
        /// How long it will take, where that is given and not the bytes.
        lasts: Option<Nanoseconds>,
        /// Progress of each worker, which the workers keep current.
        workers: &'a [Arc<WorkerProgress>],
    },
    /// What the block layer did in the repetition that is about to end.
    BlockLayer(BlockTrace),
    /// What storage was asked for, where that is recorded.
    Recorded(Recorded<'a>),
    /// A repetition ended: of each program that ran at the same time.
    RepetitionFinished(&'a [Repetition]),
    /// A block of an A/B measurement ended.
    BlockFinished {
        /// The program.
        title: &'a str,
        /// Its blocks so far.
        blocks: u32,
        /// The rate of B over that of A.
        ratio: Option<f64>,
        /// Where that lies, lowest first; absent as long as the blocks are too few.
        interval: Option<(f64, f64)>,
        /// How long the measurement may still take.
        left: Duration,
    },
    /// A program ended.
    StepFinished(&'a ProgramResult),
    /// All programs ran on a modelled system, and now run without one of its settings,
    /// as far as they do the same.
    SettingTried(&'a Setting),
    /// A program was left out, or something else that a user should know now.
    Note(&'a str),
    /// Something went wrong that a user must know now, and the run goes on.
    Warning(&'a str),
    /// A run ended, well or not.
    RunFinished(&'a Run),
}

/// What is recorded of what storage is asked for. Requests of no timed part are told too:
/// they may have been issued in one before.
pub enum Recorded<'a> {
    /// From now on these devices are told of, by one clock; or why none can be.
    From(Result<&'a Source, &'a str>),
    /// The source has these devices, each by another name: those that it had, and more.
    Devices(&'a [String]),
    /// A timed part begins.
    Begins(Nanoseconds),
    /// Requests were issued, or completed.
    Events(&'a [DeviceEvent]),
    /// The timed part has ended.
    Ends(Nanoseconds),
}

/// Where what is recorded comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The devices' names, each another, by number.
    pub devices: Vec<String>,
    /// What their requests are, as a reader of the trace must know it.
    pub what: String,
}

/// Whoever is told.
pub trait Observer {
    /// Something happened.
    fn event(&mut self, event: Event<'_>);
}

/// Watches nothing.
pub struct Nobody;

impl Observer for Nobody {
    fn event(&mut self, _event: Event<'_>) {}
}
