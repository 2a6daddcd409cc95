//! Program `copy`: `dd` with one block size, from a file to nothing, to another file of the same
//! file system, or to a file of another file system (Zachariassen 1987).

use crate::blocks::{
    create_empty_file, ensure_file, read_block, remove_file, seek_to_offset, write_block,
};
use crate::load::YesNo;
use crate::parameter::{ParameterField, ParameterValue, choices};
use crate::pattern::{
    AccessPattern, PhaseFuture, ProgramEntry, ProgramProperties, SystemAndWorker,
};
use crate::program::{InputFile, ProgramError, greatest_common_divisor};
use crate::verify::copies::{CopiedFile, CopyComparison};
use crate::verify::verify_field;
use crate::worker::{Medium, SecondTarget, Worker};
use diskperf_system::{Buffer, File, OpenOptions, System};
use diskperf_timeline::Nanoseconds;

pub(crate) const PROGRAMS: &[ProgramEntry] = &[ProgramEntry {
    name: "copy",
    summary: "dd: copies a file to nowhere, to another file, or to another file system (1987)",
    file_set_name: "bigfile",
    new_pattern: || {
        Box::new(CopyProgram {
            destination: Destination::Null,
            call_bytes: 8192,
            verify_copies: YesNo::No,
        })
    },
}];

#[derive(Clone, Debug)]
struct CopyProgram {
    destination: Destination,
    call_bytes: u64,
    verify_copies: YesNo,
}

choices! {
    /// Destination of the copied bytes.
    Destination {
        /// `/dev/null`, which discards the bytes.
        Null = "null",
        /// Another file of the same file system. On a device, its second half.
        Same = "same",
        /// File of another file system. For bare partitions, the next partition.
        Other = "other",
    }
}

impl AccessPattern for CopyProgram {
    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        vec![
            ParameterField {
                name: "destination",
                description: "destination of the copied data",
                value: ParameterValue::NamedChoice(&mut self.destination),
            },
            ParameterField::new_call_bytes(
                &mut self.call_bytes,
                "bytes per read call and per write call",
            ),
            verify_field(&mut self.verify_copies),
        ]
    }

    fn program_properties(&self) -> ProgramProperties {
        ProgramProperties {
            accepts_any_size: true,
            pass_count: 2,
            writes_target: self.destination == Destination::Same,
            needs_second_target: self.destination == Destination::Other,
            ..ProgramProperties::new_for_reads(self.call_bytes)
        }
    }

    fn unit_bytes(&self, size_bytes: u64) -> u64 {
        greatest_common_divisor(self.call_bytes, size_bytes)
    }

    fn file_bytes(&self, size_bytes: u64) -> u64 {
        match self.destination {
            Destination::Same => size_bytes.saturating_mul(2),
            Destination::Null | Destination::Other => size_bytes,
        }
    }

    fn prepared_bytes(&self, size_bytes: u64) -> u64 {
        size_bytes
    }

    fn input_files(&self, worker: &Worker) -> Vec<InputFile> {
        vec![InputFile::new_read(
            Self::input_path(worker),
            worker.size_bytes,
        )]
    }

    fn prepare_target<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
        Box::pin(async move {
            ensure_file(system, worker, &Self::input_path(worker), worker.size_bytes).await?;
            match self.output_path(worker) {
                Some(path) => remove_file(system, self.output_medium(worker), &path).await,
                None => Ok(()),
            }
        })
    }

    fn run_timed_part<'a>(
        &'a self,
        (system, worker): SystemAndWorker<'a>,
        buffer: &'a mut Buffer,
    ) -> PhaseFuture<'a> {
        Box::pin(async move {
            let source = Self::input_path(worker);
            let source = system
                .open(&source, OpenOptions::READ.with_direct(worker.direct_io))
                .await?;
            let destination = self.open_destination(system, worker).await?;
            let block = &mut buffer[..self.call_bytes as usize];
            let mut left_bytes = worker.size_bytes;
            while left_bytes > 0 {
                // As with dd, the last block is as long as what is left.
                let length = block.len().min(left_bytes as usize);
                let block = &mut block[..length];
                read_block(system, source, block, Nanoseconds::ZERO).await?;
                write_block(system, destination, &*block, worker.think_time).await?;
                left_bytes -= length as u64;
            }
            self.verify_copy((system, worker), destination).await
        })
    }
}

impl CopyProgram {
    fn input_path(worker: &Worker) -> String {
        worker.file_path("bigfile")
    }

    /// Returns the path of the copy. `None` if the bytes are discarded, or if the plan has no other
    /// file system.
    fn output_path(&self, worker: &Worker) -> Option<String> {
        match self.destination {
            Destination::Null => None,
            Destination::Same => Some(worker.file_path("bigfile.new")),
            Destination::Other => {
                let SecondTarget {
                    drive_number: number,
                    medium,
                } = worker.second_target?;
                let folder = worker.file_folder;
                Some(match medium {
                    Medium::Directory => {
                        format!("/mnt{number}/{folder}bigfile{}", worker.drive_index)
                    }
                    Medium::Device | Medium::File => format!("/dev/drive{number}"),
                })
            }
        }
    }

    fn output_medium(&self, worker: &Worker) -> Medium {
        match (self.destination, worker.second_target) {
            (Destination::Other, Some(other)) => other.medium,
            (Destination::Other, None) => Medium::Directory,
            (Destination::Null | Destination::Same, _) => worker.medium,
        }
    }

    /// Compares the copy with its source, if verification is on and a copy exists.
    async fn verify_copy(
        &self,
        (system, worker): (&mut System, &Worker),
        destination: File,
    ) -> Result<(), ProgramError> {
        if self.verify_copies == YesNo::No {
            return Ok(());
        }
        let copied = match self.output_path(worker) {
            None => None,
            Some(copy) => Some(CopiedFile {
                source_path: Self::input_path(worker),
                copy_path: copy,
                copy_offset_bytes: self.copy_start_bytes(system, worker, destination).await?,
                bytes: worker.size_bytes,
            }),
        };
        let block_bytes = self.call_bytes;
        CopyComparison::run_comparison((system, worker), copied.as_slice(), block_bytes).await
    }

    /// Returns the offset of the copy in bytes: half the device for a copy within one device, else
    /// 0.
    async fn copy_start_bytes(
        &self,
        system: &mut System,
        worker: &Worker,
        destination: File,
    ) -> Result<u64, ProgramError> {
        let medium = self.output_medium(worker);
        if medium == Medium::Directory || self.destination != Destination::Same {
            return Ok(0);
        }
        let half = system.file_length(destination).await? / 2;
        Ok(half - half % self.call_bytes)
    }

    async fn open_destination(
        &self,
        system: &mut System,
        worker: &Worker,
    ) -> Result<File, ProgramError> {
        match self.output_path(worker) {
            Some(path) => {
                let medium = self.output_medium(worker);
                let file = create_empty_file(system, medium, &path, worker.direct_io).await?;
                match self.copy_start_bytes(system, worker, file).await? {
                    0 => {}
                    start_bytes => seek_to_offset(system, file, start_bytes).await?,
                }
                Ok(file)
            }
            None if self.destination == Destination::Null => {
                Ok(system.open("/dev/null", OpenOptions::WRITE).await?)
            }
            None => Err(ProgramError::NoSecondFilesystem),
        }
    }
}
