//! Record of a flash drive's work, for repetitions that are traced.

use super::*;
use crate::flash::recorder::FlashRecorder;
use diskperf_spans::{FlashLevelSample, TracedFlash};

impl Flash {
    /// Starts to record the drive's work for [`Self::take_recorded`].
    pub fn start_recording(&mut self) {
        self.recorder = Some(Box::new(FlashRecorder::new(self.dies.len())));
    }

    /// Returns the drive's recorded work since the last call, labelled with a drive number; `None`
    /// if recording is off.
    pub fn take_recorded(&mut self, now: Time, drive: u32) -> Option<TracedFlash> {
        let levels = self.current_levels(now);
        let recorder = self.recorder.as_mut()?;
        recorder.add_level_sample(now, levels);
        let recorded = recorder.take_recording(now);
        // So that the next has a state that it begins with.
        recorder.add_level_sample(now, levels);
        Some(TracedFlash {
            drive_index: drive,
            channel_count: self.specification.geometry.channel_count,
            die_count: self.specification.geometry.die_count(),
            unit_bytes: UNIT_BYTES,
            buffer_units: self
                .specification
                .buffer
                .map_or(0, |buffer| buffer.unit_count),
            recorded_periods: recorded.intervals,
            omitted_period_count: recorded.omitted_count,
            complete_since: moment(recorded.complete_since),
            level_samples: recorded.level_samples,
        })
    }

    /// Returns the memory of the recorded work, in bytes.
    pub fn recorded_bytes(&self) -> usize {
        self.recorder
            .as_ref()
            .map_or(0, |recorder| recorder.memory_bytes())
    }

    /// Samples the drive's fill levels if a sample is due.
    #[inline]
    pub(super) fn record_levels(&mut self, now: Time) {
        if self
            .recorder
            .as_ref()
            .is_some_and(|all| all.is_sample_due(now))
        {
            let levels = self.current_levels(now);
            if let Some(recorder) = &mut self.recorder {
                recorder.add_level_sample(now, levels);
            }
        }
    }

    fn current_levels(&self, now: Time) -> FlashLevelSample {
        let counted = self.flash_traffic(0);
        FlashLevelSample {
            sample_time: moment(now),
            buffer_units: self
                .specification
                .buffer
                .map_or(0, |_| self.buffer.used_units()),
            cache_free_units: self.translation_layer.cache_free_units(),
            free_superblocks: self.translation_layer.free_superblocks(),
            host_units: counted.host_units,
            programmed_units: counted.programmed_units(),
        }
    }
}
