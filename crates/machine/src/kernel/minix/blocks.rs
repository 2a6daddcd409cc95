//! Block access of the Minix file server through its cache (`get_block`, `put_block`, `rw_block`),
//! and its requests to the tasks.

use super::cache::{CacheBufferId, DriveBlockKey, ReuseExpectation, SharedBytes};
use super::call_account::CallAccount;
use super::layout::BLOCK_BYTES;
use super::message::{DeviceRequest, Endpoint, MessageBody, MessageParty, MinixDevice};
use super::{FileServer, MinixKernel};
use crate::errno::{Errno, Result};
use diskperf_sim::Time;
use diskperf_timeline::Stage;

/// Context of the Minix file server while it handles a call.
#[derive(Clone, Copy)]
pub(super) struct ServerCall<'a> {
    pub(super) kernel: &'a MinixKernel,
    pub(super) server_party: &'a MessageParty,
    pub(super) account: &'a CallAccount,
}

/// Requirement on the contents of a block that the file server takes from the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentsNeeded {
    /// Current contents of the device, which the file server needs.
    CurrentContents,
    /// Arbitrary contents, because the file server overwrites the whole block. No read is
    /// necessary.
    FullyOverwritten,
}

/// Result of a request for a block of a device.
pub(super) enum BlockOrEnd {
    /// Buffer that holds the block.
    Block(CacheBufferId),
    /// End of the device: the block lies behind it.
    End,
}

impl ServerCall<'_> {
    /// Calls a closure with the state of the Minix file server. Nothing else uses the state
    /// meanwhile.
    pub(super) fn with_server<T>(&self, using: impl FnOnce(&mut FileServer) -> T) -> T {
        using(&mut self.kernel.file_server_state.borrow_mut())
    }

    pub(super) async fn spend_processor_time(&self, stage: Stage, cost: Time) {
        let own = (&*self.server_party.process, self.account);
        self.kernel.spend_on_call(own, stage, cost).await;
    }

    /// Sends a request to the task of a device and returns the number of bytes moved.
    pub(super) async fn send_device_request(&self, request: DeviceRequest) -> Result<usize> {
        let task = request.device.driver_endpoint();
        let body = MessageBody::DeviceRequest(request);
        match self
            .kernel
            .send_and_receive(self.server_party, task, self.account, body)
            .await
        {
            MessageBody::DeviceReply(moved) => moved,
            _ => panic!("a driver task replies with the bytes it transferred"),
        }
    }

    /// Has the system task copy bytes between the file server and a program.
    pub(super) async fn copy_bytes(&self, bytes: usize) {
        let body = MessageBody::CopyRequest(bytes);
        match self
            .kernel
            .send_and_receive(self.server_party, Endpoint::SystemTask, self.account, body)
            .await
        {
            MessageBody::CopyReply => {}
            _ => panic!("the system task confirms the copy"),
        }
    }

    /// Returns the buffer of a block, in use until it is put back. On a miss, reads up to `run`
    /// consecutive blocks with one request, as long as the cache lacks them and has room.
    pub(super) async fn get_block_run(
        &self,
        key: DriveBlockKey,
        contents: ContentsNeeded,
        run: u32,
    ) -> Result<BlockOrEnd> {
        let config = &self.kernel.config;
        self.spend_processor_time(Stage::CacheLookup, config.cache_lookup_time)
            .await;
        if let Some(id) = self.with_server(|server| server.cache.take_cached(key)) {
            return Ok(BlockOrEnd::Block(id));
        }
        let id = self.replace_buffer(key).await?;
        if contents == ContentsNeeded::FullyOverwritten {
            return Ok(BlockOrEnd::Block(id));
        }
        let mut buffers = vec![id];
        for further in 1..run {
            let next = DriveBlockKey {
                block: key.block + further,
                ..key
            };
            let room = self.with_server(|server| {
                !server.cache.is_cached(next) && server.cache.unused_buffer_count() > 1
            });
            if !room {
                break;
            }
            buffers.push(self.replace_buffer(next).await?);
        }
        let moved = self.read_buffers(key, &buffers).await?;
        let whole = moved / BLOCK_BYTES;
        self.with_server(|server| {
            for (place, further) in buffers.iter().enumerate().skip(1) {
                if place < whole {
                    server
                        .cache
                        .release_buffer(*further, ReuseExpectation::ReusePossible);
                } else {
                    server.cache.put_empty(*further);
                }
            }
            if whole == 0 {
                server.cache.put_empty(id);
            }
        });
        Ok(if whole == 0 {
            BlockOrEnd::End
        } else {
            BlockOrEnd::Block(id)
        })
    }

    async fn read_buffers(&self, key: DriveBlockKey, buffers: &[CacheBufferId]) -> Result<usize> {
        let data = |id: &CacheBufferId| self.with_server(|server| server.cache.buffer_data(*id));
        let request = DeviceRequest {
            device: device_of_drive(key.drive),
            is_write: false,
            position: u64::from(key.block) * BLOCK_BYTES as u64,
            buffers: buffers.iter().map(data).collect(),
        };
        self.send_device_request(request).await
    }

    /// Returns the buffer of a block that must exist on its drive. Panics behind the end of the
    /// partition.
    pub(super) async fn get_block(
        &self,
        key: DriveBlockKey,
        contents: ContentsNeeded,
    ) -> Result<CacheBufferId> {
        match self.get_block_run(key, contents, 1).await? {
            BlockOrEnd::Block(id) => Ok(id),
            BlockOrEnd::End => panic!("a file system ends before its partition"),
        }
    }

    /// Assigns the least recently used buffer to a block. If that buffer is dirty, writes it and
    /// all other dirty blocks of its drive first.
    async fn replace_buffer(&self, key: DriveBlockKey) -> Result<CacheBufferId> {
        let cost = self.kernel.config.buffer_replace_time;
        self.spend_processor_time(Stage::CacheLookup, cost).await;
        while let Some(dirty) = self.with_server(|server| server.cache.dirty_victim()) {
            let drive = dirty.drive.expect("a dirty block belongs to a drive");
            self.flush_dirty_blocks(drive).await?;
        }
        Ok(self.with_server(|server| server.cache.replace_unused(key)))
    }

    /// Writes all dirty blocks of a drive, in ascending order.
    pub(super) async fn flush_dirty_blocks(&self, drive: u32) -> Result<()> {
        let most = self.kernel.config.blocks_per_request.max(1) as usize;
        let dirty = self.with_server(|server| server.cache.dirty_blocks(drive));
        let follows = |one: &DriveBlockKey, next: &DriveBlockKey| next.block == one.block + 1;
        for run in dirty.chunk_by(follows).flat_map(|run| run.chunks(most)) {
            let look = |key: &DriveBlockKey| {
                self.with_server(|server| {
                    server
                        .cache
                        .cached_data(*key)
                        .expect("a dirty block is in the cache")
                })
            };
            let request = DeviceRequest {
                device: MinixDevice::DriveDevice(drive),
                is_write: true,
                position: u64::from(run[0].block) * BLOCK_BYTES as u64,
                buffers: run.iter().map(look).collect(),
            };
            self.send_device_request(request).await?;
            self.with_server(|server| run.iter().for_each(|key| server.cache.mark_clean(*key)));
        }
        Ok(())
    }

    pub(super) fn put_block(&self, id: CacheBufferId) {
        self.with_server(|server| {
            server
                .cache
                .release_buffer(id, ReuseExpectation::ReusePossible)
        });
    }

    pub(super) fn block_data(&self, id: CacheBufferId) -> SharedBytes {
        self.with_server(|server| server.cache.buffer_data(id))
    }

    pub(super) fn mark_dirty(&self, id: CacheBufferId) {
        self.with_server(|server| server.cache.mark_dirty(id));
    }

    /// Writes the changed inodes, the maps and all dirty blocks of a drive (`sync`).
    pub(super) async fn sync_drive(&self, drive: u32) -> Result<()> {
        for number in self.with_server(|server| server.inodes.dirty_inodes(drive)) {
            self.write_inode((drive, number)).await?;
        }
        let mut volume_blocks = Vec::new();
        self.with_server(|server| {
            let Some(volume) = server.volumes.get_mut(drive as usize) else {
                return;
            };
            volume_blocks = volume.superblock_and_map_blocks(false);
            volume.inode_map.is_dirty = false;
            volume.zone_map.is_dirty = false;
        });
        for (block, bytes) in volume_blocks {
            let key = DriveBlockKey {
                drive: Some(drive),
                block,
            };
            let id = self
                .get_block(key, ContentsNeeded::FullyOverwritten)
                .await?;
            self.block_data(id).borrow_mut().copy_from_slice(&bytes);
            self.mark_dirty(id);
            self.put_block(id);
        }
        self.flush_dirty_blocks(drive).await
    }
}

/// Returns the device of a block's drive, or the null device for no drive.
pub(super) fn device_of_drive(drive: Option<u32>) -> MinixDevice {
    drive.map_or(MinixDevice::NullDevice, MinixDevice::DriveDevice)
}

/// Error of an allocation when the file system has no free zone or inode.
pub(super) const DEVICE_FULL_ERRNO: Errno = Errno::NoSpace;
