//! fio options for access patterns, offsets and block sizes.

use std::num::NonZeroU64;
use std::sync::Arc;

use super::{OptionKey, harmless, honoured, read_per_direction, storage};
use crate::job::{
    Access, AccessPattern, Distribution, FileService, FileServiceOrder, Generator, PerDirection,
    Sequencer, WeightedSize, Zone, ZoneMode,
};
use crate::value::{Value, WrittenOption};
use diskperf_diagnostics::Problem;

/// Maximum number of parts of a block-size split that fio keeps.
const PARTS_MAX: usize = 64;

pub(super) const OPTIONS: &[OptionKey] = &[
    honoured("rw", |job, w| parse_read_write(&mut job.pattern, w)).with_aliases(&["readwrite"]),
    honoured("rw_sequencer", |job, w| {
        let choices = [
            ("sequential", Sequencer::Sequential),
            ("identical", Sequencer::Identical),
        ];
        job.pattern.sequencer = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    honoured("rwmixread", |job, w| {
        job.pattern.read_percent = parse_percent(&w.value()?.require_single()?)?;
        Ok(())
    }),
    honoured("rwmixwrite", |job, w| {
        job.pattern.read_percent = 100 - parse_percent(&w.value()?.require_single()?)?;
        Ok(())
    }),
    honoured("bs", |job, w| {
        read_per_direction(
            &w.value()?.split_numbers()?,
            &mut job.blocks.bytes,
            parse_block,
        )
    })
    .with_aliases(&["blocksize"]),
    honoured("ba", |job, w| {
        read_per_direction(
            &w.value()?.split_numbers()?,
            &mut job.blocks.align,
            parse_block,
        )
    })
    .with_aliases(&["blockalign"]),
    honoured("bsrange", |job, w| {
        read_per_direction(
            &w.value()?.per_direction()?,
            &mut job.blocks.range,
            |part| parse_block_range(part).map(Some),
        )
    })
    .with_aliases(&["blocksize_range"]),
    honoured("bssplit", |job, w| {
        // fio drops the blanks around the whole value, and none in front of a size within.
        read_per_direction(
            &w.value()?.trimmed().per_direction()?,
            &mut job.blocks.split,
            |part| parse_block_split(part).map(Some),
        )
    }),
    honoured("bs_unaligned", |job, w| {
        job.blocks.unaligned = w.flag()?;
        Ok(())
    })
    .with_aliases(&["blocksize_unaligned"]),
    honoured("bs_is_seq_rand", |job, w| {
        job.blocks.by_sequence = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("percentage_random", |job, w| {
        read_per_direction(
            &w.value()?.split_numbers()?,
            &mut job.random.percent,
            parse_percent,
        )
    }),
    honoured("norandommap", |job, w| {
        job.random.no_map = w.flag()?;
        Ok(())
    }),
    honoured("softrandommap", |job, w| {
        job.random.soft_map = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("random_generator", |job, w| {
        let choices = [
            ("tausworthe", Generator::Tausworthe),
            ("lfsr", Generator::Lfsr),
            ("tausworthe64", Generator::Tausworthe64),
        ];
        job.random.generator = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    honoured("random_distribution", |job, w| {
        parse_distribution(&mut job.random.distribution, &w.value()?)
    }),
    honoured("randseed", |job, w| {
        job.random.seed = w.value()?.require_single()?.number(..)?;
        Ok(())
    }),
    honoured("randrepeat", |job, w| {
        job.random.repeatable = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("allrandrepeat", |job, w| {
        job.random.all_repeatable = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("file_service_type", |job, w| {
        job.files.service = parse_file_service(&w.value()?)?;
        Ok(())
    }),
    honoured("zonemode", |job, w| {
        let choices = [
            ("none", ZoneMode::None),
            ("strided", ZoneMode::Strided),
            ("zbd", ZoneMode::WritePointers),
        ];
        job.zones.mode = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    honoured("zonesize", |job, w| {
        job.zones.size_bytes = w.value()?.require_single()?.number(..)?;
        Ok(())
    }),
    honoured("zonerange", |job, w| {
        job.zones.range_bytes = w.value()?.require_single()?.number(..)?;
        Ok(())
    }),
    honoured("zoneskip", |job, w| {
        let value = w.value()?.require_single()?;
        match storage::parse_zone_count(&value)? {
            Some(count) => (job.target.zoned_amounts.skip, job.zones.skip_bytes) = (count, 0),
            None => job.zones.skip_bytes = value.number(..)?,
        }
        Ok(())
    }),
    honoured("zonecapacity", |job, w| {
        job.write_pointers.capacity_bytes = w.value()?.require_single()?.number(..)?;
        Ok(())
    }),
    honoured("read_beyond_wp", |job, w| {
        job.write_pointers.reads_beyond = w.value()?.boolean()?;
        Ok(())
    }),
    honoured("zone_reset_threshold", |job, w| {
        job.write_pointers.reset_threshold = w.value()?.float(0.0..=1.0)?;
        Ok(())
    }),
    honoured("zone_reset_frequency", |job, w| {
        job.write_pointers.reset_frequency = w.value()?.float(0.0..=1.0)?;
        Ok(())
    }),
    honoured("max_open_zones", |job, w| {
        job.write_pointers.open_max = w.value()?.require_single()?.count(0..=OPEN_ZONES_MAX)?;
        Ok(())
    }),
    honoured("job_max_open_zones", |job, w| {
        job.write_pointers.job_open_max = w.value()?.require_single()?.count(0..=OPEN_ZONES_MAX)?;
        Ok(())
    }),
    harmless(
        "ignore_zone_limits",
        "files and conventional devices have no zone limits",
    ),
];

const OPEN_ZONES_MAX: u32 = 4096;

fn parse_percent(value: &Value<'_>) -> Result<u8, Problem> {
    let percent = value.count(0..=100)?;
    Ok(u8::try_from(percent).expect("at most 100"))
}

fn parse_block(value: &Value<'_>) -> Result<u64, Problem> {
    value.number(1..=u64::from(u32::MAX))
}

const ACCESSES: [(&str, Access); 11] = [
    ("read", Access::Read),
    ("write", Access::Write),
    ("trim", Access::Trim),
    ("randread", Access::RandomRead),
    ("randwrite", Access::RandomWrite),
    ("randtrim", Access::RandomTrim),
    ("rw", Access::Mixed),
    ("readwrite", Access::Mixed),
    ("randrw", Access::RandomMixed),
    ("trimwrite", Access::TrimWrite),
    ("randtrimwrite", Access::RandomTrimWrite),
];

/// Reads `rw`, with an optional number as in `rw=randread:N` or `rw=parse_number:BYTES`.
fn parse_read_write(
    pattern: &mut AccessPattern,
    written: &WrittenOption<'_>,
) -> Result<(), Problem> {
    let (word, modifier) = written.value()?.split_once(&[':']);
    let access = word.parse_choice(&ACCESSES)?;
    (pattern.access, pattern.sequence, pattern.skip_bytes) = (access, 1, 0);
    let Some(modifier) = modifier else {
        return Ok(());
    };
    if !access.is_random() {
        pattern.skip_bytes = modifier.signed()?;
        return Ok(());
    }
    pattern.sequence = parse_plain_count(&modifier)?;
    Ok(())
}

/// Reads a block-size range such as `4k-16k` or `4k:16k`, with the bounds in either order.
fn parse_block_range(value: &Value<'_>) -> Result<(u64, u64), Problem> {
    let (low, high) = value.split_once(&['-', ':']);
    let Some(high) = high else {
        let problem = value.problem("bsrange needs two sizes", "fio drops the job");
        return Err(problem.help("write `LOW-HIGH`, or `bs=` for one size"));
    };
    let (low, high) = (parse_block(&low)?, parse_block(&high)?);
    Ok((low.min(high), low.max(high)))
}

/// Reads a block-size split such as `4k/50:8k/30:16k`. Sizes without a share divide the remaining
/// percentage equally.
fn parse_block_split(value: &Value<'_>) -> Result<Arc<[WeightedSize]>, Problem> {
    let parts = value.split(&[':']);
    if parts.len() > PARTS_MAX {
        let title = format!("bssplit takes at most {PARTS_MAX} sizes");
        return Err(parts[PARTS_MAX].problem(title, "fio drops the rest"));
    }
    let mut read = Vec::new();
    for part in &parts {
        let (size, share) = part.split_once(&['/']);
        let share = share.filter(|share| !share.text().is_empty());
        let share = share.map(|share| share.count(0..=100)).transpose()?;
        // fio takes 0 for no share.
        let share = share.filter(|share| *share > 0);
        read.push((parse_block(&size.trimmed_end())?, share));
    }
    let sum: u32 = read.iter().filter_map(|(_, share)| *share).sum();
    let missing = read.iter().filter(|(_, share)| share.is_none()).count() as u32;
    let rest = 100_u32
        .saturating_sub(sum)
        .checked_div(missing)
        .unwrap_or(0);
    let weighted = read.into_iter().map(|(bytes, share)| WeightedSize {
        bytes,
        percent: share.unwrap_or(rest),
    });
    let mut weighted: Vec<WeightedSize> = weighted.collect();
    if sum > 100 && missing > 0 {
        let title = format!("the percentages of bssplit add up to {sum}");
        let label = match missing {
            1 => "fio issues other shares than these, and says nothing",
            _ => "fio drops the job",
        };
        return Err(value
            .problem(title, label)
            .help("make the percentages add up to 100"));
    }
    if sum > 100 || (sum < 100 && missing == 0) {
        complete_shares(&mut weighted);
        let shares = weighted
            .iter()
            .map(|part| format!("{} bytes {} %", part.bytes, part.percent));
        let shares: Vec<String> = shares.collect();
        let shares = shares.join(", ");
        let title =
            format!("the percentages of bssplit add up to {sum}, of which fio makes {shares}");
        value.warn(title, "diskperf uses these shares too");
    }
    Ok(weighted.into())
}

/// Adjusts shares that do not add up to 100 to those that fio actually issues. fio goes from the
/// smallest size up: shares beyond 100 are lost, and the largest size gets the rest.
fn complete_shares(parts: &mut [WeightedSize]) {
    parts.sort_by_key(|part| part.percent);
    let mut left = 100;
    let last = parts.len() - 1;
    for (at, part) in parts.iter_mut().enumerate() {
        part.percent = match at == last {
            true => left,
            false => part.percent.min(left),
        };
        left -= part.percent;
    }
}

const DISTRIBUTIONS: [(&str, &str); 6] = [
    ("random", "random"),
    ("zipf", "zipf"),
    ("pareto", "pareto"),
    ("normal", "normal"),
    ("zoned", "zoned"),
    ("zoned_abs", "zoned_abs"),
];

/// Reads `random_distribution`. Only zoned distributions may differ by direction.
fn parse_distribution(
    into: &mut PerDirection<Distribution>,
    value: &Value<'_>,
) -> Result<(), Problem> {
    let (word, rest) = value.split_once(&[':']);
    let name = word.parse_choice(&DISTRIBUTIONS)?;
    let all = match name {
        "random" => match rest {
            Some(rest) => return Err(rest.problem("`random` has no parameter", "fio ignores this")),
            None => Distribution::Uniform,
        },
        "zoned" | "zoned_abs" => {
            let Some(rest) = rest else {
                let problem =
                    word.problem(format!("`{name}` needs a list of zones"), "fio has none");
                return Err(problem.help(format!("write `{name}:ACCESS/RANGE:ACCESS/RANGE`")));
            };
            let absolute = name == "zoned_abs";
            if rest.text().contains(',') {
                let label = "fio 3.33 drops the job, though its manual has this";
                rest.warn("not every fio takes zones by direction", label);
            }
            return read_per_direction(&rest.per_direction()?, into, |part| {
                parse_zoned_distribution(part, absolute)
            });
        }
        _ => parse_ranked_distribution(name, rest)?,
    };
    *into = PerDirection::all(all);
    Ok(())
}

fn parse_ranked_distribution(name: &str, rest: Option<Value<'_>>) -> Result<Distribution, Problem> {
    let (parameter, center) = match rest {
        Some(rest) => {
            let (parameter, center) = rest.split_once(&[':']);
            (Some(parameter), center)
        }
        None => (None, None),
    };
    let center = center.map(|center| center.float(0.0..=1.0)).transpose()?;
    let number = |default: f64| match &parameter {
        Some(parameter) => parameter.float(..),
        None => Ok(default),
    };
    let out_of = |limits: &str, label: &str| match &parameter {
        Some(parameter) => parameter.problem(format!("{name} is {limits}"), label),
        None => unreachable!("defaults are in range"),
    };
    match name {
        "zipf" => {
            let theta = number(1.1)?;
            let fits = theta > 0.0 && theta != 1.0;
            let label = match theta == 1.0 {
                true => "fio drops the job",
                false => "fio takes it, and no block is more popular then",
            };
            fits.then_some(Distribution::Zipf { theta, center })
                .ok_or_else(|| out_of("above 0, and not 1", label))
        }
        "pareto" => {
            let h = number(0.2)?;
            let fits = h > 0.0 && h < 1.0;
            fits.then_some(Distribution::Pareto { h, center })
                .ok_or_else(|| out_of("between 0 and 1", "fio drops the job"))
        }
        _ => {
            let deviation = number(0.0)?;
            let fits = (0.0..100.0).contains(&deviation);
            fits.then_some(Distribution::Normal { deviation, center })
                .ok_or_else(|| out_of("from 0 to below 100 percent", "fio drops the job"))
        }
    }
}

/// Reads a zoned distribution such as `50/10:50/90`.
fn parse_zoned_distribution(value: &Value<'_>, absolute: bool) -> Result<Distribution, Problem> {
    let mut zones = Vec::new();
    let (mut accesses, mut ranges) = (0, 0);
    let mut without_range = Vec::new();
    let parts = value.split(&[':']);
    if parts.len() > 256 {
        return Err(parts[256].problem("there are at most 256 zones", "fio drops the rest"));
    }
    for part in parts {
        let (access, extent) = part.split_once(&['/']);
        let extent = match extent.filter(|extent| !extent.text().is_empty()) {
            Some(extent) if absolute => extent.number(1..)?,
            Some(extent) => u64::from(extent.count(1..=100)?),
            None if absolute => {
                let problem = part.problem(
                    "a zone must be ACCESS/RANGE",
                    "fio shares out the rest of the file",
                );
                return Err(problem);
            }
            None => {
                without_range.push(zones.len());
                0
            }
        };
        let percent = parse_percent(&access)?;
        accesses += u32::from(percent);
        ranges = extent.saturating_add(ranges);
        zones.push(Zone { percent, extent });
    }
    // fio shares out what is left of the file to the zones that name no range.
    if let Some(count) = NonZeroU64::new(without_range.len() as u64) {
        let share = 100_u64.saturating_sub(ranges) / count;
        if share == 0 {
            let problem = value.problem(
                "no part of the file is left for a zone without a range",
                format!("the other ranges add up to {ranges} percent"),
            );
            return Err(
                problem.help("write ACCESS/RANGE for each zone, 100 percent of each in all")
            );
        }
        for zone in without_range {
            zones[zone].extent = share;
        }
        ranges += share * count.get();
    }
    if accesses != 100 {
        let title = format!("the access percentages of the zones add up to {accesses}");
        let problem = value.problem(title, "fio drops the job");
        return Err(problem.help("the first numbers must add up to 100"));
    }
    if absolute {
        return Ok(Distribution::ZonedBytes(Arc::from(zones)));
    }
    if ranges > 100 {
        let title = format!("the ranges of the zones add up to {ranges} percent");
        return Err(value.problem(title, "the second numbers are shares of the file"));
    }
    Ok(Distribution::Zoned(Arc::from(zones)))
}

/// Reads a file service order such as `roundrobin:N` or `zipf:theta`.
fn parse_file_service(value: &Value<'_>) -> Result<FileService, Problem> {
    let choices = [
        ("roundrobin", "roundrobin"),
        ("sequential", "sequential"),
        ("random", "random"),
        ("zipf", "zipf"),
        ("pareto", "pareto"),
        ("normal", "normal"),
        ("gauss", "normal"),
    ];
    let (word, rest) = value.split_once(&[':']);
    let name = word.parse_choice(&choices)?;
    let mut service = FileService::default();
    match name {
        "roundrobin" | "sequential" | "random" => {
            service.order = match name {
                "roundrobin" => FileServiceOrder::RoundRobin,
                "sequential" => FileServiceOrder::Sequential,
                _ => FileServiceOrder::Random,
            };
            if let Some(rest) = rest {
                service.after_ios = parse_plain_count(&rest)?;
            }
        }
        _ => {
            service.order = match parse_ranked_distribution(name, rest)? {
                Distribution::Zipf { theta, .. } => FileServiceOrder::Zipf { theta },
                Distribution::Pareto { h, .. } => FileServiceOrder::Pareto { h },
                Distribution::Normal { deviation, .. } => FileServiceOrder::Normal { deviation },
                Distribution::Uniform | Distribution::Zoned(_) | Distribution::ZonedBytes(_) => {
                    FileServiceOrder::Random
                }
            };
        }
    }
    Ok(service)
}

/// Reads a count that fio parses with `atoi`, so suffixes are not allowed.
fn parse_plain_count(value: &Value<'_>) -> Result<u32, Problem> {
    let count = value.count(1..)?;
    let text = value.text().trim();
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(count);
    }
    let reads = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let title = format!("`{}` must be a count without a suffix", value.text());
    Err(value.problem(title, format!("fio reads `{reads}` and says nothing")))
}
