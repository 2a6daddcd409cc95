//! Reasons why steps of a suite cannot run on a modelled computer.

use super::super::{NO_EMPTY_DEVICE_MESSAGE, remove_steps};
use super::ModelPlan;
use crate::error::LaboratoryError;
use diskperf_battery::suite::TargetNeeds;
use diskperf_battery::{Medium, SuiteJob};
use diskperf_timeline::CacheMode;

impl ModelPlan {
    fn find_obstacle(&self, job: &SuiteJob) -> Option<String> {
        let direct = job.program.cache_mode_for(self.experiment.cache_mode) == CacheMode::Direct;
        let medium = self.computers[0].medium();
        if self.computers[0].is_v7() && job.program.renames_files() {
            return Some(
                "it renames files, and Xenix has no rename(2); --set program.phases=create+stat+unlink does without"
                    .to_owned(),
            );
        }
        if self.computers[0].is_minix() {
            return self.find_minix_obstacle(job);
        }
        if job.program.reads_block_null() {
            return Some(NO_EMPTY_DEVICE_MESSAGE.to_owned());
        }
        if medium == Medium::Device {
            return self.find_raw_obstacle(job);
        }
        match job.target_needs(medium) {
            TargetNeeds::MediumOfOtherKind => Some(format!(
                "it reads a device, and the programs on {} have its file systems; --set filesystem=none gives them the drives by themselves",
                self.target
            )),
            TargetNeeds::SecondFilesystem if !self.has_other_volume => {
                Some(self.describe_missing_volume("the file system of another drive"))
            }
            TargetNeeds::NoSpecialTarget | TargetNeeds::WritableTarget | TargetNeeds::SecondFilesystem => (direct
                && job.program.accesses_target())
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

    fn find_minix_obstacle(&self, job: &SuiteJob) -> Option<String> {
        let program = &job.program;
        let files = self.computers[0].medium() == Medium::Directory;
        let direct = program.cache_mode_for(self.experiment.cache_mode) == CacheMode::Direct;
        let only_on = |medium: Medium| {
            program.supports_medium(medium) && !program.supports_medium(other_medium(medium))
        };
        if !program.supports_minix() {
            Some("Minix has no /dev/zero, and no O_DIRECT".to_owned())
        } else if !program.accesses_target() || program.opens_device_by_name() {
            None
        } else if program.needs_second_target() && !self.has_other_volume {
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

    fn find_raw_obstacle(&self, job: &SuiteJob) -> Option<String> {
        let raw = job.program.cache_mode_for(self.experiment.cache_mode) == CacheMode::Direct;
        match job.target_needs(Medium::Device) {
            TargetNeeds::MediumOfOtherKind => Some(format!(
                "it works on files, and {} has no file system that is modelled",
                self.target
            )),
            TargetNeeds::SecondFilesystem if !self.has_other_volume => Some(self.describe_missing_volume("another partition")),
            TargetNeeds::NoSpecialTarget | TargetNeeds::WritableTarget | TargetNeeds::SecondFilesystem => (!raw && job.program.accesses_target()).then(|| {
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
        let obstacle = |job: &SuiteJob| self.find_obstacle(job);
        let (kept, left_out) = remove_steps(&name, &self.target, steps, obstacle)?;
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
