//! Repetition of stored runs of modelled systems, from the experiments that they store.

mod version_0_1_0;

use crate::error::LaboratoryError;
use crate::explain::ExplainedSystem;
use crate::files::Files;
use crate::model::run::describe_model;
use crate::model::version::MODEL_VERSION;
use crate::plan::ModelPlan;
use diskperf_timeline::{Experiment, MeasuredWorld, ModelInformation, Nanoseconds, Run};
use std::collections::BTreeSet;

/// Makes the plan that repeats a stored run. Another version of the model may repeat it if its
/// results are the same; the caller compares them with the stored ones.
///
/// # Errors
///
/// Returns the changes since the run was stored, or an error if the run was not made on a model.
pub fn plan_stored_run(run: &Run, files: &dyn Files) -> Result<ModelPlan, LaboratoryError> {
    let stored = model_of_run(run)?;
    let plan =
        ExplainedSystem::from_plan(run.target_label.clone(), &experiment_of_run(run)?, files)?.plan;
    let now = describe_model(&plan, &stored.model_version);
    match now.fingerprint == stored.fingerprint {
        true => Ok(plan),
        false => Err(changed_inputs_error(run, stored, &now)),
    }
}

/// Returns the experiment of a modelled run. A run of version 0.1.0 stores only its command line,
/// from which the experiment is derived.
fn experiment_of_run(run: &Run) -> Result<Experiment, LaboratoryError> {
    let kept = run.experiment.clone();
    let kept = kept.or_else(|| version_0_1_0::parse_command_line(&run.command_line));
    let kept = kept.ok_or_else(|| {
        LaboratoryError::Request(format!(
            "run {} cannot be repeated: its command line is not one of `diskperf run`: `{}`; run it again with this diskperf",
            run.run_id,
            run.command_line.join(" ")
        ))
    })?;
    // It may have been one of several runs, some of which were on real storage.
    Ok(Experiment {
        targets: vec![run.target_label.clone().into()],
        runs_targets_together: false,
        second_target: None,
        fresh_filesystem: None,
        destroy_data_on: Vec::new(),
        ignores_signature: false,
        ..kept
    })
}

fn model_of_run(run: &Run) -> Result<&ModelInformation, LaboratoryError> {
    match (&run.model_information, run.world) {
        (Some(model), MeasuredWorld::Model) => Ok(model),
        _ => Err(LaboratoryError::Request(format!(
            "run {} is of real storage and cannot be repeated exactly; `diskperf explain {}` explains what was stored of it",
            run.run_id, run.run_id
        ))),
    }
}

/// Returns the reason why the plan of a stored run now makes a different run.
fn changed_inputs_error(
    run: &Run,
    stored: &ModelInformation,
    now: &ModelInformation,
) -> LaboratoryError {
    let id = &run.run_id;
    if stored.model_version != MODEL_VERSION {
        return other_model_error(run, stored);
    }
    let changed = list_changes(stored, now);
    LaboratoryError::Request(match changed.is_empty() {
        true => format!(
            "run {id} cannot be repeated: its options describe a different run in this version; run it again"
        ),
        false => format!(
            "run {id} cannot be repeated: the catalogue has changed since, in {}; run it again",
            changed.join(", ")
        ),
    })
}

fn other_model_error(run: &Run, stored: &ModelInformation) -> LaboratoryError {
    LaboratoryError::Request(format!(
        "run {} was made by model {}, and this is {MODEL_VERSION}, whose results differ; run it again",
        run.run_id, stored.model_version
    ))
}

fn list_changes(stored: &ModelInformation, now: &ModelInformation) -> Vec<String> {
    let names = stored.catalogue.keys().chain(now.catalogue.keys());
    let names: BTreeSet<&String> = names.collect();
    let differs = |name: &&String| stored.catalogue.get(*name) != now.catalogue.get(*name);
    names.into_iter().filter(differs).cloned().collect()
}

/// Verifies that each repeated program took as long as one of its stored repetitions that count.
///
/// # Errors
///
/// Returns an error for the first program that did not.
pub fn check_elapsed(
    run: &Run,
    elapsed: impl Iterator<Item = (usize, Nanoseconds)>,
) -> Result<(), LaboratoryError> {
    let stored = model_of_run(run)?;
    for (number, elapsed) in elapsed {
        let Some(result) = run.results.get(number) else {
            continue;
        };
        if result
            .kept_repetitions()
            .any(|kept| kept.elapsed_time() == elapsed)
        {
            continue;
        }
        if stored.model_version != MODEL_VERSION {
            return Err(other_model_error(run, stored));
        }
        return Err(LaboratoryError::Failure(format!(
            "run {} was repeated, and {} takes {} ns, a different time than before: one of the two runs is wrong; please report it",
            run.run_id, result.program, elapsed.0
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::NoFiles;
    use crate::model::run::{RunStart, build_task, describe_setup, new_run};
    use diskperf_timeline::Workload;

    /// A run of another build of the model, whose version is another.
    fn of_another_build(experiment: &Experiment) -> Run {
        let plan = ExplainedSystem::from_plan(String::new(), experiment, &NoFiles)
            .unwrap()
            .plan;
        let mut run = new_run(&plan, RunStart::default());
        run.model_information = Some(describe_model(&plan, "0.1.0+feed"));
        run
    }

    #[test]
    fn another_version_of_the_model_makes_what_it_makes_the_same() {
        let mut run = of_another_build(&Experiment {
            workload: Workload::NamedSuite("read_8192".to_owned()),
            targets: vec!["vax780-sc780-eagle".into()],
            repetition_count: Some(2),
            seed: 7,
            ..Experiment::default()
        });
        let kept = run.experiment.as_mut().unwrap();
        // A device was measured by the same command.
        kept.destroy_data_on.push("/dev/loop0".into());
        let workload = kept.workload.clone();
        let again = plan_stored_run(&run, &NoFiles).unwrap();
        assert_eq!(again.experiment.workload, workload);
        assert_eq!(again.suite.default_protocol.repetition_count, 2);
        // Whether it does the same is told by what it makes.
        let job = again.suite.iter_jobs().next().unwrap();
        let stand = describe_setup(&again, &again.computers[0]);
        let task = build_task(&again, job, "");
        run.results
            .push(stand.new_result(job, task, again.suite.default_protocol));
        let wrong = check_elapsed(&run, [(0, Nanoseconds(1))].into_iter());
        let words = wrong.unwrap_err().to_string();
        assert!(words.contains("made by model 0.1.0+feed"), "{words}");
    }

    #[test]
    fn another_experiment_is_another_run() {
        let mut run = of_another_build(&Experiment {
            targets: vec!["vax780-sc780-eagle".into()],
            ..Experiment::default()
        });
        run.experiment.as_mut().unwrap().seed += 1;
        let words = plan_stored_run(&run, &NoFiles).unwrap_err().to_string();
        assert!(words.contains("made by model 0.1.0+feed"), "{words}");
    }
}
