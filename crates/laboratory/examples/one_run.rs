//! How long one call takes that plans a modelled program and runs it: the other
//! side of `bench/python`. `one_run PROGRAM SYSTEM CALLS` prints the nanoseconds of
//! each call.

use diskperf_laboratory::execute::execute;
use diskperf_laboratory::{Experiment, Observer, ObserverEvent, RunRecorder, Workload, plan};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

struct Silent;

impl Observer for Silent {
    fn handle_event(&mut self, _event: ObserverEvent<'_>) {}
}

fn main() {
    let mut words = std::env::args().skip(1);
    let mut word = || words.next().expect("one_run PROGRAM SYSTEM CALLS");
    let (program, system, calls) = (word(), word(), word());
    let experiment = Experiment {
        workload: Workload::NamedSuite(program),
        targets: vec![PathBuf::from(system)],
        ..Experiment::default()
    };
    let stop = Arc::default();
    for _ in 0..calls.parse().expect("a number of calls") {
        let begin = Instant::now();
        let plans = plan::plan(&experiment).expect("a plan");
        let mut recorder = RunRecorder::without_store();
        let executed = execute(&plans[0], &stop, &mut Silent, &mut recorder);
        assert!(executed.error.is_none(), "the program failed");
        println!("{}", begin.elapsed().as_nanos());
    }
}
