//! Tracks that are read whole: what lies before the sectors that were asked for is in the
//! buffer when the platter has turned once.

use super::*;

/// The front of a track that is read whole: the segment that gets it, the first sector that
/// was asked for and the track's first one, and when the platter has turned once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    segment: usize,
    asked: u64,
    first: u64,
    at: Time,
}

impl Disk {
    /// What is read of a track before the sectors that were asked for, by when the platter
    /// has turned once.
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

    /// Once the platter has turned, the front of the track is in its segment.
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
