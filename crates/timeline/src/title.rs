//! Titles of programs: unique keys, and short names for people.

use crate::units::format_size;
use std::collections::BTreeMap;

/// Program with its parameters, as runs store them and plans create them.
#[derive(Clone, Copy, Debug)]
pub struct ResultTitle<'a> {
    /// Name of the program.
    pub program: &'a str,
    /// All parameters of the program, as canonical text by name.
    pub parameters: &'a BTreeMap<String, String>,
    /// Names of the parameters that distinguish the program from others of the suite, and those
    /// that the user set.
    pub distinguishing: &'a [String],
}

impl ResultTitle<'_> {
    /// Returns the program's name with its distinguishing parameters: `seqread layer=direct
    /// call_bytes=512`.
    pub fn result_key(&self) -> String {
        self.append_other_parameters(self.program.to_owned(), &[])
    }

    /// Returns the title for people, such as `4 KiB random write, QD32`, for programs that keep
    /// requests in flight. Other programs have their [key](Self::result_key).
    pub fn display_title(&self) -> String {
        let described = match self.program {
            "random" | "sequential" => self.request_title(),
            "log_append" => self.log_title(),
            "database" => self.database_title(),
            _ => None,
        };
        described.unwrap_or_else(|| self.result_key())
    }

    /// Returns the title of a random or sequential program. `None` for a job of a job file with
    /// that name, since it lacks the parameters.
    fn request_title(&self) -> Option<String> {
        let size = format_sizes(self.parameter("block_bytes")?);
        let write_share: f64 = self.parameter("write_share")?.parse().ok()?;
        let operation = match write_share {
            0.0 => " read".to_owned(),
            1.0 => " write".to_owned(),
            share => format!(", {} % writes", format_percent(share)),
        };
        let title = format!("{size} {}{operation}", self.program) + &self.format_load()?;
        let described = ["block_bytes", "write_share", "depth", "rate_iops"];
        Some(self.append_other_parameters(title, &described))
    }

    fn log_title(&self) -> Option<String> {
        let size = format_sizes(self.parameter("record_bytes")?);
        let group = match self.parameter("group")? {
            "1" => String::new(),
            records => format!(", {records} a commit"),
        };
        let title = format!("{size} log append{group}{}", self.format_rate());
        Some(self.append_other_parameters(title, &["record_bytes", "group", "rate_iops"]))
    }

    fn database_title(&self) -> Option<String> {
        let clients = self.parameter("clients")?;
        let plural = if clients == "1" { "" } else { "s" };
        let title = format!("database, {clients} client{plural}{}", self.format_rate());
        Some(self.append_other_parameters(title, &["clients", "rate_iops"]))
    }

    /// Returns the load part of a title: `, QD32` in closed loop; in open loop the arrival rate,
    /// with the depth if it was given.
    fn format_load(&self) -> Option<String> {
        let depth = match (self.parameter("depth")?, self.format_rate()) {
            ("0", rate) if rate.is_empty() => ", QD1".to_owned(),
            ("0", rate) => return Some(rate),
            (depth, rate) => format!(", QD{depth}{rate}"),
        };
        Some(depth)
    }

    /// Returns the rate part of a title, such as `, 2000/s`; empty in closed loop.
    fn format_rate(&self) -> String {
        match self.parameter("rate_iops") {
            None | Some("0") => String::new(),
            Some(rate) => format!(", {rate}/s"),
        }
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// Appends to a title the distinguishing parameters that it does not yet contain.
    fn append_other_parameters(&self, title: String, described: &[&str]) -> String {
        let others = self.distinguishing.iter();
        let others = others.filter(|name| !described.contains(&name.as_str()));
        others.fold(title, |title, name| match self.parameter(name) {
            Some(value) => format!("{title} {name}={value}"),
            None => title,
        })
    }
}

/// Formats one size, such as `4 KiB`, or the smallest and largest of several.
fn format_sizes(text: &str) -> String {
    let each = text.split(',').filter_map(|pair| {
        let size = pair.split_once(':').map_or(pair, |(size, _)| size);
        size.parse::<u64>().ok()
    });
    match (each.clone().min(), each.max()) {
        (Some(min), Some(max)) if min == max => format_size(min),
        (Some(min), Some(max)) => format!("{} to {}", format_size(min), format_size(max)),
        _ => text.to_owned(),
    }
}

/// Formats a share in percent, without trailing zeros.
fn format_percent(share: f64) -> String {
    let text = format!("{:.2}", 100.0 * share);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_what_people_say() {
        let random = "block_bytes=4096 write_share=0 depth=32 rate_iops=0";
        let log = "record_bytes=4096 group=1 rate_iops=0";
        let cases: [(&str, &str, &str, &str); 15] = [
            ("random", random, "depth", "4 KiB random read, QD32"),
            ("random", random, "", "4 KiB random read, QD32"),
            (
                "random",
                "block_bytes=4096 write_share=1 depth=0 rate_iops=0 direct=no",
                "write_share direct",
                "4 KiB random write, QD1 direct=no",
            ),
            (
                "random",
                "block_bytes=4096 write_share=0.05 depth=0 rate_iops=2000",
                "rate_iops",
                "4 KiB random, 5 % writes, 2000/s",
            ),
            (
                "random",
                "block_bytes=4096:70,8192:30 write_share=0 depth=8 rate_iops=100",
                "block_bytes",
                "4 KiB to 8 KiB random read, QD8, 100/s",
            ),
            (
                "sequential",
                "block_bytes=1048576 write_share=1 depth=8 rate_iops=0",
                "depth",
                "1 MiB sequential write, QD8",
            ),
            (
                "random",
                "block_bytes=4096 write_share=0.333 depth=1 rate_iops=0 workers=4",
                "workers",
                "4 KiB random, 33.3 % writes, QD1 workers=4",
            ),
            // A job of a job file has fio's options.
            ("random", "rw=randread bs=4k", "", "random"),
            ("log_append", log, "", "4 KiB log append"),
            (
                "log_append",
                "record_bytes=512 group=8 rate_iops=50",
                "group",
                "512 B log append, 8 a commit, 50/s",
            ),
            ("log_append", "bs=4k", "bs", "log_append bs=4k"),
            (
                "database",
                "clients=8 rate_iops=0",
                "",
                "database, 8 clients",
            ),
            (
                "database",
                "clients=1 rate_iops=9 reads=2",
                "reads",
                "database, 1 client, 9/s reads=2",
            ),
            ("read_8192", "call_bytes=8192", "", "read_8192"),
            (
                "seqread",
                "layer=null call_bytes=512",
                "layer call_bytes",
                "seqread layer=null call_bytes=512",
            ),
        ];
        for (program, parameters, distinguishing, title) in cases {
            let pairs = parameters
                .split(' ')
                .filter_map(|pair| pair.split_once('='));
            let parameters = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let distinguishing = distinguishing.split(' ').map(str::to_owned);
            let titled = ResultTitle {
                program,
                parameters: &parameters.collect(),
                distinguishing: &distinguishing.collect::<Vec<_>>(),
            };
            assert_eq!(titled.display_title(), title);
            assert!(
                titled.result_key().starts_with(program),
                "{}",
                titled.result_key()
            );
        }
    }
}
