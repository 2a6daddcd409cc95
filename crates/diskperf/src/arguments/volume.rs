//! The options of `diskperf calculate volume`.

use super::OutputFormat;
use clap::Args;
use diskperf_laboratory::Setting;
use diskperf_laboratory::volume::DURATION_NS_MAX;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct VolumeArguments {
    /// A fio job file whose jobs have `time_based` and `runtime`, or a block trace
    #[arg(value_name = "JOB.fio|TRACE")]
    pub(crate) load: String,
    /// Volumes, separated by commas: a type, such as gp3, with a size, such as gp2:100GiB or
    /// premium-ssd:P10 [default: the smallest one of each type that carries the load]
    #[arg(long = "volume", value_name = "TYPE[:SIZE]", value_delimiter = ',')]
    pub(crate) volumes: Vec<String>,
    /// Duration for which the load repeats, such as 36h
    #[arg(long = "for", value_name = "TIME", default_value = "168h", value_parser = parse_duration)]
    pub(crate) duration_ns: u64,
    /// Smallest size of a volume; the data of the load are a lower bound, too
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = super::parse_bytes)]
    pub(crate) size: u64,
    /// Set a parameter of the volumes, such as drive.instance=m5.large
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = Setting::parse)]
    pub(crate) settings: Vec<Setting>,
    /// An option of fio for the job file, such as --rate_iops=200; repeat for more
    #[arg(
        long = "fio-arg",
        value_name = "--OPTION=VALUE",
        allow_hyphen_values = true
    )]
    pub(crate) fio_arguments: Vec<String>,
    /// Directory with catalogue entries, which override those of the catalogue
    #[arg(long, value_name = "DIR")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: OutputFormat,
}

fn parse_duration(text: &str) -> Result<u64, String> {
    let days = text
        .strip_suffix('d')
        .and_then(|days| days.parse::<f64>().ok());
    let ns = match days {
        Some(days) => Some((days * 86_400e9) as u64),
        None => super::trace::parse_time_ns(text),
    };
    match ns {
        Some(ns) if (1..=DURATION_NS_MAX).contains(&ns) => Ok(ns),
        Some(_) => Err("give a time of up to 366d".to_owned()),
        None => Err("give a time with its unit, such as 36h or 7d".to_owned()),
    }
}
