//! `dump_restore`: a tree copied by `dump | restore` (seed 001), two processes
//! joined by a pipe.
//!
//! On a model dump reads the drive of the mounted file system past every cache,
//! as it did. On the host it reads the files through their file system, in the
//! order that their inodes would have in one of 4.2BSD: the drive of any file
//! system there is cannot be read portably. Of what restore does to a file it
//! has made, its owner, mode and times are left out: `System` has no such calls.

use crate::dump::Dump;
use crate::parameter::{Field, Value, choices};
use crate::populate::{self, seed_field};
use crate::program::ProgramError;
use crate::restore;
use crate::tape::TAPE_BYTES;
use crate::tree::Tree;
use crate::worker::{Medium, PipeEnd, Worker};
use diskperf_system::{Buffer, Errno, System};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DumpRestore {
    pub(crate) destination: Destination,
    pub(crate) tree_seed: u64,
}

choices! {
    /// Where the tree is restored.
    Destination {
        /// In another folder of the same file system.
        Same = "same",
        /// On another file system.
        Other = "other",
    }
}

/// The processes of a drive: one that dumps, one that restores.
pub(crate) const WORKERS: u32 = 2;

/// What one write to the pipe takes.
pub(crate) const CALL_BYTES: u64 = TAPE_BYTES as u64;

impl DumpRestore {
    pub(crate) fn fields(&mut self) -> Vec<Field<'_>> {
        vec![
            Field {
                name: "destination",
                meaning: "the file system that the tree is restored on",
                value: Value::Choice(&mut self.destination),
            },
            seed_field(&mut self.tree_seed),
        ]
    }

    /// How often the tree is on each file system.
    pub(crate) fn trees_on_a_drive(&self) -> u64 {
        match self.destination {
            Destination::Same => 2,
            Destination::Other => 1,
        }
    }

    /// The end of the pipe that a worker has: the first one dumps.
    pub(crate) fn pipe_end(worker: &Worker) -> PipeEnd {
        if worker.index == 0 {
            PipeEnd::Write
        } else {
            PipeEnd::Read
        }
    }

    fn tree(&self, worker: &Worker) -> Tree {
        Tree::new(populate::kind(worker, self.tree_seed))
    }

    /// The files that are dumped.
    pub(crate) fn inputs(&self, worker: &Worker) -> Vec<(String, u64)> {
        match Self::pipe_end(worker) {
            PipeEnd::Read => Vec::new(),
            PipeEnd::Write => {
                let (top, tree) = (populate::top(worker), self.tree(worker));
                let files = tree.files();
                let input = |(path, file): (String, &crate::tree::TreeFile)| {
                    (format!("{top}/{path}"), file.size_bytes)
                };
                files.map(input).collect()
            }
        }
    }

    /// The directory that everything is restored in.
    pub(crate) fn restored(&self, worker: &Worker) -> Result<String, ProgramError> {
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

    /// Makes the tree, and the empty directory for what is restored.
    pub(crate) async fn prepare(
        &self,
        system: &mut System,
        worker: &Worker,
    ) -> Result<(), ProgramError> {
        if Self::pipe_end(worker) == PipeEnd::Write {
            return populate::ensure(system, worker, self.tree_seed).await;
        }
        let restored = self.restored(worker)?;
        match system.mkdir(&restored).await {
            Ok(()) => Ok(()),
            Err(error) if error.errno() == Some(Errno::Exists) => {
                populate::remove(system, &restored, &self.tree(worker)).await?;
                Ok(system.mkdir(&restored).await?)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What there is to dump, for who dumps.
    pub(crate) fn survey(
        &self,
        system: &System,
        worker: &Worker,
    ) -> Result<Option<Dump>, ProgramError> {
        match Self::pipe_end(worker) {
            PipeEnd::Write => Dump::survey(system, worker, || self.tree(worker)).map(Some),
            PipeEnd::Read => Ok(None),
        }
    }

    pub(crate) async fn run(
        &self,
        system: &mut System,
        worker: &Worker,
        (buffer, dump): (&mut Buffer, Option<&Dump>),
    ) -> Result<(), ProgramError> {
        let pipe = system.pipe_end(0).await?;
        match dump {
            Some(dump) => dump.run(system, worker, (pipe, buffer)).await,
            None => restore::run(system, &self.restored(worker)?, (pipe, buffer)).await,
        }
    }
}
