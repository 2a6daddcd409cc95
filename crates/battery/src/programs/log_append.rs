//! Program `log_append`: a write-ahead log. Records are appended, and a sync makes them durable
//! before the transaction is reported as committed. The latency of such a commit is the time for
//! which a database client waits.

use crate::load::pace::IssuePace;
use crate::load::{COMMIT_RATE, Load, SyncCall, YesNo, new_field};
use crate::parameter::{ParameterField, ParameterValue, SizeMix};
use crate::pattern::{Pattern, PhaseFuture, ProgramEntry, ProgramProperties, RunContext};
use crate::program::{Input, gcd};
use crate::random::RandomDraws;
use crate::ring::IoRing;
use crate::ring::slots::Slots;
use crate::worker::{Medium, Worker};
use crate::workload::log::{AppendLog, LogFile, wait_for_next_commit};
use diskperf_system::{Buffer, Open, System};
use diskperf_timeline::WorkerMeasure;
use diskperf_timeline::units::MIB;

const LOG_FILE_NAME: &str = "log";

const RECORD_STREAM: u128 = 6;

pub(crate) const PROGRAMS: &[ProgramEntry] = &[ProgramEntry {
    name: "log_append",
    summary: "write-ahead log: appends records and makes them durable, commit by commit",
    files_name: LOG_FILE_NAME,
    new_pattern: || Box::new(LogAppend::default()),
}];

#[derive(Clone, Debug)]
struct LogAppend {
    load: Load,
    record_bytes: SizeMix,
    records_per_commit: u64,
    sync_call: SyncCall,
    preallocate: YesNo,
}

impl Default for LogAppend {
    fn default() -> Self {
        Self {
            load: Load {
                area_bytes: 64 * MIB,
                ..Load::default()
            },
            record_bytes: SizeMix::new(&[(4096, 1)]),
            records_per_commit: 1,
            sync_call: SyncCall::Fdatasync,
            preallocate: YesNo::No,
        }
    }
}

impl LogAppend {
    fn file_path(&self, worker: &Worker) -> String {
        worker.file_path(&format!("{LOG_FILE_NAME}{}", worker.index))
    }
}

impl Pattern for LogAppend {
    fn fields(&mut self) -> Vec<ParameterField<'_>> {
        let mut fields = vec![
            new_field(
                "record_bytes",
                "record size in bytes, or several sizes with weights",
                ParameterValue::Mix(&mut self.record_bytes),
            ),
            new_field(
                "group",
                "records per sync (group commit)",
                ParameterValue::Count(&mut self.records_per_commit, 1, 4096),
            ),
            new_field(
                "sync_call",
                "system call that makes the records durable",
                ParameterValue::Choice(&mut self.sync_call),
            ),
            new_field(
                "preallocated",
                "overwriting of an existing log of area_bytes, like a recycled log, instead of \
                 growing a new one",
                ParameterValue::Choice(&mut self.preallocate),
            ),
        ];
        fields.extend(self.load.fields());
        // The group is what is in flight at once, and a commit waits for the one before.
        fields.retain(|field| field.name != "depth");
        for field in fields.iter_mut().filter(|field| field.name == "rate_iops") {
            field.meaning = COMMIT_RATE;
        }
        fields
    }

    fn properties(&self) -> ProgramProperties {
        let largest = self.record_bytes.size_max();
        ProgramProperties {
            media: &[Medium::Directory],
            appends_log: true,
            offered_bytes_per_s: self
                .load
                .offered_bytes_per_s(largest * self.records_per_commit),
            ..self.load.properties(largest, true)
        }
    }

    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        self.record_bytes.sizes().fold(0, gcd)
    }

    fn validation_error(&self) -> Option<String> {
        self.load
            .validation_error(self.record_bytes.size_max() * self.records_per_commit)
    }

    fn file_bytes(&self, _size_bytes: u64) -> u64 {
        self.load.area_bytes * self.load.workers
    }

    fn prepared_bytes(&self, size_bytes: u64) -> u64 {
        match self.preallocate {
            YesNo::Yes => self.file_bytes(size_bytes),
            YesNo::No => 0,
        }
    }

    fn inputs(&self, worker: &Worker) -> Vec<Input> {
        match self.preallocate {
            YesNo::No => Vec::new(),
            YesNo::Yes => vec![Input {
                path: self.file_path(worker),
                length_bytes: self.load.area_bytes,
                read: false,
            }],
        }
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.written_bytes
    }

    fn prepare<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
        Box::pin(async move {
            let log = LogFile {
                file_path: self.file_path(worker),
                bytes: self.load.area_bytes,
                preallocated: self.preallocate == YesNo::Yes,
            };
            log.prepare((system, worker)).await
        })
    }

    fn run<'a>(
        &'a self,
        (system, worker): RunContext<'a>,
        _buffer: &'a mut Buffer,
    ) -> PhaseFuture<'a> {
        Box::pin(async move {
            let how = match (self.preallocate, self.load.verify) {
                (YesNo::No, YesNo::No) => Open::CREATE,
                (YesNo::No, YesNo::Yes) => Open::READ_WRITE.create(),
                (YesNo::Yes, YesNo::No) => Open::WRITE,
                (YesNo::Yes, YesNo::Yes) => Open::READ_WRITE,
            };
            let path = self.file_path(worker);
            let file = system.open(&path, how.direct(worker.direct)).await?;
            let ring = Load {
                queue_depth: self.records_per_commit,
                ..self.load.clone()
            };
            let largest = self.record_bytes.size_max();
            ring.open_ring((system, worker), &[file], largest).await?;
            let mut ring = IoRing::new(
                system,
                Slots::new(self.records_per_commit),
                vec![(file, path)],
            );
            ring.verifier = self.load.new_verifier(ring.system, worker);
            let mut log = AppendLog::new((file, 0), self.load.area_bytes, self.sync_call);
            let mut random = RandomDraws::new(worker.seed, RECORD_STREAM);
            let weight = self.record_bytes.total_weight();
            let mut pace = IssuePace::new(&self.load, worker, ring.system.now());
            ring.system.judge_by_commits();
            while let Some(start) = wait_for_next_commit(&mut pace, &mut ring).await? {
                let mut group_bytes = 0;
                for _ in 0..self.records_per_commit {
                    let bytes = self.record_bytes.size_at_weight(random.draw_below(weight));
                    log.append_record(bytes as u32);
                    group_bytes += bytes;
                }
                pace.count_issued(group_bytes);
                log.commit(&mut ring, worker, start).await?;
            }
            ring.read_back(worker).await
        })
    }
}
