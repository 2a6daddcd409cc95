//! A process that does not run for a while, as when the machine is suspended. (That the
//! machine's own sleep counts too is tested where the clocks are read.)

use crate::support::machine::{Undo, unique};
use crate::support::{User, words};
use crate::{ENGINES, endless, newest};
use diskperf_timeline::{Interference, RunState};
use rustix::process::{Pid, Signal};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Far longer than a repetition here.
const STOP: Duration = Duration::from_millis(700);

/// A stop may come between two timed parts, where it is no matter.
const ATTEMPTS: usize = 8;

/// A run that is stopped goes on, says of the repetition that it was stopped, and ends in
/// order.
fn goes_on(engine: &str, stop: impl Fn(Pid), go_on: impl Fn(Pid)) {
    let user = User::new();
    let more = format!(
        "--set program.write_share=0.5 --set program.duration_ms=200 --set program.engine={engine}"
    );
    let mut process = user.start(&words(&endless("./target", &more)));
    let is_stopped = |one: &Interference| matches!(one, Interference::ProcessStopped { .. });
    let was_stopped = || {
        let run = newest(&user);
        let mut found = run.results[0].repetitions.iter();
        found.any(|one| one.interference.iter().any(is_stopped))
    };
    user.wait_for_repetitions(&mut process, 1);
    let pid = process.pid();
    let noticed = (0..ATTEMPTS).any(|_| {
        thread::sleep(Duration::from_millis(100));
        stop(pid);
        thread::sleep(STOP);
        let before = user.stored()[0].repetition_count;
        go_on(pid);
        user.wait_for_repetitions(&mut process, before + 2);
        was_stopped()
    });
    process.signal(Signal::INT);
    let outcome = process.finish().expect(130, &["interrupted"]);
    user.assert_nothing_left(&outcome);
    assert_eq!(newest(&user).state, RunState::Interrupted, "{outcome:?}");
    assert!(noticed, "{engine}: {outcome:?}");
}

#[test]
fn a_stopped_process_goes_on() {
    for engine in ENGINES {
        let send = |signal| {
            move |pid| rustix::process::kill_process(pid, signal).expect("it is our child")
        };
        goes_on(engine, send(Signal::STOP), send(Signal::CONT));
    }
}

/// A group of processes, made under either version of the kernel's interface.
struct Group {
    folder: PathBuf,
    /// The file that freezes it, with the words for both states.
    freezer: (&'static str, &'static str, &'static str),
    _undo: Undo,
}

impl Group {
    /// `None` where this user cannot make one that can be frozen.
    fn new() -> Option<Self> {
        let ways = [
            ("/sys/fs/cgroup", ("cgroup.freeze", "1", "0")),
            ("/sys/fs/cgroup/unified", ("cgroup.freeze", "1", "0")),
            (
                "/sys/fs/cgroup/freezer",
                ("freezer.state", "FROZEN", "THAWED"),
            ),
        ];
        ways.into_iter().find_map(|(hierarchy, freezer)| {
            let name = format!("diskperf-test-{:08x}", unique());
            let folder = Path::new(hierarchy).join(name);
            fs::create_dir(&folder).ok()?;
            let undo = Undo::by(&["rmdir", folder.to_str()?]);
            folder.join(freezer.0).exists().then_some(Self {
                folder,
                freezer,
                _undo: undo,
            })
        })
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.folder.join(file);
        fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

#[test]
fn a_frozen_process_goes_on() {
    let Some(group) = Group::new() else {
        eprintln!("SKIPPED a_frozen_process_goes_on: no group of processes can be frozen here");
        return;
    };
    let (file, frozen, thawed) = group.freezer;
    for engine in ENGINES {
        goes_on(
            engine,
            |pid| {
                group.write("cgroup.procs", &pid.as_raw_nonzero().to_string());
                group.write(file, frozen);
            },
            |_| group.write(file, thawed),
        );
    }
}
