//! Options of fio's command line that accompany a job file, such as `--size=1g` and
//! `--section=ARGUMENT_TEXT_NAME`.
//!
//! As in fio, an option before any `--name` is a default for all jobs, wherever it stands on the
//! command line: the job's section and `[global]` override it. Options after `--name=JOB` belong to
//! that job, which precedes the jobs of the file.

use std::sync::Arc;

use crate::job::JobDefinition;
use crate::options;
use crate::reader::{JobFileEntry, OptionLine, shorten_text};
use diskperf_diagnostics::{Problem, SourceSpan, Text};

/// Name of the fio command-line options in messages.
const ARGUMENT_TEXT_NAME: &str = "--fio-arg";

/// Job options and switches that fio's command line gives.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    /// Sections and options that precede those of the job file.
    pub(crate) entries: Vec<JobFileEntry>,
    /// Names of the sections to run, with their places; empty when all sections run.
    pub(crate) selected_sections: Vec<(String, SourceSpan)>,
    /// Place of the option `--readonly`, which forbids jobs that write; `None` if it is not given.
    pub(crate) readonly_option: Option<SourceSpan>,
    pub(crate) warnings: Vec<Problem>,
}

/// Treatment of a command-line option of fio that is not a job option.
#[derive(Clone, Copy)]
enum SwitchTreatment {
    Section,
    Readonly,
    /// Option that has no effect here, with the reason.
    NoEffect(&'static str),
    /// Option that has no effect here, like [`SwitchTreatment::NoEffect`], and whose value is a list of fio's
    /// output formats.
    OutputFormat,
    /// Option that is an error, with the advice on what to do instead.
    Rejected(&'static str),
}

const REPORT_IS_OWN: &str = "diskperf writes its own report; --format fio-json gives fio's";
const OUTPUT_IS_STDOUT: &str = "diskperf writes the report to standard output; redirect it";

const OUTPUT_FORMATS: [&str; 5] = ["normal", "json", "json+", "terse", "minimal"];
const PROGRESS_IS_OWN: &str = "diskperf shows its own progress; see --quiet";
const CONTROLS_FIO_PROCESS: &str = "it is of fio's own process";
const NO_REMOTE_RUN: &str = "run diskperf on that machine";
const NO_EXTERNAL_COMMANDS: &str = "run the command before or after diskperf";

/// Command-line options of fio that are not job options, with their treatment.
const SWITCHES: &[(&str, SwitchTreatment)] = &[
    ("section", SwitchTreatment::Section),
    ("readonly", SwitchTreatment::Readonly),
    ("output", SwitchTreatment::NoEffect(OUTPUT_IS_STDOUT)),
    ("output-format", SwitchTreatment::OutputFormat),
    ("minimal", SwitchTreatment::NoEffect(REPORT_IS_OWN)),
    ("terse-version", SwitchTreatment::NoEffect(REPORT_IS_OWN)),
    ("append-terse", SwitchTreatment::NoEffect(REPORT_IS_OWN)),
    ("bandwidth-log", SwitchTreatment::NoEffect(REPORT_IS_OWN)),
    ("idle-prof", SwitchTreatment::NoEffect(REPORT_IS_OWN)),
    ("eta", SwitchTreatment::NoEffect(PROGRESS_IS_OWN)),
    ("eta-interval", SwitchTreatment::NoEffect(PROGRESS_IS_OWN)),
    ("eta-newline", SwitchTreatment::NoEffect(PROGRESS_IS_OWN)),
    (
        "status-interval",
        SwitchTreatment::NoEffect(PROGRESS_IS_OWN),
    ),
    ("debug", SwitchTreatment::NoEffect(CONTROLS_FIO_PROCESS)),
    (
        "alloc-size",
        SwitchTreatment::NoEffect(CONTROLS_FIO_PROCESS),
    ),
    ("max-jobs", SwitchTreatment::NoEffect(CONTROLS_FIO_PROCESS)),
    (
        "warnings-fatal",
        SwitchTreatment::NoEffect(CONTROLS_FIO_PROCESS),
    ),
    ("aux-path", SwitchTreatment::NoEffect(CONTROLS_FIO_PROCESS)),
    (
        "profile",
        SwitchTreatment::Rejected("write its jobs into the file"),
    ),
    (
        "parse-only",
        SwitchTreatment::Rejected("give --dry-run to diskperf"),
    ),
    (
        "showcmd",
        SwitchTreatment::Rejected("give --dry-run to diskperf"),
    ),
    (
        "merge-blktrace-only",
        SwitchTreatment::Rejected("use `diskperf trace`"),
    ),
    ("inflate-log", SwitchTreatment::Rejected("use fio")),
    ("cmdhelp", SwitchTreatment::Rejected("use fio")),
    ("enghelp", SwitchTreatment::Rejected("use fio")),
    ("help", SwitchTreatment::Rejected("use fio")),
    ("version", SwitchTreatment::Rejected("use fio")),
    ("cpuclock-test", SwitchTreatment::Rejected("use fio")),
    ("crctest", SwitchTreatment::Rejected("use fio")),
    ("server", SwitchTreatment::Rejected(NO_REMOTE_RUN)),
    ("daemonize", SwitchTreatment::Rejected(NO_REMOTE_RUN)),
    ("client", SwitchTreatment::Rejected(NO_REMOTE_RUN)),
    ("remote-config", SwitchTreatment::Rejected(NO_REMOTE_RUN)),
    ("trigger", SwitchTreatment::Rejected(NO_EXTERNAL_COMMANDS)),
    (
        "trigger-file",
        SwitchTreatment::Rejected(NO_EXTERNAL_COMMANDS),
    ),
    (
        "trigger-timeout",
        SwitchTreatment::Rejected(NO_EXTERNAL_COMMANDS),
    ),
    (
        "trigger-remote",
        SwitchTreatment::Rejected(NO_EXTERNAL_COMMANDS),
    ),
];

/// Reads fio's command-line options in order; adds mistakes to `errors`.
pub(crate) fn parse_arguments(words: &[String], errors: &mut Vec<Problem>) -> Arguments {
    let mut arguments = Arguments::default();
    let text = Arc::new(Text::new(ARGUMENT_TEXT_NAME.to_owned(), words.join("\n")));
    let mut start = 0;
    for word in words {
        let place = SourceSpan::new(&text, start..start + word.len());
        start += word.len() + 1;
        if let Err(problem) = arguments.parse_argument(word, &place) {
            errors.push(problem);
        }
    }
    arguments
}

impl Arguments {
    fn parse_argument(&mut self, word: &str, place: &SourceSpan) -> Result<(), Problem> {
        let word_text = word.trim_start_matches('-');
        let dashes = word.len() - word_text.len();
        if !(1..=2).contains(&dashes) || word_text.is_empty() {
            let title = format!("`{}` is no option of fio", shorten_text(word));
            let problem = Problem::error(title).at(place, "options begin with `--`");
            return Err(problem.help("write one `--KEY=VALUE` in each --fio-arg"));
        }
        let (key, value) = match word_text.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (word_text, None),
        };
        let key_place = place.subspan(dashes..dashes + key.len());
        let value = value.map(|value| {
            let start = word.len() - value.len();
            (value.to_owned(), place.subspan(start..word.len()))
        });
        let name = complete_name(key, &key_place)?;
        match SWITCHES.iter().find(|(own, _)| *own == name) {
            Some((_, own)) => return self.apply_switch(*own, name, (key_place, value)),
            None if name == "name" => {
                let (name, place) = require_value(value, name, &key_place)?;
                self.entries.push(JobFileEntry::Section { name, place });
            }
            None => {
                if self.entries.is_empty() {
                    let (name, place) = ("global".to_owned(), place.clone());
                    self.entries.push(JobFileEntry::Section { name, place });
                }
                self.entries.push(JobFileEntry::Option(OptionLine {
                    key: name.to_owned(),
                    key_place,
                    value,
                }));
            }
        }
        Ok(())
    }

    fn apply_switch(
        &mut self,
        own: SwitchTreatment,
        name: &str,
        (place, value): (SourceSpan, Option<(String, SourceSpan)>),
    ) -> Result<(), Problem> {
        match own {
            SwitchTreatment::Section => self
                .selected_sections
                .push(require_value(value, name, &place)?),
            SwitchTreatment::Readonly => self.readonly_option = Some(place),
            SwitchTreatment::NoEffect(why) => self.note_ignored(name, why, &place),
            SwitchTreatment::OutputFormat => {
                let (text, of_value) = require_value(value, name, &place)?;
                check_output_formats(&text, &of_value)?;
                self.note_ignored(name, REPORT_IS_OWN, &place);
            }
            SwitchTreatment::Rejected(instead) => {
                let problem = Problem::error(format!("--{name} is not a job option"));
                return Err(problem.at(&place, "it is of fio itself").help(instead));
            }
        }
        Ok(())
    }

    fn note_ignored(&mut self, name: &str, why: &str, place: &SourceSpan) {
        let title = format!("--{name} is ignored: {why}");
        self.warnings.push(Problem::warning(title).at(place, why));
    }

    /// Returns a warning for each command-line default that a section of the job file overrides. As
    /// in fio, the default has no effect on such a job.
    pub(crate) fn find_overridden(&self, jobs: &[JobDefinition]) -> Vec<Problem> {
        let is_global = |entry: &&JobFileEntry| match entry {
            JobFileEntry::Section { name, .. } => name == "global",
            JobFileEntry::Option(_) => true,
        };
        let words = self.entries.iter().take_while(is_global);
        words
            .filter_map(|entry| match entry {
                JobFileEntry::Option(line) => find_overridden(line, jobs),
                JobFileEntry::Section { .. } => None,
            })
            .collect()
    }

    /// Keeps the sections that `--section` selects, and the global sections.
    pub(crate) fn select_sections(
        &self,
        entries: Vec<JobFileEntry>,
        errors: &mut Vec<Problem>,
    ) -> Vec<JobFileEntry> {
        if self.selected_sections.is_empty() {
            return entries;
        }
        let is_chosen = |name: &str| {
            name.starts_with("global")
                || self
                    .selected_sections
                    .iter()
                    .any(|(chosen, _)| chosen == name)
        };
        let names: Vec<String> = entries.iter().filter_map(section_name).collect();
        for (chosen, place) in &self.selected_sections {
            if !names.contains(chosen) {
                let title = format!("there is no section `{}`", shorten_text(chosen));
                let problem = Problem::error(title).at(place, "fio leaves this out");
                let jobs = names.iter().filter(|name| !name.starts_with("global"));
                let jobs: Vec<String> = jobs.take(8).map(|name| shorten_text(name)).collect();
                errors.push(problem.help(format!("there are: {}", jobs.join(", "))));
            }
        }
        let mut is_in = true;
        let mut kept = entries;
        kept.retain(|entry| {
            if let JobFileEntry::Section { name, .. } = entry {
                is_in = is_chosen(name);
            }
            is_in
        });
        kept
    }
}

/// Returns the warning for one command-line default, if a job of the file sets the same option.
fn find_overridden(line: &OptionLine, jobs: &[JobDefinition]) -> Option<Problem> {
    let of_file = |job: &&JobDefinition| {
        let key = options::find_option(&line.key, job.engine.engine);
        let place = key.and_then(|key| job.places.get(key.name));
        place.is_some_and(|place| place.file() != ARGUMENT_TEXT_NAME)
    };
    let overriding: Vec<&JobDefinition> = jobs.iter().filter(of_file).collect();
    let key = options::find_option(&line.key, overriding.first()?.engine.engine)?.name;
    let at = overriding.first()?.option_place(key);
    let whose = match overriding.len() == jobs.len() {
        true => "the file".to_owned(),
        false => {
            let names = overriding
                .iter()
                .take(4)
                .map(|job| format!("[{}]", job.section));
            let more = match overriding.len() > 4 {
                true => " and others",
                false => "",
            };
            names.collect::<Vec<_>>().join(", ") + more
        }
    };
    let title = format!("--{key} gives way to {whose}, as with fio");
    let label = format!("{}:{} says it", at.file(), at.line_number());
    let help = format!("remove `{key}` from the file, or change it there");
    Some(
        Problem::warning(title)
            .at(&line.key_place, label)
            .help(help),
    )
}

fn section_name(entry: &JobFileEntry) -> Option<String> {
    match entry {
        JobFileEntry::Section { name, .. } => Some(name.clone()),
        JobFileEntry::Option(_) => None,
    }
}

fn check_output_formats(text: &str, place: &SourceSpan) -> Result<(), Problem> {
    let unknown = text.split(',').find(|form| !OUTPUT_FORMATS.contains(form));
    match unknown {
        None => Ok(()),
        Some(form) => {
            let title = format!("fio has no output format `{}`", shorten_text(form));
            let problem = Problem::error(title).at(place, "fio ends here");
            Err(problem.help(format!(
                "write one or more of {}",
                OUTPUT_FORMATS.join(", ")
            )))
        }
    }
}

/// Returns the value of an option that requires one, or an error if it is missing.
fn require_value(
    value: Option<(String, SourceSpan)>,
    name: &str,
    place: &SourceSpan,
) -> Result<(String, SourceSpan), Problem> {
    let given = value.filter(|(text, _)| !text.is_empty());
    given.ok_or_else(|| {
        Problem::error(format!("--{name} needs a value"))
            .at(place, "the value is missing")
            .help(format!("write `--{name}=VALUE`"))
    })
}

/// Resolves an option name or an unambiguous prefix of one; fio accepts both.
fn complete_name(key: &str, place: &SourceSpan) -> Result<&'static str, Problem> {
    let names = || {
        SWITCHES
            .iter()
            .map(|(name, _)| *name)
            .chain(options::option_names())
    };
    if let Some(name) = names().find(|name| *name == key) {
        return Ok(name);
    }
    let beginning: Vec<&'static str> = names().filter(|name| name.starts_with(key)).collect();
    match beginning[..] {
        [name] if !key.is_empty() => Ok(name),
        [] => {
            let problem = Problem::error(format!("fio has no option `--{}`", shorten_text(key)));
            let problem = problem.at(place, "fio ends here");
            Err(match options::find_similar_name(key) {
                Some(near) => problem.help(format!("the nearest is `--{near}`")),
                None => problem,
            })
        }
        _ => {
            let title = format!("several options begin with `--{}`", shorten_text(key));
            let shown: Vec<&str> = beginning.iter().take(6).copied().collect();
            let problem = Problem::error(title).at(place, "fio ends here");
            Err(problem.help(format!("write one of {}", shown.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests;
