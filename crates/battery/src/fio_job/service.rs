//! Choice of the file for the next I/O (`file_service_type`).

use crate::load::distribution::{AccessDistribution, BlockDraws};
use crate::random::RandomDraws;
use diskperf_fio::JobDefinition;
use diskperf_fio::job::FileServiceOrder;

const FILE_STREAM: u128 = 10;
/// Parts of each file for the popularity of files, as in fio.
const POPULARITY_PART_COUNT: u64 = 1 << 10;

/// Chooser of files in the order of `file_service_type`.
#[derive(Clone, Debug)]
pub(super) struct FileService {
    service_order: FileServiceOrder,
    ios_per_turn: u32,
    open_files_max: usize,
    file_count: usize,
    /// Files that are not done yet, in ascending order.
    unfinished_files: Vec<usize>,
    current_file: Option<usize>,
    /// Further I/Os that go to the current file before the next file is chosen.
    remaining_ios_in_turn: u32,
    next_index: usize,
    popularity: Option<BlockDraws>,
    random: RandomDraws,
}

impl FileService {
    pub(super) fn new(job: &JobDefinition, files: usize, seed: u64) -> Self {
        let service = job.files.service;
        let parts = files as u64 * POPULARITY_PART_COUNT;
        let popular = match service.order {
            FileServiceOrder::RoundRobin
            | FileServiceOrder::Sequential
            | FileServiceOrder::Random => None,
            FileServiceOrder::Zipf { theta } => Some(AccessDistribution::Zipf { theta }),
            FileServiceOrder::Pareto { h } => Some(AccessDistribution::Pareto { h }),
            FileServiceOrder::Normal { deviation } => Some(AccessDistribution::Normal {
                deviation_percent: deviation,
            }),
        };
        Self {
            service_order: service.order,
            ios_per_turn: service.ios_per_file.max(1),
            open_files_max: job.files.open_files_max.unwrap_or(u32::MAX) as usize,
            file_count: files,
            unfinished_files: (0..files).collect(),
            current_file: None,
            remaining_ios_in_turn: 0,
            next_index: 0,
            popularity: popular
                .map(|distribution| BlockDraws::new_unscattered(&distribution, parts)),
            random: RandomDraws::new(seed, FILE_STREAM),
        }
    }

    /// Marks all files of the job as not done in the current pass.
    pub(super) fn reset_files(&mut self) {
        self.unfinished_files = (0..self.file_count).collect();
        self.current_file = None;
        self.next_index = 0;
    }

    /// Reports whether files that are done start again, because they are chosen by popularity.
    pub(super) fn restarts_files(&self) -> bool {
        self.popularity.is_some()
    }

    /// Marks a file as done in the current pass.
    pub(super) fn finish_file(&mut self, file: usize) {
        self.unfinished_files.retain(|live| *live != file);
        if self.current_file == Some(file) {
            self.current_file = None;
        }
    }

    /// Returns the file of the next I/O, or `None` if all files are done.
    pub(super) fn next_file(&mut self) -> Option<usize> {
        if let Some(current) = self.current_file {
            if self.service_order == FileServiceOrder::Sequential {
                return Some(current);
            }
            if self.remaining_ios_in_turn > 0 {
                self.remaining_ios_in_turn -= 1;
                return Some(current);
            }
        }
        let open = &self.unfinished_files[..self.unfinished_files.len().min(self.open_files_max)];
        let first = *open.first()?;
        let file = match (&self.popularity, self.service_order) {
            (Some(popular), _) => {
                (popular.draw_block(&mut self.random) / POPULARITY_PART_COUNT) as usize
            }
            (None, FileServiceOrder::Random) => {
                open[self.random.draw_below(open.len() as u64) as usize]
            }
            (None, _) => {
                let behind = open.partition_point(|file| *file < self.next_index);
                open.get(behind).copied().unwrap_or(first)
            }
        };
        self.next_index = file + 1;
        self.current_file = Some(file);
        self.remaining_ios_in_turn = self.ios_per_turn - 1;
        Some(file)
    }
}
