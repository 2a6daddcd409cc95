//! The reserve, the full disk, and back.

use super::super::*;
use super::writer::Writer;
use super::{assert_sound, make, small_drive};

fn fill(writer: &mut Writer) -> u32 {
    let mut files = 0;
    loop {
        let name = format!("f{files}");
        let Ok(file) = writer.create(FileSystem::ROOT, &name) else {
            return files;
        };
        files += 1;
        let bytes = 1000 + u64::from(files) * 7919 % 400_000;
        if writer.write(file, 0, bytes).is_err() {
            return files;
        }
    }
}

#[test]
fn a_user_stops_at_the_reserve_and_root_does_not() {
    for block_bytes in [4096, 8192] {
        let fresh = make(small_drive(), block_bytes, 4);
        let start = fresh.total_summary();
        let mut writer = Writer::new(fresh);
        let files = fill(&mut writer);
        assert_sound(&writer.file_system);
        assert!(writer.file_system.free_space_fragments() <= 0);
        assert!(
            writer.file_system.free_space_fragments() > -8,
            "one block beyond at most"
        );
        let left = writer.file_system.total_summary();
        assert!(left.free_blocks > 0, "the reserve is left");

        writer.is_super_user = true;
        let file = writer
            .create(FileSystem::ROOT, "root")
            .expect("the reserve");
        assert_eq!(writer.write(file, 0, 1 << 30), Err(NoSpace));
        assert_sound(&writer.file_system);
        let full = writer.file_system.total_summary();
        assert_eq!(full.free_blocks, 0);

        writer.unlink(FileSystem::ROOT, "root");
        for number in 0..files {
            writer.unlink(FileSystem::ROOT, &format!("f{number}"));
        }
        assert_sound(&writer.file_system);
        // The root directory keeps what it grew to.
        let root = writer.file_system.held_fragments(FileSystem::ROOT);
        let free = |summary: GroupSummary| {
            let per_block = block_bytes / 1024;
            summary.free_blocks * per_block + summary.free_fragments
        };
        assert_eq!(
            free(writer.file_system.total_summary()) + root - 1,
            free(start)
        );
        assert_eq!(
            writer.file_system.total_summary().free_inodes,
            start.free_inodes
        );
    }
}

/// Everything in a directory of its own, so that the counts come back exactly.
#[test]
fn freeing_everything_restores_every_count() {
    let fresh = make(small_drive(), 8192, 4);
    let mut writer = Writer::new(fresh.clone());
    writer.is_super_user = true;
    let directory = writer.make_directory(FileSystem::ROOT, "d").expect("space");
    let file = writer.create(directory, "file").expect("space");
    assert_eq!(writer.write(file, 0, 1 << 30), Err(NoSpace));
    assert_eq!(writer.file_system.total_summary().free_blocks, 0);
    assert_sound(&writer.file_system);
    writer.unlink(directory, "file");
    writer.remove_directory(FileSystem::ROOT, "d");
    assert_sound(&writer.file_system);
    for group in (0..fresh.superblock().group_count()).map(Group) {
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
    let parameters = Parameters {
        bytes_per_inode: 100_000,
        ..Parameters::bsd42(4096, 1024)
    };
    let mut writer = Writer::new(FileSystem::newfs(geometry, parameters).expect("possible"));
    let inodes = writer.file_system.total_summary().free_inodes;
    for number in 0..inodes {
        writer
            .create(FileSystem::ROOT, &number.to_string())
            .expect("an inode");
    }
    assert_eq!(writer.create(FileSystem::ROOT, "more"), Err(NoSpace));
    assert_eq!(writer.file_system.total_summary().free_inodes, 0);
    assert_sound(&writer.file_system);
}
