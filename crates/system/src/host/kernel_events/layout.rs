//! Types of the running kernel and its modules, as BTF describes them.

use super::KernelEventsError;
use super::programs::RING_REQUEST;
use diskperf_bpf::{Btf, BtfError, Member, Prototype};
use std::path::Path;
use std::sync::Arc;

const BTF_FOLDER: &str = "/sys/kernel/btf";
/// Modules whose tracepoints or types are recorded.
const MODULES: [&str; 4] = ["jbd2", "ext4", "xfs", "io_uring"];

/// Types of the running kernel and of its modules.
#[derive(Debug)]
pub(super) struct KernelTypes {
    /// Kernel first, then those modules that are loaded and described.
    descriptions: Vec<Arc<Btf>>,
}

/// Tracepoint of the running kernel.
pub(super) struct Tracepoint<'a> {
    btf: &'a Btf,
    prototype: Prototype,
}

impl KernelTypes {
    /// Reads the descriptions of the running kernel.
    pub(super) fn read() -> Result<Self, KernelEventsError> {
        let kernel = std::fs::read(Path::new(BTF_FOLDER).join("vmlinux"));
        let kernel = Arc::new(Btf::parse(kernel.map_err(KernelEventsError::NoTypes)?)?);
        let mut descriptions = vec![Arc::clone(&kernel)];
        for module in MODULES {
            // One that is not loaded, or built in, has no file. Of one that describes itself in an
            // unknown way the tracepoints are missing, which the recorder tells.
            if let Ok(bytes) = std::fs::read(Path::new(BTF_FOLDER).join(module))
                && let Ok(description) = Btf::parse_module(bytes, Arc::clone(&kernel))
            {
                descriptions.push(Arc::new(description));
            }
        }
        Ok(Self { descriptions })
    }

    /// Finds a value in the first description that has it; the error is of the kernel itself.
    fn find<'a, T>(&'a self, look: impl Fn(&'a Btf) -> Result<T, BtfError>) -> Result<T, BtfError> {
        let kernel = look(&self.descriptions[0]);
        kernel.or_else(|error| {
            let modules = self.descriptions[1..].iter();
            modules
                .into_iter()
                .find_map(|one| look(one).ok())
                .ok_or(error)
        })
    }

    pub(super) fn find_member(&self, type_name: &str, path: &str) -> Result<Member, BtfError> {
        self.find(|btf| btf.find_member(type_name, path))
    }

    pub(super) fn find_tracepoint(&self, name: &str) -> Result<Tracepoint<'_>, BtfError> {
        self.find(|btf| {
            Ok(Tracepoint {
                prototype: btf.find_tracepoint(name)?,
                btf,
            })
        })
    }

    /// Returns a flag whose bit number is a constant of an enumeration.
    pub(super) fn find_flag(&self, enumeration: &str, constant: &str) -> Result<u32, BtfError> {
        let bit = self.descriptions[0].find_enumerator(enumeration, constant)?;
        Ok(1_u32.checked_shl(bit).unwrap_or(0))
    }
}

impl Tracepoint<'_> {
    /// Finds the first argument of one of these types in C, such as `struct bio *`.
    pub(super) fn find_argument(&self, types_in_c: &[&str]) -> Result<usize, BtfError> {
        let find = |name: &&str| self.prototype.find_argument(self.btf, name);
        let (first, others) = types_in_c.split_first().expect("a type");
        find(first).or_else(|error| {
            let mut found = others.iter().filter_map(|name| find(name).ok());
            found.next().ok_or(error)
        })
    }

    /// Finds the request of io_uring. Some kernels leave its type open, behind a context whose type
    /// is open too.
    pub(super) fn find_ring_request(&self) -> Result<usize, BtfError> {
        self.find_argument(&[RING_REQUEST])
            .or_else(|_| self.prototype.find_last_argument(self.btf, "void *"))
    }

    /// Finds the second argument of a type in C.
    pub(super) fn find_second_argument(&self, type_in_c: &str) -> Result<usize, BtfError> {
        self.prototype
            .find_repeated_argument(self.btf, type_in_c, 1)
    }
}

/// Bits of a bio's and a request's flags on the running kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FlagBits {
    pub(super) preflush: u32,
    pub(super) fua: u32,
    pub(super) sync: u32,
    pub(super) metadata: u32,
    pub(super) read_ahead: u32,
    pub(super) flush_sequence: u32,
}

/// `RQF_FLUSH_SEQ` before Linux 6.11, which made an enumeration of the flags.
const FLUSH_SEQUENCE_BIT: u32 = 1 << 4;

impl FlagBits {
    pub(super) fn find(types: &KernelTypes) -> Result<Self, BtfError> {
        let request = |constant| types.find_flag("req_flag_bits", constant);
        Ok(Self {
            preflush: request("__REQ_PREFLUSH")?,
            fua: request("__REQ_FUA")?,
            sync: request("__REQ_SYNC")?,
            metadata: request("__REQ_META")?,
            read_ahead: request("__REQ_RAHEAD")?,
            flush_sequence: types
                .find_flag("rqf_flags", "__RQF_FLUSH_SEQ")
                .unwrap_or(FLUSH_SEQUENCE_BIT),
        })
    }
}
