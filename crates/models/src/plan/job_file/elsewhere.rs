//! Job options without files and devices: engines that send their I/Os elsewhere, and commands
//! beside a job.

use diskperf_fio::{JobDefinition, Problem};

/// Lists the problems of a job that storage of this machine cannot run but a model can.
pub(super) fn list_storage_problems(job: &JobDefinition) -> Vec<Problem> {
    let engine = job
        .engine
        .foreign_engine
        .filter(|other| !other.is_equivalent_here());
    let engine = engine.map(|other| {
        let title = format!("ioengine={} on storage of this machine", other.name);
        let help = "model the drive, as by --on bare-nvme-tlc, or use ioengine=libaio on a device that the system has mapped";
        job.option_error("ioengine", &title, &other.unavailable_reason(), help)
    });
    engine.into_iter().collect()
}

pub(super) fn list_storage_notes(job: &JobDefinition) -> Vec<String> {
    let why =
        "diskperf runs no commands of a job file; run it yourself where the result depends on it";
    list_notes(job, why)
}

pub(super) fn list_model_notes(job: &JobDefinition) -> Vec<String> {
    list_notes(job, "a modelled drive is no part of this system")
}

/// Notes on the engine of a job, and on its commands that are not run. `why` is the reason.
fn list_notes(job: &JobDefinition, why: &str) -> Vec<String> {
    let of_command =
        |(key, command): (&str, &str)| format!("{key}: the command `{command}` is not run: {why}");
    let of_engine = job
        .engine
        .foreign_engine
        .iter()
        .map(|other| other.equivalence_note());
    of_engine
        .chain(list_commands(job).map(of_command))
        .collect()
}

fn list_commands(job: &JobDefinition) -> impl Iterator<Item = (&'static str, &str)> {
    let commands = [
        ("exec_prerun", &job.order.command_before),
        ("exec_postrun", &job.order.command_after),
    ];
    commands
        .into_iter()
        .filter_map(|(key, command)| Some((key, command.as_deref()?)))
}
