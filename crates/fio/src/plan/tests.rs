use super::*;
use crate::job_file::JobFile;
use crate::surroundings::JobEnvironment;

fn job(options: &str) -> JobDefinition {
    let text = format!("[x]\n{}\n", options.replace(' ', "\n"));
    let file = JobFile::parse("job.fio", &text, &JobEnvironment::default());
    file.unwrap_or_else(|errors| panic!("{errors}"))
        .jobs
        .remove(0)
}

fn planned(options: &str, existing: &[(&str, u64)]) -> Vec<PlannedFile> {
    let existing = existing
        .iter()
        .map(|&(path, bytes)| (path.to_owned(), FileSize::Fixed(bytes)))
        .collect();
    plan_files(&job(options), 0, &existing).unwrap_or_else(|problem| panic!("{problem}"))
}

fn count(options: &str) -> Option<IoCounts> {
    predict_ios(&job(options), &planned(options, &[]))
}

#[test]
fn files_share_the_size_without_rounding() {
    let files = planned("size=64k nrfiles=3", &[]);
    assert_eq!(files.len(), 3);
    assert_eq!(files[2].path, "x.0.2");
    assert_eq!(files[2].region.length_bytes, 21845);
    assert_eq!(count("size=64k nrfiles=3").map(|ios| ios.total()), Some(15));
}

#[test]
fn the_region_of_an_existing_file() {
    let existing = [("f", 1000 * 1024)];
    let whole = planned("filename=f", &existing)[0].region;
    assert_eq!((whole.offset_bytes, whole.length_bytes), (0, 1000 * 1024));
    let half = planned("filename=f size=50% offset=10%", &existing)[0].region;
    assert_eq!(
        (half.offset_bytes, half.length_bytes),
        (100 * 1024, 500 * 1024)
    );
    let longer = planned("filename=f size=2m offset=100k", &existing)[0].region;
    assert_eq!(
        (longer.length_bytes, longer.file_bytes, longer.used_bytes()),
        (2 << 20, 1000 * 1024, 900 * 1024),
        "what is there stays as long as it is"
    );
    let shorter = planned("filename=f size=8k", &existing)[0].region;
    assert_eq!(
        (shorter.length_bytes, shorter.file_bytes),
        (8192, 1000 * 1024)
    );
}

#[test]
fn a_size_in_percent_takes_all_that_is_there_and_no_more() {
    let existing = [("f", 1 << 20)];
    for (options, used_bytes) in [
        ("size=0%", 1 << 20),
        ("size=200%", 1 << 20),
        ("size=50%", 1 << 19),
        ("size=200% filesize=64k", 64 << 10),
        ("offset=0% size=8k", 8 << 10),
        ("offset=75% size=50%", 1 << 18),
        ("io_size=0% size=8k", 8 << 10),
    ] {
        let options = format!("filename=f {options}");
        let region = planned(&options, &existing)[0].region;
        assert_eq!(region.used_bytes(), used_bytes, "{options}");
    }
}

#[test]
fn sizes_of_a_range_are_whole_blocks_and_the_same_each_time() {
    let options = "filesize=256k-1m nrfiles=64 bs=64k";
    let files = planned(options, &[]);
    let sizes: Vec<u64> = files.iter().map(|file| file.region.file_bytes).collect();
    assert!(
        sizes
            .iter()
            .all(|size| (256 << 10..=1 << 20).contains(size) && size % (64 << 10) == 0),
        "{sizes:?}"
    );
    let distinct: std::collections::BTreeSet<_> = sizes.iter().collect();
    assert!(distinct.len() > 8, "{sizes:?}");
    let mean = sizes.iter().sum::<u64>() / 64;
    assert!((500 << 10..800 << 10).contains(&mean), "{mean}");
    assert_eq!(planned(options, &[]), files);
    // One that is there and in the range stays as it is.
    let there = planned("filename=f filesize=256k-1m", &[("f", 300 << 10)]);
    assert_eq!(there[0].region.length_bytes, 300 << 10);
}

#[test]
fn what_cannot_be_planned_is_said_at_its_place() {
    let cases = [
        ("filename=f", "a missing file has no size", 1),
        ("size=2k", "2048 bytes are less than a block", 2),
        (
            "filesize=8k offset=8k",
            "the offset leaves no part of the file",
            3,
        ),
        (
            "size=1m rw=randread random_distribution=zoned_abs:50/512k:50/1m",
            "zones extend beyond the end of the file",
            4,
        ),
    ];
    for (options, title, line) in cases {
        let problem = plan_files(&job(options), 0, &BTreeMap::new()).expect_err(options);
        assert_eq!(problem.title(), title);
        assert_eq!(
            problem.span().map(|place| place.line_number()),
            Some(line),
            "{options}"
        );
    }
}

#[test]
fn clones_have_their_own_files_unless_they_are_named() {
    let two = job("numjobs=2 nrfiles=2 size=64k directory=/a:/b/");
    assert_eq!(file_paths(&two, 1), ["/b/x.1.0", "/b/x.1.1"]);
    assert_eq!(
        file_paths(&job("filename=one:two numjobs=2"), 1),
        ["one", "two"]
    );
    let apart = job("filename=one numjobs=2 size=16k offset_increment=16k");
    let region = plan_files(&apart, 1, &BTreeMap::new()).expect("files")[0].region;
    assert_eq!((region.offset_bytes, region.length_bytes), (16384, 16384));
}

#[test]
fn as_many_ios_as_fio_does() {
    let reads = |read| {
        Some(IoCounts::Exact(PerDirection {
            read,
            ..PerDirection::default()
        }))
    };
    assert_eq!(count("rw=read:8k size=64k"), reads(6));
    assert_eq!(count("rw=read:4k size=64k"), reads(16));
    assert_eq!(count("size=64k io_size=96k"), reads(24));
    assert_eq!(count("size=1m rw=randread"), reads(256));
    assert_eq!(count("size=30k"), reads(7));
    let verified = PerDirection {
        read: 256,
        write: 256,
        trim: 0,
    };
    assert_eq!(
        count("size=1m rw=write verify=crc32c"),
        Some(IoCounts::Exact(verified))
    );
    let mixed = IoCounts::Mixed {
        total: 256,
        read_percent: 70,
    };
    assert_eq!(count("size=1m rw=randrw rwmixread=70"), Some(mixed));
    assert_eq!(count("size=1m bsrange=4k-8k"), None);
    assert_eq!(count("size=1m time_based runtime=1"), None);
}

#[test]
fn huge_sizes_are_counted_or_not_but_at_once() {
    assert_eq!(
        count("size=4096p bs=512").map(|ios| ios.total()),
        Some(1 << 53)
    );
    assert_eq!(
        count("size=4096p bs=512 loops=4294967295").map(|ios| ios.total() > 1 << 53),
        Some(true)
    );
    assert_eq!(count("size=4096p bs=512 rw=read:512"), None);
    assert_eq!(
        count("size=4k io_size=4096p").map(|ios| ios.total()),
        Some(1 << 50)
    );
}
