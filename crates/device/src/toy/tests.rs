//! The toy from its catalogue, with a queue of requests.

use crate::{DeviceSpecification, Drive, Operation, Unit};
use diskperf_catalogue::Catalogue;
use diskperf_sim::Streams;
use std::path::Path;

#[test]
fn requests_take_the_time_of_their_distance_and_length_one_after_the_other() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/toy/catalogue");
    let catalogue = Catalogue::embedded()
        .overlaid(&folder)
        .expect("a catalogue");
    let specification = DeviceSpecification::of(&catalogue, "seekdisk").expect("a drive");
    let mut drive = Drive::new(specification.build(&Streams::new(1), Unit::default()));
    for (sector, sectors) in [(1000, 8), (1008, 8), (8, 8)] {
        let submitted = drive.submit(Operation::Read, sector, sectors);
        submitted.expect("room in the queue");
    }
    let mut ends = Vec::new();
    while let Some(done) = drive.next_completion() {
        ends.push((done.sector, done.completed.0));
    }
    // 20 ns for each sector of distance, 1000 ns for each sector.
    let first = 20 * 1000 + 8000;
    let second = first + 8000;
    let third = second + 20 * (1016 - 8) + 8000;
    assert_eq!(ends, [(1000, first), (1008, second), (8, third)]);
}
