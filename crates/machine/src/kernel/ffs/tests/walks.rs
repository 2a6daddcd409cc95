//! What fsck and dump read: everything that they must, from where it is.

use super::super::*;
use super::writer::UntimedWriter;
use super::{Random, assert_sound, make, small_drive};
use std::collections::{BTreeMap, BTreeSet};

/// A tree of some depth with small and large files, on a small drive.
fn populated(seed: u64) -> FastFileSystem {
    let mut random = Random(seed);
    let mut writer = UntimedWriter::new(make(small_drive(), 4096, 4));
    let mut directories = vec![FastFileSystem::ROOT_INODE];
    for number in 0..40 {
        let parent = directories[random.below(directories.len() as u64) as usize];
        let directory = writer.make_directory(parent, &format!("directory{number}"));
        directories.push(directory.expect("space"));
        for file in 0..random.below(30) {
            let name = format!("{number}-{file}-{}", "x".repeat(random.below(60) as usize));
            let at = directories[random.below(directories.len() as u64) as usize];
            let inode = writer.create_file(at, &name).expect("space");
            let most = if random.below(20) == 0 { 90_000 } else { 4000 };
            writer
                .write_range(inode, 0, random.below(most) + 1)
                .expect("space");
        }
    }
    assert_sound(&writer.file_system);
    writer.file_system
}

fn of_pass(fs: &FastFileSystem, pass: FsckPass) -> Vec<FsckRead> {
    let reads = fs.fsck_reads().into_iter();
    reads.filter(|read| read.fsck_pass == pass).collect()
}

#[test]
fn fsck_reads_every_inode_block_and_every_map_once() {
    for seed in 1..6 {
        let fs = populated(seed);
        let superblock = fs.superblock();
        let inodes = of_pass(&fs, FsckPass::InodeScan);
        let read: Vec<FragmentAddress> = inodes.iter().map(|read| read.address).collect();
        assert_eq!(read, fs.inode_blocks());
        let blocks = superblock.inodes_per_group() / superblock.inodes_per_block();
        assert_eq!(read.len() as u32, superblock.group_count() * blocks);
        let maps: Vec<FragmentAddress> = of_pass(&fs, FsckPass::GroupMaps)
            .iter()
            .map(|read| read.address)
            .collect();
        let all = (0..superblock.group_count())
            .map(|group| superblock.group_map_address(GroupIndex(group)));
        assert_eq!(maps, all.collect::<Vec<_>>());
        assert!(
            fs.fsck_reads()
                .is_sorted_by_key(|read| match read.fsck_pass {
                    FsckPass::SuperblockSetup => 0,
                    FsckPass::InodeScan | FsckPass::IndirectBlocks => 1,
                    FsckPass::DirectoryInodes | FsckPass::DirectoryContents => 2,
                    FsckPass::GroupMaps => 5,
                })
        );
    }
}

/// The pieces of directories; after each subdirectory one of its parent's, if
/// only one buffer is there.
#[test]
fn fsck_reads_every_directory_and_its_parent_again() {
    for seed in 1..6 {
        let fs = populated(seed);
        let mut pieces = BTreeMap::new();
        let mut subdirectories = 0;
        for dumped in fs.dumped_inodes() {
            if dumped.kind != InodeKind::Directory {
                continue;
            }
            subdirectories += u32::from(dumped.inode != FastFileSystem::ROOT_INODE);
            for block in fs.dump_blocks(dumped.inode) {
                if let DumpBlock::DataBlock { address, .. } = block {
                    pieces.insert(address, 0_u32);
                }
            }
        }
        for read in of_pass(&fs, FsckPass::DirectoryContents) {
            *pieces.get_mut(&read.address).expect("a directory's piece") += 1;
        }
        assert!(pieces.values().all(|times| *times > 0), "{pieces:?}");
        let again: u32 = pieces.values().map(|times| times - 1).sum();
        assert_eq!(again, subdirectories);
        let pass = of_pass(&fs, FsckPass::DirectoryInodes);
        for pair in pass.windows(2) {
            assert_ne!(pair[0].address, pair[1].address, "one is in core");
        }
    }
}

#[test]
fn fsck_reads_every_indirect_block_once() {
    let mut writer = UntimedWriter::new(make(small_drive(), 4096, 4));
    let file = writer
        .create_file(FastFileSystem::ROOT_INODE, "file")
        .expect("space");
    // Behind the single indirect block, with two children of the double one.
    let bytes = (12 + 1024 + 1100) * 4096;
    writer.write_range(file, 0, bytes).expect("space");
    let read = of_pass(&writer.file_system, FsckPass::IndirectBlocks);
    let read: BTreeSet<FragmentAddress> = read.iter().map(|read| read.address).collect();
    assert_eq!(read.len(), 4);
    let dumped = writer.file_system.dump_blocks(file);
    let mut of_dump = BTreeSet::new();
    let mut data_bytes = 0;
    for block in dumped {
        match block {
            DumpBlock::IndirectBlock { address, .. } => {
                assert!(of_dump.insert(address), "read twice")
            }
            DumpBlock::DataBlock { bytes, .. } => data_bytes += u64::from(bytes),
            DumpBlock::UnallocatedBlock { .. } => panic!("no holes were made"),
        }
    }
    assert_eq!(of_dump, read);
    assert_eq!(data_bytes, bytes);
}

#[test]
fn holes_are_dumped_as_what_they_are() {
    let mut writer = UntimedWriter::new(make(small_drive(), 4096, 4));
    let file = writer
        .create_file(FastFileSystem::ROOT_INODE, "file")
        .expect("space");
    writer.write_range(file, 3 * 4096, 100).expect("space");
    let blocks = writer.file_system.dump_blocks(file);
    assert_eq!(
        blocks[..3],
        [DumpBlock::UnallocatedBlock { bytes: 4096 }; 3]
    );
    assert!(matches!(
        blocks[3..],
        [DumpBlock::DataBlock { bytes: 100, .. }]
    ));
}

#[test]
fn a_directory_reads_back_from_its_bytes() {
    let fs = populated(3);
    for dumped in fs.dumped_inodes() {
        if dumped.kind != InodeKind::Directory {
            continue;
        }
        let bytes = fs.directory_bytes(dumped.inode);
        let mut entries = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let two = |from: usize| u16::from_be_bytes([bytes[at + from], bytes[at + from + 1]]);
            let inode = u32::from_be_bytes(*bytes[at..].first_chunk().expect("a record"));
            let name = &bytes[at + 8..][..usize::from(two(6))];
            if inode != 0 {
                entries.push((std::str::from_utf8(name).expect("text"), inode));
            }
            assert!(two(4) > 0, "a record has a length");
            at += usize::from(two(4));
        }
        let known = fs.directory_entries(dumped.inode);
        let known: Vec<_> = known.map(|entry| (entry.name, entry.inode.0)).collect();
        assert_eq!(entries, known, "{}", dumped.path);
    }
}
