//! A mirror of two disks in an event loop of its own: a read goes to one of them in turn, a
//! write to both, and it is done when both have it.

use diskperf_catalogue::Catalogue;
use diskperf_device::{DeviceSpecification, Drive, Operation, Unit};
use diskperf_sim::{RandomStreams, Time};

const REQUESTS: u64 = 2_000;
const SECTORS: u32 = 8;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let specification = DeviceSpecification::from_catalogue(&Catalogue::embedded(), "sata-7200")?;
    let streams = RandomStreams::new(7);
    let mut disks = [0, 1].map(|number| {
        let unit = Unit {
            number,
            ..Unit::default()
        };
        Drive::new(specification.build(&streams, unit))
    });
    let mut draws = streams.named_stream("load");
    let places = disks[0].device().sectors() - u64::from(SECTORS);

    let (mut now, mut total) = (Time::ZERO, Time::ZERO);
    for number in 0..REQUESTS {
        let write = draws.draw_below(4) == 0;
        let place = draws.draw_below(places);
        let asked = match write {
            true => 0..2,
            false => (number % 2) as usize..(number % 2) as usize + 1,
        };
        for disk in &mut disks[asked] {
            disk.submit(Operation::from_direction(write), place, SECTORS)?;
        }
        let begun = now;
        // The loop goes from event to event of both disks, in the order of time.
        while disks.iter().any(|disk| disk.under_way() > 0) {
            let due = disks.iter().filter_map(Drive::next_due).min();
            now = due.expect("a request is under way");
            for disk in &mut disks {
                disk.run_until(now);
                disk.completions().for_each(drop);
            }
        }
        total += now - begun;
    }
    println!("{:.2} ms a request", total.as_millis() / REQUESTS as f64);
    Ok(())
}
