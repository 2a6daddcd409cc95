//! Random job files: with time limits, of sections that wait in every way that there is; and
//! without, of I/Os that are counted.

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

/// A random job file whose I/Os are counted.
pub(crate) struct Counted {
    pub(crate) text: String,
}

impl Counted {
    /// Its options in a line.
    pub(crate) fn options(&self) -> String {
        let lines: Vec<&str> = self.text.lines().skip(1).collect();
        lines.join(" ")
    }
}

const COUNTED_ACCESSES: &[&str] = &[
    "rw=read",
    "rw=write",
    "rw=trim",
    "rw=randread",
    "rw=randread",
    "rw=randwrite",
    "rw=randwrite",
    "rw=randtrim",
    "rw=rw rwmixread=0",
    "rw=rw rwmixread=100",
    "rw=randrw rwmixread=0",
    "rw=randrw rwmixread=100",
    "rw=read:4k",
    "rw=write:8k",
    "rw=trimwrite",
    "rw=randtrimwrite",
];

/// Accesses of data that are verified.
const VERIFIED_ACCESSES: &[&str] = &["rw=write", "rw=randwrite", "rw=rw rwmixread=0"];

const COUNTED_SIZES: &[&str] = &["size=64k", "size=100k", "size=256k", "size=1m", "size=62k"];

const BLOCKS: &[&str] = &["bs=4k", "bs=8k", "bs=6k", "bs=512", "bs=16k", "bs=4k bs=8k"];

/// Sizes that differ by direction: where a map is kept, they end a job by chance.
const BLOCKS_BY_DIRECTION: &[&str] = &["bs=4k,8k", "bs=8k,4k", "bs=4k,16k,8k", "bs=8k,8k,4k"];

/// Options that are drawn beside those, each kind for one file in four.
const AMOUNTS: &[&[&str]] = &[
    &["ba=512", "ba=4k", "ba=1k", "ba=8k", "ba=16k", "ba=2k,4k"],
    &[
        "norandommap",
        "random_generator=lfsr",
        "random_generator=tausworthe64",
    ],
    &[
        "zonemode=strided zonesize=8k zoneskip=8k",
        "zonemode=strided zonesize=16k zonerange=32k zoneskip=0",
        "zonemode=strided zonesize=48k zonerange=16k zoneskip=16k",
    ],
    &[
        "io_size=96k",
        "io_size=2m",
        "io_size=300k",
        "io_size=50%",
        "io_size=30k",
    ],
    &["number_ios=7", "number_ios=40", "number_ios=300"],
    &["loops=2", "loops=3"],
    &[
        "offset=8k",
        "offset=12k",
        "offset=25% filesize=1m",
        "offset=4k filesize=256k",
    ],
    &[
        "nrfiles=3",
        "nrfiles=2 file_service_type=sequential",
        "nrfiles=4 file_service_type=random",
        "nrfiles=3 file_service_type=roundrobin:3",
    ],
    &["numjobs=2", "numjobs=3", "numjobs=2 offset_increment=16k"],
];

/// Kinds of those, at the front, by which blocks may be written twice in a pass.
const DRAWING_KINDS: usize = 3;

const VERIFIES: &[&str] = &[
    "verify=crc32c",
    "verify=md5",
    "verify=null",
    "verify=pattern verify_pattern=0x5a",
    "verify=crc32c do_verify=0",
    "verify=crc32c verify_backlog=5",
    "verify=xxhash verify_backlog=100",
    "verify=crc32c verify_backlog=16 verify_backlog_batch=4",
];

/// Removes options by which fio's own random order decides how many I/Os there are, which is
/// not that of this program. In a random order fio draws offsets in the whole of a zone, of
/// which the file may have a part, and numbers of an lfsr up to the size in blocks, which
/// `blockalign` may put beyond the end: the first offset beyond it ends the job. Of files that
/// are drawn, the one that a zone is left in goes on by itself.
fn remove_what_is_left_to_chance(options: &mut Vec<&'static str>) {
    let all = options.join(" ");
    let is_random = all.contains("=rand");
    let are_zones_whole = ["size=64k", "size=256k", "size=1m"]
        .iter()
        .any(|size| options.contains(size))
        && !["offset", "nrfiles", "numjobs"]
            .iter()
            .any(|name| all.contains(name));
    let draws_files = all.contains("file_service_type=random");
    // Without a map a trim may meet the offset of the last write, and another trim follows.
    if all.contains("randtrimwrite") {
        options.retain(|option| *option != "norandommap" && !option.starts_with("ba="));
    }
    if (is_random && !are_zones_whole) || draws_files {
        options.retain(|option| !option.contains("zonemode"));
    }
    if is_random && all.contains("lfsr") && last_bytes(&all, "ba=") > last_bytes(&all, "bs=") {
        options.retain(|option| !option.starts_with("ba="));
    }
}

/// The size that an option has in a line, in bytes: the last value given counts, and of
/// values for several directions the first.
fn last_bytes(options: &str, name: &str) -> Option<u64> {
    let mut words = options.split_whitespace().rev();
    let value = words.find_map(|word| word.strip_prefix(name))?;
    let first = value.split(',').next()?;
    match first.strip_suffix('k') {
        Some(kib) => kib.parse::<u64>().ok().map(|kib| kib << 10),
        None => first.parse().ok(),
    }
}

/// Draws the file of a number whose I/Os are counted.
pub(crate) fn counted(seed: u64, number: u64) -> Counted {
    let mut random = Random(Pcg64::seed_from_u64(!seed ^ number.rotate_left(32)));
    let verifies = random.one_in(4);
    let mut options = match verifies {
        true => vec![
            "ioengine=sync",
            *random.pick(VERIFIED_ACCESSES),
            *random.pick(VERIFIES),
        ],
        false => vec!["ioengine=null", *random.pick(COUNTED_ACCESSES)],
    };
    options.push(*random.pick(COUNTED_SIZES));
    // Of blocks that are written twice before they are read, chance decides how many there are.
    let kinds = match verifies {
        true => &AMOUNTS[DRAWING_KINDS..],
        false => AMOUNTS,
    };
    for kind in kinds {
        if random.one_in(4) {
            options.push(*random.pick(kind));
        }
    }
    let all = options.join(" ");
    let keeps_map = all.contains("rw=rand") && !all.contains("norandommap");
    options.push(match !keeps_map && random.one_in(3) {
        true => *random.pick(BLOCKS_BY_DIRECTION),
        false => *random.pick(BLOCKS),
    });
    remove_what_is_left_to_chance(&mut options);
    let lines = options.iter().flat_map(|option| option.split_whitespace());
    let text = lines.fold("[job]\n".to_owned(), |text, line| text + line + "\n");
    Counted { text }
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
