//! Files of a directory, and what a power cut may leave of them where nobody synced.
//!
//! A [`DirectoryRecording`] takes the operations of programs on files and names. It has no drive
//! below: [`DirectoryLog::surviving_tree`] returns any state that POSIX allows after a cut.
//!
//! # Rules of a cut
//!
//! - A sync of a file makes its data and size durable, as does a sync of its data alone. A sync of
//!   a directory makes its names durable. A rename is durable with its new directory.
//! - Other changes are at risk, each on its own. A write is torn between pages, and between its
//!   pages and the new size of the file.
//! - A page has the contents after its latest kept write, with every earlier write to it.
//! - A truncation is kept if any later change of its file is.
//! - A change of a name is kept if any later change of that name is. Renames are atomic.
//! - Permissions are durable at once.

mod change;
mod log;
mod recording;
mod stored;

pub use change::{
    DataChange, EntryName, FileChange, NameChange, NameOperation, NodeId, PAGE_BYTES,
};
pub use log::{DirectoryLog, SurvivingEntry};
pub use recording::{DirectoryError, DirectoryRecording, Node, RenameTarget, SyncFailure};
