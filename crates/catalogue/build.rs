//! Writes the list of the catalogue's files, each with its text, so that the
//! binary carries them and a new file needs no line of code.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let root = Path::new(&manifest)
        .join("../../catalogue")
        .canonicalize()
        .expect("the folder catalogue/ stands beside crates/");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();

    let mut list = String::from("&[\n");
    for file in &files {
        let relative = file.strip_prefix(&root).expect("found below the root");
        let name: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
        writeln!(
            list,
            "    ({:?}, include_str!({:?})),",
            name.join("/"),
            file.display().to_string()
        )
        .expect("writing to memory");
    }
    list.push_str("]\n");
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&out).join("catalogue_files.rs"), list).expect("OUT_DIR is writable");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = std::fs::read_dir(folder).expect("a readable folder of the catalogue");
    for entry in entries {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            println!("cargo::rerun-if-changed={}", path.display());
            files.push(path);
        }
    }
}
