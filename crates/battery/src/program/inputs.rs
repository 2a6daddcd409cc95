//! The files that programs find, and the bytes that count.

use super::{Kind, Program};
use crate::programs::copy::Copy;
use crate::programs::dump_restore::DumpRestore;
use crate::programs::fsck::Fsck;
use crate::programs::random_mix::RandomMix;
use crate::programs::track_read::TrackRead;
use crate::worker::{Medium, PipeEnd, Worker};
use diskperf_timeline::WorkerMeasure;

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

impl Program {
    /// The files that must be as the cache mode wants them before this worker's
    /// timed part.
    pub fn inputs(&self, worker: &Worker) -> Vec<Input> {
        let (path, length_bytes) = match &self.kind {
            Kind::DumpRestore(program) => return read_all(program.inputs(worker)),
            Kind::ReadFiles(program) => return read_all(program.files(worker)),
            Kind::Populate(_) => (None, 0),
            // Where the drive itself is read there is no image of it.
            Kind::Fsck(program) => {
                let image_bytes = program.image_bytes(worker.size_bytes);
                (Some(Fsck::image(worker)), image_bytes)
            }
            Kind::Read(_) => (Some(worker.shared_file()), worker.size_bytes),
            Kind::Write(_) => (None, 0),
            Kind::Rewrite(_) => (Some(worker.shared_file()), worker.size_bytes),
            Kind::SequentialRead(program) => (program.input(worker), worker.size_bytes),
            Kind::Copy(_) => (Some(Copy::input(worker)), worker.size_bytes),
            Kind::Scan(program) => {
                // On a device the areas lie one behind the other.
                let areas = match worker.medium {
                    Medium::Directory => 1,
                    Medium::Device | Medium::File => program.area_count(),
                };
                (Some(program.input(worker)), areas * worker.size_bytes)
            }
            Kind::RandomMix(program) => (Some(RandomMix::input(worker)), program.area_bytes),
            Kind::TrackRead(program) => (Some(TrackRead::input(worker)), program.area_bytes),
        };
        let read = !matches!(self.kind, Kind::Rewrite(_));
        path.into_iter()
            .map(|path| Input {
                path,
                length_bytes,
                read,
            })
            .collect()
    }

    /// The bytes that count for KB/s. `/dev/null` returns none: there the
    /// bytes asked for count, as in Kirkendall 1989.
    pub fn payload_bytes(&self, worker: &Worker, measure: &WorkerMeasure) -> u64 {
        match &self.kind {
            Kind::Read(_) | Kind::ReadFiles(_) | Kind::Scan(_) | Kind::TrackRead(_) => {
                measure.read_bytes
            }
            Kind::Write(_) | Kind::Rewrite(_) => measure.written_bytes,
            Kind::SequentialRead(program) if program.layer.is_empty() => worker.size_bytes,
            Kind::SequentialRead(_) => measure.read_bytes,
            Kind::Copy(_) => measure.read_bytes,
            Kind::RandomMix(_) => measure.read_bytes + measure.written_bytes,
            Kind::Populate(_) => measure.written_bytes,
            Kind::Fsck(_) => measure.read_bytes,
            // What dump writes is not yet a file, and restore's own table is
            // none of those that it restores.
            Kind::DumpRestore(_) => match DumpRestore::pipe_end(worker) {
                PipeEnd::Write => 0,
                PipeEnd::Read => worker.size_bytes,
            },
        }
    }
}

fn read_all(files: Vec<(String, u64)>) -> Vec<Input> {
    files
        .into_iter()
        .map(|(path, length_bytes)| Input {
            path,
            length_bytes,
            read: true,
        })
        .collect()
}
