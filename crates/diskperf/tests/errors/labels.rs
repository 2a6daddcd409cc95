//! Labels that would hide something else are refused, and those that older runs
//! have do not.

use crate::support::{User, words};
use rusqlite::Connection;
use std::fs;

const RUN: &str = "run write_8192 --on vax780-sc780-eagle --size 64K --runs 2 --quiet";

/// Makes a run, and says its id.
fn run(user: &User) -> String {
    user.run(&words(RUN)).expect(0, &[]);
    user.stored()[0].id.clone()
}

/// Gives a run a label that no diskperf takes any more.
fn label(user: &User, id: &str, label: &str) {
    let updated = Connection::open(user.store()).unwrap().execute(
        "UPDATE runs SET label = ?2, document = json_set(document, '$.label', ?2) WHERE id = ?1",
        [id, label],
    );
    assert_eq!(updated.unwrap(), 1);
}

#[test]
fn a_label_that_hides_something_is_refused() {
    let user = User::new();
    for (label, why) in [
        ("last", "`last` is always the newest run"),
        ("a/b", "name of a file"),
        ("x.json", "name of a file"),
        ("3fa8", "the beginning of a run's id"),
        ("", "a label has text"),
        ("ffs83", "the name of a suite"),
        ("\u{1b}[31mred", "cannot be printed"),
        ("\u{200b}", "cannot be seen"),
    ] {
        let label = format!("--label={label}");
        let words = [&words(RUN)[..], &[&label]].concat();
        let refused = user
            .run(&words)
            .expect(2, &["--label", why, "write another name"]);
        assert!(!refused.stderr.contains('\u{1b}'), "{refused:?}");
    }
    assert!(!user.store().exists());
    // Before anything is written on real storage too.
    user.run(&words("run write_8192 --on ./target --label last"))
        .expect(2, &["`last` is always"]);
    user.assert_nothing_left("a refused label");
}

#[test]
fn labels_of_older_runs_hide_nothing_and_can_be_loaded() {
    let user = User::new();
    let (old, new) = (run(&user), run(&user));
    let id = |name: &str| {
        let shown = user.run(&["show", name, "--format", "json"]);
        let shown = shown.expect(0, &[]).json();
        shown["runs"][0]["id"].as_str().unwrap().to_owned()
    };
    label(&user, &old, "last");
    assert_eq!(id("last"), new);
    assert_eq!(id(&old), old);
    for name in ["a/b", "./x", "x.json", "-", "zz top"] {
        label(&user, &old, name);
        assert_eq!(id(name), old, "{name}");
    }
    // A full id is nothing else.
    label(&user, &old, &new);
    assert_eq!(id(&new), new);
}

#[test]
fn a_name_of_two_things_is_said_to_be() {
    let user = User::new();
    let (old, new) = (run(&user), run(&user));
    let beginning = &new[..4];
    label(&user, &old, beginning);
    user.run(&["show", beginning]).expect(
        2,
        &[
            &format!("`{beginning}` is the label of run {old}"),
            &format!("the beginning of run {new}"),
            "write the run's id",
        ],
    );
    label(&user, &old, "mine");
    user.run(&["export", &new, "-o", "new.json"]).expect(0, &[]);
    fs::rename(user.file("new.json"), user.file("mine")).unwrap();
    user.run(&["show", "mine"]).expect(
        2,
        &[
            "`mine` is a file (write `./mine` for it)",
            "the label of run",
        ],
    );
    user.run(&["show", "./mine"]).expect(0, &[]).shows(&[&new]);
    label(&user, &old, "other");
    user.run(&["show", "mine"]).expect(0, &[]).shows(&[&new]);
}

/// An id prefix of fewer than four characters yields to a label, a file and a target.
#[test]
fn a_short_id_prefix_hides_nothing() {
    let user = User::new();
    let (old, new) = (run(&user), run(&user));
    let short = &new[..2];
    if old.starts_with(short) {
        return;
    }
    let shown = |is_shown: &str| user.run(&["show", short]).expect(0, &[]).shows(&[is_shown]);
    shown(&new);
    label(&user, &old, short);
    shown(&old);
    label(&user, &old, "other");
    user.run(&["export", &old, "-o", "old.json"]).expect(0, &[]);
    fs::rename(user.file("old.json"), user.file(short)).unwrap();
    shown(&old);
    fs::remove_file(user.file(short)).unwrap();
    fs::create_dir(user.file(short)).unwrap();
    let plan = format!("ab {short} {short} read_8192 --size 64K --dry-run");
    user.run(&words(&plan)).expect(0, &[]);
    label(&user, &old, short);
    user.run(&words(&plan))
        .expect(2, &["means more than one thing", "the id of the run"]);
}
