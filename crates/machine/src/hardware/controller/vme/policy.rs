//! What a controller does with its cache: the bits that a driver gives with
//! each command.

/// What a command is for, as far as the driver can tell the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessClass {
    /// Past the buffer cache.
    #[default]
    Raw,
    /// A file system's, in multiples of 4 KB.
    FileWhole,
    /// A file system's, otherwise.
    FilePart,
}

impl AccessClass {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Raw, Self::FileWhole, Self::FilePart];

    /// Of a transfer of the buffer cache.
    pub fn of_file(bytes: u32) -> Self {
        match bytes.is_multiple_of(4096) {
            true => Self::FileWhole,
            false => Self::FilePart,
        }
    }

    /// The name in parameters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::FileWhole => "file",
            Self::FilePart => "file_part",
        }
    }
}

/// The bits of one class of accesses, and how far it reads ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// SEA: look for sectors in the cache.
    pub search: bool,
    /// CRD: keep what was read.
    pub save_reads: bool,
    /// RAP: reading ahead goes before writes that wait.
    pub ahead_priority: bool,
    /// CWT: keep what was written.
    pub save_writes: bool,
    /// SRD: the nearest of the reads that wait, not the first.
    pub sort_reads: bool,
    /// SWT: the same of writes.
    pub sort_writes: bool,
    /// XHD: read ahead over the end of a track.
    pub across_heads: bool,
    /// XCY: read ahead over the end of a cylinder.
    pub across_cylinders: bool,
    /// Sectors read ahead.
    pub ahead_sectors: u32,
}

/// The most that such a controller reads ahead, in sectors (seed 001).
pub const MOST_AHEAD_SECTORS: u32 = 244;

impl Policy {
    /// The bits by their names, in the order of the seed.
    pub fn bits(&mut self) -> [(&'static str, &mut bool); 8] {
        [
            ("SEA", &mut self.search),
            ("CRD", &mut self.save_reads),
            ("RAP", &mut self.ahead_priority),
            ("CWT", &mut self.save_writes),
            ("SRD", &mut self.sort_reads),
            ("SWT", &mut self.sort_writes),
            ("XHD", &mut self.across_heads),
            ("XCY", &mut self.across_cylinders),
        ]
    }

    /// Reads `SEA|XHD`, or `0` for none.
    ///
    /// # Errors
    ///
    /// A bit that there is not, given twice, or that means nothing without
    /// another one; in words.
    pub fn parse(text: &str, ahead_sectors: u32) -> Result<Self, String> {
        let mut policy = Self {
            ahead_sectors,
            ..Self::default()
        };
        if text != "0" {
            for word in text.split('|') {
                let mut bits = policy.bits();
                let bit = bits.iter_mut().find(|(name, _)| *name == word);
                let Some((_, bit)) = bit else {
                    return Err(format!(
                        "there is no cache bit `{word}`; there are SEA, CRD, RAP, CWT, SRD, SWT, XHD and XCY, joined by |, and 0 for none"
                    ));
                };
                if std::mem::replace(*bit, true) {
                    return Err(format!("the cache bit {word} is given twice"));
                }
            }
        }
        policy.check()?;
        Ok(policy)
    }

    /// Whether reading ahead, once begun, goes to its end before a write that
    /// waits. Across cylinders the controller's processor moves the arm itself,
    /// between one operation of the drive and the next, and sees the write;
    /// within a cylinder it is one operation (inferred: seed 001's copies of
    /// files keep what was read ahead, those of raw partitions lose it, and
    /// XCY is the bit by which the two differ).
    pub fn keeps_arm(&self) -> bool {
        self.ahead_priority || !self.across_cylinders
    }

    /// Bits that contradict each other.
    fn check(&self) -> Result<(), String> {
        let needs = [
            (
                self.across_cylinders && !self.across_heads,
                "XCY needs XHD: a cylinder ends where its last head's track does",
            ),
            (
                self.save_writes && !self.search,
                "CWT needs SEA: what is saved is never looked for without it",
            ),
            (
                self.save_reads && !self.search,
                "CRD needs SEA: what is saved is never looked for without it",
            ),
            (
                self.across_heads && !self.search,
                "XHD needs SEA: without a search nothing is read ahead",
            ),
            (
                self.ahead_priority && !self.search,
                "RAP needs SEA: without a search nothing is read ahead",
            ),
        ];
        match needs.into_iter().find(|(wrong, _)| *wrong) {
            Some((_, why)) => Err(why.to_owned()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_read_by_name() {
        let policy = Policy::parse("SEA|XHD|XCY", 100).unwrap();
        assert!(policy.search && policy.across_heads && policy.across_cylinders);
        assert!(!policy.save_reads && policy.ahead_sectors == 100);
        assert_eq!(
            Policy::parse("0", 60).unwrap(),
            Policy {
                ahead_sectors: 60,
                ..Policy::default()
            }
        );
    }

    #[test]
    fn contradictions_are_refused() {
        for (text, word) in [
            ("SEA|XCY", "XHD"),
            ("CRD", "SEA"),
            ("SEA|SEA", "twice"),
            ("SEA|FOO", "FOO"),
            ("", "SEA"),
        ] {
            let error = Policy::parse(text, 10).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
