//! Program `metadata`: creates, stats, renames and removes many small files, as mail servers,
//! builds and package managers do. It measures the operations of a file system on names and inodes,
//! and the cost of making them durable: fsync of the file, and of the directory that has its name.
//! Without both, a crash may lose the file or its name.
//!
//! The phases follow each other, each over all files. The result of a phase that is left out is
//! prepared before the clock starts.

use crate::blocks::{pause_for_think_time, write_block};
use crate::load::{YesNo, new_field};
use crate::parameter::{NameSubset, ParameterField, ParameterValue, choices};
use crate::pattern::{
    AccessPattern, PhaseFuture, ProgramEntry, ProgramProperties, SystemAndWorker,
};
use crate::program::ProgramError;
use crate::verify::calls::CallVerifier;
use crate::verify::verify_field;
use crate::worker::{Medium, Worker};
use diskperf_system::{Buffer, Errno, File, NameCall, OpenOptions, System};
use diskperf_timeline::units::{GIB, MIB};
use diskperf_timeline::{Nanoseconds, WorkerMeasure};

pub(crate) const PROGRAMS: &[ProgramEntry] = &[ProgramEntry {
    name: "metadata",
    summary: "creates, stats, renames and removes many small files, with syncs of files and \
    directories",
    file_set_name: "metadata",
    new_pattern: || Box::new(MetadataProgram::default()),
}];

choices! {
    /// Choice of the objects that are made durable after each operation.
    Fsync {
        /// No fsync after any operation.
        None = "none",
        /// fsync of each created file.
        File = "file",
        /// fsync of each created file, and of the directory of every changed name.
        FileAndDirectory = "file_and_directory",
    }
}

/// Phase of the program: an operation on all files, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MetadataPhase {
    Create,
    Stat,
    Rename,
    Unlink,
}

impl MetadataPhase {
    const ALL_PHASES: [Self; 4] = [Self::Create, Self::Stat, Self::Rename, Self::Unlink];
    const PHASE_NAMES: &'static [&'static str] = &["create", "stat", "rename", "unlink"];
}

#[derive(Clone, Debug)]
struct MetadataProgram {
    worker_count: u64,
    file_count_per_worker: u64,
    directory_count: u64,
    file_bytes: u64,
    fsync_mode: Fsync,
    selected_phases: NameSubset,
    verify_files: YesNo,
}

impl Default for MetadataProgram {
    fn default() -> Self {
        Self {
            worker_count: 1,
            file_count_per_worker: 1000,
            directory_count: 10,
            file_bytes: 4096,
            fsync_mode: Fsync::FileAndDirectory,
            selected_phases: NameSubset::select_all(MetadataPhase::PHASE_NAMES),
            verify_files: YesNo::No,
        }
    }
}

/// Interval of the samples over time. Each phase spans several.
const SAMPLE_INTERVAL: Nanoseconds = Nanoseconds(100_000_000);

/// Space of a file system that a file takes apart from its blocks: an inode and a name, in bytes.
const INODE_AND_NAME_BYTES: u64 = 512;
/// Block size to which file sizes are rounded up when the needed space is estimated, in bytes.
const BLOCK_BYTES: u64 = 4096;

impl AccessPattern for MetadataProgram {
    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        vec![
            new_field(
                "workers",
                "workers per drive, each with its own files",
                ParameterValue::Count(&mut self.worker_count, 1, 1024),
            ),
            new_field(
                "files",
                "files per worker; a --size determines their number instead",
                ParameterValue::Count(&mut self.file_count_per_worker, 1, 100_000_000),
            ),
            new_field(
                "directories",
                "directories over which the files are spread",
                ParameterValue::Count(&mut self.directory_count, 1, 1_000_000),
            ),
            new_field(
                "file_bytes",
                "bytes per file, in one write; 0: empty files",
                ParameterValue::ByteCount(&mut self.file_bytes, 0, 64 * MIB),
            ),
            new_field(
                "fsync",
                "objects that are made durable after each operation",
                ParameterValue::NamedChoice(&mut self.fsync_mode),
            ),
            new_field(
                "phases",
                "operations on all files that are timed, in this order",
                ParameterValue::NameSubset(&mut self.selected_phases),
            ),
            verify_field(&mut self.verify_files),
        ]
    }

    fn default_bytes(&self) -> Option<u64> {
        Some(self.file_count_per_worker * self.counted_file_bytes())
    }

    fn program_properties(&self) -> ProgramProperties {
        let own_bytes = self.file_count_per_worker * self.counted_file_bytes();
        ProgramProperties {
            accepts_any_size: true,
            worker_count: self.worker_count as u32,
            supported_media: &[Medium::Directory],
            renames_files: self.has_phase(MetadataPhase::Rename),
            syncs_directory_entries: self.fsync_mode != Fsync::None,
            size_bytes_range: (own_bytes, own_bytes.max(GIB)),
            ..ProgramProperties::new_for_writes(self.counted_file_bytes())
        }
    }

    fn validation_error(&self) -> Option<String> {
        if self.verify_files == YesNo::Yes
            && self.has_phase(MetadataPhase::Unlink)
            && self.has_phase(MetadataPhase::Create)
        {
            return Some(
                "files that are removed cannot be read back; give program.phases=create+stat+rename"
                    .to_owned(),
            );
        }
        (self.directory_count > self.file_count_per_worker).then(|| {
            format!(
                "some of the {} directories would stay empty with {} files; give fewer \
                 directories or more files",
                self.directory_count, self.file_count_per_worker
            )
        })
    }

    fn file_bytes(&self, size_bytes: u64) -> u64 {
        let each = self.file_bytes.next_multiple_of(BLOCK_BYTES) + INODE_AND_NAME_BYTES;
        let directories = self.directory_count * BLOCK_BYTES;
        (self.file_count(size_bytes) * each + directories) * self.worker_count
    }

    fn prepared_bytes(&self, size_bytes: u64) -> u64 {
        match self.has_phase(MetadataPhase::Create) {
            true => 0,
            false => self.file_bytes(size_bytes),
        }
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.written_bytes
    }

    fn prepare_target<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
        Box::pin(async move {
            let tree = MetadataTree::new(self, worker);
            if tree.make_directories(system).await? {
                tree.remove_files(system).await?;
            }
            if !self.has_phase(MetadataPhase::Create) {
                let data =
                    crate::blocks::new_data_buffer(self.counted_file_bytes(), worker.random_seed);
                for number in 0..tree.file_count {
                    let file = system
                        .open(&tree.file_path(number), OpenOptions::CREATE)
                        .await?;
                    let data = &data[..self.file_bytes as usize];
                    write_block(system, file, data, Nanoseconds::ZERO).await?;
                    system.fsync(file).await?;
                    system.close(file).await?;
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
            system.begin_name_call_series(SAMPLE_INTERVAL);
            let tree = MetadataTree::new(self, worker);
            let data = &buffer[..self.file_bytes as usize];
            let mut verifier = CallVerifier::new(
                self.verify_files,
                (&*system, worker),
                self.counted_file_bytes(),
            );
            for phase in MetadataPhase::ALL_PHASES
                .into_iter()
                .filter(|phase| self.has_phase(*phase))
            {
                for directory in 0..tree.directory_count {
                    let names = match self.fsync_mode {
                        Fsync::FileAndDirectory if phase != MetadataPhase::Stat => Some(
                            system
                                .open(&tree.directory_path(directory), OpenOptions::READ)
                                .await?,
                        ),
                        _ => None,
                    };
                    for number in tree.files_in_directory(directory) {
                        let contents = match &mut verifier {
                            Some(verifier) => FileContents::VerifiedData(verifier),
                            None => FileContents::ConstantData(data),
                        };
                        self.do_operation((system, &tree), (phase, number), contents)
                            .await?;
                        if let Some(names) = names {
                            sync_file(system, names).await?;
                        }
                        pause_for_think_time(system, worker.think_time).await?;
                    }
                    if let Some(names) = names {
                        system.close(names).await?;
                    }
                }
            }
            match verifier {
                Some(verifier) => verifier.read_back((system, worker)).await,
                None => Ok(()),
            }
        })
    }
}

impl MetadataProgram {
    fn has_phase(&self, phase: MetadataPhase) -> bool {
        self.selected_phases.is_selected(phase as usize)
    }

    /// Returns the bytes for which a file counts in a size. Files without bytes count for one byte.
    fn counted_file_bytes(&self) -> u64 {
        self.file_bytes.max(1)
    }

    /// Returns the number of files whose bytes add up to the given size, at least one.
    fn file_count(&self, size_bytes: u64) -> u64 {
        (size_bytes / self.counted_file_bytes()).max(1)
    }

    /// Performs the operation of a phase on a file, and records it.
    async fn do_operation(
        &self,
        (system, tree): (&mut System, &MetadataTree),
        (phase, number): (MetadataPhase, u64),
        contents: FileContents<'_>,
    ) -> Result<(), ProgramError> {
        let begin = system.now();
        let call = match phase {
            MetadataPhase::Create => {
                return self.create_file((system, tree), number, contents).await;
            }
            MetadataPhase::Stat => {
                let length = system.stat(&tree.file_path(number)).await?;
                if length != self.file_bytes {
                    return Err(ProgramError::ShortFile);
                }
                NameCall::Stat
            }
            MetadataPhase::Rename => {
                system
                    .rename(&tree.file_path(number), &tree.path_after_rename(number))
                    .await?;
                NameCall::Rename
            }
            MetadataPhase::Unlink => {
                system.unlink(&tree.name_after_rename(number)).await?;
                NameCall::Unlink
            }
        };
        let took = system.now().since(begin);
        system.count_name_call(call, 0, took);
        Ok(())
    }

    /// Creates a file. Its sync, between the write and the close, is timed separately.
    async fn create_file(
        &self,
        (system, tree): (&mut System, &MetadataTree),
        number: u64,
        contents: FileContents<'_>,
    ) -> Result<(), ProgramError> {
        let begin = system.now();
        let path = tree.file_path(number);
        let file = system
            .open(&path, OpenOptions::WRITE.with_create_new())
            .await?;
        match contents {
            _ if self.file_bytes == 0 => {}
            FileContents::ConstantData(data) => {
                write_block(system, file, data, Nanoseconds::ZERO).await?
            }
            FileContents::VerifiedData(verifier) => {
                let index = verifier.add_file(tree.name_after_rename(number));
                let open = (&mut *system, file);
                verifier
                    .write(open, (index, 0), self.file_bytes, Nanoseconds::ZERO)
                    .await?;
            }
        }
        let mut took = system.now().since(begin);
        if self.fsync_mode != Fsync::None {
            sync_file(system, file).await?;
        }
        let closing = system.now();
        system.close(file).await?;
        took = took + system.now().since(closing);
        system.count_name_call(NameCall::Create, self.file_bytes, took);
        Ok(())
    }
}

enum FileContents<'c> {
    ConstantData(&'c [u8]),
    /// Distinct contents for each file, which are verified.
    VerifiedData(&'c mut CallVerifier),
}

/// Makes a file or the names in a directory durable, and records the sync.
async fn sync_file(system: &mut System, file: File) -> Result<(), ProgramError> {
    let begin = system.now();
    system.fsync(file).await?;
    let took = system.now().since(begin);
    system.count_name_call(NameCall::Sync, 0, took);
    Ok(())
}

/// Names of a worker's files.
struct MetadataTree {
    top_path: String,
    file_count: u64,
    directory_count: u64,
    /// Whether the files have their second names when they are removed.
    are_files_renamed: bool,
}

impl MetadataTree {
    fn new(metadata: &MetadataProgram, worker: &Worker) -> Self {
        let files = metadata.file_count(worker.size_bytes);
        Self {
            top_path: worker.file_path(&format!("names{}", worker.worker_index)),
            file_count: files,
            directory_count: metadata.directory_count.min(files),
            are_files_renamed: metadata.has_phase(MetadataPhase::Rename),
        }
    }

    fn directory_path(&self, directory: u64) -> String {
        format!("{}/d{directory}", self.top_path)
    }

    /// Returns the files of a directory. The numbers of files in two directories differ by at most
    /// one.
    fn files_in_directory(&self, directory: u64) -> std::ops::Range<u64> {
        let first = |directory: u64| {
            let product = u128::from(self.file_count) * u128::from(directory);
            product.div_ceil(u128::from(self.directory_count)) as u64
        };
        first(directory)..first(directory + 1)
    }

    fn directory_of_file(&self, number: u64) -> u64 {
        let product = u128::from(number) * u128::from(self.directory_count);
        (product / u128::from(self.file_count)) as u64
    }

    fn file_path(&self, number: u64) -> String {
        format!(
            "{}/f{number}",
            self.directory_path(self.directory_of_file(number))
        )
    }

    fn path_after_rename(&self, number: u64) -> String {
        format!(
            "{}/r{number}",
            self.directory_path(self.directory_of_file(number))
        )
    }

    /// Returns the last name of a file, after all phases that rename it.
    fn name_after_rename(&self, number: u64) -> String {
        match self.are_files_renamed {
            true => self.path_after_rename(number),
            false => self.file_path(number),
        }
    }

    /// Makes the missing directories, and returns whether any of them existed.
    async fn make_directories(&self, system: &mut System) -> Result<bool, ProgramError> {
        let mut was_there = false;
        let below = (0..self.directory_count).map(|directory| self.directory_path(directory));
        for path in [self.top_path.clone()].into_iter().chain(below) {
            match system.mkdir(&path).await {
                Ok(()) => {}
                Err(error) if error.errno() == Some(Errno::Exists) => was_there = true,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(was_there)
    }

    /// Removes the files of an earlier repetition under either name.
    async fn remove_files(&self, system: &mut System) -> Result<(), ProgramError> {
        for number in 0..self.file_count {
            for path in [self.file_path(number), self.path_after_rename(number)] {
                match system.unlink(&path).await {
                    Err(error) if error.errno() != Some(Errno::NoEntry) => {
                        return Err(error.into());
                    }
                    Ok(()) | Err(_) => {}
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_in_the_directory_that_has_it() {
        for files in [1, 2, 7, 10, 1000] {
            for directories in (1..=10).filter(|directories| *directories <= files) {
                let tree = MetadataTree {
                    top_path: "/mnt0/names0".to_owned(),
                    file_count: files,
                    directory_count: directories,
                    are_files_renamed: false,
                };
                let of = |directory| {
                    tree.files_in_directory(directory)
                        .map(move |file| (file, directory))
                };
                let all: Vec<(u64, u64)> = (0..directories).flat_map(of).collect();
                let expected: Vec<(u64, u64)> = (0..files)
                    .map(|file| (file, tree.directory_of_file(file)))
                    .collect();
                assert_eq!(all, expected, "{files} files in {directories} directories");
                let counts =
                    (0..directories).map(|one| tree.files_in_directory(one).count() as u64);
                let (least, most) = (counts.clone().min().unwrap(), counts.max().unwrap());
                assert!(
                    most - least <= 1,
                    "{files} files in {directories} directories"
                );
            }
        }
    }
}
