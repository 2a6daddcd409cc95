//! Caps and slow devices in virtual time: `cap_probe` on volumes and devices that are drawn at random
//! recognises the caps of volumes and claims none on devices.

mod devices;
mod probe;
mod volumes;

use diskperf_analysis::caps::{CapVerdict, CappedUnit};
use diskperf_sim::{RandomStream, RandomStreams};
use probe::ProbedSystem;

/// Relative error of a recognised rate at most.
const RATE_TOLERANCE: f64 = 0.03;

/// Cases of a test.
#[derive(Clone, Copy)]
struct CaseSet {
    /// Number of volumes, and of devices.
    count: usize,
    /// Fastest volume and exponential server in requests per second: others take longer to simulate.
    iops_max: f64,
    /// Whether devices may be flash drives, which take longest.
    has_flash: bool,
}

const ALL_CASES: CaseSet = CaseSet {
    count: 200,
    iops_max: 20_000.0,
    has_flash: true,
};

const EVERYDAY_CASES: CaseSet = CaseSet {
    count: 6,
    iops_max: 1000.0,
    has_flash: false,
};

/// Volume with the rate that its limits allow.
struct CappedVolume {
    system: ProbedSystem,
    unit: CappedUnit,
    per_s: f64,
}

/// Returns the reason why a verdict on a volume is wrong; `None` if it is right.
fn volume_error(volume: &CappedVolume) -> Option<String> {
    let verdict = volume.system.probe();
    let CapVerdict::Capped(cap) = &verdict else {
        return Some(format!("{verdict:?}"));
    };
    let is_right =
        cap.unit == volume.unit && (cap.per_s / volume.per_s - 1.0).abs() <= RATE_TOLERANCE;
    (!is_right).then(|| format!("{:?} {:.1}/s, found {cap:?}", volume.unit, volume.per_s))
}

/// Returns the cap that was claimed on a device without one; `None` if none was.
fn device_error(system: &ProbedSystem) -> Option<String> {
    match system.probe() {
        CapVerdict::Capped(cap) => Some(format!("claimed {cap:?}")),
        CapVerdict::NotCapped { .. } => None,
    }
}

/// Lists the wrong verdicts on some volumes and as many devices, by kind.
fn list_errors(seed: u64, cases: CaseSet) -> [Vec<String>; 2] {
    let mut random = RandomStreams::new(seed).named_stream("cases");
    let mut errors = [Vec::new(), Vec::new()];
    for number in 0..cases.count {
        let volume = volumes::draw_volume(&mut random, cases);
        let found = volume_error(&volume);
        errors[0].extend(found.map(|error| format!("{number}: {} {error}", volume.system)));
        let device = devices::draw_device(&mut random, cases);
        let found = device_error(&device);
        errors[1].extend(found.map(|error| format!("{number}: {device} {error}")));
        if cases.has_flash {
            let wrong = errors.each_ref().map(Vec::len);
            println!("{} cases of either kind, wrong: {wrong:?}", number + 1);
        }
    }
    errors
}

fn choose<T: Copy>(random: &mut RandomStream, from: &[T]) -> T {
    from[random.draw_below(from.len() as u64) as usize]
}

/// Draws a number between two, evenly by its logarithm.
fn draw_magnitude(random: &mut RandomStream, from: f64, to: f64) -> f64 {
    from * (to / from).powf(random.draw_share())
}

#[test]
fn caps_of_volumes_are_recognised_and_none_is_claimed_on_devices() {
    let [volumes, devices] = list_errors(52, EVERYDAY_CASES);
    assert!(volumes.is_empty(), "{volumes:#?}");
    assert!(devices.is_empty(), "{devices:#?}");
}

/// The bar: at most one of 200 is wrong each way. `DISKPERF_CAPS_SEED` draws other cases.
#[test]
#[ignore = "minutes; shows how often caps are recognised for other seeds"]
fn at_most_one_of_200_is_wrong_each_way() {
    let seed = std::env::var("DISKPERF_CAPS_SEED").map_or(1, |seed| seed.parse().expect("a seed"));
    let [volumes, devices] = list_errors(seed, ALL_CASES);
    println!(
        "seed {seed}: {} of 200 volumes and {} of 200 devices are wrong\n{volumes:#?}\n{devices:#?}",
        volumes.len(),
        devices.len()
    );
    assert!(volumes.len() <= 1 && devices.len() <= 1);
}
