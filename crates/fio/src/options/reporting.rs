//! fio options for the contents of the report, and options that only affect its format or time
//! stamps.

use std::sync::Arc;

use super::{OptionKey, harmless, honoured};
use crate::job::DirectionReporting;
use crate::number::Base;
use crate::value::Value;
use diskperf_diagnostics::Problem;

const OWN_CLOCK: &str = "diskperf times every I/O with its own clock";
const NO_LOGS: &str = "diskperf writes no logs; its store keeps what they would hold";
const KERNEL_PLACEMENT: &str = "the kernel assigns workers to processors";
const COMMAND_PRIORITY: &str = "workers run at the priority of the diskperf process";
const OWN_BUFFERS: &str = "diskperf allocates its own buffers";

/// Maximum number of percentiles that fio keeps.
const PERCENTILES_MAX: usize = 20;

pub(super) const OPTIONS: &[OptionKey] = &[
    honoured("description", |job, w| {
        job.description = Some(w.value()?.text().to_owned());
        Ok(())
    }),
    honoured("kb_base", |job, w| {
        let choices = [("1024", Base::Inverted), ("1000", Base::Si)];
        job.base = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    honoured("group_reporting", |job, w| {
        job.report.by_group = w.flag()?;
        Ok(())
    }),
    honoured("unified_rw_reporting", |job, w| {
        let choices = [
            ("none", DirectionReporting::Apart),
            ("0", DirectionReporting::Apart),
            ("mixed", DirectionReporting::Mixed),
            ("1", DirectionReporting::Mixed),
            ("both", DirectionReporting::Both),
            ("2", DirectionReporting::Both),
        ];
        job.report.unified = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    honoured("percentile_list", |job, w| {
        let mut percentiles = parse_percentiles(&w.value()?)?;
        percentiles.sort_by(f64::total_cmp);
        job.report.percentiles = Arc::from(percentiles);
        Ok(())
    }),
    honoured("slat_percentiles", |job, w| {
        job.report.reports_submission = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("clat_percentiles", |job, w| {
        job.report.reports_completion = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("lat_percentiles", |job, w| {
        job.report.reports_total = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("stats", |job, w| {
        job.report.is_reported = w.value()?.boolean()?;
        Ok(())
    }),
    harmless("unit_base", "the report uses diskperf's table format"),
    harmless(
        "significant_figures",
        "the report uses diskperf's table format",
    ),
    harmless("block_error_percentiles", "diskperf counts block errors"),
    harmless("clocksource", OWN_CLOCK),
    harmless("gtod_reduce", OWN_CLOCK),
    harmless("gtod_cpu", OWN_CLOCK),
    harmless("disable_lat", OWN_CLOCK),
    harmless("disable_clat", OWN_CLOCK),
    harmless("disable_slat", OWN_CLOCK),
    harmless("disable_bw_measurement", OWN_CLOCK).with_aliases(&["disable_bw"]),
    harmless("disk_util", "diskperf reports its own I/O counts"),
    harmless("error_dump", "every error is reported with its place"),
    harmless("per_job_logs", NO_LOGS),
    harmless("write_bw_log", NO_LOGS),
    harmless("write_lat_log", NO_LOGS),
    harmless("write_iops_log", NO_LOGS),
    harmless("write_hist_log", NO_LOGS),
    harmless("bwavgtime", NO_LOGS),
    harmless("iopsavgtime", NO_LOGS),
    harmless("log_entries", NO_LOGS),
    harmless("log_avg_msec", NO_LOGS),
    harmless("log_hist_msec", NO_LOGS),
    harmless("log_hist_coarseness", NO_LOGS),
    harmless("log_max_value", NO_LOGS),
    harmless("log_window_value", NO_LOGS),
    harmless("log_offset", NO_LOGS),
    harmless("log_prio", NO_LOGS),
    harmless("log_issue_time", NO_LOGS),
    harmless("log_compression", NO_LOGS),
    harmless("log_compression_cpus", NO_LOGS),
    harmless("log_store_compressed", NO_LOGS),
    harmless("log_unix_epoch", NO_LOGS),
    harmless("log_alternate_epoch", NO_LOGS),
    harmless("log_alternate_epoch_clock_id", NO_LOGS),
    harmless("cpumask", KERNEL_PLACEMENT),
    harmless("cpus_allowed", KERNEL_PLACEMENT),
    harmless("cpus_allowed_policy", KERNEL_PLACEMENT),
    harmless("numa_cpu_nodes", KERNEL_PLACEMENT),
    harmless("numa_mem_policy", KERNEL_PLACEMENT),
    harmless("nice", COMMAND_PRIORITY),
    harmless("prio", COMMAND_PRIORITY),
    harmless("prioclass", COMMAND_PRIORITY),
    harmless("mem", OWN_BUFFERS).with_aliases(&["iomem"]),
    harmless("iomem_align", OWN_BUFFERS).with_aliases(&["mem_align"]),
    harmless("hugepage-size", OWN_BUFFERS),
    harmless("lockmem", OWN_BUFFERS),
];

/// Reads a list of percentiles as fio does: the leading number of each part, up to the first part
/// without a number from 0 to 100. fio silently ignores the rest, and a note says so.
fn parse_percentiles(list: &Value<'_>) -> Result<Vec<f64>, Problem> {
    let parts = list.split(&[':']);
    if parts.len() > PERCENTILES_MAX {
        let title = format!("more than {PERCENTILES_MAX} percentiles");
        return Err(parts[PERCENTILES_MAX].problem(title, "fio leaves the rest out"));
    }
    let is_percentile = |number: &f64| (0.0..=100.0).contains(number);
    let read = parts
        .iter()
        .map_while(|part| part.leading_float().filter(is_percentile));
    let read: Vec<f64> = read.collect();
    if read.is_empty() {
        return Err(parts[0]
            .float(0.0..=100.0)
            .err()
            .unwrap_or_else(|| parts[0].problem("percentile_list is empty", "fio drops the job")));
    }
    let is_read_whole = |part: &Value<'_>| part.float(0.0..=100.0).is_ok();
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
