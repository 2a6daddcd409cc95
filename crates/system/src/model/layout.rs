//! Layout of a modelled file system, for programs that read its device.

use super::{ModelWorker, to_nanoseconds};
use crate::FilesystemLayout;
use diskperf_machine::ProgramWork;
use diskperf_timeline::Nanoseconds;

impl ModelWorker {
    pub(crate) fn layout_of_mount(&self, mount: u32) -> Option<FilesystemLayout> {
        let file_system = self.session.file_system(mount)?;
        Some(FilesystemLayout::from_device(
            format!("/dev/drive{mount}"),
            file_system,
        ))
    }

    pub(crate) fn program_work_time(&self, work: ProgramWork) -> Nanoseconds {
        to_nanoseconds(self.session.program_work_time(work))
    }
}
