//! Output formats, and the functions that render in them.

use clap::ValueEnum;
use diskperf_analysis::report::{self, FioFormat, NoRequests, ReportFormat};
use diskperf_laboratory::{LaboratoryError, Plan};
use diskperf_timeline::Run;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    Table,
    Json,
    Csv,
    Markdown,
}

/// Output format of runs: diskperf's own formats, or those of fio.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    Table,
    Json,
    Csv,
    Markdown,
    FioJson,
    #[value(name = "fio-json+")]
    FioJsonPlus,
}

impl RunFormat {
    /// Returns the equivalent general format; `None` for a format of fio.
    pub(crate) fn output_format(self) -> Option<OutputFormat> {
        match self {
            Self::Table => Some(OutputFormat::Table),
            Self::Json => Some(OutputFormat::Json),
            Self::Csv => Some(OutputFormat::Csv),
            Self::Markdown => Some(OutputFormat::Markdown),
            Self::FioJson | Self::FioJsonPlus => None,
        }
    }

    pub(crate) fn reject_unsupported(self, plans: &[Plan]) -> Result<(), LaboratoryError> {
        let mut plans = plans.iter().filter(|_| self.output_format().is_none());
        match plans.find(|plan| !plan.records_requests()) {
            None => Ok(()),
            Some(plan) => Err(Self::unsupported_error(NoRequests(plan.format_title()))),
        }
    }

    fn unsupported_error(error: NoRequests) -> LaboratoryError {
        LaboratoryError::Request(format!("{error}; omit --format, or give --format json"))
    }

    pub(crate) fn render_runs(self, runs: &[Run], width: u16) -> Result<String, LaboratoryError> {
        let fio = |format| report::render_fio_json(runs, format).map_err(Self::unsupported_error);
        match self {
            Self::FioJson => fio(FioFormat::Json),
            Self::FioJsonPlus => fio(FioFormat::JsonPlus),
            Self::Table => Ok(report::render_runs(runs, ReportFormat::Table, width)),
            Self::Json => Ok(report::render_runs(runs, ReportFormat::Json, width)),
            Self::Csv => Ok(report::render_runs(runs, ReportFormat::Csv, width)),
            Self::Markdown => Ok(report::render_runs(runs, ReportFormat::Markdown, width)),
        }
    }
}

impl From<OutputFormat> for ReportFormat {
    fn from(format: OutputFormat) -> Self {
        match format {
            OutputFormat::Table => Self::Table,
            OutputFormat::Json => Self::Json,
            OutputFormat::Csv => Self::Csv,
            OutputFormat::Markdown => Self::Markdown,
        }
    }
}
