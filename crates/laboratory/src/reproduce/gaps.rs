//! Unmeasured claims of Piziali and Zam 1991: the gap of mkfs in both readings and the interleave
//! of the drive, for small and large files, contiguous or scattered.

use super::asking::{Asking, settings};
use super::interleave::DOCUMENT;
use super::jobs::Job;
use diskperf_analysis::accuracy::{Finding, Statement};
use diskperf_battery::{Medium, Program};
use diskperf_models::LaboratoryError;
use diskperf_models::model::computer::Computer;
use diskperf_models::rig::THREE_RUNS;
use diskperf_timeline::Protocol;
use std::sync::Arc;

const SYSTEM: &str = "pcat-st251";
const INTERLEAVES: [&str; 3] = ["1", "2", "3"];
const GAPS: [&str; 3] = ["0", "1", "2"];
const CYLINDER_GAPS: [&str; 7] = ["0", "1", "2", "3", "4", "5", "6"];
/// Interleave at which a sequential read loses time only at the ends of cylinders.
const CONTIGUOUS: &str = "2";

/// Bytes to read for each figure: several cylinders of 51 KB.
const SIZE_BYTES: u64 = 512 << 10;
/// Bytes to read for each figure that the ends of cylinders determine.
const LONG_BYTES: u64 = 2 << 20;

#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    size_bytes: u64,
    file_bytes: u64,
    churn: u64,
}

const LARGE: Load = Load {
    name: "a large file",
    size_bytes: SIZE_BYTES,
    file_bytes: SIZE_BYTES,
    churn: 0,
};
/// Files of "one or two disk blocks in size", as Piziali and Zam 1991 say.
const SMALL: Load = Load {
    name: "files of 1 KB",
    size_bytes: SIZE_BYTES,
    file_bytes: 1024,
    churn: 0,
};
const LONG: Load = Load {
    name: "a file of 2 MB",
    size_bytes: LONG_BYTES,
    file_bytes: LONG_BYTES,
    churn: 0,
};
const FRAGMENTED: Load = Load {
    name: "a large file in pieces",
    size_bytes: SIZE_BYTES,
    file_bytes: SIZE_BYTES,
    churn: 3,
};

struct Case {
    load: Load,
    interleave: &'static str,
    gap: &'static str,
    cylinder_gap: &'static str,
}

impl Case {
    /// Cases of a load with every interleave and every gap between blocks.
    fn grid(load: Load) -> Vec<Self> {
        let case = |interleave, gap| Self {
            load,
            interleave,
            gap,
            cylinder_gap: "0",
        };
        let gaps = |interleave| GAPS.map(|gap| case(interleave, gap));
        INTERLEAVES.into_iter().flat_map(gaps).collect()
    }

    fn is(&self, interleave: &str, gap: &str) -> bool {
        self.interleave == interleave && self.gap == gap
    }

    fn finding(&self, kb_per_s: f64) -> Finding {
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
pub(super) fn statements(asking: &Asking<'_>) -> Result<Vec<Statement>, LaboratoryError> {
    let computer = Computer::read(asking.catalogue, SYSTEM, asking.settings)?;
    if computer.medium() != Medium::Directory {
        // The settings leave the files out.
        return Ok(Vec::new());
    }
    Ok(vec![
        scattered(asking)?,
        contiguous(asking)?,
        cylinders(asking)?,
    ])
}

fn scattered(asking: &Asking<'_>) -> Result<Statement, LaboratoryError> {
    let small = rates(asking, Case::grid(SMALL))?;
    let fragmented = rates(asking, Case::grid(FRAGMENTED))?;
    let (best_small, best_fragmented) = (best(&small), best(&fragmented));
    let holds = best_small.0.is("3", "2") && best_fragmented.0.is("3", "2");
    let conclusion = format!(
        "Best for files of two blocks: {}. Best for a file in pieces: {}; 3:1 with a gap of 2 gives {:.0}. Interleave and gap multiply: at 3:1 with a gap of 2 a block is nine sectors from the next, which is what opening the next small file takes (with what namei is assumed to take), and too much within a piece.",
        told(best_small),
        told(best_fragmented),
        at(&fragmented, "3", "2")
    );
    let all = small.iter().chain(&fragmented);
    Ok(statement(
        "Files of one or two blocks, or a fragmented file system: an interleave of 3:1 and a gap of 2 would be chosen. (Never measured: predictions.)",
        all.map(|(case, rate)| case.finding(*rate)).collect(),
        (holds, conclusion),
    ))
}

fn contiguous(asking: &Asking<'_>) -> Result<Statement, LaboratoryError> {
    let large = rates(asking, Case::grid(LARGE))?;
    let best = best(&large);
    let conclusion = format!(
        "Best: {}; 1:1 without a gap gives {:.0}, and 1:1 with a gap of one block {:.0}. The file system asks for one block after the other, and never for a track: the next sector has gone by, unless the interleave or the gap puts one between.",
        told(best),
        at(&large, "1", "0"),
        at(&large, "1", "1")
    );
    Ok(statement(
        "Files larger than a block, not fragmented: an interleave of 1:1 and a gap of zero. (Never measured: predictions.)",
        large
            .iter()
            .map(|(case, rate)| case.finding(*rate))
            .collect(),
        (best.0.is("1", "0"), conclusion),
    ))
}

fn cylinders(asking: &Asking<'_>) -> Result<Statement, LaboratoryError> {
    let case = |cylinder_gap| Case {
        load: LONG,
        interleave: CONTIGUOUS,
        gap: "0",
        cylinder_gap,
    };
    let tried = rates(asking, CYLINDER_GAPS.map(case).into_iter().collect())?;
    let finding = |(case, rate): &(Case, f64)| {
        Finding::new(
            &format!(
                "{}, {}:1, each cylinder {} sectors later",
                case.load.name, case.interleave, case.cylinder_gap
            ),
            *rate,
            "KB/s",
        )
    };
    let (first, last) = (best(&tried), worst(&tried));
    let holds = first.0.cylinder_gap == "5" && last.0.cylinder_gap == "4";
    let conclusion = format!(
        "Best: {} sectors, {:.0} KB/s; one sector of the next cylinder too early is the worst, {} with {:.0}. At {CONTIGUOUS}:1 the sectors pass half as fast as on the platter: 4.6 in the 9 ms of the seek.",
        first.0.cylinder_gap, first.1, last.0.cylinder_gap, last.1
    );
    Ok(statement(
        "If gap delays the start of the next cylinder: where the heads' move lets 4.5 sectors pass, a gap of 5 is the fastest, and one of 4 waits for nearly a revolution. (Never measured: predictions.)",
        tried.iter().map(finding).collect(),
        (holds, conclusion),
    ))
}

fn statement(
    statement: &str,
    findings: Vec<Finding>,
    (holds, conclusion): (bool, String),
) -> Statement {
    Statement {
        published: DOCUMENT.to_owned(),
        statement: statement.to_owned(),
        findings,
        holds: Some(holds),
        conclusion,
    }
}

fn rates(asking: &Asking<'_>, cases: Vec<Case>) -> Result<Vec<(Case, f64)>, LaboratoryError> {
    let jobs: Vec<Job> = cases
        .iter()
        .map(|case| job(asking, case))
        .collect::<Result<_, _>>()?;
    Ok(cases.into_iter().zip(asking.rates(&jobs)?).collect())
}

fn job(asking: &Asking<'_>, case: &Case) -> Result<Job, LaboratoryError> {
    let own = settings(&[
        ("drive.interleave", case.interleave),
        ("filesystem.gap_blocks", case.gap),
        ("filesystem.cylinder_gap_sectors", case.cylinder_gap),
    ]);
    // What is tried is the case, whatever else is set.
    let all = asking.under(own);
    let computer = Arc::new(Computer::read(asking.catalogue, SYSTEM, &all)?);
    let mut program = Program::from_name("read_files").expect("the battery has read_files");
    for (key, value) in [
        ("file_bytes", case.load.file_bytes),
        ("churn", case.load.churn),
    ] {
        program
            .set_parameter(key, &value.to_string())
            .expect("read_files has these");
    }
    Ok(Job {
        protocol: Protocol {
            repetition_count: 2,
            ..THREE_RUNS
        },
        ..Job::of(computer, program, case.load.size_bytes, asking.seed)
    })
}

type Rate = (Case, f64);

fn best(rates: &[Rate]) -> &Rate {
    let rates = rates.iter();
    let best = rates.reduce(|best, other| if other.1 > best.1 { other } else { best });
    best.expect("something was tried")
}

fn worst(rates: &[Rate]) -> &Rate {
    let rates = rates.iter();
    let worst = rates.reduce(|worst, other| if other.1 < worst.1 { other } else { worst });
    worst.expect("something was tried")
}

fn at(rates: &[Rate], interleave: &str, gap: &str) -> f64 {
    let found = rates.iter().find(|(case, _)| case.is(interleave, gap));
    found.expect("it was tried").1
}

fn told((case, rate): &Rate) -> String {
    format!(
        "{}:1 with a gap of {}, {rate:.0} KB/s",
        case.interleave, case.gap
    )
}
