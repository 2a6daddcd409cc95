//! fio options for run time, rates, job order, end conditions, verification and errors.

use super::{OptionKey, harmless, honoured, read_per_direction};
use crate::job::{
    Criterion, ExitScope, IgnoredErrors, RateProcess, SteadyLimit, ThinkOn, Verification,
};
use crate::reader::excerpt;
use crate::value::{DefaultTimeUnit, Value};
use crate::verify::{BytePattern, Checksum};
use diskperf_diagnostics::Problem;

/// Maximum number of clones of a job in fio.
const CLONES_MAX: u32 = 4096;

pub(super) const OPTIONS: &[OptionKey] = &[
    honoured("name", |job, w| {
        job.name = w.value()?.text().to_owned();
        Ok(())
    }),
    honoured("numjobs", |job, w| {
        job.order.clones = w.value()?.require_single()?.count(1..=CLONES_MAX)?;
        Ok(())
    }),
    honoured("thread", |job, w| {
        job.order.threads = w.flag()?;
        Ok(())
    }),
    honoured("stonewall", |job, w| {
        job.order.stonewall = w.flag()?;
        Ok(())
    })
    .with_aliases(&["wait_for_previous"]),
    honoured("new_group", |job, w| {
        job.order.new_group = w.flag()?;
        Ok(())
    }),
    honoured("wait_for", |job, w| {
        job.order.wait_for = Some(w.value()?.text().to_owned());
        Ok(())
    }),
    honoured("exitall", |job, w| {
        job.order.exit_all = w.flag()?;
        Ok(())
    }),
    honoured("exit_what", |job, w| {
        let choices = [
            ("group", ExitScope::Group),
            ("stonewall", ExitScope::Stonewall),
            ("all", ExitScope::All),
        ];
        job.order.exit_scope = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    honoured("exitall_on_error", |job, w| {
        job.order.exit_all_on_error = w.flag()?;
        Ok(())
    }),
    honoured("flow", |job, w| {
        job.order.flow = parse_flow_weight(&w.value()?.require_single()?)?;
        Ok(())
    }),
    honoured("flow_id", |job, w| {
        job.order.flow_id = w.value()?.require_single()?.count(..)?;
        Ok(())
    }),
    honoured("flow_sleep", |job, w| {
        job.order.flow_sleep_us = w.value()?.require_single()?.count(..)?;
        Ok(())
    }),
    honoured("runtime", |job, w| {
        job.times.runtime_us = w
            .value()?
            .require_single()?
            .time_us(DefaultTimeUnit::Seconds)?;
        Ok(())
    })
    .with_aliases(&["timeout"]),
    honoured("time_based", |job, w| {
        job.times.time_based = w.flag()?;
        Ok(())
    }),
    honoured("ramp_time", |job, w| {
        job.times.ramp_us = w
            .value()?
            .require_single()?
            .time_us(DefaultTimeUnit::Seconds)?;
        Ok(())
    }),
    honoured("startdelay", |job, w| {
        job.times.start_delay_us = parse_delay(&w.value()?)?;
        Ok(())
    }),
    honoured("rate", |job, w| {
        read_per_direction(
            &w.value()?.split_numbers()?,
            &mut job.rate.bytes_per_s,
            parse_positive,
        )
    }),
    honoured("rate_min", |job, w| {
        read_per_direction(
            &w.value()?.split_numbers()?,
            &mut job.rate.least_bytes_per_s,
            parse_positive,
        )
    })
    .with_aliases(&["ratemin"]),
    honoured("rate_iops", |job, w| {
        read_per_direction(
            &w.value()?.split_numbers()?,
            &mut job.rate.iops,
            parse_positive_count,
        )
    }),
    honoured("rate_iops_min", |job, w| {
        read_per_direction(
            &w.value()?.split_numbers()?,
            &mut job.rate.least_iops,
            parse_positive_count,
        )
    }),
    honoured("rate_process", |job, w| {
        let choices = [
            ("linear", RateProcess::Linear),
            ("poisson", RateProcess::Poisson),
        ];
        job.rate.process = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    honoured("rate_cycle", |job, w| {
        job.rate.cycle_ms = parse_milliseconds(&w.value()?)?;
        Ok(())
    })
    .with_aliases(&["ratecycle"]),
    honoured("rate_ignore_thinktime", |job, w| {
        job.rate.ignore_think = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("thinktime", |job, w| {
        job.think.time_us = parse_short_time(&w.value()?, DefaultTimeUnit::Microseconds)?;
        Ok(())
    }),
    honoured("thinktime_spin", |job, w| {
        job.think.spin_us = parse_short_time(&w.value()?, DefaultTimeUnit::Microseconds)?;
        Ok(())
    }),
    honoured("thinktime_blocks", |job, w| {
        job.think.after_ios = w.value()?.require_single()?.count(1..)?;
        Ok(())
    }),
    honoured("thinktime_blocks_type", |job, w| {
        let choices = [("complete", ThinkOn::Completion), ("issue", ThinkOn::Issue)];
        job.think.counts = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    honoured("thinktime_iotime", |job, w| {
        job.think.after_us = parse_short_time(&w.value()?, DefaultTimeUnit::Seconds)?.into();
        Ok(())
    }),
    honoured("latency_target", |job, w| {
        job.latency.target_us = w
            .value()?
            .require_single()?
            .time_us(DefaultTimeUnit::Microseconds)?;
        Ok(())
    }),
    honoured("latency_window", |job, w| {
        job.latency.window_us = w
            .value()?
            .require_single()?
            .time_us(DefaultTimeUnit::Microseconds)?;
        Ok(())
    }),
    honoured("latency_percentile", |job, w| {
        job.latency.percentile = w.value()?.float(0.0..=100.0)?;
        Ok(())
    }),
    honoured("latency_run", |job, w| {
        job.latency.keep_running = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("max_latency", |job, w| {
        job.latency.most_us = w
            .value()?
            .require_single()?
            .time_us(DefaultTimeUnit::Microseconds)?;
        Ok(())
    }),
    honoured("steadystate", |job, w| {
        let (criterion, slope, limit) = parse_steady_state(&w.value()?)?;
        let steady = &mut job.steady;
        (steady.criterion, steady.slope, steady.limit) = (criterion, slope, limit);
        steady.is_asked = true;
        Ok(())
    })
    .with_aliases(&["ss"]),
    honoured("steadystate_duration", |job, w| {
        job.steady.window_us = w
            .value()?
            .require_single()?
            .time_us(DefaultTimeUnit::Seconds)?;
        Ok(())
    })
    .with_aliases(&["ss_dur"]),
    honoured("steadystate_ramp_time", |job, w| {
        job.steady.ramp_us = w
            .value()?
            .require_single()?
            .time_us(DefaultTimeUnit::Seconds)?;
        Ok(())
    })
    .with_aliases(&["ss_ramp"]),
    honoured("steadystate_check_interval", |job, w| {
        job.steady.interval_us = w
            .value()?
            .require_single()?
            .time_us(DefaultTimeUnit::Seconds)?
            .max(1);
        Ok(())
    })
    .with_aliases(&["ss_interval"]),
    honoured("verify", |job, w| {
        job.verify.kind = w.value()?.parse_choice(&VERIFICATIONS)?;
        Ok(())
    }),
    honoured("do_verify", |job, w| {
        job.verify.read_back = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("verify_only", |job, w| {
        job.verify.only = w.flag()?;
        Ok(())
    }),
    honoured("verify_fatal", |job, w| {
        job.verify.fatal = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("verify_interval", |job, w| {
        job.verify.interval_bytes = w.value()?.require_single()?.count(80..)?;
        Ok(())
    }),
    honoured("verify_offset", |job, w| {
        job.verify.offset_bytes = w.value()?.require_single()?.count(40..)?;
        Ok(())
    }),
    honoured("verify_backlog", |job, w| {
        job.verify.backlog = w.value()?.require_single()?.number(..)?;
        Ok(())
    }),
    honoured("verify_backlog_batch", |job, w| {
        job.verify.backlog_batch = Some(w.value()?.require_single()?.count(..)?);
        Ok(())
    }),
    honoured("continue_on_error", |job, w| {
        let [read, write, verify] = parse_error_kinds(&w.value()?)?;
        job.errors.read |= read;
        job.errors.write |= write;
        job.errors.verify |= verify;
        Ok(())
    }),
    honoured("ignore_error", |job, w| {
        parse_ignored_errors(&w.value()?, &mut job.errors)
    }),
    honoured("verify_pattern", |job, w| {
        job.verify.pattern = Some(parse_verify_pattern(&w.value()?)?);
        Ok(())
    }),
    honoured("trim_percentage", |job, w| {
        let percent = w.value()?.require_single()?.count(0..=100)?;
        job.verify.trims.percent = percent as u8;
        Ok(())
    }),
    honoured("trim_backlog", |job, w| {
        job.verify.trims.backlog = w.value()?.require_single()?.count(..)?;
        Ok(())
    }),
    honoured("trim_backlog_batch", |job, w| {
        job.verify.trims.batch = w.value()?.require_single()?.count(..)?;
        Ok(())
    }),
    honoured("trim_verify_zero", |job, w| {
        job.verify.trims.must_be_zero = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("verify_dump", |job, w| {
        job.verify.dump = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("verify_state_save", |job, w| {
        job.verify.state_save = Some(w.value()?.boolean()?);
        Ok(())
    }),
    honoured("verify_state_load", |job, w| {
        job.verify.state_load = w.value()?.boolean()?;
        Ok(())
    }),
    harmless("verify_async", "each worker compares its own reads"),
    harmless("verify_async_cpus", "each worker compares its own reads"),
    harmless(
        "experimental_verify",
        "diskperf reads blocks back from its record of writes",
    ),
];

/// Reads a flow weight. fio stores a negative weight as an unsigned 32-bit number.
fn parse_flow_weight(share: &Value<'_>) -> Result<u32, Problem> {
    if !share.text().trim_start().starts_with('-') {
        return share.count(0..=1000);
    }
    let weight = share.signed()? as u32;
    let title = format!("a negative flow is the weight {weight}");
    share.warn(
        title,
        "as with fio, the jobs of this flow_id beside it starve; write weights from 1 to 1000",
    );
    Ok(weight)
}

fn parse_positive(value: &Value<'_>) -> Result<Option<u64>, Problem> {
    value.number(..).map(|rate| (rate > 0).then_some(rate))
}

fn parse_positive_count(value: &Value<'_>) -> Result<Option<u32>, Problem> {
    value.count(..).map(|rate| (rate > 0).then_some(rate))
}

/// Reads a time that fio stores as 32-bit microseconds.
fn parse_short_time(value: &Value<'_>, bare: DefaultTimeUnit) -> Result<u32, Problem> {
    let time_us = value.require_single()?.time_us(bare)?;
    u32::try_from(time_us).map_err(|_| {
        let title = format!("{} is at most 71 minutes", value.key());
        value.problem(title, "fio keeps 32 bits of this many microseconds")
    })
}

/// Reads a number of milliseconds, for which fio accepts size suffixes.
fn parse_milliseconds(value: &Value<'_>) -> Result<u32, Problem> {
    value.require_single()?.count(1..).map_err(|problem| {
        problem.help(format!(
            "{} is in milliseconds, without a unit",
            value.key()
        ))
    })
}

/// Reads a start delay such as `5`, or a range such as `1-3`.
fn parse_delay(value: &Value<'_>) -> Result<(u64, u64), Problem> {
    let (low, high) = value.require_single()?.split_once(&['-', ':']);
    let low = low.time_us(DefaultTimeUnit::Seconds)?;
    let high = high.map_or(Ok(low), |high| high.time_us(DefaultTimeUnit::Seconds))?;
    Ok((low.min(high), low.max(high)))
}

/// Reads a steady-state criterion such as `iops_slope:0.3%`.
fn parse_steady_state(value: &Value<'_>) -> Result<(Criterion, bool, SteadyLimit), Problem> {
    let choices = [
        ("iops", (Criterion::Iops, false)),
        ("iops_slope", (Criterion::Iops, true)),
        ("bw", (Criterion::Bandwidth, false)),
        ("bw_slope", (Criterion::Bandwidth, true)),
        ("lat", (Criterion::Latency, false)),
        ("lat_slope", (Criterion::Latency, true)),
    ];
    let (word, limit) = value.split_once(&[':']);
    let (criterion, slope) = word.parse_choice(&choices)?;
    let Some(limit) = limit else {
        let problem = value.problem(
            "the steady-state criterion has no limit",
            "fio drops the job",
        );
        return Err(problem.help(format!("write `{}:LIMIT` or `{0}:LIMIT%`", word.text())));
    };
    let limit = match (limit.text().strip_suffix('%'), criterion) {
        (Some(digits), _) => {
            SteadyLimit::Percent(limit.subvalue(0..digits.len()).float(0.0..=100.0)?)
        }
        (None, Criterion::Iops) => SteadyLimit::Absolute(limit.float(0.0..)?),
        (None, Criterion::Bandwidth) => SteadyLimit::Absolute(limit.number(..)? as f64),
        (None, Criterion::Latency) => {
            SteadyLimit::Absolute(limit.time_us(DefaultTimeUnit::Microseconds)? as f64 * 1000.0)
        }
    };
    Ok((criterion, slope, limit))
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

fn parse_verify_pattern(value: &Value<'_>) -> Result<BytePattern, Problem> {
    BytePattern::parse(value.text()).map_err(|error| {
        let title = format!("verify_pattern has no bytes in `{}`", excerpt(value.text()));
        value
            .problem(title, error.to_string())
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
fn parse_ignored_errors(value: &Value<'_>, policy: &mut IgnoredErrors) -> Result<(), Problem> {
    let kinds = value.split(&[',']);
    if kinds.len() > 3 {
        let problem = value.problem(
            "more than three lists of errors",
            "reads, writes, verification",
        );
        return Err(problem.help("write `READS,WRITES,VERIFICATION`, each like `EIO:ENOSPC`"));
    }
    let errnos = &mut policy.errnos;
    let lists = [
        (&mut policy.read, &mut errnos.read),
        (&mut policy.write, &mut errnos.write),
        (&mut policy.verify, &mut errnos.verify),
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

fn parse_errno(value: &Value<'_>) -> Result<i32, Problem> {
    let text = value.text();
    let named = ERRORS.iter().position(|name| *name == text);
    let number = named.map(|index| index as i32 + 1);
    let number = number.or_else(|| text.parse().ok().filter(|number| *number > 0));
    number.ok_or_else(|| {
        let problem = value.problem(format!("fio knows no error `{text}`"), "not an error");
        problem.help("name one of the first 34, as EIO or ENOSPC, or give its number")
    })
}

/// Reads which kinds of errors the job ignores: those of reads, writes and verification.
fn parse_error_kinds(value: &Value<'_>) -> Result<[bool; 3], Problem> {
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
