//! The ring of a modelled computer.

use super::Model;
use crate::{Completion, File, Operation, Result, RingOptions, Submission};
use diskperf_timeline::Nanoseconds;

/// Several requests under way.
impl Model {
    pub(crate) async fn open_ring(&mut self, _options: RingOptions, _files: &[File]) -> Result<()> {
        todo!()
    }
    pub(crate) fn ring_buffer(&mut self, _slot: u32) -> Option<&mut [u8]> {
        todo!()
    }
    pub(crate) async fn submit(&mut self, _submissions: &[Submission]) -> Result<()> {
        todo!()
    }
    pub(crate) async fn reap(
        &mut self,
        _at_least: usize,
        _until: Option<Nanoseconds>,
        _completions: &mut Vec<Completion>,
    ) -> Result<Nanoseconds> {
        todo!()
    }
    pub(crate) fn count_commit(&mut self, _bytes: u64, _took: Nanoseconds) {
        todo!()
    }
    pub(crate) fn count_unissued(&mut self, _operation: Operation, _intended: Nanoseconds) {
        todo!()
    }
    pub(crate) fn restart_measuring(&mut self) -> Result<()> {
        todo!()
    }
    pub(crate) async fn close_ring(&mut self) -> Result<()> {
        todo!()
    }
}
