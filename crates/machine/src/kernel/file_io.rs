//! Reads, writes and syncs of open files at a given offset, shared by all system calls that
//! transfer data.

use super::pipe::PipeEnd;
use super::process::{Context, Process};
use super::raw::{RawData, RawDevice};
use super::{FileSystemView, Unix, Vnode};
use crate::errno::{Errno, Result};
use crate::written::Written;
use diskperf_timeline::Stage;
use std::rc::Rc;

/// Object behind an open file: an inode, a device or an end of a pipe.
#[derive(Clone)]
pub(super) enum FileTarget {
    Node(Vnode),
    Null,
    Zero,
    /// Raw drive, accessed past the buffer cache.
    Raw(RawDevice),
    Pipe(PipeEnd),
}

impl Unix {
    /// Reads from an open file at an offset and returns the number of bytes read. Streams ignore
    /// the offset.
    pub(super) async fn read_file(
        &self,
        process: &Rc<Process>,
        what: &FileTarget,
        (offset, into): (u64, &mut [u8]),
    ) -> Result<usize> {
        match what {
            FileTarget::Null => Ok(0),
            FileTarget::Zero => {
                let cost = self.costs.clear_time(into.len());
                self.spend(Context::Process(process), Stage::Clear, cost)
                    .await;
                into.fill(0);
                Ok(into.len())
            }
            FileTarget::Raw(raw) => {
                self.transfer_raw(process, *raw, (offset, RawData::Read(into)))
                    .await
            }
            FileTarget::Pipe(PipeEnd::Read(pipe)) => self.read_pipe(process, pipe, into).await,
            FileTarget::Pipe(PipeEnd::Write(_)) => Err(Errno::BadFile),
            FileTarget::Node(node) => self.read_node(process, *node, (offset, into)).await,
        }
    }

    /// Writes to an open file at an offset. Returns the number of bytes written, and the result of
    /// the system call.
    pub(super) async fn write_file(
        &self,
        process: &Rc<Process>,
        what: &FileTarget,
        (offset, data): (u64, Written<'_>),
    ) -> (usize, Result<usize>) {
        let written = match what {
            FileTarget::Null | FileTarget::Zero => Ok(data.len()),
            FileTarget::Raw(raw) => {
                let at = (offset, RawData::Write(data.bytes()));
                self.transfer_raw(process, *raw, at).await
            }
            FileTarget::Pipe(PipeEnd::Write(pipe)) => {
                self.write_pipe(process, pipe, data.bytes()).await
            }
            FileTarget::Pipe(PipeEnd::Read(_)) => Err(Errno::BadFile),
            FileTarget::Node(node) => return self.write_node(process, *node, (offset, data)).await,
        };
        (*written.as_ref().unwrap_or(&0), written)
    }

    /// Syncs an open file to its drive: the kernel's part of fsync(2). Fails with `Invalid` for
    /// pipes, `/dev/null` and `/dev/zero`.
    pub(super) async fn sync_file(&self, process: &Rc<Process>, what: &FileTarget) -> Result<()> {
        match what {
            _ if self.supports_only_sync() => {
                self.sync_all(process).await;
                Ok(())
            }
            FileTarget::Node(node) => {
                self.flush(process, node.volume).await;
                Ok(())
            }
            // What goes past the cache is on the drive when the call returns, if not in
            // the drive's own.
            FileTarget::Raw(raw) => {
                self.flush_raw(process, *raw).await;
                Ok(())
            }
            FileTarget::Null | FileTarget::Zero | FileTarget::Pipe(_) => Err(Errno::Invalid),
        }
    }

    /// Reports whether fsync(2) of this kernel is the same as sync(2): it ignores the descriptor
    /// and waits for nothing.
    pub(super) fn supports_only_sync(&self) -> bool {
        matches!(self.file_system_view(), FileSystemView::V7(_))
    }

    /// Syncs all mounted volumes: the kernel's part of sync(2).
    pub(super) async fn sync_all(&self, process: &Rc<Process>) {
        for volume in 0..self.mounted_count() {
            self.sync(process, volume as u32).await;
        }
    }

    /// Returns the largest offset that a file can have, in bytes.
    pub(super) fn target_offset_max(&self, what: &FileTarget) -> u64 {
        match what {
            FileTarget::Node(node) => self.file_offset_max(node.volume),
            FileTarget::Raw(_) => i64::MAX as u64,
            FileTarget::Null | FileTarget::Zero | FileTarget::Pipe(_) => 0,
        }
    }
}
