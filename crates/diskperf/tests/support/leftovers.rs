//! What killed runs and searches leave, for `diskperf clean` to remove.

use super::machine::{LoopDevice, Scratch, run};
use super::{User, entries, words};
use diskperf_store::Store;
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};

/// A loop device whose queue is set to what neither the kernel begins with nor a
/// search sets.
pub(crate) struct Disk(pub(crate) LoopDevice);

impl Disk {
    /// How far it reads ahead as its owner wants it.
    pub(crate) const AHEAD_KB: &str = "96";
    /// And as a killed search has left it.
    const CHANGED_KB: &str = "4";

    /// A disk of 1 MiB.
    pub(crate) fn new(scratch: &Scratch) -> Self {
        let disk = Self(LoopDevice::blank(scratch, 1));
        disk.set(Self::AHEAD_KB);
        disk
    }

    /// The setting that searches change.
    pub(crate) fn setting(&self) -> PathBuf {
        let queue = Path::new("/sys/block").join(self.0.name()).join("queue");
        queue.join("read_ahead_kb")
    }

    pub(crate) fn set(&self, value: &str) {
        fs::write(self.setting(), value).expect("root may change a loop device's settings");
    }

    pub(crate) fn value(&self) -> String {
        let text = fs::read_to_string(self.setting()).expect("a device has the setting");
        text.trim().to_owned()
    }

    /// A search that changes the setting over and over.
    pub(crate) fn search(&self) -> String {
        format!(
            "tune {} --suite read_8192 --size 64K --runs 1000 --change-device-settings --over device.read_ahead_kb={},64",
            self.0.text(),
            Self::CHANGED_KB
        )
    }
}

/// A killed run on a fresh file system and a killed search, to be copied.
pub(crate) struct Leftovers {
    template: User,
    folder: String,
}

impl Leftovers {
    pub(crate) fn of(disk: &Disk) -> Self {
        let template = User::with_own_run_directory();
        let search = disk.search();
        let mut process = template.start(&words(&search));
        process.wait_until(|| disk.value() == Disk::CHANGED_KB);
        process.signal(Signal::KILL);
        process.finish();
        disk.set(Disk::AHEAD_KB);
        let mut process = template.start(&words(
            "run write_8192 --on ./target --size 64K --runs 100000 --fresh ext4:block_bytes=4096",
        ));
        template.wait_for_repetitions(&mut process, 1);
        process.signal(Signal::KILL);
        process.finish();
        let folder = entries(&template.target()).remove(0);
        let mut store = Store::open(&template.store()).expect("the store opens");
        let known = template.target().join(&folder);
        store
            .forget_workspace(&known)
            .expect("the store can be written");
        Self { template, folder }
    }

    /// Leaves a user with a run directory a folder that the store knows of, one in
    /// `./other` that it does not, and a disk's setting.
    pub(crate) fn leave(&self, user: &User, disk: &Disk) {
        let copy = |from: &Path, to: &Path| run("cp", &[Path::new("-a"), from, to]);
        copy(&self.template.file("data"), &user.file("data"));
        copy(&self.template.file("run/diskperf"), &user.file("run"));
        fs::create_dir(user.file("other")).expect("scratch directories can be written");
        let folder = self.template.target().join(&self.folder);
        copy(&folder, &user.file("other"));
        copy(&folder, &user.target());
        let known = user.target().join(&self.folder);
        let mut store = Store::open(&user.store()).expect("the store opens");
        store
            .note_workspace(&known, None)
            .expect("the store can be written");
        disk.set(Disk::CHANGED_KB);
    }
}
