use std::ops::Range;

use proptest::prelude::*;

use super::Geometry;
use crate::ext4::options::Ext4MakeOptions;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

fn make_options(block_bytes: Option<u32>) -> Ext4MakeOptions {
    Ext4MakeOptions {
        block_bytes,
        ..Ext4MakeOptions::default()
    }
}

fn layout(bytes: u64, block_bytes: Option<u32>) -> Geometry {
    Geometry::new(bytes, &make_options(block_bytes)).expect("it is modelled")
}

#[test]
fn mke2fs_lays_out_512_mib_as_on_the_device() {
    let large = layout(512 * MIB, None);
    assert_eq!(large.used_by_mkfs().next(), Some(0..2127));
    assert_eq!(large.journal.first(), Some(&(65536..69632)));
    assert_eq!((large.groups, large.inodes_per_group), (4, 8192));
    let small = layout(512 * MIB, Some(1024));
    assert_eq!(small.used_by_mkfs().next(), Some(1..2356));
    assert_eq!(small.journal.first(), Some(&(139_265..155_649)));
}

#[test]
fn block_size_inodes_and_journal_grow_with_the_device() {
    for (bytes, block_bytes, inode_bytes, journal_mib) in [
        (2 * MIB, 1024, 8192, 1),
        (100 * MIB, 1024, 4096, 4),
        (511 * MIB, 1024, 4096, 8),
        (512 * MIB, 4096, 16384, 16),
        (2 * GIB, 4096, 16384, 64),
        (20 * GIB, 4096, 16384, 128),
        (100 * GIB, 4096, 16384, 512),
        (TIB, 4096, 16384, 1024),
        (5 * TIB, 4096, 32768, 1024),
    ] {
        let geometry = layout(bytes, None);
        assert_eq!(geometry.block_bytes, block_bytes, "{bytes}");
        let inodes = geometry.inodes_per_group * geometry.groups;
        let rounding = 16 * geometry.groups;
        assert!(
            inodes.abs_diff(bytes / inode_bytes) <= rounding,
            "{bytes}: {inodes} inodes"
        );
        let journal: u64 = geometry.journal.iter().map(|run| run.end - run.start).sum();
        assert_eq!(journal * block_bytes, journal_mib * MIB, "{bytes}");
    }
}

#[test]
fn fast_commits_add_a_64th_to_the_journal() {
    let options = Ext4MakeOptions {
        has_fast_commit: true,
        ..make_options(None)
    };
    let geometry = Geometry::new(512 * MIB, &options).expect("it is modelled");
    // dumpe2fs: "Total journal blocks: 4160", "Fast commit length: 64".
    assert_eq!(geometry.journal.first(), Some(&(65536..69696)));
    assert_eq!(geometry.fast_commit_blocks, 64);
}

#[test]
fn devices_without_a_layout_are_refused_by_name() {
    for (bytes, block_bytes) in [
        (0, None),
        (1024, Some(1024)),
        (60 << 10, None),
        (16 * TIB, None),
        (u64::MAX, None),
        (4 * TIB, Some(1024)),
        (GIB, Some(0)),
        (GIB, Some(8192)),
    ] {
        let refused = Geometry::new(bytes, &make_options(block_bytes)).expect_err("no layout");
        assert!(
            refused.to_string().contains(&bytes.to_string()),
            "{refused:?}"
        );
    }
}

fn sizes() -> impl Strategy<Value = u64> {
    (20..44_u32, any::<u64>()).prop_map(|(bits, low)| (1 << bits) | (low & ((1 << bits) - 1)))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    #[test]
    fn each_size_has_a_layout_inside_the_device_or_is_refused(
        bytes in sizes(),
        block_bytes in prop::sample::select(vec![None, Some(1024), Some(2048), Some(4096)]),
        has_fast_commit in any::<bool>(),
    ) {
        let options = Ext4MakeOptions { has_fast_commit, ..make_options(block_bytes) };
        let Ok(geometry) = Geometry::new(bytes, &options) else {
            // Descriptors of more than a group, or too many blocks.
            prop_assert!(bytes >= 64 * GIB, "{} bytes are refused", bytes);
            return Ok(());
        };
        prop_assert!(geometry.blocks * geometry.block_bytes <= bytes);
        let ranges: Vec<Range<u64>> = geometry.used_by_mkfs().collect();
        prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
        prop_assert!(ranges.iter().all(|range| range.end <= geometry.blocks));
        for group in [0, geometry.groups / 2, geometry.groups - 1] {
            let inode = group * geometry.inodes_per_group + 1;
            let next_block = geometry.inode_block(inode + geometry.inodes_per_block - 1) + 1;
            prop_assert_eq!(geometry.inode_block(inode + geometry.inodes_per_block), next_block);
            for block in [
                geometry.block_bitmap(group),
                geometry.inode_bitmap(group),
                geometry.inode_block(inode),
                geometry.inode_block(inode + geometry.inodes_per_group - 1),
            ] {
                prop_assert!(ranges.iter().any(|range| range.contains(&block)));
                prop_assert!(geometry.kind(block).is_some());
            }
        }
    }
}
