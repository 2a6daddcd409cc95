//! fio options for I/O engines, queue depth and submission.

use super::{OptionKey, harmless, honoured};
use crate::elsewhere::{self, ForeignEngine};
use crate::job::{CpuMode, Engine, SubmitMode};
use crate::value::Value;
use diskperf_diagnostics::Problem;

/// Engines that can poll for completions.
const POLLING_ENGINES: &[Engine] = &[Engine::IoUring, Engine::Pvsync2];
/// Engines that can fail instead of blocking (`nowait`).
const NOWAIT_ENGINES: &[Engine] = &[Engine::IoUring, Engine::Pvsync2, Engine::Libaio];
const CPU_ENGINES: &[Engine] = &[Engine::Cpuio];
/// Engines that can set a priority for each I/O.
const COMMAND_PRIORITY: &[Engine] = &[Engine::IoUring, Engine::Libaio];

pub(super) const OPTIONS: &[OptionKey] = &[
    honoured("ioengine", |job, w| {
        (job.engine.engine, job.engine.elsewhere) = parse_engine(&w.value()?)?;
        Ok(())
    }),
    honoured("iodepth", |job, w| {
        job.engine.depth = w.value()?.require_single()?.count(1..)?;
        Ok(())
    }),
    honoured("iodepth_batch", |job, w| {
        job.engine.batch = w.value()?.require_single()?.count(..)?;
        Ok(())
    })
    .with_aliases(&["iodepth_batch_submit"]),
    honoured("iodepth_batch_complete_min", |job, w| {
        job.engine.complete_min = w.value()?.require_single()?.count(..)?;
        Ok(())
    })
    .with_aliases(&["iodepth_batch_complete"]),
    honoured("iodepth_batch_complete_max", |job, w| {
        let most = w.value()?.require_single()?.count(..)?;
        job.engine.complete_max = (most > 0).then_some(most);
        Ok(())
    }),
    honoured("iodepth_low", |job, w| {
        let low = w.value()?.require_single()?.count(..)?;
        job.engine.depth_low = (low > 0).then_some(low);
        Ok(())
    }),
    honoured("io_submit_mode", |job, w| {
        let choices = [
            ("inline", SubmitMode::Inline),
            ("offload", SubmitMode::Offload),
        ];
        job.engine.submit = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    honoured("direct", |job, w| {
        job.engine.direct = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("buffered", |job, w| {
        job.engine.direct = !w.value()?.boolean()?;
        Ok(())
    }),
    honoured("hipri", |job, w| {
        job.engine.polled = w.flag()?;
        Ok(())
    })
    .for_engines(POLLING_ENGINES),
    honoured("fixedbufs", |job, w| {
        job.engine.fixed_buffers = w.flag()?;
        Ok(())
    })
    .for_engines(&[Engine::IoUring]),
    honoured("registerfiles", |job, w| {
        job.engine.registered_files = w.flag()?;
        Ok(())
    })
    .for_engines(&[Engine::IoUring]),
    honoured("sqthread_poll", |job, w| {
        job.engine.kernel_polls = w.flag()?;
        Ok(())
    })
    .for_engines(&[Engine::IoUring]),
    harmless("sqthread_poll_cpu", "the kernel chooses the processor")
        .for_engines(&[Engine::IoUring]),
    harmless("nonvectored", "I/O is never vectored").for_engines(&[Engine::IoUring]),
    harmless(
        "userspace_reap",
        "completions are taken without a system call",
    )
    .for_engines(&[Engine::Libaio]),
    harmless("thp", "huge pages change no I/O").for_engines(&[Engine::Mmap]),
    harmless("stat_type", "each is stat(2), which finds the same file")
        .for_engines(&[Engine::Filestat]),
    harmless("cmdprio_percentage", "all I/O has one priority").for_engines(COMMAND_PRIORITY),
    harmless("cmdprio_class", "all I/O has one priority").for_engines(COMMAND_PRIORITY),
    harmless("cmdprio", "all I/O has one priority").for_engines(COMMAND_PRIORITY),
    harmless("cmdprio_bssplit", "all I/O has one priority").for_engines(COMMAND_PRIORITY),
    honoured("hipri_percentage", |_, w| {
        let share = w.value()?.require_single()?;
        match share.count(0..=100)? {
            100 => Ok(()),
            _ => {
                let label = "either every I/O is polled for, or none";
                let problem = share.problem("a share of polled I/O is not supported", label);
                Err(problem.help("write 100 with `hipri`, or remove both"))
            }
        }
    })
    .for_engines(&[Engine::Pvsync2]),
    honoured("uncached", |_, w| {
        let uncached = w.value()?.require_single()?;
        match uncached.count(..)? {
            0 => Ok(()),
            _ => {
                let label = "I/O goes through the page cache, or past it";
                let problem = uncached.problem("RWF_UNCACHED is not supported", label);
                Err(problem.help("write `direct=1` in its place"))
            }
        }
    })
    .for_engines(&[Engine::IoUring, Engine::Pvsync2]),
    harmless(
        "nowait",
        "an I/O that has to wait does so, where RWF_NOWAIT ends it with EAGAIN",
    )
    .for_engines(NOWAIT_ENGINES),
    harmless(
        "force_async",
        "the kernel chooses which I/Os its own threads submit; the drive gets the same ones",
    )
    .for_engines(&[Engine::IoUring]),
    honoured("cpuload", |job, w| {
        // fio takes what is above 100 for 100.
        job.engine.cpu.load_percent = w.value()?.require_single()?.count(..)?.min(100);
        Ok(())
    })
    .for_engines(CPU_ENGINES),
    honoured("cpuchunks", |job, w| {
        job.engine.cpu.chunk_us = w.value()?.require_single()?.count(1..)?;
        Ok(())
    })
    .for_engines(CPU_ENGINES),
    honoured("cpumode", |job, w| {
        let choices = [("noop", CpuMode::Loop), ("qsort", CpuMode::Sort)];
        job.engine.cpu.mode = w.value()?.parse_choice(&choices)?;
        Ok(())
    })
    .for_engines(CPU_ENGINES),
    honoured("exit_on_io_done", |job, w| {
        job.engine.cpu.exits_with_io = w.value()?.boolean()?;
        Ok(())
    })
    .for_engines(CPU_ENGINES),
    honoured("serialize_overlap", |job, w| {
        job.engine.serialize_overlap = w.value()?.boolean()?;
        Ok(())
    }),
];

const ENGINES: [Engine; 17] = [
    Engine::Sync,
    Engine::Psync,
    Engine::Vsync,
    Engine::Pvsync,
    Engine::Pvsync2,
    Engine::Mmap,
    Engine::Splice,
    Engine::Falloc,
    Engine::Ftruncate,
    Engine::Filecreate,
    Engine::Filestat,
    Engine::Filedelete,
    Engine::Libaio,
    Engine::Posixaio,
    Engine::IoUring,
    Engine::Null,
    Engine::Cpuio,
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
pub(super) fn engine_with_option(name: &str) -> Option<&'static str> {
    let with_option = OTHER_ENGINE_OPTIONS
        .iter()
        .find(|(_, names)| names.contains(&name));
    with_option.map(|(engine, _)| *engine)
}

const OLD_ENGINE_NAMES: [(&str, Engine); 2] =
    [("aio", Engine::Libaio), ("linuxaio", Engine::Libaio)];

fn parse_engine(value: &Value<'_>) -> Result<(Engine, Option<&'static ForeignEngine>), Problem> {
    let name = value.text();
    if let Some(elsewhere) = elsewhere::find_by_name(name) {
        return Ok((elsewhere.same_load_as, Some(elsewhere)));
    }
    if OTHER_ENGINES.contains(&name) {
        let title = format!("the engine `{name}` is not supported");
        let names = ENGINES.map(Engine::name).join(", ");
        let problem = value.problem(title, "fio has it, diskperf has not");
        return Err(problem.help(format!("these are: {names}")));
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
            let problem = rest.problem(
                "an engine takes nothing behind a colon",
                "fio leaves it out and says nothing",
            );
            Err(problem.help(format!("write `ioengine={}`", engine.name())))
        }
    }
}
