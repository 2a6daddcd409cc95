//! What `--dry-run` says of a modelled computer.

use super::super::job_file::{self, Ground};
use super::super::{replay, title};
use super::ModelPlan;
use diskperf_battery::{Job, Medium};
use diskperf_timeline::Workload;
use diskperf_timeline::units::format_size;

/// Calls of programs that models serve in a second, at the best and at the worst: short reads
/// of a disk's cache, and streams of a megabyte a call.
const CALLS_PER_S: [f64; 2] = [500_000.0, 20_000.0];

impl ModelPlan {
    /// How long a run takes on this machine.
    fn time(&self) -> String {
        let calls = |job: &Job| {
            let calls = self.moved_bytes(job) as f64 / job.program.call_bytes().max(1) as f64;
            calls * f64::from(self.suite.protocol_of(job).repetitions) * self.computers.len() as f64
        };
        let calls: f64 = self.suite.jobs().map(calls).sum();
        let [quick_s, slow_s] = CALLS_PER_S.map(|rate| calls / rate);
        match slow_s < 1.0 {
            true => "time: below a second".to_owned(),
            false => format!(
                "time: {calls:.0} calls of the programs at most, which take {quick_s:.0} to {slow_s:.0} s"
            ),
        }
    }

    /// What would be run, on what, for how long.
    pub(in crate::plan) fn describe(&self) -> String {
        let mut text = format!("{} on {}\n", self.suite.name, self.target);
        let computer = &self.computers[0];
        text += &format!("  a modelled computer: {}\n", computer.description);
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
        for job in self.suite.jobs().filter(|job| job.name.is_none()) {
            text += &format!(
                "  {:<44} up to {} times, {}\n",
                title(job),
                self.suite.protocol_of(job).repetitions,
                format_size(self.size(job))
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
