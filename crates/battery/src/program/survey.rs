//! What a worker looks up when all files are made and nothing is timed yet.

use super::{Kind, Program, ProgramError};
use crate::programs::dump_restore::dump::Dump;
use crate::programs::fsck::Reads;
use crate::worker::Worker;
use crate::workload::populate;
use crate::workload::tree::Tree;
use diskperf_system::System;

/// What a worker has to know before its timed part, and would otherwise find
/// out in it.
#[derive(Clone, Debug)]
pub struct Survey(Found);

#[derive(Clone, Debug)]
enum Found {
    /// Nothing: the program needs none.
    Nothing,
    /// The tree that is to be made.
    Tree(Tree),
    /// What fsck reads.
    Reads(Reads),
    /// What dump dumps.
    Dump(Dump),
}

impl Program {
    /// Finds out what the worker's timed part has to know. Every worker's files
    /// are made by then.
    pub async fn survey(
        &self,
        system: &mut System,
        worker: &Worker,
    ) -> Result<Survey, ProgramError> {
        let found = match &self.kind {
            Kind::Populate(program) => {
                Found::Tree(Tree::new(populate::kind(worker, program.tree_seed)))
            }
            Kind::Fsck(program) => Found::Reads(program.survey(system, worker).await?),
            Kind::DumpRestore(program) => match program.survey(system, worker)? {
                Some(dump) => Found::Dump(dump),
                None => Found::Nothing,
            },
            Kind::Read(_)
            | Kind::ReadFiles(_)
            | Kind::Write(_)
            | Kind::Rewrite(_)
            | Kind::SequentialRead(_)
            | Kind::Copy(_)
            | Kind::Scan(_)
            | Kind::RandomMix(_)
            | Kind::TrackRead(_) => Found::Nothing,
        };
        Ok(Survey(found))
    }
}

impl Survey {
    /// Of a program that looks nothing up.
    pub fn nothing() -> Self {
        Self(Found::Nothing)
    }

    /// # Panics
    ///
    /// If the survey was another program's; so do the others.
    pub(super) fn tree(&self) -> &Tree {
        match &self.0 {
            Found::Tree(tree) => tree,
            found => panic!("the survey is not of this program: {found:?}"),
        }
    }

    pub(super) fn reads(&self) -> &Reads {
        match &self.0 {
            Found::Reads(reads) => reads,
            found => panic!("the survey is not of this program: {found:?}"),
        }
    }

    /// What is dumped; nothing, for who restores.
    pub(super) fn dump(&self) -> Option<&Dump> {
        match &self.0 {
            Found::Dump(dump) => Some(dump),
            Found::Nothing => None,
            found => panic!("the survey is not of this program: {found:?}"),
        }
    }
}
