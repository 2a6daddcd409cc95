//! The reserve, the full disk, and back.

use super::super::*;
use super::writer::UntimedWriter;
use super::{assert_sound, make, small_drive};

fn fill(writer: &mut UntimedWriter) -> u32 {
    let mut files = 0;
    loop {
        let name = format!("f{files}");
        let Ok(file) = writer.create_file(FastFileSystem::ROOT_INODE, &name) else {
            return files;
        };
        files += 1;
        let bytes = 1000 + u64::from(files) * 7919 % 400_000;
        if writer.write_range(file, 0, bytes).is_err() {
            return files;
        }
    }
}

#[test]
fn a_user_stops_at_the_reserve_and_root_does_not() {
    for block_bytes in [4096, 8192] {
        let fresh = make(small_drive(), block_bytes, 4);
        let start = fresh.total_summary();
        let mut writer = UntimedWriter::new(fresh);
        let files = fill(&mut writer);
        assert_sound(&writer.file_system);
        assert!(writer.file_system.free_space_fragments() <= 0);
        assert!(
            writer.file_system.free_space_fragments() > -8,
            "one block beyond at most"
        );
        let left = writer.file_system.total_summary();
        assert!(left.free_block_count > 0, "the reserve is left");

        writer.is_super_user = true;
        let file = writer
            .create_file(FastFileSystem::ROOT_INODE, "root")
            .expect("the reserve");
        assert_eq!(writer.write_range(file, 0, 1 << 30), Err(NoSpaceLeft));
        assert_sound(&writer.file_system);
        let full = writer.file_system.total_summary();
        assert_eq!(full.free_block_count, 0);

        writer.unlink_name(FastFileSystem::ROOT_INODE, "root");
        for number in 0..files {
            writer.unlink_name(FastFileSystem::ROOT_INODE, &format!("f{number}"));
        }
        assert_sound(&writer.file_system);
        // The root directory keeps what it grew to.
        let root = writer
            .file_system
            .allocated_fragment_count(FastFileSystem::ROOT_INODE);
        let free = |summary: GroupSummary| {
            let per_block = block_bytes / 1024;
            summary.free_block_count * per_block + summary.free_fragment_count
        };
        assert_eq!(
            free(writer.file_system.total_summary()) + root - 1,
            free(start)
        );
        assert_eq!(
            writer.file_system.total_summary().free_inode_count,
            start.free_inode_count
        );
    }
}

/// Everything in a directory of its own, so that the counts come back exactly.
#[test]
fn freeing_everything_restores_every_count() {
    let fresh = make(small_drive(), 8192, 4);
    let mut writer = UntimedWriter::new(fresh.clone());
    writer.is_super_user = true;
    let directory = writer
        .make_directory(FastFileSystem::ROOT_INODE, "d")
        .expect("space");
    let file = writer.create_file(directory, "file").expect("space");
    assert_eq!(writer.write_range(file, 0, 1 << 30), Err(NoSpaceLeft));
    assert_eq!(writer.file_system.total_summary().free_block_count, 0);
    assert_sound(&writer.file_system);
    writer.unlink_name(directory, "file");
    writer.remove_directory(FastFileSystem::ROOT_INODE, "d");
    assert_sound(&writer.file_system);
    for group in (0..fresh.superblock().group_count()).map(GroupIndex) {
        assert_eq!(
            writer.file_system.group_summary(group),
            fresh.group_summary(group)
        );
    }
    assert_eq!(writer.file_system.total_summary(), fresh.total_summary());
}

#[test]
fn inodes_run_out() {
    let geometry = small_drive();
    let parameters = NewfsParameters {
        bytes_per_inode: 100_000,
        ..NewfsParameters::bsd42_defaults(4096, 1024)
    };
    let mut writer = UntimedWriter::new(
        FastFileSystem::make_file_system(geometry, parameters).expect("possible"),
    );
    let inodes = writer.file_system.total_summary().free_inode_count;
    for number in 0..inodes {
        writer
            .create_file(FastFileSystem::ROOT_INODE, &number.to_string())
            .expect("an inode");
    }
    assert_eq!(
        writer.create_file(FastFileSystem::ROOT_INODE, "more"),
        Err(NoSpaceLeft)
    );
    assert_eq!(writer.file_system.total_summary().free_inode_count, 0);
    assert_sound(&writer.file_system);
}
