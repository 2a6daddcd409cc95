//! What `--dry-run` says.

use super::{HostPlan, title};
use crate::pilot;
use crate::target::Target;
use diskperf_timeline::SizeChoice;
use diskperf_timeline::units::{GIB, MIB, format_size};

impl HostPlan {
    /// What would be written where, how much, and for how long.
    pub(super) fn describe(&self) -> String {
        let mut text = format!("{} on {}\n", self.suite.name, self.target_name());
        for target in self.targets.iter().chain(&self.other) {
            text += &format!("  {}\n", target.what_would_happen(!self.fresh.is_empty()));
        }
        for spec in &self.fresh {
            text += &format!(
                "  a fresh {} with blocks of {} bytes on an image file, mounted for this process alone\n",
                spec.kind, spec.block_bytes
            );
        }
        let runs = self.suite.protocol.repetitions;
        let mut moved_bytes: u64 = 0;
        let mut written_bytes: u64 = 0;
        // Between the first of several at once and the last.
        let mut apart_s = 0.0;
        for step in &self.suite.steps {
            let (most_bytes, size) = match self.experiment.size {
                SizeChoice::Bytes(bytes) => (bytes, format_size(bytes)),
                SizeChoice::Auto => (pilot::LARGEST_BYTES, "size found by a pilot".to_owned()),
            };
            text += &format!("  {:<44} up to {runs} times, {size}\n", title(step));
            let file_bytes = step.program.file_bytes(most_bytes);
            let times = if step.program.writes() {
                u64::from(runs)
            } else {
                1
            };
            written_bytes = written_bytes.saturating_add(file_bytes.saturating_mul(times));
            let moved = most_bytes.saturating_mul(u64::from(runs * step.program.workers()));
            moved_bytes = moved_bytes.saturating_add(moved);
            apart_s += f64::from(runs) * step.program.last_start().0 as f64 / 1e9;
        }
        let times = (self.fresh.len().max(1) * self.targets.len()) as u64;
        if self.targets.iter().all(Target::writable) {
            let bytes = written_bytes.saturating_mul(times);
            text += &format!("  written in all: at most {}\n", format_size(bytes));
        }
        text += &match self.experiment.size {
            // Making files and syncing them takes about as long again.
            SizeChoice::Auto => {
                let repetitions = f64::from(runs) * self.suite.steps.len() as f64 * times as f64;
                format!(
                    "  time: about {:.0} s, at half a second a repetition\n",
                    1.5 * repetitions + apart_s * times as f64
                )
            }
            SizeChoice::Bytes(_) => {
                let bytes = moved_bytes.saturating_mul(times) as f64;
                format!(
                    "  time: about {:.0} s at 100 MiB/s, {:.0} s at 1 GiB/s\n",
                    2.0 * bytes / (100 * MIB) as f64 + apart_s * times as f64,
                    2.0 * bytes / GIB as f64 + apart_s * times as f64
                )
            }
        };
        for note in &self.notes {
            text += &format!("  {note}\n");
        }
        text
    }
}
