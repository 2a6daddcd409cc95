//! Check of the files that a cut leaves.

use super::super::CrashOptions;
use super::super::check::{Checker, UserCheck, Verdict};
use super::super::report::ChangedFile;
use crate::LaboratoryError;
use diskperf_crash::directory::{
    DataChange, DirectoryLog, FileChange, NameChange, PAGE_BYTES, SurvivingEntry,
};
use diskperf_crash::{Cut, Log, Mark};
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Directory in which the files of one cut after the other are checked.
pub(super) struct TreeSlot {
    log: Arc<DirectoryLog>,
    directory: PathBuf,
    user_check: UserCheck,
}

impl TreeSlot {
    pub(super) fn create(
        log: &Arc<DirectoryLog>,
        number: usize,
        workspace: &Path,
        options: &CrashOptions,
    ) -> Result<Self, LaboratoryError> {
        let folder = workspace.join(format!("check-{number}"));
        fs::create_dir(&folder).map_err(LaboratoryError::work)?;
        Ok(Self {
            log: Arc::clone(log),
            directory: folder.join("files"),
            user_check: UserCheck::new(folder, options),
        })
    }

    /// Writes the files that a cut leaves, in place of those of the cut before.
    fn put_tree(&self, cut: &Cut) -> io::Result<()> {
        match fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            removed => removed?,
        }
        fs::create_dir(&self.directory)?;
        for (path, entry) in self.log.surviving_tree(cut) {
            put_entry(&self.directory.join(path), &entry)?;
        }
        Ok(())
    }
}

fn put_entry(path: &Path, entry: &SurvivingEntry) -> io::Result<()> {
    match entry {
        SurvivingEntry::Directory { mode } => {
            fs::create_dir_all(path)?;
            // Its contents are still to be written, and to be removed.
            fs::set_permissions(path, Permissions::from_mode(mode | 0o700))
        }
        SurvivingEntry::Link(target) => symlink(target, path),
        SurvivingEntry::File { size, pages, mode } => {
            let file = File::create(path)?;
            file.set_len(*size)?;
            for (page, data) in pages {
                let start = page * PAGE_BYTES;
                let count = size.saturating_sub(start).min(data.len() as u64);
                file.write_all_at(&data[..count as usize], start)?;
            }
            file.set_permissions(Permissions::from_mode(*mode))
        }
    }
}

impl Checker for TreeSlot {
    fn check(
        &self,
        _: &Arc<Log>,
        cut: &Cut,
        durable: &[Mark],
        stop: &AtomicBool,
    ) -> Result<Verdict, LaboratoryError> {
        self.put_tree(cut).map_err(|error| {
            let place = self.directory.display();
            let remedy = match error.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => ": see that there is space",
                _ => "",
            };
            LaboratoryError::Failure(format!(
                "{place}: the files after a cut cannot be written: {error}{remedy}"
            ))
        })?;
        self.user_check.run(&self.directory, durable, stop)
    }

    fn changed_file(&self, request: usize) -> Option<ChangedFile> {
        let change = self.log.change(request)?;
        let place = match change {
            FileChange::Data(change) => data_place(&self.log, change),
            FileChange::Name(change) => name_place(&self.log, change),
        };
        Some(ChangedFile {
            kind: change.kind_name(),
            place,
            synced: self.log.path(change.synced_node()).display().to_string(),
        })
    }

    fn flush_name(&self) -> &'static str {
        "sync"
    }

    fn covers(&self, flush: usize, change: usize) -> bool {
        self.log.covers(flush, change)
    }
}

fn data_place(log: &DirectoryLog, change: &DataChange) -> String {
    let path = log.path(change.file);
    let pages = change.pages.first().zip(change.pages.last());
    match (change.removed_from, change.new_size, pages) {
        (Some(_), Some(size), _) => format!("`{}` to {size} bytes", path.display()),
        (_, _, Some(((first, _), (last, _)))) if first == last => {
            format!("page {first} of `{}`", path.display())
        }
        (_, _, Some(((first, _), (last, _)))) => {
            format!("pages {first} to {last} of `{}`", path.display())
        }
        _ => format!("`{}`", path.display()),
    }
}

fn name_place(log: &DirectoryLog, change: &NameChange) -> String {
    let path = |entry| log.entry_path(entry).display().to_string();
    match (&change.removed, &change.added) {
        (Some(old), Some(new)) => format!("`{}` to `{}`", path(old), path(new)),
        (Some(entry), None) | (None, Some(entry)) => format!("`{}`", path(entry)),
        (None, None) => String::new(),
    }
}
