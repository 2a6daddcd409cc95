//! Measurement overhead: the cost of the same calls on `/dev/null`.

use diskperf_battery::{Company, Medium, Program, ProgramError, Worker};
use diskperf_system::host::{Clock, Control, Host, Ports};
use diskperf_system::{System, run_ready};
use diskperf_timeline::{Nanoseconds, Overhead};

/// Number of rounds, alternately timed and untimed. The fastest of each kind counts, because
/// disturbances only make a round longer.
const ROUND_COUNT: u32 = 8;
const CALLS_PER_ROUND: u64 = 1000;

/// Measures the overhead on the calling thread, in a few milliseconds.
pub(crate) fn measure_overhead(clock: Clock) -> Result<Overhead, ProgramError> {
    let mut program = Program::named("seqread").expect("the battery has seqread");
    program
        .set("layer", "null")
        .expect("seqread has a layer null");
    let worker = Worker {
        index: 0,
        drive: 0,
        medium: Medium::Directory,
        folder: "",
        other: None,
        size_bytes: CALLS_PER_ROUND * program.call_bytes(),
        direct: false,
        seed: 0,
        think: Nanoseconds::ZERO,
        company: Company::default(),
    };
    let mut buffer = program.buffer(&worker);
    let mut round = |system: &mut System| {
        run_ready(async {
            system.start_measuring(Nanoseconds::ZERO)?;
            program.run(system, &worker, &mut buffer).await?;
            let elapsed = system.finish_measuring().await?.elapsed;
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

fn build_null_system(clock: Clock, time_calls: bool) -> System {
    let control = Control::alone(time_calls, clock);
    System::Host(Box::new(Host::new(Ports::default(), control)))
}
