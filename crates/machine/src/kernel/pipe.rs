//! Pipes, which carry bytes from one process to another.

use super::computer::Computer;
use super::process::{ExecutionContext, Process};
use crate::errno::{Errno, Result};
use diskperf_timeline::Stage;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Capacity of a pipe in bytes: `PIPSIZ` of 4.2BSD.
const PIPE_CAPACITY_BYTES: usize = 4096;

/// Pipe between a process that writes and a process that reads.
#[derive(Default)]
pub struct Pipe {
    state: RefCell<PipeState>,
}

#[derive(Default)]
struct PipeState {
    buffered_bytes: VecDeque<u8>,
    reader_count: u32,
    writer_count: u32,
    waiting_processes: Vec<Rc<Process>>,
}

/// Read or write end of a pipe.
#[derive(Clone)]
pub enum PipeEnd {
    /// End from which a process reads.
    ReadEnd(Rc<Pipe>),
    /// End to which a process writes.
    WriteEnd(Rc<Pipe>),
}

impl Pipe {
    /// Creates a pipe and returns its read end and its write end.
    pub fn make_ends() -> (PipeEnd, PipeEnd) {
        let pipe = Rc::new(Self::default());
        {
            let mut state = pipe.state.borrow_mut();
            state.reader_count = 1;
            state.writer_count = 1;
        }
        (PipeEnd::ReadEnd(Rc::clone(&pipe)), PipeEnd::WriteEnd(pipe))
    }
}

impl Computer {
    pub(crate) async fn read_pipe(
        &self,
        process: &Rc<Process>,
        pipe: &Pipe,
        into: &mut [u8],
    ) -> Result<usize> {
        loop {
            let taken = {
                let mut state = pipe.state.borrow_mut();
                if state.buffered_bytes.is_empty() && state.writer_count > 0 && !into.is_empty() {
                    None
                } else {
                    let count = into.len().min(state.buffered_bytes.len());
                    let (first, rest) = state.buffered_bytes.as_slices();
                    let (into_first, into_rest) =
                        into[..count].split_at_mut(count.min(first.len()));
                    into_first.copy_from_slice(&first[..into_first.len()]);
                    into_rest.copy_from_slice(&rest[..into_rest.len()]);
                    state.buffered_bytes.drain(..count);
                    Some(count)
                }
            };
            if let Some(count) = taken {
                let cost = self.costs.copy_time(count);
                self.spend_processor_time(ExecutionContext::InProcess(process), Stage::Copy, cost)
                    .await;
                self.wake_pipe(pipe);
                return Ok(count);
            }
            self.wait_for_pipe(process, pipe).await;
        }
    }

    pub(crate) async fn write_pipe(
        &self,
        process: &Rc<Process>,
        pipe: &Pipe,
        data: &[u8],
    ) -> Result<usize> {
        let mut done = 0;
        while done < data.len() {
            let taken = {
                let mut state = pipe.state.borrow_mut();
                if state.reader_count == 0 {
                    return if done == 0 {
                        Err(Errno::BrokenPipe)
                    } else {
                        Ok(done)
                    };
                }
                let count =
                    (PIPE_CAPACITY_BYTES - state.buffered_bytes.len()).min(data.len() - done);
                state.buffered_bytes.extend(&data[done..done + count]);
                count
            };
            if taken == 0 {
                self.wait_for_pipe(process, pipe).await;
                continue;
            }
            done += taken;
            let cost = self.costs.copy_time(taken);
            self.spend_processor_time(ExecutionContext::InProcess(process), Stage::Copy, cost)
                .await;
            self.wake_pipe(pipe);
        }
        Ok(done)
    }

    /// Closes an end of a pipe and wakes the processes that wait at the other end.
    pub(crate) fn close_pipe(&self, end: &PipeEnd) {
        let pipe = match end {
            PipeEnd::ReadEnd(pipe) => {
                pipe.state.borrow_mut().reader_count -= 1;
                pipe
            }
            PipeEnd::WriteEnd(pipe) => {
                pipe.state.borrow_mut().writer_count -= 1;
                pipe
            }
        };
        self.wake_pipe(pipe);
    }

    async fn wait_for_pipe(&self, process: &Rc<Process>, pipe: &Pipe) {
        pipe.state
            .borrow_mut()
            .waiting_processes
            .push(Rc::clone(process));
        let from = self.simulation.now();
        self.wait_for_wake_up(process, "the other end of a pipe")
            .await;
        process.book_wait(Stage::Think, from);
    }

    fn wake_pipe(&self, pipe: &Pipe) {
        let waiting = std::mem::take(&mut pipe.state.borrow_mut().waiting_processes);
        for process in &waiting {
            self.wake_process(process);
        }
    }
}
