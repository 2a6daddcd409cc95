//! Layout of a modelled file system, for programs that read its device.

use super::{Model, nanoseconds};
use crate::Layout;
use diskperf_machine::Work;
use diskperf_timeline::Nanoseconds;

impl Model {
    pub(crate) fn layout(&self, mount: u32) -> Option<Layout> {
        let file_system = self.session.file_system(mount)?;
        Some(Layout::of_device(format!("/dev/drive{mount}"), file_system))
    }

    pub(crate) fn service_time_of(&self, work: Work) -> Nanoseconds {
        nanoseconds(self.session.time_of(work))
    }
}
