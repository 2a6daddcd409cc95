//! Programs, one for each tracepoint: what they read, and which events they leave out.

use super::layout::KernelTypes;
use super::probe::{MapDescriptors, Probe, ReadTarget};
use super::record::{IDLE_RING_WORKER, RecordKind, bio, request, switch, waking};
use ReadTarget::{Register as To, Word};
use Register::{R0, R1, R7, R8, R9};
use diskperf_bpf::{AssemblyError, BtfError, Helper, Instruction, Register};

/// Reason why there is no program for a tracepoint of the running kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ProgramBuildError {
    #[error(transparent)]
    Types(#[from] BtfError),
    #[error(transparent)]
    Assembly(#[from] AssemblyError),
}

/// Events that are recorded.
#[derive(Clone, Debug, Default)]
pub(super) struct EventFilters {
    /// Process whose system calls are recorded.
    pub(super) process: u32,
    /// Devices in the kernel's form whose bios and requests are recorded; empty for all devices.
    pub(super) devices: Vec<u32>,
}

const BIO: &str = "struct bio *";
const REQUEST: &str = "struct request *";
const TASK: &str = "struct task_struct *";
const WORK: &str = "struct work_struct *";
pub(super) const RING_REQUEST: &str = "struct io_kiocb *";
const UNSIGNED: [&str; 2] = ["unsigned int", "u32"];
const LONG: [&str; 2] = ["long int", "long"];

/// Flag of a worker thread of io_uring (`PF_IO_WORKER` in the kernel's include/linux/sched.h).
const IO_WORKER: i32 = 0x10;
/// Bits of a page's mapping that say it is none of a file.
const MAPPING_FLAGS: i32 = 3;
/// Bit of the address in a page that leads to the head of its compound page.
const COMPOUND_TAIL: i32 = 1;

/// Builds the program for a kind of record.
pub(super) fn build_program(
    kind: RecordKind,
    types: &KernelTypes,
    filters: &EventFilters,
    maps: MapDescriptors,
) -> Result<Vec<Instruction>, ProgramBuildError> {
    let tracepoint = types.find_tracepoint(kind.tracepoint())?;
    let mut probe = Probe::new(types, &tracepoint, maps);
    let word_count = probe.read_event(kind, filters)?;
    probe.output(kind, word_count);
    Ok(probe.finish()?)
}

impl Probe<'_> {
    /// Reads the words of an event, and returns their number.
    fn read_event(&mut self, kind: RecordKind, filters: &EventFilters) -> Result<usize, BtfError> {
        use RecordKind as Kind;
        match kind {
            Kind::Switch => self.read_switch(),
            Kind::Waking => {
                self.load_argument(R7, &[TASK])?;
                self.read_members(R7, "task_struct", &[("pid", Word(0))])?;
                self.code.call(Helper::GetCurrentTask);
                self.code.move_register(R7, R0);
                self.read_ring_request(waking::WAKER_RING_REQUEST)?;
                Ok(2)
            }
            Kind::NewTask => {
                self.load_argument(R7, &[TASK])?;
                self.read_members(R7, "task_struct", &[("pid", Word(0))])?;
                Ok(1)
            }
            Kind::InterruptEntry
            | Kind::InterruptExit
            | Kind::TimerEntry
            | Kind::TimerExit
            | Kind::ReclaimBegin
            | Kind::ReclaimEnd
            | Kind::CgroupReclaimBegin
            | Kind::CgroupReclaimEnd => Ok(0),
            Kind::SoftInterruptEntry | Kind::SoftInterruptExit | Kind::SoftInterruptRaise => {
                self.store_argument(0, &UNSIGNED)?;
                Ok(1)
            }
            Kind::BioQueue => {
                self.read_bio(filters)?;
                self.read_bio_file()?;
                Ok(7)
            }
            Kind::BioRemap
            | Kind::BioSplit
            | Kind::BioRequestAllocated
            | Kind::BioBackMerge
            | Kind::BioFrontMerge => {
                self.read_bio(filters)?;
                Ok(5)
            }
            Kind::RequestInsert | Kind::RequestIssue => {
                self.read_request(filters)?;
                Ok(8)
            }
            Kind::RequestComplete => {
                self.read_request(filters)?;
                self.store_argument(request::COMPLETED_BYTES, &UNSIGNED)?;
                Ok(9)
            }
            Kind::RequestDone => {
                self.store_argument(0, &[REQUEST])?;
                Ok(1)
            }
            Kind::CommitStart
            | Kind::CommitLocking
            | Kind::CommitFlushing
            | Kind::CommitLogging
            | Kind::CommitEnd => {
                self.load_argument(R7, &["struct transaction_s *", "transaction_t *"])?;
                self.read_members(R7, "transaction_s", &[("t_tid", Word(0))])?;
                Ok(1)
            }
            Kind::DirtyThrottle => {
                self.store_argument(0, &LONG)?;
                Ok(1)
            }
            Kind::WorkQueue | Kind::WorkStart | Kind::WorkEnd => {
                self.load_argument(R7, &[WORK])?;
                self.store(0, R7);
                self.read_members(R7, "work_struct", &[("func", Word(1))])?;
                Ok(2)
            }
            Kind::RingSubmit => {
                // A thread of the ring that submits for the program is a thread of its process.
                self.filter_process(filters.process);
                self.load_argument(R7, &[RING_REQUEST])?;
                self.store(0, R7);
                let members = [("cqe.user_data", Word(1)), ("opcode", Word(2))];
                self.read_members(R7, "io_kiocb", &members)?;
                Ok(3)
            }
            Kind::RingQueueAsync | Kind::RingComplete => {
                let index = self.tracepoint.find_ring_request()?;
                self.load_argument_at(R7, index);
                self.store(0, R7);
                Ok(1)
            }
            Kind::CallEnter => {
                self.filter_process(filters.process);
                self.store_argument(0, &LONG)?;
                self.load_argument(R7, &["struct pt_regs *"])?;
                self.read_members(R7, "pt_regs", &[("di", Word(1))])?;
                Ok(2)
            }
            Kind::CallExit => {
                self.filter_process(filters.process);
                self.load_argument(R7, &["struct pt_regs *"])?;
                self.read_members(R7, "pt_regs", &[("orig_ax", Word(0))])?;
                Ok(1)
            }
        }
    }

    /// Skips the event unless a task of this process is current.
    fn filter_process(&mut self, process: u32) {
        let pass = self.code.new_label();
        self.code.call(Helper::GetCurrentPidTgid);
        self.code.shift_right(R0, 32);
        self.code.jump_if_equal(R0, process as i32, pass);
        self.code.jump(self.skip);
        self.code.bind(pass);
    }

    /// Skips the event unless the device in a register is recorded.
    fn filter_device(&mut self, device: Register, filters: &EventFilters) {
        if filters.devices.is_empty() {
            return;
        }
        let pass = self.code.new_label();
        for number in &filters.devices {
            self.code.jump_if_equal(device, *number as i32, pass);
        }
        self.code.jump(self.skip);
        self.code.bind(pass);
    }

    /// Reads a bio, and leaves the address of its pages in R9.
    fn read_bio(&mut self, filters: &EventFilters) -> Result<(), BtfError> {
        self.load_argument(R7, &[BIO])?;
        self.store(bio::ADDRESS, R7);
        let members = [
            ("bi_iter.bi_sector", Word(bio::SECTOR)),
            ("bi_iter.bi_size", Word(bio::BYTES)),
            ("bi_opf", Word(bio::FLAGS)),
            ("bi_bdev", To(R8)),
            ("bi_io_vec", To(R9)),
        ];
        self.read_members(R7, "bio", &members)?;
        self.follow(R8, R8, ("block_device", "bd_dev"))?;
        self.store(bio::DEVICE, R8);
        self.filter_device(R8, filters);
        Ok(())
    }

    /// Reads the file of a bio's first page, whose address is in R9; zeros for a page of no file.
    fn read_bio_file(&mut self) -> Result<(), BtfError> {
        let (is_tail, none) = (self.code.new_label(), self.code.new_label());
        self.store_constant(bio::FILE_DEVICE, 0);
        self.store_constant(bio::FILE_INODE, 0);
        self.load(R1, bio::BYTES);
        self.code.jump_if_equal(R1, 0, none);
        self.follow(R9, R9, ("bio_vec", "bv_page"))?;
        self.follow(R8, R9, ("page", "compound_head"))?;
        self.code.jump_if_any_bit(R8, COMPOUND_TAIL, is_tail);
        self.code.move_register(R8, R9);
        self.code.add(R8, COMPOUND_TAIL);
        self.code.bind(is_tail);
        self.code.add(R8, -COMPOUND_TAIL);
        self.follow(R8, R8, ("folio", "mapping"))?;
        self.code.jump_if_equal(R8, 0, none);
        self.code.jump_if_any_bit(R8, MAPPING_FLAGS, none);
        self.follow(R8, R8, ("address_space", "host"))?;
        let members = [("i_ino", Word(bio::FILE_INODE)), ("i_sb", To(R9))];
        self.read_members(R8, "inode", &members)?;
        self.read_members(R9, "super_block", &[("s_dev", Word(bio::FILE_DEVICE))])?;
        self.code.bind(none);
        Ok(())
    }

    fn read_request(&mut self, filters: &EventFilters) -> Result<(), BtfError> {
        self.load_argument(R7, &[REQUEST])?;
        self.store(request::ADDRESS, R7);
        let members = [
            ("bio", Word(request::BIO)),
            ("__sector", Word(request::SECTOR)),
            ("__data_len", Word(request::BYTES)),
            ("cmd_flags", Word(request::FLAGS)),
            ("rq_flags", Word(request::STATE_FLAGS)),
            ("q", To(R8)),
        ];
        self.read_members(R7, "request", &members)?;
        self.follow(R8, R8, ("request_queue", "disk"))?;
        let members = [
            ("major", Word(request::MAJOR)),
            ("first_minor", Word(request::MINOR)),
        ];
        self.read_members(R8, "gendisk", &members)?;
        self.load(R8, request::MAJOR);
        self.code.shift_left(R8, 20);
        self.load(R1, request::MINOR);
        self.code.or_register(R8, R1);
        self.filter_device(R8, filters);
        Ok(())
    }

    fn read_switch(&mut self) -> Result<usize, BtfError> {
        let (preempted, known) = (self.code.new_label(), self.code.new_label());
        self.load_argument(R1, &["bool", "_Bool"])?;
        self.code.jump_if_not_equal(R1, 0, preempted);
        self.store_argument(switch::STATE, &UNSIGNED)?;
        self.code.jump(known);
        self.code.bind(preempted);
        self.store_constant(switch::STATE, 0);
        self.code.bind(known);
        self.load_argument(R7, &[TASK])?;
        self.read_ring_request(switch::PREVIOUS_RING_REQUEST)?;
        let next = self.tracepoint.find_second_argument(TASK)?;
        self.load_argument_at(R7, next);
        self.read_members(R7, "task_struct", &[("pid", Word(switch::NEXT_THREAD))])?;
        self.read_ring_request(switch::NEXT_RING_REQUEST)?;
        Ok(4)
    }

    /// Stores the request that the task in R7 runs as a worker thread of io_uring; 1 for an idle
    /// worker thread, and 0 for other tasks.
    fn read_ring_request(&mut self, word: usize) -> Result<(), BtfError> {
        self.store_constant(word, 0);
        let work = match self.types.find_member("io_kiocb", "work") {
            // A kernel that was built without io_uring has no such tasks.
            Err(BtfError::NoType(_)) => return Ok(()),
            work => work?,
        };
        let none = self.code.new_label();
        self.follow(R8, R7, ("task_struct", "flags"))?;
        self.code.and(R8, IO_WORKER);
        self.code.jump_if_equal(R8, 0, none);
        self.follow(R8, R7, ("task_struct", "worker_private"))?;
        self.follow(R8, R8, ("io_worker", "cur_work"))?;
        self.store_constant(word, IDLE_RING_WORKER as i32);
        self.code.jump_if_equal(R8, 0, none);
        self.code.add(R8, -(work.offset_bytes as i32));
        self.store(word, R8);
        self.code.bind(none);
        Ok(())
    }
}

/// Reports whether chains need the events of a kind. Without one of these the recorder is of no
/// use; of the others it says what is not seen.
pub(super) const fn is_essential(kind: RecordKind) -> bool {
    matches!(
        kind,
        RecordKind::Switch
            | RecordKind::Waking
            | RecordKind::BioQueue
            | RecordKind::RequestIssue
            | RecordKind::RequestComplete
            | RecordKind::CallEnter
            | RecordKind::CallExit
    )
}
