//! Worker threads of this machine for work that comes in pieces.

use diskperf_models::crew::Crew;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

/// A number of threads for parallel work. Fewer threads run if the system refuses some.
#[derive(Clone, Copy, Debug)]
pub struct ThreadCrew(pub usize);

impl Crew for ThreadCrew {
    fn run_each(&self, count: usize, piece: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let some = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    break;
                }
                piece(number);
            }
        };
        std::thread::scope(|scope| {
            let helpers = (1..self.0.min(count)).map(|_| Builder::new().spawn_scoped(scope, some));
            let helpers: Vec<_> = helpers.map_while(Result::ok).collect();
            some();
            for helper in helpers {
                helper
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
        });
    }
}

/// Returns one thread for each processor that this process may use.
pub fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
