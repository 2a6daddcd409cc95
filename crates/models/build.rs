//! Hashes the sources that a modelled figure depends on, so that a stored run
//! never passes for one of changed code.

use std::path::{Path, PathBuf};

/// Below `crates/`: the engine, the drives, the computers, what a program may call, the
/// programs and the job files that they are made of, the arithmetic of figures, and what runs
/// programs on models.
const SOURCES: [&str; 9] = [
    "sim/src",
    "device/src",
    "ftl/src",
    "machine/src",
    "system/src",
    "fio/src",
    "battery/src",
    "timeline/src",
    "models/src",
];

fn main() {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let crates = Path::new(&manifest).join("..");
    let mut files = Vec::new();
    for folder in SOURCES {
        collect(&crates.join(folder), &mut files);
    }
    files.sort();
    // FNV-1a of 64 bits: the same on every machine and in every release.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in &files {
        for byte in std::fs::read(file).expect("a readable source file") {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    println!("cargo::rustc-env=DISKPERF_MODEL_SOURCES={hash:016x}");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in std::fs::read_dir(folder).expect("a readable folder of sources") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
