//! Consistency checks of verification options with block sizes and other options.

use crate::job::{BlockSizeChoice, Direction, JobDefinition, Verification};
use crate::verify;
use diskperf_diagnostics::Problem;

/// Adjusts verification options as fio does; `clones_before` is the number of clones of the jobs
/// above.
pub(super) fn apply_dependencies(
    job: &mut JobDefinition,
    clones_before: u32,
    warnings: &mut Vec<Problem>,
) {
    let says_kind = job.has_option("verify");
    let verify = &mut job.verify;
    if verify.pattern.is_some() && !says_kind {
        verify.kind = Verification::HeaderAndPattern;
    }
    if verify.kind == Verification::None {
        return;
    }
    verify.preceding_clones = clones_before;
    let writes = job.pattern.access.includes(Direction::Write);
    if job.durations.is_time_based && writes && job.verify.backlog == 0 && !job.verify.only_verifies
    {
        let warning = Problem::warning("verify with time_based writes does not read anything back")
            .at(
                job.option_place("verify"),
                "the writes use the entire runtime",
            )
            .help("remove `time_based`, or add `verify_backlog=`");
        warnings.push(warning);
    }
}

/// Rejects verification of workloads that cannot be verified.
pub(super) fn report_contradictions(
    job: &JobDefinition,
    refuse: &mut impl FnMut(&str, &str, &str, &str),
) {
    let verify = &job.verify;
    if verify.kind == Verification::Pattern && verify.pattern.is_none() {
        let title = "verify=pattern needs verify_pattern";
        let label = "there is no pattern to compare with";
        refuse("verify", title, label, "add `verify_pattern=`");
    }
    let header_bytes = verify::header_bytes_of_kind(verify.kind) as u64;
    if header_bytes == 0 {
        return;
    }
    let direction = match job.pattern.access.includes(Direction::Write) {
        true => Direction::Write,
        false => Direction::Read,
    };
    let sizes = job.blocks.choice(direction);
    let (smallest_bytes, _) = sizes.bounds_bytes();
    let interval_bytes = match verify::header_interval_of_job(job) as u64 {
        0 => smallest_bytes,
        interval => interval,
    };
    let offset_bytes = u64::from(verify.offset_bytes);
    let kind = verify.kind.name();
    if interval_bytes < header_bytes {
        let label = format!(
            "a header of {kind} takes {header_bytes} bytes, and there is one in each {interval_bytes}"
        );
        let title = "the blocks are too small for verification";
        let help = "use a larger bs or verify_interval, or `verify=crc32c`";
        refuse("verify", title, &label, help);
    } else if offset_bytes > 0 && offset_bytes < header_bytes {
        let label =
            format!("a header of {kind} takes {header_bytes} bytes, and would overlap itself");
        let help = format!("use {header_bytes} or more");
        refuse(
            "verify_offset",
            "verify_offset is inside the header",
            &label,
            &help,
        );
    } else if offset_bytes + header_bytes > interval_bytes {
        let label = format!(
            "a header of {kind} takes {header_bytes} bytes, and the block ends at {interval_bytes}; it would overwrite the following data"
        );
        let help = format!("use {} or less", interval_bytes - header_bytes);
        refuse(
            "verify_offset",
            "the header does not fit into its block",
            &label,
            &help,
        );
    }
    let is_divided = match sizes {
        BlockSizeChoice::Fixed(bytes) => bytes.is_multiple_of(interval_bytes),
        BlockSizeChoice::Range { .. } => !job.blocks.allows_unaligned,
        BlockSizeChoice::Weighted(parts) => {
            let mut parts = parts.iter();
            parts.all(|part| part.bytes.is_multiple_of(interval_bytes))
        }
    };
    if !is_divided {
        let label = format!("there is a header in each {interval_bytes} bytes of a block");
        let title = "the block size is not a multiple of the verify interval";
        refuse(
            "verify",
            title,
            &label,
            "use a block size that is a multiple of it",
        );
    }
}
