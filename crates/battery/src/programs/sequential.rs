//! Program `sequential`: sequential requests with several in flight.

use crate::load::area::{AreaOptions, AreaProgram, OffsetChoice};
use crate::load::generator::SequentialRequests;
use crate::load::{LOAD_FILE_NAME, LoadRequest, new_field};
use crate::parameter::{ParameterField, ParameterValue, SizeMix};
use crate::pattern::ProgramEntry;
use crate::worker::Worker;
use diskperf_timeline::units::MIB;

pub(crate) const PROGRAMS: &[ProgramEntry] = &[ProgramEntry {
    name: "sequential",
    summary: "sequential requests, at a queue depth or at a request rate",
    file_set_name: LOAD_FILE_NAME,
    new_pattern: || Box::new(AreaProgram::<SequentialOffsets>::with_block_bytes(MIB)),
}];

#[derive(Clone, Debug, Default)]
struct SequentialOffsets {
    skip_bytes: u64,
}

impl SequentialOffsets {
    /// Returns the bytes of each worker's own part of the area, in whole steps.
    fn worker_part_bytes(&self, area: &AreaOptions, bytes: u64) -> u64 {
        let step_bytes = area.unit_bytes(self.skip_bytes).max(1);
        bytes / area.load_options.workers / step_bytes * step_bytes
    }
}

impl OffsetChoice for SequentialOffsets {
    const PARAMETER_MEANINGS: [&'static str; 2] = [
        "share of writes among the requests; reads and writes are separate sequential streams",
        "start of the area, which the workers divide among them",
    ];
    const HAS_WORKER_PARTS: bool = true;

    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        vec![new_field(
            "skip_bytes",
            "bytes skipped after each request",
            ParameterValue::ByteCount(&mut self.skip_bytes, 0, 1 << 40),
        )]
    }

    fn offset_step_bytes(&self, _sizes: &SizeMix) -> u64 {
        self.skip_bytes
    }

    fn validation_error(&self, area: &AreaOptions) -> Option<String> {
        let largest = area.block_sizes.size_bytes_max();
        (self.worker_part_bytes(area, area.load_options.area_bytes) < largest).then(|| {
            format!(
                "a request of {largest} bytes exceeds a worker's part of area_bytes={}, which {} \
                 workers divide",
                area.load_options.area_bytes, area.load_options.workers
            )
        })
    }

    fn new_requests<'a>(
        &'a self,
        area: &'a AreaOptions,
        bytes: u64,
        worker: &Worker,
    ) -> impl FnMut() -> LoadRequest + 'a {
        let part_bytes = self.worker_part_bytes(area, bytes);
        let first_bytes = area.start_bytes + part_bytes * u64::from(worker.worker_index);
        let place = (first_bytes, part_bytes);
        let mut requests = SequentialRequests::new(
            area.size_mix_and_write_share(),
            self.skip_bytes,
            place,
            worker.random_seed,
        );
        move || requests.draw_request()
    }
}
