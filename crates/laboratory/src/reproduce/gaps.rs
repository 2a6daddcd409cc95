//! Unmeasured claims of Piziali and Zam 1991: the gap of mkfs in both readings and the interleave
//! of the drive, for small and large files, contiguous or scattered.

use super::asking::{ModelQueries, parse_settings};
use super::interleave::DOCUMENT_ID;
use super::jobs::ModelJob;
use diskperf_analysis::accuracy::{Finding, PublishedStatement};
use diskperf_battery::{Medium, Program};
use diskperf_models::LaboratoryError;
use diskperf_models::model::computer::ModelComputer;
use diskperf_models::rig::THREE_REPETITIONS;
use diskperf_timeline::Protocol;
use std::sync::Arc;

const MODEL_SYSTEM: &str = "pcat-st251";
const INTERLEAVE_FACTORS: [&str; 3] = ["1", "2", "3"];
const GAP_SECTORS: [&str; 3] = ["0", "1", "2"];
const CYLINDER_GAP_SECTORS: [&str; 7] = ["0", "1", "2", "3", "4", "5", "6"];
/// Interleave at which a sequential read loses time only at the ends of cylinders.
const CONTIGUOUS_GAP: &str = "2";

/// Bytes to read for each figure: several cylinders of 51 KB.
const LOAD_BYTES: u64 = 512 << 10;
/// Bytes to read for each figure that the ends of cylinders determine.
const LONG_LOAD_BYTES: u64 = 2 << 20;

#[derive(Clone, Copy)]
struct GapLoad {
    name: &'static str,
    size_bytes: u64,
    file_bytes: u64,
    churn_files: u64,
}

const LARGE_FILES: GapLoad = GapLoad {
    name: "a large file",
    size_bytes: LOAD_BYTES,
    file_bytes: LOAD_BYTES,
    churn_files: 0,
};
/// Files of "one or two disk blocks in size", as Piziali and Zam 1991 say.
const SMALL_FILES: GapLoad = GapLoad {
    name: "files of 1 KB",
    size_bytes: LOAD_BYTES,
    file_bytes: 1024,
    churn_files: 0,
};
const LONG_FILE: GapLoad = GapLoad {
    name: "a file of 2 MB",
    size_bytes: LONG_LOAD_BYTES,
    file_bytes: LONG_LOAD_BYTES,
    churn_files: 0,
};
const FRAGMENTED_FILES: GapLoad = GapLoad {
    name: "a large file in pieces",
    size_bytes: LOAD_BYTES,
    file_bytes: LOAD_BYTES,
    churn_files: 3,
};

struct GapCase {
    load: GapLoad,
    interleave: &'static str,
    gap: &'static str,
    cylinder_gap: &'static str,
}

impl GapCase {
    /// Cases of a load with every interleave and every gap between blocks.
    fn all_cases(load: GapLoad) -> Vec<Self> {
        let case = |interleave, gap| Self {
            load,
            interleave,
            gap,
            cylinder_gap: "0",
        };
        let gaps = |interleave| GAP_SECTORS.map(|gap| case(interleave, gap));
        INTERLEAVE_FACTORS.into_iter().flat_map(gaps).collect()
    }

    fn matches(&self, interleave: &str, gap: &str) -> bool {
        self.interleave == interleave && self.gap == gap
    }

    fn to_finding(&self, kb_per_s: f64) -> Finding {
        Finding::new(
            &format!(
                "{}, {}:1, gap {} between blocks",
                self.load.name, self.interleave, self.gap
            ),
            kb_per_s,
            "KB/s",
        )
    }
}

/// Returns the predictions of Piziali and Zam 1991, in the order of their letters.
pub(super) fn check_statements(
    asking: &ModelQueries<'_>,
) -> Result<Vec<PublishedStatement>, LaboratoryError> {
    let computer = ModelComputer::read_catalogue(asking.catalogue, MODEL_SYSTEM, asking.settings)?;
    if computer.medium() != Medium::Directory {
        // The settings leave the files out.
        return Ok(Vec::new());
    }
    Ok(vec![
        check_scattered(asking)?,
        check_contiguous(asking)?,
        check_cylinder_gaps(asking)?,
    ])
}

fn check_scattered(asking: &ModelQueries<'_>) -> Result<PublishedStatement, LaboratoryError> {
    let small = measure_rates(asking, GapCase::all_cases(SMALL_FILES))?;
    let fragmented = measure_rates(asking, GapCase::all_cases(FRAGMENTED_FILES))?;
    let (best_small, best_fragmented) = (find_best(&small), find_best(&fragmented));
    let holds = best_small.0.matches("3", "2") && best_fragmented.0.matches("3", "2");
    let conclusion = format!(
        "Best for files of two blocks: {}. Best for a file in pieces: {}; 3:1 with a gap of 2 gives {:.0}. Interleave and gap multiply: at 3:1 with a gap of 2 a block is nine sectors from the next, which is what opening the next small file takes (with what namei is assumed to take), and too much within a piece.",
        describe_case(best_small),
        describe_case(best_fragmented),
        rate_of(&fragmented, "3", "2")
    );
    let all = small.iter().chain(&fragmented);
    Ok(build_statement(
        "Files of one or two blocks, or a fragmented file system: an interleave of 3:1 and a gap of 2 would be chosen. (Never measured: predictions.)",
        all.map(|(case, rate)| case.to_finding(*rate)).collect(),
        (holds, conclusion),
    ))
}

fn check_contiguous(asking: &ModelQueries<'_>) -> Result<PublishedStatement, LaboratoryError> {
    let large = measure_rates(asking, GapCase::all_cases(LARGE_FILES))?;
    let best = find_best(&large);
    let conclusion = format!(
        "Best: {}; 1:1 without a gap gives {:.0}, and 1:1 with a gap of one block {:.0}. The file system asks for one block after the other, and never for a track: the next sector has gone by, unless the interleave or the gap puts one between.",
        describe_case(best),
        rate_of(&large, "1", "0"),
        rate_of(&large, "1", "1")
    );
    Ok(build_statement(
        "Files larger than a block, not fragmented: an interleave of 1:1 and a gap of zero. (Never measured: predictions.)",
        large
            .iter()
            .map(|(case, rate)| case.to_finding(*rate))
            .collect(),
        (best.0.matches("1", "0"), conclusion),
    ))
}

fn check_cylinder_gaps(asking: &ModelQueries<'_>) -> Result<PublishedStatement, LaboratoryError> {
    let case = |cylinder_gap| GapCase {
        load: LONG_FILE,
        interleave: CONTIGUOUS_GAP,
        gap: "0",
        cylinder_gap,
    };
    let tried = measure_rates(asking, CYLINDER_GAP_SECTORS.map(case).into_iter().collect())?;
    let finding = |(case, rate): &(GapCase, f64)| {
        Finding::new(
            &format!(
                "{}, {}:1, each cylinder {} sectors later",
                case.load.name, case.interleave, case.cylinder_gap
            ),
            *rate,
            "KB/s",
        )
    };
    let (first, last) = (find_best(&tried), find_worst(&tried));
    let holds = first.0.cylinder_gap == "5" && last.0.cylinder_gap == "4";
    let conclusion = format!(
        "Best: {} sectors, {:.0} KB/s; one sector of the next cylinder too early is the worst, {} with {:.0}. At {CONTIGUOUS_GAP}:1 the sectors pass half as fast as on the platter: 4.6 in the 9 ms of the seek.",
        first.0.cylinder_gap, first.1, last.0.cylinder_gap, last.1
    );
    Ok(build_statement(
        "If gap delays the start of the next cylinder: where the heads' move lets 4.5 sectors pass, a gap of 5 is the fastest, and one of 4 waits for nearly a revolution. (Never measured: predictions.)",
        tried.iter().map(finding).collect(),
        (holds, conclusion),
    ))
}

fn build_statement(
    statement: &str,
    findings: Vec<Finding>,
    (holds, conclusion): (bool, String),
) -> PublishedStatement {
    PublishedStatement {
        document: DOCUMENT_ID.to_owned(),
        statement: statement.to_owned(),
        findings,
        is_confirmed: Some(holds),
        conclusion,
    }
}

fn measure_rates(
    asking: &ModelQueries<'_>,
    cases: Vec<GapCase>,
) -> Result<Vec<(GapCase, f64)>, LaboratoryError> {
    let jobs: Vec<ModelJob> = cases
        .iter()
        .map(|case| build_job(asking, case))
        .collect::<Result<_, _>>()?;
    Ok(cases.into_iter().zip(asking.run_rates(&jobs)?).collect())
}

fn build_job(asking: &ModelQueries<'_>, case: &GapCase) -> Result<ModelJob, LaboratoryError> {
    let own = parse_settings(&[
        ("drive.interleave", case.interleave),
        ("filesystem.gap_blocks", case.gap),
        ("filesystem.cylinder_gap_sectors", case.cylinder_gap),
    ]);
    // What is tried is the case, whatever else is set.
    let all = asking.own_settings_first(own);
    let computer = Arc::new(ModelComputer::read_catalogue(
        asking.catalogue,
        MODEL_SYSTEM,
        &all,
    )?);
    let mut program = Program::from_name("read_files").expect("the battery has read_files");
    for (key, value) in [
        ("file_bytes", case.load.file_bytes),
        ("churn", case.load.churn_files),
    ] {
        program
            .set_parameter(key, &value.to_string())
            .expect("read_files has these");
    }
    Ok(ModelJob {
        protocol: Protocol {
            repetition_count: 2,
            ..THREE_REPETITIONS
        },
        ..ModelJob::from_repetitions(computer, program, case.load.size_bytes, asking.seed)
    })
}

type CaseRate = (GapCase, f64);

fn find_best(rates: &[CaseRate]) -> &CaseRate {
    let rates = rates.iter();
    let best = rates.reduce(|best, other| if other.1 > best.1 { other } else { best });
    best.expect("something was tried")
}

fn find_worst(rates: &[CaseRate]) -> &CaseRate {
    let rates = rates.iter();
    let worst = rates.reduce(|worst, other| if other.1 < worst.1 { other } else { worst });
    worst.expect("something was tried")
}

fn rate_of(rates: &[CaseRate], interleave: &str, gap: &str) -> f64 {
    let found = rates.iter().find(|(case, _)| case.matches(interleave, gap));
    found.expect("it was tried").1
}

fn describe_case((case, rate): &CaseRate) -> String {
    format!(
        "{}:1 with a gap of {}, {rate:.0} KB/s",
        case.interleave, case.gap
    )
}
