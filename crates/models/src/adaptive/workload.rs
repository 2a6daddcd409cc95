//! Workloads of the comparison: those of the original text, and those that change in mid-run.

use diskperf_battery::Program;

/// A program that runs on one volume, with the amount of data.
#[derive(Clone, Debug)]
pub struct Part {
    /// Program that runs on the volume.
    pub program: Program,
    /// Bytes that the program transfers on its volume.
    pub size_bytes: u64,
}

/// A workload: programs in one or more phases, on a configured system.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Description of the workload, its title in tables.
    pub name: String,
    /// Settings of the system, each as `PATH=VALUE`.
    pub settings: Vec<String>,
    /// Whether one more volume is present as a copy destination.
    pub other: bool,
    /// Phases, one after the other. The programs of a phase run simultaneously, each on a volume of
    /// its own.
    pub phases: Vec<Vec<Part>>,
    /// Whether the first pass counts, in which the controller has everything to learn. Otherwise
    /// the second pass counts.
    pub counts_first: bool,
}

impl Workload {
    /// Number of volumes that programs run on.
    pub(super) fn volumes(&self) -> usize {
        self.phases.iter().map(Vec::len).max().unwrap_or(0)
    }
}

impl Part {
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

const TRACK: &str = "34304";
const CYLINDER: &str = "926208";
/// Bytes of partition a in Zachariassen 1987, read to its end, and of the file bigfile (about 8.5
/// MB).
const A_BYTES: u64 = 18_090 * 512;
const BIGFILE_BYTES: u64 = 8704 << 10;
/// Bytes of files that fsck checks: a third of those in Zachariassen 1987, so that fsck takes about
/// as long as the other programs.
const TREE_BYTES: u64 = 30 << 20;
/// Bytes that dump and restore copy, chosen so that they take about as long as the other programs.
const DUMPED_BYTES: u64 = 6 << 20;

const RAW: &str = "filesystem=none";
const A: &str = "drive.1.partitions=[[0, 18090]]";
const F: &str = "drive.1.partitions=[[185, 280395]]";
const A_AND_B: &str = "drive.1.partitions=[[0, 18090], [10, 36180]]";

fn one(name: &str, settings: &[&str], part: Part) -> Workload {
    at_once(name, settings, vec![part])
}

fn at_once(name: &str, settings: &[&str], parts: Vec<Part>) -> Workload {
    Workload {
        name: name.to_owned(),
        settings: settings.iter().map(|text| (*text).to_owned()).collect(),
        other: false,
        phases: vec![parts],
        counts_first: false,
    }
}

fn fsck(checkers: &str) -> Part {
    // Five seconds apart, of an fsck that is three times as long.
    let parameters = [("checkers", checkers), ("offset_ms", "1700")];
    Part::new("fsck", TREE_BYTES, &parameters)
}

fn dd(size_bytes: u64, call_bytes: &str, destination: &str) -> Part {
    let parameters = [("call_bytes", call_bytes), ("destination", destination)];
    Part::new("copy", size_bytes, &parameters)
}

/// Returns the workloads of the original text: raw dd, file dd, fsck, parallel fscks, reads and
/// writes.
pub fn of_the_seed() -> Vec<Workload> {
    let other = |workload: Workload| Workload {
        other: true,
        ..workload
    };
    vec![
        one("raw dd, 8k", &[RAW, A], dd(A_BYTES, "8192", "null")),
        one("raw dd, a track", &[RAW, A], dd(A_BYTES, TRACK, "null")),
        one(
            "raw dd, a cylinder",
            &[RAW, A],
            dd(A_BYTES, CYLINDER, "null"),
        ),
        one("file dd, 8k", &[], dd(BIGFILE_BYTES, "8192", "null")),
        one("file dd, a track", &[], dd(BIGFILE_BYTES, TRACK, "null")),
        one("fsck", &[], fsck("1")),
        one("four fscks of one partition", &[], fsck("4")),
        at_once(
            "two fscks of two partitions",
            &[],
            vec![fsck("1"), fsck("1")],
        ),
        one("file copied, 8k", &[], dd(BIGFILE_BYTES, "8192", "same")),
        other(one(
            "file copied to another partition, 8k",
            &[],
            dd(BIGFILE_BYTES, "8192", "other"),
        )),
        other(one(
            "raw copied to another partition, 8k",
            &[RAW, A_AND_B],
            dd(A_BYTES, "8192", "other"),
        )),
        other(one(
            "dump | restore to another partition",
            &[],
            Part::new("dump_restore", DUMPED_BYTES, &[("destination", "other")]),
        )),
    ]
}

/// Returns the workloads that change in mid-run.
pub fn changes() -> Vec<Workload> {
    let changing = |name: &str, settings: &[&str], phases: Vec<Part>| Workload {
        phases: phases.into_iter().map(|part| vec![part]).collect(),
        counts_first: true,
        ..at_once(name, settings, Vec::new())
    };
    let random = |write_share: &str| {
        let parameters = [
            ("sizes", "2048:1,4096:1,8192:1"),
            ("write_share", write_share),
            ("area_bytes", "8M"),
            ("align_bytes", "512"),
        ];
        Part::new("random_mix", 2 << 20, &parameters)
    };
    vec![
        changing(
            "fsck, then a file read",
            &[],
            vec![fsck("1"), dd(2 * BIGFILE_BYTES, "8192", "null")],
        ),
        changing(
            "raw dd, then raw at random",
            &[RAW, F],
            vec![dd(A_BYTES, "8192", "null"), random("0")],
        ),
        changing(
            "raw at random with writes, then raw dd by tracks",
            &[RAW, F],
            vec![random("0.3"), dd(A_BYTES, TRACK, "null")],
        ),
        changing(
            "file copied, then read, then written over, then fsck",
            &[],
            vec![
                dd(BIGFILE_BYTES, "8192", "same"),
                dd(BIGFILE_BYTES, "8192", "null"),
                Part::new("rewrite_8192", BIGFILE_BYTES, &[]),
                fsck("1"),
            ],
        ),
    ]
}
