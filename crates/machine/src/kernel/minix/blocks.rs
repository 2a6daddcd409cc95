//! Block access of the Minix file server through its cache (`get_block`, `put_block`, `rw_block`),
//! and its requests to the tasks.

use super::cache::{Again, BlockKey, BufferId, Memory};
use super::errand::Errand;
use super::layout::BLOCK_BYTES;
use super::message::{Body, Device, DeviceRequest, Endpoint, Party};
use super::{Minix, Server};
use crate::errno::{Errno, Result};
use diskperf_sim::Time;
use diskperf_timeline::Stage;

/// Context of the Minix file server while it handles a call.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    pub(super) kernel: &'a Minix,
    pub(super) me: &'a Party,
    pub(super) errand: &'a Errand,
}

/// Requirement on the contents of a block that the file server takes from the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// Current contents of the device, which the file server needs.
    Wanted,
    /// Arbitrary contents, because the file server overwrites the whole block. No read is
    /// necessary.
    Overwritten,
}

/// Result of a request for a block of a device.
pub(super) enum Got {
    /// Buffer that holds the block.
    Block(BufferId),
    /// End of the device: the block lies behind it.
    End,
}

impl Work<'_> {
    /// Calls a closure with the state of the Minix file server. Nothing else uses the state
    /// meanwhile.
    pub(super) fn server<T>(&self, using: impl FnOnce(&mut Server) -> T) -> T {
        using(&mut self.kernel.server.borrow_mut())
    }

    pub(super) async fn spend(&self, stage: Stage, cost: Time) {
        let own = (&*self.me.process, self.errand);
        self.kernel.work(own, stage, cost).await;
    }

    /// Sends a request to the task of a device and returns the number of bytes moved.
    pub(super) async fn device(&self, request: DeviceRequest) -> Result<usize> {
        let task = request.device.task();
        let body = Body::Device(request);
        match self.kernel.sendrec(self.me, task, self.errand, body).await {
            Body::Moved(moved) => moved,
            _ => panic!("a task answers with what it moved"),
        }
    }

    /// Has the system task copy bytes between the file server and a program.
    pub(super) async fn copy(&self, bytes: usize) {
        let body = Body::Copy(bytes);
        match self
            .kernel
            .sendrec(self.me, Endpoint::System, self.errand, body)
            .await
        {
            Body::Copied => {}
            _ => panic!("the system task answers that it copied"),
        }
    }

    /// Returns the buffer of a block, in use until it is put back. On a miss, reads up to `run`
    /// consecutive blocks with one request, as long as the cache lacks them and has room.
    pub(super) async fn get_run(&self, key: BlockKey, contents: Contents, run: u32) -> Result<Got> {
        let config = &self.kernel.config;
        self.spend(Stage::CacheLookup, config.cache_lookup).await;
        if let Some(id) = self.server(|server| server.cache.take(key)) {
            return Ok(Got::Block(id));
        }
        let id = self.replace(key).await?;
        if contents == Contents::Overwritten {
            return Ok(Got::Block(id));
        }
        let mut buffers = vec![id];
        for further in 1..run {
            let next = BlockKey {
                block: key.block + further,
                ..key
            };
            let room = self.server(|server| !server.cache.holds(next) && server.cache.free() > 1);
            if !room {
                break;
            }
            buffers.push(self.replace(next).await?);
        }
        let moved = self.read_buffers(key, &buffers).await?;
        let whole = moved / BLOCK_BYTES;
        self.server(|server| {
            for (place, further) in buffers.iter().enumerate().skip(1) {
                if place < whole {
                    server.cache.put(*further, Again::Perhaps);
                } else {
                    server.cache.put_empty(*further);
                }
            }
            if whole == 0 {
                server.cache.put_empty(id);
            }
        });
        Ok(if whole == 0 { Got::End } else { Got::Block(id) })
    }

    async fn read_buffers(&self, key: BlockKey, buffers: &[BufferId]) -> Result<usize> {
        let data = |id: &BufferId| self.server(|server| server.cache.data(*id));
        let request = DeviceRequest {
            device: device(key.drive),
            write: false,
            position: u64::from(key.block) * BLOCK_BYTES as u64,
            pieces: buffers.iter().map(data).collect(),
        };
        self.device(request).await
    }

    /// Returns the buffer of a block that must exist on its drive. Panics behind the end of the
    /// partition.
    pub(super) async fn get(&self, key: BlockKey, contents: Contents) -> Result<BufferId> {
        match self.get_run(key, contents, 1).await? {
            Got::Block(id) => Ok(id),
            Got::End => panic!("a file system lies on its partition"),
        }
    }

    /// Assigns the least recently used buffer to a block. If that buffer is dirty, writes it and
    /// all other dirty blocks of its drive first.
    async fn replace(&self, key: BlockKey) -> Result<BufferId> {
        let cost = self.kernel.config.buffer_replace;
        self.spend(Stage::CacheLookup, cost).await;
        while let Some(dirty) = self.server(|server| server.cache.dirty_victim()) {
            let drive = dirty.drive.expect("what is without data is not written");
            self.flush(drive).await?;
        }
        Ok(self.server(|server| server.cache.replace(key)))
    }

    /// Writes all dirty blocks of a drive, in ascending order.
    pub(super) async fn flush(&self, drive: u32) -> Result<()> {
        let most = self.kernel.config.blocks_per_request.max(1) as usize;
        let dirty = self.server(|server| server.cache.dirty(drive));
        let follows = |one: &BlockKey, next: &BlockKey| next.block == one.block + 1;
        for run in dirty.chunk_by(follows).flat_map(|run| run.chunks(most)) {
            let look = |key: &BlockKey| {
                self.server(|server| server.cache.look(*key).expect("a dirty block is there"))
            };
            let request = DeviceRequest {
                device: Device::Drive(drive),
                write: true,
                position: u64::from(run[0].block) * BLOCK_BYTES as u64,
                pieces: run.iter().map(look).collect(),
            };
            self.device(request).await?;
            self.server(|server| run.iter().for_each(|key| server.cache.clean(*key)));
        }
        Ok(())
    }

    pub(super) fn put(&self, id: BufferId) {
        self.server(|server| server.cache.put(id, Again::Perhaps));
    }

    pub(super) fn data(&self, id: BufferId) -> Memory {
        self.server(|server| server.cache.data(id))
    }

    pub(super) fn soil(&self, id: BufferId) {
        self.server(|server| server.cache.soil(id));
    }

    /// Writes the changed inodes, the maps and all dirty blocks of a drive (`sync`).
    pub(super) async fn sync(&self, drive: u32) -> Result<()> {
        for number in self.server(|server| server.inodes.dirty(drive)) {
            self.write_inode((drive, number)).await?;
        }
        let mut volume_blocks = Vec::new();
        self.server(|server| {
            let Some(volume) = server.volumes.get_mut(drive as usize) else {
                return;
            };
            volume_blocks = volume.super_blocks(false);
            volume.inode_map.dirty = false;
            volume.zone_map.dirty = false;
        });
        for (block, bytes) in volume_blocks {
            let key = BlockKey {
                drive: Some(drive),
                block,
            };
            let id = self.get(key, Contents::Overwritten).await?;
            self.data(id).borrow_mut().copy_from_slice(&bytes);
            self.soil(id);
            self.put(id);
        }
        self.flush(drive).await
    }
}

/// Returns the device of a block's drive, or the null device for no drive.
pub(super) fn device(drive: Option<u32>) -> Device {
    drive.map_or(Device::Null, Device::Drive)
}

/// Error of an allocation when the file system has no free zone or inode.
pub(super) const FULL: Errno = Errno::NoSpace;
