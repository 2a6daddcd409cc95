//! Reading, writing and syncing what is open, for whoever asks and wherever in it.

use super::pipe::PipeEnd;
use super::process::{Context, Process};
use super::raw::{Data, Raw};
use super::{On, Unix, Vnode};
use crate::errno::{Errno, Result};
use crate::written::Written;
use diskperf_timeline::Stage;
use std::rc::Rc;

/// What an open file is.
#[derive(Clone)]
pub(super) enum What {
    Node(Vnode),
    Null,
    Zero,
    /// A drive by itself, past the cache.
    Raw(Raw),
    Pipe(PipeEnd),
}

impl Unix {
    /// Reads from an offset, which means nothing to what is a stream; how much.
    pub(super) async fn read_file(
        &self,
        process: &Rc<Process>,
        what: &What,
        (offset, into): (u64, &mut [u8]),
    ) -> Result<usize> {
        match what {
            What::Null => Ok(0),
            What::Zero => {
                let cost = self.costs.clear(into.len());
                self.spend(Context::Process(process), Stage::Clear, cost)
                    .await;
                into.fill(0);
                Ok(into.len())
            }
            What::Raw(raw) => self.raw(process, *raw, (offset, Data::Read(into))).await,
            What::Pipe(PipeEnd::Read(pipe)) => self.read_pipe(process, pipe, into).await,
            What::Pipe(PipeEnd::Write(_)) => Err(Errno::BadFile),
            What::Node(node) => self.read_node(process, *node, (offset, into)).await,
        }
    }

    /// Writes at an offset; how much was written, and what the call says.
    pub(super) async fn write_file(
        &self,
        process: &Rc<Process>,
        what: &What,
        (offset, data): (u64, Written<'_>),
    ) -> (usize, Result<usize>) {
        let written = match what {
            What::Null | What::Zero => Ok(data.len()),
            What::Raw(raw) => {
                let at = (offset, Data::Write(data.bytes()));
                self.raw(process, *raw, at).await
            }
            What::Pipe(PipeEnd::Write(pipe)) => self.write_pipe(process, pipe, data.bytes()).await,
            What::Pipe(PipeEnd::Read(_)) => Err(Errno::BadFile),
            What::Node(node) => return self.write_node(process, *node, (offset, data)).await,
        };
        (*written.as_ref().unwrap_or(&0), written)
    }

    /// fsync(2), in the kernel.
    pub(super) async fn sync_file(&self, process: &Rc<Process>, what: &What) -> Result<()> {
        match what {
            _ if self.knows_only_sync() => {
                self.sync_all(process).await;
                Ok(())
            }
            What::Node(node) => {
                self.flush(process, node.volume).await;
                Ok(())
            }
            // What goes past the cache is on the drive when the call returns, if not in
            // the drive's own.
            What::Raw(raw) => {
                self.flush_raw(process, *raw).await;
                Ok(())
            }
            What::Null | What::Zero | What::Pipe(_) => Err(Errno::Invalid),
        }
    }

    /// Whether its fsync is sync, whatever the descriptor, and waits for nothing.
    pub(super) fn knows_only_sync(&self) -> bool {
        matches!(self.on(), On::V7(_))
    }

    /// sync(2), in the kernel.
    pub(super) async fn sync_all(&self, process: &Rc<Process>) {
        for volume in 0..self.mounted() {
            self.sync(process, volume as u32).await;
        }
    }

    /// The largest offset of a file.
    pub(super) fn most_offset_of(&self, what: &What) -> u64 {
        match what {
            What::Node(node) => self.most_offset(node.volume),
            What::Raw(_) => i64::MAX as u64,
            What::Null | What::Zero | What::Pipe(_) => 0,
        }
    }
}
