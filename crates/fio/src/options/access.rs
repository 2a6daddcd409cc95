//! fio options for access patterns, offsets and block sizes.

use std::num::NonZeroU64;
use std::sync::Arc;

use super::{OptionKey, applied_option, ineffective_option, parse_per_direction, storage};
use crate::job::{
    AccessPattern, DistributionZone, FileService, FileServiceOrder, OffsetDistribution,
    OffsetSequencer, PerDirection, RandomGenerator, ReadWriteMode, WeightedSize, ZoneMode,
};
use crate::value::{OptionValue, WrittenOption};
use diskperf_diagnostics::Problem;

/// Maximum number of parts of a block-size split that fio keeps.
const PARTS_MAX: usize = 64;

pub(super) const OPTIONS: &[OptionKey] = &[
    applied_option("rw", |job, w| parse_read_write(&mut job.pattern, w))
        .with_aliases(&["readwrite"]),
    applied_option("rw_sequencer", |job, w| {
        let choices = [
            ("sequential", OffsetSequencer::Sequential),
            ("identical", OffsetSequencer::Identical),
        ];
        job.pattern.offset_sequencer = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    applied_option("rwmixread", |job, w| {
        job.pattern.read_percent = parse_percent(&w.value()?.require_single()?)?;
        Ok(())
    }),
    applied_option("rwmixwrite", |job, w| {
        job.pattern.read_percent = 100 - parse_percent(&w.value()?.require_single()?)?;
        Ok(())
    }),
    applied_option("bs", |job, w| {
        parse_per_direction(
            &w.value()?.split_numbers()?,
            &mut job.blocks.fixed_bytes,
            parse_block,
        )
    })
    .with_aliases(&["blocksize"]),
    applied_option("ba", |job, w| {
        parse_per_direction(
            &w.value()?.split_numbers()?,
            &mut job.blocks.offset_align_bytes,
            parse_block,
        )
    })
    .with_aliases(&["blockalign"]),
    applied_option("bsrange", |job, w| {
        parse_per_direction(
            &w.value()?.split_per_direction()?,
            &mut job.blocks.range_bytes,
            |part| parse_block_range(part).map(Some),
        )
    })
    .with_aliases(&["blocksize_range"]),
    applied_option("bssplit", |job, w| {
        // fio drops the blanks around the whole value, and none in front of a size within.
        parse_per_direction(
            &w.value()?.trimmed().split_per_direction()?,
            &mut job.blocks.weighted_sizes,
            |part| parse_block_split(part).map(Some),
        )
    }),
    applied_option("bs_unaligned", |job, w| {
        job.blocks.allows_unaligned = w.parse_flag()?;
        Ok(())
    })
    .with_aliases(&["blocksize_unaligned"]),
    applied_option("bs_is_seq_rand", |job, w| {
        job.blocks.is_by_sequence = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("percentage_random", |job, w| {
        parse_per_direction(
            &w.value()?.split_numbers()?,
            &mut job.random.random_percent,
            parse_percent,
        )
    }),
    applied_option("norandommap", |job, w| {
        job.random.has_no_map = w.parse_flag()?;
        Ok(())
    }),
    applied_option("softrandommap", |job, w| {
        job.random.may_drop_map = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("random_generator", |job, w| {
        let choices = [
            ("tausworthe", RandomGenerator::Tausworthe),
            ("lfsr", RandomGenerator::Lfsr),
            ("tausworthe64", RandomGenerator::Tausworthe64),
        ];
        job.random.generator = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    applied_option("random_distribution", |job, w| {
        parse_distribution(&mut job.random.distribution, &w.value()?)
    }),
    applied_option("randseed", |job, w| {
        job.random.seed = w.value()?.require_single()?.parse_number_in(..)?;
        Ok(())
    }),
    applied_option("randrepeat", |job, w| {
        job.random.is_repeatable = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("allrandrepeat", |job, w| {
        job.random.is_repeatable_for_all = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("file_service_type", |job, w| {
        job.files.service = parse_file_service(&w.value()?)?;
        Ok(())
    }),
    applied_option("zonemode", |job, w| {
        let choices = [
            ("none", ZoneMode::None),
            ("strided", ZoneMode::Strided),
            ("zbd", ZoneMode::WritePointers),
        ];
        job.zones.mode = w.value()?.parse_choice(&choices)?;
        Ok(())
    }),
    applied_option("zonesize", |job, w| {
        job.zones.size_bytes = w.value()?.require_single()?.parse_number_in(..)?;
        Ok(())
    }),
    applied_option("zonerange", |job, w| {
        job.zones.range_bytes = w.value()?.require_single()?.parse_number_in(..)?;
        Ok(())
    }),
    applied_option("zoneskip", |job, w| {
        let value = w.value()?.require_single()?;
        match storage::parse_zone_count(&value)? {
            Some(count) => (job.target.zoned_amounts.skip, job.zones.skip_bytes) = (count, 0),
            None => job.zones.skip_bytes = value.parse_number_in(..)?,
        }
        Ok(())
    }),
    applied_option("zonecapacity", |job, w| {
        job.write_pointers.capacity_bytes = w.value()?.require_single()?.parse_number_in(..)?;
        Ok(())
    }),
    applied_option("read_beyond_wp", |job, w| {
        job.write_pointers.may_read_beyond = w.value()?.parse_boolean()?;
        Ok(())
    }),
    applied_option("zone_reset_threshold", |job, w| {
        job.write_pointers.reset_threshold = w.value()?.parse_float(0.0..=1.0)?;
        Ok(())
    }),
    applied_option("zone_reset_frequency", |job, w| {
        job.write_pointers.reset_rate = w.value()?.parse_float(0.0..=1.0)?;
        Ok(())
    }),
    applied_option("max_open_zones", |job, w| {
        job.write_pointers.open_zones_max = w
            .value()?
            .require_single()?
            .parse_count(0..=OPEN_ZONES_MAX)?;
        Ok(())
    }),
    applied_option("job_max_open_zones", |job, w| {
        job.write_pointers.job_open_zones_max = w
            .value()?
            .require_single()?
            .parse_count(0..=OPEN_ZONES_MAX)?;
        Ok(())
    }),
    ineffective_option(
        "ignore_zone_limits",
        "files and conventional devices have no zone limits",
    ),
];

const OPEN_ZONES_MAX: u32 = 4096;

fn parse_percent(value: &OptionValue<'_>) -> Result<u8, Problem> {
    let percent = value.parse_count(0..=100)?;
    Ok(u8::try_from(percent).expect("at most 100"))
}

fn parse_block(value: &OptionValue<'_>) -> Result<u64, Problem> {
    value.parse_number_in(1..=u64::from(u32::MAX))
}

const ACCESSES: [(&str, ReadWriteMode); 11] = [
    ("read", ReadWriteMode::Read),
    ("write", ReadWriteMode::Write),
    ("trim", ReadWriteMode::Trim),
    ("randread", ReadWriteMode::RandomRead),
    ("randwrite", ReadWriteMode::RandomWrite),
    ("randtrim", ReadWriteMode::RandomTrim),
    ("rw", ReadWriteMode::Mixed),
    ("readwrite", ReadWriteMode::Mixed),
    ("randrw", ReadWriteMode::RandomMixed),
    ("trimwrite", ReadWriteMode::TrimWrite),
    ("randtrimwrite", ReadWriteMode::RandomTrimWrite),
];

/// Reads `rw`, with an optional number as in `rw=randread:N` or `rw=parse_number:BYTES`.
fn parse_read_write(
    pattern: &mut AccessPattern,
    written: &WrittenOption<'_>,
) -> Result<(), Problem> {
    let (word, modifier) = written.value()?.split_once(&[':']);
    let access = word.parse_choice(&ACCESSES)?;
    (pattern.access, pattern.sequence_length, pattern.skip_bytes) = (access, 1, 0);
    let Some(modifier) = modifier else {
        return Ok(());
    };
    if !access.is_random() {
        pattern.skip_bytes = modifier.parse_signed()?;
        return Ok(());
    }
    pattern.sequence_length = parse_plain_count(&modifier)?;
    Ok(())
}

/// Reads a block-size range such as `4k-16k` or `4k:16k`, with the bounds in either order.
fn parse_block_range(value: &OptionValue<'_>) -> Result<(u64, u64), Problem> {
    let (low, high) = value.split_once(&['-', ':']);
    let Some(high) = high else {
        let problem = value.error("bsrange needs two sizes", "fio drops the job");
        return Err(problem.help("write `LOW-HIGH`, or `bs=` for one size"));
    };
    let (low, high) = (parse_block(&low)?, parse_block(&high)?);
    Ok((low.min(high), low.max(high)))
}

/// Reads a block-size split such as `4k/50:8k/30:16k`. Sizes without a share divide the remaining
/// percentage equally.
fn parse_block_split(value: &OptionValue<'_>) -> Result<Arc<[WeightedSize]>, Problem> {
    let parts = value.split(&[':']);
    if parts.len() > PARTS_MAX {
        let title = format!("bssplit takes at most {PARTS_MAX} sizes");
        return Err(parts[PARTS_MAX].error(title, "fio drops the rest"));
    }
    let mut read = Vec::new();
    for part in &parts {
        let (size, share) = part.split_once(&['/']);
        let share = share.filter(|share| !share.text().is_empty());
        let share = share.map(|share| share.parse_count(0..=100)).transpose()?;
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
            .error(title, label)
            .help("make the percentages add up to 100"));
    }
    if sum > 100 || (sum < 100 && missing == 0) {
        distribute_remaining_share(&mut weighted);
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
fn distribute_remaining_share(parts: &mut [WeightedSize]) {
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
    into: &mut PerDirection<OffsetDistribution>,
    value: &OptionValue<'_>,
) -> Result<(), Problem> {
    let (word, rest) = value.split_once(&[':']);
    let name = word.parse_choice(&DISTRIBUTIONS)?;
    let all = match name {
        "random" => match rest {
            Some(rest) => return Err(rest.error("`random` has no parameter", "fio ignores this")),
            None => OffsetDistribution::Uniform,
        },
        "zoned" | "zoned_abs" => {
            let Some(rest) = rest else {
                let problem = word.error(format!("`{name}` needs a list of zones"), "fio has none");
                return Err(problem.help(format!("write `{name}:ACCESS/RANGE:ACCESS/RANGE`")));
            };
            let absolute = name == "zoned_abs";
            if rest.text().contains(',') {
                let label = "fio 3.33 drops the job, though its manual has this";
                rest.warn("not every fio takes zones by direction", label);
            }
            return parse_per_direction(&rest.split_per_direction()?, into, |part| {
                parse_zoned_distribution(part, absolute)
            });
        }
        _ => parse_ranked_distribution(name, rest)?,
    };
    *into = PerDirection::uniform(all);
    Ok(())
}

fn parse_ranked_distribution(
    name: &str,
    rest: Option<OptionValue<'_>>,
) -> Result<OffsetDistribution, Problem> {
    let (parameter, center) = match rest {
        Some(rest) => {
            let (parameter, center) = rest.split_once(&[':']);
            (Some(parameter), center)
        }
        None => (None, None),
    };
    let center = center
        .map(|center| center.parse_float(0.0..=1.0))
        .transpose()?;
    let number = |default: f64| match &parameter {
        Some(parameter) => parameter.parse_float(..),
        None => Ok(default),
    };
    let out_of = |limits: &str, label: &str| match &parameter {
        Some(parameter) => parameter.error(format!("{name} is {limits}"), label),
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
            fits.then_some(OffsetDistribution::Zipf { theta, center })
                .ok_or_else(|| out_of("above 0, and not 1", label))
        }
        "pareto" => {
            let h = number(0.2)?;
            let fits = h > 0.0 && h < 1.0;
            fits.then_some(OffsetDistribution::Pareto { h, center })
                .ok_or_else(|| out_of("between 0 and 1", "fio drops the job"))
        }
        _ => {
            let deviation = number(0.0)?;
            let fits = (0.0..100.0).contains(&deviation);
            fits.then_some(OffsetDistribution::Normal { deviation, center })
                .ok_or_else(|| out_of("from 0 to below 100 percent", "fio drops the job"))
        }
    }
}

/// Reads a zoned distribution such as `50/10:50/90`.
fn parse_zoned_distribution(
    value: &OptionValue<'_>,
    absolute: bool,
) -> Result<OffsetDistribution, Problem> {
    let mut zones = Vec::new();
    let (mut accesses, mut ranges) = (0, 0);
    let mut without_range = Vec::new();
    let parts = value.split(&[':']);
    if parts.len() > 256 {
        return Err(parts[256].error("there are at most 256 zones", "fio drops the rest"));
    }
    for part in parts {
        let (access, extent) = part.split_once(&['/']);
        let extent = match extent.filter(|extent| !extent.text().is_empty()) {
            Some(extent) if absolute => extent.parse_number_in(1..)?,
            Some(extent) => u64::from(extent.parse_count(1..=100)?),
            None if absolute => {
                let problem = part.error(
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
        zones.push(DistributionZone {
            access_percent: percent,
            area_extent: extent,
        });
    }
    // fio shares out what is left of the file to the zones that name no range.
    if let Some(count) = NonZeroU64::new(without_range.len() as u64) {
        let share = 100_u64.saturating_sub(ranges) / count;
        if share == 0 {
            let problem = value.error(
                "no part of the file is left for a zone without a range",
                format!("the other ranges add up to {ranges} percent"),
            );
            return Err(
                problem.help("write ACCESS/RANGE for each zone, 100 percent of each in all")
            );
        }
        for zone in without_range {
            zones[zone].area_extent = share;
        }
        ranges += share * count.get();
    }
    if accesses != 100 {
        let title = format!("the access percentages of the zones add up to {accesses}");
        let problem = value.error(title, "fio drops the job");
        return Err(problem.help("the first numbers must add up to 100"));
    }
    if absolute {
        return Ok(OffsetDistribution::ZonedBytes(Arc::from(zones)));
    }
    if ranges > 100 {
        let title = format!("the ranges of the zones add up to {ranges} percent");
        return Err(value.error(title, "the second numbers are shares of the file"));
    }
    Ok(OffsetDistribution::Zoned(Arc::from(zones)))
}

/// Reads a file service order such as `roundrobin:N` or `zipf:theta`.
fn parse_file_service(value: &OptionValue<'_>) -> Result<FileService, Problem> {
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
                service.ios_per_file = parse_plain_count(&rest)?;
            }
        }
        _ => {
            service.order = match parse_ranked_distribution(name, rest)? {
                OffsetDistribution::Zipf { theta, .. } => FileServiceOrder::Zipf { theta },
                OffsetDistribution::Pareto { h, .. } => FileServiceOrder::Pareto { h },
                OffsetDistribution::Normal { deviation, .. } => {
                    FileServiceOrder::Normal { deviation }
                }
                OffsetDistribution::Uniform
                | OffsetDistribution::Zoned(_)
                | OffsetDistribution::ZonedBytes(_) => FileServiceOrder::Random,
            };
        }
    }
    Ok(service)
}

/// Reads a count that fio parses with `atoi`, so suffixes are not allowed.
fn parse_plain_count(value: &OptionValue<'_>) -> Result<u32, Problem> {
    let count = value.parse_count(1..)?;
    let text = value.text().trim();
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(count);
    }
    let reads = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let title = format!("`{}` must be a count without a suffix", value.text());
    Err(value.error(title, format!("fio reads `{reads}` and says nothing")))
}
