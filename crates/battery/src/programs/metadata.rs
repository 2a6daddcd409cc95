//! Program `metadata`: creates, stats, renames and removes many small files, as mail servers,
//! builds and package managers do. It measures the operations of a file system on names and inodes,
//! and the cost of making them durable: fsync of the file, and of the directory that has its name.
//! Without both, a crash may lose the file or its name.
//!
//! The phases follow each other, each over all files. The result of a phase that is left out is
//! prepared before the clock starts.

use crate::blocks::{pause, write_block};
use crate::load::{YesNo, field};
use crate::parameter::{Field, Subset, Value, choices};
use crate::pattern::{Entry, Facts, Pattern, Place, Steps};
use crate::program::ProgramError;
use crate::verify::calls::CallVerifier;
use crate::verify::verify_field;
use crate::worker::{Medium, Worker};
use diskperf_system::{Buffer, Errno, File, NameCall, Open, System};
use diskperf_timeline::units::{GIB, MIB};
use diskperf_timeline::{Nanoseconds, WorkerMeasure};

pub(crate) const PROGRAMS: &[Entry] = &[Entry {
    name: "metadata",
    does: "many small files made, looked at, renamed and removed, with syncs of files and directories",
    files: "metadata",
    pattern: || Box::new(Metadata::default()),
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
enum Phase {
    Create,
    Stat,
    Rename,
    Unlink,
}

impl Phase {
    const ALL: [Self; 4] = [Self::Create, Self::Stat, Self::Rename, Self::Unlink];
    const NAMES: &'static [&'static str] = &["create", "stat", "rename", "unlink"];
}

#[derive(Clone, Debug)]
struct Metadata {
    workers: u64,
    files: u64,
    directories: u64,
    file_bytes: u64,
    fsync: Fsync,
    phases: Subset,
    verify: YesNo,
}

impl Default for Metadata {
    fn default() -> Self {
        Self {
            workers: 1,
            files: 1000,
            directories: 10,
            file_bytes: 4096,
            fsync: Fsync::FileAndDirectory,
            phases: Subset::all(Phase::NAMES),
            verify: YesNo::No,
        }
    }
}

/// Interval of the samples over time. Each phase spans several.
const INTERVAL: Nanoseconds = Nanoseconds(100_000_000);

/// Space of a file system that a file takes apart from its blocks: an inode and a name, in bytes.
const INODE_AND_NAME_BYTES: u64 = 512;
/// Block size to which file sizes are rounded up when the needed space is estimated, in bytes.
const BLOCK_BYTES: u64 = 4096;

impl Pattern for Metadata {
    fn fields(&mut self) -> Vec<Field<'_>> {
        vec![
            field(
                "workers",
                "workers on each drive, each with files of its own",
                Value::Count(&mut self.workers, 1, 1024),
            ),
            field(
                "files",
                "files of each worker; with a --size, as many as have that together",
                Value::Count(&mut self.files, 1, 100_000_000),
            ),
            field(
                "directories",
                "directories that they are spread over",
                Value::Count(&mut self.directories, 1, 1_000_000),
            ),
            field(
                "file_bytes",
                "bytes of each file, in one write; 0: files without any",
                Value::Bytes(&mut self.file_bytes, 0, 64 * MIB),
            ),
            field(
                "fsync",
                "what is made durable after each operation",
                Value::Choice(&mut self.fsync),
            ),
            field(
                "phases",
                "what is done to all files and timed, in this order",
                Value::Subset(&mut self.phases),
            ),
            verify_field(&mut self.verify),
        ]
    }

    fn usual_bytes(&self) -> Option<u64> {
        Some(self.files * self.unit())
    }

    fn facts(&self) -> Facts {
        let own_bytes = self.files * self.unit();
        Facts {
            takes_any_size: true,
            workers: self.workers as u32,
            media: &[Medium::Directory],
            renames: self.has(Phase::Rename),
            syncs_names: self.fsync != Fsync::None,
            sizes_bytes: (own_bytes, own_bytes.max(GIB)),
            ..Facts::writing(self.unit())
        }
    }

    fn unfit(&self) -> Option<String> {
        if self.verify == YesNo::Yes && self.has(Phase::Unlink) && self.has(Phase::Create) {
            return Some(
                "files that are removed cannot be read back; give program.phases=create+stat+rename"
                    .to_owned(),
            );
        }
        (self.directories > self.files).then(|| {
            format!(
                "{} directories for {} files leave some empty; give fewer directories or more files",
                self.directories, self.files
            )
        })
    }

    fn file_bytes(&self, size_bytes: u64) -> u64 {
        let each = self.file_bytes.next_multiple_of(BLOCK_BYTES) + INODE_AND_NAME_BYTES;
        let directories = self.directories * BLOCK_BYTES;
        (self.count(size_bytes) * each + directories) * self.workers
    }

    fn prepared_bytes(&self, size_bytes: u64) -> u64 {
        match self.has(Phase::Create) {
            true => 0,
            false => self.file_bytes(size_bytes),
        }
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.written_bytes
    }

    fn prepare<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> Steps<'a> {
        Box::pin(async move {
            let tree = Tree::new(self, worker);
            if tree.make_directories(system).await? {
                tree.remove_files(system).await?;
            }
            if !self.has(Phase::Create) {
                let data = crate::blocks::data(self.unit(), worker.seed);
                for number in 0..tree.files {
                    let file = system.open(&tree.path(number), Open::CREATE).await?;
                    let data = &data[..self.file_bytes as usize];
                    write_block(system, file, data, Nanoseconds::ZERO).await?;
                    system.fsync(file).await?;
                    system.close(file).await?;
                }
            }
            Ok(())
        })
    }

    fn run<'a>(&'a self, (system, worker): Place<'a>, buffer: &'a mut Buffer) -> Steps<'a> {
        Box::pin(async move {
            system.count_calls(INTERVAL);
            let tree = Tree::new(self, worker);
            let data = &buffer[..self.file_bytes as usize];
            let mut verifier = CallVerifier::new(self.verify, (&*system, worker), self.unit());
            for phase in Phase::ALL.into_iter().filter(|phase| self.has(*phase)) {
                for directory in 0..tree.directories {
                    let names = match self.fsync {
                        Fsync::FileAndDirectory if phase != Phase::Stat => {
                            Some(system.open(&tree.directory(directory), Open::READ).await?)
                        }
                        _ => None,
                    };
                    for number in tree.files_of(directory) {
                        let contents = match &mut verifier {
                            Some(verifier) => Contents::Verified(verifier),
                            None => Contents::Same(data),
                        };
                        self.operate((system, &tree), (phase, number), contents)
                            .await?;
                        if let Some(names) = names {
                            sync(system, names).await?;
                        }
                        pause(system, worker.think).await?;
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

impl Metadata {
    fn has(&self, phase: Phase) -> bool {
        self.phases.has(phase as usize)
    }

    /// Returns the bytes for which a file counts in a size. Files without bytes count for one byte.
    fn unit(&self) -> u64 {
        self.file_bytes.max(1)
    }

    /// Returns the number of files whose bytes add up to the given size, at least one.
    fn count(&self, size_bytes: u64) -> u64 {
        (size_bytes / self.unit()).max(1)
    }

    /// Performs the operation of a phase on a file, and records it.
    async fn operate(
        &self,
        (system, tree): (&mut System, &Tree),
        (phase, number): (Phase, u64),
        contents: Contents<'_>,
    ) -> Result<(), ProgramError> {
        let begin = system.now();
        let call = match phase {
            Phase::Create => return self.create((system, tree), number, contents).await,
            Phase::Stat => {
                let length = system.stat(&tree.path(number)).await?;
                if length != self.file_bytes {
                    return Err(ProgramError::ShortFile);
                }
                NameCall::Stat
            }
            Phase::Rename => {
                system
                    .rename(&tree.path(number), &tree.renamed(number))
                    .await?;
                NameCall::Rename
            }
            Phase::Unlink => {
                system.unlink(&tree.last_name(number)).await?;
                NameCall::Unlink
            }
        };
        let took = system.now().since(begin);
        system.count_call(call, 0, took);
        Ok(())
    }

    /// Creates a file. Its sync, between the write and the close, is timed separately.
    async fn create(
        &self,
        (system, tree): (&mut System, &Tree),
        number: u64,
        contents: Contents<'_>,
    ) -> Result<(), ProgramError> {
        let begin = system.now();
        let path = tree.path(number);
        let file = system.open(&path, Open::WRITE.create_new()).await?;
        match contents {
            _ if self.file_bytes == 0 => {}
            Contents::Same(data) => write_block(system, file, data, Nanoseconds::ZERO).await?,
            Contents::Verified(verifier) => {
                let index = verifier.add_file(tree.last_name(number));
                let open = (&mut *system, file);
                verifier
                    .write(open, (index, 0), self.file_bytes, Nanoseconds::ZERO)
                    .await?;
            }
        }
        let mut took = system.now().since(begin);
        if self.fsync != Fsync::None {
            sync(system, file).await?;
        }
        let closing = system.now();
        system.close(file).await?;
        took = took + system.now().since(closing);
        system.count_call(NameCall::Create, self.file_bytes, took);
        Ok(())
    }
}

enum Contents<'c> {
    Same(&'c [u8]),
    /// Distinct contents for each file, which are verified.
    Verified(&'c mut CallVerifier),
}

/// Makes a file or the names in a directory durable, and records the sync.
async fn sync(system: &mut System, file: File) -> Result<(), ProgramError> {
    let begin = system.now();
    system.fsync(file).await?;
    let took = system.now().since(begin);
    system.count_call(NameCall::Sync, 0, took);
    Ok(())
}

/// Names of a worker's files.
struct Tree {
    top: String,
    files: u64,
    directories: u64,
    /// Whether the files have their second names when they are removed.
    renamed: bool,
}

impl Tree {
    fn new(metadata: &Metadata, worker: &Worker) -> Self {
        let files = metadata.count(worker.size_bytes);
        Self {
            top: worker.file(&format!("names{}", worker.index)),
            files,
            directories: metadata.directories.min(files),
            renamed: metadata.has(Phase::Rename),
        }
    }

    fn directory(&self, directory: u64) -> String {
        format!("{}/d{directory}", self.top)
    }

    /// Returns the files of a directory. The numbers of files in two directories differ by at most
    /// one.
    fn files_of(&self, directory: u64) -> std::ops::Range<u64> {
        let first = |directory: u64| {
            let product = u128::from(self.files) * u128::from(directory);
            product.div_ceil(u128::from(self.directories)) as u64
        };
        first(directory)..first(directory + 1)
    }

    fn directory_of(&self, number: u64) -> u64 {
        let product = u128::from(number) * u128::from(self.directories);
        (product / u128::from(self.files)) as u64
    }

    fn path(&self, number: u64) -> String {
        format!("{}/f{number}", self.directory(self.directory_of(number)))
    }

    fn renamed(&self, number: u64) -> String {
        format!("{}/r{number}", self.directory(self.directory_of(number)))
    }

    /// Returns the last name of a file, after all phases that rename it.
    fn last_name(&self, number: u64) -> String {
        match self.renamed {
            true => self.renamed(number),
            false => self.path(number),
        }
    }

    /// Makes the missing directories, and returns whether any of them existed.
    async fn make_directories(&self, system: &mut System) -> Result<bool, ProgramError> {
        let mut was_there = false;
        let below = (0..self.directories).map(|directory| self.directory(directory));
        for path in [self.top.clone()].into_iter().chain(below) {
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
        for number in 0..self.files {
            for path in [self.path(number), self.renamed(number)] {
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
                let tree = Tree {
                    top: "/mnt0/names0".to_owned(),
                    files,
                    directories,
                    renamed: false,
                };
                let of = |directory| tree.files_of(directory).map(move |file| (file, directory));
                let all: Vec<(u64, u64)> = (0..directories).flat_map(of).collect();
                let expected: Vec<(u64, u64)> = (0..files)
                    .map(|file| (file, tree.directory_of(file)))
                    .collect();
                assert_eq!(all, expected, "{files} files in {directories} directories");
                let counts = (0..directories).map(|one| tree.files_of(one).count() as u64);
                let (least, most) = (counts.clone().min().unwrap(), counts.max().unwrap());
                assert!(
                    most - least <= 1,
                    "{files} files in {directories} directories"
                );
            }
        }
    }
}
