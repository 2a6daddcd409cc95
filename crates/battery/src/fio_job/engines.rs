//! Limits of the fio engines that read and write in ways of their own, and notes on them for the
//! report.

use super::support::problem_if;
use diskperf_fio::job::{CpuMode, IoEngine, Verification};
use diskperf_fio::plan::PlannedFile;
use diskperf_fio::{Direction, Errors, JobDefinition, Problem};

/// Returns an error for each option that these fio engines cannot obey.
pub(super) fn check_engine(job: &JobDefinition) -> Vec<Problem> {
    let engine = job.engine.engine;
    let does = |direction| job.pattern.access.includes(direction);
    let only = |direction| job.pattern.access.directions() == [direction];
    let copies = matches!(engine, IoEngine::Mmap | IoEngine::Splice);
    let sync = &job.sync;
    let syncs = [
        ("fsync", sync.writes_per_fsync > 0),
        ("fdatasync", sync.writes_per_fdatasync > 0),
        ("sync_file_range", sync.range_sync.writes_per_sync > 0),
    ];
    let synced = syncs.into_iter().find(|(_, is_asked)| *is_asked);
    let refuse = |key: &str, title: &str, label: &str, help: &str| {
        let title = format!("{title} with ioengine={}", engine.name());
        job.option_error(key, &title, label, help)
    };
    let refusals = [
        problem_if(copies && does(Direction::Trim), || {
            let label = "this engine has no call that trims a file, and fio's fails";
            refuse("rw", "a trim", label, "use psync or io_uring")
        }),
        problem_if(copies && job.verify.has_trims(), || {
            let label = "this engine has no call that trims a file";
            refuse("trim_percentage", "a trim", label, "use psync or io_uring")
        }),
        problem_if(
            engine == IoEngine::Ftruncate && !only(Direction::Write),
            || {
                let label = "the engine has writes alone: fio's fails with EINVAL";
                refuse("rw", "no write", label, "use rw=write or rw=randwrite")
            },
        ),
        synced.filter(|_| engine.acts_on_files()).map(|(key, _)| {
            let label = match engine.acts_on_names() {
                true => "there is no data to sync, and fio's does nothing",
                false => "the engine has no syncs: fio's fails with EINVAL",
            };
            refuse(key, "a sync", label, "remove it")
        }),
        problem_if(
            engine.acts_on_files() && job.iolog.replayed_path.is_some(),
            || {
                let label = "a log has reads and writes, which this engine does not make";
                refuse("read_iolog", "read_iolog", label, "use psync or io_uring")
            },
        ),
        problem_if(
            engine.acts_on_files() && job.verify.kind != Verification::None,
            || {
                let label = "this engine moves no data that could be compared";
                refuse("verify", "verify", label, "use psync or io_uring")
            },
        ),
        problem_if(
            job.iolog.replayed_path.is_some() && job.verify.kind != Verification::None,
            || {
                let label = "the blocks that a log reads may never have been written";
                refuse(
                    "verify",
                    "verify with read_iolog",
                    label,
                    "remove one of them",
                )
            },
        ),
        problem_if(
            engine.acts_on_names() && job.files.unlinks_each_loop,
            || {
                let label = "the files exist only for the calls of one pass";
                refuse("unlink_each_loop", "unlink_each_loop", label, "remove it")
            },
        ),
        problem_if(
            engine == IoEngine::Filedelete && repeats_passes(job),
            || {
                let label = "a file that was deleted cannot be deleted again: fio's fails";
                let key = match job.durations.is_time_based {
                    true => "time_based",
                    false if job.target.loops > 1 => "loops",
                    false => "io_size",
                };
                refuse(key, "a second pass", label, "give more files by nrfiles=")
            },
        ),
    ];
    let appends = check_appends(job);
    refusals.into_iter().flatten().chain(appends).collect()
}

/// Reports whether a job runs further passes after its first.
fn repeats_passes(job: &JobDefinition) -> bool {
    job.durations.is_time_based || job.target.loops > 1 || job.target.io_size.is_some()
}

fn check_appends(job: &JobDefinition) -> Vec<Problem> {
    let engine = job.engine.engine;
    let refuse = |label: &str, help: &str| {
        let key = "file_append";
        job.option_error(key, key, label, help)
    };
    let refusals = [
        problem_if(
            job.pattern.access.directions() != [Direction::Write],
            || {
                let label = "a file has nothing to read or trim beyond its end";
                refuse(label, "use rw=write or rw=randwrite")
            },
        ),
        problem_if(engine == IoEngine::Mmap || engine.acts_on_files(), || {
            let label = "this engine does not extend a file";
            refuse(label, "use psync or io_uring")
        }),
    ];
    let refusals = refusals.into_iter().flatten();
    refusals.filter(|_| job.files.is_appended).collect()
}

/// Checks that the files of a job fit its engine and its log.
pub(super) fn check_files(job: &JobDefinition, files: &[Vec<PlannedFile>]) -> Result<(), Errors> {
    check_blocks(job, files)?;
    let has_blank = |file: &PlannedFile| file.path.contains(char::is_whitespace);
    match files.iter().flatten().find(|file| has_blank(file)) {
        Some(file) if job.iolog.written_path.is_some() => {
            let title = format!("a log of `{}`", file.path);
            let label = "fio cannot read a log in which a name has a blank";
            let help = "give a `filename` without blanks";
            Err(Errors::from(job.option_error(
                "write_iolog",
                &title,
                label,
                help,
            )))
        }
        Some(_) | None => Ok(()),
    }
}

/// Rejects a file of several blocks for an engine that makes one call for each file. fio counts all
/// the blocks but makes one call.
fn check_blocks(job: &JobDefinition, files: &[Vec<PlannedFile>]) -> Result<(), Errors> {
    let block_bytes = job.block_bytes_min();
    let blocks = |file: &PlannedFile| file.region.length_bytes / block_bytes;
    let most = files.iter().flatten().map(blocks).max().unwrap_or(0);
    if !job.engine.engine.acts_on_names() || most <= 1 {
        return Ok(());
    }
    let name = job.engine.engine.name();
    let title = format!("a file of {most} blocks with ioengine={name}");
    let label = format!("fio counts {most} I/Os for one call on a name");
    let help = "make bs as large as each file";
    let keys = ["bs", "filesize", "size"];
    let key = keys
        .into_iter()
        .find(|key| job.has_option(key))
        .unwrap_or("bs");
    Err(Errors::from(job.option_error(key, &title, &label, help)))
}

/// Describes how an engine does its I/O, if the report must mention it.
pub(super) fn describe_engine(job: &JobDefinition) -> Option<String> {
    let random = match job.pattern.access.is_random() {
        true => "random",
        false => "sequential",
    };
    match job.engine.engine {
        IoEngine::Mmap => Some(format!(
            "mmap copies to and from the page cache and advises the kernel of {random} access; a \
             sync is msync of the whole file{}",
            match job.engine.is_direct {
                true =>
                    "; direct=1 writes each I/O out and unmaps its pages, which stay in the page cache",
                false => "",
            }
        )),
        IoEngine::Splice => Some("splice moves the data through a pipe, within the worker".to_owned()),
        IoEngine::Falloc | IoEngine::Ftruncate => Some(format!(
            "{} moves no data: its bytes are those of the ranges that it names",
            job.engine.engine.name()
        )),
        IoEngine::Filecreate | IoEngine::Filestat | IoEngine::Filedelete => Some(format!(
            "{} moves no data: an I/O of bs bytes is one call on a name",
            job.engine.engine.name()
        )),
        IoEngine::Cpuio => Some(match job.engine.cpu_load.mode {
            CpuMode::Loop => "cpuio uses the CPU and does no I/O".to_owned(),
            CpuMode::Sort => "cpuio does no I/O: it uses the processor in a loop for cpuchunks, where fio sorts an array".to_owned(),
        }),
        IoEngine::Sync
        | IoEngine::Psync
        | IoEngine::Vsync
        | IoEngine::Pvsync
        | IoEngine::Pvsync2
        | IoEngine::Libaio
        | IoEngine::Posixaio
        | IoEngine::IoUring
        | IoEngine::Null => None,
    }
}
