//! Engine with a pool of threads. Each thread executes one request at a time with preadv2 and
//! pwritev2.

use super::buffers::Buffers;
use super::files::RingFiles;
use super::kernel_result;
use super::positioned::Positioned;
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
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Requests that wait to be passed to the pool's threads.
    queued: Vec<Submission>,
}

struct Shared {
    files: Arc<RingFiles>,
    buffers: Arc<Buffers>,
    calls: Positioned,
    work: Mutex<Work>,
    work_is_there: Condvar,
    /// Completed slots with the bytes moved or a negated error number.
    done: Mutex<Vec<(u32, i32)>>,
    something_is_done: Condvar,
}

struct Work {
    queue: VecDeque<Submission>,
    is_over: bool,
}

/// Stack size of a pool thread in bytes; the thread only makes system calls.
const STACK_BYTES: usize = 64 << 10;

impl Pool {
    pub(super) fn new(
        options: &RingOptions,
        files: &Arc<RingFiles>,
        buffers: &Arc<Buffers>,
    ) -> Result<Self> {
        let depth = options.depth as usize;
        let shared = Arc::new(Shared {
            files: Arc::clone(files),
            buffers: Arc::clone(buffers),
            calls: Positioned::new(options),
            work: Mutex::new(Work {
                queue: VecDeque::with_capacity(depth),
                is_over: false,
            }),
            work_is_there: Condvar::new(),
            done: Mutex::new(Vec::with_capacity(depth)),
            something_is_done: Condvar::new(),
        });
        let mut pool = Self {
            shared,
            threads: Vec::with_capacity(depth),
            queued: Vec::with_capacity(depth),
        };
        let name = helper_name(rustix::thread::gettid());
        for number in 0..depth {
            let shared = Arc::clone(&pool.shared);
            let builder = std::thread::Builder::new()
                .name(name.clone())
                .stack_size(STACK_BYTES);
            let thread = builder.spawn(move || shared.work()).map_err(|error| {
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
        lock(&self.shared.work).queue.extend(self.queued.drain(..));
        for _ in 0..count {
            self.shared.work_is_there.notify_one();
        }
    }

    pub(super) fn harvest(&mut self, ready: &mut Vec<(u32, i32)>) {
        ready.append(&mut lock(&self.shared.done));
    }

    /// Waits for a completion, at most for the given time.
    pub(super) fn wait(&mut self, at_most: Nanoseconds) {
        let done = lock(&self.shared.done);
        let at_most = Duration::from_nanos(at_most.0);
        let nothing = |done: &mut Vec<_>| done.is_empty();
        drop(
            self.shared
                .something_is_done
                .wait_timeout_while(done, at_most, nothing),
        );
    }

    /// Cancels the requests that no thread has started, and returns their number.
    pub(super) fn cancel(&mut self) -> usize {
        let mut work = lock(&self.shared.work);
        let count = work.queue.len() + self.queued.len();
        work.queue.clear();
        self.queued.clear();
        count
    }

    /// Detaches the threads, because some are in calls that do not return. They keep the resources
    /// that they need.
    pub(super) fn give_up(&mut self) {
        self.threads.clear();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.shared.work).is_over = true;
        self.shared.work_is_there.notify_all();
        for thread in self.threads.drain(..) {
            // It has nothing that could be lost.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Executes requests one after the other until the pool ends; the main function of a thread.
    fn work(&self) {
        while let Some(submission) = self.next() {
            let result = match self.files.even_forgotten(submission.file) {
                Some(file) => self.calls.carry_out(&submission, file, &self.buffers),
                None => Err(Errno::BADF),
            };
            lock(&self.done).push((submission.slot, kernel_result(result)));
            self.something_is_done.notify_one();
        }
    }

    fn next(&self) -> Option<Submission> {
        let mut work = lock(&self.work);
        loop {
            if let Some(submission) = work.queue.pop_front() {
                return Some(submission);
            }
            if work.is_over {
                return None;
            }
            let waited = self.work_is_there.wait(work);
            work = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Locks a mutex even after a panic of its holder, which left no partial change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
