//! Interface of an I/O program to the rest of the crate: an I/O pattern with parameters.

use crate::parameter::Field;
use crate::program::{Input, ProgramError};
use crate::replay::Replay;
use crate::worker::{Medium, Worker};
use diskperf_fio::Job;
use diskperf_system::{Buffer, System};
use diskperf_timeline::units::{GIB, MIB};
use diskperf_timeline::{CacheMode, Nanoseconds, WorkerMeasure};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::Pin;

/// Phase of a program. A worker awaits three phases in each repetition.
pub(crate) type Steps<'a> = Pin<Box<dyn Future<Output = Result<(), ProgramError>> + 'a>>;

/// System that a program runs on, and the worker that runs it.
pub(crate) type Place<'a> = (&'a mut System, &'a Worker);

/// Returns a program phase that does nothing.
pub(crate) fn nothing<'a>() -> Steps<'a> {
    Box::pin(std::future::ready(Ok(())))
}

/// Entry in the list of programs.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// Short description of the program for the list.
    pub(crate) does: &'static str,
    /// Name of the program's files. Programs with the same name share the files.
    pub(crate) files: &'static str,
    /// Constructor of the program's pattern with its default parameters.
    pub(crate) pattern: fn() -> Box<dyn Pattern>,
}

/// I/O pattern, which each program implements. Each worker has its own copy, which keeps the
/// results of [`survey`](Pattern::survey). Methods without a comment are those of
/// [`Program`](crate::Program) with the same name.
pub(crate) trait Pattern: Boxed + Debug + Send + Sync {
    /// Returns the pattern's parameters as editable fields.
    fn fields(&mut self) -> Vec<Field<'_>>;

    /// Returns the pattern's properties for its current parameters.
    fn facts(&self) -> Facts;

    /// Returns the reason why the parameters do not fit together, or `None` if they do.
    fn unfit(&self) -> Option<String> {
        None
    }

    fn fio_job(&self) -> Option<&Job> {
        None
    }

    fn replay(&self) -> Option<&Replay> {
        None
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the default size of the pattern in bytes, or `None` if it has no default of its own.
    fn usual_bytes(&self) -> Option<u64> {
        None
    }

    fn range_bytes(&self) -> Option<u64> {
        None
    }

    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        self.facts().call_bytes
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

    fn inputs(&self, _worker: &Worker) -> Vec<Input> {
        Vec::new()
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.read_bytes
    }

    fn prepare<'a>(&'a self, _system: &'a mut System, _worker: &'a Worker) -> Steps<'a> {
        nothing()
    }

    fn survey<'a>(&'a mut self, _system: &'a mut System, _worker: &'a Worker) -> Steps<'a> {
        nothing()
    }

    fn run<'a>(&'a self, place: Place<'a>, buffer: &'a mut Buffer) -> Steps<'a>;
}

/// Properties of a program that depend on its parameters only. Fields without a comment are methods
/// of [`Program`](crate::Program) with the same name.
pub(crate) struct Facts {
    /// Bytes of one call, or of the largest call.
    pub(crate) call_bytes: u64,
    /// Number of calls whose data the program's buffer holds.
    pub(crate) buffer_calls: u64,
    /// Whether the program works on a tree of files, which may have any size.
    pub(crate) is_of_a_tree: bool,
    /// Whether the program's size need not be a multiple of its calls.
    pub(crate) takes_any_size: bool,
    pub(crate) dump_unit_bytes: Option<u64>,
    pub(crate) passes: u64,
    pub(crate) workers: u32,
    /// Delay between the starts of consecutive workers, in milliseconds.
    pub(crate) offset_ms: u64,
    /// Whether the first worker writes to a pipe that the second worker reads.
    pub(crate) is_piped: bool,
    /// Media on which the program can run.
    pub(crate) media: &'static [Medium],
    pub(crate) is_of_minix: bool,
    pub(crate) renames: bool,
    pub(crate) syncs_names: bool,
    pub(crate) is_of_block_null: bool,
    pub(crate) names_its_device: bool,
    pub(crate) writes: bool,
    pub(crate) is_log: bool,
    pub(crate) keeps_requests: bool,
    pub(crate) needs_other: bool,
    pub(crate) touches_target: bool,
    /// State of the page cache that the program requires, whatever the run asks for. `None` if the
    /// run decides.
    pub(crate) cache: Option<CacheMode>,
    pub(crate) lasts: Option<Nanoseconds>,
    pub(crate) drains: Nanoseconds,
    pub(crate) offered_bytes_per_s: Option<u64>,
    /// Minimum and maximum bytes of a repetition for which the user gives no size.
    pub(crate) sizes_bytes: (u64, u64),
}

impl Facts {
    /// Returns the properties of a program that only reads the target, in calls of `call_bytes`.
    pub(crate) fn reading(call_bytes: u64) -> Self {
        Self {
            call_bytes,
            buffer_calls: 1,
            is_of_a_tree: false,
            takes_any_size: false,
            dump_unit_bytes: None,
            passes: 1,
            workers: 1,
            offset_ms: 0,
            is_piped: false,
            media: &[Medium::Directory, Medium::Device, Medium::File],
            is_of_minix: true,
            renames: false,
            syncs_names: false,
            is_of_block_null: false,
            names_its_device: false,
            writes: false,
            is_log: false,
            keeps_requests: false,
            needs_other: false,
            touches_target: true,
            cache: None,
            lasts: None,
            drains: Nanoseconds::ZERO,
            offered_bytes_per_s: None,
            sizes_bytes: (8 * MIB, GIB),
        }
    }

    /// Returns the properties of a program that writes the target, in calls of `call_bytes`.
    pub(crate) fn writing(call_bytes: u64) -> Self {
        Self {
            writes: true,
            ..Self::reading(call_bytes)
        }
    }
}

/// Cloning of I/O patterns behind a `Box`.
pub(crate) trait Boxed {
    fn boxed(&self) -> Box<dyn Pattern>;
}

impl<P: Pattern + Clone + 'static> Boxed for P {
    fn boxed(&self) -> Box<dyn Pattern> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Pattern> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}
