//! How fast the disk's mechanism and its queue are simulated: random 4 KiB reads at depth
//! 1, and ordered by the shortest positioning time at depth 32.

#[path = "../../sim/benches/support/mod.rs"]
mod measuring;

use criterion::{Criterion, Throughput};
use diskperf_device::disk::layout::DataSheet;
use diskperf_device::disk::mechanism::{Mechanism, MechanismSpecification, MediaAccess};
use diskperf_device::disk::queue::{QueuePolicy, QueueSpecification, QueueView, WaitingCommand};
use diskperf_device::disk::seek::SeekSpecification;
use diskperf_device::disk::spindle::RotationAngle;
use diskperf_sim::{RandomStream, RandomStreams, Time};
use measuring::{ThreadTime, measures, shortest, thread_time};
use std::hint::black_box;

const REQUESTS: u64 = 100_000;
/// Depths, and requests per second that must be simulated at them.
const BARS: [(u64, f64); 2] = [(1, 5e6), (32, 0.5e6)];

/// A disk of 8 TB and 7200 rpm.
fn disk() -> Mechanism {
    let sheet = DataSheet {
        capacity_bytes: 8_000_000_000_000,
        sector_bytes: 4096,
        head_count: 12,
        outer_track_bytes: 2.2e6,
        inner_to_outer_ratio: 0.48,
        zone_count: 24,
        tracks_per_band: 200,
        track_skew_rev: 0.15,
        head_skew_rev: 0.25,
    };
    let specification = MechanismSpecification {
        write_seek: None,
        inward_ms: [0.0; 2],
        same_track_ms: [0.0; 2],
        layout: sheet.build_layout().expect("a disk"),
        seek: SeekSpecification::ThreePoints {
            single_cylinder_ms: 0.25,
            average_ms: 8.0,
            full_stroke_ms: 17.5,
        },
        head_switch_ms: 0.6,
        write_settle_ms: 0.5,
        period_ns: 60e9 / 7200.0,
        zero_latency_reads: true,
        zero_latency_writes: false,
    };
    Mechanism::new(&specification, RotationAngle::ZERO).expect("a disk")
}

/// A closed queue of one depth.
struct Closed {
    mechanism: Mechanism,
    queue: Vec<WaitingCommand>,
    draws: RandomStream,
    order: QueueSpecification,
}

impl Closed {
    fn new(mechanism: &Mechanism, depth: u64) -> Self {
        let mut closed = Self {
            mechanism: mechanism.clone(),
            queue: Vec::new(),
            draws: RandomStreams::new(1).named_stream("places"),
            order: QueueSpecification {
                order: QueuePolicy::Sptf,
                ..QueueSpecification::default()
            },
        };
        for number in 0..depth {
            let request = closed.draw(Time::ZERO, number);
            closed.queue.push(request);
        }
        closed
    }

    fn draw(&mut self, came: Time, number: u64) -> WaitingCommand {
        let sector = self.draws.draw_below(self.mechanism.layout().sectors());
        WaitingCommand {
            sector,
            position: self.mechanism.layout().position_of(sector),
            is_write: false,
            arrival: came,
            sequence_number: number,
        }
    }

    /// Serves so many requests.
    fn run(mut self, requests: u64) -> Time {
        let (mut now, mut rising) = (Time::ZERO, true);
        for number in 0..requests {
            let view = QueueView {
                now,
                arm_position: u64::from(self.mechanism.arm_cylinder()),
                stroke_length: u64::from(self.mechanism.layout().cylinder_count()),
                moving_inward: rising,
            };
            let positioning = |of: &WaitingCommand| {
                self.mechanism
                    .positioning_time(now, &of.position, of.is_write)
            };
            let choice = self.order.choose_command(&view, &self.queue, positioning);
            let choice = choice.expect("a closed queue is never empty");
            rising = choice.moving_inward;
            let access = MediaAccess {
                first_sector: self.queue[choice.command_index].sector,
                sector_count: 1,
                ..MediaAccess::default()
            };
            now += self.mechanism.access_media(now, &access, |_| ()).total();
            self.queue[choice.command_index] = self.draw(now, number + (1 << 32));
        }
        now
    }
}

fn main() {
    let disk = disk();
    let mut criterion = Criterion::default()
        .with_measurement(ThreadTime::new())
        .configure_from_args();
    let mut group = criterion.benchmark_group("disk");
    group.throughput(Throughput::Elements(REQUESTS));
    for (depth, _) in BARS {
        group.bench_function(
            format!("random 4 KiB reads, {depth} outstanding"),
            |bencher| {
                bencher.iter_batched(
                    || Closed::new(&disk, depth),
                    |closed| closed.run(REQUESTS),
                    criterion::BatchSize::LargeInput,
                );
            },
        );
    }
    group.finish();
    criterion.final_summary();
    for (depth, bar) in BARS.into_iter().filter(|_| measures()) {
        let seconds = shortest(20, || {
            let closed = Closed::new(&disk, depth);
            let start = thread_time();
            black_box(closed.run(REQUESTS));
            thread_time() - start
        });
        let rate = REQUESTS as f64 / seconds;
        println!(
            "{:.2} million requests/s at depth {depth}; the bar is {}",
            rate / 1e6,
            bar / 1e6
        );
        assert!(rate >= bar, "a disk is simulated too slowly");
    }
}
