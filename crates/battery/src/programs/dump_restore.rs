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
use crate::parameter::{Field, Value, choices};
use crate::pattern::{Entry, Facts, Pattern, Place, Steps};
use crate::program::{Input, ProgramError};
use crate::verify::copies::{CopiedFile, CopyComparison};
use crate::verify::verify_field;
use crate::worker::{Medium, PipeEnd, Worker};
use crate::workload::populate::{self, seed_field};
use crate::workload::tape::TAPE_BYTES;
use crate::workload::tree::{self, TREE, Tree};
use diskperf_system::{Buffer, Errno, System};
use diskperf_timeline::WorkerMeasure;
use dump::Dump;

pub(crate) const PROGRAMS: &[Entry] = &[Entry {
    name: "dump_restore",
    does: "dump | restore: two processes copy a tree through a pipe (1987)",
    files: TREE,
    pattern: || Box::new(DumpRestore::default()),
}];

#[derive(Clone, Debug)]
struct DumpRestore {
    destination: Destination,
    tree_seed: u64,
    verify: YesNo,
    /// Result of the survey of the dumping process.
    dump: Option<Dump>,
}

impl Default for DumpRestore {
    fn default() -> Self {
        Self {
            destination: Destination::Same,
            tree_seed: 1,
            verify: YesNo::No,
            dump: None,
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

impl Pattern for DumpRestore {
    fn fields(&mut self) -> Vec<Field<'_>> {
        vec![
            Field {
                name: "destination",
                meaning: "the file system that the tree is restored on",
                value: Value::Choice(&mut self.destination),
            },
            seed_field(&mut self.tree_seed),
            verify_field(&mut self.verify),
        ]
    }

    fn facts(&self) -> Facts {
        Facts {
            is_of_a_tree: true,
            dump_unit_bytes: Some(dump::SECTOR_BYTES as u64),
            passes: 2,
            // One that dumps, one that restores.
            workers: 2,
            is_piped: true,
            media: &[Medium::Directory],
            needs_other: self.destination == Destination::Other,
            // A call is a write to the pipe.
            ..Facts::writing(TAPE_BYTES as u64)
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
        tree::room_bytes(size_bytes) * trees
    }

    fn prepared_bytes(&self, size_bytes: u64) -> u64 {
        tree::room_bytes(size_bytes)
    }

    /// Returns the files that are dumped. The restoring process has no input files.
    fn inputs(&self, worker: &Worker) -> Vec<Input> {
        if worker.pipe_end() == PipeEnd::Read {
            return Vec::new();
        }
        let (top, tree) = (populate::top(worker), self.tree(worker));
        let files = tree.files();
        files
            .map(|(path, file)| Input::read(format!("{top}/{path}"), file.size_bytes))
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
    fn prepare<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> Steps<'a> {
        Box::pin(async move {
            if worker.pipe_end() == PipeEnd::Write {
                return populate::ensure(system, worker, self.tree_seed).await;
            }
            let restored = self.restored(worker)?;
            match system.mkdir(&restored).await {
                Ok(()) => Ok(()),
                Err(error) if error.errno() == Some(Errno::Exists) => {
                    restore::remove(system, &restored, &self.tree(worker)).await?;
                    Ok(system.mkdir(&restored).await?)
                }
                Err(error) => Err(error.into()),
            }
        })
    }

    fn survey<'a>(&'a mut self, system: &'a mut System, worker: &'a Worker) -> Steps<'a> {
        Box::pin(async move {
            if worker.pipe_end() == PipeEnd::Write {
                self.dump = Some(Dump::survey(system, worker, || self.tree(worker))?);
            }
            Ok(())
        })
    }

    fn run<'a>(&'a self, (system, worker): Place<'a>, buffer: &'a mut Buffer) -> Steps<'a> {
        Box::pin(async move {
            let pipe = system.pipe_end(0).await?;
            match worker.pipe_end() {
                PipeEnd::Write => {
                    let dump = self.dump.as_ref().expect("the survey found what to dump");
                    dump.run(system, worker, (pipe, buffer)).await
                }
                PipeEnd::Read => {
                    let top = self.restored(worker)?;
                    restore::run(system, &top, (pipe, buffer)).await?;
                    match self.verify {
                        YesNo::Yes => self.verify((system, worker), &top).await,
                        YesNo::No => Ok(()),
                    }
                }
            }
        })
    }
}

impl DumpRestore {
    fn tree(&self, worker: &Worker) -> Tree {
        Tree::new(populate::kind(worker, self.tree_seed))
    }

    async fn verify(
        &self,
        place: (&mut System, &Worker),
        restored: &str,
    ) -> Result<(), ProgramError> {
        let (top, tree) = (populate::top(place.1), self.tree(place.1));
        let copied = tree.files().map(|(path, file)| CopiedFile {
            source: format!("{top}/{path}"),
            copy: format!("{restored}/{path}"),
            copy_offset_bytes: 0,
            bytes: file.size_bytes,
        });
        let copied: Vec<CopiedFile> = copied.collect();
        CopyComparison::run(place, &copied, populate::CALL_BYTES).await
    }

    /// Returns the directory into which the tree is restored.
    fn restored(&self, worker: &Worker) -> Result<String, ProgramError> {
        match self.destination {
            Destination::Same => Ok(worker.file("restored")),
            Destination::Other => {
                let other = worker
                    .other
                    .filter(|other| other.medium == Medium::Directory);
                let mount = other.ok_or(ProgramError::NoOtherFilesystem)?.number;
                let Worker { folder, drive, .. } = worker;
                Ok(format!("/mnt{mount}/{folder}restored{drive}"))
            }
        }
    }
}
