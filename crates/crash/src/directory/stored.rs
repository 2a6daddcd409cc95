//! Log of a directory as a file keeps it: whoever wrote the file, a log that is read makes no name
//! outside of the directory.

use super::{DirectoryLog, EntryName, FileChange, Node, NodeId, PAGE_BYTES};
use crate::stored::InvalidLog;
use crate::{Log, RequestKind};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path};
use std::sync::Arc;

/// Largest size of a file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 52;

/// Node without its newest contents, which no cut leaves.
#[derive(Serialize, Deserialize)]
enum StoredNode {
    File { mode: u32 },
    Directory { mode: u32 },
    Link(OsString),
}

/// Part of a log that the other parts follow from.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredDirectoryLog<'l> {
    log: Cow<'l, Log>,
    changes: Cow<'l, BTreeMap<usize, FileChange>>,
    syncs: Cow<'l, BTreeMap<usize, NodeId>>,
    nodes: BTreeMap<NodeId, StoredNode>,
    root: NodeId,
    names: Cow<'l, BTreeMap<NodeId, EntryName>>,
}

impl<'l> From<&'l DirectoryLog> for StoredDirectoryLog<'l> {
    fn from(log: &'l DirectoryLog) -> Self {
        let nodes = log.nodes.iter().map(|(id, node)| {
            let stored = match node {
                Node::File { mode, .. } => StoredNode::File { mode: *mode },
                Node::Directory { mode, .. } => StoredNode::Directory { mode: *mode },
                Node::Link(target) => StoredNode::Link(target.clone().into_os_string()),
            };
            (*id, stored)
        });
        Self {
            log: Cow::Borrowed(&log.log),
            changes: Cow::Borrowed(&log.changes),
            syncs: Cow::Borrowed(&log.syncs),
            nodes: nodes.collect(),
            root: log.root,
            names: Cow::Borrowed(&log.names),
        }
    }
}

impl TryFrom<StoredDirectoryLog<'_>> for DirectoryLog {
    type Error = InvalidLog;

    fn try_from(stored: StoredDirectoryLog<'_>) -> Result<Self, InvalidLog> {
        stored.validate()?;
        let nodes = stored.nodes.into_iter().map(|(id, node)| {
            let node = match node {
                StoredNode::File { mode } => Node::File {
                    size: 0,
                    pages: BTreeMap::new(),
                    mode,
                },
                StoredNode::Directory { mode } => Node::Directory {
                    names: BTreeMap::new(),
                    mode,
                },
                StoredNode::Link(target) => Node::Link(target.into()),
            };
            (id, node)
        });
        Ok(Self {
            log: Arc::new(stored.log.into_owned()),
            changes: stored.changes.into_owned(),
            syncs: stored.syncs.into_owned(),
            nodes: nodes.collect(),
            root: stored.root,
            names: stored.names.into_owned(),
        })
    }
}

fn is_plain_name(name: &OsStr) -> bool {
    let mut components = Path::new(name).components();
    let is_normal = matches!(components.next(), Some(Component::Normal(only)) if only == name);
    is_normal && components.next().is_none() && !name.as_encoded_bytes().contains(&0)
}

impl StoredDirectoryLog<'_> {
    fn validate(&self) -> Result<(), InvalidLog> {
        let requests = &self.log.requests;
        let has_change = |(index, request): (usize, &crate::Request)| match request.kind {
            RequestKind::FileChange => {
                let change = self.changes.get(&index);
                change.is_some_and(|change| request.units == (0..change.part_count()))
            }
            RequestKind::Flush => self.syncs.contains_key(&index),
            _ => false,
        };
        let count = self.changes.len() + self.syncs.len();
        if count != requests.len() || !requests.iter().enumerate().all(has_change) {
            return Err(InvalidLog(
                "requests that are none of its changes and syncs",
            ));
        }
        let are_entries = self.names.values().all(|entry| self.is_entry(entry));
        if !are_entries || !self.changes.values().all(|change| self.is_change(change)) {
            return Err(InvalidLog("a change of a file or name that cannot be"));
        }
        match self.is_directory(self.root) && self.are_paths_finite() {
            true => Ok(()),
            false => Err(InvalidLog("a directory that is within itself")),
        }
    }

    fn is_directory(&self, node: NodeId) -> bool {
        matches!(self.nodes.get(&node), Some(StoredNode::Directory { .. }))
    }

    fn is_entry(&self, entry: &EntryName) -> bool {
        self.is_directory(entry.directory) && is_plain_name(&entry.name)
    }

    fn is_change(&self, change: &FileChange) -> bool {
        match change {
            FileChange::Data(change) => {
                let is_page = |(page, data): &(u64, Arc<[u8]>)| {
                    *page < FILE_BYTES_MAX / PAGE_BYTES && data.len() as u64 == PAGE_BYTES
                };
                change.pages.iter().all(is_page)
                    && change.new_size.is_none_or(|size| size <= FILE_BYTES_MAX)
            }
            FileChange::Name(change) => {
                let mut entries = change.added.iter().chain(&change.removed);
                self.nodes.contains_key(&change.node) && entries.all(|entry| self.is_entry(entry))
            }
        }
    }

    /// Reports whether each node's latest name leads up to a directory without a name.
    fn are_paths_finite(&self) -> bool {
        self.names.keys().all(|node| {
            let (mut node, mut passed) = (*node, BTreeSet::new());
            while let Some(entry) = self.names.get(&node).filter(|_| node != self.root) {
                if !passed.insert(node) {
                    return false;
                }
                node = entry.directory;
            }
            true
        })
    }
}

/// Form of the changed pages, which cuts share.
pub(super) mod pages {
    use super::*;

    type Pages = Vec<(u64, Arc<[u8]>)>;

    pub(in crate::directory) fn serialize<S: Serializer>(
        pages: &[(u64, Arc<[u8]>)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let pages = pages.iter().map(|(page, data)| (*page, &**data));
        serializer.collect_seq(pages)
    }

    pub(in crate::directory) fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<Pages, D::Error> {
        let pages = Vec::<(u64, Vec<u8>)>::deserialize(deserializer)?.into_iter();
        Ok(pages.map(|(page, data)| (page, data.into())).collect())
    }
}
