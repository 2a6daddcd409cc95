//! Block input and output through the buffer cache of a UNIX kernel: `bread`, `breada`, `bwrite`,
//! `bdwrite`, `bawrite`.

use super::UnixKernel;
use super::buffers::{BlockKey, BufferId, Buffers, CLICK_BYTES, FreeList};
use super::driver::RequestOwner;
use super::process::{ExecutionContext, Process};
use diskperf_device::{AccessHint, Operation, Request, moment};
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::rc::Rc;

impl UnixKernel {
    /// Returns the buffer of a block, reserved for the calling process. The contents are undefined
    /// unless the buffer is marked `done`.
    pub(crate) async fn getblk(
        &self,
        process: &Rc<Process>,
        key: BlockKey,
        bytes: u32,
    ) -> BufferId {
        let context = ExecutionContext::InProcess(process);
        loop {
            self.spend_processor_time(context, Stage::CacheLookup, self.costs.cache_lookup_time)
                .await;
            let found = self.buffers.borrow().find_cached(key);
            let Some(id) = found else {
                let id = self.take_buffer_for_reuse(process).await;
                // Somebody may have made one while this process slept.
                if self.buffers.borrow().find_cached(key).is_some() {
                    self.release_buffer(id);
                    continue;
                }
                self.buffers.borrow_mut().set_key(id, Some(key));
                self.allocate_memory(process, id, bytes).await;
                return id;
            };
            if self.buffers.borrow().buffers[id.0 as usize].is_busy {
                self.wait_for_buffer(process, id).await;
                continue;
            }
            self.buffers.borrow_mut().remove_from_free_list(id);
            let held = self.buffers.borrow().buffers[id.0 as usize].valid_bytes;
            if held != bytes {
                self.allocate_memory(process, id, bytes).await;
            }
            return id;
        }
    }

    /// Sleeps until another process or transfer releases a buffer.
    pub(super) async fn wait_for_buffer(&self, process: &Rc<Process>, id: BufferId) {
        self.buffers
            .borrow_mut()
            .buffer_mut(id)
            .waiting_processes
            .push(Rc::clone(process));
        let from = self.simulation.now();
        self.wait_for_wake_up(process, "a buffer that another process uses")
            .await;
        self.book_transfer(process, id, from);
    }

    fn book_transfer(&self, process: &Process, id: BufferId, from: Time) {
        let to = process.runnable_since();
        let buffer = &self.buffers.borrow().buffers[id.0 as usize];
        match buffer.request {
            Some(request) => {
                let hardware = self.hardware.borrow();
                process.book_request(&hardware.submitted_requests[request].spans, from, to);
            }
            None => process.book_request(&buffer.transfer_spans, from, to),
        }
    }

    /// Takes an unused buffer from the free lists, empties it and returns it. Writes a delayed
    /// block to its drive before it reuses the buffer. Sleeps while all buffers are in use.
    async fn take_buffer_for_reuse(&self, process: &Rc<Process>) -> BufferId {
        let context = ExecutionContext::InProcess(process);
        self.spend_processor_time(context, Stage::CacheLookup, self.costs.new_buffer_time)
            .await;
        loop {
            let victim = {
                let buffers = self.buffers.borrow();
                buffers
                    .free_list_head(FreeList::ReuseFirst)
                    .or(buffers.free_list_head(FreeList::LeastRecentlyUsed))
            };
            let Some(id) = victim else {
                self.buffers
                    .borrow_mut()
                    .processes_awaiting_buffer
                    .push(Rc::clone(process));
                let from = self.simulation.now();
                self.wait_for_wake_up(process, "a free buffer").await;
                process.book_wait(Stage::BufferWait, from);
                continue;
            };
            self.buffers.borrow_mut().remove_from_free_list(id);
            if self.buffers.borrow().buffers[id.0 as usize].is_delayed() {
                // What was delayed has to go out now; it comes back when it
                // is out, to be reused then.
                self.buffers.borrow_mut().buffer_mut(id).should_reuse_early = true;
                self.bawrite(process, id).await;
                continue;
            }
            let mut buffers = self.buffers.borrow_mut();
            buffers.set_key(id, None);
            let buffer = buffers.buffer_mut(id);
            buffer.is_transfer_done = false;
            buffer.should_reuse_early = false;
            buffer.page = None;
            buffer.valid_bytes = 0;
            return id;
        }
    }

    /// Resizes the memory of a buffer to hold a block. Missing memory comes from unused buffers; a
    /// surplus goes to a buffer header without memory.
    async fn allocate_memory(&self, process: &Rc<Process>, id: BufferId, bytes: u32) {
        let wanted = bytes.next_multiple_of(CLICK_BYTES);
        let has = self.buffers.borrow().buffers[id.0 as usize].memory_bytes;
        if has > wanted {
            self.move_surplus_memory(id, wanted);
        }
        while self.buffers.borrow().buffers[id.0 as usize].memory_bytes < wanted {
            let victim = self.take_buffer_for_reuse(process).await;
            let emptied = {
                let mut buffers = self.buffers.borrow_mut();
                let missing = wanted - buffers.buffer_mut(id).memory_bytes;
                let taken = missing.min(buffers.buffer_mut(victim).memory_bytes);
                buffers.buffer_mut(id).memory_bytes += taken;
                buffers.buffer_mut(victim).memory_bytes -= taken;
                buffers.buffer_mut(victim).memory_bytes == 0
            };
            let list = if emptied {
                FreeList::NoMemory
            } else {
                FreeList::ReuseFirst
            };
            self.return_to_free_list(victim, list);
        }
        self.buffers.borrow_mut().buffer_mut(id).valid_bytes = bytes;
    }

    fn move_surplus_memory(&self, id: BufferId, wanted: u32) {
        let empty = self.buffers.borrow().free_list_head(FreeList::NoMemory);
        let Some(empty) = empty else { return };
        {
            let mut buffers = self.buffers.borrow_mut();
            buffers.remove_from_free_list(empty);
            let surplus = buffers.buffer_mut(id).memory_bytes - wanted;
            buffers.buffer_mut(id).memory_bytes = wanted;
            buffers.buffer_mut(empty).memory_bytes = surplus;
        }
        self.return_to_free_list(empty, FreeList::ReuseFirst);
    }

    /// Puts an empty buffer at the head of a free list and wakes the processes that wait for a
    /// buffer.
    fn return_to_free_list(&self, id: BufferId, list: FreeList) {
        self.buffers.borrow_mut().prepend_to_free_list(id, list);
        self.wake_for_buffer(id);
    }

    /// Releases a buffer to a free list and wakes the processes that wait for it (`brelse`). Takes
    /// no processor time.
    pub(crate) fn release_buffer(&self, id: BufferId) {
        {
            let mut buffers = self.buffers.borrow_mut();
            let buffer = buffers.buffer_mut(id);
            buffer.is_asynchronous = false;
            let (age, named) = (
                std::mem::take(&mut buffer.should_reuse_early),
                buffer.key.is_some(),
            );
            if !named {
                buffers.prepend_to_free_list(id, FreeList::ReuseFirst);
            } else if age {
                buffers.append_to_free_list(id, FreeList::ReuseFirst);
            } else {
                buffers.append_to_free_list(id, FreeList::LeastRecentlyUsed);
            }
        }
        self.wake_for_buffer(id);
    }

    fn wake_for_buffer(&self, id: BufferId) {
        let (mut own, mut any) = {
            let mut buffers = self.buffers.borrow_mut();
            if buffers.buffer_mut(id).waiting_processes.is_empty()
                && buffers.processes_awaiting_buffer.is_empty()
            {
                return;
            }
            let own = std::mem::take(&mut buffers.buffer_mut(id).waiting_processes);
            (own, std::mem::take(&mut buffers.processes_awaiting_buffer))
        };
        for process in own.drain(..).chain(any.drain(..)) {
            self.wake_process(&process);
        }
        // Their room is kept for the next who wait.
        let mut buffers = self.buffers.borrow_mut();
        buffers.buffer_mut(id).waiting_processes = own;
        buffers.processes_awaiting_buffer = any;
    }

    /// Drops all blocks from the buffer cache that have no delayed write. A buffer in use is only
    /// marked for early reuse.
    pub(crate) fn invalidate_clean_buffers(&self) {
        let keys: Vec<BlockKey> = {
            let buffers = self.buffers.borrow();
            let clean = buffers.buffers.iter().filter(|buffer| !buffer.is_delayed());
            clean.filter_map(|buffer| buffer.key).collect()
        };
        for key in keys {
            self.invalidate_buffer(key);
        }
    }

    /// Drops a freed block from the buffer cache, with its delayed write. If its buffer is in use,
    /// the buffer is only marked for early reuse.
    pub(crate) fn invalidate_buffer(&self, key: BlockKey) {
        let found = self.buffers.borrow().find_cached(key);
        let Some(id) = found else { return };
        let mut buffers = self.buffers.borrow_mut();
        if buffers.buffers[id.0 as usize].is_busy {
            // It is on its way out; that it is forgotten shows when it is
            // wanted next.
            buffers.buffer_mut(id).should_reuse_early = true;
            return;
        }
        buffers.remove_from_free_list(id);
        buffers.delay_write(id, false);
        let buffer = buffers.buffer_mut(id);
        buffer.is_transfer_done = false;
        buffer.page = None;
        buffers.set_key(id, None);
        drop(buffers);
        self.release_buffer(id);
    }
}

impl UnixKernel {
    /// Returns a buffer with the contents of a block. Reads the block from its drive if the cache
    /// does not hold it.
    pub(crate) async fn bread(&self, process: &Rc<Process>, key: BlockKey, bytes: u32) -> BufferId {
        let id = self.getblk(process, key, bytes).await;
        if !self.buffers.borrow().buffers[id.0 as usize].is_transfer_done {
            self.start_transfer(ExecutionContext::InProcess(process), id, false)
                .await;
            self.biowait(process, id).await;
        }
        self.trace_buffer_use(id.0 as usize, process);
        id
    }

    /// Reads a block as [`UnixKernel::bread`] does, and starts to read a second block that the process
    /// may want next. Returns the buffer of the first block.
    pub(crate) async fn breada(
        &self,
        process: &Rc<Process>,
        (key, bytes): (BlockKey, u32),
        (ahead, ahead_bytes): (BlockKey, u32),
    ) -> BufferId {
        let context = ExecutionContext::InProcess(process);
        self.spend_processor_time(context, Stage::CacheLookup, self.costs.cache_lookup_time)
            .await;
        let mut started = None;
        if self.buffers.borrow().find_cached(key).is_none() {
            let id = self.getblk(process, key, bytes).await;
            if !self.buffers.borrow().buffers[id.0 as usize].is_transfer_done {
                self.start_transfer(context, id, false).await;
            }
            started = Some(id);
        }
        self.spend_processor_time(context, Stage::CacheLookup, self.costs.cache_lookup_time)
            .await;
        if self.buffers.borrow().find_cached(ahead).is_none() {
            let id = self.getblk(process, ahead, ahead_bytes).await;
            if self.buffers.borrow().buffers[id.0 as usize].is_transfer_done {
                self.release_buffer(id);
            } else {
                self.buffers.borrow_mut().buffer_mut(id).is_asynchronous = true;
                self.start_transfer(context, id, false).await;
            }
        }
        match started {
            Some(id) => {
                self.biowait(process, id).await;
                self.trace_buffer_use(id.0 as usize, process);
                id
            }
            None => self.bread(process, key, bytes).await,
        }
    }

    /// Writes a buffer to its drive, waits for the transfer and releases the buffer.
    pub(crate) async fn bwrite(&self, process: &Rc<Process>, id: BufferId) {
        self.start_transfer(ExecutionContext::InProcess(process), id, true)
            .await;
        self.biowait(process, id).await;
        self.release_buffer(id);
    }

    /// Starts to write a buffer to its drive and returns without waiting for the transfer. The
    /// buffer is released when the transfer completes.
    pub(crate) async fn bawrite(&self, process: &Rc<Process>, id: BufferId) {
        self.buffers.borrow_mut().buffer_mut(id).is_asynchronous = true;
        self.start_transfer(ExecutionContext::InProcess(process), id, true)
            .await;
    }

    /// Marks a buffer as a delayed write and releases it. The block goes to the drive when the
    /// buffer is reused or synced.
    pub(crate) async fn bdwrite(&self, process: &Rc<Process>, id: BufferId) {
        {
            let mut buffers = self.buffers.borrow_mut();
            buffers.delay_write(id, true);
            buffers.buffer_mut(id).is_transfer_done = true;
        }
        self.brelse(process, id).await;
    }

    /// Releases a buffer as [`UnixKernel::release_buffer`] does, and charges the processor time of a cache
    /// look-up to the process.
    pub(crate) async fn brelse(&self, process: &Rc<Process>, id: BufferId) {
        self.spend_processor_time(
            ExecutionContext::InProcess(process),
            Stage::CacheLookup,
            self.costs.cache_lookup_time,
        )
        .await;
        self.release_buffer(id);
    }

    /// Issues a read or write request for a buffer and passes it to the driver of the drive.
    async fn start_transfer(&self, context: ExecutionContext<'_>, id: BufferId, write: bool) {
        let request = {
            let mut buffers = self.buffers.borrow_mut();
            buffers.delay_write(id, false);
            let Buffers {
                buffers: all,
                writes_in_flight: writing,
                ..
            } = &mut *buffers;
            let buffer = &mut all[id.0 as usize];
            let key = buffer
                .key
                .expect("a buffer in transfer has a block address");
            let bytes = buffer.valid_bytes;
            buffer.is_transfer_done = false;
            let partition = self.volumes.partition(key.volume());
            let mut request = Request {
                operation: Operation::from_direction(write),
                device: partition.drive,
                sector: self.sector_on_drive(key),
                sectors: bytes.div_ceil(partition.sector_bytes),
                hint: AccessHint::for_file(bytes),
                // Room for spans that is there already.
                spans: std::mem::take(&mut buffer.transfer_spans),
            };
            request.spans.begin_at(moment(self.simulation.now()));
            let request = self.issue_request(
                request,
                RequestOwner::BufferedRequest(id),
                !buffer.is_asynchronous,
            );
            assert!(
                buffer.request.replace(request).is_none(),
                "a buffer is transferred once at a time"
            );
            if write {
                writing[key.volume() as usize].0 += 1;
            } else if let ExecutionContext::InProcess(process) = context {
                process.count_storage_read(bytes);
            }
            request
        };
        self.queue_request(context, request).await;
    }

    /// Sleeps until the transfer of a buffer that the process holds is complete.
    pub(super) async fn biowait(&self, process: &Rc<Process>, id: BufferId) {
        let from = self.simulation.now();
        if self.buffers.borrow().buffers[id.0 as usize].is_transfer_done {
            return;
        }
        self.buffers
            .borrow_mut()
            .buffer_mut(id)
            .waiting_processes
            .push(Rc::clone(process));
        self.wait_for_wake_up(process, "a transfer").await;
        self.book_transfer(process, id, from);
    }

    /// Completes the transfer of a buffer: moves the data between buffer and drive, then releases
    /// an asynchronous buffer or wakes the processes that wait for a synchronous one.
    pub(super) fn biodone(&self, id: BufferId, request: Request) {
        let (asynchronous, write) = {
            let mut buffers = self.buffers.borrow_mut();
            let buffer = buffers.buffer_mut(id);
            buffer.request = None;
            (buffer.is_asynchronous, request.is_write())
        };
        self.count_completed_request(Some(id), &request, !asynchronous);
        self.buffers.borrow_mut().buffer_mut(id).transfer_spans = request.spans;
        self.move_buffer_data(id, write);
        if write {
            self.finish_write(id);
        }
        self.buffers.borrow_mut().buffer_mut(id).is_transfer_done = true;
        if asynchronous {
            self.release_buffer(id);
        } else {
            let mut waiters =
                std::mem::take(&mut self.buffers.borrow_mut().buffer_mut(id).waiting_processes);
            for process in waiters.drain(..) {
                self.wake_process(&process);
            }
            self.buffers.borrow_mut().buffer_mut(id).waiting_processes = waiters;
        }
    }

    fn finish_write(&self, id: BufferId) {
        let key = self.buffers.borrow().buffers[id.0 as usize].key;
        let volume = key
            .expect("a buffer in transfer has a block address")
            .volume() as usize;
        let waiters = {
            let (under_way, waiters) = &mut self.buffers.borrow_mut().writes_in_flight[volume];
            *under_way -= 1;
            if *under_way > 0 {
                return;
            }
            std::mem::take(waiters)
        };
        for process in &waiters {
            self.wake_process(process);
        }
    }

    /// Changes the contents of a buffer that the caller holds. Copies the contents first if another
    /// owner shares their memory.
    pub(super) fn edit_buffer<T>(&self, id: BufferId, change: impl FnOnce(&mut [u8]) -> T) -> T {
        let mut buffers = self.buffers.borrow_mut();
        let page = buffers.buffer_mut(id).page.as_mut();
        let page = page.expect("a buffer that was read has contents");
        if Rc::get_mut(page).is_none() {
            *page = Rc::from(&page[..]);
        }
        change(Rc::get_mut(page).expect("a new page has one owner"))
    }

    fn move_buffer_data(&self, id: BufferId, write: bool) {
        let mut buffers = self.buffers.borrow_mut();
        let buffer = buffers.buffer_mut(id);
        let key = buffer
            .key
            .expect("a buffer in transfer has a block address");
        self.volumes.with_contents(key.volume(), |medium| {
            if write {
                let page = buffer
                    .page
                    .as_ref()
                    .expect("a buffer to write has contents");
                medium.write_fragments(key.fragment(), buffer.valid_bytes, page);
            } else {
                buffer.page = Some(medium.read_fragments(key.fragment(), buffer.valid_bytes));
            }
        });
    }
}
