//! Second process of `dump_restore`: restore of 4.2BSD. It reads the directories from the tape,
//! makes them all, and then makes each file in the order of the tape. At the end it sets the
//! owners, modes and times of the directories and writes its table of names. The two files in
//! `/tmp` in which the original kept the directories are left out, since they would be on a third
//! file system.

use crate::blocks::write_block;
use crate::program::ProgramError;
use crate::workload::populate::{self, CALL_BYTES, under};
use crate::workload::symbols;
use crate::workload::tape::{Header, RECORD_BYTES, TAPE_BYTES, TapeReader};
use crate::workload::tree::Tree;
use diskperf_system::{Errno, File, Open, System, Work};
use diskperf_timeline::Nanoseconds;
use std::collections::BTreeMap;

struct Restore<'b> {
    /// Directory under which everything is restored.
    top: String,
    tape: TapeReader<'b>,
    /// Buffer in which the data of one write is assembled.
    block: &'b mut [u8],
    /// Names in each directory, with their inodes.
    directories: BTreeMap<u32, Vec<(u32, String)>>,
    /// Paths of files and directories by inode. `None` until the directories are made.
    names: Option<BTreeMap<u32, String>>,
    files: u32,
    content_bytes: u64,
}

/// Offset in the worker's buffer of the area that assembles blocks, after the tape's buffer.
const BLOCK_AT: usize = 16 << 10;

/// Mode of a restored file. The tape records none.
const FILE_MODE: u32 = 0o644;
/// Mode of a restored directory. The tape records none.
const DIRECTORY_MODE: u32 = 0o755;

/// Reads a dump from the pipe and restores it under an existing directory.
pub(crate) async fn run(
    system: &mut System,
    top: &str,
    (pipe, buffer): (File, &mut [u8]),
) -> Result<(), ProgramError> {
    let (tape, block) = buffer.split_at_mut(BLOCK_AT);
    let mut restore = Restore {
        top: top.to_owned(),
        tape: TapeReader {
            pipe,
            buffer: &mut tape[..TAPE_BYTES],
            taken: TAPE_BYTES,
        },
        block: &mut block[..CALL_BYTES as usize],
        directories: BTreeMap::new(),
        names: None,
        files: 0,
        content_bytes: 0,
    };
    restore.all(system).await
}

/// Removes the restored files of a tree and the table of names.
pub(crate) async fn remove(
    system: &mut System,
    top: &str,
    tree: &Tree,
) -> Result<(), ProgramError> {
    let table = under(top, symbols::NAME);
    populate::unless_absent(system.unlink(&table).await)?;
    populate::remove(system, top, tree).await
}

impl Restore<'_> {
    async fn all(&mut self, system: &mut System) -> Result<(), ProgramError> {
        let Header::Volume { top } = self.tape.header(system).await? else {
            return Err(ProgramError::Tape("it does not start as a dump does"));
        };
        loop {
            match self.tape.header(system).await? {
                Header::Volume { .. } => {
                    return Err(ProgramError::Tape("a second dump starts within the first"));
                }
                Header::Directory { inode, size_bytes } => {
                    self.directory(system, (inode, size_bytes)).await?;
                }
                Header::File { inode, size_bytes } => {
                    self.make_directories(system, top).await?;
                    self.file(system, (inode, size_bytes)).await?;
                }
                Header::End {
                    files,
                    content_bytes,
                } => {
                    self.make_directories(system, top).await?;
                    self.finish_directories(system).await?;
                    self.leave_symbols(system).await?;
                    let all = (self.files, self.content_bytes) == (files, content_bytes);
                    return all.then_some(()).ok_or(ProgramError::Tape(
                        "its end names other files or bytes than came",
                    ));
                }
            }
        }
    }

    /// Reads the names of a directory from the tape.
    async fn directory(
        &mut self,
        system: &mut System,
        (inode, size_bytes): (u32, u64),
    ) -> Result<(), ProgramError> {
        system.work(Work::DumpInode).await?;
        let mut records = Vec::new();
        while (records.len() as u64) < size_bytes {
            let left = (size_bytes - records.len() as u64).min(RECORD_BYTES as u64);
            let record = self.tape.record(system).await?;
            records.extend_from_slice(&record[..left as usize]);
        }
        let names = names(&records).ok_or(ProgramError::Tape("a directory cannot be read"))?;
        self.directories.insert(inode, names);
        Ok(())
    }

    /// Makes all directories, each after its parent, once before the first file. The top directory
    /// exists already.
    async fn make_directories(
        &mut self,
        system: &mut System,
        top: u32,
    ) -> Result<(), ProgramError> {
        if self.names.is_some() {
            return Ok(());
        }
        let mut known = BTreeMap::new();
        let mut stack = vec![(top, self.top.clone())];
        while let Some((inode, path)) = stack.pop() {
            let Some(names) = self.directories.get(&inode) else {
                known.insert(inode, path);
                continue;
            };
            if known.insert(inode, path.clone()).is_some() {
                return Err(ProgramError::Tape("a directory is in two directories"));
            }
            if inode != top {
                system.mkdir(&path).await?;
            }
            let entries = names.iter().rev();
            stack.extend(entries.map(|(inode, name)| (*inode, under(&path, name))));
        }
        self.names = Some(known);
        Ok(())
    }

    /// Sets the owners, modes and times of the directories. Files made in a directory would have
    /// changed its times (`setdirmodes`).
    async fn finish_directories(&self, system: &mut System) -> Result<(), ProgramError> {
        let names = self.names.iter().flatten();
        for (_, path) in names.filter(|(inode, _)| self.directories.contains_key(inode)) {
            system.chown(path).await?;
            system.chmod(path, DIRECTORY_MODE).await?;
            system.utimes(path).await?;
        }
        Ok(())
    }

    /// Writes restore's table of names.
    async fn leave_symbols(&self, system: &mut System) -> Result<(), ProgramError> {
        let Some(names) = &self.names else {
            return Ok(());
        };
        let table = symbols::table(names);
        let path = under(&self.top, symbols::NAME);
        let file = system.open(&path, Open::CREATE).await?;
        for block in table.chunks(CALL_BYTES as usize) {
            write_block(system, file, block, Nanoseconds::ZERO).await?;
        }
        Ok(system.close(file).await?)
    }

    /// Makes a file from the records that follow on the tape.
    async fn file(
        &mut self,
        system: &mut System,
        (inode, size_bytes): (u32, u64),
    ) -> Result<(), ProgramError> {
        system.work(Work::DumpInode).await?;
        let path = self.names.as_ref().and_then(|names| names.get(&inode));
        let path = path.ok_or(ProgramError::Tape("a file is in no directory"))?;
        let file = system.open(path, Open::CREATE).await?;
        own(system, file, path).await?;
        let mut left = size_bytes;
        while left > 0 {
            let length = self
                .block
                .len()
                .min(usize::try_from(left).unwrap_or(usize::MAX));
            for part in self.block[..length].chunks_mut(RECORD_BYTES) {
                let record = self.tape.record(system).await?;
                part.copy_from_slice(&record[..part.len()]);
            }
            write_block(system, file, &self.block[..length], Nanoseconds::ZERO).await?;
            left -= length as u64;
        }
        system.close(file).await?;
        system.utimes(path).await?;
        self.files += 1;
        self.content_bytes += size_bytes;
        Ok(())
    }
}

/// Sets the owner and the mode of a new file: through the open file, or by its name on a system
/// that lacks those calls.
async fn own(system: &mut System, file: File, path: &str) -> Result<(), ProgramError> {
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
fn names(records: &[u8]) -> Option<Vec<(u32, String)>> {
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
