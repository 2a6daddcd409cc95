//! Command lines of diskperf 0.1.0, the only form in which that version stored the request for a
//! run.

use diskperf_timeline::units::parse_size;
use diskperf_timeline::{CacheMode, Experiment, Setting, SizeChoice, Workload};

/// Parses a `diskperf run` command line; `None` for any other command line.
pub(super) fn parse_command_line(words: &[String]) -> Option<Experiment> {
    let mut words = words.iter().skip(1);
    let mut experiment = Experiment::default();
    let mut is_run = false;
    while let Some(word) = words.next() {
        if apply_flag(&mut experiment, word) {
            continue;
        }
        if !word.starts_with('-') {
            match is_run {
                true => experiment.workload = Workload::NamedSuite(word.clone()),
                false if word == "run" => is_run = true,
                false => return None,
            }
            continue;
        }
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, value),
            None => (word.as_str(), words.next()?.as_str()),
        };
        apply_option(&mut experiment, name, value)?;
    }
    is_run.then_some(experiment)
}

fn apply_flag(experiment: &mut Experiment, word: &str) -> bool {
    match word {
        "--together" => experiment.runs_targets_together = true,
        "--direct" => experiment.cache_mode = CacheMode::Direct,
        "--drop-caches" => experiment.drops_all_caches = true,
        "--ignore-signature" => experiment.ignores_signature = true,
        "--no-budget" => experiment.has_no_budget = true,
        "--no-latency" => experiment.times_calls = false,
        "--quiet" | "-q" | "--" => {}
        _ => return false,
    }
    true
}

fn apply_option(experiment: &mut Experiment, name: &str, value: &str) -> Option<()> {
    let text = || value.to_owned();
    match name {
        "--suite" => experiment.workload = Workload::NamedSuite(text()),
        "--on" => experiment.targets.push(value.into()),
        "--drives" => experiment.drive_count = Some(value.parse().ok()?),
        "--catalogue" => experiment.catalogue_path = Some(value.into()),
        "--other" => experiment.second_target = Some(value.into()),
        "--size" if value == "auto" => experiment.size_choice = SizeChoice::AutomaticSize,
        // All suffixes were powers of 1024: KB as K.
        "--size" => {
            let bytes = parse_size(value.trim_end_matches(['b', 'B', 'i', 'I'])).ok()?;
            experiment.size_choice = SizeChoice::SizeBytes(bytes);
        }
        "--set" => experiment.settings.push(Setting::parse(value).ok()?),
        "--runs" => experiment.repetition_count = Some(value.parse().ok()?),
        "--cache" if value == "warm" => experiment.cache_mode = CacheMode::Warm,
        "--cache" if value == "cold" => {}
        "--fresh" => experiment.fresh_filesystem = Some(text()),
        "--destroy-data-on" => experiment.destroy_data_on.push(value.into()),
        "--seed" => experiment.seed = value.parse().ok()?,
        "--label" => experiment.label = Some(text()),
        "--store" | "--perfetto" | "--format" => {}
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<Experiment> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        parse_command_line(&words)
    }

    #[test]
    fn options_come_in_any_order_and_with_or_without_an_equals_sign() {
        let line = "diskperf --store s.sqlite run read_8192 --on vax780-sc780-eagle --drives=2 \
                    --size 64K --runs 2 --set filesystem.rotdelay_ms=4 --set=program.think_ns=9 \
                    --cache warm --seed=7 --no-latency --label a -q --format json";
        let expected = Experiment {
            workload: Workload::NamedSuite("read_8192".to_owned()),
            targets: vec!["vax780-sc780-eagle".into()],
            drive_count: Some(2),
            size_choice: SizeChoice::SizeBytes(65536),
            repetition_count: Some(2),
            settings: vec![
                Setting::new("filesystem.rotdelay_ms", "4"),
                Setting::new("program.think_ns", "9"),
            ],
            cache_mode: CacheMode::Warm,
            seed: 7,
            times_calls: false,
            label: Some("a".to_owned()),
            ..Experiment::default()
        };
        assert_eq!(of(line), Some(expected));
        assert_eq!(of("diskperf run"), Some(Experiment::default()));
        for kib_64 in ["64K", "64KB", "64kib", "65536", "65536B"] {
            let experiment = of(&format!("diskperf run --size {kib_64}")).unwrap();
            assert_eq!(
                experiment.size_choice,
                SizeChoice::SizeBytes(65536),
                "{kib_64}"
            );
        }
    }

    #[test]
    fn other_lines_are_none() {
        for line in [
            "",
            "diskperf",
            "diskperf list",
            "diskperf run --siz 3",
            "diskperf run --seed",
            "diskperf run --seed -1",
            "diskperf run --set drive",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }
}
