//! Full-track reads: the sectors in front of the requested ones are in the buffer once the platter
//! has completed a revolution.

use super::*;

/// Leading part of a track in a full-track read: the segment that receives it, the first requested
/// sector, the track's first sector, and the time at which the platter has completed a revolution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    segment: usize,
    asked: u64,
    first: u64,
    at: Time,
}

impl Disk {
    /// Returns the leading part of the track that a full-track read still covers, with the end of
    /// the revolution. Returns `None` if the request starts the track or spans tracks.
    #[cold]
    pub(super) fn whole_track(
        &self,
        now: Time,
        segment: usize,
        (asked, end): (u64, u64),
    ) -> Option<Whole> {
        let layout = self.mechanism.layout();
        let run = layout.run(asked);
        let before = u64::from(run.place.sector).min(asked);
        let one_track = layout.locate(end - 1).same_track(&run.place);
        let fits = before > 0 && one_track && layout.has_before(asked, &run, before as u32);
        fits.then(|| Whole {
            segment,
            asked,
            first: asked - before,
            at: now + self.mechanism.spindle().until(now, run.place.start),
        })
    }

    /// Adds the leading part of a track to its segment once the platter has completed a revolution.
    #[cold]
    pub(super) fn note_whole(&mut self, now: Time) {
        let Some(whole) = self.whole.take_if(|whole| whole.at <= now) else {
            return;
        };
        let (first, end) = self.segments.run(whole.segment);
        if (first..=end).contains(&whole.asked) {
            self.segments.extend_front(whole.segment, whole.first);
        }
    }
}
