//! Recording of operations on files and names while programs run.

use super::{
    DataChange, DirectoryLog, EntryName, FileChange, NameChange, NameOperation, NodeId, PAGE_BYTES,
};
use crate::{LyingFlush, Recording};
use diskperf_device::WriteCache;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

/// Reason why an operation on a name or file is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DirectoryError {
    /// Name or node that does not exist.
    #[error("there is no such file or directory")]
    NotFound,
    /// Name that exists already.
    #[error("the name exists")]
    Exists,
    /// Directory that is not empty.
    #[error("the directory is not empty")]
    NotEmpty,
    /// File where a directory is needed.
    #[error("it is no directory")]
    NotADirectory,
    /// Directory or link where a file is needed.
    #[error("it is no file")]
    NotAFile,
    /// Data beyond the space of the recording.
    #[error("there is no space left")]
    NoSpace,
}

/// File, directory or symbolic link with its newest contents.
#[derive(Clone, Debug)]
pub enum Node {
    /// File with its newest contents.
    File {
        /// Size of the file, in bytes.
        size: u64,
        /// Contents by page; absent pages are zero.
        pages: BTreeMap<u64, Arc<[u8]>>,
        /// Permission bits, which are durable at once.
        mode: u32,
    },
    /// Directory with its newest names.
    Directory {
        /// Nodes of the directory, by name.
        names: BTreeMap<OsString, NodeId>,
        /// Permission bits, which are durable at once.
        mode: u32,
    },
    /// Symbolic link to a path.
    Link(PathBuf),
}

/// Treatment of an existing name by a rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameTarget {
    /// The name is replaced.
    Replace,
    /// The rename is refused.
    Keep,
}

/// Share of the syncs that fail, and lose the right of what they cover to ever become durable, as
/// pages that could not be written are clean.
pub type SyncFailure = LyingFlush;

/// Operations so far, and the newest contents.
#[derive(Debug)]
pub struct DirectoryRecording {
    recording: Recording,
    failing: SyncFailure,
    sync_count: u32,
    nodes: BTreeMap<NodeId, Node>,
    next_node: u64,
    root: NodeId,
    changes: BTreeMap<usize, FileChange>,
    /// Synced nodes, by request.
    syncs: BTreeMap<usize, NodeId>,
    /// Latest request that changed each name.
    name_changes: BTreeMap<EntryName, usize>,
    names: BTreeMap<NodeId, EntryName>,
    link_counts: BTreeMap<NodeId, u32>,
    free_bytes: u64,
}

/// Returns the space that is left after further pages.
fn space_after(free_bytes: u64, pages: u64) -> Result<u64, DirectoryError> {
    let left = free_bytes.checked_sub(pages * PAGE_BYTES);
    left.ok_or(DirectoryError::NoSpace)
}

impl DirectoryRecording {
    /// Creates a recording of an empty directory, which is the node `root`. New nodes get the
    /// numbers after it. Syncs are ignored as `lying` says, or fail as `failing` says. All pages
    /// that are ever written have `space_bytes`.
    pub fn new(root: NodeId, space_bytes: u64, lying: LyingFlush, failing: SyncFailure) -> Self {
        let names = BTreeMap::new();
        let directory = Node::Directory { names, mode: 0o755 };
        Self {
            recording: Recording::new(PAGE_BYTES as u32, 0, WriteCache::Volatile, lying),
            failing,
            sync_count: 0,
            nodes: BTreeMap::from([(root, directory)]),
            next_node: root.0 + 1,
            root,
            changes: BTreeMap::new(),
            syncs: BTreeMap::new(),
            name_changes: BTreeMap::new(),
            names: BTreeMap::new(),
            link_counts: BTreeMap::new(),
            free_bytes: space_bytes,
        }
    }

    /// Returns the space that is left. A page that is written again takes new space, since a cut
    /// may leave the old one.
    pub fn free_bytes(&self) -> u64 {
        self.free_bytes
    }

    /// Returns a node by its number.
    pub fn node(&self, node: NodeId) -> Option<&Node> {
        self.nodes.get(&node)
    }

    /// Returns the number of names of a node.
    pub fn link_count(&self, node: NodeId) -> u32 {
        self.link_counts.get(&node).copied().unwrap_or(0)
    }

    /// Counts a name of a node that is gone.
    fn unlink(&mut self, node: Option<NodeId>) {
        if let Some(count) = node.and_then(|node| self.link_counts.get_mut(&node)) {
            *count -= 1;
        }
    }

    fn directory(
        &mut self,
        node: NodeId,
    ) -> Result<&mut BTreeMap<OsString, NodeId>, DirectoryError> {
        match self.nodes.get_mut(&node) {
            Some(Node::Directory { names, .. }) => Ok(names),
            Some(_) => Err(DirectoryError::NotADirectory),
            None => Err(DirectoryError::NotFound),
        }
    }

    /// Returns the node of a name.
    ///
    /// # Errors
    ///
    /// The directory or the name does not exist.
    pub fn look_up(&mut self, directory: NodeId, name: &OsStr) -> Result<NodeId, DirectoryError> {
        let names = self.directory(directory)?;
        names.get(name).copied().ok_or(DirectoryError::NotFound)
    }

    /// Sets the permission bits of a file or directory.
    pub fn set_mode(&mut self, node: NodeId, new: u32) {
        match self.nodes.get_mut(&node) {
            Some(Node::File { mode, .. } | Node::Directory { mode, .. }) => *mode = new,
            Some(Node::Link(_)) | None => {}
        }
    }

    fn record(&mut self, change: FileChange, is_durable: bool) {
        let parts = change.part_count();
        if parts == 0 {
            return;
        }
        let request = self.recording.submit_file_change(parts, is_durable);
        self.changes.insert(request, change);
        self.recording.complete(request);
    }

    fn change_names(
        &mut self,
        operation: NameOperation,
        removed: Option<EntryName>,
        added: Option<EntryName>,
        node: NodeId,
    ) -> Result<(), DirectoryError> {
        if let Some(entry) = &removed {
            let named = self.directory(entry.directory)?.remove(&entry.name);
            self.unlink(named);
        }
        if let Some(entry) = &added {
            let names = self.directory(entry.directory)?;
            let replaced = names.insert(entry.name.clone(), node);
            self.unlink(replaced);
            *self.link_counts.entry(node).or_default() += 1;
            self.names.insert(node, entry.clone());
        }
        let request = self.recording.next_request();
        let changed = removed.iter().chain(&added);
        let depends_on = changed
            .filter_map(|entry| self.name_changes.insert(entry.clone(), request))
            .collect();
        let change = NameChange {
            operation,
            removed,
            added,
            node,
            depends_on,
        };
        self.record(FileChange::Name(change), false);
        Ok(())
    }

    /// Creates an empty file, an empty directory or a link with a new name.
    ///
    /// # Errors
    ///
    /// The name exists, or the directory does not.
    pub fn create(&mut self, entry: EntryName, new: Node) -> Result<NodeId, DirectoryError> {
        if self.directory(entry.directory)?.contains_key(&entry.name) {
            return Err(DirectoryError::Exists);
        }
        let node = NodeId(self.next_node);
        self.next_node += 1;
        self.nodes.insert(node, new);
        self.change_names(NameOperation::Create, None, Some(entry), node)?;
        Ok(node)
    }

    /// Gives a file an additional name.
    ///
    /// # Errors
    ///
    /// The name exists, or the directory or file does not.
    pub fn link(&mut self, node: NodeId, entry: EntryName) -> Result<(), DirectoryError> {
        if self.directory(entry.directory)?.contains_key(&entry.name) {
            return Err(DirectoryError::Exists);
        }
        if !self.nodes.contains_key(&node) {
            return Err(DirectoryError::NotFound);
        }
        self.change_names(NameOperation::Link, None, Some(entry), node)
    }

    fn require_empty(&self, node: NodeId) -> Result<(), DirectoryError> {
        match self.nodes.get(&node) {
            Some(Node::Directory { names, .. }) if !names.is_empty() => {
                Err(DirectoryError::NotEmpty)
            }
            _ => Ok(()),
        }
    }

    /// Removes a name, also of an empty directory.
    ///
    /// # Errors
    ///
    /// The name does not exist, or the directory is not empty.
    pub fn remove(&mut self, entry: EntryName) -> Result<(), DirectoryError> {
        let node = self.look_up(entry.directory, &entry.name)?;
        self.require_empty(node)?;
        self.change_names(NameOperation::Remove, Some(entry), None, node)
    }

    /// Renames a file or directory.
    ///
    /// # Errors
    ///
    /// The old name does not exist, or the new name may not be replaced.
    pub fn rename(
        &mut self,
        old: EntryName,
        new: EntryName,
        target: RenameTarget,
    ) -> Result<(), DirectoryError> {
        let node = self.look_up(old.directory, &old.name)?;
        match self.look_up(new.directory, &new.name) {
            Err(DirectoryError::NotFound) => {}
            Err(error) => return Err(error),
            Ok(_) if target == RenameTarget::Keep => return Err(DirectoryError::Exists),
            // Both are names of one file: POSIX has nothing change.
            Ok(replaced) if replaced == node => return Ok(()),
            Ok(replaced) => self.require_empty(replaced)?,
        }
        self.change_names(NameOperation::Rename, Some(old), Some(new), node)
    }

    /// Reads up to `count` bytes of a file.
    ///
    /// # Errors
    ///
    /// The node is no file.
    pub fn read(&self, node: NodeId, offset: u64, count: u64) -> Result<Vec<u8>, DirectoryError> {
        let Some(Node::File { size, pages, .. }) = self.nodes.get(&node) else {
            return Err(DirectoryError::NotAFile);
        };
        let end = size.min(&offset.saturating_add(count)).to_owned();
        let mut bytes = Vec::with_capacity(end.saturating_sub(offset) as usize);
        let mut at = offset;
        while at < end {
            let inside = (at % PAGE_BYTES) as usize;
            let count = (PAGE_BYTES - at % PAGE_BYTES).min(end - at) as usize;
            match pages.get(&(at / PAGE_BYTES)) {
                Some(page) => bytes.extend_from_slice(&page[inside..inside + count]),
                None => bytes.resize(bytes.len() + count, 0),
            }
            at += count as u64;
        }
        Ok(bytes)
    }

    /// Writes to a file. `is_durable` is for a write that returns when it is durable itself.
    ///
    /// # Errors
    ///
    /// The node is no file, or there is no space left.
    pub fn write(
        &mut self,
        file: NodeId,
        offset: u64,
        data: &[u8],
        is_durable: bool,
    ) -> Result<(), DirectoryError> {
        let Some(Node::File { size, pages, .. }) = self.nodes.get_mut(&file) else {
            return Err(DirectoryError::NotAFile);
        };
        let end = offset + data.len() as u64;
        let pages_written = end.div_ceil(PAGE_BYTES) - offset / PAGE_BYTES;
        self.free_bytes = match data.is_empty() {
            true => self.free_bytes,
            false => space_after(self.free_bytes, pages_written)?,
        };
        let mut changed = Vec::new();
        let mut at = offset;
        while at < end {
            let inside = (at % PAGE_BYTES) as usize;
            let count = (PAGE_BYTES - at % PAGE_BYTES).min(end - at) as usize;
            let from = (at - offset) as usize;
            let page = at / PAGE_BYTES;
            let mut contents = match pages.get(&page) {
                Some(old) => old.to_vec(),
                None => vec![0; PAGE_BYTES as usize],
            };
            contents[inside..inside + count].copy_from_slice(&data[from..from + count]);
            let contents: Arc<[u8]> = contents.into();
            pages.insert(page, Arc::clone(&contents));
            changed.push((page, contents));
            at += count as u64;
        }
        // A page that is written again after a failed sync brings the size with it.
        let new_size = (end >= *size && !data.is_empty()).then_some(end);
        *size = new_size.unwrap_or(*size);
        let change = DataChange {
            file,
            pages: changed,
            removed_from: None,
            new_size,
        };
        self.record(FileChange::Data(change), is_durable);
        Ok(())
    }

    /// Sets the size of a file.
    ///
    /// # Errors
    ///
    /// The node is no file, or there is no space left for its last page.
    pub fn truncate(&mut self, file: NodeId, new_size: u64) -> Result<(), DirectoryError> {
        let Some(Node::File { size, pages, .. }) = self.nodes.get_mut(&file) else {
            return Err(DirectoryError::NotAFile);
        };
        if new_size == *size {
            return Ok(());
        }
        let removed_from = new_size.div_ceil(PAGE_BYTES);
        let mut changed = Vec::new();
        let inside = (new_size % PAGE_BYTES) as usize;
        if new_size < *size
            && inside > 0
            && let Some(page) = pages.get_mut(&(new_size / PAGE_BYTES))
        {
            self.free_bytes = space_after(self.free_bytes, 1)?;
            let mut contents = page.to_vec();
            contents[inside..].fill(0);
            *page = contents.into();
            changed.push((new_size / PAGE_BYTES, Arc::clone(page)));
        }
        drop(pages.split_off(&removed_from));
        *size = new_size;
        let change = DataChange {
            file,
            pages: changed,
            removed_from: Some(removed_from),
            new_size: Some(new_size),
        };
        self.record(FileChange::Data(change), false);
        Ok(())
    }

    /// Syncs a file or directory. Returns whether the sync succeeds.
    pub fn sync(&mut self, node: NodeId) -> bool {
        let fails = self.failing.ignores(self.sync_count);
        self.sync_count += 1;
        let request = self.recording.submit_flush();
        self.syncs.insert(request, node);
        let changes = &self.changes;
        let covers = |request: usize| {
            let change = changes.get(&request);
            change.is_some_and(|change| change.synced_node() == node)
        };
        match fails {
            true => self.recording.fail_sync(request, covers),
            false => self.recording.complete_sync(request, covers),
        }
        !fails
    }

    /// Records a mark: something is durable from now on.
    pub fn mark(&mut self, name: &str) {
        self.recording.mark(name);
    }

    /// Ends the workload. Later operations are carried out, and no cut falls among them.
    pub fn end(&mut self) {
        self.recording.end();
    }

    /// Returns the log of the workload so far.
    pub fn finish(self) -> DirectoryLog {
        DirectoryLog {
            log: Arc::new(self.recording.finish()),
            changes: self.changes,
            syncs: self.syncs,
            nodes: self.nodes,
            root: self.root,
            names: self.names,
        }
    }
}
