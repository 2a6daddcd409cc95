//! Titles of programs: one by which they are told apart, and one for people.

use crate::units::format_size;
use std::collections::BTreeMap;

/// A program with its parameters, as runs keep them and plans make them.
#[derive(Clone, Copy, Debug)]
pub struct Titled<'a> {
    /// The program's name.
    pub program: &'a str,
    /// All its parameters, in their canonical text.
    pub parameters: &'a BTreeMap<String, String>,
    /// The parameters that tell it from its siblings, and those that the user set.
    pub distinguishing: &'a [String],
}

impl Titled<'_> {
    /// Returns the name with the parameters that tell it from its siblings:
    /// `seqread layer=direct call_bytes=512`.
    pub fn key(&self) -> String {
        self.with_the_others(self.program.to_owned(), &[])
    }

    /// Returns the name for people: of programs that keep requests in flight
    /// `4 KiB random write, QD32`, of others the [key](Self::key).
    pub fn title(&self) -> String {
        let told = match self.program {
            "random" | "sequential" => self.requests(),
            "log_append" => self.log(),
            "database" => self.database(),
            _ => None,
        };
        told.unwrap_or_else(|| self.key())
    }

    /// `None` of a job file's job that has such a name.
    fn requests(&self) -> Option<String> {
        let size = sizes(self.value("block_bytes")?);
        let write_share: f64 = self.value("write_share")?.parse().ok()?;
        let operation = match write_share {
            0.0 => " read".to_owned(),
            1.0 => " write".to_owned(),
            share => format!(", {} % writes", percent(share)),
        };
        let title = format!("{size} {}{operation}", self.program) + &self.in_flight()?;
        let told = ["block_bytes", "write_share", "depth", "rate_iops"];
        Some(self.with_the_others(title, &told))
    }

    fn log(&self) -> Option<String> {
        let size = sizes(self.value("record_bytes")?);
        let group = match self.value("group")? {
            "1" => String::new(),
            records => format!(", {records} a commit"),
        };
        let title = format!("{size} log append{group}{}", self.rate());
        Some(self.with_the_others(title, &["record_bytes", "group", "rate_iops"]))
    }

    fn database(&self) -> Option<String> {
        let clients = self.value("clients")?;
        let plural = if clients == "1" { "" } else { "s" };
        let title = format!("database, {clients} client{plural}{}", self.rate());
        Some(self.with_the_others(title, &["clients", "rate_iops"]))
    }

    /// `, QD32`; where requests arrive by the clock, their rate, and the depth if it was
    /// given.
    fn in_flight(&self) -> Option<String> {
        let depth = match (self.value("depth")?, self.rate()) {
            ("0", rate) if rate.is_empty() => ", QD1".to_owned(),
            ("0", rate) => return Some(rate),
            (depth, rate) => format!(", QD{depth}{rate}"),
        };
        Some(depth)
    }

    /// `, 2000/s`; nothing in closed loop.
    fn rate(&self) -> String {
        match self.value("rate_iops") {
            None | Some("0") => String::new(),
            Some(rate) => format!(", {rate}/s"),
        }
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// A title with the distinguishing parameters that it does not tell.
    fn with_the_others(&self, title: String, told: &[&str]) -> String {
        let others = self.distinguishing.iter();
        let others = others.filter(|name| !told.contains(&name.as_str()));
        others.fold(title, |title, name| match self.value(name) {
            Some(value) => format!("{title} {name}={value}"),
            None => title,
        })
    }
}

/// `4 KiB`; of several sizes the smallest and the largest.
fn sizes(text: &str) -> String {
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

/// A share in percent, without needless digits.
fn percent(share: f64) -> String {
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
            let titled = Titled {
                program,
                parameters: &parameters.collect(),
                distinguishing: &distinguishing.collect::<Vec<_>>(),
            };
            assert_eq!(titled.title(), title);
            assert!(titled.key().starts_with(program), "{}", titled.key());
        }
    }
}
