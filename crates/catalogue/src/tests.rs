//! Tests of the catalogue: its files, what overrides what, and what is said
//! about mistakes.

mod declarations;
mod files;
mod layers;
mod mistakes;
mod numbers;

use super::{Catalogue, Component, Errors, Parameter, Setting};
use std::path::Path;

/// Settings from the arguments of `--set`.
fn settings(arguments: &[&str]) -> Vec<Setting> {
    let parsed = arguments.iter().map(|argument| Setting::parse(argument));
    parsed
        .collect::<Result<_, _>>()
        .expect("settings with a path and a value")
}

/// All parameters of a system of the embedded catalogue, or what is wrong.
fn parameters(target: &str, arguments: &[&str]) -> Result<Vec<Parameter>, Errors> {
    declarations::read(&Catalogue::embedded(), target, &settings(arguments))
}

/// The value of a path, as it is written.
fn value(parameters: &[Parameter], path: &str) -> String {
    let found = parameters.iter().find(|parameter| parameter.path == path);
    let paths = || {
        parameters
            .iter()
            .map(|known| known.path.as_str())
            .collect::<Vec<_>>()
    };
    found
        .unwrap_or_else(|| panic!("no {path} in {:?}", paths()))
        .value
        .clone()
}

/// The embedded catalogue with files of a test's own laid over it.
fn overlaid(files: &[(&str, &str)]) -> (tempfile::TempDir, Result<Catalogue, Errors>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (path, content) in files {
        write(folder.path(), path, content.as_bytes());
    }
    let catalogue = Catalogue::embedded().with_overlay(folder.path());
    (folder, catalogue)
}

fn write(folder: &Path, path: &str, content: &[u8]) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().expect("below the folder")).expect("a folder");
    std::fs::write(path, content).expect("a file");
}

/// What is said about a system whose drive file has this text.
fn drive_mistakes(content: &str) -> String {
    let (_folder, catalogue) = overlaid(&[("drives/eagle.toml", content)]);
    let catalogue = catalogue.expect("readable files");
    match declarations::read(&catalogue, "vax780-sc780-eagle", &[]) {
        Ok(_) => panic!("accepted:\n{content}"),
        Err(errors) => errors.to_string(),
    }
}

/// The text of an embedded file.
fn embedded_text(path: &str) -> &'static str {
    let found = super::embedded::EMBEDDED_FILES
        .iter()
        .find(|(known, _)| *known == path);
    found.unwrap_or_else(|| panic!("no {path}")).1
}

/// Every kind of component, for tests that go through all entries.
fn every_entry(catalogue: &Catalogue) -> Vec<(Component, String)> {
    let names = |component| {
        let names = catalogue.component_names(component).into_iter();
        names.map(move |name| (component, name))
    };
    Component::ALL.into_iter().flat_map(names).collect()
}
