//! The check finds what is planted.

use super::super::*;
use super::writer::UntimedWriter;
use super::{assert_sound, eagle_g, make};

/// A file system with a directory, a large file and a file of fragments.
fn sample() -> (FastFileSystem, InodeNumber, InodeNumber, InodeNumber) {
    let mut writer = UntimedWriter::new(make(eagle_g(), 4096, 4));
    let directory = writer
        .make_directory(FastFileSystem::ROOT_INODE, "d")
        .expect("space");
    let large = writer.create_file(directory, "large").expect("space");
    writer.write_range(large, 0, 5 << 20).expect("space");
    let small = writer.create_file(directory, "small").expect("space");
    writer.write_range(small, 0, 1500).expect("space");
    assert_sound(&writer.file_system);
    (writer.file_system, directory, large, small)
}

/// Plants, and expects a problem that `is_it` recognises.
#[track_caller]
fn planted(plant: impl Fn(&mut FastFileSystem), is_it: impl Fn(&ConsistencyProblem) -> bool) {
    let (mut file_system, ..) = sample();
    plant(&mut file_system);
    let problems = file_system
        .check_consistency()
        .expect_err("a planted problem is found");
    assert!(problems.iter().any(is_it), "{problems:?}");
    assert!(
        problems
            .iter()
            .all(|problem| !problem.to_string().is_empty())
    );
}

#[test]
fn maps_and_counters() {
    let (sound, _, large, _) = sample();
    let claimed = sound.block_address(large, 3).expect("a block");
    let group = sound.superblock().group_of(claimed);
    let base = sound.superblock().group_base(group).0;
    planted(
        |f| f.groups[group.0 as usize].free_map[(claimed.0 - base) as usize / 8] = 0xff,
        |p| matches!(p, ConsistencyProblem::ClaimedButFree { .. }),
    );
    planted(
        |f| f.groups[20].free_map[900] = 0x7f,
        |p| matches!(p, ConsistencyProblem::LostFragment { .. }),
    );
    planted(
        |f| f.groups[20].free_blocks_by_cylinder[3] -= 1,
        |p| {
            matches!(
                p,
                ConsistencyProblem::WrongGroupCount {
                    what: "blocks of a cylinder",
                    ..
                }
            )
        },
    );
    planted(
        |f| f.groups[20].free_by_position[3].swap(0, 3),
        |p| {
            matches!(
                p,
                ConsistencyProblem::WrongGroupCount {
                    what: "blocks of a rotational position",
                    ..
                }
            )
        },
    );
    planted(
        |f| f.groups[1].fragment_runs[1] += 1,
        |p| {
            matches!(
                p,
                ConsistencyProblem::WrongGroupCount {
                    what: "runs of fragments",
                    ..
                }
            )
        },
    );
    planted(
        |f| f.summaries[1].free_fragment_count += 1,
        |p| {
            matches!(
                p,
                ConsistencyProblem::WrongGroupCount {
                    what: "free fragments",
                    ..
                }
            )
        },
    );
    planted(
        |f| f.summaries[5].directory_count += 1,
        |p| {
            matches!(
                p,
                ConsistencyProblem::WrongGroupCount {
                    what: "directories",
                    ..
                }
            )
        },
    );
    planted(
        |f| f.total_summary.free_block_count -= 1,
        |p| matches!(p, ConsistencyProblem::WrongTotal { .. }),
    );
    planted(
        |f| f.groups[7].set_inode_used(9, true),
        |p| matches!(p, ConsistencyProblem::WrongInodeMap { is_used: true, .. }),
    );
    planted(
        |f| f.groups[1].set_inode_used(1, false),
        |p| matches!(p, ConsistencyProblem::WrongInodeMap { is_used: false, .. }),
    );
}

#[test]
fn pointers_and_sizes() {
    let (sound, directory, large, small) = sample();
    let other = sound.block_address(large, 20).expect("a block");
    planted(
        |f| f.inodes.inode_mut(large).direct[0] = other.0,
        |p| matches!(p, ConsistencyProblem::ClaimedTwice { .. }),
    );
    planted(
        |f| f.inodes.inode_mut(large).direct[0] = 40,
        |p| matches!(p, ConsistencyProblem::ClaimedTwice { .. }),
    );
    planted(
        |f| f.inodes.inode_mut(large).direct[0] = u32::MAX - 3,
        |p| matches!(p, ConsistencyProblem::BadAddress { .. }),
    );
    planted(
        |f| f.inodes.inode_mut(large).direct[0] += 1,
        |p| matches!(p, ConsistencyProblem::BadAddress { .. }),
    );
    planted(
        |f| f.inodes.inode_mut(small).direct[5] = other.0,
        |p| matches!(p, ConsistencyProblem::BlockBeyondEnd { lbn: 5, .. }),
    );
    planted(
        |f| f.inodes.inode_mut(large).size_bytes = 100 * 4096,
        |p| matches!(p, ConsistencyProblem::BlockBeyondEnd { .. }),
    );
    planted(
        |f| f.inodes.inode_mut(small).size_bytes = 3000,
        |p| {
            matches!(
                p,
                ConsistencyProblem::ClaimedTwice { .. } | ConsistencyProblem::ClaimedButFree { .. }
            )
        },
    );
    planted(
        |f| f.inodes.inode_mut(directory).size_bytes = 1024,
        |p| matches!(p, ConsistencyProblem::DirectoryDamage { .. }),
    );
    planted(
        |f| f.inodes.inode_mut(large).indirect[0] = None,
        |p| matches!(p, ConsistencyProblem::LostIndirect { .. }),
    );
    planted(
        |f| {
            let root = f.indirect_root(large, 2).expect("a double indirect block");
            f.indirect_blocks.indirect_block_mut(root).pointers[0] += 4;
        },
        |p| matches!(p, ConsistencyProblem::IndirectDamage { .. }),
    );
}

#[test]
fn names_and_links() {
    let (_, directory, large, small) = sample();
    planted(
        |f| f.set_link_count(small, 2),
        |p| matches!(p, ConsistencyProblem::WrongLinkCount { links: 2, .. }),
    );
    planted(
        |f| {
            f.remove_entry(directory, "small");
        },
        |p| matches!(p, ConsistencyProblem::WrongLinkCount { names: 0, .. }),
    );
    planted(
        |f| {
            f.replace_entry(directory, "small", InodeNumber(9999));
        },
        |p| matches!(p, ConsistencyProblem::DanglingName { .. }),
    );
    planted(
        |f| {
            f.remove_entry(FastFileSystem::ROOT_INODE, "d");
        },
        |p| matches!(p, ConsistencyProblem::Disconnected { .. }),
    );
    planted(
        |f| {
            f.replace_entry(directory, "small", directory);
        },
        |p| matches!(p, ConsistencyProblem::Disconnected { .. }),
    );
    planted(
        |f| {
            f.replace_entry(directory, "..", directory);
        },
        |p| {
            matches!(
                p,
                ConsistencyProblem::DirectoryDamage {
                    what: "its .. is wrong",
                    ..
                }
            )
        },
    );
    planted(
        |f| {
            let contents = f
                .inodes
                .inode_mut(directory)
                .directory
                .as_mut()
                .expect("a directory");
            contents.chunks[0].records[1].record_bytes += 4;
        },
        |p| matches!(p, ConsistencyProblem::DirectoryDamage { .. }),
    );
    planted(
        |f| {
            f.inodes.inode_mut(large).link_count = 0;
        },
        |p| matches!(p, ConsistencyProblem::WrongLinkCount { links: 0, .. }),
    );
}
