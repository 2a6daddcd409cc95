//! fio engines that make calls on files and move no data, such as `falloc` and `filestat`.

use super::{FioJob, INTERVAL};
use crate::ring::file_calls::{FileCalls, NamedCall, closed_files};
use crate::ring::slots::Slots;
use crate::worker::Worker;
use diskperf_fio::job::Engine;
use diskperf_system::{File, System};

/// Calls that a fio engine makes instead of I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calls {
    Allocate,
    Truncate,
    Name(NamedCall),
}

/// Returns the calls of a fio engine, or `None` for an engine that moves data or makes no calls.
fn of_engine(engine: Engine) -> Option<Calls> {
    match engine {
        Engine::Falloc => Some(Calls::Allocate),
        Engine::Ftruncate => Some(Calls::Truncate),
        Engine::Filecreate => Some(Calls::Name(NamedCall::Create)),
        Engine::Filestat => Some(Calls::Name(NamedCall::Stat)),
        Engine::Filedelete => Some(Calls::Name(NamedCall::Unlink)),
        _ => None,
    }
}

impl FioJob {
    /// Creates the request slots of a clone, for its ring or for its calls on files.
    pub(super) fn slots(&self, worker: &Worker, files: &[(File, String)]) -> Slots {
        let mut slots = self.empty_slots(worker);
        self.place_files(worker, (&mut slots, files));
        slots
    }

    /// Sets the first byte of each open file of a clone within the target.
    pub(super) fn place_files(
        &self,
        worker: &Worker,
        (slots, files): (&mut Slots, &[(File, String)]),
    ) {
        let planned = self.of(worker).iter();
        let open = files.iter().map(|(file, _)| *file);
        slots.place_files(open.zip(planned.map(|file| self.start_bytes(file))));
    }

    fn empty_slots(&self, worker: &Worker) -> Slots {
        let paths = || self.of(worker).iter().map(|file| self.path(worker, file));
        match of_engine(self.job.engine.engine) {
            None => Slots::new(u64::from(super::depth(&self.job))),
            Some(Calls::Allocate) => Slots::calling(FileCalls::Allocate),
            Some(Calls::Truncate) => Slots::calling(FileCalls::Truncate),
            Some(Calls::Name(call)) => Slots::calling(FileCalls::Name {
                call,
                paths: paths().collect(),
            }),
        }
    }

    /// Returns a clone's files unopened, for engines whose calls take names.
    pub(super) fn not_open(&self, system: &mut System, worker: &Worker) -> Vec<(File, String)> {
        system.count_calls(INTERVAL);
        let files = self.of(worker);
        let paths = files.iter().map(|file| self.path(worker, file));
        closed_files(files.len()).zip(paths).collect()
    }
}
