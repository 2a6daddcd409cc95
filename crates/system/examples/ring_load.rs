//! Random reads of 4 KiB through the ring of real storage, and nothing else: what the ring
//! costs beside another generator of load. `bench/ring` runs it.
//!
//! ```text
//! ring_load PATH|null --depth 32 --seconds 2 [--batch 8] [--direct] [--engine best|io_uring|sqpoll|threads]
//!           [--rate IOPS [--stall SECONDS]]
//! ```
//!
//! It is a closed loop, with a rate an open one of constant arrivals: these do not wait,
//! also not for a stall in the middle, during which nothing is issued or taken.

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    on_linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("ring_load: real storage is measured on Linux alone");
}

#[cfg(target_os = "linux")]
mod on_linux {
    use diskperf_system::host::{CallClock, DrivePort, HostPorts, HostWorker, WorkerControl};
    use diskperf_system::{
        EngineChoice, IoCompletion, IoOperation, OpenOptions, RingOptions, Submission, System,
        run_ready,
    };
    use diskperf_timeline::{Histogram, Nanoseconds, WorkerMeasure};
    use rustix::fs::{Mode, OFlags};
    use std::error::Error;
    use std::path::PathBuf;

    const BLOCK_BYTES: u32 = 4096;

    /// As long as a null target is here; the length does not matter.
    const NULL_BYTES: u64 = 1 << 30;

    /// What is asked for.
    struct Wanted {
        path: Option<PathBuf>,
        depth: u32,
        /// Requests that are handed over at once, at most: a device begins with the first
        /// while others are still prepared.
        batch: Option<u32>,
        seconds: f64,
        direct: bool,
        engine: EngineChoice,
        /// Arrivals a second, in open loop.
        rate: Option<f64>,
        stall_s: f64,
    }

    pub(super) fn main() -> Result<(), Box<dyn Error>> {
        let wanted = wanted(std::env::args().skip(1))?;
        let (name, ports) = ports(&wanted)?;
        let control = WorkerControl::for_single_worker(true, CallClock::new_calibrated());
        let mut system = System::HostWorker(Box::new(HostWorker::new(ports, control)));
        let measure = run_ready(load(&mut system, &name, &wanted))?;
        if let System::HostWorker(host) = &system
            && let Some(note) = host.engine_note()
        {
            eprintln!("ring_load: {}", note.message);
        }
        print(&measure);
        Ok(())
    }

    fn wanted(mut words: impl Iterator<Item = String>) -> Result<Wanted, Box<dyn Error>> {
        let path = words.next().ok_or("which file, or `null`?")?;
        let mut wanted = Wanted {
            path: (path != "null").then(|| path.into()),
            depth: 1,
            batch: None,
            seconds: 1.0,
            direct: false,
            engine: EngineChoice::BestAvailable,
            rate: None,
            stall_s: 0.0,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word}: which?"));
            match word.as_str() {
                "--depth" => wanted.depth = value()?.parse()?,
                "--batch" => wanted.batch = Some(value()?.parse()?),
                "--seconds" => wanted.seconds = value()?.parse()?,
                "--direct" => wanted.direct = true,
                "--rate" => wanted.rate = Some(value()?.parse()?),
                "--stall" => wanted.stall_s = value()?.parse()?,
                "--engine" => wanted.engine = engine(&value()?)?,
                _ => return Err(format!("what is {word}?").into()),
            }
        }
        Ok(wanted)
    }

    fn engine(name: &str) -> Result<EngineChoice, String> {
        match name {
            "best" => Ok(EngineChoice::BestAvailable),
            "io_uring" => Ok(EngineChoice::IoUring),
            "sqpoll" => Ok(EngineChoice::SqPoll),
            "threads" => Ok(EngineChoice::Threads),
            "worker" => Ok(EngineChoice::WorkerThread),
            _ => Err(format!("there is no engine {name}")),
        }
    }

    /// The name that the worker knows the target by, and what it leads to.
    fn ports(wanted: &Wanted) -> Result<(String, HostPorts), Box<dyn Error>> {
        let Some(path) = &wanted.path else {
            let drive = DrivePort::NullDrive {
                length_bytes: NULL_BYTES,
            };
            let ports = HostPorts {
                drive_ports: vec![drive],
                ..HostPorts::default()
            };
            return Ok(("/dev/drive0".to_owned(), ports));
        };
        let path = path.canonicalize()?;
        let directory = path.parent().ok_or("a file in a directory")?;
        let name = path.file_name().ok_or("a file")?.to_string_lossy();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let ports = HostPorts {
            directories: vec![rustix::fs::open(directory, flags, Mode::empty())?],
            ..HostPorts::default()
        };
        Ok((format!("/mnt0/{name}"), ports))
    }

    async fn load(
        system: &mut System,
        name: &str,
        wanted: &Wanted,
    ) -> diskperf_system::Result<WorkerMeasure> {
        let file = system
            .open(name, OpenOptions::READ.with_direct(wanted.direct))
            .await?;
        let blocks = system.file_length(file).await? / u64::from(BLOCK_BYTES);
        let options = RingOptions {
            queue_depth: wanted.depth,
            buffer_bytes: BLOCK_BYTES,
            seed: 1,
            compressible_percent: 0,
            engine_choice: wanted.engine,
            polls_completions: false,
            has_verifiable_contents: false,
            series_interval: Nanoseconds::from_millis(1000),
        };
        system.open_ring(options, &[file]).await?;
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let next = |slot| Submission {
            operation: IoOperation::Read,
            file,
            offset_bytes: random.below(blocks) * u64::from(BLOCK_BYTES),
            bytes: BLOCK_BYTES,
            slot,
            intended_start: None,
        };
        system.start_measuring(system.now())?;
        match wanted.rate {
            None => closed_loop(system, wanted, next).await?,
            Some(rate) => open_loop(system, wanted, rate, next).await?,
        }
        let measure = system.finish_measuring().await?;
        system.close_ring().await?;
        Ok(measure)
    }

    fn seconds(seconds: f64) -> Nanoseconds {
        Nanoseconds((seconds * 1e9) as u64)
    }

    /// As many requests under way as the depth: one that completes is followed by another.
    async fn closed_loop(
        system: &mut System,
        wanted: &Wanted,
        mut next: impl FnMut(u32) -> Submission,
    ) -> diskperf_system::Result<()> {
        let mut submissions: Vec<Submission> = (0..wanted.depth).map(&mut next).collect();
        let mut completions: Vec<IoCompletion> = Vec::with_capacity(wanted.depth as usize);
        let end = system.now() + seconds(wanted.seconds);
        let batch = wanted.batch.unwrap_or(wanted.depth.div_ceil(4)).max(1);
        loop {
            // A device that has completed all it had begins again with the first few.
            let few = submissions.len().min(batch.div_ceil(4) as usize);
            let (first, others) = submissions.split_at(few);
            system.submit_requests(first).await?;
            for some in others.chunks(batch as usize) {
                system.submit_requests(some).await?;
            }
            completions.clear();
            if system.reap_requests(1, None, &mut completions).await? >= end {
                return Ok(());
            }
            submissions.clear();
            submissions.extend(completions.iter().map(|completion| next(completion.slot)));
        }
    }

    /// Requests arrive at a constant rate, and wait where all slots are under way.
    async fn open_loop(
        system: &mut System,
        wanted: &Wanted,
        rate: f64,
        mut next: impl FnMut(u32) -> Submission,
    ) -> diskperf_system::Result<()> {
        let mut submissions: Vec<Submission> = Vec::with_capacity(wanted.depth as usize);
        let mut completions: Vec<IoCompletion> = Vec::with_capacity(wanted.depth as usize);
        let mut free: Vec<u32> = (0..wanted.depth).collect();
        let start = system.now();
        let end = start + seconds(wanted.seconds);
        let mut stall = (wanted.stall_s > 0.0).then(|| start + seconds(wanted.seconds / 2.0));
        let mut arrivals = 0_u64;
        let arrival = |number: u64| start + seconds(number as f64 / rate);
        let mut now = start;
        while now < end {
            if stall.is_some_and(|stall| now >= stall) {
                stall = None;
                system.sleep_until(now + seconds(wanted.stall_s)).await?;
                now = system.now();
            }
            submissions.clear();
            while arrival(arrivals) <= now.min(end)
                && let Some(slot) = free.pop()
            {
                submissions.push(Submission {
                    intended_start: Some(arrival(arrivals)),
                    ..next(slot)
                });
                arrivals += 1;
            }
            system.submit_requests(&submissions).await?;
            completions.clear();
            let until = arrival(arrivals).max(now).min(end);
            let until = if free.is_empty() { end } else { until };
            now = system
                .reap_requests(1, Some(until), &mut completions)
                .await?;
            free.extend(completions.iter().map(|completion| completion.slot));
        }
        while arrival(arrivals) < end {
            system.count_unissued(IoOperation::Read, arrival(arrivals));
            arrivals += 1;
        }
        Ok(())
    }

    /// A generator of one multiplication (Lehmer's, of 128 bits).
    struct Random(u128);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_mul(0xda94_2042_e4dd_58b5);
            ((u128::from((self.0 >> 64) as u64) * u128::from(bound)) >> 64) as u64
        }
    }

    fn print(measure: &WorkerMeasure) {
        let Some(load) = &measure.load_measure else {
            return;
        };
        let requests = load.read_write_count() as f64;
        let us = |span: Nanoseconds| span.0 as f64 / 1e3;
        let response = &load.read.response_times;
        let document = serde_json::json!({
            "engine": load.engine,
            "depth": load.queue_depth,
            "iops": requests / measure.elapsed_time.seconds(),
            "cpu_us_per_io": us(measure.cpu_time) / requests,
            "p50_us": us(response.percentile(50.0)),
            "p99_us": us(response.percentile(99.0)),
            "max_us": us(response.latency_max()),
            "submit_p50_us": us(load.read.submit_call_times.percentile(50.0)),
            "lag_p50_us": load.arrival_lag.as_ref().map(|lag| us(lag.percentile(50.0))),
            "lag_p99_us": load.arrival_lag.as_ref().map(|lag| us(lag.percentile(99.0))),
            "unfinished": load.unfinished_count,
            "shares_over_tenths": shares_over_tenths(response),
        });
        println!("{document}");
    }

    /// Of all responses, the shares that took longer than 0.1 s, 0.2 s, ... 0.9 s.
    fn shares_over_tenths(response: &Histogram) -> Vec<f64> {
        let share = |tenths: u64| {
            let longer = |(latency_ns, _): &&(u64, u64)| *latency_ns > tenths * 100_000_000;
            let buckets = response.buckets().iter().filter(longer);
            let count: u64 = buckets.map(|(_, count)| count).sum();
            count as f64 / response.latency_count().max(1) as f64
        };
        (1..10).map(share).collect()
    }
}
