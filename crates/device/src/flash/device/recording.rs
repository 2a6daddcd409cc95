//! Record of a flash drive's work, for repetitions that are traced.

use super::*;
use crate::flash::recorder::Recorder;
use diskperf_spans::{FlashLevelSample, TracedFlash};

impl Flash {
    /// Starts to record the drive's work for [`Self::take_recorded`].
    pub fn record(&mut self) {
        self.recorder = Some(Box::new(Recorder::new(self.dies.len())));
    }

    /// Returns the drive's recorded work since the last call, labelled with a drive number; `None`
    /// if recording is off.
    pub fn take_recorded(&mut self, now: Time, drive: u32) -> Option<TracedFlash> {
        let levels = self.levels(now);
        let recorder = self.recorder.as_mut()?;
        recorder.sample(now, levels);
        let recorded = recorder.take(now);
        // So that the next has a state that it begins with.
        recorder.sample(now, levels);
        Some(TracedFlash {
            drive_index: drive,
            channel_count: self.specification.geometry.channels,
            die_count: self.specification.geometry.dies(),
            unit_bytes: UNIT_BYTES,
            buffer_units: self.specification.buffer.map_or(0, |buffer| buffer.units),
            recorded_periods: recorded.kept,
            omitted_period_count: recorded.left_out,
            complete_since: moment(recorded.complete_from),
            level_samples: recorded.levels,
        })
    }

    /// Returns the memory of the recorded work, in bytes.
    pub fn recorded_bytes(&self) -> usize {
        self.recorder
            .as_ref()
            .map_or(0, |recorder| recorder.bytes())
    }

    /// Samples the drive's fill levels if a sample is due.
    #[inline]
    pub(super) fn record_levels(&mut self, now: Time) {
        if self.recorder.as_ref().is_some_and(|all| all.is_due(now)) {
            let levels = self.levels(now);
            if let Some(recorder) = &mut self.recorder {
                recorder.sample(now, levels);
            }
        }
    }

    fn levels(&self, now: Time) -> FlashLevelSample {
        let counted = self.counted(0);
        FlashLevelSample {
            sample_time: moment(now),
            buffer_units: self.specification.buffer.map_or(0, |_| self.buffer.used()),
            cache_free_units: self.ftl.cache_free_units(),
            free_superblocks: self.ftl.free_superblocks(),
            host_units: counted.host_units,
            programmed_units: counted.programmed_units(),
        }
    }
}
