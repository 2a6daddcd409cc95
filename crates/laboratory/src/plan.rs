//! From a request to plans: everything that can be found wrong without
//! changing anything is found here.

use crate::error::LaboratoryError;
use crate::request::{Request, SizeChoice};
use crate::target::Target;
use diskperf_battery::program::nearest;
use diskperf_battery::suite::Needs;
use diskperf_battery::{Medium, Program, Step, Suite};
use diskperf_system::host::fresh::FreshSpec;
use diskperf_timeline::CacheMode;

/// One run to be made.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The suite, with the user's settings in its steps.
    pub suite: Suite,
    /// The drives that run each program at once.
    pub targets: Vec<Target>,
    /// A directory on another file system.
    pub other: Option<Target>,
    /// File systems to be made anew, one after the other; none means the
    /// target as it is.
    pub fresh: Vec<FreshSpec>,
    /// Bytes that each program moves.
    pub size: SizeChoice,
    /// What is asked of the page cache.
    pub cache: CacheMode,
    /// Drop the caches of the whole machine before each repetition.
    pub drop_all_caches: bool,
    /// Whether each call is timed.
    pub time_calls: bool,
    /// The seed of every random choice.
    pub seed: u64,
    /// The user's own name for the run.
    pub label: Option<String>,
    /// The command line, word by word.
    pub command_line: Vec<String>,
    /// Steps that were left out, each with the reason.
    pub left_out: Vec<String>,
}

/// The plans of a request: one for each target, or one for all together.
pub fn plan(request: &Request) -> Result<Vec<Plan>, LaboratoryError> {
    check_destroyed(request)?;
    let targets = request
        .targets
        .iter()
        .map(|path| Target::inspect(path, request))
        .collect::<Result<Vec<_>, _>>()?;
    if request.together {
        check_together(&targets)?;
        return Ok(vec![plan_run(request, targets)?]);
    }
    targets
        .into_iter()
        .map(|target| plan_run(request, vec![target]))
        .collect()
}

/// Several drives run one program; they must be of one kind, and not the same.
fn check_together(targets: &[Target]) -> Result<(), LaboratoryError> {
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
    Ok(())
}

/// Every device given up must be one that is run on; a slip here costs data.
fn check_destroyed(request: &Request) -> Result<(), LaboratoryError> {
    for device in &request.destroy_data_on {
        let number = Target::device_number(device);
        let is_target = |target: &std::path::PathBuf| {
            number.is_some() && Target::device_number(target) == number
        };
        if !request.targets.iter().any(is_target) {
            return Err(LaboratoryError::Request(format!(
                "--destroy-data-on {} names no target of this run; it must be the same device as one --on",
                device.display()
            )));
        }
    }
    Ok(())
}

fn plan_run(request: &Request, targets: Vec<Target>) -> Result<Plan, LaboratoryError> {
    let medium = targets[0].medium;
    let mut suite = suite(request.what.as_deref(), medium)?;
    apply_settings(&mut suite, &request.settings)?;
    if let Some(repetitions) = request.repetitions {
        suite.protocol.repetitions = repetitions;
        suite.protocol.discarded = suite.protocol.discarded.min(repetitions - 1);
        suite.protocol.stop_below_share = None;
    }
    let mut plan = Plan {
        fresh: fresh(request, medium)?,
        other: request
            .other
            .as_deref()
            .map(|path| other(path, request))
            .transpose()?,
        suite,
        targets,
        size: request.size,
        cache: request.cache,
        drop_all_caches: request.drop_all_caches,
        time_calls: request.time_calls,
        seed: request.seed,
        label: request.label.clone(),
        command_line: request.command_line.clone(),
        left_out: Vec::new(),
    };
    plan.leave_out_what_cannot_run()?;
    plan.check_sizes()?;
    Ok(plan)
}

/// The suite or program of this name; the medium's default without one.
fn suite(what: Option<&str>, medium: Medium) -> Result<Suite, LaboratoryError> {
    let name = what.unwrap_or(match medium {
        Medium::Directory => "ffs83",
        Medium::Device => "seqread89",
    });
    if let Some(suite) = Suite::named(name, medium) {
        return Ok(suite);
    }
    if let Some(program) = Program::named(name) {
        return Ok(Suite::of_program(program));
    }
    if name.contains('/') || std::path::Path::new(name).exists() {
        return Err(LaboratoryError::Request(format!(
            "`{name}` is a path, and a suite or a program stands here: write `diskperf run --on {name}`"
        )));
    }
    let names: Vec<_> = Suite::all()
        .iter()
        .map(|(name, _)| *name)
        .chain(Program::all().map(|(name, _)| name))
        .collect();
    Err(LaboratoryError::Request(
        match nearest(name, names.iter().copied()) {
            Some(near) => format!("no suite or program is called `{name}`; did you mean `{near}`?"),
            None => format!(
                "no suite or program is called `{name}`; there are {}",
                names.join(", ")
            ),
        },
    ))
}

/// Puts `program.KEY=VALUE` into every step that has the key. Steps that
/// become the same run once.
fn apply_settings(suite: &mut Suite, settings: &[String]) -> Result<(), LaboratoryError> {
    for setting in settings {
        let (key, value) = program_setting(setting)?;
        let mut unknown = None;
        let mut taken = false;
        for step in &mut suite.steps {
            match step.program.set(key, value) {
                Ok(()) => {
                    taken = true;
                    if !step.distinguishing.iter().any(|name| name == key) {
                        step.distinguishing.push(key.to_owned());
                    }
                }
                Err(error @ diskperf_battery::ParameterError::Unknown { .. }) => {
                    unknown.get_or_insert(error);
                }
                Err(error) => return Err(error.into()),
            }
        }
        if let (false, Some(error)) = (taken, unknown) {
            return Err(error.into());
        }
    }
    let mut kept: Vec<Step> = Vec::new();
    for step in suite.steps.drain(..) {
        if !kept.iter().any(|earlier| earlier.program == step.program) {
            kept.push(step);
        }
    }
    suite.steps = kept;
    Ok(())
}

/// Takes a `--set` apart.
fn program_setting(setting: &str) -> Result<(&str, &str), LaboratoryError> {
    let Some((path, value)) = setting.split_once('=') else {
        return Err(LaboratoryError::Request(format!(
            "--set {setting} has no value: write --set program.KEY=VALUE"
        )));
    };
    match path.split_once('.') {
        Some(("program", key)) => Ok((key, value)),
        Some((component, _)) => Err(LaboratoryError::Request(format!(
            "--set {path}: real storage has no component `{component}` to set, only `program`"
        ))),
        None => Err(LaboratoryError::Request(format!(
            "--set {path} names no component: write --set program.{path}={value}"
        ))),
    }
}

/// The fresh file systems of a request: of the size that was asked for, or of
/// each that the kind has.
fn fresh(request: &Request, medium: Medium) -> Result<Vec<FreshSpec>, LaboratoryError> {
    let Some(text) = &request.fresh else {
        return Ok(Vec::new());
    };
    let spec: FreshSpec = text.parse().map_err(LaboratoryError::request)?;
    if medium == Medium::Device {
        return Err(LaboratoryError::request(
            "--fresh makes its file system on an image file inside a directory: give a directory as target",
        ));
    }
    if text.contains("block_bytes") {
        return Ok(vec![spec]);
    }
    // The paper's two: the largest blocks first, then the smallest.
    let sizes = spec.kind.block_sizes();
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

fn other(path: &std::path::Path, request: &Request) -> Result<Target, LaboratoryError> {
    let target = Target::inspect(path, request)?;
    if target.medium != Medium::Directory {
        return Err(LaboratoryError::Request(format!(
            "--other {} is not a directory; copies to another file system need one",
            path.display()
        )));
    }
    Ok(target)
}

impl Plan {
    /// Why a step cannot run here, if it cannot.
    fn obstacle(&self, step: &Step) -> Option<String> {
        let target = &self.targets[0];
        let name = target.name();
        match step.needs(target.medium) {
            Needs::Directory if target.medium == Medium::Device => {
                Some(format!("it reads a file, and {name} is a device"))
            }
            Needs::Device if target.medium == Medium::Directory => Some(format!(
                "it reads a block device, and {name} is a directory: give the device with --on"
            )),
            Needs::OtherFilesystem if self.other.is_none() => {
                Some("it copies to another file system: name a directory there with --other DIR".to_owned())
            }
            Needs::WritableDevice => self.targets.iter().find(|target| !target.writable()).map(|target| {
                format!(
                    "it writes, and the data on {0} is not given up: add --destroy-data-on {0} if nobody needs it",
                    target.name()
                )
            }),
            _ if step.program.cache_mode(self.cache) == CacheMode::Direct && step.program.touches_target() => {
                // A fresh file system is on a loop device of its own, where
                // O_DIRECT works whatever the image file lies on.
                let places = self.targets.iter().chain(&self.other).filter(|_| self.fresh.is_empty());
                places.into_iter().find_map(|target| target.direct_obstacle(step.program.call_bytes()))
            }
            _ => None,
        }
    }

    /// A suite goes on without the steps that cannot run, and says so; a
    /// program that was asked for by name must run.
    fn leave_out_what_cannot_run(&mut self) -> Result<(), LaboratoryError> {
        let mut kept = Vec::new();
        let mut obstacles: Vec<(String, Vec<String>)> = Vec::new();
        for step in std::mem::take(&mut self.suite.steps) {
            match self.obstacle(&step) {
                None => kept.push(step),
                Some(obstacle) => {
                    match obstacles.iter_mut().find(|(known, _)| *known == obstacle) {
                        Some((_, titles)) => titles.push(title(&step)),
                        None => obstacles.push((obstacle, vec![title(&step)])),
                    }
                }
            }
        }
        self.suite.steps = kept;
        if self.suite.steps.is_empty() {
            let obstacles: Vec<_> = obstacles
                .into_iter()
                .map(|(obstacle, _)| obstacle)
                .collect();
            return Err(LaboratoryError::Request(format!(
                "{} cannot run on {}: {}",
                self.suite.name,
                self.target_name(),
                obstacles.join("; ")
            )));
        }
        self.left_out = obstacles
            .into_iter()
            .map(|(obstacle, titles)| format!("left out: {}: {obstacle}", titles.join(", ")))
            .collect();
        Ok(())
    }

    fn check_sizes(&self) -> Result<(), LaboratoryError> {
        for step in &self.suite.steps {
            let size_bytes = match self.size {
                SizeChoice::Bytes(size_bytes) => size_bytes,
                SizeChoice::Auto => self.smallest_size(step),
            };
            step.program.check(size_bytes)?;
            // A fresh file system's image lies on the target as well.
            for target in &self.targets {
                target.check_room(step.program.file_bytes(size_bytes))?;
            }
        }
        Ok(())
    }

    /// The least that a step moves when its size is found by a pilot: 8 MB,
    /// in whole calls.
    pub(crate) fn smallest_size(&self, step: &Step) -> u64 {
        let call_bytes = step.program.call_bytes();
        crate::pilot::SMALLEST_BYTES
            .max(call_bytes)
            .next_multiple_of(call_bytes)
    }

    /// All targets, as the user named them.
    pub fn target_name(&self) -> String {
        let names: Vec<_> = self.targets.iter().map(Target::name).collect();
        names.join(" + ")
    }

    /// What would be written where, how much, and for how long.
    pub fn describe(&self) -> String {
        let mut text = format!("{} on {}\n", self.suite.name, self.target_name());
        for target in self.targets.iter().chain(&self.other) {
            text += &format!("  {}\n", target.what_would_happen(!self.fresh.is_empty()));
        }
        for spec in &self.fresh {
            text += &format!(
                "  a fresh {} with blocks of {} bytes on an image file, mounted for this process alone\n",
                spec.kind, spec.block_bytes
            );
        }
        let runs = self.suite.protocol.repetitions;
        let (mut seconds, mut written) = (0.0, Some(0));
        for step in &self.suite.steps {
            let size = match self.size {
                SizeChoice::Bytes(bytes) => diskperf_timeline::units::format_size(bytes),
                SizeChoice::Auto => "8 MiB to 1 GiB, found by a pilot".to_owned(),
            };
            text += &format!("  {:<44} up to {runs} times, {size}\n", title(step));
            // The pilot aims at half a second a repetition; making the input
            // and syncing the output take about as long again.
            seconds += f64::from(runs) * 1.0;
            let rewritten = if step.program.writes() {
                u64::from(runs)
            } else {
                1
            };
            written = match (written, self.size) {
                (Some(sum), SizeChoice::Bytes(bytes)) => {
                    Some(sum + rewritten * step.program.file_bytes(bytes))
                }
                _ => None,
            };
        }
        let file_systems = self.fresh.len().max(1) as u64;
        seconds *= file_systems as f64;
        if let Some(bytes) = written {
            let bytes = bytes * file_systems * self.targets.len() as u64;
            text += &format!(
                "  written in all: at most {}\n",
                diskperf_timeline::units::format_size(bytes)
            );
        }
        if matches!(self.size, SizeChoice::Auto) {
            text += &format!("  time: about {seconds:.0} s\n");
        }
        for left_out in &self.left_out {
            text += &format!("  {left_out}\n");
        }
        text
    }
}

/// The program with the parameters that tell it from its siblings.
pub(crate) fn title(step: &Step) -> String {
    let values = step.program.parameter_values();
    let mut title = step.program.name().to_owned();
    for name in &step.distinguishing {
        if let Some(value) = values.get(name) {
            title += &format!(" {name}={value}");
        }
    }
    title
}
