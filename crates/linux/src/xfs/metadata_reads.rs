//! Metadata that is read from the device when it is needed first.

use std::collections::BTreeSet;

use crate::block::{Bio, BioContent, BioFlags, BioOperation};
use crate::effect::Effects;
use crate::xfs::geometry::{MetadataBuffer, XfsGeometry};

/// Buffers that are in memory, and those that a call has to read. Memory is never short, so that
/// a buffer is read once.
#[derive(Clone, Debug, Default)]
pub(super) struct MetadataReads {
    loaded: BTreeSet<MetadataBuffer>,
    pending: Vec<MetadataBuffer>,
}

impl MetadataReads {
    /// Notes that a call needs a buffer.
    pub(super) fn need(&mut self, buffer: MetadataBuffer) {
        if self.loaded.insert(buffer) {
            self.pending.push(buffer);
        }
    }

    /// Notes that a call needs what an allocation of blocks in a group reads.
    pub(super) fn need_space(&mut self, geometry: &XfsGeometry, group: u64) {
        self.need(geometry.free_list(group));
        self.need(geometry.by_count_root(group));
        self.need(geometry.by_block_root(group));
    }

    /// Notes that a buffer was made in memory.
    pub(super) fn note_made(&mut self, buffer: MetadataBuffer) {
        self.loaded.insert(buffer);
    }

    /// Reads what calls need, one after the other.
    pub(super) fn submit(&mut self, effects: &mut Effects) {
        for MetadataBuffer {
            sector,
            sectors,
            kind,
        } in std::mem::take(&mut self.pending)
        {
            effects.submit(Bio {
                operation: BioOperation::Read,
                content: BioContent::Metadata(kind),
                sector,
                sectors,
                segments: 1,
                flags: BioFlags {
                    metadata: true,
                    ..BioFlags::default()
                },
            });
            effects.wait();
        }
    }
}
