//! System calls that jobs of fio use and modelled kernels lack.

use diskperf_fio::job::IoEngine;
use diskperf_fio::{JobDefinition, Problem};

/// Returns the problem of a job that needs a system call which a modelled kernel lacks.
pub(super) fn describe_missing_call(job: &JobDefinition, has_ftruncate: bool) -> Option<Problem> {
    let engine = job.engine.engine;
    if job.sync.range_sync.writes_per_sync > 0 {
        let title = "no modelled kernel has sync_file_range";
        let help = "use `fsync`, or real storage";
        return Some(job.option_error("sync_file_range", title, "this asks for it", help));
    }
    if job.verify.has_trims() {
        let title = "no modelled kernel has discards";
        let help = "remove it, or give a real block device";
        return Some(job.option_error("trim_percentage", title, "this discards", help));
    }
    let missing = match engine {
        IoEngine::Mmap => "no modelled kernel maps files into memory",
        IoEngine::Splice => "no modelled kernel has splice",
        IoEngine::Falloc => "no modelled kernel has fallocate",
        IoEngine::Ftruncate if !has_ftruncate => "this kernel has no ftruncate",
        IoEngine::Ftruncate
        | IoEngine::Filecreate
        | IoEngine::Filestat
        | IoEngine::Filedelete
        | IoEngine::Sync
        | IoEngine::Psync
        | IoEngine::Vsync
        | IoEngine::Pvsync
        | IoEngine::Pvsync2
        | IoEngine::Libaio
        | IoEngine::Posixaio
        | IoEngine::IoUring
        | IoEngine::Null
        | IoEngine::Cpuio => return None,
    };
    let help = match engine {
        IoEngine::Mmap | IoEngine::Splice => "use psync, or real storage",
        IoEngine::Ftruncate => "use real storage, or a modelled system with an FFS",
        _ => "use real storage",
    };
    Some(job.option_error("ioengine", missing, "this asks for it", help))
}

#[cfg(test)]
mod tests {
    use super::super::{JobStorage, build_suite};
    use crate::job_file::from_text;
    use diskperf_fio::JobEnvironment;
    use diskperf_timeline::Experiment;

    #[test]
    fn a_call_that_a_modelled_kernel_has_not_is_refused_by_its_name() {
        for (options, has_ftruncate, says) in [
            ("ioengine=mmap", true, "maps files"),
            ("ioengine=splice", true, "no modelled kernel has splice"),
            ("ioengine=falloc", true, "no modelled kernel has fallocate"),
            ("ioengine=ftruncate rw=write", false, "has no ftruncate"),
            ("sync_file_range=write:8 rw=write", true, "sync_file_range"),
        ] {
            let text = format!("[x]\nsize=1m\n{}\n", options.replace(' ', "\n"));
            let text = from_text("x.fio", &text, &[], &JobEnvironment::default()).unwrap();
            let ground = |direct| JobStorage {
                capacity_bytes: None,
                has_direct_io: direct,
                has_ftruncate,
                is_host: false,
                is_file: false,
                is_zoned: false,
                free_bytes: None,
            };
            let plan = |direct| {
                build_suite(
                    &text,
                    (&ground(direct), &crate::files::NoFiles),
                    &Experiment::default(),
                )
                .map(drop)
            };
            let words = plan(Some(false)).unwrap_err().to_string();
            assert!(
                words.contains(says) && words.contains("x.fio:3:"),
                "{options}: {words}"
            );
            assert!(plan(None).is_ok(), "{options} on real storage");
        }
    }
}
