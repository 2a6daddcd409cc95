//! Engine with splice(2): the worker moves data between a file and its memory through a pipe.

use super::buffers::RingBuffers;
use super::files::RingFile;
use super::sync_range;
use crate::{CallKind, Error, IoOperation, Result, Submission};
use rustix::io::Errno;
use rustix::pipe::{IoSliceRaw, PipeFlags, SpliceFlags, pipe_with, splice, vmsplice};
use std::os::fd::OwnedFd;

/// Pipe between the file and the worker's memory. It is empty between requests.
pub(super) struct SplicePipe {
    pipe_reader: OwnedFd,
    pipe_writer: OwnedFd,
    pipe_capacity_bytes: usize,
}

impl SplicePipe {
    pub(super) fn new() -> Result<Self> {
        let made = pipe_with(PipeFlags::CLOEXEC).and_then(|(reader, writer)| {
            let pipe_capacity_bytes = rustix::pipe::fcntl_getpipe_size(&writer)?;
            Ok(Self {
                pipe_reader: reader,
                pipe_writer: writer,
                pipe_capacity_bytes,
            })
        });
        made.map_err(|errno| Error::call_failed(CallKind::Pipe, "the splice pipe", errno))
    }

    /// Executes a request and returns the bytes moved. At the end of the file these are fewer.
    pub(super) fn execute_request(
        &self,
        submission: &Submission,
        file: &RingFile,
        buffers: &RingBuffers,
    ) -> rustix::io::Result<usize> {
        let &Submission {
            offset_bytes,
            bytes,
            slot,
            ..
        } = submission;
        match submission.operation {
            IoOperation::Read => {
                self.splice_read(file, offset_bytes, buffers.in_flight_buffer(slot, bytes))
            }
            IoOperation::Write => {
                self.splice_write(file, offset_bytes, buffers.in_flight_buffer(slot, bytes))
            }
            IoOperation::Fsync => rustix::fs::fsync(file.descriptor()).map(|()| 0),
            IoOperation::Fdatasync => rustix::fs::fdatasync(file.descriptor()).map(|()| 0),
            IoOperation::SyncRange(steps) => {
                sync_range::call_sync_file_range(file.descriptor(), (offset_bytes, bytes), steps)
                    .map(|()| 0)
            }
            IoOperation::DiscardRange => Err(Errno::OPNOTSUPP),
        }
    }

    fn splice_read(
        &self,
        file: &RingFile,
        offset: u64,
        buffer: &mut [u8],
    ) -> rustix::io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let mut from = offset + done as u64;
            let wanted = (buffer.len() - done).min(self.pipe_capacity_bytes);
            let moved = retry_interrupted(|| {
                let flags = SpliceFlags::MOVE;
                let (file, pipe) = (file.descriptor(), &self.pipe_writer);
                splice(file, Some(&mut from), pipe, None, wanted, flags)
            })?;
            if moved == 0 {
                break;
            }
            let end = done + moved;
            while done < end {
                done += retry_interrupted(|| {
                    rustix::io::read(&self.pipe_reader, &mut buffer[done..end])
                })?;
            }
        }
        Ok(done)
    }

    fn splice_write(
        &self,
        file: &RingFile,
        offset: u64,
        buffer: &[u8],
    ) -> rustix::io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let wanted = (buffer.len() - done).min(self.pipe_capacity_bytes);
            let end = done + self.fill_pipe(&buffer[done..done + wanted])?;
            while done < end {
                let mut to = offset + done as u64;
                let moved = retry_interrupted(|| {
                    let flags = SpliceFlags::MOVE;
                    let (pipe, file) = (&self.pipe_reader, file.descriptor());
                    splice(pipe, None, file, Some(&mut to), end - done, flags)
                });
                match moved {
                    Ok(0) => return self.drain_pipe(end - done).map(|()| done),
                    Ok(moved) => done += moved,
                    Err(errno) => return self.drain_pipe(end - done).and(Err(errno)),
                }
            }
        }
        Ok(done)
    }

    /// Fills the pipe with references to memory, which must stay unchanged until the file has the
    /// data.
    #[allow(unsafe_code)]
    fn fill_pipe(&self, memory: &[u8]) -> rustix::io::Result<usize> {
        let parts = [IoSliceRaw::from_slice(memory)];
        retry_interrupted(|| {
            // SAFETY: the memory is borrowed, and the pipe is empty again when the request
            // ends that it belongs to.
            unsafe { vmsplice(&self.pipe_writer, &parts, SpliceFlags::empty()) }
        })
    }

    /// Removes the data from the pipe that the file did not accept.
    fn drain_pipe(&self, mut bytes: usize) -> rustix::io::Result<()> {
        let mut sink = [0; 4096];
        while bytes > 0 {
            let room = bytes.min(sink.len());
            bytes -= retry_interrupted(|| rustix::io::read(&self.pipe_reader, &mut sink[..room]))?;
        }
        Ok(())
    }
}

/// Repeats a call while signals interrupt it.
fn retry_interrupted<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}
