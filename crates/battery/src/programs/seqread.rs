//! Program `seqread`: reads the same bytes with calls of different sizes through different layers
//! of the system (Kirkendall 1989). Each layer adds one component to the previous one, so that the
//! differences show where the time of a call goes.

use crate::blocks::{ensure_file, pause_for_think_time, read_block};
use crate::parameter::{ParameterField, ParameterValue, choices};
use crate::pattern::{
    AccessPattern, PhaseFuture, ProgramEntry, ProgramProperties, SystemAndWorker, empty_phase,
};
use crate::program::InputFile;
use crate::worker::{Medium, Worker};
use diskperf_system::{Buffer, OpenOptions, System};
use diskperf_timeline::{CacheMode, WorkerMeasure};

pub(crate) const PROGRAMS: &[ProgramEntry] = &[ProgramEntry {
    name: "seqread",
    summary: "reads the same data through different layers of the system (1989)",
    file_set_name: "twomegs",
    new_pattern: || {
        Box::new(SequentialRead {
            access_layer: Layer::Dropped,
            call_bytes: 8192,
        })
    },
}];

#[derive(Clone, Debug)]
struct SequentialRead {
    access_layer: Layer,
    call_bytes: u64,
}

choices! {
    /// Source of the bytes, and the layers that a read passes through.
    Layer {
        /// `/dev/null`. Every read returns nothing, which shows the cost of the call.
        Null = "null",
        /// `/dev/bnull`, a null device as a block device. It adds the work of the cache, although
        /// there is nothing to cache.
        BlockNull = "bnull",
        /// `/dev/zero`. A read costs the call and the filling of memory, without a device or a
        /// cache.
        Zero = "zero",
        /// File in the page cache. A read costs the call, the look-up and the copy.
        Cached = "cached",
        /// File whose pages were dropped from the cache. A read also costs the cache misses and the
        /// device.
        Dropped = "dropped",
        /// File read with O_DIRECT. A read costs the call and the device, without the cache.
        Direct = "direct",
        /// Block device read through the page cache, after its pages were dropped.
        Device = "device",
        /// Block device read with O_DIRECT.
        DeviceDirect = "device_direct",
    }
}

impl AccessPattern for SequentialRead {
    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        vec![
            ParameterField {
                name: "layer",
                description: "data source and the layer through which it is read",
                value: ParameterValue::NamedChoice(&mut self.access_layer),
            },
            ParameterField::new_call_bytes(&mut self.call_bytes, "bytes requested per call"),
        ]
    }

    fn program_properties(&self) -> ProgramProperties {
        ProgramProperties {
            supported_media: match self.access_layer {
                Layer::Null | Layer::Zero => &[Medium::Directory, Medium::Device, Medium::File],
                // No system has one but Minix.
                Layer::BlockNull => &[],
                Layer::Cached | Layer::Dropped | Layer::Direct => {
                    &[Medium::Directory, Medium::File]
                }
                Layer::Device | Layer::DeviceDirect => &[Medium::Device],
            },
            runs_on_minix: !matches!(self.access_layer, Layer::Zero | Layer::Direct),
            reads_block_null: self.access_layer == Layer::BlockNull,
            opens_device_by_name: matches!(self.access_layer, Layer::Device | Layer::DeviceDirect),
            accesses_target: !matches!(
                self.access_layer,
                Layer::Null | Layer::BlockNull | Layer::Zero
            ),
            cache_mode: match self.access_layer {
                Layer::Cached => Some(CacheMode::Warm),
                Layer::Dropped | Layer::Device => Some(CacheMode::Cold),
                Layer::Direct | Layer::DeviceDirect => Some(CacheMode::Direct),
                Layer::Null | Layer::BlockNull | Layer::Zero => None,
            },
            ..ProgramProperties::new_for_reads(self.call_bytes)
        }
    }

    fn file_bytes(&self, size_bytes: u64) -> u64 {
        if self.program_properties().accesses_target {
            size_bytes
        } else {
            0
        }
    }

    fn input_files(&self, worker: &Worker) -> Vec<InputFile> {
        let read = || InputFile::new_read(self.input_path(worker), worker.size_bytes);
        self.program_properties()
            .accesses_target
            .then(read)
            .into_iter()
            .collect()
    }

    fn payload_bytes(&self, worker: &Worker, measure: &WorkerMeasure) -> u64 {
        if self.reads_nothing() {
            worker.size_bytes
        } else {
            measure.read_bytes
        }
    }

    fn prepare_target<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
        // A device is as it is.
        let facts = self.program_properties();
        if !facts.accesses_target || facts.opens_device_by_name {
            return empty_phase();
        }
        Box::pin(async move {
            ensure_file(system, worker, &self.input_path(worker), worker.size_bytes).await
        })
    }

    fn run_timed_part<'a>(
        &'a self,
        (system, worker): SystemAndWorker<'a>,
        buffer: &'a mut Buffer,
    ) -> PhaseFuture<'a> {
        Box::pin(async move {
            let direct = matches!(self.access_layer, Layer::Direct | Layer::DeviceDirect);
            let file = system
                .open(
                    &self.input_path(worker),
                    OpenOptions::READ.with_direct(direct),
                )
                .await?;
            let block = &mut buffer[..self.call_bytes as usize];
            for _ in 0..worker.size_bytes / self.call_bytes {
                if self.reads_nothing() {
                    system.read(file, block).await?;
                    pause_for_think_time(system, worker.think_time).await?;
                } else {
                    read_block(system, file, block, worker.think_time).await?;
                }
            }
            Ok(())
        })
    }
}

impl SequentialRead {
    fn input_path(&self, worker: &Worker) -> String {
        match self.access_layer {
            Layer::Null => "/dev/null".to_owned(),
            Layer::BlockNull => "/dev/bnull".to_owned(),
            Layer::Zero => "/dev/zero".to_owned(),
            Layer::Cached | Layer::Dropped | Layer::Direct => worker.file_path("twomegs"),
            Layer::Device | Layer::DeviceDirect => format!("/dev/drive{}", worker.drive_index),
        }
    }

    /// Reports whether every read returns nothing, because the device has length 0.
    fn reads_nothing(&self) -> bool {
        matches!(self.access_layer, Layer::Null | Layer::BlockNull)
    }
}
