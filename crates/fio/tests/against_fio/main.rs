//! The same job file by the installed fio and here: values, offsets, counts, results.
//! Where fio is not installed, these say loudly that they are skipped.

#[path = "../installed/mod.rs"]
mod installed;
mod options;
mod programs;
mod readings;
mod results;
mod runs;
mod sentences;

use diskperf_fio::{Errors, JobEnvironment, JobFile};
use installed::is_fio_installed;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// fio, in a folder of its own.
pub(crate) struct Fio {
    pub(crate) folder: TempDir,
}

/// What fio's parser makes of an option.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Parsed {
    /// Each `out=` that it takes, in order.
    pub(crate) outs: Vec<i128>,
    /// Whether it takes the job.
    pub(crate) is_taken: bool,
}

impl Fio {
    /// Nothing if there is none.
    pub(crate) fn installed() -> Option<Fio> {
        is_fio_installed().then(|| Fio {
            folder: tempfile::tempdir().expect("a folder"),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs fio on a job file with some arguments; its output and whether it went well.
    pub(crate) fn run(&self, job: &str, arguments: &[&str]) -> (String, bool) {
        std::fs::write(self.path().join("job.fio"), job).expect("a job file");
        let output = Command::new("fio")
            .args(arguments)
            .arg("job.fio")
            .current_dir(self.path())
            .env("LC_ALL", "C")
            .output()
            .expect("fio");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        (text + &errors, output.status.success())
    }

    /// What its parser makes of an option in each of many sections: lines, and fio's name
    /// of the option to look at. fio takes half a second to start, and stops at the first
    /// section that it drops: it is started again for those behind.
    pub(crate) fn parse(&self, sections: &[(String, &str)]) -> Vec<Parsed> {
        let mut parsed = Vec::new();
        while parsed.len() < sections.len() {
            let rest = &sections[parsed.len()..];
            let mut job = String::new();
            for (number, (lines, _)) in rest.iter().enumerate() {
                write!(job, "[job{number}]\n{lines}\n").expect("a string");
            }
            let (text, went_well) = self.run(&job, &["--parse-only", "--debug=parse"]);
            let blocks: Vec<&str> = text.split("Parsing section [").skip(1).collect();
            assert!(!blocks.is_empty(), "fio parses nothing of {job}: {text}");
            for (number, (block, (_, key))) in blocks.iter().zip(rest).enumerate() {
                let is_last = number + 1 == blocks.len();
                parsed.push(Parsed {
                    outs: outs(block, key),
                    is_taken: went_well || !is_last,
                });
            }
        }
        parsed
    }
}

/// The values of the last time that an option is handled.
fn outs(debug: &str, key: &str) -> Vec<i128> {
    let begins = format!(" handle_option={key},");
    let Some(start) = debug.rfind(&begins) else {
        return Vec::new();
    };
    let mut values = Vec::new();
    for line in debug[start..].lines().skip(1) {
        if line.contains(" handle_option=") {
            break;
        }
        if let Some((_, value)) = line.split_once("ret=0, out=") {
            values.extend(value.trim().parse::<i128>());
        } else if let Some((_, value)) = line.split_once(" out=") {
            // Fractions are compared to a millionth.
            let value: f64 = value.trim().parse().unwrap_or(f64::NAN);
            if !line.contains("ret=") {
                values.push((value * 1e6).round() as i128);
            }
        }
    }
    values
}

pub(crate) fn ours(job: &str) -> Result<JobFile, Errors> {
    JobFile::parse("job.fio", job, &JobEnvironment::default())
}
