//! Names, records and chunks.

use super::super::*;
use super::writer::UntimedWriter;
use super::{assert_sound, eagle_g, make};

fn writer() -> UntimedWriter {
    UntimedWriter::new(make(eagle_g(), 8192, 4))
}

#[test]
fn records_have_the_lengths_of_the_day() {
    assert_eq!(record_bytes("."), 12);
    assert_eq!(record_bytes("abc"), 12);
    assert_eq!(record_bytes("abcd"), 16);
    assert_eq!(record_bytes(&"x".repeat(255)), 264);
}

#[test]
fn a_directory_grows_by_chunks_and_fragments() {
    let mut writer = writer();
    let directory = writer
        .make_directory(FastFileSystem::ROOT_INODE, "d")
        .expect("space");
    // `.` and `..` take 24 bytes of 512; "f000" takes 16: 30 fit.
    let mut offsets = Vec::new();
    for number in 0..100 {
        let name = format!("f{number:03}");
        writer.create_file(directory, &name).expect("space");
        let place = writer
            .file_system
            .lookup_entry(directory, &name)
            .expect("a name");
        offsets.push(place.offset_bytes);
    }
    assert_eq!(offsets[0], 24);
    assert_eq!(offsets[29], 24 + 29 * 16);
    assert_eq!(offsets[30], 512);
    assert_eq!(offsets[62], 1024);
    assert_eq!(writer.file_system.size_bytes(directory), 4 * 512);
    assert_eq!(writer.file_system.allocated_fragment_count(directory), 2);
    assert_sound(&writer.file_system);
    // A removed name's room is used before the directory grows.
    writer.unlink_name(directory, "f010");
    let slot = writer
        .file_system
        .find_entry_slot(directory, "new")
        .expect("a name that fits");
    assert_eq!(
        (slot.offset_bytes, slot.grows_directory),
        (24 + 9 * 16, false)
    );
    writer.create_file(directory, "new").expect("space");
    let place = writer
        .file_system
        .lookup_entry(directory, "new")
        .expect("a name");
    assert_eq!(place.offset_bytes, 24 + 10 * 16);
    // The first record of a chunk becomes vacant and is taken again.
    writer.unlink_name(directory, "f030");
    assert_sound(&writer.file_system);
    writer.create_file(directory, "f030").expect("space");
    assert_eq!(
        writer
            .file_system
            .lookup_entry(directory, "f030")
            .map(|p| p.offset_bytes),
        Some(512)
    );
    assert_sound(&writer.file_system);
}

/// Two small rooms apart are pushed together for a long name.
#[test]
fn records_are_compacted() {
    let mut writer = writer();
    let directory = writer
        .make_directory(FastFileSystem::ROOT_INODE, "d")
        .expect("space");
    for number in 0..30 {
        writer
            .create_file(directory, &format!("f{number:03}"))
            .expect("space");
    }
    writer
        .create_file(directory, "12345678")
        .expect("a new chunk");
    writer
        .create_file(directory, &"y".repeat(255))
        .expect("space");
    writer
        .create_file(directory, &"z".repeat(210))
        .expect("space");
    assert_eq!(writer.file_system.size_bytes(directory), 1024);
    writer.unlink_name(directory, "f003");
    writer.unlink_name(directory, "f007");
    let name = "a".repeat(20);
    let slot = writer
        .file_system
        .find_entry_slot(directory, &name)
        .expect("a name that fits");
    // From the record in front of the first removed one.
    assert_eq!(
        (slot.offset_bytes, slot.grows_directory),
        (24 + 2 * 16, false)
    );
    writer.create_file(directory, &name).expect("space");
    assert_eq!(writer.file_system.size_bytes(directory), 1024);
    let place = writer
        .file_system
        .lookup_entry(directory, &name)
        .expect("a name");
    assert_eq!(place.offset_bytes, 24 + 6 * 16);
    let order: Vec<&str> = writer
        .file_system
        .directory_entries(directory)
        .map(|e| e.name)
        .skip(2)
        .take(7)
        .collect();
    assert_eq!(
        order,
        ["f000", "f001", "f002", "f004", "f005", "f006", &name]
    );
    assert_sound(&writer.file_system);
}

#[test]
fn names_that_are_refused() {
    let mut writer = writer();
    writer
        .create_file(FastFileSystem::ROOT_INODE, "here")
        .expect("space");
    let slot = |name: &str| {
        writer
            .file_system
            .find_entry_slot(FastFileSystem::ROOT_INODE, name)
    };
    assert_eq!(slot(""), Err(NameError::EmptyName));
    assert_eq!(slot(&"x".repeat(256)), Err(NameError::NameTooLong));
    assert!(slot(&"x".repeat(255)).is_ok());
    assert_eq!(slot("a/b"), Err(NameError::InvalidCharacter));
    assert_eq!(slot("here"), Err(NameError::NameExists));
    assert_eq!(slot(".."), Err(NameError::NameExists));
}

#[test]
fn links_renames_and_the_tree() {
    let mut writer = writer();
    let a = writer
        .make_directory(FastFileSystem::ROOT_INODE, "a")
        .expect("space");
    let b = writer.make_directory(a, "b").expect("space");
    let file = writer.create_file(b, "file").expect("space");
    writer.add_link(a, "also", file).expect("space");
    assert_eq!(writer.file_system.link_count(file), 2);
    assert_eq!(
        writer.file_system.ancestors(b),
        [b, a, FastFileSystem::ROOT_INODE]
    );
    assert_sound(&writer.file_system);
    writer
        .rename_entry((a, "b"), (FastFileSystem::ROOT_INODE, "c"))
        .expect("space");
    assert_eq!(
        writer.file_system.ancestors(b),
        [b, FastFileSystem::ROOT_INODE]
    );
    assert_eq!(writer.file_system.link_count(a), 2);
    assert_sound(&writer.file_system);
    let other = writer.create_file(a, "other").expect("space");
    writer
        .rename_entry((a, "other"), (a, "also"))
        .expect("space");
    assert_eq!(writer.file_system.link_count(file), 1);
    assert_eq!(
        writer.file_system.lookup_entry(a, "also").map(|p| p.inode),
        Some(other)
    );
    assert!(!writer.file_system.directory_is_empty(a));
    writer.unlink_name(a, "also");
    assert!(writer.file_system.directory_is_empty(a));
    writer.remove_directory(FastFileSystem::ROOT_INODE, "a");
    assert!(!writer.file_system.is_inode_allocated(a));
    assert_sound(&writer.file_system);
}

/// A directory with more than 12 blocks goes on in an indirect block.
#[test]
fn a_huge_directory() {
    let mut writer = UntimedWriter::new(make(eagle_g(), 4096, 4));
    let directory = writer
        .make_directory(FastFileSystem::ROOT_INODE, "d")
        .expect("space");
    for number in 0..600 {
        let name = format!("{number:0>100}");
        writer.create_file(directory, &name).expect("space");
    }
    assert!(writer.file_system.size_bytes(directory) > 12 * 4096);
    assert!(writer.file_system.indirect_root(directory, 1).is_some());
    assert_sound(&writer.file_system);
    for number in 0..600 {
        writer.unlink_name(directory, &format!("{number:0>100}"));
    }
    writer.remove_directory(FastFileSystem::ROOT_INODE, "d");
    assert_sound(&writer.file_system);
}

/// A file that is open and has no name is no problem only if the caller says
/// that it is open.
#[test]
fn open_without_a_name() {
    let mut writer = writer();
    let file = writer
        .create_file(FastFileSystem::ROOT_INODE, "file")
        .expect("space");
    writer
        .file_system
        .remove_entry(FastFileSystem::ROOT_INODE, "file");
    writer.file_system.set_link_count(file, 0);
    assert_eq!(
        writer.file_system.check_consistency(),
        Err(vec![ConsistencyProblem::Unreferenced { inode: file }])
    );
    let summary = writer.file_system.check_while_open(&[file]).expect("sound");
    assert_eq!(summary.open_unlinked_count, 1);
}
