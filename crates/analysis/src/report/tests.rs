use super::*;
use crate::comparison::{Comparison, compare};
use crate::fixtures::{ffs83, read, result, run, seqread, seqread89};
use diskperf_timeline::units::MIB;
use diskperf_timeline::{
    MeasuredWorld, Nanoseconds, ProgramResult, Repetition, Residency, RunState, SummaryStatistic,
};
use insta::assert_snapshot;

mod comparisons;
mod consistency;
mod interleave;
mod loads;
mod machine_readable;
mod nothing;
mod pivots;
mod steadiness;
mod tables;
mod units;

/// Four repetitions, so that intervals are neither absent nor huge.
fn undisturbed_result(program: &str, row: u32, kb_per_s: f64) -> ProgramResult {
    let repetitions = [1.0, 0.99, 1.01, 1.0].map(|factor| read(MIB, kb_per_s * factor, 50.0));
    let mut one = result(program, row, repetitions.to_vec());
    one.size_bytes = MIB;
    one
}

fn run_of_one(repetitions: Vec<Repetition>) -> Run {
    run(
        "3fa85f6457",
        "read",
        "/a",
        vec![result("read", 0, repetitions)],
    )
}
