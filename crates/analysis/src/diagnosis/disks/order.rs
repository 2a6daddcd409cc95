//! In which order requests that wait at a disk are served.

use super::accesses::moves_arm;
use diskperf_timeline::trace::TracedRequest;
use diskperf_timeline::{Stage, Trace};

/// What waits when the arm gets a request.
#[derive(Default)]
pub(in super::super) struct Order {
    served: u64,
    /// Others that waited, all told.
    waiting: u64,
    /// Of these, those that had come before.
    passed: u64,
}

impl Order {
    pub(in super::super) fn of(trace: &Trace, requests: &[&TracedRequest]) -> Self {
        let mut found = Self::default();
        for (number, drive) in trace.drives.iter().enumerate() {
            if drive.has_link {
                let own = requests.iter().filter(|one| one.drive as usize == number);
                found.follow(own.filter(|one| moves_arm(one)).copied());
            }
        }
        found
    }

    fn follow<'t>(&mut self, requests: impl Iterator<Item = &'t TracedRequest>) {
        // Where one is served as another comes, that one does not wait yet.
        let mut moments: Vec<(u64, bool, u64)> = Vec::new();
        for one in requests {
            let came = came(one);
            moments.push((came, true, came));
            moments.push((begun(one).max(came), false, came));
        }
        moments.sort_unstable();
        let mut waiting: Vec<u64> = Vec::new();
        for (_, comes, came) in moments {
            match comes {
                true => waiting.push(came),
                false => {
                    let own = waiting.iter().position(|other| *other == came);
                    own.map(|place| waiting.swap_remove(place));
                    self.served += 1;
                    self.waiting += waiting.len() as u64;
                    let before = waiting.iter().filter(|other| **other < came);
                    self.passed += before.count() as u64;
                }
            }
        }
    }

    /// How many others waited when one was served.
    pub(in super::super) fn waiting_mean(&self) -> f64 {
        self.waiting as f64 / self.served.max(1) as f64
    }

    /// The share of those that had come before: nothing where who comes first is served
    /// first, a half where that has no part in it.
    pub(in super::super) fn passed_share(&self) -> f64 {
        self.passed as f64 / self.waiting.max(1) as f64
    }
}

/// When a request was decoded, and could be given to the arm.
fn came(request: &TracedRequest) -> u64 {
    let mut parts = request.parts();
    let decoded = parts.find(|(stage, ..)| *stage == Stage::Command);
    decoded.map_or(request.issued.0, |(.., until)| until.0)
}

/// When the arm began with it.
fn begun(request: &TracedRequest) -> u64 {
    let waits = |stage| {
        matches!(
            stage,
            Stage::ControllerQueue | Stage::Destage | Stage::Cleaning
        )
    };
    let parts = request.parts().filter(|(stage, ..)| waits(*stage));
    parts.last().map_or(request.issued.0, |(.., until)| until.0)
}
