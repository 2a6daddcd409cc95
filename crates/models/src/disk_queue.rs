//! Gains from the order of service in the queue of a modelled disk.

use crate::error::LaboratoryError;
use crate::model::computer::ModelComputer;
use diskperf_analysis::disk_queue::{DepthFigures, DiskQueueReport, OrderFigures};
use diskperf_catalogue::{Catalogue, Setting};
use diskperf_device::disk::closed::{ClosedLoopLoad, ClosedLoopResult, positioning_bounds_ms};
use diskperf_device::disk::device::DiskSpecification;
use diskperf_device::disk::mechanism::{Mechanism, MechanismSpecification};
use diskperf_device::disk::queue::{QueuePolicy, QueueSpecification};
use diskperf_device::disk::spindle::RotationAngle;
use diskperf_device::specification::{AGED_SPTF_MS_PER_S_DEFAULT, V_SCAN_SHARE_DEFAULT};
use diskperf_timeline::units::{GIB, format_size};

/// Maximum queue depth of the calculation.
pub const DEPTH_MAX: u32 = 1024;
/// Maximum number of requests for one order of service at one queue depth.
pub const REQUESTS_MAX: u64 = 10_000_000;

/// Request for a calculation of queue orders.
#[derive(Clone, Debug)]
pub struct DiskQueueRequest<'a> {
    /// Name of the modelled system that has the disk.
    pub target: &'a str,
    /// Settings that change the modelled system.
    pub settings: &'a [Setting],
    /// Number of the drive in the system, from one.
    pub drive_index: u32,
    /// Names of the orders of service; empty for all.
    pub order_names: &'a [String],
    /// Queue depths to calculate, in ascending order.
    pub queue_depths: &'a [u32],
    /// Size of each request in bytes.
    pub block_bytes: u64,
    /// Number of requests for each order of service at each queue depth.
    pub requests: u64,
    /// Seed of the random addresses of the reads.
    pub seed: u64,
}

/// Serves a closed queue of random reads in each order of service at each depth.
///
/// # Errors
///
/// Returns an error if the system or a setting is faulty, if the system has no such drive or the
/// drive is no disk with firmware, if an order is unknown, or if requests are no whole sectors.
pub fn report_disk_queue(
    catalogue: &Catalogue,
    asked: &DiskQueueRequest<'_>,
) -> Result<DiskQueueReport, LaboratoryError> {
    let computer = ModelComputer::read_catalogue(catalogue, asked.target, asked.settings)?;
    let place = (asked.drive_index as usize).wrapping_sub(1);
    let name = computer.drive_names.get(place).ok_or_else(|| {
        request_error(format!(
            "--drive {}: {} has {} configured",
            asked.drive_index,
            asked.target,
            computer.drive_names.len()
        ))
    })?;
    let disk = computer.specification.drives[place].disk_specification().ok_or_else(|| {
        request_error(format!(
            "{name} of {} is not a disk with a command queue; give a system with one: bare-sata-7200, bare-sata-consumer, bare-sas-10k or bare-smr-5400",
            asked.target
        ))
    })?;
    let orders = choose_orders(disk, asked.order_names)?;
    let sectors = to_sectors(disk, asked.block_bytes)?;
    let mechanism = Mechanism::new(&disk.mechanism, RotationAngle::ZERO)
        .map_err(|error| request_error(format!("{name}: {error}")))?;
    let room = mechanism.layout().sectors();
    if u64::from(sectors) > room {
        let room_bytes = room * (asked.block_bytes / u64::from(sectors));
        return Err(request_error(format!(
            "--block {}: the drive has {}",
            format_size(asked.block_bytes),
            format_size(room_bytes)
        )));
    }
    let serve = |policy: QueuePolicy, depth: u32| {
        let closed = ClosedLoopLoad {
            queue_policy: QueueSpecification {
                order: policy,
                age_limit_ms: None,
                ..disk.queue
            },
            queue_depth: depth,
            request_count: asked.requests,
        };
        closed.serve_random_reads(&mut mechanism.clone(), sectors, asked.seed)
    };
    let alone_ms = serve(QueuePolicy::Fcfs, 1).mean_service_ms();
    let bounds_ms = positioning_bounds_ms(&mechanism, asked.queue_depths);
    let transfer_ms = transfer_ms(&mechanism, sectors);
    let depth = |(depth, bound_ms): (&u32, f64)| DepthFigures {
        queue_depth: *depth,
        service_bound_ms: bound_ms + transfer_ms,
        order_figures: orders
            .iter()
            .map(|(name, policy)| build_order_figures(name, &serve(*policy, *depth), alone_ms))
            .collect(),
    };
    let (v_scan_share, aged_sptf_ms_per_s) = policy_numbers(disk.queue.order);
    Ok(DiskQueueReport {
        queue_depth: disk.queue_depth,
        age_limit_ms: disk.queue.age_limit_ms,
        settings_without_effect: list_settings_without_effect(catalogue, asked, disk)?,
        v_scan_share,
        aged_sptf_ms_per_s,
        target: format!("{name} of {}", asked.target),
        block_bytes: asked.block_bytes,
        request_count: asked.requests,
        seed: asked.seed,
        own_order: own_order_name(disk.queue.order).to_owned(),
        depths: asked
            .queue_depths
            .iter()
            .zip(bounds_ms)
            .map(depth)
            .collect(),
    })
}

fn request_error(text: String) -> LaboratoryError {
    LaboratoryError::Request(text)
}

/// Lists the settings without effect on the parts of the disk that the calculation uses.
fn list_settings_without_effect(
    catalogue: &Catalogue,
    asked: &DiskQueueRequest<'_>,
    disk: &DiskSpecification,
) -> Result<Vec<String>, LaboratoryError> {
    let mut idle = Vec::new();
    for setting in asked.settings {
        let others = asked
            .settings
            .iter()
            .filter(|other| other.path != setting.path);
        let others: Vec<Setting> = others.cloned().collect();
        // A setting that the others need has an effect.
        let Ok(computer) = ModelComputer::read_catalogue(catalogue, asked.target, &others) else {
            continue;
        };
        let without = computer
            .specification
            .drives
            .get(asked.drive_index as usize - 1);
        let is_same = without
            .and_then(|drive| drive.disk_specification())
            .is_some_and(|without| {
                read_mechanism_only(without) == read_mechanism_only(disk)
                    && policy_numbers(without.queue.order) == policy_numbers(disk.queue.order)
                    && without.queue.distance_measure == disk.queue.distance_measure
                    && without.medium_sector_bytes() == disk.medium_sector_bytes()
            });
        if is_same {
            idle.push(setting.to_string());
        }
    }
    Ok(idle)
}

/// Returns the mechanism of a disk without the additional times of writes.
fn read_mechanism_only(disk: &DiskSpecification) -> MechanismSpecification {
    MechanismSpecification {
        write_settle_ms: 0.0,
        write_seek: None,
        zero_latency_writes: false,
        inward_ms: [disk.mechanism.inward_ms[0], 0.0],
        same_track_ms: [disk.mechanism.same_track_ms[0], 0.0],
        ..disk.mechanism.clone()
    }
}

fn build_order_figures(name: &str, served: &ClosedLoopResult, alone_ms: f64) -> OrderFigures {
    let mean_ms = served.mean_service_ms();
    OrderFigures {
        name: name.to_owned(),
        mean_service_ms: mean_ms,
        iops: 1000.0 / mean_ms,
        gain_over_fcfs: alone_ms / mean_ms,
        mean_response_ms: served.mean_response_ms(),
        p99_response_ms: served.response_quantile_ms(0.99),
        max_response_ms: served.response_quantile_ms(1.0),
    }
}

fn list_orders(disk: &DiskSpecification) -> [(&'static str, QueuePolicy); 7] {
    let (share, ms_per_s) = policy_numbers(disk.queue.order);
    [
        QueuePolicy::Fcfs,
        QueuePolicy::CLook,
        QueuePolicy::Look,
        QueuePolicy::Sstf,
        QueuePolicy::VScan { share },
        QueuePolicy::AgedSptf { ms_per_s },
        QueuePolicy::Sptf,
    ]
    .map(|policy| (own_order_name(policy), policy))
}

/// Returns the parameters of V-SCAN (its share) and of aged SPTF (milliseconds per second of
/// waiting).
fn policy_numbers(own: QueuePolicy) -> (f64, f64) {
    match own {
        QueuePolicy::VScan { share } => (share, AGED_SPTF_MS_PER_S_DEFAULT),
        QueuePolicy::AgedSptf { ms_per_s } => (V_SCAN_SHARE_DEFAULT, ms_per_s),
        _ => (V_SCAN_SHARE_DEFAULT, AGED_SPTF_MS_PER_S_DEFAULT),
    }
}

fn own_order_name(policy: QueuePolicy) -> &'static str {
    match policy {
        QueuePolicy::Fcfs => "fcfs",
        QueuePolicy::Sstf => "sstf",
        QueuePolicy::Look => "look",
        QueuePolicy::CLook => "c_look",
        QueuePolicy::VScan { .. } => "v_scan",
        QueuePolicy::Sptf => "sptf",
        QueuePolicy::AgedSptf { .. } => "aged_sptf",
    }
}

fn choose_orders(
    disk: &DiskSpecification,
    names: &[String],
) -> Result<Vec<(&'static str, QueuePolicy)>, LaboratoryError> {
    let all = list_orders(disk);
    if names.is_empty() {
        return Ok(all.to_vec());
    }
    let known = || all.map(|(name, _)| name).join(", ");
    let find = |asked: &String| {
        let found = all.into_iter().find(|(name, _)| name == asked);
        found.ok_or_else(|| {
            request_error(format!(
                "--order {asked} does not exist; give one of {}",
                known()
            ))
        })
    };
    names.iter().map(find).collect()
}

/// Maximum size of a request, in bytes. Longer requests would take hours of a disk's time, track by
/// track.
const BLOCK_BYTES_MAX: u64 = GIB;

fn to_sectors(disk: &DiskSpecification, block_bytes: u64) -> Result<u32, LaboratoryError> {
    if block_bytes > BLOCK_BYTES_MAX {
        return Err(request_error(format!(
            "--block {}: a request has {} at most",
            format_size(block_bytes),
            format_size(BLOCK_BYTES_MAX)
        )));
    }
    let sector_bytes = disk.medium_sector_bytes();
    let whole = block_bytes > 0 && block_bytes.is_multiple_of(sector_bytes);
    u32::try_from(block_bytes / sector_bytes)
        .ok()
        .filter(|_| whole)
        .ok_or_else(|| {
            request_error(format!(
                "--block {block_bytes}: not a whole number of the medium's sectors of {sector_bytes} bytes"
            ))
        })
}

/// Mean media transfer time of this number of sectors, averaged over the whole disk.
fn transfer_ms(mechanism: &Mechanism, sectors: u32) -> f64 {
    const POSITION_COUNT: u64 = 1000;
    let layout = mechanism.layout();
    let turns = |number| {
        let sector = u128::from(layout.sectors()) * u128::from(number) / u128::from(POSITION_COUNT);
        RotationAngle(layout.position_of(sector as u64).sector_angle).to_revolutions()
    };
    let mean: f64 = (0..POSITION_COUNT).map(turns).sum::<f64>() / POSITION_COUNT as f64;
    mean * f64::from(sectors) * mechanism.spindle().revolution_time().as_millis()
}
