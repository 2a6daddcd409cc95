//! The machine lays files out as the allocator alone does. This fails when
//! the kernel asks it for blocks in another order, or forgets a preference.

use super::*;

/// Of an 8 MB file in a fresh directory: blocks that follow in their cylinder
/// with the gap of the layout, with another one, in the next cylinder, and
/// farther away.
fn moves(system: &str, block_bytes: &str, rotdelay_ms: &str, gap: u64) -> (u32, u32, u32, u32) {
    let settings = [
        ("filesystem.block_bytes", block_bytes),
        ("filesystem.rotdelay_ms", rotdelay_ms),
    ];
    let specification = fast(system, &settings);
    let machine = machine(&specification);
    run(&machine, async |session| {
        session.mkdir("/mnt0/new").await.expect("a directory");
        make(session, "/mnt0/new/file", 1024).await;
    });
    machine.check_file_system(0).expect("a sound file system");
    let geometry = &specification.drives[0]
        .mechanism_specification()
        .expect("a disk")
        .mechanics
        .geometry;
    let block_sectors = block_bytes.parse::<u64>().expect("a number") / 512;
    let mut moves = (0, 0, 0, 0);
    for pair in sectors(&machine, &specification, 0).windows(2) {
        let cylinder = |sector: u64| geometry.locate_sector(sector).cylinder;
        match cylinder(pair[0]).abs_diff(cylinder(pair[1])) {
            0 if pair[1] == pair[0] + block_sectors + gap => moves.0 += 1,
            0 => moves.1 += 1,
            1 => moves.2 += 1,
            _ => moves.3 += 1,
        }
    }
    moves
}

/// The counts are those of the allocator's own tests, which hold them against
/// the source of 1983.
#[test]
fn blocks_lie_where_the_allocator_puts_them() {
    assert_eq!(moves(SC780, "8192", "2", 16), (977, 10, 33, 3));
    assert_eq!(moves(SC780, "8192", "4", 16), (977, 10, 33, 3));
    assert_eq!(moves(SC780, "4096", "4", 16), (1978, 12, 50, 7));
    assert_eq!(moves(SC780, "4096", "2", 8), (1996, 11, 33, 7));
    assert_eq!(moves(UDA50, "8192", "4", 16), (958, 15, 46, 4));
    assert_eq!(moves(UDA50, "4096", "4", 16), (1934, 41, 64, 8));
}

#[test]
fn a_longer_rotational_delay_is_a_longer_gap() {
    for (rotdelay_ms, gap) in [("0", 0), ("5", 16), ("6", 32), ("10", 32), ("11", 48)] {
        let (with_gap, ..) = moves(SC780, "8192", rotdelay_ms, gap);
        assert!(with_gap > 900, "{with_gap} of 1023 at {rotdelay_ms} ms");
    }
}
