//! Whole blocks: what the programs' loops are made of.

use crate::program::ProgramError;
use crate::worker::{Medium, Worker};
use diskperf_system::{Buffer, Errno, File, Open, System, Whence, Written};
use diskperf_timeline::Nanoseconds;
use rand_core::Rng;
use rand_pcg::Pcg64;

/// Written data repeats after this much: more than the 128 KiB that btrfs
/// compresses at once, so that a compressing file system finds nothing to
/// compress; little enough to stay in a second-level cache.
const DATA_BYTES: u64 = 256 << 10;

/// The buffer of a program with calls of this size: incompressible data, a
/// whole number of calls long, its pages all there.
pub(crate) fn data(call_bytes: u64, seed: u64) -> Buffer {
    data_for(DATA_BYTES, call_bytes, seed)
}

/// The start of [`data`]: as much of it as a file of `size_bytes` takes.
fn data_for(size_bytes: u64, call_bytes: u64, seed: u64) -> Buffer {
    let calls = size_bytes.min(DATA_BYTES).div_ceil(call_bytes).max(1);
    random((calls * call_bytes) as usize, seed)
}

/// The start of [`data`]: as much as one call moves.
pub(crate) fn data_of_one_call(call_bytes: u64, seed: u64) -> Buffer {
    random(call_bytes as usize, seed)
}

fn random(bytes: usize, seed: u64) -> Buffer {
    let mut buffer = Buffer::new(bytes);
    Pcg64::new(u128::from(seed), DATA_STREAM).fill_bytes(&mut buffer);
    buffer
}

/// The random stream that file contents are drawn from.
const DATA_STREAM: u128 = 1;

/// Reads one block; a file that ends before it is an error.
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
    pause(system, think).await
}

/// Writes one block.
#[inline]
pub(crate) async fn write_block(
    system: &mut System,
    file: File,
    block: impl Into<Written<'_>>,
    think: Nanoseconds,
) -> Result<(), ProgramError> {
    let block = block.into();
    let mut done = 0;
    while done < block.len() {
        match system.write(file, block.part(done..block.len())).await? {
            0 => return Err(ProgramError::NothingTaken),
            count => done += count,
        }
    }
    pause(system, think).await
}

/// The CPU time of the program itself, after a call.
#[inline]
pub(crate) async fn pause(system: &mut System, think: Nanoseconds) -> Result<(), ProgramError> {
    if think > Nanoseconds::ZERO {
        system.compute(think).await?;
    }
    Ok(())
}

/// Writes `size_bytes` in calls of `call_bytes` from the worker's data.
pub(crate) async fn write_file(
    system: &mut System,
    file: File,
    (call_bytes, size_bytes): (u64, u64),
    buffer: &Buffer,
    think: Nanoseconds,
) -> Result<(), ProgramError> {
    let kept = system.keeping(buffer);
    let data = kept
        .as_ref()
        .map_or_else(|| Written::from(&buffer[..]), Written::kept);
    let call_bytes = call_bytes as usize;
    let mut calls = (0..data.len() / call_bytes).cycle();
    for _ in 0..size_bytes / call_bytes as u64 {
        let call = calls.next().expect("a buffer holds at least one call") * call_bytes;
        write_block(system, file, data.part(call..call + call_bytes), think).await?;
    }
    Ok(())
}

/// Makes a file of exactly `size_bytes`, with data in all of it, unless there
/// is one. A device, and a file of the user's, is as it is.
pub(crate) async fn ensure_file(
    system: &mut System,
    worker: &Worker,
    path: &str,
    size_bytes: u64,
) -> Result<(), ProgramError> {
    if worker.medium != Medium::Directory {
        return Ok(());
    }
    match system.open(path, Open::READ).await {
        Ok(file) => {
            let length = system.length(file).await?;
            system.close(file).await?;
            if length == size_bytes {
                return Ok(());
            }
        }
        Err(error) if error.errno() == Some(Errno::NoEntry) => {}
        Err(error) => return Err(error.into()),
    }
    remove_file(system, worker.medium, path).await?;
    let file = system.open(path, Open::CREATE).await?;
    let buffer = data_for(size_bytes, PREPARING_CALL_BYTES, worker.seed);
    let whole = size_bytes - size_bytes % PREPARING_CALL_BYTES;
    write_file(
        system,
        file,
        (PREPARING_CALL_BYTES, whole),
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

/// Files are prepared with large calls: how they were written is not measured.
const PREPARING_CALL_BYTES: u64 = 64 << 10;

/// Removes a file if it is there. A device, and a file of the user's, stays.
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

/// Creates a file for writing; on a device, opens it.
pub(crate) async fn create(
    system: &mut System,
    medium: Medium,
    path: &str,
    direct: bool,
) -> Result<File, ProgramError> {
    let how = match medium {
        Medium::Directory => Open::CREATE,
        Medium::Device | Medium::File => Open::WRITE,
    };
    Ok(system.open(path, how.direct(direct)).await?)
}

/// Moves to an offset from the start of the file.
pub(crate) async fn seek_to(
    system: &mut System,
    file: File,
    offset_bytes: u64,
) -> Result<(), ProgramError> {
    system
        .lseek(file, offset_bytes as i64, Whence::Start)
        .await?;
    Ok(())
}
