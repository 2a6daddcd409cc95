//! Limits of the process's own control group, which are named beside the figures that they make.

use crate::support::machine::{LoopDevice, can_run, unique};
use crate::support::{MOUNTS, User, words};
use std::fs;
use std::path::{Path, PathBuf};

/// A control group of its own that limits requests; gone when dropped.
struct Limited(PathBuf);

impl Limited {
    /// Makes a group whose reads of a device are limited; `None` without cgroup v1's throttling.
    fn new(device: &LoopDevice, per_s: u32) -> Option<Self> {
        let path = device.text();
        let name = Path::new(&path).file_name()?.to_str()?;
        let number = fs::read_to_string(format!("/sys/class/block/{name}/dev")).ok()?;
        let group = Self(PathBuf::from(format!(
            "/sys/fs/cgroup/blkio/diskperf-test-{:08x}",
            unique()
        )));
        fs::create_dir(&group.0).ok()?;
        let limit = format!("{} {per_s}", number.trim());
        fs::write(group.0.join("blkio.throttle.read_iops_device"), limit).ok()?;
        Some(group)
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn the_limit_of_the_own_control_group_is_named() {
    const NAME: &str = "the_limit_of_the_own_control_group_is_named";
    if !can_run(NAME, MOUNTS) {
        return;
    }
    let user = User::new();
    let device = LoopDevice::blank(user.scratch(), 16);
    let Some(group) = Limited::new(&device, 400) else {
        eprintln!("SKIPPED {NAME}: cgroup v1 throttles nothing here");
        return;
    };
    let line = format!(
        "run random --direct --on {} --set program.depth=8 --set program.area_bytes=8M --size 1M --runs 1 --quiet",
        device.text()
    );
    let says = "own limit: the control group of this process limits reads of loop";
    let free = user.run(&words(&line)).expect(0, &[]);
    assert!(!free.has(says), "{free:?}");
    let enter = format!(
        "echo $$ > {}/cgroup.procs && exec \"$@\"",
        group.0.display()
    );
    user.run_by(&["sh", "-c", &enter, "sh"], &words(&line))
        .expect(0, &[])
        .shows(&[says, "to 400 requests/s", "blkio.throttle.read_iops_device"]);
    let exported = user
        .run(&["export", "last", "-o", "-"])
        .expect(0, &[])
        .json();
    assert!(exported.to_string().contains(says), "the note is stored");
}
