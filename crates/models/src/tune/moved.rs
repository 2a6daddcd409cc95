//! Amount of data that the programs of a search transfer.

use super::TuningSearch;
use super::over::OverOption;
use super::point::TuningSubject;
use super::search::RunShare;
use crate::error::LaboratoryError;
use crate::plan::{ModelPlan, format_title};
use diskperf_catalogue::Catalogue;
use diskperf_timeline::units::{MIB, format_size};
use diskperf_timeline::{Setting, SizeChoice, Workload};

/// Default bytes that each program transfers on a modelled system whose drives have no cache.
const SEARCH_BYTES: u64 = 2 * MIB;

/// Amount of data that the programs of a search transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchSize {
    /// Each program transfers this many bytes.
    FixedBytes(u64),
    /// Each program transfers the amount that `run` uses, on drives with a cache of their own. A
    /// smaller stream would come from the cache, and the search would optimize for it.
    SameAsRun {
        /// Size of the largest cache of all points, in bytes. A stream that exceeds it exceeds the
        /// cache of every point. All points transfer the same amount, because otherwise they could
        /// not be compared.
        cache_bytes: u64,
    },
}

impl SearchSize {
    /// Determines the amount of data for a search from the caches of its points.
    pub(super) fn choose(
        search: &TuningSearch,
        catalogue: &Catalogue,
        overs: &[OverOption],
    ) -> Result<Self, LaboratoryError> {
        if let SizeChoice::SizeBytes(bytes) = search.experiment.size_choice {
            return Ok(Self::FixedBytes(bytes));
        }
        let subject = TuningSubject {
            catalogue,
            search,
            overs,
            search_size: Self::SameAsRun { cache_bytes: 0 },
        };
        Ok(match largest_cache_bytes(&subject)? {
            0 => Self::FixedBytes(SEARCH_BYTES),
            cache_bytes => Self::SameAsRun { cache_bytes },
        })
    }

    /// Returns a remark for readers on the amount of data that the programs transfer.
    pub(super) fn describe(self, search: &TuningSearch, today: &ModelPlan) -> Option<String> {
        let workload = &search.experiment.workload;
        if matches!(workload, Workload::JobFile(_) | Workload::Replay(_)) {
            return None;
        }
        match (self, search.experiment.size_choice) {
            (_, SizeChoice::SizeBytes(_)) => None,
            (Self::SameAsRun { cache_bytes }, SizeChoice::AutomaticSize) => Some(format!(
                "the programs transfer as much as in `run`{}; --size changes that",
                describe_cache_fit(today, cache_bytes)
            )),
            (Self::FixedBytes(bytes), SizeChoice::AutomaticSize) => Some(format!(
                "the programs transfer at most {}, and more in `run`; --size changes that",
                format_size(bytes)
            )),
        }
    }
}

/// Returns the maximum cache size of a drive at any point, in bytes, from the value of each
/// parameter with the largest cache.
fn largest_cache_bytes(subject: &TuningSubject<'_>) -> Result<u64, LaboratoryError> {
    let cache_bytes = |plan: &ModelPlan| {
        let drives = plan.computers[0].specification.drives.iter();
        drives.map(|drive| drive.cache_bytes()).max().unwrap_or(0)
    };
    let mut most_bytes = cache_bytes(&subject.plan_today()?);
    let mut together = Vec::new();
    let of_drives = subject.overs.iter();
    for over in of_drives.filter(|over| over.path.starts_with("drive.")) {
        // What is impossible is told when it is tried.
        let values = over.values.iter().filter_map(|value| {
            let setting = Setting::new(&over.path, value);
            let plan = subject
                .plan_with(vec![setting.clone()], RunShare::Full)
                .ok()?;
            Some((cache_bytes(&plan), setting))
        });
        if let Some((bytes, setting)) = values.max_by_key(|(bytes, _)| *bytes) {
            most_bytes = most_bytes.max(bytes);
            together.push(setting);
        }
    }
    let all = subject.plan_with(together, RunShare::Full);
    Ok(all.map_or(most_bytes, |plan| most_bytes.max(cache_bytes(&plan))))
}

/// Names programs whose data the drive's cache may hold as a whole: streams that are read again,
/// and all writers. Only streams of suites are enlarged to exceed it.
fn describe_cache_fit(today: &ModelPlan, cache_bytes: u64) -> String {
    let jobs = today.suite.iter_jobs().filter(|job| {
        let moved_bytes = today.moved_bytes(job);
        let values = job.program.parameter_values();
        let writes = values.get("write_share").is_some_and(|share| share != "0");
        let streams = job.program.name() == "sequential";
        moved_bytes <= cache_bytes && job.program.duration_max().is_none() && (streams || writes)
    });
    let titles: Vec<String> = jobs.map(format_title).collect();
    match titles.is_empty() {
        true => String::new(),
        false => format!(
            ", and the drive's cache of up to {} may hold all data of {}",
            format_size(cache_bytes),
            titles.join(", ")
        ),
    }
}
