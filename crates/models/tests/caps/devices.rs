//! Random devices without a cap: flash with garbage collection, disks, and exponential servers.

use crate::probe::ProbedSystem;
use crate::{CaseSet, choose, draw_magnitude};
use diskperf_sim::RandomStream;

const DISKS: [&str; 4] = ["sata-7200", "sata-consumer", "sas-10k", "smr-5400"];
const FLASH: [&str; 4] = ["sata-tlc", "nvme-tlc", "nvme-tlc-plp", "nvme-qlc"];

/// Draws a device with a load.
pub(crate) fn draw_device(random: &mut RandomStream, cases: CaseSet) -> ProbedSystem {
    match random.draw_below(2 + u64::from(cases.has_flash)) {
        0 => draw_servers(random, cases.iops_max),
        1 => draw_disk(random),
        _ => draw_flash(random),
    }
}

fn new_system(random: &mut RandomStream, name: &str) -> ProbedSystem {
    ProbedSystem {
        name: format!("bare-{name}"),
        settings: Vec::new(),
        depth: 1 << random.draw_below(7),
        block_bytes: 4096 << random.draw_below(6),
        write_share: choose(random, &[0.0, 0.0, 0.5, 1.0, 1.0]),
        area_bytes: 1 << 30,
        seed: random.draw_bits(),
    }
}

fn draw_servers(random: &mut RandomStream, iops_max: f64) -> ProbedSystem {
    let servers = 1 << random.draw_below(6);
    let rate = draw_magnitude(random, 50.0, iops_max);
    let service_ms = 1000.0 * servers as f64 / rate;
    ProbedSystem {
        settings: vec![
            ("service", "exponential".to_owned()),
            ("servers", servers.to_string()),
            ("service_ms", format!("{service_ms:.6}")),
            ("queue_depth", "1024".to_owned()),
        ],
        area_bytes: 128 << 20,
        ..new_system(random, "fixed")
    }
}

fn draw_disk(random: &mut RandomStream) -> ProbedSystem {
    let name = choose(random, &DISKS);
    let area_bytes = draw_magnitude(random, 1e9, 500e9) as u64 >> 20 << 20;
    ProbedSystem {
        area_bytes,
        ..new_system(random, name)
    }
}

/// Draws a flash drive that collects garbage: it was written at random until steady, and the load
/// writes.
fn draw_flash(random: &mut RandomStream) -> ProbedSystem {
    let name = choose(random, &FLASH);
    let area_bytes = draw_magnitude(random, 1e9, 200e9) as u64 >> 20 << 20;
    ProbedSystem {
        settings: vec![("past", "random".to_owned())],
        area_bytes,
        write_share: choose(random, &[0.3, 0.5, 1.0]),
        // Faster loads take minutes to simulate.
        depth: 1 << random.draw_below(4),
        block_bytes: 16_384 << random.draw_below(4),
        ..new_system(random, name)
    }
}
