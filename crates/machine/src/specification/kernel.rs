//! Host, kernel and driver as described in the catalogue. Costs given for the reference machine are
//! scaled to the speed of this machine.

use super::{
    ComputerSpecification, DriveSpecification, MinixSpecification, UnixEdition, UnixSpecification,
    VolumeSpecification, minix, read_volumes, v7,
};
use crate::driver::QueueOrder;
use crate::kernel::costs::{KernelCosts, ProgramCosts};
use crate::kernel::minix::MinixConfig;
use crate::kernel::serial::SerialLines;
use crate::parts::{Attachment, PartKind};
use diskperf_catalogue::{Component, Reader, ResolvedSystem};
use diskperf_sim::Time;

/// Parameters of a kernel of any kind, scaled to this machine.
#[derive(Clone, Debug)]
pub struct KernelSpecification {
    /// Costs of the kernel's routines.
    pub kernel_costs: KernelCosts,
    /// Speed of this machine relative to the machine for which costs are given.
    pub processor_speed: f64,
    /// Serial lines that are active all the time.
    pub serial_lines: SerialLines,
}

/// Kernel of a system, as far as the catalogue describes it apart from its parts.
pub(crate) trait KernelFamily: Sized {
    /// Names of the kernel's kinds in the catalogue.
    const KERNEL_KINDS: &[&str];
    const NO_DRIVER_MESSAGE: &str;
    /// Parameters of this kernel that other kernels do not have.
    type Settings;

    fn has_driver(part: PartKind) -> bool;

    /// Reads the kernel's table: the costs of its routines, and its own parameters.
    fn read_kernel_settings(
        kind: &str,
        reader: &mut Reader<'_>,
        host: &HostProperties,
    ) -> (KernelCosts, Self::Settings);

    /// Reads the file layouts, after the kernel's parts have been read.
    fn attach_part(
        settings: Self::Settings,
        computer: ComputerSpecification,
        attachments: Vec<Attachment>,
        system: &ResolvedSystem,
        drives: &[DriveSpecification],
    ) -> (Self, Vec<VolumeSpecification>);
}

/// Speed and memory of the machine on which a kernel runs.
pub(crate) struct HostProperties {
    /// Speed of this machine relative to the machine for which costs are given.
    pub(crate) processor_speed: f64,
    pub(crate) memory_bytes: u64,
}

/// Parameters of UNIX that other kernels do not have.
pub(crate) struct UnixSettings {
    is_seventh_edition: bool,
    cache_bytes: u32,
    queue_order: QueueOrder,
}

impl KernelFamily for UnixSpecification {
    const KERNEL_KINDS: &[&str] = &["bsd", "v7"];
    const NO_DRIVER_MESSAGE: &str = "only Minix has a driver for the DMA port of an Atari ST";
    type Settings = UnixSettings;

    fn has_driver(part: PartKind) -> bool {
        part != PartKind::Acsi
    }

    fn read_kernel_settings(
        kind: &str,
        reader: &mut Reader<'_>,
        host: &HostProperties,
    ) -> (KernelCosts, UnixSettings) {
        let costs = read_costs(reader, host.processor_speed);
        let cache_share = reader.number(
            "buffer_cache_share",
            0.0..=0.9,
            "share of memory for the buffer cache",
        );
        let queue_order = reader.choice(
            "disksort",
            &[
                ("1983", QueueOrder::CylinderScan),
                ("reads-first", QueueOrder::ReadsFirst),
                ("first-come", QueueOrder::ArrivalOrder),
            ],
            "order of a drive's request queue",
        );
        let cache_bytes = host.memory_bytes as f64 * cache_share;
        let settings = UnixSettings {
            is_seventh_edition: kind == "v7",
            cache_bytes: cache_bytes.min(f64::from(1 << 30)) as u32,
            queue_order,
        };
        (costs, settings)
    }

    fn attach_part(
        settings: UnixSettings,
        computer: ComputerSpecification,
        attachments: Vec<Attachment>,
        system: &ResolvedSystem,
        drives: &[DriveSpecification],
    ) -> (Self, Vec<VolumeSpecification>) {
        let volumes = read_volumes(system, drives, !settings.is_seventh_edition);
        let unix = Self {
            computer,
            attachments,
            cache_bytes: settings.cache_bytes,
            queue_order: settings.queue_order,
            unix_edition: match settings.is_seventh_edition {
                true => UnixEdition::SeventhEdition(v7::read_filesystem(system, drives)),
                false => UnixEdition::Bsd42,
            },
        };
        (unix, volumes)
    }
}

impl KernelFamily for MinixSpecification {
    const KERNEL_KINDS: &[&str] = &["minix"];
    const NO_DRIVER_MESSAGE: &str = "Minix has a disk task for the DMA port of an Atari ST only";
    type Settings = MinixConfig;

    fn has_driver(part: PartKind) -> bool {
        part == PartKind::Acsi
    }

    fn read_kernel_settings(
        _kind: &str,
        reader: &mut Reader<'_>,
        host: &HostProperties,
    ) -> (KernelCosts, MinixConfig) {
        minix::read_minix(reader, host.processor_speed)
    }

    fn attach_part(
        config: MinixConfig,
        computer: ComputerSpecification,
        attachments: Vec<Attachment>,
        system: &ResolvedSystem,
        drives: &[DriveSpecification],
    ) -> (Self, Vec<VolumeSpecification>) {
        let volumes = read_volumes(system, drives, false);
        let minix = Self {
            computer,
            attachments,
            config,
            file_system: minix::read_filesystem(system, drives),
        };
        (minix, volumes)
    }
}

/// Maximum plausible cost, in milliseconds.
pub(crate) const COST_MS_MAX: f64 = 10_000.0;

/// Scales a cost to the speed of a machine. The result is rounded once, to the nearest nanosecond.
pub(crate) fn scale_cost(nanoseconds: u64, speed: f64) -> Time {
    Time((nanoseconds as f64 / speed + 0.5) as u64)
}

/// Reader of a kernel's table and of its host's table.
pub(super) struct KernelReader<'a> {
    host: Reader<'a>,
    reader: Reader<'a>,
    /// Kind of the kernel, one of the known kinds.
    pub(super) kind: String,
    host_properties: HostProperties,
    copy_per_kb: Time,
    clear_per_kb: Time,
    clock_hz: u64,
    serial_lines: SerialLines,
}

impl<'a> KernelReader<'a> {
    pub(super) fn read_common(system: &'a ResolvedSystem, kinds: &[&str]) -> Self {
        let mut host = system.reader(Component::Host, None);
        let speed = host.number(
            "speed",
            0.01..=100_000.0,
            "speed relative to the machine for which the kernel's costs are given",
        );
        let memory_bytes = host.integer("memory_bytes", 1 << 16..=1 << 40, "size of main memory");
        let per_kb =
            |host: &mut Reader<'_>, key, doc| Time(host.milliseconds(key, 0.0..=1000.0, doc));
        let copy_per_kb = per_kb(
            &mut host,
            "copy_ms_per_kb",
            "processor time to copy a kilobyte in memory",
        );
        let clear_per_kb = per_kb(
            &mut host,
            "clear_ms_per_kb",
            "processor time to clear a kilobyte of memory",
        );
        let clock_hz = host.integer("clock_hz", 10..=10_000, "clock ticks per second");
        let serial = read_serial(&mut host);
        let mut reader = system.reader(Component::Kernel, None);
        let kind = reader.optional_text("kind", "bsd, minix or v7; bsd if absent");
        let mut kind = kind.unwrap_or_else(|| kinds[0].to_string());
        if !kinds.contains(&&*kind) {
            let message = format!("there is no kernel of the kind {kind}");
            reader.fail_with_choices("kind", &message, "bsd, minix or v7");
            kind = kinds[0].to_string();
        }
        Self {
            host,
            reader,
            kind,
            host_properties: HostProperties {
                processor_speed: speed,
                memory_bytes,
            },
            copy_per_kb,
            clear_per_kb,
            clock_hz,
            serial_lines: serial,
        }
    }

    pub(super) fn finish_kernel<K: KernelFamily>(
        mut self,
        parts: impl IntoIterator<Item = PartKind>,
    ) -> (KernelSpecification, K::Settings) {
        if !parts.into_iter().all(K::has_driver) {
            self.reader.fail("kind", K::NO_DRIVER_MESSAGE);
        }
        let programs = read_programs(&mut self.reader);
        let (mut costs, settings) =
            K::read_kernel_settings(&self.kind, &mut self.reader, &self.host_properties);
        self.reader.finish();
        costs.copy_time_per_kb = self.copy_per_kb;
        costs.clear_time_per_kb = self.clear_per_kb;
        costs.clock_hz = self.clock_hz;
        costs.program_costs = programs;
        check_interrupts(&mut self.host, &costs, &self.serial_lines);
        self.host.finish();
        let kernel = KernelSpecification {
            kernel_costs: costs,
            processor_speed: self.host_properties.processor_speed,
            serial_lines: self.serial_lines,
        };
        (kernel, settings)
    }
}

/// Maximum share of the processor that clock and serial lines may use. With a higher share,
/// programs would not finish.
const INTERRUPT_SHARE_MAX: f64 = 0.95;

fn check_interrupts(host: &mut Reader<'_>, costs: &KernelCosts, serial: &SerialLines) {
    let clock =
        (costs.clock_tick_time + costs.soft_clock_time).0 as f64 * costs.clock_hz as f64 / 1e9;
    let char_s = serial.output_interval.0.max(1) as f64;
    let a_char = serial.interrupt_time_per_char.0 as f64
        + serial.interrupt_time_per_buffer.0 as f64 / f64::from(serial.buffer_chars);
    let lines = f64::from(serial.line_count) * a_char / char_s;
    if clock + lines <= INTERRUPT_SHARE_MAX {
        return;
    }
    let key = if lines > clock {
        "serial_lines"
    } else {
        "clock_hz"
    };
    let message = format!(
        "the clock takes {:.0} % of the processor and the serial lines {:.0} %",
        100.0 * clock,
        100.0 * lines
    );
    let allowed = format!("at most {:.0} % together", 100.0 * INTERRUPT_SHARE_MAX);
    host.fail_with_choices(key, &message, &allowed);
}

/// Bits of a character on a serial line: a start bit, eight data bits and a stop bit.
const BITS_PER_CHARACTER: u64 = 10;

/// Reads the serial lines. A host without such keys has none.
fn read_serial(host: &mut Reader<'_>) -> SerialLines {
    let mut number =
        |key, range, otherwise, doc| host.optional_integer(key, range, doc).unwrap_or(otherwise);
    let lines = number(
        "serial_lines",
        0..=1000,
        0,
        "serial lines with continuous input; none if absent",
    );
    let baud = number(
        "serial_baud",
        50..=1_000_000,
        9600,
        "bits per second of each serial line; 9600 if absent",
    );
    let buffer_chars = number(
        "serial_buffer_chars",
        1..=65_536,
        1,
        "characters in the buffer of a serial line; 1 if absent",
    );
    let mut cost = |key, doc| {
        let microseconds = host.optional_number(key, 0.0..=1e6, doc).unwrap_or(0.0);
        Time((microseconds * 1e3 + 0.5) as u64)
    };
    SerialLines {
        line_count: lines as u16,
        output_interval: Time(1_000_000_000 * BITS_PER_CHARACTER / baud),
        interrupt_time_per_char: cost(
            "serial_us_per_char",
            "processor time of the interrupt for each character; none if absent",
        ),
        interrupt_time_per_buffer: cost(
            "serial_us_per_buffer",
            "processor time to empty a full buffer of a serial line; none if absent",
        ),
        buffer_chars: buffer_chars as u32,
    }
}

fn read_programs(reader: &mut Reader<'_>) -> ProgramCosts {
    let mut cost = |key, doc| Time(reader.milliseconds(key, 0.0..=COST_MS_MAX, doc));
    ProgramCosts {
        fsck_inode_block_time: cost(
            "fsck_inode_block_ms",
            "processor time of fsck to check the inodes of a block",
        ),
        fsck_read_time: cost(
            "fsck_read_ms",
            "processor time of fsck to check the data of any other read",
        ),
        restore_record_time: cost(
            "restore_record_ms",
            "processor time of restore per record of 1 KB from the tape",
        ),
        dump_inode_time: cost(
            "dump_inode_ms",
            "processor time of dump and restore per file or directory",
        ),
    }
}

fn read_costs(reader: &mut Reader<'_>, speed: f64) -> KernelCosts {
    let mut cost = |key, doc| scale_cost(reader.milliseconds(key, 0.0..=COST_MS_MAX, doc), speed);
    let mut costs = KernelCosts {
        system_call_time: cost(
            "system_call_ms",
            "processor time to enter and leave the kernel",
        ),
        read_write_time: cost(
            "read_write_ms",
            "processor time of a read or write call, without that of its blocks",
        ),
        block_map_time: cost(
            "block_map_ms",
            "processor time to find a block of a file (bmap)",
        ),
        cache_lookup_time: cost(
            "cache_lookup_ms",
            "processor time to find or release a buffer (getblk, brelse)",
        ),
        new_buffer_time: cost(
            "new_buffer_ms",
            "processor time to reassign a buffer (getnewbuf)",
        ),
        allocation_time: cost("allocate_ms", "processor time to allocate a block (alloc)"),
        text_check_time_per_kb: cost(
            "text_check_ms_per_kb",
            "processor time to check whether a written kilobyte is in a text segment (mfind)",
        ),
        process_switch_time: cost(
            "switch_ms",
            "processor time of a sleep and wake-up (sleep, swtch, resume)",
        ),
        interrupt_time: cost(
            "interrupt_ms",
            "processor time to enter and leave an interrupt handler",
        ),
        clock_tick_time: cost(
            "clock_tick_ms",
            "processor time of a clock tick, at the clock's interrupt level",
        ),
        soft_clock_time: cost(
            "soft_clock_ms",
            "processor time of the work that a clock tick defers (softclock)",
        ),
        name_lookup_time: cost(
            "name_lookup_ms",
            "processor time to find a name in a directory (namei)",
        ),
        ..KernelCosts::default()
    };
    costs.update_interval = Time(reader.seconds(
        "update_interval_s",
        0.001..=1e6,
        "interval between two rounds of update",
    ));
    costs.reads_ahead =
        reader.integer("read_ahead_blocks", 0..=1, "read-ahead in blocks (breada)") > 0;
    costs.writes_attributes_synchronously = reader.flag(
        "attributes_synchronous",
        "whether chown, chmod and utimes wait until the inode is written",
    );
    costs
}
