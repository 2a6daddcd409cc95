//! A file system as plain as can be: names in a map, files as bytes in memory,
//! a hole as zeroes.

use crate::call::{Call, Outcome, data};
use diskperf_system::{Errno, OpenOptions, SeekOrigin};
use std::collections::BTreeMap;

/// Whose rules a reference follows, where they differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rules {
    #[default]
    Posix,
    /// Minix 1.5: no ftruncate, an fsync that is sync, directories that can be
    /// opened with O_CREAT and read, and that only the super-user unlinks.
    Minix,
    /// Xenix 1.0: the same, without rename.
    Xenix,
}

impl Rules {
    /// Whether the calls are those of the seventh edition, as Minix has them.
    fn of_seventh_edition(self) -> bool {
        self != Self::Posix
    }
}

#[derive(Default)]
pub(crate) struct Reference {
    rules: Rules,

    names: BTreeMap<String, Node>,
    /// By number; a file stays here when its last name has gone, for those who
    /// have it open.
    files: Vec<Vec<u8>>,
    descriptors: Vec<Option<Descriptor>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Node {
    Directory,
    File(usize),
}

struct Descriptor {
    node: Node,
    how: OpenOptions,
    offset: usize,
}

impl Reference {
    pub(crate) fn of(rules: Rules) -> Self {
        Self {
            rules,
            ..Self::default()
        }
    }

    /// Makes a call; `None` where its result is not laid down: on a descriptor
    /// that was never given out, and on the length and offsets of a directory.
    pub(crate) fn make(&mut self, call: &Call) -> Option<Result<Outcome, Errno>> {
        Some(match *call {
            Call::Open { name, how } => self.open(name, how),
            Call::Unlink { name } => self.unlink(name),
            Call::Mkdir { name } => self.mkdir(name),
            Call::Rmdir { name } => self.rmdir(name),
            Call::Rename { .. } if self.rules == Rules::Xenix => Err(Errno::Invalid),
            Call::Rename { from, to } => self.rename(from, to),
            Call::Fchown { file } | Call::Fchmod { file } if self.rules.of_seventh_edition() => {
                self.descriptors.get(file)?;
                Err(Errno::Invalid)
            }
            Call::Chown { name } | Call::Chmod { name } | Call::Utimes { name } => {
                let node = self.lookup(name);
                node.and_then(|node| node.map(|_| Outcome::Done).ok_or(Errno::NoEntry))
            }
            Call::Read { file, .. }
            | Call::Write { file, .. }
            | Call::Lseek { file, .. }
            | Call::Length { file }
            | Call::Ftruncate { file, .. }
            | Call::Fsync { file }
            | Call::Fchown { file }
            | Call::Fchmod { file }
            | Call::Close { file } => {
                let slot = self.descriptors.get_mut(file)?;
                match slot {
                    _ if self.rules.of_seventh_edition()
                        && matches!(call, Call::Ftruncate { .. }) =>
                    {
                        Err(Errno::Invalid)
                    }
                    _ if self.rules.of_seventh_edition() && matches!(call, Call::Fsync { .. }) => {
                        Ok(Outcome::Done)
                    }
                    None => Err(Errno::BadFile),
                    Some(_) if matches!(call, Call::Close { .. }) => {
                        *slot = None;
                        Ok(Outcome::Done)
                    }
                    Some(descriptor) => match descriptor.node {
                        Node::File(number) => on_file(descriptor, &mut self.files[number], call),
                        Node::Directory if self.rules.of_seventh_edition() => {
                            matches!(call, Call::Write { .. }).then_some(Err(Errno::BadFile))?
                        }
                        Node::Directory => on_directory(call)?,
                    },
                }
            }
        })
    }

    /// The bytes of the file of this name, as who opens it for reading sees
    /// them.
    ///
    /// None where that is not laid down: of a directory that can be read.
    pub(crate) fn file(&self, name: &str) -> Option<Result<Vec<u8>, Errno>> {
        Some(match self.lookup(name) {
            Err(errno) => Err(errno),
            Ok(Some(Node::File(number))) => Ok(self.files[number].clone()),
            Ok(Some(Node::Directory)) if self.rules.of_seventh_edition() => return None,
            Ok(Some(Node::Directory)) => Err(Errno::IsDirectory),
            Ok(None) => Err(Errno::NoEntry),
        })
    }

    /// What has this name; `Err` where its directory is none.
    fn lookup(&self, name: &str) -> Result<Option<Node>, Errno> {
        if let Some((parent, _)) = name.rsplit_once('/') {
            match self.names.get(parent) {
                Some(Node::Directory) => {}
                Some(Node::File(_)) => return Err(Errno::NotDirectory),
                None => return Err(Errno::NoEntry),
            }
        }
        Ok(self.names.get(name).copied())
    }

    fn is_empty(&self, directory: &str) -> bool {
        !self.names.keys().any(|name| is_below(name, directory))
    }

    fn open(&mut self, name: &str, how: OpenOptions) -> Result<Outcome, Errno> {
        let node = match self.lookup(name)? {
            Some(_) if how.create && how.create_exclusive => return Err(Errno::Exists),
            Some(Node::Directory) if how.write => return Err(Errno::IsDirectory),
            Some(Node::Directory) if how.create && self.rules == Rules::Posix => {
                return Err(Errno::IsDirectory);
            }
            Some(Node::File(number)) => {
                if how.truncate {
                    self.files[number].clear();
                }
                Node::File(number)
            }
            Some(Node::Directory) => Node::Directory,
            None if !how.create => return Err(Errno::NoEntry),
            None => {
                self.files.push(Vec::new());
                let node = Node::File(self.files.len() - 1);
                self.names.insert(name.to_owned(), node);
                node
            }
        };
        let free = self
            .descriptors
            .iter()
            .position(Option::is_none)
            .unwrap_or_else(|| {
                self.descriptors.push(None);
                self.descriptors.len() - 1
            });
        self.descriptors[free] = Some(Descriptor {
            node,
            how,
            offset: 0,
        });
        Ok(Outcome::Opened(free))
    }

    fn unlink(&mut self, name: &str) -> Result<Outcome, Errno> {
        match self.lookup(name)? {
            None => Err(Errno::NoEntry),
            Some(Node::Directory) if self.rules.of_seventh_edition() => Err(Errno::NotPermitted),
            Some(Node::Directory) => Err(Errno::IsDirectory),
            Some(Node::File(_)) => {
                self.names.remove(name);
                Ok(Outcome::Done)
            }
        }
    }

    fn mkdir(&mut self, name: &str) -> Result<Outcome, Errno> {
        if self.lookup(name)?.is_some() {
            return Err(Errno::Exists);
        }
        self.names.insert(name.to_owned(), Node::Directory);
        Ok(Outcome::Done)
    }

    fn rmdir(&mut self, name: &str) -> Result<Outcome, Errno> {
        match self.lookup(name)? {
            None => Err(Errno::NoEntry),
            Some(Node::File(_)) => Err(Errno::NotDirectory),
            Some(Node::Directory) if !self.is_empty(name) => Err(Errno::NotEmpty),
            Some(Node::Directory) => {
                self.names.remove(name);
                Ok(Outcome::Done)
            }
        }
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<Outcome, Errno> {
        // Both directories are looked up before either name.
        let (source, replaced) = (self.lookup(from)?, self.lookup(to)?);
        let source = source.ok_or(Errno::NoEntry)?;
        if is_below(to, from) {
            return Err(Errno::Invalid);
        }
        let file = matches!(source, Node::File(_));
        if is_below(from, to) && !(file && self.rules.of_seventh_edition()) {
            return Err(Errno::NotEmpty);
        }
        match (source, replaced) {
            (Node::Directory, Some(Node::File(_))) => return Err(Errno::NotDirectory),
            (Node::File(_), Some(Node::Directory)) => return Err(Errno::IsDirectory),
            (Node::Directory, Some(Node::Directory)) if from != to && !self.is_empty(to) => {
                return Err(Errno::NotEmpty);
            }
            _ => {}
        }
        let moved: Vec<String> = self
            .names
            .keys()
            .filter(|name| *name == from || is_below(name, from))
            .cloned()
            .collect();
        for name in moved {
            if let Some(node) = self.names.remove(&name) {
                self.names.insert(name.replacen(from, to, 1), node);
            }
        }
        Ok(Outcome::Done)
    }
}

fn is_below(name: &str, directory: &str) -> bool {
    name.strip_prefix(directory)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// A call on a descriptor of a file.
fn on_file(
    descriptor: &mut Descriptor,
    bytes: &mut Vec<u8>,
    call: &Call,
) -> Result<Outcome, Errno> {
    let Descriptor { how, offset, .. } = descriptor;
    match *call {
        Call::Read { .. } if !how.read => Err(Errno::BadFile),
        Call::Write { .. } if !how.write => Err(Errno::BadFile),
        Call::Ftruncate { .. } if !how.write => Err(Errno::Invalid),
        Call::Read { length, .. } => {
            let start = bytes.len().min(*offset);
            let piece = &bytes[start..bytes.len().min(start + length)];
            *offset += piece.len();
            Ok(Outcome::Bytes(piece.to_vec()))
        }
        Call::Write { length, first, .. } => {
            if length > 0 {
                let end = *offset + length;
                bytes.resize(bytes.len().max(end), 0);
                bytes[*offset..end].copy_from_slice(&data(length, first));
                *offset = end;
            }
            Ok(Outcome::Number(length as u64))
        }
        Call::Lseek {
            offset: by, whence, ..
        } => {
            let base = match whence {
                SeekOrigin::FileStart => 0,
                SeekOrigin::CurrentPosition => *offset,
                SeekOrigin::FileEnd => bytes.len(),
            };
            *offset = base.checked_add_signed(by as isize).ok_or(Errno::Invalid)?;
            Ok(Outcome::Number(*offset as u64))
        }
        Call::Length { .. } => Ok(Outcome::Number(bytes.len() as u64)),
        Call::Ftruncate { length, .. } => {
            bytes.resize(length as usize, 0);
            Ok(Outcome::Done)
        }
        Call::Fsync { .. } | Call::Fchown { .. } | Call::Fchmod { .. } => Ok(Outcome::Done),
        _ => unreachable!("{call:?} is not a call on an open file"),
    }
}

/// A call on a descriptor of a directory, which is open for reading.
fn on_directory(call: &Call) -> Option<Result<Outcome, Errno>> {
    match call {
        Call::Read { .. } => Some(Err(Errno::IsDirectory)),
        Call::Write { .. } => Some(Err(Errno::BadFile)),
        Call::Ftruncate { .. } => Some(Err(Errno::Invalid)),
        Call::Fsync { .. } | Call::Fchown { .. } | Call::Fchmod { .. } => Some(Ok(Outcome::Done)),
        _ => None,
    }
}
