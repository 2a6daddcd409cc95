//! Plan of a run on real storage. All faults that can be found without changing anything are found
//! here.

use super::{area, direct, ground, group_limits};
use crate::clean::list_settings_left;
use crate::files::HostFiles;
use crate::target::StorageTarget;
use diskperf_analysis::statistics::separate::VERDICT_REPETITION_COUNT_MIN;
use diskperf_battery::suite::TargetNeeds;
use diskperf_battery::{Medium, Suite, SuiteJob};
use diskperf_models::LaboratoryError;
use diskperf_models::plan::bare_names::BareNames;
use diskperf_models::plan::workload::{
    build_suite, check_program_settings, describe_discarded, experiment_of_run, with_stated_options,
};
use diskperf_models::plan::{NO_EMPTY_DEVICE_MESSAGE, job_file, remove_steps, total_file_bytes};
use diskperf_system::host::fresh::FreshSpec;
use diskperf_system::host::{ReadAhead, is_root};
use diskperf_timeline::{CacheMode, Experiment, SizeChoice, SummaryStatistic, Workload};

/// Plan of one run on real storage.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// Experiment that the plan was made from, so that the plan can be made again.
    pub experiment: Experiment,
    /// Programs of the run, without the steps that cannot run.
    pub suite: Suite,
    /// Drives that run each program together.
    pub targets: Vec<StorageTarget>,
    /// Directory on another file system, the destination of copies.
    pub other_target: Option<StorageTarget>,
    /// Fresh file systems to make, one after the other; empty to use the target as it is.
    pub fresh_filesystems: Vec<FreshSpec>,
    /// Advice to the kernel about the access pattern of files, by posix_fadvise(2).
    pub read_ahead: ReadAhead,
    /// Whether events of the block layer are recorded, where that is possible.
    pub records_block_events: bool,
    /// Whether the requests to storage are reported to the observer, for a recording.
    pub records_requests: bool,
    /// Remarks for readers: omitted steps and the reasons.
    pub notes: Vec<String>,
    /// Space that the jobs of a job file need beyond what the targets have, with the remedy. A dry
    /// run shows such a plan; a run refuses it.
    pub space_shortage: Option<String>,
    /// Whether repetitions that other activity disturbed are run again.
    pub repeats_disturbed: bool,
}

/// Makes the plans of these targets: one for each, or one for all together.
pub(super) fn plan(
    experiment: &Experiment,
    paths: &[std::path::PathBuf],
) -> Result<Vec<HostPlan>, LaboratoryError> {
    check_rights(experiment)?;
    check_destroyed(experiment)?;
    if experiment.drive_count.is_some() {
        return Err(LaboratoryError::request(
            "--drives applies to modelled systems, which list their drives: on real storage, give each with --on, and --together",
        ));
    }
    let targets = paths
        .iter()
        .map(|path| StorageTarget::inspect(path, experiment))
        .collect::<Result<Vec<_>, _>>()?;
    if experiment.runs_targets_together {
        check_together(&targets)?;
        return Ok(vec![plan_run(experiment, targets)?]);
    }
    targets
        .into_iter()
        .map(|target| plan_run(experiment, vec![target]))
        .collect()
}

fn check_rights(experiment: &Experiment) -> Result<(), LaboratoryError> {
    if is_root() {
        return Ok(());
    }
    if experiment.fresh_filesystem.is_some() {
        return Err(LaboratoryError::request(
            "--fresh needs root, since it makes and mounts a file system: use sudo, or omit `--fresh`: `diskperf run` then measures the existing file system of the directory",
        ));
    }
    if experiment.drops_all_caches {
        return Err(LaboratoryError::request(
            "--drop-caches needs root, since it drops the caches of the whole machine: use sudo, or omit it: diskperf always drops the pages of its own files",
        ));
    }
    Ok(())
}

fn check_together(targets: &[StorageTarget]) -> Result<(), LaboratoryError> {
    if targets.len() < 2 {
        return Err(LaboratoryError::request(
            "--together needs at least two targets: --on DIR1 --on DIR2 --together",
        ));
    }
    if targets
        .iter()
        .any(|target| target.medium != targets[0].medium)
    {
        return Err(LaboratoryError::request(
            "--together runs one program on all targets: give only directories, or only devices",
        ));
    }
    for (number, target) in targets.iter().enumerate() {
        if targets[..number]
            .iter()
            .any(|earlier| earlier.resolved_path == target.resolved_path)
        {
            return Err(LaboratoryError::Request(format!(
                "--together runs on several drives at once, and {} is given twice",
                target.name()
            )));
        }
    }
    Ok(())
}

/// Verifies that every device that may be overwritten is a target. A slip here costs data.
fn check_destroyed(experiment: &Experiment) -> Result<(), LaboratoryError> {
    for device in &experiment.destroy_data_on {
        let number = StorageTarget::device_number(device);
        let is_target = |target: &std::path::PathBuf| {
            number.is_some() && StorageTarget::device_number(target) == number
        };
        if !experiment.targets.iter().any(is_target) {
            return Err(LaboratoryError::Request(format!(
                "--destroy-data-on {} names no target of this run; it must be the same device as one --on",
                device.display()
            )));
        }
    }
    Ok(())
}

fn plan_run(
    experiment: &Experiment,
    targets: Vec<StorageTarget>,
) -> Result<HostPlan, LaboratoryError> {
    let medium = targets[0].medium;
    let (mut suite, told) = match &experiment.workload {
        Workload::JobFile(text) => {
            let ground = ground::job_file_ground(&targets);
            job_file::build_suite(text, (&ground, &HostFiles), experiment)?
        }
        Workload::Replay(of) => ground::replay_ground(of, &targets, experiment.cache_mode)?,
        workload => (build_suite(workload, medium, &HostFiles)?, Vec::new()),
    };
    let settings = BareNames::from_programs(&suite).complete_settings(&experiment.settings)?;
    let experiment = &Experiment {
        settings,
        ..experiment.clone()
    };
    check_program_settings(&experiment.settings)?;
    let until_steady = experiment.steady_rule.is_some();
    let repetitions = experiment.repetition_count.filter(|_| !until_steady);
    let discarded = describe_discarded(&suite, repetitions);
    let mut fitted = area::fit_area(&mut suite, (&targets, experiment));
    fitted.extend(diskperf_models::plan::area::fit_rounds(
        &mut suite, experiment,
    ));
    set_verdict_repetitions(&mut suite, experiment);
    let mut suite = with_stated_options(suite, experiment)?;
    fitted.extend(direct::choose_direct(&mut suite, &targets, experiment));
    // One statistic on real storage: what a table prints is what a comparison is of.
    suite.default_protocol.statistic = SummaryStatistic::Median;
    let typed = targets
        .iter()
        .map(|target| target.typed_path.clone())
        .collect();
    let mut notes = list_settings_left(targets.iter().map(|target| &target.location));
    notes.extend(describe_shared_filesystem(experiment));
    notes.extend(targets.iter().flat_map(group_limits::describe_limits));
    notes.extend(discarded);
    notes.extend(fitted);
    notes.extend(told);
    let mut own = experiment_of_run(experiment, typed, &suite);
    own.cache_mode = diskperf_models::plan::direct::cache_mode_of_run(&suite, own.cache_mode);
    let mut plan = HostPlan {
        fresh_filesystems: plan_fresh_filesystems(experiment, &suite, medium)?,
        other_target: experiment
            .second_target
            .as_deref()
            .map(|path| find_other_target(path, experiment))
            .transpose()?,
        experiment: own,
        suite,
        targets,
        read_ahead: ReadAhead::default(),
        records_block_events: false,
        records_requests: false,
        repeats_disturbed: true,
        space_shortage: None,
        notes,
    };
    plan.check_precondition()?;
    plan.remove_impossible_jobs()?;
    plan.check_sizes()?;
    plan.note_space_shortage()?;
    Ok(plan)
}

/// Raises the repetitions of a program that runs alone to the number that a comparison of two runs
/// needs, even if the repetitions agree. The programs of a suite would take minutes.
fn set_verdict_repetitions(suite: &mut Suite, experiment: &Experiment) {
    let is_kept = matches!(experiment.workload, Workload::Steps { .. });
    let protocol = &mut suite.default_protocol;
    if !is_kept && protocol.stop_below_share.take().is_some() {
        protocol.repetition_count = VERDICT_REPETITION_COUNT_MIN as u32 + protocol.discarded_count;
    }
}

/// Returns the fresh file systems of an experiment: one with the requested block size, or for the
/// suite of 1983 the two of its paper.
fn plan_fresh_filesystems(
    experiment: &Experiment,
    suite: &Suite,
    medium: Medium,
) -> Result<Vec<FreshSpec>, LaboratoryError> {
    let Some(text) = &experiment.fresh_filesystem else {
        return Ok(Vec::new());
    };
    let spec: FreshSpec = text.parse().map_err(LaboratoryError::request)?;
    if medium != Medium::Directory {
        return Err(LaboratoryError::request(
            "--fresh makes its file system on an image file inside a directory: give a directory as target",
        ));
    }
    // Whether the image can be at all; how large it has to be is not asked here.
    spec.image_bytes(0).map_err(LaboratoryError::request)?;
    if text.contains("block_bytes") || suite.name != "ffs83" {
        return Ok(vec![spec]);
    }
    // The largest blocks first, then the smallest.
    let sizes = spec.filesystem_kind.block_sizes();
    let (largest, smallest) = (sizes.iter().max().copied(), sizes.iter().min().copied());
    let mut wanted: Vec<u64> = largest.into_iter().chain(smallest).collect();
    wanted.dedup();
    Ok(wanted
        .into_iter()
        .map(|block_bytes| FreshSpec {
            block_bytes,
            ..spec.clone()
        })
        .collect())
}

fn find_other_target(
    path: &std::path::Path,
    experiment: &Experiment,
) -> Result<StorageTarget, LaboratoryError> {
    let target = StorageTarget::inspect(path, experiment)?;
    if target.medium != Medium::Directory {
        return Err(LaboratoryError::Request(format!(
            "--other {} is not a directory; copies to another file system need one",
            path.display()
        )));
    }
    Ok(target)
}

/// Returns a note if "another file system" is in fact the same one.
fn describe_shared_filesystem(experiment: &Experiment) -> Vec<String> {
    let other = experiment.second_target.as_deref().into_iter();
    let same = other.flat_map(|other| {
        let targets = experiment.targets.iter();
        targets
            .filter(move |target| StorageTarget::are_on_same_filesystem(target, other))
            .map(move |target| {
                format!(
                    "--other {} is on the same file system as {}: its copies do not leave it",
                    other.display(),
                    target.display()
                )
            })
    });
    same.collect()
}

impl HostPlan {
    /// Returns the reason why a job cannot run on this target; `None` if it can.
    fn find_obstacle(&self, job: &SuiteJob) -> Option<String> {
        let target = &self.targets[0];
        let name = target.name();
        match job.target_needs(target.medium) {
            TargetNeeds::MediumOfOtherKind if job.program.reads_block_null() => {
                Some(NO_EMPTY_DEVICE_MESSAGE.to_owned())
            }
            TargetNeeds::MediumOfOtherKind => Some(match target.medium {
                Medium::Device => format!("it reads a file, and {name} is a device"),
                Medium::Directory | Medium::File => {
                    format!("it reads a block device, and {name} is none: give one with --on")
                }
            }),
            TargetNeeds::SecondFilesystem if self.other_target.is_none() => Some(
                "it copies to another file system: name a directory there with --other DIR"
                    .to_owned(),
            ),
            TargetNeeds::WritableTarget => {
                let target = self.targets.iter().find(|target| !target.is_writable());
                target
                    .map(StorageTarget::describe_write_refusal)
                    .or_else(|| self.find_direct_obstacle(job))
            }
            TargetNeeds::SecondFilesystem | TargetNeeds::NoSpecialTarget => {
                self.find_direct_obstacle(job)
            }
        }
    }

    /// Returns the reason why a job's O_DIRECT calls cannot work here; `None` if they can or it
    /// makes none. A fresh file system is tested when its files are opened.
    fn find_direct_obstacle(&self, job: &SuiteJob) -> Option<String> {
        if job.program.cache_mode_for(self.experiment.cache_mode) != CacheMode::Direct
            || !job.program.accesses_target()
        {
            return None;
        }
        let size_bytes = match self.experiment.size_choice {
            SizeChoice::SizeBytes(size_bytes) => size_bytes,
            SizeChoice::AutomaticSize => self.size_bytes_min(job),
        };
        let unit_bytes = job.program.unit_bytes(size_bytes);
        let targets = self
            .targets
            .iter()
            .filter(|_| self.fresh_filesystems.is_empty());
        let other = self
            .other_target
            .iter()
            .filter(|_| job.program.needs_second_target());
        targets
            .chain(other)
            .find_map(|target| target.find_direct_obstacle(unit_bytes))
    }

    fn check_precondition(&self) -> Result<(), LaboratoryError> {
        let Some(job) = self
            .suite
            .iter_jobs()
            .find(|job| job.area_pass_count.is_some())
        else {
            return Ok(());
        };
        let mut targets = self.targets.iter();
        let kept = targets.find(|target| {
            job.target_needs(target.medium) == TargetNeeds::WritableTarget && !target.is_writable()
        });
        match kept {
            None => Ok(()),
            Some(target) => Err(LaboratoryError::Request(format!(
                "{} writes all of its target several times before it measures: {}; or name a directory, in which it makes a file of --size",
                self.suite.name,
                target.describe_write_refusal()
            ))),
        }
    }

    /// Removes the steps of a suite that cannot run, with a note. A program that the user named
    /// must run.
    fn remove_impossible_jobs(&mut self) -> Result<(), LaboratoryError> {
        let (name, steps) = (self.suite.name.clone(), self.suite.steps.clone());
        let obstacle = |job: &SuiteJob| self.find_obstacle(job);
        let (kept, left_out) = remove_steps(&name, &self.target_name(), steps, obstacle)?;
        self.suite.steps = kept;
        self.notes.extend(left_out);
        Ok(())
    }

    fn describe_space_remedy(&self) -> String {
        const SETTINGS: [&str; 3] = ["call_bytes", "area_bytes", "readers"];
        if matches!(self.experiment.workload, Workload::JobFile(_)) {
            return "change `size` in the job file".to_owned();
        }
        let known: Vec<_> = self
            .suite
            .iter_jobs()
            .map(|job| job.program.parameter_values())
            .collect();
        let has = |name: &&str| known.iter().any(|values| values.contains_key(*name));
        let settings = SETTINGS
            .into_iter()
            .filter(has)
            .map(|name| format!("program.{name}"));
        let all: Vec<String> = std::iter::once("--size".to_owned())
            .chain(settings)
            .collect();
        format!("give a smaller {}", all.join(" or "))
    }

    fn check_sizes(&self) -> Result<(), LaboratoryError> {
        for job in self.suite.iter_jobs() {
            match self.experiment.size_choice {
                SizeChoice::SizeBytes(size_bytes) => {
                    job.program
                        .check_parameters(job.own_size_bytes().unwrap_or(size_bytes))?;
                }
                SizeChoice::AutomaticSize => {
                    job.program.check_parameters(self.size_bytes_min(job))?
                }
            }
        }
        Ok(())
    }

    /// Checks the space for all files. For a job file that was written for a larger machine, the
    /// shortage is noted: a dry run shows the plan, and the run refuses it.
    fn note_space_shortage(&mut self) -> Result<(), LaboratoryError> {
        let is_job_file = matches!(self.experiment.workload, Workload::JobFile(_));
        match self.check_free_space() {
            Err(LaboratoryError::Request(shortage)) if is_job_file && self.is_size_given() => {
                self.space_shortage = Some(shortage);
                Ok(())
            }
            outcome => outcome,
        }
    }

    fn check_free_space(&self) -> Result<(), LaboratoryError> {
        let remedy = &self.describe_space_remedy();
        for target in &self.targets {
            match self.experiment.size_choice {
                SizeChoice::SizeBytes(size_bytes) => {
                    target.check_space(self.total_file_bytes(size_bytes), remedy)?;
                }
                SizeChoice::AutomaticSize if self.is_size_given() => {
                    target.check_space(self.total_file_bytes(0), remedy)?;
                }
                SizeChoice::AutomaticSize => {
                    let jobs = self.suite.iter_jobs();
                    let smallest = jobs
                        .map(|job| job.program.file_bytes(self.size_bytes_min(job)))
                        .max();
                    target.check_pilot_space(smallest.unwrap_or(0), remedy)?;
                }
            }
        }
        Ok(())
    }

    /// Reports whether all jobs set the amount that they transfer.
    pub(crate) fn is_size_given(&self) -> bool {
        self.suite.iter_jobs().all(|job| job.size_bytes.is_some())
    }

    /// Returns the bytes that all files of the suite take on each target. Programs that name the
    /// same file share it; files of other programs lie beside it until the end.
    pub(crate) fn total_file_bytes(&self, size_bytes: u64) -> u64 {
        let medium = self.targets[0].medium;
        total_file_bytes(self.suite.iter_jobs(), medium, |job| {
            let size_bytes = job.size_bytes.unwrap_or(size_bytes);
            let program = &job.program;
            (program.file_name(), program.file_bytes(size_bytes))
        })
    }

    /// Returns the smallest amount that a job transfers if a pilot finds its size: 8 MB in whole
    /// calls, or less on a smaller file or device.
    pub(crate) fn size_bytes_min(&self, job: &SuiteJob) -> u64 {
        if let Some(size_bytes) = job.own_size_bytes() {
            return size_bytes;
        }
        let call_bytes = job.program.call_bytes();
        let there = self
            .targets
            .iter()
            .filter(|target| target.medium != Medium::Directory);
        let room_bytes = there
            .map(StorageTarget::free_bytes)
            .min()
            .unwrap_or(u64::MAX);
        let (mut wanted, _) = job.program.default_size_bytes_range();
        while wanted > call_bytes && job.program.file_bytes(wanted) > room_bytes {
            wanted /= 2;
        }
        wanted.max(call_bytes) / call_bytes * call_bytes
    }

    /// Names of all targets, as the user gave them.
    pub fn target_name(&self) -> String {
        let names: Vec<_> = self.targets.iter().map(StorageTarget::name).collect();
        names.join(" + ")
    }
}
