//! Program `cap_probe`: random requests at changing depth and size, which tell a cap on the rate from
//! a slow device. A cap gives the same rate at twice the depth and at twice the size.

mod source;

use crate::load::{LOAD_FILE_NAME, LoadOptions, new_field};
use crate::parameter::{ParameterField, ParameterValue, SizeMix};
use crate::pattern::{
    AccessPattern, PhaseFuture, ProgramEntry, ProgramProperties, SystemAndWorker,
};
use crate::program::InputFile;
use crate::ring::IoRing;
use crate::worker::Worker;
use diskperf_system::{Buffer, OpenOptions, System};
use diskperf_timeline::{Nanoseconds, ProbedLoad, WorkerMeasure};
use source::ProbeSource;

pub(crate) const PROGRAMS: &[ProgramEntry] = &[ProgramEntry {
    name: "cap_probe",
    summary: "random requests at two depths and two sizes, which tell a cap from a slow device",
    file_set_name: LOAD_FILE_NAME,
    new_pattern: || Box::new(CapProbeProgram::default()),
}];

/// Parameters of a load that a probe determines itself.
const PARAMETERS_LEFT_OUT: [&str; 6] = [
    "workers",
    "rate_iops",
    "arrivals",
    "duration_ms",
    "ramp_ms",
    "verify",
];

#[derive(Clone, Debug)]
pub(crate) struct CapProbeProgram {
    load_options: LoadOptions,
    block_bytes: u64,
    write_share: f64,
    /// Rounds of one window for each load.
    rounds: u64,
    window_ms: u64,
    /// Time before the first window, in which volumes let a first burst pass.
    settle_ms: u64,
}

impl Default for CapProbeProgram {
    fn default() -> Self {
        Self {
            load_options: LoadOptions {
                queue_depth: 32,
                ..LoadOptions::default()
            },
            block_bytes: 4096,
            write_share: 0.0,
            rounds: 30,
            window_ms: 1000,
            settle_ms: 5000,
        }
    }
}

impl CapProbeProgram {
    /// Returns the options of a ring for the largest depth.
    fn ring_options(&self) -> LoadOptions {
        LoadOptions {
            queue_depth: 2 * self.load_options.queue_depth,
            ..self.load_options.clone()
        }
    }

    fn call_bytes_max(&self) -> u64 {
        2 * self.block_bytes
    }

    /// Returns the time that the probe takes where changes of the load take half a window each.
    fn probe_duration(&self) -> Nanoseconds {
        let windows = self.rounds * ProbedLoad::ALL.len() as u64;
        Nanoseconds::from_millis(self.settle_ms + windows * self.window_ms * 3 / 2)
    }
}

impl AccessPattern for CapProbeProgram {
    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        let mut fields = vec![
            new_field(
                "block_bytes",
                "request size in bytes, which half of the windows double",
                ParameterValue::ByteCount(&mut self.block_bytes, 512, 1 << 26),
            ),
            new_field(
                "write_share",
                "share of writes among the requests",
                ParameterValue::Share(&mut self.write_share),
            ),
            new_field(
                "rounds",
                "rounds of three windows: at the depth and size, at twice the depth, at twice the size",
                ParameterValue::Count(&mut self.rounds, 1, 10_000),
            ),
            new_field(
                "window_ms",
                "length of a window in milliseconds",
                ParameterValue::Count(&mut self.window_ms, 100, 60_000),
            ),
            new_field(
                "settle_ms",
                "time before the first window in milliseconds, in which a first burst passes",
                ParameterValue::Count(&mut self.settle_ms, 0, 3_600_000),
            ),
        ];
        fields.extend(self.load_options.fields());
        fields.retain(|field| !PARAMETERS_LEFT_OUT.contains(&field.name));
        for field in &mut fields {
            if let ("depth", ParameterValue::Count(_, min, max)) = (field.name, &mut field.value) {
                field.description = "queue depth, which a third of the windows double";
                (*min, *max) = (1, *max / 2);
            }
        }
        fields
    }

    fn program_properties(&self) -> ProgramProperties {
        ProgramProperties {
            duration_max: Some(self.probe_duration()),
            repeats_by_itself: true,
            ..self
                .ring_options()
                .program_properties(self.call_bytes_max(), self.write_share > 0.0)
        }
    }

    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        self.block_bytes
    }

    fn validation_error(&self) -> Option<String> {
        self.ring_options().validation_error(self.call_bytes_max())
    }

    fn file_bytes(&self, _size_bytes: u64) -> u64 {
        self.load_options.area_bytes
    }

    fn input_files(&self, worker: &Worker) -> Vec<InputFile> {
        vec![InputFile {
            path: worker.file_path(LOAD_FILE_NAME),
            length_bytes: self.load_options.area_bytes,
            is_read_through: self.write_share < 1.0,
        }]
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.read_bytes + measure.written_bytes
    }

    fn prepare_target<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
        Box::pin(async move {
            let bytes = self.load_options.area_bytes;
            self.load_options
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
            let how = match self.write_share > 0.0 {
                true => OpenOptions::READ_WRITE,
                false => OpenOptions::READ,
            };
            let load = self.ring_options();
            let (file, area_bytes) = load
                .open_file((system, worker), how, load.area_bytes)
                .await?;
            let largest = self.call_bytes_max();
            load.open_ring((system, worker), &[file], largest).await?;
            let files = vec![(file, worker.file_path(LOAD_FILE_NAME))];
            let mut ring = IoRing::new(system, load.new_slots(largest), files);
            let sizes = [1, 2].map(|factor| SizeMix::new(&[(factor * self.block_bytes, 1)]));
            let start = ring.target_system.now();
            let mut source = ProbeSource::new((self, &sizes), (area_bytes, start), worker);
            ring.run_source(&mut source).await?;
            ring.target_system.record_cap_probe(source.into_probe());
            Ok(())
        })
    }
}
