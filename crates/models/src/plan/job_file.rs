//! Conversion of a fio job file to the steps of a plan.

mod areas;
mod duration;
mod elsewhere;
mod ground;
mod iolog;
mod makers;
mod missing;
mod notes;

use crate::error::LaboratoryError;
use crate::files::Files;
use crate::job_file::parse_text;
use crate::plan::format_repetitions;
use crate::rig::ONE_REPETITION;
use areas::FileLayout;
use diskperf_battery::{FileMaker, Program, Suite, SuiteJob, SuiteStep};
use diskperf_catalogue::Component;
use diskperf_fio::job::IoEngine;
use diskperf_fio::plan::{self, FileSize};
use diskperf_fio::{self as fio, Errors, JobFile, Problem};
use diskperf_timeline::units::format_size;
use diskperf_timeline::{Experiment, JobFileText, SizeChoice};
pub use ground::{JobStorage, RESERVE_BYTES};
use makers::{list_existing_files, list_made_files};
use notes::{list_notes, merge_section_notes};
use std::collections::BTreeMap;

/// Converts the jobs of a job file to steps. Returns them with the remarks for readers.
pub fn build_suite(
    text: &JobFileText,
    (ground, files): (&JobStorage, &dyn Files),
    experiment: &Experiment,
) -> Result<(Suite, Vec<String>), LaboratoryError> {
    check_options(experiment)?;
    let mut file = parse_text(text)?;
    check_file_count(&file)?;
    iolog::require_separate_logs(&file, files)?;
    let mut told = list_notes(&file);
    told.extend(ground.fill_sizes(&mut file));
    let mut steps: Vec<SuiteStep> = Vec::new();
    let places = list_positions(&file);
    let layout = FileLayout::new(&file, ground.capacity_bytes);
    told.extend(layout.describe_layout());
    let (existing, starts) = (
        list_existing_files(&file, (ground, &layout)),
        layout.start_bytes_by_path(),
    );
    let made = list_made_files(&file, &places, &existing);
    let mut of_sections = Vec::new();
    for (number, place) in places.into_iter().enumerate() {
        let state = FileStates {
            existing_files: &existing[number],
            made_files: &made[number],
            start_bytes: &starts,
        };
        let (job, notes) = build_job((&file, number), (ground, files), state)?;
        of_sections.extend(
            notes
                .into_iter()
                .map(|note| (job.display_name().to_owned(), note)),
        );
        steps.resize_with(steps.len().max(place + 1), || SuiteStep {
            parallel_jobs: Vec::new(),
        });
        steps[place].parallel_jobs.push(job);
    }
    told.extend(merge_section_notes(&of_sections));
    let suite = Suite {
        name: text.name.clone(),
        default_protocol: text.protocol.unwrap_or(ONE_REPETITION),
        steps,
    };
    Ok((suite, told))
}

/// Adds the warnings about the job file to the errors of a section. A job that is not what it looks
/// like may be the cause.
fn with_warnings(errors: Errors, file: &JobFile) -> LaboratoryError {
    let problems = errors.problems().iter().chain(&file.warnings);
    match Errors::fail_if_any(problems.cloned().collect()) {
        Ok(()) => LaboratoryError::request(errors),
        Err(all) => LaboratoryError::request(all),
    }
}

struct FileStates<'a> {
    existing_files: &'a BTreeMap<String, FileSize>,
    made_files: &'a BTreeMap<String, FileMaker>,
    start_bytes: &'a BTreeMap<String, u64>,
}

/// Converts one section to a job. Returns notes on options that it does not follow.
fn build_job(
    (file, number): (&JobFile, usize),
    (ground, files): (&JobStorage, &dyn Files),
    state: FileStates<'_>,
) -> Result<(SuiteJob, Vec<String>), LaboratoryError> {
    let FileStates {
        existing_files: existing,
        made_files: made,
        start_bytes: starts,
    } = state;
    let section = &file.jobs[number];
    let checked = ground.check_job(section);
    checked.map_err(LaboratoryError::request)?;
    let (fitted, changed) = ground.fit_job(section);
    let mut script = iolog::read_script(section, files)?;
    if let (Some(script), Some(_)) = (&mut script, ground.has_direct_io) {
        script.remove_trims();
    }
    let program = match script {
        Some(script) => Program::from_fio_log(&fitted, script, existing),
        None => Program::from_fio_job(&fitted, existing, made, starts),
    };
    let program = program.map_err(|errors| with_warnings(errors, file))?;
    let shortened = ground.shorten_sizes(section, existing);
    let notes = program.program_notes().into_iter().chain(changed);
    let notes = notes.chain(shortened).collect();
    // What globals say below it is not of this section.
    let globals = file
        .global_options
        .iter()
        .filter(|(key, _)| section.has_option(key));
    let options = globals.chain(&section.options_as_written).cloned();
    let job = SuiteJob {
        job_name: Some(job_name(file, number)),
        size_bytes: program.default_size_bytes(),
        own_protocol: None,
        area_pass_count: None,
        program,
        fio_options: options.collect(),
        distinguishing_parameters: Vec::new(),
        table_row: number as u32,
        size_group: number as u32,
    };
    Ok((job, notes))
}

/// Describes the plan of a job file, step by step. The text is empty if the file is faulty.
pub fn describe_job_file(text: &JobFileText, ground: &JobStorage) -> String {
    let Ok(mut file) = parse_text(text) else {
        return String::new();
    };
    ground.fill_sizes(&mut file);
    let runs = text.protocol.unwrap_or(ONE_REPETITION).repetition_count;
    let places = list_positions(&file);
    let layout = FileLayout::new(&file, ground.capacity_bytes);
    let existing = list_existing_files(&file, (ground, &layout));
    let last = places.iter().max().copied().unwrap_or(0);
    let mut told = String::new();
    for step in 0..=last {
        let jobs = file.jobs.iter().zip(&places).enumerate();
        let here: Vec<_> = jobs.filter(|(_, (_, place))| **place == step).collect();
        let together = if here.len() > 1 {
            ", at the same time"
        } else {
            ""
        };
        told += &format!(
            "  step {}, {}{together}:\n",
            step + 1,
            format_repetitions(runs)
        );
        for (number, (job, _)) in here {
            told += &format!(
                "    [{}]: {}\n",
                job_name(&file, number),
                describe_job(job, &existing[number], ground)
            );
        }
    }
    told
}

/// Describes a job, such as `randread of 4 KiB, 256 I/Os, 1 MiB in all, depth 16; job.0.0 of 1
/// MiB`.
fn describe_job(
    job: &fio::JobDefinition,
    existing: &BTreeMap<String, FileSize>,
    ground: &JobStorage,
) -> String {
    let job = &ground.fit_job(job).0;
    if let Some(log) = &job.iolog.replayed_path {
        return format!("the I/O of the log {log}");
    }
    let files = plan::plan_clone_files(job, existing).unwrap_or_default();
    let clones = u64::from(job.order.clone_count);
    if job.engine.engine == IoEngine::Cpuio {
        let runtime_s = job.durations.runtime_us as f64 / 1e6;
        let load = job.engine.cpu_load.load_percent;
        return format!("{load} % of a processor, at most {runtime_s} s");
    }
    let rw = format!("{:?}", job.pattern.access);
    let (smallest, largest) = (job.block_bytes_min(), job.block_bytes_max());
    let mut told = format!("{} of {}", rw.to_lowercase(), format_size(smallest));
    if largest > smallest {
        told += &format!(" to {}", format_size(largest));
    }
    if let Some(ios) = files
        .first()
        .and_then(|files| plan::predict_ios(job, files))
    {
        let total = ios.total().saturating_mul(clones);
        let bytes = format_size(total.saturating_mul(largest));
        told += &format!(", {total} I/Os, {bytes} in all");
        told += &duration::describe_estimate(job, ios.total());
    }
    if job.durations.runtime_us > 0 {
        let at_most = if job.durations.is_time_based {
            ""
        } else {
            "at most "
        };
        told += &format!(", {at_most}{} s", job.durations.runtime_us as f64 / 1e6);
    }
    if job.durations.ramp_us > 0 {
        told += &format!(" after a ramp of {} s", job.durations.ramp_us as f64 / 1e6);
    }
    told += &format!(", depth {}", job.engine.effective_depth().max(1));
    if clones > 1 {
        told += &format!(", {clones} clones");
    }
    if let Some(awaited) = &job.order.awaited_job {
        told += &format!(", after [{awaited}]");
    }
    let all: BTreeMap<_, _> = files
        .iter()
        .flatten()
        .map(|file| (file.path.as_str(), file.region.file_bytes))
        .collect();
    let shown = all.iter().take(FILES_SHOWN_MAX);
    let shown: Vec<_> = shown
        .map(|(path, bytes)| format!("{path} of {}", format_size(*bytes)))
        .collect();
    told += &format!("; {}", shown.join(", "));
    match all.len().saturating_sub(FILES_SHOWN_MAX) {
        0 => told,
        more => told + &format!(", and {more} more files"),
    }
}

const FILES_SHOWN_MAX: usize = 4;

/// Maximum number of files in all sections of a job file. A plan holds about 250 bytes for each and
/// is made before anything runs.
pub const FILES_MAX: u64 = 1 << 20;

fn check_file_count(file: &JobFile) -> Result<(), LaboratoryError> {
    let counts = file.jobs.iter().map(plan::file_count);
    let total = counts.fold(0, u64::saturating_add);
    let largest = file.jobs.iter().max_by_key(|job| plan::file_count(job));
    let Some(job) = largest.filter(|_| total > FILES_MAX) else {
        return Ok(());
    };
    let keys = ["nrfiles", "numjobs", "filename"];
    let said: Vec<&str> = keys.into_iter().filter(|key| job.has_option(key)).collect();
    let Some(first) = said.first() else {
        return Err(LaboratoryError::Request(format!(
            "the job file has {total} files in {} sections, and a plan holds {FILES_MAX}; split it",
            file.jobs.len()
        )));
    };
    let said: Vec<String> = said.iter().map(|key| format!("`{key}`")).collect();
    let problem = Problem::error(format!(
        "the job file has {total} files, and a plan holds {FILES_MAX}"
    ))
    .at(
        job.option_place(first),
        format!("{} of them are of [{}]", plan::file_count(job), job.name),
    )
    .help(format!("lower {}", said.join(" or ")));
    Err(LaboratoryError::request(Errors::from(problem)))
}

/// Verifies that no option of the run sets something that the job file determines.
pub fn check_options(experiment: &Experiment) -> Result<(), LaboratoryError> {
    if experiment.size_choice != SizeChoice::AutomaticSize {
        return Err(LaboratoryError::request(
            "--size: each job of the file says how much it moves; change `size` there",
        ));
    }
    let mut settings = experiment.settings.iter();
    match settings.find(|setting| !Component::is_changed_by(setting)) {
        None => Ok(()),
        Some(setting) if setting.path == "program.verify" => Err(LaboratoryError::request(
            "--verify: the jobs of a file say what they do; write verify=crc32c into the file, or another of fio's kinds",
        )),
        Some(setting) => Err(LaboratoryError::Request(format!(
            "--set {}: the jobs of a file say what they do; change the option there",
            setting.path
        ))),
    }
}

/// Returns the step of each job. A job with `stonewall` waits for all jobs above it. A job with
/// `wait_for` belongs to the step of the awaited job at the earliest, and waits there for that
/// job's clones alone. A job that starts before the `startdelay` of a `stonewall` above it does not
/// wait for that one: fio skips a job whose `startdelay` is not over before it looks at its
/// `stonewall`.
fn list_positions(file: &JobFile) -> Vec<usize> {
    let mut places: Vec<usize> = Vec::new();
    let mut walls: Vec<StoneWall> = Vec::new();
    let mut base = 0;
    for job in &file.jobs {
        let (earliest_us, latest_us) = job.durations.start_delay_us;
        let own = match job.order.waits_for_earlier_jobs {
            true => {
                let before = base;
                base = places.iter().max().map_or(0, |last| last + 1);
                walls.push(StoneWall {
                    jobs_before: before,
                    earliest_us,
                });
                base
            }
            false => {
                let passed = walls.iter().rev();
                let passed = passed.take_while(|wall| wall.earliest_us > latest_us);
                passed.last().map_or(base, |wall| wall.jobs_before)
            }
        };
        let awaited = job.awaited_job.map_or(0, |number| places[number]);
        places.push(awaited.max(own));
    }
    // A step is never empty: whoever waits does so for one that has a job.
    places
}

struct StoneWall {
    /// Step of jobs that do not wait for the stonewall.
    jobs_before: usize,
    /// Minimum `startdelay` of the stonewall job, in µs.
    earliest_us: u64,
}

fn job_name(file: &JobFile, number: usize) -> String {
    let name = &file.jobs[number].name;
    let above = file.jobs[..number].iter();
    match above.filter(|job| job.name == *name).count() {
        0 => name.clone(),
        above => format!("{name}#{}", above + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::NoFiles;
    use crate::job_file::from_text;
    use diskperf_battery::Medium;
    use diskperf_fio::JobEnvironment;

    fn anywhere() -> JobStorage {
        JobStorage {
            capacity_bytes: None,
            free_bytes: None,
            is_host: false,
            is_file: false,
            is_zoned: false,
            has_direct_io: None,
            has_ftruncate: true,
        }
    }

    fn steps(text: &str) -> Vec<Vec<String>> {
        let text = from_text("x.fio", text, &[], &JobEnvironment::default()).unwrap();
        let (suite, _) =
            build_suite(&text, (&anywhere(), &NoFiles), &Experiment::default()).unwrap();
        let names = |step: &SuiteStep| {
            step.parallel_jobs
                .iter()
                .map(|job| job.display_name().to_owned())
                .collect()
        };
        suite.steps.iter().map(names).collect()
    }

    #[test]
    fn what_waits_is_a_later_step() {
        let text = "[global]\nsize=1m\n[a]\n[b]\n[c]\nstonewall\n[d]\nwait_for=a\n[e]\nnew_group\n[a]\nstonewall\n";
        assert_eq!(steps(text), [&["a", "b"][..], &["c", "d", "e"], &["a#2"]]);
        // It waits within the step.
        assert_eq!(
            steps("[a]\nsize=1m\n[b]\nsize=1m\nwait_for=a\n"),
            [["a", "b"]]
        );
    }

    /// A title is a part of a line of progress.
    #[test]
    fn a_step_of_many_sections_names_the_first() {
        for (sections, expected) in [
            (2, "s0 + s1"),
            (4, "s0 + s1 + s2 + s3"),
            (300, "s0 + s1 + s2 + s3 + 296 more"),
        ] {
            let headers = (0..sections).map(|number| format!("[s{number}]\n"));
            let text = format!("[global]\nsize=64k\n{}", headers.collect::<String>());
            let text = from_text("x.fio", &text, &[], &JobEnvironment::default()).unwrap();
            let (suite, told) =
                build_suite(&text, (&anywhere(), &NoFiles), &Experiment::default()).unwrap();
            assert_eq!(crate::plan::format_step_title(&suite.steps[0]), expected);
            let notes = told.iter().filter(|note| note.contains("psync")).count();
            assert_eq!(notes, if sections > 3 { 1 } else { sections }, "{told:?}");
        }
    }

    #[test]
    fn a_job_passes_a_stonewall_whose_delay_is_longer_than_its_own() {
        let text = |options: &str| {
            format!("[global]\nsize=1m\n[a]\n[b]\nstonewall\nstartdelay=2\n[c]\n{options}\n")
        };
        assert_eq!(steps(&text("")), [&["a", "c"][..], &["b"]]);
        assert_eq!(steps(&text("startdelay=1-3")), [&["a"][..], &["b", "c"]]);
        assert_eq!(steps(&text("stonewall")), [["a"], ["b"], ["c"]]);
    }

    #[test]
    fn what_cannot_be_obeyed_is_refused_at_its_place() {
        for (option, at) in [
            ("allow_file_create=0", ":3:19"),
            ("create_on_open=1", ":3:16"),
        ] {
            let text = format!("[x]\nsize=1m\n{option}\n");
            let text = from_text("x.fio", &text, &[], &JobEnvironment::default()).unwrap();
            let refused = build_suite(&text, (&anywhere(), &NoFiles), &Experiment::default());
            let words = refused.map(|_| ()).unwrap_err().to_string();
            assert!(words.contains(&format!("x.fio{at}")), "{option}: {words}");
        }
    }

    /// Each of these would take gigabytes to list, and tens of seconds.
    #[test]
    fn more_files_than_a_plan_holds_are_refused_by_their_product() {
        for (options, place, help) in [
            (
                "numjobs=4096\nnrfiles=1000000",
                ":4:9",
                "lower `nrfiles` or `numjobs`",
            ),
            (
                "numjobs=2\nnrfiles=524289",
                ":4:9",
                "lower `nrfiles` or `numjobs`",
            ),
        ] {
            let text = format!("[x]\nsize=4g\n{options}\n");
            let text = from_text("x.fio", &text, &[], &JobEnvironment::default()).unwrap();
            let refused = build_suite(&text, (&anywhere(), &NoFiles), &Experiment::default());
            let words = refused.map(|_| ()).unwrap_err().to_string();
            assert!(
                words.contains(&format!("x.fio{place}")),
                "{options}: {words}"
            );
            assert!(words.contains(help), "{options}: {words}");
        }
        let sections: String = (0..3)
            .map(|n| format!("[x{n}]\nnrfiles=400000\n"))
            .collect();
        let text = from_text(
            "x.fio",
            &format!("[global]\nsize=4g\n{sections}"),
            &[],
            &JobEnvironment::default(),
        )
        .unwrap();
        let refused = build_suite(&text, (&anywhere(), &NoFiles), &Experiment::default());
        let words = refused.map(|_| ()).unwrap_err().to_string();
        assert!(words.contains("1200000 files"), "{words}");
    }

    /// Bytes that the sections of a job file move where 1 MiB is free.
    #[test]
    fn a_job_that_fills_a_directory_has_what_is_free() {
        let mebibyte = 1 << 20;
        for (options, bytes) in [
            ("fill_device=1", mebibyte),
            ("fill_fs=1\nsize=1g", mebibyte),
            ("fill_device=1\nsize=64k", 64 << 10),
            ("fill_device=1\nnumjobs=2", mebibyte / 2),
            ("fill_device=1\nbs=3k", mebibyte - mebibyte % 3072),
        ] {
            let text = format!("[x]\nrw=write\n{options}\n");
            let text = from_text("x.fio", &text, &[], &JobEnvironment::default()).unwrap();
            let ground = JobStorage {
                free_bytes: Some(mebibyte),
                ..anywhere()
            };
            let (suite, _) =
                build_suite(&text, (&ground, &NoFiles), &Experiment::default()).unwrap();
            let sizes: Vec<_> = suite.iter_jobs().map(|job| job.size_bytes).collect();
            assert_eq!(sizes, [Some(bytes)], "{options}");
        }
    }

    #[test]
    fn a_result_keeps_what_the_sections_above_it_say() {
        let text = "[global]\nbs=8k\nsize=1m\n[a]\nrw=randread\n[global]\niodepth=4\n[b]\nbs=4k\n";
        let text = from_text("x.fio", text, &[], &JobEnvironment::default()).unwrap();
        let (suite, _) =
            build_suite(&text, (&anywhere(), &NoFiles), &Experiment::default()).unwrap();
        let said: Vec<_> = suite.iter_jobs().map(SuiteJob::parameter_values).collect();
        let pairs = |values: &BTreeMap<String, String>| {
            let pairs = values.iter().map(|(key, value)| format!("{key}={value}"));
            pairs.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(pairs(&said[0]), "bs=8k rw=randread size=1m");
        assert_eq!(pairs(&said[1]), "bs=4k iodepth=4 size=1m");
    }

    #[test]
    fn a_model_has_the_way_to_the_drive_that_it_has() {
        let text = from_text(
            "x.fio",
            "[x]\nsize=1m\ndirect=1\n",
            &[],
            &JobEnvironment::default(),
        )
        .unwrap();
        for (medium, told) in [(Medium::Directory, true), (Medium::Device, false)] {
            let ground = JobStorage {
                capacity_bytes: None,
                is_host: false,
                is_file: false,
                is_zoned: false,
                free_bytes: None,
                has_direct_io: Some(medium != Medium::Directory),
                has_ftruncate: true,
            };
            let (_, notes) =
                build_suite(&text, (&ground, &NoFiles), &Experiment::default()).unwrap();
            let said = notes.iter().any(|note| note.contains("direct=0"));
            assert_eq!(said, told, "{medium:?}: {notes:?}");
        }
    }
}
