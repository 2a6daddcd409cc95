//! `random`: requests at random places, with several under way, as a storage device of
//! today is asked; in closed loop, or arriving by the clock.

use crate::load::distribution::Distribution;
use crate::load::driver::Driver;
use crate::load::generator::{Choice, RandomRequests};
use crate::load::{AREA, Durability, Load, YesNo, field};
use crate::parameter::{Field, SizeMix, Value};
use crate::pattern::{Entry, Facts, Pattern, Place, Steps};
use crate::program::{Input, gcd};
use crate::worker::Worker;
use diskperf_system::{Buffer, Open, System};
use diskperf_timeline::WorkerMeasure;

pub(crate) const PROGRAMS: &[Entry] = &[Entry {
    name: "random",
    does: "requests at random places, several under way, or arriving by the clock",
    files: AREA,
    pattern: || Box::new(Random::default()),
}];

#[derive(Clone, Debug)]
struct Random {
    load: Load,
    block_bytes: SizeMix,
    write_share: f64,
    distribution: Distribution,
    each_once: YesNo,
    align_bytes: u64,
    start_bytes: u64,
    durability: Durability,
}

impl Default for Random {
    fn default() -> Self {
        Self {
            load: Load::default(),
            block_bytes: SizeMix::new(&[(4096, 1)]),
            write_share: 0.0,
            distribution: Distribution::Uniform,
            each_once: YesNo::No,
            align_bytes: 0,
            start_bytes: 0,
            durability: Durability::default(),
        }
    }
}

impl Random {
    /// What every offset is a multiple of.
    fn step_bytes(&self) -> u64 {
        match self.align_bytes {
            0 => self.block_bytes.sizes().fold(0, gcd),
            bytes => bytes,
        }
    }

    fn writes(&self) -> bool {
        self.write_share > 0.0
    }
}

impl Pattern for Random {
    fn fields(&mut self) -> Vec<Field<'_>> {
        let mut fields = vec![
            field(
                "block_bytes",
                "bytes of a request, or a distribution of sizes, each with its weight",
                Value::Mix(&mut self.block_bytes),
            ),
            field(
                "write_share",
                "share of the requests that write",
                Value::Share(&mut self.write_share),
            ),
            field(
                "distribution",
                "how often each block is asked for",
                Value::Distribution(&mut self.distribution),
            ),
            field(
                "each_once",
                "ask for each block once before any comes again",
                Value::Choice(&mut self.each_once),
            ),
            field(
                "align_bytes",
                "what every offset is a multiple of; 0: of the smallest block",
                Value::Bytes(&mut self.align_bytes, 0, 1 << 30),
            ),
            field(
                "start_bytes",
                "where the area begins",
                Value::Bytes(&mut self.start_bytes, 0, 1 << 60),
            ),
        ];
        fields.extend(self.durability.fields());
        fields.extend(self.load.fields());
        fields
    }

    fn facts(&self) -> Facts {
        self.load.facts(self.block_bytes.largest(), self.writes())
    }

    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        let step_bytes = gcd(self.step_bytes(), self.start_bytes);
        self.block_bytes.sizes().fold(step_bytes, gcd)
    }

    fn unfit(&self) -> Option<String> {
        let largest = self.block_bytes.largest();
        if self.each_once == YesNo::Yes && self.block_bytes.only() != Some(self.step_bytes()) {
            return Some(
                "each_once=yes takes one block_bytes, and align_bytes of the same".to_owned(),
            );
        }
        if self.each_once == YesNo::Yes && self.distribution != Distribution::Uniform {
            return Some("each_once=yes asks for all blocks equally often".to_owned());
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
            let how = match self.writes() {
                true => self.durability.open(),
                false => Open::READ,
            };
            let bytes = self.file_bytes(0);
            let (file, end_bytes) = self.load.open((system, worker), how, bytes).await?;
            let largest = self.block_bytes.largest();
            self.load
                .open_ring((system, worker), &[file], largest)
                .await?;
            let choice = Choice {
                distribution: &self.distribution,
                each_once: self.each_once == YesNo::Yes,
                align_bytes: self.step_bytes(),
            };
            let mut requests = RandomRequests::new(
                (&self.block_bytes, self.write_share),
                &choice,
                (self.start_bytes, end_bytes.saturating_sub(self.start_bytes)),
                worker.seed,
            );
            Driver::new((system, worker), &self.load, file, self.durability)
                .run(|| requests.draw())
                .await
        })
    }
}
