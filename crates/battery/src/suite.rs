//! Suites of programs: steps in order, and the protocol that repeats them.

mod probes;

use crate::program::Program;
use crate::programs::track_read::TRACK_BYTES;
use crate::worker::Medium;
use diskperf_timeline::{Protocol, SteadyRule, SummaryStatistic};
use std::collections::BTreeMap;

/// Suite: steps in order, with a repetition protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct Suite {
    /// Name of the suite. For a single program, the program's name.
    pub name: String,
    /// Protocol that repeats each step.
    pub default_protocol: Protocol,
    /// Steps of the suite, in the order of execution.
    pub steps: Vec<SuiteStep>,
}

/// Jobs that run at the same time. Most suites have one job per step.
#[derive(Clone, Debug, PartialEq)]
pub struct SuiteStep {
    /// Jobs of the step, at least one. They start together, and the step ends when the last job
    /// ends.
    pub parallel_jobs: Vec<SuiteJob>,
}

/// Job of a step: one program.
#[derive(Clone, Debug, PartialEq)]
pub struct SuiteJob {
    /// Name that the user gave the job. `None` means the program's name.
    pub job_name: Option<String>,
    /// Program of the job, with its parameters.
    pub program: Program,
    /// Options as the user wrote them, if the program's parameters do not describe the job.
    /// Otherwise empty.
    pub fio_options: BTreeMap<String, String>,
    /// Names of the parameters that distinguish the job from similar jobs.
    pub distinguishing_parameters: Vec<String>,
    /// Row of the job in the results table.
    pub table_row: u32,
    /// Number of the size group. Jobs of one group move the same number of bytes. If a pilot run
    /// determines the size, the job in the middle of the group sets it for all.
    pub size_group: u32,
    /// Repetition protocol of the job, or `None` for that of the suite. Jobs of one step have the
    /// same protocol.
    pub own_protocol: Option<Protocol>,
    /// Number of times that the job moves its whole area, if that determines its size.
    pub area_pass_count: Option<u32>,
    /// Bytes that each worker of the job moves, or `None` if the run decides.
    pub size_bytes: Option<u64>,
}

/// Special requirement of a job on its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetNeeds {
    /// Job without special requirements.
    NoSpecialTarget,
    /// The job needs a target of another kind.
    MediumOfOtherKind,
    /// The job needs a directory on another file system in addition to its target.
    SecondFilesystem,
    /// The job needs permission to write to its target.
    WritableTarget,
}

/// Three runs, the first of them discarded "to clear out any useful data in the cache" (Kridle and
/// McKusick 1983, section 4).
const THREE_RUNS: Protocol = Protocol {
    repetition_count: 3,
    discarded_count: 1,
    statistic: SummaryStatistic::Median,
    stop_below_share: None,
    steady_rule: None,
};

/// Five runs, enough to separate the layers from noise. Kirkendall 1989 timed each layer once, in
/// whole seconds.
const FIVE_RUNS: Protocol = Protocol {
    repetition_count: 5,
    ..THREE_RUNS
};

/// Five runs after a discarded one, enough for an interval and for the tail of all latencies
/// together.
const FIVE_RUNS_AFTER_DISCARDED: Protocol = Protocol {
    repetition_count: 6,
    ..THREE_RUNS
};

/// Three runs without a discarded one, for a drive that is already in a steady state at the first
/// repetition.
const THREE_RUNS_NONE_DISCARDED: Protocol = Protocol {
    discarded_count: 0,
    ..THREE_RUNS
};

const ONE_RUN: Protocol = Protocol {
    repetition_count: 1,
    ..THREE_RUNS_NONE_DISCARDED
};

/// Rounds of SNIA until a drive is in a steady state.
const RUNS_UNTIL_STEADY: Protocol = Protocol {
    repetition_count: SteadyRule::ROUNDS_MAX,
    steady_rule: Some(SteadyRule::SNIA_RULE),
    ..THREE_RUNS_NONE_DISCARDED
};

/// Five runs. The fastest counts: "the minima of several runs" (Zachariassen 1987).
const MINIMUM_OF_FIVE: Protocol = Protocol {
    repetition_count: 5,
    statistic: SummaryStatistic::Minimum,
    ..THREE_RUNS_NONE_DISCARDED
};

/// Up to ten runs after a discarded one. It stops earlier once the runs agree within 1 % to either
/// side.
const RUNS_UNTIL_AGREEMENT: Protocol = Protocol {
    repetition_count: 11,
    stop_below_share: Some(0.02),
    ..THREE_RUNS
};

/// Call sizes of Kirkendall 1989, in bytes.
const SEQREAD_CALL_BYTES: [u64; 5] = [512, 1024, 2048, 8192, 16384];

/// Call sizes of Zachariassen 1987, in bytes. The last two are "1 track" and "1 cylinder" of his
/// drive, 67 and 1809 sectors of 512 bytes. O_DIRECT needs multiples of a block, which is at least
/// 512 bytes.
const COPY_CALL_BYTES: [u64; 3] = [8192, 67 * 512, 1809 * 512];

const SECTOR_BYTES: u64 = 512;

impl Suite {
    /// Returns the names and descriptions of all suites.
    pub fn list_suites() -> [(&'static str, &'static str); 6] {
        [
            (
                "today26",
                "workloads of current storage: sequential and random requests at several queue \
                 depths, and a log",
            ),
            (
                "ffs83",
                "the 4.2BSD file system tests: read, write and rewrite a file (1983)",
            ),
            (
                "interleave91",
                "a bare drive, read by tracks of 17 sectors and by single sectors (1991)",
            ),
            (
                "seqread89",
                "one file, read with five call sizes through the layers of the system (1989)",
            ),
            (
                "ssd26",
                "a preconditioned flash drive: written twice, written at random until steady, \
                 then measured",
            ),
            (
                "vme87",
                "dd between files and file systems, parallel readers, fsck, dump | restore (1987)",
            ),
        ]
    }

    /// Returns the suite of this name for a medium, or `None` if there is no such suite.
    pub fn from_name(name: &str, medium: Medium) -> Option<Self> {
        let (protocol, steps) = match name {
            "today26" => (FIVE_RUNS_AFTER_DISCARDED, steps_of_today26()),
            "ffs83" => (THREE_RUNS, steps_of_ffs83()),
            "interleave91" => (THREE_RUNS, steps_of_interleave91()),
            "ssd26" => (THREE_RUNS_NONE_DISCARDED, steps_of_ssd26()),
            "seqread89" => (FIVE_RUNS, steps_of_seqread89(medium)),
            "vme87" => (MINIMUM_OF_FIVE, steps_of_vme87()),
            _ => return None,
        };
        Some(Self {
            name: name.to_owned(),
            default_protocol: protocol,
            steps,
        })
    }

    /// Returns the suite of this name for a target that has the files of a drive and the drive
    /// itself, as a character and as a block device.
    pub fn from_name_on_any_medium(name: &str) -> Option<Self> {
        let suite = Self::from_name(name, Medium::Directory)?;
        Some(match name {
            "seqread89" => Self {
                steps: steps_of_layers(&LAYERS_OF_1989),
                ..suite
            },
            _ => suite,
        })
    }

    /// Returns the repetition protocol of a job of the suite.
    pub fn protocol_of_job(&self, job: &SuiteJob) -> Protocol {
        job.own_protocol.unwrap_or(self.default_protocol)
    }

    /// Creates a suite of a single program.
    pub fn from_program(program: Program) -> Self {
        Self {
            name: program.name().to_owned(),
            default_protocol: match program.repeats_by_itself() {
                true => ONE_RUN,
                false => RUNS_UNTIL_AGREEMENT,
            },
            steps: vec![SuiteJob::from_program(program).into()],
        }
    }

    /// Iterates over the jobs of all steps, in the order of execution. A run keeps one result for
    /// each job.
    pub fn iter_jobs(&self) -> impl Iterator<Item = &SuiteJob> + Clone {
        self.steps.iter().flat_map(|step| &step.parallel_jobs)
    }

    /// Iterates mutably over the jobs of all steps.
    pub fn iter_jobs_mut(&mut self) -> impl Iterator<Item = &mut SuiteJob> {
        self.steps
            .iter_mut()
            .flat_map(|step| &mut step.parallel_jobs)
    }

    /// Iterates over the programs of all jobs.
    pub fn iter_programs(&self) -> impl Iterator<Item = &Program> + Clone {
        self.iter_jobs().map(|job| &job.program)
    }
}

impl From<SuiteJob> for SuiteStep {
    fn from(job: SuiteJob) -> Self {
        Self {
            parallel_jobs: vec![job],
        }
    }
}

impl SuiteStep {
    fn new(name: &str, row: u32, size_group: u32, settings: &[(&str, &str)]) -> Self {
        let mut program = Program::from_name(name).expect("suites name programs that exist");
        for (key, value) in settings {
            program
                .set_parameter(key, value)
                .expect("suites set parameters that exist");
        }
        let distinguishing = settings.iter().map(|(key, _)| (*key).to_owned()).collect();
        let job = SuiteJob {
            distinguishing_parameters: distinguishing,
            table_row: row,
            size_group,
            ..SuiteJob::from_program(program)
        };
        job.into()
    }
}

impl SuiteJob {
    /// Creates a job of a program with default settings, in the first row of the table.
    pub fn from_program(program: Program) -> Self {
        Self {
            job_name: None,
            program,
            fio_options: BTreeMap::new(),
            distinguishing_parameters: Vec::new(),
            table_row: 0,
            size_group: 0,
            own_protocol: None,
            area_pass_count: None,
            size_bytes: None,
        }
    }

    /// Returns the bytes that each worker of the job moves regardless of the requested size, or
    /// `None` if the requested size counts.
    pub fn own_size_bytes(&self) -> Option<u64> {
        self.size_bytes.or_else(|| self.area_passes_bytes())
    }

    /// Returns the bytes that each worker moves if the job moves its whole area a fixed number of
    /// times.
    fn area_passes_bytes(&self) -> Option<u64> {
        let all_bytes = self
            .area_bytes()?
            .saturating_mul(self.area_pass_count?.into());
        Some(all_bytes.div_ceil(self.program.worker_count().into()))
    }

    /// Returns the bytes over which the job's requests are spread, or `None` if its program has no
    /// such parameter.
    pub fn area_bytes(&self) -> Option<u64> {
        let area = self.program.parameter_values().get("area_bytes")?.parse();
        Some(area.expect("bytes are written as a number"))
    }

    /// Returns the name of the job: the user's name or the program's.
    pub fn display_name(&self) -> &str {
        self.job_name
            .as_deref()
            .unwrap_or_else(|| self.program.name())
    }

    /// Returns the key of the job's files. Jobs with the same key share their files, as all jobs
    /// share a bare drive.
    pub fn file_set_of_medium(&self, medium: Medium) -> (&str, &str) {
        let own = match medium {
            Medium::Directory => self.job_name.as_deref().unwrap_or_default(),
            Medium::Device | Medium::File => "",
        };
        (self.program.file_name(), own)
    }

    /// Returns the settings of the job that a run records.
    pub fn parameter_values(&self) -> BTreeMap<String, String> {
        match self.fio_options.is_empty() {
            true => self.program.parameter_values(),
            false => self.fio_options.clone(),
        }
    }

    /// Returns the requirement of the job on a medium.
    pub fn target_needs(&self, medium: Medium) -> TargetNeeds {
        if !self.program.supports_medium(medium) {
            TargetNeeds::MediumOfOtherKind
        } else if self.program.needs_second_target() {
            TargetNeeds::SecondFilesystem
        } else if medium != Medium::Directory && self.program.writes_target() {
            TargetNeeds::WritableTarget
        } else {
            TargetNeeds::NoSpecialTarget
        }
    }
}

/// Returns the steps of `today26`, which follow the data sheets of drives: MB/s with 1 MiB at queue
/// depth 8, and IOPS with 4 KiB at queue depths 1 and 32. Data sheets omit the other two steps, a
/// mix of reads and writes, and a log.
fn steps_of_today26() -> Vec<SuiteStep> {
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
        .map(|(row, (name, settings))| SuiteStep::new(name, row as u32, row as u32, settings))
        .collect()
}

/// Duration of a round on the way to the steady state, in milliseconds (SNIA's minute).
/// `MEASUREMENT_MS` is the duration of a measured step.
const PRECONDITIONING_ROUND_MS: &str = "60000";
const MEASUREMENT_MS: &str = "10000";

/// Returns the steps of `ssd26`, which follow SNIA's SSS PTS as far as data sheets do. A
/// workload-independent precondition writes the whole drive twice in 128 KiB. A workload-dependent
/// one writes 4 KiB at random until the drive is steady. Then come the figures of data sheets and
/// SNIA's mixes of reads and writes. Sequential writes come last, since they change the conditions
/// of random writes.
fn steps_of_ssd26() -> Vec<SuiteStep> {
    let mut precondition = SuiteStep::new(
        "sequential",
        0,
        0,
        &[
            ("write_share", "1"),
            ("block_bytes", "131072"),
            ("depth", "8"),
        ],
    );
    precondition.parallel_jobs[0].own_protocol = Some(ONE_RUN);
    precondition.parallel_jobs[0].area_pass_count = Some(2);
    let mut rounds = SuiteStep::new("random", 1, 1, &[("write_share", "1"), ("depth", "32")]);
    set_for_all_jobs(&mut rounds, &[("duration_ms", PRECONDITIONING_ROUND_MS)]);
    rounds.parallel_jobs[0].own_protocol = Some(RUNS_UNTIL_STEADY);
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
        let mut step = SuiteStep::new(name, row, row, settings);
        set_for_all_jobs(&mut step, &[("duration_ms", MEASUREMENT_MS)]);
        steps.push(step);
    }
    steps
}

/// Sets parameters of a step that do not distinguish it from similar steps.
fn set_for_all_jobs(step: &mut SuiteStep, settings: &[(&str, &str)]) {
    for job in &mut step.parallel_jobs {
        for (name, value) in settings {
            let set = job.program.set_parameter(name, value);
            set.expect("suites set parameters that exist");
        }
    }
}

/// Returns the steps of `ffs83`, in the order of the paper's script and with the rows of the
/// paper's tables.
fn steps_of_ffs83() -> Vec<SuiteStep> {
    [
        ("write_4096", 1),
        ("write_8192", 2),
        ("read_8192", 0),
        ("rewrite_8192", 3),
    ]
    .into_iter()
    .enumerate()
    .map(|(group, (name, row))| SuiteStep::new(name, row, group as u32, &[]))
    .collect()
}

/// Layers of Kirkendall 1989: a file, `/dev/null`, `/dev/bnull`, `/dev/rhd2` and `/dev/hd2`.
const LAYERS_OF_1989: [&str; 5] = ["dropped", "null", "bnull", "device_direct", "device"];

fn steps_of_seqread89(medium: Medium) -> Vec<SuiteStep> {
    steps_of_layers(match medium {
        Medium::Directory | Medium::File => &["null", "zero", "cached", "dropped", "direct"],
        Medium::Device => &["null", "zero", "device", "device_direct"],
    })
}

fn steps_of_layers(layers: &[&str]) -> Vec<SuiteStep> {
    let mut steps = Vec::new();
    for (group, layer) in layers.iter().enumerate() {
        for call_bytes in SEQREAD_CALL_BYTES {
            let settings = [("layer", *layer), ("call_bytes", &call_bytes.to_string())];
            steps.push(SuiteStep::new(
                "seqread",
                steps.len() as u32,
                group as u32,
                &settings,
            ));
        }
    }
    steps
}

/// Returns the steps of `interleave91`. Each runs on the drive as formatted: the interleave belongs
/// to the drive and not to the program.
fn steps_of_interleave91() -> Vec<SuiteStep> {
    [TRACK_BYTES, SECTOR_BYTES]
        .into_iter()
        .enumerate()
        .map(|(row, call_bytes)| {
            let settings = [("call_bytes", &*call_bytes.to_string())];
            SuiteStep::new("track_read", row as u32, 0, &settings)
        })
        .collect()
}

fn steps_of_vme87() -> Vec<SuiteStep> {
    let mut steps = Vec::new();
    for (group, destination) in ["null", "same", "other"].into_iter().enumerate() {
        for call_bytes in COPY_CALL_BYTES {
            let settings = [
                ("destination", destination),
                ("call_bytes", &call_bytes.to_string()),
            ];
            steps.push(SuiteStep::new(
                "copy",
                steps.len() as u32,
                group as u32,
                &settings,
            ));
        }
    }
    for (readers, areas) in [("1", "same"), ("4", "same"), ("2", "different")] {
        let row = steps.len() as u32;
        steps.push(SuiteStep::new(
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
        steps.push(SuiteStep::new(program, row, 4, settings));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_is_there_on_both_media() {
        for (name, _) in Suite::list_suites() {
            for medium in [Medium::Directory, Medium::Device, Medium::File] {
                let suite = Suite::from_name(name, medium).unwrap_or_else(|| panic!("{name}"));
                assert!(
                    suite.default_protocol.repetition_count
                        > suite.default_protocol.discarded_count
                );
                let mut rows: Vec<_> = suite.iter_jobs().map(|job| job.table_row).collect();
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
        let suite = Suite::from_name("seqread89", Medium::Device).unwrap();
        assert!(
            suite
                .iter_programs()
                .all(|program| !program.writes_target())
        );
    }
}
