//! fio options for files, target size, synchronization and data content.

use std::sync::Arc;

use super::{OptionKey, harmless, honoured, refused};
use crate::job::{Allocation, Amount, DedupeMode, FileLock, JobFiles, RangeSync, SyncFlag};
use crate::value::{Value, WrittenOption};
use diskperf_diagnostics::Problem;

pub(super) const OPTIONS: &[OptionKey] = &[
    honoured("filename", |job, w| {
        job.files.names = parse_file_names(&w.value()?)?;
        Ok(())
    }),
    honoured("directory", |job, w| {
        job.files.directories = parse_directories(&w.value()?)?;
        Ok(())
    }),
    honoured("filename_format", |job, w| {
        job.files.name_format = parse_name_format(&w.value()?)?;
        Ok(())
    }),
    honoured("nrfiles", |job, w| {
        job.files.count = w.value()?.require_single()?.count(1..=1 << 20)?;
        Ok(())
    })
    .with_aliases(&["nr_files"]),
    honoured("openfiles", |job, w| {
        job.files.open_at_once = Some(w.value()?.require_single()?.count(1..)?);
        Ok(())
    }),
    honoured("filesize", |job, w| parse_file_size(&mut job.files, w)),
    honoured("overwrite", |job, w| {
        job.files.overwrite = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("fallocate", |job, w| {
        let choices = [
            ("none", Allocation::None),
            ("native", Allocation::Native),
            ("posix", Allocation::Posix),
            ("keep", Allocation::Keep),
            ("truncate", Allocation::Truncate),
            ("0", Allocation::None),
            ("1", Allocation::Posix),
        ];
        job.files.allocation = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    honoured("create_on_open", |job, w| {
        job.files.create_on_open = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("create_fsync", |job, w| {
        job.files.create_fsync = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("allow_file_create", |job, w| {
        job.files.may_create = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("allow_mounted_write", |job, w| {
        job.files.allow_mounted_write = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("pre_read", |job, w| {
        job.files.pre_read = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("invalidate", |job, w| {
        job.files.invalidate = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("unlink", |job, w| {
        job.files.unlink = w.value()?.require_single()?.boolean()?;
        Ok(())
    }),
    honoured("unlink_each_loop", |job, w| {
        job.files.unlink_each_loop = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("size", |job, w| {
        let value = w.value()?;
        match parse_zone_count(&value)? {
            // As in fio, bytes that stood before are lost.
            Some(count) => (job.target.zoned_amounts.size, job.target.size) = (count, None),
            None => job.target.size = parse_amount_or_all(&value, None)?,
        }
        Ok(())
    }),
    honoured("io_size", |job, w| {
        let value = w.value()?;
        match parse_zone_count(&value)? {
            Some(count) => (job.target.zoned_amounts.io_size, job.target.io_size) = (count, None),
            None => job.target.io_size = parse_amount_or_all(&value, Some(100))?,
        }
        Ok(())
    })
    .with_aliases(&["io_limit"]),
    honoured("number_ios", |job, w| {
        let most = w.value()?.require_single()?.number(..)?;
        job.target.most_ios = (most > 0).then_some(most);
        Ok(())
    }),
    honoured("loops", |job, w| {
        job.target.loops = w.value()?.require_single()?.count(1..)?;
        Ok(())
    }),
    honoured("offset", |job, w| {
        let value = w.value()?;
        match parse_zone_count(&value)? {
            Some(count) => {
                job.target.zoned_amounts.offset = count;
                job.target.offset = Amount::Bytes(0);
            }
            None => job.target.offset = parse_amount(&value, None)?,
        }
        Ok(())
    })
    .with_aliases(&["fileoffset"]),
    honoured("offset_align", |job, w| {
        job.target.offset_align_bytes = w.value()?.require_single()?.number(..)?;
        Ok(())
    }),
    honoured("offset_increment", |job, w| {
        let value = w.value()?;
        match parse_zone_count(&value)? {
            Some(count) => {
                job.target.zoned_amounts.offset_increment = count;
                job.target.offset_increment = Amount::Bytes(0);
            }
            None => job.target.offset_increment = parse_amount(&value, None)?,
        }
        Ok(())
    }),
    honoured("sync", |job, w| {
        let choices = [
            ("none", SyncFlag::None),
            ("0", SyncFlag::None),
            ("sync", SyncFlag::Sync),
            ("1", SyncFlag::Sync),
            ("dsync", SyncFlag::Dsync),
        ];
        job.sync.flag = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    honoured("fsync", |job, w| {
        job.sync.fsync_every = w.value()?.require_single()?.count(..)?;
        Ok(())
    }),
    honoured("fdatasync", |job, w| {
        job.sync.fdatasync_every = w.value()?.require_single()?.count(..)?;
        Ok(())
    }),
    honoured("end_fsync", |job, w| {
        job.sync.fsync_at_end = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("fsync_on_close", |job, w| {
        job.sync.fsync_on_close = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("sync_file_range", |job, w| {
        job.sync.range = parse_range_sync(&w.value()?)?;
        Ok(())
    }),
    honoured("zero_buffers", |job, w| {
        job.data.zeroes = w.flag()?;
        Ok(())
    }),
    honoured("refill_buffers", |job, w| {
        job.data.refill = w.flag()?;
        Ok(())
    }),
    honoured("scramble_buffers", |job, w| {
        job.data.scramble = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("buffer_compress_percentage", |job, w| {
        job.data.compressible_percent = parse_percent(&w.value()?)?;
        Ok(())
    }),
    honoured("buffer_compress_chunk", |job, w| {
        job.data.compress_chunk_bytes = w.value()?.require_single()?.count(1..)?;
        Ok(())
    }),
    honoured("file_append", |job, w| {
        job.files.appends = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("fill_device", |job, w| {
        job.files.fills = w.value()?.boolean()?;
        Ok(())
    })
    .with_aliases(&["fill_fs"]),
    refused(
        "opendir",
        "it takes whatever is in a folder",
        "name the files by `filename=`",
    ),
    honoured("lockfile", |job, w| {
        let choices = [
            ("none", FileLock::None),
            ("exclusive", FileLock::Exclusive),
            ("readwrite", FileLock::ReadWrite),
        ];
        job.files.lock = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    honoured("create_only", |job, w| {
        job.files.only_created = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("atomic", |job, w| {
        if w.value()?.boolean()? {
            job.engine.direct = true;
            let text = "atomic=1 is direct=1";
            let label = "as with fio on Linux, which opens with O_DIRECT and asks for nothing more";
            w.value()?.warn(text, label);
        }
        Ok(())
    }),
    harmless("write_barrier", "kernels since 2.6.37 have no barriers"),
    harmless("write_hint", "no lifetime of writes is told to the drive"),
    honoured("dedupe_percentage", |job, w| {
        job.data.duplicate_percent = parse_percent(&w.value()?)?;
        Ok(())
    }),
    honoured("dedupe_mode", |job, w| {
        let choices = [
            ("repeat", DedupeMode::Repeat),
            ("working_set", DedupeMode::WorkingSet),
        ];
        job.data.duplicates = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    honoured("dedupe_working_set_percentage", |job, w| {
        job.data.working_set_percent = parse_percent(&w.value()?)?;
        Ok(())
    }),
    honoured("dedupe_global", |job, w| {
        job.data.is_working_set_shared = w.value()?.boolean()?;
        Ok(())
    }),
    harmless("buffer_pattern", "data are what diskperf writes"),
    harmless("create_serialize", "files are laid out one after the other"),
    harmless(
        "fadvise_hint",
        "the kernel gets advice on mapped files alone, by what rw says",
    ),
    harmless("unique_filename", "there are no clients"),
];

fn parse_percent(value: &Value<'_>) -> Result<u8, Problem> {
    let percent = value.require_single()?.count(0..=100)?;
    Ok(u8::try_from(percent).expect("at most 100"))
}

/// Splits a list of names at `:`; `\:` is a literal colon.
fn names(value: &Value<'_>) -> Result<Arc<[String]>, Problem> {
    let mut names = vec![String::new()];
    let mut letters = value.text().chars().peekable();
    while let Some(letter) = letters.next() {
        let last = names.last_mut().expect("one at least");
        match letter {
            '\\' if letters.peek() == Some(&':') => {
                last.push(':');
                letters.next();
            }
            ':' => names.push(String::new()),
            other => last.push(other),
        }
    }
    names.retain(|name| !name.is_empty());
    if names.is_empty() {
        return Err(value.problem("no name is here", "only colons"));
    }
    Ok(names.into())
}

/// Reads a list of file names. Like fio, it strips blanks around the whole list and keeps blanks
/// between names.
fn parse_file_names(value: &Value<'_>) -> Result<Arc<[String]>, Problem> {
    let value = value.trimmed();
    let names = names(&value)?;
    if let Some(name) = names.iter().find(|name| name.trim() != name.as_str()) {
        let problem = value.problem(
            "a blank beside a name of a file",
            format!("fio calls this file `{name}`"),
        );
        return Err(problem.help("part names by `:` without blanks"));
    }
    match has_stray_colon(&names) {
        false => Ok(names),
        true => {
            let title = "a `:` parts the names of files";
            let label = format!("fio takes {} files: {}", names.len(), names.join(", "));
            let escaped = value.text().replace(':', "\\:");
            let help = format!("for a colon in a name, write `{}={escaped}`", value.key());
            Err(value.problem(title, label).help(help))
        }
    }
}

/// Tests whether the names look like a single path with unescaped colons, such as `D:\x` or a
/// device path under `/dev/disk/by-parse_path`.
fn has_stray_colon(names: &[String]) -> bool {
    let is_rooted = |name: &String| name.starts_with(['/', '\\']);
    let Some((first, others)) = names.split_first() else {
        return false;
    };
    match first.len() {
        1 => others.first().is_some_and(is_rooted),
        _ => is_rooted(first) && others.iter().any(|name| !is_rooted(name)),
    }
}

/// Reads a list of directories. Like fio, it keeps all blanks.
fn parse_directories(value: &Value<'_>) -> Result<Arc<[String]>, Problem> {
    let names = names(value)?;
    if let Some(name) = names.iter().find(|name| name.trim() != name.as_str()) {
        let label = "fio makes it part of the name, and drops the job";
        let problem = value.problem("a blank beside the name of a directory", label);
        let trimmed = name.trim();
        return Err(problem.help(format!("write `{}={trimmed}`", value.key())));
    }
    Ok(names)
}

fn parse_name_format(value: &Value<'_>) -> Result<String, Problem> {
    let known = ["$jobname", "$jobnum", "$filenum", "$clientuid"];
    let mut rest = value.text();
    while let Some(at) = rest.find('$') {
        rest = &rest[at..];
        let Some(word) = known.iter().find(|word| rest.starts_with(*word)) else {
            let problem = value.problem(
                "an unknown word of filename_format",
                "fio keeps it as it is",
            );
            return Err(problem.help(format!("these are known: {}", known.join(", "))));
        };
        rest = &rest[word.len()..];
    }
    Ok(value.text().to_owned())
}

/// Reads a size or a percentage of the target. `percent_max` is fio's limit for the percentage;
/// without it, percentages above 100 are accepted.
fn parse_amount(value: &Value<'_>, percent_max: Option<u32>) -> Result<Amount, Problem> {
    let value = value.require_single()?;
    if let Some(digits) = value.text().strip_suffix('%') {
        let percent = value.subvalue(0..digits.len());
        if let Ok(whole) = digits.parse::<u32>() {
            return match percent_max {
                Some(most) if whole > most => {
                    let title = format!("more than {most} percent");
                    let problem = percent.problem(title, "fio drops the job");
                    Err(problem.help(format!("write a percentage of at most {most}")))
                }
                _ => Ok(Amount::Percent(whole)),
            };
        }
        let whole: String = digits
            .trim_start()
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        let title = format!("`{}` is not a whole percentage", value.text());
        return Err(value
            .problem(title, format!("fio reads {whole} and says nothing"))
            .help("write a whole number with `%` right behind it"));
    }
    value.number(..).map(Amount::Bytes)
}

/// Reads a number of zones such as `64z`.
pub(super) fn parse_zone_count(value: &Value<'_>) -> Result<Option<u64>, Problem> {
    let Some(digits) = value.text().strip_suffix('z') else {
        return Ok(None);
    };
    let count = value.subvalue(0..digits.len());
    match digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.is_empty() {
        true => Ok(Some(count.count(..)?.into())),
        false => {
            let title = format!("`{}` is not a number of zones", value.text());
            let problem = value.problem(title, "a plain number stands before the z");
            Err(problem.help("write it as `64z`"))
        }
    }
}

/// Reads an amount like [`parse_amount`]; 0 means everything that exists and gives `None`.
fn parse_amount_or_all(
    value: &Value<'_>,
    percent_max: Option<u32>,
) -> Result<Option<Amount>, Problem> {
    let amount = parse_amount(value, percent_max)?;
    Ok((!matches!(amount, Amount::Bytes(0) | Amount::Percent(0))).then_some(amount))
}

/// Reads a file size, or a range of sizes such as `low-high`.
fn parse_file_size(files: &mut JobFiles, written: &WrittenOption<'_>) -> Result<(), Problem> {
    let (low, high) = written.value()?.require_single()?.split_once(&['-', ':']);
    let low = low.number(1..)?;
    let high = high.map_or(Ok(low), |high| high.number(1..))?;
    files.size_bytes = Some((low.min(high), low.max(high)));
    Ok(())
}

/// Reads sync_file_range flags such as `wait_before,write:8`. The number after the colon is the
/// number of writes between calls; the default is 1.
fn parse_range_sync(value: &Value<'_>) -> Result<RangeSync, Problem> {
    let choices = [("wait_before", 0), ("write", 1), ("wait_after", 2)];
    let mut sync = RangeSync {
        every_writes: 1,
        ..RangeSync::default()
    };
    let parts = value.split(&[',']);
    for (at, part) in parts.iter().enumerate() {
        let (word, every) = part.split_once(&[':']);
        match word.parse_choice(&choices)? {
            0 => sync.wait_before = true,
            1 => sync.write = true,
            _ => sync.wait_after = true,
        }
        let Some(every) = every else { continue };
        if at + 1 < parts.len() {
            let title = "the number of writes stands behind the last step";
            let problem = part.problem(title, "fio leaves this step out, and says nothing");
            return Err(problem.help("write `wait_before,write:N` or the like"));
        }
        sync.every_writes = every.count(1..)?;
    }
    Ok(sync)
}
