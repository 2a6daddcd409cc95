//! Directories and stores to which other users' symbolic links lead: root neither
//! makes nor reads anything there. Every link is nobody's, so these tests need root.

use crate::lines::prepare;
use crate::support::{User, entries, words};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::Path;

const NOBODY: u32 = 65_534;

fn is_root(test: &str, user: &User) -> bool {
    let is_root = fs::metadata(user.home()).unwrap().uid() == 0;
    if !is_root {
        eprintln!("SKIPPED {test}: only root makes links of other users");
    }
    is_root
}

/// Nobody's link.
fn link(target: &Path, name: &Path) {
    fs::create_dir_all(name.parent().unwrap()).unwrap();
    symlink(target, name).unwrap();
    lchown(name, Some(NOBODY), Some(NOBODY)).unwrap();
}

#[test]
fn a_command_makes_no_folder_where_anothers_link_leads() {
    let user = User::new();
    if !is_root("a_command_makes_no_folder_where_anothers_link_leads", &user) {
        return;
    }
    prepare(&user);
    fs::create_dir(user.file("precious")).unwrap();
    for (mode, directory) in [(0o1777, "shared"), (0o755, "home")] {
        let at = |name: &str| user.file(directory).join(name);
        fs::create_dir(user.file(directory)).unwrap();
        fs::set_permissions(user.file(directory), Permissions::from_mode(mode)).unwrap();
        link(&user.file("precious"), &at("filled"));
        link(&user.file("absent"), &at("dangling"));
        link(&user.file("precious/new"), &at("below"));
        for name in ["filled", "filled/more", "dangling", "below", "below/x/y"] {
            let line = format!("import ./small.parv -o ./{directory}/{name}");
            user.run(&words(&line))
                .expect(2, &["is a symbolic link of user 65534"]);
            assert_eq!(entries(&user.file("precious")), [""; 0], "{line}");
            assert!(!user.file("absent").exists(), "{line}");
        }
    }
}

#[test]
fn a_command_makes_folders_where_its_own_links_lead() {
    let user = User::new();
    prepare(&user);
    fs::create_dir(user.file("real")).unwrap();
    symlink("real", user.file("mine")).unwrap();
    user.run(&words("import ./small.parv -o ./mine/a/b"))
        .expect(0, &[]);
    assert!(user.file("real/a/b/drives/small.toml").exists());
}

/// The parts of the default store's path, each a link of somebody else once.
#[test]
fn the_default_store_is_not_where_anothers_link_leads() {
    let test = "the_default_store_is_not_where_anothers_link_leads";
    for (part, target) in [
        ("data", "precious"),
        ("data", "absent"),
        ("data/diskperf", "precious"),
        ("data/diskperf", "absent"),
        ("data/diskperf/runs.sqlite", "precious/runs.sqlite"),
        ("data/diskperf/runs.sqlite", "absent"),
    ] {
        let user = User::new();
        if !is_root(test, &user) {
            return;
        }
        fs::create_dir(user.file("precious")).unwrap();
        link(&user.file(target), &user.file(part));
        for line in [
            "list runs",
            "show last",
            "export last -o ./run.json",
            "delete last --dry-run",
            "compare last last",
            "run read_8192 --on vax780-sc780-eagle --size 64K --quiet",
            "tune vax780-sc780-eagle --suite read_8192 --size 64K --over filesystem.rotdelay_ms=2,4 --seeds 0",
            "clean --on ./target",
        ] {
            let outcome = user.run(&words(line));
            let is_named = outcome.stderr.contains("is a symbolic link of user 65534");
            assert!(is_named, "{part} -> {target}: {outcome:?}");
            assert_eq!(entries(&user.file("precious")), [""; 0], "{part}: {line}");
            assert!(!user.file("absent").exists(), "{part}: {line}");
        }
    }
}

/// What a user's own links lead to is the user's, whoever asks.
#[test]
fn a_users_own_link_leads_to_the_users_own_store() {
    let user = User::new();
    if !is_root("a_users_own_link_leads_to_the_users_own_store", &user) {
        return;
    }
    prepare(&user);
    fs::rename(user.file("data"), user.file("moved")).unwrap();
    link(&user.file("moved"), &user.file("data"));
    for name in ["", "diskperf", "diskperf/runs.sqlite"] {
        chown(user.file("moved").join(name), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let listed = user.run(&words("list runs")).expect(0, &[]);
    assert!(listed.has("read_8192"), "{listed:?}");
}
