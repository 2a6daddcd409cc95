//! Tree of files of a populated file system: it is made, recognised and removed.

use crate::blocks::{new_data_buffer, write_block};
use crate::parameter::{ParameterField, ParameterValue};
use crate::program::ProgramError;
use crate::verify::calls::CallVerifier;
use crate::worker::{Medium, Worker};
use crate::workload::tree::{TOP_NAME, Tree, TreeDescription, TreeFile};
use diskperf_system::{Buffer, Errno, OpenOptions, System, WriteData};
use diskperf_timeline::Nanoseconds;
use std::rc::Rc;

/// Length of the calls that write files: the block size of the file systems of Zachariassen 1987.
pub(crate) const TREE_CALL_BYTES: u64 = 8192;

/// Name of the file that records which tree exists.
const TREE_RECORD_NAME: &str = "usr.made";

/// Seed of the contents of all files of trees. It is always the same, so that the contents can be
/// recognised anywhere.
const CONTENTS_SEED: u64 = 1987;

/// Creates the parameter for the seed of the tree, which all programs on trees have.
pub(crate) fn seed_field(seed: &mut u64) -> ParameterField<'_> {
    ParameterField {
        name: "tree_seed",
        description: "random seed of the directory tree",
        value: ParameterValue::Count(seed, 0, u64::MAX),
    }
}

/// Returns the tree description for a worker's size and a seed.
pub(crate) fn tree_description(worker: &Worker, seed: u64) -> TreeDescription {
    TreeDescription {
        content_bytes: worker.size_bytes,
        seed,
    }
}

/// Returns the path of the top directory of a worker's tree.
pub(crate) fn top_path(worker: &Worker) -> String {
    worker.file_path(TOP_NAME)
}

/// Returns the path of the top directory of a worker's tree relative to the top of the file system,
/// without a leading slash.
pub(crate) fn top_path_below_mount(worker: &Worker) -> String {
    format!("{}{TOP_NAME}", worker.file_folder)
}

/// Contents of the files of a tree: random bytes that repeat, from another offset on for each file.
pub(crate) struct TreeContents {
    content_buffer: Buffer,
    /// Shared copy of the data, if the system recognises data that it was given before.
    shared_data: Option<Rc<[u8]>>,
}

impl TreeContents {
    pub(crate) fn new(system: &System) -> Self {
        let data = new_data_buffer(TREE_CALL_BYTES, CONTENTS_SEED);
        let kept = system.keep_data(&data);
        Self {
            content_buffer: data,
            shared_data: kept,
        }
    }

    /// Returns the contents of a file from an offset on, at most one call. The offset is a multiple
    /// of the call length.
    fn call_contents(&self, file: u64, offset_bytes: u64, bytes: u64) -> WriteData<'_> {
        let kept = self.shared_data.as_ref().map(WriteData::from_kept_buffer);
        let data = kept.unwrap_or_else(|| WriteData::from(&self.content_buffer[..]));
        let calls = data.len() as u64 / TREE_CALL_BYTES;
        let call = (file + offset_bytes / TREE_CALL_BYTES) % calls;
        let start = (call * TREE_CALL_BYTES) as usize;
        data.subrange(start..start + bytes as usize)
    }
}

/// Makes a tree, directory by directory. With a verifier, the files get the contents that it
/// verifies.
pub(crate) async fn make_tree(
    system: &mut System,
    top: &str,
    (tree, think): (&Tree, Nanoseconds),
    mut verifier: Option<&mut CallVerifier>,
) -> Result<(), ProgramError> {
    let contents = TreeContents::new(system);
    for directory in &tree.directories {
        let path = join_path(top, &directory.path);
        system.mkdir(&path).await?;
        for file in &directory.directory_files {
            match &mut verifier {
                Some(verifier) => {
                    make_verified_file(system, &path, file, (verifier, think)).await?
                }
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
    (contents, think): (&TreeContents, Nanoseconds),
) -> Result<(), ProgramError> {
    let path = format!("{directory}/{}", file.file_name);
    let open = system.open(&path, OpenOptions::CREATE).await?;
    for offset_bytes in (0..file.size_bytes).step_by(TREE_CALL_BYTES as usize) {
        let left = (file.size_bytes - offset_bytes).min(TREE_CALL_BYTES);
        let call = contents.call_contents(file.file_number, offset_bytes, left);
        write_block(system, open, call, think).await?;
    }
    Ok(system.close(open).await?)
}

async fn make_verified_file(
    system: &mut System,
    directory: &str,
    file: &TreeFile,
    (verifier, think): (&mut CallVerifier, Nanoseconds),
) -> Result<(), ProgramError> {
    let path = format!("{directory}/{}", file.file_name);
    let open = system.open(&path, OpenOptions::CREATE).await?;
    let index = verifier.add_file(path);
    for offset_bytes in (0..file.size_bytes).step_by(TREE_CALL_BYTES as usize) {
        let left = (file.size_bytes - offset_bytes).min(TREE_CALL_BYTES);
        let place = (index, offset_bytes);
        verifier
            .write((&mut *system, open), place, left, think)
            .await?;
    }
    Ok(system.close(open).await?)
}

/// Returns the path of a name under a directory, or of the directory itself if the name is empty.
pub(crate) fn join_path(top: &str, path: &str) -> String {
    if path.is_empty() {
        top.to_owned()
    } else {
        format!("{top}/{path}")
    }
}

/// Makes the worker's tree unless it exists, and flushes it to the drive.
pub(crate) async fn ensure_tree(
    system: &mut System,
    worker: &Worker,
    seed: u64,
) -> Result<(), ProgramError> {
    let wanted = tree_description(worker, seed);
    if read_tree_record(system, worker).await? != Some(wanted) {
        remove_old_trees(system, worker).await?;
        record_tree(system, worker, wanted).await?;
        let tree = Tree::new(wanted);
        make_tree(system, &top_path(worker), (&tree, Nanoseconds::ZERO), None).await?;
    }
    let file = system
        .open(&worker.file_path(TREE_RECORD_NAME), OpenOptions::READ_WRITE)
        .await?;
    system.fsync(file).await?;
    Ok(system.close(file).await?)
}

/// Removes the tree that was made before, if any.
pub(crate) async fn remove_old_trees(
    system: &mut System,
    worker: &Worker,
) -> Result<(), ProgramError> {
    if let Some(old) = read_tree_record(system, worker).await? {
        remove_tree(system, &top_path(worker), &Tree::new(old)).await?;
        system.unlink(&worker.file_path(TREE_RECORD_NAME)).await?;
    }
    Ok(())
}

/// Removes the existing files and directories of a tree.
pub(crate) async fn remove_tree(
    system: &mut System,
    top: &str,
    tree: &Tree,
) -> Result<(), ProgramError> {
    for directory in tree.directories.iter().rev() {
        let path = join_path(top, &directory.path);
        for file in &directory.directory_files {
            ignore_absence(system.unlink(&format!("{path}/{}", file.file_name)).await)?;
        }
        ignore_absence(system.rmdir(&path).await)?;
    }
    Ok(())
}

/// Treats the absence of a file to be removed as success.
pub(crate) fn ignore_absence(result: diskperf_system::Result<()>) -> Result<(), ProgramError> {
    match result {
        Err(error) if error.errno() == Some(Errno::NoEntry) => Ok(()),
        result => Ok(result?),
    }
}

/// Records which tree is about to be made, so that a partly made tree can be recognised.
pub(crate) async fn record_tree(
    system: &mut System,
    worker: &Worker,
    kind: TreeDescription,
) -> Result<(), ProgramError> {
    debug_assert!(worker.medium == Medium::Directory, "only files are noted");
    let file = system
        .open(&worker.file_path(TREE_RECORD_NAME), OpenOptions::CREATE)
        .await?;
    let text = [kind.content_bytes.to_le_bytes(), kind.seed.to_le_bytes()].concat();
    write_block(system, file, &text, Nanoseconds::ZERO).await?;
    Ok(system.close(file).await?)
}

/// Returns the description of the tree that was made here, or `None` if there is none.
async fn read_tree_record(
    system: &mut System,
    worker: &Worker,
) -> Result<Option<TreeDescription>, ProgramError> {
    let file = match system
        .open(&worker.file_path(TREE_RECORD_NAME), OpenOptions::READ)
        .await
    {
        Ok(file) => file,
        Err(error) if error.errno() == Some(Errno::NoEntry) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut text = [[0; 8]; 2];
    let read = system.read(file, text.as_flattened_mut()).await?;
    system.close(file).await?;
    let [content_bytes, seed] = text.map(u64::from_le_bytes);
    Ok(
        (read == text.as_flattened().len()).then_some(TreeDescription {
            content_bytes,
            seed,
        }),
    )
}
