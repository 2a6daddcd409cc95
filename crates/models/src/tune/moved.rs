//! How much the programs of a search move.

use super::Search;
use super::over::Over;
use super::point::Subject;
use super::search::Share;
use crate::error::LaboratoryError;
use crate::plan::{ModelPlan, title};
use diskperf_catalogue::Catalogue;
use diskperf_timeline::units::{MIB, format_size};
use diskperf_timeline::{Setting, SizeChoice, Workload};

/// What each program moves on a modelled system without a cache in its drives, unless the
/// user says how much.
const MODEL_BYTES: u64 = 2 * MIB;

/// How much programs move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// This much each.
    Bytes(u64),
    /// As much as in `run`, where a drive has a cache of its own: a smaller stream would
    /// come from that, and the search find what is best for a cache.
    AsRun {
        /// The largest cache of all points: what goes past that goes past each, and points
        /// that move different amounts are not to be compared.
        cache_bytes: u64,
    },
}

impl Moved {
    /// What a search has them move, by the target as it is.
    pub(super) fn of(
        search: &Search,
        catalogue: &Catalogue,
        overs: &[Over],
    ) -> Result<Self, LaboratoryError> {
        if let SizeChoice::Bytes(bytes) = search.experiment.size {
            return Ok(Self::Bytes(bytes));
        }
        let subject = Subject {
            catalogue,
            search,
            overs,
            moved: Self::AsRun { cache_bytes: 0 },
        };
        Ok(match largest_cache(&subject)? {
            0 => Self::Bytes(MODEL_BYTES),
            cache_bytes => Self::AsRun { cache_bytes },
        })
    }

    /// What a reader must know of it.
    pub(super) fn told(self, search: &Search, today: &ModelPlan) -> Option<String> {
        let workload = &search.experiment.workload;
        if matches!(workload, Workload::JobFile(_) | Workload::Replay(_)) {
            return None;
        }
        match (self, search.experiment.size) {
            (_, SizeChoice::Bytes(_)) => None,
            (Self::AsRun { cache_bytes }, SizeChoice::Auto) => Some(format!(
                "the programs move as much as in `run`{}; --size says another size",
                held(today, cache_bytes)
            )),
            (Self::Bytes(bytes), SizeChoice::Auto) => Some(format!(
                "the programs move {} at most, and more in `run`; --size says another size",
                format_size(bytes)
            )),
        }
    }
}

/// The most that a drive's cache holds at any point, by the value of each parameter that
/// gives the most.
fn largest_cache(subject: &Subject<'_>) -> Result<u64, LaboratoryError> {
    let cache_bytes = |plan: &ModelPlan| {
        let drives = plan.computers[0].specification.drives.iter();
        drives.map(|drive| drive.cache_bytes()).max().unwrap_or(0)
    };
    let mut most_bytes = cache_bytes(&subject.today()?);
    let mut together = Vec::new();
    let of_drives = subject.overs.iter();
    for over in of_drives.filter(|over| over.path.starts_with("drive.")) {
        // What is impossible is told when it is tried.
        let values = over.values.iter().filter_map(|value| {
            let setting = Setting::new(&over.path, value);
            let plan = subject.with(vec![setting.clone()], Share::Full).ok()?;
            Some((cache_bytes(&plan), setting))
        });
        if let Some((bytes, setting)) = values.max_by_key(|(bytes, _)| *bytes) {
            most_bytes = most_bytes.max(bytes);
            together.push(setting);
        }
    }
    let all = subject.with(together, Share::Full);
    Ok(all.map_or(most_bytes, |plan| most_bytes.max(cache_bytes(&plan))))
}

/// Programs that move so little that the drive's cache may hold it: a stream that is read
/// again, and all that is written. Only streams of suites are made to go past it.
fn held(today: &ModelPlan, cache_bytes: u64) -> String {
    let jobs = today.suite.jobs().filter(|job| {
        let moved_bytes = today.moved_bytes(job);
        let values = job.program.parameter_values();
        let writes = values.get("write_share").is_some_and(|share| share != "0");
        let streams = job.program.name() == "sequential";
        moved_bytes <= cache_bytes && job.program.lasts().is_none() && (streams || writes)
    });
    let titles: Vec<String> = jobs.map(title).collect();
    match titles.is_empty() {
        true => String::new(),
        false => format!(
            ", and the drive's cache, of up to {}, may hold all that is moved by {}",
            format_size(cache_bytes),
            titles.join(", ")
        ),
    }
}
