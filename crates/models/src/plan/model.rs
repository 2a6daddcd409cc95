//! Plan of a run on a modelled computer.

mod budget;
mod describe;
mod notes;
mod obstacle;
mod size;

use super::bare_names::{BareNames, is_bare_name};
use super::job_file::JobStorage;
use super::workload::{build_suite, experiment_of_run, suite_by_name, with_stated_options};
use super::{area, direct, format_step_title, job_file, replay};
use crate::error::LaboratoryError;
use crate::files::Files;
use crate::model::computer::ModelComputer;
use crate::model::load_catalogue;
use diskperf_battery::{Medium, Program, Suite, SuiteJob, TargetNeeds};
use diskperf_catalogue::{Catalogue, Component, Setting};
use diskperf_machine::RunBudget;
use diskperf_timeline::{CacheMode, Experiment, SizeChoice, Workload};
use std::collections::BTreeSet;
use std::path::Path;

const FILE_SUITE: &str = "ffs83";

const RAW_SUITE: &str = "interleave91";

const DEVICE_SUITE: &str = "today26";

const FILESYSTEMS: [&str; 2] = ["8k", "4k"];

/// Plan of one run on a modelled computer.
#[derive(Clone, Debug)]
pub struct ModelPlan {
    /// Experiment that the plan was made from, so that the plan can be made again. Its settings are
    /// those of the system.
    pub experiment: Experiment,
    /// Programs of the run, without the steps that cannot run.
    pub suite: Suite,
    /// Name of the target, as the user gave it.
    pub target: String,
    /// Catalogue, with the user's folder as an overlay.
    pub catalogue: Catalogue,
    /// System with each of its file systems; they run one after the other.
    pub computers: Vec<ModelComputer>,
    /// Number of drives that run each program together.
    pub drive_count: usize,
    /// Whether one more drive has a file system, as a copy destination.
    pub has_other_volume: bool,
    /// Bytes that each program of the plan transfers.
    pub size_bytes: u64,
    /// Number of times that programs' own default sizes are halved to fit; `None` if the user sets
    /// a size.
    pub size_halvings: Option<u32>,
    /// Whether the requested size is rounded to whole calls.
    pub rounds_to_calls: bool,
    /// Budget of all machines of the run together.
    pub budget: RunBudget,
    /// Whether the requests to storage are reported to the observer, for a recording.
    pub records_requests: bool,
    /// Remarks for readers: omitted steps and the reasons.
    pub notes: Vec<String>,
}

/// Verifies that no option is set that a modelled system does not support. `alone` means that the
/// experiment has no other target.
pub fn check_options(experiment: &Experiment, alone: bool) -> Result<(), LaboratoryError> {
    if experiment.runs_targets_together {
        return Err(LaboratoryError::request(
            "--together applies to real storage; the drives of a modelled system run a program at once with --drives 2",
        ));
    }
    let useless = [
        (
            experiment.second_target.is_some(),
            "--other",
            "a modelled system copies to the next of its own drives",
        ),
        (
            experiment.fresh_filesystem.is_some(),
            "--fresh",
            "a modelled system's file systems always are",
        ),
        (
            !experiment.destroy_data_on.is_empty(),
            "--destroy-data-on",
            "a modelled system has no such device",
        ),
    ];
    match useless.into_iter().find(|(given, ..)| *given && alone) {
        Some((_, option, why)) => Err(LaboratoryError::Request(format!(
            "{option} applies to real storage: {why}; omit it"
        ))),
        None => Ok(()),
    }
}

/// Makes the plan of a run on one target.
pub fn plan_model(
    experiment: &Experiment,
    target: &Path,
    files: &dyn Files,
) -> Result<ModelPlan, LaboratoryError> {
    let name = target.to_string_lossy().into_owned();
    let catalogue = load_catalogue(experiment.catalogue_path.as_deref())?;
    check_system_name(&catalogue, &name, target)?;
    plan_on_catalogue(
        (experiment, files),
        (&catalogue, name),
        PlanningManner::WholeRun,
    )
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlanningManner {
    /// The plan is for a run.
    WholeRun,
    /// The plan is for one point of a search. It uses only the system's own file system and sizes
    /// in whole calls, and bare drives without any cache.
    SinglePoint,
}

/// Makes the plan of one point of a search.
pub fn plan_point(
    (experiment, files): (&Experiment, &dyn Files),
    catalogue: &Catalogue,
    name: &str,
) -> Result<ModelPlan, LaboratoryError> {
    let plan = plan_on_catalogue(
        (experiment, files),
        (catalogue, name.to_owned()),
        PlanningManner::SinglePoint,
    )?;
    match plan
        .suite
        .steps
        .iter()
        .find(|step| step.parallel_jobs.len() > 1)
    {
        None => Ok(plan),
        Some(step) => Err(LaboratoryError::Request(format!(
            "{} run at the same time, and a search needs programs that run one after the other",
            format_step_title(step)
        ))),
    }
}

fn plan_on_catalogue(
    (experiment, files): (&Experiment, &dyn Files),
    (catalogue, name): (&Catalogue, String),
    manner: PlanningManner,
) -> Result<ModelPlan, LaboratoryError> {
    let names = list_bare_names((experiment, files), (catalogue, &name))?;
    let whole = names.map(|names| names.complete_settings(&experiment.settings));
    let renamed = whole.transpose()?.map(|settings| Experiment {
        settings,
        ..experiment.clone()
    });
    let experiment = renamed.as_ref().unwrap_or(experiment);
    let workload = &experiment.workload;
    let settings = system_settings(experiment);
    let plain = match workload {
        Workload::DefaultSuite => default_suite((catalogue, &name), &settings)?,
        _ => build_suite(workload, Medium::Directory, files)?,
    };
    if matches!(workload, Workload::JobFile(_)) {
        job_file::check_options(experiment)?;
    }
    let asked = with_stated_options(plain.clone(), experiment)?;
    let computers = match manner {
        PlanningManner::WholeRun => build_computers(catalogue, &name, &asked, &settings)?,
        PlanningManner::SinglePoint => {
            let programs = asked.iter_programs();
            vec![ModelComputer::read_for_medium(
                catalogue, &name, &settings, programs,
            )?]
        }
    };
    let medium = computers[0].medium();
    let (suite, notes) = choose_suite(plain, &computers[0], (experiment, files))?;
    let usual_bytes = size::default_file_bytes(&computers[0]);
    let drives = choose_drive_count(&computers[0], experiment.drive_count)?;
    let mut own = experiment_of_run(experiment, vec![name.clone().into()], &suite);
    if medium == Medium::Device
        && (manner == PlanningManner::SinglePoint
            || bypasses_cache_only(&suite, &computers[0], own.cache_mode))
    {
        own.cache_mode = CacheMode::Direct;
    }
    own.cache_mode = direct::cache_mode_of_run(&suite, own.cache_mode);
    let plan = ModelPlan {
        budget: budget::from_experiment(experiment, &suite),
        experiment: own,
        has_other_volume: drives < computers[0].configured_drive_count(),
        suite,
        target: name,
        catalogue: catalogue.clone(),
        computers,
        drive_count: drives,
        size_bytes: match experiment.size_choice {
            SizeChoice::AutomaticSize => usual_bytes,
            SizeChoice::SizeBytes(bytes) => bytes,
        },
        size_halvings: (experiment.size_choice == SizeChoice::AutomaticSize).then_some(0),
        rounds_to_calls: manner == PlanningManner::SinglePoint,
        records_requests: false,
        notes,
    };
    plan.fit_sizes(experiment.size_choice)
}

fn system_settings(experiment: &Experiment) -> Vec<Setting> {
    let all = experiment.settings.iter();
    let of_system = all.filter(|setting| setting.program_parameter_name().is_none());
    of_system.cloned().collect()
}

/// Returns the parameters of a target if a bare key has to be looked up among them. It is also
/// `None` if the target cannot be read, an error that its plan reports.
fn list_bare_names(
    (experiment, files): (&Experiment, &dyn Files),
    (catalogue, name): (&Catalogue, &str),
) -> Result<Option<BareNames>, LaboratoryError> {
    if !system_settings(experiment)
        .iter()
        .any(|one| is_bare_name(&one.path))
    {
        return Ok(None);
    }
    names_of_computer((experiment, files), (catalogue, name))
}

/// Returns all parameters of an experiment's programs and of its target, which settings can name;
/// `None` if the target cannot be read.
pub(crate) fn names_of_computer(
    (experiment, files): (&Experiment, &dyn Files),
    (catalogue, name): (&Catalogue, &str),
) -> Result<Option<BareNames>, LaboratoryError> {
    let mut settings = system_settings(experiment);
    settings.retain(|one| !is_bare_name(&one.path));
    let Ok(computer) = ModelComputer::read_catalogue(catalogue, name, &settings) else {
        return Ok(None);
    };
    let suite = match suite_for_computer(&computer, &experiment.workload)? {
        Some(suite) => suite,
        None => build_suite(&experiment.workload, Medium::Directory, files)?,
    };
    Ok(Some(BareNames::from_computer(&suite, &computer)))
}

/// Reports whether programs that would use a buffer cache have to bypass it, because a bare modern
/// drive has none. A request for a warm cache is rejected instead.
fn bypasses_cache_only(suite: &Suite, computer: &ModelComputer, asked: CacheMode) -> bool {
    let goes_through = |job: &SuiteJob| {
        let program = &job.program;
        program.accesses_target()
            && job.target_needs(Medium::Device) != TargetNeeds::MediumOfOtherKind
            && program.cache_mode_for(asked) == CacheMode::Cold
    };
    is_current_hardware(computer) && suite.iter_jobs().any(goes_through)
}

fn is_current_hardware(computer: &ModelComputer) -> bool {
    let drive = &computer.specification.drives[0];
    drive.disk_specification().is_some()
        || drive.flash_specification().is_some()
        || drive.is_cloud_volume()
}

fn choose_suite(
    plain: Suite,
    computer: &ModelComputer,
    (experiment, files): (&Experiment, &dyn Files),
) -> Result<(Suite, Vec<String>), LaboratoryError> {
    let workload = &experiment.workload;
    let (mut suite, mut notes) = match (suite_for_computer(computer, workload)?, workload) {
        (Some(other), _) => (other, Vec::new()),
        (None, Workload::JobFile(text)) => {
            let ground = JobStorage::for_computer(computer);
            job_file::build_suite(text, (&ground, files), experiment)?
        }
        (None, Workload::Replay(of)) => {
            let ground = replay::ReplayStorage::for_computer(computer);
            replay::build_suite(of, (&ground, files), experiment.cache_mode)?
        }
        (None, _) => (plain, Vec::new()),
    };
    notes.extend(area::fit_to_computer(&mut suite, computer, experiment));
    let mut suite = with_stated_options(suite, experiment)?;
    direct::choose_direct(&mut suite, computer, experiment);
    notes.extend(area::extend_writes_past_buffer(
        &mut suite, computer, experiment,
    ));
    Ok((suite, notes))
}

fn default_suite(
    (catalogue, name): (&Catalogue, &str),
    settings: &[Setting],
) -> Result<Suite, LaboratoryError> {
    // What Piziali and Zam 1991 read their drives with.
    if ModelComputer::read_v7_alone(catalogue, name, settings).is_some() {
        return suite_by_name(RAW_SUITE, Medium::Directory);
    }
    let computer = ModelComputer::read_catalogue(catalogue, name, settings).ok();
    let own = computer.map(|computer| suite_for_computer(&computer, &Workload::DefaultSuite));
    let own = own.transpose()?.flatten();
    own.map_or_else(|| suite_by_name(FILE_SUITE, Medium::Directory), Ok)
}

/// Returns the suite that replaces the usual one on this computer; `None` if there is none. Minix
/// has its own programs, and programs on bare drives cannot use the buffer cache.
fn suite_for_computer(
    computer: &ModelComputer,
    workload: &Workload,
) -> Result<Option<Suite>, LaboratoryError> {
    let medium = computer.medium();
    let what = match workload {
        Workload::DefaultSuite => None,
        Workload::NamedSuite(name) => Some(name.as_str()),
        Workload::Steps { .. } | Workload::JobFile(_) | Workload::Replay(_) => return Ok(None),
    };
    if computer.is_minix() {
        let name = what.unwrap_or("seqread89");
        let both = Suite::from_name_on_any_medium(name);
        return both
            .map_or_else(|| suite_by_name(name, medium), Ok)
            .map(Some);
    }
    match medium {
        Medium::Device => {
            let usual = match is_current_hardware(computer) {
                true => DEVICE_SUITE,
                false => RAW_SUITE,
            };
            suite_by_name(what.unwrap_or(usual), medium).map(Some)
        }
        Medium::Directory | Medium::File => Ok(None),
    }
}

/// Verifies that a name is one of the catalogue's systems. The error considers that the user may
/// have meant a file or a directory.
pub fn check_system_name(
    catalogue: &Catalogue,
    name: &str,
    target: &Path,
) -> Result<(), LaboratoryError> {
    let file = name.ends_with(".toml");
    if file || catalogue.system_names().iter().any(|known| known == name) {
        return Ok(());
    }
    if target.exists() {
        return Err(LaboratoryError::Request(format!(
            "`{name}` is a path, and a modelled system is expected here: `diskperf list systems` names all"
        )));
    }
    let part = Component::ALL.into_iter().find(|kind| {
        catalogue
            .component_names(*kind)
            .iter()
            .any(|known| known == name)
    });
    if let Some(kind) = part {
        let kind = kind.name();
        return Err(LaboratoryError::Request(format!(
            "target `{name}`: the catalogue has a {kind} of this name, and a target is a whole system: `--on SYSTEM --set {kind}={name}` puts it into one; `diskperf list systems` names all"
        )));
    }
    match catalogue.resolve(name, &[]) {
        Ok(_) => Ok(()),
        Err(errors) => Err(LaboratoryError::Request(format!(
            "{errors}\n`diskperf list systems` names all, and those of your own with --catalogue DIR; no file or directory is called `{name}` either"
        ))),
    }
}

/// Reads the system with its file systems. The suite of the paper uses its two file systems, larger
/// blocks first, unless a setting chooses one.
fn build_computers(
    catalogue: &Catalogue,
    name: &str,
    suite: &Suite,
    settings: &[Setting],
) -> Result<Vec<ModelComputer>, LaboratoryError> {
    let said = settings.iter().any(|setting| {
        [
            "filesystem",
            "filesystem.block_bytes",
            "filesystem.fragment_bytes",
        ]
        .contains(&setting.path.as_str())
    });
    let own = ModelComputer::read_for_medium(catalogue, name, settings, suite.iter_programs())?;
    let ffs = own
        .filesystem_kind_and_block()
        .is_some_and(|(kind, _)| kind == "ffs");
    if suite.name != "ffs83" || said || !ffs {
        return Ok(vec![own]);
    }
    let with = |filesystem: &&str| {
        let filesystem = Setting {
            path: "filesystem".to_owned(),
            value_text: (**filesystem).to_owned(),
        };
        let all: Vec<Setting> = [filesystem].into_iter().chain(settings.to_vec()).collect();
        ModelComputer::read_catalogue(catalogue, name, &all)
    };
    FILESYSTEMS.iter().map(with).collect()
}

fn choose_drive_count(
    computer: &ModelComputer,
    asked: Option<u32>,
) -> Result<usize, LaboratoryError> {
    let configured = computer.configured_drive_count();
    let drives = asked.unwrap_or(1) as usize;
    if (1..=configured).contains(&drives) {
        return Ok(drives);
    }
    Err(LaboratoryError::Request(format!(
        "--drives {drives}: {} has {configured} configured; give 1 to {configured}, or configure more with --set drives={drives}",
        computer.name
    )))
}

/// Start angle of each of several drives relative to the one before it, in units of 2^-32
/// revolutions.
pub fn default_phase(drives: usize, seed: u64) -> u32 {
    if drives < 2 {
        return 0;
    }
    // A golden-ratio step spreads seeds that follow each other evenly.
    (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

impl ModelPlan {
    fn fit_sizes(mut self, size: SizeChoice) -> Result<Self, LaboratoryError> {
        self.remove_impossible_jobs()?;
        if size == SizeChoice::AutomaticSize {
            self.shrink_to_room();
        }
        self.has_other_volume &= self.suite.iter_programs().any(Program::needs_second_target);
        self.check_sizes()?;
        self.check_sector_multiples()?;
        self.add_phase_note();
        self.add_sync_note();
        self.add_cache_notes();
        self.add_short_stroke_notes();
        Ok(self)
    }

    /// Reads the system with its file systems and other settings.
    pub fn rebuild_computers(
        &self,
        settings: &[Setting],
    ) -> Result<Vec<ModelComputer>, LaboratoryError> {
        build_computers(&self.catalogue, &self.target, &self.suite, settings)
    }

    /// Returns the settings that one of the plan's computers was read with.
    pub fn settings_of_computer(&self, computer: &ModelComputer) -> Vec<Setting> {
        let filesystem = computer.component_names.get(&Component::Filesystem);
        let filesystem = filesystem.filter(|_| self.computers.len() > 1);
        let filesystem = filesystem.map(|name| Setting::new("filesystem", name));
        filesystem
            .into_iter()
            .chain(self.experiment.settings.clone())
            .collect()
    }

    /// Reads the system with these settings; `None` if that is not possible.
    pub fn rebuild_computer(&self, settings: &[Setting]) -> Option<ModelComputer> {
        let programs = self.suite.iter_programs();
        ModelComputer::read_for_medium(&self.catalogue, &self.target, settings, programs).ok()
    }

    /// Adds notes on the drives: only the seed determines the angles between their spindles, and
    /// some may be partitions of one drive.
    fn add_phase_note(&mut self) {
        let volumes = &self.computers[0].specification.volumes[..self.drive_count];
        let drives: BTreeSet<usize> = volumes.iter().map(|volume| volume.drive).collect();
        if drives.len() < self.drive_count {
            self.notes.push(format!(
                "the {} are partitions, of {} in all: partitions of one drive have one rate, of all their bytes until the last is done",
                self.drive_count,
                match drives.len() {
                    1 => "one drive".to_owned(),
                    drives => format!("{drives} drives"),
                }
            ));
        }
        if drives.len() > 1 {
            self.notes.push(format!(
                "the seed sets the angle between the drives' spindles, {:.3} of a revolution at the start; `diskperf reproduce` takes the mean over all angles",
                f64::from(self.spindle_phase()) / f64::from(u32::MAX)
            ));
        }
    }

    /// Adds a note on the replacement for fsync(2) in kernels that do not have it.
    fn add_sync_note(&mut self) {
        if !self
            .suite
            .iter_programs()
            .any(Program::syncs_directory_entries)
        {
            return;
        }
        let computer = &self.computers[0];
        let stands_for_it = match (computer.is_minix(), computer.is_v7()) {
            (true, _) => {
                "Minix has no fsync(2): sync(2), which writes all modified blocks, replaces it"
            }
            (_, true) => {
                "Xenix has no fsync(2): sync(2), which starts to write all modified blocks and does not wait, replaces it"
            }
            (false, false) => return,
        };
        self.notes.push(stands_for_it.to_owned());
    }

    /// Start angle of each drive relative to the one before it, in units of 2^-32 revolutions.
    pub fn spindle_phase(&self) -> u32 {
        default_phase(self.drive_count, self.experiment.seed)
    }
}
