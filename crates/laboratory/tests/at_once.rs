//! Programs that run at the same time: each has a result of its own.

use diskperf_battery::Program;
use diskperf_laboratory::execute::execute;
use diskperf_laboratory::{Experiment, Plan, RunRecorder, SilentObserver, Workload, plan};
use diskperf_timeline::{Protocol, Repetition, Run, Statistic, StepValues};
use std::sync::Arc;

const TWICE: Protocol = Protocol {
    repetitions: 2,
    discarded: 0,
    statistic: Statistic::Median,
    stop_below_share: None,
    steady: None,
};

/// A program as a run keeps it, at this place of the table.
fn values(program: &str, settings: &[(&str, &str)], row: u32) -> StepValues {
    let mut made = Program::named(program).unwrap();
    for (name, value) in settings {
        made.set(name, value).unwrap();
    }
    StepValues {
        program: program.to_owned(),
        parameters: made.parameter_values(),
        distinguishing: settings
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect(),
        row,
        size_group: row,
        protocol: None,
        area_times: None,
        size_bytes: None,
        beside: Vec::new(),
    }
}

fn run(target: &str, steps: Vec<StepValues>) -> Run {
    let experiment = Experiment {
        workload: Workload::Steps {
            name: "together".to_owned(),
            protocol: TWICE,
            steps,
        },
        targets: vec![target.into()],
        ..Experiment::default()
    };
    let plans = plan::plan(&experiment).unwrap();
    let [plan]: [Plan; 1] = plans.try_into().unwrap();
    let mut recorder = RunRecorder::without_store();
    let executed = execute(&plan, &Arc::default(), &mut SilentObserver, &mut recorder);
    assert!(
        executed.error.is_none(),
        "{:?}",
        executed.error.map(|error| error.to_string())
    );
    executed.run
}

const SMALL: &[(&str, &str)] = &[("area_bytes", "1M"), ("depth", "2")];

/// A program beside itself.
fn twice() -> StepValues {
    let one = values("random", SMALL, 0);
    StepValues {
        beside: vec![StepValues {
            row: 1,
            ..one.clone()
        }],
        ..one
    }
}

#[test]
fn each_program_has_a_result_and_they_share_the_drive() {
    let target = "vax780-sc780-eagle";
    let reading = values("random", SMALL, 0);
    let writing = values(
        "sequential",
        &[("write_share", "1"), ("area_bytes", "1M")],
        1,
    );
    let alone = run(target, vec![reading.clone()]);
    let both = StepValues {
        beside: vec![writing],
        ..reading
    };
    let together = run(target, vec![both.clone()]);
    let names: Vec<_> = together
        .results
        .iter()
        .map(|one| (&*one.program, one.row))
        .collect();
    assert_eq!(names, [("random", 0), ("sequential", 1)]);
    for result in &together.results {
        assert_eq!(result.repetitions.len(), 2, "{}", result.program);
    }
    let elapsed = |run: &Run| run.results[0].repetitions[0].elapsed();
    assert!(elapsed(&together) > elapsed(&alone));
    // They began at the same moment.
    let started = |one: &Repetition| one.workers[0].started;
    let [reading, writing] = [0, 1].map(|place: usize| &together.results[place].repetitions[0]);
    assert!(started(reading) < writing.elapsed() && started(writing) < reading.elapsed());
    // What is kept of it makes it again.
    let kept = together.experiment.clone().unwrap();
    let again = plan::plan(&kept).unwrap();
    let again = execute(
        &again[0],
        &Arc::default(),
        &mut SilentObserver,
        &mut RunRecorder::without_store(),
    );
    assert_eq!(again.run.results, together.results);
    assert_eq!(again.run.model, together.model);
}

#[test]
fn random_streams_of_programs_at_once_differ() {
    let run = run("vax780-sc780-eagle", vec![twice()]);
    let [one, other] = [0, 1].map(|place: usize| &run.results[place].repetitions[0].workers[0]);
    assert_eq!(one.payload_bytes, other.payload_bytes);
    assert_ne!(one.load, other.load);
}

#[test]
fn where_nothing_is_there_all_are_measured() {
    let run = run("null", vec![twice()]);
    assert_eq!(run.results.len(), 2);
    for result in &run.results {
        let loads = result.repetitions.iter().flat_map(Repetition::loads);
        assert!(
            loads.count() >= 2,
            "{} repetitions",
            result.repetitions.len()
        );
    }
}
