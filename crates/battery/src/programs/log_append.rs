//! Program `log_append`: a write-ahead log. Records are appended, and a sync makes them durable
//! before the transaction is reported as committed. The latency of such a commit is the time for
//! which a database client waits.

use crate::load::pace::IssuePace;
use crate::load::{COMMIT_RATE_MEANING, LoadOptions, SyncCall, YesNo, new_field};
use crate::parameter::{ParameterField, ParameterValue, SizeMix};
use crate::pattern::{
    AccessPattern, PhaseFuture, ProgramEntry, ProgramProperties, SystemAndWorker,
};
use crate::program::{InputFile, greatest_common_divisor};
use crate::random::RandomDraws;
use crate::ring::IoRing;
use crate::ring::slots::Slots;
use crate::worker::{Medium, Worker};
use crate::workload::log::{AppendLog, LogFile, wait_for_next_commit};
use diskperf_system::{Buffer, OpenOptions, System};
use diskperf_timeline::WorkerMeasure;
use diskperf_timeline::units::MIB;

const LOG_FILE_NAME: &str = "log";

const RECORD_STREAM: u128 = 6;

pub(crate) const PROGRAMS: &[ProgramEntry] = &[ProgramEntry {
    name: "log_append",
    summary: "write-ahead log: appends records and makes them durable, commit by commit",
    file_set_name: LOG_FILE_NAME,
    new_pattern: || Box::new(LogAppend::default()),
}];

#[derive(Clone, Debug)]
struct LogAppend {
    load_options: LoadOptions,
    record_bytes: SizeMix,
    records_per_commit: u64,
    sync_call: SyncCall,
    preallocates_log: YesNo,
}

impl Default for LogAppend {
    fn default() -> Self {
        Self {
            load_options: LoadOptions {
                area_bytes: 64 * MIB,
                ..LoadOptions::default()
            },
            record_bytes: SizeMix::new(&[(4096, 1)]),
            records_per_commit: 1,
            sync_call: SyncCall::Fdatasync,
            preallocates_log: YesNo::No,
        }
    }
}

impl LogAppend {
    fn file_path(&self, worker: &Worker) -> String {
        worker.file_path(&format!("{LOG_FILE_NAME}{}", worker.worker_index))
    }
}

impl AccessPattern for LogAppend {
    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        let mut fields = vec![
            new_field(
                "record_bytes",
                "record size in bytes, or several sizes with weights",
                ParameterValue::SizeMix(&mut self.record_bytes),
            ),
            new_field(
                "group",
                "records per sync (group commit)",
                ParameterValue::Count(&mut self.records_per_commit, 1, 4096),
            ),
            new_field(
                "sync_call",
                "system call that makes the records durable",
                ParameterValue::NamedChoice(&mut self.sync_call),
            ),
            new_field(
                "preallocated",
                "overwriting of an existing log of area_bytes, like a recycled log, instead of \
                 growing a new one",
                ParameterValue::NamedChoice(&mut self.preallocates_log),
            ),
        ];
        fields.extend(self.load_options.fields());
        // The group is what is in flight at once, and a commit waits for the one before.
        fields.retain(|field| field.name != "depth");
        for field in fields.iter_mut().filter(|field| field.name == "rate_iops") {
            field.description = COMMIT_RATE_MEANING;
        }
        fields
    }

    fn program_properties(&self) -> ProgramProperties {
        let largest = self.record_bytes.size_bytes_max();
        ProgramProperties {
            supported_media: &[Medium::Directory],
            appends_log: true,
            offered_bytes_per_s: self
                .load_options
                .offered_bytes_per_s(largest * self.records_per_commit),
            ..self.load_options.program_properties(largest, true)
        }
    }

    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        self.record_bytes
            .size_bytes_values()
            .fold(0, greatest_common_divisor)
    }

    fn validation_error(&self) -> Option<String> {
        self.load_options
            .validation_error(self.record_bytes.size_bytes_max() * self.records_per_commit)
    }

    fn file_bytes(&self, _size_bytes: u64) -> u64 {
        self.load_options.area_bytes * self.load_options.workers
    }

    fn prepared_bytes(&self, size_bytes: u64) -> u64 {
        match self.preallocates_log {
            YesNo::Yes => self.file_bytes(size_bytes),
            YesNo::No => 0,
        }
    }

    fn input_files(&self, worker: &Worker) -> Vec<InputFile> {
        match self.preallocates_log {
            YesNo::No => Vec::new(),
            YesNo::Yes => vec![InputFile {
                path: self.file_path(worker),
                length_bytes: self.load_options.area_bytes,
                is_read_through: false,
            }],
        }
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.written_bytes
    }

    fn prepare_target<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
        Box::pin(async move {
            let log = LogFile {
                file_path: self.file_path(worker),
                file_bytes: self.load_options.area_bytes,
                is_preallocated: self.preallocates_log == YesNo::Yes,
            };
            log.prepare((system, worker)).await
        })
    }

    fn run_timed_part<'a>(
        &'a self,
        (system, worker): SystemAndWorker<'a>,
        _buffer: &'a mut Buffer,
    ) -> PhaseFuture<'a> {
        Box::pin(async move {
            let how = match (self.preallocates_log, self.load_options.verify_writes) {
                (YesNo::No, YesNo::No) => OpenOptions::CREATE,
                (YesNo::No, YesNo::Yes) => OpenOptions::READ_WRITE.with_create(),
                (YesNo::Yes, YesNo::No) => OpenOptions::WRITE,
                (YesNo::Yes, YesNo::Yes) => OpenOptions::READ_WRITE,
            };
            let path = self.file_path(worker);
            let file = system
                .open(&path, how.with_direct(worker.direct_io))
                .await?;
            let ring = LoadOptions {
                queue_depth: self.records_per_commit,
                ..self.load_options.clone()
            };
            let largest = self.record_bytes.size_bytes_max();
            ring.open_ring((system, worker), &[file], largest).await?;
            let mut ring = IoRing::new(
                system,
                Slots::new(self.records_per_commit),
                vec![(file, path)],
            );
            ring.verifier = self.load_options.new_verifier(ring.target_system, worker);
            let mut log = AppendLog::new((file, 0), self.load_options.area_bytes, self.sync_call);
            let mut random = RandomDraws::new(worker.random_seed, RECORD_STREAM);
            let weight = self.record_bytes.weight_total();
            let mut pace = IssuePace::new(&self.load_options, worker, ring.target_system.now());
            ring.target_system.report_commits_in_series();
            while let Some(start) = wait_for_next_commit(&mut pace, &mut ring).await? {
                let mut group_bytes = 0;
                for _ in 0..self.records_per_commit {
                    let bytes = self
                        .record_bytes
                        .size_bytes_at_weight(random.draw_below(weight));
                    log.append_record(bytes as u32);
                    group_bytes += bytes;
                }
                pace.count_issued(group_bytes);
                log.commit_records(&mut ring, worker, start).await?;
            }
            ring.read_back(worker).await
        })
    }
}
