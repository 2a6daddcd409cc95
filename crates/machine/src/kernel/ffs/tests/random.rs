//! Long random histories, checked as they go.

use super::super::*;
use super::writer::UntimedWriter;
use super::{Random, assert_sound, make, small_drive};

/// What a history has made so far.
struct History {
    writer: UntimedWriter,
    random: Random,
    directories: Vec<(InodeNumber, String, InodeNumber)>,
    files: Vec<(InodeNumber, String)>,
    made: u32,
}

impl History {
    fn new(file_system: FastFileSystem, seed: u64) -> Self {
        Self {
            writer: UntimedWriter::new(file_system),
            random: Random(seed),
            directories: Vec::new(),
            files: Vec::new(),
            made: 0,
        }
    }

    fn directory(&mut self) -> InodeNumber {
        let choice = self.random.below(self.directories.len() as u64 + 1) as usize;
        choice
            .checked_sub(1)
            .map_or(FastFileSystem::ROOT_INODE, |index| {
                self.directories[index].2
            })
    }

    fn name(&mut self) -> String {
        self.made += 1;
        let length = self.random.below(40) as usize;
        format!("{}{}", self.made, "n".repeat(length))
    }

    fn file(&mut self) -> Option<(usize, InodeNumber)> {
        if self.files.is_empty() {
            return None;
        }
        let index = self.random.below(self.files.len() as u64) as usize;
        let (directory, name) = &self.files[index];
        let place = self.writer.file_system.lookup_entry(*directory, name);
        Some((index, place.expect("the file of a history").inode))
    }

    /// Mostly small, sometimes into the indirect blocks.
    fn size(&mut self) -> u64 {
        match self.random.below(10) {
            0..=5 => self.random.below(20_000),
            6..=8 => self.random.below(120_000),
            _ => self.random.below(6_000_000),
        }
    }

    fn step(&mut self) {
        match self.random.below(14) {
            0..=2 => {
                let (directory, name) = (self.directory(), self.name());
                if self.writer.create_file(directory, &name).is_ok() {
                    self.files.push((directory, name));
                }
            }
            3 => {
                let (directory, name) = (self.directory(), self.name());
                if let Ok(inode) = self.writer.make_directory(directory, &name) {
                    self.directories.push((directory, name, inode));
                }
            }
            4..=6 => self.write(),
            7 => self.append(),
            8..=9 => self.truncate(),
            10..=11 => self.unlink(),
            12 => self.rename_or_link(),
            _ => self.remove_directory(),
        }
    }

    fn write(&mut self) {
        let Some((_, inode)) = self.file() else {
            return;
        };
        let (offset, bytes) = (self.size(), self.size().min(300_000) + 1);
        let _full = self.writer.write_range(inode, offset, bytes);
    }

    fn append(&mut self) {
        let Some((_, inode)) = self.file() else {
            return;
        };
        let bytes = self.random.below(9000) + 1;
        let offset = self.writer.file_system.size_bytes(inode);
        let _full = self.writer.write_range(inode, offset, bytes);
    }

    fn truncate(&mut self) {
        let Some((_, inode)) = self.file() else {
            return;
        };
        let size = self.size();
        let _full = self.writer.truncate_file(inode, size);
    }

    fn unlink(&mut self) {
        let Some((index, _)) = self.file() else {
            return;
        };
        let (directory, name) = self.files.swap_remove(index);
        self.writer.unlink_name(directory, &name);
    }

    fn rename_or_link(&mut self) {
        let Some((index, inode)) = self.file() else {
            return;
        };
        let (directory, name) = (self.directory(), self.name());
        if self.random.below(2) == 0 {
            if self.writer.add_link(directory, &name, inode).is_ok() {
                self.files.push((directory, name));
            }
            return;
        }
        let (from, old) = self.files[index].clone();
        if self
            .writer
            .rename_entry((from, &old), (directory, &name))
            .is_ok()
        {
            self.files[index] = (directory, name);
        }
    }

    fn remove_directory(&mut self) {
        let empty = |(_, _, inode): &(InodeNumber, String, InodeNumber)| {
            self.writer.file_system.directory_is_empty(*inode)
        };
        if let Some(index) = self.directories.iter().position(empty) {
            let (parent, name, _) = self.directories.swap_remove(index);
            self.writer.remove_directory(parent, &name);
        }
    }

    fn remove_everything(&mut self) {
        for (directory, name) in std::mem::take(&mut self.files) {
            self.writer.unlink_name(directory, &name);
        }
        while !self.directories.is_empty() {
            self.remove_directory();
        }
    }
}

#[test]
fn random_histories_stay_sound() {
    let shapes = [
        (8192, 1024),
        (4096, 1024),
        (4096, 512),
        (8192, 4096),
        (4096, 4096),
    ];
    for (block_bytes, fragment_bytes) in shapes {
        for seed in 1..=3 {
            println!("block {block_bytes}, fragment {fragment_bytes}, seed {seed}");
            let parameters = NewfsParameters::bsd42_defaults(block_bytes, fragment_bytes);
            let fresh =
                FastFileSystem::make_file_system(small_drive(), parameters).expect("possible");
            let mut history = History::new(fresh.clone(), seed);
            history.writer.is_super_user = seed % 2 == 0;
            for _ in 0..200 {
                history.step();
                assert_sound(&history.writer.file_system);
            }
            history.remove_everything();
            let end = assert_sound(&history.writer.file_system);
            assert_eq!((end.file_count, end.directory_count), (0, 2));
            assert_eq!(
                end.free_summary.free_inode_count,
                fresh.total_summary().free_inode_count
            );
        }
    }
}

/// The same history makes the same file system, block for block.
#[test]
fn a_history_repeats_exactly() {
    let run = || {
        let mut history = History::new(make(small_drive(), 8192, 4), 77);
        (0..2000).for_each(|_| history.step());
        assert_sound(&history.writer.file_system);
        (
            history.writer.metadata_accesses,
            format!("{:?}", history.writer.file_system.total_summary()),
        )
    };
    assert_eq!(run(), run());
}
