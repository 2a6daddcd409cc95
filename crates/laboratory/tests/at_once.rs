//! Programs that run at the same time: each has a result of its own.

use diskperf_battery::Program;
use diskperf_laboratory::execute::execute;
use diskperf_laboratory::{Experiment, Plan, RunRecorder, SilentObserver, Workload, plan};
use diskperf_timeline::{Protocol, Repetition, Run, StepValues, SummaryStatistic};
use std::sync::Arc;

const TWICE: Protocol = Protocol {
    repetition_count: 2,
    discarded_count: 0,
    statistic: SummaryStatistic::Median,
    stop_below_share: None,
    steady_rule: None,
};

/// A program as a run keeps it, at this place of the table.
fn values(program: &str, settings: &[(&str, &str)], row: u32) -> StepValues {
    let mut made = Program::from_name(program).unwrap();
    for (name, value) in settings {
        made.set_parameter(name, value).unwrap();
    }
    StepValues {
        program: program.to_owned(),
        parameters: made.parameter_values(),
        distinguishing: settings
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect(),
        table_row: row,
        size_group: row,
        protocol: None,
        area_pass_count: None,
        size_bytes: None,
        parallel_steps: Vec::new(),
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
        parallel_steps: vec![StepValues {
            table_row: 1,
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
        parallel_steps: vec![writing],
        ..reading
    };
    let together = run(target, vec![both.clone()]);
    let names: Vec<_> = together
        .results
        .iter()
        .map(|one| (&*one.program, one.table_row))
        .collect();
    assert_eq!(names, [("random", 0), ("sequential", 1)]);
    for result in &together.results {
        assert_eq!(result.repetitions.len(), 2, "{}", result.program);
    }
    let elapsed = |run: &Run| run.results[0].repetitions[0].elapsed_time();
    assert!(elapsed(&together) > elapsed(&alone));
    // They began at the same moment.
    let started = |one: &Repetition| one.workers[0].start_time;
    let [reading, writing] = [0, 1].map(|place: usize| &together.results[place].repetitions[0]);
    assert!(started(reading) < writing.elapsed_time() && started(writing) < reading.elapsed_time());
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
    assert_eq!(again.run.model_information, together.model_information);
}

#[test]
fn random_streams_of_programs_at_once_differ() {
    let run = run("vax780-sc780-eagle", vec![twice()]);
    let [one, other] = [0, 1].map(|place: usize| &run.results[place].repetitions[0].workers[0]);
    assert_eq!(one.payload_bytes, other.payload_bytes);
    assert_ne!(one.load_measure, other.load_measure);
}

#[test]
fn where_nothing_is_there_all_are_measured() {
    let run = run("null", vec![twice()]);
    assert_eq!(run.results.len(), 2);
    for result in &run.results {
        let loads = result
            .repetitions
            .iter()
            .flat_map(Repetition::load_measures);
        assert!(
            loads.count() >= 2,
            "{} repetitions",
            result.repetitions.len()
        );
    }
}
