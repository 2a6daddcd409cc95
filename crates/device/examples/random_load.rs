//! 4 KiB random reads and writes against `nvme-tlc-plp`, 32 at once.

use diskperf_catalogue::Catalogue;
use diskperf_device::{DeviceSpecification, Drive, Operation, Unit};
use diskperf_sim::{RandomStreams, Time};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let specification =
        DeviceSpecification::from_catalogue(&Catalogue::embedded(), "nvme-tlc-plp")?;
    let specification = specification.written_at_random();
    let streams = RandomStreams::new(1);
    let mut drive = Drive::new(specification.build(&streams, Unit::default()));
    let mut draws = streams.named_stream("load");
    let per_block = 4096 / drive.device().sector_bytes();
    let blocks = drive.device().sectors() / u64::from(per_block);

    let mut latencies = Vec::new();
    let mut submitted = 0;
    while latencies.len() < 100_000 {
        while drive.under_way() < 32 && submitted < 100_000 {
            let operation = Operation::from_direction(draws.draw_below(10) < 3);
            let sector = draws.draw_below(blocks) * u64::from(per_block);
            drive.submit(operation, sector, per_block)?;
            submitted += 1;
        }
        latencies.extend(drive.next_completion().map(|done| done.latency()));
    }
    latencies.sort();
    let at = |share: f64| latencies[(share * 99_999.0) as usize].as_millis() * 1e3;
    let iops = 100_000.0 / (drive.now() - Time::ZERO).as_seconds();
    println!(
        "{iops:.0} IOPS, p50 {:.1} us, p99 {:.1} us",
        at(0.5),
        at(0.99)
    );
    Ok(())
}
