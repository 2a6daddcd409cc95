//! What a program is to the rest of the battery: an I/O pattern with parameters.

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

/// A phase of a program. A worker awaits three of them in a repetition.
pub(crate) type Steps<'a> = Pin<Box<dyn Future<Output = Result<(), ProgramError>> + 'a>>;

/// Where a program runs, and as which worker.
pub(crate) type Place<'a> = (&'a mut System, &'a Worker);

/// A phase without steps.
pub(crate) fn nothing<'a>() -> Steps<'a> {
    Box::pin(std::future::ready(Ok(())))
}

/// A line of the list of programs.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// What it does.
    pub(crate) does: &'static str,
    /// The name of its files: those of one name are the same files.
    pub(crate) files: &'static str,
    /// The pattern behind it, with its defaults.
    pub(crate) pattern: fn() -> Box<dyn Pattern>,
}

/// An I/O pattern: what each program implements. Each worker has a copy of its own, which
/// keeps what [`survey`](Pattern::survey) finds. Methods without a comment are those of
/// [`Program`](crate::Program) with the same name.
pub(crate) trait Pattern: Boxed + Debug + Send + Sync {
    /// Its parameters.
    fn fields(&mut self) -> Vec<Field<'_>>;

    /// Its properties with these parameters.
    fn facts(&self) -> Facts;

    /// Why the parameters do not fit together, if they do not.
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

    /// Bytes that it moves if nobody says otherwise, where that is its own matter.
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

    /// The bytes of each of its files by name, where programs that name the same file share
    /// it.
    fn shared_files(&self) -> Option<BTreeMap<&str, u64>> {
        None
    }

    /// How many of these bytes are made before the timed part, at most.
    fn prepared_bytes(&self, size_bytes: u64) -> u64 {
        self.file_bytes(size_bytes)
    }

    /// Bytes that one timed part writes, where it knows.
    fn written_bytes(&self) -> Option<u64> {
        None
    }

    /// The files where drives need no images, if these are others.
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

/// Properties of a program that depend on its parameters alone. Fields without a comment
/// are methods of [`Program`](crate::Program) with the same name.
pub(crate) struct Facts {
    /// Bytes of one call, or of the largest.
    pub(crate) call_bytes: u64,
    /// Calls whose bytes are in its buffer at once.
    pub(crate) buffer_calls: u64,
    /// Whether it works on a tree of files, whose size may be any.
    pub(crate) is_of_a_tree: bool,
    /// Whether its size need not be a multiple of its calls.
    pub(crate) takes_any_size: bool,
    pub(crate) dump_unit_bytes: Option<u64>,
    pub(crate) passes: u64,
    pub(crate) workers: u32,
    /// Milliseconds from the start of one worker to that of the next.
    pub(crate) offset_ms: u64,
    /// Whether its first worker writes to a pipe that its second reads.
    pub(crate) is_piped: bool,
    /// The media that it can run on.
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
    /// The state of the page cache that it needs, whatever the run asks for.
    pub(crate) cache: Option<CacheMode>,
    pub(crate) lasts: Option<Nanoseconds>,
    pub(crate) drains: Nanoseconds,
    pub(crate) offered_bytes_per_s: Option<u64>,
    /// The least and the most bytes that a repetition moves whose size nobody said.
    pub(crate) sizes_bytes: (u64, u64),
}

impl Facts {
    /// A program that only reads the target, in calls of this size.
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

    /// A program that writes to it.
    pub(crate) fn writing(call_bytes: u64) -> Self {
        Self {
            writes: true,
            ..Self::reading(call_bytes)
        }
    }
}

/// How a boxed pattern is cloned.
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
