//! `sequential`: requests one behind the other, with several under way.

use crate::load::driver::Driver;
use crate::load::generator::SequentialRequests;
use crate::load::{AREA, Durability, Load, field};
use crate::parameter::{Field, SizeMix, Value};
use crate::pattern::{Entry, Facts, Pattern, Place, Steps};
use crate::program::{Input, gcd};
use crate::worker::Worker;
use diskperf_system::{Buffer, Open, System};
use diskperf_timeline::WorkerMeasure;
use diskperf_timeline::units::MIB;

pub(crate) const PROGRAMS: &[Entry] = &[Entry {
    name: "sequential",
    does: "requests one behind the other, several under way, or arriving by the clock",
    files: AREA,
    pattern: || Box::new(Sequential::default()),
}];

#[derive(Clone, Debug)]
struct Sequential {
    load: Load,
    block_bytes: SizeMix,
    write_share: f64,
    skip_bytes: u64,
    start_bytes: u64,
    durability: Durability,
}

impl Default for Sequential {
    fn default() -> Self {
        Self {
            load: Load::default(),
            block_bytes: SizeMix::new(&[(MIB, 1)]),
            write_share: 0.0,
            skip_bytes: 0,
            start_bytes: 0,
            durability: Durability::default(),
        }
    }
}

impl Sequential {
    /// What each worker has of an area: a part of its own, in whole steps.
    fn part_bytes(&self, area_bytes: u64) -> u64 {
        let step_bytes = self.unit_bytes(0).max(1);
        area_bytes / self.load.workers / step_bytes * step_bytes
    }
}

impl Pattern for Sequential {
    fn fields(&mut self) -> Vec<Field<'_>> {
        let mut fields = vec![
            field(
                "block_bytes",
                "bytes of a request, or a distribution of sizes, each with its weight",
                Value::Mix(&mut self.block_bytes),
            ),
            field(
                "write_share",
                "share of the requests that write; reads and writes walk apart",
                Value::Share(&mut self.write_share),
            ),
            field(
                "skip_bytes",
                "bytes that are left out after each request",
                Value::Bytes(&mut self.skip_bytes, 0, 1 << 40),
            ),
            field(
                "start_bytes",
                "where the area begins; each worker has a part of it",
                Value::Bytes(&mut self.start_bytes, 0, 1 << 60),
            ),
        ];
        fields.extend(self.durability.fields());
        fields.extend(self.load.fields());
        fields
    }

    fn facts(&self) -> Facts {
        self.load
            .facts(self.block_bytes.largest(), self.write_share > 0.0)
    }

    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        let step_bytes = gcd(self.skip_bytes, self.start_bytes);
        self.block_bytes.sizes().fold(step_bytes, gcd)
    }

    fn unfit(&self) -> Option<String> {
        let largest = self.block_bytes.largest();
        if self.part_bytes(self.load.area_bytes) < largest {
            return Some(format!(
                "a request of {largest} bytes does not fit in the part of area_bytes={} that each of {} workers has",
                self.load.area_bytes, self.load.workers
            ));
        }
        self.load.unfit(largest)
    }

    fn file_bytes(&self, _size_bytes: u64) -> u64 {
        self.start_bytes + self.load.area_bytes
    }

    fn inputs(&self, worker: &Worker) -> Vec<Input> {
        vec![Input {
            path: worker.file(AREA),
            length_bytes: self.file_bytes(0),
            read: self.write_share < 1.0,
        }]
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.read_bytes + measure.written_bytes
    }

    fn prepare<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> Steps<'a> {
        Box::pin(async move {
            self.load
                .prepare((system, worker), self.file_bytes(0))
                .await
        })
    }

    fn run<'a>(&'a self, (system, worker): Place<'a>, _buffer: &'a mut Buffer) -> Steps<'a> {
        Box::pin(async move {
            let how = match self.write_share > 0.0 {
                true => self.durability.open(),
                false => Open::READ,
            };
            let bytes = self.file_bytes(0);
            let (file, end_bytes) = self.load.open((system, worker), how, bytes).await?;
            let largest = self.block_bytes.largest();
            self.load
                .open_ring((system, worker), &[file], largest)
                .await?;
            let part_bytes = self.part_bytes(end_bytes.saturating_sub(self.start_bytes));
            let first_bytes = self.start_bytes + part_bytes * u64::from(worker.index);
            let mut requests = SequentialRequests::new(
                (&self.block_bytes, self.write_share),
                self.skip_bytes,
                (first_bytes, part_bytes),
                worker.seed,
            );
            Driver::new((system, worker), &self.load, file, self.durability)
                .run(|| requests.draw())
                .await
        })
    }
}
