//! Load of a fio job file: its jobs with their rates or depths, one part for each set of jobs that
//! run at the same time.

use super::load::{
    DATA_BYTES_MAX, LOADED_BYTES_MAX, LoadBuilder, LoadedRequest, PartArrivals, VolumeLoad,
};
use crate::error::LaboratoryError;
use diskperf_device::volume::charge::ChargeRules;
use diskperf_device::volume::fluid::NANOREQUESTS;
use diskperf_fio::job::{ArrivalProcess, BlockSizeChoice};
use diskperf_fio::{Direction, Errors, JobDefinition, JobFile};
use diskperf_sim::{RandomStream, RandomStreams};

/// Requests from which the mean charge of a part is taken.
const SAMPLE_REQUESTS: u64 = 8192;
/// Requests before these, after which streams are known as such.
const WARM_UP_REQUESTS: u64 = 1024;
/// Clones of a job whose requests are sampled.
const SAMPLE_CLONES_MAX: u32 = 256;
/// Size of the files of one clone at most, in bytes: a pebibyte.
const AREA_BYTES_MAX: u64 = 1 << 50;
/// Size of a job's files, if the job file does not say it, in bytes.
const DEFAULT_AREA_BYTES: u64 = 1 << 30;

/// Reads the load of a job file, for volumes with these rules.
///
/// # Errors
///
/// A job without an end in time, jobs with a rate beside jobs without, and options that pause a job
/// or that decide what it does as it runs.
pub fn read_job_file(
    file: &JobFile,
    name: &str,
    rules: &[ChargeRules],
) -> Result<VolumeLoad, LaboratoryError> {
    let mut builder = LoadBuilder::new(name, rules);
    let mut first_byte = 0;
    let mut jobs: &[JobDefinition] = &file.jobs;
    let has_rate = jobs.first().is_some_and(|job| rates(job).is_some());
    if jobs.is_empty() {
        let message = format!("{name}: the job file has no jobs; add a section");
        return Err(LaboratoryError::Request(message));
    }
    while let Some(first) = jobs.first() {
        let later = jobs[1..]
            .iter()
            .position(|job| job.order.waits_for_earlier_jobs);
        let (part, rest) = jobs.split_at(later.map_or(jobs.len(), |index| index + 1));
        jobs = rest;
        for job in part {
            check_job(job, has_rate).map_err(LaboratoryError::request)?;
            add_notes(&mut builder, job);
            let runtime = job.durations.runtime_us + job.durations.ramp_us;
            if runtime != first.durations.runtime_us + first.durations.ramp_us {
                let problem = job.option_error(
                    "runtime",
                    "jobs that run at the same time have different runtimes",
                    "not that of the first of them",
                    "give all of them the same runtime, or `stonewall`",
                );
                return Err(LaboratoryError::request(Errors::from(problem)));
            }
        }
        let mut streams = Vec::new();
        for job in part {
            let clones = 0..job.order.clone_count.min(SAMPLE_CLONES_MAX);
            streams.extend(clones.map(|clone| JobStream::new(job, clone, first_byte)));
            let data = area_bytes(job).saturating_mul(u64::from(job.order.clone_count));
            first_byte = first_byte.saturating_add(data).min(DATA_BYTES_MAX);
        }
        builder.extend_data(first_byte);
        sample(&mut builder, &mut streams);
        let duration_us = first.durations.runtime_us + first.durations.ramp_us;
        builder.end_part(arrivals(part), duration_us.saturating_mul(1000));
    }
    Ok(builder.finish())
}

/// Adds the requests of jobs that run at the same time, in the proportion of their weights.
fn sample(builder: &mut LoadBuilder, streams: &mut [JobStream<'_>]) {
    for number in 0..WARM_UP_REQUESTS + SAMPLE_REQUESTS {
        let due = |one: &JobStream<'_>| (one.issued + 1) as f64 / one.weight;
        let Some(next) = streams.iter_mut().min_by(|a, b| due(a).total_cmp(&due(b))) else {
            return;
        };
        let request = next.draw_request();
        match number < WARM_UP_REQUESTS {
            true => builder.skip_request(request),
            false => builder.add_request(request),
        }
    }
}

fn arrivals(jobs: &[JobDefinition]) -> PartArrivals {
    let clones = |job: &JobDefinition| job.order.clone_count;
    let rate: Option<f64> = jobs
        .iter()
        .map(|job| Some(rates(job)?.total() * f64::from(clones(job))))
        .sum();
    match rate {
        Some(rate) => PartArrivals::Open((rate * NANOREQUESTS as f64) as u128),
        None => {
            let depth = jobs.iter().map(|job| {
                job.engine
                    .effective_depth()
                    .max(1)
                    .saturating_mul(clones(job))
            });
            PartArrivals::Closed(depth.fold(0, u32::saturating_add))
        }
    }
}

/// Rates of one clone of a job, in requests per second.
#[derive(Clone, Copy, Debug)]
struct JobRates {
    read: f64,
    write: f64,
}

impl JobRates {
    fn total(self) -> f64 {
        self.read + self.write
    }
}

/// Returns the rates of a job; `None` for a job without a rate.
fn rates(job: &JobDefinition) -> Option<JobRates> {
    let rate = |direction: Direction| {
        if !job.pattern.access.includes(direction) {
            return None;
        }
        let by_requests = job.rate.iops.get(direction).map(f64::from);
        let bytes = mean_bytes(&job.blocks.choice(direction));
        let by_bytes = job
            .rate
            .bytes_per_s
            .get(direction)
            .map(|rate| rate as f64 / bytes);
        by_requests.or(by_bytes)
    };
    let (read, write) = (rate(Direction::Read), rate(Direction::Write));
    (read.is_some() || write.is_some()).then(|| JobRates {
        read: read.unwrap_or(0.0),
        write: write.unwrap_or(0.0),
    })
}

fn mean_bytes(choice: &BlockSizeChoice) -> f64 {
    match choice {
        BlockSizeChoice::Fixed(bytes) => *bytes as f64,
        BlockSizeChoice::Range { smallest, largest } => (smallest + largest) as f64 / 2.0,
        BlockSizeChoice::Weighted(parts) => {
            let bytes = parts
                .iter()
                .map(|part| part.bytes as f64 * f64::from(part.percent));
            bytes.sum::<f64>() / 100.0
        }
    }
}

/// Checks that a job has a constant rate and an end in time.
fn check_job(job: &JobDefinition, has_rate: bool) -> Result<(), Errors> {
    let refuse = |key: &str, title: &str, label: &str, help: &str| {
        Err(Errors::from(job.option_error(key, title, label, help)))
    };
    if !job.durations.is_time_based || job.durations.runtime_us == 0 {
        return refuse(
            "runtime",
            "the job has no end in time",
            "it ends with its size, or never",
            "give `time_based` and `runtime`, such as 8h",
        );
    }
    if rates(job).is_some() != has_rate {
        return refuse(
            "rate_iops",
            "jobs with a rate beside jobs without",
            "unlike the first job",
            "give all jobs `rate_iops`, or none",
        );
    }
    let directions = job.pattern.access.directions();
    let is_limited = |direction: &&Direction| {
        job.rate.iops.get(**direction).is_some() || job.rate.bytes_per_s.get(**direction).is_some()
    };
    if has_rate && directions.iter().filter(is_limited).count() < directions.len() {
        return refuse(
            "rate_iops",
            "a rate of one direction only",
            "the other direction has none",
            "give both, as in `rate_iops=300,100`",
        );
    }
    if job.pattern.access.includes(Direction::Trim) {
        return refuse(
            "rw",
            "volumes charge no trims",
            "it trims",
            "give reads or writes",
        );
    }
    if job.block_bytes_max() > LOADED_BYTES_MAX {
        return refuse(
            "bs",
            "a request of more than 1 GiB",
            "this long",
            "give at most 1g",
        );
    }
    if job.iolog.replayed_path.is_some() {
        return refuse(
            "read_iolog",
            "the job repeats a log",
            "its requests are those of the log",
            "name the log in place of the job file",
        );
    }
    for (key, is_given) in [
        ("thinktime", job.think.pause_us > 0),
        ("flow", job.order.flow_weight > 0),
        ("latency_target", job.has_option("latency_target")),
        ("startdelay", job.durations.start_delay_us.1 > 0),
        ("wait_for", job.awaited_job.is_some()),
    ] {
        if is_given {
            return refuse(
                key,
                "the job has no constant rate",
                "it changes the rate as the job runs",
                "leave it out, and write a job for each rate with `stonewall`",
            );
        }
    }
    Ok(())
}

fn add_notes(builder: &mut LoadBuilder, job: &JobDefinition) {
    if !job.engine.is_direct {
        builder.add_note(format!(
            "job {}: counted as if direct=1; a page cache keeps requests from the volume",
            job.name
        ));
    }
    if rates(job).is_some() && job.rate.arrival_process == ArrivalProcess::Poisson {
        builder.add_note(format!(
            "job {}: arrivals are taken as evenly spaced; those of rate_process=poisson queue for moments longer",
            job.name
        ));
    }
}

/// Returns the size of the files of one clone of a job, in bytes.
fn area_bytes(job: &JobDefinition) -> u64 {
    let size = job.target.size.and_then(|size| size.bytes());
    let size = size.unwrap_or(DEFAULT_AREA_BYTES).min(AREA_BYTES_MAX);
    size.max(job.block_bytes_max())
}

/// Requests of one clone of a job.
struct JobStream<'a> {
    job: &'a JobDefinition,
    /// Share of the requests relative to other streams.
    weight: f64,
    issued: u64,
    draws: RandomStream,
    start_byte: u64,
    area_bytes: u64,
    /// Next sequential offsets of reads and of writes.
    next_offset: [u64; 2],
    read_share: f64,
}

impl<'a> JobStream<'a> {
    fn new(job: &'a JobDefinition, clone: u32, start_byte: u64) -> Self {
        let rates = rates(job);
        let access = job.pattern.access;
        Self {
            job,
            weight: rates.map_or(f64::from(job.engine.effective_depth().max(1)), |one| {
                one.total()
            }),
            issued: 0,
            draws: RandomStreams::new(job.random.seed)
                .named_stream(&format!("{}.{clone}", job.name)),
            start_byte: start_byte + u64::from(clone) * area_bytes(job),
            area_bytes: area_bytes(job),
            next_offset: [0; 2],
            read_share: match (
                access.includes(Direction::Read),
                access.includes(Direction::Write),
            ) {
                (true, false) => 1.0,
                (false, _) => 0.0,
                (true, true) => rates.map_or(f64::from(job.pattern.read_percent) / 100.0, |one| {
                    one.read / one.total()
                }),
            },
        }
    }

    fn draw_request(&mut self) -> LoadedRequest {
        let is_write = !self.draws.draw_with_probability(self.read_share);
        let direction = match is_write {
            true => Direction::Write,
            false => Direction::Read,
        };
        let bytes = self.draw_bytes(&self.job.blocks.choice(direction));
        let percent = *self.job.random.random_percent.get(direction);
        let is_jump = self.job.pattern.access.is_random()
            && self
                .issued
                .is_multiple_of(u64::from(self.job.pattern.sequence_length.max(1)))
            && self.draws.draw_with_probability(f64::from(percent) / 100.0);
        self.issued += 1;
        let room = self.area_bytes.saturating_sub(bytes);
        let next = &mut self.next_offset[usize::from(is_write)];
        if is_jump {
            let unit = self.job.block_bytes_min();
            *next = self.draws.draw_below(room / unit + 1) * unit;
        } else if *next > room {
            *next = 0;
        }
        let offset = *next;
        let skipped = self.job.pattern.skip_bytes;
        *next = (offset + bytes).saturating_add_signed(skipped);
        LoadedRequest {
            start_byte: self.start_byte + offset,
            bytes,
            is_write,
        }
    }

    fn draw_bytes(&mut self, choice: &BlockSizeChoice) -> u64 {
        match choice {
            BlockSizeChoice::Fixed(bytes) => *bytes,
            BlockSizeChoice::Range { smallest, largest } => {
                let steps = (largest - smallest) / (*smallest).max(1);
                smallest + self.draws.draw_below(steps + 1) * smallest
            }
            BlockSizeChoice::Weighted(parts) => {
                let mut percent = self.draws.draw_below(100) as u32;
                for part in parts.iter() {
                    if percent < part.percent {
                        return part.bytes;
                    }
                    percent -= part.percent;
                }
                parts.last().map_or(4096, |part| part.bytes)
            }
        }
    }
}
