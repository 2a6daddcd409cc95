//! UDA50 and the uda driver as described in the catalogue.

use super::driver::{UdaDriver, UdaDriverConfig};
use super::hardware::{CommandOrder, Uda50, Uda50Config};
use crate::driver::QueueOrder;
use crate::parts::{DriverSource, PartBuilder, PartSpecification, buffer_sectors};
use crate::specification::{COST_MS_MAX, scale_cost};
use diskperf_catalogue::Reader;
use diskperf_sim::Time;

/// UDA50 controller and its driver.
#[derive(Clone, Debug)]
pub struct Uda50Specification {
    /// Parameters of the controller.
    pub controller: Uda50Config,
    /// Processor costs and request order of the driver.
    pub driver: UdaDriverConfig,
}

impl PartSpecification for Uda50Specification {
    type Driver = UdaDriver;

    fn read_specification(reader: &mut Reader<'_>, driver: &DriverSource<'_>) -> Self {
        Self {
            controller: read_controller(reader),
            driver: read_driver(driver),
        }
    }

    fn attach_part(&self, builder: &mut PartBuilder<'_>) -> UdaDriver {
        let (config, streams) = (self.controller.clone(), builder.streams);
        let drives = builder.mechanisms(builder.drive_indices);
        let controller = builder.add_controller(|id, number| {
            let spread = streams.named_stream(&format!("controller.{number}.spread"));
            Uda50::new(id, config, drives, spread)
        });
        let driver = UdaDriverConfig {
            queue_order: builder.queue_order,
            ..self.driver.clone()
        };
        UdaDriver::new(driver, controller, builder.drive_count)
    }
}

fn read_controller(reader: &mut Reader<'_>) -> Uda50Config {
    let buffer_sectors = buffer_sectors(reader);
    let credits = reader.integer(
        "credits",
        2..=64,
        "commands that the host may have in flight",
    );
    let mut time = |key, doc| Time(reader.milliseconds(key, 0.0..=1000.0, doc));
    let decode = time(
        "decode_ms",
        "time of the controller's processor per command, before data move",
    );
    let finish = time(
        "finish_ms",
        "time of the controller's processor per command, after all data have moved",
    );
    let finish_per_sector = time(
        "finish_per_sector_ms",
        "time of the controller's processor per sector, after all data have moved",
    );
    Uda50Config {
        buffer_sectors,
        command_credits: credits as u32,
        decode_time: decode,
        finish_time: finish,
        finish_time_per_sector: finish_per_sector,
        time_spread_share: reader.number(
            "finish_spread",
            0.0..=1.0,
            "spread of the controller's processor times, as a share of their mean",
        ),
        command_order: reader.choice(
            "order",
            &[
                ("arrival", CommandOrder::ArrivalOrder),
                ("nearest", CommandOrder::NearestFirst),
            ],
            "order in which a drive's commands are executed",
        ),
        overlaps_decode: reader.flag(
            "overlap_decode",
            "whether a drive's next command is decoded while another is executed",
        ),
    }
}

fn read_driver(driver: &DriverSource<'_>) -> UdaDriverConfig {
    let mut reader = driver.reader();
    let mut cost = |key, doc| {
        scale_cost(
            reader.milliseconds(key, 0.0..=COST_MS_MAX, doc),
            driver.speed,
        )
    };
    let config = UdaDriverConfig {
        queue_order: QueueOrder::ArrivalOrder,
        start_cost: cost(
            "start_ms",
            "processor time to queue a request and build its command",
        ),
        complete_cost: cost("complete_ms", "processor time to handle a response"),
    };
    reader.finish();
    config
}
