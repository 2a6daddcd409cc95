//! Reads without a fixed end: transfers that grow and shrink while they are in progress, and
//! full-track reads that start at any sector.

use super::{ArmMove, CommandedTransfer, Mechanism};
use diskperf_device::disk::layout::SectorPosition;
use diskperf_sim::Time;

/// Full-track read, which starts at the first sector that passes.
#[derive(Clone, Debug)]
pub struct TrackRead {
    /// Arm movement to the track of a full-track read.
    pub move_to_track: ArmMove,
    /// Start of the first sector of a full-track read.
    pub read_start: Time,
    /// Sectors of the track with the time when each has passed, in the order of passing.
    pub sector_end_times: Vec<(u64, Time)>,
}

/// Time after the start of a sector in which a controller that accepts any sector of a track can
/// still catch it. The header is preceded by a preamble of some bytes.
const TRACK_READ_PREAMBLE: Time = Time(1_000);

impl Mechanism {
    /// Extends the transfer in progress to `count` sectors in all. Returns the time when each new
    /// sector will have passed.
    ///
    /// # Panics
    ///
    /// If there was no transfer.
    pub fn extend_transfer(&mut self, count: u32) -> Vec<Time> {
        let last = self
            .last_commanded_transfer
            .expect("a transfer was commanded");
        let old = self.evaluate_all_sectors(last);
        let longer = CommandedTransfer {
            transfer_sectors: count,
            ..last
        };
        let mut end_times =
            Vec::with_capacity(count.saturating_sub(last.transfer_sectors) as usize);
        let (new, run) = self.evaluate_sectors_after(longer, last.transfer_sectors, &mut end_times);
        old.subtract_from_busy(&mut self.busy_times);
        new.add_to_busy(&mut self.busy_times);
        self.busy_times.transferred_bytes = self.busy_times.transferred_bytes
            + self.bytes_of_sectors(count)
            - self.bytes_of_sectors(last.transfer_sectors);
        self.last_operation_duration = new.total_time();
        self.last_commanded_transfer = Some(CommandedTransfer {
            transfer_end: last.commanded_time + new.total_time(),
            computed_times: Some((new, run)),
            ..longer
        });
        end_times
    }

    /// Reads the whole track of a sector, starting with the first sector that passes.
    pub fn read_track(&mut self, now: Time, sector: u64) -> TrackRead {
        let place = self.mechanics.geometry.locate_sector(sector);
        let to_track = self.arm_move_to_track(place.cylinder, place.head, false);
        let arrived = now + to_track.total_time();
        let from = Time(arrived.0.saturating_sub(TRACK_READ_PREAMBLE.0));
        let mut sectors = Vec::with_capacity(place.sectors_per_track as usize);
        let mut starts_at = Time(u64::MAX);
        self.for_each_track_sector(sector, |sector, place, step| {
            let start = place.end_angle(step);
            let comes = from + self.spindle.time_until(from, start);
            let passes = comes + self.spindle.passing_times(comes, start, place.sector_angle);
            starts_at = starts_at.min(comes.max(arrived));
            sectors.push((sector, passes));
        });
        sort_by_passing_time(&mut sectors);
        let ends_at = sectors.last().map_or(arrived, |(_, passes)| *passes);
        self.cylinder = place.cylinder;
        self.head = place.head;
        self.busy_times.positioning_time += to_track.total_time();
        self.busy_times.rotational_latency_time += starts_at - arrived;
        self.busy_times.transfer_time += ends_at - starts_at;
        self.busy_times.transferred_bytes += self.bytes_of_sectors(sectors.len() as u32);
        self.busy_times.transfer_count += 1;
        self.last_operation_duration = ends_at - now;
        self.last_commanded_transfer = Some(CommandedTransfer {
            commanded_time: now,
            sector,
            transfer_sectors: sectors.len() as u32,
            is_write: false,
            cylinder: place.cylinder,
            head: place.head,
            transfer_end: ends_at,
            computed_times: None,
        });
        TrackRead {
            move_to_track: to_track,
            read_start: starts_at,
            sector_end_times: sectors,
        }
    }

    /// Passes each sector of a run of consecutive sectors on the track of `sector` to `visit`: its
    /// number, the location of its run, and its distance from the start of the run in slots.
    fn for_each_track_sector(&self, sector: u64, mut visit: impl FnMut(u64, &SectorPosition, u32)) {
        let geometry = &self.mechanics.geometry;
        let track = geometry.locate_sector(sector);
        let on_track = |place: &SectorPosition| place.is_on_same_track(&track);
        let before = (0..sector).rev();
        let mut next = before
            .take_while(|sector| on_track(&geometry.locate_sector(*sector)))
            .last()
            .unwrap_or(sector);
        while next < geometry.sector_count() {
            let run = geometry.run_from_sector(next);
            if !on_track(&run.position) {
                return;
            }
            for step in 0..run.sector_count {
                visit(next + u64::from(step), &run.position, step);
            }
            next += u64::from(run.sector_count);
        }
    }
}

/// Sorts the sectors of a track in the order of passing, and by number if two pass at the same
/// time. Usually only the start must be found.
fn sort_by_passing_time(sectors: &mut [(u64, Time)]) {
    let key = |(sector, passes): &(u64, Time)| (*passes, *sector);
    let numbered = sectors.iter().enumerate();
    let first = numbered.min_by_key(|(_, one)| key(one));
    if let Some((first, _)) = first {
        sectors.rotate_left(first);
    }
    if !sectors.is_sorted_by_key(key) {
        sectors.sort_unstable_by_key(key);
    }
}
