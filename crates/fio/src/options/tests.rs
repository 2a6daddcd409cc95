use super::*;
use std::collections::BTreeSet;

#[test]
fn a_name_means_one_thing_to_an_engine() {
    let mut known = BTreeSet::new();
    for key in all() {
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
        assert_eq!(similar(wrong), Some(right));
    }
    assert_eq!(similar(&"x".repeat(5000)), None);
}

#[test]
fn what_runs_commands_or_changes_the_system_is_never_obeyed() {
    let names = [
        "exec_prerun",
        "exec_postrun",
        "ioscheduler",
        "cgroup",
        "cgroup_weight",
        "cgroup_nodelete",
        "uid",
        "gid",
    ];
    for name in names {
        let key = find(name, Engine::Psync).expect(name);
        assert!(matches!(key.treatment, Treatment::Refused { .. }), "{name}");
    }
}
