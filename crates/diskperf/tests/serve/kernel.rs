//! The kernel on a served drive: nbdfuse shows it as a file, and a loop device makes a disk of
//! the file.

use crate::support::User;
use crate::support::machine::{Needs, Undo, can_run, retry, run};
use crate::{Serving, client, expect_success};
use rustix::process::Signal;
use std::fs;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

const CHAIN: &[Needs] = &[
    Needs::LoopDevices,
    Needs::Fuse,
    Needs::Tool("nbdfuse"),
    Needs::Tool("fusermount3"),
    Needs::Tool("mkfs.ext4"),
];

/// Files of the test, and the bytes of each.
const FILE_COUNT: usize = 20;
const FILE_BYTES: usize = 100_000;

/// A process that ends with its file system; killed if that was not unmounted.
struct Fuse(Child);

impl Drop for Fuse {
    fn drop(&mut self) {
        let is_running = |child: &mut Child| matches!(child.try_wait(), Ok(None));
        for _ in 0..200 {
            if !is_running(&mut self.0) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn contents(number: usize) -> Vec<u8> {
    (0..FILE_BYTES)
        .map(|at| (at * (number + 3) + at / 251) as u8)
        .collect()
}

#[test]
fn the_kernel_has_a_file_system_on_a_served_drive() {
    if !can_run("the_kernel_has_a_file_system_on_a_served_drive", CHAIN) {
        return;
    }
    let user = User::new();
    let serving = Serving::start(&user, "serve nvme-tlc --size 64M --format json");
    let disk = user.file("disk");
    fs::write(&disk, "").unwrap();
    let (disk, uri) = (disk.to_str().unwrap(), serving.uri.as_str());
    {
        let _fuse = Fuse(Command::new("nbdfuse").args([disk, uri]).spawn().unwrap());
        let _shown = Undo::by(&["fusermount3", "-u", disk]);
        retry(|| match fs::metadata(disk).map(|metadata| metadata.len()) {
            Ok(0) => Err("nbdfuse does not show the drive".to_owned()),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        });
        let attach = ["--find", "--show", "--direct-io=on", disk];
        let device = retry(|| {
            let attached = client("losetup", &attach);
            match attached.status.success() {
                true => Ok(String::from_utf8_lossy(&attached.stdout).trim().to_owned()),
                false => Err(format!("losetup: {attached:?}")),
            }
        });
        let _attached = Undo::by(&["losetup", "--detach", &device]);
        run("mkfs.ext4", &["-q", &device]);
        let folder = user.target();
        let mount = || {
            run("mount", &[device.as_str(), folder.to_str().unwrap()]);
            Undo::by(&["umount", folder.to_str().unwrap()])
        };
        let mounted = mount();
        for number in 0..FILE_COUNT {
            fs::write(folder.join(number.to_string()), contents(number)).unwrap();
        }
        drop(mounted);
        expect_success("e2fsck", &["-fn", &device]);
        let _mounted = mount();
        for number in 0..FILE_COUNT {
            let found = fs::read(folder.join(number.to_string())).unwrap();
            assert!(found == contents(number), "file {number} differs");
        }
    }
    let statistics = serving.end(Signal::TERM).expect(0, &[]).json();
    let operations = statistics["operations"].as_array().unwrap();
    for kind in ["read", "write", "flush"] {
        let has_kind = operations.iter().any(|of| of["operation"] == kind);
        assert!(has_kind, "{kind} is not in {statistics}");
    }
    assert!(
        operations.iter().all(|of| of["failed"] == 0),
        "{statistics}"
    );
}
