//! Fuzz target for fio's job files and their plans.

use std::collections::BTreeMap;

use diskperf_fio::offsets::SequentialOffsets;
use diskperf_fio::plan;
use diskperf_fio::{FileSource, JobDefinition, JobEnvironment, JobFile};

use super::{FuzzBody, FuzzTarget, to_byte_inputs, to_text};

pub(super) const JOB_FILE: FuzzTarget = FuzzTarget {
    name: "job_file",
    make_body: make_job_file_body,
    make_seeds: || {
        to_byte_inputs([
            "[global]\nioengine=io_uring\ndirect=1\nruntime=60\ntime_based\n[a]\nrw=randrw\n\
             bssplit=8k/90:16k\nrandom_distribution=zipf:1.2\nnumjobs=4\nrate_iops=500,1k\n",
            "[x]\nrw=read:-8k\nsize=64k\noffset=25%\nnrfiles=3\nio_size=96k\ninclude common\n\
             startdelay=1-3\nfilename=a:b\\:c\nss=iops:0.3%\nss_dur=5\n",
            "[x]\nsize=(2m+4k)\nbs=$pagesize*2\ndescription=${NAME}\nfilesize=4k-8k\n\
             random_distribution=zoned:50/10:50/90\nzonemode=strided\nzonesize=8k\n",
        ])
    },
    keywords: &[
        "[global]",
        "rw=",
        "randwrite",
        "bs=",
        "bssplit=",
        "size=",
        "offset_increment=",
        "loops=",
        "number_ios=",
        "include ",
        "${NAME}",
        "$ncpus",
        "k",
        "KiB",
        "%",
        "-",
        ":",
        ",",
        "(",
        ")",
        "*",
        "^",
        "stonewall",
        "wait_for=",
        "time_based",
        "kb_base=1000",
        "nrfiles=",
        "\\:",
        "#",
    ],
};

/// Creates a parser call that reads the input as a job file, formats its messages and plans each
/// job.
fn make_job_file_body() -> FuzzBody {
    let common = ("common".to_owned(), "bs=8k\ninclude common\n".to_owned());
    let surroundings = JobEnvironment {
        file_source: FileSource::Memory([common].into()),
        variables: [("NAME".to_owned(), "1m".to_owned())].into(),
        ..JobEnvironment::default()
    };
    Box::new(
        move |bytes| match JobFile::parse("job.fio", &to_text(bytes), &surroundings) {
            Ok(file) => {
                for warning in &file.warnings {
                    warning.render(false);
                }
                file.jobs.iter().take(10).for_each(plan_job);
            }
            Err(errors) => assert!(!errors.render(false).is_empty()),
        },
    )
}

fn plan_job(job: &JobDefinition) {
    let mut small = job.clone();
    // Names of a million files are what was asked for, and not what is looked for here.
    small.files.count = small.files.count.min(100);
    let existing: BTreeMap<String, plan::FileSize> =
        [("a".to_owned(), plan::FileSize::Fixed(1 << 20))].into();
    let Ok(files) = plan::plan_files(&small, job.order.clone_count - 1, &existing) else {
        return;
    };
    if let Some(ios) = plan::predict_ios(&small, &files) {
        assert!(ios.total() < u64::MAX, "{job:?}");
    }
    let region = files[0].region;
    let offsets =
        SequentialOffsets::new(region, job.blocks.fixed_bytes.read, job.pattern.skip_bytes);
    for offset in offsets.take(100) {
        assert!(
            offset >= region.offset_bytes && offset < region.file_bytes,
            "{job:?}"
        );
    }
}
