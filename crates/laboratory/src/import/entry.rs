//! An entry of the catalogue as text.

use std::fmt::Write;

/// An entry while it is written.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    text: String,
}

impl Entry {
    /// A drive, by what it is and where its numbers are from.
    pub(super) fn of_drive(description: &str, source: &str) -> Self {
        let text = format!(
            "description = {}\nsource = {}\nkind = \"drive\"\n\n",
            quoted(description),
            quoted(source)
        );
        Self { text }
    }

    /// A drive that has the numbers of another one where it has none itself.
    pub(super) fn over(of: &str, description: &str, source: &str) -> Self {
        let text = format!(
            "extends = {}\ndescription = {}\nsource = {}\n\n",
            quoted(of),
            quoted(description),
            quoted(source)
        );
        Self { text }
    }

    fn line(&mut self, key: &str, value: &str) {
        writeln!(self.text, "{key} = {value}").expect("memory takes text");
    }

    /// A word of a list of choices.
    pub(super) fn word(&mut self, key: &str, value: &str) {
        self.line(key, &quoted(value));
    }

    /// Yes or no.
    pub(super) fn flag(&mut self, key: &str, value: bool) {
        self.line(key, if value { "true" } else { "false" });
    }

    /// A whole number.
    pub(super) fn integer(&mut self, key: &str, value: u64) {
        self.line(key, &value.to_string());
    }

    /// A number, with all its digits.
    pub(super) fn number(&mut self, key: &str, value: f64) {
        self.line(key, &format!("{value:?}"));
    }

    /// Why the number before this line is what it is.
    pub(super) fn source(&mut self, key: &str, why: &str) {
        self.line(&format!("{key}_source"), &quoted(why));
    }

    /// Rows of numbers, a line each; nothing of no rows.
    pub(super) fn rows(&mut self, key: &str, columns: &str, rows: &[Vec<f64>]) {
        if rows.is_empty() {
            return;
        }
        writeln!(self.text, "# {columns}\n{key} = [").expect("memory takes text");
        for row in rows {
            let row: Vec<String> = row.iter().map(|number| plain(*number)).collect();
            writeln!(self.text, "    [{}],", row.join(", ")).expect("memory takes text");
        }
        self.text.push_str("]\n");
    }

    /// An empty line.
    pub(super) fn gap(&mut self) {
        self.text.push('\n');
    }

    pub(super) fn text(self) -> String {
        self.text
    }
}

/// A whole number without a point, another with all its digits.
fn plain(number: f64) -> String {
    match number.fract() == 0.0 && number.abs() < 9e15 {
        true => format!("{number:.0}"),
        false => format!("{number:?}"),
    }
}

/// Text of TOML's basic strings.
fn quoted(text: &str) -> String {
    let mut all = String::from("\"");
    for one in text.chars() {
        match one {
            '"' | '\\' => all.extend(['\\', one]),
            _ if one.is_control() => write!(all, "\\u{:04X}", one as u32).expect("memory"),
            _ => all.push(one),
        }
    }
    all.push('"');
    all
}

/// The system with nothing but a drive.
pub(super) fn rig(drive: &str, source: &str) -> String {
    format!(
        "description = {}\nsource = {}\ndrives = 1\n\n[components]\ndrive = {}\n",
        quoted(&format!("The drive {drive} and nothing else.")),
        quoted(source),
        quoted(drive)
    )
}
