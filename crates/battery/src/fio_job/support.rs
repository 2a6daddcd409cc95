//! Support of fio options: errors for options that cannot be obeyed, and notes on options that are
//! carried out differently from fio.

use diskperf_fio::job::{
    EngineKind, FileLock, IoEngine, OffsetDistribution, SubmitMode, ThinkEvent, ZoneMode,
};
use diskperf_fio::{Direction, JobDefinition};
use diskperf_fio::{Errors, Problem};

/// Maximum length of a read or write in one system call of Linux.
const TRANSFER_BYTES_MAX: u64 = 0x7fff_f000;
/// Maximum memory of the buffers of one clone, in bytes.
const RING_BUFFERS_BYTES_MAX: u64 = 4 << 30;
const QUEUE_DEPTH_MAX: u32 = 4096;

/// Checks that the options of a job can be obeyed. Each option that changes the I/O and cannot be
/// obeyed gives one error.
pub(super) fn check_support(job: &JobDefinition) -> Result<(), Errors> {
    let refusals = [
        check_engine_options(job),
        super::engines::check_engine(job),
        check_file_options(job),
        check_access_options(job),
        check_rate_options(job),
        check_end_options(job),
    ];
    Errors::fail_if_any(refusals.into_iter().flatten().collect())
}

/// Returns the refusal of an option if a condition holds.
pub(super) fn problem_if(is_so: bool, refusal: impl FnOnce() -> Problem) -> Option<Problem> {
    is_so.then(refusal)
}

fn check_engine_options(job: &JobDefinition) -> Vec<Problem> {
    let engine = &job.engine;
    let bytes = u64::from(super::queue_depth(job)).saturating_mul(job.transfer_bytes_max());
    let refusals = [
        problem_if(engine.depth > QUEUE_DEPTH_MAX, || {
            let label = "more than 4096 requests in flight";
            job.option_error(
                "iodepth",
                "the queue depth is too large",
                label,
                "lower iodepth",
            )
        }),
        problem_if(bytes > RING_BUFFERS_BYTES_MAX, || {
            let label = "buffers of so many blocks take more than 4 GiB";
            let title = "the buffers are too large";
            job.option_error("iodepth", title, label, "lower iodepth or bs")
        }),
        problem_if(job.transfer_bytes_max() > TRANSFER_BYTES_MAX, || {
            let label = "a system call moves at most 2147479552 bytes";
            job.option_error("bs", "the block is too large", label, "use 1g at most")
        }),
    ];
    refusals.into_iter().flatten().collect()
}

fn check_file_options(job: &JobDefinition) -> Vec<Problem> {
    let files = &job.files;
    let only_writes = job.pattern.access.directions() == [Direction::Write];
    let engine = job.engine.engine;
    let is_made_on_open =
        engine == IoEngine::Filecreate || (only_writes && !engine.acts_on_names());
    let refusals = [
        problem_if(files.creates_on_open && !is_made_on_open, || {
            let label = "a file that is created when it is opened has nothing to read or trim";
            job.option_error("create_on_open", "create_on_open", label, "remove it")
        }),
        problem_if(files.unlinks_each_loop && !only_writes, || {
            let label = "unlinked files cannot be read or trimmed in the next pass";
            job.option_error("unlink_each_loop", "unlink_each_loop", label, "remove it")
        }),
    ];
    refusals.into_iter().flatten().collect()
}

fn check_access_options(job: &JobDefinition) -> Vec<Problem> {
    let has_center = |direction: &Direction| match job.random.distribution.get(*direction) {
        OffsetDistribution::Zipf { center, .. }
        | OffsetDistribution::Pareto { center, .. }
        | OffsetDistribution::Normal { center, .. } => center.is_some(),
        OffsetDistribution::Uniform
        | OffsetDistribution::Zoned(_)
        | OffsetDistribution::ZonedBytes(_) => false,
    };
    let directions = job.pattern.access.directions();
    let refusals = [problem_if(directions.iter().any(has_center), || {
        let label = "popular blocks are scattered over the file";
        let title = "a distribution with a center";
        let help = "leave the center out";
        job.option_error("random_distribution", title, label, help)
    })];
    refusals.into_iter().flatten().collect()
}

fn check_rate_options(job: &JobDefinition) -> Vec<Problem> {
    let trims_and_writes = trims_before_writes(job);
    let refusals = [problem_if(
        job.rate.is_limited() && trims_and_writes,
        || {
            let label = "a write follows its trim at once";
            let title = "a rate of trims and writes";
            job.option_error(rate_key(job), title, label, "remove it")
        },
    )];
    refusals.into_iter().flatten().collect()
}

fn trims_before_writes(job: &JobDefinition) -> bool {
    job.pattern.access.directions() == [Direction::Write, Direction::Trim]
}

fn rate_key(job: &JobDefinition) -> &'static str {
    match job.has_option("rate") {
        true => "rate",
        false => "rate_iops",
    }
}

fn check_end_options(job: &JobDefinition) -> Vec<Problem> {
    let steady = &job.steady;
    let samples = steady.window_us / steady.interval_us;
    let refusals = [problem_if(steady.is_enabled && samples == 0, || {
        let label = "a window shorter than one sample";
        let title = "steadystate needs samples to compare";
        job.option_error("steadystate_duration", title, label, "raise ss_dur")
    })];
    refusals.into_iter().flatten().collect()
}

/// Describes what is done differently from fio for a job.
pub(super) fn support_notes(job: &JobDefinition) -> Vec<String> {
    let engine = &job.engine;
    let name = engine.engine.name();
    let through = match engine.engine {
        IoEngine::IoUring => None,
        IoEngine::Mmap
        | IoEngine::Splice
        | IoEngine::Falloc
        | IoEngine::Ftruncate
        | IoEngine::Filecreate
        | IoEngine::Filestat
        | IoEngine::Filedelete
        | IoEngine::Cpuio => super::engines::describe_engine(job),
        IoEngine::Null => Some("ioengine=null asks for the null target: --on null".to_owned()),
        IoEngine::Libaio if engine.is_direct => {
            Some("libaio's I/Os are submitted through io_uring".to_owned())
        }
        IoEngine::Libaio => Some("libaio without direct=1 waits for each I/O: depth 1".to_owned()),
        IoEngine::Posixaio => {
            Some("posixaio's I/Os use threads, as in its own implementation".to_owned())
        }
        IoEngine::Sync
        | IoEngine::Psync
        | IoEngine::Vsync
        | IoEngine::Pvsync
        | IoEngine::Pvsync2 => Some(match engine.submit {
            SubmitMode::Inline => format!("{name}: preadv2 and pwritev2, one at a time"),
            SubmitMode::Offload => format!(
                "{name}: preadv2 and pwritev2 of as many threads as I/Os in flight ({})",
                super::queue_depth(job)
            ),
        }),
    };
    let trims_and_writes = trims_before_writes(job);
    let (sync, steady) = (&job.sync, &job.steady);
    let every = [
        sync.writes_per_fsync,
        sync.writes_per_fdatasync,
        sync.range_sync.writes_per_sync,
    ];
    let syncs = every.into_iter().any(|every| every > 0);
    let notes = [
        through,
        (trims_and_writes && syncs).then(|| {
            "no sync is issued: fio issues none between trims and their writes".to_owned()
        }),
        (trims_and_writes && job.files.count.max(job.files.names.len() as u32) > 1).then(|| {
            "each write follows its trim at once; fio trims a block of each file first".to_owned()
        }),
        (syncs && !trims_and_writes && super::queue_depth(job) > 1 && queues_syncs(engine.engine)).then(|| {
            format!(
                "a sync is issued once when it is due; fio 3.33 with {name} issues it again for each I/O that ends before it"
            )
        }),
        super::keeps_page_cache(job).then(|| {
            "invalidate=0: the page cache stays as earlier jobs and runs left it".to_owned()
        }),
        job.rate.is_limited().then(|| {
            "I/Os of a rate come by the clock, as many as iodepth at once; latency counts from when they were to be issued, where fio counts from when it issued them".to_owned()
        }),
        (job.think.pause_us > 0 && job.think.counted_event == ThinkEvent::Completion).then(|| {
            "at most thinktime_blocks I/Os are in flight".to_owned()
        }),
        (job.data.compressible_percent > 0).then(|| {
            "compressible data is a share of every 4096 bytes".to_owned()
        }),
        (steady.is_enabled && steady.window_us / steady.interval_us == 1).then(|| {
            "a window of one sample is steady at once: the job ends at its first one, as fio's does".to_owned()
        }),
        (job.files.lock != FileLock::None && !super::locks_files(job)).then(|| {
            "lockfile changes nothing: an engine that queues holds the lock while it submits alone, as fio's does".to_owned()
        }),
        super::trims::describe_limits(job),
        has_write_pointers(job).then(|| {
            "each zone is written in order: write pointers begin at the start of each zone, as those of fio on a file or a device without zones; fio 3.33 wants the file to be there before".to_owned()
        }),
        (has_write_pointers(job) && job.pattern.access.includes(Direction::Trim)).then(|| {
            "a trim discards its zone, where fio 3.33 moves the write pointer alone on a file or a device without zones".to_owned()
        }),
        job.files.creates_only.then(|| "create_only: files are made, and no I/O is done".to_owned()),
    ];
    notes.into_iter().flatten().collect()
}

/// Reports whether the zones of a job accept only sequential writes (`zonemode=zbd`).
fn has_write_pointers(job: &JobDefinition) -> bool {
    job.zones.mode == ZoneMode::WritePointers
}

/// Reports whether the syncs of a fio engine are queued like its other requests. A sync of libaio
/// is a call of its own.
fn queues_syncs(engine: IoEngine) -> bool {
    engine.kind() == EngineKind::Queue && engine != IoEngine::Libaio
}
