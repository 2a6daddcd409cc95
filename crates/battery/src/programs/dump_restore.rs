//! `dump_restore`: a tree copied by `dump | restore` (Zachariassen 1987), two processes
//! joined by a pipe.
//!
//! On a model dump reads the drive of the mounted file system past every cache,
//! as it did. On the host it reads the files through their file system, in the
//! order that their inodes would have in one of 4.2BSD: the drive of any file
//! system there is cannot be read portably. What the programs did besides their
//! calls takes the processor's time (`record_us`, `inode_us`), on a machine of
//! 1987.

pub(crate) mod dump;
mod restore;

use crate::parameter::{Field, Value, choices};
use crate::program::ProgramError;
use crate::workload::populate::{self, seed_field};

use crate::worker::{Medium, PipeEnd, Worker};
use crate::workload::tape::TAPE_BYTES;
use crate::workload::tree::Tree;
use diskperf_system::{Buffer, Errno, Error, System};
use diskperf_timeline::Nanoseconds;
use dump::Dump;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DumpRestore {
    pub(crate) destination: Destination,
    pub(crate) tree_seed: u64,
    pub(crate) work: Work,
}

/// What the programs compute, on a VAX-11/780.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    record_us: u64,
    inode_us: u64,
}

impl Default for DumpRestore {
    fn default() -> Self {
        Self {
            destination: Destination::Same,
            tree_seed: 1,
            work: Work::default(),
        }
    }
}

impl Default for Work {
    fn default() -> Self {
        // Zachariassen 1987 prints 60 s of user time for both programs together, some
        // 100,000 records and 6000 inodes that each of them handles. It does not
        // say on what: half of it is given to the records, which restore
        // copies one by one, 0.3 ms each, and half to the inodes, 2.5 ms in
        // each program. A Sun 3/180 is taken as twice as fast as the machine
        // that these are for.
        Self {
            record_us: 600,
            inode_us: 5000,
        }
    }
}

impl Work {
    /// What taking so many records off the tape is.
    pub(crate) async fn records(self, system: &mut System, count: usize) -> Result<(), Error> {
        let on_780_us = self.record_us * count as u64;
        system.work(Nanoseconds(on_780_us * 1000)).await
    }

    /// What finding one inode, or the place of one, and its header is.
    pub(crate) async fn inode(self, system: &mut System) -> Result<(), Error> {
        system.work(Nanoseconds(self.inode_us * 1000)).await
    }
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
            Field {
                name: "record_us",
                meaning: "microseconds that taking a record of 1 KB off the tape takes restore on a VAX-11/780; a modelled computer takes as long as its speed has it, one of today none",
                value: Value::Count(&mut self.work.record_us, 0, 60_000_000),
            },
            Field {
                name: "inode_us",
                meaning: "the same, for each file and directory, of dump and of restore",
                value: Value::Count(&mut self.work.inode_us, 0, 60_000_000),
            },
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
                let input = |(path, file): (String, &crate::workload::tree::TreeFile)| {
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
                restore::remove(system, &restored, &self.tree(worker)).await?;
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
            Some(dump) => dump.run(system, (worker, self.work), (pipe, buffer)).await,
            None => {
                let top = self.restored(worker)?;
                restore::run(system, (&top, self.work), (pipe, buffer)).await
            }
        }
    }
}
