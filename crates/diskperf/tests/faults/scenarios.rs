//! What is run while something fails beneath it.

use crate::calls::Operation;
use crate::support::leftovers::{Disk, Leftovers};
use crate::support::machine::{LoopDevice, Needs, checksum, run};
use crate::support::{MOUNTS, Outcome, User, entries, words};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A command whose operations fail, one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    Write,
    Read,
    Fresh,
    TunePath,
    TuneDevice,
    Explain,
    Report,
    Export,
    Clean,
}

/// Repetitions of a run.
pub(crate) const RUNS: usize = 2;

impl Scenario {
    pub(crate) fn needs(self) -> &'static [Needs] {
        match self {
            Self::Write | Self::Read | Self::TunePath | Self::Report | Self::Export => &[],
            Self::Fresh | Self::TuneDevice | Self::Clean => MOUNTS,
            Self::Explain => &[Needs::BlockEvents],
        }
    }

    fn line(self, device: &str) -> String {
        match self {
            Self::Write => {
                format!("run write_8192 --on ./target --size 64K --runs {RUNS} --format json")
            }
            Self::Read => {
                format!("run read_8192 --on ./target --size 64K --set program.call_bytes=4096 --runs {RUNS} --format json")
            }
            Self::Fresh => format!(
                "run write_8192 --on ./target --size 64K --runs {RUNS} --fresh ext4:block_bytes=4096 --format json"
            ),
            Self::TunePath => "tune ./target --suite read_8192 --size 64K --runs 2 --over program.call_bytes=2048,4096 --format json --report out.html".to_owned(),
            Self::TuneDevice => format!(
                "tune {device} --suite read_8192 --size 64K --runs 2 --change-device-settings --over device.read_ahead_kb=4,64 --format json"
            ),
            Self::Explain => {
                "explain ./target --suite write_8192 --size 64K --runs 2 --format json".to_owned()
            }
            Self::Report => "report last -o out.html".to_owned(),
            Self::Export => "export last -o out.json".to_owned(),
            Self::Clean => "clean --on ./other".to_owned(),
        }
    }

    /// The file that it writes for the user.
    fn output(self) -> Option<&'static str> {
        match self {
            Self::TunePath | Self::Report => Some("out.html"),
            Self::Export => Some("out.json"),
            Self::Write
            | Self::Read
            | Self::Fresh
            | Self::TuneDevice
            | Self::Explain
            | Self::Clean => None,
        }
    }

    /// Whether a fault of this operation once broke something: those are in every
    /// sample.
    pub(crate) fn once_broke_by(self, operation: &Operation) -> bool {
        let path = operation.path.to_string_lossy();
        let name = operation.kind.name;
        let looks_at_folder = path.contains("/diskperf-")
            && ["openat", "fstat", "newfstatat", "getdents64"].contains(&name);
        match self {
            // Measuring the overhead ended a run before it was begun.
            Self::Read => name == "open" && path == "/dev/null",
            Self::Write => {
                let marker = path.ends_with("/diskperf-workspace");
                looks_at_folder && operation.only_looks() && !marker
            }
            Self::Fresh => path == "/run/mount" || path.starts_with("/sys/dev/block"),
            Self::TuneDevice => path.ends_with("/diskseq"),
            Self::Clean => {
                path.ends_with("/diskseq") || looks_at_folder && path.contains("/other/")
            }
            Self::Explain => name == "rmdir",
            Self::Report | Self::Export => path.ends_with(".partial"),
            Self::TunePath => false,
        }
    }

    pub(crate) fn is_run(self) -> bool {
        matches!(self, Self::Write | Self::Read | Self::Fresh)
    }
}

/// What all runs of a scenario have in common.
pub(crate) struct Stage {
    pub(crate) scenario: Scenario,
    /// Whose store each begins with; the image files of the devices lie there.
    home: User,
    leftovers: Option<Leftovers>,
    /// The device whose settings are searched.
    disk: Option<Disk>,
    /// One that is nobody's to touch, with what is on it.
    bystander: Option<(LoopDevice, String)>,
}

/// What nobody may touch.
const PRECIOUS: &str = "precious";

impl Stage {
    pub(crate) fn new(scenario: Scenario) -> Self {
        let home = User::new();
        let devices = scenario.needs().len() == MOUNTS.len();
        let disk = devices.then(|| Disk::new(home.scratch()));
        let bystander = devices.then(|| LoopDevice::blank(home.scratch(), 1));
        let leftovers = match (scenario, &disk) {
            (Scenario::Clean, Some(disk)) => Some(Leftovers::of(disk)),
            _ => None,
        };
        if let Scenario::Report | Scenario::Export = scenario {
            home.run(&words("run write_8192 --on ./target --size 64K --runs 2"))
                .expect(0, &[]);
        }
        Self {
            scenario,
            home,
            leftovers,
            disk,
            bystander: bystander.map(|device| {
                let sum = checksum(&device.path);
                (device, sum)
            }),
        }
    }

    /// A user as each run of the scenario finds one.
    pub(crate) fn user(&self) -> User {
        let user = match &self.disk {
            Some(_) => User::with_own_run_directory(),
            None => User::new(),
        };
        fs::create_dir(user.file("tmp")).expect("scratch directories can be written");
        for place in [user.home(), user.target()] {
            fs::write(place.join(PRECIOUS), PRECIOUS).expect("scratch directories can be written");
        }
        if let Some(output) = self.scenario.output() {
            fs::write(user.file(output), PRECIOUS).expect("scratch directories can be written");
        }
        if let Scenario::Report | Scenario::Export = self.scenario {
            let words = [Path::new("-a"), &self.home.file("data"), &user.file("data")];
            run("cp", &words);
        }
        match (&self.leftovers, &self.disk) {
            (Some(leftovers), Some(disk)) => leftovers.leave(&user, disk),
            (None, Some(disk)) => disk.set(Disk::AHEAD_KB),
            _ => {}
        }
        user
    }

    fn device(&self) -> String {
        self.disk
            .as_ref()
            .map(|disk| disk.0.text())
            .unwrap_or_default()
    }

    /// The command for that user.
    pub(crate) fn command(&self, user: &User) -> Command {
        let mut command = user.command(&words(&self.scenario.line(&self.device())));
        command.env("TMPDIR", user.file("tmp"));
        command
    }

    /// Where something may be changed.
    pub(crate) fn may_change(&self, user: &User, path: &Path) -> bool {
        // Without the dots in it.
        let path: &Path = &path.components().collect::<PathBuf>();
        let own = |place: &Path| {
            ["target", "other"].iter().any(|folder| {
                let below = place.strip_prefix(user.file(folder)).ok();
                let first = below.and_then(|below| below.components().next());
                first
                    .is_some_and(|name| name.as_os_str().to_string_lossy().starts_with("diskperf-"))
            })
        };
        // What the user named, what is written beside it to take its name, and what a
        // run is saved in without a store.
        let output = |place: &Path| {
            let name = place.file_name().unwrap_or_default().to_string_lossy();
            let named = self.scenario.output();
            let own = named.is_some() || self.scenario.is_run();
            place.parent() == Some(&user.home())
                && (named == Some(&name) || own && name.starts_with("diskperf-"))
        };
        let places = [
            user.file("data"),
            user.file("tmp"),
            "/dev/null".into(),
            "/dev/tty".into(),
            "/dev/loop-control".into(),
            "/instances".into(),
            // Its own, where there is a disk whose settings are changed.
            "/run/diskperf".into(),
            "/proc/self".into(),
        ];
        let of_device = self.disk.as_ref().is_some_and(|disk| {
            let setting = disk.setting();
            path == setting || setting.canonicalize().is_ok_and(|setting| path == setting)
        });
        let other_loop = path.starts_with("/dev")
            && path.to_string_lossy().starts_with("/dev/loop")
            && !self.is_bystander(path);
        own(path)
            || output(path)
            || crate::calls::is_in(path, &places)
            || of_device
            || other_loop
            // The mounts of a name space of its own.
            || (self.scenario == Scenario::Fresh && path == "/")
    }

    fn is_bystander(&self, path: &Path) -> bool {
        let own = self.bystander.as_ref();
        own.is_some_and(|(device, _)| device.path == path)
    }

    /// What was touched that is nobody's to touch.
    pub(crate) fn touched(&self, user: &User) -> Vec<String> {
        let mut touched = Vec::new();
        for place in [user.home(), user.target()] {
            let text = fs::read_to_string(place.join(PRECIOUS)).unwrap_or_default();
            if text != PRECIOUS {
                touched.push(format!("{} is {text:?}", place.join(PRECIOUS).display()));
            }
        }
        if let Some((device, before)) = &self.bystander
            && checksum(&device.path) != *before
        {
            touched.push(format!("{} is another one", device.text()));
        }
        touched
    }

    /// What of the user's file is wrong: it is the one from before, or a whole one.
    pub(crate) fn output_damage(&self, user: &User) -> Option<String> {
        let text = fs::read_to_string(user.file(self.scenario.output()?)).unwrap_or_default();
        let whole = text == PRECIOUS || self.is_whole(&text);
        (!whole).then(|| format!("the output has {} bytes, and is not whole", text.len()))
    }

    fn is_whole(&self, output: &str) -> bool {
        match self.scenario {
            Scenario::Export => serde_json::from_str::<Value>(output)
                .is_ok_and(|text| text["runs"][0]["results"].is_array()),
            _ => output.starts_with("<!DOCTYPE html") && output.trim_end().ends_with("</html>"),
        }
    }

    /// What of the work that was asked for is not done.
    pub(crate) fn undone(&self, user: &User, outcome: &Outcome) -> Option<String> {
        let json = serde_json::from_str::<Value>(&outcome.stdout);
        let output = self.scenario.output();
        let output = output.map(|name| fs::read_to_string(user.file(name)).unwrap_or_default());
        if output.is_some_and(|text| !self.is_whole(&text)) {
            return Some("the output is not written".to_owned());
        }
        let ran = |json: &Value| {
            let run = &json["runs"][0];
            run["state"] == "finished" && repetitions(json) >= RUNS
        };
        let tuned = |json: &Value| json["points"].as_array().is_some_and(|all| all.len() == 2);
        let done = match self.scenario {
            Scenario::Write | Scenario::Read | Scenario::Fresh => json.is_ok_and(|json| ran(&json)),
            Scenario::TunePath | Scenario::TuneDevice => json.is_ok_and(|json| tuned(&json)),
            Scenario::Explain => json.is_ok_and(|json| {
                json["programs"]
                    .as_array()
                    .is_some_and(|all| all.len() == 1)
            }),
            Scenario::Report | Scenario::Export => true,
            // Without the store, it looks where it is told to look.
            Scenario::Clean
                if outcome
                    .stderr
                    .contains("looking only in the directories of --on") =>
            {
                true
            }
            Scenario::Clean => return self.left(user).first().cloned(),
        };
        (!done).then(|| "not all figures are there".to_owned())
    }

    /// What is left that is to be cleaned up.
    pub(crate) fn left(&self, user: &User) -> Vec<String> {
        let mut left = Vec::new();
        for place in [user.target(), user.file("other")] {
            if place.exists() {
                let found = entries(&place).into_iter().filter(|name| name != PRECIOUS);
                left.extend(found.map(|name| place.join(name).display().to_string()));
            }
        }
        let here = entries(&user.home()).into_iter();
        left.extend(here.filter(|name| name.ends_with(".partial")));
        if let Some(disk) = &self.disk
            && disk.value() != Disk::AHEAD_KB
        {
            let setting = disk.setting();
            left.push(format!("{} is {}", setting.display(), disk.value()));
        }
        left
    }

    /// What is left besides: files that are no user's.
    pub(crate) fn strangers(&self, user: &User) -> Vec<String> {
        let known = [
            "data", "other", "run", "target", "tmp", PRECIOUS, "out.html", "out.json",
        ];
        let here = entries(&user.home()).into_iter();
        here.filter(|name| !known.contains(&name.as_str()))
            .collect()
    }
}

/// How many repetitions the output has.
pub(crate) fn repetitions(json: &Value) -> usize {
    let results = json["runs"][0]["results"].as_array();
    let of = |result: &Value| result["repetitions"].as_array().map_or(0, Vec::len);
    results.map_or(0, |results| results.iter().map(of).sum())
}
