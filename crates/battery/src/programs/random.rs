//! Program `random`: requests at random offsets with several in flight, the usual test of a modern
//! storage device, in a closed loop or with arrivals by the clock.

use crate::load::area::{AreaOptions, AreaProgram, OffsetChoice};
use crate::load::distribution::AccessDistribution;
use crate::load::generator::{RandomOffsetOptions, RandomRequests};
use crate::load::{LOAD_FILE_NAME, LoadRequest, YesNo, new_field};
use crate::parameter::{ParameterField, ParameterValue, SizeMix};
use crate::pattern::ProgramEntry;
use crate::program::greatest_common_divisor;
use crate::worker::Worker;

pub(crate) const PROGRAMS: &[ProgramEntry] = &[ProgramEntry {
    name: "random",
    summary: "requests at random offsets, at a queue depth or at a request rate",
    file_set_name: LOAD_FILE_NAME,
    new_pattern: || Box::new(AreaProgram::<RandomOffsets>::with_block_bytes(4096)),
}];

#[derive(Clone, Debug)]
struct RandomOffsets {
    access_distribution: AccessDistribution,
    each_block_once: YesNo,
    align_bytes: u64,
}

impl Default for RandomOffsets {
    fn default() -> Self {
        Self {
            access_distribution: AccessDistribution::Uniform,
            each_block_once: YesNo::No,
            align_bytes: 0,
        }
    }
}

impl OffsetChoice for RandomOffsets {
    const PARAMETER_MEANINGS: [&'static str; 2] =
        ["share of writes among the requests", "start of the area"];
    const HAS_WORKER_PARTS: bool = false;

    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        vec![
            new_field(
                "distribution",
                "distribution of accesses over the blocks",
                ParameterValue::Distribution(&mut self.access_distribution),
            ),
            new_field(
                "each_once",
                "access to each block once before any block repeats",
                ParameterValue::NamedChoice(&mut self.each_block_once),
            ),
            new_field(
                "align_bytes",
                "alignment of the offsets; 0: the smallest block size",
                ParameterValue::ByteCount(&mut self.align_bytes, 0, 1 << 30),
            ),
        ]
    }

    fn offset_step_bytes(&self, sizes: &SizeMix) -> u64 {
        match self.align_bytes {
            0 => sizes.size_bytes_values().fold(0, greatest_common_divisor),
            bytes => bytes,
        }
    }

    fn validation_error(&self, area: &AreaOptions) -> Option<String> {
        if self.each_block_once == YesNo::No {
            return None;
        }
        if area.block_sizes.only_size() != Some(self.offset_step_bytes(&area.block_sizes)) {
            return Some(
                "each_once=yes needs a single block_bytes, and align_bytes equal to it".to_owned(),
            );
        }
        (self.access_distribution != AccessDistribution::Uniform)
            .then(|| "each_once=yes accesses all blocks equally often".to_owned())
    }

    fn new_requests<'a>(
        &'a self,
        area: &'a AreaOptions,
        bytes: u64,
        worker: &Worker,
    ) -> impl FnMut() -> LoadRequest + 'a {
        let choice = RandomOffsetOptions {
            access_distribution: &self.access_distribution,
            each_block_once: self.each_block_once == YesNo::Yes,
            align_bytes: self.offset_step_bytes(&area.block_sizes),
        };
        let place = (area.start_bytes, bytes);
        let mut requests = RandomRequests::new(
            area.size_mix_and_write_share(),
            &choice,
            place,
            worker.random_seed,
        );
        move || requests.draw_request()
    }
}
