//! Reads, writes and syncs of open files at a given offset, shared by all system calls that
//! transfer data.

use super::pipe::PipeEnd;
use super::process::{ExecutionContext, Process};
use super::raw::{OpenRawDevice, RawData};
use super::{FileSystemView, UnixKernel, Vnode};
use crate::errno::{Errno, Result};
use crate::written::WriteData;
use diskperf_timeline::Stage;
use std::rc::Rc;

/// Object behind an open file: an inode, a device or an end of a pipe.
#[derive(Clone)]
pub(super) enum FileTarget {
    File(Vnode),
    NullDevice,
    ZeroDevice,
    /// Raw drive, accessed past the buffer cache.
    RawDisk(OpenRawDevice),
    PipeEnd(PipeEnd),
}

impl UnixKernel {
    /// Reads from an open file at an offset and returns the number of bytes read. Streams ignore
    /// the offset.
    pub(super) async fn read_file(
        &self,
        process: &Rc<Process>,
        what: &FileTarget,
        (offset, into): (u64, &mut [u8]),
    ) -> Result<usize> {
        match what {
            FileTarget::NullDevice => Ok(0),
            FileTarget::ZeroDevice => {
                let cost = self.costs.clear_time(into.len());
                self.spend_processor_time(ExecutionContext::InProcess(process), Stage::Clear, cost)
                    .await;
                into.fill(0);
                Ok(into.len())
            }
            FileTarget::RawDisk(raw) => {
                self.transfer_raw(process, *raw, (offset, RawData::ReadBuffer(into)))
                    .await
            }
            FileTarget::PipeEnd(PipeEnd::ReadEnd(pipe)) => {
                self.read_pipe(process, pipe, into).await
            }
            FileTarget::PipeEnd(PipeEnd::WriteEnd(_)) => Err(Errno::BadFileDescriptor),
            FileTarget::File(node) => self.read_node(process, *node, (offset, into)).await,
        }
    }

    /// Writes to an open file at an offset. Returns the number of bytes written, and the result of
    /// the system call.
    pub(super) async fn write_file(
        &self,
        process: &Rc<Process>,
        what: &FileTarget,
        (offset, data): (u64, WriteData<'_>),
    ) -> (usize, Result<usize>) {
        let written = match what {
            FileTarget::NullDevice | FileTarget::ZeroDevice => Ok(data.len()),
            FileTarget::RawDisk(raw) => {
                let at = (offset, RawData::WriteData(data.as_bytes()));
                self.transfer_raw(process, *raw, at).await
            }
            FileTarget::PipeEnd(PipeEnd::WriteEnd(pipe)) => {
                self.write_pipe(process, pipe, data.as_bytes()).await
            }
            FileTarget::PipeEnd(PipeEnd::ReadEnd(_)) => Err(Errno::BadFileDescriptor),
            FileTarget::File(node) => return self.write_node(process, *node, (offset, data)).await,
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
            FileTarget::File(node) => {
                self.flush_volume(process, node.volume).await;
                Ok(())
            }
            // What goes past the cache is on the drive when the call returns, if not in
            // the drive's own.
            FileTarget::RawDisk(raw) => {
                self.flush_raw(process, *raw).await;
                Ok(())
            }
            FileTarget::NullDevice | FileTarget::ZeroDevice | FileTarget::PipeEnd(_) => {
                Err(Errno::InvalidArgument)
            }
        }
    }

    /// Reports whether fsync(2) of this kernel is the same as sync(2): it ignores the descriptor
    /// and waits for nothing.
    pub(super) fn supports_only_sync(&self) -> bool {
        matches!(self.file_system_view(), FileSystemView::SeventhEdition(_))
    }

    /// Syncs all mounted volumes: the kernel's part of sync(2).
    pub(super) async fn sync_all(&self, process: &Rc<Process>) {
        for volume in 0..self.mounted_count() {
            self.sync_volume(process, volume as u32).await;
        }
    }

    /// Returns the largest offset that a file can have, in bytes.
    pub(super) fn target_offset_max(&self, what: &FileTarget) -> u64 {
        match what {
            FileTarget::File(node) => self.file_offset_max(node.volume),
            FileTarget::RawDisk(_) => i64::MAX as u64,
            FileTarget::NullDevice | FileTarget::ZeroDevice | FileTarget::PipeEnd(_) => 0,
        }
    }
}
