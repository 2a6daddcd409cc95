//! Writes the seeds of all targets to a folder, each to a folder of its name: where
//! libFuzzer begins.

use diskperf_fuzzing::TARGETS;
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: seeds FOLDER");
        std::process::exit(2);
    };
    for target in TARGETS {
        let own = folder.join(target.name);
        std::fs::create_dir_all(&own)?;
        for (number, seed) in (target.make_seeds)().iter().enumerate() {
            std::fs::write(own.join(format!("seed-{number}")), seed)?;
        }
        let words = target.keywords.iter().map(|word| quoted(word));
        let words: Vec<String> = words.collect();
        std::fs::write(
            folder.join(format!("{}.dict", target.name)),
            words.join("\n"),
        )?;
    }
    Ok(())
}

/// A word as a dictionary of libFuzzer has it.
fn quoted(word: &str) -> String {
    let escaped = word.bytes().map(|byte| format!("\\x{byte:02x}"));
    format!("\"{}\"", escaped.collect::<String>())
}
