//! I/O programs, as the runner and the suites use them.

use crate::blocks;
use crate::parameter::{Parameter, ParameterError, ParameterField, ParameterValue};
use crate::pattern::{AccessPattern, ProgramEntry, ProgramProperties};
use crate::programs;
use crate::replay::ReplayPlan;
use crate::verify::VERIFY_PARAMETER;
use crate::worker::{Medium, PipeEnd, Worker};
use crate::workload::tree;
use diskperf_fio::JobDefinition;
use diskperf_system::{Buffer, Error, LayoutError, System};
use diskperf_timeline::{CacheMode, Nanoseconds, WorkerMeasure};
use std::collections::BTreeMap;

/// I/O program with its parameters.
#[derive(Clone, Debug)]
pub struct Program {
    name: &'static str,
    file_set_name: &'static str,
    access_pattern: Box<dyn AccessPattern>,
    think_ns: u64,
}

/// Programs are equal if their parameters are equal. Results of a survey do not count, nor does the
/// position of the job file section that describes a program.
impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        let same_job = match (self.fio_job(), other.fio_job()) {
            (Some(one), Some(other)) => one.has_same_workload(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        self.name == other.name
            && self.list_parameters() == other.list_parameters()
            && same_job
            && self.replay() == other.replay()
    }
}

/// File that exists before the timed part, which reads or overwrites it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    /// Path of the input file.
    pub path: String,
    /// Length of the used part of the input file, from its start, in bytes.
    pub length_bytes: u64,
    /// Whether the program reads the input file, so that the state of the page cache matters.
    pub is_read_through: bool,
}

impl InputFile {
    pub(crate) fn new_read(path: String, length_bytes: u64) -> Self {
        Self {
            path,
            length_bytes,
            is_read_through: true,
        }
    }
}

/// Reason why a program failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// A system call failed.
    #[error(transparent)]
    SystemCallFailed(#[from] Error),
    /// A file or device ended before the program had read its size.
    #[error("the file or device ends before the program's size; give a smaller --size")]
    ShortFile,
    /// A write accepted no bytes and returned no error.
    #[error("a write accepted no bytes and returned no error")]
    WriteAcceptedNothing,
    /// The plan has no other file system for a copy that needs one.
    #[error("destination=other needs a directory on another file system: give --other DIR")]
    NoSecondFilesystem,
    /// A tree of files cannot be laid out on its file system.
    #[error("{0}; give a smaller --size, or a smaller program.used_share")]
    LayoutFailed(#[from] LayoutError),
    /// The data from a pipe is not a dump, or not a complete one.
    #[error("restore cannot read the stream of dump: {0}")]
    TapeDamaged(&'static str),
    /// The source of a replay cannot be read any further.
    #[error("{0}")]
    TraceFailed(String),
    /// The program missed a required rate or latency.
    #[error("{0}")]
    ThresholdMissed(String),
    /// Blocks that were read back differ from the written data.
    #[error("{0}")]
    CorruptData(String),
    /// The system does not permit a worker to have a thread.
    #[error("a worker's thread could not be started: {0}")]
    ThreadNotStarted(String),
}

impl Program {
    /// Returns the names and descriptions of all programs.
    pub fn list_programs() -> Vec<(&'static str, &'static str)> {
        program_entries()
            .map(|entry| (entry.name, entry.summary))
            .collect()
    }

    /// Returns the program of this name with its default parameters, or `None` if no program has
    /// the name.
    pub fn from_name(name: &str) -> Option<Self> {
        let entry = program_entries().find(|entry| entry.name == name)?;
        Some(Self {
            name: entry.name,
            file_set_name: entry.file_set_name,
            access_pattern: (entry.new_pattern)(),
            think_ns: 0,
        })
    }

    pub(crate) fn from_pattern(
        (name, files): (&'static str, &'static str),
        pattern: Box<dyn AccessPattern>,
    ) -> Self {
        Self {
            name,
            file_set_name: files,
            access_pattern: pattern,
            think_ns: 0,
        }
    }

    /// Returns the job file section that the program runs, if it runs one.
    pub fn fio_job(&self) -> Option<&JobDefinition> {
        self.access_pattern.fio_job()
    }

    /// Returns the trace that the program replays, if it is a replay.
    pub fn replay(&self) -> Option<&ReplayPlan> {
        self.access_pattern.trace_replay()
    }

    /// Returns notes on the execution of the program that a reader of its results needs.
    pub fn program_notes(&self) -> Vec<String> {
        self.access_pattern.support_notes()
    }

    /// Returns the name of the program.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the program's parameters with their values.
    pub fn list_parameters(&self) -> Vec<Parameter> {
        // Listing and setting go through the same fields, which lend out the
        // values; a copy keeps listing from asking for a mutable program.
        self.clone()
            .parameter_fields()
            .iter()
            .map(ParameterField::describe_parameter)
            .collect()
    }

    /// Returns the values of the program's parameters by name, as a run records them.
    pub fn parameter_values(&self) -> BTreeMap<String, String> {
        self.list_parameters()
            .into_iter()
            .map(|parameter| (parameter.parameter_name.to_owned(), parameter.value))
            .collect()
    }

    /// Sets one parameter of the program.
    pub fn set_parameter(&mut self, name: &str, value: &str) -> Result<(), ParameterError> {
        let program = self.name;
        let mut fields = self.parameter_fields();
        let known: Vec<_> = fields.iter().map(|field| field.name).collect();
        let Some(field) = fields.iter_mut().find(|field| field.name == name) else {
            return Err(ParameterError::UnknownParameter {
                program: program.to_owned(),
                name: name.to_owned(),
                nearest: nearest_name(name, known.iter().copied()),
                known,
            });
        };
        field
            .value
            .parse_value(value)
            .ok_or_else(|| ParameterError::InvalidValue {
                program: program.to_owned(),
                name: field.name,
                value: value.to_owned(),
                allowed: field.describe_parameter().allowed_values,
            })
    }

    /// Returns the reason why written data cannot be verified, or `None` if the program has a
    /// parameter for verification.
    pub fn unverified_reason(&self) -> Option<&'static str> {
        let mut parameters = self.list_parameters().into_iter();
        if parameters.any(|one| one.parameter_name == VERIFY_PARAMETER) {
            return None;
        }
        Some(match (self.fio_job(), self.replay()) {
            (Some(_), _) => "a job file has its own option: add verify=crc32c to its sections",
            (_, Some(_)) => {
                "a trace has no record of the written data; use `run random` or `run sequential` \
                 with --set program.write_share=1"
            }
            (None, None) => {
                "the program writes no blocks that could be read back; use one that does, such as \
                 `run sequential --set program.write_share=1`"
            }
        })
    }

    fn properties(&self) -> ProgramProperties {
        self.access_pattern.program_properties()
    }

    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        let mut fields = self.access_pattern.parameter_fields();
        fields.push(ParameterField {
            name: "think_ns",
            description: "CPU time that the program uses after each block, in nanoseconds",
            value: ParameterValue::Count(&mut self.think_ns, 0, 60_000_000_000),
        });
        fields
    }

    /// Returns the bytes of one call, or of the largest call of a mix.
    pub fn call_bytes(&self) -> u64 {
        self.properties().call_bytes
    }

    /// Returns the default size of the program in bytes, or `None` if it has no default of its own.
    pub fn default_size_bytes(&self) -> Option<u64> {
        let of_a_tree = self
            .properties()
            .works_on_tree
            .then_some(tree::DEFAULT_TREE_BYTES);
        of_a_tree.or_else(|| self.access_pattern.default_bytes())
    }

    /// Returns the bytes that the requests address, if a job file determines them. For other
    /// programs it is the parameter `area_bytes`.
    pub fn addressed_range_bytes(&self) -> Option<u64> {
        self.access_pattern.addressed_range_bytes()
    }

    fn call_bytes_parameter(&self) -> &'static str {
        let values = self.parameter_values();
        let keys = ["call_bytes", "block_bytes", "sizes"];
        let known = keys.into_iter().find(|key| values.contains_key(*key));
        known.unwrap_or("call_bytes")
    }

    /// Checks the parameters against each other and against the size.
    pub fn check_parameters(&self, size_bytes: u64) -> Result<(), ParameterError> {
        let facts = self.properties();
        let call_bytes = facts.call_bytes;
        let tree = facts.works_on_tree;
        let reason = if size_bytes == 0 {
            "a size of 0 moves nothing; give --size 8M, or omit it".to_owned()
        } else if size_bytes < call_bytes && !tree {
            let key = self.call_bytes_parameter();
            format!(
                "one call of {call_bytes} bytes is larger than the size of {size_bytes}; give a larger --size or a smaller program.{key}"
            )
        } else if let Some(reason) = self.access_pattern.validation_error() {
            reason
        } else if tree && size_bytes > tree::TREE_BYTES_MAX {
            format!("a tree of {size_bytes} bytes has too many files; give --size 4G at most")
        } else if !size_bytes.is_multiple_of(call_bytes) && !facts.accepts_any_size && !tree {
            let below = size_bytes / call_bytes * call_bytes;
            format!(
                "the size of {size_bytes} bytes is not a multiple of the call of {call_bytes}; --size {below} is the nearest below"
            )
        } else {
            return Ok(());
        };
        Err(ParameterError::IncompatibleValue {
            program: self.name.to_owned(),
            reason,
        })
    }

    /// Returns the greatest common divisor of the offsets and lengths of all calls for a size of
    /// `size_bytes`. O_DIRECT requires it to be a multiple of the sector size.
    pub fn unit_bytes(&self, size_bytes: u64) -> u64 {
        self.access_pattern.unit_bytes(size_bytes)
    }

    /// Returns the common divisor of offsets and lengths for reads of the drive below its mounted
    /// file system, as dump does them. `None` if the program makes no such reads.
    pub fn dump_unit_bytes(&self) -> Option<u64> {
        self.properties().dump_unit_bytes
    }

    /// Returns the name of the files that programs share. Programs with the same file name use the
    /// same files.
    pub fn file_name(&self) -> &'static str {
        self.file_set_name
    }

    /// Returns the number of workers on each drive.
    pub fn worker_count(&self) -> u32 {
        self.properties().worker_count
    }

    /// Returns the delay of a worker's start after the first worker of its drive.
    pub fn start_offset(&self, worker: &Worker) -> Nanoseconds {
        self.start_offset_of_index(worker.worker_index)
    }

    /// Returns the delay of the last worker's start after the first worker of the drive.
    pub fn last_start_offset(&self) -> Nanoseconds {
        self.start_offset_of_index(self.worker_count() - 1)
    }

    fn start_offset_of_index(&self, index: u32) -> Nanoseconds {
        Nanoseconds::from_millis(self.properties().start_offset_ms * u64::from(index))
    }

    /// Returns a worker's end of the pipe between the two workers of its drive, or `None` without a
    /// pipe. The first worker writes.
    pub fn pipe_end(&self, worker: &Worker) -> Option<PipeEnd> {
        self.properties().is_piped.then(|| worker.pipe_end())
    }

    /// Returns the CPU time that the program uses after each block.
    pub fn think_time(&self) -> Nanoseconds {
        Nanoseconds(self.think_ns)
    }

    /// Reports whether the program can run on a medium.
    pub fn supports_medium(&self, medium: Medium) -> bool {
        self.properties().supported_media.contains(&medium)
    }

    /// Reports whether the program can run on Minix, whose drives are both files and devices.
    pub fn supports_minix(&self) -> bool {
        self.properties().runs_on_minix
    }

    /// Reports whether the program renames files by rename(2).
    pub fn renames_files(&self) -> bool {
        self.properties().renames_files
    }

    /// Reports whether the program makes files or their names durable by fsync(2), one call at a
    /// time.
    pub fn syncs_directory_entries(&self) -> bool {
        self.properties().syncs_directory_entries
    }

    /// Reports whether the program opens the drive by its device name, whatever its target is.
    pub fn opens_device_by_name(&self) -> bool {
        self.properties().opens_device_by_name
    }

    /// Reports whether the program reads a block device of length 0, which only Minix has.
    pub fn reads_block_null(&self) -> bool {
        self.properties().reads_block_null
    }

    /// Reports whether the timed part writes to the drive.
    pub fn writes_target(&self) -> bool {
        self.properties().writes_target
    }

    /// Reports whether the program writes a log, as database engines do. A log is much smaller than
    /// the data beside it.
    pub fn appends_log(&self) -> bool {
        self.properties().appends_log
    }

    /// Reports whether the program keeps requests in flight and times each of them, as other load
    /// generators do.
    pub fn keeps_requests_in_flight(&self) -> bool {
        self.fio_job().is_some() || self.properties().keeps_requests_in_flight
    }

    /// Reports whether the program needs a directory on another file system.
    pub fn needs_second_target(&self) -> bool {
        self.properties().needs_second_target
    }

    /// Reports whether the program accesses the target at all.
    pub fn accesses_target(&self) -> bool {
        self.properties().accesses_target
    }

    /// Returns the duration of a repetition including the ramp, or `None` if the size ends it.
    pub fn duration_max(&self) -> Option<Nanoseconds> {
        self.properties().duration_max
    }

    /// Reports whether one repetition says all, because the program repeats its loads itself.
    pub fn repeats_by_itself(&self) -> bool {
        self.properties().repeats_by_itself
    }

    /// Returns the maximum time after [`Program::duration_max`] in which requests that had arrived by the
    /// clock are still served, if the storage cannot keep up.
    pub fn drain_time_max(&self) -> Nanoseconds {
        self.properties().drain_time_max
    }

    /// Returns the bytes per second that arrive by the clock for each worker, or `None` for a
    /// closed loop.
    pub fn offered_bytes_per_s(&self) -> Option<u64> {
        self.properties().offered_bytes_per_s
    }

    /// Returns the minimum and maximum bytes of a repetition for which the user gives no size. The
    /// default is 8 MiB, the size of 1983, and 1 GiB; programs with slow requests or with writes
    /// have smaller maxima.
    pub fn default_size_bytes_range(&self) -> (u64, u64) {
        let facts = self.properties();
        let (least, most) = facts.size_bytes_range;
        (least.max(facts.call_bytes), most.max(facts.call_bytes))
    }

    /// Sets whether the program bypasses the page cache, if its parameter leaves that to the
    /// target.
    pub fn set_direct_if_unset(&mut self, direct: bool) {
        if self.is_direct_unset() {
            let value = if direct { "yes" } else { "no" };
            self.set_parameter("direct", value).expect("it takes both");
        }
    }

    /// Reports whether the program still leaves open if it bypasses the page cache (`direct=auto`).
    pub fn is_direct_unset(&self) -> bool {
        let mut parameters = self.list_parameters().into_iter();
        parameters.any(|one| one.parameter_name == "direct" && one.value == "auto")
    }

    /// Returns the page cache mode of the program for a run that asks for `asked`.
    pub fn cache_mode_for(&self, asked: CacheMode) -> CacheMode {
        self.properties().cache_mode.unwrap_or(asked)
    }

    /// Returns the bytes of the files that the program keeps on each drive at one time.
    pub fn file_bytes(&self, size_bytes: u64) -> u64 {
        self.access_pattern.file_bytes(size_bytes)
    }

    /// Returns the sizes in bytes of the program's files by name, if programs that name the same
    /// file share it. `None` if the files are the program's own.
    pub fn shared_files(&self) -> Option<BTreeMap<&str, u64>> {
        self.access_pattern.shared_files()
    }

    /// Returns the maximum bytes of the files that are made before the timed part. They stay for
    /// all repetitions.
    pub fn prepared_bytes(&self, size_bytes: u64) -> u64 {
        self.access_pattern.prepared_bytes(size_bytes)
    }

    /// Returns the maximum bytes that one timed part writes, to new files or over existing ones.
    pub fn written_bytes(&self, size_bytes: u64) -> u64 {
        if !self.writes_target() {
            return 0;
        }
        if let Some(written_bytes) = self.access_pattern.written_bytes() {
            return written_bytes;
        }
        let own_bytes = self.file_bytes(size_bytes) - self.prepared_bytes(size_bytes);
        own_bytes.max(size_bytes)
    }

    /// Returns the name and the bytes of the program's files on a system whose drives can be read
    /// below their file systems, so that no images are needed.
    pub fn files_without_images(&self, size_bytes: u64) -> (&'static str, u64) {
        let others = self.access_pattern.files_without_images(size_bytes);
        others.unwrap_or_else(|| (self.file_name(), self.file_bytes(size_bytes)))
    }

    /// Returns the number of times that each byte of the size passes through a call. It is two for
    /// a copy.
    pub fn pass_count(&self) -> u64 {
        self.properties().pass_count
    }

    /// Returns the files that the cache mode must prepare before the timed part of this worker.
    pub fn input_files(&self, worker: &Worker) -> Vec<InputFile> {
        self.access_pattern.input_files(worker)
    }

    /// Returns the bytes that count for KB/s. `/dev/null` returns no bytes, so that the requested
    /// bytes count there, as in Kirkendall 1989.
    pub fn payload_bytes(&self, worker: &Worker, measure: &WorkerMeasure) -> u64 {
        self.access_pattern.payload_bytes(worker, measure)
    }

    /// Returns the worker's buffer, filled with data.
    pub fn new_buffer(&self, worker: &Worker) -> Buffer {
        blocks::new_data_buffer(self.buffer_bytes(), worker.random_seed)
    }

    /// Returns the worker's buffer for a modelled computer, which compresses nothing. The buffer is
    /// as short as possible, so that it stays in the host's first-level cache.
    pub fn new_short_buffer(&self, worker: &Worker) -> Buffer {
        if self.properties().works_on_tree {
            // It is used in parts, for the tape and for what goes with it.
            return self.new_buffer(worker);
        }
        blocks::new_call_buffer(self.buffer_bytes(), worker.random_seed)
    }

    fn buffer_bytes(&self) -> u64 {
        self.properties().buffer_call_count * self.call_bytes()
    }

    /// Prepares a repetition before the clock starts: makes or removes files.
    pub async fn prepare_target(
        &self,
        system: &mut System,
        worker: &Worker,
    ) -> Result<(), ProgramError> {
        self.access_pattern.prepare_target(system, worker).await
    }

    /// Determines in advance what the worker's timed part needs to know and would otherwise
    /// determine within it. The files of all workers exist by then.
    pub async fn survey_target(
        &mut self,
        system: &mut System,
        worker: &Worker,
    ) -> Result<(), ProgramError> {
        self.access_pattern.survey_target(system, worker).await
    }

    /// Runs the timed part. It leaves its files open, as the programs of 1983 did.
    ///
    /// # Panics
    ///
    /// Panics if the program needs a survey and had none.
    pub async fn run_timed_part(
        &self,
        system: &mut System,
        worker: &Worker,
        buffer: &mut Buffer,
    ) -> Result<(), ProgramError> {
        self.access_pattern
            .run_timed_part((system, worker), buffer)
            .await
    }
}

fn program_entries() -> impl Iterator<Item = &'static ProgramEntry> {
    programs::FILES.iter().copied().flatten()
}

/// Returns the greatest common divisor of two numbers.
pub(crate) fn greatest_common_divisor(left: u64, right: u64) -> u64 {
    if right == 0 {
        left
    } else {
        greatest_common_divisor(right, left % right)
    }
}

/// Returns the name that is most similar to `name`, or `None` if no name is similar enough. Names
/// that begin with `name` are preferred.
pub fn nearest_name<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
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
