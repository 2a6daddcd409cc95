//! Writing of delayed blocks by the update daemon, sync(2) and fsync(2).

use super::buffers::BufferId;
use super::inode_io::WriteTiming;
use super::process::Process;
use super::{BlockKey, FfsView, FileSystemView, UnixKernel, Vnode};
use crate::event::MachineEvent;
use diskperf_timeline::Stage;
use std::rc::Rc;

impl UnixKernel {
    /// Runs the daemon `/etc/update`, which syncs all mounted volumes at a fixed interval and never
    /// ends.
    pub(crate) async fn run_update_daemon(self: Rc<Self>) {
        let process = Process::new(usize::MAX);
        self.begin_process(&process).await;
        loop {
            let next = self.simulation.now() + self.costs.update_interval;
            self.sleep_in_background_until(&process, next).await;
            self.regain_processor(&process).await;
            let volumes = self.mounted_count();
            for volume in 0..volumes {
                self.sync_volume(&process, volume as u32).await;
            }
        }
    }

    /// Releases the processor until a point in virtual time. The wait alone does not keep the
    /// simulation running.
    async fn sleep_in_background_until(&self, process: &Process, at: diskperf_sim::Time) {
        self.release_processor(process);
        self.simulation
            .sleep_in_background_until(at, MachineEvent::DaemonWakeUp)
            .await;
    }

    /// Starts to write all delayed blocks and changed inodes of a volume, without waiting for the
    /// writes (`sync`, `bflush`).
    pub(crate) async fn sync_volume(&self, process: &Rc<Process>, volume: u32) {
        match self.file_system_view() {
            FileSystemView::SeventhEdition(v7) => v7.update_volume(process, volume).await,
            FileSystemView::FastFileSystem(ffs) => ffs.update_inodes(process, volume).await,
        }
        while let Some(id) = self.take_delayed_write(volume) {
            self.bawrite(process, id).await;
        }
    }

    /// Takes an unused buffer with a delayed write for a volume. The caller holds the buffer from
    /// then on.
    fn take_delayed_write(&self, volume: u32) -> Option<BufferId> {
        let mut buffers = self.buffers.borrow_mut();
        let id = buffers.find_delayed(volume)?;
        buffers.remove_from_free_list(id);
        Some(id)
    }

    /// Writes all delayed data of a volume and waits until no write to the volume is in flight.
    pub(crate) async fn flush_volume(&self, process: &Rc<Process>, volume: u32) {
        self.sync_volume(process, volume).await;
        loop {
            {
                let mut buffers = self.buffers.borrow_mut();
                let (count, waiters) = &mut buffers.writes_in_flight[volume as usize];
                if *count == 0 {
                    return;
                }
                waiters.push(Rc::clone(process));
            }
            let from = self.simulation.now();
            self.wait_for_wake_up(process, "pending writes to complete")
                .await;
            process.book_wait(Stage::BufferWait, from);
        }
    }
}

impl FfsView<'_> {
    async fn update_inodes(&self, process: &Rc<Process>, volume: u32) {
        let modified =
            std::mem::take(&mut self.mounts.borrow_mut()[volume as usize].superblock_modified);
        if modified {
            self.write_superblock(process, volume).await;
        }
        let inodes: Vec<_> = {
            let mounts = self.mounts.borrow();
            let inodes = &mounts[volume as usize].inodes;
            let modified = inodes.iter().filter(|(_, core)| core.is_modified);
            modified.map(|(inode, _)| *inode).collect()
        };
        for inode in inodes {
            let node = Vnode { volume, inode };
            self.write_inode_block(process, node, WriteTiming::Delayed)
                .await;
        }
    }

    async fn write_superblock(&self, process: &Rc<Process>, volume: u32) {
        let (address, bytes) = self.with_file_system(volume, |fs| {
            let superblock = fs.superblock();
            (
                superblock.superblock_address(),
                superblock.superblock_bytes(),
            )
        });
        let key = BlockKey::new(volume, address.0);
        let id = self.getblk(process, key, bytes).await;
        let page = self.zero_page(bytes);
        self.buffers.borrow_mut().buffer_mut(id).page = Some(page);
        self.bawrite(process, id).await;
    }
}
