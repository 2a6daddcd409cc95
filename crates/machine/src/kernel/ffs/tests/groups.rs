//! The order of groups, allocation inside one group, and growth in place.

use super::super::*;
use super::{eagle_g, make};

#[test]
fn groups_are_tried_near_then_quadratic_then_all() {
    let order: Vec<u32> = AllocationSearch::new(7, GroupIndex(5))
        .map(|c| c.group.0)
        .collect();
    assert_eq!(order, [5, 6, 1, 5, 0, 1, 2, 3, 4]);
    let preferred: Vec<bool> = AllocationSearch::new(7, GroupIndex(5))
        .map(|c| c.is_preferred)
        .collect();
    assert!(preferred[0] && !preferred[1..].iter().any(|&p| p));
    for groups in 1..40 {
        for first in 0..groups {
            let mut tried: Vec<u32> = AllocationSearch::new(groups, GroupIndex(first))
                .map(|c| c.group.0)
                .collect();
            assert_eq!(tried[0], first);
            tried.sort_unstable();
            tried.dedup();
            assert_eq!(tried.len() as u32, groups, "every group is tried");
        }
    }
}

/// Preference, then the same rotational position in the cylinder, then the
/// positions after it, then the next cylinder.
#[test]
fn a_block_near_a_taken_one() {
    let mut file_system = make(eagle_g(), 8192, 4);
    let base = file_system.superblock().group_base(GroupIndex(3)).0;
    // Cylinder 5 of the group: 60 blocks, three to a track.
    let block = |number: u32| FragmentAddress(base + (5 * 60 + number) * 8);
    let take = |file_system: &mut FastFileSystem, number| {
        let found = file_system.allocate_in_group(GroupIndex(3), Some(block(number)), 8);
        (found.expect("space").0 - base) / 8 - 5 * 60
    };
    assert_eq!(take(&mut file_system, 30), 30);
    // Block 30 is at sector 0: the first free one at sector 0 of a track.
    assert_eq!(take(&mut file_system, 30), 0);
    assert_eq!(take(&mut file_system, 30), 3);
    for _ in 0..17 {
        take(&mut file_system, 30);
    }
    // All 20 of that position are gone: the position after it, sector 16.
    assert_eq!(take(&mut file_system, 30), 1);
    for _ in 0..39 {
        take(&mut file_system, 30);
    }
    // The cylinder is full: the next block of the map.
    assert_eq!(take(&mut file_system, 30), 60);
    // A preference inside a block stands for the block.
    let inside = FragmentAddress(block(70).0 + 3);
    assert_eq!(
        file_system.allocate_in_group(GroupIndex(3), Some(inside), 8),
        Some(block(70))
    );
}

#[test]
fn fragments_break_blocks_and_make_them_whole() {
    let mut file_system = make(eagle_g(), 8192, 4);
    let start = file_system.total_summary();
    let near = FragmentAddress(file_system.superblock().group_base(GroupIndex(4)).0 + 3000 * 2);
    let allocate = |file_system: &mut FastFileSystem, fragments| {
        file_system
            .allocate_in_group(GroupIndex(4), Some(near), fragments)
            .expect("space")
    };
    let three = allocate(&mut file_system, 3);
    assert_eq!(three, near);
    // The rest of the broken block serves: 5 left, of which 4, of which 1.
    let four = allocate(&mut file_system, 4);
    assert_eq!(four.0, near.0 + 3);
    let one = allocate(&mut file_system, 1);
    assert_eq!(one.0, near.0 + 7);
    assert_eq!(
        file_system.total_summary().free_block_count,
        start.free_block_count - 1
    );
    assert!(
        !file_system.may_extend(one, 1, 2),
        "that would cross the block"
    );
    assert!(
        !file_system.extend_fragments(three, 3, 4),
        "the next one is taken"
    );
    file_system.free_fragments(four, 4);
    assert!(file_system.may_extend(three, 3, 5));
    assert!(file_system.extend_fragments(three, 3, 5));
    assert!(
        !file_system.extend_fragments(three, 5, 8),
        "the last one is taken"
    );
    file_system.free_fragments(three, 5);
    file_system.free_fragments(one, 1);
    assert_eq!(file_system.total_summary(), start);
    super::assert_sound(&file_system);
}

#[test]
#[should_panic(expected = "a free block is freed")]
fn freeing_twice_is_caught() {
    let mut file_system = make(eagle_g(), 8192, 4);
    let block = file_system
        .allocate_in_group(GroupIndex(2), None, 8)
        .expect("space");
    file_system.free_fragments(block, 8);
    file_system.free_fragments(block, 8);
}

#[test]
#[should_panic(expected = "a free fragment is freed")]
fn freeing_a_free_fragment_is_caught() {
    let mut file_system = make(eagle_g(), 8192, 4);
    let block = file_system
        .allocate_in_group(GroupIndex(2), None, 3)
        .expect("space");
    file_system.free_fragments(FragmentAddress(block.0 + 2), 2);
}

#[test]
fn directories_spread_and_files_stay() {
    let mut writer = super::writer::UntimedWriter::new(make(eagle_g(), 8192, 4));
    let mut groups = Vec::new();
    for number in 0..28 {
        let name = format!("d{number}");
        let directory = writer
            .make_directory(FastFileSystem::ROOT_INODE, &name)
            .expect("space");
        groups.push(writer.file_system.superblock().group_of_inode(directory).0);
        let file = writer.create_file(directory, "file").expect("space");
        assert_eq!(
            file.0,
            directory.0 + 1,
            "the next free inode after the directory's"
        );
    }
    assert_eq!(
        groups,
        (1..=28).collect::<Vec<_>>(),
        "one in each group without any"
    );
    let next = writer
        .make_directory(FastFileSystem::ROOT_INODE, "again")
        .expect("space");
    assert_eq!(writer.file_system.superblock().group_of_inode(next).0, 1);
    super::assert_sound(&writer.file_system);
}
