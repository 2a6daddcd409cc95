//! Program `log_append`: a write-ahead log. Records are appended, and a sync makes them durable
//! before the transaction is reported as committed. The latency of such a commit is the time for
//! which a database client waits.

use crate::load::pace::Pace;
use crate::load::{COMMIT_RATE, Load, SyncCall, YesNo, field};
use crate::parameter::{Field, SizeMix, Value};
use crate::pattern::{Entry, Facts, Pattern, Place, Steps};
use crate::program::{Input, gcd};
use crate::random::Draws;
use crate::ring::Ring;
use crate::ring::slots::Slots;
use crate::worker::{Medium, Worker};
use crate::workload::log::{Log, LogFile, next_commit};
use diskperf_system::{Buffer, Open, System};
use diskperf_timeline::WorkerMeasure;
use diskperf_timeline::units::MIB;

const LOG: &str = "log";

const RECORD_STREAM: u128 = 6;

pub(crate) const PROGRAMS: &[Entry] = &[Entry {
    name: "log_append",
    does: "a write-ahead log: records appended and made durable, commit by commit",
    files: LOG,
    pattern: || Box::new(LogAppend::default()),
}];

#[derive(Clone, Debug)]
struct LogAppend {
    load: Load,
    record_bytes: SizeMix,
    group: u64,
    sync_call: SyncCall,
    preallocated: YesNo,
}

impl Default for LogAppend {
    fn default() -> Self {
        Self {
            load: Load {
                area_bytes: 64 * MIB,
                ..Load::default()
            },
            record_bytes: SizeMix::new(&[(4096, 1)]),
            group: 1,
            sync_call: SyncCall::Fdatasync,
            preallocated: YesNo::No,
        }
    }
}

impl LogAppend {
    fn file(&self, worker: &Worker) -> String {
        worker.file(&format!("{LOG}{}", worker.index))
    }
}

impl Pattern for LogAppend {
    fn fields(&mut self) -> Vec<Field<'_>> {
        let mut fields = vec![
            field(
                "record_bytes",
                "bytes of a record, or a distribution of sizes, each with its weight",
                Value::Mix(&mut self.record_bytes),
            ),
            field(
                "group",
                "records that one sync makes durable (group commit)",
                Value::Count(&mut self.group, 1, 4096),
            ),
            field(
                "sync_call",
                "the call that makes them durable",
                Value::Choice(&mut self.sync_call),
            ),
            field(
                "preallocated",
                "write over a log of area_bytes that is there, as a recycled log does, instead of growing one",
                Value::Choice(&mut self.preallocated),
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

    fn facts(&self) -> Facts {
        let largest = self.record_bytes.largest();
        Facts {
            media: &[Medium::Directory],
            is_log: true,
            offered_bytes_per_s: self.load.offered_bytes_per_s(largest * self.group),
            ..self.load.facts(largest, true)
        }
    }

    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        self.record_bytes.sizes().fold(0, gcd)
    }

    fn unfit(&self) -> Option<String> {
        self.load.unfit(self.record_bytes.largest() * self.group)
    }

    fn file_bytes(&self, _size_bytes: u64) -> u64 {
        self.load.area_bytes * self.load.workers
    }

    fn prepared_bytes(&self, size_bytes: u64) -> u64 {
        match self.preallocated {
            YesNo::Yes => self.file_bytes(size_bytes),
            YesNo::No => 0,
        }
    }

    fn inputs(&self, worker: &Worker) -> Vec<Input> {
        match self.preallocated {
            YesNo::No => Vec::new(),
            YesNo::Yes => vec![Input {
                path: self.file(worker),
                length_bytes: self.load.area_bytes,
                read: false,
            }],
        }
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.written_bytes
    }

    fn prepare<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> Steps<'a> {
        Box::pin(async move {
            let log = LogFile {
                path: self.file(worker),
                bytes: self.load.area_bytes,
                preallocated: self.preallocated == YesNo::Yes,
            };
            log.prepare((system, worker)).await
        })
    }

    fn run<'a>(&'a self, (system, worker): Place<'a>, _buffer: &'a mut Buffer) -> Steps<'a> {
        Box::pin(async move {
            let how = match (self.preallocated, self.load.verify) {
                (YesNo::No, YesNo::No) => Open::CREATE,
                (YesNo::No, YesNo::Yes) => Open::READ_WRITE.create(),
                (YesNo::Yes, YesNo::No) => Open::WRITE,
                (YesNo::Yes, YesNo::Yes) => Open::READ_WRITE,
            };
            let path = self.file(worker);
            let file = system.open(&path, how.direct(worker.direct)).await?;
            let ring = Load {
                depth: self.group,
                ..self.load.clone()
            };
            let largest = self.record_bytes.largest();
            ring.open_ring((system, worker), &[file], largest).await?;
            let mut ring = Ring::new(system, Slots::new(self.group), vec![(file, path)]);
            ring.verifier = self.load.verifier(ring.system, worker);
            let mut log = Log::new((file, 0), self.load.area_bytes, self.sync_call);
            let mut random = Draws::new(worker.seed, RECORD_STREAM);
            let weight = self.record_bytes.total_weight();
            let mut pace = Pace::new(&self.load, worker, ring.system.now());
            ring.system.judge_by_commits();
            while let Some(start) = next_commit(&mut pace, &mut ring).await? {
                let mut group_bytes = 0;
                for _ in 0..self.group {
                    let bytes = self.record_bytes.at(random.below(weight));
                    log.append(bytes as u32);
                    group_bytes += bytes;
                }
                pace.issued(group_bytes);
                log.commit(&mut ring, worker, start).await?;
            }
            ring.read_back(worker).await
        })
    }
}
