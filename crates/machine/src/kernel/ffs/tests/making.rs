//! newfs: what it makes and what it refuses.

use super::super::*;
use super::{assert_sound, eagle_g, ra81_h, small_drive};

#[test]
fn eagle_g_is_laid_out_as_mkfs_does() {
    let file_system =
        FastFileSystem::make_file_system(eagle_g(), NewfsParameters::bsd42_defaults(8192, 1024))
            .expect("possible");
    let superblock = file_system.superblock();
    assert_eq!(superblock.group_count(), 29);
    assert_eq!(superblock.inodes_per_group(), 2048);
    assert_eq!(superblock.fragments_per_group(), 7680);
    assert_eq!(superblock.size_fragments(), 216_384);
    assert_eq!(superblock.cycle_cylinders(), 1);
    assert_eq!(superblock.superblock_address(), FragmentAddress(8));
    // Group 0: 16 KB boot and superblock, 8 KB copy, map, 256 KB inodes.
    assert_eq!(
        superblock.superblock_copy_address(GroupIndex(0)),
        FragmentAddress(16)
    );
    assert_eq!(
        superblock.group_map_address(GroupIndex(0)),
        FragmentAddress(24)
    );
    assert_eq!(superblock.inodes_start(GroupIndex(0)), FragmentAddress(32));
    assert_eq!(superblock.data_start(GroupIndex(0)), FragmentAddress(288));
    assert_eq!(superblock.summary_address(), FragmentAddress(288));
    assert_eq!(superblock.summary_bytes(), 1024);
    // Each next group one track further on, 32 groups around.
    assert_eq!(
        superblock.group_map_address(GroupIndex(3)),
        FragmentAddress(3 * 7680 + 3 * 24 + 24)
    );
    assert_eq!(superblock.group_map_bytes(), 2048);
    assert_eq!(
        superblock.inode_block_address(InodeNumber(2048 + 64)),
        FragmentAddress(7680 + 24 + 32 + 8)
    );
    let summary = assert_sound(&file_system);
    assert_eq!((summary.file_count, summary.directory_count), (0, 2));
    assert_eq!(summary.used_fragment_count, 9);
    // Group 2: all but superblock copy, map and inodes is data.
    assert_eq!(
        file_system.group_summary(GroupIndex(2)).free_block_count,
        960 - 1 - 1 - 32
    );
}

#[test]
fn ra81_repeats_after_its_cycle() {
    for (block_bytes, cycle) in [(8192, 8), (4096, 4)] {
        let parameters = NewfsParameters::bsd42_defaults(block_bytes, 1024);
        let file_system = FastFileSystem::make_file_system(ra81_h(), parameters).expect("possible");
        assert_eq!(file_system.superblock().cycle_cylinders(), cycle);
        assert_eq!(file_system.superblock().group_count(), 67);
        assert_sound(&file_system);
        let superblock = file_system.superblock();
        let base = superblock.group_base(GroupIndex(5));
        assert_eq!(
            superblock.first_sector_of_fragment(base)
                % superblock.geometry().sectors_per_cylinder(),
            0
        );
    }
}

#[test]
fn odd_shapes_are_sound() {
    let fujitsu_2344 = DiskLabel {
        sector_bytes: 512,
        sectors_per_track: 67,
        tracks_per_cylinder: 27,
        partition_sectors: 67 * 27 * 620 - 5,
        revolutions_per_second: 60,
    };
    let one_head = DiskLabel {
        tracks_per_cylinder: 1,
        partition_sectors: 9000,
        ..small_drive()
    };
    let shapes = [
        (fujitsu_2344, 8192, 1024, 16),
        (fujitsu_2344, 4096, 4096, 8),
        (one_head, 4096, 512, 32),
        (small_drive(), 4096, 512, 16),
        (small_drive(), 8192, 8192, 16),
        (small_drive(), 4096, 2048, 5),
        (small_drive(), 65536, 8192, 32),
    ];
    for (geometry, block_bytes, fragment_bytes, cylinders_per_group) in shapes {
        let parameters = NewfsParameters {
            cylinders_per_group,
            ..NewfsParameters::bsd42_defaults(block_bytes, fragment_bytes)
        };
        match FastFileSystem::make_file_system(geometry, parameters) {
            Ok(file_system) => assert_sound(&file_system),
            Err(error) => panic!("{geometry:?} {parameters:?}: {error}"),
        };
    }
}

/// A last group that its own metadata would fill is left out.
#[test]
fn a_useless_last_group_is_dropped() {
    let whole = DiskLabel {
        partition_sectors: 960 * 32,
        ..eagle_g()
    };
    let more = DiskLabel {
        partition_sectors: 960 * 32 + 500,
        ..eagle_g()
    };
    let parameters = NewfsParameters::bsd42_defaults(8192, 1024);
    let whole = FastFileSystem::make_file_system(whole, parameters).expect("possible");
    let more = FastFileSystem::make_file_system(more, parameters).expect("possible");
    assert_eq!(whole.superblock().group_count(), 2);
    assert_eq!(more.superblock().group_count(), 2);
    assert_eq!(
        more.superblock().size_fragments(),
        whole.superblock().size_fragments()
    );
    assert_sound(&more);
}

#[test]
fn impossible_file_systems_say_why() {
    let good = NewfsParameters::bsd42_defaults(8192, 1024);
    let eagle = eagle_g();
    let refused = [
        (
            DiskLabel {
                tracks_per_cylinder: 0,
                ..eagle
            },
            good,
            "tracks_per_cylinder is 0",
        ),
        (
            DiskLabel {
                sectors_per_track: 0,
                ..eagle
            },
            good,
            "sectors_per_track is 0",
        ),
        (
            DiskLabel {
                revolutions_per_second: 0,
                ..eagle
            },
            good,
            "revolutions_per_second is 0",
        ),
        (
            DiskLabel {
                partition_sectors: 600,
                ..eagle
            },
            good,
            "partition_sectors is 600",
        ),
        (
            DiskLabel {
                sector_bytes: 2048,
                ..eagle
            },
            good,
            "multiple of the sector's 2048",
        ),
        (
            DiskLabel {
                sectors_per_track: u32::MAX,
                ..eagle
            },
            good,
            "a cylinder has",
        ),
        (
            eagle,
            NewfsParameters {
                block_bytes: 6000,
                ..good
            },
            "block_bytes is 6000",
        ),
        (
            eagle,
            NewfsParameters {
                block_bytes: 2048,
                ..good
            },
            "allowed are 4096",
        ),
        (
            eagle,
            NewfsParameters {
                fragment_bytes: 16384,
                ..good
            },
            "fragment_bytes is 16384",
        ),
        (
            eagle,
            NewfsParameters {
                fragment_bytes: 512,
                ..good
            },
            "fragment_bytes is 512",
        ),
        (
            eagle,
            NewfsParameters {
                fragment_bytes: 0,
                ..good
            },
            "fragment_bytes is 0",
        ),
        (
            eagle,
            NewfsParameters {
                cylinders_per_group: 0,
                ..good
            },
            "cylinders_per_group is 0",
        ),
        (
            eagle,
            NewfsParameters {
                cylinders_per_group: 33,
                ..good
            },
            "1 to 32",
        ),
        (
            ra81_h(),
            NewfsParameters {
                cylinders_per_group: 12,
                ..good
            },
            "a multiple of 8",
        ),
        (
            eagle,
            NewfsParameters {
                rotdelay_ms: 16,
                ..good
            },
            "one revolution is 15 ms",
        ),
        (
            eagle,
            NewfsParameters {
                maxcontig_blocks: 0,
                ..good
            },
            "maxcontig_blocks is 0",
        ),
        (
            eagle,
            NewfsParameters {
                maxbpg_blocks: 0,
                ..good
            },
            "maxbpg_blocks is 0",
        ),
        (
            eagle,
            NewfsParameters {
                minfree_percent: 100,
                ..good
            },
            "minfree_percent is 100",
        ),
        (
            eagle,
            NewfsParameters {
                bytes_per_inode: 0,
                ..good
            },
            "bytes_per_inode is 0",
        ),
        (
            small_drive(),
            NewfsParameters {
                cylinders_per_group: 1,
                ..good
            },
            "more cylinders_per_group",
        ),
    ];
    for (geometry, parameters, part) in refused {
        let error = FastFileSystem::make_file_system(geometry, parameters).expect_err(part);
        assert!(error.to_string().contains(part), "{error}");
    }
}

/// No numbers at all make newfs panic.
#[test]
fn no_numbers_panic() {
    let mut random = super::Random(0x5eed);
    let odd = [
        0,
        1,
        2,
        3,
        7,
        31,
        48,
        512,
        513,
        1000,
        4096,
        8192,
        65536,
        1 << 20,
        1 << 31,
        u32::MAX,
    ];
    let mut made = 0;
    for _ in 0..2000 {
        let mut pick = || match random.below(3) {
            0 => random.below(64) as u32,
            _ => odd[random.below(odd.len() as u64) as usize],
        };
        let mut or = |usual: u32| [usual, usual, usual, pick()][pick() as usize % 4];
        let geometry = DiskLabel {
            sector_bytes: or(512),
            sectors_per_track: or(32) % 2000,
            tracks_per_cylinder: or(5),
            partition_sectors: or(40_000) % 200_000,
            revolutions_per_second: or(60),
        };
        let parameters = NewfsParameters {
            block_bytes: or(4096),
            fragment_bytes: or(1024),
            rotdelay_ms: or(4),
            maxcontig_blocks: or(1),
            maxbpg_blocks: or(256),
            cylinders_per_group: or(16),
            minfree_percent: or(10),
            bytes_per_inode: or(2048),
        };
        match FastFileSystem::make_file_system(geometry, parameters) {
            Ok(file_system) => {
                assert_sound(&file_system);
                made += 1;
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert!(made > 50, "some are possible: {made}");
}
