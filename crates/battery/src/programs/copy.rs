//! `copy`: `dd` with one block size, from a file to nothing, to another file
//! of the same file system, or to a file of another one (Zachariassen 1987).

use crate::blocks::{create, ensure_file, read_block, remove_file, seek_to, write_block};
use crate::parameter::{Field, Value, choices};
use crate::program::ProgramError;
use crate::worker::{Medium, Other, Worker};
use diskperf_system::{Buffer, File, Open, System};
use diskperf_timeline::Nanoseconds;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Copy {
    pub(crate) destination: Destination,
    pub(crate) call_bytes: u64,
}

choices! {
    /// Where the bytes go.
    Destination {
        /// `/dev/null`.
        Null = "null",
        /// Another file of the same file system; on a device, its second half.
        Same = "same",
        /// A file of another file system; of partitions by themselves, the next.
        Other = "other",
    }
}

impl Copy {
    pub(crate) fn fields(&mut self) -> Vec<Field<'_>> {
        vec![
            Field {
                name: "destination",
                meaning: "where the bytes go",
                value: Value::Choice(&mut self.destination),
            },
            Field::call_bytes(
                &mut self.call_bytes,
                "bytes that one call reads and one call writes",
            ),
        ]
    }

    pub(crate) fn input(worker: &Worker) -> String {
        worker.file("bigfile")
    }

    /// The file that the copy makes; none where it goes to nothing, or where
    /// the plan has no other file system.
    fn output(&self, worker: &Worker) -> Option<String> {
        match self.destination {
            Destination::Null => None,
            Destination::Same => Some(worker.file("bigfile.new")),
            Destination::Other => {
                let Other { number, medium } = worker.other?;
                let folder = worker.folder;
                Some(match medium {
                    Medium::Directory => format!("/mnt{number}/{folder}bigfile{}", worker.drive),
                    Medium::Device | Medium::File => format!("/dev/drive{number}"),
                })
            }
        }
    }

    /// What the copy is written to.
    fn output_medium(&self, worker: &Worker) -> Medium {
        match (self.destination, worker.other) {
            (Destination::Other, Some(other)) => other.medium,
            (Destination::Other, None) => Medium::Directory,
            (Destination::Null | Destination::Same, _) => worker.medium,
        }
    }

    pub(crate) async fn prepare(
        &self,
        system: &mut System,
        worker: &Worker,
    ) -> Result<(), ProgramError> {
        ensure_file(system, worker, &Self::input(worker), worker.size_bytes).await?;
        match self.output(worker) {
            Some(path) => remove_file(system, self.output_medium(worker), &path).await,
            None => Ok(()),
        }
    }

    pub(crate) async fn run(
        &self,
        system: &mut System,
        worker: &Worker,
        buffer: &mut Buffer,
    ) -> Result<(), ProgramError> {
        let source = Self::input(worker);
        let source = system
            .open(&source, Open::READ.direct(worker.direct))
            .await?;
        let destination = self.open_destination(system, worker).await?;
        let block = &mut buffer[..self.call_bytes as usize];
        let mut left_bytes = worker.size_bytes;
        while left_bytes > 0 {
            // As with dd, the last block is as long as what is left.
            let length = block.len().min(left_bytes as usize);
            let block = &mut block[..length];
            read_block(system, source, block, Nanoseconds::ZERO).await?;
            write_block(system, destination, &*block, worker.think).await?;
            left_bytes -= length as u64;
        }
        Ok(())
    }

    async fn open_destination(
        &self,
        system: &mut System,
        worker: &Worker,
    ) -> Result<File, ProgramError> {
        match self.output(worker) {
            Some(path) => {
                let medium = self.output_medium(worker);
                let file = create(system, medium, &path, worker.direct).await?;
                // Of the same device, its second half.
                if medium != Medium::Directory && self.destination == Destination::Same {
                    let half = system.length(file).await? / 2;
                    seek_to(system, file, half - half % self.call_bytes).await?;
                }
                Ok(file)
            }
            None if self.destination == Destination::Null => {
                Ok(system.open("/dev/null", Open::WRITE).await?)
            }
            None => Err(ProgramError::NoOtherFilesystem),
        }
    }
}
