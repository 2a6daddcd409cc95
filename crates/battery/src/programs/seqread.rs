//! `seqread`: the same bytes, read with calls of different sizes over
//! different layers of the system (Kirkendall 1989). Each layer adds one thing to the
//! one before it, so that their differences say where the time of a call goes.

use crate::blocks::{ensure_file, pause, read_block};
use crate::parameter::{Field, Value, choices};
use crate::program::ProgramError;
use crate::worker::{Medium, Worker};
use diskperf_system::{Buffer, Open, System};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SequentialRead {
    pub(crate) layer: Layer,
    pub(crate) call_bytes: u64,
}

choices! {
    /// What is read, and through what.
    Layer {
        /// `/dev/null`: every read returns nothing; the cost of the call.
        Null = "null",
        /// `/dev/bnull`, the same as a block device: the cache's work too,
        /// though there is nothing to be cached.
        BlockNull = "bnull",
        /// `/dev/zero`: the call, and memory filled; no device, no cache.
        Zero = "zero",
        /// A file that is in the page cache: the call, the look-up, the copy.
        Cached = "cached",
        /// The same file, its pages dropped: the misses and the device too.
        Dropped = "dropped",
        /// The same file with O_DIRECT: the call and the device, no cache.
        Direct = "direct",
        /// A block device through the page cache, its pages dropped.
        Device = "device",
        /// A block device with O_DIRECT.
        DeviceDirect = "device_direct",
    }
}

impl Layer {
    /// Whether every read is at its end at once.
    pub(crate) fn is_empty(self) -> bool {
        matches!(self, Self::Null | Self::BlockNull)
    }

    /// Whether it is the drive by its own name.
    pub(crate) fn is_device(self) -> bool {
        matches!(self, Self::Device | Self::DeviceDirect)
    }

    /// Whether it is nothing but a device in memory.
    pub(crate) fn is_without_drive(self) -> bool {
        matches!(self, Self::Null | Self::BlockNull | Self::Zero)
    }
}

impl SequentialRead {
    pub(crate) fn fields(&mut self) -> Vec<Field<'_>> {
        vec![
            Field {
                name: "layer",
                meaning: "what is read, and through what",
                value: Value::Choice(&mut self.layer),
            },
            Field::call_bytes(&mut self.call_bytes, "bytes that one call asks for"),
        ]
    }

    /// What is read.
    fn path(&self, worker: &Worker) -> String {
        match self.layer {
            Layer::Null => "/dev/null".to_owned(),
            Layer::BlockNull => "/dev/bnull".to_owned(),
            Layer::Zero => "/dev/zero".to_owned(),
            Layer::Cached | Layer::Dropped | Layer::Direct => worker.file("twomegs"),
            Layer::Device | Layer::DeviceDirect => format!("/dev/drive{}", worker.drive),
        }
    }

    /// The file whose pages the runner drops or reads in beforehand.
    pub(crate) fn input(&self, worker: &Worker) -> Option<String> {
        match self.layer {
            Layer::Null | Layer::BlockNull | Layer::Zero => None,
            Layer::Cached
            | Layer::Dropped
            | Layer::Direct
            | Layer::Device
            | Layer::DeviceDirect => Some(self.path(worker)),
        }
    }

    /// Whether the layer can be had on Minix, where a drive has files and is a
    /// character and a block device all at once.
    pub(crate) fn is_of_minix(&self) -> bool {
        match self.layer {
            Layer::Zero | Layer::Direct => false,
            Layer::Null
            | Layer::BlockNull
            | Layer::Cached
            | Layer::Dropped
            | Layer::Device
            | Layer::DeviceDirect => true,
        }
    }

    /// Whether the layer can be had on a medium.
    pub(crate) fn is_of(&self, medium: Medium) -> bool {
        match self.layer {
            Layer::Null | Layer::Zero => true,
            // No system has one but Minix.
            Layer::BlockNull => false,
            Layer::Cached | Layer::Dropped | Layer::Direct => medium != Medium::Device,
            Layer::Device | Layer::DeviceDirect => medium == Medium::Device,
        }
    }

    pub(crate) async fn prepare(
        &self,
        system: &mut System,
        worker: &Worker,
    ) -> Result<(), ProgramError> {
        match self.input(worker) {
            // A device is as it is.
            Some(path) if !self.layer.is_device() => {
                ensure_file(system, worker, &path, worker.size_bytes).await
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) async fn run(
        &self,
        system: &mut System,
        worker: &Worker,
        buffer: &mut Buffer,
    ) -> Result<(), ProgramError> {
        let direct = matches!(self.layer, Layer::Direct | Layer::DeviceDirect);
        let file = system
            .open(&self.path(worker), Open::READ.direct(direct))
            .await?;
        let block = &mut buffer[..self.call_bytes as usize];
        for _ in 0..worker.size_bytes / self.call_bytes {
            if self.layer.is_empty() {
                system.read(file, block).await?;
                pause(system, worker.think).await?;
            } else {
                read_block(system, file, block, worker.think).await?;
            }
        }
        Ok(())
    }
}
