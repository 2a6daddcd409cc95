//! Files that a user asked for: what may be written under which name, what is
//! left as it was, and what a new file looks like.

#[path = "support/mod.rs"]
mod support;

use diskperf_system::host::output_file::{AbandonedOutput, OutputFile, OutputProblem};
use rustix::fs::{CWD, FileType, Mode};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use support::{Scratch, without_root};

/// A user who may do nothing special, and another.
const NOBODY: u32 = 65_534;
const SOMEBODY: u32 = 4_711;

/// Writes `bytes` as a command does that works between the two.
fn write(path: &Path, bytes: &str) -> Result<(), OutputProblem> {
    let opened = OutputFile::open_output(path).map_err(|error| error.problem)?;
    opened
        .write_bytes(bytes.as_bytes())
        .map_err(|error| error.problem)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().mode() & 0o7777
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn is_root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("SKIPPED {test}: only root may give files away");
    }
    root
}

/// A directory of its own in which others may write, as `/tmp` is.
fn shared(scratch: &Scratch) -> std::path::PathBuf {
    let directory = scratch.path().join("shared");
    fs::create_dir(&directory).unwrap();
    set_mode(&directory, 0o1777);
    directory
}

fn link(target: &Path, link: &Path, owner: u32) {
    symlink(target, link).unwrap();
    std::os::unix::fs::lchown(link, Some(owner), Some(owner)).unwrap();
}

#[test]
fn a_file_takes_the_place_of_another() {
    let scratch = Scratch::new();
    let (page, same) = (scratch.path().join("page"), scratch.path().join("same"));
    fs::write(&page, "of yesterday").unwrap();
    fs::hard_link(&page, &same).unwrap();
    set_mode(&page, 0o640);
    let opened = OutputFile::open_output(&page).unwrap();
    assert_eq!(fs::read_to_string(&page).unwrap(), "of yesterday");
    opened.write_bytes(b"of today").unwrap();
    assert_eq!(fs::read_to_string(&page).unwrap(), "of today");
    assert_eq!(mode(&page), 0o640);
    // The other name is another file now.
    assert_eq!(fs::read_to_string(&same).unwrap(), "of yesterday");
    // What may run as its owner is not what is written.
    set_mode(&page, 0o4755);
    write(&page, "of tomorrow").unwrap();
    assert_eq!(mode(&page), 0o755);

    let (new, plain) = (scratch.path().join("new"), scratch.path().join("plain"));
    File::create(&plain).unwrap();
    write(&new, "").unwrap();
    assert_eq!(mode(&new), mode(&plain), "the umask holds");
    assert_eq!(names(&scratch.path()), ["new", "page", "plain", "same"]);
}

#[test]
fn the_owner_stays() {
    if !is_root("the_owner_stays") {
        return;
    }
    let scratch = Scratch::new();
    let page = scratch.path().join("page");
    fs::write(&page, "").unwrap();
    chown(&page, Some(NOBODY), Some(SOMEBODY)).unwrap();
    set_mode(&page, 0o660);
    write(&page, "of root").unwrap();
    let status = page.metadata().unwrap();
    assert_eq!((status.uid(), status.gid()), (NOBODY, SOMEBODY));
    assert_eq!(mode(&page), 0o660);

    // A user who may not give a file that group gives nobody more than before.
    set_mode(&scratch.path(), 0o777);
    chown(scratch.path(), Some(NOBODY), None).unwrap();
    set_mode(&page, 0o664);
    without_root(|| write(&page, "of nobody")).unwrap();
    let status = page.metadata().unwrap();
    assert_eq!((status.uid(), status.gid()), (NOBODY, 0));
    assert_eq!(mode(&page), 0o644);
}

#[test]
fn links_of_ones_own_are_followed() {
    let scratch = Scratch::new();
    let at = |name: &str| scratch.path().join(name);
    fs::create_dir(at("below")).unwrap();
    fs::write(at("below/page"), "of yesterday").unwrap();
    for (target, name) in [
        ("below/page", "relative"),
        ("relative", "chain"),
        ("below", "directory"),
        ("below/absent", "dangling"),
        ("loop", "loop"),
    ] {
        symlink(target, at(name)).unwrap();
    }
    symlink(at("below/page"), at("absolute")).unwrap();
    for name in [
        "relative",
        "chain",
        "absolute",
        "directory/page",
        "directory/../below/page",
        "directory//./page",
    ] {
        write(&at(name), name).unwrap();
        assert_eq!(fs::read_to_string(at("below/page")).unwrap(), name);
        assert!(at("relative").is_symlink() && at("absolute").is_symlink());
    }
    write(&at("dangling"), "new").unwrap();
    assert_eq!(fs::read_to_string(at("below/absent")).unwrap(), "new");
    assert!(at("dangling").is_symlink());
    let error = write(&at("loop"), "").unwrap_err().to_string();
    assert!(error.contains("symbolic links"), "{error}");
    assert_eq!(names(&at("below")), ["absent", "page"]);
}

/// In a directory where others may write, whoever owns it or follows is
/// trusted, and nobody else; elsewhere root does not trust others to lead it
/// to what is not theirs.
#[test]
fn links_of_others_are_not_followed() {
    if !is_root("links_of_others_are_not_followed") {
        return;
    }
    let scratch = Scratch::new();
    let (mine, theirs) = (scratch.path().join("mine"), scratch.path().join("theirs"));
    // The directory's mode and owner, the link's owner, to a file of root's or
    // of the link's owner.
    for (number, (directory_mode, directory_owner, owner, to_theirs, followed)) in [
        (0o1777, 0, NOBODY, false, false),
        (0o1777, 0, NOBODY, true, false),
        (0o1770, 0, NOBODY, true, false),
        (0o0777, 0, NOBODY, true, false),
        (0o1777, 0, 0, false, true),
        (0o1777, SOMEBODY, 0, false, true),
        (0o1777, NOBODY, NOBODY, true, true),
        (0o1777, NOBODY, NOBODY, false, false),
        (0o0755, NOBODY, NOBODY, true, true),
        (0o0755, NOBODY, NOBODY, false, false),
        (0o0755, 0, NOBODY, true, true),
        (0o0775, 0, NOBODY, true, true),
        (0o0755, 0, NOBODY, false, false),
    ]
    .into_iter()
    .enumerate()
    {
        let directory = scratch.path().join(number.to_string());
        fs::create_dir(&directory).unwrap();
        chown(&directory, Some(directory_owner), None).unwrap();
        set_mode(&directory, directory_mode);
        fs::write(&mine, "mine").unwrap();
        fs::write(&theirs, "theirs").unwrap();
        chown(&theirs, Some(NOBODY), None).unwrap();
        let target = if to_theirs { &theirs } else { &mine };
        link(target, &directory.join("page"), owner);
        // The same as a part in the middle.
        link(&scratch.path(), &directory.join("way"), owner);
        let outcome = write(&directory.join("page"), "new");
        let by_way = write(
            &directory.join("way").join(target.file_name().unwrap()),
            "new",
        );
        let case = format!("{directory_mode:o} {directory_owner} {owner} {to_theirs}");
        for outcome in [outcome, by_way] {
            assert_eq!(outcome.is_ok(), followed, "{case}: {outcome:?}");
            if let Err(problem) = outcome {
                let refused = matches!(problem, OutputProblem::LinkOfOtherUser { owner: o, .. } if o == owner);
                assert!(refused, "{case}: {problem:?}");
            }
        }
        let now = fs::read_to_string(target).unwrap();
        assert_eq!(now == "new", followed, "{case}");
        assert_eq!(names(&directory), ["page", "way"], "{case}");
    }
}

#[test]
fn files_of_others_stay_as_they_are() {
    if !is_root("files_of_others_stay_as_they_are") {
        return;
    }
    let scratch = Scratch::new();
    let page = shared(&scratch).join("page");
    fs::write(&page, "theirs").unwrap();
    set_mode(&page, 0o666);
    chown(&page, Some(SOMEBODY), None).unwrap();
    let outcomes = [write(&page, "new"), without_root(|| write(&page, "new"))];
    for outcome in outcomes {
        let refused = matches!(
            outcome,
            Err(OutputProblem::FileOfOtherUser { owner: SOMEBODY })
        );
        assert!(refused, "{outcome:?}");
    }
    assert_eq!(fs::read_to_string(&page).unwrap(), "theirs");

    // Whoever made a file read-only wants it to stay.
    let own = Scratch::new();
    let kept = own.path().join("kept");
    set_mode(&own.path(), 0o777);
    fs::write(&kept, "kept").unwrap();
    set_mode(&kept, 0o444);
    let outcome = without_root(|| write(&kept, "new"));
    assert!(matches!(outcome, Err(OutputProblem::Io(_))), "{outcome:?}");
    assert_eq!(fs::read_to_string(&kept).unwrap(), "kept");
    assert_eq!(names(&own.path()), ["kept"]);
}

#[test]
fn only_regular_files_are_written() {
    let scratch = Scratch::new();
    let at = |name: &str| scratch.path().join(name);
    fs::create_dir(at("directory")).unwrap();
    fs::write(at("file"), "").unwrap();
    rustix::fs::mkfifoat(CWD, at("fifo"), Mode::from_raw_mode(0o600)).unwrap();
    let _listening = UnixListener::bind(at("socket")).unwrap();
    symlink("fifo", at("link")).unwrap();
    let paths = [
        ("directory", "it is a directory"),
        ("directory/", "it is a directory"),
        ("directory/.", "it is a directory"),
        ("directory/..", "it is a directory"),
        ("fifo", "it is a FIFO"),
        ("socket", "it is a socket"),
        ("link", "fifo, a FIFO"),
        ("file/", "Not a directory"),
        ("file/below", "Not a directory"),
        ("absent/", "No such file"),
        ("absent/below", "No such file"),
    ];
    let before = names(&scratch.path());
    let absolute = [
        ("", "No such file"),
        ("/", "it is a directory"),
        ("/dev/zero", "it is a character device"),
        ("/proc/self/fd/1", "an open file of a process"),
        ("/proc/self/cwd/page", "an open file of a process"),
        ("/proc/version", "cannot be written"),
        ("/sys/kernel/page", "cannot be written"),
    ];
    let paths = paths.map(|(name, says)| (at(name), says));
    let paths = paths.into_iter();
    for (path, says) in paths.chain(absolute.map(|(path, says)| (path.into(), says))) {
        let problem = write(&path, "new").unwrap_err();
        assert!(problem.to_string().contains(says), "{path:?}: {problem}");
        assert!(problem.is_caused_by_name(), "{path:?}");
    }
    write(Path::new("/dev/null"), "new").unwrap();
    symlink("/dev/null", at("null")).unwrap();
    write(&at("null"), "new").unwrap();
    fs::remove_file(at("null")).unwrap();
    assert_eq!(names(&scratch.path()), before);
    let kind = FileType::from_raw_mode(at("fifo").metadata().unwrap().mode());
    assert_eq!(kind, FileType::Fifo);
}

/// Between the check and the writing somebody may put something in the way.
#[test]
fn what_appears_meanwhile_is_left_alone() {
    let scratch = Scratch::new();
    let (page, victim) = (scratch.path().join("page"), scratch.path().join("victim"));
    fs::write(&victim, "mine").unwrap();
    let opened = OutputFile::open_output(&page).unwrap();
    symlink(&victim, &page).unwrap();
    let error = opened.write_bytes(b"new").unwrap_err();
    assert!(error.to_string().contains("symbolic link"), "{error}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
    assert!(page.is_symlink());

    // The directory is the one that was found, whatever its name leads to now.
    let (directory, moved) = (scratch.path().join("way"), scratch.path().join("moved"));
    fs::create_dir(&directory).unwrap();
    let opened = OutputFile::open_output(&directory.join("victim")).unwrap();
    fs::rename(&directory, &moved).unwrap();
    symlink(scratch.path(), &directory).unwrap();
    opened.write_bytes(b"new").unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
    assert_eq!(fs::read_to_string(moved.join("victim")).unwrap(), "new");
}

/// The store opens its file by itself: of that only the way there is checked.
#[test]
fn a_file_that_something_else_opens() {
    let scratch = Scratch::new();
    let at = |name: &str| scratch.path().join(name);
    fs::write(at("store"), "").unwrap();
    set_mode(&at("store"), 0o444);
    OutputFile::check_output(&at("store")).unwrap();
    OutputFile::check_output(&at("new")).unwrap();
    OutputFile::check_output(&at("not/yet/there")).unwrap();
    for refused in [scratch.path(), "/dev/null".into(), at("store/below")] {
        OutputFile::check_output(&refused).unwrap_err();
    }
    if is_root("a_file_that_something_else_opens, links") {
        let foreign = shared(&scratch).join("store");
        link(&at("store"), &foreign, NOBODY);
        OutputFile::check_output(&foreign).unwrap_err();
    }
    assert!(!at("new").exists());
}

/// What a killed writer leaves is found by its name, its owner and its lock.
#[test]
fn only_what_nobody_writes_is_abandoned() {
    let scratch = Scratch::new();
    let here = &scratch.path();
    let abandoned = "diskperf-0123456789abcdef.partial";
    let written = "diskperf-fedcba9876543210.partial";
    let strange = [
        "diskperf-0123456789ABCDEF.partial",
        "diskperf-0123.partial",
        "diskperf-0123456789abcdef.partial.html",
    ];
    for name in [abandoned, written].iter().chain(&strange) {
        fs::write(here.join(name), "half").unwrap();
    }
    let lock = File::open(here.join(written)).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    symlink(
        here.join(strange[0]),
        here.join("diskperf-00000000000000aa.partial"),
    )
    .unwrap();
    fs::create_dir(here.join("diskperf-00000000000000bb.partial")).unwrap();
    let before = names(here);

    let found: Vec<_> = AbandonedOutput::find_in_directory(here).unwrap().collect();
    let paths: Vec<_> = found.iter().map(|one| one.path().to_owned()).collect();
    assert_eq!(paths, [here.canonicalize().unwrap().join(abandoned)]);
    // Another one that looks finds it locked.
    assert_eq!(AbandonedOutput::find_in_directory(here).unwrap().count(), 0);
    for one in found {
        one.remove().unwrap();
    }
    let after: Vec<_> = before
        .into_iter()
        .filter(|name| name != abandoned)
        .collect();
    assert_eq!(names(here), after);
}

#[test]
fn an_abandoned_file_that_took_its_name_stays() {
    let scratch = Scratch::new();
    let partial = scratch.path().join("diskperf-0123456789abcdef.partial");
    fs::write(&partial, "whole").unwrap();
    let found = AbandonedOutput::find_in_directory(&scratch.path())
        .unwrap()
        .next()
        .unwrap();
    fs::rename(&partial, scratch.path().join("report.html")).unwrap();
    fs::write(&partial, "another").unwrap();
    found.remove().unwrap();
    assert_eq!(
        names(&scratch.path()),
        ["diskperf-0123456789abcdef.partial", "report.html"]
    );
}

#[test]
fn a_file_of_another_user_is_not_abandoned() {
    let test = "a_file_of_another_user_is_not_abandoned";
    if !is_root(test) {
        return;
    }
    let scratch = Scratch::new();
    let partial = scratch.path().join("diskperf-0123456789abcdef.partial");
    fs::write(&partial, "half").unwrap();
    chown(&partial, Some(NOBODY), None).unwrap();
    assert_eq!(
        AbandonedOutput::find_in_directory(&scratch.path())
            .unwrap()
            .count(),
        0
    );
}
