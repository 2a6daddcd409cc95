//! `diskperf ab`: what A and B mean.

use super::{ExperimentArguments, GateArguments, OutputFormat};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, FromArgMatches, Parser};
use diskperf_battery::{Medium, Program, Suite};
use diskperf_laboratory::ab::{
    AbRequest, AbVariant, DEFAULT_BUDGET, no_steady_state_error, repeat_experiment,
};
use diskperf_laboratory::{Experiment, LaboratoryError, Setting, runs};
use diskperf_models::model::load_catalogue;
use diskperf_timeline::MeasuredWorld;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Args)]
#[command(
    override_usage = "diskperf ab <A> <B> [WHAT] [OPTIONS]",
    after_help = "\
A and B come first, each as one word: a target, a stored run whose experiment is repeated, or a \
quoted string of options of `run` and of settings, which are added to the options for both; an \
empty word adds nothing:
  diskperf ab program.depth=1 program.depth=8 random
  diskperf ab /mnt/old /mnt/new read_8192
  diskperf ab '' '--direct' seqread --on /mnt/data
  diskperf ab program.call_bytes=4K program.call_bytes=64K write_8192 --on . --before-b 'sync'"
)]
pub(crate) struct AbArguments {
    /// Base variant: options, target or stored run
    #[arg(value_name = "A")]
    pub(crate) a: String,
    /// Variant to compare with A: options, target or stored run
    #[arg(value_name = "B")]
    pub(crate) b: String,
    #[command(flatten)]
    pub(crate) common: TypedOptions,
    /// Shell command to run before each repetition of A, before its files are prepared
    #[arg(long, value_name = "CMD")]
    pub(crate) before_a: Option<String>,
    /// Shell command to run before each repetition of B, before its files are prepared
    #[arg(long, value_name = "CMD")]
    pub(crate) before_b: Option<String>,
    /// Time budget for the blocks of all programs, as 90s, 3m or 1h [default: 3m]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) budget: Option<Duration>,
    /// Minimum time for the blocks of each program, even if the verdict is certain earlier
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) min_time: Option<Duration>,
    /// Maximum number of blocks of each program [default: as many as fit in the budget]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000), allow_negative_numbers = true)]
    pub(crate) blocks: Option<u32>,
    /// Accepted only to explain why the option does not exist here
    #[arg(long, hide = true, value_name = "RULE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    until_steady: Option<String>,
    #[command(flatten)]
    pub(crate) gate: GateArguments,
    /// Print what the runs would write, where, and for how long; run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: OutputFormat,
    /// Do not show progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Clone, Default)]
pub(crate) struct TypedOptions(Vec<TypedOption>);

#[derive(Clone)]
struct TypedOption {
    name: String,
    words: Vec<OsString>,
}

/// Options of one variant.
#[derive(Parser)]
#[command(
    no_binary_name = true,
    disable_help_flag = true,
    disable_version_flag = true
)]
struct VariantOptions {
    #[command(flatten)]
    asked: ExperimentArguments,
}

/// Escapes A and B, the two words after `ab`, so that clap does not parse them as options.
pub(crate) fn with_escaped_variants(words: &[OsString]) -> Vec<OsString> {
    let mut words = words.to_vec();
    let mut at = 1;
    while words.get(at).is_some_and(|word| word == "--store") {
        at += 2;
    }
    if words.get(at).is_some_and(|word| word == "ab") {
        let is_help = |word: &OsString| {
            ["-h", "--help", "-V", "--version"]
                .map(Into::into)
                .contains(word)
        };
        for word in words.iter_mut().skip(at + 1).take(2) {
            if is_help(word) {
                break;
            }
            if word.as_encoded_bytes().starts_with(b"-") {
                let mut spaced = OsString::from(" ");
                spaced.push(&word);
                *word = spaced;
            }
        }
    }
    words
}

impl AbArguments {
    /// Returns the requested comparison.
    ///
    /// # Errors
    ///
    /// The word for A or B has no meaning or several meanings.
    pub(crate) fn to_request(&self, store: Option<&Path>) -> Result<AbRequest, LaboratoryError> {
        if self.until_steady.is_some() {
            return Err(no_steady_state_error());
        }
        let common = self.common.to_experiment("A and B")?;
        let side = |name, word, before: &Option<String>| -> Result<AbVariant, LaboratoryError> {
            Ok(AbVariant {
                experiment: self.to_side(name, word, store, &common)?,
                before_command: before.clone(),
            })
        };
        let mut sides = [
            side("A", &self.a, &self.before_a)?,
            side("B", &self.b, &self.before_b)?,
        ];
        protect_devices_of_other_side(&mut sides);
        Ok(AbRequest {
            sides,
            time_budget: self.budget.unwrap_or(DEFAULT_BUDGET),
            min_time: self.min_time.unwrap_or_default(),
            block_count: self.blocks,
            decision_limits: self.gate.to_limits().unwrap_or_default(),
            slowdown_limit: self.gate.fail_over,
            seed: common.seed,
        })
    }

    fn to_side(
        &self,
        name: &str,
        word: &str,
        store: Option<&Path>,
        common: &Experiment,
    ) -> Result<Experiment, LaboratoryError> {
        let mut experiment = match resolve_variant(name, word.trim(), store, common)? {
            VariantMeaning::Options(words) => {
                let own = TypedOptions::parse(name, &words)?;
                self.common.merge_own(own).to_experiment(name)?
            }
            VariantMeaning::Target(path) => {
                let own = TypedOptions::parse(name, &[OsString::from("--on"), path.into()])?;
                self.common.merge_own(own).to_experiment(name)?
            }
            VariantMeaning::Stored(kept) => Experiment {
                destroy_data_on: common.destroy_data_on.clone(),
                ignores_signature: common.ignores_signature,
                label: common.label.clone(),
                ..*kept
            },
        };
        if experiment.label == common.label {
            let label = common.label.as_ref();
            experiment.label = label.map(|label| format!("{label}-{}", name.to_lowercase()));
        }
        Ok(experiment)
    }
}

/// Removes the permission to overwrite a device from the variant that does not target it.
fn protect_devices_of_other_side(sides: &mut [AbVariant; 2]) {
    let targets = sides.each_ref().map(|side| side.experiment.targets.clone());
    for (side, (own, other)) in sides
        .iter_mut()
        .zip([(&targets[0], &targets[1]), (&targets[1], &targets[0])])
    {
        let of_other_alone = |device: &PathBuf| other.contains(device) && !own.contains(device);
        side.experiment
            .destroy_data_on
            .retain(|device| !of_other_alone(device));
    }
}

enum VariantMeaning {
    /// Options in addition to the common ones.
    Options(Vec<OsString>),
    Target(PathBuf),
    Stored(Box<Experiment>),
}

fn resolve_variant(
    name: &str,
    word: &str,
    store: Option<&Path>,
    common: &Experiment,
) -> Result<VariantMeaning, LaboratoryError> {
    let path = Path::new(word);
    let is_setting = word
        .split_once('=')
        .is_some_and(|(path, _)| !path.contains('/'));
    if word.is_empty() || word.starts_with('-') || (is_setting && !path.exists()) {
        return parse_variant_options(name, word);
    }
    if word.contains(char::is_whitespace) && !path.exists() {
        return parse_variant_options(name, word);
    }
    let stored = || resolve_stored_variant(store, word);
    if word.ends_with(".json") && path.is_file() {
        return stored();
    }
    if word.contains('/') || word == "." || word == ".." {
        return Ok(VariantMeaning::Target(path.to_owned()));
    }
    let system = word.split(':').next().unwrap_or(word);
    let systems = load_catalogue(common.catalogue_path.as_deref())?.system_names();
    let is_system = word.ends_with(".toml") || systems.iter().any(|known| known == system);
    let is_path = path.exists() && !word.ends_with(".toml");
    let yields = runs::is_short_id_prefix(store, word);
    match (is_system, is_path, stored()) {
        (true, false, run) if yields || run.is_err() => Ok(VariantMeaning::Target(path.to_owned())),
        (false, true, run) if yields || run.is_err() => {
            Ok(VariantMeaning::Target(Path::new(".").join(path)))
        }
        (false, false, Ok(stored)) => Ok(stored),
        (false, false, Err(error)) => Err(unknown_variant(name, word, &error)),
        _ => Err(LaboratoryError::Request(format!(
            "{name}: `{word}` means more than one thing: write ./{word} for the path, `--on {word}` in quotes for the modelled system, or the id of the run"
        ))),
    }
}

/// Returns the error for a word without meaning.
fn unknown_variant(name: &str, word: &str, error: &LaboratoryError) -> LaboratoryError {
    let is_program = Program::from_name(word).is_some();
    let is_suite = Suite::from_name(word, Medium::Directory).is_some();
    LaboratoryError::Request(match is_program || is_suite {
        true => format!(
            "{name}: `{word}` is what runs: A and B come before it, as in diskperf ab /mnt/a /mnt/b {word}"
        ),
        false => format!(
            "{name}: `{word}` is no path (write ./{word}), no modelled system, no options, and no run: {error}"
        ),
    })
}

fn resolve_stored_variant(
    store: Option<&Path>,
    word: &str,
) -> Result<VariantMeaning, LaboratoryError> {
    match runs::load_runs(store, word)?.as_slice() {
        [run] => {
            let mut experiment = repeat_experiment(run)?;
            if run.world == MeasuredWorld::Model {
                experiment.targets = vec![run.target_label.clone().into()];
            }
            Ok(VariantMeaning::Stored(Box::new(experiment)))
        }
        several => Err(LaboratoryError::Request(format!(
            "{word} holds {} runs, and one is wanted here: name it by its id",
            several.len()
        ))),
    }
}

/// Returns the words of a quoted string; `PATH=VALUE` alone is a setting.
fn parse_variant_options(name: &str, text: &str) -> Result<VariantMeaning, LaboratoryError> {
    let words = split_shell_words(text).ok_or_else(|| {
        LaboratoryError::Request(format!(
            "{name}: a quotation mark in `{text}` is not closed"
        ))
    })?;
    let command = ExperimentArguments::augment_args(clap::Command::new(""));
    let takes_value = |word: &String| {
        let long = word.strip_prefix("--");
        let known = command.get_arguments().find(|one| one.get_long() == long);
        long.is_some() && known.is_some_and(|one| one.get_action().takes_values())
    };
    let mut all = Vec::new();
    for (number, word) in words.iter().enumerate() {
        let is_value = number > 0 && takes_value(&words[number - 1]);
        if !is_value && !word.starts_with('-') && Setting::parse(word).is_ok() {
            all.push("--set".into());
        }
        all.push(word.into());
    }
    Ok(VariantMeaning::Options(all))
}

/// Splits text into words as a shell does, without expansions; returns `None` for an unclosed
/// quotation.
fn split_shell_words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        end if end == character => break,
                        '\\' if character == '"' => word.push(characters.next()?),
                        quoted => word.push(quoted),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(characters.next()?),
            space if space.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

impl TypedOptions {
    fn parse(name: &str, words: &[OsString]) -> Result<Self, LaboratoryError> {
        let is_steady = |word: &OsString| word.as_encoded_bytes().starts_with(b"--until-steady");
        if words.iter().any(is_steady) {
            return Err(no_steady_state_error());
        }
        let command =
            ExperimentArguments::augment_args(clap::Command::new("").no_binary_name(true));
        let matches = command.disable_help_flag(true).try_get_matches_from(words);
        let typed = matches.and_then(|matches| Self::from_arg_matches(&matches));
        typed.map_err(|error| match words {
            [option] if error.kind() == ErrorKind::InvalidValue => {
                separated_value_error(name, option)
            }
            _ => option_error(name, &error),
        })
    }

    /// Adds the options of one variant. They replace the common ones, except for options that
    /// accumulate.
    fn merge_own(&self, own: Self) -> Self {
        const ACCUMULATED_OPTIONS: [&str; 2] = ["settings", "destroy_data_on"];
        const ALTERNATIVES: [[&str; 2]; 2] = [["cache", "direct"], ["what", "suite"]];
        let is_given = |name: &str| own.0.iter().any(|option| option.name == name);
        let is_replaced = |option: &&TypedOption| {
            let name = option.name.as_str();
            let mut alternatives = ALTERNATIVES.iter().filter(|names| names.contains(&name));
            !ACCUMULATED_OPTIONS.contains(&name)
                && (is_given(name)
                    || alternatives.any(|names| names.iter().any(|one| is_given(one))))
        };
        let common = self.0.iter().filter(|option| !is_replaced(option));
        Self(common.cloned().chain(own.0.iter().cloned()).collect())
    }

    /// Returns the experiment. The default target is the current directory, or the modelled system
    /// of a setting.
    fn to_experiment(&self, name: &str) -> Result<Experiment, LaboratoryError> {
        let words = self.0.iter().flat_map(|option| option.words.iter());
        let arm =
            VariantOptions::try_parse_from(words).map_err(|error| option_error(name, &error))?;
        let mut experiment = arm.asked.to_experiment();
        if arm.asked.targets.is_empty() {
            experiment.targets.truncate(1);
        }
        Ok(experiment)
    }
}

/// Returns the error for an option whose value is not in the same word.
fn separated_value_error(name: &str, option: &OsStr) -> LaboratoryError {
    let option = option.to_string_lossy();
    LaboratoryError::Request(format!(
        "{name}: `{option}` lacks its value: A and B are one word each, as in `diskperf ab program.depth=1 program.depth=8 random` or `diskperf ab '{option} X' '{option} Y' random`"
    ))
}

/// Returns clap's message without its usage line.
fn option_error(name: &str, error: &clap::Error) -> LaboratoryError {
    let text = error.to_string();
    let text = text.split("\n\n").next().unwrap_or_default();
    let text = text.trim().trim_start_matches("error: ");
    LaboratoryError::Request(format!("{name}: {text}"))
}

impl Args for TypedOptions {
    fn augment_args(command: clap::Command) -> clap::Command {
        ExperimentArguments::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        ExperimentArguments::augment_args_for_update(command)
    }
}

impl FromArgMatches for TypedOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let command = ExperimentArguments::augment_args(clap::Command::new(""));
        let typed = command.get_arguments().filter(|argument| {
            let source = matches.value_source(argument.get_id().as_str());
            source == Some(ValueSource::CommandLine)
        });
        let option = |argument: &clap::Arg| {
            let name = argument.get_id().to_string();
            let long = argument.get_long().map(|long| format!("--{long}"));
            let values = matches.get_raw(&name).into_iter().flatten();
            let words = match long {
                Some(long) if !argument.get_action().takes_values() => vec![long.into()],
                Some(long) => values
                    .map(|value| {
                        let mut word = OsString::from(format!("{long}="));
                        word.push(value);
                        word
                    })
                    .collect(),
                None => values.map(OsString::from).collect(),
            };
            TypedOption { name, words }
        };
        Ok(Self(typed.map(option).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Parses a time such as `90s`, `3m` or `1h`.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let units = [("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let seconds = units.into_iter().find_map(|(unit, seconds)| {
        let number = text.strip_suffix(unit)?.trim();
        Some(number.parse::<f64>().ok()? * seconds)
    });
    seconds
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|duration| *duration <= DURATION_MAX)
        .ok_or_else(|| format!("`{text}` is no time above 0 and up to 1000h; write 90s, 3m or 1h"))
}

const DURATION_MAX: Duration = Duration::from_secs(1000 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_shell() {
        for (text, expected) in [
            ("", Some(vec![])),
            (" a  b ", Some(vec!["a", "b"])),
            (
                "--on '/mnt/my disk' x",
                Some(vec!["--on", "/mnt/my disk", "x"]),
            ),
            (r#"a"b c"d '' \ e\'"#, Some(vec!["ab cd", "", " e'"])),
            (r#""a\"b\\""#, Some(vec![r#"a"b\"#])),
            ("it's", None),
            (r"a\", None),
        ] {
            let words = split_shell_words(text);
            let words: Option<Vec<&str>> = words
                .as_ref()
                .map(|all| all.iter().map(String::as_str).collect());
            assert_eq!(words, expected, "{text}");
        }
    }

    fn arms(line: &[&str]) -> Vec<String> {
        let words: Vec<OsString> = line.iter().map(OsString::from).collect();
        let found = with_escaped_variants(&words).into_iter();
        found.map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn the_two_words_after_ab_are_no_options() {
        for (line, expected) in [
            (
                vec!["d", "ab", "--direct", "-q", "-q"],
                vec!["d", "ab", " --direct", " -q", "-q"],
            ),
            (
                vec!["d", "--store", "ab", "ab", "", "--cache warm"],
                vec!["d", "--store", "ab", "ab", "", " --cache warm"],
            ),
            (vec!["d", "ab", "--help"], vec!["d", "ab", "--help"]),
            (vec!["d", "run", "--direct"], vec!["d", "run", "--direct"]),
        ] {
            assert_eq!(arms(&line), expected);
        }
    }

    /// Returns the experiments of a command line.
    fn sides(line: &[&str]) -> [Experiment; 2] {
        let words: Vec<OsString> = ["d", "ab"].iter().chain(line).map(OsString::from).collect();
        let parsed = crate::arguments::Arguments::try_parse_from(with_escaped_variants(&words));
        let Ok(crate::arguments::Arguments {
            command: crate::arguments::Command::Ab(ab),
            ..
        }) = parsed
        else {
            panic!("{line:?} is understood");
        };
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("runs.sqlite");
        let request = ab.to_request(Some(&store)).unwrap();
        request.sides.map(|side| side.experiment)
    }

    #[test]
    fn a_side_adds_to_the_common_options_or_takes_their_place() {
        use diskperf_laboratory::SizeChoice;
        use diskperf_timeline::CacheMode;
        let [a, b] = sides(&[
            "program.call_bytes=4K",
            "--cache warm --size 2M --on /tmp program.think_ns=1",
            "write_8192",
            "--direct",
            "--size=1M",
            "--set",
            "program.call_bytes=8K",
            "--label",
            "x",
            "--on",
            "/",
        ]);
        assert_eq!(
            (a.cache_mode, b.cache_mode),
            (CacheMode::Direct, CacheMode::Warm)
        );
        assert_eq!(a.size_choice, SizeChoice::SizeBytes(1 << 20));
        assert_eq!(b.size_choice, SizeChoice::SizeBytes(2 << 20));
        assert_eq!(a.targets, [PathBuf::from("/")]);
        assert_eq!(b.targets, [PathBuf::from("/tmp")]);
        let settings = |one: &Experiment| -> Vec<String> {
            one.settings.iter().map(Setting::to_string).collect()
        };
        assert_eq!(
            settings(&a),
            ["program.call_bytes=8K", "program.call_bytes=4K"]
        );
        assert_eq!(
            settings(&b),
            ["program.call_bytes=8K", "program.think_ns=1"]
        );
        assert_eq!(a.label.as_deref(), Some("x-a"));
        assert_eq!(b.label.as_deref(), Some("x-b"));
        assert_eq!(a.workload, b.workload);

        let [a, b] = sides(&[
            "/dev/a",
            "/dev/b",
            "--destroy-data-on",
            "/dev/a",
            "--destroy-data-on",
            "/dev/b",
        ]);
        assert_eq!(
            (a.destroy_data_on, b.destroy_data_on),
            (a.targets, b.targets)
        );
        let [a, b] = sides(&["", "vax780-sc780-eagle"]);
        assert_eq!(a.targets, [PathBuf::from(".")]);
        assert_eq!(b.targets, [PathBuf::from("vax780-sc780-eagle")]);
    }

    #[test]
    fn times() {
        for (text, seconds) in [("90s", 90.0), ("3m", 180.0), ("1.5h", 5400.0)] {
            assert_eq!(parse_duration(text).unwrap().as_secs_f64(), seconds);
        }
        for text in ["", "3", "m", "0s", "-1s", "1e9h", "NaNs", "1d"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
