//! Program `dump_restore`: a tree of files copied by `dump | restore` (Zachariassen 1987), two
//! processes joined by a pipe.
//!
//! On a modelled system, dump reads the drive of the mounted file system past every cache, as the
//! original did. On the host it reads the files through their file system, in the order that their
//! inodes would have on 4.2BSD, because the drive of an arbitrary file system cannot be read
//! portably. The work of the two programs between their calls takes CPU time on a machine of 1987.

mod dump;
mod restore;

use crate::load::YesNo;
use crate::parameter::{ParameterField, ParameterValue, choices};
use crate::pattern::{
    AccessPattern, PhaseFuture, ProgramEntry, ProgramProperties, SystemAndWorker,
};
use crate::program::{InputFile, ProgramError};
use crate::verify::copies::{CopiedFile, CopyComparison};
use crate::verify::verify_field;
use crate::worker::{Medium, PipeEnd, Worker};
use crate::workload::populate::{self, seed_field};
use crate::workload::tape::TAPE_BLOCK_BYTES;
use crate::workload::tree::{self, TREE_NAME, Tree};
use diskperf_system::{Buffer, Errno, System};
use diskperf_timeline::WorkerMeasure;
use dump::DumpPlan;

pub(crate) const PROGRAMS: &[ProgramEntry] = &[ProgramEntry {
    name: "dump_restore",
    summary: "dump | restore: two processes copy a directory tree through a pipe (1987)",
    file_set_name: TREE_NAME,
    new_pattern: || Box::new(DumpRestore::default()),
}];

#[derive(Clone, Debug)]
struct DumpRestore {
    destination: Destination,
    tree_seed: u64,
    verify_files: YesNo,
    surveyed_dump: Option<DumpPlan>,
}

impl Default for DumpRestore {
    fn default() -> Self {
        Self {
            destination: Destination::Same,
            tree_seed: 1,
            verify_files: YesNo::No,
            surveyed_dump: None,
        }
    }
}

choices! {
    /// Destination of the restored tree.
    Destination {
        /// Another folder of the same file system.
        Same = "same",
        /// A folder on another file system.
        Other = "other",
    }
}

impl AccessPattern for DumpRestore {
    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        vec![
            ParameterField {
                name: "destination",
                description: "file system on which the tree is restored",
                value: ParameterValue::NamedChoice(&mut self.destination),
            },
            seed_field(&mut self.tree_seed),
            verify_field(&mut self.verify_files),
        ]
    }

    fn program_properties(&self) -> ProgramProperties {
        ProgramProperties {
            works_on_tree: true,
            dump_unit_bytes: Some(dump::SECTOR_BYTES as u64),
            pass_count: 2,
            // One that dumps, one that restores.
            worker_count: 2,
            is_piped: true,
            supported_media: &[Medium::Directory],
            needs_second_target: self.destination == Destination::Other,
            // A call is a write to the pipe.
            ..ProgramProperties::new_for_writes(TAPE_BLOCK_BYTES as u64)
        }
    }

    /// Returns 1: files have any length, and reads may cover parts of a block.
    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        1
    }

    fn file_bytes(&self, size_bytes: u64) -> u64 {
        let trees = match self.destination {
            Destination::Same => 2,
            Destination::Other => 1,
        };
        tree::footprint_bytes_max(size_bytes) * trees
    }

    fn prepared_bytes(&self, size_bytes: u64) -> u64 {
        tree::footprint_bytes_max(size_bytes)
    }

    /// Returns the files that are dumped. The restoring process has no input files.
    fn input_files(&self, worker: &Worker) -> Vec<InputFile> {
        if worker.pipe_end() == PipeEnd::Read {
            return Vec::new();
        }
        let (top, tree) = (populate::top_path(worker), self.new_tree(worker));
        let files = tree.iter_files();
        files
            .map(|(path, file)| InputFile::new_read(format!("{top}/{path}"), file.size_bytes))
            .collect()
    }

    /// Returns the bytes of the tree for the restoring process and 0 for the dumping one. The dump
    /// in the pipe is not yet a file, and restore's own table is not a restored file.
    fn payload_bytes(&self, worker: &Worker, _measure: &WorkerMeasure) -> u64 {
        match worker.pipe_end() {
            PipeEnd::Write => 0,
            PipeEnd::Read => worker.size_bytes,
        }
    }

    /// Makes the tree, and an empty directory for the restored files.
    fn prepare_target<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
        Box::pin(async move {
            if worker.pipe_end() == PipeEnd::Write {
                return populate::ensure_tree(system, worker, self.tree_seed).await;
            }
            let restored = self.restored_path(worker)?;
            match system.mkdir(&restored).await {
                Ok(()) => Ok(()),
                Err(error) if error.errno() == Some(Errno::Exists) => {
                    restore::remove_restored(system, &restored, &self.new_tree(worker)).await?;
                    Ok(system.mkdir(&restored).await?)
                }
                Err(error) => Err(error.into()),
            }
        })
    }

    fn survey_target<'a>(
        &'a mut self,
        system: &'a mut System,
        worker: &'a Worker,
    ) -> PhaseFuture<'a> {
        Box::pin(async move {
            if worker.pipe_end() == PipeEnd::Write {
                self.surveyed_dump = Some(DumpPlan::survey_filesystem(system, worker, || {
                    self.new_tree(worker)
                })?);
            }
            Ok(())
        })
    }

    fn run_timed_part<'a>(
        &'a self,
        (system, worker): SystemAndWorker<'a>,
        buffer: &'a mut Buffer,
    ) -> PhaseFuture<'a> {
        Box::pin(async move {
            let pipe = system.open_pipe_end(0).await?;
            match worker.pipe_end() {
                PipeEnd::Write => {
                    let dump = self
                        .surveyed_dump
                        .as_ref()
                        .expect("the survey found what to dump");
                    dump.run_dump(system, worker, (pipe, buffer)).await
                }
                PipeEnd::Read => {
                    let top = self.restored_path(worker)?;
                    restore::run_restore(system, &top, (pipe, buffer)).await?;
                    match self.verify_files {
                        YesNo::Yes => self.verify_restored((system, worker), &top).await,
                        YesNo::No => Ok(()),
                    }
                }
            }
        })
    }
}

impl DumpRestore {
    fn new_tree(&self, worker: &Worker) -> Tree {
        Tree::new(populate::tree_description(worker, self.tree_seed))
    }

    async fn verify_restored(
        &self,
        place: (&mut System, &Worker),
        restored: &str,
    ) -> Result<(), ProgramError> {
        let (top, tree) = (populate::top_path(place.1), self.new_tree(place.1));
        let copied = tree.iter_files().map(|(path, file)| CopiedFile {
            source_path: format!("{top}/{path}"),
            copy_path: format!("{restored}/{path}"),
            copy_offset_bytes: 0,
            bytes: file.size_bytes,
        });
        let copied: Vec<CopiedFile> = copied.collect();
        CopyComparison::run_comparison(place, &copied, populate::TREE_CALL_BYTES).await
    }

    /// Returns the directory into which the tree is restored.
    fn restored_path(&self, worker: &Worker) -> Result<String, ProgramError> {
        match self.destination {
            Destination::Same => Ok(worker.file_path("restored")),
            Destination::Other => {
                let other = worker
                    .second_target
                    .filter(|other| other.medium == Medium::Directory);
                let mount = other.ok_or(ProgramError::NoSecondFilesystem)?.drive_number;
                let Worker {
                    file_folder: folder,
                    drive_index: drive,
                    ..
                } = worker;
                Ok(format!("/mnt{mount}/{folder}restored{drive}"))
            }
        }
    }
}
