//! Caps as text for people.

use super::{
    Cap, CapOutlook, CapVerdict, CappedUnit, NoCapReason, RowCap, WINDOWS_S_MIN, find_row_cap,
    recognise_result,
};
use diskperf_timeline::units::format_nanoseconds;
use diskperf_timeline::{Nanoseconds, ProgramResult, Run};

/// Describes the verdict on the probe of a result; `None` for a program that does not probe.
pub fn describe_caps(run: &Run, result: &ProgramResult) -> Option<String> {
    Some(match recognise_result(run, result)? {
        CapVerdict::Capped(cap) => describe_cap(&cap),
        CapVerdict::NotCapped { reason } => describe_reason(reason),
    })
}

/// Describes the cap at which a result was measured; `None` if it was measured at none.
pub fn describe_row(run: &Run, result: &ProgramResult) -> Option<String> {
    let found = find_row_cap(run, result)?;
    Some(format!(
        "at the {}: the figure is that of the limit and not of the storage, and it cannot get worse while the limit decides",
        describe_limit(&found.cap)
    ))
}

/// Describes the cap of one side of a comparison: `no limit`, or the limit with the rate at it.
pub fn describe_side(cap: Option<&RowCap>) -> String {
    cap.map_or("no limit".to_owned(), |found| describe_limit(&found.cap))
}

fn describe_limit(cap: &Cap) -> String {
    let rate = format_rate(cap.unit, cap.per_s);
    match &cap.owner {
        Some(owner) => format!("limit of {rate} ({})", owner.owner),
        None => format!("limit of {rate}"),
    }
}

fn describe_cap(cap: &Cap) -> String {
    let interval = cap.interval.map_or(String::new(), |interval| {
        format!(
            " ({}-{})",
            format_amount(cap.unit, interval.min),
            format_amount(cap.unit, interval.max)
        )
    });
    let rate = format_rate(cap.unit, cap.per_s);
    let mut text = match cap.is_certain {
        true => format!("limit of {rate}{interval}"),
        false => format!("behaves as a limit of {rate}{interval}"),
    };
    text += &match &cap.owner {
        Some(owner) => format!(", that of {}", owner.owner),
        None => ", the owner of which is not known".to_owned(),
    };
    if let Some(ended) = cap.ended_burst {
        text += &format!(
            "; a burst of {} ended after {}: a bucket of {}",
            format_rate(cap.unit, ended.burst_per_s),
            format_seconds(ended.end_s),
            format_units(cap.unit, ended.credits)
        );
    }
    text += &match cap.outlook {
        CapOutlook::Steady => String::new(),
        CapOutlook::Burst {
            full_credits_s,
            base_per_s,
        } => format!(
            "; this is burst: full credits last for about {}, then {}",
            format_seconds(full_credits_s),
            format_rate(cap.unit, base_per_s)
        ),
        CapOutlook::Excluded {
            base_per_s,
            credits_min,
        } => format!(
            "; no bucket smaller than {} stands behind it, if its base is {} or less",
            format_units(cap.unit, credits_min),
            format_rate(cap.unit, base_per_s)
        ),
    };
    text
}

fn describe_reason(reason: NoCapReason) -> String {
    match reason {
        NoCapReason::TooShort { windows_s } => format!(
            "no limit is recognised: the windows last {windows_s:.0} s together, and a limit needs {WINDOWS_S_MIN:.0} s; give more program.rounds"
        ),
        NoCapReason::GeneratorBound { processor_share } => format!(
            "no limit is recognised: the load generator uses {:.0} % of a processor, so that its own ceiling is too near; give a larger program.block_bytes",
            100.0 * processor_share
        ),
        NoCapReason::DepthMatters { ratio } => format!(
            "no limit at this depth: twice the depth gives {ratio:.2} times the rate"
        ),
        NoCapReason::SizeMatters { ratio } => format!(
            "no limit: requests of twice the size have {ratio:.2} times the rate, where a limit gives 1 or 0.5"
        ),
        NoCapReason::Irregular {
            share_near_median,
            dispersion,
        } => format!(
            "no limit: the rate varies as that of a device does ({:.0} % of the windows are within 1 % of their median; variance of the counts {dispersion:.2} of their mean)",
            100.0 * share_near_median
        ),
        NoCapReason::Noisy => {
            "whether there is a limit is not known: the rates vary too much; give more program.rounds, or measure when the machine is idle".to_owned()
        }
    }
}

fn format_amount(unit: CappedUnit, amount: f64) -> String {
    match unit {
        CappedUnit::Requests => format!("{amount:.0}"),
        CappedUnit::Bytes => format!("{:.2}", amount / 1e6),
    }
}

fn format_rate(unit: CappedUnit, per_s: f64) -> String {
    let amount = format_amount(unit, per_s);
    match unit {
        CappedUnit::Requests => format!("{amount} requests/s"),
        CappedUnit::Bytes => format!("{amount} MB/s"),
    }
}

fn format_units(unit: CappedUnit, amount: f64) -> String {
    let text = format_amount(unit, amount);
    match unit {
        CappedUnit::Requests => format!("{text} requests"),
        CappedUnit::Bytes => format!("{text} MB"),
    }
}

fn format_seconds(seconds: f64) -> String {
    match seconds {
        long if long >= 120.0 => format!("{:.0} min", long / 60.0),
        short => format_nanoseconds(Nanoseconds((short * 1e9) as u64)),
    }
}
