//! A drive in real time: the model against the monotonic clock.

mod activity;
mod core;
mod request;

pub use activity::{ACTIVITY_PERIODS_MAX, ActivePart, ActivityPeriod, DriveShape};
pub use request::{
    Client, Completed, DriveEvent, Outcome, RequestKind, ServedRequest, TakenEvents, TimedRequest,
};

use self::core::{Core, Delivery};
use crate::{Clock, ServeError};
use diskperf_device::Drive;
use diskperf_device::faults::{FaultEffects, FaultState, Faults, TakenStrikes};
use diskperf_sim::Time;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time before a due instant from which the drive's thread spins instead of sleeping. Timers
/// wake 20 to 70 us late where nothing else runs.
const SPIN: Duration = Duration::from_micros(100);

/// Interval at which an idle drive does its background work. Nobody waits for it.
const IDLE_INTERVAL: Duration = Duration::from_millis(10);

/// A drive that takes requests at the virtual time of their arrival, and returns each to its
/// client when the model's completion time has come.
///
/// Whoever submits runs the model up to the present under a lock, and the drive's own thread
/// does so when something is due. The arrival is stamped under the lock: arrivals have the
/// order of their stamps, and the model is never ahead of one. Dropping it ends the thread.
#[derive(Debug)]
pub struct ServedDrive {
    shared: Arc<DriveState>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct DriveState {
    clock: Clock,
    core: Mutex<Core>,
    /// Signalled when the thread has to wake earlier than it planned.
    earlier: Condvar,
    /// Changes with each such signal, for a thread that spins.
    version: AtomicU64,
    /// Time before a due instant from which the thread spins; none with one processor, which
    /// the client needs.
    spin: Duration,
}

impl ServedDrive {
    /// Starts the thread of a drive, whose virtual time is that of the clock. `keeps_arrivals`
    /// keeps every arrival for [`Self::take_arrivals`].
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub fn start(drive: Drive, clock: Clock, keeps_arrivals: bool) -> Result<Self, ServeError> {
        let faults = Faults::new(&[], drive.device().sectors(), drive.device().sector_bytes());
        Self::start_with_faults(drive, faults, clock, keeps_arrivals)
    }

    /// Starts the thread of a drive with faults.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub fn start_with_faults(
        drive: Drive,
        faults: Faults,
        clock: Clock,
        keeps_arrivals: bool,
    ) -> Result<Self, ServeError> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let shared = Arc::new(DriveState {
            clock,
            core: Mutex::new(Core::new(drive, faults, keeps_arrivals)),
            earlier: Condvar::new(),
            version: AtomicU64::new(0),
            spin: match processors {
                1 => Duration::ZERO,
                _ => SPIN,
            },
        });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("drive".to_owned())
            .spawn(move || of_thread.run())
            .map_err(|error| ServeError::Work(format!("cannot start a thread: {error}")))?;
        Ok(Self {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Submits a request, which arrives now. The client learns of its completion by
    /// [`Client::complete`], perhaps before this returns and perhaps on this thread. Returns what
    /// faults do to its data.
    pub fn submit(
        &self,
        client: &Arc<dyn Client>,
        tag: u64,
        request: ServedRequest,
    ) -> FaultEffects {
        let mut core = self.shared.lock();
        let now = self.shared.clock.now();
        core.advance(now);
        let effects = core.submit(Delivery::new(client, tag), request, now);
        // The clock is read again: a drive that takes no time has completed it by now, and
        // nothing has to wake.
        let now = self.shared.clock.now();
        core.advance(now);
        let completed = core.take_completed();
        self.shared.wake_if_earlier(&mut core, now);
        drop(core);
        deliver(completed);
        effects
    }

    /// Keeps arrivals and completions from now on, for [`Self::take_events`].
    pub fn keep_events(&self) {
        self.shared.lock().keep_events();
    }

    /// Removes and returns the events since the last call; none without [`Self::keep_events`].
    pub fn take_events(&self) -> TakenEvents {
        self.shared.lock_records().take_events()
    }

    /// Keeps the work of the drive's parts from now on, for [`Self::take_activity`].
    pub fn keep_activity(&self) {
        self.shared.lock().keep_activity();
    }

    /// Removes and returns the work of the drive's parts since the last call, part by part in the
    /// order of time; nothing without [`Self::keep_activity`], or after a panic of the model.
    pub fn take_activity(&self) -> Vec<ActivityPeriod> {
        match self.shared.core.lock() {
            Ok(mut core) => core.take_activity(),
            Err(_) => Vec::new(),
        }
    }

    /// Returns the parts of the drive that can be watched.
    pub fn shape(&self) -> DriveShape {
        activity::drive_shape(self.shared.lock_records().drive().device())
    }

    /// Returns the number of requests that have arrived and are not complete.
    pub fn in_flight(&self) -> usize {
        self.shared.lock_records().in_flight()
    }

    /// Switches a fault on or off by its name. Returns whether the drive has such a fault.
    pub fn switch_fault(&self, name: &str, is_on: bool) -> bool {
        let mut core = self.shared.lock();
        let now = self.shared.clock.now();
        core.advance(now);
        let is_known = core.switch_fault(name, is_on, now);
        self.shared.wake_if_earlier(&mut core, now);
        is_known
    }

    /// Returns the state of each fault.
    pub fn fault_states(&self) -> Vec<FaultState> {
        self.shared.lock_records().faults().states()
    }

    /// Removes and returns the strikes of faults since the last call.
    pub fn take_strikes(&self) -> TakenStrikes {
        self.shared.lock_records().faults_mut().take_strikes()
    }

    /// Ends serving: requests in flight are returned to their clients with
    /// [`Outcome::ShutDown`], and so is every later one. When this returns, the drive's thread
    /// has ended, and has told clients of all that it completed.
    pub fn shut_down(&self) {
        let core = self.shared.core.lock();
        let mut core = core.unwrap_or_else(PoisonError::into_inner);
        core.shut_down();
        let completed = core.take_completed();
        self.shared.wake();
        drop(core);
        deliver(completed);
        if let Some(thread) = self.lock_thread().take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }

    fn lock_thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The relation of virtual time to the monotonic clock.
    pub fn clock(&self) -> Clock {
        self.shared.clock
    }

    /// Returns whether the drive still completes requests. It does not after [`Self::shut_down`],
    /// or if the model panicked.
    pub fn is_running(&self) -> bool {
        let thread = self.lock_thread();
        let thread = thread.as_ref();
        thread.is_some_and(|thread| !thread.is_finished())
    }

    /// Returns the arrivals that were kept since the last call, in order, and forgets them. There
    /// are none while requests are in flight, whose completions are still missing.
    pub fn take_arrivals(&self) -> Vec<TimedRequest> {
        self.shared.lock().take_arrivals()
    }
}

impl Drop for ServedDrive {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// Tells clients of what is completed. No lock is held: clients send answers.
fn deliver(completed: Vec<(Delivery, Outcome)>) {
    for (delivery, outcome) in completed {
        delivery.deliver(outcome);
    }
}

impl DriveState {
    fn lock(&self) -> MutexGuard<'_, Core> {
        // After a panic of the model nothing that it says can be trusted.
        self.core.lock().expect("the model does not panic")
    }

    /// Locks what the drive has recorded, which a panic of the model leaves as it was.
    fn lock_records(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        self.version.fetch_add(1, Ordering::Relaxed);
        self.earlier.notify_one();
    }

    /// Wakes the drive's thread if it sleeps beyond the next event.
    fn wake_if_earlier(&self, core: &mut Core, now: Time) {
        let next = self.next_wake(core, now);
        if next < core.planned_wake {
            core.planned_wake = next;
            self.wake();
        }
    }

    /// Returns the virtual time of the next event that somebody waits for, or of the next look
    /// at an idle drive; [`Time::NEVER`] where nothing is to come.
    fn next_wake(&self, core: &Core, now: Time) -> Time {
        match (core.next_due(), core.is_idle()) {
            (None, _) => Time::NEVER,
            (Some(due), false) => due,
            (Some(due), true) => {
                let interval_ns = IDLE_INTERVAL.as_nanos() as f64 * self.clock.speed();
                due.max(now + Time(interval_ns as u64))
            }
        }
    }

    /// Completes requests when they are due, until the drive is shut down.
    fn run(&self) {
        // Without it sleeps are 50 us longer; serving goes on then.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut core = self.lock();
        loop {
            let now = self.clock.now();
            core.advance(now);
            let completed = core.take_completed();
            if !completed.is_empty() {
                drop(core);
                deliver(completed);
                core = self.lock();
                continue;
            }
            if core.is_shut_down() {
                return;
            }
            core.planned_wake = self.next_wake(&core, now);
            core = self.wait(core);
        }
    }

    /// Waits for the planned instant, or until the drive is woken.
    fn wait<'l>(&'l self, core: MutexGuard<'l, Core>) -> MutexGuard<'l, Core> {
        let wait = "the model does not panic";
        if core.planned_wake == Time::NEVER {
            return self.earlier.wait(core).expect(wait);
        }
        let due = self.clock.instant(core.planned_wake);
        let left = due.saturating_duration_since(Instant::now());
        // Nobody waits for the background work of an idle drive.
        let spin = match core.is_idle() {
            true => Duration::ZERO,
            false => self.spin,
        };
        if left > spin {
            let slept = self.earlier.wait_timeout(core, left - spin);
            return slept.expect(wait).0;
        }
        let version = self.version.load(Ordering::Relaxed);
        drop(core);
        while Instant::now() < due && self.version.load(Ordering::Relaxed) == version {
            std::hint::spin_loop();
        }
        self.lock()
    }
}
