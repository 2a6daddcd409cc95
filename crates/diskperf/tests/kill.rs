//! A run that is killed at any instant loses no repetition that was stored,
//! and leaves nothing that `diskperf clean` does not remove.

mod support;

use diskperf_store::Store;
use diskperf_timeline::RunState;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;
use support::leftovers::{Disk, Leftovers};
use support::machine::{LoopDevice, Needs, can_run, instances_of};
use support::{MOUNTS, Random, User, entries, words};

/// Kills, unless the environment's DISKPERF_KILLS says how many.
const KILLS: u32 = 25;

const PLAIN: &str = "run write_8192 --on ./target --size 64K --runs 100000 --quiet";
const SUITE: &str = "run vme87 --on ./target --size 1M --runs 1000 --quiet";
const FRESH: &str =
    "run write_8192 --on ./target --size 64K --runs 100000 --quiet --fresh ext4:block_bytes=4096";

const AB: &str = "ab ./target ./target write_8192 --size 64K --budget 1h --min-effect 0% --quiet";

/// What is killed, and the latest instant at which.
const LINES: [(&str, Duration); 6] = [
    (PLAIN, Duration::from_millis(40)),
    (PLAIN, Duration::from_millis(600)),
    (SUITE, Duration::from_millis(600)),
    (AB, Duration::from_millis(900)),
    (FRESH, Duration::from_millis(300)),
    (FRESH, Duration::from_millis(1200)),
];

fn kills() -> u32 {
    let asked = std::env::var("DISKPERF_KILLS").ok();
    asked.map_or(KILLS, |text| {
        text.parse().expect("DISKPERF_KILLS is a number")
    })
}

/// How many repetitions each run has in the store, every one of them read.
fn repetitions(user: &User) -> BTreeMap<String, usize> {
    if !user.store().exists() {
        return BTreeMap::new();
    }
    let store = Store::open(&user.store()).expect("the store opens");
    let load = |id: String| {
        let run = store.load_run(&id).expect("the run can be read");
        let repetitions = run.results.iter().map(|result| result.repetitions.len());
        (id, repetitions.sum())
    };
    let headings = store.list_runs().expect("the store can be read");
    headings.into_iter().map(|run| load(run.id)).collect()
}

#[track_caller]
fn assert_kept(before: &BTreeMap<String, usize>, after: &BTreeMap<String, usize>, when: &str) {
    for (id, stored) in before {
        let found = after.get(id);
        assert!(
            found >= Some(stored),
            "run {id} had {stored} repetitions, now {found:?}: {when}"
        );
    }
}

#[test]
fn a_killed_run_loses_nothing_and_is_cleaned_up() {
    let test = "a_killed_run_loses_nothing_and_is_cleaned_up";
    let kills = kills();
    let can_mount = can_run(&format!("{test} (--fresh)"), MOUNTS);
    let mut random = Random::new(test);
    let (mut stored, mut folders) = (0, 0);
    let mut user = User::new();
    for kill in 0..kills {
        // One store goes through several kills, and many begin with one.
        if kill % 10 == 0 {
            user = User::new();
        }
        let (line, limit) = LINES[kill as usize % LINES.len()];
        if line == FRESH && !can_mount {
            continue;
        }
        let finished = repetitions(&user);
        let mut process = user.start(&words(line));
        let delay = random.up_to(limit);
        thread::sleep(delay);
        // What another process reads out of the store has been finished.
        let seen = user.stored();
        process.signal(Signal::KILL);
        let outcome = process.finish();
        let when = format!("kill {kill} after {delay:?}: {outcome:?}");
        assert_eq!(outcome.code, None, "{when}");

        let after = repetitions(&user);
        assert_kept(&finished, &after, &when);
        let seen = seen
            .into_iter()
            .map(|run| (run.id, run.repetition_count as usize))
            .collect();
        assert_kept(&seen, &after, &when);
        stored += after.values().sum::<usize>() - finished.values().sum::<usize>();
        folders += entries(&user.target()).len();

        let cleaned = user.run(&words("clean --on ./target")).expect(0, &[]);
        user.assert_nothing_left(format!("{when}, {cleaned:?}"));
        user.run(&words("clean --on ./target")).expect(0, &[]);
        assert_eq!(repetitions(&user), after, "clean changed the store: {when}");
        user.run(&words("list runs")).expect(0, &[]);
    }
    eprintln!("{kills} kills: {stored} repetitions were stored, {folders} folders were left");
    assert!(stored > 0 && folders > 0, "no kill came in the middle");
}

/// Also when a second search began with what a first one had left.
#[test]
fn a_killed_search_leaves_settings_that_clean_puts_back() {
    let test = "a_killed_search_leaves_settings_that_clean_puts_back";
    if !can_run(test, MOUNTS) {
        return;
    }
    let mut random = Random::new(test);
    let mut user = User::with_own_run_directory();
    let home = User::new();
    let disk = Disk::new(home.scratch());
    let search = disk.search();
    let (mut changed, mut killed) = (0, 0);
    for kill in 0..kills() {
        if kill % 10 == 0 {
            user = User::with_own_run_directory();
        }
        let searches = 1 + random.below(2);
        for _ in 0..searches {
            let mut process = user.start(&words(&search));
            // Half of the instants are when it is about to change the setting again.
            if random.below(2) == 0 {
                process.wait_until(|| disk.value() != Disk::AHEAD_KB);
            }
            let delay = random.up_to(Duration::from_millis(300));
            thread::sleep(delay);
            process.signal(Signal::KILL);
            let outcome = process.finish();
            let when = format!("kill {kill} after {delay:?}: {outcome:?}");
            // One that finds the better setting soon ends before.
            assert!(matches!(outcome.code, None | Some(0)), "{when}");
            killed += u32::from(outcome.code.is_none());
            assert!(repetitions(&user).is_empty(), "{when}");
        }
        changed += u32::from(disk.value() != Disk::AHEAD_KB);
        let cleaned = user.run(&["clean"]).expect(0, &[]);
        let when = format!("kill {kill} of {searches} searches, {cleaned:?}");
        assert_eq!(disk.value(), Disk::AHEAD_KB, "{when}");
        user.assert_nothing_left(when);
        let nothing = user.run(&["clean"]).expect(0, &[]);
        assert!(nothing.stdout.contains("nothing to remove"), "{nothing:?}");
    }
    eprintln!("{changed} of {} searches had changed the setting", kills());
    assert!(changed > 0, "no kill came in the middle");
    assert!(killed >= kills() / 2, "{killed} searches were killed");
}

#[test]
fn what_a_killed_clean_leaves_the_next_one_removes() {
    let test = "what_a_killed_clean_leaves_the_next_one_removes";
    if !can_run(test, MOUNTS) {
        return;
    }
    const CLEAN: &str = "clean --on ./other";
    let mut random = Random::new(test);
    let home = User::new();
    let disk = Disk::new(home.scratch());
    let leftovers = Leftovers::of(&disk);
    let left = |user: &User| {
        let folders = [user.target(), user.file("other")].map(|place| entries(&place).len());
        folders.iter().sum::<usize>() + usize::from(disk.value() != Disk::AHEAD_KB)
    };
    let (mut in_the_middle, mut limit) = (0, Duration::from_millis(20));
    for kill in 0..kills() {
        let user = User::with_own_run_directory();
        leftovers.leave(&user, &disk);
        let before = (repetitions(&user), left(&user));
        let mut process = user.start(&words(CLEAN));
        let delay = random.up_to(limit);
        thread::sleep(delay);
        process.signal(Signal::KILL);
        let outcome = process.finish();
        let when = format!("kill {kill} after {delay:?}: {outcome:?}");
        // Half of the instants are to be before its end, however fast it is here.
        match outcome.code {
            None => limit = limit.mul_f64(1.1),
            Some(_) => limit = limit.mul_f64(0.9),
        }
        in_the_middle += u32::from((1..before.1).contains(&left(&user)));
        assert_eq!(repetitions(&user), before.0, "{when}");
        let cleaned = user.run(&words(CLEAN)).expect(0, &[]);
        let when = format!("{when}, {cleaned:?}");
        assert_eq!(left(&user), 0, "{when}");
        user.assert_nothing_left(when);
        let nothing = user.run(&words(CLEAN)).expect(0, &[]);
        assert!(nothing.stdout.contains("nothing to remove"), "{nothing:?}");
    }
    eprintln!("{in_the_middle} of {} came in the middle", kills());
}

/// `clean` knows the store's folders, wherever they are.
#[test]
fn clean_finds_what_the_store_knows() {
    let user = User::new();
    let mut process = user.start(&words(PLAIN));
    user.wait_for_repetitions(&mut process, 1);
    process.signal(Signal::KILL);
    process.finish();
    let left = entries(&user.target());
    assert_eq!(left.len(), 1);
    // Not what only looks like a run's folder.
    std::fs::create_dir(user.target().join("diskperf-results")).unwrap();
    let cleaned = user.run(&["clean"]).expect(0, &[]);
    assert!(cleaned.stdout.contains(&left[0]), "{cleaned:?}");
    assert_eq!(entries(&user.target()), ["diskperf-results"]);
    let nothing = user.run(&["clean"]).expect(0, &[]);
    assert!(nothing.stdout.contains("nothing to remove"), "{nothing:?}");
    // A killed run is one that never ended.
    assert_eq!(user.stored()[0].state, RunState::Running);
    user.run(&["show", "last"]).expect(0, &[]);
}

#[test]
fn clean_leaves_a_living_run_alone() {
    for line in [PLAIN, FRESH] {
        if line == FRESH && !can_run("clean_leaves_a_living_run_alone (--fresh)", MOUNTS) {
            continue;
        }
        let user = User::new();
        let mut process = user.start(&words(line));
        user.wait_for_repetitions(&mut process, 1);
        let folders = entries(&user.target());
        for clean in ["clean", "clean --on ./target"] {
            let cleaned = user.run(&words(clean)).expect(0, &[]);
            assert!(cleaned.stdout.contains("nothing to remove"), "{cleaned:?}");
            assert_eq!(entries(&user.target()), folders);
            let so_far = user.stored()[0].repetition_count;
            user.wait_for_repetitions(&mut process, so_far + 2);
        }
        // Also the store still knows of the folder.
        let noted = Store::open(&user.store())
            .unwrap()
            .list_workspaces()
            .unwrap();
        let noted: Vec<_> = noted.into_iter().map(|noted| noted.path).collect();
        assert_eq!(noted, [user.target().join(&folders[0])]);
        process.signal(Signal::INT);
        process.finish().expect(130, &[]);
        user.assert_nothing_left(line);
    }
}

/// A search goes on where it was killed, and comes to the same as one that was
/// left alone.
#[test]
fn a_killed_search_goes_on_where_it_was() {
    const SEARCH: &str = "tune vax780-sc780-eagle --suite write_8192 --size 1M --seeds 0 --format json --over filesystem.rotdelay_ms=0..7 --over driver.search_lead_sectors=0..7 --over filesystem.maxcontig=1..8";
    let user = User::new();
    let kept = || -> i64 {
        let connection = rusqlite::Connection::open(user.store()).expect("the store opens");
        let counted = connection.query_row("SELECT count(*) FROM points", [], |row| row.get(0));
        counted.unwrap_or(0)
    };
    let mut process = user.start(&words(SEARCH));
    process.wait_until(|| user.store().exists() && kept() > 0);
    process.signal(Signal::KILL);
    assert_eq!(process.finish().code, None);
    let after_kill = kept();
    // Ctrl-C commits what is finished, and says how to go on.
    let mut process = user.start(&words(SEARCH));
    process.wait_until(|| kept() > after_kill);
    process.signal(Signal::INT);
    process
        .finish()
        .expect(130, &["the same command resumes from there"]);
    let after_interrupt = kept();
    assert!(after_kill > 0 && after_interrupt > after_kill);
    let resumed = user.run(&words(SEARCH)).expect(0, &[]).json();
    // One of them is of the target as it is.
    let from_store = resumed["method"]["from_store"].as_i64().unwrap();
    assert!(
        from_store == after_interrupt || from_store == after_interrupt - 1,
        "{from_store} of {after_interrupt}"
    );
    assert_eq!(resumed["points"].as_array().unwrap().len(), 512);
    let fresh = format!("{SEARCH} --fresh");
    let fresh = user.run(&words(&fresh)).expect(0, &[]).json();
    assert_eq!(fresh["method"]["from_store"], 0);
    assert_eq!(fresh["points"], resumed["points"]);
    // All of it, and printed so.
    let table = SEARCH.replace("--format json", "");
    user.run(&words(&table))
        .expect(0, &[])
        .shows(&["512 of 512 points from the store"]);
}

/// Requests that a disk has completed.
fn completed(disk: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/sys/block/{disk}/stat")).expect("counters");
    let mut counters = text.split_whitespace().map(|one| one.parse::<u64>());
    let mut at = |place| counters.nth(place).and_then(Result::ok).expect("a counter");
    // Those that read, and four further on those that write.
    at(0) + at(3)
}

/// What a killed recorder had until a second before is in its file.
#[test]
fn a_killed_recording_has_all_but_its_last_second() {
    let test = "a_killed_recording_has_all_but_its_last_second";
    if !can_run(test, &[Needs::BlockEvents, Needs::LoopDevices]) {
        return;
    }
    const SECOND: Duration = Duration::from_secs(1);
    let home = User::new();
    let disk = LoopDevice::blank(home.scratch(), 64);
    let (name, path) = (disk.name(), disk.text());
    let line = format!(
        "run random --on {path} --destroy-data-on {path} --direct --quiet --set program.area_bytes=32M --set program.write_share=0.5 --set program.depth=4 --set program.duration_ms=3600000"
    );
    let load = home.start(&words(&line));
    let mut random = Random::new(test);
    let mut some = 0;
    // Each takes a second and more.
    let kills = match kills() {
        100.. => 100,
        few => few.div_ceil(5),
    };
    for kill in 0..kills {
        let user = User::new();
        let file = user.file("t");
        let mut process = user.start(&words(&format!("record {path} -o t --quiet")));
        let number = process.pid().as_raw_nonzero().get();
        process.wait_until(|| file.metadata().is_ok_and(|status| status.len() > 16));
        let before = completed(&name);
        thread::sleep(random.up_to(SECOND));
        // What is done now is more than a second old when it is killed.
        let done = completed(&name) - before;
        thread::sleep(SECOND);
        process.signal(Signal::KILL);
        let outcome = process.finish();
        assert_eq!(outcome.code, None, "{outcome:?}");
        let found = user
            .run(&words("trace t --partial --format json --quiet"))
            .expect(0, &[])
            .json();
        let requests = found["summary"]["requests"].as_u64().expect("requests");
        assert!(requests >= done, "kill {kill}: {requests} of {done}");
        assert_eq!(found["notices"]["is_cut"], true, "kill {kill}");
        user.run(&words("trace t")).expect(2, &["--partial"]);
        user.run(&["clean"]).expect(0, &[]);
        assert_eq!(instances_of(number), [""; 0], "kill {kill}");
        some += done;
    }
    drop(load);
    eprintln!("{kills} kills of recorders, {some} requests before their last seconds");
    assert!(some > 0, "nothing was asked of the disk");
}
