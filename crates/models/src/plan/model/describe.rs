//! Text of `--dry-run` for a modelled computer.

use super::super::job_file::{self, JobStorage};
use super::super::{describe_drives, format_repetitions, format_title, replay};
use super::ModelPlan;
use diskperf_battery::{Medium, SuiteJob};
use diskperf_catalogue::Component;
use diskperf_timeline::Workload;
use diskperf_timeline::units::format_size;

/// Minimum rate at which models serve calls, per second of real time: streams with calls of a
/// megabyte. Short reads from a disk's cache are the fastest.
const CALLS_PER_S_MIN: f64 = 20_000.0;

impl ModelPlan {
    fn estimate_time(&self) -> String {
        let times = |job: &SuiteJob| {
            let repetitions = self.suite.protocol_of_job(job).repetition_count;
            f64::from(repetitions) * (self.computers.len() * self.drive_count) as f64
        };
        let (mut calls, mut lasting_s) = (0.0, 0.0);
        for job in self.suite.iter_jobs() {
            match job.program.duration_max() {
                Some(lasts) => lasting_s += lasts.seconds() * times(job),
                None => {
                    let call_bytes = job.program.call_bytes().max(1) as f64;
                    calls += self.moved_bytes(job) as f64 / call_bytes * times(job);
                }
            }
        }
        if calls < CALLS_PER_S_MIN && lasting_s == 0.0 {
            return "time: below a second".to_owned();
        }
        let mut work = vec![format!("{calls:.0} calls at most")];
        if lasting_s > 0.0 {
            work.push(format!("{lasting_s:.0} s of modelled time"));
        }
        format!(
            "time: that of {}; a model serves 20,000 to 500,000 calls a second",
            work.join(" and ")
        )
    }

    /// Describes the programs, the computer and the duration of the run.
    pub fn describe(&self) -> String {
        let mut text = format!("{} on {}\n", self.suite.name, self.target);
        let computer = &self.computers[0];
        let kind = match computer.component_names.contains_key(&Component::Kernel) {
            true => "computer",
            false => "drive",
        };
        text += &format!("  a modelled {kind}: {}\n", computer.description);
        for computer in &self.computers {
            text += &format!(
                "  {} of {} drives, each {} {}{}\n",
                self.drive_count + usize::from(self.has_other_volume),
                computer.configured_drive_count(),
                match computer.medium() {
                    Medium::Directory =>
                        format!("with a fresh {} and", computer.describe_filesystem()),
                    Medium::Device | Medium::File => "by itself,".to_owned(),
                },
                format_size(computer.free_bytes(0)),
                if computer.medium() == Medium::Directory {
                    " free"
                } else {
                    ""
                }
            );
        }
        if let Workload::JobFile(file) = &self.experiment.workload {
            text += &job_file::describe_job_file(file, &JobStorage::for_computer(computer));
        }
        if let Workload::Replay(of) = &self.experiment.workload {
            text += &replay::describe_replay(of);
        }
        for job in self.suite.iter_jobs().filter(|job| job.job_name.is_none()) {
            text += &format!(
                "  {:<44} {}, {}{}\n",
                format_title(job),
                format_repetitions(self.suite.protocol_of_job(job).repetition_count),
                format_size(self.file_bytes(job)),
                describe_drives(job)
            );
        }
        text += &format!(
            "  nothing is written on this machine but the run's row in the store; {}\n",
            self.estimate_time()
        );
        for note in &self.notes {
            text += &format!("  {note}\n");
        }
        text
    }
}
