//! Consistency checks of verification options with block sizes and other options.

use crate::job::{Direction, Job, Sizes, Verification};
use crate::verify;
use diskperf_diagnostics::Problem;

/// Adjusts verification options as fio does; `clones_before` is the number of clones of the jobs
/// above.
pub(super) fn apply_dependencies(job: &mut Job, clones_before: u32, warnings: &mut Vec<Problem>) {
    let says_kind = job.says("verify");
    let verify = &mut job.verify;
    if verify.pattern.is_some() && !says_kind {
        verify.kind = Verification::HeaderAndPattern;
    }
    if verify.kind == Verification::None {
        return;
    }
    verify.clones_before = clones_before;
    let writes = job.pattern.access.does(Direction::Write);
    if job.times.time_based && writes && job.verify.backlog == 0 && !job.verify.only {
        let warning = Problem::warning("verify with time_based writes reads nothing back")
            .at(job.place_of("verify"), "the writes use all of the runtime")
            .help("remove `time_based`, or add `verify_backlog=`");
        warnings.push(warning);
    }
}

/// Rejects verification of workloads that cannot be verified.
pub(super) fn report_contradictions(job: &Job, refuse: &mut impl FnMut(&str, &str, &str, &str)) {
    let verify = &job.verify;
    if verify.kind == Verification::Pattern && verify.pattern.is_none() {
        let title = "verify=pattern without a verify_pattern";
        let label = "there is nothing to compare with";
        refuse("verify", title, label, "add `verify_pattern=`");
    }
    let header_bytes = verify::header_bytes(verify.kind) as u64;
    if header_bytes == 0 {
        return;
    }
    let direction = match job.pattern.access.does(Direction::Write) {
        true => Direction::Write,
        false => Direction::Read,
    };
    let sizes = job.blocks.sizes(direction);
    let (smallest_bytes, _) = sizes.bounds();
    let interval_bytes = match verify::interval_bytes(job) as u64 {
        0 => smallest_bytes,
        interval => interval,
    };
    let offset_bytes = u64::from(verify.offset_bytes);
    let kind = verify.kind.name();
    if interval_bytes < header_bytes {
        let label = format!(
            "a header of {kind} takes {header_bytes} bytes, and there is one in each {interval_bytes}"
        );
        let title = "the blocks are too small to be verified";
        let help = "use a larger bs or verify_interval, or `verify=crc32c`";
        refuse("verify", title, &label, help);
    } else if offset_bytes > 0 && offset_bytes < header_bytes {
        let label =
            format!("a header of {kind} takes {header_bytes} bytes, and would lie over itself");
        let help = format!("use {header_bytes} or more");
        refuse(
            "verify_offset",
            "verify_offset is inside of the header",
            &label,
            &help,
        );
    } else if offset_bytes + header_bytes > interval_bytes {
        let label = format!(
            "a header of {kind} takes {header_bytes} bytes, and the block ends at {interval_bytes}; what follows would be written over"
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
        Sizes::Fixed(bytes) => bytes.is_multiple_of(interval_bytes),
        Sizes::Range { .. } => !job.blocks.unaligned,
        Sizes::Split(parts) => {
            let mut parts = parts.iter();
            parts.all(|part| part.bytes.is_multiple_of(interval_bytes))
        }
    };
    if !is_divided {
        let label = format!("there is a header in each {interval_bytes} bytes of a block");
        let title = "blocks that their headers do not divide";
        refuse(
            "verify",
            title,
            &label,
            "use blocks that are multiples of it",
        );
    }
}
