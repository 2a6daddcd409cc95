//! MASSBUS adaptors and the hp driver as described in the catalogue.

use super::driver::{HpDriver, HpDriverConfig, PositionTest, SearchLead};
use super::hardware::{AttentionTiming, Massbus, MassbusConfig};
use crate::parts::{DriverSource, PartBuilder, PartSpecification, buffer_sectors};
use crate::specification::{COST_MS_MAX, DriveSpecification, scale_cost};
use diskperf_catalogue::Reader;
use diskperf_sim::Time;

/// One adaptor for all drives or one per drive, with their driver.
#[derive(Clone, Debug)]
pub struct MassbusSpecification {
    /// Parameters of an adaptor.
    pub controller: MassbusConfig,
    /// Whether each drive has its own adaptor.
    pub has_adaptor_per_drive: bool,
    /// Constants and costs of the driver for each drive of the computer.
    pub driver: Vec<HpDriverConfig>,
}

impl PartSpecification for MassbusSpecification {
    type Driver = HpDriver;

    fn read_specification(reader: &mut Reader<'_>, driver: &DriverSource<'_>) -> Self {
        buffer_sectors(reader);

        let separate = reader.flag(
            "separate_adaptors",
            "whether each drive has its own adaptor",
        );
        let attention = reader.choice(
            "attention",
            &[
                ("while-transferring", AttentionTiming::WhileTransferring),
                ("when-idle", AttentionTiming::WhenIdle),
            ],
            "when a drive may report that it has found its sector",
        );
        let reads_whole_sectors = reader.flag(
            "reads_whole_sectors",
            "whether a sector goes to memory only after it has been read and checked completely",
        );
        let mut time = |key, doc| Time(reader.milliseconds(key, 0.0..=1000.0, doc));
        let search_poll_per_drive = time(
            "search_poll_per_drive_ms",
            "time that each attached drive adds to the polling round for search commands; 0 if searching is wired",
        );
        let search_command_delay = time(
            "search_command_ms",
            "time to act on a search command once it is noticed; 0 if searching is wired",
        );
        let command = time(
            "command_ms",
            "delay from a command until the controller acts on it",
        );
        let mut share = |key, doc| reader.number(key, 0.0..=1.0, doc);
        let controller = MassbusConfig {
            attention_timing: attention,
            search_poll_time_per_drive: search_poll_per_drive,
            search_command_delay,
            command_delay: command,
            reads_whole_sectors,
            data_late_probability: share(
                "data_late_per_sector",
                "probability that a sector is late while the processor works",
            ),
            data_late_idle_share: share(
                "data_late_idle_share",
                "share of that probability while the processor idles",
            ),
            repeats_data_late: true,
        };
        Self {
            controller,
            has_adaptor_per_drive: separate,
            driver: read_driver_configs(driver),
        }
    }

    fn attach_part(&self, builder: &mut PartBuilder<'_>) -> HpDriver {
        let groups: Vec<Vec<usize>> = match self.has_adaptor_per_drive {
            true => builder
                .drive_indices
                .iter()
                .map(|drive| vec![*drive])
                .collect(),
            false => vec![builder.drive_indices.to_vec()],
        };
        let controller = self.controller.with_counterfactual(builder.what_if);
        let streams = builder.streams;
        let adaptor = |drives: Vec<usize>| {
            let (config, on_it) = (controller.clone(), builder.mechanisms(&drives));
            let id = builder
                .add_controller(|id, number| Massbus::new((id, number), config, on_it, streams));
            (id, drives)
        };
        let adaptors = groups.into_iter().map(adaptor).collect();
        HpDriver::new(builder.queue_order, self.driver.clone(), adaptors)
    }

    fn may_lose_data(&self) -> bool {
        self.controller.data_late_probability > 0.0
    }
}

fn read_driver_configs(driver: &DriverSource<'_>) -> Vec<HpDriverConfig> {
    let mut configs = vec![HpDriverConfig::default(); driver.drives.len()];
    for place in driver.attached_drives {
        let drive = &driver.drives[*place];
        let mut reader = driver.reader();
        reader.select("type", &drive.driver_type);
        configs[*place] = read_driver_config(&mut reader, driver.speed, drive);
        reader.finish();
    }
    configs
}

fn read_driver_config(
    reader: &mut Reader<'_>,
    speed: f64,
    drive: &DriveSpecification,
) -> HpDriverConfig {
    let position_test = reader.choice(
        "position_test",
        &[
            ("1981", PositionTest::WithinLastSectors),
            ("1984", PositionTest::OutsideWindow),
            ("1987", PositionTest::InsideWindow),
        ],
        "when a sector on the current cylinder is transferred without a search",
    );
    let mut cost = |key, doc| scale_cost(reader.milliseconds(key, 0.0..=COST_MS_MAX, doc), speed);
    let strategy = cost("strategy_ms", "processor time to queue a request");
    let start = cost(
        "start_ms",
        "processor time to decide how to start a request, and to command the drive",
    );
    let complete = cost(
        "complete_ms",
        "processor time to handle the end of a transfer",
    );
    HpDriverConfig {
        position_test,
        strategy_cost: strategy,
        start_cost: start,
        complete_cost: complete,
        map_register_cost: read_map_register(reader, speed),
        search_lead: read_lead(reader, position_test, drive),
    }
}

fn read_map_register(reader: &mut Reader<'_>, speed: f64) -> Time {
    let nanoseconds = reader.microseconds(
        "map_register_us",
        0.0..=COST_MS_MAX,
        "processor time to load a map register, which maps 512 bytes",
    );
    scale_cost(nanoseconds, speed)
}

fn read_lead(
    reader: &mut Reader<'_>,
    test: PositionTest,
    drive: &DriveSpecification,
) -> SearchLead {
    let slots = drive.slots_per_track();
    let mut sectors = |key, doc| reader.integer(key, 0..=100_000, doc);
    let lead = sectors(
        "search_lead_sectors",
        "sectors between the searched sector and the requested one (sdist)",
    );
    let (window, minimum, maximum) = match test {
        PositionTest::WithinLastSectors => {
            let doc = "sectors at the end of a track within which no search is made (rdist)";
            (sectors("position_window_sectors", doc), 0, 0)
        }
        PositionTest::OutsideWindow | PositionTest::InsideWindow => (
            0,
            sectors(
                "minimum_distance_sectors",
                "minimum distance of the sector window, in sectors (mindist)",
            ),
            sectors(
                "maximum_distance_sectors",
                "maximum distance of the sector window, in sectors (maxdist)",
            ),
        ),
    };
    if lead >= slots {
        let allowed = format!("less than the {slots} sectors of a track");
        reader.fail_with_choices(
            "search_lead_sectors",
            "a lead longer than a track",
            &allowed,
        );
    }
    SearchLead {
        lead_sectors: lead as u32,
        window_sectors: window.min(slots) as u32,
        distance_sectors_min: minimum as u32,
        distance_sectors_max: maximum as u32,
    }
}
