//! Full-track reads: the sectors in front of the requested ones are in the buffer once the platter
//! has completed a revolution.

use super::*;

/// Leading part of a track in a full-track read: the segment that receives it, the first requested
/// sector, the track's first sector, and the time at which the platter has completed a revolution.
#[derive(Clone, Copy, Debug)]
pub(super) struct FullTrackRead {
    segment_index: usize,
    requested_sector: u64,
    first_sector: u64,
    start_time: Time,
}

impl Disk {
    /// Returns the leading part of the track that a full-track read still covers, with the end of
    /// the revolution. Returns `None` if the request starts the track or spans tracks.
    #[cold]
    pub(super) fn begin_full_track_read(
        &self,
        now: Time,
        segment: usize,
        (asked, end): (u64, u64),
    ) -> Option<FullTrackRead> {
        let layout = self.mechanism.layout();
        let run = layout.run_at(asked);
        let before = u64::from(run.position.sector).min(asked);
        let one_track = layout.position_of(end - 1).is_on_same_track(&run.position);
        let fits = before > 0 && one_track && layout.is_in_run_before(asked, &run, before as u32);
        fits.then(|| FullTrackRead {
            segment_index: segment,
            requested_sector: asked,
            first_sector: asked - before,
            start_time: now
                + self
                    .mechanism
                    .spindle()
                    .time_until(now, run.position.start_angle),
        })
    }

    /// Adds the leading part of a track to its segment once the platter has completed a revolution.
    #[cold]
    pub(super) fn note_full_track_read(&mut self, now: Time) {
        let Some(whole) = self
            .full_track_read
            .take_if(|whole| whole.start_time <= now)
        else {
            return;
        };
        let (first, end) = self.read_segments.sector_range(whole.segment_index);
        if (first..=end).contains(&whole.requested_sector) {
            self.read_segments
                .extend_segment_front(whole.segment_index, whole.first_sector);
        }
    }
}
