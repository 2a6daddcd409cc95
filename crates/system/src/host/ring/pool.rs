//! Engine with a pool of threads. Each thread executes one request at a time with preadv2 and
//! pwritev2.

use super::buffers::Buffers;
use super::files::RingFiles;
use super::kernel_result;
use super::positioned::PositionedCalls;
use crate::host::limits::why_not_started;
use crate::host::usage::helper_name;
use crate::{Call, Error, Result, RingOptions, Submission};
use diskperf_timeline::Nanoseconds;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Thread pool with one thread for each slot of the ring.
pub(super) struct ThreadPool {
    state: Arc<PoolState>,
    threads: Vec<JoinHandle<()>>,
    /// Requests that wait to be passed to the pool's threads.
    queued: Vec<Submission>,
}

struct PoolState {
    files: Arc<RingFiles>,
    buffers: Arc<Buffers>,
    calls: PositionedCalls,
    queue: Mutex<WorkQueue>,
    work_available: Condvar,
    /// Completed slots with the bytes moved or a negated error number.
    completed: Mutex<Vec<(u32, i32)>>,
    completion_available: Condvar,
}

struct WorkQueue {
    submissions: VecDeque<Submission>,
    is_closing: bool,
}

/// Stack size of a pool thread in bytes; the thread only makes system calls.
const STACK_BYTES: usize = 64 << 10;

impl ThreadPool {
    pub(super) fn new(
        options: &RingOptions,
        files: &Arc<RingFiles>,
        buffers: &Arc<Buffers>,
    ) -> Result<Self> {
        let depth = options.depth as usize;
        let state = Arc::new(PoolState {
            files: Arc::clone(files),
            buffers: Arc::clone(buffers),
            calls: PositionedCalls::new(options),
            queue: Mutex::new(WorkQueue {
                submissions: VecDeque::with_capacity(depth),
                is_closing: false,
            }),
            work_available: Condvar::new(),
            completed: Mutex::new(Vec::with_capacity(depth)),
            completion_available: Condvar::new(),
        });
        let mut pool = Self {
            state,
            threads: Vec::with_capacity(depth),
            queued: Vec::with_capacity(depth),
        };
        let name = helper_name(rustix::thread::gettid());
        for number in 0..depth {
            let state = Arc::clone(&pool.state);
            let builder = std::thread::Builder::new()
                .name(name.clone())
                .stack_size(STACK_BYTES);
            let thread = builder.spawn(move || state.run()).map_err(|error| {
                let why = why_not_started(&error);
                Error::failed(
                    Call::Ring,
                    format!("of thread {number} of {depth}{why}"),
                    error,
                )
            })?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    pub(super) fn push(&mut self, submission: Submission) {
        self.queued.push(submission);
    }

    pub(super) fn flush(&mut self) {
        let count = self.queued.len();
        lock(&self.state.queue)
            .submissions
            .extend(self.queued.drain(..));
        for _ in 0..count {
            self.state.work_available.notify_one();
        }
    }

    pub(super) fn move_completions(&mut self, ready: &mut Vec<(u32, i32)>) {
        ready.append(&mut lock(&self.state.completed));
    }

    /// Waits for a completion, at most for the given time.
    pub(super) fn wait(&mut self, at_most: Nanoseconds) {
        let done = lock(&self.state.completed);
        let at_most = Duration::from_nanos(at_most.0);
        let nothing = |done: &mut Vec<_>| done.is_empty();
        drop(
            self.state
                .completion_available
                .wait_timeout_while(done, at_most, nothing),
        );
    }

    /// Cancels the requests that no thread has started, and returns their number.
    pub(super) fn cancel(&mut self) -> usize {
        let mut work = lock(&self.state.queue);
        let count = work.submissions.len() + self.queued.len();
        work.submissions.clear();
        self.queued.clear();
        count
    }

    /// Detaches the threads, because some are in calls that do not return. They keep the resources
    /// that they need.
    pub(super) fn give_up(&mut self) {
        self.threads.clear();
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        lock(&self.state.queue).is_closing = true;
        self.state.work_available.notify_all();
        for thread in self.threads.drain(..) {
            // It has nothing that could be lost.
            let _ = thread.join();
        }
    }
}

impl PoolState {
    /// Executes requests one after the other until the pool ends; the main function of a thread.
    fn run(&self) {
        while let Some(submission) = self.next_submission() {
            let result = match self.files.find_even_closed(submission.file) {
                Some(file) => self.calls.execute(&submission, file, &self.buffers),
                None => Err(Errno::BADF),
            };
            lock(&self.completed).push((submission.slot, kernel_result(result)));
            self.completion_available.notify_one();
        }
    }

    fn next_submission(&self) -> Option<Submission> {
        let mut work = lock(&self.queue);
        loop {
            if let Some(submission) = work.submissions.pop_front() {
                return Some(submission);
            }
            if work.is_closing {
                return None;
            }
            let waited = self.work_available.wait(work);
            work = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Locks a mutex even after a panic of its holder, which left no partial change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
