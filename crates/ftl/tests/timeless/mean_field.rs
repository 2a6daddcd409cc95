//! Very many superblocks written uniformly: shares of them by their count of valid units,
//! as greedy collection moves them from any state, step by step.

/// A drive of so many superblocks beside the free ones, its units counted in superblocks.
pub(crate) struct MeanField {
    /// For each count, the superblocks with so many valid units.
    counts: Vec<f64>,
    written: f64,
    room: f64,
    mapped: f64,
}

impl MeanField {
    /// `mapped` superblocks of `units`, written in order, of `room`.
    pub(crate) fn in_order(mapped: f64, room: f64, units: usize) -> Self {
        let mut counts = vec![0.0; units + 1];
        counts[units] = mapped;
        Self {
            counts,
            written: mapped,
            room,
            mapped,
        }
    }

    /// Writes a share of the mapped units; gives what was programmed for each of them.
    pub(crate) fn write(&mut self, share: f64) -> f64 {
        let units = self.counts.len() - 1;
        // A full superblock loses a sixteenth of a unit in a step.
        let steps = (16.0 * share * units as f64).round();
        let step = share / steps;
        let mut programmed = 0.0;
        for _ in 0..steps as u64 {
            for valid in 1..=units {
                let hit = self.counts[valid] * valid as f64 * step;
                self.counts[valid] -= hit;
                self.counts[valid - 1] += hit;
            }
            let host = self.mapped * step;
            self.counts[units] += host;
            self.written += host;
            programmed += host + self.collect();
        }
        programmed / (share * self.mapped)
    }

    /// Moves what is valid of the superblocks with the least until the written ones fit;
    /// gives how much that is.
    fn collect(&mut self) -> f64 {
        let units = self.counts.len() - 1;
        let mut moved = 0.0;
        for valid in 0..units {
            let excess = self.written - self.room;
            if excess <= 0.0 {
                break;
            }
            let share = valid as f64 / units as f64;
            let victims = self.counts[valid].min(excess / (1.0 - share));
            self.counts[valid] -= victims;
            self.counts[units] += victims * share;
            self.written -= victims * (1.0 - share);
            moved += victims * share;
        }
        moved
    }
}
