//! Reports that cannot be written: said clearly, and nothing is left half done.

use crate::support::{User, entries};
use std::fs;

#[test]
fn a_run_that_is_not_there_is_named() {
    let user = User::new();
    user.run(&["report", "-o", "page.html"])
        .expect(2, &["no run with a finished repetition", "diskperf run"]);
    user.run(&["run", "read_8192", "--on", "vax780-sc780-eagle", "--quiet"])
        .expect(0, &[]);
    user.run(&["report", "ffff", "-o", "page.html"])
        .expect(2, &["ffff"]);
    user.run(&["report", "./nowhere.json", "-o", "page.html"])
        .expect(2, &["nowhere.json"]);
    user.run(&["report"]).expect(2, &["--output"]);
    assert!(!entries(&user.home()).contains(&"page.html".to_owned()));
}

#[test]
fn a_page_that_cannot_be_written_leaves_nothing() {
    let user = User::new();
    user.run(&["run", "read_8192", "--on", "vax780-sc780-eagle", "--quiet"])
        .expect(0, &[]);
    let before = entries(&user.home());
    user.run(&["report", "-o", "no/such/page.html"]).expect(
        2,
        &["no/such/page.html", "cannot be written", "name a file"],
    );
    user.run(&["report", "-o", "target"])
        .expect(2, &["target", "cannot be written"]);
    user.run(&[
        "reproduce",
        "--cell",
        "*/8K/read_8192/1",
        "--report",
        "no/such/card.html",
    ])
    .expect(2, &["no/such/card.html", "cannot be written"]);
    assert_eq!(entries(&user.home()), before);
}

#[test]
fn a_page_takes_the_place_of_another_in_one_step() {
    let user = User::new();
    user.run(&["run", "read_8192", "--on", "vax780-sc780-eagle", "--quiet"])
        .expect(0, &[]);
    fs::write(user.file("page.html"), "of yesterday").unwrap();
    user.run(&["report", "-o", "page.html"]).expect(0, &[]);
    let page = fs::read_to_string(user.file("page.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert!(
        !entries(&user.home())
            .iter()
            .any(|name| name.contains("partial"))
    );
    user.run(&["report", "ffff", "-o", "page.html"])
        .expect(2, &[]);
    assert_eq!(fs::read_to_string(user.file("page.html")).unwrap(), page);
}
