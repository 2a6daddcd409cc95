//! Changes of a computer whose effect on the elapsed time an explanation determines.

mod disks;

use crate::model::computer::Computer;
use diskperf_catalogue::{Parameter, Setting};
use diskperf_device::WhatIf;
use diskperf_timeline::Stage;

/// A change of a computer, for a counterfactual run.
#[derive(Clone)]
pub(super) struct Change {
    /// Description of the change; in the form of `--set` if a number changes.
    pub(super) words: String,
    pub(super) kind: Kind,
    pub(super) settings: Vec<Setting>,
    pub(super) what_if: WhatIf,
}

/// Kind of a change: a cost removed or halved, or another choice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The change removes a cost.
    Removed,
    /// The change halves a cost.
    Halved,
    /// The change makes another choice, or moves a number by one step.
    Other,
}

/// Maximum speeds of processor, bus and channel that the catalogue accepts.
const FASTEST_PROCESSOR: &str = "100000";
const FASTEST_BUS: &str = "1000000000000";
const FASTEST_CHANNEL: &str = "1000000000000";
/// Maximum sizes of the write buffer and of the map cache that the catalogue accepts.
const ENDLESS_BUFFER: &str = "1099511627776";
const WHOLE_MAP: &str = "1099511627776";

/// Returns all single changes that this computer permits.
pub(super) fn changes(computer: &Computer) -> Vec<Change> {
    let values = Values(computer);
    let mut all = processor(&values);
    all.extend(ways(&values));
    all.extend(drives(&values));
    all.extend(disks::disks(&values));
    all.extend(flash(&values));
    all.extend(service(&values));
    all.extend(choices(&values));
    all.extend(steps(&values));
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
pub(super) fn pairs(single: &[Change]) -> Vec<((usize, usize), Change)> {
    let removing: Vec<usize> = (0..single.len())
        .filter(|one| single[*one].removes())
        .collect();
    let mut pairs = Vec::new();
    for (place, first) in removing.iter().enumerate() {
        for second in &removing[place + 1..] {
            let (one, other) = (&single[*first], &single[*second]);
            let paths = |change: &Change| -> Vec<String> {
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
                deadlines_met: one.what_if.deadlines_met || other.what_if.deadlines_met,
                no_collection: one.what_if.no_collection || other.what_if.no_collection,
                passes: one.what_if.passes.or(other.what_if.passes),
            };
            if what_if.no_rotational_latency && what_if.deadlines_met {
                // Where nothing is waited for, no deadline is.
                continue;
            }
            let change = Change {
                words: format!("{} and {}", one.words, other.words),
                kind: Kind::Other,
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
pub(super) fn without(stage: Stage) -> Option<Change> {
    let settings: &[(&str, &str)] = match stage {
        Stage::DieWait(_) | Stage::ChannelWait | Stage::ControllerQueue | Stage::BusWait => {
            let what_if = WhatIf {
                passes: Some(stage),
                ..WhatIf::default()
            };
            return Some(Change::supposing("requests pass", what_if));
        }
        Stage::Collection => {
            let what_if = WhatIf {
                no_collection: true,
                ..WhatIf::default()
            };
            return Some(Change::supposing("no garbage collection", what_if));
        }
        Stage::BufferFull => &[("write_buffer_bytes", ENDLESS_BUFFER)],
        Stage::MapMiss => &[("map_cache_bytes", WHOLE_MAP), ("map_lookup_ns", "0")],
        Stage::ReadRetry => &[("read_retry_share", "0")],
        _ => return None,
    };
    let setting = |(key, text): &(&str, &str)| Some(Setting::new(&format!("drive.{key}"), text));
    change("", Kind::Removed, settings.iter().map(setting))
}

struct Values<'c>(&'c Computer);

impl Values<'_> {
    fn parameter(&self, path: &str) -> Option<&Parameter> {
        let mut all = self.0.parameters.iter();
        all.find(|parameter| parameter.path == path)
    }

    fn text(&self, path: &str) -> Option<String> {
        let found = self.parameter(path)?;
        Some(found.value.trim_matches('"').to_owned())
    }

    fn number(&self, path: &str) -> Option<f64> {
        number(&self.text(path)?)
    }

    /// Multiplies a parameter by a factor within its range. A list of whole numbers is multiplied
    /// element by element.
    fn times(&self, path: &str, factor: f64) -> Option<Setting> {
        let parameter = self.parameter(path)?;
        let range = parameter.range.split_once(" to ");
        let range = range.and_then(|(low, high)| Some((number(low)?, number(high)?)));
        let scaled = |value: f64| match range {
            Some((low, high)) => (value * factor).clamp(low, high),
            None => value * factor,
        };
        let list = parameter.value.strip_prefix('[');
        let value = match list.and_then(|list| list.strip_suffix(']')) {
            None => scaled(number(&parameter.value)?).to_string(),
            Some(list) => {
                let element = |text: &str| Some(scaled(number(text)?).round().to_string());
                let elements = list.split(',').map(element);
                let elements: Vec<String> = elements.collect::<Option<_>>()?;
                format!("[{}]", elements.join(", "))
            }
        };
        Some(Setting::new(path, &value))
    }

    fn set(&self, path: &str, text: &str) -> Option<Setting> {
        self.text(path)?;
        Some(Setting::new(path, text))
    }
}

fn number(text: &str) -> Option<f64> {
    text.trim().replace('_', "").parse().ok()
}

fn change(
    words: &str,
    kind: Kind,
    settings: impl IntoIterator<Item = Option<Setting>>,
) -> Option<Change> {
    let settings: Vec<Setting> = settings.into_iter().flatten().collect();
    (!settings.is_empty()).then(|| Change {
        words: words.to_owned(),
        kind,
        settings,
        what_if: WhatIf::default(),
    })
}

const COPY: &str = "host.copy_ms_per_kb";
const CLEAR: &str = "host.clear_ms_per_kb";

fn processor(values: &Values<'_>) -> Vec<Change> {
    let all = [
        change(
            "processor infinitely fast",
            Kind::Removed,
            [
                values.set("host.speed", FASTEST_PROCESSOR),
                values.set(COPY, "0"),
                values.set(CLEAR, "0"),
            ],
        ),
        change(
            "processor twice as fast",
            Kind::Halved,
            [
                values.times("host.speed", 2.0),
                values.times(COPY, 0.5),
                values.times(CLEAR, 0.5),
            ],
        ),
        change("copying free", Kind::Removed, [values.set(COPY, "0")]),
        change(
            "copying twice as fast",
            Kind::Halved,
            [values.times(COPY, 0.5)],
        ),
    ];
    all.into_iter().flatten().collect()
}

fn ways(values: &Values<'_>) -> Vec<Change> {
    let contention = "bus.memory_contention_share";
    let late = "controller.data_late_per_sector";
    let all = [
        change(
            "bus infinitely fast",
            Kind::Removed,
            [values.set("bus.bytes_per_s", FASTEST_BUS)],
        ),
        change(
            "bus twice as fast",
            Kind::Halved,
            [values.times("bus.bytes_per_s", 2.0)],
        ),
        change(
            "no arbitration delay (no data late, no memory contention)",
            Kind::Removed,
            [values.set(contention, "0"), values.set(late, "0")],
        ),
        change(
            "data late half as often",
            Kind::Halved,
            [values.times(late, 0.5)],
        ),
        change(
            "no controller overhead per command",
            Kind::Removed,
            [
                "command_ms",
                "command_poll_ms",
                "search_command_ms",
                "search_poll_per_drive_ms",
                "decode_ms",
                "finish_ms",
                "finish_per_sector_ms",
            ]
            .map(|key| values.set(&format!("controller.{key}"), "0")),
        ),
    ];
    all.into_iter().flatten().collect()
}

fn drives(values: &Values<'_>) -> Vec<Change> {
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
                deadlines_met: true,
                ..WhatIf::default()
            },
        ),
    ];
    let supposed = supposed.map(|(words, what_if)| Change::supposing(words, what_if));
    let seeks = ["minimum", "average", "maximum"]
        .map(|which| values.times(&format!("drive.seek_{which}_ms"), 0.5));
    let halved = change("seeks twice as fast", Kind::Halved, seeks);
    supposed.into_iter().chain(halved).collect()
}

fn flash(values: &Values<'_>) -> Vec<Change> {
    if values.text("drive.spare_share").is_none() {
        return Vec::new();
    }
    let supposed = Change::supposing(
        "no garbage collection",
        WhatIf {
            no_collection: true,
            ..WhatIf::default()
        },
    );
    let all = [
        change(
            "twice the over-provisioning",
            Kind::Other,
            [values.times("drive.spare_share", 2.0)],
        ),
        change(
            "no suspension of programs and erases",
            Kind::Other,
            [values.set("drive.suspends_most", "0")],
        ),
        change(
            "power-loss protection",
            Kind::Removed,
            [values.set("drive.power_loss_protection", "true")],
        ),
        change(
            "write buffer of 1 GiB",
            Kind::Other,
            [values.set("drive.write_buffer_bytes", "1073741824")],
        ),
        change(
            "flash programs twice as fast",
            Kind::Halved,
            ["program_us", "slc_program_us", "journal_program_us"]
                .map(|key| values.times(&format!("drive.{key}"), 0.5)),
        ),
        change(
            "flash reads twice as fast",
            Kind::Halved,
            ["read_ns", "slc_read_us"].map(|key| values.times(&format!("drive.{key}"), 0.5)),
        ),
        change(
            "flash erases twice as fast",
            Kind::Halved,
            [values.times("drive.erase_us", 0.5)],
        ),
        change(
            "no time for error correction",
            Kind::Removed,
            [values.set("drive.decode_us", "0")],
        ),
        change(
            "no time for submission and completion",
            Kind::Removed,
            ["submission_us", "completion_us", "interrupt_us"]
                .map(|key| values.set(&format!("drive.{key}"), "0")),
        ),
        change(
            "host interface twice as fast",
            Kind::Halved,
            [values.times("drive.pcie_lanes", 2.0)],
        ),
        change(
            "channels infinitely fast",
            Kind::Removed,
            [values.set("drive.channel_bytes_per_s", FASTEST_CHANNEL)],
        ),
        change(
            "no controller overhead per command",
            Kind::Removed,
            ["command_us", "processing_us", "decode_us"]
                .map(|key| values.set(&format!("drive.{key}"), "0")),
        ),
    ];
    all.into_iter().flatten().chain([supposed]).collect()
}

fn service(values: &Values<'_>) -> Option<Change> {
    let keys = ["drive.service_ms", "drive.service_quantiles_ns"];
    let halved = keys.map(|key| values.times(key, 0.5));
    change("service twice as fast", Kind::Halved, halved)
}

fn choices(values: &Values<'_>) -> Vec<Change> {
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
            all.extend(change(&words, Kind::Other, [values.set(path, choice)]));
        }
    }
    for (block, fragment) in [(4096, 1024), (8192, 1024), (16384, 2048)] {
        let bytes = values.text("filesystem.block_bytes");
        if bytes.is_none_or(|now| now.replace('_', "") == block.to_string()) {
            continue;
        }
        let words = format!("filesystem.block_bytes={block}");
        let settings = [
            values.set("filesystem.block_bytes", &block.to_string()),
            values.set("filesystem.fragment_bytes", &fragment.to_string()),
        ];
        all.extend(change(&words, Kind::Other, settings));
    }
    all
}

/// Returns the changes of whole numbers by one step, and of read-ahead depths by a factor.
fn steps(values: &Values<'_>) -> Vec<Change> {
    let mut all = Vec::new();
    for path in [
        "driver.search_lead_sectors",
        "filesystem.rotdelay_ms",
        "filesystem.maxcontig",
        "drive.interleave",
        "drive.track_skew_sectors",
    ] {
        for step in [-1.0, 1.0] {
            let Some(value) = values.number(path).map(|value| value + step) else {
                continue;
            };
            let words = format!("{path}={value}");
            let setting = values.set(path, &value.to_string());
            all.extend(change(&words, Kind::Other, [setting]));
        }
    }
    let depths = values.0.parameters.iter().filter(|parameter| {
        parameter.path.starts_with("controller.") && parameter.path.contains("read_ahead")
    });
    for depth in depths {
        for factor in [0.0, 0.5, 2.0] {
            let Some(value) = values.number(&depth.path) else {
                continue;
            };
            let value = (value * factor).round();
            let words = format!("{}={value}", depth.path);
            let setting = Setting::new(&depth.path, &value.to_string());
            all.extend(change(&words, Kind::Other, [Some(setting)]));
        }
    }
    all
}
