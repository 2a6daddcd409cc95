//! Controller for the VMEbus and its driver as described in the catalogue.

use super::driver::{ScanOrigin, VmeDriver, VmeDriverConfig};
use super::hardware::{
    CachePolicy, CachingScheme, MaintenanceCommands, READ_AHEAD_SECTORS_MAX, VerifyPass, Vme,
    VmeConfig,
};
use crate::driver::QueueOrder;
use crate::parts::{DriverSource, PartBuilder, PartSpecification, buffer_sectors};
use crate::specification::{COST_MS_MAX, scale_cost};
use diskperf_catalogue::Reader;
use diskperf_device::AccessHint;
use diskperf_sim::Time;

/// VMEbus controller and its driver.
#[derive(Clone, Debug)]
pub struct VmeSpecification {
    /// Parameters of the controller.
    pub controller: VmeConfig,
    /// Constants and costs of the driver.
    pub driver: VmeDriverConfig,
}

impl PartSpecification for VmeSpecification {
    type Driver = VmeDriver;

    fn read_specification(reader: &mut Reader<'_>, driver: &DriverSource<'_>) -> Self {
        Self {
            controller: read_controller(reader),
            driver: read_driver(driver),
        }
    }

    fn attach_part(&self, builder: &mut PartBuilder<'_>) -> VmeDriver {
        let (config, streams) = (self.controller.clone(), builder.streams);
        let drives = builder.mechanisms(builder.drive_indices);
        let controller =
            builder.add_controller(|id, number| Vme::new((id, number), config, drives, streams));
        let driver = VmeDriverConfig {
            queue_order: builder.queue_order,
            ..self.driver.clone()
        };
        VmeDriver::new(driver, controller, builder.drive_count)
    }

    fn maintenance(&self) -> Option<MaintenanceCommands> {
        self.controller.maintenance
    }
}

impl VmeSpecification {
    /// Refuses a controller about which nothing is known, and returns a substitute.
    pub(crate) fn with_unpublished_costs(
        reader: &mut Reader<'_>,
        driver: &DriverSource<'_>,
    ) -> Self {
        buffer_sectors(reader);
        reader.fail_with_choices(
            "kind",
            "no document gives timing data of this controller, so a model of it would be a guess",
            "a known kind; copy the file of a similar controller and state your assumptions",
        );
        Self {
            controller: VmeConfig::with_unpublished_costs(),
            driver: read_driver(driver),
        }
    }
}

#[derive(Clone, Copy)]
enum CacheScheme {
    Uncached,
    Tracks,
    Sectors,
}

fn read_controller(reader: &mut Reader<'_>) -> VmeConfig {
    let capacity_sectors = buffer_sectors(reader);
    let mut time = |key, doc| Time(reader.milliseconds(key, 0.0..=1000.0, doc));
    let command = time(
        "command_ms",
        "time of the controller's processor per command",
    );
    let command_poll = time(
        "command_poll_ms",
        "interval at which the controller's processor polls for commands; 0 if hardware detects them",
    );
    let move_per_sector = time(
        "move_sector_ms",
        "time of the controller's processor per sector moved between its memory and the host's",
    );
    let write_lead = reader.integer(
        "write_lead_sectors",
        1..=1000,
        "sectors of a write that are fetched before the drive starts; a shorter write is fetched completely",
    );
    let kinds = [
        ("none", CacheScheme::Uncached),
        ("tracks", CacheScheme::Tracks),
        ("sectors", CacheScheme::Sectors),
    ];
    let keeps = reader.choice("cache", &kinds, "sectors kept in the cache after a read");
    let caching = match keeps {
        CacheScheme::Uncached => CachingScheme::NoCache,
        CacheScheme::Tracks => CachingScheme::TrackCache {
            capacity_sectors,
            flushed_by_writes: reader
                .flag("flushed_by_writes", "whether every write clears the cache"),
        },
        CacheScheme::Sectors => CachingScheme::SectorCache {
            capacity_sectors,
            policies: read_policies(reader),
            adaptive: reader.flag(
                "adaptive",
                "whether the controller adapts cache bits and read-ahead to the requests; the configured ones are then ignored",
            ),
        },
    };
    VmeConfig {
        command_delay: command,
        command_poll_interval: command_poll,
        move_time_per_sector: move_per_sector,
        write_lead_sectors: write_lead as u32,
        maintenance: read_maintenance(reader),
        caching,
    }
}

fn read_maintenance(reader: &mut Reader<'_>) -> Option<MaintenanceCommands> {
    let track_command = reader.optional_milliseconds(
        "maintenance_track_ms",
        0.0..=1000.0,
        "time between two track operations during format or verify; unknown if absent",
    )?;
    let kinds = [
        ("read", VerifyPass::ReadPass),
        ("pattern", VerifyPass::PatternPass),
    ];
    Some(MaintenanceCommands {
        track_command_time: Time(track_command),
        checks_after_format: reader.flag("format_check", "whether each track is read after it has been formatted"),
        verify_pass: reader.choice("verify_pass", &kinds, "method of a verify pass: the controller reads, or the host writes a pattern and compares it"),
    })
}

/// Reads the cache policy of each class of accesses. A policy given for all accesses replaces those
/// of the classes.
fn read_policies(reader: &mut Reader<'_>) -> [CachePolicy; 3] {
    let own = AccessHint::ALL.map(|class| read_policy(reader, class));
    let bits = reader.optional_text(
        "cache_bits",
        "cache bits of all accesses, instead of one value for each kind of access",
    );
    let ahead = reader.optional_integer(
        "read_ahead_sectors",
        0..=u64::from(READ_AHEAD_SECTORS_MAX),
        "read-ahead of all accesses in sectors, instead of one value for each kind of access",
    );
    own.map(|own| {
        let of_all = bits
            .as_ref()
            .map(|bits| CachePolicy::parse_policy(bits, own.read_ahead_sectors));
        let policy = of_all.unwrap_or(Ok(own)).unwrap_or_else(|why| {
            reader.fail("cache_bits", &why);
            own
        });
        CachePolicy {
            read_ahead_sectors: ahead.map_or(policy.read_ahead_sectors, |ahead| ahead as u32),
            ..policy
        }
    })
}

fn read_policy(reader: &mut Reader<'_>, class: AccessHint) -> CachePolicy {
    let of = match class {
        AccessHint::Raw => "accesses that bypass the file system",
        AccessHint::FileWhole => "file-system accesses in multiples of 4 KB",
        AccessHint::FilePart => "other file-system accesses",
    };
    let key = format!("{}_cache_bits", class.name());
    let doc = format!(
        "cache bits of {of}: SEA, CRD, RAP, CWT, SRD, SWT, XHD, XCY, joined by |; 0 for none"
    );
    let bits = reader.text(&key, &doc);
    let ahead = reader.integer(
        &format!("{}_read_ahead_sectors", class.name()),
        0..=u64::from(READ_AHEAD_SECTORS_MAX),
        &format!("read-ahead of {of}, in sectors"),
    );
    match CachePolicy::parse_policy(&bits, ahead as u32) {
        Ok(policy) => policy,
        Err(why) => {
            reader.fail(&key, &why);
            CachePolicy::default()
        }
    }
}
fn read_driver(driver: &DriverSource<'_>) -> VmeDriverConfig {
    let mut reader = driver.reader();
    let commands = reader.integer(
        "commands",
        0..=256,
        "maximum number of commands in flight at the controller; 0 for no limit and no queue in the driver",
    );
    let scan_from = reader.choice(
        "scan_from",
        &[("active", ScanOrigin::ActiveRequest), ("waiting", ScanOrigin::FirstWaiting)],
        "start of the scan over the cylinders: the request in flight at the controller, or the first waiting request",
    );
    let mut cost = |key, doc| {
        scale_cost(
            reader.milliseconds(key, 0.0..=COST_MS_MAX, doc),
            driver.speed,
        )
    };
    let config = VmeDriverConfig {
        queue_order: QueueOrder::CylinderScan,
        scan_origin: scan_from,
        outstanding_commands_max: (commands > 0).then_some(commands as u32),
        strategy_cost: cost("strategy_ms", "processor time to queue a request"),
        start_cost: cost(
            "start_ms",
            "processor time to build a command and submit it to the controller",
        ),
        complete_cost: cost(
            "complete_ms",
            "processor time to handle a completed command",
        ),
    };
    reader.finish();
    config
}
