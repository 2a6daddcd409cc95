//! Engine with a pool of threads. Each thread executes one request at a time with preadv2 and
//! pwritev2.

use super::buffers::RingBuffers;
use super::files::RingFiles;
use super::kernel_result;
use super::positioned::PositionedCalls;
use crate::host::limits::explain_thread_start_failure;
use crate::host::usage::helper_thread_name;
use crate::{CallKind, Error, Result, RingOptions, Submission};
use diskperf_timeline::Nanoseconds;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Thread pool with one thread for each slot of the ring.
pub(super) struct ThreadPool {
    pool_state: Arc<PoolState>,
    thread_handles: Vec<JoinHandle<()>>,
    /// Requests that wait to be passed to the pool's threads.
    unsubmitted_requests: Vec<Submission>,
}

struct PoolState {
    files: Arc<RingFiles>,
    buffers: Arc<RingBuffers>,
    positioned_calls: PositionedCalls,
    submission_queue: Mutex<SubmissionQueue>,
    work_available: Condvar,
    /// Completed slots with the bytes moved or a negated error number.
    completed_slots: Mutex<Vec<(u32, i32)>>,
    completion_available: Condvar,
}

struct SubmissionQueue {
    waiting_submissions: VecDeque<Submission>,
    is_closing: bool,
}

/// Stack size of a pool thread in bytes; the thread only makes system calls.
const THREAD_STACK_BYTES: usize = 64 << 10;

impl ThreadPool {
    pub(super) fn new(
        options: &RingOptions,
        files: &Arc<RingFiles>,
        buffers: &Arc<RingBuffers>,
    ) -> Result<Self> {
        let depth = options.queue_depth as usize;
        let state = Arc::new(PoolState {
            files: Arc::clone(files),
            buffers: Arc::clone(buffers),
            positioned_calls: PositionedCalls::new(options),
            submission_queue: Mutex::new(SubmissionQueue {
                waiting_submissions: VecDeque::with_capacity(depth),
                is_closing: false,
            }),
            work_available: Condvar::new(),
            completed_slots: Mutex::new(Vec::with_capacity(depth)),
            completion_available: Condvar::new(),
        });
        let mut pool = Self {
            pool_state: state,
            thread_handles: Vec::with_capacity(depth),
            unsubmitted_requests: Vec::with_capacity(depth),
        };
        let name = helper_thread_name(rustix::thread::gettid());
        for number in 0..depth {
            let state = Arc::clone(&pool.pool_state);
            let builder = std::thread::Builder::new()
                .name(name.clone())
                .stack_size(THREAD_STACK_BYTES);
            let thread = builder.spawn(move || state.run_thread()).map_err(|error| {
                let why = explain_thread_start_failure(&error);
                Error::call_failed(
                    CallKind::RingSetup,
                    format!("of thread {number} of {depth}{why}"),
                    error,
                )
            })?;
            pool.thread_handles.push(thread);
        }
        Ok(pool)
    }

    pub(super) fn push_submission(&mut self, submission: Submission) {
        self.unsubmitted_requests.push(submission);
    }

    pub(super) fn flush_to_threads(&mut self) {
        let count = self.unsubmitted_requests.len();
        lock_mutex(&self.pool_state.submission_queue)
            .waiting_submissions
            .extend(self.unsubmitted_requests.drain(..));
        for _ in 0..count {
            self.pool_state.work_available.notify_one();
        }
    }

    pub(super) fn move_completions(&mut self, ready: &mut Vec<(u32, i32)>) {
        ready.append(&mut lock_mutex(&self.pool_state.completed_slots));
    }

    /// Waits for a completion, at most for the given time.
    pub(super) fn wait_for_completion(&mut self, at_most: Nanoseconds) {
        let done = lock_mutex(&self.pool_state.completed_slots);
        let at_most = Duration::from_nanos(at_most.0);
        let nothing = |done: &mut Vec<_>| done.is_empty();
        drop(
            self.pool_state
                .completion_available
                .wait_timeout_while(done, at_most, nothing),
        );
    }

    /// Cancels the requests that no thread has started, and returns their number.
    pub(super) fn cancel_waiting(&mut self) -> usize {
        let mut work = lock_mutex(&self.pool_state.submission_queue);
        let count = work.waiting_submissions.len() + self.unsubmitted_requests.len();
        work.waiting_submissions.clear();
        self.unsubmitted_requests.clear();
        count
    }

    /// Detaches the threads, because some are in calls that do not return. They keep the resources
    /// that they need.
    pub(super) fn abandon_threads(&mut self) {
        self.thread_handles.clear();
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        lock_mutex(&self.pool_state.submission_queue).is_closing = true;
        self.pool_state.work_available.notify_all();
        for thread in self.thread_handles.drain(..) {
            // It has nothing that could be lost.
            let _ = thread.join();
        }
    }
}

impl PoolState {
    /// Executes requests one after the other until the pool ends; the main function of a thread.
    fn run_thread(&self) {
        while let Some(submission) = self.next_submission() {
            let result = match self.files.find_open_or_closed(submission.file) {
                Some(file) => {
                    self.positioned_calls
                        .execute_request(&submission, file, &self.buffers)
                }
                None => Err(Errno::BADF),
            };
            lock_mutex(&self.completed_slots).push((submission.slot, kernel_result(result)));
            self.completion_available.notify_one();
        }
    }

    fn next_submission(&self) -> Option<Submission> {
        let mut work = lock_mutex(&self.submission_queue);
        loop {
            if let Some(submission) = work.waiting_submissions.pop_front() {
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
fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
