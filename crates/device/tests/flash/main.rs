//! The flash drive in time, against exact arithmetic and queueing theory (facts, flash
//! drives, 4 and 7). Times are in microseconds.

mod collection;
mod expectations;
mod expected;
mod ledger;
mod pacing;
mod parallelism;
mod passing;
mod power_cut;
mod recorded;

use diskperf_device::flash::device::Flash;
use diskperf_device::flash::specification::{
    ArrayTimes, BufferSpecification, ChannelSpecification, FlashFlushOrder, FlashGeometry,
    FlashLinkSpecification, FlashSpecification, InterfaceSpecification, JournalSpecification,
    SuspensionSpecification, TranslationSpecification,
};
use diskperf_device::{Completion, Device, Drive, Operation, RequestId};
use diskperf_ftl::{PreconditionState, VictimPolicy};
use diskperf_sim::{RandomStreams, Time};

const SEED: u64 = 27;
const READ: Operation = Operation::Read;
const WRITE: Operation = Operation::Write { fua: false };
const FUA: Operation = Operation::Write { fua: true };

fn us(microseconds: f64) -> Time {
    Time((microseconds * 1000.0 + 0.5) as u64)
}

/// The drive of facts 7: one channel of 1000 MB/s, one die, one plane, pages of a unit;
/// reads 50, programs 500, erases 3000; no other times, no buffer, no suspension.
fn toy() -> FlashSpecification {
    FlashSpecification {
        geometry: FlashGeometry {
            channel_count: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 16,
            word_lines_per_block: 16,
            pages_per_word_line: 1,
            page_bytes: 4096,
            page_spare_bytes: 0,
        },
        times: ArrayTimes {
            read_time_by_page: vec![us(50.0)],
            program_time: us(500.0),
            erase_time: us(3000.0),
        },
        slc_cache: None,
        writes_in_place: false,
        has_independent_planes: false,
        has_cache_read: false,
        has_cache_program: false,
        allows_reads_during_data_in: false,
        suspension: None,
        channel: ChannelSpecification {
            bytes_per_s: 1e9,
            command_time: Time::ZERO,
        },
        decode_time: Time::ZERO,
        retry_share: 0.0,
        buffer: None,
        journal: JournalSpecification {
            page_count: 4,
            changes_per_page: 1 << 20,
            program_time: us(500.0),
            programs_per_flush: 1,
        },
        map_cache_pages: None,
        map_lookup_time: Time::ZERO,
        trim_page_time: Time::ZERO,
        translation: TranslationSpecification {
            logical_units: 64,
            policy: VictimPolicy::Greedy,
            soft_free_superblocks: 4,
            hard_free_superblocks: 3,
            wear_threshold: None,
            dies_erasing_max: 1 << 10,
            precondition: PreconditionState::Fresh,
            filled_share: 0,
            models_power_cuts: false,
        },
        interface: InterfaceSpecification {
            queue_depth: 1 << 10,
            submission_time: Time::ZERO,
            command_time: Time::ZERO,
            processing_time_per_unit: Time::ZERO,
            request_units_max: 1 << 20,
            link: FlashLinkSpecification {
                read_bytes_per_s: f64::INFINITY,
                write_bytes_per_s: f64::INFINITY,
                is_full_duplex: true,
                command_overhead: Time::ZERO,
            },
            completion_time: Time::ZERO,
            flush_order: FlashFlushOrder::QueuesWrites,
        },
    }
}

fn suspending(most: u32) -> Option<SuspensionSpecification> {
    Some(SuspensionSpecification {
        program_suspend_time: us(20.0),
        erase_suspend_time: us(20.0),
        resume_time: us(5.0),
        suspensions_max: most,
    })
}

fn buffered(units: u32, protected: bool) -> Option<BufferSpecification> {
    Some(BufferSpecification {
        unit_count: units,
        is_power_protected: protected,
    })
}

/// A drive that nobody has asked for anything.
fn new_host(specification: &FlashSpecification) -> Drive {
    new_drive(specification, SEED)
}

fn new_drive(specification: &FlashSpecification, seed: u64) -> Drive {
    let flash = Flash::new(
        specification,
        (seed, RandomStreams::new(seed).named_stream("retries")),
    );
    let flash = flash.unwrap_or_else(|error| panic!("{error}"));
    Drive::new(Device::Flash(Box::new(flash)))
}

/// A flash drive whose requests are all taken, and all end.
trait Taking {
    fn flash(&self) -> &Flash;
    fn ask(&mut self, operation: Operation, sector: u64, sectors: u32) -> RequestId;
    fn one(&mut self, operation: Operation, sector: u64, sectors: u32) -> Completion;
    fn wait(&mut self) -> Completion;
    fn take_done(&mut self) -> Option<Completion>;
    /// Goes on until nothing is left to be done.
    fn rest(&mut self);
}

impl Taking for Drive {
    fn flash(&self) -> &Flash {
        self.device().flash().expect("a flash drive")
    }

    fn ask(&mut self, operation: Operation, sector: u64, sectors: u32) -> RequestId {
        let submitted = self.submit(operation, sector, sectors);
        submitted.unwrap_or_else(|refusal| panic!("{refusal}"))
    }

    fn one(&mut self, operation: Operation, sector: u64, sectors: u32) -> Completion {
        let done = self.serve(operation, sector, sectors);
        let done = done.unwrap_or_else(|refusal| panic!("{refusal}"));
        assert_eq!(done.completed, self.now(), "{done:?}");
        done
    }

    fn wait(&mut self) -> Completion {
        self.next_completion().expect("a request that never ends")
    }

    fn take_done(&mut self) -> Option<Completion> {
        self.completions().next()
    }

    fn rest(&mut self) {
        while self.step() {}
    }
}

/// Asks at these times from now on; when each was done, from now on too.
fn ends_of(host: &mut Drive, script: &[(f64, Operation, u64, u32)]) -> Vec<f64> {
    let begun = host.now();
    let mut ids = Vec::new();
    let mut ends = vec![f64::NAN; script.len()];
    let mut next = 0;
    while ends.iter().any(|end| end.is_nan()) {
        let due = script.get(next).map(|(at, ..)| begun + us(*at));
        match (due, host.flash().next_event()) {
            (Some(due), event) if event.is_none_or(|event| event >= due) => {
                let (_, operation, sector, sectors) = script[next];
                host.run_until(due);
                ids.push(host.ask(operation, sector, sectors));
                next += 1;
            }
            _ => assert!(host.step(), "a request that never ends"),
        }
        while let Some(Completion { id, .. }) = host.take_done() {
            let place = ids.iter().position(|of| *of == id).expect("asked");
            ends[place] = (host.now() - begun).0 as f64 / 1000.0;
        }
    }
    ends
}
