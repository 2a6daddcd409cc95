//! fio options for the contents of the report, and options that only affect its format or time
//! stamps.

use std::sync::Arc;

use super::{OptionKey, applied_option, ineffective_option};
use crate::job::DirectionReporting;
use crate::number::UnitBase;
use crate::value::OptionValue;
use diskperf_diagnostics::Problem;

const OWN_CLOCK: &str = "diskperf times every I/O with its own clock";
const NO_LOGS: &str = "diskperf writes no logs; its store keeps what they would hold";
const KERNEL_PLACEMENT: &str = "the kernel assigns workers to processors";
const COMMAND_PRIORITY: &str = "workers run at the priority of the diskperf process";
const OWN_BUFFERS: &str = "diskperf allocates its own buffers";

/// Maximum number of percentiles that fio keeps.
const PERCENTILES_MAX: usize = 20;

pub(super) const OPTIONS: &[OptionKey] = &[
    applied_option("description", |job, w| {
        job.description = Some(w.value()?.text().to_owned());
        Ok(())
    }),
    applied_option("kb_base", |job, w| {
        let choices = [("1024", UnitBase::Inverted), ("1000", UnitBase::Si)];
        job.unit_base = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    applied_option("group_reporting", |job, w| {
        job.report.is_grouped = w.parse_flag()?;
        Ok(())
    }),
    applied_option("unified_rw_reporting", |job, w| {
        let choices = [
            ("none", DirectionReporting::Separate),
            ("0", DirectionReporting::Separate),
            ("mixed", DirectionReporting::Mixed),
            ("1", DirectionReporting::Mixed),
            ("both", DirectionReporting::SeparateAndMixed),
            ("2", DirectionReporting::SeparateAndMixed),
        ];
        job.report.direction_reporting = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    applied_option("percentile_list", |job, w| {
        let mut percentiles = parse_percentiles(&w.value()?)?;
        percentiles.sort_by(f64::total_cmp);
        job.report.percentiles = Arc::from(percentiles);
        Ok(())
    }),
    applied_option("slat_percentiles", |job, w| {
        job.report.reports_submission = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("clat_percentiles", |job, w| {
        job.report.reports_completion = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("lat_percentiles", |job, w| {
        job.report.reports_total = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("stats", |job, w| {
        job.report.is_reported = w.value()?.parse_boolean()?;
        Ok(())
    }),
    ineffective_option("unit_base", "the report uses diskperf's table format"),
    ineffective_option(
        "significant_figures",
        "the report uses diskperf's table format",
    ),
    ineffective_option("block_error_percentiles", "diskperf counts block errors"),
    ineffective_option("clocksource", OWN_CLOCK),
    ineffective_option("gtod_reduce", OWN_CLOCK),
    ineffective_option("gtod_cpu", OWN_CLOCK),
    ineffective_option("disable_lat", OWN_CLOCK),
    ineffective_option("disable_clat", OWN_CLOCK),
    ineffective_option("disable_slat", OWN_CLOCK),
    ineffective_option("disable_bw_measurement", OWN_CLOCK).with_aliases(&["disable_bw"]),
    ineffective_option("disk_util", "diskperf reports its own I/O counts"),
    ineffective_option("error_dump", "every error is reported with its place"),
    ineffective_option("per_job_logs", NO_LOGS),
    ineffective_option("write_bw_log", NO_LOGS),
    ineffective_option("write_lat_log", NO_LOGS),
    ineffective_option("write_iops_log", NO_LOGS),
    ineffective_option("write_hist_log", NO_LOGS),
    ineffective_option("bwavgtime", NO_LOGS),
    ineffective_option("iopsavgtime", NO_LOGS),
    ineffective_option("log_entries", NO_LOGS),
    ineffective_option("log_avg_msec", NO_LOGS),
    ineffective_option("log_hist_msec", NO_LOGS),
    ineffective_option("log_hist_coarseness", NO_LOGS),
    ineffective_option("log_max_value", NO_LOGS),
    ineffective_option("log_window_value", NO_LOGS),
    ineffective_option("log_offset", NO_LOGS),
    ineffective_option("log_prio", NO_LOGS),
    ineffective_option("log_issue_time", NO_LOGS),
    ineffective_option("log_compression", NO_LOGS),
    ineffective_option("log_compression_cpus", NO_LOGS),
    ineffective_option("log_store_compressed", NO_LOGS),
    ineffective_option("log_unix_epoch", NO_LOGS),
    ineffective_option("log_alternate_epoch", NO_LOGS),
    ineffective_option("log_alternate_epoch_clock_id", NO_LOGS),
    ineffective_option("cpumask", KERNEL_PLACEMENT),
    ineffective_option("cpus_allowed", KERNEL_PLACEMENT),
    ineffective_option("cpus_allowed_policy", KERNEL_PLACEMENT),
    ineffective_option("numa_cpu_nodes", KERNEL_PLACEMENT),
    ineffective_option("numa_mem_policy", KERNEL_PLACEMENT),
    ineffective_option("nice", COMMAND_PRIORITY),
    ineffective_option("prio", COMMAND_PRIORITY),
    ineffective_option("prioclass", COMMAND_PRIORITY),
    ineffective_option("mem", OWN_BUFFERS).with_aliases(&["iomem"]),
    ineffective_option("iomem_align", OWN_BUFFERS).with_aliases(&["mem_align"]),
    ineffective_option("hugepage-size", OWN_BUFFERS),
    ineffective_option("lockmem", OWN_BUFFERS),
];

/// Reads a list of percentiles as fio does: the leading number of each part, up to the first part
/// without a number from 0 to 100. fio silently ignores the rest, and a note says so.
fn parse_percentiles(list: &OptionValue<'_>) -> Result<Vec<f64>, Problem> {
    let parts = list.split(&[':']);
    if parts.len() > PERCENTILES_MAX {
        let title = format!("more than {PERCENTILES_MAX} percentiles");
        return Err(parts[PERCENTILES_MAX].error(title, "fio leaves the rest out"));
    }
    let is_percentile = |number: &f64| (0.0..=100.0).contains(number);
    let read = parts
        .iter()
        .map_while(|part| part.parse_leading_float().filter(is_percentile));
    let read: Vec<f64> = read.collect();
    if read.is_empty() {
        return Err(parts[0]
            .parse_float(0.0..=100.0)
            .err()
            .unwrap_or_else(|| parts[0].error("percentile_list is empty", "fio drops the job")));
    }
    let is_read_whole = |part: &OptionValue<'_>| part.parse_float(0.0..=100.0).is_ok();
    if read.len() < parts.len() || !parts.iter().all(is_read_whole) {
        let kept: Vec<String> = read.iter().map(f64::to_string).collect();
        let title = format!(
            "fio reads percentile_list={} and says nothing",
            kept.join(":")
        );
        list.warn(title, "separate percentiles by colons: 50:95:99");
    }
    Ok(read)
}
