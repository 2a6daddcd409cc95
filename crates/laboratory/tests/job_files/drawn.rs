//! Random job files with time limits: sections that wait in every way that there is.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use std::fmt::Write;

/// Scale of a file's times: virtual time costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Real storage: tens of milliseconds.
    Host,
    /// A modelled computer: up to half a second.
    Model,
    /// A modelled drive alone, which is one file.
    ModelledDrive,
}

/// A random job file.
pub(crate) struct Drawn {
    pub(crate) text: String,
    /// Time limit of each section.
    pub(crate) limits: Vec<Limit>,
}

/// Times of a section in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) delay_ms: u64,
    pub(crate) ramp_ms: u64,
    pub(crate) runtime_ms: u64,
}

/// Ways to wait within a job; `~` is a number of milliseconds up to the runtime and beyond it.
const PACINGS: &[&[&str]] = &[
    &[
        "thinktime=~ms",
        "thinktime=~ms thinktime_blocks=3",
        "thinktime=~ms thinktime_blocks=64 thinktime_blocks_type=issue",
        "thinktime=~ms thinktime_spin=~ms",
        "thinktime=1000",
        "thinktime=60m",
        "thinktime=~ms thinktime_iotime=~ms",
        "thinktime=~ms thinktime_iotime=~ms thinktime_blocks=5",
    ],
    &[
        "rate_iops=1",
        "rate_iops=100",
        "rate_iops=20,3000",
        "rate=4k",
        "rate=1m",
        "rate_iops=500 rate_process=poisson",
        "rate_iops=1 rate_process=poisson",
        "rate_iops=50 rate_ignore_thinktime=1",
    ],
    &[
        "flow=1",
        "flow=7",
        "flow=2 flow_id=3",
        "flow=3 flow_sleep=5000",
    ],
    &[
        "latency_target=500 latency_window=~ms",
        "latency_target=2ms latency_window=5ms latency_percentile=90",
        "latency_target=1s latency_window=~ms latency_percentile=50 latency_run=1",
    ],
    &[
        "steadystate=iops:0.01% ss_dur=5",
        "steadystate=bw_slope:1% ss_dur=3 ss_ramp=1",
    ],
    &[
        "fsync=1",
        "fdatasync=3",
        "end_fsync=1",
        "fsync_on_close=1",
        "fsync=2 fdatasync=5",
    ],
    &[
        "bssplit=512/10:4k/60:64k/30",
        "bsrange=1k-16k",
        "bs=4k,16k",
        "bs=64k",
        "bs=512",
    ],
    &["offset=64k", "offset=25%", "offset_increment=32k"],
    &[
        "loops=3",
        "loops=4294967295",
        "number_ios=7",
        "io_size=64k",
        "io_size=8m",
    ],
    &[
        "iodepth_batch=4",
        "iodepth_low=1",
        "iodepth_batch_complete_min=2",
        "iodepth_batch_complete_min=1 iodepth_batch_complete_max=4",
    ],
    &[
        "nrfiles=3",
        "nrfiles=4 file_service_type=random",
        "nrfiles=5 file_service_type=zipf:1.3",
        "nrfiles=2 openfiles=1",
    ],
    &[
        "norandommap",
        "percentage_random=40",
        "random_distribution=zipf:1.1",
    ],
    &["zonemode=strided zonesize=16k zoneskip=16k"],
    &["serialize_overlap=1"],
    &[
        "exitall",
        "exitall exit_what=all",
        "exitall exit_what=stonewall",
    ],
    &["group_reporting"],
    &["max_latency=1h", "rate_iops_min=1", "invalidate=0"],
    &[
        "rw=write",
        "rw=randwrite",
        "rw=randrw",
        "rw=rw rwmixread=30",
        "rw=read",
        "rw=read:8k",
    ],
];

const ENGINES: &[&str] = &[
    "ioengine=io_uring",
    "ioengine=io_uring direct=1",
    "ioengine=libaio direct=1",
    "ioengine=libaio",
    "ioengine=posixaio",
    "ioengine=sync",
    "ioengine=psync",
    "ioengine=vsync",
    "ioengine=pvsync",
    "ioengine=pvsync2",
    "ioengine=psync io_submit_mode=offload",
];

/// Engines and directions of real storage alone, which no modelled kernel has. Engines of
/// calls on names have one block in a file.
const HOST_ENGINES: &[&str] = &[
    "ioengine=mmap",
    "ioengine=mmap rw=randrw",
    "ioengine=splice",
    "ioengine=splice rw=randwrite",
    "ioengine=falloc rw=write",
    "ioengine=falloc rw=randread",
    "ioengine=ftruncate rw=randwrite",
    "ioengine=filecreate rw=write filesize=4k nrfiles=8 size=32k",
    "ioengine=filestat rw=randread filesize=4k nrfiles=8 size=32k",
    "ioengine=filedelete rw=write filesize=4k nrfiles=8 size=32k time_based=0",
    "ioengine=psync rw=trimwrite",
    "ioengine=io_uring rw=randtrimwrite",
];

const DEPTHS: &[&str] = &["iodepth=1", "iodepth=2", "iodepth=8"];

/// Draws the file of a number.
pub(crate) fn drawn(seed: u64, number: u64, scale: Scale) -> Drawn {
    let mut random = Random(Pcg64::seed_from_u64(seed ^ number.rotate_left(32)));
    let mut text = String::from("[global]\nsize=256k\n");
    if scale == Scale::ModelledDrive || random.one_in(2) {
        text += "filename=shared\n";
    }
    let mut limits = Vec::new();
    for section in 0..1 + random.below(3) {
        let limit = random.limit(scale);
        let name = ["a", "b", "c"][section as usize];
        let _ = write!(text, "[{name}]\nruntime={}ms\n", limit.runtime_ms);
        let mut options = vec!["rw=randread".to_owned()];
        let engines = match scale == Scale::Host && random.one_in(4) {
            true => HOST_ENGINES,
            false => ENGINES,
        };
        options.push((*random.pick(engines)).to_owned());
        options.push((*random.pick(DEPTHS)).to_owned());
        if !random.one_in(5) {
            // Before the engine, which may have no second pass.
            options.insert(0, "time_based".to_owned());
        }
        if limit.delay_ms > 0 {
            options.push(random.delay(limit.delay_ms));
        }
        if limit.ramp_ms > 0 {
            options.push(format!("ramp_time={}ms", limit.ramp_ms));
        }
        if section > 0 {
            let order = ["", "stonewall", "new_group", "wait_for=a"];
            options.push((*random.pick(&order)).to_owned());
        }
        if random.one_in(3) {
            options.push(format!("numjobs={}", 2 + random.below(2)));
        }
        for kind in PACINGS {
            if random.one_in(5) {
                let option = *random.pick(kind);
                if scale == Scale::ModelledDrive && option.contains("nrfiles") {
                    continue;
                }
                options.push(random.with_times(option, limit.runtime_ms));
            }
        }
        let lines = options.iter().flat_map(|option| option.split_whitespace());
        lines.for_each(|line| text += &format!("{line}\n"));
        limits.push(limit);
    }
    if ["filedelete", "ftruncate"]
        .iter()
        .any(|engine| text.contains(engine))
    {
        // A job beside it would find no file, or a shorter one.
        text = text.replace("filename=shared\n", "");
    }
    if text.contains("steadystate") {
        // The jobs of a group have one steady state.
        for name in ["[b]\n", "[c]\n"] {
            text = text.replace(name, &format!("{name}new_group\n"));
        }
    }
    Drawn { text, limits }
}

struct Random(Pcg64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }

    fn one_in(&mut self, limit: u64) -> bool {
        self.below(limit) == 0
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }

    fn limit(&mut self, scale: Scale) -> Limit {
        let longest_ms = match scale {
            Scale::Host => 30,
            Scale::Model | Scale::ModelledDrive => 400,
        };
        Limit {
            runtime_ms: 1 + self.below(longest_ms),
            delay_ms: if self.one_in(4) {
                1 + self.below(longest_ms)
            } else {
                0
            },
            ramp_ms: if self.one_in(4) {
                1 + self.below(longest_ms)
            } else {
                0
            },
        }
    }

    /// A delay of so much at most.
    fn delay(&mut self, delay_ms: u64) -> String {
        match self.one_in(3) {
            true => format!("startdelay=0ms-{delay_ms}ms"),
            false => format!("startdelay={delay_ms}ms"),
        }
    }

    /// An option with its times drawn: some shorter than the runtime, some far longer.
    fn with_times(&mut self, option: &str, runtime_ms: u64) -> String {
        let mut parts = option.split('~');
        let mut made = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let longest_ms = match self.one_in(4) {
                true => 100 * runtime_ms,
                false => runtime_ms,
            };
            let time_ms = 1 + self.below(longest_ms);
            made += &format!("{time_ms}{part}");
        }
        made
    }
}
