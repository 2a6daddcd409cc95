//! What lies where on a drive.

use super::super::layout::{
    BLOCK_BYTES, BlockPointer, FILE_BLOCKS_MAX, FILE_BYTES_MAX, INODE_BYTES,
    MinixFileSystemParameters, MinixInode, MinixInodeKind, MinixMkfsError, MinixVolume, ROOT_INODE,
    file_capacity_bytes, locate_pointer, read_u16,
};

const PARAMETERS: MinixFileSystemParameters = MinixFileSystemParameters {
    bytes_per_inode: 3072,
};
const MEGABYTE: u64 = 1 << 20;

#[test]
fn an_inode_comes_back_from_its_32_bytes() {
    let inode = MinixInode {
        kind: MinixInodeKind::File,
        size_bytes: 0x0123_4567,
        link_count: 3,
        zones: [1, 2, 3, 4, 5, 6, 7, 0xfffe, 9],
    };
    let mut bytes = [0xee; INODE_BYTES];
    inode.encode_inode(&mut bytes);
    assert_eq!(MinixInode::decode_inode(&bytes), Some(inode));
    // As the 68000 has it: mode, owner, size, time, group, links, zones.
    assert_eq!(
        bytes[..8],
        [
            0o100_666_u16.to_be_bytes()[0],
            0xb6,
            0,
            0,
            1,
            0x23,
            0x45,
            0x67
        ]
    );
    assert_eq!(bytes[13], 3);
    assert_eq!(bytes[28..32], [0xff, 0xfe, 0, 9]);
    assert_eq!(MinixInode::decode_inode(&[0; INODE_BYTES]), None);
}

#[test]
fn pointers_go_from_the_inode_to_the_double_indirect_block() {
    for (block, expected) in [
        (0, BlockPointer::Direct(0)),
        (6, BlockPointer::Direct(6)),
        (7, BlockPointer::Indirect(0)),
        (518, BlockPointer::Indirect(511)),
        (519, BlockPointer::DoubleIndirect(0, 0)),
        (1030, BlockPointer::DoubleIndirect(0, 511)),
        (1031, BlockPointer::DoubleIndirect(1, 0)),
        (FILE_BLOCKS_MAX - 1, BlockPointer::DoubleIndirect(511, 511)),
    ] {
        assert_eq!(locate_pointer(block), expected, "{block}");
    }
    // s_max_size of a file system with zones of 1 KB.
    assert_eq!(FILE_BYTES_MAX, 268_966_912);
}

/// What mkfs prints of a floppy disk of 360 KB and 120 inodes, and of larger
/// drives: the super block's numbers.
#[test]
fn a_volume_has_its_parts_in_their_order() {
    for (bytes, inodes, zone_maps) in [
        (360 * 1024, 120_u64, 1),
        (20 * MEGABYTE, 6826, 3),
        (60 * MEGABYTE, 20_480, 8),
    ] {
        let volume = MinixVolume::new(bytes, PARAMETERS).unwrap();
        let blocks = volume.superblock_and_map_blocks(true);
        let head = |place: usize| u64::from(read_u16(&blocks[0].1, 2 * place));
        let inodes = inodes.next_multiple_of(32);
        let inode_maps = (inodes + 1).div_ceil(8192);
        assert_eq!(head(0), inodes);
        assert_eq!(head(1), bytes / 1024);
        assert_eq!((head(2), head(3)), (inode_maps, zone_maps));
        assert_eq!(head(4), 2 + inode_maps + zone_maps + inodes / 32);
        assert_eq!(head(8), 0x137f);
        assert_eq!(u64::from(volume.inode_block(1)), 2 + inode_maps + zone_maps);
        assert_eq!(volume.inode_block(33), volume.inode_block(32) + 1);
        let numbers: Vec<u32> = blocks.iter().map(|(number, _)| *number).collect();
        assert_eq!(
            numbers,
            (1..=1 + (inode_maps + zone_maps) as u32).collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_volume_that_was_made_can_be_mounted() {
    let volume = MinixVolume::new(8 * MEGABYTE, PARAMETERS).unwrap();
    let mut drive = vec![0; 8 << 20];
    volume.write_empty(&mut |block, bytes| {
        let at = block as usize * BLOCK_BYTES;
        drive[at..at + BLOCK_BYTES].copy_from_slice(bytes);
    });
    let mut read = |block: u32| {
        let at = block as usize * BLOCK_BYTES;
        drive[at..at + BLOCK_BYTES].to_vec()
    };
    let mounted = MinixVolume::read_from_drive(&mut read).unwrap();
    assert!(mounted.inode_map.is_bit_taken(ROOT_INODE) && !mounted.inode_map.is_bit_taken(2));
    assert_eq!(mounted.free_bytes(), volume.free_bytes());
    let root = read(mounted.inode_block(ROOT_INODE));
    let root = MinixInode::decode_inode(&root[..INODE_BYTES]).unwrap();
    assert_eq!(
        (root.kind, root.link_count, root.size_bytes),
        (MinixInodeKind::Directory, 2, 32)
    );
    let entries = read(u32::from(root.zones[0]));
    assert_eq!(entries[..5], [0, 1, b'.', 0, 0]);
    assert_eq!(entries[16..21], [0, 1, b'.', b'.', 0]);
    assert!(MinixVolume::read_from_drive(&mut |_| vec![0; BLOCK_BYTES]).is_none());
}

#[test]
fn zones_are_taken_near_the_last_one_and_come_back() {
    let mut volume = MinixVolume::new(MEGABYTE, PARAMETERS).unwrap();
    let free = volume.free_bytes();
    let first = volume.take_zone(0).unwrap();
    let near = volume.take_zone(first + 100).unwrap();
    assert_eq!(near, first + 100);
    assert_eq!(volume.take_zone(near).unwrap(), near + 1);
    for zone in [first, near, near + 1] {
        volume.free_zone(zone);
    }
    assert_eq!(volume.free_bytes(), free);
    let mut taken = 0;
    while let Some(zone) = volume.take_zone(first) {
        assert!(u64::from(zone) < MEGABYTE / 1024);
        taken += 1024;
    }
    assert_eq!(taken, free, "every zone is given out");
}

#[test]
fn what_is_too_small_or_too_large_is_refused() {
    assert_eq!(
        file_capacity_bytes(4096, PARAMETERS),
        Err(MinixMkfsError::PartitionTooSmall(4))
    );
    let large = 64 * MEGABYTE;
    assert_eq!(
        file_capacity_bytes(large, PARAMETERS),
        Err(MinixMkfsError::PartitionTooLarge(65_536))
    );
    let room = file_capacity_bytes(large - 1024, PARAMETERS).unwrap();
    assert!(room > 60 * MEGABYTE && room < large, "{room}");
}
