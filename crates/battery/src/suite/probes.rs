//! Probes for caps, which a run adds to a suite.

use super::{ONE_RUN, Suite, SuiteJob, SuiteStep};
use crate::program::Program;

impl Suite {
    /// Adds a probe for a cap after the steps for each operation and size of their random and
    /// sequential requests, at the greatest depth. Returns whether there was any.
    pub fn add_cap_probes(&mut self) -> bool {
        let mut probes: Vec<SuiteJob> = Vec::new();
        let rows = self.iter_jobs().map(|job| job.table_row + 1).max();
        for job in self.iter_jobs() {
            let row = rows.unwrap_or(0) + probes.len() as u32;
            let Some(probe) = job.new_cap_probe(row) else {
                continue;
            };
            let depth = |one: &SuiteJob| one.parameter_number("depth");
            let like = |other: &&mut SuiteJob| {
                ["block_bytes", "write_share"]
                    .iter()
                    .all(|key| other.parameter_number(key) == probe.parameter_number(key))
            };
            match probes.iter_mut().find(like) {
                None => probes.push(probe),
                Some(other) if depth(other) < depth(&probe) => {
                    other.program = probe.program;
                }
                Some(_) => {}
            }
        }
        let found = !probes.is_empty();
        self.steps.extend(probes.into_iter().map(SuiteStep::from));
        found
    }
}

impl SuiteJob {
    /// Creates the probe for a cap with the job's depth, size and share of writes; `None` for a job
    /// of one request at a time, of requests that arrive at a rate, or without such parameters.
    fn new_cap_probe(&self, table_row: u32) -> Option<Self> {
        if !["random", "sequential"].contains(&self.program.name()) {
            return None;
        }
        let values = self.program.parameter_values();
        let is_closed_loop = values.get("rate_iops").is_some_and(|rate| rate == "0");
        let depth = self.parameter_number("depth")? * self.parameter_number("workers")?;
        if !is_closed_loop || depth < 2.0 || self.parameter_number("block_bytes").is_none() {
            return None;
        }
        let mut program = Program::from_name("cap_probe")?;
        for key in [
            "block_bytes",
            "write_share",
            "area_bytes",
            "direct",
            "engine",
        ] {
            program.set_parameter(key, values.get(key)?).ok()?;
        }
        program
            .set_parameter("depth", &format!("{depth:.0}"))
            .ok()?;
        let shown = ["block_bytes", "write_share", "depth"];
        Some(Self {
            distinguishing_parameters: shown.map(str::to_owned).to_vec(),
            table_row,
            own_protocol: Some(ONE_RUN),
            ..Self::from_program(program)
        })
    }

    /// Returns the value of a parameter that is a number.
    fn parameter_number(&self, name: &str) -> Option<f64> {
        self.program.parameter_values().get(name)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::Medium;

    #[test]
    fn each_kind_of_request_of_a_suite_has_one_probe_at_its_greatest_depth() {
        let mut suite = Suite::from_name("today26", Medium::Directory).expect("a suite");
        let rows = suite.steps.len();
        assert!(suite.add_cap_probes());
        let probes: Vec<&SuiteJob> = suite.iter_jobs().skip(rows).collect();
        let kinds: Vec<String> = probes
            .iter()
            .map(|job| {
                let values = job.program.parameter_values();
                let keys = ["block_bytes", "write_share", "depth"];
                keys.map(|key| values[key].clone()).join(" ")
            })
            .collect();
        assert_eq!(kinds, KINDS_OF_TODAY26);
        assert!(probes.iter().all(|job| job.own_protocol == Some(ONE_RUN)));
        let old = Suite::from_name("ffs83", Medium::Directory);
        assert!(!old.expect("a suite").add_cap_probes());
    }

    /// Size, share of writes and depth.
    const KINDS_OF_TODAY26: [&str; 5] = [
        "1048576 0 8",
        "1048576 1 8",
        "4096 0 32",
        "4096 1 32",
        "4096 0.3 16",
    ];
}
