//! Program `read_files`: reads files of one size, one after the other, on a fresh or on an aged
//! file system. It tests the claims of Piziali and Zam 1991 about small and large, fragmented and
//! contiguous files.
//!
//! A file system ages as files come and go. Before the program makes its own files, it makes small
//! ones, removes them in a random order, and repeats this. The file system alone decides which
//! blocks it then allocates.

use crate::blocks::{ensure_file, new_data_buffer, read_block, write_block};
use crate::parameter::{ParameterField, ParameterValue};
use crate::pattern::{
    AccessPattern, PhaseFuture, ProgramEntry, ProgramProperties, SystemAndWorker,
};
use crate::program::{InputFile, ProgramError, greatest_common_divisor};
use crate::random::RandomDraws;
use crate::worker::{Medium, Worker};
use diskperf_system::{Buffer, Errno, OpenOptions, System};
use diskperf_timeline::Nanoseconds;

pub(crate) const PROGRAMS: &[ProgramEntry] = &[ProgramEntry {
    name: "read_files",
    summary: "reads files of equal size on a fresh or aged file system (1991)",
    file_set_name: "files",
    new_pattern: || {
        Box::new(ReadFiles {
            file_bytes: 2048,
            churn_round_count: 0,
            call_bytes: 8192,
        })
    },
}];

#[derive(Clone, Debug)]
struct ReadFiles {
    file_bytes: u64,
    churn_round_count: u64,
    call_bytes: u64,
}

/// Mean size of the small files that age the file system, in bytes. Most files of the time had a
/// few kilobytes (see `tree`).
const CHURN_FILE_BYTES_MEAN: f64 = 2048.0;
/// Maximum size of the small files that age the file system, in bytes.
const CHURN_FILE_BYTES_MAX: u64 = 16 << 10;
/// Bytes of the program's own files for each small file that ages the file system.
const SIZE_BYTES_PER_CHURN_FILE: u64 = 2048;
const CHURN_STREAM: u128 = 4;
/// Files per directory. With more of them, the name look-ups would take longer than the reads.
const FILES_PER_DIRECTORY: u64 = 30;

impl AccessPattern for ReadFiles {
    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        vec![
            ParameterField {
                name: "file_bytes",
                description: "bytes per file, at most the --size",
                value: ParameterValue::ByteCount(&mut self.file_bytes, 1, 1 << 40),
            },
            ParameterField {
                name: "churn",
                description: "rounds of creating and removing small files before the measurement; 0: \
                fresh file system",
                value: ParameterValue::Count(&mut self.churn_round_count, 0, 100),
            },
            ParameterField::new_call_bytes(&mut self.call_bytes, "maximum bytes per read call"),
        ]
    }

    fn program_properties(&self) -> ProgramProperties {
        ProgramProperties {
            accepts_any_size: true,
            supported_media: &[Medium::Directory],
            ..ProgramProperties::new_for_reads(self.call_bytes)
        }
    }

    fn unit_bytes(&self, size_bytes: u64) -> u64 {
        greatest_common_divisor(
            greatest_common_divisor(self.call_bytes, self.file_bytes),
            size_bytes,
        )
    }

    /// Returns the bytes of the program's files and of the small files that aged the file system,
    /// with an allowance for partly filled blocks.
    fn file_bytes(&self, size_bytes: u64) -> u64 {
        let churned = match self.churn_round_count {
            0 => 0,
            // The mean, and as much again for blocks that are not full.
            _ => churn_file_count(size_bytes) * 2 * CHURN_FILE_BYTES_MEAN as u64,
        };
        // Blocks that are not full, and directories.
        let files = size_bytes.div_ceil(self.file_bytes);
        size_bytes + churned + files * 1024
    }

    fn input_files(&self, worker: &Worker) -> Vec<InputFile> {
        let read = |(path, length_bytes)| InputFile::new_read(path, length_bytes);
        self.planned_files(worker).into_iter().map(read).collect()
    }

    fn prepare_target<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
        Box::pin(async move {
            let files = self.planned_files(worker);
            let made = match system.open(&files[0].0, OpenOptions::READ).await {
                Ok(file) => {
                    system.close(file).await?;
                    true
                }
                Err(error) if error.errno() == Some(Errno::NoEntry) => false,
                Err(error) => return Err(error.into()),
            };
            if !made {
                self.remove_old_and_make_directories(system, worker, files.len())
                    .await?;
            }
            for (path, length) in &files {
                match ensure_file(system, worker, path, *length).await {
                    // The files before it were made when the size was smaller.
                    Err(ProgramError::SystemCallFailed(error))
                        if error.errno() == Some(Errno::NoEntry) =>
                    {
                        self.remove_old_and_make_directories(system, worker, files.len())
                            .await?;
                        ensure_file(system, worker, path, *length).await?;
                    }
                    result => result?,
                }
            }
            Ok(())
        })
    }

    fn run_timed_part<'a>(
        &'a self,
        (system, worker): SystemAndWorker<'a>,
        buffer: &'a mut Buffer,
    ) -> PhaseFuture<'a> {
        Box::pin(async move {
            for (path, length) in self.planned_files(worker) {
                let how = OpenOptions::READ.with_direct(worker.direct_io);
                let file = system.open(&path, how).await?;
                for offset in (0..length).step_by(self.call_bytes as usize) {
                    let bytes = self.call_bytes.min(length - offset) as usize;
                    read_block(system, file, &mut buffer[..bytes], worker.think_time).await?;
                }
                system.close(file).await?;
            }
            Ok(())
        })
    }
}

impl ReadFiles {
    /// Returns the paths and the lengths of the files. All have the same length but the last.
    fn planned_files(&self, worker: &Worker) -> Vec<(String, u64)> {
        let count = worker.size_bytes.div_ceil(self.file_bytes);
        let length = |number| {
            self.file_bytes
                .min(worker.size_bytes - number * self.file_bytes)
        };
        let top = self.top_path(worker);
        let path = |number| format!("{top}/{}/{number}", number / FILES_PER_DIRECTORY);
        (0..count)
            .map(|number| (path(number), length(number)))
            .collect()
    }

    /// Returns the directory of the files. Each combination of file size and ageing has its own
    /// directory.
    fn top_path(&self, worker: &Worker) -> String {
        worker.file_path(&format!("f{}-{}", self.file_bytes, self.churn_round_count))
    }

    async fn remove_old_and_make_directories(
        &self,
        system: &mut System,
        worker: &Worker,
        files: usize,
    ) -> Result<(), ProgramError> {
        self.age_filesystem(system, worker).await?;
        make_directories(system, &self.top_path(worker), files as u64).await
    }

    /// Ages the file system: creates small files and removes them all, as often as `churn` says.
    async fn age_filesystem(
        &self,
        system: &mut System,
        worker: &Worker,
    ) -> Result<(), ProgramError> {
        let mut draws = RandomDraws::new(worker.random_seed, CHURN_STREAM);
        let buffer = new_data_buffer(CHURN_FILE_BYTES_MAX, worker.random_seed);
        let count = churn_file_count(worker.size_bytes);
        let top = worker.file_path("churn");
        if self.churn_round_count > 0 {
            make_directories(system, &top, count).await?;
        }
        let path = |number: u64| format!("{top}/{}/{number}", number / FILES_PER_DIRECTORY);
        for _ in 0..self.churn_round_count {
            for number in 0..count {
                let bytes = (draws.draw_exponential() * CHURN_FILE_BYTES_MEAN) as u64;
                let bytes = bytes.clamp(1, CHURN_FILE_BYTES_MAX) as usize;
                let file = system.open(&path(number), OpenOptions::CREATE).await?;
                write_block(system, file, &buffer[..bytes], Nanoseconds::ZERO).await?;
                system.close(file).await?;
            }
            let mut left: Vec<u64> = (0..count).collect();
            while !left.is_empty() {
                let gone = left.swap_remove(draws.draw_below(left.len() as u64) as usize);
                system.unlink(&path(gone)).await?;
            }
        }
        Ok(())
    }
}

/// Makes the directories for the given number of files. Existing directories stay.
async fn make_directories(system: &mut System, top: &str, files: u64) -> Result<(), ProgramError> {
    let below = (0..files.div_ceil(FILES_PER_DIRECTORY)).map(|number| format!("{top}/{number}"));
    for path in [top.to_owned()].into_iter().chain(below) {
        match system.mkdir(&path).await {
            Err(error) if error.errno() != Some(Errno::Exists) => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

fn churn_file_count(size_bytes: u64) -> u64 {
    size_bytes.div_ceil(SIZE_BYTES_PER_CHURN_FILE)
}

#[cfg(test)]
mod tests {
    use super::ReadFiles;
    use crate::company::WorkerGroupMember;
    use crate::pattern::AccessPattern;
    use crate::worker::{Medium, Worker};
    use diskperf_timeline::Nanoseconds;
    use std::collections::BTreeSet;

    #[test]
    fn the_files_are_the_size_together_and_have_names_of_their_own() {
        let worker = Worker {
            worker_index: 0,
            drive_index: 0,
            medium: Medium::Directory,
            file_folder: "foo/",
            second_target: None,
            size_bytes: 100_000,
            direct_io: false,
            random_seed: 1,
            think_time: Nanoseconds::ZERO,
            worker_group: WorkerGroupMember::default(),
        };
        for file_bytes in [1, 1024, 2048, 99_999, 100_000, 1 << 30] {
            let program = ReadFiles {
                file_bytes,
                churn_round_count: 0,
                call_bytes: 8192,
            };
            let files = program.planned_files(&worker);
            let bytes: u64 = files.iter().map(|(_, bytes)| bytes).sum();
            assert_eq!(bytes, worker.size_bytes, "{file_bytes}");
            assert!(
                files
                    .iter()
                    .all(|(_, bytes)| (1..=file_bytes).contains(bytes))
            );
            let names: BTreeSet<&String> = files.iter().map(|(path, _)| path).collect();
            assert_eq!(names.len(), files.len());
            assert!(program.file_bytes(worker.size_bytes) >= worker.size_bytes);
        }
    }
}
