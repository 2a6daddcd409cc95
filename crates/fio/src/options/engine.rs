//! fio options for I/O engines, queue depth and submission.

use super::{OptionKey, applied_option, ineffective_option};
use crate::elsewhere::{self, ForeignEngine};
use crate::job::{CpuMode, IoEngine, SubmitMode};
use crate::value::OptionValue;
use diskperf_diagnostics::Problem;

const POLLING_ENGINES: &[IoEngine] = &[IoEngine::IoUring, IoEngine::Pvsync2];
/// Engines that can fail instead of blocking (`nowait`).
const NOWAIT_ENGINES: &[IoEngine] = &[IoEngine::IoUring, IoEngine::Pvsync2, IoEngine::Libaio];
const CPU_ENGINES: &[IoEngine] = &[IoEngine::Cpuio];
/// Engines that can set a priority for each I/O.
const PRIORITY_ENGINES: &[IoEngine] = &[IoEngine::IoUring, IoEngine::Libaio];

pub(super) const OPTIONS: &[OptionKey] = &[
    applied_option("ioengine", |job, w| {
        (job.engine.engine, job.engine.foreign_engine) = parse_engine(&w.value()?)?;
        Ok(())
    }),
    applied_option("iodepth", |job, w| {
        job.engine.depth = w.value()?.require_single()?.parse_count(1..)?;
        Ok(())
    }),
    applied_option("iodepth_batch", |job, w| {
        job.engine.submit_batch = w.value()?.require_single()?.parse_count(..)?;
        Ok(())
    })
    .with_aliases(&["iodepth_batch_submit"]),
    applied_option("iodepth_batch_complete_min", |job, w| {
        job.engine.completions_min = w.value()?.require_single()?.parse_count(..)?;
        Ok(())
    })
    .with_aliases(&["iodepth_batch_complete"]),
    applied_option("iodepth_batch_complete_max", |job, w| {
        let most = w.value()?.require_single()?.parse_count(..)?;
        job.engine.completions_max = (most > 0).then_some(most);
        Ok(())
    }),
    applied_option("iodepth_low", |job, w| {
        let low = w.value()?.require_single()?.parse_count(..)?;
        job.engine.depth_low = (low > 0).then_some(low);
        Ok(())
    }),
    applied_option("io_submit_mode", |job, w| {
        let choices = [
            ("inline", SubmitMode::Inline),
            ("offload", SubmitMode::Offload),
        ];
        job.engine.submit = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    applied_option("direct", |job, w| {
        job.engine.is_direct = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("buffered", |job, w| {
        job.engine.is_direct = !w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("hipri", |job, w| {
        job.engine.is_polled = w.parse_flag()?;
        Ok(())
    })
    .for_engines(POLLING_ENGINES),
    applied_option("fixedbufs", |job, w| {
        job.engine.has_fixed_buffers = w.parse_flag()?;
        Ok(())
    })
    .for_engines(&[IoEngine::IoUring]),
    applied_option("registerfiles", |job, w| {
        job.engine.has_registered_files = w.parse_flag()?;
        Ok(())
    })
    .for_engines(&[IoEngine::IoUring]),
    applied_option("sqthread_poll", |job, w| {
        job.engine.has_kernel_polling = w.parse_flag()?;
        Ok(())
    })
    .for_engines(&[IoEngine::IoUring]),
    ineffective_option("sqthread_poll_cpu", "the kernel selects the processor")
        .for_engines(&[IoEngine::IoUring]),
    ineffective_option("nonvectored", "I/O is never vectored").for_engines(&[IoEngine::IoUring]),
    ineffective_option(
        "userspace_reap",
        "diskperf reaps completions without a system call",
    )
    .for_engines(&[IoEngine::Libaio]),
    ineffective_option("thp", "huge pages do not change the I/O").for_engines(&[IoEngine::Mmap]),
    ineffective_option("stat_type", "all use stat(2), which finds the same file")
        .for_engines(&[IoEngine::Filestat]),
    ineffective_option("cmdprio_percentage", "all I/O has the same priority")
        .for_engines(PRIORITY_ENGINES),
    ineffective_option("cmdprio_class", "all I/O has the same priority")
        .for_engines(PRIORITY_ENGINES),
    ineffective_option("cmdprio", "all I/O has the same priority").for_engines(PRIORITY_ENGINES),
    ineffective_option("cmdprio_bssplit", "all I/O has the same priority")
        .for_engines(PRIORITY_ENGINES),
    applied_option("hipri_percentage", |_, w| {
        let share = w.value()?.require_single()?;
        match share.parse_count(0..=100)? {
            100 => Ok(()),
            _ => {
                let label = "diskperf polls for all I/Os or for none";
                let problem = share.error("a share of polled I/O is not supported", label);
                Err(problem.help("write 100 with `hipri`, or remove both"))
            }
        }
    })
    .for_engines(&[IoEngine::Pvsync2]),
    applied_option("uncached", |_, w| {
        let uncached = w.value()?.require_single()?;
        match uncached.parse_count(..)? {
            0 => Ok(()),
            _ => {
                let label = "I/O either uses the page cache or bypasses it";
                let problem = uncached.error("RWF_UNCACHED is not supported", label);
                Err(problem.help("write `direct=1` instead"))
            }
        }
    })
    .for_engines(&[IoEngine::IoUring, IoEngine::Pvsync2]),
    ineffective_option(
        "nowait",
        "an I/O that must wait waits; with RWF_NOWAIT it fails with EAGAIN",
    )
    .for_engines(NOWAIT_ENGINES),
    ineffective_option(
        "force_async",
        "the kernel decides which I/Os its threads submit; the drive receives the same I/Os",
    )
    .for_engines(&[IoEngine::IoUring]),
    applied_option("cpuload", |job, w| {
        // fio takes what is above 100 for 100.
        job.engine.cpu_load.load_percent = w.value()?.require_single()?.parse_count(..)?.min(100);
        Ok(())
    })
    .for_engines(CPU_ENGINES),
    applied_option("cpuchunks", |job, w| {
        job.engine.cpu_load.chunk_us = w.value()?.require_single()?.parse_count(1..)?;
        Ok(())
    })
    .for_engines(CPU_ENGINES),
    applied_option("cpumode", |job, w| {
        let choices = [("noop", CpuMode::Loop), ("qsort", CpuMode::Sort)];
        job.engine.cpu_load.mode = w.value()?.parse_choice(&choices)?;
        Ok(())
    })
    .for_engines(CPU_ENGINES),
    applied_option("exit_on_io_done", |job, w| {
        job.engine.cpu_load.exits_with_io = w.value()?.parse_boolean()?;
        Ok(())
    })
    .for_engines(CPU_ENGINES),
    applied_option("serialize_overlap", |job, w| {
        job.engine.serializes_overlap = w.value()?.parse_boolean()?;
        Ok(())
    }),
];

const ENGINES: [IoEngine; 17] = [
    IoEngine::Sync,
    IoEngine::Psync,
    IoEngine::Vsync,
    IoEngine::Pvsync,
    IoEngine::Pvsync2,
    IoEngine::Mmap,
    IoEngine::Splice,
    IoEngine::Falloc,
    IoEngine::Ftruncate,
    IoEngine::Filecreate,
    IoEngine::Filestat,
    IoEngine::Filedelete,
    IoEngine::Libaio,
    IoEngine::Posixaio,
    IoEngine::IoUring,
    IoEngine::Null,
    IoEngine::Cpuio,
];

/// fio's engines that are not supported here: they address no storage, or transfer data in
/// unsupported ways.
const OTHER_ENGINES: [&str; 8] = [
    "e4defrag",
    "exec",
    "libcufile",
    "libzbc",
    "mtd",
    "net",
    "netsplice",
    "rdma",
];

/// Options that exist only under unsupported engines, listed by engine.
const OTHER_ENGINE_OPTIONS: &[(&str, &[&str])] = &[
    ("e4defrag", &["donorname", "inplace"]),
    (
        "exec",
        &["program", "arguments", "grace_time", "std_redirect"],
    ),
    ("filestat", &["stat_type"]),
    ("mtd", &["skip_bad"]),
    (
        "net",
        &[
            "hostname",
            "port",
            "protocol",
            "proto",
            "nodelay",
            "listen",
            "pingpong",
            "interface",
            "ttl",
            "window_size",
            "mss",
        ],
    ),
    ("rdma", &["bindname", "verb"]),
];

/// Returns an unsupported engine that has an option of this name.
pub(super) fn find_engine_by_option(name: &str) -> Option<&'static str> {
    let with_option = OTHER_ENGINE_OPTIONS
        .iter()
        .find(|(_, names)| names.contains(&name));
    with_option.map(|(engine, _)| *engine)
}

const OLD_ENGINE_NAMES: [(&str, IoEngine); 2] =
    [("aio", IoEngine::Libaio), ("linuxaio", IoEngine::Libaio)];

fn parse_engine(
    value: &OptionValue<'_>,
) -> Result<(IoEngine, Option<&'static ForeignEngine>), Problem> {
    let name = value.text();
    if let Some(elsewhere) = elsewhere::find_by_name(name) {
        return Ok((elsewhere.equivalent_engine, Some(elsewhere)));
    }
    if OTHER_ENGINES.contains(&name) {
        let title = format!("the engine `{name}` is not supported");
        let names = ENGINES.map(IoEngine::name).join(", ");
        let problem = value.error(title, "fio has it, diskperf has not");
        return Err(problem.help(format!("supported engines: {names}")));
    }
    let (word, rest) = value.split_once(&[':']);
    let older = OLD_ENGINE_NAMES
        .iter()
        .find(|(older, _)| *older == word.text());
    let engine = match older {
        Some((_, engine)) => *engine,
        None => word.parse_choice(&ENGINES.map(|engine| (engine.name(), engine)))?,
    };
    match rest {
        None => Ok((engine, None)),
        Some(rest) => {
            let problem = rest.error(
                "an engine has no value after a colon",
                "fio leaves it out and says nothing",
            );
            Err(problem.help(format!("write `ioengine={}`", engine.name())))
        }
    }
}
