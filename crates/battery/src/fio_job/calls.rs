//! fio engines that make calls on files and move no data, such as `falloc` and `filestat`.

use super::{FioJob, SAMPLE_INTERVAL};
use crate::ring::file_calls::{FileCalls, NamedCall, closed_files};
use crate::ring::slots::Slots;
use crate::worker::Worker;
use diskperf_fio::job::IoEngine;
use diskperf_system::{File, System};

/// Calls that a fio engine makes instead of I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EngineCalls {
    AllocateCalls,
    TruncateCalls,
    DirectoryEntryCall(NamedCall),
}

/// Returns the calls of a fio engine, or `None` for an engine that moves data or makes no calls.
fn from_engine(engine: IoEngine) -> Option<EngineCalls> {
    match engine {
        IoEngine::Falloc => Some(EngineCalls::AllocateCalls),
        IoEngine::Ftruncate => Some(EngineCalls::TruncateCalls),
        IoEngine::Filecreate => Some(EngineCalls::DirectoryEntryCall(NamedCall::Create)),
        IoEngine::Filestat => Some(EngineCalls::DirectoryEntryCall(NamedCall::Stat)),
        IoEngine::Filedelete => Some(EngineCalls::DirectoryEntryCall(NamedCall::Unlink)),
        _ => None,
    }
}

impl FioJob {
    /// Creates the request slots of a clone, for its ring or for its calls on files.
    pub(super) fn new_slots(&self, worker: &Worker, files: &[(File, String)]) -> Slots {
        let mut slots = self.new_slots_without_files(worker);
        self.set_file_starts(worker, (&mut slots, files));
        slots
    }

    /// Sets the first byte of each open file of a clone within the target.
    pub(super) fn set_file_starts(
        &self,
        worker: &Worker,
        (slots, files): (&mut Slots, &[(File, String)]),
    ) {
        let planned = self.planned_files_of_clone(worker).iter();
        let open = files.iter().map(|(file, _)| *file);
        slots.set_file_starts(open.zip(planned.map(|file| self.file_start_bytes(file))));
    }

    fn new_slots_without_files(&self, worker: &Worker) -> Slots {
        let paths = || {
            self.planned_files_of_clone(worker)
                .iter()
                .map(|file| self.file_path(worker, file))
        };
        match from_engine(self.job.engine.engine) {
            None => Slots::new(u64::from(super::queue_depth(&self.job))),
            Some(EngineCalls::AllocateCalls) => Slots::with_file_calls(FileCalls::Allocate),
            Some(EngineCalls::TruncateCalls) => Slots::with_file_calls(FileCalls::Truncate),
            Some(EngineCalls::DirectoryEntryCall(call)) => {
                Slots::with_file_calls(FileCalls::DirectoryEntryCalls {
                    call,
                    paths: paths().collect(),
                })
            }
        }
    }

    /// Returns a clone's files unopened, for engines whose calls take names.
    pub(super) fn unopened_files(
        &self,
        system: &mut System,
        worker: &Worker,
    ) -> Vec<(File, String)> {
        system.begin_name_call_series(SAMPLE_INTERVAL);
        let files = self.planned_files_of_clone(worker);
        let paths = files.iter().map(|file| self.file_path(worker, file));
        closed_files(files.len()).zip(paths).collect()
    }
}
