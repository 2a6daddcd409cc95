//! The corpus of fio job files: as many are taken as fio takes, and they do as many I/Os.
//! Its index is `tests/fio_corpus/index.toml`, kept by `tools/fio-corpus`.

use crate::support::User;
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Share of the files that fio takes, in percent, that must be taken here.
const TAKEN_PERCENT_MIN: usize = 92;
/// Files that must do exactly as many I/Os as with fio.
const EQUAL_MIN: usize = 80;

/// A job file that fio takes.
struct Listed {
    file: String,
    words: Vec<String>,
    environment: Vec<(String, String)>,
    copied: Vec<String>,
    /// I/Os that fio does, by direction: reads, writes, trims.
    ios: Option<[u64; 3]>,
    /// Whether fio counts I/Os that it does not do; the index says which.
    is_miscounted: bool,
    /// Words of the refusal, where every target refuses the file.
    refused: Option<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fio_corpus")
}

fn strings(value: Option<&toml::Value>) -> Vec<String> {
    let list = value.and_then(toml::Value::as_array);
    let list = list.into_iter().flatten().filter_map(toml::Value::as_str);
    list.map(str::to_owned).collect()
}

/// The files that fio takes.
fn listed() -> Vec<Listed> {
    let text = fs::read_to_string(folder().join("index.toml")).expect("the index");
    let index: toml::Table = text.parse().expect("TOML");
    let jobs = index["job"].as_array().expect("tables").iter();
    let taken = jobs.filter(|job| job["fio_accepts"].as_bool() == Some(true));
    let listed = taken.map(|job| {
        let environment = job.get("environment").and_then(toml::Value::as_table);
        let environment = environment.into_iter().flatten();
        let of = |ios: &toml::Value, way: &str| ios[way].as_integer().expect("a count") as u64;
        Listed {
            file: job["file"].as_str().expect("a name").to_owned(),
            words: strings(job.get("fio_args")),
            environment: environment
                .map(|(name, value)| (name.clone(), value.as_str().expect("a text").to_owned()))
                .collect(),
            copied: strings(job.get("copied")),
            ios: job
                .get("ios")
                .map(|ios| ["read", "write", "trim"].map(|way| of(ios, way))),
            is_miscounted: job.get("fio_miscounts").is_some(),
            refused: job
                .get("refused")
                .map(|words| words.as_str().expect("a text").to_owned()),
        }
    });
    listed.collect()
}

impl Listed {
    /// diskperf with this file on a target, in a place of its own.
    fn command(&self, user: &User, target: &str, options: &[&str]) -> Command {
        let path = folder().join(&self.file);
        for name in &self.copied {
            let from = path.parent().expect("a folder").join(name);
            let to = user.file(name);
            fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
            fs::copy(from, to).expect("a copy");
        }
        let mut command = user.command(&["run"]);
        command.arg(path).args(["--on", target]).args(options);
        let words = self.words.iter();
        command.args(words.map(|word| format!("--fio-arg={word}")));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The reason why it is refused everywhere; nothing where some target takes it. A
    /// modelled drive stands for devices that are not there, and the null target for the
    /// null engine and for discards.
    fn refusal(&self) -> Option<String> {
        let refusals = ["./target", "bare-nvme-tlc", "null"].map(|target| {
            let user = User::new();
            let output = self
                .command(&user, target, &["--dry-run"])
                .output()
                .unwrap();
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            match output.status.code() {
                Some(0) => None,
                Some(2) => {
                    let lines = words.lines().filter(|line| !line.trim().is_empty());
                    Some(lines.take(4).collect::<Vec<_>>().join(" "))
                }
                code => panic!("{} ends with {code:?}: {words}", self.file),
            }
        });
        let [first, second, third] = refusals;
        first.filter(|_| second.is_some() && third.is_some())
    }

    /// I/Os by direction; nothing where it is refused.
    fn counted(&self) -> Option<[u64; 3]> {
        let user = User::new();
        let options = ["--format", "fio-json", "--quiet"];
        let output = self.command(&user, "./target", &options).output().unwrap();
        if output.status.code() == Some(2) {
            return None;
        }
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {words}", self.file);
        let run: Value = serde_json::from_slice(&output.stdout).expect("an object");
        let jobs = run["jobs"].as_array().expect("jobs");
        Some(["read", "write", "trim"].map(|way| {
            let of_job = |job: &Value| {
                let count = &job[way]["total_ios"];
                count.as_u64().expect("a count")
            };
            jobs.iter().map(of_job).sum()
        }))
    }
}

/// Does the same with each, as many at once as there are processors.
fn each<T: Send>(listed: &[Listed], work: impl Fn(&Listed) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let mut done: Vec<(usize, T)> = thread::scope(|scope| {
        let worker = || {
            let mut done = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(listed) = listed.get(number) else {
                    return done;
                };
                done.push((number, work(listed)));
            }
        };
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        let done = workers
            .into_iter()
            .map(|worker| worker.join().expect("no panic"));
        done.flatten().collect()
    });
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, value)| value).collect()
}

#[test]
fn nearly_all_that_fio_takes_is_taken() {
    let listed = listed();
    let refusals = each(&listed, Listed::refusal);
    let (mut told, mut unlisted) = (String::new(), String::new());
    for (listed, refusal) in listed.iter().zip(&refusals) {
        if let Some(refusal) = refusal {
            writeln!(told, "{}: {refusal}", listed.file).unwrap();
        }
        let is_listed = match (refusal, &listed.refused) {
            (Some(refusal), Some(words)) => refusal.contains("--> ") && refusal.contains(words),
            (refusal, words) => refusal.is_some() == words.is_some(),
        };
        if !is_listed {
            let words = &listed.refused;
            writeln!(unlisted, "{}: {refusal:?}, listed {words:?}", listed.file).unwrap();
        }
    }
    assert!(unlisted.is_empty(), "refusals with a place:\n{unlisted}");
    for half in [
        "blind/",
        "informed/",
        "second/",
        "third/",
        "fourth/",
        "fifth/",
    ] {
        let of_half = listed.iter().zip(&refusals);
        let of_half = of_half.filter(|(listed, _)| listed.file.starts_with(half));
        let (all, taken) = of_half.fold((0, 0), |(all, taken), (_, refusal)| {
            (all + 1, taken + usize::from(refusal.is_none()))
        });
        println!("{half}: {taken} of {all} that fio takes\n{told}");
        assert!(taken * 100 >= all * TAKEN_PERCENT_MIN, "{half}: {told}");
    }
}

#[test]
fn those_that_run_do_as_many_ios_as_with_fio() {
    let mut listed = listed();
    listed.retain(|listed| listed.ios.is_some());
    let counts = each(&listed, Listed::counted);
    let (mut equal, mut told) = (0, String::new());
    for (listed, ours) in listed.iter().zip(counts) {
        let (Some(ours), Some(theirs)) = (ours, listed.ios) else {
            continue;
        };
        if ours == theirs {
            equal += 1;
            continue;
        }
        writeln!(told, "{}: {ours:?}, and fio {theirs:?}", listed.file).unwrap();
        // What is drawn, sizes or directions, is not drawn as fio does.
        let [ours, theirs] = [ours, theirs].map(|each| each.iter().sum::<u64>());
        let is_near = ours.abs_diff(theirs) * 4 <= theirs;
        assert!(is_near || listed.is_miscounted, "{told}");
    }
    println!("{equal} are equal\n{told}");
    assert!(equal >= EQUAL_MIN, "{equal} are equal: {told}");
}
