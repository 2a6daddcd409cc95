//! Calls that change owner, mode and times of files in the worker's directories.

use super::worker::HostWorker;
use crate::{CallKind, File, Result};
use rustix::fs::{AtFlags, Mode, Timespec, Timestamps, UTIME_NOW};

impl HostWorker {
    pub(crate) fn fchown(&mut self, file: File) -> Result<()> {
        self.call_on_file(CallKind::Fchown, file, |descriptor| {
            rustix::fs::fchown(descriptor, None, None)
        })
    }

    pub(crate) fn fchmod(&mut self, file: File, mode: u32) -> Result<()> {
        self.call_on_file(CallKind::Fchmod, file, |descriptor| {
            rustix::fs::fchmod(descriptor, Mode::from_raw_mode(mode))
        })
    }

    pub(crate) fn chown(&mut self, path: &str) -> Result<()> {
        self.call_in_directory(CallKind::Chown, path, |directory, name| {
            rustix::fs::chownat(directory, name, None, None, AtFlags::empty())
        })
    }

    pub(crate) fn chmod(&mut self, path: &str, mode: u32) -> Result<()> {
        self.call_in_directory(CallKind::Chmod, path, |directory, name| {
            let mode = Mode::from_raw_mode(mode);
            rustix::fs::chmodat(directory, name, mode, AtFlags::empty())
        })
    }

    pub(crate) fn utimes(&mut self, path: &str) -> Result<()> {
        self.call_in_directory(CallKind::Utimes, path, |directory, name| {
            let now = Timespec {
                tv_sec: 0,
                tv_nsec: UTIME_NOW,
            };
            let times = Timestamps {
                last_access: now,
                last_modification: now,
            };
            rustix::fs::utimensat(directory, name, &times, AtFlags::empty())
        })
    }
}
