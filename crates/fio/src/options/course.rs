//! fio options for run time, rates, job order, end conditions, verification and errors.

use super::{OptionKey, applied_option, ineffective_option, parse_per_direction};
use crate::job::{
    ArrivalProcess, EndedJobs, IgnoredErrors, SteadyLimit, SteadyMetric, SteadyState, ThinkEvent,
    Verification,
};
use crate::reader::shorten_text;
use crate::value::{DefaultTimeUnit, OptionValue};
use crate::verify::{BytePattern, Checksum};
use diskperf_diagnostics::Problem;

/// Maximum number of clones of a job in fio.
const CLONES_MAX: u32 = 4096;

pub(super) const OPTIONS: &[OptionKey] = &[
    applied_option("name", |job, w| {
        job.name = w.value()?.text().to_owned();
        Ok(())
    }),
    applied_option("numjobs", |job, w| {
        job.order.clone_count = w.value()?.require_single()?.parse_count(1..=CLONES_MAX)?;
        Ok(())
    }),
    applied_option("thread", |job, w| {
        job.order.uses_threads = w.parse_flag()?;
        Ok(())
    }),
    applied_option("stonewall", |job, w| {
        job.order.waits_for_earlier_jobs = w.parse_flag()?;
        Ok(())
    })
    .with_aliases(&["wait_for_previous"]),
    applied_option("new_group", |job, w| {
        job.order.starts_group = w.parse_flag()?;
        Ok(())
    }),
    applied_option("wait_for", |job, w| {
        job.order.awaited_job = Some(w.value()?.text().to_owned());
        Ok(())
    }),
    applied_option("exitall", |job, w| {
        job.order.ends_others = w.parse_flag()?;
        Ok(())
    }),
    applied_option("exit_what", |job, w| {
        let choices = [
            ("group", EndedJobs::Group),
            ("stonewall", EndedJobs::Stonewall),
            ("all", EndedJobs::All),
        ];
        job.order.ended_jobs = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    applied_option("exitall_on_error", |job, w| {
        job.order.ends_others_on_error = w.parse_flag()?;
        Ok(())
    }),
    applied_option("flow", |job, w| {
        job.order.flow_weight = parse_flow_weight(&w.value()?.require_single()?)?;
        Ok(())
    }),
    applied_option("flow_id", |job, w| {
        job.order.flow_id = w.value()?.require_single()?.parse_count(..)?;
        Ok(())
    }),
    applied_option("flow_sleep", |job, w| {
        job.order.flow_sleep_us = w.value()?.require_single()?.parse_count(..)?;
        Ok(())
    }),
    applied_option("runtime", |job, w| {
        job.durations.runtime_us = w
            .value()?
            .require_single()?
            .parse_time_us(DefaultTimeUnit::Seconds)?;
        Ok(())
    })
    .with_aliases(&["timeout"]),
    applied_option("time_based", |job, w| {
        job.durations.is_time_based = w.parse_flag()?;
        Ok(())
    }),
    applied_option("ramp_time", |job, w| {
        job.durations.ramp_us = w
            .value()?
            .require_single()?
            .parse_time_us(DefaultTimeUnit::Seconds)?;
        Ok(())
    }),
    applied_option("startdelay", |job, w| {
        job.durations.start_delay_us = parse_delay(&w.value()?)?;
        Ok(())
    }),
    applied_option("rate", |job, w| {
        parse_per_direction(
            &w.value()?.split_numbers()?,
            &mut job.rate.bytes_per_s,
            parse_positive,
        )
    }),
    applied_option("rate_min", |job, w| {
        parse_per_direction(
            &w.value()?.split_numbers()?,
            &mut job.rate.bytes_per_s_min,
            parse_positive,
        )
    })
    .with_aliases(&["ratemin"]),
    applied_option("rate_iops", |job, w| {
        parse_per_direction(
            &w.value()?.split_numbers()?,
            &mut job.rate.iops,
            parse_positive_count,
        )
    }),
    applied_option("rate_iops_min", |job, w| {
        parse_per_direction(
            &w.value()?.split_numbers()?,
            &mut job.rate.iops_min,
            parse_positive_count,
        )
    }),
    applied_option("rate_process", |job, w| {
        let choices = [
            ("linear", ArrivalProcess::Linear),
            ("poisson", ArrivalProcess::Poisson),
        ];
        job.rate.arrival_process = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    applied_option("rate_cycle", |job, w| {
        job.rate.cycle_ms = parse_milliseconds(&w.value()?)?;
        Ok(())
    })
    .with_aliases(&["ratecycle"]),
    applied_option("rate_ignore_thinktime", |job, w| {
        job.rate.ignores_think_time = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("thinktime", |job, w| {
        job.think.pause_us = parse_short_time(&w.value()?, DefaultTimeUnit::Microseconds)?;
        Ok(())
    }),
    applied_option("thinktime_spin", |job, w| {
        job.think.busy_us = parse_short_time(&w.value()?, DefaultTimeUnit::Microseconds)?;
        Ok(())
    }),
    applied_option("thinktime_blocks", |job, w| {
        job.think.ios_between = w.value()?.require_single()?.parse_count(1..)?;
        Ok(())
    }),
    applied_option("thinktime_blocks_type", |job, w| {
        let choices = [
            ("complete", ThinkEvent::Completion),
            ("issue", ThinkEvent::Issue),
        ];
        job.think.counted_event = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    applied_option("thinktime_iotime", |job, w| {
        job.think.interval_us = parse_short_time(&w.value()?, DefaultTimeUnit::Seconds)?.into();
        Ok(())
    }),
    applied_option("latency_target", |job, w| {
        job.latency.target_us = w
            .value()?
            .require_single()?
            .parse_time_us(DefaultTimeUnit::Microseconds)?;
        Ok(())
    }),
    applied_option("latency_window", |job, w| {
        job.latency.window_us = w
            .value()?
            .require_single()?
            .parse_time_us(DefaultTimeUnit::Microseconds)?;
        Ok(())
    }),
    applied_option("latency_percentile", |job, w| {
        job.latency.percentile = w.value()?.parse_float(0.0..=100.0)?;
        Ok(())
    }),
    applied_option("latency_run", |job, w| {
        job.latency.keep_running = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("max_latency", |job, w| {
        job.latency.limit_us = w
            .value()?
            .require_single()?
            .parse_time_us(DefaultTimeUnit::Microseconds)?;
        Ok(())
    }),
    applied_option("steadystate", |job, w| {
        parse_steady_state(&w.value()?, &mut job.steady)
    })
    .with_aliases(&["ss"]),
    applied_option("steadystate_duration", |job, w| {
        job.steady.window_us = w
            .value()?
            .require_single()?
            .parse_time_us(DefaultTimeUnit::Seconds)?;
        Ok(())
    })
    .with_aliases(&["ss_dur"]),
    applied_option("steadystate_ramp_time", |job, w| {
        job.steady.ramp_us = w
            .value()?
            .require_single()?
            .parse_time_us(DefaultTimeUnit::Seconds)?;
        Ok(())
    })
    .with_aliases(&["ss_ramp"]),
    applied_option("steadystate_check_interval", |job, w| {
        job.steady.interval_us = w
            .value()?
            .require_single()?
            .parse_time_us(DefaultTimeUnit::Seconds)?
            .max(1);
        Ok(())
    })
    .with_aliases(&["ss_interval"]),
    applied_option("verify", |job, w| {
        job.verify.kind = w.value()?.parse_choice(&VERIFICATIONS)?;
        Ok(())
    }),
    applied_option("do_verify", |job, w| {
        job.verify.reads_back = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("verify_only", |job, w| {
        job.verify.only_verifies = w.parse_flag()?;
        Ok(())
    }),
    applied_option("verify_fatal", |job, w| {
        job.verify.ends_on_mismatch = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("verify_interval", |job, w| {
        job.verify.interval_bytes = w.value()?.require_single()?.parse_count(80..)?;
        Ok(())
    }),
    applied_option("verify_offset", |job, w| {
        job.verify.offset_bytes = w.value()?.require_single()?.parse_count(40..)?;
        Ok(())
    }),
    applied_option("verify_backlog", |job, w| {
        job.verify.backlog = w.value()?.require_single()?.parse_number_in(..)?;
        Ok(())
    }),
    applied_option("verify_backlog_batch", |job, w| {
        job.verify.backlog_batch = Some(w.value()?.require_single()?.parse_count(..)?);
        Ok(())
    }),
    applied_option("continue_on_error", |job, w| {
        let [read, write, verify] = parse_error_kinds(&w.value()?)?;
        job.errors.ignores_read_errors |= read;
        job.errors.ignores_write_errors |= write;
        job.errors.ignores_verify_errors |= verify;
        Ok(())
    }),
    applied_option("ignore_error", |job, w| {
        parse_ignored_errors(&w.value()?, &mut job.errors)
    }),
    applied_option("verify_pattern", |job, w| {
        job.verify.pattern = Some(parse_verify_pattern(&w.value()?)?);
        Ok(())
    }),
    applied_option("trim_percentage", |job, w| {
        let percent = w.value()?.require_single()?.parse_count(0..=100)?;
        job.verify.verified_trims.percent = percent as u8;
        Ok(())
    }),
    applied_option("trim_backlog", |job, w| {
        job.verify.verified_trims.backlog = w.value()?.require_single()?.parse_count(..)?;
        Ok(())
    }),
    applied_option("trim_backlog_batch", |job, w| {
        job.verify.verified_trims.batch = w.value()?.require_single()?.parse_count(..)?;
        Ok(())
    }),
    applied_option("trim_verify_zero", |job, w| {
        job.verify.verified_trims.must_be_zero = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("verify_dump", |job, w| {
        job.verify.dumps_mismatches = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("verify_state_save", |job, w| {
        job.verify.saves_state = Some(w.value()?.parse_boolean()?);
        Ok(())
    }),
    applied_option("verify_state_load", |job, w| {
        job.verify.loads_state = w.value()?.parse_boolean()?;
        Ok(())
    }),
    ineffective_option("verify_async", "each worker compares its own reads"),
    ineffective_option("verify_async_cpus", "each worker compares its own reads"),
    ineffective_option(
        "experimental_verify",
        "diskperf reads blocks back from its record of writes",
    ),
];

/// Reads a flow weight. fio stores a negative weight as an unsigned 32-bit number.
fn parse_flow_weight(share: &OptionValue<'_>) -> Result<u32, Problem> {
    if !share.text().trim_start().starts_with('-') {
        return share.parse_count(0..=1000);
    }
    let weight = share.parse_signed()? as u32;
    let title = format!("a negative flow is the weight {weight}");
    share.warn(
        title,
        "as with fio, the jobs of this flow_id beside it starve; write weights from 1 to 1000",
    );
    Ok(weight)
}

fn parse_positive(value: &OptionValue<'_>) -> Result<Option<u64>, Problem> {
    value
        .parse_number_in(..)
        .map(|rate| (rate > 0).then_some(rate))
}

fn parse_positive_count(value: &OptionValue<'_>) -> Result<Option<u32>, Problem> {
    value.parse_count(..).map(|rate| (rate > 0).then_some(rate))
}

/// Reads a time that fio stores as 32-bit microseconds.
fn parse_short_time(value: &OptionValue<'_>, bare: DefaultTimeUnit) -> Result<u32, Problem> {
    let time_us = value.require_single()?.parse_time_us(bare)?;
    u32::try_from(time_us).map_err(|_| {
        let title = format!("{} is at most 71 minutes", value.key());
        value.error(title, "fio keeps 32 bits of this many microseconds")
    })
}

/// Reads a number of milliseconds, for which fio accepts size suffixes.
fn parse_milliseconds(value: &OptionValue<'_>) -> Result<u32, Problem> {
    value.require_single()?.parse_count(1..).map_err(|problem| {
        problem.help(format!(
            "{} is in milliseconds, without a unit",
            value.key()
        ))
    })
}

/// Reads a start delay such as `5`, or a range such as `1-3`.
fn parse_delay(value: &OptionValue<'_>) -> Result<(u64, u64), Problem> {
    let (low, high) = value.require_single()?.split_once(&['-', ':']);
    let low = low.parse_time_us(DefaultTimeUnit::Seconds)?;
    let high = high.map_or(Ok(low), |high| high.parse_time_us(DefaultTimeUnit::Seconds))?;
    Ok((low.min(high), low.max(high)))
}

/// Reads a steady-state criterion such as `iops_slope:0.3%`, and enables the detection.
fn parse_steady_state(value: &OptionValue<'_>, steady: &mut SteadyState) -> Result<(), Problem> {
    let choices = [
        ("iops", (SteadyMetric::Iops, false)),
        ("iops_slope", (SteadyMetric::Iops, true)),
        ("bw", (SteadyMetric::Bandwidth, false)),
        ("bw_slope", (SteadyMetric::Bandwidth, true)),
        ("lat", (SteadyMetric::Latency, false)),
        ("lat_slope", (SteadyMetric::Latency, true)),
    ];
    let (word, limit) = value.split_once(&[':']);
    let (metric, uses_slope) = word.parse_choice(&choices)?;
    let Some(limit) = limit else {
        let problem = value.error(
            "the steady-state criterion has no limit",
            "fio drops the job",
        );
        return Err(problem.help(format!("write `{}:LIMIT` or `{0}:LIMIT%`", word.text())));
    };
    let limit = match (limit.text().strip_suffix('%'), metric) {
        (Some(digits), _) => {
            SteadyLimit::Percent(limit.subvalue(0..digits.len()).parse_float(0.0..=100.0)?)
        }
        (None, SteadyMetric::Iops) => SteadyLimit::Absolute(limit.parse_float(0.0..)?),
        (None, SteadyMetric::Bandwidth) => SteadyLimit::Absolute(limit.parse_number_in(..)? as f64),
        (None, SteadyMetric::Latency) => SteadyLimit::Absolute(
            limit.parse_time_us(DefaultTimeUnit::Microseconds)? as f64 * 1000.0,
        ),
    };
    (steady.metric, steady.uses_slope, steady.limit) = (metric, uses_slope, limit);
    steady.is_enabled = true;
    Ok(())
}

const VERIFICATIONS: [(&str, Verification); 19] = {
    use Checksum::*;
    use Verification::Checksum as With;
    [
        ("0", Verification::None),
        ("md5", With(Md5)),
        ("crc64", With(Crc64)),
        ("crc32", With(Crc32)),
        ("crc32c", With(Crc32c)),
        ("crc32c-intel", With(Crc32c)),
        ("crc16", With(Crc16)),
        ("crc7", With(Crc7)),
        ("sha1", With(Sha1)),
        ("sha256", With(Sha256)),
        ("sha512", With(Sha512)),
        ("sha3-224", With(Sha3Of224)),
        ("sha3-256", With(Sha3Of256)),
        ("sha3-384", With(Sha3Of384)),
        ("sha3-512", With(Sha3Of512)),
        ("xxhash", With(Xxhash)),
        ("meta", Verification::Header),
        ("null", Verification::Null),
        ("pattern", Verification::Pattern),
    ]
};

fn parse_verify_pattern(value: &OptionValue<'_>) -> Result<BytePattern, Problem> {
    BytePattern::parse(value.text()).map_err(|error| {
        let title = format!(
            "verify_pattern has no bytes in `{}`",
            shorten_text(value.text())
        );
        value
            .error(title, error.to_string())
            .help("write for instance `verify_pattern=0xdeadbeef` or `verify_pattern=\"text\"%o`")
    })
}

/// Error names that fio knows, in the order of their error numbers from 1.
const ERRORS: [&str; 34] = [
    "EPERM", "ENOENT", "ESRCH", "EINTR", "EIO", "ENXIO", "E2BIG", "ENOEXEC", "EBADF", "ECHILD",
    "EAGAIN", "ENOMEM", "EACCES", "EFAULT", "ENOTBLK", "EBUSY", "EEXIST", "EXDEV", "ENODEV",
    "ENOTDIR", "EISDIR", "EINVAL", "ENFILE", "EMFILE", "ENOTTY", "ETXTBSY", "EFBIG", "ENOSPC",
    "ESPIPE", "EROFS", "EMLINK", "EPIPE", "EDOM", "ERANGE",
];

/// Reads ignored errors such as `EIO:ENOSPC,28`, with lists for reads, writes and verification.
fn parse_ignored_errors(
    value: &OptionValue<'_>,
    policy: &mut IgnoredErrors,
) -> Result<(), Problem> {
    let kinds = value.split(&[',']);
    if kinds.len() > 3 {
        let problem = value.error(
            "more than three lists of errors",
            "reads, writes, verification",
        );
        return Err(problem.help("write `READS,WRITES,VERIFICATION`, each like `EIO:ENOSPC`"));
    }
    let errnos = &mut policy.ignored_errnos;
    let lists = [
        (&mut policy.ignores_read_errors, &mut errnos.read),
        (&mut policy.ignores_write_errors, &mut errnos.write),
        (&mut policy.ignores_verify_errors, &mut errnos.verify),
    ];
    for (list, (is_asked, errnos)) in kinds.iter().zip(lists) {
        if list.text().is_empty() {
            continue;
        }
        let parts = list.split(&[':']);
        *errnos = parts.iter().map(parse_errno).collect::<Result<_, _>>()?;
        *is_asked = true;
    }
    Ok(())
}

fn parse_errno(value: &OptionValue<'_>) -> Result<i32, Problem> {
    let text = value.text();
    let named = ERRORS.iter().position(|name| *name == text);
    let number = named.map(|index| index as i32 + 1);
    let number = number.or_else(|| text.parse().ok().filter(|number| *number > 0));
    number.ok_or_else(|| {
        let problem = value.error(format!("fio knows no error `{text}`"), "not an error");
        problem.help("name one of the first 34, as EIO or ENOSPC, or give its number")
    })
}

/// Reads which kinds of errors the job ignores: those of reads, writes and verification.
fn parse_error_kinds(value: &OptionValue<'_>) -> Result<[bool; 3], Problem> {
    value.parse_choice(&[
        ("none", [false, false, false]),
        ("0", [false, false, false]),
        ("read", [true, false, false]),
        ("write", [false, true, false]),
        ("io", [true, true, false]),
        ("verify", [false, false, true]),
        ("all", [true, true, true]),
        ("1", [true, true, true]),
    ])
}
