//! The engine cpuio: time in which the processor is used, and the end of it.

use super::{SEED, on_model};
use diskperf_timeline::{Nanoseconds, Stage};

/// Share of a second, in percent, in which a job uses the processor of a model.
#[test]
fn the_processor_is_used_for_its_share_of_the_runtime() {
    for (options, least, most) in [
        ("cpuload=30 cpuchunks=10000", 28, 32),
        ("cpuload=75 cpuchunks=3000", 73, 77),
        ("cpuload=100", 99, 100),
        ("cpuload=250 cpuchunks=1000", 99, 100),
        ("cpuload=50 cpumode=qsort cpuchunks=1000", 48, 52),
        // A chunk that is longer than the job ends with it.
        ("cpuload=10 cpuchunks=70000000", 99, 100),
    ] {
        let all = format!("ioengine=cpuio runtime=1 rw=randwrite {options}");
        let measure = on_model(&all);
        let second = Nanoseconds::from_millis(1000);
        let room = Nanoseconds::from_millis(10);
        assert!(
            measure.elapsed_time >= second && measure.elapsed_time <= second + room,
            "seed {SEED}, {options}: {:?}",
            measure.elapsed_time
        );
        let used = measure.ledger.stage_duration(Stage::User);
        let percent = used.0 * 100 / measure.elapsed_time.0;
        assert!(
            (least..=most).contains(&percent),
            "seed {SEED}, {options}: {percent} %, {:?}",
            measure.ledger
        );
        assert_eq!((measure.read_bytes, measure.written_bytes), (0, 0));
    }
}
