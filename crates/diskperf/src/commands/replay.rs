//! Command `diskperf replay`: replays a trace.

use super::{CommandResult, DONE, RunOutputs, run_plans};
use crate::arguments::ReplayArguments;
use crate::output::print;
use diskperf_laboratory::plan;
use std::path::Path;

/// Executes `diskperf replay`: repeats the requests of a trace on each target.
pub(crate) fn replay(
    arguments: &ReplayArguments,
    command_line: Vec<String>,
    store: Option<&Path>,
) -> CommandResult {
    let plans = plan::plan(&arguments.to_experiment())?;
    arguments.format.reject_unsupported(&plans)?;
    if arguments.dry_run {
        let texts: Vec<_> = plans.iter().map(plan::Plan::describe).collect();
        print(&texts.join("\n"))?;
        return Ok(DONE);
    }
    let shown = (arguments.format, arguments.quiet);
    run_plans(&plans, shown, RunOutputs::default(), (command_line, store))
}
