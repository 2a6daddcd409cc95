//! Changes of files and names.

use super::stored::pages;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::sync::Arc;

/// Bytes of a page of a file, which a cut keeps or loses as a whole.
pub const PAGE_BYTES: u64 = 4096;

/// Number of a file, directory or symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId(pub u64);

/// Name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EntryName {
    /// Directory of the name.
    pub directory: NodeId,
    /// Last part of the path.
    pub name: OsString,
}

/// Change of a file's data or size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DataChange {
    /// File whose data or size changes.
    pub file: NodeId,
    /// Contents of each changed page after the change, by page of the file.
    #[serde(with = "pages")]
    pub pages: Vec<(u64, Arc<[u8]>)>,
    /// First page of those that a truncation removes; `None` for a write.
    pub removed_from: Option<u64>,
    /// Size of the file after a truncation, or after a write up to its end, in bytes.
    pub new_size: Option<u64>,
}

impl DataChange {
    /// Number of parts that a cut keeps or loses: the new size and each page of a write. A
    /// truncation is one part.
    pub fn part_count(&self) -> u64 {
        match self.removed_from {
            Some(_) => 1,
            None => u64::from(self.new_size.is_some()) + self.pages.len() as u64,
        }
    }
}

/// Kind of a change of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NameOperation {
    /// Creation of a file, directory or symbolic link.
    Create,
    /// Additional name of a file.
    Link,
    /// Removal of a name or an empty directory.
    Remove,
    /// Atomic change of a name, which may replace another.
    Rename,
}

/// Atomic change of one or two names.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NameChange {
    /// Kind of the change.
    pub operation: NameOperation,
    /// Name that is gone after the change.
    pub removed: Option<EntryName>,
    /// Name that stands for `node` after the change.
    pub added: Option<EntryName>,
    /// File, directory or link of the name.
    pub node: NodeId,
    /// Requests with the latest earlier changes of the same names.
    pub depends_on: Vec<usize>,
}

/// Change of a directory's files.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum FileChange {
    /// Change of a file's data or size.
    Data(DataChange),
    /// Atomic change of one or two names.
    Name(NameChange),
}

impl FileChange {
    /// Returns the name for tables and JSON.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Data(change) if change.removed_from.is_some() => "truncate",
            Self::Data(_) => "write",
            Self::Name(change) => match change.operation {
                NameOperation::Create => "create",
                NameOperation::Link => "link",
                NameOperation::Remove => "remove",
                NameOperation::Rename => "rename",
            },
        }
    }

    /// Number of parts that a cut keeps or loses.
    pub fn part_count(&self) -> u64 {
        match self {
            Self::Data(change) => change.part_count(),
            Self::Name(_) => 1,
        }
    }

    /// Returns the file or directory whose sync makes the change durable.
    pub fn synced_node(&self) -> NodeId {
        match self {
            Self::Data(change) => change.file,
            Self::Name(change) => {
                let entry = change.added.as_ref().or(change.removed.as_ref());
                entry.map_or(change.node, |entry| entry.directory)
            }
        }
    }
}
