//! Consistency checks of names, link counts, and the directory tree.

use super::super::FileSystem;
use super::super::inode::{InodeKind, InodeNumber};
use super::{Problem, is_valid_name};
use std::collections::BTreeMap;

impl FileSystem {
    /// Walks the directory tree from the root, then compares the names found with the link counts.
    /// Returns the number of files and of directories.
    pub(super) fn check_names(
        &self,
        open: &[InodeNumber],
        problems: &mut Vec<Problem>,
    ) -> (u32, u32) {
        let mut names: BTreeMap<InodeNumber, u32> = BTreeMap::new();
        // For each directory that is reached, the directory it is in.
        let mut parents = BTreeMap::from([(Self::ROOT, Self::ROOT)]);
        let mut pending = vec![Self::ROOT];
        while let Some(directory) = pending.pop() {
            self.check_directory(directory, parents[&directory], problems);
            let contents = self
                .inodes
                .try_get(directory)
                .and_then(|r| r.directory.as_deref());
            for entry in contents.iter().flat_map(|contents| contents.entries()) {
                *names.entry(entry.inode).or_default() += 1;
                let Some(record) = self.inodes.try_get(entry.inode) else {
                    let name = entry.name.to_owned();
                    problems.push(Problem::DanglingName { directory, name });
                    continue;
                };
                if record.kind != InodeKind::Directory || matches!(entry.name, "." | "..") {
                    continue;
                }
                if parents.insert(entry.inode, directory).is_some() {
                    problems.push(Problem::Disconnected {
                        directory: entry.inode,
                    });
                } else {
                    pending.push(entry.inode);
                }
            }
        }
        let (mut files, mut directories) = (0, 0);
        for inode in (0..self.inodes.len()).map(InodeNumber) {
            let Some(record) = self.inodes.try_get(inode) else {
                continue;
            };
            match record.kind {
                InodeKind::File => files += 1,
                InodeKind::Directory => directories += 1,
            }
            let names = names.get(&inode).copied().unwrap_or(0);
            let is_open = open.contains(&inode);
            let unnamed_and_open = names == 0 && record.link_count == 0 && is_open;
            if record.kind == InodeKind::Directory
                && !parents.contains_key(&inode)
                && !unnamed_and_open
            {
                problems.push(Problem::Disconnected { directory: inode });
            }
            if names != record.link_count {
                problems.push(Problem::LinkCount {
                    inode,
                    links: record.link_count,
                    names,
                });
            } else if names == 0 && !is_open {
                problems.push(Problem::Unreferenced { inode });
            }
        }
        (files, directories)
    }

    fn check_directory(
        &self,
        directory: InodeNumber,
        parent: InodeNumber,
        problems: &mut Vec<Problem>,
    ) {
        let mut damaged = |what| problems.push(Problem::DirectoryDamage { directory, what });
        let Some(record) = self.inodes.try_get(directory) else {
            return damaged("it is not allocated");
        };
        let Some(contents) = record.directory.as_deref() else {
            return damaged("it has no contents");
        };
        if let Some(what) = contents.find_damage() {
            damaged(what);
        }
        if contents.size_bytes() != record.size_bytes {
            damaged("its size is not that of its chunks");
        }
        if contents
            .lookup(".")
            .is_none_or(|place| place.inode != directory)
        {
            damaged("its . is wrong");
        }
        if contents
            .lookup("..")
            .is_none_or(|place| place.inode != parent)
        {
            damaged("its .. is wrong");
        }
        if !contents.entries().all(|entry| is_valid_name(entry.name)) {
            damaged("it has an impossible name");
        }
    }
}
