//! What lies where on a drive, and the free list that mkfs makes.

use super::super::check::V7Checker;
use super::super::layout::{
    BLOCK_BYTES, FILE_BYTES_MAX, FIRST_INODE_BLOCK, INODE_BYTES, LISTED_FREE_BLOCKS_MAX,
    ROOT_INODE, SUPERBLOCK_BLOCK, V7Inode, V7MkfsError, V7Parameters, V7Superblock, cylinder_order,
    file_capacity_bytes, free_order, make_file_system, pointer_path, truncate_name,
};
use crate::kernel::ffs::InodeKind;
use std::cell::RefCell;
use std::collections::BTreeMap;

const CONTIGUOUS: V7Parameters = V7Parameters {
    gap_blocks: 0,
    cylinder_gap_sectors: 0,
    blocks_per_cylinder: 102,
};

/// A drive with an empty file system.
fn made(blocks: usize, parameters: V7Parameters) -> Vec<u8> {
    let drive = RefCell::new(vec![0; blocks * BLOCK_BYTES]);
    make_file_system(
        (blocks * BLOCK_BYTES) as u64,
        parameters,
        &mut |block, bytes| {
            let at = block as usize * BLOCK_BYTES;
            drive.borrow_mut()[at..at + BLOCK_BYTES].copy_from_slice(bytes);
        },
    )
    .unwrap();
    drive.into_inner()
}

fn block_of(drive: &[u8], block: u32) -> Vec<u8> {
    let at = block as usize * BLOCK_BYTES;
    drive[at..at + BLOCK_BYTES].to_vec()
}

/// The first blocks that a file on an empty file system gets.
fn given_out(parameters: V7Parameters, blocks: u32, count: usize) -> Vec<u32> {
    let drive = made(blocks as usize, parameters);
    let superblock = V7Superblock::decode_superblock(&block_of(&drive, SUPERBLOCK_BLOCK));
    let order = free_order(&superblock, parameters);
    let home =
        V7Inode::decode_inode(&block_of(&drive, FIRST_INODE_BLOCK)[INODE_BYTES..]).addresses[0];
    assert_eq!(
        order.last(),
        Some(&home),
        "the root directory has the first"
    );
    order.into_iter().rev().skip(1).take(count).collect()
}

/// By hand: `i` goes 0, 2, 4, round to 1, 3 of five; 0, 3, round to 0, which is
/// taken, so 1, 4, 2, 5 of six. What is counted is from the end, and from 1.
#[test]
fn bflist_steps_round_the_cylinder() {
    assert_eq!(cylinder_order(1, 6), [1, 2, 3, 4, 5, 6]);
    assert_eq!(cylinder_order(2, 5), [1, 3, 5, 2, 4]);
    assert_eq!(cylinder_order(3, 6), [1, 4, 2, 5, 3, 6]);
    for count in 1..=120 {
        for step in 1..=count {
            let mut order = cylinder_order(step, count);
            order.sort_unstable();
            assert!(order.into_iter().eq(1..=count), "step {step} of {count}");
        }
    }
}

/// What is freed last is given out first: of five blocks by two the blocks
/// 1, 3, 0, 2, 4 of each cylinder, from the first cylinder on.
#[test]
fn a_gap_lies_between_a_file_s_blocks() {
    let gap = |gap_blocks, blocks_per_cylinder| V7Parameters {
        gap_blocks,
        blocks_per_cylinder,
        ..CONTIGUOUS
    };
    // 25 blocks: one of inodes, so data from block 3 on.
    assert_eq!(given_out(gap(1, 5), 25, 9), [4, 6, 8, 5, 7, 9, 11, 13, 10]);
    // 408 blocks: sixteen of inodes, so data from block 18 on.
    assert_eq!(given_out(gap(0, 102), 408, 3), [19, 20, 21]);
    let order = given_out(gap(2, 102), 408, 60);
    assert_eq!(order[..3], [21, 24, 27]);
    assert_eq!(order[25..30], [96, 99, 19, 22, 25]);
}

#[test]
fn a_cylinder_gap_turns_each_cylinder_further() {
    let parameters = V7Parameters {
        cylinder_gap_sectors: 10,
        ..CONTIGUOUS
    };
    let order = given_out(parameters, 408, 300);
    // Cylinder 0 starts at its first block, 1 at its tenth, 2 at its twentieth.
    assert_eq!(order[..3], [19, 20, 21]);
    let second = order.iter().position(|block| *block >= 102).unwrap();
    assert_eq!(order[second..second + 2], [112, 113]);
    assert_eq!(order[second + 91..second + 93], [203, 102]);
    assert_eq!(order[second + 101..second + 104], [111, 224, 225]);
}

#[test]
fn an_inode_comes_back_from_its_64_bytes() {
    let inode = V7Inode {
        kind: Some(InodeKind::RegularFile),
        link_count: 3,
        size_bytes: 0x0123_4567,
        addresses: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0x00ab_cdef, 12, 0x00ff_ffff],
    };
    let mut bytes = [0xee; INODE_BYTES];
    inode.encode_inode(&mut bytes);
    assert_eq!(V7Inode::decode_inode(&bytes), inode);
    assert_eq!(bytes[8..12], [0x67, 0x45, 0x23, 0x01]);
    assert_eq!(bytes[12 + 30..12 + 33], [0xef, 0xcd, 0xab]);
    assert_eq!(V7Inode::decode_inode(&[0; INODE_BYTES]).kind, None);
}

#[test]
fn pointers_go_from_the_inode_to_the_triple_indirect_block() {
    for (block, expected) in [
        (0, Some(vec![0])),
        (9, Some(vec![9])),
        (10, Some(vec![10, 0])),
        (137, Some(vec![10, 127])),
        (138, Some(vec![11, 0, 0])),
        (138 + 129, Some(vec![11, 1, 1])),
        (138 + 16_384, Some(vec![12, 0, 0, 0])),
        (2_113_673, Some(vec![12, 127, 127, 127])),
        (2_113_674, None),
    ] {
        assert_eq!(pointer_path(block), expected, "{block}");
    }
    assert_eq!(FILE_BYTES_MAX, 2_113_674 * 512);
}

#[test]
fn a_fresh_file_system_is_sound_and_has_its_parts() {
    for (blocks, parameters) in [
        (5, CONTIGUOUS),
        (408, CONTIGUOUS),
        (3000, CONTIGUOUS),
        (
            83_640,
            V7Parameters {
                gap_blocks: 2,
                cylinder_gap_sectors: 9,
                ..CONTIGUOUS
            },
        ),
    ] {
        let drive = made(blocks, parameters);
        let superblock = V7Superblock::decode_superblock(&block_of(&drive, SUPERBLOCK_BLOCK));
        let first = superblock.first_data_block;
        assert_eq!(first, 2 + (blocks as u32 / 25).max(1));
        assert!((1..=LISTED_FREE_BLOCKS_MAX).contains(&superblock.free_block_cache.len()));
        assert_eq!(
            superblock.free_inode_cache, [0; 0],
            "the kernel looks for them"
        );
        assert_eq!(superblock.interleave_step, parameters.gap_blocks as u16 + 1);
        let found = V7Checker {
            read_block: &|block| block_of(&drive, block),
            superblock: &superblock,
            in_core: &BTreeMap::new(),
        }
        .check_all()
        .unwrap();
        assert_eq!((found.directory_count, found.used_block_count), (1, 1));
        assert_eq!(found.free_block_count, blocks as u32 - first - 1);
        assert_eq!(V7Superblock::inode_position(ROOT_INODE), (2, INODE_BYTES));
    }
}

/// A block that is both free and used, and a name too many.
#[test]
fn a_check_sees_what_is_wrong() {
    let problems = |spoil: &dyn Fn(&mut V7Superblock, &mut Vec<u8>)| {
        let mut drive = made(408, CONTIGUOUS);
        let mut superblock = V7Superblock::decode_superblock(&block_of(&drive, SUPERBLOCK_BLOCK));
        spoil(&mut superblock, &mut drive);
        let check = V7Checker {
            read_block: &|block| block_of(&drive, block),
            superblock: &superblock,
            in_core: &BTreeMap::new(),
        };
        check.check_all().unwrap_err().join("; ")
    };
    let twice = problems(&|superblock, _| superblock.free_block_cache.push(18));
    assert!(
        twice.contains("invalid or duplicate block 18 (used by a file: true)"),
        "{twice}"
    );
    let lost = problems(&|superblock, _| {
        superblock.free_block_cache.pop();
    });
    assert!(lost.contains("389 of 390 blocks"), "{lost}");
    let named = problems(&|_, drive| {
        let at = 18 * BLOCK_BYTES + 16;
        drive[at] = 3;
    });
    assert!(named.contains("names inode 3, which is free"), "{named}");
}

#[test]
fn names_are_cut_and_partitions_refused() {
    assert_eq!(&truncate_name("a-name-of-sixteen"), b"a-name-of-sixt");
    assert_eq!(
        file_capacity_bytes(3 * 512, CONTIGUOUS),
        Err(V7MkfsError::PartitionTooSmall(3))
    );
    let large = (1 << 24) + 1;
    assert_eq!(
        file_capacity_bytes(large * 512, CONTIGUOUS),
        Err(V7MkfsError::PartitionTooLarge(large))
    );
}
