//! Second process of `dump_restore`: restore of 4.2BSD. It reads the directories from the tape,
//! makes them all, and then makes each file in the order of the tape. At the end it sets the
//! owners, modes and times of the directories and writes its table of names. The two files in
//! `/tmp` in which the original kept the directories are left out, since they would be on a third
//! file system.

use crate::blocks::write_block;
use crate::program::ProgramError;
use crate::workload::populate::{self, TREE_CALL_BYTES, join_path};
use crate::workload::symbols;
use crate::workload::tape::{RecordHeader, TAPE_BLOCK_BYTES, TAPE_RECORD_BYTES, TapeReader};
use crate::workload::tree::Tree;
use diskperf_system::{Errno, File, OpenOptions, ProgramWork, System};
use diskperf_timeline::Nanoseconds;
use std::collections::BTreeMap;

struct Restore<'b> {
    /// Directory under which everything is restored.
    top_path: String,
    tape_reader: TapeReader<'b>,
    /// Buffer in which the data of one write is assembled.
    write_buffer: &'b mut [u8],
    names_by_directory: BTreeMap<u32, Vec<(u32, String)>>,
    /// Paths of files and directories by inode. `None` until the directories are made.
    paths_by_inode: Option<BTreeMap<u32, String>>,
    restored_file_count: u32,
    content_bytes: u64,
}

/// Offset in the worker's buffer of the area that assembles blocks, after the tape's buffer.
const BLOCK_OFFSET_BYTES: usize = 16 << 10;

/// Mode of a restored file. The tape records none.
const FILE_MODE: u32 = 0o644;
/// Mode of a restored directory. The tape records none.
const DIRECTORY_MODE: u32 = 0o755;

/// Reads a dump from the pipe and restores it under an existing directory.
pub(crate) async fn run_restore(
    system: &mut System,
    top: &str,
    (pipe, buffer): (File, &mut [u8]),
) -> Result<(), ProgramError> {
    let (tape, block) = buffer.split_at_mut(BLOCK_OFFSET_BYTES);
    let mut restore = Restore {
        top_path: top.to_owned(),
        tape_reader: TapeReader {
            pipe_file: pipe,
            buffer: &mut tape[..TAPE_BLOCK_BYTES],
            consumed_bytes: TAPE_BLOCK_BYTES,
        },
        write_buffer: &mut block[..TREE_CALL_BYTES as usize],
        names_by_directory: BTreeMap::new(),
        paths_by_inode: None,
        restored_file_count: 0,
        content_bytes: 0,
    };
    restore.restore_all(system).await
}

/// Removes the restored files of a tree and the table of names.
pub(crate) async fn remove_restored(
    system: &mut System,
    top: &str,
    tree: &Tree,
) -> Result<(), ProgramError> {
    let table = join_path(top, symbols::TABLE_FILE_NAME);
    populate::ignore_absence(system.unlink(&table).await)?;
    populate::remove_tree(system, top, tree).await
}

impl Restore<'_> {
    async fn restore_all(&mut self, system: &mut System) -> Result<(), ProgramError> {
        let RecordHeader::Volume { top } = self.tape_reader.next_header(system).await? else {
            return Err(ProgramError::TapeDamaged("its start is not that of a dump"));
        };
        loop {
            match self.tape_reader.next_header(system).await? {
                RecordHeader::Volume { .. } => {
                    return Err(ProgramError::TapeDamaged(
                        "a second dump starts within the first",
                    ));
                }
                RecordHeader::Directory { inode, size_bytes } => {
                    self.restore_directory(system, (inode, size_bytes)).await?;
                }
                RecordHeader::File { inode, size_bytes } => {
                    self.make_directories(system, top).await?;
                    self.restore_file(system, (inode, size_bytes)).await?;
                }
                RecordHeader::EndOfTape {
                    files,
                    content_bytes,
                } => {
                    self.make_directories(system, top).await?;
                    self.finish_directories(system).await?;
                    self.write_symbol_table(system).await?;
                    let all =
                        (self.restored_file_count, self.content_bytes) == (files, content_bytes);
                    return all.then_some(()).ok_or(ProgramError::TapeDamaged(
                        "its end record has other file or byte counts than the data",
                    ));
                }
            }
        }
    }

    /// Reads the names of a directory from the tape.
    async fn restore_directory(
        &mut self,
        system: &mut System,
        (inode, size_bytes): (u32, u64),
    ) -> Result<(), ProgramError> {
        system.perform_program_work(ProgramWork::DumpInode).await?;
        let mut records = Vec::new();
        while (records.len() as u64) < size_bytes {
            let left = (size_bytes - records.len() as u64).min(TAPE_RECORD_BYTES as u64);
            let record = self.tape_reader.next_record(system).await?;
            records.extend_from_slice(&record[..left as usize]);
        }
        let names = parse_names(&records).ok_or(ProgramError::TapeDamaged(
            "a directory record is \
        malformed",
        ))?;
        self.names_by_directory.insert(inode, names);
        Ok(())
    }

    /// Makes all directories, each after its parent, once before the first file. The top directory
    /// exists already.
    async fn make_directories(
        &mut self,
        system: &mut System,
        top: u32,
    ) -> Result<(), ProgramError> {
        if self.paths_by_inode.is_some() {
            return Ok(());
        }
        let mut known = BTreeMap::new();
        let mut stack = vec![(top, self.top_path.clone())];
        while let Some((inode, path)) = stack.pop() {
            let Some(names) = self.names_by_directory.get(&inode) else {
                known.insert(inode, path);
                continue;
            };
            if known.insert(inode, path.clone()).is_some() {
                return Err(ProgramError::TapeDamaged(
                    "a directory is listed in two directories",
                ));
            }
            if inode != top {
                system.mkdir(&path).await?;
            }
            let entries = names.iter().rev();
            stack.extend(entries.map(|(inode, name)| (*inode, join_path(&path, name))));
        }
        self.paths_by_inode = Some(known);
        Ok(())
    }

    /// Sets the owners, modes and times of the directories. Files made in a directory would have
    /// changed its times (`setdirmodes`).
    async fn finish_directories(&self, system: &mut System) -> Result<(), ProgramError> {
        let names = self.paths_by_inode.iter().flatten();
        for (_, path) in names.filter(|(inode, _)| self.names_by_directory.contains_key(inode)) {
            system.chown(path).await?;
            system.chmod(path, DIRECTORY_MODE).await?;
            system.utimes(path).await?;
        }
        Ok(())
    }

    /// Writes restore's table of names.
    async fn write_symbol_table(&self, system: &mut System) -> Result<(), ProgramError> {
        let Some(names) = &self.paths_by_inode else {
            return Ok(());
        };
        let table = symbols::encode_table(names);
        let path = join_path(&self.top_path, symbols::TABLE_FILE_NAME);
        let file = system.open(&path, OpenOptions::CREATE).await?;
        for block in table.chunks(TREE_CALL_BYTES as usize) {
            write_block(system, file, block, Nanoseconds::ZERO).await?;
        }
        Ok(system.close(file).await?)
    }

    /// Makes a file from the records that follow on the tape.
    async fn restore_file(
        &mut self,
        system: &mut System,
        (inode, size_bytes): (u32, u64),
    ) -> Result<(), ProgramError> {
        system.perform_program_work(ProgramWork::DumpInode).await?;
        let path = self
            .paths_by_inode
            .as_ref()
            .and_then(|names| names.get(&inode));
        let path = path.ok_or(ProgramError::TapeDamaged(
            "a file is listed in no directory",
        ))?;
        let file = system.open(path, OpenOptions::CREATE).await?;
        set_owner_and_mode(system, file, path).await?;
        let mut left = size_bytes;
        while left > 0 {
            let length = self
                .write_buffer
                .len()
                .min(usize::try_from(left).unwrap_or(usize::MAX));
            for part in self.write_buffer[..length].chunks_mut(TAPE_RECORD_BYTES) {
                let record = self.tape_reader.next_record(system).await?;
                part.copy_from_slice(&record[..part.len()]);
            }
            write_block(
                system,
                file,
                &self.write_buffer[..length],
                Nanoseconds::ZERO,
            )
            .await?;
            left -= length as u64;
        }
        system.close(file).await?;
        system.utimes(path).await?;
        self.restored_file_count += 1;
        self.content_bytes += size_bytes;
        Ok(())
    }
}

/// Sets the owner and the mode of a new file: through the open file, or by its name on a system
/// that lacks those calls.
async fn set_owner_and_mode(
    system: &mut System,
    file: File,
    path: &str,
) -> Result<(), ProgramError> {
    match system.fchown(file).await {
        Err(error) if error.errno() == Some(Errno::Invalid) => {
            system.chown(path).await?;
            Ok(system.chmod(path, FILE_MODE).await?)
        }
        done => {
            done?;
            Ok(system.fchmod(file, FILE_MODE).await?)
        }
    }
}

/// Returns the names in a directory with their inodes, without `.` and `..`. Returns `None` if the
/// directory's records are invalid.
fn parse_names(records: &[u8]) -> Option<Vec<(u32, String)>> {
    let mut names = Vec::new();
    let mut at = 0;
    while at < records.len() {
        let record = &records[at..];
        let inode = u32::from_be_bytes(*record.first_chunk()?);
        let two = |from: usize| {
            let bytes = record.get(from..)?.first_chunk()?;
            Some(usize::from(u16::from_be_bytes(*bytes)))
        };
        let (length, name_length) = (two(4)?, two(6)?);
        let name = std::str::from_utf8(record.get(8..8 + name_length)?).ok()?;
        if inode != 0 && !matches!(name, "." | "..") {
            names.push((inode, name.to_owned()));
        }
        // A record without a length would never end.
        at += (length > 0).then_some(length)?;
    }
    Some(names)
}
