//! Recordings as texts, each with the chains that its operations must have.

mod support;

use std::path::Path;
use support::{Scenario, format_link, list_chains};

#[test]
fn every_scenario_has_its_chains() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let files = std::fs::read_dir(folder).expect("the scenarios");
    let mut count = 0;
    for file in files {
        let path = file.expect("a scenario").path();
        let text = std::fs::read_to_string(&path).expect("a text");
        check_scenario(&path.display().to_string(), &Scenario::parse(&text));
        count += 1;
    }
    assert!(count >= 14, "only {count} scenarios");
}

fn check_scenario(name: &str, scenario: &Scenario) {
    let chains = list_chains(&scenario.recording);
    assert!(!scenario.expected.is_empty(), "{name} expects nothing");
    for (what, expected) in &scenario.expected {
        let (_, chain) = chains
            .iter()
            .find(|(known, _)| known == what)
            .unwrap_or_else(|| panic!("{name}: no {what}"));
        let links: Vec<String> = chain.links().iter().map(format_link).collect();
        assert_eq!(&links, expected, "{name}: {what}");
        let is_expected = scenario.incomplete.contains(what);
        assert_eq!(chain.is_incomplete, is_expected, "{name}: {what}");
    }
}
