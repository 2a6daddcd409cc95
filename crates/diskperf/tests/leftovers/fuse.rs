//! File systems that a process serves, which rename a file that is removed while
//! it is open.

use crate::support::machine::{Needs, can_run};
use crate::support::shown::Shown;
use crate::support::{MOUNTS, User, words};
use crate::{killed, measuring, the_folder_in};
use diskperf_store::Store;
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// A directory shown by a process on the target directory.
#[derive(Clone, Copy, Debug)]
enum Server {
    Bindfs,
    /// Without a network: a program that speaks SFTP takes the place of ssh.
    Sshfs,
}

const SFTP: &str = "/usr/lib/openssh/sftp-server";

impl Server {
    fn can_run(self, test: &str) -> bool {
        let test = format!("{test} ({self:?})");
        match self {
            Self::Bindfs => can_run(&test, &[Needs::Fuse, Needs::Tool("bindfs")]),
            Self::Sshfs => can_run(
                &test,
                &[Needs::Fuse, Needs::Tool("sshfs"), Needs::File(SFTP)],
            ),
        }
    }

    /// Serves the directory `behind` of the user's home on its target.
    fn serve(self, user: &User) -> Shown {
        match self {
            Self::Bindfs => Shown::by_bindfs(user),
            Self::Sshfs => Shown::by(user, |behind, target| {
                let ssh = user.file("ssh");
                std::fs::write(&ssh, format!("#!/bin/sh\nexec {SFTP}\n")).unwrap();
                std::fs::set_permissions(&ssh, PermissionsExt::from_mode(0o755)).unwrap();
                let mut command = Command::new("sshfs");
                command
                    .args(["-f", "-o", &format!("ssh_command={}", ssh.display())])
                    .arg(format!("none:{}", behind.display()))
                    .arg(target);
                command
            }),
        }
    }
}

#[test]
fn whole_suites_leave_nothing() {
    for server in [Server::Bindfs, Server::Sshfs] {
        if !server.can_run("whole_suites_leave_nothing") {
            continue;
        }
        let user = User::new();
        let served = server.serve(&user);
        for suite in ["ffs83 --runs 2", "read_files --runs 2", "vme87 --runs 2"] {
            let line = format!("run {suite} --on ./target --size 2M --format json");
            let run = user.run(&words(&line)).expect(0, &[]).json();
            assert_eq!(run["runs"][0]["state"], "finished", "{server:?} {suite}");
            user.assert_nothing_left((server, suite));
            served.expect_nothing_behind();
        }
        let noted = Store::open(&user.store())
            .unwrap()
            .list_workspaces()
            .unwrap();
        assert_eq!(noted, []);
    }
}

#[test]
fn a_fresh_file_system_on_it_leaves_nothing() {
    let test = "a_fresh_file_system_on_it_leaves_nothing";
    if !Server::Bindfs.can_run(test) || !can_run(test, MOUNTS) {
        return;
    }
    let user = User::new();
    let served = Server::Bindfs.serve(&user);
    let line = "run write_8192 --on ./target --size 1M --runs 2 --fresh ext4:block_bytes=4096";
    user.run(&words(line)).expect(0, &[]);
    user.assert_nothing_left("fresh");
    served.expect_nothing_behind();
}

#[test]
fn a_signal_and_a_kill_leave_nothing_after_clean() {
    for server in [Server::Bindfs, Server::Sshfs] {
        if !server.can_run("a_signal_and_a_kill_leave_nothing_after_clean") {
            continue;
        }
        let user = User::new();
        let served = server.serve(&user);
        let mut process = measuring(&user);
        let clean = user.run(&words("clean --on ./target")).expect(0, &[]);
        assert!(!clean.stdout.contains("removed"), "it lives: {clean:?}");
        process.signal(Signal::INT);
        let outcome = process.finish().expect(130, &["interrupted"]);
        user.assert_nothing_left(&outcome);
        served.expect_nothing_behind();

        let folder = killed(&user);
        user.run(&["clean"])
            .expect(0, &[])
            .shows(&[&format!("removed {}", folder.display())]);
        user.assert_nothing_left(server);
        served.expect_nothing_behind();
    }
}

/// A file of the folder that somebody else has open for a moment, as an indexer
/// does.
#[test]
fn a_file_that_is_being_read_is_waited_for() {
    if !Server::Bindfs.can_run("a_file_that_is_being_read_is_waited_for") {
        return;
    }
    let user = User::new();
    let served = Server::Bindfs.serve(&user);
    let mut process = measuring(&user);
    let marker = the_folder_in(&user.target()).join("diskperf-workspace");
    let reader = std::fs::File::open(marker).unwrap();
    process.signal(Signal::INT);
    std::thread::sleep(std::time::Duration::from_millis(200));
    drop(reader);
    process.finish().expect(130, &["interrupted"]);
    user.assert_nothing_left("read");
    served.expect_nothing_behind();
    // Who does not close it is told of, and `clean` comes by later.
    let mut process = measuring(&user);
    let folder = the_folder_in(&user.target());
    let reader = std::fs::File::open(folder.join("diskperf-workspace")).unwrap();
    process.signal(Signal::INT);
    let left = format!("{} is left", folder.display());
    process
        .finish()
        .expect(130, &["interrupted", &left, "diskperf clean"]);
    drop(reader);
    user.run(&["clean"])
        .expect(0, &[])
        .shows(&[&format!("removed {}", folder.display())]);
    user.assert_nothing_left("read for long");
    served.expect_nothing_behind();
}

#[test]
fn a_server_that_is_killed_is_told_and_cleaned_up_later() {
    for server in [Server::Bindfs, Server::Sshfs] {
        if !server.can_run("a_server_that_is_killed_is_told_and_cleaned_up_later") {
            continue;
        }
        let user = User::new();
        let mut served = server.serve(&user);
        let process = measuring(&user);
        let folder = the_folder_in(&user.target());
        served.kill();
        let outcome = process.finish();
        let left = format!("{} is left", folder.display());
        let outcome = outcome.expect(1, &["has ended", &left, "diskperf clean"]);
        assert!(outcome.stderr.contains("./target"), "{outcome:?}");
        // As long as nobody serves it, it can be found, but not removed.
        let target = user.target();
        let clean = user.run(&["clean"]).expect(1, &[target.to_str().unwrap()]);
        assert!(!clean.stdout.contains("removed"), "{clean:?}");
        drop(served);
        let clean = user.run(&["clean"]).expect(0, &["not mounted now"]);
        assert!(!clean.stdout.contains("removed"), "{clean:?}");
        let served = server.serve(&user);
        user.run(&["clean"])
            .expect(0, &[])
            .shows(&[&format!("removed {}", folder.display())]);
        user.assert_nothing_left(server);
        served.expect_nothing_behind();
    }
}
