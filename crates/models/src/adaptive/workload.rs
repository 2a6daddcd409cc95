//! Workloads of the comparison: those of the original text, and those that change in mid-run.

use diskperf_battery::Program;

/// A program that runs on one volume, with the amount of data.
#[derive(Clone, Debug)]
pub struct WorkloadPart {
    /// Program that runs on the volume.
    pub program: Program,
    /// Bytes that the program transfers on its volume.
    pub size_bytes: u64,
}

/// A workload: programs in one or more phases, on a configured system.
#[derive(Clone, Debug)]
pub struct AdaptiveWorkload {
    /// Description of the workload, its title in tables.
    pub name: String,
    /// Settings of the system, each as `PATH=VALUE`.
    pub settings: Vec<String>,
    /// Whether one more volume is present as a copy destination.
    pub has_other_volume: bool,
    /// Phases, one after the other. The programs of a phase run simultaneously, each on a volume of
    /// its own.
    pub phases: Vec<Vec<WorkloadPart>>,
    /// Whether the first pass counts, in which the controller has everything to learn. Otherwise
    /// the second pass counts.
    pub counts_first_phase: bool,
}

impl AdaptiveWorkload {
    pub(super) fn volume_count(&self) -> usize {
        self.phases.iter().map(Vec::len).max().unwrap_or(0)
    }
}

impl WorkloadPart {
    /// Creates a program with parameters.
    ///
    /// # Panics
    ///
    /// Panics if the battery has no such program or the program has no such parameter, which is a
    /// slip in this module.
    pub(super) fn new(name: &str, size_bytes: u64, parameters: &[(&str, &str)]) -> Self {
        let mut program = Program::from_name(name).expect("the battery has it");
        for (name, value) in parameters {
            program
                .set_parameter(name, value)
                .unwrap_or_else(|error| panic!("{error}"));
        }
        let unit_bytes = program.call_bytes();
        Self {
            program,
            size_bytes: size_bytes / unit_bytes * unit_bytes,
        }
    }
}

const TRACK_BYTES: &str = "34304";
const CYLINDER_BYTES: &str = "926208";
/// Bytes of partition a in Zachariassen 1987, read to its end, and of the file bigfile (about 8.5
/// MB).
const PARTITION_A_BYTES: u64 = 18_090 * 512;
const BIGFILE_BYTES: u64 = 8704 << 10;
/// Bytes of files that fsck checks: a third of those in Zachariassen 1987, so that fsck takes about
/// as long as the other programs.
const TREE_BYTES: u64 = 30 << 20;
/// Bytes that dump and restore copy, chosen so that they take about as long as the other programs.
const DUMPED_BYTES: u64 = 6 << 20;

const RAW_SETTING: &str = "filesystem=none";
const PARTITION_A_SETTING: &str = "drive.1.partitions=[[0, 18090]]";
const PARTITION_F_SETTING: &str = "drive.1.partitions=[[185, 280395]]";
const PARTITIONS_A_B_SETTING: &str = "drive.1.partitions=[[0, 18090], [10, 36180]]";

fn sequential_workload(name: &str, settings: &[&str], part: WorkloadPart) -> AdaptiveWorkload {
    concurrent_workload(name, settings, vec![part])
}

fn concurrent_workload(
    name: &str,
    settings: &[&str],
    parts: Vec<WorkloadPart>,
) -> AdaptiveWorkload {
    AdaptiveWorkload {
        name: name.to_owned(),
        settings: settings.iter().map(|text| (*text).to_owned()).collect(),
        has_other_volume: false,
        phases: vec![parts],
        counts_first_phase: false,
    }
}

fn fsck_part(checkers: &str) -> WorkloadPart {
    // Five seconds apart, of an fsck that is three times as long.
    let parameters = [("checkers", checkers), ("offset_ms", "1700")];
    WorkloadPart::new("fsck", TREE_BYTES, &parameters)
}

fn dd_part(size_bytes: u64, call_bytes: &str, destination: &str) -> WorkloadPart {
    let parameters = [("call_bytes", call_bytes), ("destination", destination)];
    WorkloadPart::new("copy", size_bytes, &parameters)
}

/// Returns the workloads of the original text: raw dd, file dd, fsck, parallel fscks, reads and
/// writes.
pub fn design_workloads() -> Vec<AdaptiveWorkload> {
    let other = |workload: AdaptiveWorkload| AdaptiveWorkload {
        has_other_volume: true,
        ..workload
    };
    vec![
        sequential_workload(
            "raw dd, 8k",
            &[RAW_SETTING, PARTITION_A_SETTING],
            dd_part(PARTITION_A_BYTES, "8192", "null"),
        ),
        sequential_workload(
            "raw dd, a track",
            &[RAW_SETTING, PARTITION_A_SETTING],
            dd_part(PARTITION_A_BYTES, TRACK_BYTES, "null"),
        ),
        sequential_workload(
            "raw dd, a cylinder",
            &[RAW_SETTING, PARTITION_A_SETTING],
            dd_part(PARTITION_A_BYTES, CYLINDER_BYTES, "null"),
        ),
        sequential_workload("file dd, 8k", &[], dd_part(BIGFILE_BYTES, "8192", "null")),
        sequential_workload(
            "file dd, a track",
            &[],
            dd_part(BIGFILE_BYTES, TRACK_BYTES, "null"),
        ),
        sequential_workload("fsck", &[], fsck_part("1")),
        sequential_workload("four fscks of one partition", &[], fsck_part("4")),
        concurrent_workload(
            "two fscks of two partitions",
            &[],
            vec![fsck_part("1"), fsck_part("1")],
        ),
        sequential_workload(
            "file copied, 8k",
            &[],
            dd_part(BIGFILE_BYTES, "8192", "same"),
        ),
        other(sequential_workload(
            "file copied to another partition, 8k",
            &[],
            dd_part(BIGFILE_BYTES, "8192", "other"),
        )),
        other(sequential_workload(
            "raw copied to another partition, 8k",
            &[RAW_SETTING, PARTITIONS_A_B_SETTING],
            dd_part(PARTITION_A_BYTES, "8192", "other"),
        )),
        other(sequential_workload(
            "dump | restore to another partition",
            &[],
            WorkloadPart::new("dump_restore", DUMPED_BYTES, &[("destination", "other")]),
        )),
    ]
}

/// Returns the workloads that change in mid-run.
pub fn changing_workloads() -> Vec<AdaptiveWorkload> {
    let changing = |name: &str, settings: &[&str], phases: Vec<WorkloadPart>| AdaptiveWorkload {
        phases: phases.into_iter().map(|part| vec![part]).collect(),
        counts_first_phase: true,
        ..concurrent_workload(name, settings, Vec::new())
    };
    let random = |write_share: &str| {
        let parameters = [
            ("sizes", "2048:1,4096:1,8192:1"),
            ("write_share", write_share),
            ("area_bytes", "8M"),
            ("align_bytes", "512"),
        ];
        WorkloadPart::new("random_mix", 2 << 20, &parameters)
    };
    vec![
        changing(
            "fsck, then a file read",
            &[],
            vec![fsck_part("1"), dd_part(2 * BIGFILE_BYTES, "8192", "null")],
        ),
        changing(
            "raw dd, then raw at random",
            &[RAW_SETTING, PARTITION_F_SETTING],
            vec![dd_part(PARTITION_A_BYTES, "8192", "null"), random("0")],
        ),
        changing(
            "raw at random with writes, then raw dd by tracks",
            &[RAW_SETTING, PARTITION_F_SETTING],
            vec![
                random("0.3"),
                dd_part(PARTITION_A_BYTES, TRACK_BYTES, "null"),
            ],
        ),
        changing(
            "file copied, then read, then written over, then fsck",
            &[],
            vec![
                dd_part(BIGFILE_BYTES, "8192", "same"),
                dd_part(BIGFILE_BYTES, "8192", "null"),
                WorkloadPart::new("rewrite_8192", BIGFILE_BYTES, &[]),
                fsck_part("1"),
            ],
        ),
    ]
}
