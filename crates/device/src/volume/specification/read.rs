//! Reader of cloud volumes from the catalogue: rates by the rules of the vendors.

use super::VolumeSpecification;
use crate::volume::charge::ChargeRules;
use crate::volume::limit::{Burst, DirectionRates, LimitSpecification, Pacing};
use crate::volume::service::ServiceQuantiles;
use crate::volume::touch::FirstTouch;
use diskperf_catalogue::Reader;
use diskperf_sim::Time;
use diskperf_spans::VolumeLimit;

/// Sector size of all volumes, in bytes.
const SECTOR_BYTES: u64 = 4096;
/// Maximum rate that an entry may have, in requests or bytes per second.
const RATE_MAX: f64 = 1e11;
/// Bytes of a gibibyte.
const GIB: u64 = 1 << 30;

/// Reads the specification of a cloud volume from an entry of the catalogue.
pub(super) fn read_volume(reader: &mut Reader<'_>) -> VolumeSpecification {
    let tier = reader.optional_text("tier", "size and rates of the volume, by the vendor's name");
    if let Some(tier) = tier {
        reader.select("tiers", &tier);
    }
    let instance = reader.text(
        "instance",
        "type of the instance that the volume is attached to, which has limits of its own",
    );
    reader.select("instances", &instance);
    let size_gib = reader.integer(
        "size_gib",
        1..=65_536,
        "size of the volume in GiB; programs see 16 TiB at most",
    );
    check_size(reader, size_gib);
    let requests = read_request_rates(reader, size_gib);
    let bytes = read_byte_rates(reader, size_gib, &requests);
    let mut limits = Vec::new();
    if reader.flag("volume_limits", "whether the limits of the volume hold") {
        limits.extend(build_limit(VolumeLimit::VolumeRequests, requests));
        limits.extend(build_limit(VolumeLimit::VolumeBytes, bytes));
    }
    let of_instance = read_instance(reader);
    if reader.flag("instance_limits", "whether the limits of the instance hold") {
        limits.extend(of_instance);
    }
    let shares = reader.integers(
        "service_shares_ppm",
        0..=1_000_000,
        "shares of requests, in millionths, at which the service times are given",
    );
    VolumeSpecification {
        sectors: (size_gib * (GIB / SECTOR_BYTES)).min(u64::from(u32::MAX)),
        sector_bytes: SECTOR_BYTES as u32,
        charge_rules: read_charge_rules(reader),
        limits,
        pacing: read_pacing(reader),
        read_service: read_service(reader, &shares, "read_service_us"),
        write_service: read_service(reader, &shares, "write_service_us"),
        queue_depth: reader.integer(
            "queue_depth",
            1..=65_536,
            "queue depth: requests that the volume accepts, in service or waiting",
        ) as u32,
        first_touch: read_first_touch(reader),
    }
}

/// Checks the size of a volume against the sizes that are sold.
fn check_size(reader: &mut Reader<'_>, size_gib: u64) {
    let mut bound = |key: &str, doc: &str| reader.optional_integer(key, 1..=65_536, doc);
    let least = bound("size_gib_min", "smallest size that is sold, in GiB");
    let most = bound("size_gib_max", "largest size that is sold, in GiB");
    let (least, most) = (least.unwrap_or(1), most.unwrap_or(65_536));
    if !(least..=most).contains(&size_gib) {
        let message = format!("such volumes have {least} to {most} GiB");
        reader.fail("size_gib", &message);
    }
}

/// Rates of a limit as an entry gives them, per second.
#[derive(Clone, Copy, Default)]
struct LimitRates {
    read: f64,
    write: f64,
    burst: f64,
    credits: f64,
    credits_share: f64,
}

fn rate(reader: &mut Reader<'_>, key: &str, doc: &str) -> Option<f64> {
    reader.optional_number(key, 0.0..=RATE_MAX, doc)
}

fn read_request_rates(reader: &mut Reader<'_>, size_gib: u64) -> LimitRates {
    let gib = size_gib as f64;
    let given = rate(
        reader,
        "iops",
        "requests per second of any size, included or provisioned",
    );
    let per_gib = rate(
        reader,
        "iops_per_gib",
        "additional requests per second for each GiB",
    );
    let least = rate(
        reader,
        "iops_min",
        "lower bound of the requests per second of a size",
    );
    let most = rate(
        reader,
        "iops_max",
        "upper bound of the requests per second of a size",
    );
    let read_per_gib = rate(
        reader,
        "read_iops_per_gib",
        "reads per second for each GiB, if they differ from writes",
    );
    let read_most = rate(
        reader,
        "read_iops_max",
        "upper bound of the reads per second",
    );
    let burst = rate(
        reader,
        "burst_iops",
        "requests per second while credits last",
    );
    let credits = rate(
        reader,
        "burst_requests",
        "credits of requests that a volume holds",
    );
    check_provisioned_requests(reader, size_gib, given);
    let base = |per_gib: Option<f64>, most: Option<f64>| {
        let sum = given.unwrap_or(0.0) + per_gib.unwrap_or(0.0) * gib;
        sum.max(least.unwrap_or(0.0)).min(most.unwrap_or(RATE_MAX))
    };
    let write = base(per_gib, most);
    let read = match read_per_gib {
        Some(_) => base(read_per_gib, read_most.or(most)),
        None => write,
    };
    let burst = burst.unwrap_or(0.0);
    let seconds = burst_seconds(reader);
    LimitRates {
        read,
        write,
        burst,
        credits: credits.unwrap_or((burst - write).max(0.0) * seconds),
        credits_share: credits_share(reader),
    }
}

fn burst_seconds(reader: &mut Reader<'_>) -> f64 {
    let doc = "credits as the time for which a full volume sustains its burst rate, earned at the base rate";
    reader
        .optional_number("burst_credits_s", 0.0..=1e9, doc)
        .unwrap_or(0.0)
}

fn credits_share(reader: &mut Reader<'_>) -> f64 {
    let doc = "share of the credits that the volume and the instance have at the start";
    reader.number("credits_at_start_share", 0.0..=1.0, doc)
}

/// Checks provisioned requests per second against what a volume of the size may have.
fn check_provisioned_requests(reader: &mut Reader<'_>, size_gib: u64, given: Option<f64>) {
    let included = rate(
        reader,
        "iops_included",
        "requests per second that need no provisioning",
    );
    let limit = rate(
        reader,
        "iops_limit",
        "upper bound of provisioned requests per second",
    );
    let per_gib = rate(
        reader,
        "iops_limit_per_gib",
        "upper bound of provisioned requests per second for each GiB",
    );
    let most = limit
        .unwrap_or(RATE_MAX)
        .min(per_gib.unwrap_or(RATE_MAX) * size_gib as f64)
        .max(included.unwrap_or(0.0));
    if given.is_some_and(|given| given > most) {
        let message = format!("a volume of {size_gib} GiB may have {most} requests/s at most");
        reader.fail("iops", &message);
    }
}

fn read_byte_rates(reader: &mut Reader<'_>, size_gib: u64, requests: &LimitRates) -> LimitRates {
    let gib = size_gib as f64;
    let given = rate(
        reader,
        "bytes_per_s",
        "bytes per second of any size, included or provisioned",
    );
    let per_gib = rate(
        reader,
        "bytes_per_s_per_gib",
        "additional bytes per second for each GiB",
    );
    let per_request = rate(
        reader,
        "bytes_per_s_per_iops",
        "additional bytes per second for each request per second",
    );
    let least = rate(
        reader,
        "bytes_per_s_min",
        "lower bound of the bytes per second",
    );
    let most = rate(
        reader,
        "bytes_per_s_max",
        "upper bound of the bytes per second",
    );
    let write_most = rate(
        reader,
        "write_bytes_per_s_max",
        "upper bound of written bytes per second",
    );
    let small_gib = reader.optional_integer(
        "small_gib",
        1..=65_536,
        "size in GiB up to which small_bytes_per_s holds",
    );
    let small = rate(
        reader,
        "small_bytes_per_s",
        "bytes per second of small volumes",
    );
    check_provisioned_bytes(reader, given, requests);
    let sum = given.unwrap_or(0.0)
        + per_gib.unwrap_or(0.0) * gib
        + per_request.unwrap_or(0.0) * requests.write;
    let base = sum.max(least.unwrap_or(0.0)).min(most.unwrap_or(RATE_MAX));
    let read = match small_gib.is_some_and(|small| size_gib <= small) {
        true => small.unwrap_or(base),
        false => base,
    };
    let write = read.min(write_most.unwrap_or(RATE_MAX));
    let burst = read_byte_burst(reader, gib);
    let credits = rate(
        reader,
        "burst_bytes_per_gib",
        "credits of bytes for each GiB",
    );
    let seconds = burst_seconds(reader);
    LimitRates {
        read,
        write,
        burst,
        credits: credits.map_or((burst - read).max(0.0) * seconds, |credits| credits * gib),
        credits_share: credits_share(reader),
    }
}

fn read_byte_burst(reader: &mut Reader<'_>, gib: f64) -> f64 {
    let given = rate(
        reader,
        "burst_bytes_per_s",
        "bytes per second while credits last",
    );
    let per_gib = rate(
        reader,
        "burst_bytes_per_s_per_gib",
        "additional bytes per second for each GiB while credits last",
    );
    let most = rate(
        reader,
        "burst_bytes_per_s_max",
        "upper bound of the bytes per second while credits last",
    );
    (given.unwrap_or(0.0) + per_gib.unwrap_or(0.0) * gib).min(most.unwrap_or(RATE_MAX))
}

/// Checks provisioned bytes per second against what the volume's requests per second permit.
fn check_provisioned_bytes(reader: &mut Reader<'_>, given: Option<f64>, requests: &LimitRates) {
    let included = rate(
        reader,
        "bytes_per_s_included",
        "bytes per second that need no provisioning",
    );
    let limit = rate(
        reader,
        "bytes_per_s_limit",
        "upper bound of provisioned bytes per second",
    );
    let per_request = rate(
        reader,
        "bytes_per_s_limit_per_iops",
        "upper bound of provisioned bytes per second for each request per second",
    );
    let most = limit
        .unwrap_or(RATE_MAX)
        .min(per_request.unwrap_or(RATE_MAX) * requests.write)
        .max(included.unwrap_or(0.0));
    if given.is_some_and(|given| given > most) {
        let message = format!(
            "a volume of {} requests/s may have {most} bytes/s at most",
            requests.write
        );
        reader.fail("bytes_per_s", &message);
    }
}

fn read_instance(reader: &mut Reader<'_>) -> Vec<LimitSpecification> {
    let requests = rate(
        reader,
        "instance_iops",
        "requests per second of the instance",
    );
    let burst_requests = rate(
        reader,
        "instance_burst_iops",
        "requests per second of the instance while its credits last",
    );
    let bytes = rate(
        reader,
        "instance_bytes_per_s",
        "bytes per second of the instance",
    );
    let burst_bytes = rate(
        reader,
        "instance_burst_bytes_per_s",
        "bytes per second of the instance while its credits last",
    );
    let seconds = reader.optional_number(
        "instance_credits_s",
        0.0..=1e9,
        "credits of the instance as the time for which they sustain its burst rates",
    );
    let share = credits_share(reader);
    let limit = |kind, base: Option<f64>, burst: Option<f64>| {
        let (base, burst) = (base.unwrap_or(0.0), burst.unwrap_or(0.0));
        let rates = LimitRates {
            read: base,
            write: base,
            burst,
            credits: (burst - base).max(0.0) * seconds.unwrap_or(0.0),
            credits_share: share,
        };
        build_limit(kind, rates)
    };
    let of_requests = limit(VolumeLimit::InstanceRequests, requests, burst_requests);
    let of_bytes = limit(VolumeLimit::InstanceBytes, bytes, burst_bytes);
    of_requests.into_iter().chain(of_bytes).collect()
}

/// Returns a limit with these rates; `None` for a rate of 0, which means no limit.
fn build_limit(kind: VolumeLimit, rates: LimitRates) -> Option<LimitSpecification> {
    let milli = |rate: f64| (rate * 1000.0).round() as u64;
    let base = DirectionRates {
        read_milli: milli(rates.read),
        write_milli: milli(rates.write),
    };
    let bursts = rates.burst > rates.read.max(rates.write) && rates.credits > 0.0;
    let burst = Burst {
        rate_milli: milli(rates.burst),
        credits: rates.credits.round() as u64,
        credits_at_start: (rates.credits * rates.credits_share).round() as u64,
    };
    (base.read_milli > 0 && base.write_milli > 0).then_some(LimitSpecification {
        kind,
        base,
        burst: bursts.then_some(burst),
    })
}

fn read_charge_rules(reader: &mut Reader<'_>) -> ChargeRules {
    let unit = reader.integer(
        "operation_bytes",
        4096..=GIB,
        "size of one charged operation; a larger request is charged as several",
    );
    let random = reader.optional_integer(
        "random_charge_bytes",
        0..=GIB,
        "minimum charge of a request that continues no sequential stream",
    );
    let streams = reader.optional_integer(
        "merge_streams",
        0..=65_536,
        "sequential streams whose adjacent requests are charged as one operation; 0 if none are",
    );
    ChargeRules {
        operation_bytes: unit,
        random_charge_bytes: random.unwrap_or(0),
        merge_streams: streams.unwrap_or(0) as u32,
    }
}

fn read_pacing(reader: &mut Reader<'_>) -> Pacing {
    let window = reader.optional_milliseconds(
        "pace_window_ms",
        0.0..=60_000.0,
        "length of the windows in which requests are counted; 0 if they are spaced evenly",
    );
    let slack = reader.optional_milliseconds(
        "pace_slack_ms",
        0.0..=60_000.0,
        "time for which unused requests and bytes of the highest rate are kept",
    );
    Pacing {
        window_ns: window.unwrap_or(0),
        slack_ns: slack.unwrap_or(0),
    }
}

fn read_service(reader: &mut Reader<'_>, shares: &[u64], key: &str) -> ServiceQuantiles {
    let doc = "service time at each of service_shares_ppm, in us";
    let times_us = reader.integers(key, 0..=100_000_000, doc);
    let spans_all = shares.first() == Some(&0) && shares.last() == Some(&1_000_000);
    let ascends = shares.windows(2).all(|pair| pair[0] < pair[1]) && times_us.is_sorted();
    if !spans_all || !ascends || times_us.len() != shares.len() {
        let allowed =
            "ascending times, one for each of service_shares_ppm, which go from 0 to 1000000";
        reader.fail_with_choices(key, "the times do not form a distribution", allowed);
        return ServiceQuantiles::constant(Time::from_millis(1));
    }
    ServiceQuantiles {
        shares_ppm: shares.to_vec(),
        times: times_us.into_iter().map(|us| Time(us * 1000)).collect(),
    }
}

fn read_first_touch(reader: &mut Reader<'_>) -> Option<FirstTouch> {
    let from_snapshot = reader.flag(
        "from_snapshot",
        "whether the volume was made from a snapshot, whose blocks are fetched at their first access",
    );
    let block = reader.integer("fetch_bytes", 4096..=GIB, "size of a fetched block");
    let least = reader.milliseconds(
        "fetch_min_ms",
        0.0..=10_000.0,
        "minimum duration of a fetch",
    );
    let most = reader.milliseconds(
        "fetch_max_ms",
        0.0..=10_000.0,
        "maximum duration of a fetch",
    );
    if most < least {
        reader.fail("fetch_max_ms", "less than fetch_min_ms");
    }
    from_snapshot.then_some(FirstTouch {
        block_bytes: block,
        fetch_min: Time(least),
        fetch_max: Time(most.max(least)),
    })
}
