//! Job file: sections, the global sections that apply to them, and reporting groups.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::arguments;
use crate::check;
use crate::elsewhere::{self, ForeignEngine};
use crate::job::{EngineOptions, Ignored, IoEngine, JobDefinition};
use crate::options::{self, OptionKey, OptionTreatment};
use crate::reader::{JobFileEntry, JobFileReader, OptionLine, PROBLEMS_MAX, shorten_text};
use crate::substitute::{substitute, variable_names};
use crate::surroundings::{JobEnvironment, Keyword};
use crate::value::WrittenOption;
use crate::verify::PATTERN_BYTES_MAX;
use diskperf_diagnostics::SourceSpan;
use diskperf_diagnostics::{Errors, Problem};

/// Reason for ignoring the options of an engine that sends its I/Os elsewhere.
const FOREIGN_ENGINE_OPTION: &str =
    "it sets the target of the engine's I/Os; the drive receives them directly";

/// Maximum number of jobs in fio, clones included.
const JOBS_MAX: u64 = 4096;

/// Contents of a job file after resolution.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFile {
    /// Name of the job file in messages.
    pub name: String,
    /// Jobs in the order of the file; at least one.
    pub jobs: Vec<JobDefinition>,
    /// Options of the global sections: fio's name and the value after substitution, which is empty
    /// for an option without a value.
    pub global_options: Vec<(String, String)>,
    /// Warnings about options with an unexpected effect, with their places.
    pub warnings: Vec<Problem>,
    /// Options that have no effect on the measured results: first those of global sections, then
    /// those of jobs.
    pub ignored: Vec<Ignored>,
    /// Included files by path. With these in [`FileSource::Memory`](crate::FileSource::Memory), the job file
    /// resolves to the same result.
    pub included: BTreeMap<String, String>,
    /// Environment variables that the job file uses, if they are set.
    pub variables: BTreeMap<String, String>,
    /// Machine values, such as `$ncpus`, that the job file uses.
    pub keywords: BTreeSet<Keyword>,
}

impl JobFile {
    /// Parses and resolves a job file. `name` is its name in messages, and its directory is
    /// searched for included files.
    ///
    /// # Errors
    ///
    /// All problems of the file: text that fio rejects, text that fio silently reads differently,
    /// and options that diskperf does not support.
    pub fn parse(
        name: &str,
        content: &str,
        surroundings: &JobEnvironment,
    ) -> Result<JobFile, Errors> {
        JobFile::parse_with(name, content, &[], surroundings)
    }

    /// Parses a job file with fio command-line options, such as `--size=1g`, as defaults for what
    /// the file does not set.
    ///
    /// # Errors
    ///
    /// Like [`JobFile::parse`], and problems of the command-line options.
    pub fn parse_with(
        name: &str,
        content: &str,
        arguments: &[String],
        surroundings: &JobEnvironment,
    ) -> Result<JobFile, Errors> {
        let mut reader = JobFileReader::new(surroundings);
        reader.read_text(name, content);
        let JobFileReader {
            entries,
            mut errors,
            mut warnings,
            included,
            ..
        } = reader;
        let mut arguments = arguments::parse_arguments(arguments, &mut errors);
        warnings.append(&mut arguments.warnings);
        let of_file = arguments.select_sections(entries, &mut errors);
        let mut entries = arguments.entries.clone();
        entries.extend(of_file);
        let mut resolver = JobResolver {
            surroundings,
            errors,
            warnings: RefCell::new(warnings),
            clones: 0,
            variables: BTreeMap::new(),
            keywords: BTreeSet::new(),
            pattern_files: BTreeMap::new(),
        };
        let last_section = entries.iter().rev().find_map(|entry| match entry {
            JobFileEntry::Section { place, .. } => Some(place.clone()),
            JobFileEntry::Option(_) => None,
        });
        let mut file = resolver.resolve_file(name, entries);
        file.included = included;
        file.included.append(&mut resolver.pattern_files);
        file.variables = std::mem::take(&mut resolver.variables);
        file.keywords = std::mem::take(&mut resolver.keywords);
        if file.jobs.is_empty() && resolver.errors.is_empty() {
            let mut problem = Problem::error(format!("`{name}` has no job"));
            if let Some(place) = &last_section {
                problem = problem.at(place, "this section has only options for all jobs");
            }
            let help = "add a section such as `[job]` below `[global]`";
            resolver.errors.push(problem.help(help));
        }
        check::check_jobs(
            &mut file.jobs,
            &mut resolver.errors,
            resolver.warnings.get_mut(),
        );
        let overridden = arguments.find_overridden(&file.jobs);
        resolver.warnings.get_mut().extend(overridden);
        if let Some(place) = &arguments.readonly_option {
            check::reject_writes(&file.jobs, place, &mut resolver.errors);
        }
        file.warnings = resolver.warnings.into_inner();
        file.warnings.truncate(PROBLEMS_MAX);
        resolver.errors.truncate(PROBLEMS_MAX);
        Errors::fail_if_any(resolver.errors)?;
        Ok(file)
    }
}

struct JobResolver<'s> {
    surroundings: &'s JobEnvironment,
    errors: Vec<Problem>,
    warnings: RefCell<Vec<Problem>>,
    clones: u64,
    variables: BTreeMap<String, String>,
    keywords: BTreeSet<Keyword>,
    /// Pattern files by quoted name: their bytes as hexadecimal digits after `0x`.
    pattern_files: BTreeMap<String, String>,
}

struct KnownOption<'l> {
    option_line: &'l OptionLine,
    key: &'static OptionKey,
    /// Value after substitution; `None` for an option without a value.
    text: Option<String>,
}

impl KnownOption<'_> {
    /// Returns the position of the option in the order of evaluation: kb_base first, then the
    /// engine because it determines valid options, and file names last.
    fn evaluation_rank(&self) -> u8 {
        match self.key.name {
            "kb_base" | "unit_base" => 0,
            "ioengine" => 1,
            "filename" | "filename_format" => 3,
            _ => 2,
        }
    }

    fn as_written(&self) -> (String, String) {
        let value = self.text.clone().unwrap_or_default();
        (self.key.name.to_owned(), value)
    }
}

impl JobResolver<'_> {
    fn resolve_file(&mut self, name: &str, entries: Vec<JobFileEntry>) -> JobFile {
        let mut file = JobFile {
            name: name.to_owned(),
            jobs: Vec::new(),
            global_options: Vec::new(),
            warnings: Vec::new(),
            ignored: Vec::new(),
            included: BTreeMap::new(),
            variables: BTreeMap::new(),
            keywords: BTreeSet::new(),
        };
        let mut defaults: Option<JobDefinition> = None;
        let mut entries = entries.into_iter().peekable();
        while let Some(entry) = entries.next() {
            let JobFileEntry::Section { name, place } = entry else {
                unreachable!("the reader lets no option stand outside of a section");
            };
            let mut lines = Vec::new();
            while let Some(JobFileEntry::Option(line)) =
                entries.next_if(|entry| matches!(entry, JobFileEntry::Option(_)))
            {
                lines.push(line);
            }
            let mut job = match &defaults {
                Some(defaults) => defaults.clone(),
                None => JobDefinition::new(&name, &place),
            };
            if name.starts_with("global") {
                let written = self.resolve_section(&mut job, &lines);
                file.global_options.extend(written);
                file.ignored.append(&mut job.ignored);
                defaults = Some(job);
                continue;
            }
            (job.name, job.section, job.place) = (name.clone(), name, place);
            job.options_as_written = self.resolve_section(&mut job, &lines);
            file.ignored.extend(job.ignored.iter().cloned());
            self.clones += u64::from(job.order.clone_count);
            if self.clones > JOBS_MAX {
                let title = format!("more than {JOBS_MAX} jobs, clones included");
                let problem = Problem::error(title).at(&job.place, "fio has no room for this one");
                self.errors.push(problem.help("lower `numjobs`"));
                break;
            }
            file.jobs.push(job);
        }
        file
    }

    /// Applies the options of a section to a job and returns them as written.
    fn resolve_section(
        &mut self,
        job: &mut JobDefinition,
        lines: &[OptionLine],
    ) -> Vec<(String, String)> {
        let (engine, elsewhere) = self.resolve_engine(&job.engine, lines);
        let (own, lines): (Vec<&OptionLine>, Vec<&OptionLine>) = lines.iter().partition(|line| {
            elsewhere.is_some_and(|other| other.options.contains(&line.key.as_str()))
        });
        for line in &own {
            job.ignored.push(Ignored {
                key: line.key.clone(),
                place: line.key_place.clone(),
                reason: FOREIGN_ENGINE_OPTION,
            });
        }
        let mut known: Vec<KnownOption<'_>> = Vec::new();
        for line in lines {
            if self.errors.len() >= PROBLEMS_MAX {
                break;
            }
            match self.resolve_option(line, engine) {
                Ok(option) => known.push(option),
                Err(problem) => self.errors.push(problem),
            }
        }
        known.sort_by_key(KnownOption::evaluation_rank);
        for option in &known {
            let mut place = option.option_line.key_place.clone();
            let value = option.option_line.value.as_ref();
            let exact = value.map(|(text, _)| text.as_str()) == option.text.as_deref();
            if let Some((_, value)) = value {
                place = value.clone();
            }
            let written = WrittenOption {
                key: option.key.name,
                key_place: &option.option_line.key_place,
                text: option.text.as_deref(),
                place: &place,
                is_exact: exact,
                unit_base: job.unit_base,
                warnings: &self.warnings,
            };
            if let Err(problem) = apply_option(option.key, job, &written) {
                self.errors.push(problem);
            }
        }
        let own = own.into_iter().map(|line| {
            let value = line.value.as_ref().map(|(text, _)| text.clone());
            (line.key.clone(), value.unwrap_or_default())
        });
        known
            .iter()
            .map(KnownOption::as_written)
            .chain(own)
            .collect()
    }

    /// Determines the engine of a section, because engine options are valid only under their
    /// engine.
    fn resolve_engine(
        &mut self,
        inherited: &EngineOptions,
        lines: &[OptionLine],
    ) -> (IoEngine, Option<&'static ForeignEngine>) {
        let (mut engine, mut elsewhere) = (inherited.engine, inherited.foreign_engine);
        for line in lines.iter().filter(|line| line.key == "ioengine") {
            // A wrong name is told when its turn comes.
            let mut scratch = JobDefinition::new("", &line.key_place);
            let Ok(option) = self.resolve_option(line, inherited.engine) else {
                continue;
            };
            let written = WrittenOption {
                key: option.key.name,
                key_place: &line.key_place,
                text: option.text.as_deref(),
                place: &line.key_place,
                is_exact: false,
                unit_base: scratch.unit_base,
                warnings: &RefCell::new(Vec::new()),
            };
            if apply_option(option.key, &mut scratch, &written).is_ok() {
                (engine, elsewhere) = (scratch.engine.engine, scratch.engine.foreign_engine);
            }
        }
        (engine, elsewhere)
    }

    fn resolve_option<'l>(
        &mut self,
        line: &'l OptionLine,
        engine: IoEngine,
    ) -> Result<KnownOption<'l>, Problem> {
        let key = options::find_option(&line.key, engine).ok_or_else(|| unknown_option(line))?;
        if !key.engines.is_empty() && !key.engines.contains(&engine) {
            let engines: Vec<&str> = key.engines.iter().map(|engine| engine.name()).collect();
            let title = format!(
                "{} is not an option of the engine {}",
                key.name,
                engine.name()
            );
            let problem = Problem::error(title).at(&line.key_place, "fio drops the job");
            let help = format!("it belongs to {}", engines.join(" and "));
            return Err(problem.help(help));
        }
        let text = match &line.value {
            None => None,
            Some((text, place)) => {
                let set = &self.surroundings.variables;
                let named = variable_names(text).filter_map(|name| set.get_key_value(name));
                let named = named.map(|(name, value)| (name.clone(), value.clone()));
                self.variables.extend(named);
                let warnings = self.warnings.get_mut();
                let substituted = substitute(text, place, self.surroundings, warnings)?;
                self.keywords.extend(substituted.keywords);
                match key.name {
                    "verify_pattern" => Some(self.insert_pattern_files(substituted.value, place)?),
                    _ => Some(substituted.value),
                }
            }
        };
        Ok(KnownOption {
            option_line: line,
            key,
            text,
        })
    }

    /// Replaces file names in single quotes by the bytes of those files.
    fn insert_pattern_files(
        &mut self,
        text: String,
        place: &SourceSpan,
    ) -> Result<String, Problem> {
        let (mut taken, mut rest) = (String::new(), &*text);
        while let Some(at) = rest.find(['"', '\'']) {
            let (before, quoted) = rest.split_at(at);
            let quote = &quoted[..1];
            let Some((name, after)) = quoted[1..].split_once(quote) else {
                break;
            };
            taken += before;
            rest = after;
            if quote == "\"" {
                taken += &format!("\"{name}\"");
                continue;
            }
            let bytes_max = PATTERN_BYTES_MAX as u64;
            let digits = self
                .surroundings
                .file_source
                .read_pattern_file(name, bytes_max);
            let digits = digits.map_err(|why| {
                let title = format!("cannot read the pattern file `{}`", shorten_text(name));
                let problem = Problem::error(title).at(place, why);
                problem.help(
                    "name a file in the working directory, or write the bytes in hexadecimal as 0x…",
                )
            })?;
            taken += &format!(" {digits} ");
            self.pattern_files.insert(format!("'{name}'"), digits);
        }
        Ok(taken + rest)
    }
}

fn apply_option(
    key: &OptionKey,
    job: &mut JobDefinition,
    written: &WrittenOption<'_>,
) -> Result<(), Problem> {
    match key.treatment {
        OptionTreatment::Applied(setter) => {
            job.places.insert(key.name, written.place.clone());
            setter(job, written)
        }
        OptionTreatment::NoEffect(why) => {
            let (key, place) = (key.name.to_owned(), written.key_place.clone());
            job.ignored.push(Ignored {
                key,
                place,
                reason: why,
            });
            Ok(())
        }
        OptionTreatment::Rejected { why, instead } => {
            Err(Problem::error(format!("{} is not supported", key.name))
                .at(written.key_place, why)
                .help(instead))
        }
    }
}

fn unknown_option(line: &OptionLine) -> Problem {
    let place: &SourceSpan = &line.key_place;
    let title = format!("fio has no option `{}`", shorten_text(&line.key));
    if let Some(engine) = options::find_other_engine(&line.key) {
        let title = format!("{} is an option of the engine {engine}", line.key);
        let problem = Problem::error(title).at(place, "fio has this engine, diskperf has not");
        return problem.help("remove it, and use an engine for files or devices");
    }
    if let Some(engine) = elsewhere::find_by_option(&line.key) {
        let title = format!("{} is an option of the engine {engine}", line.key);
        let problem = Problem::error(title).at(place, "fio drops the job");
        return problem.help(format!("remove it, or write `ioengine={engine}`"));
    }
    let blank = line.key.is_empty();
    match options::find_similar_name(&line.key) {
        _ if blank => Problem::error("the value has no key").at(place, "fio drops the job"),
        Some(near) => {
            let problem = Problem::error(title).at(place, "fio drops the job");
            problem.help(format!("the nearest is `{near}`"))
        }
        None => Problem::error(title).at(place, "fio drops the job"),
    }
}

#[cfg(test)]
mod tests;
