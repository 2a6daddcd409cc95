//! fio options for files, target size, synchronization and data content.

use std::sync::Arc;

use super::{OptionKey, applied_option, ineffective_option, rejected_option};
use crate::job::{Amount, DedupeMode, FileAllocation, FileLock, JobFiles, RangeSync, SyncFlag};
use crate::value::{OptionValue, WrittenOption};
use diskperf_diagnostics::Problem;

pub(super) const OPTIONS: &[OptionKey] = &[
    applied_option("filename", |job, w| {
        job.files.names = parse_file_names(&w.value()?)?;
        Ok(())
    }),
    applied_option("directory", |job, w| {
        job.files.directories = parse_directories(&w.value()?)?;
        Ok(())
    }),
    applied_option("filename_format", |job, w| {
        job.files.name_format = parse_name_format(&w.value()?)?;
        Ok(())
    }),
    applied_option("nrfiles", |job, w| {
        job.files.count = w.value()?.require_single()?.parse_count(1..=1 << 20)?;
        Ok(())
    })
    .with_aliases(&["nr_files"]),
    applied_option("openfiles", |job, w| {
        job.files.open_files_max = Some(w.value()?.require_single()?.parse_count(1..)?);
        Ok(())
    }),
    applied_option("filesize", |job, w| parse_file_size(&mut job.files, w)),
    applied_option("overwrite", |job, w| {
        job.files.is_overwritten = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("fallocate", |job, w| {
        let choices = [
            ("none", FileAllocation::None),
            ("native", FileAllocation::Native),
            ("posix", FileAllocation::Posix),
            ("keep", FileAllocation::KeepSize),
            ("truncate", FileAllocation::Truncate),
            ("0", FileAllocation::None),
            ("1", FileAllocation::Posix),
        ];
        job.files.allocation = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    applied_option("create_on_open", |job, w| {
        job.files.creates_on_open = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("create_fsync", |job, w| {
        job.files.syncs_on_create = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("allow_file_create", |job, w| {
        job.files.may_create = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("allow_mounted_write", |job, w| {
        job.files.allows_mounted_write = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("pre_read", |job, w| {
        job.files.is_pre_read = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("invalidate", |job, w| {
        job.files.invalidates_cache = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("unlink", |job, w| {
        job.files.unlinks_at_end = w.value()?.require_single()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("unlink_each_loop", |job, w| {
        job.files.unlinks_each_loop = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("size", |job, w| {
        let value = w.value()?;
        match parse_zone_count(&value)? {
            // As in fio, bytes that stood before are lost.
            Some(count) => (job.target.zoned_amounts.size, job.target.size) = (count, None),
            None => job.target.size = parse_amount_or_all(&value, None)?,
        }
        Ok(())
    }),
    applied_option("io_size", |job, w| {
        let value = w.value()?;
        match parse_zone_count(&value)? {
            Some(count) => (job.target.zoned_amounts.io_size, job.target.io_size) = (count, None),
            None => job.target.io_size = parse_amount_or_all(&value, Some(100))?,
        }
        Ok(())
    })
    .with_aliases(&["io_limit"]),
    applied_option("number_ios", |job, w| {
        let most = w.value()?.require_single()?.parse_number_in(..)?;
        job.target.ios_max = (most > 0).then_some(most);
        Ok(())
    }),
    applied_option("loops", |job, w| {
        job.target.loops = w.value()?.require_single()?.parse_count(1..)?;
        Ok(())
    }),
    applied_option("offset", |job, w| {
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
    applied_option("offset_align", |job, w| {
        job.target.offset_align_bytes = w.value()?.require_single()?.parse_number_in(..)?;
        Ok(())
    }),
    applied_option("offset_increment", |job, w| {
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
    applied_option("sync", |job, w| {
        let choices = [
            ("none", SyncFlag::None),
            ("0", SyncFlag::None),
            ("sync", SyncFlag::Sync),
            ("1", SyncFlag::Sync),
            ("dsync", SyncFlag::Dsync),
        ];
        job.sync.open_flag = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    applied_option("fsync", |job, w| {
        job.sync.writes_per_fsync = w.value()?.require_single()?.parse_count(..)?;
        Ok(())
    }),
    applied_option("fdatasync", |job, w| {
        job.sync.writes_per_fdatasync = w.value()?.require_single()?.parse_count(..)?;
        Ok(())
    }),
    applied_option("end_fsync", |job, w| {
        job.sync.syncs_at_end = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("fsync_on_close", |job, w| {
        job.sync.syncs_on_close = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("sync_file_range", |job, w| {
        job.sync.range_sync = parse_range_sync(&w.value()?)?;
        Ok(())
    }),
    applied_option("zero_buffers", |job, w| {
        job.data.is_zeroed = w.parse_flag()?;
        Ok(())
    }),
    applied_option("refill_buffers", |job, w| {
        job.data.is_refilled = w.parse_flag()?;
        Ok(())
    }),
    applied_option("scramble_buffers", |job, w| {
        job.data.is_scrambled = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("buffer_compress_percentage", |job, w| {
        job.data.compressible_percent = parse_percent(&w.value()?)?;
        Ok(())
    }),
    applied_option("buffer_compress_chunk", |job, w| {
        job.data.compress_chunk_bytes = w.value()?.require_single()?.parse_count(1..)?;
        Ok(())
    }),
    applied_option("file_append", |job, w| {
        job.files.is_appended = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("fill_device", |job, w| {
        job.files.fills_device = w.value()?.parse_boolean()?;
        Ok(())
    })
    .with_aliases(&["fill_fs"]),
    rejected_option(
        "opendir",
        "it uses all files of a directory",
        "name the files with `filename=`",
    ),
    applied_option("lockfile", |job, w| {
        let choices = [
            ("none", FileLock::None),
            ("exclusive", FileLock::Exclusive),
            ("readwrite", FileLock::ReadWrite),
        ];
        job.files.lock = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    applied_option("create_only", |job, w| {
        job.files.creates_only = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("atomic", |job, w| {
        if w.value()?.parse_boolean()? {
            job.engine.is_direct = true;
            let text = "atomic=1 is direct=1";
            let label = "as with fio on Linux, which opens with O_DIRECT and asks for nothing more";
            w.value()?.warn(text, label);
        }
        Ok(())
    }),
    ineffective_option("write_barrier", "kernels since 2.6.37 have no barriers"),
    ineffective_option("write_hint", "the drive receives no write hints"),
    applied_option("dedupe_percentage", |job, w| {
        job.data.duplicate_percent = parse_percent(&w.value()?)?;
        Ok(())
    }),
    applied_option("dedupe_mode", |job, w| {
        let choices = [
            ("repeat", DedupeMode::RepeatPrevious),
            ("working_set", DedupeMode::WorkingSet),
        ];
        job.data.dedupe_mode = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    applied_option("dedupe_working_set_percentage", |job, w| {
        job.data.working_set_percent = parse_percent(&w.value()?)?;
        Ok(())
    }),
    applied_option("dedupe_global", |job, w| {
        job.data.is_working_set_shared = w.value()?.parse_boolean()?;
        Ok(())
    }),
    ineffective_option("buffer_pattern", "diskperf generates the written data"),
    ineffective_option("create_serialize", "diskperf creates files one at a time"),
    ineffective_option("fadvise_hint", "only mapped files get advice, based on rw"),
    ineffective_option("unique_filename", "diskperf has no fio clients"),
];

fn parse_percent(value: &OptionValue<'_>) -> Result<u8, Problem> {
    let percent = value.require_single()?.parse_count(0..=100)?;
    Ok(u8::try_from(percent).expect("at most 100"))
}

/// Splits a list of names at `:`; `\:` is a literal colon.
fn split_names(value: &OptionValue<'_>) -> Result<Arc<[String]>, Problem> {
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
        return Err(value.error("no file name is given", "the value has only colons"));
    }
    Ok(names.into())
}

/// Reads a list of file names. Like fio, it strips blanks around the whole list and keeps blanks
/// between names.
fn parse_file_names(value: &OptionValue<'_>) -> Result<Arc<[String]>, Problem> {
    let value = value.trimmed();
    let names = split_names(&value)?;
    if let Some(name) = names.iter().find(|name| name.trim() != name.as_str()) {
        let problem = value.error(
            "a file name has a blank at its start or end",
            format!("fio calls this file `{name}`"),
        );
        return Err(problem.help("separate names by `:` without blanks"));
    }
    match has_stray_colon(&names) {
        false => Ok(names),
        true => {
            let title = "a `:` separates file names";
            let label = format!("fio takes {} files: {}", names.len(), names.join(", "));
            let escaped = value.text().replace(':', "\\:");
            let help = format!("for a colon in a name, write `{}={escaped}`", value.key());
            Err(value.error(title, label).help(help))
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
fn parse_directories(value: &OptionValue<'_>) -> Result<Arc<[String]>, Problem> {
    let names = split_names(value)?;
    if let Some(name) = names.iter().find(|name| name.trim() != name.as_str()) {
        let label = "fio makes it part of the name, and drops the job";
        let problem = value.error("a directory name has a blank at its start or end", label);
        let trimmed = name.trim();
        return Err(problem.help(format!("write `{}={trimmed}`", value.key())));
    }
    Ok(names)
}

fn parse_name_format(value: &OptionValue<'_>) -> Result<String, Problem> {
    let known = ["$jobname", "$jobnum", "$filenum", "$clientuid"];
    let mut rest = value.text();
    while let Some(at) = rest.find('$') {
        rest = &rest[at..];
        let Some(word) = known.iter().find(|word| rest.starts_with(*word)) else {
            let problem = value.error(
                "unknown variable in filename_format",
                "fio keeps it as it is",
            );
            return Err(problem.help(format!("known variables: {}", known.join(", "))));
        };
        rest = &rest[word.len()..];
    }
    Ok(value.text().to_owned())
}

/// Reads a size or a percentage of the target. `percent_max` is fio's limit for the percentage;
/// without it, percentages above 100 are accepted.
fn parse_amount(value: &OptionValue<'_>, percent_max: Option<u32>) -> Result<Amount, Problem> {
    let value = value.require_single()?;
    if let Some(digits) = value.text().strip_suffix('%') {
        let percent = value.subvalue(0..digits.len());
        if let Ok(whole) = digits.parse::<u32>() {
            return match percent_max {
                Some(most) if whole > most => {
                    let title = format!("more than {most} percent");
                    let problem = percent.error(title, "fio drops the job");
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
            .error(title, format!("fio reads {whole} and says nothing"))
            .help("write a whole number followed by `%` without a blank"));
    }
    value.parse_number_in(..).map(Amount::Bytes)
}

/// Reads a number of zones such as `64z`.
pub(super) fn parse_zone_count(value: &OptionValue<'_>) -> Result<Option<u64>, Problem> {
    let Some(digits) = value.text().strip_suffix('z') else {
        return Ok(None);
    };
    let count = value.subvalue(0..digits.len());
    match digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.is_empty() {
        true => Ok(Some(count.parse_count(..)?.into())),
        false => {
            let title = format!("`{}` is not a number of zones", value.text());
            let problem = value.error(title, "write a plain number before the z");
            Err(problem.help("write it as `64z`"))
        }
    }
}

/// Reads an amount like [`parse_amount`]; 0 means everything that exists and gives `None`.
fn parse_amount_or_all(
    value: &OptionValue<'_>,
    percent_max: Option<u32>,
) -> Result<Option<Amount>, Problem> {
    let amount = parse_amount(value, percent_max)?;
    Ok((!matches!(amount, Amount::Bytes(0) | Amount::Percent(0))).then_some(amount))
}

/// Reads a file size, or a range of sizes such as `low-high`.
fn parse_file_size(files: &mut JobFiles, written: &WrittenOption<'_>) -> Result<(), Problem> {
    let (low, high) = written.value()?.require_single()?.split_once(&['-', ':']);
    let low = low.parse_number_in(1..)?;
    let high = high.map_or(Ok(low), |high| high.parse_number_in(1..))?;
    files.size_bytes = Some((low.min(high), low.max(high)));
    Ok(())
}

/// Reads sync_file_range flags such as `wait_before,write:8`. The number after the colon is the
/// number of writes between calls; the default is 1.
fn parse_range_sync(value: &OptionValue<'_>) -> Result<RangeSync, Problem> {
    let choices = [("wait_before", 0), ("write", 1), ("wait_after", 2)];
    let mut sync = RangeSync {
        writes_per_sync: 1,
        ..RangeSync::default()
    };
    let parts = value.split(&[',']);
    for (at, part) in parts.iter().enumerate() {
        let (word, every) = part.split_once(&[':']);
        match word.parse_choice(&choices)? {
            0 => sync.waits_before = true,
            1 => sync.starts_write = true,
            _ => sync.waits_after = true,
        }
        let Some(every) = every else { continue };
        if at + 1 < parts.len() {
            let title = "the number of writes must follow the last step";
            let problem = part.error(title, "fio leaves this step out, and says nothing");
            return Err(problem.help("write the steps in order, such as `wait_before,write:N`"));
        }
        sync.writes_per_sync = every.parse_count(1..)?;
    }
    Ok(sync)
}
