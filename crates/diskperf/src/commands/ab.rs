//! Command `diskperf ab`: measures two variants alternately and compares them.

use super::{CommandResult, DONE, FAILED, has_figures, print_comparison, print_run_location};
use crate::arguments::AbArguments;
use crate::output::{print, print_message};
use crate::progress::RunDisplay;
use crate::signals::stop_on_signals;
use diskperf_analysis::comparison::compare;
use diskperf_laboratory::ab::{AbOutcome, AbPlan, execute, plan};
use diskperf_laboratory::execute::prepare_process;
use diskperf_laboratory::{LaboratoryError, RunRecorder};
use std::path::Path;

/// Measures two experiments in interleaved blocks, stores both runs and compares them.
pub(crate) fn ab(
    arguments: &AbArguments,
    command_line: &[String],
    store: Option<&Path>,
) -> CommandResult {
    let plan = plan(arguments.to_request(store)?)?;
    if arguments.dry_run {
        print(plan.describe().trim_end())?;
        return Ok(DONE);
    }
    prepare_process(plan.plans())?;
    let mut recorders =
        [(); 2].map(|()| RunRecorder::open(store).with_command_line(command_line.to_vec()));
    if let Some(failure) = recorders[0].store_failure() {
        print_message(&format!(
            "{failure}; the results are kept in a file until the store accepts them"
        ));
    }
    let AbOutcome { runs, error } = execute_plan(&plan, arguments.quiet, &mut recorders)?;
    let printed = if runs.len() == 2 && runs.iter().all(has_figures) {
        print_comparison(compare(&runs), &arguments.gate, arguments.format)
    } else {
        Ok(DONE)
    };
    for (run, recorder) in runs.iter().zip(&recorders) {
        print_run_location(std::slice::from_ref(run), recorder, arguments.quiet);
    }
    if let Some(error) = error {
        return Err(error);
    }
    let code = printed?;
    let is_stored = recorders
        .iter()
        .all(|recorder| recorder.store_failure().is_none());
    Ok(match (is_stored, arguments.gate.fail_over) {
        (true, _) => code,
        (false, None) => FAILED,
        (false, Some(_)) => GATE_FAILED,
    })
}

/// Exit code of a failed measurement with a gate, because 1 then means that the gate failed.
const GATE_FAILED: u8 = 2;

fn execute_plan(
    plan: &AbPlan,
    quiet: bool,
    recorders: &mut [RunRecorder; 2],
) -> Result<AbOutcome, LaboratoryError> {
    let stop = stop_on_signals()?;
    let mut progress = RunDisplay::new(quiet, &stop);
    Ok(execute(plan, &stop, &mut progress, recorders.each_mut()))
}
