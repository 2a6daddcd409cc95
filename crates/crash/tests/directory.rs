//! The rules of cuts of a directory: what was synced is there, and what is there was once written.

use diskperf_crash::directory::{
    DirectoryError, DirectoryLog, DirectoryRecording, EntryName, Node, NodeId, RenameTarget,
    SurvivingEntry,
};
use diskperf_crash::{Cut, CutPolicy, Instants, LyingFlush};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

const ROOT: NodeId = NodeId(3);

fn recording() -> DirectoryRecording {
    recording_with_space(u64::MAX)
}

fn recording_with_space(space_bytes: u64) -> DirectoryRecording {
    let reliable = LyingFlush::default();
    DirectoryRecording::new(ROOT, space_bytes, reliable, reliable)
}

fn entry(name: &str) -> EntryName {
    EntryName {
        directory: ROOT,
        name: name.into(),
    }
}

fn new_file() -> Node {
    Node::File {
        size: 0,
        pages: BTreeMap::new(),
        mode: 0o644,
    }
}

/// Contents of a file after the last instant, with all or no changes at risk kept.
fn survives(log: &DirectoryLog, name: &str, policy: CutPolicy) -> Option<Vec<u8>> {
    let cut = &policy.cuts(log.requests(), log.requests().end, 1)[0];
    DirectoryLog::contents(&log.surviving_tree(cut), Path::new(name))
}

/// Names after the last instant, with all or no changes at risk kept.
fn names(log: &DirectoryLog, policy: CutPolicy) -> Vec<PathBuf> {
    let cut = &policy.cuts(log.requests(), log.requests().end, 1)[0];
    log.surviving_tree(cut).into_keys().collect()
}

#[test]
fn a_file_needs_a_sync_of_its_data_and_of_its_name() {
    let mut recording = recording();
    let file = recording.create(entry("a"), new_file()).unwrap();
    recording.write(file, 0, b"data", false).unwrap();
    assert!(recording.sync(file));
    let unnamed = recording.create(entry("b"), new_file()).unwrap();
    assert!(recording.sync(ROOT));
    recording.write(unnamed, 0, b"later", false).unwrap();
    recording.create(entry("c"), new_file()).unwrap();
    let log = recording.finish();
    assert_eq!(
        names(&log, CutPolicy::None),
        [Path::new("a"), Path::new("b")]
    );
    assert_eq!(survives(&log, "a", CutPolicy::None).unwrap(), b"data");
    assert_eq!(survives(&log, "b", CutPolicy::None).unwrap(), b"");
    assert_eq!(survives(&log, "b", CutPolicy::All).unwrap(), b"later");
}

#[test]
fn a_rename_is_atomic_and_durable_with_its_directory() {
    let mut recording = recording();
    let old = recording.create(entry("settings"), new_file()).unwrap();
    recording.write(old, 0, b"old", true).unwrap();
    let new = recording.create(entry("new"), new_file()).unwrap();
    recording.write(new, 0, b"new", true).unwrap();
    recording.sync(ROOT);
    let (from, to) = (entry("new"), entry("settings"));
    recording.rename(from, to, RenameTarget::Replace).unwrap();
    recording.sync(new);
    let log = recording.finish();
    let both = [Path::new("new"), Path::new("settings")];
    assert_eq!(names(&log, CutPolicy::None), both);
    assert_eq!(survives(&log, "settings", CutPolicy::None).unwrap(), b"old");
    assert_eq!(names(&log, CutPolicy::All), both[1..]);
    assert_eq!(survives(&log, "settings", CutPolicy::All).unwrap(), b"new");
}

#[test]
fn a_failed_sync_covers_nothing_even_if_a_later_one_succeeds() {
    let every_second = LyingFlush {
        ignored: 1,
        round: 2,
    };
    let mut recording =
        DirectoryRecording::new(ROOT, u64::MAX, LyingFlush::default(), every_second);
    let file = recording.create(entry("a"), new_file()).unwrap();
    recording.write(file, 0, b"data", false).unwrap();
    assert!(!recording.sync(file));
    assert!(recording.sync(ROOT));
    assert!(!recording.sync(file));
    assert!(recording.sync(file));
    let lost = recording.finish();
    assert_eq!(survives(&lost, "a", CutPolicy::None).unwrap(), b"");
}

#[test]
fn refused_operations_change_nothing() {
    let mut recording = recording();
    let names = BTreeMap::new();
    let directory = Node::Directory { names, mode: 0o755 };
    let directory = recording.create(entry("d"), directory).unwrap();
    let inside = EntryName {
        directory,
        name: "f".into(),
    };
    let file = recording.create(inside.clone(), new_file()).unwrap();
    let refused = recording.remove(entry("d"));
    assert_eq!(refused, Err(DirectoryError::NotEmpty));
    let refused = recording.create(inside.clone(), new_file());
    assert_eq!(refused, Err(DirectoryError::Exists));
    let refused = recording.rename(entry("d"), inside.clone(), RenameTarget::Keep);
    assert_eq!(refused, Err(DirectoryError::Exists));
    assert_eq!(
        recording.look_up(file, "f".as_ref()),
        Err(DirectoryError::NotADirectory)
    );
    assert_eq!(
        recording.write(directory, 0, b"x", false),
        Err(DirectoryError::NotAFile)
    );
    let log = recording.finish();
    assert_eq!(log.requests().change_count(), 2);
}

#[test]
fn all_that_was_ever_written_has_a_bound() {
    let mut recording = recording_with_space(4 * 4096);
    let file = recording.create(entry("a"), new_file()).unwrap();
    recording.write(file, 4095, &[1; 2], false).unwrap();
    recording.write(file, 0, b"", false).unwrap();
    assert_eq!(recording.free_bytes(), 2 * 4096);
    // The first page again: a cut may leave the old one.
    recording.write(file, 0, &[2; 4096], false).unwrap();
    let refused = recording.write(file, 4095, &[3; 2], false);
    assert_eq!(refused, Err(DirectoryError::NoSpace));
    assert_eq!(recording.free_bytes(), 4096);
    assert_eq!(recording.read(file, 4095, 9).unwrap(), [2, 1]);
    recording.truncate(file, 4000).unwrap();
    assert_eq!(recording.free_bytes(), 0);
    let refused = recording.truncate(file, 1);
    assert_eq!(refused, Err(DirectoryError::NoSpace));
    assert_eq!(recording.read(file, 0, 9000).unwrap(), [2; 4000]);
    recording.truncate(file, 0).unwrap();
    recording.remove(entry("a")).unwrap();
    assert_eq!(recording.finish().requests().change_count(), 6);
}

/// Step of a random program on four names. Each write has contents of its own.
#[derive(Clone, Debug)]
enum Step {
    Create(usize),
    Write { name: usize, page: u64 },
    Truncate { name: usize, size: u64 },
    Rename { from: usize, to: usize },
    Link { from: usize, to: usize },
    Remove(usize),
    Sync(usize),
    SyncDirectory,
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn step() -> impl Strategy<Value = Step> {
    let name = || 0..NAMES.len();
    prop_oneof![
        2 => name().prop_map(Step::Create),
        4 => (name(), 0..3_u64).prop_map(|(name, page)| Step::Write { name, page }),
        1 => (name(), 0..9000_u64).prop_map(|(name, size)| Step::Truncate { name, size }),
        1 => (name(), name()).prop_map(|(from, to)| Step::Rename { from, to }),
        1 => (name(), name()).prop_map(|(from, to)| Step::Link { from, to }),
        1 => name().prop_map(Step::Remove),
        2 => name().prop_map(Step::Sync),
        1 => Just(Step::SyncDirectory),
    ]
}

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Newest files of a recording, by name.
fn newest(recording: &mut DirectoryRecording) -> Files {
    let mut files = Files::new();
    for name in NAMES {
        if let Ok(node) = recording.look_up(ROOT, name.as_ref()) {
            files.insert(name.into(), recording.read(node, 0, u64::MAX).unwrap());
        }
    }
    files
}

/// Runs steps, and returns the log with the newest files before each request of a step.
fn run_steps(steps: &[Step]) -> (DirectoryLog, BTreeMap<usize, Files>) {
    let mut recording = recording();
    let mut history = BTreeMap::from([(0, Files::new())]);
    for (number, step) in steps.iter().enumerate() {
        let node = |recording: &mut DirectoryRecording, name: usize| {
            recording.look_up(ROOT, NAMES[name].as_ref())
        };
        // A step that is refused changes nothing.
        let _ = match *step {
            Step::Create(name) => recording.create(entry(NAMES[name]), new_file()).map(drop),
            Step::Write { name, page } => node(&mut recording, name).and_then(|node| {
                let data = [number as u8 + 1; 5000];
                recording.write(node, page * 4096, &data, false)
            }),
            Step::Truncate { name, size } => {
                node(&mut recording, name).and_then(|node| recording.truncate(node, size))
            }
            Step::Rename { from, to } => {
                let (from, to) = (entry(NAMES[from]), entry(NAMES[to]));
                recording.rename(from, to, RenameTarget::Replace)
            }
            Step::Link { from, to } => {
                node(&mut recording, from).and_then(|node| recording.link(node, entry(NAMES[to])))
            }
            Step::Remove(name) => recording.remove(entry(NAMES[name])),
            Step::Sync(name) => node(&mut recording, name).map(|node| {
                recording.sync(node);
            }),
            Step::SyncDirectory => {
                recording.sync(ROOT);
                Ok(())
            }
        };
        let files = newest(&mut recording);
        history.insert(history.len(), files);
    }
    (recording.finish(), history)
}

fn files_after(log: &DirectoryLog, cut: &Cut) -> Files {
    let tree = log.surviving_tree(cut);
    let contents = |path: &PathBuf| (path.clone(), DirectoryLog::contents(&tree, path).unwrap());
    tree.keys().map(contents).collect()
}

fn all_cuts(log: &DirectoryLog) -> Vec<Cut> {
    let requests = log.requests();
    let positions = Instants::All.positions(requests, 1).into_iter();
    let cuts = positions.flat_map(|position| CutPolicy::Each.cuts(requests, position, 7));
    cuts.collect()
}

/// Names of a node, by a scan of two directories.
fn scanned_link_count(recording: &DirectoryRecording, other: NodeId, node: NodeId) -> u32 {
    let directories = [ROOT, other].map(|directory| match recording.node(directory) {
        Some(Node::Directory { names, .. }) => names,
        _ => panic!("{directory:?} is a directory"),
    });
    let named = directories.into_iter().flat_map(BTreeMap::values);
    named.filter(|named| **named == node).count() as u32
}

proptest! {
    #[test]
    fn link_counts_are_those_of_a_scan(
        steps in prop::collection::vec((0..5, 0..8_usize, 0..8_usize), 1..60)
    ) {
        let mut recording = recording();
        let names = BTreeMap::new();
        let other = Node::Directory { names, mode: 0o755 };
        let other = recording.create(entry("other"), other).unwrap();
        let mut nodes = vec![other];
        let place = |number: usize| EntryName {
            directory: [ROOT, other][number / NAMES.len()],
            name: NAMES[number % NAMES.len()].into(),
        };
        for (kind, first, second) in steps {
            let (first, second) = (place(first), place(second));
            // A step that is refused changes nothing.
            let _ = match kind {
                0 => recording.create(first, new_file()).map(|node| nodes.push(node)),
                1 => recording.look_up(first.directory, &first.name)
                    .and_then(|node| recording.link(node, second)),
                2 => recording.rename(first, second, RenameTarget::Replace),
                3 => recording.rename(first, second, RenameTarget::Keep),
                _ => recording.remove(first),
            };
            for &node in &nodes {
                let scanned = scanned_link_count(&recording, other, node);
                prop_assert_eq!(recording.link_count(node), scanned);
            }
        }
    }

    #[test]
    fn keeping_everything_gives_the_newest_files(steps in prop::collection::vec(step(), 1..40)) {
        let (log, history) = run_steps(&steps);
        let cut = &CutPolicy::All.cuts(log.requests(), log.requests().end, 1)[0];
        prop_assert_eq!(&files_after(&log, cut), history.values().next_back().unwrap());
    }

    #[test]
    fn a_stored_log_of_a_directory_is_the_same_or_refused(
        steps in prop::collection::vec(step(), 1..20),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
    ) {
        let (log, _) = run_steps(&steps);
        let mut stored = postcard::to_allocvec(&log).unwrap();
        let back: DirectoryLog = postcard::from_bytes(&stored).unwrap();
        prop_assert_eq!(&postcard::to_allocvec(&back).unwrap(), &stored);
        for cut in all_cuts(&log) {
            prop_assert_eq!(log.surviving_tree(&cut), back.surviving_tree(&cut));
        }
        for (place, byte) in changes {
            *place.get_mut(&mut stored) = byte;
        }
        // Whatever was read, its files are within the directory.
        if let Ok(changed) = postcard::from_bytes::<DirectoryLog>(&stored) {
            for path in all_cuts(&changed).iter().flat_map(|cut| changed.surviving_tree(cut).into_keys()) {
                let mut parts = path.components();
                prop_assert!(parts.all(|part| matches!(part, Component::Normal(_))), "{path:?}");
            }
        }
    }

    #[test]
    fn every_page_was_written_once_and_synced_files_are_whole(
        steps in prop::collection::vec(step(), 1..40)
    ) {
        let (log, history) = run_steps(&steps);
        let requests = log.requests();
        for position in Instants::All.positions(requests, 1) {
            for cut in CutPolicy::Each.cuts(requests, position, 7) {
                for (path, data) in files_after(&log, &cut) {
                    let written: BTreeSet<&[u8]> = history
                        .values()
                        .flat_map(BTreeMap::values)
                        .flat_map(|data| data.chunks(4096))
                        .collect();
                    let zeroes = [0; 4096];
                    for page in data.chunks(4096) {
                        // A size without its page, or the other way round, cuts a page short or
                        // ends it with zeroes.
                        let begins = |one: &&[u8]| {
                            let common = one.len().min(page.len());
                            one[..common] == page[..common]
                                && page[common..].iter().all(|byte| *byte == 0)
                        };
                        let is_known = written.iter().any(begins) || page == &zeroes[..page.len()];
                        prop_assert!(is_known, "{path:?} of {steps:?}");
                    }
                }
            }
        }
        // After a sync of every file and the directory nothing is at risk.
        let mut all = steps.clone();
        all.extend([0, 1, 2, 3].map(Step::Sync));
        all.push(Step::SyncDirectory);
        let (log, history) = run_steps(&all);
        let newest = history.values().next_back().unwrap();
        prop_assert_eq!(&files_after(&log, &Cut::losing_all(log.requests().end)), newest);
    }
}

#[test]
fn a_tree_has_links_directories_and_permissions() {
    let mut recording = recording();
    let names = BTreeMap::new();
    let node = Node::Directory { names, mode: 0o700 };
    let directory = recording.create(entry("d"), node).unwrap();
    let inside = EntryName {
        directory,
        name: "link".into(),
    };
    recording
        .create(inside, Node::Link("target".into()))
        .unwrap();
    recording.sync(ROOT);
    recording.sync(directory);
    let log = recording.finish();
    let tree = log.surviving_tree(&Cut::losing_all(log.requests().end));
    let expected = BTreeMap::from([
        ("d".into(), SurvivingEntry::Directory { mode: 0o700 }),
        ("d/link".into(), SurvivingEntry::Link("target".into())),
    ]);
    assert_eq!(tree, expected);
}

#[test]
fn a_stored_name_that_leads_outside_is_refused() {
    for name in ["..", ".", "a/b", "", "/etc", "a/"] {
        let mut recording = recording();
        recording.create(entry(name), new_file()).unwrap();
        let stored = postcard::to_allocvec(&recording.finish()).unwrap();
        let back = postcard::from_bytes::<DirectoryLog>(&stored);
        assert!(back.is_err(), "{name:?} was read");
    }
}

#[test]
fn a_stored_directory_within_itself_is_refused() {
    let mut recording = recording();
    let names = BTreeMap::new();
    let node = Node::Directory { names, mode: 0o755 };
    let directory = recording.create(entry("a"), node).unwrap();
    let within = EntryName {
        directory,
        name: "a".into(),
    };
    // The kernel lets no program do this.
    recording
        .rename(entry("a"), within, RenameTarget::Replace)
        .unwrap();
    let stored = postcard::to_allocvec(&recording.finish()).unwrap();
    assert!(postcard::from_bytes::<DirectoryLog>(&stored).is_err());
}
