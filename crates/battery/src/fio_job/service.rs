//! Choice of the file for the next I/O (`file_service_type`).

use crate::load::distribution::{Blocks, Distribution};
use crate::random::Draws;
use diskperf_fio::Job;
use diskperf_fio::job::FileServiceOrder;

const FILE_STREAM: u128 = 10;
/// Parts of each file for the popularity of files, as in fio.
const PARTS: u64 = 1 << 10;

/// Chooser of files in the order of `file_service_type`.
#[derive(Clone, Debug)]
pub(super) struct Service {
    order: FileServiceOrder,
    after_ios: u32,
    open_at_once: usize,
    files: usize,
    /// Files that are not done yet, in ascending order.
    live: Vec<usize>,
    current: Option<usize>,
    /// Further I/Os that go to the current file before the next file is chosen.
    left: u32,
    next: usize,
    popular: Option<Blocks>,
    random: Draws,
}

impl Service {
    pub(super) fn new(job: &Job, files: usize, seed: u64) -> Self {
        let service = job.files.service;
        let parts = files as u64 * PARTS;
        let popular = match service.order {
            FileServiceOrder::RoundRobin
            | FileServiceOrder::Sequential
            | FileServiceOrder::Random => None,
            FileServiceOrder::Zipf { theta } => Some(Distribution::Zipf { theta }),
            FileServiceOrder::Pareto { h } => Some(Distribution::Pareto { h }),
            FileServiceOrder::Normal { deviation } => Some(Distribution::Normal {
                deviation_percent: deviation,
            }),
        };
        Self {
            order: service.order,
            after_ios: service.after_ios.max(1),
            open_at_once: job.files.open_at_once.unwrap_or(u32::MAX) as usize,
            files,
            live: (0..files).collect(),
            current: None,
            left: 0,
            next: 0,
            popular: popular.map(|distribution| Blocks::unscattered(&distribution, parts)),
            random: Draws::new(seed, FILE_STREAM),
        }
    }

    /// Marks all files of the job as not done in the current pass.
    pub(super) fn reset(&mut self) {
        self.live = (0..self.files).collect();
        self.current = None;
        self.next = 0;
    }

    /// Reports whether files that are done start again, because they are chosen by popularity.
    pub(super) fn is_endless(&self) -> bool {
        self.popular.is_some()
    }

    /// Marks a file as done in the current pass.
    pub(super) fn done(&mut self, file: usize) {
        self.live.retain(|live| *live != file);
        if self.current == Some(file) {
            self.current = None;
        }
    }

    /// Returns the file of the next I/O, or `None` if all files are done.
    pub(super) fn next(&mut self) -> Option<usize> {
        if let Some(current) = self.current {
            if self.order == FileServiceOrder::Sequential {
                return Some(current);
            }
            if self.left > 0 {
                self.left -= 1;
                return Some(current);
            }
        }
        let open = &self.live[..self.live.len().min(self.open_at_once)];
        let first = *open.first()?;
        let file = match (&self.popular, self.order) {
            (Some(popular), _) => (popular.draw(&mut self.random) / PARTS) as usize,
            (None, FileServiceOrder::Random) => open[self.random.below(open.len() as u64) as usize],
            (None, _) => {
                let behind = open.partition_point(|file| *file < self.next);
                open.get(behind).copied().unwrap_or(first)
            }
        };
        self.next = file + 1;
        self.current = Some(file);
        self.left = self.after_ios - 1;
        Some(file)
    }
}
