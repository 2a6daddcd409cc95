//! Paths and names: what they lead to, and what changes them.

use super::{FileRecord, ROOT, Stack, StackError};
use crate::block::FileId;
use crate::effect::Effects;
use crate::file_system::{FileKind, FileName};
use crate::validation::{check_name, refused};

impl Stack {
    pub(super) fn is_directory(&self, file: FileId) -> bool {
        self.files[file.0 as usize].kind == FileKind::Directory
    }

    pub(super) fn directory(&self, path: &str) -> Result<FileId, StackError> {
        let mut directory = ROOT;
        for name in path
            .split('/')
            .filter(|name| !name.is_empty() && *name != ".")
        {
            let entry = FileName {
                directory,
                name: name.to_owned(),
            };
            let found = self.names.get(&entry).copied();
            directory = found.ok_or_else(|| StackError::UnknownFile(path.to_owned()))?;
            if !self.is_directory(directory) {
                let remedy = "name directories before the last `/`";
                return Err(refused("a walk", path, "ENOTDIR", remedy));
            }
        }
        Ok(directory)
    }

    fn entry(&self, path: &str) -> Result<FileName, StackError> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok(FileName {
            directory: self.directory(directory)?,
            name: name.to_owned(),
        })
    }

    pub(super) fn existing(&self, path: &str) -> Result<FileId, StackError> {
        let entry = self.entry(path)?;
        let file = self.names.get(&entry).copied();
        file.ok_or_else(|| StackError::UnknownFile(path.to_owned()))
    }

    pub(super) fn create(
        &mut self,
        path: &str,
        kind: FileKind,
        effects: &mut Effects,
    ) -> Result<FileId, StackError> {
        let entry = self.entry(path)?;
        check_name("creation", path, &entry.name)?;
        let file = FileId(u32::try_from(self.files.len()).expect("fewer than 2^32 files"));
        let count = self.created.entry(path.to_owned()).or_default();
        *count += 1;
        let label = match *count {
            1 => path.to_owned(),
            count => format!("{path}#{count}"),
        };
        self.files.push(FileRecord {
            label,
            kind,
            links: 1,
            descriptors: 0,
            writers: 0,
        });
        self.call(effects, |calls, context| {
            calls.create(context, &entry, file, kind)
        })?;
        self.names.insert(entry, file);
        Ok(file)
    }

    pub(super) fn make_directory(
        &mut self,
        path: &str,
        effects: &mut Effects,
    ) -> Result<(), StackError> {
        if self.existing(path).is_ok() {
            return Err(refused("mkdir", path, "EEXIST", "use another name"));
        }
        self.create(path, FileKind::Directory, effects).map(|_| ())
    }

    pub(super) fn rename(
        &mut self,
        from: &str,
        to: &str,
        effects: &mut Effects,
    ) -> Result<(), StackError> {
        let file = self.existing(from)?;
        let (from, to) = (self.entry(from)?, self.entry(to)?);
        let replaced = self
            .names
            .get(&to)
            .copied()
            .filter(|replaced| *replaced != file);
        if from == to {
            return Ok(());
        }
        check_name("rename", &to.name, &to.name)?;
        self.check_rename(file, &to, replaced)?;
        self.call(effects, |calls, context| {
            calls.rename(context, file, &from, &to, replaced)
        })?;
        self.names.remove(&from);
        self.names.insert(to, file);
        replaced.map_or(Ok(()), |replaced| self.drop_link(replaced, effects))
    }

    /// Refuses a directory in place of a file or the reverse, and a directory below itself.
    fn check_rename(
        &self,
        file: FileId,
        to: &FileName,
        replaced: Option<FileId>,
    ) -> Result<(), StackError> {
        let refuse = |errno, remedy| Err(refused("rename", &to.name, errno, remedy));
        let is_directory = self.is_directory(file);
        match replaced.map(|replaced| self.is_directory(replaced)) {
            Some(true) if is_directory => {
                return refuse(
                    "ENOTEMPTY",
                    "use a new name: replaced directories are not modelled",
                );
            }
            Some(true) => return refuse("EISDIR", "use the name of a file"),
            Some(false) if is_directory => return refuse("ENOTDIR", "use a new name"),
            _ => {}
        }
        let mut ancestor = to.directory;
        while ancestor != ROOT {
            if ancestor == file {
                return refuse("EINVAL", "use a directory outside the one that moves");
            }
            let holder = self.names.iter().find(|(_, held)| **held == ancestor);
            ancestor = holder.map_or(ROOT, |(name, _)| name.directory);
        }
        Ok(())
    }

    pub(super) fn unlink(&mut self, path: &str, effects: &mut Effects) -> Result<(), StackError> {
        let file = self.existing(path)?;
        if self.is_directory(file) {
            let remedy = "unlink files; rmdir is not modelled";
            return Err(refused("unlink", path, "EISDIR", remedy));
        }
        let entry = self.entry(path)?;
        self.call(effects, |calls, context| {
            calls.unlink(context, &entry, file)
        })?;
        self.names.remove(&entry);
        self.drop_link(file, effects)
    }

    fn drop_link(&mut self, file: FileId, effects: &mut Effects) -> Result<(), StackError> {
        let record = self.record(file);
        record.links -= 1;
        if record.links == 0 && record.descriptors == 0 {
            self.call(effects, |calls, context| calls.evict(context, file))?;
        }
        Ok(())
    }
}
