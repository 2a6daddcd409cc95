//! Common parts of the programs whose requests address one area of a file, at random offsets or
//! sequentially.

use super::pace::Pace;
use super::source::LoadSource;
use super::{AREA, Durability, Load, Request, YesNo, field};
use crate::parameter::{Field, SizeMix, Value};
use crate::pattern::{Facts, Pattern, Place, Steps};
use crate::program::{Input, gcd};
use crate::ring::Ring;
use crate::worker::Worker;
use diskperf_system::{Buffer, Open, System};
use diskperf_timeline::WorkerMeasure;
use std::fmt::Debug;

/// Area of a file, and the requests that a program makes to it.
#[derive(Clone, Debug)]
pub(crate) struct Area {
    pub(crate) load: Load,
    pub(crate) block_bytes: SizeMix,
    pub(crate) write_share: f64,
    pub(crate) start_bytes: u64,
    durability: Durability,
}

/// Choice of the offsets of a program's requests in its area.
pub(crate) trait Places: Clone + Debug + Send + Sync + 'static {
    /// Help texts of the parameters `write_share` and `start_bytes`, in this order.
    const MEANINGS: [&'static str; 2];

    /// Whether each worker has a part of the area of its own.
    const PARTS: bool;

    /// Returns the parameters of the offset choice as editable fields.
    fn fields(&mut self) -> Vec<Field<'_>>;

    /// Returns the step of the offsets, relative to the start of the area. 0 means that only the
    /// request sizes determine it.
    fn step_bytes(&self, sizes: &SizeMix) -> u64;

    /// Returns the reason why the parameters do not fit together, or `None` if they do.
    fn unfit(&self, area: &Area) -> Option<String>;

    /// Returns the generator of a worker's requests within the first `bytes` bytes of the area.
    fn requests<'a>(
        &'a self,
        area: &'a Area,
        bytes: u64,
        worker: &Worker,
    ) -> impl FnMut() -> Request + 'a;
}

/// Program whose requests address one area of a file.
#[derive(Clone, Debug)]
pub(crate) struct AreaProgram<P> {
    area: Area,
    places: P,
}

impl Area {
    /// Returns the greatest common divisor of all offsets and sizes for offsets of this step.
    pub(crate) fn unit_bytes(&self, step_bytes: u64) -> u64 {
        let step_bytes = gcd(step_bytes, self.start_bytes);
        self.block_bytes.sizes().fold(step_bytes, gcd)
    }

    /// Returns the distribution of the request sizes and the share of requests that write.
    pub(crate) fn mix(&self) -> (&SizeMix, f64) {
        (&self.block_bytes, self.write_share)
    }

    fn writes(&self) -> bool {
        self.write_share > 0.0
    }

    fn end_bytes(&self) -> u64 {
        self.start_bytes + self.load.area_bytes
    }
}

impl<P: Places> AreaProgram<P> {
    /// Returns the reason why written data cannot be verified, or `None` if it can or need not be.
    fn unfit_to_verify(&self) -> Option<String> {
        let reason = match self.area.load.verify {
            YesNo::No => return None,
            YesNo::Yes if !self.area.writes() => return None,
            YesNo::Yes if self.area.load.workers > 1 && !P::PARTS => {
                "workers that write over each other's blocks cannot verify them; give program.workers=1, or run `sequential`, whose workers have parts of their own"
            }
            YesNo::Yes => return None,
        };
        Some(reason.to_owned())
    }
}

impl<P: Places + Default> AreaProgram<P> {
    /// Creates a program that reads blocks of `block_bytes`.
    pub(crate) fn of(block_bytes: u64) -> Self {
        Self {
            area: Area {
                load: Load::default(),
                block_bytes: SizeMix::new(&[(block_bytes, 1)]),
                write_share: 0.0,
                start_bytes: 0,
                durability: Durability::default(),
            },
            places: P::default(),
        }
    }
}

impl<P: Places> Pattern for AreaProgram<P> {
    fn fields(&mut self) -> Vec<Field<'_>> {
        let area = &mut self.area;
        let [of_share, of_start] = P::MEANINGS;
        let mut fields = vec![
            field(
                "block_bytes",
                "bytes of a request, or a distribution of sizes, each with its weight",
                Value::Mix(&mut area.block_bytes),
            ),
            field("write_share", of_share, Value::Share(&mut area.write_share)),
        ];
        fields.extend(self.places.fields());
        fields.push(field(
            "start_bytes",
            of_start,
            Value::Bytes(&mut area.start_bytes, 0, 1 << 60),
        ));
        fields.extend(area.durability.fields());
        fields.extend(area.load.fields());
        fields
    }

    fn facts(&self) -> Facts {
        let largest = self.area.block_bytes.largest();
        self.area.load.facts(largest, self.area.writes())
    }

    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        let step_bytes = self.places.step_bytes(&self.area.block_bytes);
        self.area.unit_bytes(step_bytes)
    }

    fn unfit(&self) -> Option<String> {
        let unfit = self.places.unfit(&self.area);
        let unfit = unfit.or_else(|| self.area.load.unfit(self.area.block_bytes.largest()));
        unfit.or_else(|| self.unfit_to_verify())
    }

    fn file_bytes(&self, _size_bytes: u64) -> u64 {
        self.area.end_bytes()
    }

    fn inputs(&self, worker: &Worker) -> Vec<Input> {
        vec![Input {
            path: worker.file(AREA),
            length_bytes: self.area.end_bytes(),
            read: self.area.write_share < 1.0,
        }]
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.read_bytes + measure.written_bytes
    }

    fn prepare<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> Steps<'a> {
        Box::pin(async move {
            let bytes = self.area.end_bytes();
            self.area.load.prepare((system, worker), bytes).await
        })
    }

    fn run<'a>(&'a self, (system, worker): Place<'a>, _buffer: &'a mut Buffer) -> Steps<'a> {
        Box::pin(async move {
            let area = &self.area;
            let how = match area.writes() {
                true => area.durability.open(),
                false => Open::READ,
            };
            let bytes = area.end_bytes();
            let (file, end_bytes) = area.load.open((system, worker), how, bytes).await?;
            let largest = area.block_bytes.largest();
            area.load
                .open_ring((system, worker), &[file], largest)
                .await?;
            let there_bytes = end_bytes.saturating_sub(area.start_bytes);
            let requests = self.places.requests(area, there_bytes, worker);
            let slots = area.load.slots(largest);
            let mut ring = Ring::new(system, slots, vec![(file, worker.file(AREA))]);
            ring.think = worker.think;
            ring.verifier = area.load.verifier(ring.system, worker);
            let pace = Pace::new(&area.load, worker, ring.system.now());
            let mut source = LoadSource::new((file, area.durability), pace, requests);
            ring.run(&mut source).await?;
            ring.read_back(worker).await
        })
    }
}
