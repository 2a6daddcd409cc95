//! Program `track_read`: reads a bare drive past every cache, sequentially and repeatedly within an
//! area such as a cylinder (Piziali and Zam 1991). Calls of a track show the throughput of the
//! drive. Calls of a sector show how much turnaround and interleave leave of it.

use crate::blocks::{read_block, seek_to_offset};
use crate::parameter::{ParameterField, ParameterValue};
use crate::pattern::{
    AccessPattern, PhaseFuture, ProgramEntry, ProgramProperties, SystemAndWorker,
};
use crate::program::InputFile;
use crate::worker::{Medium, Worker};
use diskperf_system::{Buffer, OpenOptions};
use diskperf_timeline::CacheMode;

/// Bytes of a track of the drive of Piziali and Zam 1991: 17 sectors of 512 bytes. A cylinder has 6
/// tracks.
pub(crate) const TRACK_BYTES: u64 = 17 * 512;
const CYLINDER_BYTES: u64 = 6 * TRACK_BYTES;

pub(crate) const PROGRAMS: &[ProgramEntry] = &[ProgramEntry {
    name: "track_read",
    summary: "reads an area of a drive repeatedly, bypassing all caches (1991)",
    file_set_name: "drive",
    new_pattern: || {
        Box::new(TrackRead {
            call_bytes: TRACK_BYTES,
            area_bytes: CYLINDER_BYTES,
        })
    },
}];

#[derive(Clone, Debug)]
struct TrackRead {
    call_bytes: u64,
    area_bytes: u64,
}

impl AccessPattern for TrackRead {
    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        vec![
            ParameterField::new_call_bytes(&mut self.call_bytes, "bytes per read call"),
            ParameterField {
                name: "area_bytes",
                description: "bytes from the start of the drive that are read repeatedly",
                value: ParameterValue::ByteCount(&mut self.area_bytes, 512, 1 << 50),
            },
        ]
    }

    fn program_properties(&self) -> ProgramProperties {
        ProgramProperties {
            // Only a drive, or a file in its place, has tracks.
            supported_media: &[Medium::Device, Medium::File],
            cache_mode: Some(CacheMode::Direct),
            ..ProgramProperties::new_for_reads(self.call_bytes)
        }
    }

    fn validation_error(&self) -> Option<String> {
        (!self.area_bytes.is_multiple_of(self.call_bytes)).then(|| {
            format!(
                "the area of {} bytes is not a multiple of the call of {}",
                self.area_bytes, self.call_bytes
            )
        })
    }

    fn file_bytes(&self, _size_bytes: u64) -> u64 {
        self.area_bytes
    }

    fn input_files(&self, worker: &Worker) -> Vec<InputFile> {
        vec![InputFile::new_read(worker.file_path(""), self.area_bytes)]
    }

    fn run_timed_part<'a>(
        &'a self,
        (system, worker): SystemAndWorker<'a>,
        buffer: &'a mut Buffer,
    ) -> PhaseFuture<'a> {
        Box::pin(async move {
            let file = system
                .open(&worker.file_path(""), OpenOptions::READ.with_direct(true))
                .await?;
            let block = &mut buffer[..self.call_bytes as usize];
            let calls = self.area_bytes / self.call_bytes;
            for call in 0..worker.size_bytes / self.call_bytes {
                if call > 0 && call.is_multiple_of(calls) {
                    seek_to_offset(system, file, 0).await?;
                }
                read_block(system, file, block, worker.think_time).await?;
            }
            Ok(())
        })
    }
}
