//! Areas of a drive, or of a user's file, that stand for the files and devices of a job file.

use super::FILES_SHOWN_MAX;
use diskperf_fio::job::IoEngine;
use diskperf_fio::plan;
use diskperf_fio::{JobDefinition, JobFile};
use diskperf_timeline::units::format_size;
use std::collections::{BTreeMap, HashMap};

/// Alignments of areas in bytes, in descending order. The first that does not exceed an equal share
/// is used.
const ALIGNMENTS_BYTES: [u64; 4] = [1 << 20, 4096, 512, 1];

/// A part of the target that stands for one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileArea {
    pub(super) start_bytes: u64,
    pub(super) length_bytes: u64,
}

/// Areas of a target, in the order in which the job file names their files.
#[derive(Debug, Default)]
pub(super) struct FileLayout {
    areas: Vec<(String, FileArea)>,
    area_by_path: HashMap<String, usize>,
    /// Whether all areas are equal shares because the files need more space than the target has.
    is_shortened: bool,
}

impl FileLayout {
    /// Lays out the files of all sections on a target of this size; the layout is empty on a target
    /// with its own files. A file with a size in the job file gets that size, and the others share
    /// the rest equally. If the space does not suffice, all get equal shares.
    pub(super) fn new(file: &JobFile, room_bytes: Option<u64>) -> Self {
        let Some(room_bytes) = room_bytes else {
            return Self::default();
        };
        let needs = list_needs(file);
        let lengths: Vec<Option<u64>> = needs.iter().map(|(_, bytes)| *bytes).collect();
        let fitted = match needs.len() {
            0 | 1 => Some(vec![room_bytes; needs.len()]),
            _ => fit_lengths(&lengths, room_bytes),
        };
        let is_cut = fitted.is_none() && lengths.iter().any(Option::is_some);
        let share_bytes = room_bytes / (needs.len() as u64).max(1);
        let lengths = fitted.unwrap_or_else(|| vec![align_down(share_bytes); needs.len()]);
        let mut layout = Self {
            is_shortened: is_cut,
            ..Self::default()
        };
        let mut start_bytes = 0;
        for ((path, _), length_bytes) in needs.into_iter().zip(lengths) {
            let area = FileArea {
                start_bytes,
                length_bytes,
            };
            start_bytes += align_up(length_bytes).unwrap_or(length_bytes);
            layout.area_by_path.insert(path.clone(), layout.areas.len());
            layout.areas.push((path, area));
        }
        layout
    }

    pub(super) fn find_area(&self, path: &str) -> Option<FileArea> {
        self.area_by_path
            .get(path)
            .map(|number| self.areas[*number].1)
    }

    /// Returns the first byte of each area by the path of its file. The map is empty if one file
    /// occupies the whole target.
    pub(super) fn start_bytes_by_path(&self) -> BTreeMap<String, u64> {
        let areas = self.areas.iter().filter(|_| self.areas.len() > 1);
        areas
            .map(|(path, area)| (path.clone(), area.start_bytes))
            .collect()
    }

    /// Returns a note on the areas of the files; `None` if one file occupies the whole target.
    pub(super) fn describe_layout(&self) -> Option<String> {
        let count = self.areas.len();
        if count < 2 {
            return None;
        }
        let areas = self.areas.iter().take(FILES_SHOWN_MAX);
        let shown: Vec<String> = areas
            .map(|(path, area)| {
                let size = format_size(area.length_bytes);
                format!("{path}: {size} from byte {}", area.start_bytes)
            })
            .collect();
        let more = match count.saturating_sub(FILES_SHOWN_MAX) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let why = match self.is_shortened {
            true => ", in equal shares, since they need more than it has",
            false => "",
        };
        Some(format!(
            "the job file has {count} files and devices, and each is an area of the target{why} ({}{more})",
            shown.join("; ")
        ))
    }
}

/// Returns the lengths of the areas. Areas without a length share the rest. It is `None` if the
/// space does not suffice.
fn fit_lengths(lengths: &[Option<u64>], room_bytes: u64) -> Option<Vec<u64>> {
    let open = lengths.iter().filter(|length| length.is_none()).count() as u64;
    let sized = lengths.iter().flatten();
    let mut taken = sized.map(|length| align_up(*length));
    let taken = taken.try_fold(0u64, |sum, length| sum.checked_add(length?))?;
    let left_bytes = room_bytes.checked_sub(taken)?;
    let share_bytes = left_bytes.checked_div(open).map_or(0, align_down);
    let has_room = open == 0 || share_bytes >= ALIGNMENTS_BYTES[0];
    let each = lengths.iter().map(|length| length.unwrap_or(share_bytes));
    has_room.then(|| each.collect())
}

fn align_up(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(ALIGNMENTS_BYTES[0])
}

fn align_down(bytes: u64) -> u64 {
    let mut alignments = ALIGNMENTS_BYTES.into_iter();
    let alignment = alignments.find(|alignment| *alignment <= bytes);
    bytes - bytes % alignment.unwrap_or(1)
}

/// Lists all files with their size in the job file; `None` for a file that some section uses to the
/// end of the target.
fn list_needs(file: &JobFile) -> Vec<(String, Option<u64>)> {
    let mut needs: Vec<(String, Option<u64>)> = Vec::new();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for job in file.jobs.iter().filter(|job| needs_areas(job)) {
        for clone in 0..job.order.clone_count {
            let planned = plan::plan_files(job, clone, &BTreeMap::new());
            let lengths: HashMap<String, u64> = planned
                .into_iter()
                .flatten()
                .map(|file| (file.path, file.region.file_bytes))
                .collect();
            for path in plan::file_paths(job, clone) {
                let bytes = lengths.get(&path).copied();
                match numbers.get(&path) {
                    Some(number) => {
                        let known = &mut needs[*number].1;
                        *known = known.zip(bytes).map(|(known, bytes)| known.max(bytes));
                    }
                    None => {
                        numbers.insert(path.clone(), needs.len());
                        needs.push((path, bytes));
                    }
                }
            }
        }
    }
    needs
}

/// Reports whether a job reads or writes files that it names. The files of a log are its own, and a
/// file that grows needs no area.
fn needs_areas(job: &JobDefinition) -> bool {
    let engine = job.engine.engine;
    let has_data = engine.moves_data() && engine != IoEngine::Cpuio;
    has_data && !job.files.is_appended && job.iolog.replayed_path.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_file::{from_text, parse_text};
    use diskperf_fio::JobEnvironment;

    const MIB: u64 = 1 << 20;

    /// Each file as `path start length`, in MiB.
    fn layout(text: &str, room_bytes: u64) -> (Vec<String>, bool) {
        let file = parse_text(&from_text("x.fio", text, &[], &JobEnvironment::default()).unwrap())
            .unwrap();
        let layout = FileLayout::new(&file, Some(room_bytes));
        let shown = layout.areas.iter().map(|(path, area)| {
            let [start, length] = [area.start_bytes, area.length_bytes];
            format!(
                "{path} {} {}",
                start as f64 / MIB as f64,
                length as f64 / MIB as f64
            )
        });
        (shown.collect(), layout.is_shortened)
    }

    #[test]
    fn each_file_of_a_job_file_is_an_area_that_no_other_overlaps() {
        for (text, expected) in [
            // One file is all, whatever it needs.
            ("[a]\nfilename=/dev/a\n", &["/dev/a 0 100"][..]),
            (
                "[a]\nsize=1m\n[b]\nfilename=a.0.0\nsize=2m\n",
                &["a.0.0 0 100"],
            ),
            // Equal shares without a size.
            (
                "[a]\nfilename=/dev/b:/dev/a:/dev/c\n",
                &["/dev/b 0 33", "/dev/a 33 33", "/dev/c 66 33"],
            ),
            (
                "[a]\nfilename=/dev/a\n[b]\nstonewall\nfilename=/dev/b\n",
                &["/dev/a 0 50", "/dev/b 50 50"],
            ),
            ("[a]\nnumjobs=2\n", &["a.0.0 0 50", "a.1.0 50 50"]),
            (
                "[a]\nfilename=/dev/a:/dev/b\nsize=50%\n",
                &["/dev/a 0 50", "/dev/b 50 50"],
            ),
            // As large as they need to be, with the rest for those that say nothing.
            (
                "[a]\nsize=2560k\nnumjobs=2\n",
                &["a.0.0 0 2.5", "a.1.0 3 2.5"],
            ),
            (
                "[a]\nfilename=/dev/a\nsize=10m\noffset=10m\n[b]\nfilename=/dev/b\n",
                &["/dev/a 0 20", "/dev/b 20 80"],
            ),
            (
                "[a]\nfilename=/dev/a\nsize=10m\n[b]\nfilename=/dev/a\n[c]\nfilename=/dev/c\nsize=1m\n",
                &["/dev/a 0 99", "/dev/c 99 1"],
            ),
        ] {
            assert_eq!(
                layout(text, 100 * MIB),
                (
                    expected.iter().map(|area| (*area).to_owned()).collect(),
                    false
                ),
                "{text}"
            );
        }
        // More than there is: equal shares, of which each is used as far as it goes.
        let text = "[a]\nsize=60m\nnumjobs=2\n[b]\nsize=1m\n";
        let expected = ["a.0.0 0 33", "a.1.0 33 33", "b.0.0 66 33"];
        assert_eq!(
            layout(text, 100 * MIB),
            (expected.map(str::to_owned).to_vec(), true)
        );
    }
}
