//! Operations of the 4.2BSD kernel on directory entries.

use super::FastFileSystem;
use super::directory::{
    DIRECTORY_CHUNK_BYTES, Directory, DirectoryEntry, EntryLocation, EntrySlot, NAME_BYTES_MAX,
    NameError,
};
use super::inode::{InodeKind, InodeNumber};

impl FastFileSystem {
    /// Gives a new directory its first chunk, with `.` and `..`. The kernel has allocated the first
    /// fragment before, and sets the link counts.
    ///
    /// # Panics
    /// Panics if the inode is not a directory, has contents, or has no block.
    pub fn init_directory(&mut self, directory: InodeNumber, parent: InodeNumber) {
        let record = self.inodes.inode_mut(directory);
        assert!(
            record.inode_kind == InodeKind::Directory,
            "only a directory gets directory contents"
        );
        assert!(
            record.directory.is_none(),
            "a directory gets contents only once"
        );
        assert!(
            record.direct[0] != 0,
            "a directory has a block before it has contents"
        );
        let contents = Directory::new(directory, parent, DIRECTORY_CHUNK_BYTES);
        record.size_bytes = contents.size_bytes();
        record.directory = Some(Box::new(contents));
    }

    #[track_caller]
    fn get_directory(&self, directory: InodeNumber) -> &Directory {
        let contents = self.inodes.inode(directory).directory.as_deref();
        contents.unwrap_or_else(|| panic!("inode {} is not a directory", directory.0))
    }

    #[track_caller]
    fn get_directory_mut(&mut self, directory: InodeNumber) -> &mut Directory {
        let contents = self.inodes.inode_mut(directory).directory.as_deref_mut();
        contents.unwrap_or_else(|| panic!("inode {} is not a directory", directory.0))
    }

    /// Finds a name in a directory. The kernel scans the directory's blocks from the first to the
    /// block of the entry, or to the last if the name does not exist.
    ///
    /// # Panics
    /// Panics if the inode is not a directory. All other calls on a directory do so too.
    #[must_use]
    pub fn lookup_entry(&self, directory: InodeNumber, name: &str) -> Option<EntryLocation> {
        self.get_directory(directory).lookup_entry(name)
    }

    /// Returns the position at which a new name would be added to a directory. The position tells
    /// which block is written, and whether the directory must grow first.
    ///
    /// # Errors
    /// [`NameError`] if the name is not valid, or exists already.
    pub fn find_entry_slot(
        &self,
        directory: InodeNumber,
        name: &str,
    ) -> Result<EntrySlot, NameError> {
        if name.is_empty() {
            return Err(NameError::EmptyName);
        }
        if name.len() > NAME_BYTES_MAX {
            return Err(NameError::NameTooLong);
        }
        if name.contains(['/', '\0']) {
            return Err(NameError::InvalidCharacter);
        }
        let directory = self.get_directory(directory);
        if directory.lookup_entry(name).is_some() {
            return Err(NameError::NameExists);
        }
        Ok(directory.find_slot(name))
    }

    /// Adds a name to a directory at the position that [`Self::find_entry_slot`] returns. If the
    /// directory grows, its block or fragments must exist already.
    ///
    /// # Panics
    /// Panics if the name exists, or there is no block for a new chunk.
    pub fn add_entry(
        &mut self,
        directory: InodeNumber,
        name: &str,
        inode: InodeNumber,
    ) -> EntryLocation {
        let contents = self.get_directory_mut(directory);
        let place = contents.add_entry(name, inode);
        let size_bytes = contents.size_bytes();
        let last = self.superblock.block_index_at(size_bytes - 1);
        assert!(
            self.block_address(directory, last).is_some(),
            "a directory grows into a block"
        );
        self.inodes.inode_mut(directory).size_bytes = size_bytes;
        place
    }

    /// Removes a name from a directory and returns its former position. A directory never becomes
    /// shorter.
    pub fn remove_entry(&mut self, directory: InodeNumber, name: &str) -> Option<EntryLocation> {
        self.get_directory_mut(directory).remove_entry(name)
    }

    /// Makes a name in a directory, or `..`, refer to another inode, in place. Returns the position
    /// of the entry with its former inode.
    pub fn replace_entry(
        &mut self,
        directory: InodeNumber,
        name: &str,
        inode: InodeNumber,
    ) -> Option<EntryLocation> {
        self.get_directory_mut(directory).replace_entry(name, inode)
    }

    /// Returns the entries of a directory in the order of their records.
    pub fn directory_entries(
        &self,
        directory: InodeNumber,
    ) -> impl Iterator<Item = DirectoryEntry<'_>> {
        self.get_directory(directory).entries()
    }

    /// Reports whether a directory has no names except `.` and `..`.
    #[must_use]
    pub fn directory_is_empty(&self, directory: InodeNumber) -> bool {
        self.get_directory(directory)
            .entries()
            .all(|entry| matches!(entry.name, "." | ".."))
    }

    /// Returns all directories from the given one (included) up to the root. rename(2) reads the
    /// first block of each, to find out whether a directory would become its own descendant.
    #[must_use]
    pub fn ancestors(&self, directory: InodeNumber) -> Vec<InodeNumber> {
        let mut ancestry = vec![directory];
        let mut last = directory;
        while last != Self::ROOT_INODE {
            last = self
                .get_directory(last)
                .lookup_entry("..")
                .expect("a directory has a parent")
                .inode;
            ancestry.push(last);
        }
        ancestry
    }
}
