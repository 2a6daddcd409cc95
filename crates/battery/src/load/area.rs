//! Common parts of the programs whose requests address one area of a file, at random offsets or
//! sequentially.

use super::pace::IssuePace;
use super::source::LoadSource;
use super::{Durability, LOAD_FILE_NAME, LoadOptions, LoadRequest, YesNo, new_field};
use crate::parameter::{ParameterField, ParameterValue, SizeMix};
use crate::pattern::{AccessPattern, PhaseFuture, ProgramProperties, SystemAndWorker};
use crate::program::{InputFile, greatest_common_divisor};
use crate::ring::IoRing;
use crate::worker::Worker;
use diskperf_system::{Buffer, OpenOptions, System};
use diskperf_timeline::WorkerMeasure;
use std::fmt::Debug;

/// Area of a file, and the requests that a program makes to it.
#[derive(Clone, Debug)]
pub(crate) struct AreaOptions {
    pub(crate) load_options: LoadOptions,
    pub(crate) block_sizes: SizeMix,
    pub(crate) write_share: f64,
    pub(crate) start_bytes: u64,
    durability_options: Durability,
}

/// Choice of the offsets of a program's requests in its area.
pub(crate) trait OffsetChoice: Clone + Debug + Send + Sync + 'static {
    /// Help texts of the parameters `write_share` and `start_bytes`, in this order.
    const PARAMETER_MEANINGS: [&'static str; 2];

    const HAS_WORKER_PARTS: bool;

    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>>;

    /// Returns the step of the offsets, relative to the start of the area. 0 means that only the
    /// request sizes determine it.
    fn offset_step_bytes(&self, sizes: &SizeMix) -> u64;

    /// Returns the reason why the parameters do not fit together, or `None` if they do.
    fn validation_error(&self, area: &AreaOptions) -> Option<String>;

    /// Returns the generator of a worker's requests within the first `bytes` bytes of the area.
    fn new_requests<'a>(
        &'a self,
        area: &'a AreaOptions,
        bytes: u64,
        worker: &Worker,
    ) -> impl FnMut() -> LoadRequest + 'a;
}

/// Program whose requests address one area of a file.
#[derive(Clone, Debug)]
pub(crate) struct AreaProgram<P> {
    area_options: AreaOptions,
    offset_choice: P,
}

impl AreaOptions {
    /// Returns the greatest common divisor of all offsets and sizes for offsets of this step.
    pub(crate) fn unit_bytes(&self, step_bytes: u64) -> u64 {
        let step_bytes = greatest_common_divisor(step_bytes, self.start_bytes);
        self.block_sizes
            .size_bytes_values()
            .fold(step_bytes, greatest_common_divisor)
    }

    /// Returns the distribution of the request sizes and the share of requests that write.
    pub(crate) fn size_mix_and_write_share(&self) -> (&SizeMix, f64) {
        (&self.block_sizes, self.write_share)
    }

    fn has_writes(&self) -> bool {
        self.write_share > 0.0
    }

    fn area_end_bytes(&self) -> u64 {
        self.start_bytes + self.load_options.area_bytes
    }
}

impl<P: OffsetChoice> AreaProgram<P> {
    /// Returns the reason why written data cannot be verified, or `None` if it can or need not be.
    fn verification_obstacle(&self) -> Option<String> {
        let reason = match self.area_options.load_options.verify_writes {
            YesNo::No => return None,
            YesNo::Yes if !self.area_options.has_writes() => return None,
            YesNo::Yes if self.area_options.load_options.workers > 1 && !P::HAS_WORKER_PARTS => {
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
            area_options: AreaOptions {
                load_options: LoadOptions::default(),
                block_sizes: SizeMix::new(&[(block_bytes, 1)]),
                write_share: 0.0,
                start_bytes: 0,
                durability_options: Durability::default(),
            },
            offset_choice: P::default(),
        }
    }
}

impl<P: OffsetChoice> AccessPattern for AreaProgram<P> {
    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        let area = &mut self.area_options;
        let [of_share, of_start] = P::PARAMETER_MEANINGS;
        let mut fields = vec![
            new_field(
                "block_bytes",
                "request size in bytes, or several sizes with weights",
                ParameterValue::SizeMix(&mut area.block_sizes),
            ),
            new_field(
                "write_share",
                of_share,
                ParameterValue::Share(&mut area.write_share),
            ),
        ];
        fields.extend(self.offset_choice.parameter_fields());
        fields.push(new_field(
            "start_bytes",
            of_start,
            ParameterValue::ByteCount(&mut area.start_bytes, 0, 1 << 60),
        ));
        fields.extend(area.durability_options.parameter_fields());
        fields.extend(area.load_options.fields());
        fields
    }

    fn program_properties(&self) -> ProgramProperties {
        let largest = self.area_options.block_sizes.size_bytes_max();
        self.area_options
            .load_options
            .program_properties(largest, self.area_options.has_writes())
    }

    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        let step_bytes = self
            .offset_choice
            .offset_step_bytes(&self.area_options.block_sizes);
        self.area_options.unit_bytes(step_bytes)
    }

    fn validation_error(&self) -> Option<String> {
        let unfit = self.offset_choice.validation_error(&self.area_options);
        let unfit = unfit.or_else(|| {
            self.area_options
                .load_options
                .validation_error(self.area_options.block_sizes.size_bytes_max())
        });
        unfit.or_else(|| self.verification_obstacle())
    }

    fn file_bytes(&self, _size_bytes: u64) -> u64 {
        self.area_options.area_end_bytes()
    }

    fn input_files(&self, worker: &Worker) -> Vec<InputFile> {
        vec![InputFile {
            path: worker.file_path(LOAD_FILE_NAME),
            length_bytes: self.area_options.area_end_bytes(),
            is_read_through: self.area_options.write_share < 1.0,
        }]
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.read_bytes + measure.written_bytes
    }

    fn prepare_target<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
        Box::pin(async move {
            let bytes = self.area_options.area_end_bytes();
            self.area_options
                .load_options
                .prepare_file((system, worker), bytes)
                .await
        })
    }

    fn run_timed_part<'a>(
        &'a self,
        (system, worker): SystemAndWorker<'a>,
        _buffer: &'a mut Buffer,
    ) -> PhaseFuture<'a> {
        Box::pin(async move {
            let area = &self.area_options;
            let how = match area.has_writes() {
                true => area.durability_options.open_options(),
                false => OpenOptions::READ,
            };
            let bytes = area.area_end_bytes();
            let (file, end_bytes) = area
                .load_options
                .open_file((system, worker), how, bytes)
                .await?;
            let largest = area.block_sizes.size_bytes_max();
            area.load_options
                .open_ring((system, worker), &[file], largest)
                .await?;
            let there_bytes = end_bytes.saturating_sub(area.start_bytes);
            let requests = self.offset_choice.new_requests(area, there_bytes, worker);
            let slots = area.load_options.new_slots(largest);
            let mut ring = IoRing::new(
                system,
                slots,
                vec![(file, worker.file_path(LOAD_FILE_NAME))],
            );
            ring.think_time = worker.think_time;
            ring.verifier = area.load_options.new_verifier(ring.target_system, worker);
            let pace = IssuePace::new(&area.load_options, worker, ring.target_system.now());
            let mut source = LoadSource::new((file, area.durability_options), pace, requests);
            ring.run_source(&mut source).await?;
            ring.read_back(worker).await
        })
    }
}
