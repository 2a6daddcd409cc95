//! Common parts of the programs whose requests address one area of a file, at random offsets or
//! sequentially.

use super::pace::IssuePace;
use super::source::LoadSource;
use super::{AREA, Durability, Load, LoadRequest, YesNo, new_field};
use crate::parameter::{ParameterField, ParameterValue, SizeMix};
use crate::pattern::{Pattern, PhaseFuture, ProgramProperties, RunContext};
use crate::program::{Input, gcd};
use crate::ring::IoRing;
use crate::worker::Worker;
use diskperf_system::{Buffer, Open, System};
use diskperf_timeline::WorkerMeasure;
use std::fmt::Debug;

/// Area of a file, and the requests that a program makes to it.
#[derive(Clone, Debug)]
pub(crate) struct Area {
    pub(crate) load: Load,
    pub(crate) block_sizes: SizeMix,
    pub(crate) write_share: f64,
    pub(crate) start_bytes: u64,
    durability: Durability,
}

/// Choice of the offsets of a program's requests in its area.
pub(crate) trait OffsetChoice: Clone + Debug + Send + Sync + 'static {
    /// Help texts of the parameters `write_share` and `start_bytes`, in this order.
    const PARAMETER_MEANINGS: [&'static str; 2];

    /// Whether each worker has a part of the area of its own.
    const HAS_WORKER_PARTS: bool;

    /// Returns the parameters of the offset choice as editable fields.
    fn fields(&mut self) -> Vec<ParameterField<'_>>;

    /// Returns the step of the offsets, relative to the start of the area. 0 means that only the
    /// request sizes determine it.
    fn offset_step_bytes(&self, sizes: &SizeMix) -> u64;

    /// Returns the reason why the parameters do not fit together, or `None` if they do.
    fn validation_error(&self, area: &Area) -> Option<String>;

    /// Returns the generator of a worker's requests within the first `bytes` bytes of the area.
    fn new_requests<'a>(
        &'a self,
        area: &'a Area,
        bytes: u64,
        worker: &Worker,
    ) -> impl FnMut() -> LoadRequest + 'a;
}

/// Program whose requests address one area of a file.
#[derive(Clone, Debug)]
pub(crate) struct AreaProgram<P> {
    area: Area,
    offset_choice: P,
}

impl Area {
    /// Returns the greatest common divisor of all offsets and sizes for offsets of this step.
    pub(crate) fn unit_bytes(&self, step_bytes: u64) -> u64 {
        let step_bytes = gcd(step_bytes, self.start_bytes);
        self.block_sizes.sizes().fold(step_bytes, gcd)
    }

    /// Returns the distribution of the request sizes and the share of requests that write.
    pub(crate) fn size_mix_and_write_share(&self) -> (&SizeMix, f64) {
        (&self.block_sizes, self.write_share)
    }

    fn writes(&self) -> bool {
        self.write_share > 0.0
    }

    fn end_bytes(&self) -> u64 {
        self.start_bytes + self.load.area_bytes
    }
}

impl<P: OffsetChoice> AreaProgram<P> {
    /// Returns the reason why written data cannot be verified, or `None` if it can or need not be.
    fn verification_obstacle(&self) -> Option<String> {
        let reason = match self.area.load.verify {
            YesNo::No => return None,
            YesNo::Yes if !self.area.writes() => return None,
            YesNo::Yes if self.area.load.workers > 1 && !P::HAS_WORKER_PARTS => {
                "workers that overwrite each other's blocks cannot verify them; give \
                 program.workers=1, or run `sequential`, where each worker has its own part"
            }
            YesNo::Yes => return None,
        };
        Some(reason.to_owned())
    }
}

impl<P: OffsetChoice + Default> AreaProgram<P> {
    /// Creates a program that reads blocks of `block_bytes`.
    pub(crate) fn with_block_bytes(block_bytes: u64) -> Self {
        Self {
            area: Area {
                load: Load::default(),
                block_sizes: SizeMix::new(&[(block_bytes, 1)]),
                write_share: 0.0,
                start_bytes: 0,
                durability: Durability::default(),
            },
            offset_choice: P::default(),
        }
    }
}

impl<P: OffsetChoice> Pattern for AreaProgram<P> {
    fn fields(&mut self) -> Vec<ParameterField<'_>> {
        let area = &mut self.area;
        let [of_share, of_start] = P::PARAMETER_MEANINGS;
        let mut fields = vec![
            new_field(
                "block_bytes",
                "request size in bytes, or several sizes with weights",
                ParameterValue::Mix(&mut area.block_sizes),
            ),
            new_field(
                "write_share",
                of_share,
                ParameterValue::Share(&mut area.write_share),
            ),
        ];
        fields.extend(self.offset_choice.fields());
        fields.push(new_field(
            "start_bytes",
            of_start,
            ParameterValue::Bytes(&mut area.start_bytes, 0, 1 << 60),
        ));
        fields.extend(area.durability.fields());
        fields.extend(area.load.fields());
        fields
    }

    fn properties(&self) -> ProgramProperties {
        let largest = self.area.block_sizes.size_max();
        self.area.load.properties(largest, self.area.writes())
    }

    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        let step_bytes = self.offset_choice.offset_step_bytes(&self.area.block_sizes);
        self.area.unit_bytes(step_bytes)
    }

    fn validation_error(&self) -> Option<String> {
        let unfit = self.offset_choice.validation_error(&self.area);
        let unfit = unfit.or_else(|| {
            self.area
                .load
                .validation_error(self.area.block_sizes.size_max())
        });
        unfit.or_else(|| self.verification_obstacle())
    }

    fn file_bytes(&self, _size_bytes: u64) -> u64 {
        self.area.end_bytes()
    }

    fn inputs(&self, worker: &Worker) -> Vec<Input> {
        vec![Input {
            path: worker.file_path(AREA),
            length_bytes: self.area.end_bytes(),
            read: self.area.write_share < 1.0,
        }]
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.read_bytes + measure.written_bytes
    }

    fn prepare<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
        Box::pin(async move {
            let bytes = self.area.end_bytes();
            self.area.load.prepare((system, worker), bytes).await
        })
    }

    fn run<'a>(
        &'a self,
        (system, worker): RunContext<'a>,
        _buffer: &'a mut Buffer,
    ) -> PhaseFuture<'a> {
        Box::pin(async move {
            let area = &self.area;
            let how = match area.writes() {
                true => area.durability.open_options(),
                false => Open::READ,
            };
            let bytes = area.end_bytes();
            let (file, end_bytes) = area.load.open_file((system, worker), how, bytes).await?;
            let largest = area.block_sizes.size_max();
            area.load
                .open_ring((system, worker), &[file], largest)
                .await?;
            let there_bytes = end_bytes.saturating_sub(area.start_bytes);
            let requests = self.offset_choice.new_requests(area, there_bytes, worker);
            let slots = area.load.new_slots(largest);
            let mut ring = IoRing::new(system, slots, vec![(file, worker.file_path(AREA))]);
            ring.think = worker.think;
            ring.verifier = area.load.new_verifier(ring.system, worker);
            let pace = IssuePace::new(&area.load, worker, ring.system.now());
            let mut source = LoadSource::new((file, area.durability), pace, requests);
            ring.run(&mut source).await?;
            ring.read_back(worker).await
        })
    }
}
