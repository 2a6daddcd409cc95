//! Calculations for flash drives that need no timing: formulas beside the model of the translation
//! layer.

mod dies;
mod written;

use crate::error::LaboratoryError;
use diskperf_analysis::flash::{
    DieUtilisation, FlashDrive, FlashReport, PolicyAmplification, SpareFigures, WriteCliff,
};
use diskperf_ftl::{PreconditionState, VictimPolicy, analytic};

const UNIT_BYTES: u64 = 4096;
/// Maximum queue depth of reads that a calculation accepts.
pub const DEPTH_MAX: u32 = 4096;
/// Maximum number of dies that a calculation accepts.
pub const DIE_COUNT_MAX: u32 = 4096;
/// Minimum and maximum number of mapping units in a superblock.
pub const SUPERBLOCK_UNITS_RANGE: (u32, u32) = (2, 16_384);
/// Minimum and maximum spare share for a model of some thousand superblocks.
const SPARE_SHARE_RANGE: (f64, f64) = (0.01, 0.95);

/// Request for calculations on a flash drive.
#[derive(Clone, Debug)]
pub struct FlashRequest {
    /// Spare capacities, each as a share of the closed superblocks.
    pub spare_shares: Vec<f64>,
    /// Names of the garbage collection policies to compare.
    pub policy_names: Vec<String>,
    /// Number of mapping units (4 KiB) in a superblock.
    pub superblock_units: u32,
    /// Skew of the writes as `90/10`: percent of writes, and percent of the space that they go to;
    /// `None` for uniform writes.
    pub hot_shares: Option<String>,
    /// Share of the space that is trimmed.
    pub trimmed_share: f64,
    /// Whether copies of garbage collection go to separate superblocks.
    pub separates_hot: bool,
    /// Queue depths of reads to calculate.
    pub queue_depths: Vec<u32>,
    /// Seed of the translation layer model's random numbers.
    pub seed: u64,
    /// Flash drive that the calculations are for.
    pub drive: FlashDrive,
}

/// Performs the requested calculations.
///
/// # Errors
///
/// Returns an error for a number out of range or an unknown policy.
pub fn report_flash(asked: &FlashRequest) -> Result<FlashReport, LaboratoryError> {
    check_request(asked)?;
    let policies = (asked.policy_names.iter())
        .map(|name| Ok((name.as_str(), parse_policy(name)?)))
        .collect::<Result<Vec<_>, LaboratoryError>>()?;
    let hot = asked
        .hot_shares
        .as_deref()
        .map(parse_hot_shares)
        .transpose()?;
    let spares = (asked.spare_shares.iter())
        .map(|&spare| figures_of_spare(asked, spare, &policies, hot))
        .collect::<Result<Vec<_>, LaboratoryError>>()?;
    let writes = match hot {
        None => "uniform random writes".to_owned(),
        Some((writes, space)) => format!("{writes} % of the writes to {space} % of the space"),
    };
    Ok(FlashReport {
        drive: asked.drive,
        superblock_units: asked.superblock_units,
        write_pattern: writes,
        trimmed_share: asked.trimmed_share,
        seed: asked.seed,
        die_utilisation: asked
            .queue_depths
            .iter()
            .map(|&it| die_utilisation(asked, it))
            .collect(),
        write_cliffs: list_cliffs(&asked.drive, &spares),
        spare_figures: spares,
    })
}

fn figures_of_spare(
    asked: &FlashRequest,
    spare: f64,
    policies: &[(&str, VictimPolicy)],
    hot: Option<(u8, u8)>,
) -> Result<SpareFigures, LaboratoryError> {
    let shares = hot.map(|(writes, space)| (f64::from(writes) / 100.0, f64::from(space) / 100.0));
    let left = analytic::spare_after_trim(spare, asked.trimmed_share);
    let policies = policies
        .iter()
        .map(|&(name, policy)| {
            let model = written::simulate_amplification(asked, spare, policy, precondition(hot))
                .map_err(|error| request_error(format!("--spare {spare}: {error}")))?;
            let formula = amplification_formula(policy, left, asked.superblock_units, shares);
            Ok(amplification_of_policy(name, formula, model, &asked.drive))
        })
        .collect::<Result<Vec<_>, LaboratoryError>>()?;
    Ok(SpareFigures {
        spare_share: spare,
        over_provisioning: spare / (1.0 - spare),
        pool_amplification: shares.map(|(writes, space)| {
            analytic::hot_cold_separated_write_amplification(left, writes, space)
        }),
        policy_amplification: policies,
    })
}

fn precondition(hot: Option<(u8, u8)>) -> PreconditionState {
    match hot {
        None => PreconditionState::Random,
        Some((writes_percent, space_percent)) => PreconditionState::HotCold {
            writes_percent,
            space_percent,
        },
    }
}

/// Returns the write amplification by formula, if there is one. The formula for hot and cold writes
/// assumes a single write frontier and collection of the oldest superblock.
fn amplification_formula(
    policy: VictimPolicy,
    spare: f64,
    units: u32,
    shares: Option<(f64, f64)>,
) -> Option<f64> {
    match (policy, shares) {
        (VictimPolicy::OldestFirst, None) => Some(analytic::fifo_write_amplification(spare)),
        (VictimPolicy::OldestFirst, Some((writes, space))) => Some(
            analytic::hot_cold_fifo_write_amplification(spare, writes, space),
        ),
        (VictimPolicy::Greedy, None) => Some(analytic::greedy_write_amplification(spare, units)),
        (VictimPolicy::RandomChoices(choices), None) => {
            Some(analytic::choices_write_amplification(spare, units, choices))
        }
        (VictimPolicy::Greedy | VictimPolicy::RandomChoices(_), Some(_))
        | (VictimPolicy::CostBenefit, _) => None,
    }
}

fn amplification_of_policy(
    name: &str,
    formula: Option<f64>,
    model: f64,
    drive: &FlashDrive,
) -> PolicyAmplification {
    let of_units = |bytes: u64| bytes as f64 / UNIT_BYTES as f64;
    // A victim's page has as many valid units as the victim on average.
    let together = (of_units(drive.sensed_bytes) * (1.0 - 1.0 / model)).max(1.0);
    let copy_us = drive.read_us / together + drive.transfer_us;
    let random_write_iops = analytic::random_writes_per_s(
        f64::from(drive.die_count),
        model,
        (drive.program_us / 1e6, of_units(drive.program_bytes)),
        copy_us / 1e6,
    );
    PolicyAmplification {
        policy: name.to_owned(),
        formula_amplification: formula,
        modelled_amplification: model,
        random_write_iops,
        terabytes_written: drive.capacity_bytes as f64 * drive.erase_cycles / model / 1e12,
        drive_writes_per_day: analytic::drive_writes_per_day(
            drive.erase_cycles,
            model,
            drive.warranty_years,
        ),
    }
}

fn die_utilisation(asked: &FlashRequest, depth: u32) -> DieUtilisation {
    let (drive, dies) = (&asked.drive, f64::from(asked.drive.die_count));
    let model = dies::simulate_busy_dies(drive.die_count, depth, asked.seed);
    DieUtilisation {
        queue_depth: depth,
        busy_dies_formula: analytic::die_utilisation(drive.die_count, depth, 0.0),
        busy_share_many_dies: analytic::die_utilisation_by_load(f64::from(depth) / dies, 0.0),
        busy_dies_bound: analytic::busy_die_count(dies, f64::from(depth)),
        busy_dies_modelled: model,
        iops: model * dies * 1e6 / (drive.read_us + drive.transfer_us),
    }
}

fn list_cliffs(drive: &FlashDrive, spares: &[SpareFigures]) -> Vec<WriteCliff> {
    // Bytes per microsecond are MB/s.
    let sequential = f64::from(drive.die_count) * drive.program_bytes as f64 / drive.program_us;
    let buffer = |name: String, out_mb_per_s: f64| {
        build_cliff(
            name,
            (drive.buffer_bytes, drive.arrival_mb_per_s),
            out_mb_per_s,
            out_mb_per_s.min(drive.arrival_mb_per_s),
        )
    };
    let mut cliffs = vec![buffer(
        "write buffer, sequential writes".to_owned(),
        sequential,
    )];
    for of in spares {
        let Some(first) = of.policy_amplification.first() else {
            continue;
        };
        let name = format!(
            "write buffer, random writes, {} at {:.1} % spare",
            first.policy,
            100.0 * of.spare_share
        );
        cliffs.push(buffer(
            name,
            first.random_write_iops * UNIT_BYTES as f64 / 1e6,
        ));
    }
    if drive.cache_bytes > 0 {
        let taken = drive.cache_mb_per_s.min(drive.arrival_mb_per_s);
        cliffs.push(build_cliff(
            "SLC cache".to_owned(),
            (drive.cache_bytes, taken),
            0.0,
            sequential.min(drive.arrival_mb_per_s),
        ));
    }
    cliffs
}

fn build_cliff(
    name: String,
    (bytes, in_mb_per_s): (u64, f64),
    out_mb_per_s: f64,
    then_mb_per_s: f64,
) -> WriteCliff {
    let full_after_s =
        analytic::time_until_buffer_full_s(bytes as f64, in_mb_per_s * 1e6, out_mb_per_s * 1e6);
    WriteCliff {
        name,
        cache_bytes: bytes,
        fill_mb_per_s: in_mb_per_s,
        drain_mb_per_s: out_mb_per_s,
        full_after_s,
        accepted_bytes: full_after_s.map(|s| s * in_mb_per_s * 1e6),
        after_mb_per_s: then_mb_per_s,
    }
}

fn parse_policy(name: &str) -> Result<VictimPolicy, LaboratoryError> {
    match name {
        "fifo" => return Ok(VictimPolicy::OldestFirst),
        "greedy" => return Ok(VictimPolicy::Greedy),
        "cost_benefit" => return Ok(VictimPolicy::CostBenefit),
        _ => {}
    }
    (name.strip_prefix("choices_"))
        .and_then(|choices| choices.parse().ok())
        .filter(|choices| (1..=1000).contains(choices))
        .map(VictimPolicy::RandomChoices)
        .ok_or_else(|| {
            request_error(format!(
                "--policy {name} does not exist; give fifo, greedy, cost_benefit, or choices_1 to choices_1000"
            ))
        })
}

fn parse_hot_shares(text: &str) -> Result<(u8, u8), LaboratoryError> {
    let percents = text.split_once('/').and_then(|(writes, space)| {
        let percent = |text: &str| text.trim().parse().ok().filter(|it| (1..=99).contains(it));
        Some((percent(writes)?, percent(space)?))
    });
    percents.ok_or_else(|| {
        request_error(format!(
            "--hot {text}: give the percentage of the writes and that of the space that they go to, such as 90/10"
        ))
    })
}

fn request_error(text: String) -> LaboratoryError {
    LaboratoryError::Request(text)
}

fn check_request(asked: &FlashRequest) -> Result<(), LaboratoryError> {
    for &spare in &asked.spare_shares {
        let why = match spare {
            _ if spare <= 0.0 => {
                "without over-provisioning, garbage collection could never free a superblock"
            }
            _ if spare >= 1.0 => "no space would be left for data, and nothing would be mapped",
            _ => "limit of the model's number of superblocks",
        };
        check_range("--spare", spare, SPARE_SHARE_RANGE, why)?;
    }
    let units = f64::from(asked.superblock_units);
    let (least, most) = (
        f64::from(SUPERBLOCK_UNITS_RANGE.0),
        f64::from(SUPERBLOCK_UNITS_RANGE.1),
    );
    check_range(
        "--superblock-units",
        units,
        (least, most),
        "mapping units per superblock in the model",
    )?;
    check_range(
        "--trimmed",
        asked.trimmed_share,
        (0.0, 0.9),
        "share of the space that is trimmed; the rest is written",
    )?;
    for &depth in &asked.queue_depths {
        let most = f64::from(DEPTH_MAX);
        check_range("--depth", f64::from(depth), (1.0, most), "reads in flight")?;
    }
    check_drive(&asked.drive)
}

fn check_drive(drive: &FlashDrive) -> Result<(), LaboratoryError> {
    let dies = f64::from(drive.die_count);
    check_range(
        "--dies",
        dies,
        (2.0, f64::from(DIE_COUNT_MAX)),
        "a queue needs two dies",
    )?;
    let units = (UNIT_BYTES as f64, 1e9);
    for (option, value, range, what) in [
        (
            "--program",
            drive.program_bytes as f64,
            units,
            "in bytes, a unit at least (4096)",
        ),
        (
            "--sensed",
            drive.sensed_bytes as f64,
            units,
            "in bytes, a unit at least (4096)",
        ),
        (
            "--program-us",
            drive.program_us,
            (0.1, 1e6),
            "time to program, in microseconds",
        ),
        (
            "--read-us",
            drive.read_us,
            (0.1, 1e6),
            "time to sense a page, in microseconds",
        ),
        (
            "--transfer-us",
            drive.transfer_us,
            (0.0, 1e5),
            "time to transfer a mapping unit, in microseconds",
        ),
        (
            "--capacity",
            drive.capacity_bytes as f64,
            (1e6, 1e18),
            "bytes",
        ),
        ("--buffer", drive.buffer_bytes as f64, (0.0, 1e15), "bytes"),
        (
            "--arrival-mb-per-s",
            drive.arrival_mb_per_s,
            (0.001, 1e6),
            "rate of incoming writes, in MB/s",
        ),
        ("--cache", drive.cache_bytes as f64, (0.0, 1e18), "bytes"),
        (
            "--cache-mb-per-s",
            drive.cache_mb_per_s,
            (0.001, 1e6),
            "rate of the SLC cache, in MB/s",
        ),
        (
            "--cycles",
            drive.erase_cycles,
            (1.0, 1e7),
            "erase cycles that a block endures",
        ),
        (
            "--years",
            drive.warranty_years,
            (0.01, 100.0),
            "years of warranty",
        ),
    ] {
        check_range(option, value, range, what)?;
    }
    Ok(())
}

fn check_range(
    option: &str,
    value: f64,
    (least, most): (f64, f64),
    why: &str,
) -> Result<(), LaboratoryError> {
    // Not a number is in no range.
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(request_error(format!(
        "{option} {value}: {least} to {most} is allowed: {why}"
    )))
}
