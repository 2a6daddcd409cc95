//! Tails of fragments, holes, truncation, and what it has to read.

use super::super::*;
use super::writer::UntimedWriter;
use super::{assert_sound, eagle_g, make};

fn file(block_bytes: u32) -> (UntimedWriter, InodeNumber) {
    let mut writer = UntimedWriter::new(make(eagle_g(), block_bytes, 4));
    let file = writer
        .create_file(FastFileSystem::ROOT_INODE, "file")
        .expect("space");
    (writer, file)
}

#[test]
fn a_tail_grows_in_place_and_becomes_a_block() {
    let (mut writer, file) = file(8192);
    let mut last = None;
    for size in (512..=8192).step_by(512) {
        writer.write_range(file, size - 512, 512).expect("space");
        assert_eq!(
            writer.file_system.allocated_fragment_count(file),
            size.div_ceil(1024) as u32
        );
        let address = writer.file_system.block_address(file, 0);
        // It starts in what the summary array leaves of its block, 7 fragments.
        if last.is_some() && size <= 7 * 1024 {
            assert_eq!(address, last, "it grows in place");
        } else if size > 7 * 1024 {
            assert_eq!(
                address.map(|address| address.0 % 8),
                Some(0),
                "a whole block"
            );
        }
        last = address;
        assert_sound(&writer.file_system);
    }
    // A block behind a tail of fragments makes it whole first.
    writer.truncate_file(file, 3000).expect("shorter");
    assert_eq!(writer.file_system.allocated_fragment_count(file), 3);
    writer.write_range(file, 5 * 8192, 100).expect("space");
    assert_eq!(writer.file_system.allocated_fragment_count(file), 8 + 1);
    assert_eq!(writer.file_system.block_address(file, 3), None, "a hole");
    assert_sound(&writer.file_system);
}

#[test]
fn a_hemmed_in_tail_moves() {
    let (mut writer, first) = file(8192);
    let second = writer
        .create_file(FastFileSystem::ROOT_INODE, "second")
        .expect("space");
    writer.write_range(first, 0, 1024).expect("space");
    writer.write_range(second, 0, 1024).expect("space");
    let before = writer.file_system.block_address(first, 0).expect("a block");
    let other = writer
        .file_system
        .block_address(second, 0)
        .expect("a block");
    assert_eq!(other.0, before.0 + 1, "in the same broken block");
    writer.write_range(first, 1024, 1024).expect("space");
    assert_ne!(writer.file_system.block_address(first, 0), Some(before));
    assert_sound(&writer.file_system);
}

/// Half a block first and then the other half (write_4096 on 8 KB blocks)
/// lands where whole blocks land.
#[test]
fn halves_land_like_whole_blocks() {
    let place = |bytes: u64| {
        let (mut writer, file) = file(8192);
        for offset in (0..2 << 20).step_by(bytes as usize) {
            writer.write_range(file, offset, bytes).expect("space");
        }
        let addresses: Vec<_> = (0..256)
            .map(|lbn| writer.file_system.block_address(file, lbn))
            .collect();
        assert_sound(&writer.file_system);
        addresses
    };
    // The rest of a block that is broken for the first halves is no other
    // file's, so that the second halves extend in place.
    assert_eq!(place(4096)[1..], place(8192)[1..]);
}

#[test]
fn steps_of_removing_a_large_file() {
    let (mut writer, file) = file(4096);
    writer.write_range(file, 0, 8192 * 1024).expect("space");
    let mut steps = Vec::new();
    let mut file_system = writer.file_system.clone();
    file_system.release_blocks(file, 0, &mut steps);
    assert_eq!(steps[0], ReleaseStep::WriteInode);
    let indirect = |step: &&ReleaseStep| matches!(step, ReleaseStep::ReleaseIndirectBlock { .. });
    assert_eq!(steps.iter().filter(indirect).count(), 3);
    // The double tree goes first, then the single one, then the direct blocks.
    assert!(matches!(
        steps[1],
        ReleaseStep::ReleaseIndirectBlock {
            kept_pointers: 0,
            ..
        }
    ));
    assert!(matches!(
        steps[2],
        ReleaseStep::ReleaseIndirectBlock {
            kept_pointers: 0,
            ..
        }
    ));
    let freed = steps
        .iter()
        .filter(|step| matches!(step, ReleaseStep::FreeFragments { .. }))
        .count();
    assert_eq!(freed, 2048 + 3);
    assert!(
        file_system.check_consistency().is_err(),
        "blocks that nobody has until they are freed"
    );
    for step in steps {
        if let ReleaseStep::FreeFragments { address, fragments } = step {
            file_system.free_fragments(address, fragments);
        }
    }
    assert_sound(&file_system);
}

#[test]
fn cuts_at_every_kind_of_place() {
    let block = 4096;
    let cuts = [
        (1 << 20) * 8,
        block * 2000,
        block * 1500 + 1,
        block * 1037,
        block * 1036,
        block * 1036 - 1,
        block * 1000 + 5,
        block * 13,
        block * 12 + 1,
        block * 12,
        block * 12 - 1,
        block * 11 + 1,
        block * 5 + 1025,
        4097,
        4096,
        1025,
        1024,
        1,
        0,
    ];
    for first in 0..cuts.len() {
        let (mut writer, file) = file(4096);
        writer.write_range(file, 0, 8192 * 1024).expect("space");
        for &cut in &cuts[first..] {
            writer.truncate_file(file, cut).expect("shorter");
            assert_eq!(writer.file_system.size_bytes(file), cut);
            assert_sound(&writer.file_system);
        }
        assert_eq!(writer.file_system.allocated_fragment_count(file), 0);
    }
}

#[test]
fn a_longer_file_has_holes() {
    let (mut writer, file) = file(8192);
    writer.write_range(file, 0, 100).expect("space");
    writer.truncate_file(file, 3000).expect("space");
    assert_eq!(writer.file_system.allocated_fragment_count(file), 3);
    writer.truncate_file(file, 100 * 8192 + 1).expect("space");
    assert_eq!(writer.file_system.allocated_fragment_count(file), 8);
    assert_sound(&writer.file_system);
    // Into a hole, then a write in the part of it that is left.
    writer
        .truncate_file(file, 3 * 8192 + 5000)
        .expect("shorter");
    writer.write_range(file, 3 * 8192, 10).expect("space");
    assert_eq!(writer.file_system.fragment_count_of_block(file, 3), 5);
    assert_sound(&writer.file_system);
}

#[test]
fn far_blocks_and_the_largest_file() {
    let (mut writer, file) = file(4096);
    let max = writer.file_system.file_size_bytes_max();
    assert_eq!(max, (12 + 1024 + 1024 * 1024) * 4096);
    writer.write_range(file, max - 10, 10).expect("space");
    assert_eq!(writer.file_system.allocated_fragment_count(file), 3 * 4);
    assert_sound(&writer.file_system);
    let superblock = writer.file_system.superblock();
    assert_eq!(
        writer
            .file_system
            .locate_block(superblock.block_index_at(max)),
        None
    );
    assert_eq!(
        writer.file_system.locate_block(11),
        Some(BlockPath::DirectPointer { index: 11 })
    );
    assert_eq!(
        writer.file_system.locate_block(12),
        Some(BlockPath::SingleIndirect { index: 0 })
    );
    assert_eq!(
        writer.file_system.locate_block(1036),
        Some(BlockPath::DoubleIndirect { outer: 0, inner: 0 })
    );
    assert_eq!(
        writer.file_system.locate_block(2060),
        Some(BlockPath::DoubleIndirect { outer: 1, inner: 0 })
    );
    writer.unlink_name(FastFileSystem::ROOT_INODE, "file");
    assert_sound(&writer.file_system);
}
