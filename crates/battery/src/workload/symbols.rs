//! Table of names that restore leaves for the next restore, of an incremental dump:
//! `./restoresymtable` (4.2BSD symtab.c, dumpsymtable).
//!
//! All names come first, then an entry for each name, then the heads of the lists by which its
//! inode is found, then a header.

use std::collections::BTreeMap;

/// Name of restore's table, in the directory of the restored tree.
pub(crate) const TABLE_FILE_NAME: &str = "restoresymtable";

/// Bytes of a table entry: offset and length of its name, its inode, its number, and references to
/// five other entries.
const SYMBOL_ENTRY_BYTES: usize = 36;
/// Unit to which name lengths are rounded up, in bytes.
const NAME_UNIT_BYTES: usize = 4;
const INODES_PER_LIST: u32 = 5;
const TABLE_HEADER_BYTES: usize = 32;

/// Returns the table for these paths, by inode. Each entry has its name, inode and number. The
/// other fields stay zero, because nothing reads them here.
pub(crate) fn encode_table(paths: &BTreeMap<u32, String>) -> Vec<u8> {
    let mut table = Vec::new();
    let mut entries = Vec::new();
    for (number, (inode, path)) in (0_u32..).zip(paths) {
        let name = path.rsplit('/').next().unwrap_or_default();
        let words = [table.len() as u32, name.len() as u32, *inode, number];
        let filled = entries.len() + SYMBOL_ENTRY_BYTES;
        entries.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        entries.resize(filled, 0);
        table.extend_from_slice(name.as_bytes());
        table.push(0);
        table.resize(table.len().next_multiple_of(NAME_UNIT_BYTES), 0);
    }
    let names_bytes = table.len() as u32;
    table.append(&mut entries);
    let inodes = paths.keys().next_back().copied().unwrap_or_default();
    let lists = inodes.div_ceil(INODES_PER_LIST);
    table.resize(table.len() + lists as usize * size_of::<u32>(), 0);
    let header = [names_bytes, inodes, lists].map(u32::to_be_bytes);
    let whole = table.len() + TABLE_HEADER_BYTES;
    table.extend_from_slice(header.as_flattened());
    table.resize(whole, 0);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_name() {
        let paths = [(2, "/mnt0/restored"), (7, "/mnt0/restored/abc")];
        let paths = paths.map(|(inode, path)| (inode, path.to_owned()));
        let table = encode_table(&BTreeMap::from(paths));
        // "restored" and its end take 12 bytes, "abc" 4; 7 inodes are in 2 lists.
        assert_eq!(table.len(), 16 + 2 * 36 + 2 * 4 + 32);
        assert!(table.starts_with(b"restored\0\0\0\0abc\0"));
        let second: Vec<u32> = table[16 + 36..][..16]
            .as_chunks()
            .0
            .iter()
            .map(|word| u32::from_be_bytes(*word))
            .collect();
        assert_eq!(second, [12, 3, 7, 1]);
    }
}
