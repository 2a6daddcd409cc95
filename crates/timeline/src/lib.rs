//! Data types of a measurement: a [`Run`] of programs, each with its repetitions, and their times,
//! counts and latency histograms.
//!
//! This crate knows nothing of simulation, of storage or of the store. It holds only data and the
//! arithmetic that every other crate must agree on, such as the conversion of a repetition to KB/s.

pub mod block;
pub mod cap_probe;
pub mod check;
pub mod device_event;
pub mod environment;
pub mod experiment;
pub mod histogram;
pub mod interference;
pub mod ledger;
pub mod load;
pub mod printable;
pub mod protocol;
pub mod repetition;
pub mod replay;
pub mod run;
pub mod title;
pub mod trace;
pub mod units;
pub mod verified;
pub mod window;

pub use block::BlockTrace;
pub use cap_probe::{CapProbe, CompletedWork, KnownLimit, ProbeWindow, ProbedLoad, WindowCounter};
pub use check::ImpossibleValue;
pub use device_event::{DeviceEvent, DeviceOperation, DeviceRequest, DeviceStep};
pub use environment::{Device, DeviceHealth, Environment, Filesystem, TargetDescription};
pub use experiment::{
    Experiment, JobFileText, Setting, SettingError, SizeChoice, StepValues, Workload,
};
pub use histogram::{Histogram, LatencyRecorder};
pub use interference::Interference;
pub use ledger::Ledger;
pub use load::{Engine, LoadMeasure, OperationMeasure, SeriesPoint};
pub use printable::{escape_unprintable, escape_unprintable_line};
pub use protocol::{CacheMode, Protocol, SteadyRule, SteadyRuleError, SummaryStatistic};
pub use repetition::{
    ControllerCache, DeviceRequests, DeviceTraffic, InterleavedBlock, MediaCache, Repetition,
    Residency, WorkerFailure, WorkerMeasure,
};
pub use replay::{
    ReplayAddresses, ReplayPace, TraceFacts, TraceFile, TraceOperation, TraceReading, TraceReplay,
};
pub use run::{
    ComparisonVariant, FRESH_NOTE_PREFIX, InterleavedRun, MeasuredWorld, ModelInformation,
    Overhead, ProgramResult, Run, RunState,
};
pub use title::ResultTitle;
pub use trace::Trace;
pub use verified::VerifiedBlocks;
pub use window::SteadyWindow;

pub use diskperf_spans::{
    Deadline, DieBusy, FlashTraffic, Nanoseconds, RequestTimeline, Span, Stage, StageInterval,
    VolumeLimit,
};
