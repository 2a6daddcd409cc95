//! Run with all derived figures, computed once per report.

use crate::summary::{ResultSummary, generator_share_if_limiting};
use diskperf_timeline::{ProgramResult, Run};

/// Run with its summaries, ready to be printed.
pub(super) struct RunView<'a> {
    pub(super) run: &'a Run,
    /// Name of the run in the report: its label or what was measured, with the id where neither is
    /// unique.
    pub(super) name: String,
    /// Rows of the run in the order of the suite's table.
    pub(super) rows: Vec<ResultRow<'a>>,
}

/// Row of the report: one result with its summary.
pub(super) struct ResultRow<'a> {
    pub(super) result: &'a ProgramResult,
    pub(super) title: String,
    pub(super) summary: ResultSummary,
    /// Share of the load generator in a call's time, by [`generator_limited`]. Absent for
    /// `/dev/null` and `/dev/zero`, which measure just that, and for several requests in flight,
    /// whose CPU time shows it.
    pub(super) generator_share: Option<f64>,
}

impl<'a> RunView<'a> {
    pub(super) fn from_runs(runs: &'a [Run]) -> Vec<Self> {
        let view = |run| Self {
            run,
            name: choose_run_name(run, runs),
            rows: ResultRow::build_rows(run),
        };
        runs.iter().map(view).collect()
    }
}

/// Returns the name of a run among others: its label, or what was measured where several share the
/// label, as the runs of one command do. The id is added where that is not unique either.
fn choose_run_name(run: &Run, runs: &[Run]) -> String {
    let by_label = |run: &Run| {
        run.user_label
            .clone()
            .unwrap_or_else(|| run.measured_description())
    };
    let is_unique = |name: &dyn Fn(&Run) -> String| {
        let same = runs.iter().filter(|other| name(other) == name(run));
        same.count() == 1
    };
    if is_unique(&by_label) {
        by_label(run)
    } else if is_unique(&Run::measured_description) {
        run.measured_description()
    } else {
        format!("{} [{}]", by_label(run), run.run_id)
    }
}

impl RunView<'_> {
    /// Tests whether any program of the run has a figure.
    pub(super) fn is_measured(&self) -> bool {
        self.rows.iter().any(|row| row.summary.kept_count > 0)
    }

    /// Returns the title of a row. Where the report has several runs, it includes the run's name.
    pub(super) fn format_row_title(&self, row: &ResultRow<'_>, views: usize) -> String {
        match views {
            1 => row.title.clone(),
            _ => format!("{}, {}", row.title, self.name),
        }
    }
}

impl<'a> ResultRow<'a> {
    fn build_rows(run: &'a Run) -> Vec<Self> {
        let mut results: Vec<&ProgramResult> = run.results.iter().collect();
        results.sort_by_key(|result| result.table_row);
        let row = |result: &'a ProgramResult| {
            let summary = ResultSummary::summarize_in_world(run.world, result);
            let storage = crate::layers::ReadLayer::from_result(result)
                .is_none_or(|layer| layer.has_storage());
            let generator_share = run
                .overhead
                .filter(|_| storage && summary.load.is_none())
                .and_then(|overhead| generator_share_if_limiting(&summary, &overhead));
            Self {
                result,
                title: result.display_title(),
                summary,
                generator_share,
            }
        };
        results.into_iter().map(row).collect()
    }
}
