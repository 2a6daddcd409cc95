use super::*;

const KIB: u64 = 1024;

fn region(offset: u64, length: u64, file: u64) -> FileRegion {
    FileRegion {
        offset_bytes: offset * KIB,
        length_bytes: length * KIB,
        file_bytes: file * KIB,
    }
}

fn first(region: FileRegion, skip: i64, count: usize) -> Vec<u64> {
    let offsets = SequentialOffsets::new(region, 4 * KIB, skip * 1024).take(count);
    offsets.map(|offset| offset / KIB).collect()
}

#[test]
fn gaps_end_or_go_round_by_fios_arithmetic() {
    let all = region(0, 64, 64);
    assert_eq!(first(all, 0, 99).len(), 16);
    assert_eq!(first(all, 4, 10), [0, 8, 16, 24, 32, 40, 48, 56, 0, 8]);
    assert_eq!(first(all, 8, 99), [0, 12, 24, 36, 48, 60]);
    assert_eq!(first(all, -8, 5), [0, 56, 52, 48, 44]);
    assert_eq!(first(all, -8, 17)[14..], [4, 0, 56]);
    assert_eq!(first(region(8, 64, 72), -8, 14)[12..], [8, 64]);
    assert_eq!(first(region(8, 56, 64), 8, 99), [8, 20, 32, 44, 56]);
}

#[test]
fn a_last_part_of_a_block_is_never_touched() {
    assert_eq!(first(region(0, 30, 30), 0, 99).len(), 7);
    assert_eq!(region(0, 30, 30).blocks(4 * KIB), 7);
    assert_eq!(region(4, 30, 16).blocks(4 * KIB), 3);
    assert_eq!(region(0, 30, 30).blocks(0), 0);
}

#[test]
fn zones_leave_gaps() {
    let zones = Zones {
        mode: ZoneMode::Strided,
        size_bytes: 8 * KIB,
        range_bytes: 0,
        skip_bytes: 8 * KIB,
    };
    let strided = StridedOffsets::new(region(0, 64, 64), 4 * KIB, zones).expect("zones");
    let offsets: Vec<u64> = strided.take(10).map(|offset| offset / KIB).collect();
    assert_eq!(offsets, [0, 4, 16, 20, 32, 36, 48, 52, 0, 4]);
    assert!(StridedOffsets::new(region(0, 64, 64), 4 * KIB, Zones::default()).is_none());
}

#[test]
fn extreme_numbers_end() {
    for skip in [i64::MIN, i64::MAX, -1, 1] {
        for (offset, length, file) in [(0, u64::MAX, u64::MAX), (u64::MAX, 1, u64::MAX), (0, 0, 0)]
        {
            let region = FileRegion {
                offset_bytes: offset,
                length_bytes: length,
                file_bytes: file,
            };
            for block in [0, 1, 4096, u64::MAX] {
                let count = SequentialOffsets::new(region, block, skip)
                    .take(100)
                    .count();
                assert!(count <= 100, "{region:?} {block} {skip}");
            }
        }
    }
}
