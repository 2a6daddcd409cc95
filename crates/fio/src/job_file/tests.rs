use super::*;
use crate::job::{Amount, ReadWriteMode, Verification};
use crate::surroundings::FileSource;

fn parse(text: &str) -> JobFile {
    JobFile::parse("job.fio", text, &JobEnvironment::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn refused(text: &str) -> String {
    let parsed = JobFile::parse("job.fio", text, &JobEnvironment::default());
    parsed.expect_err(text).render(false)
}

fn size(text: &str) -> Option<u64> {
    parse(text).jobs[0].target.size.and_then(Amount::bytes)
}

#[test]
fn globals_add_up_and_sections_override() {
    let file = parse(
        "; a comment\n[global]\nbs=8k\nrw=write\n\n[globalx]\niodepth=4 # four\n[a]\nbs=16k\n\
         [global]\nrw=read\n[a]\n",
    );
    let seen = file.jobs.iter().map(|job| {
        (
            job.name.as_str(),
            job.blocks.fixed_bytes.read,
            job.pattern.access,
            job.engine.depth,
        )
    });
    let expected = [
        ("a", 16384, ReadWriteMode::Write, 4),
        ("a", 8192, ReadWriteMode::Read, 4),
    ];
    assert!(seen.eq(expected), "{file:?}");
}

#[test]
fn the_last_of_equal_keys_wins_and_kb_base_is_first() {
    assert_eq!(size("[x]\nsize=4k\nsize=8k\n"), Some(8192));
    assert_eq!(size("[x]\nbs=1k\nsize=4KiB\n"), Some(4000));
    assert_eq!(size("[x]\nsize=4KiB\nkb_base=1000\n"), Some(4096));
    assert_eq!(size("[global]\nkb_base=1000\n[x]\nsize=5k\n"), Some(5000));
    let warned = parse("[x]\nsize=4KiB\n").warnings;
    assert!(
        warned[0].render(false).contains("4000 bytes; `4K` is 4096"),
        "{}",
        warned[0]
    );
}

#[test]
fn two_block_sizes_are_for_reads_and_writes_whatever_parts_them() {
    for value in ["4k-64k", "4k:64k"] {
        let file = parse(&format!("[x]\nsize=1m\nbs={value}\n"));
        let bytes = &file.jobs[0].blocks.fixed_bytes;
        assert_eq!((bytes.read, bytes.write, bytes.trim), (4096, 65536, 65536));
        let warning = file.warnings[0].render(false);
        assert!(warning.contains("fio reads `4k,64k`"), "{warning}");
    }
    for value in ["4k-", "-4k", "4k-64k-1k", "4k-8k,16k", "64 - k"] {
        refused(&format!("[x]\nsize=1m\nbs={value}\n"));
    }
}

#[test]
fn lines_are_fios() {
    // CR LF, blanks before `=`, tabs, comments inside a value.
    let file = parse("[x]\r\n\tsize =8k\r\n  direct=1;no\r\nfilename=a#b\r\n");
    let job = &file.jobs[0];
    assert_eq!(job.target.size, Some(Amount::Bytes(8192)));
    assert!(job.engine.is_direct);
    assert_eq!(*job.files.names, ["a"]);
    let places: Vec<String> = file
        .warnings
        .iter()
        .map(|warning| warning.span().expect("a place").to_string())
        .collect();
    assert_eq!(places, ["job.fio:3:11", "job.fio:4:11"]);
}

#[test]
fn variables_and_keywords_are_replaced() {
    let mut surroundings = JobEnvironment {
        page_bytes: 16384,
        memory_mib: 100,
        processors: 3,
        ..JobEnvironment::default()
    };
    surroundings
        .variables
        .insert("SIZE".to_owned(), "12".to_owned());
    let text = "[x]\nsize=${SIZE}m\nbs=$pagesize*2\nnumjobs=$ncpus\nio_size=($mb_memory/3)*1048576\n\
        description=${NOBODY}x\n";
    let file = JobFile::parse("job.fio", text, &surroundings).unwrap_or_else(|e| panic!("{e}"));
    let job = &file.jobs[0];
    assert_eq!(job.target.size, Some(Amount::Bytes(12 << 20)));
    assert_eq!(
        (job.blocks.fixed_bytes.read, job.order.clone_count),
        (32768, 3)
    );
    assert_eq!(job.target.io_size, Some(Amount::Bytes(33 << 20)));
    assert_eq!(job.description.as_deref(), Some("x"));
    assert_eq!(file.warnings[0].title(), "the variable `NOBODY` is not set");
    let written = ("bs".to_owned(), "32768".to_owned());
    assert!(
        job.options_as_written.contains(&written),
        "{:?}",
        job.options_as_written
    );
}

#[test]
fn an_error_in_a_variable_points_at_the_whole_value() {
    let mut surroundings = JobEnvironment::default();
    surroundings
        .variables
        .insert("SIZE".to_owned(), "1.5g".to_owned());
    let parsed = JobFile::parse("job.fio", "[x]\nsize=${SIZE}\n", &surroundings);
    let refused = parsed.expect_err("a fraction").render(false);
    assert!(
        refused.contains("`1.5g` is not a number") && refused.contains("^^^^^^^"),
        "{refused}"
    );
}

#[test]
fn included_files_hold_options() {
    let mut surroundings = JobEnvironment::default();
    let files = [
        ("common.inc", "rw=randread\ninclude more.inc\n"),
        ("more.inc", "bs=8k\n"),
    ];
    let files = files.map(|(name, content)| (name.to_owned(), content.to_owned()));
    surroundings.file_source = FileSource::Memory(files.into());
    let text = "[global]\ninclude common.inc\n[x]\nsize=1m\n";
    let file = JobFile::parse("job.fio", text, &surroundings).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(file.jobs[0].pattern.access, ReadWriteMode::RandomRead);
    assert_eq!(file.global_options[1], ("bs".to_owned(), "8k".to_owned()));
}

#[test]
fn included_files_are_found_beside_the_job_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let jobs = folder.path().join("jobs");
    std::fs::create_dir(&jobs).expect("a folder");
    std::fs::write(jobs.join("common.inc"), "bs=8k\nbogus\n").expect("a file");
    let surroundings = JobEnvironment {
        file_source: FileSource::FileSystem {
            working_directory: folder.path().to_owned(),
        },
        ..JobEnvironment::default()
    };
    let parsed = JobFile::parse("jobs/a.fio", "[x]\ninclude common.inc\n", &surroundings);
    let refused = parsed.expect_err("a mistake").render(false);
    assert!(refused.contains("--> jobs/common.inc:2:1"), "{refused}");
}

#[test]
fn groups_open_at_stonewalls_and_new_groups() {
    let file = parse("[a]\nstonewall\n[b]\nstonewall\n[c]\n[d]\nnew_group\n");
    let groups: Vec<u32> = file.jobs.iter().map(|job| job.group).collect();
    assert_eq!(groups, [0, 1, 1, 2]);
}

#[test]
fn the_jobs_of_a_group_have_one_steady_state() {
    let steady = "ss=iops:30%\nss_dur=2\n";
    for text in [
        format!("[a]\nnumjobs=2\n{steady}[b]\n{steady}"),
        format!("[a]\n{steady}[b]\nnew_group\n"),
        format!("[a]\n{steady}[b]\nstonewall\nss=bw:1%\nss_dur=3\n[c]\nss=bw:1%\nss_dur=3\n"),
        "[a]\n[b]\n".to_owned(),
    ] {
        parse(&text);
    }
    for (text, place) in [
        (format!("[a]\n{steady}[b]\n"), ":2:"),
        (format!("[a]\n[b]\n{steady}"), ":3:"),
        (format!("[a]\n[b]\nnew_group\n{steady}[c]\n"), ":4:"),
    ] {
        let words = refused(&text);
        assert!(
            words.contains("have different steady states"),
            "{text}: {words}"
        );
        assert!(words.contains(place), "{text}: {words}");
    }
}

#[test]
fn a_job_waits_for_the_nearest_above() {
    let file = parse("[a]\n[a]\n[b]\nwait_for=a\n");
    assert_eq!(file.jobs[2].awaited_job, Some(1));
    assert!(refused("[b]\nwait_for=b\n").contains("no earlier job is called `b`"));
}

#[test]
fn options_are_kept_as_written() {
    let file =
        parse("[global]\nthread\nss_dur=2\n[x]\nreadwrite=read:4k\nnorandommap\nblocksize=8K\n");
    let pairs = |written: &[(String, String)]| {
        let pairs = written.iter().map(|(key, value)| format!("{key}={value}"));
        pairs.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        pairs(&file.global_options),
        "thread= steadystate_duration=2"
    );
    assert_eq!(
        pairs(&file.jobs[0].options_as_written),
        "rw=read:4k norandommap= bs=8K"
    );
}

#[test]
fn what_does_not_matter_is_listed() {
    let file = parse("[global]\ngtod_reduce=1\n[x]\ncpus_allowed=0-3\nwrite_bw_log=x\n");
    let ignored: Vec<String> = file
        .ignored
        .iter()
        .map(|ignored| format!("{} {}", ignored.place, ignored.key))
        .collect();
    let expected = [
        "job.fio:2:1 gtod_reduce",
        "job.fio:4:1 cpus_allowed",
        "job.fio:5:1 write_bw_log",
    ];
    assert_eq!(ignored, expected);
    assert_eq!(file.jobs[0].ignored.len(), 2);
}

#[test]
fn options_of_an_engine_are_known_under_it_alone() {
    let job = &parse("[x]\nfixedbufs\nsqthread_poll=1\nioengine=io_uring\n").jobs[0];
    assert!(job.engine.has_fixed_buffers && job.engine.has_kernel_polling);
    assert!(
        parse("[global]\nioengine=io_uring\n[x]\nhipri\n").jobs[0]
            .engine
            .is_polled
    );
    assert!(refused("[x]\nhipri\n").contains("not an option of the engine psync"));
}

#[test]
fn a_flag_can_be_cleared() {
    let file = parse("[global]\nstonewall\nnorandommap\n[x]\nstonewall=0\n");
    assert!(!file.jobs[0].order.waits_for_earlier_jobs && file.jobs[0].random.has_no_map);
}

#[test]
fn its_author_is_told_what_fio_does_instead() {
    let told = |text: &str, title: &str| {
        let warnings = parse(text).warnings;
        let titles: Vec<&str> = warnings.iter().map(Problem::title).collect();
        assert!(
            titles.iter().any(|told| told.contains(title)),
            "{text}: {titles:?}"
        );
    };
    told(
        "[x]\ntime_based\n",
        "time_based has no effect without a runtime",
    );
    told(
        "[x]\nioengine=psync\niodepth=16\n",
        "psync always has queue depth 1",
    );
    told(
        "[x]\nioengine=libaio\niodepth=16\n",
        "libaio waits for each I/O without direct=1",
    );
    told(
        "[x]\nrw=randread\nbssplit=4k/50:8k/50\n",
        "the random map changes the shares",
    );
    told(
        "[x]\nrw=randrw\nrwmixread=70\nrate_iops=500\n",
        "rwmixread has no effect",
    );
    assert!(!parse("[x]\ntime_based\n").jobs[0].durations.is_time_based);
    assert_eq!(
        parse("[x]\niodepth=16\n").jobs[0].engine.effective_depth(),
        1
    );
    let quiet = "[x]\nrw=randread\nbssplit=4k/50:8k/50\nnorandommap\nioengine=libaio\niodepth=8\ndirect=1\n";
    assert_eq!(parse(quiet).warnings, []);
}

#[test]
fn values_are_settled_as_fio_settles_them() {
    let job = &parse(
        "[x]\niodepth=8\niodepth_low=9\niodepth_batch=16\niodepth_batch_complete_min=4\n\
         iodepth_batch_complete_max=2\npre_read=1\nnrfiles=2\nopenfiles=4\n",
    )
    .jobs[0];
    let engine = &job.engine;
    assert_eq!(
        (
            engine.depth_low,
            engine.submit_batch,
            engine.completions_max
        ),
        (None, 8, Some(4))
    );
    assert!(!job.files.invalidates_cache);
    assert_eq!(job.files.open_files_max, None);
}

#[test]
fn a_real_job_file_is_read() {
    let file = parse(
        "[global]\nioengine=io_uring\ndirect=1\nruntime=60\ntime_based\ngroup_reporting\n\
         filename=/dev/nvme0n1\nrandrepeat=0\nnorandommap\n\n\
         [precondition]\nrw=write\nbs=128k\niodepth=32\nloops=2\ntime_based=0\nruntime=0\n\n\
         [oltp]\nstonewall\nrw=randrw\nrwmixread=70\nbssplit=8k/90:16k/10\niodepth=16\nnumjobs=4\n\
         verify=0\nrandom_distribution=zipf:1.2\npercentile_list=50:99:99.9\n",
    );
    assert_eq!(file.warnings, []);
    let [fill, oltp] = file.jobs.as_slice() else {
        panic!("{file:?}")
    };
    assert!(!fill.durations.is_time_based && fill.target.loops == 2);
    assert_eq!(
        (
            oltp.group,
            oltp.order.clone_count,
            oltp.pattern.read_percent
        ),
        (1, 4, 70)
    );
    assert_eq!(oltp.verify.kind, Verification::None);
    assert_eq!(oltp.durations.runtime_us, 60_000_000);
    assert!(oltp.report.is_grouped && !oltp.has_random_map());
}

#[test]
fn errors_are_passed_over_by_kind_and_number() {
    use crate::job::ErrorKind::{Read, Verify, Write};
    let passed_over = |options: &str| {
        let file = parse(&format!("[x]\n{options}\n"));
        let errors = &file.jobs[0].errors;
        let kinds = [Read, Write, Verify];
        // EIO, ENOSPC and EILSEQ.
        kinds.map(|kind| [5, 28, 84].map(|errno| errors.ignores(kind, errno)))
    };
    let (none, usual) = ([false; 3], [true, false, true]);
    assert_eq!(passed_over("rw=read"), [none; 3]);
    assert_eq!(passed_over("continue_on_error=all"), [usual; 3]);
    assert_eq!(passed_over("continue_on_error=write"), [none, usual, none]);
    let only_space = [false, true, false];
    assert_eq!(
        passed_over("ignore_error=,ENOSPC:1"),
        [none, only_space, none]
    );
    assert_eq!(
        passed_over("continue_on_error=io\nignore_error=5,,84"),
        [[true, false, false], usual, [false, false, true]]
    );
    for wrong in ["ENOTHING", "EIO,EIO,EIO,EIO", "EIO:", "-5"] {
        let told = refused(&format!("[x]\nignore_error={wrong}\n"));
        assert!(told.contains("job.fio:2:1"), "{wrong}: {told}");
    }
}

/// Engines that go elsewhere, with the engine that has the same load and options of their own.
#[test]
fn an_engine_that_goes_elsewhere_has_the_load_of_one_of_this_system() {
    for (options, engine, depth) in [
        (
            "ioengine=rbd clientname=admin pool=p rbdname=i",
            IoEngine::IoUring,
            8,
        ),
        (
            "ioengine=rados pool=p touch_objects=1",
            IoEngine::IoUring,
            8,
        ),
        ("ioengine=gfapi volume=v brick=b", IoEngine::Psync, 1),
        (
            "ioengine=gfapi_async volume=v brick=b",
            IoEngine::IoUring,
            8,
        ),
        (
            "ioengine=io_uring_cmd cmd_type=nvme hipri",
            IoEngine::IoUring,
            8,
        ),
        (
            "ioengine=libhdfs namenode=n hostname=h port=9",
            IoEngine::Psync,
            1,
        ),
        ("ioengine=http http_host=h https=on", IoEngine::Psync, 1),
        (
            "ioengine=nbd uri=nbd+unix:///?socket=s",
            IoEngine::IoUring,
            8,
        ),
        (
            "ioengine=external:./x spdk_json_conf=c",
            IoEngine::IoUring,
            8,
        ),
        ("ioengine=windowsaio", IoEngine::IoUring, 8),
    ] {
        // The engine may be that of the globals, and its options those of the section.
        for break_ in ["", "[a]\n"] {
            let lines = options
                .replacen(' ', &format!("\n{break_}"), 1)
                .replace(' ', "\n");
            let name = if break_.is_empty() { "a" } else { "global" };
            let lines = match (break_, options.contains(' ')) {
                ("[a]\n", false) => format!("{lines}\n[a]"),
                _ => lines,
            };
            let text = format!("[{name}]\nsize=1m\niodepth=8\n{lines}\n");
            let file = JobFile::parse("x.fio", &text, &JobEnvironment::default());
            let file = file.unwrap_or_else(|errors| panic!("{text}: {}", errors.render(false)));
            let job = &file.jobs[0].engine;
            assert_eq!(
                (job.engine, job.effective_depth()),
                (engine, depth),
                "{text}"
            );
            assert!(job.foreign_engine.is_some(), "{text}");
        }
    }
}
