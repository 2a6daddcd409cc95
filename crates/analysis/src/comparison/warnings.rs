//! Warnings about facts that make two runs or two results less comparable than they look. Every
//! warning names both values.

use super::RunWarning;
use super::pairing::differing_parameters;
use crate::caps::{self, RowCap};
use crate::interference;
use diskperf_timeline::units::format_size;
use diskperf_timeline::{
    MeasuredWorld, ModelInformation, ProgramResult, Protocol, Repetition, Run, RunState,
    SummaryStatistic, TargetDescription,
};

/// Warns of runs that did not finish.
pub(super) fn warn_of_states(runs: &[Run]) -> Vec<RunWarning> {
    let warning = |(run, of): (usize, &Run)| {
        let why = unfinished_reason(&of.state)?;
        let text = format!("not finished: {why}");
        Some(RunWarning {
            run_index: run,
            message: text,
        })
    };
    runs.iter().enumerate().filter_map(warning).collect()
}

/// Returns the reason why a run is not finished; `None` if it is.
pub(super) fn unfinished_reason(state: &RunState) -> Option<&str> {
    match state {
        RunState::Finished => None,
        RunState::Running => Some("still running, or killed"),
        RunState::Interrupted => Some("interrupted by the user"),
        RunState::Failed(error) => Some(error),
    }
}

/// Warns of caps at which the results of a pair were measured: the base's and the other's.
pub(super) fn warn_of_caps(caps: &[Option<RowCap>; 2]) -> Option<String> {
    let limits: Vec<String> = caps
        .iter()
        .map(|cap| caps::describe_side(cap.as_ref()))
        .collect();
    let text = match caps {
        [None, None] => return None,
        [Some(_), None] => "the base is at a cap, and a loss shows only below it",
        [None, Some(_)] => "the other is at a cap, which decides its figure",
        [Some(_), Some(_)] => "both are at a cap, and a loss of the storage does not show",
    };
    Some(format!("{text}: {}", limits.join(" | ")))
}

/// Warns of the differences between the base run and another run. `run` is the index of the other.
pub(super) fn warn_of_run_pair(base: &Run, other: &Run, run: usize) -> Vec<RunWarning> {
    let mut texts = Vec::new();
    if super::is_same_run(base, other) {
        texts.push(
            "is the base itself: one run was named twice, and nothing is compared".to_owned(),
        );
    }
    if base.world != other.world {
        texts.push(format!(
            "worlds differ: {}, {}. KB/s is compared with KB/s and durable KB/s with durable KB/s, \
             never one with the other",
            describe_world(base.world),
            describe_world(other.world)
        ));
    }
    for (what, of) in [
        (
            "suites",
            (|run: &Run| run.suite_name.clone()) as fn(&Run) -> String,
        ),
        ("versions of diskperf", |run| run.program_version.clone()),
        ("versions of the model", |run| {
            describe_model(run, |model| model.model_version.clone())
        }),
        ("settings", |run| {
            describe_model(run, |model| model.settings.join(" "))
        }),
        ("kernels", |run| run.environment.kernel_version.clone()),
        ("CPUs", |run| run.environment.cpu_model.clone()),
        ("devices", describe_devices),
        ("mount options", |run| {
            describe_locations(run, |place| {
                place
                    .filesystem
                    .as_ref()
                    .map(|one| one.mount_options.clone())
            })
        }),
    ] {
        texts.extend(describe_if_different(what, &of(base), &of(other)));
    }
    if base.drops_all_caches != other.drops_all_caches {
        texts.push("only one of the two dropped the whole machine's caches".to_owned());
    }
    texts.extend(describe_catalogues(base, other));
    if other
        .interleaved
        .as_ref()
        .is_some_and(|one| one.targets_differ)
    {
        texts.push(
            "each side had its own files: the difference may come from their positions, which change speeds by 2 % to 5 %"
                .to_owned(),
        );
    }
    texts
        .into_iter()
        .map(|text| RunWarning {
            run_index: run,
            message: text,
        })
        .collect()
}

/// Returns a property of a modelled run; empty for a run on real storage.
fn describe_model(run: &Run, fact: impl Fn(&ModelInformation) -> String) -> String {
    run.model_information.as_ref().map(fact).unwrap_or_default()
}

fn describe_catalogues(base: &Run, other: &Run) -> Option<String> {
    let (base, other) = (
        base.model_information.as_ref()?,
        other.model_information.as_ref()?,
    );
    let changed: Vec<&str> = base
        .catalogue
        .iter()
        .filter(|(name, text)| other.catalogue.get(*name).is_some_and(|now| now != *text))
        .map(|(name, _)| name.as_str())
        .collect();
    (!changed.is_empty()).then(|| {
        format!(
            "files of the catalogue differ in their text: {}",
            changed.join(", ")
        )
    })
}

/// Lists the differences in the amount of work of two results of one program, which make their
/// speeds incomparable. The arms of an A/B measurement differ on purpose.
pub(super) fn list_work_differences(base: &ProgramResult, other: &ProgramResult) -> Vec<String> {
    if [base, other].into_iter().all(has_interleaved_blocks) {
        return Vec::new();
    }
    let differences = [
        describe_if_different(
            "sizes",
            &format_size(base.size_bytes),
            &format_size(other.size_bytes),
        ),
        describe_if_different(
            "cache modes",
            base.cache_mode.mode_name(),
            other.cache_mode.mode_name(),
        ),
        describe_if_different(
            "numbers of drives",
            &base.drive_count.to_string(),
            &other.drive_count.to_string(),
        ),
    ];
    differences.into_iter().flatten().collect()
}

/// Warns of differences in the measurement of two results of one program.
pub(super) fn warn_of_result_pair(base: &ProgramResult, other: &ProgramResult) -> Vec<String> {
    let mut texts = Vec::new();
    for (what, of) in [
        (
            "sizes",
            (|one: &ProgramResult| format_size(one.size_bytes)) as fn(&ProgramResult) -> String,
        ),
        ("cache modes", |one| one.cache_mode.mode_name().to_owned()),
        ("file systems", |one| one.filesystem_type.clone()),
        ("numbers of drives", |one| one.drive_count.to_string()),
        ("protocols", |one| describe_protocol(&one.protocol)),
    ] {
        texts.extend(describe_if_different(what, &of(base), &of(other)));
    }
    for name in differing_parameters(base, other) {
        let value = |one: &ProgramResult| describe_parameter(one, name);
        texts.extend(describe_if_different(
            &format!("values of {name}"),
            &value(base),
            &value(other),
        ));
    }
    texts.extend(describe_disturbed_blocks(base, other));
    texts
}

/// Describes the value of a parameter that the program used. A depth of 0 stands for the program's
/// own: one request in closed loop, any number in open loop.
fn describe_parameter(result: &ProgramResult, name: &str) -> String {
    let value = |name: &str| result.parameters.get(name).map_or("", String::as_str);
    match (name, value(name), value("rate_iops")) {
        ("depth", "0", "" | "0") => "1".to_owned(),
        ("depth", "0", _) => "unlimited".to_owned(),
        (_, value, _) => value.to_owned(),
    }
}

fn has_interleaved_blocks(result: &ProgramResult) -> bool {
    result
        .repetitions
        .iter()
        .any(|one| one.interleaved_block.is_some())
}

fn list_disturbed_repetitions(result: &ProgramResult) -> Vec<&Repetition> {
    let blocks = result.repetitions.iter();
    let blocks = blocks.filter(|one| one.interleaved_block.is_some() && !one.is_discarded);
    blocks.filter(|one| one.is_disturbed()).collect()
}

/// Describes the disturbances of the blocks of an A/B measurement. Disturbances of separate runs
/// are repeated or appear in the verdict.
fn describe_disturbed_blocks(base: &ProgramResult, other: &ProgramResult) -> Option<String> {
    if ![base, other].into_iter().all(has_interleaved_blocks) {
        return None;
    }
    let (base, other) = (
        list_disturbed_repetitions(base),
        list_disturbed_repetitions(other),
    );
    let what = interference::describe_sources(base.iter().chain(&other).copied())?;
    Some(format!(
        "disturbed in {} blocks of the base and {} of the other, which still count: {what}",
        base.len(),
        other.len()
    ))
}

fn describe_if_different(what: &str, base: &str, other: &str) -> Option<String> {
    let shown = |value: &str| {
        if value.is_empty() {
            "none".to_owned()
        } else {
            value.to_owned()
        }
    };
    (base != other).then(|| format!("{what} differ: {}, {}", shown(base), shown(other)))
}

fn describe_world(world: MeasuredWorld) -> &'static str {
    match world {
        MeasuredWorld::Host => "host",
        MeasuredWorld::Model => "model",
    }
}

fn describe_protocol(protocol: &Protocol) -> String {
    let statistic = match protocol.statistic {
        SummaryStatistic::Median => "median",
        SummaryStatistic::Minimum => "minimum",
    };
    let kept = protocol
        .repetition_count
        .saturating_sub(protocol.discarded_count);
    format!(
        "{statistic} of {kept} after {} discarded",
        protocol.discarded_count
    )
}

fn describe_devices(run: &Run) -> String {
    describe_locations(run, |place| {
        let name = |device: &diskperf_timeline::Device| match &device.model {
            Some(model) => format!("{} ({model})", device.name),
            None => device.name.clone(),
        };
        Some(
            place
                .devices
                .iter()
                .map(name)
                .collect::<Vec<_>>()
                .join(" + "),
        )
    })
}

fn describe_locations(run: &Run, fact: impl Fn(&TargetDescription) -> Option<String>) -> String {
    let texts: Vec<String> = run.environment.places.iter().filter_map(fact).collect();
    texts.join(" + ")
}
