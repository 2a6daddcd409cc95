//! Reasons why steps of a suite cannot run on a modelled computer.

use super::super::{NO_EMPTY_DEVICE_MESSAGE, remove_steps};
use super::ModelPlan;
use crate::error::LaboratoryError;
use diskperf_battery::suite::Needs;
use diskperf_battery::{Job, Medium};
use diskperf_timeline::CacheMode;

impl ModelPlan {
    fn find_obstacle(&self, job: &Job) -> Option<String> {
        let direct = job.program.cache_mode(self.experiment.cache) == CacheMode::Direct;
        let medium = self.computers[0].medium();
        if self.computers[0].is_v7() && job.program.renames() {
            return Some(
                "it renames files, and Xenix has no rename(2); --set program.phases=create+stat+unlink does without"
                    .to_owned(),
            );
        }
        if self.computers[0].is_minix() {
            return self.find_minix_obstacle(job);
        }
        if job.program.is_of_block_null() {
            return Some(NO_EMPTY_DEVICE_MESSAGE.to_owned());
        }
        if medium == Medium::Device {
            return self.find_raw_obstacle(job);
        }
        match job.needs(medium) {
            Needs::OtherMedium => Some(format!(
                "it reads a device, and the programs on {} have its file systems; --set filesystem=none gives them the drives by themselves",
                self.target
            )),
            Needs::OtherFilesystem if !self.has_other_volume => {
                Some(self.describe_missing_volume("the file system of another drive"))
            }
            Needs::Nothing | Needs::Writing | Needs::OtherFilesystem => (direct
                && job.program.touches_target())
            .then(|| {
                let kernel = if self.computers[0].is_v7() {
                    "Xenix"
                } else {
                    "4.2BSD"
                };
                format!(
                    "it reads and writes with O_DIRECT, and {kernel} cannot bypass its buffer cache"
                )
            }),
        }
    }

    fn find_minix_obstacle(&self, job: &Job) -> Option<String> {
        let program = &job.program;
        let files = self.computers[0].medium() == Medium::Directory;
        let direct = program.cache_mode(self.experiment.cache) == CacheMode::Direct;
        let only_on =
            |medium: Medium| program.is_of(medium) && !program.is_of(other_medium(medium));
        if !program.is_of_minix() {
            Some("Minix has no /dev/zero, and no O_DIRECT".to_owned())
        } else if !program.touches_target() || program.names_its_device() {
            None
        } else if program.needs_other() && !self.has_other_volume {
            Some(self.describe_missing_volume("the file system of another drive"))
        } else if only_on(Medium::Device) && files {
            Some(
                "it reads a drive by itself; --set filesystem=none makes that the target"
                    .to_owned(),
            )
        } else if only_on(Medium::Directory) && !files {
            Some(format!("it works on files, and {} has none", self.target))
        } else if direct && files {
            Some("it reads and writes with O_DIRECT, which Minix does not have".to_owned())
        } else {
            None
        }
    }

    fn find_raw_obstacle(&self, job: &Job) -> Option<String> {
        let raw = job.program.cache_mode(self.experiment.cache) == CacheMode::Direct;
        match job.needs(Medium::Device) {
            Needs::OtherMedium => Some(format!(
                "it works on files, and {} has no file system that is modelled",
                self.target
            )),
            Needs::OtherFilesystem if !self.has_other_volume => Some(self.describe_missing_volume("another partition")),
            Needs::Nothing | Needs::Writing | Needs::OtherFilesystem => (!raw && job.program.touches_target()).then(|| {
                "it reads or writes a drive through the buffer cache, which is not modelled; --direct goes past it"
                    .to_owned()
            }),
        }
    }

    fn describe_missing_volume(&self, place: &str) -> String {
        let target = &self.target;
        format!("it copies to {place}, and all that {target} has configured run the program")
    }

    pub(super) fn remove_impossible_jobs(&mut self) -> Result<(), LaboratoryError> {
        let (name, steps) = (self.suite.name.clone(), self.suite.steps.clone());
        let obstacle = |job: &Job| self.find_obstacle(job);
        let (kept, left_out) = remove_steps((&name, &self.target), steps, obstacle)?;
        self.suite.steps = kept;
        self.notes.extend(left_out);
        Ok(())
    }
}

fn other_medium(medium: Medium) -> Medium {
    match medium {
        Medium::Directory => Medium::Device,
        Medium::Device | Medium::File => Medium::Directory,
    }
}
