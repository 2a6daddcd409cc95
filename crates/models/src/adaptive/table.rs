//! Page with the comparison of adaptive and fixed settings.

use super::{BestOverAll, CachePolicy, PolicyByClass, SetRow, WorkloadSet, WorkloadTimes};
use std::fmt::Write;

/// Introductory text of the page with the comparison.
pub const TABLE_PREAMBLE: &str = "\
# A controller that chooses its cache bits by itself

Made by `bench/adaptive`, never by hand. On the modelled `sun3-rimfire-2344`, each
workload with `controller.adaptive`, with all 600 of the 1,536 combinations of the
eight bits and 0, 10, 30, 60, 100 or 244 sectors of read-ahead that do not
contradict themselves, the same for all three classes of accesses, and then class
by class (raw / file / file_part): from the best, the best step of one bit or one
distance of one class, until none is better. Settings that could not show, because
a run never asked for what they differ in, are not run again.

Seconds until all programs have ended, in the second of two passes; of changes in
mid-run, in the first. \"Of the best\" is the best setting's time over the adaptive
controller's, 100 % where it is as fast, more where it is faster. \"At first\" is
the same of the first pass, in which it had everything to learn.

";

/// Formats a section of the page: the results of each workload, and the setting that is best for
/// all of them.
pub fn render_table(title: &str, set: &WorkloadSet) -> String {
    let mut page = format!("## {title}\n\n");
    page += "| workload | adaptive, s | best for all classes, s | | best by class, s | | of the best | at first |\n";
    page += "|---|---:|---:|---|---:|---|---:|---:|\n";
    for row in &set.rows {
        page += &render_line(row);
    }
    let BestOverAll {
        policy,
        time_ratio: ratio,
        by_class: searched,
    } = &set.best_over_all;
    let least = set.rows.iter().min_by(|one, other| {
        one.share_of_best_policy()
            .total_cmp(&other.share_of_best_policy())
    });
    if let Some(least) = least {
        let _ = write!(
            page,
            "\nLeast of the best: {}, {}. ",
            format_percent(least.share_of_best_policy()),
            least.workload().name
        );
    }
    let _ = write!(
        page,
        "Geometric mean over all: the fixed setting that is best over all, {}, takes {ratio:.3} times as long as the controller that adapts",
        format_policy(policy)
    );
    if let Some((policies, ratio)) = searched {
        let policies = format_policies(policies);
        let _ = write!(
            page,
            "; searched from there class by class, {policies}, {ratio:.3} times"
        );
    }
    let _ = write!(page, ". Machines run: {}.\n\n", set.run_count());
    page
}

fn render_line(row: &SetRow) -> String {
    let seconds = |took: &WorkloadTimes| format!("{:.2}", took.counted_seconds(row.workload()));
    let first = match row.workload().counts_first_phase {
        true => String::new(),
        false => format_percent(row.share_of_first_policy()),
    };
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {first} |\n",
        row.workload().name.replace('|', "\\|"),
        seconds(&row.adaptive_times),
        seconds(&row.best_policy.1),
        format_policy(&row.best_policy.0),
        seconds(&row.best_by_class.1),
        match row.best_by_class.0 == [row.best_policy.0; 3] {
            true => "the same".to_owned(),
            false => format_policies(&row.best_by_class.0),
        },
        format_percent(row.share_of_best_policy()),
    )
}

fn format_percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn format_policy(policy: &CachePolicy) -> String {
    let bits = policy.format_bits().replace('|', "\\|");
    format!("{bits} {}", policy.read_ahead_sectors)
}

fn format_policies(policies: &PolicyByClass) -> String {
    let all: Vec<String> = policies.iter().map(format_policy).collect();
    all.join(" / ")
}
