//! Reads, writes and syncs of open files at a given offset, shared by all system calls that
//! transfer data.

use super::pipe::PipeEnd;
use super::process::{Context, Process};
use super::raw::{Data, Raw};
use super::{FileSystemView, Unix, Vnode};
use crate::errno::{Errno, Result};
use crate::written::Written;
use diskperf_timeline::Stage;
use std::rc::Rc;

/// Object behind an open file: an inode, a device or an end of a pipe.
#[derive(Clone)]
pub(super) enum What {
    Node(Vnode),
    Null,
    Zero,
    /// Raw drive, accessed past the buffer cache.
    Raw(Raw),
    Pipe(PipeEnd),
}

impl Unix {
    /// Reads from an open file at an offset and returns the number of bytes read. Streams ignore
    /// the offset.
    pub(super) async fn read_file(
        &self,
        process: &Rc<Process>,
        what: &What,
        (offset, into): (u64, &mut [u8]),
    ) -> Result<usize> {
        match what {
            What::Null => Ok(0),
            What::Zero => {
                let cost = self.costs.clear_time(into.len());
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

    /// Writes to an open file at an offset. Returns the number of bytes written, and the result of
    /// the system call.
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

    /// Syncs an open file to its drive: the kernel's part of fsync(2). Fails with `Invalid` for
    /// pipes, `/dev/null` and `/dev/zero`.
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

    /// Reports whether fsync(2) of this kernel is the same as sync(2): it ignores the descriptor
    /// and waits for nothing.
    pub(super) fn knows_only_sync(&self) -> bool {
        matches!(self.file_system_view(), FileSystemView::V7(_))
    }

    /// Syncs all mounted volumes: the kernel's part of sync(2).
    pub(super) async fn sync_all(&self, process: &Rc<Process>) {
        for volume in 0..self.mounted() {
            self.sync(process, volume as u32).await;
        }
    }

    /// Returns the largest offset that a file can have, in bytes.
    pub(super) fn most_offset_of(&self, what: &What) -> u64 {
        match what {
            What::Node(node) => self.most_offset(node.volume),
            What::Raw(_) => i64::MAX as u64,
            What::Null | What::Zero | What::Pipe(_) => 0,
        }
    }
}
