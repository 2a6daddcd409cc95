//! A mounted file system with names and descriptors: system calls in, steps out.

mod names;

use std::collections::BTreeMap;

use thiserror::Error;

use crate::block::{DeviceLimits, FileId};
use crate::effect::{CallContext, Effects};
use crate::ext4::{Ext4, Ext4Options};
use crate::file_system::{FileKind, FileName, FileSystem, FileSystemError};
use crate::operation::{ByteRange, FallocateMode, FileAdvice, FileOperation, OpenOptions};
use crate::read_ahead::ReadAhead;
use crate::validation::{
    check_direct, check_end, check_setup, check_sleep, file_bytes_max, refused,
};
use crate::version::{Host, KernelVersion};
use crate::xfs::{Xfs, XfsOptions};

/// Root directory of each file system.
pub const ROOT: FileId = FileId(0);

/// Reason why a stack cannot run an operation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StackError {
    /// The operation names a descriptor that is not open.
    #[error("descriptor {0} is not open: open it first")]
    UnknownDescriptor(String),
    /// The operation names a file that does not exist.
    #[error("no file {0}: create it first, or open it with `creat`")]
    UnknownFile(String),
    /// The kernel refuses the operation.
    #[error("{operation} of {thing}: {errno}: {remedy}")]
    Refused {
        /// System call, or the program that makes or mounts the file system.
        operation: &'static str,
        /// File, descriptor or option that it names.
        thing: String,
        /// Name of the error number.
        errno: &'static str,
        /// Remedy for the user.
        remedy: &'static str,
    },
    /// The file system cannot serve the operation.
    #[error(transparent)]
    FileSystem(#[from] FileSystemError),
}

/// Options of the file system that a stack has.
#[derive(Clone, Copy, Debug)]
pub enum FileSystemOptions {
    /// ext4 with these options.
    Ext4(Ext4Options),
    /// XFS with these options.
    Xfs(XfsOptions),
}

/// File as names and descriptors see it.
#[derive(Clone, Debug)]
struct FileRecord {
    label: String,
    kind: FileKind,
    links: u32,
    descriptors: u32,
    writers: u32,
}

/// Open descriptor of a file.
#[derive(Clone, Debug)]
struct Descriptor {
    file: FileId,
    options: OpenOptions,
    read_ahead: ReadAhead,
}

/// Mounted file system on a device, with names, descriptors and a clock.
#[derive(Debug)]
pub struct Stack {
    host: Host,
    limits: DeviceLimits,
    file_system: FileSystem,
    file_bytes_max: u64,
    now_ns: u64,
    files: Vec<FileRecord>,
    names: BTreeMap<FileName, FileId>,
    descriptors: BTreeMap<String, Descriptor>,
    /// Files that were created under each path.
    created: BTreeMap<String, u32>,
}

impl Stack {
    /// Makes a fresh file system on a device and mounts it.
    ///
    /// # Errors
    /// If the machine, the device or the options cannot be, or no file system of that size is
    /// modelled.
    pub fn new(
        host: Host,
        limits: DeviceLimits,
        options: FileSystemOptions,
    ) -> Result<Self, StackError> {
        check_setup(&host, &limits, &options)?;
        let file_bytes_max = file_bytes_max(&limits, &options);
        let file_system = match options {
            FileSystemOptions::Ext4(options) => {
                FileSystem::Ext4(Box::new(Ext4::new(&host, &limits, options)?))
            }
            FileSystemOptions::Xfs(options) => {
                FileSystem::Xfs(Box::new(Xfs::new(&host, &limits, options)?))
            }
        };
        let root = FileRecord {
            label: ".".to_owned(),
            kind: FileKind::Directory,
            links: 1,
            descriptors: 0,
            writers: 0,
        };
        Ok(Self {
            host,
            limits,
            file_system,
            file_bytes_max,
            now_ns: 0,
            files: vec![root],
            names: BTreeMap::new(),
            descriptors: BTreeMap::new(),
            created: BTreeMap::new(),
        })
    }

    /// Limits of the device.
    #[must_use]
    pub fn limits(&self) -> &DeviceLimits {
        &self.limits
    }

    /// Time since the mount.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Returns the name under which a file was created, `#2` and so on behind it if it was not the
    /// first of that name.
    #[must_use]
    pub fn label(&self, file: FileId) -> &str {
        &self.files[file.0 as usize].label
    }

    /// Runs one operation at the present time.
    ///
    /// # Errors
    /// If it names what does not exist, or the file system does not serve it.
    pub fn run(&mut self, operation: &FileOperation) -> Result<Effects, StackError> {
        let mut effects = Effects::default();
        self.dispatch(operation, &mut effects)?;
        Ok(effects)
    }

    /// Lets time pass, and runs what becomes due.
    ///
    /// # Errors
    /// If the file system cannot serve what is due.
    pub fn sleep(&mut self, duration_ns: u64) -> Result<Effects, StackError> {
        let mut effects = Effects::default();
        self.advance(duration_ns, &mut effects)?;
        Ok(effects)
    }

    /// Closes all descriptors.
    ///
    /// # Errors
    /// If the file system cannot serve it.
    pub fn close_all(&mut self) -> Result<Effects, StackError> {
        let mut effects = Effects::default();
        let open: Vec<String> = self.descriptors.keys().cloned().collect();
        for descriptor in open {
            self.close(&descriptor, &mut effects)?;
        }
        Ok(effects)
    }

    /// Closes all descriptors and unmounts.
    ///
    /// # Errors
    /// If the file system cannot serve it.
    pub fn unmount(&mut self) -> Result<Effects, StackError> {
        let mut effects = self.close_all()?;
        self.call(&mut effects, |calls, context| calls.unmount(context))?;
        Ok(effects)
    }

    fn call<T>(
        &mut self,
        effects: &mut Effects,
        call: impl FnOnce(
            &mut dyn crate::file_system::FileSystemCalls,
            &mut CallContext<'_>,
        ) -> Result<T, FileSystemError>,
    ) -> Result<T, StackError> {
        let mut context = CallContext {
            host: &self.host,
            now_ns: self.now_ns,
            effects,
        };
        Ok(call(self.file_system.calls(), &mut context)?)
    }

    fn advance(&mut self, duration_ns: u64, effects: &mut Effects) -> Result<(), StackError> {
        check_sleep(duration_ns)?;
        let end = self.now_ns.saturating_add(duration_ns);
        while let Some(due) = self
            .file_system
            .calls()
            .next_timer_ns()
            .filter(|due| *due <= end)
        {
            self.now_ns = self.now_ns.max(due);
            self.call(effects, |calls, context| calls.advance(context))?;
        }
        self.now_ns = end;
        Ok(())
    }

    fn dispatch(
        &mut self,
        operation: &FileOperation,
        effects: &mut Effects,
    ) -> Result<(), StackError> {
        match operation {
            FileOperation::Open {
                descriptor,
                path,
                options,
            } => self.open(descriptor, path, *options, effects),
            FileOperation::Close { descriptor } => self.close(descriptor, effects),
            FileOperation::Write { descriptor, range } => self.write(descriptor, *range, effects),
            FileOperation::Read { descriptor, range } => self.read(descriptor, *range, effects),
            FileOperation::Sync {
                descriptor,
                data_only,
            } => {
                let file = self.descriptor(descriptor)?.file;
                self.call(effects, |calls, context| {
                    calls.sync(context, file, ByteRange::ALL, *data_only)
                })
            }
            FileOperation::SyncDirectory { path } => {
                let directory = self.directory(path)?;
                self.call(effects, |calls, context| {
                    calls.sync_directory(context, directory)
                })
            }
            FileOperation::SyncFileSystem => {
                self.call(effects, |calls, context| calls.sync_all(context))
            }
            FileOperation::Rename { from, to } => self.rename(from, to, effects),
            FileOperation::Unlink { path } => self.unlink(path, effects),
            FileOperation::MakeDirectory { path } => self.make_directory(path, effects),
            FileOperation::Fallocate {
                descriptor,
                mode,
                range,
            } => self.fallocate(descriptor, *mode, *range, effects),
            FileOperation::Truncate { descriptor, size } => {
                let range = ByteRange {
                    offset: *size,
                    length: 0,
                };
                let file = self.writer("ftruncate", descriptor, range)?.file;
                self.call(effects, |calls, context| {
                    calls.truncate(context, file, *size)
                })
            }
            FileOperation::SyncRange {
                descriptor,
                range,
                flags,
            } => {
                let file = self.descriptor(descriptor)?.file;
                check_end("sync_file_range", descriptor, *range, i64::MAX as u64)?;
                let range = to_end(*range);
                self.call(effects, |calls, context| {
                    calls.sync_range(context, file, range, *flags)
                })
            }
            FileOperation::Advise {
                descriptor,
                advice,
                range,
            } => self.advise(descriptor, *advice, to_end(*range), effects),
            FileOperation::Trim => self.call(effects, |calls, context| calls.trim(context)),
            FileOperation::Sleep { duration_ns } => self.advance(*duration_ns, effects),
        }
    }

    fn descriptor(&self, name: &str) -> Result<&Descriptor, StackError> {
        self.descriptors
            .get(name)
            .ok_or_else(|| StackError::UnknownDescriptor(name.to_owned()))
    }

    /// Descriptor that may write a range.
    fn writer(
        &self,
        operation: &'static str,
        name: &str,
        range: ByteRange,
    ) -> Result<&Descriptor, StackError> {
        let descriptor = self.descriptor(name)?;
        if descriptor.options.read_only {
            let thing = format!("descriptor {name}");
            return Err(refused(
                operation,
                thing,
                "EBADF",
                "open it without `rdonly`",
            ));
        }
        check_end(operation, name, range, self.file_bytes_max)?;
        Ok(descriptor)
    }

    fn record(&mut self, file: FileId) -> &mut FileRecord {
        &mut self.files[file.0 as usize]
    }

    fn open(
        &mut self,
        descriptor: &str,
        path: &str,
        options: OpenOptions,
        effects: &mut Effects,
    ) -> Result<(), StackError> {
        if self.descriptors.contains_key(descriptor) {
            let thing = format!("descriptor {descriptor}");
            return Err(refused("open", thing, "EBUSY", "close it first"));
        }
        let (file, is_new) = match self.existing(path) {
            Ok(file) if self.is_directory(file) => {
                let remedy = "open a file; fsyncdir syncs a directory by its path";
                return Err(refused("open", path, "EISDIR", remedy));
            }
            Ok(file) => (file, false),
            Err(StackError::UnknownFile(_)) if options.create => {
                (self.create(path, FileKind::Regular, effects)?, true)
            }
            Err(error) => return Err(error),
        };
        let is_writer = !options.read_only;
        let record = self.record(file);
        record.descriptors += 1;
        record.writers += u32::from(is_writer);
        self.call(effects, |calls, context| {
            calls.open(context, file, is_writer);
            if options.truncate && !is_new {
                calls.truncate(context, file, 0)
            } else {
                Ok(())
            }
        })?;
        let read_ahead = ReadAhead::new(
            self.limits.read_ahead_kib,
            self.limits.max_sectors_kib,
            self.host.version.cuts_read_ahead(),
        )
        .with_continued_windows(self.host.version < KernelVersion::V6_12);
        self.descriptors.insert(
            descriptor.to_owned(),
            Descriptor {
                file,
                options,
                read_ahead,
            },
        );
        Ok(())
    }

    fn close(&mut self, name: &str, effects: &mut Effects) -> Result<(), StackError> {
        let Descriptor { file, options, .. } = self
            .descriptors
            .remove(name)
            .ok_or_else(|| StackError::UnknownDescriptor(name.to_owned()))?;
        let was_writer = !options.read_only;
        let record = self.record(file);
        record.descriptors -= 1;
        record.writers -= u32::from(was_writer);
        let (writers, is_gone) = (record.writers, record.links == 0 && record.descriptors == 0);
        self.call(effects, |calls, context| {
            calls.close(context, file, was_writer, writers)?;
            if is_gone {
                calls.evict(context, file)
            } else {
                Ok(())
            }
        })
    }

    fn write(
        &mut self,
        descriptor: &str,
        range: ByteRange,
        effects: &mut Effects,
    ) -> Result<(), StackError> {
        let Descriptor { file, options, .. } = *self.writer("pwrite", descriptor, range)?;
        if options.direct {
            check_direct("pwrite", descriptor, range)?;
        }
        if range.length == 0 {
            return Ok(());
        }
        let is_sync = self.file_system.calls().is_sync() || options.sync || options.data_sync;
        self.call(effects, |calls, context| {
            let is_durable = if options.direct {
                calls.write_direct(context, file, range, is_sync)?
            } else {
                calls.write(context, file, range)?;
                false
            };
            if is_sync && !is_durable {
                calls.sync(context, file, range, !options.sync)?;
            }
            Ok(())
        })
    }

    fn read(
        &mut self,
        descriptor: &str,
        range: ByteRange,
        effects: &mut Effects,
    ) -> Result<(), StackError> {
        let Descriptor {
            file,
            options,
            mut read_ahead,
        } = self.descriptor(descriptor)?.clone();
        check_end("pread", descriptor, range, i64::MAX as u64)?;
        if options.direct {
            check_direct("pread", descriptor, range)?;
        }
        if range.length == 0 {
            return Ok(());
        }
        self.call(effects, |calls, context| {
            if options.direct {
                calls.read_direct(context, file, range)
            } else {
                calls.read(context, file, range, &mut read_ahead)
            }
        })?;
        let open = self
            .descriptors
            .get_mut(descriptor)
            .expect("it was open above");
        open.read_ahead = read_ahead;
        Ok(())
    }

    fn advise(
        &mut self,
        name: &str,
        advice: FileAdvice,
        range: ByteRange,
        effects: &mut Effects,
    ) -> Result<(), StackError> {
        let open = self
            .descriptors
            .get_mut(name)
            .ok_or_else(|| StackError::UnknownDescriptor(name.to_owned()))?;
        open.read_ahead.advise(advice);
        let (file, read_ahead) = (open.file, open.read_ahead.clone());
        self.call(effects, |calls, context| match advice {
            FileAdvice::DontNeed => calls.drop_pages(context, file, range),
            FileAdvice::WillNeed => calls.prefetch(context, file, range, &read_ahead),
            FileAdvice::Normal | FileAdvice::Sequential | FileAdvice::Random => Ok(()),
        })
    }

    fn fallocate(
        &mut self,
        descriptor: &str,
        mode: FallocateMode,
        range: ByteRange,
        effects: &mut Effects,
    ) -> Result<(), StackError> {
        let Descriptor { file, options, .. } = *self.writer("fallocate", descriptor, range)?;
        if range.length == 0 {
            let thing = format!("descriptor {descriptor}");
            return Err(refused(
                "fallocate",
                thing,
                "EINVAL",
                "use a length above 0",
            ));
        }
        let is_sync = options.sync || options.data_sync;
        self.call(effects, |calls, context| {
            calls.fallocate(context, file, mode, range, is_sync)
        })
    }
}

/// Replaces a length of 0 by one that reaches to the end of the file.
fn to_end(range: ByteRange) -> ByteRange {
    if range.length == 0 {
        ByteRange {
            length: u64::MAX,
            ..range
        }
    } else {
        range
    }
}
