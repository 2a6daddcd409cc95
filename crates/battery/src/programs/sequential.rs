//! Program `sequential`: sequential requests with several in flight.

use crate::load::area::{Area, AreaProgram, Places};
use crate::load::generator::SequentialRequests;
use crate::load::{AREA, Request, field};
use crate::parameter::{Field, SizeMix, Value};
use crate::pattern::Entry;
use crate::worker::Worker;
use diskperf_timeline::units::MIB;

pub(crate) const PROGRAMS: &[Entry] = &[Entry {
    name: "sequential",
    does: "requests one behind the other, several under way, or arriving by the clock",
    files: AREA,
    pattern: || Box::new(AreaProgram::<Sequential>::of(MIB)),
}];

#[derive(Clone, Debug, Default)]
struct Sequential {
    skip_bytes: u64,
}

impl Sequential {
    /// Returns the bytes of each worker's own part of the area, in whole steps.
    fn part_bytes(&self, area: &Area, bytes: u64) -> u64 {
        let step_bytes = area.unit_bytes(self.skip_bytes).max(1);
        bytes / area.load.workers / step_bytes * step_bytes
    }
}

impl Places for Sequential {
    const MEANINGS: [&'static str; 2] = [
        "share of the requests that write; reads and writes walk apart",
        "where the area begins; each worker has a part of it",
    ];
    const PARTS: bool = true;

    fn fields(&mut self) -> Vec<Field<'_>> {
        vec![field(
            "skip_bytes",
            "bytes that are left out after each request",
            Value::Bytes(&mut self.skip_bytes, 0, 1 << 40),
        )]
    }

    fn step_bytes(&self, _sizes: &SizeMix) -> u64 {
        self.skip_bytes
    }

    fn unfit(&self, area: &Area) -> Option<String> {
        let largest = area.block_bytes.largest();
        (self.part_bytes(area, area.load.area_bytes) < largest).then(|| {
            format!(
                "a request of {largest} bytes does not fit in the part of area_bytes={} that each of {} workers has",
                area.load.area_bytes, area.load.workers
            )
        })
    }

    fn requests<'a>(
        &'a self,
        area: &'a Area,
        bytes: u64,
        worker: &Worker,
    ) -> impl FnMut() -> Request + 'a {
        let part_bytes = self.part_bytes(area, bytes);
        let first_bytes = area.start_bytes + part_bytes * u64::from(worker.index);
        let place = (first_bytes, part_bytes);
        let mut requests = SequentialRequests::new(area.mix(), self.skip_bytes, place, worker.seed);
        move || requests.draw()
    }
}
