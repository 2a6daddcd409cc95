//! Program `populate`: makes the populated file system of Zachariassen 1987, a tree of files of all
//! sizes. Each file is created, written and closed, directory by directory. `fsck` and
//! `dump_restore` work on the same tree.

use crate::load::YesNo;
use crate::parameter::ParameterField;
use crate::pattern::{
    AccessPattern, PhaseFuture, ProgramEntry, ProgramProperties, SystemAndWorker, empty_phase,
};
use crate::verify::calls::CallVerifier;
use crate::verify::verify_field;
use crate::worker::{Medium, Worker};
use crate::workload::populate::{
    TREE_CALL_BYTES, make_tree, record_tree, remove_old_trees, seed_field, top_path,
    tree_description,
};
use crate::workload::tree::{self, TREE_NAME, Tree};
use diskperf_system::{Buffer, System};
use diskperf_timeline::WorkerMeasure;

pub(crate) const PROGRAMS: &[ProgramEntry] = &[ProgramEntry {
    name: "populate",
    summary: "creates a tree of directories with files of all sizes (1987)",
    file_set_name: TREE_NAME,
    new_pattern: || {
        Box::new(Populate {
            tree_seed: 1,
            verify_files: YesNo::No,
            tree: None,
        })
    },
}];

#[derive(Clone, Debug)]
struct Populate {
    tree_seed: u64,
    verify_files: YesNo,
    tree: Option<Tree>,
}

impl AccessPattern for Populate {
    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        vec![
            seed_field(&mut self.tree_seed),
            verify_field(&mut self.verify_files),
        ]
    }

    fn program_properties(&self) -> ProgramProperties {
        ProgramProperties {
            works_on_tree: true,
            supported_media: &[Medium::Directory],
            ..ProgramProperties::new_for_writes(TREE_CALL_BYTES)
        }
    }

    /// Returns 1, because files have any length.
    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        1
    }

    fn file_bytes(&self, size_bytes: u64) -> u64 {
        tree::footprint_bytes_max(size_bytes)
    }

    fn prepared_bytes(&self, _size_bytes: u64) -> u64 {
        0
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.written_bytes
    }

    fn prepare_target<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
        Box::pin(async move {
            remove_old_trees(system, worker).await?;
            record_tree(system, worker, tree_description(worker, self.tree_seed)).await
        })
    }

    fn survey_target<'a>(
        &'a mut self,
        _system: &'a mut System,
        worker: &'a Worker,
    ) -> PhaseFuture<'a> {
        self.tree = Some(Tree::new(tree_description(worker, self.tree_seed)));
        empty_phase()
    }

    fn run_timed_part<'a>(
        &'a self,
        (system, worker): SystemAndWorker<'a>,
        _buffer: &'a mut Buffer,
    ) -> PhaseFuture<'a> {
        Box::pin(async move {
            let tree = self.tree.as_ref().expect("the survey drew it");
            let mut verifier =
                CallVerifier::new(self.verify_files, (&*system, worker), TREE_CALL_BYTES);
            let (top, how) = (top_path(worker), (tree, worker.think_time));
            make_tree(system, &top, how, verifier.as_mut()).await?;
            match verifier {
                Some(verifier) => verifier.read_back((system, worker)).await,
                None => Ok(()),
            }
        })
    }
}
