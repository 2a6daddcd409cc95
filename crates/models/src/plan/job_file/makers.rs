//! Assignment of files that several sections of a job file use to the section that makes them.

use super::JobStorage;
use super::areas::FileLayout;
use diskperf_battery::FileMaker;
use diskperf_fio::plan::FileSize;
use diskperf_fio::{JobDefinition, JobFile, plan};
use std::collections::BTreeMap;

/// Returns the files of each job that other jobs make. As in fio, all sections are set up one after
/// the other before any starts: a file that is long enough for the next one stays as it is.
pub(super) fn list_made_files(
    file: &JobFile,
    places: &[usize],
    existing: &[BTreeMap<String, FileSize>],
) -> Vec<BTreeMap<String, FileMaker>> {
    let jobs = file.jobs.iter().zip(existing);
    let needs: Vec<_> = jobs
        .map(|(job, existing)| list_needed_bytes(job, existing))
        .collect();
    let mut made = vec![BTreeMap::new(); file.jobs.len()];
    // Bytes of what the steps before have left.
    let mut left: BTreeMap<&str, u64> = BTreeMap::new();
    for step in 0..=places.iter().max().copied().unwrap_or(0) {
        let here = || (0..places.len()).filter(|number| places[*number] == step);
        let mut makers: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
        for number in here() {
            for (path, bytes) in &needs[number] {
                let maker = makers.get(path.as_str()).map(|(_, length)| *length);
                let length = maker.or_else(|| left.get(path.as_str()).copied());
                if length.is_none_or(|length| length < *bytes) {
                    let length = if file.jobs[number].lays_out_files() {
                        *bytes
                    } else {
                        0
                    };
                    makers.insert(path, (number, length));
                }
            }
        }
        for number in here() {
            for path in needs[number].keys() {
                match makers.get(path.as_str()) {
                    Some((maker, _)) if *maker == number => continue,
                    Some(_) => made[number].insert(path.clone(), FileMaker::ConcurrentJob),
                    None => made[number].insert(path.clone(), FileMaker::EarlierJob),
                };
            }
        }
        for number in here() {
            for (path, bytes) in &needs[number] {
                let length = left.entry(path).or_default();
                *length = (*length).max(*bytes);
            }
        }
        for number in here().filter(|number| file.jobs[*number].files.unlinks_at_end) {
            needs[number].keys().for_each(|path| {
                left.remove(path.as_str());
            });
        }
    }
    made
}

/// Returns the sizes of existing files when each job is set up, by the job's names of them. They
/// include files that the jobs above it lay out beforehand.
pub(super) fn list_existing_files(
    file: &JobFile,
    (ground, layout): (&JobStorage, &FileLayout),
) -> Vec<BTreeMap<String, FileSize>> {
    let mut lengths: BTreeMap<String, u64> = BTreeMap::new();
    let of_job = |job: &JobDefinition| {
        let mut existing = ground.list_existing_files(job, layout);
        for (path, &bytes) in &lengths {
            let size = existing.entry(path.clone());
            size.or_insert(FileSize::DrawnPerFile(bytes));
        }
        for (path, bytes) in list_needed_bytes(job, &existing)
            .into_iter()
            .filter(|_| job.lays_out_files())
        {
            let length = lengths.entry(path).or_default();
            *length = bytes.max(*length);
        }
        existing
    };
    file.jobs.iter().map(of_job).collect()
}

fn list_needed_bytes(
    job: &JobDefinition,
    existing: &BTreeMap<String, FileSize>,
) -> BTreeMap<String, u64> {
    let mut needs: BTreeMap<String, u64> = BTreeMap::new();
    let clones = plan::plan_clone_files(job, existing).unwrap_or_default();
    for file in clones.into_iter().flatten() {
        let bytes = needs.entry(file.path).or_default();
        *bytes = (*bytes).max(file.region.file_bytes);
    }
    needs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_file::{from_text, parse_text};
    use diskperf_fio::JobEnvironment;

    /// Who makes `x`, as each section sees it: itself, one before it, or one beside it.
    fn makers(sections: &[&str]) -> String {
        let mut text = "[global]\nfilename=x\nsize=1m\n".to_owned();
        for (number, options) in sections.iter().enumerate() {
            text += &format!("[job{number}]\n{}\n", options.replace(' ', "\n"));
        }
        let file = parse_text(&from_text("x.fio", &text, &[], &JobEnvironment::default()).unwrap())
            .unwrap();
        let places = super::super::list_positions(&file);
        let ground = JobStorage {
            capacity_bytes: None,
            is_host: false,
            is_file: false,
            is_zoned: false,
            free_bytes: None,
            has_direct_io: Some(false),
            has_ftruncate: true,
        };
        let existing = list_existing_files(&file, (&ground, &FileLayout::default()));
        let made = list_made_files(&file, &places, &existing);
        let letter = |made: &BTreeMap<String, FileMaker>| match made.get("x") {
            None => 's',
            Some(FileMaker::EarlierJob) => 'e',
            Some(FileMaker::ConcurrentJob) => 'b',
        };
        made.iter().map(letter).collect()
    }

    #[test]
    fn a_file_is_made_once_where_it_is_long_enough() {
        for (sections, expected) in [
            (&["rw=randread", "rw=randwrite"][..], "sb"),
            // What is not there yet when the reader is set up is laid out for it.
            (&["rw=randwrite fallocate=none", "rw=randread"], "bs"),
            (&["rw=randwrite", "rw=randread"], "sb"),
            (&["rw=randread", "rw=randread size=2m"], "bs"),
            (&["rw=write", "rw=randwrite stonewall"], "se"),
            (&["rw=write", "rw=randwrite stonewall size=2m"], "ss"),
            (&["rw=write unlink=1", "rw=read stonewall"], "ss"),
            (&["rw=write filename=y", "rw=read stonewall"], "ss"),
            // What is appended needs a longer file than the one before.
            (&["rw=write", "rw=write file_append=1 stonewall"], "ss"),
            (
                &["rw=write", "rw=read stonewall", "rw=randread size=512k"],
                "see",
            ),
        ] {
            assert_eq!(makers(sections), expected, "{sections:?}");
        }
    }
}
