//! The system call bpf(2): maps, programs and their attachment to tracepoints (the kernel's
//! include/uapi/linux/bpf.h).
//!
//! All that is made here is a file descriptor of this process. Its end, by whatever means, detaches
//! and unloads everything.

mod ring;

pub(crate) use ring::{RingBufferReader, RingState};

use diskperf_bpf::Instruction;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// First argument of bpf(2), which says what the attributes are for.
#[derive(Clone, Copy, Debug)]
enum BpfCommand {
    MapCreate = 0,
    MapLookupElem = 1,
    ProgLoad = 5,
    #[cfg(test)]
    ProgTestRun = 10,
    #[cfg(test)]
    ProgGetFdById = 13,
    ObjGetInfoByFd = 15,
    RawTracepointOpen = 17,
}

/// Kind of a map, by its number in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapKind {
    /// One value for each processor and key.
    PerCpuArray = 6,
    /// Ring of records, which user space maps.
    RingBuffer = 27,
}

/// Sizes of a map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MapShape {
    pub(crate) key_bytes: u32,
    pub(crate) value_bytes: u32,
    /// Maximum number of entries, or size of a ring in bytes.
    pub(crate) entries_max: u32,
}

/// Length of the attributes that this module passes; longer than any command here reads, and filled
/// with zeros.
const ATTRIBUTE_BYTES: usize = 144;
const PROGRAM_TYPE_RAW_TRACEPOINT: u32 = 17;
/// Licence of the programs. Reads of kernel memory need one that is compatible with the GPL.
const LICENCE: &std::ffi::CStr = c"Dual MIT/GPL";
const LOG_BYTES: usize = 1 << 20;
/// Number of processors that no kernel exceeds (`NR_CPUS`).
const CPUS_MAX: usize = 8192;

/// Attributes of a command: fields at the offsets of the kernel's `union bpf_attr`.
struct Attributes([u64; ATTRIBUTE_BYTES / 8]);

impl Attributes {
    fn new() -> Self {
        Self([0; ATTRIBUTE_BYTES / 8])
    }

    fn set_u32(mut self, offset: usize, value: u32) -> Self {
        self.0[offset / 8] |= u64::from(value) << (8 * (offset % 8));
        self
    }

    fn set_u64(mut self, offset: usize, value: u64) -> Self {
        self.0[offset / 8] = value;
        self
    }

    fn u32_at(&self, offset: usize) -> u32 {
        (self.0[offset / 8] >> (8 * (offset % 8))) as u32
    }
}

/// Calls bpf(2).
///
/// # Safety
///
/// Each address among the attributes must be that of memory as long as the command reads or writes
/// there, until the call returns.
#[allow(unsafe_code)]
unsafe fn call_bpf(command: BpfCommand, attributes: &mut Attributes) -> io::Result<i32> {
    // SAFETY: the attributes are as long as is claimed, and the caller vouches for addresses in
    // them.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as libc::c_long,
            attributes.0.as_mut_ptr(),
            ATTRIBUTE_BYTES as libc::c_long,
        )
    };
    match result {
        0.. => Ok(result as i32),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Calls bpf(2) for a command that makes a descriptor.
///
/// # Safety
///
/// As [`call_bpf`].
#[allow(unsafe_code)]
unsafe fn open_bpf(command: BpfCommand, attributes: &mut Attributes) -> io::Result<OwnedFd> {
    // SAFETY: the caller vouches for the addresses. The descriptor is new and nobody else's.
    unsafe { call_bpf(command, attributes).map(|descriptor| OwnedFd::from_raw_fd(descriptor)) }
}

fn address<T: ?Sized>(memory: &T) -> u64 {
    std::ptr::from_ref(memory).cast::<u8>().expose_provenance() as u64
}

fn address_mut<T: ?Sized>(memory: &mut T) -> u64 {
    std::ptr::from_mut(memory).cast::<u8>().expose_provenance() as u64
}

/// Map of the kernel, which programs and this process share.
#[derive(Debug)]
pub(crate) struct BpfMap {
    descriptor: OwnedFd,
    map_kind: MapKind,
    map_shape: MapShape,
}

impl BpfMap {
    /// Creates a map.
    ///
    /// # Errors
    ///
    /// EPERM without the rights, EINVAL or ENOSYS where the kernel has no such map.
    #[allow(unsafe_code)]
    pub(crate) fn create(kind: MapKind, shape: MapShape) -> io::Result<Self> {
        let mut attributes = Attributes::new()
            .set_u32(0, kind as u32)
            .set_u32(4, shape.key_bytes)
            .set_u32(8, shape.value_bytes)
            .set_u32(12, shape.entries_max);
        // SAFETY: the attributes hold no address.
        let descriptor = unsafe { open_bpf(BpfCommand::MapCreate, &mut attributes)? };
        Ok(Self {
            descriptor,
            map_kind: kind,
            map_shape: shape,
        })
    }

    /// Returns another descriptor of the same map.
    ///
    /// # Errors
    ///
    /// The process has no descriptor left.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            descriptor: self.descriptor.try_clone()?,
            ..*self
        })
    }

    /// Returns the number by which instructions refer to the map.
    pub(crate) fn raw_descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// Returns the sum of a counter of eight bytes over all processors.
    ///
    /// # Errors
    ///
    /// Errors of the kernel; none where the key is in the map.
    #[allow(unsafe_code)]
    pub(crate) fn sum_counter(&self, key: u32) -> io::Result<u64> {
        assert!(self.map_shape.key_bytes == 4 && self.map_shape.value_bytes == 8);
        assert_eq!(
            self.map_kind,
            MapKind::PerCpuArray,
            "a value for each processor"
        );
        let mut values = vec![0_u64; CPUS_MAX];
        let mut attributes = Attributes::new()
            .set_u32(0, self.descriptor.as_raw_fd() as u32)
            .set_u64(8, address(&key))
            .set_u64(16, address_mut(values.as_mut_slice()));
        // SAFETY: the kernel reads four bytes of the key and writes eight for each processor, of
        // which no kernel has as many as there is room for.
        unsafe { call_bpf(BpfCommand::MapLookupElem, &mut attributes)? };
        Ok(values.iter().sum())
    }
}

/// Reason why the kernel refused a program.
#[derive(Debug)]
pub(crate) struct RefusedProgram {
    pub(crate) source: io::Error,
    /// Last lines of what the kernel's verifier says about the program; empty if it was not asked.
    pub(crate) verifier_log: String,
}

/// Program in the kernel.
#[derive(Debug)]
pub(crate) struct BpfProgram {
    descriptor: OwnedFd,
}

impl BpfProgram {
    /// Loads a program for a raw tracepoint. The kernel explains itself only on a second attempt,
    /// since its log costs time.
    ///
    /// # Errors
    ///
    /// The kernel refuses the program.
    pub(crate) fn load(name: &str, instructions: &[Instruction]) -> Result<Self, RefusedProgram> {
        let code: Vec<u8> = instructions.iter().flat_map(|one| one.to_bytes()).collect();
        let mut no_log = [];
        match load_program(name, &code, &mut no_log) {
            Ok(descriptor) => Ok(Self { descriptor }),
            // Of rights and memory the verifier knows nothing.
            Err(source) if !is_verdict(&source) => Err(RefusedProgram {
                source,
                verifier_log: String::new(),
            }),
            Err(_) => {
                let mut log = vec![0; LOG_BYTES];
                let descriptor = load_program(name, &code, &mut log).map_err(|source| {
                    let end = log.iter().position(|byte| *byte == 0).unwrap_or(0);
                    RefusedProgram {
                        source,
                        verifier_log: last_lines(&String::from_utf8_lossy(&log[..end])),
                    }
                })?;
                Ok(Self { descriptor })
            }
        }
    }

    /// Attaches the program to a tracepoint until the returned descriptor is closed.
    ///
    /// # Errors
    ///
    /// ENOENT if this kernel does not have the tracepoint.
    #[allow(unsafe_code)]
    pub(crate) fn attach_to_tracepoint(&self, tracepoint: &str) -> io::Result<OwnedFd> {
        let name = CString::new(tracepoint).map_err(io::Error::other)?;
        let mut attributes = Attributes::new()
            .set_u64(0, address(name.as_c_str()))
            .set_u32(8, self.descriptor.as_raw_fd() as u32);
        // SAFETY: the kernel reads the name up to its zero.
        unsafe { open_bpf(BpfCommand::RawTracepointOpen, &mut attributes) }
    }

    /// Returns how often an event was lost because it interrupted the same program on its
    /// processor. Kernels before 5.12 do not count it.
    ///
    /// # Errors
    ///
    /// Errors of the kernel; none in general.
    pub(crate) fn recursion_misses(&self) -> io::Result<u64> {
        const MISSES_OFFSET: usize = 208;
        let (info, written) = self.info()?;
        Ok(if written >= MISSES_OFFSET + 8 {
            info[MISSES_OFFSET / 8]
        } else {
            0
        })
    }

    /// Returns the kernel's description of the program (`struct bpf_prog_info`), and the length of
    /// what the kernel wrote in bytes.
    #[allow(unsafe_code)]
    fn info(&self) -> io::Result<([u64; 32], usize)> {
        let mut info = [0_u64; 32];
        let mut attributes = Attributes::new()
            .set_u32(0, self.descriptor.as_raw_fd() as u32)
            .set_u32(4, size_of_val(&info) as u32)
            .set_u64(8, address_mut(&mut info));
        // SAFETY: the kernel writes no more than the length that it is told.
        unsafe { call_bpf(BpfCommand::ObjGetInfoByFd, &mut attributes)? };
        Ok((info, attributes.u32_at(4) as usize))
    }

    /// Returns the number of the program in the kernel.
    ///
    /// # Errors
    ///
    /// Errors of the kernel; none in general.
    #[cfg(test)]
    pub(crate) fn id(&self) -> io::Result<u32> {
        self.info().map(|(info, _)| (info[0] >> 32) as u32)
    }

    /// Runs the program on these arguments of a tracepoint, and returns its result.
    ///
    /// # Errors
    ///
    /// The kernel is older than 5.10, or refuses the arguments.
    #[cfg(test)]
    #[allow(unsafe_code)]
    pub(crate) fn run_once(&self, arguments: &[u64]) -> io::Result<u32> {
        let mut attributes = Attributes::new()
            .set_u32(0, self.descriptor.as_raw_fd() as u32)
            .set_u32(40, size_of_val(arguments) as u32)
            .set_u64(48, address(arguments));
        // SAFETY: the kernel reads as many bytes of the arguments as it is told.
        unsafe { call_bpf(BpfCommand::ProgTestRun, &mut attributes)? };
        Ok(attributes.u32_at(4))
    }
}

/// Reports whether the kernel has a program of this number.
#[cfg(test)]
#[allow(unsafe_code)]
pub(crate) fn find_program(id: u32) -> bool {
    let mut attributes = Attributes::new().set_u32(0, id);
    // SAFETY: the attributes hold no address.
    unsafe { open_bpf(BpfCommand::ProgGetFdById, &mut attributes) }.is_ok()
}

#[allow(unsafe_code)]
fn load_program(name: &str, code: &[u8], log: &mut [u8]) -> io::Result<OwnedFd> {
    let mut attributes = Attributes::new()
        .set_u32(0, PROGRAM_TYPE_RAW_TRACEPOINT)
        .set_u32(4, (code.len() / 8) as u32)
        .set_u64(8, address(code))
        .set_u64(16, address(LICENCE));
    if !log.is_empty() {
        attributes = attributes
            .set_u32(24, 1)
            .set_u32(28, log.len() as u32)
            .set_u64(32, address_mut(log));
    }
    // The kernel takes 15 letters, digits, underscores and periods, and a zero.
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'.';
    for (index, byte) in name.bytes().filter(allowed).take(15).enumerate() {
        let word = &mut attributes.0[(48 + index) / 8];
        *word |= u64::from(byte) << (8 * (index % 8));
    }
    // SAFETY: the kernel reads the instructions that it is told to be there and the licence up to
    // its zero, and writes no more of a log than there is room for.
    unsafe { open_bpf(BpfCommand::ProgLoad, &mut attributes) }
}

/// Returns whether the verifier may have caused an error: EACCES or EINVAL.
fn is_verdict(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EINVAL))
}

/// Number of the log's last lines that explain a refusal.
const LOG_LINES: usize = 6;

fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

/// Raises the limit of locked memory, which counts maps and programs up to Linux 5.10. Where that
/// is refused, the limit may suffice all the same.
pub(crate) fn raise_locked_memory_limit() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let unlimited = Rlimit {
        current: None,
        maximum: None,
    };
    let _ = setrlimit(Resource::Memlock, unlimited);
}

impl std::os::fd::AsFd for BpfMap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
pub(crate) mod tests;
