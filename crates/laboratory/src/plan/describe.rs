//! Text of `--dry-run` for plans on real storage.

use super::{HostPlan, describe_drives, format_repetitions, format_title, ground};
use crate::target::StorageTarget;
use diskperf_battery::{Medium, SuiteJob};
use diskperf_models::plan::{job_file, replay};
use diskperf_models::rig::spare_repetitions;
use diskperf_timeline::units::{GIB, MIB, format_size};
use diskperf_timeline::{Nanoseconds, SizeChoice, Workload};
use std::collections::BTreeMap;

impl HostPlan {
    /// Describes the planned writes: places, amounts and duration.
    pub(super) fn describe(&self) -> String {
        self.describe_with(PlannedWork::describe_time)
    }

    /// Describes the planned writes without a duration, for runs whose duration the plan does not
    /// determine.
    pub(super) fn describe_without_time(&self) -> String {
        self.describe_with(|_, _| String::new())
    }

    fn describe_with(&self, time: fn(&PlannedWork, &Self) -> String) -> String {
        let mut text = format!("{} on {}\n", self.suite.name, self.target_name());
        for target in self.targets.iter().chain(&self.other_target) {
            text += &format!(
                "  {}\n",
                target.describe_effect(!self.fresh_filesystems.is_empty())
            );
        }
        for spec in &self.fresh_filesystems {
            text += &format!(
                "  a fresh {} with blocks of {} bytes on an image file, mounted for this process alone\n",
                spec.filesystem_kind, spec.block_bytes
            );
        }
        if let Workload::JobFile(file) = &self.experiment.workload {
            text += &job_file::describe_job_file(file, &ground::job_file_ground(&self.targets));
        }
        if let Workload::Replay(of) = &self.experiment.workload {
            text += &replay::describe_replay(of);
        }
        for job in self.suite.iter_jobs().filter(|job| job.job_name.is_none()) {
            let (runs, again) = self.repetition_range(job);
            let size = match (
                job.own_size_bytes(),
                job.program.duration_max(),
                self.experiment.size_choice,
            ) {
                (Some(bytes), ..) | (None, None, SizeChoice::SizeBytes(bytes)) => {
                    format_size(bytes)
                }
                (None, Some(lasts), _) => format_duration(lasts, job.program.drain_time_max()),
                (None, None, SizeChoice::AutomaticSize) => "size found by a pilot".to_owned(),
            };
            let again = match again {
                0 => String::new(),
                again => format!(" and {again} more if disturbed"),
            };
            let area = describe_drives(job);
            text += &format!(
                "  {:<44} {}{again}, {size}{area}\n",
                format_title(job),
                format_repetitions(runs)
            );
        }
        let work = self.planned_work();
        text += &work.describe_written(self);
        text += &time(&work, self);
        for note in &self.notes {
            text += &format!("  {note}\n");
        }
        if let Some(shortage) = &self.space_shortage {
            text += &format!("  warning: the run is refused here: {shortage}\n");
        }
        text
    }
}

/// Upper bounds of the work in all repetitions of a plan.
#[derive(Default)]
struct PlannedWork {
    prepared_bytes: u64,
    /// Bytes of the prepared files at the smallest sizes that a pilot may find.
    prepared_bytes_min: u64,
    written_bytes: u64,
    moved_bytes: u64,
    repetition_count: u64,
    /// Number of timed parts with a fixed duration, and the total duration of those parts in
    /// seconds.
    timed_repetition_count: u64,
    timed_s: f64,
    /// Total duration of programs that write for a fixed time instead of a fixed amount, in
    /// seconds.
    durable_write_s: f64,
    /// Additional seconds that open loops may last if the storage falls behind.
    drain_s: f64,
    /// Seconds in which requests arrive at a given rate, in jobs of known size.
    arrival_s: f64,
    /// Seconds between the start of the first and the last of several simultaneous workers.
    separate_s: f64,
}

fn format_duration(lasts: Nanoseconds, drains: Nanoseconds) -> String {
    match drains {
        Nanoseconds::ZERO => format!("{} s", lasts.seconds()),
        _ => format!(
            "{} s, up to {} s if the storage falls behind the rate",
            lasts.seconds(),
            (lasts + drains).seconds()
        ),
    }
}

impl HostPlan {
    fn repetition_range(&self, job: &SuiteJob) -> (u32, u32) {
        let protocol = self.suite.protocol_of_job(job);
        let again = if self.repeats_disturbed {
            spare_repetitions(&protocol)
        } else {
            0
        };
        (protocol.repetition_count, again)
    }

    fn planned_work(&self) -> PlannedWork {
        let times = (self.fresh_filesystems.len().max(1) * self.targets.len()) as u64;
        let mut work = PlannedWork::default();
        // Programs that name the same files share them.
        let mut files: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
        for job in self.suite.iter_jobs() {
            let program = &job.program;
            let (runs, again) = self.repetition_range(job);
            let runs = u64::from(runs + again);
            let (least_bytes, most_bytes) =
                match (job.own_size_bytes(), self.experiment.size_choice) {
                    (Some(bytes), _) | (None, SizeChoice::SizeBytes(bytes)) => (bytes, bytes),
                    (None, SizeChoice::AutomaticSize) => (
                        self.size_bytes_min(job),
                        program.default_size_bytes_range().1,
                    ),
                };
            if self.targets[0].medium == Medium::Directory {
                let (least, most) = files
                    .entry(job.file_set_of_medium(Medium::Directory))
                    .or_default();
                *least = program.prepared_bytes(least_bytes).max(*least);
                *most = program.prepared_bytes(most_bytes).max(*most);
            }
            let all = |bytes: u64| bytes.saturating_mul(runs).saturating_mul(times);
            let moved = most_bytes.saturating_mul(u64::from(program.worker_count()));
            work.moved_bytes = work.moved_bytes.saturating_add(all(moved));
            match program.duration_max() {
                Some(lasts) if program.writes_target() && program.replay().is_none() => {
                    work.durable_write_s += (runs * times) as f64 * lasts.seconds();
                }
                _ => {
                    let written = all(program.written_bytes(most_bytes));
                    work.written_bytes = work.written_bytes.saturating_add(written);
                }
            }
            work.repetition_count += runs * times;
            if let Some(lasts) = program.duration_max() {
                work.timed_repetition_count += runs * times;
                work.timed_s += (runs * times) as f64 * lasts.seconds();
                work.drain_s += (runs * times) as f64 * program.drain_time_max().seconds();
            } else if let (Some(per_s), SizeChoice::SizeBytes(_)) =
                (program.offered_bytes_per_s(), self.experiment.size_choice)
            {
                work.arrival_s += (runs * times) as f64 * most_bytes as f64 / per_s as f64;
            }
            work.separate_s += (runs * times) as f64 * program.last_start_offset().seconds();
        }
        for (least, most) in files.into_values() {
            let all = |bytes: u64| bytes.saturating_mul(times);
            work.prepared_bytes_min = work.prepared_bytes_min.saturating_add(all(least));
            work.prepared_bytes = work.prepared_bytes.saturating_add(all(most));
        }
        work
    }
}

impl PlannedWork {
    fn describe_written(&self, plan: &HostPlan) -> String {
        let mut text = String::new();
        if plan.targets.iter().all(StorageTarget::is_writable) {
            let all = self.written_bytes.saturating_add(self.prepared_bytes);
            text += &format!("  written in all: at most {}", format_size(all));
            if self.prepared_bytes > 0 {
                let prepared = format_size(self.prepared_bytes);
                text += &format!(", of which {prepared} are files made beforehand");
            }
            if self.durable_write_s > 0.0 {
                let writing_s = self.durable_write_s;
                text += &format!(", and as much as the target takes in {writing_s:.0} s");
            }
            text += "\n";
        }
        text
    }

    fn describe_time(&self, plan: &HostPlan) -> String {
        let at = |bytes: u64, per_s: u64| bytes as f64 / per_s as f64;
        let behind = match self.drain_s > 0.0 {
            true => format!(
                ", and up to {:.0} s more if the storage falls behind the rate",
                self.drain_s
            ),
            false => String::new(),
        };
        match plan.experiment.size_choice {
            // What a pilot finds takes about as long again to make and to sync; areas
            // have a size of their own.
            SizeChoice::AutomaticSize if !plan.is_size_given() => {
                let piloted = (self.repetition_count - self.timed_repetition_count) as f64;
                let timed = 1.5 * piloted + self.timed_s + self.separate_s;
                let made = self.prepared_bytes_min;
                format!(
                    "  time: about {timed:.0} s at half a second a repetition, and {:.0} s at 100 MiB/s, {:.0} s at 1 GiB/s, to make files of {}{behind}\n",
                    at(made, 100 * MIB),
                    at(made, GIB),
                    format_size(made)
                )
            }
            SizeChoice::AutomaticSize | SizeChoice::SizeBytes(_) => {
                // What was written is synced.
                let bytes = [self.moved_bytes, self.written_bytes, self.prepared_bytes];
                let bytes = bytes.into_iter().fold(0, u64::saturating_add);
                let given_s = self.separate_s + self.timed_s + self.arrival_s;
                format!(
                    "  time: about {:.0} s at 100 MiB/s, {:.0} s at 1 GiB/s{behind}\n",
                    at(bytes, 100 * MIB) + given_s,
                    at(bytes, GIB) + given_s
                )
            }
        }
    }
}
