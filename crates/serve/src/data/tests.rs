use super::*;
use proptest::prelude::*;
use std::fs;

const SIZE_BYTES: u64 = 256 * 1024;

#[derive(Clone, Debug)]
enum Change {
    Write { offset: u64, bytes: u64, value: u8 },
    Zero { offset: u64, bytes: u64, keep: bool },
}

fn range() -> impl Strategy<Value = (u64, u64)> {
    (0..SIZE_BYTES).prop_flat_map(|offset| (Just(offset), 0..=(SIZE_BYTES - offset)))
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (range(), 1_u8..).prop_map(|((offset, bytes), value)| Change::Write {
            offset,
            bytes,
            value
        }),
        (range(), any::<bool>()).prop_map(|((offset, bytes), keep)| Change::Zero {
            offset,
            bytes,
            keep
        }),
    ]
}

/// Changes contents and a plain array alike, and compares bytes and extents.
fn compare(data: &Data, changes: &[Change]) {
    compare_over(data, vec![0; SIZE_BYTES as usize], changes);
}

fn compare_over(data: &Data, mut expected: Vec<u8>, changes: &[Change]) {
    for change in changes {
        let (offset, bytes, value) = match *change {
            Change::Write {
                offset,
                bytes,
                value,
            } => {
                data.write(offset, &vec![value; bytes as usize]).unwrap();
                (offset, bytes, value)
            }
            Change::Zero {
                offset,
                bytes,
                keep,
            } => {
                data.zero(offset, bytes, keep).unwrap();
                (offset, bytes, 0)
            }
        };
        expected[offset as usize..(offset + bytes) as usize].fill(value);
    }
    let mut found = vec![1; SIZE_BYTES as usize];
    data.read(0, &mut found).unwrap();
    assert!(found == expected, "bytes differ");
    let mut at = 0;
    for extent in data.extents(0, SIZE_BYTES, usize::MAX).unwrap() {
        let end = at + extent.bytes as usize;
        if extent.is_hole {
            assert!(
                expected[at..end].iter().all(|byte| *byte == 0),
                "{at}..{end}"
            );
        }
        at = end;
    }
    assert_eq!(at as u64, SIZE_BYTES);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn contents_are_those_of_a_plain_array(changes in prop::collection::vec(change(), 0..12)) {
        compare(&Data::in_memory(), &changes);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        compare(&Data::in_file(&path, SIZE_BYTES, false).unwrap(), &changes);
    }

    #[test]
    fn a_copy_on_write_leaves_its_file(
        before in prop::collection::vec(change(), 0..4),
        changes in prop::collection::vec(change(), 0..8),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let file = Data::in_file(&path, SIZE_BYTES, false).unwrap();
        compare(&file, &before);
        drop(file);
        let image = fs::read(&path).unwrap();
        let copy = Data::copy_on_write(&path, SIZE_BYTES).unwrap();
        compare_over(&copy, image.clone(), &changes);
        assert!(fs::read(&path).unwrap() == image, "the file has changed");
    }
}

#[test]
fn an_unwritten_drive_is_one_hole_and_storage_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let file = Data::in_file(&path, SIZE_BYTES, false).unwrap();
    for data in [Data::in_memory(), file] {
        let hole = Extent {
            bytes: SIZE_BYTES,
            is_hole: true,
        };
        assert_eq!(data.extents(0, SIZE_BYTES, 8).unwrap(), [hole]);
        data.write(65_536, &[7; 65_536]).unwrap();
        let found = data.extents(0, SIZE_BYTES, 8).unwrap();
        let kinds: Vec<_> = found.iter().map(|of| (of.bytes, of.is_hole)).collect();
        assert_eq!(kinds, [(65_536, true), (65_536, false), (131_072, true)]);
        assert_eq!(data.extents(0, SIZE_BYTES, 2).unwrap(), found[..2]);
        data.zero(0, SIZE_BYTES, false).unwrap();
        assert_eq!(data.extents(0, SIZE_BYTES, 8).unwrap(), [hole]);
    }
}

#[test]
fn a_file_keeps_its_bytes_and_is_served_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let first = Data::in_file(&path, SIZE_BYTES, false).unwrap();
    first.write(1, b"kept").unwrap();
    let second = Data::in_file(&path, SIZE_BYTES, true).unwrap_err();
    assert!(second.to_string().contains("another process"), "{second}");
    drop(first);
    let again = Data::in_file(&path, SIZE_BYTES, true).unwrap();
    let mut found = [0; 4];
    again.read(1, &mut found).unwrap();
    assert_eq!(&found, b"kept");
}

#[test]
fn a_file_of_another_size_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    fs::write(&path, "mine\n").unwrap();
    let error = Data::in_file(&path, SIZE_BYTES, false).unwrap_err();
    assert!(error.to_string().contains("--size 5"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine\n");
    let error = Data::copy_on_write(&path, SIZE_BYTES).unwrap_err();
    assert!(error.to_string().contains("--size 5"), "{error}");
    fs::write(&path, "").unwrap();
    let error = Data::copy_on_write(&path, SIZE_BYTES).unwrap_err();
    assert!(error.to_string().contains("is empty"), "{error}");
    let error = Data::in_file(folder.path(), SIZE_BYTES, true).unwrap_err();
    assert!(error.to_string().contains("no regular file"), "{error}");
}

#[test]
fn many_may_read_a_file_and_one_may_write_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    drop(Data::in_file(&path, SIZE_BYTES, false).unwrap());
    let copies = [(); 2].map(|()| Data::copy_on_write(&path, SIZE_BYTES).unwrap());
    let reader = Data::in_file(&path, SIZE_BYTES, true).unwrap();
    let writer = Data::in_file(&path, SIZE_BYTES, false).unwrap_err();
    assert!(writer.to_string().contains("another process"), "{writer}");
    drop((copies, reader));
    let _writer = Data::in_file(&path, SIZE_BYTES, false).unwrap();
    let copy = Data::copy_on_write(&path, SIZE_BYTES).unwrap_err();
    assert!(copy.to_string().contains("another process"), "{copy}");
}
