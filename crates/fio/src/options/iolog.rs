//! Options to record a job's I/O in a log and to replay a log.

use super::{OptionKey, harmless, honoured, refused};
use crate::job::Skips;
use crate::value::{Value, WrittenOption};
use diskperf_diagnostics::Problem;

const NO_MERGE: &str = "traces of blktrace are not merged";
const MERGE: &str = "use `diskperf replay` with several files";
const ONLY_WITH_MERGE: &str = "fio too does nothing for it without merge_blktrace_file";

pub(super) const OPTIONS: &[OptionKey] = &[
    honoured("write_iolog", |job, w| {
        job.iolog.write = Some(parse_path(&w.value()?)?);
        Ok(())
    }),
    honoured("read_iolog", |job, w| {
        job.iolog.read = Some(parse_path(&w.value()?)?);
        Ok(())
    }),
    harmless(
        "read_iolog_chunked",
        "the log is read before the job starts",
    ),
    honoured("replay_no_stall", |job, w| {
        job.iolog.is_unpaced = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("replay_time_scale", |job, w| {
        job.iolog.speed_percent = w.value()?.require_single()?.count(1..)?;
        Ok(())
    }),
    honoured("replay_redirect", |job, w| {
        job.iolog.redirect = Some(parse_path(&w.value()?)?);
        Ok(())
    }),
    honoured("replay_scale", |job, w| {
        parse_scale(&mut job.iolog.scale, w)
    }),
    honoured("replay_align", |job, w| {
        let value = w.value()?.require_single()?;
        let align_bytes = value.number(..)?;
        if align_bytes > 0 && !align_bytes.is_power_of_two() {
            let problem = value.problem("replay_align is a power of two", "fio drops the job");
            return Err(problem.help("write 512, 4k or the like"));
        }
        job.iolog.align_bytes = align_bytes.max(1);
        Ok(())
    }),
    honoured("replay_skip", |job, w| {
        job.iolog.skips = parse_skips(&w.value()?)?;
        Ok(())
    }),
    refused("merge_blktrace_file", NO_MERGE, MERGE),
    harmless("merge_blktrace_scalars", ONLY_WITH_MERGE),
    harmless("merge_blktrace_iters", ONLY_WITH_MERGE),
];

fn parse_path(value: &Value<'_>) -> Result<String, Problem> {
    match value.text() {
        "" => Err(value.problem("a path is empty", "no file has this name")),
        path => Ok(path.to_owned()),
    }
}

/// Reads the kinds of I/O that a trace replay skips, such as `read,trim`.
fn parse_skips(value: &Value<'_>) -> Result<Skips, Problem> {
    let choices = [("read", 0), ("write", 1), ("trim", 2), ("sync", 3)];
    let mut skips = Skips::default();
    for part in value.split(&[',']) {
        match part.parse_choice(&choices)? {
            0 => skips.reads = true,
            1 => skips.writes = true,
            2 => skips.trims = true,
            _ => skips.syncs = true,
        }
    }
    Ok(skips)
}

/// Reads the divisor of replayed offsets; 0 means 1.
fn parse_scale(scale: &mut u64, written: &WrittenOption<'_>) -> Result<(), Problem> {
    *scale = written.value()?.require_single()?.number(..)?.max(1);
    Ok(())
}
