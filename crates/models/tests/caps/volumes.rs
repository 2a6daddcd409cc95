//! Random cloud volumes with a load that reaches a cap, and the rate that the limits allow.

use crate::probe::ProbedSystem;
use crate::{CappedVolume, CaseSet, choose, draw_magnitude};
use diskperf_analysis::caps::CappedUnit;
use diskperf_catalogue::{Catalogue, Setting};
use diskperf_device::volume::VolumeSpecification;
use diskperf_device::volume::charge::{ChargedRequest, Meter};
use diskperf_models::volume::list_volume_types;
use diskperf_sim::RandomStream;

/// Share of requests, in millionths, that take at most the time for which the depth suffices.
const SLOW_REQUESTS_PPM: u64 = 999_000;
const DEPTH_MAX: u64 = 1024;
/// Virtual time of a probe, which credits outlast or do not reach.
const PROBE_S: f64 = 200.0;

/// Draws volumes until one has a cap on requests or on bytes that its load reaches.
pub(crate) fn draw_volume(random: &mut RandomStream, cases: CaseSet) -> CappedVolume {
    loop {
        if let Some(volume) = try_volume(random, cases.iops_max) {
            return volume;
        }
    }
}

fn try_volume(random: &mut RandomStream, iops_max: f64) -> Option<CappedVolume> {
    let catalogue = Catalogue::embedded();
    let all = list_volume_types(&catalogue, &[], &[]).expect("types");
    let drawn = &all[random.draw_below(all.len() as u64) as usize];
    let mut settings = Vec::new();
    match drawn.tiers.is_empty() {
        true => {
            let sizes = drawn.size_range_gib();
            let (least, most) = (*sizes.start() as f64, (*sizes.end() as f64).min(16_384.0));
            let size = draw_magnitude(random, least.max(4.0), most) as u64;
            settings.push(("size_gib", size.to_string()));
        }
        false => {
            let tier = random.draw_below(drawn.tiers.len() as u64) as usize;
            settings.push(("tier", drawn.tiers[tier].clone()));
        }
    }
    if drawn.parameter("iops").is_some() && random.draw_with_probability(0.5) {
        let iops = draw_magnitude(random, 3000.0, 20_000.0) as u64;
        settings.push(("iops", iops.to_string()));
    }
    let has_credits_setting = drawn.parameter("credits_at_start_share").is_some();
    let has_credits = random.draw_with_probability(0.5);
    if has_credits_setting && !has_credits {
        settings.push(("credits_at_start_share", "0".to_owned()));
    }
    let instances = ["m5.large", "t4g.xlarge", "m5.12xlarge"];
    if drawn.name.starts_with("gp") && random.draw_with_probability(0.3) {
        settings.push(("instance", choose(random, &instances).to_owned()));
    }
    let pairs = settings.iter();
    let pairs: Vec<Setting> = pairs
        .map(|(key, value)| Setting::new(&format!("drive.{key}"), value))
        .collect();
    // A size may refuse a number of requests per second.
    let specification = drawn.specify(&pairs).ok()?;
    let block_bytes = 4096 << random.draw_below(7);
    let is_write = random.draw_with_probability(0.5);
    let [base, double] = [1, 2]
        .map(|factor| allowed_requests_per_s(&specification, (factor * block_bytes, is_write)));
    let (base, double) = (base?, double?);
    let unit = if (double / base - 1.0).abs() < 0.001 {
        CappedUnit::Requests
    } else if (2.0 * double / base - 1.0).abs() < 0.001 {
        CappedUnit::Bytes
    } else {
        // One limit holds at the size, another at twice the size.
        return None;
    };
    let service = match is_write {
        true => &specification.write_service,
        false => &specification.read_service,
    };
    // With fewer requests in flight, the cap is idle while many of them are slow together.
    let slow = service.quantile_ppm(SLOW_REQUESTS_PPM).as_seconds();
    let depth = ((base * slow) as u64 + 2).next_power_of_two();
    (base <= iops_max && depth <= DEPTH_MAX).then(|| CappedVolume {
        per_s: match unit {
            CappedUnit::Requests => base,
            CappedUnit::Bytes => base * block_bytes as f64,
        },
        unit,
        system: ProbedSystem {
            name: format!("bare-{}", drawn.name),
            settings,
            depth,
            block_bytes,
            write_share: f64::from(u8::from(is_write)),
            area_bytes: 1 << 30,
            seed: random.draw_bits(),
        },
    })
}

/// Returns the requests of one size that the limits allow per second, at random offsets, during a
/// probe; `None` if credits end in it.
fn allowed_requests_per_s(
    specification: &VolumeSpecification,
    (bytes, is_write): (u64, bool),
) -> Option<f64> {
    let meter = Meter::new(specification.charge_rules);
    let charge = meter.charge(ChargedRequest {
        start_byte: 1 << 20,
        bytes,
        is_write,
    });
    let buckets = specification.buckets();
    let rate = |limit: &diskperf_device::volume::limit::LimitBucket| {
        let refill = limit.bucket.size().refill(1_000_000_000);
        refill as f64 / limit.cost(charge, is_write) as f64
    };
    let (credits, pacers): (Vec<_>, Vec<_>) = buckets.iter().partition(|limit| limit.holds_credits);
    let peak = pacers
        .iter()
        .map(|limit| rate(limit))
        .fold(f64::MAX, f64::min);
    let mut allowed = peak;
    for limit in credits {
        let base = rate(limit);
        if base >= peak {
            continue;
        }
        let level = limit.bucket.level_at(0) as f64 / limit.cost(charge, is_write) as f64;
        match level / (peak - base) {
            none if none <= 0.0 => allowed = allowed.min(base),
            long if long > PROBE_S => {}
            _ => return None,
        }
    }
    Some(allowed)
}
