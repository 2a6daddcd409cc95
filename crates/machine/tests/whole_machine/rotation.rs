//! How a machine whose processor is no limit runs: at the rate of its layout,
//! to the slot. These fail when a request loses or gains time anywhere
//! between the system call and the sector, and when a deadline costs anything
//! but the revolution that it stands for.

use super::*;
use diskperf_machine::hardware::mechanism::Mechanism;

/// What the processor of such a machine adds to a request, at most: some
/// thousand instructions at 100000 times the speed of a VAX.
const SLACK_NS: u64 = 3_000;

/// A machine that searches with this lead, always.
fn searching(lead: &str) -> MachineSpecification {
    let settings = [
        LARGE[0],
        ("driver.search_lead_sectors", lead),
        ("driver.position_window_sectors", "0"),
        ("kernel.read_ahead_blocks", "0"),
    ];
    fast(SC780, &settings)
}

/// A machine with an adaptor for each drive, which need not search.
fn direct(settings: &[(&str, &str)]) -> MachineSpecification {
    let alone = [
        ("kernel.read_ahead_blocks", "0"),
        ("filesystem.rotdelay_ms", "4"),
    ];
    fast(SC750, &[&alone, settings].concat())
}

struct Reading {
    specification: MachineSpecification,
    /// The sector of each block.
    sectors: Vec<u64>,
    /// When each block had been read.
    moments: Vec<Time>,
}

/// Reads a file of so many blocks of 8 KB, one by one.
fn reading(specification: MachineSpecification, blocks: usize) -> Reading {
    let machine = machine(&specification);
    let moments = run(&machine, async move |session| {
        make(session, "/mnt0/file", blocks).await;
        read(session, "/mnt0/file").await
    });
    let sectors = sectors(&machine, &specification, 0);
    assert_eq!(moments.len(), sectors.len());
    Reading {
        specification,
        sectors,
        moments,
    }
}

impl Reading {
    fn drive(&self) -> Mechanism {
        let disk = self.specification.drives[0]
            .mechanism_specification()
            .expect("a disk");
        disk.new_mechanism()
    }

    fn period(&self) -> Time {
        self.drive().spindle().revolution_time()
    }

    /// How long each block but the first took.
    fn spans(&self) -> Vec<u64> {
        let pairs = self.moments.windows(2);
        pairs.map(|pair| (pair[1] - pair[0]).0).collect()
    }

    /// Asserts that each block took what the way from the one before it
    /// takes, from address to address; with a search for `lead` sectors
    /// before the block, if there is one.
    fn assert_way(&self, lead: Option<u32>) {
        let mut drive = self.drive();
        drive.transfer_sectors(Time::ZERO, self.sectors[0], 16, false);
        for block in 1..self.sectors.len() {
            let (from, sector) = (self.moments[block - 1], self.sectors[block]);
            let place = drive.geometry().locate_sector(sector);
            let mut at = from;
            if let Some(lead) = lead {
                at += drive.seek_to_cylinder(place.cylinder, false).total_time();
                at += drive.time_until_slot(
                    at,
                    (place.sector + place.sectors_per_track - lead) % place.sectors_per_track,
                );
            }
            at += drive.transfer_sectors(at, sector, 16, false).total_time();
            // The first block behind the direct ones needs the indirect block
            // as well.
            let expected = (at - from).0;
            let took = (self.moments[block] - from).0;
            let right = took.abs_diff(expected) < SLACK_NS;
            assert!(
                right || block == 12,
                "block {block} took {took} ns instead of {expected}"
            );
        }
    }

    /// Of blocks that follow in their cylinder with this many sectors between
    /// them: how long each took, in revolutions.
    fn revolutions_after_a_gap(&self, gap: u64) -> Vec<f64> {
        let geometry = &self.specification.drives[0]
            .mechanism_specification()
            .expect("a disk")
            .mechanics
            .geometry;
        let cylinder = |block: usize| geometry.locate_sector(self.sectors[block]).cylinder;
        let spans = self.spans();
        let follows = |block: &usize| {
            self.sectors[*block] == self.sectors[block - 1] + 16 + gap
                && cylinder(*block) == cylinder(block - 1)
        };
        let period = self.period().0 as f64;
        let blocks = (1..self.sectors.len())
            .filter(|block| *block != 12)
            .filter(follows);
        blocks
            .map(|block| spans[block - 1] as f64 / period)
            .collect()
    }
}

#[track_caller]
fn assert_all(revolutions: &[f64], expected: f64) {
    assert!(revolutions.len() > 200, "{}", revolutions.len());
    for turned in revolutions {
        assert!(
            (turned - expected).abs() < 1e-3,
            "{turned} and not {expected} revolutions"
        );
    }
}

#[test]
fn reads_run_at_the_spacing_of_the_layout() {
    // 16 sectors of data and 16 of gap, on tracks of 48; over all 1023 gaps.
    let alone = reading(direct(&[]), 1024);
    alone.assert_way(None);
    assert_all(&alone.revolutions_after_a_gap(16), 32.0 / 48.0);
    let searching = reading(searching("7"), 1024);
    searching.assert_way(Some(7));
    assert_all(&searching.revolutions_after_a_gap(16), 32.0 / 48.0);
}

#[test]
fn a_longer_rotational_delay_is_a_longer_spacing() {
    for (rotdelay_ms, gap) in [("5", 16), ("6", 32), ("10", 32)] {
        let reading = reading(direct(&[("filesystem.rotdelay_ms", rotdelay_ms)]), 400);
        reading.assert_way(None);
        assert_all(
            &reading.revolutions_after_a_gap(gap),
            (16 + gap) as f64 / 48.0,
        );
    }
    // Without a gap the next block is always just missed.
    let reading = reading(direct(&[("filesystem.rotdelay_ms", "0")]), 400);
    assert_all(&reading.revolutions_after_a_gap(0), 1.0 + 16.0 / 48.0);
}

#[test]
fn a_spindle_turns_the_spacing_into_time() {
    let mut times = Vec::new();
    for rpm in ["2400", "3600", "7200"] {
        let reading = reading(direct(&[("drive.spindle_rpm", rpm)]), 400);
        reading.assert_way(None);
        assert_all(&reading.revolutions_after_a_gap(16), 32.0 / 48.0);
        times.push(reading.period().0 * rpm.parse::<u64>().expect("a number"));
    }
    assert!(
        times
            .iter()
            .all(|time| time.abs_diff(60_000_000_000) < 10_000),
        "{times:?}"
    );
}

#[test]
fn interleave_stretches_a_block_over_its_slots() {
    let reading = reading(direct(&[("drive.interleave", "5")]), 300);
    reading.assert_way(None);
    // Sectors are 5 slots apart: the block takes 15 times 5 slots and one, and
    // the sector 32 later is 160 slots on, which comes by 36 slots after the
    // end of the block.
    assert_all(&reading.revolutions_after_a_gap(16), (76.0 + 36.0) / 48.0);
}

/// With a gap of 16 sectors, a lead of 15 leaves one sector to command the
/// search in; a lead of 17 is one sector more than the gap allows, and of 16
/// would need no time at all.
#[test]
fn a_lead_longer_than_the_gap_costs_a_revolution_for_each_block() {
    let within = reading(searching("15"), 400);
    within.assert_way(Some(15));
    assert_all(&within.revolutions_after_a_gap(16), 32.0 / 48.0);
    for lead in [16, 17, 30] {
        let beyond = reading(searching(&lead.to_string()), 400);
        beyond.assert_way(Some(lead));
        assert_all(&beyond.revolutions_after_a_gap(16), 1.0 + 32.0 / 48.0);
        let misses = beyond.revolutions_after_a_gap(16).len() as u64;
        let lost = beyond.spans().iter().sum::<u64>() - within.spans().iter().sum::<u64>();
        assert!(
            lost >= (misses - 1) * beyond.period().0,
            "{lost} ns for {misses} misses"
        );
    }
}

#[test]
fn a_longer_file_goes_on_where_the_shorter_one_ends() {
    let short = reading(direct(&[]), 300);
    let long = reading(direct(&[]), 600);
    assert_eq!(short.sectors[..], long.sectors[..300]);
    // From the second block on nothing hangs on when the reading started.
    let (one, other) = (short.spans(), long.spans());
    for block in (1..299).filter(|block| *block != 11) {
        assert!(
            one[block].abs_diff(other[block]) < SLACK_NS,
            "block {}",
            block + 1
        );
    }
}

/// A cache for whole files: without it the indirect block gets lost at times
/// and is read again, behind all that is queued.
const LARGE: [(&str, &str); 1] = [("host.memory_bytes", "268435456")];

/// The time from the first call of a rewrite until all is on the drive, and
/// the revolutions missed meanwhile.
fn rewrite(specification: &MachineSpecification, drives: usize) -> (Vec<Time>, u64) {
    let circumstances = RunConditions {
        volume_count: drives,
        phase_step: 1 << 30,
        ..RunConditions::default()
    };
    let machine = Machine::build(specification, circumstances);
    let path = |drive: usize| format!("/mnt{drive}/file");
    for drive in 0..drives {
        run(&machine, async move |session| {
            make(session, &path(drive), 1024).await
        });
    }
    let missed = |machine: &Machine| -> u64 {
        machine
            .statistics()
            .drive_statistics
            .iter()
            .map(|drive| drive.missed_revolution_count)
            .sum()
    };
    let before = missed(&machine);
    let times: Vec<_> = (0..drives)
        .map(|drive| {
            start(&machine, drive, async move |session: &mut Session| {
                let file = session
                    .open_path(&path(drive), WRITE)
                    .await
                    .expect("the file");
                let from = session.current_time();
                for _ in 0..1024 {
                    assert_eq!(session.write(file, &[8; BLOCK]).await, Ok(BLOCK));
                }
                session.flush_volume(drive as u32).await;
                session.current_time() - from
            })
        })
        .collect();
    machine.run_to_end().expect("the processes end");
    let times = times
        .iter()
        .map(|time| time.take().expect("it ended"))
        .collect();
    (times, missed(&machine) - before)
}

/// 8 KB blocks are rewritten at exactly the spacing of the layout: the way
/// over all 1023 gaps, as reckoned from the addresses.
#[test]
fn a_rewrite_runs_at_the_spacing_of_the_layout() {
    let specification = searching("7");
    let reading = reading(specification.clone(), 1024);
    let mut drive = reading.drive();
    let mut at = Time::ZERO;
    for sector in &reading.sectors {
        at += drive
            .seek_to_cylinder(drive.geometry().locate_sector(*sector).cylinder, true)
            .total_time();
        let place = drive.geometry().locate_sector(*sector);
        at += drive.time_until_slot(
            at,
            (place.sector + place.sectors_per_track - 7) % place.sectors_per_track,
        );
        at += drive.transfer_sectors(at, *sector, 16, true).total_time();
    }
    let (times, missed) = rewrite(&specification, 1);
    // The inode and where the drive stands at the start are all that differs.
    let most = at.0 + 6 * reading.period().0 + 70_000_000;
    let least = at.0 - 2 * reading.period().0 - 35_000_000;
    assert!(
        (least..most).contains(&times[0].0),
        "{} instead of {at}",
        times[0]
    );
    assert!(missed <= 2, "{missed} revolutions were missed");
}

#[test]
fn two_drives_on_adaptors_of_their_own_run_as_one() {
    let specification = fast(SC750, &LARGE);
    let (alone, _) = rewrite(&specification, 1);
    let (both, _) = rewrite(&specification, 2);
    for time in both {
        let share = time.0 as f64 / alone[0].0 as f64;
        assert!(
            (share - 1.0).abs() < 0.01,
            "{time} beside another, {} alone",
            alone[0]
        );
    }
}

/// On one adaptor they exclude each other while they transfer, a third of a
/// revolution of each block's two thirds; who is late waits a revolution.
#[test]
fn two_drives_on_one_adaptor_share_its_channel() {
    let specification = fast(SC780, &LARGE);
    let (alone, _) = rewrite(&specification, 1);
    let (both, _) = rewrite(&specification, 2);
    let slower = both.iter().max().expect("two").0 as f64 / alone[0].0 as f64;
    assert!((1.0..2.5).contains(&slower), "{slower}");
}
