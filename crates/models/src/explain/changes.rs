//! Changes of a computer whose effect on the elapsed time an explanation determines.

mod disks;

use crate::model::computer::ModelComputer;
use diskperf_catalogue::{Parameter, Setting};
use diskperf_device::WhatIf;
use diskperf_timeline::{Stage, VolumeLimit};

/// A change of a computer, for a counterfactual run.
#[derive(Clone)]
pub(super) struct ModelChange {
    /// Description of the change; in the form of `--set` if a number changes.
    pub(super) description: String,
    pub(super) kind: ChangeKind,
    pub(super) settings: Vec<Setting>,
    pub(super) what_if: WhatIf,
}

/// Kind of a change: a cost removed or halved, or another choice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeKind {
    Removed,
    Halved,
    /// The change makes another choice, or moves a number by one step.
    Other,
}

/// Maximum speeds of processor, bus and channel that the catalogue accepts.
const PROCESSOR_SPEED_MAX: &str = "100000";
const BUS_BYTES_PER_S_MAX: &str = "1000000000000";
const CHANNEL_BYTES_PER_S_MAX: &str = "1000000000000";
/// Maximum sizes of the write buffer and of the map cache that the catalogue accepts.
const BUFFER_BYTES_MAX: &str = "1099511627776";
const MAP_CACHE_BYTES_MAX: &str = "1099511627776";

pub(super) fn list_changes(computer: &ModelComputer) -> Vec<ModelChange> {
    let values = ModelValues(computer);
    let mut all = processor_changes(&values);
    all.extend(path_changes(&values));
    all.extend(drive_changes(&values));
    all.extend(disks::disk_changes(&values));
    all.extend(flash_changes(&values));
    all.extend(service_time_change(&values));
    all.extend(volume_changes(&values));
    all.extend(choice_changes(&values));
    all.extend(step_changes(&values));
    // One that changes nothing of what is there says nothing.
    all.retain(|change| {
        change.settings.is_empty()
            || change
                .settings
                .iter()
                .any(|setting| values.text(&setting.path).as_deref() != Some(&*setting.value_text))
    });
    all
}

/// Combines all pairs of changes that each remove a cost.
pub(super) fn pair_changes(single: &[ModelChange]) -> Vec<((usize, usize), ModelChange)> {
    let removing: Vec<usize> = (0..single.len())
        .filter(|one| single[*one].is_removal())
        .collect();
    let mut pairs = Vec::new();
    for (place, first) in removing.iter().enumerate() {
        for second in &removing[place + 1..] {
            let (one, other) = (&single[*first], &single[*second]);
            let paths = |change: &ModelChange| -> Vec<String> {
                change
                    .settings
                    .iter()
                    .map(|setting| setting.path.clone())
                    .collect()
            };
            if paths(one).iter().any(|path| paths(other).contains(path)) {
                continue;
            }
            let what_if = WhatIf {
                no_seek: one.what_if.no_seek || other.what_if.no_seek,
                no_rotational_latency: one.what_if.no_rotational_latency
                    || other.what_if.no_rotational_latency,
                meets_deadlines: one.what_if.meets_deadlines || other.what_if.meets_deadlines,
                no_collection: one.what_if.no_collection || other.what_if.no_collection,
                bypassed_stage: one.what_if.bypassed_stage.or(other.what_if.bypassed_stage),
            };
            if what_if.no_rotational_latency && what_if.meets_deadlines {
                // Where nothing is waited for, no deadline is.
                continue;
            }
            let change = ModelChange {
                description: format!("{} and {}", one.description, other.description),
                kind: ChangeKind::Other,
                settings: one
                    .settings
                    .iter()
                    .chain(&other.settings)
                    .cloned()
                    .collect(),
                what_if,
            };
            pairs.push(((*first, *second), change));
        }
    }
    pairs
}

/// Returns the change that removes a wait of requests and keeps the resource that they wait for:
/// reads may overtake at a die or channel, a buffer is never full. It is `None` for stages that are
/// work and not waiting.
pub(super) fn remove_stage(stage: Stage) -> Option<ModelChange> {
    let settings: &[(&str, &str)] = match stage {
        Stage::DieWait(_) | Stage::ChannelWait | Stage::ControllerQueue | Stage::BusWait => {
            let what_if = WhatIf {
                bypassed_stage: Some(stage),
                ..WhatIf::default()
            };
            return Some(ModelChange::with_what_if("requests pass", what_if));
        }
        Stage::Collection => {
            let what_if = WhatIf {
                no_collection: true,
                ..WhatIf::default()
            };
            return Some(ModelChange::with_what_if("no garbage collection", what_if));
        }
        Stage::BufferFull => &[("write_buffer_bytes", BUFFER_BYTES_MAX)],
        Stage::MapMiss => &[
            ("map_cache_bytes", MAP_CACHE_BYTES_MAX),
            ("map_lookup_ns", "0"),
        ],
        Stage::ReadRetry => &[("read_retry_share", "0")],
        Stage::RateLimit(VolumeLimit::VolumeRequests | VolumeLimit::VolumeBytes) => {
            &[("volume_limits", "false")]
        }
        Stage::RateLimit(VolumeLimit::InstanceRequests | VolumeLimit::InstanceBytes) => {
            &[("instance_limits", "false")]
        }
        _ => return None,
    };
    let setting = |(key, text): &(&str, &str)| Some(Setting::new(&format!("drive.{key}"), text));
    new_change("", ChangeKind::Removed, settings.iter().map(setting))
}

struct ModelValues<'c>(&'c ModelComputer);

impl ModelValues<'_> {
    fn parameter(&self, path: &str) -> Option<&Parameter> {
        let mut all = self.0.parameters.iter();
        all.find(|parameter| parameter.path == path)
    }

    fn text(&self, path: &str) -> Option<String> {
        let found = self.parameter(path)?;
        Some(found.value.trim_matches('"').to_owned())
    }

    fn parameter_number(&self, path: &str) -> Option<f64> {
        parse_number(&self.text(path)?)
    }

    /// Multiplies a parameter by a factor within its range. A list of whole numbers is multiplied
    /// element by element.
    fn multiply(&self, path: &str, factor: f64) -> Option<Setting> {
        let parameter = self.parameter(path)?;
        let range = parameter.range.split_once(" to ");
        let range = range.and_then(|(low, high)| Some((parse_number(low)?, parse_number(high)?)));
        let scaled = |value: f64| match range {
            Some((low, high)) => (value * factor).clamp(low, high),
            None => value * factor,
        };
        let list = parameter.value.strip_prefix('[');
        let value = match list.and_then(|list| list.strip_suffix(']')) {
            None => scaled(parse_number(&parameter.value)?).to_string(),
            Some(list) => {
                let element = |text: &str| Some(scaled(parse_number(text)?).round().to_string());
                let elements = list.split(',').map(element);
                let elements: Vec<String> = elements.collect::<Option<_>>()?;
                format!("[{}]", elements.join(", "))
            }
        };
        Some(Setting::new(path, &value))
    }

    fn set_parameter(&self, path: &str, text: &str) -> Option<Setting> {
        self.text(path)?;
        Some(Setting::new(path, text))
    }
}

fn parse_number(text: &str) -> Option<f64> {
    text.trim().replace('_', "").parse().ok()
}

fn new_change(
    words: &str,
    kind: ChangeKind,
    settings: impl IntoIterator<Item = Option<Setting>>,
) -> Option<ModelChange> {
    let settings: Vec<Setting> = settings.into_iter().flatten().collect();
    (!settings.is_empty()).then(|| ModelChange {
        description: words.to_owned(),
        kind,
        settings,
        what_if: WhatIf::default(),
    })
}

const COPY_COST_PATH: &str = "host.copy_ms_per_kb";
const CLEAR_COST_PATH: &str = "host.clear_ms_per_kb";

fn processor_changes(values: &ModelValues<'_>) -> Vec<ModelChange> {
    let all = [
        new_change(
            "processor infinitely fast",
            ChangeKind::Removed,
            [
                values.set_parameter("host.speed", PROCESSOR_SPEED_MAX),
                values.set_parameter(COPY_COST_PATH, "0"),
                values.set_parameter(CLEAR_COST_PATH, "0"),
            ],
        ),
        new_change(
            "processor twice as fast",
            ChangeKind::Halved,
            [
                values.multiply("host.speed", 2.0),
                values.multiply(COPY_COST_PATH, 0.5),
                values.multiply(CLEAR_COST_PATH, 0.5),
            ],
        ),
        new_change(
            "copying free",
            ChangeKind::Removed,
            [values.set_parameter(COPY_COST_PATH, "0")],
        ),
        new_change(
            "copying twice as fast",
            ChangeKind::Halved,
            [values.multiply(COPY_COST_PATH, 0.5)],
        ),
    ];
    all.into_iter().flatten().collect()
}

fn path_changes(values: &ModelValues<'_>) -> Vec<ModelChange> {
    let contention = "bus.memory_contention_share";
    let late = "controller.data_late_per_sector";
    let all = [
        new_change(
            "bus infinitely fast",
            ChangeKind::Removed,
            [values.set_parameter("bus.bytes_per_s", BUS_BYTES_PER_S_MAX)],
        ),
        new_change(
            "bus twice as fast",
            ChangeKind::Halved,
            [values.multiply("bus.bytes_per_s", 2.0)],
        ),
        new_change(
            "no arbitration delay (no data late, no memory contention)",
            ChangeKind::Removed,
            [
                values.set_parameter(contention, "0"),
                values.set_parameter(late, "0"),
            ],
        ),
        new_change(
            "data late half as often",
            ChangeKind::Halved,
            [values.multiply(late, 0.5)],
        ),
        new_change(
            "no controller overhead per command",
            ChangeKind::Removed,
            [
                "command_ms",
                "command_poll_ms",
                "search_command_ms",
                "search_poll_per_drive_ms",
                "decode_ms",
                "finish_ms",
                "finish_per_sector_ms",
            ]
            .map(|key| values.set_parameter(&format!("controller.{key}"), "0")),
        ),
    ];
    all.into_iter().flatten().collect()
}

fn drive_changes(values: &ModelValues<'_>) -> Vec<ModelChange> {
    let supposed = [
        (
            "no seek",
            WhatIf {
                no_seek: true,
                ..WhatIf::default()
            },
        ),
        (
            "no rotational latency",
            WhatIf {
                no_rotational_latency: true,
                ..WhatIf::default()
            },
        ),
        (
            "no missed revolution",
            WhatIf {
                meets_deadlines: true,
                ..WhatIf::default()
            },
        ),
    ];
    let supposed = supposed.map(|(words, what_if)| ModelChange::with_what_if(words, what_if));
    let seeks = ["minimum", "average", "maximum"]
        .map(|which| values.multiply(&format!("drive.seek_{which}_ms"), 0.5));
    let halved = new_change("seeks twice as fast", ChangeKind::Halved, seeks);
    supposed.into_iter().chain(halved).collect()
}

fn flash_changes(values: &ModelValues<'_>) -> Vec<ModelChange> {
    if values.text("drive.spare_share").is_none() {
        return Vec::new();
    }
    let supposed = ModelChange::with_what_if(
        "no garbage collection",
        WhatIf {
            no_collection: true,
            ..WhatIf::default()
        },
    );
    let all = [
        new_change(
            "twice the over-provisioning",
            ChangeKind::Other,
            [values.multiply("drive.spare_share", 2.0)],
        ),
        new_change(
            "no suspension of programs and erases",
            ChangeKind::Other,
            [values.set_parameter("drive.suspends_most", "0")],
        ),
        new_change(
            "power-loss protection",
            ChangeKind::Removed,
            [values.set_parameter("drive.power_loss_protection", "true")],
        ),
        new_change(
            "write buffer of 1 GiB",
            ChangeKind::Other,
            [values.set_parameter("drive.write_buffer_bytes", "1073741824")],
        ),
        new_change(
            "flash programs twice as fast",
            ChangeKind::Halved,
            ["program_us", "slc_program_us", "journal_program_us"]
                .map(|key| values.multiply(&format!("drive.{key}"), 0.5)),
        ),
        new_change(
            "flash reads twice as fast",
            ChangeKind::Halved,
            ["read_ns", "slc_read_us"].map(|key| values.multiply(&format!("drive.{key}"), 0.5)),
        ),
        new_change(
            "flash erases twice as fast",
            ChangeKind::Halved,
            [values.multiply("drive.erase_us", 0.5)],
        ),
        new_change(
            "no time for error correction",
            ChangeKind::Removed,
            [values.set_parameter("drive.decode_us", "0")],
        ),
        new_change(
            "no time for submission and completion",
            ChangeKind::Removed,
            ["submission_us", "completion_us", "interrupt_us"]
                .map(|key| values.set_parameter(&format!("drive.{key}"), "0")),
        ),
        new_change(
            "host interface twice as fast",
            ChangeKind::Halved,
            [values.multiply("drive.pcie_lanes", 2.0)],
        ),
        new_change(
            "channels infinitely fast",
            ChangeKind::Removed,
            [values.set_parameter("drive.channel_bytes_per_s", CHANNEL_BYTES_PER_S_MAX)],
        ),
        new_change(
            "no controller overhead per command",
            ChangeKind::Removed,
            ["command_us", "processing_us", "decode_us"]
                .map(|key| values.set_parameter(&format!("drive.{key}"), "0")),
        ),
    ];
    all.into_iter().flatten().chain([supposed]).collect()
}

fn service_time_change(values: &ModelValues<'_>) -> Option<ModelChange> {
    let keys = [
        "service_ms",
        "service_quantiles_ns",
        "read_service_us",
        "write_service_us",
    ];
    let halved = keys.map(|key| values.multiply(&format!("drive.{key}"), 0.5));
    new_change("service twice as fast", ChangeKind::Halved, halved)
}

/// Returns the changes that lift the limits of a cloud volume and of its instance.
fn volume_changes(values: &ModelValues<'_>) -> Vec<ModelChange> {
    let lifted = [
        ("no limit of the volume", "drive.volume_limits"),
        ("no limit of the instance", "drive.instance_limits"),
    ];
    let change = |(words, path): (&str, &str)| {
        let setting = values.set_parameter(path, "false");
        new_change(words, ChangeKind::Removed, [setting])
    };
    lifted.into_iter().filter_map(change).collect()
}

fn choice_changes(values: &ModelValues<'_>) -> Vec<ModelChange> {
    let mut all = Vec::new();
    for (path, allowed) in [
        (
            "kernel.disksort",
            &["1983", "reads-first", "first-come"][..],
        ),
        ("controller.order", &["arrival", "nearest"]),
        ("kernel.read_ahead_blocks", &["0", "1"]),
    ] {
        for choice in allowed {
            let words = format!("{path}={choice}");
            all.extend(new_change(
                &words,
                ChangeKind::Other,
                [values.set_parameter(path, choice)],
            ));
        }
    }
    for (block, fragment) in [(4096, 1024), (8192, 1024), (16384, 2048)] {
        let bytes = values.text("filesystem.block_bytes");
        if bytes.is_none_or(|now| now.replace('_', "") == block.to_string()) {
            continue;
        }
        let words = format!("filesystem.block_bytes={block}");
        let settings = [
            values.set_parameter("filesystem.block_bytes", &block.to_string()),
            values.set_parameter("filesystem.fragment_bytes", &fragment.to_string()),
        ];
        all.extend(new_change(&words, ChangeKind::Other, settings));
    }
    all
}

/// Returns the changes of whole numbers by one step, and of read-ahead depths by a factor.
fn step_changes(values: &ModelValues<'_>) -> Vec<ModelChange> {
    let mut all = Vec::new();
    for path in [
        "driver.search_lead_sectors",
        "filesystem.rotdelay_ms",
        "filesystem.maxcontig",
        "drive.interleave",
        "drive.track_skew_sectors",
    ] {
        for step in [-1.0, 1.0] {
            let Some(value) = values.parameter_number(path).map(|value| value + step) else {
                continue;
            };
            let words = format!("{path}={value}");
            let setting = values.set_parameter(path, &value.to_string());
            all.extend(new_change(&words, ChangeKind::Other, [setting]));
        }
    }
    let depths = values.0.parameters.iter().filter(|parameter| {
        parameter.path.starts_with("controller.") && parameter.path.contains("read_ahead")
    });
    for depth in depths {
        for factor in [0.0, 0.5, 2.0] {
            let Some(value) = values.parameter_number(&depth.path) else {
                continue;
            };
            let value = (value * factor).round();
            let words = format!("{}={value}", depth.path);
            let setting = Setting::new(&depth.path, &value.to_string());
            all.extend(new_change(&words, ChangeKind::Other, [Some(setting)]));
        }
    }
    all
}
