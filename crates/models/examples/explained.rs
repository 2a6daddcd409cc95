//! Three modelled systems explained, for a page: what `tools/test-wasm` runs as WebAssembly and
//! as a program of this machine, and compares byte by byte.
//!
//! As WebAssembly, `explained(number)` returns the address of a text, after its length in four
//! bytes, lowest first; it stays where it is. As a program, the text is printed.

use diskperf_analysis::report::{self, ReportFormat};
use diskperf_models::LaboratoryError;
use diskperf_models::crew::SingleThread;
use diskperf_models::explain::{ExplainedSystem, ExplanationOptions, explain_system};
use diskperf_models::files::NoFiles;
use diskperf_timeline::{Experiment, SizeChoice, Workload};
use std::sync::Arc;

/// Systems, each with the program that runs on it and the bytes that this moves.
const CASES: [(&str, &str, u64); 3] = [
    ("vax780-sc780-eagle", "read_8192", 1 << 20),
    ("bare-nvme-tlc", "random", 16 << 20),
    ("bare-sata-7200", "random", 4 << 20),
];
const SEEDS: u64 = 2;

/// Explains a case with a seed, by its number.
fn text(number: u64) -> Result<String, LaboratoryError> {
    let (system, program, bytes) = CASES[(number / SEEDS) as usize % CASES.len()];
    let experiment = Experiment {
        workload: Workload::NamedSuite(program.to_owned()),
        targets: vec![system.into()],
        size_choice: SizeChoice::SizeBytes(bytes),
        seed: number % SEEDS + 1,
        ..Experiment::default()
    };
    let subject = ExplainedSystem::from_plan(system.to_owned(), &experiment, &NoFiles)?;
    let means = ExplanationOptions {
        crew: &SingleThread,
        runs_counterfactuals: true,
        stop: &Arc::default(),
        progress: &|_, _| (),
    };
    let (explanation, _) = explain_system(&subject, &means)?;
    Ok(report::render_explanation(
        &explanation,
        ReportFormat::Json,
        0,
    ))
}

/// Explains a case and returns where its text is.
#[cfg(target_family = "wasm")]
#[expect(
    unsafe_code,
    reason = "a function that a page calls has a name of its own"
)]
#[unsafe(no_mangle)]
pub extern "C" fn explained(number: u32) -> *const u8 {
    let text = text(number.into()).unwrap_or_else(|error| format!("error: {error}"));
    let mut bytes = (text.len() as u32).to_le_bytes().to_vec();
    bytes.extend(text.into_bytes());
    bytes.leak().as_ptr()
}

fn main() -> Result<(), LaboratoryError> {
    for number in 0..CASES.len() as u64 * SEEDS {
        println!("{}", text(number)?);
    }
    Ok(())
}
