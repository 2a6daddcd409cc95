//! Suites: steps in order, with the protocol that repeats them.

use crate::program::Program;
use crate::programs::track_read::TRACK_BYTES;
use crate::worker::Medium;
use diskperf_timeline::{Protocol, Statistic, SteadyRule};
use std::collections::BTreeMap;

/// Steps in order, with a protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct Suite {
    /// Its name; of a program run by itself, the program's.
    pub name: String,
    /// How each step is repeated.
    pub protocol: Protocol,
    /// In the order of running.
    pub steps: Vec<Step>,
}

/// What runs at the same time; of most suites, one program.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// At least one. They begin together, and the step ends with the last of them.
    pub jobs: Vec<Job>,
}

/// One program of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// What its user calls it, where that is not the program's name.
    pub name: Option<String>,
    /// The program with its parameters.
    pub program: Program,
    /// What its user says that it does, where that is not by the program's parameters.
    pub options: BTreeMap<String, String>,
    /// The parameters that tell it from its siblings.
    pub distinguishing: Vec<String>,
    /// Its place in the table.
    pub row: u32,
    /// Jobs of one group move the same number of bytes: where the size is
    /// found by a pilot, that of the job in the group's middle serves all.
    pub size_group: u32,
    /// How it is repeated, where that is not as the suite has it; jobs of one step are
    /// repeated alike.
    pub protocol: Option<Protocol>,
    /// How often it moves its whole area, where that and not a size decides.
    pub area_times: Option<u32>,
    /// Bytes that each of its workers moves, where that is not the run's to say.
    pub size_bytes: Option<u64>,
}

/// What a job cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing special.
    Nothing,
    /// A target of another kind.
    OtherMedium,
    /// A directory on another file system beside its target.
    OtherFilesystem,
    /// A target that it may write to.
    Writing,
}

/// Four tests, three runs, the first of them "to clear out any useful data in
/// the cache" (Kridle and McKusick 1983, section 4).
const THREE_RUNS: Protocol = Protocol {
    repetitions: 3,
    discarded: 1,
    statistic: Statistic::Median,
    stop_below_share: None,
    steady: None,
};

/// Enough for the differences of the layers to be told from noise. Kirkendall 1989
/// timed each once, by whole seconds.
const FIVE_RUNS: Protocol = Protocol {
    repetitions: 5,
    ..THREE_RUNS
};

/// Enough for an interval, and for the tail of the latencies of all together.
const FIVE_AFTER_ONE: Protocol = Protocol {
    repetitions: 6,
    ..THREE_RUNS
};

/// What was brought to a steady state is as it is from the first repetition on.
const THREE_THAT_COUNT: Protocol = Protocol {
    discarded: 0,
    ..THREE_RUNS
};

/// Once, and it counts.
const ONCE: Protocol = Protocol {
    repetitions: 1,
    ..THREE_THAT_COUNT
};

/// SNIA's rounds until a drive is steady.
const UNTIL_STEADY: Protocol = Protocol {
    repetitions: SteadyRule::MOST_ROUNDS,
    steady: Some(SteadyRule::SNIA),
    ..THREE_THAT_COUNT
};

/// "The minima of several runs" (Zachariassen 1987).
const MINIMUM_OF_FIVE: Protocol = Protocol {
    repetitions: 5,
    statistic: Statistic::Minimum,
    ..THREE_THAT_COUNT
};

/// Up to ten runs, fewer where they agree within 1 % to each side.
const UNTIL_SURE: Protocol = Protocol {
    repetitions: 11,
    stop_below_share: Some(0.02),
    ..THREE_RUNS
};

/// The call sizes of Kirkendall 1989.
const SEQREAD_CALLS: [u64; 5] = [512, 1024, 2048, 8192, 16384];

/// "1 track" and "1 cylinder" of Zachariassen 1987's drive: 67 and 1809 sectors of 512
/// bytes. O_DIRECT wants multiples of a block, for which 512 is the smallest.
const COPY_CALLS: [u64; 3] = [8192, 67 * 512, 1809 * 512];

const SECTOR_BYTES: u64 = 512;

impl Suite {
    /// All suites, each with what it does.
    pub fn all() -> [(&'static str, &'static str); 6] {
        [
            (
                "today26",
                "what storage of today is asked for: sequential and random requests at several depths, a log",
            ),
            (
                "ffs83",
                "the 4.2BSD file system tests: read, write and rewrite a file (1983)",
            ),
            (
                "interleave91",
                "a drive by itself, read by tracks of 17 sectors and by single sectors (1991)",
            ),
            (
                "seqread89",
                "one file, read with five call sizes over the system's layers (1989)",
            ),
            (
                "ssd26",
                "a flash drive past its first bloom: written twice, written at random until steady, then measured",
            ),
            (
                "vme87",
                "dd between files and file systems, parallel readers, fsck, dump | restore (1987)",
            ),
        ]
    }

    /// The suite of this name, as it runs on this medium.
    pub fn named(name: &str, medium: Medium) -> Option<Self> {
        let (protocol, steps) = match name {
            "today26" => (FIVE_AFTER_ONE, today26()),
            "ffs83" => (THREE_RUNS, ffs83()),
            "interleave91" => (THREE_RUNS, interleave91()),
            "ssd26" => (THREE_THAT_COUNT, ssd26()),
            "seqread89" => (FIVE_RUNS, seqread89(medium)),
            "vme87" => (MINIMUM_OF_FIVE, vme87()),
            _ => return None,
        };
        Some(Self {
            name: name.to_owned(),
            protocol,
            steps,
        })
    }

    /// The same on a target that has a drive's files, and the drive itself as
    /// a character and as a block device, side by side.
    pub fn named_on_both(name: &str) -> Option<Self> {
        let suite = Self::named(name, Medium::Directory)?;
        Some(match name {
            "seqread89" => Self {
                steps: seqread(&LAYERS_OF_1989),
                ..suite
            },
            _ => suite,
        })
    }

    /// How a job of it is repeated.
    pub fn protocol_of(&self, job: &Job) -> Protocol {
        job.protocol.unwrap_or(self.protocol)
    }

    /// One program by itself.
    pub fn of_program(program: Program) -> Self {
        Self {
            name: program.name().to_owned(),
            protocol: UNTIL_SURE,
            steps: vec![Job::of(program).into()],
        }
    }

    /// The jobs of all steps, in the order of running: a result is kept of each.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> + Clone {
        self.steps.iter().flat_map(|step| &step.jobs)
    }

    /// The same, to change them.
    pub fn jobs_mut(&mut self) -> impl Iterator<Item = &mut Job> {
        self.steps.iter_mut().flat_map(|step| &mut step.jobs)
    }

    /// The programs of all jobs.
    pub fn programs(&self) -> impl Iterator<Item = &Program> + Clone {
        self.jobs().map(|job| &job.program)
    }
}

impl From<Job> for Step {
    /// A step that does nothing else.
    fn from(job: Job) -> Self {
        Self { jobs: vec![job] }
    }
}

impl Step {
    fn new(name: &str, row: u32, size_group: u32, settings: &[(&str, &str)]) -> Self {
        let mut program = Program::named(name).expect("suites name programs that exist");
        for (key, value) in settings {
            program
                .set(key, value)
                .expect("suites set parameters that exist");
        }
        let distinguishing = settings.iter().map(|(key, _)| (*key).to_owned()).collect();
        let job = Job {
            distinguishing,
            row,
            size_group,
            ..Job::of(program)
        };
        job.into()
    }
}

impl Job {
    /// A program as it is everywhere, in the first row of the table.
    pub fn of(program: Program) -> Self {
        Self {
            name: None,
            program,
            options: BTreeMap::new(),
            distinguishing: Vec::new(),
            row: 0,
            size_group: 0,
            protocol: None,
            area_times: None,
            size_bytes: None,
        }
    }

    /// Bytes that each of its workers moves whatever size is asked for, if so.
    pub fn own_bytes(&self) -> Option<u64> {
        self.size_bytes.or_else(|| self.bytes_of_area())
    }

    /// The same where it moves its area so many times.
    fn bytes_of_area(&self) -> Option<u64> {
        let all_bytes = self.area_bytes()?.saturating_mul(self.area_times?.into());
        Some(all_bytes.div_ceil(self.program.workers().into()))
    }

    /// Bytes that its requests are spread over, of a program with such a parameter.
    pub fn area_bytes(&self) -> Option<u64> {
        let area = self.program.parameter_values().get("area_bytes")?.parse();
        Some(area.expect("bytes are written as a number"))
    }

    /// What it is called: by its user, or as its program is.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| self.program.name())
    }

    /// Which files it works on: jobs that say the same here share them, as all share a
    /// drive by itself.
    pub fn files(&self, medium: Medium) -> (&str, &str) {
        let own = match medium {
            Medium::Directory => self.name.as_deref().unwrap_or_default(),
            Medium::Device | Medium::File => "",
        };
        (self.program.file_name(), own)
    }

    /// What a run keeps of what it does.
    pub fn values(&self) -> BTreeMap<String, String> {
        match self.options.is_empty() {
            true => self.program.parameter_values(),
            false => self.options.clone(),
        }
    }

    /// What it needs on this medium.
    pub fn needs(&self, medium: Medium) -> Needs {
        if !self.program.is_of(medium) {
            Needs::OtherMedium
        } else if self.program.needs_other() {
            Needs::OtherFilesystem
        } else if medium != Medium::Directory && self.program.writes() {
            Needs::Writing
        } else {
            Needs::Nothing
        }
    }
}

/// What the data sheets of drives are written in: MB/s of a mebibyte at depth 8, IOPS of
/// 4 KiB at depths 1 and 32; a mix of reads and writes, and a log, which data sheets omit.
fn today26() -> Vec<Step> {
    let steps: [(&str, &[(&str, &str)]); 8] = [
        ("sequential", &[("depth", "8")]),
        ("sequential", &[("write_share", "1"), ("depth", "8")]),
        ("random", &[("depth", "1")]),
        ("random", &[("depth", "32")]),
        ("random", &[("write_share", "1"), ("depth", "1")]),
        ("random", &[("write_share", "1"), ("depth", "32")]),
        ("random", &[("write_share", "0.3"), ("depth", "16")]),
        ("log_append", &[]),
    ];
    let steps = steps.into_iter().enumerate();
    steps
        .map(|(row, (name, settings))| Step::new(name, row as u32, row as u32, settings))
        .collect()
}

/// How long a round lasts until steady (SNIA's minute), and what is measured then.
const ROUND_MS: &str = "60000";
const MEASURED_MS: &str = "10000";

/// SNIA's SSS PTS, as far as data sheets go: a precondition that does not depend on the
/// workload (all of the drive written twice in 128 KiB), one that does (4 KiB at random
/// until steady), then the figures of data sheets and SNIA's mixes of reads and writes. What
/// writes sequentially comes last, since it changes what random writes find.
fn ssd26() -> Vec<Step> {
    let mut precondition = Step::new(
        "sequential",
        0,
        0,
        &[
            ("write_share", "1"),
            ("block_bytes", "131072"),
            ("depth", "8"),
        ],
    );
    precondition.jobs[0].protocol = Some(ONCE);
    precondition.jobs[0].area_times = Some(2);
    let mut rounds = Step::new("random", 1, 1, &[("write_share", "1"), ("depth", "32")]);
    set_all(&mut rounds, &[("duration_ms", ROUND_MS)]);
    rounds.jobs[0].protocol = Some(UNTIL_STEADY);
    let mut steps = vec![precondition, rounds];
    let measured: [(&str, &[(&str, &str)]); 9] = [
        ("random", &[("write_share", "1"), ("depth", "1")]),
        ("random", &[("depth", "1")]),
        ("random", &[("depth", "32")]),
        ("random", &[("write_share", "0.05"), ("depth", "32")]),
        ("random", &[("write_share", "0.35"), ("depth", "32")]),
        ("random", &[("write_share", "0.5"), ("depth", "32")]),
        ("random", &[("write_share", "0.95"), ("depth", "32")]),
        ("sequential", &[("depth", "32")]),
        ("sequential", &[("write_share", "1"), ("depth", "32")]),
    ];
    for (name, settings) in measured {
        let row = steps.len() as u32;
        let mut step = Step::new(name, row, row, settings);
        set_all(&mut step, &[("duration_ms", MEASURED_MS)]);
        steps.push(step);
    }
    steps
}

/// Sets parameters that do not tell a step from its siblings.
fn set_all(step: &mut Step, settings: &[(&str, &str)]) {
    for job in &mut step.jobs {
        for (name, value) in settings {
            let set = job.program.set(name, value);
            set.expect("suites set parameters that exist");
        }
    }
}

/// The order of the paper's script, the rows of the paper's tables.
fn ffs83() -> Vec<Step> {
    [
        ("write_4096", 1),
        ("write_8192", 2),
        ("read_8192", 0),
        ("rewrite_8192", 3),
    ]
    .into_iter()
    .enumerate()
    .map(|(group, (name, row))| Step::new(name, row, group as u32, &[]))
    .collect()
}

/// The layers of Kirkendall 1989: a file, `/dev/null`, `/dev/bnull`, `/dev/rhd2` and
/// `/dev/hd2`.
const LAYERS_OF_1989: [&str; 5] = ["dropped", "null", "bnull", "device_direct", "device"];

fn seqread89(medium: Medium) -> Vec<Step> {
    seqread(match medium {
        Medium::Directory | Medium::File => &["null", "zero", "cached", "dropped", "direct"],
        Medium::Device => &["null", "zero", "device", "device_direct"],
    })
}

fn seqread(layers: &[&str]) -> Vec<Step> {
    let mut steps = Vec::new();
    for (group, layer) in layers.iter().enumerate() {
        for call_bytes in SEQREAD_CALLS {
            let settings = [("layer", *layer), ("call_bytes", &call_bytes.to_string())];
            steps.push(Step::new(
                "seqread",
                steps.len() as u32,
                group as u32,
                &settings,
            ));
        }
    }
    steps
}

/// Each as the drive was formatted: the interleave is the drive's, not the
/// program's.
fn interleave91() -> Vec<Step> {
    [TRACK_BYTES, SECTOR_BYTES]
        .into_iter()
        .enumerate()
        .map(|(row, call_bytes)| {
            let settings = [("call_bytes", &*call_bytes.to_string())];
            Step::new("track_read", row as u32, 0, &settings)
        })
        .collect()
}

fn vme87() -> Vec<Step> {
    let mut steps = Vec::new();
    for (group, destination) in ["null", "same", "other"].into_iter().enumerate() {
        for call_bytes in COPY_CALLS {
            let settings = [
                ("destination", destination),
                ("call_bytes", &call_bytes.to_string()),
            ];
            steps.push(Step::new(
                "copy",
                steps.len() as u32,
                group as u32,
                &settings,
            ));
        }
    }
    for (readers, areas) in [("1", "same"), ("4", "same"), ("2", "different")] {
        let row = steps.len() as u32;
        steps.push(Step::new(
            "scan",
            row,
            3,
            &[("readers", readers), ("areas", areas)],
        ));
    }
    // Zachariassen 1987 starts them 5 s apart, as the program does by itself: most of
    // what a drive of today would then do is wait.
    let fscks: [&[(&str, &str)]; 2] = [
        &[("checkers", "1")],
        &[("checkers", "4"), ("offset_ms", "100")],
    ];
    let fscks = fscks.map(|settings| ("fsck", settings));
    // Both that were timed went to another file system.
    let copy: (&str, &[(&str, &str)]) = ("dump_restore", &[("destination", "other")]);
    for (program, settings) in fscks.into_iter().chain([copy]) {
        let row = steps.len() as u32;
        steps.push(Step::new(program, row, 4, settings));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_is_there_on_both_media() {
        for (name, _) in Suite::all() {
            for medium in [Medium::Directory, Medium::Device, Medium::File] {
                let suite = Suite::named(name, medium).unwrap_or_else(|| panic!("{name}"));
                assert!(suite.protocol.repetitions > suite.protocol.discarded);
                let mut rows: Vec<_> = suite.jobs().map(|job| job.row).collect();
                rows.sort_unstable();
                assert_eq!(
                    rows,
                    (0..suite.steps.len() as u32).collect::<Vec<_>>(),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn on_a_device_the_default_suite_only_reads() {
        let suite = Suite::named("seqread89", Medium::Device).unwrap();
        assert!(suite.programs().all(|program| !program.writes()));
    }
}
