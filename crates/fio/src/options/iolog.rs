//! Options to record a job's I/O in a log and to replay a log.

use super::{OptionKey, applied_option, ineffective_option, rejected_option};
use crate::job::SkippedKinds;
use crate::value::{OptionValue, WrittenOption};
use diskperf_diagnostics::Problem;

const NO_MERGE: &str = "diskperf does not merge blktrace files";
const MERGE: &str = "use `diskperf replay` with several files";
const ONLY_WITH_MERGE: &str = "fio too does nothing for it without merge_blktrace_file";

pub(super) const OPTIONS: &[OptionKey] = &[
    applied_option("write_iolog", |job, w| {
        job.iolog.written_path = Some(parse_path(&w.value()?)?);
        Ok(())
    }),
    applied_option("read_iolog", |job, w| {
        job.iolog.replayed_path = Some(parse_path(&w.value()?)?);
        Ok(())
    }),
    ineffective_option(
        "read_iolog_chunked",
        "diskperf reads the log before the job starts",
    ),
    applied_option("replay_no_stall", |job, w| {
        job.iolog.is_unpaced = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("replay_time_scale", |job, w| {
        job.iolog.speed_percent = w.value()?.require_single()?.parse_count(1..)?;
        Ok(())
    }),
    applied_option("replay_redirect", |job, w| {
        job.iolog.redirect_target = Some(parse_path(&w.value()?)?);
        Ok(())
    }),
    applied_option("replay_scale", |job, w| {
        parse_scale(&mut job.iolog.offset_divisor, w)
    }),
    applied_option("replay_align", |job, w| {
        let value = w.value()?.require_single()?;
        let align_bytes = value.parse_number_in(..)?;
        if align_bytes > 0 && !align_bytes.is_power_of_two() {
            let problem = value.error("replay_align must be a power of two", "fio drops the job");
            return Err(problem.help("write a power of two, such as 512 or 4k"));
        }
        job.iolog.align_bytes = align_bytes.max(1);
        Ok(())
    }),
    applied_option("replay_skip", |job, w| {
        job.iolog.skipped_kinds = parse_skips(&w.value()?)?;
        Ok(())
    }),
    rejected_option("merge_blktrace_file", NO_MERGE, MERGE),
    ineffective_option("merge_blktrace_scalars", ONLY_WITH_MERGE),
    ineffective_option("merge_blktrace_iters", ONLY_WITH_MERGE),
];

fn parse_path(value: &OptionValue<'_>) -> Result<String, Problem> {
    match value.text() {
        "" => Err(value.error("empty path", "a file name is missing")),
        path => Ok(path.to_owned()),
    }
}

/// Reads the kinds of I/O that a trace replay skips, such as `read,trim`.
fn parse_skips(value: &OptionValue<'_>) -> Result<SkippedKinds, Problem> {
    let choices = [("read", 0), ("write", 1), ("trim", 2), ("sync", 3)];
    let mut skips = SkippedKinds::default();
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
    *scale = written
        .value()?
        .require_single()?
        .parse_number_in(..)?
        .max(1);
    Ok(())
}
