//! No text of a file or a setting makes the catalogue panic: it is read, or
//! refused with a message that names the place.

use super::embedded_text;
use diskperf_catalogue::{Catalogue, Setting};
use diskperf_machine::specification::MachineSpecification;
use proptest::prelude::*;

/// Reads a system and a variant with one file replaced, and renders what is wrong both ways.
fn survive(path: &str, content: &str, arguments: &[Setting]) {
    let catalogue = Catalogue::embedded().with_file(path, content);
    for target in [
        "vax780-sc780-eagle:initial-arbitration",
        "vax780-si9900-cdc9775",
    ] {
        let read = catalogue
            .resolve(target, arguments)
            .and_then(MachineSpecification::read_machine);
        if let Err(errors) = read {
            assert!(!errors.problems().is_empty());
            assert!(errors.render(false).contains("error: "));
            assert!(!errors.render(true).is_empty());
        }
    }
    if path.starts_with("published/")
        && let Err(errors) = catalogue.published_values()
    {
        assert!(errors.render(false).contains("error: "));
    }
}

/// The files that the systems of [`survive`] read.
fn files() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "drives/eagle.toml",
        "drives/cdc9775-rm05.toml",
        "controllers/sc780.toml",
        "controllers/sc780-initial-arbitration.toml",
        "drivers/hp-1983-07.toml",
        "filesystems/8k.toml",
        "hosts/vax780.toml",
        "kernels/4.2bsd.toml",
        "buses/sbi.toml",
        "systems/vax780-sc780-eagle.toml",
        "systems/vax780-sc780-eagle/initial-arbitration.toml",
        "systems/vax780-si9900-cdc9775.toml",
        "published/calibration.toml",
    ])
}

/// What a value may be replaced by.
fn values() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("0".to_string()),
        Just("-1".to_string()),
        Just("1e308".to_string()),
        Just("-inf".to_string()),
        Just("nan".to_string()),
        Just("18446744073709551615".to_string()),
        Just("340282366920938463463374607431768211456".to_string()),
        Just("[[0, 48], [3]]".to_string()),
        Just("{ a = { b = 1 } }".to_string()),
        Just("''".to_string()),
        Just("\"\\u00e9\\n\"".to_string()),
        Just("1983-07-27".to_string()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("{number:?}")),
        ".{0,12}",
    ]
}

fn with_value(text: &str, line: prop::sample::Index, value: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let chosen = line.index(lines.len());
    let changed = lines
        .iter()
        .enumerate()
        .map(|(index, line)| match line.split_once('=') {
            Some((key, _)) if index == chosen => format!("{key}= {value}"),
            _ => line.to_string(),
        });
    changed.collect::<Vec<_>>().join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(path in files(), text in "(?s).{0,200}") {
        survive(path, &text, &[]);
    }

    #[test]
    fn anything_like_toml_is_read_or_refused(
        path in files(),
        text in "([a-z_]{1,12}( = |\\.|=)(-?[0-9.e_]{1,30}|'[^']{0,9}'|\\[[0-9, \\[\\]]{0,9}|\\{|true)?\r?\n|\\[{1,3}[a-z.0-9]{0,9}\\]{0,3}\n|\t#é\n){0,12}",
    ) {
        survive(path, &text, &[]);
    }

    #[test]
    fn a_real_file_with_another_value_is_read_or_refused(
        path in files(),
        line in any::<prop::sample::Index>(),
        value in values(),
    ) {
        survive(path, &with_value(&embedded_text(path), line, &value), &[]);
    }

    #[test]
    fn a_real_file_with_a_hole_is_read_or_refused(
        path in files(),
        from in any::<prop::sample::Index>(),
        length in 0usize..40,
        filling in "(?s).{0,6}",
    ) {
        let mut characters: Vec<char> = embedded_text(path).chars().collect();
        let from = from.index(characters.len());
        let to = (from + length).min(characters.len());
        characters.splice(from..to, filling.chars());
        survive(path, &characters.into_iter().collect::<String>(), &[]);
    }

    #[test]
    fn any_setting_is_read_or_refused(arguments in prop::collection::vec("(?s).{0,60}", 1..4)) {
        let parsed: Vec<Setting> =
            arguments.iter().filter_map(|argument| Setting::parse(argument).ok()).collect();
        survive("drives/unused.toml", "", &parsed);
        // The fields are public: a setting need not have been parsed.
        let raw: Vec<Setting> = arguments
            .iter()
            .map(|text| Setting { path: text.clone(), value_text: text.clone() })
            .collect();
        survive("drives/unused.toml", "", &raw);
    }

    #[test]
    fn any_value_of_a_real_path_is_read_or_refused(
        path in prop::sample::select(vec![
            "drive", "drives", "drive.2", "drive.1.heads", "drive.zones", "drive.seek_average_ms",
            "drive.component", "components.drive", "components", "driver.type",
            "driver.type.eagle", "driver.type.eagle.search_lead_sectors", "filesystem.block_bytes",
            "kernel.disksort", "extends", "source", "description", "drive.source",
            "drive.heads_source", "kernel.update_interval_s", "controller.kind",
        ]),
        value in values(),
    ) {
        survive("drives/unused.toml", "", &[Setting { path: path.to_string(), value_text: value }]);
    }
}

#[test]
fn the_ends_of_every_range_are_read_or_refused() {
    let catalogue = Catalogue::embedded();
    let target = "vax780-sc780-eagle";
    let read = |setting: Setting| {
        let system = catalogue.resolve(target, &[setting]).expect("a system");
        MachineSpecification::read_machine(system)
    };
    let system = catalogue.resolve(target, &[]).expect("a system");
    let (_, parameters) = MachineSpecification::read_machine(system).expect("a system");
    let mut tried = 0;
    for parameter in parameters {
        let Some((least, most)) = parameter.range.split_once(" to ") else {
            continue;
        };
        for text in [least, most] {
            let setting = Setting {
                path: parameter.path.clone(),
                value_text: text.to_string(),
            };
            if let Err(errors) = read(setting) {
                assert!(errors.to_string().contains("error: "), "{}", parameter.path);
            }
            tried += 1;
        }
    }
    assert!(tried > 90, "{tried}");
}
