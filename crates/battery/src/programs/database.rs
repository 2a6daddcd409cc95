//! Program `database`: the I/O of a transaction engine. Clients read pages. One sync of the log
//! commits the transactions of a group of clients. The pages that they changed are written back
//! while the next group reads. Periodic checkpoints make the data file durable.

use crate::load::distribution::{Blocks, Distribution};
use crate::load::pace::Pace;
use crate::load::{AREA, COMMIT_RATE, Load, SyncCall, YesNo, field};
use crate::parameter::{Field, Value};
use crate::pattern::{Entry, Facts, Pattern, Place, Steps};
use crate::program::{Input, gcd};
use crate::random::Draws;
use crate::ring::Ring;
use crate::ring::slots::Slots;
use crate::worker::{Medium, Worker};
use crate::workload::log::{Log, LogFile, next_commit};
use diskperf_system::{Buffer, File, Open, Operation, Submission, System};
use diskperf_timeline::WorkerMeasure;
use diskperf_timeline::units::MIB;

const PAGE_STREAM: u128 = 7;

pub(crate) const PROGRAMS: &[Entry] = &[Entry {
    name: "database",
    does: "transactions: pages read and written back at random beside a log, with group commit",
    files: AREA,
    pattern: || Box::new(Database::default()),
}];

#[derive(Clone, Debug)]
struct Database {
    load: Load,
    page_bytes: u64,
    clients: u64,
    reads: u64,
    writes: u64,
    distribution: Distribution,
    log_record_bytes: u64,
    log_bytes: u64,
    sync_call: SyncCall,
    checkpoint_every: u64,
}

impl Default for Database {
    /// Returns the default engine: pages of PostgreSQL, and eight clients, each of which reads four
    /// pages that are not in memory and changes two.
    fn default() -> Self {
        Self {
            load: Load {
                depth: 16,
                ..Load::default()
            },
            page_bytes: 8192,
            clients: 8,
            reads: 4,
            writes: 2,
            distribution: Distribution::Zipf { theta: 0.8 },
            log_record_bytes: 4096,
            log_bytes: 64 * MIB,
            sync_call: SyncCall::Fdatasync,
            checkpoint_every: 1000,
        }
    }
}

impl Database {
    fn log_file(&self, worker: &Worker) -> LogFile {
        LogFile {
            path: worker.file(&format!("wal{}", worker.index)),
            bytes: self.log_bytes,
            // Engines recycle their logs.
            preallocated: true,
        }
    }

    /// Returns the number of ring slots: enough for the queue depth of the pages and for the log
    /// records of a group.
    fn slots(&self) -> u64 {
        self.load.depth.max(self.clients)
    }

    fn largest_bytes(&self) -> u64 {
        self.page_bytes.max(self.log_record_bytes)
    }

    fn group_bytes(&self) -> u64 {
        self.clients * ((self.reads + self.writes) * self.page_bytes + self.log_record_bytes)
    }
}

impl Pattern for Database {
    fn fields(&mut self) -> Vec<Field<'_>> {
        let mut fields = vec![
            field(
                "page_bytes",
                "bytes of a page",
                Value::Bytes(&mut self.page_bytes, 512, MIB),
            ),
            field(
                "clients",
                "clients whose transactions one sync makes durable",
                Value::Count(&mut self.clients, 1, 4096),
            ),
            field(
                "reads",
                "pages that a transaction reads, which are not in memory",
                Value::Count(&mut self.reads, 0, 4096),
            ),
            field(
                "writes",
                "pages that a transaction changes, written back after its commit",
                Value::Count(&mut self.writes, 0, 4096),
            ),
            field(
                "distribution",
                "how often each page is asked for",
                Value::Distribution(&mut self.distribution),
            ),
            field(
                "log_record_bytes",
                "bytes that a transaction writes to the log",
                Value::Bytes(&mut self.log_record_bytes, 512, MIB),
            ),
            field(
                "log_bytes",
                "bytes of the log, which is written over again and again",
                Value::Bytes(&mut self.log_bytes, MIB, 1 << 40),
            ),
            field(
                "sync_call",
                "the call that makes the log durable",
                Value::Choice(&mut self.sync_call),
            ),
            field(
                "checkpoint_every",
                "groups between two syncs of the data file; 0: none",
                Value::Count(&mut self.checkpoint_every, 0, u64::MAX),
            ),
        ];
        fields.extend(self.load.fields());
        for field in fields.iter_mut().filter(|field| field.name == "rate_iops") {
            field.meaning = COMMIT_RATE;
        }
        fields
    }

    fn facts(&self) -> Facts {
        Facts {
            media: &[Medium::Directory],
            offered_bytes_per_s: self.load.offered_bytes_per_s(self.group_bytes()),
            ..self.load.facts(self.largest_bytes(), true)
        }
    }

    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        gcd(self.page_bytes, self.log_record_bytes)
    }

    fn unfit(&self) -> Option<String> {
        let shares_pages = self.load.verify == YesNo::Yes && self.load.workers > 1;
        let unfit = shares_pages.then(|| {
            "workers that write over each other's pages cannot verify them; give program.workers=1"
                .to_owned()
        });
        unfit.or_else(|| self.load.unfit(self.largest_bytes()))
    }

    fn file_bytes(&self, _size_bytes: u64) -> u64 {
        self.load.area_bytes + self.log_bytes * self.load.workers
    }

    fn inputs(&self, worker: &Worker) -> Vec<Input> {
        let log = self.log_file(worker);
        vec![
            Input::read(worker.file(AREA), self.load.area_bytes),
            Input {
                path: log.path,
                length_bytes: log.bytes,
                read: false,
            },
        ]
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.read_bytes + measure.written_bytes
    }

    fn prepare<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> Steps<'a> {
        Box::pin(async move {
            self.log_file(worker).prepare((system, worker)).await?;
            let bytes = self.load.area_bytes;
            self.load.prepare((system, worker), bytes).await
        })
    }

    fn run<'a>(&'a self, (system, worker): Place<'a>, _buffer: &'a mut Buffer) -> Steps<'a> {
        Box::pin(async move {
            let bytes = self.load.area_bytes;
            let (file, _) = self
                .load
                .open((system, worker), Open::READ_WRITE, bytes)
                .await?;
            let log = self.log_file(worker);
            let how = match self.load.verify {
                YesNo::Yes => Open::READ_WRITE,
                YesNo::No => Open::WRITE,
            };
            let log_file = system.open(&log.path, how.direct(worker.direct)).await?;
            let ring = Load {
                depth: self.slots(),
                ..self.load.clone()
            };
            let files = [file, log_file];
            ring.open_ring((system, worker), &files, self.largest_bytes())
                .await?;
            let files = vec![(file, worker.file(AREA)), (log_file, log.path)];
            let mut ring = Ring::new(system, Slots::new(self.slots()), files);
            ring.verifier = self.load.verifier(ring.system, worker);
            let mut log = Log::new((log_file, 1), log.bytes, self.sync_call);
            let mut pages = Pages::new(self, file, worker);
            let mut pace = Pace::new(&self.load, worker, ring.system.now());
            ring.system.judge_by_commits();
            let mut groups = 0;
            while let Some(start) = next_commit(&mut pace, &mut ring).await? {
                pages.next_group();
                pace.issued(self.group_bytes());
                ring.issue_all(0, &pages.requests).await?;
                for _ in 0..self.clients {
                    log.append(self.log_record_bytes as u32);
                }
                log.commit(&mut ring, worker, start).await?;
                groups += 1;
                if self.checkpoint_every > 0 && groups % self.checkpoint_every == 0 {
                    ring.issue_all(0, &[pages.checkpoint()]).await?;
                }
            }
            ring.read_back(worker).await
        })
    }
}

/// Source of the pages that transactions read and change.
struct Pages<'a> {
    database: &'a Database,
    file: File,
    blocks: Blocks,
    random: Draws,
    /// Requests before the next commit: writes of the pages that the last group changed, and reads
    /// of the pages that the next group needs.
    requests: Vec<Submission>,
    changed: Vec<u64>,
}

impl<'a> Pages<'a> {
    fn new(database: &'a Database, file: File, worker: &Worker) -> Self {
        let blocks = database.load.area_bytes / database.page_bytes;
        Self {
            database,
            file,
            blocks: Blocks::new(&database.distribution, blocks),
            random: Draws::new(worker.seed, PAGE_STREAM),
            requests: Vec::new(),
            changed: Vec::new(),
        }
    }

    fn request(&self, operation: Operation, page: u64) -> Submission {
        Submission {
            operation,
            file: self.file,
            offset_bytes: page * self.database.page_bytes,
            bytes: self.database.page_bytes as u32,
            slot: 0,
            intended: None,
        }
    }

    fn next_group(&mut self) {
        self.requests.clear();
        for number in 0..self.changed.len() {
            let request = self.request(Operation::Write, self.changed[number]);
            self.requests.push(request);
        }
        self.changed.clear();
        let Database {
            clients,
            reads,
            writes,
            ..
        } = self.database;
        for _ in 0..clients * reads {
            let page = self.blocks.draw(&mut self.random);
            let request = self.request(Operation::Read, page);
            self.requests.push(request);
        }
        for _ in 0..clients * writes {
            self.changed.push(self.blocks.draw(&mut self.random));
        }
    }

    fn checkpoint(&self) -> Submission {
        Submission {
            bytes: 0,
            ..self.request(Operation::Fdatasync, 0)
        }
    }
}
