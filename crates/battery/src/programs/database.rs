//! Program `database`: the I/O of a transaction engine. Clients read pages. One sync of the log
//! commits the transactions of a group of clients. The pages that they changed are written back
//! while the next group reads. Periodic checkpoints make the data file durable.

use crate::load::distribution::{BlockDraws, Distribution};
use crate::load::pace::IssuePace;
use crate::load::{AREA, COMMIT_RATE, Load, SyncCall, YesNo, new_field};
use crate::parameter::{ParameterField, ParameterValue};
use crate::pattern::{Pattern, PhaseFuture, ProgramEntry, ProgramProperties, RunContext};
use crate::program::{Input, gcd};
use crate::random::RandomDraws;
use crate::ring::IoRing;
use crate::ring::slots::Slots;
use crate::worker::{Medium, Worker};
use crate::workload::log::{AppendLog, LogFile, wait_for_next_commit};
use diskperf_system::{Buffer, File, Open, Operation, Submission, System};
use diskperf_timeline::WorkerMeasure;
use diskperf_timeline::units::MIB;

const PAGE_STREAM: u128 = 7;

pub(crate) const PROGRAMS: &[ProgramEntry] = &[ProgramEntry {
    name: "database",
    summary: "database transactions: random page reads and writes, and a log with group commit",
    files_name: AREA,
    new_pattern: || Box::new(Database::default()),
}];

#[derive(Clone, Debug)]
struct Database {
    load: Load,
    page_bytes: u64,
    clients: u64,
    pages_read: u64,
    pages_written: u64,
    distribution: Distribution,
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
            load: Load {
                queue_depth: 16,
                ..Load::default()
            },
            page_bytes: 8192,
            clients: 8,
            pages_read: 4,
            pages_written: 2,
            distribution: Distribution::Zipf { theta: 0.8 },
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
            file_path: worker.file_path(&format!("wal{}", worker.index)),
            bytes: self.log_bytes,
            // Engines recycle their logs.
            preallocated: true,
        }
    }

    /// Returns the number of ring slots: enough for the queue depth of the pages and for the log
    /// records of a group.
    fn slot_count(&self) -> u64 {
        self.load.queue_depth.max(self.clients)
    }

    fn request_bytes_max(&self) -> u64 {
        self.page_bytes.max(self.log_record_bytes)
    }

    fn group_bytes(&self) -> u64 {
        self.clients
            * ((self.pages_read + self.pages_written) * self.page_bytes + self.log_record_bytes)
    }
}

impl Pattern for Database {
    fn fields(&mut self) -> Vec<ParameterField<'_>> {
        let mut fields = vec![
            new_field(
                "page_bytes",
                "page size in bytes",
                ParameterValue::Bytes(&mut self.page_bytes, 512, MIB),
            ),
            new_field(
                "clients",
                "clients whose transactions share one log sync (group commit)",
                ParameterValue::Count(&mut self.clients, 1, 4096),
            ),
            new_field(
                "reads",
                "pages that a transaction reads from storage",
                ParameterValue::Count(&mut self.pages_read, 0, 4096),
            ),
            new_field(
                "writes",
                "pages that a transaction changes, which are written back after its commit",
                ParameterValue::Count(&mut self.pages_written, 0, 4096),
            ),
            new_field(
                "distribution",
                "distribution of accesses over the pages",
                ParameterValue::Distribution(&mut self.distribution),
            ),
            new_field(
                "log_record_bytes",
                "log bytes per transaction",
                ParameterValue::Bytes(&mut self.log_record_bytes, 512, MIB),
            ),
            new_field(
                "log_bytes",
                "log size in bytes; a full log is overwritten from its start",
                ParameterValue::Bytes(&mut self.log_bytes, MIB, 1 << 40),
            ),
            new_field(
                "sync_call",
                "system call that makes the log durable",
                ParameterValue::Choice(&mut self.sync_call),
            ),
            new_field(
                "checkpoint_every",
                "groups per sync of the data file (checkpoint); 0: no checkpoints",
                ParameterValue::Count(&mut self.commits_per_checkpoint, 0, u64::MAX),
            ),
        ];
        fields.extend(self.load.fields());
        for field in fields.iter_mut().filter(|field| field.name == "rate_iops") {
            field.meaning = COMMIT_RATE;
        }
        fields
    }

    fn properties(&self) -> ProgramProperties {
        ProgramProperties {
            media: &[Medium::Directory],
            offered_bytes_per_s: self.load.offered_bytes_per_s(self.group_bytes()),
            ..self.load.properties(self.request_bytes_max(), true)
        }
    }

    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        gcd(self.page_bytes, self.log_record_bytes)
    }

    fn validation_error(&self) -> Option<String> {
        let shares_pages = self.load.verify == YesNo::Yes && self.load.workers > 1;
        let unfit = shares_pages.then(|| {
            "workers that overwrite each other's pages cannot verify them; give program.workers=1"
                .to_owned()
        });
        unfit.or_else(|| self.load.validation_error(self.request_bytes_max()))
    }

    fn file_bytes(&self, _size_bytes: u64) -> u64 {
        self.load.area_bytes + self.log_bytes * self.load.workers
    }

    fn inputs(&self, worker: &Worker) -> Vec<Input> {
        let log = self.log_file(worker);
        vec![
            Input::read(worker.file_path(AREA), self.load.area_bytes),
            Input {
                path: log.file_path,
                length_bytes: log.bytes,
                read: false,
            },
        ]
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.read_bytes + measure.written_bytes
    }

    fn prepare<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
        Box::pin(async move {
            self.log_file(worker).prepare((system, worker)).await?;
            let bytes = self.load.area_bytes;
            self.load.prepare((system, worker), bytes).await
        })
    }

    fn run<'a>(
        &'a self,
        (system, worker): RunContext<'a>,
        _buffer: &'a mut Buffer,
    ) -> PhaseFuture<'a> {
        Box::pin(async move {
            let bytes = self.load.area_bytes;
            let (file, _) = self
                .load
                .open_file((system, worker), Open::READ_WRITE, bytes)
                .await?;
            let log = self.log_file(worker);
            let how = match self.load.verify {
                YesNo::Yes => Open::READ_WRITE,
                YesNo::No => Open::WRITE,
            };
            let log_file = system
                .open(&log.file_path, how.direct(worker.direct))
                .await?;
            let ring = Load {
                queue_depth: self.slot_count(),
                ..self.load.clone()
            };
            let files = [file, log_file];
            ring.open_ring((system, worker), &files, self.request_bytes_max())
                .await?;
            let files = vec![(file, worker.file_path(AREA)), (log_file, log.file_path)];
            let mut ring = IoRing::new(system, Slots::new(self.slot_count()), files);
            ring.verifier = self.load.new_verifier(ring.system, worker);
            let mut log = AppendLog::new((log_file, 1), log.bytes, self.sync_call);
            let mut pages = PageRequests::new(self, file, worker);
            let mut pace = IssuePace::new(&self.load, worker, ring.system.now());
            ring.system.judge_by_commits();
            let mut groups = 0;
            while let Some(start) = wait_for_next_commit(&mut pace, &mut ring).await? {
                pages.prepare_next_group();
                pace.count_issued(self.group_bytes());
                ring.issue_all(0, &pages.pending_requests).await?;
                for _ in 0..self.clients {
                    log.append_record(self.log_record_bytes as u32);
                }
                log.commit(&mut ring, worker, start).await?;
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
        let blocks = database.load.area_bytes / database.page_bytes;
        Self {
            database,
            file,
            page_draws: BlockDraws::new(&database.distribution, blocks),
            random: RandomDraws::new(worker.seed, PAGE_STREAM),
            pending_requests: Vec::new(),
            changed_pages: Vec::new(),
        }
    }

    fn new_request(&self, operation: Operation, page: u64) -> Submission {
        Submission {
            operation,
            file: self.file,
            offset_bytes: page * self.database.page_bytes,
            bytes: self.database.page_bytes as u32,
            slot: 0,
            intended: None,
        }
    }

    fn prepare_next_group(&mut self) {
        self.pending_requests.clear();
        for number in 0..self.changed_pages.len() {
            let request = self.new_request(Operation::Write, self.changed_pages[number]);
            self.pending_requests.push(request);
        }
        self.changed_pages.clear();
        let Database {
            clients,
            pages_read: reads,
            pages_written: writes,
            ..
        } = self.database;
        for _ in 0..clients * reads {
            let page = self.page_draws.draw_block(&mut self.random);
            let request = self.new_request(Operation::Read, page);
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
            ..self.new_request(Operation::Fdatasync, 0)
        }
    }
}
