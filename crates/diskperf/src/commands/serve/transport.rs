//! Transports of a served drive: the choice of the user, and its start and end.

use super::serve_error;
use crate::arguments::ServeArguments;
use crate::output::print_message;
use diskperf_laboratory::LaboratoryError;
use diskperf_laboratory::clean::clean_before_serving;
use diskperf_laboratory::served_disk::ServedDisk;
use diskperf_serve::nbd::{Address, Server};
use diskperf_serve::{FuseFile, PrivateDirectory, Served};
use std::sync::Arc;

/// A started transport, with the directory of its own that it may have.
pub(super) struct Transport {
    kind: TransportKind,
    // After what is in it.
    _directory: Option<PrivateDirectory>,
}

enum TransportKind {
    Nbd(Server),
    Fuse(FuseFile),
    Disk(ServedDisk),
}

impl Transport {
    /// Starts the transport that the arguments choose.
    ///
    /// # Errors
    ///
    /// A path or port that is taken, or a system without FUSE or loop devices.
    pub(super) fn start(
        arguments: &ServeArguments,
        served: &Arc<Served>,
    ) -> Result<Self, LaboratoryError> {
        if arguments.device || arguments.fuse.is_some() {
            clean_dead_files();
        }
        let is_named = arguments.socket.is_some() || arguments.tcp.is_some();
        let directory = match is_named || arguments.fuse.is_some() {
            true => None,
            false => Some(PrivateDirectory::create().map_err(serve_error)?),
        };
        let kind = match (&directory, &arguments.fuse) {
            (Some(directory), _) if arguments.device => {
                TransportKind::Disk(ServedDisk::attach(served, &directory.drive_file())?)
            }
            (_, Some(path)) => {
                let mounted = FuseFile::mount(Arc::clone(served), path);
                TransportKind::Fuse(mounted.map_err(serve_error)?)
            }
            (directory, None) => {
                let address = nbd_address(arguments, directory.as_ref());
                let server = Server::start(Arc::clone(served), &address);
                TransportKind::Nbd(server.map_err(serve_error)?)
            }
        };
        Ok(Self {
            kind,
            _directory: directory,
        })
    }

    /// Returns the address that users give to clients.
    pub(super) fn address(&self) -> String {
        match &self.kind {
            TransportKind::Nbd(server) => server.uri().to_owned(),
            TransportKind::Fuse(file) => file.path().display().to_string(),
            TransportKind::Disk(disk) => disk.path().display().to_string(),
        }
    }

    /// Describes how the served drive is used.
    pub(super) fn describe_use(&self) -> String {
        let address = self.address();
        match self.kind {
            TransportKind::Nbd(_) => {
                format!("`nbdinfo '{address}'`, `qemu-img info '{address}'` or fio's ioengine=nbd")
            }
            TransportKind::Fuse(_) => format!(
                "a file of this size, as `fio --filename={address} --direct=1 ...` or an image of a guest"
            ),
            TransportKind::Disk(_) => format!(
                "a disk: `mkfs.ext4 {address}`, `mount {address} DIR`, `fio --filename={address} --direct=1 ...`"
            ),
        }
    }

    /// Ends serving.
    ///
    /// # Errors
    ///
    /// A file or device that something still uses.
    pub(super) fn end(&mut self) -> Result<(), LaboratoryError> {
        match &mut self.kind {
            TransportKind::Nbd(server) => {
                server.end();
                Ok(())
            }
            TransportKind::Fuse(file) => file.end().map_err(serve_error),
            TransportKind::Disk(disk) => disk.end(),
        }
    }
}

/// Returns where an NBD server listens: where the user says, or in its own directory.
fn nbd_address(arguments: &ServeArguments, directory: Option<&PrivateDirectory>) -> Address {
    match (&arguments.socket, arguments.tcp, directory) {
        (Some(path), ..) => Address::Unix(path.clone()),
        (None, Some(at), _) => Address::Tcp(at),
        (None, None, directory) => {
            let directory = directory.expect("a server without an address has a directory");
            Address::Unix(directory.socket())
        }
    }
}

/// Removes the files of killed servers, whose names may be those of new ones.
fn clean_dead_files() {
    let cleaned = clean_before_serving();
    let removed = cleaned.removed.iter().map(|left| {
        let done = left.describe(false);
        format!("{done}, which a killed server left")
    });
    for text in removed.chain(cleaned.notes).chain(cleaned.failures) {
        print_message(&text);
    }
}
