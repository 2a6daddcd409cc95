//! Fuzz targets for catalogue entries and for settings.

use crate::{FuzzBody, FuzzTarget, to_byte_inputs, to_text};
use diskperf_catalogue::{Catalogue, Component, Errors, ResolvedSystem, Setting};
use diskperf_machine::RunBudget;
use diskperf_machine::specification::MachineSpecification;

/// Input for the catalogue reader: an entry of the kind that the first byte selects.
pub(crate) const ENTRY: FuzzTarget = FuzzTarget {
    name: "catalogue_entry",
    make_body: make_entry_body,
    make_seeds: entry_seeds,
    keywords: &[
        "[components]",
        "[drive.1]",
        "[type.eagle]",
        "extends",
        "drives",
        "zones",
        "partitions",
        "slipped_sectors",
        "revectored_sectors",
        "revectored_tracks",
        "_source",
        "4294967295",
        "1e308",
        "nan",
        "-1",
    ],
};

/// Input for settings: `--set PATH=VALUE`, one per line, for the system that the first byte
/// selects.
pub(crate) const SETTING: FuzzTarget = FuzzTarget {
    name: "setting",
    make_body: make_setting_body,
    make_seeds: setting_seeds,
    keywords: &[
        "drive.1.",
        "drive.",
        "kernel.",
        "host.",
        "controller.",
        "filesystem.",
        "driver.",
        "drives=",
        "=",
        "\n",
        "4294967295",
        "1e308",
        "[[0,1]]",
    ],
};

/// System of the catalogue that most components fit into.
const SYSTEM: &str = "vax780-sc780-eagle";

fn read_system(system: Result<ResolvedSystem, Errors>) {
    match system.and_then(MachineSpecification::read_machine) {
        Ok((specification, _)) => {
            let memory = specification.memory_requirement(specification.volumes.len());
            if let Err(exceeded) = memory.require_within_budget(RunBudget::DEFAULT) {
                let _ = exceeded.to_string();
            }
        }
        Err(errors) => {
            let _ = errors.to_string();
        }
    }
}

fn make_entry_body() -> FuzzBody {
    let catalogue = Catalogue::embedded();
    Box::new(move |bytes| {
        let Some((kind, rest)) = bytes.split_first() else {
            return;
        };
        let place = usize::from(*kind) % (Component::ALL.len() + 2);
        read_with_entry(catalogue.clone(), place, &to_text(rest));
    })
}

fn read_with_entry(catalogue: Catalogue, kind: usize, text: &str) {
    match Component::ALL.get(kind) {
        Some(component) => {
            let path = format!("{}/fuzzed.toml", component.folder_name());
            let catalogue = catalogue.with_file(&path, text);
            let _ = catalogue.description(*component, "fuzzed");
            let setting = Setting::new(component.name(), "fuzzed");
            read_system(catalogue.resolve(SYSTEM, &[setting]));
        }
        None if kind == Component::ALL.len() => {
            let catalogue = catalogue.with_file("systems/fuzzed.toml", text);
            read_system(catalogue.resolve("fuzzed", &[]));
        }
        None => {
            let catalogue = catalogue.with_file("published/fuzzed.toml", text);
            if let Err(errors) = catalogue.published_values() {
                let _ = errors.to_string();
            }
        }
    }
}

fn entry_seeds() -> Vec<Vec<u8>> {
    let kinds = Component::ALL.map(Component::folder_name);
    let kinds: Vec<&str> = kinds.into_iter().chain(["systems", "published"]).collect();
    let catalogue = Catalogue::embedded();
    let texts = catalogue.file_texts().filter_map(|(path, text)| {
        let (folder, _) = path.split_once('/')?;
        let kind = kinds.iter().position(|kind| *kind == folder)?;
        // What is published is long, and all of a kind.
        let whole = text
            .char_indices()
            .nth(SETTING_BYTES_MAX)
            .map_or(text, |(end, _)| &text[..end]);
        Some([&[kind as u8], whole.as_bytes()].concat())
    });
    texts.collect()
}

const SETTING_BYTES_MAX: usize = 3000;

fn make_setting_body() -> FuzzBody {
    let catalogue = Catalogue::embedded();
    let systems = catalogue.system_names();
    Box::new(move |bytes| {
        let Some((system, rest)) = bytes.split_first() else {
            return;
        };
        let system = &systems[usize::from(*system) % systems.len()];
        let text = to_text(rest);
        let parsed: Result<Vec<Setting>, _> = text.lines().map(Setting::parse).collect();
        if let Ok(settings) = parsed {
            read_system(catalogue.resolve(system, &settings));
        }
    })
}

fn setting_seeds() -> Vec<Vec<u8>> {
    to_byte_inputs([
        "\u{1}filesystem.block_bytes=4096\nfilesystem.fragment_bytes=1024",
        "\u{2}drive.1.spindle_rpm=60",
        "\u{3}drive=capricorn\ndrives=1",
        "\u{4}drive.2=ra81",
        "\u{5}drive.zones=[[0, 40], [100, 30]]",
        "\u{6}drive.slipped_sectors=[5, 9]",
        "\u{7}kernel.message_ms=8543",
        "\u{8}controller.cache_bits=SEA|CRD",
        "\u{9}filesystem=none",
        "\u{a}host.speed=0.5\nkernel.read_ahead_blocks=0",
        "\u{b}kernel.attributes_synchronous=true",
        "\u{c}drive.partitions=[[0, 100]]",
    ])
}
