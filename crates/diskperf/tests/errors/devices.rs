//! A device is written only if the user said so and nobody uses it: through
//! the command line, with the device's bytes compared before and after.

use crate::support::machine::{LoopDevice, Needs, Undo, can_run, checksum, fill, retry, run};
use crate::support::{MOUNTS, User};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// A state that a device is in, how it is made, and what a refusal says.
struct State {
    name: &'static str,
    needs: Needs,
    /// Makes the state; what is returned ends it.
    make: fn(&User, &LoopDevice) -> Option<Undo>,
    says: &'static [&'static str],
    /// Whether `--ignore-signature` is no help either.
    in_use: bool,
}

fn mkfs(device: &LoopDevice) {
    run("mkfs.ext4", &["-q", "-F", &device.text()]);
}

fn partition(device: &LoopDevice) -> String {
    let mut sfdisk = Command::new("sfdisk")
        .args(["--quiet", "--no-reread", "--no-tell-kernel", &device.text()])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = sfdisk.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"label: dos\n,,L\n").unwrap();
    drop(input);
    assert!(sfdisk.wait().unwrap().success());
    device.add_partitions();
    format!("{}p1", device.text())
}

fn mount(device: &str, directory: &Path) -> Option<Undo> {
    let directory = directory.to_str().unwrap();
    retry(|| {
        // Read-only: the kernel itself writes to a new ext4 in the background,
        // and any other write is to be noticed.
        let words = ["-o", "ro", device, directory];
        let done = Command::new("mount").args(words).status();
        match done {
            Ok(status) if status.success() => Ok(()),
            other => Err(format!("mount {device}: {other:?}")),
        }
    });
    Some(Undo::by(&["umount", directory]))
}

const STATES: &[State] = &[
    State {
        name: "with a file system",
        needs: Needs::Tool("mkfs.ext4"),
        make: |_, device| {
            mkfs(device);
            None
        },
        says: &["ext4", "--ignore-signature"],
        in_use: false,
    },
    State {
        name: "with a partition table",
        needs: Needs::Tool("sfdisk"),
        make: |_, device| {
            partition(device);
            None
        },
        says: &["dos", "--ignore-signature"],
        in_use: false,
    },
    State {
        name: "mounted",
        needs: Needs::Tool("mkfs.ext4"),
        make: |user, device| {
            mkfs(device);
            mount(&device.text(), &user.target())
        },
        says: &["is mounted on", "umount"],
        in_use: true,
    },
    State {
        name: "with a mounted partition",
        needs: Needs::Tool("sfdisk"),
        make: |user, device| {
            let partition = partition(device);
            run("mkfs.ext4", &["-q", "-F", &partition]);
            mount(&partition, &user.target())
        },
        says: &["p1 is mounted on", "umount"],
        in_use: true,
    },
    State {
        name: "as swap",
        needs: Needs::Tool("mkswap"),
        make: |_, device| {
            run("mkswap", &[device.text()]);
            run("swapon", &[device.text()]);
            Some(Undo::by(&["swapoff", &device.text()]))
        },
        says: &["is swap", "swapoff"],
        in_use: true,
    },
];

/// Runs a program that writes, and expects that it is refused and that every
/// byte of the device is as it was.
fn expect_refusal(user: &User, device: &LoopDevice, options: &[&str], says: &[&str], state: &str) {
    let before = checksum(&device.path);
    let line = [
        &["run", "write_8192", "--size", "1M", "--runs", "1"],
        options,
    ]
    .concat();
    let outcome = user.run(&line).expect(2, says);
    assert_eq!(
        checksum(&device.path),
        before,
        "{state}: {options:?}: {outcome:?}"
    );
}

#[test]
fn a_device_in_use_is_not_written() {
    if !can_run("a_device_in_use_is_not_written", MOUNTS) {
        return;
    }
    for state in STATES {
        let name = format!("a_device_in_use_is_not_written ({})", state.name);
        if !can_run(&name, &[state.needs]) {
            continue;
        }
        let user = User::new();
        let device = LoopDevice::blank(user.scratch(), 16);
        let undo = (state.make)(&user, &device);
        let (path, link) = (device.text(), user.file("link"));
        symlink(&device.path, &link).unwrap();
        for on in [path.as_str(), "./link"] {
            for destroyed in [path.as_str(), "./link"] {
                let destroy = ["--on", on, "--destroy-data-on", destroyed];
                expect_refusal(&user, &device, &destroy, state.says, state.name);
                if state.in_use {
                    let ignore = [&destroy[..], &["--ignore-signature"]].concat();
                    expect_refusal(&user, &device, &ignore, state.says, state.name);
                }
            }
        }
        expect_refusal(
            &user,
            &device,
            &["--on", &path],
            &["--destroy-data-on"],
            state.name,
        );
        drop(undo);
    }
}

#[test]
fn a_device_is_written_only_where_it_is_named() {
    if !can_run("a_device_is_written_only_where_it_is_named", MOUNTS) {
        return;
    }
    let user = User::new();
    let (ours, other) = (
        LoopDevice::blank(user.scratch(), 16),
        LoopDevice::blank(user.scratch(), 16),
    );
    let (on, another) = (ours.text(), other.text());
    let untouched = checksum(&other.path);
    let slip = ["--on", &on, "--destroy-data-on", &another];
    expect_refusal(
        &user,
        &ours,
        &slip,
        &["--destroy-data-on", "the same device"],
        "another",
    );
    expect_refusal(
        &user,
        &ours,
        &["--on", &on],
        &["--destroy-data-on", &on],
        "none",
    );
    // Of two targets only one is given up.
    let half = ["--on", &on, "--on", &another, "--destroy-data-on", &another];
    expect_refusal(&user, &ours, &half, &["--destroy-data-on", &on], "half");
    let together = [&half[..], &["--together"]].concat();
    expect_refusal(
        &user,
        &ours,
        &together,
        &["--destroy-data-on", &on],
        "half, together",
    );
    assert_eq!(checksum(&other.path), untouched);

    // A program that only reads does not write, whatever is given up.
    let before = checksum(&ours.path);
    let read = [
        "run",
        "read_8192",
        "--size",
        "1M",
        "--runs",
        "1",
        "--on",
        &on,
    ];
    user.run(&read).expect(0, &[]);
    user.run(&[&read[..], &["--destroy-data-on", &on]].concat())
        .expect(0, &[]);
    assert_eq!(checksum(&ours.path), before);

    let write = [
        "run",
        "write_8192",
        "--size",
        "1M",
        "--runs",
        "1",
        "--on",
        &on,
    ];
    user.run(&[&write[..], &["--destroy-data-on", &on]].concat())
        .expect(0, &[]);
    assert_ne!(checksum(&ours.path), before);
    assert_eq!(checksum(&other.path), untouched);

    mkfs(&ours);
    let signed = checksum(&ours.path);
    let ignore = ["--destroy-data-on", &on, "--ignore-signature"];
    user.run(&[&write[..], &ignore].concat()).expect(0, &[]);
    assert_ne!(checksum(&ours.path), signed);
}

/// A former user of a loop device may leave partitions, which the kernel shows
/// of whatever the device shows next.
#[test]
fn partitions_of_a_former_user() {
    let needs = [MOUNTS, &[Needs::Tool("sfdisk"), Needs::Tool("partx")]].concat();
    if !can_run("partitions_of_a_former_user", &needs) {
        return;
    }
    let user = User::new();
    let device = retry(|| left_with_partitions(&user));
    let text = device.text();
    assert_eq!(device.partitions(), [format!("{}p1", device.name())]);
    let says = [
        "p1 without a partition table",
        "partx --delete",
        "--ignore-signature",
    ];
    let destroy = ["--on", &text, "--destroy-data-on", &text];
    expect_refusal(&user, &device, &destroy, &says, "left partitions");

    device.forget_partitions();
    assert_eq!(device.partitions(), [""; 0]);
    let write = ["run", "write_8192", "--size", "1M", "--runs", "1"];
    user.run(&[&write[..], &destroy].concat()).expect(0, &[]);
}

/// A blank device which shows a partition of a former user's. Another test may
/// take the device before this one.
fn left_with_partitions(user: &User) -> Result<LoopDevice, String> {
    let left = LoopDevice {
        path: LoopDevice::left_with_partitions(user.scratch()),
    };
    let image = user.file("next");
    fill(&image, 16, 0);
    let words = [left.text(), image.display().to_string()];
    let attached = Command::new("losetup").args(words).output();
    match attached {
        Ok(output) if output.status.success() => Ok(left),
        other => {
            // It is somebody else's now.
            std::mem::forget(left);
            Err(format!("losetup: {other:?}"))
        }
    }
}

#[test]
fn a_size_larger_than_the_device() {
    if !can_run("a_size_larger_than_the_device", MOUNTS) {
        return;
    }
    let user = User::new();
    let device = LoopDevice::blank(user.scratch(), 4);
    let on = device.text();
    user.run(&["run", "read_8192", "--size", "8M", "--on", &on])
        .expect(2, &["is too short", &on, "--size"]);
    user.run(&["run", "--fresh", "ext4", "--size", "1M", "--on", &on])
        .expect(2, &["--fresh", "give a directory"]);
}
