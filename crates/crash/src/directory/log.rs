//! Finished log of the operations on a directory, and the trees that cuts leave.

use super::stored::StoredDirectoryLog;
use super::{DataChange, EntryName, FileChange, NameChange, Node, NodeId, PAGE_BYTES};
use crate::{Cut, Log};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// File, directory or symbolic link that a cut leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SurvivingEntry {
    /// File with its size in bytes and its pages. Pages that are absent are zero, and what is
    /// beyond the size is no part of the file.
    File {
        /// Size of the file, in bytes.
        size: u64,
        /// Contents by page of the file.
        pages: BTreeMap<u64, Arc<[u8]>>,
        /// Permission bits, which are durable at once.
        mode: u32,
    },
    /// Directory, without the names in it.
    Directory {
        /// Permission bits, which are durable at once.
        mode: u32,
    },
    /// Symbolic link to a path.
    Link(PathBuf),
}

/// Requests and marks of programs on a directory.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "StoredDirectoryLog<'_>")]
pub struct DirectoryLog {
    pub(super) log: Arc<Log>,
    pub(super) changes: BTreeMap<usize, FileChange>,
    /// Synced nodes, by request.
    pub(super) syncs: BTreeMap<usize, NodeId>,
    /// Nodes at the end of the workload.
    pub(super) nodes: BTreeMap<NodeId, Node>,
    pub(super) root: NodeId,
    /// Latest name of each node.
    pub(super) names: BTreeMap<NodeId, EntryName>,
}

impl Serialize for DirectoryLog {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        StoredDirectoryLog::from(self).serialize(serializer)
    }
}

impl DirectoryLog {
    /// Requests and marks in order. Requests that are no flushes have a change here.
    pub fn requests(&self) -> &Arc<Log> {
        &self.log
    }

    /// Returns the change of a request; `None` for a sync.
    pub fn change(&self, request: usize) -> Option<&FileChange> {
        self.changes.get(&request)
    }

    /// Reports whether a sync is for the file or directory of a change.
    pub fn covers(&self, sync: usize, change: usize) -> bool {
        let change = self.change(change).map(FileChange::synced_node);
        change.is_some() && change == self.syncs.get(&sync).copied()
    }

    /// Returns the latest path of a node, relative to the directory.
    pub fn path(&self, node: NodeId) -> PathBuf {
        let mut parts = Vec::new();
        let mut node = node;
        // A directory that was moved around has one name, so this ends at the root.
        while let Some(entry) = self.names.get(&node).filter(|_| node != self.root) {
            parts.push(entry.name.as_os_str());
            node = entry.directory;
        }
        match parts.is_empty() {
            true => PathBuf::from("."),
            false => parts.iter().rev().collect(),
        }
    }

    /// Returns the path of a name, relative to the directory.
    pub fn entry_path(&self, entry: &EntryName) -> PathBuf {
        let directory = self.path(entry.directory);
        let directory = directory.strip_prefix(".").unwrap_or(&directory);
        directory.join(&entry.name)
    }

    /// Returns the files and directories after a cut, by path relative to the directory. Each
    /// directory comes before its contents.
    pub fn surviving_tree(&self, cut: &Cut) -> BTreeMap<PathBuf, SurvivingEntry> {
        let directories = self.surviving_names(cut);
        let mut files: BTreeMap<NodeId, Vec<(usize, &DataChange)>> = BTreeMap::new();
        for (&request, change) in &self.changes {
            if let FileChange::Data(change) = change {
                files
                    .entry(change.file)
                    .or_default()
                    .push((request, change));
            }
        }
        let mut tree = BTreeMap::new();
        let mut left = vec![(PathBuf::new(), self.root)];
        let mut passed = BTreeSet::new();
        while let Some((path, directory)) = left.pop() {
            // A log that was read may have a directory in several places.
            if !passed.insert(directory) {
                continue;
            }
            for (name, &node) in directories.get(&directory).into_iter().flatten() {
                let path = path.join(name);
                let entry = match self.nodes.get(&node) {
                    Some(Node::File { mode, .. }) => {
                        let changes = files.get(&node).map_or(&[][..], Vec::as_slice);
                        self.surviving_file(cut, changes, *mode)
                    }
                    Some(Node::Directory { mode, .. }) => {
                        left.push((path.clone(), node));
                        SurvivingEntry::Directory { mode: *mode }
                    }
                    Some(Node::Link(target)) => SurvivingEntry::Link(target.clone()),
                    None => continue,
                };
                tree.insert(path, entry);
            }
        }
        tree
    }

    /// Returns the bytes of a file of a tree; `None` where there is no file.
    pub fn contents(tree: &BTreeMap<PathBuf, SurvivingEntry>, path: &Path) -> Option<Vec<u8>> {
        let SurvivingEntry::File { size, pages, .. } = tree.get(path)? else {
            return None;
        };
        let mut bytes = vec![0; *size as usize];
        for (page, data) in pages {
            let start = (page * PAGE_BYTES) as usize;
            let count = bytes.len().saturating_sub(start).min(data.len());
            if count > 0 {
                bytes[start..start + count].copy_from_slice(&data[..count]);
            }
        }
        Some(bytes)
    }

    fn keeps(&self, cut: &Cut, request: usize, part: u64) -> bool {
        let recorded = &self.log.requests[request];
        recorded.submitted < cut.position
            && (recorded.is_durable_at(cut.position) || cut.keeps(&self.log, request, part))
    }

    fn surviving_names(&self, cut: &Cut) -> BTreeMap<NodeId, BTreeMap<OsString, NodeId>> {
        let mut kept: BTreeSet<usize> = BTreeSet::new();
        let names = self
            .changes
            .iter()
            .filter_map(|(&request, change)| match change {
                FileChange::Name(change) => Some((request, change)),
                FileChange::Data(_) => None,
            });
        let names: Vec<(usize, &NameChange)> = names.collect();
        for (request, change) in names.iter().rev() {
            if kept.contains(request) || self.keeps(cut, *request, 0) {
                kept.insert(*request);
                kept.extend(&change.depends_on);
            }
        }
        let mut directories: BTreeMap<NodeId, BTreeMap<OsString, NodeId>> = BTreeMap::new();
        for (request, change) in names {
            if !kept.contains(&request) {
                continue;
            }
            if let Some(EntryName { directory, name }) = &change.removed {
                directories.entry(*directory).or_default().remove(name);
            }
            if let Some(EntryName { directory, name }) = &change.added {
                let names = directories.entry(*directory).or_default();
                names.insert(name.clone(), change.node);
            }
        }
        directories
    }

    fn surviving_file(
        &self,
        cut: &Cut,
        changes: &[(usize, &DataChange)],
        mode: u32,
    ) -> SurvivingEntry {
        let is_kept = |request: usize, change: &DataChange| {
            (0..change.part_count()).any(|part| self.keeps(cut, request, part))
        };
        let last_kept = changes
            .iter()
            .rposition(|&(request, change)| is_kept(request, change));
        let (mut size, mut pages) = (0, BTreeMap::new());
        for &(request, change) in last_kept.map_or(&[][..], |last| &changes[..=last]) {
            if let Some(removed_from) = change.removed_from {
                pages.retain(|page, _| *page < removed_from);
                pages.extend(change.pages.iter().cloned());
                size = change.new_size.unwrap_or(size);
                continue;
            }
            let mut parts = 0..change.part_count();
            if let (Some(new_size), Some(part)) =
                (change.new_size, change.new_size.and_then(|_| parts.next()))
                && self.keeps(cut, request, part)
            {
                size = new_size;
            }
            for (part, (page, data)) in parts.zip(&change.pages) {
                if self.keeps(cut, request, part) {
                    pages.insert(*page, Arc::clone(data));
                }
            }
        }
        SurvivingEntry::File { size, pages, mode }
    }
}
