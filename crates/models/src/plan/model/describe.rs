//! Text of `--dry-run` for a modelled computer.

use super::super::job_file::{self, Ground};
use super::super::{replay, spread_over, times, title};
use super::ModelPlan;
use diskperf_battery::{Medium, SuiteJob};
use diskperf_catalogue::Component;
use diskperf_timeline::Workload;
use diskperf_timeline::units::format_size;

/// Minimum rate at which models serve calls, per second of real time: streams with calls of a
/// megabyte. Short reads from a disk's cache are the fastest.
const SLOWEST_CALLS_PER_S: f64 = 20_000.0;

impl ModelPlan {
    fn time(&self) -> String {
        let times = |job: &SuiteJob| {
            let repetitions = self.suite.protocol_of_job(job).repetition_count;
            f64::from(repetitions) * (self.computers.len() * self.drives) as f64
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
        if calls < SLOWEST_CALLS_PER_S && lasting_s == 0.0 {
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
        let kind = match computer.components.contains_key(&Component::Kernel) {
            true => "computer",
            false => "drive",
        };
        text += &format!("  a modelled {kind}: {}\n", computer.description);
        for computer in &self.computers {
            text += &format!(
                "  {} of {} drives, each {} {}{}\n",
                self.drives + usize::from(self.other),
                computer.configured_drives(),
                match computer.medium() {
                    Medium::Directory => format!("with a fresh {} and", computer.filesystem()),
                    Medium::Device | Medium::File => "by itself,".to_owned(),
                },
                format_size(computer.room_bytes(0)),
                if computer.medium() == Medium::Directory {
                    " free"
                } else {
                    ""
                }
            );
        }
        if let Workload::JobFile(file) = &self.experiment.workload {
            text += &job_file::describe(file, &Ground::modelled(computer));
        }
        if let Workload::Replay(of) = &self.experiment.workload {
            text += &replay::describe(of);
        }
        for job in self.suite.iter_jobs().filter(|job| job.job_name.is_none()) {
            text += &format!(
                "  {:<44} {}, {}{}\n",
                title(job),
                times(self.suite.protocol_of_job(job).repetition_count),
                format_size(self.size(job)),
                spread_over(job)
            );
        }
        text += &format!(
            "  nothing is written on this machine but the run's row in the store; {}\n",
            self.time()
        );
        for note in &self.notes {
            text += &format!("  {note}\n");
        }
        text
    }
}
