use super::*;
use crate::job_file::JobFile;
use crate::surroundings::Surroundings;

fn job(options: &str) -> Job {
    let text = format!("[x]\n{}\n", options.replace(' ', "\n"));
    let file = JobFile::parse("job.fio", &text, &Surroundings::default());
    file.unwrap_or_else(|errors| panic!("{errors}"))
        .jobs
        .remove(0)
}

fn planned(options: &str, existing: &[(&str, u64)]) -> Vec<PlannedFile> {
    let existing = existing
        .iter()
        .map(|&(path, bytes)| (path.to_owned(), bytes))
        .collect();
    files(&job(options), 0, &existing).unwrap_or_else(|problem| panic!("{problem}"))
}

fn count(options: &str) -> Option<Ios> {
    ios(&job(options), &planned(options, &[]))
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
    let longer = planned("filename=f size=2m offset=1m", &existing)[0].region;
    assert_eq!(longer.file_bytes, 3 << 20, "it is extended");
    let shorter = planned("filename=f size=8k", &existing)[0].region;
    assert_eq!(
        (shorter.length_bytes, shorter.file_bytes),
        (8192, 1000 * 1024)
    );
}

#[test]
fn what_cannot_be_planned_is_said_at_its_place() {
    let cases = [
        ("filename=f", "how large is a file that is not there?", 1),
        ("size=2k", "2048 bytes are less than a block", 2),
        ("filesize=8k offset=8k", "nothing of the file is left", 3),
    ];
    for (options, title, line) in cases {
        let problem = files(&job(options), 0, &BTreeMap::new()).expect_err(options);
        assert_eq!(problem.title(), title);
        assert_eq!(
            problem.place().map(|place| place.line_number()),
            Some(line),
            "{options}"
        );
    }
}

#[test]
fn clones_have_their_own_files_unless_they_are_named() {
    let two = job("numjobs=2 nrfiles=2 size=64k directory=/a:/b/");
    assert_eq!(paths(&two, 1), ["/b/x.1.0", "/b/x.1.1"]);
    assert_eq!(paths(&job("filename=one:two numjobs=2"), 1), ["one", "two"]);
    let apart = job("filename=one numjobs=2 size=16k offset_increment=16k");
    let region = files(&apart, 1, &BTreeMap::new()).expect("files")[0].region;
    assert_eq!((region.offset_bytes, region.length_bytes), (16384, 16384));
}

#[test]
fn as_many_ios_as_fio_does() {
    let reads = |read| {
        Some(Ios::Exactly(PerDirection {
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
        Some(Ios::Exactly(verified))
    );
    let mixed = Ios::Mixed {
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
