//! Names: what the kernel does with the entries of directories.

use super::FileSystem;
use super::directory::{
    DIRECTORY_CHUNK_BYTES, Directory, DirectoryEntry, EntryPlace, EntrySlot, NAME_MAX_BYTES,
    NameError,
};
use super::inode::{InodeKind, InodeNumber};

impl FileSystem {
    /// Gives a new directory its first chunk with `.` and `..`. The kernel has
    /// allocated the first fragment before, and counts the links.
    ///
    /// # Panics
    /// If it is not a directory, has contents, or has no block.
    pub fn directory_init(&mut self, directory: InodeNumber, parent: InodeNumber) {
        let record = self.inodes.get_mut(directory);
        assert!(
            record.kind == InodeKind::Directory,
            "a directory is given contents"
        );
        assert!(
            record.directory.is_none(),
            "a directory is given contents once"
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
    fn directory(&self, directory: InodeNumber) -> &Directory {
        let contents = self.inodes.get(directory).directory.as_deref();
        contents.unwrap_or_else(|| panic!("inode {} is not a directory", directory.0))
    }

    #[track_caller]
    fn directory_mut(&mut self, directory: InodeNumber) -> &mut Directory {
        let contents = self.inodes.get_mut(directory).directory.as_deref_mut();
        contents.unwrap_or_else(|| panic!("inode {} is not a directory", directory.0))
    }

    /// Finds a name. The kernel scans the directory's blocks from the first
    /// to the one of the entry (to the last, if there is no such name).
    ///
    /// # Panics
    /// This and all other calls on a directory: if it is not one.
    #[must_use]
    pub fn directory_lookup(&self, directory: InodeNumber, name: &str) -> Option<EntryPlace> {
        self.directory(directory).lookup(name)
    }

    /// Where a new name will go, which tells the block to write and whether
    /// the directory must grow first.
    ///
    /// # Errors
    /// [`NameError`] if the name is not possible, or is there.
    pub fn directory_slot(
        &self,
        directory: InodeNumber,
        name: &str,
    ) -> Result<EntrySlot, NameError> {
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if name.len() > NAME_MAX_BYTES {
            return Err(NameError::TooLong);
        }
        if name.contains(['/', '\0']) {
            return Err(NameError::Character);
        }
        let directory = self.directory(directory);
        if directory.lookup(name).is_some() {
            return Err(NameError::Exists);
        }
        Ok(directory.slot(name))
    }

    /// Adds a name where [`Self::directory_slot`] says. If the directory
    /// grows, its block or fragments must be there already.
    ///
    /// # Panics
    /// If the name is there, or there is no block for a new chunk.
    pub fn directory_add(
        &mut self,
        directory: InodeNumber,
        name: &str,
        inode: InodeNumber,
    ) -> EntryPlace {
        let contents = self.directory_mut(directory);
        let place = contents.add(name, inode);
        let size_bytes = contents.size_bytes();
        let last = self.superblock.block_of(size_bytes - 1);
        assert!(
            self.block_address(directory, last).is_some(),
            "a directory grows into a block"
        );
        self.inodes.get_mut(directory).size_bytes = size_bytes;
        place
    }

    /// Removes a name. A directory never gets shorter.
    pub fn directory_remove(&mut self, directory: InodeNumber, name: &str) -> Option<EntryPlace> {
        self.directory_mut(directory).remove(name)
    }

    /// Makes a name, or `..`, name another inode, in place. Returns what it
    /// named before.
    pub fn directory_replace(
        &mut self,
        directory: InodeNumber,
        name: &str,
        inode: InodeNumber,
    ) -> Option<EntryPlace> {
        self.directory_mut(directory).replace(name, inode)
    }

    /// The names in the order of their records.
    pub fn directory_entries(
        &self,
        directory: InodeNumber,
    ) -> impl Iterator<Item = DirectoryEntry<'_>> {
        self.directory(directory).entries()
    }

    /// Whether a directory has no names but `.` and `..`.
    #[must_use]
    pub fn directory_is_empty(&self, directory: InodeNumber) -> bool {
        self.directory(directory)
            .entries()
            .all(|entry| matches!(entry.name, "." | ".."))
    }

    /// The directories from this one (included) up to the root. rename reads
    /// the first block of each to find out whether a directory would become
    /// its own descendant.
    #[must_use]
    pub fn directory_ancestry(&self, directory: InodeNumber) -> Vec<InodeNumber> {
        let mut ancestry = vec![directory];
        let mut last = directory;
        while last != Self::ROOT {
            last = self
                .directory(last)
                .lookup("..")
                .expect("a directory has a parent")
                .inode;
            ancestry.push(last);
        }
        ancestry
    }
}
