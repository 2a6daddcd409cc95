//! Program `populate`: makes the populated file system of Zachariassen 1987, a tree of files of all
//! sizes. Each file is created, written and closed, directory by directory. `fsck` and
//! `dump_restore` work on the same tree.

use crate::load::YesNo;
use crate::parameter::Field;
use crate::pattern::{Entry, Facts, Pattern, Place, Steps, nothing};
use crate::verify::calls::CallVerifier;
use crate::verify::verify_field;
use crate::worker::{Medium, Worker};
use crate::workload::populate::{CALL_BYTES, kind, make, note, remove_old, seed_field, top};
use crate::workload::tree::{self, TREE, Tree};
use diskperf_system::{Buffer, System};
use diskperf_timeline::WorkerMeasure;

pub(crate) const PROGRAMS: &[Entry] = &[Entry {
    name: "populate",
    does: "makes a tree of directories and files of all sizes (1987)",
    files: TREE,
    pattern: || {
        Box::new(Populate {
            tree_seed: 1,
            verify: YesNo::No,
            tree: None,
        })
    },
}];

#[derive(Clone, Debug)]
struct Populate {
    tree_seed: u64,
    verify: YesNo,
    tree: Option<Tree>,
}

impl Pattern for Populate {
    fn fields(&mut self) -> Vec<Field<'_>> {
        vec![
            seed_field(&mut self.tree_seed),
            verify_field(&mut self.verify),
        ]
    }

    fn facts(&self) -> Facts {
        Facts {
            is_of_a_tree: true,
            media: &[Medium::Directory],
            ..Facts::writing(CALL_BYTES)
        }
    }

    /// Returns 1, because files have any length.
    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        1
    }

    fn file_bytes(&self, size_bytes: u64) -> u64 {
        tree::room_bytes(size_bytes)
    }

    fn prepared_bytes(&self, _size_bytes: u64) -> u64 {
        0
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.written_bytes
    }

    fn prepare<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> Steps<'a> {
        Box::pin(async move {
            remove_old(system, worker).await?;
            note(system, worker, kind(worker, self.tree_seed)).await
        })
    }

    fn survey<'a>(&'a mut self, _system: &'a mut System, worker: &'a Worker) -> Steps<'a> {
        self.tree = Some(Tree::new(kind(worker, self.tree_seed)));
        nothing()
    }

    fn run<'a>(&'a self, (system, worker): Place<'a>, _buffer: &'a mut Buffer) -> Steps<'a> {
        Box::pin(async move {
            let tree = self.tree.as_ref().expect("the survey drew it");
            let mut verifier = CallVerifier::new(self.verify, (&*system, worker), CALL_BYTES);
            let (top, how) = (top(worker), (tree, worker.think));
            make(system, &top, how, verifier.as_mut()).await?;
            match verifier {
                Some(verifier) => verifier.read_back((system, worker)).await,
                None => Ok(()),
            }
        })
    }
}
