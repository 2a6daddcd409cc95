//! Program `database`: the I/O of a transaction engine. Clients read pages. One sync of the log
//! commits the transactions of a group of clients. The pages that they changed are written back
//! while the next group reads. Periodic checkpoints make the data file durable.

use crate::load::distribution::{AccessDistribution, BlockDraws};
use crate::load::pace::IssuePace;
use crate::load::{COMMIT_RATE_MEANING, LOAD_FILE_NAME, LoadOptions, SyncCall, YesNo, new_field};
use crate::parameter::{ParameterField, ParameterValue};
use crate::pattern::{
    AccessPattern, PhaseFuture, ProgramEntry, ProgramProperties, SystemAndWorker,
};
use crate::program::{InputFile, greatest_common_divisor};
use crate::random::RandomDraws;
use crate::ring::IoRing;
use crate::ring::slots::Slots;
use crate::worker::{Medium, Worker};
use crate::workload::log::{AppendLog, LogFile, wait_for_next_commit};
use diskperf_system::{Buffer, File, IoOperation, OpenOptions, Submission, System};
use diskperf_timeline::WorkerMeasure;
use diskperf_timeline::units::MIB;

const PAGE_STREAM: u128 = 7;

pub(crate) const PROGRAMS: &[ProgramEntry] = &[ProgramEntry {
    name: "database",
    summary: "database transactions: random page reads and writes, and a log with group commit",
    file_set_name: LOAD_FILE_NAME,
    new_pattern: || Box::new(Database::default()),
}];

#[derive(Clone, Debug)]
struct Database {
    load_options: LoadOptions,
    page_bytes: u64,
    client_count: u64,
    pages_read_per_transaction: u64,
    pages_written_per_transaction: u64,
    distribution: AccessDistribution,
    log_record_bytes: u64,
    log_bytes: u64,
    sync_call: SyncCall,
    commits_per_checkpoint: u64,
}

impl Default for Database {
    /// Returns the default engine: pages of PostgreSQL, and eight clients, each of which reads four
    /// pages that are not in memory and changes two.
    fn default() -> Self {
        Self {
            load_options: LoadOptions {
                queue_depth: 16,
                ..LoadOptions::default()
            },
            page_bytes: 8192,
            client_count: 8,
            pages_read_per_transaction: 4,
            pages_written_per_transaction: 2,
            distribution: AccessDistribution::Zipf { theta: 0.8 },
            log_record_bytes: 4096,
            log_bytes: 64 * MIB,
            sync_call: SyncCall::Fdatasync,
            commits_per_checkpoint: 1000,
        }
    }
}

impl Database {
    fn log_file(&self, worker: &Worker) -> LogFile {
        LogFile {
            file_path: worker.file_path(&format!("wal{}", worker.worker_index)),
            file_bytes: self.log_bytes,
            // Engines recycle their logs.
            is_preallocated: true,
        }
    }

    /// Returns the number of ring slots: enough for the queue depth of the pages and for the log
    /// records of a group.
    fn slot_count(&self) -> u64 {
        self.load_options.queue_depth.max(self.client_count)
    }

    fn request_bytes_max(&self) -> u64 {
        self.page_bytes.max(self.log_record_bytes)
    }

    fn commit_group_bytes(&self) -> u64 {
        self.client_count
            * ((self.pages_read_per_transaction + self.pages_written_per_transaction)
                * self.page_bytes
                + self.log_record_bytes)
    }
}

impl AccessPattern for Database {
    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        let mut fields = vec![
            new_field(
                "page_bytes",
                "page size in bytes",
                ParameterValue::ByteCount(&mut self.page_bytes, 512, MIB),
            ),
            new_field(
                "clients",
                "clients whose transactions share one log sync (group commit)",
                ParameterValue::Count(&mut self.client_count, 1, 4096),
            ),
            new_field(
                "reads",
                "pages that a transaction reads from storage",
                ParameterValue::Count(&mut self.pages_read_per_transaction, 0, 4096),
            ),
            new_field(
                "writes",
                "pages that a transaction changes, which are written back after its commit",
                ParameterValue::Count(&mut self.pages_written_per_transaction, 0, 4096),
            ),
            new_field(
                "distribution",
                "distribution of accesses over the pages",
                ParameterValue::Distribution(&mut self.distribution),
            ),
            new_field(
                "log_record_bytes",
                "log bytes per transaction",
                ParameterValue::ByteCount(&mut self.log_record_bytes, 512, MIB),
            ),
            new_field(
                "log_bytes",
                "log size in bytes; a full log is overwritten from its start",
                ParameterValue::ByteCount(&mut self.log_bytes, MIB, 1 << 40),
            ),
            new_field(
                "sync_call",
                "system call that makes the log durable",
                ParameterValue::NamedChoice(&mut self.sync_call),
            ),
            new_field(
                "checkpoint_every",
                "groups per sync of the data file (checkpoint); 0: no checkpoints",
                ParameterValue::Count(&mut self.commits_per_checkpoint, 0, u64::MAX),
            ),
        ];
        fields.extend(self.load_options.fields());
        for field in fields.iter_mut().filter(|field| field.name == "rate_iops") {
            field.description = COMMIT_RATE_MEANING;
        }
        fields
    }

    fn program_properties(&self) -> ProgramProperties {
        ProgramProperties {
            supported_media: &[Medium::Directory],
            offered_bytes_per_s: self
                .load_options
                .offered_bytes_per_s(self.commit_group_bytes()),
            ..self
                .load_options
                .program_properties(self.request_bytes_max(), true)
        }
    }

    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        greatest_common_divisor(self.page_bytes, self.log_record_bytes)
    }

    fn validation_error(&self) -> Option<String> {
        let shares_pages =
            self.load_options.verify_writes == YesNo::Yes && self.load_options.workers > 1;
        let unfit = shares_pages.then(|| {
            "workers that overwrite each other's pages cannot verify them; give program.workers=1"
                .to_owned()
        });
        unfit.or_else(|| self.load_options.validation_error(self.request_bytes_max()))
    }

    fn file_bytes(&self, _size_bytes: u64) -> u64 {
        self.load_options.area_bytes + self.log_bytes * self.load_options.workers
    }

    fn input_files(&self, worker: &Worker) -> Vec<InputFile> {
        let log = self.log_file(worker);
        vec![
            InputFile::new_read(
                worker.file_path(LOAD_FILE_NAME),
                self.load_options.area_bytes,
            ),
            InputFile {
                path: log.file_path,
                length_bytes: log.file_bytes,
                is_read_through: false,
            },
        ]
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.read_bytes + measure.written_bytes
    }

    fn prepare_target<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
        Box::pin(async move {
            self.log_file(worker).prepare((system, worker)).await?;
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
            let bytes = self.load_options.area_bytes;
            let (file, _) = self
                .load_options
                .open_file((system, worker), OpenOptions::READ_WRITE, bytes)
                .await?;
            let log = self.log_file(worker);
            let how = match self.load_options.verify_writes {
                YesNo::Yes => OpenOptions::READ_WRITE,
                YesNo::No => OpenOptions::WRITE,
            };
            let log_file = system
                .open(&log.file_path, how.with_direct(worker.direct_io))
                .await?;
            let ring = LoadOptions {
                queue_depth: self.slot_count(),
                ..self.load_options.clone()
            };
            let files = [file, log_file];
            ring.open_ring((system, worker), &files, self.request_bytes_max())
                .await?;
            let files = vec![
                (file, worker.file_path(LOAD_FILE_NAME)),
                (log_file, log.file_path),
            ];
            let mut ring = IoRing::new(system, Slots::new(self.slot_count()), files);
            ring.verifier = self.load_options.new_verifier(ring.target_system, worker);
            let mut log = AppendLog::new((log_file, 1), log.file_bytes, self.sync_call);
            let mut pages = PageRequests::new(self, file, worker);
            let mut pace = IssuePace::new(&self.load_options, worker, ring.target_system.now());
            ring.target_system.report_commits_in_series();
            let mut groups = 0;
            while let Some(start) = wait_for_next_commit(&mut pace, &mut ring).await? {
                pages.prepare_next_group();
                pace.count_issued(self.commit_group_bytes());
                ring.issue_all(0, &pages.pending_requests).await?;
                for _ in 0..self.client_count {
                    log.append_record(self.log_record_bytes as u32);
                }
                log.commit_records(&mut ring, worker, start).await?;
                groups += 1;
                if self.commits_per_checkpoint > 0 && groups % self.commits_per_checkpoint == 0 {
                    ring.issue_all(0, &[pages.new_checkpoint()]).await?;
                }
            }
            ring.read_back(worker).await
        })
    }
}

/// Source of the pages that transactions read and change.
struct PageRequests<'a> {
    database: &'a Database,
    file: File,
    page_draws: BlockDraws,
    random: RandomDraws,
    /// Requests before the next commit: writes of the pages that the last group changed, and reads
    /// of the pages that the next group needs.
    pending_requests: Vec<Submission>,
    changed_pages: Vec<u64>,
}

impl<'a> PageRequests<'a> {
    fn new(database: &'a Database, file: File, worker: &Worker) -> Self {
        let blocks = database.load_options.area_bytes / database.page_bytes;
        Self {
            database,
            file,
            page_draws: BlockDraws::new(&database.distribution, blocks),
            random: RandomDraws::new(worker.random_seed, PAGE_STREAM),
            pending_requests: Vec::new(),
            changed_pages: Vec::new(),
        }
    }

    fn new_request(&self, operation: IoOperation, page: u64) -> Submission {
        Submission {
            operation,
            file: self.file,
            offset_bytes: page * self.database.page_bytes,
            bytes: self.database.page_bytes as u32,
            slot: 0,
            intended_start: None,
        }
    }

    fn prepare_next_group(&mut self) {
        self.pending_requests.clear();
        for number in 0..self.changed_pages.len() {
            let request = self.new_request(IoOperation::Write, self.changed_pages[number]);
            self.pending_requests.push(request);
        }
        self.changed_pages.clear();
        let Database {
            client_count: clients,
            pages_read_per_transaction: reads,
            pages_written_per_transaction: writes,
            ..
        } = self.database;
        for _ in 0..clients * reads {
            let page = self.page_draws.draw_block(&mut self.random);
            let request = self.new_request(IoOperation::Read, page);
            self.pending_requests.push(request);
        }
        for _ in 0..clients * writes {
            self.changed_pages
                .push(self.page_draws.draw_block(&mut self.random));
        }
    }

    fn new_checkpoint(&self) -> Submission {
        Submission {
            bytes: 0,
            ..self.new_request(IoOperation::Fdatasync, 0)
        }
    }
}
