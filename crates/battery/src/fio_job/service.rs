//! Which file is next.

use crate::load::distribution::{Blocks, Distribution};
use crate::random::Draws;
use diskperf_fio::Job;
use diskperf_fio::job::FileServiceOrder;

/// The random stream that files are drawn from.
const FILE_STREAM: u128 = 10;
/// Popularity is of this many parts of each file, as in fio.
const PARTS: u64 = 1 << 10;

/// Chooses files as `file_service_type` says.
#[derive(Clone, Debug)]
pub(super) struct Service {
    order: FileServiceOrder,
    after_ios: u32,
    open_at_once: usize,
    files: usize,
    /// Those that are not done, in order.
    live: Vec<usize>,
    current: Option<usize>,
    /// I/Os that the current one still gets.
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

    /// All files are there again.
    pub(super) fn reset(&mut self) {
        self.live = (0..self.files).collect();
        self.current = None;
        self.next = 0;
    }

    /// Whether files that are done begin again, because their order is one of popularity.
    pub(super) fn is_endless(&self) -> bool {
        self.popular.is_some()
    }

    /// A file is done.
    pub(super) fn done(&mut self, file: usize) {
        self.live.retain(|live| *live != file);
        if self.current == Some(file) {
            self.current = None;
        }
    }

    /// The file of the next I/O; nothing where all are done.
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
