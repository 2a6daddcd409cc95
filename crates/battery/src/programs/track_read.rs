//! `track_read`: a drive by itself, past every cache, in order and over and
//! over within an area such as a cylinder (Piziali and Zam 1991). With calls of a track it
//! shows what the drive gives, with calls of a sector what turnaround and
//! interleave leave of that.

use crate::blocks::{read_block, seek_to};
use crate::parameter::{Field, Value};
use crate::program::ProgramError;
use crate::worker::{Medium, Worker};
use diskperf_system::{Buffer, Open, System};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TrackRead {
    pub(crate) call_bytes: u64,
    pub(crate) area_bytes: u64,
}

impl TrackRead {
    pub(crate) fn fields(&mut self) -> Vec<Field<'_>> {
        vec![
            Field::call_bytes(&mut self.call_bytes, "bytes that one call reads"),
            Field {
                name: "area_bytes",
                meaning: "bytes from the start of the drive that are read again and again",
                value: Value::Count(&mut self.area_bytes, 512, 1 << 50),
            },
        ]
    }

    /// Only a drive, or a file in its place, has tracks.
    pub(crate) fn is_of(medium: Medium) -> bool {
        medium != Medium::Directory
    }

    pub(crate) fn input(worker: &Worker) -> String {
        worker.file("")
    }

    /// Why its parameters do not fit each other.
    pub(crate) fn unfit(&self) -> Option<String> {
        (!self.area_bytes.is_multiple_of(self.call_bytes)).then(|| {
            format!(
                "the area of {} bytes is not a multiple of the call of {}",
                self.area_bytes, self.call_bytes
            )
        })
    }

    pub(crate) async fn run(
        &self,
        system: &mut System,
        worker: &Worker,
        buffer: &mut Buffer,
    ) -> Result<(), ProgramError> {
        let file = system
            .open(&Self::input(worker), Open::READ.direct(true))
            .await?;
        let block = &mut buffer[..self.call_bytes as usize];
        let calls = self.area_bytes / self.call_bytes;
        for call in 0..worker.size_bytes / self.call_bytes {
            if call > 0 && call.is_multiple_of(calls) {
                seek_to(system, file, 0).await?;
            }
            read_block(system, file, block, worker.think).await?;
        }
        Ok(())
    }
}
