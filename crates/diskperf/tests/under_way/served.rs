//! A folder that this process serves on another as a file system, and that fails or stalls
//! when it is told to.

use crate::filesystem::{Cache, Operation, Treated, Treatment};
use crate::support::User;
use crate::support::shown::wait_until_shown;
use fuser::{BackgroundSession, Config, MountOption};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Requests served at once.
const THREADS: usize = 4;

/// What is to happen to requests.
#[derive(Debug, Default)]
struct Orders {
    /// Requests of this kind fail with this error number.
    fails: Option<(Operation, i32)>,
    /// The same, once data is read or written: not between repetitions.
    will_fail: Option<(Operation, i32)>,
    /// After so many reads, nothing is answered for so long.
    stall: Option<(u64, Duration)>,
    /// Nothing is answered.
    is_stalled: bool,
}

/// Told what to do by a test, and asked by the threads that serve.
#[derive(Debug, Default)]
struct Told {
    orders: Mutex<Orders>,
    goes_on: Condvar,
}

struct Obedient(Arc<Told>);

impl Told {
    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stall(&self, lasts: Duration) {
        self.orders().is_stalled = true;
        std::thread::sleep(lasts);
        self.orders().is_stalled = false;
        self.goes_on.notify_all();
    }
}

impl Treatment for Obedient {
    fn before(&self, operation: Operation) -> io::Result<()> {
        let mut orders = self.0.orders();
        if operation == Operation::Read
            && let Some((reads, lasts)) = &mut orders.stall
        {
            *reads -= 1;
            if *reads == 0 {
                let lasts = *lasts;
                orders.stall = None;
                drop(orders);
                self.0.stall(lasts);
                orders = self.0.orders();
            }
        }
        while orders.is_stalled {
            let woken = self.0.goes_on.wait(orders);
            orders = woken.unwrap_or_else(PoisonError::into_inner);
        }
        if operation != Operation::Sync
            && let Some(will_fail) = orders.will_fail.take()
        {
            orders.fails = Some(will_fail);
        }
        match orders.fails {
            Some((fails, errno)) if fails == operation => Err(io::Error::from_raw_os_error(errno)),
            _ => Ok(()),
        }
    }
}

/// Served until this goes.
pub(crate) struct Served {
    /// It unmounts when it goes.
    _session: BackgroundSession,
    told: Arc<Told>,
    /// What is shown.
    pub(crate) behind: PathBuf,
}

impl Served {
    /// Serves the directory `behind` of the user's home on its target.
    pub(crate) fn on_target(user: &User) -> Self {
        let behind = user.file("behind");
        std::fs::create_dir(&behind).unwrap();
        let told = Arc::new(Told::default());
        let shown = behind.to_str().expect("scratch paths are text");
        let treated = Treated::new(shown, Cache::None, Obedient(Arc::clone(&told))).unwrap();
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("obedient".to_owned())];
        config.n_threads = Some(THREADS);
        config.clone_fd = true;
        let target = user.target();
        let session = fuser::spawn_mount(treated, &target, &config).expect("it is mounted");
        wait_until_shown(&target);
        Self {
            _session: session,
            told,
            behind,
        }
    }

    /// When data is read or written next, and from then on, requests of this kind fail.
    pub(crate) fn fail(&self, operation: Operation, errno: i32) {
        self.told.orders().will_fail = Some((operation, errno));
    }

    /// Answers nothing for so long, once so many reads were asked for.
    pub(crate) fn stall_after(&self, reads: u64, lasts: Duration) {
        self.told.orders().stall = Some((reads, lasts));
    }

    /// Answers nothing for so long.
    pub(crate) fn stall(&self, lasts: Duration) {
        self.told.stall(lasts);
    }
}
