//! Measurement overhead: the cost of the same calls on `/dev/null`.

use diskperf_battery::{Medium, Program, ProgramError, Worker, WorkerGroupMember};
use diskperf_system::host::{CallClock, HostPorts, HostWorker, WorkerControl};
use diskperf_system::{System, run_ready};
use diskperf_timeline::{Nanoseconds, Overhead};

/// Number of rounds, alternately timed and untimed. The fastest of each kind counts, because
/// disturbances only make a round longer.
const ROUND_COUNT: u32 = 8;
const CALLS_PER_ROUND: u64 = 1000;

/// Measures the overhead on the calling thread, in a few milliseconds.
pub(crate) fn measure_overhead(clock: CallClock) -> Result<Overhead, ProgramError> {
    let mut program = Program::from_name("seqread").expect("the battery has seqread");
    program
        .set_parameter("layer", "null")
        .expect("seqread has a layer null");
    let worker = Worker {
        worker_index: 0,
        drive_index: 0,
        medium: Medium::Directory,
        file_folder: "",
        second_target: None,
        size_bytes: CALLS_PER_ROUND * program.call_bytes(),
        direct_io: false,
        random_seed: 0,
        think_time: Nanoseconds::ZERO,
        worker_group: WorkerGroupMember::default(),
    };
    let mut buffer = program.new_buffer(&worker);
    let mut round = |system: &mut System| {
        run_ready(async {
            system.start_measuring(Nanoseconds::ZERO)?;
            program.run_timed_part(system, &worker, &mut buffer).await?;
            let elapsed = system.finish_measuring().await?.elapsed_time;
            system.close_all().await;
            Ok::<_, ProgramError>(elapsed)
        })
    };
    let (mut timing, mut plain) = (
        build_null_system(clock, true),
        build_null_system(clock, false),
    );
    let (mut timed, mut untimed) = (Nanoseconds(u64::MAX), Nanoseconds(u64::MAX));
    for _ in 0..ROUND_COUNT {
        timed = timed.min(round(&mut timing)?);
        untimed = untimed.min(round(&mut plain)?);
    }
    Ok(Overhead {
        null_call_ns: timed.0 as f64 / CALLS_PER_ROUND as f64,
        timing_ns: timed.since(untimed).0 as f64 / CALLS_PER_ROUND as f64,
    })
}

fn build_null_system(clock: CallClock, time_calls: bool) -> System {
    let control = WorkerControl::for_single_worker(time_calls, clock);
    System::HostWorker(Box::new(HostWorker::new(HostPorts::default(), control)))
}
