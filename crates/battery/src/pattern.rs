//! Interface of an I/O program to the rest of the crate: an I/O pattern with parameters.

use crate::parameter::ParameterField;
use crate::program::{InputFile, ProgramError};
use crate::replay::ReplayPlan;
use crate::worker::{Medium, Worker};
use diskperf_fio::JobDefinition;
use diskperf_system::{Buffer, System};
use diskperf_timeline::units::{GIB, MIB};
use diskperf_timeline::{CacheMode, Nanoseconds, WorkerMeasure};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::Pin;

/// Phase of a program. A worker awaits three phases in each repetition.
pub(crate) type PhaseFuture<'a> = Pin<Box<dyn Future<Output = Result<(), ProgramError>> + 'a>>;

/// System that a program runs on, and the worker that runs it.
pub(crate) type SystemAndWorker<'a> = (&'a mut System, &'a Worker);

/// Returns a program phase that does nothing.
pub(crate) fn empty_phase<'a>() -> PhaseFuture<'a> {
    Box::pin(std::future::ready(Ok(())))
}

pub(crate) struct ProgramEntry {
    pub(crate) name: &'static str,
    /// Short description of the program for the list.
    pub(crate) summary: &'static str,
    /// Name of the program's files. Programs with the same name share the files.
    pub(crate) file_set_name: &'static str,
    /// Constructor of the program's pattern with its default parameters.
    pub(crate) new_pattern: fn() -> Box<dyn AccessPattern>,
}

/// I/O pattern, which each program implements. Each worker has its own copy, which keeps the
/// results of [`survey`](AccessPattern::survey_target). Methods without a comment are those of
/// [`Program`](crate::Program) with the same name.
pub(crate) trait AccessPattern: ClonePattern + Debug + Send + Sync {
    /// Returns the pattern's parameters as editable fields.
    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>>;

    /// Returns the pattern's properties for its current parameters.
    fn program_properties(&self) -> ProgramProperties;

    /// Returns the reason why the parameters do not fit together, or `None` if they do.
    fn validation_error(&self) -> Option<String> {
        None
    }

    fn fio_job(&self) -> Option<&JobDefinition> {
        None
    }

    fn trace_replay(&self) -> Option<&ReplayPlan> {
        None
    }

    fn support_notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the default size of the pattern in bytes, or `None` if it has no default of its own.
    fn default_bytes(&self) -> Option<u64> {
        None
    }

    fn addressed_range_bytes(&self) -> Option<u64> {
        None
    }

    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        self.program_properties().call_bytes
    }

    fn file_bytes(&self, size_bytes: u64) -> u64 {
        size_bytes
    }

    /// Returns the sizes in bytes of the pattern's files by name, if programs that name the same
    /// file share it.
    fn shared_files(&self) -> Option<BTreeMap<&str, u64>> {
        None
    }

    /// Returns the maximum number of the file bytes that are written before the timed part.
    fn prepared_bytes(&self, size_bytes: u64) -> u64 {
        self.file_bytes(size_bytes)
    }

    /// Returns the bytes that one timed part writes, or `None` if the pattern does not know.
    fn written_bytes(&self) -> Option<u64> {
        None
    }

    /// Returns the name and bytes of the files on a system that needs no images of its drives, if
    /// they differ from the usual ones.
    fn files_without_images(&self, _size_bytes: u64) -> Option<(&'static str, u64)> {
        None
    }

    fn input_files(&self, _worker: &Worker) -> Vec<InputFile> {
        Vec::new()
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.read_bytes
    }

    fn prepare_target<'a>(
        &'a self,
        _system: &'a mut System,
        _worker: &'a Worker,
    ) -> PhaseFuture<'a> {
        empty_phase()
    }

    fn survey_target<'a>(
        &'a mut self,
        _system: &'a mut System,
        _worker: &'a Worker,
    ) -> PhaseFuture<'a> {
        empty_phase()
    }

    fn run_timed_part<'a>(
        &'a self,
        place: SystemAndWorker<'a>,
        buffer: &'a mut Buffer,
    ) -> PhaseFuture<'a>;
}

/// Properties of a program that depend on its parameters only. Fields without a comment are methods
/// of [`Program`](crate::Program) with the same name.
pub(crate) struct ProgramProperties {
    /// Bytes of one call, or of the largest call.
    pub(crate) call_bytes: u64,
    /// Number of calls whose data the program's buffer holds.
    pub(crate) buffer_call_count: u64,
    /// Whether the program works on a tree of files, which may have any size.
    pub(crate) works_on_tree: bool,
    /// Whether the program's size need not be a multiple of its calls.
    pub(crate) accepts_any_size: bool,
    pub(crate) dump_unit_bytes: Option<u64>,
    pub(crate) pass_count: u64,
    pub(crate) worker_count: u32,
    /// Delay between the starts of consecutive workers, in milliseconds.
    pub(crate) start_offset_ms: u64,
    /// Whether the first worker writes to a pipe that the second worker reads.
    pub(crate) is_piped: bool,
    pub(crate) supported_media: &'static [Medium],
    pub(crate) runs_on_minix: bool,
    pub(crate) renames_files: bool,
    pub(crate) syncs_directory_entries: bool,
    pub(crate) reads_block_null: bool,
    pub(crate) opens_device_by_name: bool,
    pub(crate) writes_target: bool,
    pub(crate) appends_log: bool,
    pub(crate) keeps_requests_in_flight: bool,
    pub(crate) needs_second_target: bool,
    pub(crate) accesses_target: bool,
    /// Whether one repetition says all, because it repeats its loads itself.
    pub(crate) repeats_by_itself: bool,
    /// State of the page cache that the program requires, whatever the run asks for. `None` if the
    /// run decides.
    pub(crate) cache_mode: Option<CacheMode>,
    pub(crate) duration_max: Option<Nanoseconds>,
    pub(crate) drain_time_max: Nanoseconds,
    pub(crate) offered_bytes_per_s: Option<u64>,
    /// Minimum and maximum bytes of a repetition for which the user gives no size.
    pub(crate) size_bytes_range: (u64, u64),
}

impl ProgramProperties {
    /// Returns the properties of a program that only reads the target, in calls of `call_bytes`.
    pub(crate) fn new_for_reads(call_bytes: u64) -> Self {
        Self {
            call_bytes,
            buffer_call_count: 1,
            works_on_tree: false,
            accepts_any_size: false,
            dump_unit_bytes: None,
            pass_count: 1,
            worker_count: 1,
            start_offset_ms: 0,
            is_piped: false,
            supported_media: &[Medium::Directory, Medium::Device, Medium::File],
            runs_on_minix: true,
            renames_files: false,
            syncs_directory_entries: false,
            reads_block_null: false,
            opens_device_by_name: false,
            writes_target: false,
            appends_log: false,
            keeps_requests_in_flight: false,
            needs_second_target: false,
            accesses_target: true,
            repeats_by_itself: false,
            cache_mode: None,
            duration_max: None,
            drain_time_max: Nanoseconds::ZERO,
            offered_bytes_per_s: None,
            size_bytes_range: (8 * MIB, GIB),
        }
    }

    /// Returns the properties of a program that writes the target, in calls of `call_bytes`.
    pub(crate) fn new_for_writes(call_bytes: u64) -> Self {
        Self {
            writes_target: true,
            ..Self::new_for_reads(call_bytes)
        }
    }
}

/// Cloning of I/O patterns behind a `Box`.
pub(crate) trait ClonePattern {
    fn clone_boxed(&self) -> Box<dyn AccessPattern>;
}

impl<P: AccessPattern + Clone + 'static> ClonePattern for P {
    fn clone_boxed(&self) -> Box<dyn AccessPattern> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn AccessPattern> {
    fn clone(&self) -> Self {
        (**self).clone_boxed()
    }
}
