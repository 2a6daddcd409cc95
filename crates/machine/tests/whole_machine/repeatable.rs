//! The same run is the same run. These fail when anything hangs on an order
//! that nobody set, on another machine, or on what happens at the same
//! nanosecond.

use super::*;
use diskperf_machine::RequestStatistics;
use diskperf_machine::TieBreak;

/// What a run leaves behind that could differ.
#[derive(Debug, PartialEq)]
struct Trace {
    ended: Time,
    moments: Vec<Vec<Time>>,
    statistics: RequestStatistics,
    processor: (Time, Time),
}

struct Pair {
    machine: Machine,
    moments: Vec<Rc<RefCell<Option<Vec<Time>>>>>,
}

impl Pair {
    /// Two processes, each on a drive, that write and read.
    fn new(system: &str, seed: u64, tie_break: TieBreak) -> Self {
        let circumstances = RunConditions {
            seed,
            volume_count: 2,
            phase_step: 123_456_789,
            speed_difference_share: 0.003,
            tie_break,
            ..RunConditions::default()
        };
        let machine = Machine::build(&specification(system, &[]), circumstances);
        let moments = (0..2)
            .map(|drive| {
                start(&machine, drive, async move |session: &mut Session| {
                    let path = format!("/mnt{drive}/file");
                    make(session, &path, 100).await;
                    read(session, &path).await
                })
            })
            .collect();
        Self { machine, moments }
    }

    fn trace(self) -> Trace {
        self.machine.run_to_end().expect("the processes end");
        let moments = self
            .moments
            .iter()
            .map(|each| each.take().expect("it ended"));
        Trace {
            ended: self.machine.current_time(),
            moments: moments.collect(),
            statistics: self.machine.statistics(),
            processor: self.machine.processor_busy_times(),
        }
    }
}

fn trace(system: &str, seed: u64, tie_break: TieBreak) -> Trace {
    Pair::new(system, seed, tie_break).trace()
}

const INITIAL: &str = "vax780-sc780-eagle:initial-arbitration";

#[test]
fn a_run_repeats_to_the_nanosecond() {
    for system in [SC780, SC750, UDA50, INITIAL] {
        let one = trace(system, 1, TieBreak::InsertionOrder);
        assert_eq!(one, trace(system, 1, TieBreak::InsertionOrder), "{system}");
    }
    // Where chance plays a part, another seed is another run.
    let one = trace(UDA50, 1, TieBreak::InsertionOrder);
    assert_ne!(one, trace(UDA50, 2, TieBreak::InsertionOrder));
}

#[test]
fn a_run_on_another_thread_is_the_same() {
    let here = trace(UDA50, 7, TieBreak::InsertionOrder);
    let there: Vec<_> = (0..2)
        .map(|_| std::thread::spawn(|| format!("{:?}", trace(UDA50, 7, TieBreak::InsertionOrder))))
        .collect();
    for thread in there {
        assert_eq!(thread.join().expect("it ran"), format!("{here:?}"));
    }
}

/// Machines that run in turn, a process at a time, do not know each other.
#[test]
fn two_machines_fit_in_one_program() {
    let (one, other) = (
        Pair::new(SC780, 1, TieBreak::InsertionOrder),
        Pair::new(UDA50, 2, TieBreak::InsertionOrder),
    );
    let alone = (
        trace(SC780, 1, TieBreak::InsertionOrder),
        trace(UDA50, 2, TieBreak::InsertionOrder),
    );
    let (other, one) = (other.trace(), one.trace());
    assert_eq!((one, other), alone);
}

#[test]
fn what_happens_at_once_may_happen_in_any_order() {
    for system in [SC780, SC750, UDA50, "vax780-si9900-eagle"] {
        let one = trace(system, 1, TieBreak::InsertionOrder);
        let other = trace(system, 1, TieBreak::ReversedOrder);
        assert_eq!(one, other, "{system}");
    }
}
