//! Plan of a run on a modelled computer.

mod budget;
mod describe;
mod notes;
mod obstacle;
mod size;

use super::bare_names::{BareNames, is_bare};
use super::job_file::Ground;
use super::workload::{named_suite, of_one_run, stated, suite};
use super::{area, direct, job_file, replay, step_title};
use crate::error::LaboratoryError;
use crate::files::Files;
use crate::model::computer::Computer;
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
    pub computers: Vec<Computer>,
    /// Number of drives that run each program together.
    pub drives: usize,
    /// Whether one more drive has a file system, as a copy destination.
    pub other: bool,
    /// Bytes that each program of the plan transfers.
    pub size_bytes: u64,
    /// Number of times that programs' own default sizes are halved to fit; `None` if the user sets
    /// a size.
    pub usual_sizes_halved: Option<u32>,
    /// Whether the requested size is rounded to whole calls.
    pub whole_calls: bool,
    /// Budget of all machines of the run together.
    pub budget: RunBudget,
    /// Whether the requests to storage are reported to the observer, for a recording.
    pub record: bool,
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
pub fn plan(
    experiment: &Experiment,
    target: &Path,
    files: &dyn Files,
) -> Result<ModelPlan, LaboratoryError> {
    let name = target.to_string_lossy().into_owned();
    let catalogue = load_catalogue(experiment.catalogue_path.as_deref())?;
    check_name(&catalogue, &name, target)?;
    plan_on((experiment, files), (&catalogue, name), Manner::Run)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// The plan is for a run.
    Run,
    /// The plan is for one point of a search. It uses only the system's own file system and sizes
    /// in whole calls, and bare drives without any cache.
    Point,
}

/// Makes the plan of one point of a search.
pub fn plan_of_point(
    (experiment, files): (&Experiment, &dyn Files),
    catalogue: &Catalogue,
    name: &str,
) -> Result<ModelPlan, LaboratoryError> {
    let plan = plan_on(
        (experiment, files),
        (catalogue, name.to_owned()),
        Manner::Point,
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
            step_title(step)
        ))),
    }
}

fn plan_on(
    (experiment, files): (&Experiment, &dyn Files),
    (catalogue, name): (&Catalogue, String),
    manner: Manner,
) -> Result<ModelPlan, LaboratoryError> {
    let names = bare_names((experiment, files), (catalogue, &name))?;
    let whole = names.map(|names| names.settings(&experiment.settings));
    let renamed = whole.transpose()?.map(|settings| Experiment {
        settings,
        ..experiment.clone()
    });
    let experiment = renamed.as_ref().unwrap_or(experiment);
    let workload = &experiment.workload;
    let settings = of_system(experiment);
    let plain = match workload {
        Workload::DefaultSuite => usual_suite((catalogue, &name), &settings)?,
        _ => suite(workload, Medium::Directory, files)?,
    };
    if matches!(workload, Workload::JobFile(_)) {
        job_file::check_options(experiment)?;
    }
    let asked = stated(plain.clone(), experiment)?;
    let computers = match manner {
        Manner::Run => computers(catalogue, &name, &asked, &settings)?,
        Manner::Point => {
            let programs = asked.iter_programs();
            vec![Computer::read_for(catalogue, &name, &settings, programs)?]
        }
    };
    let medium = computers[0].medium();
    let (suite, notes) = suite_of(plain, &computers[0], (experiment, files))?;
    let usual_bytes = size::usual_bytes(&computers[0]);
    let drives = drives(&computers[0], experiment.drive_count)?;
    let mut own = of_one_run(experiment, vec![name.clone().into()], &suite);
    if medium == Medium::Device
        && (manner == Manner::Point || has_no_other_way(&suite, &computers[0], own.cache_mode))
    {
        own.cache_mode = CacheMode::Direct;
    }
    own.cache_mode = direct::of_run(&suite, own.cache_mode);
    let plan = ModelPlan {
        budget: budget::of_run(experiment, &suite),
        experiment: own,
        other: drives < computers[0].configured_drives(),
        suite,
        target: name,
        catalogue: catalogue.clone(),
        computers,
        drives,
        size_bytes: match experiment.size_choice {
            SizeChoice::AutomaticSize => usual_bytes,
            SizeChoice::SizeBytes(bytes) => bytes,
        },
        usual_sizes_halved: (experiment.size_choice == SizeChoice::AutomaticSize).then_some(0),
        whole_calls: manner == Manner::Point,
        record: false,
        notes,
    };
    plan.made_to_fit(experiment.size_choice)
}

fn of_system(experiment: &Experiment) -> Vec<Setting> {
    let all = experiment.settings.iter();
    let of_system = all.filter(|setting| setting.program_parameter_name().is_none());
    of_system.cloned().collect()
}

/// Returns the parameters of a target if a bare key has to be looked up among them. It is also
/// `None` if the target cannot be read, an error that its plan reports.
fn bare_names(
    (experiment, files): (&Experiment, &dyn Files),
    (catalogue, name): (&Catalogue, &str),
) -> Result<Option<BareNames>, LaboratoryError> {
    if !of_system(experiment).iter().any(|one| is_bare(&one.path)) {
        return Ok(None);
    }
    names_of((experiment, files), (catalogue, name))
}

/// Returns all parameters of an experiment's programs and of its target, which settings can name;
/// `None` if the target cannot be read.
pub(crate) fn names_of(
    (experiment, files): (&Experiment, &dyn Files),
    (catalogue, name): (&Catalogue, &str),
) -> Result<Option<BareNames>, LaboratoryError> {
    let mut settings = of_system(experiment);
    settings.retain(|one| !is_bare(&one.path));
    let Ok(computer) = Computer::read(catalogue, name, &settings) else {
        return Ok(None);
    };
    let suite = match suite_on(&computer, &experiment.workload)? {
        Some(suite) => suite,
        None => suite(&experiment.workload, Medium::Directory, files)?,
    };
    Ok(Some(BareNames::of_computer(&suite, &computer)))
}

/// Reports whether programs that would use a buffer cache have to bypass it, because a bare modern
/// drive has none. A request for a warm cache is rejected instead.
fn has_no_other_way(suite: &Suite, computer: &Computer, asked: CacheMode) -> bool {
    let goes_through = |job: &SuiteJob| {
        let program = &job.program;
        program.accesses_target()
            && job.target_needs(Medium::Device) != TargetNeeds::MediumOfOtherKind
            && program.cache_mode_for(asked) == CacheMode::Cold
    };
    is_of_today(computer) && suite.iter_jobs().any(goes_through)
}

fn is_of_today(computer: &Computer) -> bool {
    let drive = &computer.specification.drives[0];
    drive.disk_specification().is_some() || drive.flash_specification().is_some()
}

fn suite_of(
    plain: Suite,
    computer: &Computer,
    (experiment, files): (&Experiment, &dyn Files),
) -> Result<(Suite, Vec<String>), LaboratoryError> {
    let workload = &experiment.workload;
    let (mut suite, mut notes) = match (suite_on(computer, workload)?, workload) {
        (Some(other), _) => (other, Vec::new()),
        (None, Workload::JobFile(text)) => {
            let ground = Ground::modelled(computer);
            job_file::suite(text, (&ground, files), experiment)?
        }
        (None, Workload::Replay(of)) => {
            let ground = replay::Ground::modelled(computer);
            replay::suite(of, (&ground, files), experiment.cache_mode)?
        }
        (None, _) => (plain, Vec::new()),
    };
    notes.extend(area::fit_computer(&mut suite, computer, experiment));
    let mut suite = stated(suite, experiment)?;
    direct::choose_modelled(&mut suite, computer, experiment);
    notes.extend(area::write_past_buffer(&mut suite, computer, experiment));
    Ok((suite, notes))
}

fn usual_suite(
    (catalogue, name): (&Catalogue, &str),
    settings: &[Setting],
) -> Result<Suite, LaboratoryError> {
    // What Piziali and Zam 1991 read their drives with.
    if Computer::v7_by_itself(catalogue, name, settings).is_some() {
        return named_suite(RAW_SUITE, Medium::Directory);
    }
    let computer = Computer::read(catalogue, name, settings).ok();
    let own = computer.map(|computer| suite_on(&computer, &Workload::DefaultSuite));
    let own = own.transpose()?.flatten();
    own.map_or_else(|| named_suite(FILE_SUITE, Medium::Directory), Ok)
}

/// Returns the suite that replaces the usual one on this computer; `None` if there is none. Minix
/// has its own programs, and programs on bare drives cannot use the buffer cache.
fn suite_on(computer: &Computer, workload: &Workload) -> Result<Option<Suite>, LaboratoryError> {
    let medium = computer.medium();
    let what = match workload {
        Workload::DefaultSuite => None,
        Workload::NamedSuite(name) => Some(name.as_str()),
        Workload::Steps { .. } | Workload::JobFile(_) | Workload::Replay(_) => return Ok(None),
    };
    if computer.is_minix() {
        let name = what.unwrap_or("seqread89");
        let both = Suite::from_name_on_any_medium(name);
        return both.map_or_else(|| named_suite(name, medium), Ok).map(Some);
    }
    match medium {
        Medium::Device => {
            let usual = match is_of_today(computer) {
                true => DEVICE_SUITE,
                false => RAW_SUITE,
            };
            named_suite(what.unwrap_or(usual), medium).map(Some)
        }
        Medium::Directory | Medium::File => Ok(None),
    }
}

/// Verifies that a name is one of the catalogue's systems. The error considers that the user may
/// have meant a file or a directory.
pub fn check_name(catalogue: &Catalogue, name: &str, target: &Path) -> Result<(), LaboratoryError> {
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
fn computers(
    catalogue: &Catalogue,
    name: &str,
    suite: &Suite,
    settings: &[Setting],
) -> Result<Vec<Computer>, LaboratoryError> {
    let said = settings.iter().any(|setting| {
        [
            "filesystem",
            "filesystem.block_bytes",
            "filesystem.fragment_bytes",
        ]
        .contains(&setting.path.as_str())
    });
    let own = Computer::read_for(catalogue, name, settings, suite.iter_programs())?;
    let ffs = own.filesystem_kind().is_some_and(|(kind, _)| kind == "ffs");
    if suite.name != "ffs83" || said || !ffs {
        return Ok(vec![own]);
    }
    let with = |filesystem: &&str| {
        let filesystem = Setting {
            path: "filesystem".to_owned(),
            value_text: (**filesystem).to_owned(),
        };
        let all: Vec<Setting> = [filesystem].into_iter().chain(settings.to_vec()).collect();
        Computer::read(catalogue, name, &all)
    };
    FILESYSTEMS.iter().map(with).collect()
}

fn drives(computer: &Computer, asked: Option<u32>) -> Result<usize, LaboratoryError> {
    let configured = computer.configured_drives();
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
pub fn phase(drives: usize, seed: u64) -> u32 {
    if drives < 2 {
        return 0;
    }
    // A golden-ratio step spreads seeds that follow each other evenly.
    (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

impl ModelPlan {
    fn made_to_fit(mut self, size: SizeChoice) -> Result<Self, LaboratoryError> {
        self.leave_out_what_cannot_run()?;
        if size == SizeChoice::AutomaticSize {
            self.shrink_to_room();
        }
        self.other &= self.suite.iter_programs().any(Program::needs_second_target);
        self.check_sizes()?;
        self.check_sectors()?;
        self.note_phase();
        self.note_syncs();
        self.note_cache();
        self.note_places();
        Ok(self)
    }

    /// Reads the system with its file systems and other settings.
    pub fn computers_with(&self, settings: &[Setting]) -> Result<Vec<Computer>, LaboratoryError> {
        computers(&self.catalogue, &self.target, &self.suite, settings)
    }

    /// Returns the settings that one of the plan's computers was read with.
    pub fn settings_of(&self, computer: &Computer) -> Vec<Setting> {
        let filesystem = computer.components.get(&Component::Filesystem);
        let filesystem = filesystem.filter(|_| self.computers.len() > 1);
        let filesystem = filesystem.map(|name| Setting::new("filesystem", name));
        filesystem
            .into_iter()
            .chain(self.experiment.settings.clone())
            .collect()
    }

    /// Reads the system with these settings; `None` if that is not possible.
    pub fn computer_with(&self, settings: &[Setting]) -> Option<Computer> {
        let programs = self.suite.iter_programs();
        Computer::read_for(&self.catalogue, &self.target, settings, programs).ok()
    }

    /// Adds notes on the drives: only the seed determines the angles between their spindles, and
    /// some may be partitions of one drive.
    fn note_phase(&mut self) {
        let volumes = &self.computers[0].specification.volumes[..self.drives];
        let drives: BTreeSet<usize> = volumes.iter().map(|volume| volume.drive).collect();
        if drives.len() < self.drives {
            self.notes.push(format!(
                "the {} are partitions, of {} in all: partitions of one drive have one rate, of all their bytes until the last is done",
                self.drives,
                match drives.len() {
                    1 => "one drive".to_owned(),
                    drives => format!("{drives} drives"),
                }
            ));
        }
        if drives.len() > 1 {
            self.notes.push(format!(
                "the seed sets the angle between the drives' spindles, {:.3} of a revolution at the start; `diskperf reproduce` takes the mean over all angles",
                f64::from(self.phase()) / f64::from(u32::MAX)
            ));
        }
    }

    /// Adds a note on the replacement for fsync(2) in kernels that do not have it.
    fn note_syncs(&mut self) {
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
    pub fn phase(&self) -> u32 {
        phase(self.drives, self.experiment.seed)
    }
}
