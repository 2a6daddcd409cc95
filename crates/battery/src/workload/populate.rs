//! The tree of a populated file system: made, recognised and removed.

use crate::blocks::{data, write_block};
use crate::parameter::{Field, Value};
use crate::program::ProgramError;
use crate::verify::calls::CallVerifier;
use crate::worker::{Medium, Worker};
use crate::workload::tree::{Kind, TOP, Tree, TreeFile};
use diskperf_system::{Buffer, Errno, Open, System, Written};
use diskperf_timeline::Nanoseconds;
use std::rc::Rc;

/// Files are written in calls of the block size of Zachariassen 1987's file systems.
pub(crate) const CALL_BYTES: u64 = 8192;

/// Which tree it is, where there is one.
const MADE: &str = "usr.made";

/// The seed of the bytes in the files of trees: the same for all, so that they
/// can be told wherever they are found.
const CONTENTS_SEED: u64 = 1987;

/// The seed of the tree, as every program has it that works on one.
pub(crate) fn seed_field(seed: &mut u64) -> Field<'_> {
    Field {
        name: "tree_seed",
        meaning: "the seed that the tree of directories and files is drawn from",
        value: Value::Count(seed, 0, u64::MAX),
    }
}

/// The tree that a worker's size and a seed stand for.
pub(crate) fn kind(worker: &Worker, seed: u64) -> Kind {
    Kind {
        content_bytes: worker.size_bytes,
        seed,
    }
}

/// The top of the tree.
pub(crate) fn top(worker: &Worker) -> String {
    worker.file(TOP)
}

/// The same, from the top of the file system on, without a slash at the start.
pub(crate) fn top_on_mount(worker: &Worker) -> String {
    format!("{}{TOP}", worker.folder)
}

/// The bytes of the files of a tree: a stretch of random bytes that repeats,
/// from another place on for each file.
pub(crate) struct Contents {
    data: Buffer,
    /// The same, if the system knows again what it was given before.
    kept: Option<Rc<[u8]>>,
}

impl Contents {
    pub(crate) fn new(system: &System) -> Self {
        let data = data(CALL_BYTES, CONTENTS_SEED);
        let kept = system.keeping(&data);
        Self { data, kept }
    }

    /// So many of a file's bytes, at most one call's worth, from an offset on that is a
    /// multiple of a call.
    fn call(&self, file: u64, offset_bytes: u64, bytes: u64) -> Written<'_> {
        let kept = self.kept.as_ref().map(Written::kept);
        let data = kept.unwrap_or_else(|| Written::from(&self.data[..]));
        let calls = data.len() as u64 / CALL_BYTES;
        let call = (file + offset_bytes / CALL_BYTES) % calls;
        let start = (call * CALL_BYTES) as usize;
        data.part(start..start + bytes as usize)
    }
}

/// Makes a tree, directory by directory. Where its files are verified, their contents are
/// those by which they are.
pub(crate) async fn make(
    system: &mut System,
    top: &str,
    (tree, think): (&Tree, Nanoseconds),
    mut verifier: Option<&mut CallVerifier>,
) -> Result<(), ProgramError> {
    let contents = Contents::new(system);
    for directory in &tree.directories {
        let path = under(top, &directory.path);
        system.mkdir(&path).await?;
        for file in &directory.files {
            match &mut verifier {
                Some(verifier) => make_verified(system, &path, file, (verifier, think)).await?,
                None => make_file(system, &path, file, (&contents, think)).await?,
            }
        }
    }
    Ok(())
}

async fn make_file(
    system: &mut System,
    directory: &str,
    file: &TreeFile,
    (contents, think): (&Contents, Nanoseconds),
) -> Result<(), ProgramError> {
    let path = format!("{directory}/{}", file.name);
    let open = system.open(&path, Open::CREATE).await?;
    for offset_bytes in (0..file.size_bytes).step_by(CALL_BYTES as usize) {
        let left = (file.size_bytes - offset_bytes).min(CALL_BYTES);
        let call = contents.call(file.number, offset_bytes, left);
        write_block(system, open, call, think).await?;
    }
    Ok(system.close(open).await?)
}

async fn make_verified(
    system: &mut System,
    directory: &str,
    file: &TreeFile,
    (verifier, think): (&mut CallVerifier, Nanoseconds),
) -> Result<(), ProgramError> {
    let path = format!("{directory}/{}", file.name);
    let open = system.open(&path, Open::CREATE).await?;
    let index = verifier.add_file(path);
    for offset_bytes in (0..file.size_bytes).step_by(CALL_BYTES as usize) {
        let left = (file.size_bytes - offset_bytes).min(CALL_BYTES);
        let place = (index, offset_bytes);
        verifier
            .write((&mut *system, open), place, left, think)
            .await?;
    }
    Ok(system.close(open).await?)
}

/// A name under a directory; the directory itself, if the name is empty.
pub(crate) fn under(top: &str, path: &str) -> String {
    if path.is_empty() {
        top.to_owned()
    } else {
        format!("{top}/{path}")
    }
}

/// Makes the worker's tree, unless it is there, and brings it to the drive.
pub(crate) async fn ensure(
    system: &mut System,
    worker: &Worker,
    seed: u64,
) -> Result<(), ProgramError> {
    let wanted = kind(worker, seed);
    if noted(system, worker).await? != Some(wanted) {
        remove_old(system, worker).await?;
        note(system, worker, wanted).await?;
        let tree = Tree::new(wanted);
        make(system, &top(worker), (&tree, Nanoseconds::ZERO), None).await?;
    }
    let file = system.open(&worker.file(MADE), Open::READ_WRITE).await?;
    system.fsync(file).await?;
    Ok(system.close(file).await?)
}

/// Removes the tree that was made before, if one was.
pub(crate) async fn remove_old(system: &mut System, worker: &Worker) -> Result<(), ProgramError> {
    if let Some(old) = noted(system, worker).await? {
        remove(system, &top(worker), &Tree::new(old)).await?;
        system.unlink(&worker.file(MADE)).await?;
    }
    Ok(())
}

/// Removes what is there of a tree.
pub(crate) async fn remove(
    system: &mut System,
    top: &str,
    tree: &Tree,
) -> Result<(), ProgramError> {
    for directory in tree.directories.iter().rev() {
        let path = under(top, &directory.path);
        for file in &directory.files {
            unless_absent(system.unlink(&format!("{path}/{}", file.name)).await)?;
        }
        unless_absent(system.rmdir(&path).await)?;
    }
    Ok(())
}

/// Done as well if there is nothing to remove.
pub(crate) fn unless_absent(result: diskperf_system::Result<()>) -> Result<(), ProgramError> {
    match result {
        Err(error) if error.errno() == Some(Errno::NoEntry) => Ok(()),
        result => Ok(result?),
    }
}

/// Notes which tree is being made: whatever is there of it, this is what it is
/// a part of.
pub(crate) async fn note(
    system: &mut System,
    worker: &Worker,
    kind: Kind,
) -> Result<(), ProgramError> {
    debug_assert!(worker.medium == Medium::Directory, "only files are noted");
    let file = system.open(&worker.file(MADE), Open::CREATE).await?;
    let text = [kind.content_bytes.to_le_bytes(), kind.seed.to_le_bytes()].concat();
    write_block(system, file, &text, Nanoseconds::ZERO).await?;
    Ok(system.close(file).await?)
}

/// Which tree was made here, if one was.
async fn noted(system: &mut System, worker: &Worker) -> Result<Option<Kind>, ProgramError> {
    let file = match system.open(&worker.file(MADE), Open::READ).await {
        Ok(file) => file,
        Err(error) if error.errno() == Some(Errno::NoEntry) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut text = [[0; 8]; 2];
    let read = system.read(file, text.as_flattened_mut()).await?;
    system.close(file).await?;
    let [content_bytes, seed] = text.map(u64::from_le_bytes);
    Ok((read == text.as_flattened().len()).then_some(Kind {
        content_bytes,
        seed,
    }))
}
