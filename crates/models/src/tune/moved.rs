//! Amount of data that the programs of a search transfer.

use super::Search;
use super::over::Over;
use super::point::Subject;
use super::search::Share;
use crate::error::LaboratoryError;
use crate::plan::{ModelPlan, title};
use diskperf_catalogue::Catalogue;
use diskperf_timeline::units::{MIB, format_size};
use diskperf_timeline::{Setting, SizeChoice, Workload};

/// Default bytes that each program transfers on a modelled system whose drives have no cache.
const MODEL_BYTES: u64 = 2 * MIB;

/// Amount of data that the programs of a search transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// Each program transfers this many bytes.
    Bytes(u64),
    /// Each program transfers the amount that `run` uses, on drives with a cache of their own. A
    /// smaller stream would come from the cache, and the search would optimize for it.
    AsRun {
        /// Size of the largest cache of all points, in bytes. A stream that exceeds it exceeds the
        /// cache of every point. All points transfer the same amount, because otherwise they could
        /// not be compared.
        cache_bytes: u64,
    },
}

impl Moved {
    /// Determines the amount of data for a search from the caches of its points.
    pub(super) fn of(
        search: &Search,
        catalogue: &Catalogue,
        overs: &[Over],
    ) -> Result<Self, LaboratoryError> {
        if let SizeChoice::SizeBytes(bytes) = search.experiment.size_choice {
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

    /// Returns a remark for readers on the amount of data that the programs transfer.
    pub(super) fn told(self, search: &Search, today: &ModelPlan) -> Option<String> {
        let workload = &search.experiment.workload;
        if matches!(workload, Workload::JobFile(_) | Workload::Replay(_)) {
            return None;
        }
        match (self, search.experiment.size_choice) {
            (_, SizeChoice::SizeBytes(_)) => None,
            (Self::AsRun { cache_bytes }, SizeChoice::AutomaticSize) => Some(format!(
                "the programs transfer as much as in `run`{}; --size changes that",
                held(today, cache_bytes)
            )),
            (Self::Bytes(bytes), SizeChoice::AutomaticSize) => Some(format!(
                "the programs transfer at most {}, and more in `run`; --size changes that",
                format_size(bytes)
            )),
        }
    }
}

/// Returns the maximum cache size of a drive at any point, in bytes, from the value of each
/// parameter with the largest cache.
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

/// Names programs whose data the drive's cache may hold as a whole: streams that are read again,
/// and all writers. Only streams of suites are enlarged to exceed it.
fn held(today: &ModelPlan, cache_bytes: u64) -> String {
    let jobs = today.suite.iter_jobs().filter(|job| {
        let moved_bytes = today.moved_bytes(job);
        let values = job.program.parameter_values();
        let writes = values.get("write_share").is_some_and(|share| share != "0");
        let streams = job.program.name() == "sequential";
        moved_bytes <= cache_bytes && job.program.duration_max().is_none() && (streams || writes)
    });
    let titles: Vec<String> = jobs.map(title).collect();
    match titles.is_empty() {
        true => String::new(),
        false => format!(
            ", and the drive's cache of up to {} may hold all data of {}",
            format_size(cache_bytes),
            titles.join(", ")
        ),
    }
}
