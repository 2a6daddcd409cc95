use super::*;
use std::collections::BTreeSet;

#[test]
fn a_name_means_one_thing_to_an_engine() {
    let mut known = BTreeSet::new();
    for key in all_options() {
        for name in [key.name].iter().chain(key.aliases) {
            let engines: Vec<&str> = key.engines.iter().map(|engine| engine.name()).collect();
            assert!(known.insert((*name, engines)), "{name} twice");
        }
    }
    assert!(known.len() > 200, "{} names", known.len());
}

#[test]
fn a_mistyped_name_is_near_the_right_one() {
    let cases = [
        ("iodpeth", "iodepth"),
        ("BS", "bs"),
        ("run_time", "runtime"),
        ("numjob", "numjobs"),
        ("rate-iops", "rate_iops"),
    ];
    for (wrong, right) in cases {
        assert_eq!(find_similar_name(wrong), Some(right));
    }
    assert_eq!(find_similar_name(&"x".repeat(5000)), None);
}

#[test]
fn what_changes_the_system_is_never_obeyed() {
    let key = |name| find_option(name, IoEngine::Psync).expect(name);
    let names = [
        "uid",
        "gid",
        "ioscheduler",
        "cgroup",
        "cgroup_weight",
        "cgroup_nodelete",
    ];
    for name in names {
        let treatment = key(name).treatment;
        assert!(matches!(treatment, OptionTreatment::NoEffect(_)), "{name}");
    }
}

/// The texts between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// What a refusal names to be used is taken: no advice leads to another refusal.
#[test]
fn advice_names_what_is_taken() {
    let mut advised = 0;
    for key in all_options() {
        let OptionTreatment::Rejected { instead, .. } = key.treatment else {
            continue;
        };
        assert!(
            !instead.is_empty(),
            "{} is refused without advice",
            key.name
        );
        for words in quoted(instead).filter(|words| !words.starts_with("diskperf ")) {
            let name = words.split('=').next().unwrap_or(words);
            let engine = key.engines.first().copied().unwrap_or_default();
            let named =
                find_option(name, engine).unwrap_or_else(|| panic!("{}: {instead}", key.name));
            let is_taken = matches!(named.treatment, OptionTreatment::Applied(_));
            assert!(is_taken, "{}: {instead}: {name} is not taken", key.name);
            if words
                .split('=')
                .nth(1)
                .is_some_and(|value| !value.is_empty())
            {
                let text = format!("[x]\nsize=1m\n{words}\n");
                let parsed = crate::JobFile::parse("x.fio", &text, &Default::default());
                assert!(parsed.is_ok(), "{}: {words}: {parsed:?}", key.name);
            }
            advised += 1;
        }
    }
    assert!(advised > 0, "nothing is advised at all");
}

#[test]
fn every_engine_of_the_list_is_taken() {
    for refused in ["ioengine=nope", "ioengine=rdma"] {
        let text = format!("[x]\nsize=1m\n{refused}\n");
        let parsed = crate::JobFile::parse("x.fio", &text, &Default::default());
        let words = parsed.expect_err(refused).render(false);
        let list = words.rsplit("help: ").next().unwrap_or_default();
        let list = list.trim_start_matches("it is one of ");
        let list = list.trim_start_matches("supported engines: ");
        let names: Vec<&str> = list.trim().split(", ").collect();
        assert!(names.len() > 5, "{words}");
        for name in names {
            let of_cpuio = if name == "cpuio" {
                "cpuload=9\nruntime=1\n"
            } else {
                ""
            };
            let text = format!("[x]\nsize=1m\nioengine={name}\n{of_cpuio}");
            let parsed = crate::JobFile::parse("x.fio", &text, &Default::default());
            assert!(parsed.is_ok(), "{name} of {words}");
        }
    }
}
