//! A program as the runner and the suites have it.

use crate::blocks;
use crate::parameter::{Field, Parameter, ParameterError, Value};
use crate::pattern::{Entry, Facts, Pattern};
use crate::programs;
use crate::replay::Replay;
use crate::verify::VERIFY;
use crate::worker::{Medium, PipeEnd, Worker};
use crate::workload::tree;
use diskperf_fio::Job;
use diskperf_system::{Buffer, Error, LayoutError, System};
use diskperf_timeline::{CacheMode, Nanoseconds, WorkerMeasure};
use std::collections::BTreeMap;

/// A program with its parameters.
#[derive(Clone, Debug)]
pub struct Program {
    name: &'static str,
    files: &'static str,
    pattern: Box<dyn Pattern>,
    think_ns: u64,
}

/// Two programs are equal if their parameters are: what a survey found does not count, nor
/// where and how a job file says what one does.
impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        let same_job = match (self.fio_job(), other.fio_job()) {
            (Some(one), Some(other)) => one.does_the_same_as(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        self.name == other.name
            && self.parameters() == other.parameters()
            && same_job
            && self.replay() == other.replay()
    }
}

/// A file that is there before the timed part, which reads it or writes over
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its name.
    pub path: String,
    /// How many bytes of it, from the start.
    pub length_bytes: u64,
    /// Whether the program reads it: where its bytes come from then counts.
    pub read: bool,
}

impl Input {
    /// A file that is read.
    pub(crate) fn read(path: String, length_bytes: u64) -> Self {
        Self {
            path,
            length_bytes,
            read: true,
        }
    }
}

/// Why a program did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// A call failed.
    #[error(transparent)]
    System(#[from] Error),
    /// A file or device ended before the program had read its size.
    #[error("the file or device ends before the program's size; give a smaller --size")]
    ShortFile,
    /// A write took nothing and gave no error.
    #[error("a write took no bytes and gave no error")]
    NothingTaken,
    /// A copy to another file system without one.
    #[error("destination=other needs a directory on another file system: give --other DIR")]
    NoOtherFilesystem,
    /// A tree that cannot be laid out on the file system that it is for.
    #[error("{0}; give a smaller --size, or a smaller program.used_share")]
    Layout(#[from] LayoutError),
    /// What came through a pipe is no dump, or not all of one.
    #[error("restore cannot use what dump sent it: {0}")]
    Tape(&'static str),
    /// What a replay is of cannot be read on.
    #[error("{0}")]
    Trace(String),
    /// It fell short of what it is held to: a rate, or a latency.
    #[error("{0}")]
    Missed(String),
    /// Blocks that were read back are not what was written.
    #[error("{0}")]
    Corrupt(String),
    /// The system does not let a worker have a thread.
    #[error("a worker's thread could not be started: {0}")]
    NoThread(String),
}

impl Program {
    /// All programs, each with what it does.
    pub fn all() -> Vec<(&'static str, &'static str)> {
        entries().map(|entry| (entry.name, entry.does)).collect()
    }

    /// The program of this name with its defaults.
    pub fn named(name: &str) -> Option<Self> {
        let entry = entries().find(|entry| entry.name == name)?;
        Some(Self {
            name: entry.name,
            files: entry.files,
            pattern: (entry.pattern)(),
            think_ns: 0,
        })
    }

    /// One that no list has.
    pub(crate) fn of_pattern(
        (name, files): (&'static str, &'static str),
        pattern: Box<dyn Pattern>,
    ) -> Self {
        Self {
            name,
            files,
            pattern,
            think_ns: 0,
        }
    }

    /// The section of a job file that it does, if it is one.
    pub fn fio_job(&self) -> Option<&Job> {
        self.pattern.fio_job()
    }

    /// The trace that it makes again, if it is a replay.
    pub fn replay(&self) -> Option<&Replay> {
        self.pattern.replay()
    }

    /// What whoever reads its results must know of how it does its work.
    pub fn notes(&self) -> Vec<String> {
        self.pattern.notes()
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its parameters with their values.
    pub fn parameters(&self) -> Vec<Parameter> {
        // Listing and setting go through the same fields, which lend out the
        // values; a copy keeps listing from asking for a mutable program.
        self.clone().fields().iter().map(Field::describe).collect()
    }

    /// Its parameters as a run keeps them.
    pub fn parameter_values(&self) -> BTreeMap<String, String> {
        self.parameters()
            .into_iter()
            .map(|parameter| (parameter.name.to_owned(), parameter.value))
            .collect()
    }

    /// Sets one parameter.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ParameterError> {
        let program = self.name;
        let mut fields = self.fields();
        let known: Vec<_> = fields.iter().map(|field| field.name).collect();
        let Some(field) = fields.iter_mut().find(|field| field.name == name) else {
            return Err(ParameterError::Unknown {
                program: program.to_owned(),
                name: name.to_owned(),
                nearest: nearest(name, known.iter().copied()),
                known,
            });
        };
        field.value.set(value).ok_or_else(|| ParameterError::Value {
            program: program.to_owned(),
            name: field.name,
            value: value.to_owned(),
            allowed: field.describe().allowed,
        })
    }

    /// The reason that what it writes cannot be read back and compared; `None` where it has
    /// the parameter that asks for it.
    pub fn why_unverified(&self) -> Option<&'static str> {
        let mut parameters = self.parameters().into_iter();
        if parameters.any(|one| one.name == VERIFY) {
            return None;
        }
        Some(match (self.fio_job(), self.replay()) {
            (Some(_), _) => "a job file says it itself: add verify=crc32c to its sections",
            (_, Some(_)) => {
                "a trace does not say what was written; give `run random` or `run sequential` with --set program.write_share=1"
            }
            (None, None) => {
                "the program writes no blocks that could be read back; give one that does, as `run sequential --set program.write_share=1`"
            }
        })
    }

    fn facts(&self) -> Facts {
        self.pattern.facts()
    }

    fn fields(&mut self) -> Vec<Field<'_>> {
        let mut fields = self.pattern.fields();
        fields.push(Field {
            name: "think_ns",
            meaning: "nanoseconds of CPU time that the program uses after each block",
            value: Value::Count(&mut self.think_ns, 0, 60_000_000_000),
        });
        fields
    }

    /// Bytes of one call; of a mix, of its largest.
    pub fn call_bytes(&self) -> u64 {
        self.facts().call_bytes
    }

    /// Bytes that the program moves if nobody says otherwise, where that is
    /// its own matter.
    pub fn usual_bytes(&self) -> Option<u64> {
        let of_a_tree = self.facts().is_of_a_tree.then_some(tree::USUAL_BYTES);
        of_a_tree.or_else(|| self.pattern.usual_bytes())
    }

    /// Bytes that its requests fall into, where a job file says it: of a parameter, it is
    /// `area_bytes`.
    pub fn range_bytes(&self) -> Option<u64> {
        self.pattern.range_bytes()
    }

    /// The parameter that says how long its calls are.
    fn call_key(&self) -> &'static str {
        let values = self.parameter_values();
        let keys = ["call_bytes", "block_bytes", "sizes"];
        let known = keys.into_iter().find(|key| values.contains_key(*key));
        known.unwrap_or("call_bytes")
    }

    /// Checks the parameters against each other and against the size.
    pub fn check(&self, size_bytes: u64) -> Result<(), ParameterError> {
        let facts = self.facts();
        let call_bytes = facts.call_bytes;
        let tree = facts.is_of_a_tree;
        let reason = if size_bytes == 0 {
            "a size of 0 moves nothing; give --size 8M, or omit it".to_owned()
        } else if size_bytes < call_bytes && !tree {
            let key = self.call_key();
            format!(
                "one call of {call_bytes} bytes is larger than the size of {size_bytes}; give a larger --size or a smaller program.{key}"
            )
        } else if let Some(reason) = self.pattern.unfit() {
            reason
        } else if tree && size_bytes > tree::LARGEST_TREE_BYTES {
            format!("a tree of {size_bytes} bytes has too many files; give --size 4G at most")
        } else if !size_bytes.is_multiple_of(call_bytes) && !facts.takes_any_size && !tree {
            let below = size_bytes / call_bytes * call_bytes;
            format!(
                "the size of {size_bytes} bytes is not a multiple of the call of {call_bytes}; --size {below} is the nearest below"
            )
        } else {
            return Ok(());
        };
        Err(ParameterError::Unfit {
            program: self.name.to_owned(),
            reason,
        })
    }

    /// What offset and length of every call are multiples of, if the program's
    /// size is `size_bytes`: what O_DIRECT asks about.
    pub fn unit_bytes(&self, size_bytes: u64) -> u64 {
        self.pattern.unit_bytes(size_bytes)
    }

    /// What offset and length of what it reads of a drive are multiples of, where
    /// it reads a mounted file system past that, as dump does.
    pub fn dump_unit_bytes(&self) -> Option<u64> {
        self.facts().dump_unit_bytes
    }

    /// The name that programs give to the files that they share: those of one
    /// name are the same files.
    pub fn file_name(&self) -> &'static str {
        self.files
    }

    /// Workers on each drive.
    pub fn workers(&self) -> u32 {
        self.facts().workers
    }

    /// When a worker starts, after the first of its drive.
    pub fn start_offset(&self, worker: &Worker) -> Nanoseconds {
        self.start(worker.index)
    }

    /// When the last worker of a drive starts, after its first.
    pub fn last_start(&self) -> Nanoseconds {
        self.start(self.workers() - 1)
    }

    fn start(&self, index: u32) -> Nanoseconds {
        Nanoseconds::from_millis(self.facts().offset_ms * u64::from(index))
    }

    /// The end that a worker has of the pipe between the two of its drive, if
    /// there is one. The first worker writes.
    pub fn pipe_end(&self, worker: &Worker) -> Option<PipeEnd> {
        self.facts().is_piped.then(|| worker.pipe_end())
    }

    /// CPU time after each block.
    pub fn think(&self) -> Nanoseconds {
        Nanoseconds(self.think_ns)
    }

    /// Whether the program can run on a medium at all.
    pub fn is_of(&self, medium: Medium) -> bool {
        self.facts().media.contains(&medium)
    }

    /// Whether the program can run on Minix, whose drives are files and devices
    /// at once.
    pub fn is_of_minix(&self) -> bool {
        self.facts().is_of_minix
    }

    /// Whether it gives files other names, by rename(2).
    pub fn renames(&self) -> bool {
        self.facts().renames
    }

    /// Whether it makes files or their names durable by fsync(2), call by call.
    pub fn syncs_names(&self) -> bool {
        self.facts().syncs_names
    }

    /// Whether it opens the drive by its own name, whatever its target is.
    pub fn names_its_device(&self) -> bool {
        self.facts().names_its_device
    }

    /// Whether it reads a block device of length 0, which only Minix has.
    pub fn is_of_block_null(&self) -> bool {
        self.facts().is_of_block_null
    }

    /// Whether the timed part writes to the drive.
    pub fn writes(&self) -> bool {
        self.facts().writes
    }

    /// Whether what it writes is a log, as engines write theirs: much smaller than the data
    /// beside it.
    pub fn is_log(&self) -> bool {
        self.facts().is_log
    }

    /// Whether it keeps requests under way, each of which is timed: what others' load
    /// generators do as well.
    pub fn keeps_requests(&self) -> bool {
        self.fio_job().is_some() || self.facts().keeps_requests
    }

    /// Whether it needs a directory on another file system.
    pub fn needs_other(&self) -> bool {
        self.facts().needs_other
    }

    /// Whether it touches the target at all.
    pub fn touches_target(&self) -> bool {
        self.facts().touches_target
    }

    /// How long a repetition takes, ramp and all, where that is given and not the size.
    pub fn lasts(&self) -> Option<Nanoseconds> {
        self.facts().lasts
    }

    /// Longest time after [`Program::lasts`] in which requests that had arrived by the clock
    /// are still served, where the storage does not keep up with them.
    pub fn drains(&self) -> Nanoseconds {
        self.facts().drains
    }

    /// Bytes that arrive per second by the clock, of each worker; `None` in closed loop.
    pub fn offered_bytes_per_s(&self) -> Option<u64> {
        self.facts().offered_bytes_per_s
    }

    /// The least and the most bytes that a repetition moves whose size nobody said: 1983's
    /// size and a gibibyte, where requests are not by far slower than that, or written.
    pub fn sizes_bytes(&self) -> (u64, u64) {
        let facts = self.facts();
        let (least, most) = facts.sizes_bytes;
        (least.max(facts.call_bytes), most.max(facts.call_bytes))
    }

    /// Chooses whether the program goes past the page cache, if that is left to where it
    /// runs.
    pub fn choose_direct(&mut self, direct: bool) {
        if self.leaves_direct_open() {
            let value = if direct { "yes" } else { "no" };
            self.set("direct", value).expect("it takes both");
        }
    }

    /// Whether the program goes past the page cache where it can, and this is not chosen yet.
    pub fn leaves_direct_open(&self) -> bool {
        let mut parameters = self.parameters().into_iter();
        parameters.any(|one| one.name == "direct" && one.value == "auto")
    }

    /// What the program asks of the page cache, where the run asks for `asked`.
    pub fn cache_mode(&self, asked: CacheMode) -> CacheMode {
        self.facts().cache.unwrap_or(asked)
    }

    /// Bytes of the files that the program keeps on each drive at once.
    pub fn file_bytes(&self, size_bytes: u64) -> u64 {
        self.pattern.file_bytes(size_bytes)
    }

    /// The bytes of each of its files by name, where programs that name the same file share
    /// it; nothing where its files are its own.
    pub fn shared_files(&self) -> Option<BTreeMap<&str, u64>> {
        self.pattern.shared_files()
    }

    /// Bytes of the files that are made before the timed part, at most. They stay for
    /// all repetitions.
    pub fn prepared_bytes(&self, size_bytes: u64) -> u64 {
        self.pattern.prepared_bytes(size_bytes)
    }

    /// Bytes that one timed part writes, at most: to files of its own, or over those
    /// that are there.
    pub fn written_bytes(&self, size_bytes: u64) -> u64 {
        if !self.writes() {
            return 0;
        }
        if let Some(written_bytes) = self.pattern.written_bytes() {
            return written_bytes;
        }
        let own_bytes = self.file_bytes(size_bytes) - self.prepared_bytes(size_bytes);
        own_bytes.max(size_bytes)
    }

    /// The name of the program's files and their bytes on a system that gives
    /// its drives to be read past their file systems, and needs no images.
    pub fn files_without_images(&self, size_bytes: u64) -> (&'static str, u64) {
        let others = self.pattern.files_without_images(size_bytes);
        others.unwrap_or_else(|| (self.file_name(), self.file_bytes(size_bytes)))
    }

    /// How often each byte of the size passes through a call: twice in a copy.
    pub fn passes(&self) -> u64 {
        self.facts().passes
    }

    /// The files that must be as the cache mode wants them before this worker's
    /// timed part.
    pub fn inputs(&self, worker: &Worker) -> Vec<Input> {
        self.pattern.inputs(worker)
    }

    /// The bytes that count for KB/s. `/dev/null` returns none: there the
    /// bytes asked for count, as in Kirkendall 1989.
    pub fn payload_bytes(&self, worker: &Worker, measure: &WorkerMeasure) -> u64 {
        self.pattern.payload_bytes(worker, measure)
    }

    /// The buffer that the worker needs, filled.
    pub fn buffer(&self, worker: &Worker) -> Buffer {
        blocks::data(self.buffer_bytes(), worker.seed)
    }

    /// The same for a modelled computer, which compresses nothing: no longer
    /// than it must be, so that it stays in the host's first-level cache.
    pub fn short_buffer(&self, worker: &Worker) -> Buffer {
        if self.facts().is_of_a_tree {
            // It is used in parts, for the tape and for what goes with it.
            return self.buffer(worker);
        }
        blocks::data_of_one_call(self.buffer_bytes(), worker.seed)
    }

    fn buffer_bytes(&self) -> u64 {
        self.facts().buffer_calls * self.call_bytes()
    }

    /// What comes before the clock starts: files made, or removed.
    pub async fn prepare(&self, system: &mut System, worker: &Worker) -> Result<(), ProgramError> {
        self.pattern.prepare(system, worker).await
    }

    /// Finds out what the worker's timed part has to know, and would otherwise
    /// find out in it. Every worker's files are made by then.
    pub async fn survey(
        &mut self,
        system: &mut System,
        worker: &Worker,
    ) -> Result<(), ProgramError> {
        self.pattern.survey(system, worker).await
    }

    /// The timed part. It leaves its files open, as the programs of 1983 did.
    ///
    /// # Panics
    ///
    /// If the program needs a survey and had none.
    pub async fn run(
        &self,
        system: &mut System,
        worker: &Worker,
        buffer: &mut Buffer,
    ) -> Result<(), ProgramError> {
        self.pattern.run((system, worker), buffer).await
    }
}

fn entries() -> impl Iterator<Item = &'static Entry> {
    programs::FILES.iter().copied().flatten()
}

/// The greatest common divisor.
pub(crate) fn gcd(left: u64, right: u64) -> u64 {
    if right == 0 {
        left
    } else {
        gcd(right, left % right)
    }
}

/// The most similar of some names, if any is similar at all: of those that begin with it, if
/// any does.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let begins = |candidate: &str| name.len() >= 3 && candidate.starts_with(name);
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(similarity, _)| *similarity > 0.7)
        .max_by(|(left, one), (right, other)| {
            let prefix = begins(one).cmp(&begins(other));
            prefix.then(left.total_cmp(right))
        })
        .map(|(_, candidate)| candidate.to_owned())
}

#[cfg(test)]
mod tests;
