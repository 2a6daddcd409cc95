//! What the runner has to know of each program.

mod inputs;
mod list;
mod survey;

use crate::blocks;
use crate::parameter::{Field, Parameter, ParameterError, Value};
use crate::programs::copy::{Copy, Destination};
use crate::programs::dump_restore::dump;
use crate::programs::dump_restore::{self, DumpRestore};
use crate::programs::fsck::{self, Fsck};
use crate::programs::random_mix::RandomMix;
use crate::programs::read::Read;
use crate::programs::read_files::ReadFiles;
use crate::programs::rewrite::Rewrite;
use crate::programs::scan::Scan;
use crate::programs::seqread::{Layer, SequentialRead};
use crate::programs::track_read::TrackRead;
use crate::programs::write::Write;
use crate::worker::{Medium, PipeEnd, Worker};
use crate::workload::populate::{self, Populate};
use crate::workload::tree;
use diskperf_system::{Buffer, Error, LayoutError, System};
use diskperf_timeline::{CacheMode, Nanoseconds};
use std::collections::BTreeMap;

pub use inputs::Input;
pub use survey::Survey;

/// A program with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    name: &'static str,
    kind: Kind,
    think_ns: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Read(Read),
    ReadFiles(ReadFiles),
    Write(Write),
    Rewrite(Rewrite),
    SequentialRead(SequentialRead),
    Copy(Copy),
    Scan(Scan),
    RandomMix(RandomMix),
    TrackRead(TrackRead),
    Populate(Populate),
    Fsck(Fsck),
    DumpRestore(DumpRestore),
}

/// A track and a cylinder of Piziali and Zam 1991's drive: 17 sectors of 512 bytes, 6
/// tracks.
pub(crate) const TRACK_BYTES: u64 = 17 * 512;
pub(crate) const CYLINDER_BYTES: u64 = 6 * TRACK_BYTES;

/// The files of the programs that work on a tree.
const TREE: &str = "tree";

/// The largest tree, of a quarter of a million files.
const LARGEST_TREE_BYTES: u64 = 4 << 30;

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
}

impl Program {
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

    fn fields(&mut self) -> Vec<Field<'_>> {
        let mut fields = match &mut self.kind {
            Kind::Read(program) => program.fields(),
            Kind::ReadFiles(program) => program.fields(),
            Kind::Write(program) => program.fields(),
            Kind::Rewrite(program) => program.fields(),
            Kind::SequentialRead(program) => program.fields(),
            Kind::Copy(program) => program.fields(),
            Kind::Scan(program) => program.fields(),
            Kind::RandomMix(program) => program.fields(),
            Kind::TrackRead(program) => program.fields(),
            Kind::Populate(program) => program.fields(),
            Kind::Fsck(program) => program.fields(),
            Kind::DumpRestore(program) => program.fields(),
        };
        fields.push(Field {
            name: "think_ns",
            meaning: "nanoseconds of CPU time that the program uses after each block",
            value: Value::Count(&mut self.think_ns, 0, 60_000_000_000),
        });
        fields
    }

    /// Bytes of one call; of a mix, of its largest.
    pub fn call_bytes(&self) -> u64 {
        match &self.kind {
            Kind::Read(program) => program.call_bytes,
            Kind::ReadFiles(program) => program.call_bytes,
            Kind::Write(program) => program.call_bytes,
            Kind::Rewrite(program) => program.call_bytes,
            Kind::SequentialRead(program) => program.call_bytes,
            Kind::Copy(program) => program.call_bytes,
            Kind::Scan(program) => program.call_bytes,
            Kind::RandomMix(program) => program.sizes.largest(),
            Kind::TrackRead(program) => program.call_bytes,
            Kind::Populate(_) | Kind::Fsck(_) => populate::CALL_BYTES,
            Kind::DumpRestore(_) => dump_restore::CALL_BYTES,
        }
    }

    /// Bytes that the program moves if nobody says otherwise, where that is
    /// its own matter.
    pub fn usual_bytes(&self) -> Option<u64> {
        self.is_of_a_tree().then_some(fsck::USUAL_BYTES)
    }

    /// Whether it works on a tree of files, whose size may be any.
    fn is_of_a_tree(&self) -> bool {
        matches!(
            self.kind,
            Kind::Populate(_) | Kind::Fsck(_) | Kind::DumpRestore(_)
        )
    }

    /// Checks the parameters against each other and against the size.
    pub fn check(&self, size_bytes: u64) -> Result<(), ParameterError> {
        let unfit = |reason: String| {
            Err(ParameterError::Unfit {
                program: self.name.to_owned(),
                reason,
            })
        };
        let call_bytes = self.call_bytes();
        if size_bytes == 0 {
            return unfit("a size of 0 moves nothing; give --size 8M, or leave it out".to_owned());
        }
        if size_bytes < call_bytes && !self.is_of_a_tree() {
            return unfit(format!(
                "one call of {call_bytes} bytes is larger than the size of {size_bytes}; give a larger --size or a smaller program.call_bytes"
            ));
        }
        if let Kind::RandomMix(program) = &self.kind {
            return program.unfit().map_or(Ok(()), unfit);
        }
        if let Kind::TrackRead(program) = &self.kind
            && let Some(reason) = program.unfit()
        {
            return unfit(reason);
        }
        if let Kind::Fsck(program) = &self.kind
            && let Some(reason) = program.unfit()
        {
            return unfit(reason);
        }
        if self.is_of_a_tree() && size_bytes > LARGEST_TREE_BYTES {
            return unfit(format!(
                "a tree of {size_bytes} bytes has too many files; give --size 4G at most"
            ));
        }
        let short_last_call =
            matches!(self.kind, Kind::Copy(_) | Kind::ReadFiles(_)) || self.is_of_a_tree();
        if !size_bytes.is_multiple_of(call_bytes) && !short_last_call {
            let below = size_bytes / call_bytes * call_bytes;
            return unfit(format!(
                "the size of {size_bytes} bytes is not a multiple of the call of {call_bytes}; --size {below} is the nearest below"
            ));
        }
        Ok(())
    }

    /// What offset and length of every call are multiples of, if the program's
    /// size is `size_bytes`: what O_DIRECT asks about.
    pub fn unit_bytes(&self, size_bytes: u64) -> u64 {
        match &self.kind {
            Kind::RandomMix(program) => program.unit_bytes(),
            Kind::Copy(program) => gcd(program.call_bytes, size_bytes),
            Kind::ReadFiles(program) => {
                gcd(gcd(program.call_bytes, program.file_bytes), size_bytes)
            }
            // Files of any length, and pieces of a block.
            Kind::Populate(_) | Kind::DumpRestore(_) => 1,
            Kind::Fsck(_) => fsck::UNIT_BYTES,
            _ => self.call_bytes(),
        }
    }

    /// What offset and length of what it reads of a drive are multiples of, where
    /// it reads a mounted file system past that, as dump does.
    pub fn dump_unit_bytes(&self) -> Option<u64> {
        match &self.kind {
            Kind::DumpRestore(_) => Some(dump::SECTOR_BYTES as u64),
            _ => None,
        }
    }

    /// The name that programs give to the files that they share: those of one
    /// name are the same files.
    pub fn file_name(&self) -> &'static str {
        match &self.kind {
            Kind::Read(_) | Kind::Write(_) | Kind::Rewrite(_) => "tst2",
            Kind::SequentialRead(_) => "twomegs",
            Kind::Copy(_) => "bigfile",
            Kind::ReadFiles(_) => "files",
            Kind::Scan(_) => "area",
            Kind::RandomMix(_) => "mix",
            Kind::TrackRead(_) => "drive",
            Kind::Populate(_) | Kind::DumpRestore(_) => TREE,
            Kind::Fsck(_) => "image",
        }
    }

    /// Workers on each drive.
    pub fn workers(&self) -> u32 {
        match &self.kind {
            Kind::Scan(program) => program.readers as u32,
            Kind::Fsck(program) => program.checkers as u32,
            Kind::DumpRestore(_) => dump_restore::WORKERS,
            _ => 1,
        }
    }

    /// When a worker starts, after the first of its drive.
    pub fn start_offset(&self, worker: &Worker) -> Nanoseconds {
        match &self.kind {
            Kind::Scan(program) => program.start_offset(worker),
            Kind::Fsck(program) => program.start_offset(worker),
            _ => Nanoseconds::ZERO,
        }
    }

    /// When the last worker of a drive starts, after its first.
    pub fn last_start(&self) -> Nanoseconds {
        match &self.kind {
            Kind::Scan(program) => program.last_start(),
            Kind::Fsck(program) => program.last_start(),
            _ => Nanoseconds::ZERO,
        }
    }

    /// The end that a worker has of the pipe between the two of its drive, if
    /// there is one. The first worker writes.
    pub fn pipe_end(&self, worker: &Worker) -> Option<PipeEnd> {
        match &self.kind {
            Kind::DumpRestore(_) => Some(DumpRestore::pipe_end(worker)),
            _ => None,
        }
    }

    /// CPU time after each block.
    pub fn think(&self) -> Nanoseconds {
        Nanoseconds(self.think_ns)
    }

    /// Whether the program can run on a medium at all.
    pub fn is_of(&self, medium: Medium) -> bool {
        match &self.kind {
            Kind::SequentialRead(program) => program.is_of(medium),
            Kind::TrackRead(_) => TrackRead::is_of(medium),
            Kind::ReadFiles(_) | Kind::Populate(_) | Kind::DumpRestore(_) => {
                medium == Medium::Directory
            }
            _ => true,
        }
    }

    /// Whether the program can run on Minix, whose drives are files and devices
    /// at once.
    pub fn is_of_minix(&self) -> bool {
        match &self.kind {
            Kind::SequentialRead(program) => program.is_of_minix(),
            _ => true,
        }
    }

    /// Whether it opens the drive by its own name, whatever its target is.
    pub fn names_its_device(&self) -> bool {
        matches!(&self.kind, Kind::SequentialRead(program) if program.layer.is_device())
    }

    /// Whether it reads a block device of length 0, which only Minix has.
    pub fn is_of_block_null(&self) -> bool {
        matches!(&self.kind, Kind::SequentialRead(program) if program.layer == Layer::BlockNull)
    }

    /// Whether the timed part writes to the drive.
    pub fn writes(&self) -> bool {
        match &self.kind {
            Kind::Read(_)
            | Kind::ReadFiles(_)
            | Kind::SequentialRead(_)
            | Kind::Scan(_)
            | Kind::TrackRead(_)
            | Kind::Fsck(_) => false,
            Kind::Write(_) | Kind::Rewrite(_) | Kind::Populate(_) | Kind::DumpRestore(_) => true,
            Kind::Copy(program) => program.destination == Destination::Same,
            Kind::RandomMix(program) => program.write_share > 0.0,
        }
    }

    /// Whether it needs a directory on another file system.
    pub fn needs_other(&self) -> bool {
        match &self.kind {
            Kind::Copy(program) => program.destination == Destination::Other,
            Kind::DumpRestore(program) => program.destination == dump_restore::Destination::Other,
            _ => false,
        }
    }

    /// Whether it touches the target at all.
    pub fn touches_target(&self) -> bool {
        match &self.kind {
            Kind::SequentialRead(program) => !program.layer.is_without_drive(),
            _ => true,
        }
    }

    /// What the program asks of the page cache, where the run asks for `asked`.
    pub fn cache_mode(&self, asked: CacheMode) -> CacheMode {
        match &self.kind {
            Kind::SequentialRead(program) => match program.layer {
                Layer::Cached => CacheMode::Warm,
                Layer::Dropped | Layer::Device => CacheMode::Cold,
                Layer::Direct | Layer::DeviceDirect => CacheMode::Direct,
                Layer::Null | Layer::BlockNull | Layer::Zero => asked,
            },
            Kind::TrackRead(_) => CacheMode::Direct,
            _ => asked,
        }
    }

    /// Bytes of the files that the program keeps on each drive at once.
    pub fn file_bytes(&self, size_bytes: u64) -> u64 {
        match &self.kind {
            Kind::Read(_) | Kind::Write(_) | Kind::Rewrite(_) => size_bytes,
            Kind::ReadFiles(program) => program.all_bytes(size_bytes),
            Kind::SequentialRead(_) if !self.touches_target() => 0,
            Kind::SequentialRead(_) => size_bytes,
            Kind::Copy(program) if program.destination == Destination::Same => {
                size_bytes.saturating_mul(2)
            }
            Kind::Copy(_) => size_bytes,
            Kind::Scan(program) => program.area_count().saturating_mul(size_bytes),
            Kind::RandomMix(program) => program.area_bytes,
            Kind::TrackRead(program) => program.area_bytes,
            Kind::Populate(_) => tree_bytes(size_bytes),
            Kind::Fsck(program) => program.image_bytes(size_bytes),
            Kind::DumpRestore(program) => tree_bytes(size_bytes) * program.trees_on_a_drive(),
        }
    }

    /// The name of the program's files and their bytes on a system that gives
    /// its drives to be read past their file systems, and needs no images.
    pub fn files_without_images(&self, size_bytes: u64) -> (&'static str, u64) {
        match &self.kind {
            Kind::Fsck(_) => (TREE, tree_bytes(size_bytes)),
            _ => (self.file_name(), self.file_bytes(size_bytes)),
        }
    }

    /// How often each byte of the size passes through a call: twice in a copy.
    pub fn passes(&self) -> u64 {
        match &self.kind {
            Kind::Copy(_) | Kind::DumpRestore(_) => 2,
            _ => 1,
        }
    }

    /// The buffer that the worker needs, filled.
    pub fn buffer(&self, worker: &Worker) -> Buffer {
        blocks::data(self.buffer_bytes(), worker.seed)
    }

    /// The same for a modelled computer, which compresses nothing: no longer
    /// than it must be, so that it stays in the host's first-level cache.
    pub fn short_buffer(&self, worker: &Worker) -> Buffer {
        if self.is_of_a_tree() {
            // It is used in parts, for the tape and for what goes with it.
            return self.buffer(worker);
        }
        blocks::data_of_one_call(self.buffer_bytes(), worker.seed)
    }

    fn buffer_bytes(&self) -> u64 {
        match &self.kind {
            // One call's worth to read into, one to write from.
            Kind::RandomMix(program) => 2 * program.sizes.largest(),
            _ => self.call_bytes(),
        }
    }

    /// What comes before the clock starts: files made, or removed.
    pub async fn prepare(&self, system: &mut System, worker: &Worker) -> Result<(), ProgramError> {
        match &self.kind {
            Kind::Read(program) => program.prepare(system, worker).await,
            Kind::ReadFiles(program) => program.prepare(system, worker).await,
            Kind::Write(program) => program.prepare(system, worker).await,
            Kind::Rewrite(program) => program.prepare(system, worker).await,
            Kind::SequentialRead(program) => program.prepare(system, worker).await,
            Kind::Copy(program) => program.prepare(system, worker).await,
            Kind::Scan(program) => program.prepare(system, worker).await,
            Kind::RandomMix(program) => program.prepare(system, worker).await,
            Kind::TrackRead(_) => Ok(()),
            Kind::Populate(program) => program.prepare(system, worker).await,
            Kind::Fsck(program) => program.prepare(system, worker).await,
            Kind::DumpRestore(program) => program.prepare(system, worker).await,
        }
    }

    /// The timed part, with what the worker's survey found. It leaves its files open, as the programs of 1983 did.
    pub async fn run(
        &self,
        system: &mut System,
        worker: &Worker,
        buffer: &mut Buffer,
        survey: &Survey,
    ) -> Result<(), ProgramError> {
        match &self.kind {
            Kind::Read(program) => program.run(system, worker, buffer).await,
            Kind::ReadFiles(program) => program.run(system, worker, buffer).await,
            Kind::Write(program) => program.run(system, worker, buffer).await,
            Kind::Rewrite(program) => program.run(system, worker, buffer).await,
            Kind::SequentialRead(program) => program.run(system, worker, buffer).await,
            Kind::Copy(program) => program.run(system, worker, buffer).await,
            Kind::Scan(program) => program.run(system, worker, buffer).await,
            Kind::RandomMix(program) => program.run(system, worker, buffer).await,
            Kind::TrackRead(program) => program.run(system, worker, buffer).await,
            Kind::Populate(program) => program.run(system, worker, survey.tree()).await,
            Kind::Fsck(program) => {
                let buffer = (buffer, survey.reads());
                program.run(system, worker, buffer).await
            }
            Kind::DumpRestore(program) => {
                let buffer = (buffer, survey.dump());
                program.run(system, worker, buffer).await
            }
        }
    }
}

/// The most that the files of a tree of this size take.
fn tree_bytes(content_bytes: u64) -> u64 {
    let kind = tree::Kind {
        content_bytes,
        seed: 0,
    };
    kind.room_bytes()
}

/// The greatest common divisor.
pub(crate) fn gcd(left: u64, right: u64) -> u64 {
    if right == 0 {
        left
    } else {
        gcd(right, left % right)
    }
}

/// The most similar of some names, if any is similar at all.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(similarity, _)| *similarity > 0.7)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))
        .map(|(_, candidate)| candidate.to_owned())
}

#[cfg(test)]
mod tests;
