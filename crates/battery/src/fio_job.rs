//! A section of fio's job file as a program: what fio does for it, on either world. Its
//! workers are the section's clones.

mod bell;
mod course;
mod map;
mod pace;
mod places;
mod service;
mod sizes;
mod stream;
mod support;

use crate::blocks::{ensure_file, remove_file};
use crate::parameter::Field;
use crate::pattern::{Facts, Pattern, Place, Steps};
use crate::program::{Input, Program, ProgramError, gcd};
use crate::worker::{Medium, Worker};
use course::Course;
use diskperf_fio::job::{Engine, Sizes, SubmitMode, SyncFlag};
use diskperf_fio::plan::{self, PlannedFile};
use diskperf_fio::{Direction, Errors, Job};
use diskperf_system::{Buffer, EngineChoice, Errno, File, Open, RingOptions, System};
use diskperf_timeline::{CacheMode, Nanoseconds, WorkerMeasure};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stream::Stream;

/// The name of these programs.
pub(crate) const NAME: &str = "fio_job";

/// The interval of the course over time.
const INTERVAL: Nanoseconds = Nanoseconds::from_millis(1000);

#[derive(Clone, Debug)]
struct FioJob {
    job: Arc<Job>,
    /// Of each clone.
    files: Arc<[Vec<PlannedFile>]>,
}

/// Programs of job files.
impl Program {
    /// What fio does for one section of a job file. `existing` are the bytes of the files
    /// that are there, by the paths that the job gives them: those of a device or of a
    /// user's file that stands for them, none of files that are made.
    ///
    /// # Errors
    ///
    /// For each option that changes what is done and cannot be obeyed, with its place.
    pub fn of_fio_job(job: &Job, existing: &BTreeMap<String, u64>) -> Result<Self, Errors> {
        support::check(job)?;
        let clones = 0..job.order.clones;
        let files = clones.map(|clone| plan::files(job, clone, existing));
        let files: Vec<_> = files.collect::<Result<_, _>>()?;
        let pattern = FioJob {
            job: Arc::new(job.clone()),
            files: files.into(),
        };
        Ok(Self::of_pattern((NAME, NAME), Box::new(pattern)))
    }
}

/// I/Os under way at once, of each clone.
fn depth(job: &Job) -> u32 {
    match job.engine.engine {
        // It submits one at a time, and waits for it.
        Engine::Libaio if !job.engine.direct => 1,
        _ => job.engine.depth_reached().max(1),
    }
}

/// Whether its files are written before it starts, as fio lays them out: those that are
/// read, or written over.
fn lays_out(job: &Job) -> bool {
    job.pattern.access.does(Direction::Read) || job.files.overwrite
}

fn writes(job: &Job) -> bool {
    let access = job.pattern.access;
    access.does(Direction::Write) || access.does(Direction::Trim)
}

impl FioJob {
    /// The name of a file in the directory that the program works in: of a path, all that
    /// tells it from others.
    fn path(&self, worker: &Worker, file: &PlannedFile) -> String {
        let name = file.path.trim_start_matches("./").replace('/', "_");
        worker.file(&name)
    }

    fn of(&self, worker: &Worker) -> &[PlannedFile] {
        &self.files[worker.index as usize]
    }

    /// The files of all clones by path, each as long as the one that needs most of it.
    fn all_files(&self) -> BTreeMap<&str, u64> {
        let mut all = BTreeMap::new();
        for file in self.files.iter().flatten() {
            let bytes: &mut u64 = all.entry(&*file.path).or_default();
            *bytes = (*bytes).max(file.region.file_bytes);
        }
        all
    }

    /// Bytes that a clone moves, where no time ends it before.
    fn amount_bytes(&self) -> u64 {
        let block = self.job.largest_block_bytes();
        let of_clone = |files: &Vec<PlannedFile>| match plan::ios(&self.job, files) {
            Some(ios) => ios.total().saturating_mul(block),
            None => files.iter().map(|file| file.region.length_bytes).sum(),
        };
        let most = self.files.iter().map(of_clone).max();
        most.unwrap_or(0).max(block)
    }

    fn ring_options(&self, worker: &Worker) -> RingOptions {
        let (engine, data) = (&self.job.engine, &self.job.data);
        let choice = match engine.engine {
            Engine::IoUring if engine.kernel_polls => EngineChoice::SqPoll,
            Engine::IoUring | Engine::Null => EngineChoice::Best,
            Engine::Libaio if engine.direct && engine.submit == SubmitMode::Inline => {
                EngineChoice::Best
            }
            Engine::Libaio
            | Engine::Posixaio
            | Engine::Sync
            | Engine::Psync
            | Engine::Vsync
            | Engine::Pvsync
            | Engine::Pvsync2
            | Engine::Mmap => EngineChoice::Threads,
        };
        RingOptions {
            depth: depth(&self.job),
            buffer_bytes: self.job.largest_block_bytes().next_multiple_of(512) as u32,
            seed: worker.seed,
            compressible_percent: match data.zeroes {
                true => 100,
                false => data.compressible_percent,
            },
            engine: choice,
            poll: engine.polled,
            interval: INTERVAL,
        }
    }

    /// Makes a file as fio would: with data in it where it is read or written over, else
    /// as long as it is to be.
    async fn make(
        &self,
        (system, worker): (&mut System, &Worker),
        (path, bytes): (&str, u64),
    ) -> Result<(), ProgramError> {
        if lays_out(&self.job) {
            return ensure_file(system, worker, path, bytes).await;
        }
        if worker.medium != Medium::Directory {
            return Ok(());
        }
        remove_file(system, worker.medium, path).await?;
        let file = system.open(path, Open::CREATE).await?;
        match system.ftruncate(file, bytes).await {
            Ok(()) => {}
            // A kernel without the call: the file grows as it is written.
            Err(error) if error.errno() == Some(Errno::Invalid) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(system.close(file).await?)
    }

    async fn open(
        &self,
        (system, worker): (&mut System, &Worker),
    ) -> Result<Vec<(File, String)>, ProgramError> {
        let access = self.job.pattern.access;
        let how = match (access.does(Direction::Read), writes(&self.job)) {
            (true, true) => Open::READ_WRITE,
            (false, true) => Open::WRITE,
            (_, false) => Open::READ,
        };
        let how = how.dsync(self.job.sync.flag == SyncFlag::Dsync);
        let mut files = Vec::new();
        for file in self.of(worker) {
            let path = self.path(worker, file);
            let open = system.open(&path, how.direct(worker.direct)).await?;
            files.push((open, path));
        }
        Ok(files)
    }
}

impl Pattern for FioJob {
    fn fields(&mut self) -> Vec<Field<'_>> {
        Vec::new()
    }

    fn fio_job(&self) -> Option<&Job> {
        Some(&self.job)
    }

    fn notes(&self) -> Vec<String> {
        support::notes(&self.job)
    }

    fn facts(&self) -> Facts {
        let job = &self.job;
        let block_bytes = job.largest_block_bytes();
        let one_file = self.all_files().len() == 1;
        let cache = match (job.engine.direct, job.files.pre_read, job.files.invalidate) {
            (true, ..) => Some(CacheMode::Direct),
            (false, true, _) => Some(CacheMode::Warm),
            (false, false, true) => Some(CacheMode::Cold),
            (false, false, false) => None,
        };
        let lasts_us = job.times.ramp_us + job.times.runtime_us;
        Facts {
            takes_any_size: true,
            writes: writes(job),
            workers: job.order.clones,
            cache,
            lasts: job.times.time_based.then(|| Nanoseconds(lasts_us * 1000)),
            media: match one_file {
                true => &[Medium::Directory, Medium::Device, Medium::File],
                false => &[Medium::Directory],
            },
            sizes_bytes: (self.amount_bytes(), self.amount_bytes()),
            buffer_calls: 1,
            ..Facts::reading(block_bytes)
        }
    }

    fn usual_bytes(&self) -> Option<u64> {
        Some(self.amount_bytes())
    }

    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        let job = &self.job;
        let files = self.files.iter().flatten();
        let starts = files.map(|file| file.region.offset_bytes);
        let of = |direction: &Direction| {
            let align_bytes = *job.blocks.align.get(*direction);
            match job.blocks.sizes(*direction) {
                Sizes::Fixed(bytes) => gcd(bytes, align_bytes),
                Sizes::Range { smallest, largest } => gcd(gcd(smallest, largest), align_bytes),
                Sizes::Split(parts) => parts.iter().map(|part| part.bytes).fold(align_bytes, gcd),
            }
        };
        let skip_bytes = job.pattern.skip_bytes.unsigned_abs();
        let zones = [job.zones.range_bytes, job.zones.skip_bytes, skip_bytes];
        let sizes = job.pattern.access.directions().iter().map(of);
        let unit_bytes = starts.chain(sizes).chain(zones).fold(0, gcd);
        match job.blocks.unaligned {
            true => 1,
            false => unit_bytes,
        }
    }

    fn file_bytes(&self, _size_bytes: u64) -> u64 {
        self.all_files().values().sum()
    }

    fn prepared_bytes(&self, size_bytes: u64) -> u64 {
        match lays_out(&self.job) {
            true => self.file_bytes(size_bytes),
            false => 0,
        }
    }

    fn inputs(&self, worker: &Worker) -> Vec<Input> {
        if !lays_out(&self.job) {
            return Vec::new();
        }
        let files = self.of(worker).iter();
        let input = |file: &PlannedFile| Input {
            path: self.path(worker, file),
            length_bytes: file.region.file_bytes,
            read: self.job.pattern.access.does(Direction::Read),
        };
        files.map(input).collect()
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.read_bytes + measure.written_bytes
    }

    fn prepare<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> Steps<'a> {
        Box::pin(async move {
            let all = self.all_files();
            // Clones share files: the first that has one makes it.
            let earlier = self.files[..worker.index as usize].iter().flatten();
            let mut made: BTreeSet<&str> = earlier.map(|file| &*file.path).collect();
            for file in self.of(worker) {
                if made.insert(&file.path) {
                    let path = self.path(worker, file);
                    let what = (&*path, all[&*file.path]);
                    self.make((&mut *system, worker), what).await?;
                }
            }
            Ok(())
        })
    }

    fn run<'a>(&'a self, (system, worker): Place<'a>, _buffer: &'a mut Buffer) -> Steps<'a> {
        Box::pin(async move {
            let files = self.open((&mut *system, worker)).await?;
            let open: Vec<File> = files.iter().map(|(file, _)| *file).collect();
            let options = self.ring_options(worker);
            system.open_ring(options, &open).await?;
            let stream = Stream::new(&self.job, self.of(worker), worker.seed);
            let job = (&*self.job, stream);
            let mut course = Course::start((system, worker), job, &files).await?;
            course.run().await
        })
    }
}

#[cfg(test)]
mod tests;
