//! Consistency checks of names, link counts, and the directory tree.

use super::super::FastFileSystem;
use super::super::inode::{InodeKind, InodeNumber};
use super::{ConsistencyProblem, is_valid_name};
use std::collections::BTreeMap;

impl FastFileSystem {
    /// Walks the directory tree from the root, then compares the names found with the link counts.
    /// Returns the number of files and of directories.
    pub(super) fn check_names(
        &self,
        open: &[InodeNumber],
        problems: &mut Vec<ConsistencyProblem>,
    ) -> (u32, u32) {
        let mut names: BTreeMap<InodeNumber, u32> = BTreeMap::new();
        // For each directory that is reached, the directory it is in.
        let mut parents = BTreeMap::from([(Self::ROOT_INODE, Self::ROOT_INODE)]);
        let mut pending = vec![Self::ROOT_INODE];
        while let Some(directory) = pending.pop() {
            self.check_directory(directory, parents[&directory], problems);
            let contents = self
                .inodes
                .try_inode(directory)
                .and_then(|r| r.directory.as_deref());
            for entry in contents.iter().flat_map(|contents| contents.entries()) {
                *names.entry(entry.inode).or_default() += 1;
                let Some(record) = self.inodes.try_inode(entry.inode) else {
                    let name = entry.name.to_owned();
                    problems.push(ConsistencyProblem::DanglingName { directory, name });
                    continue;
                };
                if record.inode_kind != InodeKind::Directory || matches!(entry.name, "." | "..") {
                    continue;
                }
                if parents.insert(entry.inode, directory).is_some() {
                    problems.push(ConsistencyProblem::Disconnected {
                        directory: entry.inode,
                    });
                } else {
                    pending.push(entry.inode);
                }
            }
        }
        let (mut files, mut directories) = (0, 0);
        for inode in (0..self.inodes.inode_count()).map(InodeNumber) {
            let Some(record) = self.inodes.try_inode(inode) else {
                continue;
            };
            match record.inode_kind {
                InodeKind::RegularFile => files += 1,
                InodeKind::Directory => directories += 1,
            }
            let names = names.get(&inode).copied().unwrap_or(0);
            let is_open = open.contains(&inode);
            let unnamed_and_open = names == 0 && record.link_count == 0 && is_open;
            if record.inode_kind == InodeKind::Directory
                && !parents.contains_key(&inode)
                && !unnamed_and_open
            {
                problems.push(ConsistencyProblem::Disconnected { directory: inode });
            }
            if names != record.link_count {
                problems.push(ConsistencyProblem::WrongLinkCount {
                    inode,
                    links: record.link_count,
                    names,
                });
            } else if names == 0 && !is_open {
                problems.push(ConsistencyProblem::Unreferenced { inode });
            }
        }
        (files, directories)
    }

    fn check_directory(
        &self,
        directory: InodeNumber,
        parent: InodeNumber,
        problems: &mut Vec<ConsistencyProblem>,
    ) {
        let mut damaged =
            |what| problems.push(ConsistencyProblem::DirectoryDamage { directory, what });
        let Some(record) = self.inodes.try_inode(directory) else {
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
            .lookup_entry(".")
            .is_none_or(|place| place.inode != directory)
        {
            damaged("its . is wrong");
        }
        if contents
            .lookup_entry("..")
            .is_none_or(|place| place.inode != parent)
        {
            damaged("its .. is wrong");
        }
        if !contents.entries().all(|entry| is_valid_name(entry.name)) {
            damaged("it has an impossible name");
        }
    }
}
