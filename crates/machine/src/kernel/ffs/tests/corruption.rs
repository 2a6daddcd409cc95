//! The check finds what is planted.

use super::super::*;
use super::writer::Writer;
use super::{assert_sound, eagle_g, make};

/// A file system with a directory, a large file and a file of fragments.
fn sample() -> (FileSystem, InodeNumber, InodeNumber, InodeNumber) {
    let mut writer = Writer::new(make(eagle_g(), 4096, 4));
    let directory = writer.make_directory(FileSystem::ROOT, "d").expect("space");
    let large = writer.create(directory, "large").expect("space");
    writer.write(large, 0, 5 << 20).expect("space");
    let small = writer.create(directory, "small").expect("space");
    writer.write(small, 0, 1500).expect("space");
    assert_sound(&writer.file_system);
    (writer.file_system, directory, large, small)
}

/// Plants, and expects a problem that `is_it` recognises.
#[track_caller]
fn planted(plant: impl Fn(&mut FileSystem), is_it: impl Fn(&Problem) -> bool) {
    let (mut file_system, ..) = sample();
    plant(&mut file_system);
    let problems = file_system.check().expect_err("a planted problem is found");
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
        |p| matches!(p, Problem::ClaimedButFree { .. }),
    );
    planted(
        |f| f.groups[20].free_map[900] = 0x7f,
        |p| matches!(p, Problem::LostFragment { .. }),
    );
    planted(
        |f| f.groups[20].free_by_cylinder[3] -= 1,
        |p| {
            matches!(
                p,
                Problem::GroupCount {
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
                Problem::GroupCount {
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
                Problem::GroupCount {
                    what: "runs of fragments",
                    ..
                }
            )
        },
    );
    planted(
        |f| f.summaries[1].free_fragments += 1,
        |p| {
            matches!(
                p,
                Problem::GroupCount {
                    what: "free fragments",
                    ..
                }
            )
        },
    );
    planted(
        |f| f.summaries[5].directories += 1,
        |p| {
            matches!(
                p,
                Problem::GroupCount {
                    what: "directories",
                    ..
                }
            )
        },
    );
    planted(
        |f| f.total_summary.free_blocks -= 1,
        |p| matches!(p, Problem::Total { .. }),
    );
    planted(
        |f| f.groups[7].set_inode_used(9, true),
        |p| matches!(p, Problem::InodeMap { is_used: true, .. }),
    );
    planted(
        |f| f.groups[1].set_inode_used(1, false),
        |p| matches!(p, Problem::InodeMap { is_used: false, .. }),
    );
}

#[test]
fn pointers_and_sizes() {
    let (sound, directory, large, small) = sample();
    let other = sound.block_address(large, 20).expect("a block");
    planted(
        |f| f.inodes.get_mut(large).direct[0] = other.0,
        |p| matches!(p, Problem::ClaimedTwice { .. }),
    );
    planted(
        |f| f.inodes.get_mut(large).direct[0] = 40,
        |p| matches!(p, Problem::ClaimedTwice { .. }),
    );
    planted(
        |f| f.inodes.get_mut(large).direct[0] = u32::MAX - 3,
        |p| matches!(p, Problem::BadAddress { .. }),
    );
    planted(
        |f| f.inodes.get_mut(large).direct[0] += 1,
        |p| matches!(p, Problem::BadAddress { .. }),
    );
    planted(
        |f| f.inodes.get_mut(small).direct[5] = other.0,
        |p| matches!(p, Problem::BeyondEnd { lbn: 5, .. }),
    );
    planted(
        |f| f.inodes.get_mut(large).size_bytes = 100 * 4096,
        |p| matches!(p, Problem::BeyondEnd { .. }),
    );
    planted(
        |f| f.inodes.get_mut(small).size_bytes = 3000,
        |p| {
            matches!(
                p,
                Problem::ClaimedTwice { .. } | Problem::ClaimedButFree { .. }
            )
        },
    );
    planted(
        |f| f.inodes.get_mut(directory).size_bytes = 1024,
        |p| matches!(p, Problem::DirectoryDamage { .. }),
    );
    planted(
        |f| f.inodes.get_mut(large).indirect[0] = None,
        |p| matches!(p, Problem::LostIndirect { .. }),
    );
    planted(
        |f| {
            let root = f.indirect_root(large, 2).expect("a double indirect block");
            f.indirect_blocks.get_mut(root).pointers[0] += 4;
        },
        |p| matches!(p, Problem::IndirectDamage { .. }),
    );
}

#[test]
fn names_and_links() {
    let (_, directory, large, small) = sample();
    planted(
        |f| f.set_links(small, 2),
        |p| matches!(p, Problem::LinkCount { links: 2, .. }),
    );
    planted(
        |f| {
            f.remove_entry(directory, "small");
        },
        |p| matches!(p, Problem::LinkCount { names: 0, .. }),
    );
    planted(
        |f| {
            f.replace_entry(directory, "small", InodeNumber(9999));
        },
        |p| matches!(p, Problem::DanglingName { .. }),
    );
    planted(
        |f| {
            f.remove_entry(FileSystem::ROOT, "d");
        },
        |p| matches!(p, Problem::Disconnected { .. }),
    );
    planted(
        |f| {
            f.replace_entry(directory, "small", directory);
        },
        |p| matches!(p, Problem::Disconnected { .. }),
    );
    planted(
        |f| {
            f.replace_entry(directory, "..", directory);
        },
        |p| {
            matches!(
                p,
                Problem::DirectoryDamage {
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
                .get_mut(directory)
                .directory
                .as_mut()
                .expect("a directory");
            contents.chunks[0].records[1].record_bytes += 4;
        },
        |p| matches!(p, Problem::DirectoryDamage { .. }),
    );
    planted(
        |f| {
            f.inodes.get_mut(large).link_count = 0;
        },
        |p| matches!(p, Problem::LinkCount { links: 0, .. }),
    );
}
