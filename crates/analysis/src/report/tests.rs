use super::*;
use crate::comparison::{Comparison, compare};
use crate::fixtures::{
    build_ffs83_run, build_result, build_run, build_seqread_result, build_seqread89_run,
    read_repetition,
};
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
    let repetitions =
        [1.0, 0.99, 1.01, 1.0].map(|factor| read_repetition(MIB, kb_per_s * factor, 50.0));
    let mut one = build_result(program, row, repetitions.to_vec());
    one.size_bytes = MIB;
    one
}

fn run_of_one(repetitions: Vec<Repetition>) -> Run {
    build_run(
        "3fa85f6457",
        "read",
        "/a",
        vec![build_result("read", 0, repetitions)],
    )
}
