//! Reads and writes of whole blocks, and creation and removal of files, for the loops of the I/O
//! programs.

use crate::program::ProgramError;
use crate::worker::{Medium, Worker};
use diskperf_system::{Buffer, Errno, File, OpenOptions, SeekOrigin, System, WriteData};
use diskperf_timeline::Nanoseconds;
use rand_core::Rng;
use rand_pcg::Pcg64;

/// Length after which written data repeats. It exceeds the 128 KiB that btrfs compresses in one
/// piece, so that a compressing file system finds nothing to compress, and it still fits into a
/// second-level cache.
const DATA_BUFFER_BYTES_MAX: u64 = 256 << 10;

/// Returns a program's data buffer for calls of `call_bytes`. The data is incompressible, the
/// length is a multiple of `call_bytes`, and all pages are resident.
pub(crate) fn new_data_buffer(call_bytes: u64, seed: u64) -> Buffer {
    new_data_buffer_within(DATA_BUFFER_BYTES_MAX, call_bytes, seed)
}

/// Returns the leading part of [`new_data_buffer`] that a file of `size_bytes` uses, at least one call long.
fn new_data_buffer_within(size_bytes: u64, call_bytes: u64, seed: u64) -> Buffer {
    let calls = size_bytes
        .min(DATA_BUFFER_BYTES_MAX)
        .div_ceil(call_bytes)
        .max(1);
    new_random_buffer((calls * call_bytes) as usize, seed)
}

/// Returns the leading part of [`new_data_buffer`], as long as one call.
pub(crate) fn new_call_buffer(call_bytes: u64, seed: u64) -> Buffer {
    new_random_buffer(call_bytes as usize, seed)
}

fn new_random_buffer(bytes: usize, seed: u64) -> Buffer {
    let mut buffer = Buffer::new(bytes);
    Pcg64::new(u128::from(seed), DATA_RANDOM_STREAM).fill_bytes(&mut buffer);
    buffer
}

const DATA_RANDOM_STREAM: u128 = 1;

/// Reads one block and then spends the think time. A file that ends within the block is an error.
#[inline]
pub(crate) async fn read_block(
    system: &mut System,
    file: File,
    block: &mut [u8],
    think: Nanoseconds,
) -> Result<(), ProgramError> {
    let mut done = 0;
    while done < block.len() {
        match system.read(file, &mut block[done..]).await? {
            0 => return Err(ProgramError::ShortFile),
            count => done += count,
        }
    }
    pause_for_think_time(system, think).await
}

/// Writes one block, in several calls where a call takes only a part, and then spends the think
/// time.
#[inline]
pub(crate) async fn write_block(
    system: &mut System,
    file: File,
    block: impl Into<WriteData<'_>>,
    think: Nanoseconds,
) -> Result<(), ProgramError> {
    let block = block.into();
    let mut done = 0;
    while done < block.len() {
        match system
            .write(file, block.subrange(done..block.len()))
            .await?
        {
            0 => return Err(ProgramError::WriteAcceptedNothing),
            count => done += count,
        }
    }
    pause_for_think_time(system, think).await
}

/// Spends the CPU time that a program needs after a call.
#[inline]
pub(crate) async fn pause_for_think_time(
    system: &mut System,
    think: Nanoseconds,
) -> Result<(), ProgramError> {
    if think > Nanoseconds::ZERO {
        system.consume_cpu_time(think).await?;
    }
    Ok(())
}

/// Writes `size_bytes` to a file in calls of `call_bytes`, with data from the worker's buffer.
pub(crate) async fn write_file(
    system: &mut System,
    file: File,
    (call_bytes, size_bytes): (u64, u64),
    buffer: &Buffer,
    think: Nanoseconds,
) -> Result<(), ProgramError> {
    let kept = system.keep_data(buffer);
    let data = kept
        .as_ref()
        .map_or_else(|| WriteData::from(&buffer[..]), WriteData::from_kept_buffer);
    let call_bytes = call_bytes as usize;
    let mut calls = (0..data.len() / call_bytes).cycle();
    for _ in 0..size_bytes / call_bytes as u64 {
        let call = calls.next().expect("a buffer holds at least one call") * call_bytes;
        write_block(system, file, data.subrange(call..call + call_bytes), think).await?;
    }
    Ok(())
}

/// Creates a file of exactly `size_bytes` and fills it with data, unless such a file exists.
/// Devices and files that the user supplied stay unchanged.
pub(crate) async fn ensure_file(
    system: &mut System,
    worker: &Worker,
    path: &str,
    size_bytes: u64,
) -> Result<(), ProgramError> {
    if worker.medium != Medium::Directory {
        return Ok(());
    }
    match system.open(path, OpenOptions::READ).await {
        Ok(file) => {
            let length = system.file_length(file).await?;
            system.close(file).await?;
            if length == size_bytes {
                return Ok(());
            }
        }
        Err(error) if error.errno() == Some(Errno::NoEntry) => {}
        Err(error) => return Err(error.into()),
    }
    remove_file(system, worker.medium, path).await?;
    let file = system.open(path, OpenOptions::CREATE).await?;
    let buffer = new_data_buffer_within(size_bytes, PREPARATION_CALL_BYTES, worker.random_seed);
    let whole = size_bytes - size_bytes % PREPARATION_CALL_BYTES;
    write_file(
        system,
        file,
        (PREPARATION_CALL_BYTES, whole),
        &buffer,
        Nanoseconds::ZERO,
    )
    .await?;
    write_block(
        system,
        file,
        &buffer[..(size_bytes - whole) as usize],
        Nanoseconds::ZERO,
    )
    .await?;
    system.fsync(file).await?;
    Ok(system.close(file).await?)
}

/// Length of the writes that prepare a file. They are large because preparation is not measured.
const PREPARATION_CALL_BYTES: u64 = 64 << 10;

/// Removes a file if it exists. Devices and files that the user supplied stay.
pub(crate) async fn remove_file(
    system: &mut System,
    medium: Medium,
    path: &str,
) -> Result<(), ProgramError> {
    if medium != Medium::Directory {
        return Ok(());
    }
    match system.unlink(path).await {
        Ok(()) => Ok(()),
        Err(error) if error.errno() == Some(Errno::NoEntry) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Creates a file and opens it for writing. A device, or a file that the user supplied, is only
/// opened.
pub(crate) async fn create_empty_file(
    system: &mut System,
    medium: Medium,
    path: &str,
    direct: bool,
) -> Result<File, ProgramError> {
    let how = match medium {
        Medium::Directory => OpenOptions::CREATE,
        Medium::Device | Medium::File => OpenOptions::WRITE,
    };
    Ok(system.open(path, how.with_direct(direct)).await?)
}

/// Moves the file position to an offset from the start of the file.
pub(crate) async fn seek_to_offset(
    system: &mut System,
    file: File,
    offset_bytes: u64,
) -> Result<(), ProgramError> {
    system
        .lseek(file, offset_bytes as i64, SeekOrigin::FileStart)
        .await?;
    Ok(())
}
